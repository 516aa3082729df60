/* SPDX-License-Identifier: Apache-2.0 */
/* test_experiment.c - experiments out of recordings that are there: those of AIPowerMeter
 * in a folder, and one of ours; and what is left when memory runs out. */
#include "wattmeter/experiment.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/experiment/analyze_experiment.h"
#include "record/record.h"
#include "test.h"

#define AIPM test_source_path("tests/data/aipm")
#define OURS test_source_path("tests/data/recordings/v1.sqlite")

/* What a function prints, the caller's to free. */
static char *print_list(const char *target, enum wm_format format, int *ret_status)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    *ret_status = wm_experiment_print_list(target, format, out, NULL);
    fclose(out);
    return text;
}

static void test_list(void **state)
{
    int status;
    char *text = print_list(AIPM, WM_FORMAT_TEXT, &status);
    (void)state;

    assert_int_equal(status, WM_OK);
    assert_non_null(strstr(text, "2021 "));
    assert_true(strstr(text, "generation1") < strstr(text, "head"));
    free(text);

    text = print_list(OURS, WM_FORMAT_JSON, &status);
    assert_int_equal(status, WM_OK);
    assert_non_null(strstr(text, "\"name\": null"));
    free(text);
    free(print_list(test_source_path("tests/data/nothing"), WM_FORMAT_TEXT, &status));
    assert_int_equal(status, WM_ENOENT);
    free(print_list(test_source_path("meson.build"), WM_FORMAT_TEXT, &status));
    assert_int_equal(status, WM_EFORMAT);
}

static void test_open(void **state)
{
    struct wm_experiment *experiment = NULL;
    struct wm_error err;
    (void)state;

    assert_int_equal(wm_experiment_open(AIPM, "nothing", &experiment, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "2021, generation1, head"));
    assert_int_equal(wm_experiment_open(OURS, "-", &experiment, &err), WM_OK);
    wm_experiment_close(experiment);
    assert_int_equal(wm_experiment_open(test_source_path("tests/data/aipm/head"), "head",
                                        &experiment, &err),
                     WM_OK);
    wm_experiment_close(experiment);
    wm_experiment_close(NULL);
}

static void test_figures(void **state)
{
    static const struct {
        const char *name, *metric;
        int status;
        double total, seconds;
    } cases[] = {
        { "2021", "energy", WM_OK, 266, 10 },
        { "2021", "cpu_energy", WM_OK, 266, 10 },
        { "2021", "cpu_power", WM_OK, 266, 10 },
        { "2021", "gpu_energy", WM_ENOENT, 0, 0 },
        { "2021", "nothing", WM_ENOENT, 0, 0 },
        { "2021", "nothing_energy", WM_ENOENT, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_experiment *experiment = NULL;
        struct wm_series *series = NULL;
        struct wm_figure figure;
        struct wm_error err = { 0 };

        assert_int_equal(wm_experiment_open(AIPM, cases[i].name, &experiment, &err), WM_OK);
        int status = wm_experiment_series(experiment, cases[i].metric, &series, &err);
        print_message("  %s: %s\n", cases[i].metric, err.text);
        assert_int_equal(status, cases[i].status);
        if (status == WM_OK) {
            assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, NULL, &figure, &err),
                             WM_OK);
            assert_float_equal(figure.value, cases[i].total, 1e-6);
            assert_float_equal(figure.seconds, cases[i].seconds, 1e-6);
        }
        wm_series_free(series);
        wm_experiment_close(experiment);
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int status;
        int64_t after_ns; /* the start */
    } cases[] = {
        { "0", WM_OK, 0 },
        { "1.5", WM_OK, 1500000000 },
        { "1e1", WM_OK, 10000000000 },
        { "", WM_EINVAL, 0 },
        { "-1", WM_EINVAL, 0 },
        { "1s", WM_EINVAL, 0 },
        { "1e30", WM_EINVAL, 0 },
        { "inf", WM_EINVAL, 0 },
        { "2021-03-01", WM_EINVAL, 0 },
        { "2021-13-01T09:29:58Z", WM_EINVAL, 0 },
    };
    struct wm_experiment *experiment = NULL;
    int64_t start_ns = 0, unix_ns = 0;
    (void)state;

    assert_int_equal(wm_experiment_open(AIPM, "2021", &experiment, NULL), WM_OK);
    assert_int_equal(wm_experiment_time(experiment, "0", &start_ns, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].text);
        assert_int_equal(wm_experiment_time(experiment, cases[i].text, &unix_ns, NULL),
                         cases[i].status);
        if (cases[i].status == WM_OK)
            assert_int_equal(unix_ns - start_ns, cases[i].after_ns);
    }
    assert_int_equal(
        wm_experiment_time(experiment, "2021-03-01T09:30:00.25Z", &unix_ns, NULL), WM_OK);
    assert_int_equal(unix_ns, INT64_C(1614591000250000000));
    wm_experiment_close(experiment);
}

