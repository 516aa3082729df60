/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - the recording formats, and writing a recording while the ticks go on. */
#include "record/record.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_thread.h"
#include "base/base_utf8.h"
#include "record/record_queue.h"
#include "record/record_regions.h"
#include "record/record_target.h"

/* Those whose suffix is the usual one first. */
static const struct wm_recorder_ops *const formats[] = {
    &wm_recorder_sqlite,
    &wm_recorder_csv,
    &wm_recorder_aipm, /* knows one name with the next one's suffix */
    &wm_recorder_json,
    &wm_recorder_postgres,
    &wm_recorder_gpu_tracker_csv,
    &wm_recorder_gpu_tracker_sqlite,
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

/* Ticks that are not written out yet are lost when we are killed. */
#define BATCH_INTERVAL_NS (WM_NS_PER_S / 2)

/* At the end of a run every channel may have a gap to report at once. */
enum { GAPS_MIN = 256 };

/* Of regions, that wait; as many again are being written. */
enum { CALLS_MAX = 32768 };

struct wm_recorder {
    struct wm_target target;
    pthread_t thread;
    bool has_thread;
    bool has_lock; /* `lock` and `wake` are initialised */
    pthread_mutex_t lock;
    pthread_cond_t wake;

    /* All that follows is guarded by the lock; what was taken from the queue
     * belongs to the thread. */
    struct wm_queue queue;
    struct wm_gap *gaps;
    size_t gap_room, gap_count, gap_done; /* those before `gap_done` are written */
    struct wm_regions_part waiting;       /* regions that wait to be taken */
    struct wm_regions_part taken;         /* regions that are being written */
    bool stop;
    bool is_failing; /* the last writing failed */
    int64_t last_ns; /* of the latest tick */
    uint64_t lost_ticks, lost_gaps, lost_regions;
    int64_t cpu_ns;          /* used by the thread */
    struct wm_error trouble; /* why writing failed the last time */
};

static const struct wm_recorder_ops *find_format(const char *target)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if ((formats[i]->is_target && formats[i]->is_target(target)) ||
            (formats[i]->path_in && formats[i]->path_in(target)))
            return formats[i];
    }
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        const char *const *suffix = formats[i]->suffixes;
        for (; suffix && *suffix; suffix++) {
            if (wm_text_ends(target, *suffix))
                return formats[i];
        }
    }
    return NULL;
}

char *wm_recorder_shown(const char *target)
{
    const struct wm_recorder_ops *ops = find_format(target);

    return ops && ops->shown ? ops->shown(target) : wm_text_copy(target);
}

static void list_suffixes(bool exporting, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (!formats[i]->survives_kill && !exporting)
            continue;
        const char *const *suffix = formats[i]->suffixes;
        for (; suffix && *suffix; suffix++)
            wm_text_list(text, size, ", ", "%s", *suffix);
    }
}

int wm_recorder_format(const char *target, bool exporting,
                       const struct wm_recorder_ops **ret_ops, struct wm_error *err)
{
    const struct wm_recorder_ops *ops = find_format(target);

    if (!ops) {
        char known[96];
        list_suffixes(exporting, known, sizeof(known));
        return wm_fail(err, WM_EINVAL, "%s: not the name of a recording; they end in %s",
                       wm_text_path(target), known);
    }
    if (!ops->survives_kill && !exporting)
        return wm_fail(err, WM_EINVAL,
                       "%s: %s is only written as a whole; record to %s and export it",
                       wm_text_path(target), ops->name, formats[0]->suffixes[0]);
    *ret_ops = ops;
    return WM_OK;
}

int wm_recorder_check(const char *target, enum wm_record_mode mode, struct wm_error *err)
{
    const struct wm_recorder_ops *ops = NULL;

    int status = wm_recorder_format(target, false, &ops, err);
    return status < 0 ? status : wm_target_check(ops, target, mode, err);
}

