/* SPDX-License-Identifier: Apache-2.0 */
/* region_left_journal.c - the older half first: what was open when the newer one began is
 * known then. */
#include "region/drain/region_left_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_array.h"
#include "region/drain/region_journal.h"
#include "region/region_ring.h"

/* What one reading of it needs. */
struct reading {
    struct wm_left_journal *journal;
    int64_t now_ns;
    wm_left_take *take;
    void *context;
};

static int broken(struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "the journal of regions is broken");
}

static bool is_named(const struct wm_journal_entry *entry)
{
    return entry->event_kind == WM_REGION_BEGINS || entry->event_kind == WM_REGION_STARTS;
}

static bool is_sound(const struct reading *reading, const struct wm_journal_entry *entry)
{
    const struct wm_left_journal *journal = reading->journal;
    bool has_name = wm_map_find(&journal->name_map, entry->name, 0) != WM_MAP_NONE;

    switch (entry->kind) {
    case WM_JOURNAL_THREAD:
        return true;
    case WM_JOURNAL_NAME:
        return entry->length <= WM_REGION_NAME_MAX;
    case WM_JOURNAL_LOCAL:
        return entry->id < WM_RING_NAMES && has_name;
    case WM_JOURNAL_EVENT:
    case WM_JOURNAL_OPEN:
        return entry->event_kind <= WM_REGION_GONE && entry->when_ns >= 0 &&
               entry->when_ns <= reading->now_ns && entry->length <= WM_REGION_NAME_MAX &&
               wm_left_journal_thread(journal, entry->thread) &&
               (has_name || entry->kind == WM_JOURNAL_OPEN || !is_named(entry));
    default:
        return false;
    }
}

/* A name stays what it is. */
static int set_name(struct wm_left_journal *journal, uint32_t number, const char *text,
                    size_t length)
{
    uint32_t interned;

    if (wm_map_find(&journal->name_map, number, 0) != WM_MAP_NONE)
        return WM_OK;
    if (wm_map_reserve(&journal->name_map) < 0 ||
        wm_region_interned_add(&journal->names, text, length, &interned) < 0)
        return WM_ENOMEM;
    wm_map_put(&journal->name_map, number, 0, interned);
    return WM_OK;
}

static int set_local(struct wm_left_journal *journal, const struct wm_journal_entry *entry)
{
    if (wm_map_reserve(&journal->local_map) < 0)
        return WM_ENOMEM;
    wm_map_put(&journal->local_map, entry->thread, entry->id,
               wm_map_find(&journal->name_map, entry->name, 0));
    return WM_OK;
}

static int set_thread(struct wm_left_journal *journal, uint32_t number,
                      struct wm_region_thread name)
{
    if (wm_map_find(&journal->thread_map, number, 0) != WM_MAP_NONE)
        return WM_OK;
    if (wm_map_reserve(&journal->thread_map) < 0 ||
        wm_array_reserve(&journal->threads, journal->thread_count, &journal->thread_room,
                         sizeof(*journal->threads)) < 0)
        return WM_ENOMEM;
    journal->threads[journal->thread_count] = (struct wm_left_thread) { .name = name };
    wm_map_put(&journal->thread_map, number, 0, (uint32_t)journal->thread_count++);
    return WM_OK;
}

const struct wm_left_thread *wm_left_journal_thread(const struct wm_left_journal *journal,
                                                    uint32_t number)
{
    uint32_t index = wm_map_find(&journal->thread_map, number, 0);

    return index == WM_MAP_NONE ? NULL : &journal->threads[index];
}

static int take_event(const struct reading *reading, const struct wm_journal_entry *entry,
                      const char *text)
{
    struct wm_left_journal *journal = reading->journal;
    const struct wm_region_event event = {
        .when_ns = entry->when_ns,
        .kind = (enum wm_region_event_kind)entry->event_kind,
        .thread = entry->thread,
        .id = entry->id,
    };
    struct wm_left_thread *thread =
        &journal->threads[wm_map_find(&journal->thread_map, entry->thread, 0)];
    uint32_t name = 0;

    if (entry->kind == WM_JOURNAL_EVENT) {
        thread->at_last = entry->when_ns == thread->last_ns ? thread->at_last + 1 : 1;
        thread->last_ns = entry->when_ns;
        name = wm_map_find(&journal->name_map, entry->name, 0);
    } else if (wm_region_interned_add(&journal->names, text, entry->length, &name) < 0) {
        return WM_ENOMEM;
    }
    return reading->take(reading->context, &event, thread->name,
                         is_named(entry) ? journal->names.kept.texts[name] : NULL);
}

