/* SPDX-License-Identifier: Apache-2.0 */
/* record_channel.c - channels and gaps as they stand in a recording. */
#include "record/record_channel.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "record/run/record_member.h"

enum { WORDS_MAX = 8 };

/* Small enough for a few of them to be added up. */
#define PERIOD_MAX_NS (WM_TIME_MAX_NS / 16)

/* More seconds, watts or joules than any sensor is known by. */
#define SENSOR_MAX 1e15

static const char *const words[][WORDS_MAX] = {
    [WM_WORDS_DEVICE_KIND] = {
        [WM_DEVICE_HOST] = "host",
        [WM_DEVICE_CPU] = "cpu",
        [WM_DEVICE_GPU] = "gpu",
        [WM_DEVICE_TREE] = "tree",
        [WM_DEVICE_CPU_PART] = "cpu_part",
        [WM_DEVICE_DRAM] = "dram",
        [WM_DEVICE_PLATFORM] = "platform",
        [WM_DEVICE_OTHER] = "other",
    },
    [WM_WORDS_KIND] = {
        [WM_GAUGE] = "gauge",
        [WM_COUNTER] = "counter",
    },
    [WM_WORDS_ORIGIN] = {
        [WM_MEASURED] = "measured",
        [WM_ESTIMATED] = "estimated",
        [WM_SIMULATED] = "simulated",
    },
    [WM_WORDS_STATE] = {
        [WM_READING_NONE] = "none",
        [WM_READING_OK] = "ok",
        [WM_READING_UNSUPPORTED] = "unsupported",
        [WM_READING_DENIED] = "denied",
        [WM_READING_FAILED] = "failed",
        [WM_READING_STALE] = "stale",
        [WM_READING_JUMPED] = "jumped",
    },
    [WM_WORDS_SENSOR] = {
        [WM_SENSOR_UNKNOWN] = "unknown",
        [WM_SENSOR_BUILT_IN] = "built_in",
        [WM_SENSOR_BOARD] = "board",
        [WM_SENSOR_TOOL] = "tool",
        [WM_SENSOR_MODEL] = "model",
        [WM_SENSOR_BATTERY] = "battery",
        [WM_SENSOR_METER] = "meter",
    },
    [WM_WORDS_CONTAINS] = {
        [WM_CONTAINS_DEVICE] = "device",
        [WM_CONTAINS_PACKAGE] = "package",
        [WM_CONTAINS_MODULE] = "module",
        [WM_CONTAINS_PLATFORM] = "platform",
    },
};

#define SLOT(member) offsetof(struct wm_sensor, member)

/* Of a sensor, but for its kind and what it contains. */
static const struct wm_member sensor_members[] = {
    { .key = "period_ns", .slot = SLOT(period_ns), .type = WM_MEMBER_TIME },
    { .key = "longest_ns", .slot = SLOT(longest_ns), .type = WM_MEMBER_TIME },
    { .key = "window_s", .slot = SLOT(window_s), .type = WM_MEMBER_DOUBLE },
    { .key = "is_sample", .slot = SLOT(is_sample), .type = WM_MEMBER_BOOL },
    { .key = "gain", .slot = SLOT(gain), .type = WM_MEMBER_DOUBLE },
    { .key = "offset", .slot = SLOT(offset), .type = WM_MEMBER_DOUBLE },
    { .key = "step", .slot = SLOT(step), .type = WM_MEMBER_DOUBLE },
    { .key = "range", .slot = SLOT(range), .type = WM_MEMBER_DOUBLE },
    { .key = "text", .slot = SLOT(text), .type = WM_MEMBER_STRING },
};

static const struct wm_members sensors = {
    sensor_members,
    sizeof(sensor_members) / sizeof(sensor_members[0]),
    sizeof(struct wm_sensor),
};

const char *wm_word(enum wm_word_list list, int value)
{
    const char *word = value >= 0 && value < WORDS_MAX ? words[list][value] : NULL;
    return word ? word : "unknown";
}

bool wm_word_value(enum wm_word_list list, const char *word, int *ret_value)
{
    for (int value = 0; word && value < WORDS_MAX; value++) {
        if (!words[list][value] || strcmp(words[list][value], word) != 0)
            continue;
        *ret_value = value;
        return true;
    }
    return false;
}

/* Empty for the many channels that have no sensor to speak of. */
static json_t *sensor_json(const struct wm_sensor *sensor)
{
    if (sensor->kind == WM_SENSOR_UNKNOWN && sensor->gain == 0 && !sensor->text &&
        sensor->contains == WM_CONTAINS_DEVICE)
        return json_object();

    json_t *object = wm_members_json(&sensors, sensor);
    if (sensor->longest_ns == 0)
        json_object_del(object, "longest_ns");
    wm_json_set(&object, "kind", json_string(wm_word(WM_WORDS_SENSOR, (int)sensor->kind)));
    if (sensor->contains != WM_CONTAINS_DEVICE)
        wm_json_set(&object, "contains",
                    json_string(wm_word(WM_WORDS_CONTAINS, (int)sensor->contains)));
    return object;
}

