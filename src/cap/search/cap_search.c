/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_search.c - which cap to measure next, and the answer.
 *
 * A spread first: the default limit, the lowest cap, and some between them. Then the caps
 * of which most is to be expected, because the curve is low there or not known. At last the
 * best one once more, beside the default limit. A golden-section search would need a curve
 * with a single minimum and without noise.
 */
#include <math.h>
#include <stdlib.h>

#include "base/base_error.h"
#include "base/base_options.h"
#include "cap/search/cap_model.h"
#include "wattmeter/cap_search.h"

enum { WINDOWS = 2, SPREAD = 4 };

/* Noisy caps get up to this many times as many windows, until the standard deviation of
 * their mean is below `quiet`, a ratio. */
enum { MORE_WINDOWS = 4 };
static const double quiet = 0.008;

/* The answer is measured once more in a search of so many probes or more. */
enum { CONFIRM_FROM = 6 };

/* The search ends when no cap is expected to be better than the best one by this ratio. */
static const double worth_a_probe = 0.0003;

/* GPUs of today have clocks about so many hertz apart. */
static const double clock_step = 15e6;

/* A card hardly notices a cap so much above its mean power without one; and a spread over
 * a range below this ratio would tell nothing. */
static const double hardly_noticed = 1.1, range_min = 1.2;

enum stage { STAGE_START, STAGE_SPREAD, STAGE_REFINE, STAGE_CONFIRM, STAGE_DONE };

struct wm_cap_search {
    struct wm_cap_model model;

    enum stage stage;
    double batch[WM_CAP_PROBES_MAX]; /* measured one after the other, to and fro */
    size_t batch_count, windows_done;
    size_t windows;     /* of each cap */
    size_t probes_done; /* with those of the batch */

    struct wm_cap_point points[WM_CAP_PLACES_MAX]; /* of the answer */
};

/* Starting a search. */

static int check_plan(const struct wm_cap_plan *plan, struct wm_error *err)
{
    if (!(plan->minimum > 0 && plan->maximum > plan->minimum && isfinite(plan->maximum)))
        return wm_fail(err, WM_EINVAL,
                       "there is nothing to choose between %g and %g: the lowest cap must "
                       "be above 0 and below the highest",
                       plan->minimum, plan->maximum);
    if (plan->objective < 0 || plan->objective >= WM_CAP_OBJECTIVES)
        return wm_fail(err, WM_EINVAL, "objective %d is unknown", (int)plan->objective);
    if (!(plan->step >= 0 && plan->max_slowdown >= 0 && plan->time_watts >= 0))
        return wm_fail(err, WM_EINVAL,
                       "step, slowdown and the worth of time must be 0 or more");
    if (plan->probes == 1 || plan->probes > WM_CAP_PROBES_MAX ||
        plan->windows > WM_CAP_WINDOWS_MAX)
        return wm_fail(err, WM_EINVAL,
                       "a search takes 2 to %d probes of 1 to %d windows each",
                       WM_CAP_PROBES_MAX, WM_CAP_WINDOWS_MAX);
    if (plan->cap_count > WM_CAP_MEASURED_MAX)
        return wm_fail(err, WM_EINVAL, "more than %d caps", WM_CAP_MEASURED_MAX);
    for (size_t i = 0; plan->caps && i < plan->cap_count; i++)
        if (!(plan->caps[i] >= plan->minimum && plan->caps[i] <= plan->maximum))
            return wm_fail(err, WM_EINVAL, "cap %g is not between %g and %g", plan->caps[i],
                           plan->minimum, plan->maximum);
    return WM_OK;
}

