/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_aipm.c - AIPowerMeter's recordings (power_metrics.json), whichever of its
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
 *
 * The last run of a file is all of it, as AIPowerMeter has it. What stands before each
 * end of a recording segment is a run as well, where there is more than one of them.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_number.h"
#include "base/base_text.h"
#include "record/read_aipm_metrics.h"
#include "record/read_aipm_run.h"
#include "record/record_aipm_results.h"
#include "record/record_channel.h"
#include "record/record_lines.h"
#include "record/record_localtime.h"
#include "record/record_ops.h"
#include "record/record_python_json.h"
#include "record/record_text.h"

#define SEGMENT_END "END OF RECORDING SEGMENT"

/* In place of a run's number: all that the file holds. */
#define WHOLE ((size_t)-1)

/* A line has a few numbers for each process. */
enum { LINE_MAX_LENGTH = 16 * 1024 * 1024 };

/* So many of them tell what the usual spacing is. */
enum { SPACINGS_MAX = 4096 };

/* A recorder that is merely slow is back within a minute. */
#define LONGEST_SPACING_NS (60 * WM_NS_PER_S)
#define LONGEST_SPACINGS 10

/* Of all channels together. Pauses beyond that have no reason in the report. */
enum { GAPS_MAX = 65536 };

struct record {
    json_t *line; /* owns all of it */
    const json_t *metrics;
    int64_t date_ns; /* since 1970 */
};

/* Where the records come to lie. Times only grow, whatever the clock did. */
struct timeline {
    bool started;
    int64_t date_ns;  /* of the last record */
    int64_t when_ns;  /* the same in this timeline, */
    int64_t shift_ns; /* which is ahead of the dates by that */
    const char *why;  /* the next record begins a segment; NULL: it does not */
};

/* The ticks that a record comes to; -1: there is no such tick. */
struct placed {
    int64_t hole_ns;   /* the first one without values, after a segment */
    int64_t window_ns; /* where the window of a segment's first record begins */
    int64_t when_ns;
    const char *why; /* of the hole */
};

struct aipm_reader {
    struct wm_reader_head head;
    const char *path; /* for messages */
    struct wm_lines lines;
    struct wm_aipm_channels set;
    enum wm_origin origins[WM_DEVICE_OTHER + 1]; /* by kind of device */
    size_t gap_room;

    size_t chosen; /* which run is read, or WHOLE */
    size_t part;   /* the run that the file has come to, */
    bool in_part;  /* and whether there was anything of it */

    int64_t spacing_ns; /* the usual one; 0: unknown */
    struct timeline timeline;
    bool in_rest; /* behind the last whole line */
    uint64_t records, bad_lines, segments, set_back, same_dates;
    bool has_package; /* the file speaks of the packages, with a number or not */
    size_t first_bad_line;
    bool is_torn; /* its last line is */

    struct placed placed;
    struct wm_reading *record; /* as it stands in the file */
    struct wm_reading *shown;  /* as it is given out */
    double *totals;            /* of the counters, whose records are increases */
};

/* The first words of a record, or a recording of which nothing is there but its
 * end. */
static bool aipm_recognises(const char *head, size_t length)
{
    static const char *const starts[] = { "\"date\"", "\"metrics\"" };
    static const char end[] = "\"" SEGMENT_END "\"";
    size_t at = 0, mark = wm_text_mark(head, length);

    head += mark;
    length -= mark;
    if (length >= sizeof(end) - 1 && memcmp(head, end, sizeof(end) - 1) == 0)
        return true;
    if (length == 0 || head[at++] != '{')
        return false;
    while (at < length && (head[at] == ' ' || head[at] == '\t'))
        at++;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t word = strlen(starts[i]);
        if (length - at >= word && memcmp(head + at, starts[i], word) == 0)
            return true;
    }
    return false;
}

static int out_of_memory(const struct aipm_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", reader->path);
}

/* Takes `line` over. False where it is no record. */
static bool take_record(const struct aipm_reader *reader, json_t *line,
                        struct record *ret_record)
{
    const json_t *date = json_object_get(line, "date");
    struct record record = { .line = line, .metrics = json_object_get(line, "metrics") };

