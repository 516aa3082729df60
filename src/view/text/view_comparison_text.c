/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_comparison_text.c - a comparison for people: the figures that most want in the
 * report's words, regions as a table, and with -v all there is. Two sessions are within 80
 * columns.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/view.h"
#include "view/view_units.h"

enum { LABEL_WIDTH = 16, DETAIL_WIDTH = 38, VALUE_WIDTH = 16, CHANGE_WIDTH = 10 };
enum { INTERVAL_WIDTH = 18, FACT_WIDTH = 13 };

/* In the table of regions. */
enum { REGION_WIDTH = 16, CALLS_WIDTH = 7, CELL_WIDTH = 9 };

/* Of a name, which may be 8 KB of anything. */
enum { SHOWN_NAME_SIZE = 256 };

/* A larger change is not printed in percent. */
#define MOST_RATIO 9.99

struct text {
    const struct wm_compare *compare;
    int verbosity;
    FILE *out;
    struct wm_compare_cell *cells;
    size_t reference; /* of the sessions that are printed beside it */
    int blanks;       /* due before what comes next; none end a line */
};

static bool is_shown(const struct text *text, size_t session)
{
    return session == text->reference ||
           text->compare->sessions[session].reference == text->reference;
}

/* A text in a column of that width, which it ends, or begins. */
static void put_right(struct text *text, const char *shown, int width)
{
    int room = width - wm_view_width(shown);

    text->blanks += room > 0 ? room : 0;
    if (!shown[0])
        return;
    fprintf(text->out, "%*s%s", text->blanks, "", shown);
    text->blanks = 0;
}

static void put_left(struct text *text, const char *shown, int width)
{
    put_right(text, shown, 0);
    put_right(text, "", width - wm_view_width(shown));
}

static void end_line(struct text *text)
{
    text->blanks = 0;
    fputc('\n', text->out);
}

static struct wm_quantity value_text(const struct wm_compare *compare, unsigned item,
                                     const struct wm_known *known, double ratio)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    const char *unit = wm_view_comparison_unit(compare, item);
    double size = row ? 0 : wm_compare_unit_size(unit), value = known->number;
    const struct wm_value figure = wm_value_known(value);
    struct wm_quantity quantity = { "n/a" };

    if (!known->known)
        return quantity;
    if (size > 0)
        return wm_view_bytes(value * size, NULL);
    if (row && row->unit == WM_UNIT_JOULES)
        return wm_view_approximate(value, ratio, "J");
    if (row)
        return wm_line_figure(&figure, row->unit, NULL);
    snprintf(quantity.text, sizeof(quantity.text), "%.30s%s", wm_view_number(value, 4).text,
             strcmp(unit, "percent") == 0 ? " %" : "");
    return quantity;
}

/* After a value that was not measured. */
static const char *const origin_marks[] = {
    [WM_MEASURED] = "",
    [WM_ESTIMATED] = "†",
    [WM_SIMULATED] = "‡",
};

/* Before a value of which at least so much is known. */
#define LACKS_MARK "≥"

/* The value, its uncertainty where that is known, and its origin: "3.21 kJ ±4 %†". */
static void print_value(struct text *text, unsigned item,
                        const struct wm_compare_cell *cell, int width)
{
    double ratio = cell->off.known ? cell->off.number / cell->value.number : 0;
    const struct wm_quantity value = value_text(text->compare, item, &cell->value, ratio);
    struct wm_detail shown = { "" };

    wm_line_add(&shown, "", "%s%s", cell->lacks ? LACKS_MARK : "", value.text);
    if (ratio > 0 && width >= VALUE_WIDTH)
        wm_line_add(&shown, " ", "±%s %%",
                    wm_view_number(100 * fmin(ratio, MOST_RATIO), 2).text);
    if (cell->value.known)
        wm_line_add(&shown, "", "%s", origin_marks[cell->origin]);
    put_right(text, "", 1);
    put_right(text, shown.text, width - 1);
}

/* "+1.5", in percent; "from 0". */
static struct wm_quantity percent_text(double change)
{
    struct wm_quantity shown;

