/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_welch.c - Student's distribution, and Welch's interval from it. */
#include "analyze/analyze_welch.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265358979323846

/* What a normal distribution leaves outside 5 times of 100. */
#define NORMAL_95 1.9599639845400545
#define OUTSIDE 0.05

/* From here on the first terms of the series in 1 / df are right to eight digits. */
#define LARGE_DF 1e4

/* More than any argument needs that the functions below get. */
enum { MOST_TERMS = 500, MOST_STEPS = 60 };

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

/* lgamma() would write to a global. */
static double log_gamma(double value)
{
    int sign;

    return lgamma_r(value, &sign);
}

/* How often |t| is larger. */
static double tail_of(double t, double df)
{
    double a = df / 2, b = 0.5;
    double x = df / (df + t * t), rest = t * t / (df + t * t);
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

double wm_student_95(double df)
{
    const double z = NORMAL_95;
    double t = z, step = 1;

    if (df >= LARGE_DF)
        return z + (z * z * z + z) / (4 * df);
    /* The tail falls ever more slowly, and the normal one is the shortest: so Newton's
     * steps come from below and never jump over the answer. */
    for (int i = 0; i < MOST_STEPS && step > 1e-13 * t; i++) {
        step = (tail_of(t, df) - OUTSIDE) / (2 * density_of(t, df));
        t += step;
    }
    return t;
}

struct wm_known wm_student_scatter(double count, double std, double mean)
{
    if (!(count >= 2 && std >= 0 && mean > 0))
        return (struct wm_known) { 0 };
    return (struct wm_known) { true, wm_student_95(count - 1) * std / sqrt(count) / mean };
}

/* The variance of the scaled mean. */
static double variance_of(const struct wm_welch_sample *sample)
{
    double error = sample->scale * sample->std.number;

    return error * error / sample->count;
}

const char *wm_welch(const struct wm_welch_sample *one, const struct wm_welch_sample *other,
                     double *ret_noise)
{
    if (!(one->count >= 2) || !(other->count >= 2))
        return "there are too few values that do not depend on each other";
    if (!one->std.known || !other->std.known)
        return "the standard deviation is not known";

    double a = variance_of(one), b = variance_of(other);
    if (!isfinite(a) || !isfinite(b))
        return "the values are too large";
    if (a + b == 0) {
        *ret_noise = 0;
        return NULL;
    }
    /* Shares of the whole: squares of small variances would be zero. */
    double share = a / (a + b);
    double df = 1 / (share * share / (one->count - 1) +
                     (1 - share) * (1 - share) / (other->count - 1));
    *ret_noise = wm_student_95(df) * sqrt(a + b);
    return NULL;
}
