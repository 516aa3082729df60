/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_csv_read_regions.h - the rows of our CSV files that are about regions, which stand
 * between those of the ticks; record_csv.h has their layout.
 */
#ifndef WM_RECORD_CSV_READ_REGIONS_H
#define WM_RECORD_CSV_READ_REGIONS_H

#include "base/base_sqlite.h"
#include "base/text/base_cells.h"
#include "record/csv/record_csv.h"
#include "record/record_regions.h"

struct wm_csv_regions {
    const char *file;
    size_t columns[WM_CSV_REGION_CELLS]; /* SIZE_MAX: it is not there */
    struct wm_cells cells;               /* open from the first batch on */
    struct wm_regions_part part;
    struct wm_regions_row named; /* the path whose name is being read */
    char *name;                  /* NULL: none is */
    size_t name_length, name_known;
    int64_t told[1 + WM_REGION_FOLD_CELLS]; /* of the next call */
    size_t told_count;
    bool is_sorted;      /* all calls were read into the sorter */
    sqlite3 *sorter;     /* a table of them; NULL: there are none */
    sqlite3_stmt *calls; /* the calls of the sorter by their starts; NULL after the last */
};

/* `file` outlives it. */
void wm_csv_regions_init(struct wm_csv_regions *regions, const char *file);

/* Takes note of a column if it is one of those of regions; else false. */
bool wm_csv_regions_use_column(struct wm_csv_regions *regions, const char *name,
                               size_t column);

/* As regions() of a reader: 1 and a batch, or 0 past the last. */
int wm_csv_regions_next(struct wm_csv_regions *regions, struct wm_region_batch *ret_batch,
                        struct wm_error *err);

/* As calls() of a reader. */
int wm_csv_regions_next_call(struct wm_csv_regions *regions,
                             struct wm_region_batch *ret_batch, struct wm_error *err);

void wm_csv_regions_release(struct wm_csv_regions *regions);

#endif
