/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_meter.c - snippets and rows of a meter: CPUs from small trees that stand for
 * /sys, whose counters the tests move, and GPUs from the fake driver.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wattmeter/energy.h"

#define RANGE_UJ 262143328850
#define MAX_DEVICES 8
#define MAX_CELLS 48

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_s(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - floor(seconds)) * 1e9) };

    nanosleep(&time, NULL);
}

/* Zone 0 is the package, and 0:0 is its memory. */
static void set_counter(const char *dir, const char *zone, uint64_t microjoules)
{
    char path[300], text[32];
    int length = snprintf(text, sizeof(text), "%013" PRIu64 "\n", microjoules);

    /* In place: the source has the file open, and reads it at any moment. */
    snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:%s/energy_uj", dir, zone);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, (size_t)length, 0), length);
    close(fd);
}

static void make_zone(const char *dir, const char *zone, const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "class/powercap/intel-rapl:%s/name", zone);
    test_write_file(dir, path, name);
    snprintf(path, sizeof(path), "class/powercap/intel-rapl:%s/max_energy_range_uj", zone);
    test_write_file(dir, path, "262143328850\n");
    snprintf(path, sizeof(path), "class/powercap/intel-rapl:%s/energy_uj", zone);
    test_write_file(dir, path, "0001000000000\n");
}

/* A machine without any sensor, and without a GPU. */
static int make_machine(void **state)
{
    char proc[300];

    if (test_make_dir(state) < 0)
        return -1;
    snprintf(proc, sizeof(proc), "%s/proc", (const char *)*state);
    test_write_file(*state, "proc/stat",
                    "cpu  1000 0 0 5000 0 0 0 0 0 0\n"
                    "cpu0 500 0 0 2500 0 0 0 0 0 0\n"
                    "cpu1 500 0 0 2500 0 0 0 0 0 0\n"
                    "processes 7\n");
    setenv("WATTMETER_SYSFS", *state, 1);
    setenv("WATTMETER_PROCFS", proc, 1);
    setenv("WATTMETER_NVML", "/nonexistent", 1);
    return 0;
}

/* The same with RAPL: counters stand at 1000 J. */
static int make_rapl_machine(void **state)
{
    if (make_machine(state) < 0)
        return -1;
    make_zone(*state, "0", "package-0\n");
    make_zone(*state, "0:0", "dram\n");
    return 0;
}

static void use_fake_driver(const char *scenario)
{
    setenv("WATTMETER_NVML", test_build_path("tests/fake/libnvidia-ml.so.1"), 1);
    setenv("FAKE_NVML_SCENARIO", scenario, 1);
}

static void make_gpus(const char *dir, const char *json)
{
    char path[300];

    test_write_file(dir, "gpus.json", json);
    snprintf(path, sizeof(path), "%s/gpus.json", dir);
    use_fake_driver(path);
}

/* The one at work, so that a test that fails does not leave its driver to the next. */
static struct wm_meter *opened;

static struct wm_meter *open_meter(const struct wm_meter_options *options)
{
    struct wm_error err = { 0 };

    assert_null(opened);
    if (wm_meter_open(options, &opened, &err) < 0)
        fail_msg("%s", err.text);
    return opened;
}

static int clean_up(void **state)
{
    test_fail_threads(false);
    wm_meter_close(opened, NULL);
    opened = NULL;
    return test_remove_dir(state);
}

