/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyze_regions.c - time and energy of regions: what is whose, that it adds up, and
 * that it does not matter in which pieces ticks and edges come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/region/analyze_regions.h"
#include "made_load.h"
#include "test.h"

#define MS INT64_C(1000000)

/* Paths by number: "A", "A" > "B", "A" > "A", "C", the same name by itself, and as many
 * more as are wanted. */
static const struct wm_region_path known_paths[] = {
    { "A", WM_REGION_NO_PATH, 0, false },
    { "B", 0, 1, false },
    { "A", 0, 1, false },
    { "C", WM_REGION_NO_PATH, 0, false },
    { "A", WM_REGION_NO_PATH, 0, true },
    { "B", 2, 2, false },
};

enum { A, AB, AA, C, FREE, AAB };

static const struct wm_region_path *find_path(const void *context, uint32_t path)
{
    static const struct wm_region_path more = { "more", 0, 1, false };

    (void)context;
    return path < ARRAY_LEN(known_paths) ? &known_paths[path] : &more;
}

static const struct wm_region_paths paths = { find_path, NULL };

static void assert_near(double value, double expected, double most)
{
    if (!(fabs(value - expected) <= most))
        fail_msg("%.12g is not %.12g", value, expected);
}

static struct wm_regions *new_regions(void)
{
    struct wm_regions *regions = NULL;
    struct wm_error err;

    assert_int_equal(wm_regions_new(100 * MS, WM_REGIONS_MOST, &regions, &err), WM_OK);
    return regions;
}

static void give_edge(struct wm_regions *regions, const struct wm_region_edge *edge)
{
    assert_int_equal(wm_regions_edge(regions, edge, 100 + edge->thread / 2, &paths), WM_OK);
}

/* CPU time and GPU energy, where given; nobody measures the rest. */
static struct wm_region_totals totals_at(int64_t when_ns, double cpu_s, double gpu_j)
{
    const unsigned cpu = WM_REGION_BIT(WM_REGION_CPU_TIME);
    const unsigned gpu = WM_REGION_BIT(WM_REGION_GPU_ENERGY);

    return (struct wm_region_totals) {
        .when_ns = when_ns,
        .known = (isnan(cpu_s) ? 0 : cpu) | (isnan(gpu_j) ? 0 : gpu),
        .measured = cpu | gpu,
        .used = { [WM_REGION_CPU_TIME] = cpu_s, [WM_REGION_GPU_ENERGY] = gpu_j },
        .period_s = { [WM_REGION_GPU_ENERGY] = 0.1 },
    };
}

static void fill_wholes(struct wm_region_whole wholes[WM_REGION_RESOURCES], double cpu_s,
                        double gpu_j)
{
    for (int i = 0; i < WM_REGION_RESOURCES; i++)
        wholes[i] = (struct wm_region_whole) { .has_uncertainty = true };
    wholes[WM_REGION_CPU_TIME].used = (struct wm_known) { !isnan(cpu_s), cpu_s };
    wholes[WM_REGION_GPU_ENERGY].used = (struct wm_known) { !isnan(gpu_j), gpu_j };
}

/* What is done in each of the tables: an edge at a time in ms. */
struct step {
    int ms;
    uint32_t path, thread;
    enum wm_region_edge_kind kind;
    int start_ms;
    uint64_t clocked;
};

#define OPENS(ms_, path_, thread_)                                                         \
    {                                                                                      \
        .ms = ms_, .path = path_, .thread = thread_, .kind = WM_REGION_OPENS,              \
        .start_ms = ms_                                                                    \
    }
#define CLOSES(ms_, path_, thread_, start_)                                                \
    {                                                                                      \
        .ms = ms_, .path = path_, .thread = thread_, .kind = WM_REGION_CLOSES,             \
        .start_ms = start_                                                                 \
    }
#define BREAKS(ms_, path_, thread_, start_)                                                \
    {                                                                                      \
        .ms = ms_, .path = path_, .thread = thread_, .kind = WM_REGION_BREAKS_OFF,         \
        .start_ms = start_                                                                 \
    }

struct expected {
    uint32_t path;
    double inclusive_ms, exclusive_ms, inclusive_j, exclusive_j;
    unsigned calls, unfinished;
};

/* A second with ticks at 0, 500 and 1000 ms, at which 0, 100 and 400 J had been used. */
static const struct {
    const char *name;
    struct step steps[12];
    struct expected expected[4];
    double rest_ms, rest_j;
} rows[] = {
    { "one call",
      { OPENS(100, A, 0), CLOSES(350, A, 0, 100) },
      { { A, 250, 250, 50, 50, 1, 0 } },
      750,
      350 },
    { "across a tick",
      { OPENS(400, A, 0), CLOSES(600, A, 0, 400) },
      { { A, 200, 200, 80, 80, 1, 0 } },
      800,
      320 },
    { "inside another",
      { OPENS(0, A, 0), OPENS(100, AB, 0), CLOSES(200, AB, 0, 100), OPENS(300, AB, 0),
        CLOSES(400, AB, 0, 300), CLOSES(500, A, 0, 0) },
      { { A, 500, 300, 100, 60, 1, 0 }, { AB, 200, 200, 40, 40, 2, 0 } },
      500,
      300 },
    { "two threads share",
      { OPENS(0, A, 0), OPENS(0, C, 1), CLOSES(250, C, 1, 0), CLOSES(500, A, 0, 0) },
      { { A, 500, 375, 100, 75, 1, 0 }, { C, 250, 125, 50, 25, 1, 0 } },
      500,
      300 },
    { "two threads in one region count once",
      { OPENS(0, A, 0), OPENS(100, A, 1), CLOSES(200, A, 0, 0), CLOSES(300, A, 1, 100) },
      { { A, 300, 300, 60, 60, 2, 0 } },
      700,
      340 },
    { "in itself",
      { OPENS(0, A, 0), OPENS(100, AA, 0), CLOSES(200, AA, 0, 100), CLOSES(250, A, 0, 0) },
      { { A, 250, 150, 50, 30, 1, 0 }, { AA, 100, 100, 20, 20, 1, 0 } },
      750,
      350 },
    { "started by themselves, overlapping",
      { OPENS(0, FREE, 0), OPENS(100, FREE, 0), OPENS(100, C, 1), CLOSES(200, FREE, 0, 0),
        CLOSES(200, C, 1, 100), CLOSES(300, FREE, 0, 100) },
      { { FREE, 300, 100 + 200 / 3.0 + 100, 60, 20 + 40 / 3.0 + 20, 2, 0 },
        { C, 100, 100 / 3.0, 20, 20 / 3.0, 1, 0 } },
      700,
      340 },
    { "never ended",
      { OPENS(250, A, 0), OPENS(250, AB, 0), BREAKS(500, AB, 0, 250),
        BREAKS(500, A, 0, 250) },
      { { A, 250, 0, 50, 0, 0, 1 }, { AB, 250, 250, 50, 50, 0, 1 } },
      750,
      350 },
    { "the call around it is lost",
      { OPENS(0, AB, 0), OPENS(0, C, 1), CLOSES(250, AB, 0, 0), CLOSES(250, C, 1, 0) },
      { { AB, 250, 125, 50, 25, 1, 0 }, { C, 250, 125, 50, 25, 1, 0 } },
      750,
      350 },
    { "stops that nothing started",
      { CLOSES(100, A, 0, 50), OPENS(100, C, 0), CLOSES(150, A, 0, 100),
        CLOSES(200, C, 1, 100), CLOSES(300, C, 0, 100), CLOSES(400, C, 0, 100) },
      { { C, 200, 200, 40, 40, 1, 0 } },
      800,
      360 },
    { "of no length",
      { OPENS(500, A, 0), CLOSES(500, A, 0, 500), OPENS(500, A, 0),
        CLOSES(500, A, 0, 500) },
      { { A, 0, 0, 0, 0, 2, 0 } },
      1000,
      400 },
    { "back in time",
      { OPENS(300, A, 0), OPENS(200, AB, 0), CLOSES(400, AB, 0, 200),
        CLOSES(350, A, 0, 300) },
      { { A, 100, 0, 20, 0, 1, 0 }, { AB, 100, 100, 20, 20, 1, 0 } },
      900,
      380 },
};

