/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_json.c - a report for programs, described in docs/report.md.
 *
 * The first objects have gpu_tracker's structure to the letter, so what reads
 * its reports reads ours. What is not known is null, and the object "why" holds
 * the reason under the path of the null.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "record/record_text.h"
#include "view/view.h"

/* Above it a double does not tell one whole number from the next. */
#define MOST_WHOLE 9007199254740992.0

struct json_view {
    const struct wm_report *report;
    const struct wm_units *units;
    json_t *why;
    bool failed; /* out of memory: whatever has been built is thrown away */
};

/* An object or array of the report, and its path. */
struct node {
    struct json_view *view;
    json_t *json;
    char path[96];
};

/* Takes `value` over; false when it could not, and it is gone. */
static bool put(const struct node *node, const char *key, json_t *value)
{
    if (json_object_set_new(node->json, key, value) == 0)
        return true;
    node->view->failed = true;
    return false;
}

static void put_text(const struct node *node, const char *key, const char *text)
{
    put(node, key, wm_text_json(text));
}

static struct node put_node(const struct node *parent, const char *key, json_t *json)
{
    struct node node = { .view = parent->view };

    snprintf(node.path, sizeof(node.path), "%.60s%.30s.", parent->path, key);
    if (put(parent, key, json))
        node.json = json;
    return node;
}

static struct node put_object(const struct node *parent, const char *key)
{
    return put_node(parent, key, json_object());
}

static struct node append_object(const struct node *array, size_t index)
{
    struct node node = { .view = array->view };
    json_t *json = json_object();

    snprintf(node.path, sizeof(node.path), "%.60s%zu.", array->path, index);
    if (json_array_append_new(array->json, json) == 0)
        node.json = json;
    else
        array->view->failed = true;
    return node;
}

static void put_missing(const struct node *node, const char *key, const char *why)
{
    char path[160];

    put(node, key, json_null());
    snprintf(path, sizeof(path), "%s%s", node->path, key);
    if (json_object_set_new(node->view->why, path, wm_text_json(why ? why : "unknown")) !=
        0)
        node->view->failed = true;
}

/* Whole numbers without a fraction; nothing is ever NaN in JSON. */
static json_t *number_json(double value)
{
    if (value == floor(value) && fabs(value) <= MOST_WHOLE)
        return json_integer((json_int_t)value);
    return json_real(value);
}

/* A number of something continuous. */
static void put_value(const struct node *node, const char *key,
                      const struct wm_value *value)
{
    if (!value->known || !isfinite(value->number))
        put_missing(node, key, value->why);
    else
        put(node, key, json_real(value->number));
}

/* Bytes, or a count. */
static void put_whole(const struct node *node, const char *key,
                      const struct wm_value *value)
{
    if (!value->known || !isfinite(value->number))
        put_missing(node, key, value->why);
    else
        put(node, key, number_json(value->number));
}

static void put_bytes(const struct node *node, const char *key,
                      const struct wm_value *value, const struct wm_unit *unit)
{
    struct wm_value scaled = *value;

    if (unit == wm_unit_bytes()) {
        put_whole(node, key, value);
        return;
    }
    scaled.number /= unit->size;
    put_value(node, key, &scaled);
}

static void put_command(const struct node *root)
{
    const struct wm_run *run = &root->view->report->run;
    json_t *words = json_array();

    for (size_t i = 0; i < run->command_count; i++) {
        if (json_array_append_new(words, wm_text_json(run->command[i])) != 0)
            root->view->failed = true;
    }
    put(root, "command", words);
}

static void put_exit(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct node node = put_object(root, "exit");

    if (result->exit_status >= 0)
        put(&node, "status", json_integer(result->exit_status));
    else if (!report->complete)
        put_missing(&node, "status", "the recording ends before the command");
    else if (result->exit_signal > 0)
        put_missing(&node, "status", "a signal ended it");
    else
        put_missing(&node, "status", "its end was not seen");
    put(&node, "signal",
        result->exit_signal > 0 ? json_integer(result->exit_signal) : json_null());
}

