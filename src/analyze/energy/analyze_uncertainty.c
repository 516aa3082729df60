/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_uncertainty.c - one term for each way in which joules can be wrong. */
#include "analyze/energy/analyze_uncertainty.h"

#include <math.h>

/* What is called random is taken twice: k = 2. */
#define K 2.0

/* Steps after which a change that comes once is no longer expected in the next one, with
 * 95 % confidence. */
#define STEADY_STEPS 20.0

/* What differs from reading to reading is in part a rhythm that a sensor follows, and does
 * not miss. */
#define MISSED 0.5

/* A counter is read seldom if the next reading comes after so long, and so many of its
 * periods. */
#define SELDOM_S 0.2
#define SELDOM_PERIODS 3.0

/* Of what the steps of a slow counter differ by, the part that it may hold back at the
 * ends: for steps of one or two periods these are 0.7 and 0.4 of a period. */
#define HELD_BACK 0.5

/* The utilization is that of a second at most. A device that was busy for a part of the
 * time in one of so many of its readings may have been so in all. */
#define BUSY_S 1.0
#define PARTLY 3.0

/* A device may draw up to ten times what it drew before; in nearly all cases no more than
 * 8.5 times. One and a half periods after it has begun that is shown. */
#define UNSHOWN_TIMES 7.5
#define SHOWN_STEPS 1.5

/* Utilization is even if it has not moved for so long. Faster rhythms than this it does not
 * show, nor those of a device that is hardly ever busy, or hardly ever idle. */
#define EVEN_S 1.0
#define LEAST_RHYTHM_S 0.09
#define LEAST_PART 0.18

/* Counter and power that differ by more are at odds. */
#define MOST_GAP 0.05

/* Counter and power of one board differ by so much where both are right; it is what
 * the one filled in for the other may be off. */
#define FILLED 0.05

/* Whether a reading that carries its own time is of that moment, or a mean before it or
 * after it, nobody knows: half a period. Where power steps within a period, the straight
 * line between two means lacks 2/27 of it more at each end: 35/54, less than two thirds. */
#define DATED_PERIODS (2.0 / 3)

/* A run as its figure is made. */
struct figure {
    const struct wm_energy *energy;
    const struct wm_energy_result *result;
    const struct wm_sensor *sensor;
    const struct wm_energy_variation *variation;
    bool is_integral;
    double period_s;
    double spacing_s; /* from one value that was seen to the next */
    double seconds;
    double watts;
    double difference;  /* between values that follow each other, root mean square */
    double known, busy; /* the part of the time of which the utilization is known, and */
                        /* that utilization */
    double doubt;       /* 0 to 1: whether the device may have been on and off unseen */
};

static double square(double value)
{
    return value * value;
}

static struct figure make_figure(const struct wm_energy *energy,
                                 const struct wm_energy_result *result)
{
    bool is_integral = result->method == WM_ENERGY_INTEGRAL;
    struct figure figure = {
        .energy = energy,
        .result = result,
        .sensor = is_integral ? &energy->power_sensor : &energy->counter_sensor,
        .variation = energy->power_variation.count > 0 ? &energy->power_variation
                                                       : &energy->counter_variation,
        .is_integral = is_integral,
        .seconds = fmax(result->span_s - result->missing_s, 0),
    };
    const struct wm_sensor_pace *pace =
        is_integral ? &energy->power_pace : &energy->counter_pace;
    const struct wm_sensor_pace *swing_pace =
        figure.variation == &energy->power_variation ? &energy->power_pace : pace;

    figure.period_s = wm_sensor_period_s(figure.sensor, pace);
    figure.spacing_s = fmax(figure.period_s, wm_sensor_pace_poll_s(swing_pace));
    if (figure.sensor->is_sample)
        figure.period_s = figure.spacing_s;
    figure.watts = figure.seconds > 0 ? result->joules / figure.seconds : 0;
    if (result->span_s > 0)
        figure.known = fmin(energy->busy_known_s / result->span_s, 1);
    if (energy->busy_known_s > 0)
        figure.busy = energy->busy_s / energy->busy_known_s;
    figure.doubt = 1 - figure.known * (1 - 4 * figure.busy * (1 - figure.busy));
    if (figure.variation->count > 0)
        figure.difference =
            sqrt(figure.variation->squares / (double)figure.variation->count);
    return figure;
}

/* The window of a value. */
static double window_s(const struct figure *figure)
{
    double window = figure->sensor->window_s;

    return window > 0 ? window : figure->period_s;
}

/* What power may be besides what is assumed for a time that is not seen: as far off as it
 * was from one value to the next, or something else altogether, for which the chance is one
 * in n + 1 after n steps in which it was not (Laplace's rule of succession). A mean that
 * moves on hides how far its steps were apart. */
