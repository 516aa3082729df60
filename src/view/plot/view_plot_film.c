/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_film.c - a film: figures of a window that follows the newest sample, drawn by
 * several threads and handed to ffmpeg in their order. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_thread.h"
#include "base/base_utf8.h"
#include "view/plot/view_plot.h"
#include "view/plot/view_plot_ffmpeg.h"
#include "view/plot/view_plot_page.h"

#define DPI 150.0
#define FPS 30.0
#define WINDOW 20.0 /* seconds of the film in which a sample goes by */

#define FPS_MOST 240.0

/* Browsers show a shorter picture of a GIF for a tenth of a second. */
#define GIF_FPS_MOST 50.0
#define SECONDS_MOST 600.0

enum { LOWEST_PRIORITY = 19, PAINTERS_MOST = 16, PAPERS_EACH = 2, PAPERS_MOST = 32 };

/* A picture that is shown until the next sample is there. */
struct picture {
    struct wm_plot_window window;
    size_t times;
};

struct paper {
    cairo_surface_t *surface;
    bool is_drawn;
};

/* Painters take pictures one after the other, each onto a paper that is free; the thread
 * that wants the film sends them away in their order. */
struct studio {
    const struct wm_plot_film *film; /* with all that is 0 filled in */
    const struct wm_plot_page *page;
    struct wm_plot_data data;
    struct wm_plot_layout layout;
    double scale;
    int width, height;
    struct picture *pictures;
    size_t count, frames; /* of the film */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct paper papers[PAPERS_MOST];
    size_t paper_count;
    size_t next, sent; /* the picture that is drawn next, and those that need no paper */
    int status;
    struct wm_error err;
};

static struct wm_plot_film fill_in(const struct wm_plot_film *film)
{
    struct wm_plot_film full = *film;

    full.fps = film->fps > 0 ? film->fps : FPS;
    full.speed = film->speed > 0 ? film->speed : 1;
    full.window = film->window > 0 ? film->window : WINDOW * full.speed;
    return full;
}

static int check(const struct wm_plot_request *request, const struct wm_plot_film *film,
                 struct wm_error *err)
{
    bool is_gif = request->format == WM_FORMAT_GIF;
    struct stat info;

    if (request->format < WM_FORMAT_MP4 || request->kind != WM_PLOT_TIME)
        return wm_fail(err, WM_EINVAL, "a film is mp4 or gif, of the kind time");
    if (!(film->fps >= 1 && film->fps <= (is_gif ? GIF_FPS_MOST : FPS_MOST)))
        return wm_fail(err, WM_EINVAL, "--fps: %s",
                       is_gif ? "1 to 50 in a GIF" : "1 to 240");
    if (!isfinite(film->speed) || !isfinite(film->window))
        return wm_fail(err, WM_EINVAL, "a film needs a finite speed and window");
    if (stat(film->path, &info) == 0 && !S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: a film needs a file, and this is none",
                       wm_text_path(film->path));
    return WM_OK;
}

/* Two columns for each pixel of the longest film, and never fewer than a figure has. */
static size_t fine_columns(const struct wm_plot_film *film, int width)
{
    double wanted = 2 * width * SECONDS_MOST * film->speed / film->window;

    return (size_t)fmin(fmax(wanted, WM_PLOT_FINE_COLUMNS), 1 << 20);
}

/* The least and the greatest moment with a sample from `from` to `to`; false: none. */
static bool find_moments(const struct wm_plot_data *data, double from, double to,
                         double *ret_oldest, double *ret_newest)
{
    double oldest = INFINITY, newest = -INFINITY, low, high;

    for (size_t i = 0; i < data->request->input_count; i++) {
        if (wm_chart_line_range(&data->moments[i], (int64_t)(from * 1e9),
                                (int64_t)(to * 1e9), &low, &high)) {
            oldest = fmin(oldest, low);
            newest = fmax(newest, high);
        }
    }
    *ret_oldest = oldest;
    *ret_newest = newest;
    return oldest <= newest;
}

