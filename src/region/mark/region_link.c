/* SPDX-License-Identifier: Apache-2.0 */
/* region_link.c - see region_link.h. */
#include "region/mark/region_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"

/* Workers of a pool are children or grandchildren; the rest are shells. */
enum { ANCESTORS = 8 };

/* A process by its number and the time of its start, which no other one has. */
struct process {
    pid_t pid;
    unsigned long long start;
};

static struct process ancestors[ANCESTORS]; /* the parent first */
static size_t ancestor_count;               /* 0: not read yet */
static _Atomic int64_t searched_ns;         /* by the coarse clock */
static uint64_t pid_namespace;              /* 0: not read yet */

/* Containers may share the folder, and have processes of the same number. False: unknown,
 * and then there are no links. */
static bool read_pid_namespace(void)
{
    char text[64];

    if (pid_namespace != 0)
        return true;
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *number = strchr(text, '['); /* "pid:[4026531836]" */
    return number && wm_text_u64(number + 1, NULL, &pid_namespace);
}

static bool name_link(char path[WM_RING_PATH_SIZE], const struct process *process)
{
    if (!read_pid_namespace())
        return false;
    int length = snprintf(path, WM_RING_PATH_SIZE,
                          WM_MEMORY_FOLDER "/" WM_INBOX_PREFIX "%lu-of-%d-%llu-%llu",
                          (unsigned long)geteuid(), (int)process->pid, process->start,
                          (unsigned long long)pid_namespace);
    return length > 0 && length < WM_RING_PATH_SIZE;
}

/* The process's start and its parent; false: it is none in this namespace, or is gone. */
static bool read_process(pid_t pid, struct process *ret_process, pid_t *ret_parent)
{
    enum { FIRST = 3, PARENT, START = 22 }; /* numbers of fields, as in proc(5) */
    char path[32], text[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid <= 0 || wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return false;
    const char *at = strrchr(text, ')'); /* a name may have parentheses and blanks in it */
    *ret_process = (struct process) { .pid = pid };
    for (int field = FIRST; at && field <= START; field++) {
        at = strchr(at + 1, ' ');
        if (at && field == PARENT)
            *ret_parent = (pid_t)strtol(at, NULL, 10);
        if (at && field == START)
            ret_process->start = strtoull(at, NULL, 10);
    }
    return at != NULL;
}

void wm_region_link_set(const char *path)
{
    char link[WM_RING_PATH_SIZE];
    struct process own;
    pid_t parent;

    if (!read_process(getpid(), &own, &parent) || !name_link(link, &own))
        return;
    unlink(link);
    if (!path)
        return;
    int status = symlink(path, link);
    (void)status; /* processes that began earlier do not find the inbox then */
}

static void read_ancestors(void)
{
    pid_t pid = getppid();

    ancestor_count = 0;
    while (ancestor_count < ANCESTORS &&
           read_process(pid, &ancestors[ancestor_count], &pid))
        ancestor_count++;
}

/* Others may make links of that name in a folder that all may write to. */
static bool read_link(const struct process *process, char path[WM_FOLDER_SIZE])
{
    char link[WM_RING_PATH_SIZE];
    struct stat info;

    if (!name_link(link, process))
        return false;
    int fd = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_ours =
        fstat(fd, &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid == geteuid();
    ssize_t length = is_ours ? readlinkat(fd, "", path, WM_FOLDER_SIZE) : 0;
    close(fd);
    if (length <= 0 || length == WM_FOLDER_SIZE)
        return false;
    path[length] = '\0';
    return true;
}

static int64_t coarse_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * WM_NS_PER_S + now.tv_nsec;
}

bool wm_region_link_is_due(void)
{
    return coarse_now() != atomic_load_explicit(&searched_ns, memory_order_relaxed);
}

bool wm_region_link_find(char path[WM_FOLDER_SIZE])
{
    atomic_store(&searched_ns, coarse_now());
    if (ancestor_count == 0 || ancestors[0].pid != getppid())
        read_ancestors();
    for (size_t i = 0; i < ancestor_count; i++) {
        if (read_link(&ancestors[i], path))
            return true;
    }
    return false;
}

void wm_region_link_forget(void)
{
    ancestor_count = 0;
    pid_namespace = 0;
}
