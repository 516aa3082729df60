/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what the doctor is made of: how often a value changes, seen by reading
 * often, and what keeps each source from being read here. */
#ifndef WM_DOCTOR_H
#define WM_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source_advice.h"
#include "wattmeter/doctor.h"

/* The state of a source. */
enum wm_health {
    WM_HEALTH_GOOD = 0,   /* all values of its devices can be read */
    WM_HEALTH_PARTLY = 1, /* some values cannot be read */
    WM_HEALTH_ABSENT = 2, /* this machine lacks the hardware or its driver */
    WM_HEALTH_DENIED = 3, /* this user may not read it */
    WM_HEALTH_BROKEN = 4, /* it does not answer */
};

/* "good", "partly", "absent", "denied", "broken". */
const char *wm_health_name(enum wm_health health);

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

/* Source number `index`, in the order in which they are listed; NULL past the
 * last. */
const struct wm_doctor_source *wm_doctor_source(const struct wm_doctor *doctor,
                                                size_t index);

/* Times between two changes that are kept; more of them add nothing. */
enum { WM_PACE_KEPT = 256 };

/* All zero is ready to begin. */
struct wm_pace {
    bool begun;
    double value;
    int64_t begun_ns, seen_ns; /* times of the first and the last reading */
    size_t changes;
    int64_t changed_ns; /* the last time */
    int64_t between_ns[WM_PACE_KEPT];
    size_t kept;
};

/* Takes the next reading. One without a value is left out by the caller. */
void wm_pace_note(struct wm_pace *pace, int64_t when_ns, double value);

/* For how long the value was read. */
int64_t wm_pace_watched_ns(const struct wm_pace *pace);

/* The median time between two changes, in seconds; 0 after fewer than three
 * changes. */
double wm_pace_period_s(const struct wm_pace *pace);

/* What `config` says completely: no path in it is NULL. `perf_errno` is 0, or why
 * there is no perf counter for a process tree. Looks and changes nothing. */
void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice);

#endif
