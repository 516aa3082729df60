/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what the doctor is made of: how often a value changes, seen by reading
 * often, and what keeps each source from being read here. */
#ifndef WM_DOCTOR_H
#define WM_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source_advice.h"
#include "wattmeter/doctor.h"

/* Times between two changes that are kept; more of them add nothing. */
enum { WM_PACE_KEPT = 256 };

/* All zero is ready to begin. */
struct wm_pace {
    bool begun;
    double value;
    int64_t begun_ns, seen_ns; /* times of the first and the last reading */
    size_t changes;
    int64_t changed_ns; /* the last time */
    int64_t between_ns[WM_PACE_KEPT];
    size_t kept;
};

/* Takes the next reading. One without a value is left out by the caller. */
void wm_pace_note(struct wm_pace *pace, int64_t when_ns, double value);

/* For how long the value was read. */
int64_t wm_pace_watched_ns(const struct wm_pace *pace);

/* The median time between two changes, in seconds; 0 after fewer than three
 * changes. */
double wm_pace_period_s(const struct wm_pace *pace);

/* What `config` says completely: no path in it is NULL. `perf_errno` is 0, or why
 * there is no perf counter for a process tree. Looks and changes nothing. */
void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice);

#endif
