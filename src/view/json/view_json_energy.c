/* SPDX-License-Identifier: Apache-2.0 */
/* view_json_energy.c - the joules of a report in JSON. */
#include <string.h>

#include "base/text/base_json.h"
#include "record/record_channel.h"
#include "view/json/view_json_node.h"

void wm_json_gpu_identity(const struct wm_json_node *node, const struct wm_gpu_usage *gpu)
{
    if (gpu->has_index)
        wm_json_put(node, "index", json_integer(gpu->index));
    else
        wm_json_missing(node, "index", "its source does not number it");
    wm_json_text(node, "uuid", gpu->uuid);
    wm_json_text(node, "name", gpu->name);
    wm_json_origin(node, gpu->origin);
}

static void put_figure(const struct wm_json_node *node,
                       const struct wm_energy_figure *figure)
{
    wm_json_value(node, "energy", &figure->energy);
    if (figure->method[0])
        wm_json_text(node, "method", figure->method);
    wm_json_percent(node, "uncertainty_percent", &figure->uncertainty);
    if (figure->uncertainty.known) {
        wm_json_put(node, "systematic_percent", json_real(100 * figure->systematic));
        wm_json_put(node, "random_percent", json_real(100 * figure->random));
        wm_json_between(node, &figure->low, &figure->high);
    }
    if (figure->sensor[0])
        wm_json_text(node, "sensor", figure->sensor);
    if (figure->check.known)
        wm_json_value(node, "check", &figure->check);
}

static void put_split(const struct wm_json_node *parent,
                      const struct wm_energy_split *split)
{
    struct wm_json_node node = wm_json_object(parent, "attributed");

    wm_json_value(&node, "tree", &split->tree);
    wm_json_value(&node, "idle", &split->idle);
    wm_json_value(&node, "rest", &split->rest);
    wm_json_percent(parent, "tree_uncertainty_percent", &split->tree_uncertainty);
}

/* The array that a device stands in. A platform that the CPUs' own counters tell of stands
 * with theirs. */
static const char *array_of(const struct wm_device_energy *device)
{
    switch (device->kind) {
    case WM_DEVICE_CPU:
        return "packages";
    case WM_DEVICE_CPU_PART:
        return "parts";
    case WM_DEVICE_DRAM:
        return "dram";
    case WM_DEVICE_PLATFORM:
        if (device->sensor == WM_SENSOR_BUILT_IN)
            return "psys";
        break;
    default:
        break;
    }
    return "other";
}

static void put_devices(const struct wm_json_node *parent, const char *key)
{
    const struct wm_report *report = parent->view->report;
    struct wm_json_node array = wm_json_node(parent, key, json_array());
    size_t count = 0;

    for (size_t i = 0; i < report->device_count; i++) {
        const struct wm_device_energy *device = &report->devices[i];
        if (strcmp(array_of(device), key) != 0)
            continue;
        struct wm_json_node node = wm_json_append(&array, count++);
        wm_json_text(&node, "name", device->name);
        wm_json_text(&node, "model", device->model);
        wm_json_text(&node, "source", device->source);
        wm_json_text(&node, "contains", wm_word(WM_WORDS_CONTAINS, (int)device->contains));
        wm_json_origin(&node, device->origin);
        put_figure(&node, &device->figure);
        wm_json_figures(&node, WM_REPORT_DEVICE, device, "");
        if (device->kind == WM_DEVICE_CPU || device->kind == WM_DEVICE_DRAM)
            put_split(&node, &device->split);
    }
}

static void put_cpu(const struct wm_json_node *root, const struct wm_json_node *parent)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(parent, "cpu");

    wm_json_figures(root, WM_REPORT_RUN, report, "energy.cpu.");
    put_devices(&node, "packages");
    put_devices(&node, "parts");
    put_devices(&node, "dram");
    put_devices(&node, "psys");
}

static void put_gpus(const struct wm_json_node *parent)
{
    const struct wm_report *report = parent->view->report;
    struct wm_json_node gpus = wm_json_node(parent, "gpus", json_array());

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *usage = &report->gpus[i];
        struct wm_json_node gpu = wm_json_append(&gpus, i);
        wm_json_gpu_identity(&gpu, usage);
        put_figure(&gpu, &usage->figure);
        put_split(&gpu, &usage->split);
    }
}

void wm_json_covers(const struct wm_json_node *node, const struct wm_cover *cover)
{
    static const char *const names[WM_COST_DEVICES] = { "cpu", "dram", "gpus" };
    json_t *covers = json_array();

    bool is_sum = cover->meter == WM_CONTAINS_DEVICE;

    for (size_t i = 0; i < WM_COST_DEVICES && is_sum; i++) {
        if (cover->has[i])
            wm_json_add(&covers, json_string(names[i]));
    }
    if (!is_sum)
        wm_json_add(&covers, json_string(wm_word(WM_WORDS_CONTAINS, (int)cover->meter)));
    wm_json_put(node, "covers", covers);
    if (!is_sum)
        wm_json_text(node, "meter", cover->name);
}

