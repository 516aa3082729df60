/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_energy.h - the joules of one GPU, from its energy counter, its power,
 * or both, one tick at a time.
 *
 *     struct wm_energy energy = { .period_ns = channel->period_ns };
 *     wm_energy_add(&energy, tick->when_ns, &counter, &power);     each tick
 *     wm_energy_result(&energy, &result);
 *
 * The counter is believed as long as it behaves. What it does not cover (it was
 * missing, went backwards, jumped by more than the GPU can draw, or stood still
 * for long and never made up for it) is filled in with the integral of power; a
 * counter that never moves while power is drawn is not believed at all. That it
 * shows nothing new between two ticks means nothing: sensors are slower than
 * ticks.
 */
#ifndef WM_ANALYZE_ENERGY_H
#define WM_ANALYZE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/source.h"

/* Jumps of the counter that were too high for the power seen until then. A
 * sensor of power may lag behind a rising load, so they are judged later. */
#define WM_ENERGY_SUSPECTS 16

struct wm_energy_suspect {
    double watts;  /* the power that the jump implies */
    double joules; /* of the jump */
    double fill;   /* the integral of power instead */
};

/* All zero, but for the period, is the right start. */
struct wm_energy {
    int64_t period_ns; /* how often the sensor has something new; 0: unknown */

    bool started;
    int64_t first_ns, last_ns; /* of the ticks */

    /* Power, and its integral over the time in which it was there. */
    bool powered; /* at the last tick */
    double power, max_power;
    int64_t power_ns;
    double integral, covered_s;
    double hole_s; /* the rest of the time */

    /* The counter, and what was filled in for it. */
    bool counted; /* it has been seen */
    bool present; /* at the last tick */
    double count;
    int64_t change_ns; /* when it was last seen to change */
    double total;      /* of its increases and of the fillings */
    double filled_s;   /* how much of the time was filled in, */
    double missing_s;  /* and how much could not be */
    uint64_t changes, resets, implausible, stalls;
    bool stalled; /* seen to stand still for long, and not to move since */

    /* Since the counter last changed, or since the start: the time, and the
     * integral of power with the part of the time that it covers. */
    double since_s, since_integral, since_covered_s;

    struct wm_energy_suspect suspects[WM_ENERGY_SUSPECTS];
    size_t suspect_count;
};

/* What the figure rests on. */
enum wm_energy_method {
    WM_ENERGY_UNKNOWN,
    WM_ENERGY_COUNTER,
    WM_ENERGY_COUNTER_FILLED, /* with the integral of power where it has gaps */
    WM_ENERGY_INTEGRAL,
};

struct wm_energy_result {
    enum wm_energy_method method;
    double joules;
    double span_s;            /* from the first tick to the last */
    double missing_s;         /* how much of it the figure leaves out */
    double filled_s;          /* how much of it has the integral instead of the counter */
    bool is_short;            /* fewer than three periods of the sensor */
    bool stuck;               /* while power was drawn the counter never moved, or */
                              /* stood still until the end */
    uint64_t resets;          /* of the counter */
    uint64_t implausible;     /* jumps of the counter */
    uint64_t stalls;          /* of the counter that it did not make up for */
    bool checked;             /* both were there: */
    double counter, integral; /* the two figures for the same time, */
    double gap;               /* and how far they differ, relative to the counter */
};

/* NULL for what the GPU does not offer. */
void wm_energy_add(struct wm_energy *energy, int64_t when_ns,
                   const struct wm_reading *counter, const struct wm_reading *power);

void wm_energy_result(const struct wm_energy *energy, struct wm_energy_result *ret_result);

#endif
