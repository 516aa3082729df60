/* SPDX-License-Identifier: Apache-2.0 */
/* base_sqlite.c - SQLite, opened when it is needed. */
#include "base/base_sqlite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

sqlite3_api_routines wm_sqlite;

/* All that is called anywhere, which scripts/check-banned compares. */
#define SYMBOL(name)                                                                       \
    {                                                                                      \
        "sqlite3_" #name, offsetof(sqlite3_api_routines, name)                             \
    }
static const struct symbol {
    const char *name;
    size_t slot;
} symbols[] = {
    SYMBOL(bind_double),    SYMBOL(bind_int),
    SYMBOL(bind_int64),     SYMBOL(bind_null),
    SYMBOL(bind_text),      SYMBOL(busy_timeout),
    SYMBOL(clear_bindings), SYMBOL(close),
    SYMBOL(column_bytes),   SYMBOL(column_count),
    SYMBOL(column_double),  SYMBOL(column_int),
    SYMBOL(column_int64),   SYMBOL(column_text),
    SYMBOL(column_type),    SYMBOL(create_function_v2),
    SYMBOL(db_config),      SYMBOL(db_handle),
    SYMBOL(errmsg),         SYMBOL(errstr),
    SYMBOL(exec),           SYMBOL(extended_errcode),
    SYMBOL(finalize),       SYMBOL(free),
    SYMBOL(get_autocommit), SYMBOL(last_insert_rowid),
    SYMBOL(limit),          SYMBOL(mprintf),
    SYMBOL(open_v2),        SYMBOL(prepare_v2),
    SYMBOL(reset),          SYMBOL(result_error),
    SYMBOL(step),           SYMBOL(str_appendall),
    SYMBOL(str_appendf),    SYMBOL(str_finish),
    SYMBOL(str_length),     SYMBOL(str_new),
    SYMBOL(stricmp),        SYMBOL(system_errno),
    SYMBOL(user_data),      SYMBOL(value_double),
    SYMBOL(value_type),     SYMBOL(vmprintf),
};
#undef SYMBOL

int wm_sqlite_find(const char *library, sqlite3_api_routines *ret_functions,
                   struct wm_error *err)
{
    sqlite3_api_routines functions = { 0 };

    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *reason = dlerror();
        return wm_fail(err, WM_ENODEV, "no SQLite (Debian: libsqlite3-0): %s",
                       reason ? reason : library);
    }
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

int wm_sqlite_load(struct wm_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_loaded;
    int status = WM_OK;

    /* Not pthread_once(): what fails for want of memory or of a file may be tried
     * again, and then has a reason of its own. */
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        status = wm_sqlite_find("libsqlite3.so.0", &wm_sqlite, err);
        is_loaded = status == WM_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
