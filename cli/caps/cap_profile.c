/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_profile.c - `wattmeter cap profile -- COMMAND`: the command whose units of work the
 * library measures under one cap after the other.
 *
 * With --unit the command runs all the time under one tracker, which counts its calls of a
 * region, and the library measures; else it is run again and again, and a tracker of each
 * run measures it, as it knows the exact moment of the end.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "caps/cap_search.h"
#include "caps/caps.h"
#include "interrupt.h"
#include "measure.h"

/* How long a command that is no longer needed may take to end after SIGTERM. */
static const double patience_s = 10;

struct profile {
    const struct cap_search_args *args;
    char **words;
    const struct cmd_streams *io;
    const volatile sig_atomic_t *stop;
    double caps[WM_CAP_PROBES_MAX];
    struct wm_cap_profile *profile;
    struct wm_tracker *tracker; /* of the command that runs */
    off_t input_at;             /* where the standard input stands; -1: in no file */
    bool has_failed_to_start;
    bool has_ended; /* whether the command ended early, with status 0 */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --caps: a number of them, or a list. */
static int find_caps(struct profile *profile, struct wm_cap_plan *plan,
                     const struct cmd_streams *io)
{
    double unit = plan->is_clock ? 1e6 : 1;
    const char *at = profile->args->caps;
    char *end = NULL;

    if (!at)
        return CMD_DONE;
    double first = strtod(at, &end);
    if (*end == '\0' && first >= 2 && first <= WM_CAP_PROBES_MAX) {
        plan->cap_count = (size_t)first;
        return CMD_DONE;
    }
    plan->caps = profile->caps;
    for (;; at = end + 1) {
        double cap = unit * strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0') ||
            plan->cap_count == WM_CAP_PROBES_MAX)
            return output_misused("cap", io,
                                  "--caps is a number of caps or a list such as "
                                  "150,200,250, of %d at most",
                                  WM_CAP_PROBES_MAX);
        profile->caps[plan->cap_count++] = cap;
        if (*end == '\0')
            return CMD_DONE;
    }
}

/* Only a run of the whole command is measured by its tracker. */
static int start_command(struct profile *profile, struct wm_error *err)
{
    bool is_measured = !profile->args->unit;
    const struct wm_tracker_options options = {
        .interval_ns = wm_cap_profile_state(profile->profile)->interval_ns,
        .gpus = profile->args->devices,
        .own_process = true
    };
    int status = wm_tracker_new(&options, &profile->tracker, err);

    if (status == WM_OK && is_measured)
        status = wm_tracker_add_all(profile->tracker, err);
    if (status == WM_OK)
        status = wm_tracker_start(
            profile->tracker, &(struct wm_tracker_target) { .argv = profile->words }, err);
    profile->has_failed_to_start = status < 0;
    return status;
}

/* Ends the command, if it still runs, and its tracker. */
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

/* Reports what the last step did; returns its result. */
static int report(const struct profile *profile, int more)
{
    const char *message = wm_cap_profile_state(profile->profile)->message;

    if (message[0])
        fprintf(profile->io->chat, "%s\n", message);
    return more;
}

/* 1: the work goes on; 0: enough is known. */
static int step(const struct profile *profile, uint64_t units, struct wm_error *err)
{
    return report(profile, wm_cap_profile_step(profile->profile, units, err));
}

/* Waits for the next tick, the end of the command or a signal. */
static int wait_for_command(const struct profile *profile, struct wm_error *err)
{
    int state = wm_tracker_poll(profile->tracker, -1, err);

    return *profile->stop ? output_fail(err, WM_ECANCELED, "interrupted") : state;
}

/* A command that runs all the time. */

/* That have ended; 0, too, where memory is short. */
static uint64_t count_calls(const struct profile *profile)
{
    struct wm_report_region region = { 0 };
    struct wm_report *report;
    size_t index;

    if (wm_tracker_report(profile->tracker, &report, NULL) < 0)
        return 0;
    if (wm_report_find(report, WM_REPORT_REGION, profile->args->unit, &index) == WM_OK)
        wm_report_region(report, WM_REPORT_REGION, index, &region);
    wm_report_free(report);
    return region.calls;
}

static int command_ended(struct profile *profile, struct wm_error *err)
{
    wm_tracker_stop(profile->tracker, NULL);
    int code = wm_tracker_exit_code(profile->tracker);

    if (count_calls(profile) == 0)
        return output_fail(err, WM_ENOENT,
                           "the command ended before one call of the region '%.80s'",
                           profile->args->unit);
    profile->has_ended = code == 0;
    return output_fail(err, WM_ENOENT,
                       "the command ended (status %d) before the search was done", code);
}

