/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_run.h - what a recording knows of its run besides the ticks.
 *
 * A struct wm_run is complete when the recording is opened, a struct wm_result
 * when it is finished; a recording whose writer was killed has no result. Both
 * become JSON text and come back, so that every format stores them alike.
 */
#ifndef WM_RECORD_RUN_H
#define WM_RECORD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "base/text/base_number.h"
#include "record/run/record_member.h"
#include "record/run/record_metrics.h"
#include "wattmeter/source.h"

/* Rises when a reader of before would misread what is written now. Tables, columns and keys
 * that such a reader does not miss can be added without. */
#define WM_RECORDING_FORMAT 1

/* One source of the session: there, or why not. */
struct wm_source_status {
    char *name;
    bool available;
    char *detail; /* what was read, or why there is nothing to read; may be NULL */
    char *denied; /* why this user may not read a part of an available source; or NULL */
    char *remedy; /* the command that gives access to what is denied; or NULL */
};

/* A machine that is busier than that is not idle. */
#define WM_BASELINE_MOST_BUSY 0.05

/* What a device took with nothing to do, measured before the run. */
struct wm_baseline {
    char *source;
    char *device; /* as in its channels */
    double watts;
    double uncertainty; /* W, random, at k = 2; 0: not known */
    double busy;        /* how busy its CPUs or GPU were then, 0 to 1 */
    bool is_refused; /* that was too much to be called idle, and nobody said to take it */
};

/* All strings and arrays belong to the struct; any may be NULL and empty. */
struct wm_run {
    char *id;      /* random UUID */
    char *version; /* of wattmeter */
    char *mode;    /* "run", "attach", "self" */
    char *host;
    char *boot_id;
    char *kernel;    /* "Linux 6.1.0-28-amd64 x86_64" */
    char *cpu_model; /* "AMD EPYC 7763 64-Core Processor" */
    char **command;  /* argv of the target */
    size_t command_count;
    struct wm_pair *notes; /* the user's */
    size_t note_count;
    struct wm_pair *environment; /* Slurm, MPI, torchrun and visible-device variables */
    size_t environment_count;
    struct wm_source_status *sources;
    size_t source_count;
    struct wm_baseline *baselines;
    size_t baseline_count;
    double baseline_seconds; /* 0: none was measured */
    char *gpu_remark;        /* on the choice of GPUs, for people */
    char *regions_remark;    /* why there are none, for people */
    pid_t pid;               /* of the target */
    pid_t writer_pid;        /* of who records it; 0: not known */
    uint64_t writer_start;   /* in clock ticks since boot, as /proc/PID/stat has it */
    int64_t anchor_ns;       /* CLOCK_MONOTONIC and the wall clock, read together */
    int64_t anchor_unix_ns;
    int64_t interval_ns;
    int core_count;
    double expected_cores;
    int gpu_count;          /* all GPUs of the machine */
    int expected_gpu_count; /* the chosen ones */
    bool gpus_unknown;      /* a driver is in trouble, or a GPU: there are more */
};

/* Peaks of one process, as the ticks saw them. */
struct wm_process_peak {
    pid_t pid;
    pid_t parent;
    char name[64];               /* comm, as bytes; made valid UTF-8 on writing */
    struct wm_known cpu_seconds; /* up to the last tick that saw it */
    struct wm_known max_memory_bytes;
    struct wm_known max_private_bytes;
    int max_threads;
};

/* In bytes; each its own maximum. The total lies in between low and high. */
struct wm_memory_peak {
    struct wm_known total, private_, shared;
    struct wm_known low, high;
};

/* What the kernel counts of processes that have ended: of a command, of its descendants
 * that were waited for, and of its orphans. Only a command that we started has it. */
struct wm_usage {
    struct wm_known user_seconds, system_seconds;
    struct wm_known voluntary_switches, involuntary_switches;
    struct wm_known minor_faults, major_faults;
    struct wm_known read_bytes, written_bytes; /* by system calls, from whatever file */
    struct wm_known storage_read_bytes, storage_written_bytes; /* of that, by a device */
    char note[128];    /* why these are lower bounds; empty if they are exact */
    char io_note[128]; /* why the bytes are not known */
};

/* Each event that can be counted, by perf's name for it. */
#define WM_EVENT_LIST(EVENT)                                                               \
    EVENT(CYCLES, "cycles")                                                                \
    EVENT(REF_CYCLES, "ref-cycles")                                                        \
    EVENT(INSTRUCTIONS, "instructions")                                                    \
    EVENT(BRANCHES, "branches")                                                            \
    EVENT(BRANCH_MISSES, "branch-misses")                                                  \
    EVENT(CACHE_REFERENCES, "cache-references")                                            \
    EVENT(CACHE_MISSES, "cache-misses")                                                    \
    EVENT(L1_LOADS, "L1-dcache-loads")                                                     \
    EVENT(L1_LOAD_MISSES, "L1-dcache-load-misses")                                         \
    EVENT(LLC_LOADS, "LLC-loads")                                                          \
    EVENT(LLC_LOAD_MISSES, "LLC-load-misses")                                              \
    EVENT(DTLB_LOAD_MISSES, "dTLB-load-misses")                                            \
    EVENT(CPU_MIGRATIONS, "cpu-migrations")