/* What a recording says of a channel in words, by its keys in JSON. */
enum {
    COLUMN,
    CLOCK,
    SOURCE,
    DEVICE,
    LABEL,
    MODEL,
    METRIC,
    UNIT,
    DEVICE_KIND,
    KIND,
    ORIGIN
};

static const char *const text_keys[WM_CHANNEL_TEXTS] = {
    [COLUMN] = "column", [CLOCK] = "clock_column", [SOURCE] = "source",
    [DEVICE] = "device", [LABEL] = "label",        [MODEL] = "model",
    [METRIC] = "metric", [UNIT] = "unit",          [DEVICE_KIND] = "device_kind",
    [KIND] = "kind",     [ORIGIN] = "origin",
};

static json_t *channel_json(const struct wm_channel *channel, const char *column,
                            const char *clock)
{
    const char *const texts[WM_CHANNEL_TEXTS] = {
        column,
        clock,
        channel->source,
        channel->device,
        channel->label,
        channel->model,
        channel->metric,
        channel->unit,
        wm_word(WM_WORDS_DEVICE_KIND, (int)channel->device_kind),
        wm_word(WM_WORDS_KIND, (int)channel->kind),
        wm_word(WM_WORDS_ORIGIN, (int)channel->origin),
    };
    json_t *object = json_object();

    for (size_t i = 0; i < WM_CHANNEL_TEXTS; i++)
        wm_json_set(&object, text_keys[i], wm_text_json(texts[i]));
    wm_json_set(&object, "period_ns", json_integer(channel->period_ns));
    wm_json_set(&object, "sensor", sensor_json(&channel->sensor));
    return object;
}

bool wm_channel_gpu_number(const struct wm_channel *channel, int *ret_number)
{
    const char *end;
    uint64_t number;

    if (strncmp(channel->label, "gpu", 3) != 0 ||
        !wm_text_u64(channel->label + 3, &end, &number) || *end || number >= 100000)
        return false;
    *ret_number = (int)number;
    return true;
}

int wm_channels_to_json(const struct wm_channel *channels, const struct wm_columns *columns,
                        char **ret_text, struct wm_error *err)
{
    json_t *array = json_array();

    for (size_t i = 0; i < columns->count; i++) {
        size_t clock = columns->clock_of[i];
        wm_json_add(&array,
                    channel_json(&channels[i], columns->values[i],
                                 clock == WM_TICK_CLOCK ? NULL : columns->clocks[clock]));
    }
    *ret_text = wm_json_dump(array, JSON_COMPACT);
    return *ret_text ? WM_OK : wm_fail_memory(err, NULL);
}

json_t *wm_gap_json(const struct wm_gap *gap, const struct wm_columns *columns)
{
    json_t *object = json_object();

    wm_json_set(&object, "column", json_string(columns->values[gap->channel]));
    wm_json_set(&object, "from_ns", json_integer(gap->from_ns));
    wm_json_set(&object, "to_ns", json_integer(gap->to_ns));
    wm_json_set(&object, "state", json_string(wm_word(WM_WORDS_STATE, (int)gap->state)));
    wm_json_set(&object, "why", wm_text_json(gap->why));
    return object;
}

int wm_channel_set_init(struct wm_channel_set *set, size_t room, struct wm_error *err)
{
    *set = (struct wm_channel_set) { 0 };
    if (room > WM_CHANNELS_MAX)
        return wm_fail(err, WM_EFORMAT, "more than %d channels", WM_CHANNELS_MAX);

    set->channels = calloc(room + 1, sizeof(*set->channels));
    set->columns.values = calloc(room + 1, sizeof(*set->columns.values));
    set->columns.clocks = calloc(room + 1, sizeof(*set->columns.clocks));
    set->columns.clock_of = calloc(room + 1, sizeof(*set->columns.clock_of));
    if (!set->channels || !set->columns.values || !set->columns.clocks ||
        !set->columns.clock_of)
        return wm_fail_memory(err, NULL);
    set->room = room;
    return WM_OK;
}

static void free_string(const char *text)
{
    free((char *)(uintptr_t)text); /* ours: copied by wm_channel_set_add() */
}

void wm_channel_set_release(struct wm_channel_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct wm_channel *channel = &set->channels[i];
        free_string(channel->source);
        free_string(channel->device);
        free_string(channel->label);
        free_string(channel->model);
        free_string(channel->metric);
        free_string(channel->unit);
        free_string(channel->sensor.text);
    }
    free(set->channels);
    free(set->uses);
    wm_columns_release(&set->columns);
    *set = (struct wm_channel_set) { 0 };
}

