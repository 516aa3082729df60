/* SPDX-License-Identifier: Apache-2.0 */
/* core_meter.c - _core.Meter, the joules of pieces of a program, as energy.h has it. */
#include "core.h"

#include <stdlib.h>

static PyTypeObject *energy_type, *reading_type, *device_type, *meter_type;

static PyStructSequence_Field energy_fields[] = {
    { "joules", "None: there is no figure" },
    { "uncertainty", "J: the truth lies within it with 95 % confidence; None as above" },
    { "method",
      "\"counter\", \"filled\" (with the integral of power where the counter has\n"
      "gaps), \"integral\", \"mixed\", \"model\" (an estimate); \"\": no figure" },
    { "origin", "\"measured\", \"estimated\" or \"simulated\"; None: no figure" },
    { "is_short", "fewer than three new values of the sensor: a rough figure" },
    { "state", "\"ok\", or how the figure is missing: \"unsupported\", \"denied\", ..." },
    { "why", "why there is no figure; None where there is" },
    { "low", "J: the truth lies between this and high with 95 % confidence" },
    { "high", "None as above" },
    { NULL, NULL },
};

static PyStructSequence_Desc energy_desc = {
    .name = "wattmeter._core.Energy",
    .doc = "The energy of a device, or of several together.",
    .fields = energy_fields,
    .n_in_sequence = 9,
};

static PyStructSequence_Field reading_fields[] = {
    { "elapsed", "seconds between the two readings of the devices" },
    { "cpu", "Energy of all packages" },
    { "dram", "Energy of all memory, which no package includes" },
    { "gpu", "Energy of all chosen GPUs, but for those in a CPU" },
    { "devices", "Energy of each of Meter.devices, as a list" },
    { NULL, NULL },
};

static PyStructSequence_Desc reading_desc = {
    .name = "wattmeter._core.MeterReading",
    .doc = "What a snippet took.",
    .fields = reading_fields,
    .n_in_sequence = 5,
};

static PyStructSequence_Field device_fields[] = {
    { "label", "\"package0\", \"gpu0\"" },
    { "device", "its identity" },
    { "model", "what people call it; None: not known" },
    { "source", "\"rapl\", \"nvml\", ..." },
    { "kind", "\"cpu\", \"dram\" or \"gpu\"" },
    { "origin", "\"measured\", \"estimated\" or \"simulated\"" },
    { NULL, NULL },
};

static PyStructSequence_Desc device_desc = {
    .name = "wattmeter._core.MeterDevice",
    .doc = "A device that is measured.",
    .fields = device_fields,
    .n_in_sequence = 6,
};

static void free_meter(void *handle)
{
    wm_meter_close(handle, NULL);
}

static PyObject *meter_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "gpus",     "estimate", "cpu_watts",   "interval",
                             "snippets", "mode",     "seed_format", NULL };
    struct wm_meter_options options = { 0 };
    int estimate = 0, seed_format = 0, status;
    const char *word = "new";
    double interval = 0;
    PyObject *path = NULL, *snippets = NULL;
    struct wm_meter *meter;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$zpzdOsp:Meter", names,
                                     &options.gpus, &estimate, &options.cpu_watts,
                                     &interval, &path, &word, &seed_format))
        return NULL;
    int mode = core_choice(word, core_modes, "mode");
    if (mode < 0 || (path && path != Py_None && !PyUnicode_FSConverter(path, &snippets)))
        return NULL;
    options.estimate = estimate;
    options.interval_ns = core_ns(interval);
    options.snippets = snippets ? PyBytes_AsString(snippets) : NULL;
    options.mode = (enum wm_record_mode)mode;
    options.seed_format = seed_format;
    Py_BEGIN_ALLOW_THREADS
        status = wm_meter_open(&options, &meter, &err);
    Py_END_ALLOW_THREADS
    Py_XDECREF(snippets);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "meter", meter, free_meter, CORE_ENDS_FIRST);
}

PyDoc_STRVAR(start_doc,
             "start($self, name=None, /)\n--\n\n"
             "Starts a snippet; the result is for stop(). Any thread may call it.");

static PyObject *meter_start(PyObject *self, PyObject *args)
{
    const char *name = NULL;
    uint64_t id;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTuple(args, "|z:start", &name))
        return NULL;
    struct wm_meter *meter = core_object_enter_shared(self);
    if (!meter)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_meter_start(meter, name, &id, &err);
    Py_END_ALLOW_THREADS
    core_object_leave_shared(self);
    return core_check(status, &err) < 0 ? NULL : PyLong_FromUnsignedLongLong(id);
}

