/* SPDX-License-Identifier: Apache-2.0 */
/* core_gpus.c - _core.Gpus, what the GPUs of a machine say of themselves, as gpu.h has
 * it. A field is called by its group and key: "name", "power.draw". */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *value_type, *field_type, *looked_type, *gpus_type;

static PyStructSequence_Field value_fields[] = {
    { "value", "str, int, float or bool; None: it is missing" },
    { "state", "\"ok\", or how it is missing: \"none\", \"unsupported\", \"denied\", ..." },
    { "why", "why it is missing; None where it is not" },
    { "code", "the driver's number of the failure; -1: it did not answer; 0: none" },
    { NULL, NULL },
};

static PyStructSequence_Desc value_desc = {
    .name = "wattmeter._core.GpuValue",
    .doc = "What a GPU says of a field.",
    .fields = value_fields,
    .n_in_sequence = 4,
};

static PyStructSequence_Field field_fields[] = {
    { "name", "\"power.limit\": group and key" },
    { "group", "\"power\"; \"\": none" },
    { "key", "\"limit\"" },
    { "label", "for people: \"Limit\"" },
    { "unit", "\"W\", \"J\", \"B\", \"Hz\", \"ratio\", \"celsius\", \"rpm\", \"B/s\",\n"
              "\"s\", \"count\"; \"\" for texts" },
    { "summary", "one line" },
    { "type", "\"str\", \"int\", \"float\" or \"bool\"" },
    { "asked_with", "the group of refresh()" },
    { "fixed", "it does not change while the driver runs" },
    { NULL, NULL },
};

static PyStructSequence_Desc field_desc = {
    .name = "wattmeter._core.GpuField",
    .doc = "What a field is.",
    .fields = field_fields,
    .n_in_sequence = 9,
};

static PyStructSequence_Field looked_fields[] = {
    { "source", "\"nvml\", \"drm\"" },
    { "present", "how many GPUs it has" },
    { "status", "\"OK\", \"ENODEV\", \"EACCES\", ..." },
    { "detail", "what was found, or why nothing was" },
    { "code", "as of a GpuValue" },
    { NULL, NULL },
};

static PyStructSequence_Desc looked_desc = {
    .name = "wattmeter._core.GpuLooked",
    .doc = "A way in which GPUs were looked for.",
    .fields = looked_fields,
    .n_in_sequence = 5,
};

/* In the order of enum wm_gpu_group. */
static const char *const groups[] = { "general",    "memory",    "utilization", "pci",
                                      "clocks",     "power",     "ecc",         "nvlink",
                                      "throughput", "processes", NULL };

static void free_gpus(void *handle)
{
    wm_gpus_close(handle);
}

static PyObject *gpus_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "words", NULL };
    struct wm_source_config config = { 0 };
    struct wm_gpus *gpus;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|z:Gpus", names, &config.gpus))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_gpus_open(&config, &gpus, &err);
    Py_END_ALLOW_THREADS
    if (core_check(status, &err) < 0)
        return NULL;
    return core_object_new(type, "list of GPUs", gpus, free_gpus, 0);
}

/* Of the words of `asked`; None: all but what takes long. -1 and an exception: one is no
 * group. */
static int parse_groups(PyObject *asked, unsigned *ret_groups)
{
    struct core_texts words;

    *ret_groups = WM_GPU_EVERYTHING & ~(unsigned)WM_GPU_THROUGHPUT;
    if (asked == Py_None)
        return 0;
    if (core_texts_init(&words, asked, "groups of fields") < 0)
        return -1;
    unsigned found = 0;
    int place = 0;
    for (size_t i = 0; place >= 0 && i < words.count; i++) {
        place = core_choice(words.texts[i], groups, "group of fields");
        if (place >= 0)
            found |= 1U << place;
    }
    core_texts_release(&words);
    *ret_groups = found;
    return place < 0 ? -1 : 0;
}

