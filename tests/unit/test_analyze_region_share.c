/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyze_region_share.c - whether the true joules of a region lie within what is
 * stated, 95 times of 100: made-up loads that go with the region, against it, or in step
 * with its calls, ticks of 100 ms, and counters that are renewed at a pace of their own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Threads in virtual time, in steps of half a millisecond: which region each is in, and
 * whether it works. The package draws so much idle, and so much more for each core's
 * work, which differs from thread to thread. */
#define STEP_S 0.0005
#define MOST_STEPS 8000
#define MOST_THREADS 8
#define NOWHERE UINT8_MAX

enum { OUTER, WORK, REST, THREAD_PATHS, OUTSIDE = MOST_THREADS * THREAD_PATHS };

struct machine {
    unsigned cores, threads, steps;
    double idle_w, core_w, factor[MOST_THREADS], others;
    double period_s; /* of the counter */
    uint8_t region[MOST_THREADS][MOST_STEPS + 1];
    bool is_busy[MOST_THREADS][MOST_STEPS];
    bool is_nested[MOST_THREADS];    /* its work is in a region that is open all the time */
    bool is_unclocked[MOST_THREADS]; /* its calls are */
    bool is_model, has_baseline;
    double joules[MOST_STEPS + 1], tree_s[MOST_STEPS + 1], busy_s[MOST_STEPS + 1];
    double truth[OUTSIDE + 1];
};

static struct machine machine;

static unsigned steps_of(double seconds)
{
    return (unsigned)fmax(round(seconds / STEP_S), 1);
}

/* A thread from a step on: in a region, for so long, and busy for a part of it, in turns of
 * that length. Where that ends. */
static unsigned stay(unsigned thread, unsigned from, uint8_t region, double seconds,
                     double duty, double turn_s)
{
    unsigned until = from + steps_of(seconds), turn = steps_of(turn_s);

    for (unsigned i = from; i < until && i < machine.steps; i++) {
        machine.region[thread][i] = region;
        machine.is_busy[thread][i] = (i - from) % turn < duty * turn;
    }
    return until;
}

enum behaviour { ASLEEP, AT_WORK, IN_PARTS, IN_TURN, SHORT, WORKER, BEHAVIOURS };

static void behave(unsigned thread, enum behaviour behaviour, double all_s)
{
    double work_s = spread_out(0.003, 0.06), rest_s = spread_out(0.003, 0.06);
    double gap_s = spread_out(0.05, 0.4), beside = uniform(0, 1) < 0.5 ? 0 : uniform(0, 1);
    bool is_nested = uniform(0, 1) < 0.3;
    uint8_t around = is_nested ? OUTER : NOWHERE;
    unsigned at = 0;

    machine.is_nested[thread] = is_nested && behaviour == SHORT;
    switch (behaviour) {
    case ASLEEP:
        stay(thread, 0, REST, all_s, uniform(0, 0.02), 0.1);
        return;
    case AT_WORK:
        stay(thread, 0, WORK, all_s, 1, 1);
        return;
    case IN_PARTS:
        stay(thread, 0, WORK, all_s, uniform(0.05, 0.95), spread_out(0.005, 0.5));
        return;
    case WORKER:
        stay(thread, 0, NOWHERE, all_s, uniform(0.3, 1), spread_out(0.005, 0.5));
        return;
    default:
        break;
    }
    while (at < machine.steps) {
        double part = uniform(0.7, 1.3);
        at = stay(thread, at, WORK, work_s * part, 1, 1);
        if (behaviour == IN_TURN)
            at = stay(thread, at, REST, rest_s * part, 0, 1);
        else
            at = stay(thread, at, around, gap_s * part, beside, 0.01);
    }
}

static bool is_there(unsigned thread, unsigned step)
{
    return machine.region[thread][step] != NOWHERE;
}

/* What each step took, and whose it was: idle power and other programs' work are those
 * of the regions that are open, evenly, as is work of threads outside of all. */
