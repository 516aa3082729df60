/* SPDX-License-Identifier: Apache-2.0 */
/* view_text_regions.c - regions for people: what the top ones cost, and where they stand in
 * the tree of calls; and all of them, with what was measured meanwhile. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/view_units.h"
#include "wattmeter/analysis.h"

#define MOST_NAMES 10
#define MOST_LINES 30 /* of the tree */
#define MOST_DEPTH 8  /* regions inside each other that the tree shows */
#define NAME_WIDTH 48

enum { COUNT_WIDTH = 10, FIGURE_WIDTH = 10, PERCENT_WIDTH = 9 };
enum { KEY_WIDTH = 39, FACT_WIDTH = 13, BAR_WIDTH = 40 };

/* Of a name, which may be 8 KB of anything. */
enum { SHOWN_NAME_SIZE = 256 };

/* Beyond it a figure says no more than that there was something. */
#define MOST_RATIO 9.99

struct table {
    const struct wm_text_view *view;
    bool has_clocks;     /* the CPU time of a region is by its thread's clock */
    bool has_attributed; /* that of another is not */
    bool has_short;
    size_t lines; /* of the tree, by now */
};

static double energy_or_time(const struct wm_region_spending *spending)
{
    return spending->energy.value.known ? spending->energy.value.number
                                        : spending->time.number;
}

static double exclusive_cost(const struct wm_region_usage *region)
{
    return energy_or_time(&region->exclusive);
}

static double inclusive_cost(const struct wm_region_usage *region)
{
    return energy_or_time(&region->inclusive);
}

/* The one that cost most after `last`, which is NULL at first, of those inside `parent`; of
 * all names, which have no parent. NULL past the cheapest. */
static const struct wm_region_usage *
next_top(const struct wm_region_usage *list, size_t count, size_t parent,
         double (*cost)(const struct wm_region_usage *), const struct wm_region_usage *last)
{
    const struct wm_region_usage *found = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct wm_region_usage *region = &list[i];
        bool is_after = !last || cost(region) < cost(last) ||
                        (cost(region) == cost(last) && region > last);
        if (region->parent == parent && is_after && (!found || cost(region) > cost(found)))
            found = region;
    }
    return found;
}

/* A column that would hold nothing but "n/a" is not there. */
static bool is_shown(const struct table *table, const struct wm_figure_row *row)
{
    const struct wm_report *report = table->view->report;
    const struct wm_region_report *regions = &report->regions;
    bool is_known = !row->region.uncertainty || !wm_figure_place(row, WM_REPORT_RUN);

    if (!row->inclusive_heading && !row->exclusive_heading)
        return false;
    for (size_t i = 0; i < regions->name_count && !is_known; i++)
        is_known = wm_figure_of(row, WM_REPORT_REGION, report, &regions->names[i].exclusive)
                       .value.known;
    return is_known;
}

/* The next row that has columns, from number `*at` on; NULL past the last. */
static const struct wm_figure_row *next_column(const struct table *table, size_t *at)
{
    const struct wm_figure_row *row;

    while ((row = wm_figure_row((*at)++)) != NULL && !is_shown(table, row))
        ;
    return row;
}

/* A blank stands before each heading. */
static int width_of(const char *heading)
{
    int width = wm_view_width(heading) + 1;

    return width > FIGURE_WIDTH ? width : FIGURE_WIDTH;
}

static bool is_brief(const struct table *table)
{
    return table->view->units->verbosity == 0;
}

/* In brief what is not sure is shown of the exclusive figures alone, in as many digits as
 * are true. */
static const char *inclusive_heading(const struct table *table,
                                     const struct wm_figure_row *row)
{
    return is_brief(table) && row->region.uncertainty ? NULL : row->inclusive_heading;
}

static bool has_percent(const struct table *table, const struct wm_figure_row *row)
{
    return row->region.uncertainty && !is_brief(table);
}

static void print_heading(FILE *out, const char *heading)
{
    if (heading)
        wm_view_right(out, heading, width_of(heading));
}

static void print_head(const struct table *table, const char *name)
{
    FILE *out = table->view->out;
    const struct wm_figure_row *row;
    size_t at = 0;

    fprintf(out, "%*s%*s", COUNT_WIDTH, "calls", FIGURE_WIDTH, "mean");
    while ((row = next_column(table, &at)) != NULL) {
        print_heading(out, inclusive_heading(table, row));
        print_heading(out, row->exclusive_heading);
        if (has_percent(table, row))
            wm_view_right(out, "±", PERCENT_WIDTH);
    }
    fprintf(out, "  %s\n", name);
}

