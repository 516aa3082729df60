/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment_sum.c - what the runs of an experiment cost, each and together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "analyze/experiment/analyze_experiment.h"
#include "record/record_read.h"

static int make_report(struct wm_run_summary *summary, struct wm_error *err)
{
    struct wm_recording *recording;

    int status =
        wm_recording_open(summary->run->path, summary->run->index, &recording, err);
    if (status < 0)
        return status;
    status = wm_report_from_recording(recording, &summary->report, err);
    wm_recording_close(recording);
    return status;
}

/* What of the energy is the machine's idling. */
static struct wm_value idle_of(const struct wm_report *report, double idle_watts)
{
    if (!report->energy.energy.known)
        return report->energy.energy;
    if (idle_watts > 0 && report->active_time.known)
        return wm_value_known(idle_watts * report->active_time.number);
    if (idle_watts > 0)
        return report->active_time;
    if (report->run.baseline_count == 0)
        return wm_value_missing(
            "what the machine takes idle was not measured (--baseline), nor given "
            "(--idle-watts)");
    return report->energy.split.idle;
}

/* And what the work's. */
static struct wm_value dynamic_of(const struct wm_value *energy,
                                  const struct wm_value *idle, double idle_watts)
{
    if (!idle->known)
        return *idle;
    if (idle_watts > 0 && idle->number > energy->number)
        return wm_value_missing(
            "the energy is less than what --idle-watts makes in that time");
    return wm_value_known(fmax(energy->number - idle->number, 0));
}

static int summarize_run(const struct wm_experiment_run *run, double idle_watts,
                         struct wm_run_summary *summary, struct wm_error *err)
{
    summary->run = run;
    int status = make_report(summary, err);
    if (status < 0)
        return status;
    const struct wm_report *report = summary->report;
    const struct wm_value idle = idle_of(report, idle_watts);
    summary->cost = (struct wm_cost) {
        .total = report->energy.energy,
        .uncertainty = report->energy.uncertainty,
        .origin = report->energy.origin,
        .cover = report->cover,
        .parts = { report->cpu_energy.energy, report->dram_energy.energy,
                   report->gpu_energy.energy, idle,
                   dynamic_of(&report->energy.energy, &idle, idle_watts) },
        .origins = { report->cpu_energy.origin, report->dram_energy.origin,
                     report->gpu_energy.origin },
    };
    return WM_OK;
}

bool wm_cover_differs(const struct wm_cover *one, size_t one_run,
                      const struct wm_cover *other, size_t other_run, char why[64])
{
    static const char *const names[WM_COST_DEVICES] = { "CPU", "memory", "GPU" };

    if (one->meter != other->meter || strcmp(one->name, other->name) != 0) {
        bool has_meter = one->meter != WM_CONTAINS_DEVICE;
        snprintf(why, 64, "run %zu is measured by %.32s", has_meter ? one_run : other_run,
                 has_meter ? one->name : other->name);
        return true;
    }
    if (one->meter != WM_CONTAINS_DEVICE)
        return false;
    for (size_t i = 0; i < WM_COST_DEVICES; i++) {
        if (one->has[i] == other->has[i])
            continue;
        snprintf(why, 64, "run %zu knows no %s energy", one->has[i] ? other_run : one_run,
                 names[i]);
        return true;
    }
    return false;
}

/* Whether the energy of this run can be added to those before it. */
static int check_cover(struct wm_experiment_summary *sum, size_t index,
                       struct wm_error *err)
{
    const struct wm_cost *cost = &sum->runs[index].cost;
    struct wm_report_builder builder = { .report = sum->runs[index].report };
    size_t first = 0;
    char why[64];

    if (sum->unlike || !cost->total.known)
        return WM_OK;
    while (!sum->runs[first].cost.total.known)
        first++;
    if (!wm_cover_differs(&sum->runs[first].cost.cover, first, &cost->cover, index, why))
        return WM_OK;
    sum->unlike = wm_build_text(&builder, "%s", why);
    return builder.failed ? wm_fail_memory(err, "experiment") : WM_OK;
}

static void add_run(struct wm_experiment_summary *sum, const struct wm_run_summary *run,
                    struct wm_energy_sum *energy)
{
    wm_build_sum_add(energy, &run->report->energy);
    wm_value_add(&sum->seconds, &run->report->active_time);
    for (size_t i = 0; i < WM_COST_DEVICES; i++) {
        if (run->cost.origins[i] > sum->cost.origins[i])
            sum->cost.origins[i] = run->cost.origins[i];
    }
}

