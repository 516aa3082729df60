/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - what a session left behind, read back tick by tick.
 *
 *     struct wm_recording *rec;
 *     struct wm_tick tick;
 *     if (wm_recording_open("run.sqlite", WM_LAST_RUN, &rec, &err) < 0)
 *         return report(&err);
 *     while (wm_recording_next(rec, &tick, &err) > 0)
 *         use(tick.when_ns, tick.readings);
 *     wm_recording_close(rec);
 *
 * The rules of source.h hold here too. A recording is read in one pass and in
 * bounded memory, however long it is. Those of other tools are read as well: an
 * AIPowerMeter folder, the CSV file of a power meter.
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

/* What may happen to a file that is there already. */
enum wm_record_mode {
    WM_RECORD_NEW,       /* it is left alone, and WM_EEXIST returned */
    WM_RECORD_OVERWRITE, /* it is replaced */
    WM_RECORD_APPEND,    /* the run is added to those in it (SQLite only) */
    /* To a database that a URL names runs are added in any case; it is never
     * overwritten, and a run that it has already is gone on with. */
};

/* One round of readings, all sources together, in the order of the channels. */
struct wm_tick {
    int64_t when_ns; /* CLOCK_MONOTONIC of the machine that was measured */
    const struct wm_reading *readings;
    size_t count;
};

/* In place of the number of a run; all of them only where a function says so. */
#define WM_LAST_RUN ((size_t)-1)
#define WM_ALL_RUNS ((size_t)-2)

/* Opens run number `run` (from 0) of the recording at `path`, of whatever
 * format, or in the PostgreSQL database of that URL (postgresql://...); WM_LAST_RUN is the
 * newest, or all of an AIPowerMeter folder, whose segments are its runs. A recording whose
 * writer was killed opens like any other and ends where its last whole tick ends. */
WM_API int wm_recording_open(const char *path, size_t run,
                             struct wm_recording **ret_recording, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_recording_close(struct wm_recording *recording);

/* How many runs the file holds. */
WM_API size_t wm_recording_run_count(const struct wm_recording *recording);

WM_API size_t wm_recording_channel_count(const struct wm_recording *recording);

/* `index` is below wm_recording_channel_count(). */
WM_API const struct wm_channel *wm_recording_channel(const struct wm_recording *recording,
                                                     size_t index);

/* The next tick: 1 and `ret_tick`, whose readings are valid until the next
 * call; 0 past the last one. */
WM_API int wm_recording_next(struct wm_recording *recording, struct wm_tick *ret_tick,
                             struct wm_error *err);

/* The name of the index-th series that the program reported of itself (wm_tracker_log(),
 * wm_tracker_metrics()), NULL past the last; borrowed. Some formats know them once the last
 * tick has been read. */
WM_API const char *wm_recording_metric(const struct wm_recording *recording, size_t index);

/* A value of it, in the order of time: 1, or 0 past the last one. */
WM_API int wm_recording_metric_value(const struct wm_recording *recording, size_t index,
                                     size_t place, int64_t *ret_when_ns, double *ret_value);

/* Once `*stop` is not 0, as a signal handler may set it, reading ends with WM_ECANCELED,
 * and so does an export, which takes back what it has written. `stop` lives as long as the
 * recording. */
WM_API void wm_recording_stop_on(struct wm_recording *recording,
                                 const volatile sig_atomic_t *stop);

/* Adds what an external power meter saw: the columns with watts of the CSV file at
 * `path` become channels of `ret_joined`, labelled "meter" (or "meter1", "meter2",
 * ...), with the meter's power at the time of each tick. `recording` stands at its
 * start, and belongs to `ret_joined` from here on; after a failure it does not. */
WM_API int wm_recording_join_meter(struct wm_recording *recording, const char *path,
                                   struct wm_recording **ret_joined, struct wm_error *err);

/* In place of an offset: the one at which the meter's power follows the machine's own, or
 * the CPUs' use. Where none stands out it is 0, and a remark of the report says so. */
#define WM_METER_OFFSET_AUTO INT64_MIN

/* The largest offset: a day. */
#define WM_METER_OFFSET_MAX_NS INT64_C(86400000000000)

/* The same for a meter whose clock is off: `offset_ns` is added to its times. With 0, as
 * above, the report has a remark where another offset clearly fits better. */
WM_API int wm_recording_join_meter_at(struct wm_recording *recording, const char *path,
                                      int64_t offset_ns, struct wm_recording **ret_joined,
                                      struct wm_error *err);

/* Writes the run that `recording` stands at the start of to `path`, in the
 * format that the suffix names (.sqlite, .csv, .json, .aipm) or to the PostgreSQL
 * database of that URL, and leaves it at its end. `mode` says what may happen to a
 * file that is there. */
WM_API int wm_recording_export(struct wm_recording *recording, const char *path,
                               enum wm_record_mode mode, struct wm_error *err);

/* Writes the regions of the run to `path`, whose suffix is .csv or .sqlite, as
 * gpu_tracker's sub-tracking file to the tracking file that an SQLite or CSV recording is.
 * `ret_left_out` (may be NULL) gets how many calls that never ended are not in it, because
 * no other call of their region has, and gpu_tracker's analysis fails on such. WM_ENODEV
 * where there are no regions. WM_RECORD_APPEND is refused. Like a report or an export it
 * takes a recording at the start of its run, which has been read afterwards. */
WM_API int wm_recording_export_sub_tracking(struct wm_recording *recording,
                                            const char *path, enum wm_record_mode mode,
                                            uint64_t *ret_left_out, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
