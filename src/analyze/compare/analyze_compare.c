/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_compare.c - figures of sessions side by side, and what is noise in them. */
#include "analyze/compare/analyze_compare.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_welch.h"

static_assert(WM_COMPARE_TIME + WM_COMPARE_MOST_FIGURES <= 64,
              "a choice has a bit for each item");

static bool differs(struct wm_known one, struct wm_known other)
{
    return one.known != other.known || one.number != other.number;
}

/* Percentages and capacities mean something else where there is more hardware. */
static int remark_hardware(struct wm_compare *compare)
{
    const struct wm_static_data *first = &compare->sessions[0].analysis->static_data;
    int status = WM_OK;

    for (size_t i = 1; i < compare->session_count && status == WM_OK; i++) {
        const struct wm_static_data *data = &compare->sessions[i].analysis->static_data;
        if (differs(data->expected_cores, first->expected_cores) ||
            differs(data->system_cores, first->system_cores))
            status = wm_remarks_add(
                &compare->remarks,
                "session \"%s\" had other numbers of cores than \"%s\": their percentages "
                "of hardware are not comparable",
                compare->sessions[i].name, compare->sessions[0].name);
        if (status == WM_OK && (differs(data->expected_gpus, first->expected_gpus) ||
                                differs(data->gpus, first->gpus)))
            status = wm_remarks_add(&compare->remarks,
                                    "session \"%s\" had other numbers of GPUs than \"%s\"",
                                    compare->sessions[i].name, compare->sessions[0].name);
    }
    return status;
}

static bool is_by_another_meter(const struct wm_report *one, const struct wm_report *other)
{
    return one && other && one->energy.energy.known && other->energy.energy.known &&
           (one->cover.meter != other->cover.meter ||
            strcmp(one->cover.name, other->cover.name) != 0);
}

/* A meter of all contains more than the sum over what is measured apart. */
static int remark_meters(struct wm_compare *compare)
{
    const struct wm_compare_session *first = &compare->sessions[0];
    int status = WM_OK;

    for (size_t i = 1; i < compare->session_count && status == WM_OK; i++) {
        const struct wm_compare_session *session = &compare->sessions[i];
        if (is_by_another_meter(session->analysis->report, first->analysis->report))
            status = wm_remarks_add(&compare->remarks,
                                    "the energy of session \"%s\" is not of the same "
                                    "sensors as that of \"%s\"",
                                    session->name, first->name);
    }
    return status;
}

/* gpu_tracker's JSON, and that of earlier analyses of ours. */
static bool lacks_effective(const struct wm_block_analysis *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct wm_known *time = results->blocks[i].time.of;
        if (time[WM_BLOCK_STD].known && !time[WM_BLOCK_EFFECTIVE].known)
            return true;
    }
    return false;
}

static int remark_dependence(struct wm_compare *compare)
{
    int status = WM_OK;

    for (size_t i = 0; i < compare->session_count && status == WM_OK; i++) {
        if (lacks_effective(compare->sessions[i].analysis))
            status = wm_remarks_add(
                &compare->remarks,
                "session \"%s\" does not say how much its values depend on each other; "
                "taken as if they did not, more of them seem to differ",
                compare->sessions[i].name);
    }
    return status;
}

/* What is to be said of each session by itself. */
static int remark_sessions(struct wm_compare *compare)
{
    int status = WM_OK;

    for (size_t i = 0; i < compare->session_count; i++) {
        const struct wm_remarks *remarks = &compare->sessions[i].analysis->remarks;
        for (size_t r = 0; r < remarks->count && status == WM_OK; r++)
            status = wm_remarks_add(&compare->remarks, "%s", remarks->all[r]);
    }
    return status;
}

int wm_compare_new(const struct wm_compare_session *sessions, size_t count,
                   enum wm_block_figure statistic, bool as_gpu_tracker,
                   struct wm_compare **ret_compare, struct wm_error *err)
{
    if (count == 0)
        return wm_fail(err, WM_EINVAL, "comparison: there is no session");
    struct wm_compare *compare = calloc(1, sizeof(*compare));
    if (!compare)
        return wm_fail_memory(err, "comparison");

