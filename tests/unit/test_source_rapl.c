/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_rapl.c - energy of CPUs: powercap's files from small trees that stand
 * for /sys, perf events from calls that stand for the kernel's, registers from plain
 * files that stand for the msr device.
 */
#include "test.h"
#include "test_sensor.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/cpu/source_rapl.h"
#include "wattmeter/source.h"

#define FIRST_J 1e-6 /* what a total begins with */
#define MAX_FILES 24
#define MAX_CHANNELS 12
#define RANGE "262143328850\n"

struct file {
    const char *path, *text;
};

#define ZONE(name, file) "class/powercap/" name "/" file
#define FULL_ZONE(zone, title, energy)                                                     \
    { ZONE(zone, "name"), title "\n" }, { ZONE(zone, "energy_uj"), energy "\n" },          \
    {                                                                                      \
        ZONE(zone, "max_energy_range_uj"), RANGE                                           \
    }

static void make_tree(const char *dir, const struct file *files)
{
    for (size_t i = 0; i < MAX_FILES && files[i].path; i++)
        test_write_file(dir, files[i].path, files[i].text);
}

static int open_rapl(const char *dir, struct wm_source **ret_source, struct wm_error *err)
{
    char procfs[300];
    const struct wm_source_config config = { .sysfs = dir, .procfs = procfs };

    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    return wm_source_open("rapl", &config, ret_source, err);
}

struct expected {
    const char *device, *label;
    enum wm_device_kind kind;
};

static void check_channels(struct wm_source *source, const struct expected *expected)
{
    size_t count = 0;

    for (; count < MAX_CHANNELS && expected[count].device; count++) {
        assert_true(count < wm_source_channel_count(source));
        const struct wm_channel *channel = wm_source_channel(source, count);
        assert_string_equal(channel->source, "rapl");
        assert_string_equal(channel->device, expected[count].device);
        assert_string_equal(channel->label, expected[count].label);
        assert_string_equal(channel->metric, "energy");
        assert_string_equal(channel->unit, "J");
        assert_int_equal(channel->device_kind, expected[count].kind);
        assert_int_equal(channel->kind, WM_COUNTER);
        assert_int_equal(channel->origin, WM_MEASURED);
        assert_described(channel);
        assert_true(channel->sensor.step > 0);
    }
    assert_int_equal(wm_source_channel_count(source), count);
}

