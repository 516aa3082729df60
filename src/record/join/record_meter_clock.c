/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_meter_clock.c - by how much a meter's clock is off.
 *
 * The machine's work is known within the run, and outside of it that of the command was
 * none. So the meter's readings are explained by two things: a reading is in the run, and
 * the machine then worked more or less than on average. Of all offsets the one counts at
 * which these explain the most, if no other explains nearly as much.
 */
#include "record/join/record_meter_clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "record/record_stats.h"
#include "source/source_energy.h"

/* Offsets are tried at this part of a window from each other. A window is a period of the
 * meter, or of a quicker one this time. */
#define STEP_WINDOWS 0.25
#define LEAST_WINDOW_S 0.2

/* Offsets up to so many seconds are tried, or up to so many windows, if that is more. */
#define MOST_S 60.0
#define MOST_WINDOWS 5.0
enum { STEPS_MAX = (int)(MOST_S / (STEP_WINDOWS * LEAST_WINDOW_S)) };

/* The work is kept at this part of a window. */
#define WORK_WINDOWS 0.5

/* More points are not compared: in so long a run some seconds hardly matter. */
enum { POINTS_MAX = 1 << 14 };

/* Fewer readings say nothing. */
enum { LEAST_ROWS = 8 };

/* The part of what the readings differ by that has to be explained. */
#define LEAST_EXPLAINED 0.5

/* The best offset has to be better than any other by so much, in the logarithm of the
 * likelihood: e^10 to one. */
#define CLEARLY 10.0

/* What is still open even where all is explained: readings are rounded. */
#define LEAST_OPEN 1e-3

/* What the machine may know of its work, the best first. */
enum { POWER, CPU, TREE, WAYS };

static const char *const way_names[WAYS] = {
    [POWER] = "the machine's own power",
    [CPU] = "the CPUs' use",
    [TREE] = "the command's CPU time",
};

struct point {
    double seconds, value;
};

/* Seconds from the start of the run, and a value: the sum of all work so far, or watts. */
struct points {
    struct point *all;
    size_t count, room;
};

struct part {
    size_t channel;
    int way;
    bool is_counter, is_known;
    double last;
};

struct search {
    int64_t start_ns, last_ns; /* of the recording */
    double window_s, most_s;   /* the offsets that are tried lie within the latter */
    double run_s;
    struct part *parts;
    size_t part_count;
    double sums[WAYS];
    struct points work[WAYS], rows;
};

static int add_point(struct points *points, double seconds, double value)
{
    if (points->count >= POINTS_MAX)
        return 0;
    if (wm_array_reserve(&points->all, points->count, &points->room, sizeof(*points->all)) <
        0)
        return WM_ENOMEM;
    points->all[points->count++] = (struct point) { seconds, value };
    return 1;
}

static bool has_energy(const struct wm_channel *channels, size_t count,
                       const struct wm_channel *of)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(channels[i].device, of->device) == 0 &&
            strcmp(channels[i].source, of->source) == 0 &&
            channels[i].sensor.contains == of->sensor.contains &&
            channels[i].device_kind == of->device_kind &&
            strcmp(channels[i].metric, "energy") == 0)
            return true;
    }
    return false;
}

/* WAYS: it says nothing of the machine's work. What an estimate says it has from the CPUs'
 * use. */
static int way_of(const struct wm_channel *channels, size_t count,
                  const struct wm_channel *channel)
{
    size_t index = (size_t)(channel - channels);

    if (channel->origin != WM_ESTIMATED && wm_energy_is_summed(channels, count, index) &&
        (strcmp(channel->metric, "energy") == 0 || !has_energy(channels, count, channel)))
        return POWER;
    if (strcmp(channel->metric, "cpu_time") != 0)
        return WAYS;
    if (strcmp(channel->device, "host") == 0)
        return CPU;
    return strcmp(channel->device, "tree") == 0 ? TREE : WAYS;
}

static int find_parts(struct search *search, const struct wm_recording *recording)
{
    size_t count;
    const struct wm_channel *channels = wm_recording_channels(recording, &count);

    search->parts = calloc(count + 1, sizeof(*search->parts));
    if (!search->parts)
        return WM_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int way = way_of(channels, count, &channels[i]);
        if (way == WAYS)
            continue;
        search->parts[search->part_count++] = (struct part) {
            .channel = i,
            .way = way,
            .is_counter = channels[i].kind == WM_COUNTER,
        };
    }
    return WM_OK;
}

