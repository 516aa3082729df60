/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_map.c - a map does what an array of all pairs would do. */
#include <string.h>

#include "base/base_error.h"
#include "base/base_map.h"
#include "test.h"

enum { A_COUNT = 40, B_COUNT = 25, ROUNDS = 200000 };

/* Keys whose bits are all in one place, and the largest ones. */
static uint64_t key(uint32_t number)
{
    return number % 2 ? (uint64_t)number << 40 : UINT64_MAX - number;
}

static void test_like_an_array(void **state)
{
    static uint32_t expected[A_COUNT][B_COUNT];
    struct wm_map map = { 0 };
    uint64_t random = 1;
    size_t count = 0;

    (void)state;
    memset(expected, 0xff, sizeof(expected)); /* WM_MAP_NONE */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t a = (uint32_t)(random >> 33) % A_COUNT;
        uint32_t b = (uint32_t)(random >> 43) % B_COUNT;
        uint32_t *value = &expected[a][b];
        assert_int_equal(wm_map_find(&map, key(a), key(b)), *value);
        if (*value != WM_MAP_NONE && random >> 63) {
            wm_map_remove(&map, key(a), key(b));
            *value = WM_MAP_NONE;
            count--;
        } else {
            assert_int_equal(wm_map_reserve(&map), WM_OK);
            wm_map_put(&map, key(a), key(b), round);
            count += *value == WM_MAP_NONE;
            *value = round;
        }
        assert_int_equal(map.count, count);
    }
    for (uint32_t a = 0; a < A_COUNT; a++) {
        for (uint32_t b = 0; b < B_COUNT; b++)
            assert_int_equal(wm_map_find(&map, key(a), key(b)), expected[a][b]);
    }
    assert_true(map.room <= 4 * A_COUNT * B_COUNT);
    wm_map_release(&map);
    assert_int_equal(wm_map_find(&map, 1, 2), WM_MAP_NONE);
}

static void test_no_memory(void **state)
{
    struct wm_map map = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        test_fail_allocation(0);
        int status = wm_map_reserve(&map);
        test_fail_allocation(-1);
        if (status < 0) {
            assert_int_equal(status, WM_ENOMEM);
            assert_int_equal(wm_map_reserve(&map), WM_OK);
        }
        wm_map_put(&map, i, i, i);
    }
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(wm_map_find(&map, i, i), i);
    wm_map_release(&map);
}

static void test_hash(void **state)
{
    struct wm_map map = { 0 };
    char text[64];

    (void)state;
    assert_int_equal(wm_map_reserve(&map), WM_OK);
    memset(text, 'x', sizeof(text));
    for (size_t length = 0; length < sizeof(text); length++) {
        uint64_t hash = wm_map_hash(&map, text, length);
        assert_int_equal(hash, wm_map_hash(&map, text, length));
        for (size_t i = 0; i < length; i++) {
            text[i] = 'y';
            assert_true(wm_map_hash(&map, text, length) != hash);
            text[i] = 'x';
        }
        assert_true(length == 0 || wm_map_hash(&map, text, length - 1) != hash);
    }
    wm_map_release(&map);
}

/* Nobody can know which texts, or pairs, meet in a map that has yet to be made. */
static void test_seed(void **state)
{
    struct wm_map one = { 0 }, other = { 0 };
    size_t same = 0;

    (void)state;
    assert_int_equal(wm_map_reserve(&one), WM_OK);
    assert_int_equal(wm_map_reserve(&other), WM_OK);
    assert_true(wm_map_hash(&one, "name", 4) != wm_map_hash(&other, "name", 4));
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(wm_map_reserve(&one), WM_OK);
        assert_int_equal(wm_map_reserve(&other), WM_OK);
        wm_map_put(&one, i, 7, i);
        wm_map_put(&other, i, 7, i);
    }
    for (size_t i = 0; i < one.room; i++)
        same +=
            one.slots[i].value == other.slots[i].value && one.slots[i].value != WM_MAP_NONE;
    assert_true(same < 100);
    wm_map_release(&one);
    wm_map_release(&other);
}

UNIT(base_map)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_an_array),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
