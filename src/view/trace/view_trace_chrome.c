/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_trace_chrome.c - a run in the JSON of Chrome's traces, for Perfetto and
 * chrome://tracing: a counter for each channel, a slice for each call of a region.
 *
 * A time stamp is in microseconds after `baseTimeNanoseconds` since 1970, as in traces of
 * PyTorch. Without one of these that is the midnight before the run, which leaves a double
 * its nanoseconds.
 *
 * Processes and threads have numbers of their own: a thread of another trace, with slices
 * that ours may overlap, is never the same.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base_array.h"
#include "base/text/base_number.h"
#include "record/calls/record_calls.h"
#include "record/record_read.h"
#include "view/chart/view_feed.h"
#include "view/trace/view_trace.h"
#include "wattmeter/version.h"

#define DAY_NS INT64_C(86400000000000)

/* Above all pids, and the numbers of GPUs, that a trace has. */
enum { COUNTERS = 10000000, PROCESSES };

/* Above the place that PyTorch gives its GPUs: watts stand under the kernels. */
#define COUNTERS_PLACE "10000000"
#define REGIONS_PLACE "-1"

struct counter {
    struct wm_chart_feed feed;
    bool has_since; /* of a rate: */
    int64_t since_ns;
    bool has_value;
    int64_t when_ns; /* up to when `value` holds */
    double value;
    struct wm_reading last; /* the latest that is ok */
};

struct chrome {
    struct wm_recording *recording;
    FILE *out;
    int64_t zero_ns; /* CLOCK_MONOTONIC of the time stamp 0 */
    bool has_events;
    const struct wm_channel *channels;
    struct counter *counters; /* of each channel */
    size_t count;
    bool *seen; /* threads that have a name */
    size_t seen_count, seen_room;
    uint64_t spans; /* calls outside of stacks */
    int64_t end_ns;
};

static void begin_event(struct chrome *chrome, const char *phase)
{
    fprintf(chrome->out, "%s\n{\"ph\":\"%s\"", chrome->has_events ? "," : "", phase);
    chrome->has_events = true;
}

static void put_time(const struct chrome *chrome, const char *key, int64_t when_ns)
{
    fprintf(chrome->out, ",\"%s\":", key);
    wm_trace_put_time(chrome->out, when_ns - chrome->zero_ns, WM_TRACE_US);
}

static void put_place(const struct chrome *chrome, int64_t pid, uint64_t tid)
{
    fprintf(chrome->out, ",\"pid\":%" PRId64 ",\"tid\":%" PRIu64, pid, tid);
}

/* How viewers call a process or thread; `name` is no input. */
static void put_name(struct chrome *chrome, const char *what, int64_t pid, uint64_t tid,
                     const char *name)
{
    begin_event(chrome, "M");
    put_place(chrome, pid, tid);
    fprintf(chrome->out, ",\"name\":\"%s_name\",\"args\":{\"name\":\"%s\"}}", what, name);
}

static void put_sort(struct chrome *chrome, int64_t pid, const char *place)
{
    begin_event(chrome, "M");
    put_place(chrome, pid, 1);
    fprintf(chrome->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%s}}",
            place);
}

static int put_counter(struct chrome *chrome, size_t index, int64_t when_ns, double value,
                       struct wm_error *err)
{
    const struct wm_channel *channel = &chrome->channels[index];
    const struct counter *counter = &chrome->counters[index];
    char name[256];

    snprintf(name, sizeof(name), "%.90s %.90s%s (%.20s)", channel->label, channel->metric,
             counter->feed.is_rate ? " rate" : "", counter->feed.unit);
    begin_event(chrome, "C");
    put_place(chrome, COUNTERS, 1);
    put_time(chrome, "ts", when_ns);
    fputs(",\"name\":", chrome->out);
    int status = wm_trace_put_text(chrome->out, name, err);
    fputs(",\"args\":{\"value\":", chrome->out);
    wm_trace_put_number(chrome->out, value);
    fputs("}}", chrome->out);
    return status;
}

/* A viewer holds a value until the next one. So that of a rate stands where its time
 * begins, and one that has not changed is left out. */
static int take_reading(struct chrome *chrome, size_t index,
                        const struct wm_reading *reading, int64_t tick_ns,
                        struct wm_error *err)
{
    struct counter *counter = &chrome->counters[index];
    int64_t when_ns = reading->when_ns ? reading->when_ns : tick_ns;
    enum wm_reading_state state;
    double value;
    int status = WM_OK;

