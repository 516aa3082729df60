/* SPDX-License-Identifier: Apache-2.0 */
/* core_experiment.c - _core.Experiment and _core.Series, runs that are kept under one
 * name and what they come to, as experiment.h has it. */
#include "core.h"

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

static int print_experiment(void *experiment, FILE *out, struct wm_error *err)
{
    const struct wm_experiment_style style = { 0 };

    return wm_experiment_print(experiment, WM_FORMAT_JSON, &style, out, err);
}

static PyObject *experiment_json(PyObject *self, PyObject *unused)
{
    struct wm_experiment *experiment = core_object_enter(self);

    (void)unused;
    if (!experiment)
        return NULL;
    PyObject *result = core_print(print_experiment, experiment);
    core_object_leave(self);
    return result;
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
    { "json", experiment_json, METH_NOARGS,
      "json($self, /)\n--\n\nThe runs and what they cost, each and together." },
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

static PyMethodDef series_methods[] = {
    { "figure", CORE_KEYWORDS(series_figure), figure_doc },
    { "segments", series_segments, METH_NOARGS,
      "segments($self, /)\n--\n\nIts parts without pauses, each as (times, values,\n"
      "first_known): memoryviews of int64, nanoseconds since 1970, and of float64, and "
      "the\n"
      "place of the first value that is known." },
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

int core_add_experiment(PyObject *module)
{
    total_type = core_add_struct(module, &total_desc);
    experiment_type = core_add_type(module, &experiment_spec);
    series_type = core_add_type(module, &series_spec);
    return total_type && experiment_type && series_type ? 0 : -1;
}
