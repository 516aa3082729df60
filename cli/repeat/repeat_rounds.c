/* SPDX-License-Identifier: Apache-2.0 */
/* repeat_rounds.c - runs the commands, round after round: first what is not kept (warm-up
 * runs, the size of batches, the shell's start), then what is. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output.h"
#include "repeat/repeat.h"

enum { SHELL_ROUNDS = 10, SIZE_TRIES = 4 };

/* One measurement. */
struct shot {
    char *const *argv;
    const char *line; /* for people */
    size_t command;   /* or WM_REPEAT_SHELL */
    size_t round;
    size_t batch;
    bool counts;   /* in the results */
    bool is_kept;  /* in the recording */
    bool is_trial; /* it counts only if no batch is needed */
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const struct repeat_work *work, const struct wm_error *err)
{
    measure_end_line_of_key(work->io);
    return output_failure("run", err, work->io);
}

static int tag_number(struct wm_tracker *tracker, const char *key, uint64_t number,
                      struct wm_error *err)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return wm_tracker_note(tracker, key, text, err);
}

/* What tells the runs of a recording apart, and the order from which they came. */
static int tag(const struct repeat_work *work, const struct shot *shot,
               struct wm_error *err)
{
    struct wm_tracker *tracker = work->tracker;

    int status = wm_tracker_note(tracker, "repeat.command",
                                 work->commands.all[shot->command].name, err);
    if (status == WM_OK)
        status = tag_number(tracker, "repeat.place", shot->command + 1, err);
    if (status == WM_OK)
        status = tag_number(tracker, "repeat.round", shot->round + 1, err);
    if (status == WM_OK)
        status = tag_number(tracker, "repeat.seed", work->seed, err);
    if (status == WM_OK)
        status = tag_number(tracker, "repeat.batch", shot->batch, err);
    if (status == WM_OK && work->args->ignore_failure)
        status = wm_tracker_note(tracker, "repeat.failures", "ignored", err);
    return status;
}

static int prepare_tracker(struct repeat_work *work, const struct shot *shot,
                           struct wm_error *err)
{
    int status = wm_tracker_renew(work->tracker, err);

    if (status == WM_OK && shot->is_kept) {
        status =
            measure_describe(&work->args->measure, !work->has_recorded, work->tracker, err);
        work->has_recorded = true;
    }
    if (status == WM_OK && shot->is_kept)
        status = tag(work, shot, err);
    if (status == WM_OK && work->cap)
        status = wm_tracker_note(work->tracker, "cap", work->cap, err);
    return status;
}

/* The command has ended; what it leaves behind is not waited for after a signal. */
static int wait_for_end(struct repeat_work *work, struct wm_error *err)
{
    int state;

    do
        state = wm_tracker_poll(work->tracker, -1, err);
    while (state == WM_TRACKER_RUNNING &&
           !(measure_is_interrupted() && wm_tracker_exit_code(work->tracker) >= 0));
    if (state < 0)
        return state;
    if (measure_is_interrupted())
        wm_tracker_break_off(work->tracker);
    int stopped = wm_tracker_stop(work->tracker, err);
    return stopped == WM_ECANCELED ? WM_OK : stopped;
}

/* The first run that failed, of a batch too. */
static int find_failure(const struct wm_repeat_run *run)
{
    for (size_t i = 0; i < run->batch_count; i++) {
        if (run->batch[i].exit_code != 0)
            return run->batch[i].exit_code;
    }
    return run->exit_code;
}

/* Words that a shell would have understood. */
static bool has_shell_words(char *const *argv)
{
    for (; *argv; argv++)
        if (strcspn(*argv, "|&;<>") == 0 && **argv)
            return true;
    return false;
}