/* Of all runs. Where some know it the reason is that of the first that does not, and names
 * it. */
static int add_part(struct wm_experiment_summary *sum, size_t part, struct wm_error *err)
{
    struct wm_value *all = &sum->cost.parts[part];
    size_t lacking = sum->run_count, known = 0;

    *all = (struct wm_value) { .known = true };
    for (size_t i = 0; i < sum->run_count; i++) {
        const struct wm_value *value = &sum->runs[i].cost.parts[part];
        known += value->known;
        if (!value->known && lacking == sum->run_count)
            lacking = i;
        wm_value_add(all, value);
    }
    if (all->known || known == 0)
        return WM_OK;
    struct wm_report_builder builder = { .report = sum->runs[lacking].report };
    all->why = wm_build_text(&builder, "run %zu: %s", lacking, all->why);
    return builder.failed ? wm_fail_memory(err, "experiment") : WM_OK;
}

/* What is of all runs together. The sensors are the same in each run, and so is what is
 * wrong with them. */
static void end_sum(struct wm_experiment_summary *sum, struct wm_energy_sum *energy)
{
    struct wm_cost *cost = &sum->cost;

    wm_build_sum_end(energy);
    cost->total = energy->energy;
    cost->uncertainty = energy->uncertainty;
    cost->origin = energy->origin;
    if (sum->unlike && cost->total.known)
        cost->total = cost->uncertainty = cost->parts[WM_COST_IDLE] =
            cost->parts[WM_COST_DYNAMIC] = wm_value_missing(sum->unlike);
    if (cost->total.known)
        cost->cover = sum->runs[0].cost.cover;
}

static void describe(struct wm_experiment_summary *sum, const struct wm_run *run)
{
    const char *description = wm_run_note(run, WM_NOTE_DESCRIPTION);
    const char *model = wm_run_note(run, WM_NOTE_MODEL);

    sum->description = description ? description : sum->description;
    sum->model = model ? model : sum->model;
}

static struct wm_value per(const struct wm_value *joules, double count, const char *why)
{
    if (!joules->known)
        return *joules;
    return count > 0 ? wm_value_known(joules->number / count) : wm_value_missing(why);
}

/* There each run of a name is one more segment; elsewhere a segment ends with a pause
 * of the same run. AIPowerMeter's format is the one that is a folder or JSON. */
static bool is_aipm(const struct wm_experiment_run *run)
{
    const char *suffix = strrchr(run->path, '.');

    return wm_experiment_is_folder(run->path) || (suffix && strcmp(suffix, ".json") == 0);
}

static void divide_by_model(struct wm_experiment_summary *sum)
{
    const struct wm_model_card card = wm_model_card_read(sum->model ? sum->model : "{}");

    sum->per_parameter = per(&sum->cost.total, card.parameters,
                             "the model card has no number of parameters");
    size_t runs = 0;

    for (size_t i = 0; i < sum->run_count; i++)
        runs += is_aipm(sum->runs[i].run) ? sum->runs[i].report->segments : 1;
    sum->per_flop = per(&sum->cost.total, card.flops * card.passes * (double)runs,
                        "the model card has neither flops nor macs");
}

/* Where the run's energy begins: the first value has no other before it. */
static bool begin_of(const struct wm_series *energy, int64_t unix_ns, double *ret_joules)
{
    for (size_t i = 0; i < wm_series_segment_count(energy); i++) {
        struct wm_series_segment segment = wm_series_segment(energy, i);
        if (segment.unix_ns[0] <= unix_ns &&
            unix_ns <= segment.unix_ns[segment.count - 1]) {
            *ret_joules = segment.values[0];
            return true;
        }
    }
    return false;
}

static void add_steps(struct wm_experiment_summary *sum, size_t run,
                      const struct wm_series_segment *values,
                      const struct wm_series *energy)
{
    double before = 0, now = 0;
    bool has_before = begin_of(energy, values->unix_ns[0], &before);

    for (size_t i = 0; i < values->count; i++) {
        bool has_now = wm_series_at(energy, values->unix_ns[i], &now);
        sum->steps[sum->step_count++] = (struct wm_step) {
            .run = run,
            .unix_ns = values->unix_ns[i],
            .value = values->values[i],
            .joules = has_now && has_before
                          ? wm_value_known(now - before)
                          : wm_value_missing("the energy was not known at that time"),
        };
        has_before = has_now;
        before = now;
    }
}

