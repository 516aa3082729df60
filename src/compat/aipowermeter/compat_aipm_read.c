/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_read.c - AIPowerMeter's recordings (power_metrics.json), whichever of its
 * generations wrote them.
 *
 * Each line is a record: averages over a window, and the time at which it was
 * written, which is the end of that window. The integral over the records, by
 * straight lines as AIPowerMeter has it, therefore lacks the first window of each
 * segment; it is put back here by one more tick, a usual spacing earlier, with the
 * values of the first record, and the run says so.
 *
 * The file is read twice: what it holds (channels, segments) has to be known
 * before the first tick. Lines that cannot be read, pauses and a clock that was
 * set back end a segment: nothing is integrated across them.
 */
#include "compat/aipowermeter/compat_aipm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/record_channel.h"
#include "record/record_ops.h"

/* Of all channels together. Pauses beyond that have no reason in the report. */
enum { GAPS_MAX = 65536 };

struct aipm_reader {
    struct wm_reader_head head;
    struct wm_aipm_records records;
    struct wm_aipm_channels set;
    enum wm_origin origins[WM_DEVICE_OTHER + 1]; /* by kind of device */
    size_t gap_room;
    bool has_package; /* the file speaks of the packages, with a number or not */

    bool is_placed;               /* not all ticks of `placed` were given out yet */
    struct wm_aipm_record placed; /* it has no hole and no window once they were */
    struct wm_reading *record;    /* its values */
    struct wm_reading *shown;     /* as it is given out */
    double *totals;               /* of the counters, whose records are increases */
};

struct survey {
    const char *generation;
    int64_t first_ns, end_ns;

    /* The first windows that are put back. */
    bool is_start_known;
    uint64_t windows;
    double window_seconds, window_joules;
};

static void add_window(struct survey *survey, const struct wm_aipm_record *record,
                       struct wm_known watts)
{
    survey->is_start_known |= record->is_start_known;
    if (!record->has_window || record->is_start_known)
        return;
    double seconds = (double)(record->when_ns - record->window_ns) / 1e9;
    survey->windows++;
    survey->window_seconds += seconds;
    if (watts.known)
        survey->window_joules += watts.number * seconds;
}

/* One for each channel: the reason is the same for all. Only the first ones fit. */
static int add_gap(struct aipm_reader *reader, const struct wm_aipm_record *record,
                   struct wm_error *err)
{
    if (!record->has_hole || reader->head.gap_count == GAPS_MAX)
        return WM_OK;
    if (wm_array_reserve(&reader->head.gaps, reader->head.gap_count, &reader->gap_room,
                         sizeof(*reader->head.gaps)) < 0)
        return wm_fail_memory(err, wm_text_path(reader->records.path));
    struct wm_gap gap = {
        .from_ns = record->hole_ns,
        .to_ns = record->hole_ns,
        .state = WM_READING_FAILED,
    };
    snprintf(gap.why, sizeof(gap.why), "%s", record->why);
    reader->head.gaps[reader->head.gap_count++] = gap;
    return WM_OK;
}

/* Until here a gap is one of the whole recording. */
static int spread_gaps(struct aipm_reader *reader, struct wm_error *err)
{
    size_t most = GAPS_MAX / reader->set.count, count = reader->head.gap_count;
    if (count > most)
        count = most;
    size_t all = count * reader->set.count;
    struct wm_gap *gaps = realloc(reader->head.gaps, (all + 1) * sizeof(*gaps));

    if (!gaps)
        return wm_fail_memory(err, wm_text_path(reader->records.path));
    for (size_t i = count; i < all; i++) {
        gaps[i] = gaps[i - count];
        gaps[i].channel++;
    }
    reader->head.gaps = gaps;
    reader->head.gap_count = all;
    return WM_OK;
}

/* What we have written beside the metrics: of which kinds of device they were not
 * measured. The worst of all records counts. */
static void take_origins(struct aipm_reader *reader, const json_t *line)
{
    json_t *origins = json_object_get(line, "origin"), *word;
    const char *name;

    json_object_foreach(origins, name, word)
    {
        int kind, origin;
        if (wm_word_value(WM_WORDS_DEVICE_KIND, name, &kind) &&
            wm_word_value(WM_WORDS_ORIGIN, json_string_value(word), &origin) &&
            kind <= WM_DEVICE_OTHER && origin > (int)reader->origins[kind])
            reader->origins[kind] = (enum wm_origin)origin;
    }
}