static uint64_t start(struct wm_meter *meter, const char *name)
{
    struct wm_error err = { 0 };
    uint64_t id = 0;

    if (wm_meter_start(meter, name, &id, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(id != 0);
    return id;
}

static struct wm_meter_reading stop(struct wm_meter *meter, uint64_t id)
{
    struct wm_meter_reading reading;
    struct wm_error err = { 0 };

    if (wm_meter_stop(meter, id, &reading, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return reading;
}

static void check_close(struct wm_meter *meter, int expected)
{
    opened = NULL;
    assert_int_equal(wm_meter_close(meter, NULL), expected);
}

static void check_joules(const struct wm_meter_energy *energy, double joules,
                         double tolerance)
{
    if (energy->state != WM_READING_OK)
        fail_msg("no figure: %s", energy->why);
    assert_string_equal(energy->why, "");
    if (fabs(energy->joules - joules) > tolerance)
        fail_msg("%g J are not %g J within %g", energy->joules, joules, tolerance);
    assert_true(energy->uncertainty >= 0);
}

/* Of a counter that moved once: its readings and the window differ by what a busy machine
 * makes of it, and the figure allows for that. */
static void check_counted(const struct wm_meter_energy *energy, double joules)
{
    check_joules(energy, joules, fmax(energy->high - joules, joules - energy->low));
    assert_true(energy->low <= joules && joules <= energy->high);
}

static void check_missing(const struct wm_meter_energy *energy, enum wm_reading_state state,
                          const char *why)
{
    assert_int_equal(energy->state, state);
    assert_int_equal(energy->method, WM_METER_NO_METHOD);
    if (!strstr(energy->why, why))
        fail_msg("'%s' does not say '%s'", energy->why, why);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Splits a line without quotes; returns how many cells. */
static size_t split(char *line, char **cells)
{
    size_t count = 0;

    for (char *cell; (cell = strsep(&line, ",")) != NULL;) {
        assert_true(count < MAX_CELLS);
        cells[count++] = cell;
    }
    return count;
}

static const char *path_in(const char *dir, const char *name)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void test_counters(void **state)
{
    struct wm_meter *meter = open_meter(NULL);
    struct wm_meter_energy devices[MAX_DEVICES];
    struct wm_meter_reading cost;

    assert_int_equal(wm_meter_device_count(meter), 2);
    assert_string_equal(wm_meter_device(meter, 0)->label, "package0");
    assert_int_equal(wm_meter_device(meter, 0)->kind, WM_DEVICE_CPU);
    assert_string_equal(wm_meter_device(meter, 1)->label, "dram0");
    assert_int_equal(wm_meter_device(meter, 1)->kind, WM_DEVICE_DRAM);
    assert_null(wm_meter_remark(meter));

    uint64_t id = start(meter, "one");
    sleep_s(0.02);
    set_counter(*state, "0", 1003000000);
    set_counter(*state, "0:0", 1001000000);
    double before_s = now_s();
    assert_int_equal(wm_meter_stop(meter, id, &cost, devices, NULL), WM_OK);
    assert_true(cost.elapsed_s >= 0.02 && cost.elapsed_s < 0.02 + 1);
    assert_true(now_s() - before_s < 1);
    check_counted(&cost.cpu, 3);
    check_counted(&cost.dram, 1);
    check_counted(&devices[0], 3);
    check_counted(&devices[1], 1);
    assert_int_equal(cost.cpu.method, WM_METER_COUNTER);
    assert_int_equal(cost.cpu.origin, WM_MEASURED);
    assert_true(cost.cpu.uncertainty > 0 && cost.cpu.uncertainty < 3);
    assert_false(cost.cpu.is_short);
    check_missing(&cost.gpu, WM_READING_UNSUPPORTED, "nvml: ");
    check_close(meter, 0);
}

static void test_nested_and_overlapping(void **state)
{
    struct wm_meter *meter = open_meter(NULL);

    uint64_t a = start(meter, "a");
    sleep_s(0.01);
    set_counter(*state, "0", 1001000000);
    uint64_t b = start(meter, "b");
    uint64_t inner = start(meter, "inner");
    sleep_s(0.01);
    set_counter(*state, "0", 1003000000);
    struct wm_meter_reading of_inner = stop(meter, inner), of_a = stop(meter, a);
    sleep_s(0.01);
    set_counter(*state, "0", 1007000000);
    struct wm_meter_reading of_b = stop(meter, b);

    check_counted(&of_inner.cpu, 2);
    check_counted(&of_a.cpu, 3);
    check_counted(&of_b.cpu, 6);
    assert_true(of_a.elapsed_s > of_inner.elapsed_s);

    /* Memory has not been seen to move: it may be at rest, or its counter dead. */
    check_missing(&of_b.dram, WM_READING_FAILED, "dram0: its energy counter did not move");
    check_close(meter, 0);
}

static void test_counter_that_runs_over(void **state)
{
    set_counter(*state, "0", RANGE_UJ - 1000000);
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);

    sleep_s(0.02);
    set_counter(*state, "0", 1999999);
    struct wm_meter_reading cost = stop(meter, id);
    check_counted(&cost.cpu, 3);
    check_close(meter, 0);
}

static void test_too_short_for_the_sensor(void **state)
{
    (void)state;
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);
    struct wm_meter_reading cost = stop(meter, id);

    assert_true(cost.elapsed_s >= 0);
    assert_true(cost.cpu.state != WM_READING_OK);
    assert_true(strlen(cost.cpu.why) > 0);
    check_close(meter, 0);
}

static void test_machine_without_sensors(void **state)
{
    (void)state;
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, "nothing");

    sleep_s(0.01);
    struct wm_meter_reading cost = stop(meter, id);
    assert_int_equal(wm_meter_device_count(meter), 0);
    assert_true(cost.elapsed_s >= 0.01);
    check_missing(&cost.cpu, WM_READING_UNSUPPORTED, "rapl: ");
    check_missing(&cost.dram, WM_READING_UNSUPPORTED, "rapl: ");
    check_missing(&cost.gpu, WM_READING_UNSUPPORTED, "drm: ");
    check_close(meter, 0);
}

static void test_estimate(void **state)
{
    const struct wm_meter_options options = { .cpu_watts = "10:30" };
    const struct wm_meter_options wrong = { .cpu_watts = "much" };
    struct wm_meter *meter = open_meter(&options);
    uint64_t id = start(meter, NULL);
    struct wm_error err = { 0 };

    /* 20 ticks of 10 ms, of the 2 x 40 that pass: a quarter of the way up. */
    sleep_s(0.4);
    test_write_file(*state, "proc/stat",
                    "cpu  1020 0 0 5000 0 0 0 0 0 0\n"
                    "cpu0 510 0 0 2500 0 0 0 0 0 0\n"
                    "cpu1 510 0 0 2500 0 0 0 0 0 0\n"
                    "processes 7\n");
    struct wm_meter_reading cost = stop(meter, id);
    check_joules(&cost.cpu, 15 * cost.elapsed_s, 2 * cost.elapsed_s);
    assert_int_equal(cost.cpu.origin, WM_ESTIMATED);
    assert_true(cost.cpu.uncertainty > 0.1 * cost.cpu.joules);
    check_close(meter, 0);

    assert_int_equal(wm_meter_open(&wrong, &meter, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "much"));
}

/* What is measured goes before what is estimated. */
static void test_estimate_beside_counters(void **state)
{
    const struct wm_meter_options options = { .cpu_watts = "10:30", .estimate = true };
    struct wm_meter *meter = open_meter(&options);

    for (int i = 1; i <= 2; i++) {
        uint64_t id = start(meter, NULL);
        sleep_s(0.05);
        set_counter(*state, "0", 1000000000 + (uint64_t)i * 1000000);
        struct wm_meter_reading cost = stop(meter, id);
        check_counted(&cost.cpu, 1);
        assert_int_equal(cost.cpu.origin, WM_MEASURED);
    }

    /* A counter that works and shows nothing new is no reason for another figure. */
    uint64_t id = start(meter, NULL);
    struct wm_meter_reading cost = stop(meter, id);
    assert_true(cost.cpu.state != WM_READING_OK);
    check_close(meter, 0);
}

/* An estimate of the memory is not added to measured CPUs, and stands beside estimated
 * ones. */
static void test_estimated_memory(void **state)
{
    const struct wm_meter_options options = { .cpu_watts = "10:30" };

    test_write_file(
        *state, "proc/meminfo",
        "MemTotal: 67108864 kB\nMemFree: 60000000 kB\nMemAvailable: 60000000 kB\n");
    struct wm_meter *meter = open_meter(&options);
    uint64_t id = start(meter, NULL);
    sleep_s(0.1);
    struct wm_meter_reading cost = stop(meter, id);
    assert_int_equal(cost.cpu.origin, WM_ESTIMATED);
    bool has_memory = cost.dram.state == WM_READING_OK;
    check_close(meter, 0);

    make_zone(*state, "0", "package-0\n");
    meter = open_meter(&options);
    id = start(meter, NULL);
    sleep_s(0.1);
    set_counter(*state, "0", 1000000000 + 1000000);
    cost = stop(meter, id);
    check_counted(&cost.cpu, 1);
    assert_int_equal(cost.cpu.origin, WM_MEASURED);
    assert_true(has_memory);
    check_missing(&cost.dram, WM_READING_UNSUPPORTED, "an estimate of the memory");
    check_close(meter, 0);
}

/* After a pause in which the counter may have run over it fails once. It works, and the
 * next snippets have its figure and not another kind of one. */
static void test_estimate_beside_a_pause(void **state)
{
    const struct wm_meter_options options = { .cpu_watts = "10:30", .estimate = true };
    struct wm_meter *meter = open_meter(&options);

    set_counter(*state, "0", 1001000000);
    uint64_t id = start(meter, NULL);
    sleep_s(0.02);
    set_counter(*state, "0", 1002000000);
    struct wm_meter_reading cost = stop(meter, id);
    assert_int_equal(cost.cpu.origin, WM_MEASURED);

    /* Nobody knows how far it came, which a jump tells like a long time does. */
    set_counter(*state, "0", 200000000000);
    id = start(meter, NULL);
    set_counter(*state, "0", 200000500000);
    cost = stop(meter, id);
    assert_true(cost.cpu.state != WM_READING_OK || cost.cpu.origin == WM_MEASURED);
    check_close(meter, 0);
}

/* The graphics unit of an APU has the power of the package, which counts once. */
static void test_apu(void **state)
{
    struct wm_meter_reading cost;
    (void)state;

    setenv("WATTMETER_SYSFS", test_source_path("tests/data/sys-drm/amd-apu"), 1);
    setenv("WATTMETER_PROCFS", test_source_path("tests/data/proc-drm/amd-apu"), 1);
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);
    sleep_s(0.3);
    cost = stop(meter, id);
    check_missing(&cost.gpu, WM_READING_UNSUPPORTED,
                  "card1: its power is that of the CPU package");
    check_close(meter, 0);
}

/* One that is a part of the processor leaves the sum to the others. */
static void test_integrated_gpu(void **state)
{
    make_gpus(*state, "{\"gpus\": [{\"power\": 300, \"energy\": {\"start\": 1000}}]}");
    setenv("WATTMETER_SYSFS", test_source_path("tests/data/sys-drm/intel-integrated"), 1);
    setenv("WATTMETER_PROCFS", test_source_path("tests/data/proc-drm/intel-integrated"), 1);
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);
    sleep_s(0.5);
    struct wm_meter_reading cost = stop(meter, id);
    check_joules(&cost.gpu, 300 * cost.elapsed_s, 0.1 * 300 * cost.elapsed_s);
    assert_non_null(wm_meter_remark(meter));
    assert_non_null(
        strstr(wm_meter_remark(meter),
               "GPU energy leaves out card0: another device measures its power"));
    check_close(meter, 0);
}

