/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_aipm.c - AIPowerMeter's recordings: what their numbers come to, and
 * files that were cut off, edited, or made to do harm. A new case is a new row. */
#include "test_record_fixture.h"

#include <time.h>
#include <unistd.h>

#include "analyze/energy/analyze_energy.h"
#include "base/text/base_localtime.h"
#include "record/record_stats.h"

#define END "\"END OF RECORDING SEGMENT\"\n"
#define HEAD(date) "{\"date\": \"" date "\", \"metrics\": "
#define CPU(date, rest) HEAD(date) "{\"cpu\": {" rest "}}}\n"
#define WATTS(date, watts) CPU(date, "\"intel_power\": " watts)

/* One thing that a recording comes to. */
struct found {
    size_t ticks;
    struct wm_gauge_stats gauges[64];
    struct wm_counter_stats counters[64];
    struct wm_energy energies[64];
};

static struct wm_recording *open_text(void **state, const char *text)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };

    test_write_file(*state, "exp/power_metrics.json", text);
    assert_ok(wm_recording_open(fixture_path(state, "exp"), WM_LAST_RUN, &recording, &err));
    return recording;
}

static struct found *read_all(struct wm_recording *recording)
{
    size_t count = wm_recording_channel_count(recording);
    struct found *found = calloc(1, sizeof(*found));
    struct wm_error err = { 0 };
    struct wm_tick tick;
    int64_t last_ns = -1;
    int status;

    assert_true(found && count <= ARRAY_LEN(found->gauges));
    while ((status = wm_recording_next(recording, &tick, &err)) > 0) {
        assert_int_equal(tick.count, count);
        assert_true(tick.when_ns > last_ns);
        last_ns = tick.when_ns;
        for (size_t i = 0; i < count; i++) {
            wm_gauge_add(&found->gauges[i], &tick.readings[i]);
            wm_counter_add(&found->counters[i], &tick.readings[i]);
            wm_energy_add(&found->energies[i], tick.when_ns, NULL, &tick.readings[i]);
        }
        found->ticks++;
    }
    assert_int_equal(status, 0);
    return found;
}

/* The channel of that label and metric; there has to be one. */
static size_t channel_of(const struct wm_recording *recording, const char *label,
                         const char *metric)
{
    size_t count = wm_recording_channel_count(recording);

    for (size_t i = 0; i < count; i++) {
        const struct wm_channel *channel = wm_recording_channel(recording, i);
        if (strcmp(channel->label, label) == 0 && strcmp(channel->metric, metric) == 0)
            return i;
    }
    fail_msg("no channel %s %s", label, metric);
    return 0;
}

static const char *note_of(const struct wm_recording *recording, const char *key)
{
    const struct wm_run *run = wm_recording_run(recording);

    for (size_t i = 0; i < run->note_count; i++) {
        if (strcmp(run->notes[i].key, key) == 0)
            return run->notes[i].value;
    }
    return "";
}

/* Joules of the packages are the trapezoid over the records, as AIPowerMeter
 * itself has it, and the first windows. */
static void test_energy(void **state)
{
    enum { RECORDS = 400 };
    char *text = malloc(RECORDS * 256);
    double trapezoid = 0, first = 0, before_s = 0, before_watts = 0;
    double seconds = 1688142734;
    size_t used = 0;

    assert_non_null(text);
    for (int i = 0; i < RECORDS; i++) {
        /* Microseconds, as the file has them. */
        int spacing = i % 2 ? 200000 : 200000 + (i * 7919) % 10000;
        bool starts = i % 100 == 0;
        seconds += starts ? 33.25 : spacing / 1e6;
        double watts = 40 + (i * 104729 % 1000) / 37.0;
        time_t whole = (time_t)seconds;
        int micro = (int)llround((seconds - (double)whole) * 1e6);
        struct tm fields;
        char date[32];
        if (micro == 1000000) {
            whole++;
            micro = 0;
        }
        seconds = (double)whole + micro / 1e6;
        gmtime_r(&whole, &fields);
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &fields);
        if (starts && i > 0)
            used += (size_t)sprintf(text + used, END);
        used += (size_t)sprintf(text + used,
                                "{\"date\": \"%s.%06d\", \"metrics\": {\"cpu\": "
                                "{\"intel_power\": %.17g, \"psys_power\": -1}}}\n",
                                date, micro, watts);
        if (starts)
            first += watts;
        else
            trapezoid += (seconds - before_s) * (watts + before_watts) / 2;
        before_s = seconds;
        before_watts = watts;
    }

    struct wm_recording *recording = open_text(state, text);
    double spacing = (double)wm_recording_run(recording)->interval_ns / 1e9;
    struct found *found = read_all(recording);
    struct wm_energy_result result;
    size_t package = channel_of(recording, "package", "power");
    wm_energy_result(&found->energies[package], &result);

    assert_int_equal(wm_recording_channel_count(recording), 1);
    assert_int_equal(found->ticks, RECORDS + 4 + 3);
    assert_near(spacing, 0.2, 1e-3);
    /* Seconds since 1970 as a double are good for a quarter of a microsecond, and
     * that is the test's own inaccuracy. */
    assert_near(found->gauges[package].integral - first * spacing, trapezoid,
                1e-7 * trapezoid);
    assert_near(result.joules, found->gauges[package].integral, 1e-9 * trapezoid);
    assert_near(result.missing_s, 3 * (33.25 - spacing), 1e-3);
    assert_non_null(strstr(note_of(recording, "first window"), "4 segments"));
    assert_string_equal(wm_recording_result(recording)->recording_trouble, "");
    assert_false(wm_recording_result(recording)->tool_cpu_seconds.known);
    assert_false(wm_recording_result(recording)->tool_max_rss_bytes.known);
    wm_recording_close(recording);
    free(found);
    free(text);
}