    *compare = (struct wm_compare) { .sessions = sessions,
                                     .session_count = count,
                                     .statistic = statistic,
                                     .as_gpu_tracker = as_gpu_tracker };
    int status = as_gpu_tracker ? wm_compare_match_gpu_tracker(compare, err)
                                : wm_compare_match(compare, err);
    if (status == WM_OK && remark_sessions(compare) < 0)
        status = wm_fail_memory(err, "comparison");
    bool has_remarks = status == WM_OK && !as_gpu_tracker;
    if (has_remarks && (remark_hardware(compare) < 0 || remark_meters(compare) < 0 ||
                        remark_dependence(compare) < 0))
        status = wm_fail_memory(err, "comparison");
    if (status < 0) {
        wm_compare_free(compare);
        return status;
    }
    *ret_compare = compare;
    return WM_OK;
}

void wm_compare_free(struct wm_compare *compare)
{
    if (!compare)
        return;
    for (size_t i = 0; i < compare->group_count; i++) {
        free(compare->groups[i].label);
        free(compare->groups[i].blocks);
    }
    free(compare->groups);
    wm_remarks_release(&compare->remarks);
    free(compare);
}

bool wm_compare_is_in_all(const struct wm_compare *compare,
                          const struct wm_compare_group *group)
{
    for (size_t i = 0; i < compare->session_count; i++) {
        if (!group->blocks[i])
            return false;
    }
    return true;
}

const struct wm_figure_row *wm_compare_item_row(unsigned item)
{
    const struct wm_figure_row *row = NULL;
    unsigned found = WM_COMPARE_TIME;

    if (item < WM_COMPARE_TIME)
        return NULL;
    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        if (row->is_compared && found++ == item)
            return row;
    }
    return NULL;
}

unsigned wm_compare_items(void)
{
    unsigned count = WM_COMPARE_TIME;

    while (count < WM_COMPARE_TIME + WM_COMPARE_MOST_FIGURES && wm_compare_item_row(count))
        count++;
    return count;
}

unsigned wm_compare_item(const char *name)
{
    unsigned item = 0, count = wm_compare_items();

    while (item < count && strcmp(wm_compare_item_name(item), name) != 0)
        item++;
    return item;
}

const char *wm_compare_item_name(unsigned item)
{
    if (item < WM_MEASUREMENT_COUNT)
        return wm_measurement_name((enum wm_measurement)item);
    return wm_figure_key(wm_compare_item_row(item));
}

bool wm_compare_item_matters(unsigned item)
{
    switch (item) {
    case WM_MAIN_RAM:
    case WM_DESCENDANTS_RAM:
    case WM_COMBINED_RAM:
    case WM_MAIN_GPU_RAM:
    case WM_DESCENDANTS_GPU_RAM:
    case WM_COMBINED_GPU_RAM:
        return true;
    default:
        return item >= WM_COMPARE_TIME;
    }
}

/* What a figure of one session is, and what is known of its scatter. */
struct figure {
    struct wm_known value;
    const char *lacks;
    bool has_spread;
    struct wm_welch_sample spread;
    struct wm_known off;   /* of a figure that was measured once */
    struct wm_known noise; /* the same, with what another run would be off by besides */
    const char *why;
};

/* Values that depend on each other scatter less among themselves than from run to run. */
static struct wm_known std_of(const struct wm_block_figures *figures, double count,
                              double effective)
{
    struct wm_known std = figures->of[WM_BLOCK_STD];

    if (effective < count && effective > 1)
        std.number *= sqrt((1 - 1 / count) / (1 - 1 / effective));
    return std;
}

