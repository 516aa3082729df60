/* SPDX-License-Identifier: Apache-2.0 */
/* made_load.h - made-up loads, whose true joules are known: random numbers that are the
 * same in each run of a test, and the power of a device over time. */
#ifndef WM_TEST_MADE_LOAD_H
#define WM_TEST_MADE_LOAD_H

#include <math.h>

#include "test.h"

static uint64_t seed = 1;

static inline double uniform(double low, double high)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

static inline double spread_out(double low, double high)
{
    return low * pow(high / low, uniform(0, 1));
}

#define MOST_STRETCHES 131072

/* Times at which the power changes, and the joules until then. */
struct load {
    double from[MOST_STRETCHES], watts[MOST_STRETCHES], joules[MOST_STRETCHES];
    size_t count;
};

/* Times only grow: one before the last is taken for the last. */
static inline void add_power(struct load *load, double from, double watts)
{
    size_t i = load->count;

    if (i > 0 && from < load->from[i - 1])
        from = load->from[i - 1];
    assert_true(i < MOST_STRETCHES);
    load->from[i] = from;
    load->watts[i] = watts;
    load->joules[i] =
        i > 0 ? load->joules[i - 1] + load->watts[i - 1] * (from - load->from[i - 1]) : 0;
    load->count++;
}

static inline size_t stretch_at(const struct load *load, double when)
{
    size_t low = 0, high = load->count;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (load->from[middle] <= when)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static inline double joules_until(const struct load *load, double when)
{
    size_t i = stretch_at(load, when);

    return load->joules[i] + load->watts[i] * (when - load->from[i]);
}

#endif
