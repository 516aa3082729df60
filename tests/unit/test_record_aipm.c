/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_aipm.c - folders in AIPowerMeter's form: what is in them, and what
 * becomes of those that are there already. A new case is a new row. */
#include "test_record_fixture.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "compat/aipowermeter/compat_aipm.h"
#include "record/record_stats.h"
#include "record/record_target.h"

#define END "\"END OF RECORDING SEGMENT\"\n"

enum {
    PACKAGE0,
    PACKAGE1,
    CORE,
    UNCORE,
    DRAM,
    PSYS,
    GPU3_ENERGY,
    GPU3_POWER,
    GPU3_USE,
    GPU3_MEMORY,
    GPU5_POWER,
    TREE_CPU,
    TREE_MEMORY,
    HOST_CPU,
    HOST_MEMORY,
    BATTERY,
    ESTIMATE, /* of the packages, which must not count twice */
    CHANNELS,
};

#define CHANNEL(device_, label_, metric_, unit_, device_kind_, kind_)                      \
    SOURCED("rapl", device_, label_, metric_, unit_, device_kind_, kind_)
#define SOURCED(source_, device_, label_, metric_, unit_, device_kind_, kind_)             \
    {                                                                                      \
        .source = source_, .device = device_, .label = label_, .metric = metric_,          \
        .unit = unit_, .device_kind = device_kind_, .kind = kind_                          \
    }

static const struct wm_channel channels[CHANNELS] = {
    CHANNEL("package-0", "package0", "energy", "J", WM_DEVICE_CPU, WM_COUNTER),
    CHANNEL("package-1", "package1", "energy", "J", WM_DEVICE_CPU, WM_COUNTER),
    CHANNEL("package-0/core", "package0_core", "energy", "J", WM_DEVICE_CPU_PART,
            WM_COUNTER),
    CHANNEL("package-0/uncore", "package0_uncore", "energy", "J", WM_DEVICE_CPU_PART,
            WM_COUNTER),
    CHANNEL("dram-0", "dram0", "power", "W", WM_DEVICE_DRAM, WM_GAUGE),
    CHANNEL("psys", "psys", "energy", "J", WM_DEVICE_PLATFORM, WM_COUNTER),
    CHANNEL("GPU-a", "gpu3", "energy", "J", WM_DEVICE_GPU, WM_COUNTER),
    CHANNEL("GPU-a", "gpu3", "power", "W", WM_DEVICE_GPU, WM_GAUGE),
    CHANNEL("GPU-a", "gpu3", "utilization", "ratio", WM_DEVICE_GPU, WM_GAUGE),
    CHANNEL("GPU-a", "gpu3", "memory_used", "B", WM_DEVICE_GPU, WM_GAUGE),
    CHANNEL("GPU-b", "gpu5", "power", "W", WM_DEVICE_GPU, WM_GAUGE),
    CHANNEL("tree", "tree", "cpu_time", "s", WM_DEVICE_TREE, WM_COUNTER),
    CHANNEL("tree", "tree", "memory_total", "B", WM_DEVICE_TREE, WM_GAUGE),
    CHANNEL("host", "host", "cpu_time", "s", WM_DEVICE_HOST, WM_COUNTER),
    CHANNEL("host", "host", "memory_used", "B", WM_DEVICE_HOST, WM_GAUGE),
    CHANNEL("BAT0", "BAT0", "power", "W", WM_DEVICE_PLATFORM, WM_GAUGE),
    SOURCED("estimate", "cpu-estimate", "cpu", "energy", "J", WM_DEVICE_CPU, WM_COUNTER),
};

/* Tick number `n`, two seconds after the one before. */
static struct wm_tick make_tick(size_t n, struct wm_reading *readings)
{
    static const double steps[CHANNELS] = {
        [PACKAGE0] = 60, [PACKAGE1] = 40,     [CORE] = 50,    [UNCORE] = 2,    [PSYS] = 200,
        [TREE_CPU] = 1,  [GPU3_ENERGY] = 300, [HOST_CPU] = 4, [ESTIMATE] = 77,
    };
    static const double values[CHANNELS] = {
        [DRAM] = 7,        [GPU3_POWER] = 999,  [GPU3_USE] = 0.5,    [GPU3_MEMORY] = 1e9,
        [GPU5_POWER] = 30, [TREE_MEMORY] = 2e9, [HOST_MEMORY] = 8e9, [BATTERY] = 5,
    };
    int64_t when_ns = 1000000000 + (int64_t)n * 2000000000;

    for (size_t i = 0; i < CHANNELS; i++)
        readings[i] = (struct wm_reading) {
            .when_ns = when_ns,
            .value =
                channels[i].kind == WM_COUNTER ? 1000 + (double)n * steps[i] : values[i],
            .state = WM_READING_OK,
        };
    return (struct wm_tick) { when_ns, readings, CHANNELS };
}