/* An H100 looks at a quarter of the time, so what it does all along has to be known:
 * how busy it is at the end says nothing of the rest. */
static void test_sensor_that_sees_a_part(void **state)
{
    static const struct {
        const char *name, *utilization;
        double least, most; /* the uncertainty, as a ratio */
    } cases[] = {
        { "busy all the time", "1", 0.05, 0.25 },
        { "half busy, and busy at the end",
          "{\"shape\": \"step\", \"points\": [[0, 0.5], [1.5, 1]]}", 0.5, 10 },
    };

    for (size_t i = 0, late = 0; i < ARRAY_LEN(cases); i++) {
        double begun_s = now_s();
        char json[300];
        print_message("  %s\n", cases[i].name);
        snprintf(json, sizeof(json),
                 "{\"gpus\": [{\"name\": \"NVIDIA H100\", \"power\": 300, "
                 "\"utilization\": %s}]}",
                 cases[i].utilization);
        make_gpus(*state, json);
        struct wm_meter *meter = open_meter(NULL);
        uint64_t id = start(meter, NULL);
        sleep_s(0.3);
        stop(meter, id);
        /* By now its counter is known to work. */
        id = start(meter, NULL);
        bool is_late = now_s() - begun_s > 0.5;
        sleep_s(1.6);
        struct wm_meter_reading cost = stop(meter, id);
        if (is_late && late++ < 50) { /* the step lies elsewhere in what is measured */
            check_close(meter, 0);
            i--;
            continue;
        }
        assert_int_equal(cost.gpu.state, WM_READING_OK);
        assert_int_equal(cost.gpu.method, WM_METER_COUNTER);
        double ratio = cost.gpu.uncertainty / cost.gpu.joules;
        if (ratio < cases[i].least || ratio > cases[i].most)
            fail_msg("%s: uncertain by %g", cases[i].name, ratio);
        check_close(meter, 0);
    }
}

static void test_gpus(void **state)
{
    static const struct {
        const char *what, *json;
        enum wm_meter_method method;
        double watts, tolerance;
    } cases[] = {
        { "a counter", "{\"gpus\": [{\"power\": 300, \"energy\": {\"start\": 1000}}]}",
          WM_METER_COUNTER, 300, 0.05 },
        { "no counter: both ends of a second are at 100 W, and its middle at 500 W",
          "{\"gpus\": [{\"power\": {\"shape\": \"linear\", \"repeat\": 1, \"points\":"
          " [[0, 100], [0.5, 500], [1, 100]]}, \"energy\": {\"mode\": \"absent\"}}]}",
          WM_METER_INTEGRAL, 300, 0.1 },
        { "a counter that does not move",
          "{\"gpus\": [{\"power\": 150, \"energy\": {\"mode\": \"stuck\", \"start\": 7}}]}",
          WM_METER_INTEGRAL, 150, 0.05 },
        { "two GPUs, one with a counter",
          "{\"gpus\": [{\"power\": 300}, {\"power\": 100, \"energy\": {\"mode\": "
          "\"absent\"}}]}",
          WM_METER_MIXED, 400, 0.05 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].what);
        make_gpus(*state, cases[i].json);
        struct wm_meter *meter = open_meter(NULL);
        uint64_t id = start(meter, NULL);
        sleep_s(1);
        struct wm_meter_reading cost = stop(meter, id);
        double joules = cases[i].watts * cost.elapsed_s;
        check_joules(&cost.gpu, joules, cases[i].tolerance * joules);
        assert_int_equal(cost.gpu.method, cases[i].method);
        assert_int_equal(cost.gpu.origin, WM_SIMULATED);
        check_close(meter, 0);
    }
}

/* What is random cancels out in part; these sensors have no error of their own. */
static void test_uncertainty_of_a_sum(void **state)
{
    struct wm_meter_energy devices[MAX_DEVICES];
    struct wm_meter_reading cost;

    make_gpus(*state, "{\"gpus\": [{\"power\": 300}, {\"power\": 200}]}");
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);
    sleep_s(0.5);
    assert_int_equal(wm_meter_stop(meter, id, &cost, devices, NULL), WM_OK);
    assert_int_equal(wm_meter_device_count(meter), 2);
    check_joules(&cost.gpu, 500 * cost.elapsed_s, 0.1 * 500 * cost.elapsed_s);
    assert_true(devices[0].uncertainty > 0 && devices[1].uncertainty > 0);
    double expected = hypot(devices[0].uncertainty, devices[1].uncertainty);
    assert_true(fabs(cost.gpu.uncertainty - expected) < 1e-9);
    check_close(meter, 0);
}

/* Before and after a burst the GPU is idle, and nobody looks meanwhile. Whoever begins or
 * ends late on a busy machine has measured something else, and tries again. */
static void test_short_burst(void **state)
{
    struct wm_meter_reading cost;
    char json[200];
    bool is_late = true;

    for (int i = 0; is_late; i++) {
        double begun_s = now_s();
        snprintf(json, sizeof(json),
                 "{\"gpus\": [{\"power\": {\"shape\": \"step\", \"points\": "
                 "[[0, 15], [0.1, 600], [0.18, 15]]}}], \"start_monotonic_ns\": %.0f}",
                 begun_s * 1e9);
        make_gpus(*state, json);
        struct wm_meter *meter = open_meter(NULL);
        uint64_t id = start(meter, NULL);
        is_late = i < 100 && now_s() - begun_s > 0.1;
        sleep_s(0.25);
        cost = stop(meter, id);
        is_late = is_late || (i < 100 && cost.elapsed_s > 0.3);
        check_close(meter, 0);
    }
    check_joules(&cost.gpu, 0.08 * 600 + (cost.elapsed_s - 0.08) * 15,
                 cost.gpu.uncertainty);
    assert_true(cost.gpu.is_short);
    assert_true(cost.gpu.uncertainty < 50);
}

