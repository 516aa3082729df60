/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_text.c - strict numbers, and valid UTF-8 whatever comes in. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/base_text.h"

static void test_u64(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
        const char *rest;
    } cases[] = {
        { "0", true, 0, "" },
        { "42", true, 42, "" },
        { "007 x", true, 7, " x" },
        { "12kB", true, 12, "kB" },
        { "18446744073709551615", true, UINT64_MAX, "" },
        { "000018446744073709551615", true, UINT64_MAX, "" },
        { "18446744073709551616", false, 0, "" },
        { "18446744073709551620", false, 0, "" },
        { "99999999999999999999999999999999999999", false, 0, "" },
        { "", false, 0, "" },
        { " 1", false, 0, "" },
        { "\t1", false, 0, "" },
        { "+1", false, 0, "" },
        { "-1", false, 0, "" },
        { "-0", false, 0, "" },
        { "x1", false, 0, "" },
        { "0x10", true, 0, "x10" },
        { "1.5", true, 1, ".5" },
        { "\xef\xbc\x91", false, 0, "" }, /* a full-width 1 */
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *end = "untouched";
        uint64_t value = 12345;

        print_message("  '%s'\n", cases[i].text);
        assert_int_equal(wm_text_u64(cases[i].text, &end, &value), cases[i].ok);
        assert_true(value == (cases[i].ok ? cases[i].value : 12345));
        assert_string_equal(end, cases[i].ok ? cases[i].rest : "untouched");
        assert_int_equal(wm_text_u64(cases[i].text, NULL, &value), cases[i].ok);
    }
}

static void test_i64(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
        const char *rest;
    } cases[] = {
        { "0", true, 0, "" },
        { "-0", true, 0, "" },
        { "-5 6", true, -5, " 6" },
        { "9223372036854775807", true, INT64_MAX, "" },
        { "-9223372036854775808", true, INT64_MIN, "" },
        { "9223372036854775808", false, 0, "" },
        { "-9223372036854775809", false, 0, "" },
        { "18446744073709551615", false, 0, "" },
        { "-18446744073709551616", false, 0, "" },
        { "", false, 0, "" },
        { "-", false, 0, "" },
        { "--1", false, 0, "" },
        { "- 1", false, 0, "" },
        { "+1", false, 0, "" },
        { " -1", false, 0, "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *end = "untouched";
        int64_t value = 12345;

        print_message("  '%s'\n", cases[i].text);
        assert_int_equal(wm_text_i64(cases[i].text, &end, &value), cases[i].ok);
        assert_true(value == (cases[i].ok ? cases[i].value : 12345));
        assert_string_equal(end, cases[i].ok ? cases[i].rest : "untouched");
        assert_int_equal(wm_text_i64(cases[i].text, NULL, &value), cases[i].ok);
    }
}