/* The same to the last digit, with times that are exact. */
static void test_exact_energy(void **state)
{
    struct wm_recording *recording =
        open_text(state, WATTS("2021-12-08 13:55:49.500000", "29.7286368613")
                             WATTS("2021-12-08 13:55:51.500000", "27.2616245196")
                                 WATTS("2021-12-08 13:55:53.750000", "26.3549669065")
                                     WATTS("2021-12-08 13:55:55.750000", "8.1023068049"));
    double trapezoid = 2 * (29.7286368613 + 27.2616245196) / 2 +
                       2.25 * (27.2616245196 + 26.3549669065) / 2 +
                       2 * (26.3549669065 + 8.1023068049) / 2;
    struct found *found = read_all(recording);

    assert_int_equal(found->ticks, 5);
    assert_near(found->gauges[0].integral, trapezoid + 2 * 29.7286368613, 1e-9);
    assert_non_null(strstr(note_of(recording, "first window"), "added: 2 s, 59.4573 J"));
    assert_non_null(strstr(note_of(recording, "times"), "+0000 (UTC)"));
    assert_int_equal(wm_recording_result(recording)->end_ns -
                         wm_recording_run(recording)->anchor_ns,
                     INT64_C(8250000000));
    assert_int_equal(wm_recording_run(recording)->anchor_unix_ns,
                     INT64_C(1638971747500000000));
    wm_recording_close(recording);
    free(found);
}

