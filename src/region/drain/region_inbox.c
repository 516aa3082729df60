/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_inbox.c - the rings of all threads, merged in the order of time.
 *
 * Events are handed out of the rings themselves: nothing is sorted beforehand or kept
 * aside, so that the memory for it is that of the rings. What is younger than a
 * quarter of a millisecond waits for the next time, for a thread may be about to write
 * something that is older; see wm_region_writer_enter(). Events wait for a tail that is
 * older than they are, too, for as long as it may change.
 */
#include "region/drain/region_inbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_map.h"
#include "base/base_text.h"
#include "region/drain/region_shared.h"
#include "region/drain/region_source.h"

#define MARGIN_NS (WM_NS_PER_MS / 4)

/* The longest wait for tails at the end. */
#define END_MOST_NS (2 * WM_NS_PER_S)

/* How often files that were not announced are searched for. */
#define SEARCH_NS WM_NS_PER_S

/* How often it is checked whether threads still exist. */
#define CHECK_NS (50 * WM_NS_PER_MS)

enum {
    CHECKS = 16,         /* threads of one check, and an eighth of all beside them */
    RELEASE_AFTER = 512, /* events; a full ring may be waiting for room */
    CLOCK_AFTER = 512,   /* events between two readings of the clock */
    LEAST_PER_RING = 64, /* least events per ring between two readings of the clock */
    SOURCES_MAX = 32768, /* a process may have 65530 mappings */
};

struct wm_region_inbox {
    struct wm_region_folder folder;

    struct wm_region_source **sources;
    size_t source_count, source_room;
    struct wm_map known;            /* their numbers */
    size_t name_bytes;              /* of their names */
    struct wm_region_source **heap; /* those that have an event, the earliest on top */
    size_t heap_count, heap_room;

    uint64_t ready;      /* rings that were announced at the last search */
    int64_t searched_ns; /* when that was */
    int64_t checked_ns;
    size_t check_next;   /* index */
    size_t new_sources;  /* since threads were last asked for */
    int64_t complete_ns; /* handed out up to here */
    int64_t made_ns;
    uint64_t progress, rings_gone; /* as the control has them */
    uint64_t lost_before;          /* by rings that are gone */
    uint64_t lost_without_ring;
    int open_errno; /* why a ring could not be read */
    bool is_control_damaged;
    struct wm_region_trouble trouble;
};

int wm_region_inbox_new(struct wm_region_inbox **ret_inbox, struct wm_error *err)
{
    struct wm_region_inbox *inbox = calloc(1, sizeof(*inbox));
    if (!inbox)
        return wm_fail_memory(err, "regions");
    int status = wm_region_folder_make(&inbox->folder, err);
    if (status < 0) {
        free(inbox);
        return status;
    }
    inbox->made_ns = wm_clock_monotonic_ns();
    *ret_inbox = inbox;
    return WM_OK;
}

int wm_region_inbox_open(struct wm_region_inbox *inbox, struct wm_error *err)
{
    wm_region_folder_remove_stale();
    return wm_region_folder_open(&inbox->folder, err);
}

void wm_region_inbox_free(struct wm_region_inbox *inbox)
{
    if (!inbox)
        return;
    wm_region_folder_remove(&inbox->folder);
    for (size_t i = 0; i < inbox->source_count; i++)
        wm_region_source_close(inbox->sources[i]);
    wm_map_release(&inbox->known);
    free(inbox->sources);
    free(inbox->heap);
    free(inbox);
}

const char *wm_region_inbox_path(const struct wm_region_inbox *inbox)
{
    return inbox->folder.path;
}

int wm_region_inbox_fd(const struct wm_region_inbox *inbox)
{
    return inbox->folder.wake_fd;
}

void wm_region_inbox_close(struct wm_region_inbox *inbox)
{
    wm_region_folder_end_waits(&inbox->folder);
}

void wm_region_inbox_fold_all(struct wm_region_inbox *inbox, bool folds_all)
{
    const uint32_t value = folds_all;

    wm_shared_write(&inbox->folder.control->folds_all, &value, sizeof(value));
}