/* `missing`: a channel that has no value in tick 1, and none in tick 2 unless it is
 * a counter; CHANNELS: none is. */
static int record(const char *path, enum wm_record_mode mode, size_t ticks, size_t missing,
                  struct wm_error *err)
{
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_reading readings[CHANNELS];

    int status =
        wm_recorder_open(path, mode, fixture_run(), channels, CHANNELS, &recorder, err);
    if (status < 0)
        return status;
    for (size_t n = 0; n < ticks; n++) {
        struct wm_tick tick = make_tick(n, readings);
        if (missing < CHANNELS && n == 1)
            readings[missing].state = WM_READING_FAILED;
        wm_recorder_tick(recorder, &tick);
    }
    wm_recorder_flush(recorder, &result);
    status = wm_recorder_finish(recorder, &result, err);
    wm_recorder_close(recorder);
    return status;
}

static char *slurp(const char *path)
{
    struct wm_error err = { 0 };
    size_t length;
    char *text = NULL;

    assert_ok(wm_file_slurp(path, 1 << 20, &text, &length, &err));
    return text;
}

/* Line number `n` as JSON. */
static json_t *load_line(const char *path, size_t n)
{
    char *text = slurp(path), *line = text;

    for (; n > 0; n--) {
        line = strchr(line, '\n');
        assert_non_null(line);
        line++;
    }
    json_t *value = json_loadb(line, strcspn(line, "\n"), JSON_DECODE_ANY, NULL);
    free(text);
    assert_non_null(value);
    return value;
}

/* "cpu.intel_power"; NAN where there is none, or null. */
static double number_at(const json_t *record, const char *path)
{
    const json_t *value = json_object_get(record, "metrics");
    char word[64];

    while (*path) {
        size_t length = strcspn(path, ".");
        snprintf(word, sizeof(word), "%.*s", (int)length, path);
        value = json_object_get(value, word);
        path += length + (path[length] == '.');
    }
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void test_values(void **state)
{
    static const struct {
        const char *path;
        double value;
    } cases[] = {
        { "cpu.intel_power", 50 },
        { "cpu.total_cpu_power", 25 },
        { "cpu.uncore_power", 1 },
        { "cpu.total_dram_power", 7 },
        { "cpu.psys_power", 100 },
        { "cpu.total_mem_use", 8e9 },
        { "cpu.per_process_cpu_uses.4711", 0.25 },
        { "cpu.absolute_cpu_time_per_pid.4711", 1 },
        { "cpu.per_process_mem_use_abs.4711", 2e9 },
        { "cpu.per_process_mem_use_percent.4711", 0.25 },
        { "cpu.per_process_mem_use_uss.4711", NAN },
        { "cpu.rel_intel_power.4711", 12.5 },
        { "cpu.per_process_cpu_power.4711", 6.25 },
        { "cpu.per_process_dram_power.4711", 1.75 },
        { "gpu.nvidia_power", 180 },
        { "gpu.per_gpu_nvidia_power.3", 150 },
        { "gpu.per_gpu_nvidia_power.5", 30 },
        { "gpu.nvidia_memory", NAN },
        { "gpu.per_gpu_nvidia_memory.3", 1e9 },
        { "gpu.per_gpu_nvidia_memory.5", NAN },
        { "gpu.nvidia_use_rate", NAN },
        { "gpu.per_gpu_nvidia_use_rate.3", 50 },
    };
    const char *file = fixture_path(state, "exp/power_metrics.json");
    struct wm_error err = { 0 };

    assert_ok(record(fixture_path(state, "exp/"), WM_RECORD_NEW, 3, CHANNELS, &err));
    for (size_t line = 0; line < 2; line++) {
        json_t *value = load_line(file, line);
        const char *date = json_string_value(json_object_get(value, "date"));
        assert_string_equal(date, line == 0 ? "2026-11-21 07:49:41.215924"
                                            : "2026-11-21 07:49:43.215924");
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            double number = number_at(value, cases[i].path);
            print_message("  %s\n", cases[i].path);
            if (isnan(cases[i].value))
                assert_true(isnan(number));
            else
                assert_near(number, cases[i].value, 1e-9);
        }
        json_decref(value);
    }
    json_t *end = load_line(file, 2);
    assert_string_equal(json_string_value(end), "END OF RECORDING SEGMENT");
    json_decref(end);

    json_t *metadata = load_line(fixture_path(state, "exp/metadata.json"), 0);
    assert_string_equal(json_string_value(json_object_get(metadata, "description")),
                        "train.py --name a \"b\", c\nd caf\xc3\xa9");
    assert_string_equal(json_string_value(json_object_get(metadata, "date")),
                        "2026-11-21 07:49:39.215924");
    json_decref(metadata);
}

