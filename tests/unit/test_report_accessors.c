/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_accessors.c - a report by its accessors: figures of each kind of part, facts,
 * and indices and keys that are wrong. */
#include <math.h>
#include <string.h>

#include "analyze/analyze_figures.h"
#include "made_report.h"

#define VALUE(number_, uncertainty_)                                                       \
    {                                                                                      \
        .value = KNOWN(number_), .uncertainty = uncertainty_                               \
    }

static char *words[] = { (char[]) { "make" }, (char[]) { "-j2" } };
static struct wm_pair notes[] = { { .key = (char[]) { "lr" }, .value = (char[]) { "0.1" } },
                                  { .key = NULL, .value = NULL } };
static struct wm_source_status sources[] = {
    { .name = (char[]) { "nvml" }, .available = false, .detail = (char[]) { "no driver" } },
    { .name = (char[]) { "tree" }, .available = true, .detail = NULL },
};
static char *remarks[] = { (char[]) { "late ticks" } };

static struct wm_region_usage paths[] = {
    {
        .name = (char[]) { "epoch" },
        .calls = 2,
        .unfinished = 1,
        .time = { .of = { { true, 1 },
                          { true, 3 },
                          { true, 2 },
                          { true, M_SQRT2 },
                          { true, 4 } } },
        .timepoints = 7,
        .nonempty_calls = 2,
        .histogram = { [20] = 1, [WM_BLOCK_BUCKETS - 1] = 1 },
        .usage = { [WM_SYSTEM_RAM] = { .of = { { true, 5 },
                                               { true, 9 },
                                               { true, 6 },
                                               { true, 2 } },
                                       .count = 7 } },
        .parent = WM_NO_REGION,
        .children = 1,
        .inclusive = { .time = KNOWN(4), .energy = VALUE(100, KNOWN(0.1)) },
        .exclusive = { .time = KNOWN(1),
                       .energy = VALUE(10, KNOWN(2)),
                       .cpu_time = VALUE(0.5, UNKNOWN("too short")),
                       .tree_energy = { UNKNOWN("no counter"), UNKNOWN("no counter") } },
        .is_short = true,
    },
    { .name = (char[]) { "batch" },
      .time = { .of = { [WM_BLOCK_TOTAL] = { true, 0 } } },
      .parent = 0,
      .depth = 1,
      .is_free = true },
};
static struct wm_gpu_usage gpus[] = {
    { .has_index = true,
      .index = 1,
      .uuid = (char[]) { "GPU-7c1f" },
      .name = (char[]) { "NVIDIA H100" },
      .label = (char[]) { "gpu1" },
      .origin = WM_SIMULATED,
      .figure = { .energy = KNOWN(50), .uncertainty = KNOWN(0.02), .method = "counter" },
      .power = { .mean = KNOWN(25), .max = UNKNOWN("lost") } },
    { .label = (char[]) { "card0" }, .figure = { .energy = UNKNOWN("none") } },
};
static struct wm_device_energy devices[] = {
    { .name = (char[]) { "package0" },
      .source = (char[]) { "rapl" },
      .kind = WM_DEVICE_CPU,
      .figure = { .energy = KNOWN(30),
                  .low = KNOWN(27),
                  .high = KNOWN(36),
                  .sensor = "all of the time" },
      .power = KNOWN(15) },
};
static struct wm_process_peak processes[] = {
    { .pid = 7,
      .parent = 1,
      .name = "make",
      .cpu_seconds = { true, 2 },
      .max_private_bytes = { 0 } },
};
static struct wm_value process_energies[] = { UNKNOWN("no energy") };

