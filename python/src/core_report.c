/* SPDX-License-Identifier: Apache-2.0 */
/* core_report.c - _core.Report and _core.Figure, as report.h has them. */
#include "core.h"

static PyTypeObject *report_type, *figure_type;

static PyStructSequence_Field figure_fields[] = {
    { "key", "its name: \"energy\", \"max_ram.main.total_rss\"" },
    { "path", "where it is in the JSON report, within its part; None: nowhere" },
    { "value", "a number in SI base units, but for percentages; None: it is missing" },
    { "unit",
      "\"s\", \"J\", \"W\", \"B\", \"percent\", \"ratio\", \"celsius\", \"count\"" },
    { "low", "the truth lies between this" },
    { "high", "and this with 95 % confidence; None: that is not known" },
    { "state", "\"known\", \"missing\", or \"at least\": it may have been higher" },
    { "origin", "\"measured\", \"estimated\" or \"simulated\"" },
    { "why", "why it is missing, or another reason; None: no reason" },
    { NULL, NULL },
};

static PyStructSequence_Desc figure_desc = {
    .name = "wattmeter._core.Figure",
    .doc = "A figure of a report.",
    .fields = figure_fields,
    .n_in_sequence = 9,
};

static PyObject *number_if(bool is_there, double number)
{
    if (!is_there)
        Py_RETURN_NONE;
    return PyFloat_FromDouble(number);
}

static const char *const states[] = { "missing", "known", "at least", NULL };

static PyObject *figure_new(const struct wm_report_figure *figure)
{
    struct core_struct fill = core_struct_begin(figure_type);

    core_struct_add(&fill, core_text(figure->key));
    core_struct_add(&fill, core_text(figure->path));
    core_struct_add(&fill, number_if(figure->state != WM_REPORT_MISSING, figure->value));
    core_struct_add(&fill, core_text(figure->unit));
    core_struct_add(&fill, number_if(figure->has_range, figure->low));
    core_struct_add(&fill, number_if(figure->has_range, figure->high));
    core_struct_add(&fill, core_text(states[figure->state]));
    core_struct_add(&fill, core_text(core_origins[figure->origin]));
    core_struct_add(&fill, core_text(figure->why));
    return core_struct_end(&fill);
}

static const struct wm_report *report_of(PyObject *self)
{
    return core_slot_of(self)->handle;
}

static void free_report(void *handle)
{
    wm_report_free(handle);
}

PyObject *core_report_new(struct wm_report *report)
{
    return core_object_new(report_type, "report", report, free_report, CORE_MAY_FORK);
}

const struct wm_report *core_report_of(PyObject *object)
{
    if (Py_TYPE(object) == report_type)
        return report_of(object);
    PyErr_SetString(PyExc_TypeError, "not a report");
    return NULL;
}

PyDoc_STRVAR(from_recording_doc,
             "from_recording(path, run=None)\n--\n\n"
             "The report of run number `run` (from 0; None: the newest) of a recording of\n"
             "whatever format, or of the database postgresql://...\n\n"
             "Raises Error with the status \"ENOENT\", \"EFORMAT\", ...");

static PyObject *from_recording(PyObject *type, PyObject *args, PyObject *keywords)
{
    struct wm_recording *recording = NULL;
    struct wm_report *report = NULL;
    struct wm_error err = { 0 };
    PyObject *path;
    size_t number;
    int status;

    (void)type;
    path = core_parse_run(args, keywords, "O&|O:from_recording", &number);
    if (!path)
        return NULL;
    const char *text = PyBytes_AsString(path);
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_recording_open(text, number, &recording, &err);
        if (status >= 0)
            status = wm_report_from_recording(recording, &report, &err);
        wm_recording_close(recording);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    return core_check(status, &err) < 0 ? NULL : core_report_new(report);
}

struct printing {
    const struct wm_report *report;
    enum wm_format format;
    struct wm_report_style style;
};

static int print_report(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;

    return wm_report_print(printing->report, printing->format, &printing->style, out, err);
}