/* A channel that fails in one tick: what is not known is left out, and a counter
 * makes up for it in the next one. */
static void test_missing(void **state)
{
    static const struct {
        const char *what;
        size_t channel;
        const char *path;
        double first, second;
    } cases[] = {
        { "one package of two", PACKAGE0, "cpu.intel_power", NAN, 50 },
        { "its share", PACKAGE0, "cpu.rel_intel_power.4711", NAN, 12.5 },
        { "psys is no -1", PSYS, "cpu.psys_power", NAN, 100 },
        { "a gauge", DRAM, "cpu.total_dram_power", NAN, 7 },
        { "CPU time", TREE_CPU, "cpu.absolute_cpu_time_per_pid.4711", NAN, 2 },
        { "a GPU has its power meanwhile", GPU3_ENERGY, "gpu.per_gpu_nvidia_power.3", 999,
          150 },
        { "all GPUs", GPU5_POWER, "gpu.nvidia_power", NAN, 180 },
        { "the one that is there", GPU5_POWER, "gpu.per_gpu_nvidia_power.3", 150, 150 },
        { "memory of the machine", HOST_MEMORY, "cpu.per_process_mem_use_percent.4711", NAN,
          0.25 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        char name[32];
        print_message("  %s\n", cases[i].what);
        snprintf(name, sizeof(name), "%zu.aipm", i);
        const char *path = fixture_path(state, name);
        assert_ok(record(path, WM_RECORD_NEW, 3, cases[i].channel, &err));
        strcat(name, "/power_metrics.json");
        for (size_t line = 0; line < 2; line++) {
            json_t *value = load_line(fixture_path(state, name), line);
            double expected = line == 0 ? cases[i].first : cases[i].second;
            double number = number_at(value, cases[i].path);
            if (isnan(expected))
                assert_true(isnan(number));
            else
                assert_near(number, expected, 1e-9);
            json_decref(value);
        }
    }
}

/* A counter that moves by so much before each tick. Until it does nobody knows whether
 * it is dead, and what it then tells is all there. */
static void test_still_counter(void **state)
{
    enum { TICKS = 5 };
    static const struct {
        const char *what;
        size_t channel;
        double steps[TICKS];
        const char *path;
        double watts[TICKS - 1];
    } cases[] = {
        { "dead", PSYS, { 0 }, "cpu.psys_power", { NAN, NAN, NAN, NAN } },
        { "late", PSYS, { 0, 0, 0, 200, 200 }, "cpu.psys_power", { NAN, NAN, 100, 100 } },
        { "0 W later on",
          PSYS,
          { 0, 200, 0, 0, 200 },
          "cpu.psys_power",
          { 100, 0, 0, 100 } },
        { "set back", PSYS, { 0, -7, 0, 200, 0 }, "cpu.psys_power", { NAN, 0, 100, 0 } },
        { "one package of two",
          PACKAGE0,
          { 0, 0, 60, 0, 60 },
          "cpu.intel_power",
          { NAN, 50, 20, 50 } },
        { "its share",
          PACKAGE0,
          { 0 },
          "cpu.rel_intel_power.4711",
          { NAN, NAN, NAN, NAN } },
        { "a GPU has its power",
          GPU3_ENERGY,
          { 0 },
          "gpu.per_gpu_nvidia_power.3",
          { 999, 999, 999, 999 } },
        { "a GPU's was set back",
          GPU3_ENERGY,
          { 0, 200, -7, 200, 0 },
          "gpu.per_gpu_nvidia_power.3",
          { 100, 999, 100, 0 } },
        { "time is no energy",
          TREE_CPU,
          { 0 },
          "cpu.absolute_cpu_time_per_pid.4711",
          { 0, 0, 0, 0 } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recorder *recorder = NULL;
        struct wm_reading readings[CHANNELS];
        struct wm_error err = { 0 };
        double joules = 1000;
        char name[32];

        print_message("  %s\n", cases[i].what);
        snprintf(name, sizeof(name), "%zu.aipm", i);
        assert_ok(wm_recorder_open(fixture_path(state, name), WM_RECORD_NEW, fixture_run(),
                                   channels, CHANNELS, &recorder, &err));
        for (size_t n = 0; n < TICKS; n++) {
            struct wm_tick tick = make_tick(n, readings);
            joules += cases[i].steps[n];
            readings[cases[i].channel].value = joules;
            wm_recorder_tick(recorder, &tick);
        }
        assert_ok(wm_recorder_finish(recorder, NULL, &err));
        wm_recorder_close(recorder);

        strcat(name, "/power_metrics.json");
        for (size_t line = 0; line < TICKS - 1; line++) {
            json_t *value = load_line(fixture_path(state, name), line);
            double number = number_at(value, cases[i].path);
            if (isnan(cases[i].watts[line]))
                assert_true(isnan(number));
            else
                assert_near(number, cases[i].watts[line], 1e-9);
            json_decref(value);
        }
    }
}

/* A GPU whose driver has no counter after all. */
static void test_no_counter(void **state)
{
    struct wm_recorder *recorder = NULL;
    struct wm_reading readings[CHANNELS];
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(fixture_path(state, "exp/"), WM_RECORD_NEW, fixture_run(),
                               channels, CHANNELS, &recorder, &err));
    for (size_t n = 0; n < 4; n++) {
        struct wm_tick tick = make_tick(n, readings);
        readings[GPU3_ENERGY] = (struct wm_reading) { .state = WM_READING_UNSUPPORTED };
        wm_recorder_tick(recorder, &tick);
    }
    assert_ok(wm_recorder_finish(recorder, NULL, &err));
    wm_recorder_close(recorder);
    for (size_t line = 0; line < 3; line++) {
        json_t *value = load_line(fixture_path(state, "exp/power_metrics.json"), line);
        assert_near(number_at(value, "gpu.per_gpu_nvidia_power.3"), 999, 0);
        assert_near(number_at(value, "gpu.nvidia_power"), 1029, 0);
        json_decref(value);
    }
}

/* The records of 30 W and of a GPU's 150 W, whose counter moves every 0.1 s, where ticks
 * are 2 s apart but for the last ones. All are right, and add up to what was used. */
static void test_last_window(void **state)
{
    enum { TICKS = 10 };
    static const struct {
        const char *what;
        double times[TICKS]; /* after the first tick at 0 */
        size_t records;
        bool has_memory; /* of processes that have ended by the last tick */
    } cases[] = {
        { "of some ms: the record before goes on", { 2, 4, 4.004 }, 2, true },
        { "of a part of a step", { 2, 4, 4.07 }, 2, true },
        { "of a third", { 2, 4, 4.66 }, 2, true },
        { "of most of an interval: a record of its own", { 2, 4, 5.55 }, 3, false },
        { "a whole one, a little early", { 2, 4, 5.85 }, 3, false },
        { "short ones make a record together",
          { 2, 2.3, 2.6, 2.9, 3.2, 3.5, 3.8, 4.1 },
          2,
          true },
        { "the only one", { 0.33 }, 1, false },
        { "the only one, which ends at once", { 0.001, 0.003 }, 1, true },
    };
    struct wm_channel made[CHANNELS];
    struct wm_run run = *fixture_run();

    run.interval_ns = 2000000000;
    memcpy(made, channels, sizeof(made));
    made[GPU3_ENERGY].period_ns = 100000000;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recorder *recorder = NULL;
        struct wm_result result = fixture_result();
        struct wm_reading readings[CHANNELS];
        struct wm_error err = { 0 };
        double joules = 0, last = 0, before = 0;
        char name[32];

        print_message("  %s\n", cases[i].what);
        snprintf(name, sizeof(name), "%zu.aipm", i);
        assert_ok(wm_recorder_open(fixture_path(state, name), WM_RECORD_NEW, &run, made,
                                   CHANNELS, &recorder, &err));
        for (size_t n = 0; n == 0 || (n <= TICKS && cases[i].times[n - 1] > 0); n++) {
            struct wm_tick tick = make_tick(0, readings);
            last = n == 0 ? 0 : cases[i].times[n - 1];
            tick.when_ns += (int64_t)(last * 1e9);
            for (size_t k = 0; k < CHANNELS; k++)
                readings[k].when_ns = tick.when_ns;
            readings[PACKAGE0].value += 20 * last;
            readings[PACKAGE1].value += 10 * last;
            readings[GPU3_ENERGY].value += 15 * floor(last / 0.1 + 0.05);
            readings[GPU3_POWER].value = 150;
            if (cases[i].times[n] == 0)
                readings[TREE_MEMORY].state = WM_READING_FAILED;
            wm_recorder_tick(recorder, &tick);
        }
        wm_recorder_flush(recorder, &result);
        assert_ok(wm_recorder_finish(recorder, &result, &err));
        wm_recorder_close(recorder);

        strcat(name, "/power_metrics.json");
        const char *file = fixture_path(state, name);
        json_t *end = load_line(file, cases[i].records);
        assert_string_equal(json_string_value(end), "END OF RECORDING SEGMENT");
        json_decref(end);
        for (size_t line = 0; line < cases[i].records; line++) {
            json_t *value = load_line(file, line);
            const char *date = json_string_value(json_object_get(value, "date"));
            double when = atof(strrchr(date, ':') + 1) - 39.215924;
            joules += number_at(value, "cpu.intel_power") * (when - before);
            assert_near(number_at(value, "gpu.per_gpu_nvidia_power.3"), 150, 6);
            bool has_memory = !isnan(number_at(value, "cpu.per_process_mem_use_abs.4711"));
            assert_int_equal(has_memory,
                             cases[i].has_memory || line + 1 < cases[i].records);
            before = when;
            json_decref(value);
        }
        assert_near(before, last, 1e-6);
        assert_near(joules, 30 * last, 1e-3);
    }
}

