/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_process.c - names, users, parents and ages of processes, from /proc. */
#include "source/gpu/source_gpu_process.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/gpu/source_gpu_ops.h"
#include "source/gpu/source_gpu_sheet.h"
#include "source/source_kernel_text.h"
#include "source/tree/source_pidns.h"

enum {
    USER_COUNT = 64,        /* users whose names are remembered */
    COMM_LENGTH = 15,       /* the kernel cuts a program's name to it */
    STAT_SIZE = 1024,       /* of PID/stat */
    STATUS_SIZE = 8192,     /* of PID/status, with hundreds of groups */
    CMDLINE_SIZE = 4096,    /* of the part of PID/cmdline that matters */
    MACHINE_SIZE = 1 << 20, /* of /proc/stat, with a number per interrupt */
    PASSWD_SIZE = 16384,
    PATH_SIZE = 64,
};

struct user {
    uid_t uid;
    char name[WM_GPU_NAME_SIZE];
};

struct wm_gpu_people {
    struct wm_pidns *pidns;
    double boot_s; /* since 1970; 0: not known */
    double tick_s; /* of the times in PID/stat */
    struct user users[USER_COUNT];
    size_t user_count;
};

/* It has ended, or is hidden: by the mount's hidepid, or in another pid namespace. */
static const char absent[] = "not in /proc";
static const char forbidden[] = "the process may not be read";
static const char unreadable[] = "what the kernel says of the process cannot be read";

/* Why a file of a process could not be read, by the negative errno value. */
static struct wm_gpu_value reason_of(ssize_t status)
{
    switch (-status) {
    case ENOENT:
    case ESRCH:
        return wm_gpu_missing(WM_READING_FAILED, absent);
    case EACCES:
    case EPERM:
        return wm_gpu_missing(WM_READING_DENIED, forbidden);
    default:
        return wm_gpu_missing(WM_READING_FAILED, unreadable);
    }
}

static void set_text(struct wm_gpu_who *who, enum wm_gpu_process_field field,
                     const char *text)
{
    wm_gpu_clean(who->texts[field], sizeof(who->texts[field]), text);
    who->values[field] =
        (struct wm_gpu_value) { .state = WM_READING_OK, .text = who->texts[field] };
}

/* 0 where /proc/stat does not say it. */
static int read_boot(const char *procfs, double *ret_boot_s, struct wm_error *err)
{
    char path[PATH_MAX];
    char *text = NULL;
    size_t length;
    uint64_t seconds = 0;

    snprintf(path, sizeof(path), "%s/stat", procfs);
    int status = wm_file_slurp(path, MACHINE_SIZE, &text, &length, err);
    if (status == WM_ENOMEM)
        return status;
    if (status < 0 || wm_parse_boot_time(text, &seconds) < 0)
        seconds = 0;
    free(text);
    *ret_boot_s = (double)seconds;
    return WM_OK;
}

int wm_gpu_people_open(const char *procfs, const char *own,
                       struct wm_gpu_people **ret_people, struct wm_error *err)
{
    struct wm_gpu_people *people = calloc(1, sizeof(*people));

    if (!people)
        return wm_fail_memory(err, "GPU processes");
    people->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    int status = read_boot(procfs, &people->boot_s, err);
    if (status == WM_OK)
        status = wm_pidns_open(procfs, own, &people->pidns, err);
    if (status < 0) {
        wm_gpu_people_close(people);
        return status;
    }
    *ret_people = people;
    return WM_OK;
}

void wm_gpu_people_close(struct wm_gpu_people *people)
{
    if (!people)
        return;
    wm_pidns_close(people->pidns);
    free(people);
}

static ssize_t read_of(int dir, pid_t pid, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    return wm_file_read_at(dir, path, text, size);
}

/* WM_OK, or a negative errno value. */
static ssize_t read_stat(int dir, pid_t pid, struct wm_pid_stat *ret_stat)
{
    char text[STAT_SIZE];

    ssize_t length = read_of(dir, pid, "stat", text, sizeof(text));
    if (length < 0)
        return length;
    return wm_parse_pid_stat(text, ret_stat) < 0 ? -EIO : WM_OK;
}

/* What the program was started as, if the kernel's name is the beginning of it:
 * the first argument, or the second where an interpreter runs a script. */
static const char *uncut_name(int dir, pid_t pid, const char *comm, char *text, size_t size)
{
    ssize_t length = read_of(dir, pid, "cmdline", text, size);
    const char *word = text;

    for (int i = 0; i < 2 && word < text + length; i++) {
        const char *slash = strrchr(word, '/');
        const char *base = slash ? slash + 1 : word;
        if (strncmp(base, comm, strlen(comm)) == 0)
            return base;
        word += strlen(word) + 1;
    }
    return comm;
}

