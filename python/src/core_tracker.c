/* SPDX-License-Identifier: Apache-2.0 */
/* core_tracker.c - _core.Tracker, as tracker.h has it. */
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static PyTypeObject *tracker_type;

/* A tracker's state is an enum wm_tracker_state, or this. */
enum { IN_THREAD = WM_TRACKER_STOPPED + 1, STOPPING };

static const char *const state_names[] = { "new",     "running", "ended",
                                           "stopped", "running", "running" };

static void free_tracker(void *handle)
{
    wm_tracker_free(handle);
}

static void end_tracker(void *handle)
{
    wm_tracker_stop(handle, NULL);
}

static PyObject *tracker_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {
        "interval",   "gpus",     "cores",           "baseline", "cpu_watts",
        "visible_to", "wait_all", "baseline_anyway", "silent",   "wait_for_drivers",
        "channels",   NULL
    };
    struct wm_tracker_options options = { 0 };
    double interval = 0.1, baseline = 0;
    int wait_all = 0, anyway = 0, silent = 0, patient = 0;
    struct wm_tracker *tracker;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(
            args, keywords, "|$dzddzippppz:Tracker", names, &interval, &options.gpus,
            &options.expected_cores, &baseline, &options.cpu_watts, &options.visible_to,
            &wait_all, &anyway, &silent, &patient, &options.channels))
        return NULL;
    options.silent = silent;
    options.wait_for_drivers = patient;
    options.wait_all = wait_all;
    options.interval_ns = core_ns(interval);
    options.baseline_ns = core_ns(baseline);
    options.baseline_anyway = anyway;
    if (options.interval_ns == 0 || isnan(interval)) { /* 0: as usual, to the library */
        PyErr_Format(PyExc_ValueError, "an interval of %s s is not between 1 ms and 1 h",
                     isnan(interval) ? "nan" : "0");
        return NULL;
    }
    if (core_check(wm_tracker_new(&options, &tracker, &err), &err) < 0)
        return NULL;
    PyObject *self =
        core_object_new(type, "tracker", tracker, free_tracker, CORE_ENDS_FIRST);
    if (self)
        core_slot_of(self)->end = end_tracker;
    return self;
}

PyDoc_STRVAR(
    as_gpu_tracker_doc,
    "as_gpu_tracker(sleep_time, cores, gpus, brand, ram_unit, gpu_ram_unit, time_unit,\n"
    "               tracking_file, overwrite, /)\n--\n\n"
    "A tracker of the machine and of the GPUs that gpu_tracker would choose, and the\n"
    "messages for its user, a line each.\n\n"
    "Raises ValueError for a wrong choice, and Error with the status \"ENODEV\" where\n"
    "there is no GPU of the brand, \"EEXIST\" where the tracking file exists.");

/* `said` is the text of a stream that is closed. */
static PyObject *chosen_tracker(int status, struct wm_tracker *tracker, char *said)
{
    if (status < 0) {
        said[strcspn(said, "\n")] = '\0';
        core_fail(status, said);
        return NULL;
    }
    PyObject *self =
        core_object_new(tracker_type, "tracker", tracker, free_tracker, CORE_ENDS_FIRST);
    if (!self)
        return NULL;
    core_slot_of(self)->end = end_tracker;
    return Py_BuildValue("(NN)", self, core_text(said));
}

static PyObject *tracker_as_gpu_tracker(PyObject *unused, PyObject *args)
{
    struct wm_tracker_options options = { 0 };
    struct wm_gpu_tracker_options own = { 0 };
    struct wm_tracker *tracker = NULL;
    PyObject *file, *path = NULL;
    char *text = NULL;
    int overwrite;
    size_t size;
    int status;

    (void)unused;
    if (!PyArg_ParseTuple(args, "sdzzsssOp:as_gpu_tracker", &own.sleep_time,
                          &options.expected_cores, &options.gpus, &own.brand, &own.ram_unit,
                          &own.gpu_ram_unit, &own.time_unit, &file, &overwrite) ||
        (file != Py_None && !PyUnicode_FSConverter(file, &path)))
        return NULL;
    own.tracking_file = path ? PyBytes_AsString(path) : NULL;
    own.overwrite = overwrite;
    FILE *said = open_memstream(&text, &size);
    if (!said) {
        Py_XDECREF(path);
        return PyErr_NoMemory();
    }
    core_share_sqlite();
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_new_as_gpu_tracker(&options, &own, said, &tracker);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (fclose(said) == 0) {
        result = chosen_tracker(status, tracker, text);
    } else {
        wm_tracker_free(tracker);
        PyErr_NoMemory();
    }
    free(text);
    Py_XDECREF(path);
    return result;
}

