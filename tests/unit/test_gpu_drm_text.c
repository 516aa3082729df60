/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_drm_text.c - parsers of what graphics drivers and PCI write beside plain
 * numbers. */
#include "test.h"

#include <string.h>

#include "source/gpu/source_drm_text.h"

static void test_line(void **state)
{
    static const struct {
        const char *text, *line; /* NULL: refused */
    } cases[] = {
        { "113-D7020100-102\n", "113-D7020100-102" },
        { "auto", "auto" },
        { " x \n", " x " },
        { "", NULL },
        { "\n", NULL },
        { "   \n", NULL },
        { "two\nlines\n", NULL },
        { "two\n\n", NULL },
        { "tab\there\n", NULL },
        { "\x1b[2J\n", NULL },
        { "caf\xc3\xa9\n", NULL },
    };
    char line[WM_DRM_LINE], longest[WM_DRM_LINE + 1];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int status = wm_parse_drm_line(cases[i].text, line);
        assert_int_equal(status, cases[i].line ? WM_OK : WM_EFORMAT);
        if (cases[i].line)
            assert_string_equal(line, cases[i].line);
    }
    memset(longest, 'x', sizeof(longest));
    longest[WM_DRM_LINE] = '\0';
    assert_int_equal(wm_parse_drm_line(longest, line), WM_EFORMAT);
    longest[WM_DRM_LINE - 1] = '\0';
    assert_int_equal(wm_parse_drm_line(longest, line), WM_OK);
    assert_string_equal(line, longest);
}