PyDoc_STRVAR(
    refresh_doc,
    "refresh($self, groups=None)\n--\n\n"
    "Asks the GPUs again for what may have changed, in five seconds at most.\n"
    "groups: a list of \"general\", \"memory\", \"utilization\", \"pci\", \"clocks\",\n"
    "\"power\", \"ecc\", \"nvlink\", \"throughput\" (20 ms per GPU and direction),\n"
    "\"processes\"; None: all but the throughput.\n\n"
    "True when GPUs came or went, so that it is time for a new Gpus.");

static PyObject *gpus_refresh(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "groups", NULL };
    PyObject *asked = Py_None;
    unsigned chosen;
    struct wm_error err = { 0 };
    int status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:refresh", names, &asked) ||
        parse_groups(asked, &chosen) < 0)
        return NULL;
    struct wm_gpus *gpus = core_object_enter(self);
    if (!gpus)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = wm_gpus_refresh(gpus, chosen, &err);
    Py_END_ALLOW_THREADS
    core_object_leave(self);
    return core_check(status, &err) < 0 ? NULL : PyBool_FromLong(status);
}

static PyObject *plain(const struct wm_gpu_value *value, enum wm_gpu_type type)
{
    if (value->state != WM_READING_OK)
        Py_RETURN_NONE;
    switch (type) {
    case WM_GPU_TEXT:
        return core_text(value->text);
    case WM_GPU_WHOLE:
        return PyLong_FromDouble(value->number);
    case WM_GPU_YES_NO:
        return PyBool_FromLong(value->number != 0);
    default:
        return PyFloat_FromDouble(value->number);
    }
}

static PyObject *value_new(const struct wm_gpu_value *value, enum wm_gpu_type type)
{
    struct core_struct fill = core_struct_begin(value_type);

    core_struct_add(&fill, plain(value, type));
    core_struct_add(&fill, core_text(core_reading_states[value->state]));
    core_struct_add(&fill, core_text(value->why));
    core_struct_add(&fill, PyLong_FromLong(value->code));
    return core_struct_end(&fill);
}

/* What has fields, and how the value of one is had. */
struct thing {
    const struct wm_gpu_field_info *(*info)(size_t field);
    void (*get)(const struct wm_gpus *gpus, size_t gpu, size_t part, size_t field,
                struct wm_gpu_value *ret_value);
};

static const struct wm_gpu_field_info *gpu_info(size_t field)
{
    return wm_gpu_field_info((enum wm_gpu_field)field);
}

static void gpu_get(const struct wm_gpus *gpus, size_t gpu, size_t part, size_t field,
                    struct wm_gpu_value *ret_value)
{
    (void)part;
    wm_gpu_get(gpus, gpu, (enum wm_gpu_field)field, ret_value);
}

static const struct wm_gpu_field_info *process_info(size_t field)
{
    return wm_gpu_process_field_info((enum wm_gpu_process_field)field);
}

static void process_get(const struct wm_gpus *gpus, size_t gpu, size_t part, size_t field,
                        struct wm_gpu_value *ret_value)
{
    wm_gpu_process_get(gpus, gpu, part, (enum wm_gpu_process_field)field, ret_value);
}

static const struct wm_gpu_field_info *mig_info(size_t field)
{
    return wm_gpu_mig_field_info((enum wm_gpu_mig_field)field);
}

static void mig_get(const struct wm_gpus *gpus, size_t gpu, size_t part, size_t field,
                    struct wm_gpu_value *ret_value)
{
    wm_gpu_mig_get(gpus, gpu, part, (enum wm_gpu_mig_field)field, ret_value);
}

static const char *const thing_names[] = { "gpu", "process", "mig", NULL };
static const struct thing things[] = {
    { gpu_info, gpu_get },
    { process_info, process_get },
    { mig_info, mig_get },
};

enum { GPU, PROCESS, MIG };

static PyObject *field_name(const struct wm_gpu_field_info *info)
{
    return PyUnicode_FromFormat("%s%s%s", info->group, info->group[0] ? "." : "",
                                info->key);
}

