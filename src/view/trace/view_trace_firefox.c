/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_trace_firefox.c - a run for the Firefox Profiler, in version 48 of its processed
 * format, which later ones upgrade: a power track for each device, a marker for each call.
 *
 * A sample of a power track is the energy since the one before in picowatt-hours, so that
 * the viewer shows the watt-hours of what is selected.
 *
 * The format has a list for each column. They grow at the same time, each in a temporary
 * file, so that a long run is read once and in bounded memory.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_names.h"
#include "record/calls/record_calls.h"
#include "record/record_read.h"
#include "view/trace/view_trace.h"
#include "wattmeter/version.h"

#define PICOWATT_HOURS_PER_JOULE (1e12 / 3600)

enum { COPY_SIZE = 65536 };

/* The energy of a device. */
struct track {
    const struct wm_channel *channel;
    size_t place; /* of the reading in a tick */
    FILE *times, *counts;
    uint64_t length;
    struct wm_reading last; /* that the next sample counts from */
};

/* The calls of regions. */
struct markers {
    struct wm_names names;
    FILE *indices, *starts, *ends, *data;
    uint64_t length;
};

struct firefox {
    struct wm_recording *recording;
    FILE *out;
    int64_t zero_ns, end_ns; /* CLOCK_MONOTONIC */
    struct track *tracks;
    size_t track_count;
    struct markers markers;
};

static void put_ms(const struct firefox *firefox, FILE *out, int64_t when_ns)
{
    wm_trace_put_time(out, when_ns - firefox->zero_ns, WM_TRACE_MS);
}

static int open_columns(FILE **columns[], size_t count, struct wm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        *columns[i] = tmpfile();
        if (!*columns[i])
            return wm_fail(err, WM_EIO, "a temporary file for the trace cannot be made");
    }
    return WM_OK;
}

/* A list of what the column has. */
static int put_column(FILE *out, const char *key, FILE *column, struct wm_error *err)
{
    char buffer[COPY_SIZE];
    size_t count;

    fprintf(out, "\"%s\":[", key);
    bool is_whole = !ferror(column) && fflush(column) == 0;
    rewind(column);
    while (is_whole && (count = fread(buffer, 1, sizeof(buffer), column)) > 0)
        fwrite(buffer, 1, count, out);
    fputs("],\n", out);
    return is_whole && !ferror(column)
               ? WM_OK
               : wm_fail(err, WM_EIO, "a temporary file for the trace cannot be written");
}

static void put_same(FILE *out, const char *key, const char *value, uint64_t count)
{
    fprintf(out, "\"%s\":[", key);
    for (uint64_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", value);
    fputs("],\n", out);
}

static bool is_energy(const struct wm_channel *channel)
{
    return channel->kind == WM_COUNTER && strcmp(channel->metric, "energy") == 0;
}

static bool has_energy(const struct wm_channel *channels, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (is_energy(&channels[i]) && strcmp(channels[i].label, label) == 0)
            return true;
    return false;
}

/* A counter is exact, so power is used for devices without one. */
static int find_tracks(struct firefox *firefox, struct wm_error *err)
{
    size_t count;
    const struct wm_channel *channels = wm_recording_channels(firefox->recording, &count);
    int status = WM_OK;

    firefox->tracks = calloc(count + 1, sizeof(*firefox->tracks));
    if (!firefox->tracks)
        return wm_fail_memory(err, "trace");
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        bool is_power =
            strcmp(channels[i].metric, "power") == 0 && channels[i].kind == WM_GAUGE;
        if (!is_energy(&channels[i]) &&
            (!is_power || has_energy(channels, count, channels[i].label)))
            continue;
        struct track *track = &firefox->tracks[firefox->track_count++];
        *track = (struct track) { .channel = &channels[i], .place = i };
        status = open_columns((FILE **[]) { &track->times, &track->counts }, 2, err);
    }
    return status;
}

static void take_reading(const struct firefox *firefox, struct track *track,
                         const struct wm_reading *reading, int64_t tick_ns)
{
    struct wm_reading now = *reading, last = track->last;
    double joules = 0;

    if (reading->state == WM_READING_JUMPED)
        track->last = (struct wm_reading) { 0 };
    if (reading->state != WM_READING_OK)
        return;
    now.when_ns = reading->when_ns ? reading->when_ns : tick_ns;
    if (last.state == WM_READING_OK && now.when_ns <= last.when_ns)
        return;
    if (last.state == WM_READING_OK)
        joules = is_energy(track->channel) ? now.value - last.value
                                           : (now.value + last.value) / 2 *
                                                 (double)(now.when_ns - last.when_ns) / 1e9;
    const char *comma = track->length++ > 0 ? "," : "";
    fputs(comma, track->times);
    put_ms(firefox, track->times, now.when_ns);
    fputs(comma, track->counts);
    wm_trace_put_number(track->counts, round(fmax(joules, 0) * PICOWATT_HOURS_PER_JOULE));
    track->last = now;
}