    if (isinf(change))
        snprintf(shown.text, sizeof(shown.text), "from 0");
    else if (change > MOST_RATIO)
        snprintf(shown.text, sizeof(shown.text), ">999");
    else
        snprintf(shown.text, sizeof(shown.text), "%s%.40s", change > 0 ? "+" : "",
                 wm_view_fixed(100 * change, fabs(change) < 0.9995 ? 1 : 0).text);
    return shown;
}

static const char marks[] = {
    [WM_RUNS_NOT_TESTED] = '?',
    [WM_RUNS_NOT_SHOWN] = '~',
    [WM_RUNS_LESS] = '*',
    [WM_RUNS_MORE] = '*',
};

/* "+10.0 % *" */
static void print_change(struct text *text, const struct wm_compare_cell *cell)
{
    char shown[WM_QUANTITY_SIZE + 4] = "";

    if (cell->change.known)
        snprintf(shown, sizeof(shown), "%s%s %c", percent_text(cell->change.number).text,
                 isinf(cell->change.number) ? "" : " %", marks[cell->to.verdict]);
    put_right(text, shown, CHANGE_WIDTH);
}

/* "  +8.1 to +11.9 %" */
static void print_interval(struct text *text, const struct wm_compare_cell *cell)
{
    char shown[2 * WM_QUANTITY_SIZE + 8] = "";

    if (cell->to.verdict != WM_RUNS_NOT_TESTED && isfinite(cell->to.high))
        snprintf(shown, sizeof(shown), "%s to %s %%", percent_text(cell->to.low - 1).text,
                 percent_text(cell->to.high - 1).text);
    put_right(text, shown, text->compare->has_tests ? INTERVAL_WIDTH : 0);
}

/* What is 0 or not known everywhere is left out. */
static bool find_cells(const struct text *text, size_t group, unsigned item)
{
    bool is_known = false;

    if (text->verbosity == 0 && !wm_compare_item_is_main(text->compare, item))
        return false;
    wm_compare_cells(text->compare, group, item, text->cells);
    for (size_t i = 0; i < text->compare->session_count; i++)
        is_known |= is_shown(text, i) && text->cells[i].value.known &&
                    text->cells[i].value.number != 0;
    return is_known;
}

static int label_width(const struct text *text)
{
    return text->verbosity > 0 || !text->compare->is_native ? DETAIL_WIDTH : LABEL_WIDTH;
}

/* Measurements have no words of the report, but keys. */
static void print_label(struct text *text, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    char label[SHOWN_NAME_SIZE];

    snprintf(label, sizeof(label), "  %s", row && row->label ? row->label : "");
    if (row && row->label)
        put_left(text, label, label_width(text));
    else
        wm_line_key(text->out, wm_compare_item_name(item), label_width(text));
}

static void print_figure(struct text *text, size_t group, unsigned item)
{
    if (!find_cells(text, group, item))
        return;
    print_label(text, item);
    for (size_t i = 0; i < text->compare->session_count; i++) {
        if (!is_shown(text, i))
            continue;
        print_value(text, item, &text->cells[i], VALUE_WIDTH);
        if (i == text->reference)
            continue;
        print_change(text, &text->cells[i]);
        print_interval(text, &text->cells[i]);
    }
    end_line(text);
}

static void print_figures(struct text *text, size_t group)
{
    for (unsigned place = 0; place < wm_compare_items(); place++)
        print_figure(text, group, wm_compare_item_at(place));
}

/* The names of the sessions above their columns, those that are long cut. */
static void print_names(struct text *text)
{
    const int width = VALUE_WIDTH - 1;
    char name[SHOWN_NAME_SIZE];

    put_right(text, "", label_width(text));
    for (size_t i = 0; i < text->compare->session_count; i++) {
        if (!is_shown(text, i))
            continue;
        wm_line_clean(name, sizeof(name), text->compare->sessions[i].name);
        int room = width - wm_view_width(name);
        fprintf(text->out, "%*s", text->blanks + 1 + (room > 0 ? room : 0), "");
        text->blanks = 0;
        wm_view_cut(text->out, name, width);
        if (i == text->reference)
            continue;
        put_right(text, "change", CHANGE_WIDTH - 2);
        put_right(text, "", 2);
        put_right(text, text->compare->has_tests ? "95 %" : "",
                  text->compare->has_tests ? INTERVAL_WIDTH : 0);
    }
    end_line(text);
}

