/* SPDX-License-Identifier: Apache-2.0 */
/* read_join.c - a recording, and what a meter saw meanwhile. */
#include "record/read_join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/read.h"
#include "record/record_column.h"
#include "record/record_text.h"

/* A tick of the meter, copied. */
struct moment {
    bool there;
    int64_t unix_ns;
    struct wm_reading *readings;
};

struct join {
    struct wm_recording *recording, *meter;
    struct wm_run run;
    struct wm_result result;
    bool has_result;
    struct wm_channel *channels;
    size_t own_count, meter_count; /* of the channels */
    struct wm_reading *readings;
    struct moment before, after; /* on both sides of the tick */
    bool meter_ended;
    uint64_t joined; /* ticks for which the meter had something to say */
};

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "meter: out of memory");
}

static int64_t unix_time(const struct wm_run *run, int64_t when_ns)
{
    return run->anchor_unix_ns - run->anchor_ns + when_ns;
}

static int make_buffers(struct join *join, struct wm_error *err)
{
    size_t own = join->own_count, meter = join->meter_count;
    const struct wm_channel *channels;
    size_t count;

    join->channels = calloc(own + meter, sizeof(*join->channels));
    join->readings = calloc(own + meter, sizeof(*join->readings));
    join->before.readings = calloc(meter, sizeof(*join->before.readings));
    join->after.readings = calloc(meter, sizeof(*join->after.readings));
    if (!join->channels || !join->readings || !join->before.readings ||
        !join->after.readings)
        return out_of_memory(err);
    channels = wm_recording_channels(join->recording, &count);
    for (size_t i = 0; i < own; i++)
        join->channels[i] = channels[i];
    channels = wm_recording_channels(join->meter, &count);
    for (size_t i = 0; i < meter; i++)
        join->channels[own + i] = channels[i];
    return WM_OK;
}

/* All but the recordings, which only a success makes ours. */
static void free_buffers(struct join *join)
{
    wm_run_release(&join->run);
    wm_result_release(&join->result);
    free(join->channels);
    free(join->readings);
    free(join->before.readings);
    free(join->after.readings);
    *join = (struct join) { 0 };
}

int wm_join_init(void *state, struct wm_recording *recording, struct wm_recording *meter,
                 const char *name, struct wm_error *err)
{
    struct join *join = state;

    *join = (struct join) {
        .recording = recording,
        .meter = meter,
        .own_count = wm_recording_channel_count(recording),
        .meter_count = wm_recording_channel_count(meter),
    };
    if (join->own_count + join->meter_count > WM_CHANNELS_MAX)
        return wm_fail(err, WM_EINVAL,
                       "the recording has no room for the meter's channels");

    int status = make_buffers(join, err);
    if (status == WM_OK)
        status = wm_run_copy(wm_recording_run(recording), &join->run, err);
    if (status == WM_OK &&
        wm_run_set_note(&join->run, "meter", "%s, joined by the time of day",
                        wm_text_path(name)) < 0)
        status = out_of_memory(err);
    if (status < 0)
        free_buffers(join);
    return status;
}

static size_t join_run_count(const void *state)
{
    return wm_recording_run_count(((const struct join *)state)->recording);
}

static const struct wm_run *join_run(const void *state)
{
    return &((const struct join *)state)->run;
}

static const struct wm_result *join_result(const void *state)
{
    const struct join *join = state;

    return join->has_result ? &join->result : wm_recording_result(join->recording);
}

static size_t join_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct join *join = state;

    *ret_channels = join->channels;
    return join->own_count + join->meter_count;
}

static size_t join_gaps(const void *state, const struct wm_gap **ret_gaps)
{
    return wm_recording_gaps(((const struct join *)state)->recording, ret_gaps);
}

/* Reads the meter until one of its readings is not before `unix_ns`. */
static int follow_meter(struct join *join, int64_t unix_ns, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(join->meter);
    struct wm_tick tick;

    while (!join->meter_ended && (!join->after.there || join->after.unix_ns < unix_ns)) {
        int status = wm_recording_next(join->meter, &tick, err);
        if (status < 0)
            return status;
        struct moment passed = join->before;
        join->before = join->after;
        join->after = passed;
        join->after.there = status > 0;
        join->meter_ended = status == 0;
        if (status == 0)
            break;
        join->after.unix_ns = unix_time(run, tick.when_ns);
        memcpy(join->after.readings, tick.readings, tick.count * sizeof(*tick.readings));
    }
    return WM_OK;
}

static struct wm_reading meter_reading(const struct join *join, size_t channel,
                                       int64_t unix_ns, int64_t when_ns)
{
    const struct moment *before = &join->before, *after = &join->after;
    const struct wm_reading *right = &after->readings[channel];
    struct wm_reading reading = { 0 };

    if (!after->there || right->state != WM_READING_OK)
        return reading;
    reading = (struct wm_reading) { when_ns, right->value, WM_READING_OK };
    if (after->unix_ns == unix_ns)
        return reading;

    const struct wm_reading *left = &before->readings[channel];
    if (!before->there || left->state != WM_READING_OK || before->unix_ns > unix_ns)
        return (struct wm_reading) { 0 };
    double part =
        (double)(unix_ns - before->unix_ns) / (double)(after->unix_ns - before->unix_ns);
    reading.value = left->value + part * (right->value - left->value);
    return reading;
}

/* The last reading of the meter may be the very time of the tick. */
static void join_meter(struct join *join, int64_t when_ns)
{
    int64_t unix_ns = unix_time(&join->run, when_ns);
    bool known = false;

    for (size_t i = 0; i < join->meter_count; i++) {
        struct wm_reading *reading = &join->readings[join->own_count + i];
        *reading = meter_reading(join, i, unix_ns, when_ns);
        known = known || reading->state == WM_READING_OK;
    }
    join->joined += known;
}

static void add_trouble(struct wm_result *result, const char *text)
{
    char *trouble = result->recording_trouble;
    size_t used = strlen(trouble);

    if (text[0])
        snprintf(trouble + used, sizeof(result->recording_trouble) - used, "%s%s",
                 used > 0 ? "; " : "", text);
}

/* What went wrong on both sides. */
static int finish(struct join *join, struct wm_error *err)
{
    const struct wm_result *own = wm_recording_result(join->recording);
    const struct wm_result *meter = wm_recording_result(join->meter);

    if (!own || join->has_result)
        return WM_OK;
    int status = wm_result_copy(own, &join->result, err);
    if (status < 0)
        return status;
    join->has_result = true;
    if (join->joined == 0)
        add_trouble(&join->result,
                    "the meter has no reading from the time of the recording");
    if (meter)
        add_trouble(&join->result, meter->recording_trouble);
    return WM_OK;
}

static int join_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct join *join = state;
    struct wm_tick tick;

    int status = wm_recording_next(join->recording, &tick, err);
    if (status == 0)
        return finish(join, err);
    if (status > 0)
        status = follow_meter(join, unix_time(&join->run, tick.when_ns), err);
    if (status < 0)
        return status;

    memcpy(join->readings, tick.readings, tick.count * sizeof(*tick.readings));
    join_meter(join, tick.when_ns);
    *ret_tick = (struct wm_tick) {
        .when_ns = tick.when_ns,
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

const struct wm_reader_ops wm_reader_join = {
    .name = "a recording and a meter",
    .state_size = sizeof(struct join),
    .run_count = join_run_count,
    .run = join_run,
    .result = join_result,
    .channels = join_channels,
    .gaps = join_gaps,
    .next = join_next,
    .close = join_close,
};
