/* SPDX-License-Identifier: Apache-2.0 */
/* record_run.c - a run and its result, whose members stand in tables, as JSON text, and
 * back. */
#include "record/run/record_run.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "record/run/record_member.h"
#include "record/run/record_metrics.h"

/* Longer ones are cut off. */
enum { NOTE_SIZE = 224 };

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define SOURCE(name) .key = #name, .slot = offsetof(struct wm_source_status, name)

static const struct wm_member source_members[] = {
    { SOURCE(name), .type = WM_MEMBER_STRING },
    { SOURCE(available), .type = WM_MEMBER_BOOL },
    { SOURCE(detail), .type = WM_MEMBER_STRING },
    { SOURCE(denied), .type = WM_MEMBER_STRING, .is_optional = true },
    { SOURCE(remedy), .type = WM_MEMBER_STRING, .is_optional = true },
};

static const struct wm_members sources = { source_members, COUNT(source_members),
                                           sizeof(struct wm_source_status) };

#define BASELINE(name) .key = #name, .slot = offsetof(struct wm_baseline, name)

static const struct wm_member baseline_members[] = {
    { BASELINE(source), .type = WM_MEMBER_STRING },
    { BASELINE(device), .type = WM_MEMBER_STRING },
    { BASELINE(watts), .type = WM_MEMBER_DOUBLE },
    { BASELINE(uncertainty), .type = WM_MEMBER_DOUBLE },
    { BASELINE(busy), .type = WM_MEMBER_DOUBLE },
    { BASELINE(is_refused), .type = WM_MEMBER_BOOL },
};

static const struct wm_members baselines = { baseline_members, COUNT(baseline_members),
                                             sizeof(struct wm_baseline) };

#define RUN(name) .key = #name, .slot = offsetof(struct wm_run, name)

static const struct wm_member run_members[] = {
    { RUN(id), .type = WM_MEMBER_STRING },
    { RUN(version), .type = WM_MEMBER_STRING },
    { RUN(mode), .type = WM_MEMBER_STRING },
    { RUN(host), .type = WM_MEMBER_STRING },
    { RUN(boot_id), .type = WM_MEMBER_STRING },
    { RUN(kernel), .type = WM_MEMBER_STRING },
    { RUN(cpu_model), .type = WM_MEMBER_STRING },
    { RUN(notes), .type = WM_MEMBER_PAIRS, .count = offsetof(struct wm_run, note_count) },
    { RUN(environment), .type = WM_MEMBER_PAIRS,
      .count = offsetof(struct wm_run, environment_count) },
    { RUN(baseline_seconds), .type = WM_MEMBER_DOUBLE },
    { RUN(gpu_remark), .type = WM_MEMBER_STRING },
    { RUN(regions_remark), .type = WM_MEMBER_STRING },
    { RUN(pid), .type = WM_MEMBER_INT },
    { RUN(writer_pid), .type = WM_MEMBER_INT },
    { RUN(writer_start), .type = WM_MEMBER_UINT64 },
    { RUN(anchor_ns), .type = WM_MEMBER_TIME },
    { RUN(anchor_unix_ns), .type = WM_MEMBER_TIME },
    { RUN(interval_ns), .type = WM_MEMBER_TIME },
    { RUN(core_count), .type = WM_MEMBER_INT },
    { RUN(expected_cores), .type = WM_MEMBER_DOUBLE },
    { RUN(gpu_count), .type = WM_MEMBER_INT },
    { RUN(expected_gpu_count), .type = WM_MEMBER_INT },
    { RUN(gpus_unknown), .type = WM_MEMBER_BOOL },
    { RUN(command), .type = WM_MEMBER_STRINGS,
      .count = offsetof(struct wm_run, command_count) },
    { RUN(sources), .type = WM_MEMBER_STRUCTS, .of = &sources,
      .count = offsetof(struct wm_run, source_count) },
    { RUN(baselines), .type = WM_MEMBER_STRUCTS, .of = &baselines,
      .count = offsetof(struct wm_run, baseline_count) },
};

static const struct wm_members runs = { run_members, COUNT(run_members),
                                        sizeof(struct wm_run) };

#define PEAK(name) .key = #name, .slot = offsetof(struct wm_process_peak, name)

