/* SPDX-License-Identifier: Apache-2.0 */
/* source_set.c - sources that are opened, read and closed together. */
#include "source/set/source_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "source/gpu/select/source_gpu_lists.h"
#include "source/source_config.h"
#include "source/source_energy.h"
#include "source/source_gpu_channel.h"
#include "source/source_ops.h"

#define ONE(name) +1
enum { SOURCES = 0 WM_SOURCES(ONE) };

/* A source whose driver was asked to start. */
struct pending {
    struct wm_source_member member;
    int64_t asked_ns;
    int status; /* of its opening; 1: the driver has not answered */
    struct wm_error err;
};

struct wm_source_set {
    struct wm_source_config config; /* with texts of its own */
    pid_t viewer;
    struct wm_gpu_lists *choice; /* NULL: all GPUs, or none, or not chosen yet */
    size_t channel_count;
    size_t count;
    struct wm_source_member members[SOURCES];
    size_t pending_count;
    struct pending pending[SOURCES];
};

/* The list's own text, which outlives the caller's. */
static const char *lasting_name(const char *name)
{
    size_t i = 0;

    while (strcmp(wm_source_name(i), name) != 0)
        i++;
    return wm_source_name(i);
}

int wm_source_set_new(const struct wm_source_config *config, pid_t viewer,
                      struct wm_source_set **ret_set, struct wm_error *err)
{
    int status = wm_gpu_channels_check(config->channels, err);
    if (status < 0)
        return status;
    struct wm_source_set *set = calloc(1, sizeof(*set));
    if (!set)
        return wm_fail_memory(err, "sources");
    set->viewer = viewer;
    status = wm_source_config_copy(config, &set->config, err);
    if (status < 0) {
        free(set);
        return status;
    }
    *ret_set = set;
    return WM_OK;
}

void wm_source_set_close(struct wm_source_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++)
        wm_source_close(set->members[i].source);
    for (size_t i = 0; i < set->pending_count; i++)
        wm_source_close(set->pending[i].member.source);
    wm_gpu_lists_free(set->choice);
    wm_source_config_release(&set->config);
    free(set);
}

int wm_source_set_choose(struct wm_source_set *set, struct wm_error *err)
{
    if (set->choice || wm_gpu_lists_are_plain(set->config.gpus))
        return WM_OK;
    return wm_gpu_lists_new(&set->config, set->viewer, &set->choice, err);
}

static bool has(const struct wm_source_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->members[i].name, name) == 0)
            return true;
    }
    for (size_t i = 0; i < set->pending_count; i++) {
        if (strcmp(set->pending[i].member.name, name) == 0)
            return true;
    }
    return false;
}

static void append(struct wm_source_set *set, const struct wm_source_member *member)
{
    struct wm_source_member *added = &set->members[set->count++];

    *added = *member;
    added->first_channel = set->channel_count;
    set->channel_count += wm_source_channel_count(added->source);
}

/* Asks the driver, if the source has one, to start. */
static int begin_open(struct wm_source_set *set, const char *name,
                      struct pending *ret_pending, struct wm_error *err)
{
    const struct wm_gpu_picks *picks = NULL;

    if (has(set, name))
        return wm_fail(err, WM_EEXIST, "%s: this source has been added already", name);
    int status = wm_source_set_choose(set, err);
    if (status == WM_OK && set->choice)
        status = wm_gpu_lists_of(set->choice, name, &picks, err);
    if (status < 0)
        return status;

    ret_pending->asked_ns = wm_clock_monotonic_ns();
    status =
        wm_source_open_begin(name, &set->config, picks, &ret_pending->member.source, err);
    if (status == WM_OK)
        ret_pending->member.name = lasting_name(name);
    return status;
}

static void end_open(struct pending *pending, int64_t deadline_ns)
{
    pending->status =
        wm_source_open_end(pending->member.source, deadline_ns, &pending->err);
}

/* Adds the source to the set where it is open, and closes it where it is not. */
static int take(struct wm_source_set *set, const struct pending *pending,
                struct wm_error *err)
{
    if (pending->status == WM_OK) {
        append(set, &pending->member);
        return WM_OK;
    }
    wm_source_close(pending->member.source);
    if (err)
        *err = pending->err;
    return pending->status;
}

int wm_source_set_open(struct wm_source_set *set, const char *name, struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + WM_SOURCE_OPEN_S * WM_NS_PER_S;

    int status = wm_source_set_open_until(set, name, deadline_ns, err);
    if (status <= 0)
        return status;
    wm_source_close(set->pending[--set->pending_count].member.source);
    return wm_fail(err, WM_EIO, "the driver has not answered for %d s", WM_SOURCE_OPEN_S);
}

