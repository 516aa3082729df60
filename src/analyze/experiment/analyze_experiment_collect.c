/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_experiment_collect.c - the values of one metric out of a recording.
 *
 * Energies are those of the report, tick by tick: the recording is read once to see
 * which devices are known in the end, and once more for what they had used by each tick.
 */
#include "analyze/experiment/analyze_experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/analyze_devices.h"
#include "analyze/analyze_state.h"
#include "analyze/energy/analyze_uncertainty.h"
#include "base/base_text.h"
#include "base/text/base_number.h"
#include "record/record_column.h"
#include "record/record_read.h"

/* Readings of all runs that are kept, of 24 bytes each. A run that is kept stays open,
 * maybe with a connection, so it counts for that many at least. */
enum { READINGS_KEPT = 4 << 20, READINGS_OF_A_RUN = READINGS_KEPT / 16 };

/* What an energy is of: some kinds of device, or the one that is labelled so. */
struct subject {
    bool cpu, dram, gpu;
    char label[64];
    bool is_power;
};

/* The devices whose joules are added up, the same as in the report of the analysis. */
struct chosen {
    bool *is_chosen;  /* of each device of the analysis; its GPUs are behind the others */
    size_t count;     /* number of chosen devices */
    bool has_subject; /* the machine has such devices, known or not */
    struct wm_cover cover;
    enum wm_origin origin;
    double period_s; /* of the slowest of their sensors */
    struct wm_series_doubt doubt;
};

/* A pass over a recording, which is read once, unless it has more ticks than are kept. */
struct pass {
    const struct wm_experiment_run *run;
    struct wm_recording *recording;
    size_t next; /* of the ticks that are kept */
    const struct wm_channel *channels;
    size_t count;
    struct wm_analysis *analysis; /* NULL where none is needed */
};

static void forget(struct wm_experiment_ticks *ticks)
{
    wm_recording_close(ticks->recording);
    free(ticks->when_ns);
    free(ticks->readings);
    *ticks = (struct wm_experiment_ticks) { .kept = ticks->kept };
}

void wm_experiment_ticks_free(struct wm_experiment_ticks *ticks)
{
    if (ticks)
        forget(ticks);
    free(ticks);
}

static bool grow(struct wm_experiment_ticks *ticks, size_t room, size_t channels)
{
    int64_t *when_ns = realloc(ticks->when_ns, room * sizeof(*when_ns));
    if (when_ns)
        ticks->when_ns = when_ns;
    struct wm_reading *readings =
        realloc(ticks->readings, (room * channels + 1) * sizeof(*readings));
    if (readings)
        ticks->readings = readings;
    return when_ns && readings;
}

/* What keeping so many ticks counts for. */
static size_t cost_of(size_t count, size_t channels)
{
    size_t readings = count * channels;

    return readings > READINGS_OF_A_RUN ? readings : READINGS_OF_A_RUN;
}

/* Where they are too many they are forgotten, and that is no failure. */
static int keep_ticks(struct wm_experiment_ticks *ticks, struct wm_error *err)
{
    size_t channels = wm_recording_channel_count(ticks->recording), room = 0;
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(ticks->recording, &tick, err)) > 0) {
        if (*ticks->kept + cost_of(ticks->count, channels) > READINGS_KEPT) {
            forget(ticks);
            ticks->is_too_long = true;
            return WM_OK;
        }
        if (ticks->count == room) {
            room = room ? 2 * room : 256;
            if (!grow(ticks, room, channels))
                return wm_fail_memory(err, "experiment");
        }
        ticks->when_ns[ticks->count] = tick.when_ns;
        memcpy(ticks->readings + ticks->count * channels, tick.readings,
               channels * sizeof(*tick.readings));
        ticks->count++;
    }
    *ticks->kept += cost_of(ticks->count, channels);
    return status;
}

static int open_recording(struct pass *pass, struct wm_error *err)
{
    struct wm_experiment_ticks *ticks = pass->run->ticks;
    int status = WM_OK;

    if (!ticks->recording && !ticks->is_too_long) {
        status =
            wm_recording_open(pass->run->path, pass->run->index, &ticks->recording, err);
        if (status == WM_OK)
            status = keep_ticks(ticks, err);
        if (status < 0)
            forget(ticks);
    }
    pass->recording = ticks->recording;
    return ticks->is_too_long
               ? wm_recording_open(pass->run->path, pass->run->index, &pass->recording, err)
               : status;
}

