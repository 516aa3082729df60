/* SPDX-License-Identifier: Apache-2.0 */
/* view_experiment.c - experiments for people: which there are, and what one cost. */
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_options.h"
#include "base/text/base_json.h"
#include "view/text/view_text_line.h"

enum { NAME_SIZE = 512, TIME_SIZE = 32 };

/* Joules; `cost` is what they are the total of, or NULL. */
static void print_energy(const struct wm_text_view *view, const char *label,
                         const struct wm_value *joules, enum wm_origin origin,
                         const struct wm_cost *cost)
{
    struct wm_detail detail = { "" };

    if (!joules->known) {
        wm_line_missing(view, label, joules->why);
        return;
    }
    if (cost && cost->uncertainty.known)
        wm_line_add(&detail, "", "±%s", wm_line_number(&cost->uncertainty, 100, " %").text);
    wm_line_add(&detail, "; ", "%s", wm_view_prefixed(joules->number / 3600, "Wh").text);
    if (cost)
        wm_line_add(&detail, "; ", "%s", wm_line_cover(&cost->cover, 2).text);
    wm_line_add_origin(&detail, origin);
    wm_line_print(view, label, wm_line_joules(joules).text, detail.text);
}

static void print_total(const struct wm_text_view *view, const char *label,
                        const struct wm_cost *cost)
{
    print_energy(view, label, &cost->total, cost->origin, cost);
}

static void print_parts(const struct wm_text_view *view, const struct wm_cost *cost)
{
    static const char *const labels[WM_COST_DEVICES] = { "  CPU", "  memory", "  GPUs" };
    const struct wm_value *dynamic = &cost->parts[WM_COST_DYNAMIC];
    struct wm_detail detail = { "" };

    for (size_t i = 0; i < WM_COST_DEVICES; i++)
        print_energy(view, labels[i], &cost->parts[i], cost->origins[i], NULL);
    if (!dynamic->known) {
        wm_line_missing(view, "  of the work", dynamic->why);
        return;
    }
    wm_line_add(&detail, "", "%s less, which the same takes idle",
                wm_view_prefixed(cost->parts[WM_COST_IDLE].number, "J").text);
    wm_line_print(view, "  of the work", wm_line_joules(dynamic).text, detail.text);
}

static void print_amount(const struct wm_text_view *view, const char *label,
                         const struct wm_cost *cost, double per_kwh, bool is_money)
{
    const struct wm_tariff *tariff = &view->units->tariff;
    const struct wm_value amount = wm_tariff_amount(tariff, &cost->total, per_kwh);
    const char *currency = is_money && tariff->currency ? tariff->currency : "";
    char figure[WM_QUANTITY_SIZE + 24];
    struct wm_detail detail = { "" };

    if (per_kwh <= 0)
        return;
    if (!amount.known) {
        wm_line_missing(view, label, amount.why);
        return;
    }
    if (tariff->pue > 1)
        wm_line_add(&detail, "", "with a PUE of %s", wm_view_number(tariff->pue, 3).text);
    wm_line_add_origin(&detail, cost->origin);
    const struct wm_quantity number =
        is_money ? wm_view_number(amount.number, 3) : wm_view_prefixed(amount.number, "g");
    snprintf(figure, sizeof(figure), "%s%s%s%s", amount.why ? "at least " : "", number.text,
             currency[0] ? " " : "", currency);
    wm_line_print(view, label, figure, detail.text);
}

static void print_tariff(const struct wm_text_view *view, const struct wm_cost *cost)
{
    const struct wm_tariff *tariff = &view->units->tariff;

    print_amount(view, "Cost", cost, tariff->price, true);
    print_amount(view, "CO2e", cost, tariff->carbon, false);
}

static void print_model(const struct wm_text_view *view,
                        const struct wm_experiment_summary *summary)
{
    struct wm_detail detail = { "" };

    if (!summary->model)
        return;
    const struct wm_model_card card = wm_model_card_read(summary->model);
    if (summary->per_parameter.known) {
        wm_line_add(&detail, "", "of %s", wm_view_prefixed(card.parameters, "").text);
        wm_line_print(view, "Per parameter",
                      wm_view_prefixed(summary->per_parameter.number, "J").text,
                      detail.text);
    }
    if (summary->per_flop.known) {
        detail.text[0] = '\0';
        wm_line_add(&detail, "", "of %s in each run",
                    wm_view_prefixed(card.flops * card.passes, "FLOP").text);
        wm_line_print(view, "Per FLOP",
                      wm_view_prefixed(summary->per_flop.number, "J").text, detail.text);
    }
}

