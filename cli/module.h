/* SPDX-License-Identifier: Apache-2.0 */
/* module.h - libraries that come with the command, apart from it because few runs need
 * them or what they are linked with: NVTX, views. */
#ifndef WM_MODULE_H
#define WM_MODULE_H

#include "cmd.h"

/* The path of the library called that: beside the command in the build folder, installed,
 * or in Python's package. The caller frees it; NULL: there is none. */
char *module_find(const char *library);

/* What a command needs of one. */
struct module_need {
    const char *command;  /* "plot" */
    const char *library;  /* "wattmeter-plot.so" */
    const char *symbol;   /* what it has; it begins with a const char * to WM_VERSION */
    const char *what;     /* it is linked with: "cairo and pango" */
    const char *packages; /* Debian's packages of it */
};

/* Loads it for the rest of the process. NULL, with a line that says what to install, where
 * that cannot be done. */
const void *module_load(const struct module_need *need, const struct cmd_streams *io);

#endif
