/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_pace.c - see doctor_pace.h. */
#include "doctor/doctor_pace.h"

#include <stdlib.h>
#include <string.h>

void wm_pace_note(struct wm_pace *pace, int64_t when_ns, double value)
{
    if (pace->begun && value != pace->value) {
        /* When the value before the first change came up, nobody saw. */
        if (pace->changes > 0 && pace->kept < WM_PACE_KEPT)
            pace->between_ns[pace->kept++] = when_ns - pace->changed_ns;
        pace->changes++;
        pace->changed_ns = when_ns;
    }
    if (!pace->begun)
        pace->begun_ns = when_ns;
    pace->begun = true;
    pace->seen_ns = when_ns;
    pace->value = value;
}

int64_t wm_pace_watched_ns(const struct wm_pace *pace)
{
    return pace->seen_ns - pace->begun_ns;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

double wm_pace_period_s(const struct wm_pace *pace)
{
    int64_t sorted[WM_PACE_KEPT];

    if (pace->kept < 2)
        return 0;
    memcpy(sorted, pace->between_ns, pace->kept * sizeof(*sorted));
    qsort(sorted, pace->kept, sizeof(*sorted), compare);
    return (double)(sorted[(pace->kept - 1) / 2] + sorted[pace->kept / 2]) / 2e9;
}
