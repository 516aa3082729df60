/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_nvml_calls.c - power and processes of one GPU, by calls that stand here in
 * the place of a driver's: answers that the fake driver does not give, at times
 * that nobody has to wait for.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "source/gpu/nvml/source_nvml_processes.h"

/* What the calls answer, and what they were asked. */
static struct {
    struct nvml_field_value field;
    bool leaves_field;
    int fields_asked, field_calls;

    const unsigned *pids;
    unsigned pid_count;
    int graphics_status, graphics_calls;

    unsigned celsius;
    int temperature_status, newer_calls;

    int status;
    const struct nvml_process_sample *samples;
    unsigned sample_count;
    unsigned claimed; /* as the count; 0: the truth */
    int sample_calls;
    unsigned long long last_seen_us;
} driver;

static int answer_fields(nvml_device device, int count, struct nvml_field_value *values)
{
    (void)device;
    driver.field_calls++;
    driver.fields_asked = count;
    for (int i = 0; i < count && !driver.leaves_field; i++) {
        values[i].type = driver.field.type;
        values[i].status = driver.field.status;
        values[i].value = driver.field.value;
    }
    return NVML_SUCCESS;
}

static int answer_usage(nvml_device device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 7000;
    return NVML_SUCCESS;
}

static int answer_list(nvml_device device, unsigned *count, void *entries)
{
    struct nvml_process_v2 *list = entries;

    (void)device;
    if (*count < driver.pid_count) {
        *count = driver.pid_count;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < driver.pid_count; i++)
        list[i] = (struct nvml_process_v2) { driver.pids[i], 1000, ~0U, ~0U };
    *count = driver.pid_count;
    return NVML_SUCCESS;
}

static int answer_graphics(nvml_device device, unsigned *count, void *entries)
{
    (void)device;
    (void)entries;
    driver.graphics_calls++;
    *count = 0;
    return driver.graphics_status;
}

static int answer_samples(nvml_device device, struct nvml_process_sample *samples,
                          unsigned *count, unsigned long long last_seen_us)
{
    (void)device;
    driver.sample_calls++;
    driver.last_seen_us = last_seen_us;
    int status = driver.status;
    if (status == NVML_SUCCESS && *count < driver.sample_count)
        status = NVML_ERROR_INSUFFICIENT_SIZE;
    if (status == NVML_SUCCESS && driver.sample_count > 0)
        memcpy(samples, driver.samples, driver.sample_count * sizeof(*samples));
    *count = driver.claimed ? driver.claimed : driver.sample_count;
    return status;
}

static int answer_celsius(nvml_device device, int sensor, unsigned *celsius)
{
    (void)device;
    assert_int_equal(sensor, NVML_TEMPERATURE_GPU);
    *celsius = driver.celsius;
    return driver.temperature_status;
}

static int answer_newer_celsius(nvml_device device, struct nvml_temperature_v1 *temperature)
{
    (void)device;
    assert_int_equal(temperature->sensor, NVML_TEMPERATURE_GPU);
    driver.newer_calls++;
    temperature->celsius = (int)driver.celsius;
    return NVML_SUCCESS;
}

static const struct nvml_api calls = {
    .lists = { [NVML_LIST_COMPUTE] = { .v3 = answer_list },
               [NVML_LIST_GRAPHICS] = { .v3 = answer_graphics } },
    .process_utilization = answer_samples,
};