static int pass_begin(struct pass *pass, const struct wm_experiment_run *run,
                      bool with_analysis, struct wm_error *err)
{
    const struct wm_gap *gaps;

    *pass = (struct pass) { .run = run };
    int status = open_recording(pass, err);
    if (status < 0)
        return status;
    pass->channels = wm_recording_channels(pass->recording, &pass->count);
    if (!with_analysis)
        return WM_OK;
    status = wm_analysis_new(wm_recording_run(pass->recording), pass->channels, pass->count,
                             &pass->analysis, err);
    if (status < 0)
        return status;
    size_t gap_count = wm_recording_gaps(pass->recording, &gaps);
    for (size_t i = 0; i < gap_count; i++)
        wm_analysis_gap(pass->analysis, &gaps[i]);
    return WM_OK;
}

static void pass_end(struct pass *pass)
{
    wm_analysis_free(pass->analysis);
    if (pass->run && pass->recording != pass->run->ticks->recording)
        wm_recording_close(pass->recording);
}

static int pass_next(struct pass *pass, struct wm_tick *ret_tick, struct wm_error *err)
{
    const struct wm_experiment_ticks *ticks = pass->run->ticks;
    int status;

    if (!ticks->recording) {
        status = wm_recording_next(pass->recording, ret_tick, err);
    } else if ((status = pass->next < ticks->count) > 0) {
        *ret_tick = (struct wm_tick) {
            .when_ns = ticks->when_ns[pass->next],
            .readings = ticks->readings + pass->next * pass->count,
            .count = pass->count,
        };
        pass->next++;
    }
    if (status > 0 && pass->analysis)
        wm_analysis_tick(pass->analysis, ret_tick);
    return status;
}

static int64_t unix_of(const struct pass *pass, int64_t when_ns)
{
    const struct wm_run *run = wm_recording_run(pass->recording);

    return run->anchor_unix_ns - run->anchor_ns + when_ns;
}

/* Makes the series with the first of its runs. */
static int begin_series(const struct wm_experiment_run *run, const char *name,
                        enum wm_series_kind kind, const char *unit,
                        struct wm_series **series, struct wm_error *err)
{
    if (!*series)
        return wm_series_new(name, kind, unit, series, err);
    if ((*series)->kind != kind || strcmp((*series)->unit, unit) != 0)
        return wm_fail(err, WM_EFORMAT,
                       "%.64s is one thing in one run and another in the run %.40s", name,
                       run->run.id ? run->run.id : "?");
    wm_series_break(*series);
    return WM_OK;
}

static bool ends_with(const char *text, const char *end, size_t *ret_length)
{
    size_t length = strlen(text), end_length = strlen(end);

    if (length <= end_length || strcmp(text + length - end_length, end) != 0)
        return false;
    *ret_length = length - end_length;
    return true;
}

/* "energy", "gpu_power", "package0_energy". */
static bool parse_subject(const char *metric, struct subject *ret_subject)
{
    struct subject subject = { .is_power = strcmp(metric, "power") == 0 };
    size_t length = 0;

    if (subject.is_power || strcmp(metric, "energy") == 0) {
        subject.cpu = subject.dram = subject.gpu = true;
    } else {
        subject.is_power = ends_with(metric, "_power", &length);
        if (!subject.is_power && !ends_with(metric, "_energy", &length))
            return false;
        if (length >= sizeof(subject.label))
            return false;
        memcpy(subject.label, metric, length);
        subject.cpu = strcmp(subject.label, "cpu") == 0;
        subject.dram = strcmp(subject.label, "dram") == 0;
        subject.gpu = strcmp(subject.label, "gpu") == 0;
    }
    *ret_subject = subject;
    return true;
}

static bool is_known(const struct wm_analysis *analysis, size_t device)
{
    struct wm_energy_result result;

    wm_energy_result(&wm_device_at(analysis, device)->joules, &result);
    return wm_energy_is_known(&result);
}

