/* SPDX-License-Identifier: Apache-2.0 */
/* test_energy_report.c - which devices count, what they come to, and whose it was. */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_build.h"
#include "analyze/analyze_state.h"
#include "made_load.h"
#include "session.h"

/* Of a figure that sensors' edges may move a little. */
#define NEARLY 0.01

#define METER(source_, label_, kind_, origin_)                                             \
    {                                                                                      \
        .source = source_, .device = label_, .label = label_, .metric = "energy",          \
        .unit = "J", .device_kind = kind_, .kind = WM_COUNTER, .origin = origin_,          \
        .period_ns = 1000000                                                               \
    }
#define RAPL(label_, kind_) METER("rapl", label_, kind_, WM_MEASURED)

/* Four cores half busy, half of that by the tree, which has a quarter of the memory. */
#define LOAD                                                                               \
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 100, 102, 104, 106, 108 } },          \
        { HOST("memory_used", "B", WM_GAUGE, 0), { 800, 800, 800, 800, 800 } },            \
        { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 1, 2, 3, 4 } },               \
    {                                                                                      \
        TREE("tree", "memory_total", "B"),                                                 \
        {                                                                                  \
            200, 200, 200, 200, 200                                                        \
        }                                                                                  \
    }

static const struct series server[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { RAPL("package0_core", WM_DEVICE_CPU_PART), { 0, 8, 16, 24, 32 } },
    { RAPL("package1", WM_DEVICE_CPU), { 7, 27, 47, 67, 87 } },
    { RAPL("dram0", WM_DEVICE_DRAM), { 0, 4, 8, 12, 16 } },
    { RAPL("psys", WM_DEVICE_PLATFORM), { 0, 50, 100, 150, 200 } },
    { METER("hwmon", "socket0", WM_DEVICE_CPU, WM_MEASURED), { 0, 11, 22, 33, 44 } },
};

/* RAPL that stands still, as in a virtual machine. */
static const struct series dead[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 5, 5, 5, 5, 5 } },
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
};

static const struct series only_dead[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 5, 5, 5, 5, 5 } },
};

static const struct series dead_with_memory[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 5, 5, 5, 5, 5 } },
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
    { METER("estimate", "dram", WM_DEVICE_DRAM, WM_ESTIMATED), { 0, 2, 4, 6, 8 } },
};

static const struct series guessed_memory[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
    { METER("estimate", "dram", WM_DEVICE_DRAM, WM_ESTIMATED), { 0, 2, 4, 6, 8 } },
};

#define NVIDIA(metric_, unit_, kind_) GPU("0", metric_, unit_, kind_, WM_MEASURED)
#define GPU_LOAD                                                                           \
    { NVIDIA("energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },                      \
        { NVIDIA("utilization", "ratio", WM_GAUGE), { 0.5, 0.5, 0.5, 0.5, 0.5 } },         \
        { NVIDIA("memory_used", "B", WM_GAUGE), { 40, 40, 40, 40, 40 } },                  \
    {                                                                                      \
        TREE_ON_GPU("0"),                                                                  \
        {                                                                                  \
            10, 10, 10, 10, 10                                                             \
        }                                                                                  \
    }

/* Without the processes' use of it memory stands for it: a quarter of the work, and
 * of the idling. */
static const struct series gpu[] = { GPU_LOAD };

static const struct series gpu_with_use[] = {
    GPU_LOAD,
    { { .source = "tracker",
        .device = "GPU-00000",
        .label = "gpu0",
        .metric = "tree_utilization",
        .unit = "ratio",
        .device_kind = WM_DEVICE_GPU },
      { 0.4, 0.4, 0.4, 0.4, 0.4 } },
};

static const struct series gpu_untold[] = {
    { NVIDIA("energy", "J", WM_COUNTER), { 0, 100, 200, 300, 400 } },
    { NVIDIA("utilization", "ratio", WM_GAUGE), { 0.5, 0.5, 0.5, 0.5, 0.5 } },
    { NVIDIA("memory_used", "B", WM_GAUGE), { 40, 40, 40, 40, 40 } },
};

/* A GPU that is a part of the processor: whatever its power, it is not the GPU's. */
#define INTEGRATED(metric_, unit_, kind_, device_kind_)                                    \
    {                                                                                      \
        .source = "drm", .device = "0000:00:02.0", .label = "card1", .model = "Intel GPU", \
        .metric = metric_, .unit = unit_, .device_kind = device_kind_, .kind = kind_,      \
        .sensor.contains = WM_CONTAINS_PACKAGE                                             \
    }
#define INTEGRATED_GPU                                                                     \
    { INTEGRATED("energy", "J", WM_COUNTER, WM_DEVICE_GPU),                                \
      { MISSING, MISSING, MISSING, MISSING, MISSING } },                                   \
        { INTEGRATED("utilization", "ratio", WM_GAUGE, WM_DEVICE_GPU),                     \
          { 0.1, 0.1, 0.1, 0.1, 0.1 } },                                                   \
    {                                                                                      \
        INTEGRATED("power", "W", WM_GAUGE, WM_DEVICE_CPU),                                 \
        {                                                                                  \
            3, 3, 3, 3, 3                                                                  \
        }                                                                                  \
    }

static const struct series laptop[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    INTEGRATED_GPU,
    GPU_LOAD,
};

static const struct series untold_laptop[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { INTEGRATED("utilization", "ratio", WM_GAUGE, WM_DEVICE_GPU),
      { 0.1, 0.1, 0.1, 0.1, 0.1 } },
    { INTEGRATED("power", "W", WM_GAUGE, WM_DEVICE_CPU),
      { MISSING, MISSING, MISSING, MISSING, MISSING } },
    GPU_LOAD,
};

static const struct series integrated[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    INTEGRATED_GPU,
};

/* Whose the work was is not known for half of the time. */
static const struct series untold[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 100, 102, MISSING, 106, 108 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 1, 2, 3, 4 } },
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
};

