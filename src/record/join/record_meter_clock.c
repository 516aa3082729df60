/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_meter_clock.c - by how much a meter's clock is off: a plain cross-correlation.
 *
 * The machine's work is known within the run, and outside of it that of the command was
 * none. Of all offsets the one counts at which the meter's readings follow the work best,
 * if no other fits nearly as well.
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

/* Longer runs are not compared: in them some seconds hardly matter. Fewer readings say
 * nothing. */
enum { CELLS_MAX = 1 << 15, ROWS_MAX = 1 << 14, LEAST_ROWS = 8 };

/* The part of the readings' variance that has to be explained; and how much better the best
 * offset has to be than any other, in the logarithm of the likelihood: e^10 to one. */
#define LEAST_EXPLAINED 0.5
#define LIKELIHOOD_MARGIN 10.0

/* What is still open even where all is explained: readings are rounded. */
#define LEAST_OPEN 1e-3

/* What the machine may know of its work, the best first. */
enum { POWER, CPU, TREE, WAYS };

static const char *const way_names[WAYS] = {
    [POWER] = "the machine's own power",
    [CPU] = "the CPUs' use",
    [TREE] = "the command's CPU time",
};

/* All work up to the end of a cell, which is a step long. */
struct cell {
    double sums[WAYS];
};

/* The meter's readings of a window, summed. */
struct row {
    double seconds, watts, count;
};

/* Of two series, for their correlation. */
struct moments {
    double x, xx, y, yy, xy;
};

struct part {
    size_t channel;
    int way;
    bool is_counter, is_known;
    double last;
};

struct search {
    double step_s, window_s, most_s, run_s; /* offsets lie within `most_s` */
    int64_t start_ns;
    struct part *parts;
    struct cell *work;
    struct row *rows;
    size_t part_count, work_count, work_room, row_count, row_room;
};

/* WAYS: it says nothing of the machine's work. An estimate is made of the CPUs' use. */
static int way_of(const struct wm_channel *channels, size_t count, size_t index)
{
    const struct wm_channel *channel = &channels[index];

    if (channel->origin != WM_ESTIMATED && wm_energy_is_summed(channels, count, index))
        return POWER;
    if (strcmp(channel->metric, "cpu_time") != 0)
        return WAYS;
    return strcmp(channel->device, "host") == 0   ? CPU
           : strcmp(channel->device, "tree") == 0 ? TREE
                                                  : WAYS;
}

static int find_parts(struct search *search, const struct wm_recording *recording,
                      struct wm_error *err)
{
    size_t count;
    const struct wm_channel *channels = wm_recording_channels(recording, &count);

    search->parts = calloc(count + 1, sizeof(*search->parts));
    if (!search->parts)
        return wm_fail_memory(err, "meter");
    for (size_t i = 0; i < count; i++) {
        int way = way_of(channels, count, i);
        if (way != WAYS)
            search->parts[search->part_count++] = (struct part) {
                .channel = i, .way = way, .is_counter = channels[i].kind == WM_COUNTER
            };
    }
    return WM_OK;
}

static void add_work(struct search *search, const struct wm_tick *tick, double seconds,
                     struct cell *sum)
{
    for (size_t i = 0; i < search->part_count; i++) {
        struct part *part = &search->parts[i];
        const struct wm_reading *reading = &tick->readings[part->channel];
        if (!wm_stats_usable(reading))
            continue;
        if (!part->is_counter)
            sum->sums[part->way] += reading->value * seconds;
        else if (part->is_known)
            sum->sums[part->way] += fmax(reading->value - part->last, 0);
        part->is_known = true;
        part->last = reading->value;
    }
}

/* Fills the cells that end between two ticks, on the line from one sum to the other. 1, or
 * 0 where there are too many. */
static int fill_cells(struct search *search, const struct cell *old, const struct cell *sum,
                      double from_s, double to_s)
{
    double end_s;

    while ((end_s = (double)search->work_count * search->step_s) <= to_s) {
        double part = to_s > from_s ? (end_s - from_s) / (to_s - from_s) : 1;
        if (search->work_count == CELLS_MAX)
            return 0;
        if (wm_array_reserve(&search->work, search->work_count, &search->work_room,
                             sizeof(*search->work)) < 0)
            return WM_ENOMEM;
        struct cell *cell = &search->work[search->work_count++];
        for (int way = 0; way < WAYS; way++)
            cell->sums[way] = old->sums[way] + part * (sum->sums[way] - old->sums[way]);
    }
    return 1;
}

/* 1, or 0 where the run is too long. */
static int read_work(struct search *search, struct wm_recording *recording,
                     struct wm_error *err)
{
    struct cell sum = { { 0 } };
    struct wm_tick tick;
    int status;

