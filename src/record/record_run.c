/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_run.c - a run and its result as JSON text, and back.
 *
 * The members of both structs stand in tables, so that a key is written and
 * read in one way, and adding a member is adding a line.
 */
#include "record/record_run.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "record/record_metrics.h"
#include "record/record_text.h"

/* Longer ones are cut off. */
enum { NOTE_SIZE = 224 };

enum member_type {
    MEMBER_STRING, /* char *; null when NULL */
    MEMBER_TEXT,   /* char[size]; "" when empty */
    MEMBER_PAIRS,  /* struct wm_pair *, its count at `count` */
    MEMBER_INT,    /* int and pid_t */
    MEMBER_TIME,   /* int64_t, nanoseconds */
    MEMBER_UINT64,
    MEMBER_DOUBLE,
    MEMBER_BOOL,
};

struct member {
    const char *key;
    enum member_type type;
    size_t slot;
    size_t size;  /* of a MEMBER_TEXT */
    size_t count; /* slot of the number of a MEMBER_PAIRS */

    /* The value is -1 when it is not known, which is null in JSON. */
    bool unknown_is_negative;
};

_Static_assert(sizeof(pid_t) == sizeof(int), "pid_t is stored as an int");

#define RUN(name) .key = #name, .slot = offsetof(struct wm_run, name)

static const struct member run_members[] = {
    { RUN(id), .type = MEMBER_STRING },
    { RUN(version), .type = MEMBER_STRING },
    { RUN(mode), .type = MEMBER_STRING },
    { RUN(host), .type = MEMBER_STRING },
    { RUN(boot_id), .type = MEMBER_STRING },
    { RUN(kernel), .type = MEMBER_STRING },
    { RUN(cpu_model), .type = MEMBER_STRING },
    { RUN(notes), .type = MEMBER_PAIRS, .count = offsetof(struct wm_run, note_count) },
    { RUN(environment), .type = MEMBER_PAIRS,
      .count = offsetof(struct wm_run, environment_count) },
    { RUN(baseline_seconds), .type = MEMBER_DOUBLE },
    { RUN(gpu_remark), .type = MEMBER_STRING },
    { RUN(regions_folder), .type = MEMBER_STRING },
    { RUN(regions_remark), .type = MEMBER_STRING },
    { RUN(pid), .type = MEMBER_INT },
    { RUN(anchor_ns), .type = MEMBER_TIME },
    { RUN(anchor_unix_ns), .type = MEMBER_TIME },
    { RUN(interval_ns), .type = MEMBER_TIME },
    { RUN(core_count), .type = MEMBER_INT },
    { RUN(expected_cores), .type = MEMBER_DOUBLE },
    { RUN(gpu_count), .type = MEMBER_INT },
    { RUN(expected_gpu_count), .type = MEMBER_INT },
    { RUN(gpus_unknown), .type = MEMBER_BOOL },
};

#define SOURCE(name) .key = #name, .slot = offsetof(struct wm_source_status, name)

static const struct member source_members[] = {
    { SOURCE(name), .type = MEMBER_STRING },
    { SOURCE(available), .type = MEMBER_BOOL },
    { SOURCE(detail), .type = MEMBER_STRING },
};

#define BASELINE(name) .key = #name, .slot = offsetof(struct wm_baseline, name)

static const struct member baseline_members[] = {
    { BASELINE(source), .type = MEMBER_STRING },
    { BASELINE(device), .type = MEMBER_STRING },
    { BASELINE(watts), .type = MEMBER_DOUBLE },
};

#define RESULT(name) .key = #name, .slot = offsetof(struct wm_result, name)
#define RESULT_TEXT(name)                                                                  \
    RESULT(name), .type = MEMBER_TEXT, .size = sizeof(((struct wm_result *)0)->name)