/* Counters of memory beside an estimate that includes it. */
static const struct series included[] = {
    LOAD,
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
    { RAPL("dram0", WM_DEVICE_DRAM), { 0, 4, 8, 12, 16 } },
};

/* Memory whose counter stands still beside packages that count. */
static const struct series dead_memory[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { RAPL("dram0", WM_DEVICE_DRAM), { 5, 5, 5, 5, 5 } },
};

static const struct series dead_package[] = {
    LOAD,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { RAPL("package1", WM_DEVICE_CPU), { 5, 5, 5, 5, 5 } },
};

/* A meter of the platform, at 50 W. */
#define PSYS                                                                               \
    {                                                                                      \
        { .source = "rapl",                                                                \
          .device = "psys",                                                                \
          .label = "psys",                                                                 \
          .metric = "energy",                                                              \
          .unit = "J",                                                                     \
          .device_kind = WM_DEVICE_PLATFORM,                                               \
          .kind = WM_COUNTER,                                                              \
          .period_ns = 1000000,                                                            \
          .sensor.contains = WM_CONTAINS_PLATFORM },                                       \
        {                                                                                  \
            0, 50, 100, 150, 200                                                           \
        }                                                                                  \
    }

static const struct series metered[] = {
    LOAD,
    PSYS,
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
};

static const struct series metered_in_part[] = {
    LOAD,
    PSYS,
    { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    { RAPL("package1", WM_DEVICE_CPU), { 5, 5, 5, 5, 5 } },
};

static const struct series metered_less[] = {
    LOAD,
    PSYS,
    { METER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED), { 0, 5, 10, 15, 20 } },
    GPU_LOAD,
};

#define SERIES(series_) series_, ARRAY_LEN(series_)
#define UNKNOWN (-1)

static const struct {
    const char *name;
    const struct series *series;
    size_t count;
    double cpu, dram, gpus, total;
    enum wm_origin origin;
    double tree, idle, rest;
    bool has_max; /* the highest power is known */
} rows[] = {
    { "packages and memory, each once", SERIES(server), 120, 16, UNKNOWN, 136, WM_MEASURED,
      34, 60, 42, true },
    { "a dead counter, and an estimate", SERIES(dead), 20, UNKNOWN, UNKNOWN, 20,
      WM_ESTIMATED, 5, 10, 5, false },
    { "a dead counter", SERIES(only_dead), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, WM_MEASURED,
      UNKNOWN, UNKNOWN, UNKNOWN, false },
    { "a dead counter, and an estimate of the memory too", SERIES(dead_with_memory), 20, 8,
      UNKNOWN, 28, WM_ESTIMATED, 7, 10, 11, false },
    { "measured CPUs, and an estimate of the memory", SERIES(guessed_memory), 40, UNKNOWN,
      UNKNOWN, 40, WM_MEASURED, 10, 20, 10, true },
    { "a GPU in the processor and another one", SERIES(laptop), 40, UNKNOWN, 400, 440,
      WM_MEASURED, 110, 170, 160, true },
    { "a GPU in the processor alone", SERIES(integrated), 40, UNKNOWN, UNKNOWN, 40,
      WM_MEASURED, 10, 20, 10, true },
    { "a GPU shared by memory", SERIES(gpu), UNKNOWN, UNKNOWN, 400, 400, WM_MEASURED, 100,
      150, 150, true },
    { "a GPU shared by use", SERIES(gpu_with_use), UNKNOWN, UNKNOWN, 400, 400, WM_MEASURED,
      210, 150, 40, true },
    { "a GPU that does not tell whose", SERIES(gpu_untold), UNKNOWN, UNKNOWN, 400, 400,
      WM_MEASURED, UNKNOWN, UNKNOWN, UNKNOWN, true },
    { "work that is not known at times", SERIES(untold), 40, UNKNOWN, UNKNOWN, 40,
      WM_MEASURED, UNKNOWN, UNKNOWN, UNKNOWN, true },
    { "memory whose counter stands still", SERIES(dead_memory), 40, UNKNOWN, UNKNOWN, 40,
      WM_MEASURED, 10, 20, 10, true },
    { "a meter of all, and an estimate", SERIES(metered), 20, UNKNOWN, UNKNOWN, 200,
      WM_MEASURED, 50, 100, 50, true },
    { "a meter of all, and one package of two", SERIES(metered_in_part), 40, UNKNOWN,
      UNKNOWN, 200, WM_MEASURED, 50, 100, 50, false },
    { "a meter of less than a GPU", SERIES(metered_less), 20, UNKNOWN, 400, 420,
      WM_ESTIMATED, 105, 160, 155, false },
    { "an estimate that includes the memory", SERIES(included), 20, 16, UNKNOWN, 20,
      WM_ESTIMATED, 5, 10, 5, false },
};