bool wm_region_inbox_is_idle(const struct wm_region_inbox *inbox)
{
    uint64_t made;

    return inbox->source_count == 0 &&
           wm_shared_read(&made, &inbox->folder.control->rings_made, sizeof(made)) &&
           made == 0;
}

const struct wm_region_trouble *wm_region_inbox_trouble(const struct wm_region_inbox *inbox)
{
    return &inbox->trouble;
}

/* What is in a damaged ring counts for nothing. */
static uint64_t lost_by(const struct wm_region_source *source)
{
    return source->is_broken ? 0 : source->lost;
}

static void count_lost(struct wm_region_inbox *inbox)
{
    uint64_t lost = inbox->lost_before + inbox->lost_without_ring;

    for (size_t i = 0; i < inbox->source_count; i++)
        lost += lost_by(inbox->sources[i]);
    inbox->trouble.lost = lost;
}

/* Whoever waits for room has patience for as long as this goes on. */
static void make_progress(struct wm_region_inbox *inbox)
{
    inbox->progress++;
    wm_shared_write(&inbox->folder.control->progress, &inbox->progress,
                    sizeof(inbox->progress));
}

/* For one more, on the heap as well. */
static int make_room(struct wm_region_inbox *inbox)
{
    if (wm_map_reserve(&inbox->known) < 0 ||
        wm_array_reserve(&inbox->sources, inbox->source_count, &inbox->source_room,
                         sizeof(*inbox->sources)) < 0)
        return WM_ENOMEM;
    return wm_array_reserve(&inbox->heap, inbox->source_count, &inbox->heap_room,
                            sizeof(*inbox->heap));
}

static int add_source(struct wm_region_inbox *inbox, uint32_t number)
{
    struct wm_region_source *source = NULL;

    if (wm_map_find(&inbox->known, number, 0) != WM_MAP_NONE)
        return WM_OK;
    int status = make_room(inbox);
    if (status == WM_OK)
        status = wm_region_source_open(dirfd(inbox->folder.dir), number, inbox->made_ns,
                                       &inbox->name_bytes, &source);
    if (status < 0)
        return status;
    wm_map_put(&inbox->known, number, 0, 0);
    inbox->sources[inbox->source_count++] = source;
    inbox->new_sources++;
    source->quiet_ns = inbox->complete_ns;
    make_progress(inbox);
    return WM_OK;
}

/* What is no ring, and bears the name of one, goes. */
static int add_file(struct wm_region_inbox *inbox, const char *name)
{
    const char *end = NULL;
    uint64_t number = 0;

    if (!wm_text_u64(name, &end, &number) || *end != '\0')
        return WM_OK;
    if (inbox->source_count >= SOURCES_MAX)
        return WM_OK;
    int status = number < WM_RINGS_MAX ? add_source(inbox, (uint32_t)number) : WM_EFORMAT;
    if (status == WM_EFORMAT && unlinkat(dirfd(inbox->folder.dir), name, 0) == 0)
        inbox->trouble.damaged++;
    return status == WM_EFORMAT ? WM_OK : status;
}

/* WM_EIO: some could not be looked at, which the next search may. */
static int search(struct wm_region_inbox *inbox)
{
    DIR *dir = inbox->folder.dir;
    const struct dirent *entry;
    int status = WM_OK;

    inbox->open_errno = 0;
    rewinddir(dir);
    while (status != WM_ENOMEM && (entry = readdir(dir))) {
        int added = add_file(inbox, entry->d_name);
        if (added == WM_EIO)
            inbox->open_errno = errno;
        if (added < 0)
            status = added;
    }
    return status;
}

static int search_if_due(struct wm_region_inbox *inbox, uint64_t ready, bool is_last,
                         int64_t now_ns)
{
    if (!is_last && ready == inbox->ready && now_ns - inbox->searched_ns < SEARCH_NS)
        return WM_OK;
    int status = search(inbox);
    if (status == WM_OK) {
        inbox->ready = ready;
        inbox->searched_ns = now_ns;
    }
    return status;
}

