/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_cap_search.c - which cap to measure next, and which one is best.
 *
 * A spread first: the default limit, the lowest cap, and some between them. Then the caps
 * of which most is to be expected, because the curve is low there or not known. At last the
 * best one once more, beside the default limit. Not a golden section, which asks for a
 * curve with one valley and no noise.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/cap/analyze_cap_curve.h"
#include "base/base_error.h"
#include "wattmeter/cap_search.h"

enum { WINDOWS = 2, SPREAD = 4 };

/* How many times as many windows a noisy measurement gets, and the noise of a mean that
 * it is not worth it for. */
enum { MORE_WINDOWS = 4 };
static const double quiet = 0.01;

/* The answer is measured once more if there are so many probes in all. */
enum { CONFIRM_FROM = 6 };

/* No better answer is looked for that is expected to be better by less. */
static const double worth_a_probe = 0.0003;

/* A card that draws no more than about its lowest cap is held back by none; and where a
 * cap has no effect, time and energy differ by noise alone. */
static const double hardly_above = 1.02, no_effect = 0.03;

/* So little is no gain where it may be noise. */
static const double no_gain = 0.005;

/* A rise of the time by more than this, and the noise, that is not smooth. */
static const double a_step = 0.05;

/* How far a card is off a smooth curve at each cap: where each was measured once, as in a
 * table, maybe on another day; and where they were measured to and fro. */
static const double uneven[] = { 0.01, 0.002 };

/* What was not measured is chosen where it is better by so much at least, and worse by so
 * much hardly ever. */
static const double worth_a_guess = 0.002, little_worse = 0.01;

/* A curve that is off by more standard deviations does not fit; so many windows more than
 * caps say what the noise is. */
static const double beyond_noise = 3;
static const size_t repeats_min = 4;

/* Standard deviations from the mean to an end of the 95 % interval. */
static const double confidence_95 = 1.96;

/* A curve of each objective, in their order, and one of the time. */
enum { CURVE_TIME = WM_CAP_OBJECTIVES, CURVES };

struct measured {
    double cap;
    double seconds, joules;               /* means */
    struct wm_cap_sample samples[CURVES]; /* of the same windows */
};

enum stage { STAGE_START, STAGE_SPREAD, STAGE_REFINE, STAGE_CONFIRM, STAGE_DONE };

struct wm_cap_search {
    struct wm_cap_plan plan; /* without zeros that stand for something */
    double *caps;            /* those of the plan, going up; NULL: any */

    struct measured measured[WM_CAP_MEASURED_MAX];
    size_t measured_count;

    enum stage stage;
    double batch[WM_CAP_PROBES_MAX]; /* measured one after the other, to and fro */
    size_t batch_count, windows_done;
    size_t windows;     /* of each cap */
    size_t probes_done; /* with those of the batch */

    bool is_fitted;
    double caps_fitted[WM_CAP_PLACES_MAX]; /* that may be the answer, going up */
    double places[WM_CAP_PLACES_MAX];      /* the same from 0 to 1 */
    size_t place_count;
    struct wm_cap_curve curves[CURVES];
    struct wm_cap_point points[WM_CAP_PLACES_MAX];
};

const char *wm_cap_objective_name(size_t objective)
{
    static const char *const names[WM_CAP_OBJECTIVES] = { "energy", "edp", "ed2p", "cost" };

    return objective < WM_CAP_OBJECTIVES ? names[objective] : NULL;
}

/* Whether both are the same setting, whatever arithmetic they come from. */
static bool is_same(double one, double other)
{
    return fabs(one - other) < 1e-6 * one;
}

