/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - reads a recorded session, tick by tick.
 *
 *     struct wm_recording *rec;
 *     struct wm_tick tick;
 *     if (wm_recording_open("run.sqlite", WM_LAST_RUN, &rec, &err) < 0)
 *         return report(&err);
 *     while (wm_recording_next(rec, &tick, &err) > 0)
 *         use(tick.when_ns, tick.readings);
 *     wm_recording_close(rec);
 *
 * The rules of source.h hold here too. A recording is read in one pass and in bounded
 * memory, however long it is. Files of other tools are read too: an AIPowerMeter folder,
 * the CSV file of a power meter.
 */
#ifndef WATTMETER_RECORDING_H
#define WATTMETER_RECORDING_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_recording;

/* What to do if the file exists. */
enum wm_record_mode {
    WM_RECORD_NEW = 0,       /* leave it alone and return WM_EEXIST */
    WM_RECORD_OVERWRITE = 1, /* replace it */
    WM_RECORD_APPEND = 2,    /* add the run to it (SQLite only) */
    /* Runs are always added to a database. It is never overwritten, and a run that it has
     * already is continued. */
};

/* One round of readings of all sources, in the order of the channels. */
struct wm_tick {
    int64_t when_ns; /* CLOCK_MONOTONIC of the machine that was measured */
    const struct wm_reading *readings;
    size_t count;
};

/* These replace the number of a run; WM_ALL_RUNS only if a function allows it. */
#define WM_LAST_RUN ((size_t)-1)
#define WM_ALL_RUNS ((size_t)-2)

/* Opens run number `run` (from 0) of the recording at `path`, in any format, or in a
 * PostgreSQL database by its URL (postgresql://...). WM_LAST_RUN is the newest run. Of an
 * AIPowerMeter folder, whose segments are its runs, it is all of them. If the writer was
 * killed, the recording opens like any other and ends with its last complete tick. */
WM_API int wm_recording_open(const char *path, size_t run,
                             struct wm_recording **ret_recording, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_recording_close(struct wm_recording *recording);

/* The number of runs in the file. */
WM_API size_t wm_recording_run_count(const struct wm_recording *recording);

WM_API size_t wm_recording_channel_count(const struct wm_recording *recording);

/* `index` is below wm_recording_channel_count(). */
WM_API const struct wm_channel *wm_recording_channel(const struct wm_recording *recording,
                                                     size_t index);

/* Reads the next tick: 1 and `ret_tick`, whose readings are valid until the next call; 0
 * past the last one. */
WM_API int wm_recording_next(struct wm_recording *recording, struct wm_tick *ret_tick,
                             struct wm_error *err);

/* The name of the index-th metric of the program (wm_tracker_log(), wm_tracker_metrics()),
 * NULL past the last; borrowed. Some formats know them only after the last tick was
 * read. */
WM_API const char *wm_recording_metric(const struct wm_recording *recording, size_t index);

/* A value of a metric, in the order of time: 1, or 0 past the last one. */
WM_API int wm_recording_metric_value(const struct wm_recording *recording, size_t index,
                                     size_t place, int64_t *ret_when_ns, double *ret_value);

/* If a signal handler sets `*stop` to another value than 0, reading ends with WM_ECANCELED.
 * An export ends too, and removes what it has written. `stop` has to live as long as the
 * recording. */
WM_API void wm_recording_stop_on(struct wm_recording *recording,
                                 const volatile sig_atomic_t *stop);

/* In place of an offset: the one at which the meter's power follows the machine's power, or
 * the utilization of the CPUs. If no offset stands out, it is 0, with a note in the
 * report. */
#define WM_METER_OFFSET_AUTO INT64_MIN

/* The largest offset: a day. */
#define WM_METER_OFFSET_MAX_NS INT64_C(86400000000000)

/* Adds the values of an external power meter: the columns with watts of the CSV file at
 * `path` become channels of `ret_joined`. They are labelled "meter" (or "meter1", "meter2",
 * ...) and have the meter's power at the time of each tick. `offset_ns` is added to the
 * meter's times. With 0 the report has a note if another offset clearly fits better.
 * `recording` stands at its start. After a success it belongs to `ret_joined`. */
WM_API int wm_recording_join_meter(struct wm_recording *recording, const char *path,
                                   int64_t offset_ns, struct wm_recording **ret_joined,
                                   struct wm_error *err);

/* Writes a run to `path`, in the format of the suffix (.sqlite, .csv, .json, .aipm), or to
 * a PostgreSQL database by its URL. `recording` stands at the start of the run, and at its
 * end afterwards. `mode` says what to do if the file exists. */
WM_API int wm_recording_export(struct wm_recording *recording, const char *path,
                               enum wm_record_mode mode, struct wm_error *err);

/* Writes the regions of the run to `path`, a sub-tracking file of gpu_tracker (.csv or
 * .sqlite). It belongs to the tracking file that an SQLite or CSV recording is.
 * `ret_left_out` (may be NULL) gets the number of calls left out: calls that never ended,
 * of regions without any ended call. gpu_tracker's analysis fails on such calls. WM_ENODEV:
 * the run has no regions. WM_RECORD_APPEND is refused. Like a report or an export it reads
 * the recording from the start of its run to the end. */
WM_API int wm_recording_export_sub_tracking(struct wm_recording *recording,
                                            const char *path, enum wm_record_mode mode,
                                            uint64_t *ret_left_out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
