/* SPDX-License-Identifier: Apache-2.0 */
/* source_rapl_set.c - the list of registers, and which CPU stands for which
 * package; what the ways of source_rapl.h share. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/cpu/source_rapl.h"

/* More than the largest machine has: 64 packages, 1024 cores. */
#define MAX_REGISTERS 2048

/* More than Linux can be built for, as in wm_parse_cpu_list(). */
#define MAX_CPUS ((size_t)65536)

void wm_rapl_set_release(struct wm_rapl_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->counters[i].fd >= 0)
            close(set->counters[i].fd);
    }
    free(set->counters);
    *set = (struct wm_rapl_set) { 0 };
}

int wm_rapl_set_add(struct wm_rapl_set *set, const struct wm_rapl_counter *counter,
                    struct wm_error *err)
{
    bool is_full = set->count == MAX_REGISTERS;

    if (!is_full && wm_array_reserve(&set->counters, set->count, &set->room,
                                     sizeof(*set->counters)) == WM_OK) {
        set->counters[set->count++] = *counter;
        return WM_OK;
    }
    if (counter->fd >= 0)
        close(counter->fd);
    if (is_full)
        return wm_fail(err, WM_EFORMAT, "more than %d energy registers", MAX_REGISTERS);
    return wm_fail_memory(err, "rapl");
}

bool wm_rapl_set_wants(const struct wm_rapl_set *set, enum wm_rapl_domain domain,
                       uint32_t package, int die)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct wm_rapl_counter *counter = &set->counters[i];
        if (counter->domain == domain && counter->package == package && counter->die == die)
            return false;
    }
    return domain != WM_RAPL_PSYS || package == 0;
}

bool wm_rapl_set_can_be_read(const struct wm_rapl_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->counters[i].fd >= 0)
            return true;
    }
    return false;
}

bool wm_rapl_is_amd(const struct wm_cpuinfo *cpu)
{
    return strcmp(cpu->vendor, "AuthenticAMD") == 0 ||
           strcmp(cpu->vendor, "HygonGenuine") == 0;
}

/* A number of the CPU's topology; 0 where there is none, as in small machines. */
static int read_place(const char *sysfs, uint32_t cpu, const char *what)
{
    char path[512], text[32];
    const char *end;
    uint64_t number;

    snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%" PRIu32 "/topology/%s", sysfs,
             cpu, what);
    if (wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
        wm_text_u64(text, &end, &number) && *end == '\n' && number <= UINT16_MAX)
        return (int)number;
    return 0;
}

static bool has_several_dies(const struct wm_rapl_cpu *cpus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (cpus[i].package == cpus[j].package && cpus[i].die != cpus[j].die)
                return true;
        }
    }
    return false;
}

/* Keeps the first CPU of each place; they come in ascending order. */
static size_t keep_first(struct wm_rapl_cpu *cpus, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < kept &&
               (cpus[j].package != cpus[i].package || cpus[j].die != cpus[i].die))
            j++;
        if (j == kept)
            cpus[kept++] = cpus[i];
    }
    return kept;
}

static size_t keep_packages(struct wm_rapl_cpu *cpus, size_t count, bool is_amd)
{
    count = keep_first(cpus, count);
    if (!is_amd && has_several_dies(cpus, count))
        return count;
    for (size_t i = 0; i < count; i++)
        cpus[i].die = WM_RAPL_NO_DIE;
    return keep_first(cpus, count);
}

static int list_cpus(const char *list, uint32_t **ret_cpus, size_t *ret_count,
                     struct wm_error *err)
{
    char *text = NULL;
    size_t length, count = 0;
    int status = wm_file_slurp(list, 1 << 20, &text, &length, err);

    if (status < 0)
        return status;
    if (wm_parse_cpu_list(text, NULL, 0, &count) < 0 || count == 0 || count > MAX_CPUS) {
        free(text);
        return wm_fail(err, WM_EFORMAT, "%s: not a list of CPUs", list);
    }
    uint32_t *cpus = calloc(count, sizeof(*cpus));
    if (cpus)
        wm_parse_cpu_list(text, cpus, count, &count);
    free(text);
    if (!cpus)
        return wm_fail_memory(err, "rapl");
    *ret_cpus = cpus;
    *ret_count = count;
    return WM_OK;
}

int wm_rapl_cpus(const struct wm_rapl_places *places, const char *list, bool each,
                 struct wm_rapl_cpu **ret_cpus, size_t *ret_count, struct wm_error *err)
{
    const char *sysfs = places->sysfs;
    uint32_t *numbers = NULL;
    size_t count = 0;

    int status = list_cpus(list, &numbers, &count, err);
    if (status < 0)
        return status;
    struct wm_rapl_cpu *cpus = calloc(count, sizeof(*cpus));
    for (size_t i = 0; cpus && i < count; i++) {
        cpus[i] = (struct wm_rapl_cpu) { numbers[i], numbers[i], WM_RAPL_NO_DIE };
        if (each)
            continue;
        cpus[i].package = (uint32_t)read_place(sysfs, numbers[i], "physical_package_id");
        cpus[i].die = read_place(sysfs, numbers[i], "die_id");
    }
    free(numbers);
    if (!cpus)
        return wm_fail_memory(err, "rapl");

    if (!each)
        count = keep_packages(cpus, count, wm_rapl_is_amd(&places->cpu));
    *ret_cpus = cpus;
    *ret_count = count;
    return WM_OK;
}
