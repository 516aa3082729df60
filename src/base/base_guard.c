/* SPDX-License-Identifier: Apache-2.0 */
/* base_guard.c - one thread works for all units; one more for each call that
 * hangs. */
#include "base/base_guard.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_thread.h"

#define NO_UNIT ((size_t)-1)

struct unit {
    bool waiting;     /* for its call in this round */
    bool finished;    /* its result waits to be taken */
    bool has_hung;    /* in its last call */
    int64_t since_ns; /* of the call under way; 0: there is none */
};

struct worker {
    struct wm_guard *guard;
    pthread_t thread;
    clockid_t clock; /* of its CPU time */
    bool is_there;   /* until it is joined */
    bool has_ended;  /* it does not touch the guard any more */
    int64_t cpu_ns;  /* when it ended */
};

struct wm_guard {
    void (*call)(void *context, size_t unit);
    void (*release)(void *context);
    void *context;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* for the worker: a round has begun, or the end has come */
    pthread_cond_t news;  /* for the owner: a round is over, or a thread */

    struct worker *current; /* makes the calls of the round; others hang in one */
    size_t current_unit;    /* in whose call it is, or NO_UNIT */
    size_t waiting_count;
    int64_t begun_ns;    /* of the round */
    size_t thread_count; /* of threads that have not ended */
    bool is_awaited;     /* by the owner */
    bool closing;
    bool abandoned; /* the last thread frees the guard */
    int64_t joined_cpu_ns;

    size_t unit_count;
    struct unit *units;
    struct worker *workers; /* as many: whoever is not current has a unit's call */
};

static void destroy(struct wm_guard *guard)
{
    pthread_cond_destroy(&guard->news);
    pthread_cond_destroy(&guard->work);
    pthread_mutex_destroy(&guard->lock);
    free(guard->workers);
    free(guard->units);
    free(guard);
}

static int make_units(struct wm_guard *guard, size_t count, struct wm_error *err)
{
    struct unit *units = calloc(count + 1, sizeof(*units));
    struct worker *workers = calloc(count + 1, sizeof(*workers));

    if (!units || !workers) {
        free(workers);
        free(units);
        return wm_fail_memory(err, NULL);
    }
    free(guard->workers);
    free(guard->units);
    guard->workers = workers;
    guard->units = units;
    guard->unit_count = count;
    return WM_OK;
}

int wm_guard_new(size_t units, void (*call)(void *context, size_t unit),
                 void (*release)(void *context), void *context, struct wm_guard **ret_guard,
                 struct wm_error *err)
{
    struct wm_guard *guard = calloc(1, sizeof(*guard));

    if (!guard)
        return wm_fail_memory(err, NULL);
    if (make_units(guard, units, err) < 0) {
        free(guard);
        return WM_ENOMEM;
    }
    guard->call = call;
    guard->release = release;
    guard->context = context;
    guard->current_unit = NO_UNIT;
    pthread_mutex_init(&guard->lock, NULL);
    wm_thread_condition(&guard->work);
    wm_thread_condition(&guard->news);
    *ret_guard = guard;
    return WM_OK;
}

/* One that hung in its last call comes last, where it holds up nobody. */
static size_t next_unit(const struct wm_guard *guard)
{
    size_t found = NO_UNIT;

    for (size_t i = 0; i < guard->unit_count && guard->waiting_count > 0; i++) {
        if (!guard->units[i].waiting)
            continue;
        if (!guard->units[i].has_hung)
            return i;
        if (found == NO_UNIT)
            found = i;
    }
    return found;
}

/* Called with the lock held, which is not held during the call. */
static void make_call(struct worker *worker, size_t number)
{
    struct wm_guard *guard = worker->guard;
    struct unit *unit = &guard->units[number];

    guard->current_unit = number;
    guard->waiting_count--;
    unit->waiting = false;
    unit->since_ns = wm_clock_monotonic_ns();
    pthread_mutex_unlock(&guard->lock);
    guard->call(guard->context, number);
    pthread_mutex_lock(&guard->lock);
    unit->has_hung = wm_clock_monotonic_ns() - unit->since_ns > WM_GUARD_HANG_NS;
    unit->since_ns = 0;
    unit->finished = true;

    /* Whoever was given up meanwhile is welcome where nobody took its place. */
    if (!guard->current)
        guard->current = worker;
    if (guard->current == worker)
        guard->current_unit = NO_UNIT;
}