static int read_ticks(struct firefox *firefox, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(firefox->recording, &tick, err)) > 0) {
        firefox->end_ns = tick.when_ns;
        for (size_t i = 0; i < firefox->track_count; i++) {
            struct track *track = &firefox->tracks[i];
            take_reading(firefox, track, &tick.readings[track->place], tick.when_ns);
        }
    }
    return status;
}

static int add_marker(struct firefox *firefox, const struct wm_call *call,
                      struct wm_error *err)
{
    struct markers *markers = &firefox->markers;
    int64_t stop_ns = call->monotonic_stop_ns == WM_CALL_NEVER_STOPS
                          ? firefox->end_ns
                          : call->monotonic_stop_ns;
    uint32_t name = wm_names_add(&markers->names, call->name);

    if (name == WM_MAP_NONE)
        return wm_fail_memory(err, "trace");
    if (stop_ns < call->monotonic_start_ns)
        stop_ns = call->monotonic_start_ns;
    const char *comma = markers->length++ > 0 ? "," : "";
    fprintf(markers->indices, "%s%" PRIu32, comma, name);
    fputs(comma, markers->starts);
    put_ms(firefox, markers->starts, call->monotonic_start_ns);
    fputs(comma, markers->ends);
    put_ms(firefox, markers->ends, stop_ns);
    fprintf(markers->data,
            "%s{\"type\":\"Region\",\"pid\":%d,\"tid\":%d,\"calls\":%" PRIu64 "%s}", comma,
            (int)call->pid, (int)call->tid, call->fold.calls > 0 ? call->fold.calls : 1,
            call->is_open ? ",\"unfinished\":\"yes\"" : "");
    return WM_OK;
}

static int read_calls(struct firefox *firefox, struct wm_error *err)
{
    struct markers *markers = &firefox->markers;
    struct wm_calls *calls = NULL;
    struct wm_call call;

    int status = open_columns(
        (FILE **[]) { &markers->indices, &markers->starts, &markers->ends, &markers->data },
        4, err);
    if (status == WM_OK)
        status = wm_calls_of_recording(firefox->recording, &calls, err);
    if (status == WM_ENODEV)
        return WM_OK;
    while (status >= 0 && (status = wm_calls_next(calls, &call, err)) > 0)
        status = add_marker(firefox, &call, err);
    wm_calls_close(calls);
    return status;
}

static int put_meta(const struct firefox *firefox, int64_t start_ms,
                    double carbon_g_per_kwh, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(firefox->recording);
    FILE *out = firefox->out;
    char *command = wm_run_command_line(run);

    if (!command)
        return wm_fail_memory(err, "trace");

    fprintf(out,
            "{\"meta\":{\"version\":27,\"preprocessedProfileVersion\":48,"
            "\"interval\":%.0f,\"startTime\":%" PRId64 ",\"processType\":0,"
            "\"stackwalk\":0,\"symbolicationNotSupported\":true,\"product\":",
            fmax((double)run->interval_ns / 1e6, 1), start_ms);
    int status = wm_trace_put_text(out, command[0] ? command : "wattmeter", err);
    free(command);
    if (carbon_g_per_kwh > 0) {
        fputs(",\"gramsOfCO2ePerKWh\":", out);
        wm_trace_put_number(out, carbon_g_per_kwh);
    }
    fprintf(
        out,
        ",\n\"abi\":\"\",\"misc\":\"\",\"oscpu\":\"\",\"platform\":\"\",\"toolkit\":\"\","
        "\"appBuildID\":\"\",\"sourceURL\":\"\",\"physicalCPUs\":0,\"logicalCPUs\":%d,"
        "\"importedFrom\":\"wattmeter " WM_VERSION "\",\n"
        "\"extensions\":{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0},\n"
        "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\","
        "\"subcategories\":[\"Other\"]}],\n"
        "\"markerSchema\":[{\"name\":\"Region\",\"display\":[\"marker-chart\","
        "\"marker-table\",\"timeline-overview\"],\"data\":["
        "{\"key\":\"pid\",\"label\":\"Process\",\"format\":\"integer\"},"
        "{\"key\":\"tid\",\"label\":\"Thread\",\"format\":\"integer\"},"
        "{\"key\":\"calls\",\"label\":\"Calls\",\"format\":\"integer\"},"
        "{\"key\":\"unfinished\",\"label\":\"Never ended\",\"format\":\"string\"}]}]},\n"
        "\"libs\":[],\"pages\":[],\n",
        run->core_count);
    return status;
}

