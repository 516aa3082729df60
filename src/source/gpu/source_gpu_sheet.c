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
#include "base/base_text.h"

struct slot {
    enum wm_reading_state state;
    double number;
    char text[WM_GPU_TEXT_SIZE]; /* the text, or why there is no value */
    int code;                    /* of a missing value */
    bool told;                   /* reported in the current call, or in the last one */
    bool fresh;                  /* changed since the owner's last read */
};

struct list {
    enum wm_reading_state state;
    char why[WM_GPU_TEXT_SIZE];
    int code;
    struct wm_gpu_value *cells; /* row by row */
    size_t count, room;         /* in rows */
    char *texts;                /* texts and reasons of the cells, in their order */
    size_t text_size, text_room;
    const char *lacks; /* why it is not whole, or NULL */
};

/* Of each list there are three: the thread fills in one, and at the end swaps it
 * with the second, which the owner swaps with the third, which it shows. So
 * neither waits for the other. */
struct wm_gpu_sheet {
    const char *source;
    char not_told[64];
    pthread_mutex_t lock;

    /* The thread's alone. */
    unsigned running; /* the groups that the call asks */
    bool running_all;
    struct list made_lists[WM_GPU_LISTS];

    /* Under the lock. */
    unsigned asked; /* by the owner, and not begun */
    unsigned known; /* groups that have been asked with the fixed fields */
    unsigned done;  /* groups of the calls that ended since the owner looked */
    struct slot told[WM_GPU_FIELDS];
    struct list told_lists[WM_GPU_LISTS];
    bool list_told[WM_GPU_LISTS], list_fresh[WM_GPU_LISTS]; /* as of a slot */

    /* The owner's alone. */
    unsigned collecting; /* what it asked for */
    unsigned ever;       /* what it ever asked for */
    struct slot shown[WM_GPU_FIELDS];
    struct list shown_lists[WM_GPU_LISTS];
    bool is_listed_anew;
    char migs_late[WM_GPU_TEXT_SIZE]; /* why what may change of them is not known */
};

static const size_t columns[WM_GPU_LISTS] = {
    [WM_GPU_PROCESS_LIST] = WM_GPU_PROCESS_FIELDS,
    [WM_GPU_MIG_LIST] = WM_GPU_MIG_FIELDS,
};

static const char not_asked[] = "not asked";
static const char no_number[] = "what the driver reports is no number";

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
        return wm_fail_memory(err, source);
    pthread_mutex_init(&sheet->lock, NULL);
    sheet->source = source;
    snprintf(sheet->not_told, sizeof(sheet->not_told), "not reported by %s", source);
    *ret_sheet = sheet;
    return WM_OK;
}

static void empty_list(struct list *list)
{
    list->count = 0;
    list->code = 0;
    list->text_size = 0;
    list->lacks = NULL;
}

static void swap_lists(struct list *left, struct list *right)
{
    struct list kept = *left;

    *left = *right;
    *right = kept;
}

static void free_lists(struct list *all)
{
    for (size_t i = 0; i < WM_GPU_LISTS; i++) {
        free(all[i].cells);
        free(all[i].texts);
    }
}

void wm_gpu_sheet_free(struct wm_gpu_sheet *sheet)
{
    if (!sheet)
        return;
    free_lists(sheet->made_lists);
    free_lists(sheet->told_lists);
    free_lists(sheet->shown_lists);
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
    slot->code = 0;
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
        put(sheet, field, WM_READING_FAILED, 0, no_number);
}

void wm_gpu_set_text(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, const char *text)
{
    assert(wm_gpu_field_info(field)->type == WM_GPU_TEXT);
    if (text[0] != '\0')
        put(sheet, field, WM_READING_OK, 0, text);
    else
        put(sheet, field, WM_READING_UNSUPPORTED, 0, "the driver reports an empty text");
}

void wm_gpu_set_throttle(struct wm_gpu_sheet *sheet, const char *text, unsigned reasons)
{
    put(sheet, WM_GPU_THROTTLE, WM_READING_OK, reasons, text);
}

void wm_gpu_set_missing(struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                        enum wm_reading_state state, const char *why)
{
    assert(state != WM_READING_OK && state != WM_READING_NONE && why);
    put(sheet, field, state, 0, why);
}

void wm_gpu_set_code(struct wm_gpu_sheet *sheet, enum wm_gpu_field field, int code)
{
    pthread_mutex_lock(&sheet->lock);
    sheet->told[field].code = code;
    pthread_mutex_unlock(&sheet->lock);
}

struct wm_gpu_value wm_gpu_number(double number)
{
    return (struct wm_gpu_value) { .state = WM_READING_OK, .number = number };
}

struct wm_gpu_value wm_gpu_words(const char *text)
{
    if (!text || text[0] == '\0')
        return (struct wm_gpu_value) { .state = WM_READING_NONE };
    return (struct wm_gpu_value) { .state = WM_READING_OK, .text = text };
}

