/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_view.c - reports as text and JSON, compared with files in
 * tests/data/reports. After a change that is meant, WM_UPDATE_GOLDEN=1 writes
 * them anew; look at the difference before it is kept.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "session.h"

#define KILOS(n) ((n)*1e3)
#define MEGAS(n) ((n)*1e6)
#define GIGAS(n) ((n)*1e9)

static char *one_command[] = { "true" };
static char *tree_command[] = { "sh", "-c", "make -j2 && echo 'it\nworks'", "",
                                "\x1b[31m" };
static char *train_command[] = { "python3", "train.py", "--epochs", "3" };

static struct wm_source_status no_gpu_sources[] = {
    { .name = "tree", .available = true, .detail = "/proc" },
    { .name = "host", .available = true, .detail = NULL },
    { .name = "hwmon",
      .available = false,
      .detail = "no CPU temperature sensor under /sys/class/hwmon" },
    { .name = "nvml",
      .available = false,
      .detail = "no NVIDIA driver: libnvidia-ml.so.1 not found" },
};
static struct wm_source_status gpu_sources[] = {
    { .name = "tree", .available = true, .detail = "/proc" },
    { .name = "host", .available = true, .detail = NULL },
    { .name = "hwmon", .available = true, .detail = NULL },
    { .name = "nvml", .available = true, .detail = "driver 550.54.15 (simulated)" },
};
static struct wm_pair notes[] = { { "epochs", "3" }, { "why", "a \"test\", with µ" } };
static struct wm_pair environment[] = { { "SLURM_JOB_ID", "4711" } };

#define RUN(command_, sources_)                                                            \
    .id = "0b1a9f6e-8d7c-4a55-9d34-1f2e3d4c5b6a", .version = "0.1.0", .mode = "run",       \
    .host = "node7", .boot_id = "b2c1", .kernel = "Linux 6.1.0-28-amd64 x86_64",           \
    .cpu_model = "AMD EPYC 7763 64-Core Processor", .command = command_,                   \
    .command_count = ARRAY_LEN(command_), .sources = sources_,                             \
    .source_count = ARRAY_LEN(sources_), .pid = 4242,                                      \
    .anchor_ns = SESSION_START_NS - 1000000,                                               \
    .anchor_unix_ns = INT64_C(1795252211123000000), .interval_ns = 100000000,              \
    .core_count = 2

/* A command that was over before the second tick was due. */
static const struct series one_series[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 50, 51.5, 53, 54.75, 56.5, 58 } },
    { HOST("memory_used", "B", WM_GAUGE, 0),
      { GIGAS(3), GIGAS(3.1), GIGAS(3.2), GIGAS(3.2), GIGAS(3.1), GIGAS(3) } },
    { HOST("memory_total", "B", WM_GAUGE, 0),
      { 8123456512, 8123456512, 8123456512, 8123456512, 8123456512, 8123456512 } },
    { TRACKER("main", "cpu_time", "s", WM_COUNTER), { 0, 0.0008 } },
    { TRACKER("descendants", "cpu_time", "s", WM_COUNTER), { 0, 0 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 0.0008 } },
    { TREE("main", "memory_total", "B"), { KILOS(409.6), MISSING } },
    { TREE("descendants", "memory_total", "B"), { 0, MISSING } },
    { TREE("tree", "memory_total", "B"), { KILOS(409.6), MISSING } },
    { TREE("tree", "memory_private", "B"), { MISSING, MISSING } },
    { TREE("tree", "threads", "count"), { 1, MISSING } },
    { TREE("tree", "processes", "count"), { 1, MISSING } },
};
static const struct wm_result one_result = {
    .end_ns = SESSION_START_NS + 1234567,
    .exit_status = { true, 0 },
    .cpu_total_seconds = { true, 0.000812 },
    .cpu_main_seconds = { true, 0.000812 },
    .cpu_descendants_seconds = { true, 0 },
    .cpu_method = "perf task-clock, inherited",
    .usage = { .user_seconds = { true, 0.00078 },
               .system_seconds = { true, 0 },
               .voluntary_switches = { true, 1 },
               .involuntary_switches = { true, 0 },
               .minor_faults = { true, 78 },
               .major_faults = { true, 0 },
               .io_note = "/proc/self/io: No such file or directory" },
    .peak_rss_bytes = { true, KILOS(1536) },
    .peak_rss_is_main = true,
    .ticks = 2,
    .tool_cpu_seconds = { true, 0.0021 },
    .tool_max_rss_bytes = { true, MEGAS(5.2) },
    .processes_seen = 1,
};

