/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_sqlite.h - SQLite, opened when something is the first to need it.
 *
 * Linked, it would be loaded by every command, most of which record nothing: 0.25 ms
 * of the 2 ms by which a start may be late. So its functions are found at run time,
 * and called by their own names through a table, as SQLite's header for extensions has
 * it: there the names are macros. The table is the process's, like what a linker fills
 * in, and does not change once it is filled.
 */
#ifndef WM_BASE_SQLITE_H
#define WM_BASE_SQLITE_H

#define sqlite3_api (&wm_sqlite)
#include <sqlite3ext.h>

#include "base/base_error.h"

/* All NULL until wm_sqlite_load() has succeeded: whoever opens a database, or puts
 * together a text, calls that first, and what closes makes sure that there is
 * something to close. Beyond the list in base_sqlite.c it stays NULL. */
extern sqlite3_api_routines wm_sqlite;

/* From any thread, any number of times; it stays loaded. WM_ENODEV where SQLite is not
 * installed or is too old. */
int wm_sqlite_load(struct wm_error *err);

/* The same from a library of that name into a table of the caller's. `mode` goes to
 * dlopen(): RTLD_NOLOAD for one that the process has loaded already, or 0. */
int wm_sqlite_find(const char *library, int mode, sqlite3_api_routines *ret_functions,
                   struct wm_error *err);

#endif
