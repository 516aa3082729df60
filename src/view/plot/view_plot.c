/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot.c - a figure into a file, and what the library wattmeter-plot.so has. */
#include "view/plot/view_plot.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/plot/view_plot_page.h"
#include "wattmeter/version.h"

#define POINTS_PER_PIXEL 0.75
#define PAPER_DPI 300.0

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

static cairo_surface_t *make_surface(const struct wm_plot_request *request,
                                     const struct wm_plot_page *page, double scale,
                                     struct sink *sink)
{
    cairo_surface_t *surface;

    switch (request->format) {
    case WM_FORMAT_PNG:
        return cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                          (int)ceil(page->width * scale),
                                          (int)ceil(page->height * scale));
    case WM_FORMAT_PDF:
        return cairo_pdf_surface_create_for_stream(write_some, sink, page->width * scale,
                                                   page->height * scale);
    default:
        surface = cairo_svg_surface_create_for_stream(write_some, sink, page->width,
                                                      page->height);
        cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
        return surface;
    }
}

static double scale_of(const struct wm_plot_request *request,
                       const struct wm_plot_page *page)
{
    if (request->format == WM_FORMAT_PDF)
        return POINTS_PER_PIXEL;
    if (request->format != WM_FORMAT_PNG)
        return 1;
    double otherwise = page->is_paper ? PAPER_DPI : WM_PLOT_PIXELS_PER_INCH;
    return (request->dpi > 0 ? request->dpi : otherwise) / WM_PLOT_PIXELS_PER_INCH;
}

/* What is drawn: read before anything is written. */
struct contents {
    struct wm_plot_data data;
    struct wm_plot_layout layout;
    struct wm_plot_flame flame;
    struct wm_plot_regions *regions;
    struct wm_plot_repeats *repeats;
};

static int read_contents(const struct wm_plot_request *request, struct contents *contents,
                         struct wm_error *err)
{
    if (request->kind == WM_PLOT_FLAME)
        return wm_plot_flame_read(request, &contents->flame, err);
    if (request->kind == WM_PLOT_REGIONS)
        return wm_plot_regions_read(request, &contents->regions, err);
    if (request->kind == WM_PLOT_REPEATS)
        return wm_plot_repeats_read(request, &contents->repeats, err);
    if (request->kind != WM_PLOT_TIME)
        return WM_OK;
    int status = wm_plot_read(request, WM_PLOT_FINE_COLUMNS, &contents->data, err);
    return status == WM_OK ? wm_plot_layout_init(&contents->data, &contents->layout, err)
                           : status;
}

/* Where the size leaves it to the figure, which is `usual` mostly, in pixels of a canvas.
 */
static double height_of(const struct wm_plot_request *request,
                        const struct contents *contents, double usual)
{
    switch (request->kind) {
    case WM_PLOT_FLAME:
        return wm_plot_flame_height(&contents->flame);
    case WM_PLOT_REGIONS:
        return fmax(usual, wm_plot_regions_height(contents->regions));
    case WM_PLOT_REPEATS:
        return fmax(usual, wm_plot_repeats_height(contents->repeats));
    case WM_PLOT_TIME:
        return fmax(usual, wm_plot_time_height(&contents->layout));
    default:
        return usual;
    }
}

static int draw(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                const struct contents *contents, struct wm_error *err)
{
    struct wm_plot_window whole;

    switch (request->kind) {
    case WM_PLOT_ENERGY:
        return wm_plot_energy(request, canvas, err);
    case WM_PLOT_REGIONS:
        wm_plot_regions_draw(canvas, contents->regions);
        return WM_OK;
    case WM_PLOT_CAPS:
        return wm_plot_caps(request, canvas, err);
    case WM_PLOT_FLAME:
        return wm_plot_flame(request, canvas, &contents->flame, err);
    case WM_PLOT_REPEATS:
        return wm_plot_repeats_draw(canvas, contents->repeats, err);
    default:
        whole = wm_plot_whole(&contents->data);
        return wm_plot_time(&whole, canvas, &contents->data, &contents->layout, err);
    }
}

