/* SPDX-License-Identifier: Apache-2.0 */
/* record_read.c - opening a recording, whatever its format, and reading it. */
#include "record/record_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_utf8.h"
#include "record/record_ops.h"

static const struct wm_reader_ops *const readers[] = {
    &wm_reader_sqlite,          &wm_reader_csv,  &wm_reader_gpu_tracker_sqlite,
    &wm_reader_gpu_tracker_csv, &wm_reader_aipm, &wm_reader_meter,
    &wm_reader_postgres,
};

enum { READER_COUNT = sizeof(readers) / sizeof(readers[0]) };

/* How much of a file has to be known to tell its format: some begin with comments. */
enum { HEAD_SIZE = 4096 };

struct wm_recording {
    const struct wm_reader_ops *ops;
    char *path;
    dev_t device;
    ino_t inode; /* 0 where a URL leads */
    size_t run;
    bool is_one; /* a run of what is at its path, and nothing else */
    bool started;
    const volatile sig_atomic_t *stop; /* ends reading when it is set; may be NULL */
    max_align_t state[];
};

/* The file that holds the recording at `path`, the caller's to free: that itself,
 * or the one in a folder. NULL when out of memory. */
static char *find_file(const char *path)
{
    struct stat info;
    char *file = NULL;

    if (stat(path, &info) < 0 || !S_ISDIR(info.st_mode))
        return strdup(path);
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    if (asprintf(&file, "%s%s%s", path, slash, WM_AIPM_FILE) < 0)
        return NULL;
    if (access(file, F_OK) == 0)
        return file;
    free(file);
    return strdup(path);
}

static int inspect(const char *path, struct stat *ret_info, struct wm_error *err)
{
    const char *shown = wm_text_path(path);

    if (stat(path, ret_info) < 0)
        return wm_fail_errno(err, shown);
    if (S_ISDIR(ret_info->st_mode))
        return wm_fail(err, WM_EFORMAT,
                       "%s: a folder without a " WM_AIPM_FILE ", not a recording", shown);
    if (!S_ISREG(ret_info->st_mode))
        return wm_fail(err, WM_EFORMAT, "%s: not a regular file", shown);
    return WM_OK;
}

static const struct wm_reader_ops *find_reader_of_url(const char *path)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        if (readers[i]->is_target && readers[i]->is_target(path))
            return readers[i];
    }
    return NULL;
}

int wm_reader_choose_run(const char *path, size_t run, size_t count, size_t *ret_index,
                         struct wm_error *err)
{
    const char *shown = wm_text_path(path);

    if (count == 0)
        return wm_fail(err, WM_EFORMAT, "%s: holds no run", shown);
    if (run != WM_LAST_RUN && run >= count)
        return wm_fail(err, WM_EINVAL, "%s: there is no run %zu; the last one is %zu",
                       shown, run, count - 1);
    *ret_index = run == WM_LAST_RUN ? count - 1 : run;
    return WM_OK;
}

/* Opens `file`, which is copied, as one of that format. `info` is all 0 for a URL. */
static int open_as(const struct wm_reader_ops *ops, const char *file,
                   const struct stat *info, size_t run, struct wm_recording **ret_recording,
                   struct wm_error *err)
{
    struct wm_recording *recording = calloc(1, sizeof(*recording) + ops->state_size);

    if (recording)
        recording->path = strdup(file);
    if (!recording || !recording->path) {
        free(recording);
        return wm_fail_memory(err, NULL);
    }
    recording->ops = ops;
    recording->device = info->st_dev;
    recording->inode = info->st_ino;
    recording->run = run;
    recording->is_one = true;
    int status = ops->open(recording->state, recording->path, run, err);
    if (status < 0) {
        wm_recording_close(recording);
        return status;
    }
    *ret_recording = recording;
    return WM_OK;
}

/* What a file is that nobody knows. Spreadsheets save text in UTF-16. */
static const char *what_else(const char *head, size_t length)
{
    if (length == 0)
        return "empty";
    if (length >= 2 &&
        (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0))
        return "is in UTF-16; save it as UTF-8";
    if (head[0] == '{')
        return "not a recording of wattmeter (JSON; that of a report cannot be read back)";
    return "not a recording of wattmeter";
}

/* Asks those who know the first bytes, until one knows the rest. */
static int open_file(const char *file, size_t run, bool also_foreign,
                     struct wm_recording **ret_recording, struct wm_error *err)
{
    const char *shown = wm_text_path(file);
    char head[HEAD_SIZE];
    int status = WM_ENODEV;
    struct stat info;

