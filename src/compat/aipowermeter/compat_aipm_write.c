/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_write.c - a folder as AIPowerMeter leaves it: metadata.json, and
 * power_metrics.json with a record for each window between two ticks. A tick without
 * any reading ends a segment.
 */
#include "compat/aipowermeter/compat_aipm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_utf8.h"
#include "base/text/base_json.h"
#include "base/text/base_localtime.h"
#include "base/text/base_out.h"
#include "record/record_experiment.h"
#include "record/record_ops.h"

#define SEGMENT_END WM_AIPM_SEGMENT_END "\n"

/* What changes with each tick, and is taken back when writing it fails. */
struct progress {
    bool started;    /* there is a tick before this one */
    bool in_segment; /* there is a record after the last end of a segment */
    bool needs_end;  /* of the segment that somebody left open */
    off_t record_at; /* where the last record stands */
};

struct aipm {
    const char *path;
    const struct wm_run *run;
    struct wm_out out;
    struct wm_aipm_window window;
    struct progress progress, progress_saved;
    int64_t first_ns; /* of the first tick */
    bool has_metadata;
    bool is_appended;
    bool as_whole;
    off_t before; /* the size of the file that a run is added to at once; 0: it is done */
};

static const char *const suffixes[] = { ".aipm", "/", WM_AIPM_FILE, NULL };

static int aipm_may_replace(const char *target, struct wm_error *err)
{
    if (wm_aipm_is_ours(target))
        return WM_OK;
    return wm_fail(err, WM_EEXIST,
                   "%s: was not made by wattmeter and is not replaced; append adds to it",
                   wm_text_path(target));
}

/* Whether the last line of `length` bytes at the end of a file is whole, and the end
 * of a segment. */
static int look_at_end(struct aipm *aipm, off_t size, struct wm_error *err)
{
    char tail[sizeof(SEGMENT_END) - 1];
    size_t length = size < (off_t)sizeof(tail) ? (size_t)size : sizeof(tail);

    ssize_t got = pread(aipm->out.fd, tail, length, size - (off_t)length);
    if (got < 0)
        return wm_fail_errno(err, wm_text_path(aipm->path));
    if ((size_t)got < length || tail[length - 1] != '\n')
        return wm_fail(err, WM_EFORMAT,
                       "%s: its last line is cut off; nothing can be added behind it",
                       wm_text_path(aipm->path));
    aipm->progress.needs_end =
        length < sizeof(tail) || memcmp(tail, SEGMENT_END, sizeof(tail)) != 0;
    return WM_OK;
}

static void aipm_as_whole(void *state)
{
    struct aipm *aipm = state;

    aipm->as_whole = true;
}

static int aipm_open(void *state, const char *target, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct aipm *aipm = state;
    struct stat info;

    aipm->path = target;
    aipm->run = run;
    if (wm_aipm_window_init(&aipm->window, run, channels, count) < 0)
        return wm_fail_memory(err, wm_text_path(aipm->path));

    int status = wm_out_open(&aipm->out, target, err);
    if (status < 0)
        return status;
    if (fstat(aipm->out.fd, &info) < 0)
        return wm_fail_errno(err, wm_text_path(target));
    if (info.st_size == 0)
        return WM_OK;
    aipm->is_appended = true;
    aipm->out.end = info.st_size;
    aipm->out.written = info.st_size;
    status = look_at_end(aipm, info.st_size, err);
    if (status == WM_OK && aipm->as_whole)
        aipm->before = info.st_size;
    return status;
}

/* The date is that of the first tick, where the window of the first record begins. */
static char *metadata_text(const struct aipm *aipm)
{
    const char *note = wm_run_note(aipm->run, WM_NOTE_DESCRIPTION);
    char *description = note ? strdup(note) : wm_run_command_line(aipm->run);
    char date[WM_LOCALTIME_SIZE], *run_text = NULL, *text = NULL;

    wm_localtime_format(aipm->first_ns - aipm->run->anchor_ns + aipm->run->anchor_unix_ns,
                        date);
    if (description && wm_run_to_json(aipm->run, &run_text, NULL) == WM_OK)
        text = wm_json_dump(json_pack("{s:o,s:s,s:o}", "description",
                                      wm_text_json(description), "date", date, "wattmeter",
                                      json_loads(run_text, 0, NULL)),
                            JSON_ENSURE_ASCII);
    free(run_text);
    free(description);
    return text;
}

static bool has_metadata(const char *path)
{
    char *name = wm_aipm_beside(path, WM_AIPM_METADATA);

    bool has = name && access(name, F_OK) == 0;
    free(name);
    return has;
}

