/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_ops.h - what a backend of the inventory provides, how it hands over what a
 * GPU says, and the inventory over backends that the caller gives; nothing outside
 * src/source/gpu sees it.
 *
 * To add a backend: copy source_gpu_drm.c, fill in one `const struct wm_gpu_ops`, name
 * it at the end of this file and in the table of source_gpu.c.
 */
#ifndef WM_SOURCE_GPU_OPS_H
#define WM_SOURCE_GPU_OPS_H

#include <stdint.h>

#include "base/base_error.h"
#include "wattmeter/gpu.h"

/* What one GPU says, while a backend fills it in. Filling in is safe beside a
 * reader in another thread; texts are copied, and cut and cleaned where they
 * are not printable. What a backend does not set is "not reported by <source>". */
struct wm_gpu_sheet;

void wm_gpu_set_number(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, double value);
void wm_gpu_set_text(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, const char *text);
void wm_gpu_set_throttle(struct wm_gpu_sheet *sheet, const char *text, unsigned reasons);
void wm_gpu_set_missing(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *why);

/* The driver's number of the failure (error.h), after that. */
void wm_gpu_set_code(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, int code);

/* Who is on the GPU, and the parts of a partitioned one. A row has a value for each field
 * of enum wm_gpu_process_field or enum wm_gpu_mig_field. One that is all zero is "not
 * reported by <source>". Who a process is, in words, is found by the core: of the fields
 * about that it needs WM_GPU_PROCESS_DRIVER_PID, and WM_GPU_PROCESS_NAME where /proc has
 * none. */
enum wm_gpu_list { WM_GPU_PROCESS_LIST, WM_GPU_MIG_LIST, WM_GPU_LISTS };

struct wm_gpu_value wm_gpu_number(double number);
struct wm_gpu_value wm_gpu_words(const char *text); /* NULL or "": not reported */
struct wm_gpu_value wm_gpu_missing(enum wm_reading_state state, const char *why);

/* The instances (MIG) of a process on a GPU that is whole. */
struct wm_gpu_value wm_gpu_not_partitioned(void);

/* Between these two a new list is made; it replaces the old one at the end.
 * `state` of the list: WM_READING_OK, or why it is not known (and then empty) or
 * not known to be whole; the code of the failure is set before the end. Texts and reasons
 * of a row are copied. wm_gpu_add_row() returns WM_ENOMEM or WM_OK; after a failure the
 * core marks the list as not whole. */
void wm_gpu_begin_list(struct wm_gpu_sheet *sheet, enum wm_gpu_list list);
int wm_gpu_add_row(struct wm_gpu_sheet *sheet, enum wm_gpu_list list,
                   const struct wm_gpu_value *row);
void wm_gpu_set_list_code(struct wm_gpu_sheet *sheet, enum wm_gpu_list list, int code);
void wm_gpu_end_list(struct wm_gpu_sheet *sheet, enum wm_gpu_list list,
                     enum wm_reading_state state, const char *why);

struct wm_gpu_ops {
    const char *name; /* of the source that measures with the same driver */

    /* The core allocates this many zeroed bytes and passes them to each
     * function below as `state`. */
    size_t state_size;

    /* Finds all GPUs; `config` as in source_ops.h, its `gpus` is of no concern
     * here. When it fails, close() is called on whatever it has built. */
    int (*open)(void *state, const struct wm_source_config *config, struct wm_error *err);

    /* How many there are, in the driver's order; fixed until close(). A GPU that
     * does not answer counts too. */
    size_t (*count)(const void *state);

    /* What is being asked, for people: "driver 550.54, /usr/lib/...". */
    const char *(*detail)(const void *state);

    /* Sets every field of `groups` that this backend knows of the GPU. With
     * `all` false the fixed ones may be left out: they were set before. Called
     * for one GPU at a time, but for several at once where one hangs; so what
     * it changes belongs to that GPU alone. With `all` true WM_GPU_GENERAL and
     * WM_GPU_PCI come in a call of their own, before the rest. */
    void (*refresh)(void *state, size_t gpu, unsigned groups, bool all,
                    struct wm_gpu_sheet *sheet);

    /* Sets WM_GPU_POWER_LIMIT (W), or WM_GPU_CLOCK_GRAPHICS_MAX (Hz; NAN: no limit any
     * more). WM_EACCES where that takes more rights, and which; WM_ENODEV where it cannot
     * be set on this GPU. Called as refresh() is. May be missing. */
    int (*set)(void *state, size_t gpu, enum wm_gpu_field field, double value,
               struct wm_error *err);

    /* Whether GPUs have come or gone since open(). Called beside a refresh() that
     * hangs. May be missing. */
    bool (*changed)(void *state);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

extern const struct wm_gpu_ops wm_gpu_nvml;
extern const struct wm_gpu_ops wm_gpu_drm;

/* As wm_gpus_open(), which has the table of this build. GPUs are counted in its
 * order. */
int wm_gpus_open_backends(const struct wm_gpu_ops *const *table, size_t count,
                          const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                          struct wm_error *err);

/* Likewise with the table of this build; only `groups` are asked for. */
int wm_gpus_open_groups(const struct wm_source_config *config, unsigned groups,
                        struct wm_gpus **ret_gpus, struct wm_error *err);

/* As wm_gpus_refresh(), but waits for the drivers up to `deadline_ns`. */
int wm_gpus_refresh_until(struct wm_gpus *gpus, unsigned groups, int64_t deadline_ns,
                          struct wm_error *err);

/* Has the chosen GPU's driver set `field`, as set() above. WM_EIO: it has not answered by
 * `deadline_ns`, and may yet do it. What wm_gpu_get() gives is not read anew. */
int wm_gpus_set(struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field, double value,
                int64_t deadline_ns, struct wm_error *err);

/* An inventory to choose from by config->gpus, and good for nothing else: asks what
 * wm_gpu_select() needs, and where the words are numbers only of those GPUs, so that
 * another one that hangs is not waited for. Nothing is chosen yet, all are listed.
 * `table` NULL: that of this build. */
int wm_gpus_open_to_select(const struct wm_gpu_ops *const *table, size_t count,
                           const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                           struct wm_error *err);

#endif