/* The parts come to the whole, however often the counter has something new and whatever is
 * known of it: one after the other, each with a figure. */
static void test_sum_of_short_snippets(void **state)
{
    static const int periods_ms[] = { 0, 20, 100 };
    static const double lengths_s[] = { 0.003, 0.02, 0.05, 0.15 };
    char json[200];

    for (size_t p = 0; p < ARRAY_LEN(periods_ms); p++) {
        snprintf(json, sizeof(json),
                 "{\"gpus\": [{\"power\": 300, \"energy\": {\"period_ms\": %d}}]}",
                 periods_ms[p]);
        make_gpus(*state, json);
        for (size_t l = 0; l < ARRAY_LEN(lengths_s); l++) {
            struct wm_meter *meter = open_meter(NULL);
            double sum = 0, seconds = 0;
            for (int i = 0; i < 0.6 / lengths_s[l]; i++) {
                uint64_t id = start(meter, NULL);
                sleep_s(lengths_s[l]);
                struct wm_meter_reading cost = stop(meter, id);
                if (cost.gpu.state != WM_READING_OK)
                    fail_msg("%s", cost.gpu.why);
                sum += cost.gpu.joules;
                seconds += cost.elapsed_s;
            }
            check_close(meter, 0);
            print_message("  %d ms, %g ms: %g of %g J\n", periods_ms[p], 1e3 * lengths_s[l],
                          sum, 300 * seconds);
            double most = 0.05 * 300 * seconds + 300 * 1.1e-3 * periods_ms[p];
            assert_true(fabs(sum - 300 * seconds) < most);
        }
    }
}

static void test_interval_checks_the_counter(void **state)
{
    const struct wm_meter_options options = { .interval_ns = 20000000 };

    make_gpus(*state, "{\"gpus\": [{\"power\": 200, \"energy\": {\"reset_at\": 0.45, "
                      "\"start\": 5000, \"period_ms\": 100}}]}");
    struct wm_meter *meter = open_meter(&options);
    uint64_t id = start(meter, NULL);
    sleep_s(1);
    struct wm_meter_reading cost = stop(meter, id);

    /* The step over the reset is filled in. */
    check_joules(&cost.gpu, 200 * cost.elapsed_s, 0.08 * 200 * cost.elapsed_s);
    assert_int_equal(cost.gpu.method, WM_METER_FILLED);
    check_close(meter, 0);
}

static void test_gpu_that_is_lost(void **state)
{
    char json[200];

    /* The driver is started anew, and the clock goes on all the same. */
    snprintf(json, sizeof(json),
             "{\"gpus\": [{\"power\": 200, \"lost_at\": 0.5}], "
             "\"start_monotonic_ns\": %.0f}",
             now_s() * 1e9);
    make_gpus(*state, json);
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);

    sleep_s(1);
    struct wm_meter_reading cost = stop(meter, id);
    assert_true(cost.gpu.state != WM_READING_OK);
    assert_non_null(strstr(cost.gpu.why, "gpu0: "));
    check_close(meter, 0);
}

static void test_driver_that_hangs(void **state)
{
    make_gpus(*state, "{\"gpus\": [{\"power\": 200}], \"faults\": [{\"call\": "
                      "\"nvmlDeviceGetTotalEnergyConsumption\", \"from\": 0.3, "
                      "\"delay_ms\": 1500}]}");
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, NULL);

    sleep_s(0.4);
    double before_s = now_s();
    struct wm_meter_reading cost = stop(meter, id);
    assert_true(now_s() - before_s < 0.4);
    check_missing(&cost.gpu, WM_READING_STALE, "gpu0: ");
    before_s = now_s();
    check_close(meter, 0);
    assert_true(now_s() - before_s < 3);
    sleep_s(1.5);
}

static void test_choice_of_gpus(void **state)
{
    static const struct {
        const char *words;
        int status;
        size_t devices;
    } cases[] = {
        { NULL, WM_OK, 3 },         { "all", WM_OK, 3 },     { "none", WM_OK, 0 },
        { "1", WM_OK, 1 },          { "0,2", WM_OK, 2 },     { "gpu2", WM_OK, 1 },
        { "3", WM_EINVAL, 0 },      { "1,x", WM_EINVAL, 0 }, { "", WM_EINVAL, 0 },
        { "GPU-no", WM_EINVAL, 0 },
    };

    make_gpus(*state, "{\"gpus\": [{\"count\": 3}]}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_meter_options options = { .gpus = cases[i].words };
        struct wm_meter *meter = NULL;
        struct wm_error err = { 0 };

        print_message("'%s'\n", cases[i].words ? cases[i].words : "NULL");
        int status = wm_meter_open(&options, &meter, &err);
        opened = meter;
        assert_int_equal(status, cases[i].status);
        if (status < 0) {
            assert_true(strlen(err.text) > 0);
            continue;
        }
        assert_int_equal(wm_meter_device_count(meter), cases[i].devices);
        if (cases[i].devices == 0) {
            struct wm_meter_reading cost = stop(meter, start(meter, NULL));
            check_missing(&cost.gpu, WM_READING_UNSUPPORTED, "no GPU was chosen");
        }
        check_close(meter, 0);
    }
}

static void test_wrong_options(void **state)
{
    static const struct wm_meter_options cases[] = {
        { .interval_ns = -1 },
        { .interval_ns = 999999 },
        { .interval_ns = INT64_C(3600000000001) },
        { .mode = (enum wm_record_mode)7 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_meter *meter = NULL;
        struct wm_error err = { 0 };
        assert_int_equal(wm_meter_open(&cases[i], &meter, &err), WM_EINVAL);
        assert_true(strlen(err.text) > 0);
        assert_null(meter);
    }
}

static void test_wrong_calls(void **state)
{
    struct wm_meter *meter = open_meter(NULL);
    struct wm_error err = { 0 };
    uint64_t id = 0;

    uint64_t over = start(meter, NULL);
    stop(meter, over);
    uint64_t open = start(meter, NULL);
    const uint64_t wrong[] = { 0, over, open + 1, open << 1, UINT64_MAX, UINT32_MAX, 1 };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        err.text[0] = '\0';
        assert_int_equal(wm_meter_stop(meter, wrong[i], NULL, NULL, &err), WM_EINVAL);
        assert_true(strlen(err.text) > 0);
    }
    stop(meter, open);

    assert_int_equal(wm_meter_start(NULL, "x", &id, &err), WM_EINVAL);
    assert_int_equal(wm_meter_start(meter, "x", NULL, &err), WM_EINVAL);
    assert_int_equal(wm_meter_stop(NULL, 1, NULL, NULL, &err), WM_EINVAL);
    assert_int_equal(wm_meter_run(NULL, "x", 1000000, &err), WM_EINVAL);
    assert_int_equal(wm_meter_run(meter, NULL, 1000000, &err), WM_EINVAL);
    assert_int_equal(wm_meter_run(meter, path_in(*state, "x"), 0, &err), WM_EINVAL);
    assert_int_equal(wm_meter_halt(NULL, &err), WM_EINVAL);
    assert_int_equal(wm_meter_halt(meter, &err), WM_EINVAL);
    assert_int_equal(access(path_in(*state, "x"), F_OK), -1);
    assert_int_equal(wm_meter_close(NULL, &err), WM_OK);

    /* Nothing of what a call offers has to be wanted. */
    assert_int_equal(wm_meter_stop(meter, start(meter, NULL), NULL, NULL, NULL), WM_OK);
    check_close(meter, 0);
    assert_string_equal(wm_meter_method_name((enum wm_meter_method)99), "");
}