    if (!json_is_string(date) || !json_is_object(record.metrics) ||
        !wm_localtime_parse(json_string_value(date), json_string_length(date),
                            reader->timeline.started ? reader->timeline.date_ns : 0,
                            &record.date_ns)) {
        json_decref(line);
        return false;
    }
    *ret_record = record;
    return true;
}

static void end_segment(struct aipm_reader *reader, const char *why)
{
    if (!reader->timeline.why)
        reader->timeline.why = why;
}

static bool is_blank(const char *text, size_t length)
{
    return strspn(text, " \t\r\n") >= length;
}

static bool is_end(const char *text, size_t length)
{
    static const char end[] = "\"" SEGMENT_END "\"";
    size_t start = strspn(text, " \t");

    return length - start >= sizeof(end) - 1 &&
           memcmp(text + start, end, sizeof(end) - 1) == 0 &&
           is_blank(text + start + sizeof(end) - 1, length - start - (sizeof(end) - 1));
}

/* Whether a line is of the run that is read; which one that is follows from the ends of
 * segments, and from lines that look like records. */
static bool follow_parts(struct aipm_reader *reader, const char *text, size_t length)
{
    if (is_end(text, length)) {
        reader->part += reader->in_part;
        reader->in_part = false;
        return true;
    }
    reader->in_part |= text[strspn(text, " \t")] == '{' && text[length - 1] == '}';
    return reader->chosen == WHOLE || reader->part == reader->chosen;
}

/* What a line comes to: 1 and a record; 0 for anything else. */
static int take_line(struct aipm_reader *reader, char *text, size_t length, bool is_whole,
                     struct record *ret_record, struct wm_error *err)
{
    json_t *line = NULL;

    if (is_blank(text, length) || !follow_parts(reader, text, length))
        return 0;
    if (is_end(text, length)) {
        end_segment(reader, "a pause between two segments of the recording");
        return 0;
    }
    if (wm_python_json(text, length, &line) < 0)
        return out_of_memory(reader, err);
    if (take_record(reader, line, ret_record))
        return 1;
    if (!is_whole) {
        reader->is_torn = true;
        return 0;
    }
    if (reader->bad_lines++ == 0)
        reader->first_bad_line = reader->lines.number;
    end_segment(reader, "a line of the recording cannot be read");
    return 0;
}

static bool is_past_chosen(const struct aipm_reader *reader)
{
    return reader->chosen != WHOLE && reader->part > reader->chosen;
}

/* 1 and the next record, whose `line` is the caller's; 0 past the last one. */
static int next_record(struct aipm_reader *reader, struct record *ret_record,
                       struct wm_error *err)
{
    int status = 0;
    size_t length;
    char *text;

    while (!reader->in_rest && status == 0 && !is_past_chosen(reader)) {
        status = wm_lines_next(&reader->lines, &text, &length, err);
        if (status < 0)
            return status;
        reader->in_rest = status == 0;
        if (reader->in_rest)
            length = wm_lines_rest(&reader->lines, &text);
        status = take_line(reader, text, length, !reader->in_rest, ret_record, err);
    }
    return status;
}

static int rewind_records(struct aipm_reader *reader, struct wm_error *err)
{
    reader->timeline = (struct timeline) { 0 };
    reader->part = 0;
    reader->in_part = false;
    reader->in_rest = false;
    reader->is_torn = false;
    reader->bad_lines = 0;
    reader->records = 0;
    reader->segments = 0;
    reader->set_back = 0;
    reader->same_dates = 0;
    return wm_lines_rewind(&reader->lines, err);
}

/* The lines are not read any closer than it takes to tell the runs apart. */
static int count_parts(struct aipm_reader *reader, struct wm_error *err)
{
    size_t length;
    char *text;
    int status;

    reader->chosen = WHOLE;
    while ((status = wm_lines_next(&reader->lines, &text, &length, err)) > 0) {
        if (!is_blank(text, length))
            follow_parts(reader, text, length);
    }
    if (status < 0)
        return status;
    length = wm_lines_rest(&reader->lines, &text);
    if (!is_blank(text, length))
        follow_parts(reader, text, length);
    reader->head.run_count = reader->part + reader->in_part;
    if (reader->head.run_count == 0)
        reader->head.run_count = 1;
    return rewind_records(reader, err);
}

