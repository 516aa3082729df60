/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_accessors.c - what a report says, one figure or fact at a time. */
#include <math.h>
#include <string.h>

#include "analyze/analyze_figures.h"
#include "wattmeter/analysis.h"

size_t wm_report_count(const struct wm_report *report, enum wm_report_kind kind)
{
    switch (kind) {
    case WM_REPORT_RUN:
        return 1;
    case WM_REPORT_REGION:
        return report->regions.name_count;
    case WM_REPORT_PATH:
        return report->regions.path_count;
    case WM_REPORT_REST:
        return report->regions.path_count > 0;
    case WM_REPORT_GPU:
        return report->gpu_count;
    case WM_REPORT_DEVICE:
        return report->device_count;
    }
    return 0;
}

/* What there is at that place; NULL where there is nothing. */
static const void *item_at(const struct wm_report *report, enum wm_report_kind kind,
                           size_t index)
{
    if (index >= wm_report_count(report, kind))
        return NULL;
    switch (kind) {
    case WM_REPORT_RUN:
        return report;
    case WM_REPORT_REGION:
        return &report->regions.names[index];
    case WM_REPORT_PATH:
        return &report->regions.paths[index];
    case WM_REPORT_REST:
        return &report->regions.rest;
    case WM_REPORT_GPU:
        return &report->gpus[index];
    case WM_REPORT_DEVICE:
        return &report->devices[index];
    }
    return NULL;
}

static bool is_region(enum wm_report_kind kind)
{
    return kind == WM_REPORT_REGION || kind == WM_REPORT_PATH;
}

static bool is_called(enum wm_report_kind kind, const void *item, const char *name)
{
    const struct wm_gpu_usage *gpu = item;

    if (is_region(kind))
        return strcmp(((const struct wm_region_usage *)item)->name, name) == 0;
    if (kind == WM_REPORT_DEVICE)
        return strcmp(((const struct wm_device_energy *)item)->name, name) == 0;
    return kind == WM_REPORT_GPU &&
           ((gpu->uuid && strcmp(gpu->uuid, name) == 0) || strcmp(gpu->label, name) == 0);
}

int wm_report_find(const struct wm_report *report, enum wm_report_kind kind,
                   const char *name, size_t *ret_index)
{
    const void *item;

    for (size_t i = 0; (item = item_at(report, kind, i)) != NULL; i++) {
        if (is_called(kind, item, name)) {
            *ret_index = i;
            return WM_OK;
        }
    }
    return WM_ENOENT;
}

/* What holds the figures of a part; NULL where there is no such part. */
static const void *find_part(const struct wm_report *report,
                             const struct wm_report_part *part)
{
    const void *item = item_at(report, part->kind, part->index);
    const struct wm_region_usage *region = item;

    if (!item || !is_region(part->kind))
        return item;
    return part->share == WM_REPORT_EXCLUSIVE ? &region->exclusive : &region->inclusive;
}

static const char *unit_name(enum wm_figure_unit unit)
{
    static const char *const names[] = {
        [WM_UNIT_SECONDS] = "s",   [WM_UNIT_TIME] = "s",
        [WM_UNIT_JOULES] = "J",    [WM_UNIT_WATTS] = "W",
        [WM_UNIT_BYTES] = "B",     [WM_UNIT_RAM] = "B",
        [WM_UNIT_GPU_RAM] = "B",   [WM_UNIT_PERCENT] = "percent",
        [WM_UNIT_RATIO] = "ratio", [WM_UNIT_CELSIUS] = "celsius",
        [WM_UNIT_COUNT] = "count",
    };

    return names[unit];
}

static void put_value(const struct wm_value *value, struct wm_report_figure *figure)
{
    figure->why = value->why;
    if (!value->known) {
        figure->why = value->why ? value->why : "unknown";
        return;
    }
    if (!isfinite(value->number)) {
        figure->why = "it is beyond what a number can hold";
        return;
    }
    figure->state = value->why ? WM_REPORT_AT_LEAST : WM_REPORT_KNOWN;
    figure->value = value->number;
}