static void put_rss(const struct node *parent, const char *key, const struct wm_rss *rss,
                    const struct wm_unit *unit)
{
    struct node node = put_object(parent, key);

    put_bytes(&node, "total_rss", &rss->total, unit);
    put_bytes(&node, "private_rss", &rss->private_, unit);
    put_bytes(&node, "shared_rss", &rss->shared, unit);
}

static void put_max_ram(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_unit *unit = root->view->units->ram;
    struct node node = put_object(root, "max_ram");

    put_text(&node, "unit", unit->name);
    put_bytes(&node, "system_capacity", &report->ram_capacity, unit);
    put_bytes(&node, "system", &report->ram_system, unit);
    put_rss(&node, "main", &report->ram_main, unit);
    put_rss(&node, "descendants", &report->ram_descendants, unit);
    put_rss(&node, "combined", &report->ram_combined, unit);
}

static void put_max_gpu_ram(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_unit *unit = root->view->units->gpu_ram;
    struct node node = put_object(root, "max_gpu_ram");

    put_text(&node, "unit", unit->name);
    put_bytes(&node, "system_capacity", &report->gpu_ram_capacity, unit);
    put_bytes(&node, "system", &report->gpu_ram_system, unit);
    put_bytes(&node, "main", &report->gpu_ram_main, unit);
    put_bytes(&node, "descendants", &report->gpu_ram_descendants, unit);
    put_bytes(&node, "combined", &report->gpu_ram_combined, unit);
}

static void put_percentages(const struct node *parent, const char *key,
                            const struct wm_percentages *percentages)
{
    struct node node = put_object(parent, key);

    put_value(&node, "max_sum_percent", &percentages->max_sum);
    put_value(&node, "max_hardware_percent", &percentages->max_hardware);
    put_value(&node, "mean_sum_percent", &percentages->mean_sum);
    put_value(&node, "mean_hardware_percent", &percentages->mean_hardware);
}

static void put_cpu_utilization(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_run *run = &report->run;
    struct node node = put_object(root, "cpu_utilization");

    put(&node, "system_core_count", json_integer(run->core_count));
    put(&node, "n_expected_cores",
        number_json(run->expected_cores > 0 ? run->expected_cores : run->core_count));
    put_percentages(&node, "system", &report->cpu_system);
    put_percentages(&node, "main", &report->cpu_main);
    put_percentages(&node, "descendants", &report->cpu_descendants);
    put_percentages(&node, "combined", &report->cpu_combined);
    put_whole(&node, "main_n_threads", &report->main_threads);
    put_whole(&node, "descendants_n_threads", &report->descendants_threads);
    put_whole(&node, "combined_n_threads", &report->combined_threads);
}

static void put_gpu_utilization(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    struct node node = put_object(root, "gpu_utilization");

    put(&node, "system_gpu_count", json_integer(report->run.gpu_count));
    put(&node, "n_expected_gpus", json_integer(report->run.expected_gpu_count));
    put_percentages(&node, "gpu_percentages", &report->gpu_percentages);
}

static void put_compute_time(const struct node *root)
{
    const struct wm_unit *unit = root->view->units->time;
    struct node node = put_object(root, "compute_time");
    struct wm_value time = root->view->report->compute_time;

    time.number /= unit->size;
    put_text(&node, "unit", unit->name);
    put_value(&node, "time", &time);
}

static void put_cpu_time(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    struct node node = put_object(root, "cpu_time");

    put_text(&node, "unit", "seconds");
    put_value(&node, "total", &report->cpu_total);
    put_value(&node, "main", &report->cpu_main_time);
    put_value(&node, "descendants", &report->cpu_descendants_time);
    put_text(&node, "method", report->cpu_method);
}

/* Beside each figure that was not measured. */
static void put_origin(const struct node *node, enum wm_origin origin)
{
    if (origin == WM_MEASURED)
        return;
    const char *word = origin == WM_SIMULATED ? "simulated" : "estimated";
    put_text(node, "origin", word);
    put(node, word, json_true());
}