static void test_child_of_a_fork(void **state)
{
    struct wm_meter *meter = open_meter(NULL);
    uint64_t id = start(meter, "parent's");

    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t other = 0;
        struct wm_error err = { 0 };
        bool is_right =
            wm_meter_start(meter, "child's", &other, &err) == WM_EINVAL && other == 0 &&
            strstr(err.text, "fork") && wm_meter_stop(meter, id, NULL, NULL, NULL) < 0 &&
            wm_meter_run(meter, path_in(*state, "rows"), 1000000, NULL) == WM_EINVAL &&
            wm_meter_halt(meter, NULL) == WM_EINVAL && wm_meter_close(meter, NULL) == 0;

/* ThreadSanitizer allows no thread there, and AddressSanitizer's malloc() may have been
 * locked by the meter's thread. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
        /* One of its own works. */
        struct wm_meter *own = NULL;
        is_right = is_right && wm_meter_open(NULL, &own, NULL) == WM_OK &&
                   wm_meter_start(own, "child's", &other, NULL) == WM_OK &&
                   wm_meter_stop(own, other, NULL, NULL, NULL) == WM_OK &&
                   wm_meter_close(own, NULL) == 0;
#endif
        _exit(is_right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stop(meter, id);
    check_close(meter, 0);
}

#define SNIPPET_COLUMNS                                                                    \
    "elapsed_s,cpu_energy_J,dram_energy_J,gpu_energy_J,cpu_uncertainty_J,"                 \
    "dram_uncertainty_J,gpu_uncertainty_J,cpu_method,dram_method,gpu_method,cpu_origin,"   \
    "dram_origin,gpu_origin,finished,name"

/* An estimate has no steps, and says that it is a model; its columns have names of their
 * own beside those of the sums. */
static void test_estimate_of_short_snippets(void **state)
{
    char path[300];
    const struct wm_meter_options options = { .cpu_watts = "20:20", .snippets = path };
    double sum = 0, seconds = 0;

    snprintf(path, sizeof(path), "%s/snippets.csv", (const char *)*state);
    test_write_file(*state, "proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 9 kB\n");
    struct wm_meter *meter = open_meter(&options);
    for (int i = 0; i < 100; i++) {
        uint64_t id = start(meter, "x");
        sleep_s(0.001);
        struct wm_meter_reading cost = stop(meter, id);
        assert_int_equal(cost.cpu.state, WM_READING_OK);
        assert_int_equal(cost.cpu.method, WM_METER_MODEL);
        assert_int_equal(cost.cpu.origin, WM_ESTIMATED);
        sum += cost.cpu.joules;
        seconds += cost.elapsed_s;
    }
    assert_true(fabs(sum - 20 * seconds) < 0.05 * 20 * seconds);
    check_close(meter, 0);

    char *text = read_file(path), *rest = text, *cells[MAX_CELLS];
    size_t count = split(strsep(&rest, "\n"), cells);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(cells[i], cells[k]);
    }
    assert_string_equal(cells[15], "estimate_cpu_energy_J");
    free(text);
    assert_string_equal(wm_meter_method_name(WM_METER_MODEL), "model");
}