static const struct wm_report made = {
    .run = { .host = (char[]) { "node7" },
             .command = words,
             .command_count = ARRAY_LEN(words),
             .notes = notes,
             .note_count = ARRAY_LEN(notes),
             .sources = sources,
             .source_count = ARRAY_LEN(sources),
             .interval_ns = 100000000 },
    .result = { .exit_status = { 0 },
                .exit_signal = 9,
                .usage = { .user_seconds = { true, 1.5 },
                           .minor_faults = { true, 78 },
                           .note = "some were not waited for",
                           .io_note = "/proc/self/io: not understood" },
                .events = { [WM_EVENT_CYCLES] = { true, 1e9 } },
                .processes = processes,
                .process_count = ARRAY_LEN(processes) },
    .complete = true,
    .compute_time = KNOWN(2),
    .start_unix_ns = 1000,
    .ram_combined = { .total = { .number = 500, .known = true, .why = "not looked at" } },
    .energy = SUM(80, 60, WM_SIMULATED),
    .cpu_energy = NO_SUM("no RAPL"),
    .gpu_ram_main = { .known = false },
    .gpus = gpus,
    .gpu_count = ARRAY_LEN(gpus),
    .devices = devices,
    .device_count = ARRAY_LEN(devices),
    .regions = { .names = paths,
                 .name_count = 1,
                 .paths = paths,
                 .path_count = 2,
                 .rest = { .time = KNOWN(0.25) } },
    .process_energies = process_energies,
    .remarks = remarks,
    .remark_count = ARRAY_LEN(remarks),
};

#define PATH(index_, share_)                                                               \
    {                                                                                      \
        WM_REPORT_PATH, index_, WM_REPORT_##share_                                         \
    }

static const struct figure_case {
    const char *key;
    struct wm_report_part part;
    enum wm_report_state state;
    double value, low, high; /* high 0: there is no range */
    const char *unit, *why;
    enum wm_origin origin;
} figure_cases[] = {
    { "energy", { 0 }, WM_REPORT_KNOWN, 80, 76, 84, "J", NULL, WM_SIMULATED },
    { "energy.total", { 0 }, WM_REPORT_KNOWN, 80, 76, 84, "J", NULL, WM_SIMULATED },
    { "time", { 0 }, WM_REPORT_KNOWN, 2, 0, 0, "s", NULL, 0 },
    { "cpu_energy", { 0 }, WM_REPORT_MISSING, 0, 0, 0, "J", "no RAPL", 0 },
    { "memory", { 0 }, WM_REPORT_AT_LEAST, 500, 0, 0, "B", "not looked at", 0 },
    { "max_gpu_ram.main", { 0 }, WM_REPORT_MISSING, 0, 0, 0, "B", "unknown", 0 },
    { "user_time",
      { 0 },
      WM_REPORT_AT_LEAST,
      1.5,
      0,
      0,
      "s",
      "some were not waited for",
      0 },
    { "page_faults.minor",
      { 0 },
      WM_REPORT_AT_LEAST,
      78,
      0,
      0,
      "count",
      "some were not waited for",
      0 },
    { "read_bytes",
      { 0 },
      WM_REPORT_MISSING,
      0,
      0,
      0,
      "B",
      "/proc/self/io: not understood",
      0 },
    { "cycles", { 0 }, WM_REPORT_KNOWN, 1e9, 0, 0, "count", NULL, 0 },
    { "events.instructions",
      { 0 },
      WM_REPORT_MISSING,
      0,
      0,
      0,
      "count",
      "it was not counted",
      0 },
    { "tool.interval", { 0 }, WM_REPORT_KNOWN, 0.1, 0, 0, "s", NULL, 0 },
    { "energy", PATH(0, INCLUSIVE), WM_REPORT_KNOWN, 100, 90, 110, "J", NULL,
      WM_SIMULATED },
    { "time", PATH(0, INCLUSIVE), WM_REPORT_KNOWN, 4, 0, 0, "s", NULL, 0 },
    /* No energy is below 0, however little is known of it. */
    { "energy", PATH(0, EXCLUSIVE), WM_REPORT_KNOWN, 10, 0, 30, "J", NULL, WM_SIMULATED },
    { "cpu_time", PATH(0, EXCLUSIVE), WM_REPORT_KNOWN, 0.5, 0, 0, "s", NULL, 0 },
    { "tree_energy", PATH(0, EXCLUSIVE), WM_REPORT_MISSING, 0, 0, 0, "J", "no counter",
      WM_SIMULATED },
    { "time", { WM_REPORT_REST, 0, 0 }, WM_REPORT_KNOWN, 0.25, 0, 0, "s", NULL, 0 },
    { "energy",
      { WM_REPORT_GPU, 0, 0 },
      WM_REPORT_KNOWN,
      50,
      49,
      51,
      "J",
      NULL,
      WM_SIMULATED },
    { "max_power",
      { WM_REPORT_GPU, 0, 0 },
      WM_REPORT_MISSING,
      0,
      0,
      0,
      "W",
      "lost",
      WM_SIMULATED },
    { "energy", { WM_REPORT_GPU, 1, 0 }, WM_REPORT_MISSING, 0, 0, 0, "J", "none", 0 },
    { "power", { WM_REPORT_DEVICE, 0, 0 }, WM_REPORT_KNOWN, 15, 13.5, 18, "W", NULL, 0 },
};

