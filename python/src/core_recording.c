/* SPDX-License-Identifier: Apache-2.0 */
/* core_recording.c - _core.Recording, a recording as columns, and _core.RegionFile. */
#include "core.h"

#include <math.h>
#include <stdlib.h>

static PyTypeObject *channel_type, *recording_type, *region_file_type;

static PyStructSequence_Field channel_fields[] = {
    { "source", "\"nvml\", \"rapl\", ..." },
    { "device", "its identity, stable across reboots" },
    { "label", "short: \"gpu0\"" },
    { "model", "what people call it; None: not known" },
    { "metric", "\"power\", \"energy\", \"utilization\", ..." },
    { "unit", "\"W\", \"J\", \"B\", \"s\", \"Hz\", \"ratio\", \"celsius\", \"count\"" },
    { "device_kind", "\"host\", \"cpu\", \"gpu\", \"tree\", \"cpu_part\", \"dram\",\n"
                     "\"platform\", \"other\"" },
    { "kind", "\"gauge\": the value now; \"counter\": a total that only grows" },
    { "origin", "\"measured\", \"estimated\" or \"simulated\"" },
    { "period", "seconds: how often the value can change; None: at any time" },
    { "sensor", "what is known of it; None: nothing" },
    { NULL, NULL },
};

static PyStructSequence_Desc channel_desc = {
    .name = "wattmeter._core.Channel",
    .doc = "A series of numbers of a recording.",
    .fields = channel_fields,
    .n_in_sequence = 11,
};

static void free_recording(void *handle)
{
    wm_recording_close(handle);
}

static PyObject *recording_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    struct wm_recording *recording;
    struct wm_error err = { 0 };
    PyObject *path;
    size_t number;
    int status;

    path = core_parse_run(args, keywords, "O&|O:Recording", &number);
    if (!path)
        return NULL;
    const char *text = PyBytes_AsString(path);
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_recording_open(text, number, &recording, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "recording", recording, free_recording, 0);
}

static PyObject *seconds_or_none(int64_t ns)
{
    if (ns == 0)
        Py_RETURN_NONE;
    return PyFloat_FromDouble((double)ns / 1e9);
}

PyObject *core_channel_new(const struct wm_channel *channel)
{
    static const char *const kinds[] = { "gauge", "counter" };
    struct core_struct fill = core_struct_begin(channel_type);

    core_struct_add(&fill, core_text(channel->source));
    core_struct_add(&fill, core_text(channel->device));
    core_struct_add(&fill, core_text(channel->label));
    core_struct_add(&fill, core_text(channel->model));
    core_struct_add(&fill, core_text(channel->metric));
    core_struct_add(&fill, core_text(channel->unit));
    core_struct_add(&fill, core_text(core_device_kinds[channel->device_kind]));
    core_struct_add(&fill, core_text(kinds[channel->kind]));
    core_struct_add(&fill, core_text(core_origins[channel->origin]));
    core_struct_add(&fill, seconds_or_none(channel->period_ns));
    core_struct_add(&fill, core_text(channel->sensor.text));
    return core_struct_end(&fill);
}

/* What has been read so far: a column per channel. */
struct table {
    size_t channels;
    size_t count, room;
    int64_t *times;
    double **values;
    unsigned char **states;
};

static void table_release(struct table *table)
{
    for (size_t i = 0; table->values && i < table->channels; i++)
        free(table->values[i]);
    for (size_t i = 0; table->states && i < table->channels; i++)
        free(table->states[i]);
    free(table->values);
    free(table->states);
    free(table->times);
}

static bool table_init(struct table *table, size_t channels)
{
    *table = (struct table) { .channels = channels };
    table->values = calloc(channels + 1, sizeof(*table->values));
    table->states = calloc(channels + 1, sizeof(*table->states));
    return table->values && table->states;
}

/* `column` with room for `count` items; false: no memory, and it is as it was. */
static bool grow(void *column, size_t count, size_t item)
{
    void **place = column;
    void *made = realloc(*place, count * item);

    if (made)
        *place = made;
    return made != NULL;
}

static bool table_grow(struct table *table)
{
    size_t room = table->room ? 2 * table->room : 1024;
    bool is_grown = grow(&table->times, room, sizeof(*table->times));

    for (size_t i = 0; is_grown && i < table->channels; i++)
        is_grown = grow(&table->values[i], room, sizeof(*table->values[i])) &&
                   grow(&table->states[i], room, sizeof(*table->states[i]));
    if (is_grown)
        table->room = room;
    return is_grown;
}

