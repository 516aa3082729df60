/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_text_brief.c - the figures of a report as most people want them: a line for each,
 * with as many digits as are true, within 80 columns.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/record_channel.h"
#include "view/text/view_text_line.h"

/* More GPUs than this are folded into a table of the lowest, the mean and the highest. */
#define MOST_GPU_LINES 8
#define MOST_OUTLIERS 5

/* What is beside the label and the figure in 80 columns. */
#define DETAIL_WIDTH 52
#define BAR_CELLS 5

/* 0 where nothing is known of it. */
static double ratio_of(const struct wm_value *uncertainty)
{
    return uncertainty->known ? uncertainty->number : 0;
}

static struct wm_quantity joules_text(const struct wm_value *joules,
                                      const struct wm_value *uncertainty)
{
    struct wm_quantity text = { "n/a" };

    if (!joules->known)
        return text;
    double ratio = ratio_of(uncertainty);
    struct wm_quantity number = wm_view_approximate(joules->number, ratio, "J");
    snprintf(text.text, sizeof(text.text), "%s%.38s",
             joules->why ? "at least " : wm_view_about(ratio), number.text);
    return text;
}

static void add_watts(struct wm_detail *detail, const struct wm_value *watts,
                      const struct wm_value *uncertainty)
{
    if (watts->known)
        wm_line_add(detail, "; ", "%s%s", wm_line_at_least(watts),
                    wm_view_approximate(watts->number, ratio_of(uncertainty), "W").text);
}

/* A range whose ends are as rough as the figure. */
static void add_uncertainty(struct wm_detail *detail, const struct wm_energy_sum *sum)
{
    double ratio = ratio_of(&sum->uncertainty);

    if (wm_line_is_asymmetric(&sum->energy, &sum->low, &sum->high))
        wm_line_add(detail, "; ", "%s to %s",
                    wm_view_approximate(sum->low.number, ratio, "J").text,
                    wm_view_approximate(sum->high.number, ratio, "J").text);
    else if (sum->uncertainty.known)
        wm_line_add(detail, "; ", "± %s", wm_view_percent(ratio).text);
}

static void add_origin(struct wm_detail *detail, enum wm_origin origin)
{
    if (origin == WM_SIMULATED)
        wm_line_add(detail, "; ", "simulated");
    if (origin == WM_ESTIMATED)
        wm_line_add(detail, "; ", "estimated");
}

/* "44 %", on a terminal with a bar before it. */
static void add_share(const struct wm_text_view *view, struct wm_detail *detail,
                      const char *separator, double ratio, const char *what)
{
    struct wm_detail bar = { "" };
    double full = ratio < 0 ? 0 : ratio > 1 ? 1 : ratio;

    for (int i = 0; view->units->for_terminal && i < BAR_CELLS; i++)
        wm_line_add(&bar, "", "%s", i < lround(full * BAR_CELLS) ? "■" : "□");
    wm_line_add(detail, separator, "%s%s%s %%%s", bar.text, bar.text[0] ? " " : "",
                wm_view_number(100 * ratio, 2).text, what);
}

/* Time, CPU and memory. */

static void print_time(const struct wm_text_view *view)
{
    const struct wm_value *time = &view->report->compute_time;

    wm_line_print(view, "Time", wm_line_figure(time, WM_UNIT_TIME, view->units).text, "");
}

static void print_cpu(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_run *run = &report->run;
    const struct wm_value *use = &report->cpu_combined.mean_sum;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;
    struct wm_detail detail = { "" };

    if (!report->cpu_total.known)
        return;
    if (report->cpu_total.why) /* a note says why */
        wm_line_add(&detail, "", "at least");
    if (use->known)
        wm_line_add(&detail, "; ", "%s",
                    use->number < 1 ? "under 0.01"
                                    : wm_view_number(use->number / 100, 2).text);
    if (use->known && cores > 0)
        wm_line_add(&detail, " ", "of %s",
                    wm_view_fixed(cores, cores == floor(cores) ? 0 : 1).text);
    if (use->known)
        wm_line_add(&detail, " ", "cores on average");
    wm_line_print(view, "CPU time", wm_line_seconds(&report->cpu_total).text, detail.text);
}

static void print_memory(const struct wm_text_view *view)
{
    const struct wm_value *total = &view->report->ram_combined.total;
    const struct wm_value *most = &view->report->max_processes;
    struct wm_detail detail = { "" };

    if (!total->known)
        return;
    wm_line_add(&detail, "", "%s", total->why ? "at least" : "peak"); /* a note says why */
    wm_line_add_between(&detail, &view->report->ram_combined, view->units->ram);
    if (most->known && most->number > 1)
        wm_line_add(&detail, "; ", "up to %s processes at once", wm_line_count(most).text);
    wm_line_print(view, "Memory", wm_line_bytes(total, view->units->ram).text, detail.text);
}

