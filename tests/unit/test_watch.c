/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch.c - what the view in the terminal shows, without a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/record_live.h"
#include "test.h"
#include "view/watch/view_watch_colour.h"
#include "view/watch/view_watch_data.h"
#include "view/watch/view_watch_processes.h"

#define S INT64_C(1000000000)
#define START (100 * S)

static const struct wm_channel channels[] = {
    { .source = "nvml",
      .device = "a",
      .label = "gpu0",
      .metric = "energy",
      .unit = "J",
      .device_kind = WM_DEVICE_GPU,
      .kind = WM_COUNTER },
    { .source = "nvml",
      .device = "a",
      .label = "gpu0",
      .metric = "power",
      .unit = "W",
      .device_kind = WM_DEVICE_GPU },
    { .source = "estimate",
      .device = "b",
      .label = "cpu",
      .metric = "energy",
      .unit = "J",
      .device_kind = WM_DEVICE_CPU,
      .kind = WM_COUNTER,
      .origin = WM_ESTIMATED },
    { .source = "host",
      .device = "host",
      .label = "host",
      .metric = "cpu_time",
      .unit = "s",
      .device_kind = WM_DEVICE_HOST,
      .kind = WM_COUNTER },
    { .source = "nvml",
      .device = "a",
      .label = "gpu0",
      .metric = "memory_total",
      .unit = "B",
      .device_kind = WM_DEVICE_GPU },
};
enum { COUNT = sizeof(channels) / sizeof(channels[0]) };

static struct wm_recording *live;
static struct wm_watch_data data;

static void open_with(size_t count, int64_t window_ns)
{
    const struct wm_run run = { .interval_ns = S / 10, .core_count = 4 };

    assert_int_equal(wm_live_open(&run, channels, count, &live, NULL), WM_OK);
    assert_int_equal(wm_watch_data_init(&data, live, window_ns, NULL), WM_OK);
}

static void close_all(void)
{
    wm_watch_data_release(&data);
    wm_recording_close(live);
}

/* What `values` are so long after the start; NAN: it failed. */
static void add(double seconds, const double *values, size_t count)
{
    struct wm_reading readings[COUNT] = { 0 };
    int64_t when_ns = START + (int64_t)(seconds * 1e9);

    for (size_t i = 0; i < count; i++)
        readings[i] = (struct wm_reading) {
            .when_ns = when_ns,
            .value = values[i],
            .state = isnan(values[i]) ? WM_READING_FAILED : WM_READING_OK,
        };
    const struct wm_tick tick = { when_ns, readings, count };
    wm_watch_data_add(&data, &tick);
}

static const struct wm_watch_series *find(const char *label, const char *panel)
{
    for (size_t i = 0; i < data.count; i++) {
        const struct wm_watch_series *series = &data.series[i];
        if (strcmp(series->label, label) == 0 && wm_watch_is_in(&data, series, panel))
            return series;
    }
    return NULL;
}

/* The power is that of the sensor, and the sum is of the devices, each once. */
static void test_power(void **state)
{
    (void)state;
    open_with(COUNT, 20 * S);
    add(0, (double[]) { 1000, 300, 10, 0, 8e10 }, COUNT);
    add(1, (double[]) { 1280, 250, 60, 2, 8e10 }, COUNT);
    assert_true(find("gpu0", "power")->now == 250);
    assert_true(find("cpu", "power")->now == 50);
    assert_true(find("total", "power")->now == 300);
    assert_true(find("machine", "cpu_use")->now == 2); /* cores */
    assert_null(find("total", "cpu_use"));
    assert_null(find("gpu0", "memory")); /* what there is of it is not what is used */
    assert_true(wm_watch_latest(&data, "gpu0", "memory_total") == 8e10);
    assert_true(isnan(wm_watch_latest(&data, "gpu0", "clock")));
    close_all();
}

