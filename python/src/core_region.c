/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_region.c - regions, as region.h has them. What marks one is kept short: it stands
 * in the innermost loops of other people's programs. The name is UTF-8 once, when the
 * object is made, and calls take no more arguments than they must.
 */
#include "core.h"

#include <string.h>

static PyTypeObject *region_type;

struct region {
    PyObject_HEAD PyObject *name; /* bytes */
    const char *text;
};

/* UTF-8, in a bytes object. */
static PyObject *encode(PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a region must be a str");
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    if (bytes && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes)) {
        PyErr_SetString(PyExc_ValueError, "the name of a region has a NUL in it");
        Py_CLEAR(bytes);
    }
    return bytes;
}

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "name", NULL };
    PyObject *name;

    if (!keywords && PyTuple_Size(args) == 1)
        name = PyTuple_GetItem(args, 0);
    else if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:region", names, &name))
        return NULL;
    PyObject *bytes = encode(name);
    if (!bytes)
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct region *self = (struct region *)alloc(type, 0);
    if (!self) {
        Py_DECREF(bytes);
        return NULL;
    }
    self->name = bytes;
    self->text = PyBytes_AsString(bytes);
    return (PyObject *)self;
}

static void region_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(((struct region *)self)->name);
    free_self(self);
    Py_DECREF(type);
}

static PyObject *region_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    wm_region_begin(((struct region *)self)->text);
    Py_INCREF(self);
    return self;
}

static PyObject *region_exit(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    wm_region_end();
    Py_RETURN_NONE;
}

static PyObject *region_name(PyObject *self, void *unused)
{
    (void)unused;
    return core_text(((struct region *)self)->text);
}

static PyMethodDef region_methods[] = {
    { "__enter__", region_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nOpens it." },
    { "__exit__", region_exit, METH_VARARGS,
      "__exit__($self, *exception)\n--\n\nCloses what this thread opened last." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef region_members[] = {
    { "name", region_name, NULL, "Its name.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    region_doc,
    "region(name)\n--\n\n"
    "A named block of code, as a context manager. It may be entered any number of\n"
    "times, also inside itself and by several threads at once.");

static PyType_Slot region_slots[] = {
    { Py_tp_new, region_new },         { Py_tp_dealloc, region_dealloc },
    { Py_tp_methods, region_methods }, { Py_tp_getset, region_members },
    { Py_tp_doc, (void *)region_doc }, { 0, NULL },
};

static PyType_Spec region_spec = {
    .name = "wattmeter._core.region",
    .basicsize = sizeof(struct region),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = region_slots,
};

static PyObject *begin(PyObject *module, PyObject *name)
{
    PyObject *bytes = encode(name);

    (void)module;
    if (!bytes)
        return NULL;
    wm_region_begin(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    wm_region_end();
    Py_RETURN_NONE;
}

static PyObject *start(PyObject *module, PyObject *name)
{
    PyObject *bytes = encode(name);

    (void)module;
    if (!bytes)
        return NULL;
    uint64_t id = wm_region_start(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *stop(PyObject *module, PyObject *id)
{
    uint64_t number = PyLong_AsUnsignedLongLong(id);

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    wm_region_stop(number);
    Py_RETURN_NONE;
}

static PyObject *is_on(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(wm_region_is_on());
}

static PyMethodDef functions[] = {
    { "region_begin", begin, METH_O,
      "region_begin(name, /)\n--\n\nOpens a region inside those that this thread has "
      "open." },
    { "region_end", end, METH_NOARGS,
      "region_end()\n--\n\nCloses the one that this thread opened last." },
    { "region_start", start, METH_O,
      "region_start(name, /)\n--\n\nOpens a region that lies in no other; its number is "
      "for\n"
      "region_stop(), which any thread may call, in any order." },
    { "region_stop", stop, METH_O,
      "region_stop(number, /)\n--\n\nCloses what region_start() opened." },
    { "region_is_on", is_on, METH_NOARGS,
      "region_is_on()\n--\n\nWhether anybody listens." },
    { NULL, NULL, 0, NULL },
};

int core_add_region(PyObject *module)
{
    region_type = core_add_type(module, &region_spec);
    return region_type ? PyModule_AddFunctions(module, functions) : -1;
}
