/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_list.c - igpu's table of processes, with what it does not know to the
 * right of it, and a table of MIG devices like it. */
#include "view/gpu/view_gpu.h"

#include <string.h>

static const struct wm_gpu_column process_columns[] = {
    { WM_GPU_PROCESS_PID, 6, false },
    { WM_GPU_PROCESS_NAME, 20, false },
    { WM_GPU_PROCESS_USER, 20, false },
    { WM_GPU_PROCESS_PARENT_PID, 8, false },
    { WM_GPU_PROCESS_CREATE_TIME, 20, false },
    { WM_GPU_PROCESS_MEMORY, 7, false },
    { WM_GPU_PROCESS_TYPE, 4, false },
    { WM_GPU_PROCESS_SM, 7, false },
    { WM_GPU_PROCESS_GPU_TIME, 10, true },
    { WM_GPU_PROCESS_GPU_INSTANCE, 3, true },
    { WM_GPU_PROCESS_COMPUTE_INSTANCE, 3, true },
    { WM_GPU_PROCESS_DRIVER_PID, 10, true },
};

static const struct wm_gpu_column mig_columns[] = {
    { WM_GPU_MIG_INDEX, 5, false },           { WM_GPU_MIG_NAME, 20, false },
    { WM_GPU_MIG_GPU_INSTANCE, 3, false },    { WM_GPU_MIG_COMPUTE_INSTANCE, 3, false },
    { WM_GPU_MIG_MULTIPROCESSORS, 4, false }, { WM_GPU_MIG_MEMORY_TOTAL, 12, false },
    { WM_GPU_MIG_MEMORY_USED, 11, false },    { WM_GPU_MIG_UUID, 40, false },
};

static bool says_something(const struct wm_gpu_view *view,
                           const struct wm_gpu_list *listing, size_t item, size_t field)
{
    enum wm_gpu_table table = listing->table;
    struct wm_gpu_value value = wm_gpu_table_get(table, view->gpus, view->gpu, item, field);

    if (value.state != WM_READING_OK)
        return false;
    if (table != WM_GPU_TABLE_PROCESS || field != WM_GPU_PROCESS_DRIVER_PID)
        return true;
    struct wm_gpu_value pid =
        wm_gpu_table_get(table, view->gpus, view->gpu, item, WM_GPU_PROCESS_PID);
    return pid.state != WM_READING_OK || pid.number != value.number;
}

static bool is_shown(const struct wm_gpu_view *view, const struct wm_gpu_list *listing,
                     const struct wm_gpu_column *column)
{
    for (size_t i = 0; column->on_demand && i < listing->items; i++) {
        if (says_something(view, listing, i, column->field))
            return true;
    }
    return !column->on_demand;
}

/* As in a line, but bytes are whole MiB and seconds since 1970 a date. */
static struct wm_words cell_text(const struct wm_gpu_view *view,
                                 const struct wm_gpu_list *listing, size_t item,
                                 size_t field)
{
    const struct wm_gpu_field_info *info = wm_gpu_table_info(listing->table, field);
    struct wm_gpu_value value =
        wm_gpu_table_get(listing->table, view->gpus, view->gpu, item, field);
    struct wm_words text = { "n/a" };

    if (value.state != WM_READING_OK)
        return text;
    if (listing->table == WM_GPU_TABLE_PROCESS && field == WM_GPU_PROCESS_CREATE_TIME)
        return wm_words_time(value.number);
    if (strcmp(info->unit, "B") == 0)
        return wm_words_number(value.number / WM_MIB, 0, "");
    return wm_words_value(info, &value, true);
}

/* A text is cut at the column's width, which a number stretches: part of one would be
 * another number. 0: the column is not shown. */
static int width_of(const struct wm_gpu_view *view, const struct wm_gpu_list *listing,
                    const struct wm_gpu_column *column)
{
    int width = column->width;

    if (!is_shown(view, listing, column))
        return 0;
    for (size_t i = 0; i < listing->items; i++) {
        struct wm_words text = cell_text(view, listing, i, column->field);
        if (wm_gpu_table_info(listing->table, column->field)->type != WM_GPU_TEXT &&
            (int)strlen(text.text) > width)
            width = (int)strlen(text.text);
    }
    return width;
}

/* The header where `item` is past the last. */
static void print_row(const struct wm_gpu_view *view, const struct wm_gpu_list *listing,
                      const int *widths, size_t item)
{
    bool first = true;
    int blanks = 0;

    for (size_t i = 0; i < listing->column_count; i++) {
        const struct wm_gpu_column *column = &listing->columns[i];
        struct wm_words text;

        if (widths[i] == 0)
            continue;
        if (item < listing->items)
            text = cell_text(view, listing, item, column->field);
        else
            snprintf(text.text, sizeof(text.text), "%s",
                     wm_gpu_table_info(listing->table, column->field)->label);
        fprintf(view->out, "%*s%s", blanks, "", first ? "    " : " | ");
        blanks = widths[i] - wm_view_cut(view->out, text.text, widths[i]);
        first = false;
    }
    fputc('\n', view->out);
}

static void print_listing(const struct wm_gpu_view *view, const struct wm_gpu_list *listing)
{
    int widths[WM_GPU_PROCESS_FIELDS + WM_GPU_MIG_FIELDS] = { 0 };

    for (size_t i = 0; i < listing->column_count; i++)
        widths[i] = width_of(view, listing, &listing->columns[i]);
    print_row(view, listing, widths, listing->items);
    for (size_t item = 0; item < listing->items; item++)
        print_row(view, listing, widths, item);
}

struct wm_gpu_list wm_gpu_list_processes(const struct wm_gpu_view *view)
{
    return (struct wm_gpu_list) { .table = WM_GPU_TABLE_PROCESS,
                                  .columns = process_columns,
                                  .column_count = WM_COUNT(process_columns),
                                  .items =
                                      wm_gpu_process_count(view->gpus, view->gpu, NULL) };
}

struct wm_gpu_list wm_gpu_list_migs(const struct wm_gpu_view *view)
{
    return (struct wm_gpu_list) { .table = WM_GPU_TABLE_MIG,
                                  .columns = mig_columns,
                                  .column_count = WM_COUNT(mig_columns),
                                  .items = wm_gpu_mig_count(view->gpus, view->gpu) };
}

void wm_gpu_list_print_processes(const struct wm_gpu_view *view)
{
    struct wm_gpu_list listing = wm_gpu_list_processes(view);
    struct wm_gpu_value whole;

    wm_gpu_process_count(view->gpus, view->gpu, &whole);
    if (listing.items == 0) {
        bool none = whole.state == WM_READING_OK;
        fprintf(view->out, "PROCESSES\n    %s\n", none ? "none" : "n/a");
        return;
    }
    fputs("PROCESSES (GPU MEM in MiB, CREATION TIME in UTC)\n", view->out);
    print_listing(view, &listing);
    if (whole.state != WM_READING_OK)
        fputs("    and perhaps more\n", view->out);
}

void wm_gpu_list_print_migs(const struct wm_gpu_view *view)
{
    struct wm_gpu_list listing = wm_gpu_list_migs(view);

    if (listing.items == 0)
        return;
    fputs("\nMIG DEVICES (memory in MiB)\n", view->out);
    print_listing(view, &listing);
}
