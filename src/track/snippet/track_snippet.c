/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet.c - a meter and its snippets. */
#include "wattmeter/energy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/text/base_text.h"
#include "track/snippet/track_snippet_state.h"
#include "wattmeter/tracker.h"

/* Snippets that are open at once. */
#define SNIPPETS_MAX ((size_t)1 << 20)

static int no_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "meter: out of memory");
}

int wm_meter_check_owner(const struct wm_meter *meter, struct wm_error *err)
{
    if (meter->owner == getpid())
        return WM_OK;
    return wm_fail(err, WM_EINVAL,
                   "this meter belongs to the process before the fork(); the child needs "
                   "one of its own");
}

static int check_options(const struct wm_meter_options *options, struct wm_error *err)
{
    int64_t interval_ns = options->interval_ns;

    if (interval_ns != 0 &&
        (interval_ns < WM_INTERVAL_MIN_NS || interval_ns > WM_INTERVAL_MAX_NS))
        return wm_fail(err, WM_EINVAL, "a meter's interval is 1 ms to 1 h");
    if (options->mode > WM_RECORD_APPEND)
        return wm_fail(err, WM_EINVAL, "there is no such mode of a file: %d",
                       (int)options->mode);
    return WM_OK;
}

static int open_table(struct wm_meter *meter, const char *path, struct wm_error *err)
{
    char *header = NULL;
    int status = WM_OK;

    if (!meter->seed_format)
        status = wm_meter_snippet_header(meter->inputs, &header, err);
    if (status == WM_OK)
        status = wm_meter_table_open(path, meter->mode, header, &meter->table, err);
    free(header);
    return status;
}

/* The locks are made already. */
static int fill(struct wm_meter *meter, const struct wm_meter_options *options,
                struct wm_error *err)
{
    int status = wm_meter_inputs_open(options, &meter->inputs, err);

    /* Last, so that a failure leaves no file. */
    if (status == WM_OK && options->snippets)
        status = open_table(meter, options->snippets, err);
    return status;
}

static void release(struct wm_meter *meter)
{
    for (size_t i = 0; i < meter->slot_count; i++) {
        free(meter->slots[i]->name);
        free(meter->slots[i]->window);
        free(meter->slots[i]);
    }
    free(meter->slots);
    wm_meter_inputs_close(meter->inputs);
    pthread_cond_destroy(&meter->wake);
    pthread_mutex_destroy(&meter->table_lock);
    pthread_mutex_destroy(&meter->lock);
    free(meter);
}

int wm_meter_open(const struct wm_meter_options *options, struct wm_meter **ret_meter,
                  struct wm_error *err)
{
    static const struct wm_meter_options usual = { 0 };

    if (!options)
        options = &usual;
    int status = check_options(options, err);
    if (status < 0)
        return status;
    struct wm_meter *meter = calloc(1, sizeof(*meter));
    if (!meter)
        return no_memory(err);
    meter->owner = getpid();
    meter->interval_ns = options->interval_ns;
    meter->mode = options->mode;
    meter->seed_format = options->seed_format;

    /* On Linux neither allocates, and only the condition may in theory fail. */
    pthread_mutex_init(&meter->lock, NULL);
    pthread_mutex_init(&meter->table_lock, NULL);
    errno = wm_meter_make_condition(&meter->wake);
    if (errno != 0) {
        status = wm_fail_errno(err, "meter");
        free(meter);
        return status;
    }
    status = fill(meter, options, err);
    if (status < 0) {
        release(meter);
        return status;
    }
    *ret_meter = meter;
    return WM_OK;
}

static int make_slots(struct wm_meter *meter, struct wm_error *err)
{
    if (meter->slot_count == SNIPPETS_MAX)
        return wm_fail(err, WM_EINVAL, "%zu snippets are open: the most there can be",
                       meter->slot_count);
    if (wm_array_reserve(&meter->slots, meter->slot_count, &meter->slot_room,
                         sizeof(*meter->slots)) < 0)
        return no_memory(err);
    return WM_OK;
}

