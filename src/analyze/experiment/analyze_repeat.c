/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_repeat.c - keeps the runs of commands and sums them up. */
#include "analyze/experiment/analyze_repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_welch.h"
#include "base/base_array.h"

#define DEFAULT_THRESHOLD 0.01

/* What is shorter is run in batches. */
#define BATCH_PERIODS 10

/* Time, CPU time, energy and memory are compared, and are to be right together: a quarter
 * of 5 % for each, of which half lies above this in a normal distribution. */
#define Z_OF_METRIC 2.498

static const struct wm_repeat_kind kinds[] = {
    [WM_REPEAT_TIME] = { "time", "Time", "time", WM_UNIT_SECONDS, true },
    [WM_REPEAT_USER] = { "user_time", "User", "user time", WM_UNIT_SECONDS, false },
    [WM_REPEAT_SYSTEM] = { "system_time", "System", "system time", WM_UNIT_SECONDS, false },
    [WM_REPEAT_CPU_TIME] = { "cpu_time", "CPU time", "CPU time", WM_UNIT_SECONDS, true },
    [WM_REPEAT_ENERGY] = { "energy", "Energy", "energy", WM_UNIT_JOULES, true },
    [WM_REPEAT_CPU_ENERGY] = { "cpu_energy", "CPU energy", "CPU energy", WM_UNIT_JOULES,
                               false },
    [WM_REPEAT_GPU_ENERGY] = { "gpu_energy", "GPU energy", "GPU energy", WM_UNIT_JOULES,
                               false },
    [WM_REPEAT_MEMORY] = { "memory", "Memory", "memory", WM_UNIT_BYTES, true },
};

const struct wm_repeat_kind *wm_repeat_kind(enum wm_repeat_metric metric)
{
    return &kinds[metric];
}

int wm_repeat_new(const struct wm_repeat_options *options, struct wm_repeat **ret_repeat,
                  struct wm_error *err)
{
    struct wm_repeat *repeat = calloc(1, sizeof(*repeat));

    if (!repeat)
        return wm_fail_memory(err, "the runs");
    repeat->options = *options;
    if (options->threshold <= 0)
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

/* The figures that each run has. A single one has its time and memory in its report. */
static void take_runs(const struct wm_repeat_run *run, struct wm_repeat_sample *sample)
{
    double time = 0, user = 0, system = 0, memory = 0, runs = (double)run->batch_count;

    for (size_t i = 0; i < run->batch_count; i++) {
        time += run->batch[i].time_s;
        user += run->batch[i].user_s;
        system += run->batch[i].system_s;
        memory = fmax(memory, run->batch[i].max_memory_bytes);
    }
    sample->values[WM_REPEAT_USER] = known(user / runs);
    sample->values[WM_REPEAT_SYSTEM] = known(system / runs);
    if (run->batch_count == 1)
        return;
    sample->values[WM_REPEAT_TIME] = known(time / runs);
    sample->values[WM_REPEAT_MEMORY] = (struct wm_known) { memory > 0, memory };
    sample->low[WM_REPEAT_MEMORY].known = sample->high[WM_REPEAT_MEMORY].known = false;
}

static double shell_mean(const struct wm_repeat *repeat, enum wm_repeat_metric metric)
{
    return metric == WM_REPEAT_MEMORY ? 0 : wm_repeat_summary(&repeat->shell, metric).mean;
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
 * runs. */
static bool note_survivors(struct wm_repeat *repeat, struct wm_repeat_one *one,
                           const struct wm_report *report)
{
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
    struct wm_repeat_sample sample = { .runs =
                                           run->batch_count > 0 ? run->batch_count : 1 };
    bool is_taken = true;

    for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS && is_taken; m++)
        is_taken = take_figure(one, run->report, m, &sample);
    if (run->batch_count > 0)
        take_runs(run, &sample);
    is_taken = is_taken && note_survivors(repeat, one, run->report);
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the values. */
static struct wm_repeat_summary sum_up(double *values, size_t count)
{
    struct wm_repeat_summary sum = { .count = count };
    double squares = 0;

    if (count == 0)
        return sum;
    qsort(values, count, sizeof(*values), by_value);
    for (size_t i = 0; i < count; i++)
        sum.mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum.mean) * (values[i] - sum.mean);
    sum.std = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    sum.median = (values[count / 2] + values[(count - 1) / 2]) / 2;
    sum.min = values[0];
    sum.max = values[count - 1];
    return sum;
}

/* Of all samples; none where one lacks it. */
static struct wm_repeat_summary sum_up_samples(const struct wm_repeat_one *one,
                                               enum wm_repeat_metric metric)
{
    struct wm_repeat_summary sum = { 0 };
    double *values = calloc(one->sample_count + 1, sizeof(*values));
    size_t count = 0;

    for (size_t i = 0; values && i < one->sample_count; i++) {
        if (one->samples[i].values[metric].known)
            values[count++] = one->samples[i].values[metric].number;
    }
    if (count > 0 && count == one->sample_count)
        sum = sum_up(values, count);
    free(values);
    return sum;
}

/* The intervals of the single runs, for too few of them. */
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

static void find_interval(const struct wm_repeat_one *one, enum wm_repeat_metric metric,
                          struct wm_repeat_summary *sum)
{
    double count = (double)sum->count;

