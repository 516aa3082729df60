/* SPDX-License-Identifier: Apache-2.0 */
/* base_options.c - reads structs with options. */
#include "base/base_options.h"

#include <string.h>

#include "base/base_error.h"

/* Of any struct with options. What is larger was not initialized. */
#define SIZE_MOST 4096

int wm_options_read(const void *given, void *ret_options, size_t size, struct wm_error *err)
{
    const unsigned char *bytes = given;
    size_t given_size = 0;

    if (given)
        memcpy(&given_size, given, sizeof(given_size));
    size_t read = !given ? 0 : given_size == 0 || given_size > size ? size : given_size;
    if ((given_size > 0 && given_size < sizeof(given_size)) || given_size > SIZE_MOST)
        return wm_fail(err, WM_EINVAL, "options do not have %zu bytes", given_size);
    for (size_t i = size; i < given_size; i++) {
        if (bytes[i])
            return wm_fail(err, WM_EINVAL, "an option needs a newer libwattmeter");
    }
    memset(ret_options, 0, size);
    if (given)
        memcpy(ret_options, given, read);
    return WM_OK;
}
