/* SPDX-License-Identifier: Apache-2.0 */
/* compat_meter_columns.c - where the header of a meter's CSV file stands, what its names
 * mean, and what is wrong with a table that is no meter's. */
#include "compat/meter_csv/compat_meter_columns.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "base/text/base_text.h"

enum { LINE_MAX_LENGTH = 1024 * 1024 };

struct unit {
    const char *name;
    double scale;
};

/* Milliwatts and megawatts differ in a letter's case, and only the former are
 * measured by what is plugged into a wall. */
static const struct unit power_units[] = {
    { "W", 1 }, { "watts", 1 }, { "Watts", 1 }, { "mW", 1e-3 }, { "kW", 1e3 }, { NULL, 0 },
};
static const struct unit time_units[] = {
    { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 }, { NULL, 0 },
};

static double find_unit(const struct unit *units, const char *text, size_t length)
{
    for (; units->name; units++) {
        if (strlen(units->name) == length && strncmp(units->name, text, length) == 0)
            return units->scale;
    }
    return 0;
}

/* Finds the unit in "power_W", "power (W)", "power[W]" and "W". Its scale, and the
 * length of what stands before it; 0 where there is none. */
static double split_unit(const struct unit *units, const char *name, size_t *ret_length)
{
    size_t length = strlen(name);
    size_t end = length > 0 && strchr(")]", name[length - 1]) ? length - 1 : length;
    size_t start = end;

    while (start > 0 && !strchr("_([ /", name[start - 1]))
        start--;
    double scale = find_unit(units, name + start, end - start);
    while (start > 0 && strchr("_([ /", name[start - 1]))
        start--;
    *ret_length = start;
    return scale;
}

static bool is_word(const char *const *words, const char *text, size_t length)
{
    for (; *words; words++) {
        if (strlen(*words) == length && strncasecmp(*words, text, length) == 0)
            return true;
    }
    return false;
}

static bool is_time(const char *name, double *ret_scale)
{
    static const char *const words[] = { "time",     "timestamp", "unix_time",
                                         "unixtime", "epoch",     "date",
                                         "datetime", "unix",      NULL };
    size_t length;

    if (is_word(words, name, strlen(name))) {
        *ret_scale = 1;
        return true;
    }
    *ret_scale = split_unit(time_units, name, &length);
    return *ret_scale > 0 && is_word(words, name, length);
}

/* The meters that AIPowerMeter knows call it activepow1, activepow2... */
static bool is_power(const char *name, double *ret_scale)
{
    static const char ours[] = "activepow";
    size_t length;

    if (strncmp(name, ours, sizeof(ours) - 1) == 0) {
        *ret_scale = 1;
        return true;
    }
    *ret_scale = split_unit(power_units, name, &length);
    return *ret_scale > 0;
}

char *wm_meter_csv_next_cell(char **cursor, char separator, size_t *ret_length)
{
    char *start = *cursor + strspn(*cursor, separator == '\t' ? " " : " \t");
    char *quote = *start == '"' ? strchr(start + 1, '"') : NULL;
    char *end = strchr(quote ? quote : start, separator);

    *cursor = end ? end + 1 : NULL;
    if (!end)
        end = start + strlen(start);
    while (start < end && strchr(" \t\"", *start))
        start++;
    while (end > start && strchr(" \t\"\r", end[-1]))
        end--;
    *ret_length = (size_t)(end - start);
    return start;
}

void wm_meter_csv_make_point(char *cell, size_t length, char separator)
{
    char *comma = memchr(cell, ',', length);

    if (comma && separator != ',' && !memchr(cell, '.', length))
        *comma = '.';
}

static char find_separator(const char *header)
{
    size_t at = strcspn(header, ",;\t");

    return header[at] ? header[at] : ',';
}

/* Reads a header, which is cut into its names. False where there is no column with the
 * time; whether there is one with watts is in `ret_columns`. */
static bool read_header(char *header, struct wm_meter_csv_columns *ret_columns)
{
    struct wm_meter_csv_columns *found = ret_columns;
    char *cursor = header;
    bool has_time = false;

    *found = (struct wm_meter_csv_columns) { .separator = find_separator(header) };
    while (cursor && found->count < WM_METER_CSV_COLUMNS_MAX) {
        struct wm_meter_csv_column *column = &found->columns[found->count++];
        size_t length;
        char *name = wm_meter_csv_next_cell(&cursor, found->separator, &length);
        name[length] = '\0';
        name += *name == '#';
        column->name = name;
        if (!has_time && is_time(name, &column->scale)) {
            column->use = WM_METER_CSV_TIME;
            has_time = true;
        } else if (strcmp(name, "frame_is_ok") == 0) {
            column->use = WM_METER_CSV_IS_GOOD;
        } else if (is_power(name, &column->scale)) {
            column->use = WM_METER_CSV_POWER;
            found->powers++;
        }
    }
    return has_time && !cursor;
}

/* What wattmetre-read writes before its header is one line of words. */
#define OMEGAWATT "#timestamp,#frame_is_ok,"

