/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_search.h - finds the best power cap for a piece of work with few measurements. A
 * search only computes: the caller sets the caps and measures. A profile (at the end of
 * this file) does that, too.
 *
 *     struct wm_cap_plan plan = { .minimum = 100, .maximum = 300 };
 *     struct wm_cap_search *search;
 *     struct wm_cap_answer answer;
 *     double cap, seconds, joules;
 *     if (wm_cap_search_new(&plan, &search, &err) < 0)
 *         return report(&err);
 *     while (wm_cap_search_next(search, &cap) > 0) {
 *         measure_at(cap, &seconds, &joules);
 *         if (wm_cap_search_add(search, cap, seconds, joules, &err) < 0)
 *             break;
 *     }
 *     if (wm_cap_search_answer(search, &answer, &err) == WM_OK)
 *         printf("%.0f W saves %.1f %%\n", answer.choice.cap,
 *                100 * answer.choice.saving.value);
 *     wm_cap_search_free(search);
 *
 * The same measurements give the same answer: the search uses no random numbers. An answer
 * is always a cap that can be set. "Cap" stands for a clock as well, in any unit.
 *
 * The rules of source.h hold here too.
 */
#ifndef WATTMETER_CAP_SEARCH_H
#define WATTMETER_CAP_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_cap_search;

/* What to minimize for a unit of work that takes E joules and t seconds. */
enum wm_cap_objective {
    WM_CAP_ENERGY = 0, /* E */
    WM_CAP_EDP = 1,    /* E t */
    WM_CAP_ED2P = 2,   /* E t^2 */
    WM_CAP_COST = 3,   /* E plus what the time is worth, in joules */
};
#define WM_CAP_OBJECTIVES 4

/* "energy", "edp", "ed2p", "cost"; NULL past the last. */
WM_API const char *wm_cap_objective_name(size_t objective);

/* Zero-initialize all but `minimum` and `maximum` for the defaults. */
struct wm_cap_plan {
    size_t size;    /* sizeof this struct */
    double minimum; /* the lowest cap that can be set */
    double maximum; /* the highest: the default limit, the base of all comparisons */
    enum wm_cap_objective objective;

    double step; /* between two settable caps; 0: 1, or 15 MHz for clocks */

    /* Try only these, in any order, each once. The numbers are copied. NULL: any cap, or
     * with a `cap_count` this number of caps at equal distances. */
    const double *caps;
    size_t cap_count;

    unsigned probes;  /* caps to try, the answer once more; 0: 8, or all `caps` */
    unsigned windows; /* measurements of each; 0: 2 */

    double max_slowdown; /* 0.05: a unit may take 5 % longer; 0: no limit */
    double time_watts;   /* for WM_CAP_COST: joules that a second is worth; 0: `maximum`,
                          * or for clocks the power of the first measurement */

    bool is_clock; /* caps are clocks: they cannot be compared with the power drawn */
};

/* Limits of the plan. */
#define WM_CAP_PROBES 8 /* if the plan has 0 */
#define WM_CAP_PROBES_MAX 64
#define WM_CAP_WINDOWS_MAX 100

