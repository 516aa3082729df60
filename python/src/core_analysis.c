/* SPDX-License-Identifier: Apache-2.0 */
/* core_analysis.c - _core.Analysis and _core.Comparison, what was measured inside blocks
 * of code and what differs between sessions; and the functions that print tables of
 * recordings. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *analysis_type, *comparison_type;

/* What a session is read from. The texts live as long as `held`. */
struct session {
    struct wm_analysis_input input;
    PyObject *tracking;
    struct core_texts sub_tracking;
};

static void session_release(struct session *session)
{
    Py_CLEAR(session->tracking);
    core_texts_release(&session->sub_tracking);
}

/* `session->tracking` is there; the rest is of these. */
static int session_init(struct session *session, PyObject *sub_tracking, PyObject *run)
{
    session->input.run = core_run_number(run);
    if (PyErr_Occurred() ||
        (sub_tracking != Py_None && core_texts_init(&session->sub_tracking, sub_tracking,
                                                    "the sub-tracking files") < 0)) {
        session_release(session);
        return -1;
    }
    core_share_sqlite();
    session->input.tracking = PyBytes_AsString(session->tracking);
    session->input.sub_tracking = session->sub_tracking.texts;
    session->input.sub_tracking_count = session->sub_tracking.count;
    return 0;
}

static void free_analysis(void *handle)
{
    wm_report_free(handle);
}

static PyObject *analysis_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "tracking", "sub_tracking", "run", NULL };
    struct session session = { 0 };
    PyObject *sub_tracking = Py_None, *run = Py_None;
    struct wm_report *report;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|OO:Analysis", names,
                                     PyUnicode_FSConverter, &session.tracking,
                                     &sub_tracking, &run) ||
        session_init(&session, sub_tracking, run) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_report_from_files(&session.input, &report, &err);
    Py_END_ALLOW_THREADS
    session_release(&session);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "analysis", report, free_analysis, CORE_MAY_FORK);
}

struct analysis_printing {
    const struct wm_report *report;
    enum wm_format format;
};

static int print_analysis(void *context, FILE *out, struct wm_error *err)
{
    static const struct wm_report_style style = { .blocks_only = true };
    const struct analysis_printing *printing = context;

    return wm_report_print(printing->report, printing->format, &style, out, err);
}

static PyObject *analysis_print(PyObject *self, PyObject *args)
{
    const char *word = "text";

    if (!PyArg_ParseTuple(args, "|s:print", &word))
        return NULL;
    int format = core_format(word);
    if (format < 0)
        return NULL;
    struct analysis_printing printing = { core_slot_of(self)->handle,
                                          (enum wm_format)format };
    return core_print(print_analysis, &printing);
}

static PyObject *analysis_remarks(PyObject *self, void *unused)
{
    (void)unused;
    return core_report_texts(core_slot_of(self)->handle, WM_REPORT_FILE_NOTES);
}

static PyObject *analysis_unpaired(PyObject *self, void *unused)
{
    struct wm_report_run run;

    (void)unused;
    wm_report_run(core_slot_of(self)->handle, &run);
    return Py_BuildValue("(KK)", (unsigned long long)run.stray_stops,
                         (unsigned long long)run.unfinished_starts);
}

static PyMethodDef analysis_methods[] = {
    { "print", analysis_print, METH_VARARGS,
      "print($self, format='text', /)\n--\n\n\"text\", \"json\", \"gpu-tracker\" or\n"
      "\"gpu-tracker-json\"." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef analysis_members[] = {
    { "remarks", analysis_remarks, NULL, "What a person should know of the files.", NULL },
    { "unpaired", analysis_unpaired, NULL,
      "(stops that nothing had started, starts that nothing stopped).", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    analysis_doc,
    "Analysis(tracking, sub_tracking=None, run=None)\n--\n\n"
    "A session's samples, all of them and those inside the calls of each block of\n"
    "code.\n\n"
    "tracking: a tracking file of gpu_tracker's, or a recording.\n"
    "sub_tracking: a list of sub-tracking files; None: the regions recorded.\n"
    "run: the number of the recording's run, from 0; None: the newest.");

static PyType_Slot analysis_slots[] = {
    { Py_tp_new, analysis_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, analysis_methods }, { Py_tp_getset, analysis_members },
    { Py_tp_doc, (void *)analysis_doc }, { 0, NULL },
};

static PyType_Spec analysis_spec = {
    .name = "wattmeter._core.Analysis",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = analysis_slots,
};

static void free_comparison(void *handle)
{
    wm_comparison_free(handle);
}

static PyObject *comparison_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { NULL };
    struct wm_comparison *comparison;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, keywords, ":Comparison", names) ||
        core_check(wm_comparison_new(&comparison, &err), &err) < 0)
        return NULL;
    return core_object_new(type, "comparison", comparison, free_comparison, CORE_MAY_FORK);
}

