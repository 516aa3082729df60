/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_host.c - the machine and its cores, from captured, made-up and
 * changing trees that stand for /proc, and once from the real one. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wattmeter/source.h"

enum { HOST_CHANNELS = 4, MAX_CHANNELS = 64 };

static struct wm_source *open_host(const char *procfs)
{
    const struct wm_source_config config = { .procfs = procfs };
    struct wm_source *source = NULL;
    struct wm_error err;

    if (wm_source_open("host", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static void read_all(struct wm_source *source, struct wm_reading *readings)
{
    size_t count = wm_source_channel_count(source);

    assert_in_range(count, HOST_CHANNELS, MAX_CHANNELS);
    memset(readings, 0xff, count * sizeof(*readings));
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(readings[i].when_ns > 0);
        assert_true(readings[i].when_ns == readings[0].when_ns);
        assert_int_equal(wm_source_why(source, i) == NULL,
                         readings[i].state == WM_READING_OK);
    }
}

static void test_captured(void **state)
{
    static const struct {
        const char *device, *metric, *unit;
        enum wm_device_kind device_kind;
        enum wm_kind kind;
        double value; /* of cpu_time: in ticks */
    } expected[] = {
        { "host", "cpu_time", "s", WM_DEVICE_HOST, WM_COUNTER, 5777 },
        { "host", "memory_used", "B", WM_DEVICE_HOST, WM_GAUGE, 360332.0 * 1024 },
        { "host", "memory_total", "B", WM_DEVICE_HOST, WM_GAUGE, 24684084.0 * 1024 },
        { "host", "load1", "count", WM_DEVICE_HOST, WM_GAUGE, 0.05 },
        { "cpu0", "cpu_time", "s", WM_DEVICE_CPU, WM_COUNTER, 1661 },
        { "cpu1", "cpu_time", "s", WM_DEVICE_CPU, WM_COUNTER, 4113 },
    };
    struct wm_reading readings[MAX_CHANNELS];
    const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    struct wm_source *source = open_host(test_source_path("tests/data/proc/vm-2-cores"));
    (void)state;

    assert_int_equal(wm_source_channel_count(source), ARRAY_LEN(expected));
    read_all(source, readings);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        bool counter = expected[i].kind == WM_COUNTER;
        double value = counter ? expected[i].value / ticks_per_s : expected[i].value;

        print_message("  %s %s\n", expected[i].device, expected[i].metric);
        assert_string_equal(channel->source, "host");
        assert_string_equal(channel->device, expected[i].device);
        assert_string_equal(channel->label, expected[i].device);
        assert_string_equal(channel->metric, expected[i].metric);
        assert_string_equal(channel->unit, expected[i].unit);
        assert_int_equal(channel->device_kind, expected[i].device_kind);
        assert_int_equal(channel->kind, expected[i].kind);
        assert_int_equal(channel->origin, WM_MEASURED);
        int64_t period_ns = counter ? (int64_t)(1e9 / ticks_per_s) : 0;
        if (strcmp(channel->metric, "load1") == 0)
            period_ns = 5000000000;
        assert_int_equal(channel->period_ns, period_ns);
        assert_int_equal(readings[i].state, WM_READING_OK);
        assert_true(fabs(readings[i].value - value) < 1e-9);
    }
    wm_source_close(source);
}

#define GOOD_STAT "cpu  300 0 0 9 9 0 0 0 0 0\ncpu0 300 0 0 9 9 0 0 0 0 0\nprocesses 7\n"
#define GOOD_MEMINFO "MemTotal: 100 kB\nMemAvailable: 40 kB\n"
#define GOOD_LOADAVG "0.50 0.01 0.00 1/92 7549\n"

static enum wm_reading_state state_of(char letter)
{
    switch (letter) {
    case 'o':
        return WM_READING_OK;
    case 'u':
        return WM_READING_UNSUPPORTED;
    default:
        return WM_READING_FAILED;
    }
}

/* One file each that is missing (NULL) or broken. In `states` there is a letter
 * for each channel of the host: ok, unsupported or failed. */
static void test_broken_files(void **state)
{
    static const struct {
        const char *what;
        const char *stat, *meminfo, *loadavg;
        size_t cores;
        const char *states;
        size_t bad_channel;
        const char *why;
    } cases[] = {
        { "no stat", NULL, GOOD_MEMINFO, GOOD_LOADAVG, 0, "uooo", 0,
          "/stat: No such file" },
        { "no meminfo", GOOD_STAT, NULL, GOOD_LOADAVG, 1, "ouuo", 2,
          "/meminfo: No such file" },
        { "no loadavg", GOOD_STAT, GOOD_MEMINFO, NULL, 1, "ooou", 3,
          "/loadavg: No such file" },
        { "only loadavg", NULL, NULL, GOOD_LOADAVG, 0, "uuuo", 1,
          "/meminfo: No such file" },
        { "empty stat", "", GOOD_MEMINFO, GOOD_LOADAVG, 0, "fooo", 0,
          "/stat: not what the kernel writes" },
        { "binary stat", "\x7f\x45LF\x02\x01\xff\xfe", GOOD_MEMINFO, GOOD_LOADAVG, 0,
          "fooo", 0, "/stat: not what the kernel writes" },
        { "stat cut off", "cpu  300 0 0 9\ncpu0 3", GOOD_MEMINFO, GOOD_LOADAVG, 0, "fooo",
          0, "/stat: not what the kernel writes" },
        { "no core in stat", "cpu  300 0 0 9\nprocesses 7\n", GOOD_MEMINFO, GOOD_LOADAVG, 0,
          "oooo", 0, NULL },
        { "empty meminfo", GOOD_STAT, "", GOOD_LOADAVG, 1, "offo", 1,
          "/meminfo: not what the kernel writes" },
        { "meminfo in another unit", GOOD_STAT, "MemTotal: 1 GB\nMemAvailable: 1 GB\n",
          GOOD_LOADAVG, 1, "offo", 2, "/meminfo: not what the kernel writes" },
        { "empty loadavg", GOOD_STAT, GOOD_MEMINFO, "", 1, "ooof", 3,
          "/loadavg: not what the kernel writes" },
        { "huge loadavg", GOOD_STAT, GOOD_MEMINFO,
          "99999999999999999999999.00 0.01 0.00 1/92 7549\n", 1, "ooof", 3,
          "/loadavg: not what the kernel writes" },
    };
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct {
            const char *name, *text;
        } files[] = {
            { "stat", cases[i].stat },
            { "meminfo", cases[i].meminfo },
            { "loadavg", cases[i].loadavg },
        };
        struct wm_reading readings[MAX_CHANNELS];
        char path[256];

        print_message("  %s\n", cases[i].what);
        for (size_t f = 0; f < ARRAY_LEN(files); f++) {
            snprintf(path, sizeof(path), "%s/%s", dir, files[f].name);
            unlink(path);
            if (files[f].text)
                test_write_file(dir, files[f].name, files[f].text);
        }

        struct wm_source *source = open_host(dir);
        assert_int_equal(wm_source_channel_count(source), HOST_CHANNELS + cases[i].cores);
        read_all(source, readings);
        for (size_t c = 0; c < HOST_CHANNELS; c++)
            assert_int_equal(readings[c].state, state_of(cases[i].states[c]));
        const char *why = wm_source_why(source, cases[i].bad_channel);
        assert_int_equal(why != NULL, cases[i].why != NULL);
        if (why)
            assert_non_null(strstr(why, cases[i].why));
        wm_source_close(source);
    }
}

