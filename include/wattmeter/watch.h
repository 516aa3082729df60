/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - shows a running session in the terminal. The code is in a separate library,
 * wattmeter-watch.so, because it needs ncurses. `wattmeter watch` loads it.
 *
 *     void *library = dlopen("wattmeter-watch.so", RTLD_NOW);
 *     const struct wm_watch_module *module = dlsym(library, "wm_watch_module");
 *     const struct wm_watch_request request = { .title = "make -j8", .wake = -1,
 *                                               .refresh_ns = 200000000,
 *                                               .window_ns = 20000000000 };
 *     struct wm_recording *live;
 *     struct wm_watch *watch;
 *     if (module->open(&request, &watch, &err) < 0)
 *         return fail(&err);
 *     if (wm_tracker_live(tracker, &live, &err) == WM_OK &&
 *         module->begin(watch, live, &err) == WM_OK)
 *         while (module->turn(watch))
 *             ;
 *     module->close(watch);
 *
 * Call all functions from one thread, which need not be the tracker's. The rules of
 * source.h hold here too.
 */
#ifndef WATTMETER_WATCH_H
#define WATTMETER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"
#include "wattmeter/report.h"
#include "wattmeter/tracker.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_watch;

struct wm_watch_request {
    int terminal;        /* a file descriptor, for reading and writing */
    int wake;            /* turn() returns when this descriptor is readable; -1: none */
    const char *title;   /* what is measured */
    const char *where;   /* the recording; NULL: none */
    int64_t refresh_ns;  /* between two pictures */
    int64_t window_ns;   /* of time that the chart shows */
    bool without_colour; /* NO_COLOR */
};

/* Values that the samples do not have. */
struct wm_watch_news {
    struct wm_report_figure energy;        /* of the machine */
    struct wm_report_figure target_energy; /* of the processes that are measured */
    struct wm_report_figure target_cpu_time;
    double time_s; /* from the first sample to the last of these */
    const struct wm_tracker_process *processes;
    size_t process_count;
};

/* wattmeter-watch.so exports this under the name wm_watch_module. */
struct wm_watch_module {
    const char *version; /* WM_VERSION of it */

    /* Checks whether the terminal can show the view. Writes nothing to it. */
    int (*check)(int terminal, struct wm_error *err);

    /* Takes over the terminal until close(). The strings of the request are copied. */
    int (*open)(const struct wm_watch_request *request, struct wm_watch **ret_watch,
                struct wm_error *err);

    /* From here on turn() reads the samples of `live`, which lives until close(). */
    int (*begin)(struct wm_watch *watch, struct wm_recording *live, struct wm_error *err);

    void (*tell)(struct wm_watch *watch, const struct wm_watch_news *news);

    /* Draws, and handles keys until the next picture is due. False: the user has quit, or
     * the terminal is gone. */
    bool (*turn)(struct wm_watch *watch);

    /* Restores the terminal. Accepts NULL. */
    void (*close)(struct wm_watch *watch);
};

#ifdef __cplusplus
}
#endif
#endif