    if (reading->state != WM_READING_OK)
        return WM_OK;
    counter->last = *reading;
    counter->last.when_ns = when_ns;
    bool is_sample = wm_chart_feed_take(&counter->feed, reading, when_ns, &state, &value);
    int64_t from_ns = counter->feed.is_rate ? counter->since_ns : when_ns;
    if (is_sample && state == WM_READING_OK) {
        if (!counter->has_value || value != counter->value)
            status = put_counter(chrome, index, from_ns, value, err);
        counter->has_value = true;
        counter->value = value;
        counter->when_ns = when_ns;
    }
    if (is_sample || !counter->has_since)
        counter->since_ns = when_ns;
    counter->has_since = true;
    return status;
}

/* The rest of a counter, which may be too short for a rate of its own, so that what a
 * viewer sums up is all of it; then the end of the last value. */
static int end_counter(struct chrome *chrome, size_t index, struct wm_error *err)
{
    struct counter *counter = &chrome->counters[index];

    counter->feed.least_s = 0;
    int status = take_reading(chrome, index, &counter->last, 0, err);
    if (status == WM_OK && counter->has_value)
        status = put_counter(chrome, index, counter->when_ns, counter->value, err);
    return status;
}

static int put_counters(struct chrome *chrome, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    put_name(chrome, "process", COUNTERS, 1, "wattmeter");
    put_sort(chrome, COUNTERS, COUNTERS_PLACE);
    while ((status = wm_recording_next(chrome->recording, &tick, err)) > 0) {
        chrome->end_ns = tick.when_ns;
        for (size_t i = 0; i < chrome->count && status >= 0; i++)
            status = take_reading(chrome, i, &tick.readings[i], tick.when_ns, err);
        if (status < 0)
            return status;
    }
    for (size_t i = 0; i < chrome->count && status == WM_OK; i++)
        status = end_counter(chrome, i, err);
    return status;
}

/* 0 is a thread of the kernel to viewers. */
static uint64_t thread_of(const struct wm_call *call)
{
    return (uint64_t)call->thread + 1;
}

static int name_thread(struct chrome *chrome, const struct wm_call *call,
                       struct wm_error *err)
{
    int64_t pid = PROCESSES + (int64_t)call->process;
    char text[64];

    while (chrome->seen_count <= call->thread) {
        if (wm_array_reserve(&chrome->seen, chrome->seen_count, &chrome->seen_room,
                             sizeof(*chrome->seen)) < 0)
            return wm_fail_memory(err, "trace");
        chrome->seen[chrome->seen_count++] = false;
    }
    if (chrome->seen[call->thread])
        return WM_OK;
    chrome->seen[call->thread] = true;
    snprintf(text, sizeof(text), "regions of process %d", (int)call->pid);
    put_name(chrome, "process", pid, 1, text);
    put_sort(chrome, pid, REGIONS_PLACE);
    snprintf(text, sizeof(text), "thread %d", (int)call->tid);
    put_name(chrome, "thread", pid, thread_of(call), text);
    return WM_OK;
}

static int put_call_event(struct chrome *chrome, const struct wm_call *call,
                          const char *phase, struct wm_error *err)
{
    begin_event(chrome, phase);
    put_place(chrome, PROCESSES + (int64_t)call->process, thread_of(call));
    fputs(",\"cat\":\"region\",\"name\":", chrome->out);
    return wm_trace_put_text(chrome->out, call->name, err);
}

/* With what else is known of the call. */
static void end_call_event(const struct chrome *chrome, const struct wm_call *call)
{
    if (call->fold.calls > 0)
        fprintf(chrome->out, ",\"args\":{\"calls\":%" PRIu64 "}", call->fold.calls);
    else if (call->is_open)
        fputs(",\"args\":{\"unfinished\":true}", chrome->out);
    fputs("}", chrome->out);
}

/* Calls that lie in no stack may overlap, as may short ones that were recorded together:
 * each is a pair of events of its own. */
static int put_span(struct chrome *chrome, const struct wm_call *call, int64_t stop_ns,
                    struct wm_error *err)
{
    uint64_t number = ++chrome->spans;

