/* SPDX-License-Identifier: Apache-2.0 */
/* compat_meter_header.c - which line of a meter's CSV file is its header. */
#include "compat/meter_csv/compat_meter_header.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_text.h"

enum { LINE_MAX_LENGTH = 1024 * 1024 };

/* The header is one of so many lines. */
enum { HEADER_LINES = 20 };

static bool is_comment(const char *line)
{
    return line[strspn(line, " \t\r")] == '\0' || line[0] == '#';
}

static bool is_header(char *line, struct wm_meter_csv_columns *ret_columns)
{
    return wm_meter_csv_read_header(line, ret_columns) &&
           (ret_columns->powers > 0 || ret_columns->bare);
}

/* Windows writes such files, too. */
static bool is_utf16(const char *head, size_t length)
{
    return length >= 2 &&
           (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0);
}

/* Old spreadsheets end lines by CR alone. */
static char find_line_end(const char *head, size_t length)
{
    return memchr(head, '\r', length) && !memchr(head, '\n', length) ? '\r' : '\n';
}

/* Whether a table with times begins here, or one without names: it may be a meter's,
 * and is worth a better message than that it is nothing at all. */
static bool may_be_table(char *line)
{
    struct wm_meter_csv_columns columns;
    char copy[4097];

    snprintf(copy, sizeof(copy), "%s", line);
    return (wm_meter_csv_read_header(line, &columns) && columns.count > 1) ||
           wm_meter_csv_is_row(copy);
}

/* Cut off by the end of `head` a header may still be recognised by its first columns. */
bool wm_meter_csv_recognises(const char *head, size_t length)
{
    char end = find_line_end(head, length), copy[4097];
    bool is_first = true;

    if (is_utf16(head, length))
        return true;
    size_t mark = wm_text_mark(head, length);
    head += mark;
    length -= mark;
    for (int line = 0; line < HEADER_LINES && length > 0; line++) {
        const char *found = memchr(head, end, length);
        size_t line_length = found ? (size_t)(found - head) : length;
        struct wm_meter_csv_columns columns;

        if (line_length >= sizeof(copy) || memchr(head, '\0', line_length))
            return false;
        memcpy(copy, head, line_length);
        copy[line_length] = '\0';
        if (is_header(copy, &columns))
            return true;
        memcpy(copy, head, line_length);
        if (is_first && !is_comment(copy)) {
            if (may_be_table(copy))
                return true;
            is_first = false;
        }
        if (!found)
            return false;
        head = found + 1;
        length -= line_length + 1;
    }
    return false;
}

const char *wm_meter_csv_show(const char *text, size_t length,
                              char shown[WM_METER_CSV_SHOWN])
{
    wm_text_utf8(shown, WM_METER_CSV_SHOWN, text, length);
    wm_text_clean(shown);
    return shown;
}

/* How gpu_tracker's files of calls begin. */
#define SUB_TRACKING "process_id,code_block_name,"

/* Why the table that begins with `line` is no meter's. */
static int wrong_header(const char *path, char *line, size_t number, struct wm_error *err)
{
    struct wm_meter_csv_columns columns;
    char shown[WM_METER_CSV_SHOWN], last[WM_METER_CSV_SHOWN];

    if (line && strncmp(line, SUB_TRACKING, strlen(SUB_TRACKING)) == 0)
        return wm_fail(err, WM_EFORMAT,
                       "%s: a sub-tracking file, which has calls of blocks and no session; "
                       "`wattmeter analyze SESSION --regions FILE` reads both",
                       path);
    if (line && wm_meter_csv_read_header(line, &columns) && columns.count > 1) {
        const char *name = columns.columns[columns.count - 1].name;
        return wm_fail(
            err, WM_EFORMAT,
            "%s: not a recording, nor a meter's CSV: line %zu has no column of watts "
            "between '%s' and '%s'; name it "
            "power_W, power_mW or power_kW",
            path, number,
            wm_meter_csv_show(columns.columns[0].name, strlen(columns.columns[0].name),
                              shown),
            wm_meter_csv_show(name, strlen(name), last));
    }
    return wm_fail(err, WM_EFORMAT,
                   "%s: not a recording, nor a meter's CSV: no header with a time and "
                   "watts, as 'time,power_W'",
                   path);
}

static int choose_line_end(struct wm_lines *lines, const char *path, struct wm_error *err)
{
    char head[4096];

    ssize_t length = wm_file_read_at(AT_FDCWD, path, head, sizeof(head));
    if (length > 0 && is_utf16(head, (size_t)length))
        return wm_fail(err, WM_EFORMAT, "%s: is in UTF-16; save it as UTF-8", lines->path);
    if (length > 0)
        lines->line_end = find_line_end(head, (size_t)length);
    return WM_OK;
}

static int keep_line(const struct wm_lines *lines, const char *line, char **ret_copy,
                     struct wm_error *err)
{
    free(*ret_copy);
    *ret_copy = strdup(line);
    return *ret_copy ? WM_OK : wm_fail(err, WM_ENOMEM, "%s: out of memory", lines->path);
}

/* Takes the header, or the line that should be one: the first that is no comment. */
static int find_header(struct wm_lines *lines, struct wm_meter_csv_columns *columns,
                       char **ret_names, char **ret_first, size_t *ret_number,
                       struct wm_error *err)
{
    size_t length;
    char *line;

    for (int i = 0; i < HEADER_LINES; i++) {
        int status = wm_lines_next(lines, &line, &length, err);
        if (status < 0)
            return status;
        if (status == 0)
            break;
        status = keep_line(lines, line, ret_names, err);
        if (status < 0 || is_header(*ret_names, columns))
            return status;
        *columns = (struct wm_meter_csv_columns) { 0 };
        if (!*ret_first && !is_comment(line)) {
            *ret_number = lines->number;
            status = keep_line(lines, line, ret_first, err);
            if (status < 0)
                return status;
        }
    }
    return WM_OK;
}

static int read_header(struct wm_lines *lines, struct wm_meter_csv_columns *columns,
                       char **ret_names, struct wm_error *err)
{
    char *first = NULL, shown[WM_METER_CSV_SHOWN];
    size_t number = 0;

    int status = find_header(lines, columns, ret_names, &first, &number, err);
    const char *bare = columns->bare;
    if (status == WM_OK && columns->powers == 0 && bare) {
        wm_meter_csv_show(bare, strlen(bare), shown);
        status =
            wm_fail(err, WM_EFORMAT,
                    "%s: line %zu: what unit has '%s'? Name the column %s_W, _mW or _kW",
                    lines->path, lines->number, shown, shown);
    } else if (status == WM_OK && columns->powers == 0) {
        status = wrong_header(lines->path, first, number, err);
    }
    free(first);
    return status;
}

int wm_meter_csv_open(struct wm_lines *lines, const char *path,
                      struct wm_meter_csv_columns *columns, char **ret_names,
                      struct wm_error *err)
{
    int status = wm_lines_open(lines, path, LINE_MAX_LENGTH, err);

    if (status == WM_OK)
        status = choose_line_end(lines, path, err);
    return status < 0 ? status : read_header(lines, columns, ret_names, err);
}
