/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advice.h - what keeps a source from being read here, and the command
 * that changes it. */
#ifndef WM_DOCTOR_ADVICE_H
#define WM_DOCTOR_ADVICE_H

#include "base/base_error.h"
#include "wattmeter/doctor.h"

enum {
    WM_ADVICE_MAX = 8, /* for one source; more would not be read */
};

struct wm_advice {
    struct wm_doctor_advice list[WM_ADVICE_MAX];
    char texts[WM_ADVICE_MAX][2][256];
    size_t count;
};

/* What `config` says completely: no path in it is NULL. `perf_errno` is 0, or
 * why there is no perf counter for a process tree. Looks and changes nothing. */
void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice);

#endif