static const struct member result_members[] = {
    { RESULT(end_ns), .type = MEMBER_TIME },
    { RESULT(exit_status), .type = MEMBER_INT, .unknown_is_negative = true },
    { RESULT(exit_signal), .type = MEMBER_INT },
    { RESULT(cpu_total_seconds), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT(cpu_main_seconds), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT(cpu_descendants_seconds), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT_TEXT(cpu_method) },
    { RESULT_TEXT(memory_note) },
    { RESULT(peak_rss_bytes), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT(peak_rss_bound_bytes), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT(peak_rss_is_main), .type = MEMBER_BOOL },
    { RESULT(ticks), .type = MEMBER_UINT64 },
    { RESULT(late_ticks), .type = MEMBER_UINT64 },
    { RESULT(missed_ticks), .type = MEMBER_UINT64 },
    { RESULT(tool_cpu_seconds), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT(tool_max_rss_bytes), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { RESULT_TEXT(recording_trouble) },
    { RESULT(lost_ticks), .type = MEMBER_UINT64 },
    { RESULT(lost_regions), .type = MEMBER_UINT64 },
    { RESULT(stray_regions), .type = MEMBER_UINT64 },
    { RESULT(dropped_regions), .type = MEMBER_UINT64 },
    { RESULT_TEXT(regions_note) },
    { RESULT(processes_seen), .type = MEMBER_UINT64 },
};

#define PEAK(name) .key = #name, .slot = offsetof(struct wm_process_peak, name)

static const struct member peak_members[] = {
    { PEAK(pid), .type = MEMBER_INT },
    { PEAK(parent), .type = MEMBER_INT },
    { PEAK(name), .type = MEMBER_TEXT,
      .size = sizeof(((struct wm_process_peak *)0)->name) },
    { PEAK(cpu_seconds), .type = MEMBER_DOUBLE },
    { PEAK(max_memory_bytes), .type = MEMBER_DOUBLE },
    { PEAK(max_private_bytes), .type = MEMBER_DOUBLE, .unknown_is_negative = true },
    { PEAK(max_threads), .type = MEMBER_INT },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void release_strings(const struct member *members, size_t count, void *base)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].type == MEMBER_STRING)
            free(*(char **)(void *)((char *)base + members[i].slot));
    }
}

static void free_pairs(struct wm_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
    free(pairs);
}

void wm_run_release(struct wm_run *run)
{
    for (size_t i = 0; i < run->command_count; i++)
        free(run->command[i]);
    free(run->command);
    for (size_t i = 0; i < run->source_count; i++)
        release_strings(source_members, COUNT(source_members), &run->sources[i]);
    free(run->sources);
    for (size_t i = 0; i < run->baseline_count; i++)
        release_strings(baseline_members, COUNT(baseline_members), &run->baselines[i]);
    free(run->baselines);
    free_pairs(run->notes, run->note_count);
    free_pairs(run->environment, run->environment_count);
    release_strings(run_members, COUNT(run_members), run);
    memset(run, 0, sizeof(*run));
}

void wm_result_release(struct wm_result *result)
{
    free(result->processes);
    wm_metrics_release(result);
    memset(result, 0, sizeof(*result));
}

/* Like all functions called ..._json, it gives a new value, or NULL when out of
 * memory. A key that is there twice keeps its last value. */
