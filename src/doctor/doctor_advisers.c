/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advisers.c - see doctor_advisers.h. Files that a source needs are a line in
 * the first table; what takes more than that is a function and a line in the second. */
#include "doctor/doctor_advisers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "doctor/doctor_permission.h"

enum { PATH_SIZE = 512 };

struct asked {
    const struct wm_doctor_source *source;
    const struct wm_source_config *config;
    int perf_errno;
    struct wm_advice *advice;
};

static bool is_denied(const struct wm_doctor_source *source)
{
    for (size_t i = 0; i < source->channel_count; i++) {
        if (source->channels[i].state == WM_READING_DENIED)
            return true;
    }
    return source->health == WM_HEALTH_DENIED;
}

/* Empty where it is too long: the beginning of a path is another path. */
static void read_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);

    path[length > 0 && (size_t)length < size ? length : 0] = '\0';
}

/* Where no file is in the way it is other people's processes. */
static void advise_drm(const struct asked *asked)
{
    char program[PATH_SIZE];

    if (asked->advice->count > 0 || !is_denied(asked->source))
        return;
    read_program(program, sizeof(program));
    wm_permission_capability(
        asked->advice,
        "the GPU's users belong to others, whose /proc files only root may read",
        "cap_sys_ptrace+ep", program);
}

static bool is_nvidia_board(const char *folder, const char *name)
{
    char path[2 * PATH_SIZE], vendor[16] = "", class[16] = "";

    snprintf(path, sizeof(path), "%s/%s/vendor", folder, name);
    if (wm_file_read_at(AT_FDCWD, path, vendor, sizeof(vendor)) <= 0 ||
        strncmp(vendor, "0x10de", 6) != 0)
        return false;
    snprintf(path, sizeof(path), "%s/%s/class", folder, name);
    return wm_file_read_at(AT_FDCWD, path, class, sizeof(class)) > 0 &&
           strncmp(class, "0x03", 4) == 0;
}

/* Whether a display device of NVIDIA is on the PCI bus. */
static bool has_nvidia_board(const char *sysfs)
{
    struct dirent *entry;
    char folder[PATH_SIZE];
    bool found = false;

    if (snprintf(folder, sizeof(folder), "%s/bus/pci/devices", sysfs) >= PATH_SIZE)
        return false;
    DIR *stream = opendir(folder);
    if (!stream)
        return false;
    while (!found && (entry = readdir(stream)) != NULL)
        found = is_nvidia_board(folder, entry->d_name);
    closedir(stream);
    return found;
}

/* The kernel's part of the driver is there, so it is the library that is
 * missing: this happens in containers that were started without the GPUs. */
static bool has_nvidia_module(const char *procfs)
{
    char path[PATH_SIZE];

    return snprintf(path, sizeof(path), "%s/driver/nvidia/version", procfs) < PATH_SIZE &&
           access(path, F_OK) == 0;
}

static void advise_without_driver(const struct asked *asked)
{
    if (has_nvidia_module(asked->config->procfs))
        wm_advice_add(
            asked->advice,
            "the kernel has NVIDIA's driver, but its library libnvidia-ml.so.1 is not "
            "here, as in a container that was started without the GPUs",
            "docker run --gpus all ...");
    else if (has_nvidia_board(asked->config->sysfs))
        wm_advice_add(
            asked->advice, "an NVIDIA GPU is on the PCI bus, but its driver is not loaded",
            "sudo modprobe nvidia   # after installing it: sudo apt install nvidia-driver");
}

static void advise_nvml(const struct asked *asked)
{
    enum wm_health health = asked->source->health;

    if (health == WM_HEALTH_ABSENT)
        advise_without_driver(asked);
    else if (health == WM_HEALTH_DENIED && asked->advice->count == 0)
        wm_advice_add(
            asked->advice,
            "NVIDIA's driver refuses this user, though no file in /dev does, as in "
            "a container that was started without the GPUs",
            "docker run --gpus all ...");
}

