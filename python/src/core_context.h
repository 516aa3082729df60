/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_context.h - regions of contexts (contextvars), such as asyncio's tasks.
 *
 * Between two steps of a task its thread runs others, so the thread's stack does not say
 * what lies in what. Calls of a context are started and stopped by number instead, each
 * inside the innermost open one of its context. A task inherits the context of its creator.
 */
#ifndef WM_CORE_CONTEXT_H
#define WM_CORE_CONTEXT_H

#include "core.h"

/* Lets other threads run if the library's call may wait. It seldom may, and the lock would
 * cost more than the call. core_region_restore() takes the result. */
static inline PyThreadState *core_region_release(void)
{
    return wm_region_may_wait() ? PyEval_SaveThread() : NULL;
}

static inline void core_region_restore(PyThreadState *saved)
{
    if (saved)
        PyEval_RestoreThread(saved);
}

static inline uint64_t core_region_start(const char *name, uint64_t parent)
{
    PyThreadState *saved = core_region_release();
    uint64_t number = wm_region_start_in(name, parent);

    core_region_restore(saved);
    return number;
}

static inline void core_region_stop(uint64_t number)
{
    PyThreadState *saved = core_region_release();

    wm_region_stop(number);
    core_region_restore(saved);
}

/* Opens a call inside the innermost one of this context, and makes it the innermost one if
 * `is_innermost`. core_context_close() ends it, whatever has been opened since; the name
 * is read now only. NULL: an exception. */
PyObject *core_context_open(const char *name, bool is_innermost);

/* Accepts a call that has ended. */
void core_context_close(PyObject *call);

/* The same for a function's call, if one is open in this context; else NULL. -1: an
 * exception. */
int core_context_open_inside(const char *name, PyObject **ret_call);

/* Opens a call by `region`, whose name that is, if the running block belongs to a context:
 * 1, 0 if not, -1 and an exception. core_context_leave() ends what this context opened
 * last by `region`, or else what any did: an event loop closes asynchronous generators in
 * a context of its own. */
int core_context_enter(PyObject *region, const char *name);
int core_context_leave(PyObject *region);

/* The same for blocks that are known to belong to a context: 0, -1 and an exception. */
int core_context_enter_async(PyObject *region, const char *name);
int core_context_leave_async(PyObject *region);

/* Adds its type, functions and constants to the module; 0, or -1 and an exception. */
int core_add_context(PyObject *module);

#endif
