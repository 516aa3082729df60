/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_csv.c - rows of gpu_tracker's CSV files. */
#include "compat/gpu_tracker/compat_gpu_tracker_csv.h"

#include <stdlib.h>
#include <string.h>

enum { OTHER = 255, NAMES_MAX = 32 };

void wm_gpu_tracker_csv_close(struct wm_gpu_tracker_csv *csv)
{
    wm_cells_close(&csv->cells);
    free(csv->uses);
    *csv = (struct wm_gpu_tracker_csv) { 0 };
}

int wm_gpu_tracker_csv_header(struct wm_gpu_tracker_csv *csv, const char *const *names,
                              size_t count, const char *what, struct wm_error *err)
{
    size_t places[NAMES_MAX];

    int columns = wm_cells_header(&csv->cells, names, count, what, places, err);
    if (columns < 0)
        return columns;
    free(csv->uses);
    csv->columns = (size_t)columns;
    csv->uses = malloc(csv->columns);
    if (!csv->uses)
        return wm_fail_memory(err, csv->cells.path);
    memset(csv->uses, OTHER, csv->columns);
    for (size_t i = 0; i < count; i++)
        csv->uses[places[i]] = (unsigned char)i;
    return WM_OK;
}

int wm_gpu_tracker_csv_row(struct wm_gpu_tracker_csv *csv, struct wm_cell *ret_cells,
                           struct wm_error *err)
{
    struct wm_cell cell;
    size_t column = 0;

    for (; wm_cells_take(&csv->cells, &cell); column++) {
        if (column < csv->columns && csv->uses[column] != OTHER)
            ret_cells[csv->uses[column]] = cell;
    }
    if (column == csv->columns)
        return 1;
    return wm_cells_wrong(&csv->cells, err, "not as many cells as there are columns");
}

int wm_gpu_tracker_csv_wrong(const struct wm_gpu_tracker_csv *csv, size_t use,
                             const struct wm_cell *cell, const char *what,
                             struct wm_error *err)
{
    size_t column = 0;

    while (csv->uses[column] != use)
        column++;
    return wm_cells_wrong(&csv->cells, err, "cell %zu: '%.32s' is not %s", column + 1,
                          cell->text, what);
}

int wm_gpu_tracker_csv_counts(const struct wm_gpu_tracker_csv *csv, int status,
                              bool is_later, struct wm_remarks *remarks,
                              struct wm_error *err)
{
    if (csv->cells.ending == WM_CELLS_ENDED)
        return status;
    bool taken = status > 0 && csv->cells.ending == WM_CELLS_UNENDED && is_later;
    if (wm_cells_remark(&csv->cells, taken, remarks) < 0)
        return wm_fail_memory(err, csv->cells.path);
    return taken;
}