int wm_source_set_open_until(struct wm_source_set *set, const char *name,
                             int64_t deadline_ns, struct wm_error *err)
{
    struct pending pending = { 0 };

    int status = begin_open(set, name, &pending, err);
    if (status < 0)
        return status;
    end_open(&pending, deadline_ns);
    if (pending.status <= 0)
        return take(set, &pending, err);
    set->pending[set->pending_count++] = pending;
    return 1;
}

int64_t wm_source_set_pending_since(const struct wm_source_set *set)
{
    return set->pending_count > 0 ? set->pending[0].asked_ns : 0;
}

bool wm_source_set_await(struct wm_source_set *set, int64_t deadline_ns)
{
    bool have_answered = true;

    for (size_t i = 0; i < set->pending_count; i++) {
        struct pending *pending = &set->pending[i];
        if (pending->status > 0)
            end_open(pending, deadline_ns);
        have_answered &= pending->status <= 0;
    }
    return have_answered;
}

int wm_source_set_take_pending(struct wm_source_set *set, const char **ret_name,
                               struct wm_error *err)
{
    struct pending first = set->pending[0];

    memmove(set->pending, set->pending + 1, --set->pending_count * sizeof(first));
    *ret_name = first.member.name;
    return take(set, &first, err);
}

void wm_source_set_drop_last(struct wm_source_set *set)
{
    struct wm_source_member *last = &set->members[--set->count];

    set->channel_count = last->first_channel;
    wm_source_close(last->source);
}

size_t wm_source_set_count(const struct wm_source_set *set)
{
    return set->count;
}

const struct wm_source_member *wm_source_set_member(const struct wm_source_set *set,
                                                    size_t index)
{
    return &set->members[index];
}

size_t wm_source_set_channel_count(const struct wm_source_set *set)
{
    return set->channel_count;
}

/* Whose channel it is. Of a source without any the next one begins at the same place. */
static const struct wm_source_member *owner_of(const struct wm_source_set *set,
                                               size_t channel)
{
    size_t i = set->count;

    while (i-- > 0) {
        const struct wm_source_member *member = &set->members[i];
        if (channel >= member->first_channel)
            return member;
    }
    return NULL;
}

const struct wm_channel *wm_source_set_channel(const struct wm_source_set *set,
                                               size_t index)
{
    const struct wm_source_member *owner = owner_of(set, index);

    return wm_source_channel(owner->source, index - owner->first_channel);
}

const char *wm_source_set_why(const struct wm_source_set *set, size_t index)
{
    const struct wm_source_member *owner = owner_of(set, index);

    return wm_source_why(owner->source, index - owner->first_channel);
}

/* Before the first reading a channel that cannot be read says why. */
static bool has_cpu_energy(const struct wm_source *source)
{
    size_t found = 0, lacking = 0;

    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        if (wm_energy_offer_of(channel).kind != WM_DEVICE_CPU)
            continue;
        found++;
        lacking += wm_source_why(source, i) != NULL;
    }
    return found > 0 && lacking == 0;
}

bool wm_source_set_has_cpu_energy(const struct wm_source_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (has_cpu_energy(set->members[i].source))
            return true;
    }
    return false;
}

/* The channels of a device stand together. */
struct wm_source_gpu_count wm_source_gpu_count(const struct wm_source *source)
{
    struct wm_source_gpu_count gpus = { .there = wm_source_device_count(source) };
    const char *before = "";

    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        gpus.read +=
            channel->device_kind == WM_DEVICE_GPU && strcmp(channel->device, before) != 0;
        before = channel->device;
    }
    return gpus;
}

struct wm_source_gpu_count wm_source_set_gpu_count(const struct wm_source_set *set)
{
    struct wm_source_gpu_count all = { 0 };

    for (size_t i = 0; i < set->count; i++) {
        struct wm_source_gpu_count gpus = wm_source_gpu_count(set->members[i].source);
        all.read += gpus.read;
        all.there += gpus.there;
    }
    if (set->choice)
        all.there = wm_gpu_lists_present(set->choice);
    return all;
}

const char *wm_source_set_left_out(const struct wm_source_set *set,
                                   const struct wm_source_member *member)
{
    return set->choice ? NULL : wm_source_left_out(member->source);
}

const char *wm_source_set_remark(const struct wm_source_set *set)
{
    return set->choice ? wm_gpu_lists_remark(set->choice) : NULL;
}