/* Nothing that is measured here is below 0, whatever its uncertainty. */
static void put_range(const struct wm_value *uncertainty, struct wm_report_figure *figure)
{
    double off = figure->value * uncertainty->number;

    if (!isfinite(off))
        return;
    figure->has_range = true;
    figure->low = off < figure->value ? figure->value - off : 0;
    figure->high = figure->value + off;
}

static struct wm_report_figure make_figure(const struct wm_figure_row *row,
                                           enum wm_report_kind kind,
                                           const struct wm_report *report, const void *of)
{
    const struct wm_found found = wm_figure_of(row, kind, report, of);
    struct wm_report_figure figure = {
        .key = wm_figure_key(row),
        .path = wm_figure_place(row, kind)->path,
        .unit = unit_name(row->unit),
        .origin = found.origin,
    };

    put_value(&found.value, &figure);
    if (found.value.known && found.uncertainty.known)
        put_range(&found.uncertainty, &figure);
    if (found.value.known && found.low.known && found.high.known) {
        figure.has_range = true;
        figure.low = found.low.number;
        figure.high = found.high.number;
    }
    return figure;
}

/* A figure of a metric that is recorded on demand, by its key or, where that is NULL, by
 * its place. */
static int find_more(const struct wm_report_part *part, const struct wm_gpu_usage *gpu,
                     const char *key, size_t index, struct wm_report_figure *ret_figure)
{
    for (size_t i = 0; part->kind == WM_REPORT_GPU && gpu && i < gpu->more_count; i++) {
        const struct wm_gpu_figure *more = &gpu->more[i];
        if (key ? strcmp(more->key, key) != 0 : i != index)
            continue;
        *ret_figure = (struct wm_report_figure) {
            .key = more->key, .path = more->path, .unit = more->unit, .origin = gpu->origin
        };
        put_value(&more->value, ret_figure);
        return WM_OK;
    }
    return WM_ENOENT;
}

static const struct wm_report_part whole = { .kind = WM_REPORT_RUN };

int wm_report_figure(const struct wm_report *report, const struct wm_report_part *part,
                     const char *key, struct wm_report_figure *ret_figure)
{
    const struct wm_figure_row *row = wm_figure_find(key);

    if (!part)
        part = &whole;
    const void *of = find_part(report, part);
    if (!of || !row || !wm_figure_place(row, part->kind))
        return find_more(part, of, key, 0, ret_figure);
    *ret_figure = make_figure(row, part->kind, report, of);
    return WM_OK;
}

int wm_report_figure_at(const struct wm_report *report, const struct wm_report_part *part,
                        size_t index, struct wm_report_figure *ret_figure)
{
    const struct wm_figure_row *row;

    if (!part)
        part = &whole;
    const void *of = find_part(report, part);
    for (size_t i = 0; of && (row = wm_figure_row(i)) != NULL; i++) {
        if (!wm_figure_place(row, part->kind) || index-- > 0)
            continue;
        *ret_figure = make_figure(row, part->kind, report, of);
        return WM_OK;
    }
    return find_more(part, of, NULL, index, ret_figure);
}

static const char *text_or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

void wm_report_run(const struct wm_report *report, struct wm_report_run *ret_run)
{
    const struct wm_run *run = &report->run;
    const struct wm_result *result = &report->result;

    *ret_run = (struct wm_report_run) {
        .id = run->id,
        .mode = run->mode,
        .version = run->version,
        .host = run->host,
        .cpu_model = run->cpu_model,
        .kernel = run->kernel,
        .boot_id = run->boot_id,
        .cpu_method = text_or_null(report->cpu_method),
        .trouble = text_or_null(result->recording_trouble),
        .start_unix_ns = report->start_unix_ns,
        .interval_ns = run->interval_ns,
        .is_complete = report->complete,
        .stray_stops = report->usage.stray,
    };
    for (size_t i = 0; i < report->regions.name_count; i++)
        ret_run->unfinished_starts += report->regions.names[i].unfinished;
    if (result->exit_signal > 0) {
        ret_run->end = WM_REPORT_KILLED;
        ret_run->signal_number = result->exit_signal;
    } else if (result->exit_status.known) {
        ret_run->end = WM_REPORT_EXITED;
        ret_run->exit_status = (int)result->exit_status.number;
    }
}