static int profile_calls(struct profile *profile, struct wm_error *err)
{
    uint64_t calls = 0;
    double due_s = now_s() + wm_cap_profile_state(profile->profile)->window_s;
    int more = step(profile, 0, err),
        status = more < 0 ? more : start_command(profile, err);

    while (status >= 0 && more > 0) {
        status = wait_for_command(profile, err);
        if (status == WM_TRACKER_ENDED)
            return command_ended(profile, err);
        if (status < 0)
            return status;
        uint64_t all = count_calls(profile), units = all > calls ? all - calls : 0;
        calls += units;
        status = more = step(profile, units, err);
        /* A misspelt name would cost all the time that the command takes. */
        if (calls == 0 && now_s() > due_s) {
            due_s = INFINITY;
            fprintf(profile->io->chat, "no call of the region '%.80s' has ended yet\n",
                    profile->args->unit);
        }
    }
    return status;
}

/* Runs of the whole command. */

static int read_costs(const struct profile *profile, double *ret_seconds,
                      double *ret_joules, struct wm_error *err)
{
    struct wm_report_figure seconds, joules;
    struct wm_report *report;
    int status = wm_tracker_report(profile->tracker, &report, err);

    if (status < 0)
        return status;
    wm_report_figure(report, NULL, "time", &seconds);
    wm_report_figure(report, NULL, "gpu_energy", &joules);
    *ret_seconds = seconds.value;
    *ret_joules = joules.value;
    if (joules.state == WM_REPORT_MISSING)
        status = output_fail(err, WM_ENODEV, "the energy of the GPU is not known: %s",
                             joules.why ? joules.why : "it cannot be measured");
    wm_report_free(report);
    return status;
}

/* Returns as step() does. */
static int run_once(struct profile *profile, struct wm_error *err)
{
    /* Each run reads a file from where the first one did. */
    if (profile->input_at >= 0)
        lseek(STDIN_FILENO, profile->input_at, SEEK_SET);
    int status = start_command(profile, err);

    do {
        if (status >= 0)
            status = step(profile, 0, err);
        if (status >= 0)
            status = wait_for_command(profile, err);
    } while (status == WM_TRACKER_RUNNING);
    if (status < 0)
        return status;
    double seconds = 0, joules = 0;
    status = wm_tracker_stop(profile->tracker, err);
    int code = wm_tracker_exit_code(profile->tracker);
    if (status == WM_OK && code != 0)
        status = output_fail(err, WM_EIO, "the command failed (status %d)", code);
    if (status == WM_OK)
        status = read_costs(profile, &seconds, &joules, err);
    wm_tracker_free(profile->tracker);
    profile->tracker = NULL;
    return status < 0 ? status
                      : report(profile,
                               wm_cap_profile_run(profile->profile, seconds, joules, err));
}

static int profile_runs(struct profile *profile, struct wm_error *err)
{
    int more = step(profile, 0, err);

    while (more > 0)
        more = run_once(profile, err);
    return more;
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

/* What was measured up to the end of a command that has done its work is worth an answer.
 */
static int print(const struct profile *profile, int status, const struct wm_error *why)
{
    const struct wm_cap_profile_state *state = wm_cap_profile_state(profile->profile);
    struct wm_cap_answer answer;

    if (status < 0 &&
        (!profile->has_ended || wm_cap_search_answer(state->search, &answer, NULL) < 0))
        return profile->has_failed_to_start ? measure_start_failure("cap", why, profile->io)
                                            : output_failure("cap", why, profile->io);
    if (status < 0)
        fprintf(profile->io->chat, "note: %s\n", why->text);
    int code =
        cap_search_print(profile->args, state->search, profile->io->chat, profile->io);
    if (state->disturbed > 0)
        fprintf(profile->io->chat,
                "note: in %zu windows the GPU was slowed down or got warmer: these "
                "figures are of such a GPU\n",
                state->disturbed);
    return code;
}

int cap_profile(const struct cap_search_args *args, char **words,
                const struct cmd_streams *io)
{
    struct profile profile = {
        .args = args,
        .words = words,
        .io = io,
        .input_at = lseek(STDIN_FILENO, 0, SEEK_CUR),
    };
    struct wm_cap_profile_options options = { .gpus = args->devices,
                                              .window_s = (double)args->window_ns / 1e9 };
    struct wm_error err = { 0 };
    int code = check(args, io, &options.plan);

    if (code == CMD_DONE)
        code = find_caps(&profile, &options.plan, io);
    if (code != CMD_DONE)
        return code;
    profile.stop = interrupt_catch();
    int status = wm_cap_profile_open(&options, &profile.profile, &err);
    if (status < 0) {
        output_failure("cap", &err, io);
        return interrupt_end(status == WM_EINVAL ? CMD_MISUSED : CMD_FAILED);
    }
    status = args->unit ? profile_calls(&profile, &err) : profile_runs(&profile, &err);
    end_command(&profile);
    code = print(&profile, status, &err);
    if (wm_cap_profile_close(profile.profile, &err) < 0) {
        output_failure("cap", &err, io);
        code = CMD_FAILED;
    }
    return interrupt_end(code);
}
