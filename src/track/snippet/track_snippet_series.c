/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_series.c - a row every so often: a snippet that is looked at again and
 * again while it is open, by a thread that is in no hurry otherwise. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "base/base_clock.h"
#include "track/snippet/track_snippet_host.h"
#include "track/snippet/track_snippet_state.h"
#include "wattmeter/tracker.h"

/* A figure of the last row. */
struct told {
    double joules;
    enum wm_origin origin;
};

struct wm_meter_series {
    struct wm_meter *meter;
    int64_t interval_ns;
    struct wm_snippet *snippet;
    struct wm_meter_window *copy;   /* of the snippet's, with an end */
    struct wm_meter_gauges *gauges; /* one per device */
    struct told *told;              /* one per device, and the sums */
    struct wm_meter_host *host;
    struct wm_meter_table *table;

    pthread_t thread;
    pthread_cond_t wake;
    bool has_condition;
    bool is_ending; /* under the meter's lock */
};

static struct wm_meter_cell gauge(const struct wm_meter_inputs *inputs, size_t channel)
{
    const struct wm_reading *reading = wm_meter_inputs_reading(inputs, channel);

    if (!reading || !wm_stats_usable(reading))
        return (struct wm_meter_cell) { 0 };
    return (struct wm_meter_cell) { true, reading->value };
}

/* All GPUs together: the mean of how busy they are, the hottest, the sum of their
 * power. One that does not tell leaves nothing to be said of all. */
static void join(struct wm_meter_gauges *all, const struct wm_meter_gauges *one,
                 size_t before)
{
    struct wm_meter_cell *busy = &all->utilization, *heat = &all->temperature;

    if (before == 0) {
        *all = *one;
        return;
    }
    busy->is_known &= one->utilization.is_known;
    busy->value += (one->utilization.value - busy->value) / (double)(before + 1);
    heat->is_known &= one->temperature.is_known;
    if (one->temperature.value > heat->value)
        heat->value = one->temperature.value;
    all->power.is_known &= one->power.is_known;
    all->power.value += one->power.value;
}

static void look_at_gpus(struct wm_meter_series *series, struct wm_meter_gauges *ret_all)
{
    const struct wm_meter_inputs *inputs = series->meter->inputs;
    size_t gpus = 0;

    *ret_all = (struct wm_meter_gauges) { 0 };
    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++) {
        const struct wm_meter_input *input = wm_meter_input(inputs, i);
        if (input->told.kind != WM_DEVICE_GPU)
            continue;
        series->gauges[i] = (struct wm_meter_gauges) {
            .utilization = gauge(inputs, input->utilization),
            .temperature = gauge(inputs, input->temperature),
            .power = gauge(inputs, input->power),
        };
        join(ret_all, &series->gauges[i], gpus++);
    }
}

/* What a counter is taken to have done since its last step is a guess, and less may
 * come out in the end: the total of a row is never less than that of the one before. A
 * figure of another kind has nothing to do with that one. */
static void keep_up(struct wm_meter_energy *energy, struct told *told)
{
    if (energy->state != WM_READING_OK)
        return;
    if (energy->origin == told->origin && energy->joules < told->joules) {
        energy->uncertainty += told->joules - energy->joules;
        energy->joules = told->joules;
    }
    *told = (struct told) { energy->joules, energy->origin };
}

static void keep_all_up(struct wm_meter_series *series, struct wm_meter_reading *reading)
{
    size_t count = wm_meter_inputs_count(series->meter->inputs);

    for (size_t i = 0; i < count; i++)
        keep_up(&series->snippet->devices[i], &series->told[i]);
    keep_up(&reading->cpu, &series->told[count]);
    keep_up(&reading->dram, &series->told[count + 1]);
    keep_up(&reading->gpu, &series->told[count + 2]);
}

/* Under the lock. The window goes on; a copy of it ends here. */
static void read_row(struct wm_meter_series *series, struct wm_meter_row *row)
{
    struct wm_meter *meter = series->meter;
    struct wm_meter_window *window = series->snippet->window;
    size_t count = wm_meter_inputs_count(meter->inputs);

    wm_meter_inputs_read(meter->inputs);
    memcpy(series->copy, window, sizeof(*window) + count * sizeof(window->spans[0]));
    wm_meter_window_add(series->copy, meter->inputs, WM_METER_LAST);
    wm_meter_window_add(window, meter->inputs, WM_METER_BETWEEN);
    wm_meter_result(series->copy, meter->inputs, &row->reading, series->snippet->devices);
    keep_all_up(series, &row->reading);
    row->devices = series->snippet->devices;
    row->gauges = series->gauges;
    look_at_gpus(series, &row->gpu);
}

/* Without it: a disk that is slow delays the next row at most. */
static void write_row(struct wm_meter_series *series, struct wm_meter_row *row)
{
    const struct wm_meter *meter = series->meter;

    wm_meter_host_read(series->host, &row->cpu);
    if (meter->seed_format)
        wm_meter_series_write_seed(series->table, row, NULL);
    else
        wm_meter_series_write(series->table, meter->inputs, row, NULL);
}