PyDoc_STRVAR(add_doc,
             "add($self, name, path, /)\n--\n\n"
             "Adds a session: a recording, a tracking file, or gpu_tracker's JSON of an\n"
             "analysis. The first is what the others are compared with.\n\n"
             "Raises ValueError where a session has that name already.");

static PyObject *comparison_add(PyObject *self, PyObject *args)
{
    const char *name;
    struct wm_error err = { 0 };
    PyObject *path;
    int status;

    if (!PyArg_ParseTuple(args, "sO&:add", &name, PyUnicode_FSConverter, &path))
        return NULL;
    struct wm_comparison *comparison = core_object_enter(self);
    PyObject *result = NULL;
    if (comparison) {
        const struct wm_analysis_input input = { .tracking = PyBytes_AsString(path),
                                                 .run = WM_ALL_RUNS };
        core_share_sqlite();
        Py_BEGIN_ALLOW_THREADS
            status = wm_comparison_add(comparison, name, &input, &err);
        Py_END_ALLOW_THREADS
        result = core_object_return(self, status, &err);
    }
    Py_DECREF(path);
    return result;
}

PyDoc_STRVAR(add_session_doc,
             "add_session($self, name, tracking, sub_tracking=None, run=None)\n--\n\n"
             "The same, of what Analysis is made of; run None: all runs are repeats.");

static PyObject *comparison_add_session(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "name", "tracking", "sub_tracking", "run", NULL };
    struct session session = { 0 };
    PyObject *sub_tracking = Py_None, *run = Py_None, *result = NULL;
    const char *name;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO&|OO:add_session", names, &name,
                                     PyUnicode_FSConverter, &session.tracking,
                                     &sub_tracking, &run) ||
        session_init(&session, sub_tracking, run) < 0)
        return NULL;
    if (run == Py_None)
        session.input.run = WM_ALL_RUNS;
    struct wm_comparison *comparison = core_object_enter(self);
    if (comparison) {
        Py_BEGIN_ALLOW_THREADS
            status = wm_comparison_add(comparison, name, &session.input, &err);
        Py_END_ALLOW_THREADS
        result = core_object_return(self, status, &err);
    }
    session_release(&session);
    return result;
}

PyDoc_STRVAR(
    run_doc,
    "run($self, statistic='mean', format='text', metrics=(), threshold=0.01)\n--\n\n"
    "Compares, by \"min\", \"max\", \"mean\", \"std\" or \"total\". The formats are\n"
    "\"text\", \"json\", and gpu_tracker's \"gpu-tracker\", \"gpu-tracker-api\" and\n"
    "\"gpu-tracker-json\", which match blocks by its rules: ValueError where\n"
    "they do not match. Returns the largest increase that is no noise, as a ratio,\n"
    "which figure that is, or None, and the first session that could not be\n"
    "tested, or None. `metrics`: those that are tested.");

static PyObject *comparison_run(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "statistic", "format", "metrics", "threshold", NULL };
    struct wm_comparison_options options = { .threshold = 0.01 };
    struct wm_comparison_result result;
    struct core_texts metrics = { 0 };
    PyObject *sequence = NULL, *answer = NULL;
    const char *word = "text";
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|ssOd:run", names, &options.statistic,
                                     &word, &sequence, &options.threshold))
        return NULL;
    int format = core_format(word);
    if (format < 0 || (sequence && core_texts_init(&metrics, sequence, "the metrics") < 0))
        return NULL;
    if (!(options.threshold >= 0)) {
        core_texts_release(&metrics);
        PyErr_SetString(PyExc_ValueError, "a threshold is a ratio from 0 to 1");
        return NULL;
    }
    options.threshold = options.threshold > 0 ? options.threshold : -1;
    options.format = (enum wm_format)format;
    options.metrics = metrics.texts;
    options.metric_count = metrics.count;
    struct wm_comparison *comparison = core_object_enter(self);
    if (comparison) {
        Py_BEGIN_ALLOW_THREADS
            status = wm_comparison_run(comparison, &options, &result, &err);
        Py_END_ALLOW_THREADS
        core_object_leave(self);
        if (core_check(status, &err) >= 0)
            answer = Py_BuildValue("(dNN)", result.worst, core_text(result.worst_figure),
                                   core_text(result.untested));
    }
    core_texts_release(&metrics);
    return answer;
}

static int print_comparison(void *context, FILE *out, struct wm_error *err)
{
    return wm_comparison_print(context, 0, out, err);
}

