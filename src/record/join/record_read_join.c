/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_read_join.c - two recordings of the same time as one: the ticks and channels of
 * the first, and what a meter saw at each of those ticks.
 *
 * The two are brought together by the time of day: that of the first comes from
 * its anchor. A tick has the meter's newest reading, with the time of that; the first
 * and the last tick have what the straight line between two readings says. Outside of
 * them, and where the meter itself has a hole, nothing is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_number.h"
#include "record/join/record_meter_clock.h"
#include "record/record_column.h"
#include "record/record_ops.h"
#include "record/record_read.h"

/* A tick, copied. */
struct moment {
    bool there;
    int64_t when_ns;
    struct wm_reading *readings;
};

struct join {
    struct wm_reader_head head;
    struct wm_recording *recording, *meter;
    int64_t shift_ns; /* what turns the meter's times into those of the recording */
    struct wm_channel *channels;
    size_t own_count, meter_count; /* of the channels */
    struct wm_reading *readings;   /* of a tick that is given out */
    int64_t last_ns;               /* when that was; -1: there was none */
    struct moment next;            /* tick of the recording */
    struct moment before, after;   /* ticks of the meter, on both sides of a tick */
    struct wm_reading *passed; /* by column, the last reading that is not after a tick */
    bool meter_ended, ended;
    uint64_t ticks, joined; /* for how many the meter had something to say */
};

/* How far the meter's time is behind that of the recording, as both clocks have it. */
static int64_t shift_between(const struct wm_recording *recording,
                             const struct wm_recording *meter)
{
    const struct wm_run *own = wm_recording_run(recording), *of = wm_recording_run(meter);

    return of->anchor_unix_ns - of->anchor_ns + own->anchor_ns - own->anchor_unix_ns;
}

static int make_buffers(struct join *join, struct wm_error *err)
{
    size_t own = join->own_count, meter = join->meter_count;
    const struct wm_channel *channels;
    size_t count;

    join->channels = calloc(own + meter, sizeof(*join->channels));
    join->readings = calloc(own + meter, sizeof(*join->readings));
    join->next.readings = calloc(own, sizeof(*join->next.readings));
    join->before.readings = calloc(meter, sizeof(*join->before.readings));
    join->after.readings = calloc(meter, sizeof(*join->after.readings));
    join->passed = calloc(meter, sizeof(*join->passed));
    if (!join->channels || !join->readings || !join->next.readings ||
        !join->before.readings || !join->after.readings || !join->passed)
        return wm_fail_memory(err, "meter");
    channels = wm_recording_channels(join->recording, &count);
    for (size_t i = 0; i < own; i++)
        join->channels[i] = channels[i];
    channels = wm_recording_channels(join->meter, &count);
    for (size_t i = 0; i < meter; i++)
        join->channels[own + i] = channels[i];
    return WM_OK;
}

/* What is known of the recording, before and after its ticks. */
static int copy_result(struct join *join, struct wm_error *err)
{
    const struct wm_result *own = wm_recording_result(join->recording);

    if (!own)
        return WM_OK;
    wm_result_release(&join->head.result);
    join->head.result = (struct wm_result) { 0 };
    int status = wm_result_copy(own, &join->head.result, err);
    join->head.has_result = status == WM_OK;
    return status;
}

static int fill_head(struct join *join, struct wm_error *err)
{
    struct wm_reader_head *head = &join->head;
    const struct wm_gap *gaps = NULL;

    head->run_count = wm_recording_run_count(join->recording);
    head->channels = join->channels;
    head->channel_count = join->own_count + join->meter_count;
    size_t count = wm_recording_gaps(join->recording, &gaps);
    head->gaps = calloc(count + 1, sizeof(*head->gaps));
    if (!head->gaps)
        return wm_fail_memory(err, "meter");
    for (; head->gap_count < count; head->gap_count++)
        head->gaps[head->gap_count] = gaps[head->gap_count];
    int status = wm_run_copy(wm_recording_run(join->recording), &head->run, err);
    return status < 0 ? status : copy_result(join, err);
}

/* All but the recordings, which only a success makes ours. */
static void free_buffers(struct join *join)
{
    wm_reader_head_release(&join->head);
    free(join->channels);
    free(join->readings);
    free(join->next.readings);
    free(join->before.readings);
    free(join->after.readings);
    free(join->passed);
    *join = (struct join) { 0 };
}

