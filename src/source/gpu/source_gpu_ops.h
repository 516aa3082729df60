/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_ops.h - what a backend of the inventory provides, and how it hands over
 * what a GPU says; nothing outside src/source/gpu sees it.
 *
 * To add a backend: copy source_gpu_drm.c, fill in one `const struct wm_gpu_ops`, name
 * it at the end of this file and in the table of source_gpu.c.
 */
#ifndef WM_SOURCE_GPU_OPS_H
#define WM_SOURCE_GPU_OPS_H

#include <sys/types.h>

#include "base/base_error.h"
#include "wattmeter/gpu.h"

/* What one GPU says, while a backend fills it in. Filling in is safe beside a
 * reader in another thread; texts are copied, and cut and cleaned where they
 * are not printable. What a backend does not set is "not told by <source>". */
struct wm_gpu_sheet;

void wm_gpu_set_number(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, double value);
void wm_gpu_set_text(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, const char *text);
void wm_gpu_set_missing(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *why);

/* A process as the driver tells it. Who it is, in words, is found by the core.
 * A number whose state is WM_READING_NONE, without a reason, is "not told by
 * <source>". */
struct wm_gpu_number {
    enum wm_reading_state state;
    double value;
    const char *why; /* where the state is not ok; copied */
};

struct wm_gpu_process_told {
    pid_t pid;        /* as the driver sees it */
    const char *type; /* "C", "G", "C+G", "M"; a constant; may be NULL */
    const char *name; /* for where /proc has none; copied; may be NULL */
    struct wm_gpu_number memory, sm, memory_utilization, encoder, decoder, gpu_time;
    int gpu_instance, compute_instance; /* or one of the two below */
};

enum { WM_GPU_NOT_PARTITIONED = -1, WM_GPU_INSTANCE_NOT_TOLD = -2 };

/* Between these two a new list is made; it replaces the old one at the end.
 * `state` of the list: WM_READING_OK, or why it is not known (and then empty) or
 * not known to be whole. wm_gpu_add_process() returns WM_ENOMEM or WM_OK; after
 * a failure the core marks the list as not whole. */
void wm_gpu_begin_processes(struct wm_gpu_sheet *sheet);
int wm_gpu_add_process(struct wm_gpu_sheet *sheet, const struct wm_gpu_process_told *told);
void wm_gpu_end_processes(struct wm_gpu_sheet *sheet, enum wm_reading_state state,
                          const char *why);

/* The same for the parts of a partitioned GPU. */
struct wm_gpu_mig_told {
    const char *uuid, *name;            /* NULL: not told */
    int gpu_instance, compute_instance; /* below 0: not told */
    struct wm_gpu_number multiprocessors, memory_total, memory_used;
};

void wm_gpu_begin_migs(struct wm_gpu_sheet *sheet);
int wm_gpu_add_mig(struct wm_gpu_sheet *sheet, const struct wm_gpu_mig_told *told);
void wm_gpu_end_migs(struct wm_gpu_sheet *sheet);

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

    /* Whether GPUs have come or gone since open(). Called beside a refresh() that
     * hangs. May be missing. */
    bool (*changed)(void *state);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

extern const struct wm_gpu_ops wm_gpu_nvml;
extern const struct wm_gpu_ops wm_gpu_drm;

#endif