/* Without the lock, which the owner wants as soon as it wakes. */
static void tell_owner(struct wm_guard *guard)
{
    guard->is_awaited = false;
    pthread_mutex_unlock(&guard->lock);
    pthread_cond_signal(&guard->news);
    pthread_mutex_lock(&guard->lock);
}

static void *work(void *opaque)
{
    struct worker *self = opaque;
    struct wm_guard *guard = self->guard;

    pthread_setname_np(pthread_self(), "wattmeter");
    pthread_mutex_lock(&guard->lock);
    while (guard->current == self && !guard->closing) {
        size_t unit = next_unit(guard);
        if (unit != NO_UNIT) {
            make_call(self, unit);
            continue;
        }
        if (guard->is_awaited)
            tell_owner(guard);
        else
            pthread_cond_wait(&guard->work, &guard->lock);
    }

    if (guard->closing && guard->thread_count == 1) {
        pthread_mutex_unlock(&guard->lock);
        guard->release(guard->context);
        pthread_mutex_lock(&guard->lock);
    }
    self->cpu_ns = wm_clock_thread_cpu_ns();
    self->has_ended = true;
    guard->thread_count--;
    bool is_last = guard->abandoned && guard->thread_count == 0;
    pthread_cond_signal(&guard->news);
    pthread_mutex_unlock(&guard->lock);
    if (is_last)
        destroy(guard);
    return NULL;
}

/* Those that have ended are gone in a moment. */
static void join_ended(struct wm_guard *guard)
{
    for (size_t i = 0; i < guard->unit_count; i++) {
        struct worker *worker = &guard->workers[i];
        if (!worker->is_there || !worker->has_ended)
            continue;
        pthread_join(worker->thread, NULL);
        guard->joined_cpu_ns += worker->cpu_ns;
        worker->is_there = false;
    }
}

/* The thread, which has nothing to do, ends, as it knows where its units were. */
int wm_guard_resize(struct wm_guard *guard, size_t units, struct wm_error *err)
{
    pthread_mutex_lock(&guard->lock);
    guard->current = NULL;
    pthread_cond_signal(&guard->work);
    while (guard->thread_count > 0)
        wm_thread_wait(&guard->news, &guard->lock, INT64_MAX);
    join_ended(guard);
    pthread_mutex_unlock(&guard->lock);
    return make_units(guard, units, err);
}

/* Called with the lock held: the thread goes on when it is let go. */
static int make_worker(struct wm_guard *guard, struct wm_error *err)
{
    struct worker *worker = guard->workers;
    struct wm_error why;

    join_ended(guard);
    while (worker->is_there)
        worker++;
    *worker = (struct worker) { .guard = guard };
    if (wm_thread_start(&worker->thread, work, worker, "no thread could be made", &why) < 0)
        return wm_fail(err, WM_ENOMEM, "%s", why.text);
    int number = pthread_getcpuclockid(worker->thread, &worker->clock);
    assert(number == 0); /* it has not been joined */
    worker->is_there = true;
    guard->thread_count++;
    guard->current = worker;
    guard->current_unit = NO_UNIT;
    return WM_OK;
}

static bool is_going_on(const struct wm_guard *guard)
{
    return guard->current && (guard->current_unit != NO_UNIT || guard->waiting_count > 0);
}

/* One that hung in its last call has no credit left. */
static bool is_hanging(const struct wm_guard *guard)
{
    if (guard->current_unit == NO_UNIT)
        return false;
    const struct unit *unit = &guard->units[guard->current_unit];
    return unit->has_hung || wm_clock_monotonic_ns() - unit->since_ns > WM_GUARD_HANG_NS;
}

static void clear_round(struct wm_guard *guard)
{
    for (size_t i = 0; i < guard->unit_count; i++)
        guard->units[i].waiting = false;
    guard->waiting_count = 0;
}

static int begin_round(struct wm_guard *guard, struct wm_error *err)
{
    clear_round(guard);
    for (size_t i = 0; i < guard->unit_count; i++) {
        struct unit *unit = &guard->units[i];
        if (unit->since_ns != 0)
            continue;
        unit->waiting = true;
        unit->finished = false;
        guard->waiting_count++;
    }
    if (guard->waiting_count == 0)
        return 0;
    guard->begun_ns = wm_clock_monotonic_ns();

    if (guard->current_unit != NO_UNIT) {
        guard->current = NULL;
        guard->current_unit = NO_UNIT;
    }
    if (!guard->current) {
        int status = make_worker(guard, err);
        if (status < 0) {
            clear_round(guard);
            return status;
        }
    }
    return 1;
}