static double unsteadiness(const struct figure *figure)
{
    double reach_s = fmax(figure->spacing_s, window_s(figure));
    double times = fmax(window_s(figure) / fmax(figure->spacing_s, 1e-9), 1);
    double steps = reach_s > 0 ? figure->seconds / reach_s : STEADY_STEPS;

    return hypot(K * figure->difference * times,
                 figure->watts * figure->doubt / sqrt(1 + steps));
}

/* Of readings that carry their own time: what their line leaves out at the ends, where
 * power steps. In a run of a few periods the step need not show. */
static double dated_ends(const struct figure *figure)
{
    const struct wm_energy_result *result = figure->result;
    double least = result->is_short ? figure->watts : 0;

    if (!figure->is_integral || !wm_sensor_is_dated(figure->sensor))
        return 0;
    return DATED_PERIODS * figure->period_s *
           hypot(fmax(result->start.step, least), fmax(result->end.step, least));
}

/* Within a period nothing is known of when its joules were drawn. */
static double period_edge_s(const struct figure *figure, const struct wm_energy_edge *edge)
{
    double reach_s = figure->period_s;

    if (wm_sensor_is_dated(figure->sensor))
        return 0;
    if (!figure->is_integral && reach_s > 0 && edge->lag_s < reach_s &&
        edge->blur_s < reach_s / 2)
        return fmin(edge->lag_s * (reach_s - edge->lag_s) / reach_s + edge->blur_s / 2,
                    reach_s / 4);
    return reach_s / 4;
}

/* What a mean of longer than a period does not show is when in its window joules were
 * drawn; all of them are known. */
static double mean_edge_s(const struct figure *figure)
{
    return figure->is_integral && window_s(figure) > figure->period_s
               ? window_s(figure) / 12
               : 0;
}

static double edge_squares(const struct figure *figure, const struct wm_energy_edge *edge)
{
    double watts = fmax(figure->watts, edge->watts);
    double mean_s = mean_edge_s(figure);
    double inside_s = fmax(period_edge_s(figure, edge), mean_s);
    double lag_s = mean_s > 0 ? edge->lag_s - 5 * mean_s : edge->lag_s;
    double unseen_s = fabs(lag_s + edge->cut_s) + edge->blur_s / 2;

    /* What is shown of the time before the run is not in its integral. */
    if (figure->is_integral)
        unseen_s = fmin(unseen_s, figure->seconds);

    return square(watts * edge->blur_s) + square(watts * edge->stamp_s) +
           square(unseen_s * unsteadiness(figure)) + square(watts * inside_s);
}

/* The part of the run of which nothing is shown yet: all that is may be of the time before.
 * A gauge that has not moved, or once, may be older than the run, if its period is not
 * sure. */
static double unshown(const struct figure *figure)
{
    double longest_s = (double)figure->sensor->longest_ns / 1e9;
    double changes = (double)figure->energy->power_pace.changes;

    if (figure->is_integral && changes < 2 && figure->seconds < longest_s)
        return 1 - changes / 2;
    if (figure->period_s <= 0)
        return 0;
    return fmax(1 - figure->seconds / figure->period_s / SHOWN_STEPS, 0);
}

static double unshown_joules(const struct figure *figure)
{
    double most = figure->watts * UNSHOWN_TIMES;

    if (figure->sensor->range > 0)
        most = fmin(most, fmax(figure->sensor->range - figure->watts, 0));
    return most * figure->seconds * unshown(figure);
}

/* How far values differ, as a square: as they did, and before a few of them have been
 * seen in part as if the device had been on and off by chance, but for what is allowed
 * for as unseen. */
static double difference_squares(const struct figure *figure)
{
    double count = (double)figure->variation->count;
    double seen = wm_sensor_seen(figure->sensor, figure->period_s);
    double doubt = seen < 1 ? 1 - figure->known : figure->doubt;

    doubt *= fmax(1 - count / STEADY_STEPS, 0);

    return (figure->variation->squares + doubt * 2 * square(figure->watts)) /
           fmax(count + doubt, 1);
}

/* Where a sensor, or our reading of it, sees a part of the time only, and the load is
 * not in step with it. A counter sees all of the time, however seldom it is read. */
static double sampling_squares(const struct figure *figure)
{
    double seen = wm_sensor_seen(figure->sensor, figure->period_s);
    double spacing_s = figure->variation->count > 0 ? figure->spacing_s : figure->period_s;

    if (figure->is_integral)
        seen = fmin(window_s(figure) / fmax(figure->spacing_s, 1e-9), 1);
    return square(K) * MISSED * (1 - seen) * difference_squares(figure) / 2 *
           figure->seconds * spacing_s;
}

/* A counter that is read seldom, and has moved each time, may be far slower than it is
 * known to be, as those of virtual machines are. It then holds back up to a period of
 * joules at both ends; and its steps are of one period more, or one less, and differ by
 * that. */