/* However wide it is, a blank stands before it. */
static void put_right(FILE *out, const char *text, int width)
{
    fputc(' ', out);
    wm_view_right(out, text, width - 1);
}

static void print_right(const struct table *table, const char *text, int width)
{
    put_right(table->view->out, text, width);
}

static void print_seconds(const struct table *table, double seconds)
{
    print_right(table, wm_view_duration(seconds, NULL).text, FIGURE_WIDTH);
}

static void print_percent(const struct table *table, const struct wm_value *ratio,
                          bool is_short)
{
    char text[WM_QUANTITY_SIZE + 2];

    snprintf(text, sizeof(text), "%s%s",
             ratio->known && ratio->number > MOST_RATIO
                 ? ">999 %"
                 : wm_line_number(ratio, 100, " %").text,
             is_short ? "*" : "");
    print_right(table, text, PERCENT_WIDTH);
}

static void print_name(const struct table *table, const struct wm_region_usage *region,
                       uint32_t depth)
{
    FILE *out = table->view->out;
    char name[SHOWN_NAME_SIZE];

    wm_line_clean(name, sizeof(name), region->name[0] ? region->name : "(no name)");
    fprintf(out, "  %*s", (int)(2 * depth), "");
    wm_view_cut(out, name, NAME_WIDTH);
    if (region->unfinished > 0)
        fprintf(out, " (%" PRIu64 " never ended)", region->unfinished);
    fputc('\n', out);
}

/* "-" where the figure is not known, or its error is larger. */
static struct wm_quantity joules_text(const struct wm_found *found)
{
    const struct wm_value *ratio = &found->uncertainty;

    if (!found->value.known || !ratio->known || ratio->number > 1)
        return (struct wm_quantity) { "-" };
    return wm_view_approximate(found->value.number, ratio->number, "J");
}

/* What is less exact than the rest of a region's row. */
struct doubts {
    bool is_short;      /* energy */
    bool is_attributed; /* CPU time */
};

/* `spending` is NULL where there is nothing to say. */
static void print_figure(const struct table *table, const struct wm_figure_row *row,
                         const struct wm_region_spending *spending, const char *heading,
                         bool is_attributed)
{
    char marked[WM_QUANTITY_SIZE + 1];

    if (!heading)
        return;
    if (!spending) {
        wm_view_right(table->view->out, "", width_of(heading));
        return;
    }
    const struct wm_found found =
        wm_figure_of(row, WM_REPORT_REGION, table->view->report, spending);
    struct wm_quantity text = wm_line_figure(&found.value, row->unit, NULL);
    if (is_brief(table) && row->unit == WM_UNIT_JOULES)
        text = joules_text(&found);
    snprintf(marked, sizeof(marked), "%s%s", is_attributed && found.value.known ? "~" : "",
             text.text);
    print_right(table, marked, width_of(heading));
}

static void print_spent(struct table *table, const struct wm_region_spending *inclusive,
                        const struct wm_region_spending *exclusive, struct doubts doubts)
{
    const struct wm_figure_row *row;
    size_t at = 0;

    while ((row = next_column(table, &at)) != NULL) {
        bool is_rough = doubts.is_short && row->unit == WM_UNIT_JOULES;
        bool is_attributed = doubts.is_attributed && row->unit == WM_UNIT_SECONDS;
        print_figure(table, row, inclusive, inclusive_heading(table, row), is_attributed);
        print_figure(table, row, exclusive, row->exclusive_heading, is_attributed);
        table->has_attributed |= is_attributed;
        if (!has_percent(table, row))
            continue;
        const struct wm_found found =
            wm_figure_of(row, WM_REPORT_REGION, table->view->report, exclusive);
        print_percent(table, &found.uncertainty, is_rough);
        table->has_short |= is_rough;
    }
}

static void print_region(struct table *table, const struct wm_region_usage *region,
                         uint32_t depth)
{
    FILE *out = table->view->out;
    uint64_t calls = region->calls + region->unfinished;
    const struct doubts doubts = {
        .is_short = region->is_short,
        .is_attributed = table->has_clocks && region->clocked_calls < calls,
    };

    fprintf(out, "%*" PRIu64, COUNT_WIDTH, calls);
    if (region->calls > 0)
        print_seconds(table, region->time.of[WM_BLOCK_MEAN].number);
    else
        wm_view_right(out, "n/a", FIGURE_WIDTH);
    print_spent(table, &region->inclusive, &region->exclusive, doubts);
    print_name(table, region, depth);
}