/* WM_EINVAL says what is wrong with the plan. */
WM_API int wm_cap_search_new(const struct wm_cap_plan *plan,
                             struct wm_cap_search **ret_search, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_cap_search_free(struct wm_cap_search *search);

/* Gives the cap to measure next and returns 1, or returns 0 if more measurements would not
 * improve the answer. Gives the same cap again unless wm_cap_search_add() was called. A
 * batch is measured in an order such as A B C C B A, so that a drift (a card that warms up)
 * affects each cap alike. */
WM_API int wm_cap_search_next(struct wm_cap_search *search, double *ret_cap);

/* The largest number of further measurements, if their noise does not grow. */
WM_API size_t wm_cap_search_left(const struct wm_cap_search *search);

/* Adds what a unit of work took at that cap, which may be any that the plan allows.
 * WM_EINVAL: the plan does not allow it, or a number is not positive. */
WM_API int wm_cap_search_add(struct wm_cap_search *search, double cap, double seconds,
                             double joules, struct wm_error *err);

/* A number that lies between `low` and `high` with 95 % confidence. */
struct wm_cap_estimate {
    double value, low, high;
};

/* A cap on the curve of the model. */
struct wm_cap_point {
    double cap;
    struct wm_cap_estimate seconds, joules; /* of a unit of work */
    struct wm_cap_estimate objective;       /* the minimized value */
    size_t windows; /* measurements of it; 0: none, and the next two are 0 */
    double measured_seconds, measured_joules; /* their mean */
};

struct wm_cap_choice {
    double cap;
    size_t windows;                          /* measurements of it; 0: predicted */
    struct wm_cap_estimate saving, slowdown; /* of energy and of time, as ratios */
    struct wm_cap_estimate gain;             /* of the objective, as a ratio */
};

/* The reason for the choice. */
enum wm_cap_reason {
    WM_CAP_FOUND = 0,     /* the best by the model, and measured */
    WM_CAP_PREDICTED = 1, /* the same, but not measured */
    /* The model is not sure of a better one that was not measured. */
    WM_CAP_BEST_MEASURED = 2,
    WM_CAP_NEVER_BINDS = 3, /* no cap has an effect */
    WM_CAP_NO_GAIN = 4,     /* none is better than the default by more than the noise */
};

struct wm_cap_answer {
    struct wm_cap_plan plan; /* with the defaults filled in */
    enum wm_cap_reason reason;
    struct wm_cap_choice choice;                /* the default limit if no cap is better */
    struct wm_cap_choice of[WM_CAP_OBJECTIVES]; /* the choice by each objective */
    double noise;                               /* of one measurement, as a ratio */
    const struct wm_cap_point *curve; /* from the lowest cap to the highest; borrowed until
                                       * the search is asked again or freed */
    size_t count;                     /* points of the curve */
};

/* The answer so far. WM_ENODEV: fewer than two caps were measured, or not the maximum. */
WM_API int wm_cap_search_answer(struct wm_cap_search *search,
                                struct wm_cap_answer *ret_answer, struct wm_error *err);

/* Prints the measurements, the choice, and the choice by each other objective, as text or
 * JSON; docs/cap-profile.md has the keys. As CSV it is the curve, a line for each cap.
 * Returns WM_EIO if `out` did not take all of it. */
WM_API int wm_cap_answer_print(const struct wm_cap_answer *answer, enum wm_format format,
                               FILE *out, struct wm_error *err);

/* A sweep that another tool has measured. */
struct wm_cap_row {
    double cap, seconds, joules;
};

struct wm_cap_table {
    struct wm_cap_row *rows;
    size_t count;
    bool is_clock; /* the caps are of the clock, in hertz */
};

#define WM_CAP_ROWS_MAX 10000

/* Reads CSV with the columns cap_w (or cap_hz), seconds and joules, all above 0; other
 * columns are ignored. Each row is one measurement; a cap may have several. A row without
 * seconds and joules is skipped, so the output of WM_FORMAT_CSV can be read. Release
 * the table with wm_cap_table_release(). */
WM_API int wm_cap_table_load(const char *path, struct wm_cap_table *ret_table,
                             struct wm_error *err);
WM_API void wm_cap_table_release(struct wm_cap_table *table);

/* A search over the caps of the table, the highest of which is the default limit. Its
 * measurements are the rows of the table: all rows of a cap when that cap is measured.
 * Limits, caps and windows of the plan are ignored. */
WM_API int wm_cap_search_replay(const struct wm_cap_plan *plan,
                                const struct wm_cap_table *table,
                                struct wm_cap_search **ret_search, struct wm_error *err);

/* A search that has all rows of the table. Its answer may be any cap in the range of the
 * table. */
WM_API int wm_cap_search_fit(const struct wm_cap_plan *plan,
                             const struct wm_cap_table *table,
                             struct wm_cap_search **ret_search, struct wm_error *err);

/* Measures units of work on this machine under one cap after the other:
 *
 *     struct wm_cap_profile_options options = { .plan.objective = WM_CAP_EDP };
 *     struct wm_cap_profile *profile;
 *     int more;
 *     if (wm_cap_profile_open(&options, &profile, &err) < 0)
 *         return report(&err);
 *     for (uint64_t units = 0;
 *          (more = wm_cap_profile_step(profile, units, &err)) > 0; units = 1)
 *         train_one_batch();
 *     if (more == 0 && wm_cap_search_answer(wm_cap_profile_state(profile)->search, &answer,
 *                                           &err) == WM_OK)
 *         wm_cap_answer_print(&answer, WM_FORMAT_TEXT, stdout, &err);
 *     wm_cap_profile_close(profile, &err);
 *
 * It measures one window after another with a meter (energy.h). If a unit queues work on
 * the GPU, wait for the GPU at its end. The GPU has time to settle between two windows, and
 * a whole window to get warm before the first one. A window is measured again, at most
 * twice, if the GPU gets hotter or is slowed down by anything but its cap. One thread at a
 * time. */
struct wm_cap_profile;

struct wm_cap_profile_options {
    size_t size;             /* sizeof this struct */
    struct wm_cap_plan plan; /* the range is ignored: the GPUs have it */
    const char *gpus; /* to cap and measure, by the words of wm_caps_select(); NULL: all */
    double window_s;  /* of a window, up to the end of a unit; 0: 10 */
};

/* Finds the GPUs and begins a session of caps (cap.h), which changes nothing yet.
 * WM_EINVAL: the plan, the window or the choice of GPUs is wrong. WM_ENODEV: a GPU has no
 * cap that can be set. */
WM_API int wm_cap_profile_open(const struct wm_cap_profile_options *options,
                               struct wm_cap_profile **ret_profile, struct wm_error *err);

/* Goes on after `units` of work have ended since the last step: 0 before the first, and at
 * any time while a unit is at work, to watch the GPU. It sets the caps; the first step sets
 * the first one. Returns 1 if the caller is to go on with work, and 0 if the search is
 * done. WM_EACCES, WM_EEXIST, WM_EIO: the cap cannot be set, as in wm_cap_session_set().
 * WM_ENODEV: the energy of a GPU is unknown. */
WM_API int wm_cap_profile_step(struct wm_cap_profile *profile, uint64_t units,
                               struct wm_error *err);

/* The same after a unit that the caller has measured alone, such as the run of a command.
 * All units of a profile are measured in the same way. Call wm_cap_profile_step() with 0
 * units before the first one and while one is at work. */
WM_API int wm_cap_profile_run(struct wm_cap_profile *profile, double seconds, double joules,
                              struct wm_error *err);

struct wm_cap_profile_state {
    struct wm_cap_search *search; /* what was measured so far; the profile's */
    const char *message;          /* of the last step, for people: lines, or "" */
    size_t disturbed; /* windows that count, with a GPU that was slowed down or got hot */
    double window_s;  /* of a window, at least */
    int64_t interval_ns; /* between two samples; for a tracker of the work, too */
};

/* Borrowed until the next step. */
WM_API const struct wm_cap_profile_state *
wm_cap_profile_state(const struct wm_cap_profile *profile);

/* Restores the caps and frees the profile in any case; statuses as in wm_cap_session_end().
 * Accepts NULL. */
WM_API int wm_cap_profile_close(struct wm_cap_profile *profile, struct wm_error *err);

#ifdef __cplusplus
}
#endif
#endif