    int inspected = inspect(file, &info, err);
    if (inspected < 0)
        return inspected;
    ssize_t length = wm_file_read_at(AT_FDCWD, file, head, sizeof(head));
    if (length < 0) {
        errno = (int)-length;
        return wm_fail_errno(err, shown);
    }
    wm_fail(err, WM_EFORMAT, "%s: %s", shown, what_else(head, (size_t)length));
    for (size_t i = 0; i < READER_COUNT && status == WM_ENODEV; i++) {
        bool is_asked = readers[i]->recognises && (also_foreign || !readers[i]->is_foreign);
        if (is_asked && readers[i]->recognises(head, (size_t)length))
            status = open_as(readers[i], file, &info, run, ret_recording, err);
    }
    if (status != WM_ENODEV)
        return status;
    if (err)
        err->status = WM_EFORMAT; /* of the reader that did not know it */
    return WM_EFORMAT;
}

static int open_any(const char *path, size_t run, bool also_foreign,
                    struct wm_recording **ret_recording, struct wm_error *err)
{
    const struct stat no_file = { 0 };
    char *file = find_file(path);

    if (!file)
        return wm_fail_memory(err, NULL);
    const struct wm_reader_ops *ops = find_reader_of_url(file);
    int status = ops ? open_as(ops, file, &no_file, run, ret_recording, err)
                     : open_file(file, run, also_foreign, ret_recording, err);
    free(file);
    return status;
}

int wm_recording_open(const char *path, size_t run, struct wm_recording **ret_recording,
                      struct wm_error *err)
{
    return open_any(path, run, false, ret_recording, err);
}

int wm_recording_open_any(const char *path, size_t run, struct wm_recording **ret_recording,
                          struct wm_error *err)
{
    return open_any(path, run, true, ret_recording, err);
}

int wm_recording_open_again(const struct wm_recording *recording,
                            struct wm_recording **ret_recording, struct wm_error *err)
{
    const struct stat info = { .st_dev = recording->device, .st_ino = recording->inode };

    if (!recording->is_one)
        return wm_fail(err, WM_ENODEV, "it cannot be read twice");
    int status =
        open_as(recording->ops, recording->path, &info, recording->run, ret_recording, err);
    if (status == WM_OK)
        (*ret_recording)->stop = recording->stop;
    return status;
}

int wm_recording_count_runs(const char *path, size_t *ret_count, struct wm_error *err)
{
    struct wm_recording *recording;

    int status = wm_recording_open(path, WM_LAST_RUN, &recording, err);
    if (status < 0)
        return status;
    *ret_count = wm_recording_run_count(recording);
    wm_recording_close(recording);
    return WM_OK;
}

int wm_recording_open_files(const struct wm_reader_ops *ops, const char *const *paths,
                            size_t count, struct wm_recording **ret_recording,
                            struct wm_error *err)
{
    const struct stat none = { 0 };
    struct wm_recording *recording = NULL;

    int status = open_as(ops, paths[0], &none, WM_LAST_RUN, &recording, err);
    if (status == WM_OK)
        recording->is_one = false;
    for (size_t i = 1; i < count && status == WM_OK; i++)
        status = ops->add(recording->state, paths[i], err);
    if (status < 0)
        wm_recording_close(recording);
    else
        *ret_recording = recording;
    return status;
}

int wm_recording_stand_in(const struct wm_recording *recording,
                          const struct wm_reader_ops *ops,
                          struct wm_recording **ret_recording, struct wm_error *err)
{
    const struct stat info = { .st_dev = recording->device, .st_ino = recording->inode };

    int status = open_as(ops, recording->path, &info, WM_LAST_RUN, ret_recording, err);
    if (status == WM_OK)
        (*ret_recording)->is_one = false;
    return status;
}

bool wm_recording_is_url(const char *path)
{
    return find_reader_of_url(path) != NULL;
}

void *wm_recording_state(struct wm_recording *recording, const struct wm_reader_ops *ops)
{
    return recording->ops == ops ? recording->state : NULL;
}

void wm_reader_head_release(struct wm_reader_head *head)
{
    wm_run_release(&head->run);
    wm_result_release(&head->result);
    free(head->gaps);
    wm_remarks_release(&head->remarks);
}

static const struct wm_reader_head *head_of(const struct wm_recording *recording)
{
    return (const struct wm_reader_head *)recording->state;
}

void wm_recording_close(struct wm_recording *recording)
{
    if (!recording)
        return;
    recording->ops->close(recording->state);
    free(recording->path);
    free(recording);
}

