/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coverage.c - how often the true joules lie within what is stated, and whether that
 * is wider than it has to be, class by class: sensors whose gain, offset and window are
 * drawn for each board, loads of all rhythms, runs of 0.3 to 10 s; in virtual time.
 *
 * WM_RUNS says how many runs of each class, 200 unless it does; `make bench-truth` takes
 * 1,000. WM_SEED draws other boards and loads than those with which constants were chosen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/energy/analyze_uncertainty.h"
#include "made_sensor.h"
#include "record/record_channel.h"
#include "test.h"

enum load_kind {
    CONSTANT, /* with nothing to do, or busy all the time */
    CHANGING, /* busy all the time, at a power that changes every 20 ms */
    AT,       /* half a period of the sensor, one, or two */
    NEAR,     /* within 3 % of those */
    FAST,     /* an eighth to a half */
    MIDDLE,   /* up to four, */
    SLOW,     /* and up to twenty */
    GAPS,     /* busy and idle for some milliseconds, at random */
    LOADS,
};

static const char *const load_names[LOADS] = {
    "constant",  "busy, changing", "in step",    "nearly in step",
    "T/8 - T/2", "T/2 - 4 T",      "4 T - 20 T", "at random",
};

static const struct {
    double least, most; /* s */
} lengths[] = { { 0.3, 1 }, { 1, 3 }, { 3, 10 } };

#define LENGTHS ARRAY_LEN(lengths)

static const char *const length_names[LENGTHS] = { "0.3-1 s", "1-3 s", "3-10 s" };

/* 95 % are to be inside, which of 200 runs are 92 % or more with near certainty. */
#define MOST_RUNS 1000
#define ENOUGH 200.0
#define HELD 0.95
#define MOST_WIDE 1.5

/* Of each reading of power, of one board. */
#define MOST_NOISE 0.02

/* Of the hundred classes a few are beyond by chance. */
#define MOST_BAD 3

/* What is drawn for each board lies between two values. */
struct span {
    double least, most;
};

static double drawn(struct span span)
{
    return uniform(span.least, span.most);
}

struct build {
    const char *name, *source, *model, *detail;
    enum wm_device_kind kind;
    bool counts, has_power;
    size_t together; /* so many lengths of runs in which its loads look alike */
    struct span period, window, latch, busy_period; /* s */
    double rhythm, most_watts, range;
};

static const struct build builds[] = {
    { "H100",
      "nvml",
      "NVIDIA H100 80GB HBM3",
      NULL,
      WM_DEVICE_GPU,
      true,
      true,
      1,
      { 0.1, 0.101 },
      { 0.022, 0.025 },
      { 0, 0 },
      { 1.0 / 6, 1 },
      0.1,
      650,
      700 },
    { "A100, power",
      "nvml",
      "NVIDIA A100-SXM4-40GB",
      NULL,
      WM_DEVICE_GPU,
      false,
      true,
      1,
      { 0.1, 0.101 },
      { 0.018, 0.025 },
      { 0, 0 },
      { 0.2, 1 },
      0.1,
      390,
      400 },
    { "mean of 1 s",
      "nvml",
      "NVIDIA L40S",
      "power by nvmlDeviceGetPowerUsage",
      WM_DEVICE_GPU,
      false,
      true,
      0,
      { 0.1, 0.1 },
      { 1, 1 },
      { 0.1, 0.1 },
      { 0.2, 0.2 },
      0.1,
      330,
      350 },
    { "whole window",
      "nvml",
      "NVIDIA GeForce RTX 3090",
      NULL,
      WM_DEVICE_GPU,
      true,
      true,
      0,
      { 0.1, 0.1 },
      { 0.1, 0.1 },
      { 0, 0 },
      { 0.2, 0.2 },
      0.1,
      330,
      350 },
    { "0.7 s",
      "rapl",
      "Intel(R) Xeon(R)",
      NULL,
      WM_DEVICE_CPU,
      true,
      false,
      LENGTHS,
      { 0.5, 0.9 },
      { 0.9, 0.9 },
      { 0, 0 },
      { 0, 0 },
      0.7,
      350,
      0 },
};