PyDoc_STRVAR(
    print_doc,
    "print($self, format='text', *, " CORE_STYLE_SIGNATURE ")\n--\n\n"
    "The report as a string.\n\n"
    "format: \"text\", \"json\", \"gpu-tracker\", \"gpu-tracker-json\",\n"
    "\"gpu-tracker-warnings\".\n"
    "ram_unit, gpu_ram_unit: bytes, kilobytes, ... terabytes; time_unit: seconds,\n"
    "minutes, hours, days. With price_per_kwh (in `currency`) or carbon_g_per_kwh\n"
    "it has what the energy comes to, times the power usage effectiveness `pue`.\n"
    "verbosity: 1 has every figure, 2 also why each that is missing is.\n\n"
    "Raises ValueError for units that are not known and numbers out of range.");

static PyObject *report_print(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "format", CORE_STYLE_KEYWORDS, NULL };
    struct printing printing = { .report = report_of(self) };
    const char *word = "text";
    int terminal = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|s$" CORE_STYLE_FORMAT ":print",
                                     names, &word,
                                     CORE_STYLE_TARGETS(printing.style, terminal)))
        return NULL;
    int format = core_format(word);
    if (format < 0)
        return NULL;
    printing.format = (enum wm_format)format;
    printing.style.for_terminal = terminal;
    return core_print(print_report, &printing);
}

/* The words of a part, as figure() and figures() have them last. */
static int find_part(const char *kind, Py_ssize_t index, const char *share,
                     struct wm_report_part *ret_part)
{
    static const char *const shares[] = { "inclusive", "exclusive", NULL };
    int kind_number = core_choice(kind, core_report_kinds, "part of a report");
    int share_number = kind_number < 0 ? -1 : core_choice(share, shares, "share");

    if (share_number < 0)
        return -1;
    *ret_part = (struct wm_report_part) { .kind = (enum wm_report_kind)kind_number,
                                          .index = (size_t)index,
                                          .share = (enum wm_report_share)share_number };
    return 0;
}

PyDoc_STRVAR(
    figure_doc,
    "figure($self, key, kind='run', index=0, share='inclusive')\n--\n\n"
    "A Figure by its key, or by its path in the JSON report of the run.\n\n"
    "kind: \"run\", \"region\", \"path\" (a region's place in the tree of calls),\n"
    "\"rest\" (what no region has), \"gpu\", \"device\"; `index` is below\n"
    "count(kind). share: \"inclusive\" or \"exclusive\", of regions and paths.\n\n"
    "Raises KeyError where there is no such figure or part.");

static PyObject *report_figure(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "key", "kind", "index", "share", NULL };
    const char *key, *kind = "run", *share = "inclusive";
    Py_ssize_t index = 0;
    struct wm_report_part part;
    struct wm_report_figure figure;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|sns:figure", names, &key, &kind,
                                     &index, &share) ||
        find_part(kind, index, share, &part) < 0)
        return NULL;
    if (wm_report_figure(report_of(self), &part, key, &figure) < 0)
        return PyErr_Format(PyExc_KeyError, "%s", key);
    return figure_new(&figure);
}

