/* SPDX-License-Identifier: Apache-2.0 */
/* record_csv.h - the layout of our CSV files, for the writer and the reader;
 * docs/recordings.md explains it. */
#ifndef WM_RECORD_CSV_H
#define WM_RECORD_CSV_H

#include <stddef.h>

#include "base/base_sqlite.h"
#include "base/text/base_cells.h"
#include "record/record_regions.h"

/* gpu_tracker's nine static columns; ours follow in the same row. */
#define WM_CSV_STATIC                                                                      \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus"

#define WM_CSV_STATIC_OURS                                                                 \
    ",wattmeter_format,wattmeter_run,wattmeter_channels,wattmeter_gaps_and_result"

/* Where those four stand in the row. */
enum {
    WM_CSV_FORMAT = 9,
    WM_CSV_RUN,
    WM_CSV_CHANNELS,
    WM_CSV_STATE,
    WM_CSV_STATIC_COUNT,
};

/* A file with regions has rows that earlier versions take for damage, and so says that it
 * is of a format after theirs. */
#define WM_CSV_FORMAT_REGIONS 2

/* The first columns from the third line on. They are empty in the row of a tick; where the
 * first is not, the row ends behind them and is about regions. They are numbers, names too,
 * for gpu_tracker computes with every column that there is:
 *
 *     kind            1              2            3               4
 *     WM_CSV_PATH     its number     the parent   1: it is free   bytes of its name
 *     WM_CSV_NAME     6 bytes each of the name of the path above, the first one the highest
 *     WM_CSV_THREAD   its number     pid          tid             number of the process
 *     WM_CSV_CALL     path           thread       start_ns        stop_ns
 *     WM_CSV_OPEN     the same of one that never ended
 *     WM_CSV_TOLD     before a call, what its thread told of it: cpu_ns, where it was
 *                     clocked; where the row stands for several short calls, calls, sum_ns,
 *                     squares (ns^2), and in three more such rows min_ns, max_ns and the
 *                     histogram
 */
#define WM_CSV_REGION_KIND "wattmeter_region"
#define WM_CSV_REGION                                                                      \
    WM_CSV_REGION_KIND ",wattmeter_region_1,wattmeter_region_2,wattmeter_region_3,"        \
                       "wattmeter_region_4"

enum wm_csv_region {
    WM_CSV_PATH = 1,
    WM_CSV_NAME,
    WM_CSV_THREAD,
    WM_CSV_CALL,
    WM_CSV_OPEN,
    WM_CSV_TOLD,
};

enum {
    WM_CSV_REGION_CELLS = 5, /* with the kind */
    WM_CSV_NAME_BYTES = 6,   /* in a number, which is exact as a double too */
};

/* The longest line, without its end. */
#define WM_CSV_LINE_MAX ((size_t)1 << 20)

/* Reading the rows that are about regions, which stand between those of the ticks. */

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