/* A task's own counters are allowed up to level 2. */
static void advise_tracker(const struct asked *asked)
{
    if (asked->perf_errno == 0)
        return;
    if (wm_permission_is_paranoid(asked->config->procfs, 2))
        wm_advice_add(
            asked->advice,
            "this kernel forbids perf counters to all but root, so that CPU time of "
            "short-lived children may be missed",
            "sudo sysctl kernel.perf_event_paranoid=2");
    else
        wm_advice_add(
            asked->advice,
            "perf counters are forbidden here, as containers do, so that CPU time of "
            "short-lived children may be missed",
            "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
}

/* As it is installed beside the program; false where it is not. */
static bool find_script(const char *program, char *path, size_t size)
{
    const char *name = strrchr(program, '/');
    const char *folder = name ? memrchr(program, '/', (size_t)(name - program)) : NULL;

    if (!folder)
        return false;
    int length = snprintf(path, size, "%.*s/share/wattmeter/rapl-permissions.sh",
                          (int)(folder - program), program);
    return length < (int)size && access(path, R_OK) == 0;
}

/* To this user or a group, never to all: who reads the counters closely can learn
 * what others compute. */
static void advise_powercap(const struct asked *asked, const char *program)
{
    static const char problem[] =
        "the energy counters of the CPU in powercap are for root alone, as they tell much "
        "of what is computed; rapl-permissions.sh opens them to a group for good";
    char script[PATH_SIZE], user[WM_PERMISSION_NAME_SIZE];

    if (!wm_permission_is_refused(asked->config->sysfs, "class/powercap/*:*/energy_uj",
                                  R_OK))
        return;
    wm_permission_user(user, sizeof(user));
    if (wm_file_is_same(asked->config->sysfs, "/sys") &&
        find_script(program, script, sizeof(script)))
        wm_advice_add(asked->advice, problem, "sudo sh %s --user %s   # then log in again",
                      script, user);
    wm_advice_add(asked->advice, problem,
                  "sudo chown %s %s/class/powercap/*:*/energy_uj   # until the next start",
                  user, asked->config->sysfs);
}

/* The capability is for one program; the level of the whole kernel, which opens the
 * counters to everybody, is told only where there is no such program. */
static void advise_perf(const struct asked *asked, const char *program)
{
    char pmu[PATH_SIZE];

    if (snprintf(pmu, sizeof(pmu), "%s/bus/event_source/devices/power/type",
                 asked->config->sysfs) >= PATH_SIZE ||
        access(pmu, F_OK) != 0 || !wm_permission_is_paranoid(asked->config->procfs, 0))
        return;
    if (wm_permission_is_ours(program))
        wm_permission_capability(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among them, "
            "for root and programs with CAP_PERFMON",
            "cap_perfmon+ep", program);
    else
        wm_advice_add(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among "
            "them, for root; this opens them to every user",
            "sudo sysctl kernel.perf_event_paranoid=0");
}

static void advise_rapl(const struct asked *asked)
{
    char program[PATH_SIZE];

    if (!is_denied(asked->source))
        return;
    read_program(program, sizeof(program));
    advise_powercap(asked, program);
    advise_perf(asked, program);
    if (asked->advice->count == 0 && wm_permission_is_refused("/dev", "cpu/*/msr", R_OK))
        wm_advice_add(asked->advice,
                      "the energy counters of the CPU can be read by /dev/cpu/*/msr only, "
                      "which is for root and programs with CAP_SYS_RAWIO",
                      NULL);
}

/* Files below sysfs, or below /dev, that a source cannot do without. */
static const struct {
    const char *source;
    enum { IN_SYSFS, COUNTER, DEVICE } kind; /* a counter is not for everybody */
    const char *pattern;
} files[] = {
    { "hwmon", IN_SYSFS, "class/hwmon/hwmon*/temp*_input" },
    { "hwmon", COUNTER, "class/hwmon/hwmon*/energy*_input" },
    { "hwmon", COUNTER, "class/hwmon/hwmon*/power*_input" },
    { "hwmon", COUNTER, "class/hwmon/hwmon*/power*_average" },
    { "hwmon", COUNTER, "class/hwmon/hwmon*/device/power*_average" },
    { "nvml", DEVICE, "nvidia[0-9]*" },
    { "nvml", DEVICE, "nvidiactl" },
    { "drm", IN_SYSFS, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_input" },
    { "drm", IN_SYSFS, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_average" },
};

static void advise_files(const struct asked *asked, size_t place)
{
    const char *sysfs = asked->config->sysfs;

    if (files[place].kind == DEVICE)
        wm_permission_files(asked->advice, "/dev", files[place].pattern, R_OK | W_OK);
    else if (files[place].kind == COUNTER)
        wm_permission_private_files(asked->advice, sysfs, files[place].pattern);
    else
        wm_permission_files(asked->advice, sysfs, files[place].pattern, R_OK);
}

/* Asked after the files. */
static const struct {
    const char *source;
    void (*advise)(const struct asked *asked);
} advisers[] = {
    { "nvml", advise_nvml },
    { "drm", advise_drm },
    { "rapl", advise_rapl },
    { "tracker", advise_tracker },
};

void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice)
{
    const struct asked asked = { source, config, perf_errno, ret_advice };

    ret_advice->count = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].source, source->name) == 0)
            advise_files(&asked, i);
    }
    for (size_t i = 0; i < sizeof(advisers) / sizeof(advisers[0]); i++) {
        if (strcmp(advisers[i].source, source->name) == 0)
            advisers[i].advise(&asked);
    }
}
