/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyze_region_share.c - whether the true joules of a region lie within what is
 * stated, 95 times of 100: made-up loads that go with the region, against it, or in step
 * with its calls, ticks of 100 ms, and counters that are renewed at a pace of their own.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/region/analyze_regions.h"
#include "made_load.h"
#include "test.h"

/* The calls of the region, one after the other. */
struct calls {
    double start[MOST_STRETCHES / 16], stop[MOST_STRETCHES / 16];
    size_t count;
    double end; /* of the run */
};

enum schedule {
    ONCE,
    AT_RANDOM,  /* anywhere */
    AT_A_BEAT,  /* of any period */
    WITH_TICKS, /* of a period that ticks keep step with */
    MANY,       /* and short, anywhere */
    AT_THE_END, /* of the run, where no sensor tells of all of it */
    SCHEDULES,
};

static const char *const schedule_names[] = { "once",           "at random", "at a beat",
                                              "with the ticks", "many",      "at the end" };

static void make_calls(struct calls *calls, enum schedule schedule, double length)
{
    double at = uniform(0.5, 2);
    size_t count =
        schedule == ONCE || schedule == AT_THE_END ? 1 : (size_t)spread_out(2, 60);
    double gap = length * spread_out(0.2, 20), tick_beat = 0.1;

    calls->count = 0;
    if (schedule == MANY) {
        count = 1500;
        gap = spread_out(0.05, 0.4);
    }
    if (schedule == WITH_TICKS) {
        while (tick_beat < 1.2 * length)
            tick_beat += 0.1;
        if (length < 0.02 && uniform(0, 1) < 0.5)
            tick_beat = uniform(0, 1) < 0.5 ? 0.05 : 0.025;
        gap = tick_beat - length;
    }
    while (calls->count < count && at < 600) {
        calls->start[calls->count] = at;
        calls->stop[calls->count++] = at + length;
        at += length + (schedule == AT_RANDOM || schedule == MANY
                            ? -gap * log(1 - uniform(0, 1))
                            : gap);
    }
    calls->end = calls->stop[calls->count - 1];
    if (schedule != AT_THE_END)
        calls->end += uniform(0.5, 2);
}

enum load_kind {
    CONSTANT,
    BUSY_INSIDE,
    IDLE_INSIDE,
    SQUARE_INSIDE, /* from the start of each call */
    SQUARE,        /* of any period */
    BURST_FIRST,   /* each call begins with one, */
    BURST_LAST,    /* or ends with one */
    LOADS,
};

static const char *const load_names[] = { "constant",      "busy inside", "idle inside",
                                          "square inside", "square",      "burst first",
                                          "burst last" };

static void make_load(struct load *load, enum load_kind kind, const struct calls *calls)
{
    double idle = uniform(40, 90), busy = uniform(150, 600);
    double outside = uniform(0, 1) < 0.8 ? idle : busy;
    double length = calls->stop[0] - calls->start[0];
    double period = fmax(length * spread_out(0.05, 2), calls->end / 20000);
    double burst = uniform(0.05, 0.6) * length;

    load->count = 0;
    add_power(load, -10,
              kind == IDLE_INSIDE     ? busy
              : kind == SQUARE_INSIDE ? outside
                                      : idle);
    if (kind == CONSTANT)
        return;
    if (kind == SQUARE) {
        double duty = uniform(0.1, 0.9);
        period = spread_out(fmax(0.005, calls->end / 20000), 5);
        for (double at = -5 * uniform(0, 1); at < calls->end + 1; at += period) {
            add_power(load, at, busy);
            add_power(load, at + duty * period, idle);
        }
        return;
    }
    for (size_t i = 0; i < calls->count; i++) {
        double start = calls->start[i], stop = calls->stop[i];
        switch (kind) {
        case IDLE_INSIDE:
            add_power(load, start, idle);
            add_power(load, stop, busy);
            break;
        case SQUARE_INSIDE:
            for (double at = start; at < stop; at += period) {
                add_power(load, at, busy);
                add_power(load, fmin(at + period / 2, stop), idle);
            }
            add_power(load, stop, outside);
            break;
        case BURST_FIRST:
            add_power(load, start, busy);
            add_power(load, start + burst, idle);
            break;
        case BURST_LAST:
            add_power(load, stop - burst, busy);
            add_power(load, stop, idle);
            break;
        default:
            add_power(load, start, busy);
            add_power(load, stop, idle);
        }
    }
}