static void test_types_of_power(void **state)
{
    static const struct {
        const char *what;
        struct nvml_field_value field;
        int status;
        double watts;
    } cases[] = {
#define VALUE(type_, member, number) { .type = type_, .value = { .member = number } }
        { "unsigned", VALUE(NVML_VALUE_UNSIGNED_INT, unsigned_int, 71500), 0, 71.5 },
        { "none", VALUE(NVML_VALUE_UNSIGNED_INT, unsigned_int, 0), 0, 0 },
        { "unsigned long", VALUE(NVML_VALUE_UNSIGNED_LONG, unsigned_long, 71500), 0, 71.5 },
        { "unsigned long long",
          VALUE(NVML_VALUE_UNSIGNED_LONG_LONG, unsigned_long_long, 71500), 0, 71.5 },
        { "long long", VALUE(NVML_VALUE_SIGNED_LONG_LONG, signed_long_long, 71500), 0,
          71.5 },
        { "int", VALUE(NVML_VALUE_SIGNED_INT, signed_int, 71500), 0, 71.5 },
        { "double", VALUE(NVML_VALUE_DOUBLE, real, 71500.5), 0, 71.5005 },
        { "not available", VALUE(NVML_VALUE_UNSIGNED_INT, unsigned_int, ~0U),
          NVML_IMPOSSIBLE_VALUE, 0 },
        { "not available, long", VALUE(NVML_VALUE_UNSIGNED_LONG, unsigned_long, ~0UL),
          NVML_IMPOSSIBLE_VALUE, 0 },
        { "not available, long long",
          VALUE(NVML_VALUE_UNSIGNED_LONG_LONG, unsigned_long_long, ~0ULL),
          NVML_IMPOSSIBLE_VALUE, 0 },
        { "below zero", VALUE(NVML_VALUE_SIGNED_INT, signed_int, -1), NVML_IMPOSSIBLE_VALUE,
          0 },
        { "far below zero",
          VALUE(NVML_VALUE_SIGNED_LONG_LONG, signed_long_long, -71500000000),
          NVML_IMPOSSIBLE_VALUE, 0 },
        { "not a number", VALUE(NVML_VALUE_DOUBLE, real, NAN), NVML_IMPOSSIBLE_VALUE, 0 },
        { "infinite", VALUE(NVML_VALUE_DOUBLE, real, INFINITY), NVML_IMPOSSIBLE_VALUE, 0 },
        { "16 bits", VALUE(NVML_VALUE_UNSIGNED_SHORT, unsigned_short, 65000),
          NVML_IMPOSSIBLE_VALUE, 0 },
        { "a type to come", VALUE(7, unsigned_int, 71500), NVML_IMPOSSIBLE_VALUE, 0 },
        { "no type", VALUE(~0U, unsigned_int, 71500), NVML_IMPOSSIBLE_VALUE, 0 },
        { "a failure", { .status = NVML_ERROR_TIMEOUT }, NVML_ERROR_TIMEOUT, 0 },
#undef VALUE
    };
    const struct nvml_api api = { .field_values = answer_fields, .power_mw = answer_usage };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nvml_power power = { 0 };

        print_message("  %s\n", cases[i].what);
        memset(&driver, 0, sizeof(driver));
        driver.field = cases[i].field;
        nvml_power_read(&power, &api, NULL);
        for (size_t v = 0; v < NVML_POWER_COUNT; v++) {
            assert_int_equal(power.values[v].status, cases[i].status);
            assert_int_equal(power.values[v].way, NVML_POWER_BY_GPU_FIELD);
            assert_true(power.values[v].watts == cases[i].watts);
        }
        assert_int_equal(driver.field_calls, 1);
        assert_int_equal(driver.fields_asked, NVML_POWER_COUNT);
    }
}

static void test_power_is_not_made_up(void **state)
{
    const struct nvml_api api = { .field_values = answer_fields };
    struct nvml_power power = { 0 };
    (void)state;

    memset(&driver, 0, sizeof(driver));
    driver.leaves_field = true;
    nvml_power_read(&power, &api, NULL);
    assert_int_equal(power.values[NVML_POWER_INSTANT].status, NVML_ERROR_NO_DATA);
    assert_int_equal(power.values[NVML_POWER_AVERAGE].status, NVML_ERROR_NO_DATA);
}

/* One call for the GPU's, one for the module's, and never again. */
static void test_unsupported_power_is_not_asked_again(void **state)
{
    const struct nvml_api api = { .field_values = answer_fields, .power_mw = answer_usage };
    struct nvml_power power = { 0 };
    (void)state;

    memset(&driver, 0, sizeof(driver));
    driver.field.status = NVML_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < 3; i++) {
        nvml_power_read(&power, &api, NULL);
        assert_int_equal(driver.field_calls, 2);
        assert_int_equal(power.values[NVML_POWER_INSTANT].status, NVML_SUCCESS);
        assert_true(power.values[NVML_POWER_INSTANT].watts == 7);
        assert_int_equal(power.values[NVML_POWER_AVERAGE].status, NVML_ERROR_NOT_SUPPORTED);
    }

    power = (struct nvml_power) { 0 };
    driver.field_calls = 0;
    driver.field = (struct nvml_field_value) { .type = NVML_VALUE_SIGNED_INT,
                                               .value = { .signed_int = 5000 } };
    nvml_power_read(&power, &api, NULL);
    assert_int_equal(driver.field_calls, 1);
    assert_true(power.values[NVML_POWER_INSTANT].watts == 5);
}