static int survey_record(struct aipm_reader *reader, const struct wm_aipm_record *record,
                         struct survey *survey, struct wm_error *err)
{
    bool has_package;
    const struct wm_known watts = wm_aipm_package_watts(record->metrics, &has_package);

    if (wm_aipm_discover(&reader->set, record->metrics) < 0)
        return wm_fail_memory(err, wm_text_path(reader->records.path));
    take_origins(reader, record->line);
    reader->has_package |= has_package;
    if (!survey->generation)
        survey->generation = wm_aipm_generation(record->metrics);
    if (reader->records.count == 1)
        survey->first_ns = record->has_window ? record->window_ns : record->when_ns;
    survey->end_ns = record->when_ns;
    add_window(survey, record, watts);
    return add_gap(reader, record, err);
}

static int survey_file(struct aipm_reader *reader, struct survey *survey,
                       struct wm_error *err)
{
    struct wm_aipm_record record;
    int status;

    while ((status = wm_aipm_records_next(&reader->records, &record, err)) > 0) {
        status = survey_record(reader, &record, survey, err);
        json_decref(record.line);
        if (status < 0)
            return status;
    }
    if (status < 0)
        return status;
    if (reader->records.count == 0)
        return reader->records.bad_lines > 0
                   ? wm_fail(err, WM_EFORMAT, "%s: line %zu: no record of AIPowerMeter",
                             reader->records.path, reader->records.first_bad_line)
                   : wm_fail(err, WM_EFORMAT, "%s: holds no record of AIPowerMeter",
                             reader->records.path);
    if (reader->set.count == 0)
        return wm_fail(err, WM_EFORMAT, "%s: none of its metrics is one of AIPowerMeter's",
                       reader->records.path);
    return spread_gaps(reader, err);
}

/* A number for a note: four digits behind the point, and none that say nothing. */
static const char *note_number(double value, char text[WM_NUMBER_SIZE])
{
    wm_number_format(fabs(value) < 1e9 ? round(value * 1e4) / 1e4 : value, text);
    return text;
}

static int note_windows(struct aipm_reader *reader, const struct survey *survey)
{
    char seconds[WM_NUMBER_SIZE], joules[WM_NUMBER_SIZE], each[WM_NUMBER_SIZE];

    if (survey->windows == 0 && survey->is_start_known)
        return WM_OK;
    if (survey->windows == 0)
        return wm_run_set_note(&reader->head.run, "first window",
                               "unknown and left out: no record follows another");
    return wm_run_set_note(
        &reader->head.run, "first window",
        "added: %s s, %s J of the packages; a record stands for the time before it, and "
        "%s s (the usual spacing) are put before the first one of %s%llu segment%s",
        note_number(survey->window_seconds, seconds),
        note_number(survey->window_joules, joules),
        note_number((double)reader->records.spacing_ns / 1e9, each),
        survey->windows == 1 ? "" : "each of ", (unsigned long long)survey->windows,
        survey->windows == 1 ? "" : "s");
}

static int note_times(struct aipm_reader *reader, int64_t unix_ns)
{
    char zone[WM_LOCALTIME_SIZE];

    wm_localtime_zone(unix_ns, zone);
    return wm_run_set_note(&reader->head.run, "times",
                           "local, without a zone; taken as %s, that of this reader (TZ)",
                           zone);
}

static int note_origin(struct aipm_reader *reader, const struct survey *survey)
{
    return wm_run_set_note(&reader->head.run, "recorded by", "AIPowerMeter, generation %s",
                           survey->generation ? survey->generation : "unknown");
}

/* Those that the channels are said to come from. */
static int add_sources(struct aipm_reader *reader)
{
    int status = WM_OK;

    for (size_t i = 0; i < reader->set.count && status == WM_OK; i++) {
        const char *name = reader->set.channels[i].source;
        if (!wm_run_source(&reader->head.run, name))
            status = wm_run_add_source(&reader->head.run, name, true,
                                       "recorded by AIPowerMeter", NULL);
    }
    return status;
}

static int count_gpus(const struct aipm_reader *reader)
{
    int count = 0;

    for (size_t i = 0; i < reader->set.count; i++)
        count += reader->set.channels[i].device_kind == WM_DEVICE_GPU &&
                 strcmp(reader->set.channels[i].metric, "power") == 0;
    return count;
}

