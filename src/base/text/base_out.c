/* SPDX-License-Identifier: Apache-2.0 */
/* base_out.c - appending to a file through a buffer. */
#include "base/text/base_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_text.h"
#include "base/text/base_number.h"

enum { BUFFER_SIZE = 64 * 1024 };

int wm_out_open(struct wm_out *out, const char *path, struct wm_error *err)
{
    *out = (struct wm_out) { .fd = -1, .path = path };
    out->buffer = malloc(BUFFER_SIZE);
    if (!out->buffer)
        return wm_fail_memory(err, path);
    out->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (out->fd < 0)
        return wm_fail_errno(err, path);
    return WM_OK;
}

void wm_out_close(struct wm_out *out)
{
    /* The buffer comes first, so without one there is no file. */
    if (out->buffer && out->fd >= 0)
        close(out->fd);
    free(out->buffer);
    *out = (struct wm_out) { .fd = -1 };
}

/* 0 or an errno value. */
static int write_all(int fd, const char *bytes, size_t length, off_t at)
{
    while (length > 0) {
        ssize_t done = pwrite(fd, bytes, length, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        bytes += done;
        length -= (size_t)done;
        at += done;
    }
    return 0;
}

/* Whether another program has cut the file off. Writing on would leave a hole of zeros. */
static bool is_cut(const struct wm_out *out)
{
    struct stat info;

    return fstat(out->fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size < out->end;
}

static int fail(const struct wm_out *out, int number, struct wm_error *err)
{
    if (number == ESTALE)
        return wm_fail(err, WM_ECANCELED,
                       "%s: cut off by another program while it was written", out->path);
    errno = number;
    return wm_fail_errno(err, out->path);
}

static void drain(struct wm_out *out)
{
    if (out->error == 0 && is_cut(out))
        out->error = ESTALE;
    if (out->error == 0)
        out->error = write_all(out->fd, out->buffer, out->used, out->written);
    if (out->error == 0)
        out->written += (off_t)out->used;
    out->used = 0;
}

static void put_bytes(struct wm_out *out, const char *bytes, size_t length)
{
    while (length > 0) {
        if (out->used == BUFFER_SIZE)
            drain(out);
        size_t part = BUFFER_SIZE - out->used < length ? BUFFER_SIZE - out->used : length;
        memcpy(out->buffer + out->used, bytes, part);
        out->used += part;
        bytes += part;
        length -= part;
    }
}

void wm_out_text(struct wm_out *out, const char *text)
{
    put_bytes(out, text, strlen(text));
}

void wm_out_int(struct wm_out *out, int64_t value)
{
    char text[WM_NUMBER_SIZE];
    int length = snprintf(text, sizeof(text), "%lld", (long long)value);

    put_bytes(out, text, (size_t)length);
}

void wm_out_number(struct wm_out *out, double value)
{
    char text[WM_NUMBER_SIZE];

    put_bytes(out, text, wm_number_format(value, text));
}

void wm_out_cell(struct wm_out *out, const char *text, size_t length)
{
    enum { PIECE = 256 };
    char piece[2 * PIECE];

    if (!wm_text_is_quoted(text, length)) {
        put_bytes(out, text, length);
        return;
    }
    wm_out_text(out, "\"");
    for (size_t i = 0; i < length; i += PIECE) {
        size_t rest = length - i < PIECE ? length - i : PIECE;
        put_bytes(out, piece, wm_text_double_quotes(piece, text + i, rest));
    }
    wm_out_text(out, "\"");
}

off_t wm_out_position(const struct wm_out *out)
{
    return out->written + (off_t)out->used;
}

void wm_out_rewind(struct wm_out *out, off_t at)
{
    if (at >= out->written) {
        out->used = (size_t)(at - out->written);
        return;
    }
    out->used = 0;
    out->written = at;
    out->end = at < out->end ? at : out->end;
    if (ftruncate(out->fd, at) < 0 && out->error == 0)
        out->error = errno;
}

void wm_out_discard(struct wm_out *out)
{
    out->used = 0;
    out->error = 0;
    out->written = out->end;

    /* Should this fail too, the next attempt writes over what is too much. */
    if (is_cut(out))
        return;
    int ignored = ftruncate(out->fd, out->end);
    (void)ignored;
}

int wm_out_flush(struct wm_out *out, struct wm_error *err)
{
    drain(out);
    if (out->error == 0) {
        out->end = out->written;
        return WM_OK;
    }

    int status = fail(out, out->error, err);
    wm_out_discard(out);
    return status;
}

int wm_out_overwrite(struct wm_out *out, off_t at, const char *bytes, size_t length,
                     struct wm_error *err)
{
    int number = is_cut(out) ? ESTALE : write_all(out->fd, bytes, length, at);

    return number == 0 ? WM_OK : fail(out, number, err);
}

int wm_out_sync(struct wm_out *out, struct wm_error *err)
{
    /* Some file systems have no notion of it, which is no failure to write. */
    if (fsync(out->fd) < 0 && errno != EINVAL && errno != EROFS)
        return wm_fail_errno(err, out->path);
    return WM_OK;
}
