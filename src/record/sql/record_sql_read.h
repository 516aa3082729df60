/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql_read.h - SQLite databases that others may have written, and may be writing:
 * opened to be read. */
#ifndef WM_RECORD_SQL_READ_H
#define WM_RECORD_SQL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/sql/record_sql.h"

/* Whether a file that begins with these bytes is a database. */
bool wm_sql_is_database(const char *head, size_t length);

/* Opens the database at `path` and begins a transaction, so that a writer that goes on does
 * not show in one table and not in the other; also in a folder that may not be written to.
 * `shown` is what messages call it. `*ret_db` is NULL before;
 * where it is none afterwards, sqlite3_close() is due whatever this returned. */
int wm_sql_open_to_read(const char *path, const char *shown, sqlite3 **ret_db,
                        struct wm_error *err);

/* WM_EFORMAT unless there is a table of that name, which holds no quotes; a view could take
 * for ever to answer. */
int wm_sql_check_table(sqlite3 *db, const char *name, const char *path,
                       struct wm_error *err);

/* More rows of so many columns the file at `path` and its log have no room for. A scan of a
 * database whose pages point back at each other would go on for ever. */
int64_t wm_sql_most_rows(const char *path, int columns);

#endif
