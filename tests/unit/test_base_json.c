/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_json.c - JSON is built whole or not at all, and read with checks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "test.h"

static json_t *build(void)
{
    json_t *object = json_object(), *array = json_array();

    wm_json_add(&array, json_integer(1));
    wm_json_add(&array, wm_text_json("a\xff"));
    wm_json_set(&object, "list", array);
    wm_json_set(&object, "none", wm_text_json(NULL));
    wm_json_set(&object, "known", wm_json_known(true, 1.5));
    wm_json_set(&object, "unknown", wm_json_known(false, 1.5));
    wm_json_set(&object, "nan", wm_json_known(true, NAN));
    return object;
}

static void test_builds(void **state)
{
    char *text = wm_json_dump(build(), JSON_COMPACT);

    (void)state;
    assert_string_equal(text, "{\"list\":[1,\"a\xef\xbf\xbd\"],\"none\":null,\"known\":1.5,"
                              "\"unknown\":null,\"nan\":null}");
    free(text);
}

/* Jansson asks for its memory here as everybody does. */
static void test_whole_or_not_at_all(void **state)
{
    char *text = NULL;
    long nth = 0;

    (void)state;
    json_set_alloc_funcs(malloc, free);
    for (; !text; nth++) {
        test_fail_allocation(nth);
        text = wm_json_dump(build(), JSON_COMPACT);
        test_fail_allocation(-1);
        assert_true(nth < 200);
    }
    assert_true(nth > 10);
    free(text);
}

static void test_null_spreads(void **state)
{
    json_t *inner = json_object(), *outer = json_array();

    (void)state;
    wm_json_set(&inner, "\xff", json_true()); /* no key */
    assert_null(inner);
    wm_json_set(&inner, "more", json_true());
    wm_json_add(&outer, inner);
    assert_null(outer);
    wm_json_add(&outer, json_true());
    assert_null(wm_json_dump(outer, 0));
}

static void test_load(void **state)
{
    static const char *const bad[] = {
        "", "{", "{\"a\":}", "1", "[1] 2", "[nan]", "[1e999]"
    };
    struct wm_error err;
    json_t *value = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(wm_json_load(bad[i], strlen(bad[i]), &value, &err), WM_EFORMAT);
        assert_int_equal(strncmp(err.text, "not JSON: ", 10), 0);
        assert_null(value);
    }
    assert_int_equal(wm_json_load("[7]x", 3, &value, &err), WM_OK);
    assert_int_equal(json_integer_value(json_array_get(value, 0)), 7);
    json_decref(value);
}

/* In the middle of a text Jansson may take it for a wrong one. */
static void test_load_without_memory(void **state)
{
    char python[] = "[NaN]";
    json_t *value = NULL;
    long nth = 0;

    (void)state;
    json_set_alloc_funcs(malloc, free);
    for (int status = -1; status != WM_OK; nth++) {
        test_fail_allocation(nth);
        status = wm_json_load("[{\"a\":7}]", 9, &value, NULL);
        test_fail_allocation(-1);
        assert_int_equal(status == WM_OK, value != NULL);
        assert_true(status == WM_OK || nth > 0 || status == WM_ENOMEM);
    }
    assert_true(nth > 3);
    json_decref(value);
    test_fail_allocation(0);
    assert_int_equal(wm_python_json(python, strlen(python), &value), WM_ENOMEM);
    test_fail_allocation(-1);
}

static const char document[] = "{\"text\":\"t\",\"one\":1,\"half\":0.5,\"yes\":true,"
                               "\"null\":null,\"list\":[],\"object\":{}}";

static void test_get(void **state)
{
    static const struct {
        const char *key;
        enum wm_json_type type;
    } good[] = {
        { "text", WM_JSON_TEXT },     { "one", WM_JSON_INTEGER },
        { "half", WM_JSON_NUMBER },   { "one", WM_JSON_NUMBER },
        { "yes", WM_JSON_BOOL },      { "list", WM_JSON_ARRAY },
        { "object", WM_JSON_OBJECT },
    };
    json_t *root = json_loads(document, 0, NULL);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        json_t *value = NULL;
        assert_int_equal(wm_json_get(root, good[i].key, good[i].type, &value, NULL), 1);
        assert_ptr_equal(value, json_object_get(root, good[i].key));
    }
    json_decref(root);
}

/* Nothing is written where there is nothing. */
static void test_get_missing(void **state)
{
    static const char *const keys[] = { "null", "missing" };
    json_t *root = json_loads(document, 0, NULL);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        for (int type = WM_JSON_TEXT; type <= WM_JSON_OBJECT; type++)
            assert_int_equal(
                wm_json_get(root, keys[i], (enum wm_json_type)type, NULL, NULL), 0);
    }
    json_decref(root);
}

static void test_get_wrong(void **state)
{
    static const struct {
        const char *key;
        enum wm_json_type type;
        const char *text;
    } bad[] = {
        { "one", WM_JSON_TEXT, "'one' is not a string" },
        { "half", WM_JSON_INTEGER, "'half' is not a whole number in range" },
        { "text", WM_JSON_NUMBER, "'text' is not a number" },
        { "one", WM_JSON_BOOL, "'one' is not true or false" },
        { "object", WM_JSON_ARRAY, "'object' is not an array" },
        { "list", WM_JSON_OBJECT, "'list' is not an object" },
    };
    json_t *root = json_loads(document, 0, NULL);
    struct wm_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(wm_json_get(root, bad[i].key, bad[i].type, NULL, &err),
                         WM_EFORMAT);
        assert_string_equal(err.text, bad[i].text);
    }
    json_decref(root);
}

static void test_python(void **state)
{
    static const struct {
        const char *text;
        int result;
        const char *json; /* as it comes back */
    } rows[] = {
        { "{\"a\": NaN}", 1, "{\"a\":\"\"}" },
        { "[Infinity, -Infinity, 1]", 1, "[null,null,1]" },
        { "[\"NaN\", \"\\\"Infinity\"]", 1, "[\"NaN\",\"\\\"Infinity\"]" },
        { "[1e999, 2]", 0, NULL },
        { "[123456789012345678901234567890]", 1, "[1.2345678901234568e29]" },
        { "nan", 0, NULL },
        { "", 0, NULL },
        { "[1", 0, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = strdup(rows[i].text);
        json_t *value = NULL;
        assert_int_equal(wm_python_json(text, strlen(text), &value), rows[i].result);
        free(text);
        text = value ? wm_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        if (rows[i].json)
            assert_string_equal(text, rows[i].json);
        else
            assert_null(text);
        free(text);
    }
}

UNIT(base_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_whole_or_not_at_all),
        cmocka_unit_test(test_null_spreads),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_load_without_memory),
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_get_missing),
        cmocka_unit_test(test_get_wrong),
        cmocka_unit_test(test_python),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
