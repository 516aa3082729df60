/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_compare_cells.c - figures of sessions side by side, and by how much they differ
 * for certain. */
#include "analyze/compare/analyze_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What two sessions have in common is that of their newest runs. */
const struct wm_report *wm_compare_newest(const struct wm_compare_session *session)
{
    return session->runs[session->count - 1].report;
}

/* What a figure of one run is. */
struct figure {
    struct wm_known value;
    const char *lacks;
    struct wm_known off; /* with 95 % confidence */
};

/* What a batch has of its runs alone, without what is between them; NULL of all else. */
static const struct wm_known *of_one_run(const struct wm_report *report, unsigned item)
{
    const char *key = wm_compare_item_name(item);

    if (!report->result.run_seconds.known)
        return NULL;
    return strcmp(key, "time") == 0     ? &report->result.run_seconds
           : strcmp(key, "memory") == 0 ? &report->result.run_memory_bytes
                                        : NULL;
}

/* A figure of the report, which is a sum: what was used by all calls of a block, and with
 * the mean by one; or by all runs of a batch. */
static struct figure figure_of_report(const struct wm_compare *compare,
                                      const struct wm_compare_run *run,
                                      const struct wm_region_usage *block, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    const struct wm_report *report = run->report;
    enum wm_report_kind kind = block ? WM_REPORT_REGION : WM_REPORT_RUN;
    bool is_mean = compare->statistic == WM_BLOCK_MEAN;
    bool is_sum = row->unit == WM_UNIT_TIME || row->unit == WM_UNIT_SECONDS ||
                  row->unit == WM_UNIT_JOULES;
    double parts = !is_sum ? 1 : !block ? run->batch : 1;
    struct figure figure = { 0 };

    if (block && is_mean)
        parts = (double)(block->calls + block->unfinished);
    if (report->is_foreign || !(is_mean || compare->statistic == WM_BLOCK_TOTAL) ||
        parts == 0 || !wm_figure_place(row, kind))
        return figure;
    const struct wm_known *alone = block ? NULL : of_one_run(report, item);
    if (alone)
        return (struct figure) { .value = *alone };
    struct wm_found found =
        wm_figure_of(row, kind, report, block ? (const void *)&block->inclusive : report);
    if (!found.value.known)
        return figure;
    figure.value = (struct wm_known) { true, found.value.number / parts };
    figure.lacks = found.value.why;
    if (found.uncertainty.known)
        figure.off =
            (struct wm_known) { true, figure.value.number * found.uncertainty.number };
    return figure;
}

/* Of a run among those of all sessions. */
static struct figure find_figure(const struct wm_compare *compare, size_t run, size_t group,
                                 unsigned item)
{
    const struct wm_compare_run *of = wm_compare_run_of(compare, run);
    const struct wm_report *report = of->report;
    const struct wm_region_usage *block = NULL;
    struct figure figure = { 0 };

    if (item < WM_COMPARE_FIGURES && !compare->as_gpu_tracker &&
        wm_report_lacks(report, item))
        return figure;
    if (group != WM_COMPARE_OVERALL) {
        block = compare->groups[group].blocks[run];
        if (!block)
            return figure;
    }
    bool is_call_time = block && item == wm_compare_item("time");
    if (item >= WM_COMPARE_FIGURES && !is_call_time)
        return figure_of_report(compare, of, block, item);
    if (is_call_time)
        figure.value = block->time.of[compare->statistic];
    else
        figure.value = block ? block->usage[item].of[compare->statistic]
                             : report->usage.overall[item].of[compare->statistic];
    return figure;
}

/* Figures of blocks come from where those of all come from. */
static enum wm_origin origin_of(const struct wm_compare_session *session, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);
    const struct wm_report *report = wm_compare_newest(session);

    if (!row)
        return wm_report_usage_origin(report, item);
    if (report->is_foreign || !wm_figure_place(row, WM_REPORT_RUN))
        return WM_MEASURED;
    return wm_figure_of(row, WM_REPORT_RUN, report, report).origin;
}

size_t wm_compare_values(const struct wm_compare *compare,
                         const struct wm_compare_session *session, size_t group,
                         unsigned item, double *ret_values)
{
    size_t known = 0;

    for (size_t i = 0; i < session->count; i++) {
        struct wm_known value = find_figure(compare, session->first + i, group, item).value;
        ret_values[i] = value.known ? value.number : NAN;
        known += value.known;
    }
    return known;
}