/* What follows up to run_thread() runs in the recorder's thread, and is called
 * with the lock held; it is let go while the file is written to. */

/* False when writing failed. */
static bool write_batch(struct wm_recorder *recorder)
{
    struct wm_target *target = &recorder->target;
    struct wm_error err = { 0 };

    size_t count = wm_queue_take(&recorder->queue);
    if (count == 0)
        return true;

    pthread_mutex_unlock(&recorder->lock);
    bool written =
        target->ops->write(target->state, recorder->queue.batch, count, &err) == WM_OK;
    if (written)
        wm_target_keep(target);
    pthread_mutex_lock(&recorder->lock);

    if (!written) {
        recorder->trouble = err;
        wm_queue_return(&recorder->queue, count);
        return false;
    }
    wm_queue_done(&recorder->queue, count);
    return true;
}

/* What was taken stays so until it is written: none of the paths and threads may be
 * left out. */
static bool write_regions(struct wm_recorder *recorder)
{
    struct wm_target *target = &recorder->target;
    struct wm_error err = { 0 };

    if (wm_regions_part_is_empty(&recorder->taken)) {
        struct wm_regions_part empty = recorder->taken;
        recorder->taken = recorder->waiting;
        empty.first_path = wm_regions_part_next_path(&recorder->taken);
        empty.first_thread = wm_regions_part_next_thread(&recorder->taken);
        recorder->waiting = empty;
    }
    const struct wm_region_batch batch = wm_regions_part_batch(&recorder->taken);

    pthread_mutex_unlock(&recorder->lock);
    bool written = target->ops->regions(target->state, &batch, &err) == WM_OK;
    pthread_mutex_lock(&recorder->lock);

    if (!written) {
        recorder->trouble = err;
        return false;
    }
    wm_regions_part_clear(&recorder->taken);
    return true;
}

static bool has_regions(const struct wm_recorder *recorder)
{
    return !wm_regions_part_is_empty(&recorder->taken) ||
           !wm_regions_part_is_empty(&recorder->waiting);
}

static bool write_gap(struct wm_recorder *recorder)
{
    struct wm_target *target = &recorder->target;
    struct wm_gap gap = recorder->gaps[recorder->gap_done];
    struct wm_error err = { 0 };

    pthread_mutex_unlock(&recorder->lock);
    bool written = target->ops->gap(target->state, &gap, &err) == WM_OK;
    pthread_mutex_lock(&recorder->lock);

    if (!written) {
        recorder->trouble = err;
        return false;
    }
    recorder->gap_done++;
    return true;
}

static bool write_all(struct wm_recorder *recorder)
{
    while (recorder->queue.length > 0) {
        if (!write_batch(recorder))
            return false;
    }
    while (has_regions(recorder)) {
        if (!write_regions(recorder))
            return false;
    }
    while (recorder->gap_done < recorder->gap_count) {
        if (!write_gap(recorder))
            return false;
    }
    recorder->gap_done = 0;
    recorder->gap_count = 0;
    return true;
}

static bool is_much(const struct wm_recorder *recorder)
{
    return recorder->queue.length >= recorder->queue.batch_max ||
           recorder->waiting.call_count >= CALLS_MAX / 2 ||
           recorder->gap_count >= recorder->gap_room / 2;
}

static void wait_for_more(struct wm_recorder *recorder)
{
    int64_t until_ns = wm_clock_monotonic_ns() + BATCH_INTERVAL_NS;
    bool in_time = true;

    /* After a failure a full queue is no reason to try again at once. */
    while (in_time && !recorder->stop && (recorder->is_failing || !is_much(recorder)))
        in_time = wm_thread_wait(&recorder->wake, &recorder->lock, until_ns);
}

