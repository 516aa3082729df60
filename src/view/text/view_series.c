/* SPDX-License-Identifier: Apache-2.0 */
/* view_series.c - figures and curves of a metric: a line for people, CSV, or JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base_clock.h"
#include "base/text/base_json.h"
#include "base/text/base_number.h"
#include "record/record_channel.h"
#include "view/json/view_json_node.h"
#include "view/text/view_text_line.h"
#include "view/view.h"

enum { TIME_SIZE = 32, NAME_SIZE = 256 };

static const char *const words[] = {
    [WM_FIGURE_TOTAL] = "total",
    [WM_FIGURE_AVERAGE] = "average",
    [WM_FIGURE_MAX] = "max",
};

/* What the measured program says of itself wattmeter did not measure. */
static const char *origin_of(const struct wm_series *series)
{
    return series->is_told ? "program" : wm_word(WM_WORDS_ORIGIN, (int)series->origin);
}

static const char *why_no_uncertainty(const struct wm_series *series,
                                      enum wm_figure_kind kind)
{
    if (!series->doubt.is_energy)
        return "it is known of energies and their power only";
    if (series->doubt.is_vague)
        return "the figure leaves out a part of the time";
    if (kind == WM_FIGURE_MAX)
        return "it is not known of a highest value";
    return "it is known of the whole experiment only";
}

static json_t *figure_json(const struct wm_series *series, enum wm_figure_kind kind,
                           const struct wm_figure *figure)
{
    bool is_known = figure->has_uncertainty;
    json_t *why = is_known ? json_object()
                           : json_pack("{s:s}", "uncertainty_percent",
                                       why_no_uncertainty(series, kind));
    json_t *percent = is_known ? wm_json_number(100 * figure->uncertainty) : json_null();

    return json_pack("{s:o,s:s,s:o,s:s,s:o,s:o,s:o,s:I,s:b,s:s,s:o}", "metric",
                     wm_text_json(series->name), "figure", words[kind], "value",
                     wm_json_number(figure->value), "unit", figure->unit,
                     "uncertainty_percent", percent, "seconds",
                     wm_json_number(figure->seconds), "missing_seconds",
                     wm_json_number(figure->missing_s), "unfinished_runs",
                     (json_int_t)figure->unfinished, "is_short", (int)figure->is_short,
                     "origin", origin_of(series), "why", why);
}

static void print_figure(const struct wm_series *series, const struct wm_figure *figure,
                         FILE *out)
{
    struct wm_detail detail = { "" };

    wm_line_add_origin(&detail, series->origin);
    fprintf(out, "%s%s%s", wm_view_number(figure->value, 6).text,
            figure->unit[0] ? " " : "", figure->unit);
    if (figure->has_uncertainty)
        fprintf(out, " ±%s %%", wm_view_number(100 * figure->uncertainty, 3).text);
    fprintf(out, " in %s%s%s\n", wm_view_duration(figure->seconds, NULL).text,
            detail.text[0] ? "  " : "", detail.text);
    if (figure->missing_s > 0)
        fprintf(out, "note: a device of it was not known for %s\n",
                wm_view_duration(figure->missing_s, NULL).text);
    if (figure->unfinished > 0)
        fprintf(out,
                "note: %zu run%s without a result: what was after the last sample is "
                "missing\n",
                figure->unfinished, figure->unfinished == 1 ? "" : "s");
    if (figure->is_short)
        fputs("note: fewer than three updates of the sensor: a rough figure\n", out);
}

int wm_series_print_figure(const struct wm_series *series, enum wm_figure_kind kind,
                           const struct wm_range *range, enum wm_format format, FILE *out,
                           struct wm_error *err)
{
    struct wm_figure figure;

    int status = wm_view_check(format, WM_VIEW_PLAIN, err);
    if (status == WM_OK)
        status = wm_series_figure(series, kind, range, &figure, err);
    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON)
        status = wm_view_dump(figure_json(series, kind, &figure), JSON_INDENT(2), out, err);
    else
        print_figure(series, &figure, out);
    return status == WM_OK ? wm_view_flush(out, "the output", err) : status;
}

