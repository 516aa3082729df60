/* SPDX-License-Identifier: Apache-2.0 */
/* view_experiment_json.c - an experiment for programs, described in docs/experiments.md. */
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "record/record_channel.h"
#include "view/json/view_json_node.h"
#include "view/view.h"

enum { TIME_SIZE = 32 };

static void put_time(const struct wm_json_node *node, const char *key, int64_t unix_ns)
{
    char text[TIME_SIZE];

    wm_clock_rfc3339(unix_ns, text, sizeof(text));
    wm_json_text(node, key, text);
}

static const char *const part_names[WM_COST_COUNT] = {
    [WM_COST_CPU] = "cpu",
    [WM_COST_DRAM] = "dram",
    [WM_COST_GPUS] = "gpus",
    [WM_COST_IDLE] = "idle",
    [WM_COST_DYNAMIC] = "without_idle",
};

/* What the total is the sum of, and whether each part was measured. */
static void put_parts(const struct wm_json_node *node, const struct wm_cost *cost)
{
    wm_json_covers(node, &cost->cover);
    struct wm_json_node origins = wm_json_object(node, "origins");
    for (size_t i = 0; i < WM_COST_DEVICES; i++) {
        if (cost->parts[i].known)
            wm_json_text(&origins, part_names[i],
                         wm_word(WM_WORDS_ORIGIN, (int)cost->origins[i]));
    }
}

static struct wm_json_node put_cost(const struct wm_json_node *parent,
                                    const struct wm_cost *cost)
{
    struct wm_json_node node = wm_json_object(parent, "energy");

    wm_json_text(&node, "unit", "joules");
    wm_json_value(&node, "total", &cost->total);
    wm_json_percent(&node, "uncertainty_percent", &cost->uncertainty);
    wm_json_origin(&node, cost->origin);
    for (size_t i = 0; i < WM_COST_COUNT; i++) {
        if (i == WM_COST_DEVICES)
            put_parts(&node, cost);
        wm_json_value(&node, part_names[i], &cost->parts[i]);
    }
    return node;
}

static void put_amount(const struct wm_json_node *energy, const char *key,
                       const struct wm_cost *cost, double per_kwh)
{
    const struct wm_tariff *tariff = &energy->view->units->tariff;
    const struct wm_value amount = wm_tariff_amount(tariff, &cost->total, per_kwh);
    struct wm_json_node node;

    if (per_kwh <= 0)
        return;
    node = wm_json_object(energy, key);
    if (strcmp(key, "cost") == 0)
        wm_json_text(&node, "currency", tariff->currency);
    else
        wm_json_text(&node, "unit", "grams");
    wm_json_value(&node, "amount", &amount);
    wm_json_put(&node, "per_kwh", json_real(per_kwh));
    wm_json_put(&node, "pue", json_real(wm_tariff_pue(tariff)));
    wm_json_percent(&node, "uncertainty_percent", &cost->uncertainty);
    wm_json_origin(&node, cost->origin);
}

static void put_told(const struct wm_json_node *parent, const struct wm_result *result)
{
    struct wm_json_node node = wm_json_object(parent, "metrics");

    for (size_t i = 0; i < result->metrics.count; i++) {
        const struct wm_metric *metric = &result->metrics.all[i];
        if (metric->count == 0)
            continue;
        struct wm_json_node one = wm_json_object(&node, metric->name);
        wm_json_put(&one, "values", json_integer((json_int_t)metric->count));
        wm_json_put(&one, "first", wm_json_number(metric->points[0].value));
        wm_json_put(&one, "last", wm_json_number(metric->points[metric->count - 1].value));
    }
}

static void put_run(const struct wm_json_node *array, size_t index,
                    const struct wm_run_summary *run)
{
    struct wm_json_node node = wm_json_append(array, index);
    const struct wm_report *report = run->report;

    wm_json_text(&node, "id", report->run.id);
    wm_json_text(&node, "host", report->run.host);
    char *command = wm_run_command_line(&report->run);
    wm_json_text(&node, "command", command);
    free(command);
    put_time(&node, "start", run->run->start_unix_ns);
    wm_json_value(&node, "seconds", &run->report->active_time);
    wm_json_put(&node, "segments", json_integer((json_int_t)run->report->segments));
    wm_json_put(&node, "complete", json_boolean(report->complete));
    put_cost(&node, &run->cost);
    put_told(&node, &report->result);
    wm_json_remarks(&node, report);
}

static void put_model(const struct wm_json_node *root,
                      const struct wm_experiment_summary *summary)
{
    if (!summary->model) {
        wm_json_missing(root, "model", "no run has a model card");
        return;
    }
    struct wm_json_node node = wm_json_object(root, "model");
    json_t *card = json_loads(summary->model, 0, NULL);
    wm_json_put(&node, "card", card ? card : json_null());
    wm_json_value(&node, "energy_per_parameter", &summary->per_parameter);
    wm_json_value(&node, "energy_per_flop", &summary->per_flop);
}

static void put_steps(const struct wm_json_node *root, const char *per,
                      const struct wm_experiment_summary *summary)
{
    struct wm_json_node node = wm_json_object(root, "per");
    struct wm_json_node array;

    wm_json_text(&node, "metric", per);
    wm_json_value(&node, "energy_mean", &summary->per_step);
    array = wm_json_node(&node, "steps", json_array());
    for (size_t i = 0; i < summary->step_count; i++) {
        const struct wm_step *step = &summary->steps[i];
        struct wm_json_node one = wm_json_append(&array, i);
        wm_json_put(&one, "run", json_integer((json_int_t)step->run));
        put_time(&one, "time", step->unix_ns);
        wm_json_put(&one, "value", wm_json_number(step->value));
        wm_json_value(&one, "energy", &step->joules);
    }
}

json_t *wm_view_experiment_json(const struct wm_experiment_view *shown)
{
    const struct wm_experiment_summary *summary = shown->summary;
    struct wm_json_view view = { .units = shown->units, .why = json_object() };
    struct wm_json_node root = { .view = &view, .json = json_object() };

    wm_json_text(&root, "experiment", shown->experiment->name);
    wm_json_text(&root, "description", summary->description);
    wm_json_value(&root, "seconds", &summary->seconds);
    struct wm_json_node energy = put_cost(&root, &summary->cost);
    put_amount(&energy, "cost", &summary->cost, shown->units->tariff.price);
    put_amount(&energy, "co2e", &summary->cost, shown->units->tariff.carbon);
    put_model(&root, summary);
    if (shown->per)
        put_steps(&root, shown->per, summary);
    struct wm_json_node runs = wm_json_node(&root, "runs", json_array());
    for (size_t i = 0; i < summary->run_count; i++)
        put_run(&runs, i, &summary->runs[i]);
    wm_json_put(&root, "unreadable", json_integer((json_int_t)shown->experiment->broken));

    wm_json_put(&root, "why", view.why);
    return wm_json_end(&root);
}
