/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h - a session of ticks over a process tree.
 *
 *     struct wm_tracker *tracker;
 *     struct wm_report *report;
 *     if (wm_tracker_new(NULL, &tracker, &err) < 0)
 *         return fail(&err);
 *     wm_tracker_add_all(tracker, &err);
 *     if (wm_tracker_start_command(tracker, argv, &err) == WM_OK) {
 *         while (wm_tracker_poll(tracker, -1, &err) == WM_TRACKER_RUNNING)
 *             ;
 *         wm_tracker_stop(tracker, &err);
 *         if (wm_tracker_report(tracker, &report, &err) == WM_OK)
 *             wm_report_print(report, WM_REPORT_TEXT, NULL, stderr, &err);
 *     }
 *     wm_tracker_free(tracker);
 *
 * A tracker is new, then started on one target (a command, a process that runs
 * already, or the calling process), then stopped; wm_tracker_renew() makes it new again.
 * Its ticks come from wm_tracker_poll() in the caller's loop, or from a thread of its own
 * after wm_tracker_run_thread().
 *
 * After a fork() a tracker belongs to the parent; in the child all that may be
 * done with it is wm_tracker_free(), which then does nothing.
 *
 * The rules of source.h hold here too. A tracker changes neither signals nor
 * limits nor the set of children of its process, but for one child of its own
 * that holds the command.
 */
#ifndef WATTMETER_TRACKER_H
#define WATTMETER_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"
#include "wattmeter/report.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_tracker;

/* All zero is right for nearly everybody. */
struct wm_tracker_options {
    int64_t interval_ns;   /* between ticks, 1 ms to 1 h; 0: 100 ms */
    double expected_cores; /* what "hardware percent" divides by; 0: all cores */

    /* Which GPUs of all vendors, as wm_gpu_select() in gpu.h has it: "visible",
     * "0,GPU-7c1f,card1" and so on. NULL: all. */
    const char *gpus;

    /* The process whose environment decides what "visible" means, such as the one
     * that wm_tracker_start_pid() will get; 0, or where that may not be read: the
     * calling process, whose environment a command inherits. */
    pid_t visible_to;

    /* What the CPUs take idle and at full load, "IDLE:MAX" in watts, for the estimate
     * of their energy where nothing measures it. NULL: from what is published of
     * machines like this one. */
    const char *cpu_watts;

    /* How long the machine is measured with nothing to do before a command is started,
     * so that its idle power is known; 0: not at all. Of no use with what runs already. */
    int64_t baseline_ns;

    /* The baseline counts even if the CPUs, or the GPU, were busy for more than 5 % of it.
     */
    bool baseline_anyway;

    /* The calling process does nothing but tracking, so that all it uses is
     * the tracker's own cost. What wm_tracker_add_all() adds is opened by the start
     * function then, while the processes of a command are made. Otherwise the cost
     * is what the tracker's functions use, and its memory is not told apart from the
     * program's. */
    bool own_process;

    /* A command's session ends with the last of the processes that it leaves behind, not
     * with the command. wm_tracker_exit_code() is known when the command has ended, and
     * wm_tracker_stop() ends the waiting. */
    bool wait_all;

    /* The standard input, output and error of a command are /dev/null. */
    bool silent;

    /* wm_tracker_add_all() waits for slow drivers, as before the first of many runs. */
    bool wait_for_drivers;

    /* What perf is to count of a command and of all that it starts: "cycles,instructions".
     * A report has a note on what the machine does not count. NULL: nothing. */
    const char *events;
};

/* The longest baseline_ns. */
#define WM_BASELINE_MAX_NS INT64_C(3600000000000)

/* Limits of interval_ns. */
#define WM_INTERVAL_MIN_NS INT64_C(1000000)
#define WM_INTERVAL_MAX_NS INT64_C(3600000000000)

enum wm_tracker_state {
    WM_TRACKER_NEW,
    WM_TRACKER_RUNNING,
    WM_TRACKER_ENDED, /* the target is gone; wm_tracker_stop() is due */
    WM_TRACKER_STOPPED,
};

/* `options` may be NULL. */
WM_API int wm_tracker_new(const struct wm_tracker_options *options,
                          struct wm_tracker **ret_tracker, struct wm_error *err);

/* A tracker of the machine and its GPUs as gpu_tracker chooses them, sources added: those
 * that options->gpus names, of `brand` ("nvidia", "amd") where that is not NULL; else all
 * of that brand; else NVIDIA's, or where there is none AMD's, or where there is none all
 * that the kernel knows. `said` gets what its user has to be told, a line each; of a
 * failure that is the reason. WM_EINVAL: the choice is wrong; WM_ENODEV: no GPU of the
 * brand. `ret_without_gpus`: it is known that there is no GPU. */
WM_API int wm_tracker_new_as_gpu_tracker(const struct wm_tracker_options *options,
                                         const char *brand, FILE *said,
                                         struct wm_tracker **ret_tracker,
                                         bool *ret_without_gpus);

/* Accepts NULL. Stops a tracker that still runs; a command goes on without it. */
WM_API void wm_tracker_free(struct wm_tracker *tracker);