/* By the older call, and by the newer one where the driver has no other. */
static void test_temperatures(void **state)
{
    static const struct {
        unsigned told;
        int status; /* NVML_SUCCESS: it is what was told */
    } cases[] = {
        { 0, 0 },
        { 61, 0 },
        { (unsigned)-7, 0 },
        { (unsigned)-273, 0 },
        { (unsigned)-274, NVML_IMPOSSIBLE_VALUE },
        { 1000, 0 },
        { 1001, NVML_IMPOSSIBLE_VALUE },
        { 65535, NVML_IMPOSSIBLE_VALUE },
        { 0x80000000, NVML_IMPOSSIBLE_VALUE },
        { 0x7fffffff, NVML_IMPOSSIBLE_VALUE },
    };
    const struct nvml_api api = { .temperature = answer_celsius,
                                  .temperature_v = answer_newer_celsius };
    (void)state;

    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        bool is_newer = i >= ARRAY_LEN(cases);
        unsigned told = cases[i % ARRAY_LEN(cases)].told;
        int status = cases[i % ARRAY_LEN(cases)].status;
        double celsius = 0.5;

        print_message("  %#x\n", told);
        memset(&driver, 0, sizeof(driver));
        driver.celsius = told;
        driver.temperature_status = is_newer ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_SUCCESS;
        assert_int_equal(nvml_temperature(&api, NULL, &celsius), status);
        assert_true(celsius == (status == NVML_SUCCESS ? (int)told : 0.5));
        assert_int_equal(driver.newer_calls, is_newer);
    }

    driver.temperature_status = NVML_ERROR_TIMEOUT;
    double celsius = 0.5;
    assert_int_equal(nvml_temperature(&api, NULL, &celsius), NVML_ERROR_TIMEOUT);
    assert_true(celsius == 0.5);
}

/* "7=0.5 8=failed": the SM use of each process. */
static const char *sm_text(const struct nvml_processes *processes)
{
    static const char *const states[] = {
        [WM_READING_NONE] = "none",     [WM_READING_UNSUPPORTED] = "unsupported",
        [WM_READING_DENIED] = "denied", [WM_READING_FAILED] = "failed",
        [WM_READING_STALE] = "stale",
    };
    static char text[256];
    int length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < processes->count; i++) {
        const struct nvml_process *process = &processes->found[i];
        double ratio;
        enum wm_reading_state state =
            nvml_state(nvml_process_share(processes, process->sample->sm, &ratio));
        char number[32];

        assert_true(process->knows_memory);
        snprintf(number, sizeof(number), "%g", ratio);
        length +=
            snprintf(text + length, sizeof(text) - (size_t)length, "%s%u=%s", i ? " " : "",
                     process->user.pid, state == WM_READING_OK ? number : states[state]);
    }
    return text;
}