enum wm_event {
#define EVENT(id, name) WM_EVENT_##id,
    WM_EVENT_LIST(EVENT)
#undef EVENT
        WM_EVENTS,
};

const char *wm_event_name(size_t event);

struct wm_result {
    int64_t end_ns; /* CLOCK_MONOTONIC when the target ended or tracking stopped */
    struct wm_known exit_status; /* of one that was not killed */
    int exit_signal;             /* 0: none */
    bool is_broken_off;          /* as who tracked it says: it is no repeat of others */
    struct wm_known cpu_total_seconds, cpu_main_seconds, cpu_descendants_seconds;
    char cpu_method[160]; /* how cpu_* were had: "perf task-clock, inherited" */
    char cpu_note[128];   /* why cpu_* are lower bounds; empty if they are exact */
    struct wm_usage usage;
    struct wm_known events[WM_EVENTS];
    char events_note[256]; /* why some that were asked for are missing, or less certain */
    char memory_note[192]; /* what is uncertain about memory; empty if nothing */
    char survivors_note[256];             /* of what runs on when the target has ended */
    struct wm_known peak_rss_bytes;       /* the kernel's high-water mark of one process */
    struct wm_known peak_rss_bound_bytes; /* no process was larger */
    bool peak_rss_is_main; /* the process of peak_rss_bytes was the main one */

    /* Of runs back to back, without what is between them. */
    struct wm_known run_seconds;      /* the mean */
    struct wm_known run_memory_bytes; /* the highest */

    /* The highest that was seen at all, between ticks, too. */
    struct wm_memory_peak main_peak, descendants_peak, tree_peak;
    uint64_t ticks, late_ticks, missed_ticks;
    struct wm_known tool_cpu_seconds; /* late and missed ticks are known where it is */
    struct wm_known tool_max_rss_bytes;
    char recording_trouble[256];       /* empty if the recording is whole */
    uint64_t lost_ticks;               /* ticks that are not in the recording */
    uint64_t lost_regions;             /* calls of regions that are not in the recording */
    uint64_t stray_regions;            /* ends of regions that nothing had begun */
    uint64_t dropped_regions;          /* events that had no room, or the note says why */
    char regions_note[192];            /* why more are missing; empty if none are */
    struct wm_process_peak *processes; /* top by CPU time first */
    size_t process_count;              /* in `processes` */
    uint64_t processes_seen;           /* all that were ever in the tree */
    struct wm_metrics metrics;
};

void wm_run_release(struct wm_run *run);
void wm_result_release(struct wm_result *result);

/* Copies that need their release; `ret_copy` is written on success only. */
int wm_run_copy(const struct wm_run *run, struct wm_run *ret_copy, struct wm_error *err);
int wm_result_copy(const struct wm_result *result, struct wm_result *ret_copy,
                   struct wm_error *err);

/* Whether the run attached to process 1, whose tree has all processes. */
#define WM_RUN_OF_ALL "all processes"
bool wm_run_is_of_all(const struct wm_run *run);

/* Whether there are GPUs, or nobody knows: a driver of theirs is in trouble. */
bool wm_run_may_have_gpus(const struct wm_run *run);

/* Adds a note, or gives the one with this key another value; one that is long is cut
 * off. WM_ENOMEM is the only failure. */
int wm_run_set_note(struct wm_run *run, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What the run says of that source; NULL: nothing. */
const struct wm_source_status *wm_run_source(const struct wm_run *run, const char *name);

/* Adds a source of the session. `detail` may be NULL; WM_ENOMEM is the only failure. */
int wm_run_add_source(struct wm_run *run, const char *name, bool available,
                      const char *detail, struct wm_error *err);

/* The arguments of the target separated by blanks, for people, as valid UTF-8; the
 * caller's to free. NULL when out of memory. */
char *wm_run_command_line(const struct wm_run *run);

/* Compact JSON text, the caller's to free. */
int wm_run_to_json(const struct wm_run *run, char **ret_text, struct wm_error *err);
int wm_result_to_json(const struct wm_result *result, char **ret_text,
                      struct wm_error *err);

/* `ret_...` is written on success only and needs its release. What is missing
 * or null in the text comes back as unknown, or zero. */
int wm_run_from_json(const char *text, struct wm_run *ret_run, struct wm_error *err);
int wm_result_from_json(const char *text, struct wm_result *ret_result,
                        struct wm_error *err);

#endif