static double held_back_squares(const struct figure *figure)
{
    bool has_power = figure->energy->covered_s > 0;

    if (figure->is_integral || has_power || figure->sensor->kind == WM_SENSOR_MODEL ||
        figure->spacing_s < SELDOM_S ||
        figure->spacing_s < SELDOM_PERIODS * figure->period_s)
        return 0;
    return square(HELD_BACK * K * figure->spacing_s) * difference_squares(figure);
}

/* A driver's utilization is the mean of a time that is rarely a multiple of a load's
 * period: a load that is in step with a sensor of 100 ms moves it up and down. */
static bool is_even(const struct figure *figure)
{
    const struct wm_energy *energy = figure->energy;

    if (figure->sensor->is_sample)
        return figure->known <= 0;
    return figure->spacing_s >= LEAST_RHYTHM_S && energy->settled_s >= EVEN_S &&
           energy->least_busy >= LEAST_PART && energy->most_busy <= 1 - LEAST_PART &&
           energy->most_busy - energy->least_busy <= WM_ENERGY_EVEN;
}

/* A device that was always busy or never, whenever it was asked, hides nothing; it was
 * asked of the time before where a run is short. */
static double partly_busy(const struct figure *figure)
{
    const struct wm_energy *energy = figure->energy;

    if (figure->seconds < BUSY_S || energy->busy_known_s <= 0)
        return 1;
    return fmin(PARTLY * energy->partly_busy_s / energy->busy_known_s, 1);
}

static struct wm_unseen_case unseen_case(const struct figure *figure)
{
    return (struct wm_unseen_case) {
        .variation = figure->variation,
        .watts = figure->watts,
        .seconds = figure->seconds,
        .seen = wm_sensor_seen(figure->sensor, figure->period_s),
        .busy = figure->busy,
        .partly = partly_busy(figure),
        .is_even = is_even(figure),
        .is_sample = figure->sensor->is_sample,
        .known = figure->known,
        .most_watts = figure->sensor->range,
    };
}

/* What was drawn besides what the sensor saw, or was not drawn though it seemed so, if
 * the load is in step with it. */
static struct wm_unseen unseen_joules(const struct figure *figure)
{
    const struct wm_unseen_case what = unseen_case(figure);
    double joules = figure->result->joules;
    struct wm_unseen unseen;

    wm_unseen_find(&what, &unseen);
    return (struct wm_unseen) { joules * unseen.less, joules * unseen.more };
}

static double gap_squares(const struct figure *figure)
{
    const struct wm_energy_result *result = figure->result;
    double breaks = (double)(result->resets + result->implausible + result->stalls);

    return square(FILLED * result->filled_s * figure->watts) +
           square(FILLED * result->end.joules) + square(result->missing_s * figure->watts) +
           square(result->frozen) +
           square(figure->energy->bridged_s * K * figure->difference) +
           square(result->raised) + breaks * square(figure->period_s * figure->watts);
}

/* Whether counter and power differ by more than runs of that length may, of which each is
 * off by as much. */
static bool are_at_odds(const struct wm_energy_result *result, double random)
{
    return result->checked && !result->is_short && result->gap > MOST_GAP &&
           result->gap * result->joules > sqrt(2) * random;
}

void wm_uncertainty_find(const struct wm_energy *energy,
                         const struct wm_energy_result *result,
                         struct wm_uncertainty *ret_uncertainty)
{
    struct wm_uncertainty uncertainty = { 0 };

    if (result->method == WM_ENERGY_UNKNOWN) {
        *ret_uncertainty = uncertainty;
        return;
    }
    struct figure figure = make_figure(energy, result);
    double gain = figure.sensor->gain;
    const struct wm_unseen unseen = unseen_joules(&figure);
    double other =
        sqrt(edge_squares(&figure, &result->start) + edge_squares(&figure, &result->end) +
             held_back_squares(&figure) + sampling_squares(&figure) + gap_squares(&figure));
    uncertainty.unseen = fmax(unseen.less, unseen.more);
    uncertainty.below = hypot(other, unseen.less);
    uncertainty.above = hypot(hypot(other, unshown_joules(&figure)), unseen.more);
    uncertainty.random = fmax(uncertainty.below, uncertainty.above);
    uncertainty.at_odds = are_at_odds(result, uncertainty.random);
    /* One of the two is wrong by as much. */
    if (uncertainty.at_odds)
        gain = fmax(gain, result->gap);
    /* How a meter dates its readings is the same in all of its figures. */
    uncertainty.ends = dated_ends(&figure);
    uncertainty.systematic =
        hypot(gain * result->joules, figure.sensor->offset * figure.seconds) +
        uncertainty.ends;
    *ret_uncertainty = uncertainty;
}

struct wm_between wm_uncertainty_between(double joules, double systematic, double below,
                                         double above)
{
    return (struct wm_between) {
        .low = fmax(joules - hypot(systematic, below), 0),
        .high = joules + hypot(systematic, above),
    };
}

double wm_uncertainty_total(const struct wm_uncertainty *uncertainty)
{
    return hypot(uncertainty->systematic, uncertainty->random);
}