static json_t *pairs_json(const struct wm_pair *pairs, size_t count)
{
    json_t *object = json_object();
    bool whole = object != NULL;

    for (size_t i = 0; i < count && whole; i++) {
        json_t *key = wm_text_json(pairs[i].key ? pairs[i].key : "");
        whole = key && json_object_set_new(object, json_string_value(key),
                                           wm_text_json(pairs[i].value)) == 0;
        json_decref(key);
    }
    if (!whole) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *integer_json(int64_t value, bool unknown_is_negative)
{
    return unknown_is_negative && value < 0 ? json_null() : json_integer(value);
}

static json_t *member_json(const struct member *member, const char *base)
{
    const void *slot = base + member->slot;

    switch (member->type) {
    case MEMBER_STRING:
        return wm_text_json(*(char *const *)slot);
    case MEMBER_TEXT:
        return wm_text_json(slot);
    case MEMBER_PAIRS:
        return pairs_json(*(struct wm_pair *const *)slot,
                          *(const size_t *)(const void *)(base + member->count));
    case MEMBER_INT:
        return integer_json(*(const int *)slot, member->unknown_is_negative);
    case MEMBER_TIME:
        return integer_json(*(const int64_t *)slot, false);
    case MEMBER_UINT64: {
        uint64_t value = *(const uint64_t *)slot;
        return json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value);
    }
    case MEMBER_DOUBLE: {
        double value = *(const double *)slot;
        bool known = isfinite(value) && !(member->unknown_is_negative && value < 0);
        return known ? json_real(value) : json_null();
    }
    case MEMBER_BOOL:
        return json_boolean(*(const bool *)slot);
    }
    return NULL;
}

