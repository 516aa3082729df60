/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_out.h - appending to a file through a buffer, so that a failure can be
 * taken back: what was not flushed by then is as if it had never been written.
 *
 * The functions that put something do not fail; wm_out_flush() says whether all
 * of it has arrived.
 */
#ifndef WM_BASE_OUT_H
#define WM_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"

struct wm_out {
    int fd;
    const char *path; /* for messages; borrowed */
    off_t end;        /* of what has been flushed for good */
    off_t written;    /* of what is in the file already */
    int error;        /* the errno of the first failure since then */
    char *buffer;
    size_t used;
};

/* Opens the file at `path`, which is there and empty. wm_out_close() is due
 * even after a failure. */
int wm_out_open(struct wm_out *out, const char *path, struct wm_error *err);

/* Closes the file without a flush. Accepts what is all zero. */
void wm_out_close(struct wm_out *out);

void wm_out_text(struct wm_out *out, const char *text);
void wm_out_int(struct wm_out *out, int64_t value);

/* Nothing at all for NaN and infinity. */
void wm_out_number(struct wm_out *out, double value);

/* A cell of CSV, in quotes where it needs them. */
void wm_out_cell(struct wm_out *out, const char *text, size_t length);

/* Where the next byte will stand. */
off_t wm_out_position(const struct wm_out *out);

/* Drops everything from `at` on, flushed or not: the next output goes there. */
void wm_out_rewind(struct wm_out *out, off_t at);

/* Writes out the buffer. On failure the file ends where it did after the last
 * success, and all that was put since then is gone. */
int wm_out_flush(struct wm_out *out, struct wm_error *err);

/* All that was put since the last flush is gone. */
void wm_out_discard(struct wm_out *out);

/* Writes over what is in the file. */
int wm_out_overwrite(struct wm_out *out, off_t at, const char *bytes, size_t length,
                     struct wm_error *err);

/* Waits until the disk has it all: only then are delayed errors known. */
int wm_out_sync(struct wm_out *out, struct wm_error *err);

#endif
