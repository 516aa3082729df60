/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.c - what a program calls to name its blocks, and where that goes: to the ring of
 * the thread, to a sub-tracking file, or nowhere.
 *
 * This is the one part of the library that keeps something outside of a handle: a program
 * that is measured has none.
 */
#include "wattmeter/region.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base_file.h"
#include "region/mark/region_file.h"
#include "region/mark/region_link.h"
#include "region/mark/region_local.h"
#include "region/mark/region_writer.h"

enum mode {
    MODE_UNKNOWN, /* nobody has asked yet */
    MODE_OFF,
    MODE_WAITING, /* no tracker yet: an ancestor's is searched for now and then */
    MODE_RING,
    MODE_CLOSED, /* the tracker is over, its process lives: each region searches for the
                  * next one, so that none is lost between two that follow closely */
    MODE_FILE,
};

/* One that is open, for a file: each end needs the name. */
struct name {
    struct name *next;
    uint64_t id; /* of one that was started by itself; else 0 */
    char text[];
};

/* What the process has. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int mode;
static unsigned generation; /* goes up when the target is another; never 0 */
static struct wm_region_target *target;
static struct wm_region_file *file; /* made once, never closed: a thread may be writing */
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER; /* of writing, and: */
static struct name *started; /* for a file: what was started by itself */
static pthread_key_t key;
static bool has_key;
static _Atomic uint64_t last_id;

/* The generation once more, in a page that is all zero in a child, by whatever way it was
 * made: _Fork() and clone() run no handlers, and rings are not mapped in it. */
static struct mark {
    _Atomic unsigned generation;
} * mark;

/* Every 64th search for the next tracker also checks whether its process still exists. */
enum { SEARCHES = 64 };

/* How long such a child tries to get the lock, which a thread of the parent may have held.
 */
enum { CHILD_PATIENCE_S = 1 };

/* What a thread has. */
struct thread {
    struct wm_region_writer *writer;
    struct name *names; /* for a file: names of open regions, the innermost first */
    uint64_t dropped; /* number of regions inside of those without memory for their names */
};

/* The ways to these must not cost a call, wherever the library is loaded: two pointers find
 * room in what the loader keeps for that. `quick` is the thread's writer while it is
 * quick, NULL otherwise. */
#define THREAD_LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))
THREAD_LOCAL struct wm_region_writer *quick;
THREAD_LOCAL struct thread *self;

/* An id that stop knows to have no start. */
#define ID_BITS (WM_RING_VALUE_BITS - 1)
#define ID_DROPPED (UINT64_C(1) << ID_BITS)

/* A region may be marked anywhere: errno is the program's, and a thread must not be
 * cancelled half way. */
struct detour {
    int number, cancel_state;
};

static bool push(struct name **list, const char *name, uint64_t id)
{
    size_t size = strlen(name) + 1;
    struct name *made = malloc(sizeof(*made) + size);

    if (!made)
        return false;
    made->next = *list;
    made->id = id;
    memcpy(made->text, name, size);
    *list = made;
    return true;
}

/* NULL: there is none. */
static struct name *take(struct name **list, uint64_t id)
{
    while (*list && (*list)->id != id)
        list = &(*list)->next;
    struct name *found = *list;
    if (found)
        *list = found->next;
    return found;
}

static void free_all(struct name **list)
{
    while (*list) {
        struct name *first = *list;
        *list = first->next;
        free(first);
    }
}

/* What the calling thread has of the parent's, in a child. */
static void forget_writer(void)
{
    quick = NULL;
    if (!self)
        return;
    free(self->writer);
    self->writer = NULL;
    free_all(&self->names);
    self->dropped = 0;
}

/* Rings of the parent are not mapped here; of its threads only this one is left. */
static void forget_parent(void)
{
    forget_writer();
    if (target)
        wm_region_target_forget(target);
    wm_region_link_forget();
    free_all(&started);
    if (mark)
        atomic_store(&mark->generation, generation);
}

/* In a child that was made without handlers. Where the lock is held, it is for good: then
 * the child has no regions. */
static void become_child(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CHILD_PATIENCE_S;
    if (pthread_mutex_timedlock(&lock, &until) != 0) {
        forget_writer();
        atomic_store(&mode, MODE_OFF);
        return;
    }
    if (atomic_load(&mark->generation) == 0)
        forget_parent();
    pthread_mutex_unlock(&lock);
}