static void test_cannot_open(void **state)
{
    const char *dir = *state;
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    char path[256];
    struct wm_source_config config = { .procfs = path };

    snprintf(path, sizeof(path), "%s/no-proc", dir);
    assert_int_equal(wm_source_open("host", &config, &source, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "/no-proc: No such file"));

    config.procfs = dir;
    assert_int_equal(wm_source_open("host", &config, &source, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "/stat: No such file"));
    assert_null(source);
}

/* A file can be opened and yet not be read. */
static void test_unreadable(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_CHANNELS];

    test_write_file(dir, "stat", GOOD_STAT);
    test_write_file(dir, "meminfo/in/the/way", "");
    test_write_file(dir, "loadavg", GOOD_LOADAVG);
    struct wm_source *source = open_host(dir);
    read_all(source, readings);
    assert_int_equal(readings[0].state, WM_READING_OK);
    assert_int_equal(readings[1].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 1), "/meminfo: Is a directory"));
    assert_int_equal(readings[3].state, WM_READING_OK);
    wm_source_close(source);
}

static void test_no_permission(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_CHANNELS];
    char path[256];

    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    test_write_file(dir, "stat", GOOD_STAT);
    test_write_file(dir, "meminfo", GOOD_MEMINFO);
    snprintf(path, sizeof(path), "%s/meminfo", dir);
    assert_int_equal(chmod(path, 0), 0);
    struct wm_source *source = open_host(dir);
    read_all(source, readings);
    assert_int_equal(readings[1].state, WM_READING_DENIED);
    assert_non_null(strstr(wm_source_why(source, 1), "Permission denied"));
    wm_source_close(source);
}

