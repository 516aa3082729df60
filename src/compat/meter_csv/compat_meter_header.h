/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_meter_header.h - finds the header of a meter's CSV file, before which free lines
 * may stand, and says what is wrong with a table that is no meter's.
 */
#ifndef WM_COMPAT_METER_HEADER_H
#define WM_COMPAT_METER_HEADER_H

#include "base/text/base_lines.h"
#include "compat/meter_csv/compat_meter_columns.h"

/* What a message shows of a cell or of a name. */
enum { WM_METER_CSV_SHOWN = 33 };

/* Whether a file that begins with these bytes may be a meter's. */
bool wm_meter_csv_recognises(const char *head, size_t length);

/* Opens the file at `path`, and reads up to its header. `*ret_names`, to which `columns`
 * point, is NULL before, and the caller's to free whatever this returned. */
int wm_meter_csv_open(struct wm_lines *lines, const char *path,
                      struct wm_meter_csv_columns *columns, char **ret_names,
                      struct wm_error *err);

/* Up to `length` bytes of what somebody else wrote, in a message. */
const char *wm_meter_csv_show(const char *text, size_t length,
                              char shown[WM_METER_CSV_SHOWN]);

#endif
