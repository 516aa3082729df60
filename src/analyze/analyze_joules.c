/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_joules.c - joules as the report has them, whose they were, and what is to be
 * said of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "analyze/energy/analyze_uncertainty.h"
#include "base/base_text.h"

/* The part of a figure that a load in step with the sensor may hide without a note. */
#define MOST_UNSEEN 0.15

/* The part of a figure that the readings of a meter may leave out at the ends of the run
 * without a note. */
#define MOST_AT_ENDS 0.01

static const char *const method_texts[] = {
    [WM_ENERGY_UNKNOWN] = "",
    [WM_ENERGY_COUNTER] = "counter",
    [WM_ENERGY_COUNTER_FILLED] = "counter, gaps filled with the integral of power",
    [WM_ENERGY_INTEGRAL] = "integral of power",
};

static const char *why_no_energy(struct wm_report_builder *builder,
                                 const struct wm_device_stats *device, size_t channel)
{
    const struct wm_energy *energy = &device->joules;

    if (channel == WM_NO_CHANNEL && device->within >= WM_CONTAINS_MODULE)
        return "its driver reports the power of the whole module only, which includes the "
               "CPU";
    if (channel == WM_NO_CHANNEL)
        return wm_build_why(builder, channel, device->channel->source);
    const char *why = builder->analysis->stats[channel].why;
    const char *colon = why[0] ? ": " : "";

    if (energy->counted)
        return wm_build_text(builder,
                             "the energy counter did not move, and there is no power to "
                             "integrate%s%s",
                             colon, why);
    if (energy->powered || energy->max_power > 0)
        return wm_build_text(builder,
                             "there is no energy counter, and power was not read twice in "
                             "a row%s%s",
                             colon, why);
    return wm_build_why(builder, channel, device->channel->source);
}

static const char *why_not_covered(struct wm_report_builder *builder, size_t channel,
                                   const struct wm_energy_result *energy)
{
    const char *why = builder->analysis->stats[channel].why;

    if (energy->implausible > 0)
        return "its energy counter jumped by more than the device can draw";
    return wm_build_text(builder, "it was not known long enough for a figure%s%s",
                         why[0] ? ": " : "", why);
}

/* "2.2 s of 5 s: the driver was still starting". */
static const char *gap_text(struct wm_report_builder *builder, size_t channel,
                            const struct wm_energy_result *energy)
{
    const char *why = builder->analysis->stats[channel].why;

    return wm_build_text(builder, "%s s of %s s%s%s",
                         wm_build_number(energy->missing_s).text,
                         wm_build_number(energy->span_s).text, why[0] ? ": " : "", why);
}

/* Of the times that a counter began again: those after it jumped. */
static uint64_t jumps_of(const struct wm_report_builder *builder, size_t channel,
                         uint64_t resets)
{
    uint64_t jumps = channel != WM_NO_CHANNEL ? builder->analysis->stats[channel].jumps : 0;

    return jumps < resets ? jumps : resets;
}

static void remark_counter(struct wm_report_builder *builder,
                           const struct wm_device_stats *device,
                           const struct wm_energy_result *energy)
{
    const char *label = device->channel->label;
    uint64_t jumps = jumps_of(builder, device->energy, energy->resets);
    const char *instead = !wm_energy_is_known(energy) ? "there is no figure"
                          : energy->method == WM_ENERGY_COUNTER_FILLED
                              ? "the integral of power is used there"
                              : "that is left out, and the figure is a lower bound";
    const struct {
        uint64_t count;
        const char *what;
    } troubles[] = {
        { energy->stalls, "stood still while power was drawn and did not make up for it" },
        { energy->resets - jumps, "was set back" },
        { energy->implausible + jumps, "jumped by more than the device can draw" },
    };

    if (energy->stuck)
        wm_build_remark(builder,
                        "%s: the energy counter stood still %swhile power was drawn; the "
                        "integral of power is used%s",
                        label, energy->method == WM_ENERGY_INTEGRAL ? "" : "until the end ",
                        energy->method == WM_ENERGY_INTEGRAL ? "" : " from there on");
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        if (troubles[i].count > 0)
            wm_build_remark(builder, "%s: the energy counter %s (%llu time%s); %s", label,
                            troubles[i].what, (unsigned long long)troubles[i].count,
                            wm_plural(troubles[i].count), instead);
    }
    if (energy->filled_s > WM_LEAST_MISSING_S && !energy->stuck &&
        energy->resets + energy->implausible + energy->stalls == 0)
        wm_build_remark(
            builder,
            "%s: for %s s without the energy counter the integral of power is used", label,
            wm_build_number(energy->filled_s).text);
}

