/* SPDX-License-Identifier: Apache-2.0 */
/* cap_model.c - curves of time and of objectives over caps, kept to what a card can
 * do, and the cap that is best by them. */
#include "cap/search/cap_model.h"

#include <math.h>
#include <stdlib.h>

/* No cap has an effect if a card at its default limit draws at most `hardly_above` times
 * the lowest cap, and if time and energy under the two differ by less than `no_effect`. */
static const double hardly_above = 1.02, no_effect = 0.03;

/* A gain below this ratio counts only if it is significant (95 %). The first number is for
 * caps that were measured once each, the second for several windows of each. The first is
 * lower, because the measurements of a table cost nothing any more, and a gain that is more
 * likely than not is worth taking. */
static const double no_gain[] = { 0.005, 0.01 };

/* The standard deviation of a card from a smooth curve at each cap, as a ratio: where each
 * cap was measured once, as in a table, maybe on another day; and where caps were measured
 * in an order that cancels a drift. */
static const double uneven[] = { 0.01, 0.002 };

/* The time has a step where it rises from one cap to the next by more than `a_step` plus
 * `beyond_noise` standard deviations of a window. That deviation is measured where windows
 * were repeated at least `repeats_min` times; it is taken to be `usual_noise` otherwise. */
static const double a_step = 0.05, beyond_noise = 4, usual_noise = 0.01;
static const size_t repeats_min = 4;

/* A cap that was not measured is chosen only if it is expected to be better than the best
 * measured one by `worth_a_guess` at least, and if the 95 % interval does not reach to
 * where it is worse by more than `little_worse`. */
static const double worth_a_guess = 0.002, little_worse = 0.01;

const char *wm_cap_objective_name(size_t objective)
{
    static const char *const names[WM_CAP_OBJECTIVES] = { "energy", "edp", "ed2p", "cost" };

    return objective < WM_CAP_OBJECTIVES ? names[objective] : NULL;
}

bool wm_cap_is_same(double one, double other)
{
    return fabs(one - other) < 1e-6 * one;
}

static int compare_numbers(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

size_t wm_cap_sort(double *caps, size_t count)
{
    size_t kept = 0;

    qsort(caps, count, sizeof(*caps), compare_numbers);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !wm_cap_is_same(caps[kept - 1], caps[i]))
            caps[kept++] = caps[i];
    return kept;
}

/* What was measured. */

struct wm_cap_measured *wm_cap_model_find(struct wm_cap_model *model, double cap)
{
    for (size_t i = 0; i < model->measured_count; i++)
        if (wm_cap_is_same(model->measured[i].cap, cap))
            return &model->measured[i];
    return NULL;
}

/* They are kept going up; there is room. */
static struct wm_cap_measured *insert_measured(struct wm_cap_model *model, double cap)
{
    size_t at = model->measured_count++;

    for (; at > 0 && model->measured[at - 1].cap > cap; at--)
        model->measured[at] = model->measured[at - 1];
    model->measured[at] = (struct wm_cap_measured) { .cap = cap };
    return &model->measured[at];
}

struct wm_cap_measured *wm_cap_model_at(struct wm_cap_model *model, size_t place)
{
    return wm_cap_model_find(model, model->caps_fitted[place]);
}

size_t wm_cap_windows(const struct wm_cap_measured *measured)
{
    return measured ? measured->samples[0].count : 0;
}

static double place_of(const struct wm_cap_plan *plan, double cap)
{
    return log(cap / plan->minimum) / log(plan->maximum / plan->minimum);
}

double wm_cap_model_log(const struct wm_cap_plan *plan, size_t curve, double seconds,
                        double joules)
{
    switch (curve) {
    case WM_CAP_ENERGY:
        return log(joules);
    case WM_CAP_EDP:
        return log(joules) + log(seconds);
    case WM_CAP_ED2P:
        return log(joules) + 2 * log(seconds);
    case WM_CAP_COST:
        return log(joules + plan->time_watts * seconds);
    default:
        return log(seconds);
    }
}

/* Welford's algorithm, which loses no digits to cancellation. */
static void add_to_sample(struct wm_cap_sample *sample, double value)
{
    double off = value - sample->mean;

    sample->count++;
    sample->mean += off / (double)sample->count;
    sample->squares += off * (value - sample->mean);
}

static bool is_in_plan(const struct wm_cap_model *model, double cap)
{
    const struct wm_cap_plan *plan = &model->plan;

    for (size_t i = 0; i < plan->cap_count; i++)
        if (wm_cap_is_same(model->caps[i], cap))
            return true;
    return plan->cap_count == 0 && cap >= plan->minimum && cap <= plan->maximum;
}

static bool is_usable(double number)
{
    return number > 1e-100 && number < 1e100;
}

