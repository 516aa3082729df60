/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_records.c - lines become records, ends of segments part the runs, and dates
 * become times that only grow. */
#include "compat/aipowermeter/compat_aipm.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "base/text/base_localtime.h"

/* A line has a few numbers for each process. */
enum { LINE_MAX_LENGTH = 16 * 1024 * 1024 };

/* Spacings from which the median is taken. */
enum { SPACINGS_MAX = 4096 };

/* A recorder that is merely slow is back within a minute. */
#define LONGEST_SPACING_NS (60 * WM_NS_PER_S)
#define LONGEST_SPACINGS 10

static const char segment_end[] = WM_AIPM_SEGMENT_END;
static const size_t end_length = sizeof(segment_end) - 1;

/* The first words of a record, or a recording of which nothing is there but its
 * end. */
bool wm_aipm_recognises(const char *head, size_t length)
{
    static const char *const starts[] = { "\"date\"", "\"metrics\"" };
    size_t at = 0, mark = wm_text_mark(head, length);

    head += mark;
    length -= mark;
    if (length >= end_length && memcmp(head, segment_end, end_length) == 0)
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

/* Takes `line` over. False where it is no record. */
static bool take_record(const struct wm_aipm_records *records, json_t *line,
                        struct wm_aipm_record *ret_record)
{
    const json_t *date = json_object_get(line, "date");
    struct wm_aipm_record record = { .line = line,
                                     .metrics = json_object_get(line, "metrics") };

    if (!json_is_string(date) || !json_is_object(record.metrics) ||
        !wm_localtime_parse(json_string_value(date), json_string_length(date),
                            records->date_ns, &record.date_ns)) {
        json_decref(line);
        return false;
    }
    *ret_record = record;
    return true;
}

static bool is_blank(const char *text, size_t length)
{
    return strspn(text, " \t\r\n") >= length;
}

static bool is_end(const char *text, size_t length)
{
    size_t start = strspn(text, " \t");

    return length - start >= end_length &&
           memcmp(text + start, segment_end, end_length) == 0 &&
           is_blank(text + start + end_length, length - start - end_length);
}

/* Whether a line is of the run that is read; which one that is follows from the ends of
 * segments, and from lines that look like records. */
static bool follow_parts(struct wm_aipm_records *records, const char *text, size_t length)
{
    if (is_blank(text, length))
        return false;
    if (is_end(text, length)) {
        records->part += records->in_part;
        records->in_part = false;
        return true;
    }
    records->in_part |= text[strspn(text, " \t")] == '{' && text[length - 1] == '}';
    return records->chosen == WM_AIPM_WHOLE || records->part == records->chosen;
}

static void end_segment(struct wm_aipm_records *records, const char *why)
{
    if (!records->why)
        records->why = why;
}

/* What a line comes to: 1 and a record; 0 for anything else. */
static int take_line(struct wm_aipm_records *records, char *text, size_t length,
                     struct wm_aipm_record *ret_record, struct wm_error *err)
{
    json_t *line = NULL;

    if (!follow_parts(records, text, length))
        return 0;
    if (is_end(text, length)) {
        end_segment(records, "a pause between two segments of the recording");
        return 0;
    }
    if (wm_python_json(text, length, &line) < 0)
        return wm_fail_memory(err, wm_text_path(records->path));
    if (take_record(records, line, ret_record))
        return 1;
    if (!records->lines.is_whole) {
        records->is_torn = true;
        return 0;
    }
    if (records->bad_lines++ == 0)
        records->first_bad_line = records->lines.number;
    end_segment(records, "a line of the recording cannot be read");
    return 0;
}

static bool is_past_chosen(const struct wm_aipm_records *records)
{
    return records->chosen != WM_AIPM_WHOLE && records->part > records->chosen;
}

/* 1 and the next record, which has no place yet; 0 past the last one. */
static int read_record(struct wm_aipm_records *records, struct wm_aipm_record *ret_record,
                       struct wm_error *err)
{
    int status = 0;
    size_t length;
    char *text;

    while (status == 0 && !is_past_chosen(records)) {
        status = wm_lines_next(&records->lines, &text, &length, err);
        if (status <= 0)
            return status;
        status = take_line(records, text, length, ret_record, err);
    }
    return status;
}

/* Why a record begins a segment, after another one; NULL: it does not. */
static const char *reason_to_cut(const struct wm_aipm_records *records, int64_t date_ns)
{
    int64_t since_ns = date_ns - records->date_ns;

    if (records->count == 0 || records->why)
        return records->count == 0 ? NULL : records->why;
    if (since_ns < 0)
        return "the clock was set back";
    if (records->spacing_ns > 0 && since_ns > LONGEST_SPACING_NS &&
        since_ns / LONGEST_SPACINGS > records->spacing_ns)
        return "the recording has no record for a while";
    return NULL;
}

/* Whether the recorder has said when the window of the file's first record began. A start
 * that lies far off is of other records. */
static bool knows_start(const struct wm_aipm_records *records,
                        const struct wm_aipm_record *record)
{
    int64_t since_ns = record->when_ns - records->start_ns;
    bool is_near = since_ns <= LONGEST_SPACING_NS ||
                   since_ns / LONGEST_SPACINGS <= records->spacing_ns;

    return records->start_ns > 0 && records->count == 0 && since_ns > 0 && is_near;
}

/* Of the first record, and of one behind a hole. */
static void place_first(struct wm_aipm_records *records, struct wm_aipm_record *record)
{
    int64_t earliest_ns = record->has_hole ? record->hole_ns + 1 : 0;

    if (record->when_ns <= earliest_ns) {
        record->when_ns = earliest_ns + (records->spacing_ns > 0 ? records->spacing_ns : 1);
        records->shift_ns = record->when_ns - record->date_ns;
    }
    records->set_back += records->count > 0 && record->date_ns < records->date_ns;
    record->is_start_known = knows_start(records, record);
    record->has_window = record->is_start_known || records->spacing_ns > 0;
    record->window_ns =
        record->is_start_known ? records->start_ns : record->when_ns - records->spacing_ns;
    if (record->window_ns < earliest_ns)
        record->window_ns = earliest_ns;
}

static void place(struct wm_aipm_records *records, struct wm_aipm_record *record)
{
    record->why = reason_to_cut(records, record->date_ns);
    record->has_hole = record->why != NULL;
    record->hole_ns = records->when_ns + 1;
    record->when_ns = record->date_ns + records->shift_ns;
    record->has_window = false;
    if (records->count == 0 || record->has_hole) {
        place_first(records, record);
    } else if (record->when_ns <= records->when_ns) {
        /* A record in the same microsecond as the last. */
        record->when_ns = records->when_ns + 1;
        records->same_dates++;
    }
}

/* From this record on times and dates are counted. */
static void pass(struct wm_aipm_records *records, const struct wm_aipm_record *record)
{
    records->count++;
    records->date_ns = record->date_ns;
    records->when_ns = record->when_ns;
    records->why = NULL;
}

int wm_aipm_records_next(struct wm_aipm_records *records, struct wm_aipm_record *ret_record,
                         struct wm_error *err)
{
    struct wm_aipm_record record;

    int status = read_record(records, &record, err);
    if (status <= 0)
        return status;
    place(records, &record);
    if (record.when_ns > WM_TIME_MAX_NS) {
        json_decref(record.line);
        return wm_fail(err, WM_EFORMAT, "%s: line %zu: its times go beyond the year 2100",
                       records->path, records->lines.number);
    }
    pass(records, &record);
    *ret_record = record;
    return 1;
}

int wm_aipm_records_rewind(struct wm_aipm_records *records, struct wm_error *err)
{
    *records = (struct wm_aipm_records) {
        .path = records->path,
        .lines = records->lines,
        .chosen = records->chosen,
        .spacing_ns = records->spacing_ns,
        .start_ns = records->start_ns,
    };
    return wm_lines_rewind(&records->lines, err);
}

/* Tells the runs of the file apart. The spacing is the median of those in its beginning,
 * within segments; lines behind that are not read any closer. */
static int measure(struct wm_aipm_records *records, int64_t *spacings, size_t *ret_runs,
                   struct wm_error *err)
{
    struct wm_aipm_record record;
    size_t length, count = 0;
    char *text;
    int status;

    while ((status = wm_lines_next(&records->lines, &text, &length, err)) > 0) {
        if (count == SPACINGS_MAX) {
            follow_parts(records, text, length);
            continue;
        }
        status = take_line(records, text, length, &record, err);
        if (status < 0)
            break;
        if (status == 0)
            continue;
        json_decref(record.line);
        if (records->count > 0 && !records->why && record.date_ns > records->date_ns)
            spacings[count++] = record.date_ns - records->date_ns;
        pass(records, &record);
    }
    records->spacing_ns = wm_clock_median(spacings, count);
    *ret_runs = records->part + records->in_part;
    return status;
}

int wm_aipm_records_open(struct wm_aipm_records *records, const char *path,
                         size_t *ret_run_count, struct wm_error *err)
{
    records->path = wm_text_path(path);
    records->chosen = WM_AIPM_WHOLE;
    int64_t *spacings = calloc(SPACINGS_MAX, sizeof(*spacings));
    int status = spacings ? wm_lines_open(&records->lines, path, LINE_MAX_LENGTH, err)
                          : wm_fail_memory(err, wm_text_path(records->path));
    if (status == WM_OK)
        status = measure(records, spacings, ret_run_count, err);
    if (*ret_run_count == 0)
        *ret_run_count = 1;
    free(spacings);
    return status < 0 ? status : wm_aipm_records_rewind(records, err);
}

void wm_aipm_records_close(struct wm_aipm_records *records)
{
    wm_lines_close(&records->lines);
}

int wm_aipm_records_next_run(struct wm_aipm_records *records, int64_t *ret_date_ns,
                             struct wm_error *err)
{
    struct wm_aipm_record record;

    *ret_date_ns = INT64_MAX;
    if (!is_past_chosen(records))
        return WM_OK;
    records->chosen++;
    int status = read_record(records, &record, err);
    records->chosen--;
    if (status > 0) {
        *ret_date_ns = record.date_ns;
        json_decref(record.line);
    }
    return status < 0 ? status : WM_OK;
}