static void *run_thread(void *argument)
{
    struct wm_recorder *recorder = argument;
    bool stop = false;

    pthread_mutex_lock(&recorder->lock);
    while (!stop) {
        wait_for_more(recorder);
        stop = recorder->stop;
        recorder->is_failing = !write_all(recorder);
        recorder->cpu_ns = wm_clock_thread_cpu_ns();
    }
    pthread_mutex_unlock(&recorder->lock);
    return NULL;
}

static int init_lock(struct wm_recorder *recorder)
{
    if (wm_thread_condition(&recorder->wake) != 0)
        return -1;
    if (pthread_mutex_init(&recorder->lock, NULL) != 0) {
        pthread_cond_destroy(&recorder->wake);
        return -1;
    }
    recorder->has_lock = true;
    return 0;
}

static int start_thread(struct wm_recorder *recorder, struct wm_error *err)
{
    int status = wm_thread_start(&recorder->thread, run_thread, recorder,
                                 "no thread for the recording", err);

    recorder->has_thread = status == WM_OK;
    return status;
}

int wm_recorder_open(const char *target, enum wm_record_mode mode, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count,
                     struct wm_recorder **ret_recorder, struct wm_error *err)
{
    const struct wm_recorder_ops *ops = NULL;

    int status = wm_recorder_format(target, false, &ops, err);
    if (status < 0)
        return status;

    struct wm_recorder *recorder = calloc(1, sizeof(*recorder));
    if (!recorder)
        return wm_fail_memory(err, NULL);
    recorder->last_ns = -1;
    recorder->gap_room = GAPS_MIN + 2 * count;
    recorder->gaps = calloc(recorder->gap_room, sizeof(*recorder->gaps));
    if (!recorder->gaps || init_lock(recorder) < 0)
        status = wm_fail_memory(err, NULL);
    if (status == WM_OK)
        status = wm_queue_init(&recorder->queue, count, err);
    if (status == WM_OK)
        status =
            wm_target_open(&recorder->target, ops, target, mode, run, channels, count, err);
    if (status == WM_OK)
        status = start_thread(recorder, err);
    if (status < 0) {
        wm_recorder_close(recorder);
        return status;
    }
    *ret_recorder = recorder;
    return WM_OK;
}

void wm_recorder_tick(struct wm_recorder *recorder, const struct wm_tick *tick)
{
    pthread_mutex_lock(&recorder->lock);
    if (tick->when_ns <= recorder->last_ns) {
        recorder->lost_ticks++;
        wm_fail(&recorder->trouble, WM_EINVAL, "%s: the time of a sample went back",
                wm_text_path(recorder->target.path));
    } else {
        recorder->last_ns = tick->when_ns;
        if (!wm_queue_push(&recorder->queue, tick))
            recorder->lost_ticks++;
        if (recorder->queue.length == recorder->queue.batch_max)
            pthread_cond_signal(&recorder->wake);
    }
    pthread_mutex_unlock(&recorder->lock);
}

void wm_recorder_gap(struct wm_recorder *recorder, const struct wm_gap *gap)
{
    pthread_mutex_lock(&recorder->lock);
    if (recorder->gap_count < recorder->gap_room)
        recorder->gaps[recorder->gap_count++] = *gap;
    else
        recorder->lost_gaps++;
    if (recorder->gap_count == recorder->gap_room / 2)
        pthread_cond_signal(&recorder->wake);
    pthread_mutex_unlock(&recorder->lock);
}

static void add_call(struct wm_recorder *recorder, const struct wm_region_record *call,
                     const struct wm_region_fold *fold)
{
    struct wm_regions_part *part = &recorder->waiting;

    if (part->call_count >= CALLS_MAX || call->path >= wm_regions_part_next_path(part) ||
        call->thread >= wm_regions_part_next_thread(part) ||
        wm_regions_part_add_call(part, call, fold) < 0)
        recorder->lost_regions++;
}

