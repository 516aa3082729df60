/* SPDX-License-Identifier: Apache-2.0 */
/* record_queue.c - ticks that wait to be written, in bounded memory. */
#include "record/record_queue.h"

#include <stdlib.h>

#define MEMORY_BYTES ((size_t)1 << 20)

enum { TICKS_MIN = 64 };

int wm_queue_init(struct wm_queue *queue, size_t channel_count, struct wm_error *err)
{
    size_t row = channel_count > 0 ? channel_count : 1;
    size_t capacity = MEMORY_BYTES / (row * sizeof(struct wm_reading));

    if (capacity < TICKS_MIN)
        capacity = TICKS_MIN;
    if (capacity > MEMORY_BYTES / 256)
        capacity = MEMORY_BYTES / 256; /* few channels: the rest of a tick counts too */

    /* Half of them, so that a tick can be given up for a new one even while a
     * whole batch is being written. */
    *queue = (struct wm_queue) {
        .channel_count = channel_count,
        .capacity = capacity,
        .batch_max = capacity / 2,
    };
    queue->waiting = calloc(capacity, sizeof(*queue->waiting));
    queue->spare = calloc(capacity, sizeof(*queue->spare));
    queue->batch = calloc(queue->batch_max, sizeof(*queue->batch));
    queue->readings = calloc(capacity * row, sizeof(*queue->readings));
    if (!queue->waiting || !queue->spare || !queue->batch || !queue->readings)
        return wm_fail_memory(err, NULL);

    while (queue->spare_count < capacity) {
        queue->spare[queue->spare_count] = &queue->readings[queue->spare_count * row];
        queue->spare_count++;
    }
    return WM_OK;
}

void wm_queue_release(struct wm_queue *queue)
{
    free(queue->waiting);
    free(queue->spare);
    free(queue->batch);
    free(queue->readings);
    *queue = (struct wm_queue) { 0 };
}

static void recycle(struct wm_queue *queue, const struct wm_tick *tick)
{
    /* Const for readers of the tick; the room itself is the queue's own. */
    queue->spare[queue->spare_count++] = &queue->readings[tick->readings - queue->readings];
}

static struct wm_tick pop(struct wm_queue *queue)
{
    struct wm_tick tick = queue->waiting[queue->first];

    queue->first = (queue->first + 1) % queue->capacity;
    queue->length--;
    return tick;
}

bool wm_queue_push(struct wm_queue *queue, const struct wm_tick *tick)
{
    bool room = queue->spare_count > 0;

    if (!room) {
        struct wm_tick oldest = pop(queue);
        recycle(queue, &oldest);
    }
    struct wm_reading *readings = queue->spare[--queue->spare_count];
    for (size_t i = 0; i < queue->channel_count; i++)
        readings[i] = tick->readings[i];
    queue->waiting[(queue->first + queue->length++) % queue->capacity] = (struct wm_tick) {
        .when_ns = tick->when_ns,
        .readings = readings,
        .count = queue->channel_count,
    };
    return room;
}

size_t wm_queue_take(struct wm_queue *queue)
{
    size_t count = 0;

    while (count < queue->batch_max && queue->length > 0)
        queue->batch[count++] = pop(queue);
    return count;
}

void wm_queue_done(struct wm_queue *queue, size_t count)
{
    for (size_t i = 0; i < count; i++)
        recycle(queue, &queue->batch[i]);
}

void wm_queue_return(struct wm_queue *queue, size_t count)
{
    /* There is a place for every tick that there is, waiting or not. */
    while (count-- > 0) {
        queue->first = (queue->first + queue->capacity - 1) % queue->capacity;
        queue->waiting[queue->first] = queue->batch[count];
        queue->length++;
    }
}