/* A sensor without a value leaves it to the counter; a sum that lacks something is none. */
static void test_missing(void **state)
{
    (void)state;
    open_with(COUNT, 20 * S);
    add(0, (double[]) { 1000, NAN, 10, 0, NAN }, COUNT);
    add(1, (double[]) { 1280, NAN, 60, 2, NAN }, COUNT);
    assert_true(find("gpu0", "power")->now == 280);
    assert_true(find("total", "power")->now == 330);
    add(2, (double[]) { 1280, NAN, NAN, 2, NAN }, COUNT);
    assert_int_equal(find("cpu", "power")->state, WM_READING_FAILED);
    assert_int_equal(find("total", "power")->state, WM_READING_FAILED);
    add(3, (double[]) { 1280, INFINITY, NAN, 2, NAN }, COUNT);
    assert_int_equal(find("gpu0", "power")->state, WM_READING_OK); /* of the counter */
    close_all();

    size_t at = 0, gpus = 0;
    const struct wm_watch_series *series;
    open_with(COUNT, 20 * S);
    add(0, (double[]) { NAN, NAN, 10, 0, NAN }, COUNT);
    while ((series = wm_watch_next(&data, "power", &at)))
        gpus += strcmp(series->label, "gpu0") == 0;
    assert_int_equal(gpus, 1);
    close_all();
}

/* One device needs no sum. */
static void test_one(void **state)
{
    (void)state;
    open_with(2, 20 * S);
    add(0, (double[]) { 1000, 300 }, 2);
    assert_null(find("total", "power"));
    assert_true(find("gpu0", "power")->now == 300);
    close_all();
}

/* Watts are of the time since the joules before, and unknown while either is. */
static void test_meter(void **state)
{
    struct wm_report_figure energy = { .state = WM_REPORT_KNOWN,
                                       .value = 30,
                                       .unit = "J",
                                       .has_range = true,
                                       .low = 27,
                                       .high = 33,
                                       .origin = WM_ESTIMATED };
    struct wm_watch_meter meter = { 0 };

    (void)state;
    wm_watch_meter_take(&meter, &energy, 0);
    assert_true(isnan(meter.rate) && meter.total == 30);
    assert_string_equal(meter.origin, "ESTIMATED");
    assert_string_equal(meter.text, "30 J");
    assert_string_equal(meter.uncertainty, "± 10 %");
    energy.value = 50;
    wm_watch_meter_take(&meter, &energy, 2);
    assert_true(meter.rate == 10 && meter.seconds == 2);
    energy.value = 49; /* divided anew */
    wm_watch_meter_take(&meter, &energy, 1);
    assert_true(meter.rate == 0);
    energy = (struct wm_report_figure) { .state = WM_REPORT_MISSING };
    wm_watch_meter_take(&meter, &energy, 1);
    assert_true(isnan(meter.rate));
    assert_string_equal(meter.text, "n/a (not measured)");
    energy =
        (struct wm_report_figure) { .state = WM_REPORT_AT_LEAST, .value = 60, .unit = "J" };
    wm_watch_meter_take(&meter, &energy, 1);
    assert_string_equal(meter.text, "60.0 J");
    assert_string_equal(meter.uncertainty, "");
    assert_true(isnan(meter.rate) && meter.state == WM_REPORT_AT_LEAST);
}

/* From the oldest sample in the window to a second past the newest, in whole columns. */
static void test_time(void **state)
{
    (void)state;
    struct wm_axis axis = wm_watch_time(5 * S, 20 * S, 60);
    assert_true(axis.low == 0 && axis.high == 6);
    double cell = 21.0 / 60;
    for (int64_t newest_ns = 30 * S; newest_ns < 40 * S; newest_ns += S / 7) {
        axis = wm_watch_time(newest_ns, 20 * S, 60);
        double newest = (double)newest_ns / 1e9;
        assert_true(fabs(axis.high - axis.low - 21) < 1e-9);
        assert_true(axis.high >= newest + 1 - 1e-9 && axis.high < newest + 1 + cell);
        double columns = axis.low / cell;
        assert_true(fabs(columns - round(columns)) < 1e-6);
    }
}

/* What left the window does not count, and neither does what is hidden. */
static void test_values(void **state)
{
    (void)state;
    open_with(COUNT, 2 * S);
    struct wm_axis time = wm_watch_time(0, 2 * S, 50), values;
    assert_false(wm_watch_values(&data, "power", &time, false, &values));
    for (int i = 0; i <= 100; i++)
        add(i / 10.0, (double[]) { 1000, i == 10 ? 900 : 300, 10 + 5 * i, 0, 8e10 }, COUNT);
    time = wm_watch_time(data.newest_ns, 2 * S, 50);
    data.series[0].is_hidden = true;
    assert_true(wm_watch_values(&data, "power", &time, false, &values));
    assert_true(values.low == 0 && values.high > 300);
    assert_true(wm_watch_values(&data, "power", &time, true, &values));
    assert_true(fabs(values.low - (50 - 25.1)) < 1e-6);
    assert_true(fabs(values.high - (300 + 25.1)) < 1e-6);
    for (size_t i = 0; i < data.count; i++)
        data.series[i].is_hidden = true;
    assert_false(wm_watch_values(&data, "power", &time, false, &values));
    close_all();
}

