/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_column.c - which column holds which channel. */
#include "record/record_column.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

#define CHANNEL(source_, device_, label_, metric_, unit_)                                  \
    {                                                                                      \
        .source = source_, .device = device_, .label = label_, .metric = metric_,          \
        .unit = unit_                                                                      \
    }

#define COUNTER(source_, device_, label_)                                                  \
    {                                                                                      \
        .source = source_, .device = device_, .label = label_, .metric = "energy",         \
        .unit = "J", .kind = WM_COUNTER                                                    \
    }

static void test_names(void **state)
{
    static const struct {
        const char *what;
        struct wm_channel channel;
        const char *value, *clock;
    } cases[] = {
        { "watts", CHANNEL("nvml", "GPU-1", "gpu0", "power", "W"), "gpu0_power_W",
          "gpu0_time_ns" },
        { "a ratio", CHANNEL("nvml", "GPU-1", "gpu0", "utilization", "ratio"),
          "gpu0_utilization_ratio", "gpu0_time_ns" },
        { "a count", CHANNEL("tree", "main", "main", "threads", "count"), "main_threads",
          "main_time_ns" },
        { "no unit", CHANNEL("tree", "main", "main", "threads", ""), "main_threads",
          "main_time_ns" },
        { "another unit", CHANNEL("x", "fan", "fan", "speed", "1/min"), "fan_speed_1_min",
          "fan_time_ns" },
        { "other characters", CHANNEL("x", "d", "a b\"c,d'\n\xc3\xa4", "m", "W"),
          "a_b_c_d_____m_W", "a_b_c_d_____time_ns" },
        { "no label", CHANNEL("x", "d", "", "power", "W"), "_power_W", "_time_ns" },
        { "gpu_tracker's names", CHANNEL("x", "d", "main", "ram", ""), "main_ram_2",
          "main_time_ns" },
        { "the tick's time", CHANNEL("x", "d", "time", "ns", ""), "time_ns_2",
          "time_time_ns" },
        { "more than PostgreSQL takes",
          CHANNEL("x", "d", "a_sensor_with_a_rather_long_label_that_goes_on_and_on_and_on",
                  "power", "W"),
          "a_sensor_with_a_rather_long_label_that_goes_on_and_on__31809004",
          "a_sensor_with_a_rather_long_label_that_goes_on_and_on__252e5d8a" },
        { "a reserved word in another case", CHANNEL("x", "d", "TIME", "ns", ""),
          "TIME_ns_2", "TIME_time_ns" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_columns columns;
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_columns_plan(&cases[i].channel, 1, NULL, 0, &columns, NULL),
                         WM_OK);
        assert_string_equal(columns.values[0], cases[i].value);
        assert_string_equal(columns.clocks[0], cases[i].clock);
        wm_columns_release(&columns);
    }
}

