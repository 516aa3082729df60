/* SPDX-License-Identifier: Apache-2.0 */
/* region_left.c - the journal is read first; then the rings from where it ends, merged in
 * the order of time. */
#include "region/drain/region_left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/text/base_text.h"
#include "region/drain/region_left_journal.h"
#include "region/drain/region_source.h"

/* As the inbox has it. */
enum { RINGS_MAX = 32768 };

/* A ring, at the next event that is to be handed out. */
struct ring {
    struct wm_region_source *source;

    /* The journal has events up to this time, and so many of that time. The tracker was
     * killed before it gave their room back. */
    int64_t known_ns;
    uint64_t known_at;
};

struct left {
    int folder;
    int64_t now_ns;
    struct wm_region_calls *calls;
    wm_region_take_edge *take;
    void *context;
    struct wm_region_left *result;
    struct wm_left_journal journal;

    struct ring *heap; /* the earliest event on top */
    size_t count, room;
    size_t broken;  /* rings */
    bool has_taken; /* the tracker had taken events out of a ring */
};

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "regions that were left behind: out of memory");
}

static int hand_out(void *context, const struct wm_region_event *event,
                    struct wm_region_thread thread, const char *name)
{
    struct left *left = context;

    if (event->when_ns > left->result->last_ns)
        left->result->last_ns = event->when_ns;
    return wm_region_calls_event(left->calls, event, thread, name, left->take,
                                 left->context);
}

static int intern(void *context, uint32_t thread, uint32_t local, const char *name,
                  size_t length, uint32_t *ret_number)
{
    struct left *left = context;

    (void)thread;
    (void)local;
    return wm_region_interned_add(&left->journal.names, name, length, ret_number);
}

/* To the next event that the journal does not have. 1, 0 at the end, or WM_ENOMEM. */
static int find_next(struct left *left, struct ring *ring)
{
    struct wm_region_source *source = ring->source;
    int status;

    while ((status = wm_region_source_peek(source, 0, left->now_ns, intern, left)) > 0) {
        if (source->next.kind == WM_REGION_GONE)
            return 0;
        if (source->next.when_ns > ring->known_ns ||
            (source->next.when_ns == ring->known_ns && ring->known_at == 0))
            return 1;
        if (source->next.when_ns == ring->known_ns)
            ring->known_at--;
        wm_region_source_next(source);
    }
    return status;
}

static void close_ring(struct left *left, struct ring *ring)
{
    left->broken += ring->source->is_broken;
    wm_region_source_close(ring->source);
}

static bool is_before(const struct ring *a, const struct ring *b)
{
    const struct wm_region_source *x = a->source, *y = b->source;

    if (x->next.when_ns != y->next.when_ns)
        return x->next.when_ns < y->next.when_ns;
    return x->number < y->number;
}