static void test_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(figure_cases); i++) {
        const struct figure_case *row = &figure_cases[i];
        struct wm_report_figure figure;
        print_message("  %s of %d.%zu\n", row->key, (int)row->part.kind, row->part.index);
        assert_int_equal(wm_report_figure(&made, &row->part, row->key, &figure), WM_OK);
        assert_int_equal(figure.state, row->state);
        assert_true(fabs(figure.value - row->value) < 1e-9);
        assert_int_equal(figure.has_range, row->high > 0);
        assert_true(fabs(figure.low - row->low) < 1e-9);
        assert_true(fabs(figure.high - row->high) < 1e-9);
        assert_string_equal(figure.unit, row->unit);
        assert_int_equal(figure.origin, row->origin);
        if (row->why)
            assert_string_equal(figure.why, row->why);
        else
            assert_null(figure.why);
    }
}

static void test_no_such_figure(void **state)
{
    static const struct {
        const char *key;
        struct wm_report_part part;
    } rows[] = {
        { "", { 0 } },
        { ".", { 0 } },
        { "energ", { 0 } },
        { "energy.", { 0 } },
        { "energy.total.x", { 0 } },
        { "max_ram", { 0 } },
        { "max_ram.unit", { 0 } },
        { "utilization", { 0 } }, /* of a GPU alone */
        { "memory", PATH(0, INCLUSIVE) },
        { "energy", { WM_REPORT_RUN, 1, 0 } },
        { "energy", { WM_REPORT_REGION, 1, 0 } },
        { "energy", PATH(2, INCLUSIVE) },
        { "energy", { WM_REPORT_GPU, SIZE_MAX, 0 } },
        { "energy", { WM_REPORT_DEVICE, 1, 0 } },
        { "energy", { WM_REPORT_REST, 1, 0 } },
        { "energy", { (enum wm_report_kind)99, 0, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_report_figure figure = { .key = "as before" };
        int status = wm_report_figure(&made, &rows[i].part, rows[i].key, &figure);
        assert_int_equal(status, WM_ENOENT);
        assert_string_equal(figure.key, "as before");
    }
}

/* Each can be had by its key, and no key is there twice. */
static void test_all_figures(void **state)
{
    static const struct wm_report_part parts[] = {
        { 0 },
        PATH(0, INCLUSIVE),
        { WM_REPORT_REST, 0, 0 },
        { WM_REPORT_GPU, 0, 0 },
        { WM_REPORT_DEVICE, 0, 0 },
    };
    struct wm_report_figure figure, same;

    (void)state;
    for (size_t p = 0; p < ARRAY_LEN(parts); p++) {
        size_t count = 0;
        while (wm_report_figure_at(&made, &parts[p], count, &figure) == WM_OK) {
            int status = wm_report_figure(&made, &parts[p], figure.key, &same);
            assert_int_equal(status, WM_OK);
            assert_ptr_equal(same.key, figure.key);
            assert_true(same.value == figure.value);
            count++;
        }
        assert_true(count >= 5);
        assert_int_equal(wm_report_figure_at(&made, &parts[p], SIZE_MAX, &figure),
                         WM_ENOENT);
    }
    const struct wm_report_part none = { WM_REPORT_GPU, 2, 0 };
    assert_int_equal(wm_report_figure_at(&made, &none, 0, &figure), WM_ENOENT);
}

static void test_find(void **state)
{
    static const struct {
        enum wm_report_kind kind;
        const char *name;
        int status;
        size_t index;
    } rows[] = {
        { WM_REPORT_REGION, "epoch", WM_OK, 0 },     { WM_REPORT_PATH, "batch", WM_OK, 1 },
        { WM_REPORT_GPU, "GPU-7c1f", WM_OK, 0 },     { WM_REPORT_GPU, "card0", WM_OK, 1 },
        { WM_REPORT_DEVICE, "package0", WM_OK, 0 },  { WM_REPORT_REGION, "", WM_ENOENT, 0 },
        { WM_REPORT_REGION, "batch", WM_ENOENT, 0 }, { WM_REPORT_GPU, "gpu", WM_ENOENT, 0 },
        { WM_REPORT_RUN, "run", WM_ENOENT, 0 },      { WM_REPORT_REST, "", WM_ENOENT, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t index = 0;
        assert_int_equal(wm_report_find(&made, rows[i].kind, rows[i].name, &index),
                         rows[i].status);
        assert_int_equal(index, rows[i].index);
    }
}

static void test_run(void **state)
{
    const char *value = NULL;
    struct wm_report_run run;

    (void)state;
    wm_report_run(&made, &run);
    assert_string_equal(run.host, "node7");
    assert_null(run.version);
    assert_null(run.trouble);
    assert_true(run.is_complete);
    assert_int_equal(run.end, WM_REPORT_KILLED);
    assert_int_equal(run.signal_number, 9);
    assert_int_equal(run.exit_status, 0);
    assert_string_equal(wm_report_text(&made, WM_REPORT_WORDS, 1, NULL), "-j2");
    assert_null(wm_report_text(&made, WM_REPORT_WORDS, 2, NULL));
    assert_string_equal(wm_report_text(&made, WM_REPORT_NOTES, 0, NULL), "late ticks");
    assert_null(wm_report_text(&made, WM_REPORT_NOTES, 1, NULL));
    assert_string_equal(wm_report_text(&made, WM_REPORT_TAGS, 0, &value), "lr");
    assert_string_equal(value, "0.1");
    assert_string_equal(wm_report_text(&made, WM_REPORT_TAGS, 1, &value), "");
    assert_null(wm_report_text(&made, WM_REPORT_TAGS, 2, &value));
    assert_null(wm_report_text(&made, WM_REPORT_VARIABLES, 0, &value));
    assert_string_equal(wm_report_text(&made, WM_REPORT_ABSENT_SOURCES, 0, &value), "nvml");
    assert_string_equal(value, "no driver");
    assert_null(wm_report_text(&made, WM_REPORT_ABSENT_SOURCES, 1, &value));
    assert_non_null(wm_report_text(&made, WM_REPORT_SOURCES, 0, &value));
    assert_null(wm_report_text(&made, WM_REPORT_SOURCES, 1, &value));
    assert_null(wm_report_text(&made, (enum wm_report_list)99, 0, &value));
}

static void test_regions(void **state)
{
    struct wm_report_region region;

    (void)state;
    assert_int_equal(wm_report_region(&made, WM_REPORT_PATH, 0, &region), WM_OK);
    assert_string_equal(region.name, "epoch");
    assert_true(region.parent == WM_REPORT_NO_PARENT && region.children == 1);
    assert_true(region.calls == 2 && region.unfinished == 1 && region.timepoints == 7);
    assert_true(region.min_s == 1 && region.max_s == 3 && region.mean_s == 2);
    assert_true(fabs(region.std_s - M_SQRT2) < 1e-9 && region.total_s == 4);
    assert_true(region.is_short && !region.by_itself);
    assert_int_equal(wm_report_region(&made, WM_REPORT_PATH, 1, &region), WM_OK);
    assert_true(region.parent == 0 && region.depth == 1 && region.by_itself);
    assert_true(region.mean_s == 0 && region.std_s == 0);
    assert_int_equal(wm_report_region(&made, WM_REPORT_PATH, 2, &region), WM_ENOENT);
    assert_int_equal(wm_report_region(&made, WM_REPORT_REGION, 1, &region), WM_ENOENT);
    assert_int_equal(wm_report_region(&made, WM_REPORT_GPU, 0, &region), WM_ENOENT);
}

static void test_buckets(void **state)
{
    struct wm_report_bucket bucket;

    (void)state;
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_PATH, 0, 0, &bucket), WM_OK);
    assert_true(bucket.up_to_s == ldexp(1e-6, 20) && bucket.calls == 1);
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_PATH, 0, 1, &bucket), WM_OK);
    assert_true(isinf(bucket.up_to_s) && bucket.calls == 1);
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_PATH, 0, 2, &bucket), WM_ENOENT);
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_PATH, 1, 0, &bucket), WM_ENOENT);
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_PATH, 2, 0, &bucket), WM_ENOENT);
    assert_int_equal(wm_report_bucket(&made, WM_REPORT_GPU, 0, 0, &bucket), WM_ENOENT);
}