/* The same source through the life of a machine with cores 0, 1 and 3. */
static void test_cores_come_and_go(void **state)
{
#define TOTAL(ticks) "cpu  " ticks " 0 0 9 9 0 0 0 0 0\n"
#define CORE(n, ticks) "cpu" n " " ticks " 0 0 9 9 0 0 0 0 0\n"
#define FORKS "processes 7\n"
    static const struct {
        const char *what;
        const char *stat;
        double ticks[4]; /* of the host and the cores; negative: failed */
        const char *why; /* of the last one */
    } steps[] = {
        { "all online",
          TOTAL("60") CORE("0", "10") CORE("1", "20") CORE("3", "30") FORKS,
          { 60, 10, 20, 30 },
          NULL },
        { "the last one goes",
          TOTAL("61") CORE("0", "11") CORE("1", "20") FORKS,
          { 61, 11, 20, -1 },
          "this core is offline" },
        { "the middle one too",
          TOTAL("62") CORE("0", "12") FORKS,
          { 62, 12, -1, -1 },
          "this core is offline" },
        { "new ones come",
          TOTAL("80") CORE("0", "12") CORE("2", "5") CORE("3", "30") CORE("4", "5") FORKS,
          { 80, 12, -1, 30 },
          NULL },
        { "garbage", "cpu0 is fine\n", { -1, -1, -1, -1 }, "/stat: not what" },
        { "nothing", "", { -1, -1, -1, -1 }, "/stat: not what" },
        { "all are back",
          TOTAL("90") CORE("0", "20") CORE("1", "21") CORE("3", "31") FORKS,
          { 90, 20, 21, 31 },
          NULL },
    };
    static const size_t channels[] = { 0, 4, 5, 6 };
    const char *dir = *state;
    const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    struct wm_reading readings[MAX_CHANNELS];

    test_write_file(dir, "stat", steps[0].stat);
    test_write_file(dir, "meminfo", GOOD_MEMINFO);
    struct wm_source *source = open_host(dir);
    assert_int_equal(wm_source_channel_count(source), HOST_CHANNELS + 3);
    assert_string_equal(wm_source_channel(source, 6)->label, "cpu3");

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        test_write_file(dir, "stat", steps[i].stat);
        read_all(source, readings);
        for (size_t c = 0; c < ARRAY_LEN(channels); c++) {
            const struct wm_reading *reading = &readings[channels[c]];
            if (steps[i].ticks[c] < 0) {
                assert_int_equal(reading->state, WM_READING_FAILED);
            } else {
                assert_int_equal(reading->state, WM_READING_OK);
                assert_true(reading->value == steps[i].ticks[c] / ticks_per_s);
            }
        }
        if (steps[i].why)
            assert_non_null(strstr(wm_source_why(source, 6), steps[i].why));
        assert_int_equal(readings[1].state, WM_READING_OK);
    }
    wm_source_close(source);
}

