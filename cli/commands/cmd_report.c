/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - `wattmeter report`: the report of a recording. */
#include <stdio.h>

#include "output.h"

struct report_args {
    struct output_args output;
    struct cmd_count run;
    const char *meter;
    struct cmd_list recording;
};

static const struct cmd_option report_options[] = {
    OUTPUT_RUN_OPTION(offsetof(struct report_args, run)),
    { .name = "meter",
      .slot = offsetof(struct report_args, meter),
      .placeholder = "FILE.csv",
      .help = "join the power that an external meter saw, by the time of day" },
    { 0 },
};
static const struct cmd_option *const options[] = {
    report_options,       output_options,        output_unit_options,
    output_price_options, output_carbon_options, NULL
};

static int run_report(const void *opaque, const struct cmd_streams *io)
{
    const struct report_args *args = opaque;
    size_t run = output_run(&args->run);
    struct wm_recording *recording = NULL;
    struct wm_report *report;
    struct wm_error err;

    int code = output_check_input("report", &args->output, args->recording.words[0], io);
    if (code == CMD_DONE && args->meter)
        code = output_check_input("report", &args->output, args->meter, io);
    if (code == CMD_DONE)
        code = output_check("report", &args->output, io);
    if (code != CMD_DONE)
        return code;

    int status = wm_recording_open(args->recording.words[0], run, &recording, &err);
    if (status == WM_OK && args->meter)
        status = wm_recording_join_meter(recording, args->meter, &recording, &err);
    if (status == WM_OK)
        status = wm_report_from_recording(recording, &report, &err);
    wm_recording_close(recording);
    if (status < 0)
        return output_failure("report", &err, io);

    code = output_write("report", &args->output, report, io->out, io);
    wm_report_free(report);
    return code;
}

const struct cmd cmd_report = {
    .name = "report",
    .summary = "Print the report of a recording.",
    .details = "It is the report that was printed when the recording was made. A recording "
               "whose writer was killed has a report too, up to its last sample.",
    .example = "wattmeter report --json run.sqlite",
    .operands = "RECORDING",
    .operands_slot = offsetof(struct report_args, recording),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct report_args),
    .run = run_report,
};
