/* SPDX-License-Identifier: Apache-2.0 */
/* base_version.c - the version this library was built as. */
#include "wattmeter/version.h"

const char *wm_version(void)
{
    return WM_VERSION;
}
