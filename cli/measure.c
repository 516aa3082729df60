/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - the common parts of `run`, `attach` and `watch`. */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "cmd.h"
#include "wattmeter/experiment.h"

#define MEASURE(member) offsetof(struct measure_args, member)

const struct cmd_option measure_options[] = {
    { .letter = 'i',
      .name = "interval",
      .type = CMD_DURATION,
      .slot = MEASURE(interval_ns),
      .placeholder = "TIME",
      .help = "sampling interval, 1ms to 1h (100ms)",
      .min = "1ms",
      .max = "1h" },
    { .name = "record",
      .slot = MEASURE(record),
      .placeholder = "FILE|URL",
      .help = "keep every sample in FILE (.sqlite, .csv, .aipm) or postgresql://..." },
    { .name = "append",
      .slot = MEASURE(append),
      .help = "add the run to a recording that exists" },
    { .name = "output-fd",
      .type = CMD_COUNT,
      .slot = MEASURE(output.fd),
      .placeholder = "N",
      .help = "write the report to descriptor N, which the shell has opened (3>FILE); the "
              "command does not inherit it" },
    { .letter = 'q',
      .name = "quiet",
      .slot = MEASURE(quiet),
      .help = "print no report on the screen" },
    { .name = "expected-cores",
      .type = CMD_NUMBER,
      .slot = MEASURE(expected_cores),
      .placeholder = "N",
      .help = "number of cores that is 100 % of the hardware (all)",
      .min = "0.01",
      .max = "1000000" },
    { .name = "gpu",
      .slot = MEASURE(gpus),
      .placeholder = "LIST",
      .help = "GPUs to measure: all, visible, none, or a list: 0,2, GPU-7c1f, card1 (all)",
      .words = "all visible none" },
    { .name = "channels",
      .slot = MEASURE(channels),
      .placeholder = "LIST",
      .help = "record more of each GPU: all, or a list: fan,clock_graphics,throttle",
      .words = "all" },
    { .name = "cpu-watts",
      .slot = MEASURE(cpu_watts),
      .placeholder = "IDLE:MAX",
      .help = "estimate CPU energy from watts idle and at full load, if no counter "
              "measures it" },
    { .name = "note",
      .type = CMD_LIST,
      .slot = MEASURE(notes),
      .placeholder = "KEY=VALUE",
      .help = "add a tag to the run; may be repeated" },
    { 0 },
};

const struct cmd_option measure_experiment_options[] = {
    { .name = "experiment",
      .slot = MEASURE(experiment),
      .placeholder = "FILE|DIR/|URL",
      .help = "add the run to the experiment --name: in FILE.sqlite, DIR/, "
              "postgresql://..." },
    { .name = "name",
      .slot = MEASURE(name),
      .placeholder = "NAME",
      .help = "name of the experiment" },
    { .name = "description",
      .slot = MEASURE(description),
      .placeholder = "TEXT",
      .help = "description of the experiment" },
    { .name = "model-card",
      .slot = MEASURE(model_card),
      .placeholder = "FILE.json",
      .help = "description of the model: parameters, flops or macs, passes, input_size" },
    { .name = "metrics",
      .slot = MEASURE(metrics),
      .placeholder = "FILE.jsonl",
      .help = "record the numbers that the command writes there: {\"time\": ..., \"loss\": "
              "1}" },
    { 0 },
};

static int check(const char *name, const struct measure_args *args,
                 const struct cmd_streams *io)
{
    if (args->append && !args->record)
        return output_misused(name, io, "--append is for a recording: --record is missing");
    if (args->append && args->output.overwrite)
        return output_misused(name, io, "--append and --overwrite exclude each other");
    if (args->record && args->output.path &&
        output_is_same_file(args->record, args->output.path))
        return output_misused(
            name, io, "the report cannot be written over the recording: %s", args->record);
    if (args->experiment && args->record)
        return output_misused(name, io, "--experiment and --record exclude each other");
    if (args->experiment && !args->name)
        return output_misused(name, io, "--experiment needs a --name");
    if (!args->experiment && (args->name || args->description || args->model_card))
        return output_misused(
            name, io,
            "--name, --description and --model-card are of an experiment: "
            "--experiment is missing");
    if (args->metrics && !args->record && !args->experiment)
        return output_misused(
            name, io,
            "--metrics is kept with a recording: --record or --experiment is "
            "missing");
    for (size_t i = 0; i < args->notes.count; i++) {
        const char *note = args->notes.words[i];
        if (note[0] == '=' || !strchr(note, '='))
            return output_misused(name, io, "--note: there is no KEY= in %s",
                                  cmd_shown(note));
    }
    return output_check(name, &args->output, io);
}

