/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_read.c - recordings as the lines and bands of a figure, each read once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/calls/record_calls.h"
#include "view/plot/view_plot.h"

#define FINEST_NS WM_NS_PER_MS

/* A film begins when all have values that have some so soon. */
#define SOON_NS (2 * WM_NS_PER_S)

/* Regions with a colour of their own, and how short one may be, of the whole time. */
enum { NAMES_MAX = 32, BANDS_PER_NAME = 2000, BORDERS_PER_NAME = 200 };

/* The part that is drawn, from the first sample of a recording on. */
struct window {
    int64_t from_ns, to_ns;
};

static bool is_same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

void wm_plot_input_name(const struct wm_plot_input *input, char ret_name[WM_PLOT_NAME_SIZE])
{
    static const char suffix[] = ".sqlite";
    const char *file = input->path + wm_file_folder_length(input->path);
    size_t length = strlen(file), cut = strlen(suffix);

    if (length > cut && strcmp(file + length - cut, suffix) == 0)
        length -= cut;
    if (input->name)
        snprintf(ret_name, WM_PLOT_NAME_SIZE, "%s", input->name);
    else
        snprintf(ret_name, WM_PLOT_NAME_SIZE, "%.*s", (int)length, file);
}

static int copy_channel(const struct wm_channel *channel, struct wm_channel *ret_copy,
                        struct wm_error *err)
{
    struct wm_channel copy = *channel;

    copy.source = copy.device = copy.model = copy.sensor.text = NULL;
    copy.label = strdup(channel->label);
    copy.metric = strdup(channel->metric);
    copy.unit = strdup(channel->unit);
    *ret_copy = copy;
    return copy.label && copy.metric && copy.unit ? WM_OK : wm_fail_memory(err, "figure");
}

const char *wm_plot_origin(enum wm_origin origin)
{
    return origin == WM_ESTIMATED   ? " (estimated)"
           : origin == WM_SIMULATED ? " (simulated)"
                                    : "";
}

/* Adds a line of a channel, also one that is not drawn: it is what can be asked for. */
static int add_line(struct wm_plot_data *data, size_t input, size_t place,
                    const struct wm_channel *channel, const char *device,
                    const char *column, const struct wm_chart_feed *feed,
                    struct wm_error *err)
{
    if (wm_array_reserve(&data->series, data->series_count, &data->series_room,
                         sizeof(*data->series)) < 0)
        return wm_fail_memory(err, "figure");
    struct wm_plot_series *series = &data->series[data->series_count];
    *series = (struct wm_plot_series) {
        .input = input, .place = place, .first_ns = INT64_MAX, .feed = *feed
    };
    int status = copy_channel(channel, &series->channel, err);
    data->series_count++;
    if (status < 0)
        return status;
    if (feed->unit == channel->unit) /* which ends with the recording */
        series->feed.unit = series->channel.unit;
    snprintf(series->column, sizeof(series->column), "%s", column);
    snprintf(series->device_name, sizeof(series->device_name), "%s", device);
    series->is_chosen = wm_plot_is_chosen(data, series);
    snprintf(series->name, sizeof(series->name), "%.60s%s", device,
             wm_plot_origin(series->channel.origin));
    return series->is_chosen
               ? wm_chart_line_init(&series->line, data->fine_columns, FINEST_NS, err)
               : WM_OK;
}

/* A counter has two lines: its rate in a panel, and its total since the first sample. */
static int add_series(struct wm_plot_data *data, size_t input,
                      const struct wm_recording *recording, struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    size_t count;
    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    struct wm_columns columns = { 0 };
    struct wm_chart_feed feed;

    int status = wm_columns_plan(channels, count, NULL, 0, &columns, err);
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        const char *device = wm_chart_device(&channels[i], run);
        wm_chart_feed_init(&feed, &channels[i], run->core_count);
        if (!feed.is_rate || feed.panel)
            status = add_line(data, input, i, &channels[i], device, columns.values[i],
                              &feed, err);
        if (feed.is_rate && status == WM_OK) {
            wm_chart_feed_init_total(&feed, &channels[i]);
            status = add_line(data, input, i, &channels[i], device, columns.values[i],
                              &feed, err);
        }
    }
    wm_columns_release(&columns);
    return status;
}