static void test_usage(void **state)
{
    struct wm_report_usage usage;

    (void)state;
    assert_int_equal(wm_report_usage(&made, WM_REPORT_REGION, 0, 0, &usage), WM_OK);
    assert_string_equal(usage.name, "system_ram");
    assert_true(usage.count == 7 && usage.min == 5 && usage.max == 9 && usage.mean == 6);
    assert_true(fabs(usage.std - 2) < 1e-9);
    assert_int_equal(wm_report_usage(&made, WM_REPORT_REGION, 0, 1, &usage), WM_ENOENT);
    assert_int_equal(wm_report_usage(&made, WM_REPORT_REGION, 1, 0, &usage), WM_ENOENT);
    assert_int_equal(wm_report_usage(&made, WM_REPORT_RUN, 0, 0, &usage), WM_ENOENT);
}

static void test_devices(void **state)
{
    struct wm_report_device device;

    (void)state;
    assert_int_equal(wm_report_device(&made, WM_REPORT_GPU, 0, &device), WM_OK);
    assert_string_equal(device.uuid, "GPU-7c1f");
    assert_string_equal(device.method, "counter");
    assert_null(device.sensor);
    assert_true(device.has_driver_number && device.driver_number == 1);
    assert_int_equal(device.origin, WM_SIMULATED);
    assert_int_equal(wm_report_device(&made, WM_REPORT_GPU, 1, &device), WM_OK);
    assert_true(!device.has_driver_number && device.driver_number == 0);
    assert_null(device.model);
    assert_int_equal(wm_report_device(&made, WM_REPORT_DEVICE, 0, &device), WM_OK);
    assert_string_equal(device.source, "rapl");
    assert_string_equal(device.sensor, "all of the time");
    assert_int_equal(device.kind, WM_DEVICE_CPU);
    assert_int_equal(wm_report_device(&made, WM_REPORT_GPU, 2, &device), WM_ENOENT);
    assert_int_equal(wm_report_device(&made, WM_REPORT_PATH, 0, &device), WM_ENOENT);
}

