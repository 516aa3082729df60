/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_columns.h - what stands in the files of a meter; docs/measure-a-snippet.md
 * explains it. */
#ifndef WM_TRACK_SNIPPET_COLUMNS_H
#define WM_TRACK_SNIPPET_COLUMNS_H

#include "track/snippet/track_snippet_inputs.h"
#include "track/snippet/track_snippet_table.h"

/* How things stand at the moment of a row, beside the energy. */
struct wm_meter_gauges {
    struct wm_meter_cell utilization; /* ratio */
    struct wm_meter_cell temperature; /* celsius */
    struct wm_meter_cell power;       /* W */
};

/* A row of wm_meter_run(). */
struct wm_meter_row {
    struct wm_meter_reading reading;
    const struct wm_meter_energy *devices;
    struct wm_meter_gauges cpu, gpu;
    const struct wm_meter_gauges *gauges; /* one per device; filled in for GPUs */
};

/* The first lines; the caller frees `ret_header`. */
int wm_meter_snippet_header(const struct wm_meter_inputs *inputs, char **ret_header,
                            struct wm_error *err);
int wm_meter_series_header(const struct wm_meter_inputs *inputs, char **ret_header,
                           struct wm_error *err);

/* Put a row into the table and end it. */
int wm_meter_snippet_write(struct wm_meter_table *table, const char *name, bool is_finished,
                           const struct wm_meter_reading *reading,
                           const struct wm_meter_energy *devices, size_t count,
                           struct wm_error *err);
int wm_meter_series_write(struct wm_meter_table *table,
                          const struct wm_meter_inputs *inputs,
                          const struct wm_meter_row *row, struct wm_error *err);

/* The same in the columns and units of the thesis' tool, which have no header. */
int wm_meter_snippet_write_seed(struct wm_meter_table *table,
                                const struct wm_meter_reading *reading,
                                struct wm_error *err);
int wm_meter_series_write_seed(struct wm_meter_table *table, const struct wm_meter_row *row,
                               struct wm_error *err);

#endif
