/* SPDX-License-Identifier: Apache-2.0 */
/* region_rows.c - begin and end as rows of a sub-tracking file. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "region/mark/region_file.h"
#include "wattmeter/region.h"

/* One that was started by itself. */
struct started {
    struct started *next;
    uint64_t id;
    char name[];
};

struct wm_region_rows {
    struct wm_region_file *file;
    pthread_mutex_t lock; /* of all that follows, and of writing */
    struct started *started;
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

void wm_region_rows_forget(struct wm_region_rows *rows)
{
    while (rows->started) {
        struct started *next = rows->started->next;
        free(rows->started);
        rows->started = next;
    }
}

void wm_region_rows_lock(struct wm_region_rows *rows)
{
    pthread_mutex_lock(&rows->lock);
}

void wm_region_rows_unlock(struct wm_region_rows *rows)
{
    pthread_mutex_unlock(&rows->lock);
}

/* There is nobody to tell of a full disk: the program is not ours. */
static void write_row(struct wm_region_rows *rows, const char *name, bool is_stop)
{
    wm_region_rows_lock(rows);
    wm_region_file_write(rows->file, name, is_stop, NAN, NULL);
    wm_region_rows_unlock(rows);
}

static bool push_name(struct wm_region_names *names, const char *name)
{
    size_t size = strlen(name) + 1;
    size_t needed = names->length + size + sizeof(size);

    if (names->dropped > 0)
        return false;
    if (needed > names->room) {
        char *grown = realloc(names->bytes, 2 * needed);
        if (!grown)
            return false;
        names->bytes = grown;
        names->room = 2 * needed;
    }
    memcpy(names->bytes + names->length, name, size);
    memcpy(names->bytes + names->length + size, &size, sizeof(size));
    names->length = needed;
    return true;
}

/* Good until the next one is pushed. NULL: there is none. */
static const char *pop_name(struct wm_region_names *names)
{
    size_t size;

    if (names->length == 0)
        return NULL;
    names->length -= sizeof(size);
    memcpy(&size, names->bytes + names->length, sizeof(size));
    names->length -= size;
    return names->bytes + names->length;
}

void wm_region_rows_begin(struct wm_region_rows *rows, struct wm_region_names *names,
                          const char *name)
{
    if (push_name(names, name))
        write_row(rows, name, false);
    else
        names->dropped++;
}

void wm_region_rows_end(struct wm_region_rows *rows, struct wm_region_names *names)
{
    if (names->dropped > 0) {
        names->dropped--;
        return;
    }
    const char *name = pop_name(names);
    if (name)
        write_row(rows, name, true);
}

void wm_region_rows_start(struct wm_region_rows *rows, const char *name, uint64_t id)
{
    size_t size = strlen(name) + 1;

    struct started *started = malloc(sizeof(*started) + size);
    if (!started)
        return;
    started->id = id;
    memcpy(started->name, name, size);
    wm_region_rows_lock(rows);
    started->next = rows->started;
    rows->started = started;
    wm_region_rows_unlock(rows);
    write_row(rows, name, false);
}

static struct started *take_started(struct wm_region_rows *rows, uint64_t id)
{
    wm_region_rows_lock(rows);
    struct started **link = &rows->started;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    struct started *found = *link;
    if (found)
        *link = found->next;
    wm_region_rows_unlock(rows);
    return found;
}

void wm_region_rows_stop(struct wm_region_rows *rows, uint64_t id)
{
    struct started *started = take_started(rows, id);

    if (started)
        write_row(rows, started->name, true);
    free(started);
}