/* What the energy came to, and what it did by each device that saw more of the machine
 * than the total covers. */
static void put_amounts(const struct wm_json_node *node, double per_kwh)
{
    const struct wm_report *report = node->view->report;
    const struct wm_tariff *tariff = &node->view->units->tariff;
    const struct wm_energy_sum *energy = &report->energy;
    struct wm_value amount = wm_tariff_amount(tariff, &energy->energy, per_kwh);
    const struct wm_value tree = wm_tariff_amount(tariff, &energy->split.tree, per_kwh);
    struct wm_platform whole;
    struct wm_json_node platform;
    size_t count = 0, at = 0;

    wm_json_value(node, "amount", &amount);
    wm_json_value(node, "attributed_tree", &tree);
    wm_json_percent(node, "uncertainty_percent", &energy->uncertainty);
    wm_json_origin(node, energy->origin);
    wm_json_put(node, "pue", json_real(wm_tariff_pue(tariff)));

    platform = wm_json_node(node, "platform", json_array());
    while (wm_platform_next(report, &at, &whole)) {
        struct wm_json_node entry = wm_json_append(&platform, count++);
        amount = wm_tariff_amount(tariff, &whole.energy, per_kwh);
        wm_json_text(&entry, "name", whole.name);
        wm_json_value(&entry, "amount", &amount);
        wm_json_origin(&entry, whole.origin);
    }
}

static void put_idle_power(const struct wm_json_node *array, size_t *count,
                           const char *name, const struct wm_value *power)
{
    if (!power->known)
        return;
    struct wm_json_node node = wm_json_append(array, (*count)++);
    wm_json_text(&node, "name", name);
    wm_json_value(&node, "power", power);
}

/* What `idle` is made of, where the machine was measured before. */
static void put_baseline(const struct wm_json_node *energy)
{
    const struct wm_report *report = energy->view->report;
    size_t count = 0;

    if (report->run.baseline_count == 0)
        return;
    struct wm_json_node node = wm_json_object(energy, "baseline");
    wm_json_put(&node, "seconds", wm_json_number(report->run.baseline_seconds));
    struct wm_json_node array = wm_json_node(&node, "devices", json_array());
    for (size_t i = 0; i < report->device_count; i++)
        put_idle_power(&array, &count, report->devices[i].name,
                       &report->devices[i].idle_power);
    for (size_t i = 0; i < report->gpu_count; i++)
        put_idle_power(&array, &count, report->gpus[i].label, &report->gpus[i].idle_power);
}

static void put_cost(const struct wm_json_node *energy)
{
    const struct wm_tariff *tariff = &energy->view->units->tariff;

    if (tariff->price <= 0)
        return;
    struct wm_json_node node = wm_json_object(energy, "cost");
    if (tariff->currency)
        wm_json_text(&node, "currency", tariff->currency);
    else
        wm_json_missing(&node, "currency", "none was given");
    put_amounts(&node, tariff->price);
    wm_json_put(&node, "price_per_kwh", json_real(tariff->price));
}

static void put_co2e(const struct wm_json_node *energy)
{
    const struct wm_tariff *tariff = &energy->view->units->tariff;

    if (tariff->carbon <= 0)
        return;
    struct wm_json_node node = wm_json_object(energy, "co2e");
    wm_json_text(&node, "unit", "grams");
    put_amounts(&node, tariff->carbon);
    wm_json_put(&node, "factor", json_real(tariff->carbon));
}

void wm_json_energy(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "energy");

    wm_json_text(&node, "unit", "joules");
    wm_json_figures(root, WM_REPORT_RUN, report, "energy.total");
    wm_json_covers(&node, &report->cover);
    put_cpu(root, &node);
    put_gpus(&node);
    put_devices(&node, "other");
    wm_json_figures(root, WM_REPORT_RUN, report, "energy.attributed.");
    wm_json_percent(&node, "tree_uncertainty_percent",
                    &report->energy.split.tree_uncertainty);
    put_baseline(&node);
    wm_json_figures(root, WM_REPORT_RUN, report, "energy.power.");
    put_cost(&node);
    put_co2e(&node);

    struct wm_json_node why = wm_json_object(&node, "why");
    if (!report->cpu_energy.energy.known)
        wm_json_text(&why, "cpu", report->cpu_energy.energy.why);
    if (!report->gpu_energy.energy.known)
        wm_json_text(&why, "gpus", report->gpu_energy.energy.why);
}
