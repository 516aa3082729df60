/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - what the files of the extension wattmeter._core share: objects that hold a
 * handle of the library, errors, and texts.
 *
 * The extension converts and documents; it decides nothing. It keeps to the stable ABI of
 * Python 3.9, so that one build serves all later versions, and to the library's public
 * headers. It is loaded once in a process: what it has of its own stands in statics.
 */
#ifndef WM_CORE_H
#define WM_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "wattmeter/wattmeter.h"

/* What an object has of the library. It is not part of the object, because at the end of
 * the interpreter it may outlive it. */
struct core_slot {
    void *handle; /* NULL: there is none yet, or it is closed */
    void (*free)(void *handle);
    void (*end)(void *handle); /* what may be done beside a shared call; NULL: nothing */
    const char *what;          /* for errors: "tracker" */
    pid_t owner;               /* the process that it belongs to; 0: it may be forked */
    int users;                 /* calls that are at work on it, without the GIL as a rule */
    bool is_entered;           /* by one of them, with core_object_enter() */
    int state;                 /* the type's own */
    struct core_slot *before;  /* in the list of those that are freed at the end */
    struct core_slot *after;
    bool is_listed;
};

struct core_object {
    PyObject_HEAD struct core_slot *slot;
};

enum core_traits {
    CORE_MAY_FORK = 1 << 0,   /* it is memory and nothing else */
    CORE_ENDS_FIRST = 1 << 1, /* the end of the interpreter ends it */
};

/* A new object of that type around `handle`, which is freed in any case. */
PyObject *core_object_new(PyTypeObject *type, const char *what, void *handle,
                          void (*free)(void *), int traits);

/* tp_dealloc of all such types, and tp_new of those that a function of the module makes. */
void core_object_dealloc(PyObject *self);
PyObject *core_object_no_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

/* The handle of `self` for a call during which there is no other such call; NULL, and an
 * exception, where there is one, it is closed, or another process's. core_object_leave()
 * ends the call. */
void *core_object_enter(PyObject *self);
void core_object_leave(PyObject *self);

/* Ends such a call that came to `status`: None, or NULL and the exception for it. */
PyObject *core_object_return(PyObject *self, int status, const struct wm_error *err);

/* The same for a call that there may be several of, but not beside one of those;
 * core_object_leave_shared() ends it. */
void *core_object_enter_beside(PyObject *self);

/* The same for functions that any thread may call at any time. */
void *core_object_enter_shared(PyObject *self);
void core_object_leave_shared(PyObject *self);

/* The handle, which the object has no longer: its caller frees it. NULL where there is
 * none, or this is another process; an exception is set where it is in use. */
void *core_object_take(PyObject *self);

struct core_slot *core_slot_of(PyObject *self);

/* Adds the type that `spec` describes to the module under the last part of its name. NULL:
 * an exception is set. The result lives as long as the process. */
PyTypeObject *core_add_type(PyObject *module, PyType_Spec *spec);
PyTypeObject *core_add_struct(PyObject *module, PyStructSequence_Desc *desc);

/* 0, or -1 and the exception that a negative `status` means. */
int core_check(int status, const struct wm_error *err);

/* Before a recording is opened: the library uses the SQLite that the process has, and so
 * Python's, loaded now if it was not. Two of them undo each other's locks of a file. */
void core_share_sqlite(void);

/* Sets wattmeter.Error, or what stands for that status, with this text. */
void core_fail(int status, const char *text);

/* "OK", "ENODEV", ... */
const char *core_status_name(int status);

/* None for NULL. Bytes that are not UTF-8 become what Python's file names have for them. */
PyObject *core_text(const char *text);

/* The place of `word` in `words`, which end with NULL; -1 and a ValueError that lists them
 * otherwise. `what` is what one of them is: "format". */
int core_choice(const char *word, const char *const words[], const char *what);

/* The texts of a list, as a list. */
PyObject *core_report_texts(const struct wm_report *report, enum wm_report_list list);

/* The format of that name; -1 and a ValueError if there is none. */
int core_format(const char *word);

/* The words of enum wm_record_mode, enum wm_report_kind and the
 * states, origins and kinds of device of source.h. */
