/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c - `wattmeter compare`: what differs between sessions. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "output.h"
#include "wattmeter/comparison.h"

struct compare_args {
    struct output_args output; /* its style: the verbosity alone */
    const char *statistic, *format, *fail_above, *threshold;
    struct cmd_list metrics, regions, runs;
    struct cmd_list sessions;
};

#define COMPARE(member) offsetof(struct compare_args, member)

#define STATISTICS "mean min max std total"
#define FORMATS "text json gpu-tracker gpu-tracker-api gpu-tracker-json"

static const struct cmd_option compare_options[] = {
    { .name = "stat",
      .slot = COMPARE(statistic),
      .placeholder = "STATISTIC",
      .help = "mean, min, max, std or total (mean)",
      .words = STATISTICS },
    { .name = "fail-above",
      .slot = COMPARE(fail_above),
      .placeholder = "P%",
      .help = "exit with 1 if time, memory or energy grew by more than this (beyond "
              "noise)" },
    { .name = "metric",
      .type = CMD_LIST,
      .slot = COMPARE(metrics),
      .placeholder = "NAME",
      .help = "with --fail-above: only this figure (cpu_time, energy, ...); may be "
              "repeated" },
    { .name = "threshold",
      .slot = COMPARE(threshold),
      .placeholder = "P%",
      .help = "treat smaller differences as none (1%)" },
    { .letter = 'v',
      .name = "verbose",
      .type = CMD_TIMES,
      .slot = COMPARE(output.style.verbosity),
      .help = "every figure, also of each region" },
    { .name = "regions",
      .type = CMD_LIST,
      .slot = COMPARE(regions),
      .placeholder = "NAME=FILE",
      .help = "calls of blocks of session NAME; may be repeated" },
    { .name = "run",
      .type = CMD_LIST,
      .slot = COMPARE(runs),
      .placeholder = "NAME=N",
      .help = "run number N of session NAME alone, from 0 (all, as its repeats)" },
    { .name = "format",
      .slot = COMPARE(format),
      .placeholder = "FORMAT",
      .help = "text, json, gpu-tracker, gpu-tracker-api or gpu-tracker-json (text)",
      .words = FORMATS },
    { 0 },
};
static const struct cmd_option *const options[] = { compare_options, output_options, NULL };

/* What the options come to. */
struct request {
    const struct compare_args *args;
    const struct cmd_streams *io;
    struct wm_comparison_options options;
    double fail_above; /* a ratio; negative: not given */
};

static int misuse(const struct request *request, const char *option, const char *word,
                  const char *why)
{
    return output_misused("compare", request->io, "%s: '%s' %s", option, cmd_shown(word),
                          why);
}

static int find_format(struct request *request)
{
    const struct compare_args *args = request->args;

    return output_find_format("compare", &args->output, args->format, FORMATS, request->io,
                              &request->options.format);
}

/* A bare 0.05 could be meant as 5 %, so the sign has to be there. */
static int find_limit(struct request *request)
{
    const char *word = request->args->fail_above;
    double percent;

    request->fail_above = -1;
    if (!word)
        return CMD_DONE;
    if (!cmd_parse_percent(word, &percent))
        return misuse(request, "--fail-above", word, "is no percentage, such as 5%");
    if (strcmp(request->options.statistic, "mean") != 0 &&
        strcmp(request->options.statistic, "total") != 0)
        return misuse(request, "--fail-above", word,
                      "needs --stat mean or total: the noise of others is not known");
    request->fail_above = percent / 100;
    return CMD_DONE;
}

/* No ratio in a request stands for the default; 0 has to be told from that. */
static int find_threshold(struct request *request)
{
    const char *word = request->args->threshold;
    double percent;

    if (!word)
        return CMD_DONE;
    if (!cmd_parse_percent(word, &percent) || percent > 100)
        return misuse(request, "--threshold", word, "is no percentage, such as 1%");
    request->options.threshold = percent > 0 ? percent / 100 : -1;
    return CMD_DONE;
}

static int find_metrics(struct request *request)
{
    const struct cmd_list *metrics = &request->args->metrics;

    if (metrics->count > 0 && !request->args->fail_above)
        return misuse(request, "--metric", metrics->words[0], "needs --fail-above");
    request->options.metrics = (const char *const *)metrics->words;
    request->options.metric_count = metrics->count;
    return CMD_DONE;
}