/* A total is the mean so many times; how often is the program's own doing. */
static struct figure figure_of(enum wm_block_figure statistic,
                               const struct wm_block_figures *figures, uint64_t count)
{
    struct figure figure = { .value = figures->of[statistic] };
    struct wm_known told = figures->of[WM_BLOCK_EFFECTIVE];
    double all = (double)count;
    double effective = told.known && told.number < all ? told.number : all;

    if (statistic != WM_BLOCK_MEAN && statistic != WM_BLOCK_TOTAL) {
        figure.why = "min, max and std are not tested";
    } else if (count == 0) {
        figure.why = "the number of values is not known";
    } else {
        figure.has_spread = true;
        figure.spread = (struct wm_welch_sample) {
            .count = effective,
            .std = std_of(figures, all, effective),
            .scale = statistic == WM_BLOCK_TOTAL ? all : 1,
        };
    }
    return figure;
}

/* How far a mean may be off that of another run, as a ratio. */
static struct wm_known scatter_of(const struct wm_block_figures *figures)
{
    const struct wm_known *of = figures->of;

    if (!of[WM_BLOCK_STD].known)
        return of[WM_BLOCK_STD];
    return wm_student_scatter(of[WM_BLOCK_EFFECTIVE].number, of[WM_BLOCK_STD].number,
                              of[WM_BLOCK_MEAN].number);
}

/* What the whole of another run would be off by besides, as a ratio. CPU time is told
 * exactly, but another run has another; of the energies only that of the tree shows how it
 * scatters. */
static struct wm_known scatter_of_run(const struct wm_block_analysis *analysis,
                                      const struct wm_figure_row *row)
{
    if (row->run.value == offsetof(struct wm_report, cpu_total))
        return scatter_of(&analysis->overall[WM_CPU_COMBINED_SUM]);
    if (row->run.value == offsetof(struct wm_report, energy.split.tree))
        return analysis->report->tree_scatter;
    return (struct wm_known) { .known = true };
}

/* What calls used is off in another run by as much as their time at least. */
static struct wm_known scatter_of_calls(const struct wm_region_usage *block)
{
    const struct wm_known scatter = scatter_of(&block->time);

    return (struct wm_known) { true, scatter.known ? scatter.number : 0 };
}

/* What is reported of all goes to each of so many calls; `scatter` is a ratio. */
static void take(const struct wm_found *found, double calls, struct wm_known scatter,
                 struct figure *figure)
{
    double all = found->value.number;
    double off = found->uncertainty.known ? all * found->uncertainty.number / calls : 0;

    figure->value = (struct wm_known) { true, all / calls };
    figure->lacks = found->value.why;
    figure->off = (struct wm_known) { found->uncertainty.known, off };
    figure->noise = (struct wm_known) { found->uncertainty.known && scatter.known,
                                        hypot(off, scatter.number * all / calls) };
}

/* A figure of the report, which is a sum: what was used by all calls of a block, and with
 * the mean by one. CPU time of a run is exact, and the time of a run was measured once. */
static struct figure figure_of_report(const struct wm_compare *compare,
                                      const struct wm_block_analysis *analysis,
                                      const struct wm_region_usage *block, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    const struct wm_report *report = analysis->report;
    enum wm_report_kind kind = block ? WM_REPORT_REGION : WM_REPORT_RUN;
    struct figure figure = { .why = "how far it may be off is not known" };
    bool is_mean = compare->statistic == WM_BLOCK_MEAN;
    double calls = block && is_mean ? (double)(block->calls + block->unfinished) : 1;

    if (!report || !(is_mean || compare->statistic == WM_BLOCK_TOTAL) || calls == 0 ||
        !wm_figure_place(row, kind))
        return figure;
    struct wm_found found =
        wm_figure_of(row, kind, report, block ? (const void *)&block->inclusive : report);
    if (!block && row->run.value == offsetof(struct wm_report, cpu_total))
        found.uncertainty = wm_value_known(0);
    if (found.value.known)
        take(&found, calls, block ? scatter_of_calls(block) : scatter_of_run(analysis, row),
             &figure);
    return figure;
}

