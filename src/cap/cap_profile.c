/* SPDX-License-Identifier: Apache-2.0 */
/* cap_profile.c - measures units of work under one cap after the other, as cap_search.h has
 * it: which GPUs, the windows, and what disturbs a window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_options.h"
#include "base/base_text.h"
#include "wattmeter/cap.h"
#include "wattmeter/cap_search.h"
#include "wattmeter/energy.h"
#include "wattmeter/gpu.h"

/* The time to settle after a change of the cap: clocks follow in a fraction of a second,
 * and sensors that average do so over one second. Before a short window, as of a trial, it
 * is a share of that. */
static const double window_default_s = 10, settle_share = 0.2, settle_max_s = 2;

/* A window is measured again, up to AGAIN times, if a GPU gets hotter than ever before by
 * more than `steady` (in degrees), or is slowed down by anything but its cap. The last one
 * counts in any case, as that is how the GPU behaves under this cap. */
static const double steady = 5;
enum { AGAIN = 2 };

/* Devices are sampled so often in a window, within these limits: then it shows when their
 * counters step, and the ends of short windows are sharp. */
static const double samples = 100, sample_min_s = 0.005, sample_max_s = 0.05;

/* How often the GPUs are asked for that in a window: reading clocks and temperatures takes
 * milliseconds, which may be those of the program that is measured. */
static const double looks = 50;

enum { slowed_down = WM_GPU_THROTTLE_HEAT | WM_GPU_THROTTLE_HARDWARE };

/* Drivers do not say how low a clock may be set. Below this share of the highest the power
 * hardly falls any more, and only the time grows. */
static const double clock_lowest = 0.4;

struct wm_cap_profile {
    struct wm_caps *caps;
    struct wm_cap_session *session;
    struct wm_cap_wish *wishes; /* the settings that are changed */
    size_t count;
    char identities[16384]; /* of their GPUs: more than fit a node */
    struct wm_gpus *gpus;   /* these two have the same GPUs */
    struct wm_meter *meter;
    struct wm_cap_plan plan; /* with the range of the GPUs */
    double settle_s;

    struct wm_cap_profile_state state;
    char message[512];    /* of the state */
    double cap;           /* 0: none was set yet */
    size_t done;          /* windows */
    double started_s;     /* when the first of them began */
    double hottest;       /* before this one; NAN: not known */
    unsigned again_count; /* of the window under this cap */

    /* Of this window. */
    bool is_settling; /* all the time, if whole runs are measured */
    double begun_s, looked_s;
    uint64_t snippet, units;
    double seconds, joules; /* NAN: not known */
    double temperature;     /* the highest; NAN: not known */
    char disturbed[256];    /* why it is to be measured again; empty: it is not */
};

static double now_s(void)
{
    return (double)wm_clock_monotonic_ns() / 1e9;
}

/* What is set, and between which ends. */

/* What is set on the GPU of the power limit `chosen`; wm_caps_count(): nothing, also of the
 * other settings of a GPU, which is chosen with all of them. */
static size_t find_setting(const struct wm_cap_profile *profile, size_t chosen)
{
    const enum wm_cap_kind kind =
        profile->plan.is_clock ? WM_CAP_GPU_CLOCK : WM_CAP_GPU_POWER;
    struct wm_cap_setting of, setting;
    size_t i = 0;

    wm_caps_get(profile->caps, chosen, &of);
    if (of.kind != WM_CAP_GPU_POWER)
        return wm_caps_count(profile->caps);
    for (; i < wm_caps_count(profile->caps); i++) {
        wm_caps_get(profile->caps, i, &setting);
        if (setting.kind == kind && strcmp(setting.identity, of.identity) == 0)
            break;
    }
    return i;
}

/* The range that all of them have. */
static int add_setting(struct wm_cap_profile *profile, size_t index, struct wm_error *err)
{
    struct wm_cap_plan *plan = &profile->plan;
    struct wm_cap_setting setting;

    wm_caps_get(profile->caps, index, &setting);
    const struct wm_gpu_value *top =
        plan->is_clock ? &setting.maximum : &setting.default_value;
    double lowest = setting.minimum.number;
    if (plan->is_clock && setting.minimum.state != WM_READING_OK)
        lowest = clock_lowest * top->number;
    else if (setting.minimum.state != WM_READING_OK)
        lowest = NAN;
    if (isnan(lowest) || top->state != WM_READING_OK)
        return wm_fail(err, WM_ENODEV, "%s: its %s cannot be set", setting.device,
                       plan->is_clock ? "clock" : "power limit");
    plan->minimum = fmax(plan->minimum, lowest);
    plan->maximum = fmin(plan->maximum, top->number);
    profile->wishes[profile->count++].index = index;
    wm_text_list(profile->identities, sizeof(profile->identities), ",", "%s",
                 setting.identity);
    return WM_OK;
}

static int find_settings(struct wm_cap_profile *profile, const char *gpus,
                         struct wm_error *err)
{
    size_t all = wm_caps_count(profile->caps), chosen = 0;

