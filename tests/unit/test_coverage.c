/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_coverage.c - how often the true joules lie within what is stated, and whether that
 * is wider than it has to be, class by class: sensors whose gain, offset and window are
 * drawn for each board, loads of all rhythms, runs of 10 ms to a minute; in virtual time.
 *
 * WM_RUNS says how many runs of each class, 200 unless it does; `make bench-truth` takes
 * 1,000. WM_SEED draws other boards and loads than those with which constants were chosen.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/energy/analyze_uncertainty.h"
#include "made_sensor.h"
#include "test.h"
#include "test_sensor.h"

enum load_kind {
    CONSTANT, /* with nothing to do, or busy all the time */
    FLAT,     /* at a power that does not change, busy for 20 to 80 % of the time */
    CHANGING, /* busy all the time, at a power that changes every 20 ms */
    TRAINING, /* busy all the time, in steps of three to eight periods that end in a dip */
    AT,       /* half a period of the sensor, one, or two */
    AT_FRACTION, /* a third, a fourth, or 1.5, 2.5, three or four periods */
    NEAR,        /* within 3 % of those */
    FAST,        /* an eighth to a half */
    MIDDLE,      /* up to four, */
    SLOW,        /* and up to twenty */
    GAPS,        /* busy and idle for some milliseconds, at random */
    LOADS,
};

static const char *const load_names[LOADS] = {
    [CONSTANT] = "constant",
    [FLAT] = "flat, partly busy",
    [CHANGING] = "busy, changing",
    [TRAINING] = "busy, dips",
    [AT] = "in step",
    [AT_FRACTION] = "in step, n/m",
    [NEAR] = "nearly in step",
    [FAST] = "T/8 - T/2",
    [MIDDLE] = "T/2 - 4 T",
    [SLOW] = "4 T - 20 T",
    [GAPS] = "at random",
};

static const struct {
    double least, most;           /* s */
    double least_tick, most_tick; /* s */
} lengths[] = {
    { 0.01, 0.1, 0.005, 0.1 }, { 0.3, 1, 0.01, 0.1 }, { 1, 3, 0.01, 0.1 },
    { 3, 10, 0.01, 0.1 },      { 20, 60, 0.05, 0.1 },
};

#define LENGTHS ARRAY_LEN(lengths)

static const char *const length_names[LENGTHS] = { "10-100 ms", "0.3-1 s", "1-3 s",
                                                   "3-10 s", "20-60 s" };

/* 95 % are to be inside, which of 200 runs are 92 % or more with near certainty. */
#define MOST_RUNS 1000
#define ENOUGH 200.0
#define HELD 0.95
#define MOST_WIDE 1.5

/* Of each reading of power, of one board. */
#define MOST_NOISE 0.02

/* Of all classes a few are beyond by chance. */
#define MOST_BAD 0.02

/* What is drawn for each board lies between two values. */
struct span {
    double least, most;
};

/* Why loads look alike to a sensor. */
enum looks {
    WHOLE,   /* it sees all of the time: they do not */
    PART,    /* its own clock decides what it sees */
    MOMENT,  /* our readings decide that, beside a known utilization; */
    UNKNOWN, /* and where nobody knows how busy the device is */
};

/* The sensor as its source describes it, or that of the table of sensors. */
struct build {
    const char *name, *source, *model;
    struct wm_sensor described;
    bool is_usage; /* power by NVML's older call */
    enum wm_device_kind kind;
    bool counts, has_power;
    enum looks looks;
    size_t together; /* in so many lengths of runs a sensor is too slow to show the load */
    struct span period, window, busy_period; /* s; 0: a period; nobody knows how busy */
    double counter_every_s; /* its counter is read so rarely, and at both ends */
    double rhythm;          /* s, of loads in step; 0: that of the sensor */
    double most_watts, range;
};

#define BUILT_IN(window, is_sample_)                                                       \
    {                                                                                      \
        .kind = WM_SENSOR_BUILT_IN, .gain = 0.10, .window_s = (window),                    \
        .is_sample = (is_sample_), .longest_ns = 1000000000                                \
    }
