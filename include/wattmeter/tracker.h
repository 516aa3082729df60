/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker.h - measures a process tree, sample by sample.
 *
 *     const struct wm_tracker_target target = { .size = sizeof(target), .argv = argv };
 *     struct wm_tracker *tracker;
 *     struct wm_report *report;
 *     if (wm_tracker_new(NULL, &tracker, &err) < 0)
 *         return fail(&err);
 *     wm_tracker_add_all(tracker, &err);
 *     if (wm_tracker_start(tracker, &target, &err) == WM_OK) {
 *         while (wm_tracker_poll(tracker, -1, &err) == WM_TRACKER_RUNNING)
 *             ;
 *         wm_tracker_stop(tracker, &err);
 *         if (wm_tracker_report(tracker, &report, &err) == WM_OK)
 *             wm_report_print(report, WM_FORMAT_TEXT, NULL, stderr, &err);
 *     }
 *     wm_tracker_free(tracker);
 *
 * A tracker is new, then started on one target, then stopped; wm_tracker_renew() makes it
 * new again. The target is a command, a running process, or the calling process. The ticks
 * are taken by wm_tracker_poll() in the caller's loop, or by a separate thread after
 * wm_tracker_run_thread().
 *
 * After a fork() a tracker belongs to the parent. The child may only call
 * wm_tracker_free(), which does nothing there.
 *
 * The rules of source.h hold here too. A tracker changes neither signals nor limits of its
 * process. It adds one child, which holds the command.
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

/* Zero-initialize it for the defaults. */
struct wm_tracker_options {
    size_t size;           /* sizeof this struct */
    int64_t interval_ns;   /* between ticks, 1 ms to 1 h; 0: 100 ms */
    double expected_cores; /* divisor of "hardware percent"; 0: all cores */

    /* GPUs of all vendors, by the words of wm_gpu_select() in gpu.h: "visible",
     * "0,GPU-7c1f,card1" and so on. NULL: all. */
    const char *gpus;

    /* What to record of GPUs beyond the usual: "all", or metrics of wm_gpu_field_info()
     * with commas between them: "fan,clock_graphics". NULL: nothing. */
    const char *channels;

    /* The environment of this process decides what "visible" means, such as the process for
     * wm_tracker_start(). If it is 0 or may not be read: the environment of the calling
     * process, which a command inherits. */
    pid_t visible_to;

    /* Power of the CPUs idle and at full load, "IDLE:MAX" in watts, for the estimate of
     * their energy if no sensor measures it. NULL: published values of similar machines. */
    const char *cpu_watts;

    /* How long to measure the idle machine before a command is started; 0: not at all.
     * Ignored for running processes. */
    int64_t baseline_ns;

    /* Use the baseline even if the CPUs, or the GPU, were busy for more than 5 % of it. */
    bool baseline_anyway;

    /* The calling process only tracks, so all its use is the tracker's cost. The start
     * function then opens what wm_tracker_add_all() adds, while the processes of a command
     * are made. Otherwise the cost is the use of the tracker's functions, and its memory
     * cannot be separated from the program's. */
    bool own_process;

    /* The session of a command ends with the last process that the command leaves behind,
     * not with the command. wm_tracker_exit_code() is known when the command has ended, and
     * wm_tracker_stop() ends the waiting. */
    bool wait_all;

    /* The standard input, output and error of a command are /dev/null. */
    bool silent;

    /* wm_tracker_add_all() waits for slow drivers, as before the first of many runs. */
    bool wait_for_drivers;

    /* Events that perf counts for a command and all its processes: "cycles,instructions".
     * The report has a note on unsupported events. NULL: none. */
    const char *events;
};

/* The longest baseline_ns. */
#define WM_BASELINE_MAX_NS INT64_C(3600000000000)

/* Limits of interval_ns. */
#define WM_INTERVAL_MIN_NS INT64_C(1000000)
#define WM_INTERVAL_MAX_NS INT64_C(3600000000000)

enum wm_tracker_state {
    WM_TRACKER_NEW = 0,
    WM_TRACKER_RUNNING = 1,
    WM_TRACKER_ENDED = 2, /* the target has ended; call wm_tracker_stop() */
    WM_TRACKER_STOPPED = 3,
};

/* `options` may be NULL. */
WM_API int wm_tracker_new(const struct wm_tracker_options *options,
                          struct wm_tracker **ret_tracker, struct wm_error *err);

/* What gpu_tracker's Tracker takes beside the options above. Zero-initialize it for the
 * defaults. */
struct wm_gpu_tracker_options {
    size_t size;              /* sizeof this struct */
    const char *sleep_time;   /* the interval, in seconds from 0.1 on; NULL: "1" */
    const char *brand;        /* of GPUs, "nvidia", "amd"; NULL: any */
    const char *ram_unit;     /* of the tracking file, as in struct wm_report_style */
    const char *gpu_ram_unit; /* the same for GPUs */
    const char *time_unit;
    const char *tracking_file; /* ends in .csv or .sqlite; NULL: none */
    bool overwrite;            /* replace a tracking file that exists */
};

