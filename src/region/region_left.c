/* SPDX-License-Identifier: Apache-2.0 */
/* region_left.c - the journal is read first; then the rings from where it ends, merged in
 * the order of time. */
#include "region/region_left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_text.h"
#include "region/region_journal.h"
#include "region/region_ring.h"

/* No inbox has more of these. */
enum { THREADS_MAX = 1 << 24, NAMES_MAX = 1 << 24 };

/* What the journal knows of a thread. */
struct thread {
    struct wm_region_thread name;
    bool is_known;
    int64_t last_ns;  /* of its last event, */
    uint64_t at_last; /* and how many there are at that time */
    uint32_t *locals; /* the names, by the numbers that its ring has for them */
};

/* A ring, at the next event that is to be handed out. */
struct cursor {
    const struct wm_ring *ring;
    size_t bytes;
    const struct wm_ring_event *events;
    uint64_t capacity, position, end;
    uint32_t number;
    uint64_t at_last; /* as above, of those that were passed over */
    char *names[WM_RING_NAMES];
    struct wm_region_event event; /* `name` is the ring's own number */
};

struct left {
    int folder;
    struct wm_region_calls *calls;
    wm_region_take_edge *take;
    void *context;
    int64_t last_ns;

    char **names;
    size_t name_room;
    struct thread *threads;
    size_t thread_room;
    struct cursor **heap; /* the earliest event on top */
    size_t cursor_count, cursor_room;
};

/* Makes room in an array of zeros for the element `index`. */
static int grow(void *array, size_t *room, size_t index, size_t size)
{
    size_t more = *room > 0 ? *room : 64;
    void *old, *grown;

    if (index < *room)
        return WM_OK;
    while (more <= index)
        more *= 2;
    memcpy(&old, array, sizeof(old));
    grown = realloc(old, more * size);
    if (!grown)
        return WM_ENOMEM;
    memset((char *)grown + *room * size, 0, (more - *room) * size);
    memcpy(array, &grown, sizeof(grown));
    *room = more;
    return WM_OK;
}

static int broken(struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "the journal of regions is broken");
}

static int hand_out(struct left *left, const struct wm_region_event *event,
                    const char *name)
{
    if (event->when_ns > left->last_ns)
        left->last_ns = event->when_ns;
    return wm_region_calls_event(left->calls, event, left->threads[event->thread].name,
                                 name, left->take, left->context);
}

static int set_name(struct left *left, uint32_t number, const char *text, size_t length)
{
    if (grow(&left->names, &left->name_room, number, sizeof(*left->names)) < 0)
        return WM_ENOMEM;
    if (left->names[number])
        return WM_OK; /* a name stays what it is */
    left->names[number] = strndup(text, length);
    return left->names[number] ? WM_OK : WM_ENOMEM;
}

static int set_thread(struct left *left, uint32_t number, struct wm_region_thread name)
{
    if (grow(&left->threads, &left->thread_room, number, sizeof(*left->threads)) < 0)
        return WM_ENOMEM;
    left->threads[number].name = name;
    left->threads[number].is_known = true;
    return WM_OK;
}

static int set_local(struct left *left, uint32_t thread, uint64_t local, uint32_t name)
{
    if (grow(&left->threads, &left->thread_room, thread, sizeof(*left->threads)) < 0)
        return WM_ENOMEM;
    uint32_t **locals = &left->threads[thread].locals;
    if (!*locals) {
        *locals = malloc(WM_RING_NAMES * sizeof(**locals));
        if (!*locals)
            return WM_ENOMEM;
        memset(*locals, 0xff, WM_RING_NAMES * sizeof(**locals));
    }
    (*locals)[local] = name;
    return WM_OK;
}

static const char *name_of(const struct left *left, uint32_t number)
{
    const char *name = number < left->name_room ? left->names[number] : NULL;

    return name ? name : "";
}

static int replay(struct left *left, const struct wm_journal_entry *entry, const char *text)
{
    const struct wm_region_event event = {
        .when_ns = entry->when_ns,
        .kind = (enum wm_region_event_kind)entry->event_kind,
        .thread = entry->thread,
        .id = entry->id,
    };
    struct thread *thread = &left->threads[entry->thread];

    if (entry->kind == WM_JOURNAL_OPEN) {
        char *name = strndup(text, entry->length);
        int status = name ? hand_out(left, &event, name) : WM_ENOMEM;
        free(name);
        return status;
    }
    thread->at_last = entry->when_ns == thread->last_ns ? thread->at_last + 1 : 1;
    thread->last_ns = entry->when_ns;
    return hand_out(left, &event, name_of(left, entry->name));
}

