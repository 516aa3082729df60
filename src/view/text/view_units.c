/* SPDX-License-Identifier: Apache-2.0 */
/* view_units.c - the tables of units, and rounding for people. */
#include "view/text/view_units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Of a number in a unit that the user chose. */
#define CHOSEN_DIGITS 4

static const struct wm_unit memory_units[] = {
    { "bytes", "B", 1 },        { "kilobytes", "kB", 1e3 },  { "megabytes", "MB", 1e6 },
    { "gigabytes", "GB", 1e9 }, { "terabytes", "TB", 1e12 },
};

static const struct wm_unit time_units[] = {
    { "seconds", "s", 1 },
    { "minutes", "min", 60 },
    { "hours", "h", 3600 },
    { "days", "d", 86400 },
};

const struct wm_unit *wm_unit_gigabytes(void)
{
    return &memory_units[3];
}

const struct wm_unit *wm_unit_hours(void)
{
    return &time_units[2];
}

const struct wm_unit *wm_unit_bytes(void)
{
    return &memory_units[0];
}

const struct wm_unit *wm_unit_seconds(void)
{
    return &time_units[0];
}

const struct wm_unit *wm_unit_plain(enum wm_figure_unit unit)
{
    static const struct wm_unit plain[] = {
        [WM_UNIT_SECONDS] = { "seconds", "s", 1 },
        [WM_UNIT_TIME] = { "seconds", "s", 1 },
        [WM_UNIT_JOULES] = { "joules", "J", 1 },
        [WM_UNIT_WATTS] = { "watts", "W", 1 },
        [WM_UNIT_BYTES] = { "bytes", "B", 1 },
        [WM_UNIT_RAM] = { "bytes", "B", 1 },
        [WM_UNIT_GPU_RAM] = { "bytes", "B", 1 },
        [WM_UNIT_PERCENT] = { "percent", "%", 1 },
        [WM_UNIT_RATIO] = { "ratio", "", 1 },
        [WM_UNIT_CELSIUS] = { "celsius", "°C", 1 },
        [WM_UNIT_COUNT] = { "count", "", 1 },
    };

    return &plain[unit];
}

static int find_unit(const struct wm_unit *units, size_t count, const char *name,
                     const char *what, const struct wm_unit **ret_unit,
                     struct wm_error *err)
{
    char list[96];
    size_t used = 0;

    if (!name) {
        *ret_unit = NULL;
        return WM_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(units[i].name, name) == 0) {
            *ret_unit = &units[i];
            return WM_OK;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 units[i].name);
    }
    return wm_fail(err, WM_EINVAL, "'%.40s' is not a unit of %s; there are: %s", name, what,
                   list);
}

int wm_units_of_style(const struct wm_report_style *style, struct wm_units *ret_units,
                      struct wm_error *err)
{
    struct wm_units units = { 0 };
    int status = WM_OK;

    if (style) {
        status = find_unit(memory_units, COUNT(memory_units), style->ram_unit, "memory",
                           &units.ram, err);
        if (status == WM_OK)
            status = find_unit(memory_units, COUNT(memory_units), style->gpu_ram_unit,
                               "memory", &units.gpu_ram, err);
        if (status == WM_OK)
            status = find_unit(time_units, COUNT(time_units), style->time_unit, "time",
                               &units.time, err);
        if (status == WM_OK)
            status = wm_tariff_of_style(style, &units.tariff, err);
    }
    if (status == WM_OK)
        *ret_units = units;
    return status;
}

/* By whole numbers, since printf() would ask the locale for the point. */
static void print_fixed(char text[WM_QUANTITY_SIZE], double size, int decimals,
                        bool negative)
{
    long long scale = 1;

    for (int i = 0; i < decimals; i++)
        scale *= 10;
    long long scaled = llround(size * (double)scale);
    const char *sign = negative && scaled > 0 ? "-" : "";

    int length = snprintf(text, WM_QUANTITY_SIZE, "%s%lld", sign, scaled / scale);
    if (decimals > 0)
        text[length++] = '.';
    while (scale > 1) {
        scale /= 10;
        text[length++] = (char)('0' + scaled / scale % 10);
    }
    text[length] = '\0';
}

/* Of what is infinite, as a sum of what a hostile file says may be, no more is known than
 * that it has left the range of a double: makes it the end of that, and says on which side.
 */
static const char *bound(double *value)
{
    if (!isinf(*value))
        return "";
    *value = copysign(1e308, *value);
    return *value > 0 ? ">" : "<";
}

