/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_runs.h - the statistics of repeated runs: where a figure lies, and whether it
 * differs between two commands. The only noise that counts is that from run to run.
 *
 *     const struct wm_runs_test test = { .tests = 4, .threshold = 0.01 };
 *     struct wm_runs_ratio ratio = wm_runs_unpaired(old, 10, new, 10, &test);
 *     if (ratio.verdict == WM_RUNS_MORE)
 *         printf("at least %.1f %% more\n", 100 * (ratio.low - 1));
 */
#ifndef WM_ANALYZE_RUNS_H
#define WM_ANALYZE_RUNS_H

#include <stdbool.h>
#include <stddef.h>

/* Of fewer runs, or pairs of runs, not even the range holds the median 95 times of 100. */
enum { WM_RUNS_LEAST = 6 };

/* How often an interval may miss the truth, or a difference be claimed where there is
 * none. */
#define WM_RUNS_OUTSIDE 0.05

struct wm_runs {
    size_t count;
    double mean, std, median, min, max; /* std: n - 1, 0 of one value */
};

/* Sorts the values. All zero without any. */
struct wm_runs wm_runs_sum_up(double *values, size_t count);

/* The interval of the median, of values that are sorted: two of them, between which it lies
 * whatever their distribution, but for `outside` of all cases. False: there are too few. */
bool wm_runs_interval(const double *sorted, size_t count, double outside, double *ret_low,
                      double *ret_high);

/* |t| is larger with a probability of `outside`; `df`, which need not be whole, is at
 * least 1. */
double wm_student(double outside, double df);

struct wm_runs_test {
    size_t tests;     /* figures that are tested and are to be right together */
    double threshold; /* a smaller difference counts as none; a ratio */
};

enum wm_runs_verdict {
    WM_RUNS_NOT_TESTED,
    WM_RUNS_NOT_SHOWN, /* no difference that matters was found */
    WM_RUNS_LESS,
    WM_RUNS_MORE,
};

/* "not_tested", "not_shown", "less", "more". */
extern const char *const wm_runs_verdicts[];

struct wm_runs_ratio {
    size_t count; /* of pairs, or of runs on the side that has fewer */
    enum wm_runs_verdict verdict;
    double ratio;     /* to the reference; 0: not known; infinite where that is always 0 */
    double low, high; /* of the ratio, where it was tested */
    const char *why;  /* it was not tested */
};

/* Run number i of both was measured under the same conditions, one right after the other:
 * what they share, such as a sensor's gain or a slow drift, is not in the ratio. */
struct wm_runs_ratio wm_runs_paired(const double *reference, const double *values,
                                    size_t count, const struct wm_runs_test *test);

/* Welch's interval, for variances and counts that need not be alike. */
struct wm_runs_ratio wm_runs_unpaired(const double *reference, size_t reference_count,
                                      const double *values, size_t count,
                                      const struct wm_runs_test *test);

/* Values that are far from the others. They count all the same. */
struct wm_runs_outliers {
    size_t count;
    bool is_first; /* the first is one of them, and larger */
};

/* Of values in the order of the runs. `scratch` has room for as many. */
struct wm_runs_outliers wm_runs_outliers(const double *values, size_t count,
                                         double *scratch);

#endif
