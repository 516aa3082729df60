/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet_inputs.h - the devices that a meter reads: CPU packages, memory and GPUs,
 * from whichever sources know them, all read in one round.
 *
 * One thread at a time.
 */
#ifndef WM_TRACK_SNIPPET_INPUTS_H
#define WM_TRACK_SNIPPET_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/energy/analyze_sensor.h"
#include "base/base_error.h"
#include "source/source_set.h"
#include "wattmeter/energy.h"

#define WM_METER_NO_CHANNEL SIZE_MAX

struct wm_meter_input {
    struct wm_meter_device told;
    size_t energy, power, utilization, temperature; /* or WM_METER_NO_CHANNEL */
    struct wm_sensor counter_sensor, power_sensor;
    bool is_in_cpu; /* a GPU whose power is a part of the CPU's */

    /* Its counter. */
    bool is_alive;   /* it has been seen to move, and not to stand still since */
    bool has_worked; /* the same, but that a single reading failed is forgiven */
    bool is_counted; /* `count` is what it said last, and `moved_ns` since when */
    double count;
    int64_t moved_ns;
    struct wm_sensor_pace pace; /* and how often it has something new */
};

/* All of it is read by others, and changed in here alone. */
struct wm_meter_inputs {
    struct wm_source_set *sources;
    struct wm_reading *readings; /* of the last round, one per channel, */
    int64_t when_ns;             /* and when that was */

    struct wm_meter_input *list; /* the devices, in the order of their sources */
    size_t count;

    /* Why there is no device of the CPU or memory, or no GPU: of the sources that would
     * not open. */
    struct wm_error no_cpu, no_gpu;
    char remark[1024]; /* see wm_meter_remark() */
};

/* Opens the sources and reads them once. */
int wm_meter_inputs_open(const struct wm_meter_options *options,
                         struct wm_meter_inputs **ret_inputs, struct wm_error *err);

/* Accepts NULL. */
void wm_meter_inputs_close(struct wm_meter_inputs *inputs);

/* Reads all. A driver that hangs is waited for 0.1 s. */
void wm_meter_inputs_read(struct wm_meter_inputs *inputs);

/* What a channel said in the last round, or NULL for WM_METER_NO_CHANNEL. */
const struct wm_reading *wm_meter_inputs_reading(const struct wm_meter_inputs *inputs,
                                                 size_t channel);

/* Why a channel of it said nothing, or NULL; until the next round. */
const char *wm_meter_inputs_why(const struct wm_meter_inputs *inputs, size_t channel);

/* Whether power has to be integrated for the device, as its counter is missing, or
 * is not known to work. */
bool wm_meter_input_needs_power(const struct wm_meter_input *input);

/* Whether a device has to be read all the time, and not at both ends only: for its
 * power, or as its sensor looks at a part of the time. Then how far values differ, and
 * how busy the device is all along, says how far off the joules may be. */
bool wm_meter_inputs_need_steps(const struct wm_meter_inputs *inputs);

/* Copies a reason, or as many of its words as find room, and then "...". */
void wm_meter_why(char *out, size_t size, const char *text);

#endif
