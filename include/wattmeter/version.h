/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the version of wattmeter. The build checks that it matches meson.build. */
#ifndef WATTMETER_VERSION_H
#define WATTMETER_VERSION_H

#include "wattmeter/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WM_VERSION "0.1.0"

/* The version of the loaded library. A program may compare it with the WM_VERSION that it
 * was compiled with. */
WM_API const char *wm_version(void);

#ifdef __cplusplus
}
#endif
#endif
