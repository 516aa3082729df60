/* SPDX-License-Identifier: Apache-2.0 */
/* core_doctor.c - what can be measured on this machine, as doctor.h has it. */
#include "core.h"

struct printing {
    const struct wm_doctor *doctor;
    enum wm_format format;
};

static int print_doctor(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;

    return wm_doctor_print(printing->doctor, printing->format, out, err);
}

static PyObject *printed(const struct wm_doctor *doctor, enum wm_format format)
{
    struct printing printing = { doctor, format };

    return core_print(print_doctor, &printing);
}

static PyObject *examine(PyObject *module, PyObject *args)
{
    double duration;
    struct wm_doctor *doctor;
    struct wm_error err = { 0 };
    int status;

    (void)module;
    if (!PyArg_ParseTuple(args, "d:doctor", &duration))
        return NULL;
    if (!(duration >= 0 && duration <= 3600)) {
        PyErr_SetString(PyExc_ValueError, "a duration is 0 to 3600 s");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
        status = wm_doctor_examine(NULL, core_ns(duration), &doctor, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    PyObject *text = printed(doctor, WM_FORMAT_TEXT);
    PyObject *result = text ? Py_BuildValue("(NNN)", text, printed(doctor, WM_FORMAT_JSON),
                                            PyBool_FromLong(wm_doctor_can_measure(doctor)))
                            : NULL;
    wm_doctor_free(doctor);
    return result;
}

static PyMethodDef functions[] = {
    { "doctor", examine, METH_VARARGS,
      "doctor(duration, /)\n--\n\nWhat can be measured on this machine, what not and why, "
      "and\n"
      "which command changes that: (a text, the same as JSON, whether anything can be\n"
      "measured). All sources are watched for `duration` seconds; 0: three." },
    { NULL, NULL, 0, NULL },
};

int core_add_doctor(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