static void check(const char *row, const char *what, const struct wm_value *value,
                  double expected)
{
    if (value->known != (expected != UNKNOWN))
        fail_msg("%s: %s is %sknown (%s)", row, what, value->known ? "" : "not ",
                 value->known ? "" : value->why);
    if (value->known && fabs(value->number - expected) > NEARLY * expected)
        fail_msg("%s: %s is %.12g, not %.12g", row, what, value->number, expected);
}

static void check_sum(const char *row, const struct wm_energy_sum *sum)
{
    const struct wm_energy_split *split = &sum->split;

    if (!sum->energy.known || !split->tree.known)
        return;
    double parts = split->tree.number + split->idle.number + split->rest.number;
    if (fabs(parts - sum->energy.number) > 1e-9 * sum->energy.number)
        fail_msg("%s: the parts are %.12g of %.12g", row, parts, sum->energy.number);
}

static struct wm_report *report_of(const struct series *series, size_t count)
{
    const struct wm_result result = {
        .end_ns = SESSION_START_NS + 4 * SECOND_NS,
        .cpu_total_seconds = { 0 },
        .cpu_main_seconds = { 0 },
        .cpu_descendants_seconds = { 0 },
        .peak_rss_bytes = { 0 },
        .ticks = 5,
    };
    const struct session session = {
        .run = { .interval_ns = SECOND_NS, .core_count = 4, .anchor_ns = SESSION_START_NS },
        .series = series,
        .series_count = count,
        .ticks = 5,
        .step_ns = SECOND_NS,
        .result = &result,
    };

    return session_report(&session);
}

static void test_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_report *report = report_of(rows[i].series, rows[i].count);
        const char *row = rows[i].name;
        check(row, "CPU", &report->cpu_energy.energy, rows[i].cpu);
        check(row, "memory", &report->dram_energy.energy, rows[i].dram);
        check(row, "GPUs", &report->gpu_energy.energy, rows[i].gpus);
        check(row, "total", &report->energy.energy, rows[i].total);
        check(row, "tree", &report->energy.split.tree, rows[i].tree);
        check(row, "idle", &report->energy.split.idle, rows[i].idle);
        check(row, "rest", &report->energy.split.rest, rows[i].rest);
        check(row, "mean power", &report->power.mean,
              rows[i].total == UNKNOWN ? UNKNOWN : rows[i].total / 4);
        if (report->energy.energy.known && report->energy.origin != rows[i].origin)
            fail_msg("%s: origin %d", row, (int)report->energy.origin);
        if (report->power.max.known != rows[i].has_max)
            fail_msg("%s: the highest power is %sknown", row,
                     report->power.max.known ? "" : "not ");
        if (report->power.max.known && report->power.max.number < rows[i].total / 4)
            fail_msg("%s: %g W at most", row, report->power.max.number);
        check_sum(row, &report->energy);
        check_sum(row, &report->cpu_energy);
        check_sum(row, &report->dram_energy);
        check_sum(row, &report->gpu_energy);
        wm_report_free(report);
    }
}

