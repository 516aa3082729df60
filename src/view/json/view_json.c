/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_json.c - a report for programs, described in docs/report.md.
 *
 * The first objects have gpu_tracker's structure to the letter, so what reads
 * its reports reads ours. What is not known is null, and the object "why" holds
 * the reason under the path of the null.
 */

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "view/json/view_json_node.h"

json_t *wm_json_command(const struct wm_run *run)
{
    json_t *words = json_array();

    for (size_t i = 0; i < run->command_count; i++)
        wm_json_add(&words, wm_text_json(run->command[i]));
    return words;
}

json_t *wm_json_exit(const struct wm_result *result)
{
    const bool is_known = result && result->exit_status.known;
    const bool is_killed = result && result->exit_signal > 0;
    json_t *object = json_object();

    wm_json_set(&object, "status",
                is_known ? wm_json_number(result->exit_status.number) : json_null());
    wm_json_set(&object, "signal",
                is_killed ? json_integer(result->exit_signal) : json_null());
    return object;
}

static void put_exit(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct wm_json_node node = wm_json_node(root, "exit", wm_json_exit(result));

    if (result->exit_status.known)
        return;
    wm_json_missing(&node, "status",
                    !report->complete         ? "the recording ends before the command"
                    : result->exit_signal > 0 ? "a signal ended it"
                                              : "its end was not seen");
}

/* What gpu_tracker's reports have, and how the CPU time was obtained. */
static void put_usage(const struct wm_json_node *root)
{
    static const char *const sections[] = { "max_ram.",         "max_gpu_ram.",
                                            "cpu_utilization.", "gpu_utilization.",
                                            "compute_time.",    "cpu_time." };
    const struct wm_report *report = root->view->report;

    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        wm_json_figures(root, WM_REPORT_RUN, report, sections[i]);
    struct wm_json_node cpu_time = wm_json_find(root, "cpu_time");
    wm_json_text(&cpu_time, "method", report->cpu_method);
}

/* What was recorded on demand, under the name of its channel. */
static void put_more(const struct wm_json_node *gpu, const struct wm_gpu_usage *usage)
{
    for (size_t i = 0; i < usage->more_count; i++) {
        const struct wm_gpu_figure *more = &usage->more[i];
        struct wm_json_node channels = wm_json_find(gpu, "channels");
        if (!channels.json)
            channels = wm_json_object(gpu, "channels");
        struct wm_json_node channel = wm_json_find(&channels, more->metric);
        if (!channel.json) {
            channel = wm_json_object(&channels, more->metric);
            wm_json_text(&channel, "unit", more->unit);
        }
        wm_json_value(&channel, more->part, &more->value);
    }
}

static void put_gpus(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node gpus = wm_json_node(root, "gpus", json_array());

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *usage = &report->gpus[i];
        struct wm_json_node gpu = wm_json_append(&gpus, i);
        wm_json_gpu_identity(&gpu, usage);
        wm_json_figures(&gpu, WM_REPORT_GPU, usage, "");
        put_more(&gpu, usage);
    }
}

static void put_known(const struct wm_json_node *peak, const char *key,
                      const struct wm_known *value)
{
    if (value->known)
        wm_json_put(peak, key, wm_json_number(value->number));
    else
        wm_json_missing(peak, key, "never read for this process");
}

static void put_processes(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct wm_json_node node = wm_json_object(root, "processes");

    wm_json_figures(root, WM_REPORT_RUN, report, "processes.");
    struct wm_json_node peaks = wm_json_node(&node, "peaks", json_array());
    for (size_t i = 0; i < result->process_count; i++) {
        const struct wm_process_peak *process = &result->processes[i];
        struct wm_json_node peak = wm_json_append(&peaks, i);
        wm_json_put(&peak, "pid", json_integer(process->pid));
        wm_json_put(&peak, "parent", json_integer(process->parent));
        wm_json_text(&peak, "name", process->name);
        put_known(&peak, "cpu_seconds", &process->cpu_seconds);
        wm_json_value(&peak, "cpu_energy", &report->process_energies[i]);
        put_known(&peak, "max_memory", &process->max_memory_bytes);
        put_known(&peak, "max_private_memory", &process->max_private_bytes);
        wm_json_put(&peak, "threads", json_integer(process->max_threads));
    }
}

static void put_host(const struct wm_json_node *root)
{
    const struct wm_run *run = &root->view->report->run;
    struct wm_json_node node = wm_json_object(root, "host");

    wm_json_text(&node, "name", run->host);
    wm_json_text(&node, "cpu_model", run->cpu_model);
    wm_json_text(&node, "kernel", run->kernel);
    wm_json_text(&node, "boot_id", run->boot_id);
}

