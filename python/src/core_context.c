/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_context.c - regions of contexts, as core_context.h has them, and the frames that say
 * whether a block belongs to one.
 *
 * The stable ABI lacks the functions of context variables, so their methods are called.
 */
#include "core_context.h"

static PyTypeObject *call_type;

/* A call. Its context holds it until the next one is opened there, and the list of open
 * calls until it is closed. */
struct call {
    PyObject_HEAD PyObject *region; /* NULL: a function's */
    uint64_t number;
    struct call *around;         /* in its context; maybe closed */
    struct call *before, *after; /* in the list; `after` of one that is freed: the next */
    bool is_open;
};

/* The end of the list of open calls, in the order of their starts. */
static struct call *latest;

/* Methods of the context variable that has the innermost call of a context. */
static PyObject *get_innermost, *set_innermost;

/* asyncio's function for the loop that runs in this thread. NULL: asyncio is not imported.
 */
static PyObject *get_running_loop;

static PyObject *modules, *asyncio_name, *flags_name, *back_name, *globals_name, *name_name;

/* Flags of a code object; the names are those of the module `inspect`. */
enum code_flags { CO_GENERATOR = 0x20, CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200 };

/* Freed in a loop, as a chain of calls may be long. */
static void call_dealloc(PyObject *self)
{
    static struct call *chain;
    static bool is_freeing;

    ((struct call *)self)->after = chain;
    chain = (struct call *)self;
    if (is_freeing)
        return;
    is_freeing = true;
    while (chain) {
        struct call *call = chain;
        PyTypeObject *type = Py_TYPE(call);
        chain = call->after;
        Py_XDECREF((PyObject *)call->around);
        Py_XDECREF(call->region);
        PyObject_Free(call);
        Py_DECREF(type);
    }
    is_freeing = false;
}

/* Makes the context variable at the first call. */
static bool has_variable(void)
{
    if (set_innermost)
        return true;
    PyObject *module = PyImport_ImportModule("_contextvars");
    PyObject *type = module ? PyObject_GetAttrString(module, "ContextVar") : NULL;
    PyObject *args = Py_BuildValue("(s)", "wattmeter.region");
    PyObject *keywords = Py_BuildValue("{s:O}", "default", Py_None);
    PyObject *variable =
        type && args && keywords ? PyObject_Call(type, args, keywords) : NULL;
    if (variable) {
        get_innermost = PyObject_GetAttrString(variable, "get");
        set_innermost = PyObject_GetAttrString(variable, "set");
    }
    Py_XDECREF(variable);
    Py_XDECREF(keywords);
    Py_XDECREF(args);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return get_innermost && set_innermost;
}

static struct call *find_open(struct call *call)
{
    while (call && !call->is_open)
        call = call->around;
    return call;
}

/* Drops the calls around it that are over: a chain of tasks would keep all of them, and
 * each search would pass them again. */
static struct call *skip_closed(struct call *call)
{
    struct call *before = call->around, *around = find_open(before);

    if (around != before) {
        Py_XINCREF((PyObject *)around);
        call->around = around;
        Py_XDECREF((PyObject *)before);
    }
    return call->is_open ? call : around;
}

/* The innermost call that is open in this context, borrowed, or NULL; -1: an exception. */
static int find_innermost(struct call **ret_call)
{
    struct call *call = NULL;

    if (latest && get_innermost) {
        PyObject *value = PyObject_CallNoArgs(get_innermost);
        if (!value)
            return -1;
        call = value == Py_None ? NULL : skip_closed((struct call *)value);
        Py_DECREF(value); /* `latest` and those before it are held */
    }
    if (call)
        skip_closed(call);
    *ret_call = call;
    return 0;
}

/* A new reference. */
static struct call *open_call(PyObject *region, const char *name, struct call *around)
{
    struct call *call = (struct call *)PyType_GenericAlloc(call_type, 0);

    if (!call)
        return NULL;
    Py_XINCREF(region);
    call->region = region;
    Py_XINCREF((PyObject *)around);
    call->around = around;
    call->number = core_region_start(name, around ? around->number : WM_REGION_INNERMOST);
    call->is_open = true;
    call->before = latest;
    if (latest)
        latest->after = call;
    latest = call;
    Py_INCREF((PyObject *)call);
    return call;
}

static void close_call(struct call *call)
{
    if (!call->is_open)
        return;
    call->is_open = false;
    if (call->after)
        call->after->before = call->before;
    else
        latest = call->before;
    if (call->before)
        call->before->after = call->after;
    core_region_stop(call->number);
    Py_DECREF((PyObject *)call);
}

/* The same, which becomes its context's innermost. */
static struct call *enter_call(PyObject *region, const char *name, struct call *around)
{
    struct call *call = has_variable() ? open_call(region, name, around) : NULL;
    PyObject *token =
        call ? PyObject_CallFunctionObjArgs(set_innermost, (PyObject *)call, NULL) : NULL;

    if (call && !token) {
        close_call(call);
        Py_DECREF((PyObject *)call);
        return NULL;
    }
    Py_XDECREF(token);
    return call;
}

static long flags_of(PyObject *code)
{
    PyObject *flags = PyObject_GetAttr(code, flags_name);
    long bits = flags ? PyLong_AsLong(flags) : 0;

    Py_XDECREF(flags);
    return bits;
}

static long flags_of_frame(PyObject *frame)
{
    PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
    long bits = flags_of(code);

    Py_DECREF(code);
    return bits;
}

/* As an ExitStack, and what makes a block of a generator. */
static bool is_of_contextlib(PyObject *frame)
{
    PyObject *globals = PyObject_GetAttr(frame, globals_name);
    PyObject *name = globals ? PyDict_GetItemWithError(globals, name_name) : NULL;
    bool is_it = name && PyUnicode_Check(name) &&
                 PyUnicode_CompareWithASCIIString(name, "contextlib") == 0;

    Py_XDECREF(globals);
    return is_it;
}