/* What the values of a session come to; `scratch` has room for as many. */
static void sum_up(const struct wm_compare *compare,
                   const struct wm_compare_session *session, size_t group, unsigned item,
                   double *scratch, struct wm_compare_cell *cell)
{
    double off = 0;
    size_t known_offs = 0;

    *cell = (struct wm_compare_cell) { .origin = origin_of(session, item) };
    for (size_t i = 0; i < session->count; i++) {
        const struct figure figure = find_figure(compare, session->first + i, group, item);
        if (!figure.value.known)
            continue;
        scratch[cell->runs++] = figure.value.number;
        off += figure.off.number;
        known_offs += figure.off.known;
        cell->lacks = cell->lacks ? cell->lacks : figure.lacks;
    }
    if (cell->runs == 0)
        return;
    cell->value = (struct wm_known) { true, wm_runs_sum_up(scratch, cell->runs).median };
    cell->off = (struct wm_known) { known_offs == cell->runs, off / (double)cell->runs };
}

static double change_of(double first, double value)
{
    if (value == first)
        return 0;
    return (value - first) / fabs(first);
}

bool wm_compare_is_pair(const struct wm_compare_run *one,
                        const struct wm_compare_run *other)
{
    return one->round && other->round && one->seed && other->seed &&
           strcmp(one->round, other->round) == 0 && strcmp(one->seed, other->seed) == 0;
}

/* Moves the values of the runs that make pairs to the front, in one order. */
static size_t find_pairs(const struct wm_compare_session *reference,
                         const struct wm_compare_session *session, const double *values[2],
                         double *ret_pairs[2])
{
    size_t count = 0;

    if (reference->file != session->file)
        return 0;
    for (size_t i = 0; i < reference->count; i++) {
        for (size_t k = 0; k < session->count; k++) {
            if (!wm_compare_is_pair(&reference->runs[i], &session->runs[k]) ||
                isnan(values[0][i]) || isnan(values[1][k]))
                continue;
            ret_pairs[0][count] = values[0][i];
            ret_pairs[1][count++] = values[1][k];
            break;
        }
    }
    return count;
}

static size_t drop_unknown(const double *values, size_t count, double *ret_known)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        if (!isnan(values[i]))
            ret_known[known++] = values[i];
    }
    return known;
}

bool wm_compare_is_headline(const char *key)
{
    const struct wm_figure_row *row = wm_figure_find(key);

    return row && row->is_headline;
}

size_t wm_compare_headlines(size_t sessions)
{
    const struct wm_figure_row *row;
    size_t figures = 0;

    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++)
        figures += row->is_headline;
    return figures * sessions;
}

const char *const wm_compare_families[] = {
    [WM_COMPARE_HEADLINES] = "headlines",
    [WM_COMPARE_OTHERS] = "others",
    [WM_COMPARE_DETAILS] = "details",
};

enum wm_compare_family wm_compare_family_of(const struct wm_compare *compare, size_t group,
                                            unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);

    if (row && row->is_headline && group == WM_COMPARE_OVERALL)
        return WM_COMPARE_HEADLINES;
    return wm_compare_item_is_main(compare, item) ? WM_COMPARE_OTHERS : WM_COMPARE_DETAILS;
}

/* In the scratch are the values of the reference, of the session, and room for both. */
static void test(const struct wm_compare *compare,
                 const struct wm_compare_session *reference,
                 const struct wm_compare_session *session, size_t group, unsigned item,
                 struct wm_compare_cell *cell)
{
    const struct wm_runs_test how = {
        .tests = compare->tests[wm_compare_family_of(compare, group, item)],
        .threshold = compare->threshold,
    };
    double *const scratch = compare->scratch, *const own = scratch + compare->run_count;
    double *room[] = { own + compare->run_count, own + 2 * compare->run_count };
    const double *values[] = { scratch, own };

    wm_compare_values(compare, reference, group, item, scratch);
    wm_compare_values(compare, session, group, item, own);
    size_t pairs = find_pairs(reference, session, values, room);
    cell->is_paired = pairs >= WM_RUNS_LEAST;
    if (cell->is_paired) {
        cell->to = wm_runs_paired(room[0], room[1], pairs, &how);
    } else {
        size_t first = drop_unknown(scratch, reference->count, room[0]);
        size_t count = drop_unknown(own, session->count, room[1]);
        cell->to = wm_runs_unpaired(room[0], first, room[1], count, &how);
    }
    if (cell->to.count > 1 && cell->to.ratio > 0)
        cell->change = (struct wm_known) { true, cell->to.ratio - 1 };
}

static bool is_tested(const struct wm_compare *compare)
{
    return compare->statistic == WM_BLOCK_MEAN || compare->statistic == WM_BLOCK_TOTAL;
}