bool wm_source_set_lacks_gpus(const struct wm_source_set *set)
{
    return set->choice && wm_gpu_lists_are_short(set->choice);
}

int64_t wm_source_set_begin(struct wm_source_set *set, bool is_end)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    for (size_t i = 0; i < set->count; i++)
        wm_source_begin(set->members[i].source, is_end);
    return now_ns;
}

static void collect(const struct wm_source_member *member, int64_t deadline_ns,
                    int64_t oldest_ns, struct wm_reading *readings)
{
    size_t count = wm_source_channel_count(member->source);
    int64_t when_ns = wm_clock_monotonic_ns();

    readings += member->first_channel;
    if (wm_source_collect(member->source, deadline_ns, oldest_ns, readings, count, NULL) >=
        0)
        return;
    for (size_t i = 0; i < count; i++)
        readings[i] = (struct wm_reading) { when_ns, 0, WM_READING_FAILED };
}

void wm_source_set_read(struct wm_source_set *set, struct wm_reading *readings)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!wm_source_is_guarded(set->members[i].source))
            collect(&set->members[i], 0, 0, readings);
    }
}

void wm_source_set_wait(struct wm_source_set *set, int64_t deadline_ns, int64_t oldest_ns,
                        struct wm_reading *readings)
{
    for (size_t i = 0; i < set->count; i++) {
        if (wm_source_is_guarded(set->members[i].source))
            collect(&set->members[i], deadline_ns, oldest_ns, readings);
    }
}

void wm_source_set_collect(struct wm_source_set *set, int64_t deadline_ns,
                           int64_t oldest_ns, struct wm_reading *readings)
{
    wm_source_set_read(set, readings); /* while the drivers are at work */
    wm_source_set_wait(set, deadline_ns, oldest_ns, readings);
}

static int64_t least_of(const struct wm_source_set *set,
                        int64_t (*time_of)(const struct wm_source *source))
{
    int64_t least_ns = INT64_MAX;

    for (size_t i = 0; i < set->count; i++) {
        int64_t time_ns = time_of(set->members[i].source);
        least_ns = time_ns < least_ns ? time_ns : least_ns;
    }
    return least_ns;
}

int64_t wm_source_set_unread_ns(const struct wm_source_set *set)
{
    return least_of(set, wm_source_unread_ns);
}

int64_t wm_source_set_keep_ns(const struct wm_source_set *set)
{
    return least_of(set, wm_source_keep_ns);
}

void wm_source_set_keep(struct wm_source_set *set, int64_t now_ns)
{
    for (size_t i = 0; i < set->count; i++) {
        if (wm_source_keep_ns(set->members[i].source) <= now_ns)
            wm_source_keep(set->members[i].source);
    }
}

int64_t wm_source_set_cpu_ns(const struct wm_source_set *set)
{
    int64_t total_ns = 0;

    for (size_t i = 0; i < set->count; i++)
        total_ns += wm_source_cpu_ns(set->members[i].source);
    return total_ns;
}

/* Words about GPUs are about those of the whole machine, whatever the source. */
static int choose_and_begin(const char *name, const struct wm_source_config *config,
                            struct wm_source **ret_source, struct wm_error *err)
{
    const struct wm_gpu_picks *picks = NULL;
    struct wm_gpu_lists *choice = NULL;
    int status = WM_OK;

    if (config && !wm_gpu_lists_are_plain(config->gpus) && wm_source_traits(name)->has_gpus)
        status = wm_gpu_lists_new(config, 0, &choice, err);
    if (status == WM_OK && choice)
        status = wm_gpu_lists_of(choice, name, &picks, err);
    if (status == WM_OK)
        status = wm_source_open_begin(name, config, picks, ret_source, err);
    wm_gpu_lists_free(choice);
    return status;
}

int wm_source_open_within(const char *name, const struct wm_source_config *config,
                          int patience_s, struct wm_source **ret_source,
                          struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + patience_s * WM_NS_PER_S;
    struct wm_source *source = NULL;

    int status = choose_and_begin(name, config, &source, err);
    if (status < 0)
        return status;
    status = wm_source_open_end(source, deadline_ns, err);
    if (status > 0)
        status = wm_fail(err, WM_EIO, "the driver has not answered for %d s", patience_s);
    if (status < 0) {
        wm_source_close(source);
        return status;
    }
    *ret_source = source;
    return WM_OK;
}

int wm_source_open(const char *name, const struct wm_source_config *config,
                   struct wm_source **ret_source, struct wm_error *err)
{
    return wm_source_open_within(name, config, WM_SOURCE_OPEN_S, ret_source, err);
}