/* Whether the code whose block it is is that of a coroutine or an asynchronous generator,
 * which waits in the middle of its blocks. -1: an exception. */
static int may_await(void)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    bool may = false;

    Py_XINCREF(frame);
    while (frame && frame != Py_None && !may && !PyErr_Occurred()) {
        long flags = flags_of_frame(frame);
        may = (flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
        if (!may && !(flags & CO_GENERATOR) && !is_of_contextlib(frame))
            break;
        PyObject *caller = PyObject_GetAttr(frame, back_name);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    return PyErr_Occurred() ? -1 : may;
}

static PyObject *find_running_loop(void)
{
    PyObject *asyncio = PyDict_GetItemWithError(modules, asyncio_name);
    PyObject *found = asyncio ? PyObject_GetAttrString(asyncio, "_get_running_loop") : NULL;

    PyErr_Clear(); /* it may be half imported */
    return found;
}

/* Whether a loop runs in this thread; -1: an exception. */
static int is_in_loop(void)
{
    if (!get_running_loop)
        get_running_loop = find_running_loop();
    if (!get_running_loop)
        return 0;
    PyObject *loop = PyObject_CallNoArgs(get_running_loop);
    int is_running = loop ? loop != Py_None : -1;
    Py_XDECREF(loop);
    return is_running;
}

/* Whether the running block may be crossed by an await; -1: an exception. Up to Python 3.13
 * a running loop costs a system call to ask for, so only the first block asks. */
static int is_crossed(void)
{
    int is_possible = set_innermost ? 1 : is_in_loop();

    return is_possible > 0 ? may_await() : is_possible;
}

PyObject *core_context_open(const char *name, bool is_innermost)
{
    struct call *around;

    if (find_innermost(&around) < 0)
        return NULL;
    return (PyObject *)(is_innermost ? enter_call(NULL, name, around)
                                     : open_call(NULL, name, around));
}

int core_context_open_inside(const char *name, PyObject **ret_call)
{
    struct call *around;

    *ret_call = NULL;
    if (find_innermost(&around) < 0)
        return -1;
    if (around)
        *ret_call = (PyObject *)enter_call(NULL, name, around);
    return around && !*ret_call ? -1 : 0;
}

void core_context_close(PyObject *call)
{
    close_call((struct call *)call);
}

static int enter_block(PyObject *region, const char *name, struct call *around)
{
    struct call *call = enter_call(region, name, around);

    if (!call)
        return -1;
    Py_DECREF((PyObject *)call);
    return 1;
}

int core_context_enter(PyObject *region, const char *name)
{
    struct call *around;

    if (find_innermost(&around) < 0)
        return -1;
    int is_block = around ? 1 : is_crossed();
    return is_block > 0 ? enter_block(region, name, around) : is_block;
}

int core_context_enter_async(PyObject *region, const char *name)
{
    struct call *around;

    return find_innermost(&around) < 0 ? -1 : enter_block(region, name, around);
}

static bool leave_block(PyObject *region, struct call *innermost)
{
    struct call *call = innermost;

    while (call && (!call->is_open || call->region != region))
        call = call->around;
    if (!call)
        for (call = latest; call && call->region != region; call = call->before)
            ;
    if (call)
        close_call(call);
    return call;
}

int core_context_leave(PyObject *region)
{
    struct call *innermost;

    if (!latest)
        return 0;
    if (find_innermost(&innermost) < 0)
        return -1;
    int is_block = innermost ? 1 : is_crossed();
    return is_block > 0 ? leave_block(region, innermost) : is_block;
}

int core_context_leave_async(PyObject *region)
{
    struct call *innermost;

    if (find_innermost(&innermost) < 0)
        return -1;
    leave_block(region, innermost);
    return 0;
}

static PyType_Slot call_slots[] = {
    { Py_tp_new, core_object_no_new },
    { Py_tp_dealloc, call_dealloc },
    { Py_tp_doc, "A call of a context. region_close() ends it." },
    { 0, NULL },
};

static PyType_Spec call_spec = {
    .name = "wattmeter._core.region_call",
    .basicsize = sizeof(struct call),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = call_slots,
};

static PyObject *close_of(PyObject *module, PyObject *call)
{
    (void)module;
    if (!PyObject_TypeCheck(call, call_type)) {
        PyErr_SetString(PyExc_TypeError, "region_close: a call is needed");
        return NULL;
    }
    close_call((struct call *)call);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "region_close", close_of, METH_O,
      "region_close(call, /)\n--\n\nEnds what region_open() opened." },
    { NULL, NULL, 0, NULL },
};

static bool make_names(void)
{
    asyncio_name = PyUnicode_InternFromString("asyncio");
    flags_name = PyUnicode_InternFromString("co_flags");
    back_name = PyUnicode_InternFromString("f_back");
    globals_name = PyUnicode_InternFromString("f_globals");
    name_name = PyUnicode_InternFromString("__name__");
    modules = PyImport_GetModuleDict();
    return asyncio_name && flags_name && back_name && globals_name && name_name;
}

int core_add_context(PyObject *module)
{
    call_type = core_add_type(module, &call_spec);
    if (!call_type || !make_names() || PyModule_AddFunctions(module, functions) < 0)
        return -1;
    return PyModule_AddIntMacro(module, CO_GENERATOR) < 0 ||
                   PyModule_AddIntMacro(module, CO_COROUTINE) < 0 ||
                   PyModule_AddIntMacro(module, CO_ASYNC_GENERATOR) < 0
               ? -1
               : 0;
}
