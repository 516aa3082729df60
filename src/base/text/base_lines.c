/* SPDX-License-Identifier: Apache-2.0 */
/* base_lines.c - a file, line by line. */
#include "base/text/base_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"

/* Grows up to a line of the greatest length. */
enum { BUFFER_MIN = 128 * 1024 };

/* For one more byte at least, and the NUL after it. */
static int make_room(struct wm_lines *lines, struct wm_error *err)
{
    if (lines->start > 0) {
        memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
    }
    if (lines->end + 1 < lines->room)
        return WM_OK;

    size_t room = lines->room > 0 ? 2 * lines->room : BUFFER_MIN;
    char *grown = realloc(lines->buffer, room);
    if (!grown)
        return wm_fail_memory(err, lines->path);
    lines->buffer = grown;
    lines->room = room;
    return WM_OK;
}

int wm_lines_open(struct wm_lines *lines, const char *path, size_t limit,
                  struct wm_error *err)
{
    *lines = (struct wm_lines) {
        .path = wm_text_path(path),
        .limit = limit,
    };
    lines->fd = wm_file_open_at(AT_FDCWD, path);
    if (lines->fd < 0) {
        errno = -lines->fd;
        return wm_fail_errno(err, lines->path);
    }
    lines->is_open = true;
    return make_room(lines, err);
}

void wm_lines_close(struct wm_lines *lines)
{
    if (lines->is_open)
        close(lines->fd);
    free(lines->buffer);
    *lines = (struct wm_lines) { 0 };
}

/* 1, or 0 at the end of the file. */
static int read_more(struct wm_lines *lines, struct wm_error *err)
{
    ssize_t got;

    int status = make_room(lines, err);
    if (status < 0)
        return status;
    do
        got = read(lines->fd, lines->buffer + lines->end, lines->room - lines->end - 1);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return wm_fail_errno(err, lines->path);
    lines->end += (size_t)got;
    return got > 0;
}

int wm_lines_find(struct wm_lines *lines, size_t from, size_t *ret_length,
                  struct wm_error *err)
{
    for (;;) {
        const char *start = lines->buffer + lines->start;
        size_t there = lines->end - lines->start;
        const char *found = there > from ? memchr(start + from, '\n', there - from) : NULL;
        *ret_length = found ? (size_t)(found - start) : there;
        if (*ret_length > lines->limit)
            return wm_fail(err, WM_EFORMAT, "%s:%zu: a line longer than %zu MiB",
                           lines->path, lines->number, lines->limit >> 20);
        if (found)
            return 1;
        from = there;
        int status = read_more(lines, err);
        if (status <= 0)
            return status;
    }
}

int wm_lines_next(struct wm_lines *lines, char **ret_line, size_t *ret_length,
                  struct wm_error *err)
{
    size_t length;

    lines->number++;
    int status = wm_lines_find(lines, 0, &length, err);
    lines->is_whole = status > 0;
    if (status < 0 || (status == 0 && length == 0))
        return status;
    char *line = lines->buffer + lines->start;
    lines->start += length + lines->is_whole;
    if (lines->is_whole && length > 0 && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    size_t mark = lines->number == 1 ? wm_text_mark(line, length) : 0;
    *ret_line = line + mark;
    *ret_length = length - mark;
    return 1;
}

int wm_lines_rewind(struct wm_lines *lines, struct wm_error *err)
{
    if (lseek(lines->fd, 0, SEEK_SET) < 0)
        return wm_fail_errno(err, lines->path);
    lines->start = 0;
    lines->end = 0;
    lines->number = 0;
    return WM_OK;
}
