/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_journal.c - two mapped files in memory that take turns.
 *
 * What is stored in a mapped file is there for others the moment it is stored, whatever
 * happens to us next. A file's `used` is moved on last, and its `turn` is set when it is
 * worth more than the one before, so that there is no moment without a whole one.
 */
#include "region/region_journal.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file that has grown by so much is followed by the next; one that has grown by so much
 * more takes no more before that. */
enum { TURN_SIZE = 512 << 10, FULL_SIZE = 2 << 20, STEP_SIZE = 64 << 10 };

/* A set of small numbers. */
struct seen {
    uint8_t *bits;
    size_t room; /* bytes */
};

struct half {
    int fd;
    unsigned char *map; /* WM_JOURNAL_MAX bytes, of which the file has */
    size_t room;        /* so many; the rest must not be touched */
    size_t used;
};

struct wm_region_journal {
    struct half halves[2];
    int current;
    uint64_t turn;
    bool has_older;             /* the other half is still needed, */
    uint64_t older_given;       /* until so many calls are written */
    struct seen names, threads; /* those that the current half explains */
    bool is_given_up;
};

const char *wm_journal_file(int which)
{
    return which == 0 ? "journal-0" : "journal-1";
}

static struct wm_journal_head *head(const struct half *half)
{
    return (struct wm_journal_head *)(void *)half->map;
}

static void give_up(struct wm_region_journal *journal)
{
    journal->is_given_up = true;
    for (int i = 0; i < 2; i++) {
        if (journal->halves[i].map)
            __atomic_store_n(&head(&journal->halves[i])->turn, 0, __ATOMIC_RELEASE);
    }
}

/* Memory of the file is had before it is touched: what the folder has no room for would
 * be a signal. */
static bool reserve(struct half *half, size_t size)
{
    size_t room = (half->used + size + STEP_SIZE - 1) / STEP_SIZE * STEP_SIZE;

    if (half->used + size <= half->room)
        return true;
    if (room > WM_JOURNAL_MAX ||
        posix_fallocate(half->fd, (off_t)half->room, (off_t)(room - half->room)) != 0)
        return false;
    half->room = room;
    return true;
}