    search->start_ns = -1;
    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        struct cell old = sum;
        if (search->start_ns < 0)
            search->start_ns = tick.when_ns;
        double to_s = wm_stats_seconds(search->start_ns, tick.when_ns);
        add_work(search, &tick, to_s - search->run_s, &sum);
        int filled = fill_cells(search, &old, &sum, search->run_s, to_s);
        if (filled <= 0)
            return filled < 0 ? wm_fail_memory(err, "meter") : 0;
        search->run_s = to_s;
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

/* The readings around the run. 1, or 0 where there are too many. */
static int read_rows(struct search *search, struct wm_recording *meter, int64_t shift_ns,
                     struct wm_error *err)
{
    double around_s = search->most_s + search->window_s, from_s = -INFINITY;
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(meter, &tick, err)) > 0) {
        double seconds = (double)(tick.when_ns + shift_ns - search->start_ns) / 1e9;
        double watts;
        if (seconds < -around_s || seconds > search->run_s + around_s ||
            !sum_columns(&tick, &watts))
            continue;
        if (seconds - from_s > (1 - STEP_WINDOWS) * search->window_s) {
            if (search->row_count == ROWS_MAX)
                return 0;
            if (wm_array_reserve(&search->rows, search->row_count, &search->row_room,
                                 sizeof(*search->rows)) < 0)
                return wm_fail_memory(err, "meter");
            search->rows[search->row_count++] = (struct row) { 0 };
            from_s = seconds;
        }
        struct row *row = &search->rows[search->row_count - 1];
        row->watts += watts;
        row->seconds += seconds;
        row->count++;
    }
    return status < 0 ? status : 1;
}

/* The sum of all work at that time. */
static double sum_at(const struct search *search, int way, double seconds)
{
    double at = fmin(fmax(seconds / search->step_s, 0), (double)(search->work_count - 1));
    size_t left = (size_t)at, right = left + 1 < search->work_count ? left + 1 : left;
    double from = search->work[left].sums[way], to = search->work[right].sums[way];

    return from + (at - (double)left) * (to - from);
}

/* The part of the readings' variance that is open at an offset. What goes down with the
 * work does so by chance. */
static double open_at(const struct search *search, int way, double offset_s)
{
    double count = (double)search->row_count;
    struct moments m = { 0 };

    for (size_t i = 0; i < search->row_count; i++) {
        const struct row *row = &search->rows[i];
        double from_s = row->seconds / row->count + offset_s - search->window_s / 2;
        double x =
            sum_at(search, way, from_s + search->window_s) - sum_at(search, way, from_s);
        double y = row->watts / row->count;
        m.x += x, m.xx += x * x, m.y += y, m.yy += y * y, m.xy += x * y;
    }
    double xx = m.xx - m.x * m.x / count, yy = m.yy - m.y * m.y / count;
    double xy = m.xy - m.x * m.y / count;
    if (xy <= 0 || xx <= 1e-9 * m.xx || yy <= 1e-9 * m.yy)
        return 1;
    return fmax(1 - xy * xy / (xx * yy), LEAST_OPEN);
}

/* Where it is clear, the offset; else why it is not. */
static void choose(const struct search *search, int way, struct wm_meter_clock *clock)
{
    int steps = (int)fmin(search->most_s / search->step_s, STEPS_MAX), best = -steps;
    double all[2 * STEPS_MAX + 1] = { 0 }, *open = &all[STEPS_MAX];

    for (int i = -steps; i <= steps; i++) {
        open[i] = open_at(search, way, i * search->step_s);
        best = open[i] < open[best] ? i : best;
    }
    clock->why = "at no offset does its power follow it";
    if (1 - open[best] < LEAST_EXPLAINED)
        return;
    clock->why = "several offsets fit nearly as well";
    for (int i = -steps; i <= steps; i++) {
        if (abs(i - best) * STEP_WINDOWS > 1 &&
            (double)search->row_count * log(open[i] / open[best]) < LIKELIHOOD_MARGIN)
            return;
    }
    clock->is_clear = true;
    clock->why = NULL;
    clock->offset_ns = llround(best * search->step_s * 1e9);
}

static void compare(const struct search *search, struct wm_meter_clock *clock)
{
    int way = 0;

    while (way < WAYS &&
           (search->work_count == 0 || search->work[search->work_count - 1].sums[way] <= 0))
        way++;
    clock->why = "nothing is known of the machine's work";
    if (way == WAYS)
        return;
    clock->by = way_names[way];
    clock->why = "the run is shorter than three periods of the meter";
    if (search->run_s < WM_SENSOR_PERIODS * search->window_s)
        return;
    clock->why = "there are too few readings around the run";
    if (search->row_count >= LEAST_ROWS)
        choose(search, way, clock);
}

int wm_meter_clock_find(struct wm_recording *recording, struct wm_recording *meter,
                        int64_t shift_ns, struct wm_meter_clock *ret_clock,
                        struct wm_error *err)
{
    int64_t period_ns = wm_recording_run(meter)->interval_ns;
    double window_s = fmax((double)period_ns / 1e9, LEAST_WINDOW_S);
    struct wm_meter_clock clock = { .period_ns = period_ns };
    struct search search = {
        .window_s = window_s,
        .step_s = STEP_WINDOWS * window_s,
        .most_s = fmax(MOST_S, MOST_WINDOWS * window_s),
    };

    clock.why = "its period is unknown";
    int status = period_ns > 0 ? find_parts(&search, recording, err) : 0;
    if (period_ns > 0 && status == WM_OK) {
        clock.why = "there are too many samples to compare";
        status = read_work(&search, recording, err);
        if (status > 0)
            status = read_rows(&search, meter, shift_ns, err);
        if (status > 0)
            compare(&search, &clock);
    }
    free(search.parts);
    free(search.work);
    free(search.rows);
    if (status < 0)
        return status;
    *ret_clock = clock;
    return WM_OK;
}