/* A build: many processes, and all that can be said of it. */
static const struct series tree_series[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 50, 51.5, 53, 54.75, 56.5, 58 } },
    { HOST("memory_used", "B", WM_GAUGE, 0),
      { GIGAS(3), GIGAS(3.1), GIGAS(3.2), GIGAS(3.2), GIGAS(3.1), GIGAS(3) } },
    { HOST("memory_total", "B", WM_GAUGE, 0),
      { 8123456512, 8123456512, 8123456512, 8123456512, 8123456512, 8123456512 } },
    { TRACKER("main", "cpu_time", "s", WM_COUNTER), { 0, 0.2, 0.3, 0.4, 0.5, 0.6 } },
    { TRACKER("descendants", "cpu_time", "s", WM_COUNTER), { 0, 1.2, 3.1, 4.8, 6.4, 7.9 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 1.4, 3.4, 5.2, 6.9, 8.5 } },
    { TREE("main", "memory_total", "B"),
      { MEGAS(1), MEGAS(2), MEGAS(2), MEGAS(2), MEGAS(2) } },
    { TREE("main", "memory_private", "B"), { KILOS(100), KILOS(200) } },
    { TREE("main", "memory_shared", "B"), { KILOS(900), KILOS(1800) } },
    { TREE("descendants", "memory_total", "B"), { 0, MEGAS(498), MEGAS(312) } },
    { TREE("descendants", "memory_private", "B"), { 0, MEGAS(467) } },
    { TREE("descendants", "memory_shared", "B"), { 0, MEGAS(31) } },
    { TREE("tree", "memory_total", "B"), { MEGAS(1), MEGAS(499.5), MEGAS(313) } },
    { TREE("tree", "memory_private", "B"), { KILOS(100), MEGAS(467.2) } },
    { TREE("tree", "memory_shared", "B"), { KILOS(900), MEGAS(32.3) } },
    { TREE("main", "threads", "count"), { 1, 1, 1, 1, 1, 1 } },
    { TREE("descendants", "threads", "count"), { 0, 7, 3, 3, 3, 0 } },
    { TREE("tree", "threads", "count"), { 1, 8, 4, 4, 4, 1 } },
    { TREE("tree", "processes", "count"), { 1, 4, 4, 3, 3, 1 } },
    { CPU_SENSOR("cpu_package0"), { 48, 51, 54, 54, 53, 52 } },
    { CPU_SENSOR("cpu_package1"), { 47, MISSING, 53, 55.5, 53, 52 } },
};
static struct wm_process_peak peaks[] = {
    { 4244, 4243, "cc1", { true, 3.1 }, { true, MEGAS(312) }, { true, MEGAS(300) }, 1 },
    { 4246,
      4243,
      "cc1\x1b]0;gotcha\a",
      { true, 2.9 },
      { true, MEGAS(287) },
      { true, MEGAS(280) },
      1 },
    { 4243, 4242, "make", { true, 0.9 }, { true, MEGAS(9.8) }, { 0 }, 3 },
    { 4242, 4240, "sh", { true, 0.6 }, { true, MEGAS(2) }, { true, KILOS(200) }, 1 },
    { 4250, 4243, "as", { true, 0.4 }, { true, MEGAS(21) }, { true, MEGAS(19) }, 1 },
    { 4251, 4243, "ld", { true, 0.00061 }, { true, MEGAS(35) }, { true, MEGAS(33) }, 1 },
};
static const struct wm_result tree_result = {
    .end_ns = SESSION_START_NS + 5 * SECOND_NS - 20000000,
    .exit_status = { 0 },
    .exit_signal = 15,
    .cpu_total_seconds = { true, 8.512345 },
    .cpu_main_seconds = { true, 0.6 },
    .cpu_descendants_seconds = { true, 7.912345 },
    .cpu_method = "perf task-clock, inherited",
    .usage = { .user_seconds = { true, 7.25 },
               .system_seconds = { true, 0.75 },
               .voluntary_switches = { true, 1234567 },
               .involuntary_switches = { true, 89 },
               .minor_faults = { true, 123456 },
               .major_faults = { true, 3 },
               .read_bytes = { true, MEGAS(12.5) },
               .written_bytes = { true, MEGAS(1234) },
               .storage_read_bytes = { true, KILOS(4.096) },
               .storage_written_bytes = { true, MEGAS(1200) },
               .note = "child processes that no parent waited for may be missing" },
    .events = { [WM_EVENT_CYCLES] = { true, 23456789012 },
                [WM_EVENT_INSTRUCTIONS] = { true, 34567890123 } },
    .events_note = "LLC-loads: not counted by this machine, as by most virtual ones",
    .memory_note =
        "private and shared memory were sampled 2 of 6 times, to spare the command",
    .peak_rss_bytes = { true, MEGAS(320) },
    .ticks = 6,
    .late_ticks = 1,
    .missed_ticks = 44,
    .tool_cpu_seconds = { true, 0.0123 },
    .tool_max_rss_bytes = { true, MEGAS(5.24) },
    .recording_trouble = "no space left on device",
    .lost_ticks = 2,
    .processes = peaks,
    .process_count = ARRAY_LEN(peaks),
    .processes_seen = 12,
};

/* Two GPUs that say they are not real; one has no energy counter, and the
 * counter of the other is set back. */
