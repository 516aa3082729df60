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

/* What one process has of a GPU: the sum over its clients. */
struct wm_drm_use {
    pid_t pid;
    bool has_memory, has_window;
    double memory;
    double busy[WM_DRM_ENGINES]; /* engines of each kind, in the last window */
    double time_s;               /* of those that are counted by time */
    bool in_cycles;              /* it used some that are not */
    bool draws, computes;
};

/* A GPU, which one thread at a time looks at. */
struct wm_drm_board {
    struct wm_drm_card card;
    int dir;       /* descriptor of the card's folder, or -1 */
    char link[24]; /* folder of the PCI device whose link is the board's */

    /* The search for clients goes over all cards, to know whose they are; `gpus`
     * is this board's copy of the list, and gpus[place] itself. */
    struct wm_drm_gpu *gpus;
    size_t place;
    struct wm_drm_clients clients;
    bool searched;
    struct wm_drm_use *uses; /* room for one per client */
};

struct wm_drm_look {
    const char *sysfs, *procfs;
    struct wm_drm_board *board;
    struct wm_gpu_sheet *sheet;
    unsigned groups; /* of enum wm_gpu_group */

    bool told[WM_GPU_FIELDS]; /* a value, or why there is none */
    bool is_number[WM_GPU_FIELDS];
    double numbers[WM_GPU_FIELDS];     /* told, where it is one */
    const char *absent[WM_GPU_FIELDS]; /* a file that would have told it; or NULL */
};

/* Whether the look asks for the field. */
bool wm_drm_look_wants(const struct wm_drm_look *look, enum wm_gpu_field field);

/* What is told first stands. */
void wm_drm_look_number(struct wm_drm_look *look, enum wm_gpu_field field, double value);
void wm_drm_look_text(struct wm_drm_look *look, enum wm_gpu_field field, const char *text);
void wm_drm_look_missing(struct wm_drm_look *look, enum wm_gpu_field field,
                         enum wm_reading_state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Of all fields that are asked for and not told, says that the driver does not
 * tell them. */
void wm_drm_look_finish(struct wm_drm_look *look);

/* A file that is asked for one field. */
struct wm_drm_text {
    bool there;                  /* else the driver does not have it */
    enum wm_reading_state state; /* WM_READING_OK: `text` is whole, and ends with NUL */
    struct wm_error err;         /* why not, where the state is not ok */
    char text[8192];             /* twice what a file of sysfs can have */
};

/* Reads `path` below the card's folder. Where it `wakes` the GPU and that is
 * asleep, it is left alone. */
void wm_drm_look_read(const struct wm_drm_look *look, const char *path, bool wakes,
                      struct wm_drm_text *ret_file);

/* The same for one whole number in min..max. */
void wm_drm_look_read_number(const struct wm_drm_look *look, const char *path, bool wakes,
                             int64_t min, int64_t max, struct wm_drm_text *ret_file,
                             double *ret_number);

/* Turns a text that was read into a reason why a parser did not take it. */
void wm_drm_look_refuse(const struct wm_drm_look *look, const char *path,
                        struct wm_drm_text *file);

/* Tells `field` why the file, whose state is not ok, does not have it. */
void wm_drm_look_failed(struct wm_drm_look *look, enum wm_gpu_field field,
                        const struct wm_drm_text *file);

/* The parts of a look; each tells fields of its own. */
void wm_drm_look_at_files(struct wm_drm_look *look);     /* one file, one field */
void wm_drm_look_at_general(struct wm_drm_look *look);   /* names, numbers, drivers */
void wm_drm_look_at_condition(struct wm_drm_look *look); /* fan, throttling, errors */
void wm_drm_look_at_users(struct wm_drm_look *look);     /* processes and engines */

#endif
