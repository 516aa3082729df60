/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_array.c - an array that grows keeps what is in it, also without memory. */
#include <stdint.h>
#include <stdlib.h>

#include "base/base_array.h"
#include "base/base_error.h"
#include "test.h"

static void test_grows(void **state)
{
    uint64_t *list = NULL;
    size_t count = 0, room = 0;

    (void)state;
    for (; count < 1000; count++) {
        assert_int_equal(wm_array_reserve(&list, count, &room, sizeof(*list)), WM_OK);
        assert_true(count < room && room <= 2 * (count + 8));
        list[count] = count;
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(list[i], i);
    free(list);
}

static void test_no_memory(void **state)
{
    uint64_t *list = NULL;
    size_t count = 0, room = 0;

    (void)state;
    do {
        assert_int_equal(wm_array_reserve(&list, count, &room, sizeof(*list)), WM_OK);
        list[count] = count;
    } while (++count < room);
    const uint64_t *before = list;
    test_fail_allocation(0);
    int status = wm_array_reserve(&list, count, &room, sizeof(*list));
    test_fail_allocation(-1);
    assert_int_equal(status, WM_ENOMEM);
    assert_ptr_equal(list, before);
    assert_int_equal(room, count);
    assert_int_equal(list[count - 1], count - 1);
    free(list);
}

UNIT(base_array)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
