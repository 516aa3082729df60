/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_journal.c - two mapped files in memory that take turns.
 *
 * What is stored in a mapped file is there for others the moment it is stored, whatever
 * happens to us next. A file's `used` is moved on last, and its `turn` is set when it is
 * worth more than the one before, so that there is no moment without a whole one.
 *
 * It is the kernel that stores (base_shared.h): a program may cut the files short, and
 * their folder may have no room. As that costs a system call, entries are gathered.
 */
#include "region/drain/region_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_file.h"
#include "base/base_shared.h"

/* A file that has grown by so much is followed by the next; one that has grown by so much
 * more takes no more before that. */
enum { TURN_SIZE = 512 << 10, FULL_SIZE = 2 << 20 };

/* More than the longest entry. */
enum { GATHERED_SIZE = 16 << 10 };

/* A set of small numbers. */
struct seen {
    uint8_t *bits;
    size_t room; /* bytes */
};

struct half {
    unsigned char *map; /* WM_JOURNAL_MAX bytes */
    size_t used;        /* with what is gathered, */
    size_t published;   /* and as the file says */
    size_t opens_end;
};

struct wm_region_journal {
    struct half halves[2];
    int current;
    unsigned char gathered[GATHERED_SIZE]; /* the end of the current half */
    size_t gathered_size;
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

/* A member of the file's head. */
static bool store(const struct half *half, size_t at, uint64_t value)
{
    return wm_shared_write(half->map + at, &value, sizeof(value));
}

static bool set_turn(const struct half *half, uint64_t turn)
{
    return store(half, offsetof(struct wm_journal_head, turn), turn);
}

static void give_up(struct wm_region_journal *journal)
{
    journal->is_given_up = true;
    for (int i = 0; i < 2; i++)
        set_turn(&journal->halves[i], 0);
}

/* Memory of the file is had as it is written. */
static int open_half(struct half *half, int folder, int which, struct wm_error *err)
{
    const struct wm_journal_head head = { .magic = WM_JOURNAL_MAGIC };

    int fd =
        openat(folder, wm_journal_file(which), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return wm_fail_errno(err, "the journal of regions");
    void *map = MAP_FAILED;
    errno = EFBIG;
    if (wm_file_size_limit() >= WM_JOURNAL_MAX && ftruncate(fd, (off_t)WM_JOURNAL_MAX) == 0)
        map = mmap(NULL, WM_JOURNAL_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int status = map == MAP_FAILED ? wm_fail_errno(err, "the journal of regions") : WM_OK;
    close(fd);
    if (status < 0)
        return status;
    half->map = map;
    half->used = sizeof(head);
    if (!wm_shared_is_safe() || !wm_shared_write(map, &head, sizeof(head)))
        return wm_fail(err, WM_ENOMEM, "the journal of regions: no memory in its folder");
    return WM_OK;
}

/* What has been gathered goes to the file, but is not yet to be seen. */
static bool write_out(struct wm_region_journal *journal)
{
    struct half *half = &journal->halves[journal->current];
    size_t size = journal->gathered_size;

    journal->gathered_size = 0;
    return size == 0 ||
           wm_shared_write(half->map + half->used - size, journal->gathered, size);
}

static bool publish(struct wm_region_journal *journal)
{
    struct half *half = &journal->halves[journal->current];

    if (half->published == half->used)
        return true;
    half->published = half->used;
    return write_out(journal) &&
           store(half, offsetof(struct wm_journal_head, used), half->used);
}

static bool begin_turn(struct wm_region_journal *journal)
{
    struct half *half = &journal->halves[journal->current];

    half->opens_end = half->used;
    return store(half, offsetof(struct wm_journal_head, opens_end), half->opens_end) &&
           publish(journal) && set_turn(half, ++journal->turn);
}

int wm_region_journal_new(const char *folder, struct wm_region_journal **ret_journal,
                          struct wm_error *err)
{
    struct wm_region_journal *journal = calloc(1, sizeof(*journal));
    if (!journal)
        return wm_fail(err, WM_ENOMEM, "out of memory");

    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 ? wm_fail_errno(err, folder) : WM_OK;
    for (int i = 0; i < 2 && status == WM_OK; i++)
        status = open_half(&journal->halves[i], fd, i, err);
    if (fd >= 0)
        close(fd);
    if (status == WM_OK && !begin_turn(journal))
        status = wm_fail(err, WM_EIO, "the journal of regions cannot be written");
    if (status < 0) {
        wm_region_journal_free(journal);
        return status;
    }
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
static bool append(struct wm_region_journal *journal, struct wm_journal_entry entry,
                   const char *text)
{
    static const char padding[8];
    struct half *half = &journal->halves[journal->current];
    size_t length = text ? strlen(text) : 0;
    size_t padded = (length + 7) / 8 * 8, size = sizeof(entry) + padded;

    if (size > GATHERED_SIZE || half->used + size > WM_JOURNAL_MAX)
        return false;
    if (journal->gathered_size + size > GATHERED_SIZE && !write_out(journal))
        return false;
    entry.length = (uint32_t)length;
    unsigned char *to = journal->gathered + journal->gathered_size;
    memcpy(to, &entry, sizeof(entry));
    if (length > 0)
        memcpy(to + sizeof(entry), text, length);
    memcpy(to + sizeof(entry) + length, padding, padded - length);
    journal->gathered_size += size;
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
           (append(journal, entry, NULL) && see(&journal->threads, number));
}

static bool explain_name(struct wm_region_journal *journal, uint32_t number,
                         const char *name)
{
    const struct wm_journal_entry entry = { .kind = WM_JOURNAL_NAME, .name = number };

    return has_seen(&journal->names, number) ||
           (append(journal, entry, name) && see(&journal->names, number));
}

bool wm_region_journal_add(struct wm_region_journal *journal,
                           const struct wm_region_event *event,
                           struct wm_region_thread thread, const char *name)
{
    const struct half *half = &journal->halves[journal->current];
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
    if (half->used > half->opens_end + FULL_SIZE)
        return false;
    if (!explain_thread(journal, event->thread, thread) ||
        (name && !explain_name(journal, event->name, name)) ||
        !append(journal, entry, NULL))
        give_up(journal);
    return true;
}

void wm_region_journal_keep(struct wm_region_journal *journal)
{
    if (!journal->is_given_up && !publish(journal))
        give_up(journal);
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

    return explain_name(journal, number, name) && append(journal, entry, NULL);
}

void wm_region_journal_add_name(struct wm_region_journal *journal, uint32_t thread,
                                uint32_t local, uint32_t number, const char *name)
{
    if (!journal->is_given_up && !append_local(journal, thread, local, number, name))
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

    if (wm_array_reserve(&opens->all, opens->count, &opens->room, sizeof(*opens->all)) < 0)
        return WM_ENOMEM;
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
                append(journal, entry, opened->name);
    }
    free(opens.all);
    return whole;
}

static int append_known(void *context, uint32_t thread, uint32_t local, uint32_t number,
                        const char *name)
{
    return append_local(context, thread, local, number, name) ? WM_OK : WM_ENOMEM;
}

/* False where it could not be written: then it is of no use any more. */
static bool turn(struct wm_region_journal *journal, const struct wm_region_inbox *inbox,
                 const struct wm_region_calls *calls, uint64_t given)
{
    if (!publish(journal))
        return false;
    journal->current = 1 - journal->current;
    struct half *half = &journal->halves[journal->current];
    half->used = sizeof(struct wm_journal_head);
    half->published = 0;
    forget(&journal->names);
    forget(&journal->threads);
    journal->has_older = true;
    journal->older_given = given;
    return wm_region_inbox_each_name(inbox, append_known, journal) == WM_OK &&
           append_opens(journal, calls) && begin_turn(journal);
}

void wm_region_journal_settle(struct wm_region_journal *journal,
                              const struct wm_region_inbox *inbox,
                              const struct wm_region_calls *calls, uint64_t given,
                              uint64_t written)
{
    const struct half *half = &journal->halves[journal->current];
    bool is_kept = true;

    if (journal->is_given_up)
        return;
    if (journal->has_older && written >= journal->older_given) {
        is_kept = set_turn(&journal->halves[1 - journal->current], 0);
        journal->has_older = false;
    }
    if (is_kept && !journal->has_older && half->used > half->opens_end + TURN_SIZE)
        is_kept = turn(journal, inbox, calls, given);
    if (!is_kept)
        give_up(journal);
}