size_t wm_recording_run_count(const struct wm_recording *recording)
{
    return head_of(recording)->run_count;
}

size_t wm_recording_channel_count(const struct wm_recording *recording)
{
    return head_of(recording)->channel_count;
}

const struct wm_channel *wm_recording_channel(const struct wm_recording *recording,
                                              size_t index)
{
    return &head_of(recording)->channels[index];
}

void wm_recording_stop_on(struct wm_recording *recording, const volatile sig_atomic_t *stop)
{
    recording->stop = stop;
}

int wm_recording_check_stop(const struct wm_recording *recording, struct wm_error *err)
{
    if (!recording->stop || !*recording->stop)
        return WM_OK;
    return wm_fail(err, WM_ECANCELED, "%s: interrupted", wm_recording_path(recording));
}

int wm_recording_next(struct wm_recording *recording, struct wm_tick *ret_tick,
                      struct wm_error *err)
{
    recording->started = true;
    if (wm_recording_check_stop(recording, err) < 0)
        return WM_ECANCELED;
    return recording->ops->next(recording->state, ret_tick, err);
}

const struct wm_static_data *wm_recording_static_data(const struct wm_recording *recording)
{
    return head_of(recording)->static_data;
}

const struct wm_timepoint *wm_recording_timepoint(const struct wm_recording *recording)
{
    return head_of(recording)->timepoint;
}

const char *wm_recording_remark(const struct wm_recording *recording, size_t index)
{
    return wm_remarks_get(&head_of(recording)->remarks, index);
}

const struct wm_run *wm_recording_run(const struct wm_recording *recording)
{
    return &head_of(recording)->run;
}

const struct wm_result *wm_recording_result(const struct wm_recording *recording)
{
    const struct wm_reader_head *head = head_of(recording);

    return head->has_result ? &head->result : NULL;
}

static const struct wm_metric *metric_of(const struct wm_recording *recording, size_t index)
{
    const struct wm_result *result = wm_recording_result(recording);

    return result && index < result->metrics.count ? &result->metrics.all[index] : NULL;
}

const char *wm_recording_metric(const struct wm_recording *recording, size_t index)
{
    const struct wm_metric *metric = metric_of(recording, index);

    return metric ? metric->name : NULL;
}

int wm_recording_metric_value(const struct wm_recording *recording, size_t index,
                              size_t place, int64_t *ret_when_ns, double *ret_value)
{
    const struct wm_metric *metric = metric_of(recording, index);

    if (!metric || place >= metric->count)
        return 0;
    *ret_when_ns = metric->points[place].when_ns;
    *ret_value = metric->points[place].value;
    return 1;
}

const struct wm_channel *wm_recording_channels(const struct wm_recording *recording,
                                               size_t *ret_count)
{
    *ret_count = head_of(recording)->channel_count;
    return head_of(recording)->channels;
}

size_t wm_recording_gaps(const struct wm_recording *recording,
                         const struct wm_gap **ret_gaps)
{
    *ret_gaps = head_of(recording)->gaps;
    return head_of(recording)->gap_count;
}

int wm_recording_regions(struct wm_recording *recording, struct wm_region_batch *ret_batch,
                         struct wm_error *err)
{
    const struct wm_reader_ops *ops = recording->ops;

    recording->started = true;
    if (!ops->regions)
        return 0;
    if (wm_recording_check_stop(recording, err) < 0)
        return WM_ECANCELED;
    return ops->regions(recording->state, ret_batch, err);
}

int wm_recording_calls(struct wm_recording *recording, struct wm_region_batch *ret_batch,
                       struct wm_error *err)
{
    const struct wm_reader_ops *ops = recording->ops;

    recording->started = true;
    if (!ops->calls)
        return 0;
    if (wm_recording_check_stop(recording, err) < 0)
        return WM_ECANCELED;
    return ops->calls(recording->state, ret_batch, err);
}

const char *wm_recording_path(const struct wm_recording *recording)
{
    return recording->inode != 0 ? recording->path : WM_URL_HIDDEN;
}

bool wm_recording_at_start(const struct wm_recording *recording)
{
    return !recording->started;
}

bool wm_recording_is_at(const struct wm_recording *recording, const char *path)
{
    struct stat info;
    char *file = find_file(path);

    bool is_same = recording->inode != 0 && file && stat(file, &info) == 0 &&
                   info.st_dev == recording->device && info.st_ino == recording->inode;
    free(file);
    return is_same;
}
