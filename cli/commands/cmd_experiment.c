/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_experiment.c - `wattmeter experiment`: what the runs under one name come to. */
#include <string.h>

#include "output.h"
#include "wattmeter/experiment.h"

struct experiment_args {
    struct output_args output;
    const char *from, *to, *per;
    double idle_watts;
    struct cmd_list words;
};

#define EXPERIMENT(member) offsetof(struct experiment_args, member)

static const struct cmd_option experiment_options[] = {
    { .name = "from",
      .slot = EXPERIMENT(from),
      .placeholder = "TIME",
      .help = "start at TIME: seconds after the first start, or 2026-11-21T08:48:21Z" },
    { .name = "to", .slot = EXPERIMENT(to), .placeholder = "TIME", .help = "end at TIME" },
    { .name = "per",
      .slot = EXPERIMENT(per),
      .placeholder = "METRIC",
      .help = "with show: the energy from each value of METRIC to the next" },
    { .name = "idle-watts",
      .type = CMD_NUMBER,
      .slot = EXPERIMENT(idle_watts),
      .placeholder = "WATTS",
      .help = "with show: power that the measured devices take when idle",
      .min = "0",
      .max = "1000000" },
    { 0 },
};
static const struct cmd_option *const options[] = { experiment_options, output_options,
                                                    output_price_options,
                                                    output_carbon_options, NULL };

struct work;

/* What a verb does. */
struct action {
    size_t words; /* with the verb itself */
    int (*run)(const struct work *work, struct wm_error *err);
    enum wm_figure_kind kind; /* of do_figure() */
};

/* What a verb works with; `experiment` is NULL for the one that needs none. */
struct work {
    const struct experiment_args *args;
    const struct action *action;
    const struct wm_experiment *experiment;
    struct wm_range range;
    FILE *out;
};

static enum wm_format format_of(const struct work *work)
{
    return work->args->output.json ? WM_FORMAT_JSON : WM_FORMAT_TEXT;
}

static int do_list(const struct work *work, struct wm_error *err)
{
    return wm_experiment_print_list(work->args->words.words[1], format_of(work), work->out,
                                    err);
}

static int do_show(const struct work *work, struct wm_error *err)
{
    const struct wm_experiment_style style = {
        .report = &work->args->output.style,
        .idle_watts = work->args->idle_watts,
        .per = work->args->per,
    };

    return wm_experiment_print(work->experiment, format_of(work), &style, work->out, err);
}

/* A total, average or maximum. */
static int do_figure(const struct work *work, struct wm_error *err)
{
    struct wm_series *series;

    int status =
        wm_experiment_series(work->experiment, work->args->words.words[3], &series, err);
    if (status < 0)
        return status;
    status = wm_series_print_figure(series, work->action->kind, &work->range,
                                    format_of(work), work->out, err);
    wm_series_free(series);
    return status;
}

/* All metrics from the fourth word on. */
static int do_curves(const struct work *work, struct wm_error *err)
{
    const struct cmd_list *words = &work->args->words;
    struct wm_series *series[2] = { 0 };
    const struct wm_series *shown[2];
    size_t count = words->count - 3;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        status =
            wm_experiment_series(work->experiment, words->words[3 + i], &series[i], err);
        shown[i] = series[i];
    }
    if (status == WM_OK)
        status =
            wm_series_print(shown, count, &work->range, format_of(work), work->out, err);
    for (size_t i = 0; i < count; i++)
        wm_series_free(series[i]);
    return status;
}

#define OUTPUT "output json overwrite"

static const struct cmd_verb verbs[] = {
    { "list", "TARGET", "list the experiments and their runs", OUTPUT },
    { "show", "TARGET NAME", "time, energy, cost and metrics, of each run and of all",
      "per idle-watts price currency carbon pue " OUTPUT },
    { "total", "TARGET NAME METRIC",
      "print the growth of a counter, or the area under a curve", "from to " OUTPUT },
    { "average", "TARGET NAME METRIC", "print the mean over the time for which it is known",
      "from to " OUTPUT },
    { "max", "TARGET NAME METRIC",
      "print the highest value; of an energy the highest power", "from to " OUTPUT },
    { "curve", "TARGET NAME METRIC", "print all values, as CSV", "from to " OUTPUT },
    { "interpolate", "TARGET NAME METRIC METRIC",
      "print two metrics at all their times, as CSV", "from to " OUTPUT },
    { 0 },
};