/* A session is called by its name, or by its path where it has none. */
static size_t name_length(const char *word)
{
    const char *path = output_session_path(word);

    return path > word ? (size_t)(path - word) - 1 : strlen(word);
}

/* What follows "NAME=" in an option of that session; NULL of another's. A name that has a
 * sign in it is found too. */
static const char *value_for(const char *option, const char *session)
{
    size_t length = name_length(session);

    if (strncmp(option, session, length) != 0 || option[length] != '=')
        return NULL;
    return option + length + 1;
}

/* An option for a session that is not there would do nothing. */
static int check_names(const struct request *request, const char *option,
                       const struct cmd_list *list)
{
    const struct cmd_list *sessions = &request->args->sessions;

    for (size_t i = 0; i < list->count; i++) {
        size_t s = 0;
        while (s < sessions->count && !value_for(list->words[i], sessions->words[s]))
            s++;
        if (s == sessions->count)
            return misuse(request, option, list->words[i],
                          "does not begin with the name of a session and '='");
    }
    return CMD_DONE;
}

/* What is read must not be overwritten. */
static int check_output(const struct request *request)
{
    const struct compare_args *args = request->args;
    const struct output_args *output = &args->output;
    int code = CMD_DONE;

    for (size_t i = 0; i < args->sessions.count && code == CMD_DONE; i++)
        code = output_check_input(
            "compare", output, output_session_path(args->sessions.words[i]), request->io);
    for (size_t i = 0; i < args->regions.count; i++) {
        for (const char *sign = strchr(args->regions.words[i], '=');
             sign && code == CMD_DONE; sign = strchr(sign + 1, '='))
            code = output_check_input("compare", output, sign + 1, request->io);
    }
    return code == CMD_DONE ? output_check("compare", output, request->io) : code;
}

/* `files` has room for all that options name. */
static int add_session(const struct request *request, struct wm_comparison *comparison,
                       const char *word, const char **files)
{
    const struct compare_args *args = request->args;
    struct wm_analysis_input input = { .tracking = output_session_path(word),
                                       .run = WM_ALL_RUNS,
                                       .sub_tracking = files };
    struct wm_error err = { .status = WM_ENOMEM, .text = "out of memory" };

    for (size_t i = 0; i < args->regions.count; i++) {
        const char *file = value_for(args->regions.words[i], word);
        if (file)
            files[input.sub_tracking_count++] = file;
    }
    for (size_t i = 0; i < args->runs.count; i++) {
        const char *number = value_for(args->runs.words[i], word);
        uint64_t run;
        if (number && !cmd_parse_count(number, &run))
            return misuse(request, "--run", args->runs.words[i], "has no whole number");
        if (number)
            input.run = (size_t)run;
    }
    char *name = strndup(word, name_length(word));
    int status = name ? wm_comparison_add(comparison, name, &input, &err) : WM_ENOMEM;
    free(name);
    return status < 0 ? output_failure("compare", &err, request->io) : CMD_DONE;
}

static int add_sessions(const struct request *request, struct wm_comparison *comparison)
{
    const struct cmd_list *sessions = &request->args->sessions;
    const char **files = calloc(request->args->regions.count + 1, sizeof(*files));
    int code = CMD_DONE;

    if (!files) {
        fprintf(request->io->chat, "wattmeter compare: out of memory\n");
        return CMD_FAILED;
    }
    for (size_t i = 0; i < sessions->count && code == CMD_DONE; i++)
        code = add_session(request, comparison, sessions->words[i], files);
    free(files);
    return code;
}

/* For output_print(). */
struct printed {
    const struct wm_comparison *comparison;
    int verbosity;
};

static int print_comparison(const void *opaque, FILE *out, struct wm_error *err)
{
    const struct printed *printed = opaque;

    return wm_comparison_print(printed->comparison, printed->verbosity, out, err);
}

static int print(const struct request *request, const struct wm_comparison *comparison)
{
    const struct output_args *output = &request->args->output;
    const struct printed printed = { comparison, output->style.verbosity };
    int code = output_print("compare", output, print_comparison, &printed, request->io);

    if (code == CMD_DONE && output_adds_line_end(output, request->options.format))
        fputc('\n', request->io->out);
    return code;
}

