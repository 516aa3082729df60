/* SPDX-License-Identifier: Apache-2.0 */
/* source_pidns.c - pids from one namespace to another, by what /proc says. */
#include "source/tree/source_pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/source_kernel_text.h"

enum {
    LEVEL_MAX = 33, /* the kernel nests 32 namespaces in the first */
    CACHE_COUNT = 256,
    STAT_SIZE = 1024,
    STATUS_SIZE = 8192, /* there may be hundreds of groups in it */
    PATH_SIZE = 64,
};

static const char other_namespace[] =
    "the driver reports the number of another pid namespace";
static const char outside[] = "the process is in another pid namespace";
static const char two_meanings[] =
    "the driver's number means one process here and another one outside of this pid "
    "namespace";
static const char unreadable[] = "the process may not be read in the outer /proc";
static const char no_number[] = "the driver reports no number of it";

/* What a /proc is to us. */
enum relation {
    RELATION_UNKNOWN,  /* of a namespace that we are not in */
    RELATION_OURS,     /* its numbers are those of our system calls */
    RELATION_OUTER,    /* of one around ours */
    RELATION_CAPTURED, /* files that only look like it */
};

struct remembered {
    pid_t told;
    uint64_t start_time; /* in ticks; with the number it names one process */
    struct wm_pidns_process process;
};

struct wm_pidns {
    int procfs, own; /* -1: not there */
    enum relation relation, own_relation;
    size_t depth;       /* of our namespace, counted from that of an outer procfs: from 2 */
    bool is_initial;    /* ours is the first namespace, which drivers count in */
    char namespace[64]; /* "pid:[4026531836]"; empty where unknown */
    struct remembered cache[CACHE_COUNT];
};

static ssize_t read_of(int dir, const char *pid, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", pid, name);
    return wm_file_read_at(dir, path, text, size);
}

/* The numbers of a process in all namespaces from that of the /proc inward; how
 * many, or 0 where that cannot be known. */
static size_t read_numbers(int dir, const char *pid, pid_t numbers[LEVEL_MAX])
{
    char text[STATUS_SIZE];
    uint64_t values[LEVEL_MAX];
    size_t count = 0;

    if (read_of(dir, pid, "status", text, sizeof(text)) <= 0)
        return 0;
    int status = wm_parse_status_numbers(text, "NSpid:", values, LEVEL_MAX, &count);
    if (status == WM_ENOENT) /* before Linux 4.1 */
        status = wm_parse_status_numbers(text, "Pid:", values, LEVEL_MAX, &count);
    if (status < 0 || count > LEVEL_MAX)
        return 0;

    for (size_t i = 0; i < count; i++) {
        if (values[i] == 0 || values[i] > INT32_MAX)
            return 0;
        numbers[i] = (pid_t)values[i];
    }
    return count;
}

static enum relation relation_of(int dir, size_t *ret_depth)
{
    pid_t self[LEVEL_MAX];
    struct statfs info;

    /* The last number is that of the innermost namespace, and so ours; if it is
     * not, somebody else's "self" has been captured. */
    size_t depth = dir < 0 ? 0 : read_numbers(dir, "self", self);
    if (depth > 0 && self[depth - 1] == getpid()) {
        *ret_depth = depth;
        return depth == 1 ? RELATION_OURS : RELATION_OUTER;
    }
    if (dir >= 0 && fstatfs(dir, &info) == 0 && info.f_type != PROC_SUPER_MAGIC)
        return RELATION_CAPTURED;
    return RELATION_UNKNOWN;
}

