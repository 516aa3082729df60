/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drivers.c - one guard per backend, so that drivers are asked side by side. */
#include "source/gpu/source_gpu_drivers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/source_config.h"

/* Of one backend; the rest would be a driver that reports nonsense. */
enum { GPU_MAX = 256 };

/* How often a call that was given up is checked for its return. */
#define PAUSE_NS (10 * WM_NS_PER_MS)

/* What a GPU's driver is to set. */
struct order {
    enum { ORDER_NONE, ORDER_GIVEN, ORDER_TAKEN, ORDER_DONE } state;
    enum wm_gpu_field field;
    double value;
    struct wm_error err; /* of one that is done */
};

/* The thread's side. Whoever is last of all closes the backend and frees it. */
struct driver {
    const struct wm_gpu_ops *ops;
    struct wm_source_config config; /* a copy */

    int status; /* of open() */
    struct wm_error err;

    size_t first; /* index of its first GPU among those of all backends */
    size_t count;
    struct wm_gpu_sheet **sheets;
    struct order *orders; /* of each GPU */
    pthread_mutex_t lock; /* guards the orders */
    atomic_bool changed;  /* GPUs came or went */
    bool is_open;         /* open() has succeeded: calls are made per GPU */

    max_align_t state[];
};

/* The owner's side. */
struct backend {
    struct driver *driver;
    struct wm_guard
        *guard;       /* of open(), then of the driver's GPUs, and of one more call that
                         looks whether they have changed; NULL: it could not be opened */
    int64_t begun_ns; /* when its driver was last asked something */
    bool *late;       /* per call: it has hung since before this refresh */
    struct wm_gpu_looked looked;
    struct wm_error failure; /* the detail, where it could not be opened */
};

struct wm_gpu_drivers {
    size_t backend_count, gpu_count;
    struct backend backends[];
};

static void free_driver(struct driver *driver)
{
    for (size_t i = 0; driver->sheets && i < driver->count; i++)
        wm_gpu_sheet_free(driver->sheets[i]);
    wm_source_config_release(&driver->config);
    pthread_mutex_destroy(&driver->lock);
    free(driver->orders);
    free(driver->sheets);
    free(driver);
}

static int new_driver(const struct wm_gpu_ops *ops, const struct wm_source_config *config,
                      struct driver **ret_driver, struct wm_error *err)
{
    struct driver *driver = calloc(1, sizeof(*driver) + ops->state_size);

    if (!driver || wm_source_config_copy(config, &driver->config, NULL) < 0) {
        free(driver);
        return wm_fail_memory(err, ops->name);
    }
    driver->ops = ops;
    pthread_mutex_init(&driver->lock, NULL);
    *ret_driver = driver;
    return WM_OK;
}

static void close_driver(void *context)
{
    struct driver *driver = context;

    driver->ops->close(driver->state);
    free_driver(driver);
}

/* What the inventory itself says of a GPU; a backend may know a better label. */
static void introduce(const struct driver *driver, size_t gpu)
{
    struct wm_gpu_sheet *sheet = driver->sheets[gpu];
    char label[32];

    snprintf(label, sizeof(label), "gpu%zu", driver->first + gpu);
    wm_gpu_set_number(sheet, WM_GPU_INDEX, (double)(driver->first + gpu));
    wm_gpu_set_text(sheet, WM_GPU_SOURCE, driver->ops->name);
    wm_gpu_set_text(sheet, WM_GPU_LABEL, label);
}

/* The order of a GPU, if one was given, and takes note that it was taken. */
static struct order take_order(struct driver *driver, size_t gpu)
{
    pthread_mutex_lock(&driver->lock);
    struct order order = driver->orders[gpu];
    if (order.state == ORDER_GIVEN)
        driver->orders[gpu].state = ORDER_TAKEN;
    pthread_mutex_unlock(&driver->lock);
    return order;
}

static void carry_out(struct driver *driver, size_t gpu)
{
    struct order order = take_order(driver, gpu);

    if (order.state != ORDER_GIVEN)
        return;
    order.err.status =
        driver->ops->set(driver->state, gpu, order.field, order.value, &order.err);
    order.state = ORDER_DONE;
    pthread_mutex_lock(&driver->lock);
    driver->orders[gpu] = order;
    pthread_mutex_unlock(&driver->lock);
}

