/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advice.c - see doctor_advice.h. One function per source; a new one is
 * a function and a line in the table at the end. */
#include "doctor/doctor_advice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"

/* Names of users and groups, and paths, that go into a command. */
enum { NAME_SIZE = 64, PATH_SIZE = 192 };

struct asked {
    const struct wm_doctor_source *source;
    const struct wm_source_config *config;
    int perf_errno;
    struct wm_advice *advice;
};

static void add(struct asked *asked, const char *problem, const char *command, ...)
    __attribute__((format(printf, 3, 4)));

/* The same command is said once, whatever problems it solves. */
static void add(struct asked *asked, const char *problem, const char *command, ...)
{
    struct wm_advice *advice = asked->advice;
    va_list arguments;

    if (advice->count == WM_ADVICE_MAX)
        return;
    char *text = advice->texts[advice->count][0], *line = advice->texts[advice->count][1];
    snprintf(text, sizeof(advice->texts[0][0]), "%s", problem);
    va_start(arguments, command);
    vsnprintf(line, sizeof(advice->texts[0][1]), command, arguments);
    va_end(arguments);
    for (size_t i = 0; i < advice->count; i++) {
        if (line[0] && strcmp(advice->texts[i][1], line) == 0)
            return;
    }
    advice->list[advice->count++] =
        (struct wm_doctor_advice) { text, line[0] ? line : NULL };
}

static void user_name(char *name, size_t size)
{
    struct passwd entry, *found = NULL;
    char room[4096];

    if (getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) == 0 && found)
        snprintf(name, size, "%s", found->pw_name);
    else
        snprintf(name, size, "%u", (unsigned)geteuid());
}

static bool group_name(gid_t group, char *name, size_t size)
{
    struct group entry, *found = NULL;
    char room[4096];

    if (getgrgid_r(group, &entry, room, sizeof(room), &found) != 0 || !found)
        return false;
    snprintf(name, size, "%s", found->gr_name);
    return true;
}

/* Says how to get at a file that is there and refuses us; nothing otherwise. */
static void add_file(struct asked *asked, const char *path, int how)
{
    char problem[256], group[NAME_SIZE], user[NAME_SIZE];
    mode_t bits = how == O_RDWR ? S_IRGRP | S_IWGRP : S_IRGRP;
    struct stat info;

    int fd = open(path, how | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || (errno != EACCES && errno != EPERM) || stat(path, &info) != 0)
        return;

    snprintf(problem, sizeof(problem), "%s may not be %s by this user", path,
             how == O_RDWR ? "opened" : "read");
    user_name(user, sizeof(user));
    if ((info.st_mode & bits) == bits && info.st_gid != 0 &&
        group_name(info.st_gid, group, sizeof(group)))
        add(asked, problem, "sudo usermod -aG %s %s   # then log in again", group, user);
    else
        add(asked, problem, "sudo chmod o+r%s %s   # until the next start",
            how == O_RDWR ? "w" : "", path);
}

/* Calls `visit` for each entry of a folder whose name fits. */
static void for_each(struct asked *asked, const char *folder, const char *pattern,
                     void (*visit)(struct asked *asked, const char *path))
{
    struct dirent *entry;
    DIR *stream = opendir(folder);

    if (!stream)
        return;
    while ((entry = readdir(stream)) != NULL) {
        char path[PATH_SIZE];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (fnmatch(pattern, entry->d_name, FNM_PERIOD) == 0 && length < (int)sizeof(path))
            visit(asked, path);
    }
    closedir(stream);
}

static void visit_readable(struct asked *asked, const char *path)
{
    add_file(asked, path, O_RDONLY);
}

static void visit_device(struct asked *asked, const char *path)
{
    add_file(asked, path, O_RDWR);
}

static void visit_temperatures(struct asked *asked, const char *path)
{
    for_each(asked, path, "temp*_input", visit_readable);
}

static void visit_sensors(struct asked *asked, const char *path)
{
    for_each(asked, path, "*[0-9]_input", visit_readable);
    for_each(asked, path, "*[0-9]_average", visit_readable);
}

static void visit_card(struct asked *asked, const char *path)
{
    char hwmon[PATH_SIZE + 16];

    snprintf(hwmon, sizeof(hwmon), "%s/device/hwmon", path);
    for_each(asked, hwmon, "hwmon*", visit_sensors);
}

