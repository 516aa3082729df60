/* SPDX-License-Identifier: Apache-2.0 */
/* source_guarded.c - what the threads work on, and the owner's copies of it. */
#include "source/source_guarded.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/source_config.h"

/* A driver that does not hang shuts down in less. */
#define CLOSE_NS WM_NS_PER_S
#define CLOSE_HANGING_NS (50 * WM_NS_PER_MS)

/* Of one reading: the one that goes on, one of its own, one more after a hang. */
enum { ROUNDS_MAX = 3 };

/* More than any GPU serves; beyond it a list is taken for a mistake. */
enum { PROCESSES_MAX = 65536 };

static const char no_answer[] = "the driver did not answer";
static const char no_memory[] = "there was no memory for the list of its processes";

/* The threads' side. A part is its call's while that is under way, and the
 * owner's else; the rest is fixed once it has been opened. Whoever is last of
 * all frees it. */
struct driver {
    const struct wm_source_ops *ops;
    struct wm_source_config config; /* a copy */
    struct wm_gpu_picks picks;      /* likewise */
    int status;                     /* of open() */
    struct wm_error err;
    bool is_open; /* so that its parts are what is called */
    struct wm_source_found found;
    atomic_bool is_end; /* of read_part(), as the last round was begun */

    struct wm_reading *readings; /* one per channel */
    struct answer {
        int64_t asked_ns;
        bool has_hung; /* when the values were read nobody knows */
    } * answers;       /* one per part */

    max_align_t state[];
};

/* The owner's side of a part. */
struct part {
    size_t first_channel;
    size_t device_count; /* GPUs among its channels' devices */
    int64_t asked_ns;    /* for what is copied here; 0: never answered */
    struct wm_gpu_process *processes;
    size_t process_count, process_room;
    unsigned version, told_version; /* of the processes: here, and in the list of all */
    size_t told_at;                 /* where they begin in the list of all */
    bool is_listed;                 /* else there was no memory for the processes */
    bool is_stale;                  /* reported so by the last collect */
};

struct channel_copy {
    struct wm_reading reading;
    char why[sizeof(((struct wm_error *)NULL)->text)]; /* empty: nothing to say */
};

struct wm_guarded {
    struct driver *driver;
    struct wm_guard *guard;
    const struct wm_channel *channels;
    struct part *parts;
    size_t part_count, part_channels; /* each has so many of the channels */
    struct channel_copy *copies;      /* one per channel */

    int64_t round_ns;        /* when the last one began */
    struct wm_error failure; /* to begin one; its text is empty where it went well */

    /* The processes of all parts, as reported by the last collect. */
    struct wm_gpu_process *told;
    size_t told_count, told_room;
    size_t device_count; /* room for so many is always there */

    int64_t opening_cpu_ns;
};

static void free_driver(struct driver *driver)
{
    wm_source_config_release(&driver->config);
    free(driver->picks.list);
    free(driver->answers);
    free(driver->readings);
    free(driver);
}

static int copy_picks(struct driver *driver, const struct wm_gpu_picks *picks)
{
    size_t size = picks->count * sizeof(*picks->list);

    driver->picks.list = malloc(size);
    if (!driver->picks.list)
        return WM_ENOMEM;
    memcpy(driver->picks.list, picks->list, size);
    driver->picks.count = picks->count;
    driver->ops->choose(driver->state, &driver->picks);
    return WM_OK;
}

static int new_driver(const struct wm_source_ops *ops,
                      const struct wm_source_config *config,
                      const struct wm_gpu_picks *picks, struct driver **ret_driver,
                      struct wm_error *err)
{
    struct driver *driver = calloc(1, sizeof(*driver) + ops->state_size);

    if (!driver || wm_source_config_copy(config, &driver->config, NULL) < 0) {
        free(driver);
        return wm_fail_memory(err, ops->name);
    }
    driver->ops = ops;
    if (picks && copy_picks(driver, picks) < 0) {
        free_driver(driver);
        return wm_fail_memory(err, ops->name);
    }
    *ret_driver = driver;
    return WM_OK;
}

static void close_driver(void *context)
{
    struct driver *driver = context;

    driver->ops->close(driver->state);
    free_driver(driver);
}

static void read_part(struct driver *driver, size_t part)
{
    struct answer *answer = &driver->answers[part];

    answer->asked_ns = wm_clock_monotonic_ns();
    driver->ops->read_part(driver->state, part, atomic_load(&driver->is_end),
                           driver->readings + part * driver->found.channel_count /
                                                  driver->found.part_count);
    answer->has_hung = wm_clock_monotonic_ns() - answer->asked_ns > WM_GUARD_HANG_NS;
}

