/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_open.h - opens all sources side by side, so that a driver that hangs keeps
 * the verdict on no other. */
#ifndef WM_DOCTOR_OPEN_H
#define WM_DOCTOR_OPEN_H

#include "base/base_error.h"
#include "wattmeter/source.h"

/* How long an opening is waited for: as long as `wattmeter info` does. */
#define WM_DOCTOR_OPEN_S 4

/* What came of opening one source. */
struct wm_doctor_opened {
    struct wm_source *source; /* the caller's to close; NULL where it failed */
    struct wm_error err;      /* why */
};

/* Opens the first `count` sources of the list into the zeroed `opened`, which is
 * the caller's to look at in any case. A driver that has not answered in time is
 * left to the thread that is in it, and its source has failed with WM_EIO. Fails
 * only for want of memory. `config` is complete, and needed during the call only. */
int wm_doctor_open(const struct wm_source_config *config, struct wm_doctor_opened *opened,
                   size_t count, struct wm_error *err);

#endif
