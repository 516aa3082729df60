/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_shares.h - what the tracked tree has of the GPUs: their memory, and a share of
 * their time. Drivers report it by process, so that it takes all sources and the tree.
 *
 * There are no channels where there is no GPU. Else they are, in this order, the
 * memory that main process, descendants and tree have on all GPUs, then for each GPU
 * what the tree has of it.
 */
#ifndef WM_TRACK_SHARES_H
#define WM_TRACK_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "source/tree/source_tree.h"
#include "wattmeter/source.h"

/* Whose it is. */
enum wm_part { WM_PART_MAIN, WM_PART_DESCENDANTS, WM_PART_TREE, WM_PART_COUNT };

/* The tracker's own channel of it. */
struct wm_channel wm_part_channel(enum wm_part member, const char *metric, const char *unit,
                                  enum wm_kind kind);

struct wm_shares;

int wm_shares_new(struct wm_shares **ret_shares, struct wm_error *err);

/* Accepts NULL. */
void wm_shares_free(struct wm_shares *shares);

/* Notes the GPUs of a source, which is borrowed. */
void wm_shares_add_source(struct wm_shares *shares, const struct wm_source *source);

/* Writes the channels to `ret_channels`, which may be NULL; how many there are. */
size_t wm_shares_channels(const struct wm_shares *shares, struct wm_channel *ret_channels);

/* The tree is borrowed. `own_numbers`: its pids are those of our own pid namespace. */
int wm_shares_set_target(struct wm_shares *shares, struct wm_tree *tree, pid_t root,
                         bool own_numbers, struct wm_error *err);

/* Joins what the sources have found in their last reading with the tree; one reading
 * for each channel. Allocates nothing. */
void wm_shares_read(struct wm_shares *shares, int64_t when_ns,
                    struct wm_reading *ret_readings);

/* A process of the tree on a GPU. */
struct wm_share_use {
    size_t gpu;
    pid_t pid;
    bool is_there;            /* it was in the last reading */
    double use, memory_bytes; /* by that; NAN: not known */
    double use_s;             /* integral of `use` since uses are kept */
    double asked_s;           /* what that was when the owner of the list noted it */
    int64_t when_ns;          /* of the last reading that it was in */
};

/* Keeps uses from here on, of the first 4,096 that are there at a time. */
int wm_shares_keep_uses(struct wm_shares *shares, struct wm_error *err);

/* Those of processes that are in the tree; valid until the next reading. */
struct wm_share_use *wm_shares_uses(struct wm_shares *shares, size_t *ret_count);

/* GPU number `gpu` as its channels have it; NULL past the last. */
const char *wm_shares_gpu(const struct wm_shares *shares, size_t gpu);

/* Integral of the use of all processes of the tree, those that have ended among them. */
double wm_shares_use_s(const struct wm_shares *shares, size_t gpu);

/* Why the last reading of a channel is missing, or NULL; valid until the sources are
 * read again. */
const char *wm_shares_why(const struct wm_shares *shares, size_t channel);

#endif