/* The guard's only unit is open() at first. */
static void call_driver(void *context, size_t part)
{
    struct driver *driver = context;

    if (driver->is_open)
        read_part(driver, part);
    else
        driver->status =
            driver->ops->open(driver->state, &driver->config, &driver->found, &driver->err);
}

/* Whether this is the first channel of a GPU, whose channels stand together. */
static bool begins_gpu(const struct wm_channel *channels, size_t first, size_t index)
{
    const struct wm_channel *channel = &channels[index];

    return channel->device_kind == WM_DEVICE_GPU &&
           (index == first || strcmp(channel->device, channels[index - 1].device) != 0);
}

static void lay_out(struct wm_guarded *guarded)
{
    for (size_t p = 0; p < guarded->part_count; p++) {
        struct part *part = &guarded->parts[p];
        part->first_channel = p * guarded->part_channels;
        for (size_t i = 0; i < guarded->part_channels; i++)
            part->device_count +=
                begins_gpu(guarded->channels, part->first_channel, part->first_channel + i);
        guarded->device_count += part->device_count;
    }
}

static void copy_why(const struct driver *driver, size_t channel, struct channel_copy *copy)
{
    const char *why = driver->ops->why ? driver->ops->why(driver->state, channel) : NULL;

    snprintf(copy->why, sizeof(copy->why), "%s", why ? why : "");
}

/* Everything that readings need, for a backend that is open. What cannot be read may be
 * known already. */
static int prepare(struct wm_guarded *guarded, struct wm_error *err)
{
    struct driver *driver = guarded->driver;
    size_t count = driver->found.channel_count;

    guarded->channels = driver->found.channels;
    guarded->part_count = driver->found.part_count;
    guarded->part_channels = guarded->part_count ? count / guarded->part_count : 0;
    driver->readings = calloc(count + 1, sizeof(*driver->readings));
    driver->answers = calloc(guarded->part_count + 1, sizeof(*driver->answers));
    guarded->copies = calloc(count + 1, sizeof(*guarded->copies));
    guarded->parts = calloc(guarded->part_count + 1, sizeof(*guarded->parts));
    if (!driver->readings || !driver->answers || !guarded->copies || !guarded->parts)
        return wm_fail_memory(err, driver->ops->name);
    lay_out(guarded);
    for (size_t i = 0; i < count; i++)
        copy_why(driver, i, &guarded->copies[i]);

    guarded->told_room = guarded->device_count;
    guarded->told = calloc(guarded->told_room + 1, sizeof(*guarded->told));
    if (!guarded->told)
        return wm_fail_memory(err, driver->ops->name);
    guarded->opening_cpu_ns = wm_guard_cpu_ns(guarded->guard);
    int status = wm_guard_resize(guarded->guard, guarded->part_count, err);
    driver->is_open = status == WM_OK;
    return status;
}

int wm_guarded_open(const struct wm_source_ops *ops, const struct wm_source_config *config,
                    const struct wm_gpu_picks *picks, struct wm_guarded **ret_guarded,
                    struct wm_error *err)
{
    int status = ops->look ? ops->look(config, err) : WM_OK;
    if (status < 0)
        return status;
    struct wm_guarded *guarded = calloc(1, sizeof(*guarded));
    if (!guarded)
        return wm_fail_memory(err, ops->name);
    status = new_driver(ops, config, picks, &guarded->driver, err);
    if (status == WM_OK) {
        status = wm_guard_new(1, call_driver, close_driver, guarded->driver,
                              &guarded->guard, err);
        if (status < 0)
            free_driver(guarded->driver);
    }
    if (status == WM_OK)
        status = wm_guard_start(guarded->guard, err);
    if (status < 0) {
        wm_guarded_close(guarded);
        return status;
    }
    *ret_guarded = guarded;
    return WM_OK;
}

int wm_guarded_opened(struct wm_guarded *guarded, int64_t deadline_ns, struct wm_error *err)
{
    const struct driver *driver = guarded->driver;

    if (!wm_guard_wait(guarded->guard, deadline_ns))
        return 1;
    if (driver->status == WM_OK)
        return prepare(guarded, err);
    if (err)
        *err = driver->err;
    return driver->status;
}

void wm_guarded_close(struct wm_guarded *guarded)
{
    if (!guarded)
        return;
    bool is_idle = guarded->guard && wm_guard_wait(guarded->guard, 0);
    wm_guard_close(guarded->guard,
                   wm_clock_monotonic_ns() + (is_idle ? CLOSE_NS : CLOSE_HANGING_NS));
    for (size_t p = 0; guarded->parts && p < guarded->part_count; p++)
        free(guarded->parts[p].processes);
    free(guarded->told);
    free(guarded->parts);
    free(guarded->copies);
    free(guarded);
}

