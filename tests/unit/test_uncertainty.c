/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_uncertainty.c - whether the true joules lie within what is stated, 95 times of
 * 100, and whether what is stated is no wider than it has to be: sensors as they are
 * published, made-up loads, and many runs with random starts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/energy/analyze_uncertainty.h"
#include "made_sensor.h"
#include "test.h"
#include "test_sensor.h"

enum load_kind {
    CONSTANT,
    RAMP,
    SQUARE_AT,   /* the period of the sensor, or half of it */
    SQUARE_NEAR, /* within some percent */
    SQUARE_OFF,
    BURSTS,    /* some, with idling between them */
    TELEGRAPH, /* on and off at random */
    RUN,       /* from the start of the run to its end, idling before */
    LOADS,
};

static const char *const load_names[LOADS] = {
    "constant", "ramp",   "square, in step", "square, nearly in step",
    "square",   "bursts", "telegraph",       "the run itself",
};

static void make_square(struct load *load, double period, double at, double until,
                        const double *watts)
{
    double duty = uniform(0.1, 0.9), from = at - period * uniform(0, 1);

    add_power(load, from - period, watts[0]);
    for (; from < until; from += period) {
        add_power(load, from, watts[1]);
        add_power(load, from + duty * period, watts[0]);
    }
}

/* From how many watts on the device is busy. */
static double make_load(struct load *load, enum load_kind kind, double period,
                        double length)
{
    double idle = uniform(40, 90), busy = uniform(150, 600);
    const double watts[2] = { idle, busy };
    double until = length + period, at = -0.4 - 4 * period;

    load->count = 0;
    switch (kind) {
    case CONSTANT:
        add_power(load, at, uniform(0, 1) < 0.2 ? idle : busy);
        break;
    case RAMP:
        for (int i = 0; i < 1000; i++)
            add_power(load, at + (until - at) * i / 1000, 150 + (busy - 150) * i / 1000);
        break;
    case SQUARE_AT:
        make_square(load, uniform(0, 1) < 0.7 ? period : period / 2, at, until, watts);
        break;
    case SQUARE_NEAR:
        make_square(load, period * (1 + uniform(-0.04, 0.04)), at, until, watts);
        break;
    case SQUARE_OFF:
        make_square(load, period * spread_out(0.08, 30), at, until, watts);
        break;
    case BURSTS:
        add_power(load, at, idle);
        for (at = length * uniform(0, 0.5); at < until; at += length * uniform(0.1, 1)) {
            add_power(load, at, busy);
            at += length * uniform(0.02, 0.4);
            add_power(load, at, idle);
        }
        break;
    case TELEGRAPH:
        for (double dwell = period * spread_out(0.2, 20); at < until;
             at -= dwell * log(1 - uniform(0, 1)))
            add_power(load, at, watts[load->count % 2]);
        break;
    default:
        add_power(load, at, idle);
        add_power(load, 0, busy);
        add_power(load, length, idle);
    }
    return idle + 10;
}

/* A sensor as it is built; how far it is off is drawn from what the table states. */
struct build {
    const char *name;
    struct wm_channel channel;
    bool is_usage; /* power by NVML's older call */
    bool counts, has_power;
    double period, window, latch; /* s; the last: how often power is renewed */
};

#define GPU(model_)                                                                        \
    {                                                                                      \
        .source = "nvml", .device = "g", .label = "gpu0", .model = model_,                 \
        .metric = "energy", .unit = "J", .device_kind = WM_DEVICE_GPU, .kind = WM_COUNTER, \
        .period_ns = 100000000                                                             \
    }

static const struct build builds[] = {
    { "H100, counter", GPU("NVIDIA H100 80GB HBM3"), false, true, true, 0.1, 0.025, 0.1 },
    { "A100, power", GPU("NVIDIA A100-SXM4-40GB"), false, false, true, 0.1, 0.025, 0.1 },
    { "V100, counter", GPU("Tesla V100-SXM2-16GB"), false, true, true, 0.02, 0.01, 0.02 },
    { "RTX 3090, counter", GPU("NVIDIA GeForce RTX 3090"), false, true, true, 0.1, 0.1,
      0.1 },
    { "RTX 3090, power", GPU("NVIDIA GeForce RTX 3090"), false, false, true, 0.1, 0.1,
      0.1 },
    { "L40S, mean of a second", GPU("NVIDIA L40S"), true, false, true, 1, 1, 0.1 },
    { "RAPL",
      { .source = "rapl",
        .device = "p",
        .label = "package0",
        .model = "Intel(R) Xeon(R)",
        .metric = "energy",
        .unit = "J",
        .device_kind = WM_DEVICE_CPU,
        .kind = WM_COUNTER,
        .period_ns = 976563 },
      false,
      true,
      false,
      0.000976563,
      0.000976563,
      0 },
    { "a latched counter",
      { .source = "drm",
        .device = "c",
        .label = "card0",
        .metric = "energy",
        .unit = "J",
        .device_kind = WM_DEVICE_GPU,
        .kind = WM_COUNTER,
        .period_ns = 100000000 },
      false,
      true,
      false,
      0.1,
      0.1,
      0 },
};