static PyObject *none(void)
{
    Py_RETURN_NONE;
}

static PyObject *energy_new(const struct wm_meter_energy *energy)
{
    struct core_struct fill = core_struct_begin(energy_type);
    bool is_ok = energy->state == WM_READING_OK;

    core_struct_add(&fill, is_ok ? PyFloat_FromDouble(energy->joules) : none());
    core_struct_add(&fill, is_ok ? PyFloat_FromDouble(energy->uncertainty) : none());
    core_struct_add(&fill, core_text(wm_meter_method_name(energy->method)));
    core_struct_add(&fill, core_text(is_ok ? core_origins[energy->origin] : NULL));
    core_struct_add(&fill, PyBool_FromLong(energy->is_short));
    core_struct_add(&fill, core_text(core_reading_states[energy->state]));
    core_struct_add(&fill, core_text(energy->why[0] ? energy->why : NULL));
    core_struct_add(&fill, is_ok ? PyFloat_FromDouble(energy->low) : none());
    core_struct_add(&fill, is_ok ? PyFloat_FromDouble(energy->high) : none());
    return core_struct_end(&fill);
}

static PyObject *reading_new(const struct wm_meter_reading *reading,
                             const struct wm_meter_energy *devices, size_t count)
{
    struct core_struct fill = core_struct_begin(reading_type);
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++)
        if (!core_append(list, energy_new(&devices[i])))
            Py_CLEAR(list);
    core_struct_add(&fill, PyFloat_FromDouble(reading->elapsed_s));
    core_struct_add(&fill, energy_new(&reading->cpu));
    core_struct_add(&fill, energy_new(&reading->dram));
    core_struct_add(&fill, energy_new(&reading->gpu));
    core_struct_add(&fill, list);
    return core_struct_end(&fill);
}

/* The figures are there although the row of the file is not: with the exception. */
static void keep_reading(PyObject *reading)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && PyObject_SetAttrString(value, "reading", reading) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

PyDoc_STRVAR(
    stop_doc,
    "stop($self, number, /)\n--\n\n"
    "Ends a snippet: the MeterReading of what the machine took since its start.\n\n"
    "Raises ValueError where there is no such snippet. Where a file's row could\n"
    "not be written the Error has the MeterReading as its attribute `reading`.");

static PyObject *meter_stop(PyObject *self, PyObject *number)
{
    uint64_t id = PyLong_AsUnsignedLongLong(number);
    struct wm_meter_reading reading;
    struct wm_error err = { 0 };
    int status;

    if (PyErr_Occurred())
        return NULL;
    struct wm_meter *meter = core_object_enter_shared(self);
    if (!meter)
        return NULL;
    size_t count = wm_meter_device_count(meter);
    struct wm_meter_energy *devices = calloc(count + 1, sizeof(*devices));
    if (!devices) {
        core_object_leave_shared(self);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
        status = wm_meter_stop(meter, id, &reading, devices, &err);
    Py_END_ALLOW_THREADS
    core_object_leave_shared(self);
    PyObject *result =
        status >= 0 || status == WM_EIO ? reading_new(&reading, devices, count) : NULL;
    free(devices);
    if (core_check(status, &err) < 0) {
        if (result)
            keep_reading(result);
        Py_CLEAR(result);
    }
    return result;
}

PyDoc_STRVAR(run_doc,
             "run($self, path, interval)\n--\n\n"
             "From now on adds a row to the CSV file at `path` every `interval` seconds\n"
             "(0.001 to 3600): time and energy since now, and how busy and how hot CPUs\n"
             "and GPUs are. ValueError where one is running.");

static PyObject *meter_run(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "path", "interval", NULL };
    PyObject *path;
    double interval;
    struct wm_error err = { 0 };
    int status = -1;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&d:run", names,
                                     PyUnicode_FSConverter, &path, &interval))
        return NULL;
    struct wm_meter *meter = core_object_enter_shared(self);
    if (meter) {
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
            status = wm_meter_run(meter, text, core_ns(interval), &err);
        Py_END_ALLOW_THREADS
        core_object_leave_shared(self);
        status = core_check(status, &err);
    }
    Py_DECREF(path);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(halt_doc, "halt($self, /)\n--\n\n"
                       "Ends run(); the file is complete then. ValueError: nothing runs.");

