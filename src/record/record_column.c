/* SPDX-License-Identifier: Apache-2.0 */
/* record_column.c - which column of a table holds which channel. */
#include "record/record_column.h"

#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"
#include "record/record_timepoint.h"

/* Longest part of a name: labels of 4 KB would make unreadable tables. Of a whole one
 * PostgreSQL cuts off without a word what is longer than that. */
enum { PART_SIZE = 64, NAME_SIZE = 3 * PART_SIZE + 16, NAME_MAX_BYTES = 63 };

/* A column that has a name, and so keeps others from having it. */
struct column {
    char *name;
    char *owner;
    bool used; /* by a channel of this plan */
};

struct plan {
    void *names; /* tree of `columns`, see tsearch() */
    struct column *columns;
    size_t column_count, column_room;
};

static int fold(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* As SQLite compares names. strcasecmp() depends on the locale. */
static int compare_columns(const void *a, const void *b)
{
    const char *left = ((const struct column *)a)->name;
    const char *right = ((const struct column *)b)->name;

    while (*left && fold(*left) == fold(*right)) {
        left++;
        right++;
    }
    return fold(*left) - fold(*right);
}

static void keep(void *node)
{
    (void)node; /* the columns are released as an array */
}

static void release_plan(struct plan *plan)
{
    tdestroy(plan->names, keep);
    for (size_t i = 0; i < plan->column_count; i++) {
        free(plan->columns[i].name);
        free(plan->columns[i].owner);
    }
    free(plan->columns);
}

static struct column *find(const struct plan *plan, char *name)
{
    struct column key = { .name = name };
    struct column *const *found = tfind(&key, &plan->names, compare_columns);

    return found ? *found : NULL;
}

/* NULL when out of memory. */
static struct column *add(struct plan *plan, const char *name, const char *owner)
{
    struct column *column = &plan->columns[plan->column_count];

    if (plan->column_count == plan->column_room)
        return NULL;
    *column = (struct column) { .name = strdup(name), .owner = strdup(owner) };
    plan->column_count++;
    if (!column->name || !column->owner || !tsearch(column, &plan->names, compare_columns))
        return NULL;
    return column;
}

/* A name that is too long keeps its beginning, and gets a number made from all
 * of it, so that a channel has the same column in every run. */
static void shorten(char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    if (strlen(name) <= NAME_MAX_BYTES)
        return;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    snprintf(name + NAME_MAX_BYTES - 9, 10, "_%08x", (unsigned int)hash);
}

/* Gives `wanted` to `owner`, or the first name after it that is free. */
static char *take(struct plan *plan, const char *wanted, const char *owner)
{
    char name[NAME_SIZE + 16];

    snprintf(name, sizeof(name), "%s", wanted);
    for (size_t n = 2;; n++) {
        shorten(name);
        struct column *column = find(plan, name);
        if (!column)
            column = add(plan, name, owner);
        if (!column)
            return NULL;
        if (!column->used && strcmp(column->owner, owner) == 0) {
            column->used = true;
            return strdup(column->name);
        }
        snprintf(name, sizeof(name), "%s_%zu", wanted, n);
    }
}

static void clean_part(const char *text, char part[PART_SIZE])
{
    size_t length = 0;

    for (; *text && length < PART_SIZE - 1; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= '0' && *text <= '9');
        part[length++] = plain ? *text : '_';
    }
    part[length] = '\0';
}

static void value_name(const struct wm_channel *channel, char name[NAME_SIZE])
{
    char label[PART_SIZE], metric[PART_SIZE], unit[PART_SIZE];
    bool has_unit = strcmp(channel->unit, "count") != 0 && channel->unit[0] != '\0';

    clean_part(channel->label, label);
    clean_part(channel->metric, metric);
    clean_part(has_unit ? channel->unit : "", unit);
    snprintf(name, NAME_SIZE, "%s_%s%s%s", label, metric, has_unit ? "_" : "", unit);
}

static void clock_name(const struct wm_channel *channel, const char *metric,
                       char name[NAME_SIZE])
{
    char label[PART_SIZE], part[PART_SIZE];

    clean_part(channel->label, label);
    clean_part(metric, part);
    snprintf(name, NAME_SIZE, "%s_%s%stime_ns", label, part, metric[0] ? "_" : "");
}

char *wm_column_owner(const char *source, const char *device, const char *metric,
                      const char *unit)
{
    size_t room = strlen(source) + strlen(device) + strlen(metric) + strlen(unit) + 4;
    char *text = malloc(room);
    char *owner = NULL;

    if (text) {
        snprintf(text, room, "%s\t%s\t%s\t%s", source, device, metric, unit);
        owner = wm_text_copy(text);
    }
    free(text);
    return owner;
}

static bool same_device(const struct wm_channel *a, const struct wm_channel *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->label, b->label) == 0;
}