/* How the meter is joined: by its clock, or that and an offset. */
struct clock {
    int64_t offset_ns;
    bool is_searched; /* and not given */
    struct wm_meter_clock found;
};

/* "-2.5 s" */
static void print_offset(char *text, size_t size, int64_t offset_ns)
{
    snprintf(text, size, "%+.9g s", (double)offset_ns / 1e9);
}

static int note_meter(struct join *join, const char *name, const struct clock *clock)
{
    char offset[32];

    print_offset(offset, sizeof(offset), clock->offset_ns);
    if (clock->offset_ns == 0)
        return wm_run_set_note(&join->head.run, "meter", "%s, joined by the time of day",
                               wm_text_path(name));
    return wm_run_set_note(
        &join->head.run, "meter", "%s, joined by the time of day and an offset of %s%s%s",
        wm_text_path(name), offset, clock->is_searched ? ", found with " : "",
        clock->is_searched ? clock->found.by : "");
}

/* A clock that is right is right to about a period. */
static int remark_clock(struct join *join, const struct clock *clock)
{
    const struct wm_meter_clock *found = &clock->found;
    struct wm_remarks *remarks = &join->head.remarks;
    char offset[32];

    print_offset(offset, sizeof(offset), found->offset_ns);
    if (clock->is_searched && !found->is_clear)
        return wm_remarks_add(remarks,
                              "meter: no offset of its clock was found (%s); its times are "
                              "taken as they are",
                              found->why);
    if (!clock->is_searched && clock->offset_ns == 0 && found->is_clear &&
        llabs(found->offset_ns) > found->period_ns)
        return wm_remarks_add(remarks,
                              "meter: its clock seems to be off: its power follows %s best "
                              "with an offset of %s; --meter-offset auto takes that",
                              found->by, offset);
    return WM_OK;
}

/* Both recordings stand at their start, and belong to the state from here on if this
 * succeeds. `name` is what people call the meter's file. */
static int begin(struct join *join, struct wm_recording *recording,
                 struct wm_recording *meter, const char *name, const struct clock *clock,
                 struct wm_error *err)
{
    *join = (struct join) {
        .recording = recording,
        .meter = meter,
        .shift_ns = shift_between(recording, meter) + clock->offset_ns,
        .own_count = wm_recording_channel_count(recording),
        .meter_count = wm_recording_channel_count(meter),
        .last_ns = -1,
    };
    int status =
        join->own_count + join->meter_count <= WM_CHANNELS_MAX
            ? make_buffers(join, err)
            : wm_fail(err, WM_EINVAL, "the recording has no room for the meter's channels");
    if (status == WM_OK)
        status = fill_head(join, err);
    if (status == WM_OK &&
        (note_meter(join, name, clock) < 0 || remark_clock(join, clock) < 0))
        status = wm_fail_memory(err, "meter");
    if (status < 0)
        free_buffers(join);
    return status;
}

static int read_next(struct join *join, struct wm_error *err)
{
    struct wm_tick tick;

    int status = wm_recording_next(join->recording, &tick, err);
    join->next.there = status > 0;
    if (status <= 0)
        return status;
    join->next.when_ns = tick.when_ns;
    memcpy(join->next.readings, tick.readings, tick.count * sizeof(*tick.readings));
    return status;
}

/* In the time of the recording. */
static void copy_meter(const struct join *join, const struct wm_tick *tick,
                       struct moment *to)
{
    int64_t shift_ns = join->shift_ns;

    to->when_ns = tick->when_ns + shift_ns;
    for (size_t i = 0; i < tick->count; i++) {
        to->readings[i] = tick->readings[i];
        to->readings[i].when_ns += shift_ns;
    }
}

static void pass(struct join *join)
{
    for (size_t i = 0; i < join->meter_count && join->after.there; i++) {
        if (join->after.readings[i].state == WM_READING_OK)
            join->passed[i] = join->after.readings[i];
    }
}

