/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_series.c - a row every so often: a snippet that is read again and again
 * while it is open, by a thread that is in no hurry otherwise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_thread.h"
#include "record/record_stats.h"
#include "track/snippet/track_snippet.h"
#include "wattmeter/tracker.h"

/* How busy and how hot the CPUs are. */
struct host {
    struct wm_source_set *sources;
    struct wm_reading *readings;
    size_t cores;
    struct wm_stride busy; /* from which on the CPUs' use is looked at, */
    struct wm_reading use; /* and what it was before */
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
    return host->readings ? WM_OK : wm_fail_memory(err, "meter");
}

static void close_host(struct host *host)
{
    wm_source_set_close(host->sources);
    free(host->readings);
}

/* The kernel counts in steps of 10 ms, and a few of them make no rate: what was found over
 * the last three holds until there are three more. */
static void add_busy(struct host *host, const struct wm_reading *busy, int64_t period_ns)
{
    const struct wm_known use = wm_stride_rate(&host->busy, busy->when_ns, busy->value,
                                               WM_SENSOR_PERIODS * (double)period_ns / 1e9);

    if (use.known && host->cores > 0) {
        double ratio = use.number / (double)host->cores;
        host->use =
            (struct wm_reading) { busy->when_ns, fmin(fmax(ratio, 0), 1), WM_READING_OK };
    }
}

/* Utilization since the last reading, of all cores together; the temperature now, of
 * the hottest package. */
static void read_host(struct host *host, struct wm_meter_gauges *ret_gauges)
{
    struct wm_reading hottest = { 0 };
    bool is_busy_told = false;

    wm_source_set_begin(host->sources, true);
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
    if (!is_busy_told) {
        host->busy = (struct wm_stride) { 0 };
        host->use = (struct wm_reading) { 0 };
    }
    *ret_gauges = (struct wm_meter_gauges) {
        .utilization = host->use,
        .temperature = hottest,
    };
}

/* What is not here is missing in each reading. Fails for want of memory alone. */
static int open_host(struct host *host, struct wm_error *err)
{
    struct wm_meter_gauges ignored;

    int status = open_sources(host, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < wm_source_set_channel_count(host->sources); i++)
        host->cores +=
            is_channel(wm_source_set_channel(host->sources, i), WM_DEVICE_CPU, "cpu_time");
    read_host(host, &ignored);
    return WM_OK;
}

struct wm_meter_series {
    struct wm_meter *meter;
    int64_t interval_ns;
    struct wm_snippet *snippet; /* it tells what the last row did */
    struct wm_snippet *row;     /* a copy of it that ends at the row */
    struct host host;
    struct wm_meter_file *file;

    pthread_t thread;
    pthread_cond_t wake;
    bool has_condition;
    bool is_ending; /* under the meter's lock */
};

static struct wm_reading gauge(const struct wm_reading *reading)
{
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

static void look_at_gpus(const struct wm_meter_inputs *inputs, struct wm_snippet *row)
{
    size_t gpus = 0;

    row->gpu = (struct wm_meter_gauges) { 0 };
    for (size_t i = 0; i < inputs->count; i++) {
        const struct wm_meter_input *input = &inputs->list[i];
        if (input->told.kind != WM_DEVICE_GPU)
            continue;
        row->spans[i].gauges = (struct wm_meter_gauges) {
            .utilization = gauge(input->utilization),
            .temperature = gauge(input->temperature),
            .power = gauge(input->power),
        };
        join(&row->gpu, &row->spans[i].gauges, gpus++);
    }
}

/* What a counter is taken to have done since its last step is a guess, and less may
 * come out in the end: the total of a row is never less than that of the one before. A
 * figure of another kind has nothing to do with that one. */
static void keep_up(struct wm_meter_energy *energy, struct wm_meter_energy *before)
{
    if (energy->state != WM_READING_OK)
        return;
    if (energy->origin == before->origin && energy->joules < before->joules) {
        energy->uncertainty += before->joules - energy->joules;
        energy->joules = before->joules;
        energy->high = fmax(energy->high, energy->joules);
    }
    *before = *energy;
}

static void keep_all_up(struct wm_snippet *row, struct wm_snippet *before)
{
    for (size_t i = 0; i < row->inputs->count; i++)
        keep_up(&row->spans[i].told, &before->spans[i].told);
    keep_up(&row->told.cpu, &before->told.cpu);
    keep_up(&row->told.dram, &before->told.dram);
    keep_up(&row->told.gpu, &before->told.gpu);
}

/* Under the lock. The snippet goes on; its copy ends here. */
static void read_row(struct wm_meter_series *series)
{
    struct wm_meter *meter = series->meter;

    wm_meter_inputs_read(&meter->inputs, true);
    memcpy(series->row, series->snippet, wm_meter_snippet_size(meter));
    wm_snippet_add(series->snippet, false);
    wm_snippet_add(series->row, true);
    wm_snippet_tell(series->row);
    keep_all_up(series->row, series->snippet);
    look_at_gpus(&meter->inputs, series->row);
}

/* Without it: a disk that is slow delays the next row at most. */
static void write_row(struct wm_meter_series *series)
{
    read_host(&series->host, &series->row->cpu);
    wm_meter_file_write(series->file, series->row, NULL);
}

/* The deadlines stand fast: a row that comes late moves no other one. */
static void *run_series(void *context)
{
    struct wm_meter_series *series = context;
    struct wm_meter *meter = series->meter;
    bool is_last = false;

    pthread_mutex_lock(&meter->lock);
    int64_t due_ns = series->snippet->first_ns + series->interval_ns;
    while (!is_last) {
        while (!series->is_ending && wm_clock_monotonic_ns() < due_ns)
            wm_thread_wait(&series->wake, &meter->lock, due_ns);
        is_last = series->is_ending;
        read_row(series);
        pthread_mutex_unlock(&meter->lock);
        write_row(series);

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
    close_host(&series->host);
    free(series->row);
    free(series);
    return status;
}

static int fill(struct wm_meter_series *series, const char *path, struct wm_error *err)
{
    const struct wm_meter *meter = series->meter;

    series->row = malloc(wm_meter_snippet_size(meter));
    if (!series->row)
        return wm_fail_memory(err, "meter");
    errno = wm_thread_condition(&series->wake);
    if (errno != 0)
        return wm_fail_errno(err, "meter");
    series->has_condition = true;
    int status = open_host(&series->host, err);
    if (status < 0)
        return status;
    return wm_meter_file_open(meter, path, true, &series->file, err);
}

/* Under the lock. */
static int check_idle(const struct wm_meter *meter, struct wm_error *err)
{
    return meter->series ? wm_fail(err, WM_EINVAL, "this meter runs already") : WM_OK;
}

/* Under the lock. */
static int begin(struct wm_meter_series *series, struct wm_error *err)
{
    struct wm_meter *meter = series->meter;

    int status = check_idle(meter, err);
    if (status == WM_OK)
        status = wm_meter_begin(meter, NULL, true, &series->snippet, err);
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
        return wm_fail_memory(err, "meter");
    series->meter = meter;
    series->interval_ns = interval_ns;

    /* Before the file is touched. */
    pthread_mutex_lock(&meter->lock);
    status = check_idle(meter, err);
    pthread_mutex_unlock(&meter->lock);
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