static int complain(const struct repeat_work *work, const struct shot *shot, int code)
{
    bool is_signal = code > 128 && code <= 128 + SIGRTMAX;
    FILE *out = work->io->chat;

    fprintf(out, "wattmeter run: '%s' %s %d", shot->line,
            is_signal ? "was killed by signal" : "ended with status",
            is_signal ? code - 128 : code);
    if (shot->is_kept)
        fprintf(out, " in run %zu of %zu", shot->round + 1, work->rounds);
    fprintf(out, "; --ignore-failure continues%s\n",
            work->args->show_output
                ? ""
                : ", --show-output shows its output and gives it the terminal");
    if (!work->args->shell && has_shell_words(shot->argv))
        fputs("note: no shell runs the command; --shell sh makes | and > work\n", out);
    return code;
}

/* Makes of the stopped tracker what wm_repeat_add_run() takes. `ret_batch` is the caller's.
 */
static int take_run(struct repeat_work *work, const struct shot *shot,
                    struct wm_report **ret_report, struct wm_tracker_run **ret_batch,
                    struct wm_repeat_run *ret_run, struct wm_error *err)
{
    size_t count = 0;

    *ret_batch = calloc(shot->batch, sizeof(**ret_batch));
    if (!*ret_batch)
        return output_fail(err, WM_ENOMEM, "out of memory");
    int status = wm_tracker_report(work->tracker, ret_report, err);
    while (count < shot->batch &&
           wm_tracker_batch_run(work->tracker, count, &(*ret_batch)[count]) == WM_OK)
        count++;
    *ret_run = (struct wm_repeat_run) {
        .report = *ret_report,
        .exit_code = wm_tracker_exit_code(work->tracker),
        .batch = *ret_batch,
        .batch_count = count,
    };
    return status;
}

static int be_interrupted(struct repeat_work *work)
{
    work->exit_signal = measure_interruption();
    return 128 + work->exit_signal;
}

/* Uses what was measured: `ret_size` is the size of a batch that it shows. */
static int use_run(struct repeat_work *work, const struct shot *shot, size_t *ret_size)
{
    struct wm_tracker_run *batch = NULL;
    struct wm_report *report = NULL;
    struct wm_repeat_run run = { 0 };
    struct wm_error err;
    int code = CMD_DONE;

    int status = take_run(work, shot, &report, &batch, &run, &err);
    int failure = status == WM_OK ? find_failure(&run) : 0;
    if (measure_is_interrupted()) {
        code = be_interrupted(work);
    } else if (failure != 0 && !work->args->ignore_failure) {
        work->exit_signal = wm_tracker_exit_signal(work->tracker);
        code = complain(work, shot, failure);
    } else if (status == WM_OK) {
        *ret_size = wm_repeat_batch_size(&run);
        if (shot->counts && (*ret_size == 1 || !shot->is_trial)) {
            status = wm_repeat_add_run(work->repeat, shot->command, &run, &err);
            work->counted += shot->command != WM_REPEAT_SHELL;
        }
    }
    if (status < 0 && code == CMD_DONE)
        code = fail(work, &err);
    wm_report_free(report);
    free(batch);
    return code;
}

/* Measures a run, or a batch. CMD_DONE, or the status of the process. */
static int shoot(struct repeat_work *work, const struct shot *shot, size_t *ret_size)
{
    struct wm_error err;

    if (measure_is_interrupted())
        return be_interrupted(work);
    int status = prepare_tracker(work, shot, &err);
    if (status < 0)
        return fail(work, &err);
    const struct wm_tracker_target target = {
        .argv = shot->argv,
        .runs = shot->batch > 1 ? shot->batch : 0,
        .goes_on = work->args->ignore_failure,
    };
    status = wm_tracker_start(work->tracker, &target, &err);
    if (status < 0)
        return measure_start_failure("run", &err, work->io);
    measure_forward_signals(work->tracker);
    status = wait_for_end(work, &err);
    return status < 0 ? fail(work, &err) : use_run(work, shot, ret_size);
}

/* Finds how many runs of a short command a batch needs, beginning with `*batch`. */
static int find_batch(struct repeat_work *work, struct shot shot, size_t *batch)
{
    size_t size = 1;
    int code = CMD_DONE;

    shot.batch = *batch;
    shot.is_kept = shot.counts = false;
    for (int i = 0; i < SIZE_TRIES && code == CMD_DONE; i++) {
        code = shoot(work, &shot, &size);
        if (size <= shot.batch)
            break;
        /* Some more, as runs that follow each other become faster. */
        shot.batch =
            size + size / 4 < WM_TRACKER_BATCH_MAX ? size + size / 4 : WM_TRACKER_BATCH_MAX;
    }
    *batch = shot.batch;
    return code;
}