struct wm_gpu_value wm_gpu_missing(enum wm_reading_state state, const char *why)
{
    return (struct wm_gpu_value) { .state = state, .why = why };
}

struct wm_gpu_value wm_gpu_not_partitioned(void)
{
    return wm_gpu_missing(WM_READING_UNSUPPORTED, "the GPU is not partitioned");
}

void wm_gpu_begin_list(struct wm_gpu_sheet *sheet, enum wm_gpu_list list)
{
    empty_list(&sheet->made_lists[list]);
}

/* A value as it shall be kept in a row, with a reason if it is not ok; its text is still
 * the backend's. */
static struct wm_gpu_value complete(const struct wm_gpu_sheet *sheet,
                                    const struct wm_gpu_value *told)
{
    if (told->state == WM_READING_OK && told->text)
        return wm_gpu_words(told->text);
    if (told->state == WM_READING_OK)
        return isfinite(told->number) ? wm_gpu_number(told->number)
                                      : wm_gpu_missing(WM_READING_FAILED, no_number);
    if (told->why)
        return wm_gpu_missing(told->state, told->why);
    return wm_gpu_missing(told->state == WM_READING_NONE ? WM_READING_UNSUPPORTED
                                                         : told->state,
                          sheet->not_told);
}

/* Where the texts are is known at the end: until then they may move. (What most cells of a
 * long list say, that they were not reported, stands in the sheet.) */
static int keep_text(struct list *list, const char *text)
{
    if (list->text_room - list->text_size < WM_GPU_TEXT_SIZE) {
        size_t room = 2 * list->text_room + WM_GPU_TEXT_SIZE;
        char *texts = realloc(list->texts, room);
        if (!texts)
            return WM_ENOMEM;
        list->texts = texts;
        list->text_room = room;
    }
    char *kept = list->texts + list->text_size;
    wm_gpu_clean(kept, WM_GPU_TEXT_SIZE, text);
    list->text_size += strlen(kept) + 1;
    return WM_OK;
}

static int keep_row(const struct wm_gpu_sheet *sheet, struct list *list,
                    const struct wm_gpu_value *row, size_t width)
{
    size_t text_size = list->text_size;

    if (wm_array_reserve(&list->cells, list->count, &list->room, width * sizeof(*row)) < 0)
        return WM_ENOMEM;
    for (size_t c = 0; c < width; c++) {
        struct wm_gpu_value cell = complete(sheet, &row[c]);
        const char *text = cell.text ? cell.text : cell.why;

        if (text && text != sheet->not_told && keep_text(list, text) < 0) {
            list->text_size = text_size;
            return WM_ENOMEM;
        }
        list->cells[list->count * width + c] = cell;
    }
    list->count++;
    return WM_OK;
}

int wm_gpu_add_row(struct wm_gpu_sheet *sheet, enum wm_gpu_list number,
                   const struct wm_gpu_value *row)
{
    struct list *list = &sheet->made_lists[number];

    if (list->count == WM_GPU_PROCESS_MAX)
        list->lacks = "there are more processes than can be listed";
    else if (keep_row(sheet, list, row, columns[number]) < 0)
        list->lacks = "out of memory";
    return list->lacks ? WM_ENOMEM : WM_OK;
}

static void point_at_texts(const struct wm_gpu_sheet *sheet, struct list *list,
                           size_t width)
{
    char *text = list->texts;

    for (size_t i = 0; i < list->count * width; i++) {
        struct wm_gpu_value *cell = &list->cells[i];

        if (cell->text)
            cell->text = text;
        else if (cell->why && cell->why != sheet->not_told)
            cell->why = text;
        else
            continue;
        text += strlen(text) + 1;
    }
}

void wm_gpu_set_list_code(struct wm_gpu_sheet *sheet, enum wm_gpu_list list, int code)
{
    sheet->made_lists[list].code = code;
}

void wm_gpu_end_list(struct wm_gpu_sheet *sheet, enum wm_gpu_list number,
                     enum wm_reading_state state, const char *why)
{
    struct list *list = &sheet->made_lists[number];

    if (state == WM_READING_OK && list->lacks) {
        state = WM_READING_FAILED;
        why = list->lacks;
    }
    list->state = state;
    wm_gpu_clean(list->why, sizeof(list->why), why ? why : "");
    point_at_texts(sheet, list, columns[number]);