/* Which of several sources is written, and what is said of where it comes from. */
static void test_sources(void **state)
{
    enum { MOST = 5 };
#define ESTIMATED(label_, device_kind_)                                                    \
    {                                                                                      \
        .source = "estimate", .device = label_, .label = label_, .metric = "energy",       \
        .unit = "J", .device_kind = device_kind_, .kind = WM_COUNTER,                      \
        .origin = WM_ESTIMATED, .sensor.kind = WM_SENSOR_MODEL                             \
    }
#define RAPL(label_, device_kind_)                                                         \
    {                                                                                      \
        .source = "rapl", .device = label_, .label = label_, .metric = "energy",           \
        .unit = "J", .device_kind = device_kind_, .kind = WM_COUNTER,                      \
        .sensor.kind = WM_SENSOR_BUILT_IN                                                  \
    }
#define TEMPERATURE                                                                        \
    SOURCED("hwmon", "coretemp", "cpu_package0", "temperature", "celsius", WM_DEVICE_CPU,  \
            WM_GAUGE)
    static const struct {
        const char *what;
        struct wm_channel channels[MOST];
        size_t count;
        double cpu, dram; /* steps of 10 J, 20 J... in a second; NAN: none is written */
        const char *origin;
    } cases[] = {
        { "a temperature is no energy",
          { TEMPERATURE, ESTIMATED("cpu", WM_DEVICE_CPU),
            ESTIMATED("ram", WM_DEVICE_DRAM) },
          3,
          20,
          30,
          "{\"cpu\":\"estimated\",\"dram\":\"estimated\"}" },
        { "an estimate beside what was measured",
          { RAPL("package0", WM_DEVICE_CPU), TEMPERATURE, ESTIMATED("cpu", WM_DEVICE_CPU),
            ESTIMATED("ram", WM_DEVICE_DRAM) },
          4,
          10,
          NAN,
          "null" },
        { "the same the other way round",
          { ESTIMATED("cpu", WM_DEVICE_CPU), ESTIMATED("ram", WM_DEVICE_DRAM),
            RAPL("package0", WM_DEVICE_CPU), RAPL("dram0", WM_DEVICE_DRAM) },
          4,
          30,
          40,
          "null" },
        { "the worst of a kind",
          { ESTIMATED("cpu", WM_DEVICE_CPU), ESTIMATED("cpu2", WM_DEVICE_CPU),
            RAPL("dram0", WM_DEVICE_DRAM) },
          3,
          30,
          30,
          "{\"cpu\":\"estimated\"}" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recorder *recorder = NULL;
        struct wm_error err = { 0 };
        char name[64];
        print_message("  %s\n", cases[i].what);
        snprintf(name, sizeof(name), "%zu.aipm", i);
        assert_ok(wm_recorder_open(fixture_path(state, name), WM_RECORD_NEW, fixture_run(),
                                   cases[i].channels, cases[i].count, &recorder, &err));
        for (size_t n = 0; n < 3; n++) {
            struct wm_reading readings[MOST];
            int64_t when_ns = (int64_t)(n + 1) * 1000000000;
            for (size_t channel = 0; channel < cases[i].count; channel++)
                readings[channel] =
                    (struct wm_reading) { when_ns, (double)(10 * (channel + 1) * (n + 1)),
                                          WM_READING_OK };
            const struct wm_tick tick = { when_ns, readings, cases[i].count };
            wm_recorder_tick(recorder, &tick);
        }
        assert_ok(wm_recorder_finish(recorder, NULL, &err));
        wm_recorder_close(recorder);

        strcat(name, "/power_metrics.json");
        json_t *value = load_line(fixture_path(state, name), 1);
        double cpu = number_at(value, "cpu.intel_power");
        double dram = number_at(value, "cpu.total_dram_power");
        json_t *origin = json_object_get(value, "origin");
        char *text = json_dumps(origin ? origin : json_null(),
                                JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
        assert_near(cpu, cases[i].cpu, 0);
        assert_true(isnan(cases[i].dram) ? isnan(dram) : dram == cases[i].dram);
        assert_string_equal(text, cases[i].origin);
        free(text);
        json_decref(value);
    }
}

/* Of two writers the second is told, however it wants to write. */
static void test_two_writers(void **state)
{
    static const enum wm_record_mode modes[] = { WM_RECORD_APPEND, WM_RECORD_OVERWRITE };
    const char *path = fixture_path(state, "exp/");
    struct wm_recorder *recorder = NULL;
    struct wm_reading readings[CHANNELS];
    struct wm_error err = { 0 };

    assert_ok(record(path, WM_RECORD_NEW, 3, CHANNELS, &err));
    assert_ok(wm_recorder_open(path, WM_RECORD_APPEND, fixture_run(), channels, CHANNELS,
                               &recorder, &err));
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        assert_int_equal(record(path, modes[i], 3, CHANNELS, &err), WM_EEXIST);
        assert_non_null(strstr(err.text, "another wattmeter is recording to it"));
    }
    for (size_t n = 0; n < 3; n++) {
        struct wm_tick tick = make_tick(n, readings);
        wm_recorder_tick(recorder, &tick);
    }
    assert_ok(wm_recorder_finish(recorder, NULL, &err));
    wm_recorder_close(recorder);
    assert_ok(record(path, WM_RECORD_APPEND, 3, CHANNELS, &err));

    char *text = slurp(fixture_path(state, "exp/power_metrics.json"));
    size_t lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_int_equal(lines, 3 * 3);
    free(text);
}

/* A kill in the middle of an export leaves what was there. */
static void test_replaced_as_a_whole(void **state)
{
    const char *path = fixture_path(state, "exp/");
    char *metrics_path = strdup(fixture_path(state, "exp/power_metrics.json"));
    char *metadata_path = strdup(fixture_path(state, "exp/metadata.json"));
    struct wm_reading readings[CHANNELS];
    struct wm_target target = { 0 };
    struct wm_error err = { 0 };

    assert_ok(record(path, WM_RECORD_NEW, 5, CHANNELS, &err));
    char *metrics = slurp(metrics_path), *metadata = slurp(metadata_path);
    assert_ok(wm_target_open_draft(&target, &wm_recorder_aipm, path, WM_RECORD_OVERWRITE,
                                   fixture_run(), channels, CHANNELS, &err));
    for (size_t n = 0; n < 3; n++) {
        struct wm_tick tick = make_tick(n, readings);
        assert_ok(target.ops->write(target.state, &tick, 1, &err));
    }
    char *metrics_now = slurp(metrics_path), *metadata_now = slurp(metadata_path);
    assert_string_equal(metrics_now, metrics);
    assert_string_equal(metadata_now, metadata);
    free(metrics_now);

    assert_ok(target.ops->finish(target.state, NULL, &err));
    assert_ok(wm_target_finish(&target, WM_OK, &err));
    metrics_now = slurp(metrics_path);
    assert_true(strlen(metrics_now) > 0 && strlen(metrics_now) < strlen(metrics));
    free(metrics_now);
    free(metadata_now);
    free(metrics);
    free(metadata);
    free(metrics_path);
    free(metadata_path);
}

/* Takes the file as soon as it is there, and has it until it is killed. */
_Noreturn static void take_at_once(const char *file)
{
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((fd = open(file, O_RDWR)) < 0)
        ;
    fcntl(fd, F_OFD_SETLK,
          &(struct flock) { .l_type = F_WRLCK,
                            .l_whence = SEEK_SET,
                            .l_start = INT64_MAX - 1,
                            .l_len = 1 });
    for (;;)
        pause();
}

/* One that appends may have the lock before the one that makes the file: then it is its
 * file, which must not be removed. That does not happen each time. */
static void test_taken_while_made(void **state)
{
    const char *path = fixture_path(state, "exp/");
    int taken = 0;

    test_write_file(*state, "exp/other", "");
    for (int i = 0; i < 50 && taken == 0; i++) {
        struct wm_recorder *recorder = NULL;
        char file[300];

        snprintf(file, sizeof(file), "%s/exp/power_metrics.json", (const char *)*state);
        pid_t pid = fork();
        if (pid == 0)
            take_at_once(file);
        usleep(2000);
        int status = wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), channels,
                                      CHANNELS, &recorder, NULL);
        if (status == WM_EEXIST) {
            taken++;
            assert_int_equal(access(file, F_OK), 0);
        }
        wm_recorder_close(recorder);
        unlink(file);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    print_message("  taken %d times\n", taken);
}