const struct wm_source_found *wm_guarded_found(const struct wm_guarded *guarded)
{
    return &guarded->driver->found;
}

const void *wm_guarded_state(const struct wm_guarded *guarded)
{
    return guarded->driver->state;
}

/* Makes room for `count` entries; false when there is no memory for them. */
static bool make_room(struct wm_gpu_process **list, size_t *room, size_t count)
{
    size_t more = *room ? *room : 16;

    if (count <= *room)
        return true;
    while (more < count)
        more *= 2;
    void *grown = realloc(*list, more * sizeof(**list));
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

/* Returns whether they could be listed. */
static bool copy_processes(const struct driver *driver, size_t number, struct part *part)
{
    const struct wm_source_ops *ops = driver->ops;

    part->process_count = 0;
    if (!ops->gpu_processes)
        return false;
    size_t count = ops->gpu_processes(driver->state, number, &part->version,
                                      part->processes, part->process_room);
    if (count > part->process_room) {
        part->version = 0;
        if (count > PROCESSES_MAX ||
            !make_room(&part->processes, &part->process_room, count))
            return false;
        ops->gpu_processes(driver->state, number, &part->version, part->processes,
                           part->process_room);
    }
    part->process_count = count;
    return true;
}

static void copy_channel(const struct driver *driver, size_t channel,
                         struct channel_copy *copy)
{
    copy->reading = driver->readings[channel];
    copy->why[0] = '\0';
    if (copy->reading.state != WM_READING_OK)
        copy_why(driver, channel, copy);
}

/* Copies what has been answered since the last time. Of a call that hung nobody
 * knows on which side of the hang the values were read, so it does not count. */
static void absorb(struct wm_guarded *guarded)
{
    const struct driver *driver = guarded->driver;

    for (size_t p = 0; p < guarded->part_count; p++) {
        struct part *part = &guarded->parts[p];
        if (!wm_guard_take(guarded->guard, p) || driver->answers[p].has_hung)
            continue;
        part->asked_ns = driver->answers[p].asked_ns;
        for (size_t i = 0; i < guarded->part_channels; i++)
            copy_channel(driver, part->first_channel + i,
                         &guarded->copies[part->first_channel + i]);
        part->is_listed = copy_processes(driver, p, part);
    }
}

static void begin_round(struct wm_guarded *guarded)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    guarded->failure.text[0] = '\0';
    if (wm_guard_start(guarded->guard, &guarded->failure) > 0)
        guarded->round_ns = now_ns;
}

void wm_guarded_begin(struct wm_guarded *guarded, bool is_end)
{
    atomic_store(&guarded->driver->is_end, is_end);
    absorb(guarded);
    begin_round(guarded);
}

static bool is_old(const struct part *part, int64_t oldest_ns)
{
    return part->asked_ns == 0 || part->asked_ns < oldest_ns;
}

static bool hangs(const struct wm_guarded *guarded, size_t number)
{
    int64_t since_ns = wm_guard_busy_since(guarded->guard, number);

    return since_ns != 0 && wm_clock_monotonic_ns() - since_ns > WM_GUARD_HANG_NS;
}

/* Whether something is old that may be had when it is waited for. */
static bool lacks_answers(const struct wm_guarded *guarded, int64_t oldest_ns)
{
    for (size_t p = 0; p < guarded->part_count; p++) {
        if (is_old(&guarded->parts[p], oldest_ns) && !hangs(guarded, p))
            return true;
    }
    return false;
}

/* When a call that is under way, or begins now, will be one that hangs. */
static int64_t when_one_hangs(const struct wm_guarded *guarded)
{
    int64_t now_ns = wm_clock_monotonic_ns();
    int64_t first_ns = now_ns + WM_GUARD_HANG_NS;

    for (size_t p = 0; p < guarded->part_count; p++) {
        int64_t since_ns = wm_guard_busy_since(guarded->guard, p);
        int64_t hangs_ns = since_ns + WM_GUARD_HANG_NS;
        if (since_ns != 0 && hangs_ns >= now_ns && hangs_ns < first_ns)
            first_ns = hangs_ns;
    }
    return first_ns + 1;
}

/* One round, as a rule. But what goes on may be one of earlier, of a slow driver;
 * and where a call hangs the others are read in another one. */