/* A note on the figures, and then those that are facts. */
static const char *note_at(const struct wm_report *report, size_t index)
{
    if (index < report->remark_count)
        return report->remarks[index];
    index -= report->remark_count;
    return index < report->fact_count ? report->facts[index] : NULL;
}

static bool is_of_energy(const struct wm_report *report, const char *note)
{
    for (size_t i = 0; i < report->energy_note_count; i++) {
        if (report->energy_notes[i] == note)
            return true;
    }
    return false;
}

static const char *other_note_at(const struct wm_report *report, size_t index)
{
    const char *note;

    for (size_t i = 0; (note = note_at(report, i)) != NULL; i++) {
        if (!is_of_energy(report, note) && index-- == 0)
            return note;
    }
    return NULL;
}

static const char *file_note_at(const struct wm_report *report, size_t index)
{
    return index < report->remark_count - report->file_remarks
               ? report->remarks[report->file_remarks + index]
               : NULL;
}

static const char *pair_at(const struct wm_pair *pairs, size_t count, size_t index,
                           const char **ret_value)
{
    if (index >= count)
        return NULL;
    *ret_value = pairs[index].value ? pairs[index].value : "";
    return pairs[index].key ? pairs[index].key : "";
}

static const char *source_at(const struct wm_report *report, bool is_available,
                             size_t index, const char **ret_detail)
{
    for (size_t i = 0; i < report->run.source_count; i++) {
        const struct wm_source_status *source = &report->run.sources[i];
        if (source->available != is_available || index-- > 0)
            continue;
        *ret_detail = source->detail;
        return source->name ? source->name : "";
    }
    return NULL;
}

const char *wm_report_text(const struct wm_report *report, enum wm_report_list list,
                           size_t index, const char **ret_value)
{
    const struct wm_run *run = &report->run;
    const char *unused;

    if (!ret_value)
        ret_value = &unused;
    switch (list) {
    case WM_REPORT_WORDS:
        return index < run->command_count ? run->command[index] : NULL;
    case WM_REPORT_TAGS:
        return pair_at(run->notes, run->note_count, index, ret_value);
    case WM_REPORT_VARIABLES:
        return pair_at(run->environment, run->environment_count, index, ret_value);
    case WM_REPORT_NOTES:
        return note_at(report, index);
    case WM_REPORT_OTHER_NOTES:
        return other_note_at(report, index);
    case WM_REPORT_FILE_NOTES:
        return file_note_at(report, index);
    case WM_REPORT_SOURCES:
    case WM_REPORT_ABSENT_SOURCES:
        return source_at(report, list == WM_REPORT_SOURCES, index, ret_value);
    }
    return NULL;
}

/* NULL where there is no such region or path. */
static const struct wm_region_usage *find_region(const struct wm_report *report,
                                                 enum wm_report_kind kind, size_t index)
{
    return is_region(kind) ? item_at(report, kind, index) : NULL;
}

int wm_report_region(const struct wm_report *report, enum wm_report_kind kind, size_t index,
                     struct wm_report_region *ret_region)
{
    const struct wm_region_usage *usage = find_region(report, kind, index);
    bool is_path = kind == WM_REPORT_PATH;

    if (!usage)
        return WM_ENOENT;
    *ret_region = (struct wm_report_region) {
        .name = usage->name,
        .parent = is_path ? usage->parent : WM_REPORT_NO_PARENT,
        .depth = usage->depth,
        .children = usage->children,
        .by_itself = usage->is_free,
        .is_short = usage->is_short,
        .calls = usage->calls,
        .unfinished = usage->unfinished,
        .timepoints = usage->timepoints,
        .calls_with_timepoints = usage->nonempty_calls,
        .clocked_calls = usage->clocked_calls,
        .total_s = usage->time.of[WM_BLOCK_TOTAL].number,
        .min_s = usage->time.of[WM_BLOCK_MIN].number,
        .max_s = usage->time.of[WM_BLOCK_MAX].number,
        .mean_s = usage->time.of[WM_BLOCK_MEAN].number,
        .std_s = usage->time.of[WM_BLOCK_STD].number,
    };
    return WM_OK;
}

