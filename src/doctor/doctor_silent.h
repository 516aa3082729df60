/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_silent.h - GPUs that the driver counts but that would not say who they are,
 * and so have no channel to show it. */
#ifndef WM_DOCTOR_SILENT_H
#define WM_DOCTOR_SILENT_H

#include "base/base_error.h"
#include "wattmeter/source.h"

struct wm_silent {
    char (*texts)[16];
    const char **labels; /* the same: "gpu2" */
    size_t count;
};

/* Of a source that has just been opened with these `gpus`; fills in the zeroed
 * `ret_silent`. Finds none where only some GPUs were asked for. */
int wm_silent_find(const struct wm_source *source, const char *gpus,
                   struct wm_silent *ret_silent, struct wm_error *err);

/* Copes with all zero. */
void wm_silent_release(struct wm_silent *silent);

#endif