/* What the program reported of itself. Some recordings know it past their last tick. */
static int add_metrics(struct wm_plot_data *data, size_t input,
                       const struct wm_recording *recording, int64_t first_ns,
                       const struct window *window, struct wm_error *err)
{
    const char *name;
    int status = WM_OK;

    for (size_t i = 0; status == WM_OK && (name = wm_recording_metric(recording, i)); i++) {
        const struct wm_channel channel = {
            .label = "program", .metric = name, .unit = "", .device_kind = WM_DEVICE_OTHER
        };
        const struct wm_chart_feed feed = { .unit = "" };
        int64_t when_ns;
        double value;
        status = add_line(data, input, SIZE_MAX, &channel, channel.label, name, &feed, err);
        struct wm_plot_series *series = &data->series[data->series_count - 1];
        for (size_t k = 0; status == WM_OK && series->is_chosen &&
                           wm_recording_metric_value(recording, i, k, &when_ns, &value) > 0;
             k++) {
            when_ns -= first_ns;
            if (when_ns < window->from_ns || when_ns > window->to_ns)
                continue;
            wm_chart_line_add(&series->line, when_ns, WM_READING_OK, value);
            data->to_ns = when_ns > data->to_ns ? when_ns : data->to_ns;
        }
    }
    return status;
}

static void add_sample(struct wm_plot_series *series, const struct wm_reading *reading,
                       int64_t when_ns, bool is_inside)
{
    enum wm_reading_state state;
    double value;

    if (!wm_chart_feed_take(&series->feed, reading, when_ns, &state, &value) || !is_inside)
        return;
    wm_chart_line_add(&series->line, when_ns, state, value);
    if (state == WM_READING_OK && when_ns < series->first_ns)
        series->first_ns = when_ns;
}

/* "12.5" or a time of day, since the first sample. */
static int parse_time(const char *option, const char *text, const struct wm_run *run,
                      int64_t first_ns, int64_t *ret_ns, struct wm_error *err)
{
    double seconds;
    int64_t unix_ns;

    if (!text)
        return WM_OK;
    if (wm_number_parse(text, strlen(text), &seconds) && seconds >= 0 && seconds < 4e9) {
        *ret_ns = (int64_t)(seconds * 1e9);
        return WM_OK;
    }
    if (wm_localtime_parse_zoned(text, strlen(text), 0, &unix_ns)) {
        *ret_ns = unix_ns - run->anchor_unix_ns + run->anchor_ns - first_ns;
        return WM_OK;
    }
    return wm_fail(err, WM_EINVAL,
                   "%s: '%.60s' is neither a number of seconds since the start nor a time "
                   "as 2026-11-21T08:48:21Z",
                   option, text);
}

static int find_window(struct wm_plot_data *data, const struct wm_run *run,
                       int64_t first_ns, struct window *window, struct wm_error *err)
{
    const struct wm_plot_request *request = data->request;

    int status = parse_time("--from", request->from, run, first_ns, &window->from_ns, err);
    if (status == WM_OK)
        status = parse_time("--to", request->to, run, first_ns, &window->to_ns, err);
    if (status == WM_OK && window->from_ns >= window->to_ns)
        return wm_fail(err, WM_EINVAL, "--from: is not before --to");
    if (request->from && window->from_ns < data->axis_from_ns)
        data->axis_from_ns = window->from_ns;
    if (request->to && window->to_ns > data->axis_to_ns)
        data->axis_to_ns = window->to_ns;
    return status;
}

static void add_tick(struct wm_plot_data *data, size_t first_series,
                     const struct wm_tick *tick, int64_t first_ns,
                     const struct window *window)
{
    size_t input = data->series[first_series].input;
    int64_t now_ns = tick->when_ns - first_ns, last_ns = now_ns;
    bool is_inside = now_ns >= window->from_ns && now_ns <= window->to_ns;

    for (size_t i = first_series; i < data->series_count; i++) {
        struct wm_plot_series *series = &data->series[i];
        if (!series->is_chosen || series->place >= tick->count)
            continue;
        const struct wm_reading *reading = &tick->readings[series->place];
        bool has_own = reading->state == WM_READING_OK && reading->when_ns > first_ns;
        int64_t own_ns = has_own ? reading->when_ns - first_ns : now_ns;
        add_sample(series, reading, own_ns, is_inside);
        last_ns = own_ns > last_ns ? own_ns : last_ns;
    }
    data->last_ns = last_ns > data->last_ns ? last_ns : data->last_ns;
    if (!is_inside)
        return;
    struct wm_chart_line *moments = &data->moments[input];
    wm_chart_line_add(moments, now_ns, WM_READING_OK, (double)now_ns / 1e9);
    wm_chart_line_add(moments, last_ns, WM_READING_OK, (double)last_ns / 1e9);
    data->from_ns = now_ns < data->from_ns ? now_ns : data->from_ns;
    data->to_ns = last_ns > data->to_ns ? last_ns : data->to_ns;
}