/* Between two runs, and so there are no batches. */
static bool has_hooks(const struct repeat_command *command)
{
    return command->hooks[REPEAT_PREPARE] || command->hooks[REPEAT_CONCLUDE];
}

static struct shot shot_of(const struct repeat_work *work, size_t command, size_t round)
{
    const struct repeat_command *one = &work->commands.all[command];

    return (struct shot) {
        .argv = one->argv,
        .line = one->line,
        .command = command,
        .round = round,
        .batch = one->batch > 0 ? one->batch : 1,
    };
}

/* A run with what the user wants around it. */
static int run_between_hooks(struct repeat_work *work, const struct shot *shot,
                             size_t *ret_size)
{
    int code = repeat_settle(work);

    if (code == CMD_DONE)
        code = repeat_hook(work, shot->command, REPEAT_PREPARE);
    if (code == CMD_DONE)
        code = shoot(work, shot, ret_size);
    if (code == CMD_DONE)
        code = repeat_hook(work, shot->command, REPEAT_CONCLUDE);
    return code;
}

/* The last warm-up run shows whether the command is short, and so needs batches. */
static int end_warm_up(struct repeat_work *work, size_t command, size_t size)
{
    struct repeat_command *one = &work->commands.all[command];

    one->batch = has_hooks(one) ? 1 : size;
    return one->batch > 1 ? find_batch(work, shot_of(work, command, 0), &one->batch)
                          : CMD_DONE;
}

static int warm_up(struct repeat_work *work)
{
    size_t order[work->commands.count], runs = (size_t)work->args->warmup.value;
    int code = CMD_DONE;

    for (size_t round = 0; round < runs && code == CMD_DONE; round++) {
        wm_repeat_order(work->repeat, round, order);
        for (size_t i = 0; i < work->commands.count && code == CMD_DONE; i++) {
            struct shot shot = shot_of(work, order[i], round);
            size_t size = 1;
            code = run_between_hooks(work, &shot, &size);
            if (code == CMD_DONE && round + 1 == runs)
                code = end_warm_up(work, order[i], size);
        }
    }
    return code;
}

/* What the shell takes to start, which is subtracted from each run. */
static int measure_shell(struct repeat_work *work)
{
    struct shot shot = { .line = work->args->shell,
                         .command = WM_REPEAT_SHELL,
                         .batch = 1 };
    size_t size;
    int code = CMD_DONE;

    if (!work->args->shell)
        return CMD_DONE;
    char **argv = repeat_shell_words(work->args->shell, "");
    if (!argv)
        return fail(work,
                    &(struct wm_error) { .status = WM_ENOMEM, .text = "out of memory" });
    shot.argv = argv;
    code = find_batch(work, shot, &shot.batch);
    shot.counts = true;
    for (int i = 0; i < SHELL_ROUNDS && code == CMD_DONE; i++)
        code = shoot(work, &shot, &size);
    repeat_free_words(argv);
    return code;
}

static bool has_progress(const struct repeat_work *work)
{
    return !work->args->measure.quiet && !work->args->show_output &&
           isatty(fileno(work->io->chat));
}

/* "run 12 of 40: sleep 0.2, 0:12 left" on a terminal, in place of the line before. */
static void show_progress(const struct repeat_work *work, size_t done, double begun_s,
                          const char *line)
{
    size_t all = work->rounds * work->commands.count;
    FILE *out = work->io->chat;

    if (!has_progress(work))
        return;
    fprintf(out, "\r\033[Krun %zu of %s%zu: %.40s", done + 1,
            work->until > 0 ? "at most " : "", all, line);
    if (done > 0) {
        double left_s = (now_s() - begun_s) / (double)done * (double)(all - done);
        fprintf(out, ", %d:%02d left", (int)(left_s / 60), (int)left_s % 60);
    }
    fflush(out);
}