enum { CHANNELS = 5, TICKS = 6, IDLE = 7, RUNS = 3 };

#define COUNTER(source_, label_, kind_, origin_)                                           \
    {                                                                                      \
        .source = source_, .device = label_, .label = label_, .metric = "energy",          \
        .unit = "J", .device_kind = kind_, .kind = WM_COUNTER, .origin = origin_,          \
        .period_ns = 1000000                                                               \
    }

static const struct wm_channel load = {
    .source = "host",
    .device = "host",
    .label = "host",
    .metric = "load1",
    .unit = "count",
    .device_kind = WM_DEVICE_HOST,
    .kind = WM_GAUGE,
};
static const struct wm_channel cpu =
    COUNTER("rapl", "package0", WM_DEVICE_CPU, WM_MEASURED);
static const struct wm_channel guess =
    COUNTER("estimate", "cpu", WM_DEVICE_CPU, WM_ESTIMATED);
static const struct wm_channel dram = COUNTER("rapl", "dram0", WM_DEVICE_DRAM, WM_MEASURED);
static const struct wm_channel gpu = COUNTER("nvml", "gpu0", WM_DEVICE_GPU, WM_SIMULATED);

static const struct wm_channel board = {
    .source = "nvml",
    .device = "gpu1",
    .label = "gpu1",
    .model = "NVIDIA H100",
    .metric = "energy",
    .unit = "J",
    .device_kind = WM_DEVICE_GPU,
    .kind = WM_COUNTER,
    .period_ns = 1000000,
    .sensor = { .kind = WM_SENSOR_BUILT_IN,
                .period_ns = 100000000,
                .window_s = 0.025,
                .gain = 0.07,
                .offset = 11 },
};
static const struct wm_channel slow_cpu = {
    .source = "hwmon",
    .device = "socket0",
    .label = "socket0",
    .metric = "energy",
    .unit = "J",
    .device_kind = WM_DEVICE_CPU,
    .kind = WM_COUNTER,
    .period_ns = 500000000,
};
static const struct wm_channel slow_power = {
    .source = "hwmon",
    .device = "socket0",
    .label = "socket0",
    .metric = "power",
    .unit = "W",
    .device_kind = WM_DEVICE_CPU,
    .period_ns = 500000000,
};
static const struct wm_channel in_cpu = {
    .source = "drm",
    .device = "card0",
    .label = "card0",
    .metric = "energy",
    .unit = "J",
    .device_kind = WM_DEVICE_GPU,
    .kind = WM_COUNTER,
    .sensor.contains = WM_CONTAINS_PACKAGE,
};
static const struct wm_channel in_cpu_power = {
    .source = "drm",
    .device = "card0",
    .label = "card0",
    .metric = "power",
    .unit = "W",
    .device_kind = WM_DEVICE_CPU,
    .kind = WM_GAUGE,
    .sensor.contains = WM_CONTAINS_PACKAGE,
};
static const struct wm_channel guessed_dram =
    COUNTER("estimate", "dram", WM_DEVICE_DRAM, WM_ESTIMATED);

/* A run of five seconds in which each of its devices takes 10 W, and which writes an
 * epoch at 1.5 s and 3.5 s. */
