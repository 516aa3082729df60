/* SPDX-License-Identifier: Apache-2.0 */
/* source_config.h - where a source looks when nobody says so, and copies of that. */
#ifndef WM_SOURCE_CONFIG_H
#define WM_SOURCE_CONFIG_H

#include "base/base_error.h"
#include "wattmeter/source.h"

/* `config`, which may be NULL, with what it leaves out taken from the environment
 * or the usual places. Borrows its texts and those of the environment. WM_EINVAL: it has
 * members that this library does not know. */
int wm_source_config_complete(const struct wm_source_config *config,
                              struct wm_source_config *ret_full, struct wm_error *err);

/* A copy with texts of its own, for a thread that may outlive the caller's; what is
 * NULL stays so. wm_source_config_release() gives the texts back, and copes with
 * all zero. */
int wm_source_config_copy(const struct wm_source_config *config,
                          struct wm_source_config *ret_copy, struct wm_error *err);
void wm_source_config_release(struct wm_source_config *copy);

#endif
