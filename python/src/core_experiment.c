/* SPDX-License-Identifier: Apache-2.0 */
/* core_experiment.c - _core.Experiment and _core.Series, runs that are kept under one
 * name and what they come to, as experiment.h has it. */
#include "core.h"

#include <stdlib.h>

static PyTypeObject *experiment_type, *series_type, *total_type;

static PyStructSequence_Field total_fields[] = {
    { "value", "in `unit`" },
    { "unit", "\"J\", \"W\", \"accuracy s\"" },
    { "seconds", "for which it is known in the range, without pauses" },
    { "uncertainty",
      "the truth lies within this ratio with 95 % confidence; None: that is\n"
      "not known" },
    { "is_short", "fewer than three updates of its sensor: a rough figure" },
    { "missing_s", "seconds in which a device of it was unknown" },
    { "unfinished", "how many runs end without a result" },
    { NULL, NULL },
};

static PyStructSequence_Desc total_desc = {
    .name = "wattmeter._core.SeriesFigure",
    .doc = "What a series comes to.",
    .fields = total_fields,
    .n_in_sequence = 7,
};

static void free_experiment(void *handle)
{
    wm_experiment_close(handle);
}

static void free_series(void *handle)
{
    wm_series_free(handle);
}

static PyObject *experiment_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "target", "name", NULL };
    struct wm_experiment *experiment;
    struct wm_error err = { 0 };
    const char *name;
    PyObject *target;
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&s:Experiment", names,
                                     PyUnicode_FSConverter, &target, &name))
        return NULL;
    const char *text = PyBytes_AsString(target);
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_experiment_open(text, name, &experiment, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(target);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "experiment", experiment, free_experiment, 0);
}

struct printing {
    const struct wm_experiment *experiment;
    enum wm_format format;
    struct wm_report_style report;
    struct wm_experiment_style style;
};

static int print_experiment(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;

    return wm_experiment_print(printing->experiment, printing->format, &printing->style,
                               out, err);
}

PyDoc_STRVAR(
    print_doc,
    "print($self, format='text', idle_watts=0.0, per=None, *, " CORE_STYLE_SIGNATURE
    ")\n--\n\n"
    "The runs and what they cost, each and together, as \"text\" or \"json\".\n\n"
    "idle_watts: what all that the energy covers takes idle; 0: as measured.\n"
    "per: a metric: energy from each of its values to the next.");

static PyObject *experiment_print(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "format", "idle_watts", "per", CORE_STYLE_KEYWORDS, NULL };
    struct printing printing = { 0 };
    struct wm_experiment_style *style = &printing.style;
    const char *word = "text";
    int terminal = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sdz$" CORE_STYLE_FORMAT ":print",
                                     names, &word, &style->idle_watts, &style->per,
                                     CORE_STYLE_TARGETS(printing.report, terminal)))
        return NULL;
    int format = core_format(word);
    printing.experiment = format < 0 ? NULL : core_object_enter(self);
    if (!printing.experiment)
        return NULL;
    printing.format = (enum wm_format)format;
    printing.report.for_terminal = terminal;
    style->report = &printing.report;
    PyObject *result = core_print(print_experiment, &printing);
    core_object_leave(self);
    return result;
}

PyDoc_STRVAR(time_doc,
             "time($self, text, /)\n--\n\n"
             "The moment that a person means, in nanoseconds since 1970: seconds\n"
             "since the start of the first run (\"12.5\"), or RFC 3339.");

static PyObject *experiment_time(PyObject *self, PyObject *args)
{
    const char *text;
    int64_t ns;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTuple(args, "s:time", &text))
        return NULL;
    struct wm_experiment *experiment = core_object_enter(self);
    if (!experiment)
        return NULL;
    int status = wm_experiment_time(experiment, text, &ns, &err);
    core_object_leave(self);
    return core_check(status, &err) < 0 ? NULL : PyLong_FromLongLong(ns);
}

PyDoc_STRVAR(
    series_doc,
    "series($self, metric, /)\n--\n\n"
    "One metric over all runs, as a Series: \"energy\", \"cpu_energy\", \"gpu_power\",\n"
    "a column of the recording, or what the measured program wrote itself.\n\n"
    "Raises Error, \"ENOENT\" with a list of the metrics, or \"ENODEV\" with the\n"
    "reason why it has no value.");