struct made_run {
    const struct wm_channel *devices[CHANNELS]; /* up to the first NULL */
    size_t pause; /* the tick without a value; 0: none; TICKS: each; IDLE: none, but */
                  /* the devices take nothing */
};

static double value_at(const struct wm_channel *channel, size_t tick, bool is_idle)
{
    if (channel->device_kind == WM_DEVICE_HOST)
        return 1;
    if (is_idle)
        return 0;
    return channel->kind == WM_COUNTER ? 10 * (double)tick : 10;
}

static void make_run(const char *path, const struct made_run *made, size_t number)
{
    static struct wm_pair notes[] = { { (char *)"model",
                                        (char *)"{\"parameters\":10,\"flops\":5}" } };
    static struct wm_metric_point points[] = { { 2500000000, 1, 0 }, { 4500000000, 2, 1 } };
    static struct wm_metric metric = { (char *)"epoch", points, 2, 2 };
    const struct wm_run run = {
        .id = (char *)"run",
        .mode = (char *)"run",
        .notes = notes,
        .note_count = 1,
        .anchor_ns = 1000000000,
        .anchor_unix_ns = INT64_C(1700000000000000000) + (int64_t)number * 1000000000000,
        .interval_ns = 1000000000,
        .core_count = 1,
    };
    struct wm_result result = { .end_ns = 6000000000,
                                .metrics = { .all = &metric, .count = 1 } };
    struct wm_channel channels[CHANNELS] = { load };
    struct wm_recorder *recorder = NULL;
    struct wm_error err = { 0 };
    size_t count = 1;

    while (count < CHANNELS && made->devices[count - 1]) {
        channels[count] = *made->devices[count - 1];
        count++;
    }
    if (wm_recorder_open(path, WM_RECORD_APPEND, &run, channels, count, &recorder, &err) <
        0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < TICKS; i++) {
        struct wm_reading readings[CHANNELS];
        int64_t when_ns = (int64_t)(i + 1) * 1000000000;
        bool is_silent = made->pause == TICKS || (i > 0 && i == made->pause);
        for (size_t k = 0; k < count; k++)
            readings[k] = (struct wm_reading) {
                .when_ns = when_ns,
                .value = value_at(&channels[k], i, made->pause == IDLE),
                .state = is_silent ? WM_READING_FAILED : WM_READING_OK,
            };
        wm_recorder_tick(recorder, &(struct wm_tick) { when_ns, readings, count });
    }
    wm_recorder_flush(recorder, &result);
    assert_int_equal(wm_recorder_finish(recorder, &result, &err), WM_OK);
    wm_recorder_close(recorder);
}

/* All runs under one name, the caller's to close; the file is gone by the next call. */
static struct wm_experiment *make_experiment(const char *dir, const struct made_run *made,
                                             size_t count)
{
    struct wm_experiment *experiment = NULL;
    struct wm_error err = { 0 };
    char path[256];

    snprintf(path, sizeof(path), "%s/r.sqlite", dir);
    unlink(path);
    for (size_t i = 0; i < count; i++)
        make_run(path, &made[i], i);
    if (wm_experiment_open(path, "-", &experiment, &err) < 0)
        fail_msg("%s", err.text);
    return experiment;
}

static char *print(const struct wm_experiment *experiment, enum wm_format format,
                   const struct wm_experiment_style *style)
{
    struct wm_error err = { 0 };
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (wm_experiment_print(experiment, format, style, out, &err) < 0)
        fail_msg("%s", err.text);
    fclose(out);
    return text;
}

/* The caller's to release. */
static json_t *show(const struct wm_experiment *experiment,
                    const struct wm_experiment_style *style)
{
    char *text = print(experiment, WM_FORMAT_JSON, style);
    json_t *root = json_loads(text, 0, NULL);

    assert_non_null(root);
    free(text);
    return root;
}