/* Creates a tracker with the sources and GPUs that gpu_tracker would choose. These are the
 * GPUs that options->gpus names, of the brand if there is one, else all of that brand.
 * Without a brand: NVIDIA's, else AMD's, else all GPUs that the kernel knows. The sleep
 * time takes the place of options->interval_ns. `said` gets gpu_tracker's messages for the
 * user: warnings, a line each, or one line with the reason of a failure. WM_EINVAL: an
 * option is wrong; WM_ENODEV: no GPU of the brand; WM_EEXIST: the tracking file exists. */
WM_API int wm_tracker_new_as_gpu_tracker(const struct wm_tracker_options *options,
                                         const struct wm_gpu_tracker_options *own,
                                         FILE *said, struct wm_tracker **ret_tracker);

/* Accepts NULL. Stops a running tracker; a command continues without it. */
WM_API void wm_tracker_free(struct wm_tracker *tracker);

/* Adds the source called `name`, before the start. WM_EEXIST: it was added already.
 * WM_EINVAL: the choice of GPUs is wrong; the error lists the GPUs. If the source is
 * unavailable, or none of its GPUs was chosen, the report has a note and its status is
 * returned; most callers ignore it. The process tree is always measured. */
WM_API int wm_tracker_add(struct wm_tracker *tracker, const char *name,
                          struct wm_error *err);

/* Adds every source of this build. The estimate of CPU energy is added only if no other
 * source measures it, or if cpu_watts is set. Returns WM_OK, or WM_EINVAL if the choice of
 * GPUs is wrong; the error lists the GPUs. Without baseline_ns it waits at most a second
 * for a GPU's driver. The GPUs of a slower one join the session when it answers, within 10
 * s. wm_tracker_add() waits for it. */
WM_API int wm_tracker_add_all(struct wm_tracker *tracker, struct wm_error *err);

/* Adds a tag to the session, which reports show and the recording keeps. */
WM_API int wm_tracker_note(struct wm_tracker *tracker, const char *key, const char *value,
                           struct wm_error *err);

/* Records the session to `target`: a file, whose suffix names the format, or a PostgreSQL
 * database by its URL (postgresql://...). "gpu-tracker:RAM,GPU_RAM,TIME:FILE" writes a
 * tracking file of gpu_tracker, with three of its units and a FILE that ends in .csv or
 * .sqlite. The start function opens the target and fails if it cannot. If drivers answer
 * late, a file is opened after them; wm_tracker_stop() reports a failure then. */
WM_API int wm_tracker_record(struct wm_tracker *tracker, const char *target,
                             enum wm_record_mode mode, struct wm_error *err);

/* When the tracker is stopped, reads the file at `path`, in which the target writes
 * metrics. It has a JSON object per line, with "time" (seconds since 1970, or RFC 3339) and
 * numbers of any name. The recording keeps them. If the file is missing, or a line is
 * invalid, the report has a note. */
WM_API int wm_tracker_metrics(struct wm_tracker *tracker, const char *path,
                              struct wm_error *err);

/* Keeps a number of the program with the recording, its accuracy, say. `when_ns` is its
 * time by CLOCK_MONOTONIC, or 0 for now; numbers of the same time belong together.
 * Between start and stop, from any thread, and waits for no sample. WM_EINVAL for what is
 * no number, for more than 100,000 of a run or 1,000 names, and where nothing is being
 * measured.
 */
WM_API int wm_tracker_log(struct wm_tracker *tracker, const char *name, double value,
                          int64_t when_ns, struct wm_error *err);

/* The largest number of runs in a batch. */
#define WM_TRACKER_BATCH_MAX 100000

/* What is measured: a command, running processes, or, if all is zero, the calling process
 * without the use of the tracker. All is borrowed for the call. */
struct wm_tracker_target {
    size_t size; /* sizeof this struct */

    /* The words of a command, ended by NULL; argv[0] is searched in PATH. Its regions
     * (region.h) are measured too: WATTMETER_REGIONS is set for it, unless that names a
     * file already. */
    char *const *argv;
    const char *folder;       /* its working directory; NULL: the caller's */
    char *const *environment; /* "NAME=value", ended by NULL; NULL: the caller's. Its PATH
                               * is searched */

    /* A batch: this number of runs of the command back to back, for a command that is too
     * short for a sensor. The measurement covers all of them. The first run that fails is
     * the last, unless `goes_on`. 0: no batch. */
    size_t runs;
    bool goes_on;

    /* Running processes, each with its descendants, without regions. The first is the main
     * process ("main", wm_tracker_pid()). The target ends with the last of all these. */
    const pid_t *pids;
    size_t pid_count;
};

/* Starts the target, if it is a command, and the ticks; `target` may be NULL. WM_ENOENT: no
 * such command, folder or process; WM_EACCES: it cannot be executed or entered. After a
 * failure no instruction of the command has run. */
WM_API int wm_tracker_start(struct wm_tracker *tracker,
                            const struct wm_tracker_target *target, struct wm_error *err);

