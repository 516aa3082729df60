/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_figures.h - the table of all figures. A figure of the run, of a region, of a GPU
 * or of a device is one row here, and by that it is in the text, in the JSON, in the
 * accessors of report.h and, if it says so, in comparisons.
 *
 *     const struct wm_figure_row *row = wm_figure_find("energy");
 *     const struct wm_found found = wm_figure_of(row, WM_REPORT_RUN, report, report);
 */
#ifndef WM_ANALYZE_FIGURES_H
#define WM_ANALYZE_FIGURES_H

#include "analyze/analyze_report.h"

/* What a figure is measured in. Views say and scale it; the number itself is in SI units,
 * but for percentages. */
enum wm_figure_unit {
    WM_UNIT_SECONDS,
    WM_UNIT_TIME, /* seconds, in the unit of time that the user chose */
    WM_UNIT_JOULES,
    WM_UNIT_WATTS,
    WM_UNIT_BYTES,
    WM_UNIT_RAM,     /* bytes, in the unit of memory that the user chose */
    WM_UNIT_GPU_RAM, /* bytes, in that of GPU memory */
    WM_UNIT_PERCENT,
    WM_UNIT_RATIO,
    WM_UNIT_CELSIUS,
    WM_UNIT_COUNT,
};

/* Where a figure is found, and where it stands in JSON. */
struct wm_figure_place {
    /* In the object of what it is of, with dots before what is inside another object:
     * "energy.total". NULL: JSON does not have it. */
    const char *path;
    const char *uncertainty_key; /* beside it, in percent; NULL: not there */
    bool tells_origin;           /* beside it, where it was not measured */
    bool only_known;             /* left out, rather than null, where it is not known */

    /* Offsets of struct wm_value in what it is of, and of its enum wm_origin; 0: none. */
    size_t value, uncertainty, origin;
    size_t low, high; /* between which it lies: beside the uncertainty, or in its place */
    size_t range_of;  /* the struct wm_value that low and high are of: the figure has the
                       * same range in proportion; 0: they are the figure's own */
    struct wm_value (*compute)(const void *of); /* in place of `value` */

    /* In place of both: a number of that kind, and what has to be known for it. */
    enum wm_figure_number {
        WM_FIGURE_NO_NUMBER,
        WM_FIGURE_INT,
        WM_FIGURE_SIZE,
        WM_FIGURE_UINT64,
        WM_FIGURE_USAGE, /* a struct wm_known of the result's struct wm_usage */
        WM_FIGURE_EVENT, /* one of its events */
    } kind;
    size_t number;
    bool needs_result;
};

struct wm_figure_row {
    const char *key; /* NULL: the path in the JSON of the run */
    enum wm_figure_unit unit;
    struct wm_figure_place run;    /* of struct wm_report */
    struct wm_figure_place region; /* of struct wm_region_spending */
    struct wm_figure_place gpu;    /* of struct wm_gpu_usage */
    struct wm_figure_place device; /* of struct wm_device_energy */

    const char *label; /* of a line of its own in the text; NULL: it has none */

    /* Above a column in the text's table of regions; NULL: there is no such column. */
    const char *inclusive_heading, *exclusive_heading;

    bool is_compared; /* of the run and of regions */
    bool is_headline; /* of a comparison, and of `run --repeat` */
    bool is_detail;   /* of a comparison, which has it with -v alone */
};

/* Row number `index`; NULL past the last. */
const struct wm_figure_row *wm_figure_row(size_t index);

/* The row of this key, or of this path in the JSON of the run; NULL. */
const struct wm_figure_row *wm_figure_find(const char *key);

const char *wm_figure_key(const struct wm_figure_row *row);

/* Whether rows have such a figure: of the run, a region, a GPU or a device. */
const struct wm_figure_place *wm_figure_place(const struct wm_figure_row *row,
                                              enum wm_report_kind kind);

struct wm_found {
    struct wm_value value;
    struct wm_value uncertainty; /* ratio; not known, and without a reason: it has none */
    struct wm_value low, high;   /* likewise */
    enum wm_origin origin;
};

/* `of` is what the figure is of, in `report`; wm_figure_place() has to have a place. */
struct wm_found wm_figure_of(const struct wm_figure_row *row, enum wm_report_kind kind,
                             const struct wm_report *report, const void *of);

#endif
