/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_region.c - regions, as region.h has them. What marks one is kept short: it stands
 * in the innermost loops of other people's programs. The name is UTF-8 once, when the
 * object is made, and calls take no more arguments than they must.
 */
#include "core.h"

#include <stddef.h>
#include <string.h>

#include <structmember.h>

#include "core_context.h"

static PyTypeObject *region_type, *function_type;
static PyObject *method_type, *plain_function_type; /* of the interpreter */

/* A region with a name. */
struct region {
    PyObject_HEAD PyObject *name; /* bytes */
    const char *text;
};

/* Of a network: the regions of its modules, and what calls a module in training. */
struct layers {
    PyObject *regions;     /* a dict: module to region */
    PyObject *is_training; /* a function: whether gradients are recorded */
    PyObject *train; /* a function (function, args, keywords) that marks the call itself */
};

/* A function whose calls are a region. It has attributes like any function. */
struct function {
    PyObject_HEAD PyObject *function;
    PyObject *name; /* bytes; NULL: that of the first argument, a module */
    const char *text;
    struct layers layers; /* NULL: it is no layer's */
    PyObject *attributes;
    PyObject *references; /* weak ones */
};

/* UTF-8, in a bytes object. What came from a file name may be none, and becomes what it
 * was there. */
static PyObject *encode(PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a region must be a str");
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsUTF8String(name);
    if (!bytes) {
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    }
    if (bytes && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes)) {
        PyErr_SetString(PyExc_ValueError, "the name of a region has a NUL in it");
        Py_CLEAR(bytes);
    }
    return bytes;
}

static void begin_region(const char *name)
{
    PyThreadState *saved = core_region_release();

    wm_region_begin(name);
    core_region_restore(saved);
}

static void end_region(const char *name)
{
    PyThreadState *saved = core_region_release();

    wm_region_end_of(name);
    core_region_restore(saved);
}

/* What needs coroutines and generators is in _region.py. */
static PyObject *in_python(const char *function, PyObject *self, PyObject *argument)
{
    static PyObject *module;

    if (!module)
        module = PyImport_ImportModule("wattmeter._region");
    if (!module)
        return NULL;
    return argument ? PyObject_CallMethod(module, function, "OO", self, argument)
                    : PyObject_CallMethod(module, function, "O", self);
}

/* Whether `@region` stands there without a name. */
static bool is_function(PyObject *name)
{
    return !PyUnicode_Check(name) &&
           (PyCallable_Check(name) || PyObject_HasAttrString(name, "__func__"));
}

static PyObject *region_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "name", NULL };
    PyObject *name;

    if (!keywords && PyTuple_Size(args) == 1)
        name = PyTuple_GetItem(args, 0);
    else if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:region", names, &name))
        return NULL;
    if (is_function(name))
        return in_python("decorate_by_name", name, NULL);
    PyObject *bytes = encode(name);
    if (!bytes)
        return NULL;
    struct region *self = (struct region *)PyType_GenericAlloc(type, 0);
    if (!self) {
        Py_DECREF(bytes);
        return NULL;
    }
    self->name = bytes;
    self->text = PyBytes_AsString(bytes);
    return (PyObject *)self;
}

static void region_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    Py_XDECREF(((struct region *)self)->name);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *region_enter(PyObject *self, PyObject *unused)
{
    const char *text = ((struct region *)self)->text;
    bool is_on = wm_region_is_on();
    int is_entered = is_on ? core_context_enter(self, text) : 0;

    (void)unused;
    if (is_entered < 0)
        return NULL;
    if (is_on && is_entered == 0)
        begin_region(text);
    Py_INCREF(self);
    return self;
}

static PyObject *region_exit(PyObject *self, PyObject *args)
{
    int is_left = core_context_leave(self);

    (void)args;
    if (is_left < 0)
        return NULL;
    if (is_left == 0)
        end_region(((struct region *)self)->text);
    Py_RETURN_NONE;
}

static PyObject *region_enter_async(PyObject *self, PyObject *unused)
{
    (void)unused;
    return in_python("enter_async", self, NULL);
}

static PyObject *region_exit_async(PyObject *self, PyObject *args)
{
    (void)args;
    return in_python("leave_async", self, NULL);
}

static PyObject *region_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "function", NULL };
    PyObject *function;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:region", names, &function))
        return NULL;
    return in_python("decorate", self, function);
}