static bool copy_string(const char *text, const char **ret_copy)
{
    *ret_copy = text ? wm_text_copy(text) : NULL;
    return *ret_copy || !text;
}

/* Readers compare and print these, so what is missing becomes an error here. */
static int check_channel(const char *const texts[WM_CHANNEL_TEXTS], int64_t period_ns,
                         struct wm_error *err)
{
    const char *column = texts[COLUMN];

    if (!column || column[0] == '\0')
        return wm_fail(err, WM_EFORMAT, "a channel has no column");
    if (period_ns < 0 || period_ns > PERIOD_MAX_NS)
        return wm_fail(err, WM_EFORMAT, "channel '%.64s' has no possible period", column);
    for (size_t i = SOURCE; i <= UNIT; i++) {
        if (!texts[i] && i != MODEL)
            return wm_fail(err, WM_EFORMAT, "channel '%.64s' has no %s", column,
                           text_keys[i]);
    }
    return WM_OK;
}

/* Devices follow each other, so the clock is nearly always the last one. */
static bool add_clock(struct wm_columns *columns, const char *clock, size_t *ret_index)
{
    for (size_t i = columns->clock_count; i-- > 0;) {
        if (strcmp(columns->clocks[i], clock) == 0) {
            *ret_index = i;
            return true;
        }
    }
    char *copy = strdup(clock);
    if (!copy)
        return false;
    *ret_index = columns->clock_count;
    columns->clocks[columns->clock_count++] = copy;
    return true;
}

/* Into a sensor that is all zero; its text is the caller's even where this fails. */
static int read_sensor(const json_t *object, struct wm_sensor *sensor, struct wm_error *err)
{
    const char *word = json_string_value(json_object_get(object, "kind"));
    const char *contained = json_string_value(json_object_get(object, "contains"));
    int kind = WM_SENSOR_UNKNOWN, contains = WM_CONTAINS_DEVICE;

    int status = wm_members_read(&sensors, object, "sensor", sensor, err);
    if (status < 0)
        return status;
    wm_word_value(WM_WORDS_SENSOR, word, &kind);
    wm_word_value(WM_WORDS_CONTAINS, contained, &contains);
    sensor->kind = (enum wm_sensor_kind)kind;
    sensor->contains = (enum wm_contains)contains;
    const double numbers[] = { sensor->window_s, sensor->gain, sensor->offset, sensor->step,
                               sensor->range };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (!(numbers[i] >= 0 && numbers[i] <= SENSOR_MAX))
            return wm_fail(err, WM_EFORMAT, "a sensor has impossible properties");
    }
    return sensor->period_ns <= PERIOD_MAX_NS && sensor->longest_ns <= PERIOD_MAX_NS
               ? WM_OK
               : wm_fail(err, WM_EFORMAT, "a sensor has no possible period");
}

static int add_channel(struct wm_channel_set *set,
                       const char *const texts[WM_CHANNEL_TEXTS], int64_t period_ns,
                       const json_t *sensor, struct wm_error *err)
{
    struct wm_columns *columns = &set->columns;
    struct wm_channel *channel = &set->channels[set->count];
    int device_kind, kind, origin;

    if (!wm_word_value(WM_WORDS_DEVICE_KIND, texts[DEVICE_KIND], &device_kind) ||
        !wm_word_value(WM_WORDS_KIND, texts[KIND], &kind) ||
        !wm_word_value(WM_WORDS_ORIGIN, texts[ORIGIN], &origin))
        return wm_fail(err, WM_EFORMAT, "channel %zu is of no known kind", set->count);
    if (set->count == set->room)
        return wm_fail(err, WM_EFORMAT, "more channels than were announced");
    if (!sensor)
        return wm_fail(err, WM_EFORMAT,
                       "channel %zu has no sensor: recorded before version 0.1.0",
                       set->count);
    int status = check_channel(texts, period_ns, err);
    if (status < 0)
        return status;

    *channel = (struct wm_channel) {
        .device_kind = (enum wm_device_kind)device_kind,
        .kind = (enum wm_kind)kind,
        .origin = (enum wm_origin)origin,
        .period_ns = period_ns,
    };
    bool whole = copy_string(texts[SOURCE], &channel->source);
    whole = copy_string(texts[DEVICE], &channel->device) && whole;
    whole = copy_string(texts[LABEL], &channel->label) && whole;
    whole = copy_string(texts[MODEL], &channel->model) && whole;
    whole = copy_string(texts[METRIC], &channel->metric) && whole;
    whole = copy_string(texts[UNIT], &channel->unit) && whole;
    columns->values[set->count] = strdup(texts[COLUMN]);
    whole = whole && columns->values[set->count];
    columns->clock_of[set->count] = WM_TICK_CLOCK;
    if (texts[CLOCK] && whole)
        whole = add_clock(columns, texts[CLOCK], &columns->clock_of[set->count]);
    columns->count = ++set->count;
    if (!whole)
        return wm_fail_memory(err, NULL);
    return read_sensor(sensor, &channel->sensor, err);
}