/* Of a tracker that takes its ticks in a thread, nothing but stop(), signal() and report()
 * may be called. */
static struct wm_tracker *enter(PyObject *self)
{
    struct wm_tracker *tracker = core_object_enter(self);
    int state = tracker ? core_slot_of(self)->state : 0;

    if (state == IN_THREAD || state == STOPPING) {
        core_object_leave(self);
        PyErr_SetString(PyExc_ValueError,
                        state == STOPPING
                            ? "this tracker is being stopped"
                            : "this tracker works in a separate thread: stop it first");
        return NULL;
    }
    return tracker;
}

PyDoc_STRVAR(add_doc,
             "add($self, source, /)\n--\n\n"
             "Adds a source by its name (\"nvml\", \"rapl\", ...), before the start.\n\n"
             "Raises Error with the status \"ENODEV\" where this machine does not have\n"
             "it, which the report says as well, and ValueError for a wrong choice of\n"
             "GPUs.");

static PyObject *tracker_add(PyObject *self, PyObject *args)
{
    const char *name;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTuple(args, "s:add", &name))
        return NULL;
    struct wm_tracker *tracker = enter(self);
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_add(tracker, name, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(add_all_doc,
             "add_all($self, /)\n--\n\n"
             "Adds every source of this build. The report lists missing ones.\n\n"
             "Raises ValueError for a wrong choice of GPUs, with a list of the GPUs.");

static PyObject *tracker_add_all(PyObject *self, PyObject *unused)
{
    struct wm_tracker *tracker = enter(self);
    struct wm_error err = { 0 };
    int status;

    (void)unused;
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_add_all(tracker, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(note_doc, "note($self, key, value, /)\n--\n\n"
                       "Keeps a note with the run: in its report and its recording.");

static PyObject *tracker_note(PyObject *self, PyObject *args)
{
    const char *key, *value;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTuple(args, "ss:note", &key, &value))
        return NULL;
    struct wm_tracker *tracker = enter(self);
    return tracker
               ? core_object_return(self, wm_tracker_note(tracker, key, value, &err), &err)
               : NULL;
}

PyDoc_STRVAR(record_doc,
             "record($self, target, mode='new')\n--\n\n"
             "Records the run to `target`: a file whose suffix names the format (.sqlite,\n"
             ".csv), or a database postgresql://...\n\n"
             "mode: what may happen to a file that is there: \"new\" leaves it alone\n"
             "(Error, status \"EEXIST\"), \"overwrite\", \"append\" (SQLite only).");

static PyObject *tracker_record(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "target", "mode", NULL };
    PyObject *target;
    const char *word = "new";
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|s:record", names,
                                     PyUnicode_FSConverter, &target, &word))
        return NULL;
    int mode = core_choice(word, core_modes, "mode");
    struct wm_tracker *tracker = mode < 0 ? NULL : enter(self);
    PyObject *result = NULL;
    if (tracker) {
        const char *text = PyBytes_AsString(target);
        core_share_sqlite();
        Py_BEGIN_ALLOW_THREADS
            status = wm_tracker_record(tracker, text, (enum wm_record_mode)mode, &err);
        Py_END_ALLOW_THREADS
        result = core_object_return(self, status, &err);
    }
    Py_DECREF(target);
    return result;
}

PyDoc_STRVAR(experiment_doc,
             "experiment($self, target, name, description=None, model_card=None)\n--\n\n"
             "Records the run as one more of the experiment `name` at `target`: an SQLite\n"
             "recording, a folder for AIPowerMeter's, or postgresql://...\n\n"
             "model_card: path of a JSON file that is kept with it.");

