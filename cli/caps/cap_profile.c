/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_profile.c - `wattmeter cap profile -- COMMAND`: a command measured under one cap
 * after the other.
 *
 * With --unit the command runs all the time under one tracker, and its calls of a region
 * are counted; else it is run again and again.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "caps/cap_search.h"
#include "caps/caps.h"
#include "interrupt.h"
#include "measure.h"

/* A tick, by which the ends of a window may be off, is a hundredth of it, within these
 * limits. */
static const double ticks = 100, tick_min_s = 0.005, tick_max_s = 0.05;

/* The default length of a window, and the time to settle after a change of the cap: clocks
 * follow in a fraction of a second, and sensors that average do so over one second. Before
 * a short window, as of a trial, it is a share of that. */
static const double window_s = 10, settle_share = 0.2, settle_max_s = 2;

/* A window is measured again, up to AGAIN times, if a GPU gets hotter than ever before by
 * more than `steady` (in degrees), or is slowed down by anything but its cap. The last one
 * counts in any case, as that is how the GPU behaves under this cap. */
static const double steady = 5;
enum { AGAIN = 2 };

/* Parts of drivers' names for such reasons. NVIDIA's "slowdown" is by heat or by a power
 * brake. */
static const char *const slowed_down[] = { "slowdown", "therm", "temp_", "hot", "ratl" };

/* How long a command that is no longer needed may take to end after SIGTERM. */
static const double patience_s = 10;

/* Drivers do not say how low a clock may be set. Below this share of the highest the power
 * hardly falls any more, and only the time grows. */
static const double clock_lowest = 0.4;

struct profile {
    const struct cap_search_args *args;
    char **words;
    const struct cmd_streams *io;
    const volatile sig_atomic_t *stop;
    double window_s, settle_s;
    struct wm_caps *caps;
    struct wm_cap_session *session;
    struct wm_cap_wish *wishes; /* the settings that are changed */
    size_t count;
    char identities[16384]; /* of their GPUs: more than fit a node */
    struct wm_cap_plan plan;
    double *list;
    struct wm_cap_search *search;
    struct wm_tracker *tracker; /* of --unit */
    struct wm_gpus *gpus;       /* the same as in `identities` */
    double hottest;             /* so far; NAN: not known */
    size_t disturbed_count;     /* windows that were, and count */
    off_t input_at;             /* where the standard input stands; -1: in no file */
    bool has_said_unit;         /* that it was not called yet */
    char disturbed[256]; /* why this window is to be measured again; empty: it is not */
    bool has_started;    /* whether the command was started at least once */
    char why[256];       /* why the energy is not known, if it is not */
    bool has_ended;      /* whether the command ended early, with status 0 */
};

/* At the end of a tick. */
struct moment {
    double seconds, joules, temperature; /* NAN: not known */
    uint64_t units;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What is turned, and between which ends. */

static bool is_meant(const struct profile *profile, const struct wm_cap_setting *setting,
                     const struct wm_cap_setting *chosen)
{
    return setting->kind ==
               (profile->plan.is_clock ? WM_CAP_GPU_CLOCK : WM_CAP_GPU_POWER) &&
           strcmp(setting->identity, chosen->identity) == 0;
}

/* The range that all of them have. */
static int add_setting(struct profile *profile, size_t index, struct wm_error *err)
{
    struct wm_cap_plan *plan = &profile->plan;
    struct wm_cap_setting setting;
    size_t used = strlen(profile->identities);

    wm_caps_get(profile->caps, index, &setting);
    const struct wm_gpu_value *top =
        plan->is_clock ? &setting.maximum : &setting.default_value;
    double lowest = setting.minimum.number;
    if (plan->is_clock && setting.minimum.state != WM_READING_OK)
        lowest = clock_lowest * top->number;
    else if (setting.minimum.state != WM_READING_OK)
        lowest = NAN;
    if (isnan(lowest) || top->state != WM_READING_OK)
        return output_fail(err, WM_ENODEV, "%s: its %s cannot be set", setting.device,
                           plan->is_clock ? "clock" : "power limit");
    plan->minimum = fmax(plan->minimum, lowest);
    plan->maximum = fmin(plan->maximum, top->number);
    profile->wishes[profile->count++].index = index;
    snprintf(profile->identities + used, sizeof(profile->identities) - used, "%s%s",
             used ? "," : "", setting.identity);
    return WM_OK;
}

static int find_settings(struct profile *profile, struct wm_error *err)
{
    size_t room = wm_caps_count(profile->caps), chosen_count = 0;
    struct wm_cap_wish *chosen = calloc(room + 1, sizeof(*chosen));

    profile->wishes = calloc(room + 1, sizeof(*profile->wishes));
    if (!chosen || !profile->wishes) {
        free(chosen);
        return output_fail(err, WM_ENOMEM, "out of memory");
    }
    profile->plan.maximum = INFINITY;
    int status =
        wm_caps_select(profile->caps, profile->args->devices, chosen, &chosen_count, err);
    for (size_t i = 0; i < chosen_count && status == WM_OK; i++)
        for (size_t k = 0; k < room && status == WM_OK; k++) {
            struct wm_cap_setting one, other;
            wm_caps_get(profile->caps, chosen[i].index, &one);
            wm_caps_get(profile->caps, k, &other);
            if (one.kind == WM_CAP_GPU_POWER && is_meant(profile, &other, &one))
                status = add_setting(profile, k, err);
        }
    free(chosen);
    if (status == WM_OK && profile->count == 0)
        status =
            output_fail(err, WM_ENODEV,
                        profile->plan.is_clock ? "there is no GPU whose clock can be set"
                                               : "there is no GPU with a power cap");
    return status;
}

static void spread_caps(struct wm_cap_plan *plan, double *list, size_t count)
{
    double range = plan->maximum - plan->minimum;

    for (; plan->cap_count < count; plan->cap_count++)
        list[plan->cap_count] =
            plan->minimum + round(range * (double)plan->cap_count / ((double)count - 1));
}

static int parse_caps(struct wm_cap_plan *plan, double *list, const char *words,
                      struct wm_error *err)
{
    double unit = plan->is_clock ? 1e6 : 1;