#define BUILDS ARRAY_LEN(builds)

static void make_square(struct load *load, double period, double from, double until,
                        const double *watts)
{
    double duty = uniform(0.05, 0.95);

    for (; from < until; from += period) {
        add_power(load, from, watts[1]);
        add_power(load, from + duty * period, watts[0]);
    }
}

static double off_step(double low, double high)
{
    for (;;) {
        double times = spread_out(low, high);
        if (fabs(times / 0.5 - 1) > 0.03 && fabs(times - 1) > 0.03 &&
            fabs(times / 2 - 1) > 0.03)
            return times;
    }
}

/* The period of a square wave, in those of the sensor. */
static double times_of(enum load_kind kind)
{
    static const double steps[] = { 0.5, 1, 2 };
    double step = steps[(size_t)uniform(0, ARRAY_LEN(steps))];

    switch (kind) {
    case AT:
        return step;
    case NEAR:
        return step * (1 + uniform(-0.03, 0.03));
    case FAST:
        return off_step(0.125, 0.5);
    case MIDDLE:
        return off_step(0.5, 4);
    default:
        return off_step(4, 20);
    }
}

static void fill_load(struct load *load, enum load_kind kind, double rhythm, double from,
                      double until, const double *watts)
{
    double dwell = spread_out(0.002, 0.02), duty = uniform(0.05, 0.95);

    switch (kind) {
    case CONSTANT:
        add_power(load, from, watts[uniform(0, 1) < 0.8]);
        break;
    case CHANGING:
        for (; from < until; from += 0.02)
            add_power(load, from, watts[1] * uniform(0.7, 1));
        break;
    case GAPS:
        for (bool busy = false; from < until; busy = !busy) {
            add_power(load, from, watts[busy]);
            from -= 2 * dwell * (busy ? duty : 1 - duty) * log(1 - uniform(0, 1));
        }
        break;
    default:
        make_square(load, rhythm * times_of(kind), from, until, watts);
    }
}

/* One half of all loads begin and end with the run, the others have been there before. */
static double make_load(struct load *load, enum load_kind kind, const struct build *build,
                        double period, double length)
{
    double rhythm = build->rhythm < 0.5 ? period : build->rhythm;
    double busy = uniform(0.4, 1) * build->most_watts, idle = busy / spread_out(1.2, 10);
    const double watts[2] = { idle, busy };
    bool is_run = uniform(0, 1) < 0.5;

    load->count = 0;
    add_power(load, -20, idle);
    fill_load(load, kind, rhythm, is_run ? 0 : -3 - 20 * rhythm * uniform(0, 1), length + 2,
              watts);
    if (is_run) {
        while (load->from[load->count - 1] >= length)
            load->count--;
        add_power(load, length, idle);
    }
    return kind == CHANGING ? 0.65 * busy : (idle + busy) / 2;
}

static struct wm_sensor sensor_of(const struct build *build, const char *metric)
{
    struct wm_channel channel = {
        .source = build->source,
        .device = "d",
        .label = "d0",
        .model = build->model,
        .metric = metric,
        .unit = strcmp(metric, "energy") == 0 ? "J" : "W",
        .device_kind = build->kind,
        .kind = strcmp(metric, "energy") == 0 ? WM_COUNTER : WM_GAUGE,
        .period_ns = build->kind == WM_DEVICE_CPU ? 976563 : 100000000,
    };

    channel.sensor = wm_channel_old_sensor(&channel, build->detail);
    struct wm_sensor sensor = wm_sensor_of(&channel);
    sensor.range = build->range;
    return sensor;
}

struct outcome {
    bool known, holds;
    double error, width; /* relative to the figure; the latter: half of what is stated */
};

