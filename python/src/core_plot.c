/* SPDX-License-Identifier: Apache-2.0 */
/* core_plot.c - plot() and film(): recordings as figures and films, drawn by the library
 * that `wattmeter plot` draws with, which is loaded when the first is asked for. */
#include "core.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wattmeter/plot.h"

static const char *const kinds[] = { "time",    "energy", "regions", "caps",
                                     "repeats", "flame",  NULL };
static const char *const measures[] = { "energy", "time", NULL };
static const char *const styles[] = { "light", "dark", NULL };

/* The path of a library beside ours; memory of the caller. */
static char *find_beside(const char *name)
{
    Dl_info info;
    const char *slash = dladdr((const void *)(uintptr_t)wm_version, &info) != 0
                            ? strrchr(info.dli_fname, '/')
                            : NULL;
    size_t folder = slash ? (size_t)(slash + 1 - info.dli_fname) : 0;
    char *path = malloc(folder + strlen(name) + 1);

    if (path) {
        memcpy(path, info.dli_fname, folder);
        memcpy(path + folder, name, strlen(name) + 1);
    }
    return path;
}

/* NULL, and an exception that says what to install. It stays loaded. */
static const struct wm_plot_module *load(void)
{
    static const struct wm_plot_module *module;
    char *path = module ? NULL : find_beside("wattmeter-plot.so");

    if (module)
        return module;
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct wm_plot_module *found = library ? dlsym(library, "wm_plot_module") : NULL;
    if (!library) {
        char text[600];
        /* The loader's reason is in the user's language; before it is what it lacks. */
        const char *lacks = path ? dlerror() : "memory";
        snprintf(text, sizeof(text),
                 "figures need cairo and pango: apt install libcairo2 "
                 "libpangocairo-1.0-0 (cannot load %.*s)",
                 (int)strcspn(lacks, ":"), lacks);
        core_fail(WM_ENODEV, text);
    } else if (!found || strcmp(found->version, wm_version()) != 0) {
        core_fail(WM_EFORMAT, "wattmeter-plot.so is of another version than wattmeter");
    } else {
        module = found;
    }
    free(path);
    return module;
}

/* What is asked for, and what its texts are borrowed from. */
struct asked {
    struct wm_plot_request request;
    struct wm_plot_film film;
    struct wm_plot_input *inputs;
    struct core_texts paths, channels;
    PyObject *held; /* the list of inputs */
    char *names;    /* that there are, if a channel is none of them */
    size_t names_size;
};

static void release(struct asked *asked)
{
    core_texts_release(&asked->paths);
    core_texts_release(&asked->channels);
    Py_CLEAR(asked->held);
    free(asked->inputs);
    if (asked->request.names)
        fclose(asked->request.names);
    free(asked->names);
}

/* core_check(), with the names that there are behind the message, if any; and release(). */
static int finish(struct asked *asked, int status, const struct wm_error *err)
{
    FILE *names = asked->request.names;
    char *text = NULL;

    asked->request.names = NULL;
    bool has_names = names && fclose(names) == 0 && asked->names_size > 0;
    if (has_names && status < 0 && asprintf(&text, "%s\n%s", err->text, asked->names) > 0) {
        core_fail(status, text);
        free(text);
        status = -1;
    } else {
        status = core_check(status, err);
    }
    release(asked);
    return status;
}

static int fill_input(struct asked *asked, PyObject *paths, Py_ssize_t index)
{
    PyObject *path, *run;
    const char *name;

    if (!PyArg_ParseTuple(PyList_GetItem(asked->held, index), "zOO:plot", &name, &path,
                          &run) ||
        PyList_Append(paths, path) < 0)
        return -1;
    asked->inputs[index] =
        (struct wm_plot_input) { .name = name, .run = core_run_number(run) };
    return PyErr_Occurred() ? -1 : 0;
}

