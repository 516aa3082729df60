/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - `wattmeter report`: the report of a recording. */
#include <stdio.h>
#include <string.h>

#include "output.h"

struct report_args {
    struct output_args output;
    struct cmd_count run;
    const char *meter, *meter_offset;
    bool csv;
    struct cmd_list recordings;
};

static const struct cmd_option report_options[] = {
    OUTPUT_RUN_OPTION(offsetof(struct report_args, run)),
    { .name = "meter",
      .slot = offsetof(struct report_args, meter),
      .placeholder = "FILE.csv",
      .help = "add the power of an external meter, matched by the time of day" },
    { .name = "meter-offset",
      .slot = offsetof(struct report_args, meter_offset),
      .placeholder = "TIME|auto",
      .help = "add TIME to the meter's times, such as -2s; auto: match the meter's power "
              "to the machine's",
      .words = "auto" },
    { .name = "csv",
      .slot = offsetof(struct report_args, csv),
      .help = "print a table as CSV: a line for each run in each RECORDING, or for run N" },
    { 0 },
};
static const struct cmd_option *const options[] = {
    report_options,       output_options,        output_unit_options,
    output_price_options, output_carbon_options, NULL
};

static bool is_styled(const struct wm_report_style *style)
{
    return style->ram_unit || style->gpu_ram_unit || style->time_unit || style->currency ||
           style->price_per_kwh > 0 || style->carbon_g_per_kwh > 0 || style->pue > 0;
}

static int check_csv(const struct report_args *args, const struct cmd_streams *io)
{
    if (!args->csv && args->recordings.count > 1)
        return output_misused("report", io,
                              "'%.60s' is one word too many; --csv takes several",
                              cmd_shown(args->recordings.words[1]));
    if (args->csv && (args->output.json || args->meter))
        return output_misused("report", io, "--csv and %s exclude each other",
                              args->meter ? "--meter" : "--json");
    if (args->csv && is_styled(&args->output.style))
        return output_misused(
            "report", io, "with --csv there are no units to choose, no cost and no CO2e");
    return CMD_DONE;
}

/* A duration that may have a sign, or "auto". */
static bool read_offset(const char *word, int64_t *ret_ns)
{
    bool is_less = word[0] == '-';

    if (strcmp(word, "auto") == 0) {
        *ret_ns = WM_METER_OFFSET_AUTO;
        return true;
    }
    if (!cmd_parse_duration(word + (is_less || word[0] == '+'), ret_ns) ||
        *ret_ns > WM_METER_OFFSET_MAX_NS)
        return false;
    *ret_ns = is_less ? -*ret_ns : *ret_ns;
    return true;
}

static int check_offset(const struct report_args *args, const struct cmd_streams *io)
{
    int64_t offset_ns;

    if (args->meter_offset && !args->meter)
        return output_misused("report", io, "--meter-offset needs --meter");
    if (args->meter_offset && !read_offset(args->meter_offset, &offset_ns))
        return output_misused("report", io,
                              "--meter-offset: '%.60s' is neither 'auto' nor a time of up "
                              "to a day, such as -2s or 1.5s",
                              cmd_shown(args->meter_offset));
    return CMD_DONE;
}

static int check(const struct report_args *args, const struct cmd_streams *io)
{
    int code = check_csv(args, io);

    if (code == CMD_DONE)
        code = check_offset(args, io);
    for (size_t i = 0; i < args->recordings.count && code == CMD_DONE; i++)
        code = output_check_input("report", &args->output, args->recordings.words[i], io);
    if (code == CMD_DONE && args->meter)
        code = output_check_input("report", &args->output, args->meter, io);
    if (code == CMD_DONE)
        code = output_check_twice("report", &args->recordings, io);
    return code == CMD_DONE ? output_check("report", &args->output, io) : code;
}

static int print_csv(const void *found, FILE *out, struct wm_error *err)
{
    const struct report_args *args = found;
    const struct cmd_list *recordings = &args->recordings;

    return wm_report_print_csv((const char *const *)recordings->words, recordings->count,
                               args->run.given ? output_run(&args->run) : WM_ALL_RUNS, out,
                               err);
}

static int print_report(const struct report_args *args, const struct cmd_streams *io)
{
    struct wm_recording *recording = NULL;
    struct wm_report *report;
    struct wm_error err;
    int64_t offset_ns = 0;

    if (args->meter_offset)
        read_offset(args->meter_offset, &offset_ns);
    int status = wm_recording_open(args->recordings.words[0], output_run(&args->run),
                                   &recording, &err);
    if (status == WM_OK && args->meter)
        status =
            wm_recording_join_meter(recording, args->meter, offset_ns, &recording, &err);
    if (status == WM_OK)
        status = wm_report_from_recording(recording, &report, &err);
    wm_recording_close(recording);
    if (status < 0)
        return output_failure("report", &err, io);

    output_note_run("report", args->recordings.words[0], &args->run, io);
    int code = output_write("report", &args->output, report, io->out, io);
    wm_report_free(report);
    return code;
}

static int run_report(const void *opaque, const struct cmd_streams *io)
{
    const struct report_args *args = opaque;

    int code = check(args, io);
    if (code != CMD_DONE)
        return code;
    return args->csv ? output_print("report", &args->output, print_csv, args, io)
                     : print_report(args, io);
}

const struct cmd cmd_report = {
    .name = "report",
    .summary = "Print the report of a recording.",
    .details = "The report is the one that was printed when the recording was made. If the "
               "writer of a recording was killed, the report covers the time up to its "
               "last sample.\n"
               "\n"
               "--csv writes a line with the names of the columns, then a line for each "
               "run of each RECORDING. A line identifies the run and has all figures of "
               "the whole run in the JSON report, in SI units; unknown values are empty.",
    .example = "wattmeter report --json run.sqlite",
    .operands = "RECORDING...",
    .operands_slot = offsetof(struct report_args, recordings),
    .operands_min = 1,
    .operands_max = (size_t)-1,
    .options = options,
    .args_size = sizeof(struct report_args),
    .run = run_report,
};