static void table_add(struct table *table, const struct wm_tick *tick)
{
    size_t row = table->count++;

    table->times[row] = tick->when_ns;
    for (size_t i = 0; i < table->channels; i++) {
        struct wm_reading reading = { .state = WM_READING_NONE };
        if (i < tick->count)
            reading = tick->readings[i];
        table->values[i][row] = reading.state == WM_READING_OK ? reading.value : NAN;
        table->states[i][row] = (unsigned char)reading.state;
    }
}

/* Up to that many ticks: 1 when there may be more, 0 past the last. */
static int read_some(struct wm_recording *recording, struct table *table, size_t ticks,
                     struct wm_error *err)
{
    struct wm_tick tick;
    int status = 1;

    for (size_t i = 0; status > 0 && i < ticks; i++) {
        status = wm_recording_next(recording, &tick, err);
        if (status <= 0)
            break;
        if (table->count == table->room && !table_grow(table)) {
            snprintf(err->text, sizeof(err->text), "no memory for all samples");
            return WM_ENOMEM;
        }
        table_add(table, &tick);
    }
    return status;
}

/* Between two batches a Ctrl-C is seen. */
static int read_all(struct wm_recording *recording, struct table *table)
{
    struct wm_error err = { 0 };
    int status;

    do {
        Py_BEGIN_ALLOW_THREADS
            status = read_some(recording, table, 65536, &err);
        Py_END_ALLOW_THREADS
        if (core_check(status, &err) < 0 || PyErr_CheckSignals() < 0)
            return -1;
    } while (status > 0);
    return 0;
}

/* What waits is little, and is there: the GIL is kept, so that one thread at a time reads.
 */
static int read_waiting(struct wm_recording *live, struct table *table)
{
    struct wm_error err = { 0 };

    return core_check(read_some(live, table, SIZE_MAX, &err), &err);
}

/* Each column is freed as soon as Python has its own, so that the two never are there as
 * wholes. */
static PyObject *give_columns(void **columns, size_t channels, size_t size,
                              const char *format)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < channels; i++) {
        if (!core_append(list, core_view(columns[i], size, format)))
            Py_CLEAR(list);
        free(columns[i]);
        columns[i] = NULL;
    }
    return list;
}

PyDoc_STRVAR(
    columns_doc,
    "columns($self, /)\n--\n\n"
    "Reads the rest of the recording: (times, values, states). `times` is a\n"
    "memoryview of int64, nanoseconds of the measured machine's monotonic clock,\n"
    "with an item per sample; `values` has a memoryview of float64 per channel, NaN\n"
    "where there is no value, and `states` one of uint8: 0 nothing yet, 1 there is\n"
    "a value, 2 unsupported, 3 denied, 4 failed, 5 stale,\n"
    "6 jumped.");

static PyObject *columns(struct wm_recording *recording,
                         int (*read)(struct wm_recording *recording, struct table *table))
{
    PyObject *result = NULL;
    struct table table;

    if (!table_init(&table, wm_recording_channel_count(recording)))
        PyErr_NoMemory();
    else if (read(recording, &table) == 0)
        result = Py_BuildValue(
            "(NNN)", core_view(table.times, table.count * sizeof(*table.times), "q"),
            give_columns((void **)table.values, table.channels,
                         table.count * sizeof(**table.values), "d"),
            give_columns((void **)table.states, table.channels, table.count, "B"));
    table_release(&table);
    return result;
}

static PyObject *recording_columns(PyObject *self, PyObject *unused)
{
    struct wm_recording *recording = core_object_enter(self);

    (void)unused;
    if (!recording)
        return NULL;
    PyObject *result = columns(recording, read_all);
    core_object_leave(self);
    return result;
}

PyObject *core_live_columns(struct wm_recording *live)
{
    return columns(live, read_waiting);
}

PyDoc_STRVAR(
    metrics_doc,
    "metrics($self, /)\n--\n\n"
    "What the program reported of itself, after columns(): a list of (name, times,\n"
    "values), of which `times` are as those of columns().");

static PyObject *metric_values(const struct wm_recording *recording, size_t index)
{
    PyObject *times = PyList_New(0), *values = PyList_New(0);
    bool is_fine = times && values;
    int64_t when_ns;
    double value;

    for (size_t i = 0;
         is_fine && wm_recording_metric_value(recording, index, i, &when_ns, &value) > 0;
         i++)
        is_fine = core_append(times, PyLong_FromLongLong(when_ns)) &&
                  core_append(values, PyFloat_FromDouble(value));
    if (is_fine)
        return Py_BuildValue("(NNN)", core_text(wm_recording_metric(recording, index)),
                             times, values);
    Py_XDECREF(times);
    Py_XDECREF(values);
    return NULL;
}