/* A number, or NAN and the reason for there being none. */
static double number_of(const json_t *root, const char *object, const char *key,
                        const char **ret_why)
{
    const json_t *value = json_object_get(json_object_get(root, object), key);
    char path[64];

    snprintf(path, sizeof(path), "%s.%s", object, key);
    *ret_why = json_string_value(json_object_get(json_object_get(root, "why"), path));
    if (!value || (json_is_null(value) && !*ret_why))
        fail_msg("%s is missing", path);
    return json_is_null(value) ? NAN : json_number_value(value);
}

static void expect(const json_t *root, const char *object, const char *key, double number,
                   const char *why)
{
    const char *said;
    double value = number_of(root, object, key, &said);

    print_message("    %s: %g, %s\n", key, value, said ? said : "");
    if (why) {
        assert_true(isnan(value));
        assert_non_null(strstr(said, why));
    } else {
        assert_true(fabs(value - number) <= 1e-6);
    }
}

static void test_covers(void **state)
{
    static const char no_gpu[] = "run 1 knows no GPU energy";
    static const struct {
        struct made_run runs[RUNS];
        size_t count;
        double total;
        const char *why, *covers;
    } cases[] = {
        { { { { &cpu }, 0 }, { { &cpu }, 0 } }, 2, 100, NULL, "[\"cpu\"]" },
        { { { { &cpu, &dram, &gpu }, 0 } }, 1, 150, NULL, "[\"cpu\",\"dram\",\"gpus\"]" },
        /* The estimate's memory is not added to what is measured. */
        { { { { &cpu, &guess, &guessed_dram }, 0 }, { { &cpu }, 0 } },
          2,
          100,
          NULL,
          "[\"cpu\"]" },
        { { { { &guess, &guessed_dram }, 0 } }, 1, 100, NULL, "[\"cpu\",\"dram\"]" },
        { { { { &cpu, &gpu }, 0 }, { { &cpu }, 0 } }, 2, 0, no_gpu, "[]" },
        { { { { &cpu }, 0 }, { { &cpu, &gpu }, 0 } },
          2,
          0,
          "run 0 knows no GPU energy",
          "[]" },
        { { { { &cpu, &gpu }, 0 }, { { &gpu }, 0 } }, 2, 0, "run 1 knows no CPU", "[]" },
        { { { { &cpu }, 0 }, { { &cpu }, 0 }, { { &cpu, &dram }, 0 } },
          3,
          0,
          "run 0 knows no memory energy",
          "[]" },
        { { { { &cpu }, 0 }, { { NULL }, 0 } }, 2, 0, "no source of CPU energy", "[]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_experiment_style style = { .per = "epoch" };
        struct wm_experiment *experiment =
            make_experiment(*state, cases[i].runs, cases[i].count);
        json_t *root = show(experiment, &style);
        print_message("  %zu\n", i);
        expect(root, "energy", "total", cases[i].total, cases[i].why);
        char *covers = json_dumps(
            json_object_get(json_object_get(root, "energy"), "covers"), JSON_COMPACT);
        assert_non_null(covers);
        assert_string_equal(covers, cases[i].covers);
        free(covers);
        if (cases[i].why && strncmp(cases[i].why, "run", 3) == 0) {
            struct wm_series *series = NULL;
            struct wm_error err = { 0 };
            expect(root, "energy", "without_idle", 0, cases[i].why);
            expect(root, "model", "energy_per_flop", 0, cases[i].why);
            expect(root, "per", "energy_mean", 0, cases[i].why);
            assert_int_equal(wm_experiment_series(experiment, "energy", &series, &err),
                             WM_ENODEV);
            assert_non_null(strstr(err.text, cases[i].why));
        }
        json_decref(root);
        wm_experiment_close(experiment);
    }
}

/* The uncertainty of all runs, or of one of them, as a ratio. */
static double uncertainty_of(const json_t *root, size_t run)
{
    const json_t *of =
        run < RUNS ? json_array_get(json_object_get(root, "runs"), run) : root;

    return json_number_value(
               json_object_get(json_object_get(of, "energy"), "uncertainty_percent")) /
           100;
}

/* The sensor is off by the same in each run, and the rest by something else. A run in
 * which nothing was used has no part in it. */
static void test_uncertainty(void **state)
{
    static const struct made_run runs[] = {
        { { &slow_cpu, &slow_power }, 0 },
        { { &slow_cpu, &slow_power }, 0 },
        { { &slow_cpu, &slow_power }, IDLE },
    };
    static const struct {
        const char *name;
        size_t first, count, busy;
    } cases[] = {
        { "one run", 0, 1, 1 },
        { "two runs", 0, 2, 2 },
        { "and an idle one", 0, 3, 2 },
        { "one and an idle one", 1, 2, 1 },
    };
    const struct wm_experiment_style style = { 0 };
    const double gain = 0.1; /* of the sensor */

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_experiment *experiment =
            make_experiment(*state, &runs[cases[i].first], cases[i].count);
        json_t *root = show(experiment, &style);
        double one = uncertainty_of(root, 0), all = uncertainty_of(root, RUNS);

        print_message("  %s: %g of %g\n", cases[i].name, all, one);
        double random = sqrt(one * one - gain * gain);
        assert_true(random > 0.01);
        random /= sqrt((double)cases[i].busy);
        assert_true(fabs(all - hypot(gain, random)) < 1e-4);
        json_decref(root);
        wm_experiment_close(experiment);
    }
}

