/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot.h - what a figure over time shows, between reading it and drawing it; for
 * src/view/plot alone. */
#ifndef WM_VIEW_PLOT_H
#define WM_VIEW_PLOT_H

#include <cairo.h>
#include <pango/pangocairo.h>

#include "base/base_error.h"
#include "record/record_read.h"
#include "view/chart/view_column.h"
#include "view/chart/view_feed.h"
#include "view/chart/view_flame.h"
#include "view/chart/view_mark.h"
#include "wattmeter/plot.h"

enum { WM_PLOT_NAME_SIZE = 96 };

/* A line of a panel. */
struct wm_plot_series {
    size_t input;
    size_t place; /* of the reading in a tick; SIZE_MAX: a number of the program itself */
    struct wm_channel channel; /* its texts are copies */
    char column[WM_PLOT_NAME_SIZE];
    struct wm_chart_feed feed;
    char device_name[WM_PLOT_NAME_SIZE]; /* "machine"; its label is "host" */
    char name[WM_PLOT_NAME_SIZE];
    char why[WM_PLOT_NAME_SIZE]; /* why it has no values, or not at the last gap; "": it has
                                  * no gap */
    size_t device;               /* its number in the order of colours */
    size_t colour, dash;         /* of several recordings the colour is the recording's */
    bool is_chosen;
    bool has_values;
    int64_t first_ns; /* of its first value; INT64_MAX: none */
    bool is_folded;   /* drawn as the mean and the range of its kind */
    struct wm_chart_line line;
};

/* A region of the program, as far as it can be told apart in the figure. */
struct wm_plot_band {
    size_t name; /* of `names` */
    int64_t from_ns, to_ns;
};

/* All that is read, of all recordings. Times are since the first sample of each. */
struct wm_plot_data {
    const struct wm_plot_request *request;
    struct wm_plot_series *series;
    size_t series_count, series_room;
    size_t device_count; /* of those that are drawn */
    size_t fine_columns; /* of each line */
    char **names;        /* of regions */
    size_t name_count, name_room;
    struct wm_plot_band *bands;
    size_t band_count, band_room;
    char title[256];
    int64_t from_ns, to_ns;           /* of the samples that are drawn */
    int64_t last_ns;                  /* of all samples */
    int64_t complete_ns;              /* all series have values that ever have some soon */
    int64_t axis_from_ns, axis_to_ns; /* --from and --to; INT64_MAX and INT64_MIN: not
                                       * given */
    struct wm_chart_line *moments;    /* of each input: seconds at which it has samples */
};

enum { WM_PLOT_PANELS_MAX = 64, WM_PLOT_COLUMNS_MAX = 8 };

/* A panel, with one axis or two. */
struct wm_plot_panel {
    const char *words[2]; /* as in the layout; borrowed from `text` */
    size_t column, row;   /* its place, and */
    const char *unit[2];
};

struct wm_plot_layout {
    char *text;
    struct wm_plot_panel panels[WM_PLOT_PANELS_MAX];
    size_t count, columns;
    size_t rows[WM_PLOT_COLUMNS_MAX]; /* of each column */
};

/* Fine columns of each line of a figure: four for each pixel of a wide one. */
enum { WM_PLOT_FINE_COLUMNS = 8192 };

/* Reads all inputs, a stream each, as lines of so many fine columns. WM_ENODEV: there is
 * nothing to draw. */
int wm_plot_read(const struct wm_plot_request *request, size_t fine_columns,
                 struct wm_plot_data *ret_data, struct wm_error *err);
void wm_plot_data_release(struct wm_plot_data *data);

/* Whether a word of the request or of the layout means that series: its panel or its
 * device, which show the rate of a counter, or its metric or its column, which show the
 * total. */
bool wm_plot_is_meant(const struct wm_plot_series *series, const char *word);

/* Whether the request asks for it. */
bool wm_plot_is_chosen(const struct wm_plot_data *data,
                       const struct wm_plot_series *series);