/* The default limit is always one of them, for all is compared with it. */
static int copy_caps(struct wm_cap_search *search, struct wm_error *err)
{
    struct wm_cap_plan *plan = &search->model.plan;
    size_t count = plan->cap_count;

    if (count == 0)
        return WM_OK;
    search->model.caps = calloc(count + 1, sizeof(*search->model.caps));
    if (!search->model.caps)
        return wm_fail_memory(err, NULL);
    double range = plan->maximum - plan->minimum, between = fmax((double)count - 1, 1);
    for (size_t i = 0; i < count; i++)
        search->model.caps[i] =
            plan->caps
                ? plan->caps[i]
                : fmin(plan->minimum + round(range * (double)i / between), plan->maximum);
    search->model.caps[count++] = plan->maximum;
    plan->caps = search->model.caps;
    plan->cap_count = wm_cap_sort(search->model.caps, count);
    plan->minimum = search->model.caps[0];
    if (plan->cap_count < 2)
        return wm_fail(err, WM_EINVAL, "a search needs a cap below %g", plan->maximum);
    if (plan->cap_count > WM_CAP_MEASURED_MAX)
        return wm_fail(err, WM_EINVAL, "more than %d caps", WM_CAP_MEASURED_MAX);
    if (plan->probes == 0 || plan->probes > plan->cap_count)
        plan->probes = (unsigned)plan->cap_count;
    return WM_OK;
}

int wm_cap_search_new(const struct wm_cap_plan *given, struct wm_cap_search **ret_search,
                      struct wm_error *err)
{
    struct wm_cap_plan own;
    const struct wm_cap_plan *plan = &own;

    int status = wm_options_read(given, &own, sizeof(own), err);
    if (status == WM_OK)
        status = check_plan(plan, err);

    if (status < 0)
        return status;
    struct wm_cap_search *search = calloc(1, sizeof(*search));
    if (!search)
        return wm_fail_memory(err, NULL);
    search->model.plan = own;
    status = copy_caps(search, err);
    if (status < 0) {
        wm_cap_search_free(search);
        return status;
    }
    plan = &search->model.plan;
    search->model.plan.step = plan->step > 0 ? plan->step : plan->is_clock ? clock_step : 1;
    search->model.plan.probes = plan->probes > 0 ? plan->probes : WM_CAP_PROBES;
    search->windows = search->model.plan.windows =
        plan->windows > 0 ? plan->windows : WINDOWS;
    search->model.plan.time_watts = plan->time_watts > 0 ? plan->time_watts
                                    : plan->is_clock     ? 0
                                                         : plan->maximum;
    *ret_search = search;
    return WM_OK;
}

void wm_cap_search_free(struct wm_cap_search *search)
{
    if (search)
        free(search->model.caps);
    free(search);
}

int wm_cap_search_add(struct wm_cap_search *search, double cap, double seconds,
                      double joules, struct wm_error *err)
{
    double asked;
    int status = wm_cap_model_add(&search->model, cap, seconds, joules, err);

    if (status == WM_OK && search->stage != STAGE_START &&
        wm_cap_search_next(search, &asked) > 0 && wm_cap_is_same(asked, cap))
        search->windows_done++;
    return status;
}

/* What to measure next. */

static unsigned probes_left(const struct wm_cap_search *search)
{
    return search->model.plan.probes - (unsigned)search->probes_done;
}

static bool is_in_batch(const struct wm_cap_search *search, double cap)
{
    for (size_t i = 0; i < search->batch_count; i++)
        if (wm_cap_is_same(search->batch[i], cap))
            return true;
    return false;
}

/* Adds the cap that can be set, and is not in the batch, next to what one would like. */
static void add_nearest(struct wm_cap_search *search, double like)
{
    const struct wm_cap_plan *plan = &search->model.plan;
    double cap = plan->minimum + plan->step * round((like - plan->minimum) / plan->step);
    double nearest = plan->cap_count > 0 ? INFINITY : fmin(cap, plan->maximum);

    for (size_t i = 0; i < plan->cap_count; i++)
        if (!is_in_batch(search, search->model.caps[i]) &&
            fabs(search->model.caps[i] - like) < fabs(nearest - like))
            nearest = search->model.caps[i];
    if (isfinite(nearest) && !is_in_batch(search, nearest))
        search->batch[search->batch_count++] = nearest;
}