/* A driver that counts too fast is believed, as it may be right; but not in silence. */
static void remark_limit(struct wm_report_builder *builder,
                         const struct wm_device_stats *device,
                         const struct wm_energy_result *energy,
                         const struct wm_uncertainty *uncertainty)
{
    const struct wm_sensor *sensor = energy->method == WM_ENERGY_INTEGRAL
                                         ? &device->joules.power_sensor
                                         : &device->joules.counter_sensor;
    const struct wm_between range = wm_uncertainty_between(
        energy->joules, uncertainty->systematic, uncertainty->below, uncertainty->above);

    if (device->channel->device_kind == WM_DEVICE_GPU &&
        sensor->contains == WM_CONTAINS_DEVICE && sensor->range > 0 &&
        range.low > sensor->range * energy->span_s)
        wm_build_remark(
            builder,
            "%s: energy is that of %s W on average, more than the highest limit "
            "of its power, %s W",
            device->channel->label, wm_build_number(energy->joules / energy->span_s).text,
            wm_build_number(sensor->range).text);
}

static void remark_energy(struct wm_report_builder *builder,
                          const struct wm_device_stats *device,
                          const struct wm_energy_result *energy,
                          const struct wm_uncertainty *uncertainty)
{
    /* Of the channel that the figure rests on. */
    size_t channel = energy->method == WM_ENERGY_INTEGRAL ? device->power : device->energy;
    const char *label = device->channel->label;

    remark_counter(builder, device, energy);
    if (energy->missing_s > WM_LEAST_MISSING_S)
        wm_build_remark(builder, "%s: energy does not cover %s", label,
                        gap_text(builder, channel, energy));
    if (energy->is_short)
        wm_build_fact(builder,
                      "%s: the run is shorter than three updates of the power sensor (one "
                      "in %s ms); its energy is a rough figure",
                      label, wm_build_number(1e3 * energy->period_s).text);
    else if (uncertainty->at_odds)
        wm_build_remark(builder,
                        "%s: energy counter (%s J) and integral of power (%s J) differ by "
                        "%.0f %%",
                        label, wm_build_number(energy->counter).text,
                        wm_build_number(energy->integral).text, 100 * energy->gap);
    remark_limit(builder, device, energy, uncertainty);
    if (uncertainty->ends > MOST_AT_ENDS * energy->joules)
        wm_build_fact(
            builder,
            "%s: power steps by %s W at the start and by %s W at the end within a "
            "period of %s s; what lies there may be off by %s J, and the "
            "uncertainty allows for that",
            label, wm_build_number(energy->start.step).text,
            wm_build_number(energy->end.step).text, wm_build_number(energy->period_s).text,
            wm_build_number(uncertainty->ends).text);
    if (uncertainty->unseen > MOST_UNSEEN * energy->joules)
        wm_build_fact(builder,
                      "%s: its sensor measures a part of the time only; a load in step "
                      "with it is misjudged, and the uncertainty allows for that",
                      label);
}

/* The sensor that the figure rests on, and how often it has something new. */
static void describe_sensor(const struct wm_energy *joules, enum wm_energy_method method,
                            struct wm_energy_figure *figure)
{
    bool is_power = method == WM_ENERGY_INTEGRAL;
    const struct wm_sensor *sensor =
        is_power ? &joules->power_sensor : &joules->counter_sensor;
    const struct wm_sensor_pace *pace =
        is_power ? &joules->power_pace : &joules->counter_pace;
    double period_s = wm_sensor_period_s(sensor, pace);

    char text[2 * sizeof(figure->sensor)];