/* Why this record begins a segment, after another one; NULL: it does not. */
static const char *reason_to_cut(const struct aipm_reader *reader, int64_t date_ns)
{
    const struct timeline *timeline = &reader->timeline;
    int64_t since_ns = date_ns - timeline->date_ns;

    if (timeline->why)
        return timeline->why;
    if (since_ns < 0)
        return "the clock was set back";
    if (reader->spacing_ns > 0 && since_ns > LONGEST_SPACING_NS &&
        since_ns / LONGEST_SPACINGS > reader->spacing_ns)
        return "the recording has no record for a while";
    return NULL;
}

static int too_late(const struct aipm_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "%s: line %zu: its times go beyond the year 2100",
                   reader->path, reader->lines.number);
}

/* Finds the place of a record in the timeline, which goes on from there. */
static int place_record(struct aipm_reader *reader, int64_t date_ns,
                        struct placed *ret_placed, struct wm_error *err)
{
    struct timeline *timeline = &reader->timeline;
    const char *why = timeline->started ? reason_to_cut(reader, date_ns) : NULL;
    struct placed placed = {
        .hole_ns = why ? timeline->when_ns + 1 : -1,
        .window_ns = -1,
        .when_ns = date_ns + timeline->shift_ns,
        .why = why,
    };

    if (timeline->started && !why) {
        /* A record in the same microsecond as the last. */
        if (placed.when_ns <= timeline->when_ns) {
            placed.when_ns = timeline->when_ns + 1;
            reader->same_dates++;
        }
    } else {
        int64_t earliest_ns = why ? placed.hole_ns + 1 : 0;
        if (placed.when_ns <= earliest_ns) {
            placed.when_ns =
                earliest_ns + (reader->spacing_ns > 0 ? reader->spacing_ns : 1);
            timeline->shift_ns = placed.when_ns - date_ns;
        }
        reader->set_back += timeline->started && date_ns < timeline->date_ns;
        if (reader->spacing_ns > 0) {
            placed.window_ns = placed.when_ns - reader->spacing_ns;
            if (placed.window_ns < earliest_ns)
                placed.window_ns = earliest_ns;
        }
        reader->segments++;
    }
    if (placed.when_ns > WM_TIME_MAX_NS)
        return too_late(reader, err);