    int status = put_call_event(chrome, call, "b", err);
    put_time(chrome, "ts", call->monotonic_start_ns);
    fprintf(chrome->out, ",\"id\":%" PRIu64, number);
    end_call_event(chrome, call);
    if (status == WM_OK)
        status = put_call_event(chrome, call, "e", err);
    put_time(chrome, "ts", stop_ns);
    fprintf(chrome->out, ",\"id\":%" PRIu64 "}", number);
    return status;
}

static int put_slice(struct chrome *chrome, const struct wm_call *call, int64_t stop_ns,
                     struct wm_error *err)
{
    int status = put_call_event(chrome, call, "X", err);

    put_time(chrome, "ts", call->monotonic_start_ns);
    fputs(",\"dur\":", chrome->out);
    wm_trace_put_time(chrome->out, stop_ns - call->monotonic_start_ns, WM_TRACE_US);
    end_call_event(chrome, call);
    return status;
}

static int put_regions(struct chrome *chrome, struct wm_error *err)
{
    struct wm_calls *calls = NULL;
    struct wm_call call;

    int status = wm_calls_of_recording(chrome->recording, &calls, err);
    if (status == WM_ENODEV)
        return WM_OK;
    while (status >= 0 && (status = wm_calls_next(calls, &call, err)) > 0) {
        bool is_free = wm_calls_path(calls, call.path)->is_free || call.fold.calls > 0;
        int64_t stop_ns = call.monotonic_stop_ns == WM_CALL_NEVER_STOPS
                              ? chrome->end_ns
                              : call.monotonic_stop_ns;
        if (stop_ns < call.monotonic_start_ns)
            stop_ns = call.monotonic_start_ns;
        status = name_thread(chrome, &call, err);
        if (status == WM_OK)
            status = is_free ? put_span(chrome, &call, stop_ns, err)
                             : put_slice(chrome, &call, stop_ns, err);
    }
    wm_calls_close(calls);
    return status;
}

static int put_all(struct chrome *chrome, struct wm_error *err)
{
    double cores = wm_recording_run(chrome->recording)->core_count;

    chrome->counters = calloc(chrome->count + 1, sizeof(*chrome->counters));
    if (!chrome->counters)
        return wm_fail_memory(err, "trace");
    for (size_t i = 0; i < chrome->count; i++)
        wm_chart_feed_init(&chrome->counters[i].feed, &chrome->channels[i], cores);
    int status = put_counters(chrome, err);
    return status < 0 ? status : put_regions(chrome, err);
}

static int write_alone(struct chrome *chrome, int64_t base_ns, struct wm_error *err)
{
    fprintf(chrome->out,
            "{\"otherData\":{\"exporter\":\"wattmeter " WM_VERSION "\"},\n"
            "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":%" PRId64 ",\n"
            "\"traceEvents\":[",
            base_ns);
    int status = put_all(chrome, err);
    fputs("\n]}\n", chrome->out);
    return status;
}

/* Before its events. */
static int write_with(struct chrome *chrome, struct wm_torch *torch, struct wm_error *err)
{
    int status = wm_torch_copy_head(torch, chrome->out, err);

    if (status == WM_OK)
        status = put_all(chrome, err);
    if (status == WM_OK && chrome->has_events && torch->has_events)
        fputs(",", chrome->out);
    return status < 0 ? status : wm_torch_copy_rest(torch, chrome->out, err);
}

static int write_chrome(struct wm_recording *recording,
                        const struct wm_trace_request *request, FILE *out,
                        struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    struct chrome chrome = { .recording = recording, .out = out };
    int64_t base_ns = run->anchor_unix_ns - run->anchor_unix_ns % DAY_NS;
    struct wm_torch torch = { 0 };
    int status = WM_OK;

    if (request->with)
        status = wm_torch_open(&torch, request->with, err);
    if (request->with && status == WM_OK)
        status = wm_torch_check(&torch, recording, err);
    if (request->with)
        base_ns = torch.base_ns;
    chrome.channels = wm_recording_channels(recording, &chrome.count);
    chrome.zero_ns = run->anchor_ns - (run->anchor_unix_ns - base_ns);
    if (status == WM_OK)
        status = request->with ? write_with(&chrome, &torch, err)
                               : write_alone(&chrome, base_ns, err);
    wm_torch_close(&torch);
    free(chrome.counters);
    free(chrome.seen);
    return status;
}

const struct wm_trace_ops wm_trace_chrome = { .write = write_chrome };
