/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_table.c - what pandas makes of a table of numbers. */
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "view/text/view_text_line.h"

struct layout {
    int width, decimals;
};

static struct layout lay_out(const struct wm_gpu_tracker_table *table, size_t column)
{
    struct layout layout = { .width = wm_view_width(table->columns[column]) + 1,
                             .decimals = 1 };
    char text[WM_GPU_TRACKER_NUMBER_SIZE];

    for (size_t row = 0; row < table->row_count; row++) {
        int decimals =
            wm_gpu_tracker_decimals(table->cells[row * table->column_count + column]);
        if (decimals > layout.decimals)
            layout.decimals = decimals;
    }
    for (size_t row = 0; row < table->row_count; row++) {
        wm_gpu_tracker_number(text, table->cells[row * table->column_count + column],
                              layout.decimals);
        if ((int)strlen(text) > layout.width)
            layout.width = (int)strlen(text);
    }
    return layout;
}

static void print_row(const struct wm_gpu_tracker_table *table,
                      const struct layout *layouts, size_t row, FILE *out)
{
    char text[WM_GPU_TRACKER_NUMBER_SIZE];

    for (size_t column = 0; column < table->column_count; column++) {
        wm_gpu_tracker_number(text, table->cells[row * table->column_count + column],
                              layouts[column].decimals);
        fputc(' ', out);
        wm_view_right(out, text, layouts[column].width);
    }
    fputc('\n', out);
}

int wm_gpu_tracker_table(const struct wm_gpu_tracker_table *table, FILE *out,
                         struct wm_error *err)
{
    struct layout *layouts = calloc(table->column_count + 1, sizeof(*layouts));
    int index_width = 0;

    if (!layouts)
        return wm_fail_memory(err, NULL);
    for (size_t row = 0; table->rows && row < table->row_count; row++) {
        int width = wm_view_width(table->rows[row]);
        index_width = width > index_width ? width : index_width;
    }

    fprintf(out, "%*s", table->indent + index_width, "");
    for (size_t column = 0; column < table->column_count; column++) {
        layouts[column] = lay_out(table, column);
        fputc(' ', out);
        wm_view_right(out, table->columns[column], layouts[column].width);
    }
    fputc('\n', out);
    for (size_t row = 0; row < table->row_count; row++) {
        fprintf(out, "%*s", table->indent, "");
        wm_view_left(out, table->rows ? table->rows[row] : "", index_width);
        print_row(table, layouts, row, out);
    }
    free(layouts);
    return WM_OK;
}
