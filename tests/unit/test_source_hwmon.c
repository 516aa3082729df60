/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_hwmon.c - CPU temperatures from small trees that stand for /sys:
 * those of real machines under tests/data/sys, and broken ones made here. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wattmeter/source.h"

enum { MAX_SENSORS = 64 };

/* A sensor that a tree should offer; NULL device past the last. */
struct expected {
    const char *device;
    double celsius;
};

static struct wm_source *open_hwmon(const char *sysfs)
{
    const struct wm_source_config config = { .sysfs = sysfs };
    struct wm_source *source = NULL;
    struct wm_error err;

    if (wm_source_open("hwmon", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    assert_in_range(wm_source_channel_count(source), 1, MAX_SENSORS);
    return source;
}

static void read_all(struct wm_source *source, struct wm_reading *readings)
{
    size_t count = wm_source_channel_count(source);

    memset(readings, 0xff, count * sizeof(*readings));
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(readings[i].when_ns > 0);
        assert_int_equal(wm_source_why(source, i) == NULL,
                         readings[i].state == WM_READING_OK);
    }
}

static void check_tree(const char *sysfs, const struct expected *expected)
{
    struct wm_reading readings[MAX_SENSORS];
    struct wm_source *source = open_hwmon(sysfs);
    size_t count = 0;

    read_all(source, readings);
    for (; expected[count].device; count++) {
        const struct wm_channel *channel = wm_source_channel(source, count);
        char label[32];

        snprintf(label, sizeof(label), "cpu_package%zu", count);
        assert_string_equal(channel->source, "hwmon");
        assert_string_equal(channel->device, expected[count].device);
        assert_string_equal(channel->label, label);
        assert_string_equal(channel->metric, "temperature");
        assert_string_equal(channel->unit, "celsius");
        assert_int_equal(channel->device_kind, WM_DEVICE_CPU);
        assert_int_equal(channel->kind, WM_GAUGE);
        assert_int_equal(channel->origin, WM_MEASURED);
        assert_int_equal(readings[count].state, WM_READING_OK);
        assert_true(fabs(readings[count].value - expected[count].celsius) < 1e-9);
    }
    assert_int_equal(wm_source_channel_count(source), count);
    wm_source_close(source);
}

static void test_machines(void **state)
{
    static const struct {
        const char *tree;
        struct expected sensors[3];
        int64_t period_ns;
        const char *detail;
    } cases[] = {
        { "intel-2-sockets",
          { { "coretemp.0/Package id 0", 47 }, { "coretemp.1/Package id 1", 61 } },
          1000000000,
          "/class/hwmon/hwmon2/temp1_input and others" },
        { "amd-threadripper",
          { { "0000:00:18.3/Tdie", 50.25 }, { "0000:00:19.3/Tdie", 48.125 } },
          0,
          "/class/hwmon/hwmon1/temp2_input and others" },
        { "raspberry-pi",
          { { "cpu_thermal/temp1", 51.54 } },
          0,
          "/class/hwmon/hwmon0/temp1_input" },
        { "thermal-zones",
          { { "x86_pkg_temp", 63 }, { "x86_pkg_temp.1", 58 } },
          0,
          "/class/thermal/thermal_zone2/temp and others" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char relative[64];

        print_message("  %s\n", cases[i].tree);
        snprintf(relative, sizeof(relative), "tests/data/sys/%s", cases[i].tree);
        const char *sysfs = test_source_path(relative);
        check_tree(sysfs, cases[i].sensors);

        struct wm_source *source = open_hwmon(sysfs);
        const char *detail = wm_source_detail(source);
        assert_int_equal(wm_source_channel(source, 0)->period_ns, cases[i].period_ns);
        assert_string_equal(detail + strlen(sysfs), cases[i].detail);
        wm_source_close(source);
    }
}

struct file {
    const char *path, *text;
};

#define MAX_FILES 8

static void make_tree(const char *dir, const struct file *files)
{
    for (size_t i = 0; i < MAX_FILES && files[i].path; i++)
        test_write_file(dir, files[i].path, files[i].text);
}

#define HWMON(n, file) "class/hwmon/hwmon" n "/" file
#define ZONE(n, file) "class/thermal/thermal_zone" n "/" file

/* Which sensor is taken, in trees without the links of a real sysfs. */
static void test_choice(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
        struct expected sensors[3];
    } cases[] = {
        { "the package, though its number is higher",
          { { HWMON("0", "name"), "coretemp\n" },
            { HWMON("0", "temp2_label"), "Core 0\n" },
            { HWMON("0", "temp2_input"), "44000\n" },
            { HWMON("0", "temp10_label"), "Package id 0\n" },
            { HWMON("0", "temp10_input"), "47000\n" } },
          { { "coretemp/Package id 0", 47 } } },
        { "an old kernel's label",
          { { HWMON("0", "name"), "coretemp\n" },
            { HWMON("0", "temp1_label"), "Physical id 0\n" },
            { HWMON("0", "temp1_input"), "47000\n" } },
          { { "coretemp/Physical id 0", 47 } } },
        { "an old CPU without a package sensor",
          { { HWMON("0", "name"), "coretemp\n" },
            { HWMON("0", "temp3_label"), "Core 1\n" },
            { HWMON("0", "temp3_input"), "45000\n" },
            { HWMON("0", "temp2_label"), "Core 0\n" },
            { HWMON("0", "temp2_input"), "44000\n" } },
          { { "coretemp/Core 0", 44 } } },
        { "Tctl where there is no Tdie",
          { { HWMON("4", "name"), "k10temp\n" },
            { HWMON("4", "temp3_label"), "Tccd1\n" },
            { HWMON("4", "temp3_input"), "40000\n" },
            { HWMON("4", "temp1_label"), "Tctl\n" },
            { HWMON("4", "temp1_input"), "50125\n" } },
          { { "k10temp/Tctl", 50.125 } } },
        { "Tccd where there is neither",
          { { HWMON("4", "name"), "zenpower\n" },
            { HWMON("4", "temp4_label"), "Tccd2\n" },
            { HWMON("4", "temp4_input"), "41000\n" },
            { HWMON("4", "temp3_label"), "Tccd1\n" },
            { HWMON("4", "temp3_input"), "40000\n" } },
          { { "zenpower/Tccd1", 40 } } },
        { "an AMD CPU before Zen",
          { { HWMON("0", "name"), "k10temp\n" }, { HWMON("0", "temp1_input"), "31125\n" } },
          { { "k10temp/temp1", 31.125 } } },
        { "the CPU rather than the whole chip",
          { { HWMON("0", "name"), "soc_thermal\n" },
            { HWMON("0", "temp1_input"), "40000\n" },
            { HWMON("1", "name"), "cpu_thermal\n" },
            { HWMON("1", "temp1_input"), "45000\n" } },
          { { "cpu_thermal/temp1", 45 } } },
        { "hwmon rather than a zone",
          { { HWMON("0", "name"), "k10temp\n" },
            { HWMON("0", "temp1_input"), "31000\n" },
            { ZONE("0", "type"), "x86_pkg_temp\n" },
            { ZONE("0", "temp"), "99000\n" } },
          { { "k10temp/temp1", 31 } } },
        { "two of a name, in the order of their numbers",
          { { HWMON("10", "name"), "k10temp\n" },
            { HWMON("10", "temp1_input"), "32000\n" },
            { HWMON("9", "name"), "k10temp\n" },
            { HWMON("9", "temp1_input"), "31000\n" } },
          { { "k10temp/temp1", 31 }, { "k10temp/temp1.1", 32 } } },
        { "a zone with hyphens and capitals",
          { { ZONE("0", "type"), "acpitz\n" },
            { ZONE("0", "temp"), "20000\n" },
            { ZONE("3", "type"), "CPU-therm\n" },
            { ZONE("3", "temp"), "52500\n" } },
          { { "CPU-therm", 52.5 } } },
        { "one good sensor among broken ones",
          { { HWMON("0", "nothing"), "" },
            { HWMON("1", "name"), "\xff\xfe\n" },
            { HWMON("2", "name"), "" },
            { HWMON("3", "name/is/a/folder"), "" },
            { HWMON("4", "name"), "coretemp\n" },
            { HWMON("5", "name"), "coretemp\n" },
            { HWMON("5", "temp1_label"), "Package id 0 \xff\n" },
            { HWMON("5", "temp1_input"), "-10000" } },
          { { "coretemp/Package id 0 \xef\xbf\xbd", -10 } } },
        { "files that only look like sensors",
          { { HWMON("0", "name"), "k10temp\n" },
            { HWMON("0", "temp_input"), "1000\n" },
            { HWMON("0", "temp1_inputs"), "2000\n" },
            { HWMON("0", "temp-1_input"), "3000\n" },
            { HWMON("0", "temp99999999999999999999_input"), "4000\n" },
            { HWMON("0", "in1_input"), "5000\n" },
            { HWMON("0", "temp7_input"), "31000\n" } },
          { { "k10temp/temp7", 31 } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        check_tree(*state, cases[i].sensors);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_no_sensor(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
    } cases[] = {
        { "an empty tree", { { "kernel/notes", "" } } },
        { "empty classes",
          { { "class/hwmon/other", "" }, { "class/thermal/cooling", "" } } },
        { "files where folders should be",
          { { "class/hwmon", "" }, { "class/thermal", "" } } },
        { "a file where a sensor should be", { { "class/hwmon/hwmon0", "coretemp\n" } } },
        { "other devices",
          { { HWMON("0", "name"), "nvme\n" },
            { HWMON("0", "temp1_label"), "Composite\n" },
            { HWMON("0", "temp1_input"), "40000\n" },
            { ZONE("0", "type"), "acpitz\n" },
            { ZONE("0", "temp"), "27800\n" } } },
        { "names that are nearly right",
          { { HWMON("0", "name"), "coretemps\n" },
            { HWMON("0", "temp1_input"), "40000\n" },
            { HWMON("1", "name"), "coretem\n" },
            { HWMON("1", "temp1_input"), "40000\n" },
            { ZONE("0", "type"), "x86_pkg_temperature\n" },
            { ZONE("0", "temp"), "40000\n" },
            { ZONE("1", "type"), "x86_pkg\n" },
            { ZONE("1", "temp"), "40000\n" } } },
        { "a driver without sensors",
          { { HWMON("0", "name"), "coretemp\n" },
            { ZONE("0", "policy"), "step_wise\n" } } },
        { "a label without a value",
          { { HWMON("0", "name"), "coretemp\n" },
            { HWMON("0", "temp1_label"), "Package id 0\n" } } },
        { "labels that are another thing",
          { { HWMON("0", "name"), "coretemp\n" },
            { HWMON("0", "temp1_label"), "PCH\n" },
            { HWMON("0", "temp1_input"), "40000\n" },
            { HWMON("0", "temp2_input"), "40000\n" } } },
        { "a zone without a value", { { ZONE("0", "type"), "x86_pkg_temp\n" } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        const struct wm_source_config config = { .sysfs = *state };
        assert_int_equal(wm_source_open("hwmon", &config, &source, &err), WM_ENODEV);
        assert_null(source);
        assert_non_null(strstr(err.text, "no CPU temperature sensor"));
        assert_non_null(strstr(err.text, *state));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_long_path(void **state)
{
    char path[1024];
    const struct wm_source_config config = { .sysfs = path };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    (void)state;

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(wm_source_open("hwmon", &config, &source, &err), WM_EINVAL);
    assert_null(source);
}

/* Two packages; what happens to the first must not touch the second. */
static void test_values(void **state)
{
    static const struct {
        const char *text;
        enum wm_reading_state state;
        double celsius;
        const char *why;
    } steps[] = {
        { "45000\n", WM_READING_OK, 45, NULL },
        { "45125", WM_READING_OK, 45.125, NULL },
        { "0\n", WM_READING_OK, 0, NULL },
        { "-50000\n", WM_READING_OK, -50, NULL },
        { "200000\n", WM_READING_OK, 200, NULL },
        { "-50001\n", WM_READING_FAILED, 0, "-50001 millidegrees" },
        { "200001\n", WM_READING_FAILED, 0, "200001 millidegrees" },
        { "-274000\n", WM_READING_FAILED, 0, "-274000 millidegrees" },
        { "9223372036854775807\n", WM_READING_FAILED, 0, "millidegrees" },
        { "9223372036854775808\n", WM_READING_FAILED, 0, "is not a temperature" },
        { "", WM_READING_FAILED, 0, "'' is not a temperature" },
        { "\n", WM_READING_FAILED, 0, "'' is not a temperature" },
        { "N/A\n", WM_READING_FAILED, 0, "'N/A' is not a temperature" },
        { "45 C\n", WM_READING_FAILED, 0, "'45 C' is not a temperature" },
        { "45.1\n", WM_READING_FAILED, 0, "'45.1' is not a temperature" },
        { "0x30\n", WM_READING_FAILED, 0, "'0x30' is not a temperature" },
        { "\x7f\xff\x01\n", WM_READING_FAILED, 0, "is not a temperature" },
        { "45000 45000 45000 45000 45000 45000 45000 45000", WM_READING_FAILED, 0,
          "is not a temperature" },
        { "46000\n", WM_READING_OK, 46, NULL },
    };
    const char *dir = *state;
    struct wm_reading readings[MAX_SENSORS];

    test_write_file(dir, HWMON("0", "name"), "coretemp\n");
    test_write_file(dir, HWMON("0", "temp1_label"), "Package id 0\n");
    test_write_file(dir, HWMON("0", "temp1_input"), "45000\n");
    test_write_file(dir, HWMON("1", "name"), "coretemp\n");
    test_write_file(dir, HWMON("1", "temp1_label"), "Package id 1\n");
    test_write_file(dir, HWMON("1", "temp1_input"), "61000\n");
    struct wm_source *source = open_hwmon(dir);
    assert_int_equal(wm_source_channel_count(source), 2);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  step %zu\n", i);
        test_write_file(dir, HWMON("0", "temp1_input"), steps[i].text);
        test_fail_allocation(-1);
        read_all(source, readings);
        assert_int_equal(test_fail_allocation(-1), 0);
        assert_int_equal(readings[0].state, steps[i].state);
        if (steps[i].why)
            assert_non_null(strstr(wm_source_why(source, 0), steps[i].why));
        else
            assert_true(fabs(readings[0].value - steps[i].celsius) < 1e-9);
        assert_int_equal(readings[1].state, WM_READING_OK);
        assert_true(fabs(readings[1].value - 61) < 1e-9);
    }
    wm_source_close(source);
}

/* The file can be opened and then fails, as when a driver is unloaded. */
static void test_unreadable(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_SENSORS];

    test_write_file(dir, HWMON("0", "name"), "k10temp\n");
    test_write_file(dir, HWMON("0", "temp1_input/in/the/way"), "");
    struct wm_source *source = open_hwmon(dir);
    read_all(source, readings);
    assert_int_equal(readings[0].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 0), "temp1_input: Is a directory"));
    wm_source_close(source);
}

static void test_no_permission(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_SENSORS];
    char path[256];

    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    test_write_file(dir, HWMON("0", "name"), "k10temp\n");
    test_write_file(dir, HWMON("0", "temp1_input"), "31000\n");
    snprintf(path, sizeof(path), "%s/%s", dir, HWMON("0", "temp1_input"));
    assert_int_equal(chmod(path, 0), 0);
    struct wm_source *source = open_hwmon(dir);
    read_all(source, readings);
    assert_int_equal(readings[0].state, WM_READING_DENIED);
    assert_non_null(strstr(wm_source_why(source, 0), "Permission denied"));
    wm_source_close(source);

    const struct wm_source_config config = { .sysfs = dir };
    snprintf(path, sizeof(path), "%s/class/hwmon", dir);
    assert_int_equal(chmod(path, 0), 0);
    struct wm_error err;
    assert_int_equal(wm_source_open("hwmon", &config, &source, &err), WM_EACCES);
    assert_non_null(strstr(err.text, "class/hwmon: Permission denied"));
    assert_int_equal(chmod(path, 0700), 0);
}

/* More sensors than there is room for: the first come, the rest is left. */
static void test_too_many(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_SENSORS];

    for (unsigned i = 0; i < MAX_SENSORS + 6; i++) {
        char path[64];
        snprintf(path, sizeof(path), HWMON("%u", "name"), i);
        test_write_file(dir, path, "k10temp\n");
        snprintf(path, sizeof(path), HWMON("%u", "temp1_input"), i);
        test_write_file(dir, path, "31000\n");
    }
    struct wm_source *source = open_hwmon(dir);
    assert_int_equal(wm_source_channel_count(source), MAX_SENSORS);
    read_all(source, readings);
    assert_int_equal(readings[MAX_SENSORS - 1].state, WM_READING_OK);
    assert_string_equal(wm_source_channel(source, 63)->device, "k10temp/temp1.63");
    wm_source_close(source);
}

static void test_allocation_failures(void **state)
{
    const struct wm_source_config config = {
        .sysfs = test_source_path("tests/data/sys/amd-threadripper"),
    };
    struct wm_source *source = NULL;
    size_t files = test_count_open_files();
    long step;
    (void)state;

    for (step = 0; step < 50; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_source_open("hwmon", &config, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
        assert_int_equal(test_count_open_files(), files);
    }
    assert_in_range(step, 2, 49);
    assert_int_equal(test_count_open_files(), files + 2);
    wm_source_close(source);
    assert_int_equal(test_count_open_files(), files);
}

UNIT(source_hwmon)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_sensor),
        cmocka_unit_test(test_long_path),
        IN_SCRATCH(test_values),
        IN_SCRATCH(test_unreadable),
        IN_SCRATCH(test_no_permission),
        IN_SCRATCH(test_too_many),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
