/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_record_fixture.h - one small session for the tests of recordings: a
 * process tree on a machine with two GPUs, of which one knows no power.
 */
#ifndef WM_TEST_RECORD_FIXTURE_H
#define WM_TEST_RECORD_FIXTURE_H

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"
#include "record/record_read.h"
#include "record/run/record_run.h"
#include "test.h"

enum { FIXTURE_CHANNELS = 19 };

/* In the order of the channels: three devices of the tracker, three of the
 * tree, the host, two GPUs. */
static inline const struct wm_channel *fixture_channels(void)
{
#define CHANNEL(source_, device_, label_, metric_, unit_, device_kind_, kind_)             \
    {                                                                                      \
        .source = source_, .device = device_, .label = label_, .metric = metric_,          \
        .unit = unit_, .device_kind = device_kind_, .kind = kind_                          \
    }
#define TREE(source_, label_, metric_, unit_, kind_)                                       \
    CHANNEL(source_, label_, label_, metric_, unit_, WM_DEVICE_TREE, kind_)
#define GPU(number_, metric_, unit_, kind_)                                                \
    {                                                                                      \
        .source = "nvml", .device = "GPU-fake-" #number_, .label = "gpu" #number_,         \
        .model = "NVIDIA \"Fake\", 80GB", .metric = metric_, .unit = unit_,                \
        .device_kind = WM_DEVICE_GPU, .kind = kind_                                        \
    }
    static const struct wm_channel channels[FIXTURE_CHANNELS] = {
        TREE("tracker", "main", "cpu_time", "s", WM_COUNTER),
        TREE("tracker", "main", "gpu_memory", "B", WM_GAUGE),
        TREE("tracker", "descendants", "cpu_time", "s", WM_COUNTER),
        TREE("tracker", "descendants", "gpu_memory", "B", WM_GAUGE),
        TREE("tracker", "tree", "cpu_time", "s", WM_COUNTER),
        TREE("tracker", "tree", "gpu_memory", "B", WM_GAUGE),
        TREE("tree", "main", "memory_total", "B", WM_GAUGE),
        TREE("tree", "main", "threads", "count", WM_GAUGE),
        TREE("tree", "descendants", "memory_total", "B", WM_GAUGE),
        TREE("tree", "tree", "memory_total", "B", WM_GAUGE),
        { .source = "host",
          .device = "host",
          .label = "host",
          .metric = "cpu_time",
          .unit = "s",
          .device_kind = WM_DEVICE_HOST,
          .kind = WM_COUNTER,
          .period_ns = 10000000 },
        CHANNEL("host", "host", "host", "memory_used", "B", WM_DEVICE_HOST, WM_GAUGE),
        CHANNEL("host", "host", "host", "memory_total", "B", WM_DEVICE_HOST, WM_GAUGE),
        GPU(0, "power", "W", WM_GAUGE),
        GPU(0, "utilization", "ratio", WM_GAUGE),
        GPU(0, "memory_used", "B", WM_GAUGE),
        GPU(0, "memory_total", "B", WM_GAUGE),
        { .source = "nvml",
          .device = "GPU-fake-1",
          .label = "gpu1",
          .model = "NVIDIA \"Fake\", 80GB",
          .metric = "power",
          .unit = "W",
          .device_kind = WM_DEVICE_GPU,
          .sensor = { .kind = WM_SENSOR_BOARD,
                      .period_ns = 20000000,
                      .longest_ns = 3000000000,
                      .window_s = 0.01,
                      .is_sample = true,
                      .gain = 0.07,
                      .offset = 1.0 / 3,
                      .step = 1e-3,
                      .range = 700,
                      .text = "looks \"here\", and there" } },
        GPU(1, "utilization", "ratio", WM_GAUGE),
    };
#undef GPU
#undef TREE
#undef CHANNEL
    return channels;
}

/* Nothing in it may be released. */
static inline const struct wm_run *fixture_run(void)
{
    static char *command[] = { "train.py", "--name", "a \"b\", c\nd", "caf\xc3\xa9" };
    static struct wm_pair notes[] = { { "purpose", "to test, \"quoted\"\n" } };
    static struct wm_pair environment[] = { { "SLURM_JOB_ID", "42" },
                                            { "CUDA_VISIBLE_DEVICES", NULL } };
    static struct wm_source_status sources[] = {
        { .name = "nvml", .available = true, .detail = "driver 550.54" },
        { .name = "hwmon", .detail = "no sensor of a CPU" },
    };
    static const struct wm_run run = {
        .id = "c9b1f1de-6f2c-4a55-9d3b-0d7a3c1f2e11",
        .version = "0.1.0",
        .mode = "run",
        .host = "node1",
        .boot_id = "7d0a4b6e-0000-4000-8000-000000000000",
        .kernel = "Linux 6.1.0 x86_64",
        .cpu_model = "Some CPU @ 2.00GHz",
        .command = command,
        .command_count = ARRAY_LEN(command),
        .notes = notes,
        .note_count = ARRAY_LEN(notes),
        .environment = environment,
        .environment_count = ARRAY_LEN(environment),
        .sources = sources,
        .source_count = ARRAY_LEN(sources),
        .pid = 4711,
        .anchor_ns = 1000000000,
        .anchor_unix_ns = INT64_C(1795247379215924301),
        .interval_ns = 100000000,
        .core_count = 8,
        .expected_cores = 4,
        .gpu_count = 2,
        .expected_gpu_count = 2,
    };
    return &run;
}

