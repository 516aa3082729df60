/* SPDX-License-Identifier: Apache-2.0 */
/* region_rows.c - begin and end as rows of a sub-tracking file. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "region/mark/region_file.h"
#include "wattmeter/region.h"

/* One that is open. */
struct wm_region_name {
    struct wm_region_name *next;
    uint64_t id; /* of one that was started by itself; else 0 */
    char text[];
};

struct wm_region_rows {
    struct wm_region_file *file;
    pthread_mutex_t lock; /* of all that follows, and of writing */
    struct wm_region_name *started;
};

int wm_region_rows_open(const char *path, struct wm_region_rows **ret_rows,
                        struct wm_error *err)
{
    struct wm_region_rows *rows = calloc(1, sizeof(*rows));
    if (!rows)
        return wm_fail(err, WM_ENOMEM, "out of memory");

    /* Several processes may find the same value in their environment. */
    int status = wm_region_file_open(path, WM_RECORD_APPEND, &rows->file, err);
    if (status < 0) {
        free(rows);
        return status;
    }
    pthread_mutex_init(&rows->lock, NULL);
    *ret_rows = rows;
    return WM_OK;
}

void wm_region_rows_lock(struct wm_region_rows *rows)
{
    pthread_mutex_lock(&rows->lock);
}

void wm_region_rows_unlock(struct wm_region_rows *rows)
{
    pthread_mutex_unlock(&rows->lock);
}

static bool push(struct wm_region_name **list, const char *name, uint64_t id)
{
    size_t size = strlen(name) + 1;
    struct wm_region_name *made = malloc(sizeof(*made) + size);

    if (!made)
        return false;
    made->next = *list;
    made->id = id;
    memcpy(made->text, name, size);
    *list = made;
    return true;
}

/* NULL: there is none. */
static struct wm_region_name *take(struct wm_region_name **list, uint64_t id)
{
    while (*list && (*list)->id != id)
        list = &(*list)->next;
    struct wm_region_name *found = *list;
    if (found)
        *list = found->next;
    return found;
}

static void free_all(struct wm_region_name **list)
{
    while (*list) {
        struct wm_region_name *first = *list;
        *list = first->next;
        free(first);
    }
}

void wm_region_names_release(struct wm_region_names *names)
{
    free_all(&names->open);
    names->dropped = 0;
}

void wm_region_rows_forget(struct wm_region_rows *rows)
{
    free_all(&rows->started);
}

/* There is nobody to tell of a full disk: the program is not ours. */
static bool open_one(struct wm_region_rows *rows, struct wm_region_name **list,
                     const char *name, uint64_t id)
{
    if (!push(list, name, id))
        return false;
    wm_region_file_write(rows->file, name, false, NAN, NULL);
    return true;
}

static void close_one(struct wm_region_rows *rows, struct wm_region_name **list,
                      uint64_t id)
{
    struct wm_region_name *ended = take(list, id);

    if (ended)
        wm_region_file_write(rows->file, ended->text, true, NAN, NULL);
    free(ended);
}

bool wm_region_rows_mark(struct wm_region_rows *rows, struct wm_region_names *names,
                         enum wm_ring_kind kind, const char *name, uint64_t id)
{
    bool is_kept = true;

    wm_region_rows_lock(rows);
    if (kind == WM_RING_START)
        is_kept = open_one(rows, &rows->started, name, id);
    else if (kind == WM_RING_STOP)
        close_one(rows, &rows->started, id);
    else if (kind == WM_RING_BEGIN)
        names->dropped += names->dropped > 0 || !open_one(rows, &names->open, name, 0);
    else if (names->dropped > 0)
        names->dropped--;
    else
        close_one(rows, &names->open, 0);
    wm_region_rows_unlock(rows);
    return is_kept;
}