static void wait_for_answers(struct wm_guarded *guarded, int64_t deadline_ns,
                             int64_t oldest_ns)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int64_t until_ns = when_one_hangs(guarded);

        wm_guard_wait(guarded->guard, until_ns < deadline_ns ? until_ns : deadline_ns);
        absorb(guarded);
        if (!lacks_answers(guarded, oldest_ns) || wm_clock_monotonic_ns() >= deadline_ns)
            return;
        begin_round(guarded);
    }
}

/* What it answered before stands for now until it hangs. */
static bool is_stale(const struct wm_guarded *guarded, size_t number, int64_t oldest_ns)
{
    return is_old(&guarded->parts[number], oldest_ns) || hangs(guarded, number);
}

static void tell_part(struct wm_guarded *guarded, const struct part *part,
                      struct wm_reading *readings)
{
    for (size_t i = 0; i < guarded->part_channels; i++)
        readings[part->first_channel + i] =
            guarded->copies[part->first_channel + i].reading;
}

static const char *why_stale(const struct wm_guarded *guarded)
{
    return guarded->failure.text[0] ? guarded->failure.text : no_answer;
}

static void tell_stale(struct wm_guarded *guarded, size_t number,
                       struct wm_reading *readings)
{
    const struct part *part = &guarded->parts[number];
    int64_t asked_ns = wm_guard_busy_since(guarded->guard, number);

    if (asked_ns == 0)
        asked_ns = guarded->round_ns ? guarded->round_ns : wm_clock_monotonic_ns();
    for (size_t i = 0; i < guarded->part_channels; i++)
        readings[part->first_channel + i] =
            (struct wm_reading) { asked_ns, 0, WM_READING_STALE };
}

/* One entry for each GPU of the part, in place of its processes. */
static void tell_unknown(struct wm_guarded *guarded, struct part *part,
                         enum wm_reading_state state, const char *why)
{
    part->told_version = 0;
    for (size_t i = 0; i < guarded->part_channels; i++) {
        if (!begins_gpu(guarded->channels, part->first_channel, part->first_channel + i))
            continue;
        guarded->told[guarded->told_count++] = (struct wm_gpu_process) {
            .device = guarded->channels[part->first_channel + i].device,
            .state = state,
            .sm_state = state,
            .why = why,
        };
    }
}

/* Where nothing has changed they are there from the last time. */
static void tell_listed(struct wm_guarded *guarded, struct part *part)
{
    if (part->process_count > 0 &&
        (part->told_version != part->version || part->told_at != guarded->told_count))
        memcpy(guarded->told + guarded->told_count, part->processes,
               part->process_count * sizeof(*part->processes));
    part->told_version = part->version;
    part->told_at = guarded->told_count;
    guarded->told_count += part->process_count;
}

static void tell_processes(struct wm_guarded *guarded)
{
    size_t needed = guarded->device_count;

    guarded->told_count = 0;
    if (!guarded->driver->ops->gpu_processes)
        return;
    for (size_t p = 0; p < guarded->part_count; p++)
        needed += guarded->parts[p].process_count;
    bool has_room = make_room(&guarded->told, &guarded->told_room, needed);

    for (size_t p = 0; p < guarded->part_count; p++) {
        struct part *part = &guarded->parts[p];

        if (part->is_stale)
            tell_unknown(guarded, part, WM_READING_STALE, why_stale(guarded));
        else if (!part->is_listed || !has_room)
            tell_unknown(guarded, part, WM_READING_FAILED, no_memory);
        else
            tell_listed(guarded, part);
    }
}

void wm_guarded_collect(struct wm_guarded *guarded, int64_t deadline_ns, int64_t oldest_ns,
                        struct wm_reading *readings)
{
    wait_for_answers(guarded, deadline_ns, oldest_ns);
    for (size_t p = 0; p < guarded->part_count; p++) {
        guarded->parts[p].is_stale = is_stale(guarded, p, oldest_ns);
        if (guarded->parts[p].is_stale)
            tell_stale(guarded, p, readings);
        else
            tell_part(guarded, &guarded->parts[p], readings);
    }
    tell_processes(guarded);
}

const char *wm_guarded_why(const struct wm_guarded *guarded, size_t channel)
{
    const char *why = guarded->copies[channel].why;

    if (guarded->parts[channel / guarded->part_channels].is_stale)
        return why_stale(guarded);
    return why[0] ? why : NULL;
}

size_t wm_guarded_gpu_processes(const struct wm_guarded *guarded,
                                const struct wm_gpu_process **ret_processes)
{
    *ret_processes = guarded->told;
    return guarded->told_count;
}

int64_t wm_guarded_cpu_ns(const struct wm_guarded *guarded)
{
    return wm_guard_cpu_ns(guarded->guard) - guarded->opening_cpu_ns;
}