static void give_steps(struct wm_regions *regions, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count && (i == 0 || steps[i].ms > 0 || steps[i].path > 0); i++) {
        const struct wm_region_edge edge = {
            .when_ns = steps[i].ms * MS,
            .start_ns = steps[i].start_ms * MS,
            .path = steps[i].path,
            .thread = steps[i].thread,
            .kind = steps[i].kind,
            .clocked = steps[i].clocked,
        };
        give_edge(regions, &edge);
    }
}

static void feed_rows(struct wm_regions *regions, const struct step *steps, size_t count)
{
    static const double joules[] = { 0, 100, 400 };

    for (int i = 0; i < 3; i++) {
        struct wm_region_totals totals = totals_at(i * 500 * MS, NAN, joules[i]);
        wm_regions_tick(regions, &totals, NULL);
    }
    give_steps(regions, steps, count);
    wm_regions_complete(regions, INT64_MAX);
}

static void test_rows(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];

    (void)state;
    fill_wholes(wholes, NAN, 400);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_regions *regions = new_regions();
        struct wm_region_figures figures;
        struct wm_region_cost rest;
        print_message("  %s\n", rows[i].name);
        feed_rows(regions, rows[i].steps, ARRAY_LEN(rows[i].steps));
        for (size_t k = 0; k < ARRAY_LEN(rows[i].expected); k++) {
            const struct expected *expected = &rows[i].expected[k];
            if (expected->calls + expected->unfinished == 0)
                break;
            assert_true(wm_regions_path(regions, expected->path, wholes, &figures));
            assert_int_equal(figures.block->calls, expected->calls);
            assert_int_equal(figures.block->unfinished, expected->unfinished);
            assert_near(figures.inclusive.seconds * 1e3, expected->inclusive_ms, 1e-6);
            assert_near(figures.exclusive.seconds * 1e3, expected->exclusive_ms, 1e-6);
            assert_near(figures.inclusive.uses[WM_REGION_GPU_ENERGY].used.number,
                        expected->inclusive_j, 1e-6);
            assert_near(figures.exclusive.uses[WM_REGION_GPU_ENERGY].used.number,
                        expected->exclusive_j, 1e-6);
            assert_true(!figures.exclusive.uses[WM_REGION_CPU_ENERGY].used.known);
            assert_true(!figures.exclusive.uses[WM_REGION_CPU_TIME].used.known);
        }
        wm_regions_rest(regions, wholes, &rest);
        assert_near(rest.seconds * 1e3, rows[i].rest_ms, 1e-6);
        assert_near(rest.uses[WM_REGION_GPU_ENERGY].used.number, rows[i].rest_j, 1e-6);
        wm_regions_free(regions);
    }
}

/* Of a name all paths together, each moment once. */
static void test_names(void **state)
{
    static const struct step steps[] = {
        OPENS(0, A, 0),           OPENS(100, AA, 0),         OPENS(150, AAB, 0),
        CLOSES(200, AAB, 0, 150), CLOSES(250, AA, 0, 100),   CLOSES(300, A, 0, 0),
        OPENS(300, FREE, 1),      CLOSES(400, FREE, 1, 300),
    };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures figures;
    struct wm_regions *regions = new_regions();

    (void)state;
    fill_wholes(wholes, NAN, 400);
    feed_rows(regions, steps, ARRAY_LEN(steps));
    assert_int_equal(wm_regions_facts(regions).paths, 4);
    assert_int_equal(wm_regions_facts(regions).names, 2);
    assert_int_equal(wm_regions_facts(regions).threads, 2);
    assert_int_equal(wm_regions_facts(regions).processes, 1);
    wm_regions_name(regions, 0, wholes, &figures);
    assert_string_equal(figures.name, "A");
    assert_int_equal(figures.block->calls, 3);
    assert_near(figures.inclusive.seconds, 0.4, 1e-9);
    assert_near(figures.exclusive.seconds, 0.35, 1e-9);
    assert_near(figures.inclusive.uses[WM_REGION_GPU_ENERGY].used.number, 80, 1e-9);
    assert_near(figures.exclusive.uses[WM_REGION_GPU_ENERGY].used.number, 70, 1e-9);
    assert_int_equal(figures.openings, 1);
    wm_regions_free(regions);
}

#define CLOCKED(ms_, path_, thread_, start_, cpu_ms_)                                      \
    {                                                                                      \
        .ms = ms_, .path = path_, .thread = thread_, .kind = WM_REGION_CLOSES,             \
        .start_ms = start_, .clocked = 1 + (cpu_ms_)*UINT64_C(1000000)                     \
    }

