/* SPDX-License-Identifier: Apache-2.0 */
/* view_figure_text.c - a figure by itself, as people read it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "source/source_energy.h"
#include "view/text/view_text_line.h"
#include "view/view_units.h"

static bool is_in(const struct wm_report_figure *figure, const char *unit)
{
    return strcmp(figure->unit, unit) == 0;
}

static struct wm_quantity quantity(const struct wm_report_figure *figure, double value,
                                   double ratio)
{
    struct wm_quantity text;

    if (is_in(figure, "s"))
        return wm_view_duration(value, NULL);
    if (is_in(figure, "B"))
        return wm_view_bytes(value, NULL);
    if (is_in(figure, "count") && value == round(value))
        return wm_view_fixed(value, 0);
    if (is_in(figure, "percent") || is_in(figure, "celsius") || is_in(figure, "ratio") ||
        is_in(figure, "count")) {
        snprintf(text.text, sizeof(text.text), "%.36s%s",
                 wm_view_rounded(value, ratio).text,
                 is_in(figure, "percent")   ? " %"
                 : is_in(figure, "celsius") ? " °C"
                                            : "");
        return text;
    }
    return wm_view_approximate(value, ratio, figure->unit);
}

/* " ± 2.5 %", " (0 J to 8 mJ)", of a difference that may be 0 " (-4.1 J to 4.1 J)" */
static void add_range(const struct wm_report_figure *figure, double ratio, char *text,
                      size_t size)
{
    const struct wm_value value = { .known = true, .number = figure->value };
    const struct wm_value low = { .known = true, .number = figure->low };
    const struct wm_value high = { .known = true, .number = figure->high };

    if (figure->low < 0 || wm_line_is_asymmetric(&value, &low, &high))
        snprintf(text, size, " (%s to %s)", quantity(figure, figure->low, ratio).text,
                 quantity(figure, figure->high, ratio).text);
    else if (ratio > 0)
        snprintf(text, size, " ± %s", wm_view_percent(ratio).text);
}

/* What the digits of a figure may be off by; 0: unknown. */
static double ratio_of(const struct wm_report_figure *figure)
{
    const bool is_of_energy =
        is_in(figure, "J") || is_in(figure, "W") || is_in(figure, "ratio");

    if (figure->has_range && figure->value == 0)
        return figure->high > figure->low ? 1 : 0;
    if (figure->has_range)
        return fabs((figure->high - figure->low) / 2 / figure->value);
    return is_of_energy && figure->origin == WM_ESTIMATED ? WM_MODEL_GAIN : 0;
}

size_t wm_report_figure_text(const struct wm_report_figure *figure, char *text, size_t size)
{
    const char *const origins[] = {
        [WM_ESTIMATED] = " (estimated)", [WM_SIMULATED] = " (simulated)"
    };
    const double ratio = ratio_of(figure);
    char range[2 * WM_QUANTITY_SIZE + 8] = "";
    int length;

    if (figure->state == WM_REPORT_MISSING || isnan(figure->value)) {
        length = figure->why ? snprintf(text, size, "n/a (%s)", figure->why)
                             : snprintf(text, size, "n/a");
        return length < 0 ? 0 : (size_t)length + 1;
    }
    if (figure->has_range)
        add_range(figure, ratio, range, sizeof(range));
    length =
        snprintf(text, size, "%s%s%s%s",
                 figure->state == WM_REPORT_AT_LEAST ? "at least " : wm_view_about(ratio),
                 quantity(figure, figure->value, ratio).text, range,
                 figure->origin == WM_MEASURED ? "" : origins[figure->origin]);
    return length < 0 ? 0 : (size_t)length + 1;
}
