/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_pace.h - how often a value changes, seen by looking often. */
#ifndef WM_DOCTOR_PACE_H
#define WM_DOCTOR_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many times between two changes are kept; what comes after says no more. */
enum { WM_PACE_KEPT = 256 };

/* All zero is ready to begin. */
struct wm_pace {
    bool begun;
    double value;
    int64_t begun_ns, seen_ns; /* of the first look and the last one */
    size_t changes;
    int64_t changed_ns; /* the last time */
    int64_t between_ns[WM_PACE_KEPT];
    size_t kept;
};

/* Takes the next look. A look that had no value is left out by the caller. */
void wm_pace_note(struct wm_pace *pace, int64_t when_ns, double value);

/* For how long the value was looked at. */
int64_t wm_pace_watched_ns(const struct wm_pace *pace);

/* The median time between two changes, in seconds; 0 after fewer than three
 * changes. */
double wm_pace_period_s(const struct wm_pace *pace);

#endif
