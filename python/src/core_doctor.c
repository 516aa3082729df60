/* SPDX-License-Identifier: Apache-2.0 */
/* core_doctor.c - _core.Doctor, what can be measured on this machine, as doctor.h has it.
 */
#include "core.h"

static PyTypeObject *doctor_type;

static void free_doctor(void *handle)
{
    wm_doctor_free(handle);
}

static PyObject *doctor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "duration", NULL };
    double duration = 0;
    struct wm_doctor *doctor;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|d:Doctor", names, &duration))
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
    return core_object_new(type, "examination", doctor, free_doctor, CORE_MAY_FORK);
}

struct printing {
    const struct wm_doctor *doctor;
    enum wm_format format;
};

static int print_doctor(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;

    return wm_doctor_print(printing->doctor, printing->format, out, err);
}

static PyObject *doctor_print(PyObject *self, PyObject *args)
{
    const char *word = "text";

    if (!PyArg_ParseTuple(args, "|s:print", &word))
        return NULL;
    int format = core_format(word);
    if (format < 0)
        return NULL;
    struct printing printing = { core_slot_of(self)->handle, (enum wm_format)format };
    return core_print(print_doctor, &printing);
}

static PyObject *doctor_can_measure(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(wm_doctor_can_measure(core_slot_of(self)->handle));
}

static PyMethodDef methods[] = {
    { "print", doctor_print, METH_VARARGS,
      "print($self, format='text', /)\n--\n\n\"text\" or \"json\"." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "can_measure", doctor_can_measure, NULL, "Whether anything can be measured here.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(doctor_doc,
             "Doctor(duration=0.0)\n--\n\n"
             "What can be measured on this machine, what not and why, and which command\n"
             "changes that. All sources are watched for `duration` seconds; 0: three.");

static PyType_Slot slots[] = {
    { Py_tp_new, doctor_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },        { Py_tp_getset, members },
    { Py_tp_doc, (void *)doctor_doc }, { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Doctor",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_doctor(PyObject *module)
{
    doctor_type = core_add_type(module, &spec);
    return doctor_type ? 0 : -1;
}