static PyObject *meter_halt(PyObject *self, PyObject *unused)
{
    struct wm_meter *meter = core_object_enter_shared(self);
    struct wm_error err = { 0 };
    int status;

    (void)unused;
    if (!meter)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_meter_halt(meter, &err);
    Py_END_ALLOW_THREADS
    core_object_leave_shared(self);
    if (core_check(status, &err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc,
             "close($self, /)\n--\n\n"
             "Ends what runs; how many snippets were never stopped, whose rows are marked\n"
             "unfinished. Once more, or in a forked child, it does nothing.\n\n"
             "Raises Error with the status \"EIO\" where a file lacks rows.");

static PyObject *meter_close(PyObject *self, PyObject *unused)
{
    struct wm_error err = { 0 };
    int status = 0;

    (void)unused;
    struct wm_meter *meter = core_object_take(self);
    if (!meter && PyErr_Occurred())
        return NULL;
    if (meter) {
        Py_BEGIN_ALLOW_THREADS
            status = wm_meter_close(meter, &err);
        Py_END_ALLOW_THREADS
    }
    return core_check(status, &err) < 0 ? NULL : PyLong_FromLong(status);
}

static PyObject *device_new(const struct wm_meter_device *device)
{
    struct core_struct fill = core_struct_begin(device_type);

    core_struct_add(&fill, core_text(device->label));
    core_struct_add(&fill, core_text(device->device));
    core_struct_add(&fill, core_text(device->model));
    core_struct_add(&fill, core_text(device->source));
    core_struct_add(&fill, core_text(core_device_kinds[device->kind]));
    core_struct_add(&fill, core_text(core_origins[device->origin]));
    return core_struct_end(&fill);
}

static PyObject *meter_devices(PyObject *self, void *unused)
{
    struct wm_meter *meter = core_object_enter_shared(self);

    (void)unused;
    if (!meter)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < wm_meter_device_count(meter); i++)
        if (!core_append(list, device_new(wm_meter_device(meter, i))))
            Py_CLEAR(list);
    core_object_leave_shared(self);
    return list;
}

static PyObject *meter_remark(PyObject *self, void *unused)
{
    struct wm_meter *meter = core_object_enter_shared(self);

    (void)unused;
    if (!meter)
        return NULL;
    core_object_leave_shared(self);
    return core_text(wm_meter_remark(meter));
}

static PyMethodDef methods[] = {
    { "start", meter_start, METH_VARARGS, start_doc },
    { "stop", meter_stop, METH_O, stop_doc },
    { "run", CORE_KEYWORDS(meter_run), run_doc },
    { "halt", meter_halt, METH_NOARGS, halt_doc },
    { "close", meter_close, METH_NOARGS, close_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "devices", meter_devices, NULL, "The devices that are read, as MeterDevice.", NULL },
    { "remark", meter_remark, NULL,
      "What a person should know of the choice of GPUs; None: nothing.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    meter_doc,
    "Meter(*, gpus=None, estimate=False, cpu_watts=None, interval=0.0, "
    "snippets=None, mode='new', seed_format=False)\n--\n\n"
    "What pieces of a program cost: joules of CPUs, memory and GPUs.\n\n"
    "gpus: which GPUs, \"visible\", \"0,GPU-7c1f\" and so on; None: all.\n"
    "estimate: estimates CPUs and memory without a sensor.\n"
    "cpu_watts: \"IDLE:MAX\" of all CPUs for that.\n"
    "interval: reads all devices so often, in seconds; 0: as they need.\n"
    "snippets: a CSV file that gets a row at each stop().\n"
    "mode: of that file and the files of run(): \"new\", \"overwrite\", \"append\".\n"
    "seed_format: the files have the columns of energy-measurement.\n\n"
    "A machine where nothing knows energy is no failure: the figures say why.");

static PyType_Slot slots[] = {
    { Py_tp_new, meter_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },       { Py_tp_getset, members },
    { Py_tp_doc, (void *)meter_doc }, { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Meter",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int core_add_meter(PyObject *module)
{
    energy_type = core_add_struct(module, &energy_desc);
    reading_type = core_add_struct(module, &reading_desc);
    device_type = core_add_struct(module, &device_desc);
    meter_type = core_add_type(module, &spec);
    return energy_type && reading_type && device_type && meter_type ? 0 : -1;
}