static PyObject *figure_text(PyObject *unused, PyObject *args)
{
    struct wm_report_figure figure = { .key = "" };
    const char *state, *origin;
    PyObject *value, *low, *high;
    char text[512];

    (void)unused;
    if (!PyArg_ParseTuple(args, "OsOOssz:figure_text", &value, &figure.unit, &low, &high,
                          &state, &origin, &figure.why))
        return NULL;
    int state_number = core_choice(state, states, "state of a figure");
    int origin_number =
        state_number < 0 ? -1 : core_choice(origin, core_origins, "origin of a figure");
    if (origin_number < 0)
        return NULL;
    figure.state =
        value == Py_None ? WM_REPORT_MISSING : (enum wm_report_state)state_number;
    figure.origin = (enum wm_origin)origin_number;
    figure.has_range = low != Py_None && high != Py_None;
    if (value != Py_None)
        figure.value = PyFloat_AsDouble(value);
    if (figure.has_range && !PyErr_Occurred())
        figure.low = PyFloat_AsDouble(low);
    if (figure.has_range && !PyErr_Occurred())
        figure.high = PyFloat_AsDouble(high);
    if (PyErr_Occurred())
        return NULL;
    wm_report_figure_text(&figure, text, sizeof(text));
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyDoc_STRVAR(figures_doc, "figures($self, kind='run', index=0, share='inclusive')\n--\n\n"
                          "All figures of a part; none where there is no such part.");

static PyObject *report_figures(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "kind", "index", "share", NULL };
    const char *kind = "run", *share = "inclusive";
    Py_ssize_t index = 0;
    struct wm_report_part part;
    struct wm_report_figure figure;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|sns:figures", names, &kind, &index,
                                     &share) ||
        find_part(kind, index, share, &part) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0;
         list && wm_report_figure_at(report_of(self), &part, i, &figure) == WM_OK; i++)
        if (!core_append(list, figure_new(&figure)))
            Py_CLEAR(list);
    return list;
}

/* -1 and an exception: it is no such kind. */
static int kind_of(const char *word)
{
    return core_choice(word, core_report_kinds, "part of a report");
}

static PyObject *report_count(PyObject *self, PyObject *args)
{
    const char *word;

    if (!PyArg_ParseTuple(args, "s:count", &word))
        return NULL;
    int kind = kind_of(word);
    return kind < 0 ? NULL
                    : PyLong_FromSize_t(
                          wm_report_count(report_of(self), (enum wm_report_kind)kind));
}

static PyObject *report_find(PyObject *self, PyObject *args)
{
    const char *word, *name;
    size_t index;

    if (!PyArg_ParseTuple(args, "ss:find", &word, &name))
        return NULL;
    int kind = kind_of(word);
    if (kind < 0)
        return NULL;
    if (wm_report_find(report_of(self), (enum wm_report_kind)kind, name, &index) < 0)
        return PyErr_Format(PyExc_KeyError, "%s", name);
    return PyLong_FromSize_t(index);
}

static PyObject *dict_or_null(PyObject *dict, bool is_whole)
{
    if (!is_whole)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *report_run(PyObject *self, PyObject *unused)
{
    static const char *const ends[] = { NULL, "exited", "killed" };
    struct wm_report_run run;
    PyObject *dict = PyDict_New();

    (void)unused;
    wm_report_run(report_of(self), &run);
    return dict_or_null(
        dict, dict && core_put(dict, "id", core_text(run.id)) &&
                  core_put(dict, "mode", core_text(run.mode)) &&
                  core_put(dict, "version", core_text(run.version)) &&
                  core_put(dict, "host", core_text(run.host)) &&
                  core_put(dict, "cpu_model", core_text(run.cpu_model)) &&
                  core_put(dict, "kernel", core_text(run.kernel)) &&
                  core_put(dict, "boot_id", core_text(run.boot_id)) &&
                  core_put(dict, "cpu_method", core_text(run.cpu_method)) &&
                  core_put(dict, "trouble", core_text(run.trouble)) &&
                  core_put(dict, "start_unix_ns", PyLong_FromLongLong(run.start_unix_ns)) &&
                  core_put(dict, "interval_ns", PyLong_FromLongLong(run.interval_ns)) &&
                  core_put(dict, "is_complete", PyBool_FromLong(run.is_complete)) &&
                  core_put(dict, "end", core_text(ends[run.end])) &&
                  core_put(dict, "exit_status", PyLong_FromLong(run.exit_status)) &&
                  core_put(dict, "signal_number", PyLong_FromLong(run.signal_number)));
}

static PyObject *count_or_none(size_t count, bool is_there)
{
    if (!is_there)
        Py_RETURN_NONE;
    return PyLong_FromSize_t(count);
}

static bool put_buckets(PyObject *dict, const struct wm_report *report,
                        enum wm_report_kind kind, size_t region)
{
    struct wm_report_bucket bucket;
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && wm_report_bucket(report, kind, region, i, &bucket) == WM_OK;
         i++)
        if (!core_append(list, Py_BuildValue("(dK)", bucket.up_to_s,
                                             (unsigned long long)bucket.calls)))
            Py_CLEAR(list);
    return core_put(dict, "histogram", list);
}