static void test_machines(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
        struct expected channels[MAX_CHANNELS];
        const char *detail;
    } cases[] = {
        { "two sockets, their parts beside them by links",
          { FULL_ZONE("intel-rapl:0", "package-0", "1"),
            FULL_ZONE("intel-rapl:0:0", "dram", "2"),
            FULL_ZONE("intel-rapl:1", "package-1", "3"),
            FULL_ZONE("intel-rapl:1:0", "dram", "4"),
            { ZONE("intel-rapl", "enabled"), "1\n" } },
          { { "package-0", "package0", WM_DEVICE_CPU },
            { "dram-0", "dram0", WM_DEVICE_DRAM },
            { "package-1", "package1", WM_DEVICE_CPU },
            { "dram-1", "dram1", WM_DEVICE_DRAM } },
          "powercap: 2 package, 2 dram" },
        { "a client with all parts in the package's folder, and psys",
          { FULL_ZONE("intel-rapl:1", "package-0", "1"),
            FULL_ZONE("intel-rapl:1:0", "core", "2"),
            FULL_ZONE("intel-rapl:1:1", "uncore", "3"),
            FULL_ZONE("intel-rapl:1:2", "dram", "4"),
            FULL_ZONE("intel-rapl:0", "psys", "5") },
          { { "psys", "psys", WM_DEVICE_PLATFORM },
            { "package-0", "package0", WM_DEVICE_CPU },
            { "package-0/core", "package0_core", WM_DEVICE_CPU_PART },
            { "package-0/uncore", "package0_uncore", WM_DEVICE_CPU_PART },
            { "dram-0", "dram0", WM_DEVICE_DRAM } },
          "powercap: 1 package, 1 cores, 1 uncore, 1 dram, 1 psys" },
        { "the package a second time, by mmio",
          { FULL_ZONE("intel-rapl-mmio:0", "package-0", "7"),
            FULL_ZONE("intel-rapl-mmio:0:0", "dram", "8"),
            FULL_ZONE("intel-rapl:0", "package-0", "1"),
            FULL_ZONE("intel-rapl:0:0", "core", "2") },
          { { "package-0", "package0", WM_DEVICE_CPU },
            { "package-0/core", "package0_core", WM_DEVICE_CPU_PART } },
          "powercap: 1 package, 1 cores" },
        { "by mmio alone",
          { FULL_ZONE("intel-rapl-mmio:0", "package-0", "7") },
          { { "package-0", "package0", WM_DEVICE_CPU } },
          "powercap: 1 package" },
        { "several dies",
          { FULL_ZONE("intel-rapl:0", "package-0-die-0", "1"),
            FULL_ZONE("intel-rapl:0:0", "dram", "2"),
            FULL_ZONE("intel-rapl:1", "package-0-die-1", "3"),
            FULL_ZONE("intel-rapl:1:0", "core", "4") },
          { { "package-0-die-0", "package0_die0", WM_DEVICE_CPU },
            { "dram-0-die-0", "dram0_die0", WM_DEVICE_DRAM },
            { "package-0-die-1", "package0_die1", WM_DEVICE_CPU },
            { "package-0-die-1/core", "package0_die1_core", WM_DEVICE_CPU_PART } },
          "powercap: 2 package, 1 cores, 1 dram" },
        { "AMD: the zone of one core is not that of all",
          { { "proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n"
                              "model name\t: AMD EPYC 7763\n" },
            FULL_ZONE("intel-rapl:0", "package-0", "1"),
            FULL_ZONE("intel-rapl:0:0", "core", "2") },
          { { "package-0", "package0", WM_DEVICE_CPU } },
          "powercap: 1 package" },
        { "AMD: the same package for each of its dies",
          { { "proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n" },
            FULL_ZONE("intel-rapl:0", "package-0-die-0", "1"),
            FULL_ZONE("intel-rapl:1", "package-0-die-1", "1"),
            FULL_ZONE("intel-rapl:2", "package-1-die-0", "1") },
          { { "package-0", "package0", WM_DEVICE_CPU },
            { "package-1", "package1", WM_DEVICE_CPU } },
          "powercap: 2 package" },
        { "SGX is in use",
          { { "proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sgx\n" },
            FULL_ZONE("intel-rapl:0", "package-0", "1") },
          { { "package-0", "package0", WM_DEVICE_CPU } },
          "powercap: 1 package; this CPU has SGX in use and may add noise to its "
          "counters" },
        { "in the order of numbers, not of letters",
          { FULL_ZONE("intel-rapl:10", "package-10", "1"),
            FULL_ZONE("intel-rapl:9", "package-9", "2") },
          { { "package-9", "package9", WM_DEVICE_CPU },
            { "package-10", "package10", WM_DEVICE_CPU } },
          "powercap: 2 package" },
        { "psys of a second package is not the platform's",
          { FULL_ZONE("intel-rapl:0", "psys", "1"),
            FULL_ZONE("intel-rapl:1", "psys-1", "2") },
          { { "psys", "psys", WM_DEVICE_PLATFORM } },
          "powercap: 1 psys" },
        { "one good zone among broken ones",
          { { ZONE("intel-rapl:0", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:1", "name"), "" },
            { ZONE("intel-rapl:1", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:2", "name"), "\xff\xfe\n" },
            { ZONE("intel-rapl:2", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:3", "name"), "package-0\n" },
            { ZONE("intel-rapl:4", "name"), "package-1x\n" },
            { ZONE("intel-rapl:4", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:5", "name"), "package-99999999999999999999\n" },
            { ZONE("intel-rapl:5", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:6", "name"), "package-1-die-\n" },
            { ZONE("intel-rapl:6", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:7", "name"), "package-1-die-0-\n" },
            { ZONE("intel-rapl:7", "energy_uj"), "1\n" },
            { ZONE("intel-rapl:8", "name/is/a/folder"), "" },
            { "class/powercap/intel-rapl:9", "a file\n" },
            FULL_ZONE("intel-rapl:10", "package-1", "1"),
            { ZONE("intel-rapl:10:0", "name"), "l3cache\n" },
            { ZONE("intel-rapl:10:0", "energy_uj"), "1\n" } },
          { { "package-1", "package1", WM_DEVICE_CPU } },
          "powercap: 1 package" },
        { "the same name twice is one package",
          { FULL_ZONE("intel-rapl:0", "package-0", "1"),
            FULL_ZONE("intel-rapl:1", "package-0", "2") },
          { { "package-0", "package0", WM_DEVICE_CPU } },
          "powercap: 1 package" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_reading readings[MAX_CHANNELS];
        struct wm_source *source = NULL;
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        if (open_rapl(*state, &source, &err) < 0)
            fail_msg("%s", err.text);
        check_channels(source, cases[i].channels);
        assert_string_equal(wm_source_detail(source), cases[i].detail);
        assert_int_equal(
            wm_source_read(source, readings, wm_source_channel_count(source), NULL), WM_OK);
        for (size_t k = 0; k < wm_source_channel_count(source); k++) {
            assert_int_equal(readings[k].state, WM_READING_OK);
            assert_true(readings[k].value == FIRST_J && readings[k].when_ns > 0);
        }
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_no_rapl(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
        const char *text;
    } cases[] = {
        { "no powercap", { { "kernel/notes", "" } }, "there is no " },
        { "an empty class", { { "class/powercap/README", "" } }, "has no RAPL zone" },
        { "another control type",
          { FULL_ZONE("dtpm:0", "package-0", "1"), FULL_ZONE("intel-rapl0", "psys", "1") },
          "has no RAPL zone" },
        { "no name of a package",
          { FULL_ZONE("intel-rapl:0", "cluster-0", "1"),
            FULL_ZONE("intel-rapl:1", "Package-0", "1") },
          "has no package with a counter" },
        { "limits, but no counter",
          { { ZONE("intel-rapl:0", "name"), "package-0\n" },
            { ZONE("intel-rapl:0", "constraint_0_power_limit_uw"), "65000000\n" } },
          "has no package with a counter" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        assert_int_equal(open_rapl(*state, &source, &err), WM_ENODEV);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* As in a container: the links are there, what they lead to is not. */
static void test_hidden(void **state)
{
    struct wm_source *source = NULL;
    struct wm_error err;
    char path[300];

    test_write_file(*state, "class/powercap/README", "");
    snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:0", (const char *)*state);
    assert_int_equal(symlink("../../devices/virtual/powercap/intel-rapl:0", path), 0);
    assert_int_equal(open_rapl(*state, &source, &err), WM_ENODEV);
    assert_non_null(strstr(err.text, "is hidden, as containers do"));
}

/* In place: the source keeps the file open, as it does on sysfs. */
static void set_energy(const char *dir, const char *text)
{
    test_write_file(dir, ZONE("intel-rapl:0", "energy_uj"), text);
}

struct step {
    const char *what, *energy;
    double joules; /* since the total began; negative: the reading fails */
    const char *why;
};

static void check_steps(const char *dir, const char *range, const struct step *steps,
                        size_t count)
{
    struct wm_source *source = NULL;
    struct wm_reading reading;
    struct wm_error err;

    test_write_file(dir, ZONE("intel-rapl:0", "name"), "package-0\n");
    if (range)
        test_write_file(dir, ZONE("intel-rapl:0", "max_energy_range_uj"), range);
    set_energy(dir, "1\n");
    assert_int_equal(open_rapl(dir, &source, &err), WM_OK);
    for (size_t i = 0; i < count; i++) {
        print_message("  %s\n", steps[i].what);
        set_energy(dir, steps[i].energy);
        test_fail_allocation(-1);
        assert_int_equal(wm_source_read(source, &reading, 1, NULL), WM_OK);
        assert_int_equal(test_fail_allocation(-1), 0);
        const char *why = wm_source_why(source, 0);
        if (steps[i].joules < 0) {
            bool jumped = strstr(steps[i].why, "jumped");
            assert_int_equal(reading.state, jumped ? WM_READING_JUMPED : WM_READING_FAILED);
            if (!why || !strstr(why, steps[i].why))
                fail_msg("'%s'", why ? why : "");
            continue;
        }
        if (reading.state != WM_READING_OK)
            fail_msg("%s", why ? why : "no reason");
        assert_null(why);
        if (fabs(reading.value - FIRST_J - steps[i].joules) > 1e-9)
            fail_msg("%.9f J", reading.value);
    }
    wm_source_close(source);
}

static void test_values(void **state)
{
    static const struct step steps[] = {
        { "the start", "262143000000\n", 0, NULL },
        { "microjoules", "262143000001\n", 1e-6, NULL },
        { "without a newline", "262143100000", 0.1, NULL },
        { "empty", "", -1, "'' is no count of energy" },
        { "a line with nothing", "\n", -1, "'' is no count" },
        { "negative", "-5\n", -1, "'-5' is no count" },
        { "text", "N/A\n", -1, "'N/A'" },
        { "a number and more", "262143200000 uJ\n", -1, "'262143200000 uJ'" },
        { "a fraction", "262143200000.5\n", -1, "'262143200000.5'" },
        { "two lines", "262143200000\n1\n", -1, "is no count" },
        { "hexadecimal", "0x10\n", -1, "'0x10'" },
        { "binary", "\xff\xfe\n", -1, "is no count" },
        { "huge", "99999999999999999999\n", -1, "'99999999999999999999'" },
        { "longer than any number", "1111111111222222222233333333334444444444\n", -1,
          "is no count" },
        { "after all that nothing is lost", "262143200000\n", 0.2, NULL },
        { "over the top", "71149\n", 0.4, NULL },
        { "nothing new", "71149\n", 0.4, NULL },
        { "on", "171149\n", 0.5, NULL },
        { "a jump", "200000000000\n", -1, "its counter jumped by" },
        { "it begins again", "200000100000\n", 0, NULL },
        { "on from there", "200000200000\n", 0.1, NULL },
        { "set back", "1000\n", -1, "its counter was set back from 200000 J to 0.001 J" },
        { "it begins again", "101000\n", 0, NULL },
        { "on from there", "201000\n", 0.1, NULL },
    };

    check_steps(*state, RANGE, steps, ARRAY_LEN(steps));
}

/* A package with limits of 2 W and 5 W: it draws no 50 W for as long as there is between
 * two readings and a tenth of a second. 60 J are for the test to have a second for it. */
static void test_jump_by_limits(void **state)
{
    static const struct step steps[] = {
        { "the start", "1000000\n", 0, NULL },
        { "more than both for a moment", "5000000\n", 4, NULL },
        { "ten times the limit", "65000000\n", -1, "its counter jumped by 60 J in" },
    };
    static const char *const limits[] = {
        ZONE("intel-rapl:0", "constraint_0_power_limit_uw"),
        ZONE("intel-rapl:0", "constraint_0_max_power_uw"),
        ZONE("intel-rapl:0", "constraint_1_power_limit_uw"),
    };
    static const char *const texts[] = { "2000000\n", "N/A\n", "5000000\n" };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        test_write_file(*state, limits[i], texts[i]);
    check_steps(*state, RANGE, steps, ARRAY_LEN(steps));
}

/* Limits that are none. */
static void test_bad_limits(void **state)
{
    static const struct step steps[] = {
        { "the start", "1000000\n", 0, NULL },
        { "what a large package draws", "81000000\n", 80, NULL },
    };
    static const char *const texts[] = { "0\n",   "-5\n",  "",
                                         "1e9\n", "999\n", "99999999999999999999\n" };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        test_write_file(*state, ZONE("intel-rapl:0", "constraint_0_power_limit_uw"),
                        texts[i]);
        check_steps(*state, RANGE, steps, ARRAY_LEN(steps));
    }
}

static void test_bad_range(void **state)
{
    static const char *const ranges[] = {
        NULL,
        "",
        "0\n",
        "999999\n",
        "-1\n",
        "lots\n",
        "9223372036854775808\n",
        "99999999999999999999\n",
        "\xff\n",
    };
    static const struct step steps[] = {
        { "the start", "5000000\n", 0, NULL },
        { "a step", "6000000\n", 1, NULL },
        { "back", "10\n", -1, "its counter went back" },
        { "it begins again", "1000010\n", 0, NULL },
        { "on", "2000010\n", 1, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        print_message("  range %s\n", ranges[i] ? ranges[i] : "missing");
        assert_int_equal(test_make_dir(state), 0);
        check_steps(*state, ranges[i], steps, ARRAY_LEN(steps));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void pause_ms(long ms)
{
    const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

/* Only packages and the platform always draw. */
static void test_dead(void **state)
{
    static const struct file files[MAX_FILES] = {
        FULL_ZONE("intel-rapl:0", "package-0", "0"),
        FULL_ZONE("intel-rapl:0:0", "uncore", "0"),
        FULL_ZONE("intel-rapl:0:1", "dram", "0"),
        FULL_ZONE("intel-rapl:1", "psys", "0"),
    };
    struct wm_reading readings[4];
    struct wm_error err;
    struct wm_source *source = NULL;

    make_tree(*state, files);
    assert_int_equal(open_rapl(*state, &source, &err), WM_ENODEV);
    assert_non_null(strstr(err.text, "powercap: its counters stay at 0: dead"));
    set_energy(*state, "7\n");
    assert_int_equal(open_rapl(*state, &source, NULL), WM_OK);
    for (int i = 0; i < 6; i++) {
        enum wm_reading_state expected_state = i < 5 ? WM_READING_OK : WM_READING_FAILED;

        pause_ms(i < 5 ? 1 : 1100);
        assert_int_equal(wm_source_read(source, readings, 4, NULL), WM_OK);
        assert_int_equal(readings[0].state, expected_state);
        assert_int_equal(readings[1].state, WM_READING_OK);
        assert_int_equal(readings[2].state, WM_READING_OK);
        assert_int_equal(readings[3].state, expected_state);
    }
    assert_string_equal(wm_source_why(source, 0),
                        "its counter does not move: dead (virtual machine?)");
    set_energy(*state, "1000007\n");
    assert_int_equal(wm_source_read(source, readings, 4, NULL), WM_OK);
    assert_int_equal(readings[0].state, WM_READING_OK);
    assert_true(fabs(readings[0].value - FIRST_J - 1) < 1e-9);
    assert_int_equal(readings[3].state, WM_READING_FAILED);
    wm_source_close(source);
}

/* The file can be opened and then fails, as when a package is unplugged. */
static void test_unreadable(void **state)
{
    struct wm_source *source = NULL;
    struct wm_reading readings[2];

    test_write_file(*state, ZONE("intel-rapl:0", "name"), "package-0\n");
    test_write_file(*state, ZONE("intel-rapl:0", "energy_uj/in/the/way"), "");
    test_write_file(*state, ZONE("intel-rapl:1", "name"), "package-1\n");
    test_write_file(*state, ZONE("intel-rapl:1", "energy_uj"), "1\n");
    assert_int_equal(open_rapl(*state, &source, NULL), WM_OK);
    assert_int_equal(wm_source_read(source, readings, 2, NULL), WM_OK);
    assert_int_equal(readings[0].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 0), "energy_uj: Is a directory"));
    assert_int_equal(readings[1].state, WM_READING_OK);
    wm_source_close(source);
}

static void test_many(void **state)
{
    struct wm_source *source = NULL;
    struct wm_reading readings[128];
    char path[64], name[32];

    for (unsigned i = 0; i < 64; i++) {
        snprintf(path, sizeof(path), ZONE("intel-rapl:%u", "name"), i);
        snprintf(name, sizeof(name), "package-%u\n", 63 - i);
        test_write_file(*state, path, name);
        snprintf(path, sizeof(path), ZONE("intel-rapl:%u", "energy_uj"), i);
        test_write_file(*state, path, "1\n");
        snprintf(path, sizeof(path), ZONE("intel-rapl:%u:0", "name"), i);
        test_write_file(*state, path, "dram\n");
        snprintf(path, sizeof(path), ZONE("intel-rapl:%u:0", "energy_uj"), i);
        test_write_file(*state, path, "1\n");
    }
    assert_int_equal(open_rapl(*state, &source, NULL), WM_OK);
    assert_int_equal(wm_source_channel_count(source), 128);
    assert_string_equal(wm_source_channel(source, 126)->label, "package0");
    assert_string_equal(wm_source_channel(source, 127)->label, "dram0");
    assert_int_equal(wm_source_read(source, readings, 128, NULL), WM_OK);
    assert_int_equal(readings[127].state, WM_READING_OK);
    wm_source_close(source);
}

static bool set_mode(const char *dir, const char *path, mode_t mode)
{
    char full[512];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    return chmod(full, mode) == 0;
}

/* Runs as nobody, where we are root, in a process of its own: what is wrong shows in
 * its exit status alone. */
static int look_without_permission(const char *dir)
{
    const char *first = ZONE("intel-rapl:0", "energy_uj");
    const char *second = ZONE("intel-rapl:1", "energy_uj");
    struct wm_source *source = NULL;
    struct wm_reading readings[2];
    struct wm_error err;

    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 1;
    if (!set_mode(dir, first, 0) || !set_mode(dir, second, 0) ||
        open_rapl(dir, &source, &err) != WM_EACCES ||
        !strstr(err.text,
                "intel-rapl:0/energy_uj: no permission to read (mode 0000, uid ") ||
        !strstr(err.text, "rapl-permissions.sh"))
        return 2;

    /* The other one may be read: that one counts, and the first says why not. */
    if (!set_mode(dir, second, 0444) || open_rapl(dir, &source, &err) != WM_OK ||
        wm_source_channel_count(source) != 2)
        return 3;
    wm_source_read(source, readings, 2, NULL);
    if (readings[0].state != WM_READING_DENIED || readings[1].state != WM_READING_OK ||
        !strstr(wm_source_why(source, 0), "energy_uj: Permission denied"))
        return 4;
    wm_source_close(source);

    if (!set_mode(dir, "class/powercap/intel-rapl:0", 0) ||
        !set_mode(dir, "class/powercap/intel-rapl:1", 0) ||
        open_rapl(dir, &source, &err) != WM_EACCES ||
        !strstr(err.text, "intel-rapl:0: no permission to look into it"))
        return 5;
    if (!set_mode(dir, "class/powercap", 0) || open_rapl(dir, &source, &err) != WM_EACCES ||
        !strstr(err.text, "class/powercap: Permission denied"))
        return 6;
    return set_mode(dir, "class/powercap", 0755) &&
                   set_mode(dir, "class/powercap/intel-rapl:0", 0755) &&
                   set_mode(dir, "class/powercap/intel-rapl:1", 0755)
               ? 0
               : 7;
}

static int give_away(const char *dir, const char *path)
{
    char full[512];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    return geteuid() == 0 ? chown(full, 65534, 65534) : 0;
}

static void test_no_permission(void **state)
{
    static const char *const paths[] = {
        ZONE("intel-rapl:0", "energy_uj"),
        ZONE("intel-rapl:1", "energy_uj"),
        "class/powercap/intel-rapl:0",
        "class/powercap/intel-rapl:1",
        "class/powercap",
        "",
    };
    const char *dir = *state;
    int status;

    test_write_file(dir, ZONE("intel-rapl:0", "name"), "package-0\n");
    test_write_file(dir, ZONE("intel-rapl:1", "name"), "package-1\n");
    test_write_file(dir, paths[0], "1\n");
    test_write_file(dir, paths[1], "1\n");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(give_away(dir, paths[i]), 0);

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look_without_permission(dir));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_allocation_failures(void **state)
{
    static const struct file files[MAX_FILES] = {
        FULL_ZONE("intel-rapl:0", "package-0", "1"),
        FULL_ZONE("intel-rapl:0:0", "dram", "2"),
    };
    struct wm_source *source = NULL;
    size_t open_files = test_count_open_files();
    long step;

    make_tree(*state, files);
    for (step = 0; step < 60; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = open_rapl(*state, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
        assert_int_equal(test_count_open_files(), open_files);
    }
    assert_in_range(step, 4, 59);
    assert_int_equal(wm_source_channel_count(source), 2);
    wm_source_close(source);
    assert_int_equal(test_count_open_files(), open_files);
}

/* What stands for the kernel: each event's descriptor is one of /dev/null, and its
 * group is read through the leader's. */
enum { MAX_EVENTS = 16 };

static struct {
    struct {
        int fd, cpu, leader;
        uint64_t config;
        uint32_t type;
        uint64_t value;
    } events[MAX_EVENTS];
    size_t count;
    int refuse;      /* errno of each open; 0: none */
    uint64_t absent; /* an event of this config is not there */
    int blocked_cpu; /* opens on it fail with `blocked`, those of the config if given */
    int blocked;     /* errno; 0: none */
    uint64_t blocked_config;
    uint64_t alone;  /* an event of this config joins no group */
    bool is_offline; /* reads end at once, as those of a CPU that went offline */
} kernel;

static int fake_open(const struct perf_event_attr *attr, int cpu, int group)
{
    errno = kernel.refuse;
    if (kernel.refuse)
        return -1;
    errno = kernel.blocked;
    if (kernel.blocked && cpu == kernel.blocked_cpu &&
        (!kernel.blocked_config || kernel.blocked_config == attr->config))
        return -1;
    errno = attr->config == kernel.absent ? ENOENT : EINVAL;
    if (attr->config == kernel.absent || (group >= 0 && attr->config == kernel.alone) ||
        attr->size != sizeof(*attr) || attr->read_format != PERF_FORMAT_GROUP ||
        kernel.count == MAX_EVENTS)
        return -1;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    kernel.events[kernel.count].fd = fd;
    kernel.events[kernel.count].cpu = cpu;
    kernel.events[kernel.count].leader = group < 0 ? fd : group;
    kernel.events[kernel.count].config = attr->config;
    kernel.events[kernel.count].type = attr->type;
    kernel.count++;
    return fd;
}

static ssize_t fake_read(int fd, void *buffer, size_t size)
{
    uint64_t values[1 + MAX_EVENTS] = { 0 };

    if (kernel.is_offline)
        return 0;
    for (size_t i = 0; i < kernel.count; i++) {
        if (kernel.events[i].leader == fd)
            values[1 + values[0]++] = kernel.events[i].value;
    }
    size_t length = (1 + values[0]) * sizeof(values[0]);
    errno = ENOSPC;
    if (length > size)
        return -1;
    memcpy(buffer, values, length);
    return (ssize_t)length;
}

static const struct wm_rapl_perf_calls fake_calls = { fake_open, fake_read };

#define PMU(file) "bus/event_source/devices/power/" file
#define SCALE "2.3283064365386962890625e-10\n"
#define EVENT(name, config)                                                                \
    { PMU("events/" name), config "\n" }, { PMU("events/" name ".unit"), "Joules\n" },     \
    {                                                                                      \
        PMU("events/" name ".scale"), SCALE                                                \
    }
#define TOPOLOGY(cpu, file) "devices/system/cpu/cpu" cpu "/topology/" file

static struct wm_rapl_places perf_places(const char *dir)
{
    memset(&kernel, 0, sizeof(kernel));
    return (struct wm_rapl_places) { .sysfs = dir, .procfs = dir, .perf = &fake_calls };
}

static const struct file perf_tree[MAX_FILES] = {
    { PMU("type"), "23\n" },
    { PMU("cpumask"), "0,4\n" },
    EVENT("energy-pkg", "event=0x02"),
    EVENT("energy-ram", "event=0x03"),
    EVENT("energy-psys", "event=0x05"),
    { TOPOLOGY("0", "physical_package_id"), "0\n" },
    { TOPOLOGY("4", "physical_package_id"), "1\n" },
    { TOPOLOGY("0", "die_id"), "0\n" },
    { TOPOLOGY("4", "die_id"), "1\n" },
};

static void test_perf(void **state)
{
    static const struct {
        enum wm_rapl_domain domain;
        uint32_t package;
        uint64_t value;
    } expected[] = {
        { WM_RAPL_PACKAGE, 0, 100 }, { WM_RAPL_DRAM, 0, 101 }, { WM_RAPL_PSYS, 0, 102 },
        { WM_RAPL_PACKAGE, 1, 103 }, { WM_RAPL_DRAM, 1, 104 },
    };
    struct wm_rapl_places places = perf_places(*state);
    size_t open_files = test_count_open_files();
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };
    struct wm_error err;

    make_tree(*state, perf_tree);
    if (wm_rapl_find(&places, &set, &way, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(way->name, "perf events");
    assert_int_equal(set.count, 5);
    assert_int_equal(set.counters[0].followers, 2);
    assert_int_equal(set.counters[3].followers, 1);
    for (size_t i = 0; i < kernel.count; i++) {
        kernel.events[i].value = 100 + i;
        assert_int_equal(kernel.events[i].type, 23);
        assert_int_equal(kernel.events[i].cpu, i < 3 ? 0 : 4);
    }
    wm_rapl_read(way, &places, &set.counters[0]);
    wm_rapl_read(way, &places, &set.counters[3]);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(set.counters[i].domain, expected[i].domain);
        assert_int_equal(set.counters[i].package, expected[i].package);
        assert_int_equal(set.counters[i].die, WM_RAPL_NO_DIE);
        assert_int_equal(set.counters[i].err.status, WM_OK);
        assert_int_equal(set.counters[i].value, expected[i].value);
        assert_true(set.counters[i].unit_j == 0x1p-32);
    }

    kernel.is_offline = true;
    wm_rapl_read(way, &places, &set.counters[0]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(set.counters[i].err.status, WM_EIO);
    assert_non_null(strstr(set.counters[1].err.text, "energy-ram of CPU 0: no longer"));
    wm_rapl_set_release(&set);
    assert_int_equal(test_count_open_files(), open_files);
}

/* An event that may not join a group, and one that is not there at all. */
static void test_perf_groups(void **state)
{
    struct wm_rapl_places places = perf_places(*state);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };

    make_tree(*state, perf_tree);
    test_write_file(*state, TOPOLOGY("4", "physical_package_id"), "0\n");
    kernel.alone = 3;
    kernel.absent = 5;
    assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
    assert_int_equal(set.count, 4);
    for (size_t i = 0; i < 4; i++) {
        kernel.events[i].value = 7 + i;
        wm_rapl_read(way, &places, &set.counters[i]);
        assert_int_equal(set.counters[i].followers, 0);
        assert_int_equal(set.counters[i].value, 7 + i);
        assert_int_equal(set.counters[i].package, 0);
        assert_int_equal(set.counters[i].die, i / 2);
    }
    wm_rapl_set_release(&set);
}

/* What cannot be opened of one package is told to fail: all that is left would pass for
 * all packages. The rest is read as ever. */
static void test_perf_blocked(void **state)
{
    static const struct {
        const char *what;
        int cpu, number;
        uint64_t config;          /* 0: each event of that CPU */
        size_t count, failed;     /* counters, and the first that fails */
        size_t failed_count;      /* how many fail, side by side */
        size_t leader, followers; /* one that reads others, too */
    } cases[] = {
        { "the second package, too many files", 4, EMFILE, 0, 5, 3, 2, 0, 2 },
        { "the second package, its CPU is going", 4, ENODEV, 0, 5, 3, 2, 0, 2 },
        { "the second package, in use", 4, EBUSY, 0, 5, 3, 2, 0, 2 },
        { "the first package, which leads no group", 0, EMFILE, 2, 5, 0, 1, 1, 1 },
        { "one between others ends their group", 0, EMFILE, 3, 5, 1, 1, 3, 1 },
        { "a package of which the kernel knows nothing", 4, EINVAL, 2, 5, 3, 1, 0, 2 },
        { "memory that only one package has", 4, EINVAL, 3, 4, 4, 0, 0, 2 },
    };

    make_tree(*state, perf_tree);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_rapl_places places = perf_places(*state);
        size_t open_files = test_count_open_files();
        const struct wm_rapl_way *way = NULL;
        struct wm_rapl_set set = { 0 };
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        kernel.blocked_cpu = cases[i].cpu;
        kernel.blocked = cases[i].number;
        kernel.blocked_config = cases[i].config;
        if (wm_rapl_find(&places, &set, &way, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(set.count, cases[i].count);
        assert_int_equal(set.counters[cases[i].leader].followers, cases[i].followers);
        for (size_t k = 0; k < set.count; k += 1 + set.counters[k].followers)
            wm_rapl_read(way, &places, &set.counters[k]);
        for (size_t k = 0; k < set.count; k++) {
            const struct wm_rapl_counter *counter = &set.counters[k];
            bool fails =
                k >= cases[i].failed && k - cases[i].failed < cases[i].failed_count;

            assert_int_equal(counter->err.status < 0, fails);
            if (fails)
                assert_non_null(strstr(counter->err.text, strerror(cases[i].number)));
        }
        wm_rapl_set_release(&set);
        assert_int_equal(test_count_open_files(), open_files);
    }
}

/* A way in which nothing can be opened, or no package, is not taken before another. */
static void test_blocked_way(void **state)
{
    struct wm_rapl_places places = perf_places(*state);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };
    struct wm_error err;

    make_tree(*state, perf_tree);
    test_write_file(*state, PMU("cpumask"), "0\n");
    kernel.blocked = EMFILE;
    assert_int_equal(wm_rapl_find(&places, &set, &way, &err), WM_EIO);
    assert_non_null(strstr(err.text, "energy-pkg of CPU 0: Too many open files"));

    test_write_file(*state, ZONE("intel-rapl:0", "name"), "package-0\n");
    test_write_file(*state, ZONE("intel-rapl:0", "energy_uj"), "1\n");
    for (uint64_t config = 0; config <= 2; config += 2) {
        kernel.blocked_config = config;
        assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
        assert_string_equal(way->name, "powercap");
        wm_rapl_set_release(&set);
    }
}

/* Linux 6.9 has AMD's package in the mask once for each die. */
static void test_perf_amd_dies(void **state)
{
    struct wm_rapl_places places = perf_places(*state);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };

    make_tree(*state, perf_tree);
    test_write_file(*state, TOPOLOGY("4", "physical_package_id"), "0\n");
    snprintf(places.cpu.vendor, sizeof(places.cpu.vendor), "AuthenticAMD");
    assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
    assert_int_equal(set.count, 3);
    assert_int_equal(set.counters[0].die, WM_RAPL_NO_DIE);
    wm_rapl_set_release(&set);
}

static void test_perf_allocation_failures(void **state)
{
    size_t open_files = test_count_open_files();
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };
    long step;

    make_tree(*state, perf_tree);
    for (step = 0; step < 60; step++) {
        struct wm_rapl_places places = perf_places(*state);

        test_fail_allocation(step);
        int status = wm_rapl_find(&places, &set, &way, NULL);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_int_equal(test_count_open_files(), open_files);
    }
    assert_in_range(step, 4, 59);
    assert_int_equal(set.count, 5);
    wm_rapl_set_release(&set);
    assert_int_equal(test_count_open_files(), open_files);
}

static void test_perf_cores(void **state)
{
#define CORE(file) "bus/event_source/devices/power_core/" file
    static const struct file files[MAX_FILES] = {
        { CORE("type"), "24\n" },
        { CORE("cpumask"), "0-2\n" },
        { CORE("events/energy-core"), "event=0x01\n" },
        { CORE("events/energy-core.unit"), "Joules\n" },
        { CORE("events/energy-core.scale"), SCALE },
    };
    struct wm_rapl_places places = perf_places(*state);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };

    make_tree(*state, perf_tree);
    make_tree(*state, files);
    assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
    assert_int_equal(set.count, 8);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(set.counters[5 + i].domain, WM_RAPL_CORE);
        assert_int_equal(set.counters[5 + i].package, i);
        assert_int_equal(kernel.events[5 + i].type, 24);
    }
    wm_rapl_set_release(&set);
}

/* One line of the tree is other than it should be. */
static void test_bad_perf(void **state)
{
    static const struct {
        const char *what;
        struct file file;
        int refuse, status;
        const char *text;
    } cases[] = {
        { "forbidden",
          { "sys/kernel/perf_event_paranoid", "2\n" },
          EACCES,
          WM_EACCES,
          "need CAP_PERFMON, or kernel.perf_event_paranoid 0 (it is 2)" },
        { "forbidden to root",
          { "sys/kernel/perf_event_paranoid", "-1\n" },
          EPERM,
          WM_EACCES,
          "perf events are forbidden here" },
        { "not there after all",
          { NULL, NULL },
          ENOENT,
          WM_ENODEV,
          "no event that can be" },
        { "type is text", { PMU("type"), "power\n" }, 0, WM_EFORMAT, "'power'" },
        { "type is huge", { PMU("type"), "4294967296\n" }, 0, WM_EFORMAT, "is no number" },
        { "no type", { PMU("type"), "" }, 0, WM_ENODEV, "there is no perf PMU power" },
        { "no mask", { PMU("cpumask"), "\n" }, 0, WM_EFORMAT, "not a list of CPUs" },
        { "a mask of bits",
          { PMU("cpumask"), "f\n" },
          0,
          WM_EFORMAT,
          "not a list of CPUs" },
        { "no unit", { PMU("events/energy-pkg.unit"), "" }, 0, WM_OK, NULL },
        { "another unit", { PMU("events/energy-pkg.unit"), "mJ\n" }, 0, WM_OK, NULL },
        { "no scale", { PMU("events/energy-pkg.scale"), "\n" }, 0, WM_OK, NULL },
        { "scale 0", { PMU("events/energy-pkg.scale"), "0\n" }, 0, WM_OK, NULL },
        { "scale nan", { PMU("events/energy-pkg.scale"), "nan\n" }, 0, WM_OK, NULL },
        { "scale huge", { PMU("events/energy-pkg.scale"), "1e9\n" }, 0, WM_OK, NULL },
        { "scale negative", { PMU("events/energy-pkg.scale"), "-1\n" }, 0, WM_OK, NULL },
        { "another format", { PMU("events/energy-pkg"), "config=2\n" }, 0, WM_OK, NULL },
        { "no number", { PMU("events/energy-pkg"), "event=0x\n" }, 0, WM_OK, NULL },
        { "no such digit", { PMU("events/energy-pkg"), "event=0xzz\n" }, 0, WM_OK, NULL },
        { "two terms", { PMU("events/energy-pkg"), "event=0x2,a=1\n" }, 0, WM_OK, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_rapl_way *way = NULL;
        struct wm_rapl_set set = { 0 };
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        struct wm_rapl_places places = perf_places(*state);
        make_tree(*state, perf_tree);
        if (cases[i].file.path)
            test_write_file(*state, cases[i].file.path, cases[i].file.text);
        kernel.refuse = cases[i].refuse;
        assert_int_equal(wm_rapl_find(&places, &set, &way, &err), cases[i].status);
        if (cases[i].text && !strstr(err.text, cases[i].text))
            fail_msg("%s", err.text);
        /* What was not understood is left out, and the rest is read. */
        for (size_t k = 0; k < set.count; k++)
            assert_true(set.counters[k].domain != WM_RAPL_PACKAGE);
        if (cases[i].status == WM_OK)
            assert_int_equal(set.count, 3);
        wm_rapl_set_release(&set);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* perf where nothing but psys is, and packages by powercap; then both forbidden. */
static void test_choice(void **state)
{
    static const struct file files[MAX_FILES] = {
        { PMU("type"), "23\n" },
        { PMU("cpumask"), "0\n" },
        EVENT("energy-psys", "event=0x05"),
    };
    struct wm_rapl_places places = perf_places(*state);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };

    make_tree(*state, files);
    assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
    assert_string_equal(way->name, "perf events");
    assert_int_equal(set.count, 1);
    assert_int_equal(set.counters[0].domain, WM_RAPL_PSYS);
    wm_rapl_set_release(&set);

    size_t open_files = test_count_open_files();
    test_write_file(*state, ZONE("intel-rapl:0", "name"), "package-0\n");
    test_write_file(*state, ZONE("intel-rapl:0", "energy_uj"), "1\n");
    assert_int_equal(wm_rapl_find(&places, &set, &way, NULL), WM_OK);
    assert_string_equal(way->name, "powercap");
    assert_int_equal(set.count, 1);
    wm_rapl_set_release(&set);
    assert_int_equal(test_count_open_files(), open_files);
}

/* A register is the eight bytes at the offset that is its number. */
static void set_register(const char *dir, unsigned cpu, off_t offset, uint64_t value)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/cpu/%u/msr", dir, cpu);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(path, sizeof(path), "cpu/%u/msr", cpu);
        test_write_file(dir, path, "");
        snprintf(path, sizeof(path), "%s/cpu/%u/msr", dir, cpu);
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &value, sizeof(value), offset), sizeof(value));
    assert_int_equal(close(fd), 0);
}

static struct wm_rapl_places msr_places(const char *dir, const char *vendor,
                                        uint64_t family, uint64_t model)
{
    struct wm_rapl_places places = {
        .sysfs = dir,
        .procfs = dir,
        .dev = dir,
        .cpu = { .family = family, .model = model },
    };

    snprintf(places.cpu.vendor, sizeof(places.cpu.vendor), "%s", vendor);
    return places;
}

static const struct file two_packages[MAX_FILES] = {
    { "devices/system/cpu/online", "0-3\n" },
    { TOPOLOGY("0", "physical_package_id"), "0\n" },
    { TOPOLOGY("1", "physical_package_id"), "0\n" },
    { TOPOLOGY("2", "physical_package_id"), "1\n" },
    { TOPOLOGY("3", "physical_package_id"), "1\n" },
    { TOPOLOGY("0", "thread_siblings_list"), "0-1\n" },
    { TOPOLOGY("1", "thread_siblings_list"), "0-1\n" },
    { TOPOLOGY("2", "thread_siblings_list"), "2\n" },
    { TOPOLOGY("3", "thread_siblings_list"), "3\n" },
};

static void test_msr_intel(void **state)
{
    static const struct {
        const char *what;
        uint64_t model;
        double dram_unit_j, psys_unit_j; /* 0: not read */
    } cases[] = {
        { "a client", 0x97, 0x1p-14, 0x1p-14 },
        { "Haswell-EP", 0x3f, 0x1p-16, 0x1p-14 },
        { "Broadwell-DE, of which nobody knows", 0x56, 0, 0x1p-14 },
        { "Skylake-SP", 0x55, 0x1p-16, 0x1p-14 },
        { "Sapphire Rapids", 0x8f, 0x1p-14, 1 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_rapl_places places =
            msr_places(*state, "GenuineIntel", 6, cases[i].model);
        const struct wm_rapl_way *way = NULL;
        struct wm_rapl_set set = { 0 };
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        make_tree(*state, two_packages);
        for (unsigned cpu = 0; cpu < 4; cpu += 2) {
            set_register(*state, cpu, 0x606, 0xa0e03);
            set_register(*state, cpu, 0x611, 0xffffffff00000000 + 1000 + cpu);
            set_register(*state, cpu, 0x619, 2000 + cpu);
            set_register(*state, cpu, 0x639, 3000 + cpu);
            set_register(*state, cpu, 0x641, 4000 + cpu);
            set_register(*state, cpu, 0x64d, 5000 + cpu);
        }
        if (wm_rapl_find(&places, &set, &way, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(way->name, "the msr device");
        assert_int_equal(set.count, cases[i].dram_unit_j > 0 ? 9 : 7);
        for (size_t k = 0; k < set.count; k++) {
            struct wm_rapl_counter *counter = &set.counters[k];
            static const uint64_t values[] = {
                [WM_RAPL_PACKAGE] = 1000, [WM_RAPL_DRAM] = 2000, [WM_RAPL_CORES] = 3000,
                [WM_RAPL_UNCORE] = 4000,  [WM_RAPL_PSYS] = 5000,
            };
            double unit_j = counter->domain == WM_RAPL_DRAM   ? cases[i].dram_unit_j
                            : counter->domain == WM_RAPL_PSYS ? cases[i].psys_unit_j
                                                              : 0x1p-14;
            wm_rapl_read(way, &places, counter);
            assert_int_equal(counter->err.status, WM_OK);
            assert_int_equal(counter->value,
                             values[counter->domain] + 2 * counter->package);
            assert_true(counter->unit_j == unit_j);
            assert_int_equal(counter->range, UINT32_MAX);
            assert_true(counter->domain != WM_RAPL_PSYS || counter->package == 0);
        }
        assert_false(set.is_filtered);
        wm_rapl_set_release(&set);
    }
}

/* The registers of AMD overlap as bytes of a file: they have consecutive numbers. */
static void test_msr_amd(void **state)
{
    struct wm_rapl_places places = msr_places(*state, "AuthenticAMD", 0x19, 0x11);
    const struct wm_rapl_way *way = NULL;
    struct wm_rapl_set set = { 0 };
    struct wm_error err;

    make_tree(*state, two_packages);
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        set_register(*state, cpu, 0xc0010299, 0);
        set_register(*state, cpu, 0xc001029b, 0x11223300 + cpu);
        set_register(*state, cpu, 0xc001029a, 0x1122330010 + cpu * 256);
        set_register(*state, cpu, 0xc0010299, 0x112233001003 + cpu * 65536);
    }
    if (wm_rapl_find(&places, &set, &way, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(set.count, 5);
    for (size_t i = 0; i < set.count; i++) {
        struct wm_rapl_counter *counter = &set.counters[i];
        static const uint32_t packages[] = { 0, 1, 0, 2, 3 };

        wm_rapl_read(way, &places, counter);
        assert_int_equal(counter->err.status, WM_OK);
        assert_int_equal(counter->domain, i < 2 ? WM_RAPL_PACKAGE : WM_RAPL_CORE);
        assert_int_equal(counter->package, packages[i]);
        assert_true(counter->unit_j == 0x1p-16);
        assert_int_equal(counter->value, i < 2 ? 0x11223300 + 2 * packages[i]
                                               : 0x22330010 + 256 * packages[i]);
    }
    wm_rapl_set_release(&set);
}

static void test_bad_msr(void **state)
{
    static const struct {
        const char *what, *vendor;
        uint64_t family, model;
        bool has_device;
        const char *text;
    } cases[] = {
        { "no device", "GenuineIntel", 6, 0x97, false, "cpu/0/msr (modprobe msr)" },
        { "no unit, as in a virtual machine", "GenuineIntel", 6, 0x97, true,
          "no energy unit in register 0x606" },
        { "the same of AMD", "AuthenticAMD", 0x19, 1, true,
          "no energy unit in register 0xc0010299" },
        { "Silvermont", "GenuineIntel", 6, 0x37, true, "are not known" },
        { "Itanium", "GenuineIntel", 31, 0, true, "are not known" },
        { "before Zen", "AuthenticAMD", 0x15, 1, true, "are not known" },
        { "another maker", "CentaurHauls", 6, 0x97, true, "are not known" },
        { "another maker, no device", "CentaurHauls", 6, 0x97, false, "are not known" },
        { "no x86", "", 0, 0, true, "are not known" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_rapl_way *way = NULL;
        struct wm_rapl_set set = { 0 };
        struct wm_error err;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        struct wm_rapl_places places =
            msr_places(*state, cases[i].vendor, cases[i].family, cases[i].model);
        make_tree(*state, two_packages);
        if (cases[i].has_device)
            set_register(*state, 0, 0, 0);
        assert_int_equal(wm_rapl_msr.find(&set, &places, &err), WM_ENODEV);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s", err.text);
        wm_rapl_set_release(&set);
        assert_int_equal(wm_rapl_find(&places, &set, &way, &err), WM_ENODEV);
        assert_non_null(strstr(err.text, "no RAPL: perf events: no perf events: "));
        assert_non_null(strstr(err.text, "; powercap: there is no "));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* The register of one package cannot be read: it fails, and is not left out. */
static void test_msr_blocked(void **state)
{
    for (unsigned blocked = 0; blocked <= 2; blocked += 2) {
        struct wm_rapl_places places = msr_places(*state, "GenuineIntel", 6, 0x97);
        size_t open_files = test_count_open_files();
        struct wm_rapl_set set = { 0 };

        make_tree(*state, two_packages);
        for (unsigned cpu = 0; cpu < 4; cpu += 2) {
            set_register(*state, cpu, 0x606, 0xa0e03);
            if (cpu != blocked)
                set_register(*state, cpu, 0x611, 1);
        }
        assert_int_equal(wm_rapl_msr.find(&set, &places, NULL), WM_OK);
        assert_int_equal(set.count, 2);
        for (size_t i = 0; i < 2; i++) {
            bool fails = i == blocked / 2;

            wm_rapl_msr.read(&places, &set.counters[i]);
            assert_int_equal(set.counters[i].package, i);
            assert_int_equal(set.counters[i].err.status, fails ? WM_EIO : WM_OK);
        }
        wm_rapl_set_release(&set);
        assert_int_equal(test_count_open_files(), open_files);
        assert_int_equal(test_remove_dir(state), 0);
        assert_int_equal(test_make_dir(state), 0);
    }
}

/* The noise that hides what a program computes, switched on without SGX, and the unit: each
 * package has its own. */
static void test_each_package(void **state)
{
    struct wm_rapl_places places = msr_places(*state, "GenuineIntel", 6, 0x97);

    for (unsigned filtered = 0; filtered < 4; filtered += 2) {
        struct wm_rapl_set set = { 0 };
        make_tree(*state, two_packages);
        for (unsigned cpu = 0; cpu < 4; cpu += 2) {
            set_register(*state, cpu, 0x606, cpu == 0 ? 0xa0e03 : 0xa1003);
            set_register(*state, cpu, 0x611, 1);
            set_register(*state, cpu, 0x10a, cpu == filtered ? 1 << 10 : 0);
            set_register(*state, cpu, 0xbc, 1);
        }
        assert_int_equal(wm_rapl_msr.find(&set, &places, NULL), WM_OK);
        assert_int_equal(set.count, 2);
        assert_true(set.counters[0].unit_j == 0x1p-14);
        assert_true(set.counters[1].unit_j == 0x1p-16);
        assert_true(set.is_filtered);
        wm_rapl_set_release(&set);
    }
}

/* How long each register may go unread. */
static void test_limits(void **state)
{
    static const struct {
        const char *what;
        enum wm_rapl_domain domain;
        double unit_j;
        uint64_t range;
        bool folded;
        double watts, seconds;
    } cases[] = {
        { "Intel's package", WM_RAPL_PACKAGE, 0x1p-14, UINT32_MAX, false, 1000, 262 },
        { "AMD's package", WM_RAPL_PACKAGE, 0x1p-16, UINT32_MAX, false, 1000, 65.5 },
        { "by powercap", WM_RAPL_PACKAGE, 1e-6, 65532610987, false, 1000, 65.5 },
        { "range unknown", WM_RAPL_PACKAGE, 1e-6, 0, false, 1000, 65.5 },
        { "by perf", WM_RAPL_PACKAGE, 0x1p-32, UINT64_MAX, true, 1000, 65.5 },
        { "psys of a laptop", WM_RAPL_PSYS, 0x1p-14, UINT32_MAX, false, 4000, 65.5 },
        { "psys of a server", WM_RAPL_PSYS, 1, UINT32_MAX, false, 20000, 214748 },
        { "psys by perf", WM_RAPL_PSYS, 0x1p-32, UINT64_MAX, true, 20000, 65.5 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_rapl_counter counter = { .domain = cases[i].domain,
                                                 .unit_j = cases[i].unit_j,
                                                 .range = cases[i].range,
                                                 .folded = cases[i].folded };

        print_message("  %s\n", cases[i].what);
        struct wm_rapl_total total = wm_rapl_total_of(&counter);
        assert_true(total.most_watts == cases[i].watts);
        assert_true(fabs(total.most_s - cases[i].seconds) < 1);
    }
}

/* What this machine really has, whatever it is. */
static void test_this_machine(void **state)
{
    struct wm_source *source = NULL;
    struct wm_reading readings[2048]; /* more registers than any machine has */
    struct wm_error err;
    (void)state;

    int status = wm_source_open("rapl", NULL, &source, &err);
    if (status < 0) {
        print_message("  %s\n", err.text);
        assert_true(status == WM_ENODEV || status == WM_EACCES);
        skip();
    }
    print_message("  %s\n", wm_source_detail(source));
    size_t count = wm_source_channel_count(source);
    for (int i = 0; i < 2; i++, pause_ms(50)) {
        assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
        for (size_t k = 0; k < count; k++)
            assert_true(readings[k].state != WM_READING_OK ||
                        (readings[k].value >= 0 && readings[k].value < 1e5));
    }
    wm_source_close(source);
}

UNIT(source_rapl)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_no_rapl),
        IN_SCRATCH(test_hidden),
        IN_SCRATCH(test_values),
        cmocka_unit_test(test_bad_range),
        IN_SCRATCH(test_jump_by_limits),
        IN_SCRATCH(test_bad_limits),
        IN_SCRATCH(test_dead),
        IN_SCRATCH(test_unreadable),
        IN_SCRATCH(test_many),
        IN_SCRATCH(test_no_permission),
        IN_SCRATCH(test_allocation_failures),
        IN_SCRATCH(test_perf),
        IN_SCRATCH(test_perf_groups),
        IN_SCRATCH(test_perf_blocked),
        IN_SCRATCH(test_blocked_way),
        IN_SCRATCH(test_perf_cores),
        IN_SCRATCH(test_perf_amd_dies),
        IN_SCRATCH(test_perf_allocation_failures),
        cmocka_unit_test(test_bad_perf),
        IN_SCRATCH(test_choice),
        IN_SCRATCH(test_msr_intel),
        IN_SCRATCH(test_msr_amd),
        cmocka_unit_test(test_bad_msr),
        IN_SCRATCH(test_msr_blocked),
        IN_SCRATCH(test_each_package),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
