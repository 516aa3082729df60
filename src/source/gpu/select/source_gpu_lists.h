/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_lists.h - the choice of GPUs: made once, over all GPUs of the machine, from
 * which each source gets the places of its own. A source alone knows nothing of the others'
 * GPUs, so "0" would mean one GPU to each of them.
 */
#ifndef WM_SOURCE_GPU_LISTS_H
#define WM_SOURCE_GPU_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "source/source_ops.h"

struct wm_gpu_lists;

/* Whether nothing has to be chosen: the words are NULL, "all" or "none". */
bool wm_gpu_lists_are_plain(const char *words);

/* By the words in `config`, as in struct wm_tracker_options; "visible" is decided by the
 * environment of process `viewer`, or by our own where that is 0 or may not be read.
 * WM_EINVAL: a word is wrong. A driver in trouble is no failure here: its sources tell. */
int wm_gpu_lists_new(const struct wm_source_config *config, pid_t viewer,
                     struct wm_gpu_lists **ret_gpus, struct wm_error *err);

/* Accepts NULL. */
void wm_gpu_lists_free(struct wm_gpu_lists *gpus);

/* The GPUs of the source called so that are chosen: borrowed, and NULL for one that has
 * nothing to do with GPUs. A failure is the reason for leaving it out. */
int wm_gpu_lists_of(const struct wm_gpu_lists *gpus, const char *source,
                    const struct wm_gpu_picks **ret_picks, struct wm_error *err);

/* All GPUs that were found, chosen or not. */
size_t wm_gpu_lists_present(const struct wm_gpu_lists *gpus);

/* What is to be said about the choice, or NULL; borrowed. */
const char *wm_gpu_lists_remark(const struct wm_gpu_lists *gpus);

/* Whether a chosen GPU does not answer; the remark says which. */
bool wm_gpu_lists_are_short(const struct wm_gpu_lists *gpus);

#endif
