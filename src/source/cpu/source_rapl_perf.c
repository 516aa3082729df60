/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl_perf.c - energy registers as perf events: the PMU "power", whose
 * events count for a package (or die) each and are read in one call, and on newer
 * kernels "power_core" with one event per core of AMD's. The kernel folds what runs
 * over into 64 bits. See arch/x86/events/rapl.c of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "base/text/base_number.h"
#include "source/cpu/source_rapl.h"

enum { GROUP_MAX = 8 };

struct event {
    const char *name;
    enum wm_rapl_domain domain;
};

/* The package first: the group is opened on it where there is one. */
static const struct event package_events[] = {
    { "energy-pkg", WM_RAPL_PACKAGE }, { "energy-cores", WM_RAPL_CORES },
    { "energy-gpu", WM_RAPL_UNCORE },  { "energy-ram", WM_RAPL_DRAM },
    { "energy-psys", WM_RAPL_PSYS },
};
static const struct event core_events[] = { { "energy-core", WM_RAPL_CORE } };

/* A PMU and what its files say. */
struct pmu {
    char path[256];
    uint32_t type;
    const struct event *events;
    size_t event_count;
};

/* What the files of one event say. */
struct known_event {
    uint64_t config;
    double unit_j;
};

static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return wm_file_read_line(AT_FDCWD, path, line, size);
}

static int open_pmu(const char *sysfs, const char *name, struct pmu *pmu,
                    struct wm_error *err)
{
    char line[64];
    const char *end;
    uint64_t type;

    snprintf(pmu->path, sizeof(pmu->path), "%.200s/bus/event_source/devices/%s", sysfs,
             name);
    if (!read_line(pmu->path, "type", line, sizeof(line)))
        return wm_fail(err, WM_ENODEV, "there is no perf PMU %s", name);
    if (!wm_text_u64(line, &end, &type) || *end != '\0' || type > UINT32_MAX)
        return wm_fail(err, WM_EFORMAT, "%s/type: '%s' is no number", pmu->path, line);
    pmu->type = (uint32_t)type;
    return WM_OK;
}

/* "event=0x02" */
static bool parse_config(const char *line, uint64_t *ret_config)
{
    static const char start[] = "event=0x";
    const char *digits = line + strlen(start);

    if (strncmp(line, start, strlen(start)) != 0 || strlen(digits) == 0 ||
        strlen(digits) > 4 || digits[strspn(digits, "0123456789abcdef")] != '\0')
        return false;
    *ret_config = strtoul(digits, NULL, 16);
    return true;
}

/* False where the PMU has no such event, or its files are not understood. */
static bool know_event(const struct pmu *pmu, const struct event *event,
                       struct known_event *ret_event)
{
    char name[64], line[64];

    snprintf(name, sizeof(name), "events/%s", event->name);
    if (!read_line(pmu->path, name, line, sizeof(line)) ||
        !parse_config(line, &ret_event->config))
        return false;
    snprintf(name, sizeof(name), "events/%s.unit", event->name);
    if (!read_line(pmu->path, name, line, sizeof(line)) || strcmp(line, "Joules") != 0)
        return false;
    snprintf(name, sizeof(name), "events/%s.scale", event->name);
    return read_line(pmu->path, name, line, sizeof(line)) &&
           wm_number_parse(line, strlen(line), &ret_event->unit_j) &&
           ret_event->unit_j > 0 && ret_event->unit_j <= 1;
}

static int open_event(const struct wm_rapl_places *places, uint32_t type, uint64_t config,
                      uint32_t cpu, int group)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = type,
        .config = config,
        .read_format = PERF_FORMAT_GROUP,
    };

    int fd = places->perf->open(&attr, (int)cpu, group);
    return fd < 0 ? -errno : fd;
}

static bool is_refused(int fd)
{
    return fd == -EACCES || fd == -EPERM;
}

/* The kernel has no such event, which is not to say that it cannot open it now. */
static bool is_unknown(int fd)
{
    return fd == -ENOENT || fd == -EINVAL || fd == -EOPNOTSUPP;
}

/* Says which right is missing: the paranoia is only read where the user has not got
 * CAP_PERFMON. */
static int fail_refused(const struct wm_rapl_places *places, struct wm_error *err)
{
    char line[64];
    const char *end;
    int64_t level;

    if (read_line(places->procfs, "sys/kernel/perf_event_paranoid", line, sizeof(line)) &&
        wm_text_i64(line, &end, &level) && level > 0)
        return wm_fail(err, WM_EACCES,
                       "perf events need CAP_PERFMON, or kernel.perf_event_paranoid 0 "
                       "(it is %.8s)",
                       line);
    return wm_fail(err, WM_EACCES, "perf events are forbidden here, as containers do");
}