    profile->wishes = calloc(all + 1, sizeof(*profile->wishes));
    if (!profile->wishes)
        return wm_fail_memory(err, NULL);
    profile->plan.minimum = 0;
    profile->plan.maximum = INFINITY;
    int status = wm_caps_select(profile->caps, gpus, profile->wishes, &chosen, err);
    for (size_t i = 0; i < chosen && status == WM_OK; i++) {
        size_t index = find_setting(profile, profile->wishes[i].index);
        if (index < all)
            status = add_setting(profile, index, err);
    }
    if (status == WM_OK && profile->count == 0)
        status = wm_fail(err, WM_ENODEV,
                         profile->plan.is_clock ? "there is no GPU whose clock can be set"
                                                : "there is no GPU with a power cap");
    return status;
}

static int prepare(struct wm_cap_profile *profile, const char *gpus, struct wm_error *err)
{
    const struct wm_source_config config = { .gpus = profile->identities };
    const struct wm_meter_options options = {
        .gpus = profile->identities,
        .interval_ns = profile->state.interval_ns,
    };
    int status = wm_caps_open(NULL, &profile->caps, err);

    if (status == WM_OK)
        status = find_settings(profile, gpus, err);
    if (status == WM_OK)
        status = wm_gpus_open(&config, &profile->gpus, err);
    if (status == WM_OK)
        status = wm_cap_search_new(&profile->plan, &profile->state.search, err);
    if (status == WM_OK)
        status = wm_meter_open(&options, &profile->meter, err);
    if (status == WM_OK)
        status = wm_cap_session_begin(profile->caps, "cap profile", NULL, &profile->session,
                                      err);
    return status;
}

int wm_cap_profile_open(const struct wm_cap_profile_options *given,
                        struct wm_cap_profile **ret_profile, struct wm_error *err)
{
    struct wm_cap_profile_options own;
    const struct wm_cap_profile_options *options = &own;
    int status = wm_options_read(given, &own, sizeof(own), err);

    if (status < 0)
        return status;
    if (!(options->window_s >= 0))
        return wm_fail(err, WM_EINVAL, "a window takes more than 0 s, not %g",
                       options->window_s);
    struct wm_cap_profile *profile = calloc(1, sizeof(*profile));
    if (!profile)
        return wm_fail_memory(err, NULL);
    profile->plan = options->plan;
    double window_s = options->window_s > 0 ? options->window_s : window_default_s;
    double sample_s = fmin(fmax(window_s / samples, sample_min_s), sample_max_s);
    profile->settle_s = fmin(settle_share * window_s, settle_max_s);
    profile->hottest = NAN;
    profile->state = (struct wm_cap_profile_state) {
        .message = profile->message,
        .window_s = window_s,
        .interval_ns = (int64_t)(sample_s * 1e9),
    };
    status = prepare(profile, options->gpus, err);
    if (status < 0)
        wm_cap_profile_close(profile, NULL);
    else
        *ret_profile = profile;
    return status;
}

int wm_cap_profile_close(struct wm_cap_profile *profile, struct wm_error *err)
{
    if (!profile)
        return WM_OK;
    int status = wm_cap_session_end(profile->session, err);
    wm_meter_close(profile->meter, NULL);
    wm_gpus_close(profile->gpus);
    wm_caps_close(profile->caps);
    wm_cap_search_free(profile->state.search);
    free(profile->wishes);
    free(profile);
    return status;
}

const struct wm_cap_profile_state *
wm_cap_profile_state(const struct wm_cap_profile *profile)
{
    return &profile->state;
}

/* Windows. */

static void report_progress(struct wm_cap_profile *profile)
{
    size_t left = wm_cap_search_left(profile->state.search);
    double each_s = profile->done > 0
                        ? (now_s() - profile->started_s) / (double)profile->done
                        : profile->state.window_s + profile->settle_s;
    double left_s = each_s * (double)left;

    wm_text_list(profile->message, sizeof(profile->message), "\n",
                 "window %zu: %.5g %s; about %zu more, %.0f min %02.0f s",
                 profile->done + 1,
                 profile->plan.is_clock ? profile->cap / 1e6 : profile->cap,
                 profile->plan.is_clock ? "MHz" : "W", left - 1, floor(left_s / 60),
                 fmod(left_s, 60));
}

static void begin_window(struct wm_cap_profile *profile)
{
    profile->is_settling = true;
    profile->begun_s = now_s();
    profile->units = 0;
    profile->seconds = profile->joules = 0;
    profile->temperature = NAN;
    profile->disturbed[0] = '\0';
}

/* Sets the next cap; 0: there is none. */
static int begin_cap(struct wm_cap_profile *profile, struct wm_error *err)
{
    if (wm_cap_search_next(profile->state.search, &profile->cap) == 0)
        return 0;
    int status = wm_cap_session_check(profile->session, err);
    for (size_t i = 0; i < profile->count && status == WM_OK; i++)
        status = wm_cap_session_set(profile->session, profile->wishes[i].index,
                                    profile->cap, err);
    if (status < 0)
        return status;
    profile->again_count = 0;
    report_progress(profile);
    begin_window(profile);
    return 1;
}