    timeline->started = true;
    timeline->date_ns = date_ns;
    timeline->when_ns = placed.when_ns;
    timeline->why = NULL;
    reader->records++;
    *ret_placed = placed;
    return WM_OK;
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* The median of those in the beginning of the file, within segments. */
static int find_spacing(struct aipm_reader *reader, struct wm_error *err)
{
    int64_t *spacings = calloc(SPACINGS_MAX, sizeof(*spacings));
    struct record record;
    size_t count = 0;
    int status = 0;

    if (!spacings)
        return out_of_memory(reader, err);
    while (count < SPACINGS_MAX && (status = next_record(reader, &record, err)) > 0) {
        struct timeline *timeline = &reader->timeline;
        json_decref(record.line);
        if (timeline->started && !timeline->why && record.date_ns > timeline->date_ns)
            spacings[count++] = record.date_ns - timeline->date_ns;
        timeline->started = true;
        timeline->date_ns = record.date_ns;
        timeline->why = NULL;
    }
    if (count > 0) {
        qsort(spacings, count, sizeof(*spacings), compare_times);
        reader->spacing_ns = spacings[(count - 1) / 2];
    }
    free(spacings);
    return status < 0 ? status : WM_OK;
}

/* The first windows that are put back. */
struct first_windows {
    uint64_t count;
    double seconds, joules;
};

static void add_window(struct first_windows *windows, const struct placed *placed,
                       const json_t *metrics)
{
    double watts = wm_aipm_package_watts(metrics);

    if (placed->window_ns < 0)
        return;
    double seconds = (double)(placed->when_ns - placed->window_ns) / 1e9;
    windows->count++;
    windows->seconds += seconds;
    if (!isnan(watts))
        windows->joules += watts * seconds;
}

/* One for each channel: the reason is the same for all. Only the first ones fit. */
static int add_gaps(struct aipm_reader *reader, const struct placed *placed,
                    struct wm_error *err)
{
    if (placed->hole_ns < 0 || reader->head.gap_count == GAPS_MAX)
        return WM_OK;
    if (reader->head.gap_count == reader->gap_room) {
        size_t room = reader->gap_room > 0 ? 2 * reader->gap_room : 16;
        struct wm_gap *grown = realloc(reader->head.gaps, room * sizeof(*grown));
        if (!grown)
            return out_of_memory(reader, err);
        reader->head.gaps = grown;
        reader->gap_room = room;
    }
    struct wm_gap gap = {
        .from_ns = placed->hole_ns,
        .to_ns = placed->hole_ns,
        .state = WM_READING_FAILED,
    };
    snprintf(gap.why, sizeof(gap.why), "%s", placed->why);
    reader->head.gaps[reader->head.gap_count++] = gap;
    return WM_OK;
}

/* Until here a gap is one of the whole recording. */
static int spread_gaps(struct aipm_reader *reader, struct wm_error *err)
{
    size_t most = GAPS_MAX / reader->set.count;
    if (reader->head.gap_count > most)
        reader->head.gap_count = most;
    size_t count = reader->head.gap_count * reader->set.count;
    struct wm_gap *gaps = calloc(count + 1, sizeof(*gaps));

    if (!gaps)
        return out_of_memory(reader, err);
    for (size_t i = 0; i < count; i++) {
        gaps[i] = reader->head.gaps[i % reader->head.gap_count];
        gaps[i].channel = i / reader->head.gap_count;
    }
    free(reader->head.gaps);
    reader->head.gaps = gaps;
    reader->head.gap_count = count;
    return WM_OK;
}

struct survey {
    struct first_windows windows;
    const char *generation;
    int64_t first_ns;
    int64_t end_ns;
    int64_t next_ns; /* when the next run begins */
};

/* What we have written beside the metrics: of which kinds of device they were not
 * measured. The worst of all records counts. */
static void take_origins(struct aipm_reader *reader, const json_t *line)
{
    json_t *origins = json_object_get(line, "origin"), *word;
    const char *name;

    json_object_foreach(origins, name, word)
    {
        int kind = wm_word_value(WM_WORDS_DEVICE_KIND, name);
        int origin = wm_word_value(WM_WORDS_ORIGIN, json_string_value(word));
        if (kind >= 0 && kind <= WM_DEVICE_OTHER && origin > (int)reader->origins[kind])
            reader->origins[kind] = (enum wm_origin)origin;
    }
}

static int survey_record(struct aipm_reader *reader, const struct record *record,
                         struct survey *survey, struct wm_error *err)
{
    struct placed placed;

    if (wm_aipm_discover(&reader->set, record->metrics) < 0)
        return out_of_memory(reader, err);
    take_origins(reader, record->line);
    reader->has_package |= wm_aipm_has_package(record->metrics);
    if (!survey->generation)
        survey->generation = wm_aipm_generation(record->metrics);

    int status = place_record(reader, record->date_ns, &placed, err);
    if (status < 0)
        return status;
    if (reader->records == 1)
        survey->first_ns = placed.window_ns >= 0 ? placed.window_ns : placed.when_ns;
    survey->end_ns = placed.when_ns;
    add_window(&survey->windows, &placed, record->metrics);
    return add_gaps(reader, &placed, err);
}

static int survey_file(struct aipm_reader *reader, struct survey *survey,
                       struct wm_error *err)
{
    struct record record;
    int status;

    while ((status = next_record(reader, &record, err)) > 0) {
        status = survey_record(reader, &record, survey, err);
        json_decref(record.line);
        if (status < 0)
            return status;
    }
    if (status < 0)
        return status;
    if (reader->records == 0)
        return reader->bad_lines > 0
                   ? wm_fail(err, WM_EFORMAT, "%s: line %zu: no record of AIPowerMeter",
                             reader->path, reader->first_bad_line)
                   : wm_fail(err, WM_EFORMAT, "%s: holds no record of AIPowerMeter",
                             reader->path);
    if (reader->set.count == 0)
        return wm_fail(err, WM_EFORMAT, "%s: none of its metrics is one of AIPowerMeter's",
                       reader->path);
    return spread_gaps(reader, err);
}

/* What comes behind the run that is read is no part of it. */
static int find_next_run(struct aipm_reader *reader, struct survey *survey,
                         struct wm_error *err)
{
    struct record record;