    for (char *end;; words = end + 1) {
        double cap = unit * strtod(words, &end);
        if (end == words || (*end != ',' && *end != '\0') ||
            plan->cap_count == WM_CAP_PROBES_MAX)
            return output_fail(err, WM_EINVAL,
                               "--caps is a number of caps or a list such as 150,200,250, "
                               "of %d at most",
                               WM_CAP_PROBES_MAX);
        list[plan->cap_count++] = cap;
        if (*end == '\0')
            return WM_OK;
    }
}

/* --caps: a number of them, or a list. */
static int list_caps(struct profile *profile, struct wm_error *err)
{
    const char *at = profile->args->caps;
    struct wm_cap_plan *plan = &profile->plan;
    char *end;

    if (!at)
        return WM_OK;
    profile->list = calloc(WM_CAP_PROBES_MAX, sizeof(*profile->list));
    if (!profile->list)
        return output_fail(err, WM_ENOMEM, "out of memory");
    plan->caps = profile->list;
    double first = strtod(at, &end);
    if (*end != '\0' || !(first >= 2 && first <= WM_CAP_PROBES_MAX))
        return parse_caps(plan, profile->list, at, err);
    spread_caps(plan, profile->list, (size_t)first);
    return WM_OK;
}

static int prepare(struct profile *profile, struct wm_error *err)
{
    struct wm_cap_plan *plan = &profile->plan;
    int status = wm_caps_open(NULL, &profile->caps, err);

    if (status == WM_OK)
        status = find_settings(profile, err);
    const struct wm_source_config chosen = { .gpus = profile->identities };
    if (status == WM_OK)
        status = wm_gpus_open(&chosen, &profile->gpus, err);
    if (status == WM_OK)
        status = list_caps(profile, err);
    if (status == WM_OK)
        status = wm_cap_search_new(plan, &profile->search, err);
    if (status == WM_OK)
        status = wm_cap_session_begin(profile->caps, "cap profile", NULL, &profile->session,
                                      err);
    return status;
}

static int set_cap(struct profile *profile, double cap, struct wm_error *err)
{
    int status = wm_cap_session_check(profile->session, err);

    for (size_t i = 0; i < profile->count && status == WM_OK; i++)
        status = wm_cap_session_set(profile->session, profile->wishes[i].index, cap, err);
    return status;
}

/* Trackers. */

static int new_tracker(struct profile *profile, struct wm_tracker **ret_tracker,
                       struct wm_error *err)
{
    double tick_s = fmin(fmax(profile->window_s / ticks, tick_min_s), tick_max_s);
    struct wm_tracker_options options = { .interval_ns = (int64_t)(tick_s * 1e9),
                                          .gpus = profile->identities,
                                          .own_process = true };
    struct wm_tracker *tracker;
    int status = wm_tracker_new(&options, &tracker, err);

