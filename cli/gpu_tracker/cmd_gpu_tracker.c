/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gpu_tracker.c - `wattmeter gpu-tracker`, or `gpu-tracker` where the program is called
 * by that name: gpu_tracker's command line. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/docopt.h"
#include "gpu_tracker/gpu_tracker.h"
#include "wattmeter/version.h"

#define ARG(member) offsetof(struct gpu_tracker_args, member)
#define TEXT(letter_, name_, member_, placeholder_, help_)                                 \
    {                                                                                      \
        .letter = letter_, .name = name_, .slot = ARG(member_),                            \
        .placeholder = placeholder_, .help = help_                                         \
    }
#define LIST(letter_, name_, member_, placeholder_, help_)                                 \
    {                                                                                      \
        .letter = letter_, .name = name_, .type = CMD_LIST, .slot = ARG(member_),          \
        .placeholder = placeholder_, .help = help_                                         \
    }
#define FLAG(letter_, name_, member_, help_)                                               \
    {                                                                                      \
        .letter = letter_, .name = name_, .slot = ARG(member_), .help = help_              \
    }

static const struct cmd_option words_options[] = {
    FLAG('h', "help", help, "gpu_tracker's help"),
    FLAG('v', "version", version, "which version this is"),
    TEXT('e', "execute", execute, "COMMAND", "the command, with its arguments, in quotes"),
    TEXT('o', "output", output, "FILE", "write the results to FILE; it is replaced"),
    TEXT('f', "format", format, "FORMAT",
         "text, json, or pickle where Python has our package (text)"),
    TEXT(0, "tconfig", tconfig, "FILE", "settings for tracking, in JSON"),
    TEXT(0, "st", sleep_time, "SECONDS", "sampling interval, from 0.1 on (1)"),
    TEXT(0, "ru", ram_unit, "UNIT",
         "of memory: bytes, kilobytes ... terabytes (gigabytes)"),
    TEXT(0, "gru", gpu_ram_unit, "UNIT", "of GPU memory (gigabytes)"),
    TEXT(0, "tu", time_unit, "UNIT", "of time: seconds, minutes, hours or days (hours)"),
    TEXT(0, "nec", cores, "N", "how many cores are 100 % of the hardware (all)"),
    TEXT(0, "guuids", gpu_uuids, "UUID,...", "GPUs to track (all)"),
    FLAG(0, "disable-logs", disable_logs, "no warnings"),
    TEXT(0, "gb", brand, "BRAND", "of the GPUs: nvidia or amd (whichever is there)"),
    TEXT(0, "tf", tracking_file, "FILE",
         "the tracking file, .csv or .sqlite: written with -e, read by sub-track"),
    FLAG(0, "overwrite", overwrite, "replace a tracking file that exists"),
    TEXT(0, "stf", sub_tracking_file, "FILE", "the sub-tracking file, .csv or .sqlite"),
    LIST('p', "p", paths, "PATH",
         "a file to combine, or a folder of them; may be repeated"),
    TEXT(0, "cconfig", cconfig, "FILE", "what to compare, in JSON"),
    LIST('m', "m", sessions, "NAME=FILE",
         "the results of a session to compare; may be repeated"),
    TEXT(0, "stat", statistic, "STATISTIC", "min, max, mean or std (mean)"),
    { 0 },
};
static const struct cmd_option *const options[] = { words_options, NULL };

static const struct docopt_usage usages[] = {
    { "", "execute",
      "output format tconfig st ru gru tu nec guuids disable-logs gb tf overwrite" },
    { "sub-track combine", "stf", "p" },
    { "sub-track analyze", "tf stf", "output format" },
    { "sub-track compare", "", "output format cconfig m stat" },
    { 0 },
};

/* In the order of the usages. */
static int (*const parts[])(const struct gpu_tracker_args *args,
                            const struct cmd_streams *io) = {
    gpu_tracker_track,
    gpu_tracker_combine,
    gpu_tracker_analyze,
    gpu_tracker_compare,
};

/* A line of its own, wherever both streams lead: what was printed before is there before
 * it, and nothing comes between its parts. */
static void say(const struct cmd_streams *io, const char *level, const char *format,
                va_list args)
{
    char *text;

    fflush(io->out);
    if (vasprintf(&text, format, args) < 0)
        return;
    fprintf(io->chat, "%s:root:%s\n", level, text);
    free(text);
}

int gpu_tracker_error(const struct cmd_streams *io, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(io, "ERROR", format, args);
    va_end(args);
    return CMD_FAILED;
}

void gpu_tracker_warn(const struct cmd_streams *io, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(io, "WARNING", format, args);
    va_end(args);
}

void gpu_tracker_warn_lines(const struct cmd_streams *io, char *text)
{
    const char *line;

    while (text && (line = strsep(&text, "\n")) != NULL) {
        if (line[0])
            gpu_tracker_warn(io, "%s", line);
    }
}

static int run_parsed(int count, char *const words[], struct gpu_tracker_args *args,
                      const struct cmd_streams *io)
{
    static const struct docopt_grammar grammar = { words_options, usages };
    char problem[512];
    size_t usage;

    switch (docopt_parse(&grammar, count, words, (char *)args, &usage, problem,
                         sizeof(problem))) {
    case DOCOPT_HELP:
        gpu_tracker_print_help(io->out);
        return CMD_DONE;
    case DOCOPT_VERSION:
        fprintf(io->out, "%s\n", wm_version());
        return CMD_DONE;
    case DOCOPT_FITS:
        return parts[usage](args, io);
    case DOCOPT_WRONG:
        break;
    }
    fprintf(io->chat, "%s\n", problem);
    gpu_tracker_print_usage(io->chat);
    return CMD_FAILED;
}

static int run_gpu_tracker(int count, char *const words[], const struct cmd_streams *io)
{
    size_t room = (size_t)count;
    char **lists = calloc(2 * room, sizeof(*lists));

    if (!lists)
        return gpu_tracker_error(io, "out of memory");
    struct gpu_tracker_args args = {
        .paths = { .words = lists },
        .sessions = { .words = lists + room },
    };
    int code = run_parsed(count, words, &args, io);
    free(lists);
    return code;
}

static const struct cmd_verb verbs[] = {
    { "sub-track", "combine|analyze|compare",
      "joins sub-tracking files (--stf FILE -p PATH...); analyzes a tracking file and the "
      "blocks of code in a sub-tracking file (--tf FILE --stf FILE); compares sessions by "
      "the results of their analysis (-m NAME=FILE...)",
      NULL },
    { 0 },
};

const struct cmd cmd_gpu_tracker = {
    .name = "gpu-tracker",
    .summary = "Track and analyze with gpu_tracker's command line.",
    .details =
        "Measures the command that --execute has in one word, and reports in gpu_tracker's "
        "layout. The command is split into words as a shell's quotes and backslashes have "
        "it; for anything else of a shell there is bash -c. All options are checked before "
        "it starts. The status is that of the command, or 128 plus the number of the "
        "signal that ended it, and 1 when something failed. Words that are wrong are "
        "answered with the usage and status 1. Long options may be cut off as long as "
        "they are unique.\n"
        "\n"
        "The program is installed as gpu-tracker, too.",
    .example = "wattmeter gpu-tracker -e \"bash train.sh\" --st=0.3",
    .operands = "[sub-track combine|analyze|compare]",
    .verbs = verbs,
    .options = options,
    .run_words = run_gpu_tracker,
};
