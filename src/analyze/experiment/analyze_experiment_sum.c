/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment_sum.c - what the runs of an experiment cost, each and together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/energy/analyze_joules.h"
#include "analyze/experiment/analyze_experiment.h"
#include "record/record_read.h"

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "experiment: out of memory");
}

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

/* What of the energy is the machine's idling, and what the work's. */
static void split(struct wm_run_summary *summary, double idle_watts)
{
    const struct wm_report *report = summary->report;
    const struct wm_value *energy = &report->energy.energy;

    if (!energy->known)
        summary->idle = *energy;
    else if (idle_watts > 0 && report->active_time.known)
        summary->idle = wm_value_known(idle_watts * report->active_time.number);
    else if (idle_watts > 0)
        summary->idle = report->active_time;
    else if (report->run.baseline_count == 0)
        summary->idle = wm_value_missing(
            "what the machine takes idle was not measured (--baseline), nor given "
            "(--idle-watts)");
    else
        summary->idle = report->energy.split.idle;
    if (!summary->idle.known)
        summary->dynamic = summary->idle;
    else if (idle_watts > 0 && summary->idle.number > energy->number)
        summary->dynamic = wm_value_missing(
            "the energy is less than what --idle-watts makes in that time");
    else
        summary->dynamic = wm_value_known(fmax(energy->number - summary->idle.number, 0));
}

static int summarize_run(const struct wm_experiment_run *run, double idle_watts,
                         struct wm_run_summary *summary, struct wm_error *err)
{
    summary->run = run;
    int status = make_report(summary, err);
    if (status < 0)
        return status;
    const struct wm_report *report = summary->report;
    summary->cover = (struct wm_cover) {
        .cpu = report->energy_has_cpu,
        .dram = report->energy_has_dram,
        .gpus = report->energy_has_gpus,
    };
    split(summary, idle_watts);
    return WM_OK;
}

bool wm_cover_differs(const struct wm_cover *one, size_t one_run,
                      const struct wm_cover *other, size_t other_run, char why[64])
{
    const struct {
        bool one, other;
        const char *name;
    } parts[] = {
        { one->cpu, other->cpu, "CPU" },
        { one->dram, other->dram, "memory" },
        { one->gpus, other->gpus, "GPU" },
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].one == parts[i].other)
            continue;
        snprintf(why, 64, "run %zu knows no %s energy", parts[i].one ? other_run : one_run,
                 parts[i].name);
        return true;
    }
    return false;
}

/* Whether the energy of this run can be added to those before it. */
static int check_cover(struct wm_experiment_summary *sum, size_t index,
                       struct wm_error *err)
{
    struct wm_run_summary *run = &sum->runs[index];
    struct wm_report_builder builder = { .report = run->report };
    size_t first = 0;
    char why[64];

    if (sum->unlike || !run->report->energy.energy.known)
        return WM_OK;
    while (!sum->runs[first].report->energy.energy.known)
        first++;
    if (!wm_cover_differs(&sum->runs[first].cover, first, &run->cover, index, why))
        return WM_OK;
    sum->unlike = wm_build_text(&builder, "%s", why);
    return builder.failed ? out_of_memory(err) : WM_OK;
}

static void take_origin(enum wm_origin *origin, const struct wm_energy_sum *part)
{
    if (part->origin > *origin)
        *origin = part->origin;
}

static void add_run(struct wm_experiment_summary *sum, const struct wm_run_summary *run,
                    struct wm_energy_sum *energy)
{
    const struct wm_report *report = run->report;

    wm_build_sum_add(energy, &report->energy);
    wm_value_add(&sum->seconds, &report->active_time);
    take_origin(&sum->cpu_origin, &report->cpu_energy);
    take_origin(&sum->dram_origin, &report->dram_energy);
    take_origin(&sum->gpu_origin, &report->gpu_energy);
}

static const struct wm_value *cpu_of(const struct wm_run_summary *run)
{
    return &run->report->cpu_energy.energy;
}

static const struct wm_value *dram_of(const struct wm_run_summary *run)
{
    return &run->report->dram_energy.energy;
}

static const struct wm_value *gpu_of(const struct wm_run_summary *run)
{
    return &run->report->gpu_energy.energy;
}

static const struct wm_value *idle_of(const struct wm_run_summary *run)
{
    return &run->idle;
}

static const struct wm_value *dynamic_of(const struct wm_run_summary *run)
{
    return &run->dynamic;
}

/* Of all runs. Where some know it the reason is that of the first that does not, and names
 * it. */
static int add_up(const struct wm_experiment_summary *sum,
                  const struct wm_value *(*value_of)(const struct wm_run_summary *run),
                  struct wm_value *ret_value, struct wm_error *err)
{
    size_t lacking = sum->run_count, known = 0;

    for (size_t i = 0; i < sum->run_count; i++) {
        const struct wm_value *value = value_of(&sum->runs[i]);
        known += value->known;
        if (!value->known && lacking == sum->run_count)
            lacking = i;
        wm_value_add(ret_value, value);
    }
    if (ret_value->known || known == 0)
        return WM_OK;
    struct wm_report_builder builder = { .report = sum->runs[lacking].report };
    ret_value->why = wm_build_text(&builder, "run %zu: %s", lacking, ret_value->why);
    return builder.failed ? out_of_memory(err) : WM_OK;
}

static int add_parts(struct wm_experiment_summary *sum, struct wm_error *err)
{
    int status = add_up(sum, cpu_of, &sum->cpu, err);

    if (status == WM_OK)
        status = add_up(sum, dram_of, &sum->dram, err);
    if (status == WM_OK)
        status = add_up(sum, gpu_of, &sum->gpu, err);
    if (status == WM_OK)
        status = add_up(sum, idle_of, &sum->idle, err);
    if (status == WM_OK)
        status = add_up(sum, dynamic_of, &sum->dynamic, err);
    return status;
}

/* What is of all runs together. The sensors are the same in each run, and so is what is
 * wrong with them. */
static void end_sum(struct wm_experiment_summary *sum, struct wm_energy_sum *energy)
{
    wm_build_sum_end(energy);
    sum->energy = energy->energy;
    sum->uncertainty = energy->uncertainty;
    sum->origin = energy->origin;
    if (sum->unlike && sum->energy.known)
        sum->energy = sum->uncertainty = sum->idle = sum->dynamic =
            wm_value_missing(sum->unlike);
    if (sum->energy.known)
        sum->cover = sum->runs[0].cover;
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

    sum->per_parameter =
        per(&sum->energy, card.parameters, "the model card has no number of parameters");
    size_t runs = 0;

    for (size_t i = 0; i < sum->run_count; i++)
        runs += is_aipm(sum->runs[i].run) ? sum->runs[i].report->segments : 1;
    sum->per_flop = per(&sum->energy, card.flops * card.passes * (double)runs,
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
            status = out_of_memory(err);
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
    const struct wm_value zero = { .known = true };
    struct wm_energy_sum energy;
    bool found = false;
    int status = WM_OK;

    wm_build_sum_start(&energy);
    *summary = (struct wm_experiment_summary) {
        .seconds = zero,
        .cpu = zero,
        .dram = zero,
        .gpu = zero,
        .idle = zero,
        .dynamic = zero,
    };
    summary->runs = calloc(experiment->count, sizeof(*summary->runs));
    if (!summary->runs)
        return out_of_memory(err);
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
    if (status == WM_OK)
        status = add_parts(summary, err);
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
