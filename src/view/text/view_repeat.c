/* SPDX-License-Identifier: Apache-2.0 */
/* view_repeat.c - repeated commands for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/view.h"

enum { NAME_SIZE = 1024, LABEL_SIZE = 32, LABEL_COLUMNS = 24, BAR_COLUMNS = 12 };

enum { TIME_DIGITS = 4, COUNT_DIGITS = 4 };

/* Columns of a line of figures. */
enum { KEY_COLUMNS = 14, VALUE_COLUMNS = 21, RANGE_COLUMNS = 30 };

struct text {
    const struct wm_repeat *repeat;
    int verbosity;
    FILE *out;
};

static bool has_name(const struct wm_repeat_one *one)
{
    return strcmp(one->name, one->command) != 0 &&
           wm_view_width(one->name) <= LABEL_COLUMNS;
}

/* What a command is called in sentences: its name, or "A", "B" ... "Z", "AA". */
static void label_of(const struct wm_repeat *repeat, size_t index, char label[LABEL_SIZE])
{
    const struct wm_repeat_one *one = &repeat->commands[index];

    if (has_name(one))
        wm_line_clean(label, LABEL_SIZE, one->name);
    else if (index < 26)
        snprintf(label, LABEL_SIZE, "%c", (char)('A' + index));
    else
        snprintf(label, LABEL_SIZE, "%c%c", (char)('A' + index / 26 % 26 - 1),
                 (char)('A' + index % 26));
}

static bool has_label(const struct wm_repeat *repeat, size_t index)
{
    return repeat->count > 1 || has_name(&repeat->commands[index]);
}

/* A time in the unit and with the decimals that suit another: "0.2 ms" beside 101.3 ms. */
static struct wm_quantity time_like(double value, double like)
{
    static const struct {
        double size;
        const char *symbol;
    } units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "µs" }, { 1e-9, "ns" } };
    struct wm_quantity text;
    size_t unit = 0;

    if (like >= 60 || like <= 0)
        return wm_view_duration(value, NULL);
    while (unit < 3 && like < units[unit].size)
        unit++;
    double whole = floor(log10(like / units[unit].size));
    int decimals = whole < TIME_DIGITS ? TIME_DIGITS - 1 - (int)whole : 0;
    snprintf(text.text, sizeof(text.text), "%.40s %s",
             wm_view_fixed(value / units[unit].size, decimals).text, units[unit].symbol);
    return text;
}

/* A time beside another that is `like` that, joules in as many digits as `off` leaves. */
static struct wm_quantity quantity(enum wm_repeat_metric metric, double value, double like,
                                   double off)
{
    switch (wm_repeat_kind(metric)->unit) {
    case WM_UNIT_BYTES:
        return wm_view_bytes(value, NULL);
    case WM_UNIT_COUNT:
        return wm_view_number(value, COUNT_DIGITS);
    case WM_UNIT_JOULES:
        return wm_view_approximate(value, value > 0 ? off / value : 0, "J");
    default:
        return time_like(value, like);
    }
}

static void print_bar(const struct text *text, double median)
{
    double most = 0;

    for (size_t i = 0; i < text->repeat->count; i++)
        most = fmax(
            most, wm_repeat_summary(&text->repeat->commands[i], WM_REPEAT_TIME).of.median);
    int length = most > 0 ? (int)fmax(round(BAR_COLUMNS * median / most), 1) : 0;
    for (int i = 0; i < length; i++)
        fputs("█", text->out);
}

/* "95 %: 202.1 ms to 202.5 ms" */
static void put_interval(const struct wm_repeat_summary *sum, enum wm_repeat_metric metric,
                         char *shown, size_t size)
{
    double off = sum->high - sum->low, like = sum->of.median;

    shown[0] = '\0';
    if (sum->has_interval)
        snprintf(shown, size, "95 %%: %s to %s", quantity(metric, sum->low, like, off).text,
                 quantity(metric, sum->high, like, off).text);
}

static void print_figure(const struct text *text, const struct wm_repeat_one *one,
                         enum wm_repeat_metric metric)
{
    const struct wm_repeat_summary sum = wm_repeat_summary(one, metric);
    double off = sum.has_interval ? (sum.high - sum.low) / 2 : 0;
    const char *label = wm_repeat_kind(metric)->label;
    char interval[3 * WM_QUANTITY_SIZE];
    FILE *out = text->out;