/* What a kill has left behind is in nobody's way, and what is made is as open as the
 * recording. */
static void test_left_behind(void **state)
{
    const char *file = fixture_path(state, "exp/power_metrics.json");
    struct stat recording, metadata;
    struct wm_result result = { 0 };
    struct wm_error err = { 0 };
    char name[64];

    snprintf(name, sizeof(name), "exp/metadata.json.%ld", (long)getpid());
    test_write_file(*state, name, "{");
    snprintf(name, sizeof(name), "exp/results_exp.json.%ld", (long)getpid());
    test_write_file(*state, name, "[");
    assert_ok(record(fixture_path(state, "exp/"), WM_RECORD_NEW, 3, CHANNELS, &err));
    assert_int_equal(stat(file, &recording), 0);
    assert_int_equal(stat(fixture_path(state, "exp/metadata.json"), &metadata), 0);
    assert_int_equal(metadata.st_mode, recording.st_mode);
    assert_ok(wm_metrics_add(&result.metrics, "a", 1000000000, 1, &err));
    assert_ok(wm_aipm_write_results(file, fixture_run(), &result, &err));
    assert_int_equal(access(fixture_path(state, "exp/results_exp.json"), F_OK), 0);
    wm_result_release(&result);
}

/* What our reader makes of it: the joules of the counters, the first window too. */
static void test_read_back(void **state)
{
    const char *path = fixture_path(state, "exp.aipm");
    struct wm_recording *recording = NULL;
    struct wm_gauge_stats watts = { 0 };
    struct wm_error err = { 0 };
    struct wm_tick tick;

    assert_ok(record(path, WM_RECORD_NEW, 50, CHANNELS, &err));
    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    assert_string_equal(wm_recording_run(recording)->command[0], "train.py");
    assert_string_equal(wm_recording_run(recording)->host, "node1");
    for (size_t i = 0; i < wm_recording_channel_count(recording); i++) {
        const struct wm_channel *channel = wm_recording_channel(recording, i);
        assert_true(strcmp(channel->label, "psys") != 0 ||
                    channel->device_kind == WM_DEVICE_PLATFORM);
    }
    assert_string_equal(wm_recording_channel(recording, 0)->label, "package");
    while (wm_recording_next(recording, &tick, &err) > 0)
        wm_gauge_add(&watts, &tick.readings[0]);
    assert_near(watts.integral, 49 * 100, 1e-3);
    wm_recording_close(recording);
}