static struct device make_device(const struct build *build, const struct load *load,
                                 double busy_watts, double period,
                                 const struct wm_sensor *sensor)
{
    struct device device = {
        .load = load,
        .busy_watts = busy_watts,
        .period = period,
        .window = fmin(drawn(build->window), build->latch.most > 0 ? 1 : period),
        .latch = build->latch.most > 0 ? drawn(build->latch) : period,
        .busy_period = drawn(build->busy_period),
        .phase = period * uniform(-1, 0),
        .busy_phase = uniform(-1, 0),
        .gain = 1 + normal(sensor->gain / 2),
        .offset = normal(sensor->offset / 2),
        .noise = uniform(0, MOST_NOISE),
    };

    device.counted_until = latched(-2, period, device.phase);
    return device;
}

static void add_tick(struct wm_energy *energy, const struct build *build,
                     struct device *device, double now)
{
    struct wm_reading counter = reading(build->counts ? counter_at(device, now) : 0, now);
    struct wm_reading power = reading(build->has_power ? power_at(device, now) : 0, now);

    if (build->kind == WM_DEVICE_GPU)
        wm_energy_set_busy(energy, (struct wm_known) { true, busy_at(device, now) });
    wm_energy_add(energy, counter.when_ns, build->counts ? &counter : NULL,
                  build->has_power ? &power : NULL);
}