/* What others have put there stays. */
static int write_metadata(struct aipm *aipm, struct wm_error *err)
{
    int status = WM_OK;

    if (!has_metadata(aipm->path) || (!aipm->is_appended && wm_aipm_is_ours(aipm->path))) {
        char *text = metadata_text(aipm);
        status = text ? wm_aipm_write_beside(aipm->path, WM_AIPM_METADATA, text, err)
                      : wm_fail_memory(err, wm_text_path(aipm->path));
        free(text);
    }
    aipm->has_metadata = status == WM_OK;
    return status;
}

static void end_segment(struct aipm *aipm)
{
    if (aipm->progress.in_segment)
        wm_out_text(&aipm->out, SEGMENT_END);
    aipm->progress.in_segment = false;
    aipm->progress.started = false;
    wm_aipm_window_restart(&aipm->window);
}

static int put_record(struct aipm *aipm, const struct wm_tick *tick, struct wm_error *err)
{
    bool replaces;
    char *text = wm_aipm_window_record(&aipm->window, tick, &replaces);

    if (!text)
        return wm_fail_memory(err, wm_text_path(aipm->path));
    if (replaces)
        wm_out_rewind(&aipm->out, aipm->progress.record_at);
    else if (aipm->progress.needs_end)
        wm_out_text(&aipm->out, SEGMENT_END);
    aipm->progress.record_at = wm_out_position(&aipm->out);
    wm_out_text(&aipm->out, text);
    wm_out_text(&aipm->out, "\n");
    aipm->progress.needs_end = false;
    aipm->progress.in_segment = true;
    free(text);
    return WM_OK;
}

static int put_tick(struct aipm *aipm, const struct wm_tick *tick, struct wm_error *err)
{
    int status = WM_OK;

    if (wm_tick_is_pause(tick)) {
        end_segment(aipm);
        return WM_OK;
    }
    if (aipm->progress.started)
        status = put_record(aipm, tick, err);
    aipm->progress.started = true;
    wm_aipm_window_pass(&aipm->window, tick);
    return status;
}

static int aipm_write(void *state, const struct wm_tick *ticks, size_t count,
                      struct wm_error *err)
{
    struct aipm *aipm = state;
    int status = WM_OK;

    if (aipm->first_ns == 0 && count > 0)
        aipm->first_ns = ticks[0].when_ns;
    if (!aipm->has_metadata && !aipm->as_whole && count > 0)
        status = write_metadata(aipm, err);
    wm_aipm_window_save(&aipm->window);
    aipm->progress_saved = aipm->progress;
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = put_tick(aipm, &ticks[i], err);
    if (status == WM_OK)
        status = wm_out_flush(&aipm->out, err);
    else
        wm_out_discard(&aipm->out);
    if (status < 0) {
        wm_aipm_window_restore(&aipm->window);
        aipm->progress = aipm->progress_saved;
    }
    return status;
}

/* AIPowerMeter has no reasons. */
static int aipm_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    (void)state;
    (void)gap;
    (void)err;
    return WM_OK;
}

/* Nor results but what the target reported of itself; the end of the segment says that
 * there is no more of it. */
static int aipm_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct aipm *aipm = state;

    struct progress before = aipm->progress;
    end_segment(aipm);
    int status = wm_out_flush(&aipm->out, err);
    if (status < 0)
        aipm->progress = before;
    if (status == WM_OK)
        status = wm_out_sync(&aipm->out, err);
    if (status == WM_OK && !aipm->has_metadata && aipm->first_ns != 0)
        status = write_metadata(aipm, err);
    if (status == WM_OK && result)
        status = wm_aipm_write_results(aipm->path, aipm->run, result, err);
    if (status == WM_OK)
        aipm->before = 0;
    return status;
}

static void aipm_close(void *state)
{
    struct aipm *aipm = state;

    if (aipm->before > 0) {
        int ignored = ftruncate(aipm->out.fd, aipm->before);
        (void)ignored;
    }
    wm_out_close(&aipm->out);
    wm_aipm_window_release(&aipm->window);
}

const struct wm_recorder_ops wm_recorder_aipm = {
    .name = "AIPowerMeter folder",
    .suffixes = suffixes,
    .file = WM_AIPM_FILE,
    .may_replace = aipm_may_replace,
    .can_append = true,
    .one_writer = true,
    .survives_kill = true,
    .state_size = sizeof(struct aipm),
    .as_whole = aipm_as_whole,
    .open = aipm_open,
    .write = aipm_write,
    .gap = aipm_gap,
    .finish = aipm_finish,
    .close = aipm_close,
};
