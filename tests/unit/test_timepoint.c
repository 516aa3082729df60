/* SPDX-License-Identifier: Apache-2.0 */
/* test_timepoint.c - gpu_tracker's 21 measurements out of made-up ticks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_timepoint.h"
#include "record/run/record_run.h"
#include "test.h"

#define MS INT64_C(1000000)

static const struct wm_run eight_cores = {
    .core_count = 8,
    .expected_cores = 4,
    .gpu_count = 2,
    .expected_gpu_count = 2,
    .anchor_ns = 1000 * MS,
    .anchor_unix_ns = INT64_C(1700000000000000000),
};

static struct wm_channel channel(enum wm_device_kind device_kind, const char *label,
                                 const char *metric)
{
    return (struct wm_channel) {
        .source = "test",
        .device = label,
        .label = label,
        .metric = metric,
        .unit = "",
        .device_kind = device_kind,
        .period_ns =
            device_kind == WM_DEVICE_HOST && strcmp(metric, "cpu_time") == 0 ? 10 * MS : 0,
    };
}

static struct wm_reading ok(int64_t when_ms, double value)
{
    return (struct wm_reading) { when_ms * MS, value, WM_READING_OK };
}

/* NAN: it is not known. */
static void assert_known(struct wm_known value, double expected)
{
    if (value.known == isnan(expected) ||
        !(fabs(value.number - (value.known ? expected : 0)) < 1e-9))
        fail_msg("%d %g is not %g", value.known, value.number, expected);
}

static void assert_point(const struct wm_timepoint *point, size_t measurement,
                         double expected)
{
    assert_known(wm_timepoint_value(point, measurement), expected);
}

static void test_every_name(void **state)
{
    (void)state;
    assert_string_equal(wm_measurement_name(WM_MAIN_RAM), "main_ram");
    assert_string_equal(wm_measurement_name(WM_CPU_COMBINED_HARDWARE),
                        "cpu_combined_hardware_utilization_percent");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        assert_non_null(wm_measurement_name((enum wm_measurement)i));
}

/* Each measurement has its own channel, and no other moves it. */
static void test_whole_tick(void **state)
{
    const struct wm_channel channels[] = {
        channel(WM_DEVICE_TREE, "main", "memory_total"),
        channel(WM_DEVICE_TREE, "descendants", "memory_total"),
        channel(WM_DEVICE_TREE, "tree", "memory_total"),
        channel(WM_DEVICE_HOST, "host", "memory_used"),
        channel(WM_DEVICE_TREE, "main", "gpu_memory"),
        channel(WM_DEVICE_TREE, "descendants", "gpu_memory"),
        channel(WM_DEVICE_TREE, "tree", "gpu_memory"),
        channel(WM_DEVICE_GPU, "gpu0", "memory_used"),
        channel(WM_DEVICE_GPU, "gpu1", "memory_used"),
        channel(WM_DEVICE_GPU, "gpu0", "utilization"),
        channel(WM_DEVICE_GPU, "gpu1", "utilization"),
        channel(WM_DEVICE_TREE, "main", "threads"),
        channel(WM_DEVICE_TREE, "descendants", "threads"),
        channel(WM_DEVICE_TREE, "tree", "threads"),
        channel(WM_DEVICE_HOST, "host", "cpu_time"),
        channel(WM_DEVICE_TREE, "main", "cpu_time"),
        channel(WM_DEVICE_TREE, "descendants", "cpu_time"),
        channel(WM_DEVICE_TREE, "tree", "cpu_time"),
        channel(WM_DEVICE_HOST, "host", "memory_total"),
        channel(WM_DEVICE_GPU, "gpu0", "memory_total"),
        channel(WM_DEVICE_GPU, "gpu1", "memory_total"),
        channel(WM_DEVICE_CPU, "cpu0", "cpu_time"),
        channel(WM_DEVICE_GPU, "gpu0", "tree_memory_used"),
    };
    static const double first[] = { 1,  2,  3,   4,  5,  6,  7,  8,  9,  0.5, 0.25, 10,
                                    11, 12, 100, 10, 20, 30, 64, 32, 16, 5,   6 };
    static const double expected[WM_MEASUREMENT_COUNT] = {
        1,  2,  3,   4,  5,   6,  7,  17,   75,  37.5, 10,
        11, 12, 400, 50, 100, 25, 50, 12.5, 150, 37.5,
    };
    enum { COUNT = ARRAY_LEN(channels) };
    struct wm_timepoint_builder *builder = NULL;
    struct wm_timepoint point;
    struct wm_reading readings[COUNT];
    struct wm_tick tick = { 1000 * MS, readings, COUNT };
    struct wm_known ram, gpu_ram;
    (void)state;

    assert_int_equal(
        wm_timepoint_builder_new(&eight_cores, channels, COUNT, &builder, NULL), WM_OK);
    for (size_t i = 0; i < COUNT; i++)
        readings[i] = ok(1000, first[i]);
    assert_false(wm_timepoint_next(builder, &tick, &point));

    /* The tick is late by 50 ms, the readings are not. */
    for (size_t i = 0; i < COUNT; i++)
        readings[i].when_ns = 1100 * MS;
    readings[14].value += 0.4;
    readings[15].value += 0.1;
    readings[16].value += 0.05;
    readings[17].value += 0.15;
    readings[21].value += 0.1;
    tick.when_ns = 1150 * MS;
    assert_true(wm_timepoint_next(builder, &tick, &point));
    assert_true(point.when_ns == 1150 * MS);
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        print_message("  %s\n", wm_measurement_name((enum wm_measurement)i));
        assert_point(&point, i, expected[i]);
    }
    wm_timepoint_capacities(builder, &tick, &ram, &gpu_ram);
    assert_known(ram, 64);
    assert_known(gpu_ram, 48);
    assert_true(
        fabs(wm_timepoint_unix_seconds(&eight_cores, tick.when_ns) - 1700000000.15) < 1e-6);
    wm_timepoint_builder_free(builder);
}