static void find_cell(const struct wm_compare *compare, size_t group, unsigned item,
                      const struct wm_compare_session *session,
                      struct wm_compare_cell *cell)
{
    const struct wm_compare_session *reference = &compare->sessions[session->reference];
    struct wm_compare_cell first;

    sum_up(compare, session, group, item, compare->scratch, cell);
    if (reference == session)
        return;
    sum_up(compare, reference, group, item, compare->scratch, &first);
    if (!first.value.known || !cell->value.known) {
        cell->to.why = "it is not known in both sessions";
        return;
    }
    cell->change =
        (struct wm_known) { true, change_of(first.value.number, cell->value.number) };
    if (first.lacks || cell->lacks)
        cell->to.why = "of one of them at least so much is known";
    else if (!is_tested(compare))
        cell->to.why = "min, max and std are not tested";
    else
        test(compare, reference, session, group, item, cell);
}

void wm_compare_cells(const struct wm_compare *compare, size_t group, unsigned item,
                      struct wm_compare_cell *ret_cells)
{
    for (size_t i = 0; i < compare->session_count; i++)
        find_cell(compare, group, item, &compare->sessions[i], &ret_cells[i]);
}

static void count_tests_of(struct wm_compare *compare, size_t group,
                           struct wm_compare_cell *cells)
{
    for (unsigned item = 0; item < wm_compare_items(); item++) {
        enum wm_compare_family family = wm_compare_family_of(compare, group, item);
        wm_compare_cells(compare, group, item, cells);
        for (size_t i = 0; i < compare->session_count; i++) {
            bool is_made = cells[i].to.verdict != WM_RUNS_NOT_TESTED;
            compare->has_tests |= is_made;
            compare->tests[family] += is_made && family != WM_COMPARE_HEADLINES;
        }
    }
}

int wm_compare_count_tests(struct wm_compare *compare)
{
    bool has_repeats = false;
    size_t compared = 0;

    for (size_t i = 0; i < compare->session_count; i++) {
        has_repeats |= compare->sessions[i].count >= WM_RUNS_LEAST;
        compared += compare->sessions[i].reference != i;
    }
    compare->tests[WM_COMPARE_HEADLINES] = wm_compare_headlines(compared);
    if (!has_repeats)
        return WM_OK;
    struct wm_compare_cell *cells = calloc(compare->session_count, sizeof(*cells));
    if (!cells)
        return WM_ENOMEM;
    count_tests_of(compare, WM_COMPARE_OVERALL, cells);
    for (size_t i = 0; i < compare->group_count; i++)
        count_tests_of(compare, i, cells);
    free(cells);
    return WM_OK;
}

/* `tested` gets a bit for each item of a session that could be tested. */
static void look_for_worst(const struct wm_compare *compare, size_t group, uint64_t chosen,
                           struct wm_compare_cell *cells, uint64_t *tested,
                           struct wm_compare_worst *worst)
{
    for (unsigned item = 0; item < wm_compare_items(); item++) {
        uint64_t bit = UINT64_C(1) << item;
        if (chosen
                ? !(chosen & bit)
                : !wm_compare_item_matters(item) || !wm_compare_item_is_main(compare, item))
            continue;
        wm_compare_cells(compare, group, item, cells);
        for (size_t i = 1; i < compare->session_count; i++) {
            const struct wm_runs_ratio *to = &cells[i].to;
            if (to->verdict == WM_RUNS_NOT_TESTED)
                continue;
            tested[i] |= bit;
            if (to->low - 1 > worst->change)
                *worst = (struct wm_compare_worst) {
                    .change = to->low - 1, .session = i, .group = group, .item = item
                };
        }
    }
}

/* Where no session is compared, none is tested. */
static void find_untested(const struct wm_compare *compare, uint64_t chosen,
                          const uint64_t *tested, struct wm_compare_worst *worst)
{
    size_t untested = 0, compared = 0;
    uint64_t missing = chosen;

    for (size_t i = 0; i < compare->session_count; i++) {
        if (compare->sessions[i].reference == i)
            continue;
        compared++;
        untested = i;
        missing = chosen & ~tested[i];
        if (missing != 0 || tested[i] == 0)
            break;
    }
    if (compared > 0 && missing == 0 && tested[untested] != 0)
        return;
    worst->has_untested = true;
    worst->untested = untested;
    worst->untested_item =
        missing ? (unsigned)__builtin_ctzll(missing) : wm_compare_items();
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
        find_untested(compare, chosen, tested, &worst);
        *ret_worst = worst;
    }
    free(cells);
    free(tested);
    return status;
}
