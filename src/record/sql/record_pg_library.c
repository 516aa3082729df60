/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_library.c - libpq, opened when it is needed. */
#include "record/sql/record_pg.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/text/base_url.h"

static const struct symbol {
    const char *name;
    size_t slot;
} symbols[] = {
#define SYMBOL(name) { #name, offsetof(struct wm_libpq, name) },
    WM_LIBPQ_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

int wm_libpq_load(struct wm_libpq *ret_library, struct wm_error *err)
{
    struct wm_libpq library;

    void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return wm_fail(err, WM_ENODEV,
                       WM_URL_HIDDEN ": libpq.so.5 is not installed (Debian: libpq5)");
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            dlclose(handle);
            return wm_fail(err, WM_ENODEV, WM_URL_HIDDEN ": libpq.so.5 has no %s",
                           symbols[i].name);
        }
        memcpy((char *)&library + symbols[i].slot, &address, sizeof(address));
    }
    dlclose(handle);
    *ret_library = library;
    return WM_OK;
}
