/* SPDX-License-Identifier: Apache-2.0 */
/* view_list.c - the runs of a recording, for people and for programs. No more is read of a
 * run than its facts and its first sample, so that a file of many is listed at once; of one
 * without a result all samples are, since only the last of them says how long it took. */
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "record/record_experiment.h"
#include "record/record_read.h"
#include "record/run/record_writer.h"
#include "view/json/view_json_node.h"
#include "view/text/view_text_line.h"
#include "view/view.h"

enum { TIME_SIZE = 40, STATUS_SIZE = 24, CPU_SIZE = 64 };

/* What stands before the command. */
enum { LIST_WIDTH = 64 };

/* One run. */
struct listed {
    size_t number;
    const struct wm_run *run;
    const struct wm_result *result; /* NULL: it has none */
    size_t channels;
    int64_t start_unix_ns;
    struct wm_value time, cpu_time;
};

/* The reader of a meter's file knows no end but that of the rows that were read. */
static bool has_end_after(const struct listed *listed, int64_t when_ns)
{
    return listed->result && listed->result->end_ns > when_ns;
}

static struct wm_value cpu_time_of(const struct wm_result *result)
{
    if (!result)
        return wm_value_missing("the recording has no result");
    if (!result->cpu_total_seconds.known)
        return wm_value_missing("it is not in the result");
    return (struct wm_value) {
        .number = result->cpu_total_seconds.number,
        .known = true,
        .why = result->cpu_note[0] ? result->cpu_note : NULL,
    };
}

static size_t find_cpu_counter(const struct wm_recording *recording)
{
    const size_t count = wm_recording_channel_count(recording);
    size_t i = 0;

    for (; i < count; i++) {
        const struct wm_channel *channel = wm_recording_channel(recording, i);
        if (strcmp(channel->source, "tracker") == 0 &&
            strcmp(channel->label, "tree") == 0 && strcmp(channel->metric, "cpu_time") == 0)
            break;
    }
    return i;
}

/* From the first sample to the end of the run, or to its last sample, as in the report.
 * What has no result has the CPU time of its last sample, too. */
static int find_times(struct wm_recording *recording, struct listed *listed,
                      struct wm_error *err)
{
    const size_t counter = find_cpu_counter(recording);
    struct wm_tick tick;
    int64_t last_ns;

    listed->start_unix_ns = listed->run->anchor_unix_ns;
    listed->time = wm_value_missing("no sample was taken");
    listed->cpu_time = cpu_time_of(listed->result);
    int status = wm_recording_next(recording, &tick, err);
    if (status <= 0)
        return status;
    const int64_t first_ns = tick.when_ns;
    do {
        last_ns = tick.when_ns;
        if (!listed->result && counter < tick.count &&
            tick.readings[counter].state == WM_READING_OK)
            listed->cpu_time = wm_value_known(tick.readings[counter].value);
    } while (!has_end_after(listed, last_ns) &&
             (status = wm_recording_next(recording, &tick, err)) > 0);
    if (has_end_after(listed, last_ns))
        last_ns = listed->result->end_ns;
    listed->start_unix_ns += first_ns - listed->run->anchor_ns;
    listed->time = wm_value_known((double)(last_ns - first_ns) / WM_NS_PER_S);
    return status < 0 ? status : WM_OK;
}

static void status_text(char text[STATUS_SIZE], const struct listed *listed)
{
    const struct wm_result *result = listed->result;

    if (!result)
        snprintf(text, STATUS_SIZE, "%s",
                 wm_writer_is_there(listed->run) ? "running" : "unfinished");
    else if (result->exit_signal > 0)
        wm_line_signal(text, STATUS_SIZE, result->exit_signal);
    else if (result->exit_status.known)
        snprintf(text, STATUS_SIZE, "%.0f", result->exit_status.number);
    else
        snprintf(text, STATUS_SIZE, "n/a");
}

static void print_listed(const struct listed *listed, FILE *out)
{
    char start[TIME_SIZE], status[STATUS_SIZE], cpu[CPU_SIZE];
    int room = wm_view_columns(out) - LIST_WIDTH;
    double runs = wm_run_batch(listed->run);
    bool is_least = listed->cpu_time.known && listed->cpu_time.why;

    wm_clock_rfc3339(listed->start_unix_ns, start, sizeof(start));
    status_text(status, listed);
    fprintf(out, "%3zu  %.10s %.5s", listed->number, start, start + 11);
    wm_view_right(out, wm_line_seconds(&listed->time).text, 12);
    snprintf(cpu, sizeof(cpu), "%s%s", is_least ? ">= " : "",
             wm_line_seconds(&listed->cpu_time).text);
    wm_view_right(out, cpu, 11);
    fprintf(out, "  %-11s%5d", status, listed->run->expected_gpu_count);
    if (listed->run->command_count > 0)
        fputs("  ", out);
    if (runs > 1)
        room -= fprintf(out, "%.0f × ", runs) - 1; /* × has two bytes */
    wm_line_print_command(listed->run, room, out);
    fputc('\n', out);
}