/* GPUs. */

/* "NVIDIA H100 80GB HBM3" is known by what comes after its maker. */
static const char *model_of(const char *name)
{
    static const char *const makers[] = { "NVIDIA ", "AMD ", "Intel ", "SIMULATED " };

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (strncmp(name, makers[i], strlen(makers[i])) == 0)
            return name + strlen(makers[i]);
    }
    return name;
}

/* An energy that a single device makes is told once. */
static bool is_sum_of_one(const struct wm_report *report)
{
    size_t parts = 0;

    for (size_t i = 0; i < WM_COST_DEVICES; i++)
        parts += report->cover.has[i];
    return parts == 1 && report->cover.meter == WM_CONTAINS_DEVICE;
}

static bool has_sum_line(const struct wm_report *report)
{
    return report->energy.energy.known &&
           (!is_sum_of_one(report) || !report->cover.has[WM_COST_GPUS] ||
            report->gpu_count > 1);
}

static void print_gpu(const struct wm_text_view *view, const struct wm_gpu_usage *gpu)
{
    const struct wm_value watts = wm_line_gpu_watts(gpu);
    struct wm_detail detail = { "" };
    char name[64];

    add_watts(&detail, &watts, &gpu->figure.uncertainty);
    if (gpu->utilization.mean.known)
        add_share(view, &detail, "; ", gpu->utilization.mean.number,
                  gpu->utilization.mean.why ? " busy at least" : " busy");
    if (gpu->tree_memory_max.known && gpu->tree_memory_max.number > 0)
        wm_line_add(&detail, "; ", "%s",
                    wm_line_bytes(&gpu->tree_memory_max, view->units->gpu_ram).text);
    if (gpu->temperature.max.known)
        wm_line_add(&detail, "; ", "%.0f °C", gpu->temperature.max.number);
    add_origin(&detail, gpu->origin);
    wm_line_clean(name, sizeof(name), model_of(gpu->name));
    wm_line_add(&detail, "; ", "%s", name);
    wm_view_left(view->out, gpu->label, 14);
    wm_view_left(view->out, joules_text(&gpu->figure.energy, &gpu->figure.uncertainty).text,
                 12);
    fputs("  ", view->out);
    wm_view_cut(view->out, detail.text, DETAIL_WIDTH);
    fputc('\n', view->out);
}

/* Many GPUs: each quantity as a row of its lowest, its mean and its highest value. */

static struct wm_value gpu_energy(const struct wm_gpu_usage *gpu)
{
    return gpu->figure.energy;
}

static struct wm_value gpu_busy(const struct wm_gpu_usage *gpu)
{
    return gpu->utilization.mean.why ? wm_value_missing(gpu->utilization.mean.why)
                                     : gpu->utilization.mean;
}

static struct wm_value gpu_memory(const struct wm_gpu_usage *gpu)
{
    return gpu->tree_memory_max;
}

static struct wm_value gpu_temperature(const struct wm_gpu_usage *gpu)
{
    return gpu->temperature.max;
}

static const struct fold {
    const char *name;
    struct wm_value (*value)(const struct wm_gpu_usage *gpu);
    enum wm_figure_unit unit;
} folds[] = {
    { "energy", gpu_energy, WM_UNIT_JOULES },
    { "power", wm_line_gpu_watts, WM_UNIT_WATTS },
    { "busy", gpu_busy, WM_UNIT_RATIO },
    { "memory", gpu_memory, WM_UNIT_GPU_RAM },
    { "temperature", gpu_temperature, WM_UNIT_CELSIUS },
};

/* Of the GPUs of which it is known, so many. */
struct folded {
    struct wm_value lowest, mean, highest;
    size_t known;
};

static struct folded fold_of(const struct wm_report *report,
                             struct wm_value (*value)(const struct wm_gpu_usage *gpu))
{
    struct folded folded = { .known = 0 };
    double sum = 0;

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_value one = value(&report->gpus[i]);
        if (!one.known)
            continue;
        if (folded.known == 0 || one.number < folded.lowest.number)
            folded.lowest = one;
        if (folded.known == 0 || one.number > folded.highest.number)
            folded.highest = one;
        folded.known++;
        sum += one.number;
    }
    if (folded.known > 0)
        folded.mean = wm_value_known(sum / (double)folded.known);
    return folded;
}

