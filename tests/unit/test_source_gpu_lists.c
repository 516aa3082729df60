/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_source_gpu_lists.c - the choice of GPUs as each source is told it. This file has
 * the inventory's functions in the place of source_gpu.c and source_gpu_select.c. Two of
 * NVIDIA's GPUs do not answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "source/gpu/select/source_gpu_lists.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/source_gpu_ops.h"
#include "test.h"

struct wm_gpus {
    int nothing;
};

static const struct {
    const char *source, *uuid;
} machine[] = { { "nvml", "GPU-a" },
                { "nvml", "GPU-b" },
                { "nvml", NULL },
                { "nvml", NULL },
                { "drm", "0000:03:00.0" } };

/* What the selection answers, and what it was asked. */
static struct {
    int status;
    size_t chosen[ARRAY_LEN(machine)];
    size_t count;
    const char *remark;
    const char *missing; /* why there is no GPU of "drm" */
    char variable[64];   /* the first of the environment; "own" where it was ours */
} answer;

static struct wm_gpus only;

int wm_gpus_open_to_select(const struct wm_gpu_ops *const *table, size_t count,
                           const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                           struct wm_error *err)
{
    void *probe = malloc(1); /* so that it can fail */

    assert_null(table);
    assert_int_equal(count, 0);
    assert_non_null(config->gpus);
    if (!probe)
        return wm_fail(err, WM_ENOMEM, "no memory");
    free(probe);
    *ret_gpus = &only;
    return WM_OK;
}

void wm_gpus_close(struct wm_gpus *gpus)
{
    assert_true(!gpus || gpus == &only);
}

size_t wm_gpus_present(const struct wm_gpus *gpus)
{
    assert_ptr_equal(gpus, &only);
    return ARRAY_LEN(machine);
}

const struct wm_gpu_looked *wm_gpus_looked(const struct wm_gpus *gpus, size_t index)
{
    static struct wm_gpu_looked looked[] = { { "nvml", 4, WM_OK, "", 0 },
                                             { "drm", 1, WM_OK, "", 0 } };

    assert_ptr_equal(gpus, &only);
    looked[1].status = answer.missing ? WM_ENODEV : WM_OK;
    looked[1].detail = answer.missing;
    return index < ARRAY_LEN(looked) ? &looked[index] : NULL;
}

const char *wm_gpu_text(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field)
{
    assert_ptr_equal(gpus, &only);
    return field == WM_GPU_SOURCE ? machine[index].source : machine[index].uuid;
}

void wm_gpus_get_any(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     struct wm_gpu_value *ret_value)
{
    assert_ptr_equal(gpus, &only);
    assert_int_equal(field, WM_GPU_UUID);
    assert_null(machine[index].uuid);
    *ret_value = (struct wm_gpu_value) { .state = WM_READING_FAILED, .why = "is lost" };
}

int wm_gpu_select(const struct wm_gpus *gpus, const char *words,
                  const char *const *environment, size_t *ret_chosen, size_t *ret_count,
                  const char **ret_remark, struct wm_error *err)
{
    assert_ptr_equal(gpus, &only);
    assert_non_null(words);
    snprintf(answer.variable, sizeof(answer.variable), "%s",
             !environment   ? "own"
             : *environment ? *environment
                            : "");
    if (answer.status < 0)
        return wm_fail(err, answer.status, "so it is");
    memcpy(ret_chosen, answer.chosen, sizeof(answer.chosen));
    *ret_count = answer.count;
    *ret_remark = answer.remark;
    return WM_OK;
}

static void check_list(const struct wm_gpu_lists *gpus, const char *source,
                       const char *expected)
{
    const struct wm_gpu_picks *picks = NULL;
    struct wm_error err = { 0 };
    char list[200] = "";

    int status = wm_gpu_lists_of(gpus, source, &picks, &err);
    if (expected && expected[0] == '!') {
        assert_true(status < 0);
        assert_string_equal(err.text, expected + 1);
        return;
    }
    assert_int_equal(status, WM_OK);
    for (size_t i = 0; picks && i < picks->count; i++) {
        size_t length = strlen(list);
        snprintf(list + length, sizeof(list) - length, "%s%zu=%s", i > 0 ? "," : "",
                 picks->list[i].place, picks->list[i].identity);
    }
    if (expected)
        assert_string_equal(list, expected);
    else
        assert_null(picks);
}