static bool is_denied(const struct asked *asked)
{
    for (size_t i = 0; i < asked->source->channel_count; i++) {
        if (asked->source->channels[i].state == WM_READING_DENIED)
            return true;
    }
    return asked->source->health == WM_HEALTH_DENIED;
}

static void advise_hwmon(struct asked *asked)
{
    char folder[PATH_SIZE];

    snprintf(folder, sizeof(folder), "%.128s/class/hwmon", asked->config->sysfs);
    for_each(asked, folder, "hwmon*", visit_temperatures);
}

static void advise_drm(struct asked *asked)
{
    char folder[PATH_SIZE], program[PATH_SIZE] = "";

    snprintf(folder, sizeof(folder), "%.128s/class/drm", asked->config->sysfs);
    for_each(asked, folder, "card[0-9]*", visit_card);

    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (asked->advice->count == 0 && is_denied(asked) && length > 0)
        add(asked, "the GPU's users belong to others, whose /proc files only root may read",
            "sudo setcap cap_sys_ptrace+ep %s", program);
}

/* Whether a display device of NVIDIA is on the PCI bus. */
static bool has_nvidia_board(const char *sysfs)
{
    struct dirent *entry;
    char folder[PATH_SIZE];
    bool found = false;

    snprintf(folder, sizeof(folder), "%.128s/bus/pci/devices", sysfs);
    DIR *stream = opendir(folder);
    while (stream && !found && (entry = readdir(stream)) != NULL) {
        char path[512], vendor[16] = "", class[16] = "";
        snprintf(path, sizeof(path), "%s/%.64s/vendor", folder, entry->d_name);
        if (wm_file_read_at(AT_FDCWD, path, vendor, sizeof(vendor)) < 0)
            continue;
        snprintf(path, sizeof(path), "%s/%.64s/class", folder, entry->d_name);
        found = strncmp(vendor, "0x10de", 6) == 0 &&
                wm_file_read_at(AT_FDCWD, path, class, sizeof(class)) > 0 &&
                strncmp(class, "0x03", 4) == 0;
    }
    if (stream)
        closedir(stream);
    return found;
}

/* The kernel's part of the driver is there, so it is the library that is
 * missing: this happens in containers that were started without the GPUs. */
static bool has_nvidia_module(const char *procfs)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%.128s/driver/nvidia/version", procfs);
    return access(path, F_OK) == 0;
}

static void advise_nvml(struct asked *asked)
{
    if (asked->source->health == WM_HEALTH_DENIED)
        for_each(asked, "/dev", "nvidia*", visit_device);
    if (asked->source->health != WM_HEALTH_ABSENT)
        return;

    if (has_nvidia_module(asked->config->procfs))
        add(asked,
            "the kernel has NVIDIA's driver, but its library libnvidia-ml.so.1 is not "
            "here, as in a container that was started without the GPUs",
            "docker run --gpus all ...");
    else if (has_nvidia_board(asked->config->sysfs))
        add(asked, "an NVIDIA GPU is on the PCI bus, but its driver is not loaded",
            "sudo modprobe nvidia   # after installing it: sudo apt install nvidia-driver");
}

static void advise_tracker(struct asked *asked)
{
    char path[PATH_SIZE], text[32] = "";
    int64_t level = 0;

    if (asked->perf_errno == 0)
        return;
    snprintf(path, sizeof(path), "%.128s/sys/kernel/perf_event_paranoid",
             asked->config->procfs);
    if (wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
        wm_text_i64(text, NULL, &level) && level > 2)
        add(asked,
            "this kernel forbids perf counters to all but root, so that CPU time of "
            "short-lived children may be missed",
            "sudo sysctl kernel.perf_event_paranoid=2");
    else
        add(asked,
            "perf counters are forbidden here, as containers do, so that CPU time of "
            "short-lived children may be missed",
            "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
}

static const struct {
    const char *source;
    void (*advise)(struct asked *asked);
} advisers[] = {
    { "hwmon", advise_hwmon },
    { "nvml", advise_nvml },
    { "drm", advise_drm },
    { "tracker", advise_tracker },
};

void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice)
{
    struct asked asked = { source, config, perf_errno, ret_advice };

    ret_advice->count = 0;
    for (size_t i = 0; i < sizeof(advisers) / sizeof(advisers[0]); i++) {
        if (strcmp(advisers[i].source, source->name) == 0)
            advisers[i].advise(&asked);
    }
}
