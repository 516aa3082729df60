/* SPDX-License-Identifier: Apache-2.0 */
/* region_folder.h - the folder of an inbox: made, and removed with what is in it. */
#ifndef WM_REGION_FOLDER_H
#define WM_REGION_FOLDER_H

#include "base/base_error.h"
#include "region/region_ring.h"

struct wm_region_folder {
    char path[WM_FOLDER_SIZE];
    int fd, control_fd, wake_fd; /* -1: not open */
    struct wm_ring_control *control;
};

/* Makes it, in memory if possible, with `control`, which is locked, and `wake`. On failure
 * nothing is left behind. */
int wm_region_folder_make(struct wm_region_folder *folder, struct wm_error *err);

/* Closes it, and removes it, and what trackers left behind that died a day ago. */
void wm_region_folder_remove(struct wm_region_folder *folder);

/* Closes it. */
void wm_region_folder_close(struct wm_region_folder *folder);

#endif
