/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_compare.c - sessions side by side: their runs, what is compared of them, and what
 * a reader has to know. */
#include "analyze/compare/analyze_compare.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the machine's cores: less is no remark. */
#define OTHER_LOAD 0.25

static_assert(WM_COMPARE_FIGURES + WM_COMPARE_MOST_FIGURES <= 64,
              "a choice has a bit for each item");

const struct wm_compare_session *wm_compare_session_of(const struct wm_compare *compare,
                                                       size_t run)
{
    const struct wm_compare_session *session = compare->sessions;

    while (run >= session->first + session->count)
        session++;
    return session;
}

const struct wm_compare_run *wm_compare_run_of(const struct wm_compare *compare, size_t run)
{
    const struct wm_compare_session *session = wm_compare_session_of(compare, run);

    return &session->runs[run - session->first];
}

static bool differs(struct wm_known one, struct wm_known other)
{
    return one.known != other.known || one.number != other.number;
}

/* Percentages and capacities mean something else where there is more hardware. */
static int remark_hardware(struct wm_compare *compare,
                           const struct wm_compare_session *first,
                           const struct wm_compare_session *session)
{
    const struct wm_static_data *one = &wm_compare_newest(first)->usage.machine;
    const struct wm_static_data *other = &wm_compare_newest(session)->usage.machine;
    int status = WM_OK;

    if (differs(other->expected_cores, one->expected_cores) ||
        differs(other->system_cores, one->system_cores))
        status = wm_remarks_add(
            &compare->remarks,
            "session \"%s\" had other numbers of cores than \"%s\": their percentages "
            "of hardware are not comparable",
            session->name, first->name);
    if (status == WM_OK && (differs(other->expected_gpus, one->expected_gpus) ||
                            differs(other->gpus, one->gpus)))
        status = wm_remarks_add(&compare->remarks,
                                "session \"%s\" had other numbers of GPUs than \"%s\"",
                                session->name, first->name);
    return status;
}

static bool is_by_another_meter(const struct wm_report *one, const struct wm_report *other)
{
    return one->energy.energy.known && other->energy.energy.known &&
           (one->cover.meter != other->cover.meter ||
            strcmp(one->cover.name, other->cover.name) != 0);
}

/* A meter of all contains more than the sum over what is measured apart. */
static int remark_meters(struct wm_compare *compare, const struct wm_compare_session *first,
                         const struct wm_compare_session *session)
{
    if (!is_by_another_meter(wm_compare_newest(session), wm_compare_newest(first)))
        return WM_OK;
    return wm_remarks_add(&compare->remarks,
                          "the energy of session \"%s\" is not of the same "
                          "sensors as that of \"%s\"",
                          session->name, first->name);
}

static bool is_told(const struct wm_remarks *remarks, const char *text)
{
    const char *other;

    for (size_t i = 0; (other = wm_remarks_get(remarks, i)) != NULL; i++) {
        if (strcmp(other, text) == 0)
            return true;
    }
    return false;
}

/* What is to be said of each run by itself: once where it is the same for several. */
static int remark_runs(struct wm_compare *compare)
{
    int status = WM_OK;

    for (size_t i = 0; i < compare->run_count; i++) {
        const struct wm_report *report = wm_compare_run_of(compare, i)->report;
        for (size_t r = report->file_remarks; r < report->remark_count && status == WM_OK;
             r++) {
            if (!is_told(&compare->remarks, report->remarks[r]))
                status = wm_remarks_add(&compare->remarks, "%s", report->remarks[r]);
        }
    }
    return status;
}

double wm_compare_load(const struct wm_report *report)
{
    const struct wm_value *all = &report->cpu_system.mean_sum;
    const struct wm_value *own = &report->cpu_combined.mean_sum;

    return all->known && own->known ? (all->number - own->number) / 100 : NAN;
}

bool wm_compare_is_load(double cores, struct wm_known of)
{
    return of.known && cores > OTHER_LOAD * of.number;
}

/* In the median; NAN: not known. */
static double cores_of_others(struct wm_compare *compare,
                              const struct wm_compare_session *session)
{
    size_t known = 0;

    for (size_t i = 0; i < session->count; i++) {
        double load = wm_compare_load(session->runs[i].report);
        if (!isnan(load))
            compare->scratch[known++] = load;
    }
    return known > 0 ? wm_runs_sum_up(compare->scratch, known).median : NAN;
}

