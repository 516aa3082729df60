/* SPDX-License-Identifier: Apache-2.0 */
/* base_error.c - turns a failure into a status for programs and a text for people. */
#include "base/base_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"

int wm_fail(struct wm_error *err, int status, const char *format, ...)
{
    va_list args;

    if (!err)
        return status;

    err->status = status;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    wm_text_clean(err->text);          /* names of files are anybody's text */
    wm_text_hide_passwords(err->text); /* a URL may stand in the wrong place */
    return status;
}

int wm_status_of_errno(int number)
{
    switch (number) {
    case ENOMEM:
        return WM_ENOMEM;
    case EACCES:
    case EPERM:
    case EROFS:
        return WM_EACCES;
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
        return WM_ENOENT;
    case ENODEV:
    case ENXIO:
        return WM_ENODEV;
    case EEXIST:
        return WM_EEXIST;
    default:
        return WM_EIO;
    }
}

int wm_fail_errno(struct wm_error *err, const char *what)
{
    int number = errno;
    char buffer[96];

    /* The GNU variant, which returns the text and may leave the buffer alone. */
    const char *reason = strerror_r(number, buffer, sizeof(buffer));
    return wm_fail(err, wm_status_of_errno(number), "%s: %s", what, reason);
}

int wm_fail_memory(struct wm_error *err, const char *what)
{
    return wm_fail(err, WM_ENOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
}
