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

/* Workers of a pool are children or grandchildren; the rest are shells. */
enum { ANCESTORS = 8 };

static pid_t ancestors[ANCESTORS];  /* the parent first */
static size_t ancestor_count;       /* 0: not read yet */
static _Atomic int64_t searched_ns; /* by the coarse clock */

/* Where inboxes are mostly made, too. */
static const char *folder(void)
{
    const char *memory = "/dev/shm";

    return access(memory, W_OK | X_OK) == 0 ? memory : wm_env_trusted("TMPDIR", "/tmp");
}

static bool name_link(char path[WM_RING_PATH_SIZE], pid_t pid)
{
    int length = snprintf(path, WM_RING_PATH_SIZE, "%s/" WM_INBOX_PREFIX "%lu-of-%d",
                          folder(), (unsigned long)geteuid(), (int)pid);

    return length > 0 && length < WM_RING_PATH_SIZE;
}

void wm_region_link_set(const char *path)
{
    char link[WM_RING_PATH_SIZE];

    if (!name_link(link, getpid()))
        return;
    unlink(link);
    if (!path)
        return;
    int status = symlink(path, link);
    (void)status; /* processes that began earlier do not find the inbox then */
}

/* 0: it has none in this namespace, or is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[512];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return 0;
    /* "pid (name) state parent ..."; a name may have parentheses in it. */
    const char *end = strrchr(text, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

static void read_ancestors(void)
{
    pid_t pid = getppid();

    ancestor_count = 0;
    do {
        ancestors[ancestor_count++] = pid;
        pid = pid > 0 ? parent_of(pid) : 0;
    } while (pid > 0 && ancestor_count < ANCESTORS);
}

static bool is_ancestor(pid_t pid)
{
    for (size_t i = 0; i < ancestor_count; i++)
        if (ancestors[i] == pid)
            return true;
    return false;
}

/* Others may make links of that name in a folder that all may write to. */
static bool read_link(pid_t pid, char path[WM_FOLDER_SIZE])
{
    char link[WM_RING_PATH_SIZE];
    struct stat info;

    if (!name_link(link, pid))
        return false;
    ssize_t length = readlink(link, path, WM_FOLDER_SIZE);
    if (length <= 0 || length == WM_FOLDER_SIZE)
        return false;
    path[length] = '\0';
    return lstat(link, &info) == 0 && info.st_uid == geteuid();
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
    if (ancestor_count == 0 || ancestors[0] != getppid())
        read_ancestors();
    for (size_t i = 0; i < ancestor_count; i++) {
        pid_t pid = ancestors[i];
        if (!read_link(pid, path))
            continue;
        /* An ancestor may have ended, and its number be another process's. */
        read_ancestors();
        return is_ancestor(pid);
    }
    return false;
}

void wm_region_link_forget(void)
{
    ancestor_count = 0;
}