static void print_number(FILE *out, double value)
{
    char text[WM_NUMBER_SIZE];

    wm_number_format(value, text);
    fputs(text, out);
}

/* Of a name that somebody chose. */
static void print_cell(FILE *out, const char *name, const char *unit)
{
    char text[NAME_SIZE];

    wm_line_clean(text, sizeof(text), name);
    fputc('"', out);
    for (const char *at = text; *at; at++)
        fputs(*at == '"' ? "\"\"" : (char[]) { *at, '\0' }, out);
    fprintf(out, "%s%s\"", unit[0] ? " " : "", unit);
}

/* So that nobody draws a line across a pause. */
static size_t segment_at(const struct wm_series *series, int64_t unix_ns)
{
    for (size_t i = 0; i < series->start_count; i++) {
        struct wm_series_segment segment = wm_series_segment(series, i);
        if (segment.unix_ns[0] <= unix_ns && unix_ns <= segment.unix_ns[segment.count - 1])
            return i;
    }
    return 0;
}

static void print_csv(const struct wm_series *const series[], size_t count,
                      const int64_t *times, size_t time_count, FILE *out)
{
    fputs("time,seconds", out);
    for (size_t i = 0; i < count; i++) {
        fputc(',', out);
        print_cell(out, series[i]->name, series[i]->unit);
    }
    fputs(count == 1 ? ",segment\n" : "\n", out);
    for (size_t k = 0; k < time_count; k++) {
        char time[TIME_SIZE];
        wm_clock_rfc3339(times[k], time, sizeof(time));
        fprintf(out, "%s,", time);
        print_number(out, (double)(times[k] - series[0]->zero_ns) / 1e9);
        for (size_t i = 0; i < count; i++) {
            double value;
            fputc(',', out);
            if (wm_series_at(series[i], times[k], &value))
                print_number(out, value);
        }
        if (count == 1)
            fprintf(out, ",%zu", segment_at(series[0], times[k]));
        fputc('\n', out);
    }
}

static json_t *values_json(const struct wm_series *series, const int64_t *times,
                           size_t time_count)
{
    json_t *array = json_array();

    for (size_t k = 0; k < time_count && array; k++) {
        double value;
        bool is_known = wm_series_at(series, times[k], &value);
        wm_json_add(&array, is_known ? wm_json_number(value) : json_null());
    }
    return json_pack("{s:o,s:o,s:s,s:o}", "metric", wm_text_json(series->name), "unit",
                     wm_text_json(series->unit), "origin", origin_of(series), "values",
                     array);
}

static json_t *curves_json(const struct wm_series *const series[], size_t count,
                           const int64_t *times, size_t time_count)
{
    json_t *seconds = json_array(), *curves = json_array();
    char start[TIME_SIZE];

    for (size_t k = 0; k < time_count && seconds; k++)
        wm_json_add(&seconds, json_real((double)(times[k] - series[0]->zero_ns) / 1e9));
    for (size_t i = 0; i < count && curves; i++)
        wm_json_add(&curves, values_json(series[i], times, time_count));
    wm_clock_rfc3339(series[0]->zero_ns, start, sizeof(start));
    return json_pack("{s:s,s:o,s:o}", "start", start, "seconds", seconds, "curves", curves);
}

int wm_series_print(const struct wm_series *const series[], size_t count,
                    const struct wm_range *range, enum wm_format format, FILE *out,
                    struct wm_error *err)
{
    int64_t *times = NULL;
    size_t time_count = 0;

    if (count == 0)
        return wm_fail(err, WM_EINVAL, "there is no series to print");
    int status = wm_view_check(format, WM_VIEW_PLAIN, err);
    if (status == WM_OK)
        status = wm_series_union(series, count, range, &times, &time_count, err);
    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON)
        status = wm_view_dump(curves_json(series, count, times, time_count), JSON_INDENT(2),
                              out, err);
    else
        print_csv(series, count, times, time_count, out);
    free(times);
    return status == WM_OK ? wm_view_flush(out, "the output", err) : status;
}
