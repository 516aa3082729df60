/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_repeat.c - keeps the runs of commands and sums them up. */
#include "analyze/experiment/analyze_repeat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/analyze_compare.h"
#include "base/base_array.h"
#include "base/base_options.h"

#define DEFAULT_THRESHOLD 0.01

/* What is shorter is run in batches. */
#define BATCH_PERIODS 10

#define SHOWN(key, label, more, unit)                                                      \
    {                                                                                      \
        key, label, more, unit, false                                                      \
    }
#define DETAIL(key, label, unit)                                                           \
    {                                                                                      \
        key, label, label, unit, true                                                      \
    }

#define EVENT(id, name)                                                                    \
    [WM_REPEAT_EVENTS + WM_EVENT_##id] = SHOWN(name, name, name, WM_UNIT_COUNT),

static const struct wm_repeat_kind kinds[] = {
    [WM_REPEAT_TIME] = SHOWN("time", "Time", "time", WM_UNIT_SECONDS),
    [WM_REPEAT_USER] = SHOWN("user_time", "User", "user time", WM_UNIT_SECONDS),
    [WM_REPEAT_SYSTEM] = SHOWN("system_time", "System", "system time", WM_UNIT_SECONDS),
    [WM_REPEAT_CPU_TIME] = SHOWN("cpu_time", "CPU time", "CPU time", WM_UNIT_SECONDS),
    [WM_REPEAT_ENERGY] = SHOWN("energy", "Energy", "energy", WM_UNIT_JOULES),
    [WM_REPEAT_CPU_ENERGY] = DETAIL("cpu_energy", "CPU energy", WM_UNIT_JOULES),
    [WM_REPEAT_GPU_ENERGY] = DETAIL("gpu_energy", "GPU energy", WM_UNIT_JOULES),
    [WM_REPEAT_MEMORY] = SHOWN("memory", "Memory", "memory", WM_UNIT_BYTES),
    [WM_REPEAT_VOLUNTARY] = DETAIL("voluntary_switches", "Vol. switches", WM_UNIT_COUNT),
    [WM_REPEAT_INVOLUNTARY] =
        DETAIL("involuntary_switches", "Inv. switches", WM_UNIT_COUNT),
    [WM_REPEAT_MINOR] = DETAIL("minor_faults", "Minor faults", WM_UNIT_COUNT),
    [WM_REPEAT_MAJOR] = DETAIL("major_faults", "Major faults", WM_UNIT_COUNT),
    [WM_REPEAT_READ] = DETAIL("read_bytes", "Read", WM_UNIT_BYTES),
    [WM_REPEAT_WRITTEN] = DETAIL("written_bytes", "Written", WM_UNIT_BYTES),
    [WM_REPEAT_STORAGE_READ] = DETAIL("storage_read_bytes", "Storage read", WM_UNIT_BYTES),
    [WM_REPEAT_STORAGE_WRITTEN] =
        DETAIL("storage_written_bytes", "Storage write", WM_UNIT_BYTES),
    WM_EVENT_LIST(EVENT)
};

bool wm_repeat_is_left_out(const struct wm_repeat *repeat, enum wm_repeat_metric metric)
{
    if (metric < WM_REPEAT_EVENTS)
        return false;
    for (size_t i = 0; i < repeat->count; i++) {
        if (wm_repeat_summary(&repeat->commands[i], metric).of.count > 0)
            return false;
    }
    return true;
}

const struct wm_repeat_kind *wm_repeat_kind(enum wm_repeat_metric metric)
{
    return &kinds[metric];
}

bool wm_repeat_is_compared(enum wm_repeat_metric metric)
{
    return wm_compare_is_headline(kinds[metric].key);
}

int wm_repeat_new(const struct wm_repeat_options *options, struct wm_repeat **ret_repeat,
                  struct wm_error *err)
{
    struct wm_repeat *repeat = calloc(1, sizeof(*repeat));

    if (!repeat)
        return wm_fail_memory(err, "the runs");
    int status = wm_options_read(options, &repeat->options, sizeof(repeat->options), err);
    if (status < 0) {
        free(repeat);
        return status;
    }
    if (repeat->options.threshold <= 0)
        repeat->options.threshold = DEFAULT_THRESHOLD;
    *ret_repeat = repeat;
    return WM_OK;
}

static void release_one(struct wm_repeat_one *one)
{
    free(one->command);
    free(one->name);
    for (size_t i = 0; one->parameters && one->parameters[i]; i++)
        free(one->parameters[i]);
    free(one->parameters);
    free(one->samples);
    free(one->times);
    free(one->exit_codes);
    for (size_t m = 0; m < WM_REPEAT_METRICS; m++)
        free(one->why[m]);
}

void wm_repeat_free(struct wm_repeat *repeat)
{
    if (!repeat)
        return;
    for (size_t i = 0; i < repeat->count; i++)
        release_one(&repeat->commands[i]);
    release_one(&repeat->shell);
    free(repeat->commands);
    wm_remarks_release(&repeat->remarks);
    free(repeat);
}

static bool copy_parameters(const char *const *from, struct wm_repeat_one *one)
{
    size_t count = 0;

    while (from && from[count])
        count++;
    one->parameters = calloc(count + 1, sizeof(*one->parameters));
    for (size_t i = 0; one->parameters && i < count; i++) {
        one->parameters[i] = strdup(from[i]);
        if (!one->parameters[i])
            return false;
    }
    return one->parameters;
}

int wm_repeat_add_command(struct wm_repeat *repeat, const struct wm_repeat_command *command,
                          struct wm_error *err)
{
    struct wm_repeat_one one = {
        .command = strdup(command->command),
        .name = strdup(command->name ? command->name : command->command),
    };

    if (!one.command || !one.name || !copy_parameters(command->parameters, &one) ||
        wm_array_reserve(&repeat->commands, repeat->count, &repeat->room, sizeof(one)) <
            0) {
        release_one(&one);
        return wm_fail_memory(err, "the runs");
    }
    repeat->commands[repeat->count++] = one;
    return WM_OK;
}

/* SplitMix64: every seed, also 0, gives a good sequence. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Two rounds are a block, whose second half has the order of the first backwards: whatever
 * changes evenly with time does so for all commands alike. */
void wm_repeat_order(const struct wm_repeat *repeat, size_t round, size_t *ret_commands)
{
    uint64_t state = repeat->options.seed + 0x632be59bd9b4e019 * (round / 2);
    size_t count = repeat->count;

    for (size_t i = 0; i < count; i++)
        ret_commands[i] = i;
    for (size_t i = 0; i + 1 < count; i++) {
        size_t with = i + (size_t)(next_random(&state) % (count - i));
        size_t kept = ret_commands[i];
        ret_commands[i] = ret_commands[with];
        ret_commands[with] = kept;
    }
    for (size_t i = 0; round % 2 == 1 && i < count / 2; i++) {
        size_t kept = ret_commands[i];
        ret_commands[i] = ret_commands[count - 1 - i];
        ret_commands[count - 1 - i] = kept;
    }
}

/* How much of the uncertainty is the same in each run; 0 of what is no energy. */
static double systematic_of(const struct wm_report *report, enum wm_repeat_metric metric)
{
    switch (metric) {
    case WM_REPEAT_ENERGY:
        return report->energy.systematic;
    case WM_REPEAT_CPU_ENERGY:
        return report->cpu_energy.systematic;
    case WM_REPEAT_GPU_ENERGY:
        return report->gpu_energy.systematic;
    default:
        return 0;
    }
}

static struct wm_known known(double number)
{
    return (struct wm_known) { true, number };
}

/* What the report has, for each of `runs`. */
static bool take_figure(struct wm_repeat_one *one, const struct wm_report *report,
                        enum wm_repeat_metric metric, struct wm_repeat_sample *sample)
{
    struct wm_report_figure figure;
    double runs = (double)sample->runs;
    const char *why = "it was not recorded";

    if (wm_report_figure(report, NULL, kinds[metric].key, &figure) == WM_OK) {
        why = figure.why;
        if (figure.state == WM_REPORT_KNOWN) {
            sample->values[metric] = known(figure.value / runs);
            if (figure.has_range) {
                sample->low[metric] = known(figure.low / runs);
                sample->high[metric] = known(figure.high / runs);
            }
            one->origin[metric] = figure.origin;
            one->systematic[metric] =
                fmax(one->systematic[metric], systematic_of(report, metric));
            return true;
        }
    }
    free(one->why[metric]);
    one->why[metric] = strdup(why ? why : "it is not known");
    return one->why[metric];
}

/* What each run of a batch has. */
static const struct {
    enum wm_repeat_metric metric;
    size_t slot;
} of_run[] = {
    { WM_REPEAT_USER, offsetof(struct wm_tracker_run, user_s) },
    { WM_REPEAT_SYSTEM, offsetof(struct wm_tracker_run, system_s) },
    { WM_REPEAT_VOLUNTARY, offsetof(struct wm_tracker_run, voluntary_switches) },
    { WM_REPEAT_INVOLUNTARY, offsetof(struct wm_tracker_run, involuntary_switches) },
    { WM_REPEAT_MINOR, offsetof(struct wm_tracker_run, minor_faults) },
    { WM_REPEAT_MAJOR, offsetof(struct wm_tracker_run, major_faults) },
};

static double mean_of(const struct wm_repeat_run *run, size_t slot)
{
    double sum = 0;

    for (size_t i = 0; i < run->batch_count; i++)
        sum += *(const double *)(const void *)((const char *)&run->batch[i] + slot);
    return sum / (double)run->batch_count;
}

/* The figures that each run has. A single one has its time and memory in its report. */
static void take_runs(const struct wm_repeat_run *run, struct wm_repeat_sample *sample)
{
    for (size_t i = 0; i < sizeof(of_run) / sizeof(of_run[0]); i++)
        sample->values[of_run[i].metric] = known(mean_of(run, of_run[i].slot));
    if (run->batch_count == 1)
        return;
    sample->values[WM_REPEAT_TIME] = run->report->result.run_seconds;
    sample->values[WM_REPEAT_MEMORY] = run->report->result.run_memory_bytes;
    sample->low[WM_REPEAT_MEMORY].known = sample->high[WM_REPEAT_MEMORY].known = false;
}

static double shell_mean(const struct wm_repeat *repeat, enum wm_repeat_metric metric)
{
    return metric == WM_REPEAT_MEMORY ? 0
                                      : wm_repeat_summary(&repeat->shell, metric).of.mean;
}

static void subtract(struct wm_known *value, double shell)
{
    value->number = fmax(value->number - shell, 0);
}

static int add_times(struct wm_repeat_one *one, const struct wm_repeat_run *run,
                     const struct wm_repeat_sample *sample, double shell_s)
{
    for (size_t i = 0; i < sample->runs; i++) {
        bool is_batch = run->batch_count > 1;
        if (wm_array_reserve(&one->times, one->time_count, &one->time_room,
                             sizeof(*one->times)) < 0 ||
            wm_array_reserve(&one->exit_codes, one->time_count, &one->exit_room,
                             sizeof(*one->exit_codes)) < 0)
            return WM_ENOMEM;
        one->exit_codes[one->time_count] =
            is_batch ? run->batch[i].exit_code : run->exit_code;
        one->times[one->time_count++] = is_batch ? fmax(run->batch[i].time_s - shell_s, 0)
                                                 : sample->values[WM_REPEAT_TIME].number;
    }
    return WM_OK;
}

/* Says once of each command that it leaves processes behind, which take turns with the next
 * runs; and of all together what perf did not count. */
static bool note_run(struct wm_repeat *repeat, struct wm_repeat_one *one,
                     const struct wm_report *report)
{
    if (report->result.events_note[0] && !repeat->has_events_note) {
        repeat->has_events_note = true;
        if (wm_remarks_add(&repeat->remarks, "events: %s", report->result.events_note) < 0)
            return false;
    }
    if (one->has_survivors || !report->result.survivors_note[0])
        return true;
    one->has_survivors = true;
    return wm_remarks_add(&repeat->remarks, "%s: %s", one->name,
                          report->result.survivors_note) == WM_OK;
}

int wm_repeat_add_run(struct wm_repeat *repeat, size_t command,
                      const struct wm_repeat_run *run, struct wm_error *err)
{
    bool is_shell = command == WM_REPEAT_SHELL;
    struct wm_repeat_one *one = is_shell ? &repeat->shell : &repeat->commands[command];
    struct wm_repeat_sample sample = {
        .runs = run->batch_count > 0 ? run->batch_count : 1,
        .load = wm_compare_load(run->report),
    };
    bool is_taken = true;

    repeat->cores =
        (struct wm_known) { run->report->run.core_count > 0, run->report->run.core_count };
    for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS && is_taken; m++)
        is_taken = take_figure(one, run->report, m, &sample);
    if (run->batch_count > 0)
        take_runs(run, &sample);
    is_taken = is_taken && note_run(repeat, one, run->report);
    for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS && !is_shell; m++) {
        double shell = shell_mean(repeat, m);
        subtract(&sample.values[m], shell);
        subtract(&sample.low[m], shell);
        subtract(&sample.high[m], shell);
    }
    if (!is_taken ||
        wm_array_reserve(&one->samples, one->sample_count, &one->sample_room,
                         sizeof(sample)) < 0 ||
        add_times(one, run, &sample, is_shell ? 0 : shell_mean(repeat, WM_REPEAT_TIME)) < 0)
        return wm_fail_memory(err, "the runs");
    one->samples[one->sample_count++] = sample;
    return WM_OK;
}

