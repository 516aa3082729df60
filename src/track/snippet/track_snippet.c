/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet.c - a meter and its snippets, and the thread that reads the devices while
 * one is open. */
#include "wattmeter/energy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_options.h"
#include "base/base_text.h"
#include "base/base_thread.h"
#include "track/snippet/track_snippet.h"
#include "wattmeter/tracker.h"

/* Snippets that are open at once. */
#define SNIPPETS_MAX ((size_t)1 << 20)

/* Devices are not left alone for longer, whatever their counters. */
#define KEEP_NS INT64_C(20000000000)

/* How often a device is read whose power has to be integrated, or whose sensor sees a
 * part of the time. */
#define STEP_NS (100 * WM_NS_PER_MS)

static int no_memory(struct wm_error *err)
{
    return wm_fail_memory(err, "meter");
}

int wm_meter_check_owner(const struct wm_meter *meter, struct wm_error *err)
{
    if (meter->owner == getpid())
        return WM_OK;
    return wm_fail(err, WM_EINVAL,
                   "this meter belongs to the process before the fork(); the child has "
                   "to open another");
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

static void release(struct wm_meter *meter)
{
    for (size_t i = 0; i < meter->slot_count; i++) {
        free(meter->slots[i]->name);
        free(meter->slots[i]);
    }
    free(meter->slots);
    wm_meter_inputs_close(&meter->inputs);
    pthread_cond_destroy(&meter->wake);
    pthread_mutex_destroy(&meter->file_lock);
    pthread_mutex_destroy(&meter->lock);
    free(meter);
}

int wm_meter_open(const struct wm_meter_options *given, struct wm_meter **ret_meter,
                  struct wm_error *err)
{
    struct wm_meter_options own;
    const struct wm_meter_options *options = &own;

    int status = wm_options_read(given, &own, sizeof(own), err);
    if (status == WM_OK)
        status = check_options(options, err);
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
    pthread_mutex_init(&meter->file_lock, NULL);
    errno = wm_thread_condition(&meter->wake);
    status = errno == 0 ? WM_OK : wm_fail_errno(err, "meter");
    if (status == WM_OK)
        status = wm_meter_inputs_open(options, &meter->inputs, err);

    /* Last, so that a failure leaves no file. */
    if (status == WM_OK && options->snippets)
        status = wm_meter_file_open(meter, options->snippets, false, &meter->file, err);
    if (status < 0) {
        release(meter);
        return status;
    }
    *ret_meter = meter;
    return WM_OK;
}

/* Nor for longer than a counter takes to run over. */
static int64_t keep_ns_of(const struct wm_meter *meter)
{
    int64_t unread_ns = wm_source_set_unread_ns(meter->inputs.sources);

    return unread_ns < KEEP_NS ? unread_ns : KEEP_NS;
}

static int64_t step_of(const struct wm_meter *meter)
{
    int64_t keep_ns = keep_ns_of(meter);

    if (meter->interval_ns > 0)
        return meter->interval_ns < keep_ns ? meter->interval_ns : keep_ns;
    return wm_meter_inputs_need_steps(&meter->inputs) ? STEP_NS : keep_ns;
}

static void sample(struct wm_meter *meter)
{
    wm_meter_inputs_read(&meter->inputs, false);
    for (size_t i = 0; i < meter->slot_count; i++) {
        if (meter->slots[i]->is_open)
            wm_snippet_add(meter->slots[i], false);
    }
}

/* It goes on waiting for its moment when the last snippet ends, as the next one may
 * begin at once; then waking it each time would cost more than reading. */
static void *run_sampler(void *context)
{
    struct wm_meter *meter = context;
    int64_t last_ns = wm_clock_monotonic_ns();

    pthread_mutex_lock(&meter->lock);
    while (!meter->is_ending) {
        meter->step_ns = step_of(meter);
        int64_t due_ns = last_ns + meter->step_ns;
        if (wm_clock_monotonic_ns() < due_ns) {
            wm_thread_wait(&meter->wake, &meter->lock, due_ns);
            continue;
        }
        if (meter->open_count > 0) {
            sample(meter);
        } else {
            meter->is_parked = true;
            while (meter->is_parked && !meter->is_ending)
                pthread_cond_wait(&meter->wake, &meter->lock);
        }

        /* A reading that was late moves the next one: what is read here is not
         * shown by itself, and two readings in a row would tell nothing. */
        last_ns = wm_clock_monotonic_ns();
    }
    pthread_mutex_unlock(&meter->lock);
    return NULL;
}

/* Under the lock: sees that what is open is read often enough, from now on. */
static int need_sampler(struct wm_meter *meter, struct wm_error *err)
{
    if (meter->inputs.count == 0)
        return WM_OK;
    if (!meter->has_sampler) {
        meter->step_ns = step_of(meter);
        int status = wm_thread_start(&meter->sampler, run_sampler, meter,
                                     "starting a thread of the meter", err);
        if (status < 0)
            return status;
        meter->has_sampler = true;
    } else if (meter->is_parked || step_of(meter) < meter->step_ns) {
        meter->is_parked = false;
        pthread_cond_signal(&meter->wake);
    }
    return WM_OK;
}

/* Without the lock: ends the thread, if there is one. */
static void end_sampler(struct wm_meter *meter)
{
    pthread_mutex_lock(&meter->lock);
    meter->is_ending = true;
    pthread_cond_signal(&meter->wake);
    pthread_mutex_unlock(&meter->lock);
    if (meter->has_sampler)
        pthread_join(meter->sampler, NULL);
}

size_t wm_meter_snippet_size(const struct wm_meter *meter)
{
    struct wm_snippet *snippet = NULL;

    return sizeof(*snippet) + meter->inputs.count * sizeof(snippet->spans[0]);
}

static int make_snippet(struct wm_meter *meter, struct wm_error *err)
{
    if (meter->slot_count == SNIPPETS_MAX)
        return wm_fail(err, WM_EINVAL, "%zu snippets are open: the most there can be",
                       meter->slot_count);
    if (wm_array_reserve(&meter->slots, meter->slot_count, &meter->slot_room,
                         sizeof(*meter->slots)) < 0)
        return no_memory(err);
    struct wm_snippet *snippet = calloc(1, wm_meter_snippet_size(meter));
    if (!snippet)
        return no_memory(err);
    snippet->inputs = &meter->inputs;
    snippet->is_checked = meter->interval_ns > 0;
    snippet->slot = (uint32_t)meter->slot_count;
    snippet->generation = 1;
    meter->slots[meter->slot_count++] = snippet;
    wm_meter_recycle(meter, snippet);
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

void wm_meter_detach(struct wm_meter *meter, struct wm_snippet *snippet)
{
    meter->open_count--;
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
        status = need_sampler(meter, err);
    if (status < 0)
        return status;

    struct wm_snippet *snippet = meter->spare;
    meter->spare = snippet->next;
    meter->open_count++;
    snippet->is_open = true;
    snippet->is_ours = is_ours;

    /* A counter that may have run over since tells nothing but where it is now. */
    if (wm_clock_monotonic_ns() - meter->inputs.when_ns > keep_ns_of(meter))
        wm_meter_inputs_read(&meter->inputs, false);
    wm_meter_inputs_read(&meter->inputs, true);
    wm_snippet_begin(snippet);
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

/* Of the last round of readings. */
static void finish(struct wm_meter *meter, struct wm_snippet *snippet, bool is_finished)
{
    wm_snippet_add(snippet, true);
    wm_snippet_tell(snippet);
    wm_meter_detach(meter, snippet);
    snippet->is_finished = is_finished;
}

/* A disk that is slow holds up those who write to it, and nobody who measures. */
static int write_row(struct wm_meter *meter, const struct wm_snippet *snippet,
                     struct wm_error *err)
{
    if (!meter->file || (meter->seed_format && !snippet->is_finished))
        return WM_OK;
    pthread_mutex_lock(&meter->file_lock);
    int status = wm_meter_file_write(meter->file, snippet, err);
    pthread_mutex_unlock(&meter->file_lock);
    return status;
}

int wm_meter_stop(struct wm_meter *meter, uint64_t id, struct wm_meter_reading *ret_reading,
                  struct wm_meter_energy *ret_devices, struct wm_error *err)
{
    if (!meter)
        return wm_fail(err, WM_EINVAL, "stopping a snippet: there is no meter");
    int status = wm_meter_check_owner(meter, err);
    if (status < 0)
        return status;

    pthread_mutex_lock(&meter->lock);
    struct wm_snippet *snippet = find(meter, id);
    if (snippet) {
        wm_meter_inputs_read(&meter->inputs, true);
        finish(meter, snippet, true);
    }
    pthread_mutex_unlock(&meter->lock);
    if (!snippet)
        return wm_fail(err, WM_EINVAL,
                       "no snippet with this number has been started, or it is over");

    if (ret_reading)
        *ret_reading = snippet->told;
    for (size_t i = 0; ret_devices && i < meter->inputs.count; i++)
        ret_devices[i] = snippet->spans[i].told;
    status = write_row(meter, snippet, err);

    pthread_mutex_lock(&meter->lock);
    wm_meter_recycle(meter, snippet);
    pthread_mutex_unlock(&meter->lock);
    return status;
}

/* All of them end at the same moment. */
static int end_open(struct wm_meter *meter)
{
    int count = 0;

    if (meter->open_count == 0)
        return 0;
    wm_meter_inputs_read(&meter->inputs, true);
    for (size_t i = 0; i < meter->slot_count; i++) {
        if (!meter->slots[i]->is_open)
            continue;
        finish(meter, meter->slots[i], false);
        write_row(meter, meter->slots[i], NULL);
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
    end_sampler(meter);
    int unfinished = end_open(meter);
    int written = wm_meter_file_close(meter->file, status < 0 ? NULL : err);
    release(meter);
    if (status < 0 || written < 0)
        return status < 0 ? status : written;
    return unfinished;
}

size_t wm_meter_device_count(const struct wm_meter *meter)
{
    return meter->inputs.count;
}

const struct wm_meter_device *wm_meter_device(const struct wm_meter *meter, size_t index)
{
    return &meter->inputs.list[index].told;
}

const char *wm_meter_remark(const struct wm_meter *meter)
{
    return meter->inputs.remark[0] ? meter->inputs.remark : NULL;
}