static void test_lists(void **state)
{
    static const struct {
        const char *name;
        int status;
        size_t chosen[ARRAY_LEN(machine)];
        size_t count;
        const char *nvml, *drm;
        const char *missing;
        const char *remark;
    } rows[] = {
        { "all", WM_OK, { 0, 1, 4 }, 3, "0=GPU-a,1=GPU-b", "0=0000:03:00.0", NULL, NULL },
        { "one",
          WM_OK,
          { 1 },
          1,
          "1=GPU-b",
          "!none of its GPUs is among those chosen: words",
          NULL,
          NULL },
        { "the other",
          WM_OK,
          { 4 },
          1,
          "!none of its GPUs is among those chosen: words",
          "0=0000:03:00.0",
          NULL,
          NULL },
        { "none",
          WM_OK,
          { 0 },
          0,
          "!none of its GPUs is among those chosen: words",
          "!none of its GPUs is among those chosen: words",
          NULL,
          NULL },
        { "no card", WM_OK, { 0 }, 1, "0=GPU-a", "!no card here", "no card here", NULL },
        { "lost and no card",
          WM_EIO,
          { 0 },
          0,
          "!so it is",
          "!no card here",
          "no card here",
          NULL },
        { "one of two answers",
          WM_OK,
          { 0, 2 },
          2,
          "0=GPU-a",
          "!none of its GPUs is among those chosen: words",
          NULL,
          "GPU 2 is not measured, as it does not answer: is lost" },
        { "those of one source do not answer",
          WM_OK,
          { 2, 3, 4 },
          3,
          "!GPU 3 does not answer: is lost",
          "0=0000:03:00.0",
          NULL,
          "GPU 2 is not measured, as it does not answer: is lost; "
          "GPU 3 is not measured, as it does not answer: is lost" },
        { "lost", WM_EIO, { 0 }, 0, "!so it is", "!so it is", NULL, NULL },
        { "denied", WM_EACCES, { 0 }, 0, "!so it is", "!so it is", NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_gpu_lists *gpus;

        print_message("  %s\n", rows[i].name);
        memset(&answer, 0, sizeof(answer));
        answer.status = rows[i].status;
        memcpy(answer.chosen, rows[i].chosen, sizeof(answer.chosen));
        answer.count = rows[i].count;
        answer.missing = rows[i].missing;
        assert_int_equal(wm_gpu_lists_new(&(struct wm_source_config) { .gpus = "words" }, 0,
                                          &gpus, NULL),
                         WM_OK);
        check_list(gpus, "nvml", rows[i].nvml);
        check_list(gpus, "drm", rows[i].drm);
        check_list(gpus, "host", NULL);
        assert_int_equal(wm_gpu_lists_present(gpus), ARRAY_LEN(machine));
        if (rows[i].remark)
            assert_string_equal(wm_gpu_lists_remark(gpus), rows[i].remark);
        else
            assert_null(wm_gpu_lists_remark(gpus));
        wm_gpu_lists_free(gpus);
    }
}

static void test_wrong(void **state)
{
    struct wm_gpu_lists *gpus = NULL;
    struct wm_error err = { 0 };

    (void)state;
    memset(&answer, 0, sizeof(answer));
    answer.status = WM_EINVAL;
    assert_int_equal(
        wm_gpu_lists_new(&(struct wm_source_config) { .gpus = "words" }, 0, &gpus, &err),
        WM_EINVAL);
    assert_string_equal(err.text, "so it is");
    assert_null(gpus);
}

static void write_environ(const char *dir, const char *text, size_t length)
{
    char path[256];

    test_write_file(dir, "4711/environ", "");
    snprintf(path, sizeof(path), "%s/4711/environ", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void test_viewer(void **state)
{
    static const struct {
        const char *name, *words, *text;
        size_t length;
        pid_t viewer;
        const char *variable; /* the first that the selection gets */
        const char *remark;   /* how it begins; NULL: none */
    } rows[] = {
        { "its own", "visible", "A=1\0B=2", 8, 4711, "A=1", NULL },
        { "no NUL at the end", "visible", "A=12", 4, 4711, "A=12", NULL },
        { "empty entries", "visible", "\0\0\0", 3, 4711, "", NULL },
        { "an empty one", "visible", "", 0, 4711, "", NULL },
        { "nobody", "visible", "A=1", 4, 0, "own", NULL },
        { "not asked for", "0", "A=1", 4, 4711, "own", NULL },
        { "no such process", "visible", "A=1", 4, 4712, "own",
          "which GPUs process 4712 sees is taken from wattmeter's own environment: " },
    };

    assert_int_equal(setenv("WATTMETER_PROCFS", *state, 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_gpu_lists *gpus;

        print_message("  %s\n", rows[i].name);
        write_environ(*state, rows[i].text, rows[i].length);
        memset(&answer, 0, sizeof(answer));
        assert_int_equal(
            wm_gpu_lists_new(&(struct wm_source_config) { .gpus = rows[i].words },
                             rows[i].viewer, &gpus, NULL),
            WM_OK);
        assert_string_equal(answer.variable, rows[i].variable);
        const char *remark = wm_gpu_lists_remark(gpus);
        if (rows[i].remark)
            assert_memory_equal(remark, rows[i].remark, strlen(rows[i].remark));
        else
            assert_null(remark);
        wm_gpu_lists_free(gpus);
    }
    assert_int_equal(unsetenv("WATTMETER_PROCFS"), 0);
}

static void test_out_of_memory(void **state)
{
    struct wm_gpu_lists *gpus = NULL;
    int status = WM_ENOMEM;

    assert_int_equal(setenv("WATTMETER_PROCFS", *state, 1), 0);
    write_environ(*state, "A=1\0B=2", 8);
    memset(&answer, 0, sizeof(answer));
    answer.chosen[1] = 1;
    answer.chosen[2] = 2;
    answer.chosen[3] = 4;
    answer.count = 4;
    answer.remark = "to be kept";
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_error err = { 0 };

        test_fail_allocation(nth);
        status = wm_gpu_lists_new(&(struct wm_source_config) { .gpus = "visible" }, 4711,
                                  &gpus, &err);
        test_fail_allocation(-1);
        assert_int_equal(err.status, status);
        assert_in_range(nth, 0, 100);
    }
    assert_int_equal(status, WM_OK);
    check_list(gpus, "nvml", "0=GPU-a,1=GPU-b");
    assert_string_equal(
        wm_gpu_lists_remark(gpus),
        "to be kept; GPU 2 is not measured, as it does not answer: is lost");
    wm_gpu_lists_free(gpus);
    assert_int_equal(unsetenv("WATTMETER_PROCFS"), 0);
}

UNIT(source_gpu_lists)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test_setup_teardown(test_viewer, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_out_of_memory, test_make_dir, test_remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
