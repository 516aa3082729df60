/* SPDX-License-Identifier: Apache-2.0 */
/* test_energy.c - joules of made-up GPUs, honest ones and others. */
#include <math.h>

#include "analyze/energy/analyze_energy.h"
#include "record/record_stats.h"
#include "test.h"

#define MAX_TICKS 12
#define NONE NAN /* a reading that failed */

/* Ticks are one step apart; a GPU without a counter, or without power, has
 * nothing but NONE there. */
static const struct row {
    const char *name;
    int64_t step_ms;   /* 0: 1000 */
    int64_t period_ms; /* 0: 100; -1: unknown */
    double range;      /* the highest power that the driver allows; 0: unknown */
    size_t ticks;
    double counter[MAX_TICKS];
    double power[MAX_TICKS];

    enum wm_energy_method method;
    double joules, missing_s, filled_s;
    bool is_short, stuck;
    uint64_t resets, implausible, stalls;
    bool compared; /* counter and power, */
    double gap;    /* and how far they differ */
} rows[] = {
    {
        .name = "a counter and its power",
        .ticks = 4,
        .counter = { 50, 150, 250, 350 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 300,
        .compared = true,
    },
    {
        .name = "a counter alone",
        .ticks = 4,
        .counter = { 50, 150, 250, 350 },
        .power = { NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 300,
    },
    {
        .name = "power alone",
        .ticks = 4,
        .counter = { NONE, NONE, NONE, NONE },
        .power = { 100, 200, 200, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 500,
    },
    {
        .name = "nothing at all",
        .ticks = 3,
        .counter = { NONE, NONE, NONE },
        .power = { NONE, NONE, NONE },
        .method = WM_ENERGY_UNKNOWN,
    },
    {
        .name = "one tick",
        .ticks = 1,
        .counter = { 50 },
        .power = { 100 },
        .method = WM_ENERGY_UNKNOWN,
        .is_short = true,
    },
    {
        .name = "power once",
        .ticks = 2,
        .counter = { NONE, NONE },
        .power = { 100, NONE },
        .method = WM_ENERGY_UNKNOWN,
    },
    {
        .name = "no new value at each tick",
        .step_ms = 50,
        .ticks = 7,
        .counter = { 0, 0, 10, 10, 20, 20, 30 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 30,
        .compared = true,
    },
    {
        .name = "counter and power differ",
        .ticks = 3,
        .counter = { 0, 100, 200 },
        .power = { 125, 125, 125 },
        .method = WM_ENERGY_COUNTER,
        .joules = 200,
        .compared = true,
        .gap = 0.25,
    },
    {
        .name = "never moves, power is drawn",
        .ticks = 3,
        .counter = { 0, 0, 0 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 200,
        .stuck = true,
    },
    {
        .name = "never moves in a short run",
        .step_ms = 20,
        .ticks = 3,
        .counter = { 7, 7, 7 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 4,
        .is_short = true,
    },
    {
        .name = "never moves, and no power is drawn",
        .ticks = 3,
        .counter = { 7, 7, 7 },
        .power = { 0, 0, 0 },
        .method = WM_ENERGY_COUNTER,
    },
    {
        .name = "never moves, and power is not known",
        .ticks = 3,
        .counter = { 7, 7, 7 },
        .power = { NONE, NONE, NONE },
        .method = WM_ENERGY_UNKNOWN,
    },
    {
        .name = "stands still until the end",
        .step_ms = 500,
        .ticks = 6,
        .counter = { 0, 50, 100, 100, 100, 100 },
        .power = { 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 250,
        .filled_s = 1.5,
        .stuck = true,
        .compared = true,
    },
    {
        .name = "stands still, then is gone",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, NONE, NONE },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2.5,
        .stuck = true,
        .compared = true,
    },
    {
        .name = "stands still until the end, half of it without power",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 50, 50 },
        .power = { 100, 100, 100, 100, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 150,
        .missing_s = 1.5,
        .filled_s = 1,
        .stuck = true,
        .compared = true,
    },
    {
        .name = "stands still until the end, but draws nothing",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 50, 50 },
        .power = { 100, 0, 0, 0, 0, 0, 0 },
        .method = WM_ENERGY_COUNTER,
        .joules = 50 - 5, /* of before the start */
        .compared = true,
        .gap = 1 - (25 - 10) / 45.0,
    },
    {
        .name = "stands still until the end, and power is not known",
        .step_ms = 500,
        .ticks = 5,
        .counter = { 0, 50, 50, 50, 50 },
        .power = { NONE, NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 50,
    },
    {
        .name = "stands still and catches up",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 250, 300 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 300,
        .compared = true,
    },
    {
        .name = "stands still from the start and catches up",
        .step_ms = 500,
        .ticks = 6,
        .counter = { 7, 7, 7, 7, 207, 257 },
        .power = { 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 250,
        .compared = true,
    },
    {
        .name = "stands still and catches up just enough",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 210, 260 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 260,
        .compared = true,
        .gap = 40 / 260.0,
    },
    {
        .name = "stands still and catches up not quite",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 209, 259 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2,
        .stalls = 1,
        .compared = true,
    },
    {
        .name = "stands still and goes on as if nothing had been",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 100, 150 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2,
        .stalls = 1,
        .compared = true,
    },
    {
        .name = "stands still twice, and catches up once",
        .step_ms = 500,
        .ticks = 10,
        .counter = { 0, 0, 0, 0, 200, 200, 200, 200, 250, 300 },
        .power = { 100, 100, 100, 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 450,
        .filled_s = 2,
        .stalls = 1,
        .compared = true,
    },
    {
        .name = "stands still, goes on, and stands still until the end",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 0, 0, 50, 50, 50, 50 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 3,
        .stalls = 1,
        .stuck = true,
        .compared = true,
    },
    {
        .name = "stands still, and then a hole",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, NONE, 250, 300 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 300,
        .compared = true,
    },
    {
        .name = "stands still and is set back",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 900, 950, 950, 950, 950, 20, 70 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2,
        .resets = 1,
        .compared = true,
    },
    {
        .name = "stands still and jumps beyond all boards",
        .step_ms = 500,
        .ticks = 7,
        .counter = { 0, 50, 50, 50, 50, 1e9, 1e9 + 50 },
        .power = { 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2,
        .implausible = 1,
        .compared = true,
    },
    {
        .name = "steps as slow as the ticks are no stall",
        .step_ms = 5000,
        .ticks = 3,
        .counter = { 0, 500, 1000 },
        .power = { 200, 200, 200 },
        .method = WM_ENERGY_COUNTER,
        .joules = 1000,
        .compared = true,
        .gap = 1,
    },
    {
        .name = "seen once, at the end",
        .ticks = 3,
        .counter = { NONE, NONE, 7 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 200,
    },
    {
        .name = "stands still for less than a second",
        .step_ms = 300,
        .ticks = 6,
        .counter = { 0, 30, 30, 30, 120, 150 },
        .power = { 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 150,
        .compared = true,
    },
    {
        .name = "stands still for less than five periods",
        .period_ms = 500,
        .ticks = 6,
        .counter = { 0, 100, 100, 100, 400, 500 },
        .power = { 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 500,
        .compared = true,
    },
    {
        .name = "set back to zero",
        .ticks = 4,
        .counter = { 900, 1000, 30, 130 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 1,
        .resets = 1,
        .compared = true,
    },
    {
        .name = "set back twice",
        .ticks = 5,
        .counter = { 900, 30, 130, 20, 120 },
        .power = { 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 400,
        .filled_s = 2,
        .resets = 2,
        .compared = true,
    },
    {
        .name = "set back without power: a lower bound",
        .ticks = 4,
        .counter = { 900, 1000, 30, 130 },
        .power = { NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 230,
        .missing_s = 1,
        .resets = 1,
    },
    {
        .name = "set back to a huge value",
        .ticks = 3,
        .counter = { 9e15, 8e15, 8e15 + 100 },
        .power = { NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 100,
        .missing_s = 1,
        .resets = 1,
    },
    {
        .name = "a 32-bit counter of millijoules runs over",
        .ticks = 4,
        .counter = { 4294800, 4294900, 33, 133 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 1,
        .resets = 1,
        .compared = true,
    },
    {
        .name = "jumps beyond all boards",
        .ticks = 4,
        .counter = { 0, 100, 1e9, 1e9 + 100 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 1,
        .implausible = 1,
        .compared = true,
    },
    {
        .name = "jumps beyond all boards, without power",
        .ticks = 4,
        .counter = { 0, 100, 1e9, 1e9 + 100 },
        .power = { NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 200,
        .missing_s = 1,
        .implausible = 1,
    },
    {
        .name = "twice the limit in a step of two periods",
        .step_ms = 100,
        .range = 300,
        .ticks = 4,
        .counter = { 0, 60, 90, 120 },
        .power = { NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 120 - 300 * 0.05,
    },
    {
        .name = "many times the limit, without power",
        .range = 328,
        .ticks = 4,
        .counter = { 0, 3900, 7800, 11700 },
        .power = { NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 0,
        .missing_s = 3,
        .implausible = 3,
    },
    {
        .name = "many times the limit, and power",
        .range = 328,
        .ticks = 4,
        .counter = { 0, 3900, 7800, 11700 },
        .power = { 200, 200, 200, 200 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 600,
        .filled_s = 3,
        .implausible = 3,
        .compared = true,
    },
    {
        .name = "power of many times the limit",
        .range = 328,
        .ticks = 4,
        .counter = { NONE, NONE, NONE, NONE },
        .power = { 200, 3900, 200, 200 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 200,
        .missing_s = 2,
    },
    {
        .name = "jumps beyond ten times the power",
        .ticks = 4,
        .counter = { 0, 100, 1200, 1300 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 1,
        .implausible = 1,
        .compared = true,
    },
    {
        .name = "stands still and jumps beyond ten times the power, which is not told",
        .ticks = 6,
        .counter = { 0, 100, 100, 100, 9100, 9200 },
        .power = { 100, 100, NONE, NONE, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 200,
        .missing_s = 3,
        .implausible = 1,
        .compared = true,
    },
    {
        .name = "just below ten times the power",
        .ticks = 3,
        .counter = { 0, 900, 1000 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 1000,
        .compared = true,
        .gap = 0.8,
    },
    {
        .name = "power that lags behind a load",
        .step_ms = 100,
        .ticks = 5,
        .counter = { 0, 1, 41, 81, 121 },
        .power = { 10, 10, 20, 400, 400 },
        .method = WM_ENERGY_COUNTER,
        .joules = 121 - 10 * 0.05 + 400 * 0.05,
        .compared = true,
        .gap = 1 - (1 + 1.5 + 21 + 40 + 39) / 140.5,
    },
    {
        .name = "more jumps than can be kept in mind",
        .ticks = 12,
        .counter = { 0, 2e3, 4e3, 6e3, 8e3, 10e3, 12e3, 14e3, 16e3, 18e3, 20e3, 22e3 },
        .power = { 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 1100,
        .filled_s = 11,
        .implausible = 11,
        .compared = true,
    },
    {
        .name = "a fast tick right after a slow counter's step",
        .step_ms = 1,
        .ticks = 3,
        .counter = { 0, 10, 10 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 0.2,
        .is_short = true,
        .compared = true,
    },
    {
        .name = "a hole in the counter costs nothing",
        .ticks = 4,
        .counter = { 0, NONE, NONE, 330 },
        .power = { 100, 110, 120, 110 },
        .method = WM_ENERGY_COUNTER,
        .joules = 330 - 100 * 0.05 + 110 * 0.05,
        .compared = true,
        .gap = 5.5 / 330.5,
    },
    {
        .name = "a hole in power is not covered",
        .ticks = 5,
        .counter = { NONE, NONE, NONE, NONE, NONE },
        .power = { 100, 100, NONE, 100, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 200,
        .missing_s = 2,
    },
    {
        .name = "a hole in both",
        .ticks = 5,
        .counter = { 0, 100, NONE, 300, 400 },
        .power = { 100, 100, NONE, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 400,
        .compared = true,
    },
    {
        .name = "the counter comes late",
        .ticks = 4,
        .counter = { NONE, 500, 600, 700 },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 1,
        .compared = true,
    },
    {
        .name = "the counter ends early",
        .ticks = 4,
        .counter = { 500, 600, NONE, NONE },
        .power = { 100, 100, 100, 100 },
        .method = WM_ENERGY_COUNTER_FILLED,
        .joules = 300,
        .filled_s = 2,
        .compared = true,
    },
    {
        .name = "the GPU is lost",
        .ticks = 5,
        .counter = { 0, 100, 200, NONE, NONE },
        .power = { 100, 100, 100, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 200,
        .missing_s = 2,
        .compared = true,
    },
    {
        .name = "the GPU comes late",
        .ticks = 4,
        .counter = { NONE, NONE, 0, 100 },
        .power = { NONE, NONE, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 100,
        .missing_s = 2,
        .compared = true,
    },
    {
        .name = "a negative counter",
        .ticks = 3,
        .counter = { -5, 100, 200 },
        .power = { NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 100,
        .missing_s = 1,
    },
    {
        .name = "negative power",
        .ticks = 3,
        .counter = { NONE, NONE, NONE },
        .power = { -100, 100, 100 },
        .method = WM_ENERGY_INTEGRAL,
        .joules = 100,
        .missing_s = 1,
    },
    {
        .name = "an infinite counter",
        .ticks = 3,
        .counter = { 0, INFINITY, 200 },
        .power = { NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 200,
    },
    {
        .name = "a sensor of unknown period",
        .step_ms = 100,
        .period_ms = -1,
        .ticks = 3,
        .counter = { 0, 10, 20 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 20,
        .compared = true,
    },
    {
        /* 10 W before the start, 110 W from there on; the counter moves at 50 and at
         * 150 ms. Of its first 6 J 0.5 J were before, and 5.5 J are to come. */
        .name = "a load that begins with the run",
        .step_ms = 20,
        .ticks = 11,
        .counter = { 0, 0, 0, 6, 6, 6, 6, 6, 17, 17, 17 },
        .power = { 10, 10, 10, 60, 60, 60, 60, 60, 110, 110, 110 },
        .method = WM_ENERGY_COUNTER,
        .joules = 22,
        .is_short = true,
        .compared = true,
        .gap = 1 - (0.4 + 0.7 + 4.8 + 1.7 + 4.4 + 10) / 22,
    },
    {
        .name = "the same without power: half of the first step, and half of another",
        .step_ms = 20,
        .ticks = 11,
        .counter = { 0, 0, 0, 6, 6, 6, 6, 6, 17, 17, 17 },
        .power = { NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE },
        .method = WM_ENERGY_COUNTER,
        .joules = 3 + 11 + 5.5,
        .is_short = true,
    },
    {
        .name = "a run of less than three periods",
        .step_ms = 140,
        .ticks = 3,
        .counter = { 0, 14, 28 },
        .power = { 100, 100, 100 },
        .method = WM_ENERGY_COUNTER,
        .joules = 28,
        .is_short = true,
        .compared = true,
    },
};

static struct wm_reading reading_of(double value, int64_t when_ns)
{
    return (struct wm_reading) {
        .when_ns = when_ns,
        .value = value,
        .state = isnan(value) ? WM_READING_FAILED : WM_READING_OK,
    };
}

static void check(const struct row *row, const char *what, double value, double expected)
{
    if (isnan(value) || fabs(value - expected) > 1e-9 * fmax(1, fabs(expected)))
        fail_msg("%s: %s is %.12g, not %.12g", row->name, what, value, expected);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        int64_t step_ns = (row->step_ms ? row->step_ms : 1000) * 1000000;
        int64_t period_ms = row->period_ms ? row->period_ms : 100;
        struct wm_sensor sensor = { .period_ns = period_ms > 0 ? period_ms * 1000000 : 0,
                                    .range = row->range };
        struct wm_energy energy = { .counter_sensor = sensor, .power_sensor = sensor };
        struct wm_energy_result result;

        for (size_t k = 0; k < row->ticks; k++) {
            int64_t when_ns = 777 + (int64_t)k * step_ns;
            struct wm_reading counter = reading_of(row->counter[k], when_ns);
            struct wm_reading power = reading_of(row->power[k], when_ns);
            wm_energy_add(&energy, when_ns, &counter, &power);
        }
        wm_energy_result(&energy, &result);

        check(row, "method", result.method, row->method);
        check(row, "energy", result.joules, row->joules);
        check(row, "time left out", result.missing_s, row->missing_s);
        check(row, "time filled in", result.filled_s, row->filled_s);
        check(row, "short", result.is_short, row->is_short);
        check(row, "stuck", result.stuck, row->stuck);
        check(row, "resets", (double)result.resets, (double)row->resets);
        check(row, "stalls", (double)result.stalls, (double)row->stalls);
        check(row, "jumps", (double)result.implausible, (double)row->implausible);
        check(row, "compared", result.checked, row->compared);
        check(row, "gap", result.gap, row->gap);
    }
}

/* Drivers that are slow or hang: each reading has its own time, and one that stands
 * for several ticks is no new one. Power is 100 W, and what the counter shows too. */
static void test_late_readings(void **state)
{
    static const struct {
        const char *name;
        size_t ticks;
        double asked[8]; /* seconds; NONE: stale */
        double counted, counted_missing;
        double integral, integral_missing;
    } cases[] = {
        { "in time", 4, { 0, 1, 2, 3 }, 300, 0, 300, 0 },
        { "every second tick", 5, { 0, 0, 2, 2, 4 }, 400, 0, 400, 0 },
        { "one tick late", 5, { 0, 0, 1, 2, 4 }, 400, 0, 400, 0 },
        { "after each tick", 4, { 0.04, 1.04, 2.04, 3.04 }, 300, 0, 300, 0 },
        { "before the start, after the end", 3, { -0.04, 1.04, 2.3 }, 200, 0, 200, 0 },
        { "after the start, before the end", 4, { 0.3, 1, 2, 2.7 }, 300, 0, 300, 0 },
        { "the last one again", 5, { 0, 1, 2, 3, 3 }, 400, 0, 400, 0 },
        { "a tick after the start", 4, { NONE, 0.3, 2, 3 }, 300, 0, 300, 0 },
        { "a hang", 7, { 0, 1, 1, 1, NONE, 5, 6 }, 600, 0, 200, 4 },
        { "a hang at the end", 5, { 0, 1, 1, 1, NONE }, 100, 3, 100, 3 },
        { "a hang at the start", 4, { NONE, NONE, 2, 3 }, 100, 2, 100, 2 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_sensor sensor = { .period_ns = 100000000 };
        struct wm_energy with = { .counter_sensor = sensor, .power_sensor = sensor };
        struct wm_energy without = with;
        struct wm_energy_result result;

        print_message("  %s\n", cases[i].name);
        for (size_t k = 0; k < cases[i].ticks; k++) {
            double asked = cases[i].asked[k];
            int64_t when_ns = 777 + (int64_t)k * 1000000000;
            int64_t asked_ns = isnan(asked) ? when_ns : 777 + (int64_t)(asked * 1e9);
            struct wm_reading counter = reading_of(5000 + 100 * asked, asked_ns);
            struct wm_reading power = reading_of(isnan(asked) ? NONE : 100, asked_ns);
            wm_energy_add(&with, when_ns, &counter, &power);
            wm_energy_add(&without, when_ns, NULL, &power);
        }
        wm_energy_result(&with, &result);
        assert_int_equal(result.method, WM_ENERGY_COUNTER);
        assert_true(fabs(result.joules - cases[i].counted) < 1e-9);
        assert_true(fabs(result.missing_s - cases[i].counted_missing) < 1e-9);
        wm_energy_result(&without, &result);
        assert_int_equal(result.method, WM_ENERGY_INTEGRAL);
        assert_true(fabs(result.joules - cases[i].integral) < 1e-9);
        assert_true(fabs(result.missing_s - cases[i].integral_missing) < 1e-9);
    }
}

/* A counter that is read seldom, as its call is expensive: power has the time after its
 * last reading, and what the next one says is not fewer than that by chance. */
static void test_counter_read_seldom(void **state)
{
    static const double asked[] = { 0, 1, 1, 1, 1, 5, 5 };
    static const double counts[] = { 0, 100, 100, 100, 100, 690, 690 };
    static const double watts[] = { 100, 100, 100, 200, 200, 200, 100 };
    static const double joules[] = { 0, 100, 200, 350, 550, 690, 840 };
    struct wm_sensor sensor = { .period_ns = 1000000 };
    struct wm_energy energy = { .counter_sensor = sensor, .power_sensor = sensor };
    struct wm_energy_result result;

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(asked); k++) {
        int64_t when_ns = 777 + (int64_t)k * 1000000000;
        struct wm_reading counter = reading_of(counts[k], 777 + (int64_t)(asked[k] * 1e9));
        struct wm_reading power = reading_of(watts[k], when_ns);
        wm_energy_add(&energy, when_ns, &counter, &power);
        wm_energy_result(&energy, &result);
        if (k > 0 && fabs(result.joules - joules[k]) > 0.2)
            fail_msg("at %zu s: %g J, not %g J", k, result.joules, joules[k]);
        assert_true(result.filled_s == 0 && result.missing_s == 0 && result.raised == 0);
    }
    assert_int_equal(result.method, WM_ENERGY_COUNTER);
}

/* A counter of which each reading costs: it is read so often, and at both ends. */
struct rare {
    const char *name;
    int every;      /* ticks of 100 ms */
    double gain;    /* of power, which need not be that of the counter */
    double percent; /* of the mean power of a second: how far what is told may be off */
};

static double rare_watts(double seconds)
{
    return fmod(seconds, 1.7) < 0.6 ? 600 : 100;
}

/* Its joules are those of a counter that is read at each tick; and between two readings
 * they go on as power does, without a jump at a reading. */
static void check_rare(const struct rare *rare)
{
    const struct wm_sensor sensor = { .period_ns = 100000000 };
    struct wm_energy energy = { .counter_sensor = sensor, .power_sensor = sensor };
    struct wm_energy dense = energy;
    struct wm_reading old = { 0 };
    struct wm_energy_result result, whole;
    double joules = 0;

    for (int k = 0; k <= 300; k++) {
        int64_t when_ns = (k + 1) * 100000000LL;
        struct wm_reading now = reading_of(joules, when_ns);
        struct wm_reading power =
            reading_of(rare->gain * rare_watts(0.1 * k - 0.05), when_ns);
        double before = energy.told;

        if (k % rare->every == 0 || k == 300)
            old = now;
        wm_energy_add(&energy, when_ns, &old, &power);
        wm_energy_add(&dense, when_ns, &now, &power);
        wm_energy_result(&energy, &result);
        assert_false(result.stuck);
        assert_false(wm_energy_is_late(&energy));
        if (fabs(energy.told - joules) > rare->percent / 100 * 276)
            fail_msg("%s: %g J told after %g s, not %g J", rare->name, energy.told, 0.1 * k,
                     joules);
        if (k > 20 && energy.told - before > 1.5 * 60)
            fail_msg("%s: %g J in one tick", rare->name, energy.told - before);
        joules += 0.1 * rare_watts(0.1 * (k + 1) - 0.05);
    }
    wm_energy_result(&dense, &whole);
    assert_int_equal(result.method, WM_ENERGY_COUNTER);
    assert_true(fabs(result.joules - whole.joules) < 1e-3 * whole.joules);
    assert_true(fabs(result.gap - whole.gap) < 1e-3);
    assert_true(result.start.blur_s <= whole.start.blur_s + 3e-3);
    assert_true(result.end.blur_s <= whole.end.blur_s + 3e-3);
}

static void test_counters_that_are_read_rarely(void **state)
{
    static const struct rare rares[] = {
        { "each tick", 1, 1, 20 },
        { "each other tick", 2, 1, 30 },
        { "each two seconds", 20, 1, 30 },
        { "each two seconds, power 5 % high", 20, 1.05, 40 },
        { "each two seconds, power 20 % low", 20, 0.8, 60 },
        { "each 15 s", 150, 1, 40 },
        { "each 15 s, power 5 % low", 150, 0.95, 90 },
        { "at the ends alone", 1000, 1, 50 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rares); i++)
        check_rare(&rares[i]);
}

/* A sensor of power that tells the mean of the last second, ten times a second: when
 * the load begins with the run, it takes a second to say so. */
static void test_mean_of_a_second(void **state)
{
    struct wm_energy energy = {
        .power_sensor = { .period_ns = 100000000, .window_s = 1 },
    };
    struct wm_energy_result result;

    (void)state;
    for (int k = 0; k <= 200; k++) {
        int64_t when_ns = 777 + (int64_t)k * 20000000;
        struct wm_reading power = reading_of(10 + 100 * fmin((k / 5) / 10.0, 1), when_ns);
        wm_energy_add(&energy, when_ns, NULL, &power);
        wm_energy_result(&energy, &result);
        assert_int_equal(result.is_short, k < 150);
    }
    assert_int_equal(result.method, WM_ENERGY_INTEGRAL);
    assert_true(fabs(result.joules - 4 * 110) < 1.5);
    assert_true(fabs(result.told - (4 * 110 - 0.55 * 100)) < 1.5);
}

/* A GPU whose counter is new at other times than the ticks, and its power with it. */
struct ticking {
    double period_s, phase, tick_s, end_s;
    bool has_power, is_uneven;
};

static double watts_at(const struct ticking *ticking, double when)
{
    if (!ticking->is_uneven)
        return 300;
    return fmod(when + 10, 0.37) < 0.2 ? 500 : 20;
}

/* By the millisecond: the load takes no other steps. */
static double joules_between(const struct ticking *ticking, double from, double until)
{
    double joules = 0;

    for (double when = from; when < until - 1e-9; when += 0.001)
        joules += fmin(0.001, until - when) * watts_at(ticking, when);
    return joules;
}

/* Checks that the figures never fall, and returns the last one. */
static double run_ticking(const struct ticking *ticking)
{
    struct wm_sensor sensor = { .period_ns = 100000000 };
    struct wm_energy energy = { .counter_sensor = sensor, .power_sensor = sensor };
    struct wm_energy_result result = { 0 };
    double joules = 0, told = 0, shown = 5000, until = -ticking->phase;
    bool is_last = false;

    for (unsigned k = 0; !is_last; k++) {
        double when = k * ticking->tick_s;
        is_last = when >= ticking->end_s - 1e-9;
        when = fmin(when, ticking->end_s);
        for (; until + ticking->period_s <= when + 1e-9; until += ticking->period_s)
            shown += joules_between(ticking, until, until + ticking->period_s);

        int64_t when_ns = 777 + (int64_t)round(when * 1e9);
        struct wm_reading counter = reading_of(shown, when_ns);
        struct wm_reading power = reading_of(watts_at(ticking, until - 0.0005), when_ns);
        wm_energy_add(&energy, when_ns, &counter, ticking->has_power ? &power : NULL);
        wm_energy_result(&energy, &result);
        if (result.joules < joules || result.told < told)
            fail_msg("%g ms, ticks of %g ms, at %g s: %g J, told %g J, after %g J, %g J",
                     1e3 * ticking->period_s, 1e3 * ticking->tick_s, when, result.joules,
                     result.told, joules, told);
        joules = result.joules;
        told = result.told;
    }
    return joules;
}

/* Of a counter as slow as the ticks, or where the last tick is odd, a period is in
 * doubt; a faster one is known to a percent. */
static void check_ticking(const struct ticking *ticking, bool is_odd)
{
    double joules = run_ticking(ticking), truth = 300 * ticking->end_s;
    bool is_in_doubt = ticking->period_s >= ticking->tick_s || is_odd;
    double most = 0.01 * truth;

    if (is_in_doubt && ticking->period_s > 0.001)
        most += 300 * ticking->period_s;
    if (!ticking->is_uneven && fabs(joules - truth) > most)
        fail_msg("%g ms, %g ms into it, ticks of %g ms, %g s: %g J, not %g J",
                 1e3 * ticking->period_s, 1e3 * ticking->phase, 1e3 * ticking->tick_s,
                 ticking->end_s, joules, truth);
}

/* The table says 100 ms of each of them, and the run ends some time after a tick. */
static void test_pace_that_is_seen(void **state)
{
    static const double periods[] = { 0.001, 0.02, 0.1 }, ticks[] = { 0.02, 0.1 };
    static const double lengths[] = { 0.3, 1, 3 }, odd[] = { 0, 0.002, 0.011, 0.032 };
    struct ticking ticking = { 0 };

    (void)state;
    for (size_t p = 0; p < ARRAY_LEN(periods); p++) {
        for (size_t i = 0; i < ARRAY_LEN(ticks) * ARRAY_LEN(lengths) * ARRAY_LEN(odd);
             i++) {
            size_t o = i / ARRAY_LEN(ticks) / ARRAY_LEN(lengths);
            ticking.period_s = periods[p];
            ticking.tick_s = ticks[i % ARRAY_LEN(ticks)];
            ticking.end_s = lengths[i / ARRAY_LEN(ticks) % ARRAY_LEN(lengths)] + odd[o];
            for (int k = 0; k < 20; k++) {
                ticking.phase = k / 4 * ticking.period_s / 5;
                ticking.has_power = k % 2;
                ticking.is_uneven = k / 2 % 2;
                check_ticking(&ticking, o > 0);
            }
        }
    }
}

/* A load that ends right after a tick: what was taken to go on did not, and what was
 * said of it remains. A counter that goes backwards promises nothing. */
static void test_never_fewer(void **state)
{
    static const double counters[] = { 0, 30, 60, 60.1, 60.2, 95 };
    struct wm_sensor sensor = { .period_ns = 100000000 };
    struct wm_energy energy = { .counter_sensor = sensor };
    struct wm_energy_result result;
    double before = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        struct wm_reading counter = reading_of(counters[i], 777 + (int64_t)i * 90000000);
        wm_energy_add(&energy, counter.when_ns, &counter, NULL);
        wm_energy_result(&energy, &result);
        assert_true(result.joules >= before && result.told <= result.joules);
        assert_int_equal(result.raised > 0, i == 3 || i == 4);
        before = result.joules;
    }
    struct wm_reading counter = reading_of(1, 777 + 540000000);
    wm_energy_add(&energy, counter.when_ns, &counter, NULL);
    wm_energy_result(&energy, &result);
    assert_true(result.raised == 0);
}

/* Snippets of a GPU at a steady 300 W, one after the other: how often its counter is
 * renewed, whatever the table says of it. */
struct snippets {
    double period_s; /* 0: it is exact */
    double length_s;
    size_t count;
    bool is_run; /* power is integrated beside it, and not just known */
};

static double counter_at(const struct snippets *snippets, double when)
{
    if (snippets->period_s > 0)
        when = floor(when / snippets->period_s) * snippets->period_s;
    return 300 * when;
}

static double joules_of_snippet(const struct snippets *snippets, double from)
{
    struct wm_energy energy = {
        .counter_sensor = { .period_ns = 100000000, .window_s = 0.025 },
        .power_sensor = { .period_ns = 100000000, .window_s = 0.025 },
    };
    struct wm_energy_result result;
    const double ends[] = { from, from + snippets->length_s };
    bool is_silent = counter_at(snippets, ends[0]) == counter_at(snippets, ends[1]);

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        int64_t when_ns = (int64_t)round(ends[i] * 1e9);
        struct wm_reading counter = reading_of(counter_at(snippets, ends[i]), when_ns);
        struct wm_reading power = reading_of(300, when_ns);
        wm_energy_set_beside(&energy, wm_stats_value(&power));
        wm_energy_add(&energy, when_ns, &counter,
                      snippets->is_run || is_silent ? &power : NULL);
    }
    wm_energy_result(&energy, &result);
    return result.joules;
}

/* What is added up may be off by as much as the counter itself: a period, once. */
static void check_sum(const struct snippets *snippets)
{
    double sum = 0, at = 7.0123, truth = 300 * snippets->length_s * (double)snippets->count;
    double most = 300 * fmax(snippets->period_s, 0.001) + 0.02 * truth;

    for (size_t i = 0; i < snippets->count; i++) {
        sum += joules_of_snippet(snippets, at);
        at += snippets->length_s;
    }
    if (fabs(sum - truth) > most)
        fail_msg("%zu of %g ms, renewed each %g ms%s: %g J, not %g J", snippets->count,
                 1e3 * snippets->length_s, 1e3 * snippets->period_s,
                 snippets->is_run ? ", with power" : "", sum, truth);
}

static void test_sum_of_snippets(void **state)
{
    static const double periods[] = { 0, 0.001, 0.02, 0.037, 0.06, 0.1 };
    static const double lengths[] = {
        0.0001, 0.003, 0.02, 0.0271, 0.05, 0.08, 0.15, 0.333
    };

    (void)state;
    for (size_t p = 0; p < ARRAY_LEN(periods); p++) {
        for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
            for (int k = 0; k < 2; k++) {
                struct snippets snippets = { periods[p], lengths[l], 0, k == 1 };
                snippets.count = (size_t)(6.1 / lengths[l]);
                check_sum(&snippets);
            }
        }
    }
}

/* What a model counts has no steps: nothing is known better for having waited. */
static void test_smooth(void **state)
{
    struct wm_energy energy = {
        .counter_sensor = { .period_ns = 20000000, .kind = WM_SENSOR_MODEL, .range = 7 },
    };
    struct wm_energy_result result;

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct wm_reading counter = reading_of(5 + 0.02 * k, 777 + k * 1000000);
        wm_energy_add(&energy, counter.when_ns, &counter, NULL);
    }
    wm_energy_result(&energy, &result);
    assert_true(fabs(result.joules - 0.02) < 1e-9);
    assert_true(result.is_short);
    /* What was done since its inputs were read may be all that the machine can do. */
    assert_true(result.end.watts == 7 && result.end.blur_s > 0);
}

/* A GPU without the channel at all, and a clock that was tampered with. */
static void test_odd_input(void **state)
{
    struct wm_energy energy = { 0 };
    struct wm_energy_result result;
    struct wm_reading power = reading_of(100, INT64_MAX);

    (void)state;
    wm_energy_result(&energy, &result);
    assert_int_equal(result.method, WM_ENERGY_UNKNOWN);

    wm_energy_add(&energy, INT64_MAX, NULL, &power);
    power.when_ns = INT64_MIN;
    wm_energy_add(&energy, INT64_MIN, NULL, &power);
    wm_energy_add(&energy, 0, NULL, NULL);
    wm_energy_result(&energy, &result);
    assert_int_equal(result.method, WM_ENERGY_UNKNOWN);
    assert_true(result.joules == 0);
}

UNIT(energy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_late_readings),
        cmocka_unit_test(test_counter_read_seldom),
        cmocka_unit_test(test_counters_that_are_read_rarely),
        cmocka_unit_test(test_mean_of_a_second),
        cmocka_unit_test(test_pace_that_is_seen),
        cmocka_unit_test(test_never_fewer),
        cmocka_unit_test(test_sum_of_snippets),
        cmocka_unit_test(test_smooth),
        cmocka_unit_test(test_odd_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
