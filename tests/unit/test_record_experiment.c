/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_experiment.c - names, places and model cards of experiments. */
#include "record/record_experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static void test_names(void **state)
{
    static const struct {
        const char *name;
        int status;
    } cases[] = {
        { "resnet", WM_OK },       { "a b", WM_OK },         { "caf\xc3\xa9", WM_OK },
        { "x.1", WM_OK },          { "", WM_EINVAL },        { ".", WM_EINVAL },
        { "..", WM_EINVAL },       { ".hidden", WM_EINVAL }, { "-", WM_EINVAL },
        { "--json", WM_EINVAL },   { "a/b", WM_EINVAL },     { "/", WM_EINVAL },
        { "a\nb", WM_EINVAL },     { "a\x7f", WM_EINVAL },   { "a\xff", WM_EINVAL },
        { "\xc2\x85", WM_EINVAL },
    };
    char name[WM_EXPERIMENT_NAME_MAX + 2];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(wm_experiment_check_name(cases[i].name, NULL), cases[i].status);
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(wm_experiment_check_name(name, NULL), WM_EINVAL);
    name[WM_EXPERIMENT_NAME_MAX] = '\0';
    assert_int_equal(wm_experiment_check_name(name, NULL), WM_OK);
}

static void test_places(void **state)
{
    static const struct {
        const char *target; /* in the folder */
        int status;
        const char *path;
    } cases[] = {
        { "x.sqlite", WM_OK, "x.sqlite" },
        { "new/", WM_OK, "new//n/" },
        { "", WM_OK, "/n/" }, /* a folder that is there */
        { "x.aipm", WM_OK, "x.aipm/n/" },
        { "x.csv", WM_EINVAL, NULL },
        { "x.json", WM_EINVAL, NULL },
        { "x", WM_EINVAL, NULL },
        { "no/where/", WM_ENOENT, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char target[256], expected[300], *path = NULL;
        struct wm_error err = { 0 };

        snprintf(target, sizeof(target), "%s/%s", (char *)*state, cases[i].target);
        int status = wm_experiment_make_place(target, "n", &path, &err);
        print_message("  %s: %s\n", cases[i].target, err.text);
        assert_int_equal(status, cases[i].status);
        if (status == WM_OK) {
            snprintf(expected, sizeof(expected), "%s/%s", (char *)*state, cases[i].path);
            assert_string_equal(path, expected);
        }
        free(path);
    }
}

static void test_cards(void **state)
{
    static const struct {
        const char *text;
        int status;
        double parameters, flops, passes;
    } cases[] = {
        { "{}", WM_OK, 0, 0, 1 },
        { "{\"parameters\": 25e6, \"flops\": 8e9, \"passes\": 3}", WM_OK, 25e6, 8e9, 3 },
        { "{\"parameters\": 10, \"macs\": 4}", WM_OK, 10, 8, 1 },
        { "{\"total_params\": 10, \"total_mult_adds\": 4}", WM_OK, 10, 8, 1 },
        { "{\"parameters\": 10, \"input_size\": [1, 3, 224, 224]}", WM_OK, 10, 0, 1 },
        { "{\"input_size\": [[1, 2], [3]]}", WM_OK, 0, 0, 1 },
        { "{\"name\": \"net\", \"parameters\": null}", WM_OK, 0, 0, 1 },
        { "", WM_EFORMAT, 0, 0, 0 },
        { "[]", WM_EFORMAT, 0, 0, 0 },
        { "{", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": \"10\"}", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": -10}", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": 0}", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": 1e300}", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": NaN}", WM_EFORMAT, 0, 0, 0 },
        { "{\"macs\": true}", WM_EFORMAT, 0, 0, 0 },
        { "{\"flops\": []}", WM_EFORMAT, 0, 0, 0 },
        { "{\"passes\": {}}", WM_EFORMAT, 0, 0, 0 },
        { "{\"input_size\": []}", WM_EFORMAT, 0, 0, 0 },
        { "{\"input_size\": [1, \"x\"]}", WM_EFORMAT, 0, 0, 0 },
        { "{\"input_size\": [0]}", WM_EFORMAT, 0, 0, 0 },
        { "{\"parameters\": 1, \"parameters\": 2}", WM_EFORMAT, 0, 0, 0 },
    };
    char path[256];

    snprintf(path, sizeof(path), "%s/card.json", (char *)*state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        char *text = NULL;

        test_write_file(*state, "card.json", cases[i].text);
        int status = wm_model_card_load(path, &text, &err);
        print_message("  %s: %s\n", cases[i].text, err.text);
        assert_int_equal(status, cases[i].status);
        if (status < 0) {
            assert_non_null(strstr(err.text, "card.json"));
            continue;
        }
        const struct wm_model_card card = wm_model_card_read(text);
        assert_float_equal(card.parameters, cases[i].parameters, 0);
        assert_float_equal(card.flops, cases[i].flops, 0);
        assert_float_equal(card.passes, cases[i].passes, 0);
        free(text);
    }
}

static void test_card_files(void **state)
{
    char path[256], *text = NULL, *large = malloc(WM_MODEL_CARD_MAX + 2);

    snprintf(path, sizeof(path), "%s/nothing", (char *)*state);
    assert_int_equal(wm_model_card_load(path, &text, NULL), WM_ENOENT);
    assert_non_null(large);
    memset(large, ' ', WM_MODEL_CARD_MAX + 1);
    large[0] = '{';
    large[WM_MODEL_CARD_MAX] = '}';
    large[WM_MODEL_CARD_MAX + 1] = '\0';
    test_write_file(*state, "card.json", large);
    snprintf(path, sizeof(path), "%s/card.json", (char *)*state);
    assert_int_equal(wm_model_card_load(path, &text, NULL), WM_EFORMAT);
    free(large);
}

static void test_damaged_cards(void **state)
{
    static const char *const damaged[] = { "", "x", "[]", "{\"parameters\": -1}" };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        const struct wm_model_card card = wm_model_card_read(damaged[i]);
        assert_float_equal(card.parameters, 0, 0);
        assert_float_equal(card.flops, 0, 0);
        assert_float_equal(card.passes, 1, 0);
    }
}

UNIT(record_experiment)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_places, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_cards, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_card_files, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_damaged_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