/* The first thing that went wrong, of drawing and of writing. */
static int finish(const struct wm_plot_request *request, cairo_surface_t *surface,
                  cairo_status_t drawn, int status, struct sink *sink, struct wm_error *err)
{
    sink->is_closed = status < 0;
    if (status == WM_OK && drawn == CAIRO_STATUS_SUCCESS &&
        request->format == WM_FORMAT_PNG)
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

static int draw_to(const struct wm_plot_request *request, const struct wm_plot_page *page,
                   const struct contents *contents, struct sink *sink, FILE *overlay,
                   struct wm_error *err)
{
    double scale = scale_of(request, page);
    cairo_surface_t *surface = make_surface(request, page, scale, sink);
    struct wm_plot_canvas canvas = {
        .width = page->width,
        .height = page->height,
        .scale = scale,
        .is_vector = request->format != WM_FORMAT_PNG,
        .overlay = overlay,
    };

    wm_plot_canvas_init(&canvas, request, page, surface);
    int status = draw(request, &canvas, contents, err);
    cairo_status_t drawn = wm_plot_canvas_release(&canvas);
    return finish(request, surface, drawn, status, sink, err);
}

/* An SVG of cairo has its text as outlines, and no titles; the overlay has both, as
 * elements that come last. */
static int join(FILE *out, const char *drawing, const char *overlay, struct wm_error *err)
{
    static const char end[] = "</svg>";
    const char *at = drawing, *last = NULL;

    while ((at = strstr(at, end)) != NULL)
        last = at++;
    if (!last)
        return wm_fail(err, WM_EIO, "the figure: cairo has written no SVG");
    fwrite(drawing, 1, (size_t)(last - drawing), out);
    fprintf(out, "%s%s\n", overlay, end);
    return ferror(out) ? wm_fail(err, WM_EIO, "the figure: it could not be written")
                       : WM_OK;
}

static int draw_svg(const struct wm_plot_request *request, const struct wm_plot_page *page,
                    const struct contents *contents, FILE *out, struct wm_error *err)
{
    char *texts[2] = { NULL, NULL };
    size_t sizes[2];
    FILE *files[2] = { open_memstream(&texts[0], &sizes[0]),
                       open_memstream(&texts[1], &sizes[1]) };
    struct sink sink = { .out = files[0] };
    int status = wm_fail_memory(err, "figure");

    if (files[0] && files[1])
        status = draw_to(request, page, contents, &sink, files[1], err);
    for (size_t i = 0; i < 2; i++) {
        if (files[i] && fclose(files[i]) != 0 && status == WM_OK)
            status = wm_fail_memory(err, "figure");
    }
    if (status == WM_OK)
        status = join(out, texts[0], texts[1], err);
    free(texts[0]);
    free(texts[1]);
    return status;
}

int wm_plot_check(const struct wm_plot_request *request, struct wm_error *err)
{
    bool is_time = request->kind == WM_PLOT_TIME;
    bool has_measures = request->kind == WM_PLOT_REGIONS || request->kind == WM_PLOT_FLAME;

    if (!is_time && (request->layout || request->channel_count > 0 || request->from ||
                     request->to || request->fits || request->without_regions))
        return wm_fail(err, WM_EINVAL,
                       "only --kind time takes --channels, --layout, --from, --to, --fit "
                       "and --no-regions");
    if ((request->by_time || request->by_energy) && !has_measures)
        return wm_fail(err, WM_EINVAL, "--by: is for --kind regions or flame");
    for (size_t i = 0; i < request->input_count && request->kind == WM_PLOT_CAPS; i++) {
        if (request->inputs[i].run != WM_LAST_RUN)
            return wm_fail(err, WM_EINVAL, "--run: a table of caps has no runs");
    }
    return WM_OK;
}

static int write_figure(const struct wm_plot_request *request, FILE *out,
                        struct wm_error *err)
{
    struct contents contents = { 0 };
    struct sink sink = { .out = out };
    struct wm_plot_page page;

    if (request->format < WM_FORMAT_SVG || request->format > WM_FORMAT_PDF)
        return wm_fail(err, WM_EINVAL, "a figure is svg, png or pdf");
    int status = wm_plot_check(request, err);
    if (status == WM_OK)
        status = wm_plot_page_init(request, &page, err);
    if (status == WM_OK)
        status = read_contents(request, &contents, err);
    if (status == WM_OK && !page.has_height)
        page.height = height_of(request, &contents, page.height / page.zoom) * page.zoom;
    if (status == WM_OK)
        status = request->format == WM_FORMAT_SVG
                     ? draw_svg(request, &page, &contents, out, err)
                     : draw_to(request, &page, &contents, &sink, NULL, err);
    wm_plot_flame_release(&contents.flame);
    wm_plot_regions_free(contents.regions);
    wm_plot_repeats_free(contents.repeats);
    wm_plot_layout_release(&contents.layout);
    wm_plot_data_release(&contents.data);
    return status;
}

WM_API extern const struct wm_plot_module wm_plot_module;
const struct wm_plot_module wm_plot_module = { WM_VERSION, write_figure, wm_plot_film };