static int64_t ns_of(double when)
{
    return (int64_t)((when + 100) * 1e9);
}

static const struct wm_region_path path = { "region", WM_REGION_NO_PATH, 0, false };

static const struct wm_region_path *find_path(const void *context, uint32_t number)
{
    (void)context;
    (void)number;
    return &path;
}

static const struct wm_region_paths paths = { find_path, NULL };

static void edge(struct wm_regions *regions, const struct calls *calls, size_t i,
                 bool closes)
{
    const struct wm_region_edge made = {
        .when_ns = ns_of(closes ? calls->stop[i] : calls->start[i]),
        .start_ns = ns_of(calls->start[i]),
        .kind = closes ? WM_REGION_CLOSES : WM_REGION_OPENS,
    };

    assert_int_equal(wm_regions_edge(regions, &made, 1, &paths), WM_OK);
}

struct sensor {
    const char *name;
    double period;
    bool has_most; /* it is known what can be drawn at most */
};

static const struct sensor sensors[] = {
    { "RAPL, 1 ms", 0.000976563, false },
    { "a GPU, 100 ms", 0.1, false },
    { "a fast GPU, 20 ms", 0.02, false },
    { "an estimate, 20 ms", 0.02, true },
};

struct outcome {
    double truth, error, stated;
    bool is_short;
};

/* What a counter shows is off by as much. */
#define NOISE_J 0.02

static struct outcome measure(const struct sensor *sensor, enum schedule schedule,
                              enum load_kind kind, double length)
{
    static struct load load;
    static struct calls calls;
    struct wm_regions *regions;
    struct wm_error err;
    double phase = uniform(0, sensor->period), truth = 0, first = 0, last = -1, noise = 0;
    double told = 0;
    size_t starts = 0, stops = 0;
    bool is_first = true;

    make_calls(&calls, schedule, length);
    make_load(&load, kind, &calls);
    assert_int_equal(wm_regions_new(100 * 1000 * 1000, WM_REGIONS_MOST, &regions, &err),
                     WM_OK);
    for (double when = 0;; when += 0.1 * uniform(0.999, 1.01)) {
        when = fmin(when, calls.end);
        double latch = floor((when - phase) / sensor->period) * sensor->period + phase;
        double joules = joules_until(&load, latch);
        if (latch != last)
            noise = uniform(-NOISE_J, NOISE_J);
        last = latch;
        if (is_first)
            first = joules;
        told = joules;
        const unsigned gpu = WM_REGION_BIT(WM_REGION_GPU_ENERGY);
        struct wm_region_totals totals = { ns_of(when), .known = gpu, .measured = gpu };
        totals.used[WM_REGION_GPU_ENERGY] = joules - first + noise;
        totals.period_s[WM_REGION_GPU_ENERGY] = sensor->period;
        wm_regions_tick(regions, &totals, NULL);
        for (;;) {
            bool can_start = starts < calls.count && calls.start[starts] <= when;
            bool can_stop = stops < starts && calls.stop[stops] <= when;
            if (can_start && (!can_stop || calls.start[starts] <= calls.stop[stops]))
                edge(regions, &calls, starts++, false);
            else if (can_stop)
                edge(regions, &calls, stops++, true);
            else
                break;
        }
        wm_regions_complete(regions, totals.when_ns);
        is_first = false;
        if (when >= calls.end)
            break;
    }
    for (size_t i = 0; i < calls.count; i++)
        truth += joules_until(&load, calls.stop[i]) - joules_until(&load, calls.start[i]);

    struct wm_region_whole wholes[WM_REGION_RESOURCES] = { 0 };
    struct wm_region_whole *whole = &wholes[WM_REGION_GPU_ENERGY];
    whole->used.known = true;
    whole->used.number = joules_until(&load, calls.end) - joules_until(&load, 0);
    whole->has_uncertainty = true;
    whole->most.known = sensor->has_most;
    for (size_t i = 0; i < load.count; i++)
        whole->most.number = fmax(whole->most.number, 1.001 * load.watts[i]);
    if (schedule == AT_THE_END) {
        /* What the sensor did not tell goes on as before, by a statement of the whole that
         * is just right. */
        double before = told - joules_until(&load, last - sensor->period),
               right = whole->used.number;
        whole->used.number =
            told - joules_until(&load, 0) + before * (calls.end - last) / sensor->period;
        whole->random = fabs(whole->used.number - right) / whole->used.number;
    }
    struct wm_region_figures figures;
    assert_true(wm_regions_path(regions, 0, wholes, &figures));
    const struct wm_region_use *use = &figures.inclusive.uses[WM_REGION_GPU_ENERGY];
    wm_regions_free(regions);
    return (struct outcome) {
        .truth = truth,
        .error = use->used.number - truth,
        .stated = hypot(use->systematic, use->random),
        .is_short = use->is_short,
    };
}