int wm_cap_model_add(struct wm_cap_model *model, double cap, double seconds, double joules,
                     struct wm_error *err)
{
    if (!is_in_plan(model, cap))
        return wm_fail(err, WM_EINVAL, "cap %g is none of this search", cap);
    if (!is_usable(seconds) || !is_usable(joules))
        return wm_fail(
            err, WM_EINVAL,
            "%g s and %g J at cap %g: both must be above 0, and no more than 1e100",
            seconds, joules, cap);
    struct wm_cap_measured *measured = wm_cap_model_find(model, cap);
    if (!measured) {
        if (model->measured_count == WM_CAP_MEASURED_MAX)
            return wm_fail(err, WM_EINVAL, "more than %d caps", WM_CAP_MEASURED_MAX);
        measured = insert_measured(model, cap);
    }
    /* Of clocks no limit says what the card may draw; the default is measured first. */
    if (model->plan.time_watts == 0)
        model->plan.time_watts = joules / seconds;
    for (size_t i = 0; i < WM_CAP_CURVES; i++) {
        measured->samples[i].place = place_of(&model->plan, cap);
        add_to_sample(&measured->samples[i],
                      wm_cap_model_log(&model->plan, i, seconds, joules));
    }
    double count = (double)wm_cap_windows(measured);
    measured->seconds += (seconds - measured->seconds) / count;
    measured->joules += (joules - measured->joules) / count;
    model->is_fitted = false;
    return WM_OK;
}

/* The model. */

/* The caps that can be set, or at equal distances some of them where the range is long; and
 * all that were measured. */
static void list_caps(struct wm_cap_model *model)
{
    const struct wm_cap_plan *plan = &model->plan;
    double stride = plan->step, room = WM_CAP_PLACES_MAX - WM_CAP_MEASURED_MAX - 2;
    size_t count = 0;

    for (; count < plan->cap_count; count++)
        model->caps_fitted[count] = model->caps[count];
    if (count == 0) {
        stride *= ceil((plan->maximum - plan->minimum) / stride / room);
        for (double cap = plan->minimum; cap < plan->maximum;
             cap = plan->minimum + stride * (double)count)
            model->caps_fitted[count++] = cap;
        for (size_t i = 0; i < model->measured_count; i++)
            model->caps_fitted[count++] = model->measured[i].cap;
        model->caps_fitted[count++] = plan->maximum;
    }
    model->place_count = wm_cap_sort(model->caps_fitted, count);
    for (size_t i = 0; i < model->place_count; i++)
        model->places[i] = place_of(plan, model->caps_fitted[i]);
}

/* A cap above what the card draws without one has no effect, if that power is constant. */
static double level_of(struct wm_cap_model *model)
{
    const struct wm_cap_measured *top = wm_cap_model_find(model, model->plan.maximum);

    if (!top || model->plan.is_clock)
        return 1;
    return fmin(fmax(place_of(&model->plan, top->joules / top->seconds), 0), 1);
}

/* The standard deviation of a window, from windows under the same cap. */
static double noise_of_time(const struct wm_cap_model *model)
{
    double squares = 0;
    size_t repeats = 0;

    for (size_t i = 0; i < model->measured_count; i++) {
        const struct wm_cap_sample *time = &model->measured[i].samples[WM_CAP_CURVE_TIME];
        squares += time->squares;
        repeats += time->count - 1;
    }
    return repeats >= repeats_min ? sqrt(squares / (double)repeats) : usual_noise;
}

/* How much more the time rises from this cap to the next lower one than the slope below
 * that one explains. */
static double step_below(const struct wm_cap_model *model, size_t at)
{
    const struct wm_cap_measured *high = &model->measured[at], *low = high - 1;
    double rise =
        low->samples[WM_CAP_CURVE_TIME].mean - high->samples[WM_CAP_CURVE_TIME].mean;
    double below =
        low[-1].samples[WM_CAP_CURVE_TIME].mean - low->samples[WM_CAP_CURVE_TIME].mean;

    return rise - fmax(below, 0) * log(high->cap / low->cap) / log(low->cap / low[-1].cap);
}

/* The number of the measured cap above the highest step; 0: there is none. Between two caps
 * a card may begin to do something else, such as slowing its memory down. */
static size_t find_step(const struct wm_cap_model *model)
{
    double highest = a_step + beyond_noise * noise_of_time(model);
    size_t found = 0;

    for (size_t i = 2; i < model->measured_count; i++)
        if (step_below(model, i) > highest) {
            highest = step_below(model, i);
            found = i;
        }
    return found;
}

/* Between two measured caps neither time nor power leaves the range of theirs, though a
 * smooth curve may overshoot beside a step. */