static int open_half(struct half *half, int folder, int which, struct wm_error *err)
{
    half->fd =
        openat(folder, wm_journal_file(which), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (half->fd < 0)
        return wm_fail_errno(err, "the journal of regions");
    void *map = mmap(NULL, WM_JOURNAL_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, half->fd, 0);
    if (map == MAP_FAILED)
        return wm_fail_errno(err, "the journal of regions");
    half->map = map;
    if (!reserve(half, sizeof(struct wm_journal_head)))
        return wm_fail(err, WM_ENOMEM, "the journal of regions: no memory in its folder");
    half->used = sizeof(struct wm_journal_head);
    *head(half) = (struct wm_journal_head) { .magic = WM_JOURNAL_MAGIC };
    return WM_OK;
}

/* What is stored before is seen by whoever sees this. */
static void begin_turn(struct wm_region_journal *journal)
{
    struct half *half = &journal->halves[journal->current];

    head(half)->opens_end = half->used;
    head(half)->used = half->used;
    __atomic_store_n(&head(half)->turn, ++journal->turn, __ATOMIC_RELEASE);
}

int wm_region_journal_new(const char *folder, struct wm_region_journal **ret_journal,
                          struct wm_error *err)
{
    struct wm_region_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    journal->halves[0].fd = journal->halves[1].fd = -1;

    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 ? wm_fail_errno(err, folder) : WM_OK;
    for (int i = 0; i < 2 && status == WM_OK; i++)
        status = open_half(&journal->halves[i], fd, i, err);
    if (fd >= 0)
        close(fd);
    if (status < 0) {
        wm_region_journal_free(journal);
        return status;
    }
    begin_turn(journal);
    *ret_journal = journal;
    return WM_OK;
}

void wm_region_journal_free(struct wm_region_journal *journal)
{
    if (!journal)
        return;
    for (int i = 0; i < 2; i++) {
        if (journal->halves[i].map)
            munmap(journal->halves[i].map, WM_JOURNAL_MAX);
        if (journal->halves[i].fd >= 0)
            close(journal->halves[i].fd);
    }
    free(journal->names.bits);
    free(journal->threads.bits);
    free(journal);
}

static bool has_seen(const struct seen *seen, uint32_t number)
{
    return number / 8 < seen->room && (seen->bits[number / 8] >> (number % 8) & 1) != 0;
}

static bool see(struct seen *seen, uint32_t number)
{
    size_t room = seen->room > 0 ? seen->room : 64;

    while (room <= number / 8)
        room *= 2;
    if (room > seen->room) {
        uint8_t *grown = realloc(seen->bits, room);
        if (!grown)
            return false;
        memset(grown + seen->room, 0, room - seen->room);
        seen->bits = grown;
        seen->room = room;
    }
    seen->bits[number / 8] |= (uint8_t)(1u << (number % 8));
    return true;
}

static void forget(struct seen *seen)
{
    if (seen->room > 0)
        memset(seen->bits, 0, seen->room);
}

/* After what has been appended so far, but not yet to be seen. */
static bool append(struct half *half, struct wm_journal_entry entry, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    size_t size = sizeof(entry) + (length + 7) / 8 * 8;

    if (length > WM_JOURNAL_MAX || !reserve(half, size))
        return false;
    entry.length = (uint32_t)length;
    memcpy(half->map + half->used, &entry, sizeof(entry));
    if (length > 0)
        memcpy(half->map + half->used + sizeof(entry), text, length);
    half->used += size;
    return true;
}

static bool explain_thread(struct wm_region_journal *journal, uint32_t number,
                           struct wm_region_thread thread)
{
    const struct wm_journal_entry entry = {
        .kind = WM_JOURNAL_THREAD,
        .thread = number,
        .name = thread.process,
        .id = (uint64_t)(uint32_t)thread.tid << 32 | (uint32_t)thread.pid,
    };

    return has_seen(&journal->threads, number) ||
           (append(&journal->halves[journal->current], entry, NULL) &&
            see(&journal->threads, number));
}

static bool explain_name(struct wm_region_journal *journal, uint32_t number,
                         const char *name)
{
    const struct wm_journal_entry entry = { .kind = WM_JOURNAL_NAME, .name = number };

    return has_seen(&journal->names, number) ||
           (append(&journal->halves[journal->current], entry, name) &&
            see(&journal->names, number));
}

/* What has been appended is there from now on. */
static void publish(const struct half *half)
{
    __atomic_store_n(&head(half)->used, half->used, __ATOMIC_RELEASE);
}

bool wm_region_journal_add(struct wm_region_journal *journal,
                           const struct wm_region_event *event,
                           struct wm_region_thread thread, const char *name)
{
    struct half *half = &journal->halves[journal->current];
    const struct wm_journal_entry entry = {
        .kind = WM_JOURNAL_EVENT,
        .event_kind = (uint16_t)event->kind,
        .when_ns = event->when_ns,
        .id = event->id,
        .thread = event->thread,
        .name = event->name,
    };

    if (journal->is_given_up)
        return true;
    if (half->used > head(half)->opens_end + FULL_SIZE)
        return false;
    if (explain_thread(journal, event->thread, thread) &&
        (!name || explain_name(journal, event->name, name)) && append(half, entry, NULL))
        publish(half);
    else
        give_up(journal);
    return true;
}

static bool append_local(struct wm_region_journal *journal, uint32_t thread, uint32_t local,
                         uint32_t number, const char *name)
{
    const struct wm_journal_entry entry = {
        .kind = WM_JOURNAL_LOCAL,
        .thread = thread,
        .id = local,
        .name = number,
    };

    return explain_name(journal, number, name) &&
           append(&journal->halves[journal->current], entry, NULL);
}

void wm_region_journal_add_name(struct wm_region_journal *journal, uint32_t thread,
                                uint32_t local, uint32_t number, const char *name)
{
    if (journal->is_given_up)
        return;
    if (append_local(journal, thread, local, number, name))
        publish(&journal->halves[journal->current]);
    else
        give_up(journal);
}

/* What is open, to be put in the order of time. */
struct opened {
    struct wm_region_event event;
    struct wm_region_thread thread;
    const char *name;
    size_t nth;
};

struct opens {
    struct opened *all;
    size_t count, room;
};

static int collect(void *context, const struct wm_region_event *event,
                   struct wm_region_thread thread, const char *name)
{
    struct opens *opens = context;

    if (opens->count == opens->room) {
        size_t room = opens->room > 0 ? 2 * opens->room : 64;
        struct opened *grown = realloc(opens->all, room * sizeof(*grown));
        if (!grown)
            return WM_ENOMEM;
        opens->all = grown;
        opens->room = room;
    }
    opens->all[opens->count] = (struct opened) { *event, thread, name, opens->count };
    opens->count++;
    return WM_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct opened *x = a, *y = b;

    if (x->event.when_ns != y->event.when_ns)
        return x->event.when_ns < y->event.when_ns ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* To the current half, which is empty. */
static bool append_opens(struct wm_region_journal *journal,
                         const struct wm_region_calls *calls)
{
    struct opens opens = { 0 };

    bool whole = wm_region_calls_each_open(calls, collect, &opens) == WM_OK;
    if (opens.count > 0)
        qsort(opens.all, opens.count, sizeof(*opens.all), by_time);
    for (size_t i = 0; i < opens.count && whole; i++) {
        const struct opened *opened = &opens.all[i];
        const struct wm_journal_entry entry = {
            .kind = WM_JOURNAL_OPEN,
            .event_kind = (uint16_t)opened->event.kind,
            .when_ns = opened->event.when_ns,
            .id = opened->event.id,
            .thread = opened->event.thread,
        };
        whole = explain_thread(journal, entry.thread, opened->thread) &&
                append(&journal->halves[journal->current], entry, opened->name);
    }
    free(opens.all);
    return whole;
}

static int append_known(void *context, uint32_t thread, uint32_t local, uint32_t number,
                        const char *name)
{
    return append_local(context, thread, local, number, name) ? WM_OK : WM_ENOMEM;
}

static void turn(struct wm_region_journal *journal, const struct wm_region_inbox *inbox,
                 const struct wm_region_calls *calls, uint64_t given)
{
    journal->current = 1 - journal->current;
    journal->halves[journal->current].used = sizeof(struct wm_journal_head);
    forget(&journal->names);
    forget(&journal->threads);
    if (wm_region_inbox_each_name(inbox, append_known, journal) < 0 ||
        !append_opens(journal, calls)) {
        give_up(journal);
        return;
    }
    begin_turn(journal);
    journal->has_older = true;
    journal->older_given = given;
}

void wm_region_journal_settle(struct wm_region_journal *journal,
                              const struct wm_region_inbox *inbox,
                              const struct wm_region_calls *calls, uint64_t given,
                              uint64_t written)
{
    const struct half *half = &journal->halves[journal->current];

    if (journal->is_given_up)
        return;
    if (journal->has_older && written >= journal->older_given) {
        const struct half *older = &journal->halves[1 - journal->current];
        __atomic_store_n(&head(older)->turn, 0, __ATOMIC_RELEASE);
        journal->has_older = false;
    }
    if (!journal->has_older && half->used > head(half)->opens_end + TURN_SIZE)
        turn(journal, inbox, calls, given);
}