static PyObject *experiment_series(PyObject *self, PyObject *args)
{
    const char *metric;
    struct wm_series *series;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTuple(args, "s:series", &metric))
        return NULL;
    struct wm_experiment *experiment = core_object_enter(self);
    if (!experiment)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_experiment_series(experiment, metric, &series, &err);
    Py_END_ALLOW_THREADS
    core_object_leave(self);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(series_type, "series", series, free_series, CORE_MAY_FORK);
}

static PyMethodDef experiment_methods[] = {
    { "print", CORE_KEYWORDS(experiment_print), print_doc },
    { "time", experiment_time, METH_VARARGS, time_doc },
    { "series", experiment_series, METH_VARARGS, series_doc },
    { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(
    experiment_doc,
    "Experiment(target, name)\n--\n\n"
    "All runs called `name` at `target`: an SQLite recording, a folder that has one\n"
    "of AIPowerMeter's for each name, or postgresql://...; \"-\" are those without\n"
    "a name. Raises Error, \"ENOENT\" with a list of the names there are.");

static PyType_Slot experiment_slots[] = {
    { Py_tp_new, experiment_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, experiment_methods },
    { Py_tp_doc, (void *)experiment_doc },
    { 0, NULL },
};

static PyType_Spec experiment_spec = {
    .name = "wattmeter._core.Experiment",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = experiment_slots,
};

static const char *const figure_kinds[] = { "total", "average", "max", NULL };

static PyObject *none(void)
{
    Py_RETURN_NONE;
}

static PyObject *total_new(const struct wm_figure *figure)
{
    struct core_struct fill = core_struct_begin(total_type);

    core_struct_add(&fill, PyFloat_FromDouble(figure->value));
    core_struct_add(&fill, core_text(figure->unit));
    core_struct_add(&fill, PyFloat_FromDouble(figure->seconds));
    core_struct_add(&fill, figure->has_uncertainty ? PyFloat_FromDouble(figure->uncertainty)
                                                   : none());
    core_struct_add(&fill, PyBool_FromLong(figure->is_short));
    core_struct_add(&fill, PyFloat_FromDouble(figure->missing_s));
    core_struct_add(&fill, PyLong_FromSize_t(figure->unfinished));
    return core_struct_end(&fill);
}

PyDoc_STRVAR(
    figure_doc,
    "figure($self, kind='total', from_ns=0, to_ns=0)\n--\n\n"
    "What the series comes to in a range of nanoseconds since 1970 (0: from the\n"
    "start, to the end), as a SeriesFigure. kind: \"total\" (how much a counter grew,\n"
    "or the area under a curve), \"average\", or \"max\".\n\n"
    "Raises Error with the status \"ENODEV\" where the range has no value.");

static PyObject *series_figure(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "kind", "from_ns", "to_ns", NULL };
    const char *word = "total";
    long long from = 0, to = 0;
    struct wm_figure figure;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sLL:figure", names, &word, &from,
                                     &to))
        return NULL;
    int kind = core_choice(word, figure_kinds, "figure");
    if (kind < 0)
        return NULL;
    const struct wm_range range = { .from_ns = from, .to_ns = to };
    int status = wm_series_figure(core_slot_of(self)->handle, (enum wm_figure_kind)kind,
                                  &range, &figure, &err);
    return core_check(status, &err) < 0 ? NULL : total_new(&figure);
}

static PyObject *segment_new(struct wm_series_segment segment)
{
    return Py_BuildValue(
        "(NNn)", core_view(segment.unix_ns, segment.count * sizeof(*segment.unix_ns), "q"),
        core_view(segment.values, segment.count * sizeof(*segment.values), "d"),
        (Py_ssize_t)segment.first_known);
}

static PyObject *series_segments(PyObject *self, PyObject *unused)
{
    const struct wm_series *series = core_slot_of(self)->handle;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && i < wm_series_segment_count(series); i++)
        if (!core_append(list, segment_new(wm_series_segment(series, i))))
            Py_CLEAR(list);
    return list;
}

/* What the functions below print: a figure of the first series, or the values of all. */
struct series_printing {
    const struct wm_series **series;
    size_t count;
    enum wm_figure_kind kind;
    struct wm_range range;
    enum wm_format format;
};

static int print_figure(void *context, FILE *out, struct wm_error *err)
{
    const struct series_printing *printing = context;

    return wm_series_print_figure(printing->series[0], printing->kind, &printing->range,
                                  printing->format, out, err);
}

static int print_series(void *context, FILE *out, struct wm_error *err)
{
    const struct series_printing *printing = context;

    return wm_series_print(printing->series, printing->count, &printing->range,
                           printing->format, out, err);
}