/* False where the link may not be read, which takes the right to trace. */
static bool read_namespace(int dir, const char *pid, char *name, size_t size)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%s/ns/pid", pid);
    ssize_t length = readlinkat(dir, path, name, size - 1);
    name[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* PROC_PID_INIT_INO of the kernel. */
static const char initial[] = "pid:[4026531836]";

bool wm_pidns_is_inner(void)
{
    char name[64] = "";

    return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 &&
           strcmp(name, initial) != 0;
}

int wm_pidns_open(const char *procfs, const char *own, struct wm_pidns **ret_pidns,
                  struct wm_error *err)
{
    struct wm_pidns *pidns = calloc(1, sizeof(*pidns));
    size_t own_depth = 0;

    if (!pidns)
        return wm_fail_memory(err, "pid namespaces");
    pidns->procfs = open(procfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    pidns->own = open(own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    pidns->relation = relation_of(pidns->procfs, &pidns->depth);
    pidns->own_relation = relation_of(pidns->own, &own_depth);
    pidns->is_initial =
        read_namespace(pidns->own, "self", pidns->namespace, sizeof(pidns->namespace)) &&
        strcmp(pidns->namespace, initial) == 0;
    *ret_pidns = pidns;
    return WM_OK;
}

void wm_pidns_close(struct wm_pidns *pidns)
{
    if (!pidns)
        return;
    if (pidns->procfs >= 0)
        close(pidns->procfs);
    if (pidns->own >= 0)
        close(pidns->own);
    free(pidns);
}

static int read_start_time(int dir, const char *pid, uint64_t *ret_ticks)
{
    char text[STAT_SIZE];
    struct wm_pid_stat stat;

    ssize_t length = read_of(dir, pid, "stat", text, sizeof(text));
    if (length < 0)
        return (int)length;
    if (wm_parse_pid_stat(text, &stat) < 0)
        return -EIO;
    *ret_ticks = stat.start_time;
    return 0;
}

/* Whether the process that is `told` outside is `ours` here. A container next to
 * ours may have a process of the same number, begun in the same tick. */
static bool is_same_process(const struct wm_pidns *pidns, const char *told,
                            uint64_t start_time, const pid_t *numbers, size_t count)
{
    char there[64], here[64], ours[16];
    pid_t numbers_here[LEVEL_MAX];
    uint64_t start_here;

    bool known = read_namespace(pidns->procfs, told, there, sizeof(there));
    if (known && strcmp(there, pidns->namespace) == 0)
        return true;
    if (pidns->own_relation != RELATION_OURS)
        return false;

    snprintf(ours, sizeof(ours), "%d", (int)numbers[0]);
    if (read_start_time(pidns->own, ours, &start_here) < 0 || start_here != start_time)
        return false;
    if (known && read_namespace(pidns->own, ours, here, sizeof(here)))
        return strcmp(there, here) == 0;
    return read_numbers(pidns->own, ours, numbers_here) == count &&
           memcmp(numbers, numbers_here, count * sizeof(*numbers)) == 0;
}

/* /proc has a folder for the number of every thread; drivers mean processes. */
static bool exists_here(const struct wm_pidns *pidns, pid_t pid)
{
    char name[16], text[STATUS_SIZE];
    uint64_t process;
    size_t count;

    snprintf(name, sizeof(name), "%d", (int)pid);
    return pidns->own_relation == RELATION_OURS &&
           read_of(pidns->own, name, "status", text, sizeof(text)) > 0 &&
           wm_parse_status_numbers(text, "Tgid:", &process, 1, &count) == WM_OK &&
           process == (uint64_t)pid;
}

static struct wm_pidns_process look_outside(const struct wm_pidns *pidns, pid_t told,
                                            const char *name, uint64_t start_time)
{
    struct wm_pidns_process process = { .why = unreadable, .dir = -1 };
    pid_t numbers[LEVEL_MAX];

    size_t count = read_numbers(pidns->procfs, name, numbers);
    if (count == 0 || numbers[0] != told)
        return process;

    size_t level = pidns->depth - 1;
    if (count > level &&
        is_same_process(pidns, name, start_time, numbers + level, count - level)) {
        bool readable_here = pidns->own_relation == RELATION_OURS;
        process.answer = WM_PIDNS_OURS;
        process.why = NULL;
        process.ours = numbers[level];
        process.dir = readable_here ? pidns->own : pidns->procfs;
        process.there = readable_here ? numbers[level] : told;
    } else if (exists_here(pidns, told)) {
        process.why = two_meanings;
    } else {
        /* Where our /proc cannot say that it is not there, it may be. */
        bool is_known = count <= level || pidns->own_relation == RELATION_OURS;
        process.answer = is_known ? WM_PIDNS_OUTSIDE : WM_PIDNS_UNKNOWN;
        process.why = is_known ? outside : other_namespace;
        process.dir = pidns->procfs;
        process.there = told;
    }
    return process;
}

/* False where the outer /proc does not know the number. */
static bool find_outside(struct wm_pidns *pidns, pid_t told,
                         struct wm_pidns_process *ret_process)
{
    struct remembered *slot = &pidns->cache[(size_t)told % CACHE_COUNT];
    char name[16];
    uint64_t start_time;

    snprintf(name, sizeof(name), "%d", (int)told);
    int status = read_start_time(pidns->procfs, name, &start_time);
    if (status == -ENOENT || status == -ESRCH)
        return false;
    if (status < 0) {
        *ret_process = (struct wm_pidns_process) { .why = unreadable, .dir = -1 };
        return true;
    }
    if (slot->told != told || slot->start_time != start_time || slot->process.ours == 0) {
        slot->told = told;
        slot->start_time = start_time;
        slot->process = look_outside(pidns, told, name, start_time);
    }
    *ret_process = slot->process;
    return true;
}

void wm_pidns_find(struct wm_pidns *pidns, pid_t told, struct wm_pidns_process *ret_process)
{
    bool is_captured = pidns->relation == RELATION_CAPTURED;
    bool is_certain = is_captured || pidns->is_initial;

    /* An outer /proc decides: it knows all that the driver may mean. */
    if (told > 0 && pidns->relation == RELATION_OUTER &&
        find_outside(pidns, told, ret_process))
        return;

    if (told > 0 && (is_certain || exists_here(pidns, told)))
        *ret_process = (struct wm_pidns_process) {
            .answer = is_certain ? WM_PIDNS_OURS : WM_PIDNS_PERHAPS,
            .ours = told,
            .dir = is_captured ? pidns->procfs : pidns->own,
            .there = told,
        };
    else
        *ret_process = (struct wm_pidns_process) {
            .why = told > 0 ? other_namespace : no_number,
            .dir = -1,
        };
}