/* What becomes of each metric. */
static void test_metrics(void **state)
{
    static const char cpu[] =
        "\"intel_power\": 30, \"total_cpu_power\": 20, \"uncore_power\": [0.5], "
        "\"total_dram_power\": 3, \"psys_power\": 50, \"total_mem_use\": 8e9, "
        "\"per_process_cpu_uses\": {\"1\": 0.5, \"2\": 0.25}, "
        "\"absolute_cpu_time_per_pid\": {\"1\": 1.5, \"2\": 0.5}, "
        "\"per_process_mem_use_abs\": {\"1\": 1000, \"2\": 24}, "
        "\"per_process_mem_use_uss\": {\"1\": 100, \"2\": 1}, "
        "\"rel_intel_power\": {\"1\": 15, \"2\": 7.5}, "
        "\"per_process_cpu_power\": {\"1\": 10, \"2\": 5}, "
        "\"per_process_dram_power\": {\"1\": 1}";
    static const char head_gpu[] =
        "\"nvidia_power\": 150, \"nvidia_memory\": 3e9, \"nvidia_use_rate\": 50, "
        "\"per_gpu_nvidia_power\": {\"0\": 100, \"1\": 50}, "
        "\"per_gpu_nvidia_memory\": {\"0\": 1e9, \"1\": 2e9}, "
        "\"per_gpu_nvidia_use_rate\": {\"0\": 100, \"1\": 0}";
    static const char old_gpu[] =
        "\"nvidia_draw_absolute\": 150, \"per_gpu_power_draw\": {\"0\": 100, \"1\": 50}, "
        "\"per_gpu_attributable_mem_use\": {\"0\": {\"1\": 5, \"2\": 6}, \"1\": {}}, "
        "\"per_gpu_per_pid_utilization_absolute\": {\"0\": {\"1\": 0.5, \"9\": 0.25}}, "
        "\"per_gpu_absolute_percent_usage\": {\"0\": 0.5, \"1\": 0}, "
        "\"per_gpu_estimated_attributable_utilization\": {\"0\": 0.625}, "
        "\"per_gpu_attributable_power\": {\"0\": 80, \"all\": 80}";
    static const struct {
        const char *gpu, *label, *metric, *unit;
        enum wm_device_kind kind;
        double value;
    } cases[] = {
        { "", "package", "power", "W", WM_DEVICE_CPU, 30 },
        { "", "core", "power", "W", WM_DEVICE_CPU_PART, 20 },
        { "", "uncore", "power", "W", WM_DEVICE_CPU_PART, 0.5 },
        { "", "dram", "power", "W", WM_DEVICE_DRAM, 3 },
        { "", "psys", "power", "W", WM_DEVICE_PLATFORM, 50 },
        { "", "host", "memory_used", "B", WM_DEVICE_HOST, 8e9 },
        { "", "tree", "cpu_share", "ratio", WM_DEVICE_TREE, 0.75 },
        { "", "tree", "cpu_time", "s", WM_DEVICE_TREE, 4 },
        { "", "tree", "memory_total", "B", WM_DEVICE_TREE, 1024 },
        { "", "tree", "memory_private", "B", WM_DEVICE_TREE, 101 },
        { "", "tree", "package_power", "W", WM_DEVICE_TREE, 22.5 },
        { "", "tree", "core_power", "W", WM_DEVICE_TREE, 15 },
        { "", "tree", "dram_power", "W", WM_DEVICE_TREE, 1 },
        { head_gpu, "gpus", "power_sum", "W", WM_DEVICE_OTHER, 150 },
        { head_gpu, "gpu0", "power", "W", WM_DEVICE_GPU, 100 },
        { head_gpu, "gpu1", "power", "W", WM_DEVICE_GPU, 50 },
        { head_gpu, "gpu1", "memory_used", "B", WM_DEVICE_GPU, 2e9 },
        { head_gpu, "gpu0", "utilization", "ratio", WM_DEVICE_GPU, 1 },
        { head_gpu, "gpu1", "utilization", "ratio", WM_DEVICE_GPU, 0 },
        { old_gpu, "gpu1", "power", "W", WM_DEVICE_GPU, 50 },
        { old_gpu, "gpu0", "utilization", "ratio", WM_DEVICE_GPU, 0.75 },
        { old_gpu, "gpu0", "tree_utilization", "ratio", WM_DEVICE_GPU, 0.5 },
        { old_gpu, "gpu0", "tree_share", "ratio", WM_DEVICE_GPU, 0.625 },
        { old_gpu, "gpu0", "tree_power", "W", WM_DEVICE_GPU, 80 },
        { old_gpu, "gpu0", "tree_memory_used", "B", WM_DEVICE_GPU, 11 },
        { old_gpu, "gpu1", "tree_memory_used", "B", WM_DEVICE_GPU, 0 },
        { "\"nvidia_estimated_attributable_power_draw\": 12", "tree", "gpu_power", "W",
          WM_DEVICE_TREE, 12 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[4096], record[1900];
        print_message("  %s %s\n", cases[i].label, cases[i].metric);
        snprintf(record, sizeof(record), "{\"cpu\": {%s}, \"gpu\": {%s}}}\n", cpu,
                 cases[i].gpu);
        snprintf(text, sizeof(text), "%s%s%s%s", HEAD("2022-01-01 00:00:00"), record,
                 HEAD("2022-01-01 00:00:02.5"), record);
        struct wm_recording *recording = open_text(state, text);
        size_t index = channel_of(recording, cases[i].label, cases[i].metric);
        const struct wm_channel *channel = wm_recording_channel(recording, index);
        struct found *found = read_all(recording);
        assert_string_equal(channel->unit, cases[i].unit);
        assert_int_equal(channel->device_kind, cases[i].kind);
        assert_near(found->gauges[index].last, cases[i].value, 1e-12);
        if (channel->kind == WM_COUNTER)
            assert_near(found->counters[index].total, cases[i].value, 1e-12);
        wm_recording_close(recording);
        free(found);
    }
}

static void test_temperatures(void **state)
{
    struct wm_recording *recording = open_text(
        state,
        HEAD("2025-09-01 10:00:00") "{\"temperature\": {\"coretemp\": [[\"Package id "
                                    "0\", 51.0, 100.0, 100.0], [\"\", 49, null, "
                                    "null]], \"nvme\": [[\"Composite\", 40, 1, 1], "
                                    "[\"Composite\", 41, 1, 1], [\"hot\", 1e9, 1, "
                                    "1], [], 7]}}}\n");
    size_t package = channel_of(recording, "coretemp_package_id_0", "temperature");
    size_t second = channel_of(recording, "nvme_composite_2", "temperature");
    struct found *found = read_all(recording);

    assert_int_equal(wm_recording_channel_count(recording), 4);
    assert_int_equal(wm_recording_channel(recording, package)->device_kind, WM_DEVICE_CPU);
    assert_int_equal(wm_recording_channel(recording, second)->device_kind, WM_DEVICE_OTHER);
    assert_near(found->gauges[package].last, 51, 0);
    assert_near(found->gauges[second].last, 41, 0);
    wm_recording_close(recording);
    free(found);
}

/* What is no measurement is missing, and never a number. */
static void test_no_number(void **state)
{
    static const char *const values[] = {
        "-1",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
        "\"4\"",
        "[1, 2]",
        "[]",
        "[\"a\"]",
        "{\"1\": \"\"}",
        "1e19",
        "-0.5",
        "{\"1\": null, \"2\": 3}",
        "{}",
        "\"NaN Infinity\"",
        "[[1]]",
    };

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char text[1024];
        print_message("  %s\n", values[i]);
        for (size_t key = 0; key < 2; key++) {
            const char *name = key == 0 ? "psys_power" : "per_process_mem_use_abs";
            snprintf(text, sizeof(text),
                     CPU("2022-01-01 00:00:00", "\"intel_power\": 1, \"%s\": %s")
                         CPU("2022-01-01 00:00:01", "\"intel_power\": 1, \"%s\": 7"),
                     name, values[i], name);
            struct wm_recording *recording = open_text(state, text);
            struct found *found = read_all(recording);
            assert_int_equal(found->ticks, 3);
            assert_int_equal(found->gauges[0].count, 3);
            assert_int_equal(found->gauges[1].count, 1);
            assert_near(found->gauges[1].last, 7, 0);
            assert_string_equal(wm_recording_result(recording)->recording_trouble, "");
            wm_recording_close(recording);
            free(found);
        }
    }
}