/* How often a sensor has something new is what is known of it, as in the report, and not
 * how often its channel may change. */
static void test_period(void **state)
{
    static const struct made_run run = { { &board }, 0 };
    struct wm_experiment *experiment = make_experiment(*state, &run, 1);
    struct wm_series *series = NULL;
    struct wm_error err = { 0 };

    if (wm_experiment_series(experiment, "gpu_energy", &series, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(fabs(series->period_s - 0.1) < 1e-9);
    wm_series_free(series);
    wm_experiment_close(experiment);
}

/* The metric is what the summary has, whatever of it counts. */
static void test_metric_is_the_summary(void **state)
{
    static const struct {
        struct made_run run;
        double total;
    } cases[] = {
        { { { &cpu, &dram, &gpu }, 0 }, 150 },
        { { { &guess, &gpu }, 0 }, 100 },
        { { { &guess, &dram }, 0 }, 50 }, /* such an estimate has the memory in it */
        { { { &cpu, &guess }, 0 }, 50 },
        { { { &cpu, &guess, &guessed_dram }, 0 }, 50 },
        { { { &guess, &guessed_dram }, 0 }, 100 },
        { { { &cpu, &gpu, &in_cpu, &in_cpu_power }, 0 }, 100 },
        { { { &cpu, &in_cpu_power }, 0 }, 50 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_experiment *experiment = make_experiment(*state, &cases[i].run, 1);
        struct wm_series *series = NULL;
        struct wm_figure figure;
        json_t *root = show(experiment, NULL);
        expect(root, "energy", "total", cases[i].total, NULL);
        json_decref(root);
        assert_int_equal(wm_experiment_series(experiment, "energy", &series, NULL), WM_OK);
        assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, NULL, &figure, NULL),
                         WM_OK);
        assert_float_equal(figure.value, cases[i].total, 1e-6);
        wm_series_free(series);
        wm_experiment_close(experiment);
    }
}

/* Of one kind they can be added: there is nothing else in them. */
static void test_same_kind_of_unlike_runs(void **state)
{
    static const struct made_run runs[] = { { { &cpu, &gpu }, 0 }, { { &cpu }, 0 } };
    struct wm_experiment *experiment = make_experiment(*state, runs, 2);
    struct wm_series *series = NULL;
    struct wm_figure figure;
    json_t *root = show(experiment, NULL);

    expect(root, "energy", "cpu", 100, NULL);
    json_decref(root);
    assert_int_equal(wm_experiment_series(experiment, "cpu_energy", &series, NULL), WM_OK);
    assert_int_equal(wm_series_figure(series, WM_FIGURE_TOTAL, NULL, &figure, NULL), WM_OK);
    assert_float_equal(figure.value, 100, 1e-6);
    wm_series_free(series);
    wm_experiment_close(experiment);
}

/* A metric that is there, and never had a value. */
static void test_silent_metric(void **state)
{
    static const struct made_run runs[] = { { { &cpu }, TICKS } };
    static const struct {
        const char *metric;
        int status;
    } cases[] = {
        { "host_load1", WM_ENODEV }, { "package0_energy_J", WM_ENODEV },
        { "energy", WM_ENODEV },     { "host_load2", WM_ENOENT },
        { "gpu_energy", WM_ENOENT },
    };
    struct wm_experiment *experiment = make_experiment(*state, runs, 1);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_series *series = NULL;
        struct wm_error err = { 0 };
        int status = wm_experiment_series(experiment, cases[i].metric, &series, &err);
        print_message("  %s: %s\n", cases[i].metric, err.text);
        assert_int_equal(status, cases[i].status);
    }
    wm_experiment_close(experiment);
}

