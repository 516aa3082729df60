/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_sheet.c - one GPU's values, handed from the thread that asks to the owner. */
#include "source/gpu/source_gpu_sheet.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/text/base_text.h"

/* Of one list; they are few, and the same for most entries. */
enum { REASONS_SIZE = 2048 };

/* Of a name or an identity in a list with its NUL; longer ones are cut. */
enum { SHORT_SIZE = 96 };

struct slot {
    enum wm_reading_state state;
    double number;
    char text[WM_GPU_TEXT_SIZE]; /* or why there is none */
    bool told;                   /* in the call that goes on, or went last */
    bool fresh;                  /* since the owner looked last */
};

/* One NUL-terminated text after another. */
struct reasons {
    char text[REASONS_SIZE];
    size_t used;
};

struct process {
    struct wm_gpu_process_told told; /* reasons are in `reasons`, its name is here: */
    char name[SHORT_SIZE];
};

struct process_list {
    enum wm_reading_state state;
    char why[WM_GPU_TEXT_SIZE];
    struct process *items;
    size_t count, room;
    const char *lacks; /* why it is not whole, or NULL */
    struct reasons reasons;
};

struct mig {
    struct wm_gpu_mig_told told; /* its texts are the two below, and in `reasons` */
    char uuid[SHORT_SIZE], name[SHORT_SIZE];
};

struct mig_list {
    struct mig items[WM_GPU_MIG_MAX];
    size_t count;
    struct reasons reasons;
};

/* Of each list there are three: the thread fills in one, and at the end swaps it
 * with the second, which the owner swaps with the third, which it shows. So
 * neither waits for the other, and memory is made for growth alone. */
struct wm_gpu_sheet {
    const char *source;
    char not_told[64];
    pthread_mutex_t lock;

    /* The thread's alone. */
    unsigned running; /* the groups that the call asks */
    bool running_all;
    struct process_list *made_processes;
    struct mig_list *made_migs;

    /* Under the lock. */
    unsigned asked; /* by the owner, and not begun */
    unsigned known; /* groups that have been asked with the fixed fields */
    unsigned done;  /* groups of the calls that ended since the owner looked */
    struct slot told[WM_GPU_FIELDS];
    struct process_list *told_processes;
    struct mig_list *told_migs;
    bool processes_told, processes_fresh;
    bool migs_fresh;

    /* The owner's alone. */
    unsigned collecting; /* what it asked for */
    unsigned ever;       /* what it ever asked for */
    struct slot shown[WM_GPU_FIELDS];
    struct process_list *shown_processes;
    bool is_listed_anew;
    struct mig_list *shown_migs;
    char migs_late[WM_GPU_TEXT_SIZE]; /* why what may change of them is not known */
};

static const char not_asked[] = "not asked";

void wm_gpu_clean(char *out, size_t size, const char *text)
{
    wm_text_utf8(out, size, text, strlen(text));
    wm_text_clean(out);
}

int wm_gpu_sheet_new(const char *source, struct wm_gpu_sheet **ret_sheet,
                     struct wm_error *err)
{
    struct wm_gpu_sheet *sheet = calloc(1, sizeof(*sheet));

    if (!sheet)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", source);
    pthread_mutex_init(&sheet->lock, NULL);
    sheet->source = source;
    snprintf(sheet->not_told, sizeof(sheet->not_told), "not told by %s", source);
    sheet->made_processes = calloc(1, sizeof(*sheet->made_processes));
    sheet->told_processes = calloc(1, sizeof(*sheet->told_processes));
    sheet->shown_processes = calloc(1, sizeof(*sheet->shown_processes));
    sheet->made_migs = calloc(1, sizeof(*sheet->made_migs));
    sheet->told_migs = calloc(1, sizeof(*sheet->told_migs));
    sheet->shown_migs = calloc(1, sizeof(*sheet->shown_migs));
    if (!sheet->made_processes || !sheet->told_processes || !sheet->shown_processes ||
        !sheet->made_migs || !sheet->told_migs || !sheet->shown_migs) {
        wm_gpu_sheet_free(sheet);
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", source);
    }
    *ret_sheet = sheet;
    return WM_OK;
}

static void free_processes(struct process_list *list)
{
    if (list)
        free(list->items);
    free(list);
}

