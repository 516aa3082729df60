/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_attach.c - `wattmeter attach`: measures a process that runs already. */
#include <limits.h>
#include <time.h>

#include "cmd.h"
#include "measure.h"

struct attach_args {
    struct measure_args measure;
    int64_t duration_ns;
    struct cmd_list pid;
};

static const struct cmd_option attach_options[] = {
    { .letter = 'd',
      .name = "duration",
      .type = CMD_DURATION,
      .slot = offsetof(struct attach_args, duration_ns),
      .placeholder = "TIME",
      .help = "end after TIME, even if the process has not",
      .min = "1ms",
      .max = "36500d" },
    { 0 },
};
static const struct cmd_option *const options[] = {
    attach_options,      measure_options,      measure_experiment_options, output_options,
    output_unit_options, output_price_options, output_carbon_options,      NULL
};

/* A signal that comes between a look at the flag and the wait is noticed so late
 * at most. */
#define LONGEST_WAIT_MS 500

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How long to wait at most; negative when the time is over. */
static int next_wait_ms(const struct attach_args *args, int64_t start_ns)
{
    if (args->duration_ns == 0)
        return LONGEST_WAIT_MS;
    int64_t left_ms = (start_ns + args->duration_ns - now_ns() + 999999) / 1000000;
    if (left_ms <= 0)
        return -1;
    return left_ms < LONGEST_WAIT_MS ? (int)left_ms : LONGEST_WAIT_MS;
}

static int track(const struct attach_args *args, pid_t pid, const struct cmd_streams *io,
                 struct wm_tracker *tracker)
{
    const struct wm_tracker_target target = { .pids = &pid, .pid_count = 1 };
    struct wm_error err;
    int state = WM_TRACKER_RUNNING, wait_ms;

    measure_catch_signals();
    if (wm_tracker_start(tracker, &target, &err) < 0)
        return output_failure("attach", &err, io);
    int64_t start_ns = now_ns();

    while (state == WM_TRACKER_RUNNING && !measure_is_interrupted() &&
           (wait_ms = next_wait_ms(args, start_ns)) >= 0)
        state = wm_tracker_poll(tracker, wait_ms, &err);
    if (state < 0 && !args->measure.quiet)
        output_failure("attach", &err, io);

    return measure_finish("attach", &args->measure, io, tracker);
}

static int run_attach(const void *opaque, const struct cmd_streams *io)
{
    const struct attach_args *args = opaque;
    const char *word = args->pid.words[0];
    struct wm_tracker *tracker;
    uint64_t pid;

    if (!cmd_parse_count(word, &pid) || pid == 0 || pid > INT_MAX)
        return output_misused("attach", io, "'%.60s' is not the number of a process",
                              cmd_shown(word));
    int code = measure_prepare("attach", &args->measure, (pid_t)pid, io, &tracker);
    if (code != CMD_DONE)
        return code;
    code = track(args, (pid_t)pid, io, tracker);
    wm_tracker_free(tracker);
    return code;
}

const struct cmd cmd_attach = {
    .name = "attach",
    .summary = "Measure a running process and what it starts.",
    .details = "Ends when the process ends, after --duration, or on Ctrl-C or SIGTERM, and "
               "prints the report on standard error. The process is not disturbed and "
               "continues after wattmeter has ended. Its earlier use is not counted.",
    .example = "wattmeter attach --duration 30s 4711",
    .operands = "PID",
    .operands_slot = offsetof(struct attach_args, pid),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct attach_args),
    .run = run_attach,
};