static void ask_gpu(struct driver *driver, size_t gpu)
{
    struct wm_gpu_sheet *sheet = driver->sheets[gpu];
    bool all;

    carry_out(driver, gpu);
    unsigned groups = wm_gpu_sheet_begin(sheet, &all);
    if (groups == 0)
        return;
    if (all && (groups & WM_GPU_GENERAL))
        introduce(driver, gpu);

    /* Who it is comes first, so that it has been reported should the rest hang. */
    unsigned identity = all ? groups & (WM_GPU_GENERAL | WM_GPU_PCI) : 0;
    if (identity)
        driver->ops->refresh(driver->state, gpu, identity, all, sheet);
    if (groups & ~identity)
        driver->ops->refresh(driver->state, gpu, groups & ~identity, all, sheet);
    wm_gpu_sheet_end(sheet);
}

/* The guard's only unit is open() at first. Where a call hangs the others are made in
 * another round, in which those that were made have nothing to ask. */
static void make_call(void *context, size_t unit)
{
    struct driver *driver = context;

    if (!driver->is_open)
        driver->status = driver->ops->open(driver->state, &driver->config, &driver->err);
    else if (unit < driver->count)
        ask_gpu(driver, unit);
    else if (driver->ops->changed)
        atomic_store(&driver->changed, driver->ops->changed(driver->state));
}

/* Everything that the first refresh needs, for a backend that is open. */
static int prepare(struct backend *backend, size_t first, struct wm_error *err)
{
    struct driver *driver = backend->driver;
    size_t count = driver->ops->count(driver->state);

    driver->first = first;
    if (count > GPU_MAX)
        count = GPU_MAX;
    driver->sheets = calloc(count + 1, sizeof(struct wm_gpu_sheet *));
    driver->orders = calloc(count + 1, sizeof(*driver->orders));
    backend->late = calloc(count + 1, sizeof(*backend->late));
    if (!driver->sheets || !driver->orders || !backend->late)
        return wm_fail_memory(err, driver->ops->name);

    for (; driver->count < count; driver->count++) {
        int status =
            wm_gpu_sheet_new(driver->ops->name, &driver->sheets[driver->count], err);
        if (status < 0)
            return status;
        introduce(driver, driver->count);
    }
    int status = wm_guard_resize(backend->guard, count + 1, err);
    driver->is_open = status == WM_OK;
    return status;
}

static int begin_opening(struct backend *backend, const struct wm_gpu_ops *ops,
                         const struct wm_source_config *config, struct wm_error *err)
{
    backend->looked.source = ops->name;
    backend->begun_ns = wm_clock_monotonic_ns();
    int status = new_driver(ops, config, &backend->driver, err);
    if (status < 0)
        return status;
    status =
        wm_guard_new(1, make_call, close_driver, backend->driver, &backend->guard, err);
    if (status < 0) {
        free_driver(backend->driver);
        return status;
    }
    status = wm_guard_start(backend->guard, err);
    return status < 0 ? status : WM_OK;
}

static int seconds_since(int64_t when_ns)
{
    return (int)((wm_clock_monotonic_ns() - when_ns + WM_NS_PER_S / 2) / WM_NS_PER_S);
}

/* What came of opening it. What did not come back is left to its thread. */
static int take_opened(struct backend *backend, size_t first, int64_t deadline_ns,
                       struct wm_error *err)
{
    struct driver *driver = backend->driver;
    struct wm_gpu_looked *looked = &backend->looked;

    if (!wm_guard_wait(backend->guard, deadline_ns)) {
        wm_fail(&backend->failure, WM_EIO, "the driver has not answered for %d s",
                seconds_since(backend->begun_ns));
        backend->failure.code = WM_NO_ANSWER;
    } else if (driver->status < 0)
        backend->failure = driver->err;
    else
        prepare(backend, first, &backend->failure);

    if (backend->failure.status == WM_OK) {
        looked->detail = driver->ops->detail(driver->state);
        looked->present = driver->count;
        looked->status = driver->count > 0 ? WM_OK : WM_ENODEV;
        return WM_OK;
    }
    looked->detail = backend->failure.text;
    looked->status = backend->failure.status;
    looked->code = backend->failure.code;
    wm_guard_close(backend->guard, deadline_ns);
    backend->guard = NULL;
    return looked->status == WM_ENOMEM ? wm_fail(err, WM_ENOMEM, "%s", looked->detail)
                                       : WM_OK;
}

