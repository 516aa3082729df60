/* SPDX-License-Identifier: Apache-2.0 */
/* core_module.c - the module, its exception, and the functions that need no object. */
#include "core.h"

#include <string.h>

#include "core_context.h"

static PyObject *error_type;

const char *core_status_name(int status)
{
    switch (status) {
    case WM_OK:
        return "OK";
    case WM_ENODEV:
        return "ENODEV";
    case WM_EACCES:
        return "EACCES";
    case WM_EFORMAT:
        return "EFORMAT";
    case WM_ENOENT:
        return "ENOENT";
    case WM_EEXIST:
        return "EEXIST";
    case WM_ECANCELED:
        return "ECANCELED";
    default:
        return "EIO";
    }
}

/* What is one of the interpreter's errors as well. */
static struct kind {
    const char *status, *name, *doc;
    PyObject **base, *type;
} kinds[] = {
    { "ENOENT", "wattmeter.NotFoundError", "An Error, and a FileNotFoundError.",
      &PyExc_FileNotFoundError, NULL },
    { "EEXIST", "wattmeter.ExistsError", "An Error, and a FileExistsError.",
      &PyExc_FileExistsError, NULL },
    { "EACCES", "wattmeter.AccessError", "An Error, and a PermissionError.",
      &PyExc_PermissionError, NULL },
};

static PyObject *type_of(const char *status)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].status, status) == 0)
            return kinds[i].type;
    return error_type;
}

static PyObject *make_error(const char *status, const char *text)
{
    PyObject *message = core_text(text), *word = PyUnicode_FromString(status);
    PyObject *error = message && word
                          ? PyObject_CallFunctionObjArgs(type_of(status), message, NULL)
                          : NULL;

    if (error && PyObject_SetAttrString(error, "status", word) < 0)
        Py_CLEAR(error);
    Py_XDECREF(word);
    Py_XDECREF(message);
    return error;
}

static PyObject *failure(PyObject *self, PyObject *args)
{
    const char *status, *text;

    (void)self;
    return PyArg_ParseTuple(args, "ss:failure", &status, &text) ? make_error(status, text)
                                                                : NULL;
}

void core_fail(int status, const char *text)
{
    if (status == WM_EINVAL)
        PyErr_SetString(PyExc_ValueError, text);
    else if (status == WM_ENOMEM)
        PyErr_SetString(PyExc_MemoryError, text);
    else {
        PyObject *error = make_error(core_status_name(status), text);
        if (error)
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
    }
}

void core_share_sqlite(void)
{
    PyObject *module = PyImport_ImportModule("_sqlite3");

    if (!module)
        PyErr_Clear();
    Py_XDECREF(module);
}

int core_check(int status, const struct wm_error *err)
{
    if (status >= 0)
        return 0;
    core_fail(status, err->text[0] ? err->text : "wattmeter: no reason is known");
    return -1;
}

PyTypeObject *core_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);

    if (!type)
        return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, strrchr(spec->name, '.') + 1, type) < 0) {
        Py_DECREF(type);
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

PyTypeObject *core_add_struct(PyObject *module, PyStructSequence_Desc *desc)
{
    PyTypeObject *type = PyStructSequence_NewType(desc);

    if (!type)
        return NULL;
    Py_INCREF(type);
    if (PyModule_AddObject(module, strrchr(desc->name, '.') + 1, (PyObject *)type) < 0) {
        Py_DECREF(type);
        Py_CLEAR(type);
    }
    return type;
}

PyDoc_STRVAR(
    error_doc,
    "What the library could not do; its text says what failed, where and why.\n\n"
    "`status` is for programs: \"ENODEV\" (this machine does not have it),\n"
    "\"EACCES\" (it is there, but not for this user), \"EIO\" (it would not\n"
    "answer), \"EFORMAT\" (what it answered cannot be read), \"ENOENT\" (no such\n"
    "file, command or process), \"EEXIST\" (it is there already), \"ECANCELED\". "
    "\"ENOENT\", \"EEXIST\" and\n"
    "\"EACCES\" are a FileNotFoundError, a FileExistsError, a PermissionError, too.\n"
    "Wrong arguments are a ValueError, a lack of memory is a MemoryError.");

static int add_error(PyObject *module)
{
    PyObject *members = Py_BuildValue("{s:s}", "status", "EIO");

    if (!members)
        return -1;
    error_type = PyErr_NewExceptionWithDoc("wattmeter.Error", error_doc, NULL, members);
    Py_DECREF(members);
    if (!error_type)
        return -1;
    Py_INCREF(error_type);
    if (PyModule_AddObject(module, "Error", error_type) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct kind *kind = &kinds[i];
        PyObject *bases = PyTuple_Pack(2, error_type, *kind->base);
        kind->type =
            bases ? PyErr_NewExceptionWithDoc(kind->name, kind->doc, bases, NULL) : NULL;
        Py_XDECREF(bases);
        Py_XINCREF(kind->type);
        if (!kind->type ||
            PyModule_AddObject(module, strrchr(kind->name, '.') + 1, kind->type) < 0)
            return -1;
    }
    return 0;
}

static PyObject *axis(PyObject *args, const char *format,
                      struct wm_axis (*make)(double first, double last))
{
    double first, last;

    if (!PyArg_ParseTuple(args, format, &first, &last))
        return NULL;
    struct wm_axis made = make(first, last);
    return Py_BuildValue("(dd)", made.low, made.high);
}

static PyObject *axis_of_time(PyObject *self, PyObject *args)
{
    (void)self;
    return axis(args, "dd:axis_of_time", wm_axis_of_time);
}

static PyObject *axis_of_values(PyObject *self, PyObject *args)
{
    (void)self;
    return axis(args, "dd:axis_of_values", wm_axis_of_values);
}

static PyMethodDef functions[] = {
    { "failure", failure, METH_VARARGS,
      "failure(status, text, /)\n--\n\nThe Error of that status, to be raised: \"ENOENT\" "
      "is a\n"
      "FileNotFoundError, too." },
    { "axis_of_time", axis_of_time, METH_VARARGS,
      "axis_of_time(oldest, newest, /)\n--\n\n"
      "(low, high) of a chart's axis of time in seconds: from the oldest sample to one\n"
      "second past the newest." },
    { "axis_of_values", axis_of_values, METH_VARARGS,
      "axis_of_values(least, greatest, /)\n--\n\n"
      "(low, high) of a chart's axis of values: those with a tenth of the range between\n"
      "them and 0.1 as margin." },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "wattmeter._core",
    .m_doc = "What libwattmeter offers, as it is; the package wattmeter is made of it.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    static int (*const parts[])(PyObject *) = {
        add_error,       core_add_tracker,    core_add_report,      core_add_region,
        core_add_meter,  core_add_gpus,       core_add_recording,   core_add_analysis,
        core_add_repeat, core_add_experiment, core_add_doctor,      core_add_source,
        core_add_plot,   core_add_cap,        core_add_cap_profile, core_add_context,
    };
    PyObject *module = PyModule_Create(&definition);

    if (!module)
        return NULL;
    bool is_whole = PyModule_AddStringConstant(module, "version", wm_version()) == 0;
    for (size_t i = 0; is_whole && i < sizeof(parts) / sizeof(parts[0]); i++)
        is_whole = parts[i](module) == 0;
    if (!is_whole)
        Py_CLEAR(module);
    return module;
}