static void add_work(struct search *search, const struct wm_tick *tick)
{
    double seconds = wm_stats_seconds(search->last_ns, tick->when_ns);

    for (size_t i = 0; i < search->part_count; i++) {
        struct part *part = &search->parts[i];
        const struct wm_reading *reading = &tick->readings[part->channel];
        if (!wm_stats_usable(reading))
            continue;
        if (!part->is_counter)
            search->sums[part->way] += reading->value * seconds;
        else if (part->is_known)
            search->sums[part->way] += fmax(reading->value - part->last, 0);
        part->is_known = true;
        part->last = reading->value;
    }
}

/* Ticks that are close to each other are one point. 0: there are too many of them. */
static int read_work(struct search *search, struct wm_recording *recording,
                     struct wm_error *err)
{
    double least_s = WORK_WINDOWS * search->window_s, kept_s = -least_s;
    struct wm_tick tick;
    int status, kept = 1;

    search->start_ns = -1;
    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        if (search->start_ns < 0)
            search->start_ns = search->last_ns = tick.when_ns;
        add_work(search, &tick);
        search->last_ns = tick.when_ns;
        search->run_s = wm_stats_seconds(search->start_ns, tick.when_ns);
        if (search->run_s - kept_s < least_s)
            continue;
        kept_s = search->run_s;
        for (int way = 0; way < WAYS && kept > 0; way++)
            kept = add_point(&search->work[way], search->run_s, search->sums[way]);
        if (kept <= 0)
            return kept < 0 ? wm_fail_memory(err, "meter") : 0;
    }
    return status < 0 ? status : 1;
}

/* All columns together; false where none is known. */
static bool sum_columns(const struct wm_tick *tick, double *ret_watts)
{
    bool is_known = false;

    *ret_watts = 0;
    for (size_t i = 0; i < tick->count; i++) {
        if (!wm_stats_usable(&tick->readings[i]))
            continue;
        *ret_watts += tick->readings[i].value;
        is_known = true;
    }
    return is_known;
}

/* The readings around the run; those of a window are one point, at their mean. */
static int read_rows(struct search *search, struct wm_recording *meter, int64_t shift_ns,
                     struct wm_error *err)
{
    double around_s = search->most_s + search->window_s, seconds_sum = 0, watts_sum = 0;
    double watts, from_s = 0, count = 0;
    struct wm_tick tick;
    int status, kept = 1;

    while ((status = wm_recording_next(meter, &tick, err)) > 0) {
        double seconds = (double)(tick.when_ns + shift_ns - search->start_ns) / 1e9;
        if (seconds < -around_s || seconds > search->run_s + around_s ||
            !sum_columns(&tick, &watts))
            continue;
        if (count > 0 && seconds - from_s > (1 - STEP_WINDOWS) * search->window_s) {
            kept = add_point(&search->rows, seconds_sum / count, watts_sum / count);
            seconds_sum = watts_sum = count = 0;
        }
        if (kept <= 0)
            return kept < 0 ? wm_fail_memory(err, "meter") : 0;
        from_s = count > 0 ? from_s : seconds;
        seconds_sum += seconds;
        watts_sum += watts;
        count++;
    }
    return status < 0 ? status : 1;
}

/* The sum of all work at that time. `at` is where to look from: times only grow. */
static double sum_at(const struct points *work, double seconds, size_t *at)
{
    const struct point *all = work->all, *last = &all[work->count - 1];

    if (seconds <= all[0].seconds)
        return all[0].value;
    if (seconds >= last->seconds)
        return last->value;
    while (all[*at + 1].seconds <= seconds)
        (*at)++;
    const struct point *left = &all[*at], *right = left + 1;
    return left->value + (right->value - left->value) * (seconds - left->seconds) /
                             (right->seconds - left->seconds);
}

/* Of two series, for their correlation. */
struct moments {
    double x, xx, y, yy, xy;
};

static void add_moments(struct moments *moments, double x, double y)
{
    moments->x += x;
    moments->xx += x * x;
    moments->y += y;
    moments->yy += y * y;
    moments->xy += x * y;
}