static int add_notes(struct wm_tracker *tracker, const struct cmd_list *notes,
                     struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < notes->count && status == WM_OK; i++) {
        const char *equals = strchr(notes->words[i], '=');
        char *key = strndup(notes->words[i], (size_t)(equals - notes->words[i]));
        if (!key)
            return output_fail(err, WM_ENOMEM, "out of memory");
        status = wm_tracker_note(tracker, key, equals + 1, err);
        free(key);
    }
    return status;
}

/* As one more run of the experiment, if there is one. */
static int add_experiment(struct wm_tracker *tracker, const struct measure_args *args,
                          struct wm_error *err)
{
    const struct wm_experiment_setup setup = {
        .target = args->experiment,
        .name = args->name,
        .description = args->description,
        .model_card = args->model_card,
    };
    int status = args->experiment ? wm_tracker_experiment(tracker, &setup, err) : WM_OK;

    if (status == WM_OK && args->metrics)
        status = wm_tracker_metrics(tracker, args->metrics, err);
    return status;
}

static enum wm_record_mode record_mode(const struct measure_args *args)
{
    if (args->append)
        return WM_RECORD_APPEND;
    return args->output.overwrite ? WM_RECORD_OVERWRITE : WM_RECORD_NEW;
}

int measure_describe(const struct measure_args *args, bool is_first,
                     struct wm_tracker *tracker, struct wm_error *err)
{
    enum wm_record_mode mode = is_first ? record_mode(args) : WM_RECORD_APPEND;
    int status = add_notes(tracker, &args->notes, err);

    if (status == WM_OK && args->record)
        status = wm_tracker_record(tracker, args->record, mode, err);
    return status < 0 ? status : add_experiment(tracker, args, err);
}

int measure_prepare(const char *name, const struct measure_args *args, pid_t pid,
                    const struct cmd_streams *io, struct wm_tracker **ret_tracker)
{
    const struct wm_tracker_options options = {
        .interval_ns = args->interval_ns,
        .expected_cores = args->expected_cores,
        .gpus = args->gpus,
        .channels = args->channels,
        .cpu_watts = args->cpu_watts,
        .baseline_ns = args->baseline_ns,
        .baseline_anyway = args->baseline_anyway,
        .wait_all = args->wait_all,
        .events = args->events,
        .silent = args->silent,
        .wait_for_drivers = args->wait_for_drivers,
        .visible_to = pid,
        .own_process = true,
    };
    struct wm_tracker *tracker = NULL;
    struct wm_error err;

    int code = check(name, args, io);
    if (code != CMD_DONE)
        return code;

    int status = wm_tracker_new(&options, &tracker, &err);
    if (status == WM_OK)
        status = wm_tracker_add_all(tracker, &err);
    if (status == WM_OK)
        status = measure_describe(args, true, tracker, &err);
    if (status < 0) {
        wm_tracker_free(tracker);
        return output_target_failure(name, args->record, record_mode(args),
                                     OUTPUT_APPENDABLE, &err, io);
    }
    *ret_tracker = tracker;
    return CMD_DONE;
}

/* Signal handlers have no other way to know. */
static const struct wm_tracker *volatile forward_to;
static volatile sig_atomic_t early_signal; /* came before there was a target */
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t has_come[NSIG];
static volatile sig_atomic_t shown_key; /* Ctrl-C, which a terminal shows as "^C" */

/* Whether the target has not got the signal already. A terminal sends it to its
 * foreground process group, which a target such as timeout(1) has left, but its hangup to
 * the leader of the session alone; a target that signals us signals the whole group; a
 * limit is each process's own. But an alarm that was set before wattmeter was executed is
 * meant for its command. */
static bool is_for_target(int number, const siginfo_t *info)
{
    pid_t target = wm_tracker_pid(forward_to);

    if (info->si_code <= 0) /* sent by a process */
        return info->si_pid != target;
    switch (number) {
    case SIGALRM:
    case SIGVTALRM:
    case SIGPROF:
        return true;
    case SIGHUP:
        return getsid(0) == getpid() || getpgid(target) != getpgrp();
    case SIGINT:
    case SIGQUIT:
        return getpgid(target) != getpgrp();
    default:
        return false;
    }
}