static void test_snippet_file(void **state)
{
    char path[300];
    const struct wm_meter_options options = { .snippets = path };
    char *cells[MAX_CELLS];

    snprintf(path, sizeof(path), "%s/snippets.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    uint64_t first = start(meter, "first");
    uint64_t never = start(meter, "never stopped");
    sleep_s(0.02);
    set_counter(*state, "0", 1002000000);
    struct wm_meter_reading cost = stop(meter, first);

    /* The row is there before the meter is closed. */
    char *text = read_file(path), *rest = text;
    assert_string_equal(strsep(&rest, "\n"),
                        SNIPPET_COLUMNS ",package0_energy_J,dram0_energy_J");
    assert_int_equal(split(strsep(&rest, "\n"), cells), 17);
    assert_string_equal(rest, "");
    assert_true(fabs(strtod(cells[0], NULL) - cost.elapsed_s) < 1e-9);
    assert_true(fabs(strtod(cells[1], NULL) - cost.cpu.joules) < 1e-9);
    assert_string_equal(cells[2], "");
    assert_string_equal(cells[3], "");
    assert_true(strtod(cells[4], NULL) > 0);
    assert_string_equal(cells[5], "");
    assert_string_equal(cells[7], "counter");
    assert_string_equal(cells[8], "");
    assert_string_equal(cells[10], "measured");
    assert_string_equal(cells[11], "");
    assert_string_equal(cells[13], "yes");
    assert_string_equal(cells[14], "first");
    assert_string_equal(cells[15], cells[1]);
    assert_string_equal(cells[16], "");
    free(text);

    (void)never;
    start(meter, "nor this");
    check_close(meter, 2);
    text = rest = read_file(path);
    strsep(&rest, "\n"), strsep(&rest, "\n");
    assert_int_equal(split(strsep(&rest, "\n"), cells), 17);
    assert_string_equal(cells[13], "no");
    assert_string_equal(cells[14], "nor this");
    assert_int_equal(split(strsep(&rest, "\n"), cells), 17);
    assert_string_equal(cells[13], "no");
    assert_string_equal(cells[14], "never stopped");
    assert_true(fabs(strtod(cells[1], NULL) - 2) < 0.5);
    assert_string_equal(rest, "");
    free(text);
}

static void test_seed_format(void **state)
{
    char path[300];
    const struct wm_meter_options options = { .snippets = path, .seed_format = true };
    char *cells[MAX_CELLS];

    make_gpus(*state, "{\"gpus\": [{\"power\": 360}]}");
    snprintf(path, sizeof(path), "%s/seed.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    uint64_t id = start(meter, "names are not in it");
    start(meter, "nor what is not finished");
    sleep_s(0.5);
    set_counter(*state, "0", 1036000000);
    struct wm_meter_reading cost = stop(meter, id);
    check_close(meter, 1);

    char *text = read_file(path), *rest = text;
    assert_int_equal(split(strsep(&rest, "\n"), cells), 3);
    assert_true(fabs(strtod(cells[0], NULL) - cost.elapsed_s) < 1e-9);
    assert_true(fabs(strtod(cells[1], NULL) - cost.cpu.joules / 3.6e6) < 1e-12);
    assert_true(fabs(strtod(cells[2], NULL) - cost.gpu.joules / 3.6e6) < 1e-12);
    assert_true(fabs(strtod(cells[2], NULL) - cost.elapsed_s * 1e-4) < 0.1e-4);
    assert_string_equal(rest, "");
    free(text);
}

static void test_names(void **state)
{
    char path[300], longest[2 * WM_METER_NAME_MAX + 1], cut[WM_METER_NAME_MAX + 1];
    const struct wm_meter_options options = { .snippets = path };
    const struct {
        const char *name, *cell;
    } cases[] = {
        { NULL, "" },
        { "", "" },
        { "plain", "plain" },
        { "with a, comma", "\"with a, comma\"" },
        { "\"quoted\"", "\"\"\"quoted\"\"\"" },
        { "two\nlines", "\"two\nlines\"" },
        { "back\r", "\"back\r\"" },
        { "\xc3\xa9poque", "\xc3\xa9poque" },
        { "bad \xff byte", "bad \xef\xbf\xbd byte" },
        { longest, cut },
    };

    memset(longest, 'n', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(cut, 'n', sizeof(cut));
    cut[sizeof(cut) - 1] = '\0';
    snprintf(path, sizeof(path), "%s/names.csv", (const char *)*state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_meter *meter = open_meter(&options);
        stop(meter, start(meter, cases[i].name));
        check_close(meter, 0);
        char *text = read_file(path), expected[sizeof(cut) + 16];
        snprintf(expected, sizeof(expected), ",yes,%s\n", cases[i].cell);
        const char *row = strchr(text, '\n') + 1;
        assert_true(strlen(row) > strlen(expected));
        assert_string_equal(row + strlen(row) - strlen(expected), expected);
        free(text);
        unlink(path);
    }
}

static int try_file(const char *path, enum wm_record_mode mode)
{
    const struct wm_meter_options options = { .snippets = path, .mode = mode };
    struct wm_meter *meter = NULL;
    struct wm_error err = { 0 };

    int status = wm_meter_open(&options, &meter, &err);
    if (status < 0) {
        assert_true(strlen(err.text) > 0);
        return status;
    }
    stop(meter, start(meter, "x"));
    check_close(meter, 0);
    return WM_OK;
}

static size_t lines_of(const char *path)
{
    char *text = read_file(path);
    size_t count = 0;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    free(text);
    return count;
}

static void test_files(void **state)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/f.csv", (const char *)*state);
    assert_int_equal(try_file(path, WM_RECORD_NEW), WM_OK);
    assert_int_equal(lines_of(path), 2);
    assert_int_equal(try_file(path, WM_RECORD_NEW), WM_EEXIST);
    assert_int_equal(lines_of(path), 2);
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_OK);
    assert_int_equal(lines_of(path), 3);
    assert_int_equal(try_file(path, WM_RECORD_OVERWRITE), WM_OK);
    assert_int_equal(lines_of(path), 2);

    /* A row that was torn when its writer was killed. */
    FILE *file = fopen(path, "a");
    fputs("0.25,1.5", file);
    fclose(file);
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_OK);
    char *text = read_file(path);
    assert_non_null(strstr(text, "\n0.25,1.5\n"));
    free(text);
    assert_int_equal(lines_of(path), 4);

    test_write_file(*state, "f.csv", "elapsed_s,other\n");
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_EEXIST);
    test_write_file(*state, "f.csv", "short");
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_EEXIST);
    test_write_file(*state, "f.csv", "");
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_OK);
    assert_int_equal(lines_of(path), 2);

    /* Somebody else writes it. */
    int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(try_file(path, WM_RECORD_APPEND), WM_EEXIST);
    assert_int_equal(try_file(path, WM_RECORD_OVERWRITE), WM_EEXIST);
    close(fd);
    assert_int_equal(lines_of(path), 2);

    assert_int_equal(try_file(path_in(*state, "no/such/folder.csv"), WM_RECORD_NEW),
                     WM_ENOENT);
    assert_true(try_file("/dev/full", WM_RECORD_OVERWRITE) < 0);
    assert_true(try_file(*state, WM_RECORD_OVERWRITE) < 0);
    assert_int_equal(mkfifo(path_in(*state, "pipe"), 0600), 0);
    assert_true(try_file(path_in(*state, "pipe"), WM_RECORD_APPEND) < 0);
    assert_int_equal(symlink(path, path_in(*state, "link")), 0);
    assert_true(try_file(path_in(*state, "link"), WM_RECORD_OVERWRITE) < 0);
    assert_int_equal(lines_of(path), 2);
}

/* A limit on the size of files stands for a disk that is full. */
static void test_disk_that_is_full(void **state)
{
    char path[300];
    const struct wm_meter_options options = { .snippets = path };
    struct rlimit usual, tight;
    struct wm_error err = { 0 };
    int lost = 0, turns = 20;

    snprintf(path, sizeof(path), "%s/full.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    tight = usual;
    tight.rlim_cur = 500;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < turns; i++) {
        struct wm_meter_reading cost = { .elapsed_s = -1 };
        int status = wm_meter_stop(meter, start(meter, "a snippet"), &cost, NULL, &err);
        assert_true(cost.elapsed_s >= 0);
        assert_true(status == WM_OK || status == WM_EIO);
        lost += status < 0;
    }
    opened = NULL;
    assert_int_equal(wm_meter_close(meter, &err), WM_EIO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, before);
    assert_non_null(strstr(err.text, "rows are missing"));
    assert_true(lost > 0 && lost < turns);

    /* What did arrive is whole. */
    char *text = read_file(path);
    assert_true(strlen(text) <= 500 && text[strlen(text) - 1] == '\n');
    free(text);
    assert_int_equal(lines_of(path), 1 + turns - lost);
}

/* The first number of each row goes to `ret_elapsed`; returns how many rows. */
static size_t check_rows(const char *path, bool has_header, size_t cells, double *elapsed,
                         size_t most, char last[MAX_CELLS][40])
{
    const size_t gpu_energy = has_header ? 3 : 4;
    char *text = read_file(path), *rest = text, *line, *found[MAX_CELLS];
    double joules = 0;
    size_t count = 0;

    if (has_header)
        strsep(&rest, "\n");
    while ((line = strsep(&rest, "\n")) != NULL && line[0]) {
        assert_true(count < most);
        assert_int_equal(split(line, found), cells);
        for (size_t i = 0; i < cells; i++)
            snprintf(last[i], sizeof(last[i]), "%s", found[i]);
        elapsed[count] = strtod(found[0], NULL);

        /* A total does not fall, until the next run begins. */
        bool is_new = count == 0 || elapsed[count] < elapsed[count - 1];
        assert_true(is_new || strtod(found[gpu_energy], NULL) >= joules);
        joules = strtod(found[gpu_energy], NULL);
        count++;
    }
    free(text);
    return count;
}

enum { MAX_ROWS = 200 };

static void add_cpu_sensor(const char *dir)
{
    test_write_file(dir, "class/hwmon/hwmon0/name", "coretemp\n");
    test_write_file(dir, "class/hwmon/hwmon0/temp1_label", "Package id 0\n");
    test_write_file(dir, "class/hwmon/hwmon0/temp1_input", "54000\n");
}