#define SIM(index_, metric_, unit_, kind_) GPU(index_, metric_, unit_, kind_, WM_SIMULATED)
static const struct series gpu_series[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 50, 51.5, 53, 54.75, 56.5, 58 } },
    { HOST("memory_used", "B", WM_GAUGE, 0),
      { GIGAS(3), GIGAS(3.1), GIGAS(3.2), GIGAS(3.2), GIGAS(3.1), GIGAS(3) } },
    { HOST("memory_total", "B", WM_GAUGE, 0),
      { 8123456512, 8123456512, 8123456512, 8123456512, 8123456512, 8123456512 } },
    { TRACKER("main", "cpu_time", "s", WM_COUNTER), { 0, 0.9, 1.8, 2.7, 3.6, 4.5 } },
    { TRACKER("descendants", "cpu_time", "s", WM_COUNTER), { 0, 0, 0, 0, 0, 0 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 0.9, 1.8, 2.7, 3.6, 4.5 } },
    { TREE("tree", "memory_total", "B"), { GIGAS(1), GIGAS(2), GIGAS(2.5), GIGAS(2.5) } },
    { TREE("tree", "threads", "count"), { 1, 9, 9, 9, 9, 9 } },
    { TREE("tree", "processes", "count"), { 1, 1, 1, 1, 1, 1 } },
    { SIM("0", "energy", "J", WM_COUNTER), { 900, 1100, 1400, 100, 400, 600 } },
    { SIM("0", "power", "W", WM_GAUGE), { 100, 300, 300, 300, 300, 100 } },
    { SIM("0", "utilization", "ratio", WM_GAUGE), { 0, 1, 1, 0.9, 1, 0.5 } },
    { SIM("0", "memory_used", "B", WM_GAUGE), { GIGAS(1), GIGAS(5), GIGAS(5), GIGAS(5) } },
    { SIM("0", "memory_total", "B", WM_GAUGE),
      { GIGAS(80), GIGAS(80), GIGAS(80), GIGAS(80), GIGAS(80), GIGAS(80) } },
    { SIM("0", "temperature", "celsius", WM_GAUGE), { 40, 45, 50, 55, 60, 58 } },
    { SIM("1", "power", "W", WM_GAUGE), { 60, 60, MISSING, 60, 60, 60 } },
    { SIM("1", "utilization", "ratio", WM_GAUGE), { 0, 0, MISSING, 0, 0, 0 } },
    { SIM("1", "memory_used", "B", WM_GAUGE), { GIGAS(1), GIGAS(1), MISSING, GIGAS(1) } },
    { SIM("1", "memory_total", "B", WM_GAUGE),
      { GIGAS(80), GIGAS(80), MISSING, GIGAS(80), GIGAS(80), GIGAS(80) } },
    { TRACKER("main", "gpu_memory", "B", WM_GAUGE), { 0, GIGAS(4), GIGAS(4.2), 0 } },
    { TRACKER("descendants", "gpu_memory", "B", WM_GAUGE), { 0, 0, 0, 0 } },
    { TRACKER("tree", "gpu_memory", "B", WM_GAUGE), { 0, GIGAS(4), GIGAS(4.2), 0 } },
    { TREE_ON_GPU("0"), { 0, GIGAS(4), GIGAS(4.2), 0 } },
    { TREE_ON_GPU("1"), { 0, 0, MISSING, 0 } },
};
static const struct wm_gap gpu_gaps[] = {
    { .channel = 15, .state = WM_READING_FAILED, .why = "GPU is lost" },
};
static const struct wm_result gpu_result = {
    .end_ns = SESSION_START_NS + 5 * SECOND_NS,
    .exit_status = { true, 3 },
    .cpu_total_seconds = { true, 4.5 },
    .cpu_main_seconds = { true, 4.5 },
    .cpu_descendants_seconds = { true, 0 },
    .cpu_method = "perf task-clock, inherited",
    .peak_rss_bytes = { 0 },
    .ticks = 6,
    .tool_cpu_seconds = { true, 0.0223 },
    .tool_max_rss_bytes = { true, MEGAS(6.1) },
    .processes_seen = 1,
};

/* Regions of that run, by milliseconds. */
#define AT_MS(ms_) (SESSION_START_NS + (ms_)*INT64_C(1000000))
#define OPENS(ms_, path_, thread_)                                                         \
    {                                                                                      \
        .when_ns = AT_MS(ms_), .start_ns = AT_MS(ms_), .path = path_, .thread = thread_    \
    }
#define CLOSES(ms_, path_, thread_, start_)                                                \
    {                                                                                      \
        .when_ns = AT_MS(ms_), .start_ns = AT_MS(start_), .path = path_,                   \
        .thread = thread_, .kind = WM_REGION_CLOSES                                        \
    }
static const struct wm_region_path region_paths[] = {
    { "epoch", WM_REGION_NO_PATH, 0, false },
    { "batch", 0, 1, false },
    { "load, \"decode\"\n\x1b[31m\xe2\x80\xae", 1, 2, false },
    { "request", WM_REGION_NO_PATH, 0, true },
    { "checkpoint, of which the name is longer than any column of a table can be", 0, 1,
      false },
};
static const struct wm_region_edge region_edges[] = {
    OPENS(10, 0, 0),
    OPENS(20, 1, 0),
    OPENS(30, 2, 0),
    CLOSES(60, 2, 0, 30),
    OPENS(500, 3, 2),
    CLOSES(1020, 1, 0, 20),
    OPENS(1020, 1, 0),
    CLOSES(1500, 3, 2, 500),
    OPENS(2000, 2, 0),
    CLOSES(2010, 2, 0, 2000),
    CLOSES(3400, 1, 0, 1020),
    OPENS(3500, 4, 0),
    { .when_ns = AT_MS(4900),
      .start_ns = AT_MS(3500),
      .path = 4,
      .kind = WM_REGION_BREAKS_OFF },
    { .when_ns = AT_MS(4900),
      .start_ns = AT_MS(10),
      .path = 0,
      .kind = WM_REGION_BREAKS_OFF },
};