static bool is_counter_of_joules(const struct wm_channel *channel)
{
    return channel->kind == WM_COUNTER && strcmp(channel->unit, "J") == 0;
}

/* The channels of a device stand together and share a clock, except a counter of joules: a
 * slow driver reads it well before the rest, or less often. */
static bool has_clock_of_last(const struct wm_channel *channels, size_t i)
{
    return i > 0 && same_device(&channels[i], &channels[i - 1]) &&
           is_counter_of_joules(&channels[i]) == is_counter_of_joules(&channels[i - 1]);
}

/* Empty for the clock of a device. */
static const char *clock_metric(const struct wm_channel *channels, size_t count, size_t i)
{
    bool is_alone = (i == 0 || !same_device(&channels[i], &channels[i - 1])) &&
                    (i + 1 == count || !same_device(&channels[i], &channels[i + 1]));

    return is_counter_of_joules(&channels[i]) && !is_alone ? channels[i].metric : "";
}

static bool plan_channel(struct plan *plan, const struct wm_channel *channels, size_t count,
                         size_t i, struct wm_columns *columns)
{
    const struct wm_channel *channel = &channels[i];
    const char *metric = clock_metric(channels, count, i);
    char name[NAME_SIZE];

    char *owner =
        wm_column_owner(channel->source, channel->device, channel->metric, channel->unit);
    if (owner) {
        value_name(channel, name);
        columns->values[i] = take(plan, name, owner);
    }
    free(owner);
    columns->count = i + 1;

    if (has_clock_of_last(channels, i)) {
        columns->clock_of[i] = columns->clock_of[i - 1];
        return columns->values[i] != NULL;
    }

    owner = wm_column_owner(channel->source, channel->device, metric, "");
    if (!owner)
        return false;
    clock_name(channel, metric, name);
    columns->clock_of[i] = columns->clock_count;
    columns->first_of[columns->clock_count] = i;
    char *clock = take(plan, name, owner);
    columns->clocks[columns->clock_count++] = clock;
    free(owner);
    return columns->values[i] && clock;
}

/* The names that every table of ours or of gpu_tracker's has. */
static bool reserve_names(struct plan *plan)
{
    bool whole =
        add(plan, "run", "") && add(plan, "time_ns", "") && add(plan, "timestamp", "");

    for (int i = 0; i < WM_MEASUREMENT_COUNT && whole; i++)
        whole = add(plan, wm_measurement_name((enum wm_measurement)i), "") != NULL;
    return whole;
}

int wm_columns_plan(const struct wm_channel *channels, size_t count,
                    const struct wm_taken_column *taken, size_t taken_count,
                    struct wm_columns *ret_columns, struct wm_error *err)
{
    struct plan plan = { 0 };

    *ret_columns = (struct wm_columns) { 0 };
    /* A value and a clock for each channel at worst. */
    plan.column_room = 2 * count + taken_count + WM_MEASUREMENT_COUNT + 3;
    plan.columns = calloc(plan.column_room, sizeof(*plan.columns));
    ret_columns->values = calloc(count + 1, sizeof(*ret_columns->values));
    ret_columns->clocks = calloc(count + 1, sizeof(*ret_columns->clocks));
    ret_columns->clock_of = calloc(count + 1, sizeof(*ret_columns->clock_of));
    ret_columns->first_of = calloc(count + 1, sizeof(*ret_columns->first_of));

    bool whole = plan.columns && ret_columns->values && ret_columns->clocks &&
                 ret_columns->clock_of && ret_columns->first_of && reserve_names(&plan);
    for (size_t i = 0; i < taken_count && whole; i++) {
        struct column key = { .name = taken[i].name };
        if (!tfind(&key, &plan.names, compare_columns))
            whole = add(&plan, taken[i].name, taken[i].owner) != NULL;
    }
    for (size_t i = 0; i < count && whole; i++)
        whole = plan_channel(&plan, channels, count, i, ret_columns);

    release_plan(&plan);
    return whole ? WM_OK : wm_fail_memory(err, NULL);
}

void wm_columns_release(struct wm_columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        free(columns->values[i]);
    for (size_t i = 0; i < columns->clock_count; i++)
        free(columns->clocks[i]);
    free(columns->values);
    free(columns->clock_of);
    free(columns->clocks);
    free(columns->first_of);
    memset(columns, 0, sizeof(*columns));
}

bool wm_columns_clock(const struct wm_columns *columns, size_t clock,
                      const struct wm_reading *readings, int64_t *ret_when_ns)
{
    for (size_t i = columns->first_of[clock];
         i < columns->count && columns->clock_of[i] == clock; i++) {
        if (readings[i].state != WM_READING_OK)
            continue;
        *ret_when_ns = readings[i].when_ns;
        return true;
    }
    return false;
}
