/* SPDX-License-Identifier: Apache-2.0 */
/* repeat.c - the options of repeated commands, and where their results go. */
#include "repeat/repeat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "output.h"
#include "shell_words.h"

#define SLOT(member) offsetof(struct repeat_args, member)

/* Without --repeat as many as the looks of --until. */
enum { MOST_ROUNDS = 100000, UNTIL_ROUNDS = 243 };
#define DEFAULT_LIMIT_NS INT64_C(600000000000)

const struct cmd_option repeat_options[] = {
    { .letter = 'r',
      .name = "repeat",
      .type = CMD_COUNT,
      .slot = SLOT(repeat),
      .placeholder = "N",
      .help = "run the command N times and print medians with 95 % intervals" },
    { .name = "vs",
      .type = CMD_LIST,
      .slot = SLOT(vs),
      .placeholder = "CMD",
      .help =
          "also run CMD, in turns with the command, and compare them; may be repeated" },
    { .letter = 'n',
      .name = "command-name",
      .type = CMD_LIST,
      .slot = SLOT(names),
      .placeholder = "NAME",
      .help = "name the next command in the results; give it once for each command" },
    { .letter = 'w',
      .name = "warmup",
      .type = CMD_COUNT,
      .slot = SLOT(warmup),
      .placeholder = "N",
      .help = "run each command N times first, without measuring" },
    { .letter = 's',
      .name = "setup",
      .type = CMD_LIST,
      .slot = SLOT(hooks[REPEAT_SETUP]),
      .placeholder = "CMD",
      .help = "run CMD once for each command, before all runs" },
    { .letter = 'p',
      .name = "prepare",
      .type = CMD_LIST,
      .slot = SLOT(hooks[REPEAT_PREPARE]),
      .placeholder = "CMD",
      .help = "run CMD before each run; give it once for all commands, or once for each" },
    { .name = "conclude",
      .type = CMD_LIST,
      .slot = SLOT(hooks[REPEAT_CONCLUDE]),
      .placeholder = "CMD",
      .help = "run CMD after each run; give it once for all commands, or once for each" },
    { .letter = 'c',
      .name = "cleanup",
      .type = CMD_LIST,
      .slot = SLOT(hooks[REPEAT_CLEANUP]),
      .placeholder = "CMD",
      .help = "run CMD once for each command, after all runs" },
    { .letter = 'L',
      .name = "parameter-list",
      .type = CMD_LIST,
      .slot = SLOT(parameters),
      .placeholder = "NAME=VALUES",
      .help = "run the commands with each value in place of {NAME}: n=1,2,4 or n=1..8" },
    { .name = "reference",
      .slot = SLOT(reference),
      .placeholder = "CMD",
      .help = "also run CMD, and compare all commands with it (the first command)" },
    { .letter = 'S',
      .name = "shell",
      .slot = SLOT(shell),
      .placeholder = "SHELL",
      .help = "run the commands with SHELL and subtract its start-up cost (none)" },
    { .name = "ignore-failure",
      .slot = SLOT(ignore_failure),
      .help = "continue when a run fails" },
    { .name = "show-output",
      .slot = SLOT(show_output),
      .help = "show the output of the commands, and give them the standard input" },
    { .name = "settle",
      .slot = SLOT(settle),
      .help = "wait before each run until power is back at idle, at most 30 s" },
    { .name = "until",
      .slot = SLOT(until),
      .placeholder = "P%",
      .help = "repeat until the 95 % intervals of time and energy are within P % of the "
              "median" },
    { .name = "limit",
      .type = CMD_DURATION,
      .slot = SLOT(limit_ns),
      .placeholder = "TIME",
      .help = "stop after TIME with --until (10min)",
      .min = "1s",
      .max = "10d" },
    { .name = "threshold",
      .slot = SLOT(threshold),
      .placeholder = "P%",
      .help = "ignore differences below P% (1%)" },
    { .name = "seed",
      .type = CMD_COUNT,
      .slot = SLOT(seed),
      .placeholder = "N",
      .help = "seed of the order in which commands take turns (random)" },
    { .name = "markdown",
      .slot = SLOT(markdown),
      .placeholder = "FILE",
      .help = "write the results as a Markdown table" },
    { .name = "csv",
      .slot = SLOT(csv),
      .placeholder = "FILE",
      .help = "write the results as CSV, a row for each command" },
    { 0 },
};