static void sift_down(struct left *left, size_t at)
{
    struct ring *heap = left->heap;

    for (size_t child; (child = 2 * at + 1) < left->count; at = child) {
        if (child + 1 < left->count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &heap[at]))
            return;
        struct ring moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* What the journal knows of it, and what it has had since. */
static struct ring begin_ring(struct left *left, struct wm_region_source *source)
{
    const struct wm_left_thread *thread =
        wm_left_journal_thread(&left->journal, source->number);
    struct ring ring = { .source = source, .known_ns = -1 };

    if (thread) {
        ring.known_ns = thread->last_ns;
        ring.known_at = thread->at_last;
    }
    for (uint32_t i = 0; i < WM_RING_NAMES; i++) {
        uint32_t name = wm_map_find(&left->journal.local_map, source->number, i);
        if (name != WM_MAP_NONE)
            source->names[i] = name;
    }
    left->has_taken = left->has_taken || source->taken > 0;
    wm_region_source_look(source, left->now_ns);
    if (!source->is_broken)
        left->result->dropped += source->lost;
    return ring;
}

static int add_ring(struct left *left, uint32_t number, struct wm_error *err)
{
    struct wm_region_source *source;

    if (wm_array_reserve(&left->heap, left->count, &left->room, sizeof(*left->heap)) < 0)
        return out_of_memory(err);
    int status = wm_region_source_open_left(left->folder, number, &source);
    if (status == WM_EFORMAT) {
        left->broken++;
        return WM_OK;
    }
    if (status == WM_ENOMEM)
        return out_of_memory(err);
    if (status < 0)
        return wm_fail(err, status, "rings that were left behind cannot be opened");

    struct ring ring = begin_ring(left, source);
    status = find_next(left, &ring);
    if (status > 0)
        left->heap[left->count++] = ring;
    else
        close_ring(left, &ring);
    return status < 0 ? out_of_memory(err) : WM_OK;
}

/* Of those that there were most are gone by now. */
static int add_rings(struct left *left, struct wm_error *err)
{
    const struct dirent *entry;
    const char *end = NULL;
    uint64_t number = 0;
    int status = WM_OK;

    int fd = openat(left->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        status = wm_fail_errno(err, "the folder of regions");
        if (fd >= 0)
            close(fd);
        return status;
    }
    while (status == WM_OK && left->count < RINGS_MAX && (entry = readdir(dir)) != NULL) {
        if (wm_text_u64(entry->d_name, &end, &number) && *end == '\0' &&
            number < WM_RINGS_MAX)
            status = add_ring(left, (uint32_t)number, err);
    }
    closedir(dir);
    return status;
}

/* Those that could be opened, though another could not. */
static int read_rings(struct left *left, struct wm_error *err)
{
    int opened = add_rings(left, err), status = opened == WM_ENOMEM ? opened : WM_OK;

    for (size_t i = left->count; i-- > 0;)
        sift_down(left, i);
    while (left->count > 0 && status == WM_OK) {
        struct ring *first = &left->heap[0];
        const struct wm_region_event *event = &first->source->next;
        bool is_named = event->kind == WM_REGION_BEGINS || event->kind == WM_REGION_STARTS;

        status = hand_out(left, event, first->source->thread,
                          is_named ? left->journal.names.kept.texts[event->name] : NULL);
        if (status < 0)
            return out_of_memory(err);
        wm_region_source_next(first->source);
        status = find_next(left, first);
        if (status < 0)
            return out_of_memory(err);
        if (status == 0) {
            close_ring(left, first);
            left->heap[0] = left->heap[--left->count];
        }
        sift_down(left, 0);
        status = WM_OK;
    }
    return opened;
}

static int open_folder(struct left *left, const char *path, struct wm_error *err)
{
    struct stat info;

    left->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (left->folder < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? wm_fail(err, WM_ENODEV, "no regions were left behind")
                   : wm_fail_errno(err, "the folder of regions");
    if (fstat(left->folder, &info) < 0 || info.st_uid != geteuid())
        return wm_fail(err, WM_EACCES, "the folder of regions is another user's");
    return WM_OK;
}

/* The lock of a tracker that lives is in the way of ours. */
static int look_at_control(int fd, struct wm_ring_control *ret_control,
                           struct wm_error *err)
{
    struct stat info;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return wm_fail(err, WM_EFORMAT, "the regions that were left behind are not ours");
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? wm_fail(err, WM_ENODEV, "the regions' tracker is not dead")
                   : wm_fail_errno(err, "the lock of the regions' tracker");
    if (pread(fd, ret_control, sizeof(*ret_control), 0) != (ssize_t)sizeof(*ret_control) ||
        ret_control->magic != WM_CONTROL_MAGIC || ret_control->version != WM_RING_VERSION)
        return wm_fail(err, WM_EFORMAT, "the regions that were left behind are not ours");
    return WM_OK;
}

static int read_control(struct left *left, struct wm_error *err)
{
    struct wm_ring_control control;
    int fd = openat(left->folder, WM_CONTROL_FILE,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? wm_fail(err, WM_ENODEV, "no regions were left behind")
                               : wm_fail_errno(err, "the folder of regions");
    int status = look_at_control(fd, &control, err);
    close(fd);
    if (status == WM_OK) {
        uint64_t lost = atomic_load(&control.lost);
        if (wm_ring_is_count(lost, 0, left->now_ns)) {
            left->result->dropped = lost;
            left->result->no_ring_errno = (int)atomic_load(&control.no_ring_errno);
        } else {
            left->broken++;
        }
        left->has_taken = atomic_load(&control.rings_gone) > 0;
    }
    return status;
}

static void remark(struct left *left, int status, const struct wm_error *why)
{
    char *text = left->result->trouble;
    size_t size = sizeof(left->result->trouble);

    if (status < 0)
        snprintf(text, size, "%s", why->text);
    else if (!left->journal.is_there && left->has_taken)
        snprintf(text, size, "there was no room for the journal of regions");
    else if (left->broken > 0)
        snprintf(text, size, "%zu of the rings %s broken", left->broken,
                 left->broken == 1 ? "is" : "are");
}

int wm_region_left_read(const char *folder, struct wm_region_calls *calls,
                        wm_region_take_edge *take, void *context,
                        struct wm_region_left *ret_left, struct wm_error *err)
{
    struct wm_region_left result = { 0 };
    struct wm_error why = { 0 };
    struct left left = {
        .now_ns = wm_clock_monotonic_ns(),
        .calls = calls,
        .take = take,
        .context = context,
        .result = &result,
    };

    int status = open_folder(&left, folder, &why);
    if (status == WM_OK)
        status = read_control(&left, &why);

    /* What ends in the rings had begun in the journal: without it they are of no use. */
    if (status == WM_OK)
        status = wm_left_journal_read(&left.journal, left.folder, left.now_ns, hand_out,
                                      &left, &why);
    if (status == WM_OK)
        status = read_rings(&left, &why);

    remark(&left, status, &why);
    while (left.count > 0)
        wm_region_source_close(left.heap[--left.count].source);
    free(left.heap);
    wm_left_journal_release(&left.journal);
    if (left.folder >= 0)
        close(left.folder);
    if (status == WM_ENODEV || status == WM_ENOMEM)
        return wm_fail(err, status, "%s", why.text);
    *ret_left = result;
    return WM_OK;
}
