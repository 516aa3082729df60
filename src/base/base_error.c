/* SPDX-License-Identifier: Apache-2.0 */
/* base_error.c - turns a failure into a status for programs and a text for people. */
#include "base/base_error.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_text.h"

int wm_fail(struct wm_error *err, int status, const char *format, ...)
{
    va_list args;

    if (!err)
        return status;

    err->status = status;
    err->code = 0;
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

#define UNKNOWN "unknown error"

const char *wm_errno_text(int number)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    const char *text = strerrordesc_np(number);
    return text ? text : UNKNOWN;
#else
    return strerror(number);
#endif
}

int wm_fail_errno(struct wm_error *err, const char *what)
{
    int number = errno;
    const char *text = wm_errno_text(number);

    if (strcmp(text, UNKNOWN) == 0)
        return wm_fail(err, WM_EIO, "%s: %s %d", what, text, number);
    return wm_fail(err, wm_status_of_errno(number), "%s: %s", what, text);
}

/* The loader says "OBJECT: reason", where the object is what it could not open: the name as
 * it was given, or that of a library that this one needs. Only the reason is in the user's
 * language. */
int wm_fail_library(struct wm_error *err, const char *lack, const char *name)
{
    const char *reason = dlerror();
    size_t length = reason ? strcspn(reason, ":") : 0;
    bool is_itself = length == strlen(name) && strncmp(reason, name, length) == 0;

    if (is_itself && (!strchr(name, '/') || access(name, F_OK) != 0))
        return wm_fail(err, WM_ENODEV, "%s: %s was not found", lack, name);
    if (is_itself || length == 0)
        return wm_fail(err, WM_ENODEV, "%s: %s cannot be loaded", lack, name);
    return wm_fail(err, WM_ENODEV, "%s: %s cannot be loaded (%.*s)", lack, name,
                   (int)length, reason);
}

int wm_fail_memory(struct wm_error *err, const char *what)
{
    return wm_fail(err, WM_ENOMEM, "%s%sout of memory", what ? what : "", what ? ": " : "");
}
