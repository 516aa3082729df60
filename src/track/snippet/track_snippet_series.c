/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_series.c - a row every so often: a snippet that is looked at again and
 * again while it is open, by a thread that is in no hurry otherwise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_stats.h"
#include "analyze/energy/analyze_sensor.h"
#include "base/base_clock.h"
#include "base/base_thread.h"
#include "source/source_set.h"
#include "track/snippet/track_snippet_state.h"
#include "wattmeter/tracker.h"

/* How busy and how hot the CPUs are. */
struct host {
    struct wm_source_set *sources;
    struct wm_reading *readings;
    size_t cores;
    struct wm_reading busy; /* from which on the CPUs' use is looked at, */
    struct wm_reading use;  /* and what it was before */
};

static bool is_channel(const struct wm_channel *channel, enum wm_device_kind kind,
                       const char *metric)
{
    return channel->device_kind == kind && strcmp(channel->metric, metric) == 0;
}

static int open_sources(struct host *host, struct wm_error *err)
{
    static const char *const names[] = { "host", "hwmon" };
    const struct wm_source_config config = { 0 };

    int status = wm_source_set_new(&config, 0, &host->sources, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && status == WM_OK; i++) {
        status = wm_source_set_open(host->sources, names[i], err);
        if (status != WM_ENOMEM)
            status = WM_OK;
    }
    if (status < 0)
        return status;
    host->readings =
        calloc(wm_source_set_channel_count(host->sources) + 1, sizeof(*host->readings));
    return host->readings ? WM_OK : wm_fail(err, WM_ENOMEM, "meter: out of memory");
}

static void close_host(struct host *host)
{
    if (!host)
        return;
    wm_source_set_close(host->sources);
    free(host->readings);
    free(host);
}

/* The kernel counts in steps of 10 ms, and a few of them make no rate: what was found over
 * the last three holds until there are three more. */
static void add_busy(struct host *host, const struct wm_reading *busy, int64_t period_ns)
{
    double seconds = wm_stats_seconds(host->busy.when_ns, busy->when_ns);
    bool was_known = wm_stats_usable(&host->busy);

    if (was_known && seconds < WM_SENSOR_PERIODS * (double)period_ns / 1e9)
        return;
    if (was_known && seconds > 0 && host->cores > 0) {
        double ratio = (busy->value - host->busy.value) / seconds / (double)host->cores;
        host->use =
            (struct wm_reading) { busy->when_ns, fmin(fmax(ratio, 0), 1), WM_READING_OK };
    }
    host->busy = *busy;
}

/* Utilization since the last reading, of all cores together; the temperature now, of
 * the hottest package. */
static void read_host(struct host *host, struct wm_meter_gauges *ret_gauges)
{
    struct wm_reading hottest = { 0 };
    bool is_busy_told = false;

    wm_source_set_begin(host->sources);
    wm_source_set_collect(host->sources, 0, 0, host->readings);
    for (size_t i = 0; i < wm_source_set_channel_count(host->sources); i++) {
        const struct wm_channel *channel = wm_source_set_channel(host->sources, i);
        const struct wm_reading *reading = &host->readings[i];
        if (!wm_stats_usable(reading))
            continue;
        if (is_channel(channel, WM_DEVICE_CPU, "temperature") &&
            (hottest.state != WM_READING_OK || reading->value > hottest.value))
            hottest = *reading;
        if (!is_channel(channel, WM_DEVICE_HOST, "cpu_time"))
            continue;
        add_busy(host, reading, channel->period_ns);
        is_busy_told = true;
    }
    if (!is_busy_told)
        host->use = host->busy = (struct wm_reading) { 0 };
    *ret_gauges = (struct wm_meter_gauges) {
        .utilization = host->use,
        .temperature = hottest,
    };
}

/* What is not here is missing in each reading. Fails for want of memory alone. */
static int open_host(struct host **ret_host, struct wm_error *err)
{
    struct host *host = calloc(1, sizeof(*host));
    struct wm_meter_gauges ignored;

    if (!host)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    int status = open_sources(host, err);
    if (status < 0) {
        close_host(host);
        return status;
    }
    for (size_t i = 0; i < wm_source_set_channel_count(host->sources); i++)
        host->cores +=
            is_channel(wm_source_set_channel(host->sources, i), WM_DEVICE_CPU, "cpu_time");
    read_host(host, &ignored);
    *ret_host = host;
    return WM_OK;
}

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
    struct host *host;
    struct wm_meter_file *file;

    pthread_t thread;
    pthread_cond_t wake;
    bool has_condition;
    bool is_ending; /* under the meter's lock */
};

static struct wm_reading gauge(const struct wm_meter_inputs *inputs, size_t channel)
{
    const struct wm_reading *reading = wm_meter_inputs_reading(inputs, channel);

    return reading ? *reading : (struct wm_reading) { 0 };
}

/* One device that does not tell leaves nothing to be said of all. */
static void join_gauge(struct wm_reading *all, const struct wm_reading *one, double value)
{
    all->value = value;
    if (!wm_stats_usable(one))
        all->state = one->state == WM_READING_OK ? WM_READING_FAILED : one->state;
}

/* All GPUs together: the mean of how busy they are, the hottest, the sum of their
 * power. */
static void join(struct wm_meter_gauges *all, const struct wm_meter_gauges *one,
                 size_t before)
{
    double busy = all->utilization.value;

    if (before == 0) {
        *all = *one;
        return;
    }
    join_gauge(&all->utilization, &one->utilization,
               busy + (one->utilization.value - busy) / (double)(before + 1));
    join_gauge(&all->temperature, &one->temperature,
               fmax(one->temperature.value, all->temperature.value));
    join_gauge(&all->power, &one->power, all->power.value + one->power.value);
}

static void look_at_gpus(struct wm_meter_series *series, struct wm_meter_gauges *ret_all)
{
    const struct wm_meter_inputs *inputs = series->meter->inputs;
    size_t gpus = 0;

    *ret_all = (struct wm_meter_gauges) { 0 };
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
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
    size_t count = series->meter->inputs->count;

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
    size_t count = meter->inputs->count;

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
    read_host(series->host, &row->cpu);
    wm_meter_file_write(series->file, row, NULL);
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
            wm_thread_wait(&series->wake, &meter->lock, due_ns);
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
    int status = wm_meter_file_close(series->file, err);

    if (series->has_condition)
        pthread_cond_destroy(&series->wake);
    close_host(series->host);
    free(series->copy);
    free(series->gauges);
    free(series->told);
    free(series);
    return status;
}

static int fill(struct wm_meter_series *series, const char *path, struct wm_error *err)
{
    const struct wm_meter *meter = series->meter;
    size_t devices = meter->inputs->count;

    series->copy = wm_meter_window_new(devices);
    series->gauges = calloc(devices + 1, sizeof(*series->gauges));
    series->told = calloc(devices + 3, sizeof(*series->told));
    if (!series->copy || !series->gauges || !series->told)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    errno = wm_thread_condition(&series->wake);
    if (errno != 0)
        return wm_fail_errno(err, "meter");
    series->has_condition = true;
    int status = open_host(&series->host, err);
    if (status < 0)
        return status;
    return wm_meter_file_open(path, meter->mode,
                              meter->seed_format ? WM_METER_SERIES_SEED : WM_METER_SERIES,
                              meter->inputs, &series->file, err);
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
    status = wm_thread_start(&series->thread, run_series, series,
                             "starting a thread of the meter", err);
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
        wm_meter_file_abandon(series->file);
        series->file = NULL;
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