static PyObject *tracker_experiment(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "target", "name", "description", "model_card", NULL };
    struct wm_experiment_setup setup = { 0 };
    PyObject *target, *card = NULL;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&s|zO:experiment", names,
                                     PyUnicode_FSConverter, &target, &setup.name,
                                     &setup.description, &card))
        return NULL;
    PyObject *path = NULL, *result = NULL;
    setup.target = PyBytes_AsString(target);
    bool is_fine = !card || card == Py_None || PyUnicode_FSConverter(card, &path);
    setup.model_card = path ? PyBytes_AsString(path) : NULL;
    struct wm_tracker *tracker = is_fine ? enter(self) : NULL;
    if (tracker) {
        core_share_sqlite();
        Py_BEGIN_ALLOW_THREADS
            status = wm_tracker_experiment(tracker, &setup, &err);
        Py_END_ALLOW_THREADS
        result = core_object_return(self, status, &err);
    }
    Py_XDECREF(path);
    Py_DECREF(target);
    return result;
}

PyDoc_STRVAR(metrics_doc,
             "metrics($self, path, /)\n--\n\n"
             "Reads that file when the tracker is stopped: a JSON object per line with\n"
             "\"time\" (seconds since 1970, or RFC 3339) and numbers of any name, which\n"
             "are kept with the recording.");

static PyObject *tracker_metrics(PyObject *self, PyObject *args)
{
    PyObject *path;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTuple(args, "O&:metrics", PyUnicode_FSConverter, &path))
        return NULL;
    struct wm_tracker *tracker = enter(self);
    PyObject *result = NULL;
    if (tracker)
        result = core_object_return(
            self, wm_tracker_metrics(tracker, PyBytes_AsString(path), &err), &err);
    Py_DECREF(path);
    return result;
}

PyDoc_STRVAR(
    log_doc,
    "log($self, name, value, when_ns=0, /)\n--\n\n"
    "Keeps a number of the program with the recording, at that time.monotonic_ns()\n"
    "or, with 0, now. Any thread may call it, between start and stop.");

