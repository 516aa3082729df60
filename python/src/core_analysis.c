/* SPDX-License-Identifier: Apache-2.0 */
/* core_analysis.c - the functions about files of several runs or blocks: what was measured
 * inside the blocks, what differs between sessions, which runs there are. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *comparison_type;

struct blocks {
    const struct wm_report *report;
    enum wm_format format;
};

static int print_blocks(void *context, FILE *out, struct wm_error *err)
{
    static const struct wm_report_style style = { .blocks_only = true };
    const struct blocks *blocks = context;

    return wm_report_print(blocks->report, blocks->format, &style, out, err);
}

static PyObject *analyze_files(const struct wm_analysis_input *input, enum wm_format format)
{
    struct blocks blocks = { .format = format };
    struct wm_report *report;
    struct wm_report_run run;
    struct wm_error err = { 0 };
    int status;

    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_report_from_files(input, &report, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    blocks.report = report;
    wm_report_run(report, &run);
    PyObject *text = core_print(print_blocks, &blocks);
    PyObject *result = text ? Py_BuildValue("(NN(KK))", text,
                                            core_report_texts(report, WM_REPORT_FILE_NOTES),
                                            (unsigned long long)run.stray_stops,
                                            (unsigned long long)run.unfinished_starts)
                            : NULL;
    wm_report_free(report);
    return result;
}

static PyObject *analyze(PyObject *module, PyObject *args)
{
    struct wm_analysis_input input = { .run = WM_LAST_RUN };
    struct core_texts files = { 0 };
    PyObject *tracking, *sequence, *result = NULL;
    const char *word;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&Os:analyze", PyUnicode_FSConverter, &tracking, &sequence,
                          &word))
        return NULL;
    int format = core_format(word);
    if (format >= 0 && core_texts_init(&files, sequence, "the sub-tracking files") == 0) {
        input.tracking = PyBytes_AsString(tracking);
        input.sub_tracking = files.texts;
        input.sub_tracking_count = files.count;
        result = analyze_files(&input, (enum wm_format)format);
        core_texts_release(&files);
    }
    Py_DECREF(tracking);
    return result;
}

static PyStructSequence_Field comparison_fields[] = {
    { "text", "the comparison in the format that was asked for" },
    { "json", "as JSON, if that is text; else \"\"" },
    { "worst", "the largest increase that is no noise, as a ratio; 0: there is none" },
    { "worst_figure", "which figure that is; None" },
    { "untested", "the first session of which nothing could be tested; None: there is "
                  "none" },
    { "remarks", "what a reader has to know" },
    { NULL, NULL },
};

static PyStructSequence_Desc comparison_desc = {
    .name = "wattmeter._core.Comparison",
    .doc = "What differs between sessions: overall, and block by block.",
    .fields = comparison_fields,
    .n_in_sequence = 6,
};

struct comparing {
    struct core_texts names, paths, watched;
    struct wm_comparison_options options;
};

/* Without the GIL. */
static int add_all(const struct comparing *comparing, struct wm_comparison *comparison,
                   struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; status >= 0 && i < comparing->names.count; i++) {
        const struct wm_analysis_input input = { .tracking = comparing->paths.texts[i],
                                                 .run = WM_ALL_RUNS };
        status = wm_comparison_add(comparison, comparing->names.texts[i], &input, err);
    }
    return status;
}

static int print_comparison(void *comparison, FILE *out, struct wm_error *err)
{
    return wm_comparison_print(comparison, 0, out, err);
}

static PyObject *printed(struct wm_comparison *comparison,
                         const struct wm_comparison_options *options,
                         struct wm_comparison_result *ret_result)
{
    struct wm_error err = { 0 };
    int status;

    Py_BEGIN_ALLOW_THREADS
        status = wm_comparison_run(comparison, options, ret_result, &err);
    Py_END_ALLOW_THREADS
    return core_check(status, &err) < 0 ? NULL : core_print(print_comparison, comparison);
}

static PyObject *remarks_of(const struct wm_comparison *comparison)
{
    PyObject *list = PyList_New(0);
    const char *remark;

    for (size_t i = 0; list && (remark = wm_comparison_remark(comparison, i)) != NULL; i++)
        if (!core_append(list, core_text(remark)))
            Py_CLEAR(list);
    return list;
}

static PyObject *result_of(struct wm_comparison *comparison,
                           const struct comparing *comparing)
{
    struct core_struct fill = core_struct_begin(comparison_type);
    struct wm_comparison_options options = comparing->options;
    struct wm_comparison_result result;
    PyObject *text = printed(comparison, &options, &result);
    PyObject *json = NULL;

    if (text && options.format == WM_FORMAT_TEXT) {
        options.format = WM_FORMAT_JSON;
        json = printed(comparison, &options, &result);
    } else if (text)
        json = core_text("");
    core_struct_add(&fill, text);
    core_struct_add(&fill, json);
    if (!fill.object)
        return NULL;
    core_struct_add(&fill, PyFloat_FromDouble(result.worst));
    core_struct_add(&fill, core_text(result.worst_figure));
    core_struct_add(&fill, core_text(result.untested));
    core_struct_add(&fill, remarks_of(comparison));
    return core_struct_end(&fill);
}

static PyObject *compare_all(const struct comparing *comparing)
{
    struct wm_comparison *comparison;
    struct wm_error err = { 0 };
    PyObject *result = NULL;
    int status;

    if (core_check(wm_comparison_new(&comparison, &err), &err) < 0)
        return NULL;
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = add_all(comparing, comparison, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) == 0)
        result = result_of(comparison, comparing);
    wm_comparison_free(comparison);
    return result;
}