#define BOARD(period, window)                                                              \
    {                                                                                      \
        .kind = WM_SENSOR_BOARD, .gain = 0.10, .period_ns = (period), .is_sample = true,   \
        .window_s = (window)                                                               \
    }
#define GAUGE                                                                              \
    {                                                                                      \
        .kind = WM_SENSOR_BATTERY, .gain = 0.10, .period_ns = 1000000000,                  \
        .longest_ns = INT64_C(30000000000)                                                 \
    }

/* clang-format off */
static const struct build builds[] = {
    { .name = "H100", .source = "nvml", .model = "NVIDIA H100 80GB HBM3",
      .kind = WM_DEVICE_GPU, .counts = true, .has_power = true, .looks = PART,
      .together = 1, .period = { 0.1, 0.101 }, .window = { 0.022, 0.025 },
      .busy_period = { 1.0 / 6, 1 }, .most_watts = 650, .range = 700 },
    { .name = "H100, 1.9 s", .source = "nvml", .model = "NVIDIA H100 80GB HBM3",
      .kind = WM_DEVICE_GPU, .counts = true, .has_power = true, .looks = PART,
      .together = 1, .period = { 0.1, 0.101 }, .window = { 0.022, 0.025 },
      .busy_period = { 1.0 / 6, 1 }, .counter_every_s = 1.9, .most_watts = 650,
      .range = 700 },
    { .name = "A100, power", .source = "nvml", .model = "NVIDIA A100-SXM4-40GB",
      .kind = WM_DEVICE_GPU, .has_power = true, .looks = PART, .together = 1,
      .period = { 0.1, 0.101 }, .window = { 0.018, 0.025 }, .busy_period = { 0.2, 1 },
      .most_watts = 390, .range = 400 },
    { .name = "mean of 1 s", .source = "nvml", .model = "NVIDIA L40S",
      .is_usage = true, .kind = WM_DEVICE_GPU,
      .has_power = true, .looks = WHOLE, .together = 1, .period = { 0.1, 0.1 },
      .window = { 1, 1 }, .busy_period = { 0.2, 0.2 }, .most_watts = 330, .range = 350 },
    { .name = "whole window", .source = "nvml", .model = "NVIDIA GeForce RTX 3090",
      .kind = WM_DEVICE_GPU, .counts = true, .has_power = true, .looks = WHOLE,
      .together = 1, .period = { 0.1, 0.1 }, .busy_period = { 0.2, 0.2 },
      .most_watts = 330, .range = 350 },
    { .name = "T4, power", .source = "nvml", .model = "Tesla T4", .kind = WM_DEVICE_GPU,
      .has_power = true, .looks = WHOLE, .together = 1, .period = { 0.1, 0.1 },
      .busy_period = { 0.2, 1 }, .most_watts = 68, .range = 70 },
    { .name = "AMD, instant", .source = "drm", .described = BUILT_IN(0.001, true),
      .kind = WM_DEVICE_GPU, .has_power = true, .looks = MOMENT, .together = 1,
      .period = { 0.001, 0.003 }, .window = { 0.001, 0.001 }, .busy_period = { 0.1, 1 },
      .most_watts = 300, .range = 320 },
    { .name = "AMD, slow", .source = "drm", .described = BUILT_IN(0.001, true),
      .kind = WM_DEVICE_GPU, .has_power = true, .looks = MOMENT, .together = 3,
      .period = { 0.1, 1 }, .window = { 0.001, 0.05 }, .busy_period = { 0.1, 1 },
      .most_watts = 300, .range = 320 },
    { .name = "AMD, average", .source = "drm", .described = BUILT_IN(0.5, false),
      .kind = WM_DEVICE_GPU, .has_power = true, .looks = WHOLE, .together = 2,
      .period = { 0.001, 0.1 }, .window = { 0.1, 1 }, .busy_period = { 0.1, 1 },
      .most_watts = 300, .range = 320 },
    { .name = "Intel, gauge", .source = "drm", .described = BUILT_IN(0, false),
      .kind = WM_DEVICE_GPU, .has_power = true, .looks = WHOLE, .together = 3,
      .period = { 0.1, 1 }, .most_watts = 150, .range = 160 },
    { .name = "INA3221", .source = "hwmon", .described = BOARD(35000000, 0.035),
      .kind = WM_DEVICE_OTHER, .has_power = true, .looks = UNKNOWN, .together = 1,
      .period = { 0.035, 0.035 }, .window = { 0.012, 0.035 }, .most_watts = 30 },
    { .name = "Corsair PSU", .source = "hwmon", .described = BOARD(0, 0.001),
      .kind = WM_DEVICE_PLATFORM, .has_power = true, .looks = UNKNOWN, .together = 1,
      .period = { 0.001, 0.003 }, .window = { 0.001, 0.003 }, .most_watts = 600 },
    { .name = "battery", .source = "battery", .described = GAUGE,
      .kind = WM_DEVICE_PLATFORM, .has_power = true, .looks = WHOLE, .together = 5,
      .period = { 1, 30 }, .most_watts = 60 },
    { .name = "0.7 s", .source = "rapl", .model = "Intel(R) Xeon(R)",
      .kind = WM_DEVICE_CPU, .counts = true, .looks = WHOLE, .together = 5,
      .period = { 0.5, 0.9 }, .rhythm = 0.7, .most_watts = 350 },
    { .name = "RAPL", .source = "rapl", .model = "Intel(R) Xeon(R)", .kind = WM_DEVICE_CPU,
      .counts = true, .looks = WHOLE, .period = { 0.00097, 0.00098 }, .rhythm = 0.1,
      .most_watts = 350 },
};
/* clang-format on */