/* "power.draw" is of group "power" and has the key "draw". */
static bool is_called(const struct wm_gpu_field_info *info, const char *name)
{
    size_t length = strlen(info->group);

    if (length == 0)
        return strcmp(info->key, name) == 0;
    return strncmp(info->group, name, length) == 0 && name[length] == '.' &&
           strcmp(info->key, name + length + 1) == 0;
}

/* All values of a GPU by their names; of a process on it or a part of it by their keys. */
static PyObject *values_of(const struct wm_gpus *gpus, size_t gpu, size_t part, int kind)
{
    PyObject *dict = PyDict_New();
    const struct wm_gpu_field_info *info;
    struct wm_gpu_value value;

    for (size_t i = 0; dict && (info = things[kind].info(i)) != NULL; i++) {
        things[kind].get(gpus, gpu, part, i, &value);
        PyObject *name = kind == GPU ? field_name(info) : core_text(info->key);
        PyObject *made = name ? value_new(&value, info->type) : NULL;
        if (!made || PyDict_SetItem(dict, name, made) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(made);
        Py_XDECREF(name);
    }
    return dict;
}

/* For a call about one GPU; NULL and an exception: there is none of that number. */
static struct wm_gpus *enter_at(PyObject *self, Py_ssize_t gpu)
{
    struct wm_gpus *gpus = core_object_enter(self);

    if (!gpus || (gpu >= 0 && (size_t)gpu < wm_gpus_count(gpus)))
        return gpus;
    core_object_leave(self);
    PyErr_SetString(PyExc_IndexError, "there is no GPU of that number");
    return NULL;
}

static PyObject *get_by_name(const struct wm_gpus *gpus, size_t gpu, const char *name)
{
    const struct wm_gpu_field_info *info;
    struct wm_gpu_value value;

    for (size_t i = 0; (info = gpu_info(i)) != NULL; i++) {
        if (!is_called(info, name))
            continue;
        wm_gpu_get(gpus, gpu, (enum wm_gpu_field)i, &value);
        return value_new(&value, info->type);
    }
    return PyErr_Format(PyExc_KeyError, "%s", name);
}

static PyObject *gpus_get(PyObject *self, PyObject *args)
{
    Py_ssize_t gpu;
    const char *name;

    if (!PyArg_ParseTuple(args, "ns:get", &gpu, &name))
        return NULL;
    struct wm_gpus *gpus = enter_at(self, gpu);
    if (!gpus)
        return NULL;
    PyObject *result = get_by_name(gpus, (size_t)gpu, name);
    core_object_leave(self);
    return result;
}

static PyObject *gpus_values(PyObject *self, PyObject *args)
{
    Py_ssize_t gpu;

    if (!PyArg_ParseTuple(args, "n:values", &gpu))
        return NULL;
    struct wm_gpus *gpus = enter_at(self, gpu);
    if (!gpus)
        return NULL;
    PyObject *result = values_of(gpus, (size_t)gpu, 0, GPU);
    core_object_leave(self);
    return result;
}

static PyObject *parts_of(const struct wm_gpus *gpus, size_t gpu, size_t count, int kind)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++)
        if (!core_append(list, values_of(gpus, gpu, i, kind)))
            Py_CLEAR(list);
    return list;
}

static PyObject *gpus_processes(PyObject *self, PyObject *args)
{
    Py_ssize_t gpu;
    struct wm_gpu_value whole;

    if (!PyArg_ParseTuple(args, "n:processes", &gpu))
        return NULL;
    struct wm_gpus *gpus = enter_at(self, gpu);
    if (!gpus)
        return NULL;
    size_t count = wm_gpu_process_count(gpus, (size_t)gpu, &whole);
    whole.number = (double)count;
    PyObject *result = Py_BuildValue("(NN)", parts_of(gpus, (size_t)gpu, count, PROCESS),
                                     value_new(&whole, WM_GPU_WHOLE));
    core_object_leave(self);
    return result;
}

static PyObject *gpus_migs(PyObject *self, PyObject *args)
{
    Py_ssize_t gpu;

    if (!PyArg_ParseTuple(args, "n:migs", &gpu))
        return NULL;
    struct wm_gpus *gpus = enter_at(self, gpu);
    if (!gpus)
        return NULL;
    PyObject *result =
        parts_of(gpus, (size_t)gpu, wm_gpu_mig_count(gpus, (size_t)gpu), MIG);
    core_object_leave(self);
    return result;
}