/* Runs of one file took turns, and had the same of it. */
static int remark_load(struct wm_compare *compare, const struct wm_compare_session *first,
                       const struct wm_compare_session *session)
{
    const struct wm_known cores = wm_compare_newest(session)->usage.machine.system_cores;
    double before = cores_of_others(compare, first);
    double after = cores_of_others(compare, session);

    if (first->file == session->file ||
        !(wm_compare_is_load(before, cores) || wm_compare_is_load(after, cores)))
        return WM_OK;
    return wm_remarks_add(&compare->remarks,
                          "other programs kept %.1f cores busy during session \"%s\", and "
                          "%.1f during \"%s\": part of the difference may be theirs",
                          after, session->name, before, first->name);
}

/* Of the times of the runs; a slow first one is most often one. */
static int remark_outliers(struct wm_compare *compare,
                           const struct wm_compare_session *session)
{
    double *times = compare->scratch, *scratch = times + compare->run_count;
    size_t known = wm_compare_values(compare, session, WM_COMPARE_OVERALL,
                                     wm_compare_item("time"), times);
    int status = WM_OK;

    if (known < session->count)
        return WM_OK;
    const struct wm_runs_outliers outliers = wm_runs_outliers(times, known, scratch);
    if (outliers.is_first)
        status = wm_remarks_add(&compare->remarks,
                                "session \"%s\": the first run is an outlier; --warmup 1 "
                                "runs it without measuring",
                                session->name);
    if (status == WM_OK && outliers.count > outliers.is_first)
        status = wm_remarks_add(
            &compare->remarks,
            "session \"%s\": outliers among the runs: %zu; other programs may have "
            "disturbed them",
            session->name, outliers.count - outliers.is_first);
    return status;
}

static int remark_pairs(struct wm_compare *compare)
{
    int status = WM_OK;

    for (size_t i = 0; i < compare->session_count && status == WM_OK; i++) {
        const struct wm_compare_session *session = &compare->sessions[i];
        const struct wm_compare_session *first = &compare->sessions[session->reference];
        status = remark_hardware(compare, first, session);
        if (status == WM_OK)
            status = remark_meters(compare, first, session);
        if (status == WM_OK)
            status = remark_load(compare, first, session);
        if (status == WM_OK)
            status = remark_outliers(compare, session);
    }
    return status;
}

/* The sessions with the runs that are compared. */
static int take_sessions(struct wm_compare *compare,
                         const struct wm_compare_session *sessions, size_t count)
{
    compare->sessions = calloc(count, sizeof(*sessions));
    if (!compare->sessions)
        return WM_ENOMEM;
    compare->session_count = count;
    compare->is_native = true;
    for (size_t i = 0; i < count; i++) {
        struct wm_compare_session *session = &compare->sessions[i];
        *session = sessions[i];
        if (compare->as_gpu_tracker) {
            session->runs += session->count - 1;
            session->count = 1;
        }
        session->first = compare->run_count;
        compare->run_count += session->count;
        for (size_t r = 0; r < session->count; r++)
            compare->is_native &= !session->runs[r].report->is_foreign;
    }
    compare->scratch = calloc(4 * compare->run_count, sizeof(*compare->scratch));
    return compare->scratch ? WM_OK : WM_ENOMEM;
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

    *compare = (struct wm_compare) { .statistic = statistic,
                                     .as_gpu_tracker = as_gpu_tracker,
                                     .threshold = 0.01 };
    int status = take_sessions(compare, sessions, count);
    if (status == WM_OK)
        status = as_gpu_tracker ? wm_compare_match_gpu_tracker(compare, err)
                                : wm_compare_match(compare, err);
    else
        wm_fail_memory(err, "comparison");
    if (status == WM_OK &&
        (remark_runs(compare) < 0 || (!as_gpu_tracker && remark_pairs(compare) < 0)))
        status = wm_fail_memory(err, "comparison");
    if (status == WM_OK && wm_compare_count_tests(compare) < 0)
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
    free(compare->sessions);
    free(compare->scratch);
    wm_remarks_release(&compare->remarks);
    free(compare);
}