/* How long after a call the next one is due. */
static void test_pace(void **state)
{
    static const struct {
        const char *what;
        size_t gpus;
        int64_t costs_us[6]; /* of calls that have been made, up to the first 0 */
        int64_t pause_ms;
    } cases[] = {
        { "not made yet", 1, { 0 }, 0 },
        { "of microseconds", 64, { 5, 49 }, 0 },
        { "of an eighth of a millisecond", 1, { 125, 125 }, 200 },
        { "an H100's counter", 1, { 2400, 2400 }, 3840 },
        { "eight of them", 8, { 2400, 2400 }, 30720 },
        { "the first call starts something", 1, { 900000 }, 1000 },
        { "and says nothing of the next", 1, { 900000, 2400 }, 3840 },
        { "no rarer than once a minute", 64, { 2400, 2400 }, 60000 },
        { "one that was held up", 1, { 2000, 2000, 2000, 10000 }, 6400 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nvml_pace pace = { .gpus = cases[i].gpus };
        int64_t now_ns = WM_NS_PER_S, due_ns = now_ns + cases[i].pause_ms * WM_NS_PER_MS;

        print_message("  %s\n", cases[i].what);
        for (size_t k = 0; cases[i].costs_us[k] > 0; k++)
            nvml_pace_note(&pace, now_ns, cases[i].costs_us[k] * 1000);
        assert_true(nvml_pace_is_due(&pace, now_ns, true));
        assert_true(nvml_pace_is_due(&pace, due_ns + WM_NS_PER_MS, false));
        if (cases[i].pause_ms > 0)
            assert_false(nvml_pace_is_due(&pace, due_ns - WM_NS_PER_MS, false));
    }
}

/* Samples arrive when the driver has some; each step is later than the last. */
static void test_samples_over_time(void **state)
{
    static const struct {
        const char *what;
        int64_t now_ms;
        int status;
        struct nvml_process_sample samples[3]; /* up to the first of pid 0 */
        long long asked_since_us;              /* below 0: was not asked */
        const char *expected;
    } steps[] = {
        { "the first",
          1000,
          0,
          { { 7, 100, 50, 0, 0, 0 }, { 8, 110, 20, 0, 0, 0 } },
          0,
          "7=0.5 8=0.2" },
        { "too soon to ask", 1099, 0, { { 7, 200, 90, 0, 0, 0 } }, -1, "7=0.5 8=0.2" },
        { "nothing newer yet", 1100, NVML_ERROR_NOT_FOUND, { { 0 } }, 110, "7=0.5 8=0.2" },
        { "an empty list says no more", 1200, 0, { { 0 } }, 110, "7=0.5 8=0.2" },
        { "one was idle", 1300, 0, { { 7, 300, 60, 0, 0, 0 } }, 110, "7=0.6 8=0" },
        { "the newest of several",
          1500,
          0,
          { { 7, 420, 10, 0, 0, 0 }, { 7, 500, 30, 0, 0, 0 }, { 7, 450, 20, 0, 0, 0 } },
          300,
          "7=0.3 8=0" },
        { "repeated samples are old",
          1700,
          0,
          { { 8, 400, 90, 0, 0, 0 }, { 8, 500, 90, 0, 0, 0 } },
          500,
          "7=0.3 8=0" },
        { "one that cannot be",
          1900,
          0,
          { { 8, ~0ULL, 200, 0, 0, 0 }, { 7, 600, 40, 0, 0, 0 } },
          500,
          "7=0.4 8=failed" },
        { "its time counts for nothing",
          2100,
          NVML_ERROR_NOT_FOUND,
          { { 0 } },
          600,
          "7=0.4 8=failed" },
        { "still not too old",
          3900,
          NVML_ERROR_NOT_FOUND,
          { { 0 } },
          600,
          "7=0.4 8=failed" },
        { "all were idle", 4000, NVML_ERROR_NOT_FOUND, { { 0 } }, 600, "7=0 8=0" },
        { "a failure with nothing to hold",
          4200,
          NVML_ERROR_TIMEOUT,
          { { 0 } },
          600,
          "7=failed 8=failed" },
        { "back again", 4400, 0, { { 8, 700, 100, 0, 0, 0 } }, 600, "7=0 8=1" },
        { "a failure in between", 4600, NVML_ERROR_TIMEOUT, { { 0 } }, 700, "7=0 8=1" },
        { "a failure that lasts",
          6500,
          NVML_ERROR_TIMEOUT,
          { { 0 } },
          700,
          "7=failed 8=failed" },
        { "of somebody who is not listed",
          6700,
          0,
          { { 9, 800, 50, 0, 0, 0 } },
          700,
          "7=0 8=0" },
        { "no permission",
          9000,
          NVML_ERROR_NO_PERMISSION,
          { { 0 } },
          800,
          "7=denied 8=denied" },
        { "permission", 9200, 0, { { 7, 900, 1, 0, 0, 0 } }, 800, "7=0.01 8=0" },
        { "not supported any more",
          12000,
          NVML_ERROR_NOT_SUPPORTED,
          { { 0 } },
          900,
          "7=unsupported 8=unsupported" },
        { "which is for good",
          20000,
          0,
          { { 7, 999, 50, 0, 0, 0 } },
          -1,
          "7=unsupported 8=unsupported" },
    };
    static const unsigned pids[] = { 7, 8 };
    struct nvml_processes processes = { 0 };
    (void)state;

    memset(&driver, 0, sizeof(driver));
    driver.pids = pids;
    driver.pid_count = 2;
    assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        driver.status = steps[i].status;
        driver.samples = steps[i].samples;
        driver.sample_count = 0;
        while (driver.sample_count < 3 && steps[i].samples[driver.sample_count].pid)
            driver.sample_count++;
        driver.sample_calls = 0;
        processes.pace.due_ns = 0; /* whatever CPU time the last call took here */
        nvml_processes_read(&processes, &calls, NULL, NULL, steps[i].now_ms * WM_NS_PER_MS,
                            false);
        assert_string_equal(sm_text(&processes), steps[i].expected);
        assert_int_equal(driver.sample_calls, steps[i].asked_since_us >= 0);
        if (driver.sample_calls)
            assert_int_equal(driver.last_seen_us, steps[i].asked_since_us);
    }

    nvml_processes_restart(&processes);
    nvml_processes_read(&processes, &calls, NULL, NULL, 20001 * WM_NS_PER_MS, false);
    assert_string_equal(sm_text(&processes), "7=0.5 8=0");
    assert_int_equal(driver.last_seen_us, 0);
    nvml_processes_release(&processes);
}