static const struct series region_series[] = {
    { HOST("cpu_time", "s", WM_COUNTER, 10000000), { 50, 51.5, 53, 54.75, 56.5, 58 } },
    { TRACKER("tree", "cpu_time", "s", WM_COUNTER), { 0, 0.9, 1.8, 2.7, 3.6, 4.5 } },
    { TREE("tree", "memory_total", "B"), { GIGAS(1), GIGAS(2), GIGAS(2.5), GIGAS(2.5) } },
    { { .source = "rapl",
        .device = "package-0",
        .label = "package0",
        .model = "Intel(R) Xeon(R)",
        .metric = "energy",
        .unit = "J",
        .device_kind = WM_DEVICE_CPU,
        .kind = WM_COUNTER,
        .period_ns = 1000000,
        .sensor = { .kind = WM_SENSOR_BUILT_IN,
                    .gain = 0.05,
                    .text = "RAPL, Intel: measured since Haswell" } },
      { 900, 1000, 1130, 1240, 1330, 1420 } },
};
static const struct wm_result region_result = {
    .exit_status = { true, 0 },
    .end_ns = SESSION_START_NS + 5 * SECOND_NS,
    .cpu_total_seconds = { true, 4.5 },
    .cpu_main_seconds = { true, 4.5 },
    .cpu_descendants_seconds = { true, 0 },
    .cpu_method = "perf task-clock, inherited",
    .peak_rss_bytes = { 0 },
    .ticks = 6,
    .tool_cpu_seconds = { true, 0.0223 },
    .tool_max_rss_bytes = { true, MEGAS(6.1) },
    .processes_seen = 1,
    .lost_regions = 3,
    .stray_regions = 1,
    .dropped_regions = 12,
};

static const struct golden {
    const char *name;
    struct session session;
    struct wm_report_style style;
} goldens[] = {
    {
        .name = "one",
        .session = {
            .run = { RUN(one_command, no_gpu_sources) },
            .series = one_series,
            .series_count = ARRAY_LEN(one_series),
            .ticks = 2,
            .step_ns = 1500000,
            .result = &one_result,
        },
    },
    {
        .name = "tree",
        .session = {
            .run = {
                RUN(tree_command, no_gpu_sources),
                .notes = notes,
                .note_count = ARRAY_LEN(notes),
                .environment = environment,
                .environment_count = ARRAY_LEN(environment),
            },
            .series = tree_series,
            .series_count = ARRAY_LEN(tree_series),
            .ticks = 6,
            .step_ns = SECOND_NS,
            .result = &tree_result,
        },
    },
    {
        .name = "units",
        .session = {
            .run = { RUN(tree_command, no_gpu_sources) },
            .series = tree_series,
            .series_count = ARRAY_LEN(tree_series),
            .ticks = 6,
            .step_ns = SECOND_NS,
            .result = &tree_result,
        },
        .style = {
            .ram_unit = "gigabytes",
            .gpu_ram_unit = "megabytes",
            .time_unit = "hours",
        },
    },
    {
        .name = "gpus",
        .session = {
            .run = { RUN(train_command, gpu_sources), .gpu_count = 2, .expected_gpu_count = 2 },
            .series = gpu_series,
            .series_count = ARRAY_LEN(gpu_series),
            .ticks = 6,
            .step_ns = SECOND_NS,
            .gaps = gpu_gaps,
            .gap_count = ARRAY_LEN(gpu_gaps),
            .result = &gpu_result,
        },
    },
    {
        .name = "regions",
        .session = {
            .run = { RUN(train_command, no_gpu_sources) },
            .series = region_series,
            .series_count = ARRAY_LEN(region_series),
            .ticks = 6,
            .step_ns = SECOND_NS,
            .result = &region_result,
            .edges = region_edges,
            .edge_count = ARRAY_LEN(region_edges),
            .paths = region_paths,
        },
    },
    {
        .name = "regions-killed",
        .session = {
            .run = { RUN(tree_command, no_gpu_sources) },
            .series = tree_series,
            .series_count = ARRAY_LEN(tree_series),
            .ticks = 4,
            .step_ns = SECOND_NS,
            .edges = region_edges,
            .edge_count = 6,
            .paths = region_paths,
        },
    },
    {
        .name = "killed",
        .session = {
            .run = { RUN(tree_command, no_gpu_sources) },
            .series = tree_series,
            .series_count = ARRAY_LEN(tree_series),
            .ticks = 4,
            .step_ns = SECOND_NS,
        },
    },
    {
        .name = "nothing",
        .session = {
            .run = { .version = "0.1.0", .interval_ns = 100000000 },
        },
    },
};

static char *print_so(const struct golden *golden, enum wm_format format, int verbosity)
{
    struct wm_report *report = session_report(&golden->session);
    struct wm_error err;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    struct wm_report_style style = golden->style;
    style.verbosity = verbosity;
    assert_int_equal(wm_report_print(report, format, &style, out, &err), WM_OK);
    fclose(out);
    wm_report_free(report);
    return text;
}

static char *print(const struct golden *golden, enum wm_format format)
{
    return print_so(golden, format, 1);
}