/* CPU time by the threads' clocks, in a second of which all processes had `total_ms`. */
static const struct {
    const char *name;
    double total_ms;
    struct step steps[10];
    struct {
        uint32_t path;
        double inclusive_ms, exclusive_ms, off_ms;
        unsigned clocked;
    } expected[4];
    double rest_ms;
} clocked_rows[] = {
    { "one that works beside one that sleeps, within a tick",
      20,
      { OPENS(100, A, 0), CLOCKED(120, A, 0, 100, 20), OPENS(120, C, 0),
        CLOCKED(143, C, 0, 120, 0) },
      { { A, 20, 20, 0.001, 1 }, { C, 0, 0, 0, 1 } },
      0 },
    { "another thread and a child are nobody's",
      900,
      { OPENS(100, A, 0), CLOCKED(400, A, 0, 100, 250) },
      { { A, 250, 250, 0.001, 1 } },
      650 },
    { "two threads at once",
      1000,
      { OPENS(0, A, 0), OPENS(0, C, 1), CLOCKED(500, A, 0, 0, 500),
        CLOCKED(500, C, 1, 0, 500) },
      { { A, 500, 500, 0.001, 1 }, { C, 500, 500, 0.001, 1 } },
      0 },
    { "one inside another",
      500,
      { OPENS(0, A, 0), OPENS(100, AB, 0), CLOCKED(400, AB, 0, 100, 50),
        CLOCKED(500, A, 0, 0, 240) },
      { { A, 240, 190, 0.001, 1 }, { AB, 50, 50, 0.001, 1 } },
      260 },
    { "a short one has its part by time of what is around it",
      500,
      { OPENS(0, A, 0), OPENS(100, AB, 0), CLOSES(200, AB, 0, 100),
        CLOCKED(500, A, 0, 0, 200) },
      { { A, 200, 160, 60.002, 1 }, { AB, 40, 40, 60, 0 } },
      300 },
    { "and no less than must be its",
      500,
      { OPENS(0, A, 0), OPENS(100, AB, 0), CLOSES(200, AB, 0, 100),
        CLOCKED(500, A, 0, 0, 450) },
      { { A, 450, 360, 40.002, 1 }, { AB, 90, 90, 40, 0 } },
      50 },
    { "a short one by itself has up to its time",
      500,
      { OPENS(0, A, 0), CLOSES(100, A, 0, 0), OPENS(100, C, 0),
        CLOCKED(500, C, 0, 100, 100) },
      { { A, 50, 50, 50, 0 }, { C, 100, 100, 0.001, 1 } },
      350 },
    { "two at once in a thread share it",
      400,
      { OPENS(0, FREE, 0), OPENS(0, FREE, 0), CLOCKED(400, FREE, 0, 0, 400),
        CLOCKED(400, FREE, 0, 0, 400) },
      { { FREE, 800, 400, 0.002, 2 } },
      0 },
    { "a name in itself counts once",
      400,
      { OPENS(0, A, 0), OPENS(100, AA, 0), CLOCKED(200, AA, 0, 100, 80),
        CLOCKED(400, A, 0, 0, 300) },
      { { A, 300, 220, 0.001, 1 }, { AA, 80, 80, 0.001, 1 } },
      100 },
};

static void test_clocks(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures figures;
    struct wm_region_cost rest;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(clocked_rows); i++) {
        struct wm_regions *regions = new_regions();
        double total_s = clocked_rows[i].total_ms / 1e3;
        print_message("  %s\n", clocked_rows[i].name);
        fill_wholes(wholes, total_s, NAN);
        for (int tick = 0; tick <= 2; tick++) {
            struct wm_region_totals totals =
                totals_at(500 * tick * MS, total_s * tick / 2, NAN);
            wm_regions_tick(regions, &totals, NULL);
        }
        give_steps(regions, clocked_rows[i].steps, ARRAY_LEN(clocked_rows[i].steps));
        wm_regions_complete(regions, INT64_MAX);
        assert_int_equal(wm_regions_clock(regions, wholes, NULL), WM_OK);
        for (size_t k = 0; k < ARRAY_LEN(clocked_rows[i].expected); k++) {
            uint32_t path = clocked_rows[i].expected[k].path;
            if (k > 0 && path == A)
                break;
            assert_true(wm_regions_path(regions, path, wholes, &figures));
            const struct wm_region_use *inclusive =
                &figures.inclusive.uses[WM_REGION_CPU_TIME];
            const struct wm_region_use *exclusive =
                &figures.exclusive.uses[WM_REGION_CPU_TIME];
            assert_near(inclusive->used.number * 1e3,
                        clocked_rows[i].expected[k].inclusive_ms, 1e-6);
            assert_near(exclusive->used.number * 1e3,
                        clocked_rows[i].expected[k].exclusive_ms, 1e-6);
            assert_true(exclusive->has_uncertainty);
            assert_near(exclusive->random * 1e3, clocked_rows[i].expected[k].off_ms, 2e-3);
            assert_int_equal(figures.clocked, clocked_rows[i].expected[k].clocked);
        }
        wm_regions_rest(regions, wholes, &rest);
        assert_near(rest.uses[WM_REGION_CPU_TIME].used.number * 1e3,
                    clocked_rows[i].rest_ms, 1e-6);
        wm_regions_name(regions, 0, wholes, &figures);
        if (clocked_rows[i].expected[1].path == AA)
            assert_near(figures.inclusive.uses[WM_REGION_CPU_TIME].used.number * 1e3,
                        clocked_rows[i].expected[0].inclusive_ms, 1e-6);
        wm_regions_free(regions);
    }
}

enum { WORKERS = 3, RUN_MS = 1000, DEEP = 3, KNOWN = ARRAY_LEN(known_paths) };

/* CPU time in ms, as the threads had it. */
struct truth {
    double inclusive[KNOWN], exclusive[KNOWN], total;
};

/* A thread: its open calls, and the CPU time that it had when they began. */
struct worker {
    uint32_t stack[DEEP];
    int starts_ms[DEEP];
    double cpu_ms, begins_ms[DEEP];
    int depth;
    bool is_busy;
};

static uint32_t draw_inside(const struct worker *worker)
{
    bool is_second = uniform(0, 1) < 0.5;

    if (worker->depth == 0)
        return is_second ? A : C;
    switch (worker->stack[worker->depth - 1]) {
    case A:
        return is_second ? AB : AA;
    case AA:
        return AAB;
    default:
        return KNOWN;
    }
}

static void close_one(struct wm_regions *regions, struct worker *worker, uint32_t thread,
                      int ms, bool is_clocked, struct truth *truth)
{
    int i = --worker->depth;
    double cpu_ms = worker->cpu_ms - worker->begins_ms[i];
    const struct step closes[] = { {
        .ms = ms,
        .path = worker->stack[i],
        .thread = thread,
        .kind = WM_REGION_CLOSES,
        .start_ms = worker->starts_ms[i],
        .clocked = is_clocked ? 1 + (uint64_t)(cpu_ms * 1e6) : 0,
    } };

    give_steps(regions, closes, 1);
    truth->inclusive[worker->stack[i]] += cpu_ms;
}

/* In each millisecond a thread opens or closes a call, or not, and works or sleeps, which
 * changes now and then. One more thread, and the workers outside of calls, work, too. */
