/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_beside.h - the other files in the folder of a recording. */
#ifndef WM_COMPAT_AIPM_BESIDE_H
#define WM_COMPAT_AIPM_BESIDE_H

#include <stddef.h>

#include "base/base_error.h"

/* The file `name` in the folder of `path`, the caller's to free; NULL when out of
 * memory. */
char *wm_beside_path(const char *path, const char *name);

/* Its text, the caller's to free, and NULL where it cannot be had: only being out of
 * memory is a failure. */
int wm_beside_read(const char *path, const char *name, char **ret_text, size_t *ret_length,
                   struct wm_error *err);

/* Replaces it, or makes it, whole or not at all. */
int wm_beside_write(const char *path, const char *name, const char *text,
                    struct wm_error *err);

#endif