static int fill_inputs(struct asked *asked, PyObject *inputs)
{
    PyObject *paths = PyList_New(0);
    int status = -1;

    asked->held = PySequence_List(inputs);
    if (paths && asked->held) {
        asked->request.input_count = (size_t)PyList_Size(asked->held);
        asked->inputs = calloc(asked->request.input_count + 1, sizeof(*asked->inputs));
        status = asked->inputs ? 0 : -1;
        if (!asked->inputs)
            PyErr_NoMemory();
    }
    for (size_t i = 0; i < asked->request.input_count && status == 0; i++)
        status = fill_input(asked, paths, (Py_ssize_t)i);
    if (status == 0 && asked->request.input_count == 0) {
        PyErr_SetString(PyExc_ValueError, "there is no recording to draw");
        status = -1;
    }
    if (status == 0)
        status = core_texts_init(&asked->paths, paths, "the recordings");
    for (size_t i = 0; i < asked->request.input_count && status == 0; i++)
        asked->inputs[i].path = asked->paths.texts[i];
    asked->request.inputs = asked->inputs;
    Py_XDECREF(paths);
    return status;
}

/* An option of a figure or a film, by the name that it has in Python. */
static const struct option {
    const char *name;
    enum {
        TEXT,
        NUMBER,
        FLAG,
        FORMAT,
        WORD,
        FLAG_WORD
    } type; /* the second of two words
             * sets a flag */
    size_t offset;
    const char *const *words;
    const char *what; /* a word is */
} options[] = {
    { "format", FORMAT, offsetof(struct asked, request.format), NULL, NULL },
    { "kind", WORD, offsetof(struct asked, request.kind), kinds, "kind of figure" },
    { "layout", TEXT, offsetof(struct asked, request.layout), NULL, NULL },
    { "start", TEXT, offsetof(struct asked, request.from), NULL, NULL },
    { "end", TEXT, offsetof(struct asked, request.to), NULL, NULL },
    { "title", TEXT, offsetof(struct asked, request.title), NULL, NULL },
    { "without_regions", FLAG, offsetof(struct asked, request.without_regions), NULL,
      NULL },
    { "without_legend", FLAG, offsetof(struct asked, request.without_legend), NULL, NULL },
    { "size", TEXT, offsetof(struct asked, request.size), NULL, NULL },
    { "font", TEXT, offsetof(struct asked, request.font), NULL, NULL },
    { "style", FLAG_WORD, offsetof(struct asked, request.is_dark), styles,
      "style of a figure" },
    { "by", FLAG_WORD, offsetof(struct asked, request.by_time), measures,
      "measure of a figure" },
    { "fits", FLAG, offsetof(struct asked, request.fits), NULL, NULL },
    { "dpi", NUMBER, offsetof(struct asked, request.dpi), NULL, NULL },
    { "fps", NUMBER, offsetof(struct asked, film.fps), NULL, NULL },
    { "speed", NUMBER, offsetof(struct asked, film.speed), NULL, NULL },
    { "window", NUMBER, offsetof(struct asked, film.window), NULL, NULL },
    { "overwrite", FLAG, offsetof(struct asked, film.overwrite), NULL, NULL },
};

static bool set_option(struct asked *asked, const struct option *option, PyObject *value)
{
    void *at = (char *)asked + option->offset;
    const char *word;
    int place;

    switch (option->type) {
    case TEXT:
        return PyArg_Parse(value, "z", (const char **)at);
    case NUMBER:
        return PyArg_Parse(value, "d", (double *)at);
    case FLAG:
        place = PyObject_IsTrue(value);
        *(bool *)at = place > 0;
        return place >= 0;
    default:
        if (!PyArg_Parse(value, "s", &word))
            return false;
        place = option->type == FORMAT ? core_format(word)
                                       : core_choice(word, option->words, option->what);
        if (option->type == FLAG_WORD)
            *(bool *)at = place == 1;
        else
            memcpy(at, &place, sizeof(place)); /* an enum */
        return place >= 0;
    }
}

static int set_options(struct asked *asked, PyObject *given)
{
    const size_t count = sizeof(options) / sizeof(options[0]);
    Py_ssize_t set = 0;

    for (size_t i = 0; i < count; i++) {
        PyObject *value = PyDict_GetItemString(given, options[i].name);
        if (value && !set_option(asked, &options[i], value))
            return -1;
        set += value != NULL;
    }
    if (set == PyDict_Size(given))
        return 0;
    PyErr_SetString(PyExc_TypeError, "there is no such option of a figure");
    return -1;
}

