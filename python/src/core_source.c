/* SPDX-License-Identifier: Apache-2.0 */
/* core_source.c - _core.Source, readings of a sensor now, as source.h has it. */
#include "core.h"

#include <stdlib.h>

static PyTypeObject *reading_type;

static PyStructSequence_Field reading_fields[] = {
    { "value", "in the unit of its channel; None: it is missing" },
    { "state", "\"ok\", or how it is missing: \"none\", \"unsupported\", \"denied\", ..." },
    { "why", "why it is missing, where that is known" },
    { "when_ns", "nanoseconds of the monotonic clock, just before the device was asked" },
    { NULL, NULL },
};

static PyStructSequence_Desc reading_desc = {
    .name = "wattmeter._core.SourceReading",
    .doc = "What a channel says.",
    .fields = reading_fields,
    .n_in_sequence = 4,
};

static void free_source(void *handle)
{
    wm_source_close(handle);
}

static PyObject *source_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "name", "gpus", NULL };
    struct wm_source_config config = { 0 };
    struct wm_source *source;
    struct wm_error err = { 0 };
    const char *name;
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|z:Source", names, &name,
                                     &config.gpus))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_source_open(name, &config, &source, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "source", source, free_source, 0);
}

static PyObject *reading_new(const struct wm_source *source, size_t index,
                             const struct wm_reading *reading)
{
    struct core_struct fill = core_struct_begin(reading_type);
    bool is_ok = reading->state == WM_READING_OK;

    core_struct_add(&fill, is_ok ? PyFloat_FromDouble(reading->value) : core_text(NULL));
    core_struct_add(&fill, core_text(core_reading_states[reading->state]));
    core_struct_add(&fill, core_text(is_ok ? NULL : wm_source_why(source, index)));
    core_struct_add(&fill, PyLong_FromLongLong(reading->when_ns));
    return core_struct_end(&fill);
}

static PyObject *read_all(struct wm_source *source)
{
    size_t count = wm_source_channel_count(source);
    struct wm_reading *readings = calloc(count + 1, sizeof(*readings));
    struct wm_error err = { 0 };
    int status;

    if (!readings)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
        status = wm_source_read(source, readings, count, &err);
    Py_END_ALLOW_THREADS
    PyObject *list = core_check(status, &err) < 0 ? NULL : PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (!core_append(list, reading_new(source, i, &readings[i])))
            Py_CLEAR(list);
    free(readings);
    return list;
}

PyDoc_STRVAR(
    read_doc,
    "read($self, /)\n--\n\n"
    "Reads all channels: a list of SourceReadings in their order. Waits at most a second\n"
    "for a driver that hangs.");

static PyObject *source_read(PyObject *self, PyObject *unused)
{
    struct wm_source *source = core_object_enter(self);

    (void)unused;
    PyObject *list = source ? read_all(source) : NULL;
    if (source)
        core_object_leave(self);
    return list;
}

static PyObject *source_channels(PyObject *self, void *unused)
{
    const struct wm_source *source = core_slot_of(self)->handle;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && i < wm_source_channel_count(source); i++)
        if (!core_append(list, core_channel_new(wm_source_channel(source, i))))
            Py_CLEAR(list);
    return list;
}

static PyObject *source_detail(PyObject *self, void *unused)
{
    (void)unused;
    return core_text(wm_source_detail(core_slot_of(self)->handle));
}

static PyMethodDef methods[] = {
    { "read", source_read, METH_NOARGS, read_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "channels", source_channels, NULL, "What it offers, as Channels.", NULL },
    { "detail", source_detail, NULL, "What exactly is read; None: its name says it.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    source_doc,
    "Source(name, gpus=None)\n--\n\n"
    "A way of asking this machine for numbers, by its name: \"rapl\", \"nvml\", ...\n\n"
    "Raises Error with the status \"ENODEV\" where this machine does not have it,\n"
    "and \"EACCES\" where it is not for this user.");

static PyType_Slot slots[] = {
    { Py_tp_new, source_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },        { Py_tp_getset, members },
    { Py_tp_doc, (void *)source_doc }, { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Source",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_source(PyObject *module)
{
    reading_type = core_add_struct(module, &reading_desc);
    return reading_type && core_add_type(module, &spec) ? 0 : -1;
}
