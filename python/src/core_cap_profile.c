/* SPDX-License-Identifier: Apache-2.0 */
/* core_cap_profile.c - _core.CapProfile, which measures caps, as cap_search.h has it. */
#include "core.h"

static PyTypeObject *profile_type;

static void free_profile(void *handle)
{
    wm_cap_profile_close(handle, NULL);
}

static PyObject *profile_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {
        "gpus", "objective", "max_slowdown", "probes", "window", NULL
    };
    static const char *const objectives[] = { "energy", "edp", "ed2p", "cost", NULL };
    struct wm_cap_profile_options options = { 0 };
    struct wm_cap_profile *profile;
    struct wm_error err = { 0 };
    const char *objective = "energy";
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|sdId:CapProfile", names,
                                     &options.gpus, &objective, &options.plan.max_slowdown,
                                     &options.plan.probes, &options.window_s))
        return NULL;
    int chosen = core_choice(objective, objectives, "objective");
    if (chosen < 0)
        return NULL;
    options.plan.objective = (enum wm_cap_objective)chosen;
    Py_BEGIN_ALLOW_THREADS
        status = wm_cap_profile_open(&options, &profile, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "profile", profile, free_profile, CORE_ENDS_FIRST);
}

PyDoc_STRVAR(
    step_doc,
    "step($self, units, /)\n--\n\n"
    "Goes on after `units` of work since the last call. Returns lines for people,\n"
    "often \"\", or None if the search is done.");

static PyObject *profile_step(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    unsigned long long units;
    int more;

    if (!PyArg_ParseTuple(args, "K:step", &units))
        return NULL;
    struct wm_cap_profile *profile = core_object_enter(self);
    if (!profile)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        more = wm_cap_profile_step(profile, units, &err);
    Py_END_ALLOW_THREADS
    if (more <= 0)
        return core_object_return(self, more, &err);
    PyObject *message = core_text(wm_cap_profile_state(profile)->message);
    core_object_leave(self);
    return message;
}

struct printing {
    const struct wm_cap_profile *profile;
    enum wm_format format;
};

static int print_answer(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;
    struct wm_cap_answer answer;
    int status =
        wm_cap_search_answer(wm_cap_profile_state(printing->profile)->search, &answer, err);

    return status < 0 ? status : wm_cap_answer_print(&answer, printing->format, out, err);
}

PyDoc_STRVAR(answer_doc, "answer($self, format=\"json\", /)\n--\n\n"
                         "What was found, as \"text\", \"json\" or \"csv\".");

static PyObject *profile_answer(PyObject *self, PyObject *args)
{
    const char *word = "json";

    if (!PyArg_ParseTuple(args, "|s:answer", &word))
        return NULL;
    int format = core_format(word);
    if (format < 0)
        return NULL;
    struct printing printing = { core_object_enter(self), (enum wm_format)format };
    if (!printing.profile)
        return NULL;
    PyObject *text = core_print(print_answer, &printing);
    core_object_leave(self);
    return text;
}

PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\n"
                        "Restores the previous caps.");

static PyObject *profile_close(PyObject *self, PyObject *unused)
{
    struct wm_cap_profile *profile = core_object_take(self);
    struct wm_error err = { 0 };
    int status;
    (void)unused;

    if (!profile && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_cap_profile_close(profile, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "step", profile_step, METH_VARARGS, step_doc },
    { "answer", profile_answer, METH_VARARGS, answer_doc },
    { "close", profile_close, METH_NOARGS, close_doc },
    { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(
    profile_doc,
    "CapProfile(gpus, objective=\"energy\", max_slowdown=0.0, probes=0, window=0.0)\n"
    "--\n\n"
    "Measures units of work of this program under one cap after the other.");

static PyType_Slot slots[] = {
    { Py_tp_new, profile_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, (void *)profile_doc },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.CapProfile",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_cap_profile(PyObject *module)
{
    profile_type = core_add_type(module, &spec);
    return profile_type ? 0 : -1;
}
