/* SPDX-License-Identifier: Apache-2.0 */
/* view_mark.c - the marks of an axis as people read them. */
#include "view/chart/view_mark.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/view_units.h"

enum { MOST_DECIMALS = 9 };

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* An axis that reaches so far is in multiples of `size`; the largest first. */
struct scale {
    const char *unit;
    double from;
    double size;
    const char *symbol;
};

/* People read 90 s and 90 min sooner than 1.5 min and 1.5 h. */
static const struct scale scales[] = {
    { "s", 2 * 86400, 86400, "d" },
    { "s", 2 * 3600, 3600, "h" },
    { "s", 3 * 60, 60, "min" },
    { "s", 0.1, 1, "s" },
    { "s", 1e-4, 1e-3, "ms" },
    { "s", 1e-9, 1e-6, "µs" },
    { "s", 0, 1, "s" },
    { "ratio", 0, 0.01, "%" },
    { "celsius", 0, 1, "°C" },
    { "count", 0, 1, "" },
    { "W", 1e6, 1e6, "MW" },
    { "W", 1e3, 1e3, "kW" },
    { "J", 1e9, 1e9, "GJ" },
    { "J", 1e6, 1e6, "MJ" },
    { "J", 1e3, 1e3, "kJ" },
    { "J", 0.1, 1, "J" },
    { "J", 1e-4, 1e-3, "mJ" },
    { "J", 1e-9, 1e-6, "µJ" },
    { "J", 0, 1, "J" },
    { "Hz", 1e9, 1e9, "GHz" },
    { "Hz", 1e6, 1e6, "MHz" },
    { "Hz", 1e3, 1e3, "kHz" },
    { "B", 1e12, 1e12, "TB" },
    { "B", 1e9, 1e9, "GB" },
    { "B", 1e6, 1e6, "MB" },
    { "B", 1e3, 1e3, "kB" },
};

static struct scale scale_of(double low, double high, const char *unit)
{
    double farthest = fmax(fabs(low), fabs(high));

    for (size_t i = 0; i < COUNT(scales); i++) {
        if (strcmp(scales[i].unit, unit) == 0 && farthest >= scales[i].from)
            return scales[i];
    }
    return (struct scale) { unit, 0, 1, unit };
}

/* Numbers of a program, of which nothing is known: their range, or of a level line its
 * value. */
static double own_size(double least, double greatest)
{
    if (least < greatest)
        return greatest - least;
    return isfinite(least) && least != 0 ? fabs(least) : 1;
}

struct wm_axis wm_chart_axis(double least, double greatest, const char *unit)
{
    const double size = unit[0] == '\0'          ? own_size(least, greatest)
                        : strcmp(unit, "W") == 0 ? 1
                                                 : scale_of(least, greatest, unit).size;
    const struct wm_axis axis = wm_axis_of_values(least / size, greatest / size);

    return (struct wm_axis) { axis.low * size, axis.high * size };
}

/* How a panel has the values of a unit. */
static const struct panel_rule {
    const char *unit;
    bool begins_at_0;
    double least; /* that it shows: sensors report whole degrees mostly */
} panel_rules[] = {
    { "W", true, 0 },        { "ratio", true, 0 },  { "B", true, 0 },
    { "celsius", false, 4 }, { "count", false, 2 },
};

struct wm_axis wm_chart_panel_axis(double least, double greatest, const char *unit,
                                   bool fits)
{
    struct wm_axis axis = wm_chart_axis(least, greatest, unit);

    for (size_t i = 0; i < COUNT(panel_rules); i++) {
        const struct panel_rule *rule = &panel_rules[i];
        double lack = rule->least - (axis.high - axis.low);
        if (strcmp(rule->unit, unit) != 0)
            continue;
        if (rule->begins_at_0 && least >= 0 && !fits)
            return (struct wm_axis) { 0, wm_chart_axis(0, greatest, unit).high };
        if (lack > 0)
            return (struct wm_axis) { axis.low - lack / 2, axis.high + lack / 2 };
    }
    return axis;
}

/* How many decimals tell marks apart that are so far from each other. */
static int decimals_of(double step)
{
    int decimals = (int)ceil(-log10(step) - 1e-9);

    return decimals < 0 ? 0 : decimals < MOST_DECIMALS ? decimals : MOST_DECIMALS;
}

/* How many decimals a lone mark of an axis has. */
static int decimals_needed(double place, double range)
{
    int decimals = 0;

    while (decimals < MOST_DECIMALS && fabs(place - round(place * pow(10, decimals)) /
                                                        pow(10, decimals)) > range / 1000)
        decimals++;
    return decimals;
}

static bool is_whole(const double *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (places[i] != round(places[i]))
            return false;
    }
    return true;
}

/* Two marks, or the one of a level line. */
static bool is_enough(const struct wm_axis *axis, const double *places, size_t count)
{
    double middle = (axis->low + axis->high) / 2;

    return count > 1 ||
           (count == 1 && fabs(places[0] - middle) < 0.01 * (axis->high - axis->low));
}

/* Threads and degrees are whole numbers, unless the axis is too short for them. */
static size_t find_places(const struct wm_axis *axis, const char *unit, size_t most,
                          double *places)
{
    bool want_whole = strcmp(unit, "count") == 0 || strcmp(unit, "celsius") == 0;
    size_t count = wm_axis_marks(axis, most, places);

    for (size_t fewer = most; want_whole && !is_whole(places, count); fewer--)
        count = wm_axis_marks(axis, fewer, places);
    return !want_whole || is_enough(axis, places, count)
               ? count
               : wm_axis_marks(axis, most, places);
}

void wm_chart_marks_of(const struct wm_axis *axis, const char *unit, size_t most,
                       struct wm_chart_marks *ret_marks)
{
    const struct scale scale = scale_of(axis->low, axis->high, unit);
    const struct wm_axis scaled = { axis->low / scale.size, axis->high / scale.size };
    double places[WM_CHART_MARKS];
    size_t count =
        find_places(&scaled, unit, most < WM_CHART_MARKS ? most : WM_CHART_MARKS, places);
    int decimals = count > 1    ? decimals_of(places[1] - places[0])
                   : count == 1 ? decimals_needed(places[0], scaled.high - scaled.low)
                                : 0;

    *ret_marks = (struct wm_chart_marks) { .symbol = scale.symbol, .count = count };
    for (size_t i = 0; i < count; i++) {
        struct wm_chart_mark *mark = &ret_marks->marks[i];
        mark->at = places[i] * scale.size;
        snprintf(mark->label, sizeof(mark->label), "%.31s",
                 wm_view_fixed(places[i], decimals).text);
    }
}

/* Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), with the yellow, which white
 * swallows, made darker, and grey for black, which a black screen swallows. */
static const uint32_t colours[] = {
    0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0xb5a300, 0x7f7f7f,
};

uint32_t wm_chart_colour(size_t index)
{
    uint32_t colour = colours[index % COUNT(colours)];

    return index / COUNT(colours) % 2 == 0
               ? colour
               : (colour >> 1 & 0x7f7f7f) + (colour >> 3 & 0x1f1f1f); /* 5/8 of it */
}