/* A run of a batch. */
struct wm_tracker_run {
    double time_s;
    double user_s, system_s; /* these and the counts include children it waited for */
    double max_memory_bytes; /* of its largest process; 0: unknown */
    int exit_code;           /* exit status, or 128 plus the signal that killed it */
    double voluntary_switches, involuntary_switches; /* of context */
    double minor_faults, major_faults;               /* of pages: without a disk, with it */
};

/* Gives the runs that have ended, from 0; a command without a batch is the only one.
 * WM_ENOENT past the last. */
WM_API int wm_tracker_batch_run(const struct wm_tracker *tracker, size_t index,
                                struct wm_tracker_run *ret_run);

/* The process on which the tracker was started; 0 before the start. */
WM_API pid_t wm_tracker_pid(const struct wm_tracker *tracker);

/* The value of WATTMETER_REGIONS for programs that the target starts, so that their regions
 * are measured with the target's. A command has it already. NULL: no regions are measured.
 * Call it between a start and wm_tracker_run_thread(); the string lives until the tracker
 * is stopped. */
WM_API const char *wm_tracker_regions(const struct wm_tracker *tracker);

/* Sends a signal to the target, never to another process that has reused its PID. May be
 * called from a signal handler. WM_ENOENT: the target has ended. */
WM_API int wm_tracker_signal(const struct wm_tracker *tracker, int signal_number);

/* Waits for the next tick, the end of the target, `timeout_ms` milliseconds (-1: no limit)
 * or a signal, whichever is first, and takes the tick if it is due. Returns an enum
 * wm_tracker_state, or a negative status if it cannot wait any more; the target goes on
 * then. */
WM_API int wm_tracker_poll(struct wm_tracker *tracker, int timeout_ms,
                           struct wm_error *err);

/* Takes the ticks in a separate thread until wm_tracker_stop(). Meanwhile only these
 * functions may be called: wm_tracker_stop(), wm_tracker_signal(), wm_tracker_report(),
 * wm_tracker_live(), wm_tracker_processes() and wm_tracker_pid(). */
WM_API int wm_tracker_run_thread(struct wm_tracker *tracker, struct wm_error *err);

/* Takes the last tick and ends the recording. A command that still runs continues without
 * the tracker; its launcher stays a child of this process until the command ends. WM_EIO:
 * the recording is incomplete. The report is complete and has a note on it. */
WM_API int wm_tracker_stop(struct wm_tracker *tracker, struct wm_error *err);

/* Marks the run as broken off, before wm_tracker_stop(). Comparisons of recordings do not
 * count it as a repeat. */
WM_API void wm_tracker_break_off(struct wm_tracker *tracker);

/* Makes a stopped tracker new again for the next run, which saves opening the sources. It
 * keeps its options, its sources and the baseline. Set tags, recording and metrics again,
 * also if the tracker was never started. */
WM_API int wm_tracker_renew(struct wm_tracker *tracker, struct wm_error *err);

/* How the command ended: its exit status, or 128 plus the signal that killed
 * it; -1 while that is unknown. */
WM_API int wm_tracker_exit_code(const struct wm_tracker *tracker);

/* The signal that killed the command; 0: none did, or that is unknown. */
WM_API int wm_tracker_exit_signal(const struct wm_tracker *tracker);

/* Gives the samples from now on, to show them while they are taken: wm_recording_next()
 * gives new samples, then 0 until there are more. The recording belongs to the tracker and
 * ends with it; a second call gives the same one. It keeps about 1 MB of unread samples and
 * drops the oldest first. WM_EINVAL before the start, and until late GPU drivers have
 * answered. Any thread may call it; only one may read. */
WM_API int wm_tracker_live(struct wm_tracker *tracker, struct wm_recording **ret_live,
                           struct wm_error *err);

/* Of a command line with its NUL; longer ones are cut. */
#define WM_TRACKER_COMMAND_SIZE 256

/* A process of the target, as it was when it was last looked at. What is NAN is not known.
 */
struct wm_tracker_process {
    pid_t pid, parent;
    uint64_t start_time; /* in the kernel's ticks; with the PID it identifies one process */
    char name[64];       /* as the kernel has it */
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
    double power_w;          /* of the same, since the report before */
};

/* Gives the processes of the target, if `room` is enough for them; `ret_count` is the
 * number of all. `report` is the report up to now. The energy of the target is divided
 * among them: of the CPUs by CPU time, of a GPU by its use. With NULL joules and watts are
 * NAN. Any thread may ask, one at a time, between a start and wm_tracker_stop(). */
WM_API void wm_tracker_processes(struct wm_tracker *tracker, const struct wm_report *report,
                                 struct wm_tracker_process *ret_processes, size_t room,
                                 size_t *ret_count);

/* Gives the report of a stopped tracker. While the tracker runs, it is the report up to the
 * last tick, as from an incomplete recording. Any thread may call it. */
WM_API int wm_tracker_report(const struct wm_tracker *tracker,
                             struct wm_report **ret_report, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