/* As many samples as one likes, but no count that is not one. */
static void test_room_for_samples(void **state)
{
    static const struct {
        const char *what;
        unsigned count, claimed;
        int status;
        int asked;
        const char *expected;
    } cases[] = {
        { "as many as fit", 32, 0, 0, 1, "7=0.32" },
        { "more", 33, 0, 0, 2, "7=0.33" },
        { "many more", 100, 0, 0, 2, "7=1" },
        { "never enough", 1, 100, NVML_ERROR_INSUFFICIENT_SIZE, 2, "7=failed" },
        { "too few for that", 1, 32, NVML_ERROR_INSUFFICIENT_SIZE, 1, "7=failed" },
        { "no process has so many", 1, 65537, NVML_ERROR_INSUFFICIENT_SIZE, 1, "7=failed" },
        { "more than fitted", 1, 33, 0, 1, "7=failed" },
        { "all ones", 1, ~0U, 0, 1, "7=failed" },
    };
    static const unsigned pid = 7;
    struct nvml_process_sample samples[100];
    (void)state;

    for (unsigned i = 0; i < ARRAY_LEN(samples); i++)
        samples[i] = (struct nvml_process_sample) { 7, 1000 + i, i + 1, 0, 0, 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nvml_processes processes = { 0 };

        print_message("  %s\n", cases[i].what);
        memset(&driver, 0, sizeof(driver));
        driver.pids = &pid;
        driver.pid_count = 1;
        driver.samples = samples;
        driver.sample_count = cases[i].count;
        driver.claimed = cases[i].claimed;
        driver.status = cases[i].status;
        assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
        nvml_processes_read(&processes, &calls, NULL, NULL, WM_NS_PER_S, false);
        assert_string_equal(sm_text(&processes), cases[i].expected);
        assert_int_equal(driver.sample_calls, cases[i].asked);
        nvml_processes_release(&processes);
    }
}

static void test_unsupported_lists_are_not_asked_again(void **state)
{
    static const struct {
        int status;
        int asked; /* in three readings */
    } cases[] = {
        { NVML_SUCCESS, 3 },
        { NVML_ERROR_TIMEOUT, 3 },
        { NVML_ERROR_NOT_SUPPORTED, 1 },
        { NVML_ERROR_FUNCTION_NOT_FOUND, 1 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct nvml_processes processes = { 0 };

        memset(&driver, 0, sizeof(driver));
        driver.graphics_status = cases[i].status;
        assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
        for (int64_t n = 1; n <= 3; n++)
            nvml_processes_read(&processes, &calls, NULL, NULL, n * WM_NS_PER_S, false);
        assert_int_equal(driver.graphics_calls, cases[i].asked);
        nvml_processes_restart(&processes);
        nvml_processes_read(&processes, &calls, NULL, NULL, 4 * WM_NS_PER_S, false);
        assert_int_equal(driver.graphics_calls, cases[i].asked + 1);
        nvml_processes_release(&processes);
    }
}

/* In the second after all of them were; those who compute always are. */
static void test_empty_lists_are_seldom_asked_for(void **state)
{
    static const struct {
        int64_t now_ms;
        bool must;
        int asked; /* so far */
    } steps[] = {
        { 1000, false, 1 }, { 1100, false, 1 }, { 1900, false, 1 }, { 1950, true, 2 },
        { 2900, false, 2 }, { 2950, false, 3 }, { 3000, false, 3 },
    };
    static const unsigned pids[] = { 7, 8 };
    struct nvml_processes processes = { 0 };
    (void)state;

    memset(&driver, 0, sizeof(driver));
    driver.pids = pids;
    assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        driver.pid_count = (unsigned)i % 3;
        nvml_processes_read(&processes, &calls, NULL, NULL, steps[i].now_ms * WM_NS_PER_MS,
                            steps[i].must);
        assert_int_equal(driver.graphics_calls, steps[i].asked);
        assert_int_equal(processes.count, driver.pid_count);
    }
    nvml_processes_release(&processes);
}