static void compare(const struct golden *golden, enum wm_format format, int verbosity,
                    const char *suffix)
{
    char relative[128];
    char *expected, *text = print_so(golden, format, verbosity);
    struct wm_error err;
    size_t length;

    snprintf(relative, sizeof(relative), "tests/data/reports/%s.%s", golden->name, suffix);
    const char *path = test_source_path(relative);
    if (getenv("WM_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }

    if (wm_file_slurp(path, 1 << 20, &expected, &length, &err) < 0)
        fail_msg("%s", err.text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s differs from what is printed:\n%s", path, text);
    free(expected);
    free(text);
}

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        compare(&goldens[i], WM_FORMAT_TEXT, 0, "brief.txt");
        compare(&goldens[i], WM_FORMAT_TEXT, 1, "txt");
        compare(&goldens[i], WM_FORMAT_JSON, 0, "json");
    }
}

/* The structure of gpu_tracker's JSON, key by key. */
static void assert_keys(const json_t *object, const char *keys)
{
    char found[256] = "";
    const char *key;
    json_t *value;

    assert_true(json_is_object(object));
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t used = strlen(found);
        snprintf(found + used, sizeof(found) - used, "%s%s", used ? " " : "", key);
    }
    assert_string_equal(found, keys);
}

static json_t *parse(const struct golden *golden)
{
    char *text = print(golden, WM_FORMAT_JSON);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(root);
    free(text);
    return root;
}

static void test_seed_structure(void **state)
{
    static const char percent[] =
        "max_sum_percent max_hardware_percent mean_sum_percent mean_hardware_percent";
    static const char *const scopes[] = { "main", "descendants", "combined" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        json_t *root = parse(&goldens[i]);
        json_t *ram = json_object_get(root, "max_ram");
        json_t *cpu = json_object_get(root, "cpu_utilization");
        json_t *gpu = json_object_get(root, "gpu_utilization");

        assert_keys(ram, "unit system_capacity system main descendants combined");
        assert_keys(json_object_get(root, "max_gpu_ram"),
                    "unit system_capacity system main descendants combined");
        assert_keys(cpu,
                    "system_core_count n_expected_cores system main descendants combined "
                    "main_n_threads descendants_n_threads combined_n_threads");
        assert_keys(json_object_get(cpu, "system"), percent);
        for (size_t k = 0; k < ARRAY_LEN(scopes); k++) {
            assert_keys(json_object_get(ram, scopes[k]),
                        "total_rss private_rss shared_rss");
            assert_keys(json_object_get(cpu, scopes[k]), percent);
        }
        assert_keys(gpu, "system_gpu_count n_expected_gpus gpu_percentages");
        assert_keys(json_object_get(gpu, "gpu_percentages"), percent);
        assert_keys(json_object_get(root, "compute_time"), "unit time");
        json_decref(root);
    }
}

/* Each null under `node` has its reason; "exit.signal" means that there was none. */
static void assert_reasons(json_t *node, const char *path, const json_t *why)
{
    const char *key;
    json_t *value;
    size_t index;
    char inner[256];

    if (json_is_null(node) && !json_string_length(json_object_get(why, path)))
        fail_msg("%s is null without a reason", path);
    /* Beside a number it says why that is a least one. */
    const char *text = json_string_value(json_object_get(why, path));
    if (!json_is_null(node) && text)
        assert_true(json_is_number(node) &&
                    (strstr(text, "does not cover") || strstr(text, "waited for")));
    json_object_foreach(node, key, value)
    {
        snprintf(inner, sizeof(inner), "%s%s%s", path, path[0] ? "." : "", key);
        assert_reasons(value, inner, why);
    }
    json_array_foreach(node, index, value)
    {
        snprintf(inner, sizeof(inner), "%s.%zu", path, index);
        assert_reasons(value, inner, why);
    }
}

static void test_nulls_have_reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        json_t *root = parse(&goldens[i]), *why = json_object_get(root, "why");
        print_message("  %s\n", goldens[i].name);
        json_object_del(json_object_get(root, "exit"), "signal");
        assert_reasons(root, "", why);
        json_decref(root);
    }
}

#define RAPL(index_)                                                                       \
    {                                                                                      \
        .source = "rapl", .device = "package-" index_, .label = "package" index_,          \
        .metric = "energy", .unit = "J", .device_kind = WM_DEVICE_CPU, .kind = WM_COUNTER  \
    }

/* A GPU of which nothing is known but that it is there, in a recording that says nothing
 * of who made it. */