#define RUNS 60
#define LEAST_HELD 0.95
#define DECADES 4

struct tally {
    unsigned runs, held;
};

static void count(struct tally *tally, bool held)
{
    tally->runs++;
    tally->held += held;
}

static bool is_good(const char *name, const struct tally *tally)
{
    print_message("  %-20s %5.1f %% of %u\n", name, 100.0 * tally->held / tally->runs,
                  tally->runs);
    return tally->held >= LEAST_HELD * tally->runs;
}

/* Regions of a millisecond to ten seconds. */
static void test_holds(void **state)
{
    static const char *const decade_names[DECADES] = { "1 to 10 ms", "10 to 100 ms",
                                                       "100 ms to 1 s", "1 to 10 s" };
    struct tally by_sensor[ARRAY_LEN(sensors)] = { 0 }, by_load[LOADS] = { 0 };
    struct tally by_schedule[SCHEDULES] = { 0 }, by_decade[DECADES] = { 0 };
    bool good = true;

    (void)state;
    for (size_t run = 0; run < RUNS * ARRAY_LEN(sensors) * LOADS * SCHEDULES; run++) {
        size_t sensor = run % ARRAY_LEN(sensors);
        enum load_kind kind = (enum load_kind)(run / ARRAY_LEN(sensors) % LOADS);
        enum schedule schedule =
            (enum schedule)(run / ARRAY_LEN(sensors) / LOADS % SCHEDULES);
        double decade = uniform(0, DECADES);
        struct outcome outcome =
            measure(&sensors[sensor], schedule, kind, 0.001 * pow(10, decade));
        bool held = fabs(outcome.error) <= outcome.stated;
        count(&by_sensor[sensor], held);
        count(&by_load[kind], held);
        count(&by_schedule[schedule], held);
        count(&by_decade[(size_t)decade], held);
    }
    for (size_t i = 0; i < ARRAY_LEN(sensors); i++)
        good = is_good(sensors[i].name, &by_sensor[i]) && good;
    for (size_t i = 0; i < LOADS; i++)
        good = is_good(load_names[i], &by_load[i]) && good;
    for (size_t i = 0; i < SCHEDULES; i++)
        good = is_good(schedule_names[i], &by_schedule[i]) && good;
    for (size_t i = 0; i < DECADES; i++)
        good = is_good(decade_names[i], &by_decade[i]) && good;
    assert_true(good);
}

/* What is stated has to be of some use where the region is long or there are many calls
 * and a steady load. */