static void look_for_child(void)
{
    if (mark && atomic_load(&mark->generation) == 0)
        become_child();
}

static struct detour enter_detour(void)
{
    struct detour detour = { .number = errno };

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &detour.cancel_state);
    look_for_child();
    return detour;
}

static void leave_detour(struct detour detour)
{
    pthread_setcancelstate(detour.cancel_state, NULL);
    errno = detour.number;
}

static void end_thread(void *context)
{
    struct thread *thread = context;
    struct detour detour = enter_detour();

    quick = NULL;
    self = NULL;
    if (thread->writer) {
        pthread_mutex_lock(&lock);
        wm_region_writer_free(thread->writer);
        pthread_mutex_unlock(&lock);
    }
    free_all(&thread->names);
    free(thread);
    leave_detour(detour);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&file_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&file_lock);
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    forget_parent();
    after_fork();
}

/* Under the lock. What cannot be opened is as if nobody listened: it must not keep the
 * program from its work. A program with rights that its user does not have writes nowhere
 * for him. */
static enum mode look(void)
{
    const char *value = wm_env_trusted(WM_REGIONS_VARIABLE, "");

    if (getauxval(AT_SECURE))
        return MODE_OFF;
    if (wm_region_file_is_path(value))
        /* Several processes may find the same value in their environment. */
        return file || wm_region_file_open(value, WM_RECORD_APPEND, &file, NULL) == WM_OK
                   ? MODE_FILE
                   : MODE_OFF;
    return wm_region_target_open(value, &target, NULL) == WM_OK ? MODE_RING : MODE_WAITING;
}

/* Where the kernel (before Linux 4.14) cannot wipe it, a child that was made without
 * handlers must not mark regions. */
static struct mark *make_mark(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    struct mark *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    madvise(page, size, MADV_WIPEONFORK);
    atomic_store(&page->generation, generation);
    return page;
}

/* Under the lock. */
static bool prepare(void)
{
    if (has_key)
        return true;
    if (generation == 0)
        generation = 1;
    if (!mark)
        mark = make_mark();
    if (!mark)
        return false;
    if (!wm_region_file_watch_forks() || pthread_key_create(&key, end_thread) != 0)
        return false;
    has_key = true;
    pthread_atfork(before_fork, after_fork, in_child);
    return true;
}

/* Under the lock. Gives the one before. */
static struct wm_region_target *set_target(struct wm_region_target *other, enum mode its)
{
    struct wm_region_target *before = target;

    target = other;
    atomic_store(&mode, its);
    if (++generation == 0)
        generation = 1;
    atomic_store(&mark->generation, generation);
    return before;
}

static bool is_over(const struct wm_region_target *of)
{
    return atomic_load_explicit(&of->control->is_closed, memory_order_relaxed);
}

/* Under the lock. Goes to the inbox at `path` if its tracker lives. */
static bool join(const char *path)
{
    struct wm_region_target *other;

    if (wm_region_target_open(path, &other, NULL) < 0)
        return false;
    bool has_joined = !is_over(other) && wm_region_target_has_tracker(other);
    if (has_joined)
        other = set_target(other, MODE_RING);
    if (other)
        wm_region_target_drop(other);
    return has_joined;
}

/* Under the lock, when there is no target, or its tracker is over. The link leads to the
 * tracker that was started last. The next one of the same thread has the same path. */
static enum mode search_next(void)
{
    static unsigned searches;
    char path[WM_FOLDER_SIZE];

    if ((wm_region_link_is_due() && wm_region_link_find(path) && join(path)) ||
        (target && join(target->path)))
        return MODE_RING;
    bool has_process = target && (searches++ % SEARCHES != 0 ||
                                  kill(target->control->pid, 0) == 0 || errno != ESRCH);
    atomic_store(&mode, has_process ? MODE_CLOSED : MODE_WAITING);
    return (enum mode)atomic_load(&mode);
}

static bool is_searching(enum mode of)
{
    return of == MODE_WAITING || of == MODE_CLOSED;
}

static enum mode search_again(void)
{
    pthread_mutex_lock(&lock);
    enum mode found = (enum mode)atomic_load(&mode);
    if (is_searching(found))
        found = search_next();
    pthread_mutex_unlock(&lock);
    return found;
}

static enum mode find_mode(void)
{
    enum mode found = (enum mode)atomic_load(&mode);