static int make_snippet(struct wm_meter *meter, struct wm_error *err)
{
    size_t devices = wm_meter_inputs_count(meter->inputs);
    struct wm_snippet *snippet;

    int status = make_slots(meter, err);
    if (status < 0)
        return status;
    snippet = calloc(1, sizeof(*snippet) + devices * sizeof(snippet->devices[0]));
    if (snippet)
        snippet->window = wm_meter_window_new(devices);
    if (!snippet || !snippet->window) {
        free(snippet);
        return no_memory(err);
    }
    snippet->window->is_checked = meter->interval_ns > 0;
    snippet->slot = (uint32_t)meter->slot_count;
    snippet->generation = 1;
    meter->slots[meter->slot_count++] = snippet;
    snippet->next = meter->spare;
    meter->spare = snippet;
    return WM_OK;
}

/* Names are bytes, as the program has them; in the file all is UTF-8. */
static int set_name(struct wm_snippet *snippet, const char *name, struct wm_error *err)
{
    size_t length = name ? strnlen(name, WM_METER_NAME_MAX) : 0;
    size_t room = 3 * length + 1; /* each bad byte becomes three */

    if (room > snippet->name_room) {
        char *grown = realloc(snippet->name, room);
        if (!grown)
            return no_memory(err);
        snippet->name = grown;
        snippet->name_room = room;
    }
    wm_text_utf8(snippet->name, snippet->name_room, name ? name : "", length);
    return WM_OK;
}

static void attach(struct wm_meter *meter, struct wm_snippet *snippet)
{
    meter->spare = snippet->next;
    snippet->is_open = true;
    snippet->previous = NULL;
    snippet->next = meter->open;
    if (meter->open)
        meter->open->previous = snippet;
    meter->open = snippet;
}

void wm_meter_detach(struct wm_meter *meter, struct wm_snippet *snippet)
{
    if (snippet->previous)
        snippet->previous->next = snippet->next;
    else
        meter->open = snippet->next;
    if (snippet->next)
        snippet->next->previous = snippet->previous;
    snippet->is_open = false;
    if (++snippet->generation == 0)
        snippet->generation = 1;
}

void wm_meter_recycle(struct wm_meter *meter, struct wm_snippet *snippet)
{
    snippet->next = meter->spare;
    meter->spare = snippet;
}

int wm_meter_begin(struct wm_meter *meter, const char *name, bool is_ours,
                   struct wm_snippet **ret_snippet, struct wm_error *err)
{
    int status = WM_OK;

    if (!meter->spare)
        status = make_snippet(meter, err);
    if (status == WM_OK)
        status = set_name(meter->spare, name, err);
    if (status == WM_OK)
        status = wm_meter_sampler_need(meter, err);
    if (status < 0)
        return status;

    struct wm_snippet *snippet = meter->spare;
    attach(meter, snippet);
    snippet->is_ours = is_ours;

    /* A counter that may have run over since tells nothing but where it is now. */
    if (wm_clock_monotonic_ns() - wm_meter_inputs_when(meter->inputs) > WM_METER_KEEP_NS)
        wm_meter_inputs_read(meter->inputs);
    wm_meter_inputs_read(meter->inputs);
    wm_meter_window_add(snippet->window, meter->inputs, WM_METER_FIRST);
    *ret_snippet = snippet;
    return WM_OK;
}

static uint64_t id_of(const struct wm_snippet *snippet)
{
    return (uint64_t)snippet->generation << 32 | snippet->slot;
}

int wm_meter_start(struct wm_meter *meter, const char *name, uint64_t *ret_id,
                   struct wm_error *err)
{
    struct wm_snippet *snippet;

    if (!meter || !ret_id)
        return wm_fail(err, WM_EINVAL,
                       "starting a snippet: there is no meter, or no "
                       "place for the snippet's number");
    int status = wm_meter_check_owner(meter, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&meter->lock);
    status = wm_meter_begin(meter, name, false, &snippet, err);
    if (status == WM_OK)
        *ret_id = id_of(snippet);
    pthread_mutex_unlock(&meter->lock);
    return status;
}

static struct wm_snippet *find(const struct wm_meter *meter, uint64_t id)
{
    size_t slot = id & UINT32_MAX;
    struct wm_snippet *snippet = slot < meter->slot_count ? meter->slots[slot] : NULL;