    if (sum->count < WM_REPEAT_LEAST_PAIRS) {
        if (kinds[metric].unit == WM_UNIT_JOULES)
            average_intervals(one, metric, sum);
        return;
    }
    double random = wm_student_95(count - 1) * sum->std / sqrt(count);
    double off = hypot(random, one->systematic[metric] * sum->mean);
    sum->has_interval = true;
    sum->low = fmax(sum->mean - off, 0);
    sum->high = sum->mean + off;
}

struct wm_repeat_summary wm_repeat_summary(const struct wm_repeat_one *one,
                                           enum wm_repeat_metric metric)
{
    struct wm_repeat_summary sum = sum_up_samples(one, metric);

    if (sum.count == 0)
        return sum;
    find_interval(one, metric, &sum);
    if (metric != WM_REPEAT_TIME || one->time_count == one->sample_count)
        return sum;
    double *times = calloc(one->time_count, sizeof(*times));
    if (!times)
        return sum;
    memcpy(times, one->times, one->time_count * sizeof(*times));
    struct wm_repeat_summary all = sum_up(times, one->time_count);
    free(times);
    all.has_interval = sum.has_interval;
    all.low = sum.low;
    all.high = sum.high;
    return all;
}

/* Student's t from the quantile of the normal distribution (Abramowitz and Stegun, 26.7.5);
 * within 1 % from 5 degrees of freedom on. */
static double student(double z, double df)
{
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

    return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
}

/* So many times the median distance from the median (a modified Z-score of 10). */
#define FAR_OFF 14.826

struct wm_repeat_outliers wm_repeat_outliers(const struct wm_repeat_one *one)
{
    const struct wm_repeat_summary sum = sum_up_samples(one, WM_REPEAT_TIME);
    struct wm_repeat_outliers outliers = { 0 };
    double *distances = calloc(one->sample_count + 1, sizeof(*distances));

    for (size_t i = 0; distances && i < sum.count; i++)
        distances[i] = fabs(one->samples[i].values[WM_REPEAT_TIME].number - sum.median);
    double most = distances ? FAR_OFF * sum_up(distances, sum.count).median : 0;
    free(distances);
    for (size_t i = 0; i < sum.count && sum.count >= WM_REPEAT_LEAST_PAIRS && most > 0;
         i++) {
        double off = one->samples[i].values[WM_REPEAT_TIME].number - sum.median;
        outliers.count += fabs(off) > most;
        outliers.is_first |= i == 0 && off > most;
    }
    return outliers;
}

/* The logarithms of the ratios of the pairs; false: a value is missing or 0. */
static bool pair_logs(const struct wm_repeat_one *one, const struct wm_repeat_one *other,
                      enum wm_repeat_metric metric, size_t pairs, double *ret_logs)
{
    for (size_t i = 0; i < pairs; i++) {
        struct wm_known a = one->samples[i].values[metric];
        struct wm_known b = other->samples[i].values[metric];
        if (!a.known || !b.known || a.number <= 0 || b.number <= 0)
            return false;
        ret_logs[i] = log(a.number / b.number);
    }
    return pairs > 0;
}

/* No difference is claimed where the interval has a ratio that does not matter. */
static enum wm_repeat_verdict judge(const struct wm_repeat_ratio *ratio, double threshold)
{
    if (ratio->low > 1 && ratio->ratio > 1 + threshold)
        return WM_REPEAT_MORE;
    if (ratio->high < 1 && ratio->ratio < 1 - threshold)
        return WM_REPEAT_LESS;
    return WM_REPEAT_SAME;
}

struct wm_repeat_ratio wm_repeat_ratio(const struct wm_repeat *repeat, size_t command,
                                       enum wm_repeat_metric metric)
{
    const struct wm_repeat_one *one = &repeat->commands[command];
    const struct wm_repeat_one *other = &repeat->commands[repeat->options.reference];
    size_t pairs =
        one->sample_count < other->sample_count ? one->sample_count : other->sample_count;
    struct wm_repeat_ratio ratio = { .pairs = pairs };

    double *logs = calloc(pairs + 1, sizeof(*logs));
    if (!logs || !pair_logs(one, other, metric, pairs, logs)) {
        free(logs);
        return ratio;
    }
    struct wm_repeat_summary sum = sum_up(logs, pairs);
    free(logs);
    ratio.ratio = exp(sum.mean);
    if (pairs < WM_REPEAT_LEAST_PAIRS)
        return ratio;
    double off = student(Z_OF_METRIC, (double)pairs - 1) * sum.std / sqrt((double)pairs);
    ratio.low = exp(sum.mean - off);
    ratio.high = exp(sum.mean + off);
    ratio.verdict = judge(&ratio, repeat->options.threshold);
    return ratio;
}

/* Each look has its part of the 5 % by which all of them together may be wrong: 6, 9, 14,
 * 21, 32, 48, 72, 108, 162 and 243 rounds. */
enum { LOOKS = 10, FIRST_LOOK = WM_REPEAT_LEAST_PAIRS };

/* 0.25 % of a normal distribution lie above it. */
#define Z_OF_LOOK 2.807

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
    struct wm_repeat_summary sum = sum_up_samples(one, metric);
    double count = (double)sum.count;

    if (sum.count == 0)
        return metric != WM_REPEAT_TIME; /* it is known of no run */
    if (sum.count < WM_REPEAT_LEAST_PAIRS)
        return false;
    return student(Z_OF_LOOK, count - 1) * sum.std / sqrt(count) <= ratio * sum.mean;
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