    if (sum.of.count == 0 && (!wm_repeat_is_compared(metric) || !one->why[metric]))
        return;
    fputs("   ", out);
    wm_view_left(out, label, KEY_COLUMNS);
    if (wm_view_width(label) >= KEY_COLUMNS)
        fputc(' ', out);
    if (sum.of.count == 0) {
        fprintf(out, "n/a (%s)\n", one->why[metric]);
        return;
    }
    put_interval(&sum, metric, interval, sizeof(interval));
    bool has_bar = metric == WM_REPEAT_TIME && text->repeat->count > 1;
    const char *mark = wm_line_origin(one->origin[metric]);
    bool has_more = has_bar || mark[0] || interval[0];
    wm_view_left(out, quantity(metric, sum.of.median, sum.of.median, off).text,
                 has_more ? VALUE_COLUMNS : 0);
    wm_view_left(out, interval, has_bar ? RANGE_COLUMNS : 0);
    if (mark[0])
        fprintf(out, "%s%s", interval[0] ? "  " : "", mark);
    if (has_bar)
        print_bar(text, sum.of.median);
    fputc('\n', out);
}

/* "   Mean          202.2 ms ± 0.3 ms    range 201.8 ms to 203.1 ms" */
static void print_mean(const struct text *text, const struct wm_repeat_one *one)
{
    const struct wm_runs sum = wm_repeat_summary(one, WM_REPEAT_TIME).of;
    char mean[3 * WM_QUANTITY_SIZE];

    if (sum.count < 2)
        return;
    snprintf(mean, sizeof(mean), "%s ± %s", time_like(sum.mean, sum.mean).text,
             time_like(sum.std, sum.mean).text);
    fputs("   ", text->out);
    wm_view_left(text->out, "Mean", KEY_COLUMNS);
    wm_view_left(text->out, mean, VALUE_COLUMNS);
    fprintf(text->out, "range %s to %s\n", time_like(sum.min, sum.min).text,
            time_like(sum.max, sum.max).text);
}

/* "A  sleep 0.2", and how often it was run. */
static void print_head(const struct text *text, size_t index)
{
    const struct wm_repeat_one *one = &text->repeat->commands[index];
    size_t batch = wm_repeat_runs(one);
    char label[LABEL_SIZE], command[NAME_SIZE];

    label_of(text->repeat, index, label);
    wm_line_clean(command, sizeof(command), has_name(one) ? one->command : one->name);
    if (has_label(text->repeat, index))
        fprintf(text->out, "%s  ", label);
    wm_view_cut(text->out, command, wm_view_columns(text->out) - LABEL_COLUMNS);
    fprintf(text->out, "  (%zu run%s", one->sample_count,
            one->sample_count == 1 ? "" : "s");
    if (batch > 1)
        fprintf(text->out, " of %zu back to back", batch);
    fputs(one->sample_count > 1 ? ", medians)\n" : ")\n", text->out);
}

static void print_command(const struct text *text, size_t index)
{
    const struct wm_repeat_one *one = &text->repeat->commands[index];

    print_head(text, index);
    for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
        if (wm_repeat_kind(m)->is_detail && text->verbosity == 0)
            continue;
        print_figure(text, one, m);
        if (m == WM_REPEAT_TIME)
            print_mean(text, one);
    }
    fputc('\n', text->out);
}

/* A ratio as a change in percent: 1.1 is "10.0"; or as it is. */
static struct wm_quantity change(double ratio, bool is_times)
{
    return is_times ? wm_view_number(ratio, 3) : wm_view_fixed(100 * fabs(ratio - 1), 1);
}

/* "B takes 12.3 % less energy than A", "B takes 2.5 times the energy of A". */
static void print_change(const struct text *text, double ratio, const char *const names[2],
                         const char *what)
{
    if (ratio >= 2)
        fprintf(text->out, "%s takes %s times the %s of %s", names[0],
                change(ratio, true).text, what, names[1]);
    else
        fprintf(text->out, "%s takes %s %% %s %s than %s", names[0],
                change(ratio, false).text, ratio > 1 ? "more" : "less", what, names[1]);
}