static void test_hex(void **state)
{
    static const struct {
        const char *text;
        int status;
        uint64_t value;
    } cases[] = {
        { "0x1002\n", WM_OK, 0x1002 },
        { "0x744C", WM_OK, 0x744c },
        { "0xaBcDeF\n", WM_OK, 0xabcdef },
        { "0x0\n", WM_OK, 0 },
        { "0xffffffffffffffff\n", WM_OK, UINT64_MAX },
        { "0x10000000000000000\n", WM_EFORMAT, 0 },
        { "", WM_EFORMAT, 0 },
        { "0x\n", WM_EFORMAT, 0 },
        { "1002\n", WM_EFORMAT, 0 },
        { "0x10 02\n", WM_EFORMAT, 0 },
        { "0x1002\n0x8086\n", WM_EFORMAT, 0 },
        { "0X1002\n", WM_EFORMAT, 0 },
        { "-0x1\n", WM_EFORMAT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t value = 77;
        assert_int_equal(wm_parse_drm_hex(cases[i].text, &value), cases[i].status);
        assert_true(value == (cases[i].status == WM_OK ? cases[i].value : 77));
    }
}

static void test_links(void **state)
{
    static const struct {
        int (*parse)(const char *text, double *ret_value);
        const char *text;
        int status;
        double value;
    } cases[] = {
        { wm_parse_link_speed, "2.5 GT/s PCIe\n", WM_OK, 1 },
        { wm_parse_link_speed, "5.0 GT/s PCIe\n", WM_OK, 2 },
        { wm_parse_link_speed, "5 GT/s\n", WM_OK, 2 },
        { wm_parse_link_speed, "8.0 GT/s\n", WM_OK, 3 },
        { wm_parse_link_speed, "16.0 GT/s PCIe\n", WM_OK, 4 },
        { wm_parse_link_speed, "32.0 GT/s PCIe\n", WM_OK, 5 },
        { wm_parse_link_speed, "64.0 GT/s PCIe", WM_OK, 6 },
        { wm_parse_link_speed, "128.0 GT/s PCIe\n", WM_OK, 7 },
        { wm_parse_link_speed, "Unknown\n", WM_ENODEV, 0 },
        { wm_parse_link_speed, "Unknown speed\n", WM_ENODEV, 0 },
        { wm_parse_link_speed, "", WM_EFORMAT, 0 },
        { wm_parse_link_speed, "16\n", WM_EFORMAT, 0 },
        { wm_parse_link_speed, "3.0 GT/s PCIe\n", WM_EFORMAT, 0 },
        { wm_parse_link_speed, "-8.0 GT/s PCIe\n", WM_EFORMAT, 0 },
        { wm_parse_link_speed, "8.0 GT/s PCIe x16\n", WM_EFORMAT, 0 },
        { wm_parse_link_speed, "80.0 GT/s PCIe\n", WM_EFORMAT, 0 },
        { wm_parse_link_width, "16\n", WM_OK, 16 },
        { wm_parse_link_width, "1", WM_OK, 1 },
        { wm_parse_link_width, "32\n", WM_OK, 32 },
        { wm_parse_link_width, "0\n", WM_ENODEV, 0 },
        { wm_parse_link_width, "255\n", WM_ENODEV, 0 },
        { wm_parse_link_width, "33\n", WM_EFORMAT, 0 },
        { wm_parse_link_width, "-8\n", WM_EFORMAT, 0 },
        { wm_parse_link_width, "x16\n", WM_EFORMAT, 0 },
        { wm_parse_link_width, "16 lanes\n", WM_EFORMAT, 0 },
        { wm_parse_link_width, "", WM_EFORMAT, 0 },
        { wm_parse_link_width, "99999999999999999999\n", WM_EFORMAT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double value = -1;
        assert_int_equal(cases[i].parse(cases[i].text, &value), cases[i].status);
        assert_true(value == (cases[i].status == WM_OK ? cases[i].value : -1));
    }
}

static void test_levels(void **state)
{
    static const struct {
        const char *text;
        int status;
        bool has_now;
        double now, max; /* MHz */
    } cases[] = {
        { "0: 500Mhz \n1: 2371Mhz *\n2: 2482Mhz \n", WM_OK, true, 2371, 2482 },
        { "0: 500Mhz\n1: 2482Mhz\n", WM_OK, false, 0, 2482 },
        { "S: 19Mhz *\n0: 615Mhz \n1: 800Mhz \n", WM_OK, true, 19, 800 },
        { "0: 96MHz *\n", WM_OK, true, 96, 96 },
        { "", WM_EFORMAT, false, 0, 0 },
        { "\n", WM_EFORMAT, false, 0, 0 },
        { "0: 500Mhz *", WM_EFORMAT, false, 0, 0 },
        { "0: 500\n", WM_EFORMAT, false, 0, 0 },
        { "0: -500Mhz *\n", WM_EFORMAT, false, 0, 0 },
        { "0 500Mhz *\n", WM_EFORMAT, false, 0, 0 },
        { "0: 500Mhz * *\n", WM_EFORMAT, false, 0, 0 },
        { "0: 500Mhz\ngarbage\n", WM_EFORMAT, false, 0, 0 },
        { "0: 9999999Mhz\n", WM_EFORMAT, false, 0, 0 },
        { "0: 2.5GT/s, x8 *\n", WM_EFORMAT, false, 0, 0 },
        { "S", WM_EFORMAT, false, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_dpm_levels levels = { .has_now = true, .now = -1, .max = -1 };

        assert_int_equal(wm_parse_dpm_levels(cases[i].text, &levels), cases[i].status);
        if (cases[i].status != WM_OK) {
            assert_true(levels.has_now && levels.now == -1 && levels.max == -1);
            continue;
        }
        assert_int_equal(levels.has_now, cases[i].has_now);
        assert_true(!levels.has_now || levels.now == cases[i].now * 1e6);
        assert_true(levels.max == cases[i].max * 1e6);
    }
}

static void test_named_numbers(void **state)
{
    static const struct {
        const char *text, *name;
        int status;
        uint64_t value;
    } cases[] = {
        { "ue: 1\nce: 40\n", "ue", WM_OK, 1 },
        { "ue: 1\nce: 40\n", "ce", WM_OK, 40 },
        { "ue: 1\nce: 40\nde: 3\n", "de", WM_OK, 3 },
        { "simd_count 192\nsimd_per_cu 2\n", "simd_per_cu", WM_OK, 2 },
        { "simd_count_x 1\nsimd_count 192\n", "simd_count", WM_OK, 192 },
        { "xsimd_count 1\n", "simd_count", WM_ENOENT, 0 },
        { "", "ue", WM_ENOENT, 0 },
        { "\n\n", "ue", WM_ENOENT, 0 },
        { "ue", "ue", WM_ENOENT, 0 },
        { "ue:", "ue", WM_ENOENT, 0 },
        { "ue:1\n", "ue", WM_ENOENT, 0 },
        { "Query currently inaccessible\n", "ue", WM_ENOENT, 0 },
        { "ue: \n", "ue", WM_EFORMAT, 0 },
        { "ue: 1", "ue", WM_EFORMAT, 0 },
        { "ue: -1\n", "ue", WM_EFORMAT, 0 },
        { "ue: 0x1\n", "ue", WM_EFORMAT, 0 },
        { "ue: 1 2\n", "ue", WM_EFORMAT, 0 },
        { "ue: 18446744073709551616\n", "ue", WM_EFORMAT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t value = 77;
        assert_int_equal(wm_parse_named_number(cases[i].text, cases[i].name, &value),
                         cases[i].status);
        assert_true(value == (cases[i].status == WM_OK ? cases[i].value : 77));
    }
}

UNIT(gpu_drm_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),          cmocka_unit_test(test_hex),
        cmocka_unit_test(test_links),         cmocka_unit_test(test_levels),
        cmocka_unit_test(test_named_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