/* Packages, their parts, memory, the platform; each with its own figures. */
static void test_devices(void **state)
{
    static const char *const names[] = { "package0",      "package1", "socket0",
                                         "package0_core", "dram0",    "psys" };
    struct wm_report *report = report_of(server, ARRAY_LEN(server));

    (void)state;
    assert_int_equal(report->device_count, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_string_equal(report->devices[i].name, names[i]);
    assert_true(fabs(report->devices[1].figure.energy.number - 80) < 1);
    assert_true(fabs(report->devices[1].power.number - 20) < 0.3);
    assert_string_equal(report->devices[0].source, "rapl");
    assert_true(report->cover.has[WM_COST_CPU]);
    assert_true(report->cover.has[WM_COST_DRAM]);
    assert_false(report->cover.has[WM_COST_GPUS]);
    wm_report_free(report);
}

static double draw(void)
{
    return (double)rand() / RAND_MAX;
}

/* Whatever the workload, and however the joules were corrected meanwhile. */
static void test_parts_add_up(void **state)
{
    (void)state;
    for (unsigned number = 1; number <= 200; number++) {
        struct wm_share share = {
            .shortest_s = number % 3 ? 0.05 : 0,
            .idle_watts = { number % 2 == 0, 20 * draw() },
        };
        double joules = 0, unknown = 0;

        srand(number);
        for (int tick = 0; tick < 2000; tick++) {
            double seconds = 0.02 * draw();
            struct wm_work work = {
                .seconds = seconds,
                .is_known = draw() >= 0.1,
                .capacity = 8 * seconds,
                .busy = 10 * seconds * draw(),
                .tree = 6 * seconds * draw(),
                .tree_hold = { draw() >= 0.5, 1.5 * draw() },
            };
            joules += draw() < 0.3 ? 0 : 300 * seconds * (draw() - 0.02);
            wm_share_add(&share, joules, &work);
            double parts = share.tree + share.idle + share.rest;
            if (fabs(parts - share.joules) > 1e-9 * fmax(1, fabs(share.joules)))
                fail_msg("seed %u, tick %d: %.12g of %.12g", number, tick, parts,
                         share.joules);
            unknown = fmax(unknown, share.unknown_joules);
        }
        wm_share_end(&share, joules);
        assert_true(share.joules == joules);
        assert_true(share.tree >= 0 && share.tree <= joules);
    }
}

/* The kernel's CPU time, which is told in steps of 10 ms, as a sum of six counters. */
enum { COUNTERS = 6 };
struct told {
    double exact[COUNTERS];
};

static double tell(struct told *told, double busy)
{
    static const double parts[COUNTERS] = { 0.5, 0.1, 0.2, 0.05, 0.1, 0.05 };
    double steps = 0;

    for (int i = 0; i < COUNTERS; i++) {
        told->exact[i] += busy * parts[i];
        steps += floor(told->exact[i] / 0.01);
    }
    return steps * 0.01;
}

/* One run, divided by what the kernel tells, and by what was. */
static void divide_both(bool is_measured, bool is_full, double length,
                        struct wm_share ret_shares[2])
{
    double cores = 1 + floor(8 * draw()), idle = 5 + 45 * draw(), watts = 2 + 20 * draw();
    double tick = 0.01 + 0.1 * draw(), joules = 0, rate = 0, others = 0;
    struct told told = { { draw(), draw(), draw(), draw(), draw(), draw() } };
    double before = tell(&told, 0);

    for (int i = 0; i < 2; i++)
        ret_shares[i] = (struct wm_share) { .shortest_s = 0.5,
                                            .idle_watts = { is_measured, idle },
                                            .busy_step = i == 0 ? 0.01 : 0 };
    for (double at = 0; at < length; at += tick) {
        if (at == 0 || draw() < 0.2) {
            rate = cores * draw();
            others = is_full ? cores - rate : (cores - rate) * draw() * draw();
        }
        double busy = (rate + others) * tick;
        double after = tell(&told, busy);
        struct wm_work work = {
            tick, true, cores * tick, after - before, rate * tick, { 0 },
        };
        joules += idle * tick + watts * busy;
        wm_share_add(&ret_shares[0], joules, &work);
        work.busy = busy;
        wm_share_add(&ret_shares[1], joules, &work);
        before = after;
    }
    wm_share_end(&ret_shares[0], joules);
    wm_share_end(&ret_shares[1], joules);
}

/* The tree's part lies as near to what exact times would have made of it as is stated, and
 * what is stated is of the size of what it is off. */
static void test_steps_of_cpu_time(void **state)
{
    enum { RUNS = 4000 };
    const double chance = 2 * sqrt(0.95 * 0.05 / RUNS);
    static const struct {
        const char *name;
        bool is_measured, is_full;
        double shortest, longest;
    } cases[] = {
        { "idling measured", true, false, 1, 30 },
        { "idling measured, short", true, false, 0.1, 1 },
        { "idling measured, all cores busy", true, true, 0.1, 30 },
        { "all cores busy", false, true, 0.1, 30 },
        { "idling by time", false, false, 0.1, 30 },
    };

    (void)state;
    srand(7);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double stated = 0, found = 0;
        int within = 0;
        for (int run = 0; run < RUNS; run++) {
            double length =
                cases[i].shortest + draw() * (cases[i].longest - cases[i].shortest);
            struct wm_share shares[2];
            divide_both(cases[i].is_measured, cases[i].is_full, length, shares);
            double off = fabs(shares[0].tree - shares[1].tree);
            double joules = fmax(shares[1].joules, 1e-9);
            within += off <= wm_share_off(&shares[0]) + 1e-9 * joules;
            stated += wm_share_off(&shares[0]) / joules;
            found += off / joules;
        }
        print_message("%s: %.1f %% within, stated %.3f %%, found %.3f %% on average\n",
                      cases[i].name, 100.0 * within / RUNS, 100 * stated / RUNS,
                      100 * found / RUNS);
        if (within < (0.95 - chance) * RUNS || stated > 5 * found + 1e-6 * RUNS)
            fail_msg("%s: what is stated does not hold, or is too much", cases[i].name);
    }
}

