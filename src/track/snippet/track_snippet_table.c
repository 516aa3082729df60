/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_table.c - rows of comma-separated values (RFC 4180, but for the line's
 * end). */
#include "track/snippet/track_snippet_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/base_out.h"

struct wm_meter_table {
    struct wm_out out;
    char *path;
    bool is_made;         /* by us: it goes away when it comes to nothing */
    bool in_row;          /* something stands in the row that is at work */
    uint64_t lost;        /* rows */
    struct wm_error loss; /* of the first of them */
};

/* The file is there after this. */
static int make_file(struct wm_meter_table *table, enum wm_record_mode mode,
                     struct wm_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    int fd = open(table->path, flags | O_EXCL, 0666);

    table->is_made = fd >= 0;
    if (fd >= 0)
        close(fd);
    if (fd < 0 && (errno != EEXIST || mode == WM_RECORD_NEW))
        return wm_fail_errno(err, table->path);
    return WM_OK;
}

static int begin_file(struct wm_meter_table *table, const char *header,
                      struct wm_error *err)
{
    if (!header)
        return WM_OK;
    wm_out_text(&table->out, header);
    wm_out_text(&table->out, "\n");
    return wm_out_flush(&table->out, err);
}

static int check_header(const struct wm_meter_table *table, const char *header,
                        struct wm_error *err)
{
    size_t length = strlen(header);
    char *there = malloc(length + 1);

    if (!there)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", table->path);
    ssize_t got = pread(table->out.fd, there, length + 1, 0);
    bool is_same = got == (ssize_t)length + 1 && there[length] == '\n' &&
                   memcmp(there, header, length) == 0;
    free(there);
    if (!is_same)
        return wm_fail(err, WM_EEXIST, "%.180s: its columns are not those it would get",
                       table->path);
    return WM_OK;
}

/* A row that was torn when its writer was killed stays what it is, in a line of its
 * own. */
static int go_on(struct wm_meter_table *table, off_t size, const char *header,
                 struct wm_error *err)
{
    char last;

    if (header) {
        int status = check_header(table, header, err);
        if (status < 0)
            return status;
    }
    table->out.end = table->out.written = size;
    if (pread(table->out.fd, &last, 1, size - 1) != 1)
        return wm_fail_errno(err, table->path);
    if (last == '\n')
        return WM_OK;
    wm_out_text(&table->out, "\n");
    return wm_out_flush(&table->out, err);
}

static int open_file(struct wm_meter_table *table, enum wm_record_mode mode,
                     const char *header, struct wm_error *err)
{
    struct stat info;

    int status = make_file(table, mode, err);
    if (status == WM_OK)
        status = wm_out_open(&table->out, table->path, err);
    if (status < 0)
        return status;
    if (fstat(table->out.fd, &info) < 0)
        return wm_fail_errno(err, table->path);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%.200s: not a regular file", table->path);

    /* Each of two writers would write over the other's rows. */
    if (flock(table->out.fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? wm_fail(err, WM_EEXIST, "%.200s: another meter writes to it",
                             table->path)
                   : wm_fail_errno(err, table->path);
    if (mode == WM_RECORD_APPEND && info.st_size > 0)
        return go_on(table, info.st_size, header, err);
    if (ftruncate(table->out.fd, 0) < 0)
        return wm_fail_errno(err, table->path);
    return begin_file(table, header, err);
}

static void release(struct wm_meter_table *table)
{
    wm_out_close(&table->out);
    free(table->path);
    free(table);
}

void wm_meter_table_abandon(struct wm_meter_table *table)
{
    if (!table)
        return;
    if (table->is_made)
        unlink(table->path);
    release(table);
}

int wm_meter_table_open(const char *path, enum wm_record_mode mode, const char *header,
                        struct wm_meter_table **ret_table, struct wm_error *err)
{
    struct wm_meter_table *table = calloc(1, sizeof(*table));

    if (table)
        table->path = strdup(path);
    if (!table || !table->path) {
        free(table);
        return wm_fail(err, WM_ENOMEM, "%.200s: out of memory", path);
    }
    int status = open_file(table, mode, header, err);
    if (status < 0) {
        wm_meter_table_abandon(table);
        return status;
    }
    *ret_table = table;
    return WM_OK;
}

int wm_meter_table_close(struct wm_meter_table *table, struct wm_error *err)
{
    int status = WM_OK;

    if (!table)
        return WM_OK;
    if (table->lost > 0)
        status = wm_fail(err, WM_EIO, "%" PRIu64 " rows are missing: %.200s", table->lost,
                         table->loss.text);
    release(table);
    return status;
}

static void separate(struct wm_meter_table *table)
{
    if (table->in_row)
        wm_out_text(&table->out, ",");
    table->in_row = true;
}

void wm_meter_table_number(struct wm_meter_table *table, struct wm_meter_cell cell)
{
    separate(table);
    if (cell.is_known)
        wm_out_number(&table->out, cell.value);
}

void wm_meter_table_text(struct wm_meter_table *table, const char *text)
{
    separate(table);
    wm_out_cell(&table->out, text, strlen(text));
}

int wm_meter_table_end_row(struct wm_meter_table *table, struct wm_error *err)
{
    struct wm_error why;

    wm_out_text(&table->out, "\n");
    table->in_row = false;
    int status = wm_out_flush(&table->out, &why);
    if (status == WM_OK)
        return WM_OK;
    if (table->lost++ == 0)
        table->loss = why;
    return wm_fail(err, WM_EIO, "%s", why.text);
}