static void print_runs(const struct wm_text_view *view,
                       const struct wm_experiment_summary *summary)
{
    for (size_t i = 0; i < summary->run_count; i++) {
        const struct wm_run_summary *run = &summary->runs[i];
        const struct wm_value *seconds = &run->report->active_time;
        char label[32], start[TIME_SIZE];
        char command[NAME_SIZE];
        struct wm_detail detail = { "" };
        snprintf(label, sizeof(label), "  run %zu", i);
        print_total(view, label, &run->cost);
        wm_clock_rfc3339(run->run->start_unix_ns, start, sizeof(start));
        wm_line_add(&detail, "", "%s, %s", start,
                    wm_line_figure(seconds, WM_UNIT_TIME, view->units).text);
        if (run->report->segments > 1)
            wm_line_add(&detail, " ", "in %zu segments", run->report->segments);
        char *words = wm_run_command_line(&run->report->run);
        wm_line_clean(command, sizeof(command), words ? words : "");
        free(words);
        if (command[0])
            wm_line_add(&detail, ": ", "%s", command);
        wm_line_more(view, detail.text);
    }
}

static bool has_remark(const struct wm_report *report, const char *remark)
{
    for (size_t i = 0; i < report->remark_count; i++) {
        if (strcmp(report->remarks[i], remark) == 0)
            return true;
    }
    return false;
}

/* Which runs say so: "run 0, run 2"; nothing where all do. */
static struct wm_detail who_says(const struct wm_experiment_summary *summary,
                                 const char *remark)
{
    struct wm_detail runs = { "" };
    size_t count = 0;

    for (size_t i = 0; i < summary->run_count; i++) {
        if (!has_remark(summary->runs[i].report, remark))
            continue;
        count++;
        wm_line_add(&runs, ", ", "run %zu", i);
    }
    if (count == summary->run_count && count > 1)
        return (struct wm_detail) { "all runs" };
    return runs;
}

/* What is to be known of the runs, each remark once. */
static void print_remarks(const struct wm_text_view *view,
                          const struct wm_experiment_summary *summary)
{
    char text[NAME_SIZE];

    for (size_t i = 0; i < summary->run_count; i++) {
        const struct wm_report *report = summary->runs[i].report;
        for (size_t k = 0; k < report->remark_count; k++) {
            size_t first = 0;
            while (!has_remark(summary->runs[first].report, report->remarks[k]))
                first++;
            if (first < i)
                continue;
            wm_line_clean(text, sizeof(text), report->remarks[k]);
            fprintf(view->out, "note: %s: %s\n", who_says(summary, report->remarks[k]).text,
                    text);
        }
    }
}

/* The program's own metrics, over all runs by its last value. */
static void print_told(const struct wm_text_view *view,
                       const struct wm_experiment_summary *summary)
{
    for (size_t i = 0; i < summary->run_count; i++) {
        const struct wm_result *result = &summary->runs[i].report->result;
        for (size_t k = 0; k < result->metrics.count; k++) {
            const struct wm_metric *metric = &result->metrics.all[k];
            char name[NAME_SIZE];
            struct wm_detail detail = { "" };
            if (metric->count == 0)
                continue;
            wm_line_clean(name, sizeof(name), metric->name);
            wm_line_add(&detail, "", "the last of %zu in run %zu", metric->count, i);
            wm_line_print(view, name,
                          wm_view_number(metric->points[metric->count - 1].value, 6).text,
                          detail.text);
        }
    }
}

static void print_steps(const struct wm_text_view *view, const char *per,
                        const struct wm_experiment_summary *summary)
{
    char label[NAME_SIZE];
    struct wm_detail detail = { "" };

    wm_line_clean(label, sizeof(label), per);
    fprintf(view->out, "Energy up to each value of %s:\n", label);
    for (size_t i = 0; i < summary->step_count; i++) {
        const struct wm_step *step = &summary->steps[i];
        snprintf(label, sizeof(label), "  %s", wm_view_number(step->value, 6).text);
        detail.text[0] = '\0';
        wm_line_add(&detail, "", "run %zu", step->run);
        if (!step->joules.known) {
            wm_line_missing(view, label, step->joules.why);
            continue;
        }
        wm_line_print(view, label, wm_view_prefixed(step->joules.number, "J").text,
                      detail.text);
    }
    print_energy(view, "  on average", &summary->per_step, summary->cost.origin, NULL);
}

static void print_text(const struct wm_experiment_view *shown, FILE *out)
{
    const struct wm_experiment_summary *summary = shown->summary;
    const struct wm_text_view view = { .units = shown->units, .out = out };
    char text[NAME_SIZE];

    wm_line_clean(text, sizeof(text), shown->experiment->name);
    fprintf(out, "%s: %zu run%s\n", text, summary->run_count,
            summary->run_count == 1 ? "" : "s");
    if (summary->description) {
        wm_line_clean(text, sizeof(text), summary->description);
        fprintf(out, "%s\n", text);
    }
    if (summary->seconds.known)
        wm_line_print(&view, "Time",
                      wm_view_duration(summary->seconds.number, shown->units->time).text,
                      "without what lies between the runs");
    else
        wm_line_missing(&view, "Time", summary->seconds.why);
    print_total(&view, "Energy", &summary->cost);
    print_parts(&view, &summary->cost);
    print_tariff(&view, &summary->cost);
    print_model(&view, summary);
    print_told(&view, summary);
    fputs("Runs\n", out);
    print_runs(&view, summary);
    if (shown->per)
        print_steps(&view, shown->per, summary);
    print_remarks(&view, summary);
    if (shown->experiment->broken > 0) {
        wm_line_clean(text, sizeof(text), shown->experiment->trouble);
        fprintf(out, "note: %zu that could not be read, such as %s\n",
                shown->experiment->broken, text);
    }
}