/* What an estimate follows comes before it; with a GPU, or with a sensor, power does. */
static void test_panels(void **state)
{
    (void)state;
    open_with(COUNT, 20 * S);
    assert_string_equal(wm_watch_panel(&data, 0), "power");
    assert_string_equal(wm_watch_panel(&data, 1), "cpu_use");
    assert_null(wm_watch_panel(&data, 2));
    close_all();
    const struct wm_channel cpus[] = { channels[2], channels[3] };
    const struct wm_run run = { .interval_ns = S / 10, .core_count = 4 };
    assert_int_equal(wm_live_open(&run, cpus, 2, &live, NULL), WM_OK);
    assert_int_equal(wm_watch_data_init(&data, live, S, NULL), WM_OK);
    assert_string_equal(wm_watch_panel(&data, 0), "cpu_use");
    assert_string_equal(wm_watch_panel(&data, 1), "power");
    close_all();
}

/* With many devices the sum has a panel, so that it does not squeeze their lines; no other
 * device has the colour of a GPU. */
static void test_many(void **state)
{
    enum { GPUS = 64 };
    struct wm_channel gpus[GPUS + 1];
    char names[GPUS][8];
    struct wm_reading readings[GPUS + 1] = { 0 };

    (void)state;
    gpus[GPUS] = channels[3];
    for (int i = 0; i < GPUS; i++) {
        snprintf(names[i], sizeof(names[i]), "gpu%d", i);
        gpus[i] = channels[1];
        gpus[i].device = gpus[i].label = names[i];
        readings[i] = (struct wm_reading) { START, 100, WM_READING_OK };
    }
    const struct wm_run run = { .interval_ns = S / 10, .core_count = 4 };
    const struct wm_tick tick = { START, readings, GPUS + 1 };
    assert_int_equal(wm_live_open(&run, gpus, GPUS + 1, &live, NULL), WM_OK);
    assert_int_equal(wm_watch_data_init(&data, live, S, NULL), WM_OK);
    wm_watch_data_add(&data, &tick);
    assert_int_equal(data.gpu_count, GPUS);
    assert_null(find("total", "power"));
    assert_true(find("total", "total_power")->now == 100 * GPUS);
    assert_int_equal(find("gpu0", "power")->colour, 0);
    for (int i = 0; i < GPUS; i++)
        assert_int_not_equal(find(names[i], "power")->colour,
                             find("machine", "cpu_use")->colour);
    close_all();
}

/* The kernel counts busy time in steps, so that a window seems busier than it can be. */
static void test_modelled(void **state)
{
    struct wm_channel model = channels[2];
    const struct wm_run run = { .interval_ns = S / 10, .core_count = 4 };
    struct wm_reading reading = { START, 0, WM_READING_OK };
    const struct wm_tick tick = { START, &reading, 1 };

    (void)state;
    model.sensor = (struct wm_sensor) { .kind = WM_SENSOR_MODEL, .range = 3.92 };
    assert_int_equal(wm_live_open(&run, &model, 1, &live, NULL), WM_OK);
    assert_int_equal(wm_watch_data_init(&data, live, S, NULL), WM_OK);
    wm_watch_data_add(&data, &tick);
    reading.when_ns += S / 10;
    reading.value = 0.405;
    wm_watch_data_add(&data, &tick);
    assert_true(find("cpu", "power")->now == 3.92);
    reading.when_ns += S / 10;
    reading.value += 0.3;
    wm_watch_data_add(&data, &tick);
    assert_true(fabs(find("cpu", "power")->now - 3) < 1e-9);
    close_all();
}

/* Every colour of text can be read on black, also where the terminal has 256. */
static void test_colours(void **state)
{
    uint32_t nearest = 0;

    (void)state;
    assert_true(fabs(wm_watch_contrast(0xffffff) - 21) < 1e-9);
    assert_true(wm_watch_contrast(0) == 1);
    assert_true(fabs(wm_watch_contrast(0x767676) - 4.62) < 0.01); /* 21 / 4.54 on white */
    for (size_t i = 0; i <= 16; i++) {
        uint32_t colour = i < 16 ? wm_watch_colour(i) : WM_WATCH_GREY;
        assert_true(wm_watch_contrast(colour) >= 4.5);
        assert_in_range(wm_watch_colour_256(colour, &nearest), 16, 231);
        assert_true(wm_watch_contrast(nearest) >= 4.5);
    }
    assert_int_equal(wm_watch_colour(1), 0xd55e00); /* as it is where that is enough */
}