static bool begins_with(const char *line, size_t length, const char *word)
{
    return length >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

static bool is_comment(const char *line, size_t length)
{
    return length == 0 || line[0] == '#' || strspn(line, " \t\r") >= length;
}

/* The number of the line that is the header, from 1, and where it stands: the first that
 * is neither empty nor a comment, or the omegawatt's. 0: there is none. */
static size_t find_header(const char *head, size_t length, const char **ret_line,
                          size_t *ret_length)
{
    size_t found = 0;

    head += wm_text_mark(head, length);
    for (size_t number = 1; length > 0; number++) {
        const char *end = memchr(head, '\n', length);
        size_t line = end ? (size_t)(end - head) : length;
        bool is_omegawatt = begins_with(head, line, OMEGAWATT);
        if (is_omegawatt || (found == 0 && !is_comment(head, line))) {
            found = number;
            *ret_line = head;
            *ret_length = line;
        } else if (found > 0) {
            break;
        }
        if (is_omegawatt || !end)
            break;
        head += line + 1;
        length -= line + 1;
    }
    return found;
}

/* A table with times, or one that begins with a number: it may be a meter's, and is worth a
 * better message than that it is nothing at all. Cut off by the end of `head` a header is
 * still recognised by its first columns. */
bool wm_meter_csv_recognises(const char *head, size_t length)
{
    struct wm_meter_csv_columns columns;
    const char *line;
    char copy[4097];
    double number;

    if (find_header(head, length, &line, &length) == 0 || length >= sizeof(copy) ||
        memchr(line, '\0', length))
        return false;
    memcpy(copy, line, length);
    copy[length] = '\0';
    bool has_time = read_header(copy, &columns);
    const char *first = columns.columns[0].name;
    return columns.count > 1 &&
           (has_time || wm_number_parse(first, strlen(first), &number));
}

const char *wm_meter_csv_show(const char *text, size_t length,
                              char shown[WM_METER_CSV_SHOWN])
{
    wm_text_utf8(shown, WM_METER_CSV_SHOWN, text, length);
    wm_text_clean(shown);
    return shown;
}

static int wrong_header(const struct wm_lines *lines, bool has_time,
                        const struct wm_meter_csv_columns *columns, struct wm_error *err)
{
    char first[WM_METER_CSV_SHOWN], last[WM_METER_CSV_SHOWN];

    /* gpu_tracker's files of calls have a column of times, too. */
    if (columns->count > 2 && strcmp(columns->columns[0].name, "process_id") == 0 &&
        strcmp(columns->columns[1].name, "code_block_name") == 0)
        return wm_fail(err, WM_EFORMAT,
                       "%s: a sub-tracking file, which has calls of blocks and no session; "
                       "`wattmeter analyze SESSION --regions FILE` reads both",
                       lines->path);
    if (!has_time || columns->count < 2)
        return wm_fail(err, WM_EFORMAT,
                       "%s: not a recording, nor a meter's CSV: no header with a time and "
                       "watts, as 'time,power_W'",
                       lines->path);
    const char *name = columns->columns[0].name;
    wm_meter_csv_show(name, strlen(name), first);
    name = columns->columns[columns->count - 1].name;
    wm_meter_csv_show(name, strlen(name), last);
    return wm_fail(
        err, WM_EFORMAT,
        "%s: not a recording, nor a meter's CSV: line %zu has no column of watts "
        "between '%s' and '%s'; name it power_W, power_mW or power_kW",
        lines->path, lines->number, first, last);
}

int wm_meter_csv_open(struct wm_lines *lines, const char *path,
                      struct wm_meter_csv_columns *columns, char **ret_names,
                      struct wm_error *err)
{
    char head[4096], *line = NULL;
    const char *found;
    size_t length;

    int status = wm_lines_open(lines, path, LINE_MAX_LENGTH, err);
    if (status < 0)
        return status;
    ssize_t got = wm_file_read_at(AT_FDCWD, path, head, sizeof(head));
    size_t number = got > 0 ? find_header(head, (size_t)got, &found, &length) : 0;
    do {
        status = wm_lines_next(lines, &line, &length, err);
    } while (status > 0 && lines->number < number);
    if (status < 0)
        return status;
    *ret_names = strdup(status > 0 ? line : "");
    if (!*ret_names)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", lines->path);
    bool has_time = read_header(*ret_names, columns);
    return has_time && columns->powers > 0 ? WM_OK
                                           : wrong_header(lines, has_time, columns, err);
}

static size_t count_digits(const char *text, size_t length)
{
    size_t count = 0;

    while (count < length && isdigit((unsigned char)text[count]))
        count++;
    return count;
}

/* Whole and broken part apart: a double has no room for nanoseconds since 1970. */
static bool read_decimal(const char *cell, size_t length, double scale, int64_t *ret_ns)
{
    double unit_ns = round(scale * (double)WM_NS_PER_S);
    size_t digits = count_digits(cell, length);
    const char *rest = cell + digits;
    size_t left = length - digits;
    double whole = 0, broken = 0;

    if (left > 0 && (*rest != '.' || count_digits(rest + 1, left - 1) != left - 1))
        return false;
    if (digits == 0 || digits > 19 || (left > 1 && !wm_number_parse(rest, left, &broken)))
        return false;
    for (size_t i = 0; i < digits; i++)
        whole = 10 * whole + (cell[i] - '0');
    if ((whole + 1) * unit_ns >= (double)WM_TIME_MAX_NS)
        return false;

    int64_t count = 0;
    for (size_t i = 0; i < digits; i++)
        count = 10 * count + (cell[i] - '0');
    *ret_ns = count * (int64_t)unit_ns + (int64_t)llround(broken * unit_ns);
    return true;
}

bool wm_meter_csv_read_time(const char *cell, size_t length, double scale, int64_t after_ns,
                            int64_t *ret_unix_ns)
{
    if (read_decimal(cell, length, scale, ret_unix_ns))
        return true;
    return wm_localtime_parse_zoned(cell, length, after_ns, ret_unix_ns) &&
           *ret_unix_ns >= 0;
}