static void test_targets(void **state)
{
    static const struct {
        const char *what, *target;
        enum wm_record_mode mode;
        int status;
        const char *complains_of; /* or the file that is there */
    } cases[] = {
        { "a folder to be made", "new/", WM_RECORD_NEW, WM_OK, "new/power_metrics.json" },
        { "by its suffix", "new.aipm", WM_RECORD_NEW, WM_OK,
          "new.aipm/power_metrics.json" },
        { "by the file's name", "named/power_metrics.json", WM_RECORD_NEW, WM_OK,
          "named/power_metrics.json" },
        { "one that is there", "empty/", WM_RECORD_NEW, WM_OK, "empty/power_metrics.json" },
        { "ours, again", "ours/", WM_RECORD_NEW, WM_EEXIST, "\"append\" adds to it" },
        { "ours, replaced", "ours/", WM_RECORD_OVERWRITE, WM_OK,
          "ours/power_metrics.json" },
        { "ours, added to", "ours/", WM_RECORD_APPEND, WM_OK, "ours/power_metrics.json" },
        { "theirs, again", "theirs/", WM_RECORD_NEW, WM_EEXIST, "exists already" },
        { "theirs, replaced", "theirs/", WM_RECORD_OVERWRITE, WM_EEXIST,
          "not made by wattmeter" },
        { "theirs, added to", "theirs/", WM_RECORD_APPEND, WM_OK,
          "theirs/power_metrics.json" },
        { "cut off, added to", "cut/", WM_RECORD_APPEND, WM_EFORMAT, "cut off" },
        { "no folder to make it in", "no/where/", WM_RECORD_NEW, WM_ENOENT,
          "no such folder" },
        { "a file in its place", "file.aipm", WM_RECORD_NEW, WM_EIO, "Not a directory" },
        { "a folder in the file's place", "odd/", WM_RECORD_OVERWRITE, WM_EINVAL,
          "not a regular file" },
        { "a link, replaced", "link/", WM_RECORD_OVERWRITE, WM_EINVAL, "symbolic link" },
    };
    struct wm_error err = { 0 };

    assert_ok(record(fixture_path(state, "ours/"), WM_RECORD_NEW, 3, CHANNELS, &err));
    assert_int_equal(mkdir(fixture_path(state, "empty"), 0755), 0);
    test_write_file(*state, "theirs/power_metrics.json",
                    "{\"date\": \"2022-01-01 00:00:00\", \"metrics\": {}}\n");
    test_write_file(*state, "theirs/metadata.json", "{\"description\": \"mine\"}");
    test_write_file(*state, "theirs/results_exp.json", "[]");
    test_write_file(*state, "cut/power_metrics.json", "{\"date\": \"2022-");
    test_write_file(*state, "file.aipm", "x");
    test_write_file(*state, "odd/power_metrics.json/x", "x");
    test_write_file(*state, "link/x", "x");
    assert_int_equal(symlink("x", fixture_path(state, "link/power_metrics.json")), 0);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        int status =
            record(fixture_path(state, cases[i].target), cases[i].mode, 3, CHANNELS, &err);
        if (status == WM_OK && cases[i].status == WM_OK) {
            assert_int_equal(access(fixture_path(state, cases[i].complains_of), F_OK), 0);
            continue;
        }
        if (cases[i].status != WM_EIO && status != cases[i].status)
            fail_msg("%d: %s", status, err.text);
        if (status >= 0 || !strstr(err.text, cases[i].complains_of))
            fail_msg("%d: %s", status, err.text);
    }
    char *text = slurp(fixture_path(state, "theirs/metadata.json"));
    assert_string_equal(text, "{\"description\": \"mine\"}");
    free(text);
    text = slurp(fixture_path(state, "cut/power_metrics.json"));
    assert_string_equal(text, "{\"date\": \"2022-");
    free(text);
    assert_int_equal(access(fixture_path(state, "theirs/results_exp.json"), F_OK), 0);
}

