/* SPDX-License-Identifier: Apache-2.0 */
/* test_units.c - quantities as people read them, and units by name. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "test.h"
#include "view/view_units.h"

static void test_numbers(void **state)
{
    static const struct {
        double value;
        int digits;
        const char *text;
    } rows[] = {
        { 0, 3, "0" },
        { -0.0, 3, "0" },
        { 1, 3, "1.00" },
        { 12.345, 3, "12.3" },
        { 12.35, 3, "12.4" },
        { 9.996, 3, "10.0" },
        { 9.994, 3, "9.99" },
        { 99.96, 3, "100" },
        { 999.6, 3, "1000" },
        { 12345.6, 3, "12346" },
        { 0.00123456, 3, "0.00123" },
        { 0.0999999, 3, "0.100" },
        { 1e-10, 3, "0" },
        { -2.5, 2, "-2.5" },
        { 1234.5678, 6, "1234.57" },
        { 1e15, 3, "1000000000000000" },
        { 1e30, 3, "1e+30" },
        { INFINITY, 4, ">1e+308" },
        { -INFINITY, 4, "<-1e+308" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_quantity text = wm_view_number(rows[i].value, rows[i].digits);
        assert_string_equal(text.text, rows[i].text);
    }
}

static void test_fixed(void **state)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } rows[] = {
        { 0, 0, "0" },
        { 0, 2, "0.00" },
        { -0.001, 2, "0.00" },
        { 1, 1, "1.0" },
        { 122.23, 2, "122.23" },
        { 99.996, 2, "100.00" },
        { -3.14159, 2, "-3.14" },
        { 0.5, 0, "1" },
        { 11178.5, 2, "11178.50" },
        { 123456789012.25, 2, "123456789012.25" },
        { 1e17, 2, "1e+17" },
        { INFINITY, 0, ">1e+308" },
        { -INFINITY, 2, "<-1e+308" },
        { -1e300, 0, "-1e+300" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_quantity text = wm_view_fixed(rows[i].value, rows[i].decimals);
        assert_string_equal(text.text, rows[i].text);
    }
}

static const struct wm_unit *unit_named(const char *memory, const char *time)
{
    const struct wm_report_style style = { .ram_unit = memory, .time_unit = time };
    struct wm_units units;

    assert_int_equal(wm_units_of_style(&style, &units, NULL), WM_OK);
    return memory ? units.ram : units.time;
}

static void test_bytes(void **state)
{
    static const struct {
        double bytes;
        const char *unit;
        const char *text;
    } rows[] = {
        { 0, NULL, "0 B" },
        { 1, NULL, "1.00 B" },
        { 999, NULL, "999 B" },
        { 999.9, NULL, "1.00 kB" },
        { 1000, NULL, "1.00 kB" },
        { 4096, NULL, "4.10 kB" },
        { 999499, NULL, "999 kB" },
        { 999600, NULL, "1.00 MB" },
        { 512e6, NULL, "512 MB" },
        { 67254165504, NULL, "67.3 GB" },
        { 3e15, NULL, "3000 TB" },
        { 512e6, "bytes", "512000000 B" },
        { 512e6, "gigabytes", "0.5120 GB" },
        { 873852928, "megabytes", "873.9 MB" },
        { 1, "terabytes", "0 TB" },
        { 1e308, NULL, "1e+296 TB" },
        { INFINITY, NULL, ">1e+296 TB" },
        { INFINITY, "bytes", ">1e+308 B" },
        { -INFINITY, NULL, "<-1e+296 TB" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_quantity text = wm_view_bytes(
            rows[i].bytes, rows[i].unit ? unit_named(rows[i].unit, NULL) : NULL);
        assert_string_equal(text.text, rows[i].text);
    }
}

static void test_durations(void **state)
{
    static const struct {
        double seconds;
        const char *unit;
        const char *text;
    } rows[] = {
        { 0, NULL, "0 ns" },
        { 4e-8, NULL, "40.00 ns" },
        { 9.9996e-7, NULL, "1.000 µs" },
        { 1.5e-6, NULL, "1.500 µs" },
        { 0.000812, NULL, "812.0 µs" },
        { 0.00099999, NULL, "1.000 ms" },
        { 0.012345, NULL, "12.35 ms" },
        { 1.0021, NULL, "1.002 s" },
        { 123.456, NULL, "123.5 s" },
        { 599.94, NULL, "599.9 s" },
        { 599.96, NULL, "10 min 00 s" },
        { 3599.6, NULL, "1 h 00 min 00 s" },
        { 3723.4, NULL, "1 h 02 min 03 s" },
        { 400000, NULL, "111 h 06 min 40 s" },
        { 2.728, "seconds", "2.728 s" },
        { 90, "minutes", "1.500 min" },
        { 4.5, "hours", "0.001250 h" },
        { 86400, "days", "1.000 d" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_quantity text = wm_view_duration(
            rows[i].seconds, rows[i].unit ? unit_named(NULL, rows[i].unit) : NULL);
        assert_string_equal(text.text, rows[i].text);
    }
}

static void test_prefixed(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        { 0, "0 J" },        { 1, "1.00 J" },      { 0.5, "500 mJ" },
        { 2e-5, "20.0 µJ" }, { 999.4, "999 J" },   { 999.6, "1.00 kJ" },
        { 3210, "3.21 kJ" }, { 7.5e6, "7.50 MJ" }, { 1e12, "1000 GJ" },
        { 6e-8, "60.0 nJ" }, { 2e-11, "20.0 pJ" }, { 1e-16, "0 J" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_quantity text = wm_view_prefixed(rows[i].value, "J");
        assert_string_equal(text.text, rows[i].text);
    }
}

static void test_styles(void **state)
{
    static const struct {
        struct wm_report_style style;
        int status;
        const char *says[3];
    } rows[] = {
        { { 0 }, WM_OK, { NULL } },
        { { .ram_unit = "gigabytes", .gpu_ram_unit = "terabytes", .time_unit = "days" },
          WM_OK,
          { NULL } },
        { { .ram_unit = "GB" }, WM_EINVAL, { "'GB'", "memory", "kilobytes" } },
        { { .gpu_ram_unit = "gibibytes" },
          WM_EINVAL,
          { "'gibibytes'", "memory", "terabytes" } },
        { { .time_unit = "weeks" }, WM_EINVAL, { "'weeks'", "time", "minutes" } },
        { { .ram_unit = "seconds" }, WM_EINVAL, { "'seconds'", "memory", "bytes" } },
        { { .ram_unit = "" }, WM_EINVAL, { "''", "memory", "bytes" } },
        { { .ram_unit = "Bytes" }, WM_EINVAL, { "'Bytes'", "memory", "bytes" } },
        { { .ram_unit = "bytes " }, WM_EINVAL, { "'bytes '", "memory", "bytes" } },
        { { .price_per_kwh = 0.3, .currency = "EUR", .carbon_g_per_kwh = 380, .pue = 1.2 },
          WM_OK,
          { NULL } },
        { { .price_per_kwh = 1e6, .currency = "€", .carbon_g_per_kwh = 1e5, .pue = 100 },
          WM_OK,
          { NULL } },
        { { .currency = "15bytesatmost.." }, WM_OK, { NULL } },
        { { .price_per_kwh = -0.3 }, WM_EINVAL, { "price", "0 to 1000000" } },
        { { .price_per_kwh = 1.1e6 }, WM_EINVAL, { "price" } },
        { { .price_per_kwh = NAN }, WM_EINVAL, { "price" } },
        { { .price_per_kwh = INFINITY }, WM_EINVAL, { "price" } },
        { { .carbon_g_per_kwh = -1 }, WM_EINVAL, { "carbon", "0 to 100000" } },
        { { .carbon_g_per_kwh = 1e300 }, WM_EINVAL, { "carbon" } },
        { { .carbon_g_per_kwh = NAN }, WM_EINVAL, { "carbon" } },
        { { .pue = 0.99 }, WM_EINVAL, { "pue", "1 to 100" } },
        { { .pue = -INFINITY }, WM_EINVAL, { "pue" } },
        { { .pue = NAN }, WM_EINVAL, { "pue" } },
        { { .pue = 101 }, WM_EINVAL, { "pue" } },
        { { .currency = "" }, WM_EINVAL, { "currency" } },
        { { .currency = "16 bytes or more" }, WM_EINVAL, { "currency" } },
        { { .currency = "E R" }, WM_EINVAL, { "currency" } },
        { { .currency = "E\033[1m" }, WM_EINVAL, { "currency" } },
        { { .currency = "E\nR" }, WM_EINVAL, { "currency" } },
        { { .currency = "E\302\233R" }, WM_EINVAL, { "currency" } },
        { { .currency = "\377" }, WM_EINVAL, { "currency", "UTF-8" } },
    };

    (void)state;
    assert_int_equal(wm_report_style_check(NULL, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_error err = { 0 };
        assert_int_equal(wm_report_style_check(&rows[i].style, &err), rows[i].status);
        assert_int_equal(wm_report_style_check(&rows[i].style, NULL), rows[i].status);
        for (size_t k = 0; k < ARRAY_LEN(rows[i].says) && rows[i].says[k]; k++)
            assert_non_null(strstr(err.text, rows[i].says[k]));
    }
}

static void test_figures(void **state)
{
    static const struct {
        struct wm_report_figure figure;
        const char *text;
    } rows[] = {
        { { .unit = "J", .value = 2543.2, .has_range = true, .low = 2480, .high = 2606 },
          "2.54 kJ ± 2.5 %" },
        { { .unit = "J", .value = 3.913, .has_range = true, .low = 1.9, .high = 5.9 },
          "about 4 J ± 51 %" },
        { { .unit = "J", .value = 0.003, .has_range = true, .high = 0.008 },
          "about 3 mJ (0 J to 8 mJ)" },
        { { .unit = "J", .has_range = true, .low = 0, .high = 0 }, "0 J" },
        { { .unit = "J", .has_range = true, .low = -4.1, .high = 4.1 },
          "about 0 J (-4 J to 4 J)" },
        { { .unit = "J", .value = -0.2, .has_range = true, .low = -4.3, .high = 3.9 },
          "about -200 mJ (-4 J to 4 J)" },
        { { .unit = "J", .value = 5, .state = WM_REPORT_AT_LEAST, .why = "cut" },
          "at least 5.00 J" },
        { { .unit = "W", .value = 12.34, .origin = WM_ESTIMATED },
          "about 12 W (estimated)" },
        { { .unit = "ratio", .value = 1.234, .origin = WM_ESTIMATED },
          "about 1.2 (estimated)" },
        { { .unit = "percent", .value = 12.34, .origin = WM_ESTIMATED },
          "12.3 % (estimated)" },
        { { .unit = "W", .value = 12, .origin = WM_SIMULATED }, "12.0 W (simulated)" },
        { { .unit = "s", .value = 12.3456 }, "12.35 s" },
        { { .unit = "B", .value = 171.9e6 }, "172 MB" },
        { { .unit = "count", .value = 1234567 }, "1234567" },
        { { .unit = "count", .value = 2.5 }, "2.50" },
        { { .unit = "percent", .value = 47.123 }, "47.1 %" },
        { { .unit = "ratio", .value = 0.5 }, "0.500" },
        { { .unit = "celsius", .value = 49 }, "49.0 °C" },
        { { .unit = "J", .value = NAN }, "n/a" },
        { { .unit = "J", .state = WM_REPORT_MISSING, .why = "no driver" },
          "n/a (no driver)" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_report_figure figure = rows[i].figure;
        char text[64], cut[4];
        if (figure.state == WM_REPORT_MISSING && !figure.why)
            figure.state = WM_REPORT_KNOWN;
        size_t size = wm_report_figure_text(&figure, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
        assert_int_equal(size, strlen(text) + 1);
        assert_int_equal(wm_report_figure_text(&figure, cut, sizeof(cut)), size);
        assert_memory_equal(cut, text, sizeof(cut) - 1);
    }
}

/* Only where such a locale is installed can this fail. */
static void test_locale(void **state)
{
    struct wm_quantity text;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    text = wm_view_number(1.5, 3);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text.text, "1.50");
}

UNIT(units)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_durations),
        cmocka_unit_test(test_prefixed), cmocka_unit_test(test_styles),
        cmocka_unit_test(test_figures),  cmocka_unit_test(test_locale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