static void test_skip_blanks(void **state)
{
    static const struct {
        const char *text, *rest;
    } cases[] = {
        { "", "" },         { "a b", "a b" },  { "  a", "a" },
        { " \t \ta", "a" }, { " \na", "\na" }, { "   ", "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(wm_text_skip_blanks(cases[i].text), cases[i].rest);
}

#define BAD "\xef\xbf\xbd"

static void test_utf8(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        const char *valid;
    } cases[] = {
        { "nothing", "", "" },
        { "plain", "coretemp.0", "coretemp.0" },
        { "two, three and four bytes", "\xc3\xbc \xe2\x82\xac \xf0\x9f\x94\xa5",
          "\xc3\xbc \xe2\x82\xac \xf0\x9f\x94\xa5" },
        { "first and last of each length",
          "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
          "\xbf",
          "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf"
          "\xbf" },
        { "Latin-1", "caf\xe9!", "caf" BAD "!" },
        { "a continuation alone", "a\x80z", "a" BAD "z" },
        { "overlong slash", "\xc0\xaf", BAD BAD },
        { "overlong in three bytes", "\xe0\x80\xaf", BAD BAD BAD },
        { "overlong in four bytes", "\xf0\x80\x80\xaf", BAD BAD BAD BAD },
        { "a surrogate", "\xed\xa0\x80", BAD BAD BAD },
        { "past the last character", "\xf4\x90\x80\x80", BAD BAD BAD BAD },
        { "no lead bytes at all", "\xf5\xff", BAD BAD },
        { "cut off after one of two", "a\xc3", "a" BAD },
        { "cut off after three of four", "a\xf0\x9f\x94", "a" BAD },
        { "cut off by a good one",
          "\xe2\x82"
          "a",
          BAD "a" },
        { "cut off by another lead byte", "\xe2\x82\xc3\xbc", BAD "\xc3\xbc" },
    };
    char out[64];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        size_t length =
            wm_text_utf8(out, sizeof(out), cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(out, cases[i].valid);
        assert_int_equal(length, strlen(cases[i].valid));
    }

    assert_int_equal(wm_text_utf8(out, sizeof(out), "a\0b", 3), 5);
    assert_string_equal(out, "a" BAD "b");
}

static void test_utf8_fits(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t size;
        const char *expected;
    } cases[] = {
        { "exactly", "abcd", 5, "abcd" },
        { "one too many", "abcd", 4, "abc" },
        { "never half a character", "ab\xe2\x82\xac", 5, "ab" },
        { "a whole one", "ab\xe2\x82\xac", 6, "ab\xe2\x82\xac" },
        { "no room for the replacement",
          "a\xff"
          "b",
          4, "a" },
        { "room for nothing", "abc", 1, "" },
    };
    char out[16];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        memset(out, '#', sizeof(out));
        size_t length =
            wm_text_utf8(out, cases[i].size, cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(out, cases[i].expected);
        assert_int_equal(length, strlen(cases[i].expected));
        assert_int_equal(out[cases[i].size], '#');
    }

    memset(out, '#', sizeof(out));
    assert_int_equal(wm_text_utf8(out, 0, "abc", 3), 0);
    assert_int_equal(out[0], '#');
}

static void test_clean(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        const char *clean;
    } cases[] = {
        { "empty", "", "" },
        { "plain", "NVIDIA H100 80GB HBM3 ~", "NVIDIA H100 80GB HBM3 ~" },
        { "UTF-8 of two, three, four", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x8b",
          "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x8b" },
        { "a no-break space", "a\xc2\xa0z", "a\xc2\xa0z" },
        { "an escape", "a\033[2J", "a?[2J" },
        { "lines and tabs", "a\n\r\tz", "a???z" },
        { "delete", "a\177", "a?" },
        { "the escape of C1",
          "a\xc2\x9b"
          "2J",
          "a?2J" },
        { "the last of C1", "\xc2\x9fz", "?z" },
        { "next line", "a\xc2\x85z", "a?z" },
        { "ends of a line and a paragraph", "a\xe2\x80\xa8\xe2\x80\xa9z", "a??z" },
        { "text that turns", "a\xe2\x80\xaa\xe2\x80\xaez", "a??z" },
        { "isolates", "a\xe2\x81\xa6\xe2\x81\xa9z", "a??z" },
        { "their neighbours", "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
          "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa" },
        { "U+FFFD", BAD "z", "?z" },
        { "Latin-1", "caf\xe9!", "caf?!" },
        { "cut off", "\xc3\xa4\xe2\x82", "\xc3\xa4?" },
        { "cut off by a good one", "\xe2\x82\xc3\xbc", "?\xc3\xbc" },
        { "overlong newline", "\xc0\x8a", "??" },
    };
    char text[64];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        memcpy(text, cases[i].bytes, strlen(cases[i].bytes) + 1);
        wm_text_clean(text);
        assert_string_equal(text, cases[i].clean);
    }
}

