/* SPDX-License-Identifier: Apache-2.0 */
/* cap_search.c - the options and the output of searches of the best cap, and searches in
 * tables that were measured before. */
#include "caps/cap_search.h"

#include <string.h>

#define FORMATS "text json csv"
#define SLOT(member) offsetof(struct cap_search_args, member)

const struct cmd_option cap_search_options[] = {
    { .name = "objective",
      .slot = SLOT(objective),
      .placeholder = "WHAT",
      .help = "what to minimize: energy (default), edp (energy x time), ed2p (energy x "
              "time squared) or cost",
      .words = "energy edp ed2p cost" },
    { .name = "max-slowdown",
      .slot = SLOT(max_slowdown),
      .placeholder = "P%",
      .help = "the largest increase of the time of a unit of work over the default limit" },
    { .name = "probes",
      .type = CMD_COUNT,
      .slot = SLOT(probes),
      .placeholder = "N",
      .help = "try at most N caps (8)" },
    { .name = "caps",
      .slot = SLOT(caps),
      .placeholder = "N|W,W,...",
      .help = "try only these caps, or N at equal distances" },
    { .name = "window",
      .type = CMD_DURATION,
      .slot = SLOT(window_ns),
      .placeholder = "TIME",
      .help = "duration of a measurement, up to the end of a unit (10s)",
      .min = "100ms",
      .max = "1h" },
    { .name = "unit",
      .slot = SLOT(unit),
      .placeholder = "REGION",
      .help = "measure calls of REGION as units of work; the command runs once" },
    { .name = "repeat",
      .slot = SLOT(repeat),
      .help = "measure the whole command as a unit of work, run repeatedly (default)" },
    { .name = "devices",
      .slot = SLOT(devices),
      .placeholder = "GPUS",
      .help = "GPUs to cap and measure: 0,1 (all)" },
    { .name = "knob",
      .slot = SLOT(knob),
      .placeholder = "KNOB",
      .help = "what to set: power (default), or clock, the highest graphics clock",
      .words = "power clock" },
    { .name = "price",
      .type = CMD_NUMBER,
      .slot = SLOT(price),
      .placeholder = "PER_KWH",
      .help = "price of energy, for the objective cost",
      .min = "0",
      .max = "1000000" },
    { .name = "hourly",
      .type = CMD_NUMBER,
      .slot = SLOT(hourly),
      .placeholder = "PER_HOUR",
      .help = "cost of the machine per hour, in the same currency",
      .min = "0",
      .max = "1000000" },
    { .name = "replay",
      .slot = SLOT(replay),
      .placeholder = "TABLE",
      .help = "search in a table of earlier measurements instead of a command" },
    { .name = "format",
      .slot = SLOT(format),
      .placeholder = "FORMAT",
      .help = "text (default), json or csv",
      .words = FORMATS },
    { 0 },
};

static int find_objective(const char *word, const struct cmd_streams *io,
                          enum wm_cap_objective *ret_objective)
{
    for (size_t i = 0; wm_cap_objective_name(i); i++)
        if (strcmp(word, wm_cap_objective_name(i)) == 0) {
            *ret_objective = (enum wm_cap_objective)i;
            return CMD_DONE;
        }
    return output_misused("cap", io, "--objective is energy, edp, ed2p or cost, not %s",
                          cmd_shown(word));
}

/* A percentage of 0.05 is never meant, so the sign may be left out. */
static int find_slowdown(const char *word, const struct cmd_streams *io, double *ret_ratio)
{
    double percent;

    if ((!cmd_parse_percent(word, &percent) && !cmd_parse_number(word, &percent)) ||
        percent < 0.1 || percent > 1000)
        return output_misused("cap", io, "--max-slowdown is from 0.1%% to 1000%%, not %s",
                              cmd_shown(word));
    *ret_ratio = percent / 100;
    return CMD_DONE;
}

