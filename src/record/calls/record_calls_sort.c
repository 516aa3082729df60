/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls_sort.c - calls in the order of their starts, in bounded memory. */
#include "record/calls/record_calls_sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_file.h"

enum {
    MEMORY_CALLS = 128 * 1024, /* 4 MiB, while they come in and once more while they go */
    CALLS_MIN = 64,            /* that are read of a part at a time, if there are many */
};

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

/* A path has a larger number than those that it lies in. */
static int compare(const void *left, const void *right)
{
    const struct wm_region_record *a = left, *b = right;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
    return (a->stop_ns > b->stop_ns) - (a->stop_ns < b->stop_ns);
}

/* For file systems, or kernels, that have no files without a name: one that loses it. */
static int open_nameless(const char *folder)
{
    char *name = NULL;

    if (asprintf(&name, "%s/wattmeter-XXXXXX", folder) < 0) {
        errno = ENOMEM;
        return -1;
    }
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    free(name);
    return fd;
}

static int open_file(struct wm_call_sort *sort, struct wm_error *err)
{
    const char *folder = wm_env("TMPDIR", "/var/tmp");

    sort->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (sort->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        sort->fd = open_nameless(folder);
    if (sort->fd < 0)
        return wm_fail(err, wm_status_of_errno(errno),
                       "%s: no room there to sort so many calls; set TMPDIR", folder);
    sort->has_file = true;
    return WM_OK;
}

static int write_all(const struct wm_call_sort *sort, const void *bytes, size_t length,
                     struct wm_error *err)
{
    off_t at = sort->end;

    while (length > 0) {
        ssize_t written = pwrite(sort->fd, bytes, length, at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return wm_fail_errno(err, "the calls could not be sorted");
        bytes = (const char *)bytes + written;
        length -= (size_t)written;
        at += written;
    }
    return WM_OK;
}

/* Moves what is in memory to the file. */
static int spill(struct wm_call_sort *sort, struct wm_error *err)
{
    size_t length = sort->count * sizeof(*sort->calls);

    if (wm_array_reserve(&sort->runs, sort->run_count, &sort->run_room,
                         sizeof(*sort->runs)) < 0)
        return out_of_memory(err);
    int status = sort->has_file ? WM_OK : open_file(sort, err);
    qsort(sort->calls, sort->count, sizeof(*sort->calls), compare);
    if (status == WM_OK)
        status = write_all(sort, sort->calls, length, err);
    if (status < 0)
        return status;
    sort->runs[sort->run_count++] =
        (struct wm_call_run) { .at = sort->end, .end = sort->end + (off_t)length };
    sort->end += (off_t)length;
    sort->count = 0;
    return WM_OK;
}

int wm_call_sort_add(struct wm_call_sort *sort, const struct wm_region_record *call,
                     struct wm_error *err)
{
    if (sort->count == MEMORY_CALLS) {
        int status = spill(sort, err);
        if (status < 0)
            return status;
    }
    if (wm_array_reserve(&sort->calls, sort->count, &sort->room, sizeof(*sort->calls)) < 0)
        return out_of_memory(err);
    sort->calls[sort->count++] = *call;
    return WM_OK;
}

/* Reads on in the file: 1, or 0 at the end of the run. */
static int refill(const struct wm_call_sort *sort, struct wm_call_run *run,
                  struct wm_error *err)
{
    size_t wanted = (size_t)(run->end - run->at), length = 0;

    if (wanted > sort->buffer_room * sizeof(*run->calls))
        wanted = sort->buffer_room * sizeof(*run->calls);
    while (length < wanted) {
        ssize_t got = pread(sort->fd, (char *)run->calls + length, wanted - length,
                            run->at + (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return wm_fail_errno(err, "the calls could not be sorted");
        }
        length += (size_t)got;
    }
    run->at += (off_t)length;
    run->first = 0;
    run->count = length / sizeof(*run->calls);
    return run->count > 0;
}

static bool is_before(const struct wm_call_run *a, const struct wm_call_run *b)
{
    return compare(&a->calls[a->first], &b->calls[b->first]) < 0;
}

/* Brings the run at `index` of the heap to where it belongs below. */
static void sift_down(struct wm_call_sort *sort, size_t index)
{
    struct wm_call_run **heap = sort->heap;

    for (;;) {
        size_t least = index;
        for (size_t child = 2 * index + 1; child <= 2 * index + 2; child++) {
            if (child < sort->heap_count && is_before(heap[child], heap[least]))
                least = child;
        }
        if (least == index)
            return;
        struct wm_call_run *run = heap[index];
        heap[index] = heap[least];
        heap[least] = run;
        index = least;
    }
}

int wm_call_sort_end(struct wm_call_sort *sort, struct wm_error *err)
{
    int status = WM_OK;

    if (!sort->has_file) {
        if (sort->count > 1)
            qsort(sort->calls, sort->count, sizeof(*sort->calls), compare);
        return WM_OK;
    }
    if (sort->count > 0)
        status = spill(sort, err);
    if (status < 0)
        return status;
    free(sort->calls);
    sort->calls = NULL;
    sort->room = 0;

    sort->buffer_room = MEMORY_CALLS / sort->run_count;
    if (sort->buffer_room < CALLS_MIN)
        sort->buffer_room = CALLS_MIN;
    sort->heap = calloc(sort->run_count, sizeof(*sort->heap));
    sort->buffers = calloc(sort->run_count * sort->buffer_room, sizeof(*sort->buffers));
    if (!sort->heap || !sort->buffers)
        return out_of_memory(err);
    for (size_t i = 0; i < sort->run_count; i++) {
        sort->runs[i].calls = sort->buffers + i * sort->buffer_room;
        status = refill(sort, &sort->runs[i], err);
        if (status < 0)
            return status;
        sort->heap[sort->heap_count++] = &sort->runs[i];
    }
    for (size_t i = sort->heap_count; i-- > 0;)
        sift_down(sort, i);
    return WM_OK;
}

int wm_call_sort_next(struct wm_call_sort *sort, struct wm_region_record *ret_call,
                      struct wm_error *err)
{
    if (!sort->has_file) {
        if (sort->first == sort->count)
            return 0;
        *ret_call = sort->calls[sort->first++];
        return 1;
    }
    if (sort->heap_count == 0)
        return 0;

    struct wm_call_run *run = sort->heap[0];
    *ret_call = run->calls[run->first++];
    int status = run->first < run->count ? 1 : refill(sort, run, err);
    if (status < 0)
        return status;
    if (status == 0)
        sort->heap[0] = sort->heap[--sort->heap_count];
    sift_down(sort, 0);
    return 1;
}

void wm_call_sort_release(struct wm_call_sort *sort)
{
    if (sort->has_file)
        close(sort->fd);
    free(sort->calls);
    free(sort->runs);
    free(sort->heap);
    free(sort->buffers);
    *sort = (struct wm_call_sort) { 0 };
}