static void test_hide_passwords(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        { "", "" },
        { "a:b@c", "a:b@c" },
        { "x://host:5432", "x://host:5432" },
        { "x://host:5432/db: no such file", "x://host:5432/db: no such file" },
        { "x://user@host/db", "x://user@host/db" },
        { "x://user:@host", "x://user:@host" },
        { "x://user:p@host/db: no", "x://user:*@host/db: no" },
        { "'x://user:p/@:q@host' is none", "'x://user:*@host' is none" },
        { "a x://u:p@h, b y://u:q@i", "a x://u:*@h, b y://u:*@i" },
        { "x://u:it's@h/db, 'x://u:p\"q@h'", "x://u:*@h/db, 'x://u:*@h'" },
        { "x://u:p q@h/db and y://h:1/ a@b", "x://u:*@h/db and y://h:1/ a@b" },
        { "x://u:p://q@h/db", "x://u:*@h/db" },
        { "x://h:5432: refused, tell a@b", "x://h:5432: refused, tell a@b" },
        { "no ('x://h:5432')", "no ('x://h:5432')" },
        { "cut off: x://user:secr", "cut off: x://user:*" },
        { "cut off: x://user:it's.", "cut off: x://user:*" },
        { "'x://h?password=it's'", "'x://h?password=*'" },
        { "'x://user:it's' is cut off", "'x://user:*' is cut off" },
        { "'x://user:secr' is cut off", "'x://user:*' is cut off" },
        { "\"x://user:s\" is cut off", "\"x://user:*\" is cut off" },
        { "'x://host:5432': not there", "'x://host:5432': not there" },
        { "x://h/db?user=u&password=p&a=b", "x://h/db?user=u&password=*&a=b" },
        { "'password=p' password=", "'password=*' password=" },
    };
    char text[64];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        memcpy(text, cases[i].text, strlen(cases[i].text) + 1);
        wm_text_hide_passwords(text);
        assert_string_equal(text, cases[i].shown);
    }
}

static void test_line(void **state)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        { "coretemp\n", "coretemp" },
        { "coretemp", "coretemp" },
        { " \tPackage id 0 \t\n", "Package id 0" },
        { "one\ntwo\n", "one" },
        { "dos\r\n", "dos" },
        { "", "" },
        { "\n", "" },
        { "   \n", "" },
        { "\nsecond", "" },
        { "bad\xff\n", "bad" BAD },
    };
    char line[64];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t length = wm_text_line(line, sizeof(line), cases[i].text);
        assert_string_equal(line, cases[i].line);
        assert_int_equal(length, strlen(cases[i].line));
    }

    assert_int_equal(wm_text_line(line, 9, "  Package id 0\n"), 8);
    assert_string_equal(line, "Package ");
}

static void test_csv(void **state)
{
    static const struct {
        const char *text;
        bool is_quoted;
        const char *doubled;
    } cases[] = {
        { "", false, "" },
        { "plain name", false, "plain name" },
        { "'", false, "'" },
        { "a;b\tc", false, "a;b\tc" },
        { "a,b", true, "a,b" },
        { "a\nb", true, "a\nb" },
        { "a\r", true, "a\r" },
        { "\"", true, "\"\"" },
        { "a\"b\"", true, "a\"\"b\"\"" },
        { "\"\"\"", true, "\"\"\"\"\"\"" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[32];
        size_t length = strlen(cases[i].text);
        assert_int_equal(wm_text_is_quoted(cases[i].text, length), cases[i].is_quoted);
        length = wm_text_double_quotes(out, cases[i].text, length);
        assert_int_equal(length, strlen(cases[i].doubled));
        assert_memory_equal(out, cases[i].doubled, length);
    }
}

static void test_list(void **state)
{
    static const struct {
        const char *before, *added, *list;
    } cases[] = {
        { "", "a", "a" },
        { "a", "b", "a; b" },
        { "a", "", "a; " },
        { "", "0123456789", "0123456789" },
        { "0123456789", "b", "0123456789;" },
        { "01234567890", "b", "01234567890" },
        { "0123", "456789ab", "0123; 45678" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char list[12];
        snprintf(list, sizeof(list), "%s", cases[i].before);
        wm_text_list(list, sizeof(list), "; ", "%s", cases[i].added);
        assert_string_equal(list, cases[i].list);
    }
}

UNIT(base_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_skip_blanks),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_fits),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_hide_passwords),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