/* The rate of one counter over several ticks. A tick without a reading has
 * NAN for its time. */
static void test_rates(void **state)
{
    enum { TICKS = 8 };
    static const struct {
        const char *what;
        enum wm_device_kind device_kind;
        const char *label;
        struct {
            double when_ms, value, percent;
        } ticks[TICKS];
    } cases[] = {
        { "back to back",
          WM_DEVICE_TREE,
          "main",
          { { 0, 5, 0 }, { 100, 5.1, 100 }, { 150, 5.1, 0 }, { 250, 5.3, 200 } } },
        { "a reading is missing: the next window is longer",
          WM_DEVICE_TREE,
          "main",
          { { 0, 5, 0 }, { 100, 5.1, 100 }, { NAN, 0, NAN }, { 300, 5.2, 50 } } },
        { "the first readings are missing",
          WM_DEVICE_TREE,
          "main",
          { { NAN, 0, 0 }, { NAN, 0, NAN }, { 200, 5, NAN }, { 300, 5.1, 100 } } },
        { "set back: nobody knows what that window used",
          WM_DEVICE_TREE,
          "main",
          { { 0, 5, 0 }, { 100, 5.1, 100 }, { 200, 1, NAN }, { 300, 1.1, 100 } } },
        { "read at the same time again",
          WM_DEVICE_TREE,
          "main",
          { { 0, 5, 0 }, { 100, 5.1, 100 }, { 100, 5.1, 100 }, { 200, 5.3, 200 } } },
        { "the clocks are read a moment apart: no more than all cores",
          WM_DEVICE_TREE,
          "main",
          { { 0, 5, 0 }, { 100, 5.801, 800 }, { 200, 6.6, 799 }, { 201, 7, 800 } } },
        { "steps: nor of the host",
          WM_DEVICE_HOST,
          "host",
          { { 0, 5, 0 }, { 100, 5.81, 800 } } },
        { "steps: the last rate holds until the window is long enough",
          WM_DEVICE_HOST,
          "host",
          { { 0, 5, 0 },
            { 10, 5.01, NAN },
            { 20, 5.03, NAN },
            { 30, 5.03, 100 },
            { 40, 5.05, 100 },
            { 60, 5.06, 100 },
            { 61, 5.062, 100 },
            { 90, 5.12, 200 } } },
        { "steps: a wait that is long enough at once",
          WM_DEVICE_HOST,
          "host",
          { { 0, 5, 0 }, { 100, 5.2, 200 }, { 110, 5.2, 200 }, { 200, 5.2, 0 } } },
        { "steps: set back within a window, unseen at its ends",
          WM_DEVICE_HOST,
          "host",
          { { 0, 1, 0 },
            { 10, 100, NAN },
            { 20, 2, NAN },
            { 40, 2.01, NAN },
            { 50, 2.03, 100 } } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_channel counter =
            channel(cases[i].device_kind, cases[i].label, "cpu_time");
        bool host = cases[i].device_kind == WM_DEVICE_HOST;
        size_t sum = host ? WM_CPU_SYSTEM_SUM : WM_CPU_MAIN_SUM;
        struct wm_timepoint_builder *builder = NULL;
        struct wm_timepoint point;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(
            wm_timepoint_builder_new(&eight_cores, &counter, 1, &builder, NULL), WM_OK);
        for (size_t n = 0; n < TICKS && (n == 0 || cases[i].ticks[n].value != 0 ||
                                         isnan(cases[i].ticks[n].when_ms));
             n++) {
            double when_ms = cases[i].ticks[n].when_ms;
            struct wm_reading reading = { 0, 99, WM_READING_FAILED };
            if (!isnan(when_ms))
                reading = ok((int64_t)when_ms, cases[i].ticks[n].value);
            struct wm_tick tick = { (int64_t)n * 100 * MS, &reading, 1 };
            assert_int_equal(wm_timepoint_next(builder, &tick, &point), n > 0);
            if (n == 0)
                continue;
            assert_point(&point, sum, cases[i].ticks[n].percent);
            assert_point(&point, sum + 1, cases[i].ticks[n].percent / (host ? 8 : 4));
        }
        wm_timepoint_builder_free(builder);
    }
}

/* What cannot be known is not 0, and what is not there is. */
static void test_gpus(void **state)
{
    static const struct {
        const char *what;
        int gpu_count, expected;
        size_t with_memory, with_utilization, fail;
        double memory, sum, hardware, tree, capacity;
    } cases[] = {
        { "no GPU at all", 0, 0, 0, 0, 9, 0, 0, 0, 0, 0 },
        { "none chosen", 4, 0, 0, 0, 9, 0, 0, 0, 0, 0 },
        { "chosen, but nothing answers", 2, 2, 0, 0, 9, NAN, NAN, NAN, NAN, NAN },
        { "two", 2, 2, 2, 2, 9, 20, 100, 50, NAN, NAN },
        { "one of four", 4, 1, 1, 1, 9, 10, 50, 50, NAN, NAN },
        { "two, and one has no utilization", 2, 2, 2, 1, 9, 20, 50, 25, NAN, NAN },
        { "two, and one fails", 2, 2, 2, 2, 1, NAN, 100, 50, NAN, NAN },
        { "their number is not known", 0, 0, 2, 2, 9, 20, 100, 50, NAN, NAN },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_run run = { .gpu_count = cases[i].gpu_count,
                              .expected_gpu_count = cases[i].expected };
        struct wm_channel channels[4];
        struct wm_reading readings[4];
        struct wm_timepoint_builder *builder = NULL;
        struct wm_timepoint point;
        size_t count = 0;
        struct wm_known ram, gpu_ram;

        print_message("  %s\n", cases[i].what);
        for (size_t n = 0; n < cases[i].with_memory; n++)
            channels[count++] = channel(WM_DEVICE_GPU, "gpu", "memory_used");
        for (size_t n = 0; n < cases[i].with_utilization; n++)
            channels[count++] = channel(WM_DEVICE_GPU, "gpu", "utilization");
        for (size_t n = 0; n < count; n++)
            readings[n] = ok(1, n < cases[i].with_memory ? 10 : 0.5);
        if (cases[i].fail < count)
            readings[cases[i].fail].state = WM_READING_FAILED;

        struct wm_tick tick = { 1, readings, count };
        assert_int_equal(wm_timepoint_builder_new(&run, channels, count, &builder, NULL),
                         WM_OK);
        wm_timepoint_next(builder, &tick, &point);
        assert_true(wm_timepoint_next(builder, &tick, &point));
        assert_point(&point, WM_SYSTEM_GPU_RAM, cases[i].memory);
        assert_point(&point, WM_GPU_SUM_UTILIZATION, cases[i].sum);
        assert_point(&point, WM_GPU_HARDWARE_UTILIZATION, cases[i].hardware);
        assert_point(&point, WM_MAIN_GPU_RAM, cases[i].tree);
        assert_point(&point, WM_COMBINED_GPU_RAM, cases[i].tree);
        wm_timepoint_capacities(builder, &tick, &ram, &gpu_ram);
        assert_known(gpu_ram, cases[i].capacity);
        assert_known(ram, NAN);
        assert_point(&point, WM_MAIN_RAM, NAN);
        assert_point(&point, WM_CPU_SYSTEM_SUM, NAN);
        wm_timepoint_builder_free(builder);
    }
}

/* A channel is found by all of its names. */
static void test_look_alikes(void **state)
{
    const struct wm_channel channels[] = {
        channel(WM_DEVICE_CPU, "main", "memory_total"),
        channel(WM_DEVICE_TREE, "main2", "memory_total"),
        channel(WM_DEVICE_TREE, "main", "memory"),
        channel(WM_DEVICE_GPU, "host", "cpu_time"),
        channel(WM_DEVICE_CPU, "host", "memory_used"),
    };
    struct wm_reading readings[ARRAY_LEN(channels)];
    struct wm_tick tick = { 1, readings, ARRAY_LEN(channels) };
    struct wm_timepoint_builder *builder = NULL;
    struct wm_timepoint point;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(channels); i++)
        readings[i] = ok(1, 1);
    assert_int_equal(wm_timepoint_builder_new(&eight_cores, channels, ARRAY_LEN(channels),
                                              &builder, NULL),
                     WM_OK);
    wm_timepoint_next(builder, &tick, &point);
    assert_true(wm_timepoint_next(builder, &tick, &point));
    for (size_t i = 0; i < WM_MEASUREMENT_COUNT; i++)
        assert_point(&point, i, NAN);
    wm_timepoint_builder_free(builder);
}