static PyObject *recording_metrics(PyObject *self, PyObject *unused)
{
    struct wm_recording *recording = core_object_enter(self);

    (void)unused;
    if (!recording)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && wm_recording_metric(recording, i); i++)
        if (!core_append(list, metric_values(recording, i)))
            Py_CLEAR(list);
    core_object_leave(self);
    return list;
}

PyDoc_STRVAR(join_meter_doc,
             "join_meter($self, path, offset_ns=0, /)\n--\n\n"
             "Adds what an external power meter saw: the columns with watts of that CSV\n"
             "file become channels, labelled \"meter\". Before columns(). The offset is\n"
             "added to its times; None: the one that fits best.");

static PyObject *join_meter(PyObject *self, PyObject *args)
{
    struct wm_recording *joined;
    struct wm_error err = { 0 };
    PyObject *path, *offset = NULL;
    int64_t offset_ns = 0;
    int status = -1;

    if (!PyArg_ParseTuple(args, "O&|O:join_meter", PyUnicode_FSConverter, &path, &offset))
        return NULL;
    if (offset)
        offset_ns = offset == Py_None ? WM_METER_OFFSET_AUTO : PyLong_AsLongLong(offset);
    if (PyErr_Occurred()) {
        Py_DECREF(path);
        return NULL;
    }
    struct wm_recording *recording = core_object_enter(self);
    if (recording) {
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
            status = wm_recording_join_meter(recording, text, offset_ns, &joined, &err);
        Py_END_ALLOW_THREADS
        if (status >= 0)
            core_slot_of(self)->handle = joined;
        core_object_leave(self);
        status = core_check(status, &err);
    }
    Py_DECREF(path);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int parse_export(PyObject *args, PyObject *keywords, PyObject **ret_path,
                        enum wm_record_mode *ret_mode)
{
    static char *names[] = { "path", "mode", NULL };
    const char *word = "new";

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|s", names, PyUnicode_FSConverter,
                                     ret_path, &word))
        return -1;
    int mode = core_choice(word, core_modes, "mode");
    if (mode < 0)
        Py_CLEAR(*ret_path);
    *ret_mode = (enum wm_record_mode)mode;
    return mode < 0 ? -1 : 0;
}

PyDoc_STRVAR(export_doc,
             "export($self, path, mode='new')\n--\n\n"
             "Writes the run, which has not been read yet, in the format that the suffix\n"
             "names (.sqlite, .csv, .json, .aipm), or to postgresql://...");

static PyObject *recording_export(PyObject *self, PyObject *args, PyObject *keywords)
{
    enum wm_record_mode mode;
    struct wm_error err = { 0 };
    PyObject *path;
    int status = -1;

    if (parse_export(args, keywords, &path, &mode) < 0)
        return NULL;
    struct wm_recording *recording = core_object_enter(self);
    if (recording) {
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
            status = wm_recording_export(recording, text, mode, &err);
        Py_END_ALLOW_THREADS
        core_object_leave(self);
        status = core_check(status, &err);
    }
    Py_DECREF(path);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    export_sub_tracking_doc,
    "export_sub_tracking($self, path, mode='new')\n--\n\n"
    "Writes the regions of the run, which has not been read yet, as gpu_tracker's\n"
    "sub-tracking file (.csv, .sqlite); how many calls without an end it lacks.\n\n"
    "Raises Error with the status \"ENODEV\" where there are no regions.");

static PyObject *export_sub_tracking(PyObject *self, PyObject *args, PyObject *keywords)
{
    enum wm_record_mode mode;
    struct wm_error err = { 0 };
    uint64_t left_out = 0;
    PyObject *path;
    int status = -1;

    if (parse_export(args, keywords, &path, &mode) < 0)
        return NULL;
    struct wm_recording *recording = core_object_enter(self);
    if (recording) {
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
            status =
                wm_recording_export_sub_tracking(recording, text, mode, &left_out, &err);
        Py_END_ALLOW_THREADS
        core_object_leave(self);
        status = core_check(status, &err);
    }
    Py_DECREF(path);
    return status < 0 ? NULL : PyLong_FromUnsignedLongLong(left_out);
}

PyObject *core_channels(const struct wm_recording *recording)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < wm_recording_channel_count(recording); i++)
        if (!core_append(list, core_channel_new(wm_recording_channel(recording, i))))
            Py_CLEAR(list);
    return list;
}

