/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_calls_rows.h - the rows of sub-tracking files, put together to calls.
 *
 * All that a row says is that a block of this name was entered or left in that process. So
 * the rows of each process and name are taken in the order of time, those of the same time
 * in the order of the files, and a stop ends the latest call that is open: right for calls
 * that follow each other and for such as nest. Which thread they are of is not in the
 * file: where threads of one process run the same block at the same time, starts, stops
 * and the sum of the calls' times are right, but not which stop ends which call.
 *
 * All zero has no rows.
 */
#ifndef WM_RECORD_CALLS_ROWS_H
#define WM_RECORD_CALLS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "base/text/base_names.h"

struct wm_paired_call {
    double start, stop; /* s since 1970 */
    const char *name;
    int64_t process;
    bool is_open; /* it has no stop */
};

struct wm_call_series; /* the rows of a process and a name */

struct wm_call_rows {
    struct wm_names names;
    struct wm_map numbers; /* from name and process to the series */
    struct wm_call_series *series;
    size_t series_count, series_room;
    size_t last;   /* the series of the row before */
    size_t starts; /* rows that are */

    struct wm_paired_call *calls; /* by their starts; of equal ones the longest first */
    size_t call_count;
    uint64_t stray; /* stops that ended nothing */
};

void wm_call_rows_release(struct wm_call_rows *rows);

/* `name` is ended by a NUL, `seconds` a time since 1970. WM_ENOMEM. */
int wm_call_rows_add(struct wm_call_rows *rows, int64_t process, const char *name,
                     bool is_stop, double seconds);

/* When all rows are there: makes the calls of them. WM_ENOMEM. */
int wm_call_rows_pair(struct wm_call_rows *rows);

#endif
