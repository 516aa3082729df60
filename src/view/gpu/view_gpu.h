/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu.h - the forms in which the GPUs of a machine are shown; for src/view/gpu
 * alone. */
#ifndef WM_VIEW_GPU_H
#define WM_VIEW_GPU_H

#include "view/text/view_text_line.h"
#include "wattmeter/gpu.h"

/* What is said of a GPU (`item` is 0 then), of a process on it, or of a part of
 * it: so that what goes through a table of fields is written once. */
enum wm_gpu_table { WM_GPU_TABLE_GPU, WM_GPU_TABLE_PROCESS, WM_GPU_TABLE_MIG };

/* NULL past the last field. */
const struct wm_gpu_field_info *wm_gpu_table_info(enum wm_gpu_table table, size_t field);

/* A number that is not finite is missing: drivers say all kinds of things. */
struct wm_gpu_value wm_gpu_table_get(enum wm_gpu_table table, const struct wm_gpus *gpus,
                                     size_t gpu, size_t item, size_t field);

/* What follows the key of a field in JSON: its unit, "_watts". */
const char *wm_gpu_key_suffix(const struct wm_gpu_field_info *info);

/* All there is to say as a JSON object, the caller's; NULL when out of memory. */
json_t *wm_view_gpu_json(const struct wm_gpus *gpus);

/* For people. Whether `out` took it all, it knows itself. */
void wm_view_gpu_text(const struct wm_gpus *gpus, FILE *out);
void wm_view_gpu_brief(const struct wm_gpus *gpus, FILE *out);

/* Values in words, as a person reads them, in igpu's units: MiB, MHz, W, percent. */
#define WM_COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define WM_MIB 1048576.0

struct wm_words {
    char text[256];
};

/* A GPU, and where it is printed. */
struct wm_gpu_view {
    const struct wm_gpus *gpus;
    size_t gpu;
    FILE *out;
};

/* "12.50 W", of a number and its suffix. */
struct wm_words wm_words_number(double number, int decimals, const char *suffix);

/* "2026-04-17 03:41:27", UTC. */
struct wm_words wm_words_time(double unix_s);

/* A value that is known. */
struct wm_words wm_words_value(const struct wm_gpu_field_info *info,
                               const struct wm_gpu_value *value, bool with_unit);

/* A field of a GPU, "n/a" where it is missing. */
struct wm_words wm_words_field(const struct wm_gpu_view *view, enum wm_gpu_field field,
                               bool with_unit);

struct wm_gpu_value wm_gpu_view_get(const struct wm_gpu_view *view,
                                    enum wm_gpu_field field);

/* Whether its driver says that it is not real: of this GPU or, where this one says
 * nothing, of another one. */
bool wm_gpu_view_simulated(const struct wm_gpu_view *view);

/* The processes on a GPU and its parts (MIG), one in a row. */
struct wm_gpu_column {
    size_t field;
    int width;
    bool on_demand; /* shown where it says something of one item at least */
};

struct wm_gpu_list {
    enum wm_gpu_table table;
    const struct wm_gpu_column *columns;
    size_t column_count, items;
};

struct wm_gpu_list wm_gpu_list_processes(const struct wm_gpu_view *view);
struct wm_gpu_list wm_gpu_list_migs(const struct wm_gpu_view *view);

/* Each a block of its own; the parts only where there are any. */
void wm_gpu_list_print_processes(const struct wm_gpu_view *view);
void wm_gpu_list_print_migs(const struct wm_gpu_view *view);

/* A block of its own; none where nothing is missing. */
void wm_gpu_view_print_why(const struct wm_gpu_view *view);

/* That there is no GPU to show, and where they were searched for. */
void wm_gpu_view_print_none(const struct wm_gpus *gpus, FILE *out);

/* That there may be more GPUs than are shown, since a driver is broken. */
void wm_gpu_view_print_broken(const struct wm_gpus *gpus, FILE *out);

#endif