static PyObject *recording_channels(PyObject *self, void *unused)
{
    struct wm_recording *recording = core_object_enter(self);

    (void)unused;
    if (!recording)
        return NULL;
    PyObject *list = core_channels(recording);
    core_object_leave(self);
    return list;
}

static PyObject *recording_run_count(PyObject *self, void *unused)
{
    struct wm_recording *recording = core_object_enter(self);

    (void)unused;
    if (!recording)
        return NULL;
    core_object_leave(self);
    return PyLong_FromSize_t(wm_recording_run_count(recording));
}

static PyMethodDef recording_methods[] = {
    { "columns", recording_columns, METH_NOARGS, columns_doc },
    { "metrics", recording_metrics, METH_NOARGS, metrics_doc },
    { "join_meter", join_meter, METH_VARARGS, join_meter_doc },
    { "export", CORE_KEYWORDS(recording_export), export_doc },
    { "export_sub_tracking", CORE_KEYWORDS(export_sub_tracking), export_sub_tracking_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef recording_members[] = {
    { "channels", recording_channels, NULL, "Its channels.", NULL },
    { "run_count", recording_run_count, NULL, "How many runs the file holds.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(recording_doc,
             "Recording(path, run=None)\n--\n\n"
             "Run number `run` (from 0; None: the newest) of a recording of whatever\n"
             "format, or of the database postgresql://... It is read once, in one pass.\n\n"
             "Raises Error with the status \"ENOENT\", \"EFORMAT\", ...");

static PyType_Slot recording_slots[] = {
    { Py_tp_new, recording_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, recording_methods }, { Py_tp_getset, recording_members },
    { Py_tp_doc, (void *)recording_doc }, { 0, NULL },
};

static PyType_Spec recording_spec = {
    .name = "wattmeter._core.Recording",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = recording_slots,
};

static void free_region_file(void *handle)
{
    wm_region_file_close(handle);
}

static PyObject *region_file_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    enum wm_record_mode mode;
    struct wm_region_file *file;
    struct wm_error err = { 0 };
    PyObject *path;
    int status;

    if (parse_export(args, keywords, &path, &mode) < 0)
        return NULL;
    const char *text = PyBytes_AsString(path);
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_region_file_open(text, mode, &file, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "sub-tracking file", file, free_region_file,
                           CORE_MAY_FORK);
}

PyDoc_STRVAR(write_doc,
             "write($self, name, is_stop, unix_seconds=None)\n--\n\n"
             "Adds a row: that a block of code starts or stops, at that time (None:\n"
             "now). It is in the file when the call returns.");

static PyObject *region_file_write(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "name", "is_stop", "unix_seconds", NULL };
    const char *name;
    PyObject *when = Py_None;
    struct wm_error err = { 0 };
    int is_stop, status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sp|O:write", names, &name, &is_stop,
                                     &when))
        return NULL;
    double seconds = when == Py_None ? 0 : PyFloat_AsDouble(when);
    if (PyErr_Occurred())
        return NULL;
    struct wm_region_file *file = core_object_enter_shared(self);
    if (!file)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_region_file_write(file, name, is_stop,
                                      when == Py_None ? NULL : &seconds, &err);
    Py_END_ALLOW_THREADS
    core_object_leave_shared(self);
    if (core_check(status, &err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *region_file_close(PyObject *self, PyObject *unused)
{
    struct wm_region_file *file = core_object_take(self);

    (void)unused;
    if (!file && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        wm_region_file_close(file);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef region_file_methods[] = {
    { "write", CORE_KEYWORDS(region_file_write), write_doc },
    { "close", region_file_close, METH_NOARGS,
      "close($self, /)\n--\n\nCloses it; once more it does nothing." },
    { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(
    region_file_doc,
    "RegionFile(path, mode='new')\n--\n\n"
    "A sub-tracking file of gpu_tracker's (.csv, .sqlite). Several processes, forked\n"
    "ones too, and threads may write to one file.");

static PyType_Slot region_file_slots[] = {
    { Py_tp_new, region_file_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, region_file_methods },
    { Py_tp_doc, (void *)region_file_doc },
    { 0, NULL },
};

static PyType_Spec region_file_spec = {
    .name = "wattmeter._core.RegionFile",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = region_file_slots,
};

int core_add_recording(PyObject *module)
{
    channel_type = core_add_struct(module, &channel_desc);
    recording_type = core_add_type(module, &recording_spec);
    region_file_type = core_add_type(module, &region_file_spec);
    return channel_type && recording_type && region_file_type ? 0 : -1;
}
