/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - checks which sensors work on this machine, why others do not, and which
 * command fixes that.
 *
 *     struct wm_doctor *doctor;
 *     struct wm_error err;
 *     if (wm_doctor_examine(NULL, 0, &doctor, &err) < 0)
 *         return report(&err);
 *     wm_doctor_print(doctor, WM_FORMAT_TEXT, stdout, &err);
 *     wm_doctor_free(doctor);
 *
 * The examination reads every source repeatedly for some seconds and measures how often
 * each value changes. It changes nothing on the machine.
 *
 * Functions return zero or more on success and a negative `enum wm_status` on failure;
 * `err` may be NULL. Const results belong to the doctor.
 */
#ifndef WATTMETER_DOCTOR_H
#define WATTMETER_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_doctor;

/* The default duration of an examination. */
#define WM_DOCTOR_DURATION_NS INT64_C(3000000000)

/* Opens every source and reads all of them for `duration_ns`; 0 is WM_DOCTOR_DURATION_NS.
 * Waits at most four seconds for a driver that hangs when it is opened, and one second for
 * one that hangs later. `config` may be NULL. Fails only if memory runs out. */
WM_API int wm_doctor_examine(const struct wm_source_config *config, int64_t duration_ns,
                             struct wm_doctor **ret_doctor, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_doctor_free(struct wm_doctor *doctor);

/* Whether any sensor works on this machine. */
WM_API bool wm_doctor_can_measure(const struct wm_doctor *doctor);

/* Prints text or JSON; docs/doctor.md describes the structure. Returns WM_EIO if `out` did
 * not take all of it. */
WM_API int wm_doctor_print(const struct wm_doctor *doctor, enum wm_format format, FILE *out,
                           struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
