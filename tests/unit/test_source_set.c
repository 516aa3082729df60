/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_set.c - sources that are open together: which are in, whose channel is
 * which, and what a round reads. */
#include <stdio.h>
#include <string.h>

#include "base/base_error.h"
#include "source/set/source_set.h"
#include "test.h"

static char procfs[256], sysfs[256];

/* A machine with a sensor of the CPU's temperature, one of power, and nothing else. */
static struct wm_source_config make_machine(const char *dir)
{
    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
    test_write_file(dir, "proc/loadavg", "1.50 1.00 0.50 1/100 4711\n");
    test_write_file(dir, "sys/class/hwmon/hwmon0/name", "coretemp\n");
    test_write_file(dir, "sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
    test_write_file(dir, "sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    test_write_file(dir, "sys/class/power_supply/BAT0/type", "Battery\n");
    test_write_file(dir, "sys/class/power_supply/BAT0/status", "Discharging\n");
    test_write_file(dir, "sys/class/power_supply/BAT0/power_now", "9876000\n");
    return (struct wm_source_config) { .procfs = procfs, .sysfs = sysfs, .nvml = "/no" };
}

static struct wm_source_set *new_set(const struct wm_source_config *config)
{
    struct wm_source_set *set = NULL;

    assert_int_equal(wm_source_set_new(config, 0, &set, NULL), WM_OK);
    assert_int_equal(wm_source_set_count(set), 0);
    assert_int_equal(wm_source_set_channel_count(set), 0);
    return set;
}

static void test_opening(void **state)
{
    static const struct {
        const char *name;
        int status;
        size_t count; /* of sources in the set after it */
    } rows[] = {
        { "host", WM_OK, 1 },        { "host", WM_EEXIST, 1 },    { "rapl", WM_ENODEV, 1 },
        { "no such", WM_EINVAL, 1 }, { "", WM_EINVAL, 1 },        { "nvml", WM_ENODEV, 1 },
        { "battery", WM_OK, 2 },     { "battery", WM_EEXIST, 2 }, { "hwmon", WM_OK, 3 },
    };
    const struct wm_source_config config = make_machine(*state);
    struct wm_source_set *set = new_set(&config);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_error err = { 0 };
        print_message("  %s\n", rows[i].name);
        int status = wm_source_set_open(set, rows[i].name, &err);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(wm_source_set_count(set), rows[i].count);
        assert_true(status == WM_OK || err.text[0] != '\0');
    }
    assert_false(wm_source_set_has_cpu_energy(set));
    assert_null(wm_source_set_remark(set));
    assert_int_equal(wm_source_set_gpu_count(set).there, 0);

    wm_source_set_drop_last(set);
    assert_int_equal(wm_source_set_count(set), 2);
    assert_int_equal(wm_source_set_open(set, "hwmon", NULL), WM_OK);
    wm_source_set_close(set);
    wm_source_set_close(NULL);
}

static size_t find(const struct wm_source_set *set, const char *source, const char *metric)
{
    for (size_t i = 0; i < wm_source_set_channel_count(set); i++) {
        const struct wm_channel *channel = wm_source_set_channel(set, i);
        if (strcmp(channel->source, source) == 0 && strcmp(channel->metric, metric) == 0)
            return i;
    }
    fail_msg("%s has no %s", source, metric);
    return 0;
}

static void test_round(void **state)
{
    static const char *const names[] = { "hwmon", "battery", "host" };
    const struct wm_source_config config = make_machine(*state);
    struct wm_source_set *set = new_set(&config);
    struct wm_reading readings[64] = { { 0 } };
    size_t channels = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(wm_source_set_open(set, names[i], NULL), WM_OK);
        const struct wm_source_member *member = wm_source_set_member(set, i);
        assert_string_equal(member->name, names[i]);
        assert_int_equal(member->first_channel, channels);
        channels += wm_source_channel_count(member->source);
    }
    assert_int_equal(wm_source_set_channel_count(set), channels);
    assert_in_range(channels, 3, ARRAY_LEN(readings));

    test_fail_allocation(0);
    int64_t begun_ns = wm_source_set_begin(set, true);
    wm_source_set_collect(set, begun_ns, begun_ns, readings);
    assert_int_equal(test_fail_allocation(-1), 0);
    assert_float_equal(readings[find(set, "hwmon", "temperature")].value, 45, 1e-9);
    assert_float_equal(readings[find(set, "battery", "power")].value, 9.876, 1e-9);
    assert_float_equal(readings[find(set, "host", "load1")].value, 1.5, 1e-9);
    assert_null(wm_source_set_why(set, find(set, "battery", "power")));

    size_t memory = find(set, "host", "memory_used");
    assert_int_not_equal(readings[memory].state, WM_READING_OK);
    assert_non_null(strstr(wm_source_set_why(set, memory), "meminfo"));
    assert_true(readings[memory].when_ns >= begun_ns);
    assert_int_equal(wm_source_set_cpu_ns(set), 0);
    wm_source_set_close(set);
}

static void test_out_of_memory(void **state)
{
    const struct wm_source_config config = make_machine(*state);
    int status = WM_ENOMEM;

    for (long nth = 0; status != WM_OK; nth++) {
        struct wm_source_set *set = NULL;
        test_fail_allocation(nth);
        status = wm_source_set_new(&config, 0, &set, NULL);
        if (status == WM_OK)
            status = wm_source_set_open(set, "hwmon", NULL);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        wm_source_set_close(set);
        assert_true(nth < 200);
    }
}

UNIT(source_set)
{
#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_opening),
        IN_FOLDER(test_round),
        IN_FOLDER(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