static void print_fold(const struct wm_text_view *view, const struct fold *fold)
{
    const struct folded folded = fold_of(view->report, fold->value);
    const struct wm_value *const cells[] = { &folded.lowest, &folded.mean,
                                             &folded.highest };

    if (folded.known == 0)
        return;
    fputs("  ", view->out);
    wm_view_left(view->out, fold->name, 12);
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        wm_view_right(view->out, wm_line_figure(cells[i], fold->unit, view->units).text,
                      12);
    if (folded.known < view->report->gpu_count)
        fprintf(view->out, "  of %zu", folded.known);
    fputc('\n', view->out);
}

/* From here on a GPU is named by itself: so far off is its energy from the mean of all. */
#define OUTLIER_RATIO 0.1

/* The farthest from the mean after `last`, which is NULL at first; NULL past the last. */
static const struct wm_gpu_usage *next_outlier(const struct wm_report *report, double mean,
                                               const struct wm_gpu_usage *last)
{
    double limit = last ? fabs(last->figure.energy.number - mean) : INFINITY;
    double most = OUTLIER_RATIO * mean;
    const struct wm_gpu_usage *found = NULL;

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *gpu = &report->gpus[i];
        double off = fabs(gpu->figure.energy.number - mean);
        bool is_after = off < limit || (off == limit && gpu > last);
        if (gpu->figure.energy.known && is_after && off > most) {
            most = off;
            found = gpu;
        }
    }
    return found;
}

static void print_outliers(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_gpu_usage *gpu = NULL;
    struct wm_detail detail = { "" };
    size_t count = 0;

    const struct wm_value mean = fold_of(report, gpu_energy).mean;
    if (!mean.known)
        return;
    while ((gpu = next_outlier(report, mean.number, gpu)) != NULL) {
        if (count++ < MOST_OUTLIERS)
            wm_line_add(&detail, ", ", "%s %s", gpu->label,
                        joules_text(&gpu->figure.energy, &gpu->figure.uncertainty).text);
    }
    if (count == 0)
        return;
    fprintf(view->out, "  %-12s%s", "far off", detail.text);
    if (count > MOST_OUTLIERS)
        fprintf(view->out, " and %zu more", count - MOST_OUTLIERS);
    fputc('\n', view->out);
}

static bool has_one_model(const struct wm_report *report)
{
    for (size_t i = 1; i < report->gpu_count; i++) {
        if (strcmp(report->gpus[i].name, report->gpus[0].name) != 0)
            return false;
    }
    return true;
}

static void print_folded(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_energy_sum *sum = &report->gpu_energy;
    struct wm_detail detail = { "" };
    char label[32], name[64];

    snprintf(label, sizeof(label), "%zu GPUs", report->gpu_count);
    add_uncertainty(&detail, sum);
    wm_line_clean(name, sizeof(name), model_of(report->gpus[0].name));
    wm_line_add(&detail, "; ", "%s", has_one_model(report) ? name : "several models");
    add_origin(&detail, sum->origin);
    wm_line_print(view, label, joules_text(&sum->energy, &sum->uncertainty).text,
                  detail.text);
    fprintf(view->out, "  %-12s%12s%12s%12s\n", "each", "lowest", "mean", "highest");
    for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
        print_fold(view, &folds[i]);
    print_outliers(view);
}

static void print_gpus(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;

    if (report->gpu_count > MOST_GPU_LINES) {
        print_folded(view);
        return;
    }
    for (size_t i = 0; i < report->gpu_count; i++)
        print_gpu(view, &report->gpus[i]);
}

/* Energies. */

static void print_sum(const struct wm_text_view *view, const char *label,
                      const struct wm_energy_sum *sum, const char *what)
{
    const struct wm_value mean = { .known = true,
                                   .number = sum->watts,
                                   .why = sum->is_part ? sum->energy.why : NULL };
    struct wm_detail detail = { "" };

    if (!sum->energy.known)
        return;
    add_uncertainty(&detail, sum);
    add_watts(&detail, &mean, &sum->uncertainty);
    if (what[0])
        wm_line_add(&detail, "; ", "%s", what);
    add_origin(&detail, sum->origin);
    wm_line_print(view, label, joules_text(&sum->energy, &sum->uncertainty).text,
                  detail.text);
}

static void add_part(struct wm_detail *detail, const struct wm_value *joules,
                     const struct wm_value *uncertainty, const char *whose)
{
    if (joules->known)
        wm_line_add(detail, ", ", "%s %s",
                    wm_view_approximate(joules->number, ratio_of(uncertainty), "J").text,
                    whose);
}