static int compare_numbers(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* Sorts, and lets one of each stay. Returns how many. */
static size_t sort_caps(double *caps, size_t count)
{
    size_t kept = 0;

    qsort(caps, count, sizeof(*caps), compare_numbers);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !is_same(caps[kept - 1], caps[i]))
            caps[kept++] = caps[i];
    return kept;
}

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
    for (size_t i = 0; i < plan->cap_count; i++)
        if (!(plan->caps[i] >= plan->minimum && plan->caps[i] <= plan->maximum))
            return wm_fail(err, WM_EINVAL, "cap %g is not between %g and %g", plan->caps[i],
                           plan->minimum, plan->maximum);
    return WM_OK;
}

/* The default limit is always one of them, for all is compared with it. */
static int copy_caps(struct wm_cap_search *search, struct wm_error *err)
{
    struct wm_cap_plan *plan = &search->plan;
    size_t count = plan->cap_count;

    if (count == 0)
        return WM_OK;
    search->caps = calloc(count + 1, sizeof(*search->caps));
    if (!search->caps)
        return wm_fail_memory(err, NULL);
    for (size_t i = 0; i < count; i++)
        search->caps[i] = plan->caps[i];
    search->caps[count++] = plan->maximum;
    plan->caps = search->caps;
    plan->cap_count = sort_caps(search->caps, count);
    plan->minimum = search->caps[0];
    if (plan->cap_count < 2)
        return wm_fail(err, WM_EINVAL, "a search needs a cap below %g", plan->maximum);
    if (plan->cap_count > WM_CAP_MEASURED_MAX)
        return wm_fail(err, WM_EINVAL, "more than %d caps", WM_CAP_MEASURED_MAX);
    if (plan->probes == 0 || plan->probes > plan->cap_count)
        plan->probes = (unsigned)plan->cap_count;
    return WM_OK;
}

int wm_cap_search_new(const struct wm_cap_plan *plan, struct wm_cap_search **ret_search,
                      struct wm_error *err)
{
    int status = check_plan(plan, err);

    if (status < 0)
        return status;
    struct wm_cap_search *search = calloc(1, sizeof(*search));
    if (!search)
        return wm_fail_memory(err, NULL);
    search->plan = *plan;
    status = copy_caps(search, err);
    if (status < 0) {
        wm_cap_search_free(search);
        return status;
    }
    plan = &search->plan;
    search->plan.step = plan->step > 0 ? plan->step : 1;
    search->plan.probes = plan->probes > 0 ? plan->probes : WM_CAP_PROBES;
    search->windows = search->plan.windows = plan->windows > 0 ? plan->windows : WINDOWS;
    search->plan.time_watts = plan->time_watts > 0 ? plan->time_watts : plan->maximum;
    *ret_search = search;
    return WM_OK;
}

void wm_cap_search_free(struct wm_cap_search *search)
{
    if (search)
        free(search->caps);
    free(search);
}

/* What was measured. */

static struct measured *find_measured(struct wm_cap_search *search, double cap)
{
    for (size_t i = 0; i < search->measured_count; i++)
        if (is_same(search->measured[i].cap, cap))
            return &search->measured[i];
    return NULL;
}

/* They are kept going up; there is room. */
static struct measured *insert_measured(struct wm_cap_search *search, double cap)
{
    size_t at = search->measured_count++;

    for (; at > 0 && search->measured[at - 1].cap > cap; at--)
        search->measured[at] = search->measured[at - 1];
    search->measured[at] = (struct measured) { .cap = cap };
    return &search->measured[at];
}

static struct measured *measured_at(struct wm_cap_search *search, size_t place)
{
    return find_measured(search, search->caps_fitted[place]);
}

static size_t windows_of(const struct measured *measured)
{
    return measured ? measured->samples[0].count : 0;
}

static double place_of(const struct wm_cap_plan *plan, double cap)
{
    return log(cap / plan->minimum) / log(plan->maximum / plan->minimum);
}