static const struct wm_member peak_members[] = {
    { PEAK(pid), .type = WM_MEMBER_INT },
    { PEAK(parent), .type = WM_MEMBER_INT },
    { PEAK(name), .type = WM_MEMBER_TEXT,
      .size = sizeof(((struct wm_process_peak *)0)->name) },
    { PEAK(cpu_seconds), .type = WM_MEMBER_KNOWN },
    { PEAK(max_memory_bytes), .type = WM_MEMBER_KNOWN },
    { PEAK(max_private_bytes), .type = WM_MEMBER_KNOWN },
    { PEAK(max_threads), .type = WM_MEMBER_INT },
};

static const struct wm_members peaks = { peak_members, COUNT(peak_members),
                                         sizeof(struct wm_process_peak) };

#define RESULT(name) .key = #name, .slot = offsetof(struct wm_result, name)
#define MEMORY(name, member)                                                               \
    {                                                                                      \
        .key = name, .slot = offsetof(struct wm_result, member), .type = WM_MEMBER_KNOWN   \
    }
#define MEMORY_PEAK(name)                                                                  \
    MEMORY(#name "_bytes", name.total), MEMORY(#name "_private_bytes", name.private_),     \
        MEMORY(#name "_shared_bytes", name.shared), MEMORY(#name "_low_bytes", name.low),  \
        MEMORY(#name "_high_bytes", name.high)
#define RESULT_TEXT(name)                                                                  \
    RESULT(name), .type = WM_MEMBER_TEXT, .size = sizeof(((struct wm_result *)0)->name)

#define USAGE(name)                                                                        \
    .key = #name, .slot = offsetof(struct wm_result, usage.name), .type = WM_MEMBER_KNOWN
#define USAGE_TEXT(key_, name)                                                             \
    .key = key_, .slot = offsetof(struct wm_result, usage.name), .type = WM_MEMBER_TEXT,   \
    .size = sizeof(((struct wm_result *)0)->usage.name)

static const struct wm_member result_members[] = {
    { RESULT(end_ns), .type = WM_MEMBER_TIME },
    { RESULT(exit_status), .type = WM_MEMBER_KNOWN, .is_whole = true },
    { RESULT(exit_signal), .type = WM_MEMBER_INT },
    { RESULT(is_broken_off), .type = WM_MEMBER_BOOL },
    { RESULT(cpu_total_seconds), .type = WM_MEMBER_KNOWN },
    { RESULT(cpu_main_seconds), .type = WM_MEMBER_KNOWN },
    { RESULT(cpu_descendants_seconds), .type = WM_MEMBER_KNOWN },
    { RESULT_TEXT(cpu_method) },
    { RESULT_TEXT(cpu_note) },
    { USAGE(user_seconds) },
    { USAGE(system_seconds) },
    { USAGE(voluntary_switches), .is_whole = true },
    { USAGE(involuntary_switches), .is_whole = true },
    { USAGE(minor_faults), .is_whole = true },
    { USAGE(major_faults), .is_whole = true },
    { USAGE(read_bytes), .is_whole = true },
    { USAGE(written_bytes), .is_whole = true },
    { USAGE(storage_read_bytes), .is_whole = true },
    { USAGE(storage_written_bytes), .is_whole = true },
    { USAGE_TEXT("usage_note", note) },
    { USAGE_TEXT("io_note", io_note) },
    { RESULT_TEXT(events_note) },
    { RESULT_TEXT(memory_note) },
    { RESULT_TEXT(survivors_note) },
    { RESULT(peak_rss_bytes), .type = WM_MEMBER_KNOWN },
    { RESULT(peak_rss_bound_bytes), .type = WM_MEMBER_KNOWN },
    { RESULT(peak_rss_is_main), .type = WM_MEMBER_BOOL },
    { RESULT(run_seconds), .type = WM_MEMBER_KNOWN },
    { RESULT(run_memory_bytes), .type = WM_MEMBER_KNOWN },
    MEMORY_PEAK(main_peak),
    MEMORY_PEAK(descendants_peak),
    MEMORY_PEAK(tree_peak),
    { RESULT(ticks), .type = WM_MEMBER_UINT64 },
    { RESULT(late_ticks), .type = WM_MEMBER_UINT64 },
    { RESULT(missed_ticks), .type = WM_MEMBER_UINT64 },
    { RESULT(tool_cpu_seconds), .type = WM_MEMBER_KNOWN },
    { RESULT(tool_max_rss_bytes), .type = WM_MEMBER_KNOWN },
    { RESULT_TEXT(recording_trouble) },
    { RESULT(lost_ticks), .type = WM_MEMBER_UINT64 },
    { RESULT(lost_regions), .type = WM_MEMBER_UINT64 },
    { RESULT(stray_regions), .type = WM_MEMBER_UINT64 },
    { RESULT(dropped_regions), .type = WM_MEMBER_UINT64 },
    { RESULT_TEXT(regions_note) },
    { RESULT(processes_seen), .type = WM_MEMBER_UINT64 },
    { RESULT(processes), .type = WM_MEMBER_STRUCTS, .of = &peaks,
      .count = offsetof(struct wm_result, process_count) },
};

static const struct wm_members results = { result_members, COUNT(result_members),
                                           sizeof(struct wm_result) };

#define EVENT(id, name)                                                                    \
    { .key = name,                                                                         \
      .slot = offsetof(struct wm_result, events[WM_EVENT_##id]),                           \
      .type = WM_MEMBER_KNOWN,                                                             \
      .is_whole = true },

static const struct wm_member event_members[] = { WM_EVENT_LIST(EVENT) };

#undef EVENT

static const struct wm_members events = { event_members, COUNT(event_members),
                                          sizeof(struct wm_result) };

const char *wm_event_name(size_t event)
{
    return event_members[event].key;
}

static bool has_events(const struct wm_result *result)
{
    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (result->events[i].known)
            return true;
    }
    return false;
}

void wm_run_release(struct wm_run *run)
{
    wm_members_release(&runs, run);
    memset(run, 0, sizeof(*run));
}

void wm_result_release(struct wm_result *result)
{
    wm_members_release(&results, result);
    wm_metrics_release(&result->metrics);
    memset(result, 0, sizeof(*result));
}

/* Takes `object` over. */
static int print(json_t *object, char **ret_text, struct wm_error *err)
{
    char *text = wm_json_dump(object, JSON_COMPACT);

    if (!text)
        return wm_fail_memory(err, NULL);
    *ret_text = text;
    return WM_OK;
}

int wm_run_to_json(const struct wm_run *run, char **ret_text, struct wm_error *err)
{
    return print(wm_members_json(&runs, run), ret_text, err);
}

int wm_result_to_json(const struct wm_result *result, char **ret_text, struct wm_error *err)
{
    json_t *object = wm_members_json(&results, result);

    if (has_events(result))
        wm_json_set(&object, "events", wm_members_json(&events, result));
    if (result->metrics.count > 0 || result->metrics.note[0])
        wm_json_set(&object, "metrics", wm_metrics_json(&result->metrics));
    return print(object, ret_text, err);
}

bool wm_run_is_of_all(const struct wm_run *run)
{
    return run->mode && strcmp(run->mode, "attach") == 0 && run->pid == 1;
}

bool wm_run_may_have_gpus(const struct wm_run *run)
{
    return run->gpu_count > 0 || run->expected_gpu_count > 0 || run->gpus_unknown;
}

int wm_run_from_json(const char *text, struct wm_run *ret_run, struct wm_error *err)
{
    struct wm_run run = { 0 };
    json_t *object = NULL;

    int status = wm_json_load(text, strlen(text), &object, err);
    if (status < 0)
        return status;
    status = wm_members_read(&runs, object, "run", &run, err);
    json_decref(object);

    if (status < 0)
        wm_run_release(&run);
    else
        *ret_run = run;
    return status;
}

int wm_result_from_json(const char *text, struct wm_result *ret_result,
                        struct wm_error *err)
{
    struct wm_result result = { 0 };
    json_t *object = NULL;

    int status = wm_json_load(text, strlen(text), &object, err);
    if (status < 0)
        return status;
    status = wm_members_read(&results, object, "result", &result, err);
    if (status == WM_OK && json_object_get(object, "events"))
        status = wm_members_read(&events, json_object_get(object, "events"), "events",
                                 &result, err);
    if (status == WM_OK)
        status =
            wm_metrics_from_json(json_object_get(object, "metrics"), &result.metrics, err);
    json_decref(object);

    if (status < 0)
        wm_result_release(&result);
    else
        *ret_result = result;
    return status;
}

int wm_run_copy(const struct wm_run *run, struct wm_run *ret_copy, struct wm_error *err)
{
    struct wm_run copy = { 0 };

    int status = wm_members_copy(&runs, run, &copy, err);
    if (status < 0)
        wm_run_release(&copy);
    else
        *ret_copy = copy;
    return status;
}

/* Few runs have metrics, which are copied through their JSON form. */
static int copy_metrics(const struct wm_metrics *metrics, struct wm_metrics *ret_copy,
                        struct wm_error *err)
{
    if (metrics->count == 0 && !metrics->note[0])
        return WM_OK;
    json_t *object = wm_metrics_json(metrics);
    int status =
        object ? wm_metrics_from_json(object, ret_copy, err) : wm_fail_memory(err, NULL);
    json_decref(object);
    return status;
}

int wm_result_copy(const struct wm_result *result, struct wm_result *ret_copy,
                   struct wm_error *err)
{
    struct wm_result copy = { 0 };

    int status = wm_members_copy(&results, result, &copy, err);
    if (status == WM_OK)
        status = wm_members_copy(&events, result, &copy, err);
    if (status == WM_OK)
        status = copy_metrics(&result->metrics, &copy.metrics, err);
    if (status < 0)
        wm_result_release(&copy);
    else
        *ret_copy = copy;
    return status;
}

static struct wm_pair *find_note(struct wm_run *run, const char *key)
{
    for (size_t i = 0; i < run->note_count; i++) {
        if (run->notes[i].key && strcmp(run->notes[i].key, key) == 0)
            return &run->notes[i];
    }
    return NULL;
}

/* With a key, and no value yet. */
static struct wm_pair *append_note(struct wm_run *run, const char *key)
{
    struct wm_pair *grown =
        realloc(run->notes, (run->note_count + 1) * sizeof(*run->notes));

    if (!grown)
        return NULL;
    run->notes = grown;
    grown += run->note_count;
    *grown = (struct wm_pair) { .key = strdup(key) };
    if (!grown->key)
        return NULL;
    run->note_count++;
    return grown;
}

int wm_run_set_note(struct wm_run *run, const char *key, const char *format, ...)
{
    char text[4 * NOTE_SIZE], value[NOTE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    wm_text_utf8(value, sizeof(value), text, strlen(text));

    struct wm_pair *note = find_note(run, key);
    if (!note)
        note = append_note(run, key);
    char *copy = note ? strdup(value) : NULL;
    if (!copy)
        return WM_ENOMEM;
    free(note->value);
    note->value = copy;
    return WM_OK;
}

const struct wm_source_status *wm_run_source(const struct wm_run *run, const char *name)
{
    for (size_t i = 0; i < run->source_count; i++) {
        if (run->sources[i].name && strcmp(run->sources[i].name, name) == 0)
            return &run->sources[i];
    }
    return NULL;
}

int wm_run_add_source(struct wm_run *run, const char *name, bool available,
                      const char *detail, struct wm_error *err)
{
    struct wm_source_status *grown =
        realloc(run->sources, (run->source_count + 1) * sizeof(*grown));

    if (!grown)
        return wm_fail_memory(err, "describing the run");
    run->sources = grown;

    /* Counted at once, so that the release finds it half filled. */
    struct wm_source_status *source = &grown[run->source_count++];
    *source = (struct wm_source_status) {
        .name = wm_text_copy(name),
        .available = available,
        .detail = detail ? wm_text_copy(detail) : NULL,
    };
    return source->name && (!detail || source->detail)
               ? WM_OK
               : wm_fail_memory(err, "describing the run");
}

char *wm_run_command_line(const struct wm_run *run)
{
    size_t room = 1;

    for (size_t i = 0; i < run->command_count; i++)
        room += strlen(run->command[i]) + 1;
    char *text = calloc(1, room);
    if (!text)
        return NULL;
    for (size_t i = 0, used = 0; i < run->command_count; i++) {
        size_t length = strlen(run->command[i]);
        if (i > 0)
            text[used++] = ' ';
        memcpy(text + used, run->command[i], length);
        used += length;
    }
    char *valid = wm_text_copy(text);
    free(text);
    return valid;
}