static uint64_t count_calls(const struct text *text, size_t group, size_t session)
{
    const struct wm_compare_session *of = &text->compare->sessions[session];
    uint64_t calls = 0;

    for (size_t i = of->first; i < of->first + of->count; i++) {
        const struct wm_region_usage *block = text->compare->groups[group].blocks[i];
        calls += block ? block->calls : 0;
    }
    return calls;
}

static uint64_t count_runs(const struct text *text, size_t group, size_t session)
{
    (void)group;
    return text->compare->sessions[session].count;
}

/* A number of each session. */
static void print_counts(struct text *text, const char *label,
                         uint64_t (*count)(const struct text *, size_t, size_t),
                         size_t group)
{
    char shown[32];

    put_left(text, label, label_width(text));
    for (size_t i = 0; i < text->compare->session_count; i++) {
        if (!is_shown(text, i))
            continue;
        snprintf(shown, sizeof(shown), "%" PRIu64, count(text, group, i));
        put_right(text, shown, VALUE_WIDTH);
        if (i != text->reference)
            put_right(text, "",
                      CHANGE_WIDTH + (text->compare->has_tests ? INTERVAL_WIDTH : 0));
    }
    end_line(text);
}

static const char *const region_items[] = { "time", "cpu_time", "energy" };
enum { REGION_ITEMS = sizeof(region_items) / sizeof(region_items[0]) };

static void print_region_row(struct text *text, size_t group, size_t session,
                             const char *label)
{
    char calls[32] = "-", name[SHOWN_NAME_SIZE];

    wm_line_clean(name, sizeof(name), label);
    text->blanks = REGION_WIDTH - wm_view_cut(text->out, name, REGION_WIDTH);
    if (wm_compare_has(text->compare, &text->compare->groups[group], session))
        snprintf(calls, sizeof(calls), "%" PRIu64, count_calls(text, group, session));
    put_right(text, calls, CALLS_WIDTH);
    for (size_t i = 0; i < REGION_ITEMS; i++) {
        unsigned item = wm_compare_item(region_items[i]);
        wm_compare_cells(text->compare, group, item, text->cells);
        print_value(text, item, &text->cells[session], CELL_WIDTH);
        print_change(text, &text->cells[session]);
    }
    end_line(text);
}

/* A line for each session; a long name has one of its own. */
static void print_region(struct text *text, size_t group)
{
    const struct wm_compare *compare = text->compare;
    const char *label = compare->groups[group].label;
    char name[SHOWN_NAME_SIZE], indented[SHOWN_NAME_SIZE + 4];

    wm_line_clean(name, sizeof(name), label[0] ? label : "(without a name)");
    bool is_long = wm_view_width(name) > REGION_WIDTH - 2;
    if (is_long)
        fprintf(text->out, "  %s\n", name);
    for (size_t i = 0; i < compare->session_count; i++) {
        bool has_label = i == text->reference && !is_long;
        if (!is_shown(text, i))
            continue;
        snprintf(indented, sizeof(indented), has_label ? "  %s" : "    %s",
                 has_label ? name : compare->sessions[i].name);
        print_region_row(text, group, i, indented);
    }
}

static void print_regions(struct text *text)
{
    if (text->compare->group_count == 0)
        return;
    fputc('\n', text->out);
    put_left(text, "Regions", REGION_WIDTH);
    put_right(text, "calls", CALLS_WIDTH);
    for (size_t i = 0; i < REGION_ITEMS; i++) {
        put_right(text, wm_figure_find(region_items[i])->label, CELL_WIDTH);
        put_right(text, "", CHANGE_WIDTH);
    }
    end_line(text);
    for (size_t i = 0; i < text->compare->group_count; i++)
        print_region(text, i);
}

/* With -v: all figures of a region. */
static void print_block(struct text *text, size_t index)
{
    char name[SHOWN_NAME_SIZE];

    wm_line_clean(name, sizeof(name), text->compare->groups[index].label);
    fprintf(text->out, "\nRegion %s\n", name[0] ? name : "(without a name)");
    print_counts(text, "  Calls", count_calls, index);
    print_figures(text, index);
}

static bool has_sessions(const struct text *text)
{
    for (size_t i = 0; i < text->compare->session_count; i++) {
        if (i != text->reference && is_shown(text, i))
            return true;
    }
    return text->compare->session_count == 1;
}

