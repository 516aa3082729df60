/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - how every call that can fail reports it.
 *
 *     struct wm_error err;
 *     if (wm_source_open("nvml", NULL, &source, &err) < 0)
 *         fprintf(stderr, "%s\n", err.text);
 *
 * The return value is for programs, the text for people. The text names what
 * failed, where and why, and what to do about it where that is known.
 */
#ifndef WATTMETER_ERROR_H
#define WATTMETER_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* What a program can act on. Zero and above are success. */
enum wm_status {
    WM_OK = 0,
    WM_ENOMEM = -1,
    WM_EINVAL = -2,    /* the caller broke the contract */
    WM_ENODEV = -3,    /* this machine does not have it */
    WM_EACCES = -4,    /* it is there, but not for this user */
    WM_EIO = -5,       /* it is there and would not answer */
    WM_EFORMAT = -6,   /* it answered something we cannot read */
    WM_ENOENT = -7,    /* no such file, command or process */
    WM_EEXIST = -8,    /* it is there already and may not be overwritten */
    WM_ECANCELED = -9, /* the caller has asked for an end */
};

/* Of fixed size, so that reporting a lack of memory needs none. */
struct wm_error {
    int status;
    char text[256];
};

#ifdef __cplusplus
}
#endif
#endif
