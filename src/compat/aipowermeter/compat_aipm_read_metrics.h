/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_read_metrics.h - what AIPowerMeter's metrics mean: which channel each of
 * them is, in all generations of its files.
 */
#ifndef WM_COMPAT_AIPM_READ_METRICS_H
#define WM_COMPAT_AIPM_READ_METRICS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

/* The channels that were found in a file, in the order in which they appeared. */
struct wm_aipm_channels {
    struct wm_channel *channels;
    size_t count, room;
    json_t *index;    /* the place of each in `channels`, by "device metric" */
    char odd_gpu[24]; /* the first of them that is called by no number, or "" */
    size_t left_out;  /* values of channels beyond the most that a recording holds */
};

int wm_aipm_channels_init(struct wm_aipm_channels *set, struct wm_error *err);

/* Copes with what is all zero. */
void wm_aipm_channels_release(struct wm_aipm_channels *set);

/* Adds the channels of one record that are new. -1: out of memory. */
int wm_aipm_discover(struct wm_aipm_channels *set, const json_t *metrics);

/* Puts the values of one record where the channels of the set have their place;
 * those that are not there, or are no measurement, stay as they are. */
void wm_aipm_values(const struct wm_aipm_channels *set, const json_t *metrics,
                    struct wm_reading *readings);

/* The power of all packages in one record, which is what AIPowerMeter calls the
 * power of the CPU; NAN where it is missing. */
double wm_aipm_package_watts(const json_t *metrics);

/* Whether the record speaks of that at all. */
bool wm_aipm_has_package(const json_t *metrics);

/* Which generation of AIPowerMeter wrote such a record, for people; NULL where it
 * does not show. */
const char *wm_aipm_generation(const json_t *metrics);

#endif
