/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_json.c - a report for programs, described in docs/report.md.
 *
 * The first objects have gpu_tracker's structure to the letter, so what reads
 * its reports reads ours. What is not known is null, and the object "why" holds
 * the reason under the path of the null.
 */
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "view/json/view_json_node.h"

static void put_command(const struct wm_json_node *root)
{
    const struct wm_run *run = &root->view->report->run;
    json_t *words = json_array();

    for (size_t i = 0; i < run->command_count; i++) {
        if (json_array_append_new(words, wm_text_json(run->command[i])) != 0)
            root->view->failed = true;
    }
    wm_json_put(root, "command", words);
}

static void put_exit(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct wm_json_node node = wm_json_object(root, "exit");

    if (result->exit_status >= 0)
        wm_json_put(&node, "status", json_integer(result->exit_status));
    else if (!report->complete)
        wm_json_missing(&node, "status", "the recording ends before the command");
    else if (result->exit_signal > 0)
        wm_json_missing(&node, "status", "a signal ended it");
    else
        wm_json_missing(&node, "status", "its end was not seen");
    wm_json_put(&node, "signal",
                result->exit_signal > 0 ? json_integer(result->exit_signal) : json_null());
}

static void put_rss(const struct wm_json_node *parent, const char *key,
                    const struct wm_rss *rss, const struct wm_unit *unit)
{
    struct wm_json_node node = wm_json_object(parent, key);

    wm_json_bytes(&node, "total_rss", &rss->total, unit);
    wm_json_bytes(&node, "private_rss", &rss->private_, unit);
    wm_json_bytes(&node, "shared_rss", &rss->shared, unit);
}

static void put_max_ram(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_unit *unit = root->view->units->ram;
    struct wm_json_node node = wm_json_object(root, "max_ram");

    wm_json_text(&node, "unit", unit->name);
    wm_json_bytes(&node, "system_capacity", &report->ram_capacity, unit);
    wm_json_bytes(&node, "system", &report->ram_system, unit);
    put_rss(&node, "main", &report->ram_main, unit);
    put_rss(&node, "descendants", &report->ram_descendants, unit);
    put_rss(&node, "combined", &report->ram_combined, unit);
}

static void put_max_gpu_ram(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_unit *unit = root->view->units->gpu_ram;
    struct wm_json_node node = wm_json_object(root, "max_gpu_ram");

    wm_json_text(&node, "unit", unit->name);
    wm_json_bytes(&node, "system_capacity", &report->gpu_ram_capacity, unit);
    wm_json_bytes(&node, "system", &report->gpu_ram_system, unit);
    wm_json_bytes(&node, "main", &report->gpu_ram_main, unit);
    wm_json_bytes(&node, "descendants", &report->gpu_ram_descendants, unit);
    wm_json_bytes(&node, "combined", &report->gpu_ram_combined, unit);
}

static void put_percentages(const struct wm_json_node *parent, const char *key,
                            const struct wm_percentages *percentages)
{
    struct wm_json_node node = wm_json_object(parent, key);

    wm_json_value(&node, "max_sum_percent", &percentages->max_sum);
    wm_json_value(&node, "max_hardware_percent", &percentages->max_hardware);
    wm_json_value(&node, "mean_sum_percent", &percentages->mean_sum);
    wm_json_value(&node, "mean_hardware_percent", &percentages->mean_hardware);
}

static void put_cpu_utilization(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_run *run = &report->run;
    struct wm_json_node node = wm_json_object(root, "cpu_utilization");

    wm_json_put(&node, "system_core_count", json_integer(run->core_count));
    wm_json_put(
        &node, "n_expected_cores",
        wm_json_number(run->expected_cores > 0 ? run->expected_cores : run->core_count));
    put_percentages(&node, "system", &report->cpu_system);
    put_percentages(&node, "main", &report->cpu_main);
    put_percentages(&node, "descendants", &report->cpu_descendants);
    put_percentages(&node, "combined", &report->cpu_combined);
    wm_json_whole(&node, "main_n_threads", &report->main_threads);
    wm_json_whole(&node, "descendants_n_threads", &report->descendants_threads);
    wm_json_whole(&node, "combined_n_threads", &report->combined_threads);
}

static void put_gpu_utilization(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "gpu_utilization");

    wm_json_put(&node, "system_gpu_count", json_integer(report->run.gpu_count));
    wm_json_put(&node, "n_expected_gpus", json_integer(report->run.expected_gpu_count));
    put_percentages(&node, "gpu_percentages", &report->gpu_percentages);
}

static void put_compute_time(const struct wm_json_node *root)
{
    const struct wm_unit *unit = root->view->units->time;
    struct wm_json_node node = wm_json_object(root, "compute_time");
    struct wm_value time = root->view->report->compute_time;

    time.number /= unit->size;
    wm_json_text(&node, "unit", unit->name);
    wm_json_value(&node, "time", &time);
}

static void put_cpu_time(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "cpu_time");

    wm_json_text(&node, "unit", "seconds");
    wm_json_value(&node, "total", &report->cpu_total);
    wm_json_value(&node, "main", &report->cpu_main_time);
    wm_json_value(&node, "descendants", &report->cpu_descendants_time);
    wm_json_text(&node, "method", report->cpu_method);
}

static void put_gpu_memory(const struct wm_json_node *parent,
                           const struct wm_gpu_usage *gpu)
{
    struct wm_json_node node = wm_json_object(parent, "memory");

    wm_json_text(&node, "unit", "bytes");
    wm_json_whole(&node, "mean", &gpu->memory.mean);
    wm_json_whole(&node, "max", &gpu->memory.max);
    wm_json_whole(&node, "capacity", &gpu->memory_capacity);
    wm_json_whole(&node, "tree_max", &gpu->tree_memory_max);
}