/* Not all is known in the one reading in which a list fails, and what is known there
 * is as many processes as there is room for. */
static void test_list_that_fails_once(void **state)
{
    static unsigned pids[64];
    struct nvml_processes processes = { 0 };
    (void)state;

    for (unsigned i = 0; i < ARRAY_LEN(pids); i++)
        pids[i] = 100 + i;
    memset(&driver, 0, sizeof(driver));
    driver.pids = pids;
    assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
    for (unsigned count = 0; count <= ARRAY_LEN(pids); count++) {
        driver.pid_count = count;
        driver.graphics_status = NVML_ERROR_TIMEOUT;
        assert_int_equal(nvml_processes_read(&processes, &calls, NULL, NULL,
                                             (int64_t)count * WM_NS_PER_S + 1, false),
                         NVML_ERROR_TIMEOUT);
        assert_int_equal(processes.count, count);
        for (unsigned i = 0; i < count; i++)
            assert_true(processes.found[i].knows_memory);

        driver.graphics_status = NVML_SUCCESS;
        nvml_processes_read(&processes, &calls, NULL, NULL,
                            (int64_t)count * WM_NS_PER_S + 2, false);
        assert_int_equal(processes.count, count);
    }
    nvml_processes_release(&processes);
}

/* The place in the driver's list below. */
static unsigned number_of(unsigned pid)
{
    return pid % 4096 == 0 ? 2 * (pid / 4096 - 1) : 2 * (pid - 1) + 1;
}

/* Pids that the driver does not tell in their order, before and after the list has grown.
 */
static void test_many_pids(void **state)
{
    enum { MOST = 2000 };
    static unsigned pids[MOST];
    static struct nvml_process_sample samples[MOST];
    static const unsigned counts[] = { 0, 1, 31, 32, 33, 500, MOST, 40, 1 };
    struct nvml_processes processes = { 0 };
    (void)state;

    memset(&driver, 0, sizeof(driver));
    for (unsigned i = 0; i < MOST; i++) {
        pids[i] = (i % 2 ? 1U : 4096U) * (i / 2 + 1);
        samples[i] = (struct nvml_process_sample) { pids[i], i + 1, i % 101, 0, 0, 0 };
    }
    driver.pids = pids;
    driver.samples = samples;
    assert_int_equal(nvml_processes_init(&processes), NVML_SUCCESS);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        print_message("  %u processes\n", counts[i]);
        driver.pid_count = driver.sample_count = counts[i];
        nvml_processes_restart(&processes);
        nvml_processes_read(&processes, &calls, NULL, NULL, (int64_t)i * WM_NS_PER_S + 1,
                            false);
        assert_int_equal(processes.count, counts[i]);
        for (unsigned k = 0; k < counts[i]; k++) {
            unsigned pid = processes.found[k].user.pid;
            assert_true(k == 0 || pid > processes.found[k - 1].user.pid);
            assert_int_equal(processes.found[k].sample->sm, number_of(pid) % 101);
        }

        test_fail_allocation(-1);
        nvml_processes_read(&processes, &calls, NULL, NULL, (int64_t)i * WM_NS_PER_S + 2,
                            false);
        assert_int_equal(test_fail_allocation(-1), 0);
    }
    nvml_processes_release(&processes);
}

UNIT(nvml_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_of_power),
        cmocka_unit_test(test_power_is_not_made_up),
        cmocka_unit_test(test_unsupported_power_is_not_asked_again),
        cmocka_unit_test(test_temperatures),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_samples_over_time),
        cmocka_unit_test(test_room_for_samples),
        cmocka_unit_test(test_unsupported_lists_are_not_asked_again),
        cmocka_unit_test(test_empty_lists_are_seldom_asked_for),
        cmocka_unit_test(test_list_that_fails_once),
        cmocka_unit_test(test_many_pids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
