/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_sub_tracking_export.c - the regions of a recording as gpu_tracker's sub-tracking
 * file.
 *
 * Its reader knows processes and names, no threads: of a name in a process it takes the
 * first two rows for a call, the next two for another. So calls of a name that overlap, of
 * two threads or in a recursion, stand there under numbers of processes of their own, and
 * one that never ended has one to itself, as a start without a stop. Where a name has only
 * such, its whole analysis fails, so these are left out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_map.h"
#include "base/base_utf8.h"
#include "base/text/base_names.h"
#include "compat/gpu_tracker/compat_sub_tracking_write.h"
#include "record/calls/record_calls.h"
#include "record/record_read.h"
#include "record/record_timepoint.h"

/* From one number of a process to the next that stands for it; no pid is as large. */
#define LANE_STEP INT64_C(10000000)

#define OF_ALL (UINT64_C(1) << 32)

/* Calls of one name under one number of a process, which do not overlap. */
struct lanes {
    struct wm_map map; /* from name and number to where its last call stops, and from
                        * OF_ALL | name and process to how many numbers it has */
    double *stops;     /* s since 1970 */
    size_t count, room;
};

/* One that never ended, kept until all others are written. */
struct open_call {
    uint32_t name;
    int64_t pid;
    double start_s;
};

struct calls {
    struct wm_names names;
    bool *has_ended; /* by name: a call of it */
    size_t ended_count, ended_room;
    struct lanes lanes;
    struct open_call *open;
    size_t open_count, open_room;
};

static int write_row(struct wm_target *target, int64_t process, const char *name,
                     bool is_stop, double seconds, struct wm_error *err)
{
    const struct wm_sub_row row = {
        .process = process,
        .name = name,
        .is_stop = is_stop,
        .seconds = seconds,
    };

    return wm_sub_target_row(target, &row, err);
}

/* The number of the name, which is kept in UTF-8, or WM_MAP_NONE: out of memory. */
static uint32_t find_name(struct calls *calls, const char *name)
{
    char *copy = wm_text_copy(name);
    uint32_t found = copy ? wm_names_add(&calls->names, copy) : WM_MAP_NONE;

    free(copy);
    if (found == WM_MAP_NONE || found < calls->ended_count)
        return found;
    if (wm_array_reserve(&calls->has_ended, calls->ended_count, &calls->ended_room,
                         sizeof(*calls->has_ended)) < 0)
        return WM_MAP_NONE;
    calls->has_ended[calls->ended_count++] = false;
    return found;
}

static int add_pair(struct wm_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (wm_map_reserve(map) < 0)
        return WM_ENOMEM;
    wm_map_put(map, a, b, value);
    return WM_OK;
}

/* The first number for that process that is free from then on, which the call takes.
 * Negative: out of memory. */
static int64_t take_lane(struct lanes *lanes, uint32_t name, int64_t pid, double start_s,
                         double stop_s)
{
    uint32_t count = wm_map_find(&lanes->map, OF_ALL | name, (uint64_t)pid);
    int64_t process = pid;

    count = count == WM_MAP_NONE ? 0 : count;
    if (isinf(start_s))
        process += count * LANE_STEP;
    for (; process < pid + count * LANE_STEP; process += LANE_STEP) {
        uint32_t found = wm_map_find(&lanes->map, name, (uint64_t)process);
        if (lanes->stops[found] <= start_s) {
            lanes->stops[found] = stop_s;
            return process;
        }
    }
    if (wm_array_reserve(&lanes->stops, lanes->count, &lanes->room, sizeof(*lanes->stops)) <
            0 ||
        add_pair(&lanes->map, name, (uint64_t)process, (uint32_t)lanes->count) < 0 ||
        add_pair(&lanes->map, OF_ALL | name, (uint64_t)pid, count + 1) < 0)
        return WM_ENOMEM;
    lanes->stops[lanes->count++] = stop_s;
    return process;
}

static int keep_open(struct calls *calls, uint32_t name, int64_t pid, double start_s)
{
    if (wm_array_reserve(&calls->open, calls->open_count, &calls->open_room,
                         sizeof(*calls->open)) < 0)
        return WM_ENOMEM;
    calls->open[calls->open_count++] = (struct open_call) { name, pid, start_s };
    return WM_OK;
}