    if (status < 0)
        return status;
    status = wm_tracker_add_all(tracker, err);
    if (status == WM_OK)
        status = wm_tracker_start(
            tracker, &(struct wm_tracker_target) { .argv = profile->words }, err);
    if (status < 0) {
        wm_tracker_free(tracker);
        return status;
    }
    profile->has_started = true;
    *ret_tracker = tracker;
    return WM_OK;
}

static double hottest(const struct wm_report *report)
{
    double highest = NAN;

    for (size_t i = 0; i < wm_report_count(report, WM_REPORT_GPU); i++) {
        struct wm_report_part part = { .kind = WM_REPORT_GPU, .index = i };
        struct wm_report_figure figure;
        if (wm_report_figure(report, &part, "max_temperature", &figure) == WM_OK &&
            figure.state != WM_REPORT_MISSING)
            highest = fmax(highest, figure.value); /* whichever is a number */
    }
    return highest;
}

/* Notes what slows a GPU down, other than its cap. */
static void watch_slowdown(struct profile *profile)
{
    wm_gpus_refresh(profile->gpus, WM_GPU_CLOCKS, NULL);
    for (size_t i = 0; i < wm_gpus_count(profile->gpus); i++) {
        struct wm_gpu_value reasons;
        wm_gpu_get(profile->gpus, i, WM_GPU_THROTTLE, &reasons);
        for (size_t k = 0; k < sizeof(slowed_down) / sizeof(slowed_down[0]); k++)
            if (reasons.state == WM_READING_OK && strstr(reasons.text, slowed_down[k]))
                snprintf(profile->disturbed, sizeof(profile->disturbed),
                         "the GPU is slowed down (%s)", reasons.text);
    }
}

static void watch_temperature(struct profile *profile, double temperature)
{
    if (temperature > profile->hottest + steady)
        snprintf(profile->disturbed, sizeof(profile->disturbed), "the GPU has got warmer");
    profile->hottest = fmax(profile->hottest, temperature);
}

static uint64_t units_of(const struct wm_report *report, const char *name)
{
    struct wm_report_region region;
    size_t index;

    if (!name || wm_report_find(report, WM_REPORT_REGION, name, &index) < 0 ||
        wm_report_region(report, WM_REPORT_REGION, index, &region) < 0)
        return 0;
    return region.calls;
}

/* What a tracker knows by now. */
static int look(struct profile *profile, struct wm_tracker *tracker,
                struct moment *ret_moment, struct wm_error *err)
{
    struct wm_report_figure seconds, joules;
    struct wm_report *report;
    int status = wm_tracker_report(tracker, &report, err);

    if (status < 0)
        return status;
    wm_report_figure(report, NULL, "time", &seconds);
    wm_report_figure(report, NULL, "gpu_energy", &joules);
    *ret_moment = (struct moment) {
        .seconds = seconds.value,
        .joules = joules.state == WM_REPORT_MISSING ? NAN : joules.value,
        .temperature = hottest(report),
        .units = units_of(report, profile->args->unit),
    };
    if (joules.state == WM_REPORT_MISSING)
        snprintf(profile->why, sizeof(profile->why),
                 "the energy of the GPU is not known: %s",
                 joules.why ? joules.why : "it cannot be measured");
    wm_report_free(report);
    return status;
}

/* Windows of a command that runs all the time. */

/* `moment` has all that it has done. */
static int command_ended(struct profile *profile, struct moment *moment,
                         struct wm_error *err)
{
    wm_tracker_stop(profile->tracker, NULL);
    look(profile, profile->tracker, moment, NULL);
    int code = wm_tracker_exit_code(profile->tracker);
    wm_tracker_free(profile->tracker);
    profile->tracker = NULL;
    profile->has_ended = code == 0;
    return output_fail(err, WM_ENOENT,
                       "the command ended (status %d) before the search was done", code);
}

/* A misspelt name would cost all the time that the command takes. */
static void say_unit(struct profile *profile, const struct moment *moment)
{
    if (profile->has_said_unit || moment->units > 0 || moment->seconds < profile->window_s)
        return;
    profile->has_said_unit = true;
    fprintf(profile->io->chat, "no call of the region '%.80s' has ended yet\n",
            profile->args->unit);
}

/* The next tick at which a unit has just ended, from `until_s` (of the tracker) on. */
static int wait_for_unit(struct profile *profile, double until_s, struct moment *moment,
                         struct wm_error *err)
{
    uint64_t before = moment->units;
    int status = WM_OK;

