/* SPDX-License-Identifier: Apache-2.0 */
/* test_view_gpu_tracker.c - a report in gpu_tracker's layouts, which its documents print
 * (tests/data/gpu_tracker): a session of theirs, and what is not known. */
#include <stdlib.h>
#include <string.h>

#include "made_report.h"

#define MEGAS(number_) KNOWN((number_)*1e6)
#define RSS(total_, private__, shared_)                                                    \
    {                                                                                      \
        .total = MEGAS(total_), .private_ = MEGAS(private__), .shared = MEGAS(shared_)     \
    }
#define SUMS(max_, max_hardware_, mean_, mean_hardware_)                                   \
    {                                                                                      \
        KNOWN(max_), KNOWN(max_hardware_), KNOWN(mean_), KNOWN(mean_hardware_)             \
    }

static const struct wm_report_style megabytes = {
    .ram_unit = "megabytes",
    .gpu_ram_unit = "megabytes",
    .time_unit = "seconds",
};

static void check(const struct wm_report *report, enum wm_format format,
                  const struct wm_report_style *style, const char *relative)
{
    char *printed = made_print(report, format, style);
    char *expected = test_read_source(relative);

    assert_string_equal(printed, expected);
    free(printed);
    free(expected);
}

static void test_seed(void **state)
{
    static const struct wm_report report = {
        .complete = true,
        .run = { .core_count = 12,
                 .expected_cores = 12,
                 .gpu_count = 1,
                 .expected_gpu_count = 1 },
        .compute_time = KNOWN(2.728560209274292),
        .ram_capacity = MEGAS(67254.165504),
        .ram_system = MEGAS(1984.790528),
        .ram_main = RSS(873.8529279999999, 638.353408, 235.679744),
        .ram_descendants = RSS(0.0, 0.0, 0.0),
        .ram_combined = RSS(873.8529279999999, 638.353408, 235.679744),
        .gpu_ram_capacity = MEGAS(16376.0),
        .gpu_ram_system = MEGAS(728.0),
        .gpu_ram_main = MEGAS(506.0),
        .gpu_ram_descendants = KNOWN(0),
        .gpu_ram_combined = MEGAS(506.0),
        .cpu_system = SUMS(161.60000000000002, 13.466666666666669, 145.51666666666668,
                           12.12638888888889),
        .cpu_main = SUMS(101.5, 8.458333333333334, 98.68333333333334, 8.22361111111111),
        .cpu_descendants = SUMS(0, 0, 0, 0),
        .cpu_combined = SUMS(101.5, 8.458333333333334, 98.68333333333334, 8.22361111111111),
        .main_threads = KNOWN(15),
        .descendants_threads = KNOWN(0),
        .combined_threads = KNOWN(15),
        .gpu_percentages = SUMS(3, 3, 0.25, 0.25),
    };

    (void)state;
    check(&report, WM_FORMAT_GPU_TRACKER_API, &megabytes,
          "tests/data/gpu_tracker/tracker.txt");
    check(&report, WM_FORMAT_GPU_TRACKER_JSON, &megabytes,
          "tests/data/gpu_tracker/tracker.json");
}

/* Of a report that knows nothing. */
#define NOTHING(gpu_count_, gpus_unknown_)                                                 \
    {                                                                                      \
        .run = { .core_count = 2,                                                          \
                 .gpu_count = gpu_count_,                                                  \
                 .gpus_unknown = gpus_unknown_ },                                          \
    }

static void test_unknown(void **state)
{
    static const struct {
        const char *name;
        struct wm_report report;
        const char *ram, *gpu_ram, *gpu_percent; /* lines that must be there */
    } rows[] = {
        { "no GPU, and that is known", NOTHING(0, false), "   System: n/a\n",
          "Max GPU RAM:\n   Unit: gigabytes\n   System capacity: 0.0\n   System: 0.0\n",
          "GPU percentages:\n      Max sum percent: 0.0\n" },
        { "a driver in trouble", NOTHING(0, true), "   System: n/a\n",
          "Max GPU RAM:\n   Unit: gigabytes\n   System capacity: n/a\n   System: n/a\n",
          "GPU percentages:\n      Max sum percent: n/a\n" },
        { "GPUs that do not tell", NOTHING(2, false), "   System: n/a\n",
          "Max GPU RAM:\n   Unit: gigabytes\n   System capacity: n/a\n   System: n/a\n",
          "GPU percentages:\n      Max sum percent: n/a\n" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = made_print(&rows[i].report, WM_FORMAT_GPU_TRACKER_API, NULL);
        if (!strstr(text, rows[i].ram) || !strstr(text, rows[i].gpu_ram) ||
            !strstr(text, rows[i].gpu_percent))
            fail_msg("%s: %s", rows[i].name, text);
        assert_non_null(strstr(text, "Compute time:\n   Unit: hours\n   Time: n/a"));
        free(text);
        text = made_print(&rows[i].report, WM_FORMAT_GPU_TRACKER_JSON, NULL);
        assert_non_null(strstr(text, "\n  \"time\": null\n }\n}"));
        assert_null(strstr(text, "NaN"));
        free(text);
    }
}

static void test_numbers(void **state)
{
    static const struct {
        double bytes;
        const char *unit, *shown;
    } rows[] = {
        { 0, "gigabytes", ": 0.0\n" },
        { 16376e6, "gigabytes", ": 16.376\n" },
        { 67254165504, "bytes", ": 67254165504.0\n" },
        { 67254165504, "gigabytes", ": 67.254\n" },
        { 67254165504, "terabytes", ": 0.067\n" },
        { 4e5, "gigabytes", ": 0.0\n" },
        { 6e5, "gigabytes", ": 0.001\n" },
        { 17.2e9, "gigabytes", ": 17.2\n" },
        { 9.9996e9, "gigabytes", ": 10.0\n" },
        { 4398046511104, "bytes", ": 4398046511104.0\n" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_report report = { .ram_capacity = KNOWN(rows[i].bytes) };
        const struct wm_report_style style = { .ram_unit = rows[i].unit };
        char *text = made_print(&report, WM_FORMAT_GPU_TRACKER_API, &style);
        char expected[64];
        snprintf(expected, sizeof(expected), "System capacity%s", rows[i].shown);
        if (!strstr(text, expected))
            fail_msg("%g %s: %s", rows[i].bytes, rows[i].unit, text);
        free(text);
    }
}

static void test_out_of_memory(void **state)
{
    static const enum wm_format formats[] = { WM_FORMAT_GPU_TRACKER_API,
                                              WM_FORMAT_GPU_TRACKER_JSON };
    static const struct wm_report report = NOTHING(1, false);
    FILE *out = fopen("/dev/null", "w");

    (void)state;
    assert_non_null(out);
    setvbuf(out, NULL, _IONBF, 0);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        int status = WM_ENOMEM;
        for (long n = 0; status < 0; n++) {
            assert_true(n < 10000);
            test_fail_allocation(n);
            status = wm_report_print(&report, formats[i], NULL, out, NULL);
            test_fail_allocation(-1);
            assert_true(status == WM_OK || status == WM_ENOMEM);
        }
    }
    fclose(out);
}

UNIT(view_gpu_tracker)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