static void run_workers(struct wm_regions *regions, double part_seen, struct truth *truth)
{
    struct worker workers[WORKERS] = { 0 };
    double clocked[KNOWN];

    for (size_t i = 0; i < KNOWN; i++)
        clocked[i] = floor(uniform(0, 3)) / 2;
    clocked[AAB] = fmax(clocked[AAB], 0.1); /* with no clock at all it is not by thread */
    for (int ms = 0; ms <= RUN_MS; ms++) {
        for (uint32_t i = 0; i < WORKERS; i++) {
            struct worker *worker = &workers[i];
            double what = ms == RUN_MS ? 0 : uniform(0, 1);
            uint32_t inside = draw_inside(worker);
            while (worker->depth > 0 && what < 0.3) {
                double part = clocked[worker->stack[worker->depth - 1]];
                close_one(regions, worker, i, ms, uniform(0, 1) < part, truth);
                what += ms == RUN_MS ? 0 : 1;
            }
            if (what >= 0.3 && what < 0.7 && inside < KNOWN) {
                const struct step opens[] = { OPENS(ms, inside, i) };
                give_steps(regions, opens, 1);
                worker->stack[worker->depth] = inside;
                worker->starts_ms[worker->depth] = ms;
                worker->begins_ms[worker->depth++] = worker->cpu_ms;
            }
            if (uniform(0, 1) < 0.2)
                worker->is_busy = !worker->is_busy;
            if (ms == RUN_MS || !worker->is_busy)
                continue;
            worker->cpu_ms++;
            truth->total++;
            if (worker->depth > 0)
                truth->exclusive[worker->stack[worker->depth - 1]]++;
        }
        truth->total += ms < RUN_MS && uniform(0, 1) < 0.5;
        struct wm_region_totals totals =
            totals_at(ms * MS, part_seen * truth->total / 1e3, NAN);
        if (ms % 100 == 0)
            wm_regions_tick(regions, &totals, NULL);
    }
    wm_regions_complete(regions, INT64_MAX);
}

static void assert_holds(const struct wm_region_cost *cost, double truth_ms)
{
    const struct wm_region_use *use = &cost->uses[WM_REGION_CPU_TIME];

    assert_near(use->used.number * 1e3, truth_ms, use->random * 1e3 + 1e-6);
}

/* Whichever calls are clocked, and whatever those that are not did: the CPU time of each
 * region lies in its interval, also if that of the run is but a lower bound. */
static void test_cpu_time_is_in_its_interval(void **state)
{
    (void)state;
    for (int run = 0; run < 500; run++) {
        struct wm_regions *regions = new_regions();
        struct wm_region_whole wholes[WM_REGION_RESOURCES];
        struct wm_region_figures figures;
        struct truth truth = { 0 };
        double part_seen = run % 2 == 0 ? 1 : 0.3;
        run_workers(regions, part_seen, &truth);
        fill_wholes(wholes, part_seen * truth.total / 1e3, NAN);
        wholes[WM_REGION_CPU_TIME].is_lower_bound = part_seen < 1;
        assert_int_equal(wm_regions_clock(regions, wholes, NULL), WM_OK);
        for (uint32_t path = 0; path < KNOWN; path++) {
            if (!wm_regions_path(regions, path, wholes, &figures))
                continue;
            assert_holds(&figures.inclusive, truth.inclusive[path]);
            assert_holds(&figures.exclusive, truth.exclusive[path]);
        }
        for (size_t i = 0; i < wm_regions_facts(regions).names; i++) {
            wm_regions_name(regions, i, wholes, &figures);
            if (strcmp(figures.name, "A") != 0)
                continue;
            assert_holds(&figures.inclusive, truth.inclusive[A]);
            assert_holds(&figures.exclusive, truth.exclusive[A] + truth.exclusive[AA]);
        }
        wm_regions_free(regions);
    }
}

/* Packages of two cores of which a second of CPU time takes so many joules, in a second of
 * which the tree works for a fifth. */
static struct wm_region_package package_at(double joules_per_s)
{
    return (struct wm_region_package) {
        .joules = 35,
        .seconds = 1,
        .cores = 2,
        .busy_s = 0.2,
        .tree_s = 0.2,
        .tree_j = 0.2 * joules_per_s,
        .most_w = { true, 35 + 1.8 * joules_per_s },
    };
}

/* Half a second of which one region works for 0.2 s and another sleeps for 0.3 s, and half
 * a second of nothing: by time the joules of the first were divided 2 : 3. */
static struct wm_regions *new_workers(unsigned clocked_ms, unsigned threads)
{
    static const double cpu_s[] = { 0, 0.2, 0.2 }, cpu_j[] = { 0, 30, 35 },
                        tree_j[] = { 0, 20, 20 };
    const struct step steps[] = {
        OPENS(0, A, 0),
        CLOCKED(200, A, 0, 0, clocked_ms),
        OPENS(200, C, threads - 1),
        CLOCKED(500, C, threads - 1, 200, 0),
    };
    struct wm_regions *regions = new_regions();

    for (int tick = 0; tick <= 2; tick++) {
        struct wm_region_totals totals = totals_at(500 * tick * MS, cpu_s[tick], NAN);
        totals.known |= WM_REGION_BIT(WM_REGION_CPU_ENERGY);
        totals.known |= WM_REGION_BIT(WM_REGION_TREE_ENERGY);
        totals.measured |= totals.known;
        totals.used[WM_REGION_CPU_ENERGY] = cpu_j[tick];
        totals.used[WM_REGION_TREE_ENERGY] = tree_j[tick];
        wm_regions_tick(regions, &totals, NULL);
    }
    give_steps(regions, steps, ARRAY_LEN(steps));
    wm_regions_complete(regions, INT64_MAX);
    return regions;
}

static void assert_joules(const struct wm_region_cost *cost, double cpu, double tree)
{
    assert_near(cost->uses[WM_REGION_CPU_ENERGY].used.number, cpu, 1e-9);
    assert_near(cost->uses[WM_REGION_TREE_ENERGY].used.number, tree, 1e-9);
}

/* Where no core was idle a second of CPU time takes between these: watts / (idle x cores +
 * cores busy), idle power being 0.03 to 1.2 of what all cores add. */
#define BUSY_S 1.9999
#define BUSY_RATE ((35 / (0.03 * 2 + BUSY_S) + 35 / (1.2 * 2 + BUSY_S)) / 2)

static void test_energy_follows_cpu_time(void **state)
{
    static const struct {
        unsigned clocked_ms, threads;
        double joules_per_s, work, work_tree, sleep, sleep_tree;
        double busy_s; /* of two cores */
    } cases[] = {
        { 200, 1, 100, 24, 20, 6, 0, 0.2 },
        { 200, 2, 100, 24, 20, 6, 0, 0.2 },
        { 200, 1, 0, 12, 8, 18, 12, 0.2 },  /* its joules are not known */
        { 200, 1, 1e9, 30, 20, 0, 0, 0.2 }, /* nobody has less than nothing */
        /* The rest was another thread's, whenever it was. */
        { 80, 1, 100, 12 + 24.0 / 11, 8 + 24.0 / 11, 18 - 24.0 / 11, 12 - 24.0 / 11, 0.2 },
        /* No core was idle: the model's slope is not to be seen, the tree's part is. */
        { 200, 1, 100, 12 + 0.12 * BUSY_RATE, 20, 18 - 0.12 * BUSY_RATE, 0, BUSY_S },
    };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures figures;
    struct wm_region_cost rest;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_regions *regions = new_workers(cases[i].clocked_ms, cases[i].threads);
        print_message("  %u ms of CPU time, %u threads, %g J/s\n", cases[i].clocked_ms,
                      cases[i].threads, cases[i].joules_per_s);
        fill_wholes(wholes, 0.2, NAN);
        wholes[WM_REGION_CPU_ENERGY].used = (struct wm_known) { true, 35 };
        wholes[WM_REGION_TREE_ENERGY].used = (struct wm_known) { true, 20 };
        struct wm_region_package package = package_at(cases[i].joules_per_s);
        package.busy_s = cases[i].busy_s;
        assert_int_equal(wm_regions_clock(regions, wholes, &package), WM_OK);
        assert_true(wm_regions_path(regions, A, wholes, &figures));
        assert_joules(&figures.exclusive, cases[i].work, cases[i].work_tree);
        if (cases[i].threads == 1)
            assert_joules(&figures.inclusive, cases[i].work, cases[i].work_tree);
        else
            assert_joules(&figures.inclusive, 12, 8);
        assert_true(wm_regions_path(regions, C, wholes, &figures));
        assert_joules(&figures.exclusive, cases[i].sleep, cases[i].sleep_tree);
        wm_regions_rest(regions, wholes, &rest);
        assert_joules(&rest, 5, 0);
        wm_regions_free(regions);
    }
}

