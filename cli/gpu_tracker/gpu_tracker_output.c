/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_output.c - --output and --format. */
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"

static int find_format(const char *format, const struct cmd_streams *io,
                       struct gpu_tracker_output *output)
{
    output->pickle = format && strcmp(format, "pickle") == 0;
    output->json = output->pickle || (format && strcmp(format, "json") == 0);
    if (output->json || !format || strcmp(format, "text") == 0)
        return CMD_DONE;
    return gpu_tracker_error(
        io, "\"%s\" is not a valid format. Valid values are \"json\" or \"text\".", format);
}

int gpu_tracker_find_output(const struct gpu_tracker_args *args,
                            const struct cmd_streams *io, const char *const *inputs,
                            size_t input_count, struct gpu_tracker_output *ret_output)
{
    const char *path = args->output;
    char problem[OUTPUT_PROBLEM_SIZE];

    for (size_t i = 0; path && i < input_count; i++) {
        if (inputs[i] && output_is_same_file(path, inputs[i]))
            return gpu_tracker_error(io, "The output cannot be written over %s.",
                                     inputs[i]);
    }
    if (path && !output_is_writable(path, true, problem))
        return gpu_tracker_error(io, "%s", problem);
    ret_output->path = path;
    return find_format(args->format, io, ret_output);
}

int gpu_tracker_print(const struct gpu_tracker_output *output, const struct cmd_streams *io,
                      output_printer *print, const void *found)
{
    const struct output_args args = { .path = output->path, .overwrite = true };
    FILE *screen = io->out;
    int code = CMD_DONE;
    struct wm_error err;

    if (output->path) {
        if (output_to_file(&args, print, found, &err) == WM_OK)
            return CMD_DONE;
        code = gpu_tracker_error(io, "%s; these are the results:", err.text);
        screen = io->chat;
    }
    if (print(found, screen, &err) < 0)
        return gpu_tracker_error(io, "%s", err.text);
    fputc('\n', screen);
    return code;
}
