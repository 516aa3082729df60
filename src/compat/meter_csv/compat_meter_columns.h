/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_meter_columns.h - the header of a meter's CSV file: which column is the
 * time, which are watts, and in what units.
 */
#ifndef WM_COMPAT_METER_COLUMNS_H
#define WM_COMPAT_METER_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/base_lines.h"

enum wm_meter_csv_use {
    WM_METER_CSV_IGNORED,
    WM_METER_CSV_TIME,
    WM_METER_CSV_IS_GOOD, /* "true" where the row may be used */
    WM_METER_CSV_POWER,
};

struct wm_meter_csv_column {
    enum wm_meter_csv_use use;
    const char *name; /* points into the header */
    double scale;     /* to watts, or to seconds */
};

/* Of a file: time, flags, and what a meter with many sockets has for each. */
enum { WM_METER_CSV_COLUMNS_MAX = 256 };

struct wm_meter_csv_columns {
    struct wm_meter_csv_column columns[WM_METER_CSV_COLUMNS_MAX];
    size_t count, powers;
    char separator; /* ',', ';' or a tab */
};

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

/* The next cell of a row: *cursor moves on past it, and is NULL after the last.
 * Without the blanks and quotes around it; in quotes a separator is none. */
char *wm_meter_csv_next_cell(char **cursor, char separator, size_t *ret_length);

/* In a file whose separator is no comma the comma of a number may be its point. */
void wm_meter_csv_make_point(char *cell, size_t length, char separator);

/* A point in time: seconds since 1970 times `scale`, or a date. `after_ns` is what
 * came before. */
bool wm_meter_csv_read_time(const char *cell, size_t length, double scale, int64_t after_ns,
                            int64_t *ret_unix_ns);

#endif