static PyObject *region_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("O(N)", Py_TYPE(self), core_text(((struct region *)self)->text));
}

static PyObject *region_name(PyObject *self, void *unused)
{
    (void)unused;
    return core_text(((struct region *)self)->text);
}

static PyMethodDef region_methods[] = {
    { "__enter__", region_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nOpens it." },
    { "__exit__", region_exit, METH_VARARGS,
      "__exit__($self, *exception)\n--\n\nCloses what this task or thread opened last by "
      "it." },
    { "__aenter__", region_enter_async, METH_NOARGS,
      "__aenter__($self, /)\n--\n\nOpens it for this task." },
    { "__aexit__", region_exit_async, METH_VARARGS,
      "__aexit__($self, *exception)\n--\n\nCloses what this task opened last by it." },
    { "__reduce__", region_reduce, METH_NOARGS,
      "__reduce__($self, /)\n--\n\nA region of the same name." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef region_members[] = {
    { "name", region_name, NULL, "Its name.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(
    region_doc,
    "region(name)\n--\n\n"
    "A named block of code, told to whoever measures the program:\n\n"
    "    with wattmeter.region(\"epoch\"):\n"
    "        train()\n\n"
    "    @wattmeter.region(\"batch\")\n"
    "    def step(): ...\n\n"
    "@wattmeter.region alone takes the function's qualified name.\n"
    "Regions lie in those that their thread has open, those of asyncio's tasks in those\n"
    "that their task has open, or what has started it. A region ends itself, whatever was\n"
    "opened since. An object may be entered any number of times, also inside itself and "
    "by\n"
    "several threads and tasks at once, copied and pickled.\n"
    "While nobody measures it does nothing. It never fails once it is made: a name that\n"
    "is no str is a TypeError, one with a NUL a ValueError.");

static PyType_Slot region_slots[] = {
    { Py_tp_new, region_new },
    { Py_tp_dealloc, region_dealloc },
    { Py_tp_call, region_call },
    { Py_tp_methods, region_methods },
    { Py_tp_getset, region_members },
    { Py_tp_doc, (void *)region_doc },
    { 0, NULL },
};

static PyType_Spec region_spec = {
    .name = "wattmeter._core.region",
    .basicsize = sizeof(struct region),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = region_slots,
};

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *given, *function;
    struct layers layers = { 0 };

    if (!PyArg_ParseTuple(args, "OO|O!OO:region_function", &given, &function, &PyDict_Type,
                          &layers.regions, &layers.is_training, &layers.train))
        return NULL;
    (void)keywords;
    bool is_named = PyObject_TypeCheck(given, region_type);
    if (!is_named && (given != Py_None || !layers.train)) {
        PyErr_SetString(PyExc_TypeError, "region_function: a region is needed");
        return NULL;
    }
    struct function *self = (struct function *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    Py_INCREF(function);
    self->function = function;
    if (is_named) {
        self->name = ((struct region *)given)->name;
        Py_INCREF(self->name);
        self->text = ((struct region *)given)->text;
    }
    if (layers.train) {
        Py_INCREF(layers.regions);
        Py_INCREF(layers.is_training);
        Py_INCREF(layers.train);
        self->layers = layers;
    }
    return (PyObject *)self;
}

static int function_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct function *function = (struct function *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(function->function);
    Py_VISIT(function->layers.regions);
    Py_VISIT(function->layers.is_training);
    Py_VISIT(function->layers.train);
    Py_VISIT(function->attributes);
    return 0;
}

static int function_clear(PyObject *self)
{
    struct function *function = (struct function *)self;

    Py_CLEAR(function->function);
    Py_CLEAR(function->layers.regions);
    Py_CLEAR(function->layers.is_training);
    Py_CLEAR(function->layers.train);
    Py_CLEAR(function->attributes);
    return 0;
}

static void function_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (((struct function *)self)->references)
        PyObject_ClearWeakRefs(self);
    function_clear(self);
    Py_XDECREF(((struct function *)self)->name);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *call_within(const char *name, PyObject *function, PyObject *args,
                             PyObject *keywords)
{
    PyObject *call = NULL;

    if (wm_region_is_on() && core_context_open_inside(name, &call) < 0)
        return NULL;
    if (!call)
        begin_region(name);
    PyObject *result = PyObject_Call(function, args, keywords);
    if (call)
        core_context_close(call);
    else
        end_region(name);
    Py_XDECREF(call);
    return result;
}

/* The name of a layer's region, held for the caller: another thread may end the measurement
 * meanwhile. NULL without an exception: the module is not measured, as a copy of one that
 * is. */
static PyObject *layer_name(const struct function *function, PyObject *args)
{
    PyObject *name = function->name;

    if (!name && PyTuple_Size(args) >= 1) {
        PyObject *region =
            PyDict_GetItemWithError(function->layers.regions, PyTuple_GetItem(args, 0));
        if (region && PyObject_TypeCheck(region, region_type))
            name = ((struct region *)region)->name;
    }
    Py_XINCREF(name);
    return name;
}

static PyObject *call_layer(const struct function *function, PyObject *args,
                            PyObject *keywords)
{
    PyObject *is_training = NULL, *result = NULL, *name = layer_name(function, args);

    if (!name)
        return PyErr_Occurred() ? NULL : PyObject_Call(function->function, args, keywords);
    is_training = PyObject_CallObject(function->layers.is_training, NULL);
    if (is_training == Py_True)
        result = PyObject_CallFunctionObjArgs(function->layers.train, function->function,
                                              args, keywords ? keywords : Py_None, NULL);
    else if (is_training)
        result = call_within(PyBytes_AsString(name), function->function, args, keywords);
    Py_XDECREF(is_training);
    Py_DECREF(name);
    return result;
}

static PyObject *function_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    const struct function *function = (struct function *)self;

    return function->layers.train
               ? call_layer(function, args, keywords)
               : call_within(function->text, function->function, args, keywords);
}

/* As a method of an object, unless it is called at once: then the interpreter saves the
 * detour, as the type is marked. */
static PyObject *function_bind(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    if (!object) {
        Py_INCREF(self);
        return self;
    }
    return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
}

/* By name, as functions are pickled; cloudpickle pickles by value what other processes do
 * not find by name. */
static PyObject *function_reduce(PyObject *self, PyObject *unused)
{
    const struct function *function = (struct function *)self;
    PyObject *by_value =
        function->layers.train ? NULL : in_python("is_by_value", self, NULL);

    (void)unused;
    if (!by_value && PyErr_Occurred())
        return NULL;
    Py_XDECREF(by_value);
    if (by_value != Py_True)
        return PyObject_GetAttrString(self, "__qualname__");
    PyObject *region =
        PyObject_CallFunction((PyObject *)region_type, "N", core_text(function->text));
    return Py_BuildValue("O(NO)O", Py_TYPE(self), region, function->function,
                         function->attributes ? function->attributes : Py_None);
}

static PyObject *function_repr(PyObject *self)
{
    const struct function *function = (struct function *)self;

    return function->text ? PyUnicode_FromFormat("<region '%s' of %R>", function->text,
                                                 function->function)
                          : PyUnicode_FromFormat("<layers of %R>", function->function);
}

static PyObject *function_attributes(PyObject *self, void *unused)
{
    struct function *function = (struct function *)self;

    (void)unused;
    if (!function->attributes)
        function->attributes = PyDict_New();
    Py_XINCREF(function->attributes);
    return function->attributes;
}

/* To who asks what it is. Where it has been given the code of the function that it stands
 * in for it is one, as torch.jit and others look for that code in functions alone. */
static PyObject *function_class(PyObject *self, void *unused)
{
    PyObject *attributes = ((struct function *)self)->attributes;
    PyObject *class = attributes && PyDict_GetItemString(attributes, "__code__")
                          ? plain_function_type
                          : (PyObject *)Py_TYPE(self);

    (void)unused;
    Py_INCREF(class);
    return class;
}

static PyMethodDef function_methods[] = {
    { "__reduce__", function_reduce, METH_NOARGS,
      "__reduce__($self, /)\n--\n\nIts name, or its region and its function." },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef function_places[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct function, attributes), READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(struct function, references), READONLY,
      NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyGetSetDef function_members[] = {
    { "__class__", function_class, NULL, NULL, NULL },
    { "__dict__", function_attributes, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot function_slots[] = {
    { Py_tp_new, function_new },
    { Py_tp_dealloc, function_dealloc },
    { Py_tp_traverse, function_traverse },
    { Py_tp_clear, function_clear },
    { Py_tp_call, function_call },
    { Py_tp_descr_get, function_bind },
    { Py_tp_repr, function_repr },
    { Py_tp_methods, function_methods },
    { Py_tp_members, function_places },
    { Py_tp_getset, function_members },
    { Py_tp_doc,
      "region_function(region, function, regions=None, is_training=None, train=None, /)\n"
      "--\n\nA function whose calls are a region. With a dict of modules to regions it is\n"
      "a layer's forward: where the region is None it is that of its first argument, and\n"
      "none if it has none. While is_training() is True, train(function, args, keywords "
      "or\n"
      "None) is called in its place; then for a region of its own as well." },
    { 0, NULL },
};

static PyType_Spec function_spec = {
    .name = "wattmeter._core.region_function",
    .basicsize = sizeof(struct function),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = function_slots,
};

static PyObject *begin(PyObject *module, PyObject *name)
{
    PyObject *bytes = encode(name);

    (void)module;
    if (!bytes)
        return NULL;
    begin_region(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *module, PyObject *unused)
{
    PyThreadState *saved = core_region_release();

    (void)module;
    (void)unused;
    wm_region_end();
    core_region_restore(saved);
    Py_RETURN_NONE;
}

static PyObject *start(PyObject *module, PyObject *name)
{
    PyObject *bytes = encode(name);

    (void)module;
    if (!bytes)
        return NULL;
    uint64_t number = core_region_start(PyBytes_AsString(bytes), 0);
    Py_DECREF(bytes);
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *stop(PyObject *module, PyObject *id)
{
    uint64_t number = PyLong_AsUnsignedLongLong(id);

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    core_region_stop(number);
    Py_RETURN_NONE;
}

/* NULL and a TypeError where it is no region. */
static const char *text_of(PyObject *region)
{
    if (PyObject_TypeCheck(region, region_type))
        return ((struct region *)region)->text;
    PyErr_SetString(PyExc_TypeError, "a region is needed");
    return NULL;
}

static PyObject *enter(PyObject *module, PyObject *region)
{
    const char *text = text_of(region);

    (void)module;
    if (!text || (wm_region_is_on() && core_context_enter_async(region, text) < 0))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave(PyObject *module, PyObject *region)
{
    (void)module;
    if (!text_of(region) || core_context_leave_async(region) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *open_innermost(PyObject *module, PyObject *region)
{
    const char *text = text_of(region);

    (void)module;
    return text ? core_context_open(text, true) : NULL;
}

static PyObject *open_apart(PyObject *module, PyObject *region)
{
    const char *text = text_of(region);

    (void)module;
    return text ? core_context_open(text, false) : NULL;
}

static PyObject *is_on(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(wm_region_is_on());
}

static PyMethodDef functions[] = {
    { "region_begin", begin, METH_O,
      "region_begin(name, /)\n--\n\nOpens a region inside those that this thread has "
      "open." },
    { "region_end", end, METH_NOARGS,
      "region_end()\n--\n\nCloses the one that this thread opened last." },
    { "region_start", start, METH_O,
      "region_start(name, /)\n--\n\nOpens a region in no other. Its number is for "
      "region_stop(),\n"
      "which any thread may call, in any order." },
    { "region_stop", stop, METH_O,
      "region_stop(number, /)\n--\n\nCloses what region_start() opened." },
    { "region_enter", enter, METH_O,
      "region_enter(region, /)\n--\n\nOpens it as a block of this context." },
    { "region_leave", leave, METH_O,
      "region_leave(region, /)\n--\n\nCloses the block that this context, or else any, "
      "opened\nlast by it." },
    { "region_open", open_innermost, METH_O,
      "region_open(region, /)\n--\n\nOpens a call inside the innermost one of this "
      "context, "
      "for what\nopens here later." },
    { "region_open_apart", open_apart, METH_O,
      "region_open_apart(region, /)\n--\n\nOpens a call inside the innermost one of this "
      "context, which\nstays the innermost." },
    { "region_is_on", is_on, METH_NOARGS,
      "region_is_on()\n--\n\nWhether anybody listens." },
    { NULL, NULL, 0, NULL },
};

int core_add_region(PyObject *module)
{
    PyObject *types = PyImport_ImportModule("types");

    if (!types)
        return -1;
    method_type = PyObject_GetAttrString(types, "MethodType");
    plain_function_type = PyObject_GetAttrString(types, "FunctionType");
    Py_DECREF(types);
    if (!method_type || !plain_function_type)
        return -1;
    region_type = core_add_type(module, &region_spec);
    function_type = core_add_type(module, &function_spec);
    if (!region_type || !function_type)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