static void run_machine(void)
{
    bool has_others = false;

    machine.joules[0] = machine.tree_s[0] = machine.busy_s[0] = 0;
    memset(machine.truth, 0, sizeof(machine.truth));
    for (unsigned i = 0; i < machine.steps; i++) {
        double watts = machine.idle_w, tree = 0, shared;
        unsigned open = 0;
        if (i % steps_of(0.02) == 0)
            has_others = uniform(0, 1) < machine.others / ceil(machine.others + 0.01);
        double others = has_others ? ceil(machine.others) : 0;
        watts += others * machine.core_w;
        shared = watts;
        for (unsigned t = 0; t < machine.threads; t++) {
            double own = machine.is_busy[t][i] ? machine.core_w * machine.factor[t] : 0;
            tree += machine.is_busy[t][i];
            watts += own;
            open += is_there(t, i);
            if (is_there(t, i))
                machine.truth[t * THREAD_PATHS + machine.region[t][i]] += own * STEP_S;
            else
                shared += own;
        }
        for (unsigned t = 0; t < machine.threads; t++) {
            if (is_there(t, i))
                machine.truth[t * THREAD_PATHS + machine.region[t][i]] +=
                    shared * STEP_S / open;
        }
        machine.truth[OUTSIDE] += open == 0 ? shared * STEP_S : 0;
        machine.joules[i + 1] = machine.joules[i] + watts * STEP_S;
        machine.tree_s[i + 1] = machine.tree_s[i] + tree * STEP_S;
        machine.busy_s[i + 1] = machine.busy_s[i] + (tree + others) * STEP_S;
    }
}

static struct wm_region_path machine_paths[OUTSIDE];

static const struct wm_region_path *find_machine_path(const void *context, uint32_t number)
{
    (void)context;
    return &machine_paths[number];
}

/* A thread that is outside of its work in a region has that around it. */
static void name_paths(void)
{
    static char names[OUTSIDE][16];

    for (unsigned i = 0; i < OUTSIDE; i++) {
        bool is_inside = i % THREAD_PATHS == WORK && machine.is_nested[i / THREAD_PATHS];
        snprintf(names[i], sizeof(names[i]), "%u", i);
        machine_paths[i] = (struct wm_region_path) {
            names[i], is_inside ? i - WORK + OUTER : WM_REGION_NO_PATH, is_inside, false
        };
    }
}

/* The calls that are open while a thread is in a region, a bit for each path. */
static unsigned open_in(unsigned thread, uint8_t region)
{
    if (region == NOWHERE)
        return 0;
    return 1U << region | (region == WORK && machine.is_nested[thread] ? 1U << OUTER : 0);
}

struct made_call {
    unsigned start;
    double cpu_s;
};

static void give_edge(struct wm_regions *regions, unsigned thread, unsigned which,
                      unsigned step, double cpu_s, bool closes)
{
    static struct made_call calls[MOST_THREADS][THREAD_PATHS];
    const struct wm_region_paths known = { find_machine_path, NULL };
    struct made_call *call = &calls[thread][which];

    if (!closes)
        *call = (struct made_call) { step, cpu_s };
    const struct wm_region_edge made = {
        .when_ns = ns_of(step * STEP_S),
        .start_ns = ns_of(call->start * STEP_S),
        .path = thread * THREAD_PATHS + which,
        .thread = thread,
        .kind = closes ? WM_REGION_CLOSES : WM_REGION_OPENS,
        .clocked = !closes || machine.is_unclocked[thread]
                       ? 0
                       : 1 + (uint64_t)((cpu_s - call->cpu_s) * 1e9 + 0.5),
    };
    assert_int_equal(wm_regions_edge(regions, &made, 1, &known), WM_OK);
}

static void give_edges(struct wm_regions *regions, unsigned from, unsigned until)
{
    static double cpu_s[MOST_THREADS];

    for (unsigned i = from; i < until; i++) {
        for (unsigned t = 0; t < machine.threads; t++) {
            cpu_s[t] = i == 0 ? 0 : cpu_s[t] + STEP_S * machine.is_busy[t][i - 1];
            unsigned now = i < machine.steps ? open_in(t, machine.region[t][i]) : 0;
            unsigned before = i > 0 ? open_in(t, machine.region[t][i - 1]) : 0;
            for (unsigned k = THREAD_PATHS; k-- > 0;) {
                if (before & ~now & 1U << k)
                    give_edge(regions, t, k, i, cpu_s[t], true);
            }
            for (unsigned k = 0; k < THREAD_PATHS; k++) {
                if (now & ~before & 1U << k)
                    give_edge(regions, t, k, i, cpu_s[t], false);
            }
        }
    }
}

static struct wm_regions *watch_machine(void)
{
    const unsigned both =
        WM_REGION_BIT(WM_REGION_CPU_TIME) | WM_REGION_BIT(WM_REGION_CPU_ENERGY);
    unsigned at = 0, latch = steps_of(machine.period_s);
    struct wm_regions *regions;