/* The package's counter moves on every 10 ms; one that does so once in all that time would
 * be a slow one. */
static void spend(const char *dir, double joules, double seconds)
{
    const int steps = (int)(seconds / 0.01);

    for (int i = 1; i <= steps; i++) {
        sleep_s(seconds / steps);
        set_counter(dir, "0", (uint64_t)(1e6 * (1000 + joules * i / steps)));
    }
}

static void test_run(void **state)
{
    const double interval_s = 0.05;
    char path[300], last[MAX_CELLS][40];
    double elapsed[MAX_ROWS];

    make_gpus(*state, "{\"gpus\": [{\"power\": 300, \"utilization\": 0.75, "
                      "\"temperature\": 61}, {\"power\": 100, \"utilization\": 0.25, "
                      "\"temperature\": 40}]}");
    add_cpu_sensor(*state);
    snprintf(path, sizeof(path), "%s/rows.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(NULL);
    assert_int_equal(wm_meter_run(meter, path, 50000000, NULL), WM_OK);
    assert_int_equal(wm_meter_run(meter, path_in(*state, "other"), 50000000, NULL),
                     WM_EINVAL);
    assert_int_equal(access(path_in(*state, "other"), F_OK), -1);
    spend(*state, 7, 0.53);

    /* Rows come as time goes by. */
    size_t before;
    while ((before = lines_of(path)) < 5)
        sleep_s(0.01);
    assert_int_equal(wm_meter_halt(meter, NULL), WM_OK);
    assert_int_equal(wm_meter_halt(meter, NULL), WM_EINVAL);

    char *text = read_file(path);
    *strchr(text, '\n') = '\0';
    assert_string_equal(
        text, "elapsed_s,cpu_energy_J,dram_energy_J,gpu_energy_J,cpu_utilization_ratio,"
              "cpu_temperature_celsius,gpu_utilization_ratio,gpu_temperature_celsius,"
              "gpu_power_W,cpu_origin,dram_origin,gpu_origin,package0_energy_J,"
              "dram0_energy_J,gpu0_energy_J,gpu0_utilization_ratio,"
              "gpu0_temperature_celsius,gpu0_power_W,gpu1_energy_J,"
              "gpu1_utilization_ratio,gpu1_temperature_celsius,gpu1_power_W");
    free(text);
    size_t rows = check_rows(path, true, 22, elapsed, MAX_ROWS, last);
    assert_int_equal(lines_of(path), rows + 1);
    assert_true(rows + 1 >= before && (double)rows <= elapsed[rows - 1] / interval_s + 2);
    /* At fixed moments, however late one of them was. */
    size_t prompt = 0;
    for (size_t i = 0; i + 1 < rows; i++) {
        prompt += fmod(elapsed[i], interval_s) < 0.01;
        assert_true(elapsed[i + 1] > elapsed[i]);
    }
    assert_true(prompt > (rows - 1) / 2);
    double seconds = elapsed[rows - 1];
    assert_true(seconds >= 0.53);
    assert_true(fabs(strtod(last[1], NULL) - 7) < 0.5);

    /* Whose counter is taken to have something new every 100 ms. */
    assert_true(fabs(strtod(last[3], NULL) - 400 * seconds) < 80 * seconds);
    assert_true(fabs(strtod(last[4], NULL)) < 1e-9 && last[4][0]);
    assert_string_equal(last[5], "54");
    assert_string_equal(last[6], "0.5");
    assert_string_equal(last[7], "61");
    assert_string_equal(last[8], "400");
    assert_string_equal(last[9], "measured");
    assert_string_equal(last[11], "simulated");
    assert_true(fabs(strtod(last[14], NULL) - 300 * seconds) < 60 * seconds);
    assert_string_equal(last[15], "0.75");
    assert_string_equal(last[21], "100");

    /* Again: the file is there, and the mode says that it may not be. */
    assert_int_equal(wm_meter_run(meter, path, 50000000, NULL), WM_EEXIST);
    check_close(meter, 0);
}

/* A counter that begins to move late: its rows are not held to the estimate of before. */
static void test_run_from_estimate_to_counter(void **state)
{
    const struct wm_meter_options options = { .cpu_watts = "500:600" };
    char path[300], last[MAX_CELLS][40];
    double elapsed[MAX_ROWS];

    snprintf(path, sizeof(path), "%s/rows.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    assert_int_equal(wm_meter_run(meter, path, 50000000, NULL), WM_OK);
    sleep_s(0.2);
    spend(*state, 7, 0.2);
    assert_int_equal(wm_meter_halt(meter, NULL), WM_OK);
    char *text = read_file(path);
    assert_non_null(strstr(text, "estimated"));
    free(text);
    check_rows(path, true, 15, elapsed, MAX_ROWS, last);
    if (fabs(strtod(last[1], NULL) - 7) > 0.5)
        fail_msg("%s J", last[1]);
    check_close(meter, 0);
}

static void test_run_in_seed_format(void **state)
{
    const struct wm_meter_options options = { .seed_format = true,
                                              .mode = WM_RECORD_APPEND };
    char path[300], last[MAX_CELLS][40];
    double elapsed[MAX_ROWS];

    make_gpus(*state, "{\"gpus\": [{\"power\": 360, \"utilization\": 0.75, "
                      "\"temperature\": 61}]}");
    add_cpu_sensor(*state);
    snprintf(path, sizeof(path), "%s/rows.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wm_meter_run(meter, path, 200000000, NULL), WM_OK);
        sleep_s(0.402); /* the last row comes right after another */
        assert_int_equal(wm_meter_halt(meter, NULL), WM_OK);
    }
    check_close(meter, 0);

    size_t rows = check_rows(path, false, 8, elapsed, MAX_ROWS, last);
    assert_true(rows >= 4 && rows <= 6);
    double seconds = elapsed[rows - 1];
    assert_string_equal(last[1], ""); /* the package's counter did not move */
    assert_string_equal(last[2], "0");
    assert_string_equal(last[3], "54");
    assert_true(fabs(strtod(last[4], NULL) - seconds * 1e-4) < 0.2e-4 * seconds);
    assert_string_equal(last[5], "75");
    assert_string_equal(last[6], "61");
    assert_string_equal(last[7], "360");
}

static void test_run_without_sensors(void **state)
{
    char path[300], last[MAX_CELLS][40];
    double elapsed[MAX_ROWS];

    unsetenv("FAKE_NVML_SCENARIO");
    snprintf(path, sizeof(path), "%s/rows.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(NULL);
    assert_int_equal(wm_meter_run(meter, path, 3600000000000, NULL), WM_OK);

    /* The close halts it, and does not wait for the hour. */
    check_close(meter, 0);
    assert_int_equal(check_rows(path, true, 12, elapsed, MAX_ROWS, last), 1);
    for (size_t i = 1; i < 12; i++) {
        if (i != 4)
            assert_string_equal(last[i], "");
    }
}

struct worker {
    struct wm_meter *meter;
    pthread_t thread;
    uint64_t given; /* by the thread before */
    int failures;
};

enum { THREADS = 6, TURNS = 60 };

static void *work(void *context)
{
    struct worker *worker = context;
    struct wm_meter_reading cost;
    uint64_t outer, inner;

    worker->failures += wm_meter_stop(worker->meter, worker->given, &cost, NULL, NULL) < 0;
    for (int i = 0; i < TURNS; i++) {
        worker->failures += wm_meter_start(worker->meter, "outer", &outer, NULL) < 0;
        worker->failures += wm_meter_start(worker->meter, "inner", &inner, NULL) < 0;
        worker->failures += wm_meter_stop(worker->meter, outer, &cost, NULL, NULL) < 0;
        worker->failures += wm_meter_stop(worker->meter, inner, &cost, NULL, NULL) < 0;
        worker->failures += cost.elapsed_s < 0;
    }
    return NULL;
}

static void test_threads(void **state)
{
    char path[300];
    const struct wm_meter_options options = { .snippets = path, .interval_ns = 2000000 };
    struct worker workers[THREADS];

    make_gpus(*state, "{\"gpus\": [{\"power\": 300}, {\"energy\": {\"mode\": "
                      "\"absent\"}}]}");
    snprintf(path, sizeof(path), "%s/threads.csv", (const char *)*state);
    struct wm_meter *meter = open_meter(&options);
    assert_int_equal(wm_meter_run(meter, path_in(*state, "rows.csv"), 3000000, NULL),
                     WM_OK);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker) { .meter = meter, .given = start(meter, "given") };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failures, 0);
    }
    check_close(meter, 0);
    assert_int_equal(lines_of(path), 1 + THREADS * (1 + 2 * TURNS));
}