static double log_of(const struct wm_cap_plan *plan, size_t curve, double seconds,
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

/* Welford's way, which loses no digits. */
static void add_to_sample(struct wm_cap_sample *sample, double value)
{
    double off = value - sample->mean;

    sample->count++;
    sample->mean += off / (double)sample->count;
    sample->squares += off * (value - sample->mean);
}

static bool is_in_plan(const struct wm_cap_search *search, double cap)
{
    const struct wm_cap_plan *plan = &search->plan;

    for (size_t i = 0; i < plan->cap_count; i++)
        if (is_same(search->caps[i], cap))
            return true;
    return plan->cap_count == 0 && cap >= plan->minimum && cap <= plan->maximum;
}

static bool is_usable(double number)
{
    return number > 1e-100 && number < 1e100;
}

int wm_cap_search_add(struct wm_cap_search *search, double cap, double seconds,
                      double joules, struct wm_error *err)
{
    double asked;

    if (!is_in_plan(search, cap))
        return wm_fail(err, WM_EINVAL, "cap %g is none of this search", cap);
    if (!is_usable(seconds) || !is_usable(joules))
        return wm_fail(err, WM_EINVAL, "%g s and %g J at cap %g: both must be above 0",
                       seconds, joules, cap);
    struct measured *measured = find_measured(search, cap);
    if (!measured) {
        if (search->measured_count == WM_CAP_MEASURED_MAX)
            return wm_fail(err, WM_EINVAL, "more than %d caps", WM_CAP_MEASURED_MAX);
        measured = insert_measured(search, cap);
    }
    for (size_t i = 0; i < CURVES; i++) {
        measured->samples[i].place = place_of(&search->plan, cap);
        add_to_sample(&measured->samples[i], log_of(&search->plan, i, seconds, joules));
    }
    double count = (double)windows_of(measured);
    measured->seconds += (seconds - measured->seconds) / count;
    measured->joules += (joules - measured->joules) / count;
    search->is_fitted = false;
    if (search->stage != STAGE_START && wm_cap_search_next(search, &asked) > 0 &&
        is_same(asked, cap))
        search->windows_done++;
    return WM_OK;
}

/* The model. */

/* The caps that can be set, but for a long range every so many of them, and all that were
 * measured. */
static void list_caps(struct wm_cap_search *search)
{
    const struct wm_cap_plan *plan = &search->plan;
    double stride = plan->step, room = WM_CAP_PLACES_MAX - WM_CAP_MEASURED_MAX - 2;
    size_t count = 0;

    for (; count < plan->cap_count; count++)
        search->caps_fitted[count] = search->caps[count];
    if (count == 0) {
        stride *= ceil((plan->maximum - plan->minimum) / stride / room);
        for (double cap = plan->minimum; cap < plan->maximum;
             cap = plan->minimum + stride * (double)count)
            search->caps_fitted[count++] = cap;
        for (size_t i = 0; i < search->measured_count; i++)
            search->caps_fitted[count++] = search->measured[i].cap;
        search->caps_fitted[count++] = plan->maximum;
    }
    search->place_count = sort_caps(search->caps_fitted, count);
    for (size_t i = 0; i < search->place_count; i++)
        search->places[i] = place_of(plan, search->caps_fitted[i]);
}

/* A cap above what the card draws by itself has no effect, if it draws that all the time.
 */
static double level_of(struct wm_cap_search *search)
{
    const struct measured *top = find_measured(search, search->plan.maximum);

    if (!top || search->plan.is_clock)
        return 1;
    return fmin(fmax(place_of(&search->plan, top->joules / top->seconds), 0), 1);
}

/* The standard deviation of a window, by how those of one cap differ; NAN where few do. */
static double repeated_noise(const struct wm_cap_search *search, size_t curve)
{
    double squares = 0;
    size_t repeats = 0;

    for (size_t i = 0; i < search->measured_count; i++) {
        squares += search->measured[i].samples[curve].squares;
        repeats += search->measured[i].samples[curve].count - 1;
    }
    return repeats >= repeats_min ? sqrt(squares / (double)repeats) : NAN;
}

/* Beside a step no curve is smooth enough: where one is off what was measured by more than
 * the noise, the measurements count. */
static void trust_measurements(struct wm_cap_search *search, size_t curve)
{
    double noise = repeated_noise(search, curve);

    for (size_t i = 0; i < search->place_count && !isnan(noise); i++) {
        const struct measured *measured = measured_at(search, i);
        if (!measured)
            continue;
        const struct wm_cap_sample *sample = &measured->samples[curve];
        double sd = noise / sqrt((double)sample->count);
        if (fabs(search->curves[curve].mean[i] - sample->mean) < beyond_noise * sd)
            continue;
        search->curves[curve].mean[i] = sample->mean;
        search->curves[curve].sd[i] = sd;
    }
}

/* Between two caps that were measured neither time nor power is out of theirs, though a
 * smooth curve may swing beside a step. */
static void keep_between(struct wm_cap_search *search, size_t curve)
{
    double *mean = search->curves[curve].mean;
    size_t upper = 0;

    for (size_t i = 0; i < search->place_count; i++) {
        while (upper < search->measured_count &&
               search->measured[upper].cap < search->caps_fitted[i])
            upper++;
        if (upper == 0 || upper == search->measured_count || measured_at(search, i))
            continue;
        const struct measured *low = &search->measured[upper - 1], *high = low + 1;
        double fast = fmin(low->seconds, high->seconds);
        double slow = fmax(low->seconds, high->seconds);
        double weak = fmin(low->joules / low->seconds, high->joules / high->seconds);
        double strong = fmax(low->joules / low->seconds, high->joules / high->seconds);
        mean[i] = fmax(mean[i], log_of(&search->plan, curve, fast, weak * fast));
        mean[i] = fmin(mean[i], log_of(&search->plan, curve, slow, strong * slow));
    }
}

static void fit(struct wm_cap_search *search)
{
    struct wm_cap_sample samples[WM_CAP_MEASURED_MAX];

    if (search->is_fitted)
        return;
    list_caps(search);
    for (size_t curve = 0; curve < CURVES; curve++) {
        for (size_t i = 0; i < search->measured_count; i++)
            samples[i] = search->measured[i].samples[curve];
        wm_cap_curve_fit(samples, search->measured_count, level_of(search),
                         uneven[search->plan.windows > 1], search->places,
                         search->place_count, &search->curves[curve]);
        trust_measurements(search, curve);
        keep_between(search, curve);
    }
    /* Less power never makes a card faster. */
    wm_cap_curve_go_down(search->curves[CURVE_TIME].mean, search->place_count);
    search->is_fitted = true;
}

/* The logarithm of the ratio to the default limit. */
static double above_default(const struct wm_cap_curve *curve, size_t place, size_t count)
{
    return curve->mean[place] - curve->mean[count - 1];
}

/* As far as is known; of a cap that was not measured that has to be known well. */
static bool is_fast_enough(struct wm_cap_search *search, size_t place)
{
    const struct wm_cap_curve *time = &search->curves[CURVE_TIME];
    double above = above_default(time, place, search->place_count);
    double limit = log1p(search->plan.max_slowdown);

    if (search->plan.max_slowdown <= 0 || place == search->place_count - 1)
        return true;
    return above <= limit &&
           (measured_at(search, place) ||
            above + confidence_95 * time->sd_to_last[place] <= limit + little_worse);
}

/* The lowest place of the curve that is fast enough; the default limit always is. */
static size_t lowest(struct wm_cap_search *search, enum wm_cap_objective objective,
                     bool only_measured)
{
    const double *mean = search->curves[objective].mean;
    size_t best = search->place_count - 1;

    for (size_t i = 0; i < search->place_count; i++)
        if (mean[i] < mean[best] && is_fast_enough(search, i) &&
            (!only_measured || measured_at(search, i)))
            best = i;
    return best;
}

/* A cap that was not measured is chosen only where there is little to lose. */
static size_t choose(struct wm_cap_search *search, enum wm_cap_objective objective,
                     enum wm_cap_reason *ret_reason)
{
    const struct wm_cap_curve *curve = &search->curves[objective];
    size_t best = lowest(search, objective, false);
    size_t safe = lowest(search, objective, true);
    double better = curve->mean[safe] - curve->mean[best];

    *ret_reason = measured_at(search, best) ? WM_CAP_FOUND : WM_CAP_PREDICTED;
    if (*ret_reason == WM_CAP_PREDICTED &&
        (better < worth_a_guess ||
         confidence_95 * curve->sd[best] > better + little_worse)) {
        *ret_reason = WM_CAP_BEST_MEASURED;
        best = safe;
    }
    double gain = -above_default(curve, best, search->place_count);
    if (gain <= fmin(no_gain, curve->sd_to_last[best])) {
        *ret_reason = WM_CAP_NO_GAIN;
        best = search->place_count - 1;
    }
    return best;
}

static bool never_binds(struct wm_cap_search *search)
{
    const struct measured *low = find_measured(search, search->plan.minimum);
    const struct measured *high = find_measured(search, search->plan.maximum);

    if (!low || !high)
        return false;
    return (search->plan.is_clock ||
            high->joules <= hardly_above * search->plan.minimum * high->seconds) &&
           fabs(log(low->seconds / high->seconds)) < no_effect &&
           fabs(log(low->joules / high->joules)) < no_effect;
}

/* What to measure next. */

static unsigned probes_left(const struct wm_cap_search *search)
{
    return search->plan.probes - (unsigned)search->probes_done;
}

static bool is_in_batch(const struct wm_cap_search *search, double cap)
{
    for (size_t i = 0; i < search->batch_count; i++)
        if (is_same(search->batch[i], cap))
            return true;
    return false;
}

/* Adds the cap that can be set, and is not in the batch, next to what one would like. */
static void add_nearest(struct wm_cap_search *search, double like)
{
    const struct wm_cap_plan *plan = &search->plan;
    double cap = plan->minimum + plan->step * round((like - plan->minimum) / plan->step);
    double nearest = plan->cap_count > 0 ? INFINITY : fmin(cap, plan->maximum);

    for (size_t i = 0; i < plan->cap_count; i++)
        if (!is_in_batch(search, search->caps[i]) &&
            fabs(search->caps[i] - like) < fabs(nearest - like))
            nearest = search->caps[i];
    if (isfinite(nearest) && !is_in_batch(search, nearest))
        search->batch[search->batch_count++] = nearest;
}

/* The ends of the range. */
static void start_spread(struct wm_cap_search *search)
{
    search->batch[0] = search->plan.maximum;
    search->batch[1] = search->plan.minimum;
    search->probes_done = search->batch_count = 2;
    search->stage = STAGE_SPREAD;
}

/* Caps at equal ratios between the ends; but not where the card, by what it draws without
 * a cap, would hardly notice them. */
static void widen_spread(struct wm_cap_search *search)
{
    const struct wm_cap_plan *plan = &search->plan;
    const struct measured *free_running = find_measured(search, plan->maximum);
    double top = 1.1 * free_running->joules / free_running->seconds;
    unsigned between = plan->probes >= plan->cap_count && plan->cap_count > 0
                           ? plan->probes - 2
                           : (plan->probes < SPREAD ? plan->probes : SPREAD) - 2;

    if (plan->is_clock || top > plan->maximum || top < 1.2 * plan->minimum)
        top = plan->maximum;
    for (unsigned i = between; i > 0; i--) {
        double share = (double)i / (between + 1);
        add_nearest(search, plan->minimum * pow(top / plan->minimum, share));
    }
    search->probes_done = search->batch_count;
}

/* How much better a cap may be than the best one so far. */
typedef double gain_of_place(const struct wm_cap_search *search, size_t place, double best);

/* How much better than the best one so far it is expected to be, where that is more than
 * nothing, by how likely it is to be fast enough. */
static double expected_gain(const struct wm_cap_search *search, size_t place, double best)
{
    const struct wm_cap_curve *curve = &search->curves[search->plan.objective];
    const struct wm_cap_curve *time = &search->curves[CURVE_TIME];
    double sd = fmax(curve->sd[place], 1e-9), off = (best - curve->mean[place]) / sd;
    double above = 0.5 * erfc(-off / sqrt(2));
    double gain = sd * (off * above + exp(-0.5 * off * off) / sqrt(2 * acos(-1)));

    if (search->plan.max_slowdown > 0) {
        double spare = log1p(search->plan.max_slowdown) -
                       above_default(time, place, search->place_count);
        gain *= 0.5 * erfc(-spare / fmax(time->sd_to_last[place], 1e-9) / sqrt(2));
    }
    return gain;
}

/* Between two measured caps the time may rise more than it goes on to rise below: at some
 * cap between them a card does something else, such as slowing its memory down, and down
 * to there it may be as fast as above. How far that goes beyond what is smooth. */
static double step_between(const struct wm_cap_search *search, size_t upper)
{
    const struct measured *at = &search->measured[upper];
    double rise = at[-1].samples[CURVE_TIME].mean - at[0].samples[CURVE_TIME].mean;
    double below = at[-2].samples[CURVE_TIME].mean - at[-1].samples[CURVE_TIME].mean;

    return rise -
           fmax(below, 0) * log(at[0].cap / at[-1].cap) / log(at[-1].cap / at[-2].cap);
}

/* How much better a cap may be than the best one so far, because such a step is as likely
 * to be below it as its share of the way between the two. */
static double gain_above_step(const struct wm_cap_search *search, size_t place, double best)
{
    double cap = search->caps_fitted[place];
    size_t upper = 2;

    while (upper < search->measured_count && search->measured[upper].cap < cap)
        upper++;
    if (upper >= search->measured_count || cap <= search->measured[upper - 1].cap ||
        step_between(search, upper) < a_step + 4 * search->curves[CURVE_TIME].noise)
        return 0;
    const struct measured *low = &search->measured[upper - 1], *high = low + 1;
    const struct measured *top = &search->measured[search->measured_count - 1];
    if (search->plan.max_slowdown > 0 &&
        high->seconds > top->seconds * (1 + search->plan.max_slowdown))
        return 0;
    double share = log(cap / low->cap) / log(high->cap / low->cap);
    double watts = pow(low->joules / low->seconds, 1 - share) *
                   pow(high->joules / high->seconds, share);
    double log_objective =
        log_of(&search->plan, search->plan.objective, high->seconds, watts * high->seconds);
    return share * fmax(best - log_objective, 0);
}

/* Puts the cap of which most is expected into the batch, if that is worth it. */
static void add_most_promising(struct wm_cap_search *search, gain_of_place *gain_of)
{
    double most = worth_a_probe, best;

    fit(search);
    best = search->curves[search->plan.objective]
               .mean[lowest(search, search->plan.objective, true)];
    for (size_t i = 0; i < search->place_count; i++) {
        double gain = gain_of(search, i, best);
        if (gain > most && !(search->caps && measured_at(search, i))) {
            most = gain;
            search->batch[0] = search->caps_fitted[i];
            search->batch_count = 1;
        }
    }
}

/* Puts the best one into the batch once more. */
static void add_best(struct wm_cap_search *search)
{
    enum wm_cap_reason reason;
    size_t best;

    fit(search);
    best = choose(search, search->plan.objective, &reason);
    if (reason == WM_CAP_NO_GAIN)
        return;
    search->batch[0] = search->caps_fitted[best];
    search->batch_count = 1;
}

/* Where there are several windows the default limit is measured beside each cap, so that
 * a drift is seen to. */
static void finish_batch(struct wm_cap_search *search)
{
    double cap = search->batch[0];

    search->probes_done++;
    if (search->windows > 1 && !is_same(cap, search->plan.maximum))
        search->batch[search->batch_count++] = search->plan.maximum;
}

static void next_batch(struct wm_cap_search *search)
{
    bool confirms = !search->caps && search->plan.probes >= CONFIRM_FROM;

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
    size_t most = MORE_WINDOWS * (size_t)search->plan.windows;

    if (search->plan.windows < 2 || search->stage == STAGE_START)
        return;
    fit(search);
    double noise = search->curves[search->plan.objective].noise / quiet;
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
        if (never_binds(search))
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
        .low = exp(mean - confidence_95 * sd),
        .high = exp(mean + confidence_95 * sd),
    };
}

