/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drm_look.h - one look at one DRM GPU: reads small files of sysfs, and says
 * of each field either a value or why there is none.
 */
#ifndef WM_SOURCE_GPU_DRM_LOOK_H
#define WM_SOURCE_GPU_DRM_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/drm/source_drm_card.h"
#include "source/gpu/drm/source_drm_clients.h"
#include "source/gpu/source_gpu_ops.h"

/* A GPU, which one thread at a time looks at. */
struct wm_drm_board {
    struct wm_drm_card *card;

    /* The search for clients goes over all cards, to know whose they are; `gpus`
     * is this board's copy of the list, and `gpu` itself one of them. */
    struct wm_drm_gpu *gpus, *gpu;
    struct wm_drm_clients clients;
    bool searched;
};

struct wm_drm_look {
    const char *sysfs, *procfs;
    struct wm_drm_board *board;
    struct wm_gpu_sheet *sheet; /* NULL: values stay here, for sampling */
    unsigned groups;            /* of enum wm_gpu_group */
    const bool *only;           /* the fields of them that are asked for; NULL: all */

    bool told[WM_GPU_FIELDS]; /* a value, or why there is none */
    bool is_number[WM_GPU_FIELDS];
    double numbers[WM_GPU_FIELDS];     /* the value, where there is one */
    const char *absent[WM_GPU_FIELDS]; /* a file that would have had it; or NULL */
    enum wm_reading_state states[WM_GPU_FIELDS]; /* without a sheet, ... */
    struct wm_error *whys;                       /* ... and why it is missing */
    struct wm_drm_way *ways; /* files that stay open, of each field; NULL: none do */
};

/* Whether the look asks for the field. */
bool wm_drm_look_wants(const struct wm_drm_look *look, enum wm_gpu_field field);

/* What is reported first stands. */
void wm_drm_look_number(struct wm_drm_look *look, enum wm_gpu_field field, double value);
void wm_drm_look_text(struct wm_drm_look *look, enum wm_gpu_field field, const char *text);
void wm_drm_look_throttle(struct wm_drm_look *look, const char *text, unsigned reasons);
void wm_drm_look_missing(struct wm_drm_look *look, enum wm_gpu_field field,
                         enum wm_reading_state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A file that was read for the field, called `name`, a constant, was not OK: `err`. */
void wm_drm_look_failed(struct wm_drm_look *look, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *name,
                        const struct wm_error *err);

/* The parts of a look; each tells fields of its own. */
void wm_drm_look_at_files(struct wm_drm_look *look);     /* one file, one field */
void wm_drm_look_at_general(struct wm_drm_look *look);   /* names, numbers, drivers */
void wm_drm_look_at_condition(struct wm_drm_look *look); /* fan, throttling, errors */
void wm_drm_look_at_users(struct wm_drm_look *look);     /* processes and engines */

/* Finds card->link; in source_gpu_drm.c. */
void wm_drm_find_link(struct wm_drm_card *card);

/* Of all fields that are asked for and not reported, says that the driver does not
 * tell them. */
void wm_drm_look_finish(struct wm_drm_look *look);

#endif
