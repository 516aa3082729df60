/* SPDX-License-Identifier: Apache-2.0 */
/* cap_curve.c - Gaussian process regression of a dozen points. */
#include "cap/search/cap_model.h"

#include <math.h>
#include <stdbool.h>

/* What the curve may be like. Its mean is a straight line of any height and slope, of
 * another height below a step, and about that it bends by `bend` (a ratio) from one
 * `length` to the next. */
struct nature {
    double bend, length, noise;
    const struct wm_cap_shape *shape;
    double level; /* from this place on it is level */
};

static const double bends[] = { 0.01, 0.03, 0.1, 0.3 };
static const double lengths[] = { 0.04, 0.12, 0.25, 0.5, 1.0 };
static const double noises[] = { 0.0005, 0.001, 0.002, 0.004, 0.007, 0.01,
                                 0.014,  0.02,  0.03,  0.04,  0.06,  0.1 };
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
enum { LEVELS = 4, NATURES = LENGTH(bends) * LENGTH(lengths) * LENGTH(noises) * LEVELS };

/* A nature is left out if its log-likelihood is lower than the best by more than this: it
 * would have a thousandth of the weight of the best. */
static const double unlikely = 7;

struct fit {
    const struct wm_cap_sample *samples;
    size_t count;
    double middle; /* of what was measured; the curve is about it */
    double factor[WM_CAP_MEASURED_MAX][WM_CAP_MEASURED_MAX]; /* of Cholesky, lower left */
    double weights[WM_CAP_MEASURED_MAX];
};

static struct nature nature_at(size_t index, const struct wm_cap_shape *shape)
{
    size_t of_level = index / LENGTH(bends) / LENGTH(lengths) / LENGTH(noises);

    return (struct nature) {
        .bend = bends[index % LENGTH(bends)],
        .length = lengths[index / LENGTH(bends) % LENGTH(lengths)],
        .noise = noises[index / LENGTH(bends) / LENGTH(lengths) % LENGTH(noises)],
        .shape = shape,
        .level = shape->level + (1 - shape->level) * (double)of_level / (LEVELS - 1),
    };
}

static bool is_same_place(double one, double other)
{
    return fabs(one - other) < 1e-9;
}

/* The prior covariance of the curve at two places: a line, a step, and bends by a Matern
 * 5/2 kernel. The standard deviations of the line and of the step are so wide (a factor of
 * e and of 2) that the measurements decide about both. */
static double covariance(const struct nature *nature, double one, double other)
{
    const struct wm_cap_shape *shape = nature->shape;
    double height = (one < shape->step) == (other < shape->step) ? 1 : 0.75;

    if (is_same_place(one, other))
        height += shape->uneven * shape->uneven;
    one = fmin(one, nature->level);
    other = fmin(other, nature->level);
    double apart = sqrt(5) * fabs(one - other) / nature->length;
    double line = height + 4 * (one - 0.5) * (other - 0.5);

    return line +
           nature->bend * nature->bend * (1 + apart + apart * apart / 3) * exp(-apart);
}

/* Cholesky's factor of the covariance of the samples. Each number on its diagonal is at
 * least the noise of a sample, so that there is always a root. */
