/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor.c - how often values change, and what is found on small trees that
 * stand for a machine. */
#include "test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "wattmeter/doctor.h"

#define MS 1000000LL

/* A value as somebody sees it who looks every `look_ms`. */
struct pace_row {
    const char *name;
    int64_t period_ms; /* 0: it never changes */
    int64_t look_ms, duration_ms;
    double low_s, high_s; /* of the period that is found */
    size_t changes_at_least;
};

static void test_pace(void **state)
{
    static const struct pace_row rows[] = {
        { "never looked at", 0, 1, 0, 0, 0, 0 },
        { "constant", 0, 2, 3000, 0, 0, 0 },
        { "one change", 2000, 2, 3000, 0, 0, 1 },
        { "two changes: still too few", 1200, 2, 3000, 0, 0, 2 },
        { "three changes", 900, 2, 3000, 0.898, 0.902, 3 },
        { "a sensor of 100 ms", 100, 2, 3000, 0.098, 0.102, 28 },
        { "faster than the looks", 1, 2, 1000, 0.002, 0.002, 400 },
        { "more changes than are kept", 10, 2, 10000, 0.010, 0.010, 900 },
        { "looks that do not fit", 100, 30, 9000, 0.090, 0.120, 80 },
    };
    (void)state;

    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const struct pace_row *row = &rows[r];
        struct wm_pace *pace = calloc(1, sizeof(*pace));
        assert_non_null(pace);
        for (int64_t ms = 0; ms < row->duration_ms; ms += row->look_ms)
            wm_pace_note(pace, ms * MS, row->period_ms ? (double)(ms / row->period_ms) : 7);

        int64_t watched_ms =
            row->duration_ms ? (row->duration_ms - 1) / row->look_ms * row->look_ms : 0;
        assert_int_equal(wm_pace_watched_ns(pace), watched_ms * MS);
        double found = wm_pace_period_s(pace);
        if (found < row->low_s - 1e-9 || found > row->high_s + 1e-9 ||
            pace->changes < row->changes_at_least)
            fail_msg("%s: period %g s after %zu changes", row->name, found, pace->changes);
        free(pace);
    }
}

/* A rare late look must not count as the period. */
static void test_pace_takes_the_median(void **state)
{
    static struct wm_pace pace;
    int64_t now = 0;
    (void)state;

    for (int i = 0; i < 21; i++) {
        now += (i % 5 == 0 ? 400 : 20) * MS;
        wm_pace_note(&pace, now, i);
    }
    assert_float_equal(wm_pace_period_s(&pace), 0.020, 1e-9);

    /* Of an even number it lies between the two in the middle. */
    pace = (struct wm_pace) { 0 };
    now = 0;
    for (int i = 0; i < 4; i++) {
        static const int64_t after_ms[] = { 10, 20, 30, 60 };
        now += after_ms[i] * MS;
        wm_pace_note(&pace, now, i);
    }
    now += 100 * MS;
    wm_pace_note(&pace, now, 4);
    assert_int_equal(pace.kept, 3);
    wm_pace_note(&pace, now + 200 * MS, 5);
    assert_int_equal(pace.kept, 4);
    assert_float_equal(wm_pace_period_s(&pace), 0.080, 1e-9);
}

static struct wm_doctor *examine(const char *dir, int64_t duration_ns)
{
    char procfs[256], sysfs[256];
    struct wm_doctor *doctor = NULL;
    struct wm_error err;

    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
    const struct wm_source_config config = {
        .procfs = procfs,
        .sysfs = sysfs,
        .nvml = "/nonexistent/libnvidia-ml.so.1",
    };
    if (wm_doctor_examine(&config, duration_ns, &doctor, &err) < 0)
        fail_msg("%s", err.text);
    return doctor;
}

static const struct wm_doctor_source *find(const struct wm_doctor *doctor, const char *name)
{
    const struct wm_doctor_source *source;

    for (size_t i = 0; (source = wm_doctor_source(doctor, i)) != NULL; i++) {
        if (strcmp(source->name, name) == 0)
            return source;
    }
    fail_msg("no %s", name);
    return NULL;
}

static void test_machine_with_nothing(void **state)
{
    struct wm_doctor *doctor = examine(*state, 10 * MS);
    const char *name;

    assert_false(wm_doctor_can_measure(doctor));
    for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
        const struct wm_doctor_source *source = find(doctor, name);
        assert_true(source->health == WM_HEALTH_ABSENT ||
                    source->health == WM_HEALTH_BROKEN);
        assert_non_null(source->detail);
        assert_int_equal(source->channel_count, 0);
    }
    assert_non_null(find(doctor, "tracker")->detail);
    assert_null(wm_doctor_source(doctor, 100));
    wm_doctor_free(doctor);
}