static void test_many(void **state)
{
    enum { OPEN = 5000 };
    static uint64_t ids[OPEN];
    struct wm_meter *meter = open_meter(NULL);
    (void)state;

    for (size_t i = 0; i < OPEN; i++)
        ids[i] = start(meter, "one of many");
    for (size_t i = 0; i < OPEN; i++)
        stop(meter, ids[(i * 7) % OPEN]);
    check_close(meter, 0);
}

/* With nothing to read, it is the meter itself that is tried. */
static void test_a_million(void **state)
{
    struct wm_meter *meter = open_meter(NULL);
    uint64_t last = 0;
    (void)state;

    for (int i = 0; i < 1000000; i++) {
        uint64_t id = 0;
        if (wm_meter_start(meter, "again", &id, NULL) < 0 || id == last ||
            wm_meter_stop(meter, id, NULL, NULL, NULL) < 0)
            fail_msg("snippet %d", i);
        last = id;
    }
    check_close(meter, 0);
}

static void test_threads_that_cannot_be_made(void **state)
{
    struct wm_meter *meter = open_meter(NULL);
    struct wm_error err = { 0 };
    uint64_t id = 0;
    char path[300];

    snprintf(path, sizeof(path), "%s/rows.csv", (const char *)*state);
    test_fail_threads(true);
    assert_int_equal(wm_meter_start(meter, "x", &id, &err), WM_EIO);
    assert_int_equal(id, 0);
    assert_true(strlen(err.text) > 0);
    assert_int_equal(wm_meter_run(meter, path, 1000000, &err), WM_EIO);
    test_fail_threads(false);
    stop(meter, start(meter, "x"));
    test_fail_threads(true);
    assert_int_equal(wm_meter_run(meter, path, 1000000, &err), WM_EIO);
    test_fail_threads(false);

    /* Nothing is left of it. */
    assert_int_equal(access(path, F_OK), -1);
    check_close(meter, 0);
}

/* Tries every allocation of a meter's life in turn. */
static void test_out_of_memory(void **state)
{
    char path[300], rows[300];
    const struct wm_meter_options options = { .snippets = path };
    bool is_through = false;

    snprintf(path, sizeof(path), "%s/snippets.csv", (const char *)*state);
    snprintf(rows, sizeof(rows), "%s/rows.csv", (const char *)*state);
    for (long n = 0; !is_through; n++) {
        struct wm_meter *meter = NULL;
        struct wm_error err = { 0 };
        uint64_t id;

        assert_true(n < 1000);
        test_fail_allocation(n);
        int status = wm_meter_open(&options, &meter, &err);
        if (status == WM_OK)
            status = wm_meter_start(meter, "name", &id, &err);
        if (status == WM_OK)
            status = wm_meter_run(meter, rows, 1000000, &err);
        is_through = status == WM_OK && test_fail_allocation(-1) <= n;
        test_fail_allocation(-1);
        if (status != WM_OK)
            assert_true(status == WM_ENOMEM || status == WM_EIO);

        /* A source without memory for its channels is one that is not there. */
        if (meter)
            assert_true(wm_meter_close(meter, NULL) >= 0);
        unlink(path);
        unlink(rows);
    }
}

UNIT(meter)
{
#define ON_RAPL(test) cmocka_unit_test_setup_teardown(test, make_rapl_machine, clean_up)
#define ON_NOTHING(test) cmocka_unit_test_setup_teardown(test, make_machine, clean_up)
    const struct CMUnitTest tests[] = {
        ON_RAPL(test_counters),
        ON_RAPL(test_nested_and_overlapping),
        ON_RAPL(test_counter_that_runs_over),
        ON_RAPL(test_too_short_for_the_sensor),
        ON_NOTHING(test_machine_without_sensors),
        ON_NOTHING(test_estimate),
        ON_RAPL(test_estimate_beside_counters),
        ON_RAPL(test_estimate_beside_a_pause),
        ON_NOTHING(test_estimated_memory),
        ON_NOTHING(test_apu),
        ON_NOTHING(test_integrated_gpu),
        ON_NOTHING(test_sensor_that_sees_a_part),
        ON_NOTHING(test_gpus),
        ON_NOTHING(test_uncertainty_of_a_sum),
        ON_NOTHING(test_short_burst),
        ON_NOTHING(test_sum_of_short_snippets),
        ON_NOTHING(test_estimate_of_short_snippets),
        ON_NOTHING(test_interval_checks_the_counter),
        ON_NOTHING(test_gpu_that_is_lost),
        ON_NOTHING(test_driver_that_hangs),
        ON_NOTHING(test_choice_of_gpus),
        ON_NOTHING(test_wrong_options),
        ON_RAPL(test_wrong_calls),
        ON_RAPL(test_child_of_a_fork),
        ON_RAPL(test_snippet_file),
        ON_RAPL(test_seed_format),
        ON_NOTHING(test_names),
        ON_RAPL(test_files),
        ON_RAPL(test_disk_that_is_full),
        ON_RAPL(test_run),
        ON_RAPL(test_run_from_estimate_to_counter),
        ON_RAPL(test_run_in_seed_format),
        ON_NOTHING(test_run_without_sensors),
        ON_RAPL(test_threads),
        ON_RAPL(test_many),
        ON_NOTHING(test_a_million),
        ON_RAPL(test_threads_that_cannot_be_made),
        ON_RAPL(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
