/* SPDX-License-Identifier: Apache-2.0 */
/* test_region_shared.c - what is there is copied, and what is not is no signal. */
#include "test.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region/drain/region_shared.h"

enum { PAGE = 4096 };

static void test_cut_short(void **state)
{
    static const struct {
        off_t size; /* of the file, of which two pages are mapped */
        size_t at, length;
        bool is_there;
    } cases[] = {
        { 2 * PAGE, 0, 2 * PAGE, true },
        { 2 * PAGE, PAGE - 4, 8, true },
        { PAGE, 0, PAGE, true },
        { PAGE, PAGE - 4, 8, false },
        { PAGE, PAGE, 8, false },
        { 1, 0, 8, true }, /* the page is there */
        { 0, 0, 8, false },
        { 0, PAGE, 8, false },
    };
    static uint8_t from[2 * PAGE], to[2 * PAGE];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int fd = memfd_create("shared", MFD_CLOEXEC);
        assert_true(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
        uint8_t *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(map != MAP_FAILED);
        memset(map, 7, 2 * PAGE);
        assert_int_equal(ftruncate(fd, cases[i].size), 0);

        memset(from, (int)i + 1, sizeof(from));
        bool is_read = wm_shared_read(to, map + cases[i].at, cases[i].length);
        bool is_written = wm_shared_write(map + cases[i].at, from, cases[i].length);
        if (is_read != cases[i].is_there || is_written != cases[i].is_there)
            fail_msg("case %zu: %d, %d", i, is_read, is_written);
        if (cases[i].is_there)
            assert_memory_equal(map + cases[i].at, from, cases[i].length);
        munmap(map, 2 * PAGE);
        close(fd);
    }
}

UNIT(region_shared)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cut_short) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