static int put_markers(struct firefox *firefox, struct wm_error *err)
{
    struct markers *markers = &firefox->markers;
    FILE *out = firefox->out;

    fputs("\"markers\":{\n", out);
    int status = put_column(out, "name", markers->indices, err);
    if (status == WM_OK)
        status = put_column(out, "startTime", markers->starts, err);
    if (status == WM_OK)
        status = put_column(out, "endTime", markers->ends, err);
    if (status == WM_OK)
        status = put_column(out, "data", markers->data, err);
    put_same(out, "phase", "1", markers->length); /* an interval */
    put_same(out, "category", "0", markers->length);
    fprintf(out, "\"length\":%" PRIu64 "},\n\"stringArray\":[", markers->length);
    for (uint32_t i = 0; i < markers->names.count && status == WM_OK; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        status = wm_trace_put_text(out, markers->names.texts[i], err);
    }
    fputs("]", out);
    return status;
}

/* The one thread, which has the run's first and last moment as samples without a stack:
 * without any the viewer shows nothing. */
static int put_thread(struct firefox *firefox, struct wm_error *err)
{
    FILE *out = firefox->out;

    fputs(
        "\"threads\":[{\"name\":\"GeckoMain\",\"isMainThread\":true,\"pid\":\"0\",\"tid\":"
        "0,"
        "\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
        "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
        "\"processName\":\"Regions\",\n"
        "\"samples\":{\"weightType\":\"samples\",\"weight\":null,\"eventDelay\":[0,0],"
        "\"stack\":[null,null],\"time\":[0,",
        out);
    put_ms(firefox, out, firefox->end_ns);
    fputs(
        "],\"length\":2},\n"
        "\"stackTable\":{\"frame\":[],\"prefix\":[],\"category\":[],\"subcategory\":[],"
        "\"length\":0},\n"
        "\"frameTable\":{\"address\":[],\"inlineDepth\":[],\"category\":[],"
        "\"subcategory\":[],\"func\":[],\"nativeSymbol\":[],\"innerWindowID\":[],"
        "\"implementation\":[],\"line\":[],\"column\":[],\"length\":0},\n"
        "\"funcTable\":{\"isJS\":[],\"relevantForJS\":[],\"name\":[],\"resource\":[],"
        "\"fileName\":[],\"lineNumber\":[],\"columnNumber\":[],\"length\":0},\n"
        "\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},\n"
        "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
        "\"functionSize\":[],\"length\":0},\n",
        out);
    int status = put_markers(firefox, err);
    fputs("}],\n", out);
    return status;
}

static int put_track(const struct track *track, FILE *out, struct wm_error *err)
{
    fputs("{\"category\":\"power\",\"pid\":\"0\",\"mainThreadIndex\":0,\"name\":", out);
    int status = wm_trace_put_text(out, track->channel->label, err);
    fputs(",\"description\":", out);
    if (status == WM_OK)
        status = wm_trace_put_text(out, track->channel->label, err);
    fputs(",\"samples\":{\n", out);
    if (status == WM_OK)
        status = put_column(out, "time", track->times, err);
    if (status == WM_OK)
        status = put_column(out, "count", track->counts, err);
    fprintf(out, "\"length\":%" PRIu64 "}}", track->length);
    return status;
}

/* A device that never answered has no track. */
static int put_tracks(const struct firefox *firefox, struct wm_error *err)
{
    const char *comma = "";
    int status = WM_OK;

    fputs("\"counters\":[", firefox->out);
    for (size_t i = 0; i < firefox->track_count && status == WM_OK; i++) {
        if (firefox->tracks[i].length == 0)
            continue;
        fputs(comma, firefox->out);
        status = put_track(&firefox->tracks[i], firefox->out, err);
        comma = ",\n";
    }
    fputs("]}\n", firefox->out);
    return status;
}

static void close_column(FILE *column)
{
    if (column)
        fclose(column);
}

static void release(struct firefox *firefox)
{
    for (size_t i = 0; i < firefox->track_count; i++) {
        close_column(firefox->tracks[i].times);
        close_column(firefox->tracks[i].counts);
    }
    close_column(firefox->markers.indices);
    close_column(firefox->markers.starts);
    close_column(firefox->markers.ends);
    close_column(firefox->markers.data);
    wm_names_release(&firefox->markers.names);
    free(firefox->tracks);
}

static int write_firefox(struct wm_recording *recording,
                         const struct wm_trace_request *request, FILE *out,
                         struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    int64_t start_ms = run->anchor_unix_ns / 1000000;
    struct firefox firefox = {
        .recording = recording,
        .out = out,
        .zero_ns = run->anchor_ns - run->anchor_unix_ns % 1000000,
        .end_ns = run->anchor_ns,
    };

    int status = find_tracks(&firefox, err);
    if (status == WM_OK)
        status = read_ticks(&firefox, err);
    if (status == WM_OK)
        status = read_calls(&firefox, err);
    if (status == WM_OK)
        status = put_meta(&firefox, start_ms, request->carbon_g_per_kwh, err);
    if (status == WM_OK)
        status = put_thread(&firefox, err);
    if (status == WM_OK)
        status = put_tracks(&firefox, err);
    release(&firefox);
    return status;
}

const struct wm_trace_ops wm_trace_firefox = { .write = write_firefox };
