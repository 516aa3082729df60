/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_welch.h - whether two means differ by more than their values scatter: Welch's
 * interval, for variances and sizes that need not be alike.
 */
#ifndef WM_ANALYZE_WELCH_H
#define WM_ANALYZE_WELCH_H

#include "base/text/base_number.h"

/* |t| stays below it with a probability of 95 %; `df`, which need not be whole, is at
 * least 1. */
double wm_student_95(double df);

/* Half the 95 % interval of a mean, relative to it. */
struct wm_known wm_student_scatter(double count, double std, double mean);

struct wm_welch_sample {
    double count;        /* of values that do not depend on each other; need not be whole */
    struct wm_known std; /* with n - 1 */
    double scale;        /* what is compared is so many times the mean */
};

/* Half the width of the 95 % interval of the difference of the two. NULL, or why there is
 * none. */
const char *wm_welch(const struct wm_welch_sample *one, const struct wm_welch_sample *other,
                     double *ret_noise);

#endif