static PyObject *comparison_print(PyObject *self, PyObject *unused)
{
    struct wm_comparison *comparison = core_object_enter(self);

    (void)unused;
    if (!comparison)
        return NULL;
    PyObject *result = core_print(print_comparison, comparison);
    core_object_leave(self);
    return result;
}

static PyObject *comparison_remarks(PyObject *self, void *unused)
{
    PyObject *list = PyList_New(0);
    const char *remark;

    (void)unused;
    for (size_t i = 0;
         list && (remark = wm_comparison_remark(core_slot_of(self)->handle, i)) != NULL;
         i++)
        if (!core_append(list, core_text(remark)))
            Py_CLEAR(list);
    return list;
}

static PyMethodDef comparison_methods[] = {
    { "add", comparison_add, METH_VARARGS, add_doc },
    { "add_session", CORE_KEYWORDS(comparison_add_session), add_session_doc },
    { "run", CORE_KEYWORDS(comparison_run), run_doc },
    { "print", comparison_print, METH_NOARGS,
      "print($self, /)\n--\n\nThe comparison in the format that it was run for." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef comparison_members[] = {
    { "remarks", comparison_remarks, NULL, "What a reader has to know.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot comparison_slots[] = {
    { Py_tp_new, comparison_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, comparison_methods },
    { Py_tp_getset, comparison_members },
    { Py_tp_doc,
      "Comparison()\n--\n\nWhat differs between sessions: overall, and block by\n"
      "block." },
    { 0, NULL },
};

static PyType_Spec comparison_spec = {
    .name = "wattmeter._core.Comparison",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = comparison_slots,
};

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

struct table {
    struct core_texts paths;
    size_t run;
    enum wm_format format;
};

static int print_list(void *context, FILE *out, struct wm_error *err)
{
    const struct table *table = context;

    return wm_report_print_list(table->paths.texts[0], table->format, out, err);
}

static int print_csv(void *context, FILE *out, struct wm_error *err)
{
    const struct table *table = context;

    return wm_report_print_csv(table->paths.texts, table->paths.count, table->run, out,
                               err);
}

static PyObject *list_runs(PyObject *module, PyObject *args)
{
    PyObject *path;
    const char *word = "text";

    (void)module;
    if (!PyArg_ParseTuple(args, "O|s:print_list", &path, &word))
        return NULL;
    int format = core_format(word);
    struct table table = { .format = (enum wm_format)format };
    PyObject *list = format < 0 ? NULL : Py_BuildValue("[O]", path);
    PyObject *result = NULL;
    if (list && core_texts_init(&table.paths, list, "the paths") == 0) {
        core_share_sqlite();
        result = core_print(print_list, &table);
        core_texts_release(&table.paths);
    }
    Py_XDECREF(list);
    return result;
}

/* None: the newest; "all": all of them. */
static size_t table_run(PyObject *run)
{
    PyObject *text = PyUnicode_Check(run) ? PyUnicode_AsUTF8String(run) : NULL;
    bool is_all = text && strcmp(PyBytes_AsString(text), "all") == 0;

    Py_XDECREF(text);
    return is_all ? WM_ALL_RUNS : core_run_number(run);
}

static PyObject *table_of_runs(PyObject *module, PyObject *args)
{
    PyObject *sequence, *run = Py_None;
    struct table table = { 0 };

    (void)module;
    if (!PyArg_ParseTuple(args, "O|O:print_csv", &sequence, &run))
        return NULL;
    table.run = table_run(run);
    if (PyErr_Occurred() || core_texts_init(&table.paths, sequence, "the paths") < 0)
        return NULL;
    core_share_sqlite();
    PyObject *result = core_print(print_csv, &table);
    core_texts_release(&table.paths);
    return result;
}

static PyMethodDef functions[] = {
    { "combine_sub_tracking", combine, METH_VARARGS,
      "combine_sub_tracking(paths, target, /)\n--\n\nJoins sub-tracking files of one "
      "format,\n"
      "or those in folders, into the new file `target`; what was left out, as a list." },
    { "print_list", list_runs, METH_VARARGS,
      "print_list(path, format='text', /)\n--\n\nThe runs of a recording: a line for "
      "each,\n"
      "or \"json\"." },
    { "print_csv", table_of_runs, METH_VARARGS,
      "print_csv(paths, run=None, /)\n--\n\nA table of runs as CSV, in SI base units: of "
      "each\n"
      "recording the newest, that of a number, or \"all\"." },
    { NULL, NULL, 0, NULL },
};

int core_add_analysis(PyObject *module)
{
    analysis_type = core_add_type(module, &analysis_spec);
    comparison_type = core_add_type(module, &comparison_spec);
    return analysis_type && comparison_type ? PyModule_AddFunctions(module, functions) : -1;
}
