/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_feed.h - what a chart shows of a channel: in which panel, in which unit, and what
 * its readings become, a counter its growth in a second.
 *
 *     struct wm_chart_feed feed;
 *     wm_chart_feed_init(&feed, channel, core_count);
 *     if (wm_chart_feed_take(&feed, reading, when_ns, &state, &value))
 *         wm_chart_line_add(&line, when_ns, state, value);
 */
#ifndef WM_VIEW_FEED_H
#define WM_VIEW_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record_stats.h"
#include "record/run/record_run.h"
#include "wattmeter/source.h"

struct wm_chart_feed {
    const char *panel; /* "power", "memory"; NULL: in none where nobody asks for it */
    const char *unit;  /* of what is shown; the channel's own, or a plain text */
    bool is_rate;      /* of a counter */
    bool is_total;     /* of a counter: how much it has grown since the first reading */
    double least_s;    /* between two readings of a rate */
    struct wm_stride stride;
    bool has_last;       /* of a total */
    double last, before; /* the reading before, and what the counter was when it began */
};

/* What is measured, as reports call it: "command", "process", "all processes". */
const char *wm_chart_target(const struct wm_run *run);

/* The name of a channel's device: that, "machine", or its label. */
const char *wm_chart_device(const struct wm_channel *channel, const struct wm_run *run);

/* "GPU use" of the panel "gpu_use"; of what is none, the word itself. */
const char *wm_chart_heading(const char *panel);

/* `core_count` is that of the machine; 0: not known. CPU use is counted in cores. The feed
 * borrows from the channel. */
void wm_chart_feed_init(struct wm_chart_feed *feed, const struct wm_channel *channel,
                        double core_count);

/* The same of a counter that is shown as its total, in no panel and in its own unit. */
void wm_chart_feed_init_total(struct wm_chart_feed *feed, const struct wm_channel *channel);

/* The sample that a reading gives; false: none yet, of a rate. */
bool wm_chart_feed_take(struct wm_chart_feed *feed, const struct wm_reading *reading,
                        int64_t when_ns, enum wm_reading_state *ret_state,
                        double *ret_value);

#endif
