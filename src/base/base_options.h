/* SPDX-License-Identifier: Apache-2.0 */
/* base_options.h - reads structs with options, which begin with their size (api.h). */
#ifndef WM_BASE_OPTIONS_H
#define WM_BASE_OPTIONS_H

#include <stddef.h>

#include "wattmeter/error.h"

/* Copies `given` (NULL: all zero) to `ret_options`, a struct of `size` bytes. A size of 0
 * in it stands for `size`: once a struct has grown, write the size of version 0.1 here.
 * WM_EINVAL: it has members that this library does not know. */
int wm_options_read(const void *given, void *ret_options, size_t size,
                    struct wm_error *err);

#endif