static bool is_sound(const struct left *left, const struct wm_journal_entry *entry)
{
    if (entry->thread >= THREADS_MAX || entry->name >= NAMES_MAX)
        return false;
    switch (entry->kind) {
    case WM_JOURNAL_THREAD:
    case WM_JOURNAL_NAME:
        return true;
    case WM_JOURNAL_LOCAL:
        return entry->id < WM_RING_NAMES;
    case WM_JOURNAL_EVENT:
    case WM_JOURNAL_OPEN:
        return entry->event_kind <= WM_REGION_GONE && entry->when_ns >= 0 &&
               entry->thread < left->thread_room && left->threads[entry->thread].is_known;
    default:
        return false;
    }
}

static int read_entry(struct left *left, const struct wm_journal_entry *entry,
                      const char *text, bool skips_opens)
{
    switch (entry->kind) {
    case WM_JOURNAL_THREAD:
        return set_thread(
            left, entry->thread,
            (struct wm_region_thread) { .pid = (pid_t)(entry->id & 0xffffffff),
                                        .tid = (pid_t)(entry->id >> 32),
                                        .process = entry->name });
    case WM_JOURNAL_NAME:
        return set_name(left, entry->name, text, entry->length);
    case WM_JOURNAL_LOCAL:
        return set_local(left, entry->thread, entry->id, entry->name);
    case WM_JOURNAL_OPEN:
        return skips_opens ? WM_OK : replay(left, entry, text);
    default:
        return replay(left, entry, text);
    }
}

/* A file of the journal, read while nobody writes it. */
struct half {
    unsigned char *data;
    size_t length;
    uint64_t turn;
};

static int read_half(const struct left *left, int which, struct half *ret_half,
                     struct wm_error *err)
{
    struct wm_journal_head head;
    int fd = openat(left->folder, wm_journal_file(which),
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *ret_half = (struct half) { 0 };
    if (fd < 0)
        return errno == ENOENT ? WM_OK : wm_fail_errno(err, wm_journal_file(which));
    bool whole = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
                 head.magic == WM_JOURNAL_MAGIC && head.turn != 0 &&
                 head.used >= sizeof(head) && head.used <= WM_JOURNAL_MAX;
    int status = WM_OK;
    if (whole) {
        *ret_half = (struct half) { malloc(head.used), head.used, head.turn };
        if (!ret_half->data)
            status = wm_fail(err, WM_ENOMEM, "out of memory");
        else if (pread(fd, ret_half->data, head.used, 0) != (ssize_t)head.used)
            status = broken(err);
    }
    close(fd);
    return status;
}

static int replay_half(struct left *left, const struct half *half, bool skips_opens,
                       struct wm_error *err)
{
    struct wm_journal_entry entry;
    size_t at = sizeof(struct wm_journal_head);