static bool put_usages(PyObject *dict, const struct wm_report *report,
                       enum wm_report_kind kind, size_t region)
{
    struct wm_report_usage usage;
    PyObject *usages = PyDict_New();

    for (size_t i = 0; usages && wm_report_usage(report, kind, region, i, &usage) == WM_OK;
         i++)
        if (!core_put(usages, usage.name,
                      Py_BuildValue("{s:K,s:d,s:d,s:d,s:d}", "count",
                                    (unsigned long long)usage.count, "min", usage.min,
                                    "max", usage.max, "mean", usage.mean, "std",
                                    usage.std)))
            Py_CLEAR(usages);
    return core_put(dict, "usage", usages);
}

static bool put_region(PyObject *dict, const struct wm_report_region *region)
{
    return core_put(dict, "name", core_text(region->name)) &&
           core_put(dict, "parent",
                    count_or_none(region->parent, region->parent != WM_REPORT_NO_PARENT)) &&
           core_put(dict, "depth", PyLong_FromSize_t(region->depth)) &&
           core_put(dict, "children", PyLong_FromSize_t(region->children)) &&
           core_put(dict, "by_itself", PyBool_FromLong(region->by_itself)) &&
           core_put(dict, "is_short", PyBool_FromLong(region->is_short)) &&
           core_put(dict, "calls", PyLong_FromUnsignedLongLong(region->calls)) &&
           core_put(dict, "unfinished", PyLong_FromUnsignedLongLong(region->unfinished)) &&
           core_put(dict, "clocked_calls",
                    PyLong_FromUnsignedLongLong(region->clocked_calls)) &&
           core_put(dict, "timepoints", PyLong_FromUnsignedLongLong(region->timepoints)) &&
           core_put(dict, "calls_with_timepoints",
                    PyLong_FromUnsignedLongLong(region->calls_with_timepoints)) &&
           core_put(dict, "total_s", PyFloat_FromDouble(region->total_s)) &&
           core_put(dict, "min_s", number_if(region->calls > 0, region->min_s)) &&
           core_put(dict, "max_s", number_if(region->calls > 0, region->max_s)) &&
           core_put(dict, "mean_s", number_if(region->calls > 0, region->mean_s)) &&
           core_put(dict, "std_s", number_if(region->calls > 1, region->std_s));
}

/* What region() and device() take: a kind, and the place of one of it. */
static int parse_place(PyObject *args, enum wm_report_kind *ret_kind, size_t *ret_index)
{
    const char *word;
    Py_ssize_t index;

    if (!PyArg_ParseTuple(args, "sn", &word, &index))
        return -1;
    int kind = kind_of(word);
    *ret_kind = (enum wm_report_kind)kind;
    *ret_index = (size_t)index;
    return kind < 0 ? -1 : 0;
}

static PyObject *report_region(PyObject *self, PyObject *args)
{
    const struct wm_report *report = report_of(self);
    struct wm_report_region region;
    enum wm_report_kind kind;
    size_t index;

    if (parse_place(args, &kind, &index) < 0)
        return NULL;
    if (wm_report_region(report, kind, index, &region) < 0)
        return PyErr_Format(PyExc_IndexError, "there is no such region");
    PyObject *dict = PyDict_New();
    return dict_or_null(dict, dict && put_region(dict, &region) &&
                                  put_buckets(dict, report, kind, index) &&
                                  put_usages(dict, report, kind, index));
}

