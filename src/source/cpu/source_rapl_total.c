/* SPDX-License-Identifier: Apache-2.0 */
/* source_rapl_total.c - see source_rapl_total.h. */
#include "source/cpu/source_rapl_total.h"

#include "base/base_clock.h"

/* Registers are renewed every millisecond, some a little later: so much more time
 * than passed between two readings may be in the step between them. */
#define LATE_S 0.1

/* A package at rest still draws several of the units that its register counts in
 * each millisecond. */
#define DEAD_AFTER_NS WM_NS_PER_S
#define DEAD_AFTER_LOOKS 5

#define FIRST_J 1e-6
#define LESS_J 1e-18

/* From here on `units` could not take one more step of any size. */
#define FULL_UNITS (UINT64_MAX / 4)

/* Modulo 2^64, which is also how a register of 64 bits wraps. */
static uint64_t step_to(const struct wm_rapl_total *total, uint64_t value)
{
    uint64_t step = value - total->last;

    return value < total->last ? step + total->range + 1 : step;
}

static int check_step(struct wm_rapl_total *total, uint64_t value, double seconds,
                      double step_j, struct wm_error *err)
{
    bool back = value < total->last;

    if (seconds > total->most_s)
        return wm_fail(err, WM_EIO,
                       "not read for %.0f s: its counter may have run over more than once "
                       "(read it every %.0f s at least)",
                       seconds, total->most_s);
    if (back && (total->range == 0 || total->last > total->range))
        return wm_fail(err, WM_EIO,
                       "its counter went back, and it is not known whether it ran over");
    if (step_j <= total->most_watts * (seconds + LATE_S))
        return WM_OK;
    if (back)
        return wm_fail(err, WM_EIO, "its counter was set back from %.6g J to %.6g J",
                       (double)total->last * total->unit_j, (double)value * total->unit_j);
    total->has_jumped = true;
    return wm_fail(err, WM_EIO, "its counter jumped by %.6g J in %.3g s", step_j, seconds);
}

static void count(struct wm_rapl_total *total, uint64_t step)
{
    if (total->units > FULL_UNITS) {
        total->full_j += (double)total->units * total->unit_j;
        total->units = 0;
    }
    total->units += step;
}

double wm_total_beginning(double before)
{
    return before > 0 ? before - LESS_J : FIRST_J;
}

static void begin(struct wm_rapl_total *total)
{
    total->start_j = wm_total_beginning(total->start_j);
    total->started = true;
    total->is_lost = false;
    total->units = 0;
    total->full_j = 0;
}

static int check_life(struct wm_rapl_total *total, int64_t when_ns, struct wm_error *err)
{
    int64_t rest_ns = when_ns - total->moved_ns;

    total->looks++;
    if (total->may_rest || total->looks < DEAD_AFTER_LOOKS || rest_ns <= DEAD_AFTER_NS)
        return WM_OK;
    return wm_fail(err, WM_EIO, "its counter does not move: dead (virtual machine?)");
}

int wm_rapl_total_add(struct wm_rapl_total *total, uint64_t value, int64_t when_ns,
                      struct wm_error *err)
{
    int status = WM_OK;

    total->has_jumped = false;
    if (!total->started) {
        begin(total);
        total->moved_ns = when_ns;
    } else if (value == total->last) {
        status = check_life(total, when_ns, err);
    } else {
        double seconds = (double)(when_ns - total->last_ns) / 1e9;
        uint64_t step = step_to(total, value);

        status = check_step(total, value, seconds, (double)step * total->unit_j, err);
        if (status == WM_OK)
            count(total, step);
        else
            total->is_lost = true;
        total->moved_ns = when_ns;
        total->looks = 0;
    }
    if (status == WM_OK && total->is_lost)
        begin(total);
    total->last = value;
    total->last_ns = when_ns;
    return status;
}

double wm_rapl_total_joules(const struct wm_rapl_total *total)
{
    return total->start_j + total->full_j + (double)total->units * total->unit_j;
}
