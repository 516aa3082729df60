/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ops.h - what a backend provides; nothing outside src/source sees it.
 *
 * To add a backend: copy source_hwmon.c, fill in one `const struct
 * wm_source_ops`, name it at the end of this file and in the table of source.c.
 * No other file changes, the command line included.
 */
#ifndef WM_SOURCE_OPS_H
#define WM_SOURCE_OPS_H

#include "wattmeter/source.h"

struct wm_source_ops {
    const char *name;
    const char *summary; /* one line, for people */

    /* The core allocates this many zeroed bytes and passes them to each
     * function below as `state`. */
    size_t state_size;

    /* Finds the devices. `config` is complete: no path in it is NULL but
     * `nvml`, which is NULL where the loader shall search, and `gpus`. It is
     * valid during the call only. When open fails, close() is called on
     * whatever it has built so far, so there is nothing to undo in here. */
    int (*open)(void *state, const struct wm_source_config *config, struct wm_error *err);

    /* The channels found by open(); borrowed, fixed until close(). All
     * channels of one device stand together. */
    size_t (*channels)(const void *state, const struct wm_channel **ret_channels);

    /* Fills one reading per channel, in the order of channels(). The readings
     * of one device carry one and the same time: the moment just before the
     * device was asked, with what counters it has asked first. */
    int (*read)(void *state, struct wm_reading *readings, struct wm_error *err);

    /* Why the last reading of that channel was not ok, or NULL; a borrowed
     * text. May be missing. */
    const char *(*why)(const void *state, size_t channel);

    /* What is being read, for people. May be missing. */
    const char *(*detail)(const void *state);

    /* GPU processes found by the last read(). May be missing. */
    size_t (*gpu_processes)(const void *state, const struct wm_gpu_process **ret_processes);

    /* All devices of the machine, chosen or not. May be missing. */
    size_t (*device_count)(const void *state);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

extern const struct wm_source_ops wm_source_host;
extern const struct wm_source_ops wm_source_tree;
extern const struct wm_source_ops wm_source_hwmon;
extern const struct wm_source_ops wm_source_nvml;
extern const struct wm_source_ops wm_source_drm;

#endif