static void put_gpu_identity(const struct node *node, const struct wm_gpu_usage *gpu)
{
    if (gpu->index >= 0)
        put(node, "index", json_integer(gpu->index));
    else
        put_missing(node, "index", "its source does not number it");
    put_text(node, "uuid", gpu->uuid);
    put_text(node, "name", gpu->name);
    put_origin(node, gpu->origin);
}

static void put_energy(const struct node *root)
{
    static const char no_cpu[] = "no source of CPU energy is read";
    const struct wm_report *report = root->view->report;
    struct node node = put_object(root, "energy");

    put_text(&node, "unit", "joules");
    put_value(&node, "total", &report->gpu_energy);
    put_origin(&node, report->gpu_energy_origin);
    put_missing(&node, "cpu", no_cpu);

    struct node gpus = put_node(&node, "gpus", json_array());
    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *usage = &report->gpus[i];
        struct node gpu = append_object(&gpus, i);
        put_gpu_identity(&gpu, usage);
        put_value(&gpu, "energy", &usage->energy);
        put_text(&gpu, "method", usage->energy_method[0] ? usage->energy_method : NULL);
        if (usage->energy_check.known)
            put_value(&gpu, "check", &usage->energy_check);
    }

    struct node why = put_object(&node, "why");
    put_text(&why, "cpu", no_cpu);
    if (!report->gpu_energy.known)
        put_text(&why, "total", report->gpu_energy.why);
}

static void put_spread(const struct node *parent, const char *key, const char *unit,
                       const struct wm_spread *spread)
{
    struct node node = put_object(parent, key);

    put_text(&node, "unit", unit);
    put_value(&node, "mean", &spread->mean);
    put_value(&node, "max", &spread->max);
}

static void put_gpu_memory(const struct node *parent, const struct wm_gpu_usage *gpu)
{
    struct node node = put_object(parent, "memory");

    put_text(&node, "unit", "bytes");
    put_whole(&node, "mean", &gpu->memory.mean);
    put_whole(&node, "max", &gpu->memory.max);
    put_whole(&node, "capacity", &gpu->memory_capacity);
    put_whole(&node, "tree_max", &gpu->tree_memory_max);
}

static void put_gpus(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    struct node gpus = put_node(root, "gpus", json_array());

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *usage = &report->gpus[i];
        struct node gpu = append_object(&gpus, i);
        put_gpu_identity(&gpu, usage);
        put_spread(&gpu, "power", "watts", &usage->power);
        put_spread(&gpu, "utilization", "ratio", &usage->utilization);
        put_gpu_memory(&gpu, usage);
        put_spread(&gpu, "temperature", "celsius", &usage->temperature);
    }
}

static void put_temperature(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    struct node node = put_object(root, "temperature");

    put_text(&node, "unit", "celsius");
    struct node cpu = put_object(&node, "cpu");
    put_value(&cpu, "mean", &report->cpu_temperature.mean);
    put_value(&cpu, "max", &report->cpu_temperature.max);
}

static void put_processes(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct node node = put_object(root, "processes");

    if (report->complete)
        put(&node, "seen", json_integer((json_int_t)result->processes_seen));
    else
        put_missing(&node, "seen", "the recording ends without a result");
    put_whole(&node, "max_at_once", &report->max_processes);

    struct node peaks = put_node(&node, "peaks", json_array());
    for (size_t i = 0; i < result->process_count; i++) {
        const struct wm_process_peak *process = &result->processes[i];
        struct node peak = append_object(&peaks, i);
        put(&peak, "pid", json_integer(process->pid));
        put(&peak, "parent", json_integer(process->parent));
        put_text(&peak, "name", process->name);
        put(&peak, "cpu_seconds", json_real(process->cpu_seconds));
        put(&peak, "max_memory", number_json(process->max_memory_bytes));
        if (process->max_private_bytes >= 0)
            put(&peak, "max_private_memory", number_json(process->max_private_bytes));
        else
            put_missing(&peak, "max_private_memory", "never read for this process");
        put(&peak, "threads", json_integer(process->max_threads));
    }
}

