/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - which wattmeter this is. The build checks it against its own. */
#ifndef WATTMETER_VERSION_H
#define WATTMETER_VERSION_H

#include "wattmeter/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WM_VERSION "0.1.0"

/* The version of the library that is loaded, which a program built against
 * another header may want to compare with WM_VERSION. */
WM_API const char *wm_version(void);

#ifdef __cplusplus
}
#endif
#endif
