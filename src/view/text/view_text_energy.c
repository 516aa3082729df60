/* SPDX-License-Identifier: Apache-2.0 */
/* view_text_energy.c - what GPUs were used for, and where the joules went. */
#include "view/text/view_text_line.h"

#include <stdbool.h>
#include <string.h>

#include "record/record_channel.h"

bool wm_line_has_no_gpu(const struct wm_report *report)
{
    return report->gpu_count == 0;
}

/* "2 GPUs" */
static struct wm_quantity gpu_count(const struct wm_report *report)
{
    struct wm_quantity name;

    snprintf(name.text, sizeof(name.text), "%zu GPU%s", report->gpu_count,
             report->gpu_count == 1 ? "" : "s");
    return name;
}

void wm_line_add_gpu_memory(const struct wm_text_view *view, struct wm_detail *detail)
{
    const struct wm_report *report = view->report;
    const struct wm_unit *unit = view->units->gpu_ram;

    wm_line_add_most(detail, &report->gpu_ram_combined);
    wm_line_add(detail, "; ", "%s of %s in use on %s",
                wm_line_bytes(&report->gpu_ram_system, unit).text,
                wm_line_bytes(&report->gpu_ram_capacity, unit).text,
                gpu_count(report).text);
}

void wm_line_add_gpu_use(const struct wm_text_view *view, struct wm_detail *detail)
{
    wm_line_add(detail, "", "of %s on average, peak %s", gpu_count(view->report).text,
                wm_line_percent(&view->report->gpu_percentages.max_hardware).text);
}

struct wm_value wm_line_gpu_watts(const struct wm_gpu_usage *gpu)
{
    const struct wm_energy_figure *figure = &gpu->figure;

    return figure->energy.known && figure->covered_s > 0
               ? wm_value_known(figure->energy.number / figure->covered_s)
               : gpu->power.mean;
}

static struct wm_quantity more_text(const struct wm_gpu_figure *more)
{
    double value = more->value.number;
    struct wm_quantity text;

    if (strcmp(more->unit, "ratio") == 0)
        return wm_view_percent(value);
    if (strcmp(more->unit, "B") == 0)
        return wm_view_bytes(value, NULL);
    if (strcmp(more->unit, "count") == 0)
        return wm_view_number(value, 1);
    if (strcmp(more->unit, "rpm") != 0)
        return wm_view_prefixed(value,
                                strcmp(more->unit, "celsius") == 0 ? "°C" : more->unit);
    snprintf(text.text, sizeof(text.text), "%.0f rpm", value);
    return text;
}

/* By which the mean of a constant may be off. */
#define ROUNDING 1e-9

/* Behind so many characters a metric begins another line. */
enum { LINE_FULL = 50 };

/* What was recorded on demand: "fan 36 %, peak 40 %". */
static void print_more(const struct wm_text_view *view, const struct wm_gpu_usage *gpu)
{
    struct wm_detail detail = { "" };
    struct wm_quantity mean = { "" };
    double mean_value = 0;

    for (size_t i = 0; i < gpu->more_count; i++) {
        const struct wm_gpu_figure *more = &gpu->more[i];
        const struct wm_quantity text = more_text(more);
        if (!more->value.known)
            continue;
        if (strcmp(more->part, "max") == 0) { /* behind the mean */
            if (more->value.number > mean_value * (1 + ROUNDING) &&
                strcmp(text.text, mean.text) != 0)
                wm_line_add(&detail, "", ", peak %s", text.text);
            continue;
        }
        if (strlen(detail.text) > LINE_FULL) {
            wm_line_more(view, detail.text);
            detail.text[0] = '\0';
        }
        wm_line_add(&detail, "; ", "%s %s", more->metric, text.text);
        mean = text;
        mean_value = more->value.number;
    }
    if (detail.text[0])
        wm_line_more(view, detail.text);
}

static void print_gpu(const struct wm_text_view *view, const struct wm_gpu_usage *gpu)
{
    struct wm_detail detail = { "" };
    char label[24], name[64];

    snprintf(label, sizeof(label), "  %s", gpu->label);
    const struct wm_value watts = wm_line_gpu_watts(gpu);
    bool is_reading = !watts.known || gpu->power.max.number > watts.number ||
                      gpu->power.mean.number >= 0.999 * watts.number;
    wm_line_add(
        &detail, "", "%s on average, peak %s%s", wm_line_number(&watts, 1, " W").text,
        wm_line_number(&gpu->power.max, 1, " W").text, is_reading ? " in a reading" : "");
    wm_line_add(&detail, "; ", "busy %s%s", wm_line_at_least(&gpu->utilization.mean),
                wm_line_number(&gpu->utilization.mean, 100, " %").text);
    if (gpu->temperature.max.known)
        wm_line_add(&detail, "; ", "peak %s",
                    wm_line_number(&gpu->temperature.max, 1, " °C").text);
    wm_line_add_origin(&detail, gpu->origin);
    wm_line_print(view, label, wm_line_joules(&gpu->figure.energy).text, detail.text);

    detail.text[0] = '\0';
    wm_line_clean(name, sizeof(name), gpu->name);
    wm_line_add(&detail, "", "%s", name);
    if (gpu->figure.energy.known)
        wm_line_add(&detail, "; ", "energy by %s", gpu->figure.method);
    else
        wm_line_add(&detail, "; ", "energy n/a (%s)", gpu->figure.energy.why);
    wm_line_more(view, detail.text);
    print_more(view, gpu);
}

