/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_host.c - the machine as a whole and its cores, from three files of
 * /proc that are opened once and reread.
 *
 * A file that is missing or not understood costs its own channels only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "source/source_kernel_text.h"
#include "source/source_ops.h"
#include "source/source_proc_file.h"

/* The kernel computes its load averages every 5 s; asking more often than this
 * shows nothing new. */
#define LOAD_PERIOD_NS (5 * WM_NS_PER_S)
#define LOAD_REREAD_NS WM_NS_PER_S

struct core {
    uint32_t number;
    char name[16];
};

/* The channels of the host come first, and then one per core. */
enum { CPU_TIME, MEMORY_USED, MEMORY_TOTAL, LOAD1, HOST_CHANNELS };

struct host {
    double ticks_per_s;
    struct wm_proc_file stat, meminfo, loadavg;
    struct core *cores; /* those online at open; the list is fixed from then on */
    size_t core_count;
    struct wm_cpu_ticks *ticks; /* those online now */
    size_t ticks_room;
    struct wm_channel *channels;
    size_t channel_count;
    struct wm_reading load; /* the last one */
    int64_t load_read_ns;   /* 0: never */
    const char **whys;      /* one per channel; NULL where the last reading was ok */
};

static const struct wm_channel host_channels[HOST_CHANNELS] = {
    [CPU_TIME] = { .metric = "cpu_time", .unit = "s", .kind = WM_COUNTER },
    [MEMORY_USED] = { .metric = "memory_used", .unit = "B", .kind = WM_GAUGE },
    [MEMORY_TOTAL] = { .metric = "memory_total", .unit = "B", .kind = WM_GAUGE },
    [LOAD1] = { .metric = "load1",
                .unit = "count",
                .kind = WM_GAUGE,
                .period_ns = LOAD_PERIOD_NS },
};

/* The cores that are online end up in host->ticks. */
static int read_stat(struct host *host, struct wm_proc_stat *ret_stat)
{
    return wm_proc_file_read_stat(&host->stat, &host->ticks, &host->ticks_room, ret_stat);
}

static int find_cores(struct host *host)
{
    struct wm_proc_stat stat;
    int status = read_stat(host, &stat);
    if (status == WM_ENOMEM)
        return status;
    if (status < 0 || stat.cpu_count == 0)
        return WM_OK;

    host->cores = calloc(stat.cpu_count, sizeof(*host->cores));
    if (!host->cores)
        return WM_ENOMEM;
    host->core_count = stat.cpu_count;
    for (size_t i = 0; i < host->core_count; i++) {
        struct core *core = &host->cores[i];
        core->number = host->ticks[i].cpu;
        snprintf(core->name, sizeof(core->name), "cpu%u", core->number);
    }
    return WM_OK;
}

static int make_channels(struct host *host)
{
    int64_t tick_ns = (int64_t)((double)WM_NS_PER_S / host->ticks_per_s);

    host->channel_count = HOST_CHANNELS + host->core_count;
    host->channels = calloc(host->channel_count, sizeof(*host->channels));
    host->whys = calloc(host->channel_count, sizeof(*host->whys));
    if (!host->channels || !host->whys)
        return WM_ENOMEM;

    for (size_t i = 0; i < host->channel_count; i++) {
        struct wm_channel *channel = &host->channels[i];
        if (i < HOST_CHANNELS) {
            *channel = host_channels[i];
            channel->device = channel->label = "host";
            channel->device_kind = WM_DEVICE_HOST;
        } else {
            *channel = host_channels[CPU_TIME];
            channel->device = channel->label = host->cores[i - HOST_CHANNELS].name;
            channel->device_kind = WM_DEVICE_CPU;
        }
        channel->source = wm_source_host.name;
        if (channel->kind == WM_COUNTER)
            channel->period_ns = tick_ns;
    }
    return WM_OK;
}

static int host_open(void *state, const struct wm_source_config *config,
                     struct wm_source_found *ret_found, struct wm_error *err)
{
    struct host *host = state;
    int status;

    host->ticks_per_s = (double)sysconf(_SC_CLK_TCK);

    int dir = wm_file_open_at(AT_FDCWD, config->procfs);
    if (dir < 0) {
        errno = -dir;
        return wm_fail_errno(err, config->procfs);
    }
    status = wm_proc_file_open(&host->stat, config->procfs, dir, "stat");
    if (status == WM_OK)
        status = wm_proc_file_open(&host->meminfo, config->procfs, dir, "meminfo");
    if (status == WM_OK)
        status = wm_proc_file_open(&host->loadavg, config->procfs, dir, "loadavg");
    close(dir);

