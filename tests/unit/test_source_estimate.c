/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_estimate.c - the model of a CPU that nothing measures: which one is
 * chosen, its joules for busy times that are known, and the source around it. */
#include "test.h"
#include "test_sensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/cpu/source_estimate_model.h"
#include "source/source_ops.h"
#include "wattmeter/source.h"

#define INTEL(model_, stepping_)                                                           \
    {                                                                                      \
        .vendor = "GenuineIntel", .family = 6, .model = model_, .stepping = stepping_      \
    }
#define AMD(family_, model_)                                                               \
    {                                                                                      \
        .vendor = "AuthenticAMD", .family = family_, .model = model_                       \
    }

static void test_coefficients(void **state)
{
    static const struct {
        struct wm_cpuinfo cpu;
        const char *name;
        double idle, max;
    } cases[] = {
        { INTEL(45, 7), "Sandy Bridge", 2.212, 8.631 },
        { INTEL(79, 1), "Broadwell", 0.713, 3.685 },
        { INTEL(85, 4), "Skylake", 0.613, 4.104 },
        { INTEL(85, 7), "Cascade Lake", 0.690, 4.063 },
        { INTEL(85, 11), "the average CPU of a cloud", 0.74, 3.5 },
        { INTEL(158, 9), "the average CPU of a cloud", 0.74, 3.5 },
        { INTEL(158, 10), "Coffee Lake", 1.138, 5.422 },
        { INTEL(143, 8), "Sapphire Rapids", 1.036, 4.160 },
        { INTEL(9999, 0), "the average CPU of a cloud", 0.74, 3.5 },
        { { .vendor = "GenuineIntel", .family = 15, .model = 85 },
          "the average CPU of a cloud",
          0.74,
          3.5 },
        { AMD(23, 1), "EPYC 1st Gen", 0.847, 2.604 },
        { AMD(23, 49), "EPYC 2nd Gen", 0.474, 1.693 },
        { AMD(23, 113), "the average CPU of a cloud", 0.74, 3.5 },
        { AMD(25, 1), "EPYC 3rd Gen", 0.456, 1.957 },
        { AMD(25, 17), "EPYC 4th Gen", 0.739, 2.282 },
        { AMD(25, 160), "EPYC 4th Gen", 0.739, 2.282 },
        { AMD(26, 2), "the average CPU of a cloud", 0.74, 3.5 },
        { { .is_arm = true }, "Graviton, for any ARM", 0.474, 1.693 },
        { { .vendor = "AuthenticAMD" }, "the average CPU of a cloud", 0.74, 3.5 },
        { { .family = 6, .model = 79 }, "the average CPU of a cloud", 0.74, 3.5 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_cpu_coefficients *found = wm_cpu_coefficients(&cases[i].cpu);

        print_message("  %s %d\n", cases[i].name, (int)cases[i].cpu.model);
        assert_string_equal(found->name, cases[i].name);
        assert_true(found->idle_watts == cases[i].idle);
        assert_true(found->max_watts == cases[i].max);
    }
}

static void test_given(void **state)
{
    static const struct {
        const char *text;
        double idle, half, max; /* watts */
        const char *why;        /* where it is refused */
    } cases[] = {
        { "10:65", 10, 37.5, 65, NULL },
        { "0:1", 0, 0.5, 1, NULL },
        { "7.5:7.5", 7.5, 7.5, 7.5, NULL },
        { "1e1:1e5", 10, 50005, 100000, NULL },
        { "", 0, 0, 0, "is not IDLE:MAX" },
        { ":", 0, 0, 0, "is not IDLE:MAX" },
        { "10", 0, 0, 0, "is not IDLE:MAX" },
        { "10:", 0, 0, 0, "is not IDLE:MAX" },
        { ":65", 0, 0, 0, "is not IDLE:MAX" },
        { "10:65:80", 0, 0, 0, "is not IDLE:MAX" },
        { "10-65", 0, 0, 0, "is not IDLE:MAX" },
        { "10,65", 0, 0, 0, "is not IDLE:MAX" },
        { " 10:65", 0, 0, 0, "is not IDLE:MAX" },
        { "10: 65", 0, 0, 0, "is not IDLE:MAX" },
        { "10:65W", 0, 0, 0, "is not IDLE:MAX" },
        { "0x10:65", 0, 0, 0, "is not IDLE:MAX" },
        { "nan:65", 0, 0, 0, "is not IDLE:MAX" },
        { "10:inf", 0, 0, 0, "is not IDLE:MAX" },
        { "10:1e999", 0, 0, 0, "is not IDLE:MAX" },
        { "-1:65", 0, 0, 0, "more than 0 and at most" },
        { "10:-65", 0, 0, 0, "more than 0 and at most" },
        { "0:0", 0, 0, 0, "more than 0 and at most" },
        { "10:1e9", 0, 0, 0, "more than 0 and at most" },
        { "10:100001", 0, 0, 0, "more than 0 and at most" },
        { "66:65", 0, 0, 0, "more at rest than when busy" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_cpu_model_inputs inputs = {
            .cpu_watts = cases[i].text,
            .sysfs = "/nowhere",
            .cpu_count = 4,
        };
        struct wm_cpu_model model = { .cpu_count = 77 };
        struct wm_error err = { 0 };

        print_message("  '%s'\n", cases[i].text);
        int status = wm_cpu_model_choose(&inputs, &model, &err);
        assert_int_equal(status, cases[i].why ? WM_EINVAL : WM_OK);
        if (cases[i].why) {
            assert_non_null(strstr(err.text, cases[i].why));
            assert_non_null(strstr(err.text, cases[i].text));
            assert_int_equal(model.cpu_count, 77);
            continue;
        }
        assert_int_equal(model.cpu_count, 4);
        assert_false(model.has_memory);
        assert_true(fabs(wm_cpu_model_watts(&model, 0) - cases[i].idle) < 1e-9);
        assert_true(fabs(wm_cpu_model_watts(&model, 0.5) - cases[i].half) < 1e-9);
        assert_true(fabs(wm_cpu_model_watts(&model, 1) - cases[i].max) < 1e-9);
    }
}

#define MAX_FILES 9
#define ZONE(n, file) "class/powercap/intel-rapl:" n "/" file
#define PACKAGE(n, watts)                                                                  \
    { ZONE(n, "name"), "package-" n "\n" },                                                \
        { ZONE(n, "constraint_0_name"), "long_term\n" },                                   \
    {                                                                                      \
        ZONE(n, "constraint_0_max_power_uw"), watts                                        \
    }

/* The power limits of packages, which anybody may read. */
static void test_limit(void **state)
{
    static const struct {
        const char *what;
        bool is_guest;
        struct {
            const char *path, *text;
        } files[MAX_FILES];
        double watts; /* of all packages; 0: none is found */
    } cases[] = {
        { "one package", false, { PACKAGE("0", "165000000\n") }, 165 },
        { "two", false, { PACKAGE("0", "165000000\n"), PACKAGE("1", "165000000\n") }, 330 },
        { "as set, where it is not told how it was made",
          false,
          { PACKAGE("0", "0\n"), { ZONE("0", "constraint_0_power_limit_uw"), "15000000" } },
          15 },
        { "a package twice, and parts of it",
          false,
          { PACKAGE("0", "28000000\n"),
            { "class/powercap/intel-rapl-mmio:0/name", "package-0\n" },
            { "class/powercap/intel-rapl-mmio:0/constraint_0_name", "long_term\n" },
            { "class/powercap/intel-rapl-mmio:0/constraint_0_max_power_uw", "28000000\n" },
            { ZONE("0:0", "name"), "core\n" },
            { ZONE("1", "name"), "psys\n" },
            { ZONE("1", "constraint_0_max_power_uw"), "60000000\n" } },
          28 },
        { "a guest", true, { PACKAGE("0", "165000000\n") }, 0 },
        { "nothing", false, { { "kernel/notes", "" } }, 0 },
        { "AMD, without limits", false, { { ZONE("0", "name"), "package-0\n" } }, 0 },
        { "one that does not tell",
          false,
          { PACKAGE("0", "165000000\n"), { ZONE("1", "name"), "package-1\n" } },
          0 },
        { "no long term",
          false,
          { { ZONE("0", "name"), "package-0\n" },
            { ZONE("0", "constraint_0_name"), "short_term\n" },
            { ZONE("0", "constraint_0_max_power_uw"), "165000000\n" } },
          0 },
        { "too little", false, { PACKAGE("0", "999999\n") }, 0 },
        { "too much", false, { PACKAGE("0", "2000000001\n") }, 0 },
        { "all ones", false, { PACKAGE("0", "18446744073709551615\n") }, 0 },
        { "negative", false, { PACKAGE("0", "-165000000\n") }, 0 },
        { "garbage", false, { PACKAGE("0", "165 W\n") }, 0 },
        { "empty", false, { PACKAGE("0", "") }, 0 },
        { "binary", false, { PACKAGE("0", "\xff\xfe\x01") }, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_cpu_model model;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        for (size_t f = 0; f < MAX_FILES && cases[i].files[f].path; f++)
            test_write_file(*state, cases[i].files[f].path, cases[i].files[f].text);
        const struct wm_cpu_model_inputs inputs = {
            .sysfs = *state,
            .cpuinfo = { .is_guest = cases[i].is_guest },
            .cpu_count = 8,
        };
        assert_int_equal(wm_cpu_model_choose(&inputs, &model, NULL), WM_OK);
        if (cases[i].watts > 0) {
            static const double loads[] = { 0, 0.05, 0.1, 0.3, 0.5, 0.75, 1 };
            static const double parts[] = { 0.12, 0.22, 0.32, 0.535, 0.75, 0.885, 1.02 };
            for (size_t l = 0; l < ARRAY_LEN(loads); l++)
                assert_true(fabs(wm_cpu_model_watts(&model, loads[l]) -
                                 parts[l] * cases[i].watts) < 1e-9);
            assert_non_null(strstr(model.text, "Teads"));
            assert_false(model.has_memory);
        } else {
            assert_non_null(strstr(model.text, "8 vCPU x 0.74-3.50 W"));
            assert_true(fabs(wm_cpu_model_watts(&model, 0.5) - 8 * 2.12) < 1e-9);
            assert_true(model.has_memory);
        }
        assert_int_equal(test_remove_dir(state), 0);
    }
}

#define FIRST_J 1e-6 /* what a total begins with */

static const struct wm_cpu_model straight = { .watts = { 10, 16, 40, 70 }, .cpu_count = 2 };
static const struct wm_cpu_model bent = { .watts = { 12, 32, 75, 102 }, .cpu_count = 2 };

/* Two CPUs whose busy time is known, looked at at some moments. */
static void test_joules(void **state)
{
    enum { MAX_STEPS = 6 };
    static const struct {
        const char *what;
        const struct wm_cpu_model *model;
        struct {
            double seconds, busy_s, joules; /* joules < 0: refused */
        } steps[MAX_STEPS];
    } cases[] = {
        { "at rest", &straight, { { 1, 0, 10 }, { 2, 0, 20 } } },
        { "one of two busy", &straight, { { 1, 1, 40 }, { 3, 3, 120 } } },
        { "both", &straight, { { 1, 2, 70 }, { 2, 4, 140 } } },
        { "now and then", &straight, { { 1, 2, 70 }, { 2, 2, 80 }, { 4, 3, 130 } } },
        { "a straight line does not mind how often it is looked at",
          &straight,
          { { 0.1, 0.2, 7 }, { 0.3, 0.2, 9 }, { 0.6, 0.8, 30 }, { 1, 1, 40 } } },
        { "no time", &straight, { { 0, 0, 0 }, { 1, 1, 40 }, { 1, 1, 40 } } },
        { "a bent one, over windows of its own",
          &bent,
          { { 1, 1, 75 }, { 2, 1, 87 }, { 3, 3, 189 } } },
        { "its window has just begun",
          &bent,
          { { 0.25, 0.5, 25.5 }, { 0.5, 0.5, 37.5 }, { 1, 0.5, 43.5 } } },
        { "a clock tick too many waits for its time",
          &straight,
          { { 0.001, 0.02, 0.07 }, { 0.005, 0.02, 0.35 }, { 1, 0.02, 10.6 } } },
        { "and in the window after, where there was none left",
          &straight,
          { { 1, 2.5, 70 }, { 2, 2.5, 95 }, { 3, 2.5, 105 } } },
        { "a tick back is none", &straight, { { 1, 1, 40 }, { 1.1, 0.98, 41 } } },
        { "never less than before",
          &straight,
          { { 0.2, 0.4, 14 }, { 0.21, 0.1, 14 }, { 1, 0.4, 22 } } },
        { "another machine's time",
          &straight,
          { { 1, 1, 40 }, { 2, 100, -1 }, { 3, 101, 0 }, { 4, 102, 40 } } },
        { "twice", &straight, { { 1, 500, -1 }, { 2, 1, -1 }, { 3, 2, 0 }, { 4, 3, 40 } } },
        { "lost joules, more than there were before, are not made up for",
          &straight,
          { { 0.6, 0, 6 }, { 1, 100, -1 }, { 3, 104, 0 }, { 3.1, 104.2, 7 } } },
        { "huge", &straight, { { 1, 1e300, -1 }, { 2, 1e300, 0 }, { 3, 1e300, 10 } } },
        { "CPUs that were late for a second are no leap",
          &straight,
          { { 1, 3.9, 70 }, { 2, 4, 140 } } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_cpu_estimate estimate;
        const int64_t start_ns = 5000000000;
        double joules = 0;

        print_message("  %s\n", cases[i].what);
        wm_cpu_estimate_start(&estimate, cases[i].model, start_ns, 1000);
        for (size_t s = 0; s < MAX_STEPS; s++) {
            struct wm_error err = { 0 };
            double seconds = cases[i].steps[s].seconds, wanted = cases[i].steps[s].joules;
            if (s > 0 && seconds == 0)
                break;
            int64_t when_ns = start_ns + (int64_t)(seconds * 1e9);
            int status = wm_cpu_estimate_add(
                &estimate, when_ns, 1000 + cases[i].steps[s].busy_s, 2, &joules, &err);
            assert_int_equal(status, wanted < 0 ? WM_EIO : WM_OK);
            if (wanted < 0)
                assert_non_null(strstr(err.text, "busy time went from"));
            else if (fabs(joules - FIRST_J - wanted) > 1e-9 * fmax(wanted, 1))
                fail_msg("step %zu: %.9g J, not %.9g", s, joules, wanted);
        }
    }
}

/* CPUs that come online later have time of their own. */
/* Between two looks at the busy time the joules go on as without work; the next look has
 * what was missing, and no less than was told. */
static void test_rest(void **state)
{
    struct wm_cpu_model model = { .watts = { 10, 20, 45, 60 }, .cpu_count = 2 };
    struct wm_cpu_estimate estimate;
    struct wm_error err = { 0 };
    double joules = 0;

    (void)state;
    wm_cpu_estimate_start(&estimate, &model, 0, 0);
    double start = wm_cpu_estimate_rest(&estimate, 0);
    assert_true(fabs(wm_cpu_estimate_rest(&estimate, 1000000) - start - 0.01) < 1e-9);
    assert_true(fabs(wm_cpu_estimate_rest(&estimate, 500000) - start - 0.01) < 1e-9);
    assert_int_equal(wm_cpu_estimate_add(&estimate, 20000000, 0.04, 2, &joules, &err), 0);
    assert_true(fabs(joules - start - 60 * 0.02) < 1e-9);
    assert_true(fabs(wm_cpu_estimate_rest(&estimate, 30000000) - joules - 0.1) < 1e-9);
    assert_int_equal(wm_cpu_estimate_add(&estimate, 40000000, 0.04, 2, &joules, &err), 0);
    assert_true(joules - start >= 60 * 0.02 + 0.1);
}

static void test_more_cpus(void **state)
{
    struct wm_cpu_estimate estimate;
    double joules;
    (void)state;

    wm_cpu_estimate_start(&estimate, &straight, 0, 0);
    assert_int_equal(wm_cpu_estimate_add(&estimate, 1000000000, 4, 4, &joules, NULL),
                     WM_OK);
    assert_true(fabs(joules - 70 - FIRST_J) < 1e-9);
    assert_int_equal(wm_cpu_estimate_add(&estimate, 2000000000, 5, 1, &joules, NULL),
                     WM_OK);
    assert_true(fabs(joules - 110 - FIRST_J) < 1e-9);
}

/* That the total falls, below any beginning before, is how it tells that joules were
 * lost, however often, and though nothing was counted before. */
static void test_loss_shows(void **state)
{
    struct wm_cpu_estimate estimate;
    double joules, before;
    (void)state;

    wm_cpu_estimate_start(&estimate, &straight, 0, 0);
    assert_int_equal(wm_cpu_estimate_add(&estimate, 0, 0, 2, &before, NULL), WM_OK);
    for (int64_t i = 1; i <= 5; i++) {
        double busy_s = (double)i * 1000;
        int64_t when_ns = i * 1000000000;

        assert_int_equal(wm_cpu_estimate_add(&estimate, when_ns, busy_s, 2, &joules, NULL),
                         WM_EIO);
        assert_int_equal(
            wm_cpu_estimate_add(&estimate, when_ns + 500000000, busy_s, 2, &joules, NULL),
            WM_OK);
        assert_true(joules < before && joules > 0);
        before = joules;
    }
}

static void write_stat(const char *dir, unsigned busy, unsigned stolen)
{
    char text[256];

    snprintf(text, sizeof(text),
             "cpu  %u 0 0 900 5 0 0 %u 0 0\ncpu0 %u 0 0 450 5 0 0 %u 0 0\n"
             "cpu1 0 0 0 450 0 0 0 0 0 0\nctxt 1\nprocesses 7\n",
             busy, stolen, busy, stolen);
    test_write_file(dir, "stat", text);
}

#define GENOA                                                                              \
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"         \
    "model name\t: AMD EPYC 9R14\nstepping\t: 1\nflags\t\t: fpu hypervisor\n\n"
#define TWO_GIB "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n"

static struct wm_source *open_estimate(const char *dir, const char *cpu_watts)
{
    const struct wm_source_config config = {
        .procfs = dir,
        .sysfs = dir,
        .cpu_watts = cpu_watts,
    };
    struct wm_source *source = NULL;
    struct wm_error err;

    if (wm_source_open("estimate", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static double seconds_between(const struct wm_reading *before,
                              const struct wm_reading *after)
{
    return (double)(after->when_ns - before->when_ns) / 1e9;
}

/* The joules of the source between two of its readings. Ten milliseconds of a CPU are
 * one tick of /proc/stat, whatever passes here on the clock. */
static void test_source(void **state)
{
    const char *dir = *state;
    struct wm_reading before[2], after[2], again[2];

    write_stat(dir, 100, 50);
    test_write_file(dir, "cpuinfo", GENOA);
    test_write_file(dir, "meminfo", TWO_GIB);
    struct wm_source *source = open_estimate(dir, "10:70");
    assert_int_equal(wm_source_channel_count(source), 2);
    assert_string_equal(wm_source_detail(source),
                        "estimated: 10 to 70 W by load, as given; memory 2.0 GiB x "
                        "0.3725 W, Green Algorithms");
    for (size_t i = 0; i < 2; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        assert_string_equal(channel->source, "estimate");
        assert_string_equal(channel->device, i ? "dram-estimate" : "cpu-estimate");
        assert_string_equal(channel->label, i ? "dram" : "cpu");
        assert_string_equal(channel->metric, "energy");
        assert_string_equal(channel->unit, "J");
        assert_int_equal(channel->kind, WM_COUNTER);
        assert_int_equal(channel->origin, WM_ESTIMATED);
        assert_int_equal(channel->period_ns, i ? 0 : 20000000);
        assert_described(channel);
        assert_true(fabs(channel->sensor.range - (i ? 2 * 0.3725 : 70)) <= 0.01);
        assert_int_equal(channel->device_kind, i ? WM_DEVICE_DRAM : WM_DEVICE_CPU);
        assert_int_equal(channel->model != NULL, i == 0);
    }
    assert_string_equal(wm_source_channel(source, 0)->model, "AMD EPYC 9R14");
    assert_non_null(strstr(wm_source_summary("estimate"), "an estimate"));

    /* What is stolen is spent by others. The clock has to go on by as much as the
     * busy time, two ticks of two CPUs. */
    assert_int_equal(wm_source_read(source, before, 2, NULL), WM_OK);
    usleep(30 * 1000);
    write_stat(dir, 100 + 2, 50 + 300);
    test_fail_allocation(-1);
    assert_int_equal(wm_source_read(source, after, 2, NULL), WM_OK);
    assert_int_equal(test_fail_allocation(-1), 0);
    assert_int_equal(after[0].state, WM_READING_OK);
    assert_int_equal(after[1].state, WM_READING_OK);
    double seconds = seconds_between(&before[0], &after[0]);
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    assert_true(fabs(after[0].value - before[0].value - 10 * seconds -
                     60.0 / 2 * 2 * tick_s) < 1e-9);
    assert_true(fabs(after[1].value - before[1].value - 0.745 * seconds) < 1e-9);
    assert_true(before[0].value >= 0 && before[1].value >= 0);

    /* It does not look again so soon, and goes on with what is drawn without work. On a
     * busy machine it is not so soon. */
    unsigned busy = 100 + 2;
    do {
        usleep(30 * 1000);
        assert_int_equal(wm_source_read(source, after, 2, NULL), WM_OK);
        write_stat(dir, ++busy, 50 + 300);
        usleep(1000);
        assert_int_equal(wm_source_read(source, again, 2, NULL), WM_OK);
        seconds = seconds_between(&after[0], &again[0]);
        assert_true(seconds >= 0.001);
    } while (seconds >= 0.02);
    assert_true(fabs(again[0].value - after[0].value - 10 * seconds) < 1e-9);
    assert_true(fabs(again[1].value - after[1].value - 0.745 * seconds) < 1e-9);

    /* It says so once where the busy time cannot be. */
    write_stat(dir, 4000000, 50);
    usleep(30 * 1000);
    assert_int_equal(wm_source_read(source, after, 2, NULL), WM_OK);
    assert_int_equal(after[0].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 0), "busy time went"));
    assert_null(wm_source_why(source, 1));
    assert_int_equal(wm_source_read(source, after, 2, NULL), WM_OK);
    assert_int_equal(after[0].state, WM_READING_OK);
    assert_null(wm_source_why(source, 0));

    test_write_file(dir, "stat", "cpu 1 2\n");
    usleep(30 * 1000);
    assert_int_equal(wm_source_read(source, after, 2, NULL), WM_OK);
    assert_int_equal(after[0].state, WM_READING_FAILED);
    assert_non_null(strstr(wm_source_why(source, 0), "/stat: not what the kernel"));
    wm_source_close(source);
}

static void test_choice(void **state)
{
    static const struct {
        const char *what;
        const char *cpuinfo, *meminfo, *cpu_watts;
        size_t channels;
        const char *detail;
    } cases[] = {
        { "a cloud's CPU", GENOA, TWO_GIB, NULL, 1,
          "estimated: 2 vCPU x 0.74-2.28 W by load, memory included, Cloud Carbon "
          "Footprint's coefficients for EPYC 4th Gen" },
        { "what was given comes first", GENOA, TWO_GIB, "1:2", 2,
          "estimated: 1 to 2 W by load, as given; memory 2.0 GiB x 0.3725 W, Green "
          "Algorithms" },
        { "no memory told", GENOA, NULL, "1:2", 1,
          "estimated: 1 to 2 W by load, as given" },
        { "broken memory", GENOA, "MemTotal: -1 kB\n", "1:2", 1,
          "estimated: 1 to 2 W by load, as given" },
        { "an unknown CPU", NULL, NULL, NULL, 1,
          "estimated: 2 vCPU x 0.74-3.50 W by load, memory included, Cloud Carbon "
          "Footprint's coefficients for the average CPU of a cloud" },
        { "a broken text of it", "\xff\xfe", NULL, NULL, 1,
          "estimated: 2 vCPU x 0.74-3.50 W by load, memory included, Cloud Carbon "
          "Footprint's coefficients for the average CPU of a cloud" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        write_stat(*state, 1, 0);
        if (cases[i].cpuinfo)
            test_write_file(*state, "cpuinfo", cases[i].cpuinfo);
        if (cases[i].meminfo)
            test_write_file(*state, "meminfo", cases[i].meminfo);
        struct wm_source *source = open_estimate(*state, cases[i].cpu_watts);
        assert_int_equal(wm_source_channel_count(source), cases[i].channels);
        assert_string_equal(wm_source_detail(source), cases[i].detail);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *what;
        const char *stat, *cpu_watts;
        int status;
        const char *why;
    } cases[] = {
        { "no stat", NULL, NULL, WM_ENOENT, "stat: No such file" },
        { "an empty one", "", NULL, WM_EFORMAT, "not what the kernel writes" },
        { "binary", "\x7f\x45LF\x01", NULL, WM_EFORMAT, "not what the kernel writes" },
        { "no CPU", "cpu  1 0 0 9\nprocesses 7\n", NULL, WM_EFORMAT, "lists no CPU" },
        { "wrong watts", "cpu  1 0 0 9\ncpu0 1 0 0 9\nprocesses 7\n", "65:10", WM_EINVAL,
          "more at rest" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        if (cases[i].stat)
            test_write_file(*state, "stat", cases[i].stat);
        const struct wm_source_config config = {
            .procfs = *state,
            .sysfs = *state,
            .cpu_watts = cases[i].cpu_watts,
        };
        assert_int_equal(wm_source_open("estimate", &config, &source, &err),
                         cases[i].status);
        assert_null(source);
        assert_non_null(strstr(err.text, cases[i].why));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_allocation_failures(void **state)
{
    const struct wm_source_config config = { .procfs = *state, .sysfs = *state };
    struct wm_source *source = NULL;
    long step;

    write_stat(*state, 1, 0);
    for (step = 0; step < 20; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_source_open("estimate", &config, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
    }
    assert_in_range(step, 2, 19);
    wm_source_close(source);
}

/* The machine that this runs on. */
static void test_this_machine(void **state)
{
    struct wm_source *source = NULL;
    struct wm_reading readings[2];
    struct wm_error err;
    (void)state;

    unsetenv("WATTMETER_PROCFS");
    unsetenv("WATTMETER_SYSFS");
    if (wm_source_open("estimate", NULL, &source, &err) < 0)
        fail_msg("%s", err.text);
    print_message("  %s\n", wm_source_detail(source));
    size_t count = wm_source_channel_count(source);
    usleep(20 * 1000);
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(readings[i].state, WM_READING_OK);
        assert_true(readings[i].value > 0 && readings[i].value < 1e6);
    }
    wm_source_close(source);
}

UNIT(source_estimate)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coefficients),  cmocka_unit_test(test_given),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_joules),
        cmocka_unit_test(test_rest),          cmocka_unit_test(test_more_cpus),
        cmocka_unit_test(test_loss_shows),    IN_SCRATCH(test_source),
        cmocka_unit_test(test_choice),        cmocka_unit_test(test_refused),
        IN_SCRATCH(test_allocation_failures), cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
