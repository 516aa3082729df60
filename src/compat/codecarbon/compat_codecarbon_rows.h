/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_codecarbon_rows.h - adding lines to a text file that other programs, and other
 * runs of this one, add to as well: all of them or none, and after the last whole line.
 *
 *     wm_rows_open(&rows, path, mode, &err);
 *     if (rows.header) ...                        the first line that is there
 *     wm_rows_add(&rows, text, length, &err);
 *     wm_rows_close(&rows);
 */
#ifndef WM_COMPAT_CODECARBON_ROWS_H
#define WM_COMPAT_CODECARBON_ROWS_H

#include <stddef.h>

#include "record/record_target.h"

struct wm_rows {
    struct wm_target target;
    const char *header; /* without its end; NULL: the file is empty */
    size_t header_length;
};

/* The file is locked until it is closed, where its file system has locks. On failure
 * there is nothing to close, and everything is as it was before. WM_EINVAL when its
 * first line is too long to be a header. */
int wm_rows_open(struct wm_rows *ret_rows, const char *path, enum wm_record_mode mode,
                 struct wm_error *err);

int wm_rows_add(struct wm_rows *rows, const char *text, size_t length,
                struct wm_error *err);

/* A new file to which nothing could be added is gone afterwards, and the one that it
 * was to replace is back. */
void wm_rows_close(struct wm_rows *rows);

#endif