static struct wm_chart_column sampled(double value, bool is_joined)
{
    return (struct wm_chart_column) { .is_sampled = true,
                                      .is_joined = is_joined,
                                      .state = WM_READING_OK,
                                      .low = value,
                                      .high = value,
                                      .first = value,
                                      .last = value };
}

static void test_canvas(void **state)
{
    const struct wm_axis values = { 0, 8 };
    struct wm_chart_column line[8] = { 0 };
    struct wm_watch_canvas canvas;

    (void)state;
    assert_int_equal(wm_watch_canvas_init(&canvas, 4, 2, NULL), WM_OK);
    line[0] = sampled(0, false);
    line[3] = sampled(7.5, true);
    line[5] = sampled(7.5, false); /* after a gap */
    line[6] = sampled(-100, true);
    line[7] = (struct wm_chart_column) { .is_sampled = true, .state = WM_READING_FAILED };
    wm_watch_canvas_draw(&canvas, line, &values, 3);
    /* The lowest dot of all at the left, the highest at the top, joined in between. */
    assert_int_equal(canvas.dots[4] & 0x40, 0x40);
    assert_int_equal(canvas.dots[1] & 0x08, 0x08);
    assert_true(canvas.dots[5] != 0 && canvas.dots[1] != 0);
    assert_int_equal(canvas.inks[4], 3);
    /* Nothing between the gap's ends, and the last falls through all rows. */
    assert_int_equal(canvas.dots[2] & 0x47, 0);
    assert_int_equal(canvas.dots[2] & 0x08, 0x08);
    assert_int_equal(canvas.dots[7] & 0x40, 0x40);
    assert_int_equal(canvas.dots[7] & 0xb8, 0);
    wm_watch_canvas_clear(&canvas);
    for (size_t i = 0; i < 8; i++)
        assert_true(canvas.dots[i] == 0 && canvas.inks[i] == 0);
    wm_watch_canvas_release(&canvas);
}

static struct wm_watch_processes found;

/* The PIDs of the rows, as "3 1 2". */
static const char *rows(void)
{
    static char text[64];

    text[0] = '\0';
    for (size_t i = 0; i < found.row_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "",
                 (int)found.all[found.rows[i]].process.pid);
    return text;
}

static const char *rows_by(enum wm_watch_order order)
{
    wm_watch_processes_sort(&found, order);
    return rows();
}

static void test_processes(void **state)
{
    struct wm_tracker_process all[] = {
        { .pid = 3,
          .parent = 1,
          .name = "c",
          .command = "train.py --fast",
          .cpu_s = 1,
          .memory_bytes = 5,
          .power_w = 2,
          .energy_j = 1,
          .gpus = 1,
          .gpu_use = 0.5 },
        { .pid = 1,
          .name = "a",
          .command = "shell",
          .cpu_s = 9,
          .memory_bytes = 1,
          .power_w = NAN,
          .energy_j = 3 },
        { .pid = 2,
          .parent = 1,
          .name = "b",
          .cpu_s = 4,
          .memory_bytes = 9,
          .power_w = 7,
          .energy_j = 2,
          .gpus = 1,
          .gpu_use = NAN,
          .gpu_memory_bytes = 8 },
        { .pid = 4, .parent = 3, .name = "Trainer", .power_w = 9, .energy_j = NAN },
    };
    struct wm_watch_news news = { .processes = all, .process_count = 4, .time_s = 100 };

    (void)state;
    found = (struct wm_watch_processes) { 0 };
    wm_watch_processes_take(&found, &news);
    assert_true(isnan(found.all[0].cores));
    assert_string_equal(rows(), "4 2 3 1"); /* by power, what is not known at the end */
    all[0].cpu_s = 3;
    all[2].start_time = 1; /* another one with its number */
    all[2].cpu_s = 5;
    news.time_s += 2;
    found.chosen = 2;
    wm_watch_processes_take(&found, &news);
    assert_int_equal(found.chosen, 0);
    assert_string_equal(rows_by(WM_WATCH_BY_CPU), "3 1 4 2");
    assert_true(found.all[found.rows[0]].cores == 1);
    assert_string_equal(rows_by(WM_WATCH_BY_ENERGY), "1 2 3 4");
    assert_string_equal(rows_by(WM_WATCH_BY_GPU), "3 1 2 4");
    assert_string_equal(rows_by(WM_WATCH_BY_GPU_MEMORY), "2 3 1 4");
    assert_string_equal(rows_by(WM_WATCH_BY_TIME), "1 2 3 4");
    assert_string_equal(rows_by(WM_WATCH_BY_MEMORY), "2 3 1 4");
    assert_string_equal(rows_by(WM_WATCH_BY_PID), "1 2 3 4");
    found.is_inverted = true;
    wm_watch_processes_arrange(&found);
    assert_string_equal(rows(), "4 3 2 1");
    assert_string_equal(rows_by(WM_WATCH_BY_MEMORY),
                        "2 3 1 4"); /* the next key, not inverted */
    wm_watch_processes_release(&found);
}