/* The events of one CPU, as one group. An event that may not join starts the next one;
 * one that the kernel does not know is left out. Each package has one of its own: where
 * that, or any other, cannot be opened it fails, rather than go missing from the sum of
 * all. */
static int add_events(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                      const struct pmu *pmu, const struct wm_rapl_cpu *cpu,
                      struct wm_error *err)
{
    size_t leader = set->count; /* the leader's place, or that of the next one */

    for (size_t i = 0; i < pmu->event_count; i++) {
        const struct event *event = &pmu->events[i];
        struct known_event known;
        struct wm_rapl_counter counter = { .domain = event->domain,
                                           .package = cpu->package,
                                           .die = cpu->die,
                                           .range = UINT64_MAX,
                                           .folded = true };

        if (!wm_rapl_set_wants(set, event->domain, cpu->package, cpu->die) ||
            !know_event(pmu, event, &known))
            continue;
        bool joins = set->count > leader;
        counter.fd = open_event(places, pmu->type, known.config, cpu->cpu,
                                joins ? set->counters[leader].fd : -1);
        if (joins && counter.fd < 0) {
            joins = false;
            counter.fd = open_event(places, pmu->type, known.config, cpu->cpu, -1);
        }
        if (is_refused(counter.fd))
            return fail_refused(places, err);
        if (is_unknown(counter.fd) && event->domain != WM_RAPL_PACKAGE)
            continue;
        counter.unit_j = known.unit_j;
        snprintf(counter.name, sizeof(counter.name), "perf event %s of CPU %" PRIu32,
                 event->name, cpu->cpu);
        int status = wm_rapl_set_add(set, &counter, err);
        if (status < 0)
            return status;
        if (joins)
            set->counters[leader].followers++;
        else
            leader = counter.fd < 0 ? set->count : set->count - 1;
    }
    return WM_OK;
}

static int find_in(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                   const char *name, struct pmu *pmu, bool is_cores, struct wm_error *err)
{
    struct wm_rapl_cpu *cpus = NULL;
    char mask[300];
    size_t count = 0;

    int status = open_pmu(places->sysfs, name, pmu, err);
    if (status < 0)
        return status;
    snprintf(mask, sizeof(mask), "%s/cpumask", pmu->path);
    status = wm_rapl_cpus(places, mask, is_cores, &cpus, &count, err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = add_events(set, places, pmu, &cpus[i], err);
    free(cpus);
    return status;
}

static int find_packages(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                         struct wm_error *err)
{
    struct pmu pmu = { .events = package_events,
                       .event_count = sizeof(package_events) / sizeof(package_events[0]) };

    int status = find_in(set, places, "power", &pmu, false, err);
    if (status < 0 || wm_rapl_set_can_be_read(set))
        return status;
    if (set->count == 0 || is_unknown(set->counters[0].fd))
        return wm_fail(err, WM_ENODEV, "perf PMU power has no event that can be opened");
    errno = -set->counters[0].fd;
    return wm_fail_errno(err, set->counters[0].name);
}

/* That cores cannot be read costs nothing but them. */
static int find_cores(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                      struct wm_error *err)
{
    struct pmu pmu = { .events = core_events, .event_count = 1 };
    struct wm_error ignored;

    int status = find_in(set, places, "power_core", &pmu, true, &ignored);
    return status == WM_ENOMEM ? wm_fail_memory(err, "rapl") : WM_OK;
}

static int perf_find(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                     struct wm_error *err)
{
    if (!places->perf)
        return wm_fail(err, WM_ENODEV, "no perf events: %s is not this machine's /sys",
                       places->sysfs);
    int status = find_packages(set, places, err);
    return status < 0 ? status : find_cores(set, places, err);
}

static void perf_read(const struct wm_rapl_places *places, struct wm_rapl_counter *counter)
{
    uint64_t values[1 + GROUP_MAX] = { 0 };
    size_t count = 1 + counter->followers;
    size_t size = (1 + count) * sizeof(values[0]);

    ssize_t length = places->perf->read(counter->fd, values, size);
    int number = errno;
    for (size_t i = 0; i < count; i++) {
        struct wm_rapl_counter *one = &counter[i];

        one->value = values[1 + i];
        errno = number;
        if (length < 0)
            wm_fail_errno(&one->err, one->name);
        else if ((size_t)length != size || values[0] != count)
            wm_fail(&one->err, WM_EIO, "%s: no longer counted (CPU offline?)", one->name);
    }
}

const struct wm_rapl_way wm_rapl_perf = {
    .name = "perf events",
    .find = perf_find,
    .read = perf_read,
};