/* In the order of `verbs`. */
static const struct action actions[] = {
    { .words = 2, .run = do_list },
    { .words = 3, .run = do_show },
    { .words = 4, .run = do_figure, .kind = WM_FIGURE_TOTAL },
    { .words = 4, .run = do_figure, .kind = WM_FIGURE_AVERAGE },
    { .words = 4, .run = do_figure, .kind = WM_FIGURE_MAX },
    { .words = 4, .run = do_curves },
    { .words = 5, .run = do_curves },
};

enum { VERB_COUNT = sizeof(actions) / sizeof(actions[0]) };

static int check(const struct experiment_args *args, const struct cmd_streams *io,
                 const struct action **ret_action)
{
    size_t verb = 0;

    while (verb < VERB_COUNT && strcmp(args->words.words[0], verbs[verb].name) != 0)
        verb++;
    if (verb == VERB_COUNT)
        return output_misused(
            "experiment", io,
            "it can list, show, total, average, max, curve, interpolate, not %s",
            args->words.words[0]);
    if (args->words.count != actions[verb].words)
        return output_misused("experiment", io, "usage: wattmeter experiment %s %s",
                              verbs[verb].name, verbs[verb].operands);
    *ret_action = &actions[verb];
    return output_check("experiment", &args->output, io);
}

static int find_range(struct work *work, struct wm_error *err)
{
    const struct experiment_args *args = work->args;
    int status = WM_OK;

    if (args->from)
        status =
            wm_experiment_time(work->experiment, args->from, &work->range.from_ns, err);
    if (status == WM_OK && args->to)
        status = wm_experiment_time(work->experiment, args->to, &work->range.to_ns, err);
    if (status == WM_OK && args->to && work->range.to_ns < work->range.from_ns)
        status = output_fail(err, WM_EINVAL, "--to is before --from");
    return status;
}

static int work_on(const void *found, FILE *out, struct wm_error *err)
{
    struct work work = *(const struct work *)found;
    const struct cmd_list *words = &work.args->words;
    struct wm_experiment *experiment = NULL;

    work.out = out;
    if (work.action->words == 2)
        return work.action->run(&work, err);
    int status = wm_experiment_open(words->words[1], words->words[2], &experiment, err);
    if (status < 0)
        return status;
    work.experiment = experiment;
    status = find_range(&work, err);
    if (status == WM_OK)
        status = work.action->run(&work, err);
    wm_experiment_close(experiment);
    return status;
}

static int run_experiment(const void *opaque, const struct cmd_streams *io)
{
    const struct experiment_args *args = opaque;
    struct work work = { .args = args };

    int code = check(args, io, &work.action);
    return code == CMD_DONE ? output_print("experiment", &args->output, work_on, &work, io)
                            : code;
}

const struct cmd cmd_experiment = {
    .name = "experiment",
    .summary = "Summarize the runs of an experiment.",
    .details = "TARGET and NAME are the ones that the runs were recorded with (run "
               "--experiment TARGET --name NAME); NAME is - for runs without one. METRIC "
               "is an energy (energy, cpu_energy, dram_energy, gpu_energy, or of a device: "
               "package0_energy), or its power (power, cpu_power). It may also be a column "
               "of the recording, or a number that the command wrote (run --metrics).\n"
               "\n"
               "Time between two runs, or between two segments of one, is not counted. "
               "--output replaces no file unless --overwrite is given.",
    .example = "wattmeter experiment show results.sqlite resnet --per epoch",
    .verbs = verbs,
    .operands = "VERB TARGET [NAME [METRIC...]]",
    .operands_slot = EXPERIMENT(words),
    .operands_min = 2,
    .operands_max = 5,
    .options = options,
    .args_size = sizeof(struct experiment_args),
    .run = run_experiment,
};