static bool is_given(const struct repeat_args *args, const struct cmd_option *option)
{
    const void *slot = (const char *)args + option->slot;

    switch (option->type) {
    case CMD_COUNT:
        return ((const struct cmd_count *)slot)->given;
    case CMD_LIST:
        return ((const struct cmd_list *)slot)->count > 0;
    case CMD_DURATION:
        return *(const int64_t *)slot != 0;
    default:
        return option->placeholder ? *(const char *const *)slot != NULL
                                   : *(const bool *)slot;
    }
}

int repeat_find_wanted(const struct repeat_args *args, const struct cmd_streams *io,
                       bool *ret_is_wanted)
{
    *ret_is_wanted = args->repeat.given || args->until;
    for (size_t i = 0; repeat_options[i].name && !*ret_is_wanted; i++) {
        if (is_given(args, &repeat_options[i]))
            return output_misused("run", io, "--%s needs --repeat N or --until P%%",
                                  repeat_options[i].name);
    }
    return CMD_DONE;
}

static int parse_ratio(const char *option, const char *word, const struct cmd_streams *io,
                       double *ret_ratio)
{
    double percent = 0;

    if (!word)
        return CMD_DONE;
    if (!cmd_parse_percent(word, &percent) || percent <= 0 || percent > 100)
        return output_misused("run", io, "--%s: %s is no percentage, such as 1%%", option,
                              cmd_shown(word));
    *ret_ratio = percent / 100;
    return CMD_DONE;
}

/* The file of --markdown or --csv. */
static struct output_args file_of(const struct repeat_args *args, const char *path)
{
    return (struct output_args) { .path = path,
                                  .overwrite = args->measure.output.overwrite };
}

static int check_file(const struct repeat_args *args, const char *option, const char *path,
                      const struct cmd_streams *io)
{
    char problem[OUTPUT_PROBLEM_SIZE];

    if (!path || output_is_writable(path, args->measure.output.overwrite, problem))
        return CMD_DONE;
    fprintf(io->chat, "wattmeter run: --%s%s\n", option, problem + strlen("--output"));
    return CMD_FAILED;
}

/* Results that are written over each other are lost. */
static int check_places(const struct repeat_args *args, const struct cmd_streams *io)
{
    const struct measure_args *measure = &args->measure;
    const char *all[] = { measure->record, measure->output.path, args->markdown,
                          args->csv };
    char *words[sizeof(all) / sizeof(all[0])];
    struct cmd_list files = { .words = words };
    struct stat info;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        /* A device or a pipe takes them one after the other. */
        if (all[i] && !output_is_standard(all[i]) &&
            (stat(all[i], &info) < 0 || S_ISREG(info.st_mode)))
            words[files.count++] = (char *)all[i];
    }
    if (output_is_standard(args->markdown) + output_is_standard(args->csv) +
            output_is_to_stdout(&measure->output) >
        1)
        return output_misused("run", io,
                              "one of --json, --markdown and --csv is printed; give the "
                              "others a file");
    return output_check_twice("run", &files, io);
}

static int check_shell(const char *shell, const struct cmd_streams *io)
{
    const char *problem = "there is no command in it";
    char **words = NULL;
    size_t count = 0;

    bool is_split = shell_words_split(shell, &words, &count, &problem);
    free(words);
    if (is_split && count > 0)
        return CMD_DONE;
    return output_misused("run", io, "--shell: %s: %s", shell, problem);
}

static int check(struct repeat_work *work, struct wm_repeat_options *options)
{
    const struct repeat_args *args = work->args;
    const struct cmd_streams *io = work->io;
    int code = parse_ratio("until", args->until, io, &work->until);

    if (code == CMD_DONE)
        code = parse_ratio("threshold", args->threshold, io, &options->threshold);
    if (code == CMD_DONE && args->repeat.given &&
        (args->repeat.value < 1 || args->repeat.value > MOST_ROUNDS))
        code = output_misused("run", io, "--repeat: there are 1 to %d runs", MOST_ROUNDS);
    if (code == CMD_DONE && args->shell)
        code = check_shell(args->shell, io);
    if (code == CMD_DONE && args->warmup.value > MOST_ROUNDS)
        code =
            output_misused("run", io, "--warmup: there are at most %d runs", MOST_ROUNDS);
    if (code == CMD_DONE)
        code = check_file(args, "markdown", args->markdown, io);
    if (code == CMD_DONE)
        code = check_file(args, "csv", args->csv, io);
    if (code == CMD_DONE)
        code = check_places(args, io);
    work->rounds = args->repeat.given ? (size_t)args->repeat.value : UNTIL_ROUNDS;
    return code;
}