void wm_gpu_sheet_free(struct wm_gpu_sheet *sheet)
{
    if (!sheet)
        return;
    free_processes(sheet->made_processes);
    free_processes(sheet->told_processes);
    free_processes(sheet->shown_processes);
    free(sheet->made_migs);
    free(sheet->told_migs);
    free(sheet->shown_migs);
    pthread_mutex_destroy(&sheet->lock);
    free(sheet);
}

/* What a backend says of one field. `text` is cleaned into the slot. */
static void put(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                enum wm_reading_state state, double number, const char *text)
{
    struct slot *slot = &sheet->told[field];
    char cleaned[WM_GPU_TEXT_SIZE];

    wm_gpu_clean(cleaned, sizeof(cleaned), text);
    pthread_mutex_lock(&sheet->lock);
    slot->state = state;
    slot->number = number;
    memcpy(slot->text, cleaned, sizeof(cleaned));
    slot->told = true;
    slot->fresh = true;
    pthread_mutex_unlock(&sheet->lock);
}

void wm_gpu_set_number(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, double value)
{
    assert(wm_gpu_field_info(field)->type != WM_GPU_TEXT);
    if (isfinite(value))
        put(sheet, field, WM_READING_OK, value, "");
    else
        put(sheet, field, WM_READING_FAILED, 0, "what the driver tells is no number");
}

void wm_gpu_set_text(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, const char *text)
{
    assert(wm_gpu_field_info(field)->type == WM_GPU_TEXT);
    if (text[0] != '\0')
        put(sheet, field, WM_READING_OK, 0, text);
    else
        put(sheet, field, WM_READING_UNSUPPORTED, 0, "the driver tells an empty text");
}

void wm_gpu_set_missing(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *why)
{
    assert(state != WM_READING_OK && state != WM_READING_NONE && why);
    put(sheet, field, state, 0, why);
}

static const char *keep_reason(struct reasons *reasons, const char *why)
{
    char cleaned[WM_GPU_TEXT_SIZE];

    wm_gpu_clean(cleaned, sizeof(cleaned), why);
    for (size_t at = 0; at < reasons->used; at += strlen(reasons->text + at) + 1) {
        if (strcmp(reasons->text + at, cleaned) == 0)
            return reasons->text + at;
    }

    size_t size = strlen(cleaned) + 1;
    if (size > sizeof(reasons->text) - reasons->used)
        return "one of more reasons than can be kept";
    char *kept = reasons->text + reasons->used;
    memcpy(kept, cleaned, size);
    reasons->used += size;
    return kept;
}

/* A number as it shall be kept in a list: with a reason if it is not ok. */
static struct wm_gpu_number keep_number(const struct wm_gpu_sheet *sheet,
                                        struct reasons *reasons,
                                        const struct wm_gpu_number *told)
{
    struct wm_gpu_number kept = *told;

    if (kept.state == WM_READING_OK && isfinite(kept.value)) {
        kept.why = NULL;
    } else if (kept.state == WM_READING_OK) {
        kept.state = WM_READING_FAILED;
        kept.why = "what the driver tells is no number";
    } else if (kept.state == WM_READING_NONE && !kept.why) {
        kept.state = WM_READING_UNSUPPORTED;
        kept.why = sheet->not_told;
    } else {
        kept.why = keep_reason(reasons, kept.why ? kept.why : sheet->not_told);
    }
    return kept;
}

void wm_gpu_begin_processes(struct wm_gpu_sheet *sheet)
{
    sheet->made_processes->count = 0;
    sheet->made_processes->lacks = NULL;
    sheet->made_processes->reasons.used = 0;
}

int wm_gpu_add_process(struct wm_gpu_sheet *sheet, const struct wm_gpu_process_told *told)
{
    struct process_list *list = sheet->made_processes;

    if (list->count == WM_GPU_PROCESS_MAX)
        list->lacks = "there are more processes than can be listed";
    else if (wm_array_reserve(&list->items, list->count, &list->room,
                              sizeof(*list->items)) < 0)
        list->lacks = "out of memory";
    if (list->lacks)
        return WM_ENOMEM;

    struct process *process = &list->items[list->count++];
    struct wm_gpu_process_told *item = &process->told;
    *item = *told;
    wm_gpu_clean(process->name, sizeof(process->name), told->name ? told->name : "");
    item->memory = keep_number(sheet, &list->reasons, &told->memory);
    item->sm = keep_number(sheet, &list->reasons, &told->sm);
    item->memory_utilization =
        keep_number(sheet, &list->reasons, &told->memory_utilization);
    item->encoder = keep_number(sheet, &list->reasons, &told->encoder);
    item->decoder = keep_number(sheet, &list->reasons, &told->decoder);
    item->gpu_time = keep_number(sheet, &list->reasons, &told->gpu_time);
    return WM_OK;
}