static int take_entry(const struct reading *reading, const struct wm_journal_entry *entry,
                      const char *text, bool skips_opens)
{
    switch (entry->kind) {
    case WM_JOURNAL_THREAD:
        return set_thread(
            reading->journal, entry->thread,
            (struct wm_region_thread) { .pid = (pid_t)(entry->id & 0x7fffffff),
                                        .tid = (pid_t)(entry->id >> 32 & 0x7fffffff),
                                        .process = entry->name });
    case WM_JOURNAL_NAME:
        return set_name(reading->journal, entry->name, text, entry->length);
    case WM_JOURNAL_LOCAL:
        return set_local(reading->journal, entry);
    case WM_JOURNAL_OPEN:
        return skips_opens ? WM_OK : take_event(reading, entry, text);
    default:
        return take_event(reading, entry, text);
    }
}

/* A file of the journal, read while nobody writes it. */
struct half {
    unsigned char *data; /* NULL: it is not in use */
    size_t length;
    uint64_t turn;
};

static int read_data(int fd, struct half *ret_half, struct wm_error *err)
{
    struct wm_journal_head head;
    struct stat info;

    if (fstat(fd, &info) < 0)
        return wm_fail_errno(err, "the journal of regions");
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return wm_fail(err, WM_EACCES, "the journal of regions is not this user's");

    /* It may have been killed before it could write that much. */
    if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || head.magic == 0)
        return WM_OK;
    if (head.magic != WM_JOURNAL_MAGIC)
        return broken(err);
    if (head.turn == 0)
        return WM_OK;
    if (head.used < sizeof(head) || head.used > WM_JOURNAL_MAX ||
        (off_t)head.used > info.st_size)
        return broken(err);
    unsigned char *data = malloc(head.used);
    if (!data)
        return wm_fail(err, WM_ENOMEM, "out of memory");
    if (pread(fd, data, head.used, 0) != (ssize_t)head.used) {
        free(data);
        return wm_fail(err, WM_EIO, "the journal of regions cannot be read");
    }
    *ret_half = (struct half) { data, head.used, head.turn };
    return WM_OK;
}

static int read_half(int folder, int which, struct half *ret_half, struct wm_error *err)
{
    int fd = openat(folder, wm_journal_file(which),
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? WM_OK : wm_fail_errno(err, "the journal of regions");
    int status = read_data(fd, ret_half, err);
    close(fd);
    return status;
}

static int take_half(const struct reading *reading, const struct half *half,
                     bool skips_opens, struct wm_error *err)
{
    struct wm_journal_entry entry;
    size_t at = sizeof(struct wm_journal_head);

    while (half->data && at < half->length) {
        if (half->length - at < sizeof(entry))
            return broken(err);
        memcpy(&entry, half->data + at, sizeof(entry));
        at += sizeof(entry);
        size_t padded = ((size_t)entry.length + 7) / 8 * 8;
        if (half->length - at < padded || !is_sound(reading, &entry))
            return broken(err);
        int status =
            take_entry(reading, &entry, (const char *)half->data + at, skips_opens);
        if (status < 0)
            return wm_fail(err, status, "regions that were left behind: out of memory");
        at += padded;
    }
    return WM_OK;
}

int wm_left_journal_read(struct wm_left_journal *journal, int folder, int64_t now_ns,
                         wm_left_take *take, void *context, struct wm_error *err)
{
    const struct reading reading = { journal, now_ns, take, context };
    struct half halves[2] = { { 0 } };

    int status = read_half(folder, 0, &halves[0], err);
    if (status == WM_OK)
        status = read_half(folder, 1, &halves[1], err);
    int newer = halves[1].turn > halves[0].turn;
    bool both = halves[1 - newer].data != NULL;
    journal->is_there = halves[newer].data != NULL;
    if (status == WM_OK && both)
        status = take_half(&reading, &halves[1 - newer], false, err);
    if (status == WM_OK)
        status = take_half(&reading, &halves[newer], both, err);
    free(halves[0].data);
    free(halves[1].data);
    return status;
}

void wm_left_journal_release(struct wm_left_journal *journal)
{
    wm_region_interned_clear(&journal->names);
    wm_map_release(&journal->name_map);
    wm_map_release(&journal->local_map);
    wm_map_release(&journal->thread_map);
    free(journal->threads);
    *journal = (struct wm_left_journal) { 0 };
}