/* Copies the next word of a layout, which may be in quotes, and moves on; false: there is
 * none. `ret_before` is the '/', ',' or '+' before it, or ' '. */
bool wm_plot_next_word(const char **at, char *word, size_t size, char *ret_before);

/* WM_EINVAL if a word of the request means no series. */
int wm_plot_check_words(const struct wm_plot_data *data, struct wm_error *err);

/* What an input is called: its file without ".sqlite" unless it has a name. */
void wm_plot_input_name(const struct wm_plot_input *input,
                        char ret_name[WM_PLOT_NAME_SIZE]);

/* " (estimated)", or "". */
const char *wm_plot_origin(enum wm_origin origin);

/* Once it is known which lines are folded. */
void wm_plot_set_colours(struct wm_plot_data *data);

/* Where the panels go; they borrow from the layout. Folds lines of which there are too
 * many, and gives colours to those that are drawn. */
int wm_plot_layout_init(struct wm_plot_data *data, struct wm_plot_layout *layout,
                        struct wm_error *err);
void wm_plot_layout_release(struct wm_plot_layout *layout);

/* The colours that are of no device. */
struct wm_plot_theme {
    uint32_t paper, ink, faint, grid;
};

/* A figure of so many pixels, and text of 9 points. */
struct wm_plot_canvas {
    cairo_t *cairo;
    PangoLayout *text;
    const struct wm_plot_theme *theme;
    const char *font;
    FILE *overlay; /* of an SVG: its text and titles, as elements; else NULL */
    double width, height;
    double scale;   /* pixels for each of these */
    bool is_vector; /* numbers are short where nobody can see the rest */
    bool has_legend;
    double label_size;  /* of the names of axes */
    bool splits_labels; /* of upright ones: the unit stands below the name */
};

struct wm_plot_page;

/* Begins a figure on a surface: width, height, scale, is_vector and overlay are set as if
 * text had the size of the page; then they are in its own. */
void wm_plot_canvas_init(struct wm_plot_canvas *canvas,
                         const struct wm_plot_request *request,
                         const struct wm_plot_page *page, cairo_surface_t *surface);
cairo_status_t wm_plot_canvas_release(struct wm_plot_canvas *canvas);

/* What is seen of the time. */
struct wm_plot_window {
    struct wm_axis axis; /* seconds */
    double newest;       /* a sample that is later is not there yet, in a film */
};

struct wm_plot_box {
    double left, top, right, bottom;
};

enum wm_plot_align { WM_PLOT_LEFT, WM_PLOT_CENTRE, WM_PLOT_RIGHT };

/* Text in points; `y` is the middle of the line. */
struct wm_plot_style {
    double size;
    uint32_t colour;
    enum wm_plot_align align;
    bool is_bold;
    double turn;   /* radians */
    double room;   /* what is wider has dots in its middle; 0: any */
    bool has_halo; /* what is behind it has the colour of the paper */
};

void wm_plot_colour(const struct wm_plot_canvas *canvas, uint32_t colour, double alpha);
void wm_plot_text(const struct wm_plot_canvas *canvas, double x, double y,
                  const struct wm_plot_style *style, const char *text);
double wm_plot_text_width(const struct wm_plot_canvas *canvas, double size,
                          const char *text);

/* In an SVG a title that a browser shows while the mouse is over the box. */
void wm_plot_hover(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                   const char *title);

/* An axis in a box with its grid and its labels: of values at the left, or at the right
 * without a grid; of time at the bottom. Without a label it is a grid alone. */
enum wm_plot_side { WM_PLOT_AT_LEFT, WM_PLOT_AT_RIGHT, WM_PLOT_AT_BOTTOM };
void wm_plot_axis(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                  enum wm_plot_side side, const struct wm_axis *axis, const char *unit,
                  const char *label);

/* The same with what the unit is of: "% of one core". */
void wm_plot_axis_of(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                     enum wm_plot_side side, const struct wm_axis *axis, const char *unit,
                     const char *of, const char *label);