/* The ends of the range. */
static void start_spread(struct wm_cap_search *search)
{
    search->batch[0] = search->model.plan.maximum;
    search->batch[1] = search->model.plan.minimum;
    search->probes_done = search->batch_count = 2;
    search->stage = STAGE_SPREAD;
}

/* Caps at equal ratios between the ends; but not where the card, by what it draws without
 * a cap, would hardly notice them. */
static void widen_spread(struct wm_cap_search *search)
{
    const struct wm_cap_plan *plan = &search->model.plan;
    const struct wm_cap_measured *free_running =
        wm_cap_model_find(&search->model, plan->maximum);
    double top = hardly_noticed * free_running->joules / free_running->seconds;
    unsigned between = plan->probes >= plan->cap_count && plan->cap_count > 0
                           ? plan->probes - 2
                           : (plan->probes < SPREAD ? plan->probes : SPREAD) - 2;

    if (plan->is_clock || top > plan->maximum || top < range_min * plan->minimum)
        top = plan->maximum;
    for (unsigned i = between; i > 0; i--) {
        double share = (double)i / (between + 1);
        add_nearest(search, plan->minimum * pow(top / plan->minimum, share));
    }
    search->probes_done = search->batch_count;
}

/* How much lower than `best` the logarithm of the objective is expected to be. */
typedef double gain_of_place(const struct wm_cap_search *search, size_t place, double best);

/* The expected improvement of Bayesian optimization, times the probability that the cap is
 * fast enough. */
static double expected_gain(const struct wm_cap_search *search, size_t place, double best)
{
    const struct wm_cap_curve *curve = &search->model.curves[search->model.plan.objective];
    const struct wm_cap_curve *time = &search->model.curves[WM_CAP_CURVE_TIME];
    double sd = fmax(curve->sd[place], 1e-9), off = (best - curve->mean[place]) / sd;
    double above = 0.5 * erfc(-off / sqrt(2));
    double gain = sd * (off * above + exp(-0.5 * off * off) / sqrt(2 * acos(-1)));

    if (search->model.plan.max_slowdown > 0) {
        double spare = log1p(search->model.plan.max_slowdown) -
                       wm_cap_model_above(&search->model, WM_CAP_CURVE_TIME, place);
        gain *= 0.5 * erfc(-spare / fmax(time->sd_to_last[place], 1e-9) / sqrt(2));
    }
    return gain;
}

/* Of a cap between the two measured ones beside a step: the step is equally likely to be
 * anywhere between them, and above it the time goes on to rise as it did. */
static double gain_above_step(const struct wm_cap_search *search, size_t place, double best)
{
    const struct wm_cap_model *model = &search->model;
    const struct wm_cap_measured *high = &model->measured[model->above_step];
    const struct wm_cap_measured *top = &model->measured[model->measured_count - 1];
    double cap = model->caps_fitted[place], slope = 0;

    if (model->above_step == 0 || cap <= high[-1].cap || cap >= high->cap)
        return 0;
    if (high < top)
        slope =
            fmax(log(high->seconds / high[1].seconds) / log(high[1].cap / high->cap), 0);
    double share = log(cap / high[-1].cap) / log(high->cap / high[-1].cap);
    double seconds = high->seconds * pow(high->cap / cap, slope);
    double watts = pow(high[-1].joules / high[-1].seconds, 1 - share) *
                   pow(high->joules / high->seconds, share);
    if (model->plan.max_slowdown > 0 &&
        seconds > top->seconds * (1 + model->plan.max_slowdown))
        return 0;
    double log_objective =
        wm_cap_model_log(&model->plan, model->plan.objective, seconds, watts * seconds);
    return share * fmax(best - log_objective, 0);
}