static void put_start(const struct wm_json_node *root)
{
    char text[40];

    wm_clock_rfc3339(root->view->report->start_unix_ns, text, sizeof(text));
    wm_json_text(root, "start", text);
}

static void put_pairs(const struct wm_json_node *root, const char *key,
                      const struct wm_pair *pairs, size_t count)
{
    struct wm_json_node node = wm_json_object(root, key);

    for (size_t i = 0; i < count; i++)
        wm_json_text(&node, pairs[i].key ? pairs[i].key : "", pairs[i].value);
}

static void put_sources(const struct wm_json_node *root)
{
    const struct wm_run *run = &root->view->report->run;
    struct wm_json_node node = wm_json_object(root, "sources");

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *status = &run->sources[i];
        struct wm_json_node source =
            wm_json_object(&node, status->name ? status->name : "");
        wm_json_put(&source, "available", json_boolean(status->available));
        if (status->detail)
            wm_json_text(&source, status->available ? "detail" : "why", status->detail);
        if (status->remedy)
            wm_json_text(&source, "remedy", status->remedy);
    }
}

void wm_json_remarks(const struct wm_json_node *node, const struct wm_report *report)
{
    json_t *remarks = json_array();

    for (size_t i = 0; i < report->remark_count; i++)
        wm_json_add(&remarks, wm_text_json(report->remarks[i]));
    for (size_t i = 0; i < report->fact_count; i++)
        wm_json_add(&remarks, wm_text_json(report->facts[i]));
    wm_json_put(node, "remarks", remarks);
}

static void put_tool(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "tool");

    wm_json_text(&node, "version", report->run.version);
    wm_json_figures(root, WM_REPORT_RUN, report, "tool.");
}

static void put_recording(const struct wm_json_node *root)
{
    const struct wm_result *result = &root->view->report->result;

    if (!result->recording_trouble[0] && result->lost_ticks == 0)
        return;
    struct wm_json_node node = wm_json_object(root, "recording");
    wm_json_text(&node, "trouble", result->recording_trouble);
    wm_json_put(&node, "lost_ticks", json_integer((json_int_t)result->lost_ticks));
}

static struct wm_units chosen_units(const struct wm_units *units)
{
    return (struct wm_units) {
        .ram = units->ram ? units->ram : wm_unit_plain(WM_UNIT_BYTES),
        .gpu_ram = units->gpu_ram ? units->gpu_ram : wm_unit_plain(WM_UNIT_BYTES),
        .time = units->time ? units->time : wm_unit_plain(WM_UNIT_SECONDS),
        .tariff = units->tariff,
    };
}

json_t *wm_view_json_usage(const struct wm_report *report, const struct wm_units *units)
{
    struct wm_units chosen = chosen_units(units);
    struct wm_json_view view = { .report = report, .units = &chosen, .why = json_object() };
    struct wm_json_node root = { .view = &view, .json = json_object() };

    put_usage(&root);
    json_decref(view.why);
    return wm_json_end(&root);
}

json_t *wm_view_json(const struct wm_report *report, const struct wm_units *units)
{
    struct wm_units chosen = chosen_units(units);
    struct wm_json_view view = { .report = report, .units = &chosen, .why = json_object() };
    struct wm_json_node root = { .view = &view, .json = json_object() };

    wm_json_put(&root, "command", wm_json_command(&report->run));
    put_exit(&root);
    put_usage(&root);
    wm_json_figures(&root, WM_REPORT_RUN, report, "context_switches.");
    wm_json_figures(&root, WM_REPORT_RUN, report, "page_faults.");
    wm_json_figures(&root, WM_REPORT_RUN, report, "io.");
    wm_json_figures(&root, WM_REPORT_RUN, report, "events.");
    wm_json_energy(&root);
    put_gpus(&root);
    wm_json_figures(&root, WM_REPORT_RUN, report, "temperature.");
    put_processes(&root);
    wm_json_regions(&root);
    put_host(&root);
    put_start(&root);
    put_pairs(&root, "notes", report->run.notes, report->run.note_count);
    put_pairs(&root, "environment", report->run.environment, report->run.environment_count);
    put_sources(&root);

    /* Filled in to its end by what comes before and after it. */
    wm_json_put(&root, "why", json_incref(view.why));
    wm_json_remarks(&root, report);
    put_tool(&root);
    put_recording(&root);
    wm_json_figures(&root, WM_REPORT_RUN, report, ""); /* what has no section above */

    json_decref(view.why);
    return wm_json_end(&root);
}
