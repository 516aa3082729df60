/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_number.c - doubles as text and back. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_number.h"
#include "test.h"

static void test_format(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "0" },
        { 1, "1" },
        { -1, "-1" },
        { 0.1, "0.1" },
        { -0.25, "-0.25" },
        { 123456.789, "123456.789" },
        { 0.001, "0.001" },
        { 1e-9, "0.000000001" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1795247379.2159243, "1795247379.2159243" },
        { 67430678528.0, "67430678528" },
        { 999999999999999.0, "999999999999999" },
        { 1e15, "1e+15" },
        { 9007199254740993.0, "9007199254740992" },
        { 1e22, "1e+22" },
        { 1e23, "1e+23" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 5e-324, "4.94065645841247e-324" },
        { NAN, "" },
        { INFINITY, "" },
        { -INFINITY, "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[WM_NUMBER_SIZE];
        size_t length = wm_number_format(cases[i].value, text);
        print_message("  %s\n", cases[i].text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
    }
}

static void test_format_float(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0.0" },
        { -17, "-17.0" },
        { 1795247379, "1795247379.0" },
        { 9007199254740992.0, "9007199254740992.0" },
        { 0.5, "0.5" },
        { 1e22, "1e+22" },
        { NAN, "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[WM_NUMBER_SIZE];
        size_t length = wm_number_format_float(cases[i].value, text);
        print_message("  %s\n", cases[i].text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
    }
}

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        { "0", 0 },
        { "-1", -1 },
        { "+1", 1 },
        { "1.", 1 },
        { ".5", 0.5 },
        { "00012", 12 },
        { "1e3", 1000 },
        { "1E+3", 1000 },
        { "25e-2", 0.25 },
        { "0.30000000000000004", 0.1 + 0.2 },
        { "9007199254740993", 9007199254740992.0 },
        { "9007199254740993.00000000000000001", 9007199254740994.0 },
        { "123456789012345678901234567890", 1.2345678901234568e29 },
        { "1e23", 1e23 },
        { "8.5e22", 8.5e22 },
        { "1e-400", 0 },
        { "4.9e-324", 5e-324 },
        { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "0e999999999999999999999", 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double value = NAN;
        print_message("  %s\n", cases[i].text);
        assert_true(wm_number_parse(cases[i].text, strlen(cases[i].text), &value));
        assert_true(value == cases[i].value);
    }
}

static void test_no_number(void **state)
{
    static const char *const cases[] = {
        "",      "-",    "+",     ".",    "-.",    "e5",       "1e",   "1e+",  "1e-",
        "--1",   "+-1",  "1.2.3", "1,5",  "1 ",    " 1",       "1x",   "0x10", "1_000",
        "inf",   "nan",  "NaN",   "-inf", "1e999", "-1e999",   "1e5.", "\t1",  "1\n",
        "0x1p3", "1e3e", "1..",   "1d5",  "1f",    "Infinity",
    };
    char longest[512];
    double value = 7;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  '%s'\n", cases[i]);
        assert_false(wm_number_parse(cases[i], strlen(cases[i]), &value));
    }
    assert_false(wm_number_parse("1\0"
                                 "2",
                                 3, &value));
    memset(longest, '0', sizeof(longest));
    assert_false(wm_number_parse(longest, sizeof(longest), &value));
    assert_true(value == 7);
    assert_true(wm_number_parse(longest, 400, &value));
}

/* Doubles of any size and kind come back as they were. */
static void test_round_trip(void **state)
{
    uint64_t bits = 88172645463325252;
    (void)state;

    for (size_t i = 0; i < 300000; i++) {
        char text[WM_NUMBER_SIZE];
        double value, again = NAN;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        if (i % 3 == 0)
            memcpy(&value, &bits, sizeof(value));
        else
            value = (double)(int64_t)(bits >> (i % 40)) / (i % 3 == 1 ? 1e9 : 1e3);
        if (!isfinite(value))
            continue;
        size_t length = wm_number_format(value, text);
        assert_in_range(length, 1, WM_NUMBER_SIZE - 1);
        if (!wm_number_parse(text, length, &again) || again != value)
            fail_msg("%a became '%s'", value, text);
    }
}

UNIT(base_number)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),     cmocka_unit_test(test_format_float),
        cmocka_unit_test(test_parse),      cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
