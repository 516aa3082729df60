/* SPDX-License-Identifier: Apache-2.0 */
/* view_blocks_text.c - an analysis of blocks for people. */
#include <inttypes.h>
#include <math.h>

#include "view/text/view_text_line.h"
#include "view/text/view_units.h"
#include "view/view.h"

enum { LABEL_WIDTH = 39, FIGURE_WIDTH = 10, FACT_WIDTH = 13, BAR_WIDTH = 40 };

/* Of a name, which may be 8 KB of anything. */
enum { SHOWN_NAME_SIZE = 256 };

struct text {
    const struct wm_report *report;
    const struct wm_unit *ram, *gpu_ram; /* NULL: a unit that nobody knows */
    FILE *out;
};

static struct text text_of(const struct wm_report *report, FILE *out)
{
    const struct wm_static_data *data = &report->usage.machine;
    const struct wm_report_style ram = { .ram_unit = data->ram_unit };
    const struct wm_report_style gpu_ram = { .ram_unit = data->gpu_ram_unit };
    struct text text = { .report = report, .out = out };
    struct wm_units units;

    if (wm_units_of_style(&ram, &units, NULL) == WM_OK)
        text.ram = units.ram;
    if (wm_units_of_style(&gpu_ram, &units, NULL) == WM_OK)
        text.gpu_ram = units.ram;
    return text;
}

static struct wm_quantity value_text(const struct text *text, size_t measurement,
                                     struct wm_known known)
{
    const struct wm_unit *unit = NULL;
    struct wm_quantity quantity = { "n/a" };
    double value = known.number;
    bool is_percent = measurement >= WM_CPU_SYSTEM_SUM ||
                      measurement == WM_GPU_SUM_UTILIZATION ||
                      measurement == WM_GPU_HARDWARE_UTILIZATION;

    if (measurement <= WM_SYSTEM_RAM)
        unit = text->ram;
    else if (measurement <= WM_SYSTEM_GPU_RAM)
        unit = text->gpu_ram;

    if (!known.known)
        return quantity;
    if (unit)
        return wm_view_bytes(value * unit->size, NULL);
    const struct wm_quantity number =
        value == floor(value) ? wm_view_fixed(value, 0) : wm_view_number(value, 4);
    snprintf(quantity.text, sizeof(quantity.text), "%.30s%s", number.text,
             is_percent ? " %" : "");
    return quantity;
}

static void print_origin(const struct text *text, enum wm_origin origin)
{
    struct wm_detail detail = { "" };

    wm_line_add_origin(&detail, origin);
    if (detail.text[0])
        fprintf(text->out, "  %s", detail.text);
}

static void print_usage(const struct text *text, const struct wm_block_figures *usage)
{
    const struct wm_known unknown = { 0 };

    wm_view_left(text->out, "", LABEL_WIDTH);
    for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++)
        wm_view_right(text->out, wm_block_figure_names[f], FIGURE_WIDTH);
    fputc('\n', text->out);
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool lacks = wm_report_lacks(text->report, i);
        wm_line_key(text->out, wm_measurement_name((enum wm_measurement)i), LABEL_WIDTH);
        for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++) {
            struct wm_known value = lacks ? unknown : usage[i].of[f];
            fputc(' ', text->out); /* however wide the figure is */
            wm_view_right(text->out, value_text(text, i, value).text, FIGURE_WIDTH - 1);
        }
        if (lacks)
            fprintf(text->out, "  (%s)", wm_report_no_gpu);
        else if (usage[i].of[WM_BLOCK_MEAN].known)
            print_origin(text, wm_report_usage_origin(text->report, i));
        fputc('\n', text->out);
    }
}

static void print_fact(const struct text *text, const char *label, const char *fact)
{
    wm_view_left(text->out, label, FACT_WIDTH);
    fprintf(text->out, "%s\n", fact);
}

static struct wm_quantity seconds_text(struct wm_known seconds)
{
    return seconds.known ? wm_view_duration(seconds.number, NULL)
                         : (struct wm_quantity) { "n/a" };
}

