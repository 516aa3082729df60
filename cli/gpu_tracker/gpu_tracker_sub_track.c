/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_sub_track.c - `gpu-tracker sub-track`: combine, analyze, compare. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "interrupt.h"
#include "wattmeter/analysis.h"
#include "wattmeter/comparison.h"

static void tell(void *opaque, const char *remark)
{
    gpu_tracker_warn(opaque, "%s", remark);
}

int gpu_tracker_combine(const struct gpu_tracker_args *args, const struct cmd_streams *io)
{
    struct wm_error err;

    if (args->paths.count == 0)
        return gpu_tracker_error(io, "There is nothing to combine: -p is missing.");
    int status = wm_sub_tracking_combine((const char *const *)args->paths.words,
                                         args->paths.count, args->sub_tracking_file, tell,
                                         (void *)io, interrupt_catch(), &err);
    return interrupt_end(status < 0 ? gpu_tracker_error(io, "%s", err.text) : CMD_DONE);
}

/* Each is taken for the other easily. */
static bool are_swapped(struct wm_analysis_input input)
{
    const char *sub_tracking = input.tracking;
    struct wm_report *report;

    input.tracking = input.sub_tracking[0];
    input.sub_tracking = &sub_tracking;
    if (wm_report_from_files(&input, &report, NULL) < 0)
        return false;
    wm_report_free(report);
    return true;
}

/* The original refuses a file with stray stops, and passes over unfinished calls. */
static void warn_of_unpaired(const struct wm_report *report, const char *file,
                             const struct cmd_streams *io)
{
    struct wm_report_run run;

    wm_report_run(report, &run);
    if (run.stray_stops > 0)
        gpu_tracker_warn(io, "%s: left out: stops that nothing had started: %" PRIu64, file,
                         run.stray_stops);
    if (run.unfinished_starts > 0)
        gpu_tracker_warn(io, "%s: left out: calls that never stopped: %" PRIu64, file,
                         run.unfinished_starts);
}

int gpu_tracker_analyze(const struct gpu_tracker_args *args, const struct cmd_streams *io)
{
    static const struct wm_report_style blocks = { .blocks_only = true };
    const char *const files[] = { args->tracking_file, args->sub_tracking_file };
    const struct wm_analysis_input input = {
        .tracking = args->tracking_file,
        .run = WM_LAST_RUN,
        .sub_tracking = &args->sub_tracking_file,
        .sub_tracking_count = 1,
    };
    struct gpu_tracker_output output;
    struct wm_report *report;
    const char *remark;
    struct wm_error err;

    int code = gpu_tracker_find_output(args, io, files, 2, &output);
    if (code != CMD_DONE)
        return code;
    const char *words[] = {
        NULL, NULL, NULL, "analyze", files[0], files[1], output.path ? output.path : "",
        NULL
    };
    if (gpu_tracker_pickle(&output, io, words, &code))
        return code;
    if (wm_report_from_files(&input, &report, &err) < 0) {
        if (are_swapped(input))
            return gpu_tracker_error(io,
                                     "--tf and --stf are swapped: %s is the tracking file, "
                                     "and %s the sub-tracking file",
                                     args->sub_tracking_file, args->tracking_file);
        return gpu_tracker_error(io, "%s", err.text);
    }
    for (size_t i = 0;
         (remark = wm_report_text(report, WM_REPORT_FILE_NOTES, i, NULL)) != NULL; i++)
        gpu_tracker_warn(io, "%s", remark);
    warn_of_unpaired(report, args->sub_tracking_file, io);
    const struct output_report printed = {
        .report = report,
        .format = output.json ? WM_FORMAT_GPU_TRACKER_JSON : WM_FORMAT_GPU_TRACKER,
        .style = &blocks,
    };
    code = gpu_tracker_print(&output, io, output_report_print, &printed);
    wm_report_free(report);
    return code;
}

/* The sessions as an object, paths by their names: those of the file, and those of the
 * command line after them. */
static int add_sessions(json_t *sessions, const struct cmd_list *words,
                        const struct cmd_streams *io)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->words[i], *equals = strchr(word, '=');
        if (!equals || equals == word || !equals[1] || strchr(equals + 1, '='))
            return gpu_tracker_error(io, "-m: %s is not of the form NAME=FILE", word);

        char *name = strndup(word, (size_t)(equals - word));
        bool set =
            name && json_object_set_new(sessions, name, json_string(equals + 1)) == 0;
        free(name);
        if (!set)
            return gpu_tracker_error(io, "-m: %s is not UTF-8, or there is no memory",
                                     word);
    }
    return CMD_DONE;
}

