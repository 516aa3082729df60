/* SPDX-License-Identifier: Apache-2.0 */
/* compat_codecarbon_file.c - a report as one more row of an emissions.csv, to which other
 * programs, and other runs of this one, add as well. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_options.h"
#include "base/base_utf8.h"
#include "compat/codecarbon/compat_codecarbon.h"
#include "record/record_target.h"

enum { HEADER_MAX = 4096 };

struct rows {
    const char *path; /* for messages */
    int fd;           /* valid when is_open */
    bool is_open;
    off_t end;    /* of what was there */
    bool cut_off; /* the last line has no end */
    char header[HEADER_MAX];
    size_t header_length;
};

/* What the file begins and ends with. */
static int look(struct rows *rows, struct wm_error *err)
{
    const char *shown = wm_text_path(rows->path);
    struct stat info;
    char last = '\n';

    if (fstat(rows->fd, &info) < 0)
        return wm_fail_errno(err, shown);
    rows->end = info.st_size;
    if (rows->end == 0)
        return WM_OK;

    ssize_t length = pread(rows->fd, rows->header, sizeof(rows->header), 0);
    if (length < 0 || pread(rows->fd, &last, 1, rows->end - 1) < 0)
        return wm_fail_errno(err, shown);
    const char *end = memchr(rows->header, '\n', (size_t)length);
    if (!end && length == HEADER_MAX)
        return wm_fail(err, WM_EINVAL, "%s: its first line is too long for a header",
                       shown);
    rows->header_length = end ? (size_t)(end - rows->header) : (size_t)length;
    if (rows->header_length > 0 && rows->header[rows->header_length - 1] == '\r')
        rows->header_length--;
    rows->cut_off = last != '\n';
    return WM_OK;
}

static int open_rows(void *state, const char *path, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct rows *rows = state;

    (void)run;
    (void)channels;
    (void)count;
    rows->path = path;
    rows->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (rows->fd < 0)
        return wm_fail_errno(err, wm_text_path(path));
    rows->is_open = true;

    /* Some file systems have none; there a row is still written in one piece. */
    while (flock(rows->fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return look(rows, err);
}

static void close_rows(void *state)
{
    struct rows *rows = state;

    if (rows->is_open)
        close(rows->fd);
}

static const struct wm_recorder_ops ops = {
    .name = "rows",
    .can_append = true,
    .state_size = sizeof(struct rows),
    .open = open_rows,
    .close = close_rows,
};

/* O_APPEND puts it behind whatever is there. */
static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t done = write(fd, text, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        text += done;
        length -= (size_t)done;
    }
    return 0;
}

/* All of the text or nothing, after the last whole line. */
static int add_text(const struct rows *rows, const char *text, size_t length,
                    struct wm_error *err)
{
    if ((!rows->cut_off || write_all(rows->fd, "\n", 1) == 0) &&
        write_all(rows->fd, text, length) == 0 &&
        (fsync(rows->fd) == 0 || errno == EINVAL || errno == EROFS))
        return WM_OK;
    int status = wm_fail_errno(err, wm_text_path(rows->path));
    int ignored = ftruncate(rows->fd, rows->end);
    (void)ignored; /* if it fails a part of the row stays, which the error says */
    return status;
}

/* The row, after a header where there is none yet; the caller's to free. */
static int build_text(const struct wm_report *report, const struct wm_tariff *tariff,
                      const struct rows *rows, char **ret_text, size_t *ret_length,
                      struct wm_error *err)
{
    FILE *out = open_memstream(ret_text, ret_length);

    if (out && rows->end == 0)
        wm_codecarbon_header(out);
    if (out)
        wm_codecarbon_row(report, tariff, rows->end > 0 ? rows->header : NULL,
                          rows->header_length, out);
    bool failed = !out || ferror(out);
    if (out && fclose(out) != 0)
        failed = true;
    return failed ? wm_fail_memory(err, "report") : WM_OK;
}

static int add_row(const struct wm_report *report, const struct wm_tariff *tariff,
                   const struct rows *rows, struct wm_error *err)
{
    size_t length = 0;
    char *text = NULL;

    if (rows->end > 0 && !wm_codecarbon_is_header(rows->header, rows->header_length))
        return wm_fail(err, WM_EINVAL, "%s: its columns are not CodeCarbon's",
                       wm_text_path(rows->path));
    int status = build_text(report, tariff, rows, &text, &length, err);
    if (status == WM_OK)
        status = add_text(rows, text, length, err);
    free(text);
    return status;
}

int wm_report_write_codecarbon(const struct wm_report *report, const char *path,
                               enum wm_record_mode mode,
                               const struct wm_report_style *given, struct wm_error *err)
{
    struct wm_tariff tariff = { 0 };
    struct wm_target target;

    struct wm_report_style style;
    int status = wm_options_read(given, &style, sizeof(style), err);
    if (status == WM_OK)
        status = wm_tariff_of_style(&style, &tariff, err);
    if (status == WM_OK)
        status = wm_target_open(&target, &ops, path, mode, NULL, NULL, 0, err);
    if (status < 0)
        return status;
    const struct rows *rows = target.state;
    if (rows->end > 0)
        target.made = false; /* whoever came between has a row in it */
    status = add_row(report, &tariff, rows, err);
    if (status == WM_OK)
        status = wm_target_verify(&target, err);
    if (status == WM_OK)
        wm_target_keep(&target);
    /* A new file to which nothing could be added is gone afterwards, and the one that it
     * was to replace is back. */
    wm_target_close(&target);
    return status;
}