static int write_call(struct wm_target *target, const struct wm_run *run,
                      const struct wm_call *call, struct calls *calls, struct wm_error *err)
{
    double start_s = wm_timepoint_unix_seconds(run, call->monotonic_start_ns);
    double stop_s = wm_timepoint_unix_seconds(run, call->monotonic_stop_ns);

    uint32_t name = find_name(calls, call->name);
    if (name == WM_MAP_NONE)
        return wm_fail_memory(err, wm_text_path(target->path));
    if (call->is_open)
        return keep_open(calls, name, call->pid, start_s) < 0
                   ? wm_fail_memory(err, wm_text_path(target->path))
                   : WM_OK;
    int64_t process = take_lane(&calls->lanes, name, call->pid, start_s, stop_s);
    if (process < 0)
        return wm_fail_memory(err, wm_text_path(target->path));
    const char *text = calls->names.texts[name];
    calls->has_ended[name] = true;
    int status = write_row(target, process, text, false, start_s, err);
    if (status == WM_OK)
        status = write_row(target, process, text, true, stop_s, err);
    return status;
}

/* Each has a place that no other call ever has: beside a stop of the same time its reader
 * would take it for the first. */
static int write_open(struct wm_target *target, struct calls *calls, uint64_t *ret_left_out,
                      struct wm_error *err)
{
    int status = WM_OK;

    *ret_left_out = 0;
    for (size_t i = 0; i < calls->open_count && status == WM_OK; i++) {
        const struct open_call *call = &calls->open[i];
        if (!calls->has_ended[call->name]) {
            ++*ret_left_out;
            continue;
        }
        int64_t process =
            take_lane(&calls->lanes, call->name, call->pid, -INFINITY, INFINITY);
        status = process < 0 ? wm_fail_memory(err, wm_text_path(target->path))
                             : write_row(target, process, calls->names.texts[call->name],
                                         false, call->start_s, err);
    }
    return status;
}

static void release_calls(struct calls *calls)
{
    free(calls->has_ended);
    free(calls->lanes.stops);
    free(calls->open);
    wm_names_release(&calls->names);
    wm_map_release(&calls->lanes.map);
}

static int write_calls(struct wm_target *target, const struct wm_recording *recording,
                       struct wm_calls *source, uint64_t *ret_left_out,
                       struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    struct calls calls = { 0 };
    struct wm_call call;
    int status;

    while ((status = wm_calls_next(source, &call, err)) > 0) {
        status = wm_recording_check_stop(recording, err);
        if (status == WM_OK)
            status = write_call(target, run, &call, &calls, err);
        if (status < 0)
            break;
    }
    if (status == WM_OK)
        status = write_open(target, &calls, ret_left_out, err);
    release_calls(&calls);
    return status;
}

int wm_recording_export_sub_tracking(struct wm_recording *recording, const char *path,
                                     enum wm_record_mode mode, uint64_t *ret_left_out,
                                     struct wm_error *err)
{
    struct wm_calls *calls = NULL;
    struct wm_target target;
    uint64_t left_out = 0;

    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "%s: the recording to export has been read already",
                       wm_text_path(path));
    int status = wm_sub_target_suffix(path, err) ? WM_OK : WM_EINVAL;
    if (status == WM_OK && mode == WM_RECORD_APPEND)
        status = wm_fail(err, WM_EINVAL,
                         "%s: nothing is added to a sub-tracking file; `wattmeter combine`"
                         " joins several",
                         wm_text_path(path));
    if (status == WM_OK && wm_recording_is_at(recording, path))
        status = wm_fail(err, WM_EINVAL, "%s: is the recording itself", wm_text_path(path));
    if (status == WM_OK)
        status = wm_calls_of_recording(recording, &calls, err);
    if (status < 0)
        return status;
    status = wm_sub_target_open(&target, path, mode, "\r\n", err);
    if (status == WM_OK) {
        status = write_calls(&target, recording, calls, &left_out, err);
        status = wm_sub_target_finish(&target, status, err);
    }
    wm_calls_close(calls);
    if (status == WM_OK && ret_left_out)
        *ret_left_out = left_out;
    return status;
}