void wm_gpu_end_processes(struct wm_gpu_sheet *sheet, enum wm_reading_state state,
                          const char *why)
{
    struct process_list *list = sheet->made_processes;

    list->state = state;
    wm_gpu_clean(list->why, sizeof(list->why), why ? why : "");
    if (state == WM_READING_OK && list->lacks) {
        list->state = WM_READING_FAILED;
        wm_gpu_clean(list->why, sizeof(list->why), list->lacks);
    }

    pthread_mutex_lock(&sheet->lock);
    sheet->made_processes = sheet->told_processes;
    sheet->told_processes = list;
    sheet->processes_told = true;
    sheet->processes_fresh = true;
    pthread_mutex_unlock(&sheet->lock);
}

void wm_gpu_begin_migs(struct wm_gpu_sheet *sheet)
{
    sheet->made_migs->count = 0;
    sheet->made_migs->reasons.used = 0;
}

int wm_gpu_add_mig(struct wm_gpu_sheet *sheet, const struct wm_gpu_mig_told *told)
{
    struct mig_list *list = sheet->made_migs;

    if (list->count == WM_GPU_MIG_MAX)
        return WM_ENOMEM;
    struct mig *mig = &list->items[list->count++];
    mig->told = *told;
    wm_gpu_clean(mig->uuid, sizeof(mig->uuid), told->uuid ? told->uuid : "");
    wm_gpu_clean(mig->name, sizeof(mig->name), told->name ? told->name : "");
    mig->told.multiprocessors = keep_number(sheet, &list->reasons, &told->multiprocessors);
    mig->told.memory_total = keep_number(sheet, &list->reasons, &told->memory_total);
    mig->told.memory_used = keep_number(sheet, &list->reasons, &told->memory_used);
    return WM_OK;
}

void wm_gpu_end_migs(struct wm_gpu_sheet *sheet)
{
    struct mig_list *list = sheet->made_migs;

    pthread_mutex_lock(&sheet->lock);
    sheet->made_migs = sheet->told_migs;
    sheet->told_migs = list;
    sheet->migs_fresh = true;
    pthread_mutex_unlock(&sheet->lock);
}

void wm_gpu_sheet_ask(struct wm_gpu_sheet *sheet, unsigned groups)
{
    sheet->collecting = groups;
    sheet->ever |= groups;
    pthread_mutex_lock(&sheet->lock);
    sheet->asked = groups | (sheet->ever & ~sheet->known);
    pthread_mutex_unlock(&sheet->lock);
}

unsigned wm_gpu_sheet_begin(struct wm_gpu_sheet *sheet, bool *ret_all)
{
    pthread_mutex_lock(&sheet->lock);
    sheet->running = sheet->asked;
    sheet->running_all = (sheet->asked & ~sheet->known) != 0;
    sheet->asked = 0;
    for (size_t i = 0; i < WM_GPU_FIELDS; i++)
        sheet->told[i].told = false;
    sheet->processes_told = false;
    pthread_mutex_unlock(&sheet->lock);

    *ret_all = sheet->running_all;
    return sheet->running;
}

void wm_gpu_sheet_end(struct wm_gpu_sheet *sheet)
{
    unsigned groups = sheet->running;

    for (enum wm_gpu_field i = 0; i < WM_GPU_FIELDS; i++) {
        const struct wm_gpu_field_info *info = wm_gpu_field_info(i);
        bool expected = (info->asked_with & groups) && (!info->fixed || sheet->running_all);

        /* The thread alone sets `told`, so that it may look without the lock. */
        if (expected && !sheet->told[i].told)
            wm_gpu_set_missing(sheet, i, WM_READING_UNSUPPORTED, sheet->not_told);
    }
    if ((groups & WM_GPU_PROCESSES) && !sheet->processes_told) {
        wm_gpu_begin_processes(sheet);
        wm_gpu_end_processes(sheet, WM_READING_UNSUPPORTED, sheet->not_told);
    }

    pthread_mutex_lock(&sheet->lock);
    sheet->done |= groups;
    if (sheet->running_all)
        sheet->known |= groups;
    pthread_mutex_unlock(&sheet->lock);
}