/* Only a broken counter gets here. */
static void print_huge(char text[WM_QUANTITY_SIZE], double value)
{
    const char *more = bound(&value);

    snprintf(text, WM_QUANTITY_SIZE, "%s%.0e", more, value);
}

void wm_view_number(char text[WM_QUANTITY_SIZE], double value, int digits)
{
    double size = fabs(value);

    if (size < 1e-9) {
        snprintf(text, WM_QUANTITY_SIZE, "0");
        return;
    }
    if (size >= 1e18) {
        print_huge(text, value);
        return;
    }

    int decimals = digits - 1 - (int)floor(log10(size));
    if (decimals > 0 && round(size * pow(10, decimals)) >= pow(10, digits))
        decimals--; /* 9.996 with three digits is 10.0 */
    print_fixed(text, size, decimals > 0 ? decimals : 0, value < 0);
}

void wm_view_fixed(char text[WM_QUANTITY_SIZE], double value, int decimals)
{
    if (fabs(value) * pow(10, decimals) >= 1e18)
        print_huge(text, value);
    else
        print_fixed(text, fabs(value), decimals, value < 0);
}

static void in_unit(char text[WM_QUANTITY_SIZE], double value, const struct wm_unit *unit,
                    int digits)
{
    char number[WM_QUANTITY_SIZE];
    const char *more = bound(&value);

    wm_view_number(number, value / unit->size, digits);
    snprintf(text, WM_QUANTITY_SIZE, "%s%.30s %.12s", more, number, unit->symbol);
}

/* The largest of `units` in which the value, once rounded, is at least 1. */
static const struct wm_unit *best_unit(double value, const struct wm_unit *units,
                                       size_t count, int digits)
{
    double almost = 1 - 0.5 * pow(10, -digits);
    size_t best = 0;

    while (best + 1 < count && fabs(value) >= units[best + 1].size * almost)
        best++;
    return &units[best];
}

void wm_view_bytes(char text[WM_QUANTITY_SIZE], double bytes, const struct wm_unit *unit)
{
    if (unit)
        in_unit(text, bytes, unit, CHOSEN_DIGITS);
    else
        in_unit(text, bytes, best_unit(bytes, memory_units, COUNT(memory_units), 3), 3);
}

static const struct wm_unit short_times[] = {
    { "nanoseconds", "ns", 1e-9 },
    { "microseconds", "µs", 1e-6 },
    { "milliseconds", "ms", 1e-3 },
    { "seconds", "s", 1 },
};

/* From here on minutes are read more easily than seconds. */
#define LONG_TIME_S 599.95

void wm_view_duration(char text[WM_QUANTITY_SIZE], double seconds,
                      const struct wm_unit *unit)
{
    if (unit) {
        in_unit(text, seconds, unit, CHOSEN_DIGITS);
        return;
    }
    if (seconds < LONG_TIME_S || seconds >= 1e15) {
        in_unit(text, seconds, best_unit(seconds, short_times, COUNT(short_times), 4), 4);
        return;
    }

    long long whole = llround(seconds);
    if (whole < 3600)
        snprintf(text, WM_QUANTITY_SIZE, "%lld min %02lld s", whole / 60, whole % 60);
    else
        snprintf(text, WM_QUANTITY_SIZE, "%lld h %02lld min %02lld s", whole / 3600,
                 whole / 60 % 60, whole % 60);
}

static const struct {
    const char *symbol;
    double size;
} prefixes[] = {
    { "p", 1e-12 }, { "n", 1e-9 }, { "µ", 1e-6 }, { "m", 1e-3 },
    { "", 1 },      { "k", 1e3 },  { "M", 1e6 },  { "G", 1e9 },
};

void wm_view_prefixed(char text[WM_QUANTITY_SIZE], double value, const char *symbol)
{
    struct wm_unit units[COUNT(prefixes)];
    char symbols[COUNT(prefixes)][12];

    for (size_t i = 0; i < COUNT(prefixes); i++) {
        snprintf(symbols[i], sizeof(symbols[i]), "%s%.8s", prefixes[i].symbol, symbol);
        units[i] = (struct wm_unit) { .symbol = symbols[i], .size = prefixes[i].size };
    }
    const struct wm_unit *unit = fabs(value) < 1e-15
                                     ? &(struct wm_unit) { .symbol = symbol, .size = 1 }
                                     : best_unit(value, units, COUNT(units), 3);
    in_unit(text, value, unit, 3);
}
