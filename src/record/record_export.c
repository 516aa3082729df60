/* SPDX-License-Identifier: Apache-2.0 */
/* record_export.c - writing a recording that is there in another format. */
#include "base/base_utf8.h"
#include "record/record_queue.h"
#include "record/record_read.h"
#include "record/record_target.h"

static int write_batch(const struct wm_target *target, struct wm_queue *queue,
                       struct wm_error *err)
{
    size_t count = wm_queue_take(queue);
    int status = target->ops->write(target->state, queue->batch, count, err);

    wm_queue_done(queue, count);
    return status;
}

/* In batches, because each of them is a transaction in some formats. */
static int copy_ticks(struct wm_recording *recording, const struct wm_target *target,
                      struct wm_queue *queue, struct wm_error *err)
{
    struct wm_tick tick;
    int status;

    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        wm_queue_push(queue, &tick);
        if (queue->length == queue->batch_max) {
            status = write_batch(target, queue, err);
            if (status < 0)
                return status;
        }
    }
    return status == 0 && queue->length > 0 ? write_batch(target, queue, err) : status;
}

static int copy_regions(struct wm_recording *recording, const struct wm_target *target,
                        struct wm_error *err)
{
    struct wm_region_batch batch;
    int status = 0;

    if (!target->ops->regions)
        return WM_OK;
    while ((status = wm_recording_regions(recording, &batch, err)) > 0) {
        status = target->ops->regions(target->state, &batch, err);
        if (status < 0)
            return status;
    }
    return status;
}

static int copy_all(struct wm_recording *recording, const struct wm_target *target,
                    struct wm_error *err)
{
    const struct wm_gap *gaps = NULL;
    struct wm_queue queue;

    int status = wm_queue_init(&queue, wm_recording_channel_count(recording), err);
    if (status == WM_OK)
        status = copy_ticks(recording, target, &queue, err);
    wm_queue_release(&queue);
    if (status == WM_OK)
        status = copy_regions(recording, target, err);

    size_t count = wm_recording_gaps(recording, &gaps);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = target->ops->gap(target->state, &gaps[i], err);
    if (status == WM_OK)
        status = target->ops->finish(target->state, wm_recording_result(recording), err);
    return status;
}

int wm_recording_export(struct wm_recording *recording, const char *path,
                        enum wm_record_mode mode, struct wm_error *err)
{
    const struct wm_recorder_ops *ops = NULL;
    struct wm_target target;
    size_t count = 0;

    if (!wm_recording_at_start(recording))
        return wm_fail(err, WM_EINVAL, "%s: the recording to export has been read already",
                       wm_text_path(path));
    int status = wm_recorder_format(path, true, &ops, err);
    if (status < 0)
        return status;
    const char *file = ops->path_in ? ops->path_in(path) : path;
    if (wm_recording_is_at(recording, file))
        return wm_fail(err, WM_EINVAL, "%s: is the recording itself", wm_text_path(file));

    const struct wm_channel *channels = wm_recording_channels(recording, &count);
    status = wm_target_open_draft(&target, ops, path, mode, wm_recording_run(recording),
                                  channels, count, err);
    if (status < 0)
        return status;
    return wm_target_finish(&target, copy_all(recording, &target, err), err);
}