/* NVML's, at best. */
#define BUSY_PERIOD_S (1.0 / 6)

static void find_sensor(const struct wm_channel *channel, bool is_usage,
                        struct wm_sensor *ret_sensor)
{
    struct wm_channel described = *channel;

    described.sensor = test_sensor(channel, is_usage);
    *ret_sensor = wm_sensor_of(&described);
}

struct outcome {
    double error;  /* relative to the figure, and so is */
    double stated; /* what is said of it */
    bool known;
};

/* A tick of 0: readings at both ends alone, as a meter has that reads no power. */
static struct outcome measure(const struct build *build, enum load_kind kind,
                              double periods, double tick)
{
    static struct load load;
    double length = periods * build->period;
    bool has_power = build->has_power && tick > 0;
    struct wm_energy energy = { 0 };
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;
    struct wm_channel power_channel = build->channel;
    bool is_gpu = strcmp(build->channel.source, "nvml") == 0;

    power_channel.metric = "power";
    power_channel.kind = WM_GAUGE;
    find_sensor(&build->channel, build->is_usage, &energy.counter_sensor);
    find_sensor(&power_channel, build->is_usage, &energy.power_sensor);
    double busy_watts = make_load(&load, kind, build->period, length);
    struct device device = {
        .load = &load,
        .busy_watts = busy_watts,
        .period = build->period,
        .window = build->window,
        .latch = build->latch,
        .busy_period = BUSY_PERIOD_S,
        .phase = build->period * uniform(-1, 0),
        .gain = 1 + normal(energy.counter_sensor.gain / 2),
        .offset = normal(energy.counter_sensor.offset / 2),
    };
    device.busy_phase = device.phase;
    device.counted_until = latched(-1, build->period, device.phase);

    /* A run has a tick at its start and one at its end. */
    tick = fmin(tick > 0 ? tick : length, length);
    for (double when = 0; when < length + tick; when += tick * uniform(0.97, 1.03)) {
        double now = fmin(when, length);
        struct wm_reading counter =
            reading(build->counts ? counter_at(&device, now) : 0, now);
        struct wm_reading power = reading(has_power ? power_at(&device, now) : 0, now);
        wm_energy_set_busy(&energy, (struct wm_known) { is_gpu, busy_at(&device, now) });
        wm_energy_add(&energy, counter.when_ns, build->counts ? &counter : NULL,
                      has_power ? &power : NULL);
        if (now >= length)
            break;
    }
    wm_energy_result(&energy, &result);
    wm_uncertainty_find(&energy, &result, &uncertainty);

    double truth = joules_until(&load, length) - joules_until(&load, 0);
    if (result.method == WM_ENERGY_UNKNOWN || result.joules <= 0)
        return (struct outcome) { 0 };
    return (struct outcome) {
        .error = (result.joules - truth) / result.joules,
        .stated = wm_uncertainty_total(&uncertainty) / result.joules,
        .known = true,
    };
}

#define RUNS 100
#define LEAST_HELD 0.95
#define FEW_RUNS 100

static void test_holds(void **state)
{
    unsigned all = 0, all_held = 0, by_load[LOADS] = { 0 }, by_load_held[LOADS] = { 0 };
    bool good = true;

    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(builds); b++) {
        unsigned runs = 0, held = 0;
        for (size_t k = 0; k < LOADS * RUNS; k++) {
            enum load_kind kind = (enum load_kind)(k % LOADS);
            struct outcome outcome =
                measure(&builds[b], kind, spread_out(1, 200), spread_out(0.001, 0.1));
            if (!outcome.known)
                continue;
            bool holds = fabs(outcome.error) <= outcome.stated;
            runs++;
            held += holds;
            by_load[kind]++;
            by_load_held[kind] += holds;
        }
        print_message("  %-24s %5.1f %% of %u runs\n", builds[b].name, 100.0 * held / runs,
                      runs);
        good = good && runs >= LOADS * RUNS / 2 && held >= LEAST_HELD * runs;
        all += runs;
        all_held += held;
    }
    for (size_t i = 0; i < LOADS; i++)
        print_message("  %-24s %5.1f %%\n", load_names[i],
                      100.0 * by_load_held[i] / by_load[i]);
    print_message("  all together: %.1f %%\n", 100.0 * all_held / all);
    assert_true(good);
    assert_true(all_held >= LEAST_HELD * all);
}