static void add_doubt(struct wm_series_doubt *doubt, const struct wm_energy *joules,
                      const struct wm_energy_result *result)
{
    struct wm_uncertainty uncertainty;

    wm_uncertainty_find(joules, result, &uncertainty);
    doubt->is_energy = true;
    doubt->is_vague |= result->missing_s > WM_MOST_MISSING * result->span_s;
    doubt->joules += result->joules;
    doubt->systematic += uncertainty.systematic;
    doubt->random_squares += uncertainty.random * uncertainty.random;
    if (result->missing_s > WM_LEAST_MISSING_S)
        doubt->missing_s = fmax(doubt->missing_s, result->missing_s);
}

static void add_device(struct chosen *chosen, const struct wm_analysis *analysis,
                       size_t device)
{
    const struct wm_channel *channel = wm_device_at(analysis, device)->channel;
    const struct wm_energy *joules = &wm_device_at(analysis, device)->joules;
    struct wm_energy_result result;

    wm_energy_result(joules, &result);
    chosen->period_s = fmax(chosen->period_s, result.period_s);
    add_doubt(&chosen->doubt, joules, &result);
    if (channel->origin > chosen->origin)
        chosen->origin = channel->origin;
    chosen->is_chosen[device] = true;
    chosen->count++;
}

/* CPUs or memory. */
static void choose_kind(struct chosen *chosen, const struct wm_analysis *analysis,
                        enum wm_device_kind kind, struct wm_energy_choice *ret_choice)
{
    const struct wm_energy_offers offers = wm_devices_offers(analysis);

    wm_energy_choose(&offers, kind, ret_choice);
    chosen->has_subject |= ret_choice->source != NULL;
    for (size_t i = 0; i < analysis->device_count && ret_choice->is_known; i++) {
        if (wm_device_is(&analysis->devices[i], kind, ret_choice->source))
            add_device(chosen, analysis, i);
    }
}

/* All of them, but for those whose power is a part of the CPU's; whether they are
 * known. */
static bool choose_gpus(struct chosen *chosen, const struct wm_analysis *analysis)
{
    const struct wm_gpu_stats *gpus = analysis->gpus;
    size_t first = analysis->device_count, found = 0;

    chosen->has_subject |= analysis->gpu_count > 0;
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (gpus[i].device.counts && !is_known(analysis, first + i))
            return false;
        found += gpus[i].device.counts;
    }
    for (size_t i = 0; i < analysis->gpu_count; i++) {
        if (gpus[i].device.counts)
            add_device(chosen, analysis, first + i);
    }
    return found > 0;
}

/* The first that is known. */
static void choose_label(struct chosen *chosen, const struct wm_analysis *analysis,
                         const char *label)
{
    for (size_t i = 0; i < wm_device_count(analysis); i++) {
        if (strcmp(wm_device_at(analysis, i)->channel->label, label) != 0)
            continue;
        chosen->has_subject = true;
        if (chosen->count == 0 && is_known(analysis, i))
            add_device(chosen, analysis, i);
    }
}

/* The meter that the energy of all is of; whether there is one. */
static bool choose_meter(struct chosen *chosen, const struct wm_analysis *analysis,
                         const struct wm_energy_choice *cpus)
{
    const struct wm_energy_offers offers = wm_devices_offers(analysis);
    struct wm_cover *cover = &chosen->cover;
    struct wm_energy_meter meter;

    wm_devices_find_meter(analysis, &offers, cpus, &meter);
    for (size_t i = 0; i < analysis->device_count; i++) {
        if (!wm_energy_is_of_meter(&offers, &meter, i))
            continue;
        add_device(chosen, analysis, i);
        wm_text_list(cover->name, sizeof(cover->name), " and ", "%s",
                     analysis->devices[i].channel->label);
    }
    cover->meter = meter.contains;
    return meter.source != NULL;
}

/* After the last tick; `is_chosen` is the caller's to free. */
static int choose(const struct wm_analysis *analysis, const struct subject *subject,
                  struct chosen *chosen, struct wm_error *err)
{
    struct wm_energy_choice cpus = { 0 }, memory = { 0 };