static struct figure find_figure(const struct wm_compare *compare, size_t session,
                                 size_t group, unsigned item)
{
    const struct wm_block_analysis *analysis = compare->sessions[session].analysis;
    const struct wm_region_usage *block = NULL;
    struct figure figure = { .value = { .known = false } };

    if (item < WM_COMPARE_TIME && !compare->as_gpu_tracker &&
        wm_block_analysis_lack(analysis, item))
        return figure;
    if (group != WM_COMPARE_OVERALL) {
        block = compare->groups[group].blocks[session];
        if (!block)
            return figure;
    }
    if (block && item == WM_COMPARE_TIME)
        return figure_of(compare->statistic, &block->time, block->calls);
    if (item >= WM_COMPARE_TIME)
        return figure_of_report(compare, analysis, block, item);
    return block ? figure_of(compare->statistic, &block->usage[item], block->timepoints)
                 : figure_of(compare->statistic, &analysis->overall[item],
                             analysis->timepoints);
}

/* Figures of blocks come from where those of all come from. */
static enum wm_origin origin_of(const struct wm_compare_session *session, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    const struct wm_report *report = session->analysis->report;

    if (!row)
        return wm_block_analysis_origin(session->analysis, item);
    if (!report || !wm_figure_place(row, WM_REPORT_RUN))
        return WM_MEASURED;
    return wm_figure_of(row, WM_REPORT_RUN, report, report).origin;
}

static double change_of(double first, double value)
{
    if (value == first)
        return 0;
    return (value - first) / fabs(first);
}

static void test(const struct figure *first, const struct figure *figure,
                 struct wm_compare_cell *cell)
{
    double from = first->value.number, to = figure->value.number;

    if (!first->value.known || !figure->value.known) {
        cell->why = "it is not known in both sessions";
        return;
    }
    cell->change = (struct wm_known) { true, change_of(from, to) };
    if (first->lacks || figure->lacks)
        cell->why = "of one of them at least so much is known";
    else if (first->has_spread && figure->has_spread)
        cell->why = wm_welch(&first->spread, &figure->spread, &cell->noise.number);
    else if (first->noise.known && figure->noise.known)
        cell->noise.number = hypot(first->noise.number, figure->noise.number);
    else
        cell->why = first->why ? first->why : figure->why;
    if (cell->why)
        return;
    cell->noise.known = true;
    cell->verdict =
        fabs(to - from) > cell->noise.number ? WM_COMPARE_BEYOND : WM_COMPARE_WITHIN;
}

void wm_compare_cells(const struct wm_compare *compare, size_t group, unsigned item,
                      struct wm_compare_cell *ret_cells)
{
    struct figure first = find_figure(compare, 0, group, item);

    for (size_t i = 0; i < compare->session_count; i++) {
        struct figure figure = find_figure(compare, i, group, item);
        ret_cells[i] =
            (struct wm_compare_cell) { .value = figure.value,
                                       .lacks = figure.lacks,
                                       .origin = origin_of(&compare->sessions[i], item),
                                       .off = figure.off };
        if (i > 0)
            test(&first, &figure, &ret_cells[i]);
    }
}

/* The time of a whole session was measured once, so its noise is not known, and the
 * reader judges the change. */
static bool is_for_oneself(const struct wm_compare_cell *cell, size_t group, unsigned item)
{
    return group == WM_COMPARE_OVERALL && item == WM_COMPARE_TIME && cell->change.known;
}

/* `tested` gets a bit for each item of a session that could be tested. */
static void look_for_worst(const struct wm_compare *compare, size_t group, uint64_t chosen,
                           struct wm_compare_cell *cells, uint64_t *tested,
                           struct wm_compare_worst *worst)
{
    for (unsigned item = 0; item < wm_compare_items(); item++) {
        uint64_t bit = UINT64_C(1) << item;
        if (chosen ? !(chosen & bit) : !wm_compare_item_matters(item))
            continue;
        wm_compare_cells(compare, group, item, cells);
        for (size_t i = 1; i < compare->session_count; i++) {
            bool counts = is_for_oneself(&cells[i], group, item);
            if (counts || cells[i].verdict != WM_COMPARE_NOT_TESTED)
                tested[i] |= bit;
            counts |= cells[i].verdict == WM_COMPARE_BEYOND;
            if (counts && cells[i].change.number > worst->change)
                *worst = (struct wm_compare_worst) { .change = cells[i].change.number,
                                                     .session = i,
                                                     .group = group,
                                                     .item = item };
        }
    }
}