static void collect_field(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                          const char *late)
{
    const struct wm_gpu_field_info *info = wm_gpu_field_info(field);
    struct slot *told = &sheet->told[field], *shown = &sheet->shown[field];

    if (told->fresh) {
        *shown = *told;
        told->fresh = false;
        return;
    }

    /* A fixed one that has been told once needs not be told again. */
    bool is_known =
        info->fixed && (shown->state == WM_READING_OK || (sheet->known & info->asked_with));
    if (!(info->asked_with & sheet->collecting) || is_known)
        return;
    shown->state = WM_READING_FAILED;
    wm_gpu_clean(shown->text, sizeof(shown->text), late);
}

static void collect_processes(struct wm_gpu_sheet *sheet, const char *late)
{
    struct process_list *list = sheet->shown_processes;

    sheet->is_listed_anew =
        sheet->processes_fresh || (sheet->collecting & WM_GPU_PROCESSES);
    if (sheet->processes_fresh) {
        sheet->shown_processes = sheet->told_processes;
        sheet->told_processes = list;
        sheet->processes_fresh = false;
    } else if (sheet->collecting & WM_GPU_PROCESSES) {
        list->count = 0;
        list->state = WM_READING_FAILED;
        wm_gpu_clean(list->why, sizeof(list->why), late);
    }
}

static void collect_migs(struct wm_gpu_sheet *sheet, const char *late)
{
    struct mig_list *list = sheet->shown_migs;

    if (sheet->migs_fresh) {
        sheet->shown_migs = sheet->told_migs;
        sheet->told_migs = list;
        sheet->migs_fresh = false;
        sheet->migs_late[0] = '\0';
    } else if (sheet->collecting & ~sheet->done & WM_GPU_MEMORY) {
        wm_gpu_clean(sheet->migs_late, sizeof(sheet->migs_late), late);
    }
}

void wm_gpu_sheet_collect(struct wm_gpu_sheet *sheet, const char *late)
{
    pthread_mutex_lock(&sheet->lock);
    for (enum wm_gpu_field i = 0; i < WM_GPU_FIELDS; i++)
        collect_field(sheet, i, late);
    collect_processes(sheet, late);
    collect_migs(sheet, late);
    sheet->done = 0;
    pthread_mutex_unlock(&sheet->lock);
    sheet->collecting = 0;
}

static struct wm_gpu_value good(double number)
{
    return (struct wm_gpu_value) { .state = WM_READING_OK, .number = number };
}

static struct wm_gpu_value missing(enum wm_reading_state state, const char *why)
{
    return (struct wm_gpu_value) { .state = state, .why = why };
}

/* Text of a list, which is empty where it was not told. */
static struct wm_gpu_value text_value(const char *text, const char *not_told)
{
    if (text[0] == '\0')
        return missing(WM_READING_UNSUPPORTED, not_told);
    return (struct wm_gpu_value) { .state = WM_READING_OK, .text = text };
}

static struct wm_gpu_value value_of(const struct wm_gpu_number *number)
{
    return number->state == WM_READING_OK ? good(number->value)
                                          : missing(number->state, number->why);
}

void wm_gpu_sheet_get(const struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                      struct wm_gpu_value *ret_value)
{
    const struct slot *slot = &sheet->shown[field];

    if (slot->state == WM_READING_NONE)
        *ret_value = missing(WM_READING_NONE, not_asked);
    else if (slot->state != WM_READING_OK)
        *ret_value = missing(slot->state, slot->text);
    else if (wm_gpu_field_info(field)->type == WM_GPU_TEXT)
        *ret_value = text_value(slot->text, sheet->not_told);
    else
        *ret_value = good(slot->number);
}

bool wm_gpu_sheet_is_listed_anew(const struct wm_gpu_sheet *sheet)
{
    return sheet->is_listed_anew;
}

size_t wm_gpu_sheet_process_count(const struct wm_gpu_sheet *sheet,
                                  struct wm_gpu_value *ret_list)
{
    const struct process_list *list = sheet->shown_processes;

    if (list->state == WM_READING_OK)
        *ret_list = good((double)list->count);
    else if (list->state == WM_READING_NONE)
        *ret_list = missing(WM_READING_NONE, not_asked);
    else
        *ret_list = missing(list->state, list->why);
    return list->count;
}