/* Two threads at once, and a GPU that the tree used in part: nobody knows which of the two
 * did. */
static void test_whose_gpu(void **state)
{
    static const double unassigned[] = { 0, 1, 0.4 };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures figures;
    double off = 0;
    const struct step steps[] = {
        OPENS(0, A, 0),
        OPENS(250, C, 1),
        CLOSES(500, A, 0, 0),
        CLOSES(500, C, 1, 250),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unassigned); i++) {
        struct wm_regions *regions = new_regions();
        for (int tick = 0; tick <= 2; tick++) {
            struct wm_region_totals totals = totals_at(250 * tick * MS, NAN, 50 * tick);
            wm_regions_tick(regions, &totals, NULL);
        }
        give_steps(regions, steps, ARRAY_LEN(steps));
        wm_regions_complete(regions, INT64_MAX);
        fill_wholes(wholes, NAN, 100);
        wholes[WM_REGION_GPU_ENERGY].unassigned = unassigned[i];
        assert_true(wm_regions_path(regions, A, wholes, &figures));
        const struct wm_region_use *use = &figures.exclusive.uses[WM_REGION_GPU_ENERGY];
        off = i == 0 ? use->random : off;
        assert_near(use->used.number, 75, 1e-9);
        assert_near(use->random - off, 25 * unassigned[i], 1e-9);
        assert_near(figures.inclusive.uses[WM_REGION_GPU_ENERGY].used.number, 100, 1e-9);
        wm_regions_free(regions);
    }
}

/* The last reading told of more than there was in the end, as two ways of asking may. */
static void test_less_in_the_end(void **state)
{
    static const struct step steps[] = { OPENS(0, A, 0), CLOSES(1040, A, 0, 0) };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures figures;
    struct wm_region_cost rest;
    struct wm_regions *regions = new_regions();

    (void)state;
    fill_wholes(wholes, 0.009, NAN);
    for (int tick = 0; tick <= 2; tick++) {
        struct wm_region_totals totals =
            totals_at(500 * tick * MS, tick > 0 ? 0.01 : 0, NAN);
        wm_regions_tick(regions, &totals, NULL);
    }
    give_steps(regions, steps, 1);
    /* Opened after all that was used. */
    struct wm_region_edge late = { .when_ns = 1010 * MS, .start_ns = 1010 * MS, .path = C };
    give_edge(regions, &late);
    late = (struct wm_region_edge) {
        .when_ns = 1040 * MS, .start_ns = 1010 * MS, .path = C, .kind = WM_REGION_CLOSES
    };
    give_edge(regions, &late);
    give_steps(regions, steps + 1, 1);
    wm_regions_complete(regions, INT64_MAX);
    assert_true(wm_regions_path(regions, C, wholes, &figures));
    assert_true(figures.inclusive.uses[WM_REGION_CPU_TIME].used.number >= 0);
    double sum = figures.exclusive.uses[WM_REGION_CPU_TIME].used.number;
    assert_true(wm_regions_path(regions, A, wholes, &figures));
    sum += figures.exclusive.uses[WM_REGION_CPU_TIME].used.number;
    wm_regions_rest(regions, wholes, &rest);
    assert_true(rest.uses[WM_REGION_CPU_TIME].used.number >= 0);
    assert_near(sum + rest.uses[WM_REGION_CPU_TIME].used.number, 0.009, 1e-12);
    wm_regions_free(regions);
}

static int below(int count)
{
    return (int)uniform(0, count);
}

#define MOST_EDGES 4000
#define THREADS 6
#define MOST_DEEP 12
#define TICKS 200

/* A run of threads that call, recurse and start things, and its ticks. */
struct workload {
    struct wm_region_path paths[MOST_EDGES];
    size_t path_count;
    struct wm_region_edge edges[MOST_EDGES];
    size_t edge_count;
    struct wm_region_totals ticks[TICKS];
    struct wm_timepoint points[TICKS];
};

static const struct wm_region_path *workload_path(const void *context, uint32_t path)
{
    return &((const struct workload *)context)->paths[path];
}

static uint32_t child_path(struct workload *load, uint32_t parent, bool is_free)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    const char *name = names[below(ARRAY_LEN(names))];

    for (uint32_t i = 0; i < load->path_count; i++) {
        const struct wm_region_path *path = &load->paths[i];
        if (path->parent == parent && path->is_free == is_free &&
            strcmp(path->name, name) == 0)
            return i;
    }
    load->paths[load->path_count] = (struct wm_region_path) {
        name, parent, parent == WM_REGION_NO_PATH ? 0 : load->paths[parent].depth + 1,
        is_free
    };
    return (uint32_t)load->path_count++;
}

struct open {
    uint32_t path;
    int64_t start_ns;
};

static void add_edge(struct workload *load, int64_t when_ns, int64_t start_ns,
                     uint32_t path, uint32_t thread, enum wm_region_edge_kind kind)
{
    load->edges[load->edge_count++] = (struct wm_region_edge) {
        .when_ns = when_ns,
        .start_ns = start_ns,
        .path = path,
        .thread = thread,
        .kind = kind,
        .clocked = kind == WM_REGION_CLOSES && uniform(0, 1) < 0.5
                       ? 1 + (uint64_t)(uniform(0, 1) * (double)(when_ns - start_ns))
                       : 0,
    };
}