static void test_unknown(void **state)
{
    static const struct series series[] = {
        { GPU("0", "power", "W", WM_GAUGE, WM_MEASURED), { MISSING, MISSING } },
        { RAPL("0"), { MISSING, MISSING } },
    };
    struct wm_result result = one_result;
    const struct golden unknown = {
        .session = {
            .run = { RUN(one_command, gpu_sources), .gpu_count = 1 },
            .series = series,
            .series_count = ARRAY_LEN(series),
            .ticks = 2,
            .step_ns = SECOND_NS,
            .result = &result,
        },
    };

    (void)state;
    result.tool_cpu_seconds.known = false;
    result.tool_max_rss_bytes.known = false;
    json_t *root = parse(&unknown), *why = json_object_get(root, "why");
    json_object_del(json_object_get(root, "exit"), "signal");
    assert_reasons(root, "", why);
    json_t *tool = json_object_get(root, "tool");
    assert_true(json_is_null(json_object_get(tool, "cpu_seconds")));
    assert_true(json_is_null(json_object_get(tool, "max_rss")));
    assert_string_equal(json_string_value(json_object_get(why, "tool.cpu_seconds")),
                        "the recording does not have it");
    json_t *energy = json_object_get(root, "energy");
    json_t *gpu = json_array_get(json_object_get(energy, "gpus"), 0);
    assert_non_null(gpu);
    assert_null(json_object_get(gpu, "method"));
    assert_null(json_object_get(gpu, "sensor"));
    json_decref(root);

    char *text = print(&unknown, WM_FORMAT_TEXT);
    assert_non_null(strstr(text,
                           "\nOverhead: n/a (the recording does not have it); 2 samples at "
                           "100 ms\n"));
    free(text);
}

/* What stands in JSON at a path with dots; NULL. */
static const json_t *json_at(const json_t *node, const char *path)
{
    char key[64];

    for (; *path; path += path[0] == '.') {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)length, path);
        node = json_object_get(node, key);
        path += length;
    }
    return node;
}

static void assert_figure(const json_t *root, const struct wm_report_figure *figure)
{
    const json_t *value = json_at(root, figure->path);
    const json_t *why = json_object_get(json_object_get(root, "why"), figure->path);

    print_message("    %s\n", figure->path);
    bool is_optional =
        strstr(figure->path, "total_rss_") || strncmp(figure->path, "events.", 7) == 0;
    if (is_optional && figure->state == WM_REPORT_MISSING) {
        assert_null(value); /* an older recording has no such interval; nobody counted it */
        return;
    }
    assert_non_null(value);
    assert_int_equal(json_is_null(value), figure->state == WM_REPORT_MISSING);
    if (json_is_number(value))
        assert_true(fabs(json_number_value(value) - figure->value) <=
                    1e-12 * fabs(figure->value));
    if (figure->why)
        assert_string_equal(json_string_value(why), figure->why);
    else
        assert_null(why);
}

/* What the accessors say of the run is what its JSON says. */
static void test_figures_of_the_run(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        struct golden plain = goldens[i];
        plain.style = (struct wm_report_style) { 0 };
        json_t *root = parse(&plain);
        struct wm_report *report = session_report(&plain.session);
        struct wm_report_figure figure;
        size_t count = 0;
        print_message("  %s\n", plain.name);
        while (wm_report_figure_at(report, NULL, count++, &figure) == WM_OK) {
            if (figure.path)
                assert_figure(root, &figure);
        }
        assert_true(count > 60);
        wm_report_free(report);
        json_decref(root);
    }
}

/* What the accessors say of a region's share is what its JSON says. */
static void assert_share(const struct wm_report *report, enum wm_report_kind kind,
                         size_t index, enum wm_report_share share, const json_t *json)
{
    const struct wm_report_part part = { kind, index, share };
    struct wm_report_figure figure;
    size_t count = 0;

    while (wm_report_figure_at(report, &part, count, &figure) == WM_OK) {
        const json_t *value = json_at(json, figure.path);
        count++;
        if (figure.state != WM_REPORT_MISSING)
            assert_true(fabs(json_number_value(value) - figure.value) <=
                        1e-12 * fabs(figure.value));
        else
            assert_true(!value || json_is_null(value));
    }
    assert_true(count >= 7);
}

static void test_figures_of_regions(void **state)
{
    const struct golden *golden = goldens;
    struct wm_report_region region;

    (void)state;
    while (strcmp(golden->name, "regions") != 0)
        golden++;
    struct wm_report *report = session_report(&golden->session);
    json_t *root = parse(golden), *regions = json_object_get(root, "regions");
    const json_t *paths = json_object_get(regions, "by_path");
    size_t count = wm_report_count(report, WM_REPORT_PATH);
    assert_int_equal(count, json_array_size(paths));
    for (size_t i = 0; i < count; i++) {
        const json_t *path = json_array_get(paths, i);
        assert_int_equal(wm_report_region(report, WM_REPORT_PATH, i, &region), WM_OK);
        assert_string_equal(region.name, json_string_value(json_at(path, "name")));
        assert_share(report, WM_REPORT_PATH, i, WM_REPORT_INCLUSIVE,
                     json_at(path, "inclusive"));
        assert_share(report, WM_REPORT_PATH, i, WM_REPORT_EXCLUSIVE,
                     json_at(path, "exclusive"));
    }
    assert_share(report, WM_REPORT_REST, 0, WM_REPORT_EXCLUSIVE,
                 json_object_get(regions, "rest"));
    wm_report_free(report);
    json_decref(root);
}

