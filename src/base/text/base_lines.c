/* SPDX-License-Identifier: Apache-2.0 */
/* base_lines.c - a file, line by line. */
#include "base/text/base_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"

/* Grows up to a line of the greatest length. */
enum { BUFFER_MIN = 64 * 1024 };

static int out_of_memory(const struct wm_lines *lines, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", lines->path);
}

/* For one more byte at least, and the NUL after it. */
static int make_room(struct wm_lines *lines, struct wm_error *err)
{
    if (lines->start > 0) {
        memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
        return WM_OK;
    }
    if (lines->end + 1 < lines->room)
        return WM_OK;

    size_t room = lines->room > 0 ? 2 * lines->room : BUFFER_MIN;
    char *grown = realloc(lines->buffer, room);
    if (!grown)
        return out_of_memory(lines, err);
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

/* Of the first line; how much of it is that mark. */
static size_t mark_length(const struct wm_lines *lines, const char *line, size_t length)
{
    return lines->number == 1 ? wm_text_mark(line, length) : 0;
}

int wm_lines_next(struct wm_lines *lines, char **ret_line, size_t *ret_length,
                  struct wm_error *err)
{
    size_t searched = 0; /* of what follows `start` */

    lines->number++;
    for (;;) {
        char *start = lines->buffer + lines->start;
        size_t there = lines->end - lines->start;
        char *found =
            there > searched ? memchr(start + searched, '\n', there - searched) : NULL;
        size_t length = found ? (size_t)(found - start) : there;
        if (length > lines->limit)
            return wm_fail(err, WM_EFORMAT, "%s: line %zu: longer than %zu MiB",
                           lines->path, lines->number, lines->limit >> 20);
        if (found) {
            lines->start += length + 1;
            if (length > 0 && start[length - 1] == '\r')
                length--;
            start[length] = '\0';
            size_t mark = mark_length(lines, start, length);
            *ret_line = start + mark;
            *ret_length = length - mark;
            return 1;
        }
        searched = there;
        int status = read_more(lines, err);
        if (status <= 0)
            return status;
    }
}

int wm_lines_skip(struct wm_lines *lines, struct wm_error *err)
{
    for (;;) {
        const char *start = lines->buffer + lines->start;
        const char *found = memchr(start, '\n', lines->end - lines->start);
        if (found) {
            lines->start += (size_t)(found - start) + 1;
            return 1;
        }
        lines->start = 0;
        lines->end = 0;
        int status = read_more(lines, err);
        if (status <= 0)
            return status;
    }
}

size_t wm_lines_rest(struct wm_lines *lines, char **ret_rest)
{
    char *rest = lines->buffer + lines->start;
    size_t length = lines->end - lines->start, mark = mark_length(lines, rest, length);

    rest[length] = '\0';
    *ret_rest = rest + mark;
    return length - mark;
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