/* Notes what slows a GPU down, other than its cap, and how hot the hottest one is. */
static void look(struct wm_cap_profile *profile)
{
    double now = now_s();

    if (now - profile->looked_s < profile->state.window_s / looks)
        return;
    profile->looked_s = now;
    wm_gpus_refresh(profile->gpus, WM_GPU_CLOCKS | WM_GPU_UTILIZATION, NULL);
    for (size_t i = 0; i < wm_gpus_count(profile->gpus); i++) {
        struct wm_gpu_value reasons, temperature;
        wm_gpu_get(profile->gpus, i, WM_GPU_TEMPERATURE, &temperature);
        if (temperature.state == WM_READING_OK)
            profile->temperature = fmax(profile->temperature, temperature.number);
        wm_gpu_get(profile->gpus, i, WM_GPU_THROTTLE, &reasons);
        if (reasons.state == WM_READING_OK && ((unsigned)reasons.number & slowed_down))
            snprintf(profile->disturbed, sizeof(profile->disturbed),
                     "the GPU is slowed down (%s)", reasons.text);
    }
}

/* At the end of a unit. What came before the window does not disturb it. */
static int end_settling(struct wm_cap_profile *profile, struct wm_error *err)
{
    int status = wm_meter_start(profile->meter, NULL, &profile->snippet, err);

    if (profile->started_s == 0) {
        profile->started_s = now_s();
        profile->hottest = profile->temperature;
    }
    begin_window(profile);
    profile->is_settling = false;
    return status < 0 ? status : 1;
}

static int end_snippet(struct wm_cap_profile *profile, struct wm_error *err)
{
    struct wm_meter_reading reading;
    int status = wm_meter_stop(profile->meter, profile->snippet, &reading, NULL, err);

    if (status < 0)
        return status;
    bool is_known = reading.gpu.state == WM_READING_OK;
    profile->seconds = reading.elapsed_s;
    profile->joules = is_known ? reading.gpu.joules : NAN;
    if (!is_known)
        snprintf(profile->disturbed, sizeof(profile->disturbed),
                 "the energy of the GPU is not known: %.200s", reading.gpu.why);
    return WM_OK;
}

/* Adds the window to the search, or has it measured again. */
static int end_window(struct wm_cap_profile *profile, struct wm_error *err)
{
    double units = (double)profile->units;

    if (profile->temperature > profile->hottest + steady && !profile->disturbed[0])
        snprintf(profile->disturbed, sizeof(profile->disturbed), "the GPU has got warmer");
    profile->hottest = fmax(profile->hottest, profile->temperature);
    if (profile->disturbed[0] && profile->again_count++ < AGAIN) {
        wm_text_list(profile->message, sizeof(profile->message), "\n", "%s: once more",
                     profile->disturbed);
        begin_window(profile);
        return 1;
    }
    if (isnan(profile->joules))
        return wm_fail(err, WM_ENODEV, "%s", profile->disturbed);
    if (profile->disturbed[0]) {
        wm_text_list(profile->message, sizeof(profile->message), "\n",
                     "note: %s; it counts", profile->disturbed);
        profile->state.disturbed++;
    }
    profile->done++;
    int status = wm_cap_search_add(profile->state.search, profile->cap,
                                   profile->seconds / units, profile->joules / units, err);
    return status < 0 ? status : begin_cap(profile, err);
}

int wm_cap_profile_step(struct wm_cap_profile *profile, uint64_t units,
                        struct wm_error *err)
{
    double settle_s = profile->started_s > 0 ? profile->settle_s : profile->state.window_s;
    double enough_s = profile->is_settling ? settle_s : profile->state.window_s;

    profile->message[0] = '\0';
    if (profile->cap == 0)
        return begin_cap(profile, err);
    profile->units += units;
    if (units == 0 || now_s() - profile->begun_s < enough_s) {
        look(profile);
        return 1;
    }
    /* Units have just ended: nothing delays the begin or the end of the window. */
    if (profile->is_settling)
        return end_settling(profile, err);
    int status = end_snippet(profile, err);
    look(profile);
    return status < 0 ? status : end_window(profile, err);
}

int wm_cap_profile_run(struct wm_cap_profile *profile, double seconds, double joules,
                       struct wm_error *err)
{
    if (!(seconds > 0 && joules >= 0))
        return wm_fail(err, WM_EINVAL, "a run cannot take %g s and %g J", seconds, joules);
    if (profile->started_s == 0)
        profile->started_s = now_s() - seconds;
    profile->message[0] = '\0';
    profile->units++;
    profile->seconds += seconds;
    profile->joules += joules;
    return profile->seconds < profile->state.window_s ? 1 : end_window(profile, err);
}
