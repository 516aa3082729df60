/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_sub_tracking_write.h - writing gpu_tracker's sub-tracking file, which is of use as
 * a whole alone: under another name until then.
 *
 *     wm_sub_target_open(&target, path, mode, &err);
 *     for each row: wm_sub_target_row(&target, &row, &err);
 *     status = wm_sub_target_finish(&target, status, &err);
 */
#ifndef WM_COMPAT_SUB_TRACKING_WRITE_H
#define WM_COMPAT_SUB_TRACKING_WRITE_H

#include "compat/gpu_tracker/compat_sub_tracking.h"
#include "record/record_target.h"

/* The suffix of `path`: ".csv" or ".sqlite"; NULL and WM_EINVAL where it has none of these.
 */
const char *wm_sub_target_suffix(const char *path, struct wm_error *err);

/* `line_end` is that of a CSV file. wm_sub_target_finish() is due after a
 * success. */
int wm_sub_target_open(struct wm_target *ret_target, const char *path,
                       enum wm_record_mode mode, const char *line_end,
                       struct wm_error *err);

/* A row that was read keeps its cells in a CSV file; one of our own has none. */
int wm_sub_target_row(struct wm_target *target, const struct wm_sub_row *row,
                      struct wm_error *err);

/* Where `status`, that of the writing, is WM_OK the file gets its name, else it goes. The
 * status of both. */
int wm_sub_target_finish(struct wm_target *target, int status, struct wm_error *err);

#endif