    chosen->is_chosen = calloc(wm_device_count(analysis) + 1, sizeof(bool));
    if (!chosen->is_chosen)
        return wm_fail_memory(err, "experiment");
    if (subject->cpu && subject->dram && subject->gpu) {
        const struct wm_energy_offers offers = wm_devices_offers(analysis);
        wm_energy_choose(&offers, WM_DEVICE_CPU, &cpus);
        if (choose_meter(chosen, analysis, &cpus))
            return WM_OK;
    }
    if (subject->cpu)
        choose_kind(chosen, analysis, WM_DEVICE_CPU, &cpus);
    if (subject->dram && !cpus.has_memory)
        choose_kind(chosen, analysis, WM_DEVICE_DRAM, &memory);
    chosen->cover.has[WM_COST_CPU] = cpus.is_known;
    chosen->cover.has[WM_COST_DRAM] = memory.is_known;
    if (subject->gpu)
        chosen->cover.has[WM_COST_GPUS] = choose_gpus(chosen, analysis);
    if (!subject->cpu && !subject->dram && !subject->gpu)
        choose_label(chosen, analysis, subject->label);
    return WM_OK;
}

/* What they have used by a tick of another analysis of the same run. */
static struct wm_known sum_joules(const struct wm_analysis *analysis,
                                  const struct chosen *chosen)
{
    struct wm_energy_result result;
    double joules = 0;

    for (size_t i = 0; i < wm_device_count(analysis); i++) {
        if (!chosen->is_chosen[i])
            continue;
        wm_energy_result(&wm_device_at(analysis, i)->joules, &result);
        joules += result.joules;
    }
    return (struct wm_known) { isfinite(joules), joules };
}

static int add_energies(struct pass *pass, const struct chosen *chosen,
                        struct wm_series *series, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = pass_next(pass, &tick, err)) > 0) {
        const struct wm_known joules = sum_joules(pass->analysis, chosen);
        if (wm_tick_is_pause(&tick))
            wm_series_break(series);
        else if (joules.known)
            status = wm_series_add(series, unix_of(pass, tick.when_ns), joules.number, err);
        if (status < 0)
            return status;
    }
    return status;
}

static int look_ahead(const struct wm_experiment_run *run, const struct subject *subject,
                      struct chosen *chosen, struct wm_error *err)
{
    struct wm_tick tick;
    struct pass pass;

    int status = pass_begin(&pass, run, true, err);
    while (status == WM_OK && (status = pass_next(&pass, &tick, err)) > 0)
        status = WM_OK;
    if (status == WM_OK)
        status = choose(pass.analysis, subject, chosen, err);
    if (status == WM_OK)
        chosen->doubt.unfinished = !wm_recording_result(pass.recording);
    pass_end(&pass);
    return status;
}

/* The runs one after the other. */
static void join_doubts(struct wm_series_doubt *all, const struct wm_series_doubt *one)
{
    all->is_energy |= one->is_energy;
    all->is_vague |= one->is_vague;
    all->joules += one->joules;
    all->systematic += one->systematic;
    all->random_squares += one->random_squares;
    all->missing_s += one->missing_s;
    all->unfinished += one->unfinished;
}

static int collect_energy(const struct wm_experiment_run *run, const char *metric,
                          const struct subject *subject, struct wm_series **series,
                          struct wm_cover *ret_cover, struct wm_error *err)
{
    struct chosen chosen = { 0 };
    struct pass pass = { 0 };

    int status = look_ahead(run, subject, &chosen, err);
    if (status == WM_OK && chosen.count == 0)
        status =
            chosen.has_subject
                ? wm_fail(err, WM_ENODEV, "%.64s: its sensors reported nothing", metric)
                : wm_fail(err, WM_ENOENT, "%.64s: no sensor knows it", metric);
    if (status == WM_OK)
        status = begin_series(run, metric, WM_SERIES_TOTAL, "J", series, err);
    if (status == WM_OK) {
        struct wm_series *made = *series;
        made->period_s = fmax(made->period_s, chosen.period_s);
        made->origin = chosen.origin > made->origin ? chosen.origin : made->origin;
        join_doubts(&made->doubt, &chosen.doubt);
        *ret_cover = chosen.cover;
        status = pass_begin(&pass, run, true, err);
        if (status == WM_OK)
            status = add_energies(&pass, &chosen, made, err);
        pass_end(&pass);
    }
    free(chosen.is_chosen);
    return status;
}