/* Ticks may be taken again from where a copy was made. */
static void test_copy(void **state)
{
    const struct wm_channel counter = channel(WM_DEVICE_TREE, "main", "cpu_time");
    struct wm_timepoint_builder *builder = NULL, *before = NULL;
    struct wm_reading reading;
    struct wm_tick tick = { 0, &reading, 1 };
    struct wm_timepoint point, again;
    (void)state;

    assert_int_equal(wm_timepoint_builder_new(&eight_cores, &counter, 1, &builder, NULL),
                     WM_OK);
    assert_int_equal(wm_timepoint_builder_new(&eight_cores, &counter, 1, &before, NULL),
                     WM_OK);
    reading = ok(0, 1);
    wm_timepoint_next(builder, &tick, &point);
    wm_timepoint_builder_copy(before, builder);
    reading = ok(100, 1.1);
    assert_true(wm_timepoint_next(builder, &tick, &point));
    wm_timepoint_builder_copy(builder, before);
    assert_true(wm_timepoint_next(builder, &tick, &again));
    assert_point(&point, WM_CPU_MAIN_SUM, 100);
    assert_point(&again, WM_CPU_MAIN_SUM, 100);
    wm_timepoint_builder_free(builder);
    wm_timepoint_builder_free(before);
    wm_timepoint_builder_free(NULL);
}

static void test_no_memory(void **state)
{
    struct wm_timepoint_builder *builder = NULL;
    struct wm_error err = { 0 };
    (void)state;

    test_fail_allocation(0);
    assert_int_equal(wm_timepoint_builder_new(&eight_cores, NULL, 0, &builder, &err),
                     WM_ENOMEM);
    test_fail_allocation(-1);
    assert_null(builder);
    assert_int_equal(err.status, WM_ENOMEM);
}

UNIT(timepoint)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name),  cmocka_unit_test(test_whole_tick),
        cmocka_unit_test(test_rates),       cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_look_alikes), cmocka_unit_test(test_copy),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