    while (half->data && at < half->length) {
        if (half->length - at < sizeof(entry))
            return broken(err);
        memcpy(&entry, half->data + at, sizeof(entry));
        at += sizeof(entry);
        size_t padded = ((size_t)entry.length + 7) / 8 * 8;
        if (half->length - at < padded || !is_sound(left, &entry))
            return broken(err);
        int status = read_entry(left, &entry, (const char *)half->data + at, skips_opens);
        if (status < 0)
            return wm_fail(err, status, "regions that were left behind: out of memory");
        at += padded;
    }
    return WM_OK;
}

/* The older one first; what was open when the newer one began is known then. */
static int read_journal(struct left *left, struct wm_error *err)
{
    struct half halves[2] = { { 0 } };

    int status = read_half(left, 0, &halves[0], err);
    if (status == WM_OK)
        status = read_half(left, 1, &halves[1], err);
    int newer = halves[1].turn > halves[0].turn;
    bool both = status == WM_OK && halves[1 - newer].turn > 0;
    if (both)
        status = replay_half(left, &halves[1 - newer], false, err);
    if (status == WM_OK)
        status = replay_half(left, &halves[newer], both, err);
    free(halves[0].data);
    free(halves[1].data);
    return status;
}

static const struct wm_ring_event *slot(const struct cursor *cursor, uint64_t position)
{
    return &cursor->events[position & (cursor->capacity - 1)];
}

/* False where the name is not all there. */
static bool read_name(struct cursor *cursor, uint32_t number, uint64_t length)
{
    uint64_t slots = wm_ring_slots_of_name((size_t)length);

    if (number >= WM_RING_NAMES || length > WM_REGION_NAME_MAX ||
        cursor->end - cursor->position < slots)
        return false;
    char *name = malloc((size_t)slots * sizeof(struct wm_ring_event) + 1);
    if (!name)
        return false;
    for (uint64_t i = 0; i < slots; i++)
        memcpy(name + i * sizeof(struct wm_ring_event), slot(cursor, cursor->position + i),
               sizeof(struct wm_ring_event));
    name[length] = '\0';
    cursor->position += slots;
    free(cursor->names[number]);
    cursor->names[number] = name;
    return true;
}

/* To the next event. False at the end, or where the rest makes no sense. */
static bool advance(struct cursor *cursor)
{
    while (cursor->position < cursor->end) {
        const struct wm_ring_event *at = slot(cursor, cursor->position++);
        uint64_t value = at->what >> 8;
        cursor->event = (struct wm_region_event) {
            .when_ns = at->when_ns > 0 ? at->when_ns : 0,
            .thread = cursor->number,
        };
        switch (at->what & 0xff) {
        case WM_RING_NAME:
            if (!read_name(cursor, (uint32_t)value, (uint64_t)at->when_ns))
                return false;
            continue;
        case WM_RING_BEGIN:
        case WM_RING_START:
            if (value >= WM_RING_NAMES)
                return false;
            cursor->event.name = (uint32_t)value;
            cursor->event.kind = WM_REGION_BEGINS;
            if ((at->what & 0xff) == WM_RING_BEGIN)
                return true;
            if (cursor->position == cursor->end)
                return false;
            cursor->event.kind = WM_REGION_STARTS;
            cursor->event.id = slot(cursor, cursor->position++)->what;
            return true;
        case WM_RING_END:
            cursor->event.kind = WM_REGION_ENDS;
            return true;
        case WM_RING_STOP:
            cursor->event.kind = WM_REGION_STOPS;
            cursor->event.id = value;
            return true;
        default:
            return false;
        }
    }
    return false;
}

/* Past what the journal has as well: the tracker was killed before it gave the room
 * back. */
static bool advance_to_new(const struct left *left, struct cursor *cursor)
{
    const struct thread *thread = &left->threads[cursor->number];

    while (advance(cursor)) {
        if (cursor->event.when_ns > thread->last_ns)
            return true;
        if (cursor->event.when_ns == thread->last_ns &&
            cursor->at_last++ >= thread->at_last)
            return true;
    }
    return false;
}

static void close_cursor(struct cursor *cursor)
{
    for (size_t i = 0; i < WM_RING_NAMES; i++)
        free(cursor->names[i]);
    if (cursor->ring)
        munmap((void *)cursor->ring, cursor->bytes);
    free(cursor);
}

static bool is_earlier(const struct cursor *a, const struct cursor *b)
{
    if (a->event.when_ns != b->event.when_ns)
        return a->event.when_ns < b->event.when_ns;
    return a->number < b->number;
}

static void sift_down(struct left *left, size_t at)
{
    struct cursor **heap = left->heap;

    for (size_t child; (child = 2 * at + 1) < left->cursor_count; at = child) {
        if (child + 1 < left->cursor_count && is_earlier(heap[child + 1], heap[child]))
            child++;
        if (!is_earlier(heap[child], heap[at]))
            return;
        struct cursor *moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* False for what is not a whole ring. */
static bool map_ring(struct cursor *cursor, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || info.st_size < (off_t)wm_ring_bytes(WM_RING_CAPACITY_MIN))
        return false;
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return false;
    cursor->ring = map;
    cursor->bytes = (size_t)info.st_size;
    cursor->events = (const void *)((const char *)map + WM_RING_EVENTS_AT);
    cursor->end = atomic_load_explicit(&cursor->ring->sequence, memory_order_acquire) / 2;
    cursor->capacity = atomic_load(&cursor->ring->capacity);
    cursor->position = atomic_load(&cursor->ring->taken);
    return cursor->ring->magic == WM_RING_MAGIC &&
           cursor->ring->version == WM_RING_VERSION &&
           cursor->capacity >= WM_RING_CAPACITY_MIN &&
           cursor->capacity <= WM_RING_SIZE_MAX &&
           (cursor->capacity & (cursor->capacity - 1)) == 0 &&
           wm_ring_bytes(cursor->capacity) <= cursor->bytes &&
           cursor->position <= cursor->end &&
           cursor->end - cursor->position <= cursor->capacity;
}

static int add_cursor(struct left *left, struct cursor *cursor)
{
    const struct thread *thread = &left->threads[cursor->number];

    for (size_t i = 0; i < WM_RING_NAMES && thread->locals; i++) {
        if (thread->locals[i] == UINT32_MAX)
            continue;
        cursor->names[i] = strdup(name_of(left, thread->locals[i]));
        if (!cursor->names[i])
            return WM_ENOMEM;
    }
    if (grow(&left->heap, &left->cursor_room, left->cursor_count, sizeof(*left->heap)) < 0)
        return WM_ENOMEM;
    if (!advance_to_new(left, cursor))
        close_cursor(cursor);
    else
        left->heap[left->cursor_count++] = cursor;
    return WM_OK;
}

static int open_ring(struct left *left, uint32_t number)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", number);
    int fd = openat(left->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return WM_OK; /* it was emptied and its thread is gone */
    struct cursor *cursor = calloc(1, sizeof(*cursor));
    int status = cursor ? WM_OK : WM_ENOMEM;
    if (cursor) {
        cursor->number = number;
        if (map_ring(cursor, fd)) {
            status = set_thread(left, number,
                                (struct wm_region_thread) {
                                    .pid = cursor->ring->pid,
                                    .tid = cursor->ring->tid,
                                    .process = cursor->ring->process,
                                });
            if (status == WM_OK)
                status = add_cursor(left, cursor);
            if (status < 0)
                close_cursor(cursor);
        } else {
            close_cursor(cursor);
        }
    }
    close(fd);
    return status;
}

/* Of those that there were most are gone by now. */
static int open_rings(struct left *left)
{
    const struct dirent *entry;
    const char *end = NULL;
    uint64_t number = 0;
    int status = WM_OK;

    int fd = openat(left->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return WM_ENOMEM;
    }
    while (status == WM_OK && (entry = readdir(dir)) != NULL) {
        if (wm_text_u64(entry->d_name, &end, &number) && *end == '\0' &&
            number < THREADS_MAX)
            status = open_ring(left, (uint32_t)number);
    }
    closedir(dir);
    return status;
}

static int read_rings(struct left *left, struct wm_error *err)
{
    int status = open_rings(left);

    for (size_t i = left->cursor_count; i-- > 0;)
        sift_down(left, i);
    while (left->cursor_count > 0 && status == WM_OK) {
        struct cursor *first = left->heap[0];
        const char *name = first->names[first->event.name];
        status = hand_out(left, &first->event, name ? name : "");
        if (!advance(first)) {
            left->heap[0] = left->heap[--left->cursor_count];
            close_cursor(first);
        }
        sift_down(left, 0);
    }
    return status < 0 ? wm_fail(err, status, "regions that were left behind: out of memory")
                      : WM_OK;
}

/* The lock of a tracker that lives is in the way of ours. */
static int check_control(const struct left *left, struct wm_error *err)
{
    struct wm_ring_control control;
    int fd = openat(left->folder, WM_CONTROL_FILE,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int status = WM_OK;

    if (fd < 0)
        return wm_fail(err, WM_ENODEV, "no regions were left behind");
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        status = wm_fail(err, WM_ENODEV, "the regions' tracker is not dead");
    else if (pread(fd, &control, sizeof(control), 0) != (ssize_t)sizeof(control) ||
             control.magic != WM_CONTROL_MAGIC || control.version != WM_RING_VERSION)
        status = wm_fail(err, WM_EFORMAT, "the regions that were left behind are not ours");
    close(fd);
    return status;
}

static void release(struct left *left)
{
    for (size_t i = 0; i < left->cursor_count; i++)
        close_cursor(left->heap[i]);
    for (size_t i = 0; i < left->name_room; i++)
        free(left->names[i]);
    for (size_t i = 0; i < left->thread_room; i++)
        free(left->threads[i].locals);
    free(left->heap);
    free(left->names);
    free(left->threads);
    if (left->folder >= 0)
        close(left->folder);
}

int wm_region_left_read(const char *folder, struct wm_region_calls *calls,
                        wm_region_take_edge *take, void *context, int64_t *ret_last_ns,
                        struct wm_error *err)
{
    struct left left = { .calls = calls, .take = take, .context = context };

    left.folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status = left.folder < 0 ? wm_fail(err, WM_ENODEV, "no regions were left behind")
                                 : check_control(&left, err);
    if (status == WM_OK)
        status = read_journal(&left, err);
    if (status == WM_OK)
        status = read_rings(&left, err);
    if (status == WM_OK)
        *ret_last_ns = left.last_ns;
    release(&left);
    return status;
}