/* The points from `next` up to that time. */
static int add_told(const struct pass *pass, const struct wm_metric *metric, size_t *next,
                    int64_t to_ns, struct wm_series *series, struct wm_error *err)
{
    int status = WM_OK;

    while (status == WM_OK && *next < metric->count &&
           metric->points[*next].when_ns <= to_ns) {
        const struct wm_metric_point *point = &metric->points[(*next)++];
        status = wm_series_add(series, unix_of(pass, point->when_ns), point->value, err);
    }
    return status;
}

/* What the program wrote itself; a pause of the recording is one of it, too. */
static int collect_told(struct pass *pass, const struct wm_metric *metric,
                        struct wm_series **series, struct wm_error *err)
{
    struct wm_tick tick;
    size_t next = 0;

    int status = begin_series(pass->run, metric->name, WM_SERIES_GAUGE, "", series, err);
    if (status < 0)
        return status;
    (*series)->is_told = true;
    while ((status = pass_next(pass, &tick, err)) > 0) {
        if (!wm_tick_is_pause(&tick))
            continue;
        status = add_told(pass, metric, &next, tick.when_ns, *series, err);
        if (status < 0)
            return status;
        wm_series_break(*series);
    }
    return status < 0 ? status : add_told(pass, metric, &next, INT64_MAX, *series, err);
}

/* A gauge is not known from a missing reading to the next; a counter makes up for it. */
static int collect_channel(struct pass *pass, const char *metric, size_t index,
                           struct wm_series **series, struct wm_error *err)
{
    const struct wm_channel *channel = &pass->channels[index];
    struct wm_counter_stats counter = { 0 };
    struct wm_tick tick;

    bool counts = channel->kind == WM_COUNTER;
    int status = begin_series(pass->run, metric, counts ? WM_SERIES_TOTAL : WM_SERIES_GAUGE,
                              channel->unit, series, err);
    if (status < 0)
        return status;
    (*series)->period_s = fmax((*series)->period_s, (double)channel->period_ns / 1e9);
    if (channel->origin > (*series)->origin)
        (*series)->origin = channel->origin;
    while ((status = pass_next(pass, &tick, err)) > 0) {
        const struct wm_reading *reading = &tick.readings[index];
        if (!wm_stats_usable(reading)) {
            if (!counts || wm_tick_is_pause(&tick))
                wm_series_break(*series);
            continue;
        }
        wm_counter_add(&counter, reading);
        status = wm_series_add(*series, unix_of(pass, reading->when_ns),
                               counts ? counter.total : reading->value, err);
        if (status < 0)
            return status;
    }
    return status;
}

/* The channel with that column. */
static int find_column(const struct pass *pass, const char *metric, size_t *ret_index,
                       struct wm_error *err)
{
    struct wm_columns columns = { 0 };

    int status = wm_columns_plan(pass->channels, pass->count, NULL, 0, &columns, err);
    if (status == WM_OK)
        status = wm_fail(err, WM_ENOENT, "%.64s: there is no such metric", metric);
    for (size_t i = 0; status == WM_ENOENT && i < columns.count; i++) {
        if (strcmp(columns.values[i], metric) == 0) {
            *ret_index = i;
            status = WM_OK;
        }
    }
    wm_columns_release(&columns);
    return status;
}

static const struct wm_metric *find_told(const struct pass *pass, const char *name)
{
    const struct wm_result *result = wm_recording_result(pass->recording);

    for (size_t i = 0; result && i < result->metrics.count; i++) {
        if (strcmp(result->metrics.all[i].name, name) == 0)
            return &result->metrics.all[i];
    }
    return NULL;
}

int wm_experiment_collect(const struct wm_experiment_run *run, const char *metric,
                          struct wm_series **series, struct wm_cover *ret_cover,
                          struct wm_error *err)
{
    const struct wm_metric *told;
    struct subject subject;
    struct pass pass;
    size_t index = 0;
    int status = WM_ENOENT;

