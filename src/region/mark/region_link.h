/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_link.h - how a process that began before a tracker finds its inbox: a process
 * that measures itself has a link to the inbox's folder, named by the process.
 * Its descendants that have no inbox look for such a link now and then.
 */
#ifndef WM_REGION_LINK_H
#define WM_REGION_LINK_H

#include <stdbool.h>

#include "region/region_ring.h"

/* Has this process's link lead to the inbox at `path`; NULL removes the link. */
void wm_region_link_set(const char *path);

/* Whether to search again: once per tick of the kernel, as a search takes microseconds and
 * the question a few nanoseconds. */
bool wm_region_link_is_due(void);

/* The inbox of the nearest ancestor that has a link. Under the lock of region.c. */
bool wm_region_link_find(char path[WM_FOLDER_SIZE]);

/* In the child of a fork(): it has other ancestors. */
void wm_region_link_forget(void);

#endif