    assert_int_equal(wm_regions_new(100 * 1000 * 1000, WM_REGIONS_MOST, &regions, NULL),
                     WM_OK);
    for (unsigned i = 0;; i += steps_of(0.1 * uniform(0.999, 1.02))) {
        i = i < machine.steps ? i : machine.steps;
        struct wm_region_totals totals = { .when_ns = ns_of(i * STEP_S),
                                           .known = both,
                                           .measured = both };
        totals.used[WM_REGION_CPU_TIME] = machine.tree_s[i];
        totals.used[WM_REGION_CPU_ENERGY] = machine.joules[i / latch * latch];
        totals.period_s[WM_REGION_CPU_ENERGY] = machine.period_s;
        totals.busy_s = (struct wm_known) { true, floor(machine.busy_s[i] * 100) / 100 };
        wm_regions_tick(regions, &totals, NULL);
        give_edges(regions, at, i < machine.steps ? i + 1 : machine.steps + 1);
        at = i + 1;
        wm_regions_complete(regions, totals.when_ns);
        if (i == machine.steps)
            return regions;
    }
}

enum scene {
    ONE_IN_TURN,
    ONE_SHORT,
    ONE_ASLEEP,
    SEVERAL_ASLEEP,
    PARTS,
    BESIDE_WORKERS,
    MIXED,
    UNCLOCKED,
    UNCLOCKED_PARTLY,
    SCENES,
};

static const struct {
    const char *name;
    enum behaviour behaviours[MOST_THREADS];
    unsigned threads;
    bool is_any; /* so many, of any behaviour */
} scenes[SCENES] = {
    [ONE_IN_TURN] = { "a thread that works and sleeps in turn", { IN_TURN }, 1, false },
    [ONE_SHORT] = { "a thread's short calls", { SHORT }, 1, false },
    [ONE_ASLEEP] = { "two threads, one asleep", { ASLEEP, AT_WORK }, 2, false },
    [SEVERAL_ASLEEP] = { "four threads, three asleep",
                         { ASLEEP, ASLEEP, ASLEEP, IN_PARTS },
                         4,
                         false },
    [PARTS] = { "four threads that work for parts of the time",
                { IN_PARTS, IN_PARTS, IN_PARTS, IN_PARTS },
                4,
                false },
    [BESIDE_WORKERS] = { "in turn beside two threads without regions",
                         { IN_TURN, WORKER, WORKER },
                         3,
                         false },
    [MIXED] = { "four threads of any kind", { IN_TURN }, 4, true },
    [UNCLOCKED_PARTLY] = { "four threads, some without a clock", { IN_TURN }, 4, true },
    [UNCLOCKED] = { "short calls without a clock", { SHORT, IN_PARTS }, 2, false },
};

static void make_machine(enum scene scene, double period_s)
{
    static const unsigned cores[] = { 2, 4, 8, 16, 64 };
    double all_s = uniform(1, MOST_STEPS * STEP_S), part = uniform(0.05, 0.45);
    unsigned which = (unsigned)uniform(0, ARRAY_LEN(cores));

    machine.threads = scenes[scene].threads;
    while (cores[which] < machine.threads)
        which++;
    machine.cores = cores[which];
    machine.steps = steps_of(all_s);
    machine.period_s = period_s;
    machine.core_w = spread_out(2, 20);
    machine.idle_w = machine.core_w * machine.cores * part / (1 - part);
    machine.others = uniform(0, 1) < 0.5 ? 0 : uniform(0, 0.3);
    machine.is_model = period_s > 0.005;
    machine.has_baseline = !machine.is_model && uniform(0, 1) < 0.2;
    for (unsigned t = 0; t < machine.threads; t++) {
        enum behaviour behaviour = scenes[scene].is_any
                                       ? (enum behaviour)uniform(0, BEHAVIOURS)
                                       : scenes[scene].behaviours[t];
        machine.is_unclocked[t] =
            scene == UNCLOCKED || (scene == UNCLOCKED_PARTLY && t % 2);
        machine.factor[t] = machine.is_model ? 1 : uniform(0.8, 1.2);
        memset(machine.region[t], NOWHERE, sizeof(machine.region[t]));
        memset(machine.is_busy[t], 0, sizeof(machine.is_busy[t]));
        behave(t, behaviour, all_s);
    }
}

static struct wm_region_package package_of_machine(void)
{
    unsigned end = machine.steps;
    double seconds = end * STEP_S;
    const struct wm_known most = { machine.is_model,
                                   machine.idle_w + machine.core_w * machine.cores };

    return (struct wm_region_package) {
        .joules = machine.joules[end],
        .seconds = seconds,
        .cores = machine.cores,
        .busy_s = machine.busy_s[end],
        .tree_s = machine.tree_s[end],
        .tree_j = machine.joules[end] * machine.tree_s[end] / (machine.cores * seconds),
        .most_w = most,
        .idle_w = { machine.has_baseline, machine.idle_w },
        .idle_off_w = 0.02 * machine.idle_w,
    };
}

#define MOST_FIGURES 20000