    *ret_cover = (struct wm_cover) { 0 };
    bool is_energy = parse_subject(metric, &subject);
    if (is_energy)
        status = collect_energy(run, metric, &subject, series, ret_cover, err);
    if (status != WM_ENOENT)
        return status;
    status = pass_begin(&pass, run, false, err);
    if (status == WM_OK && (told = find_told(&pass, metric)) != NULL) {
        status = collect_told(&pass, told, series, err);
    } else if (status == WM_OK) {
        status = find_column(&pass, metric, &index, err);
        if (status == WM_OK)
            status = collect_channel(&pass, metric, index, series, err);
    }
    pass_end(&pass);
    return status == WM_ENOENT && is_energy
               ? wm_fail(err, status, "%.64s: no sensor of this run knows it", metric)
               : status;
}

/* Whether `cover` is what that of the first run with the metric is. */
static int check_cover(const struct wm_cover *first, size_t first_run,
                       const struct wm_cover *cover, size_t run, struct wm_error *err)
{
    char why[64];

    if (!wm_cover_differs(first, first_run, cover, run, why))
        return WM_OK;
    return wm_fail(err, WM_ENODEV, "%s; ask for cpu_energy, dram_energy or gpu_energy",
                   why);
}

/* A few of the names that there are, those that the program chose first. */
static int no_such_metric(const struct wm_experiment *experiment, const char *metric,
                          struct wm_error *err)
{
    const struct wm_experiment_run *run = &experiment->runs[experiment->count - 1];
    char names[126] = "";
    struct pass pass;

    if (pass_begin(&pass, run, false, NULL) == WM_OK) {
        const struct wm_result *result = wm_recording_result(pass.recording);
        for (size_t i = 0; result && i < result->metrics.count; i++)
            wm_text_list(names, sizeof(names), ", ", "%.32s", result->metrics.all[i].name);
    }
    pass_end(&pass);
    return wm_fail(err, WM_ENOENT,
                   "there is no metric '%.60s'; there are energy, power and the columns of "
                   "the recording%s%s",
                   metric, names[0] ? ", " : "", names);
}

int wm_experiment_series(const struct wm_experiment *experiment, const char *metric,
                         struct wm_series **ret_series, struct wm_error *err)
{
    struct wm_series *series = NULL, *rate = NULL;
    struct subject subject;
    struct wm_cover first = { 0 }, cover;
    struct wm_error why = { 0 };
    size_t first_run = experiment->count;
    int status = WM_OK, missing = WM_ENOENT;

    for (size_t i = 0; i < experiment->count && status == WM_OK; i++) {
        struct wm_error one;
        status = wm_experiment_collect(&experiment->runs[i], metric, &series, &cover, &one);
        if (status == WM_OK && first_run < i) {
            status = check_cover(&first, first_run, &cover, i, &why);
        } else if (status == WM_OK) {
            first = cover;
            first_run = i;
        } else if (status == WM_ENODEV || status == WM_ENOENT) {
            if (missing == WM_ENOENT)
                why = one;
            missing = status == WM_ENODEV ? status : missing;
            status = WM_OK;
        } else {
            why = one;
        }
    }
    if (status == WM_OK && (!series || series->count == 0)) {
        if (series)
            missing = WM_ENODEV;
        wm_series_free(series);
        if (missing == WM_ENOENT && !parse_subject(metric, &subject))
            return no_such_metric(experiment, metric, err);
        return wm_fail(err, missing, "%s",
                       why.text[0] ? why.text : "the metric has no value");
    }
    if (status == WM_OK) {
        series->zero_ns = experiment->zero_ns;
        if (parse_subject(metric, &subject) && subject.is_power &&
            series->kind == WM_SERIES_TOTAL)
            status = wm_series_rate(series, WM_SENSOR_PERIODS * series->period_s, metric,
                                    "W", &rate, &why);
    }
    if (rate || status < 0)
        wm_series_free(series);
    if (status < 0)
        return wm_fail(err, status, "%s", why.text);
    *ret_series = rate ? rate : series;
    return WM_OK;
}
