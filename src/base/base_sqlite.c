/* SPDX-License-Identifier: Apache-2.0 */
/* base_sqlite.c - SQLite, opened when it is needed. */
#define SQLITE_CORE 1 /* here its functions' names are no macros */
#include "base/base_sqlite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

sqlite3_api_routines wm_sqlite;

/* All that is called anywhere, which scripts/check-banned compares. */
#define FUNCTIONS(FUNCTION)                                                                \
    FUNCTION(bind_blob)                                                                    \
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
    FUNCTION(column_count)                                                                 \
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
    FUNCTION(result_error)                                                                 \
    FUNCTION(step)                                                                         \
    FUNCTION(str_appendall)                                                                \
    FUNCTION(str_appendf)                                                                  \
    FUNCTION(str_finish)                                                                   \
    FUNCTION(str_length)                                                                   \
    FUNCTION(str_new)                                                                      \
    FUNCTION(stricmp)                                                                      \
    FUNCTION(system_errno)                                                                 \
    FUNCTION(user_data)                                                                    \
    FUNCTION(value_double)                                                                 \
    FUNCTION(value_type)                                                                   \
    FUNCTION(vmprintf)

static const struct symbol {
    const char *name;
    size_t slot;
} symbols[] = {
#define SYMBOL(name) { "sqlite3_" #name, offsetof(sqlite3_api_routines, name) },
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

int wm_sqlite_find(const char *library, int mode, sqlite3_api_routines *ret_functions,
                   struct wm_error *err)
{
    sqlite3_api_routines functions = { 0 };

    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | mode);
    if (!handle)
        return wm_fail_library(err, "no SQLite (Debian: libsqlite3-0)", library);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            dlclose(handle);
            return wm_fail(err, WM_ENODEV, "no SQLite 3.31 or newer: %s has no %s", library,
                           symbols[i].name);
        }
        memcpy((char *)&functions + symbols[i].slot, &address, sizeof(address));
    }
    dlclose(handle);
    *ret_functions = functions;
    return WM_OK;
}

static const char installed[] = "libsqlite3.so.0";

#ifdef WM_SQLITE_BUNDLED
/* What the process has loaded already goes first, such as that of Python's module: two
 * SQLites in a process undo each other's locks of a file
 * (https://sqlite.org/howtocorrupt.html, 2.2.1). One that is installed only is left alone:
 * a Python that brings its own would get that one instead. */
static int find(sqlite3_api_routines *ret_functions, struct wm_error *err)
{
    static const sqlite3_api_routines bundled = {
#define MEMBER(name) .name = sqlite3_##name,
        FUNCTIONS(MEMBER)
#undef MEMBER
    };

    (void)err;
    if (wm_sqlite_find(installed, RTLD_NOLOAD, ret_functions, NULL) < 0)
        *ret_functions = bundled;
    return WM_OK;
}
#else
static int find(sqlite3_api_routines *ret_functions, struct wm_error *err)
{
    return wm_sqlite_find(installed, 0, ret_functions, err);
}
#endif

int wm_sqlite_load(struct wm_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_loaded;
    int status = WM_OK;

    /* Not pthread_once(): what fails for want of memory or of a file may be tried
     * again, and then has a reason of its own. */
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        status = find(&wm_sqlite, err);
        is_loaded = status == WM_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
