/* SPDX-License-Identifier: Apache-2.0 */
/* core_object.c - objects that hold a handle of the library: who may use it, and what
 * becomes of it in another thread, in a forked child and at the end of the interpreter. */
#include "core.h"

#include <stdlib.h>
#include <unistd.h>

/* What has to be ended before the process does: of a tracker the recording lacks its
 * result otherwise. */
static struct core_slot *first_to_end;

static void unlist(struct core_slot *slot)
{
    if (!slot->is_listed)
        return;
    *(slot->before ? &slot->before->after : &first_to_end) = slot->after;
    if (slot->after)
        slot->after->before = slot->before;
    slot->is_listed = false;
}

static bool is_ours(const struct core_slot *slot)
{
    return slot->owner == 0 || slot->owner == getpid();
}

/* Runs when there is no interpreter any more. What a daemon thread was at work on is not
 * freed, as that thread may still be in the library; where it only asks for something, it
 * is ended. */
static void end_all(void)
{
    struct core_slot *slot = first_to_end;

    for (; slot; slot = slot->after) {
        if (slot->handle && slot->users == 0)
            slot->free(slot->handle);
        else if (slot->handle && !slot->is_entered && slot->end && is_ours(slot))
            slot->end(slot->handle);
    }
    first_to_end = NULL;
}

static int list(struct core_slot *slot)
{
    static bool is_set;

    if (!is_set && Py_AtExit(end_all) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "too many functions are called at exit");
        return -1;
    }
    is_set = true;
    slot->after = first_to_end;
    if (first_to_end)
        first_to_end->before = slot;
    first_to_end = slot;
    slot->is_listed = true;
    return 0;
}

/* Not in a child, whose handle is a copy of what the parent has. */
static void slot_free(struct core_slot *slot)
{
    unlist(slot);
    if (slot->handle && is_ours(slot)) {
        Py_BEGIN_ALLOW_THREADS
            slot->free(slot->handle);
        Py_END_ALLOW_THREADS
    }
    free(slot);
}

PyObject *core_object_new(PyTypeObject *type, const char *what, void *handle,
                          void (*free_handle)(void *), int traits)
{
    struct core_slot *slot = calloc(1, sizeof(*slot));

    if (!slot) {
        free_handle(handle);
        return PyErr_NoMemory();
    }
    slot->handle = handle;
    slot->free = free_handle;
    slot->what = what;
    slot->owner = traits & CORE_MAY_FORK ? 0 : getpid();

    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = NULL;
    if (!(traits & CORE_ENDS_FIRST) || list(slot) == 0)
        self = alloc(type, 0);
    if (!self) {
        slot_free(slot);
        return NULL;
    }
    ((struct core_object *)self)->slot = slot;
    return self;
}

void core_object_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);

    /* An exception that is on its way is not to be lost by what is freed. */
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    if (core_slot_of(self))
        slot_free(core_slot_of(self));
    PyErr_Restore(kind, value, traceback);
    free_self(self);
    Py_DECREF(type);
}

PyObject *core_object_no_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    (void)args;
    (void)keywords;
    PyErr_SetString(PyExc_TypeError, "such objects come from functions of wattmeter");
    return NULL;
}

struct core_slot *core_slot_of(PyObject *self)
{
    return ((struct core_object *)self)->slot;
}

static struct core_slot *usable(PyObject *self)
{
    struct core_slot *slot = core_slot_of(self);

    if (!slot->handle)
        PyErr_Format(PyExc_ValueError, "this %s is closed", slot->what);
    else if (!is_ours(slot))
        PyErr_Format(PyExc_ValueError, "this %s belongs to the process that made it",
                     slot->what);
    else
        return slot;
    return NULL;
}

static void fail_in_use(const struct core_slot *slot)
{
    PyErr_Format(PyExc_ValueError, "another thread is at work on this %s", slot->what);
}

void *core_object_enter_beside(PyObject *self)
{
    struct core_slot *slot = usable(self);

    if (slot && slot->is_entered) {
        fail_in_use(slot);
        return NULL;
    }
    return slot ? core_object_enter_shared(self) : NULL;
}

void *core_object_enter(PyObject *self)
{
    void *handle = core_object_enter_beside(self);

    if (handle)
        core_slot_of(self)->is_entered = true;
    return handle;
}

void *core_object_enter_shared(PyObject *self)
{
    struct core_slot *slot = usable(self);

    if (!slot)
        return NULL;
    slot->users++;
    return slot->handle;
}

void core_object_leave(PyObject *self)
{
    core_slot_of(self)->is_entered = false;
    core_object_leave_shared(self);
}

PyObject *core_object_return(PyObject *self, int status, const struct wm_error *err)
{
    core_object_leave(self);
    if (core_check(status, err) < 0)
        return NULL;
    Py_RETURN_NONE;
}

void core_object_leave_shared(PyObject *self)
{
    core_slot_of(self)->users--;
}

void *core_object_take(PyObject *self)
{
    struct core_slot *slot = core_slot_of(self);
    void *handle = slot->handle;

    if (!handle || !is_ours(slot))
        return NULL;
    if (slot->users > 0) {
        fail_in_use(slot);
        return NULL;
    }
    unlist(slot);
    slot->handle = NULL;
    return handle;
}
