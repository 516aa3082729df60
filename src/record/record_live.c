/* SPDX-License-Identifier: Apache-2.0 */
/* record_live.c - a recording in memory alone. */
#include "record/record_live.h"

#include <pthread.h>

#include "record/record_ops.h"
#include "record/record_queue.h"
#include "record/record_read.h"

struct live {
    struct wm_reader_head head;
    bool has_lock;
    pthread_mutex_t lock; /* of the queue; the batch taken is the reader's */
    struct wm_queue queue;
    size_t taken, given; /* ticks of the batch, and those that were given already */
};

static int live_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct live *live = state;

    (void)path;
    (void)run;
    (void)err;
    live->has_lock = pthread_mutex_init(&live->lock, NULL) == 0;
    live->head.run_count = 1;
    return WM_OK;
}

static int live_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct live *live = state;

    (void)err;
    if (live->given == live->taken) {
        pthread_mutex_lock(&live->lock);
        wm_queue_done(&live->queue, live->taken);
        live->taken = wm_queue_take(&live->queue);
        pthread_mutex_unlock(&live->lock);
        live->given = 0;
    }
    if (live->given == live->taken)
        return 0;
    *ret_tick = live->queue.batch[live->given++];
    return 1;
}

static void live_close(void *state)
{
    struct live *live = state;

    wm_queue_release(&live->queue);
    wm_reader_head_release(&live->head);
    if (live->has_lock)
        pthread_mutex_destroy(&live->lock);
}

static const struct wm_reader_ops reader_live = {
    .name = "live",
    .state_size = sizeof(struct live),
    .open = live_open,
    .next = live_next,
    .close = live_close,
};

int wm_live_open(const struct wm_run *run, const struct wm_channel *channels, size_t count,
                 struct wm_recording **ret_live, struct wm_error *err)
{
    const char *no_path[] = { "" };
    struct wm_recording *recording;

    int status = wm_recording_open_files(&reader_live, no_path, 1, &recording, err);
    if (status < 0)
        return status;
    struct live *live = wm_recording_state(recording, &reader_live);
    live->head.channels = channels;
    live->head.channel_count = count;
    status = wm_run_copy(run, &live->head.run, err);
    if (status == WM_OK)
        status = wm_queue_init(&live->queue, count, err);
    if (status < 0)
        wm_recording_close(recording);
    else
        *ret_live = recording;
    return status;
}

void wm_live_push(struct wm_recording *recording, const struct wm_tick *tick)
{
    struct live *live = wm_recording_state(recording, &reader_live);

    pthread_mutex_lock(&live->lock);
    wm_queue_push(&live->queue, tick);
    pthread_mutex_unlock(&live->lock);
}