static void put_value(json_t **object, json_t **why, const char *key,
                      const struct wm_value *value)
{
    wm_json_set(object, key, wm_json_known(value->known, value->number));
    if (value->why)
        wm_json_set(why, key, json_string(value->why));
}

static json_t *listed_json(const struct listed *listed)
{
    json_t *object = json_object(), *why = json_object();
    const struct wm_run *run = listed->run;
    char start[TIME_SIZE];

    wm_clock_rfc3339(listed->start_unix_ns, start, sizeof(start));
    wm_json_set(&object, "run", json_integer((json_int_t)listed->number));
    wm_json_set(&object, "id", wm_text_json(run->id));
    wm_json_set(&object, "start", json_string(start));
    wm_json_set(&object, "host", wm_text_json(run->host));
    wm_json_set(&object, "mode", wm_text_json(run->mode));
    wm_json_set(&object, "command", wm_json_command(run));
    wm_json_set(&object, "runs_per_repeat", wm_json_number(wm_run_batch(run)));
    wm_json_set(&object, "experiment", wm_text_json(wm_run_note(run, WM_NOTE_EXPERIMENT)));
    wm_json_set(&object, "complete", json_boolean(listed->result));
    wm_json_set(&object, "running",
                json_boolean(!listed->result && wm_writer_is_there(run)));
    wm_json_set(&object, "exit", wm_json_exit(listed->result));
    put_value(&object, &why, "time", &listed->time);
    put_value(&object, &why, "cpu_time", &listed->cpu_time);
    wm_json_set(&object, "gpus", json_integer(run->expected_gpu_count));
    wm_json_set(&object, "channels", json_integer((json_int_t)listed->channels));
    wm_json_set(&object, "why", why);
    return object;
}

/* A run that cannot be read hides none of the others. */
static void add_unreadable(json_t **array, size_t number, const struct wm_error *why)
{
    json_t *object = json_object();

    wm_json_set(&object, "run", json_integer((json_int_t)number));
    wm_json_set(&object, "trouble", wm_text_json(why->text));
    wm_json_add(array, object);
}

/* The run to `out`, or if that is NULL to the array. */
static int add_run(const char *path, size_t number, FILE *out, json_t **array,
                   struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct listed listed = { .number = number };

    int status = wm_recording_open(path, number, &recording, err);
    if (status == WM_OK) {
        listed.run = wm_recording_run(recording);
        listed.result = wm_recording_result(recording);
        listed.channels = wm_recording_channel_count(recording);
        status = find_times(recording, &listed, err);
    }
    if (status == WM_OK && out)
        print_listed(&listed, out);
    else if (status == WM_OK)
        wm_json_add(array, listed_json(&listed));
    wm_recording_close(recording);
    if (status == WM_OK || status == WM_ENOMEM)
        return status;
    if (out)
        fprintf(out, "%3zu  n/a (%s)\n", number, err->text);
    else
        add_unreadable(array, number, err);
    return WM_OK;
}

static int add_all(const char *path, size_t count, FILE *out, json_t **array,
                   struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = add_run(path, i, out, array, err);
    return status;
}

static int print_json(const char *path, size_t count, FILE *out, struct wm_error *err)
{
    json_t *object = json_object(), *array = json_array();

    int status = add_all(path, count, NULL, &array, err);
    wm_json_set(&object, "recording", wm_text_json(wm_text_path(path)));
    wm_json_set(&object, "runs", array);
    if (status == WM_OK)
        return wm_view_dump(object, JSON_INDENT(2), out, err);
    json_decref(object);
    return status;
}

int wm_report_print_list(const char *path, enum wm_format format, FILE *out,
                         struct wm_error *err)
{
    size_t count = 0;

    int status = wm_view_check(format, WM_VIEW_PLAIN, err);
    if (status == WM_OK)
        status = wm_recording_count_runs(path, &count, err);
    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON) {
        status = print_json(path, count, out, err);
    } else {
        fputs("Run  Start (UTC)              Time   CPU time  Status      GPUs  Command\n",
              out);
        status = add_all(path, count, out, NULL, err);
    }
    return status == WM_OK ? wm_view_flush(out, "the list", err) : status;
}
