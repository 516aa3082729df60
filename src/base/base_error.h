/* SPDX-License-Identifier: Apache-2.0 */
/* base_error.h - filling in a struct wm_error; see wattmeter/error.h for what it means. */
#ifndef WM_BASE_ERROR_H
#define WM_BASE_ERROR_H

#include "wattmeter/error.h"

/* Fills `err` unless it is NULL and returns `status`, so that a failing
 * function ends in one line: return wm_fail(err, WM_EIO, ...). */
int wm_fail(struct wm_error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: `what` is the file or the action, and the
 * status and the reason come from errno. */
int wm_fail_errno(struct wm_error *err, const char *what);

/* The same for memory that ran out: WM_ENOMEM, and "WHAT: out of memory"; `what` may be
 * NULL. */
int wm_fail_memory(struct wm_error *err, const char *what);

/* What an errno means, in English whatever the locale; a constant. */
const char *wm_errno_text(int number);

/* For a dlopen() of `name` that failed: WM_ENODEV, and the text `lack` with the library
 * that was not found or cannot be loaded. */
int wm_fail_library(struct wm_error *err, const char *lack, const char *name);

/* The status that wm_fail_errno() would choose for this errno. */
int wm_status_of_errno(int number);

#endif