static json_t *object_json(const struct member *members, size_t count, const void *base)
{
    json_t *object = json_object();

    for (size_t i = 0; i < count && object; i++) {
        if (json_object_set_new(object, members[i].key, member_json(&members[i], base)) <
            0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static json_t *array_json(const struct member *members, size_t member_count,
                          const void *items, size_t item_size, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count && array; i++) {
        json_t *item =
            object_json(members, member_count, (const char *)items + i * item_size);
        if (json_array_append_new(array, item) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *command_json(const struct wm_run *run)
{
    json_t *array = json_array();

    for (size_t i = 0; i < run->command_count && array; i++) {
        if (json_array_append_new(array, wm_text_json(run->command[i])) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

/* Takes `object` over. */
static int print(json_t *object, bool whole, char **ret_text, struct wm_error *err)
{
    char *text = whole ? json_dumps(object, JSON_COMPACT) : NULL;

    json_decref(object);
    if (!text)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    *ret_text = text;
    return WM_OK;
}

int wm_run_to_json(const struct wm_run *run, char **ret_text, struct wm_error *err)
{
    json_t *object = object_json(run_members, COUNT(run_members), run);
    bool whole =
        object && json_object_set_new(object, "command", command_json(run)) == 0 &&
        json_object_set_new(object, "sources",
                            array_json(source_members, COUNT(source_members), run->sources,
                                       sizeof(*run->sources), run->source_count)) == 0 &&
        json_object_set_new(object, "baselines",
                            array_json(baseline_members, COUNT(baseline_members),
                                       run->baselines, sizeof(*run->baselines),
                                       run->baseline_count)) == 0;

    return print(object, whole, ret_text, err);
}

int wm_result_to_json(const struct wm_result *result, char **ret_text, struct wm_error *err)
{
    json_t *object = object_json(result_members, COUNT(result_members), result);
    bool whole =
        object && json_object_set_new(
                      object, "processes",
                      array_json(peak_members, COUNT(peak_members), result->processes,
                                 sizeof(*result->processes), result->process_count)) == 0;

    if (whole && (result->metric_count > 0 || result->metrics_note[0]))
        whole = json_object_set_new(object, "metrics", wm_metrics_json(result)) == 0;
    return print(object, whole, ret_text, err);
}

static int wrong(const char *key, const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "'%s' is not %s", key, what);
}

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

static bool absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* `ret_string` stays NULL where there is no value. */
static int read_string(const json_t *value, const char *key, char **ret_string,
                       struct wm_error *err)
{
    if (absent(value))
        return WM_OK;
    if (!json_is_string(value))
        return wrong(key, "a string", err);
    *ret_string = strdup(json_string_value(value));
    return *ret_string ? WM_OK : out_of_memory(err);
}

static int read_pairs(json_t *value, const char *key, struct wm_pair **ret_pairs,
                      size_t *ret_count, struct wm_error *err)
{
    const char *name;
    json_t *text;
    int status = WM_OK;

    if (absent(value))
        return WM_OK;
    if (!json_is_object(value))
        return wrong(key, "an object", err);
    if (json_object_size(value) == 0)
        return WM_OK;

    struct wm_pair *pairs = calloc(json_object_size(value), sizeof(*pairs));
    size_t count = 0;
    if (!pairs)
        return out_of_memory(err);
    json_object_foreach(value, name, text)
    {
        struct wm_pair *pair = &pairs[count++];
        pair->key = strdup(name);
        status = pair->key ? read_string(text, key, &pair->value, err) : out_of_memory(err);
        if (status < 0) {
            free_pairs(pairs, count);
            return status;
        }
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return WM_OK;
}

static int read_integer(const json_t *value, const struct member *member, int64_t min,
                        int64_t max, int64_t *ret_value, struct wm_error *err)
{
    *ret_value = member->unknown_is_negative ? -1 : 0;
    if (absent(value))
        return WM_OK;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return wrong(member->key, "a whole number in range", err);
    *ret_value = json_integer_value(value);
    return WM_OK;
}

static int read_member(const struct member *member, const json_t *object, char *base,
                       struct wm_error *err)
{
    json_t *value = json_object_get(object, member->key);
    void *slot = base + member->slot;
    int64_t integer = 0;
    int status = WM_OK;

    switch (member->type) {
    case MEMBER_STRING:
        return read_string(value, member->key, slot, err);
    case MEMBER_TEXT:
        if (absent(value))
            return WM_OK;
        if (!json_is_string(value))
            return wrong(member->key, "a string", err);
        wm_text_utf8(slot, member->size, json_string_value(value),
                     json_string_length(value));
        return WM_OK;
    case MEMBER_PAIRS:
        return read_pairs(value, member->key, slot,
                          (size_t *)(void *)(base + member->count), err);
    case MEMBER_INT:
        status = read_integer(value, member, INT_MIN, INT_MAX, &integer, err);
        *(int *)slot = (int)integer;
        return status;
    case MEMBER_TIME:
        status = read_integer(value, member, 0, WM_TIME_MAX_NS, &integer, err);
        *(int64_t *)slot = integer;
        return status;
    case MEMBER_UINT64:
        status = read_integer(value, member, 0, INT64_MAX, &integer, err);
        *(uint64_t *)slot = (uint64_t)integer;
        return status;
    case MEMBER_DOUBLE:
        *(double *)slot = member->unknown_is_negative ? -1 : 0;
        if (absent(value))
            return WM_OK;
        if (!json_is_number(value))
            return wrong(member->key, "a number", err);
        *(double *)slot = json_number_value(value);
        return WM_OK;
    case MEMBER_BOOL:
        if (absent(value))
            return WM_OK;
        if (!json_is_boolean(value))
            return wrong(member->key, "true or false", err);
        *(bool *)slot = json_is_true(value);
        return WM_OK;
    }
    return WM_OK;
}

static int read_object(const struct member *members, size_t count, const json_t *object,
                       const char *key, void *base, struct wm_error *err)
{
    if (!json_is_object(object))
        return wrong(key, "an object", err);
    for (size_t i = 0; i < count; i++) {
        int status = read_member(&members[i], object, base, err);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

/* A zeroed array for the values of an array; `ret_items` stays NULL for none.
 * `ret_count` is the caller's to count up, so that a release is always right. */
static int read_array(const json_t *array, const char *key, size_t item_size,
                      void *ret_items, struct wm_error *err)
{
    if (absent(array))
        return WM_OK;
    if (!json_is_array(array))
        return wrong(key, "an array", err);
    if (json_array_size(array) == 0)
        return WM_OK;

    void *items = calloc(json_array_size(array), item_size);
    if (!items)
        return out_of_memory(err);
    memcpy(ret_items, &items, sizeof(items));
    return WM_OK;
}

static int read_command(const json_t *array, struct wm_run *run, struct wm_error *err)
{
    int status = read_array(array, "command", sizeof(*run->command), &run->command, err);

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        status = read_string(json_array_get(array, i), "command", &run->command[i], err);
        run->command_count = i + 1;
        if (status == WM_OK && !run->command[i])
            status = wrong("command", "an array of strings", err);
    }
    return status;
}

bool wm_run_is_gpu_source(const char *name)
{
    static const char *const names[] = { "nvml", "drm" };

    for (size_t i = 0; name && i < COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

bool wm_run_may_have_gpus(const struct wm_run *run)
{
    return run->gpu_count > 0 || run->expected_gpu_count > 0 || run->gpus_unknown;
}

static int read_sources(const json_t *array, struct wm_run *run, struct wm_error *err)
{
    int status = read_array(array, "sources", sizeof(*run->sources), &run->sources, err);

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        run->source_count = i + 1;
        status = read_object(source_members, COUNT(source_members),
                             json_array_get(array, i), "sources", &run->sources[i], err);
    }
    return status;
}

static int read_baselines(const json_t *array, struct wm_run *run, struct wm_error *err)
{
    int status =
        read_array(array, "baselines", sizeof(*run->baselines), &run->baselines, err);

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        run->baseline_count = i + 1;
        status =
            read_object(baseline_members, COUNT(baseline_members), json_array_get(array, i),
                        "baselines", &run->baselines[i], err);
    }
    return status;
}

static int read_processes(const json_t *array, struct wm_result *result,
                          struct wm_error *err)
{
    int status =
        read_array(array, "processes", sizeof(*result->processes), &result->processes, err);

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        result->process_count = i + 1;
        status = read_object(peak_members, COUNT(peak_members), json_array_get(array, i),
                             "processes", &result->processes[i], err);
    }
    return status;
}

static int parse(const char *text, json_t **ret_object, struct wm_error *err)
{
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);

    if (!object && json_error_code(&error) == json_error_out_of_memory)
        return out_of_memory(err);
    if (!object)
        return wm_fail(err, WM_EFORMAT, "not JSON: %s", error.text);
    *ret_object = object;
    return WM_OK;
}

int wm_run_from_json(const char *text, struct wm_run *ret_run, struct wm_error *err)
{
    struct wm_run run = { 0 };
    json_t *object = NULL;

    int status = parse(text, &object, err);
    if (status < 0)
        return status;
    status = read_object(run_members, COUNT(run_members), object, "run", &run, err);
    if (status == WM_OK)
        status = read_command(json_object_get(object, "command"), &run, err);
    if (status == WM_OK)
        status = read_sources(json_object_get(object, "sources"), &run, err);
    if (status == WM_OK)
        status = read_baselines(json_object_get(object, "baselines"), &run, err);
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

    int status = parse(text, &object, err);
    if (status < 0)
        return status;
    status =
        read_object(result_members, COUNT(result_members), object, "result", &result, err);
    if (status == WM_OK)
        status = read_processes(json_object_get(object, "processes"), &result, err);
    if (status == WM_OK)
        status = wm_metrics_from_json(json_object_get(object, "metrics"), &result, err);
    json_decref(object);

    if (status < 0)
        wm_result_release(&result);
    else
        *ret_result = result;
    return status;
}

/* Through the JSON form, which holds every field already. */
int wm_run_copy(const struct wm_run *run, struct wm_run *ret_copy, struct wm_error *err)
{
    char *text;

    int status = wm_run_to_json(run, &text, err);
    if (status < 0)
        return status;
    status = wm_run_from_json(text, ret_copy, err);
    free(text);
    return status;
}

int wm_result_copy(const struct wm_result *result, struct wm_result *ret_copy,
                   struct wm_error *err)
{
    char *text;

    int status = wm_result_to_json(result, &text, err);
    if (status < 0)
        return status;
    status = wm_result_from_json(text, ret_copy, err);
    free(text);
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
