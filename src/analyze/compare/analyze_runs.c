/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_runs.c - medians, ratios and their intervals. */
#include "analyze/compare/analyze_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Student's distribution hardly changes any more. */
#define LARGE_DF 1e4

/* More than any argument needs that the functions below get. */
enum { MOST_TERMS = 500, MOST_STEPS = 100 };

/* So many times the median distance from the median (a modified Z-score of 10). */
#define FAR_OFF 14.826

const char *const wm_runs_verdicts[] = {
    [WM_RUNS_NOT_TESTED] = "not_tested",
    [WM_RUNS_NOT_SHOWN] = "not_shown",
    [WM_RUNS_LESS] = "less",
    [WM_RUNS_MORE] = "more",
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct wm_runs wm_runs_sum_up(double *values, size_t count)
{
    struct wm_runs sum = { .count = count };
    double squares = 0;

    if (count == 0)
        return sum;
    qsort(values, count, sizeof(*values), by_value);
    for (size_t i = 0; i < count; i++)
        sum.mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum.mean) * (values[i] - sum.mean);
    sum.std = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    sum.median = (values[count / 2] + values[(count - 1) / 2]) / 2;
    sum.min = values[0];
    sum.max = values[count - 1];
    return sum;
}

/* lgamma() would write to a global. */
static double log_gamma(double value)
{
    int sign;

    return lgamma_r(value, &sign);
}

/* How often `hits` of `count` values are below the median. */
static double binomial(double hits, double count)
{
    return exp(log_gamma(count + 1) - log_gamma(hits + 1) - log_gamma(count - hits + 1) -
               count * log(2));
}

bool wm_runs_interval(const double *sorted, size_t count, double outside, double *ret_low,
                      double *ret_high)
{
    size_t beyond = 0;
    double missed = 0;

    while (beyond < count / 2) {
        missed += 2 * binomial((double)beyond, (double)count);
        if (missed > outside)
            break;
        beyond++;
    }
    if (beyond == 0)
        return false;
    *ret_low = sorted[beyond - 1];
    *ret_high = sorted[count - beyond];
    return true;
}

/* The continued fraction of the incomplete beta function, by Lentz's method; it converges
 * where x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    double fraction;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    fraction = d;
    for (int m = 1; m <= MOST_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        fraction *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        fraction *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return fraction;
}

/* How often |t| is larger. */
static double tail_of(double t, double df)
{
    double a = df / 2, b = 0.5;
    double x = df / (df + t * t), rest = t * t / (df + t * t);

    if (t == 0)
        return 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log1p(-rest) +
                       b * log(rest));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, rest) / b;
}

static double density_of(double t, double df)
{
    return exp(log_gamma((df + 1) / 2) - log_gamma(df / 2) -
               (df + 1) / 2 * log1p(t * t / df)) /
           sqrt(df * PI);
}

double wm_student(double outside, double df)
{
    double t = 0, step = 1;

    df = fmin(df, LARGE_DF);
    /* The tail falls ever more slowly: Newton's steps come from below and never jump over
     * the answer. */
    for (int i = 0; i < MOST_STEPS && step > 1e-13 * t; i++) {
        step = (tail_of(t, df) - outside) / (2 * density_of(t, df));
        t += step;
    }
    return t;
}

/* Of logarithms, whose differences are ratios. */
struct moments {
    double mean, variance; /* n - 1 */
};

/* With a reference, of the ratios to that; all values are above 0. */
static struct moments moments_of(const double *values, const double *reference,
                                 size_t count)
{
    struct moments moments = { 0 };

    for (size_t i = 0; i < count; i++)
        moments.mean += log(values[i] / (reference ? reference[i] : 1)) / (double)count;
    for (size_t i = 0; i < count && count > 1; i++) {
        double off = log(values[i] / (reference ? reference[i] : 1)) - moments.mean;
        moments.variance += off * off / (double)(count - 1);
    }
    return moments;
}

static size_t count_positive(const double *values, size_t count)
{
    size_t positive = 0;

    for (size_t i = 0; i < count; i++)
        positive += values[i] > 0;
    return positive;
}

