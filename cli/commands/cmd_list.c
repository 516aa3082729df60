/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_list.c - `wattmeter list`: the runs in a recording. */
#include "output.h"

struct list_args {
    struct output_args output;
    struct cmd_list recording;
};

static const struct cmd_option *const options[] = { output_options, NULL };

static int print(const void *found, FILE *out, struct wm_error *err)
{
    const struct list_args *args = found;

    return wm_report_print_list(args->recording.words[0],
                                args->output.json ? WM_FORMAT_JSON : WM_FORMAT_TEXT, out,
                                err);
}

static int run_list(const void *opaque, const struct cmd_streams *io)
{
    const struct list_args *args = opaque;

    int code = output_check_input("list", &args->output, args->recording.words[0], io);
    if (code == CMD_DONE)
        code = output_check("list", &args->output, io);
    return code == CMD_DONE ? output_print("list", &args->output, print, args, io) : code;
}

const struct cmd cmd_list = {
    .name = "list",
    .summary = "List the runs in a recording.",
    .details = "A line for each run has its number (N of report --run N), its start, "
               "duration and CPU time, and its exit status or signal. It also has the "
               "number of GPUs, and the command. A run without an end is running, if this "
               "machine still records it, or unfinished.",
    .example = "wattmeter list runs.sqlite",
    .operands = "RECORDING",
    .operands_slot = offsetof(struct list_args, recording),
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .args_size = sizeof(struct list_args),
    .run = run_list,
};