    survey->next_ns = INT64_MAX;
    if (!is_past_chosen(reader))
        return WM_OK;
    reader->chosen++;
    int status = next_record(reader, &record, err);
    reader->chosen--;
    if (status > 0) {
        survey->next_ns = record.date_ns - reader->spacing_ns;
        json_decref(record.line);
    }
    return status < 0 ? status : WM_OK;
}

/* A number for a note: four digits behind the point, and none that say nothing. */
static const char *note_number(double value, char text[WM_NUMBER_SIZE])
{
    wm_number_format(fabs(value) < 1e9 ? round(value * 1e4) / 1e4 : value, text);
    return text;
}

static int note_windows(struct aipm_reader *reader, const struct first_windows *windows)
{
    char seconds[WM_NUMBER_SIZE], joules[WM_NUMBER_SIZE], each[WM_NUMBER_SIZE];

    if (windows->count == 0)
        return wm_run_set_note(&reader->head.run, "first window",
                               "unknown and left out: no record follows another");
    return wm_run_set_note(
        &reader->head.run, "first window",
        "added: %s s, %s J of the packages; a record stands for the time before it, and "
        "%s s (the usual spacing) are put before the first one of %s%llu segment%s",
        note_number(windows->seconds, seconds), note_number(windows->joules, joules),
        note_number((double)reader->spacing_ns / 1e9, each),
        windows->count == 1 ? "" : "each of ", (unsigned long long)windows->count,
        windows->count == 1 ? "" : "s");
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

static bool has_source(const struct wm_run *run, const char *name)
{
    for (size_t i = 0; i < run->source_count; i++) {
        if (run->sources[i].name && strcmp(run->sources[i].name, name) == 0)
            return true;
    }
    return false;
}

static int add_source(struct wm_run *run, const char *name)
{
    struct wm_source_status *grown =
        realloc(run->sources, (run->source_count + 1) * sizeof(*grown));

    if (!grown)
        return WM_ENOMEM;
    run->sources = grown;
    grown += run->source_count++;
    *grown = (struct wm_source_status) {
        .name = strdup(name),
        .available = true,
        .detail = strdup("recorded by AIPowerMeter"),
    };
    return grown->name && grown->detail ? WM_OK : WM_ENOMEM;
}

/* Those that the channels are said to come from. */
static int add_sources(struct aipm_reader *reader)
{
    int status = WM_OK;

    for (size_t i = 0; i < reader->set.count && status == WM_OK; i++) {
        const char *name = reader->set.channels[i].source;
        if (!has_source(&reader->head.run, name))
            status = add_source(&reader->head.run, name);
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
    run->interval_ns = reader->spacing_ns;
    run->gpu_count = count_gpus(reader);
    run->expected_gpu_count = run->gpu_count;
    bool is_ours = run->version != NULL;

    /* What is known of the runs is known of the first. */
    if (reader->chosen != WHOLE && reader->chosen > 0) {
        free(run->id);
        run->id = NULL;
    }
    if (add_sources(reader) < 0 || note_windows(reader, &survey->windows) < 0 ||
        note_times(reader, survey->first_ns) < 0 ||
        (!is_ours && note_origin(reader, survey) < 0))
        return out_of_memory(reader, err);
    return wm_aipm_read_notes(path, run, err);
}

static void add_trouble(struct aipm_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_trouble(struct aipm_reader *reader, const char *format, ...)
{
    char *text = reader->head.result.recording_trouble;
    size_t size = sizeof(reader->head.result.recording_trouble), used = strlen(text);
    va_list arguments;

    used += (size_t)snprintf(text + used, size - used, "%s", used > 0 ? "; " : "");
    if (used >= size)
        return;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
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
    if (reader->bad_lines > 0)
        add_trouble(reader, "line %zu cannot be read", reader->first_bad_line);
    if (reader->set_back > 0)
        add_trouble(reader,
                    "the clock was set back (%llu times), and later times are moved on",
                    (unsigned long long)reader->set_back);
    if (reader->spacing_ns == 0 && reader->same_dates > 0)
        add_trouble(reader, "its records have one date: how long they took is not known");
    if (reader->has_package && !has_channel(reader, "package"))
        add_trouble(reader, "none of its intel_power is a number that can be used");
    if (reader->set.odd_gpu[0])
        add_trouble(reader, "GPU '%s' has no number and is left out", reader->set.odd_gpu);
    if (reader->is_torn)
        add_trouble(reader, "its last line is cut off and left out");
    if (reader->set.left_out > 0)
        add_trouble(reader, "only the first %zu channels are read", reader->set.count);
}

/* Always there: AIPowerMeter's recordings say nothing of how they ended. */
static void fill_result(struct aipm_reader *reader, const struct survey *survey)
{
    reader->head.result = (struct wm_result) {
        .end_ns = survey->end_ns,
        .exit_status = -1,
        .cpu_total_seconds = -1,
        .cpu_main_seconds = -1,
        .cpu_descendants_seconds = -1,
        .cpu_method = "AIPowerMeter, without what ran between its windows",
        .peak_rss_bytes = -1,
        .peak_rss_bound_bytes = -1,
        .tool_cpu_seconds = -1,
        .tool_max_rss_bytes = -1,
        .ticks = reader->records + reader->bad_lines,
        .lost_ticks = reader->bad_lines,
    };
    say_trouble(reader);
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
        return out_of_memory(reader, err);
    for (size_t i = 0; i < count; i++) {
        struct wm_channel *channel = &reader->set.channels[i];
        channel->origin = reader->origins[channel->device_kind];
    }
    return WM_OK;
}

static int aipm_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct aipm_reader *reader = state;
    struct survey survey = { 0 };
    size_t index;

    reader->path = wm_text_path(path);
    reader->placed = (struct placed) { -1, -1, -1, NULL };
    int status = wm_aipm_channels_init(&reader->set, err);
    if (status == WM_OK)
        status = wm_lines_open(&reader->lines, path, LINE_MAX_LENGTH, err);
    if (status == WM_OK)
        status = count_parts(reader, err);
    if (status == WM_OK)
        status = wm_reader_choose_run(path, run, reader->head.run_count, &index, err);
    if (status == WM_OK)
        status = find_spacing(reader, err);
    if (status == WM_OK)
        status = rewind_records(reader, err);
    if (status == WM_OK && run != WM_LAST_RUN && reader->head.run_count > 1)
        reader->chosen = index;
    if (status == WM_OK)
        status = survey_file(reader, &survey, err);
    if (status == WM_OK)
        status = make_buffers(reader, err);
    if (status == WM_OK)
        status = fill_run(reader, path, &survey, err);
    if (status == WM_OK) {
        fill_result(reader, &survey);
        status = find_next_run(reader, &survey, err);
    }
    if (status < 0)
        return status;
    const struct wm_metrics_window window = {
        reader->chosen == WHOLE || reader->chosen == 0 ? INT64_MIN : survey.first_ns,
        survey.next_ns,
    };
    status =
        wm_aipm_read_results(path, &reader->head.run, &window, &reader->head.result, err);
    return status < 0 ? status : rewind_records(reader, err);
}

/* 1, or 0 past the last record. */
static int load_record(struct aipm_reader *reader, struct wm_error *err)
{
    struct record record;

    int status = next_record(reader, &record, err);
    if (status <= 0)
        return status;
    status = place_record(reader, record.date_ns, &reader->placed, err);
    if (status == WM_OK) {
        memset(reader->record, 0, reader->set.count * sizeof(*reader->record));
        wm_aipm_values(&reader->set, record.metrics, reader->record);
    }
    json_decref(record.line);
    return status < 0 ? status : 1;
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
    struct placed *placed = &reader->placed;
    int64_t when_ns;

    if (placed->when_ns < 0) {
        int status = load_record(reader, err);
        if (status <= 0)
            return status;
    }
    if (placed->hole_ns >= 0) {
        when_ns = placed->hole_ns;
        placed->hole_ns = -1;
        memset(reader->shown, 0, reader->set.count * sizeof(*reader->shown));
    } else if (placed->window_ns >= 0) {
        when_ns = placed->window_ns;
        placed->window_ns = -1;
        show_record(reader, when_ns, true);
    } else {
        when_ns = placed->when_ns;
        placed->when_ns = -1;
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

    wm_lines_close(&reader->lines);
    wm_aipm_channels_release(&reader->set);
    wm_reader_head_release(&reader->head);
    free(reader->record);
    free(reader->shown);
    free(reader->totals);
}

const struct wm_reader_ops wm_reader_aipm = {
    .name = "AIPowerMeter",
    .recognises = aipm_recognises,
    .state_size = sizeof(struct aipm_reader),
    .open = aipm_open,
    .next = aipm_next,
    .close = aipm_close,
};