PyDoc_STRVAR(print_figure_doc,
             "print_figure($self, kind='total', from_ns=0, to_ns=0, format='text')\n--\n\n"
             "The same as a string, \"text\" or \"json\".");

static PyObject *series_print_figure(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "kind", "from_ns", "to_ns", "format", NULL };
    const char *word = "total", *format_word = "text";
    const struct wm_series *series = core_slot_of(self)->handle;
    long long from = 0, to = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sLLs:print_figure", names, &word,
                                     &from, &to, &format_word))
        return NULL;
    int kind = core_choice(word, figure_kinds, "figure");
    int format = kind < 0 ? -1 : core_format(format_word);
    if (format < 0)
        return NULL;
    struct series_printing printing = { .series = &series,
                                        .kind = (enum wm_figure_kind)kind,
                                        .range = { .from_ns = from, .to_ns = to },
                                        .format = (enum wm_format)format };
    return core_print(print_figure, &printing);
}

static PyMethodDef series_methods[] = {
    { "figure", CORE_KEYWORDS(series_figure), figure_doc },
    { "segments", series_segments, METH_NOARGS,
      "segments($self, /)\n--\n\nIts parts without pauses, each as (times, values,\n"
      "first_known): memoryviews of int64, nanoseconds since 1970, and of float64, and "
      "the\n"
      "place of the first value that is known." },
    { "print_figure", CORE_KEYWORDS(series_print_figure), print_figure_doc },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot series_slots[] = {
    { Py_tp_new, core_object_no_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, series_methods },
    { Py_tp_doc, "A metric over all runs of an experiment; from Experiment.series()." },
    { 0, NULL },
};

static PyType_Spec series_spec = {
    .name = "wattmeter._core.Series",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = series_slots,
};

static bool collect(PyObject *list, struct series_printing *printing)
{
    for (Py_ssize_t i = 0; i < (Py_ssize_t)printing->count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (Py_TYPE(item) != series_type) {
            PyErr_SetString(PyExc_TypeError, "these must be Series");
            return false;
        }
        printing->series[i] = core_slot_of(item)->handle;
    }
    return true;
}

static PyObject *print_many(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "series", "from_ns", "to_ns", "format", NULL };
    const char *word = "text";
    long long from = 0, to = 0;
    PyObject *sequence, *result = NULL;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|LLs:print_series", names, &sequence,
                                     &from, &to, &word))
        return NULL;
    int format = core_format(word);
    PyObject *list = format < 0 ? NULL : PySequence_List(sequence);
    if (!list)
        return NULL;
    struct series_printing printing = { .count = (size_t)PyList_Size(list),
                                        .range = { .from_ns = from, .to_ns = to },
                                        .format = (enum wm_format)format };
    printing.series = calloc(printing.count + 1, sizeof(struct wm_series *));
    if (!printing.series)
        PyErr_NoMemory();
    else if (collect(list, &printing))
        result = core_print(print_series, &printing);
    free(printing.series);
    Py_DECREF(list);
    return result;
}

struct listing {
    const char *target;
    enum wm_format format;
};

static int print_experiments(void *context, FILE *out, struct wm_error *err)
{
    const struct listing *listing = context;

    return wm_experiment_print_list(listing->target, listing->format, out, err);
}

static PyObject *list_experiments(PyObject *module, PyObject *args)
{
    const char *word = "text";
    PyObject *target, *result = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&|s:print_experiments", PyUnicode_FSConverter, &target,
                          &word))
        return NULL;
    int format = core_format(word);
    struct listing listing = { PyBytes_AsString(target), (enum wm_format)format };
    if (format >= 0) {
        core_share_sqlite();
        result = core_print(print_experiments, &listing);
    }
    Py_DECREF(target);
    return result;
}

static PyMethodDef functions[] = {
    { "print_series", CORE_KEYWORDS(print_many),
      "print_series(series, from_ns=0, to_ns=0, format='text')\n--\n\nThe values of "
      "several\n"
      "series on all their times together, as CSV (\"text\") or \"json\"." },
    { "print_experiments", list_experiments, METH_VARARGS,
      "print_experiments(target, format='text', /)\n--\n\nWhich experiments there are, "
      "the\n"
      "oldest first, as \"text\" or \"json\"." },
    { NULL, NULL, 0, NULL },
};

int core_add_experiment(PyObject *module)
{
    total_type = core_add_struct(module, &total_desc);
    experiment_type = core_add_type(module, &experiment_spec);
    series_type = core_add_type(module, &series_spec);
    return total_type && experiment_type && series_type
               ? PyModule_AddFunctions(module, functions)
               : -1;
}