static void print_difference(const struct text *text, size_t index,
                             enum wm_repeat_metric metric, const char *const names[2])
{
    struct wm_runs_ratio ratio = wm_repeat_ratio(text->repeat, index, metric);
    const char *what = wm_repeat_kind(metric)->more;
    bool is_up = ratio.ratio > 1, is_times = ratio.ratio >= 2;
    const char *mark = wm_line_origin(wm_repeat_ratio_origin(text->repeat, index, metric));
    char end[16];
    FILE *out = text->out;

    if (ratio.verdict == WM_RUNS_NOT_TESTED && ratio.ratio <= 0)
        return;
    snprintf(end, sizeof(end), "%s%s", mark[0] ? "  " : "", mark);
    if (ratio.verdict == WM_RUNS_NOT_SHOWN) {
        fprintf(out, "%s ~ %s in %s (95 %%: %s%s to %s%s %%, %zu pairs)%s\n", names[0],
                names[1], what, ratio.low < 1 ? "-" : "+", change(ratio.low, false).text,
                ratio.high < 1 ? "-" : "+", change(ratio.high, false).text, ratio.count,
                end);
        return;
    }
    print_change(text, ratio.ratio, names, what);
    if (ratio.verdict == WM_RUNS_NOT_TESTED)
        fprintf(out, " (not tested)%s\n", end);
    else
        fprintf(out, " (95 %%: %s to %s, %zu pairs)%s\n",
                change(is_up ? ratio.low : ratio.high, is_times).text,
                change(is_up ? ratio.high : ratio.low, is_times).text, ratio.count, end);
}

/* Beyond this a change seems to contradict the medians, a ratio. */
#define VISIBLE 0.01

/* Explains once what stands in the lines above. */
static void explain_differences(const struct text *text)
{
    const struct wm_repeat *repeat = text->repeat;
    const struct wm_repeat_one *reference = &repeat->commands[repeat->options.reference];
    bool has_same = false, differs = false;

    for (size_t i = 0; i < repeat->count; i++) {
        for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
            if (i == repeat->options.reference || !wm_repeat_is_compared(m))
                continue;
            const struct wm_runs_ratio ratio = wm_repeat_ratio(repeat, i, m);
            double median = wm_repeat_summary(&repeat->commands[i], m).of.median;
            double other = wm_repeat_summary(reference, m).of.median;
            has_same |= ratio.verdict == WM_RUNS_NOT_SHOWN;
            differs |= ratio.ratio > 0 && isfinite(ratio.ratio) && other > 0 &&
                       fabs(ratio.ratio - median / other) > VISIBLE;
        }
    }
    if (has_same)
        fprintf(text->out, "~ not shown, or below %.3g %%\n",
                100 * repeat->options.threshold);
    if (differs)
        fputs("A change is the mean of the pairs of runs; that of the medians differs.\n",
              text->out);
}

static void print_differences(const struct text *text)
{
    const struct wm_repeat *repeat = text->repeat;
    char label[LABEL_SIZE], reference[LABEL_SIZE];
    const char *const names[] = { label, reference };

    label_of(repeat, repeat->options.reference, reference);
    for (size_t i = 0; i < repeat->count; i++) {
        label_of(repeat, i, label);
        for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
            if (i != repeat->options.reference && wm_repeat_is_compared(m))
                print_difference(text, i, m, names);
        }
    }
}

/* Of one command, which is named if its head is. */
static void begin_note(const struct text *text, size_t index)
{
    char label[LABEL_SIZE];

    fputs("note: ", text->out);
    if (!has_label(text->repeat, index))
        return;
    label_of(text->repeat, index, label);
    fprintf(text->out, "%s: ", label);
}

static void print_outliers(const struct text *text, size_t index)
{
    const struct wm_runs_outliers outliers =
        wm_repeat_outliers(&text->repeat->commands[index]);

    if (outliers.is_first) {
        begin_note(text, index);
        fputs("the first run is an outlier; --warmup 1 runs it without measuring\n",
              text->out);
    }
    if (outliers.count > outliers.is_first) {
        begin_note(text, index);
        fprintf(text->out,
                "outliers among the runs: %zu; other programs may have disturbed them\n",
                outliers.count - outliers.is_first);
    }
}

