/* SPDX-License-Identifier: Apache-2.0 */
/* base_sqlite.c - SQLite, opened when it is needed. */
#include "base/base_sqlite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct wm_sqlite wm_sqlite;

static const struct symbol {
    const char *name;
    size_t slot;
} symbols[] = {
#define SYMBOL(name) { "sqlite3_" #name, offsetof(struct wm_sqlite, name) },
    WM_SQLITE_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

int wm_sqlite_find(const char *library, struct wm_sqlite *ret_functions,
                   struct wm_error *err)
{
    struct wm_sqlite functions;

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
