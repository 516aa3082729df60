/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet_table.h - a CSV file that grows by a row at a time, each of which is in the
 * file when it has been ended: who is killed loses the one at work at most.
 *
 * A cell that is not known is empty. One thread at a time.
 */
#ifndef WM_TRACK_SNIPPET_TABLE_H
#define WM_TRACK_SNIPPET_TABLE_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/recording.h"

struct wm_meter_table;

/* A number that may be missing. */
struct wm_meter_cell {
    bool is_known;
    double value;
};

/* `header`, without a newline, is the first line; NULL: there is none. WM_EEXIST:
 * the file is there and may not be, somebody else writes it, or it has another
 * header. */
int wm_meter_table_open(const char *path, enum wm_record_mode mode, const char *header,
                        struct wm_meter_table **ret_table, struct wm_error *err);

/* WM_EIO where rows are missing. Accepts NULL. */
int wm_meter_table_close(struct wm_meter_table *table, struct wm_error *err);

/* The same before the first row: a file that was not there before goes away. */
void wm_meter_table_abandon(struct wm_meter_table *table);

void wm_meter_table_number(struct wm_meter_table *table, struct wm_meter_cell cell);

/* `text` is put between quotes where it needs them. */
void wm_meter_table_text(struct wm_meter_table *table, const char *text);

/* Writes the row. One that cannot be written is as if it had never been begun. */
int wm_meter_table_end_row(struct wm_meter_table *table, struct wm_error *err);

#endif