static void clear_progress(const struct repeat_work *work)
{
    if (has_progress(work))
        fputs("\r\033[K", work->io->chat);
}

/* The first run of a command without warm-up runs shows whether it is short. It counts
 * where it is not, so that no long run is wasted. */
static int run_one(struct repeat_work *work, size_t command, size_t round)
{
    struct repeat_command *one = &work->commands.all[command];
    struct shot shot = shot_of(work, command, round);
    size_t size = 1;

    shot.counts = shot.is_kept = true;
    shot.is_trial = one->batch == 0 && !has_hooks(one);
    int code = run_between_hooks(work, &shot, &size);
    if (!shot.is_trial || code != CMD_DONE || size == 1) {
        one->batch = shot.batch;
        return code;
    }
    one->batch = size;
    code = find_batch(work, shot, &one->batch);
    shot.batch = one->batch;
    shot.is_trial = false;
    return code == CMD_DONE ? run_between_hooks(work, &shot, &size) : code;
}

static int run_round(struct repeat_work *work, size_t round, double begun_s)
{
    size_t order[work->commands.count];
    int code = CMD_DONE;

    wm_repeat_order(work->repeat, round, order);
    for (size_t i = 0; i < work->commands.count && code == CMD_DONE; i++) {
        show_progress(work, round * work->commands.count + i, begun_s,
                      work->commands.all[order[i]].line);
        code = run_one(work, order[i], round);
    }
    return code;
}

/* Whether the intervals are narrow enough, or there is no more time for it. */
static bool is_enough(struct repeat_work *work, size_t rounds, double begun_s,
                      int *ret_code)
{
    double limit_s = (double)work->args->limit_ns / 1e9;
    struct wm_error err;
    char text[160];

    if (work->until <= 0)
        return false;
    if (wm_repeat_next_look(rounds - 1) == rounds &&
        wm_repeat_is_narrow(work->repeat, work->until))
        return true;
    if (now_s() - begun_s < limit_s && rounds < work->rounds)
        return false;
    snprintf(
        text, sizeof(text),
        "--until %s was not reached in %zu runs and %.0f s; --limit and --repeat allow "
        "more",
        work->args->until, rounds, now_s() - begun_s);
    if (wm_repeat_note(work->repeat, text, &err) < 0)
        *ret_code = fail(work, &err);
    return true;
}

static int run_rounds(struct repeat_work *work)
{
    double begun_s = now_s();
    int code = CMD_DONE;

    for (size_t round = 0; round < work->rounds && code == CMD_DONE; round++) {
        code = run_round(work, round, begun_s);
        if (code == CMD_DONE && is_enough(work, round + 1, begun_s, &code))
            break;
    }
    clear_progress(work);
    return code;
}

/* Before all planned runs. */
static void note_stop(struct repeat_work *work)
{
    struct wm_error err;

    if (wm_repeat_stopped(work->repeat, work->counted, work->rounds * work->commands.count,
                          &err) < 0)
        fail(work, &err);
    if (work->counted == 0 && measure_is_interrupted())
        fprintf(work->io->chat, "wattmeter run: stopped before the first run has ended\n");
}

/* For each command once. */
static int run_hooks(const struct repeat_work *work, enum repeat_when when)
{
    int code = CMD_DONE;

    for (size_t i = 0; i < work->commands.count && code == CMD_DONE; i++)
        code = repeat_hook(work, i, when);
    return code;
}

int repeat_rounds(struct repeat_work *work)
{
    measure_catch_signals();
    int code = repeat_settle_begin(work);
    if (code == CMD_DONE)
        code = run_hooks(work, REPEAT_SETUP);
    if (code == CMD_DONE)
        code = measure_shell(work);
    if (code == CMD_DONE)
        code = warm_up(work);
    if (code == CMD_DONE)
        code = run_rounds(work);
    if (code != CMD_DONE)
        note_stop(work);
    int cleaned = run_hooks(work, REPEAT_CLEANUP);
    repeat_settle_end(work);
    measure_forward_signals(NULL);
    return code == CMD_DONE ? cleaned : code;
}