/* Of those that are idle: what is written is handed out first. */
static void check_some(struct wm_region_inbox *inbox, int64_t now_ns)
{
    size_t checks = 2 * inbox->new_sources;

    if (now_ns - inbox->checked_ns >= CHECK_NS) {
        checks += CHECKS + inbox->source_count / 8;
        inbox->checked_ns = now_ns;
    }
    inbox->new_sources = 0;
    if (checks > inbox->source_count)
        checks = inbox->source_count;
    for (; checks > 0; checks--) {
        if (inbox->check_next >= inbox->source_count)
            inbox->check_next = 0;
        struct wm_region_source *source = inbox->sources[inbox->check_next++];
        if (source->taken == source->written && source->gone_ns == 0)
            wm_region_source_check(source, dirfd(inbox->folder.dir), now_ns);
    }
}

static bool is_before(const struct wm_region_source *a, const struct wm_region_source *b)
{
    if (a->next.when_ns != b->next.when_ns)
        return a->next.when_ns < b->next.when_ns;
    return a->number < b->number;
}

static void sift_down(struct wm_region_inbox *inbox, size_t at)
{
    struct wm_region_source **heap = inbox->heap;

    for (size_t child; (child = 2 * at + 1) < inbox->heap_count; at = child) {
        if (child + 1 < inbox->heap_count && is_before(heap[child + 1], heap[child]))
            child++;
        if (!is_before(heap[child], heap[at]))
            return;
        struct wm_region_source *moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* The earliest but that on top; NULL: there is none. */
static const struct wm_region_source *second(const struct wm_region_inbox *inbox)
{
    struct wm_region_source *const *heap = inbox->heap;

    if (inbox->heap_count < 2)
        return NULL;
    return inbox->heap_count > 2 && is_before(heap[2], heap[1]) ? heap[2] : heap[1];
}

/* Gives back what was handed out of rings, of those that have so many events of it. */
static void release(struct wm_region_inbox *inbox, struct wm_region_source **sources,
                    size_t count, uint64_t least)
{
    bool is_released = false;

    for (size_t i = 0; i < count; i++)
        is_released |= wm_region_source_release(sources[i], least);
    if (is_released)
        make_progress(inbox);
}

/* A round of draining. */
struct round {
    int64_t now_ns;
    int64_t
        until_ns; /* handed out are events up to here; later ones may be in the making */
    int64_t deadline_ns;
    size_t clock_after; /* events */
    bool is_time_up;
    wm_region_take *take;
    void *context;
};

/* After an event. */
static bool is_time_up(struct round *round)
{
    if (--round->clock_after > 0)
        return false;
    round->clock_after = CLOCK_AFTER;
    round->is_time_up =
        round->deadline_ns < INT64_MAX && wm_clock_monotonic_ns() >= round->deadline_ns;
    return round->is_time_up;
}

/* Whether it may still hand out events that are older than now. */
static bool is_waited_for(const struct wm_region_source *source)
{
    return source->gone_ns == 0 && !source->is_stuck &&
           (source->state.is_writing || wm_region_source_has_tail(source));
}

/* What it is writing is not older than what it wrote last; should it be as old, it will be
 * taken for a nanosecond younger. Nor is it older than its tail. */
static int64_t safe_until(const struct wm_region_source *source)
{
    int64_t last_ns =
        wm_region_source_has_tail(source) ? source->tail_ns - 1 : source->last_ns;

    return last_ns > source->quiet_ns ? last_ns : source->quiet_ns;
}

static int peek(struct wm_region_inbox *inbox, struct wm_region_source *source,
                struct round *round)
{
    int status = wm_region_source_peek(source, inbox->complete_ns + 1, round->now_ns);

    if (status == 0 && is_waited_for(source) && safe_until(source) < round->until_ns)
        round->until_ns = safe_until(source);
    return status;
}

/* Looks at each ring, and puts those that have an event on the heap. */
static int gather(struct wm_region_inbox *inbox, struct round *round)
{
    inbox->heap_count = 0;
    for (size_t i = 0; i < inbox->source_count; i++) {
        struct wm_region_source *source = inbox->sources[i];
        int status = peek(inbox, source, round);
        if (status < 0)
            return status;
        if (status > 0)
            inbox->heap[inbox->heap_count++] = source;
    }
    for (size_t i = inbox->heap_count / 2; i-- > 0;)
        sift_down(inbox, i);
    return WM_OK;
}

/* Hands out what the ring on top has before the others have their turn. */
static int run(struct wm_region_inbox *inbox, struct round *round)
{
    struct wm_region_source *source = inbox->heap[0];
    const struct wm_region_source *other = second(inbox);
    int status;

    do {
        status = round->take(round->context, &source->next);
        if (status < 0)
            break;
        wm_region_source_next(source);
        release(inbox, &source, 1, RELEASE_AFTER);
        status = peek(inbox, source, round);
    } while (!is_time_up(round) && status > 0 && source->next.when_ns <= round->until_ns &&
             (!other || is_before(source, other)));
    if (status == 0)
        inbox->heap[0] = inbox->heap[--inbox->heap_count];
    sift_down(inbox, 0);
    return status < 0 ? status : WM_OK;
}

static void remove_finished(struct wm_region_inbox *inbox)
{
    char name[16];
    size_t kept = 0;

    for (size_t i = 0; i < inbox->source_count; i++) {
        struct wm_region_source *source = inbox->sources[i];
        if (!source->is_over) {
            inbox->sources[kept++] = source;
            continue;
        }
        snprintf(name, sizeof(name), "%lu", (unsigned long)source->number);
        unlinkat(dirfd(inbox->folder.dir), name, 0);
        wm_map_remove(&inbox->known, source->number, 0);
        inbox->lost_before += lost_by(source);
        if (source->is_broken && inbox->trouble.damaged++ == 0)
            inbox->trouble.damaged_pid = source->thread.pid;
        wm_region_source_close(source);
        inbox->rings_gone++;
    }
    if (kept < inbox->source_count)
        wm_shared_write(&inbox->folder.control->rings_gone, &inbox->rings_gone,
                        sizeof(inbox->rings_gone));
    inbox->source_count = kept;
}

static void empty_wake(const struct wm_region_inbox *inbox)
{
    char bytes[4096];

    while (read(inbox->folder.wake_fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
        ;
}

static bool has_tail(struct wm_region_inbox *inbox, struct wm_region_source *source,
                     int64_t end_ns)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    wm_region_source_look(source, now_ns);
    if (!wm_region_source_has_tail(source) || source->tail_ns > end_ns)
        return false;
    wm_region_source_check(source, dirfd(inbox->folder.dir), now_ns);
    return wm_region_source_has_tail(source);
}

/* At the end: a thread that goes on may fold into a tail from before the end for as long as
 * a slice lasts. Waits for that, and then reads the tails as they are. */
static void end_tails(struct wm_region_inbox *inbox, int64_t end_ns)
{
    const struct timespec moment = { .tv_nsec = WM_NS_PER_MS };

    for (size_t i = 0; i < inbox->source_count; i++) {
        struct wm_region_source *source = inbox->sources[i];
        while (has_tail(inbox, source, end_ns) && !source->is_stuck &&
               wm_clock_monotonic_ns() < end_ns + END_MOST_NS)
            nanosleep(&moment, NULL);
        if (wm_region_source_has_tail(source) && source->tail_ns <= end_ns)
            wm_region_source_take_tail(source);
    }
}

static void look_at_all(struct wm_region_inbox *inbox, bool is_last, struct round *round)
{
    if (is_last)
        end_tails(inbox, round->now_ns);
    for (size_t i = 0; i < inbox->source_count && !is_last; i++)
        wm_region_source_look(inbox->sources[i], round->now_ns);
    if (!is_last) {
        check_some(inbox, round->now_ns);
        return;
    }
    /* Now is later than all that was seen. */
    round->now_ns = round->until_ns = wm_clock_monotonic_ns();
    for (size_t i = 0; i < inbox->source_count; i++)
        if (inbox->sources[i]->gone_ns == 0)
            inbox->sources[i]->gone_ns = round->now_ns;
}

static bool has_no_control(const struct wm_region_inbox *inbox)
{
    return faccessat(dirfd(inbox->folder.dir), WM_CONTROL_FILE, F_OK, 0) < 0 &&
           errno == ENOENT;
}

/* As much of it as can be believed. */
static uint64_t look_at_control(struct wm_region_inbox *inbox, int64_t now_ns)
{
    struct wm_ring_control control;

    inbox->trouble.is_cut_off = has_no_control(inbox);
    if (!wm_shared_read(&control, inbox->folder.control, sizeof(control))) {
        inbox->trouble.is_cut_off = true;
        return inbox->ready;
    }
    inbox->trouble.other_pid = (pid_t)atomic_load(&control.other_pid);
    uint64_t lost = atomic_load(&control.lost);
    if (!inbox->is_control_damaged &&
        wm_ring_is_count(lost, inbox->lost_without_ring, now_ns - inbox->made_ns)) {
        inbox->lost_without_ring = lost;
        inbox->trouble.no_ring_errno = (int)atomic_load(&control.no_ring_errno);
    } else {
        inbox->trouble.damaged += !inbox->is_control_damaged;
        inbox->is_control_damaged = true;
        inbox->lost_without_ring = 0;
    }
    return atomic_load(&control.rings_ready);
}

static bool has_more(const struct wm_region_inbox *inbox, const struct round *round)
{
    return inbox->heap_count > 0 && inbox->heap[0]->next.when_ns <= round->until_ns;
}

static int drain(struct wm_region_inbox *inbox, bool is_last, struct round *round)
{
    uint64_t ready = look_at_control(inbox, round->now_ns);
    int searched = search_if_due(inbox, ready, is_last, round->now_ns);

    if (searched == WM_ENOMEM)
        return searched;
    look_at_all(inbox, is_last, round);
    int status = gather(inbox, round);
    round->clock_after = CLOCK_AFTER + LEAST_PER_RING * inbox->source_count;
    while (status == WM_OK && !round->is_time_up && has_more(inbox, round))
        status = run(inbox, round);
    if (status == WM_OK && has_more(inbox, round)) {
        round->until_ns = inbox->heap[0]->next.when_ns - 1;
        return 1;
    }
    return status == WM_OK && is_last ? searched : status;
}

int wm_region_inbox_drain(struct wm_region_inbox *inbox, bool is_last, int64_t deadline_ns,
                          wm_region_take *take, void *context, int64_t *ret_complete_ns,
                          struct wm_error *err)
{
    struct round round = { .deadline_ns = deadline_ns, .take = take, .context = context };

    empty_wake(inbox);
    round.now_ns = wm_clock_monotonic_ns();
    round.until_ns = round.now_ns - MARGIN_NS;
    int status = drain(inbox, is_last, &round);
    release(inbox, inbox->sources, inbox->source_count, 1);
    remove_finished(inbox);
    count_lost(inbox);
    if (status == WM_EIO && inbox->open_errno != 0)
        return wm_fail(err, status, "rings cannot be opened: %s",
                       wm_errno_text(inbox->open_errno));
    if (status == WM_EIO)
        make_progress(inbox); /* the taker waits, and stops doing so */
    if (status < 0)
        return wm_fail(err, status, "%s",
                       status == WM_ENOMEM ? "out of memory" : "they cannot be taken");

    /* A thread that lost its processor in the middle of an event holds all others up until
     * it has it back. They are to have patience. */
    if (round.until_ns < round.now_ns - MARGIN_NS)
        make_progress(inbox);
    if (round.until_ns > inbox->complete_ns)
        inbox->complete_ns = round.until_ns;
    for (size_t i = 0; i < inbox->source_count; i++)
        if (!inbox->sources[i]->state.is_writing)
            inbox->sources[i]->quiet_ns = inbox->complete_ns;
    *ret_complete_ns = inbox->complete_ns;
    return status;
}