void wm_line_gpus(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;

    if (report->gpu_count == 0)
        wm_line_missing(view, "GPU", report->gpu_energy.energy.why);
    for (size_t i = 0; i < report->gpu_count; i++)
        print_gpu(view, &report->gpus[i]);
}

/* Whose the energy of all together was. */
static void print_split(const struct wm_text_view *view, const struct wm_energy_sum *sum)
{
    const struct wm_energy_split *split = &sum->split;
    const struct {
        const struct wm_value *value;
        const char *name;
    } parts[] = {
        { &split->tree, "by the command" },
        { &split->rest, "by other programs" },
        { &split->idle, "idle" },
    };
    struct wm_detail detail = { "" };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].value->known)
            wm_line_add(&detail, ", ", "%s %s", wm_line_joules(parts[i].value).text,
                        parts[i].name);
    }
    if (detail.text[0])
        wm_line_add_origin(&detail, sum->origin);
    else if (!split->tree.known)
        wm_line_add(&detail, "", "how much of it the command's was: n/a (%s)",
                    split->tree.why);
    wm_line_more(view, detail.text);
}

static void add_idle_power(struct wm_detail *detail, const char *name,
                           const struct wm_value *power)
{
    if (power->known)
        wm_line_add(detail, ", ", "%s %s", name, wm_line_number(power, 1, " W").text);
}

/* What is taken to be idle where it was measured before the command. */
static void print_baseline(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    struct wm_detail powers = { "" }, detail = { "" };

    for (size_t i = 0; i < report->device_count; i++)
        add_idle_power(&powers, report->devices[i].name, &report->devices[i].idle_power);
    for (size_t i = 0; i < report->gpu_count; i++)
        add_idle_power(&powers, report->gpus[i].label, &report->gpus[i].idle_power);
    if (!powers.text[0])
        return;
    wm_line_add(&detail, "", "idle as in the %s before: %s",
                wm_view_duration(report->run.baseline_seconds, NULL).text, powers.text);
    wm_line_more(view, detail.text);
}

static void print_device(const struct wm_text_view *view,
                         const struct wm_device_energy *device, bool is_beside)
{
    const struct wm_energy_figure *figure = &device->figure;
    struct wm_detail detail = { "" };
    char label[40];

    snprintf(label, sizeof(label), "  %.30s", device->name);
    if (figure->energy.known) {
        if (is_beside &&
            wm_line_is_asymmetric(&figure->energy, &figure->low, &figure->high))
            wm_line_add(&detail, "", "%s to %s", wm_line_joules(&figure->low).text,
                        wm_line_joules(&figure->high).text);
        else if (is_beside && figure->uncertainty.known)
            wm_line_add(&detail, "", "±%s",
                        wm_line_number(&figure->uncertainty, 100, " %").text);
        wm_line_add(&detail, "; ", "%s on average; by %s",
                    wm_line_number(&device->power, 1, " W").text, figure->method);
        if (is_beside && device->contains != WM_CONTAINS_DEVICE)
            wm_line_add(&detail, "; ", "the %s",
                        wm_word(WM_WORDS_CONTAINS, (int)device->contains));
    } else {
        wm_line_add(&detail, "", "(%s)", figure->energy.why);
    }
    wm_line_add_origin(&detail, device->origin);
    wm_line_print(view, label, wm_line_joules(&figure->energy).text, detail.text);
}

static void print_devices(const struct wm_text_view *view, enum wm_device_kind from,
                          enum wm_device_kind to)
{
    const struct wm_report *report = view->report;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (device->kind == from || device->kind == to)
            print_device(view, device, false);
    }
}

bool wm_line_is_beside(const struct wm_device_energy *device)
{
    return !device->heads &&
           (device->kind == WM_DEVICE_PLATFORM || device->kind == WM_DEVICE_OTHER ||
            device->kind == WM_DEVICE_GPU);
}

/* Each by itself: they see the same joules as others do, or some that nothing adds up. */
static void print_beside(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    size_t count = 0;
    char number[40];

    for (size_t i = 0; i < report->device_count; i++)
        count += wm_line_is_beside(&report->devices[i]);
    if (count == 0)
        return;
    snprintf(number, sizeof(number), "%zu sensor%s", count, count == 1 ? "" : "s");
    wm_line_print(view, "Beside it", number, "not included in the total");
    for (size_t i = 0; i < report->device_count; i++) {
        if (wm_line_is_beside(&report->devices[i]))
            print_device(view, &report->devices[i], true);
    }
}

struct wm_detail wm_line_cover(const struct wm_cover *cover, size_t gpu_count)
{
    const char *const names[WM_COST_DEVICES] = { "CPU", "memory",
                                                 gpu_count == 1 ? "GPU" : "GPUs" };
    struct wm_detail detail = { "" };
    char name[64];

