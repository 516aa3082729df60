/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_meter_clock.h - how far the clock of an external meter is off that of the machine:
 * the offset at which what the meter saw follows what the machine itself knows of its work.
 *
 *     struct wm_meter_clock clock;
 *     wm_meter_clock_find(recording, meter, shift_ns, &clock, err);
 *     if (clock.is_clear)
 *         use(clock.offset_ns);
 */
#ifndef WM_RECORD_METER_CLOCK_H
#define WM_RECORD_METER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record_read.h"

struct wm_meter_clock {
    bool is_clear;     /* one offset fits far better than all that differ by a period */
    int64_t offset_ns; /* to be added to the meter's times */
    int64_t period_ns; /* of the meter */
    const char *by;    /* what the meter was compared with */
    const char *why;   /* there is none */
};

/* Both stand at their start, and are read to their end. `shift_ns` is what turns times of
 * the meter into those of the recording as the two clocks have it. */
int wm_meter_clock_find(struct wm_recording *recording, struct wm_recording *meter,
                        int64_t shift_ns, struct wm_meter_clock *ret_clock,
                        struct wm_error *err);

#endif
