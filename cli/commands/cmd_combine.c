/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_combine.c - `wattmeter combine`: several sub-tracking files in one. */
#include "interrupt.h"
#include "output.h"
#include "wattmeter/analysis.h"

struct combine_args {
    const char *path;
    struct cmd_list files;
};

static const struct cmd_option combine_options[] = {
    { .letter = 'o',
      .name = "output",
      .slot = offsetof(struct combine_args, path),
      .placeholder = "FILE",
      .help = "the new file, .csv or .sqlite, as the others are" },
    { 0 },
};
static const struct cmd_option *const options[] = { combine_options, NULL };

static void tell(void *opaque, const char *remark)
{
    const struct cmd_streams *io = opaque;

    fprintf(io->chat, "wattmeter combine: %s\n", remark);
}

static int run_combine(const void *opaque, const struct cmd_streams *io)
{
    const struct combine_args *args = opaque;
    struct wm_error err;

    if (!args->path)
        return output_misused("combine", io, "--output FILE is missing");
    int status =
        wm_sub_tracking_combine((const char *const *)args->files.words, args->files.count,
                                args->path, tell, (void *)io, interrupt_catch(), &err);
    return interrupt_end(status < 0 ? output_failure("combine", &err, io) : CMD_DONE);
}

const struct cmd cmd_combine = {
    .name = "combine",
    .summary = "Join sub-tracking files into one.",
    .details = "Each process of a program may have written a separate file. The new file "
               "has the rows of all files, unchanged and in the order given. A PATH that "
               "is a folder stands for the sub-tracking files in it; a message names other "
               "files there. `wattmeter analyze` also reads several files as one.",
    .example = "wattmeter combine -o all.csv 4711.csv 4712.csv",
    .operands = "PATH...",
    .operands_slot = offsetof(struct combine_args, files),
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .options = options,
    .args_size = sizeof(struct combine_args),
    .run = run_combine,
};