/* A ratio needs two readings that are 10 ms apart. */
static void test_what_takes_longer_is_not_broken(void **state)
{
    const char *dir = *state;

    test_write_file(dir, "sys/class/drm/card0/device/uevent",
                    "DRIVER=i915\nPCI_ID=8086:1\nPCI_SLOT_NAME=0000:03:00.0\n");
    test_write_file(dir, "proc/2/comm", "kthreadd\n");
    test_write_file(dir, "proc/10/fdinfo/4",
                    "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n"
                    "drm-engine-render:\t5 ns\n");
    struct wm_doctor *doctor = examine(dir, 1);
    const struct wm_doctor_source *source = find(doctor, "drm");
    for (size_t i = 0; i < source->channel_count; i++)
        print_message("  %s: %d %s\n", source->channels[i].channel->metric,
                      source->channels[i].state, source->channels[i].why);
    assert_true(source->health == WM_HEALTH_PARTLY || source->health == WM_HEALTH_GOOD);
    wm_doctor_free(doctor);
}

static void test_hwmon_alone(void **state)
{
    const char *dir = *state;

    test_write_file(dir, "sys/class/hwmon/hwmon0/name", "coretemp\n");
    test_write_file(dir, "sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n");
    test_write_file(dir, "sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    struct wm_doctor *doctor = examine(dir, 20 * MS);
    const struct wm_doctor_source *source = find(doctor, "hwmon");

    assert_true(wm_doctor_can_measure(doctor));
    assert_int_equal(source->health, WM_HEALTH_GOOD);
    assert_int_equal(source->channel_count, 1);
    assert_float_equal(source->channels[0].value, 45, 0);
    assert_int_equal(source->channels[0].changes, 0);
    assert_false(source->channels[0].dead); /* a temperature may stay as it is */
    assert_int_equal(source->advice_count, 0);
    assert_true(source->read_s > 0 && source->look_s >= 0.002);
    wm_doctor_free(doctor);
}

static void test_printing(void **state)
{
    struct wm_doctor *doctor = examine(*state, 10 * MS);
    char *text = NULL;
    size_t length = 0;

    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    assert_int_equal(wm_doctor_print(doctor, WM_FORMAT_TEXT, out, NULL), WM_OK);
    fclose(out);
    assert_non_null(strstr(text, "nvml     absent  no NVIDIA driver"));
    assert_non_null(strstr(text, "Nothing at all can be measured here."));
    free(text);

    out = fopen("/dev/full", "w");
    struct wm_error err;
    assert_non_null(out);
    assert_int_equal(wm_doctor_print(doctor, WM_FORMAT_JSON, out, &err), WM_EIO);
    fclose(out);
    wm_doctor_free(doctor);
}

/* Allocations of Jansson, of which those from this number on fail. */
static long json_made, json_fail_from;

static void *allocate_json(size_t size)
{
    return json_made++ >= json_fail_from ? NULL : malloc(size);
}

/* Never a part of the findings that looks like all of them. */
static void test_json_out_of_memory(void **state)
{
    struct wm_doctor *doctor = examine(*state, 10 * MS);
    int status;
    (void)state;

    json_set_alloc_funcs(allocate_json, free);
    for (json_fail_from = 0;; json_fail_from++) {
        struct wm_error err;
        FILE *out = fopen("/dev/null", "w");
        assert_non_null(out);
        json_made = 0;
        status = wm_doctor_print(doctor, WM_FORMAT_JSON, out, &err);
        fclose(out);
        if (json_made <= json_fail_from)
            break;
        if (status != WM_ENOMEM)
            fail_msg("status %d without allocation %ld", status, json_fail_from);
        assert_true(json_fail_from < 100000);
    }
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(status, WM_OK);
    assert_true(json_fail_from > 50);
    wm_doctor_free(doctor);
}

static void test_out_of_memory(void **state)
{
    char sysfs[256], procfs[256];
    struct wm_error err;

    snprintf(procfs, sizeof(procfs), "%s/proc", (const char *)*state);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", (const char *)*state);
    test_write_file(*state, "sys/class/hwmon/hwmon0/name", "coretemp\n");
    test_write_file(*state, "sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    const struct wm_source_config config = { .procfs = procfs,
                                             .sysfs = sysfs,
                                             .nvml = "/no" };
    for (long nth = 0;; nth++) {
        struct wm_doctor *doctor = NULL;
        test_fail_allocation(nth);
        int status = wm_doctor_examine(&config, 1, &doctor, &err);
        bool made_it = test_fail_allocation(-1) <= nth;
        if (status == WM_OK)
            wm_doctor_free(doctor);
        else
            assert_int_equal(status, WM_ENOMEM);
        if (made_it)
            break;
        assert_true(nth < 200);
    }
    wm_doctor_free(NULL);

    struct wm_doctor *doctor = NULL;
    test_fail_threads(true);
    assert_int_equal(wm_doctor_examine(&config, 1, &doctor, &err), WM_OK);
    test_fail_threads(false);
    wm_doctor_free(doctor);
}

UNIT(doctor)
{
#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_pace_takes_the_median),
        IN_FOLDER(test_machine_with_nothing),
        IN_FOLDER(test_what_takes_longer_is_not_broken),
        IN_FOLDER(test_hwmon_alone),
        IN_FOLDER(test_printing),
        IN_FOLDER(test_json_out_of_memory),
        IN_FOLDER(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