/* Files with something wrong, of which the rest is read. */
static void test_tolerated(void **state)
{
    static const struct {
        const char *what, *text;
        size_t ticks;
        double joules;
        const char *trouble;
    } cases[] = {
        { "nothing wrong",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4"), 3, 6 + 4,
          "" },
        { "one record", WATTS("2022-01-01 00:00:00", "2"), 1, 0, "" },
        { "no end of line",
          WATTS("2022-01-01 00:00:00", "2")
              HEAD("2022-01-01 00:00:02") "{\"cpu\": "
                                          "{\"intel_power\": 4}}}",
          3, 6 + 4, "" },
        { "an end without a line's end",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4") "\"END OF "
                                                                              "RECORDING "
                                                                              "SEGMENT\"",
          3, 10, "" },
        { "torn in the last line",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4") "{\"date\": "
                                                                              "\"2022-01",
          3, 10, "cut off" },
        { "CR LF and blank lines",
          "{\"date\": \"2022-01-01 00:00:00\", \"metrics\": {\"cpu\": {\"intel_power\": "
          "2}}}\r\n\r\n  \n" WATTS("2022-01-01 00:00:02", "4"),
          3, 10, "" },
        { "a pause",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              END WATTS("2022-01-01 01:00:00", "10") WATTS("2022-01-01 01:00:02", "10") END,
          7, 10 + 40, "" },
        { "a pause shorter than a window",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              END WATTS("2022-01-01 00:00:03", "10") WATTS("2022-01-01 00:00:05", "10"),
          7, 10 + 30, "" },
        { "ends alone",
          END END WATTS("2022-01-01 00:00:00", "2")
              END END WATTS("2022-01-01 00:00:02", "4") END,
          3, 0, "" },
        { "a killed recorder, and another one long after",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              WATTS("2022-01-02 00:00:00", "10") WATTS("2022-01-02 00:00:02", "10"),
          7, 10 + 40, "" },
        { "a slow record",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              WATTS("2022-01-01 00:00:42", "6"),
          4, 10 + 200, "" },
        { "a line that is no JSON",
          WATTS("2022-01-01 00:00:00", "2")
              WATTS("2022-01-01 00:00:02", "4") "{\"date\": "
                                                "\"20{\n" WATTS("2022-01-01 00:00:06", "10")
                                                    WATTS("2022-01-01 00:00:08", "10"),
          7, 10 + 40, "line 3 cannot be read" },
        { "records that are none",
          WATTS("2022-01-01 00:00:00", "2")
              WATTS("2022-01-01 00:00:02",
                    "4") "[]\n7\nnull\n{}\n" WATTS("2022-01-01 00:00:06", "10"),
          6, 10 + 20, "line 3 cannot be read" },
        { "a date that is none",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-02-30 00:00:02", "4")
              WATTS("2022-01-01 00:00:02", "4") WATTS("2022-01-01 00:00:04", "4"),
          6, 4 + 8 + 8, "line 2 cannot be read" },
        { "a clock that was set back",
          WATTS("2022-01-01 12:00:00", "2") WATTS("2022-01-01 12:00:02", "4")
              WATTS("2022-01-01 11:00:03", "10") WATTS("2022-01-01 11:00:05", "10"),
          7, 10 + 40, "set back (1 times)" },
        { "two in the same microsecond",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              WATTS("2022-01-01 00:00:02", "4") WATTS("2022-01-01 00:00:04", "4"),
          5, 10 + 8, "" },
        { "keys twice: the last counts",
          CPU("2022-01-01 00:00:00", "\"intel_power\": 9, \"intel_power\": 2")
              WATTS("2022-01-01 00:00:02", "4"),
          3, 10, "" },
        { "without metrics in between",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4")
              HEAD("2022-01-01 00:00:04") "{}}\n" WATTS("2022-01-01 00:00:06", "4")
                  WATTS("2022-01-01 00:00:08", "4"),
          6, 10 + 8, "" },
        { "GPUs that are none",
          HEAD(
              "2022-01-01 00:00:00") "{\"cpu\": {\"intel_power\": 2}, \"gpu\": "
                                     "{\"per_gpu_power_draw\": {\"x\": 1, \"\": 2, \"-1\": "
                                     "3, \"99999\": 4, \"1x\": 5, \"all\": 6}}}}\n" WATTS(
                                         "2022-01-01 00:00:02", "4"),
          3, 10, "" },
        { "marked as UTF-8",
          "\xef\xbb\xbf" WATTS("2022-01-01 00:00:00", "2")
              WATTS("2022-01-01 00:00:02", "4"),
          3, 10, "" },
        { "one date",
          WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:00", "4")
              WATTS("2022-01-01 00:00:00", "4"),
          3, 0, "its records have one date" },
        { "packages without a number",
          CPU("2022-01-01 00:00:00", "\"intel_power\": -1, \"psys_power\": 2")
              CPU("2022-01-01 00:00:02", "\"intel_power\": null, \"psys_power\": 4"),
          3, 10, "none of its intel_power" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        struct wm_recording *recording = open_text(state, cases[i].text);
        struct found *found = read_all(recording);
        const char *trouble = wm_recording_result(recording)->recording_trouble;
        assert_int_equal(wm_recording_channel_count(recording), 1);
        assert_int_equal(found->ticks, cases[i].ticks);
        assert_near(found->gauges[0].integral, cases[i].joules, 1e-6);
        if (cases[i].trouble[0] ? !strstr(trouble, cases[i].trouble) : trouble[0] != '\0')
            fail_msg("trouble: '%s'", trouble);
        wm_recording_close(recording);
        free(found);
    }
}

static char *repeat(const char *before, const char *what, size_t times, const char *after)
{
    size_t length = strlen(what);
    char *text = malloc(strlen(before) + times * length + strlen(after) + 1);

    assert_non_null(text);
    char *at = stpcpy(text, before);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, what);
    strcpy(at, after);
    return text;
}

static void test_refused(void **state)
{
    static const struct {
        const char *what, *before, *repeated;
        size_t times;
        const char *after, *complains_of;
    } cases[] = {
        { "empty", "", "", 0, "", "empty" },
        { "text", "hello\n", "", 0, "", "not a recording" },
        { "binary", "\x01\x02\xff\xfe", "\x80", 2000, "", "not a recording" },
        { "an end alone", END, "", 0, "", "no record" },
        { "torn in the first line", "{\"date\": \"2022-01-01 00:0", "", 0, "",
          "no record" },
        { "no date", "{\"metrics\": {\"cpu\": {\"intel_power\": 1}}}\n", "", 0, "",
          "line 1: no record" },
        { "a date that is a number",
          "{\"date\": 7, \"metrics\": {\"cpu\": {\"intel_power\": 1}}}\n", "", 0, "",
          "line 1" },
        { "a year too early", WATTS("1969-12-31 23:59:59", "1"), "", 0, "", "line 1" },
        { "a year too late", WATTS("9999-12-31 23:59:59", "1"), "", 0, "", "line 1" },
        { "an hour that is none", WATTS("2022-01-01 24:00:00", "1"), "", 0, "", "line 1" },
        { "a date with more behind it", WATTS("2022-01-01 00:00:00 x", "1"), "", 0, "",
          "line 1" },
        { "metrics that are a list", HEAD("2022-01-01 00:00:00") "[]}\n", "", 0, "",
          "line 1" },
        { "no metric that is known", HEAD("2022-01-01 00:00:00") "{\"cpu\": {\"x\": 1}}}\n",
          "", 0, "", "none of its metrics" },
        { "groups that are numbers",
          HEAD("2022-01-01 00:00:00") "{\"cpu\": 1, \"gpu\": \"\", \"temperature\": []}}\n",
          "", 0, "", "none of its metrics" },
        { "GPUs that are a list",
          HEAD("2022-01-01 00:00:00") "{\"gpu\": {\"per_gpu_power_draw\": [1, 2]}}}\n", "",
          0, "", "none of its metrics" },
        { "only -1", CPU("2022-01-01 00:00:00", "\"psys_power\": -1"), "", 0, "",
          "none of its metrics" },
        { "nested deeply", HEAD("2022-01-01 00:00:00"), "{\"cpu\":", 10000, "\n",
          "line 1" },
        { "lists nested deeply", HEAD("2022-01-01 00:00:00"), "[", 10000, "\n", "line 1" },
        { "a huge line", HEAD("2022-01-01 00:00:00"), "                ", 1 << 20, "}\n",
          "longer than 16 MiB" },
        { "a number beyond a double", WATTS("2022-01-01 00:00:00", "1e999"), "", 0, "",
          "line 1" },
        { "bytes that are no UTF-8", HEAD("2022-01-01 00:00:00") "{\"\xff\": 1}}\n", "", 0,
          "", "line 1" },
        { "times that go round and round", WATTS("1971-01-01 00:00:00", "1"),
          WATTS("2099-01-01 00:00:00", "1") WATTS("1971-01-01 00:00:00", "1"), 3, "",
          "beyond the year 2100" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        char *text =
            repeat(cases[i].before, cases[i].repeated, cases[i].times, cases[i].after);
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "exp/power_metrics.json", text);
        int status =
            wm_recording_open(fixture_path(state, "exp"), WM_LAST_RUN, &recording, &err);
        assert_int_equal(status, WM_EFORMAT);
        if (!strstr(err.text, cases[i].complains_of) || !strstr(err.text, "power_metrics"))
            fail_msg("%s", err.text);
        assert_null(recording);
        free(text);
    }
}

/* Ends of recording segments tell the runs of a file apart. */
static void test_runs(void **state)
{
    static const char text[] =
        END WATTS("2022-01-01 00:00:00", "2") WATTS("2022-01-01 00:00:02", "4") END
        "\n" END "junk\n" WATTS("2022-01-01 00:10:00", "10")
            END WATTS("2022-01-01 00:20:00", "10")
                WATTS("2022-01-01 00:20:02", "30") "{\"date\": \"2022-";
    static const struct {
        size_t run, ticks;
        double joules;
        size_t values; /* of the metric */
        double value;  /* the first */
        const char *trouble;
    } cases[] = {
        { 0, 3, 2 * 2 + 6, 1, 1, "" },
        { 1, 2, 2 * 10, 2, 2, "line 7 cannot be read" },
        { 2, 3, 2 * 10 + 40, 1, 4, "its last line is cut off" },
        { WM_LAST_RUN, 10, 10 + 20 + 60, 4, 1, "line 7 cannot be read" },
    };
    const char *path = fixture_path(state, "exp");
    struct wm_error err = { 0 };
    struct wm_recording *recording = NULL;

    test_write_file(*state, "exp/power_metrics.json", text);
    test_write_file(*state, "exp/metadata.json",
                    "{\"wattmeter\": {\"id\": \"one\", \"host\": \"node1\"}}");
    test_write_file(*state, "exp/results_exp.json",
                    "[{\"end_training_epoch\": \"2022-01-01 00:00:01\", \"a\": 1},"
                    " {\"end_training_epoch\": \"2022-01-01 00:09:59\", \"a\": 2},"
                    " {\"end_training_epoch\": \"2022-01-01 00:10:00\", \"a\": 3},"
                    " {\"end_training_epoch\": \"2022-01-01 00:20:01\", \"a\": 4}]");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %zd\n", (ssize_t)cases[i].run);
        assert_ok(wm_recording_open(path, cases[i].run, &recording, &err));
        const struct wm_run *run = wm_recording_run(recording);
        const struct wm_result *result = wm_recording_result(recording);
        assert_int_equal(wm_recording_run_count(recording), 3);
        assert_string_equal(run->host, "node1");
        assert_string_equal(run->id ? run->id : "",
                            i == 0 || cases[i].run == WM_LAST_RUN ? "one" : "");
        struct found *found = read_all(recording);
        assert_int_equal(found->ticks, cases[i].ticks);
        assert_near(found->gauges[0].integral, cases[i].joules, 1e-6);
        assert_int_equal(result->metrics.count, 1);
        assert_int_equal(result->metrics.all[0].count, cases[i].values);
        assert_near(result->metrics.all[0].points[0].value, cases[i].value, 0);
        if (cases[i].trouble[0] ? !strstr(result->recording_trouble, cases[i].trouble)
                                : result->recording_trouble[0] != '\0')
            fail_msg("trouble: '%s'", result->recording_trouble);
        wm_recording_close(recording);
        free(found);
    }
    assert_int_equal(wm_recording_open(path, 3, &recording, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "the last one is 2"));
}