static void find_untested(size_t session_count, uint64_t chosen, const uint64_t *tested,
                          struct wm_compare_worst *worst)
{
    for (size_t i = 1; i < session_count; i++) {
        uint64_t missing = chosen & ~tested[i];
        if (missing == 0 && tested[i] != 0)
            continue;
        worst->untested = i;
        worst->untested_item =
            missing ? (unsigned)__builtin_ctzll(missing) : wm_compare_items();
        return;
    }
}

int wm_compare_find_worst(const struct wm_compare *compare, uint64_t chosen,
                          struct wm_compare_worst *ret_worst)
{
    struct wm_compare_cell *cells = calloc(compare->session_count, sizeof(*cells));
    uint64_t *tested = calloc(compare->session_count, sizeof(*tested));
    struct wm_compare_worst worst = { 0 };
    int status = cells && tested ? WM_OK : WM_ENOMEM;

    if (status == WM_OK) {
        look_for_worst(compare, WM_COMPARE_OVERALL, chosen, cells, tested, &worst);
        for (size_t i = 0; i < compare->group_count; i++)
            look_for_worst(compare, i, chosen, cells, tested, &worst);
        find_untested(compare->session_count, chosen, tested, &worst);
        *ret_worst = worst;
    }
    free(cells);
    free(tested);
    return status;
}

double wm_compare_unit_size(const char *unit)
{
    static const struct {
        const char *name;
        double size;
    } units[] = {
        { "bytes", 1 },       { "kilobytes", 1e3 },  { "megabytes", 1e6 },
        { "gigabytes", 1e9 }, { "terabytes", 1e12 },
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].name, unit) == 0)
            return units[i].size;
    }
    return 0;
}

/* Powers of ten divide exactly, where their reciprocals would not multiply so. */
static double convert(double value, double from, double to)
{
    return from >= to ? value * (from / to) : value / (to / from);
}

static void convert_usage(struct wm_block_figures *usage, unsigned first, unsigned last,
                          double from, double to)
{
    for (unsigned i = first; i <= last; i++)
        for (size_t f = 0; f < WM_BLOCK_STATISTICS; f++)
            usage[i].of[f].number = convert(usage[i].of[f].number, from, to);
}

static int convert_unit(struct wm_block_analysis *results, const char *unit, const char *to,
                        unsigned first, unsigned last, const char *name,
                        struct wm_error *err)
{
    double size = wm_compare_unit_size(unit), size_to = wm_compare_unit_size(to);

    if (size == 0)
        return wm_fail(err, WM_EFORMAT, "%.100s: \"%.15s\" is no unit of memory", name,
                       unit);
    convert_usage(results->overall, first, last, size, size_to);
    for (size_t i = 0; i < results->count; i++)
        convert_usage(results->blocks[i].usage, first, last, size, size_to);
    return WM_OK;
}

int wm_compare_convert(struct wm_block_analysis *results,
                       const struct wm_static_data *units, const char *name,
                       struct wm_error *err)
{
    struct wm_static_data *data = &results->static_data;

    int status = convert_unit(results, data->ram_unit, units->ram_unit, WM_MAIN_RAM,
                              WM_SYSTEM_RAM, name, err);
    if (status == WM_OK)
        status = convert_unit(results, data->gpu_ram_unit, units->gpu_ram_unit,
                              WM_MAIN_GPU_RAM, WM_SYSTEM_GPU_RAM, name, err);
    if (status < 0)
        return status;
    data->ram_capacity.number =
        convert(data->ram_capacity.number, wm_compare_unit_size(data->ram_unit),
                wm_compare_unit_size(units->ram_unit));
    data->gpu_ram_capacity.number =
        convert(data->gpu_ram_capacity.number, wm_compare_unit_size(data->gpu_ram_unit),
                wm_compare_unit_size(units->gpu_ram_unit));
    memcpy(data->ram_unit, units->ram_unit, sizeof(data->ram_unit));
    memcpy(data->gpu_ram_unit, units->gpu_ram_unit, sizeof(data->gpu_ram_unit));
    return WM_OK;
}