int wm_experiment_print(const struct wm_experiment *experiment, enum wm_format format,
                        const struct wm_experiment_style *given, FILE *out,
                        struct wm_error *err)
{
    struct wm_experiment_style style;
    struct wm_experiment_summary summary = { 0 };
    struct wm_units units;

    int status = wm_view_check(format, WM_VIEW_PLAIN, err);
    if (status == WM_OK)
        status = wm_options_read(given, &style, sizeof(style), err);
    if (status == WM_OK)
        status = wm_units_of_style(style.report, &units, err);
    if (status < 0)
        return status;
    if (!(style.idle_watts >= 0 && style.idle_watts <= 1e9))
        return wm_fail(err, WM_EINVAL, "the idle power is not within 0 to 1e9 W");
    status =
        wm_experiment_summarize(experiment, style.idle_watts, style.per, &summary, err);
    const struct wm_experiment_view view = { experiment, &summary, &units, style.per };
    if (status == WM_OK && format == WM_FORMAT_JSON)
        status = wm_view_dump(wm_view_experiment_json(&view), JSON_INDENT(2), out, err);
    else if (status == WM_OK)
        print_text(&view, out);
    wm_experiment_summary_release(&summary);
    return status == WM_OK ? wm_view_flush(out, "the output", err) : status;
}

static void print_entry(const struct wm_experiment_entry *entry, FILE *out)
{
    char text[NAME_SIZE], start[TIME_SIZE];

    wm_clock_rfc3339(entry->last_unix_ns, start, sizeof(start));
    wm_line_clean(text, sizeof(text), entry->name ? entry->name : "-");
    fprintf(out, "%-24s %3zu run%s  %s", text, entry->runs, entry->runs == 1 ? " " : "s",
            start);
    wm_line_clean(text, sizeof(text), entry->description ? entry->description : "");
    fprintf(out, "%s%s\n", text[0] ? "  " : "", text);
}

/* A text that is not there is null, and `why` has the reason. */
static void put_text(json_t **object, json_t **why, const char *key, const char *text,
                     const char *reason)
{
    wm_json_set(object, key, wm_text_json(text));
    if (!text)
        wm_json_set(why, key, json_string(reason));
}

static json_t *entry_json(const struct wm_experiment_entry *entry)
{
    json_t *object = json_object(), *why = json_object();
    char first[TIME_SIZE], last[TIME_SIZE];

    wm_clock_rfc3339(entry->first_unix_ns, first, sizeof(first));
    wm_clock_rfc3339(entry->last_unix_ns, last, sizeof(last));
    put_text(&object, &why, "name", entry->name, "its runs were recorded without one");
    wm_json_set(&object, "runs", json_integer((json_int_t)entry->runs));
    wm_json_set(&object, "first_start", json_string(first));
    wm_json_set(&object, "last_start", json_string(last));
    put_text(&object, &why, "description", entry->description, "no run has one");
    wm_json_set(&object, "why", why);
    return object;
}

static json_t *list_json(const struct wm_experiment_list *list)
{
    json_t *object = json_object(), *why = json_object(), *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        wm_json_add(&array, entry_json(&list->entries[i]));
    wm_json_set(&object, "experiments", array);
    wm_json_set(&object, "unreadable", json_integer((json_int_t)list->found.broken));
    put_text(&object, &why, "trouble", list->found.broken > 0 ? list->found.trouble : NULL,
             "all could be read");
    wm_json_set(&object, "why", why);
    return object;
}

int wm_experiment_print_list(const char *target, enum wm_format format, FILE *out,
                             struct wm_error *err)
{
    struct wm_experiment_list list;

    int status = wm_view_check(format, WM_VIEW_PLAIN, err);
    if (status < 0)
        return status;
    status = wm_experiment_list_load(target, &list, err);
    if (status == WM_OK && format == WM_FORMAT_JSON) {
        status = wm_view_dump(list_json(&list), JSON_INDENT(2), out, err);
    } else if (status == WM_OK) {
        for (size_t i = 0; i < list.count; i++)
            print_entry(&list.entries[i], out);
        if (list.count == 0)
            fputs("there is no experiment\n", out);
        if (list.found.broken > 0)
            fprintf(out, "note: %zu that could not be read, such as %s\n",
                    list.found.broken, list.found.trouble);
    }
    wm_experiment_list_release(&list);
    return status == WM_OK ? wm_view_flush(out, "the output", err) : status;
}
