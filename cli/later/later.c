/* SPDX-License-Identifier: Apache-2.0 */
/* later.c - finding a function of a library that is opened with the first of its calls. */
#include "later/later.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

/* As the loader's. */
enum { NO_LIBRARY = 127 };

/* From any thread: each finds the same. */
static void *find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    void *address = handle ? dlsym(handle, name) : NULL;

    if (!address) {
        fprintf(stderr, "wattmeter: %s\n", dlerror());
        _exit(NO_LIBRARY);
    }
    dlclose(handle);
    return address;
}

void *later_find(const char *library, const char *name, _Atomic(void *) *found)
{
    void *address = atomic_load_explicit(found, memory_order_relaxed);

    if (!address) {
        address = find(library, name);
        atomic_store_explicit(found, address, memory_order_relaxed);
    }
    return address;
}