static void factorize(struct fit *fit, const struct nature *nature)
{
    for (size_t i = 0; i < fit->count; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = covariance(nature, fit->samples[i].place, fit->samples[j].place);
            if (i == j)
                sum += nature->noise * nature->noise / (double)fit->samples[i].count;
            for (size_t k = 0; k < j; k++)
                sum -= fit->factor[i][k] * fit->factor[j][k];
            fit->factor[i][j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / fit->factor[j][j];
        }
}

static void solve_lower(const struct fit *fit, double *values)
{
    for (size_t i = 0; i < fit->count; i++) {
        for (size_t k = 0; k < i; k++)
            values[i] -= fit->factor[i][k] * values[k];
        values[i] /= fit->factor[i][i];
    }
}

static void solve_upper(const struct fit *fit, double *values)
{
    for (size_t i = fit->count; i-- > 0;) {
        for (size_t k = i + 1; k < fit->count; k++)
            values[i] -= fit->factor[k][i] * values[k];
        values[i] /= fit->factor[i][i];
    }
}

static double square_of_ratio(double value, double usual, double spread)
{
    double off = log(value / usual) / spread;

    return off * off;
}

/* What is expected before anything is measured: noise of about 1 %, within a factor of
 * two or so, and a curve that bends slowly. */
static double log_prior(const struct nature *nature)
{
    return -0.5 * (square_of_ratio(nature->noise, 0.008, 0.5) +
                   square_of_ratio(nature->length, 0.5, 0.7) +
                   square_of_ratio(nature->bend, 0.1, 1.2));
}

/* The log-likelihood of the samples under that nature, with the prior. Those of one place
 * count by their mean, and by how they scatter about it. */
static double log_likelihood(struct fit *fit, const struct nature *nature)
{
    double sum = log_prior(nature);

    factorize(fit, nature);
    for (size_t i = 0; i < fit->count; i++)
        fit->weights[i] = fit->samples[i].mean - fit->middle;
    solve_lower(fit, fit->weights);
    for (size_t i = 0; i < fit->count; i++) {
        const struct wm_cap_sample *sample = &fit->samples[i];
        double repeats = (double)sample->count - 1;
        sum -= 0.5 * fit->weights[i] * fit->weights[i] + log(fit->factor[i][i]);
        sum -= repeats * log(nature->noise) +
               0.5 * sample->squares / (nature->noise * nature->noise);
    }
    solve_upper(fit, fit->weights);
    return sum;
}

/* What the samples say of a place, in the coordinates of the factor. */
struct look {
    double seen[WM_CAP_MEASURED_MAX];
    double mean, variance; /* the variance is that before anything was measured */
};

static void look_at(const struct fit *fit, const struct nature *nature, double place,
                    struct look *ret_look)
{
    ret_look->mean = fit->middle;
    ret_look->variance = covariance(nature, place, place);
    for (size_t i = 0; i < fit->count; i++) {
        double *seen = &ret_look->seen[i];
        *seen = covariance(nature, place, fit->samples[i].place);
        ret_look->mean += *seen * fit->weights[i];
    }
    solve_lower(fit, ret_look->seen);
}

static double dot(const double *one, const double *other, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += one[i] * other[i];
    return sum;
}

/* Adds the curve of one nature, weighted by its share, to means and to sums of squares. */
static void add_nature(const struct fit *fit, const struct nature *nature, double share,
                       const double *places, size_t count, struct wm_cap_curve *sums)
{
    struct look last, look;

    look_at(fit, nature, places[count - 1], &last);
    double last_rest = last.variance - dot(last.seen, last.seen, fit->count);
    for (size_t i = 0; i < count; i++) {
        look_at(fit, nature, places[i], &look);
        double rest = look.variance - dot(look.seen, look.seen, fit->count);
        double common = covariance(nature, places[i], places[count - 1]) -
                        dot(look.seen, last.seen, fit->count);
        double difference = look.mean - last.mean;
        sums->mean[i] += share * look.mean;
        sums->sd[i] += share * (rest + look.mean * look.mean);
        sums->sd_to_last[i] +=
            share * (rest + last_rest - 2 * common + difference * difference);
    }
    sums->noise += share * nature->noise;
}

void wm_cap_curve_fit(const struct wm_cap_sample *samples, size_t count,
                      const struct wm_cap_shape *shape, const double *places,
                      size_t place_count, struct wm_cap_curve *ret_curve)
{
    struct fit fit = { .samples = samples, .count = count };
    double likely[NATURES], best = -INFINITY, total = 0;

    *ret_curve = (struct wm_cap_curve) { 0 };
    for (size_t i = 0; i < count; i++)
        fit.middle += samples[i].mean / (double)count;
    for (size_t i = 0; i < NATURES; i++) {
        struct nature nature = nature_at(i, shape);
        likely[i] = log_likelihood(&fit, &nature);
        best = fmax(best, likely[i]);
    }
    for (size_t i = 0; i < NATURES; i++)
        total += likely[i] > best - unlikely ? exp(likely[i] - best) : 0;
    for (size_t i = 0; i < NATURES; i++) {
        struct nature nature = nature_at(i, shape);
        if (!(likely[i] > best - unlikely))
            continue;
        log_likelihood(&fit, &nature);
        add_nature(&fit, &nature, exp(likely[i] - best) / total, places, place_count,
                   ret_curve);
    }
    double last = ret_curve->mean[place_count - 1];
    for (size_t i = 0; i < place_count; i++) {
        double mean = ret_curve->mean[i];
        ret_curve->sd[i] = sqrt(fmax(ret_curve->sd[i] - mean * mean, 0));
        ret_curve->sd_to_last[i] =
            sqrt(fmax(ret_curve->sd_to_last[i] - (mean - last) * (mean - last), 0));
    }
}

/* The pool-adjacent-violators algorithm: whatever rises is made level at its mean. */
void wm_cap_curve_go_down(double *mean, size_t count)
{
    size_t sizes[WM_CAP_PLACES_MAX];
    double levels[WM_CAP_PLACES_MAX];
    size_t pools = 0, at = 0;

    for (size_t i = 0; i < count; i++) {
        levels[pools] = mean[i];
        sizes[pools++] = 1;
        for (; pools > 1 && levels[pools - 2] < levels[pools - 1]; pools--) {
            size_t left = sizes[pools - 2], right = sizes[pools - 1];
            levels[pools - 2] =
                (levels[pools - 2] * (double)left + levels[pools - 1] * (double)right) /
                (double)(left + right);
            sizes[pools - 2] = left + right;
        }
    }
    for (size_t i = 0; i < pools; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            mean[at++] = levels[i];
}
