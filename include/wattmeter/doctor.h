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
#include <stddef.h>
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

/* The state of a source. */
enum wm_health {
    WM_HEALTH_GOOD = 0,   /* all values of its devices can be read */
    WM_HEALTH_PARTLY = 1, /* some values cannot be read */
    WM_HEALTH_ABSENT = 2, /* this machine lacks the hardware or its driver */
    WM_HEALTH_DENIED = 3, /* this user may not read it */
    WM_HEALTH_BROKEN = 4, /* it does not answer */
};

/* "good", "partly", "absent", "denied", "broken". */
WM_API const char *wm_health_name(enum wm_health health);

/* One channel of a source, and the results of reading it. */
struct wm_doctor_channel {
    const struct wm_channel *channel;
    enum wm_reading_state state; /* of the last reading */
    const char *why;             /* NULL if that is ok */
    double value;                /* meaningful in WM_READING_OK alone */
    size_t changes;              /* how often it had a new value */
    double period_s;             /* median time between two of them; 0: too few */
    bool dead;                   /* an energy counter that did not change */
};

/* A problem and its fix. */
struct wm_doctor_advice {
    const char *problem;
    const char *command; /* fixes it; NULL if no command does */
};

struct wm_doctor_source {
    const char *name; /* of a source, or "tracker": CPU time of process trees */
    const char *summary;
    enum wm_health health;
    const char *detail; /* the files or drivers that are read, or why none is */
    double read_s;      /* how long one reading takes, on average */
    double look_s;      /* time between two readings: shorter periods are not seen */
    const struct wm_doctor_channel *channels;
    size_t channel_count;
    const char *const *silent; /* labels of GPUs that do not answer */
    size_t silent_count;
    const struct wm_doctor_advice *advice;
    size_t advice_count;
};

/* The default duration of an examination. */
#define WM_DOCTOR_DURATION_NS INT64_C(3000000000)

/* Opens every source and reads all of them for `duration_ns`; 0 is WM_DOCTOR_DURATION_NS.
 * Waits at most four seconds for a driver that hangs when it is opened, and one second for
 * one that hangs later. `config` may be NULL. Fails only if memory runs out. */
WM_API int wm_doctor_examine(const struct wm_source_config *config, int64_t duration_ns,
                             struct wm_doctor **ret_doctor, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_doctor_free(struct wm_doctor *doctor);

/* Source number `index`, in the order in which they are listed; NULL past the
 * last. */
WM_API const struct wm_doctor_source *wm_doctor_source(const struct wm_doctor *doctor,
                                                       size_t index);

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