/* Adds the source called `name`, before the start; WM_EEXIST if it is there
 * already, WM_EINVAL with an `err` that lists what there is when the choice of GPUs
 * is wrong. A source that is not here, or none of whose GPUs was chosen, is noted
 * for the report, and its status returned, which may well be ignored. The process
 * tree is always there and needs no adding. */
WM_API int wm_tracker_add(struct wm_tracker *tracker, const char *name,
                          struct wm_error *err);

/* Adds every source this build knows; the estimate of CPU energy only where no other
 * source has it, or where cpu_watts asks for it. WM_OK, or WM_EINVAL with an `err` that
 * lists what there is when the choice of GPUs is wrong. A GPU's driver that takes longer
 * than a second is not waited for, but with baseline_ns: its GPUs join the session when it
 * has answered, unless that takes 10 s. wm_tracker_add() waits for it. */
WM_API int wm_tracker_add_all(struct wm_tracker *tracker, struct wm_error *err);

/* Keeps a note with the session: shown in reports, kept in the recording. */
WM_API int wm_tracker_note(struct wm_tracker *tracker, const char *key, const char *value,
                           struct wm_error *err);

/* Records the session to `target` (a file, whose suffix names the format, or the
 * URL of a PostgreSQL database: postgresql://...). "gpu-tracker:RAM,GPU_RAM,TIME:FILE",
 * with three of gpu_tracker's units and a FILE that ends in .csv or .sqlite, is a tracking
 * file as gpu_tracker itself writes it. The target is
 * opened by the start function, which fails when that cannot be done; or, for a file, when
 * all drivers have answered: should it fail then, wm_tracker_stop() tells. */
WM_API int wm_tracker_record(struct wm_tracker *tracker, const char *target,
                             enum wm_record_mode mode, struct wm_error *err);

/* Reads the file at `path` when the tracker is stopped, in which the target writes
 * numbers of its own, a JSON object per line with "time" (seconds since 1970, or RFC
 * 3339) and numbers of any name; they are kept with the recording. A note in the report
 * says what of it cannot be used, or that it is missing. */
WM_API int wm_tracker_metrics(struct wm_tracker *tracker, const char *path,
                              struct wm_error *err);

/* Keeps a number of the program with the recording, at this moment: its accuracy, say.
 * Between start and stop, from any thread, and waits for no sample. WM_EINVAL for what is
 * no number, for more than 100,000 of a run or 1,000 names, and where nothing is being
 * measured.
 */
WM_API int wm_tracker_log(struct wm_tracker *tracker, const char *name, double value,
                          struct wm_error *err);

/* Starts `argv` (ends with NULL; argv[0] is looked up in PATH) and the ticks.
 * WM_ENOENT: there is no such command; WM_EACCES: it cannot be executed. On any
 * failure the command has not run, not even begun. Its regions (region.h) are measured
 * too: WATTMETER_REGIONS is set for it, unless that names a file already. */
WM_API int wm_tracker_start_command(struct wm_tracker *tracker, char *const argv[],
                                    struct wm_error *err);

/* The same in another working directory and with another environment, "NAME=value" texts
 * ended by NULL, whose PATH it is looked up in; NULL: the caller's. Both are borrowed for
 * the call. WM_ENOENT or WM_EACCES where the folder cannot be entered. */
WM_API int wm_tracker_start_command_in(struct wm_tracker *tracker, char *const argv[],
                                       const char *folder, char *const environment[],
                                       struct wm_error *err);

/* Most runs of a batch. */
#define WM_TRACKER_BATCH_MAX 100000

/* The same with `count` runs of the command back to back, for one that is shorter than a
 * sensor can see: what all of them took is measured. The first run that fails is the last,
 * unless `goes_on`. */
WM_API int wm_tracker_start_batch(struct wm_tracker *tracker, char *const argv[],
                                  size_t count, bool goes_on, struct wm_error *err);

/* A run of a batch. */
struct wm_tracker_run {
    double time_s;
    double user_s, system_s; /* these and the counts with children that it waited for */
    double max_memory_bytes; /* of its largest process; 0: it cannot be told */
    int exit_code;           /* exit status, or 128 plus the signal that killed it */
    double voluntary_switches, involuntary_switches; /* of context */
    double minor_faults, major_faults;               /* of pages: without a disk, with it */
};

/* The runs that have ended, from 0; a command that is not run in a batch is the only one.
 * WM_ENOENT past the last. */
WM_API int wm_tracker_batch_run(const struct wm_tracker *tracker, size_t index,
                                struct wm_tracker_run *ret_run);

/* Starts on a process that runs already, and on its descendants; without regions. */
WM_API int wm_tracker_start_pid(struct wm_tracker *tracker, pid_t pid,
                                struct wm_error *err);

/* Starts on several of them together, each with its descendants; the first is the one
 * that wm_tracker_pid() and "main" mean. The target ends with the last of all these. */
WM_API int wm_tracker_start_pids(struct wm_tracker *tracker, const pid_t *pids,
                                 size_t count, struct wm_error *err);

