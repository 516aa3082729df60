/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_sqlite.h - SQLite, opened when something is the first to need it.
 *
 * Linked, it would be loaded by every command, most of which record nothing: 0.25 ms
 * of the 2 ms by which a start may be late. So its functions are found at run time,
 * and called by their own names through a table, as SQLite's header for extensions,
 * sqlite3ext.h, has it: the names below are macros, and a name that is missing here
 * does not link. The table is the process's, like what a linker fills in, and does
 * not change once it is filled.
 */
#ifndef WM_BASE_SQLITE_H
#define WM_BASE_SQLITE_H

#include <sqlite3.h>

#include "base/base_error.h"

#define WM_SQLITE_FUNCTIONS(FUNCTION)                                                      \
    FUNCTION(bind_double)                                                                  \
    FUNCTION(bind_int)                                                                     \
    FUNCTION(bind_int64)                                                                   \
    FUNCTION(bind_null)                                                                    \
    FUNCTION(bind_text)                                                                    \
    FUNCTION(busy_timeout)                                                                 \
    FUNCTION(clear_bindings)                                                               \
    FUNCTION(close)                                                                        \
    FUNCTION(column_blob)                                                                  \
    FUNCTION(column_bytes)                                                                 \
    FUNCTION(column_double)                                                                \
    FUNCTION(column_int)                                                                   \
    FUNCTION(column_int64)                                                                 \
    FUNCTION(column_text)                                                                  \
    FUNCTION(column_type)                                                                  \
    FUNCTION(create_function_v2)                                                           \
    FUNCTION(db_config)                                                                    \
    FUNCTION(db_handle)                                                                    \
    FUNCTION(errmsg)                                                                       \
    FUNCTION(errstr)                                                                       \
    FUNCTION(exec)                                                                         \
    FUNCTION(extended_errcode)                                                             \
    FUNCTION(finalize)                                                                     \
    FUNCTION(free)                                                                         \
    FUNCTION(get_autocommit)                                                               \
    FUNCTION(last_insert_rowid)                                                            \
    FUNCTION(limit)                                                                        \
    FUNCTION(mprintf)                                                                      \
    FUNCTION(open_v2)                                                                      \
    FUNCTION(prepare_v2)                                                                   \
    FUNCTION(reset)                                                                        \
    FUNCTION(result_blob)                                                                  \
    FUNCTION(result_error)                                                                 \
    FUNCTION(step)                                                                         \
    FUNCTION(str_appendall)                                                                \
    FUNCTION(str_appendf)                                                                  \
    FUNCTION(str_finish)                                                                   \
    FUNCTION(str_new)                                                                      \
    FUNCTION(stricmp)                                                                      \
    FUNCTION(system_errno)                                                                 \
    FUNCTION(value_double)                                                                 \
    FUNCTION(value_type)

/* Each function, its name without sqlite3_. */
struct wm_sqlite {
#define WM_SQLITE_MEMBER(name) __typeof__(sqlite3_##name) *name;
    WM_SQLITE_FUNCTIONS(WM_SQLITE_MEMBER)
#undef WM_SQLITE_MEMBER
};

/* All NULL until wm_sqlite_load() has succeeded: whoever opens a database, or puts
 * together a text, calls that first, and what closes makes sure that there is
 * something to close. */
extern struct wm_sqlite wm_sqlite;

/* From any thread, any number of times; it stays loaded. WM_ENODEV where SQLite is not
 * installed or is too old. */
int wm_sqlite_load(struct wm_error *err);

/* The same from a library of that name into a table of the caller's. */
int wm_sqlite_find(const char *library, struct wm_sqlite *ret_functions,
                   struct wm_error *err);

#define sqlite3_bind_double wm_sqlite.bind_double
#define sqlite3_bind_int wm_sqlite.bind_int
#define sqlite3_bind_int64 wm_sqlite.bind_int64
#define sqlite3_bind_null wm_sqlite.bind_null
#define sqlite3_bind_text wm_sqlite.bind_text
#define sqlite3_busy_timeout wm_sqlite.busy_timeout
#define sqlite3_clear_bindings wm_sqlite.clear_bindings
#define sqlite3_close wm_sqlite.close
#define sqlite3_column_blob wm_sqlite.column_blob
#define sqlite3_column_bytes wm_sqlite.column_bytes
#define sqlite3_column_double wm_sqlite.column_double
#define sqlite3_column_int wm_sqlite.column_int
#define sqlite3_column_int64 wm_sqlite.column_int64
#define sqlite3_column_text wm_sqlite.column_text
#define sqlite3_column_type wm_sqlite.column_type
#define sqlite3_create_function_v2 wm_sqlite.create_function_v2
#define sqlite3_db_config wm_sqlite.db_config
#define sqlite3_db_handle wm_sqlite.db_handle
#define sqlite3_errmsg wm_sqlite.errmsg
#define sqlite3_errstr wm_sqlite.errstr
#define sqlite3_exec wm_sqlite.exec
#define sqlite3_extended_errcode wm_sqlite.extended_errcode
#define sqlite3_finalize wm_sqlite.finalize
#define sqlite3_free wm_sqlite.free
#define sqlite3_get_autocommit wm_sqlite.get_autocommit
#define sqlite3_last_insert_rowid wm_sqlite.last_insert_rowid
#define sqlite3_limit wm_sqlite.limit
#define sqlite3_mprintf wm_sqlite.mprintf
#define sqlite3_open_v2 wm_sqlite.open_v2
#define sqlite3_prepare_v2 wm_sqlite.prepare_v2
#define sqlite3_reset wm_sqlite.reset
#define sqlite3_result_blob wm_sqlite.result_blob
#define sqlite3_result_error wm_sqlite.result_error
#define sqlite3_step wm_sqlite.step
#define sqlite3_str_appendall wm_sqlite.str_appendall
#define sqlite3_str_appendf wm_sqlite.str_appendf
#define sqlite3_str_finish wm_sqlite.str_finish
#define sqlite3_str_new wm_sqlite.str_new
#define sqlite3_stricmp wm_sqlite.stricmp
#define sqlite3_system_errno wm_sqlite.system_errno
#define sqlite3_value_double wm_sqlite.value_double
#define sqlite3_value_type wm_sqlite.value_type

#endif