static int read_ticks(struct wm_plot_data *data, size_t first_series,
                      struct wm_recording *recording, struct window *window,
                      int64_t *ret_first_ns, struct wm_error *err)
{
    struct wm_tick tick;
    bool is_first = true;
    int status;

    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        if (is_first) {
            *ret_first_ns = tick.when_ns;
            status =
                find_window(data, wm_recording_run(recording), tick.when_ns, window, err);
            if (status < 0)
                return status;
            is_first = false;
        }
        add_tick(data, first_series, &tick, *ret_first_ns, window);
    }
    if (status == 0 && is_first)
        return wm_fail(err, WM_ENODEV, "%s: has no sample to draw",
                       wm_text_path(wm_recording_path(recording)));
    return status;
}

static size_t name_number(struct wm_plot_data *data, const char *name)
{
    for (size_t i = 0; i < data->name_count; i++) {
        if (is_same(data->names[i], name))
            return i;
    }
    bool is_last = data->name_count == NAMES_MAX - 1;
    if (data->name_count == NAMES_MAX)
        return NAMES_MAX - 1;
    char *copy = strdup(is_last ? "(further regions)" : name);
    if (!copy || wm_array_reserve(&data->names, data->name_count, &data->name_room,
                                  sizeof(*data->names)) < 0) {
        free(copy);
        return SIZE_MAX;
    }
    data->names[data->name_count] = copy;
    return data->name_count++;
}

/* Calls that overlap are one band, and short ones so soon after each other that the figure
 * cannot show the border. */
static int add_band(struct wm_plot_data *data, size_t *last_of, size_t number,
                    int64_t from_ns, int64_t to_ns)
{
    int64_t apart_ns = (data->to_ns - data->from_ns) / BANDS_PER_NAME;
    int64_t short_ns = (data->to_ns - data->from_ns) / BORDERS_PER_NAME;
    struct wm_plot_band *last = last_of[number] ? &data->bands[last_of[number] - 1] : NULL;
    bool is_same = last && (from_ns < last->to_ns || (from_ns - last->to_ns <= apart_ns &&
                                                      to_ns - from_ns <= short_ns));
    if (is_same) {
        last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
        return WM_OK;
    }
    if (wm_array_reserve(&data->bands, data->band_count, &data->band_room,
                         sizeof(*data->bands)) < 0)
        return WM_ENOMEM;
    data->bands[data->band_count++] = (struct wm_plot_band) { number, from_ns, to_ns };
    last_of[number] = data->band_count;
    return WM_OK;
}

/* The outermost regions of the part that is drawn. Their numbers are those in the whole
 * recording, so that each has one colour in all parts. */
static int read_bands(struct wm_plot_data *data, struct wm_recording *recording,
                      int64_t first_ns, struct wm_error *err)
{
    size_t last_of[NAMES_MAX] = { 0 };
    struct wm_calls *calls;
    struct wm_call call;

    int status = wm_calls_of_recording(recording, &calls, err);
    if (status == WM_ENODEV)
        return WM_OK;
    if (status < 0)
        return status;
    while ((status = wm_calls_next(calls, &call, err)) > 0) {
        int64_t from_ns = call.monotonic_start_ns - first_ns;
        int64_t to_ns = call.is_open ? data->to_ns : call.monotonic_stop_ns - first_ns;
        from_ns = from_ns > data->from_ns ? from_ns : data->from_ns;
        to_ns = to_ns < data->to_ns ? to_ns : data->to_ns;
        if (wm_calls_path(calls, call.path)->depth > 0)
            continue;
        size_t number = name_number(data, call.name);
        if (number == SIZE_MAX ||
            (from_ns < to_ns && add_band(data, last_of, number, from_ns, to_ns) < 0)) {
            status = wm_fail_memory(err, "figure");
            break;
        }
    }
    wm_calls_close(calls);
    return status < 0 ? status : WM_OK;
}

