/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_lines.h - a file that somebody else wrote, line by line and in bounded
 * memory.
 *
 * All zero is a closed file. The path is for messages and is borrowed.
 */
#ifndef WM_BASE_LINES_H
#define WM_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"

struct wm_lines {
    const char *path;
    int fd;
    bool is_open;
    bool is_whole; /* the line read last: it has an end */
    char *buffer;
    size_t room, start, end; /* what is in it and not used yet */
    size_t limit;            /* of a line's length */
    size_t number;           /* of the line read last, from 1 */
};

/* Opens the file at `path`, whose lines have up to `limit` bytes. */
int wm_lines_open(struct wm_lines *lines, const char *path, size_t limit,
                  struct wm_error *err);

void wm_lines_close(struct wm_lines *lines);

/* The next line, without its end but with a NUL: 1, or 0 past the last one, which may lack
 * its end: `is_whole` says so. It stands in the buffer, to be changed at will, until the
 * next call. The mark that Windows puts before UTF-8 is left out. WM_EFORMAT: it is too
 * long. */
int wm_lines_next(struct wm_lines *lines, char **ret_line, size_t *ret_length,
                  struct wm_error *err);

/* Looks for the end of a line, `from` bytes or more behind `start`: 1 and how far it is, or
 * 0 and how much the file has up to its end. */
int wm_lines_find(struct wm_lines *lines, size_t from, size_t *ret_length,
                  struct wm_error *err);

/* Back to the first line. */
int wm_lines_rewind(struct wm_lines *lines, struct wm_error *err);

#endif