PyDoc_STRVAR(
    compare_doc,
    "compare(names, paths, statistic, format, threshold, watched, /)\n--\n\n"
    "A Comparison of sessions, each a name and a recording, a tracking file, or\n"
    "gpu_tracker's JSON of an analysis; the first is what the others are compared with.\n\n"
    "statistic: \"min\", \"max\", \"mean\", \"std\" or \"total\". format: \"text\", "
    "\"json\",\n"
    "or gpu_tracker's \"gpu-tracker-api\", \"gpu-tracker-json\" and \"gpu-tracker\",\n"
    "which match blocks by its rules. A difference below `threshold` counts as none.\n"
    "watched: the metrics in which alone the worst is searched for; none: all.\n\n"
    "Raises ValueError for wrong words, a name that is there twice, and blocks that do\n"
    "not match.");

static PyObject *compare(PyObject *module, PyObject *args)
{
    struct comparing comparing = { 0 };
    struct wm_comparison_options *options = &comparing.options;
    PyObject *names, *paths, *watched, *result = NULL;
    const char *word;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOssdO:compare", &names, &paths, &options->statistic,
                          &word, &options->threshold, &watched))
        return NULL;
    if (!(options->threshold >= 0)) {
        PyErr_SetString(PyExc_ValueError, "a threshold is a ratio from 0 to 1");
        return NULL;
    }
    /* The library has a default for 0, and a negative ratio for none. */
    if (options->threshold == 0)
        options->threshold = -1;
    int format = core_format(word);
    options->format = (enum wm_format)format;
    if (format >= 0 && core_texts_init(&comparing.names, names, "names") == 0 &&
        core_texts_init(&comparing.paths, paths, "paths") == 0 &&
        core_texts_init(&comparing.watched, watched, "metrics to watch") == 0) {
        options->metrics = comparing.watched.texts;
        options->metric_count = comparing.watched.count;
        if (comparing.names.count == comparing.paths.count)
            result = compare_all(&comparing);
        else
            PyErr_SetString(PyExc_ValueError, "each session has a name and a path");
    }
    core_texts_release(&comparing.names);
    core_texts_release(&comparing.paths);
    core_texts_release(&comparing.watched);
    return result;
}

/* Remarks of a function that runs without the GIL, each with its NUL. */
static void keep_remark(void *opaque, const char *remark)
{
    fwrite(remark, 1, strlen(remark) + 1, opaque);
}

static PyObject *split_remarks(const char *text, size_t size)
{
    PyObject *list = PyList_New(0);

    for (size_t at = 0; list && at < size; at += strlen(text + at) + 1)
        if (!core_append(list, core_text(text + at)))
            Py_CLEAR(list);
    return list;
}

static PyObject *combine(PyObject *module, PyObject *args)
{
    PyObject *sequence, *target, *result = NULL;
    struct core_texts paths;
    struct wm_error err = { 0 };
    char *text = NULL;
    size_t size = 0;
    int status = WM_ENOMEM;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&:combine_sub_tracking", &sequence,
                          PyUnicode_FSConverter, &target))
        return NULL;
    if (core_texts_init(&paths, sequence, "the sub-tracking files") < 0) {
        Py_DECREF(target);
        return NULL;
    }
    FILE *remarks = open_memstream(&text, &size);
    if (remarks) {
        const char *path = PyBytes_AsString(target);
        core_share_sqlite();
        Py_BEGIN_ALLOW_THREADS
            status = wm_sub_tracking_combine(paths.texts, paths.count, path, keep_remark,
                                             remarks, NULL, &err);
            fclose(remarks);
        Py_END_ALLOW_THREADS
    }
    if (core_check(status, &err) == 0)
        result = split_remarks(text, size);
    free(text);
    core_texts_release(&paths);
    Py_DECREF(target);
    return result;
}

struct listing {
    const char *path;
    enum wm_format format;
};

static int print_list(void *context, FILE *out, struct wm_error *err)
{
    const struct listing *listing = context;

    return wm_report_print_list(listing->path, listing->format, out, err);
}

static PyObject *list_runs(PyObject *module, PyObject *args)
{
    PyObject *path, *result = NULL;
    const char *word = "text";

    (void)module;
    if (!PyArg_ParseTuple(args, "O&|s:print_list", PyUnicode_FSConverter, &path, &word))
        return NULL;
    int format = core_format(word);
    struct listing listing = { PyBytes_AsString(path), (enum wm_format)format };
    if (format >= 0) {
        core_share_sqlite();
        result = core_print(print_list, &listing);
    }
    Py_DECREF(path);
    return result;
}

static PyMethodDef functions[] = {
    { "analyze", analyze, METH_VARARGS,
      "analyze(tracking, sub_tracking, format, /)\n--\n\n"
      "A session's samples, all of them and those inside the calls of each block of code:\n"
      "(a text in that format, remarks, (stops that nothing had started, starts that "
      "nothing\n"
      "stopped)). tracking: a tracking file of gpu_tracker's, or a recording, whose blocks "
      "are\n"
      "the calls in the sub-tracking files, or, without such files, its regions." },
    { "compare", compare, METH_VARARGS, compare_doc },
    { "combine_sub_tracking", combine, METH_VARARGS,
      "combine_sub_tracking(paths, target, /)\n--\n\nJoins sub-tracking files of one "
      "format,\n"
      "or those in folders, into the new file `target`; what was left out, as a list." },
    { "print_list", list_runs, METH_VARARGS,
      "print_list(path, format='text', /)\n--\n\nThe runs of a recording: a line for "
      "each,\n"
      "or \"json\"." },
    { NULL, NULL, 0, NULL },
};

int core_add_analysis(PyObject *module)
{
    comparison_type = core_add_struct(module, &comparison_desc);
    return comparison_type ? PyModule_AddFunctions(module, functions) : -1;
}