int wm_report_bucket(const struct wm_report *report, enum wm_report_kind kind,
                     size_t region, size_t index, struct wm_report_bucket *ret_bucket)
{
    const struct wm_region_usage *usage = find_region(report, kind, region);

    for (int i = 0; usage && i < WM_BLOCK_BUCKETS; i++) {
        if (usage->histogram[i] == 0 || index-- > 0)
            continue;
        ret_bucket->up_to_s = i + 1 < WM_BLOCK_BUCKETS ? ldexp(1e-6, i) : INFINITY;
        ret_bucket->calls = usage->histogram[i];
        return WM_OK;
    }
    return WM_ENOENT;
}

int wm_report_usage(const struct wm_report *report, enum wm_report_kind kind, size_t region,
                    size_t index, struct wm_report_usage *ret_usage)
{
    const struct wm_region_usage *usage = find_region(report, kind, region);

    for (size_t i = 0; usage && i < WM_MEASUREMENT_COUNT; i++) {
        const struct wm_block_figures *stats = &usage->usage[i];
        if (stats->count == 0 || wm_report_lacks(report, i) || index-- > 0)
            continue;
        *ret_usage = (struct wm_report_usage) {
            .name = wm_measurement_name((enum wm_measurement)i),
            .count = stats->count,
            .min = stats->of[WM_BLOCK_MIN].number,
            .max = stats->of[WM_BLOCK_MAX].number,
            .mean = stats->of[WM_BLOCK_MEAN].number,
            .std = stats->of[WM_BLOCK_STD].number,
        };
        return WM_OK;
    }
    return WM_ENOENT;
}

static struct wm_report_device gpu_facts(const struct wm_gpu_usage *gpu)
{
    return (struct wm_report_device) {
        .name = gpu->label,
        .model = gpu->name,
        .uuid = gpu->uuid,
        .method = text_or_null(gpu->figure.method),
        .sensor = text_or_null(gpu->figure.sensor),
        .period_s = gpu->figure.period_s,
        .has_driver_number = gpu->has_index,
        .driver_number = gpu->index,
        .kind = WM_DEVICE_GPU,
        .origin = gpu->origin,
    };
}

static struct wm_report_device device_facts(const struct wm_device_energy *device)
{
    return (struct wm_report_device) {
        .name = device->name,
        .model = device->model,
        .source = device->source,
        .method = text_or_null(device->figure.method),
        .sensor = text_or_null(device->figure.sensor),
        .period_s = device->figure.period_s,
        .kind = device->kind,
        .origin = device->origin,
    };
}

int wm_report_device(const struct wm_report *report, enum wm_report_kind kind, size_t index,
                     struct wm_report_device *ret_device)
{
    bool is_gpu = kind == WM_REPORT_GPU;

    if ((!is_gpu && kind != WM_REPORT_DEVICE) || index >= wm_report_count(report, kind))
        return WM_ENOENT;
    *ret_device =
        is_gpu ? gpu_facts(&report->gpus[index]) : device_facts(&report->devices[index]);
    return WM_OK;
}

static struct wm_report_figure process_figure(const char *key, const char *unit,
                                              struct wm_value value)
{
    struct wm_report_figure figure = { .key = key, .path = key, .unit = unit };

    put_value(&value, &figure);
    return figure;
}

static struct wm_value read_value(const struct wm_known *read)
{
    return read->known ? wm_value_known(read->number)
                       : wm_value_missing("never read for this process");
}

int wm_report_process(const struct wm_report *report, size_t index,
                      struct wm_report_process *ret_process)
{
    if (index >= report->result.process_count)
        return WM_ENOENT;
    const struct wm_process_peak *peak = &report->result.processes[index];
    *ret_process = (struct wm_report_process) {
        .pid = peak->pid,
        .parent = peak->parent,
        .name = peak->name,
        .max_threads = peak->max_threads,
        .cpu_time = process_figure("cpu_seconds", "s", read_value(&peak->cpu_seconds)),
        .cpu_energy = process_figure("cpu_energy", "J", report->process_energies[index]),
        .max_memory =
            process_figure("max_memory", "B", read_value(&peak->max_memory_bytes)),
        .max_private_memory =
            process_figure("max_private_memory", "B", read_value(&peak->max_private_bytes)),
    };
    ret_process->cpu_energy.origin = report->cpu_energy.origin;
    return WM_OK;
}
