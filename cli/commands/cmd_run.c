/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `wattmeter run`: measures a command without getting in its way. */
#include <stdlib.h>
#include <string.h>

#include "caps/caps.h"
#include "cmd_config.h"
#include "measure.h"
#include "module.h"
#include "repeat/repeat.h"

struct run_args {
    struct repeat_args repeat;
    const char *cap;
    bool nvtx;
};

static const struct cmd_option run_options[] = {
    { .name = "baseline",
      .type = CMD_DURATION,
      .slot = offsetof(struct run_args, repeat.measure.baseline_ns),
      .placeholder = "TIME",
      .help = "measure the idle machine for TIME before the command starts",
      .min = "100ms",
      .max = "1h" },
    { .name = "baseline-anyway",
      .slot = offsetof(struct run_args, repeat.measure.baseline_anyway),
      .help = "use the baseline even if the machine was busy for more than 5 % of it" },
    { .name = "wait-all",
      .slot = offsetof(struct run_args, repeat.measure.wait_all),
      .help = "wait for background processes that outlive the command" },
    { .name = "events",
      .slot = offsetof(struct run_args, repeat.measure.events),
      .placeholder = "LIST",
      .help = "count hardware events, by perf's names: cycles,instructions,cache-misses" },
    { .name = "cap",
      .slot = offsetof(struct run_args, cap),
      .placeholder = "CAPS",
      .help = "set power caps while the command runs: 250W, 80%, 0=200W,1=80%; the "
              "previous caps are restored on exit, even after kill -9" },
    { .name = "nvtx",
      .slot = offsetof(struct run_args, nvtx),
      .help = "record the command's NVTX ranges as regions" },
    { 0 },
};

static const struct cmd_option *const options[] = { measure_options,
                                                    run_options,
                                                    repeat_options,
                                                    measure_experiment_options,
                                                    output_options,
                                                    output_unit_options,
                                                    output_price_options,
                                                    output_carbon_options,
                                                    NULL };

/* Once the command has ended, a signal ends the waiting for what is left of it. */
static bool is_given_up(const struct wm_tracker *tracker)
{
    return measure_is_interrupted() && wm_tracker_exit_code(tracker) >= 0;
}

/* The caps end with the command, and not after a report that may take its time. */
static int track(const struct run_args *args, const struct cmd_streams *io,
                 struct wm_tracker *tracker, struct caps_held *held, int *ret_signal)
{
    const struct output_args *output = &args->repeat.measure.output;
    const struct wm_tracker_target target = { .argv = args->repeat.command.words };
    struct wm_error err;
    int state;

    measure_catch_signals();
    if (args->repeat.measure.baseline_ns > 0 && !args->repeat.measure.quiet)
        fprintf(io->chat, "wattmeter run: measuring the idle machine for %g s\n",
                (double)args->repeat.measure.baseline_ns / 1e9);
    if (wm_tracker_start(tracker, &target, &err) < 0) {
        *ret_signal = measure_early_signal();
        return measure_start_failure("run", &err, io);
    }
    measure_forward_signals(tracker);
    measure_release_streams(output_is_to_stdout(output));
    if (!args->cap) /* by now there is time */
        caps_offer_repair(io->chat);

    do
        state = wm_tracker_poll(tracker, -1, &err);
    while (state == WM_TRACKER_RUNNING && !is_given_up(tracker));
    if (state < 0 && !args->repeat.measure.quiet)
        output_failure("run", &err, io);

    int ended = caps_end("run", io, held);
    int written = measure_finish("run", &args->repeat.measure, io, tracker);
    int code = wm_tracker_exit_code(tracker);
    *ret_signal = wm_tracker_exit_signal(tracker);
    if (code < 0)
        return CMD_FAILED;
    if (code == CMD_DONE)
        code = written;
    return code == CMD_DONE ? ended : code;
}

/* The command's NVTX ranges become regions by a library that it loads itself. */
static const char nvtx_variable[] = "NVTX_INJECTION64_PATH";
static const char nvtx_library[] = "libwattmeter-nvtx.so";

static int inject_nvtx(const struct cmd_streams *io)
{
    const char *other = cmd_variable(nvtx_variable);
    char *path = module_find(nvtx_library);
    int code = CMD_DONE;

    if (!path) {
        fprintf(
            io->chat,
            "wattmeter run: --nvtx: there is no %s, neither beside wattmeter nor in %s\n",
            nvtx_library, CMD_LIBRARY_FOLDER);
        code = CMD_FAILED;
    } else if (other && other[0] && strcmp(other, path) != 0) {
        /* Ours is there already in a run inside a run. */
        code = output_misused(
            "run", io,
            "--nvtx: %s names another tool already: %s; a program has room for one",
            nvtx_variable, other);
    } else if (setenv(nvtx_variable, path, 1) != 0) {
        fprintf(io->chat, "wattmeter run: --nvtx: out of memory\n");
        code = CMD_FAILED;
    }
    free(path);
    return code;
}

