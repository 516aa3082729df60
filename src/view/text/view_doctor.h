/* SPDX-License-Identifier: Apache-2.0 */
/* view_doctor.h - what the two views of an examination share. */
#ifndef WM_VIEW_DOCTOR_H
#define WM_VIEW_DOCTOR_H

#include "base/base_error.h"
#include "wattmeter/doctor.h"

/* Whether such a period could be seen: one that is hardly longer than the time
 * between two looks is that of the looks. */
bool wm_view_doctor_sees(const struct wm_doctor_source *source, double period_s);

/* Does not look whether `out` took it. */
int wm_view_doctor_json(const struct wm_doctor *doctor, FILE *out, struct wm_error *err);

#endif
