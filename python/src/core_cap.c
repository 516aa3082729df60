/* SPDX-License-Identifier: Apache-2.0 */
/* core_cap.c - _core.Caps, power caps and sessions that put them back, as cap.h has it. */
#include "core.h"

#include <math.h>
#include <stdlib.h>

static PyTypeObject *setting_type, *caps_type;

struct caps {
    struct wm_caps *caps;
    struct wm_cap_session *session; /* NULL: none has begun */
};

static PyStructSequence_Field setting_fields[] = {
    { "kind", "\"gpu_power\", \"gpu_clock\" or \"cpu_power\"" },
    { "device", "\"gpu0\", \"card1\", \"cpu_package0\"" },
    { "name", "of the product; \"\": not known" },
    { "identity", "the same after a restart" },
    { "value", "W or Hz, as it was set last; None: not known" },
    { "enforced", "what holds" },
    { "default", "after a reset" },
    { "minimum", "that can be set" },
    { "maximum", "that can be set" },
    { "drawn", "W, of the device" },
    { "why", "why `value` is not known; None where it is" },
    { NULL, NULL },
};

static PyStructSequence_Desc setting_desc = {
    .name = "wattmeter._core.CapSetting",
    .doc = "What can be capped, and how it is.",
    .fields = setting_fields,
    .n_in_sequence = 11,
};

static void free_caps(void *handle)
{
    struct caps *caps = handle;

    wm_cap_session_end(caps->session, NULL);
    wm_caps_close(caps->caps);
    free(caps);
}

static PyObject *caps_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { NULL };
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, ":Caps", names))
        return NULL;
    struct caps *caps = calloc(1, sizeof(*caps));
    if (!caps)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
        status = wm_caps_open(NULL, &caps->caps, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0) {
        free(caps);
        return NULL;
    }
    return core_object_new(type, "caps", caps, free_caps, CORE_ENDS_FIRST);
}

static PyObject *number_of(const struct wm_gpu_value *value)
{
    if (value->state == WM_READING_OK)
        return PyFloat_FromDouble(value->number);
    Py_RETURN_NONE;
}

static PyObject *setting_new(const struct wm_cap_setting *setting)
{
    struct core_struct fill = core_struct_begin(setting_type);
    bool is_known = setting->value.state == WM_READING_OK;

    core_struct_add(&fill, core_text(wm_cap_kind_name(setting->kind)));
    core_struct_add(&fill, core_text(setting->device));
    core_struct_add(&fill, core_text(setting->name));
    core_struct_add(&fill, core_text(setting->identity));
    core_struct_add(&fill, number_of(&setting->value));
    core_struct_add(&fill, number_of(&setting->enforced));
    core_struct_add(&fill, number_of(&setting->default_value));
    core_struct_add(&fill, number_of(&setting->minimum));
    core_struct_add(&fill, number_of(&setting->maximum));
    core_struct_add(&fill, number_of(&setting->drawn));
    core_struct_add(&fill, core_text(is_known ? NULL : setting->value.why));
    return core_struct_end(&fill);
}

PyDoc_STRVAR(settings_doc,
             "settings($self, /)\n--\n\n"
             "All that can be capped, a list of CapSetting, by the last reading.");

static PyObject *caps_settings(PyObject *self, PyObject *unused)
{
    const struct caps *caps = core_object_enter(self);
    PyObject *list = caps ? PyList_New(0) : NULL;
    (void)unused;

    for (size_t i = 0; list && i < wm_caps_count(caps->caps); i++) {
        struct wm_cap_setting setting;
        wm_caps_get(caps->caps, i, &setting);
        if (!core_append(list, setting_new(&setting)))
            Py_CLEAR(list);
    }
    if (caps)
        core_object_leave(self);
    return list;
}

