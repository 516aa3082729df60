/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot.c - a figure into a file, and what the library wattmeter-plot.so has. */
#include "view/plot/view_plot.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <string.h>

#include "wattmeter/version.h"

#define WIDTH 960
#define HEIGHT 720
#define PIXELS_PER_INCH 96.0
#define POINTS_PER_PIXEL 0.75

enum { SIZE_MOST = 10000, DPI_MOST = 1200 };

/* Where a figure goes that may still fail: cairo writes even what is given up. */
struct sink {
    FILE *out;
    bool is_closed;
};

static cairo_status_t write_some(void *opaque, const unsigned char *data, unsigned length)
{
    const struct sink *sink = opaque;

    if (sink->is_closed || fwrite(data, 1, length, sink->out) == length)
        return CAIRO_STATUS_SUCCESS;
    return CAIRO_STATUS_WRITE_ERROR;
}

static cairo_surface_t *make_surface(const struct wm_plot_request *request, double width,
                                     double height, double scale, struct sink *sink)
{
    cairo_surface_t *surface;

    switch (request->format) {
    case WM_PLOT_PNG:
        return cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * scale),
                                          (int)ceil(height * scale));
    case WM_PLOT_PDF:
        return cairo_pdf_surface_create_for_stream(write_some, sink, width * scale,
                                                   height * scale);
    default:
        surface = cairo_svg_surface_create_for_stream(write_some, sink, width, height);
        cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
        return surface;
    }
}

static double scale_of(const struct wm_plot_request *request)
{
    if (request->format == WM_PLOT_PDF)
        return POINTS_PER_PIXEL;
    if (request->format == WM_PLOT_PNG && request->dpi > 0)
        return request->dpi / PIXELS_PER_INCH;
    return 1;
}

/* What is drawn: read before anything is written. */
struct contents {
    struct wm_plot_data data;
    struct wm_plot_layout layout;
};

static int read_contents(const struct wm_plot_request *request, struct contents *contents,
                         struct wm_error *err)
{
    if (request->kind != WM_PLOT_TIME)
        return WM_OK;
    int status = wm_plot_read(request, WM_PLOT_FINE_COLUMNS, &contents->data, err);
    return status == WM_OK ? wm_plot_layout_init(&contents->data, &contents->layout, err)
                           : status;
}

static int draw(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                const struct contents *contents, struct wm_error *err)
{
    struct wm_plot_window whole;

    wm_plot_colour(canvas, 0xffffff, 1);
    cairo_paint(canvas->cairo);
    switch (request->kind) {
    case WM_PLOT_ENERGY:
        return wm_plot_energy(request, canvas, err);
    case WM_PLOT_REGIONS:
        return wm_plot_regions(request, canvas, err);
    case WM_PLOT_CAPS:
        return wm_plot_caps(request, canvas, err);
    case WM_PLOT_REPEATS:
        return wm_plot_repeats(request, canvas, err);
    default:
        whole = wm_plot_whole(&contents->data);
        return wm_plot_time(&whole, canvas, &contents->data, &contents->layout, err);
    }
}

/* The first thing that went wrong, of drawing and of writing. */
static int finish(const struct wm_plot_request *request, cairo_surface_t *surface,
                  cairo_t *cairo, int status, struct sink *sink, struct wm_error *err)
{
    cairo_status_t drawn = cairo_status(cairo);

    sink->is_closed = status < 0;
    cairo_destroy(cairo);
    if (status == WM_OK && drawn == CAIRO_STATUS_SUCCESS && request->format == WM_PLOT_PNG)
        drawn = cairo_surface_write_to_png_stream(surface, write_some, sink);
    cairo_surface_finish(surface);
    if (drawn == CAIRO_STATUS_SUCCESS)
        drawn = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    if (status < 0 || drawn == CAIRO_STATUS_SUCCESS)
        return status;
    if (drawn == CAIRO_STATUS_NO_MEMORY)
        return wm_fail_memory(err, "figure");
    return wm_fail(err, WM_EIO, "the figure: %s", cairo_status_to_string(drawn));
}

static bool is_within(double value, double most)
{
    return value >= 0 && value <= most;
}

int wm_plot_check_size(const struct wm_plot_request *request, struct wm_error *err)
{
    if (is_within(request->width, SIZE_MOST) && is_within(request->height, SIZE_MOST) &&
        is_within(request->dpi, DPI_MOST))
        return WM_OK;
    return wm_fail(err, WM_EINVAL, "a figure has at most %d x %d pixels, and %d dpi",
                   SIZE_MOST, SIZE_MOST, DPI_MOST);
}

static int write_figure(const struct wm_plot_request *request, FILE *out,
                        struct wm_error *err)
{
    double scale = scale_of(request);
    struct wm_plot_canvas canvas = {
        .width = request->width > 0 ? request->width : WIDTH,
        .height = request->height > 0 ? request->height : HEIGHT,
        .scale = request->format == WM_PLOT_PNG ? scale : 1,
        .is_vector = request->format != WM_PLOT_PNG,
    };
    struct contents contents = { 0 };
    struct sink sink = { .out = out };

    if (request->format > WM_PLOT_PDF)
        return wm_fail(err, WM_EINVAL, "a film is no figure");
    int status = wm_plot_check_size(request, err);
    if (status == WM_OK)
        status = read_contents(request, &contents, err);
    if (status == WM_OK) {
        cairo_surface_t *surface =
            make_surface(request, canvas.width, canvas.height, scale, &sink);
        canvas.cairo = cairo_create(surface);
        if (request->format != WM_PLOT_SVG)
            cairo_scale(canvas.cairo, scale, scale);
        canvas.text = pango_cairo_create_layout(canvas.cairo);
        status = draw(request, &canvas, &contents, err);
        g_object_unref(canvas.text);
        status = finish(request, surface, canvas.cairo, status, &sink, err);
    }
    wm_plot_layout_release(&contents.layout);
    wm_plot_data_release(&contents.data);
    return status;
}

WM_API extern const struct wm_plot_module wm_plot_module;
const struct wm_plot_module wm_plot_module = { WM_VERSION, write_figure, wm_plot_film };
