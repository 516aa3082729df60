/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_list.h - the processes on a GPU and its parts (MIG), one in a row. */
#ifndef WM_VIEW_GPU_LIST_H
#define WM_VIEW_GPU_LIST_H

#include "view/gpu/view_gpu.h"
#include "view/gpu/view_gpu_words.h"

struct wm_gpu_column {
    size_t field;
    int width;
    bool on_demand; /* shown where it says something of one item at least */
};

struct wm_gpu_list {
    const struct wm_gpu_table *table;
    const struct wm_gpu_column *columns;
    size_t column_count, items;
};

struct wm_gpu_list wm_gpu_list_processes(const struct wm_gpu_view *view);
struct wm_gpu_list wm_gpu_list_migs(const struct wm_gpu_view *view);

/* Each a block of its own; the parts only where there are any. */
void wm_gpu_list_print_processes(const struct wm_gpu_view *view);
void wm_gpu_list_print_migs(const struct wm_gpu_view *view);

#endif