/* What is borrowed from `config` lives as long as that. */
static int take_config(const char *path, json_t *config, json_t *sessions,
                       const char **ret_statistic, const struct cmd_streams *io)
{
    const char *key, *name;
    json_t *value, *file;

    json_object_foreach(config, key, value)
    {
        if (strcmp(key, "statistic") == 0) {
            if (!json_is_string(value) && !json_is_null(value))
                return gpu_tracker_error(io, "%s: statistic is not a text", path);
            *ret_statistic = json_string_value(value);
        } else if (strcmp(key, "file_path_map") == 0) {
            if (!json_is_object(value))
                return gpu_tracker_error(io,
                                         "%s: file_path_map is not an object of names and "
                                         "paths, as in {\"A\": \"results.json\"}",
                                         path);
            json_object_foreach(value, name, file)
            {
                if (!json_is_string(file))
                    return gpu_tracker_error(io, "%s: the path of %s is not a text", path,
                                             name);
            }
            json_object_update(sessions, value);
        } else {
            return gpu_tracker_error(
                io,
                "%s: %s is not expected: there are file_path_map, an object of paths, "
                "and statistic",
                path, key);
        }
    }
    return CMD_DONE;
}

/* It is of the form that it was made for. */
static int print_comparison(const void *comparison, FILE *out, struct wm_error *err)
{
    return wm_comparison_print(comparison, 0, out, err);
}

/* As below, by our package for Python. */
static bool compare_in_python(json_t *sessions, const char *statistic,
                              const struct gpu_tracker_output *output,
                              const struct cmd_streams *io, int *ret_code)
{
    const char *format = output->pickle ? "pickle" : output->json ? "json" : "text";
    const char *const first[] = {
        NULL, NULL, NULL, "compare", statistic, format, output->path ? output->path : ""
    };
    size_t used = sizeof(first) / sizeof(first[0]);
    const char **words = calloc(used + 2 * json_object_size(sessions) + 1, sizeof(*words));
    const char *name;
    json_t *path;

    if (!words)
        return false;
    memcpy(words, first, sizeof(first));
    json_object_foreach(sessions, name, path)
    {
        words[used++] = name;
        words[used++] = json_string_value(path);
    }
    bool is_done = output->pickle ? gpu_tracker_pickle(output, io, words, ret_code)
                                  : gpu_tracker_python(io, words, ret_code);
    free(words);
    return is_done;
}

static int compare(json_t *sessions, const char *statistic,
                   const struct gpu_tracker_output *output, const struct cmd_streams *io)
{
    const struct wm_comparison_options options = {
        .statistic = statistic,
        .format = output->json ? WM_FORMAT_GPU_TRACKER_JSON : WM_FORMAT_GPU_TRACKER,
    };
    struct wm_comparison *comparison;
    const char *name, *remark;
    struct wm_error err;
    json_t *path;
    int code;

    if (output->pickle && compare_in_python(sessions, statistic, output, io, &code))
        return code;
    int status = wm_comparison_new(&comparison, &err);
    if (status < 0)
        return gpu_tracker_error(io, "%s", err.text);
    json_object_foreach(sessions, name, path)
    {
        const struct wm_analysis_input input = { .tracking = json_string_value(path),
                                                 .run = WM_ALL_RUNS };
        if (status == WM_OK)
            status = wm_comparison_add(comparison, name, &input, &err);
    }
    if (status == WM_OK)
        status = wm_comparison_run(comparison, &options, NULL, &err);
    if (status < 0) {
        wm_comparison_free(comparison);
        /* It may be a pickle. */
        if (status == WM_EFORMAT && !output->pickle &&
            compare_in_python(sessions, statistic, output, io, &code))
            return code;
        return gpu_tracker_error(io, "%s", err.text);
    }
    for (size_t i = 0; (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        gpu_tracker_warn(io, "%s", remark);
    code = gpu_tracker_print(output, io, print_comparison, comparison);
    wm_comparison_free(comparison);
    return code;
}

/* The output must be none of the files of the sessions. */
static int find_output(const struct gpu_tracker_args *args, json_t *sessions,
                       const struct cmd_streams *io, struct gpu_tracker_output *ret_output)
{
    const char **files = calloc(json_object_size(sessions) + 1, sizeof(*files));
    size_t count = 0;
    const char *name;
    json_t *path;

    if (!files)
        return gpu_tracker_error(io, "out of memory");
    json_object_foreach(sessions, name, path)
    {
        files[count++] = json_string_value(path);
    }
    int code = gpu_tracker_find_output(args, io, files, count, ret_output);
    free(files);
    return code;
}

int gpu_tracker_compare(const struct gpu_tracker_args *args, const struct cmd_streams *io)
{
    json_t *config = NULL, *sessions = json_object();
    const char *statistic = NULL;
    struct gpu_tracker_output output;
    int code = sessions ? CMD_DONE : gpu_tracker_error(io, "out of memory");

    if (code == CMD_DONE && args->cconfig) {
        config = gpu_tracker_load_config(args->cconfig, io);
        code = config ? take_config(args->cconfig, config, sessions, &statistic, io)
                      : CMD_FAILED;
    }
    if (code == CMD_DONE)
        code = add_sessions(sessions, &args->sessions, io);
    if (code == CMD_DONE && json_object_size(sessions) == 0)
        code = gpu_tracker_error(io,
                                 "A mapping of tracking session name to file path must be "
                                 "provided either through the -m option or a config file.");
    if (args->statistic)
        statistic = args->statistic;
    if (!statistic)
        statistic = "mean";
    if (code == CMD_DONE)
        code = find_output(args, sessions, io, &output);
    if (code == CMD_DONE)
        code = compare(sessions, statistic, &output, io);
    json_decref(sessions);
    json_decref(config);
    return code;
}
