/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_tick.h - all sources of a session, read together: one tick.
 *
 * The channels stand in one list: first the tracker's own (CPU time of the tree, and
 * what it has of each GPU), then the tree's, then source by source.
 */
#ifndef WM_TRACK_TICK_H
#define WM_TRACK_TICK_H

#include "base/base_error.h"
#include "source/source_set.h"
#include "source/tree/source_tree.h"
#include "track/account/track_account.h"
#include "wattmeter/recording.h"

struct wm_ticker;

/* What is tracked; tree and account are borrowed. */
struct wm_ticker_target {
    struct wm_tree *tree;
    pid_t root;
    bool own_numbers; /* the tree's pids are those of our own pid namespace */
    struct wm_account *account;
};

/* Makes the list of channels. The sources are borrowed, and stay as they are from here. */
int wm_ticker_new(struct wm_source_set *sources, const struct wm_ticker_target *target,
                  struct wm_ticker **ret_ticker, struct wm_error *err);

/* Accepts NULL. */
void wm_ticker_free(struct wm_ticker *ticker);

const struct wm_channel *wm_ticker_channels(const struct wm_ticker *ticker,
                                            size_t *ret_count);

/* A tick: the drivers that may hang are asked; the tree is read; then all else,
 * for which the drivers are waited for, until `patience_ns` after the begin. None
 * allocates in a stable tree. */
void wm_ticker_begin(struct wm_ticker *ticker);
void wm_ticker_read_tree(struct wm_ticker *ticker);

enum wm_ticker_demand {
    WM_TICKER_RECENT, /* a reading of a moment ago will do where a driver is slow */
    WM_TICKER_NEW,    /* nothing from before the begin */
};
void wm_ticker_read_sources(struct wm_ticker *ticker, enum wm_ticker_demand demand,
                            int64_t patience_ns);

/* Sets the CPU times to 0 at `when_ns`, the moment from which they count. */
void wm_ticker_start_cpu(struct wm_ticker *ticker, int64_t when_ns);

/* The readings of all of it; good until the next begin. */
struct wm_tick wm_ticker_tick(const struct wm_ticker *ticker, int64_t when_ns);

/* Why the last reading of a channel is missing, or NULL. */
const char *wm_ticker_why(const struct wm_ticker *ticker, size_t channel);

/* Takes CPU time the tracker used in the tracked process itself out of it. */
void wm_ticker_set_own_cpu(struct wm_ticker *ticker, int64_t own_ns);

#endif
