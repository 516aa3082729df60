/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - draws recordings as figures and films. The code is in a separate library,
 * wattmeter-plot.so, because it needs cairo and pango. Load it as in this example.
 *
 *     void *library = dlopen("wattmeter-plot.so", RTLD_NOW);
 *     const struct wm_plot_module *module = dlsym(library, "wm_plot_module");
 *     const struct wm_plot_input input = { .path = "run.sqlite", .run = WM_LAST_RUN };
 *     const struct wm_plot_request request = { .inputs = &input, .input_count = 1,
 *                                              .format = WM_FORMAT_SVG };
 *     if (strcmp(module->version, WM_VERSION) == 0)
 *         module->write(&request, stdout, &err);
 *
 * The rules of source.h hold here too.
 */
#ifndef WATTMETER_PLOT_H
#define WATTMETER_PLOT_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum wm_plot_kind {
    WM_PLOT_TIME = 0, /* panels over one time axis */
    /* Energy over time: a point for each recording, arrows between them. */
    WM_PLOT_ENERGY = 1,
    WM_PLOT_REGIONS = 2, /* the energy of each region as bars, or its time */
    WM_PLOT_CAPS = 3, /* energy over time under each cap; inputs: tables (cap_search.h) */
    WM_PLOT_REPEATS = 4, /* a box for each command and metric, a point for each run */
    /* A flame graph of one recording: regions by path, titles in an SVG. */
    WM_PLOT_FLAME = 5,
};

struct wm_plot_input {
    const char *path;
    const char *name; /* its name in the figure; NULL: the name of the file */
    size_t run;       /* as in wm_recording_open() */
};

/* Zero-initialize all but the inputs and the format for the defaults. */
struct wm_plot_request {
    const struct wm_plot_input *inputs;
    size_t input_count; /* 1 at least */
    enum wm_plot_kind kind;
    enum wm_format format; /* a figure's or a film's */

    /* Panels ("power"), devices ("gpu0"), metrics ("memory_used"), columns of the recording
     * ("gpu0_power_W") or metrics of the program ("accuracy"). If there are none: all
     * channels that have a panel. A panel shows a counter as its rate. If its metric or
     * column is named, it is drawn as its total in joules or seconds. */
    const char *const *channels;
    size_t channel_count;

    FILE *names; /* gets a list of the known names, as text, if a word of `channels` or
                  * `layout` is unknown, and why regions are drawn by time instead of
                  * energy; may be NULL */

    /* Panels from top to bottom, "power,memory"; a '/' separates columns of panels,
     * "power/memory,clocks"; "power+temperature" is one panel with two axes. A panel may be
     * any word that `channels` may have. NULL: all panels in one column. */
    const char *layout;

    /* "12.5", seconds since the start of each run, or RFC 3339; NULL: the whole run. */
    const char *from, *to;

    const char *title;    /* NULL: the command that was measured; "": none */
    bool without_regions; /* no bands */
    bool fits;      /* axes of power, use and memory begin at the least value, not 0 */
    bool by_time;   /* of regions and flames: time, even if energy is known */
    bool by_energy; /* of regions and flames: fail if energy is unknown */
    bool without_legend;
    bool is_dark;     /* light text and lines on a dark ground */
    const char *size; /* "960x720" in pixels at 96 dpi, of a film in its own; "89x60mm";
                       * "column" or "page" of a journal; NULL: 960x720 */
    const char *font; /* "NAME,POINTS", one of them at least; NULL: DejaVu Sans of 9 points,
                       * of 7 if the size is in millimetres */
    double dpi;       /* of WM_FORMAT_PNG; 0: 96, 300 if the size is in millimetres. Of a
                       * film, in which it says how large text and lines are; 0: 150 */
    const volatile sig_atomic_t *stop; /* as in wm_recording_stop_on(); may be NULL */
};

/* A film of WM_PLOT_TIME: a window that follows the newest sample. Zero-initialize all but
 * `path` for the defaults. */
struct wm_plot_film {
    const char *path; /* of the file, which is written completely or not at all */
    bool overwrite;   /* a file that exists is replaced */
    double fps;       /* pictures in a second; 0: 30 */
    double speed;     /* seconds of the recording in one of the film; 0: 1 */
    double window;    /* seconds of the recording in one picture; 0: 20 times speed */

    /* Called after each picture by the thread that requested the film; a result other than
     * 0 ends the film with WM_ECANCELED. NULL: no calls. */
    int (*progress)(void *context, size_t done, size_t total);
    void *context;
};

/* wattmeter-plot.so exports this under the name wm_plot_module. */
struct wm_plot_module {
    const char *version; /* WM_VERSION of it */

    /* Draws to `out`. If a recording cannot be read or drawn, writes nothing. */
    int (*write)(const struct wm_plot_request *request, FILE *out, struct wm_error *err);

    /* Makes a film with the program ffmpeg, both at the lowest priority. WM_ENODEV: ffmpeg
     * is not installed. */
    int (*film)(const struct wm_plot_request *request, const struct wm_plot_film *film,
                struct wm_error *err);
};

#ifdef __cplusplus
}
#endif
#endif
