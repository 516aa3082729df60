/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_analyze.c - `wattmeter analyze`: a session and the blocks of code in it. */
#include "cmd.h"
#include "output.h"
#include "wattmeter/analysis.h"

struct analyze_args {
    struct output_args output; /* but its style */
    const char *format;
    struct cmd_count run;
    struct cmd_list regions;
    struct cmd_list recording;
};

#define ANALYZE(member) offsetof(struct analyze_args, member)

#define FORMATS "text json gpu-tracker gpu-tracker-json"

static const struct cmd_option analyze_options[] = {
    { .name = "regions",
      .type = CMD_LIST,
      .slot = ANALYZE(regions),
      .placeholder = "FILE",
      .help = "calls of blocks, .csv or .sqlite; may be repeated" },
    OUTPUT_RUN_OPTION(ANALYZE(run)),
    { .name = "format",
      .slot = ANALYZE(format),
      .placeholder = "FORMAT",
      .help = "text, json, gpu-tracker or gpu-tracker-json (text)",
      .words = FORMATS },
    { 0 },
};
static const struct cmd_option *const options[] = { analyze_options, output_options, NULL };

/* What is read must not be overwritten. */
static int check_output(const struct analyze_args *args, const struct cmd_streams *io)
{
    const struct output_args *output = &args->output;
    int code = output_check_input("analyze", output, args->recording.words[0], io);

    for (size_t i = 0; i < args->regions.count && code == CMD_DONE; i++)
        code = output_check_input("analyze", output, args->regions.words[i], io);
    return code == CMD_DONE ? output_check("analyze", output, io) : code;
}

/* gpu_tracker's layouts have no place for them. */
static void print_remarks(const struct wm_report *report, const struct cmd_streams *io)
{
    const char *remark;

    for (size_t i = 0;
         (remark = wm_report_text(report, WM_REPORT_FILE_NOTES, i, NULL)) != NULL; i++)
        fprintf(io->chat, "wattmeter analyze: %s\n", remark);
}

static int print(const struct analyze_args *args, enum wm_format format,
                 const struct wm_report *report, const struct cmd_streams *io)
{
    bool as_gpu_tracker = format != WM_FORMAT_TEXT && format != WM_FORMAT_JSON;
    const struct wm_report_style style = { .blocks_only = true };
    const struct output_report printed = { report, format, &style };

    if (as_gpu_tracker)
        print_remarks(report, io);
    int code = output_print("analyze", &args->output, output_report_print, &printed, io);
    if (code == CMD_DONE && output_adds_line_end(&args->output, format))
        fputc('\n', io->out);
    return code;
}

static int run_analyze(const void *opaque, const struct cmd_streams *io)
{
    const struct analyze_args *args = opaque;
    const struct wm_analysis_input input = {
        .tracking = args->recording.words[0],
        .run = output_run(&args->run),
        .sub_tracking = (const char *const *)args->regions.words,
        .sub_tracking_count = args->regions.count,
    };
    struct wm_report *report;
    struct wm_error err;
    enum wm_format format;

    int code =
        output_find_format("analyze", &args->output, args->format, FORMATS, io, &format);
    if (code == CMD_DONE)
        code = output_check_twice("analyze", &args->regions, io);
    if (code == CMD_DONE)
        code = check_output(args, io);
    if (code != CMD_DONE)
        return code;

    if (wm_report_from_files(&input, &report, &err) < 0)
        return output_failure("analyze", &err, io);
    code = print(args, format, report, io);
    wm_report_free(report);
    return code;
}

const struct cmd cmd_analyze = {
    .name = "analyze",
    .summary = "Show statistics of a session and of its blocks of code.",
    .details = "Shows statistics of all samples of RECORDING, and of the samples inside "
               "the calls of each block. RECORDING is a recording of wattmeter or a "
               "tracking file of gpu_tracker. The calls are the regions of the recording. "
               "With --regions they are the calls in sub-tracking files, which are read as "
               "one.\n"
               "\n"
               "gpu-tracker and gpu-tracker-json are the layouts of gpu_tracker. The "
               "standard deviation is the sample's (n - 1) here, as in its documentation.",
    .example = "wattmeter analyze tracking.csv --regions sub-tracking.csv",
    .operands = "RECORDING",
    .operands_slot = ANALYZE(recording),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct analyze_args),
    .run = run_analyze,
};