    snprintf(text, sizeof(text), "%s", sensor->text);
    if (period_s > 0)
        snprintf(text, sizeof(text), "%s; new every %s ms, %s", sensor->text,
                 wm_build_number(1e3 * period_s).text,
                 wm_sensor_is_measured(sensor, pace) ? "as measured" : "as stated");
    wm_text_utf8(figure->sensor, sizeof(figure->sensor), text, strlen(text));
}

static void miss_uncertainty(struct wm_energy_figure *figure, const char *why)
{
    figure->uncertainty = figure->low = figure->high = wm_value_missing(why);
}

static void build_uncertainty(const struct wm_energy_result *energy,
                              const struct wm_uncertainty *uncertainty,
                              struct wm_energy_figure *figure)
{
    const struct wm_between range = wm_uncertainty_between(
        energy->joules, uncertainty->systematic, uncertainty->below, uncertainty->above);

    /* Of nothing at all there is no ratio. */
    if (energy->joules <= 0) {
        miss_uncertainty(figure, "no energy was seen to be used");
        return;
    }
    if (energy->missing_s > WM_MOST_MISSING * energy->span_s) {
        miss_uncertainty(figure, "the figure leaves out a part of the time");
        return;
    }
    figure->low = wm_value_known(range.low);
    figure->high = wm_value_known(range.high);
    figure->below = uncertainty->below / energy->joules;
    figure->above = uncertainty->above / energy->joules;
    figure->systematic = uncertainty->systematic / energy->joules;
    figure->random = uncertainty->random / energy->joules;
    figure->uncertainty =
        wm_value_known(wm_uncertainty_total(uncertainty) / energy->joules);
}

static void build_figure(struct wm_report_builder *builder,
                         const struct wm_device_stats *device,
                         struct wm_energy_figure *figure)
{
    struct wm_energy_result energy;
    struct wm_uncertainty uncertainty;
    size_t channel = device->energy != WM_NO_CHANNEL ? device->energy : device->power;

    wm_energy_result(&device->joules, &energy);
    figure->period_s = energy.period_s; /* also where a run is too short for a figure */
    snprintf(figure->method, sizeof(figure->method), "%s",
             device->channel->origin == WM_ESTIMATED ? "model"
                                                     : method_texts[energy.method]);
    figure->check = wm_value_missing("counter and power were not both there");
    if (energy.checked)
        figure->check = wm_value_known(energy.gap);
    if (!wm_energy_is_known(&energy)) {
        bool is_seen = energy.method != WM_ENERGY_UNKNOWN;
        if (energy.implausible > 0)
            remark_counter(builder, device, &energy);
        if (is_seen)
            figure->method[0] = '\0';
        miss_uncertainty(figure, "there is no figure");
        figure->energy =
            wm_value_missing(is_seen ? why_not_covered(builder, channel, &energy)
                                     : why_no_energy(builder, device, channel));
        return;
    }
    figure->energy = wm_value_known(energy.joules);
    if (energy.missing_s > WM_MOST_MISSING * energy.span_s)
        figure->energy.why = wm_build_text(builder, "it does not cover %s",
                                           gap_text(builder, channel, &energy));
    figure->covered_s = energy.span_s - energy.missing_s;
    wm_uncertainty_find(&device->joules, &energy, &uncertainty);
    build_uncertainty(&energy, &uncertainty, figure);
    describe_sensor(&device->joules, energy.method, figure);
    remark_energy(builder, device, &energy, &uncertainty);
}

/* The part of the energy for which it may be unknown whose it was, before that is
 * said of all of it; until then it counts as others'. */
#define MOST_UNKNOWN 0.01

static void miss_split(struct wm_energy_split *split, const struct wm_value *missing)
{
    *split = (struct wm_energy_split) {
        .tree = *missing, .idle = *missing, .rest = *missing, .tree_uncertainty = *missing
    };
}

/* Where idling was measured, what the energy is off by at random is all of the work's. */
static double off_by_energy(const struct wm_share *share,
                            const struct wm_energy_figure *figure)
{
    double work = share->tree + share->rest;
    double of_work = work > 0 ? share->tree / work : 0;
    double most = fmax(of_work * figure->energy.number, share->tree);

    if (!share->idle_watts.known)
        return 0;
    return figure->random * sqrt(most * most - share->tree * share->tree);
}

