/* SPDX-License-Identifier: Apache-2.0 */
/* view_units.c - the tables of units, and rounding for people. */
#include "view/view_units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base_options.h"
#include "base/base_text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Of a number in a unit that the user chose. */
#define CHOSEN_DIGITS 4

/* Of a figure of which no error is known, or a small one. */
#define MOST_DIGITS 3

/* From here on a figure is called rough. */
#define ROUGH_RATIO 0.25

/* An error is at least so many steps of the last digit that is shown. */
#define LEAST_STEPS 1.5

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
    char list[96] = "";

    if (!name) {
        *ret_unit = NULL;
        return WM_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(units[i].name, name) == 0) {
            *ret_unit = &units[i];
            return WM_OK;
        }
        wm_text_list(list, sizeof(list), ", ", "%s", units[i].name);
    }
    return wm_fail(err, WM_EINVAL, "'%.40s' is not a unit of %s; there are: %s", name, what,
                   list);
}

int wm_units_of_style(const struct wm_report_style *given, struct wm_units *ret_units,
                      struct wm_error *err)
{
    struct wm_units units = { 0 };
    struct wm_report_style style;

    int status = wm_options_read(given, &style, sizeof(style), err);
    if (status == WM_OK)
        status = find_unit(memory_units, COUNT(memory_units), style.ram_unit, "memory",
                           &units.ram, err);
    if (status == WM_OK)
        status = find_unit(memory_units, COUNT(memory_units), style.gpu_ram_unit, "memory",
                           &units.gpu_ram, err);
    if (status == WM_OK)
        status = find_unit(time_units, COUNT(time_units), style.time_unit, "time",
                           &units.time, err);
    if (status == WM_OK)
        status = wm_tariff_of_style(&style, &units.tariff, err);
    units.verbosity = style.verbosity;
    units.for_terminal = style.for_terminal;
    units.blocks_only = style.blocks_only;
    if (status == WM_OK)
        *ret_units = units;
    return status;
}

/* By whole numbers, since printf() would ask the locale for the point. */
static struct wm_quantity fixed(double size, int decimals, bool negative)
{
    struct wm_quantity quantity;
    char *text = quantity.text;
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
    return quantity;
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
static struct wm_quantity huge(double value)
{
    const char *more = bound(&value);
    struct wm_quantity quantity;

    snprintf(quantity.text, sizeof(quantity.text), "%s%.0e", more, value);
    return quantity;
}

struct wm_quantity wm_view_number(double value, int digits)
{
    double size = fabs(value);

    if (size < 1e-9)
        return (struct wm_quantity) { "0" };
    if (size >= 1e18)
        return huge(value);

    int decimals = digits - 1 - (int)floor(log10(size));
    if (decimals > 0 && round(size * pow(10, decimals)) >= pow(10, digits))
        decimals--; /* 9.996 with three digits is 10.0 */
    return fixed(size, decimals > 0 ? decimals : 0, value < 0);
}

struct wm_quantity wm_view_fixed(double value, int decimals)
{
    return fabs(value) * pow(10, decimals) >= 1e18
               ? huge(value)
               : fixed(fabs(value), decimals, value < 0);
}

static struct wm_quantity in_unit(double value, const struct wm_unit *unit, int digits)
{
    const char *more = bound(&value);
    struct wm_quantity quantity;

    snprintf(quantity.text, sizeof(quantity.text), "%s%.30s %.12s", more,
             wm_view_number(value / unit->size, digits).text, unit->symbol);
    return quantity;
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

struct wm_quantity wm_view_bytes(double bytes, const struct wm_unit *unit)
{
    if (unit)
        return in_unit(bytes, unit, CHOSEN_DIGITS);
    return in_unit(bytes, best_unit(bytes, memory_units, COUNT(memory_units), 3), 3);
}

static const struct wm_unit short_times[] = {
    { "nanoseconds", "ns", 1e-9 },
    { "microseconds", "µs", 1e-6 },
    { "milliseconds", "ms", 1e-3 },
    { "seconds", "s", 1 },
};

/* From here on minutes are read more easily than seconds. */
#define LONG_TIME_S 599.95

struct wm_quantity wm_view_duration(double seconds, const struct wm_unit *unit)
{
    struct wm_quantity quantity;

    if (unit)
        return in_unit(seconds, unit, CHOSEN_DIGITS);
    if (seconds < LONG_TIME_S || seconds >= 1e15)
        return in_unit(seconds, best_unit(seconds, short_times, COUNT(short_times), 4), 4);

    long long whole = llround(seconds);
    if (whole < 3600)
        snprintf(quantity.text, sizeof(quantity.text), "%lld min %02lld s", whole / 60,
                 whole % 60);
    else
        snprintf(quantity.text, sizeof(quantity.text), "%lld h %02lld min %02lld s",
                 whole / 3600, whole / 60 % 60, whole % 60);
    return quantity;
}

static struct wm_quantity prefixed(double value, const char *symbol, int digits)
{
    static const struct wm_unit prefixes[] = {
        { "", "p", 1e-12 }, { "", "n", 1e-9 }, { "", "µ", 1e-6 }, { "", "m", 1e-3 },
        { "", "", 1 },      { "", "k", 1e3 },  { "", "M", 1e6 },  { "", "G", 1e9 },
    };
    const struct wm_unit none = { "", "", 1 };
    const struct wm_unit *prefix =
        fabs(value) < 1e-15 ? &none : best_unit(value, prefixes, COUNT(prefixes), digits);
    char text[12];

    snprintf(text, sizeof(text), "%s%.8s", prefix->symbol, symbol);
    return in_unit(value, &(struct wm_unit) { .symbol = text, .size = prefix->size },
                   digits);
}

struct wm_quantity wm_view_prefixed(double value, const char *symbol)
{
    return prefixed(value, symbol, MOST_DIGITS);
}

/* Significant digits that an error of `ratio` leaves, to which the value is rounded. */
static int round_by(double *value, double ratio)
{
    if (ratio <= 0 || *value == 0 || !isfinite(*value) || !isfinite(ratio))
        return MOST_DIGITS;
    double first = floor(log10(fabs(*value)));
    double last = floor(log10(fabs(*value) * ratio / LEAST_STEPS));
    double least = first - MOST_DIGITS + 1;
    last = last > first ? first : last < least ? least : last;

    double step = pow(10, last);
    *value = round(*value / step) * step;
    return 1 + (int)(first - last);
}

struct wm_quantity wm_view_approximate(double value, double ratio, const char *symbol)
{
    int digits = round_by(&value, ratio);

    return prefixed(value, symbol, digits);
}

struct wm_quantity wm_view_rounded(double value, double ratio)
{
    int digits = round_by(&value, ratio);

    return wm_view_number(value, digits);
}

const char *wm_view_about(double ratio)
{
    return ratio >= ROUGH_RATIO ? "about " : "";
}

struct wm_quantity wm_view_percent(double ratio)
{
    struct wm_quantity text = { ">999 %" };

    if (ratio > 9.99)
        return text;
    snprintf(text.text, sizeof(text.text), "%.40s %%", wm_view_number(100 * ratio, 2).text);
    return text;
}