/* Children behind their parents, each in the order; the filter is of name and command. */
static void test_tree_and_filter(void **state)
{
    const struct wm_tracker_process all[] = {
        { .pid = 10, .parent = 1, .name = "shell" },
        { .pid = 30, .parent = 10, .name = "c", .command = "train.py --fast" },
        { .pid = 20, .parent = 10, .name = "b" },
        { .pid = 40, .parent = 20, .name = "Trainer" },
        { .pid = 5, .parent = 5, .name = "own parent" },
    };
    const struct wm_watch_news news = { .processes = all, .process_count = 5 };

    (void)state;
    found = (struct wm_watch_processes) { .order = WM_WATCH_BY_PID, .is_tree = true };
    wm_watch_processes_take(&found, &news);
    assert_string_equal(rows(), "5 10 20 40 30");
    assert_int_equal(found.all[found.rows[3]].depth, 2);
    assert_int_equal(found.all[found.rows[4]].depth, 1);
    snprintf(found.filter, sizeof(found.filter), "TRAIN");
    assert_string_equal(rows_by(WM_WATCH_BY_PID), "40 30");
    found.is_tree = false;
    assert_string_equal(rows_by(WM_WATCH_BY_PID), "30 40");
    assert_int_equal(found.all[found.rows[1]].depth, 0);
    snprintf(found.filter, sizeof(found.filter), "none such");
    assert_string_equal(rows_by(WM_WATCH_BY_PID), "");
    wm_watch_processes_move(&found, 1);
    assert_null(wm_watch_processes_chosen(&found));
    wm_watch_processes_release(&found);
}

static void test_choosing(void **state)
{
    struct wm_tracker_process all[100];
    struct wm_watch_news news = { .processes = all, .process_count = 100 };

    (void)state;
    for (int i = 0; i < 100; i++)
        all[i] = (struct wm_tracker_process) { .pid = i + 1 };
    found = (struct wm_watch_processes) { .order = WM_WATCH_BY_PID };
    wm_watch_processes_take(&found, &news);
    assert_null(wm_watch_processes_chosen(&found));
    wm_watch_processes_move(&found, 10); /* none was: the first is */
    assert_int_equal(wm_watch_processes_chosen(&found)->process.pid, 1);
    wm_watch_processes_move(&found, 10);
    wm_watch_processes_scroll(&found, 5);
    assert_true(found.chosen == 11 && found.top == 6);
    wm_watch_processes_move(&found, -2);
    wm_watch_processes_scroll(&found, 5);
    assert_true(found.chosen == 9 && found.top == 6);
    wm_watch_processes_move(&found, 1000);
    wm_watch_processes_scroll(&found, 5);
    assert_true(found.chosen == 100 && found.top == 95);
    news.process_count = 50; /* it has ended */
    wm_watch_processes_take(&found, &news);
    wm_watch_processes_scroll(&found, 5);
    assert_true(found.chosen == 0 && found.top == 0);
    wm_watch_processes_release(&found);
}

UNIT(watch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power),     cmocka_unit_test(test_missing),
        cmocka_unit_test(test_one),       cmocka_unit_test(test_time),
        cmocka_unit_test(test_values),    cmocka_unit_test(test_canvas),
        cmocka_unit_test(test_processes), cmocka_unit_test(test_panels),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_modelled),
        cmocka_unit_test(test_colours),   cmocka_unit_test(test_tree_and_filter),
        cmocka_unit_test(test_choosing),  cmocka_unit_test(test_meter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