static PyObject *tracker_log(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    const char *name;
    double value;
    long long when_ns = 0;

    if (!PyArg_ParseTuple(args, "sd|L:log", &name, &value, &when_ns))
        return NULL;
    struct wm_tracker *tracker = core_object_enter_shared(self);
    if (!tracker)
        return NULL;
    int status = wm_tracker_log(tracker, name, value, when_ns, &err);
    core_object_leave_shared(self);
    if (core_check(status, &err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave_start(PyObject *self, int status, const struct wm_error *err)
{
    if (status >= 0)
        core_slot_of(self)->state = WM_TRACKER_RUNNING;
    return core_object_return(self, status, err);
}

PyDoc_STRVAR(start_self_doc,
             "start_self($self, /)\n--\n\n"
             "Starts on this process and its descendants, and listens to its regions.\n"
             "What the tracker uses itself is taken out.");

static PyObject *tracker_start_self(PyObject *self, PyObject *unused)
{
    struct wm_tracker *tracker = enter(self);
    struct wm_error err = { 0 };
    int status;

    (void)unused;
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_start(tracker, NULL, &err);
    Py_END_ALLOW_THREADS
    return leave_start(self, status, &err);
}

PyDoc_STRVAR(
    start_pid_doc,
    "start_pid($self, pid, /, *more)\n--\n\n"
    "Starts on a process that runs already, and on its descendants; or on several\n"
    "such together.\n\n"
    "Raises Error with the status \"ENOENT\" if there is no such process.");

/* The numbers of `args`, which the caller frees; NULL and an exception: they are none. */
static pid_t *parse_pids(PyObject *args, size_t *ret_count)
{
    size_t count = (size_t)PyTuple_Size(args);
    pid_t *pids = PyMem_Malloc((count + 1) * sizeof(*pids));

    if (!pids)
        PyErr_NoMemory();
    for (size_t i = 0; pids && i < count; i++) {
        PyObject *given = PyTuple_GetItem(args, (Py_ssize_t)i);
        long pid = PyLong_AsLong(given);
        pids[i] = (pid_t)pid;
        if (!PyErr_Occurred() && (pid <= 0 || pid > INT32_MAX))
            PyErr_Format(PyExc_ValueError, "%S is no process", given);
        if (PyErr_Occurred()) {
            PyMem_Free(pids);
            pids = NULL;
        }
    }
    *ret_count = count;
    return pids;
}

static PyObject *tracker_start_pid(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    size_t count;
    int status;

    pid_t *pids = parse_pids(args, &count);
    if (!pids)
        return NULL;
    struct wm_tracker *tracker = enter(self);
    PyObject *result = NULL;
    if (tracker) {
        const struct wm_tracker_target target = { .pids = pids, .pid_count = count };
        Py_BEGIN_ALLOW_THREADS
            status = wm_tracker_start(tracker, &target, &err);
        Py_END_ALLOW_THREADS
        result = leave_start(self, status, &err);
    }
    PyMem_Free(pids);
    return result;
}

PyDoc_STRVAR(start_command_doc,
             "start_command($self, argv, folder=None, environment=None, /)\n--\n\n"
             "Starts a command, whose first word is looked up in PATH, and sampling.\n"
             "folder: its working directory; environment: a list of \"NAME=value\".\n\n"
             "Raises Error, \"ENOENT\" where there is no such command and \"EACCES\"\n"
             "where it cannot be executed; on any failure it has not run.");

/* NULL and an exception where that fails. */
static PyObject *start_command(PyObject *self, const struct core_texts *argv,
                               const char *folder, const struct core_texts *environment)
{
    const struct wm_tracker_target target = {
        .argv = (char *const *)argv->texts,
        .folder = folder,
        .environment = environment ? (char *const *)environment->texts : NULL,
    };
    struct wm_tracker *tracker = enter(self);
    struct wm_error err = { 0 };
    int status;

    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_start(tracker, &target, &err);
    Py_END_ALLOW_THREADS
    return leave_start(self, status, &err);
}

static PyObject *tracker_start_command(PyObject *self, PyObject *args)
{
    PyObject *words, *place = Py_None, *variables = Py_None, *folder = NULL, *result = NULL;
    struct core_texts argv = { 0 }, environment = { 0 };

    if (!PyArg_ParseTuple(args, "O|OO:start_command", &words, &place, &variables) ||
        (place != Py_None && !PyUnicode_FSConverter(place, &folder)))
        return NULL;
    bool is_given = variables != Py_None;
    if (core_texts_init(&argv, words, "a command") == 0) {
        if (!is_given || core_texts_init(&environment, variables, "an environment") == 0)
            result = start_command(self, &argv, folder ? PyBytes_AsString(folder) : NULL,
                                   is_given ? &environment : NULL);
        core_texts_release(&environment);
    }
    core_texts_release(&argv);
    Py_XDECREF(folder);
    return result;
}

PyDoc_STRVAR(run_thread_doc, "run_thread($self, /)\n--\n\n"
                             "Samples in a thread of the library's own, which never\n"
                             "needs the GIL, until stop().");

static PyObject *tracker_run_thread(PyObject *self, PyObject *unused)
{
    struct wm_tracker *tracker = enter(self);
    struct wm_error err = { 0 };

    (void)unused;
    if (!tracker)
        return NULL;
    int status = wm_tracker_run_thread(tracker, &err);
    if (status >= 0)
        core_slot_of(self)->state = IN_THREAD;
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(
    poll_doc,
    "poll($self, timeout=None)\n--\n\n"
    "Waits for the next sample that is due, the end of the target, a signal or\n"
    "`timeout` seconds (None: no limit), whichever is first, and takes the sample.\n"
    "False when the target has ended, so that stop() is due.");

static PyObject *tracker_poll(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "timeout", NULL };
    PyObject *timeout = Py_None;
    int timeout_ms = -1, state;
    struct wm_error err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:poll", names, &timeout))
        return NULL;
    if (timeout != Py_None) {
        int64_t ns = core_ns(PyFloat_AsDouble(timeout));
        if (PyErr_Occurred())
            return NULL;
        timeout_ms = ns < 0 ? 0 : ns / 1000000 > INT32_MAX ? -1 : (int)(ns / 1000000);
    }
    struct wm_tracker *tracker = enter(self);
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        state = wm_tracker_poll(tracker, timeout_ms, &err);
    Py_END_ALLOW_THREADS
    core_object_leave(self);
    if (core_check(state, &err) < 0)
        return NULL;
    core_slot_of(self)->state = state;
    if (PyErr_CheckSignals() < 0)
        return NULL;
    return PyBool_FromLong(state == WM_TRACKER_RUNNING);
}

PyDoc_STRVAR(signal_doc,
             "signal($self, number, /)\n--\n\n"
             "Sends a signal to the target while it certainly is the target.\n\n"
             "Raises Error with the status \"ENOENT\" when it is gone.");

static PyObject *tracker_signal(PyObject *self, PyObject *args)
{
    int number;
    const struct wm_error gone = { .text = "the process is gone" };

    if (!PyArg_ParseTuple(args, "i:signal", &number))
        return NULL;
    struct wm_tracker *tracker = core_object_enter_shared(self);
    if (!tracker)
        return NULL;
    int status = wm_tracker_signal(tracker, number);
    core_object_leave_shared(self);
    if (core_check(status, &gone) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_doc,
             "stop($self, /)\n--\n\n"
             "Takes the last sample and ends the recording. Once more it does nothing,\n"
             "but waits for the end of another thread's.\n\n"
             "Raises Error with the status \"EIO\" when the recording lacks something;\n"
             "the report is whole, and says so.");

static PyObject *tracker_stop(PyObject *self, PyObject *unused)
{
    struct core_slot *slot = core_slot_of(self);
    struct wm_tracker *tracker = core_object_enter_beside(self);
    struct wm_error err = { 0 };
    int status;

    (void)unused;
    if (!tracker)
        return NULL;
    if (slot->state != WM_TRACKER_NEW && slot->state != WM_TRACKER_STOPPED)
        slot->state = STOPPING;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_stop(tracker, &err);
    Py_END_ALLOW_THREADS
    if (status != WM_EINVAL)
        slot->state = WM_TRACKER_STOPPED;
    core_object_leave_shared(self);
    if (core_check(status, &err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(report_doc,
             "report($self, /)\n--\n\n"
             "The Report of a stopped tracker, or of one that runs as of its last\n"
             "sample; ValueError before the start. Any thread may ask for it.");

static PyObject *tracker_report(PyObject *self, PyObject *unused)
{
    struct wm_report *report;
    struct wm_error err = { 0 };
    int status;

    (void)unused;
    if (core_slot_of(self)->state == WM_TRACKER_NEW) { /* maybe it is being started */
        core_fail(WM_EINVAL, "there is no report before the tracker's start");
        return NULL;
    }
    struct wm_tracker *tracker = core_object_enter_shared(self);
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_report(tracker, &report, &err);
    Py_END_ALLOW_THREADS
    core_object_leave_shared(self);
    return core_check(status, &err) < 0 ? NULL : core_report_new(report);
}

/* The samples as they are taken; NULL, and an exception, where there are none. Until it is
 * left. */
static struct wm_recording *enter_live(PyObject *self)
{
    struct wm_recording *live = NULL;
    struct wm_error err = { 0 };
    int status;

    if (core_slot_of(self)->state == WM_TRACKER_NEW) {
        core_fail(WM_EINVAL, "there are no samples before the tracker's start");
        return NULL;
    }
    struct wm_tracker *tracker = core_object_enter_shared(self);
    if (!tracker)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_tracker_live(tracker, &live, &err);
    Py_END_ALLOW_THREADS
    if (status < 0)
        core_object_leave_shared(self);
    return core_check(status, &err) < 0 ? NULL : live;
}

PyDoc_STRVAR(
    samples_doc,
    "samples($self, /)\n--\n\n"
    "Those that were taken since the last call, from the first call on, as\n"
    "Recording.columns() has them, in the order of `channels`. About 1 MB waits\n"
    "for it, of which the oldest go first. ValueError before the start, and until\n"
    "late drivers of GPUs have answered. Any thread may ask for them.");

static PyObject *tracker_samples(PyObject *self, PyObject *unused)
{
    struct wm_recording *live = enter_live(self);

    (void)unused;
    if (!live)
        return NULL;
    PyObject *columns = core_live_columns(live);
    core_object_leave_shared(self);
    return columns;
}

static PyObject *tracker_channels(PyObject *self, void *unused)
{
    struct wm_recording *live = enter_live(self);

    (void)unused;
    if (!live)
        return NULL;
    PyObject *channels = core_channels(live);
    core_object_leave_shared(self);
    return channels;
}

static PyObject *tracker_pid(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(wm_tracker_pid(core_slot_of(self)->handle));
}

static PyObject *tracker_exit_code(PyObject *self, void *unused)
{
    int code = wm_tracker_exit_code(core_slot_of(self)->handle);

    (void)unused;
    if (code < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(code);
}

static PyObject *tracker_regions(PyObject *self, void *unused)
{
    struct wm_tracker *tracker = enter(self);

    (void)unused;
    if (!tracker)
        return NULL;
    core_object_leave(self);
    return core_text(wm_tracker_regions(tracker));
}

static PyObject *tracker_state(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(state_names[core_slot_of(self)->state]);
}

static PyMethodDef methods[] = {
    { "as_gpu_tracker", tracker_as_gpu_tracker, METH_VARARGS | METH_STATIC,
      as_gpu_tracker_doc },
    { "add", tracker_add, METH_VARARGS, add_doc },
    { "add_all", tracker_add_all, METH_NOARGS, add_all_doc },
    { "note", tracker_note, METH_VARARGS, note_doc },
    { "record", CORE_KEYWORDS(tracker_record), record_doc },
    { "experiment", CORE_KEYWORDS(tracker_experiment), experiment_doc },
    { "metrics", tracker_metrics, METH_VARARGS, metrics_doc },
    { "log", tracker_log, METH_VARARGS, log_doc },
    { "start_self", tracker_start_self, METH_NOARGS, start_self_doc },
    { "start_pid", tracker_start_pid, METH_VARARGS, start_pid_doc },
    { "start_command", tracker_start_command, METH_VARARGS, start_command_doc },
    { "run_thread", tracker_run_thread, METH_NOARGS, run_thread_doc },
    { "poll", CORE_KEYWORDS(tracker_poll), poll_doc },
    { "signal", tracker_signal, METH_VARARGS, signal_doc },
    { "stop", tracker_stop, METH_NOARGS, stop_doc },
    { "report", tracker_report, METH_NOARGS, report_doc },
    { "samples", tracker_samples, METH_NOARGS, samples_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "channels", tracker_channels, NULL, "The channels of samples().", NULL },
    { "pid", tracker_pid, NULL, "The process it was started on; 0 before the start.",
      NULL },
    { "exit_code", tracker_exit_code, NULL,
      "The command's exit status, or 128 plus the signal that killed it; None: not known.",
      NULL },
    { "regions", tracker_regions, NULL,
      "What programs that the target starts need as WATTMETER_REGIONS; None: there are no\n"
      "regions. Before run_thread().",
      NULL },
    { "state", tracker_state, NULL, "\"new\", \"running\", \"ended\" or \"stopped\".",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    tracker_doc,
    "Tracker(*, interval=0.1, gpus=None, cores=0.0, baseline=0.0, cpu_watts=None, "
    "visible_to=0, wait_all=False, baseline_anyway=False, silent=False, "
    "wait_for_drivers=False, channels=None)\n--\n\n"
    "A run: what a process tree uses, sampled from start to stop.\n\n"
    "interval: seconds between two samples, 0.001 to 3600.\n"
    "gpus: which GPUs, \"visible\", \"0,GPU-7c1f\" and so on; None: all.\n"
    "channels: more to record of each GPU, \"all\" or \"fan,clock_graphics\".\n"
    "cores: how many cores are 100 % of the hardware's CPU use; 0: all.\n"
    "baseline: seconds for which the idle machine is measured before a command starts.\n"
    "baseline_anyway: it counts though the machine was busy for more than 5 % of it.\n"
    "cpu_watts: \"IDLE:MAX\", for the estimate where nothing measures the CPUs.\n"
    "silent: the standard input, output and error of a command are /dev/null.\n"
    "wait_for_drivers: the sources of slow ones are waited for.\n"
    "visible_to: the process whose environment decides what \"visible\" means; 0: this.\n\n"
    "It is started once, and after a fork it is the parent's. Arguments out of range\n"
    "raise ValueError.");

static PyType_Slot slots[] = {
    { Py_tp_new, tracker_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },         { Py_tp_getset, members },
    { Py_tp_doc, (void *)tracker_doc }, { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Tracker",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int core_add_tracker(PyObject *module)
{
    tracker_type = core_add_type(module, &spec);
    return tracker_type ? 0 : -1;
}
