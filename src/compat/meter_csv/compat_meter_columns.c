/* SPDX-License-Identifier: Apache-2.0 */
/* compat_meter_columns.c - the header of a meter's CSV file. */
#include "compat/meter_csv/compat_meter_columns.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/base_clock.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/run/record_run.h"

struct unit {
    const char *name;
    double scale;
};

/* Milliwatts and megawatts differ in a letter's case, and only the former are
 * measured by what is plugged into a wall. */
static const struct unit power_units[] = {
    { "W", 1 },    { "w", 1 },     { "watts", 1 }, { "Watts", 1 },
    { "watt", 1 }, { "mW", 1e-3 }, { "mw", 1e-3 }, { "kW", 1e3 },
    { "kw", 1e3 }, { "WATTS", 1 }, { "Watt", 1 },  { NULL, 0 },
};
static const struct unit time_units[] = {
    { "s", 1 },     { "sec", 1 },   { "seconds", 1 }, { "ms", 1e-3 },
    { "us", 1e-6 }, { "ns", 1e-9 }, { NULL, 0 },
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

static bool is_bare_power(const char *name)
{
    static const char *const words[] = { "power", "active_power", "activepower", NULL };

    return is_word(words, name, strlen(name));
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

bool wm_meter_csv_read_header(char *header, struct wm_meter_csv_columns *ret_columns)
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
        } else if (is_bare_power(name)) {
            found->bare = name;
        }
    }
    return has_time && !cursor;
}

bool wm_meter_csv_is_row(char *line)
{
    char separator = find_separator(line), *cursor = line;
    size_t count = 0, length;
    double number;

    for (; cursor; count++) {
        char *cell = wm_meter_csv_next_cell(&cursor, separator, &length);
        wm_meter_csv_make_point(cell, length, separator);
        if (!wm_number_parse(cell, length, &number))
            return false;
    }
    return count > 1;
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
    double number;

    if (read_decimal(cell, length, scale, ret_unix_ns))
        return true;
    if (wm_localtime_parse_zoned(cell, length, after_ns, ret_unix_ns))
        return *ret_unix_ns >= 0;

    /* "1.6e9", as some tools write it. */
    if (!wm_number_parse(cell, length, &number))
        return false;
    number *= scale * (double)WM_NS_PER_S;
    if (!(number >= 0 && number < (double)WM_TIME_MAX_NS))
        return false;
    *ret_unix_ns = (int64_t)number;
    return true;
}