static void average_steps(struct wm_experiment_summary *sum)
{
    double joules = 0, count = 0;

    for (size_t i = 0; i < sum->step_count; i++) {
        if (!sum->steps[i].joules.known)
            continue;
        joules += sum->steps[i].joules.number;
        count++;
    }
    if (sum->unlike) {
        sum->per_step = wm_value_missing(sum->unlike);
        return;
    }
    sum->per_step = count > 0 ? wm_value_known(joules / count)
                              : wm_value_missing("the energy was not known at any value");
}

/* Of a run that knows none the series is empty. */
static int collect_joules(const struct wm_experiment_run *run, struct wm_series **energy,
                          struct wm_error *err)
{
    struct wm_cover cover;

    int status = wm_experiment_collect(run, "energy", energy, &cover, err);
    if (status < 0 && status != WM_ENODEV && status != WM_ENOENT)
        return status;
    if (status == WM_OK && (*energy)->kind == WM_SERIES_TOTAL)
        return WM_OK;
    wm_series_free(*energy); /* what the program calls so is not ours */
    *energy = NULL;
    return wm_series_new("energy", WM_SERIES_TOTAL, "J", energy, err);
}

/* In each run by itself, whose energies have nothing to do with those of the others. */
static int step_run(const struct wm_experiment_run *run, size_t number, const char *metric,
                    struct wm_experiment_summary *sum, bool *found, struct wm_error *err)
{
    struct wm_series *values = NULL, *energy = NULL;
    struct wm_cover cover;
    struct wm_error why;

    int status = wm_experiment_collect(run, metric, &values, &cover, &why);
    bool has_metric = status != WM_ENODEV && status != WM_ENOENT;
    if (status == WM_OK)
        status = collect_joules(run, &energy, &why);
    if (!has_metric) {
        status = WM_OK;
    } else if (status < 0) {
        status = wm_fail(err, status, "%s", why.text);
    } else if (values->count > 0) {
        void *grown =
            realloc(sum->steps, (sum->step_count + values->count) * sizeof(*sum->steps));
        *found = true;
        if (grown)
            sum->steps = grown;
        else
            status = wm_fail_memory(err, "experiment");
        for (size_t i = 0; status == WM_OK && i < wm_series_segment_count(values); i++) {
            struct wm_series_segment segment = wm_series_segment(values, i);
            add_steps(sum, number, &segment, energy);
        }
    }
    wm_series_free(values);
    wm_series_free(energy);
    return status;
}

int wm_experiment_summarize(const struct wm_experiment *experiment, double idle_watts,
                            const char *per_metric, struct wm_experiment_summary *summary,
                            struct wm_error *err)
{
    struct wm_energy_sum energy;
    bool found = false;
    int status = WM_OK;

    wm_build_sum_start(&energy);
    *summary = (struct wm_experiment_summary) { .seconds = { .known = true } };
    summary->runs = calloc(experiment->count, sizeof(*summary->runs));
    if (!summary->runs)
        return wm_fail_memory(err, "experiment");
    for (size_t i = 0; i < experiment->count && status == WM_OK; i++) {
        struct wm_run_summary *run = &summary->runs[summary->run_count++];
        status = summarize_run(&experiment->runs[i], idle_watts, run, err);
        if (status < 0)
            return status;
        add_run(summary, run, &energy);
        describe(summary, &experiment->runs[i].run);
        status = check_cover(summary, i, err);
        if (status == WM_OK && per_metric)
            status = step_run(&experiment->runs[i], i, per_metric, summary, &found, err);
    }
    if (status == WM_OK && per_metric && !found)
        status =
            wm_fail(err, WM_ENOENT, "--per: no run has the metric '%.60s'", per_metric);
    for (size_t part = 0; part < WM_COST_COUNT && status == WM_OK; part++)
        status = add_part(summary, part, err);
    end_sum(summary, &energy);
    divide_by_model(summary);
    average_steps(summary);
    return status;
}

void wm_experiment_summary_release(struct wm_experiment_summary *summary)
{
    for (size_t i = 0; i < summary->run_count; i++)
        wm_report_free(summary->runs[i].report);
    free(summary->runs);
    free(summary->steps);
}
