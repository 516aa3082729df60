/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - the list of backends, and what is the same for all of them. */
#include "wattmeter/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "source/set/source_set.h"
#include "source/source_config.h"
#include "source/source_gpu_channel.h"
#include "source/source_guarded.h"
#include "source/source_ops.h"

#define WM_SOURCE_ADDRESS(name) &wm_source_##name,
static const struct wm_source_ops *const table[] = { WM_SOURCES(WM_SOURCE_ADDRESS) };

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

/* How long wm_source_read() waits for a driver. */
#define PATIENCE_NS WM_NS_PER_S

struct wm_source {
    const struct wm_source_ops *ops;
    struct wm_guarded *guarded; /* has the state of a backend in parts */
    struct wm_source_found found;
    struct wm_reading *kept; /* where readings in between go; NULL: there are none */
    int64_t read_ns;         /* the last one; 0: none yet */
    max_align_t state[];
};

static const struct wm_source_ops *find_ops(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

const char *wm_source_name(size_t index)
{
    return index < TABLE_COUNT ? table[index]->name : NULL;
}

const char *wm_source_summary(const char *name)
{
    const struct wm_source_ops *ops = find_ops(name);
    return ops ? ops->summary : NULL;
}

const struct wm_source_traits *wm_source_traits(const char *name)
{
    static const struct wm_source_traits unknown = { 0 };
    const struct wm_source_ops *ops = find_ops(name);

    return ops ? &ops->traits : &unknown;
}

enum wm_reading_state wm_reading_state_of(int status)
{
    switch (status) {
    case WM_OK:
        return WM_READING_OK;
    case WM_ENOENT:
        return WM_READING_UNSUPPORTED;
    case WM_EACCES:
        return WM_READING_DENIED;
    default:
        return WM_READING_FAILED;
    }
}

void wm_source_advise(const char *name, const struct wm_source_case *asked)
{
    const struct wm_source_ops *ops = find_ops(name);
    const struct wm_source_file *file = ops ? ops->files : NULL;

    for (; file && file->pattern; file++)
        wm_permission_files(asked->advice, asked->config->sysfs, file);
    if (ops && ops->advise)
        ops->advise(asked);
}

bool wm_source_remedy(const char *name, char command[WM_ADVICE_SIZE])
{
    struct wm_source_config config;
    struct wm_advice advice = { 0 };
    const struct wm_source_case denied = {
        .config = &config,
        .is_denied = true,
        .lacks_some = true,
        .advice = &advice,
    };

    wm_source_config_complete(NULL, &config, NULL);
    wm_source_advise(name, &denied);
    for (size_t i = 0; i < advice.count; i++) {
        if (!advice.list[i].command)
            continue;
        snprintf(command, WM_ADVICE_SIZE, "%s", advice.list[i].command);
        return true;
    }
    return false;
}

int wm_source_open_begin(const char *name, const struct wm_source_config *config,
                         const struct wm_gpu_picks *picks, struct wm_source **ret_source,
                         struct wm_error *err)
{
    const struct wm_source_ops *ops = find_ops(name);
    struct wm_source_config full;

    if (!ops)
        return wm_fail(err, WM_EINVAL, "there is no source called '%s'", name);
    int status = wm_source_config_complete(config, &full, err);
    if (status == WM_OK)
        status = wm_gpu_channels_check(full.channels, err);
    if (status < 0)
        return status;
    if (ops->traits.has_gpus && full.gpus && strcmp(full.gpus, "none") == 0)
        return wm_fail(err, WM_ENODEV, "GPUs were switched off with --gpu none");

    size_t size = ops->read_part ? 0 : ops->state_size;
    struct wm_source *source = calloc(1, sizeof(*source) + size);
    if (!source)
        return wm_fail_memory(err, name);
    source->ops = ops;

    status = ops->read_part ? wm_guarded_open(ops, &full, picks, &source->guarded, err)
                            : ops->open(source->state, &full, &source->found, err);
    if (status == WM_OK && source->found.unread_ns > 0) {
        source->kept = calloc(source->found.channel_count + 1, sizeof(*source->kept));
        status = source->kept ? WM_OK : wm_fail_memory(err, name);
    }
    if (status < 0) {
        wm_source_close(source);
        return status;
    }
    *ret_source = source;
    return WM_OK;
}

int wm_source_open_end(struct wm_source *source, int64_t deadline_ns, struct wm_error *err)
{
    if (!source->guarded)
        return WM_OK;
    int status = wm_guarded_opened(source->guarded, deadline_ns, err);
    if (status == WM_OK)
        source->found = *wm_guarded_found(source->guarded);
    return status;
}

void wm_source_close(struct wm_source *source)
{
    if (!source)
        return;
    if (source->ops->read_part)
        wm_guarded_close(source->guarded);
    else
        source->ops->close(source->state);
    free(source->kept);
    free(source);
}

size_t wm_source_channel_count(const struct wm_source *source)
{
    return source->found.channel_count;
}

const struct wm_channel *wm_source_channel(const struct wm_source *source, size_t index)
{
    return &source->found.channels[index];
}

const char *wm_source_why(const struct wm_source *source, size_t index)
{
    if (source->guarded)
        return wm_guarded_why(source->guarded, index);
    return source->ops->why ? source->ops->why(source->state, index) : NULL;
}

const char *wm_source_detail(const struct wm_source *source)
{
    return source->found.detail;
}

const char *wm_source_left_out(const struct wm_source *source)
{
    return source->found.left_out;
}

const char *wm_source_denied(const struct wm_source *source)
{
    return source->found.denied;
}

bool wm_source_is_guarded(const struct wm_source *source)
{
    return source->guarded != NULL;
}

void wm_source_begin(struct wm_source *source, bool is_end)
{
    if (source->guarded)
        wm_guarded_begin(source->guarded, is_end);
}

int wm_source_collect(struct wm_source *source, int64_t deadline_ns, int64_t oldest_ns,
                      struct wm_reading *readings, size_t count, struct wm_error *err)
{
    if (count != source->found.channel_count)
        return wm_fail(err, WM_EINVAL, "%s has %zu channels, not %zu", source->ops->name,
                       source->found.channel_count, count);
    if (source->kept)
        source->read_ns = wm_clock_monotonic_ns();
    if (!source->guarded)
        return source->ops->read(source->state, readings, err);
    wm_guarded_collect(source->guarded, deadline_ns, oldest_ns, readings);
    return WM_OK;
}

int64_t wm_source_unread_ns(const struct wm_source *source)
{
    return source->kept ? source->found.unread_ns : INT64_MAX;
}

int64_t wm_source_keep_ns(const struct wm_source *source)
{
    bool may_be_late = source->kept && source->read_ns > 0;

    return may_be_late ? source->read_ns + source->found.unread_ns : INT64_MAX;
}

void wm_source_keep(struct wm_source *source)
{
    wm_source_collect(source, 0, 0, source->kept, source->found.channel_count, NULL);
}

int wm_source_read(struct wm_source *source, struct wm_reading *readings, size_t count,
                   struct wm_error *err)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    wm_source_begin(source, true);
    return wm_source_collect(source, now_ns + PATIENCE_NS, now_ns, readings, count, err);
}

int64_t wm_source_cpu_ns(const struct wm_source *source)
{
    return source->guarded ? wm_guarded_cpu_ns(source->guarded) : 0;
}

size_t wm_source_gpu_processes(const struct wm_source *source,
                               const struct wm_gpu_process **ret_processes)
{
    if (source->guarded)
        return wm_guarded_gpu_processes(source->guarded, ret_processes);
    *ret_processes = NULL;
    return 0;
}

size_t wm_source_device_count(const struct wm_source *source)
{
    const void *state = source->guarded ? wm_guarded_state(source->guarded) : source->state;

    return source->ops->device_count ? source->ops->device_count(state) : 0;
}