/* Different channels never share a column, and devices never a clock. */
static void test_collisions(void **state)
{
    static const struct wm_channel channels[] = {
        CHANNEL("tracker", "main", "main", "cpu_time", "s"),
        CHANNEL("tree", "main", "main", "memory_total", "B"),
        CHANNEL("tree", "main", "main", "threads", "count"),
        CHANNEL("nvml", "GPU-1", "gpu0", "power", "W"),
        CHANNEL("nvml", "GPU-2", "gpu0", "power", "W"),
        CHANNEL("nvml", "GPU-3", "GPU0", "power", "W"),
        CHANNEL("nvml", "GPU-3", "GPU0", "power", "W"),
        CHANNEL("nvml", "GPU-4", "gpu0_power_W", "2", ""),
    };
    static const char *const values[] = {
        "main_cpu_time_s", "main_memory_total_B", "main_threads",   "gpu0_power_W",
        "gpu0_power_W_2",  "GPU0_power_W_3",      "GPU0_power_W_4", "gpu0_power_W_2_2",
    };
    static const char *const clocks[] = {
        "main_time_ns",   "main_time_ns_2", "main_time_ns_2", "gpu0_time_ns",
        "gpu0_time_ns_2", "GPU0_time_ns_3", "GPU0_time_ns_3", "gpu0_power_W_time_ns",
    };
    struct wm_columns columns;
    (void)state;

    assert_int_equal(
        wm_columns_plan(channels, ARRAY_LEN(channels), NULL, 0, &columns, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(channels); i++) {
        assert_string_equal(columns.values[i], values[i]);
        assert_string_equal(columns.clocks[columns.clock_of[i]], clocks[i]);
    }
    assert_int_equal(columns.clock_count, 6);
    wm_columns_release(&columns);
}

/* A counter of joules has a clock of its own, unless it is all that its device has. */
static void test_clock_of_a_counter(void **state)
{
    static const struct wm_channel channels[] = {
        COUNTER("nvml", "GPU-1", "gpu0"),
        CHANNEL("nvml", "GPU-1", "gpu0", "power", "W"),
        CHANNEL("nvml", "GPU-1", "gpu0", "temperature", "celsius"),
        CHANNEL("x", "d", "board", "power", "W"),
        COUNTER("x", "d", "board"),
        COUNTER("rapl", "package-0", "package0"),
        COUNTER("rapl", "package-1", "package1"),
    };
    static const char *const clocks[] = {
        "gpu0_energy_time_ns",  "gpu0_time_ns",     "gpu0_time_ns",     "board_time_ns",
        "board_energy_time_ns", "package0_time_ns", "package1_time_ns",
    };
    struct wm_reading readings[ARRAY_LEN(channels)] = {
        [0] = { 1, 0, WM_READING_OK },
        [2] = { 2, 0, WM_READING_OK },
    };
    struct wm_columns columns;
    int64_t when_ns = 0;
    (void)state;

    assert_int_equal(
        wm_columns_plan(channels, ARRAY_LEN(channels), NULL, 0, &columns, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(channels); i++)
        assert_string_equal(columns.clocks[columns.clock_of[i]], clocks[i]);
    assert_true(wm_columns_clock(&columns, 0, readings, &when_ns) && when_ns == 1);
    assert_true(wm_columns_clock(&columns, 1, readings, &when_ns) && when_ns == 2);
    assert_false(wm_columns_clock(&columns, 2, readings, &when_ns));
    wm_columns_release(&columns);
}

static void test_taken(void **state)
{
    static const struct wm_channel channels[] = {
        CHANNEL("nvml", "GPU-1", "gpu0", "power", "W"),
        CHANNEL("nvml", "GPU-2", "gpu1", "power", "W"),
        CHANNEL("nvml", "GPU-3", "gpu2", "power", "W"),
        CHANNEL("nvml", "GPU-4", "gpu3", "power", "W"),
    };
    static const char *const values[] = { "gpu0_power_W", "gpu1_power_W_2",
                                          "gpu2_power_W_2", "gpu3_power_W_3" };
    struct wm_taken_column taken[] = {
        { "gpu0_power_W", wm_column_owner("nvml", "GPU-1", "power", "W") },
        { "gpu0_time_ns", wm_column_owner("nvml", "GPU-1", "", "") },
        { "GPU1_POWER_W", wm_column_owner("nvml", "GPU-9", "power", "W") },
        { "gpu2_power_W", wm_column_owner("nvml", "GPU-8", "power", "W") },
        { "gpu2_power_W_2", wm_column_owner("nvml", "GPU-3", "power", "W") },
        { "gpu3_power_W", wm_column_owner("other", "GPU-4", "power", "W") },
        { "gpu3_power_W_2", wm_column_owner("nvml", "GPU-4", "power", "J") },
    };
    struct wm_columns columns;
    (void)state;

    assert_int_equal(wm_columns_plan(channels, ARRAY_LEN(channels), taken, ARRAY_LEN(taken),
                                     &columns, NULL),
                     WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(channels); i++)
        assert_string_equal(columns.values[i], values[i]);
    assert_string_equal(columns.clocks[0], "gpu0_time_ns");
    wm_columns_release(&columns);
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        free(taken[i].owner);
}

/* Two thousand channels of one name take no time to tell apart. */
static void test_all_alike(void **state)
{
    struct wm_channel *channels = calloc(WM_CHANNELS_MAX, sizeof(*channels));
    struct wm_columns columns;
    (void)state;

    assert_non_null(channels);
    for (size_t i = 0; i < WM_CHANNELS_MAX; i++)
        channels[i] = (struct wm_channel)CHANNEL("x", "d", "l", "m", "W");
    assert_int_equal(wm_columns_plan(channels, WM_CHANNELS_MAX, NULL, 0, &columns, NULL),
                     WM_OK);
    assert_string_equal(columns.values[WM_CHANNELS_MAX - 1], "l_m_W_2000");
    wm_columns_release(&columns);
    free(channels);
}

UNIT(record_column)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_clock_of_a_counter),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_all_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