/* A segment that a kill left open is ended before another one begins. */
static void test_append(void **state)
{
    static const struct {
        const char *what, *there;
        size_t ends;
    } cases[] = {
        { "nothing there", "", 1 },
        { "ended", "{\"date\": \"2022-01-01 00:00:00\", \"metrics\": {}}\n" END, 2 },
        { "not ended", "{\"date\": \"2022-01-01 00:00:00\", \"metrics\": {}}\n", 2 },
        { "short", "{}\n", 2 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        size_t ends = 0;
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "exp/power_metrics.json", cases[i].there);
        assert_ok(record(fixture_path(state, "exp/"), WM_RECORD_APPEND, 4, CHANNELS, &err));
        char *text = slurp(fixture_path(state, "exp/power_metrics.json"));
        assert_memory_equal(text, cases[i].there, strlen(cases[i].there));
        for (const char *at = text; (at = strstr(at, END)) != NULL; at++)
            ends++;
        assert_int_equal(ends, cases[i].ends);
        assert_string_equal(text + strlen(text) - strlen(END), END);
        free(text);
    }
}

/* A recorder that never gets a tick leaves nothing behind, and takes nothing. */
static void test_no_tick(void **state)
{
    struct wm_recorder *recorder = NULL;
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(fixture_path(state, "new/"), WM_RECORD_NEW, fixture_run(),
                               channels, CHANNELS, &recorder, &err));
    wm_recorder_close(recorder);
    assert_int_equal(access(fixture_path(state, "new"), F_OK), -1);

    assert_ok(record(fixture_path(state, "ours/"), WM_RECORD_NEW, 3, CHANNELS, &err));
    char *before = slurp(fixture_path(state, "ours/power_metrics.json"));
    assert_ok(wm_recorder_open(fixture_path(state, "ours/"), WM_RECORD_OVERWRITE,
                               fixture_run(), channels, CHANNELS, &recorder, &err));
    wm_recorder_close(recorder);
    char *after = slurp(fixture_path(state, "ours/power_metrics.json"));
    assert_string_equal(before, after);
    free(before);
    free(after);

    test_write_file(*state, "kept/mine.txt", "x");
    assert_ok(wm_recorder_open(fixture_path(state, "kept/"), WM_RECORD_NEW, fixture_run(),
                               channels, CHANNELS, &recorder, &err));
    wm_recorder_close(recorder);
    assert_int_equal(access(fixture_path(state, "kept/mine.txt"), F_OK), 0);
    assert_int_equal(access(fixture_path(state, "kept/power_metrics.json"), F_OK), -1);
}

