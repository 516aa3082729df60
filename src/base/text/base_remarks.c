/* SPDX-License-Identifier: Apache-2.0 */
/* base_remarks.c - lines of text that go with a result. */
#include "base/text/base_remarks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_array.h"
#include "base/base_text.h"
#include "wattmeter/error.h"

int wm_remarks_add(struct wm_remarks *remarks, const char *format, ...)
{
    va_list args;
    char *text;

    if (wm_array_reserve(&remarks->all, remarks->count, &remarks->room,
                         sizeof(*remarks->all)) < 0)
        return WM_ENOMEM;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return WM_ENOMEM;
    wm_text_clean(text);
    wm_text_hide_passwords(text);
    remarks->all[remarks->count++] = text;
    return WM_OK;
}

const char *wm_remarks_get(const struct wm_remarks *remarks, size_t index)
{
    return index < remarks->count ? remarks->all[index] : NULL;
}

void wm_remarks_release(struct wm_remarks *remarks)
{
    for (size_t i = 0; i < remarks->count; i++)
        free(remarks->all[i]);
    free(remarks->all);
    *remarks = (struct wm_remarks) { 0 };
}