pid_t wm_gpu_sheet_process_pid(const struct wm_gpu_sheet *sheet, size_t process)
{
    return sheet->shown_processes->items[process].told.pid;
}

static struct wm_gpu_value instance_value(int instance, const struct wm_gpu_sheet *sheet)
{
    return instance < 0 ? missing(WM_READING_UNSUPPORTED, sheet->not_told) : good(instance);
}

/* Of a GPU that is partitioned, perhaps. */
static struct wm_gpu_value process_instance(int instance, const struct wm_gpu_sheet *sheet)
{
    if (instance == WM_GPU_NOT_PARTITIONED)
        return missing(WM_READING_UNSUPPORTED, "the GPU is not partitioned");
    return instance_value(instance, sheet);
}

void wm_gpu_sheet_process_get(const struct wm_gpu_sheet *sheet, size_t process,
                              enum wm_gpu_process_field field,
                              struct wm_gpu_value *ret_value)
{
    const struct process *item = &sheet->shown_processes->items[process];
    const struct wm_gpu_process_told *told = &item->told;

    switch (field) {
    case WM_GPU_PROCESS_NAME:
        *ret_value = text_value(item->name, sheet->not_told);
        break;
    case WM_GPU_PROCESS_MEMORY:
        *ret_value = value_of(&told->memory);
        break;
    case WM_GPU_PROCESS_TYPE:
        *ret_value = text_value(told->type ? told->type : "", sheet->not_told);
        break;
    case WM_GPU_PROCESS_DRIVER_PID:
        *ret_value = good(told->pid);
        break;
    case WM_GPU_PROCESS_SM:
        *ret_value = value_of(&told->sm);
        break;
    case WM_GPU_PROCESS_MEMORY_UTILIZATION:
        *ret_value = value_of(&told->memory_utilization);
        break;
    case WM_GPU_PROCESS_ENCODER:
        *ret_value = value_of(&told->encoder);
        break;
    case WM_GPU_PROCESS_DECODER:
        *ret_value = value_of(&told->decoder);
        break;
    case WM_GPU_PROCESS_GPU_TIME:
        *ret_value = value_of(&told->gpu_time);
        break;
    case WM_GPU_PROCESS_GPU_INSTANCE:
        *ret_value = process_instance(told->gpu_instance, sheet);
        break;
    case WM_GPU_PROCESS_COMPUTE_INSTANCE:
        *ret_value = process_instance(told->compute_instance, sheet);
        break;
    default:
        *ret_value = missing(WM_READING_UNSUPPORTED, sheet->not_told);
    }
}

size_t wm_gpu_sheet_mig_count(const struct wm_gpu_sheet *sheet)
{
    return sheet->shown_migs->count;
}

void wm_gpu_sheet_mig_get(const struct wm_gpu_sheet *sheet, size_t mig,
                          enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value)
{
    const struct mig *item = &sheet->shown_migs->items[mig];
    const struct wm_gpu_mig_told *told = &item->told;

    switch (field) {
    case WM_GPU_MIG_INDEX:
        *ret_value = good((double)mig);
        break;
    case WM_GPU_MIG_UUID:
        *ret_value = text_value(item->uuid, sheet->not_told);
        break;
    case WM_GPU_MIG_NAME:
        *ret_value = text_value(item->name, sheet->not_told);
        break;
    case WM_GPU_MIG_GPU_INSTANCE:
        *ret_value = instance_value(told->gpu_instance, sheet);
        break;
    case WM_GPU_MIG_COMPUTE_INSTANCE:
        *ret_value = instance_value(told->compute_instance, sheet);
        break;
    case WM_GPU_MIG_MULTIPROCESSORS:
        *ret_value = value_of(&told->multiprocessors);
        break;
    case WM_GPU_MIG_MEMORY_TOTAL:
        *ret_value = value_of(&told->memory_total);
        break;
    case WM_GPU_MIG_MEMORY_USED:
        *ret_value = sheet->migs_late[0] != '\0'
                         ? missing(WM_READING_FAILED, sheet->migs_late)
                         : value_of(&told->memory_used);
        break;
    case WM_GPU_MIG_FIELDS:
        *ret_value = missing(WM_READING_UNSUPPORTED, sheet->not_told);
    }
}