/* Of several packages the one that tells nothing is named, and the others' energy is the
 * least that all took, in each figure that is made of it. */
static void test_who_is_dead(void **state)
{
    static const char why[] = "package1: the energy counter";
    struct wm_report *report = report_of(dead_package, ARRAY_LEN(dead_package));
    const struct wm_value *const at_least[] = { &report->cpu_energy.energy,
                                                &report->energy.energy, &report->power.mean,
                                                &report->power.max };

    (void)state;
    assert_true(fabs(report->energy.energy.number - 40) < 1);
    for (size_t i = 0; i < ARRAY_LEN(at_least); i++) {
        assert_true(at_least[i]->known && at_least[i]->why);
        assert_int_equal(strncmp(at_least[i]->why, why, strlen(why)), 0);
    }
    assert_false(report->energy.uncertainty.known);
    assert_false(report->energy.split.tree.known);
    assert_non_null(strstr(report->remarks[0], "CPU energy lacks package1: "));
    wm_report_free(report);
    report = report_of(only_dead, ARRAY_LEN(only_dead));
    assert_int_equal(strncmp(report->cpu_energy.energy.why, "the energy counter", 18), 0);
    wm_report_free(report);
}

/* A few milliseconds: the machine's CPU time has moved by a step or by none. */
static void test_too_short_to_divide(void **state)
{
    static const struct series series[] = {
        { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 100, 100, 100.01, 100.01 } },
        { HOST("memory_used", "B", WM_GAUGE, 0), { 800, 800, 800, 800 } },
        { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 0.001, 0.002, 0.003 } },
        { RAPL("package0", WM_DEVICE_CPU), { 0, 1, 2, 3 } },
        { RAPL("dram0", WM_DEVICE_DRAM), { 0, 1, 2, 3 } },
    };
    struct wm_process_peak process = { .pid = 7, .cpu_seconds = { true, 0.003 } };
    const struct wm_result result = {
        .end_ns = SESSION_START_NS + SECOND_NS / 50,
        .cpu_total_seconds = { true, 0.003 },
        .peak_rss_bytes = { 0 },
        .ticks = 4,
        .processes = &process,
        .process_count = 1,
    };
    const struct session session = {
        .run = { .interval_ns = SECOND_NS, .core_count = 2, .anchor_ns = SESSION_START_NS },
        .series = series,
        .series_count = ARRAY_LEN(series),
        .ticks = 4,
        .step_ns = SECOND_NS / 100,
        .result = &result,
    };
    struct wm_report *report = session_report(&session);
    static const char why[] = "the run is shorter than three updates of the CPU counters";

    (void)state;
    assert_true(report->cpu_energy.energy.known);
    assert_false(report->cpu_energy.split.tree.known);
    assert_false(report->cpu_energy.split.idle.known);
    assert_string_equal(report->cpu_energy.split.rest.why, why);
    assert_string_equal(report->energy.split.tree.why, why);
    assert_false(report->process_energies[0].known);
    assert_string_equal(report->process_energies[0].why, why);
    assert_string_equal(report->dram_energy.split.tree.why,
                        "how much of the memory the tracked processes had is not known");
    wm_report_free(report);
}

/* A package at 10 W, on four cores of which the command used one, and what it is said to
 * have taken before. */