int wm_gpu_drivers_open(const struct wm_gpu_ops *const *table, size_t count,
                        const struct wm_source_config *config, int64_t deadline_ns,
                        struct wm_gpu_drivers **ret_drivers, struct wm_error *err)
{
    struct wm_gpu_drivers *drivers =
        calloc(1, sizeof(*drivers) + count * sizeof(drivers->backends[0]));
    int status = WM_OK;

    if (!drivers)
        return wm_fail_memory(err, "GPUs");
    for (size_t i = 0; status == WM_OK && i < count; i++) {
        drivers->backend_count++;
        status = begin_opening(&drivers->backends[i], table[i], config, err);
    }
    for (size_t i = 0; status == WM_OK && i < count; i++) {
        struct backend *backend = &drivers->backends[i];
        status = take_opened(backend, drivers->gpu_count, deadline_ns, err);
        drivers->gpu_count += backend->looked.present;
    }
    if (status < 0) {
        wm_gpu_drivers_close(drivers, deadline_ns);
        return status;
    }
    *ret_drivers = drivers;
    return WM_OK;
}

void wm_gpu_drivers_close(struct wm_gpu_drivers *drivers, int64_t deadline_ns)
{
    if (!drivers)
        return;
    for (size_t i = 0; i < drivers->backend_count; i++) {
        struct backend *backend = &drivers->backends[i];

        /* Who was not done when a refresh gave up is not waited for again. */
        bool is_lost = backend->guard && backend->late && !wm_guard_wait(backend->guard, 0);
        wm_guard_close(backend->guard, is_lost ? 0 : deadline_ns);
        free(backend->late);
    }
    free(drivers);
}

size_t wm_gpu_drivers_count(const struct wm_gpu_drivers *drivers)
{
    return drivers->gpu_count;
}

/* The backend of a GPU, which is then counted among its own. */
static const struct backend *backend_of(const struct wm_gpu_drivers *drivers, size_t *gpu)
{
    const struct backend *backend = drivers->backends;

    for (; *gpu >= backend->looked.present; backend++)
        *gpu -= backend->looked.present;
    return backend;
}

struct wm_gpu_sheet *wm_gpu_drivers_sheet(const struct wm_gpu_drivers *drivers, size_t gpu)
{
    const struct backend *backend = backend_of(drivers, &gpu);

    return backend->driver->sheets[gpu];
}

const struct wm_gpu_looked *wm_gpu_drivers_looked(const struct wm_gpu_drivers *drivers,
                                                  size_t index)
{
    return index < drivers->backend_count ? &drivers->backends[index].looked : NULL;
}

static bool is_busy(const struct backend *backend, size_t unit)
{
    return wm_guard_busy_since(backend->guard, unit) != 0;
}

static int begin_refresh(struct backend *backend, struct wm_error *err)
{
    for (size_t i = 0; i <= backend->driver->count; i++)
        backend->late[i] = is_busy(backend, i);
    atomic_store(&backend->driver->changed, false);
    backend->begun_ns = wm_clock_monotonic_ns();
    int status = wm_guard_start(backend->guard, err);
    return status < 0 ? status : WM_OK;
}

/* Where a call hangs, has the others made in another thread, as soon as there is
 * one to be had. Returns whether there is something to wait for. */
static bool go_on(struct backend *backend)
{
    const struct driver *driver = backend->driver;
    bool is_asked = false, is_waiting = false;

    for (size_t i = 0; i <= driver->count; i++) {
        if (backend->late[i])
            continue;
        is_asked |= i < driver->count && wm_gpu_sheet_is_asked(driver->sheets[i]);
        is_waiting |= is_asked || is_busy(backend, i);
    }
    if (is_asked)
        wm_guard_start(backend->guard, NULL);
    return is_waiting;
}

