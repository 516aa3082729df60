/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_advice.h - a short list of what keeps a source from being read here, each with
 * the command that clears it: permissions to files, by a capability, to perf counters,
 * and whatever else a source knows of itself.
 */
#ifndef WM_SOURCE_ADVICE_H
#define WM_SOURCE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "wattmeter/source.h"

/* A problem and its fix. */
struct wm_doctor_advice {
    const char *problem;
    const char *command; /* fixes it; NULL if no command does */
};

enum {
    WM_ADVICE_MAX = 8, /* for one source; more would not be read */
    WM_ADVICE_SIZE = 512,
};

/* All zero is ready to begin. */
struct wm_advice {
    struct wm_doctor_advice list[WM_ADVICE_MAX];
    struct {
        char problem[WM_ADVICE_SIZE], command[WM_ADVICE_SIZE];
    } texts[WM_ADVICE_MAX];
    size_t count;
};

/* `command` may be NULL: there is none. In it every %s, and nothing else is
 * converted, stands for one word of the shell, which is quoted where that is
 * needed. A command that does not come out whole is left out, and one that has been
 * given before is not given again, whatever else it solves. */
void wm_advice_add(struct wm_advice *advice, const char *problem, const char *command, ...)
    __attribute__((format(printf, 3, 4)));

/* Files that a source cannot do without. */
enum wm_source_file_kind {
    WM_SOURCE_FILE,    /* below sysfs, for everybody to read */
    WM_SOURCE_COUNTER, /* a file below sysfs that reveals what others are doing */
    WM_SOURCE_DEVICE,  /* below /dev, to read and write */
};

struct wm_source_file {
    enum wm_source_file_kind kind;
    const char *pattern; /* of the shell; NULL ends a list */
};

/* For each file that fits the pattern (it and `sysfs` may have links in them), and is there
 * but refuses us: how to get at it. A WM_SOURCE_COUNTER is opened to this user alone, or to
 * the group that may read it already. */
void wm_permission_files(struct wm_advice *advice, const char *sysfs,
                         const struct wm_source_file *file);

/* Whether any file that fits the pattern below the folder `root` is there and refuses to be
 * read. */
bool wm_permission_is_refused(const char *root, const char *pattern);

/* The name of our user or group, or its number where it has none that fits. */
#define WM_PERMISSION_NAME_SIZE 64
void wm_permission_user(char *name, size_t size);
void wm_permission_group(char *name, size_t size);

/* The program that we are; empty where its path is too long: the beginning of a path is
 * another path. */
void wm_permission_program(char *path, size_t size);

/* Whether the program is the command, and no interpreter that has loaded the
 * library. */
bool wm_permission_is_ours(const char *program);

/* `problem`, which is gone when `program` has the capability `name`. The command gives the
 * program to this user's group alone, as everybody who may run it has the capability then.
 * There is a command for our own program only: an interpreter that has loaded the library
 * would give the capability to every script. */
void wm_permission_capability(struct wm_advice *advice, const char *problem,
                              const char *name, const char *program);

/* Whether this kernel says that perf counters are for root alone, as far as they need
 * a kernel.perf_event_paranoid of `level` or less. */
bool wm_permission_is_paranoid(const char *procfs, int level);

/* How a source went, and what to say of that. */
struct wm_source_case {
    const struct wm_source_config *config; /* no path in it is NULL, but for `nvml` */
    bool is_absent;                        /* there was nothing that it could open, */
    bool is_denied;                        /* all that there is refused this user, */
    bool lacks_some;                       /* or some of it did, or all */
    struct wm_advice *advice;
};

/* What keeps the source called so from being read: first its files, then what it adds.
 * Looks and changes nothing. */
void wm_source_advise(const char *name, const struct wm_source_case *asked);

/* What opens the source called so to this user, after it was denied, for a shell; false
 * where that is not known. */
bool wm_source_remedy(const char *name, char command[WM_ADVICE_SIZE]);

#endif