static PyObject *report_device(PyObject *self, PyObject *args)
{
    struct wm_report_device device;
    enum wm_report_kind kind;
    size_t index;

    if (parse_place(args, &kind, &index) < 0)
        return NULL;
    if (wm_report_device(report_of(self), kind, index, &device) < 0)
        return PyErr_Format(PyExc_IndexError, "there is no such device");
    PyObject *dict = PyDict_New();
    return dict_or_null(
        dict, dict && core_put(dict, "label", core_text(device.name)) &&
                  core_put(dict, "name", core_text(device.model)) &&
                  core_put(dict, "uuid", core_text(device.uuid)) &&
                  core_put(dict, "source", core_text(device.source)) &&
                  core_put(dict, "method", core_text(device.method)) &&
                  core_put(dict, "sensor", core_text(device.sensor)) &&
                  core_put(dict, "index",
                           count_or_none((size_t)device.driver_number,
                                         device.has_driver_number)) &&
                  core_put(dict, "kind", core_text(core_device_kinds[device.kind])) &&
                  core_put(dict, "origin", core_text(core_origins[device.origin])));
}

static PyObject *process_new(const struct wm_report_process *process)
{
    PyObject *dict = PyDict_New();

    return dict_or_null(
        dict,
        dict && core_put(dict, "pid", PyLong_FromLong(process->pid)) &&
            core_put(dict, "parent", PyLong_FromLong(process->parent)) &&
            core_put(dict, "name", core_text(process->name)) &&
            core_put(dict, "max_threads", PyLong_FromLong(process->max_threads)) &&
            core_put(dict, "cpu_time", figure_new(&process->cpu_time)) &&
            core_put(dict, "cpu_energy", figure_new(&process->cpu_energy)) &&
            core_put(dict, "max_memory", figure_new(&process->max_memory)) &&
            core_put(dict, "max_private_memory", figure_new(&process->max_private_memory)));
}

static PyObject *report_processes(PyObject *self, PyObject *unused)
{
    struct wm_report_process process;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && wm_report_process(report_of(self), i, &process) == WM_OK;
         i++)
        if (!core_append(list, process_new(&process)))
            Py_CLEAR(list);
    return list;
}

PyDoc_STRVAR(write_codecarbon_doc,
             "write_codecarbon($self, path, mode='new', *, " CORE_STYLE_SIGNATURE
             ")\n--\n\n"
             "Adds one row to what CodeCarbon calls emissions.csv: kWh, and kg of CO2e.\n\n"
             "Raises Error with the status \"EEXIST\" for a file that is there, unless\n"
             "mode is \"overwrite\" or \"append\"; ValueError where its columns are not\n"
             "CodeCarbon's.");

static PyObject *write_codecarbon(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "path", "mode", CORE_STYLE_KEYWORDS, NULL };
    struct wm_report_style style = { 0 };
    const char *word = "new";
    struct wm_error err = { 0 };
    PyObject *path;
    int terminal = 0, status;

    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "O&|s$" CORE_STYLE_FORMAT ":write_codecarbon", names,
            PyUnicode_FSConverter, &path, &word, CORE_STYLE_TARGETS(style, terminal)))
        return NULL;
    int mode = core_choice(word, core_modes, "mode");
    if (mode >= 0) {
        const struct wm_report *report = report_of(self);
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
            status = wm_report_write_codecarbon(report, text, (enum wm_record_mode)mode,
                                                &style, &err);
        Py_END_ALLOW_THREADS
        mode = core_check(status, &err);
    }
    Py_DECREF(path);
    if (mode < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *report_words(PyObject *self, void *unused)
{
    (void)unused;
    return core_report_texts(report_of(self), WM_REPORT_WORDS);
}

static PyObject *report_remarks(PyObject *self, void *unused)
{
    (void)unused;
    return core_report_texts(report_of(self), WM_REPORT_NOTES);
}

static PyObject *pairs_of(PyObject *self, enum wm_report_list list)
{
    PyObject *dict = PyDict_New();
    const char *key, *value;

    for (size_t i = 0;
         dict && (key = wm_report_text(report_of(self), list, i, &value)) != NULL; i++)
        if (!core_put(dict, key, core_text(value)))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *report_notes(PyObject *self, void *unused)
{
    (void)unused;
    return pairs_of(self, WM_REPORT_TAGS);
}

static PyObject *report_variables(PyObject *self, void *unused)
{
    (void)unused;
    return pairs_of(self, WM_REPORT_VARIABLES);
}

static PyObject *report_sources(PyObject *self, void *unused)
{
    static const enum wm_report_list lists[] = { WM_REPORT_SOURCES,
                                                 WM_REPORT_ABSENT_SOURCES };
    PyObject *dict = PyDict_New();
    const char *name, *detail;

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0;
             dict && (name = wm_report_text(report_of(self), lists[i], k, &detail)) != NULL;
             k++)
            if (!core_put(
                    dict, name,
                    Py_BuildValue("(NN)", PyBool_FromLong(i == 0), core_text(detail))))
                Py_CLEAR(dict);
    }
    return dict;
}

