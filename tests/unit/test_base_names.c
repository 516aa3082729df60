/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_names.c - each text has one number. */
#include <stdio.h>

#include "base/text/base_names.h"
#include "test.h"

enum { COUNT = 2000 };

static void test_numbers(void **state)
{
    struct wm_names names = { 0 };
    char text[64];

    (void)state;
    assert_int_equal(wm_names_find(&names, ""), WM_MAP_NONE);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            snprintf(text, sizeof(text), "%.*s%u", (int)(i % 20), "a layer of the network",
                     i);
            assert_int_equal(wm_names_find(&names, text), round == 0 ? WM_MAP_NONE : i);
            assert_int_equal(wm_names_add(&names, text), i);
            assert_string_equal(names.texts[i], text);
        }
    }
    assert_int_equal(names.count, COUNT);
    assert_int_equal(wm_names_add(&names, ""), COUNT);
    assert_int_equal(wm_names_find(&names, ""), COUNT);
    wm_names_release(&names);
    assert_int_equal(wm_names_find(&names, ""), WM_MAP_NONE);
}

static void test_no_memory(void **state)
{
    struct wm_names names = { 0 };
    char text[16];

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t number = WM_MAP_NONE;
        snprintf(text, sizeof(text), "%u", i);
        for (long step = 0; number == WM_MAP_NONE; step++) {
            assert_true(step < 10);
            test_fail_allocation(step);
            number = wm_names_add(&names, text);
            test_fail_allocation(-1);
        }
        assert_int_equal(number, i);
    }
    assert_int_equal(names.count, 100);
    wm_names_release(&names);
}

UNIT(base_names)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