static void test_baseline(void **state)
{
    static const struct {
        const char *name;
        double watts, cpu_seconds;
        bool is_right;
        double off, busy;
        bool is_refused;
        const char *says;
    } cases[] = {
        { "an idle machine", 8, 4, true, 0, 0, false, NULL },
        { "one that was measured for a moment", 8, 4, true, 1, 0, false, NULL },
        { "a busy machine", 8, 4, true, 0, 0.53, true,
          "the CPUs were busy for 53 % of the time: it is not used" },
        { "a busy machine, and it is asked for anyway", 8, 4, true, 0, 0.53, false,
          "the CPUs were busy for 53 % of the time: it is used all the same" },
        { "hardly busy", 8, 4, true, 0, 0.05, false, NULL },
        { "the same with a command that sleeps", 10.1, 0.001, true, 0, 0, false, NULL },
        { "more than in the run", 50, 4, false, 0, 0, false, NULL },
        { "more than in the run, while the command slept", 50, 0.001, false, 0, 0, false,
          NULL },
        { "as much as in the run", 10, 4, false, 0, 0, false, NULL },
    };
    static const struct series series[] = {
        LOAD,
        { RAPL("package0", WM_DEVICE_CPU), { 0, 10, 20, 30, 40 } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_baseline baseline = {
            .source = (char[]) { "rapl" },
            .device = (char[]) { "package0" },
            .watts = cases[i].watts,
            .uncertainty = cases[i].off,
            .busy = cases[i].busy,
            .is_refused = cases[i].is_refused,
        };
        const char *said = NULL;
        const struct wm_result result = {
            .end_ns = SESSION_START_NS + 4 * SECOND_NS,
            .cpu_total_seconds = { true, cases[i].cpu_seconds },
            .peak_rss_bytes = { 0 },
            .ticks = 5,
        };
        const struct session session = {
            .run = { .interval_ns = SECOND_NS,
                     .core_count = 4,
                     .anchor_ns = SESSION_START_NS,
                     .baselines = NULL },
            .series = series,
            .series_count = ARRAY_LEN(series),
            .ticks = 5,
            .step_ns = SECOND_NS,
            .result = &result,
        };
        struct session with = session;
        bool is_remarked = false;

        print_message("  %s\n", cases[i].name);
        with.run.baselines = &baseline;
        with.run.baseline_count = 1;
        with.run.baseline_seconds = 1;
        struct wm_report *report = session_report(&with);
        const struct wm_device_energy *package = &report->devices[0];
        assert_int_equal(package->idle_power.known, !cases[i].is_refused);
        if (package->idle_power.known)
            assert_true(package->idle_power.number == cases[i].watts);
        for (size_t k = 0; k < report->remark_count; k++) {
            is_remarked |= strstr(report->remarks[k], "W in the baseline") != NULL;
            if (strstr(report->remarks[k], "was not idle,"))
                said = report->remarks[k];
        }
        assert_int_equal(said != NULL, cases[i].says != NULL);
        if (said && !strstr(said, cases[i].says))
            fail_msg("%s", said);
        assert_int_equal(is_remarked, !cases[i].is_right);
        assert_int_equal(package->split.tree.known, cases[i].is_right);
        /* What is beyond the idling is off by all that the energy is off at random. */
        const struct wm_value *off = &package->split.tree_uncertainty;
        assert_int_equal(off->known, cases[i].is_right && package->split.tree.number > 0);
        if (cases[i].is_refused)
            assert_true(off->number == package->figure.uncertainty.number);
        else if (off->known)
            assert_true(off->number > package->figure.uncertainty.number);
        /* 1 W for 4 s, half of which is the tree's, as it did half of the work. */
        if (cases[i].off > 0)
            assert_true(off->number * package->split.tree.number > 2);
        wm_report_free(report);

        report = session_report(&session);
        assert_false(report->devices[0].idle_power.known);
        assert_true(report->devices[0].split.tree_uncertainty.number ==
                    report->devices[0].figure.uncertainty.number);
        wm_report_free(report);
    }
}

/* With a baseline the tree's part is by the machine's CPU time: that of others, which comes
 * later, takes none of it back from a region. */
static void test_region_beside_others(void **state)
{
    static const struct series series[] = {
        { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 0, 0.1, 0.3, 0.5, 0.7, 0.9 } },
        { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 0.1, 0.1, 0.1, 0.1, 0.1 } },
        { RAPL("package0", WM_DEVICE_CPU), { 0, 5, 7, 9, 11, 13 } },
    };
    static const struct wm_region_path paths[] = {
        { "after it", WM_REGION_NO_PATH, 0, false },
    };
    const int64_t from_ns = SESSION_START_NS + SECOND_NS / 10;
    const int64_t to_ns = SESSION_START_NS + SECOND_NS / 2;
    const struct wm_region_edge edges[] = {
        { .kind = WM_REGION_OPENS, .when_ns = from_ns, .start_ns = from_ns },
        { .kind = WM_REGION_CLOSES, .when_ns = to_ns, .start_ns = from_ns },
    };
    struct wm_baseline baseline = { .source = (char[]) { "rapl" },
                                    .device = (char[]) { "package0" },
                                    .watts = 10 };
    const struct wm_result result = { .end_ns = to_ns,
                                      .cpu_total_seconds = { true, 0.1 },
                                      .peak_rss_bytes = { 0 },
                                      .ticks = 6 };
    const struct session session = {
        .run = { .interval_ns = SECOND_NS / 10,
                 .core_count = 4,
                 .anchor_ns = SESSION_START_NS,
                 .baselines = &baseline,
                 .baseline_count = 1,
                 .baseline_seconds = 1 },
        .series = series,
        .series_count = ARRAY_LEN(series),
        .ticks = 6,
        .step_ns = SECOND_NS / 10,
        .edges = edges,
        .edge_count = ARRAY_LEN(edges),
        .paths = paths,
        .result = &result,
    };
    struct wm_report *report = session_report(&session);
    const struct wm_value *all = &report->energy.split.tree;
    const struct wm_value *exclusive =
        &report->regions.paths[0].exclusive.tree_energy.value;
    const struct wm_value *rest = &report->regions.rest.tree_energy.value;

    (void)state;
    assert_true(all->known && exclusive->known && rest->known);
    assert_true(all->number > 0 && exclusive->number >= 0 && rest->number >= 0);
    assert_true(fabs(exclusive->number + rest->number - all->number) < 1e-9);
    wm_report_free(report);
}

