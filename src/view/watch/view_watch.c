/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch.c - a session in the terminal while it goes on: samples, keys, pictures. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "record/record_read.h"
#include "record/run/record_run.h"
#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"
#include "wattmeter/version.h"

struct wm_watch {
    struct wm_watch_screen *screen;
    struct wm_watch_view view;
    struct wm_recording *live;
    int terminal, wake;
    int64_t refresh_ns;
    char *title, *where;
};

static void watch_close(struct wm_watch *watch)
{
    if (!watch)
        return;
    wm_watch_screen_close(watch->screen);
    wm_watch_data_release(&watch->view.data);
    wm_watch_processes_release(&watch->view.processes);
    for (size_t i = 0; i < WM_WATCH_CHARTS; i++)
        wm_watch_chart_release(&watch->view.charts[i]);
    free(watch->title);
    free(watch->where);
    free(watch);
}

static int watch_open(const struct wm_watch_request *request, struct wm_watch **ret_watch,
                      struct wm_error *err)
{
    struct wm_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return wm_fail_memory(err, "view");
    watch->terminal = request->terminal;
    watch->wake = request->wake;
    watch->refresh_ns = request->refresh_ns;
    watch->view.window_ns = request->window_ns;
    watch->title = strdup(request->title);
    watch->where = strdup(request->where ? request->where : "");
    watch->view.title = watch->title;
    watch->view.where = watch->where;
    int status = watch->title && watch->where ? WM_OK : wm_fail_memory(err, "view");
    if (status == WM_OK)
        status = wm_watch_screen_open(request->terminal, request->without_colour,
                                      &watch->screen, err);
    if (status < 0)
        watch_close(watch);
    else
        *ret_watch = watch;
    return status;
}

/* A process is called by its command, too. */
static void name_process(struct wm_watch *watch, const struct wm_run *run)
{
    char command[WM_COMMAND_SIZE], *title;

    if (!run->mode || strcmp(run->mode, "attach") != 0 || wm_run_is_of_all(run))
        return;
    wm_line_command(command, sizeof(command), run);
    if (asprintf(&title, "%s: %s", watch->title, command) < 0)
        return;
    free(watch->title);
    watch->view.title = watch->title = title;
}

static int watch_begin(struct wm_watch *watch, struct wm_recording *live,
                       struct wm_error *err)
{
    int status = wm_watch_data_init(&watch->view.data, live, watch->view.window_ns, err);

    if (status < 0)
        return status;
    name_process(watch, wm_recording_run(live));
    watch->live = live;
    return WM_OK;
}

static void watch_tell(struct wm_watch *watch, const struct wm_watch_news *news)
{
    struct wm_watch_view *view = &watch->view;
    double seconds = news->time_s - view->told_s;

    if (view->is_paused)
        return;
    wm_watch_meter_take(&view->machine, &news->energy, seconds);
    wm_watch_meter_take(&view->target, &news->target_energy, seconds);
    wm_watch_meter_take(&view->target_cpu, &news->target_cpu_time, seconds);
    view->told_s = news->time_s;
    wm_watch_processes_take(&view->processes, news);
}

static void take_samples(struct wm_watch *watch)
{
    struct wm_watch_view *view = &watch->view;
    struct wm_tick tick;

    /* They wait for so long, the oldest being given up at last. */
    while (!view->is_paused && watch->live &&
           wm_recording_next(watch->live, &tick, NULL) > 0)
        wm_watch_data_add(&view->data, &tick);
    view->newest_ns = view->data.newest_ns;
}

/* Obeys all that has been typed; `ret_has_key` says whether there was something. */
static bool read_keys(struct wm_watch *watch, bool *ret_has_key)
{
    struct wm_watch_input input;

    *ret_has_key = false;
    while ((input = wm_watch_screen_key()).key != WM_WATCH_NOTHING) {
        *ret_has_key = true;
        if (!wm_watch_obey(&watch->view, &input))
            return false;
    }
    return true;
}

static bool watch_turn(struct wm_watch *watch)
{
    int64_t due_ns = wm_clock_monotonic_ns() + watch->refresh_ns;
    struct pollfd waits[] = { { .fd = watch->terminal, .events = POLLIN },
                              { .fd = watch->wake, .events = POLLIN } };
    bool has_key = false;

    take_samples(watch);
    if (!watch->view.is_paused)
        wm_watch_draw(watch->screen, &watch->view);
    for (int64_t left_ns; (left_ns = due_ns - wm_clock_monotonic_ns()) > 0;) {
        int ready = poll(waits, 2, (int)((left_ns + 999999) / 1000000));
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready > 0 && (waits[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
            return false;
        if (!read_keys(watch, &has_key))
            return false;
        if (has_key)
            wm_watch_draw(watch->screen, &watch->view);
        if (ready > 0 && waits[1].revents)
            break;
    }
    return true;
}

WM_API extern const struct wm_watch_module wm_watch_module;
const struct wm_watch_module wm_watch_module = {
    .version = WM_VERSION,
    .check = wm_watch_screen_check,
    .open = watch_open,
    .begin = watch_begin,
    .tell = watch_tell,
    .turn = watch_turn,
    .close = watch_close,
};