    if (found != MODE_UNKNOWN)
        return found;
    pthread_mutex_lock(&lock);
    found = (enum mode)atomic_load(&mode);
    if (found == MODE_UNKNOWN) {
        found = prepare() ? look() : MODE_OFF;
        atomic_store(&mode, found);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int wm_region_listen(const char *path, struct wm_error *err)
{
    struct wm_region_target *other = NULL;

    look_for_child();
    if (path) {
        int status = wm_region_target_open(path, &other, err);
        if (status < 0)
            return status;
    }
    pthread_mutex_lock(&lock);
    if (!prepare()) {
        pthread_mutex_unlock(&lock);
        if (other)
            wm_region_target_drop(other);
        return wm_fail(err, WM_ENOMEM, "no thread-specific storage is left");
    }
    struct wm_region_target *before = set_target(other, other ? MODE_RING : MODE_UNKNOWN);
    if (before)
        wm_region_target_drop(before);
    wm_region_link_set(path);
    pthread_mutex_unlock(&lock);
    return WM_OK;
}

struct wm_region_target *wm_region_keep(void)
{
    look_for_child();
    find_mode();
    pthread_mutex_lock(&lock);
    struct wm_region_target *kept = target;
    if (kept)
        kept->users++;
    pthread_mutex_unlock(&lock);
    return kept;
}

void wm_region_report_other(struct wm_region_target *kept)
{
    atomic_store(&kept->control->other_pid, (int32_t)getpid());
}

void wm_region_restore(const char *path, struct wm_region_target *kept)
{
    struct wm_region_target *left = kept;

    look_for_child();
    pthread_mutex_lock(&lock);
    if (target && strcmp(target->path, path) == 0) {
        bool is_there = kept && !is_over(kept);
        left = set_target(is_there ? kept : NULL, is_there ? MODE_RING : MODE_UNKNOWN);
        wm_region_link_set(is_there && kept->control->pid == getpid() ? kept->path : NULL);
        if (kept && !is_there)
            wm_region_target_drop(kept);
    }
    if (left)
        wm_region_target_drop(left);
    pthread_mutex_unlock(&lock);
}

static struct thread *find_thread(void)
{
    if (self)
        return self;
    struct thread *thread = calloc(1, sizeof(*thread));
    if (thread && pthread_setspecific(key, thread) != 0) {
        free(thread);
        thread = NULL;
    }
    self = thread;
    return thread;
}

static bool is_current(const struct wm_region_writer *writer)
{
    return writer->generation ==
               atomic_load_explicit(&mark->generation, memory_order_relaxed) &&
           !is_over(writer->target);
}

/* The thread's writer for the target of now; NULL: there is none, or no memory. */
static struct wm_region_writer *find_writer(void)
{
    struct thread *thread = find_thread();

    if (!thread)
        return NULL;
    struct wm_region_writer *writer = thread->writer;
    if (writer && writer->ring && is_current(writer) && !writer->has_given_up)
        return writer;

    pthread_mutex_lock(&lock);
    /* The tracker may have gone before the program. */
    if (target && is_over(target) && search_next() != MODE_RING) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    if (writer && !is_current(writer)) {
        quick = NULL;
        wm_region_writer_free(writer);
        writer = NULL;
    }
    if (!writer && target)
        writer = wm_region_writer_new(target, generation);
    if (writer && !writer->ring)
        wm_region_writer_attach(writer);
    thread->writer = writer;
    pthread_mutex_unlock(&lock);
    return writer;
}

/* There is nobody to tell of a full disk: the program is not ours. */
static bool open_one(struct name **list, const char *name, uint64_t id)
{
    if (!push(list, name, id))
        return false;
    wm_region_file_write(file, name, false, NULL, NULL);
    return true;
}

static void close_one(struct name **list, uint64_t id)
{
    struct name *ended = take(list, id);

    if (ended)
        wm_region_file_write(file, ended->text, true, NULL, NULL);
    free(ended);
}

/* Of a thread, on its stack. */
static void begin_in_file(struct thread *thread, const char *name)
{
    if (thread->dropped > 0 || !open_one(&thread->names, name, 0))
        thread->dropped++;
}

/* `name` NULL: of any. */
static void end_in_file(struct thread *thread, const char *name)
{
    struct name **list = &thread->names;

    if (thread->dropped > 0) {
        thread->dropped--;
        return;
    }
    while (name && *list && strcmp((*list)->text, name) != 0)
        list = &(*list)->next;
    close_one(list, 0);
}

static bool mark_in_file(struct thread *thread, const struct wm_region_mark *it)
{
    bool is_kept = true;

    pthread_mutex_lock(&file_lock);
    if (it->kind == WM_RING_START)
        is_kept = open_one(&started, it->name, it->id);
    else if (it->kind == WM_RING_STOP)
        close_one(&started, it->id);
    else if (it->kind == WM_RING_BEGIN)
        begin_in_file(thread, it->name);
    else
        end_in_file(thread, it->name);
    pthread_mutex_unlock(&file_lock);
    return is_kept;
}

/* False: a start is not kept. */
static bool mark_at(const struct wm_region_mark *it)
{
    struct wm_region_writer *writer;
    struct thread *thread;
    bool is_kept = false;

    enum mode found = find_mode();
    if (is_searching(found) && (it->kind == WM_RING_BEGIN || it->kind == WM_RING_START))
        found = search_again();
    switch (found) {
    case MODE_RING:
        writer = find_writer();
        if (!writer) {
            quick = NULL;
            return false;
        }
        is_kept = wm_region_writer_mark(writer, it);
        quick = wm_region_writer_is_quick(writer) ? writer : NULL;
        return is_kept;
    case MODE_FILE:
        thread = find_thread();
        return thread && mark_in_file(thread, it);
    default:
        return false;
    }
}

static __attribute__((noinline)) bool mark_slowly(enum wm_ring_kind kind, const char *name,
                                                  uint64_t id, uint64_t parent)
{
    const struct wm_region_mark it = { kind, name, id, parent };
    struct detour detour = enter_detour();
    bool is_kept = mark_at(&it);

    leave_detour(detour);
    return is_kept;
}

/* Nothing is open, so that ends mean nothing. */
static bool is_off(void)
{
    int now = atomic_load_explicit(&mode, memory_order_relaxed);

    return now == MODE_OFF || now == MODE_WAITING;
}

/* Nor is it time to search for a tracker. */
static bool is_idle(void)
{
    int now = atomic_load_explicit(&mode, memory_order_relaxed);

    return now == MODE_OFF || (now == MODE_WAITING && !wm_region_link_is_due());
}

void wm_region_begin(const char *name)
{
    struct wm_region_writer *writer = quick;

    if (writer && is_current(writer) && wm_region_writer_begin_quickly(writer, name))
        return;
    if (!is_idle())
        mark_slowly(WM_RING_BEGIN, name ? name : "", 0, 0);
}

void wm_region_end(void)
{
    struct wm_region_writer *writer = quick;

    if (writer && is_current(writer) && wm_region_writer_end_quickly(writer))
        return;
    if (!is_off())
        mark_slowly(WM_RING_END, NULL, 0, 0);
}

void wm_region_end_of(const char *name)
{
    struct wm_region_writer *writer = quick;

    if (writer && is_current(writer) && wm_region_writer_is_innermost(writer, name) &&
        wm_region_writer_end_quickly(writer))
        return;
    if (!is_off())
        mark_slowly(WM_RING_LEAVE, name ? name : "", 0, 0);
}

uint64_t wm_region_start(const char *name)
{
    return wm_region_start_in(name, 0);
}

uint64_t wm_region_start_in(const char *name, uint64_t parent)
{
    if (is_idle())
        return ID_DROPPED;
    uint64_t id = 1 + atomic_fetch_add(&last_id, 1) % (ID_DROPPED - 1);
    return mark_slowly(WM_RING_START, name ? name : "", id, parent) ? id : ID_DROPPED;
}

void wm_region_stop(uint64_t region)
{
    if (!is_off() && region != ID_DROPPED)
        mark_slowly(WM_RING_STOP, NULL, region & (ID_DROPPED - 1), 0);
}

bool wm_region_is_on(void)
{
    if (is_idle())
        return false;
    struct detour detour = enter_detour();
    enum mode found = find_mode();
    if (is_searching(found))
        found = search_again();
    leave_detour(detour);
    return found == MODE_RING || found == MODE_FILE;
}

bool wm_region_may_wait(void)
{
    return atomic_load_explicit(&mode, memory_order_relaxed) == MODE_FILE;
}