/* What a sum is without is said, with the reason. */
static void test_left_out(void **state)
{
    struct wm_report *report = report_of(guessed_memory, ARRAY_LEN(guessed_memory));

    (void)state;
    assert_non_null(strstr(report->dram_energy.energy.why, "an estimate of the memory"));
    wm_report_free(report);

    /* Its sensor is one of the other devices, if it tells anything. */
    report = report_of(laptop, ARRAY_LEN(laptop));
    assert_int_equal(report->device_count, 2);
    wm_report_free(report);
    report = report_of(untold_laptop, ARRAY_LEN(untold_laptop));
    assert_int_equal(report->device_count, 1);
    assert_int_equal(report->gpu_count, 2);
    wm_report_free(report);

    report = report_of(laptop, ARRAY_LEN(laptop));
    assert_int_equal(report->remark_count > 0, 1);
    assert_string_equal(report->remarks[report->remark_count - 1],
                        "GPU energy leaves out card1: another device measures its power");
    wm_report_free(report);

    /* Where there is no other GPU nothing is left out of it. */
    report = report_of(integrated, ARRAY_LEN(integrated));
    for (size_t i = 0; i < report->remark_count; i++)
        assert_null(strstr(report->remarks[i], "adds nothing"));
    wm_report_free(report);
}

/* Two cores, 30 W with nothing to do, measured before; one is busy for the tree. */
static void test_measured_idle(void **state)
{
    const struct wm_work work = { 0.1, true, 0.2, 0.1, 0.1, { 0 } };
    struct wm_share share = { .idle_watts = { true, 30 } };

    (void)state;
    for (int tick = 1; tick <= 100; tick++)
        wm_share_add(&share, 5 * tick, &work); /* 50 W */
    assert_true(fabs(share.idle - 300) < 1e-9);
    assert_true(fabs(share.tree - 200) < 1e-9);
    assert_true(fabs(share.rest) < 1e-9);
}

/* One core at 10 W with nothing to do and at 50 W for the tree, which works for a tenth of
 * a second now and then: it has all of these joules, whatever the window, and what it is
 * told to have at a tick never becomes less. */
static void test_bursts(void **state)
{
    struct wm_share share = { .shortest_s = 0.5 };
    double joules = 0, least = 0;
    int bursts = 0;

    (void)state;
    for (int tick = 1; tick <= 203; tick++) {
        bool works = tick % 7 == 0;
        double busy = works ? 0.1 : 0;
        const struct wm_work work = { 0.1, true, 0.1, busy, busy, { 0 } };
        bursts += works;
        joules += works ? 5 : 1;
        wm_share_add(&share, joules, &work);
        struct wm_share told = share;
        wm_share_end(&told, joules);
        assert_true(told.tree >= least);
        assert_true(fabs(told.tree - 5 * bursts) < 1e-9);
        assert_true(fabs(told.tree + told.idle + told.rest - joules) < 1e-9);
        assert_true(told.rest > -1e-9);
        least = told.tree;
    }
}

/* Joules that come after work was unknown for a while are nobody's known. */
static void test_unknown_work(void **state)
{
    const struct wm_work known = { 0.1, true, 0.2, 0.2, 0.1, { 0 } };
    const struct wm_work unknown = { 0.1, false, 0, 0, 0, { 0 } };
    struct wm_share share = { 0 };

    (void)state;
    wm_share_add(&share, 10, &known);
    wm_share_add(&share, 30, &unknown);
    wm_share_add(&share, 40, &known);
    assert_true(share.unknown_joules == 20);
    assert_true(share.tree == 10);
    assert_true(share.rest == 30);
}