    if (cover->meter != WM_CONTAINS_DEVICE) {
        wm_line_clean(name, sizeof(name), cover->name);
        wm_line_add(&detail, "", "the %s by %s",
                    wm_word(WM_WORDS_CONTAINS, (int)cover->meter), name);
        return detail;
    }
    for (size_t i = 0; i < WM_COST_DEVICES; i++) {
        if (cover->has[i])
            wm_line_add(&detail, ", ", "%s", names[i]);
    }
    return detail;
}

static void print_parts(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    struct wm_detail detail = wm_line_cover(&report->cover, report->gpu_count);

    if (report->power.mean.known)
        wm_line_add(&detail, ": ", "%s%s on average, peak %s",
                    wm_line_at_least(&report->power.mean),
                    wm_line_number(&report->power.mean, 1, " W").text,
                    wm_line_number(&report->power.max, 1, " W").text);
    if (report->power.mean.known && report->power.max.known && report->power_max_s > 0)
        wm_line_add(&detail, " ", "over %s",
                    wm_view_duration(report->power_max_s, NULL).text);
    wm_line_add_origin(&detail, report->energy.origin);
    wm_line_more(view, detail.text);
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].heads)
            print_device(view, &report->devices[i], true);
    }
    print_split(view, &report->energy);
    print_baseline(view);
}

/* Where something measured more of the machine than its parts, that is said too. */
static void print_platform_amounts(const struct wm_text_view *view,
                                   const struct wm_tariff_kind *kind)
{
    struct wm_platform platform;
    size_t at = 0;

    while (wm_platform_next(view->report, &at, &platform)) {
        struct wm_detail detail = { "" };
        char name[80];

        if (!platform.energy.known)
            continue;
        wm_line_clean(name, sizeof(name), platform.name);
        wm_line_add(&detail, "", "%s by %s, of the %s",
                    wm_tariff_text(&view->units->tariff, kind, &platform.energy, 0).text,
                    name, wm_word(WM_WORDS_CONTAINS, (int)platform.contains));
        wm_line_add_origin(&detail, platform.origin);
        wm_line_more(view, detail.text);
    }
}

static void print_amount(const struct wm_text_view *view, const struct wm_tariff_kind *kind)
{
    const struct wm_energy_sum *energy = &view->report->energy;
    const struct wm_tariff *tariff = &view->units->tariff;
    struct wm_detail detail = { "" };

    if (!energy->energy.known) {
        wm_line_missing(view, kind->label, energy->energy.why);
        print_platform_amounts(view, kind);
        return;
    }
    if (energy->uncertainty.known)
        wm_line_add(&detail, "", "±%s",
                    wm_line_number(&energy->uncertainty, 100, " %").text);
    wm_line_add(&detail, "; ", "at %s%s%s per kWh", wm_view_number(kind->per_kwh, 3).text,
                kind->unit[0] ? " " : "", kind->unit);
    if (tariff->pue > 1)
        wm_line_add(&detail, ", ", "PUE %s", wm_view_number(tariff->pue, 3).text);
    wm_line_add_origin(&detail, energy->origin);
    wm_line_print(view, kind->label, wm_tariff_text(tariff, kind, &energy->energy, 0).text,
                  detail.text);

    detail.text[0] = '\0';
    if (energy->split.tree.known)
        wm_line_add(&detail, "", "%s of the command",
                    wm_tariff_text(tariff, kind, &energy->split.tree, 0).text);
    wm_line_add(
        &detail, "; ", "covers %s%s",
        wm_line_cover(&view->report->cover, view->report->gpu_count).text,
        view->report->cover.meter != WM_CONTAINS_PLATFORM ? ", not the whole machine" : "");
    wm_line_more(view, detail.text);
    print_platform_amounts(view, kind);
}

static void print_amounts(const struct wm_text_view *view)
{
    struct wm_tariff_kind kinds[WM_TARIFF_KINDS];

    wm_tariff_kinds(&view->units->tariff, kinds);
    for (size_t i = 0; i < WM_TARIFF_KINDS; i++) {
        if (kinds[i].per_kwh > 0)
            print_amount(view, &kinds[i]);
    }
}

/* Each part has said why. */
bool wm_line_has_no_energy(const struct wm_report *report)
{
    return !report->energy.energy.known;
}

bool wm_line_has_no_dram(const struct wm_report *report)
{
    bool has_dram = false;

    for (size_t i = 0; i < report->device_count; i++)
        has_dram |= report->devices[i].kind == WM_DEVICE_DRAM;
    return !has_dram;
}

void wm_line_packages(const struct wm_text_view *view)
{
    print_devices(view, WM_DEVICE_CPU, WM_DEVICE_CPU_PART);
}

void wm_line_dram(const struct wm_text_view *view)
{
    print_devices(view, WM_DEVICE_DRAM, WM_DEVICE_DRAM);
}

void wm_line_whole(const struct wm_text_view *view)
{
    if (view->report->energy.energy.known)
        print_parts(view);
    print_beside(view);
    print_amounts(view);
}