/* Ticks that are far apart, down to readings at both ends alone. A load that is in step
 * with the sensor is a case of its own there: how busy the device was is not known for
 * most of the time, and that it drew several times what was seen is not allowed for. */
static void test_holds_with_few_readings(void **state)
{
    static const struct {
        const char *name;
        size_t build;
        double least_tick, most_tick; /* s; 0: readings at both ends alone */
        double least_s, most_s;       /* of the run */
        double in_step;               /* how often it holds then */
    } rows[] = {
        { "H100, counter, both ends alone", 0, 0, 0, 0.3, 10, 0.65 },
        { "H100, counter, both ends", 0, 60, 60, 0.3, 10, 0.85 },
        { "H100, counter, seconds", 0, 1, 5, 2, 60, 0.85 },
        { "A100, power, seconds", 1, 1, 5, 2, 60, 0.85 },
        { "V100, counter, both ends alone", 2, 0, 0, 0.3, 10, 0.65 },
        { "V100, counter, seconds", 2, 1, 5, 2, 20, 0.85 },
    };
    bool good = true;

    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const struct build *build = &builds[rows[r].build];
        unsigned runs[2] = { 0 }, held[2] = { 0 }; /* in step, and not */
        for (size_t k = 0; k < LOADS * FEW_RUNS; k++) {
            enum load_kind kind = (enum load_kind)(k % LOADS);
            double length = spread_out(rows[r].least_s, rows[r].most_s), tick = 0;
            if (rows[r].least_tick > 0)
                tick = spread_out(rows[r].least_tick, rows[r].most_tick);
            struct outcome outcome = measure(build, kind, length / build->period, tick);
            if (!outcome.known)
                continue;
            runs[kind != SQUARE_AT]++;
            held[kind != SQUARE_AT] += fabs(outcome.error) <= outcome.stated;
        }
        print_message("  %-32s %5.1f %%, in step %5.1f %%\n", rows[r].name,
                      100.0 * held[1] / runs[1], 100.0 * held[0] / runs[0]);
        good = good && runs[0] + runs[1] >= LOADS * FEW_RUNS / 2 &&
               held[1] >= LEAST_HELD * runs[1] && held[0] >= rows[r].in_step * runs[0];
    }
    assert_true(good);
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* A load that a sensor has no trouble with, and long enough: what is stated is what
 * the errors are. */
static void test_is_not_wide(void **state)
{
    static const enum load_kind kinds[] = { CONSTANT, RAMP };
    double errors[200], stated[ARRAY_LEN(errors)];

    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(builds); b++) {
        for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
            struct outcome outcome = measure(&builds[b], kinds[i % ARRAY_LEN(kinds)], 30,
                                             spread_out(0.001, 0.1));
            assert_true(outcome.known);
            errors[i] = fabs(outcome.error);
            stated[i] = outcome.stated;
        }
        qsort(errors, ARRAY_LEN(errors), sizeof(errors[0]), compare_numbers);
        qsort(stated, ARRAY_LEN(stated), sizeof(stated[0]), compare_numbers);
        double worst = errors[ARRAY_LEN(errors) * 95 / 100];
        double median = stated[ARRAY_LEN(stated) / 2];
        print_message("  %-24s states %4.1f %%, errs by %4.1f %%\n", builds[b].name,
                      100 * median, 100 * worst);
        assert_true(median >= worst / 2 && median <= 2 * worst);
    }
}