    return snippet && snippet->is_open && !snippet->is_ours && id_of(snippet) == id
               ? snippet
               : NULL;
}

static void finish(struct wm_meter *meter, struct wm_snippet *snippet,
                   struct wm_meter_reading *ret_reading)
{
    wm_meter_inputs_read(meter->inputs);
    wm_meter_window_add(snippet->window, meter->inputs, WM_METER_LAST);
    wm_meter_result(snippet->window, meter->inputs, ret_reading, snippet->devices);
    wm_meter_detach(meter, snippet);
}

/* A disk that is slow holds up those who write to it, and nobody who measures. */
static int write_row(struct wm_meter *meter, const struct wm_snippet *snippet,
                     const struct wm_meter_reading *reading, bool is_finished,
                     struct wm_error *err)
{
    size_t count = wm_meter_inputs_count(meter->inputs);
    int status;

    if (!meter->table || (meter->seed_format && !is_finished))
        return WM_OK;
    pthread_mutex_lock(&meter->table_lock);
    if (meter->seed_format)
        status = wm_meter_snippet_write_seed(meter->table, reading, err);
    else
        status = wm_meter_snippet_write(meter->table, snippet->name, is_finished, reading,
                                        snippet->devices, count, err);
    pthread_mutex_unlock(&meter->table_lock);
    return status;
}

int wm_meter_stop(struct wm_meter *meter, uint64_t id, struct wm_meter_reading *ret_reading,
                  struct wm_meter_energy *ret_devices, struct wm_error *err)
{
    struct wm_meter_reading reading;

    if (!meter)
        return wm_fail(err, WM_EINVAL, "stopping a snippet: there is no meter");
    int status = wm_meter_check_owner(meter, err);
    if (status < 0)
        return status;

    pthread_mutex_lock(&meter->lock);
    struct wm_snippet *snippet = find(meter, id);
    if (snippet)
        finish(meter, snippet, &reading);
    pthread_mutex_unlock(&meter->lock);
    if (!snippet)
        return wm_fail(err, WM_EINVAL,
                       "no snippet with this number has been started, or it is over");

    if (ret_reading)
        *ret_reading = reading;
    if (ret_devices)
        memcpy(ret_devices, snippet->devices,
               wm_meter_inputs_count(meter->inputs) * sizeof(*ret_devices));
    status = write_row(meter, snippet, &reading, true, err);

    pthread_mutex_lock(&meter->lock);
    wm_meter_recycle(meter, snippet);
    pthread_mutex_unlock(&meter->lock);
    return status;
}

/* All of them end at the same moment. */
static int end_open(struct wm_meter *meter)
{
    int count = 0;

    if (!meter->open)
        return 0;
    wm_meter_inputs_read(meter->inputs);
    while (meter->open) {
        struct wm_snippet *snippet = meter->open;
        struct wm_meter_reading reading;

        wm_meter_window_add(snippet->window, meter->inputs, WM_METER_LAST);
        wm_meter_result(snippet->window, meter->inputs, &reading, snippet->devices);
        write_row(meter, snippet, &reading, false, NULL);
        wm_meter_detach(meter, snippet);
        count++;
    }
    return count;
}

int wm_meter_close(struct wm_meter *meter, struct wm_error *err)
{
    int status = WM_OK;

    if (!meter || wm_meter_check_owner(meter, NULL) < 0)
        return WM_OK;
    if (meter->series)
        status = wm_meter_halt(meter, err);
    wm_meter_sampler_end(meter);
    int unfinished = end_open(meter);
    int written = wm_meter_table_close(meter->table, status < 0 ? NULL : err);
    release(meter);
    if (status < 0 || written < 0)
        return status < 0 ? status : written;
    return unfinished;
}

size_t wm_meter_device_count(const struct wm_meter *meter)
{
    return wm_meter_inputs_count(meter->inputs);
}

const struct wm_meter_device *wm_meter_device(const struct wm_meter *meter, size_t index)
{
    return &wm_meter_input(meter->inputs, index)->told;
}

const char *wm_meter_remark(const struct wm_meter *meter)
{
    return wm_meter_inputs_remark(meter->inputs);
}