static void print_names(struct table *table)
{
    const struct wm_region_report *regions = &table->view->report->regions;
    const struct wm_region_usage *region = NULL;
    FILE *out = table->view->out;

    print_head(table, "region");
    for (size_t i = 0; i < MOST_NAMES; i++) {
        region = next_top(regions->names, regions->name_count, WM_NO_REGION, exclusive_cost,
                          region);
        if (!region)
            break;
        print_region(table, region, 0);
    }
    if (regions->name_count > MOST_NAMES)
        fprintf(out, "%*s and %zu more\n", COUNT_WIDTH, "",
                regions->name_count - MOST_NAMES);
    fprintf(out, "%*s", COUNT_WIDTH + FIGURE_WIDTH, "");
    print_spent(table, NULL, &regions->rest, (struct doubts) { 0 });
    fputs("  (outside of all regions)\n", out);
}

static void print_inside(struct table *table, size_t parent, uint32_t depth)
{
    const struct wm_region_report *regions = &table->view->report->regions;
    const struct wm_region_usage *region = NULL;

    if (depth >= MOST_DEPTH)
        return;
    while (table->lines < MOST_LINES &&
           (region = next_top(regions->paths, regions->path_count, parent, inclusive_cost,
                              region)) != NULL) {
        table->lines++;
        print_region(table, region, depth);
        if (region->children > 0)
            print_inside(table, (size_t)(region - regions->paths), depth + 1);
    }
}

static void print_tree(struct table *table)
{
    const struct wm_region_report *regions = &table->view->report->regions;
    bool has_depth = false;

    for (size_t i = 0; i < regions->path_count; i++)
        has_depth |= regions->paths[i].children > 0;
    if (!has_depth)
        return;
    print_head(table, "region tree");
    print_inside(table, WM_NO_REGION, 0);
    if (table->lines < regions->path_count)
        fprintf(table->view->out, "%*s and %zu more\n", COUNT_WIDTH, "",
                regions->path_count - table->lines);
}

/* That of the whole run may be known where no region's is. */
static bool has_energies(const struct wm_region_report *regions)
{
    for (size_t i = 0; i < regions->name_count; i++) {
        if (regions->names[i].exclusive.energy.value.known)
            return true;
    }
    return false;
}

void wm_line_regions(const struct wm_text_view *view)
{
    const struct wm_region_report *regions = &view->report->regions;
    struct table table = { .view = view };
    struct wm_detail detail = { "" };
    char count[24];

    if (regions->path_count == 0)
        return;
    bool has_energy = has_energies(regions);
    snprintf(count, sizeof(count), "%zu", regions->name_count);
    wm_line_add(&detail, "", "in %zu thread%s", regions->threads,
                regions->threads == 1 ? "" : "s");
    if (regions->processes > 1)
        wm_line_add(&detail, " ", "of %zu processes", regions->processes);
    wm_line_add(&detail, "; ", "top by exclusive %s", has_energy ? "energy" : "time");
    if (has_energy)
        wm_line_add_origin(&detail, view->report->energy.origin);
    wm_line_add(&detail, "", ":");
    wm_line_print(view, "Regions", count, detail.text);
    for (size_t i = 0; i < regions->name_count; i++)
        table.has_clocks |= regions->names[i].clocked_calls > 0;
    print_names(&table);
    print_tree(&table);
    if (table.has_attributed)
        fputs("~ partly by time: the thread's CPU clock was not read for every call\n",
              view->out);
    if (table.has_short)
        fputs("* calls shorter than three updates of what their energy is from: "
              "a rough figure\n",
              view->out);
}

static struct wm_quantity measured_text(const struct wm_report *report, size_t measurement,
                                        struct wm_known known)
{
    const char *unit = wm_measurement_unit(&report->usage.machine, measurement);
    double size = wm_compare_unit_size(unit), value = known.number;
    struct wm_quantity quantity = { "n/a" };

    if (!known.known)
        return quantity;
    if (size > 0)
        return wm_view_bytes(value * size, NULL);
    const struct wm_quantity number =
        value == floor(value) ? wm_view_fixed(value, 0) : wm_view_number(value, 4);
    snprintf(quantity.text, sizeof(quantity.text), "%.30s%s", number.text,
             strcmp(unit, "percent") == 0 ? " %" : "");
    return quantity;
}