/* And what the idling is off by is the work's, too, all the time. */
static double off_by_idling(const struct wm_share *share,
                            const struct wm_energy_figure *figure)
{
    double work = share->tree + share->rest;

    if (!share->idle_watts.known || work <= 0)
        return 0;
    return share->idle_off * figure->covered_s * share->tree / work;
}

static double square(double value)
{
    return value * value;
}

/* A sum has the uncertainty of the devices that the tree has used, each by its part. */
static struct wm_value tree_uncertainty(const struct wm_energy_split *split,
                                        const struct wm_value *uncertainty)
{
    if (!split->tree.known)
        return split->tree;
    if (!uncertainty->known)
        return *uncertainty;
    if (split->tree.number <= 0)
        return wm_value_missing("none of it was seen to be used");
    double off =
        hypot(hypot(split->tree_systematic, sqrt(split->tree_random)), split->tree_off);
    return wm_value_known(off / split->tree.number);
}

static void build_split(const struct wm_share *divided,
                        const struct wm_energy_figure *figure, const char *why,
                        const char *unfit, struct wm_energy_split *split)
{
    const struct wm_value missing = wm_value_missing(why), misfit = wm_value_missing(unfit);
    const struct wm_value *energy = &figure->energy;
    struct wm_share share = *divided;

    if (!energy->known) {
        miss_split(split, energy);
        return;
    }
    wm_share_end(&share, energy->number);
    bool is_unknown = share.unknown_joules > MOST_UNKNOWN * energy->number;
    if (is_unknown || unfit) {
        miss_split(split, is_unknown ? &missing : &misfit);
        return;
    }
    split->tree = wm_value_known(share.tree);
    split->idle = wm_value_known(share.idle);
    split->rest = wm_value_part(share.rest, energy->number);
    split->tree_off = hypot(hypot(wm_share_off(&share), off_by_energy(&share, figure)),
                            off_by_idling(&share, figure));
    split->tree_systematic = figure->systematic * share.tree;
    split->tree_random = square(figure->random * share.tree);
    split->tree_uncertainty = tree_uncertainty(split, &figure->uncertainty);
}

/* Two stretches of the same idling differ by so much. */
#define MOST_EXCESS 0.05

/* The part of the CPUs' time that a command has to take before energy beyond the idling
 * must have been its, and the part of the energy that is none. */
#define LEAST_WORK 0.05
#define NO_ENERGY 0.01

/* A command that was at work took more than the idle machine. */
static bool is_work_unseen(const struct wm_report_builder *builder,
                           const struct wm_share *divided,
                           const struct wm_energy_figure *figure)
{
    const struct wm_report *report = builder->report;
    double room = figure->covered_s * builder->analysis->run->core_count;

    return report->cpu_total.known && room > 0 &&
           report->cpu_total.number > LEAST_WORK * room &&
           divided->tree < NO_ENERGY * figure->energy.number;
}

static void check_baseline(struct wm_report_builder *builder,
                           const struct wm_device_stats *device,
                           const struct wm_energy_figure *figure,
                           struct wm_energy_split *split)
{
    const struct wm_share *divided = &device->share;
    double idle = divided->idle_watts.number;

    if (!divided->idle_watts.known || !split->tree.known || figure->covered_s <= 0)
        return;
    double watts = figure->energy.number / figure->covered_s;
    bool is_more = idle > watts * (1 + MOST_EXCESS + figure->random);
    if (!is_more && !(device->channel->device_kind == WM_DEVICE_CPU &&
                      is_work_unseen(builder, divided, figure)))
        return;
    wm_build_remark(
        builder,
        "%s: it took %s W in the baseline and %s W in the run: the machine was "
        "not idle then, and how much of the energy is the command's is not known",
        device->channel->label, wm_build_number(idle).text, wm_build_number(watts).text);
    const struct wm_value missing =
        wm_value_missing("the machine was not idle in the baseline");
    miss_split(split, &missing);
}

void wm_build_device(struct wm_report_builder *builder,
                     const struct wm_device_stats *device, const char *why,
                     const char *unfit, struct wm_energy_figure *figure,
                     struct wm_energy_split *split, struct wm_value *ret_idle)
{
    const struct wm_known *idle = &device->share.idle_watts;