int wm_channel_set_add(struct wm_channel_set *set,
                       const char *const texts[WM_CHANNEL_TEXTS], int64_t period_ns,
                       const char *sensor, struct wm_error *err)
{
    json_t *object = NULL;

    int status = sensor ? wm_json_load(sensor, strlen(sensor), &object, err) : WM_OK;
    if (status == WM_OK)
        status = add_channel(set, texts, period_ns, object, err);
    json_decref(object);
    return status;
}

static int compare_uses(const void *a, const void *b)
{
    return strcmp(((const struct wm_column_use *)a)->name,
                  ((const struct wm_column_use *)b)->name);
}

int wm_channel_set_seal(struct wm_channel_set *set, struct wm_error *err)
{
    const struct wm_columns *columns = &set->columns;
    size_t count = columns->count + columns->clock_count;

    set->uses = calloc(count + 1, sizeof(*set->uses));
    if (!set->uses)
        return wm_fail_memory(err, NULL);
    for (size_t i = 0; i < columns->count; i++)
        set->uses[set->use_count++] =
            (struct wm_column_use) { .name = columns->values[i], .index = i };
    for (size_t i = 0; i < columns->clock_count; i++)
        set->uses[set->use_count++] = (struct wm_column_use) { .name = columns->clocks[i],
                                                               .is_clock = true,
                                                               .index = i };
    qsort(set->uses, count, sizeof(*set->uses), compare_uses);

    for (size_t i = 1; i < count; i++) {
        if (compare_uses(&set->uses[i - 1], &set->uses[i]) == 0)
            return wm_fail(err, WM_EFORMAT, "column '%.64s' is used twice",
                           set->uses[i].name);
    }
    if (wm_channel_set_find(set, "time_ns"))
        return wm_fail(err, WM_EFORMAT, "column 'time_ns' is used twice");
    return WM_OK;
}

const struct wm_column_use *wm_channel_set_find(const struct wm_channel_set *set,
                                                const char *column)
{
    struct wm_column_use key = { .name = column };

    return bsearch(&key, set->uses, set->use_count, sizeof(key), compare_uses);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int read_channel(const json_t *object, struct wm_channel_set *set,
                        struct wm_error *err)
{
    const char *texts[WM_CHANNEL_TEXTS];

    for (size_t i = 0; i < WM_CHANNEL_TEXTS; i++)
        texts[i] = text_of(object, text_keys[i]);
    return add_channel(set, texts, json_integer_value(json_object_get(object, "period_ns")),
                       json_object_get(object, "sensor"), err);
}

int wm_channel_set_from_json(struct wm_channel_set *set, const char *text,
                             struct wm_error *err)
{
    json_t *array = NULL;

    *set = (struct wm_channel_set) { 0 };
    int status = wm_json_load(text, strlen(text), &array, err);
    if (status == WM_ENOMEM)
        return status;
    if (!json_is_array(array)) {
        json_decref(array);
        return wm_fail(err, WM_EFORMAT, "the list of channels is not a JSON array");
    }

    status = wm_channel_set_init(set, json_array_size(array), err);
    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++)
        status = read_channel(json_array_get(array, i), set, err);
    json_decref(array);
    return status < 0 ? status : wm_channel_set_seal(set, err);
}

bool wm_gap_init(struct wm_gap *ret_gap, size_t channel, int64_t from_ns, int64_t to_ns,
                 const char *state, const char *why)
{
    int value;

    if (!wm_word_value(WM_WORDS_STATE, state, &value) || from_ns < 0 || to_ns < from_ns ||
        to_ns > WM_TIME_MAX_NS)
        return false;
    *ret_gap = (struct wm_gap) {
        .channel = channel,
        .from_ns = from_ns,
        .to_ns = to_ns,
        .state = (enum wm_reading_state)value,
    };
    if (why)
        wm_text_utf8(ret_gap->why, sizeof(ret_gap->why), why, strlen(why));
    return true;
}

bool wm_gap_from_json(const struct wm_channel_set *set, const json_t *object,
                      struct wm_gap *ret_gap)
{
    const char *column = text_of(object, "column");
    const struct wm_column_use *use = column ? wm_channel_set_find(set, column) : NULL;

    if (!use || use->is_clock)
        return false;
    return wm_gap_init(ret_gap, use->index,
                       json_integer_value(json_object_get(object, "from_ns")),
                       json_integer_value(json_object_get(object, "to_ns")),
                       text_of(object, "state"), text_of(object, "why"));
}
