/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet_file.h - the CSV files of a meter, which docs/measure-a-snippet.md
 * explains. A file grows by a row at a time, each of which is in it when it has been
 * written: who is killed loses the one at work at most.
 *
 * One thread at a time.
 */
#ifndef WM_TRACK_SNIPPET_FILE_H
#define WM_TRACK_SNIPPET_FILE_H

#include <stdbool.h>

#include "base/base_error.h"
#include "track/snippet/track_snippet_inputs.h"
#include "wattmeter/energy.h"

struct wm_meter_file;

/* What a row has. The thesis' tool has columns and units of its own, and no header. */
enum wm_meter_layout {
    WM_METER_SNIPPETS,
    WM_METER_SNIPPETS_SEED,
    WM_METER_SERIES,
    WM_METER_SERIES_SEED,
};

/* How things stand at the moment of a row. What is not known has another state than
 * WM_READING_OK, and an empty cell. */
struct wm_meter_gauges {
    struct wm_reading utilization; /* ratio */
    struct wm_reading temperature; /* celsius */
    struct wm_reading power;       /* W */
};

struct wm_meter_row {
    struct wm_meter_reading reading;
    const struct wm_meter_energy *devices;

    /* Of a snippet. */
    const char *name;
    bool is_finished;

    /* Of a series. */
    struct wm_meter_gauges cpu, gpu;
    const struct wm_meter_gauges *gauges; /* one per device; filled in for GPUs */
};

/* The inputs are borrowed. WM_EEXIST: the file is there and may not be, somebody else
 * writes it, or it has another header. */
int wm_meter_file_open(const char *path, enum wm_record_mode mode,
                       enum wm_meter_layout layout, const struct wm_meter_inputs *inputs,
                       struct wm_meter_file **ret_file, struct wm_error *err);

/* WM_EIO where rows are missing. Accepts NULL. */
int wm_meter_file_close(struct wm_meter_file *file, struct wm_error *err);

/* The same before the first row: a file that was not there before goes away. */
void wm_meter_file_abandon(struct wm_meter_file *file);

/* A row that cannot be written is as if it had never been begun. */
int wm_meter_file_write(struct wm_meter_file *file, const struct wm_meter_row *row,
                        struct wm_error *err);

#endif