/* They count, as --ignore-failure has it. */
static void print_failures(const struct text *text, size_t index)
{
    const struct wm_repeat_one *one = &text->repeat->commands[index];
    size_t failed = 0;

    for (size_t i = 0; i < one->time_count; i++)
        failed += one->exit_codes[i] != 0;
    if (failed == 0)
        return;
    begin_note(text, index);
    fprintf(text->out, "%zu of %zu runs failed\n", failed, one->time_count);
}

static size_t count_rounds(const struct wm_repeat *repeat)
{
    size_t rounds = 0;

    for (size_t i = 0; i < repeat->count; i++)
        rounds = repeat->commands[i].sample_count > rounds
                     ? repeat->commands[i].sample_count
                     : rounds;
    return rounds;
}

/* The order in which the commands were run, and from which seed it comes. */
static void print_order(const struct text *text)
{
    const struct wm_repeat *repeat = text->repeat;
    size_t order[64];
    char label[LABEL_SIZE];

    if (repeat->count < 2 || repeat->count > 64)
        return;
    fprintf(text->out, "Order (seed %llu):", (unsigned long long)repeat->options.seed);
    for (size_t round = 0; round < count_rounds(repeat); round++) {
        wm_repeat_order(repeat, round, order);
        fputs(round > 0 && round % 2 == 0 ? "," : "", text->out);
        for (size_t i = 0; i < repeat->count; i++) {
            label_of(repeat, order[i], label);
            fprintf(text->out, " %s", label);
        }
    }
    fputc('\n', text->out);
}

/* Of few runs energy has an interval all the same: that of its sensor. */
static void print_least(const struct text *text)
{
    bool has_interval = false;

    for (size_t i = 0; i < text->repeat->count; i++)
        has_interval |=
            wm_repeat_summary(&text->repeat->commands[i], WM_REPEAT_ENERGY).has_interval;
    if (has_interval)
        fprintf(text->out,
                "note: the interval of the energy is the sensor's own error; the other "
                "intervals and comparisons need %d runs\n",
                WM_RUNS_LEAST);
    else
        fprintf(text->out, "note: 95 %% intervals and comparisons need %d runs\n",
                WM_RUNS_LEAST);
}

static void print_text(const struct text *text)
{
    const struct wm_repeat *repeat = text->repeat;
    char load[WM_REPEAT_NOTE_SIZE];
    const char *note;

    for (size_t i = 0; i < repeat->count; i++) {
        if (repeat->commands[i].sample_count > 0)
            print_command(text, i);
    }
    print_differences(text);
    if (repeat->count > 1)
        explain_differences(text);
    if (text->verbosity > 0)
        print_order(text);
    for (size_t i = 0; i < repeat->count; i++) {
        print_failures(text, i);
        print_outliers(text, i);
    }
    if (count_rounds(repeat) < WM_RUNS_LEAST && !repeat->is_stopped)
        print_least(text);
    for (size_t i = 0; (note = wm_remarks_get(&repeat->remarks, i)) != NULL; i++)
        fprintf(text->out, "note: %s\n", note);
    if (wm_repeat_load_note(repeat, load))
        fprintf(text->out, "note: %s\n", load);
}

int wm_repeat_print(const struct wm_repeat *repeat, enum wm_format format, int verbosity,
                    FILE *out, struct wm_error *err)
{
    const struct text text = { repeat, verbosity, out };
    int status = wm_view_check(format,
                               WM_VIEW_PLAIN | WM_VIEW_FORMAT(WM_FORMAT_MARKDOWN) |
                                   WM_VIEW_FORMAT(WM_FORMAT_CSV),
                               err);

    if (status < 0)
        return status;
    switch (format) {
    case WM_FORMAT_JSON:
        status = wm_view_dump(wm_view_repeat_json(repeat), JSON_INDENT(2), out, err);
        break;
    case WM_FORMAT_MARKDOWN:
        wm_view_repeat_markdown(repeat, out);
        break;
    case WM_FORMAT_CSV:
        wm_view_repeat_csv(repeat, out);
        break;
    default:
        print_text(&text);
    }
    return status == WM_OK ? wm_view_flush(out, "the results", err) : status;
}
