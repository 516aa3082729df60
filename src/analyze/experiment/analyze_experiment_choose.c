/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment_choose.c - the devices that an energy is the sum of. */
#include "analyze/experiment/analyze_experiment_choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/energy/analyze_devices.h"
#include "analyze/energy/analyze_uncertainty.h"

/* The part of the time that a figure may leave out before nobody can say how far it is
 * from the truth, and what is the jitter of the ticks. */
#define MOST_MISSING 0.1
#define LEAST_MISSING_S 1e-3

static bool is_known(const struct wm_energy *joules)
{
    struct wm_energy_result result;

    wm_energy_result(joules, &result);
    return wm_energy_is_known(&result);
}

static void add_doubt(struct wm_series_doubt *doubt, const struct wm_energy *joules,
                      const struct wm_energy_result *result)
{
    struct wm_uncertainty uncertainty;

    wm_uncertainty_find(joules, result, &uncertainty);
    doubt->is_energy = true;
    doubt->is_vague |= result->missing_s > MOST_MISSING * result->span_s;
    doubt->joules += result->joules;
    doubt->systematic += uncertainty.systematic;
    doubt->random_squares += uncertainty.random * uncertainty.random;
    if (result->missing_s > LEAST_MISSING_S)
        doubt->missing_s = fmax(doubt->missing_s, result->missing_s);
}

static void add(struct wm_experiment_chosen *chosen, const struct wm_energy *joules,
                const struct wm_channel *channel)
{
    struct wm_energy_result result;

    wm_energy_result(joules, &result);
    chosen->period_s = fmax(chosen->period_s, result.period_s);
    add_doubt(&chosen->doubt, joules, &result);
    if (channel->origin > chosen->origin)
        chosen->origin = channel->origin;
    chosen->count++;
}

static void add_device(struct wm_experiment_chosen *chosen,
                       const struct wm_analysis *analysis, size_t index)
{
    const struct wm_device_stats *device = &analysis->devices[index];

    chosen->devices[index] = true;
    add(chosen, &device->joules, device->channel);
}

static void add_gpu(struct wm_experiment_chosen *chosen, const struct wm_analysis *analysis,
                    size_t index)
{
    const struct wm_gpu_stats *gpu = &analysis->gpus[index];

    chosen->gpus[index] = true;
    add(chosen, &gpu->joules, wm_gpu_any_channel(analysis, gpu));
}

/* CPUs or memory. */
static void choose_kind(struct wm_experiment_chosen *chosen,
                        const struct wm_analysis *analysis, enum wm_device_kind kind,
                        struct wm_energy_choice *ret_choice)
{
    const struct wm_energy_offers offers = wm_devices_offers(analysis);

    wm_energy_choose(&offers, kind, ret_choice);
    chosen->has_subject |= ret_choice->source != NULL;
    for (size_t i = 0; i < analysis->device_count && ret_choice->is_known; i++) {
        if (wm_device_is(&analysis->devices[i], kind, ret_choice->source))
            add_device(chosen, analysis, i);
    }
}

/* All of them, but for those whose power is a part of the CPU's; whether they are
 * known. */
static bool choose_gpus(struct wm_experiment_chosen *chosen,
                        const struct wm_analysis *analysis)
{
    size_t found = 0;

    chosen->has_subject |= analysis->gpu_count > 0;
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (analysis->gpus[i].is_in_cpu)
            continue;
        if (!is_known(&analysis->gpus[i].joules))
            return false;
        found++;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (!analysis->gpus[i].is_in_cpu)
            add_gpu(chosen, analysis, i);
    }
    return found > 0;
}

/* The first that is known. */
static void choose_label(struct wm_experiment_chosen *chosen,
                         const struct wm_analysis *analysis, const char *label)
{
    for (size_t i = 0; i < analysis->device_count; i++) {
        const struct wm_device_stats *device = &analysis->devices[i];
        if (strcmp(device->channel->label, label) != 0)
            continue;
        chosen->has_subject = true;
        if (chosen->count == 0 && is_known(&device->joules))
            add_device(chosen, analysis, i);
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        const struct wm_gpu_stats *gpu = &analysis->gpus[i];
        if (strcmp(wm_gpu_any_channel(analysis, gpu)->label, label) != 0)
            continue;
        chosen->has_subject = true;
        if (chosen->count == 0 && is_known(&gpu->joules))
            add_gpu(chosen, analysis, i);
    }
}

int wm_experiment_choose(const struct wm_analysis *analysis,
                         const struct wm_experiment_subject *subject,
                         struct wm_experiment_chosen *chosen, struct wm_error *err)
{
    struct wm_energy_choice cpus = { 0 }, memory = { 0 };

    *chosen = (struct wm_experiment_chosen) {
        .devices = calloc(analysis->device_count + 1, sizeof(bool)),
        .gpus = calloc(analysis->gpu_count + 1, sizeof(bool)),
    };
    if (!chosen->devices || !chosen->gpus)
        return wm_fail(err, WM_ENOMEM, "experiment: out of memory");
    if (subject->cpu)
        choose_kind(chosen, analysis, WM_DEVICE_CPU, &cpus);
    if (subject->dram && !cpus.has_memory)
        choose_kind(chosen, analysis, WM_DEVICE_DRAM, &memory);
    chosen->cover.has[WM_PART_CPU] = cpus.is_known;
    chosen->cover.has[WM_PART_DRAM] = memory.is_known;
    if (subject->gpu)
        chosen->cover.has[WM_PART_GPUS] = choose_gpus(chosen, analysis);
    if (!subject->cpu && !subject->dram && !subject->gpu)
        choose_label(chosen, analysis, subject->label);
    return WM_OK;
}

void wm_experiment_chosen_release(struct wm_experiment_chosen *chosen)
{
    free(chosen->devices);
    free(chosen->gpus);
}

double wm_experiment_joules(const struct wm_analysis *analysis,
                            const struct wm_experiment_chosen *chosen)
{
    struct wm_energy_result result;
    double joules = 0;

    for (size_t i = 0; i < analysis->device_count; i++) {
        if (!chosen->devices[i])
            continue;
        wm_energy_result(&analysis->devices[i].joules, &result);
        joules += result.joules;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (!chosen->gpus[i])
            continue;
        wm_energy_result(&analysis->gpus[i].joules, &result);
        joules += result.joules;
    }
    return isfinite(joules) ? joules : NAN;
}
