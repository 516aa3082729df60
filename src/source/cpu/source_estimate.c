/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_estimate.c - energy of CPUs and memory that nothing measures, from how busy
 * the CPUs are and how much memory there is, by published models.
 *
 * See docs/other-power-sensors.md for the models, where their numbers come from and
 * how far they can be wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "source/cpu/source_estimate_model.h"
#include "source/source_energy.h"
#include "source/source_ops.h"
#include "source/source_proc_file.h"

/* "Green Algorithms: Quantifying the Carbon Footprint of Computation", Lannelongue,
 * Grealey, Inouye, Advanced Science 2021, doi 10.1002/advs.202100707: of the memory
 * that is there, used or not. */
#define WATTS_PER_GIB 0.3725
#define GIB 1073741824.0

/* The kernel's times move in steps of 10 ms, and reading them costs as much as the rest
 * of a tick: reading more often would cost more than it shows. Between two readings the
 * estimate goes on as for an idle machine. */
#define REREAD_NS (2 * 10 * WM_NS_PER_MS)

enum { CPU, DRAM, CHANNEL_COUNT };

struct estimate {
    struct wm_proc_file stat;
    double ticks_per_s;
    struct wm_cpuinfo cpuinfo;
    struct wm_cpu_model model;
    struct wm_cpu_estimate cpu;
    double memory_watts; /* 0: its size is not known, or the model counts it too */
    int64_t start_ns;
    struct wm_channel channels[CHANNEL_COUNT];
    struct wm_reading seen; /* of the CPUs, with their busy time */
    size_t count;
    struct wm_error err; /* text is empty where the last reading was ok */
    char detail[256];
};

/* Time that the hypervisor gave to others was not spent here. */
static int read_busy(struct estimate *estimate, double *ret_busy_s, size_t *ret_cpus)
{
    struct wm_proc_stat stat;
    int status = wm_proc_file_read_stat(&estimate->stat, NULL, NULL, &stat);
    if (status < 0)
        return status;

    *ret_busy_s = ((double)stat.busy - (double)stat.stolen) / estimate->ticks_per_s;
    *ret_cpus = stat.cpu_count;
    return WM_OK;
}

static double read_memory_watts(const char *procfs)
{
    char path[512], text[8192];
    struct wm_meminfo meminfo;

    snprintf(path, sizeof(path), "%s/meminfo", procfs);
    if (wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
        wm_parse_meminfo(text, &meminfo) != WM_OK)
        return 0;
    return (double)meminfo.total / GIB * WATTS_PER_GIB;
}

static void add_channel(struct estimate *estimate, const char *device, const char *label,
                        enum wm_device_kind kind, int64_t period_ns, double most_watts)
{
    const char *model = estimate->cpuinfo.name;

    estimate->channels[estimate->count++] = (struct wm_channel) {
        .source = wm_source_estimate.name,
        .device = device,
        .label = label,
        .model = kind == WM_DEVICE_CPU && model[0] ? model : NULL,
        .metric = "energy",
        .unit = "J",
        .device_kind = kind,
        .kind = WM_COUNTER,
        .origin = WM_ESTIMATED,
        .period_ns = period_ns,
        .sensor = { .kind = WM_SENSOR_MODEL,
                    .gain = WM_MODEL_GAIN,
                    .range = most_watts,
                    .text = "a model, not a sensor" },
    };
}

static int open_files(struct estimate *estimate, const struct wm_source_config *config,
                      struct wm_error *err)
{
    int dir = wm_file_open_at(AT_FDCWD, config->procfs);
    if (dir < 0) {
        errno = -dir;
        return wm_fail_errno(err, config->procfs);
    }
    int status = wm_proc_file_open(&estimate->stat, config->procfs, dir, "stat");
    wm_proc_cpuinfo(dir, "cpuinfo", &estimate->cpuinfo); /* without it an average is used */
    close(dir);
    return status < 0 ? wm_fail(err, status, "estimate: out of memory") : WM_OK;
}

static int start(struct estimate *estimate, const struct wm_source_config *config,
                 struct wm_error *err)
{
    double busy_s;
    size_t cpus;

    estimate->start_ns = wm_clock_monotonic_ns();
    int status = read_busy(estimate, &busy_s, &cpus);
    if (status < 0)
        return wm_fail(err, status, "no estimate: %.200s", estimate->stat.err.text);
    if (cpus == 0)
        return wm_fail(err, WM_EFORMAT, "no estimate: %s lists no CPU",
                       estimate->stat.path);