/* Why a line has no values, or no more of them, as the recording says, else its last state.
 */
static void explain(struct wm_plot_data *data, size_t first_series,
                    const struct wm_recording *recording)
{
    const struct wm_gap *gaps;
    size_t gap_count = wm_recording_gaps(recording, &gaps);

    for (size_t i = first_series; i < data->series_count; i++) {
        struct wm_plot_series *series = &data->series[i];
        double least, greatest;
        if (!series->is_chosen)
            continue;
        series->has_values =
            wm_chart_line_range(&series->line, INT64_MIN, INT64_MAX, &least, &greatest);
        if (!series->has_values)
            snprintf(series->why, sizeof(series->why), "no value");
        for (size_t k = 0; k < gap_count; k++) {
            if (gaps[k].channel == series->place)
                snprintf(series->why, sizeof(series->why), "%s",
                         gaps[k].why[0] ? gaps[k].why
                                        : wm_word(WM_WORDS_STATE, (int)gaps[k].state));
        }
    }
}

/* Of a device that has both, power is drawn and not the rate of its energy, unless there is
 * no value of it. */
static void choose_power(struct wm_plot_data *data, size_t first_series)
{
    for (size_t i = first_series; i < data->series_count; i++) {
        struct wm_plot_series *energy = &data->series[i];
        if (!energy->is_chosen || !energy->feed.is_rate ||
            !is_same(energy->channel.metric, "energy"))
            continue;
        for (size_t k = first_series; k < data->series_count; k++) {
            struct wm_plot_series *power = &data->series[k];
            if (!power->is_chosen || !is_same(power->channel.metric, "power") ||
                !is_same(power->channel.label, energy->channel.label))
                continue;
            if (power->has_values || !energy->has_values)
                energy->is_chosen = false;
            else
                power->is_chosen = false;
        }
    }
}

/* Those that people look at first get the colours that are told apart best. */
static const enum wm_device_kind colour_order[] = {
    WM_DEVICE_GPU,  WM_DEVICE_CPU,      WM_DEVICE_DRAM,     WM_DEVICE_HOST,
    WM_DEVICE_TREE, WM_DEVICE_PLATFORM, WM_DEVICE_CPU_PART, WM_DEVICE_OTHER,
};

/* A device of one recording, or of the same name in several; or all that are folded. */
static bool is_of_device(const struct wm_plot_series *a, const struct wm_plot_series *b)
{
    bool is_same_kind = a->channel.device_kind == b->channel.device_kind;

    if (a->is_folded || b->is_folded)
        return a->is_folded && b->is_folded && is_same_kind;
    return is_same(a->channel.label, b->channel.label);
}

/* A device has the same colour in all panels; of several recordings it has the same dash,
 * and each recording has a colour. */
void wm_plot_set_colours(struct wm_plot_data *data)
{
    size_t next = 0;

    for (size_t k = 0; k < sizeof(colour_order) / sizeof(colour_order[0]); k++) {
        for (size_t i = 0; i < data->series_count; i++) {
            struct wm_plot_series *own = &data->series[i];
            if (!own->is_chosen || own->channel.device_kind != colour_order[k] ||
                !own->has_values)
                continue;
            size_t first = 0;
            while (!data->series[first].is_chosen || !data->series[first].has_values ||
                   !is_of_device(&data->series[first], own))
                first++;
            own->device = first < i ? data->series[first].device : next++;
            bool is_one = data->request->input_count == 1;
            own->colour = is_one ? own->device : own->input;
            own->dash = is_one ? 0 : own->device;
        }
    }
    data->device_count = next;
}

static void set_title(struct wm_plot_data *data, const struct wm_run *run)
{
    const char *title = data->request->title;
    char *at = data->title;
    size_t room = sizeof(data->title);

    if (title || data->request->input_count > 1) {
        snprintf(data->title, sizeof(data->title), "%s", title ? title : "");
    } else {
        for (size_t i = 0; i < run->command_count && room > 1; i++) {
            int length = snprintf(at, room, "%s%s", i > 0 ? " " : "", run->command[i]);
            size_t used = (size_t)length < room ? (size_t)length : room - 1;
            at += used;
            room -= used;
        }
    }
}