    while (status == WM_OK && (moment->seconds < until_s || moment->units == before)) {
        before = moment->units;
        int state = wm_tracker_poll(profile->tracker, -1, err);
        if (*profile->stop)
            return output_fail(err, WM_ECANCELED, "interrupted");
        if (state < 0)
            return state;
        if (state != WM_TRACKER_RUNNING)
            return command_ended(profile, moment, err);
        watch_slowdown(profile);
        status = look(profile, profile->tracker, moment, err);
        say_unit(profile, moment);
    }
    return status;
}

static int measure_unit(struct profile *profile, double *ret_seconds, double *ret_joules,
                        struct wm_error *err)
{
    struct moment from = { 0 }, to;
    int status = look(profile, profile->tracker, &from, err);

    if (status == WM_OK)
        status = wait_for_unit(profile, from.seconds + profile->settle_s, &from, err);
    to = from;
    profile->disturbed[0] = '\0'; /* by what came before the window */
    if (status == WM_OK)
        status = wait_for_unit(profile, from.seconds + profile->window_s, &to, err);
    if (status < 0)
        return status;
    watch_temperature(profile, to.temperature);
    *ret_seconds = (to.seconds - from.seconds) / (double)(to.units - from.units);
    *ret_joules = (to.joules - from.joules) / (double)(to.units - from.units);
    return WM_OK;
}

/* Ends the command that was measured, and its tracker. */
static void end_command(struct profile *profile)
{
    struct wm_tracker *tracker = profile->tracker;
    double until_s = now_s() + patience_s;

    if (!tracker)
        return;
    wm_tracker_signal(tracker, SIGTERM);
    while (wm_tracker_poll(tracker, 100, NULL) == WM_TRACKER_RUNNING && now_s() < until_s)
        ;
    wm_tracker_signal(tracker, SIGKILL);
    wm_tracker_stop(tracker, NULL);
    wm_tracker_free(tracker);
    profile->tracker = NULL;
}

/* Waits for the first unit, and lets the GPU get warm. */
static int start_units(struct profile *profile, struct wm_error *err)
{
    struct moment moment = { 0 };
    double first;

    if (!profile->args->unit)
        return WM_OK;
    wm_cap_search_next(profile->search, &first);
    int status = set_cap(profile, first, err);
    if (status == WM_OK)
        status = new_tracker(profile, &profile->tracker, err);
    if (status == WM_OK)
        status = wait_for_unit(profile, profile->window_s, &moment, err);
    if (status == WM_OK)
        profile->hottest = moment.temperature;
    if (status == WM_ENOENT && moment.units == 0 && profile->has_started) {
        profile->has_ended = false;
        output_fail(err, status, "the command ended before one call of the region '%.80s'",
                    profile->args->unit);
    }
    return status;
}

/* Windows of runs of the whole command. */

static int run_once(struct profile *profile, struct moment *ret_end, struct wm_error *err)
{
    struct wm_tracker *tracker;

    /* Each run reads a file from where the first one did. */
    if (profile->input_at >= 0)
        lseek(STDIN_FILENO, profile->input_at, SEEK_SET);
    int state, status = new_tracker(profile, &tracker, err);

    if (status < 0)
        return status;
    do {
        state = wm_tracker_poll(tracker, 200, err);
        watch_slowdown(profile);
    } while (state == WM_TRACKER_RUNNING && !*profile->stop);
    if (*profile->stop) {
        profile->tracker = tracker;
        end_command(profile);
        return output_fail(err, WM_ECANCELED, "interrupted");
    }
    status = wm_tracker_stop(tracker, err);
    int code = wm_tracker_exit_code(tracker);
    if (status == WM_OK && code != 0)
        status = output_fail(err, WM_EIO, "the command failed (status %d)", code);
    if (status == WM_OK)
        status = look(profile, tracker, ret_end, err);
    wm_tracker_free(tracker);
    return status;
}

static int measure_repeat(struct profile *profile, double *ret_seconds, double *ret_joules,
                          struct wm_error *err)
{
    struct moment end;
    double seconds = 0, joules = 0;
    unsigned runs = 0;
    int status = WM_OK;