/* What is seen at that moment of the recording. */
static struct wm_plot_window window_at(const struct wm_plot_data *data, double moment,
                                       double length)
{
    double from = (double)data->from_ns / 1e9, oldest, newest, ignored;

    /* A pause of the samples may be longer than the window. */
    if (!find_moments(data, fmax(from, moment - length), moment, &oldest, &newest) &&
        !find_moments(data, from, moment, &oldest, &newest))
        newest = moment;
    if (!find_moments(data, fmax(from, newest - length), newest, &oldest, &ignored))
        oldest = from;
    return (struct wm_plot_window) { wm_axis_of_time(oldest, newest), newest };
}

/* The first picture has all samples of the first tick. */
static double first_moment(const struct wm_plot_data *data, const struct wm_plot_film *film)
{
    return fmin((double)data->complete_ns / 1e9,
                (double)data->from_ns / 1e9 + film->window);
}

static double seconds_of(const struct studio *studio)
{
    double to = (double)studio->data.to_ns / 1e9;

    return (to - first_moment(&studio->data, studio->film)) / studio->film->speed;
}

/* All pictures, each with the number of frames until the next sample. */
static int plan(struct studio *studio, struct wm_error *err)
{
    const struct wm_plot_film *film = studio->film;
    double from = first_moment(&studio->data, film);
    double to = (double)studio->data.to_ns / 1e9;

    if (seconds_of(studio) > SECONDS_MOST)
        return wm_fail(err, WM_EINVAL,
                       "the film would last %.0f min, and 10 are the most; --speed %.0f "
                       "makes it one minute, --from and --to choose a part",
                       ceil(seconds_of(studio) / 60), ceil((to - from) / 60));
    studio->frames = (size_t)ceil(seconds_of(studio) * film->fps) + 1;
    studio->pictures = calloc(studio->frames + 1, sizeof(*studio->pictures));
    if (!studio->pictures)
        return wm_fail_memory(err, "film");
    if (studio->data.request->format == WM_FORMAT_GIF)
        studio->pictures[studio->count++] =
            (struct picture) { wm_plot_whole(&studio->data), 1 };
    for (size_t i = 0; i < studio->frames; i++) {
        double moment = fmin(from + (double)i / film->fps * film->speed, to);
        struct wm_plot_window window = window_at(&studio->data, moment, film->window);
        struct picture *last = i > 0 ? &studio->pictures[studio->count - 1] : NULL;
        if (last && last->window.newest == window.newest)
            last->times++;
        else
            studio->pictures[studio->count++] = (struct picture) { window, 1 };
    }
    return WM_OK;
}

static int draw(const struct studio *studio, const struct picture *picture,
                cairo_surface_t *surface, struct wm_error *err)
{
    struct wm_plot_canvas canvas = {
        .width = studio->width / studio->scale,
        .height = studio->height / studio->scale,
        .scale = studio->scale,
    };

    wm_plot_canvas_init(&canvas, studio->data.request, studio->page, surface);
    int status =
        wm_plot_time(&picture->window, &canvas, &studio->data, &studio->layout, err);
    if (wm_plot_canvas_release(&canvas) != CAIRO_STATUS_SUCCESS && status == WM_OK)
        status = wm_fail_memory(err, "film");
    cairo_surface_flush(surface);
    return status;
}

static bool may_take(const struct studio *studio)
{
    return studio->next < studio->sent + studio->paper_count;
}

/* A thread: on Linux each has a priority of its own. */
static void *paint(void *context)
{
    struct studio *studio = context;

    setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
    pthread_mutex_lock(&studio->lock);
    while (studio->status == WM_OK && studio->next < studio->count) {
        if (!may_take(studio)) {
            pthread_cond_wait(&studio->changed, &studio->lock);
            continue;
        }
        size_t index = studio->next++;
        struct paper *paper = &studio->papers[index % studio->paper_count];
        pthread_mutex_unlock(&studio->lock);
        struct wm_error err;
        int status = draw(studio, &studio->pictures[index], paper->surface, &err);
        pthread_mutex_lock(&studio->lock);
        paper->is_drawn = true;
        if (status < 0 && studio->status == WM_OK) {
            studio->status = status;
            studio->err = err;
        }
        pthread_cond_broadcast(&studio->changed);
    }
    pthread_mutex_unlock(&studio->lock);
    return NULL;
}