/* Splits the labels of all upright axes and makes them smaller until this one fits. */
void wm_plot_fit_label(struct wm_plot_canvas *canvas, const struct wm_plot_box *box,
                       const struct wm_axis *axis, const char *unit, const char *of,
                       const char *label);

void wm_plot_frame(const struct wm_plot_canvas *canvas, const struct wm_plot_box *box);

/* The title, in two lines if it needs them, and what room it leaves. */
#define WM_PLOT_TITLE_HEIGHT 36.0
struct wm_plot_box wm_plot_title(const struct wm_plot_canvas *canvas, const char *title);

/* A note below it, what marks mean, in as many lines as it takes; "": none. */
struct wm_plot_box wm_plot_note(const struct wm_plot_canvas *canvas,
                                const struct wm_plot_box *box, const char *text);

/* A place in a vector figure to a quarter of a pixel, else as it is. */
double wm_plot_short(const struct wm_plot_canvas *canvas, double place);

/* A point of an axis between two ends. */
double wm_plot_place(const struct wm_axis *axis, double value, double at_low,
                     double at_high);

/* WM_EINVAL if the kind of figure does not take what the request has. */
int wm_plot_check(const struct wm_plot_request *request, struct wm_error *err);

/* The kinds of figure. */
int wm_plot_time(const struct wm_plot_window *window, const struct wm_plot_canvas *canvas,
                 const struct wm_plot_data *data, const struct wm_plot_layout *layout,
                 struct wm_error *err);
int wm_plot_energy(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                   struct wm_error *err);
int wm_plot_caps(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                 struct wm_error *err);

/* Bars of regions. */
struct wm_plot_regions;
int wm_plot_regions_read(const struct wm_plot_request *request,
                         struct wm_plot_regions **ret_regions, struct wm_error *err);
void wm_plot_regions_draw(const struct wm_plot_canvas *canvas,
                          const struct wm_plot_regions *regions);
void wm_plot_regions_free(struct wm_plot_regions *regions); /* accepts NULL */

/* What its rows take at least, in pixels of a canvas. */
double wm_plot_regions_height(const struct wm_plot_regions *regions);

/* Boxes of repeated runs. */
struct wm_plot_repeats;
int wm_plot_repeats_read(const struct wm_plot_request *request,
                         struct wm_plot_repeats **ret_repeats, struct wm_error *err);
int wm_plot_repeats_draw(const struct wm_plot_canvas *canvas,
                         const struct wm_plot_repeats *repeats, struct wm_error *err);
void wm_plot_repeats_free(struct wm_plot_repeats *repeats); /* accepts NULL */

/* What its panels take at least, in pixels of a canvas. */
double wm_plot_repeats_height(const struct wm_plot_repeats *repeats);

/* A flame graph. All zero before it is read; due after failures, too: its release. */
struct wm_plot_flame {
    struct wm_report *report;
    struct wm_flame tree;
    struct flame_box *boxes; /* of each node */
};

int wm_plot_flame_read(const struct wm_plot_request *request, struct wm_plot_flame *flame,
                       struct wm_error *err);
void wm_plot_flame_release(struct wm_plot_flame *flame);

/* What its rows take, in pixels of a canvas. */
double wm_plot_flame_height(const struct wm_plot_flame *flame);

int wm_plot_flame(const struct wm_plot_request *request, struct wm_plot_canvas *canvas,
                  const struct wm_plot_flame *flame, struct wm_error *err);

/* What its panels take at least, in pixels of a canvas. */
double wm_plot_time_height(const struct wm_plot_layout *layout);

/* From the first sample to the last, or from --from to --to. */
struct wm_plot_window wm_plot_whole(const struct wm_plot_data *data);

/* As in struct wm_plot_module. */
int wm_plot_film(const struct wm_plot_request *request, const struct wm_plot_film *film,
                 struct wm_error *err);

#endif
