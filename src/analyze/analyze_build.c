/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_build.c - values, reasons and remarks of a report. */
#include "analyze/analyze_build.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a formatted text to a list of the report; NULL when out of memory. */
static const char *append(struct wm_report_builder *builder, char ***list, size_t *count,
                          const char *format, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), format, args);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*list)[i], text) == 0)
            return (*list)[i];
    }

    char **grown = realloc(*list, (*count + 1) * sizeof(**list));
    if (grown)
        *list = grown;
    char *copy = grown ? strdup(text) : NULL;
    if (!copy) {
        builder->failed = true;
        return NULL;
    }
    grown[(*count)++] = copy;
    return copy;
}

const char *wm_build_text(struct wm_report_builder *builder, const char *format, ...)
{
    struct wm_report *report = builder->report;
    va_list args;

    va_start(args, format);
    const char *text = append(builder, &report->texts, &report->text_count, format, args);
    va_end(args);
    return text ? text : "out of memory";
}

static void note_energy(struct wm_report_builder *builder, const char *text)
{
    struct wm_report *report = builder->report;

    if (!builder->is_energy || !text)
        return;
    const char **grown =
        realloc(report->energy_notes, (report->energy_note_count + 1) * sizeof(*grown));
    if (!grown) {
        builder->failed = true;
        return;
    }
    report->energy_notes = grown;
    grown[report->energy_note_count++] = text;
}

void wm_build_remark(struct wm_report_builder *builder, const char *format, ...)
{
    struct wm_report *report = builder->report;
    va_list args;

    va_start(args, format);
    note_energy(builder,
                append(builder, &report->remarks, &report->remark_count, format, args));
    va_end(args);
}

void wm_build_fact(struct wm_report_builder *builder, const char *format, ...)
{
    struct wm_report *report = builder->report;
    va_list args;

    va_start(args, format);
    note_energy(builder,
                append(builder, &report->facts, &report->fact_count, format, args));
    va_end(args);
}

const char *wm_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

struct wm_number_text wm_build_number(double value)
{
    struct wm_number_text number = { "0" };

    if (value == 0 || !isfinite(value))
        return number;
    double step = pow(10, floor(log10(fabs(value))) - 2);
    double rounded =
        step < 1 ? round(value / step) / round(1 / step) : round(value / step) * step;
    wm_number_format(rounded, number.text);
    return number;
}

static const char *why_no_channel(struct wm_report_builder *builder, const char *source)
{
    const struct wm_source_status *status = wm_run_source(builder->analysis->run, source);

    if (!status)
        return wm_build_text(builder, "%s: not recorded", source);
    if (status->available)
        return wm_build_text(builder, "%s: not reported here", source);
    return wm_build_text(builder, "%s: %s", source,
                         status->detail ? status->detail : "not available");
}

const char *wm_build_why(struct wm_report_builder *builder, size_t channel,
                         const char *source)
{
    static const char *const states[] = {
        [WM_READING_NONE] = "never read",
        [WM_READING_OK] = "not a number",
        [WM_READING_UNSUPPORTED] = "not supported by this device",
        [WM_READING_DENIED] = "no permission to read it",
        [WM_READING_FAILED] = "could not be read",
        [WM_READING_STALE] = "too old when it was read",
        [WM_READING_JUMPED] = "it jumped by more than the device can draw",
    };

    if (channel == WM_NO_CHANNEL)
        return why_no_channel(builder, source);

    const struct wm_channel_stats *stats = &builder->analysis->stats[channel];
    if (stats->why[0])
        return wm_build_text(builder, "%s", stats->why);
    if ((size_t)stats->state < sizeof(states) / sizeof(states[0]))
        return states[stats->state];
    return states[WM_READING_NONE];
}

static const struct wm_gauge_stats *find_gauge(const struct wm_report_builder *builder,
                                               size_t channel)
{
    if (channel == WM_NO_CHANNEL || builder->analysis->stats[channel].gauge.count == 0)
        return NULL;
    return &builder->analysis->stats[channel].gauge;
}

/* What is not known for most of the time may have been higher then. */
struct wm_value wm_build_max(struct wm_report_builder *builder, size_t channel,
                             const char *source)
{
    const struct wm_gauge_stats *gauge = find_gauge(builder, channel);

    if (!gauge)
        return wm_value_missing(wm_build_why(builder, channel, source));
    struct wm_value max = wm_value_known(gauge->max);
    double unknown_s = builder->analysis->stats[channel].unknown_s;
    if (unknown_s > gauge->covered_s) {
        const char *why = builder->analysis->stats[channel].why;
        max.why = wm_build_text(builder, "%s for %s of %s s", why[0] ? why : "not known",
                                wm_build_number(unknown_s).text,
                                wm_build_number(unknown_s + gauge->covered_s).text);
    }
    return max;
}

struct wm_value wm_build_last(struct wm_report_builder *builder, size_t channel,
                              const char *source)
{
    const struct wm_gauge_stats *gauge = find_gauge(builder, channel);

    return gauge ? wm_value_known(gauge->last)
                 : wm_value_missing(wm_build_why(builder, channel, source));
}

struct wm_spread wm_build_spread(struct wm_report_builder *builder, size_t channel,
                                 const char *source)
{
    const struct wm_gauge_stats *gauge = find_gauge(builder, channel);

    return (struct wm_spread) {
        .mean = gauge ? wm_value_known(wm_gauge_mean(gauge))
                      : wm_value_missing(wm_build_why(builder, channel, source)),
        .max = wm_build_max(builder, channel, source),
    };
}

void wm_build_silence(struct wm_report_builder *builder, size_t channel, const char *what)
{
    const struct wm_analysis *analysis = builder->analysis;

    if (channel == WM_NO_CHANNEL)
        return;
    const struct wm_channel_stats *stats = &analysis->stats[channel];
    const struct wm_silence *silence = &stats->silence;
    if (silence->seconds <= 0 || stats->gauge.count + stats->counter.count == 0)
        return;
    wm_build_remark(
        builder, "%s: %s, for %s of %s s", what, silence->why,
        wm_build_number(silence->seconds).text,
        wm_build_number(wm_stats_seconds(analysis->first_ns, analysis->last_ns)).text);
}

uint64_t wm_build_missing_ticks(const struct wm_report_builder *builder, size_t channel)
{
    const struct wm_analysis *analysis = builder->analysis;

    return channel == WM_NO_CHANNEL
               ? analysis->ticks
               : analysis->ticks - analysis->stats[channel].gauge.count;
}

const char *wm_build_how_many_lack(struct wm_report_builder *builder, size_t channel)
{
    return wm_build_text(builder, "it was not known in %llu of %llu samples",
                         (unsigned long long)wm_build_missing_ticks(builder, channel),
                         (unsigned long long)builder->analysis->ticks);
}

bool wm_build_is_doubtful(const struct wm_report_builder *builder, size_t channel)
{
    if (channel == WM_NO_CHANNEL)
        return false;
    const struct wm_gauge_stats *gauge = &builder->analysis->stats[channel].gauge;
    return gauge->count > 0 && gauge->max <= 0 &&
           wm_build_missing_ticks(builder, channel) > 0;
}

struct wm_value wm_build_none_found(struct wm_report_builder *builder, size_t channel,
                                    const char *lacking)
{
    const char *why = builder->analysis->stats[channel].why;

    return wm_value_missing(wm_build_text(builder, "none was found, but %s%s%s", lacking,
                                          why[0] ? ": " : "", why));
}