static int judge(const struct request *request, const struct wm_comparison_result *result)
{
    bool is_above = result->worst > request->fail_above;

    if (request->fail_above < 0 || (!is_above && !result->untested))
        return CMD_DONE;
    if (!is_above)
        return output_misused("compare", request->io,
                              "%s: --fail-above needs 6 runs or more of each session, as "
                              "'wattmeter run -r 10 --record FILE.sqlite -- CMD' records",
                              result->untested);
    if (result->worst > 1e6)
        fprintf(request->io->chat,
                "wattmeter compare: %s grew from next to nothing, more than %s\n",
                result->worst_figure, request->args->fail_above);
    else
        fprintf(request->io->chat,
                "wattmeter compare: %s grew by at least %.1f %%, more than %s\n",
                result->worst_figure, 100 * result->worst, request->args->fail_above);
    return CMD_FAILED;
}

static int compare(const struct request *request, struct wm_comparison *comparison)
{
    struct wm_comparison_result result;
    const char *remark;
    struct wm_error err;

    int code = add_sessions(request, comparison);
    if (code != CMD_DONE)
        return code;
    if (wm_comparison_run(comparison, &request->options, &result, &err) < 0)
        return output_failure("compare", &err, request->io);
    if (result.sessions < 2 && request->args->fail_above)
        return output_misused("compare", request->io, "--fail-above needs two sessions");
    if (result.sessions < 2)
        fprintf(request->io->chat,
                "wattmeter compare: one session; name another to compare it with\n");
    for (size_t i = 0; (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        fprintf(request->io->chat, "wattmeter compare: %s\n", remark);
    code = print(request, comparison);
    return code == CMD_DONE ? judge(request, &result) : code;
}

static int run_compare(const void *opaque, const struct cmd_streams *io)
{
    const struct compare_args *args = opaque;
    struct request request = { .args = args,
                               .io = io,
                               .options.statistic =
                                   args->statistic ? args->statistic : "mean" };
    struct wm_comparison *comparison;
    struct wm_error err;

    int code = find_format(&request);
    if (code == CMD_DONE)
        code = find_limit(&request);
    if (code == CMD_DONE)
        code = find_metrics(&request);
    if (code == CMD_DONE)
        code = find_threshold(&request);
    if (code == CMD_DONE)
        code = check_names(&request, "--regions", &args->regions);
    if (code == CMD_DONE)
        code = check_names(&request, "--run", &args->runs);
    if (code == CMD_DONE)
        code = check_output(&request);
    if (code != CMD_DONE)
        return code;

    if (wm_comparison_new(&comparison, &err) < 0)
        return output_failure("compare", &err, io);
    code = compare(&request, comparison);
    wm_comparison_free(comparison);
    return code;
}

const struct cmd cmd_compare = {
    .name = "compare",
    .summary = "Compare sessions and show which differences are more than chance.",
    .details = "Each SESSION is NAME=FILE or FILE. FILE is a recording, a tracking file of "
               "gpu_tracker, or the JSON that `wattmeter analyze` or gpu_tracker made of "
               "one. All runs of a recording are its repeats. A recording that `wattmeter "
               "run --repeat` made of several commands is a session for each. The others "
               "are compared with the first: as a whole, and region by region.\n"
               "\n"
               "A change is tested if both sessions have 6 runs or more, against the "
               "variation of the runs of each. With --fail-above the exit status is 1 if "
               "the whole 95 % interval of an increase lies above P. This counts times, "
               "energies and the memory of the program. The exit status is 2 if no figure "
               "could be tested. --metric selects among them; each selected one must be "
               "testable.\n"
               "\n"
               "gpu-tracker prints like gpu_tracker's command, gpu-tracker-api like its "
               "API; they differ only in blanks.",
    .example = "wattmeter compare before=a.sqlite after=b.sqlite --fail-above 5%",
    .operands = "SESSION...",
    .operands_slot = COMPARE(sessions),
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .options = options,
    .args_size = sizeof(struct compare_args),
    .run = run_compare,
};
