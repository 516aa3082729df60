/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_page.c - how large a figure is, and its font: "960x720", "column", "89x60mm",
 * "Helvetica,8". */
#include "view/plot/view_plot_page.h"

#include <pango/pangocairo.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base_error.h"
#include "base/text/base_number.h"

#define PIXELS_PER_MM (WM_PLOT_PIXELS_PER_INCH / 25.4)
#define POINTS 9.0       /* of ordinary text, in which the figures are laid out */
#define PAPER_POINTS 7.0 /* as journals have it: Nature 5 to 7, IEEE 8 */

enum { SIZE_LEAST = 100, SIZE_MOST = 10000, POINTS_LEAST = 3, POINTS_MOST = 72 };

/* The widths are those of Nature; IEEE's columns (88.9 mm) and ACM's (85 mm) are close. */
static const struct {
    const char *name;
    double width_mm, height_mm;
} papers[] = {
    { "column", 89, 67 },
    { "page", 183, 122 },
};

static bool is_within(double value, double least, double most)
{
    return value >= least && value <= most;
}

/* "89x60" */
static bool parse_pair(const char *text, size_t length, double *ret_a, double *ret_b)
{
    const char *x = memchr(text, 'x', length);

    return x && wm_number_parse(text, (size_t)(x - text), ret_a) &&
           wm_number_parse(x + 1, length - (size_t)(x + 1 - text), ret_b);
}

static bool parse_size(const char *text, struct wm_plot_page *page)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < sizeof(papers) / sizeof(papers[0]); i++) {
        if (strcmp(papers[i].name, text) == 0) {
            page->width = papers[i].width_mm * PIXELS_PER_MM;
            page->height = papers[i].height_mm * PIXELS_PER_MM;
            page->is_paper = true;
            return true;
        }
    }
    page->has_height = true;
    page->is_paper = length > 2 && strcmp(text + length - 2, "mm") == 0;
    if (!parse_pair(text, page->is_paper ? length - 2 : length, &page->width,
                    &page->height))
        return false;
    page->width *= page->is_paper ? PIXELS_PER_MM : 1;
    page->height *= page->is_paper ? PIXELS_PER_MM : 1;
    return is_within(page->width, SIZE_LEAST, SIZE_MOST) &&
           is_within(page->height, SIZE_LEAST, SIZE_MOST);
}

/* Also by a generic name of CSS, for which fontconfig chooses one. */
static bool has_font(const char *name)
{
    static const char *const generic[] = { "sans-serif", "serif",   "monospace",
                                           "cursive",    "fantasy", "system-ui" };
    PangoFontFamily **families;
    int count;
    bool is_there = false;

    for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++) {
        if (strcmp(generic[i], name) == 0)
            return true;
    }

    pango_font_map_list_families(pango_cairo_font_map_get_default(), &families, &count);
    for (int i = 0; i < count && !is_there; i++)
        is_there = strcasecmp(pango_font_family_get_name(families[i]), name) == 0;
    g_free(families);
    return is_there;
}

static int parse_font(const char *text, struct wm_plot_page *page, double *points,
                      struct wm_error *err)
{
    const char *comma = strrchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : strlen(text);

    if (comma && (!wm_number_parse(comma + 1, strlen(comma + 1), points) ||
                  !is_within(*points, POINTS_LEAST, POINTS_MOST)))
        return wm_fail(err, WM_EINVAL, "--font: '%.60s' is no size from %d to %d points",
                       comma + 1, POINTS_LEAST, POINTS_MOST);
    if (length == 0)
        return WM_OK;
    if (length >= sizeof(page->font))
        return wm_fail(err, WM_EINVAL, "--font: the name is too long");
    snprintf(page->font, sizeof(page->font), "%.*s", (int)length, text);
    if (!has_font(page->font))
        return wm_fail(err, WM_EINVAL,
                       "--font: there is no font '%.60s'; fc-list : family has them all",
                       page->font);
    return WM_OK;
}

int wm_plot_page_init(const struct wm_plot_request *request, struct wm_plot_page *ret_page,
                      struct wm_error *err)
{
    struct wm_plot_page page = { .width = 960, .height = 720 };

    if (request->size && !parse_size(request->size, &page))
        return wm_fail(err, WM_EINVAL,
                       "--size: '%.60s' is no size, such as 960x720 (pixels, %d to %d), "
                       "89x60mm, column or page",
                       request->size, SIZE_LEAST, SIZE_MOST);
    if (!is_within(request->dpi, 0, WM_PLOT_DPI_MOST))
        return wm_fail(err, WM_EINVAL, "--dpi: at most %d", WM_PLOT_DPI_MOST);
    double points = page.is_paper ? PAPER_POINTS : POINTS;
    snprintf(page.font, sizeof(page.font), "DejaVu Sans, Noto Sans, sans-serif");
    int status = request->font ? parse_font(request->font, &page, &points, err) : WM_OK;
    page.zoom = points / POINTS;
    *ret_page = page;
    return status;
}
