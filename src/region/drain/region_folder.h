/* SPDX-License-Identifier: Apache-2.0 */
/* region_folder.h - the folder of an inbox: made, and removed with what is in it. */
#ifndef WM_REGION_FOLDER_H
#define WM_REGION_FOLDER_H

#include <dirent.h>

#include "base/base_error.h"
#include "region/region_ring.h"

struct wm_region_folder {
    char path[WM_FOLDER_SIZE];
    DIR *dir; /* for all who read it: it takes but one descriptor, */
    int fd;   /* and this is it; -1: none */
    int wake_fd;
    struct wm_ring_control *control;
};

/* Makes it, in memory if possible, with `control`, which is locked. On failure nothing is
 * left behind. */
int wm_region_folder_make(struct wm_region_folder *folder, struct wm_error *err);

/* Makes `wake` in it: apart from the rest, for no program has to wait for that. */
int wm_region_folder_make_wake(struct wm_region_folder *folder, struct wm_error *err);

/* Closes it and removes it. */
void wm_region_folder_remove(struct wm_region_folder *folder);

/* Removes what dead trackers of this user left behind. */
void wm_region_folder_remove_stale(void);

#endif
