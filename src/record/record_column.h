/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_column.h - which column of a table holds which channel.
 *
 * A channel has a column named <label>_<metric>_<unit>, and each device one
 * named <label>_time_ns for the time at which it was read. Names are made of
 * ASCII letters, digits and '_', and unique whatever the case, because SQL
 * thinks so; what cannot be distinguished gets _2, _3... One of more than 63 bytes is cut
 * off, and ends in a number made from all of it.
 */
#ifndef WM_RECORD_COLUMN_H
#define WM_RECORD_COLUMN_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

/* The most channels that a recording holds. */
#define WM_CHANNELS_MAX 2000

/* The clock of a channel that was read at the very time of the tick. */
#define WM_TICK_CLOCK ((size_t)-1)

struct wm_columns {
    size_t count;
    char **values;    /* the column of each channel */
    size_t *clock_of; /* the index in `clocks` of the channel's reading time */
    char **clocks;    /* columns with the reading times of devices and counters */
    size_t *first_of; /* the first channel of each clock; in a plan only */
    size_t clock_count;
};

/* A column that is there already, and for what: what wm_column_owner() says.
 * Only a channel with that owner may use it again. */
struct wm_taken_column {
    char *name;
    char *owner;
};

/* Plans the columns of `channels` beside those taken already. wm_columns_release()
 * gives the plan back, whatever this returned. */
int wm_columns_plan(const struct wm_channel *channels, size_t count,
                    const struct wm_taken_column *taken, size_t taken_count,
                    struct wm_columns *ret_columns, struct wm_error *err);

void wm_columns_release(struct wm_columns *columns);

/* When the device of that clock was read, as the readings of a tick tell it; false
 * where none of them is ok. */
bool wm_columns_clock(const struct wm_columns *columns, size_t clock,
                      const struct wm_reading *readings, int64_t *ret_when_ns);

/* The key of what a column holds: a metric of a device; without `unit` the clock of that
 * metric; without `metric`, too, the clock of the device. Valid UTF-8, the caller's to
 * free; NULL when out of memory. */
char *wm_column_owner(const char *source, const char *device, const char *metric,
                      const char *unit);

#endif
