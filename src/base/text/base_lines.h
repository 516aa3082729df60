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
    char *buffer;
    size_t room, start, end; /* what is in it and not used yet */
    size_t limit;            /* of a line's length */
    size_t number;           /* of the line read last, from 1 */
};

/* Opens the file at `path`, whose lines have up to `limit` bytes. */
int wm_lines_open(struct wm_lines *lines, const char *path, size_t limit,
                  struct wm_error *err);

void wm_lines_close(struct wm_lines *lines);

/* The next line, without its end but with a NUL: 1, or 0 past the last whole
 * one. It stands in the buffer, to be changed at will, until the next call. The
 * mark that Windows puts before UTF-8 is left out. WM_EFORMAT: it is too long. */
int wm_lines_next(struct wm_lines *lines, char **ret_line, size_t *ret_length,
                  struct wm_error *err);

/* Past a line that was too long: 1, or 0 where the file ends in it. */
int wm_lines_skip(struct wm_lines *lines, struct wm_error *err);

/* After the last whole line: what follows it, with a NUL, as above. Its length;
 * 0 where the file ends with a line. */
size_t wm_lines_rest(struct wm_lines *lines, char **ret_rest);

/* Back to the first line. */
int wm_lines_rewind(struct wm_lines *lines, struct wm_error *err);

#endif
