/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_report.c - values that may be missing, and what a report owns. */
#include "analyze/analyze_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct wm_value wm_value_known(double number)
{
    return (struct wm_value) { .number = number, .known = true };
}

struct wm_value wm_value_missing(const char *why)
{
    return (struct wm_value) { .why = why };
}

/* Doubles that are added up a million times are off by less. */
#define ROUNDING 1e-9

struct wm_value wm_value_part(double number, double whole)
{
    return wm_value_known(fabs(number) <= ROUNDING * fabs(whole) ? 0 : number);
}

void wm_value_add(struct wm_value *sum, const struct wm_value *part)
{
    if (!sum->known)
        return;
    if (!part->known) {
        *sum = *part;
        return;
    }
    sum->number += part->number;
    if (!sum->why)
        sum->why = part->why;
}

void wm_value_raise(struct wm_value *whole, const struct wm_value *part)
{
    if (whole->known && part->known && whole->number < part->number)
        whole->number = part->number;
}

struct wm_value wm_report_energy_of(const struct wm_report *report,
                                    const struct wm_known *cpu_s)
{
    const struct wm_value *tree = &report->cpu_energy.split.tree;
    const struct wm_value *total = &report->cpu_total;

    if (!tree->known)
        return *tree;
    if (!total->known)
        return *total;
    if (!cpu_s->known)
        return wm_value_missing("its CPU time is not known");
    double share = total->number > 0 ? cpu_s->number / total->number : 0;
    return wm_value_known(tree->number * (share < 1 ? share : 1));
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void wm_region_usages_free(struct wm_region_usage *usages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(usages[i].name);
    free(usages);
}

static int by_name(const void *one, const void *other)
{
    const struct wm_region_usage *a = one, *b = other;

    return strcmp(a->name, b->name);
}

void wm_region_usages_sort(struct wm_region_usage *usages, size_t count)
{
    if (count > 1)
        qsort(usages, count, sizeof(*usages), by_name);
}

void wm_report_free(struct wm_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->gpu_count; i++) {
        free(report->gpus[i].uuid);
        free(report->gpus[i].name);
        free(report->gpus[i].label);
        free(report->gpus[i].more);
    }
    free(report->gpus);
    for (size_t i = 0; i < report->device_count; i++) {
        free(report->devices[i].name);
        free(report->devices[i].model);
        free(report->devices[i].source);
    }
    free(report->devices);
    free(report->process_energies);
    wm_region_usages_free(report->regions.names, report->regions.name_count);
    wm_region_usages_free(report->regions.paths, report->regions.path_count);
    free_texts(report->remarks, report->remark_count);
    free(report->energy_notes);
    free_texts(report->facts, report->fact_count);
    free_texts(report->texts, report->text_count);
    wm_run_release(&report->run);
    wm_result_release(&report->result);
    free(report);
}

const char wm_report_no_gpu[] = "no GPU was measured";

bool wm_report_lacks(const struct wm_report *report, size_t measurement)
{
    struct wm_known gpus = report->usage.machine.expected_gpus;
    struct wm_known most = report->usage.overall[measurement].of[WM_BLOCK_MAX];

    return gpus.known && gpus.number == 0 &&
           wm_measurement_is_gpu((enum wm_measurement)measurement) &&
           !(most.known && most.number > 0);
}

enum wm_origin wm_report_usage_origin(const struct wm_report *report, size_t measurement)
{
    return wm_measurement_is_gpu((enum wm_measurement)measurement)
               ? report->usage.gpu_origin
               : WM_MEASURED;
}