bool wm_compare_has(const struct wm_compare *compare, const struct wm_compare_group *group,
                    size_t session)
{
    const struct wm_compare_session *of = &compare->sessions[session];

    for (size_t i = of->first; i < of->first + of->count; i++) {
        if (group->blocks[i])
            return true;
    }
    return false;
}

const struct wm_figure_row *wm_compare_item_row(unsigned item)
{
    const struct wm_figure_row *row = NULL;
    unsigned found = WM_COMPARE_FIGURES;

    if (item < WM_COMPARE_FIGURES)
        return NULL;
    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        if (row->is_compared && found++ == item)
            return row;
    }
    return NULL;
}

unsigned wm_compare_items(void)
{
    unsigned count = WM_COMPARE_FIGURES;

    while (count < WM_COMPARE_FIGURES + WM_COMPARE_MOST_FIGURES &&
           wm_compare_item_row(count))
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

/* Times, energies, memory, use, and what else there is. */
static int rank_of(unsigned item)
{
    static const int ranks[] = {
        [WM_UNIT_TIME] = -6, [WM_UNIT_SECONDS] = -5, [WM_UNIT_JOULES] = -4,
        [WM_UNIT_RAM] = -3,  [WM_UNIT_GPU_RAM] = -2, [WM_UNIT_PERCENT] = -1,
        [WM_UNIT_COUNT] = 0,
    };
    const struct wm_figure_row *row = wm_compare_item_row(item);

    return row ? ranks[row->unit] : 1;
}

unsigned wm_compare_item_at(unsigned place)
{
    unsigned count = wm_compare_items();

    for (unsigned item = 0; item < count; item++) {
        unsigned before = 0;
        for (unsigned other = 0; other < count; other++)
            before += rank_of(other) < rank_of(item) ||
                      (rank_of(other) == rank_of(item) && other < item);
        if (before == place)
            return item;
    }
    return count;
}

const char *wm_compare_item_name(unsigned item)
{
    if (item < WM_MEASUREMENT_COUNT)
        return wm_measurement_name((enum wm_measurement)item);
    return wm_figure_key(wm_compare_item_row(item));
}

bool wm_compare_item_matters(unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);

    switch (item) {
    case WM_MAIN_RAM:
    case WM_DESCENDANTS_RAM:
    case WM_COMBINED_RAM:
    case WM_MAIN_GPU_RAM:
    case WM_DESCENDANTS_GPU_RAM:
    case WM_COMBINED_GPU_RAM:
        return true;
    default:
        return row && (row->unit == WM_UNIT_TIME || row->unit == WM_UNIT_SECONDS ||
                       row->unit == WM_UNIT_JOULES || row->unit == WM_UNIT_RAM ||
                       row->unit == WM_UNIT_GPU_RAM);
    }
}

bool wm_compare_item_is_main(const struct wm_compare *compare, unsigned item)
{
    const struct wm_figure_row *row = wm_compare_item_row(item);

    /* What gpu_tracker recorded has hardly any of the other figures. */
    return row ? !row->is_detail : !compare->is_native;
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

static int convert_unit(struct wm_report *report, const char *unit, const char *to,
                        unsigned first, unsigned last, const char *name,
                        struct wm_error *err)
{
    double size = wm_compare_unit_size(unit), size_to = wm_compare_unit_size(to);

    if (size == 0)
        return wm_fail(err, WM_EFORMAT, "%.100s: \"%.15s\" is no unit of memory", name,
                       unit);
    convert_usage(report->usage.overall, first, last, size, size_to);
    for (size_t i = 0; i < report->regions.name_count; i++)
        convert_usage(report->regions.names[i].usage, first, last, size, size_to);
    return WM_OK;
}

int wm_compare_convert(struct wm_report *report, const struct wm_static_data *units,
                       const char *name, struct wm_error *err)
{
    struct wm_static_data *data = &report->usage.machine;

    int status = convert_unit(report, data->ram_unit, units->ram_unit, WM_MAIN_RAM,
                              WM_SYSTEM_RAM, name, err);
    if (status == WM_OK)
        status = convert_unit(report, data->gpu_ram_unit, units->gpu_ram_unit,
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