static void make_workload(struct workload *load)
{
    struct open stacks[THREADS][MOST_DEEP], started[MOST_DEEP];
    int depths[THREADS] = { 0 }, started_count = 0;
    int64_t now = 0;
    double cpu = 0, joules = 0;

    memset(load, 0, sizeof(*load));
    while (load->edge_count < MOST_EDGES - THREADS * MOST_DEEP - MOST_DEEP) {
        /* Often at the same moment as another, or as a tick. */
        now += uniform(0, 1) < 0.3 ? 0 : below(9) * 250000;
        uint32_t thread = (uint32_t)below(THREADS);
        int *depth = &depths[thread];
        struct open *stack = stacks[thread];
        double what = uniform(0, 1);
        if (what < 0.1 && started_count < MOST_DEEP) {
            struct open call = { child_path(load, WM_REGION_NO_PATH, true), now };
            started[started_count++] = call;
            add_edge(load, now, now, call.path, 0, WM_REGION_OPENS);
        } else if (what < 0.2 && started_count > 0) {
            int i = below(started_count);
            add_edge(load, now, started[i].start_ns, started[i].path, 0, WM_REGION_CLOSES);
            started[i] = started[--started_count];
        } else if (what < 0.6 && *depth < MOST_DEEP) {
            uint32_t parent = *depth > 0 ? stack[*depth - 1].path : WM_REGION_NO_PATH;
            stack[*depth] = (struct open) { child_path(load, parent, false), now };
            add_edge(load, now, now, stack[*depth].path, thread, WM_REGION_OPENS);
            ++*depth;
        } else if (*depth > 0) {
            --*depth;
            add_edge(load, now, stack[*depth].start_ns, stack[*depth].path, thread,
                     uniform(0, 1) < 0.05 ? WM_REGION_BREAKS_OFF : WM_REGION_CLOSES);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        while (depths[i]-- > 0)
            add_edge(load, now, stacks[i][depths[i]].start_ns, stacks[i][depths[i]].path, i,
                     WM_REGION_BREAKS_OFF);
    }
    while (started_count-- > 0)
        add_edge(load, now, started[started_count].start_ns, started[started_count].path, 0,
                 WM_REGION_BREAKS_OFF);

    for (int i = 0; i < TICKS; i++) {
        int64_t when_ns = now / TICKS * i / 250000 * 250000;
        load->ticks[i] = totals_at(when_ns, uniform(0, 1) < 0.1 ? NAN : cpu,
                                   uniform(0, 1) < 0.2 ? NAN : joules);
        load->points[i].when_ns = when_ns;
        load->points[i].known = WM_ALL_MEASUREMENTS;
        for (int k = 0; k < WM_MEASUREMENT_COUNT; k++)
            load->points[i].values[k] = uniform(0, 100);
        cpu += uniform(0, 0.1);
        joules += uniform(0, 50);
    }
}

static void give(struct wm_regions *regions, const struct workload *load,
                 const struct wm_region_edge *edge)
{
    const struct wm_region_paths of_load = { workload_path, load };

    assert_int_equal(wm_regions_edge(regions, edge, edge->thread, &of_load), WM_OK);
}

/* As a tracker does: each tick, and what is known by then of edges now and then. */
static struct wm_regions *feed_live(const struct workload *load)
{
    struct wm_regions *regions = new_regions();
    size_t next = 0;

    for (int i = 0; i < TICKS; i++) {
        wm_regions_tick(regions, &load->ticks[i], &load->points[i]);
        if (below(3) > 0)
            continue;
        int64_t until_ns = load->ticks[i].when_ns - below(5) * MS;
        while (next < load->edge_count && load->edges[next].when_ns <= until_ns)
            give(regions, load, &load->edges[next++]);
        wm_regions_complete(regions, until_ns);
    }
    while (next < load->edge_count)
        give(regions, load, &load->edges[next++]);
    wm_regions_complete(regions, INT64_MAX);
    return regions;
}

/* What opens comes first, in any order. */
static int compare_edges(const void *left, const void *right)
{
    const struct wm_region_edge *one = left, *other = right;

    if (one->when_ns != other->when_ns)
        return one->when_ns < other->when_ns ? -1 : 1;
    bool opens = one->kind == WM_REGION_OPENS, other_opens = other->kind == WM_REGION_OPENS;
    if (opens != other_opens)
        return opens ? -1 : 1;
    if (one->path != other->path)
        return one->path > other->path ? -1 : 1;
    if (one->thread != other->thread)
        return one->thread > other->thread ? -1 : 1;
    return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
}

/* As a recording is read. */
static struct wm_regions *feed_stored(struct workload *load)
{
    struct wm_regions *regions = new_regions();
    size_t next = 0;

    qsort(load->edges, load->edge_count, sizeof(load->edges[0]), compare_edges);
    for (int i = 0; i < TICKS; i++) {
        wm_regions_tick(regions, &load->ticks[i], &load->points[i]);
        while (next < load->edge_count &&
               load->edges[next].when_ns <= load->ticks[i].when_ns)
            give(regions, load, &load->edges[next++]);
        wm_regions_complete(regions, load->ticks[i].when_ns);
    }
    while (next < load->edge_count)
        give(regions, load, &load->edges[next++]);
    wm_regions_complete(regions, INT64_MAX);
    return regions;
}

static void assert_same_cost(const struct wm_region_cost *one,
                             const struct wm_region_cost *other)
{
    assert_memory_equal(&one->seconds, &other->seconds, sizeof(double));
    for (int i = 0; i < WM_REGION_RESOURCES; i++) {
        const struct wm_region_use *left = &one->uses[i], *right = &other->uses[i];
        assert_int_equal(!left->used.known, !right->used.known);
        if (!left->used.known)
            continue;
        assert_memory_equal(&left->used.number, &right->used.number, sizeof(double));
        assert_memory_equal(&left->random, &right->random, sizeof(double));
        assert_memory_equal(&left->systematic, &right->systematic, sizeof(double));
        assert_int_equal(left->is_short, right->is_short);
    }
}

static void assert_same_block(const struct wm_block *one, const struct wm_block *other)
{
    struct wm_block left = *one, right = *other;

    left.open_index = right.open_index = left.stretch = right.stretch = 0;
    assert_memory_equal(&left, &right, sizeof(left));
}

static void test_adds_up_and_is_the_same(void **state)
{
    static struct workload load;
    struct wm_region_whole wholes[WM_REGION_RESOURCES];

    (void)state;
    for (int run = 0; run < 20; run++) {
        make_workload(&load);
        const double cpu_s = 25, gpu_j = 6000;
        fill_wholes(wholes, cpu_s, gpu_j);
        int64_t end_ns = load.edges[load.edge_count - 1].when_ns;
        struct wm_regions *live = feed_live(&load), *stored = feed_stored(&load);
        if (run % 2 == 1) {
            const struct wm_region_package package = package_at(1.5);
            assert_int_equal(wm_regions_clock(live, wholes, &package), WM_OK);
            assert_int_equal(wm_regions_clock(stored, wholes, &package), WM_OK);
        }
        struct wm_region_figures figures, others;
        struct wm_region_cost rest, other_rest;
        wm_regions_rest(live, wholes, &rest);
        wm_regions_rest(stored, wholes, &other_rest);
        assert_same_cost(&rest, &other_rest);
        double seconds = rest.seconds, cpu = rest.uses[WM_REGION_CPU_TIME].used.number,
               gpu = rest.uses[WM_REGION_GPU_ENERGY].used.number;
        for (uint32_t i = 0; i < load.path_count; i++) {
            assert_true(wm_regions_path(live, i, wholes, &figures));
            assert_true(wm_regions_path(stored, i, wholes, &others));
            assert_same_cost(&figures.inclusive, &others.inclusive);
            assert_same_cost(&figures.exclusive, &others.exclusive);
            assert_same_block(figures.block, others.block);
            assert_string_equal(figures.name, others.name);
            assert_true(figures.exclusive.seconds <= figures.inclusive.seconds + 1e-9);
            seconds += figures.exclusive.seconds;
            cpu += figures.exclusive.uses[WM_REGION_CPU_TIME].used.number;
            gpu += figures.exclusive.uses[WM_REGION_GPU_ENERGY].used.number;
            wm_regions_name(live, figures.of_name, wholes, &figures);
            wm_regions_name(stored, others.of_name, wholes, &others);
            assert_same_cost(&figures.inclusive, &others.inclusive);
            assert_same_cost(&figures.exclusive, &others.exclusive);
            assert_same_block(figures.block, others.block);
        }
        assert_near(seconds, (double)end_ns / 1e9, 1e-9 * seconds);
        assert_near(cpu, cpu_s, 1e-9 * cpu_s);
        assert_near(gpu, gpu_j, 1e-9 * gpu_j);
        wm_regions_free(live);
        wm_regions_free(stored);
    }
}

/* A timepoint at the moment of a start or a stop is inside. */
#define NEVER_STOPS (-1)

static void test_timepoints(void **state)
{
    static const struct {
        int start_ms, stop_ms;
        unsigned timepoints, nonempty;
    } calls[] = {
        { 500, 600, 1, 1 }, { 400, 500, 1, 1 },   { 500, 500, 1, 1 },
        { 501, 999, 0, 0 }, { 0, 1000, 3, 1 },    { 600, 700, 0, 0 },
        { 499, 501, 1, 1 }, { 1000, 1500, 1, 1 }, { 500, NEVER_STOPS, 0, 0 },
    };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];

    (void)state;
    fill_wholes(wholes, NAN, NAN);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct wm_regions *regions = new_regions();
        struct wm_region_figures figures;
        struct wm_region_edge edge = { .when_ns = calls[i].start_ms * MS,
                                       .start_ns = calls[i].start_ms * MS };
        for (int tick = 0; tick < 3; tick++) {
            struct wm_region_totals totals = totals_at(tick * 500 * MS, NAN, NAN);
            struct wm_timepoint point = { .when_ns = totals.when_ns,
                                          .known = WM_ALL_MEASUREMENTS };
            wm_regions_tick(regions, &totals, &point);
        }
        /* One of the same thread that ends when this one begins. */
        struct wm_region_edge before = { .when_ns = 0, .path = C };
        give_edge(regions, &before);
        before = (struct wm_region_edge) { .when_ns = edge.when_ns,
                                           .path = C,
                                           .kind = WM_REGION_CLOSES };
        give_edge(regions, &before);
        bool is_unfinished = calls[i].stop_ms == NEVER_STOPS;
        edge.kind = is_unfinished ? WM_REGION_UNFINISHED : WM_REGION_OPENS;
        give_edge(regions, &edge);
        edge.when_ns = calls[i].stop_ms * MS;
        edge.kind = WM_REGION_CLOSES;
        if (!is_unfinished)
            give_edge(regions, &edge);
        wm_regions_complete(regions, INT64_MAX);
        assert_true(wm_regions_path(regions, A, wholes, &figures));
        assert_int_equal(figures.block->unfinished, is_unfinished);
        assert_int_equal(figures.block->timepoints, calls[i].timepoints);
        assert_int_equal(figures.block->nonempty_calls, calls[i].nonempty);
        wm_regions_free(regions);
    }
}