/* Nothing changes a report, so that a copy may be the report itself. */
static PyObject *report_deepcopy(PyObject *self, PyObject *memo)
{
    (void)memo;
    Py_INCREF(self);
    return self;
}

static PyObject *report_reduce(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError,
                    "a part of a report cannot be pickled: the report can be, and figures");
    return NULL;
}

static PyMethodDef methods[] = {
    { "__deepcopy__", report_deepcopy, METH_O, NULL },
    { "__reduce__", report_reduce, METH_NOARGS, NULL },
    { "from_recording", CORE_KEYWORDS(from_recording) | METH_STATIC, from_recording_doc },
    { "print", CORE_KEYWORDS(report_print), print_doc },
    { "figure", CORE_KEYWORDS(report_figure), figure_doc },
    { "figures", CORE_KEYWORDS(report_figures), figures_doc },
    { "count", report_count, METH_VARARGS,
      "count($self, kind, /)\n--\n\nHow many parts of a kind there are." },
    { "find", report_find, METH_VARARGS,
      "find($self, kind, name, /)\n--\n\nThe place of the first part of that name: of a "
      "GPU\n"
      "its UUID or label. KeyError: no such part." },
    { "run", report_run, METH_NOARGS,
      "run($self, /)\n--\n\nWhat is known of the run besides its figures, as a dict; times "
      "in\n"
      "nanoseconds since 1970, None for what is not known." },
    { "region", report_region, METH_VARARGS,
      "region($self, kind, index, /)\n--\n\nA \"region\" or a \"path\" as a dict: calls, "
      "times\n"
      "in seconds, `histogram` as pairs of (largest duration in seconds, calls), and "
      "`usage`:\n"
      "what the samples inside say, in bytes and percent. IndexError past the last." },
    { "device", report_device, METH_VARARGS,
      "device($self, kind, index, /)\n--\n\nA \"gpu\" or a \"device\" as a dict; "
      "IndexError past\n"
      "the last." },
    { "processes", report_processes, METH_NOARGS,
      "processes($self, /)\n--\n\nThe processes that used most CPU time, as dicts." },
    { "write_codecarbon", CORE_KEYWORDS(write_codecarbon), write_codecarbon_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "words", report_words, NULL, "The command line, as a list.", NULL },
    { "remarks", report_remarks, NULL, "What a reader has to know of the figures.", NULL },
    { "notes", report_notes, NULL, "The user's notes, as a dict.", NULL },
    { "variables", report_variables, NULL, "The environment of a cluster's job.", NULL },
    { "sources", report_sources, NULL,
      "By name: whether it was there, and what it read or why there is nothing.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_new, core_object_no_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "What a run cost; from Tracker.report() or Report.from_recording()." },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Report",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static PyMethodDef functions[] = {
    { "figure_text", figure_text, METH_VARARGS,
      "figure_text(value, unit, low, high, state, origin, why, /)\n--\n\n"
      "A figure as people read it, in as many digits as its range leaves: \"2.54 kJ ± 2.5 "
      "%\"." },
    { NULL, NULL, 0, NULL },
};

int core_add_report(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0)
        return -1;
    figure_type = core_add_struct(module, &figure_desc);
    report_type = core_add_type(module, &spec);
    return figure_type && report_type ? 0 : -1;
}