static void test_is_not_wide(void **state)
{
    static const struct {
        enum schedule schedule;
        enum load_kind kind;
        double length, most; /* the last: of what is stated, relative */
    } rows[] = {
        { ONCE, CONSTANT, 10, 0.01 },       { ONCE, BUSY_INSIDE, 10, 0.03 },
        { ONCE, SQUARE_INSIDE, 10, 0.05 },  { ONCE, BUSY_INSIDE, 1, 0.25 },
        { AT_RANDOM, BUSY_INSIDE, 3, 0.1 }, { MANY, CONSTANT, 0.01, 0.1 },
        { MANY, SQUARE, 0.01, 0.6 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double sum = 0;
        for (int run = 0; run < RUNS; run++) {
            struct outcome outcome =
                measure(&sensors[0], rows[i].schedule, rows[i].kind, rows[i].length);
            sum += outcome.stated / outcome.truth;
        }
        print_message("  %s, %s, %g s: %.1f %%\n", load_names[rows[i].kind],
                      schedule_names[rows[i].schedule], rows[i].length, 100 * sum / RUNS);
        assert_true(sum / RUNS <= rows[i].most);
    }
}

/* What is shorter than three steps of what the sensor or a tick tells is said to be. */
static void test_short_is_said(void **state)
{
    static const struct {
        size_t sensor;
        double length;
        bool is_short;
    } rows[] = {
        { 0, 0.001, true }, { 0, 0.25, true }, { 0, 0.4, false },
        { 1, 0.25, true },  { 1, 0.5, false }, { 1, 5, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct outcome outcome =
            measure(&sensors[rows[i].sensor], AT_A_BEAT, CONSTANT, rows[i].length);
        assert_int_equal(outcome.is_short, rows[i].is_short);
    }
}

/* A steady load, and a sensor that tells nothing of the region at its end: what was used
 * before goes on, and nobody knows whether it really did. */
static void test_last_words(void **state)
{
    static const struct {
        const char *name;
        double watts, end, length;
        double told; /* of the watts */
    } rows[] = {
        { "10 ms of a GPU's 250 W", 250, 1.01, 0.01, 1 },
        { "50 ms", 250, 1.05, 0.05, 1 },
        { "it told no more in the end", 250, 1.01, 0.01, 0 },
        { "it told more", 250, 1.01, 0.01, 2 },
        { "it told less than before", 250, 1.01, 0.01, -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_region_meter meter = { .period_s = 0.1 };
        struct wm_region_share share = { 0 };
        struct wm_region_time time = { 0 };
        struct wm_region_use use;
        wm_region_meter_start(&meter, 0, 0);
        for (int tick = 1; tick <= 10; tick++) {
            wm_region_share_take(&share, &meter, &time, tick * 100000000,
                                 rows[i].watts * tick / 10);
            wm_region_meter_take(&meter, tick * 100000000, rows[i].watts * tick / 10);
        }
        double left = rows[i].end - 1, truth = rows[i].watts * rows[i].length;
        struct wm_region_whole whole = {
            .used = { true, rows[i].watts * (1 + rows[i].told * left) },
            .has_uncertainty = true,
        };
        time.ns = time.squares = rows[i].length * 1e9;
        print_message("  %s\n", rows[i].name);
        wm_region_share_result(&share, &meter, &time, (int64_t)(rows[i].end * 1e9), 1,
                               &whole, &use);
        if (rows[i].told == 1)
            assert_true(fabs(use.used.number - truth) < 1e-6);
        assert_true(fabs(use.used.number - truth) <= use.random);
        assert_true(use.random > 0.5 * truth);
        assert_true(use.is_short);

        /* Where it cannot be more than 300 W, no more is in doubt. */
        whole.most = (struct wm_known) { true, 300 };
        wm_region_share_result(&share, &meter, &time, (int64_t)(rows[i].end * 1e9), 1,
                               &whole, &use);
        double room =
            fmax(fabs(use.used.number), fabs(300 * rows[i].length - use.used.number));
        assert_true(fabs(use.used.number - truth) <= use.random);
        assert_true(use.random <= room * (1 + 1e-9));
    }
}

/* A thread that sleeps from the middle of a step on, after it was busy, but for what other
 * programs took of its core. */
static void test_whole_cores(void **state)
{
    static const double cpu_seconds[] = { 0.09, 0.18, 0.27, 0.36, 0.41, 0.41, 0.41 };
    const struct wm_region_whole whole = { .used = { true, 0.41 },
                                           .most = { true, 64 },
                                           .grain = 1 };
    struct wm_region_meter meter = { 0 };
    struct wm_region_share share = { 0 };
    struct wm_region_time time = { 0 };
    struct wm_region_use use;

    (void)state;
    wm_region_meter_start(&meter, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(cpu_seconds); i++) {
        int64_t when_ns = (int64_t)(i + 1) * 100000000;
        if (i >= 4)
            time.ns = time.squares = (double)(when_ns - 450000000);
        wm_region_share_take(&share, &meter, &time, when_ns, cpu_seconds[i]);
        wm_region_meter_take(&meter, when_ns, cpu_seconds[i]);
    }
    wm_region_share_result(&share, &meter, &time, 700000000, 1, &whole, &use);
    assert_true(fabs(use.used.number - 0.025) < 1e-9);
    assert_true(use.random >= use.used.number);
    assert_true(use.random < 1.1 * use.used.number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),         cmocka_unit_test(test_is_not_wide),
        cmocka_unit_test(test_short_is_said), cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_whole_cores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