/* Puts the cap of which most is expected into the batch, if that is worth it. */
static void add_most_promising(struct wm_cap_search *search, gain_of_place *gain_of)
{
    double most = worth_a_probe, best;

    wm_cap_model_fit(&search->model);
    best =
        search->model.curves[search->model.plan.objective]
            .mean[wm_cap_model_lowest(&search->model, search->model.plan.objective, true)];
    for (size_t i = 0; i < search->model.place_count; i++) {
        double gain = gain_of(search, i, best);
        if (gain > most && !(search->model.caps && wm_cap_model_at(&search->model, i))) {
            most = gain;
            search->batch[0] = search->model.caps_fitted[i];
            search->batch_count = 1;
        }
    }
}

/* Puts the best one into the batch once more. */
static void add_best(struct wm_cap_search *search)
{
    enum wm_cap_reason reason;
    size_t best;

    wm_cap_model_fit(&search->model);
    best = wm_cap_model_choose(&search->model, search->model.plan.objective, &reason);
    if (reason == WM_CAP_NO_GAIN)
        return;
    search->batch[0] = search->model.caps_fitted[best];
    search->batch_count = 1;
}

/* With several windows the default limit is measured beside each cap, so that a drift
 * cancels out. */
static void finish_batch(struct wm_cap_search *search)
{
    double cap = search->batch[0];

    search->probes_done++;
    if (search->windows > 1 && !wm_cap_is_same(cap, search->model.plan.maximum))
        search->batch[search->batch_count++] = search->model.plan.maximum;
}

static void next_batch(struct wm_cap_search *search)
{
    bool confirms = !search->model.caps && search->model.plan.probes >= CONFIRM_FROM;

    search->batch_count = search->windows_done = 0;
    if (search->stage == STAGE_START) {
        start_spread(search);
        return;
    }
    if (search->stage != STAGE_CONFIRM && probes_left(search) > 0)
        add_most_promising(search, gain_above_step);
    if (search->stage != STAGE_CONFIRM && probes_left(search) > confirms &&
        search->batch_count == 0)
        add_most_promising(search, expected_gain);
    if (search->batch_count > 0) {
        search->stage = STAGE_REFINE;
    } else if (search->stage != STAGE_CONFIRM && confirms && probes_left(search) > 0) {
        search->stage = STAGE_CONFIRM;
        add_best(search);
    }
    if (search->batch_count == 0)
        search->stage = STAGE_DONE;
    else
        finish_batch(search);
}

/* As many windows as the noise asks for, in pairs. */
static void want_windows(struct wm_cap_search *search)
{
    size_t most = MORE_WINDOWS * (size_t)search->model.plan.windows;

    if (search->model.plan.windows < 2 || search->stage == STAGE_START)
        return;
    wm_cap_model_fit(&search->model);
    double noise = search->model.curves[search->model.plan.objective].noise / quiet;
    while (search->windows < most && noise * noise > (double)search->windows)
        search->windows += 2;
}

static bool batch_is_done(const struct wm_cap_search *search)
{
    return search->windows_done == search->batch_count * search->windows;
}

int wm_cap_search_next(struct wm_cap_search *search, double *ret_cap)
{
    if (search->stage == STAGE_SPREAD && search->windows_done == 2 &&
        search->batch_count == 2) {
        if (wm_cap_model_never_binds(&search->model))
            search->stage = STAGE_DONE;
        else
            widen_spread(search);
    }
    if (search->stage != STAGE_DONE && batch_is_done(search))
        want_windows(search);
    if (search->stage != STAGE_DONE && batch_is_done(search))
        next_batch(search);
    if (search->stage == STAGE_DONE)
        return 0;
    size_t turn = search->windows_done / search->batch_count;
    size_t at = search->windows_done % search->batch_count;
    *ret_cap = search->batch[turn % 2 == 0 ? at : search->batch_count - 1 - at];
    return 1;
}

size_t wm_cap_search_left(const struct wm_cap_search *search)
{
    size_t started = search->batch_count * search->windows - search->windows_done;
    size_t beside = search->windows > 1 ? 2 : 1;

    return search->stage == STAGE_DONE
               ? 0
               : started + probes_left(search) * search->windows * beside;
}