static int read_input(struct wm_plot_data *data, size_t index, struct wm_error *err)
{
    const struct wm_plot_request *request = data->request;
    const struct wm_plot_input *input = &request->inputs[index];
    size_t first_series = data->series_count;
    struct wm_recording *recording;
    struct window window = { INT64_MIN, INT64_MAX };
    int64_t first_ns = 0;

    int status = wm_recording_open(input->path, input->run, &recording, err);
    if (status < 0)
        return status;
    if (request->stop)
        wm_recording_stop_on(recording, request->stop);
    set_title(data, wm_recording_run(recording));
    status = add_series(data, index, recording, err);
    if (status == WM_OK)
        status =
            wm_chart_line_init(&data->moments[index], data->fine_columns, FINEST_NS, err);
    if (status == WM_OK)
        status = read_ticks(data, first_series, recording, &window, &first_ns, err);
    if (status == WM_OK)
        status = add_metrics(data, index, recording, first_ns, &window, err);
    if (status == WM_OK && request->input_count == 1 && !request->without_regions)
        status = read_bands(data, recording, first_ns, err);
    if (status == WM_OK) {
        explain(data, first_series, recording);
        choose_power(data, first_series);
    }
    wm_recording_close(recording);
    return status;
}

/* Rates have no value at the first tick, and some drivers are late. */
static void find_complete(struct wm_plot_data *data)
{
    data->complete_ns = data->from_ns;
    for (size_t i = 0; i < data->series_count; i++) {
        int64_t first_ns = data->series[i].first_ns;
        if (first_ns > data->complete_ns && first_ns <= data->from_ns + SOON_NS)
            data->complete_ns = first_ns;
    }
}

static int check_values(const struct wm_plot_data *data, struct wm_error *err)
{
    const struct wm_plot_series *missing = NULL;

    for (size_t i = 0; i < data->series_count; i++) {
        const struct wm_plot_series *series = &data->series[i];
        if (series->is_chosen && series->has_values)
            return WM_OK;
        if (series->is_chosen && !missing)
            missing = series;
    }
    const char *path = wm_text_path(data->request->inputs[0].path);
    if (data->from_ns > data->to_ns)
        return wm_fail(
            err, WM_ENODEV,
            "%s: there is no sample from --from to --to; the last one is at %.2f s", path,
            (double)data->last_ns / 1e9);
    return wm_fail(err, WM_ENODEV, "%s: there is no value to draw%s%s%s%s", path,
                   missing ? "; of " : "", missing ? missing->column : "",
                   missing ? ": " : "", missing ? missing->why : "");
}

int wm_plot_read(const struct wm_plot_request *request, size_t fine_columns,
                 struct wm_plot_data *ret_data, struct wm_error *err)
{
    struct wm_plot_data data = { .request = request,
                                 .fine_columns = fine_columns,
                                 .from_ns = INT64_MAX,
                                 .to_ns = INT64_MIN,
                                 .axis_from_ns = INT64_MAX,
                                 .axis_to_ns = INT64_MIN };

    data.moments = calloc(request->input_count, sizeof(*data.moments));
    int status = data.moments ? WM_OK : wm_fail_memory(err, "figure");
    for (size_t i = 0; i < request->input_count && status == WM_OK; i++)
        status = read_input(&data, i, err);
    if (status == WM_OK)
        status = wm_plot_check_words(&data, err);
    if (status == WM_OK)
        status = check_values(&data, err);
    if (status == WM_OK)
        find_complete(&data);
    if (status < 0)
        wm_plot_data_release(&data);
    else
        *ret_data = data;
    return status;
}

void wm_plot_data_release(struct wm_plot_data *data)
{
    for (size_t i = 0; i < data->series_count; i++) {
        struct wm_plot_series *series = &data->series[i];
        free((char *)series->channel.label);
        free((char *)series->channel.metric);
        free((char *)series->channel.unit);
        wm_chart_line_release(&series->line);
    }
    for (size_t i = 0; data->moments && i < data->request->input_count; i++)
        wm_chart_line_release(&data->moments[i]);
    free(data->moments);
    for (size_t i = 0; i < data->name_count; i++)
        free(data->names[i]);
    free(data->series);
    free(data->names);
    free(data->bands);
}