static int track_once(const struct run_args *args, const struct cmd_streams *io,
                      struct wm_tracker *tracker, struct caps_held *held, int *ret_signal)
{
    struct wm_error err;

    if (args->cap && wm_tracker_note(tracker, "cap", held->note, &err) < 0)
        return output_failure("run", &err, io);
    return track(args, io, tracker, held, ret_signal);
}

/* Under the caps, if there are any, which the report names. `tracker` is NULL where the
 * command is repeated. */
static int track_capped(const struct run_args *args, const struct cmd_streams *io,
                        struct wm_tracker *tracker, int *ret_signal)
{
    struct caps_held held = { 0 };

    int code = args->cap
                   ? caps_begin("run", args->cap, args->repeat.command.words[0], io, &held)
                   : CMD_DONE;
    if (code != CMD_DONE)
        return code;
    code = tracker
               ? track_once(args, io, tracker, &held, ret_signal)
               : repeat_run(&args->repeat, args->cap ? held.note : NULL, io, ret_signal);
    int ended = caps_end("run", io, &held);
    return code == CMD_DONE ? ended : code;
}

static int run_run(const void *opaque, const struct cmd_streams *io)
{
    const struct run_args *args = opaque;
    struct wm_tracker *tracker = NULL;
    int signal_number = 0;
    bool is_repeated = false;

    if (args->repeat.measure.baseline_anyway && args->repeat.measure.baseline_ns == 0)
        return output_misused("run", io, "--baseline-anyway needs --baseline");
    int code = repeat_find_wanted(&args->repeat, io, &is_repeated);
    if (code == CMD_DONE && (is_repeated || args->cap))
        caps_offer_repair(io->chat);
    if (code == CMD_DONE && args->nvtx)
        code = inject_nvtx(io);
    if (code == CMD_DONE && !is_repeated)
        code = measure_prepare("run", &args->repeat.measure, 0, io, &tracker);
    if (code != CMD_DONE)
        return code;
    code = track_capped(args, io, tracker, &signal_number);
    wm_tracker_free(tracker);
    return measure_end(signal_number, code);
}

const struct cmd cmd_run = {
    .name = "run",
    .summary = "Measure a command and what it starts.",
    .details = "The command keeps its input and output, its terminal, signals and exit "
               "status. When it ends, wattmeter prints a report on standard error: time, "
               "CPU time, memory, GPU use and energy.\n"
               "\n"
               "wattmeter passes signals on to the command and prints the report all the "
               "same. A signal to the whole process group reaches the command twice, "
               "unless a terminal or the command sends it. If wattmeter is killed (kill "
               "-9), the command continues in the background of its terminal without a "
               "report. A recording then lacks half a second as a rule, and at most the "
               "last second.\n"
               "\n"
               "With --cap the caps hold while the command runs. The previous caps are "
               "restored when it ends, and within a second if wattmeter is killed; see "
               "wattmeter-cap(1). If a cap cannot be set, wattmeter does not start the "
               "command.\n"
               "\n"
               "With --repeat the command runs N times, in turns with the commands of "
               "--vs. The results go to standard output: medians, their 95 % intervals, "
               "and the differences that are more than chance. The commands get no input, "
               "and their output is discarded unless --show-output is given. wattmeter "
               "splits a command in one word as a shell would; only --shell starts a "
               "shell. Commands that are too short for the energy sensor run several times "
               "back to back. The first run that fails ends wattmeter with its status, "
               "unless --ignore-failure is given. To fail if a cost has grown, record the "
               "runs and use 'wattmeter compare --fail-above'.\n"
               "\n"
               "The exit status is the command's, or 128 plus the number of the signal "
               "that ended it. If SIGINT (Ctrl-C), SIGTERM, SIGHUP or SIGQUIT ended it and "
               "wattmeter received the signal too, wattmeter dies of it after the report, "
               "so that a shell's loop ends. Status 127: no such command. 126: the command "
               "cannot be executed. 2: a wrong option. 1: wattmeter failed. It is also 1 "
               "if the command succeeded, but a file of -o, --json or --record could not "
               "be written, or a cap could not be restored. A report that is lost on "
               "standard error does not change the status.",
    .example = "wattmeter run --record run.sqlite -- python3 train.py --epochs 3",
    .operands = "[--] COMMAND [ARG...]",
    .operands_slot = offsetof(struct run_args, repeat.command),
    .operands_min = 1,
    .operands_max = (size_t)-1,
    .runs_command = true,
    .options = options,
    .args_size = sizeof(struct run_args),
    .run = run_run,
};