static void put_gpus(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node gpus = wm_json_node(root, "gpus", json_array());

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *usage = &report->gpus[i];
        struct wm_json_node gpu = wm_json_append(&gpus, i);
        wm_json_gpu_identity(&gpu, usage);
        wm_json_spread(&gpu, "power", "watts", &usage->power);
        wm_json_spread(&gpu, "utilization", "ratio", &usage->utilization);
        put_gpu_memory(&gpu, usage);
        wm_json_spread(&gpu, "temperature", "celsius", &usage->temperature);
    }
}

static void put_temperature(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    struct wm_json_node node = wm_json_object(root, "temperature");

    wm_json_text(&node, "unit", "celsius");
    struct wm_json_node cpu = wm_json_object(&node, "cpu");
    wm_json_value(&cpu, "mean", &report->cpu_temperature.mean);
    wm_json_value(&cpu, "max", &report->cpu_temperature.max);
}

static void put_processes(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct wm_json_node node = wm_json_object(root, "processes");

    if (report->complete)
        wm_json_put(&node, "seen", json_integer((json_int_t)result->processes_seen));
    else
        wm_json_missing(&node, "seen", "the recording ends without a result");
    wm_json_whole(&node, "max_at_once", &report->max_processes);

    struct wm_json_node peaks = wm_json_node(&node, "peaks", json_array());
    for (size_t i = 0; i < result->process_count; i++) {
        const struct wm_process_peak *process = &result->processes[i];
        struct wm_json_node peak = wm_json_append(&peaks, i);
        wm_json_put(&peak, "pid", json_integer(process->pid));
        wm_json_put(&peak, "parent", json_integer(process->parent));
        wm_json_text(&peak, "name", process->name);
        wm_json_put(&peak, "cpu_seconds", json_real(process->cpu_seconds));
        wm_json_value(&peak, "cpu_energy", &report->process_energies[i]);
        wm_json_put(&peak, "max_memory", wm_json_number(process->max_memory_bytes));
        if (process->max_private_bytes >= 0)
            wm_json_put(&peak, "max_private_memory",
                        wm_json_number(process->max_private_bytes));
        else
            wm_json_missing(&peak, "max_private_memory", "never read for this process");
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
    }
}

static void put_remarks(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    json_t *remarks = json_array();

    for (size_t i = 0; i < report->remark_count; i++) {
        if (json_array_append_new(remarks, wm_text_json(report->remarks[i])) != 0)
            root->view->failed = true;
    }
    wm_json_put(root, "remarks", remarks);
}

static void put_tool(const struct wm_json_node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct wm_json_node node = wm_json_object(root, "tool");

    wm_json_text(&node, "version", report->run.version);
    wm_json_put(&node, "interval", json_real((double)report->run.interval_ns / 1e9));
    wm_json_put(&node, "ticks", json_integer((json_int_t)result->ticks));
    const char *why = !report->complete              ? "the recording ends without a result"
                      : result->tool_cpu_seconds < 0 ? "the recording does not tell"
                                                     : NULL;
    if (why) {
        static const char *const unknown[] = { "late_ticks", "missed_ticks", "cpu_seconds",
                                               "max_rss" };
        for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
            wm_json_missing(&node, unknown[i], why);
        return;
    }
    wm_json_put(&node, "late_ticks", json_integer((json_int_t)result->late_ticks));
    wm_json_put(&node, "missed_ticks", json_integer((json_int_t)result->missed_ticks));
    wm_json_put(&node, "cpu_seconds", json_real(result->tool_cpu_seconds));
    if (result->tool_max_rss_bytes >= 0)
        wm_json_put(&node, "max_rss", wm_json_number(result->tool_max_rss_bytes));
    else
        wm_json_missing(&node, "max_rss", "it is not told apart from the program's own");
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

json_t *wm_view_json(const struct wm_report *report, const struct wm_units *units)
{
    struct wm_units chosen = {
        .ram = units->ram ? units->ram : wm_unit_bytes(),
        .gpu_ram = units->gpu_ram ? units->gpu_ram : wm_unit_bytes(),
        .time = units->time ? units->time : wm_unit_seconds(),
        .tariff = units->tariff,
    };
    struct wm_json_view view = { .report = report, .units = &chosen, .why = json_object() };
    struct wm_json_node root = { .view = &view, .json = json_object() };

    put_command(&root);
    put_exit(&root);
    put_max_ram(&root);
    put_max_gpu_ram(&root);
    put_cpu_utilization(&root);
    put_gpu_utilization(&root);
    put_compute_time(&root);
    put_cpu_time(&root);
    wm_json_energy(&root);
    put_gpus(&root);
    put_temperature(&root);
    put_processes(&root);
    wm_json_regions(&root);
    put_host(&root);
    put_start(&root);
    put_pairs(&root, "notes", report->run.notes, report->run.note_count);
    put_pairs(&root, "environment", report->run.environment, report->run.environment_count);
    put_sources(&root);

    /* Filled in to its end by what comes before and after it. */
    wm_json_put(&root, "why", json_incref(view.why));
    put_remarks(&root);
    put_tool(&root);
    put_recording(&root);

    json_decref(view.why);
    if (view.failed || !root.json) {
        json_decref(root.json);
        return NULL;
    }
    return root.json;
}