static PyObject *select_gpus(struct wm_gpus *gpus, const char *words,
                             const char *const *environment)
{
    size_t *chosen = calloc(wm_gpus_present(gpus) + 1, sizeof(*chosen));
    size_t count = 0;
    const char *remark = NULL;
    struct wm_error err = { 0 };

    if (!chosen)
        return PyErr_NoMemory();
    int status = core_check(
        wm_gpu_select(gpus, words, environment, chosen, &count, &remark, &err), &err);
    PyObject *list = status < 0 ? NULL : PyList_New(0);
    for (size_t i = 0; list && i < count; i++)
        if (!core_append(list, PyLong_FromSize_t(chosen[i])))
            Py_CLEAR(list);
    free(chosen);
    return list ? Py_BuildValue("(NN)", list, core_text(remark)) : NULL;
}

PyDoc_STRVAR(select_doc,
             "select($self, words, environment=None)\n--\n\n"
             "Which of all GPUs `words` means, as (their indices, a remark or None).\n"
             "environment: \"NAME=VALUE\" for \"visible\"; None: this process's.\n\n"
             "Raises ValueError with the wrong word and a list of the GPUs.");

static PyObject *gpus_select(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = { "words", "environment", NULL };
    const char *words;
    PyObject *given = Py_None;
    struct core_texts environment = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "z|O:select", names, &words, &given) ||
        (given != Py_None && core_texts_init(&environment, given, "an environment") < 0))
        return NULL;
    struct wm_gpus *gpus = core_object_enter(self);
    PyObject *result = NULL;
    if (gpus) {
        result = select_gpus(gpus, words, environment.texts);
        core_object_leave(self);
    }
    core_texts_release(&environment);
    return result;
}

struct printing {
    const struct wm_gpus *gpus;
    enum wm_format format;
};

static int print_gpus(void *context, FILE *out, struct wm_error *err)
{
    const struct printing *printing = context;

    return wm_gpus_print(printing->gpus, printing->format, out, err);
}

static PyObject *gpus_print(PyObject *self, PyObject *args)
{
    const char *word = "text";

    if (!PyArg_ParseTuple(args, "|s:print", &word))
        return NULL;
    int format = core_format(word);
    struct printing printing = { .format = (enum wm_format)format };
    printing.gpus = format < 0 ? NULL : core_object_enter(self);
    if (!printing.gpus)
        return NULL;
    PyObject *result = core_print(print_gpus, &printing);
    core_object_leave(self);
    return result;
}

static PyObject *gpus_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(wm_gpus_count(core_slot_of(self)->handle));
}

static PyObject *gpus_present(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(wm_gpus_present(core_slot_of(self)->handle));
}

static PyObject *looked_new(const struct wm_gpu_looked *looked)
{
    struct core_struct fill = core_struct_begin(looked_type);

    core_struct_add(&fill, core_text(looked->source));
    core_struct_add(&fill, PyLong_FromSize_t(looked->present));
    core_struct_add(&fill, core_text(core_status_name(looked->status)));
    core_struct_add(&fill, core_text(looked->detail));
    core_struct_add(&fill, PyLong_FromLong(looked->code));
    return core_struct_end(&fill);
}

static PyObject *gpus_looked(PyObject *self, void *unused)
{
    struct wm_gpus *gpus = core_object_enter(self);
    const struct wm_gpu_looked *looked;

    (void)unused;
    if (!gpus)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && (looked = wm_gpus_looked(gpus, i)) != NULL; i++)
        if (!core_append(list, looked_new(looked)))
            Py_CLEAR(list);
    core_object_leave(self);
    return list;
}

static PyObject *group_name(unsigned group)
{
    size_t place = 0;

    while (groups[place] && group != 1U << place)
        place++;
    return core_text(groups[place]);
}