/* The answer. */

static struct wm_cap_estimate estimate(double mean, double sd)
{
    return (struct wm_cap_estimate) {
        .value = exp(mean),
        .low = exp(mean - WM_CAP_CONFIDENCE_95 * sd),
        .high = exp(mean + WM_CAP_CONFIDENCE_95 * sd),
    };
}

static struct wm_cap_estimate ratio_to_default(const struct wm_cap_model *model,
                                               size_t curve, size_t place)
{
    return estimate(wm_cap_model_above(model, curve, place),
                    model->curves[curve].sd_to_last[place]);
}

/* By how much it is less than the default limit. */
static struct wm_cap_estimate less(const struct wm_cap_model *model,
                                   enum wm_cap_objective objective, size_t place)
{
    struct wm_cap_estimate ratio = ratio_to_default(model, objective, place);

    return (struct wm_cap_estimate) { 1 - ratio.value, 1 - ratio.high, 1 - ratio.low };
}

static struct wm_cap_choice describe(struct wm_cap_model *model, size_t place,
                                     enum wm_cap_objective objective)
{
    struct wm_cap_estimate time = ratio_to_default(model, WM_CAP_CURVE_TIME, place);

    return (struct wm_cap_choice) {
        .cap = model->caps_fitted[place],
        .windows = wm_cap_windows(wm_cap_model_at(model, place)),
        .saving = less(model, WM_CAP_ENERGY, place),
        .slowdown = { time.value - 1, time.low - 1, time.high - 1 },
        .gain = less(model, objective, place),
    };
}

static void fill_points(struct wm_cap_search *search)
{
    const struct wm_cap_curve *time = &search->model.curves[WM_CAP_CURVE_TIME];
    const struct wm_cap_curve *energy = &search->model.curves[WM_CAP_ENERGY];
    const struct wm_cap_curve *aim = &search->model.curves[search->model.plan.objective];

    for (size_t i = 0; i < search->model.place_count; i++) {
        const struct wm_cap_measured *measured = wm_cap_model_at(&search->model, i);
        search->points[i] = (struct wm_cap_point) {
            .cap = search->model.caps_fitted[i],
            .seconds = estimate(time->mean[i], time->sd[i]),
            .joules = estimate(energy->mean[i], energy->sd[i]),
            .objective = estimate(aim->mean[i], aim->sd[i]),
            .windows = wm_cap_windows(measured),
            .measured_seconds = measured ? measured->seconds : 0,
            .measured_joules = measured ? measured->joules : 0,
        };
    }
}

int wm_cap_search_answer(struct wm_cap_search *search, struct wm_cap_answer *ret_answer,
                         struct wm_error *err)
{
    enum wm_cap_reason reason;

    if (search->model.measured_count < 2 ||
        !wm_cap_model_find(&search->model, search->model.plan.maximum))
        return wm_fail(err, WM_ENODEV,
                       "too little was measured: the default limit and one cap below it "
                       "are the least");
    wm_cap_model_fit(&search->model);
    fill_points(search);
    *ret_answer = (struct wm_cap_answer) {
        .plan = search->model.plan,
        .noise = search->model.curves[WM_CAP_ENERGY].noise,
        .curve = search->points,
        .count = search->model.place_count,
    };
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++) {
        enum wm_cap_objective objective = (enum wm_cap_objective)i;
        size_t place = wm_cap_model_choose(&search->model, objective, &reason);
        if (wm_cap_model_never_binds(&search->model)) {
            reason = WM_CAP_NEVER_BINDS;
            place = search->model.place_count - 1;
        }
        ret_answer->of[i] = describe(&search->model, place, objective);
        if (objective == search->model.plan.objective)
            ret_answer->reason = reason;
    }
    ret_answer->choice = ret_answer->of[search->model.plan.objective];
    return WM_OK;
}