size_t wm_repeat_runs(const struct wm_repeat_one *one)
{
    return one->sample_count > 0 ? one->samples[one->sample_count - 1].runs : 1;
}

/* Of the devices of one kind; 0: none has energy. */
static double longest_period_s(const struct wm_report *report, enum wm_report_kind kind)
{
    struct wm_report_device device;
    double longest_s = 0;

    for (size_t i = 0; wm_report_device(report, kind, i, &device) == WM_OK; i++)
        longest_s = fmax(longest_s, device.period_s);
    return longest_s;
}

size_t wm_repeat_batch_size(const struct wm_repeat_run *run)
{
    double period_s = fmax(longest_period_s(run->report, WM_REPORT_GPU),
                           longest_period_s(run->report, WM_REPORT_DEVICE));
    double runs = run->batch_count > 0 ? (double)run->batch_count : 1;
    struct wm_report_figure time;

    if (wm_report_figure(run->report, NULL, "time", &time) < 0 || time.value <= 0)
        return 1;
    double needed = ceil(BATCH_PERIODS * period_s / (time.value / runs));
    return needed > WM_TRACKER_BATCH_MAX ? WM_TRACKER_BATCH_MAX : (size_t)fmax(needed, 1);
}

int wm_repeat_note(struct wm_repeat *repeat, const char *note, struct wm_error *err)
{
    if (wm_remarks_add(&repeat->remarks, "%s", note) < 0)
        return wm_fail_memory(err, "the runs");
    return WM_OK;
}

