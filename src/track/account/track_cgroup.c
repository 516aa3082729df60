/* SPDX-License-Identifier: Apache-2.0 */
/* track_cgroup.c - finding the cgroup2 tree, making a group in it, reading it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "track/account/track_account.h"

struct wm_cgroup {
    char parent[512];
    char path[576];
    int procs_fd;
    int stat_fd;
};

/* Where systemd and all others mount it, alone or beside version 1; NULL: neither. Alone
 * comes first: then "unified" may be the name of a group. */
static const char *find_mount(void)
{
    if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
        return "/sys/fs/cgroup";
    if (access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0)
        return "/sys/fs/cgroup/unified";
    return NULL;
}

/* Our own group: the line "0::/path" of /proc/self/cgroup. */
static bool find_own_group(char *path, size_t size)
{
    char text[4096];

    if (wm_file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) <= 0)
        return false;
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line)
        return false;
    line += line[0] == '\n' ? 4 : 3;
    return snprintf(path, size, "%.*s", (int)strcspn(line, "\n"), line) < (int)size;
}

static int open_in(const char *dir, const char *name, int flags)
{
    char path[640];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return open(path, flags | O_CLOEXEC);
}

struct wm_cgroup *wm_cgroup_new(void)
{
    const char *mount = find_mount();
    char group[256];

    if (!mount || !find_own_group(group, sizeof(group)))
        return NULL;

    struct wm_cgroup *cgroup = calloc(1, sizeof(*cgroup));
    if (!cgroup)
        return NULL;
    snprintf(cgroup->parent, sizeof(cgroup->parent), "%s%s", mount,
             strcmp(group, "/") == 0 ? "" : group);
    snprintf(cgroup->path, sizeof(cgroup->path), "%s/wattmeter-%d", cgroup->parent,
             (int)getpid());
    cgroup->procs_fd = cgroup->stat_fd = -1;
    if (mkdir(cgroup->path, 0755) != 0) {
        free(cgroup);
        return NULL;
    }

    cgroup->procs_fd = open_in(cgroup->path, "cgroup.procs", O_WRONLY);
    cgroup->stat_fd = open_in(cgroup->path, "cpu.stat", O_RDONLY);
    int64_t used_ns;
    if (cgroup->procs_fd < 0 || cgroup->stat_fd < 0 ||
        !wm_cgroup_cpu_ns(cgroup, &used_ns)) {
        wm_cgroup_free(cgroup);
        return NULL;
    }
    return cgroup;
}

bool wm_cgroup_enter(struct wm_cgroup *cgroup, pid_t pid)
{
    return dprintf(cgroup->procs_fd, "%d", (int)pid) > 0;
}

bool wm_cgroup_cpu_ns(const struct wm_cgroup *cgroup, int64_t *ret_ns)
{
    char text[2048];
    uint64_t usec;

    if (wm_file_reread(cgroup->stat_fd, text, sizeof(text)) <= 0)
        return false;
    const char *field = strstr(text, "usage_usec ");
    if (!field || !wm_text_u64(field + strlen("usage_usec "), NULL, &usec) ||
        usec > INT64_MAX / 1000)
        return false;
    *ret_ns = (int64_t)usec * 1000;
    return true;
}

/* A group with processes cannot be removed. What outlives the command, its
 * daemons, goes back where it would have been without us; a page of the list at a time. */
static void move_out(const struct wm_cgroup *cgroup)
{
    char path[640], text[4096];
    int parent_fd = open_in(cgroup->parent, "cgroup.procs", O_WRONLY);

    snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup->path);
    for (int page = 0; parent_fd >= 0 && page < 256; page++) {
        bool moved = false;
        ssize_t length = wm_file_read_at(AT_FDCWD, path, text, sizeof(text));
        for (char *line = text; length > 0 && *line;) {
            size_t digits = strcspn(line, "\n");
            moved |= write(parent_fd, line, digits) > 0; /* it may just have ended */
            line += digits + (line[digits] == '\n');
        }
        if (!moved)
            break;
    }
    if (parent_fd >= 0)
        close(parent_fd);
}

void wm_cgroup_free(struct wm_cgroup *cgroup)
{
    if (!cgroup)
        return;
    if (cgroup->procs_fd >= 0)
        close(cgroup->procs_fd);
    if (cgroup->stat_fd >= 0)
        close(cgroup->stat_fd);
    if (rmdir(cgroup->path) != 0) {
        move_out(cgroup);
        rmdir(cgroup->path);
    }
    free(cgroup);
}