static PyObject *caps_refresh(PyObject *self, PyObject *unused)
{
    struct caps *caps = core_object_enter(self);
    struct wm_error err = { 0 };
    int status;
    (void)unused;

    if (!caps)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_caps_refresh(caps->caps, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(parse_doc,
             "parse($self, words, /)\n--\n\n"
             "The caps that \"250W\", \"80%\" or \"0=200W,cpu=90W\" mean: a list of\n"
             "pairs, which of settings() and how much.");

static PyObject *caps_parse(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    size_t count = 0;
    const char *words;
    PyObject *list = NULL;

    if (!PyArg_ParseTuple(args, "s:parse", &words))
        return NULL;
    const struct caps *caps = core_object_enter(self);
    if (!caps)
        return NULL;
    struct wm_cap_wish *wishes = calloc(wm_caps_count(caps->caps) + 1, sizeof(*wishes));
    if (!wishes)
        PyErr_NoMemory();
    else if (core_check(wm_caps_parse(caps->caps, words, wishes, &count, &err), &err) == 0)
        list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        if (!core_append(
                list, Py_BuildValue("(nd)", (Py_ssize_t)wishes[i].index, wishes[i].value)))
            Py_CLEAR(list);
    }
    free(wishes);
    core_object_leave(self);
    return list;
}

/* The handle, entered; NULL and an exception where the index is that of no setting. */
static struct caps *enter_at(PyObject *self, Py_ssize_t index)
{
    struct caps *caps = core_object_enter(self);

    if (caps && (index < 0 || (size_t)index >= wm_caps_count(caps->caps))) {
        PyErr_SetString(PyExc_IndexError, "there is no such setting");
        core_object_leave(self);
        return NULL;
    }
    return caps;
}

PyDoc_STRVAR(set_doc, "set($self, index, value, /)\n--\n\n"
                      "Sets it until somebody sets something else.");

static PyObject *caps_set(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    Py_ssize_t index;
    double value;
    int status;

    if (!PyArg_ParseTuple(args, "nd:set", &index, &value))
        return NULL;
    struct caps *caps = enter_at(self, index);
    if (!caps)
        return NULL;
    const struct wm_cap_wish wish = { (size_t)index, value };
    Py_BEGIN_ALLOW_THREADS
        status = wm_caps_set(caps->caps, &wish, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

static PyObject *caps_reset(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    Py_ssize_t index;
    int status;

    if (!PyArg_ParseTuple(args, "n:reset", &index))
        return NULL;
    struct caps *caps = enter_at(self, index);
    if (!caps)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_caps_reset(caps->caps, (size_t)index, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(
    restore_doc,
    "restore($self, index, /)\n--\n\n"
    "Restores the value from before wattmeter's changes, if the journal has it:\n"
    "\"nothing\", \"put back\", \"back\" (it was there already) or \"by another\".");

static PyObject *caps_restore(PyObject *self, PyObject *args)
{
    static const char *const outcomes[] = {
        [WM_CAP_NOTHING] = "nothing",
        [WM_CAP_PUT_BACK] = "put back",
        [WM_CAP_BACK] = "back",
        [WM_CAP_BY_ANOTHER] = "by another",
    };
    enum wm_cap_restored restored = WM_CAP_NOTHING;
    struct wm_error err = { 0 };
    Py_ssize_t index;
    int status;

    if (!PyArg_ParseTuple(args, "n:restore", &index))
        return NULL;
    struct caps *caps = enter_at(self, index);
    if (!caps)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_caps_restore(caps->caps, (size_t)index, &restored, NULL, &err);
    Py_END_ALLOW_THREADS
    core_object_leave(self);
    return core_check(status, &err) < 0 ? NULL : core_text(outcomes[restored]);
}

PyDoc_STRVAR(hold_doc,
             "hold($self, index, value, /)\n--\n\n"
             "Sets it until end(), or until this process is gone, whatever ends it.");

static int hold(struct caps *caps, size_t index, double value, struct wm_error *err)
{
    int status = WM_OK;

    if (!caps->session)
        status = wm_cap_session_begin(caps->caps, "python", NULL, &caps->session, err);
    return status < 0 ? status : wm_cap_session_set(caps->session, index, value, err);
}

static PyObject *caps_hold(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    Py_ssize_t index;
    double value;
    int status;

    if (!PyArg_ParseTuple(args, "nd:hold", &index, &value))
        return NULL;
    struct caps *caps = enter_at(self, index);
    if (!caps)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = hold(caps, (size_t)index, value, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(check_doc, "check($self, /)\n--\n\n"
                        "An Error where what is held does not hold any more, since its\n"
                        "guardian was killed again and again; all is put back then.");

static PyObject *caps_check(PyObject *self, PyObject *unused)
{
    struct caps *caps = core_object_enter(self);
    struct wm_error err = { 0 };
    int status = WM_OK;
    (void)unused;

    if (!caps)
        return NULL;
    if (caps->session)
        status = wm_cap_session_check(caps->session, &err);
    return core_object_return(self, status, &err);
}

PyDoc_STRVAR(end_doc,
             "end($self, /)\n--\n\n"
             "Restores the previous values of all that is held. An Error\n"
             "\"ECANCELED\" names devices that another program has changed meanwhile.");

static PyObject *caps_end(PyObject *self, PyObject *unused)
{
    struct caps *caps = core_object_enter(self);
    struct wm_error err = { 0 };
    int status;
    (void)unused;

    if (!caps)
        return NULL;
    struct wm_cap_session *session = caps->session;
    caps->session = NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_cap_session_end(session, &err);
    Py_END_ALLOW_THREADS
    return core_object_return(self, status, &err);
}

static PyMethodDef methods[] = {
    { "settings", caps_settings, METH_NOARGS, settings_doc },
    { "refresh", caps_refresh, METH_NOARGS,
      "refresh($self, /)\n--\n\nReads everything again." },
    { "parse", caps_parse, METH_VARARGS, parse_doc },
    { "set", caps_set, METH_VARARGS, set_doc },
    { "reset", caps_reset, METH_VARARGS,
      "reset($self, index, /)\n--\n\nSets it to its default." },
    { "restore", caps_restore, METH_VARARGS, restore_doc },
    { "hold", caps_hold, METH_VARARGS, hold_doc },
    { "check", caps_check, METH_NOARGS, check_doc },
    { "end", caps_end, METH_NOARGS, end_doc },
    { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(caps_doc,
             "Caps()\n--\n\n"
             "What can be capped on this machine: power of GPUs and CPU packages, and\n"
             "clocks of GPUs.");

static PyType_Slot slots[] = {
    { Py_tp_new, caps_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, (void *)caps_doc },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Caps",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_cap(PyObject *module)
{
    setting_type = core_add_struct(module, &setting_desc);
    caps_type = setting_type ? core_add_type(module, &spec) : NULL;
    return caps_type ? 0 : -1;
}