/* What people read first comes first. */
static int fill_run(struct aipm_reader *reader, const char *path,
                    const struct survey *survey, struct wm_error *err)
{
    struct wm_run *run = &reader->head.run;

    int status = wm_aipm_read_run(path, run, err);
    if (status < 0)
        return status;
    run->anchor_ns = survey->first_ns;
    run->anchor_unix_ns = survey->first_ns;
    run->gpu_count = count_gpus(reader);
    run->expected_gpu_count = run->gpu_count;
    bool is_ours = run->version != NULL;
    if (!is_ours)
        run->interval_ns = reader->records.spacing_ns;

    /* What is known of the runs is known of the first. */
    if (reader->records.chosen != WM_AIPM_WHOLE && reader->records.chosen > 0) {
        free(run->id);
        run->id = NULL;
    }
    if (add_sources(reader) < 0 || note_windows(reader, survey) < 0 ||
        note_times(reader, survey->first_ns) < 0 ||
        (!is_ours && note_origin(reader, survey) < 0))
        return wm_fail_memory(err, wm_text_path(reader->records.path));
    return wm_aipm_read_notes(path, run, err);
}

static bool has_channel(const struct aipm_reader *reader, const char *label)
{
    for (size_t i = 0; i < reader->set.count; i++) {
        if (strcmp(reader->set.channels[i].label, label) == 0)
            return true;
    }
    return false;
}

static void say_trouble(struct aipm_reader *reader)
{
    const struct wm_aipm_records *records = &reader->records;
    char *text = reader->head.result.recording_trouble;
    size_t size = sizeof(reader->head.result.recording_trouble);

    if (records->bad_lines > 0)
        wm_text_list(text, size, "; ", "line %zu cannot be read", records->first_bad_line);
    if (records->set_back > 0)
        wm_text_list(text, size, "; ",
                     "the clock was set back (%llu times), and later times are moved on",
                     (unsigned long long)records->set_back);
    if (records->spacing_ns == 0 && records->same_dates > 0)
        wm_text_list(text, size, "; ",
                     "its records have one date: how long they took is not known");
    if (reader->has_package && !has_channel(reader, "package"))
        wm_text_list(text, size, "; ",
                     "none of its intel_power is a number that can be used");
    if (records->is_torn)
        wm_text_list(text, size, "; ", "its last line is cut off and left out");
    if (reader->set.left_out > 0)
        wm_text_list(text, size, "; ", "only the first %zu channels are read",
                     reader->set.count);
}

/* Always there: AIPowerMeter's recordings say nothing of how they ended. */
static void fill_result(struct aipm_reader *reader, const struct survey *survey)
{
    struct wm_result *result = &reader->head.result;

    *result = (struct wm_result) { 0 };
    result->end_ns = survey->end_ns;
    snprintf(result->cpu_method, sizeof(result->cpu_method), "%s",
             "AIPowerMeter, without what ran between its windows");
    result->ticks = reader->records.count + reader->records.bad_lines;
    result->lost_ticks = reader->records.bad_lines;
    say_trouble(reader);
}

/* Its GPUs' power is what NVML told it, with the errors of NVIDIA's boards that
 * docs/energy-uncertainty.md has; one that is simulated makes none. Of the rest nothing is
 * known. */
static struct wm_sensor sensor_of(const struct wm_channel *channel)
{
    if (strcmp(channel->metric, "power") != 0)
        return (struct wm_sensor) { 0 };
    if (channel->device_kind == WM_DEVICE_PLATFORM)
        return (struct wm_sensor) { .kind = WM_SENSOR_TOOL,
                                    .contains = WM_CONTAINS_PLATFORM };
    if (channel->device_kind != WM_DEVICE_GPU || channel->origin == WM_SIMULATED)
        return (struct wm_sensor) { .kind = WM_SENSOR_TOOL };
    return (struct wm_sensor) {
        .kind = WM_SENSOR_TOOL,
        .gain = 0.07,
        .offset = 11,
        .text = "a GPU that AIPowerMeter read",
    };
}

/* The channels have no period: a sensor's value lags behind by about that much, and
 * these are means whose windows are known, and have their place. */
static int make_buffers(struct aipm_reader *reader, struct wm_error *err)
{
    size_t count = reader->set.count;

    reader->head.has_result = true;
    reader->head.channels = reader->set.channels;
    reader->head.channel_count = reader->set.count;
    reader->record = calloc(count + 1, sizeof(*reader->record));
    reader->shown = calloc(count + 1, sizeof(*reader->shown));
    reader->totals = calloc(count + 1, sizeof(*reader->totals));
    if (!reader->record || !reader->shown || !reader->totals)
        return wm_fail_memory(err, wm_text_path(reader->records.path));
    for (size_t i = 0; i < count; i++) {
        struct wm_channel *channel = &reader->set.channels[i];
        channel->origin = reader->origins[channel->device_kind];
        channel->sensor = sensor_of(channel);
    }
    return WM_OK;
}