/* The command has the uncertainty of the devices that it used, not of those beside it. */
static void test_uncertainty_of_the_tree(void **state)
{
    const struct wm_value zero = wm_value_known(0), one = wm_value_known(1);
    const struct wm_energy_sum beside = { .energy = wm_value_known(1000),
                                          .uncertainty = wm_value_known(0.001),
                                          .systematic = 0.001,
                                          .split = {
                                              .tree = zero, .idle = zero, .rest = zero } };
    const struct wm_energy_sum cpu = {
        .energy = one,
        .uncertainty = wm_value_known(0.5),
        .systematic = 0.3,
        .random = 0.4,
        .split = { .tree = one,
                   .idle = zero,
                   .rest = zero,
                   .tree_systematic = 0.3,
                   .tree_random = 0.4 * 0.4 },
    };
    struct wm_energy_sum sum;

    (void)state;
    wm_build_sum_start(&sum);
    wm_build_sum_add(&sum, &beside);
    wm_build_sum_add(&sum, &cpu);
    wm_build_sum_end(&sum);
    assert_true(sum.uncertainty.number < 0.002);
    assert_true(fabs(sum.split.tree_uncertainty.number - 0.5) < 1e-12);
}

/* By CPU time, and never more than there is. */
static void test_part_of_energy(void **state)
{
    struct wm_report report = { .cpu_energy.split.tree = wm_value_known(8),
                                .cpu_total = wm_value_known(4) };
    static const double seconds[][2] = { { 0, 0 }, { 1, 2 }, { 4, 8 }, { 5, 8 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        const struct wm_known used = { .known = true, .number = seconds[i][0] };
        const struct wm_value part = wm_report_energy_of(&report, &used);
        assert_true(part.known && fabs(part.number - seconds[i][1]) < 1e-12);
    }
    assert_false(wm_report_energy_of(&report, &(struct wm_known) { 0 }).known);
    report.cpu_total = wm_value_missing("nobody looked");
    const struct wm_known used = { .known = true, .number = 1 };
    assert_string_equal(wm_report_energy_of(&report, &used).why, "nobody looked");
}

/* A GPU whose counter has something new every `period_s`, sampled for ten seconds by
 * ticks and readings that come up to 4 ms late. */
static double peak_of(const struct load *load, double period_s, double interval_s)
{
    const struct wm_channel channel = NVIDIA("energy", "J", WM_COUNTER);
    const struct wm_run run = { .interval_ns = (int64_t)(interval_s * 1e9),
                                .core_count = 4,
                                .anchor_ns = SESSION_START_NS };
    struct wm_analysis *analysis = NULL;
    struct wm_report *report = NULL;
    struct wm_error err = { 0 };

    if (wm_analysis_new(&run, &channel, 1, &analysis, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i * interval_s < 10; i++) {
        double tick_s = 1 + i * interval_s + uniform(0, 0.004);
        double reading_s = tick_s + uniform(0, 0.004);
        const struct wm_reading reading = {
            .when_ns = SESSION_START_NS + (int64_t)(reading_s * 1e9),
            .value = joules_until(load, floor(reading_s / period_s) * period_s),
            .state = WM_READING_OK,
        };
        const struct wm_tick tick = { SESSION_START_NS + (int64_t)(tick_s * 1e9), &reading,
                                      1 };
        wm_analysis_tick(analysis, &tick);
    }
    if (wm_analysis_report(analysis, NULL, &report, &err) < 0)
        fail_msg("%s", err.text);
    if (!report->power.max.known)
        fail_msg("%s", report->power.max.why);
    double peak = report->power.max.number;
    wm_report_free(report);
    wm_analysis_free(analysis);
    return peak;
}

/* The highest power of a constant load is that load, and that of a changing one its
 * highest, within a tenth, however the sensor's period and the interval lie. */
static void test_peak(void **state)
{
    static const double periods_s[] = { 0.001, 0.02, 0.05, 0.1 };
    static const double intervals_s[] = { 0.02, 0.1, 0.37, 1 };
    static struct load constant, square;

    (void)state;
    add_power(&constant, 0, 507);
    for (int i = 0; i < 4; i++)
        add_power(&square, 3 * i, i % 2 ? 507 : 100);
    for (size_t i = 0; i < ARRAY_LEN(periods_s) * ARRAY_LEN(intervals_s); i++) {
        double period_s = periods_s[i % ARRAY_LEN(periods_s)];
        double interval_s = intervals_s[i / ARRAY_LEN(periods_s)];
        double even = peak_of(&constant, period_s, interval_s);
        double uneven = peak_of(&square, period_s, interval_s);
        print_message("  a period of %g s, an interval of %g s: %g W, %g W\n", period_s,
                      interval_s, even, uneven);
        assert_true(even > 0.99 * 507 && even < 1.1 * 507);
        assert_true(uneven > 0.9 * 507 && uneven < 1.1 * 507);
    }
}

UNIT(energy_report)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_part_of_energy),
        cmocka_unit_test(test_uncertainty_of_the_tree),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_measured_idle),
        cmocka_unit_test(test_unknown_work),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_region_beside_others),
        cmocka_unit_test(test_steps_of_cpu_time),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_who_is_dead),
        cmocka_unit_test(test_too_short_to_divide),
        cmocka_unit_test(test_baseline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