#define BUILDS ARRAY_LEN(builds)

static bool is_watched(const struct build *build)
{
    return build->busy_period.most > 0;
}

static void make_square(struct load *load, double period, double from, double until,
                        const double *watts)
{
    double duty = uniform(0.05, 0.95);

    for (; from < until; from += period) {
        add_power(load, from, watts[1]);
        add_power(load, from + duty * period, watts[0]);
    }
}

/* Dips of 5 to 30 % of a step, in which 30 to 70 % less is drawn. */
static void make_training(struct load *load, double period, double from, double until,
                          double busy)
{
    double dip = uniform(0.05, 0.3), depth = uniform(0.3, 0.7);

    for (; from < until; from += period) {
        add_power(load, from, busy);
        add_power(load, from + (1 - dip) * period, (1 - depth) * busy);
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

static double one_of(const double *steps, size_t count)
{
    return steps[(size_t)uniform(0, (double)count)];
}

/* The period of a load, in those of the sensor. */
static double times_of(enum load_kind kind)
{
    static const double steps[] = { 0.5, 1, 2 }, long_steps[] = { 1, 2, 3, 4, 5, 8 };
    static const double fractions[] = { 1.0 / 3, 0.25, 1.5, 2.5, 3, 4 };

    switch (kind) {
    case AT:
        return one_of(steps, ARRAY_LEN(steps));
    case AT_FRACTION:
        return one_of(fractions, ARRAY_LEN(fractions));
    case TRAINING:
        return one_of(long_steps, ARRAY_LEN(long_steps));
    case NEAR:
        return one_of(steps, ARRAY_LEN(steps)) * (1 + uniform(-0.03, 0.03));
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
    case FLAT:
        add_power(load, from, watts[1]);
        break;
    case TRAINING:
        make_training(load, rhythm * times_of(kind), from, until, watts[1]);
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

/* One half of all loads begin and end with the run, the others have been there before.
 * The power from which on the device is busy. */
static double make_load(struct load *load, enum load_kind kind, const struct build *build,
                        double rhythm, double length)
{
    double busy = uniform(0.4, 1) * build->most_watts, idle = busy / spread_out(1.2, 10);
    const double watts[2] = { idle, busy };
    bool is_run = uniform(0, 1) < 0.5;

    load->count = 0;
    add_power(load, -100, idle);
    fill_load(load, kind, rhythm, is_run ? 0 : -3 - fmin(20 * rhythm, 40) * uniform(0, 1),
              length + 2, watts);
    if (is_run) {
        while (load->from[load->count - 1] >= length)
            load->count--;
        add_power(load, length, idle);
    }
    if (kind == CHANGING)
        return 0.65 * busy;
    return kind == TRAINING ? 0.25 * busy : (idle + busy) / 2;
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
        .period_ns = strcmp(build->source, "nvml") == 0 ? 100000000 : 976563,
    };

    channel.sensor = build->described.kind != WM_SENSOR_UNKNOWN
                         ? build->described
                         : test_sensor(&channel, build->is_usage);
    struct wm_sensor sensor = wm_sensor_of(&channel);
    sensor.range = build->range;
    return sensor;
}

struct outcome {
    bool known, holds;
    double error, width; /* relative to the figure; the latter: half of what is stated */
};

static double drawn_or(struct span span, double other)
{
    return span.most > 0 ? spread_out(span.least, span.most) : other;
}

static struct device make_device(const struct build *build, const struct load *load,
                                 enum load_kind kind, double period,
                                 const struct wm_sensor *sensor)
{
    struct device device = {
        .load = load,
        .period = period,
        .window = drawn_or(build->window, period),
        .latch = period,
        .busy_period = drawn_or(build->busy_period, 1),
        .phase = period * uniform(-1, 0),
        .busy_phase = uniform(-1, 0),
        .gain = 1 + normal(sensor->gain / 2),
        .offset = normal(sensor->offset / 2),
        .noise = uniform(0, MOST_NOISE),
        .flat_busy = kind == FLAT ? uniform(0.2, 0.8) : 0,
    };

    device.counted_until = latched(-2, period, device.phase);
    return device;
}

/* Where the counter costs too much to be read, the last reading stands. */
static void add_tick(struct wm_energy *energy, const struct build *build,
                     struct device *device, double now, bool is_end)
{
    struct wm_reading power = reading(build->has_power ? power_at(device, now) : 0, now);

    if (is_end || now == 0 || now - device->read_at >= build->counter_every_s) {
        device->read = reading(build->counts ? counter_at(device, now) : 0, now);
        device->read_at = now;
    }
    if (is_watched(build))
        wm_energy_set_busy(energy, (struct wm_known) { true, busy_at(device, now) });
    wm_energy_add(energy, power.when_ns, build->counts ? &device->read : NULL,
                  build->has_power ? &power : NULL);
}

/* Of a sensor that is faster than our readings loads are in step with these, which then
 * come on the dot. */
static struct outcome measure(const struct build *build, enum load_kind kind,
                              size_t length_class)
{
    static struct load load;
    double period = spread_out(build->period.least, build->period.most);
    double tick =
        spread_out(lengths[length_class].least_tick, lengths[length_class].most_tick);
    double length = spread_out(lengths[length_class].least, lengths[length_class].most);
    double rhythm = build->rhythm > 0 ? build->rhythm : fmax(period, tick);
    double jitter = rhythm > period ? 0.001 : 0.03;
    struct wm_energy energy = {
        .counter_sensor = sensor_of(build, "energy"),
        .power_sensor = sensor_of(build, "power"),
    };
    struct wm_energy_result result;
    struct wm_uncertainty uncertainty;
    double busy_watts = make_load(&load, kind, build, rhythm, length);
    struct device device = make_device(build, &load, kind, period, &energy.counter_sensor);

    device.busy_watts = busy_watts;
    for (double when = 0; when < length; when += tick * uniform(1 - jitter, 1 + jitter))
        add_tick(&energy, build, &device, when, false);
    add_tick(&energy, build, &device, length, true);
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
                        const char *length, const char *note)
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
                  is_low ? " TOO FEW" : "", is_wide ? " TOO WIDE" : "", note);
    return !is_low && !is_wide;
}

static size_t runs_of_each(void)
{
    const char *text = getenv("WM_RUNS");
    size_t runs = text ? (size_t)atol(text) : 200;

    return runs < MOST_RUNS ? runs : MOST_RUNS;
}

/* Classes that neither the readings nor the utilization tell apart. What is stated of these
 * has to hold for all of them together, of which there are as many of each. */
enum group { ALONE, UNSHOWN, PARTLY_BUSY, FLAT_READINGS, ALWAYS_BUSY, GROUPS };

static const char *const group_names[GROUPS] = {
    [UNSHOWN] = "- all loads",
    [PARTLY_BUSY] = "- partly busy",
    [FLAT_READINGS] = "- flat or in step",
    [ALWAYS_BUSY] = "- busy, or dips",
};

static enum group group_of(const struct build *build, enum load_kind kind, size_t length)
{
    bool is_busy = kind == CONSTANT || kind == CHANGING || kind == TRAINING;

    if (length < build->together)
        return UNSHOWN;
    if (build->looks == WHOLE || build->looks == UNKNOWN)
        return ALONE;
    if (lengths[length].most <= 1 && !is_busy)
        return PARTLY_BUSY;
    if (kind == FLAT || kind == AT || kind == AT_FRACTION)
        return FLAT_READINGS;
    return kind == CONSTANT || kind == TRAINING ? ALWAYS_BUSY : ALONE;
}

/* A load that is in step with our own readings, where nothing else shows it; and a step of
 * a slow counter that is the only one. */
static bool is_covered(const struct build *build, enum load_kind kind, size_t length)
{
    if (build->rhythm > 0.5 && length == 0)
        return false;
    if (length < build->together)
        return true;
    if (build->looks == UNKNOWN)
        return kind != AT && kind != AT_FRACTION && kind != NEAR && kind != TRAINING;
    return build->looks != MOMENT || kind != TRAINING;
}

static size_t judge(const struct build *build, size_t length, size_t *ret_classes)
{
    static struct class class, groups[GROUPS];
    size_t bad = 0;

    memset(groups, 0, sizeof(groups));
    for (size_t k = 0; k < LOADS; k++) {
        enum load_kind kind = (enum load_kind)k;
        enum group group = group_of(build, kind, length);
        bool is_told = is_covered(build, kind, length);
        memset(&class, 0, sizeof(class));
        for (size_t i = 0; i < runs_of_each(); i++) {
            struct outcome outcome = measure(build, kind, length);
            if (!outcome.known)
                continue;
            add_outcome(&class, &outcome);
            if (is_told)
                add_outcome(&groups[group], &outcome);
        }
        const char *note = group != ALONE ? " (with others)" : "";
        bool is_good = print_class(&class, build->name, load_names[k], length_names[length],
                                   is_told ? note : " (not covered)");
        if (is_told && group == ALONE) {
            bad += !is_good;
            ++*ret_classes;
        }
    }
    for (size_t g = ALONE + 1; g < GROUPS; g++) {
        if (groups[g].runs == 0)
            continue;
        bad +=
            !print_class(&groups[g], build->name, group_names[g], length_names[length], "");
        ++*ret_classes;
    }
    return bad;
}

static void test_classes(void **state)
{
    const char *text = getenv("WM_SEED");
    size_t bad = 0, classes = 0;

    (void)state;
    seed = text ? (uint64_t)atol(text) * 0x9e3779b97f4a7c15 | 1 : seed;
    print_message("  sensor        load              length    runs   inside    bias   "
                  "width   needed\n");
    for (size_t b = 0; b < BUILDS; b++) {
        for (size_t n = 0; n < LENGTHS; n++)
            bad += judge(&builds[b], n, &classes);
    }
    print_message("  %zu of %zu classes are not as they should be\n", bad, classes);
    assert_true((double)bad <= MOST_BAD * (double)classes);
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
        add_tick(&energy, build, &device, 0.013 * (double)i, i == 480);
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

UNIT(coverage)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_twice_the_period),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
