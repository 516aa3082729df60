/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_plot_ffmpeg.h - ffmpeg as a program that makes a film of pictures.
 *
 *     struct wm_plot_ffmpeg ffmpeg;
 *     status = wm_plot_ffmpeg_start(WM_FORMAT_MP4, 960, 720, 30, draft, &ffmpeg, err);
 *     while (status == WM_OK && more_pixels())
 *         status = wm_plot_ffmpeg_take(&ffmpeg, pixels, size, err) < 0 ? WM_EIO : WM_OK;
 *     status = wm_plot_ffmpeg_end(&ffmpeg, status, err);
 */
#ifndef WM_VIEW_PLOT_FFMPEG_H
#define WM_VIEW_PLOT_FFMPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "wattmeter/plot.h"

struct wm_plot_ffmpeg {
    pid_t pid;
    int pictures; /* a socket, because a pipe that nobody reads is a signal */
    int said;     /* a file of what it writes on its standard error */
    bool is_gone; /* it takes no more pictures */
};

/* Starts it; WM_ENODEV where there is none. Pictures are rows of that many pixels of four
 * bytes: blue, green, red, and one that is nothing. The first picture of a GIF is not seen:
 * it has all colours of the film. The film replaces the file at `path`. */
int wm_plot_ffmpeg_start(enum wm_format format, int width, int height, double fps,
                         const char *path, struct wm_plot_ffmpeg *ret_ffmpeg,
                         struct wm_error *err);

/* Hands it as much of the pictures as it takes within a tenth of a second: how much that
 * was, 0 included; or WM_EIO where it has ended. */
ssize_t wm_plot_ffmpeg_take(struct wm_plot_ffmpeg *ffmpeg, const void *pixels, size_t size,
                            struct wm_error *err);

/* Waits until the film is whole, or ends ffmpeg at once where `status` says that it will
 * not be. The result is `status`, or what came of ffmpeg. */
int wm_plot_ffmpeg_end(struct wm_plot_ffmpeg *ffmpeg, int status, struct wm_error *err);

#endif