static void test_idle_watts(void **state)
{
    static const struct made_run runs[] = { { { &cpu }, 0 } };
    static const struct {
        double watts, rest;
        const char *why;
    } cases[] = {
        { 4, 30, NULL },
        { 10, 0, NULL },
        { 11, 0, "--idle-watts" },
        { 1e6, 0, "--idle-watts" },
    };
    struct wm_experiment *experiment = make_experiment(*state, runs, 1);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_experiment_style style = { .idle_watts = cases[i].watts };
        json_t *root = show(experiment, &style);
        print_message("  %g W\n", cases[i].watts);
        expect(root, "energy", "idle", 5 * cases[i].watts, NULL);
        expect(root, "energy", "without_idle", cases[i].rest, cases[i].why);
        json_decref(root);
    }
    wm_experiment_close(experiment);
}

/* A pause in a run makes no second run of it. */
static void test_per_flop(void **state)
{
    static const struct made_run runs[] = { { { &cpu }, 2 }, { { &cpu }, 0 } };
    struct wm_experiment *experiment = make_experiment(*state, runs, 2);
    json_t *root = show(experiment, NULL);
    const json_t *first = json_array_get(json_object_get(root, "runs"), 0);
    const char *why;

    assert_int_equal(json_integer_value(json_object_get(first, "segments")), 2);
    expect(root, "model", "energy_per_flop", number_of(root, "energy", "total", &why) / 10,
           NULL);
    json_decref(root);
    wm_experiment_close(experiment);
}

/* In a folder of AIPowerMeter's each segment is one. */
static void test_per_flop_of_segments(void **state)
{
    char text[4096] = "";
    struct wm_experiment *experiment = NULL;
    size_t used = 0;
    const char *why;

    for (size_t i = 0; i < 6; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used,
                             "{\"date\": \"2023-06-01 12:00:0%zu\", \"metrics\": {\"cpu\": "
                             "{\"intel_power\": 10.0, \"total_cpu_power\": 9.0}}}\n",
                             i);
        if (i == 2)
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "{\"date\": \"2023-06-01 12:00:02.1\", \"metrics\": "
                                     "\"END OF RECORDING SEGMENT\"}\n");
    }
    test_write_file(*state, "x/power_metrics.json", text);
    test_write_file(*state, "x/metadata.json",
                    "{\"wattmeter\": {\"notes\": {\"model\": \"{\\\"flops\\\":5}\"}}}");
    assert_int_equal(wm_experiment_open(*state, "x", &experiment, NULL), WM_OK);
    json_t *root = show(experiment, NULL);
    const json_t *first = json_array_get(json_object_get(root, "runs"), 0);
    assert_int_equal(json_integer_value(json_object_get(first, "segments")), 2);
    expect(root, "model", "energy_per_flop", number_of(root, "energy", "total", &why) / 10,
           NULL);
    json_decref(root);
    wm_experiment_close(experiment);
}