/* The deadlines stand fast: a row that comes late moves no other one. */
static void *run_series(void *context)
{
    struct wm_meter_series *series = context;
    struct wm_meter *meter = series->meter;
    bool is_last = false;

    pthread_mutex_lock(&meter->lock);
    int64_t due_ns = series->snippet->window->first_ns + series->interval_ns;
    while (!is_last) {
        struct wm_meter_row row = { 0 };

        while (!series->is_ending && wm_clock_monotonic_ns() < due_ns)
            wm_meter_wait(&series->wake, &meter->lock, due_ns);
        is_last = series->is_ending;
        read_row(series, &row);
        pthread_mutex_unlock(&meter->lock);
        write_row(series, &row);

        int64_t late_ns = wm_clock_monotonic_ns() - due_ns;
        due_ns +=
            (late_ns > 0 ? late_ns / series->interval_ns + 1 : 1) * series->interval_ns;
        pthread_mutex_lock(&meter->lock);
    }
    wm_meter_detach(meter, series->snippet);
    wm_meter_recycle(meter, series->snippet);
    pthread_mutex_unlock(&meter->lock);
    return NULL;
}

static int release(struct wm_meter_series *series, struct wm_error *err)
{
    int status = wm_meter_table_close(series->table, err);

    if (series->has_condition)
        pthread_cond_destroy(&series->wake);
    wm_meter_host_close(series->host);
    free(series->copy);
    free(series->gauges);
    free(series->told);
    free(series);
    return status;
}

static int open_table(struct wm_meter_series *series, const char *path,
                      struct wm_error *err)
{
    const struct wm_meter *meter = series->meter;
    char *header = NULL;
    int status = WM_OK;

    if (!meter->seed_format)
        status = wm_meter_series_header(meter->inputs, &header, err);
    if (status == WM_OK)
        status = wm_meter_table_open(path, meter->mode, header, &series->table, err);
    free(header);
    return status;
}

static int fill(struct wm_meter_series *series, const char *path, struct wm_error *err)
{
    size_t devices = wm_meter_inputs_count(series->meter->inputs);

    series->copy = wm_meter_window_new(devices);
    series->gauges = calloc(devices + 1, sizeof(*series->gauges));
    series->told = calloc(devices + 3, sizeof(*series->told));
    if (!series->copy || !series->gauges || !series->told)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    errno = wm_meter_make_condition(&series->wake);
    if (errno != 0)
        return wm_fail_errno(err, "meter");
    series->has_condition = true;
    int status = wm_meter_host_open(&series->host, err);
    return status < 0 ? status : open_table(series, path, err);
}

static int fail_busy(struct wm_error *err)
{
    return wm_fail(err, WM_EINVAL, "this meter runs already");
}

static int check_idle(struct wm_meter *meter, struct wm_error *err)
{
    pthread_mutex_lock(&meter->lock);
    bool is_idle = !meter->series;
    pthread_mutex_unlock(&meter->lock);
    return is_idle ? WM_OK : fail_busy(err);
}

/* Under the lock. */
static int begin(struct wm_meter_series *series, struct wm_error *err)
{
    struct wm_meter *meter = series->meter;

    if (meter->series)
        return fail_busy(err);
    int status = wm_meter_begin(meter, NULL, true, &series->snippet, err);
    if (status < 0)
        return status;
    status = wm_meter_make_thread(&series->thread, run_series, series, err);
    if (status < 0) {
        wm_meter_detach(meter, series->snippet);
        wm_meter_recycle(meter, series->snippet);
        return status;
    }
    meter->series = series;
    return WM_OK;
}

int wm_meter_run(struct wm_meter *meter, const char *path, int64_t interval_ns,
                 struct wm_error *err)
{
    if (!meter || !path)
        return wm_fail(err, WM_EINVAL, "there is no meter to run, or no file for its rows");
    if (interval_ns < WM_INTERVAL_MIN_NS || interval_ns > WM_INTERVAL_MAX_NS)
        return wm_fail(err, WM_EINVAL, "a meter's interval is 1 ms to 1 h");
    int status = wm_meter_check_owner(meter, err);
    if (status < 0)
        return status;

    struct wm_meter_series *series = calloc(1, sizeof(*series));
    if (!series)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    series->meter = meter;
    series->interval_ns = interval_ns;

    /* Before the file is touched. */
    status = check_idle(meter, err);
    if (status == WM_OK)
        status = fill(series, path, err);
    if (status == WM_OK) {
        pthread_mutex_lock(&meter->lock);
        status = begin(series, err);
        pthread_mutex_unlock(&meter->lock);
    }
    if (status < 0) {
        wm_meter_table_abandon(series->table);
        series->table = NULL;
        release(series, NULL);
    }
    return status;
}

int wm_meter_halt(struct wm_meter *meter, struct wm_error *err)
{
    if (!meter)
        return wm_fail(err, WM_EINVAL, "there is no meter to halt");
    int status = wm_meter_check_owner(meter, err);
    if (status < 0)
        return status;

    pthread_mutex_lock(&meter->lock);
    struct wm_meter_series *series = meter->series;
    meter->series = NULL;
    if (series) {
        series->is_ending = true;
        pthread_cond_signal(&series->wake);
    }
    pthread_mutex_unlock(&meter->lock);
    if (!series)
        return wm_fail(err, WM_EINVAL, "this meter does not run");
    pthread_join(series->thread, NULL);
    return release(series, err);
}