/* No difference is claimed where the interval has a ratio that does not matter. */
static enum wm_runs_verdict judge(const struct wm_runs_ratio *ratio, double threshold)
{
    if (ratio->low > 1 && ratio->ratio > 1 + threshold)
        return WM_RUNS_MORE;
    if (ratio->high < 1 && ratio->ratio < 1 - threshold)
        return WM_RUNS_LESS;
    return WM_RUNS_NOT_SHOWN;
}

/* `error` is that of the logarithm of the ratio. */
static void test(struct wm_runs_ratio *ratio, double error, double df,
                 const struct wm_runs_test *test)
{
    double tests = test->tests > 1 ? (double)test->tests : 1;

    if (ratio->count < WM_RUNS_LEAST) {
        ratio->why = "it takes 6 runs or more of both";
        return;
    }
    double off = error > 0 ? wm_student(WM_RUNS_OUTSIDE / tests, df) * error : 0;
    ratio->low = ratio->ratio * exp(-off);
    ratio->high = ratio->ratio * exp(off);
    ratio->verdict = judge(ratio, test->threshold);
}

/* What has no logarithm: all is 0, or has come out of nothing. */
static struct wm_runs_ratio ratio_to_zero(const double *reference, size_t reference_count,
                                          const double *values, size_t count,
                                          const struct wm_runs_test *how)
{
    struct wm_runs_ratio ratio = {
        .count = reference_count < count ? reference_count : count,
        .why = "it is 0 in some of the runs",
    };
    size_t positive = count_positive(values, count);

    if (count_positive(reference, reference_count) > 0 ||
        (positive > 0 && positive < count))
        return ratio;
    ratio.ratio = positive > 0 ? INFINITY : 1;
    ratio.why = NULL;
    test(&ratio, 0, 1, how);
    return ratio;
}

struct wm_runs_ratio wm_runs_paired(const double *reference, const double *values,
                                    size_t count, const struct wm_runs_test *how)
{
    struct wm_runs_ratio ratio = { .count = count };

    if (count_positive(reference, count) < count || count_positive(values, count) < count)
        return ratio_to_zero(reference, count, values, count, how);
    if (count == 0)
        return ratio;
    const struct moments of = moments_of(values, reference, count);
    ratio.ratio = exp(of.mean);
    test(&ratio, sqrt(of.variance / (double)count), (double)count - 1, how);
    return ratio;
}

struct wm_runs_ratio wm_runs_unpaired(const double *reference, size_t reference_count,
                                      const double *values, size_t count,
                                      const struct wm_runs_test *how)
{
    struct wm_runs_ratio ratio = { .count =
                                       reference_count < count ? reference_count : count };

    if (count_positive(reference, reference_count) < reference_count ||
        count_positive(values, count) < count)
        return ratio_to_zero(reference, reference_count, values, count, how);
    if (ratio.count == 0)
        return ratio;
    const struct moments one = moments_of(reference, NULL, reference_count);
    const struct moments other = moments_of(values, NULL, count);
    double a = one.variance / (double)reference_count;
    double b = other.variance / (double)count;
    double share = a + b > 0 ? a / (a + b) : 0;
    double df = 1 / (share * share / (double)(reference_count - 1) +
                     (1 - share) * (1 - share) / (double)(count - 1));
    ratio.ratio = exp(other.mean - one.mean);
    test(&ratio, sqrt(a + b), df, how);
    return ratio;
}

struct wm_runs_outliers wm_runs_outliers(const double *values, size_t count,
                                         double *scratch)
{
    struct wm_runs_outliers outliers = { 0 };

    if (count < WM_RUNS_LEAST)
        return outliers;
    memcpy(scratch, values, count * sizeof(*scratch));
    double median = wm_runs_sum_up(scratch, count).median;
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(values[i] - median);
    double most = FAR_OFF * wm_runs_sum_up(scratch, count).median;
    for (size_t i = 0; i < count && most > 0; i++) {
        double off = values[i] - median;
        outliers.count += fabs(off) > most;
        outliers.is_first |= i == 0 && off > most;
    }
    return outliers;
}
