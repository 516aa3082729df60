/* SPDX-License-Identifier: Apache-2.0 */
/* test_experiment.c - experiments out of recordings that are there: those of AIPowerMeter
 * in a folder, and one of ours; and what is left when memory runs out. */
#include "wattmeter/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define AIPM test_source_path("tests/data/aipm")
#define OURS test_source_path("tests/data/recordings/v1.sqlite")

/* What a function prints, the caller's to free. */
static char *print_list(const char *target, enum wm_report_format format, int *ret_status)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    *ret_status = wm_experiment_print_list(target, format, out, NULL);
    fclose(out);
    return text;
}

static void test_list(void **state)
{
    int status;
    char *text = print_list(AIPM, WM_REPORT_TEXT, &status);
    (void)state;

    assert_int_equal(status, WM_OK);
    assert_non_null(strstr(text, "2021 "));
    assert_true(strstr(text, "generation1") < strstr(text, "head"));
    free(text);

    text = print_list(OURS, WM_REPORT_JSON, &status);
    assert_int_equal(status, WM_OK);
    assert_non_null(strstr(text, "\"name\": null"));
    free(text);
    free(print_list(test_source_path("tests/data/nothing"), WM_REPORT_TEXT, &status));
    assert_int_equal(status, WM_ENOENT);
    free(print_list(test_source_path("meson.build"), WM_REPORT_TEXT, &status));
    assert_int_equal(status, WM_EFORMAT);
}

static void test_open(void **state)
{
    struct wm_experiment *experiment = NULL;
    struct wm_error err;
    (void)state;

    assert_int_equal(wm_experiment_open(AIPM, "nothing", &experiment, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "2021, generation1, head"));
    assert_int_equal(wm_experiment_open(OURS, "-", &experiment, &err), WM_OK);
    wm_experiment_close(experiment);
    assert_int_equal(wm_experiment_open(test_source_path("tests/data/aipm/head"), "head",
                                        &experiment, &err),
                     WM_OK);
    wm_experiment_close(experiment);
    wm_experiment_close(NULL);
}

static void test_figures(void **state)
{
    static const struct {
        const char *name, *metric;
        int status;
        double total, seconds;
    } cases[] = {
        { "2021", "energy", WM_OK, 266, 10 },
        { "2021", "cpu_energy", WM_OK, 266, 10 },
        { "2021", "cpu_power", WM_OK, 266, 10 },
        { "2021", "gpu_energy", WM_ENOENT, 0, 0 },
        { "2021", "nothing", WM_ENOENT, 0, 0 },
        { "2021", "nothing_energy", WM_ENOENT, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_experiment *experiment = NULL;
        struct wm_series *series = NULL;
        struct wm_figure figure;
        struct wm_error err = { 0 };

        assert_int_equal(wm_experiment_open(AIPM, cases[i].name, &experiment, &err), WM_OK);
        int status = wm_experiment_series(experiment, cases[i].metric, &series, &err);
        print_message("  %s: %s\n", cases[i].metric, err.text);
        assert_int_equal(status, cases[i].status);
        if (status == WM_OK) {
            assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, NULL, &figure, &err),
                             WM_OK);
            assert_float_equal(figure.value, cases[i].total, 1e-6);
            assert_float_equal(figure.seconds, cases[i].seconds, 1e-6);
        }
        wm_series_free(series);
        wm_experiment_close(experiment);
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int status;
        int64_t after_ns; /* the start */
    } cases[] = {
        { "0", WM_OK, 0 },
        { "1.5", WM_OK, 1500000000 },
        { "1e1", WM_OK, 10000000000 },
        { "", WM_EINVAL, 0 },
        { "-1", WM_EINVAL, 0 },
        { "1s", WM_EINVAL, 0 },
        { "1e30", WM_EINVAL, 0 },
        { "inf", WM_EINVAL, 0 },
        { "2021-03-01", WM_EINVAL, 0 },
        { "2021-13-01T09:29:58Z", WM_EINVAL, 0 },
    };
    struct wm_experiment *experiment = NULL;
    int64_t start_ns = 0, unix_ns = 0;
    (void)state;

    assert_int_equal(wm_experiment_open(AIPM, "2021", &experiment, NULL), WM_OK);
    assert_int_equal(wm_experiment_time(experiment, "0", &start_ns, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].text);
        assert_int_equal(wm_experiment_time(experiment, cases[i].text, &unix_ns, NULL),
                         cases[i].status);
        if (cases[i].status == WM_OK)
            assert_int_equal(unix_ns - start_ns, cases[i].after_ns);
    }
    assert_int_equal(
        wm_experiment_time(experiment, "2021-03-01T09:30:00.25Z", &unix_ns, NULL), WM_OK);
    assert_int_equal(unix_ns, INT64_C(1614591000250000000));
    wm_experiment_close(experiment);
}

/* From opening to the last line of each form. */
static int do_everything(FILE *out, struct wm_error *err)
{
    const struct wm_experiment_style style = { .per = "loss" };
    struct wm_experiment *experiment = NULL;
    struct wm_series *energy = NULL, *loss = NULL;

    int status = wm_experiment_print_list(AIPM, WM_REPORT_JSON, out, err);
    if (status == WM_OK)
        status = wm_experiment_open(AIPM, "generation1", &experiment, err);
    if (status == WM_OK)
        status = wm_experiment_print(experiment, WM_REPORT_TEXT, &style, out, err);
    if (status == WM_OK)
        status = wm_experiment_print(experiment, WM_REPORT_JSON, &style, out, err);
    if (status == WM_OK)
        status = wm_experiment_series(experiment, "power", &energy, err);
    if (status == WM_OK)
        status = wm_experiment_series(experiment, "loss", &loss, err);
    const struct wm_series *const both[] = { energy, loss };
    if (status == WM_OK)
        status = wm_series_print(both, 2, NULL, WM_REPORT_TEXT, out, err);
    if (status == WM_OK)
        status = wm_series_print(both, 2, NULL, WM_REPORT_JSON, out, err);
    if (status == WM_OK)
        status =
            wm_series_print_figure(energy, WM_FIGURE_MAX, NULL, WM_REPORT_JSON, out, err);
    wm_series_free(energy);
    wm_series_free(loss);
    wm_experiment_close(experiment);
    return status;
}

static void test_out_of_memory(void **state)
{
    FILE *null = fopen("/dev/null", "w");
    struct wm_error err;
    (void)state;

    assert_non_null(null);
    test_fail_allocation(-1);
    assert_int_equal(do_everything(null, &err), WM_OK);
    long made = test_fail_allocation(-1);
    for (long nth = 0; nth < made; nth += 1 + nth / 100) {
        test_fail_allocation(nth);
        int status = do_everything(null, &err);
        test_fail_allocation(-1);
        if (status != WM_ENOMEM)
            print_message("  allocation %ld of %ld: %d, %s\n", nth, made, status, err.text);
        assert_int_equal(status, WM_ENOMEM);
    }
    fclose(null);
}

static void test_full_disk(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    struct wm_error err;
    (void)state;

    if (!full)
        skip();
    assert_int_equal(do_everything(full, &err), WM_EIO);
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),          cmocka_unit_test(test_open),
        cmocka_unit_test(test_figures),       cmocka_unit_test(test_times),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