/* Reads the meter until one of its ticks is not before `when_ns`. */
static int follow_meter(struct join *join, int64_t when_ns, struct wm_error *err)
{
    struct wm_tick tick;

    while (!join->meter_ended && (!join->after.there || join->after.when_ns < when_ns)) {
        int status = wm_recording_next(join->meter, &tick, err);
        if (status < 0)
            return status;
        pass(join);
        struct moment old = join->before;
        join->before = join->after;
        join->after = old;
        join->after.there = status > 0;
        join->meter_ended = status == 0;
        if (status > 0)
            copy_meter(join, &tick, &join->after);
    }
    return WM_OK;
}

/* On the straight line from one reading of the meter to the next. */
static struct wm_reading reading_between(const struct wm_reading *left,
                                         const struct wm_reading *right, int64_t when_ns)
{
    struct wm_reading reading = { when_ns, left->value, WM_READING_OK };

    if (right->when_ns > left->when_ns)
        reading.value += (double)(when_ns - left->when_ns) /
                         (double)(right->when_ns - left->when_ns) *
                         (right->value - left->value);
    return reading;
}

/* The meter's newest reading, with its own time, so that the line goes through what it
 * said and its steps show. The first one and the last are for the very ends of the
 * recording. `shown` is what was given out at the tick before. Where the meter's line ends,
 * its last reading is still given out at the tick after it. */
static struct wm_reading meter_reading(const struct join *join, size_t channel,
                                       const struct wm_reading *shown, int64_t when_ns,
                                       bool is_last)
{
    const struct moment *before = &join->before, *after = &join->after;
    const struct wm_reading *right = &after->readings[channel], *newest = right;
    const struct wm_reading *passed = &join->passed[channel];
    bool goes_on = shown->state == WM_READING_OK;

    if (after->there && right->state == WM_READING_OK && after->when_ns > when_ns)
        newest = &before->readings[channel];
    if (!after->there || right->state != WM_READING_OK ||
        (newest != right && (!before->there || newest->state != WM_READING_OK))) {
        bool is_new = goes_on && passed->when_ns > join->last_ns;
        return is_new ? *passed : (struct wm_reading) { 0 };
    }
    if (is_last || join->last_ns < 0 || (!goes_on && newest->when_ns < join->last_ns))
        return reading_between(newest, right, when_ns);
    return goes_on && newest->when_ns <= shown->when_ns ? *shown : *newest;
}

static void join_meter(struct join *join, int64_t when_ns, bool is_last)
{
    bool known = false;

    for (size_t i = 0; i < join->meter_count; i++) {
        struct wm_reading *reading = &join->readings[join->own_count + i];
        *reading = meter_reading(join, i, reading, when_ns, is_last);
        known = known || reading->state == WM_READING_OK;
    }
    join->ticks++;
    join->joined += known;
}

/* Where something is missing the meter's rest says why: a file that is not in order
 * looks as if it had ended. */
static void read_rest(struct join *join)
{
    struct wm_tick tick;

    while (join->joined < join->ticks && !join->meter_ended)
        join->meter_ended = wm_recording_next(join->meter, &tick, NULL) <= 0;
}

/* What went wrong on both sides. */
static int finish(struct join *join, struct wm_error *err)
{
    const struct wm_result *meter = wm_recording_result(join->meter);
    char *trouble = join->head.result.recording_trouble;
    size_t size = sizeof(join->head.result.recording_trouble);

    if (join->ended)
        return WM_OK;
    int status = copy_result(join, err);
    if (status < 0 || !join->head.has_result)
        return status;
    join->ended = true;
    read_rest(join);
    if (join->joined == 0)
        wm_text_list(trouble, size, "; ",
                     "the meter has no reading that can be used from the time of the "
                     "recording");
    if (meter && meter->recording_trouble[0])
        wm_text_list(trouble, size, "; ", "%s", meter->recording_trouble);
    return WM_OK;
}

static int join_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct join *join = state;
    int status = join->last_ns < 0 ? read_next(join, err) : WM_OK;

    if (status >= 0 && !join->next.there)
        return finish(join, err);
    if (status >= 0)
        status = follow_meter(join, join->next.when_ns, err);
    if (status < 0)
        return status;

    int64_t when_ns = join->next.when_ns;
    memcpy(join->readings, join->next.readings, join->own_count * sizeof(*join->readings));
    status = read_next(join, err);
    if (status < 0)
        return status;
    join_meter(join, when_ns, status == 0);
    join->last_ns = when_ns;
    *ret_tick = (struct wm_tick) {
        .when_ns = when_ns,
        .readings = join->readings,
        .count = join->own_count + join->meter_count,
    };
    return 1;
}