static struct outcome measure(const struct build *build, enum load_kind kind,
                              size_t length_class)
{
    static struct load load;
    double period = drawn(build->period), tick = spread_out(0.01, 0.1);
    double length = spread_out(lengths[length_class].least, lengths[length_class].most);
    struct wm_energy energy = {
        .counter_sensor = sensor_of(build, "energy"),
        .power_sensor = sensor_of(build, "power"),
    };
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;
    double busy_watts = make_load(&load, kind, build, period, length);
    struct device device =
        make_device(build, &load, busy_watts, period, &energy.counter_sensor);

    for (double when = 0; when < length; when += tick * uniform(0.97, 1.03))
        add_tick(&energy, build, &device, when);
    add_tick(&energy, build, &device, length);
    wm_energy_result(&energy, &result);
    wm_uncertainty_find(&energy, &result, &uncertainty);

    double truth = joules_until(&load, length) - joules_until(&load, 0);
    if (result.method == WM_ENERGY_UNKNOWN || result.joules <= 0)
        return (struct outcome) { 0 };
    const struct wm_between range = wm_uncertainty_between(
        result.joules, uncertainty.systematic, uncertainty.below, uncertainty.above);
    return (struct outcome) {
        .known = true,
        .holds = truth >= range.low && truth <= range.high,
        .error = (result.joules - truth) / result.joules,
        .width = (range.high - range.low) / 2 / result.joules,
    };
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The runs of a class, or of several together. */
struct class
{
    size_t runs, held;
    double errors;
    double off[MOST_RUNS * LOADS], widths[MOST_RUNS * LOADS];
};

static void add_outcome(struct class *class, const struct outcome *outcome)
{
    class->held += outcome->holds;
    class->errors += outcome->error;
    class->off[class->runs] = fabs(outcome->error);
    class->widths[class->runs] = outcome->width;
    class->runs++;
}

/* What is stated is wide where it is more than one and a half times what holds for 95 % of
 * the runs; of few runs neither can be said as exactly. */
static bool print_class(struct class *class, const char *sensor, const char *load,
                        const char *length, bool is_alone)
{
    double runs = (double)class->runs;

    qsort(class->off, class->runs, sizeof(*class->off), compare_numbers);
    qsort(class->widths, class->runs, sizeof(*class->widths), compare_numbers);
    double needed = class->off[class->runs * 95 / 100];
    double median = class->widths[class->runs / 2];
    double by_chance = 2 * sqrt(HELD * (1 - HELD) / fmin(runs, ENOUGH));
    bool is_low = (double)class->held < (HELD - by_chance) * runs;
    bool is_wide = median > (MOST_WIDE + (runs < 2 * ENOUGH ? 0.25 : 0)) * needed;
    print_message("  %-13s %-17s %-8s %5zu %6.1f %% %+6.1f %% %6.1f %% %6.1f %%%s%s%s\n",
                  sensor, load, length, class->runs, 100.0 * (double)class->held / runs,
                  100 * class->errors / runs, 100 * median, 100 * needed,
                  is_low ? " TOO FEW" : "", is_alone && is_wide ? " TOO WIDE" : "",
                  is_alone ? "" : " (its width with the others')");
    return !(is_low || (is_alone && is_wide));
}

static size_t runs_of_each(void)
{
    const char *text = getenv("WM_RUNS");
    size_t runs = text ? (size_t)atol(text) : 200;

    return runs < MOST_RUNS ? runs : MOST_RUNS;
}

/* Of a load that is in step a short run has the same readings and the same utilization as
 * of another, and so has a counter with a few steps in a run and no utilization beside it:
 * what is stated of these is as wide as it has to be for all of them together. */
static size_t judge(const struct build *build, size_t length)
{
    static struct class class, together;
    size_t bad = 0;

    memset(&together, 0, sizeof(together));
    for (size_t k = 0; k < LOADS; k++) {
        bool is_partly = k != CONSTANT && k != CHANGING;
        bool is_alone = length >= build->together || (!is_partly && build->has_power);
        memset(&class, 0, sizeof(class));
        for (size_t i = 0; i < runs_of_each(); i++) {
            struct outcome outcome = measure(build, (enum load_kind)k, length);
            if (!outcome.known)
                continue;
            add_outcome(&class, &outcome);
            if (!is_alone)
                add_outcome(&together, &outcome);
        }
        bad += !print_class(&class, build->name, load_names[k], length_names[length],
                            is_alone);
    }
    if (together.runs > 0)
        bad += !print_class(&together, build->name, "- all of these", length_names[length],
                            true);
    return bad;
}

static void test_classes(void **state)
{
    const char *text = getenv("WM_SEED");
    size_t bad = 0;

    (void)state;
    seed = text ? (uint64_t)atol(text) * 0x9e3779b97f4a7c15 | 1 : seed;
    print_message("  sensor        load              length    runs   inside    bias   "
                  "width   needed\n");
    for (size_t b = 0; b < BUILDS; b++) {
        for (size_t n = 0; n < LENGTHS; n++)
            bad += judge(&builds[b], n);
    }
    print_message("  %zu classes are not as they should be\n", bad);
    assert_true(bad <= MOST_BAD);
}

/* Of each second reading the sensor sees 20 ms of work, which is all there is in 200 ms: it
 * tells twice what is true, and has to say so. */
static void test_twice_the_period(void **state)
{
    static struct load load;
    const struct build *build = &builds[0];
    const double watts[2] = { 60, 600 };
    struct wm_energy energy = {
        .counter_sensor = sensor_of(build, "energy"),
        .power_sensor = sensor_of(build, "power"),
    };
    struct device device = {
        .load = &load,
        .busy_watts = 300,
        .period = 0.1,
        .window = 0.025,
        .latch = 0.1,
        .busy_period = 0.2,
        .phase = -0.075,
        .gain = 1,
    };
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        add_power(&load, -20 + 0.2 * (double)i, watts[1]);
        add_power(&load, -20 + 0.2 * (double)i + 0.02, watts[0]);
    }
    device.counted_until = latched(-2, device.period, device.phase);
    for (size_t i = 0; i <= 480; i++)
        add_tick(&energy, build, &device, 0.013 * (double)i);
    wm_energy_result(&energy, &result);
    wm_uncertainty_find(&energy, &result, &uncertainty);
    double truth = joules_until(&load, 480 * 0.013) - joules_until(&load, 0);
    const struct wm_between range = wm_uncertainty_between(
        result.joules, uncertainty.systematic, uncertainty.below, uncertainty.above);
    print_message("  %.0f J, from %.0f to %.0f; true are %.0f\n", result.joules, range.low,
                  range.high, truth);
    assert_true(result.joules > 2 * truth);
    assert_true(range.low <= truth && range.low > 0.5 * truth);
    assert_true(range.high < 1.2 * result.joules);
    assert_true(uncertainty.unseen > 0.1 * result.joules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_twice_the_period),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