/* -1 and an exception, with nothing to release, where they mean nothing. */
static int fill(struct asked *asked, PyObject *inputs, PyObject *channels, PyObject *given)
{
    int status = set_options(asked, given);

    if (status == 0)
        status = fill_inputs(asked, inputs);
    if (status == 0 && channels != Py_None) {
        status = core_texts_init(&asked->channels, channels, "channels");
        asked->request.channels = asked->channels.texts;
        asked->request.channel_count = asked->channels.count;
    }
    asked->request.names = open_memstream(&asked->names, &asked->names_size);
    if (status < 0)
        release(asked);
    return status;
}

static PyObject *plot(PyObject *self, PyObject *args)
{
    struct asked asked = { 0 };
    PyObject *inputs, *channels, *given;
    struct wm_error err = { 0 };
    char *bytes = NULL;
    size_t size = 0;

    (void)self;
    if (!PyArg_ParseTuple(args, "OOO!:plot", &inputs, &channels, &PyDict_Type, &given))
        return NULL;
    const struct wm_plot_module *module = load();
    if (!module || fill(&asked, inputs, channels, given) < 0)
        return NULL;
    core_share_sqlite();
    int status = WM_ENOMEM, close_status = -1;
    FILE *out = open_memstream(&bytes, &size);
    Py_BEGIN_ALLOW_THREADS
        if (out) {
            status = module->write(&asked.request, out, &err);
            close_status = fclose(out);
        }
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (!out || (status >= 0 && close_status != 0)) {
        release(&asked);
        PyErr_NoMemory();
    } else if (finish(&asked, status, &err) == 0) {
        result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    }
    free(bytes);
    return result;
}

/* Whoever films may be asked, and stopped by a signal that Python has noticed. */
struct filming {
    PyObject *progress;
    PyThreadState *state; /* of the thread that films, which has let go of the GIL */
    bool has_failed;      /* with an exception */
};

static int report_progress(void *context, size_t done, size_t total)
{
    struct filming *filming = context;

    PyEval_RestoreThread(filming->state);
    bool is_well = PyErr_CheckSignals() == 0;
    if (is_well && filming->progress != Py_None) {
        PyObject *result = PyObject_CallFunction(filming->progress, "nn", (Py_ssize_t)done,
                                                 (Py_ssize_t)total);
        is_well = result != NULL;
        Py_XDECREF(result);
    }
    filming->has_failed = !is_well;
    filming->state = PyEval_SaveThread();
    return is_well ? 0 : -1;
}

static PyObject *film(PyObject *self, PyObject *args)
{
    struct filming filming = { .progress = Py_None };
    struct asked asked = { 0 };
    struct wm_error err = { 0 };
    PyObject *inputs, *path, *channels, *given;

    (void)self;
    if (!PyArg_ParseTuple(args, "OO&OO!O:film", &inputs, PyUnicode_FSConverter, &path,
                          &channels, &PyDict_Type, &given, &filming.progress))
        return NULL;
    asked.film.path = PyBytes_AsString(path);
    asked.film.progress = report_progress;
    asked.film.context = &filming;
    const struct wm_plot_module *module = load();
    int status = -1;
    if (module && fill(&asked, inputs, channels, given) == 0) {
        core_share_sqlite();
        filming.state = PyEval_SaveThread();
        status = module->film(&asked.request, &asked.film, &err);
        PyEval_RestoreThread(filming.state);
        int checked = finish(&asked, filming.has_failed ? WM_OK : status, &err);
        status = filming.has_failed ? -1 : checked;
    }
    Py_DECREF(path);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    plot_doc,
    "plot(inputs, channels, options, /)\n--\n\n"
    "The bytes of a figure of recordings: of [(name, path, run), ...], name and run\n"
    "of which may be None. channels: a list of what is drawn, or None. options: a dict\n"
    "of format, kind, layout, start, end, title, without_regions, without_legend, size,\n"
    "font, style, by, fits and dpi, as wattmeter.plot() has them.");
PyDoc_STRVAR(
    film_doc,
    "film(inputs, path, channels, options, progress, /)\n--\n\n"
    "Makes a film, \"mp4\" or \"gif\", with ffmpeg; fps, speed, window and overwrite\n"
    "are further options. `progress(done, total)` is called after each picture, if it\n"
    "is not None; an exception ends it, and leaves no file.");

static PyMethodDef functions[] = {
    { "plot", plot, METH_VARARGS, plot_doc },
    { "film", film, METH_VARARGS, film_doc },
    { NULL, NULL, 0, NULL },
};

int core_add_plot(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