/* At each length the file is one that a killed recorder may have left. */
static void test_truncated(void **state)
{
    static const char text[] = WATTS("2022-01-01 00:00:00", "2")
        WATTS("2022-01-01 00:00:02.25", "4") END WATTS("2022-01-01 00:01:00", "2.5") END;
    char cut[sizeof(text)];

    for (size_t length = sizeof(text) - 1; length > 80; length--) {
        memcpy(cut, text, length);
        cut[length] = '\0';
        struct wm_recording *recording = open_text(state, cut);
        struct found *found = read_all(recording);
        assert_true(found->ticks >= 1);
        wm_recording_close(recording);
        free(found);
    }
}

static void test_notes(void **state)
{
    static const struct {
        const char *what, *file, *text, *key, *value;
    } cases[] = {
        { "a description", "metadata.json",
          "{\"description\": \"ResNet \\u00e9\", \"date\": \"\"}", "description",
          "ResNet \xc3\xa9" },
        { "an empty one", "metadata.json", "{\"description\": \"\"}", "description", "" },
        { "one that is none", "metadata.json", "{\"description\": {}}", "description", "" },
        { "metadata that is none", "metadata.json", "[1", "description", "" },
        { "results, as they are written", "results_exp.json",
          "{\"date\": \"d\", \"metrics\": {\"loss\": 2}}\n{\"date\": \"d\", \"metrics\": "
          "{\"loss\": NaN, \"acc\": 1}}\n{\"da",
          "results", "2, the last: {\"loss\":\"\",\"acc\":1}" },
        { "results, as they are read", "results_exp.json",
          "[{\"end_training_epoch\": \"a\"}, {\"end_training_epoch\": \"b\", \"loss\": 1}]",
          "results", "2, the last: {\"end_training_epoch\":\"b\",\"loss\":1}" },
        { "no result", "results_exp.json", "[]", "results", "" },
        { "a result that is a number", "results_exp.json", "7", "results", "" },
        { "an empty file", "results_exp.json", "", "results", "" },
        { "a model", "model_summary.json", "{\"total_params\": 12}", "model",
          "{\"total_params\":12}" },
        { "a model that is none", "model_summary.json", "{{", "model", "" },
        { "a folder in its place", "model_summary.json/x", "", "model", "" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char file[64], power[64], folder[300];
        print_message("  %s\n", cases[i].what);
        snprintf(folder, sizeof(folder), "%s/%zu", (const char *)*state, i);
        snprintf(file, sizeof(file), "%zu/%s", i, cases[i].file);
        snprintf(power, sizeof(power), "%zu/power_metrics.json", i);
        test_write_file(*state, file, cases[i].text);
        test_write_file(*state, power, WATTS("2022-01-01 00:00:00", "2"));
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        assert_ok(wm_recording_open(folder, WM_LAST_RUN, &recording, &err));
        assert_string_equal(note_of(recording, cases[i].key), cases[i].value);
        assert_non_null(strstr(note_of(recording, "first window"), "no record follows"));
        wm_recording_close(recording);
    }
}

/* One that says when it began has its first window, and no note on that. */
static void test_start(void **state)
{
#define OURS(date) "{\"date\": \"" date "\", \"wattmeter\": {}}"
#define NOON "2022-01-01 12:00:00"
    static const struct {
        const char *what, *metadata, *text;
        double joules;
        const char *note;
    } cases[] = {
        { "one record", OURS("2022-01-01 11:59:59.5"), WATTS(NOON, "4"), 2, "" },
        { "more", OURS("2022-01-01 11:59:58"),
          WATTS(NOON, "4") WATTS("2022-01-01 12:00:01", "4"), 12, "" },
        { "two segments", OURS("2022-01-01 11:59:58"),
          WATTS(NOON, "4") WATTS("2022-01-01 12:00:01", "4")
              END WATTS("2022-01-01 12:01:00", "4"),
          16, "added: 1 s, 4 J" },
        { "a start behind it", OURS("2022-01-01 12:00:01"), WATTS(NOON, "4"), 0,
          "no record follows" },
        { "one that is the record's", OURS(NOON), WATTS(NOON, "4"), 0,
          "no record follows" },
        { "one of other records", OURS("2021-01-01 12:00:00"), WATTS(NOON, "4"), 0,
          "no record follows" },
        { "no date", OURS("noon"), WATTS(NOON, "4"), 0, "no record follows" },
        { "a date of AIPowerMeter's", "{\"date\": \"2022-01-01 11:59:59\"}",
          WATTS(NOON, "4"), 0, "no record follows" },
        { "no text", "{\"date\": 7, \"wattmeter\": {}}", WATTS(NOON, "4"), 0,
          "no record follows" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "exp/metadata.json", cases[i].metadata);
        struct wm_recording *recording = open_text(state, cases[i].text);
        struct found *found = read_all(recording);
        const size_t package = channel_of(recording, "package", "power");
        assert_near(found->gauges[package].integral, cases[i].joules, 1e-9);
        assert_true(cases[i].note[0]
                        ? strstr(note_of(recording, "first window"), cases[i].note) != NULL
                        : note_of(recording, "first window")[0] == '\0');
        free(found);
        wm_recording_close(recording);
    }
}

static void test_local_time(void **state)
{
    static const struct {
        const char *zone, *text;
        int64_t after_s, unix_ns; /* -1: refused */
    } cases[] = {
        { "UTC", "2026-11-21 08:48:21.123456", 0, INT64_C(1795250901123456000) },
        { "UTC", "2026-11-21T08:48:21", 0, INT64_C(1795250901000000000) },
        { "UTC", "2026-11-21 08:48:21.1", 0, INT64_C(1795250901100000000) },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-11-21 08:48:21", 0,
          INT64_C(1795247301000000000) },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01 12:00:00", 0,
          INT64_C(1782900000000000000) },
        /* The hour that comes twice, and the one that never was. */
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25 02:30:00", 0,
          INT64_C(1792888200000000000) },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25 02:30:00", 1792888201,
          INT64_C(1792891800000000000) },
        { "CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29 02:30:00", 0,
          INT64_C(1774747800000000000) },
        { "UTC", "2024-02-29 00:00:00", 0, INT64_C(1709164800000000000) },
        { "UTC", "2023-02-29 00:00:00", 0, -1 },
        { "UTC", "2026-13-01 00:00:00", 0, -1 },
        { "UTC", "2026-00-01 00:00:00", 0, -1 },
        { "UTC", "2026-01-00 00:00:00", 0, -1 },
        { "UTC", "2026-01-01 00:60:00", 0, -1 },
        { "UTC", "2026-01-01 00:00:60", 0, -1 },
        { "UTC", "2026-01-01 00:00:00.", 0, -1 },
        { "UTC", "2026-01-01 00:00:00.1234567890", 0, -1 },
        { "UTC", "2026-01-01 00:00:00Z", 0, -1 },
        { "UTC", "2026-01-01 00:00", 0, -1 },
        { "UTC", "2026-1-1 00:00:00", 0, -1 },
        { "UTC", "+026-01-01 00:00:00", 0, -1 },
        { "UTC", "1970-01-01 00:00:00", 0, -1 },
        { "UTC", "2100-01-01 00:00:00", 0, -1 },
        { "UTC", "", 0, -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t unix_ns = -1;
        print_message("  %s %s\n", cases[i].text, cases[i].zone);
        setenv("TZ", cases[i].zone, 1);
        tzset();
        bool good = wm_localtime_parse(cases[i].text, strlen(cases[i].text),
                                       cases[i].after_s * 1000000000, &unix_ns);
        assert_int_equal(good, cases[i].unix_ns >= 0);
        assert_int_equal(unix_ns, cases[i].unix_ns);
        if (good && strlen(cases[i].text) == 26) {
            char text[WM_LOCALTIME_SIZE];
            wm_localtime_format(unix_ns, text);
            assert_string_equal(text, cases[i].text);
        }
    }
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_no_memory(void **state)
{
    static const char text[] =
        WATTS("2022-01-01 00:00:00", "2") END WATTS("2022-01-01 00:01:02", "4") END;
    const char *path = fixture_path(state, "exp");
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    int status = WM_ENOMEM;

    test_write_file(*state, "exp/power_metrics.json", text);
    test_write_file(*state, "exp/metadata.json", "{\"description\": \"d\"}");
    test_write_file(*state, "exp/results_exp.json", "[{\"loss\": 1}]");
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        assert_true(nth < 1000);
        test_fail_allocation(nth);
        status = wm_recording_open(path, WM_LAST_RUN, &recording, &err);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
    }
    assert_ok(status);
    wm_recording_close(recording);
}

UNIT(read_aipm)
{
#define WITH_DIR(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, test_make_dir_utc, test_remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_energy),    WITH_DIR(test_exact_energy),
        WITH_DIR(test_metrics),   WITH_DIR(test_temperatures),
        WITH_DIR(test_no_number), WITH_DIR(test_tolerated),
        WITH_DIR(test_refused),   WITH_DIR(test_truncated),
        WITH_DIR(test_notes),     cmocka_unit_test(test_local_time),
        WITH_DIR(test_no_memory), WITH_DIR(test_runs),
        WITH_DIR(test_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