int wm_repeat_stopped(struct wm_repeat *repeat, size_t runs, size_t planned,
                      struct wm_error *err)
{
    repeat->is_stopped = true;
    if (runs > 0 && wm_remarks_add(&repeat->remarks, "stopped after %zu of %zu runs", runs,
                                   planned) < 0)
        return wm_fail_memory(err, "the runs");
    return WM_OK;
}

/* The values of all samples, which are the caller's, with room for as many behind them;
 * NULL where one lacks it. */
static double *values_of(const struct wm_repeat_one *one, enum wm_repeat_metric metric)
{
    double *values = calloc(2 * one->sample_count + 1, sizeof(*values));

    for (size_t i = 0; values && i < one->sample_count; i++) {
        if (!one->samples[i].values[metric].known) {
            free(values);
            return NULL;
        }
        values[i] = one->samples[i].values[metric].number;
    }
    return values;
}

/* The mean of the intervals of the single runs, for too few of them. */
static void average_intervals(const struct wm_repeat_one *one, enum wm_repeat_metric metric,
                              struct wm_repeat_summary *sum)
{
    for (size_t i = 0; i < one->sample_count; i++) {
        if (!one->samples[i].low[metric].known)
            return;
    }
    for (size_t i = 0; i < one->sample_count; i++) {
        sum->low += one->samples[i].low[metric].number / (double)one->sample_count;
        sum->high += one->samples[i].high[metric].number / (double)one->sample_count;
    }
    sum->has_interval = true;
}

