/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - the list of backends, and what is the same for all of them. */
#include "wattmeter/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "source/source_ops.h"

/* A list that a reader can see, in an order that we chose. Backends that
 * register themselves from constructors would save these lines and lose both,
 * and a static library would silently drop the ones nobody refers to. */
static const struct wm_source_ops *const table[] = {
    &wm_source_host, &wm_source_tree, &wm_source_hwmon, &wm_source_nvml, &wm_source_drm,
};

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

struct wm_source {
    const struct wm_source_ops *ops;
    const struct wm_channel *channels;
    size_t channel_count;
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

static struct wm_source_config complete(const struct wm_source_config *config)
{
    struct wm_source_config full = { 0 };

    if (config)
        full = *config;
    if (!full.procfs)
        full.procfs = wm_env("WATTMETER_PROCFS", "/proc");
    if (!full.sysfs)
        full.sysfs = wm_env("WATTMETER_SYSFS", "/sys");
    if (!full.nvml)
        full.nvml = wm_env("WATTMETER_NVML", NULL);
    if (full.pid == 0)
        full.pid = getpid();
    return full;
}

int wm_source_open(const char *name, const struct wm_source_config *config,
                   struct wm_source **ret_source, struct wm_error *err)
{
    const struct wm_source_config full = complete(config);
    const struct wm_source_ops *ops = find_ops(name);
    if (!ops)
        return wm_fail(err, WM_EINVAL, "there is no source called '%s'", name);

    struct wm_source *source = calloc(1, sizeof(*source) + ops->state_size);
    if (!source)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", name);
    source->ops = ops;

    int status = ops->open(source->state, &full, err);
    if (status < 0) {
        wm_source_close(source);
        return status;
    }

    source->channel_count = ops->channels(source->state, &source->channels);
    *ret_source = source;
    return WM_OK;
}

void wm_source_close(struct wm_source *source)
{
    if (!source)
        return;
    source->ops->close(source->state);
    free(source);
}

size_t wm_source_channel_count(const struct wm_source *source)
{
    return source->channel_count;
}

const struct wm_channel *wm_source_channel(const struct wm_source *source, size_t index)
{
    return &source->channels[index];
}

const char *wm_source_why(const struct wm_source *source, size_t index)
{
    return source->ops->why ? source->ops->why(source->state, index) : NULL;
}

const char *wm_source_detail(const struct wm_source *source)
{
    return source->ops->detail ? source->ops->detail(source->state) : NULL;
}

int wm_source_read(struct wm_source *source, struct wm_reading *readings, size_t count,
                   struct wm_error *err)
{
    if (count != source->channel_count)
        return wm_fail(err, WM_EINVAL, "%s has %zu channels, not %zu", source->ops->name,
                       source->channel_count, count);
    return source->ops->read(source->state, readings, err);
}

size_t wm_source_gpu_processes(const struct wm_source *source,
                               const struct wm_gpu_process **ret_processes)
{
    if (!source->ops->gpu_processes) {
        *ret_processes = NULL;
        return 0;
    }
    return source->ops->gpu_processes(source->state, ret_processes);
}

size_t wm_source_device_count(const struct wm_source *source)
{
    return source->ops->device_count ? source->ops->device_count(source->state) : 0;
}