    if (status == WM_OK && !host->stat.is_open && !host->meminfo.is_open &&
        !host->loadavg.is_open)
        return wm_fail(err, host->stat.err.status, "%s", host->stat.err.text);
    if (status == WM_OK)
        status = find_cores(host);
    if (status == WM_OK)
        status = make_channels(host);
    if (status < 0)
        return wm_fail(err, status, "host: out of memory");
    *ret_found = (struct wm_source_found) { .channels = host->channels,
                                            .channel_count = host->channel_count };
    return WM_OK;
}

static void tell(struct host *host, struct wm_reading *readings, size_t channel,
                 double value, int status, const char *why)
{
    bool is_ok = status >= 0;

    readings[channel].value = is_ok ? value : 0;
    readings[channel].state = wm_reading_state_of(is_ok ? WM_OK : status);
    host->whys[channel] = is_ok ? NULL : why;
}

static void read_cpu_times(struct host *host, struct wm_reading *readings)
{
    const char *why = host->stat.err.text;
    struct wm_proc_stat stat = { 0 };
    int status = read_stat(host, &stat);
    size_t online = 0;

    tell(host, readings, CPU_TIME, (double)stat.busy / host->ticks_per_s, status, why);
    for (size_t i = 0; i < host->core_count; i++) {
        size_t channel = HOST_CHANNELS + i;

        while (online < stat.cpu_count && host->ticks[online].cpu < host->cores[i].number)
            online++;
        if (status < 0)
            tell(host, readings, channel, 0, status, why);
        else if (online == stat.cpu_count ||
                 host->ticks[online].cpu != host->cores[i].number)
            tell(host, readings, channel, 0, WM_EIO, "this core is offline");
        else
            tell(host, readings, channel,
                 (double)host->ticks[online].busy / host->ticks_per_s, WM_OK, NULL);
    }
}

static void read_memory(struct host *host, struct wm_reading *readings)
{
    const char *why = host->meminfo.err.text;
    struct wm_meminfo meminfo = { 0 };
    int status = wm_proc_file_read(&host->meminfo);

    if (status >= 0 && wm_parse_meminfo(host->meminfo.text, &meminfo) < 0)
        status = wm_proc_file_fail_format(&host->meminfo);
    tell(host, readings, MEMORY_USED, (double)(meminfo.total - meminfo.available), status,
         why);
    tell(host, readings, MEMORY_TOTAL, (double)meminfo.total, status, why);
}

static void read_load(struct host *host, struct wm_reading *readings, int64_t now_ns)
{
    struct wm_loadavg loadavg = { 0 };

    if (host->load_read_ns > 0 && now_ns - host->load_read_ns < LOAD_REREAD_NS) {
        readings[LOAD1] = host->load;
        return;
    }
    host->load_read_ns = now_ns;
    int status = wm_proc_file_read(&host->loadavg);

    if (status >= 0 && wm_parse_loadavg(host->loadavg.text, &loadavg) < 0)
        status = wm_proc_file_fail_format(&host->loadavg);
    tell(host, readings, LOAD1, loadavg.load1, status, host->loadavg.err.text);
    host->load = readings[LOAD1];
}

static int host_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct host *host = state;
    int64_t now_ns = wm_clock_monotonic_ns();
    (void)err; /* whatever fails here fails for some channels */

    read_cpu_times(host, readings);
    read_memory(host, readings);
    read_load(host, readings, now_ns);
    for (size_t i = 0; i < host->channel_count; i++)
        readings[i].when_ns = now_ns;
    return WM_OK;
}

static const char *host_why(const void *state, size_t channel)
{
    const struct host *host = state;
    return host->whys[channel];
}

static void host_close(void *state)
{
    struct host *host = state;

    wm_proc_file_close(&host->stat);
    wm_proc_file_close(&host->meminfo);
    wm_proc_file_close(&host->loadavg);
    free(host->cores);
    free(host->ticks);
    free(host->channels);
    free(host->whys);
}

const struct wm_source_ops wm_source_host = {
    .name = "host",
    .summary = "CPU time, memory and load of the machine and its cores, from /proc",
    .state_size = sizeof(struct host),
    .open = host_open,
    .read = host_read,
    .why = host_why,
    .close = host_close,
};
