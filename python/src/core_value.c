/* SPDX-License-Identifier: Apache-2.0 */
/* core_value.c - texts, words and containers, from the library's form to Python's and
 * back. */
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const core_modes[] = { "new", "overwrite", "append", NULL };
const char *const core_report_kinds[] = { "run", "region", "path", "rest",
                                          "gpu", "device", NULL };
const char *const core_reading_states[] = { "none",   "ok",    "unsupported", "denied",
                                            "failed", "stale", "jumped",      NULL };
const char *const core_origins[] = { "measured", "estimated", "simulated", NULL };
const char *const core_device_kinds[] = { "host", "cpu",      "gpu",   "tree", "cpu_part",
                                          "dram", "platform", "other", NULL };

PyObject *core_report_texts(const struct wm_report *report, enum wm_report_list list)
{
    PyObject *texts = PyList_New(0);
    const char *text;

    for (size_t i = 0; texts && (text = wm_report_text(report, list, i, NULL)) != NULL; i++)
        if (!core_append(texts, core_text(text)))
            Py_CLEAR(texts);
    return texts;
}

int core_format(const char *word)
{
    int format = wm_format_find(word);

    if (format < 0)
        PyErr_Format(PyExc_ValueError, "there is no format '%s'", word);
    return format < 0 ? -1 : format;
}

PyObject *core_text(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

/* "text, json or csv". */
static void join(const char *const words[], char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; words[i] && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", between, words[i]);
    }
}

int core_choice(const char *word, const char *const words[], const char *what)
{
    char known[200];

    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    join(words, known, sizeof(known));
    PyErr_Format(PyExc_ValueError, "'%.100s' is no %s: there is %s", word, what, known);
    return -1;
}

int64_t core_ns(double seconds)
{
    if (isnan(seconds))
        return -1;
    return (int64_t)llround(fmin(fmax(seconds, -1e9), 1e9) * 1e9);
}

size_t core_run_number(PyObject *run)
{
    if (run == Py_None)
        return WM_LAST_RUN;
    size_t number = PyLong_AsSize_t(run);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "there is no run %S", run);
    return number;
}

PyObject *core_parse_run(PyObject *args, PyObject *keywords, const char *format,
                         size_t *ret_run)
{
    static char *names[] = { "path", "run", NULL };
    PyObject *path, *run = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, PyUnicode_FSConverter,
                                     &path, &run))
        return NULL;
    *ret_run = core_run_number(run);
    if (PyErr_Occurred())
        Py_CLEAR(path);
    return path;
}

struct core_struct core_struct_begin(PyTypeObject *type)
{
    return (struct core_struct) { .object = PyStructSequence_New(type) };
}

void core_struct_add(struct core_struct *fill, PyObject *value)
{
    if (fill->object && value)
        PyStructSequence_SetItem(fill->object, fill->next++, value);
    else {
        Py_XDECREF(value);
        Py_CLEAR(fill->object);
    }
}

PyObject *core_struct_end(struct core_struct *fill)
{
    return fill->object;
}

bool core_put(PyObject *dict, const char *key, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, key, value) : -1;

    Py_XDECREF(value);
    return status == 0;
}

bool core_append(PyObject *list, PyObject *value)
{
    int status = value ? PyList_Append(list, value) : -1;

    Py_XDECREF(value);
    return status == 0;
}

PyObject *core_print(core_printer print, void *context)
{
    struct wm_error err = { 0 };
    char *text = NULL;
    size_t size = 0;

    FILE *out = open_memstream(&text, &size);
    if (!out)
        return PyErr_NoMemory();
    int status, close_status;
    Py_BEGIN_ALLOW_THREADS
        status = print(context, out, &err);
        close_status = fclose(out);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (core_check(status, &err) == 0)
        result = close_status == 0
                     ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape")
                     : PyErr_NoMemory();
    free(text);
    return result;
}

PyObject *core_view(const void *data, size_t size, const char *format)
{
    PyObject *bytes = PyByteArray_FromStringAndSize(data, (Py_ssize_t)size);
    PyObject *plain = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    PyObject *view = plain ? PyObject_CallMethod(plain, "cast", "s", format) : NULL;

    Py_XDECREF(plain);
    Py_XDECREF(bytes);
    return view;
}

static int fill_texts(struct core_texts *texts)
{
    for (Py_ssize_t i = 0; i < (Py_ssize_t)texts->count; i++) {
        PyObject *bytes = NULL;
        if (!PyUnicode_FSConverter(PyList_GetItem(texts->held, i), &bytes) ||
            PyList_SetItem(texts->held, i, bytes) < 0)
            return -1;
        texts->texts[i] = PyBytes_AsString(bytes);
    }
    return 0;
}

/* A text is a sequence as well, which nobody means here. */
int core_texts_init(struct core_texts *texts, PyObject *sequence, const char *what)
{
    *texts = (struct core_texts) { 0 };
    if (PyUnicode_Check(sequence) || PyBytes_Check(sequence)) {
        PyErr_Format(PyExc_TypeError, "%s must be a list, not one text", what);
        return -1;
    }
    texts->held = PySequence_List(sequence);
    if (!texts->held)
        return -1;
    texts->count = (size_t)PyList_Size(texts->held);
    texts->texts = calloc(texts->count + 1, sizeof(*texts->texts));
    if (!texts->texts) {
        core_texts_release(texts);
        PyErr_NoMemory();
        return -1;
    }
    if (fill_texts(texts) < 0) {
        core_texts_release(texts);
        return -1;
    }
    return 0;
}

void core_texts_release(struct core_texts *texts)
{
    Py_CLEAR(texts->held);
    free(texts->texts);
    texts->texts = NULL;
}