/* The part of y's variance that goes up with x; what goes down with it is by chance. */
static double explained(const struct moments *moments, double count)
{
    double xx = moments->xx - moments->x * moments->x / count;
    double yy = moments->yy - moments->y * moments->y / count;
    double xy = moments->xy - moments->x * moments->y / count;

    return xy > 0 && xx > 1e-9 * moments->xx && yy > 1e-9 * moments->yy
               ? xy * xy / (xx * yy)
               : 0;
}

/* The part of what the readings differ by that is open at an offset. */
static double open_at(const struct search *search, const struct points *work,
                      double offset_s)
{
    double count = (double)search->rows.count, window_s = search->window_s;
    double mean = work->all[work->count - 1].value / search->run_s;
    struct moments presence = { 0 }, effort = { 0 };
    size_t from_at = 0, to_at = 0;

    for (size_t i = 0; i < search->rows.count; i++) {
        double watts = search->rows.all[i].value;
        double from_s = search->rows.all[i].seconds + offset_s - window_s / 2;
        double to_s = from_s + window_s;
        double inside_s = fmin(to_s, search->run_s) - fmax(from_s, 0);
        double part = fmax(inside_s, 0) / window_s;
        double done = sum_at(work, to_s, &to_at) - sum_at(work, from_s, &from_at);
        add_moments(&presence, part, watts);
        add_moments(&effort, done / window_s - mean * part, watts);
    }
    return fmax(1 - explained(&presence, count) - explained(&effort, count), LEAST_OPEN);
}

/* Where it is clear, the offset; else why it is not. */
static void choose(const struct search *search, const struct points *work,
                   struct wm_meter_clock *clock)
{
    double step_s = STEP_WINDOWS * search->window_s, count = (double)search->rows.count;
    int steps = (int)fmin(search->most_s / step_s, STEPS_MAX), best = -steps;
    double all[2 * STEPS_MAX + 1] = { 0 }, *open = &all[STEPS_MAX];

    for (int i = -steps; i <= steps; i++) {
        open[i] = open_at(search, work, i * step_s);
        best = open[i] < open[best] ? i : best;
    }
    clock->why = "at no offset does its power follow it";
    if (1 - open[best] < LEAST_EXPLAINED)
        return;
    clock->why = "several offsets fit nearly as well";
    for (int i = -steps; i <= steps; i++) {
        if (abs(i - best) * STEP_WINDOWS > 1 && count * log(open[i] / open[best]) < CLEARLY)
            return;
    }
    clock->is_clear = true;
    clock->why = NULL;
    clock->offset_ns = llround(best * step_s * 1e9);
}

static void compare(const struct search *search, struct wm_meter_clock *clock)
{
    int way = 0;

    while (way < WAYS && search->sums[way] <= 0)
        way++;
    clock->why = "nothing is known of the machine's work";
    if (way == WAYS)
        return;
    clock->by = way_names[way];
    clock->why = "the run is shorter than three periods of the meter";
    if (search->run_s < WM_SENSOR_PERIODS * search->window_s)
        return;
    clock->why = "there are too few readings around the run";
    if (search->rows.count >= LEAST_ROWS && search->work[way].count >= 2)
        choose(search, &search->work[way], clock);
}

static void release(struct search *search)
{
    for (int way = 0; way < WAYS; way++)
        free(search->work[way].all);
    free(search->rows.all);
    free(search->parts);
}

int wm_meter_clock_find(struct wm_recording *recording, struct wm_recording *meter,
                        int64_t shift_ns, struct wm_meter_clock *ret_clock,
                        struct wm_error *err)
{
    int64_t period_ns = wm_recording_run(meter)->interval_ns;
    struct wm_meter_clock clock = { .period_ns = period_ns,
                                    .why = "its period is unknown" };
    double window_s = fmax((double)period_ns / 1e9, LEAST_WINDOW_S);
    struct search search = {
        .window_s = window_s,
        .most_s = fmax(MOST_S, MOST_WINDOWS * window_s),
    };
    int status = 1;

    if (period_ns <= 0) {
        *ret_clock = clock;
        return WM_OK;
    }
    if (find_parts(&search, recording) < 0)
        status = wm_fail_memory(err, "meter");
    if (status > 0)
        status = read_work(&search, recording, err);
    if (status > 0)
        status = read_rows(&search, meter, shift_ns, err);
    clock.why = "there are too many samples to compare";
    if (status > 0)
        compare(&search, &clock);
    release(&search);
    if (status < 0)
        return status;
    *ret_clock = clock;
    return WM_OK;
}