/* Waits until that picture is drawn. */
static int wait_for(struct studio *studio, const struct paper *paper, struct wm_error *err)
{
    pthread_mutex_lock(&studio->lock);
    while (!paper->is_drawn && studio->status == WM_OK)
        pthread_cond_wait(&studio->changed, &studio->lock);
    int status = studio->status;
    if (status < 0 && err)
        *err = studio->err;
    pthread_mutex_unlock(&studio->lock);
    return status;
}

static void give_back(struct studio *studio, struct paper *paper)
{
    pthread_mutex_lock(&studio->lock);
    paper->is_drawn = false;
    studio->sent++;
    pthread_cond_broadcast(&studio->changed);
    pthread_mutex_unlock(&studio->lock);
}

static int check_stop(const struct studio *studio, size_t done, struct wm_error *err)
{
    const struct wm_plot_film *film = studio->film;
    const volatile sig_atomic_t *stop = studio->data.request->stop;
    bool is_stopped =
        (stop && *stop) ||
        (film->progress && film->progress(film->context, done, studio->frames) != 0);

    return is_stopped ? wm_fail(err, WM_ECANCELED, "the film was given up") : WM_OK;
}

/* Ctrl-C ends ffmpeg as well, maybe before us. */
static int send_one(const struct studio *studio, struct wm_plot_ffmpeg *ffmpeg,
                    const unsigned char *pixels, size_t done, struct wm_error *err)
{
    size_t left = (size_t)studio->width * (size_t)studio->height * 4;
    ssize_t taken = 0;
    int status = WM_OK;

    while (left > 0 && status == WM_OK && taken >= 0) {
        taken = wm_plot_ffmpeg_take(ffmpeg, pixels, left, err);
        if (taken > 0) {
            left -= (size_t)taken;
            pixels += taken;
        } else {
            status = check_stop(studio, done, err);
        }
    }
    return status == WM_OK && taken < 0 ? (int)taken : status;
}

static int send_all(struct studio *studio, struct wm_plot_ffmpeg *ffmpeg,
                    struct wm_error *err)
{
    bool is_gif = studio->data.request->format == WM_FORMAT_GIF;
    size_t done = 0;
    int status = WM_OK;

    for (size_t i = 0; i < studio->count && status == WM_OK; i++) {
        struct paper *paper = &studio->papers[i % studio->paper_count];
        status = wait_for(studio, paper, err);
        for (size_t k = 0; k < studio->pictures[i].times && status == WM_OK; k++) {
            status = send_one(studio, ffmpeg, cairo_image_surface_get_data(paper->surface),
                              done, err);
            done += !(is_gif && i == 0);
        }
        give_back(studio, paper);
        if (status == WM_OK)
            status = check_stop(studio, done, err);
    }
    return status;
}

static size_t count_painters(void)
{
    cpu_set_t cpus;

    size_t count = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus)
                                                                  : PAINTERS_MOST;
    return count < PAINTERS_MOST ? count : PAINTERS_MOST;
}

static int get_papers(struct studio *studio, size_t painters, struct wm_error *err)
{
    studio->paper_count = painters * PAPERS_EACH;
    for (size_t i = 0; i < studio->paper_count; i++) {
        studio->papers[i].surface =
            cairo_image_surface_create(CAIRO_FORMAT_RGB24, studio->width, studio->height);
        if (cairo_surface_status(studio->papers[i].surface) != CAIRO_STATUS_SUCCESS)
            return wm_fail_memory(err, "film");
    }
    return WM_OK;
}