static void test_processes(void **state)
{
    struct wm_report_process process;

    (void)state;
    assert_int_equal(wm_report_process(&made, 0, &process), WM_OK);
    assert_true(process.pid == 7 && process.parent == 1);
    assert_string_equal(process.name, "make");
    assert_true(process.cpu_time.value == 2);
    assert_string_equal(process.cpu_energy.why, "no energy");
    assert_int_equal(process.max_private_memory.state, WM_REPORT_MISSING);
    assert_int_equal(wm_report_process(&made, 1, &process), WM_ENOENT);
}

static void test_counts(void **state)
{
    static const struct wm_report empty = { 0 };
    static const size_t counts[] = {
        [WM_REPORT_RUN] = 1,  [WM_REPORT_REGION] = 1, [WM_REPORT_PATH] = 2,
        [WM_REPORT_REST] = 1, [WM_REPORT_GPU] = 2,    [WM_REPORT_DEVICE] = 1,
    };

    (void)state;
    for (size_t kind = 0; kind < ARRAY_LEN(counts); kind++) {
        assert_int_equal(wm_report_count(&made, (enum wm_report_kind)kind), counts[kind]);
        assert_int_equal(wm_report_count(&empty, (enum wm_report_kind)kind), kind == 0);
    }
    assert_null(wm_report_text(&empty, WM_REPORT_SOURCES, 0, NULL));
}

UNIT(report_accessors)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),     cmocka_unit_test(test_no_such_figure),
        cmocka_unit_test(test_all_figures), cmocka_unit_test(test_find),
        cmocka_unit_test(test_run),         cmocka_unit_test(test_regions),
        cmocka_unit_test(test_buckets),     cmocka_unit_test(test_usage),
        cmocka_unit_test(test_devices),     cmocka_unit_test(test_processes),
        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
