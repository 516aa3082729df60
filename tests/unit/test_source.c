/* SPDX-License-Identifier: Apache-2.0 */
/* test_source.c - what is the same for all sources: the table, the
 * configuration and its environment, and the rules of every call. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/source_ops.h"
#include "wattmeter/source.h"
#include "wattmeter/version.h"

static void test_table(void **state)
{
    static const char *const expected[] = { "host", "tree", "hwmon",   "rapl",
                                            "nvml", "drm",  "battery", "estimate" };
    size_t count = 0, found = 0;
    const char *name;
    (void)state;

    for (; (name = wm_source_name(count)) != NULL; count++) {
        print_message("  %s\n", name);
        assert_non_null(wm_source_summary(name));
        assert_null(strchr(wm_source_summary(name), '\n'));
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(name, wm_source_name(i));
        for (size_t i = 0; i < ARRAY_LEN(expected); i++)
            found += strcmp(name, expected[i]) == 0;
    }
    assert_int_equal(found, ARRAY_LEN(expected));
    assert_null(wm_source_name(count + 1));
    assert_null(wm_source_name((size_t)-1));
}

static void test_unknown(void **state)
{
    static const char *const names[] = { "nvlm", "", "Host", "host ", "hos" };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        assert_null(wm_source_summary(names[i]));
        assert_int_equal(wm_source_open(names[i], NULL, &source, NULL), WM_EINVAL);
        assert_int_equal(wm_source_open(names[i], NULL, &source, &err), WM_EINVAL);
        assert_int_equal(err.status, WM_EINVAL);
        assert_non_null(strstr(err.text, "there is no source called '"));
        assert_null(source);
    }
}

/* What the configuration says comes first, then the environment. */
static void test_configuration(void **state)
{
    enum { INTEL, AMD, NONE };
    static const char *const trees[] = {
        [INTEL] = "tests/data/sys/intel-2-sockets",
        [AMD] = "tests/data/sys/amd-threadripper",
    };
    static const struct {
        const char *what;
        int environment, config;
        const char *device;
    } cases[] = {
        { "only the environment", INTEL, NONE, "coretemp.0/Package id 0" },
        { "only the configuration", NONE, AMD, "0000:00:18.3/Tdie" },
        { "both", INTEL, AMD, "0000:00:18.3/Tdie" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source_config config = { 0 };
        struct wm_source *source = NULL;
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        unsetenv("WATTMETER_SYSFS");
        if (cases[i].environment != NONE)
            setenv("WATTMETER_SYSFS", test_source_path(trees[cases[i].environment]), 1);
        if (cases[i].config != NONE)
            config.sysfs = test_source_path(trees[cases[i].config]);
        if (wm_source_open("hwmon", &config, &source, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(wm_source_channel(source, 0)->device, cases[i].device);
        wm_source_close(source);
    }
    unsetenv("WATTMETER_SYSFS");
}

static void test_procfs_of_environment(void **state)
{
    struct wm_source *source = NULL;
    struct wm_reading readings[6];
    (void)state;

    setenv("WATTMETER_PROCFS", test_source_path("tests/data/proc/vm-2-cores"), 1);
    assert_int_equal(wm_source_open("host", NULL, &source, NULL), WM_OK);
    unsetenv("WATTMETER_PROCFS");
    assert_int_equal(wm_source_channel_count(source), ARRAY_LEN(readings));
    assert_int_equal(wm_source_read(source, readings, ARRAY_LEN(readings), NULL), WM_OK);
    assert_true(readings[2].value == 24684084.0 * 1024);
    wm_source_close(source);
}

static void test_calls(void **state)
{
    static const struct wm_gpu_process nobody;
    const struct wm_gpu_process *processes = &nobody;
    struct wm_source_config config = {
        .procfs = test_source_path("tests/data/proc/vm-2-cores"),
    };
    struct wm_source *source = NULL;
    struct wm_reading readings[7] = { 0 };
    struct wm_error err = { 0 };
    (void)state;

    assert_int_equal(wm_source_open("host", &config, &source, &err), WM_OK);
    assert_int_equal(wm_source_read(source, readings, 5, &err), WM_EINVAL);
    assert_string_equal(err.text, "host has 6 channels, not 5");
    assert_int_equal(wm_source_read(source, readings, 7, NULL), WM_EINVAL);
    for (size_t i = 0; i < ARRAY_LEN(readings); i++)
        assert_int_equal(readings[i].state, WM_READING_NONE);

    /* What a backend leaves out has an answer all the same. */
    assert_null(wm_source_detail(source));
    assert_int_equal(wm_source_gpu_processes(source, &processes), 0);
    assert_int_equal(wm_source_device_count(source), 0);
    wm_source_close(source);
    wm_source_close(NULL);
}

static void test_version(void **state)
{
    (void)state;
    assert_string_equal(wm_version(), WM_VERSION);
}

UNIT(source)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),         cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_configuration), cmocka_unit_test(test_procfs_of_environment),
        cmocka_unit_test(test_calls),         cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