    builder->is_energy = true;
    build_figure(builder, device, figure);
    build_split(&device->share, figure, why, unfit, split);
    *ret_idle = idle->known ? wm_value_known(idle->number)
                            : wm_value_missing(device->is_busy_before
                                                   ? "the machine was not idle in the "
                                                     "baseline"
                                                   : "no baseline was measured");
    check_baseline(builder, device, figure, split);
    builder->is_energy = false;
}

struct wm_energy_sum wm_build_sum_of(const struct wm_energy_figure *figure,
                                     const struct wm_energy_split *split,
                                     enum wm_origin origin)
{
    return (struct wm_energy_sum) {
        .energy = figure->energy,
        .uncertainty = figure->uncertainty,
        .systematic = figure->systematic,
        .random = figure->random,
        .below = figure->below,
        .above = figure->above,
        .watts = figure->energy.known && figure->covered_s > 0
                     ? figure->energy.number / figure->covered_s
                     : 0,
        .split = *split,
        .origin = origin,
    };
}

void wm_build_sum_start(struct wm_energy_sum *sum)
{
    const struct wm_value zero = wm_value_known(0);

    *sum = (struct wm_energy_sum) {
        .energy = zero,
        .uncertainty = zero,
        .low = zero,
        .high = zero,
        .split = { .tree = zero, .idle = zero, .rest = zero, .tree_uncertainty = zero },
    };
}

/* Sensors of one design err in one direction, so that their own errors add up; what
 * is random cancels out in part. Until the sum ends they are joules, and squares of
 * joules. */
void wm_build_sum_add(struct wm_energy_sum *sum, const struct wm_energy_sum *part)
{
    double joules = part->energy.number;

    sum->systematic += part->systematic * joules;
    sum->random += square(part->random * joules);
    sum->below += square(part->below * joules);
    sum->above += square(part->above * joules);
    sum->watts += part->watts;
    sum->is_part |= part->is_part;
    wm_value_add(&sum->energy, &part->energy);
    if (!part->energy.known || part->energy.number > 0)
        wm_value_add(&sum->uncertainty, &part->uncertainty);
    wm_value_add(&sum->split.tree, &part->split.tree);
    wm_value_add(&sum->split.idle, &part->split.idle);
    wm_value_add(&sum->split.rest, &part->split.rest);
    sum->split.tree_off += part->split.tree_off; /* all are divided by the same times */
    sum->split.tree_systematic += part->split.tree_systematic;
    sum->split.tree_random += part->split.tree_random;
    if (part->origin > sum->origin)
        sum->origin = part->origin;
}

void wm_build_sum_end(struct wm_energy_sum *sum)
{
    double joules = sum->energy.number;

    if (!sum->energy.known)
        sum->uncertainty = sum->energy;
    else if (sum->uncertainty.known && joules <= 0)
        sum->uncertainty = wm_value_missing("no energy was seen to be used");
    sum->low = sum->high = sum->uncertainty;
    if (sum->uncertainty.known) {
        const struct wm_between range = wm_uncertainty_between(
            joules, sum->systematic, sqrt(sum->below), sqrt(sum->above));
        sum->low.number = range.low;
        sum->high.number = range.high;
        sum->systematic /= joules;
        sum->random = sqrt(sum->random) / joules;
        sum->below = sqrt(sum->below) / joules;
        sum->above = sqrt(sum->above) / joules;
        sum->uncertainty.number = hypot(sum->systematic, sum->random);
    }
    sum->split.tree_uncertainty = tree_uncertainty(&sum->split, &sum->uncertainty);
}

void wm_build_sum_lack(struct wm_energy_sum *sum, const char *why)
{
    const struct wm_value missing = wm_value_missing(why);

    sum->energy.why = why;
    sum->is_part = true;
    sum->uncertainty = wm_value_missing("the figure leaves out a part");
    miss_split(&sum->split, &missing);
}

void wm_build_sum_miss(struct wm_energy_sum *sum, const char *why)
{
    struct wm_value missing = wm_value_missing(why);

    *sum = (struct wm_energy_sum) {
        .energy = missing, .uncertainty = missing, .low = missing, .high = missing
    };
    miss_split(&sum->split, &missing);
}
