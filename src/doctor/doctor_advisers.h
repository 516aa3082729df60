/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advisers.h - what keeps each source from being read here, and the commands
 * that change it. */
#ifndef WM_DOCTOR_ADVISERS_H
#define WM_DOCTOR_ADVISERS_H

#include "source/source_advice.h"
#include "wattmeter/doctor.h"

/* What stands for the tracker in the place of a source's name. */
#define WM_DOCTOR_TRACKER "tracker"

/* What `config` says completely: no path in it is NULL. `perf_errno` is 0, or why
 * there is no perf counter for a process tree. Looks and changes nothing. */
void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice);

#endif