/* From the recording's point of view all runs but the first are appended. */
static int check_recording(const struct repeat_work *work)
{
    const char *target = work->args->measure.record;
    const char *suffix = target ? strrchr(target, '.') : NULL;

    if (!target || strstr(target, "://") || (suffix && strcmp(suffix, ".sqlite") == 0))
        return CMD_DONE;
    return output_misused("run", work->io,
                          "--repeat records into .sqlite or postgresql://..., not into %s",
                          target);
}

static int add_commands(const struct repeat_work *work)
{
    struct wm_error err;

    for (size_t i = 0; i < work->commands.count; i++) {
        const struct repeat_command *one = &work->commands.all[i];
        const struct wm_repeat_command command = {
            .command = one->line,
            .name = one->name,
            .parameters = (const char *const *)one->parameters,
        };
        if (wm_repeat_add_command(work->repeat, &command, &err) < 0)
            return output_failure("run", &err, work->io);
    }
    return CMD_DONE;
}

struct printed {
    const struct wm_repeat *repeat;
    enum wm_format format;
    int verbosity;
};

static int print(const void *found, FILE *out, struct wm_error *err)
{
    const struct printed *printed = found;

    return wm_repeat_print(printed->repeat, printed->format, printed->verbosity, out, err);
}

static int print_to(const struct repeat_work *work, const char *path, enum wm_format format)
{
    const struct output_args place = file_of(work->args, path);
    const struct printed printed = { work->repeat, format, 0 };

    return path ? output_print("run", &place, print, &printed, work->io) : CMD_DONE;
}

/* What a place does not take is shown as text, so that it is not lost. */
static int print_main(const struct repeat_work *work, const struct printed *printed)
{
    const struct printed text = { work->repeat, WM_FORMAT_TEXT, printed->verbosity };
    const struct output_args *output = &work->args->measure.output;

    int code = output_print("run", output, print, printed, work->io);
    if (code != CMD_DONE)
        print(&text, work->io->chat, NULL);
    return code;
}

/* All outputs; the first failure counts. */
static int print_results(const struct repeat_work *work)
{
    const struct output_args *output = &work->args->measure.output;
    const struct printed printed = {
        work->repeat,
        output->json ? WM_FORMAT_JSON : WM_FORMAT_TEXT,
        output->style.verbosity,
    };
    bool is_shown = output->json || output_has_place(output) || !work->args->measure.quiet;
    int codes[] = {
        is_shown ? print_main(work, &printed) : CMD_DONE,
        print_to(work, work->args->markdown, WM_FORMAT_MARKDOWN),
        print_to(work, work->args->csv, WM_FORMAT_CSV),
    };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i] != CMD_DONE)
            return codes[i];
    }
    return CMD_DONE;
}

/* With everything that can be wrong checked. */
static int run_checked(struct repeat_work *work, const struct wm_repeat_options *options)
{
    struct measure_args measure = work->args->measure;
    struct wm_error err;

    measure.silent = !work->args->show_output;
    measure.wait_for_drivers = true;
    int code = measure_prepare("run", &measure, 0, work->io, &work->tracker);
    if (code == CMD_DONE && wm_repeat_new(options, &work->repeat, &err) < 0)
        code = output_failure("run", &err, work->io);
    if (code == CMD_DONE)
        code = add_commands(work);
    if (code != CMD_DONE)
        return code;
    code = repeat_rounds(work);
    int printed = print_results(work);
    return code == CMD_DONE ? printed : code;
}

int repeat_run(const struct repeat_args *args, const char *cap,
               const struct cmd_streams *io, int *ret_signal)
{
    struct repeat_args filled = *args;
    struct repeat_work work = { .args = &filled, .io = io, .cap = cap };
    struct wm_repeat_options options = { 0 };

    if (args->limit_ns == 0)
        filled.limit_ns = DEFAULT_LIMIT_NS;
    if (args->shell && strcmp(args->shell, "none") == 0)
        filled.shell = NULL;
    work.seed = args->seed.value;
    if (!args->seed.given && getrandom(&work.seed, 4, 0) < 0)
        work.seed = 1;
    options.seed = work.seed;
    int code = check(&work, &options);
    if (code == CMD_DONE)
        code = check_recording(&work);
    if (code == CMD_DONE)
        code = repeat_make_commands(&filled, io, &work.commands);
    if (code == CMD_DONE)
        code = run_checked(&work, &options);
    *ret_signal = work.exit_signal;
    wm_tracker_free(work.tracker);
    wm_repeat_free(work.repeat);
    repeat_release_commands(&work.commands);
    return code;
}
