/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_queue.h - ticks that wait to be written, in bounded memory.
 *
 *     wm_queue_push(queue, &tick);
 *     n = wm_queue_take(queue);          the oldest, now in queue->batch
 *     if (written)
 *         wm_queue_done(queue, n);
 *     else
 *         wm_queue_return(queue, n);
 *
 * Ticks that were taken may be read while others are pushed; who calls from
 * two threads guards each call.
 */
#ifndef WM_RECORD_QUEUE_H
#define WM_RECORD_QUEUE_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/recording.h"

struct wm_queue {
    size_t channel_count;
    size_t capacity;           /* ticks, waiting and taken ones together */
    size_t batch_max;          /* ticks that are taken at a time */
    struct wm_tick *waiting;   /* a ring */
    size_t first, length;      /* position and number of the ticks that wait */
    struct wm_reading **spare; /* room for the readings of one tick each */
    size_t spare_count;
    struct wm_reading *readings;
    struct wm_tick *batch; /* room for one batch, the taker's to use */
};

/* Makes room for about 1 MB of ticks. wm_queue_release() is due in any case. */
int wm_queue_init(struct wm_queue *queue, size_t channel_count, struct wm_error *err);

void wm_queue_release(struct wm_queue *queue);

/* Copies the tick. False when the oldest one that waited had to go for it. */
bool wm_queue_push(struct wm_queue *queue, const struct wm_tick *tick);

/* Moves the oldest ticks to queue->batch. */
size_t wm_queue_take(struct wm_queue *queue);

/* The first `count` ticks of queue->batch are not needed any more... */
void wm_queue_done(struct wm_queue *queue, size_t count);

/* ...or go back to where they were. */
void wm_queue_return(struct wm_queue *queue, size_t count);

#endif
