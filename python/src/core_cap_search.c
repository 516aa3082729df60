/* SPDX-License-Identifier: Apache-2.0 */
/* core_cap_search.c - _core.CapSearch, which cap is best, as cap_search.h has it. */
#include "core.h"

#include <string.h>

static PyTypeObject *search_type;

static void free_search(void *handle)
{
    wm_cap_search_free(handle);
}

static bool find_objective(const char *word, enum wm_cap_objective *ret_objective)
{
    for (size_t i = 0; wm_cap_objective_name(i); i++)
        if (strcmp(word, wm_cap_objective_name(i)) == 0) {
            *ret_objective = (enum wm_cap_objective)i;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "the objective is 'energy', 'edp', 'ed2p' or 'cost', not '%s'", word);
    return false;
}

static PyObject *search_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "minimum", "maximum", "objective",  "max_slowdown",
                             "probes",  "windows", "time_watts", NULL };
    struct wm_cap_plan plan = { 0 };
    struct wm_cap_search *search;
    struct wm_error err = { 0 };
    const char *objective = "energy";

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "dd|sdIId:CapSearch", names,
                                     &plan.minimum, &plan.maximum, &objective,
                                     &plan.max_slowdown, &plan.probes, &plan.windows,
                                     &plan.time_watts) ||
        !find_objective(objective, &plan.objective) ||
        core_check(wm_cap_search_new(&plan, &search, &err), &err) < 0)
        return NULL;
    return core_object_new(type, "search", search, free_search, CORE_MAY_FORK);
}

PyDoc_STRVAR(next_doc, "next($self, /)\n--\n\n"
                       "The cap to measure next; None: the answer will not get better.");

static PyObject *search_next(PyObject *self, PyObject *unused)
{
    struct wm_cap_search *search = core_object_enter(self);
    double cap;
    (void)unused;

    if (!search)
        return NULL;
    int more = wm_cap_search_next(search, &cap);
    core_object_leave(self);
    if (more > 0)
        return PyFloat_FromDouble(cap);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(left_doc, "left($self, /)\n--\n\n"
                       "How many measurements there will be at most from now on.");

static PyObject *search_left(PyObject *self, PyObject *unused)
{
    struct wm_cap_search *search = core_object_enter(self);
    (void)unused;

    if (!search)
        return NULL;
    size_t left = wm_cap_search_left(search);
    core_object_leave(self);
    return PyLong_FromSize_t(left);
}

PyDoc_STRVAR(add_doc, "add($self, cap, seconds, joules, /)\n--\n\n"
                      "What a unit of work took at that cap.");

static PyObject *search_add(PyObject *self, PyObject *args)
{
    struct wm_error err = { 0 };
    double cap, seconds, joules;

    if (!PyArg_ParseTuple(args, "ddd:add", &cap, &seconds, &joules))
        return NULL;
    struct wm_cap_search *search = core_object_enter(self);
    if (!search)
        return NULL;
    return core_object_return(self, wm_cap_search_add(search, cap, seconds, joules, &err),
                              &err);
}

struct printing {
    struct wm_cap_search *search;
    enum wm_format format;
};

static int print_answer(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;
    struct wm_cap_answer answer;
    int status = wm_cap_search_answer(printing->search, &answer, err);

    return status < 0 ? status : wm_cap_answer_print(&answer, printing->format, out, err);
}

PyDoc_STRVAR(answer_doc, "answer($self, format=\"json\", /)\n--\n\n"
                         "What was found, as \"text\", \"json\" or \"csv\".");

static PyObject *search_answer(PyObject *self, PyObject *args)
{
    const char *word = "json";

    if (!PyArg_ParseTuple(args, "|s:answer", &word))
        return NULL;
    int format = core_format(word);
    if (format < 0)
        return NULL;
    struct printing printing = { core_object_enter(self), (enum wm_format)format };
    if (!printing.search)
        return NULL;
    PyObject *text = core_print(print_answer, &printing);
    core_object_leave(self);
    return text;
}

static PyMethodDef methods[] = {
    { "next", search_next, METH_NOARGS, next_doc },
    { "left", search_left, METH_NOARGS, left_doc },
    { "add", search_add, METH_VARARGS, add_doc },
    { "answer", search_answer, METH_VARARGS, answer_doc },
    { NULL, NULL, 0, NULL },
};

PyDoc_STRVAR(search_doc,
             "CapSearch(minimum, maximum, objective=\"energy\", max_slowdown=0.0,\n"
             "          probes=0, windows=0, time_watts=0.0)\n--\n\n"
             "Which cap between two is best, by as few measurements as that takes.");

static PyType_Slot slots[] = {
    { Py_tp_new, search_new },
    { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, (void *)search_doc },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.CapSearch",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_cap_search(PyObject *module)
{
    search_type = core_add_type(module, &spec);
    return search_type ? 0 : -1;
}