/* Simulated figures say so: in text on their very line, in JSON beside them. */
static void test_simulated(void **state)
{
    const struct golden *golden = goldens;
    char *rest = NULL;

    (void)state;
    while (strcmp(golden->name, "gpus") != 0)
        golden++;
    char *text = print(golden, WM_FORMAT_TEXT);
    size_t lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        bool is_gpu = strncmp(line, "GPU", 3) == 0 || strncmp(line, "  gpu", 5) == 0;
        bool is_whole = strncmp(line, "Energy", 6) == 0 || strstr(line, "GPUs: ");
        bool is_labelled = strstr(line, "SIMULATED") != NULL;
        if ((is_gpu || is_whole) != is_labelled)
            fail_msg("%s", line);
        lines += is_gpu || is_whole;
    }
    assert_int_equal(lines, 7);
    free(text);

    json_t *root = parse(golden);
    json_t *energy = json_object_get(root, "energy");
    assert_true(json_is_true(json_object_get(energy, "simulated")));
    for (size_t i = 0; i < 2; i++) {
        assert_true(json_is_true(json_object_get(
            json_array_get(json_object_get(energy, "gpus"), i), "simulated")));
        assert_true(json_is_true(json_object_get(
            json_array_get(json_object_get(root, "gpus"), i), "simulated")));
    }
    json_decref(root);
}

/* What is there but denied is named with the command that opens it, however much is said.
 */
static void test_denied(void **state)
{
    static struct wm_source_status denied[] = {
        { .name = "rapl", .detail = "no permission", .remedy = "sudo chown me /sys/x" },
        { .name = "nvml", .detail = "no driver" },
    };
    const struct golden golden = {
        .session = { .run = { .sources = denied, .source_count = 2, .host = "node1" } },
    };

    (void)state;
    for (int verbosity = 0; verbosity < 3; verbosity++) {
        char *text = print_so(&golden, WM_FORMAT_TEXT, verbosity);
        if (!strstr(text, "\nDenied: rapl: no permission. On node1 this opens it:\n"
                          "  sudo chown me /sys/x\n") ||
            strstr(text, "nvml: no driver. On"))
            fail_msg("%s", text);
        free(text);
    }
    json_t *root = parse(&golden), *sources = json_object_get(root, "sources");
    const json_t *rapl = json_object_get(sources, "rapl");
    assert_string_equal(json_string_value(json_object_get(rapl, "remedy")),
                        "sudo chown me /sys/x");
    assert_null(json_object_get(json_object_get(sources, "nvml"), "remedy"));
    json_decref(root);
}

/* Nothing that others chose may reach a terminal as a control character. */
static void test_text_is_clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        char *text = print(&goldens[i], WM_FORMAT_TEXT);
        for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
            assert_true(*at == '\n' || *at >= 0x20);
            assert_false(at[0] == '\n' && at > (const unsigned char *)text &&
                         at[-1] == ' ');
        }
        free(text);
    }
}

/* A highest value that may have been higher says so beside the number. */
static void test_at_least(void **state)
{
    static const struct series series[] = {
        { TREE("main", "memory_total", "B"), { KILOS(300), KILOS(300), KILOS(300) } },
        { TREE("tree", "memory_total", "B"), { KILOS(300), MISSING, MISSING } },
        { TREE("tree", "memory_private", "B"), { KILOS(200), MISSING, MISSING } },
        { TREE("tree", "memory_shared", "B"), { KILOS(100), KILOS(100), KILOS(100) } },
        { TREE("tree", "processes", "count"), { 2, 2, 2 } },
    };
    const struct wm_gap gaps[] = {
        { 1, AT_MS(1000), AT_MS(2000), WM_READING_STALE, "it forks" },
        { 2, AT_MS(1000), AT_MS(2000), WM_READING_STALE, "it forks" },
    };
    const struct golden golden = {
        .session = {
            .run = { RUN(tree_command, no_gpu_sources) },
            .series = series,
            .series_count = ARRAY_LEN(series),
            .ticks = 3,
            .step_ns = SECOND_NS,
            .gaps = gaps,
            .gap_count = ARRAY_LEN(gaps),
        },
    };
    static const char expected[] =
        "\nMemory        300 kB        at least (it forks for 1 of 1 s); "
        "private at least 200 kB, shared 100 kB\n"
        "                            main 300 kB, descendants n/a\n";
    static const char why[] = "it forks for 1 of 1 s";

    (void)state;
    char *text = print(&golden, WM_FORMAT_TEXT);
    if (!strstr(text, expected))
        fail_msg("%s", text);
    free(text);

    json_t *root = parse(&golden), *whys = json_object_get(root, "why");
    const json_t *ram = json_object_get(json_object_get(root, "max_ram"), "combined");
    assert_int_equal(json_integer_value(json_object_get(ram, "total_rss")), 300000);
    assert_int_equal(json_integer_value(json_object_get(ram, "private_rss")), 200000);
    assert_string_equal(
        json_string_value(json_object_get(whys, "max_ram.combined.total_rss")), why);
    assert_string_equal(
        json_string_value(json_object_get(whys, "max_ram.combined.private_rss")), why);
    assert_null(json_object_get(whys, "max_ram.combined.shared_rss"));
    assert_null(json_object_get(whys, "max_ram.main.total_rss"));
    json_decref(root);
}