    pthread_mutex_lock(&sheet->lock);
    swap_lists(list, &sheet->told_lists[number]);
    sheet->list_told[number] = true;
    sheet->list_fresh[number] = true;
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

bool wm_gpu_sheet_is_asked(struct wm_gpu_sheet *sheet)
{
    pthread_mutex_lock(&sheet->lock);
    bool is_asked = sheet->asked != 0;
    pthread_mutex_unlock(&sheet->lock);
    return is_asked;
}

unsigned wm_gpu_sheet_begin(struct wm_gpu_sheet *sheet, bool *ret_all)
{
    pthread_mutex_lock(&sheet->lock);
    sheet->running = sheet->asked;
    sheet->running_all = (sheet->asked & ~sheet->known) != 0;
    sheet->asked = 0;
    for (size_t i = 0; i < WM_GPU_FIELDS; i++)
        sheet->told[i].told = false;
    memset(sheet->list_told, false, sizeof(sheet->list_told));
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
    if ((groups & WM_GPU_PROCESSES) && !sheet->list_told[WM_GPU_PROCESS_LIST]) {
        wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
        wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_UNSUPPORTED,
                        sheet->not_told);
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

    /* A fixed one that has been reported once need not be read again. */
    bool is_known =
        info->fixed && (shown->state == WM_READING_OK || (sheet->known & info->asked_with));
    if (!(info->asked_with & sheet->collecting) || is_known)
        return;
    shown->state = WM_READING_FAILED;
    shown->code = WM_NO_ANSWER;
    wm_gpu_clean(shown->text, sizeof(shown->text), late);
}

/* Whether there is another list since the owner looked last. */
static bool take_list(struct wm_gpu_sheet *sheet, enum wm_gpu_list list)
{
    bool is_fresh = sheet->list_fresh[list];

    if (is_fresh)
        swap_lists(&sheet->shown_lists[list], &sheet->told_lists[list]);
    sheet->list_fresh[list] = false;
    return is_fresh;
}

static void collect_lists(struct wm_gpu_sheet *sheet, const char *late)
{
    struct list *processes = &sheet->shown_lists[WM_GPU_PROCESS_LIST];
    bool is_fresh = take_list(sheet, WM_GPU_PROCESS_LIST);

    sheet->is_listed_anew = is_fresh || (sheet->collecting & WM_GPU_PROCESSES);
    if (sheet->is_listed_anew && !is_fresh) {
        empty_list(processes);
        processes->state = WM_READING_FAILED;
        processes->code = WM_NO_ANSWER;
        wm_gpu_clean(processes->why, sizeof(processes->why), late);
    }
    if (take_list(sheet, WM_GPU_MIG_LIST))
        sheet->migs_late[0] = '\0';
    else if (sheet->collecting & ~sheet->done & WM_GPU_MEMORY)
        wm_gpu_clean(sheet->migs_late, sizeof(sheet->migs_late), late);
}

void wm_gpu_sheet_collect(struct wm_gpu_sheet *sheet, const char *late)
{
    pthread_mutex_lock(&sheet->lock);
    for (enum wm_gpu_field i = 0; i < WM_GPU_FIELDS; i++)
        collect_field(sheet, i, late);
    collect_lists(sheet, late);
    sheet->done = 0;
    pthread_mutex_unlock(&sheet->lock);
    sheet->collecting = 0;
}

static struct wm_gpu_value failed(enum wm_reading_state state, const char *why, int code)
{
    return (struct wm_gpu_value) { .state = state, .why = why, .code = code };
}

void wm_gpu_sheet_get(const struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                      struct wm_gpu_value *ret_value)
{
    const struct slot *slot = &sheet->shown[field];

    if (slot->state == WM_READING_NONE)
        *ret_value = wm_gpu_missing(WM_READING_NONE, not_asked);
    else if (slot->state != WM_READING_OK)
        *ret_value = failed(slot->state, slot->text, slot->code);
    else
        *ret_value = wm_gpu_number(slot->number);
    if (slot->state == WM_READING_OK && wm_gpu_field_info(field)->type == WM_GPU_TEXT)
        ret_value->text = slot->text;
}

bool wm_gpu_sheet_is_listed_anew(const struct wm_gpu_sheet *sheet)
{
    return sheet->is_listed_anew;
}

size_t wm_gpu_sheet_rows(const struct wm_gpu_sheet *sheet, enum wm_gpu_list number,
                         struct wm_gpu_value *ret_list)
{
    const struct list *list = &sheet->shown_lists[number];

    if (list->state == WM_READING_OK)
        *ret_list = wm_gpu_number((double)list->count);
    else if (list->state == WM_READING_NONE)
        *ret_list = wm_gpu_missing(WM_READING_NONE, not_asked);
    else
        *ret_list = failed(list->state, list->why, list->code);
    return list->count;
}

struct wm_gpu_value wm_gpu_sheet_cell(const struct wm_gpu_sheet *sheet,
                                      enum wm_gpu_list list, size_t row, size_t field)
{
    if (list == WM_GPU_MIG_LIST && field == WM_GPU_MIG_MEMORY_USED && sheet->migs_late[0])
        return wm_gpu_missing(WM_READING_FAILED, sheet->migs_late);
    return sheet->shown_lists[list].cells[row * columns[list] + field];
}