/* Starts on the calling process; what the tracker itself uses is taken out. Its regions
 * are measured from here on. */
WM_API int wm_tracker_start_self(struct wm_tracker *tracker, struct wm_error *err);

/* The process the tracker was started on; 0 before the start. */
WM_API pid_t wm_tracker_pid(const struct wm_tracker *tracker);

/* What programs that the target starts need in their environment as WATTMETER_REGIONS, for
 * their regions to be measured with those of the target; a command has it already. NULL
 * where no regions are measured. Between a start and wm_tracker_run_thread(); the text
 * lives until the tracker is stopped. */
WM_API const char *wm_tracker_regions(const struct wm_tracker *tracker);

/* Sends a signal to the target while it certainly is the target. May be called
 * from a signal handler. WM_ENOENT when it is gone. */
WM_API int wm_tracker_signal(const struct wm_tracker *tracker, int signal_number);

/* Waits for the next tick that is due, the end of the target, `timeout_ms`
 * milliseconds (-1: no limit) or a signal, whichever is first; takes the tick;
 * returns an enum wm_tracker_state, or a negative status when it cannot wait any
 * more, with the target running on. */
WM_API int wm_tracker_poll(struct wm_tracker *tracker, int timeout_ms,
                           struct wm_error *err);

/* Takes the ticks in a thread of the tracker's own until wm_tracker_stop().
 * No other function but wm_tracker_stop(), wm_tracker_signal(), wm_tracker_report(),
 * wm_tracker_live(), wm_tracker_processes() and wm_tracker_pid() may be called meanwhile.
 */
WM_API int wm_tracker_run_thread(struct wm_tracker *tracker, struct wm_error *err);

/* Takes the last tick, ends the recording, and lets a command that is still
 * there go on by itself; its launcher then stays a child of this process until
 * that ends. WM_EIO when the recording lacks something; the report is whole, and
 * says so. */
WM_API int wm_tracker_stop(struct wm_tracker *tracker, struct wm_error *err);

/* Marks the run as broken off, before wm_tracker_stop(). Comparisons of recordings do not
 * count it as a repeat. */
WM_API void wm_tracker_break_off(struct wm_tracker *tracker);

/* Makes a stopped tracker a new one for the next run, which saves opening the sources once
 * more. Its options, its sources and the baseline stay; tags, recording and metrics are to
 * be given again, also those of one that is new still. */
WM_API int wm_tracker_renew(struct wm_tracker *tracker, struct wm_error *err);

/* How the command ended: its exit status, or 128 plus the signal that killed
 * it; -1 while that is unknown. */
WM_API int wm_tracker_exit_code(const struct wm_tracker *tracker);

/* The signal that killed the command; 0: none did, or that is unknown. */
WM_API int wm_tracker_exit_signal(const struct wm_tracker *tracker);

/* The samples from now on, for a view of them while they are taken: wm_recording_next()
 * gives those that have been taken since, then 0 until there are more. It is the tracker's
 * own and ends with it; a second call gives the same one. About 1 MB is kept of what is not
 * read, the oldest goes first. WM_EINVAL before the start, and before late drivers of GPUs
 * have answered. Any thread may ask for it, and one reads it. */
WM_API int wm_tracker_live(struct wm_tracker *tracker, struct wm_recording **ret_live,
                           struct wm_error *err);

/* Of a command line with its NUL; longer ones are cut. */
#define WM_TRACKER_COMMAND_SIZE 256

/* A process of the target, as it was when it was last looked at. What is NAN is not known.
 */
struct wm_tracker_process {
    pid_t pid, parent;
    char name[64];                         /* as the kernel has it */
    char command[WM_TRACKER_COMMAND_SIZE]; /* its words parted by blanks; may be "" */
    char state;                            /* as ps has it: 'R', 'S', 'D', 'T', 'Z' */
    uid_t user;                            /* the effective one */
    double cpu_s;                          /* CPU time since the start of the session */
    double memory_bytes;                   /* its resident set; 0 of a zombie */
    int threads;
    int gpus;                /* how many GPUs it is on */
    double gpu_use;          /* of their time, summed: 1 is one GPU */
    double gpu_memory_bytes; /* on all of them */
    double energy_j;         /* of the CPUs and the GPUs since the start */
    double power_w;          /* of the same, since it was asked for before */
};

/* Those that are there, if `room` is enough for them; `ret_count` gets how many there are.
 * `report` is that of now, whose energy of the target is divided among them: of the CPUs by
 * CPU time, of a GPU by the use of it; NULL: joules and watts are NAN. Any thread may ask,
 * one at a time, between a start and wm_tracker_stop(). */
WM_API void wm_tracker_processes(struct wm_tracker *tracker, const struct wm_report *report,
                                 struct wm_tracker_process *ret_processes, size_t room,
                                 size_t *ret_count);

/* The report of a stopped tracker; or of one that runs, as of its last tick, which is that
 * of a recording without a result. Any thread may ask for it. */
WM_API int wm_tracker_report(const struct wm_tracker *tracker,
                             struct wm_report **ret_report, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