/* A call of days, which is beyond the last bucket's beginning. */
static void test_long_regions(void **state)
{
    static const struct wm_region_edge edges[] = {
        OPENS(0, 0, 0),
        CLOSES(INT64_C(1000000000), 0, 0, 0),
    };
    const struct golden golden = {
        .name = "long",
        .session = {
            .run = { RUN(train_command, no_gpu_sources) },
            .series = region_series,
            .series_count = ARRAY_LEN(region_series),
            .ticks = 6,
            .step_ns = 200000 * SECOND_NS,
            .edges = edges,
            .edge_count = ARRAY_LEN(edges),
            .paths = region_paths,
        },
    };
    const char *expected = "1 277 h 46 min 40 s 277 h 46 min 40 s 277 h 46 min 40 s ";

    (void)state;
    char *text = print(&golden, WM_FORMAT_TEXT);
    if (!strstr(text, expected))
        fail_msg("%s", text);
    free(text);

    json_t *root = parse(&golden), *why = json_object_get(root, "why");
    const json_t *names = json_object_get(json_object_get(root, "regions"), "by_name");
    const json_t *histogram = json_object_get(json_array_get(names, 0), "histogram");
    assert_int_equal(json_array_size(histogram), 1);
    assert_true(json_is_null(json_object_get(json_array_get(histogram, 0), "up_to")));
    assert_non_null(json_object_get(why, "regions.by_name.0.histogram.0.up_to"));
    json_decref(root);
}

/* The joules of a table are called what those of the run are. */
static void test_origin_of_regions(void **state)
{
    static const struct {
        enum wm_origin origin;
        const char *words;
    } cases[] = {
        { WM_MEASURED, "top by exclusive energy:\n" },
        { WM_ESTIMATED, "top by exclusive energy; ESTIMATED:\n" },
        { WM_SIMULATED, "top by exclusive energy; SIMULATED:\n" },
    };
    struct series series[ARRAY_LEN(region_series)];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct golden golden = {
            .session = {
                .run = { RUN(train_command, no_gpu_sources) },
                .series = series,
                .series_count = ARRAY_LEN(series),
                .ticks = 6,
                .step_ns = SECOND_NS,
                .result = &region_result,
                .edges = region_edges,
                .edge_count = ARRAY_LEN(region_edges),
                .paths = region_paths,
            },
        };
        memcpy(series, region_series, sizeof(series));
        series[ARRAY_LEN(series) - 1].channel.origin = cases[i].origin;
        char *text = print(&golden, WM_FORMAT_TEXT);
        const char *table = strstr(text, "\nRegions ");
        if (!table || !strstr(table, cases[i].words))
            fail_msg("%s: %s", cases[i].words, text);
        free(text);
    }
}

/* A column that would hold nothing but "n/a" is not there. */
static void test_regions_without_cpu_time(void **state)
{
    const struct golden golden = {
        .session = {
            .run = { RUN(train_command, no_gpu_sources) },
            .series = &region_series[2],
            .series_count = 1,
            .ticks = 6,
            .step_ns = SECOND_NS,
            .edges = region_edges,
            .edge_count = ARRAY_LEN(region_edges),
            .paths = region_paths,
        },
    };

    (void)state;
    char *text = print(&golden, WM_FORMAT_TEXT);
    if (!strstr(text, " exclusive  region\n") || strstr(text, " CPU  "))
        fail_msg("%s", text);
    free(text);
}

static void test_full_disk(void **state)
{
    static const enum wm_format formats[] = { WM_FORMAT_TEXT, WM_FORMAT_JSON };
    FILE *full = fopen("/dev/full", "w");
    struct wm_report *report = session_report(&goldens[0].session);
    struct wm_error err;

    (void)state;
    assert_non_null(full);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        assert_int_equal(wm_report_print(report, formats[i], NULL, full, &err), WM_EIO);
    fclose(full);
    wm_report_free(report);
}

static void test_wrong_unit(void **state)
{
    const struct wm_report_style style = { .ram_unit = "GiB" };
    struct wm_report *report = session_report(&goldens[0].session);
    struct wm_error err;

    (void)state;
    assert_int_equal(wm_report_print(report, WM_FORMAT_TEXT, &style, stdout, &err),
                     WM_EINVAL);
    assert_non_null(strstr(err.text, "'GiB'"));
    wm_report_free(report);
}

/* jansson is a library of its own, whose calls the linker does not redirect. */
static void *jansson_malloc(size_t size)
{
    return malloc(size);
}

static void test_out_of_memory(void **state)
{
    const struct golden *golden = &goldens[1];
    struct wm_report *report;
    FILE *out = fopen("/dev/null", "w");
    struct wm_error err;
    int status;

    (void)state;
    assert_non_null(out);
    json_set_alloc_funcs(jansson_malloc, free);
    for (long nth = 0;; nth++) {
        test_fail_allocation(nth);
        status = session_try_report(&golden->session, &report, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_true(status < 0); /* jansson does not always say that it is memory */
    }
    for (long nth = 0;; nth++) {
        test_fail_allocation(nth);
        status = wm_report_print(report, WM_FORMAT_JSON, NULL, out, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
    }
    fclose(out);
    wm_report_free(report);
}

UNIT(view)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_seed_structure),
        cmocka_unit_test(test_nulls_have_reasons),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_figures_of_the_run),
        cmocka_unit_test(test_figures_of_regions),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_text_is_clean),
        cmocka_unit_test(test_at_least),
        cmocka_unit_test(test_long_regions),
        cmocka_unit_test(test_origin_of_regions),
        cmocka_unit_test(test_regions_without_cpu_time),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_wrong_unit),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