static void test_table(void **state)
{
    static const struct {
        const char *source, *model;
        bool is_usage;
        enum wm_kind kind;
        enum wm_origin origin;
        double period_ms, window_ms;
    } rows[] = {
        { "nvml", "NVIDIA H100 80GB HBM3", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA H200", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA H20", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA GH200 480GB", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "A100-PCIE-40GB", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA A30", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA A10G", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "NVIDIA RTX A1000 Laptop GPU", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "NVIDIA RTX A3000 Laptop GPU", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "NVIDIA L4", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "Tesla T4", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "Quadro RTX 8000", false, WM_COUNTER, WM_MEASURED, 100, 20 },
        { "nvml", "Quadro RTX 4000", false, WM_COUNTER, WM_MEASURED, 100, 100 },
        { "nvml", "NVIDIA RTX 2000 Ada Generation", false, WM_COUNTER, WM_MEASURED, 100,
          100 },
        { "nvml", "Tesla P40", false, WM_COUNTER, WM_MEASURED, 20, 10 },
        { "nvml", "Tesla V100-SXM2-32GB", false, WM_COUNTER, WM_MEASURED, 20, 10 },
        /* Of what is not known the worst is assumed. */
        { "nvml", "NVIDIA X9000", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", NULL, false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "[*?\\", false, WM_COUNTER, WM_MEASURED, 100, 25 },
        /* What the older call means depends on the board. */
        { "nvml", "NVIDIA H100", false, WM_GAUGE, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA H100", true, WM_GAUGE, WM_MEASURED, 100, 1000 },
        { "nvml", "NVIDIA H100", true, WM_COUNTER, WM_MEASURED, 100, 25 },
        { "nvml", "NVIDIA A100", true, WM_GAUGE, WM_MEASURED, 100, 25 },
        /* A driver that is not real looks all the time. */
        { "nvml", "SIMULATED H100", false, WM_COUNTER, WM_SIMULATED, 77, 0 },
        { "rapl", "AMD EPYC", false, WM_COUNTER, WM_MEASURED, 77, 0 },
        { "estimate", "AMD EPYC", false, WM_COUNTER, WM_ESTIMATED, 77, 0 },
        { "something else", NULL, false, WM_GAUGE, WM_MEASURED, 77, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_channel channel = {
            .source = rows[i].source,
            .label = "gpu1",
            .model = rows[i].model,
            .device_kind =
                strcmp(rows[i].source, "nvml") == 0 ? WM_DEVICE_GPU : WM_DEVICE_CPU,
            .kind = rows[i].kind,
            .origin = rows[i].origin,
            .period_ns = 77000000,
        };
        struct wm_sensor sensor;

        print_message("  %s, %s\n", rows[i].source, rows[i].model ? rows[i].model : "NULL");
        find_sensor(&channel, rows[i].is_usage, &sensor);
        assert_true(fabs((double)sensor.period_ns / 1e6 - rows[i].period_ms) < 1e-6);
        assert_true(fabs(sensor.window_s * 1e3 - rows[i].window_ms) < 1e-6);
        assert_int_equal(sensor.gain > 0, rows[i].origin != WM_SIMULATED);
        assert_non_null(sensor.text);
    }
}

/* A board's sensor that tells the power of the moment, looked at in step with a load that
 * is at 100 W and at 20 W by turns: it shows one of the two throughout. */
static void test_sample_in_step(void **state)
{
    static const struct {
        bool is_sample;
        double watts;
    } rows[] = { { true, 20 }, { true, 100 }, { false, 20 }, { false, 100 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_channel channel = {
            .source = "hwmon",
            .label = "cpu",
            .device_kind = WM_DEVICE_CPU,
            .kind = WM_GAUGE,
            .sensor = { .kind = WM_SENSOR_BOARD,
                        .gain = 0.10,
                        .is_sample = rows[i].is_sample,
                        .window_s = rows[i].is_sample ? 0.001 : 0 },
        };
        struct wm_energy energy = { 0 };
        struct wm_energy_result result;
        struct wm_uncertainty uncertainty;

        energy.power_sensor = wm_sensor_of(&channel);
        for (int k = 0; k <= 40; k++) {
            struct wm_reading power = { 777 + k * INT64_C(100000000), rows[i].watts,
                                        WM_READING_OK };
            wm_energy_set_busy(&energy, (struct wm_known) { true, 0.5 });
            wm_energy_add(&energy, power.when_ns, NULL, &power);
        }
        wm_energy_result(&energy, &result);
        wm_uncertainty_find(&energy, &result, &uncertainty);
        assert_true(fabs(result.joules - 4 * rows[i].watts) < 1);
        assert_int_equal(fabs(result.joules - 4 * 60) <= wm_uncertainty_total(&uncertainty),
                         rows[i].is_sample);
    }
}

/* What is seen of a sensor goes before what is published, where it is clear. */
static void test_pace(void **state)
{
    static const struct {
        const char *name;
        double published_ms, true_ms, tick_ms, jitter;
        size_t ticks;
        double period_ms; /* that is believed */
        bool measured;
    } rows[] = {
        { "as published", 100, 100, 10, 0, 300, 100, true },
        { "slower", 100, 1000, 100, 0, 200, 1000, true },
        { "faster", 100, 20, 4, 0, 300, 20, true },
        { "faster than ticks", 100, 1, 20, 0, 100, 20, true },
        { "not published", 0, 100, 10, 0, 300, 100, true },
        { "ticks of a third of the period", 100, 50, 16, 0, 300, 50, true },
        { "ticks as slow as the sensor", 100, 100, 100, 0, 300, 100, false },
        { "ticks slower than the sensor", 100, 100, 1000, 0, 300, 100, false },
        { "too few changes", 100, 120, 10, 0, 100, 100, false },
        { "no beat", 100, 150, 10, 1.8, 300, 100, false },
        { "no tick", 100, 100, 10, 0, 0, 100, false },
        { "one tick", 100, 100, 10, 0, 1, 100, false },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_sensor sensor = { .period_ns =
                                              (int64_t)(rows[i].published_ms * 1e6) };
        struct wm_sensor_pace pace = { 0 };
        double value = 0, next_ms = rows[i].true_ms;

        for (size_t k = 0; k < rows[i].ticks; k++) {
            double now_ms = (double)k * rows[i].tick_ms;
            for (; next_ms <= now_ms;
                 next_ms += rows[i].true_ms * (1 + rows[i].jitter * uniform(-0.5, 0.5)))
                value++;
            struct wm_reading now = reading(value, now_ms / 1e3);
            struct wm_reading lost = { .when_ns = now.when_ns, .value = -1 };
            wm_sensor_pace_add(&pace, &now);
            wm_sensor_pace_add(&pace, &lost);
        }
        double period_ms = 1e3 * wm_sensor_period_s(&sensor, &pace);
        if (fabs(period_ms - rows[i].period_ms) > 0.03 * rows[i].period_ms)
            fail_msg("%s: %g ms", rows[i].name, period_ms);
        if (wm_sensor_is_measured(&sensor, &pace) != rows[i].measured)
            fail_msg("%s: measured or not", rows[i].name);
    }
}

/* A counter that stands still has nothing new, from the first time on; unless it was seen
 * to move far sooner, and had nothing to count. */
static void test_standstill(void **state)
{
    static const struct {
        const char *name;
        double published_ms;
        double values[12]; /* every 100 ms */
        size_t count;
        double period_ms;
        bool measured;
    } rows[] = {
        { "moves at each reading", 1, { 0, 1, 2, 3, 4, 5 }, 6, 1, false },
        { "has not moved", 1, { 0, 0, 0, 0 }, 4, 1, false },
        { "moved once", 1, { 0, 0, 0, 0, 9 }, 5, 300, true },
        { "moved twice", 1, { 0, 0, 9, 9, 9, 9, 9, 18 }, 8, 500, true },
        { "no two steps alike",
          1,
          { 0, 9, 9, 9, 9, 9, 18, 18, 18, 18, 27 },
          11,
          500,
          true },
        { "had nothing to count", 1, { 0, 0, 0, 0, 0, 1, 2, 3 }, 8, 1, false },
        { "and later", 1, { 0, 1, 2, 3, 3, 3, 3, 3, 4, 5 }, 10, 1, false },
        { "as published", 400, { 0, 0, 0, 9, 9, 9, 9, 18 }, 8, 400, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_sensor sensor = {
            .period_ns = (int64_t)(rows[i].published_ms * 1e6),
        };
        struct wm_sensor_pace pace = { 0 };

        for (size_t k = 0; k < rows[i].count; k++) {
            struct wm_reading now = reading(rows[i].values[k], 0.1 * (double)k);
            wm_sensor_pace_count(&pace, &now);
        }
        double period_ms = 1e3 * wm_sensor_period_s(&sensor, &pace);
        if (fabs(period_ms - rows[i].period_ms) > 1e-3)
            fail_msg("%s: %g ms", rows[i].name, period_ms);
        assert_int_equal(wm_sensor_is_measured(&sensor, &pace), rows[i].measured);
        assert_true(fabs(1e3 * wm_sensor_beat_s(&sensor, &pace) - rows[i].published_ms) <
                    1e-9);
    }
}

/* A gauge whose period nobody has published may be as slow as it stands still, also if it
 * has not moved yet; but not slower than it was seen to be, or than such gauges are. */
static void test_standing_gauge(void **state)
{
    static const struct {
        const char *name;
        double longest_ms;
        double values[12]; /* every 100 ms */
        size_t count;
        double period_ms;
    } rows[] = {
        { "published", 0, { 5, 5, 5, 5, 5, 5 }, 6, 50 },
        { "moves at each reading", 1000, { 1, 2, 3, 2, 1, 3 }, 6, 50 },
        { "has not moved", 1000, { 5, 5, 5, 5, 5, 5 }, 6, 500 },
        { "stands for longer than such gauges do", 300, { 5, 5, 5, 5, 5, 5 }, 6, 300 },
        { "moved twice", 1000, { 5, 5, 5, 5, 7, 7, 7, 7, 9 }, 9, 400 },
        { "a constant load", 1000, { 1, 2, 3, 3, 3, 3, 3, 3 }, 8, 50 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_sensor sensor = {
            .period_ns = 50000000,
            .longest_ns = (int64_t)(rows[i].longest_ms * 1e6),
        };
        struct wm_sensor_pace pace = { 0 };

        for (size_t k = 0; k < rows[i].count; k++) {
            struct wm_reading now = reading(rows[i].values[k], 0.1 * (double)k);
            wm_sensor_pace_show(&pace, &sensor, &now);
        }
        double period_ms = 1e3 * wm_sensor_period_s(&sensor, &pace);
        if (fabs(period_ms - rows[i].period_ms) > 1e-3)
            fail_msg("%s: %g ms", rows[i].name, period_ms);
    }
}

/* 10 W for ten seconds from a battery's gauge that does not move: it may be that of the
 * time before. */
static void test_stale_gauge(void **state)
{
    struct wm_energy energy = {
        .power_sensor = { .period_ns = 1000000000,
                          .longest_ns = INT64_C(30000000000),
                          .gain = 0.1 },
    };
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;

    (void)state;
    for (int k = 0; k <= 100; k++) {
        struct wm_reading power = reading(10, 0.1 * k);
        wm_energy_add(&energy, power.when_ns, NULL, &power);
    }
    wm_energy_result(&energy, &result);
    wm_uncertainty_find(&energy, &result, &uncertainty);
    assert_true(fabs(result.joules - 100) < 1);
    assert_true(uncertainty.above > 400 && uncertainty.above < 1000);
    assert_true(uncertainty.below > 50);
}

static struct wm_uncertainty told(struct wm_energy *energy)
{
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;

    wm_energy_result(energy, &result);
    wm_uncertainty_find(energy, &result, &uncertainty);
    return uncertainty;
}

/* A counter of 100 W in steps of 100 ms, looked at each 50 ms; at each other time the
 * utilization is more by `wobble`. */
static void count(struct wm_energy *energy, double from, double until, struct wm_known busy,
                  double wobble)
{
    bool is_more = false;

    for (double when = from; when < until; when += 0.05) {
        struct wm_reading counter = reading(100 * latched(when, 0.1, 0.013), when);
        is_more = !is_more;
        wm_energy_set_busy(
            energy, (struct wm_known) { busy.known, busy.number + is_more * wobble });
        wm_energy_add(energy, counter.when_ns, &counter, NULL);
    }
}

static void test_parts(void **state)
{
    const struct wm_sensor all = { .period_ns = 100000000, .gain = 0.05 };
    const struct wm_sensor part = { .period_ns = 100000000, .window_s = 0.025 };
    const struct wm_known unknown = { 0 };
    struct wm_energy energy = { .counter_sensor = all };
    struct wm_uncertainty none, brief, lengthy;

    (void)state;
    /* No figure, no uncertainty. */
    none = told(&energy);
    assert_true(none.systematic == 0 && none.random == 0);

    /* The ends of a run count for less in a longer one, the gain for as much. */
    count(&energy, 0, 3, unknown, 0);
    brief = told(&energy);
    count(&energy, 3, 60, unknown, 0);
    lengthy = told(&energy);
    assert_true(fabs(brief.systematic - 0.05 * 300) < 1);
    assert_true(fabs(lengthy.systematic - 0.05 * 6000) < 1);
    assert_true(brief.random / 300 > 0.01 && lengthy.random / 6000 < 0.003);
    assert_true(lengthy.unseen == 0);

    /* Time that is missing is as uncertain as what was drawn in it. */
    struct wm_reading lost = reading(NAN, 66);
    wm_energy_add(&energy, lost.when_ns, &lost, NULL);
    assert_true(fabs(told(&energy).random - 600) < 30);

    /* What it did is known of a second before each tick, and of the rest of the time
     * nothing. */
    struct wm_energy rare = { .counter_sensor = part };
    for (int k = 0; k <= 3; k++) {
        struct wm_reading counter = reading(500 * k, 5 * k);
        wm_energy_set_busy(&rare, (struct wm_known) { true, 1 });
        wm_energy_add(&rare, counter.when_ns, &counter, NULL);
    }
    assert_true(fabs(told(&rare).unseen - 0.8 * 0.75 * 1500) < 20);

    /* A quarter of the time is seen: a device that is always busy hides no more than dips,
     * one that is half busy may hide anything, and so may one that does not tell. Unless
     * its utilization is steady, which that of a load that is in step hardly is. */
    static const struct {
        struct wm_known busy;
        double wobble, least, most;
    } rows[] = {
        { { true, 1 }, 0, 0.05, 0.12 },    { { true, 0 }, 0, 0, 1e-9 },
        { { true, 0.99 }, 0, 0.05, 0.12 }, { { true, 0.5 }, 0.05, 0.5, 5.0 },
        { { true, 0.5 }, 0, 0.05, 0.12 },  { { true, 0.1 }, 0, 0.5, 10.0 },
        { { false, 0 }, 0, 0.7, 0.8 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_energy partly = { .counter_sensor = part };
        count(&partly, 0, 15, rows[i].busy, rows[i].wobble);
        double ratio = told(&partly).unseen / 1500;
        if (!(ratio >= rows[i].least && ratio <= rows[i].most))
            fail_msg("busy %g: %g", rows[i].busy.number, ratio);
        /* A load may stay in step for as long as it likes. */
        count(&partly, 15, 600, rows[i].busy, rows[i].wobble);
        assert_true(told(&partly).unseen / 60000 >= 0.9 * ratio);
    }
}

/* Of readings and a utilization: in what range, of 1000 J that the sensor tells, the truth
 * may be. */
static void test_unseen(void **state)
{
    static const struct {
        const char *name;
        double before;
        double watts[4]; /* again and again; 0 ends them */
        size_t count;
        double busy, limit;
        double least_low, most_low, least_high, most_high;
    } rows[] = {
        { "steady and always busy", 50, { 300 }, 60, 1, 700, 0.88, 0.92, 1, 1.01 },
        { "always busy, with a dip in each fourth reading",
          300,
          { 300, 300, 300, 200 },
          60,
          1,
          700,
          0.9,
          0.95,
          1.05,
          1.1 },
        { "in step with three periods",
          300,
          { 300, 60, 60 },
          60,
          0.3,
          700,
          0.4,
          0.6,
          1.4,
          1.6 },
        { "steady and idle", 50, { 50 }, 60, 0, 700, 0.99, 1, 1, 1.01 },
        { "steady, and busy half of the time",
          300,
          { 300 },
          60,
          0.5,
          700,
          0.45,
          0.6,
          1.5,
          1.9 },
        { "the same, with a higher limit", 300, { 300 }, 60, 0.5, 3000, 0.45, 0.6, 4, 6.5 },
        { "near the limit", 690, { 690 }, 60, 0.5, 700, 0.45, 0.6, 1, 1.01 },
        { "an idle power that was seen", 200, { 300 }, 60, 0.5, 700, 0.75, 0.9, 1.2, 1.65 },
        { "each other one busy, and busy a tenth of the time",
          60,
          { 300, 60 },
          60,
          0.1,
          700,
          0.1,
          0.55,
          1,
          1.01 },
        { "each other one busy, as the driver says",
          60,
          { 300, 60 },
          60,
          0.5,
          700,
          0.4,
          1,
          1,
          2.1 },
        { "in step with four periods",
          60,
          { 300, 60, 60, 300 },
          60,
          0.5,
          700,
          0.65,
          0.8,
          1.2,
          1.35 },
        { "steady but for noise",
          300,
          { 310, 290, 295, 305 },
          60,
          0.5,
          700,
          0.45,
          0.6,
          1.5,
          1.9 },
        { "in step with four, evened out by the window",
          60,
          { 330, 270, 285, 315 },
          60,
          0.5,
          700,
          0.95,
          1,
          1,
          1.05 },
        { "one slow swing: its turns are no levels",
          440,
          { 450, 470, 490, 510 },
          4,
          0.5,
          700,
          0.3,
          0.8,
          1,
          1.3 },
        { "no readings but the counter's", 0, { 0 }, 0, 0.5, 700, 0.45, 0.6, 1.5, 2 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_energy energy = { .power_sensor = { .period_ns = 100000000 } };
        size_t cycle = 0;
        while (cycle < 4 && rows[i].watts[cycle] > 0)
            cycle++;
        for (size_t k = 0; k <= rows[i].count && cycle > 0; k++) {
            double watts = k == 0 ? rows[i].before : rows[i].watts[(k - 1) % cycle];
            struct wm_reading power =
                reading(watts + 1e-3 * (double)(k % 2), 0.1 * (double)k);
            wm_energy_add(&energy, power.when_ns, NULL, &power);
        }
        const struct wm_unseen_case what = {
            .variation = &energy.power_variation,
            .watts = 300,
            .seconds = 6,
            .seen = 0.25,
            .known = 1,
            .busy = rows[i].busy,
            .partly = 1,
            .most_watts = rows[i].limit,
        };
        struct wm_unseen unseen;
        wm_unseen_find(&what, &unseen);
        double low = 1 - unseen.less, high = 1 + unseen.more;
        if (!(low >= rows[i].least_low && low <= rows[i].most_low &&
              high >= rows[i].least_high && high <= rows[i].most_high))
            fail_msg("%s: %g to %g", rows[i].name, low, high);
    }
}

static void test_between(void **state)
{
    static const struct {
        double joules, systematic, below, above, low, high;
    } rows[] = {
        { 100, 3, 4, 4, 95, 105 },
        { 100, 0, 10, 50, 90, 150 },
        { 100, 0, 200, 0, 0, 100 },
        { 0, 0, 1, 1, 0, 1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_between range = wm_uncertainty_between(
            rows[i].joules, rows[i].systematic, rows[i].below, rows[i].above);
        assert_true(fabs(range.low - rows[i].low) < 1e-9);
        assert_true(fabs(range.high - rows[i].high) < 1e-9);
    }
}

/* The counter of a virtual machine moves every 0.7 s or so, and is read once a second: each
 * reading is another, and nothing shows that it is slow but what its steps differ by. */
static void test_slow_counter_read_seldom(void **state)
{
    size_t count = 0, inside = 0;

    (void)state;
    for (int k = 0; k < 600; k++) {
        double period = 0.5 + 0.004 * (k % 101), phase = 0.013 * (k % 37);
        double length = 2.1 + 0.0137 * k;
        struct wm_energy energy = { .counter_sensor = { .period_ns = 976563 } };
        for (double when = 0; when < length + 1; when++) {
            double at = fmin(when, length);
            double shown = 100 * period * floor((at + 50 - phase) / period);
            struct wm_reading counter = reading(shown, at);
            wm_energy_add(&energy, counter.when_ns, &counter, NULL);
        }
        struct wm_energy_result result;
        const struct wm_uncertainty off = told(&energy);
        wm_energy_result(&energy, &result);
        const struct wm_between range =
            wm_uncertainty_between(result.joules, off.systematic, off.below, off.above);
        count++;
        inside += range.low <= 100 * length && range.high >= 100 * length;
    }
    print_message("  %zu of %zu\n", inside, count);
    assert_true((double)inside >= 0.92 * (double)count);
}

/* 40 W in steps that come all the time, and then no more: whether that may hide what
 * went on is in the uncertainty, and a counter that takes its time is not suspected. */
static void test_frozen(void **state)
{
    static const struct {
        const char *name;
        double period, tick, frozen_at, end;
        double paused_at, paused_until; /* it caught up then */
        bool has_power, suspected;
    } rows[] = {
        { "for most of a second", 0.001, 0.1, 0.7, 1.6, 0, 0, false, true },
        { "at fast ticks", 0.001, 0.02, 0.7, 1.6, 0, 0, false, true },
        { "for some ticks", 0.001, 0.1, 1.3, 1.6, 0, 0, false, true },
        { "for long", 0.001, 0.1, 0.7, 5, 0, 0, false, true },
        { "a slow one", 0.1, 0.02, 0.9, 1.6, 0, 0, false, true },
        { "with its power", 0.001, 0.1, 0.7, 1.6, 0, 0, true, false },
        { "not at all", 0.001, 0.1, 9, 1.6, 0, 0, false, false },
        { "a slow one that moves", 0.1, 0.02, 9, 1.59, 0, 0, false, false },
        { "as it did before", 0.001, 0.1, 2.0, 2.5, 0.5, 1.2, false, false },
        { "before it had steps enough", 0.001, 0.1, 0.2, 1.6, 0, 0, false, false },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_sensor sensor = { .period_ns = (int64_t)(1e9 * rows[i].period),
                                    .gain = 0.05 };
        struct wm_energy energy = { .counter_sensor = sensor, .power_sensor = sensor };
        struct wm_energy_result result;
        struct wm_uncertainty uncertainty;

        for (int k = 0; k <= (int)round(rows[i].end / rows[i].tick); k++) {
            double when = k * rows[i].tick, until = fmin(when, rows[i].frozen_at);
            if (when >= rows[i].paused_at && when < rows[i].paused_until)
                until = rows[i].paused_at;
            struct wm_reading counter =
                reading(40 * latched(until + 1, rows[i].period, 0.0001), when);
            struct wm_reading power = reading(40, when);
            wm_energy_add(&energy, counter.when_ns, &counter,
                          rows[i].has_power ? &power : NULL);
        }
        wm_energy_result(&energy, &result);
        wm_uncertainty_find(&energy, &result, &uncertainty);

        double error = 40 * result.span_s - result.joules;
        if (rows[i].suspected != (result.frozen > 0))
            fail_msg("%s: suspected of %g J", rows[i].name, result.frozen);
        if (rows[i].suspected && fabs(error) > wm_uncertainty_total(&uncertainty))
            fail_msg("%s: off by %g J, not by %g J at most", rows[i].name, error,
                     wm_uncertainty_total(&uncertainty));
    }
}

UNIT(uncertainty)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_holds_with_few_readings),
        cmocka_unit_test(test_is_not_wide),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_sample_in_step),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_standstill),
        cmocka_unit_test(test_standing_gauge),
        cmocka_unit_test(test_stale_gauge),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_slow_counter_read_seldom),
        cmocka_unit_test(test_frozen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