extern const char *const core_modes[];
extern const char *const core_report_kinds[];
extern const char *const core_reading_states[];
extern const char *const core_origins[];
extern const char *const core_device_kinds[];

/* Seconds as nanoseconds. What the library would refuse stays out of range. */
int64_t core_ns(double seconds);

/* Parses "path, run=None" by a `format` that ends with the function's name: the path, which
 * the caller releases, and the run; NULL and an exception. */
PyObject *core_parse_run(PyObject *args, PyObject *keywords, const char *format,
                         size_t *ret_run);

/* None is WM_LAST_RUN; an exception is set for what is no number from 0. */
size_t core_run_number(PyObject *run);

/* Fills an item of a struct sequence; NULL as `value` is a failure that is kept for
 * core_struct_end(), which then gives NULL for all of it. */
struct core_struct {
    PyObject *object;
    Py_ssize_t next;
};
struct core_struct core_struct_begin(PyTypeObject *type);
void core_struct_add(struct core_struct *fill, PyObject *value);
PyObject *core_struct_end(struct core_struct *fill);

/* Sets `key` of a dictionary to `value`, which it takes; false and an exception where that
 * fails, or `value` is NULL. */
bool core_put(PyObject *dict, const char *key, PyObject *value);

/* Appends `value`, which it takes. */
bool core_append(PyObject *list, PyObject *value);

/* A string of what `print` writes, which it does without the GIL. */
typedef int (*core_printer)(void *context, FILE *out, struct wm_error *err);
PyObject *core_print(core_printer print, void *context);

/* Paths and words of an argument list: bytes objects in `held`, their texts in `texts`,
 * which ends with NULL. */
struct core_texts {
    PyObject *held;
    const char **texts;
    size_t count;
};
int core_texts_init(struct core_texts *texts, PyObject *sequence, const char *what);
void core_texts_release(struct core_texts *texts);

/* How a report is printed, as the last keywords of a function. */
#define CORE_STYLE_FORMAT "ipzzzdzdd"
#define CORE_STYLE_KEYWORDS                                                                \
    "verbosity", "for_terminal", "ram_unit", "gpu_ram_unit", "time_unit", "price_per_kwh", \
        "currency", "carbon_g_per_kwh", "pue"
#define CORE_STYLE_TARGETS(style, terminal)                                                \
    &(style).verbosity, &(terminal), &(style).ram_unit, &(style).gpu_ram_unit,             \
        &(style).time_unit, &(style).price_per_kwh, &(style).currency,                     \
        &(style).carbon_g_per_kwh, &(style).pue
#define CORE_STYLE_SIGNATURE                                                               \
    "verbosity=0, for_terminal=False, ram_unit=None, gpu_ram_unit=None, time_unit=None, "  \
    "price_per_kwh=0.0, currency=None, carbon_g_per_kwh=0.0, pue=0.0"

/* A report object around that report, which it takes. */
PyObject *core_report_new(struct wm_report *report);

/* The one in a report object; NULL and a TypeError where it is something else. */
const struct wm_report *core_report_of(PyObject *object);

/* A channel as a struct sequence, and those of a recording. */
PyObject *core_channel_new(const struct wm_channel *channel);
PyObject *core_channels(const struct wm_recording *recording);

/* What wm_tracker_live() has by now, as Recording.columns() gives it. */
PyObject *core_live_columns(struct wm_recording *live);

/* The middle of a PyMethodDef. */
#define CORE_KEYWORDS(function)                                                            \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/* A buffer of that many bytes as a memoryview with items of `format`. */
PyObject *core_view(const void *data, size_t size, const char *format);

/* Each adds its types and functions to the module; 0, or -1 and an exception. */
int core_add_tracker(PyObject *module);
int core_add_report(PyObject *module);
int core_add_region(PyObject *module);
int core_add_meter(PyObject *module);
int core_add_plot(PyObject *module);
int core_add_gpus(PyObject *module);
int core_add_recording(PyObject *module);
int core_add_analysis(PyObject *module);
int core_add_repeat(PyObject *module);
int core_add_experiment(PyObject *module);
int core_add_doctor(PyObject *module);
int core_add_cap(PyObject *module);
int core_add_cap_profile(PyObject *module);
int core_add_source(PyObject *module);

#endif