static void print_calls(const struct text *text, const struct wm_region_usage *block)
{
    char fact[160];
    int length = snprintf(fact, sizeof(fact), "%" PRIu64, block->calls);

    if (block->calls > 0)
        length += snprintf(fact + length, sizeof(fact) - (size_t)length,
                           ", %" PRIu64 " with a timepoint inside", block->nonempty_calls);
    if (block->unfinished > 0)
        snprintf(fact + length, sizeof(fact) - (size_t)length,
                 "; %" PRIu64 " more never ended", block->unfinished);
    print_fact(text, "  calls", fact);
}

static void print_time(const struct text *text, const struct wm_region_usage *block)
{
    const struct wm_value *inclusive = &block->inclusive.time;
    const struct wm_known *of = block->time.of;

    fprintf(text->out, "  %-*s%s\n", FACT_WIDTH - 2, "inclusive",
            seconds_text((struct wm_known) { inclusive->known, inclusive->number }).text);
    if (block->calls == 0) {
        print_fact(text, "  time", "n/a (no call ended)");
        return;
    }
    fprintf(text->out, "  %-*s%s; mean %s, std %s, min %s, max %s\n", FACT_WIDTH - 2,
            "time", seconds_text(of[WM_BLOCK_TOTAL]).text,
            seconds_text(of[WM_BLOCK_MEAN]).text, seconds_text(of[WM_BLOCK_STD]).text,
            seconds_text(of[WM_BLOCK_MIN]).text, seconds_text(of[WM_BLOCK_MAX]).text);
}

/* A line for each power of two that has calls. */
static void print_histogram(const struct text *text, const uint64_t *histogram)
{
    uint64_t most = 1;

    for (size_t i = 0; i < WM_BLOCK_BUCKETS; i++)
        most = histogram[i] > most ? histogram[i] : most;
    for (size_t i = 0; i < WM_BLOCK_BUCKETS; i++) {
        bool is_last = i + 1 == WM_BLOCK_BUCKETS;
        double length = ceil(BAR_WIDTH * ((double)histogram[i] / (double)most));
        if (histogram[i] == 0)
            continue;
        fprintf(text->out, "  %*s%s ", FACT_WIDTH - 2, "", is_last ? "over " : "up to");
        wm_view_right(text->out, wm_view_duration(ldexp(1e-6, (int)i - is_last), NULL).text,
                      FIGURE_WIDTH);
        fprintf(text->out, "%10" PRIu64 "  %.*s\n", histogram[i], (int)length,
                "########################################");
    }
}

static void print_block(const struct text *text, const struct wm_region_usage *block)
{
    char name[SHOWN_NAME_SIZE], fact[32];

    wm_line_clean(name, sizeof(name), block->name);
    fprintf(text->out, "\nBlock        %s\n", name[0] ? name : "(without a name)");
    print_calls(text, block);
    print_time(text, block);
    print_histogram(text, block->histogram);
    snprintf(fact, sizeof(fact), "%" PRIu64, block->timepoints);
    print_fact(text, "  timepoints", fact);
    if (block->timepoints > 0)
        print_usage(text, block->usage);
}

void wm_view_blocks_text(const struct wm_report *report, FILE *out)
{
    const struct text text = text_of(report, out);
    char fact[64];

    snprintf(fact, sizeof(fact), "%" PRIu64, report->usage.timepoints);
    print_fact(&text, "Timepoints", report->usage.lacks_counts ? "n/a" : fact);
    snprintf(fact, sizeof(fact), "%zu", report->regions.name_count);
    print_fact(&text, "Blocks", fact);
    if (report->usage.stray > 0) {
        snprintf(fact, sizeof(fact), "%" PRIu64 " left out: nothing had started",
                 report->usage.stray);
        print_fact(&text, "Stops", fact);
    }
    for (size_t i = report->file_remarks; i < report->remark_count; i++)
        print_fact(&text, "Note", report->remarks[i]);
    if (report->usage.timepoints > 0 || report->usage.lacks_counts)
        print_usage(&text, report->usage.overall);
    for (size_t i = 0; i < report->regions.name_count; i++)
        print_block(&text, &report->regions.names[i]);
}