static int shoot(struct studio *studio, struct wm_plot_ffmpeg *ffmpeg, struct wm_error *err)
{
    pthread_t painters[PAINTERS_MOST];
    size_t wanted = count_painters(), count = 0;

    int status = get_papers(studio, wanted, err);
    while (count < wanted && status == WM_OK) {
        status =
            wm_thread_start(&painters[count], paint, studio, "no thread for a film", err);
        count += status == WM_OK;
    }
    if (status == WM_OK)
        status = send_all(studio, ffmpeg, err);
    pthread_mutex_lock(&studio->lock);
    if (studio->status == WM_OK)
        studio->status = status;
    pthread_cond_broadcast(&studio->changed);
    pthread_mutex_unlock(&studio->lock);
    for (size_t i = 0; i < count; i++)
        pthread_join(painters[i], NULL);
    for (size_t i = 0; i < studio->paper_count; i++)
        cairo_surface_destroy(studio->papers[i].surface);
    return status;
}

static int read_and_shoot(struct studio *studio, const struct wm_plot_request *request,
                          struct wm_plot_ffmpeg *ffmpeg, struct wm_error *err)
{
    int status = wm_plot_read(request, fine_columns(studio->film, studio->width),
                              &studio->data, err);
    if (status < 0)
        return status;
    status = wm_plot_layout_init(&studio->data, &studio->layout, err);
    if (status == WM_OK)
        status = plan(studio, err);
    if (status == WM_OK)
        status = shoot(studio, ffmpeg, err);
    free(studio->pictures);
    wm_plot_layout_release(&studio->layout);
    wm_plot_data_release(&studio->data);
    return status;
}

static int make_draft(struct studio *studio, const struct wm_plot_request *request,
                      const char *draft, struct wm_error *err)
{
    struct wm_plot_ffmpeg ffmpeg;

    int status = wm_plot_ffmpeg_start(request->format, studio->width, studio->height,
                                      studio->film->fps, draft, &ffmpeg, err);
    if (status < 0)
        return status;
    status = read_and_shoot(studio, request, &ffmpeg, err);
    return wm_plot_ffmpeg_end(&ffmpeg, status, err);
}

/* H.264 has colours for each two by two pixels. */
static int even(double pixels)
{
    int count = (int)ceil(pixels);

    return count + count % 2;
}

static int name_it(const char *draft, const struct wm_plot_film *film, struct wm_error *err)
{
    if (!film->overwrite)
        return wm_file_give_name(draft, film->path, err);
    /* A link goes on leading to the film that it led to. */
    char *path = realpath(film->path, NULL);
    int result = rename(draft, path ? path : film->path);
    free(path);
    return result == 0 ? WM_OK : wm_fail_errno(err, wm_text_path(film->path));
}

static int make_film(const struct wm_plot_request *request, const struct wm_plot_page *page,
                     const struct wm_plot_film *film, struct wm_error *err)
{
    double scale = (request->dpi > 0 ? request->dpi : DPI) / WM_PLOT_PIXELS_PER_INCH;
    double pixels = page->is_paper ? scale : 1; /* of a film, a size counts its own */
    struct studio studio = {
        .film = film,
        .page = page,
        .scale = scale,
        .width = even(page->width * pixels),
        .height = even(page->height * pixels),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    char *draft;

    int status = wm_file_make_draft(film->path, &draft, err);
    if (status < 0)
        return status;
    status = make_draft(&studio, request, draft, err);
    if (status == WM_OK)
        status = name_it(draft, film, err);
    if (status < 0)
        unlink(draft);
    free(draft);
    return status;
}

int wm_plot_film(const struct wm_plot_request *request, const struct wm_plot_film *film,
                 struct wm_error *err)
{
    const struct wm_plot_film full = fill_in(film);
    struct wm_plot_page page;
    int status = check(request, &full, err);

    if (status == WM_OK)
        status = wm_plot_check(request, err);
    if (status == WM_OK)
        status = wm_plot_page_init(request, &page, err);
    return status == WM_OK ? make_film(request, &page, &full, err) : status;
}