static PyObject *field_new(const struct wm_gpu_field_info *info)
{
    static const char *const types[] = { "str", "int", "float", "bool" };
    struct core_struct fill = core_struct_begin(field_type);

    core_struct_add(&fill, field_name(info));
    core_struct_add(&fill, core_text(info->group));
    core_struct_add(&fill, core_text(info->key));
    core_struct_add(&fill, core_text(info->label));
    core_struct_add(&fill, core_text(info->unit));
    core_struct_add(&fill, core_text(info->summary));
    core_struct_add(&fill, core_text(types[info->type]));
    core_struct_add(&fill, group_name(info->asked_with));
    core_struct_add(&fill, PyBool_FromLong(info->fixed));
    return core_struct_end(&fill);
}

static PyObject *gpus_fields(PyObject *unused, PyObject *args)
{
    const char *word = "gpu";
    const struct wm_gpu_field_info *info;

    (void)unused;
    if (!PyArg_ParseTuple(args, "|s:fields", &word))
        return NULL;
    int kind = core_choice(word, thing_names, "thing with fields");
    PyObject *list = kind < 0 ? NULL : PyList_New(0);
    for (size_t i = 0; list && (info = things[kind].info(i)) != NULL; i++)
        if (!core_append(list, field_new(info)))
            Py_CLEAR(list);
    return list;
}

static PyMethodDef methods[] = {
    { "refresh", CORE_KEYWORDS(gpus_refresh), refresh_doc },
    { "get", gpus_get, METH_VARARGS,
      "get($self, gpu, name, /)\n--\n\nThe GpuValue of a field (\"power.draw\") of GPU "
      "number\n"
      "`gpu` of those chosen. IndexError, KeyError." },
    { "values", gpus_values, METH_VARARGS,
      "values($self, gpu, /)\n--\n\nAll of them by their names." },
    { "processes", gpus_processes, METH_VARARGS,
      "processes($self, gpu, /)\n--\n\nThe processes on a GPU as dicts of GpuValue, and a\n"
      "GpuValue of how many they are, which says why where the list is not known or not\n"
      "whole." },
    { "migs", gpus_migs, METH_VARARGS,
      "migs($self, gpu, /)\n--\n\nThe parts of a partitioned GPU as dicts of GpuValue." },
    { "select", CORE_KEYWORDS(gpus_select), select_doc },
    { "print", gpus_print, METH_VARARGS,
      "print($self, format='text', /)\n--\n\n\"text\" (blocks for a person), \"brief\" (a "
      "line\n"
      "per GPU), \"json\" or \"json-line\"." },
    { "fields", gpus_fields, METH_VARARGS | METH_STATIC,
      "fields(kind='gpu', /)\n--\n\nThe GpuField of all there is to know of a \"gpu\", a\n"
      "\"process\" or a \"mig\"." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "count", gpus_count, NULL, "How many were chosen.", NULL },
    { "present", gpus_present, NULL, "How many there are.", NULL },
    { "looked", gpus_looked, NULL, "Where GPUs were looked for.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyDoc_STRVAR(gpus_doc,
             "Gpus(words=None)\n--\n\n"
             "The GPUs that `words` chooses (\"visible\", \"0,GPU-7c1f\"; None: all),\n"
             "asked for everything once. A machine without one has none.\n\n"
             "Raises ValueError for a wrong choice, with a list of the GPUs.");

static PyType_Slot slots[] = {
    { Py_tp_new, gpus_new },         { Py_tp_dealloc, core_object_dealloc },
    { Py_tp_methods, methods },      { Py_tp_getset, members },
    { Py_tp_doc, (void *)gpus_doc }, { 0, NULL },
};

static PyType_Spec spec = {
    .name = "wattmeter._core.Gpus",
    .basicsize = sizeof(struct core_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int core_add_gpus(PyObject *module)
{
    value_type = core_add_struct(module, &value_desc);
    field_type = core_add_struct(module, &field_desc);
    looked_type = core_add_struct(module, &looked_desc);
    gpus_type = core_add_type(module, &spec);
    return value_type && field_type && looked_type && gpus_type ? 0 : -1;
}