static void join_close(void *state)
{
    struct join *join = state;

    wm_recording_close(join->recording);
    wm_recording_close(join->meter);
    free_buffers(join);
}

static int join_regions(void *state, struct wm_region_batch *ret_batch,
                        struct wm_error *err)
{
    struct join *join = state;

    return wm_recording_regions(join->recording, ret_batch, err);
}

static int join_calls(void *state, struct wm_region_batch *ret_batch, struct wm_error *err)
{
    struct join *join = state;

    return wm_recording_calls(join->recording, ret_batch, err);
}

/* begin() has what it lacks. */
static int join_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    (void)state, (void)path, (void)run, (void)err;
    return WM_OK;
}

static const struct wm_reader_ops reader_join = {
    .name = "a recording and a meter",
    .state_size = sizeof(struct join),
    .open = join_open,
    .next = join_next,
    .regions = join_regions,
    .calls = join_calls,
    .close = join_close,
};

/* Both are read once more for it. */
static int find_clock(const struct wm_recording *recording, const char *path,
                      struct wm_meter_clock *ret_clock, struct wm_error *err)
{
    struct wm_recording *again = NULL, *meter = NULL;

    *ret_clock = (struct wm_meter_clock) { .why = "the recording cannot be read twice" };
    int status = wm_recording_open_again(recording, &again, err);
    if (status == WM_ENODEV)
        return WM_OK;
    if (status == WM_OK)
        status = wm_recording_open(path, WM_LAST_RUN, &meter, err);
    if (status == WM_OK)
        status =
            wm_meter_clock_find(again, meter, shift_between(again, meter), ret_clock, err);
    wm_recording_close(again);
    wm_recording_close(meter);
    return status;
}

/* An offset that was given is taken as it is. */
static int choose_clock(const struct wm_recording *recording, const char *path,
                        int64_t offset_ns, struct clock *ret_clock, struct wm_error *err)
{
    struct clock clock = { .is_searched = offset_ns == WM_METER_OFFSET_AUTO };

    if (offset_ns != 0 && !clock.is_searched) {
        *ret_clock = (struct clock) { .offset_ns = offset_ns };
        return WM_OK;
    }
    int status = find_clock(recording, path, &clock.found, err);
    /* Unasked it is advice, which a file that is read once, as a pipe, goes without. */
    if (!clock.is_searched && status < 0 && status != WM_ECANCELED && status != WM_ENOMEM)
        status = WM_OK;
    if (clock.is_searched && clock.found.is_clear)
        clock.offset_ns = clock.found.offset_ns;
    *ret_clock = clock;
    return status;
}

static bool is_offset(int64_t offset_ns)
{
    return offset_ns == WM_METER_OFFSET_AUTO ||
           (offset_ns <= WM_METER_OFFSET_MAX_NS && offset_ns >= -WM_METER_OFFSET_MAX_NS);
}

int wm_recording_join_meter(struct wm_recording *recording, const char *path,
                            int64_t offset_ns, struct wm_recording **ret_joined,
                            struct wm_error *err)
{
    struct wm_recording *meter = NULL, *joined = NULL;
    struct clock clock;

    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "the recording does not stand at its start");
    if (!is_offset(offset_ns))
        return wm_fail(err, WM_EINVAL, "a meter's offset is a day at most");
    if (wm_recording_is_url(path))
        return wm_fail(err, WM_EINVAL, "the readings of a meter are read from a file");
    int status = wm_recording_open(path, WM_LAST_RUN, &meter, err);
    if (status == WM_OK && !wm_recording_state(meter, &wm_reader_meter))
        status =
            wm_fail(err, WM_EFORMAT, "%s: not the CSV file of a meter", wm_text_path(path));
    if (status == WM_OK)
        status = choose_clock(recording, path, offset_ns, &clock, err);
    if (status == WM_OK)
        status = wm_recording_stand_in(recording, &reader_join, &joined, err);
    if (status == WM_OK)
        status = begin(wm_recording_state(joined, &reader_join), recording, meter, path,
                       &clock, err);
    if (status < 0) {
        wm_recording_close(joined);
        wm_recording_close(meter);
        return status;
    }
    *ret_joined = joined;
    return WM_OK;
}