struct scene_tally {
    unsigned runs, held;
    double errors[MOST_FIGURES], widths[MOST_FIGURES];
};

static int compare_numbers(const void *one, const void *other)
{
    const double *a = one, *b = other;

    return (*a > *b) - (*a < *b);
}

static double quantile(double *numbers, size_t count, double part)
{
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    return numbers[(size_t)(part * (double)(count - 1))];
}

static void judge(struct scene_tally *tally, const struct wm_region_use *use, double truth)
{
    double stated = hypot(use->systematic, use->random);

    if (truth < 0.005 * machine.joules[machine.steps] || tally->runs == MOST_FIGURES)
        return;
    assert_true(use->used.known && use->has_uncertainty);
    tally->errors[tally->runs] = fabs(use->used.number - truth) / use->used.number;
    tally->widths[tally->runs] = stated / use->used.number;
    tally->runs++;
    tally->held += fabs(use->used.number - truth) <= stated;
}

static void try_scene(enum scene scene, double period_s, struct scene_tally *tally)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES] = { 0 };
    struct wm_region_figures figures;
    double sum = 0;

    make_machine(scene, period_s);
    run_machine();
    name_paths();
    struct wm_regions *regions = watch_machine();
    wholes[WM_REGION_CPU_TIME] = (struct wm_region_whole) {
        .used = { true, machine.tree_s[machine.steps] },
        .most = { true, machine.cores },
        .has_uncertainty = true,
        .quantum = 1,
    };
    wholes[WM_REGION_CPU_ENERGY] = (struct wm_region_whole) {
        .used = { true, machine.joules[machine.steps] },
        .most = { machine.is_model, machine.idle_w + machine.core_w * machine.cores },
        .has_uncertainty = true,
    };
    const struct wm_region_package package = package_of_machine();
    assert_int_equal(wm_regions_clock(regions, wholes, &package), WM_OK);
    for (uint32_t k = 0; k < OUTSIDE; k++) {
        if (!wm_regions_path(regions, k, wholes, &figures))
            continue;
        const struct wm_region_use *use = &figures.exclusive.uses[WM_REGION_CPU_ENERGY];
        sum += use->used.number;
        judge(tally, use, machine.truth[k]);
    }
    struct wm_region_cost rest;
    wm_regions_rest(regions, wholes, &rest);
    sum += rest.uses[WM_REGION_CPU_ENERGY].used.number;
    judge(tally, &rest.uses[WM_REGION_CPU_ENERGY], machine.truth[OUTSIDE]);
    assert_true(fabs(sum - machine.joules[machine.steps]) < 1e-6 * sum);
    wm_regions_free(regions);
}

#define LEAST_OF_SCENE 0.92
#define SCENE_RUNS 300

static void test_threads(void **state)
{
    static const double periods[] = { 0.001, 0.02 };
    static struct scene_tally tally;
    bool good = true;

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(periods) * SCENES; k++) {
        enum scene scene = (enum scene)(k % SCENES);
        double period_s = periods[k / SCENES];
        tally.runs = tally.held = 0;
        for (int run = 0; run < SCENE_RUNS; run++)
            try_scene(scene, period_s, &tally);
        double needed = quantile(tally.errors, tally.runs, 0.95);
        double stated = quantile(tally.widths, tally.runs, 0.5);
        print_message("  %-46s %s %5.1f %% of %u; %5.1f %% stated, %5.1f %% needed\n",
                      scenes[scene].name, k < SCENES ? "measured" : "modelled",
                      100.0 * tally.held / tally.runs, tally.runs, 100 * stated,
                      100 * needed);
        good = good && tally.held >= LEAST_OF_SCENE * tally.runs;
    }
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
                               &whole, NULL, &use);
        if (rows[i].told == 1)
            assert_true(fabs(use.used.number - truth) < 1e-6);
        assert_true(fabs(use.used.number - truth) <= use.random);
        assert_true(use.random > 0.5 * truth);
        assert_true(use.is_short);

        /* Where it cannot be more than 300 W, no more is in doubt. */
        whole.most = (struct wm_known) { true, 300 };
        wm_region_share_result(&share, &meter, &time, (int64_t)(rows[i].end * 1e9), 1,
                               &whole, NULL, &use);
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
                                           .quantum = 1 };
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
    wm_region_share_result(&share, &meter, &time, 700000000, 1, &whole, NULL, &use);
    assert_true(fabs(use.used.number - 0.025) < 1e-9);
    assert_true(use.random >= use.used.number);
    assert_true(use.random < 1.1 * use.used.number);
}

UNIT(analyze_region_share)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),         cmocka_unit_test(test_is_not_wide),
        cmocka_unit_test(test_short_is_said), cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_whole_cores),   cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
