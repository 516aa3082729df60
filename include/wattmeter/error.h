/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - the status and the text of a failed call.
 *
 *     struct wm_error err;
 *     if (wm_source_open("nvml", NULL, &source, &err) < 0)
 *         fprintf(stderr, "%s\n", err.text);
 *
 * The return value is for programs, the text for people. The text says what failed, where,
 * why, and how to fix it if known.
 */
#ifndef WATTMETER_ERROR_H
#define WATTMETER_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Results for programs. Zero and above are success. */
enum wm_status {
    WM_OK = 0,
    WM_ENOMEM = -1,
    WM_EINVAL = -2,    /* the caller broke the contract */
    WM_ENODEV = -3,    /* this machine lacks it */
    WM_EACCES = -4,    /* this user may not use it */
    WM_EIO = -5,       /* it did not answer */
    WM_EFORMAT = -6,   /* its answer could not be parsed */
    WM_ENOENT = -7,    /* no such file, command or process */
    WM_EEXIST = -8,    /* it exists and may not be overwritten */
    WM_ECANCELED = -9, /* the caller has canceled it */
};

/* Of fixed size, so that reporting a lack of memory needs no memory. */
struct wm_error {
    int status;
    char text[256];
    int code; /* the driver's number of a driver's failure, such as NVML's, or
               * WM_NO_ANSWER; else 0 */
};

/* The code of a driver that did not answer in time. */
#define WM_NO_ANSWER (-1)

#ifdef __cplusplus
}
#endif
#endif