int wm_guard_start(struct wm_guard *guard, struct wm_error *err)
{
    int status = 0;

    pthread_mutex_lock(&guard->lock);
    if (!is_going_on(guard) || is_hanging(guard))
        status = begin_round(guard, err);
    pthread_mutex_unlock(&guard->lock);
    if (status > 0)
        pthread_cond_signal(&guard->work);
    return status;
}

/* On a busy machine: the calls wait for a processor, not for an answer. */
static bool is_starved(const struct wm_guard *guard, int64_t now_ns)
{
    return guard->current_unit == NO_UNIT && guard->waiting_count > 0 &&
           now_ns - guard->begun_ns < WM_GUARD_HANG_NS;
}

bool wm_guard_wait(struct wm_guard *guard, int64_t deadline_ns)
{
    bool in_time = true;

    pthread_mutex_lock(&guard->lock);
    while (is_going_on(guard) && in_time) {
        guard->is_awaited = true;
        in_time = wm_thread_wait(&guard->news, &guard->lock, deadline_ns);
        int64_t now_ns = wm_clock_monotonic_ns();
        if (!in_time && deadline_ns > guard->begun_ns && is_starved(guard, now_ns)) {
            deadline_ns = now_ns + WM_NS_PER_MS;
            in_time = true;
        }
    }
    guard->is_awaited = false;
    bool is_over = guard->waiting_count == 0;
    for (size_t i = 0; i < guard->unit_count; i++)
        is_over &= guard->units[i].since_ns == 0;
    pthread_mutex_unlock(&guard->lock);
    return is_over;
}

bool wm_guard_take(struct wm_guard *guard, size_t unit)
{
    pthread_mutex_lock(&guard->lock);
    bool finished = guard->units[unit].finished;
    guard->units[unit].finished = false;
    pthread_mutex_unlock(&guard->lock);
    return finished;
}

int64_t wm_guard_busy_since(const struct wm_guard *guard, size_t unit)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&guard->lock;

    pthread_mutex_lock(lock);
    int64_t since_ns = guard->units[unit].since_ns;
    pthread_mutex_unlock(lock);
    return since_ns;
}

/* Asked from outside, so that the calls need not stop for it, and so that one
 * that hangs in an endless loop is seen as well. */
static int64_t cpu_ns_of(const struct worker *worker)
{
    struct timespec used;

    if (worker->has_ended || clock_gettime(worker->clock, &used) != 0)
        return worker->cpu_ns;
    return used.tv_sec * WM_NS_PER_S + used.tv_nsec;
}

int64_t wm_guard_cpu_ns(const struct wm_guard *guard)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&guard->lock;

    pthread_mutex_lock(lock);
    int64_t total_ns = guard->joined_cpu_ns;
    for (size_t i = 0; i < guard->unit_count; i++) {
        if (guard->workers[i].is_there)
            total_ns += cpu_ns_of(&guard->workers[i]);
    }
    pthread_mutex_unlock(lock);
    return total_ns;
}

/* Called with the lock held. */
static void abandon(struct wm_guard *guard)
{
    guard->abandoned = true;
    for (size_t i = 0; i < guard->unit_count; i++) {
        if (guard->workers[i].is_there && !guard->workers[i].has_ended)
            pthread_detach(guard->workers[i].thread);
    }
}

bool wm_guard_close(struct wm_guard *guard, int64_t deadline_ns)
{
    bool in_time = true;

    if (!guard)
        return true;
    pthread_mutex_lock(&guard->lock);
    bool had_threads = guard->thread_count > 0;
    guard->closing = true;
    clear_round(guard);
    pthread_cond_signal(&guard->work);
    while (guard->thread_count > 0 && in_time)
        in_time = wm_thread_wait(&guard->news, &guard->lock, deadline_ns);
    bool all_ended = guard->thread_count == 0;
    join_ended(guard);
    if (!all_ended)
        abandon(guard);
    pthread_mutex_unlock(&guard->lock);
    if (!all_ended)
        return false;

    if (!had_threads)
        guard->release(guard->context);
    destroy(guard);
    return true;
}