static void keep_between(struct wm_cap_model *model, size_t curve)
{
    double *mean = model->curves[curve].mean;
    size_t upper = 0;

    for (size_t i = 0; i < model->place_count; i++) {
        while (upper < model->measured_count &&
               model->measured[upper].cap < model->caps_fitted[i])
            upper++;
        if (upper == 0 || upper == model->measured_count || wm_cap_model_at(model, i))
            continue;
        const struct wm_cap_measured *low = &model->measured[upper - 1], *high = low + 1;
        double fast = fmin(low->seconds, high->seconds);
        double slow = fmax(low->seconds, high->seconds);
        double weak = fmin(low->joules / low->seconds, high->joules / high->seconds);
        double strong = fmax(low->joules / low->seconds, high->joules / high->seconds);
        mean[i] = fmax(mean[i], wm_cap_model_log(&model->plan, curve, fast, weak * fast));
        mean[i] = fmin(mean[i], wm_cap_model_log(&model->plan, curve, slow, strong * slow));
    }
}

void wm_cap_model_fit(struct wm_cap_model *model)
{
    struct wm_cap_sample samples[WM_CAP_MEASURED_MAX];
    struct wm_cap_shape shape = { .uneven = uneven[model->plan.windows > 1] };

    if (model->is_fitted)
        return;
    list_caps(model);
    model->above_step = find_step(model);
    shape.level = level_of(model);
    if (model->above_step > 0)
        shape.step = model->measured[model->above_step].samples[0].place;
    for (size_t curve = 0; curve < WM_CAP_CURVES; curve++) {
        for (size_t i = 0; i < model->measured_count; i++)
            samples[i] = model->measured[i].samples[curve];
        wm_cap_curve_fit(samples, model->measured_count, &shape, model->places,
                         model->place_count, &model->curves[curve]);
        keep_between(model, curve);
    }
    /* Less power never makes a card faster. */
    wm_cap_curve_go_down(model->curves[WM_CAP_CURVE_TIME].mean, model->place_count);
    model->is_fitted = true;
}

double wm_cap_model_above(const struct wm_cap_model *model, size_t curve, size_t place)
{
    const double *mean = model->curves[curve].mean;

    return mean[place] - mean[model->place_count - 1];
}

/* By the mean alone for a cap that was measured; for another one also by the upper end of
 * the interval, which may be above the limit by `little_worse`. */
static bool is_fast_enough(struct wm_cap_model *model, size_t place)
{
    const struct wm_cap_curve *time = &model->curves[WM_CAP_CURVE_TIME];
    double above = wm_cap_model_above(model, WM_CAP_CURVE_TIME, place);
    double limit = log1p(model->plan.max_slowdown);

    if (model->plan.max_slowdown <= 0 || place == model->place_count - 1)
        return true;
    return above <= limit &&
           (wm_cap_model_at(model, place) ||
            above + WM_CAP_CONFIDENCE_95 * time->sd_to_last[place] <= limit + little_worse);
}

size_t wm_cap_model_lowest(struct wm_cap_model *model, enum wm_cap_objective objective,
                           bool only_measured)
{
    const double *mean = model->curves[objective].mean;
    size_t best = model->place_count - 1;

    for (size_t i = 0; i < model->place_count; i++)
        if (mean[i] < mean[best] && is_fast_enough(model, i) &&
            (!only_measured || wm_cap_model_at(model, i)))
            best = i;
    return best;
}

/* A cap that was not measured is chosen only where there is little to lose. */
size_t wm_cap_model_choose(struct wm_cap_model *model, enum wm_cap_objective objective,
                           enum wm_cap_reason *ret_reason)
{
    const struct wm_cap_curve *curve = &model->curves[objective];
    size_t best = wm_cap_model_lowest(model, objective, false);
    size_t safe = wm_cap_model_lowest(model, objective, true);
    double better = curve->mean[safe] - curve->mean[best];

    *ret_reason = wm_cap_model_at(model, best) ? WM_CAP_FOUND : WM_CAP_PREDICTED;
    if (*ret_reason == WM_CAP_PREDICTED &&
        (better < worth_a_guess ||
         WM_CAP_CONFIDENCE_95 * curve->sd[best] > better + little_worse)) {
        *ret_reason = WM_CAP_BEST_MEASURED;
        best = safe;
    }
    double gain = -wm_cap_model_above(model, objective, best);
    if (gain <= fmin(no_gain[model->plan.windows > 1],
                     WM_CAP_CONFIDENCE_95 * curve->sd_to_last[best])) {
        *ret_reason = WM_CAP_NO_GAIN;
        best = model->place_count - 1;
    }
    return best;
}

bool wm_cap_model_never_binds(struct wm_cap_model *model)
{
    const struct wm_cap_measured *low = wm_cap_model_find(model, model->plan.minimum);
    const struct wm_cap_measured *high = wm_cap_model_find(model, model->plan.maximum);

    if (!low || !high)
        return false;
    return (model->plan.is_clock ||
            high->joules <= hardly_above * model->plan.minimum * high->seconds) &&
           fabs(log(low->seconds / high->seconds)) < no_effect &&
           fabs(log(low->joules / high->joules)) < no_effect;
}