static void put_host(const struct node *root)
{
    const struct wm_run *run = &root->view->report->run;
    struct node node = put_object(root, "host");

    put_text(&node, "name", run->host);
    put_text(&node, "cpu_model", run->cpu_model);
    put_text(&node, "kernel", run->kernel);
    put_text(&node, "boot_id", run->boot_id);
}

static void put_start(const struct node *root)
{
    char text[40];

    wm_clock_rfc3339(root->view->report->start_unix_ns, text, sizeof(text));
    put_text(root, "start", text);
}

static void put_pairs(const struct node *root, const char *key, const struct wm_pair *pairs,
                      size_t count)
{
    struct node node = put_object(root, key);

    for (size_t i = 0; i < count; i++)
        put_text(&node, pairs[i].key ? pairs[i].key : "", pairs[i].value);
}

static void put_sources(const struct node *root)
{
    const struct wm_run *run = &root->view->report->run;
    struct node node = put_object(root, "sources");

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *status = &run->sources[i];
        struct node source = put_object(&node, status->name ? status->name : "");
        put(&source, "available", json_boolean(status->available));
        put_text(&source, status->available ? "detail" : "why", status->detail);
    }
}

static void put_remarks(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    json_t *remarks = json_array();

    for (size_t i = 0; i < report->remark_count; i++) {
        if (json_array_append_new(remarks, wm_text_json(report->remarks[i])) != 0)
            root->view->failed = true;
    }
    put(root, "remarks", remarks);
}

static void put_tool(const struct node *root)
{
    const struct wm_report *report = root->view->report;
    const struct wm_result *result = &report->result;
    struct node node = put_object(root, "tool");

    put_text(&node, "version", report->run.version);
    put(&node, "interval", json_real((double)report->run.interval_ns / 1e9));
    put(&node, "ticks", json_integer((json_int_t)result->ticks));
    if (report->complete) {
        put(&node, "late_ticks", json_integer((json_int_t)result->late_ticks));
        put(&node, "missed_ticks", json_integer((json_int_t)result->missed_ticks));
        put(&node, "cpu_seconds", json_real(result->tool_cpu_seconds));
        if (result->tool_max_rss_bytes >= 0)
            put(&node, "max_rss", number_json(result->tool_max_rss_bytes));
        else
            put_missing(&node, "max_rss", "it is not told apart from the program's own");
        return;
    }
    static const char *const unknown[] = { "late_ticks", "missed_ticks", "cpu_seconds",
                                           "max_rss" };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        put_missing(&node, unknown[i], "the recording ends without a result");
}

static void put_recording(const struct node *root)
{
    const struct wm_result *result = &root->view->report->result;

    if (!result->recording_trouble[0] && result->lost_ticks == 0)
        return;
    struct node node = put_object(root, "recording");
    put_text(&node, "trouble", result->recording_trouble);
    put(&node, "lost_ticks", json_integer((json_int_t)result->lost_ticks));
}

json_t *wm_view_json(const struct wm_report *report, const struct wm_units *units)
{
    struct wm_units chosen = {
        .ram = units->ram ? units->ram : wm_unit_bytes(),
        .gpu_ram = units->gpu_ram ? units->gpu_ram : wm_unit_bytes(),
        .time = units->time ? units->time : wm_unit_seconds(),
    };
    struct json_view view = { .report = report, .units = &chosen, .why = json_object() };
    struct node root = { .view = &view, .json = json_object() };

    put_command(&root);
    put_exit(&root);
    put_max_ram(&root);
    put_max_gpu_ram(&root);
    put_cpu_utilization(&root);
    put_gpu_utilization(&root);
    put_compute_time(&root);
    put_cpu_time(&root);
    put_energy(&root);
    put_gpus(&root);
    put_temperature(&root);
    put_processes(&root);
    put_host(&root);
    put_start(&root);
    put_pairs(&root, "notes", report->run.notes, report->run.note_count);
    put_pairs(&root, "environment", report->run.environment, report->run.environment_count);
    put_sources(&root);

    /* Filled in to its end by what comes before and after it. */
    put(&root, "why", json_incref(view.why));
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
