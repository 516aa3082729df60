/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_read_records.c - lines become records, and ends of segments part the runs. */
#include "compat/aipowermeter/compat_aipm_read_records.h"

#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"

#define SEGMENT_END "END OF RECORDING SEGMENT"

/* A line has a few numbers for each process. */
enum { LINE_MAX_LENGTH = 16 * 1024 * 1024 };

/* The first words of a record, or a recording of which nothing is there but its
 * end. */
bool wm_aipm_recognises(const char *head, size_t length)
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

/* Takes `line` over. False where it is no record. */
static bool take_record(const struct wm_aipm_records *records, json_t *line,
                        struct wm_aipm_record *ret_record)
{
    const json_t *date = json_object_get(line, "date");
    struct wm_aipm_record record = { .line = line,
                                     .metrics = json_object_get(line, "metrics") };

    if (!json_is_string(date) || !json_is_object(record.metrics) ||
        !wm_localtime_parse(json_string_value(date), json_string_length(date),
                            records->has_date ? records->date_ns : 0, &record.date_ns)) {
        json_decref(line);
        return false;
    }
    *ret_record = record;
    return true;
}

static void end_segment(struct wm_aipm_records *records, const char *why)
{
    if (!records->why)
        records->why = why;
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
static bool follow_parts(struct wm_aipm_records *records, const char *text, size_t length)
{
    if (is_end(text, length)) {
        records->part += records->in_part;
        records->in_part = false;
        return true;
    }
    records->in_part |= text[strspn(text, " \t")] == '{' && text[length - 1] == '}';
    return records->chosen == WM_AIPM_WHOLE || records->part == records->chosen;
}

/* What a line comes to: 1 and a record; 0 for anything else. */
static int take_line(struct wm_aipm_records *records, char *text, size_t length,
                     bool is_whole, struct wm_aipm_record *ret_record, struct wm_error *err)
{
    json_t *line = NULL;

    if (is_blank(text, length) || !follow_parts(records, text, length))
        return 0;
    if (is_end(text, length)) {
        end_segment(records, "a pause between two segments of the recording");
        return 0;
    }
    if (wm_python_json(text, length, &line) < 0)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", records->path);
    if (take_record(records, line, ret_record))
        return 1;
    if (!is_whole) {
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

int wm_aipm_records_next(struct wm_aipm_records *records, struct wm_aipm_record *ret_record,
                         struct wm_error *err)
{
    int status = 0;
    size_t length;
    char *text;

    while (!records->in_rest && status == 0 && !is_past_chosen(records)) {
        status = wm_lines_next(&records->lines, &text, &length, err);
        if (status < 0)
            return status;
        records->in_rest = status == 0;
        if (records->in_rest)
            length = wm_lines_rest(&records->lines, &text);
        status = take_line(records, text, length, !records->in_rest, ret_record, err);
    }
    if (status > 0) {
        ret_record->why = records->why;
        records->why = NULL;
        records->date_ns = ret_record->date_ns;
        records->has_date = true;
    }
    return status;
}

int wm_aipm_records_rewind(struct wm_aipm_records *records, struct wm_error *err)
{
    records->part = 0;
    records->in_part = false;
    records->in_rest = false;
    records->has_date = false;
    records->why = NULL;
    records->is_torn = false;
    records->bad_lines = 0;
    return wm_lines_rewind(&records->lines, err);
}

/* The lines are not read any closer than it takes to tell the runs apart. */
static int count_runs(struct wm_aipm_records *records, size_t *ret_count,
                      struct wm_error *err)
{
    size_t length;
    char *text;
    int status;

    while ((status = wm_lines_next(&records->lines, &text, &length, err)) > 0) {
        if (!is_blank(text, length))
            follow_parts(records, text, length);
    }
    if (status < 0)
        return status;
    length = wm_lines_rest(&records->lines, &text);
    if (!is_blank(text, length))
        follow_parts(records, text, length);
    size_t count = records->part + records->in_part;
    *ret_count = count > 0 ? count : 1;
    return wm_aipm_records_rewind(records, err);
}

int wm_aipm_records_open(struct wm_aipm_records *records, const char *path,
                         size_t *ret_run_count, struct wm_error *err)
{
    records->path = wm_text_path(path);
    records->chosen = WM_AIPM_WHOLE;
    int status = wm_lines_open(&records->lines, path, LINE_MAX_LENGTH, err);
    return status < 0 ? status : count_runs(records, ret_run_count, err);
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
    int status = wm_aipm_records_next(records, &record, err);
    records->chosen--;
    if (status > 0) {
        *ret_date_ns = record.date_ns;
        json_decref(record.line);
    }
    return status < 0 ? status : WM_OK;
}