static void test_no_memory(void **state)
{
    const char *from = fixture_path(state, "a.csv"), *to = fixture_path(state, "b.aipm"),
               *file = fixture_path(state, "b.aipm/power_metrics.json");
    struct wm_error err = { 0 };
    int status = WM_ENOMEM;

    record_fixture(from, WM_RECORD_NEW, 5);
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_recording *recording = NULL;
        assert_true(nth < 1000);
        assert_ok(wm_recording_open(from, WM_LAST_RUN, &recording, &err));
        test_fail_allocation(nth);
        status = wm_recording_export(recording, to, WM_RECORD_NEW, &err);
        test_fail_allocation(-1);
        wm_recording_close(recording);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        assert_int_equal(access(file, F_OK), status == WM_OK ? 0 : -1);
    }
    assert_ok(status);
}

UNIT(record_aipm)
{
#define WITH_DIR(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, test_make_dir_utc, test_remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_values),        WITH_DIR(test_missing),
        WITH_DIR(test_still_counter), WITH_DIR(test_read_back),
        WITH_DIR(test_targets),       WITH_DIR(test_append),
        WITH_DIR(test_no_tick),       WITH_DIR(test_no_memory),
        WITH_DIR(test_no_counter),    WITH_DIR(test_sources),
        WITH_DIR(test_two_writers),   WITH_DIR(test_replaced_as_a_whole),
        WITH_DIR(test_left_behind),   WITH_DIR(test_taken_while_made),
        WITH_DIR(test_last_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
