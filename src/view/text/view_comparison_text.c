/* SPDX-License-Identifier: Apache-2.0 */
/* view_comparison_text.c - a comparison for people: what differs, and what of it counts. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/text/view_units.h"
#include "view/view.h"

/* Two sessions are within 80 columns. */
enum { LABEL_WIDTH = 38, VALUE_WIDTH = 16, CHANGE_WIDTH = 8, FACT_WIDTH = 13 };

/* Of a name, which may be 8 KB of anything. */
enum { SHOWN_NAME_SIZE = 256 };

/* A larger change is not printed in percent. */
#define MOST_RATIO 9.99

static struct wm_quantity value_text(const struct wm_compare *compare, unsigned item,
                                     const struct wm_known *known, double ratio)
{
    const char *unit = wm_view_comparison_unit(compare, item);
    double size = wm_compare_unit_size(unit), value = known->number;
    struct wm_quantity quantity = { "n/a" };

    if (!known->known)
        return quantity;
    if (size > 0)
        return wm_view_bytes(value * size, NULL);
    if (strcmp(unit, "seconds") == 0)
        return wm_view_duration(value, NULL);
    if (strcmp(unit, "joules") == 0)
        return wm_view_approximate(value, ratio, "J");
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
static void print_value(const struct wm_compare *compare, unsigned item,
                        const struct wm_compare_cell *cell, FILE *out)
{
    double ratio = cell->off.known ? cell->off.number / cell->value.number : 0;
    const struct wm_quantity value = value_text(compare, item, &cell->value, ratio);
    struct wm_detail text = { "" };

    wm_line_add(&text, "", "%s%s", cell->lacks ? LACKS_MARK : "", value.text);
    if (ratio > 0)
        wm_line_add(&text, " ", "±%s %%",
                    wm_view_number(100 * fmin(ratio, MOST_RATIO), 2).text);
    if (cell->value.known)
        wm_line_add(&text, "", "%s", origin_marks[cell->origin]);
    fputc(' ', out);
    wm_view_right(out, text.text, VALUE_WIDTH - 1);
}

static void print_change(const struct wm_compare_cell *cell, bool is_last, FILE *out)
{
    static const char *const marks[] = {
        [WM_COMPARE_NOT_TESTED] = " ?",
        [WM_COMPARE_WITHIN] = "  ",
        [WM_COMPARE_BEYOND] = " *",
    };
    bool has_mark = !is_last || cell->verdict != WM_COMPARE_WITHIN;
    char text[WM_QUANTITY_SIZE] = "";

    if (!cell->change.known) {
        wm_view_right(out, "", is_last ? 0 : CHANGE_WIDTH + 2);
        return;
    }
    if (isinf(cell->change.number)) {
        snprintf(text, sizeof(text), "from 0");
    } else if (cell->change.number > MOST_RATIO) {
        snprintf(text, sizeof(text), ">999 %%");
    } else {
        snprintf(text, sizeof(text), "%s%.40s %%", cell->change.number > 0 ? "+" : "",
                 wm_view_fixed(100 * cell->change.number,
                               fabs(cell->change.number) < 0.9995 ? 1 : 0)
                     .text);
    }
    wm_view_right(out, text, CHANGE_WIDTH);
    fputs(has_mark ? marks[cell->verdict] : "", out);
}

/* What is 0 or not known everywhere is left out. */
static void print_figures(const struct wm_compare *compare, size_t group,
                          struct wm_compare_cell *cells, FILE *out)
{
    size_t last = compare->session_count - 1;

    /* Time first: it is what most people look for. */
    for (unsigned n = 0; n < wm_compare_items(); n++) {
        unsigned item = (n + WM_COMPARE_TIME) % wm_compare_items();
        bool is_shown = false;
        wm_compare_cells(compare, group, item, cells);
        for (size_t i = 0; i < compare->session_count; i++)
            is_shown = is_shown || (cells[i].value.known && cells[i].value.number != 0);
        if (!is_shown)
            continue;
        wm_line_key(out, wm_compare_item_name(item), LABEL_WIDTH);
        for (size_t i = 0; i < compare->session_count; i++) {
            print_value(compare, item, &cells[i], out);
            if (i > 0)
                print_change(&cells[i], i == last, out);
        }
        fputc('\n', out);
    }
}

/* The names of the sessions above their columns, those that are long cut. */
static void print_head(const struct wm_compare *compare, const char *title, FILE *out)
{
    char name[SHOWN_NAME_SIZE];

    wm_view_left(out, title, LABEL_WIDTH);
    for (size_t i = 0; i < compare->session_count; i++) {
        int width = VALUE_WIDTH - 1;
        wm_line_clean(name, sizeof(name), compare->sessions[i].name);
        int shown = wm_view_width(name);
        fprintf(out, "%*s", shown < width ? 1 + width - shown : 1, "");
        wm_view_cut(out, name, width);
        if (i > 0)
            wm_view_right(out, "change", CHANGE_WIDTH);
        if (i > 0 && i + 1 < compare->session_count)
            fputs("  ", out);
    }
    fputc('\n', out);
}

static void print_calls(const struct wm_compare *compare,
                        const struct wm_compare_group *group, FILE *out)
{
    char text[32];

    wm_view_left(out, "  calls", LABEL_WIDTH);
    for (size_t i = 0; i < compare->session_count; i++) {
        if (group->blocks[i])
            snprintf(text, sizeof(text), "%" PRIu64, group->blocks[i]->calls);
        else
            snprintf(text, sizeof(text), "-");
        wm_view_right(out, text, VALUE_WIDTH);
        if (i > 0 && i + 1 < compare->session_count)
            wm_view_right(out, "", CHANGE_WIDTH + 2);
    }
    fputc('\n', out);
}

static void print_block(const struct wm_compare *compare, size_t index,
                        struct wm_compare_cell *cells, FILE *out)
{
    const struct wm_compare_group *group = &compare->groups[index];
    char name[SHOWN_NAME_SIZE];

    wm_line_clean(name, sizeof(name), group->label);
    fprintf(out, "\nBlock        %s\n", name[0] ? name : "(without a name)");
    if (!wm_compare_is_in_all(compare, group)) {
        bool is_first = true;
        fputs("  only in    ", out);
        for (size_t i = 0; i < compare->session_count; i++) {
            if (!group->blocks[i])
                continue;
            wm_line_clean(name, sizeof(name), compare->sessions[i].name);
            fprintf(out, "%s%s", is_first ? "" : ", ", name);
            is_first = false;
        }
        fputc('\n', out);
    }
    print_calls(compare, group, out);
    print_figures(compare, index, cells, out);
}

/* What the marks mean, where there are any. */
static void print_marks(const struct wm_compare *compare, struct wm_compare_cell *cells,
                        FILE *out)
{
    bool has[WM_SIMULATED + 1] = { false }, lacks = false;

    for (size_t group = 0; group <= compare->group_count; group++) {
        for (unsigned item = 0; item < wm_compare_items(); item++) {
            wm_compare_cells(compare,
                             group < compare->group_count ? group : WM_COMPARE_OVERALL,
                             item, cells);
            for (size_t i = 0; i < compare->session_count; i++) {
                has[cells[i].origin] |= cells[i].value.known;
                lacks |= cells[i].lacks != NULL;
            }
        }
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

static void print_facts(const struct wm_compare *compare, FILE *out)
{
    static const char *const statistics[] = {
        [WM_BLOCK_MIN] = "minimum", [WM_BLOCK_MAX] = "maximum",
        [WM_BLOCK_MEAN] = "mean",   [WM_BLOCK_STD] = "standard deviation",
        [WM_BLOCK_TOTAL] = "total",
    };
    bool is_tested =
        compare->statistic == WM_BLOCK_MEAN || compare->statistic == WM_BLOCK_TOTAL;
    char name[SHOWN_NAME_SIZE];

    wm_view_left(out, "Statistic", FACT_WIDTH);
    fprintf(out, "%s\n", statistics[compare->statistic]);
    wm_line_clean(name, sizeof(name), compare->sessions[0].name);
    wm_view_left(out, "Changes", FACT_WIDTH);
    fprintf(out, "from %s; %s\n", name,
            is_tested ? "* more than the noise (95 %), ? not tested"
                      : "whether they are noise is not tested");
}

int wm_view_comparison_text(const struct wm_comparison *comparison, FILE *out)
{
    const struct wm_compare *compare = wm_comparison_compare(comparison);
    struct wm_compare_cell *cells = calloc(compare->session_count, sizeof(*cells));

    if (!cells)
        return WM_ENOMEM;
    print_facts(compare, out);
    print_marks(compare, cells, out);
    fputc('\n', out);
    print_head(compare, "Overall", out);
    print_figures(compare, WM_COMPARE_OVERALL, cells, out);
    for (size_t i = 0; i < compare->group_count; i++)
        print_block(compare, i, cells, out);
    free(cells);
    return WM_OK;
}