/* Beyond some thousand paths the rest is one. */
static void test_many_paths(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_regions *regions = new_regions();
    struct wm_region_figures figures;

    (void)state;
    fill_wholes(wholes, NAN, NAN);
    for (uint32_t i = 10; i < WM_REGIONS_MOST + 100; i++) {
        struct wm_region_edge edge = { .when_ns = 2 * i * MS, .path = i };
        edge.start_ns = edge.when_ns;
        give_edge(regions, &edge);
        edge.when_ns += MS;
        edge.kind = WM_REGION_CLOSES;
        give_edge(regions, &edge);
    }
    wm_regions_complete(regions, INT64_MAX);
    assert_int_equal(wm_regions_facts(regions).paths, WM_REGIONS_MOST - 10 + 2);
    assert_true(wm_regions_path(regions, WM_REGIONS_MOST, wholes, &figures));
    assert_string_equal(figures.name, "(further regions)");
    assert_int_equal(figures.block->calls, 100);
    assert_near(figures.exclusive.seconds, 0.1, 1e-9);
    assert_false(wm_regions_path(regions, 1, wholes, &figures));
    wm_regions_free(regions);
}

/* Ticks whose edges never come do not wait for ever. */
static void test_waiting_is_bounded(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_regions *regions = new_regions();
    struct wm_region_figures figures;
    struct wm_region_cost rest;

    (void)state;
    fill_wholes(wholes, NAN, 10 * WM_REGIONS_WAITING_LEAST);
    for (int i = 0; i <= 10 * WM_REGIONS_WAITING_LEAST; i++) {
        struct wm_region_totals totals = totals_at(i * 100 * MS, NAN, i);
        wm_regions_tick(regions, &totals, NULL);
    }
    /* Known far too late: it begins when it is known. */
    struct wm_region_edge edge = { .when_ns = 50 * MS, .start_ns = 50 * MS };
    give_edge(regions, &edge);
    edge.when_ns = INT64_C(100) * 10 * WM_REGIONS_WAITING_LEAST * MS;
    edge.kind = WM_REGION_CLOSES;
    give_edge(regions, &edge);
    wm_regions_complete(regions, INT64_MAX);
    assert_true(wm_regions_path(regions, A, wholes, &figures));
    wm_regions_rest(regions, wholes, &rest);
    double own = figures.exclusive.uses[WM_REGION_GPU_ENERGY].used.number;
    assert_near(own, WM_REGIONS_WAITING_LEAST, 1.5);
    assert_near(own + rest.uses[WM_REGION_GPU_ENERGY].used.number,
                10 * WM_REGIONS_WAITING_LEAST, 1e-6);
    wm_regions_free(regions);
}

/* What a sensor tells after the last tick is of the last stretch, and a resource that
 * falls silent is given out in the end. */