static void write_big_stat(const char *dir, unsigned cores, unsigned interrupts)
{
    size_t size = 100 + cores * 40UL + interrupts * 2UL;
    char *text = malloc(size);
    assert_non_null(text);

    char *at = text + snprintf(text, size, "cpu  9 0 0 9\n");
    for (unsigned i = 0; i < cores; i++)
        at += snprintf(at, size - (size_t)(at - text), "cpu%u %u 0 0 9\n", i, i);
    at += snprintf(at, size - (size_t)(at - text), "intr 0");
    for (unsigned i = 0; i < interrupts; i++) {
        *at++ = ' ';
        *at++ = '0';
    }
    snprintf(at, size - (size_t)(at - text), "\nprocesses 7\n");
    test_write_file(dir, "stat", text);
    free(text);
}

/* A text larger than the first buffer, at open and later on. */
static void test_big_machine(void **state)
{
    enum { CORES = 2000 };
    static struct wm_reading readings[HOST_CHANNELS + CORES];
    const char *dir = *state;

    write_big_stat(dir, CORES, 5000);
    struct wm_source *source = open_host(dir);
    size_t count = wm_source_channel_count(source);
    assert_int_equal(count, HOST_CHANNELS + CORES);
    assert_string_equal(wm_source_channel(source, count - 1)->label, "cpu1999");
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    assert_int_equal(readings[count - 1].state, WM_READING_OK);

    write_big_stat(dir, CORES + 100, 200000);
    test_fail_allocation(0);
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    test_fail_allocation(-1);
    assert_int_equal(readings[0].state, WM_READING_FAILED);
    assert_int_equal(readings[count - 1].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, count - 1), "/stat: out of memory"));

    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    assert_int_equal(readings[count - 1].state, WM_READING_OK);
    test_fail_allocation(-1);
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    assert_int_equal(test_fail_allocation(-1), 0);

    write_big_stat(dir, 1, 12000000);
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    assert_int_equal(readings[0].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 0), "/stat: larger than"));
    wm_source_close(source);
}

static void test_allocation_failures(void **state)
{
    const struct wm_source_config config = {
        .procfs = test_source_path("tests/data/proc/vm-2-cores"),
    };
    struct wm_source *source = NULL;
    size_t files = test_count_open_files();
    long step;
    (void)state;

    for (step = 0; step < 50; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_source_open("host", &config, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
        assert_int_equal(test_count_open_files(), files);
    }
    assert_in_range(step, 5, 49);
    wm_source_close(source);
    assert_int_equal(test_count_open_files(), files);
}

static void test_this_machine(void **state)
{
    struct wm_reading before[MAX_CHANNELS], after[MAX_CHANNELS];
    struct wm_source *source = open_host("/proc");
    size_t count = wm_source_channel_count(source);
    (void)state;

    if (count > MAX_CHANNELS) {
        wm_source_close(source);
        print_message("  %zu channels are more than this test has room for\n", count);
        skip();
    }
    read_all(source, before);
    test_fail_allocation(-1);
    read_all(source, after);
    assert_int_equal(test_fail_allocation(-1), 0);
    for (size_t i = 0; i < count; i++) {
        if (after[i].state != WM_READING_OK)
            fail_msg("%s: %s", wm_source_channel(source, i)->label,
                     wm_source_why(source, i));
        if (wm_source_channel(source, i)->kind == WM_COUNTER)
            assert_true(after[i].value >= before[i].value);
    }
    assert_true(after[0].value > 0);
    assert_true(after[1].value > 0 && after[1].value < after[2].value);
    assert_true(after[3].value >= 0);
    wm_source_close(source);
}

UNIT(source_host)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_captured),     IN_SCRATCH(test_broken_files),
        IN_SCRATCH(test_cannot_open),        IN_SCRATCH(test_unreadable),
        IN_SCRATCH(test_no_permission),      IN_SCRATCH(test_cores_come_and_go),
        IN_SCRATCH(test_big_machine),        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