static void test_steps_of_a_run_without_energy(void **state)
{
    static const struct made_run runs[] = { { { NULL }, 0 }, { { &cpu }, 0 } };
    const struct wm_experiment_style style = { .per = "epoch" };
    struct wm_experiment *experiment = make_experiment(*state, runs, 2);
    json_t *root = show(experiment, &style);
    const json_t *steps = json_object_get(json_object_get(root, "per"), "steps");

    assert_int_equal(json_array_size(steps), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *joules = json_object_get(json_array_get(steps, i), "energy");
        assert_true(i < 2 ? json_is_null(joules) : json_number_value(joules) > 14);
    }
    expect(root, "per", "energy_mean", 17.5, NULL);
    json_decref(root);

    char *text = print(experiment, WM_FORMAT_TEXT, &style);
    assert_non_null(strstr(text, "the energy was not known at that time"));
    free(text);
    wm_experiment_close(experiment);
}

static bool is_in_line(const char *line, const char *word)
{
    const char *found = strstr(line, word);

    return found && found < line + strcspn(line, "\n");
}

static void test_origins(void **state)
{
    static const struct made_run runs[] = { { { &cpu, &gpu }, 0 } };
    struct wm_experiment *experiment = make_experiment(*state, runs, 1);
    json_t *root = show(experiment, NULL);
    const json_t *energy = json_object_get(root, "energy");
    const json_t *origins = json_object_get(energy, "origins");
    const json_t *run = json_array_get(json_object_get(root, "runs"), 0);

    assert_string_equal(json_string_value(json_object_get(energy, "origin")), "simulated");
    assert_string_equal(json_string_value(json_object_get(origins, "cpu")), "measured");
    assert_string_equal(json_string_value(json_object_get(origins, "gpus")), "simulated");
    assert_null(json_object_get(origins, "dram"));
    assert_true(
        json_equal(json_object_get(json_object_get(run, "energy"), "origins"), origins));
    json_decref(root);

    char *text = print(experiment, WM_FORMAT_TEXT, NULL);
    const char *cpu_line = strstr(text, "\n  CPU"), *gpu_line = strstr(text, "\n  GPUs");
    assert_non_null(cpu_line);
    assert_non_null(gpu_line);
    assert_false(is_in_line(cpu_line + 1, "SIMULATED"));
    assert_true(is_in_line(gpu_line + 1, "SIMULATED"));
    assert_non_null(strstr(text, "CPU, GPUs"));
    free(text);
    wm_experiment_close(experiment);
}

static void test_no_series(void **state)
{
    static const enum wm_format formats[] = { WM_FORMAT_TEXT, WM_FORMAT_JSON };
    FILE *null = fopen("/dev/null", "w");
    struct wm_error err;
    (void)state;

    assert_non_null(null);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        assert_int_equal(wm_series_print(NULL, 0, NULL, formats[i], null, &err), WM_EINVAL);
    fclose(null);
}

/* A tracker that has been started is refused before anything is read or made. */
static void test_started_tracker(void **state)
{
    const char *const cards[] = { NULL, "card.json", "nothing.json" };
    const struct wm_tracker_options options = { .interval_ns = 100000000 };
    struct wm_tracker *tracker = NULL;
    struct wm_error err = { 0 };
    char target[256], card[256];

    test_write_file(*state, "card.json", "{}");
    snprintf(target, sizeof(target), "%s/results/", (const char *)*state);
    assert_int_equal(wm_tracker_new(&options, &tracker, &err), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, NULL, &err), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
        snprintf(card, sizeof(card), "%s/%s", (const char *)*state,
                 cards[i] ? cards[i] : "");
        const struct wm_experiment_setup setup = {
            .target = target,
            .name = "x",
            .model_card = cards[i] ? card : NULL,
        };
        assert_int_equal(wm_tracker_experiment(tracker, &setup, &err), WM_EINVAL);
        assert_non_null(strstr(err.text, "started already"));
        assert_int_not_equal(access(target, F_OK), 0);
    }
    assert_true(wm_tracker_stop(tracker, &err) >= 0);
    wm_tracker_free(tracker);
}