static void set_name(struct wm_gpu_who *who, enum wm_gpu_process_field field, int dir,
                     const struct wm_pid_stat *stat)
{
    char cmdline[CMDLINE_SIZE];

    if (strlen(stat->comm) < COMM_LENGTH)
        set_text(who, field, stat->comm);
    else
        set_text(who, field,
                 uncut_name(dir, stat->pid, stat->comm, cmdline, sizeof(cmdline)));
}

static void find_user(struct wm_gpu_people *people, uid_t uid, struct wm_gpu_who *who)
{
    char text[PASSWD_SIZE], number[16];
    struct passwd entry, *found = NULL;

    for (size_t i = 0; i < people->user_count; i++) {
        if (people->users[i].uid == uid) {
            set_text(who, WM_GPU_PROCESS_USER, people->users[i].name);
            return;
        }
    }

    snprintf(number, sizeof(number), "%u", (unsigned)uid);
    if (getpwuid_r(uid, &entry, text, sizeof(text), &found) != 0)
        found = NULL;
    set_text(who, WM_GPU_PROCESS_USER, found ? found->pw_name : number);
    if (people->user_count < USER_COUNT) {
        struct user *kept = &people->users[people->user_count++];
        kept->uid = uid;
        memcpy(kept->name, who->texts[WM_GPU_PROCESS_USER], sizeof(kept->name));
    }
}

static void set_user(struct wm_gpu_people *people, int dir, pid_t pid,
                     struct wm_gpu_who *who)
{
    char text[STATUS_SIZE];
    uint64_t uid;
    size_t count;

    ssize_t length = read_of(dir, pid, "status", text, sizeof(text));
    if (length < 0)
        who->values[WM_GPU_PROCESS_USER] = reason_of(length);
    else if (wm_parse_status_numbers(text, "Uid:", &uid, 1, &count) < 0 || uid > UINT32_MAX)
        who->values[WM_GPU_PROCESS_USER] = reason_of(-EIO);
    else
        find_user(people, (uid_t)uid, who);
}

static void set_parent(const struct wm_pidns_process *process,
                       const struct wm_pid_stat *stat, struct wm_gpu_who *who)
{
    struct wm_gpu_value *pid = &who->values[WM_GPU_PROCESS_PARENT_PID];
    struct wm_gpu_value *name = &who->values[WM_GPU_PROCESS_PARENT_NAME];
    struct wm_pid_stat parent;

    if (stat->ppid == 0) {
        *pid = *name = wm_gpu_missing(WM_READING_UNSUPPORTED,
                                      "it has no parent in this pid namespace");
        return;
    }
    *pid = process->ours == process->there
               ? wm_gpu_number(stat->ppid)
               : wm_gpu_missing(WM_READING_UNSUPPORTED,
                                "its number is one of another pid namespace");
    ssize_t status = read_stat(process->dir, stat->ppid, &parent);
    if (status < 0)
        *name = reason_of(status);
    else
        set_name(who, WM_GPU_PROCESS_PARENT_NAME, process->dir, &parent);
}

void wm_gpu_people_find(struct wm_gpu_people *people, pid_t told,
                        struct wm_gpu_who *ret_who)
{
    struct wm_gpu_value *values = ret_who->values;
    struct wm_pidns_process process;
    struct wm_pid_stat stat;

    wm_pidns_find(people->pidns, told, &process);
    struct wm_gpu_value reason = wm_gpu_missing(WM_READING_UNSUPPORTED, process.why);
    values[WM_GPU_PROCESS_PID] = process.ours > 0 ? wm_gpu_number(process.ours) : reason;
    ssize_t status =
        process.dir < 0 ? -ENOENT : read_stat(process.dir, process.there, &stat);
    if (status < 0) {
        for (size_t i = WM_GPU_PROCESS_PID + 1; i < WM_GPU_WHO_FIELDS; i++)
            values[i] = process.dir < 0 ? reason : reason_of(status);
        return;
    }
    set_name(ret_who, WM_GPU_PROCESS_NAME, process.dir, &stat);
    set_user(people, process.dir, process.there, ret_who);
    set_parent(&process, &stat, ret_who);
    values[WM_GPU_PROCESS_CREATE_TIME] =
        people->boot_s > 0
            ? wm_gpu_number(people->boot_s + (double)stat.start_time * people->tick_s)
            : wm_gpu_missing(WM_READING_FAILED,
                             "/proc/stat does not say when the machine was started");
}
