/* SPDX-License-Identifier: Apache-2.0 */
/* test_calls.h - the calls of a recording that a test needs nothing else of. */
#ifndef WM_TEST_CALLS_H
#define WM_TEST_CALLS_H

#include "record/calls/record_calls.h"

/* Of the calls that were opened last. */
static struct wm_recording *recording_of_calls;

/* wm_calls_close() is due before the next ones are opened. */
static inline int open_calls(const char *path, size_t run, struct wm_calls **ret_calls,
                             struct wm_error *err)
{
    wm_recording_close(recording_of_calls);
    recording_of_calls = NULL;
    int status = wm_recording_open(path, run, &recording_of_calls, err);
    if (status == WM_OK)
        status = wm_calls_of_recording(recording_of_calls, ret_calls, err);
    if (status < 0) {
        wm_recording_close(recording_of_calls);
        recording_of_calls = NULL;
    }
    return status;
}

#endif