static void test_last_words(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_regions *regions = new_regions();
    struct wm_region_figures figures;

    (void)state;
    for (int i = 0; i <= 100; i++) {
        struct wm_region_totals totals =
            totals_at(i * 100 * MS, i <= 10 ? (double)i : NAN, i);
        wm_regions_tick(regions, &totals, NULL);
    }
    struct wm_region_edge edge = { .when_ns = 5000 * MS, .start_ns = 5000 * MS };
    give_edge(regions, &edge);
    wm_regions_complete(regions, INT64_MAX);
    fill_wholes(wholes, 100, 110);
    assert_true(wm_regions_path(regions, A, wholes, &figures));
    assert_near(figures.inclusive.uses[WM_REGION_GPU_ENERGY].used.number, 50 + 10, 1e-9);
    assert_near(figures.inclusive.uses[WM_REGION_CPU_TIME].used.number, 90 * 5 / 9.0, 1e-9);
    wm_regions_free(regions);
}

/* What comes after the last tick is counted and timed, and has no time of the run. */
static void test_after_the_end(void **state)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_regions *regions = new_regions();
    struct wm_region_figures figures;
    struct wm_region_cost rest;

    (void)state;
    for (int i = 0; i <= 4; i++) {
        struct wm_region_totals totals = totals_at(i * 100 * MS, i, i);
        wm_regions_tick(regions, &totals, NULL);
    }
    struct wm_region_edge edges[] = {
        { .when_ns = 300 * MS, .start_ns = 300 * MS },
        { .when_ns = 900 * MS, .start_ns = 300 * MS, .kind = WM_REGION_CLOSES },
        { .when_ns = 950 * MS, .start_ns = 950 * MS },
        { .when_ns = 5000 * MS, .start_ns = 950 * MS, .kind = WM_REGION_BREAKS_OFF },
    };
    wm_regions_end(regions, 400 * MS);
    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        give_edge(regions, &edges[i]);
    wm_regions_complete(regions, INT64_MAX);
    fill_wholes(wholes, 4, 4);
    assert_true(wm_regions_path(regions, A, wholes, &figures));
    wm_regions_rest(regions, wholes, &rest);
    assert_int_equal(figures.block->calls, 1);
    assert_int_equal(figures.block->unfinished, 1);
    assert_near(wm_block_figures_of(&figures.block->time).of[WM_BLOCK_MEAN].number, 0.6,
                1e-9);
    assert_near(figures.inclusive.seconds, 0.1, 1e-9);
    assert_near(rest.seconds, 0.3, 1e-9);
    assert_near(figures.inclusive.uses[WM_REGION_GPU_ENERGY].used.number, 1, 1e-9);
    wm_regions_free(regions);
}

/* However short the interval is, edges that come to be known late count from when they
 * were. */
static void test_short_interval(void **state)
{
    static const struct {
        int64_t interval_ns;
        int ticks; /* of two seconds */
    } intervals[] = { { 100 * MS, 20 }, { 10 * MS, 200 }, { MS, 2000 }, { MS / 4, 8000 } };
    struct wm_region_whole wholes[WM_REGION_RESOURCES];

    (void)state;
    fill_wholes(wholes, NAN, 200);
    for (size_t i = 0; i < ARRAY_LEN(intervals); i++) {
        struct wm_regions *regions = NULL;
        struct wm_region_figures figures;
        assert_int_equal(
            wm_regions_new(intervals[i].interval_ns, WM_REGIONS_MOST, &regions, NULL),
            WM_OK);
        for (int k = 0; k <= intervals[i].ticks; k++) {
            struct wm_region_totals totals = totals_at(k * intervals[i].interval_ns, NAN,
                                                       200.0 * k / intervals[i].ticks);
            wm_regions_tick(regions, &totals, NULL);
        }
        struct wm_region_edge edge = { .when_ns = 500 * MS, .start_ns = 500 * MS };
        give_edge(regions, &edge);
        edge.when_ns = 1500 * MS;
        edge.kind = WM_REGION_CLOSES;
        give_edge(regions, &edge);
        wm_regions_complete(regions, INT64_MAX);
        assert_true(wm_regions_path(regions, A, wholes, &figures));
        assert_near(figures.exclusive.seconds, 1, 1e-9);
        assert_near(figures.exclusive.uses[WM_REGION_GPU_ENERGY].used.number, 100, 1e-6);
        wm_regions_free(regions);
    }
}

/* An edge for which there is no memory comes again. */
static struct wm_regions *feed_with_failure(const struct workload *load, long nth,
                                            bool *ret_failed)
{
    const struct wm_region_paths of_load = { workload_path, load };
    struct wm_regions *regions = NULL;

    *ret_failed = false;
    test_fail_allocation(nth);
    int status = wm_regions_new(100 * MS, WM_REGIONS_MOST, &regions, NULL);
    if (status < 0) {
        test_fail_allocation(-1);
        *ret_failed = true;
        assert_int_equal(status, WM_ENOMEM);
        regions = new_regions();
    }
    for (size_t i = 0; i < 300; i++) {
        const struct wm_region_edge *edge = &load->edges[i];
        status = wm_regions_edge(regions, edge, edge->thread, &of_load);
        if (status == WM_OK)
            continue;
        test_fail_allocation(-1);
        *ret_failed = true;
        assert_int_equal(status, WM_ENOMEM);
        give(regions, load, edge);
    }
    test_fail_allocation(-1);
    return regions;
}

static void assert_same(const struct workload *load, const struct wm_regions *regions,
                        const struct wm_regions *others)
{
    struct wm_region_whole wholes[WM_REGION_RESOURCES];
    struct wm_region_figures one, other;

    fill_wholes(wholes, 0, 0);
    for (uint32_t i = 0; i < load->path_count; i++) {
        bool is_there = wm_regions_path(regions, i, wholes, &one);
        assert_int_equal(wm_regions_path(others, i, wholes, &other), is_there);
        if (!is_there)
            continue;
        assert_same_cost(&one.inclusive, &other.inclusive);
        assert_same_cost(&one.exclusive, &other.exclusive);
        assert_same_block(one.block, other.block);
    }
}

static void test_no_memory(void **state)
{
    static struct workload load;
    bool failed = true;

    (void)state;
    make_workload(&load);
    struct wm_regions *expected = feed_with_failure(&load, -1, &failed);
    wm_regions_complete(expected, INT64_MAX);
    failed = true;
    for (long nth = 0; failed; nth++) {
        struct wm_regions *regions = feed_with_failure(&load, nth, &failed);
        wm_regions_complete(regions, INT64_MAX);
        assert_same(&load, regions, expected);
        wm_regions_free(regions);
    }
    wm_regions_free(expected);
}

UNIT(analyze_regions)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_cpu_time_is_in_its_interval),
        cmocka_unit_test(test_whose_gpu),
        cmocka_unit_test(test_energy_follows_cpu_time),
        cmocka_unit_test(test_less_in_the_end),
        cmocka_unit_test(test_adds_up_and_is_the_same),
        cmocka_unit_test(test_timepoints),
        cmocka_unit_test(test_many_paths),
        cmocka_unit_test(test_waiting_is_bounded),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_after_the_end),
        cmocka_unit_test(test_short_interval),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
