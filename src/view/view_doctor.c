/* SPDX-License-Identifier: Apache-2.0 */
/* view_doctor.c - an examination, for people and for programs. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "record/record_text.h"
#include "view/view_units.h"
#include "wattmeter/doctor.h"

#define NAME_WIDTH 8
#define HEALTH_WIDTH 7
#define METRIC_WIDTH 20
#define DEVICES_WIDTH 24

/* A period that is hardly longer than the time between two looks was not seen. */
#define SEEN_FACTOR 2.0

/* Channels that went the same way are one line: the same metric of all devices. */
static bool belong_together(const struct wm_doctor_channel *one,
                            const struct wm_doctor_channel *other)
{
    return strcmp(one->channel->metric, other->channel->metric) == 0 &&
           one->channel->device_kind == other->channel->device_kind &&
           one->state == other->state && one->dead == other->dead &&
           (one->changes == 0) == (other->changes == 0) &&
           (one->why == other->why ||
            (one->why && other->why && strcmp(one->why, other->why) == 0));
}

struct group {
    const struct wm_doctor_channel *first, *last;
    size_t count;
    double shortest_s, longest_s; /* of the periods that were seen */
    size_t most_changes;
};

static struct group group_of(const struct wm_doctor_source *source, size_t index)
{
    const struct wm_doctor_channel *first = &source->channels[index];
    struct group group = { .first = first };

    for (size_t i = index; i < source->channel_count; i++) {
        const struct wm_doctor_channel *channel = &source->channels[i];
        if (!belong_together(first, channel))
            continue;
        group.last = channel;
        group.count++;
        if (channel->changes > group.most_changes)
            group.most_changes = channel->changes;
        if (channel->period_s == 0)
            continue;
        if (group.shortest_s == 0 || channel->period_s < group.shortest_s)
            group.shortest_s = channel->period_s;
        if (channel->period_s > group.longest_s)
            group.longest_s = channel->period_s;
    }
    return group;
}

static bool is_told_already(const struct wm_doctor_source *source, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (belong_together(&source->channels[i], &source->channels[index]))
            return true;
    }
    return false;
}

/* Two digits: more would be those of our own looks. */
static void put_period(char text[WM_QUANTITY_SIZE], double seconds)
{
    char digits[WM_QUANTITY_SIZE];

    wm_view_number(digits, seconds < 1 ? seconds * 1e3 : seconds, 2);
    snprintf(text, WM_QUANTITY_SIZE, "%.40s %s", digits, seconds < 1 ? "ms" : "s");
}

static void describe_period(const struct wm_doctor_source *source,
                            const struct group *group, char *text, size_t size)
{
    char shortest[WM_QUANTITY_SIZE], longest[WM_QUANTITY_SIZE];

    if (group->longest_s == 0) {
        if (group->most_changes == 0)
            snprintf(text, size, "did not change");
        else
            snprintf(text, size, "changed %zu time%s", group->most_changes,
                     group->most_changes == 1 ? "" : "s");
        return;
    }
    put_period(shortest, group->shortest_s);
    put_period(longest, group->longest_s);
    if (group->longest_s < SEEN_FACTOR * source->look_s)
        snprintf(text, size, "new at every look, which is every %s", longest);
    else if (strcmp(shortest, longest) == 0)
        snprintf(text, size, "new every %s", longest);
    else
        snprintf(text, size, "new every %s to %s", shortest, longest);
}

static void print_group(const struct wm_doctor_source *source, const struct group *group,
                        FILE *out)
{
    char devices[96], period[160];
    const char *first = group->first->channel->label, *last = group->last->channel->label;

    if (group->count == 1)
        snprintf(devices, sizeof(devices), "%.40s", first);
    else if (group->count == 2)
        snprintf(devices, sizeof(devices), "%.40s, %.40s", first, last);
    else
        snprintf(devices, sizeof(devices), "%.30s to %.30s (%zu)", first, last,
                 group->count);

    fprintf(out, "  %-*s %-*s ", METRIC_WIDTH, group->first->channel->metric, DEVICES_WIDTH,
            devices);
    if (group->first->state != WM_READING_OK) {
        fprintf(out, "n/a: %s\n", group->first->why);
    } else if (group->first->dead) {
        fprintf(out, "dead: this counter did not move; it cannot be trusted\n");
    } else {
        describe_period(source, group, period, sizeof(period));
        fprintf(out, "%s\n", period);
    }
}