    for (; status == WM_OK && seconds < profile->window_s; runs++) {
        status = run_once(profile, &end, err);
        if (status < 0)
            break;
        seconds += end.seconds;
        joules += end.joules;
        watch_temperature(profile, end.temperature);
    }
    *ret_seconds = seconds / runs;
    *ret_joules = joules / runs;
    return status;
}

/* The search. */

static void say_progress(const struct profile *profile, double cap, double started_s,
                         size_t done)
{
    size_t left = wm_cap_search_left(profile->search);
    double each_s = done > 0 ? (now_s() - started_s) / (double)done
                             : profile->window_s + profile->settle_s;
    double left_s = each_s * (double)left;

    fprintf(profile->io->chat, "window %zu: %.5g %s; about %zu more, %.0f min %02.0f s\n",
            done + 1, profile->plan.is_clock ? cap / 1e6 : cap,
            profile->plan.is_clock ? "MHz" : "W", left - 1, floor(left_s / 60),
            fmod(left_s, 60));
}

static int measure_window(struct profile *profile, double cap, struct wm_error *err)
{
    double seconds = 0, joules = 0;
    int status = set_cap(profile, cap, err);

    for (int again = AGAIN; status == WM_OK; again--) {
        profile->disturbed[0] = '\0';
        status = profile->args->unit ? measure_unit(profile, &seconds, &joules, err)
                                     : measure_repeat(profile, &seconds, &joules, err);
        if (status < 0 || !profile->disturbed[0])
            break;
        fprintf(profile->io->chat, again > 0 ? "%s: once more\n" : "note: %s; it counts\n",
                profile->disturbed);
        if (again == 0) {
            profile->disturbed_count++;
            break;
        }
    }
    if (status == WM_OK && isnan(joules))
        return output_fail(err, WM_ENODEV, "%s", profile->why);
    return status == WM_OK ? wm_cap_search_add(profile->search, cap, seconds, joules, err)
                           : status;
}

static int search(struct profile *profile, struct wm_error *err)
{
    double cap, started_s;
    size_t done = 0;
    int status = start_units(profile, err);

    started_s = now_s();
    while (status == WM_OK && wm_cap_search_next(profile->search, &cap) > 0) {
        say_progress(profile, cap, started_s, done++);
        status = measure_window(profile, cap, err);
    }
    return status;
}

static void release(struct profile *profile)
{
    wm_gpus_close(profile->gpus);
    wm_caps_close(profile->caps);
    wm_cap_search_free(profile->search);
    free(profile->wishes);
    free(profile->list);
}

/* What was measured up to the end of a command that has done its work is worth an answer.
 */
static bool has_answer(const struct profile *profile, int status)
{
    struct wm_cap_answer answer;

    return status == WM_OK ||
           (profile->has_ended &&
            wm_cap_search_answer(profile->search, &answer, NULL) == WM_OK);
}

static int check(const struct cap_search_args *args, const struct cmd_streams *io,
                 struct wm_cap_plan *ret_plan)
{
    int code = cap_search_plan(args, io, ret_plan);

    if (code != CMD_DONE)
        return code;
    if (args->unit && args->repeat)
        return output_misused("cap", io, "--unit and --repeat exclude each other");
    if (args->knob && strcmp(args->knob, "power") != 0 && strcmp(args->knob, "clock") != 0)
        return output_misused("cap", io, "--knob is power or clock, not %s",
                              cmd_shown(args->knob));
    ret_plan->is_clock = args->knob && strcmp(args->knob, "clock") == 0;
    return CMD_DONE;
}

int cap_profile(const struct cap_search_args *args, char **words,
                const struct cmd_streams *io)
{
    double window = args->window_ns > 0 ? (double)args->window_ns / 1e9 : window_s;
    struct profile profile = { .args = args,
                               .words = words,
                               .io = io,
                               .window_s = window,
                               .hottest = NAN,
                               .input_at = lseek(STDIN_FILENO, 0, SEEK_CUR),
                               .settle_s = fmin(settle_share * window, settle_max_s) };
    struct wm_error err = { 0 }, end_err;
    int code = check(args, io, &profile.plan);

    if (code != CMD_DONE)
        return code;
    profile.stop = interrupt_catch();
    int status = prepare(&profile, &err);
    bool has_begun = status == WM_OK;
    if (status == WM_OK)
        status = search(&profile, &err);
    end_command(&profile);
    int ended = wm_cap_session_end(profile.session, &end_err);

    if (has_begun && has_answer(&profile, status)) {
        if (status < 0)
            fprintf(io->chat, "note: %s\n", err.text);
        code = cap_search_print(args, profile.search, io->chat, io);
        if (profile.disturbed_count > 0)
            fprintf(io->chat,
                    "note: in %zu windows the GPU was slowed down or got warmer: these "
                    "figures are of such a GPU\n",
                    profile.disturbed_count);
    } else if (status == WM_EINVAL && !has_begun) {
        output_failure("cap", &err, io);
        code = CMD_MISUSED;
    } else if (status == WM_ENOENT || status == WM_EACCES) {
        code = profile.has_started ? output_failure("cap", &err, io)
                                   : measure_start_failure("cap", &err, io);
    } else {
        code = output_failure("cap", &err, io);
    }
    if (ended < 0) {
        output_failure("cap", &end_err, io);
        code = CMD_FAILED;
    }
    release(&profile);
    return interrupt_end(code);
}