static void print_split(const struct wm_text_view *view)
{
    const struct wm_energy_split *split = &view->report->energy.split;
    const struct wm_value *uncertainty = &view->report->energy.uncertainty;
    struct wm_detail detail = { "" };

    if (!split->tree.known)
        return;
    add_part(&detail, &split->tree,
             split->tree_uncertainty.known ? &split->tree_uncertainty : uncertainty,
             "by the command");
    add_part(&detail, &split->rest, uncertainty, "by other programs");
    add_part(&detail, &split->idle, uncertainty, "idle");
    fprintf(view->out, "%14s%s\n", "", detail.text);
}

static void print_beside(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (!wm_line_is_beside(device) || !device->figure.energy.known)
            continue;
        struct wm_detail detail = { "" };
        if (device->contains != WM_CONTAINS_DEVICE)
            wm_line_add(&detail, "", "the %s",
                        wm_word(WM_WORDS_CONTAINS, (int)device->contains));
        wm_line_add(&detail, "; ", "not included in the total");
        wm_line_print(view, device->name,
                      joules_text(&device->figure.energy, &device->figure.uncertainty).text,
                      detail.text);
    }
}

static void print_energy(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    bool is_one = is_sum_of_one(report);
    struct wm_detail cover = wm_line_cover(&report->cover, report->gpu_count);

    if (!is_one) {
        print_sum(view, "CPU", &report->cpu_energy, "");
        print_sum(view, "DRAM", &report->dram_energy, "");
    }
    if (has_sum_line(report))
        print_sum(view, "Energy", &report->energy, cover.text);
    if (report->energy.energy.known)
        print_split(view);
    print_beside(view);
}

/* Cost and CO2e, where the user gave a factor. */
static void print_amounts(const struct wm_text_view *view)
{
    const struct wm_energy_sum *energy = &view->report->energy;
    const struct wm_tariff *tariff = &view->units->tariff;
    struct wm_tariff_kind kinds[WM_TARIFF_KINDS];
    struct wm_detail detail = { "" };

    wm_tariff_kinds(tariff, kinds);
    add_origin(&detail, energy->origin);
    for (size_t i = 0; i < WM_TARIFF_KINDS; i++) {
        if (kinds[i].per_kwh <= 0)
            continue;
        if (energy->energy.known)
            wm_line_print(view, kinds[i].label,
                          wm_tariff_text(tariff, &kinds[i], &energy->energy,
                                         ratio_of(&energy->uncertainty))
                              .text,
                          detail.text);
        else
            wm_line_print(view, kinds[i].label, "n/a", "as the energy is not known");
    }
}

/* What is not there, in one line. */

static void add_missing(struct wm_detail *detail, const struct wm_value *value,
                        const char *name)
{
    if (!value->known)
        wm_line_add(detail, ", ", "%s", name);
}

/* "energy of gpu3", or of how many. */
static void add_missing_gpus(struct wm_detail *missing, const struct wm_report *report)
{
    size_t count = 0;
    char name[64];

    for (size_t i = 0; i < report->gpu_count; i++) {
        if (report->gpus[i].figure.energy.known)
            continue;
        snprintf(name, sizeof(name), "energy of %.40s", report->gpus[i].label);
        count++;
    }
    if (count > 1)
        snprintf(name, sizeof(name), "energy of %zu GPUs", count);
    if (report->gpu_count == 0)
        snprintf(name, sizeof(name), "GPU");
    if (count > 0 || report->gpu_count == 0)
        wm_line_add(missing, ", ", "%s", name);
}

void wm_line_not_available(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    struct wm_detail missing = { "" };

    add_missing(&missing, &report->cpu_total, "CPU time");
    add_missing(&missing, &report->ram_combined.total, "memory");
    add_missing(&missing, &report->cpu_energy.energy, "CPU energy");
    add_missing_gpus(&missing, report);
    for (size_t i = 0; i < report->device_count; i++) {
        if (wm_line_is_beside(&report->devices[i]))
            add_missing(&missing, &report->devices[i].figure.energy,
                        report->devices[i].name);
    }
    add_missing(&missing, &report->cpu_temperature.max, "temperature");
    if (!missing.text[0])
        return;
    wm_line_add(&missing, "", " (wattmeter doctor says why)");
    wm_line_note(view, "Not available", WM_PAINT_FAINT, missing.text);
}

void wm_line_brief(const struct wm_text_view *view)
{
    print_time(view);
    print_cpu(view);
    print_memory(view);
    print_gpus(view);
    print_energy(view);
    print_amounts(view);
}