static void wait_for_all(struct wm_gpu_drivers *drivers, int64_t deadline_ns)
{
    const struct timespec pause = { 0, PAUSE_NS };
    int64_t hang_ns = wm_clock_monotonic_ns() + WM_GUARD_HANG_NS;
    bool waiting = true;

    /* Mostly all is done in here; a guard tells only of a round that goes on. */
    for (size_t i = 0; i < drivers->backend_count; i++) {
        if (drivers->backends[i].guard)
            wm_guard_wait(drivers->backends[i].guard,
                          hang_ns < deadline_ns ? hang_ns : deadline_ns);
    }
    while (waiting && wm_clock_monotonic_ns() < deadline_ns) {
        waiting = false;
        for (size_t i = 0; i < drivers->backend_count; i++) {
            if (drivers->backends[i].guard)
                waiting |= go_on(&drivers->backends[i]);
        }
        if (waiting)
            nanosleep(&pause, NULL);
    }
}

/* Whether the backend says that GPUs came or went. */
static bool collect(struct backend *backend)
{
    struct driver *driver = backend->driver;

    for (size_t i = 0; i < driver->count; i++) {
        char late[64];
        int64_t since_ns = wm_guard_busy_since(backend->guard, i);
        snprintf(late, sizeof(late), "the driver has not answered for %d s",
                 seconds_since(since_ns != 0 ? since_ns : backend->begun_ns));
        wm_gpu_sheet_collect(driver->sheets[i], late);
    }
    return atomic_load(&driver->changed);
}

int wm_gpu_drivers_refresh(struct wm_gpu_drivers *drivers, int64_t deadline_ns,
                           struct wm_error *err)
{
    int status = WM_OK;
    bool changed = false;

    for (size_t i = 0; status == WM_OK && i < drivers->backend_count; i++) {
        if (drivers->backends[i].guard)
            status = begin_refresh(&drivers->backends[i], err);
    }
    if (status == WM_OK)
        wait_for_all(drivers, deadline_ns);
    for (size_t i = 0; i < drivers->backend_count; i++) {
        if (drivers->backends[i].guard)
            changed |= collect(&drivers->backends[i]);
    }
    return status < 0 ? status : changed;
}

/* Replaces the order of a GPU, and gives the one before. */
static struct order exchange_order(struct driver *driver, size_t gpu, struct order order)
{
    pthread_mutex_lock(&driver->lock);
    struct order before = driver->orders[gpu];
    driver->orders[gpu] = order;
    pthread_mutex_unlock(&driver->lock);
    return before;
}

static bool is_done(struct driver *driver, size_t gpu)
{
    pthread_mutex_lock(&driver->lock);
    bool done = driver->orders[gpu].state == ORDER_DONE;
    pthread_mutex_unlock(&driver->lock);
    return done;
}

/* Until it is done: where another GPU's call hangs a new round has to be begun. */
static void wait_for_order(const struct backend *backend, size_t gpu, int64_t deadline_ns)
{
    const struct timespec pause = { 0, PAUSE_NS };
    int64_t now_ns = wm_clock_monotonic_ns();

    while (!is_done(backend->driver, gpu) && now_ns < deadline_ns) {
        int64_t hang_ns = now_ns + WM_GUARD_HANG_NS;
        wm_guard_start(backend->guard, NULL);
        wm_guard_wait(backend->guard, hang_ns < deadline_ns ? hang_ns : deadline_ns);
        if (!is_done(backend->driver, gpu))
            nanosleep(&pause, NULL);
        now_ns = wm_clock_monotonic_ns();
    }
}

int wm_gpu_drivers_set(struct wm_gpu_drivers *drivers, size_t gpu, enum wm_gpu_field field,
                       double value, int64_t deadline_ns, struct wm_error *err)
{
    const struct order order = { .state = ORDER_GIVEN, .field = field, .value = value };
    const struct backend *backend = backend_of(drivers, &gpu);
    struct driver *driver = backend->driver;

    if (!driver->ops->set)
        return wm_fail(err, WM_ENODEV, "%s can set nothing", driver->ops->name);
    if (is_busy(backend, gpu))
        return wm_fail(err, WM_EIO, "the driver has not answered for %d s",
                       seconds_since(wm_guard_busy_since(backend->guard, gpu)));
    exchange_order(driver, gpu, order);
    wait_for_order(backend, gpu, deadline_ns);
    struct order done = exchange_order(driver, gpu, (struct order) { 0 });
    if (done.state == ORDER_DONE)
        return done.err.status < 0 ? wm_fail(err, done.err.status, "%s", done.err.text)
                                   : WM_OK;
    return wm_fail(err, WM_EIO, "the driver has not answered%s",
                   done.state == ORDER_TAKEN ? ", and may yet do it" : "");
}