int cap_search_plan(const struct cap_search_args *args, const struct cmd_streams *io,
                    struct wm_cap_plan *ret_plan)
{
    struct wm_cap_plan plan = { .probes = (unsigned)args->probes.value };
    enum wm_format format;
    int code = output_find_format("cap", &args->output, args->format, FORMATS, io, &format);

    if (code == CMD_DONE && args->objective)
        code = find_objective(args->objective, io, &plan.objective);
    if (code == CMD_DONE && args->max_slowdown)
        code = find_slowdown(args->max_slowdown, io, &plan.max_slowdown);
    if (code != CMD_DONE)
        return code;
    if (args->probes.given &&
        (args->probes.value < 2 || args->probes.value > WM_CAP_PROBES_MAX))
        return output_misused("cap", io, "--probes is 2 to %d", WM_CAP_PROBES_MAX);
    if ((args->price > 0) != (args->hourly > 0) ||
        (args->price > 0 && plan.objective != WM_CAP_COST))
        return output_misused("cap", io,
                              "--price and --hourly belong together, both above 0, and "
                              "to --objective cost");
    if (args->price > 0)
        plan.time_watts = args->hourly / 3600 / (args->price / 3.6e6);
    *ret_plan = plan;
    return output_check("cap", &args->output, io);
}

struct printed {
    const struct wm_cap_answer *answer;
    enum wm_format format;
};

static int print_answer(const void *found, FILE *out, struct wm_error *err)
{
    const struct printed *printed = found;

    return wm_cap_answer_print(printed->answer, printed->format, out, err);
}

int cap_search_print(const struct cap_search_args *args, struct wm_cap_search *search,
                     FILE *screen, const struct cmd_streams *io)
{
    struct cmd_streams streams = *io;
    struct wm_cap_answer answer;
    struct wm_error err;
    enum wm_format format = WM_FORMAT_TEXT;

    output_find_format("cap", &args->output, args->format, FORMATS, io, &format);
    if (wm_cap_search_answer(search, &answer, &err) < 0)
        return output_failure("cap", &err, io);
    struct printed printed = { &answer, format };
    bool is_file = args->output.path && strcmp(args->output.path, "-") != 0;
    /* Who has waited for minutes sees the answer at once, wherever else it goes. */
    if (screen == io->chat && (is_file || printed.format != WM_FORMAT_TEXT))
        wm_cap_answer_print(&answer, WM_FORMAT_TEXT, screen, NULL);
    if (printed.format == WM_FORMAT_TEXT)
        streams.out = screen;
    return output_print("cap", &args->output, print_answer, &printed, &streams);
}

typedef int search_maker(const struct wm_cap_plan *plan, const struct wm_cap_table *table,
                         struct wm_cap_search **ret_search, struct wm_error *err);

static int search_table(const struct cap_search_args *args, const char *path,
                        search_maker *make, const struct cmd_streams *io)
{
    struct wm_cap_search *search = NULL;
    struct wm_cap_table table;
    struct wm_cap_plan plan;
    struct wm_error err;

    if (args->caps || args->devices || args->knob || args->unit || args->repeat ||
        args->window_ns > 0)
        return output_misused("cap", io,
                              "--caps, --devices, --knob, --unit, --repeat and --window "
                              "are for a command, not for a table");
    int code = cap_search_plan(args, io, &plan);
    if (code != CMD_DONE)
        return code;
    int status = wm_cap_table_load(path, &table, &err);
    if (status < 0)
        return output_failure("cap", &err, io);
    status = make(&plan, &table, &search, &err);
    wm_cap_table_release(&table);
    if (status == WM_OK) {
        code = cap_search_print(args, search, io->out, io);
    } else {
        output_failure("cap", &err, io);
        code = CMD_FAILED; /* whatever is wrong, it is in the table */
    }
    wm_cap_search_free(search);
    return code;
}

int cap_fit(const struct cap_search_args *args, const char *path,
            const struct cmd_streams *io)
{
    return search_table(args, path, wm_cap_search_fit, io);
}

int cap_replay(const struct cap_search_args *args, const struct cmd_streams *io)
{
    return search_table(args, args->replay, wm_cap_search_replay, io);
}
