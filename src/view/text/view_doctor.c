/* SPDX-License-Identifier: Apache-2.0 */
/* view_doctor.c - an examination, for people. */
#include "view/view.h"

#include <string.h>

#include "base/base_error.h"
#include "view/text/view_text_line.h"

#define NAME_WIDTH 8
#define HEALTH_WIDTH 7
#define METRIC_WIDTH 20
#define DEVICES_WIDTH 24

bool wm_view_doctor_sees(const struct wm_doctor_source *source, double period_s)
{
    return period_s > 0 && period_s >= 2 * source->look_s;
}

/* Channels that went the same way are one line: the same metric of all devices. */
static bool belong_together(const struct wm_doctor_channel *one,
                            const struct wm_doctor_channel *other)
{
    return strcmp(one->channel->metric, other->channel->metric) == 0 &&
           one->channel->device_kind == other->channel->device_kind &&
           one->channel->origin == other->channel->origin && one->state == other->state &&
           one->dead == other->dead && (one->changes == 0) == (other->changes == 0) &&
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

/* Two digits: more would be those of our own readings. */
static void put_period(char text[WM_QUANTITY_SIZE], double seconds)
{
    snprintf(text, WM_QUANTITY_SIZE, "%.40s %s",
             wm_view_number(seconds < 1 ? seconds * 1e3 : seconds, 2).text,
             seconds < 1 ? "ms" : "s");
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
    if (!wm_view_doctor_sees(source, group->longest_s))
        snprintf(text, size, "new at every reading, which is every %s", longest);
    else if (strcmp(shortest, longest) == 0)
        snprintf(text, size, "new every %s", longest);
    else
        snprintf(text, size, "new every %s to %s", shortest, longest);
}

/* "gpu0", "gpu0, gpu1", "gpu0 to gpu7 (8)" */
static void name_devices(const char *first, const char *last, size_t count, char *text,
                         size_t size)
{
    if (count == 1)
        snprintf(text, size, "%.40s", first);
    else if (count == 2)
        snprintf(text, size, "%.40s, %.40s", first, last);
    else
        snprintf(text, size, "%.30s to %.30s (%zu)", first, last, count);
}

static void print_group(const struct wm_doctor_source *source, const struct group *group,
                        FILE *out)
{
    const struct wm_doctor_channel *first = group->first;
    struct wm_detail detail = { "" };
    char devices[96], period[160];

    name_devices(first->channel->label, group->last->channel->label, group->count, devices,
                 sizeof(devices));
    if (first->state != WM_READING_OK) {
        wm_line_add(&detail, "", "n/a: %s", first->why);
    } else if (first->dead) {
        wm_line_add(&detail, "", "dead: this counter did not move; it cannot be trusted");
    } else {
        describe_period(source, group, period, sizeof(period));
        wm_line_add(&detail, "", "%s", period);
    }
    wm_line_add_origin(&detail, first->channel->origin);
    fprintf(out, "  %-*s %-*s %s\n", METRIC_WIDTH, first->channel->metric, DEVICES_WIDTH,
            devices, detail.text);
}

static void print_obstacles(const struct wm_doctor_source *source, FILE *out)
{
    for (size_t i = 0; i < source->silent_count; i++)
        fprintf(out, "  ! %s is there, but does not answer\n", source->silent[i]);
    for (size_t i = 0; i < source->advice_count; i++) {
        fprintf(out, "  ! %s\n", source->advice[i].problem);
        if (source->advice[i].command)
            fprintf(out, "    %s\n", source->advice[i].command);
    }
}

static void print_source(const struct wm_doctor_source *source, FILE *out)
{
    fprintf(out, "%-*s %-*s", NAME_WIDTH, source->name, HEALTH_WIDTH,
            wm_health_name(source->health));
    wm_line_wrap(out, source->detail ? source->detail : source->summary,
                 NAME_WIDTH + 1 + HEALTH_WIDTH);
    for (size_t i = 0; i < source->channel_count; i++) {
        if (is_told_already(source, i))
            continue;
        struct group group = group_of(source, i);
        print_group(source, &group, out);
    }
    if (source->channel_count > 0)
        fprintf(out, "  one reading of all this takes %s\n",
                wm_view_duration(source->read_s, NULL).text);
    print_obstacles(source, out);
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

int wm_doctor_print(const struct wm_doctor *doctor, enum wm_format format, FILE *out,
                    struct wm_error *err)
{
    int status = wm_view_check(format, WM_VIEW_PLAIN, err);

    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON)
        status = wm_view_dump(wm_view_doctor_json(doctor), JSON_INDENT(2), out, err);
    else
        print_text(doctor, out);
    return status == WM_OK ? wm_view_flush(out, "the findings", err) : status;
}
