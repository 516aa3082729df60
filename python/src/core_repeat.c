/* SPDX-License-Identifier: Apache-2.0 */
/* core_repeat.c - the functions about repeated runs: their order, and what they come to. */
#include "core.h"

#include <stdlib.h>

static PyObject *order_of(const struct wm_repeat *repeat, size_t count, size_t turn)
{
    PyObject *list = PyList_New(0);
    size_t *order = calloc(count, sizeof(*order));

    if (order)
        wm_repeat_order(repeat, turn, order);
    else
        PyErr_NoMemory();
    for (size_t i = 0; list && order && i < count; i++)
        if (!core_append(list, PyLong_FromSize_t(order[i])))
            Py_CLEAR(list);
    if (!order)
        Py_CLEAR(list);
    free(order);
    return list;
}

static PyObject *repeat_order(PyObject *self, PyObject *args)
{
    const struct wm_repeat_command command = { .command = "" };
    struct wm_repeat_options options = { 0 };
    struct wm_repeat *repeat;
    struct wm_error err = { 0 };
    unsigned long long seed;
    Py_ssize_t count, turn;
    int status = WM_OK;

    (void)self;
    if (!PyArg_ParseTuple(args, "Knn:repeat_order", &seed, &count, &turn))
        return NULL;
    options.seed = seed;
    if (core_check(wm_repeat_new(&options, &repeat, &err), &err) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < count && status == WM_OK; i++)
        status = wm_repeat_add_command(repeat, &command, &err);
    PyObject *result =
        core_check(status, &err) < 0 ? NULL : order_of(repeat, (size_t)count, (size_t)turn);
    wm_repeat_free(repeat);
    return result;
}

static int print_json(void *repeat, FILE *out, struct wm_error *err)
{
    return wm_repeat_print(repeat, WM_FORMAT_JSON, 0, out, err);
}

static int add_runs(struct wm_repeat *repeat, PyObject *reports)
{
    struct wm_error err = { 0 };
    Py_ssize_t count = PySequence_Size(reports);
    int status = count < 0 ? -1 : 0;

    for (Py_ssize_t i = 0; i < count && status == 0; i++) {
        PyObject *one = PySequence_GetItem(reports, i);
        const struct wm_repeat_run run = { .report = one ? core_report_of(one) : NULL };
        status =
            run.report ? core_check(wm_repeat_add_run(repeat, 0, &run, &err), &err) : -1;
        Py_XDECREF(one);
    }
    return status;
}

static PyObject *repeat_json(PyObject *self, PyObject *args)
{
    const struct wm_repeat_options options = { 0 };
    struct wm_repeat_command command = { 0 };
    struct wm_repeat *repeat;
    struct wm_error err = { 0 };
    PyObject *reports, *result = NULL;

    (void)self;
    if (!PyArg_ParseTuple(args, "sO:repeat_json", &command.command, &reports) ||
        core_check(wm_repeat_new(&options, &repeat, &err), &err) < 0)
        return NULL;
    if (core_check(wm_repeat_add_command(repeat, &command, &err), &err) == 0 &&
        add_runs(repeat, reports) == 0)
        result = core_print(print_json, repeat);
    wm_repeat_free(repeat);
    return result;
}

static PyMethodDef functions[] = {
    { "repeat_order", repeat_order, METH_VARARGS,
      "repeat_order(seed, commands, turn, /)\n--\n\nThe order of so many commands in a "
      "turn,\nfrom 0." },
    { "repeat_json", repeat_json, METH_VARARGS,
      "repeat_json(name, reports, /)\n--\n\nWhat the reports of runs come to, as `run "
      "--repeat --json`\nprints it." },
    { NULL, NULL, 0, NULL },
};

int core_add_repeat(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