/* The tick number `n`, into `readings`. Most values have no short decimal form. */
static inline struct wm_tick fixture_tick(size_t n, struct wm_reading *readings)
{
    const struct wm_channel *channels = fixture_channels();
    int64_t when_ns = 1000000000 + (int64_t)n * 100000000;

    for (size_t i = 0; i < FIXTURE_CHANNELS; i++) {
        readings[i] = (struct wm_reading) {
            .when_ns = when_ns + 1000,
            .value = (double)(n * (i + 1)) / 7.0,
            .state = WM_READING_OK,
        };
        if (i > 0 && channels[i].source == channels[i - 1].source &&
            channels[i].device == channels[i - 1].device)
            readings[i].when_ns = readings[i - 1].when_ns;
        else
            readings[i].when_ns += (int64_t)i * 1000;
        if (strcmp(channels[i].unit, "B") == 0)
            readings[i].value = 1e9 * (double)(i + 1) + (double)n * 4096;
    }
    readings[7].value = (double)(1 + n % 4);
    readings[14].value = n % 2 ? 0.25 : 0.75;
    readings[17] =
        (struct wm_reading) { .when_ns = when_ns, .state = WM_READING_UNSUPPORTED };
    if (n % 5 == 4)
        readings[13].state = WM_READING_FAILED;
    if (n % 7 == 6)
        readings[18] =
            (struct wm_reading) { .when_ns = when_ns, .state = WM_READING_STALE };
    return (struct wm_tick) { when_ns, readings, FIXTURE_CHANNELS };
}

static inline struct wm_gap fixture_gap(void)
{
    return (struct wm_gap) {
        .channel = 17,
        .from_ns = 1000000000,
        .to_ns = 2000000000,
        .state = WM_READING_UNSUPPORTED,
        .why = "this GPU has no \"power\", it says",
    };
}

static inline struct wm_result fixture_result(void)
{
    static struct wm_process_peak processes[] = {
        { .pid = 4711,
          .parent = 1,
          .name = "train \xff py",
          .cpu_seconds = { true, 12.5 },
          .max_memory_bytes = { true, 1e9 },
          .max_private_bytes = { 0 },
          .max_threads = 12 },
        { .pid = 4712,
          .parent = 4711,
          .name = "sh",
          .cpu_seconds = { true, 0.125 },
          .max_threads = 1 },
    };
    return (struct wm_result) {
        .end_ns = 3000000000,
        .exit_status = { 0 },
        .exit_signal = 9,
        .cpu_total_seconds = { true, 12.625 },
        .cpu_main_seconds = { true, 12.5 },
        .cpu_descendants_seconds = { 0 },
        .cpu_method = "perf task-clock, inherited",
        .peak_rss_bytes = { true, 123456789 },
        .peak_rss_is_main = true,
        .ticks = 20,
        .late_ticks = 1,
        .tool_cpu_seconds = { true, 0.0123 },
        .tool_max_rss_bytes = { true, 5e6 },
        .processes = processes,
        .process_count = ARRAY_LEN(processes),
        .processes_seen = 3,
    };
}

/* What a reading is once it has been stored: all that is not ok is none. */
static inline void assert_stored(const struct wm_reading *stored,
                                 const struct wm_reading *given)
{
    bool known = given->state == WM_READING_OK && isfinite(given->value);

    assert_int_equal(stored->state, known ? WM_READING_OK : WM_READING_NONE);
    assert_int_equal(stored->when_ns, known ? given->when_ns : 0);
    assert_true(stored->value == (known ? given->value : 0));
}

static inline const char *fixture_path(void *const *state, const char *name)
{
    static char paths[64][300];
    static size_t next; /* good until the 64th call from here */
    char *path = paths[next++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
    return path;
}

/* cmocka compares floats only. */
static inline void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* Fails the test with the text of the error. */
#define assert_ok(call)                                                                    \
    do {                                                                                   \
        if ((call) < 0)                                                                    \
            fail_msg("%s", err.text);                                                      \
    } while (0)

/* Records ticks 0 to `ticks` - 1, a gap and a result. */
static inline void record_fixture(const char *path, enum wm_record_mode mode, size_t ticks)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_gap gap = fixture_gap();
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(path, mode, fixture_run(), fixture_channels(),
                               FIXTURE_CHANNELS, &recorder, &err));
    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick tick = fixture_tick(n, readings);
        wm_recorder_tick(recorder, &tick);
    }
    wm_recorder_gap(recorder, &gap);
    wm_recorder_flush(recorder, &result);
    assert_string_equal(result.recording_trouble, "");
    assert_int_equal(result.lost_ticks, 0);
    assert_ok(wm_recorder_finish(recorder, &result, &err));
    wm_recorder_close(recorder);
}

/* Changes a recording as somebody else may. */
static inline void sql_run(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

#endif