static void handle(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)context;
    if (info->si_code == SI_USER && info->si_pid == getpid())
        return; /* a pipe without a reader, a file too large: the write has failed */
    if (number != SIGUSR1 && number != SIGUSR2)
        interrupted = number;
    has_come[number] = 1;
    if (info->si_code == SI_KERNEL && (number == SIGINT || number == SIGQUIT))
        shown_key = 1;
    if (!forward_to)
        early_signal = number;
    else if (is_for_target(number, info))
        wm_tracker_signal(forward_to, number);
    errno = saved;
}

/* One that is ignored stays so; what comes of it meanwhile is held back, and discarded. */
static void catch_signal(int number, int flags)
{
    struct sigaction old,
        action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | flags };

    sigfillset(&action.sa_mask);
    if (sigaction(number, &action, &old) == 0 && old.sa_handler == SIG_IGN)
        sigaction(number, &old, NULL);
}

/* All that end a process but for those that tell of a fault in it. Were they ignored, the
 * command would ignore them too. */
static void handle_signals(int flags)
{
    static const int numbers[] = { SIGHUP,  SIGINT,    SIGQUIT, SIGTERM, SIGUSR1,
                                   SIGUSR2, SIGALRM,   SIGPROF, SIGPIPE, SIGXCPU,
                                   SIGXFSZ, SIGVTALRM, SIGIO,   SIGPWR };
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        catch_signal(numbers[i], flags);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        catch_signal(number, flags);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void measure_catch_signals(void)
{
    handle_signals(SA_RESTART);
}

void measure_forward_signals(const struct wm_tracker *tracker)
{
    forward_to = tracker;
    if (!tracker) /* a pipe without a reader must not block us for ever */
        handle_signals(0);
    else if (early_signal)
        wm_tracker_signal(tracker, early_signal);
}

int measure_early_signal(void)
{
    return early_signal;
}

/* As a shell has it. */
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

int measure_start_failure(const char *name, const struct wm_error *err,
                          const struct cmd_streams *io)
{
    int code = output_failure(name, err, io);

    if (early_signal > 0)
        return 128 + early_signal;
    if (err->status == WM_ENOENT)
        return NOT_FOUND;
    return err->status == WM_EACCES ? NOT_EXECUTABLE : code;
}

void measure_release_streams(bool keep_output)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    if (!keep_output)
        dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close(null);
}

bool measure_is_interrupted(void)
{
    return interrupted != 0;
}

int measure_interruption(void)
{
    return interrupted;
}

void measure_end_line_of_key(const struct cmd_streams *io)
{
    const tcflag_t shows = ECHO | ECHOCTL;
    struct termios terminal;

    if (shown_key && tcgetattr(fileno(io->chat), &terminal) == 0 &&
        (terminal.c_lflag & shows) == shows)
        fputc('\n', io->chat);
    shown_key = 0;
}

static bool is_asked_to_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

int measure_end(int number, int code)
{
    if (!is_asked_to_end(number) || !has_come[number])
        return code;
    fflush(NULL);
    prctl(PR_SET_DUMPABLE, 0); /* no core: a limit of 0 holds for files alone, not pipes */
    signal(number, SIG_DFL);
    raise(number);
    return code;
}

static void complain(const char *name, const struct measure_args *args,
                     const struct cmd_streams *io, const struct wm_error *err)
{
    if (!args->quiet)
        fprintf(io->chat, "wattmeter %s: %s\n", name, err->text);
}

int measure_finish(const char *name, const struct measure_args *args,
                   const struct cmd_streams *io, struct wm_tracker *tracker)
{
    FILE *screen = args->quiet ? NULL : io->chat;
    bool has_place = output_has_place(&args->output);
    bool is_talk = !has_place && !args->output.json;
    struct wm_report *report;
    struct wm_error err;

    /* What went wrong here went wrong with the recording; the report is whole. */
    int code = CMD_DONE;
    int stopped = wm_tracker_stop(tracker, &err);
    if (stopped < 0) {
        measure_end_line_of_key(io);
        code = output_failure(name, &err, io);
    }
    /* What another program did to the recording is no failure of this one. */
    if (stopped == WM_ECANCELED)
        code = CMD_DONE;
    if (is_talk && !screen) {
        forward_to = NULL;
        return code;
    }
    measure_forward_signals(NULL);
    if (!has_place)
        measure_end_line_of_key(io);
    if (wm_tracker_report(tracker, &report, &err) < 0) {
        complain(name, args, io, &err);
        return CMD_FAILED;
    }
    int written = output_write(name, &args->output, report, screen, io);
    wm_report_free(report);

    /* Beside a command with an exit status it is talk. */
    if (is_talk && wm_tracker_exit_code(tracker) >= 0)
        written = CMD_DONE;
    return code == CMD_DONE ? written : code;
}
