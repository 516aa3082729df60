/* SPDX-License-Identifier: Apache-2.0 */
/* region_file_row.h - gpu_tracker's sub-tracking file as all write it who write one: what
 * it begins with, and its rows, in CSV and in SQLite. */
#ifndef WM_REGION_FILE_ROW_H
#define WM_REGION_FILE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_sqlite.h"
#include "base/text/base_number.h"

/* Lines end as those of Python's csv module do. */
#define WM_REGION_FILE_HEADER "process_id,code_block_name,position,timestamp"
#define WM_REGION_FILE_LINE_END "\r\n"

#define WM_REGION_FILE_CREATE                                                              \
    "CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR, position INTEGER,"    \
    " timestamp FLOAT)"
#define WM_REGION_FILE_INSERT                                                              \
    "INSERT INTO data (process_id, code_block_name, position, timestamp)"                  \
    " VALUES (?, ?, ?, ?)"

/* A block of code was entered or left. */
struct wm_region_row {
    int64_t process;
    const char *name; /* valid UTF-8 */
    size_t name_length;
    bool is_stop;
    double when_s; /* since 1970, finite */
};

/* Room for a line with a name of that length: in quotes, and nothing but quotes. */
#define WM_REGION_ROW_SIZE(name_length) (2 * (name_length) + 2 * WM_NUMBER_SIZE + 16)

/* Puts the row there as a line of CSV with its end; returns the length, without a NUL. */
size_t wm_region_row_line(const struct wm_region_row *row, char *text);

/* Binds it to WM_REGION_FILE_INSERT; the name is borrowed. */
void wm_region_row_bind(const struct wm_region_row *row, sqlite3_stmt *insert);

#endif