static int aipm_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct aipm_reader *reader = state;
    struct survey survey = { 0 };
    int64_t next_ns = INT64_MAX;
    size_t index;

    int status = wm_aipm_channels_init(&reader->set, err);
    if (status == WM_OK)
        status = wm_aipm_records_open(&reader->records, path, &reader->head.run_count, err);
    if (status == WM_OK)
        status = wm_reader_choose_run(path, run, reader->head.run_count, &index, err);
    if (status == WM_OK && run != WM_LAST_RUN && reader->head.run_count > 1)
        reader->records.chosen = index;
    bool is_first = reader->records.chosen == WM_AIPM_WHOLE || reader->records.chosen == 0;
    if (status == WM_OK && is_first)
        status = wm_aipm_read_start(path, &reader->records.start_ns, err);
    if (status == WM_OK)
        status = survey_file(reader, &survey, err);
    if (status == WM_OK)
        status = make_buffers(reader, err);
    if (status == WM_OK)
        status = fill_run(reader, path, &survey, err);
    if (status == WM_OK) {
        fill_result(reader, &survey);
        status = wm_aipm_records_next_run(&reader->records, &next_ns, err);
    }
    if (status < 0)
        return status;

    /* What comes behind the run that is read is no part of it. */
    const struct wm_metrics_window window = {
        .from_ns = is_first ? INT64_MIN : survey.first_ns,
        .to_ns = next_ns < INT64_MAX ? next_ns - reader->records.spacing_ns : INT64_MAX,
        .unix_at_zero_ns = 0,
    };
    status = wm_aipm_read_results(path, &window, &reader->head.result.metrics, err);
    return status < 0 ? status : wm_aipm_records_rewind(&reader->records, err);
}

/* 1, or 0 past the last record. */
static int load_record(struct aipm_reader *reader, struct wm_error *err)
{
    struct wm_aipm_record *record = &reader->placed;

    int status = wm_aipm_records_next(&reader->records, record, err);
    if (status <= 0)
        return status;
    memset(reader->record, 0, reader->set.count * sizeof(*reader->record));
    wm_aipm_values(&reader->set, record->metrics, reader->record);
    json_decref(record->line);
    return 1;
}

/* The values of the record, as they hold at `when_ns`; at the beginning of its
 * window a counter has not got them yet. */
static void show_record(struct aipm_reader *reader, int64_t when_ns, bool is_window)
{
    for (size_t i = 0; i < reader->set.count; i++) {
        struct wm_reading *shown = &reader->shown[i];
        *shown = reader->record[i];
        if (shown->state != WM_READING_OK)
            continue;
        shown->when_ns = when_ns;
        if (reader->set.channels[i].kind == WM_COUNTER) {
            if (!is_window)
                reader->totals[i] += shown->value;
            shown->value = reader->totals[i];
        }
    }
}

static int aipm_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct aipm_reader *reader = state;
    struct wm_aipm_record *placed = &reader->placed;
    int64_t when_ns;

    if (!reader->is_placed) {
        int status = load_record(reader, err);
        if (status <= 0)
            return status;
    }
    reader->is_placed = placed->has_hole || placed->has_window;
    if (placed->has_hole) {
        when_ns = placed->hole_ns;
        placed->has_hole = false;
        memset(reader->shown, 0, reader->set.count * sizeof(*reader->shown));
    } else if (placed->has_window) {
        when_ns = placed->window_ns;
        placed->has_window = false;
        show_record(reader, when_ns, true);
    } else {
        when_ns = placed->when_ns;
        show_record(reader, when_ns, false);
    }
    *ret_tick = (struct wm_tick) {
        .when_ns = when_ns,
        .readings = reader->shown,
        .count = reader->set.count,
    };
    return 1;
}

static void aipm_close(void *state)
{
    struct aipm_reader *reader = state;

    wm_aipm_records_close(&reader->records);
    wm_aipm_channels_release(&reader->set);
    wm_reader_head_release(&reader->head);
    free(reader->record);
    free(reader->shown);
    free(reader->totals);
}

const struct wm_reader_ops wm_reader_aipm = {
    .name = "AIPowerMeter",
    .recognises = wm_aipm_recognises,
    .state_size = sizeof(struct aipm_reader),
    .open = aipm_open,
    .next = aipm_next,
    .close = aipm_close,
};
