/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later.h - functions of libraries that the command opens when it calls one of them first.
 *
 * Linked, a library takes a tenth of the time until a command begins: the loader maps it,
 * each fork copies the maps, and the end takes them away. Most runs call neither jansson
 * nor the mathematical functions before their command has begun, and many never do. The
 * functions keep their names, so that the code that calls them is the same in the library,
 * which is linked with both. One that is missing here links the command with its library,
 * and a test of the start fails.
 */
#ifndef LATER_H
#define LATER_H

#include <stdatomic.h>

/* Defines that function of a library. `...` passes its parameters on. */
#define LATER(library, type, name, parameters, ...)                                        \
    type name parameters                                                                   \
    {                                                                                      \
        static _Atomic(void *) found;                                                      \
        return ((type(*) parameters)later_find(library, #name, &found))(__VA_ARGS__);      \
    }

/* The function's address, which `found` keeps. Ends the process if there is none, as the
 * loader does for a library that is linked. */
void *later_find(const char *library, const char *name, _Atomic(void *) *found);

#endif