static void print_usage(const struct wm_report *report,
                        const struct wm_block_figures *usage, FILE *out)
{
    wm_view_left(out, "", KEY_WIDTH);
    for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++)
        wm_view_right(out, wm_block_figure_names[f], FIGURE_WIDTH);
    fputc('\n', out);
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool lacks = wm_report_lacks(report, i);
        struct wm_detail detail = { "" };
        wm_line_key(out, wm_measurement_name((enum wm_measurement)i), KEY_WIDTH);
        for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++) {
            struct wm_known value = lacks ? (struct wm_known) { 0 } : usage[i].of[f];
            put_right(out, measured_text(report, i, value).text, FIGURE_WIDTH);
        }
        if (lacks)
            wm_line_add(&detail, "", "(%s)", wm_report_no_gpu);
        else if (usage[i].of[WM_BLOCK_MEAN].known)
            wm_line_add_origin(&detail, wm_report_usage_origin(report, i));
        fprintf(out, "%s%s\n", detail.text[0] ? "  " : "", detail.text);
    }
}

static struct wm_quantity time_text(const struct wm_region_usage *region,
                                    enum wm_block_figure figure)
{
    const struct wm_known seconds = region->time.of[figure];

    return seconds.known ? wm_view_duration(seconds.number, NULL)
                         : (struct wm_quantity) { "n/a" };
}

static void print_calls(const struct wm_region_usage *region, FILE *out)
{
    fprintf(out, "  calls      %" PRIu64, region->calls);
    if (region->calls > 0)
        fprintf(out, ", %" PRIu64 " with a timepoint inside", region->nonempty_calls);
    if (region->unfinished > 0)
        fprintf(out, "; %" PRIu64 " more never ended", region->unfinished);
    fprintf(out, "\n  inclusive  %s\n", wm_line_seconds(&region->inclusive.time).text);
    fputs("  time       ", out);
    if (region->calls == 0)
        fputs("n/a (no call ended)\n", out);
    else
        fprintf(out, "%s; mean %s, std %s, min %s, max %s\n",
                time_text(region, WM_BLOCK_TOTAL).text,
                time_text(region, WM_BLOCK_MEAN).text, time_text(region, WM_BLOCK_STD).text,
                time_text(region, WM_BLOCK_MIN).text, time_text(region, WM_BLOCK_MAX).text);
}

/* A line for each power of two that has calls. */
static void print_histogram(const uint64_t *histogram, FILE *out)
{
    uint64_t most = 1;

    for (size_t i = 0; i < WM_BLOCK_BUCKETS; i++)
        most = histogram[i] > most ? histogram[i] : most;
    for (size_t i = 0; i < WM_BLOCK_BUCKETS; i++) {
        bool is_last = i + 1 == WM_BLOCK_BUCKETS;
        double length = ceil(BAR_WIDTH * ((double)histogram[i] / (double)most));
        if (histogram[i] == 0)
            continue;
        fprintf(out, "%*s%s ", FACT_WIDTH, "", is_last ? "over " : "up to");
        wm_view_right(out, wm_view_duration(ldexp(1e-6, (int)i - is_last), NULL).text,
                      FIGURE_WIDTH);
        fprintf(out, "%10" PRIu64 "  %.*s\n", histogram[i], (int)length,
                "########################################");
    }
}

static void print_block(const struct wm_report *report,
                        const struct wm_region_usage *region, FILE *out)
{
    char name[SHOWN_NAME_SIZE];

    wm_line_clean(name, sizeof(name), region->name[0] ? region->name : "(without a name)");
    fprintf(out, "\nBlock        %s\n", name);
    print_calls(region, out);
    print_histogram(region->histogram, out);
    fprintf(out, "  timepoints %" PRIu64 "\n", region->timepoints);
    if (region->timepoints > 0)
        print_usage(report, region->usage, out);
}

void wm_view_blocks_text(const struct wm_report *report, FILE *out)
{
    const struct wm_usage_report *usage = &report->usage;
    const char *remark;

    if (usage->lacks_counts)
        fputs("Timepoints   n/a\n", out);
    else
        fprintf(out, "Timepoints   %" PRIu64 "\n", usage->timepoints);
    fprintf(out, "Blocks       %zu\n", report->regions.name_count);
    if (usage->stray > 0)
        fprintf(out, "Stops        %" PRIu64 " left out: nothing had started\n",
                usage->stray);
    for (size_t i = 0;
         (remark = wm_report_text(report, WM_REPORT_FILE_NOTES, i, NULL)) != NULL; i++)
        fprintf(out, "Note         %s\n", remark);
    if (usage->timepoints > 0 || usage->lacks_counts)
        print_usage(report, usage->overall, out);
    for (size_t i = 0; i < report->regions.name_count; i++)
        print_block(report, &report->regions.names[i], out);
}