/* A session with those that are compared with it. */
static void print_sessions(struct text *text)
{
    const struct wm_compare *compare = text->compare;

    if (compare->sessions[text->reference].reference != text->reference ||
        !has_sessions(text))
        return;
    fputc('\n', text->out);
    print_names(text);
    print_counts(text, "  Runs", count_runs, 0);
    print_figures(text, WM_COMPARE_OVERALL);
    if (text->verbosity == 0)
        print_regions(text);
    for (size_t i = 0; i < compare->group_count && text->verbosity > 0; i++)
        print_block(text, i);
}

/* What the marks mean, where there are any. */
static void print_marks(const struct text *text)
{
    const struct wm_compare *compare = text->compare;
    bool has[WM_SIMULATED + 1] = { false }, lacks = false, has_pairs = false;
    FILE *out = text->out;

    for (size_t group = 0; group <= compare->group_count; group++) {
        for (unsigned item = 0; item < wm_compare_items(); item++) {
            wm_compare_cells(compare,
                             group < compare->group_count ? group : WM_COMPARE_OVERALL,
                             item, text->cells);
            for (size_t i = 0; i < compare->session_count; i++) {
                has[text->cells[i].origin] |= text->cells[i].value.known;
                lacks |= text->cells[i].lacks != NULL;
                has_pairs |= text->cells[i].is_paired;
            }
        }
    }
    if (has_pairs) {
        wm_view_left(out, "Pairs", FACT_WIDTH);
        fputs("a change is the mean of the pairs of runs; medians may differ\n", out);
    }
    if (lacks) {
        wm_view_left(out, "Incomplete", FACT_WIDTH);
        fputs(LACKS_MARK " at least so much: the report says why\n", out);
    }
    if (!has[WM_ESTIMATED] && !has[WM_SIMULATED])
        return;
    wm_view_left(out, "Origin", FACT_WIDTH);
    fprintf(out, "%s%s%s\n", has[WM_ESTIMATED] ? "† estimated" : "",
            has[WM_ESTIMATED] && has[WM_SIMULATED] ? ", " : "",
            has[WM_SIMULATED] ? "‡ simulated" : "");
}

static void print_facts(const struct text *text)
{
    static const char *const statistics[] = {
        [WM_BLOCK_MIN] = "minimum", [WM_BLOCK_MAX] = "maximum",
        [WM_BLOCK_MEAN] = "mean",   [WM_BLOCK_STD] = "standard deviation",
        [WM_BLOCK_TOTAL] = "total",
    };
    enum wm_block_figure statistic = text->compare->statistic;
    const bool is_tested = statistic == WM_BLOCK_MEAN || statistic == WM_BLOCK_TOTAL;

    if (statistic != WM_BLOCK_MEAN) {
        wm_view_left(text->out, "Statistic", FACT_WIDTH);
        fprintf(text->out, "%s\n", statistics[statistic]);
    }
    if (text->compare->session_count == 1)
        return;
    wm_view_left(text->out, "Changes", FACT_WIDTH);
    if (text->compare->has_tests)
        fprintf(text->out,
                "* more than chance (95 %%), ~ not shown, or below %.3g %%, ? not tested\n",
                100 * text->compare->threshold);
    else if (is_tested)
        fputs("? not tested, needs 6 runs each: wattmeter run -r 10 --record FILE\n",
              text->out);
    else
        fputs("? not tested\n", text->out);
    if (!is_tested || text->compare->run_count == text->compare->session_count)
        return;
    wm_view_left(text->out, "Values", FACT_WIDTH);
    fputs("medians of the runs; changes are of their geometric means\n", text->out);
}

int wm_view_comparison_text(const struct wm_comparison *comparison, int verbosity,
                            FILE *out)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    struct text text = {
        .compare = compare,
        .verbosity = verbosity,
        .out = out,
        .cells = calloc(compare->session_count, sizeof(*text.cells)),
    };

    if (!text.cells)
        return WM_ENOMEM;
    print_facts(&text);
    print_marks(&text);
    for (; text.reference < compare->session_count; text.reference++)
        print_sessions(&text);
    free(text.cells);
    return WM_OK;
}