/* `sorted` are the values. */
static void find_interval(const struct wm_repeat_one *one, enum wm_repeat_metric metric,
                          const double *sorted, struct wm_repeat_summary *sum)
{
    double median = sum->of.median, low, high;

    if (!wm_runs_interval(sorted, sum->of.count, WM_RUNS_OUTSIDE, &low, &high)) {
        if (kinds[metric].unit == WM_UNIT_JOULES)
            average_intervals(one, metric, sum);
        return;
    }
    double systematic = one->systematic[metric] * median;
    sum->has_interval = true;
    sum->low = fmax(median - hypot(median - low, systematic), 0);
    sum->high = median + hypot(high - median, systematic);
}

/* The runs of a batch are one sample, but each has its time. */
static void spread_times(const struct wm_repeat_one *one, struct wm_runs *sum)
{
    double *times = calloc(one->time_count + 1, sizeof(*times));

    if (!times)
        return;
    memcpy(times, one->times, one->time_count * sizeof(*times));
    double median = sum->median;
    *sum = wm_runs_sum_up(times, one->time_count);
    sum->median = median;
    free(times);
}

struct wm_repeat_summary wm_repeat_summary(const struct wm_repeat_one *one,
                                           enum wm_repeat_metric metric)
{
    struct wm_repeat_summary sum = { 0 };
    double *values = values_of(one, metric);