static void print_source(const struct wm_doctor_source *source, FILE *out)
{
    char cost[WM_QUANTITY_SIZE];

    fprintf(out, "%-*s %-*s %s\n", NAME_WIDTH, source->name, HEALTH_WIDTH,
            wm_health_name(source->health),
            source->detail ? source->detail : source->summary);
    for (size_t i = 0; i < source->channel_count; i++) {
        if (is_told_already(source, i))
            continue;
        struct group group = group_of(source, i);
        print_group(source, &group, out);
    }
    if (source->channel_count > 0) {
        wm_view_duration(cost, source->read_s, NULL);
        fprintf(out, "  one reading of all this takes %s\n", cost);
    }
    for (size_t i = 0; i < source->advice_count; i++) {
        fprintf(out, "  ! %s\n", source->advice[i].problem);
        if (source->advice[i].command)
            fprintf(out, "    %s\n", source->advice[i].command);
    }
}

static void print_text(const struct wm_doctor *doctor, FILE *out)
{
    const struct wm_doctor_source *source;

    for (size_t i = 0; (source = wm_doctor_source(doctor, i)) != NULL; i++) {
        if (i > 0)
            fputc('\n', out);
        print_source(source, out);
    }
    if (!wm_doctor_can_measure(doctor))
        fprintf(out, "\nNothing at all can be measured here.\n");
}

static const char *const state_names[] = {
    [WM_READING_NONE] = "none",
    [WM_READING_OK] = "ok",
    [WM_READING_UNSUPPORTED] = "unsupported",
    [WM_READING_DENIED] = "denied",
    [WM_READING_FAILED] = "failed",
    [WM_READING_STALE] = "stale",
};

static json_t *text_or_null(const char *text)
{
    return text ? wm_text_json(text) : json_null();
}

static json_t *period_json(const struct wm_doctor_source *source,
                           const struct wm_doctor_channel *channel)
{
    bool seen = channel->period_s >= SEEN_FACTOR * source->look_s;

    return seen && channel->period_s > 0 ? json_real(channel->period_s) : json_null();
}

static json_t *channel_json(const struct wm_doctor_source *source,
                            const struct wm_doctor_channel *channel)
{
    bool ok = channel->state == WM_READING_OK;

    return json_pack("{s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:I, s:o, s:b}", /**/
                     "label", wm_text_json(channel->channel->label),       /**/
                     "device", wm_text_json(channel->channel->device),     /**/
                     "metric", wm_text_json(channel->channel->metric),     /**/
                     "unit", channel->channel->unit,                       /**/
                     "state", state_names[channel->state],                 /**/
                     "why", text_or_null(channel->why),                    /**/
                     "value", ok ? json_real(channel->value) : json_null(), "changes",
                     (json_int_t)channel->changes, /**/
                     "period_seconds", period_json(source, channel), "dead",
                     (int)channel->dead);
}

static json_t *source_json(const struct wm_doctor_source *source)
{
    json_t *channels = json_array(), *advice = json_array();

    for (size_t i = 0; i < source->channel_count; i++)
        json_array_append_new(channels, channel_json(source, &source->channels[i]));
    for (size_t i = 0; i < source->advice_count; i++)
        json_array_append_new(advice,
                              json_pack("{s:o, s:o}", "problem",
                                        wm_text_json(source->advice[i].problem), "command",
                                        text_or_null(source->advice[i].command)));
    bool looked = source->look_s > 0;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", source->name,
                     "health", wm_health_name(source->health), "summary", source->summary,
                     "detail", text_or_null(source->detail), "read_seconds",
                     looked ? json_real(source->read_s) : json_null(), "look_seconds",
                     looked ? json_real(source->look_s) : json_null(), "channels", channels,
                     "advice", advice);
}

/* Jansson passes a failed part on as NULL, and so the whole is NULL. */
static json_t *doctor_json(const struct wm_doctor *doctor)
{
    const struct wm_doctor_source *source;
    json_t *sources = json_array();

    for (size_t i = 0; (source = wm_doctor_source(doctor, i)) != NULL; i++) {
        if (json_array_append_new(sources, source_json(source)) != 0) {
            json_decref(sources);
            return NULL;
        }
    }
    return json_pack("{s:b, s:o}", "can_measure", (int)wm_doctor_can_measure(doctor),
                     "sources", sources);
}

static int print_json(const struct wm_doctor *doctor, FILE *out, struct wm_error *err)
{
    json_t *root = doctor_json(doctor);

    if (!root)
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    int failed = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (failed && !ferror(out))
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    fputc('\n', out);
    return WM_OK;
}

int wm_doctor_print(const struct wm_doctor *doctor, enum wm_doctor_format format, FILE *out,
                    struct wm_error *err)
{
    int status = WM_OK;

    if (format == WM_DOCTOR_JSON)
        status = print_json(doctor, out, err);
    else
        print_text(doctor, out);
    if (status == WM_OK && (fflush(out) != 0 || ferror(out)))
        status = wm_fail(err, WM_EIO, "the findings could not be written");
    return status;
}