void wm_recorder_regions(struct wm_recorder *recorder, const struct wm_region_batch *batch)
{
    pthread_mutex_lock(&recorder->lock);
    bool was_much = is_much(recorder);
    if (recorder->target.ops->regions) {
        wm_regions_part_add_new(&recorder->waiting, batch);
        for (size_t i = 0; i < batch->call_count; i++)
            add_call(recorder, &batch->calls[i],
                     wm_region_batch_fold(batch, &batch->calls[i]));
    }
    if (!was_much && is_much(recorder))
        pthread_cond_signal(&recorder->wake);
    pthread_mutex_unlock(&recorder->lock);
}

bool wm_recorder_has_room(struct wm_recorder *recorder, size_t calls)
{
    if (!recorder->target.ops->regions)
        return true;
    pthread_mutex_lock(&recorder->lock);
    size_t waiting = recorder->waiting.call_count;
    pthread_mutex_unlock(&recorder->lock);
    return waiting == 0 || calls <= CALLS_MAX - waiting;
}

bool wm_recorder_is_failing(struct wm_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bool is_failing = recorder->is_failing;
    pthread_mutex_unlock(&recorder->lock);
    return is_failing;
}

bool wm_recorder_has_tick_room(struct wm_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    bool has_room =
        recorder->queue.spare_count > 0 && recorder->gap_count < recorder->gap_room / 2;
    pthread_mutex_unlock(&recorder->lock);
    return has_room;
}

static void stop_thread(struct wm_recorder *recorder)
{
    if (!recorder->has_thread)
        return;
    pthread_mutex_lock(&recorder->lock);
    recorder->stop = true;
    pthread_cond_signal(&recorder->wake);
    pthread_mutex_unlock(&recorder->lock);
    pthread_join(recorder->thread, NULL);
    recorder->has_thread = false;
}

void wm_recorder_flush(struct wm_recorder *recorder, struct wm_result *result)
{
    struct wm_error err = { 0 };
    const char *path = wm_text_path(recorder->target.path);

    stop_thread(recorder);
    result->lost_ticks = recorder->lost_ticks + recorder->queue.length;
    result->lost_regions =
        recorder->lost_regions + recorder->taken.call_count + recorder->waiting.call_count;
    result->recording_trouble[0] = '\0';

    if (wm_target_verify(&recorder->target, &err) < 0)
        recorder->trouble = err;
    else if (result->lost_ticks == 0 && result->lost_regions == 0 &&
             recorder->lost_gaps == 0 && recorder->gap_count == 0)
        return; /* what failed once went well later */
    else if (recorder->trouble.text[0] == '\0')
        wm_fail(&recorder->trouble, WM_EIO, "%s: could not be written fast enough", path);
    snprintf(result->recording_trouble, sizeof(result->recording_trouble), "%s",
             recorder->trouble.text);
}

int64_t wm_recorder_cpu_ns(const struct wm_recorder *recorder)
{
    const struct wm_target *target = &recorder->target;

    return recorder->cpu_ns +
           (target->ops->cpu_ns ? target->ops->cpu_ns(target->state) : 0);
}

int wm_recorder_finish(struct wm_recorder *recorder, const struct wm_result *result,
                       struct wm_error *err)
{
    struct wm_target *target = &recorder->target;

    stop_thread(recorder);
    int found = wm_target_verify(target, err);
    if (found < 0 && found != WM_ECANCELED)
        return found;
    int status = target->ops->finish(target->state, result, err);
    if (status == WM_OK)
        wm_target_keep(target);
    return status < 0 ? status : found;
}

void wm_recorder_close(struct wm_recorder *recorder)
{
    if (!recorder)
        return;
    stop_thread(recorder);
    wm_target_close(&recorder->target);
    wm_queue_release(&recorder->queue);
    wm_regions_part_release(&recorder->waiting);
    wm_regions_part_release(&recorder->taken);
    free(recorder->gaps);
    if (recorder->has_lock) {
        pthread_cond_destroy(&recorder->wake);
        pthread_mutex_destroy(&recorder->lock);
    }
    free(recorder);
}