    if (!values || one->sample_count == 0) {
        free(values);
        return sum;
    }
    sum.of = wm_runs_sum_up(values, one->sample_count);
    find_interval(one, metric, values, &sum);
    free(values);
    if (metric == WM_REPEAT_TIME && one->time_count > one->sample_count)
        spread_times(one, &sum.of);
    return sum;
}

struct wm_runs_outliers wm_repeat_outliers(const struct wm_repeat_one *one)
{
    double *values = values_of(one, WM_REPEAT_TIME);
    struct wm_runs_outliers outliers = { 0 };

    if (values)
        outliers = wm_runs_outliers(values, one->sample_count, values + one->sample_count);
    free(values);
    return outliers;
}

/* In the median of all runs. */
static double load_of(const struct wm_repeat *repeat)
{
    size_t room = 0, count = 0;
    double load = 0;

    for (size_t i = 0; i < repeat->count; i++)
        room += repeat->commands[i].sample_count;
    double *loads = calloc(room + 1, sizeof(*loads));
    for (size_t i = 0; loads && i < repeat->count; i++) {
        const struct wm_repeat_one *one = &repeat->commands[i];
        for (size_t k = 0; k < one->sample_count; k++) {
            if (!isnan(one->samples[k].load))
                loads[count++] = one->samples[k].load;
        }
    }
    if (loads)
        load = wm_runs_sum_up(loads, count).median;
    free(loads);
    return load;
}

bool wm_repeat_load_note(const struct wm_repeat *repeat, char ret_note[WM_REPEAT_NOTE_SIZE])
{
    double load = load_of(repeat);

    if (!wm_compare_is_load(load, repeat->cores))
        return false;
    snprintf(ret_note, WM_REPEAT_NOTE_SIZE,
             "other programs kept %.1f of %.0f cores busy during the runs", load,
             repeat->cores.number);
    return true;
}

struct wm_runs_ratio wm_repeat_ratio(const struct wm_repeat *repeat, size_t command,
                                     enum wm_repeat_metric metric)
{
    const struct wm_repeat_one *one = &repeat->commands[command];
    const struct wm_repeat_one *other = &repeat->commands[repeat->options.reference];
    const struct wm_runs_test test = { wm_compare_headlines(repeat->count - 1),
                                       repeat->options.threshold };
    size_t pairs =
        one->sample_count < other->sample_count ? one->sample_count : other->sample_count;
    double *values = values_of(one, metric), *reference = values_of(other, metric);
    struct wm_runs_ratio ratio = { .count = pairs, .why = "it is not known of all runs" };

    if (values && reference)
        ratio = wm_runs_paired(reference, values, pairs, &test);
    free(values);
    free(reference);
    return ratio;
}

enum wm_origin wm_repeat_ratio_origin(const struct wm_repeat *repeat, size_t command,
                                      enum wm_repeat_metric metric)
{
    enum wm_origin own = repeat->commands[command].origin[metric];

    return own != WM_MEASURED ? own
                              : repeat->commands[repeat->options.reference].origin[metric];
}

/* Each look has its part of the 5 % by which all of them together may be wrong: 6, 9, 14,
 * 21, 32, 48, 72, 108, 162 and 243 rounds. */
enum { LOOKS = 10, FIRST_LOOK = WM_RUNS_LEAST };

size_t wm_repeat_next_look(size_t rounds)
{
    size_t look = FIRST_LOOK;

    for (int i = 0; i < LOOKS; i++) {
        if (look > rounds)
            return look;
        look += (look + 1) / 2;
    }
    return 0;
}

static bool is_narrow(const struct wm_repeat_one *one, enum wm_repeat_metric metric,
                      double ratio)
{
    double *values = values_of(one, metric), low, high;
    bool is_narrow = false;

    if (!values)
        return metric != WM_REPEAT_TIME; /* it is known of no run */
    double median = wm_runs_sum_up(values, one->sample_count).median;
    if (wm_runs_interval(values, one->sample_count, WM_RUNS_OUTSIDE / LOOKS, &low, &high))
        is_narrow = high - median <= ratio * median && median - low <= ratio * median;
    free(values);
    return is_narrow;
}

bool wm_repeat_is_narrow(const struct wm_repeat *repeat, double ratio)
{
    for (size_t i = 0; i < repeat->count; i++) {
        if (!is_narrow(&repeat->commands[i], WM_REPEAT_TIME, ratio) ||
            !is_narrow(&repeat->commands[i], WM_REPEAT_ENERGY, ratio))
            return false;
    }
    return true;
}