/* From opening to the last line of each form. */
static int do_everything(FILE *out, struct wm_error *err)
{
    const struct wm_experiment_style style = { .per = "loss" };
    struct wm_experiment *experiment = NULL;
    struct wm_series *energy = NULL, *loss = NULL;

    int status = wm_experiment_print_list(AIPM, WM_FORMAT_JSON, out, err);
    if (status == WM_OK)
        status = wm_experiment_open(AIPM, "generation1", &experiment, err);
    if (status == WM_OK)
        status = wm_experiment_print(experiment, WM_FORMAT_TEXT, &style, out, err);
    if (status == WM_OK)
        status = wm_experiment_print(experiment, WM_FORMAT_JSON, &style, out, err);
    if (status == WM_OK)
        status = wm_experiment_series(experiment, "power", &energy, err);
    if (status == WM_OK)
        status = wm_experiment_series(experiment, "loss", &loss, err);
    const struct wm_series *const both[] = { energy, loss };
    if (status == WM_OK)
        status = wm_series_print(both, 2, NULL, WM_FORMAT_TEXT, out, err);
    if (status == WM_OK)
        status = wm_series_print(both, 2, NULL, WM_FORMAT_JSON, out, err);
    if (status == WM_OK)
        status =
            wm_series_print_figure(energy, WM_FIGURE_MAX, NULL, WM_FORMAT_JSON, out, err);
    wm_series_free(energy);
    wm_series_free(loss);
    wm_experiment_close(experiment);
    return status;
}

static void test_out_of_memory(void **state)
{
    FILE *null = fopen("/dev/null", "w");
    struct wm_error err;
    (void)state;

    assert_non_null(null);
    test_fail_allocation(-1);
    assert_int_equal(do_everything(null, &err), WM_OK);
    long made = test_fail_allocation(-1);
    for (long nth = 0; nth < made; nth += 1 + nth / 100) {
        test_fail_allocation(nth);
        int status = do_everything(null, &err);
        test_fail_allocation(-1);
        if (status != WM_ENOMEM)
            print_message("  allocation %ld of %ld: %d, %s\n", nth, made, status, err.text);
        assert_int_equal(status, WM_ENOMEM);
    }
    fclose(null);
}

/* The same where a step has no energy and the runs cannot be added. */
static void test_unlike_out_of_memory(void **state)
{
    static const struct made_run runs[] = { { { NULL }, 0 },
                                            { { &cpu, &gpu }, 0 },
                                            { { &cpu }, 0 } };
    const struct wm_experiment_style style = { .per = "epoch" };
    struct wm_experiment *experiment = make_experiment(*state, runs, 3);
    FILE *null = fopen("/dev/null", "w");

    /* What is kept of the runs is read the first time. */
    assert_non_null(null);
    assert_int_equal(wm_experiment_print(experiment, WM_FORMAT_JSON, &style, null, NULL),
                     WM_OK);
    test_fail_allocation(-1);
    assert_int_equal(wm_experiment_print(experiment, WM_FORMAT_JSON, &style, null, NULL),
                     WM_OK);
    long made = test_fail_allocation(-1);
    for (long nth = 0; nth < made; nth += 1 + nth / 100) {
        test_fail_allocation(nth);
        int status = wm_experiment_print(experiment, WM_FORMAT_JSON, &style, null, NULL);
        test_fail_allocation(-1);
        assert_int_equal(status, WM_ENOMEM);
    }
    fclose(null);
    wm_experiment_close(experiment);
}

static void test_full_disk(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    struct wm_error err;
    (void)state;

    if (!full)
        skip();
    assert_int_equal(do_everything(full, &err), WM_EIO);
    fclose(full);
}

#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

UNIT(experiment)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_times),
        IN_FOLDER(test_covers),
        IN_FOLDER(test_uncertainty),
        IN_FOLDER(test_period),
        IN_FOLDER(test_metric_is_the_summary),
        IN_FOLDER(test_same_kind_of_unlike_runs),
        IN_FOLDER(test_silent_metric),
        IN_FOLDER(test_idle_watts),
        IN_FOLDER(test_per_flop),
        IN_FOLDER(test_per_flop_of_segments),
        IN_FOLDER(test_steps_of_a_run_without_energy),
        IN_FOLDER(test_origins),
        cmocka_unit_test(test_no_series),
        IN_FOLDER(test_started_tracker),
        cmocka_unit_test(test_out_of_memory),
        IN_FOLDER(test_unlike_out_of_memory),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