    const struct wm_cpu_model_inputs inputs = {
        .cpu_watts = config->cpu_watts,
        .sysfs = config->sysfs,
        .cpuinfo = estimate->cpuinfo,
        .cpu_count = cpus,
    };
    status = wm_cpu_model_choose(&inputs, &estimate->model, err);
    if (status < 0)
        return status;
    if (!estimate->model.has_memory)
        estimate->memory_watts = read_memory_watts(config->procfs);
    wm_cpu_estimate_start(&estimate->cpu, &estimate->model, estimate->start_ns, busy_s);
    estimate->seen =
        (struct wm_reading) { estimate->start_ns, estimate->cpu.joules, WM_READING_OK };
    return WM_OK;
}

static int estimate_open(void *state, const struct wm_source_config *config,
                         struct wm_source_found *ret_found, struct wm_error *err)
{
    struct estimate *estimate = state;

    estimate->ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    int status = open_files(estimate, config, err);
    if (status == WM_OK)
        status = start(estimate, config, err);
    if (status < 0)
        return status;

    add_channel(estimate, "cpu-estimate", "cpu", WM_DEVICE_CPU, REREAD_NS,
                wm_cpu_model_watts(&estimate->model, 1));
    int length = snprintf(estimate->detail, sizeof(estimate->detail), "estimated: %s",
                          estimate->model.text);
    if (estimate->memory_watts > 0) {
        add_channel(estimate, "dram-estimate", "dram", WM_DEVICE_DRAM, 0,
                    estimate->memory_watts);
        snprintf(estimate->detail + length, sizeof(estimate->detail) - (size_t)length,
                 "; memory %.1f GiB x %.4f W, Green Algorithms",
                 estimate->memory_watts / WATTS_PER_GIB, WATTS_PER_GIB);
    }
    *ret_found = (struct wm_source_found) { .channels = estimate->channels,
                                            .channel_count = estimate->count,
                                            .detail = estimate->detail };
    return WM_OK;
}

static int read_cpu(struct estimate *estimate, int64_t when_ns, double *ret_joules)
{
    double busy_s;
    size_t cpus;

    int status = read_busy(estimate, &busy_s, &cpus);
    if (status < 0)
        return wm_fail(&estimate->err, status, "%s", estimate->stat.err.text);
    return wm_cpu_estimate_add(&estimate->cpu, when_ns, busy_s, cpus, ret_joules,
                               &estimate->err);
}

static void look_at_cpus(struct estimate *estimate, int64_t now_ns)
{
    struct wm_reading *seen = &estimate->seen;

    estimate->err.text[0] = '\0';
    seen->when_ns = now_ns;
    seen->state = wm_reading_state_of(read_cpu(estimate, now_ns, &seen->value));
}

static struct wm_reading read_cpus(struct estimate *estimate, int64_t now_ns)
{
    struct wm_reading reading = estimate->seen;

    if (reading.state != WM_READING_OK || now_ns - reading.when_ns >= REREAD_NS) {
        look_at_cpus(estimate, now_ns);
        return estimate->seen;
    }
    reading.when_ns = now_ns;
    reading.value = wm_cpu_estimate_rest(&estimate->cpu, now_ns);
    return reading;
}

static int estimate_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct estimate *estimate = state;
    int64_t now_ns = wm_clock_monotonic_ns();
    double seconds = (double)(now_ns - estimate->start_ns) / (double)WM_NS_PER_S;
    (void)err; /* what fails here fails for one channel */

    readings[CPU] = read_cpus(estimate, now_ns);
    if (estimate->count > DRAM)
        readings[DRAM] =
            (struct wm_reading) { now_ns, estimate->memory_watts * seconds, WM_READING_OK };
    return WM_OK;
}

static const char *estimate_why(const void *state, size_t channel)
{
    const struct estimate *estimate = state;

    return channel == CPU && estimate->err.text[0] ? estimate->err.text : NULL;
}

static void estimate_close(void *state)
{
    struct estimate *estimate = state;

    wm_proc_file_close(&estimate->stat);
}

const struct wm_source_ops wm_source_estimate = {
    .name = "estimate",
    .summary = "an estimate of the energy of CPUs and memory, by how busy the CPUs are",
    .traits = { .cpu_sensor = WM_SENSOR_MODEL },
    .state_size = sizeof(struct estimate),
    .open = estimate_open,
    .read = estimate_read,
    .why = estimate_why,
    .close = estimate_close,
};