static struct wm_cap_estimate ratio_to_default(const struct wm_cap_curve *curve,
                                               size_t place, size_t count)
{
    return estimate(above_default(curve, place, count), curve->sd_to_last[place]);
}

/* By how much it is less than the default limit. */
static struct wm_cap_estimate less(const struct wm_cap_curve *curve, size_t place,
                                   size_t count)
{
    struct wm_cap_estimate ratio = ratio_to_default(curve, place, count);

    return (struct wm_cap_estimate) { 1 - ratio.value, 1 - ratio.high, 1 - ratio.low };
}

static struct wm_cap_choice describe(struct wm_cap_search *search, size_t place,
                                     enum wm_cap_objective objective)
{
    size_t count = search->place_count;
    struct wm_cap_estimate time =
        ratio_to_default(&search->curves[CURVE_TIME], place, count);

    return (struct wm_cap_choice) {
        .cap = search->caps_fitted[place],
        .windows = windows_of(measured_at(search, place)),
        .saving = less(&search->curves[WM_CAP_ENERGY], place, count),
        .slowdown = { time.value - 1, time.low - 1, time.high - 1 },
        .gain = less(&search->curves[objective], place, count),
    };
}

static void fill_points(struct wm_cap_search *search)
{
    const struct wm_cap_curve *time = &search->curves[CURVE_TIME];
    const struct wm_cap_curve *energy = &search->curves[WM_CAP_ENERGY];
    const struct wm_cap_curve *aim = &search->curves[search->plan.objective];

    for (size_t i = 0; i < search->place_count; i++) {
        const struct measured *measured = measured_at(search, i);
        search->points[i] = (struct wm_cap_point) {
            .cap = search->caps_fitted[i],
            .seconds = estimate(time->mean[i], time->sd[i]),
            .joules = estimate(energy->mean[i], energy->sd[i]),
            .objective = estimate(aim->mean[i], aim->sd[i]),
            .windows = windows_of(measured),
            .measured_seconds = measured ? measured->seconds : 0,
            .measured_joules = measured ? measured->joules : 0,
        };
    }
}

int wm_cap_search_answer(struct wm_cap_search *search, struct wm_cap_answer *ret_answer,
                         struct wm_error *err)
{
    enum wm_cap_reason reason;

    if (search->measured_count < 2 || !find_measured(search, search->plan.maximum))
        return wm_fail(err, WM_ENODEV,
                       "too little was measured: the default limit and one cap below it "
                       "are the least");
    fit(search);
    fill_points(search);
    *ret_answer = (struct wm_cap_answer) {
        .plan = search->plan,
        .noise = search->curves[WM_CAP_ENERGY].noise,
        .curve = search->points,
        .count = search->place_count,
    };
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++) {
        enum wm_cap_objective objective = (enum wm_cap_objective)i;
        size_t place = choose(search, objective, &reason);
        if (never_binds(search)) {
            reason = WM_CAP_NEVER_BINDS;
            place = search->place_count - 1;
        }
        ret_answer->of[i] = describe(search, place, objective);
        if (objective == search->plan.objective)
            ret_answer->reason = reason;
    }
    ret_answer->choice = ret_answer->of[search->plan.objective];
    return WM_OK;
}
