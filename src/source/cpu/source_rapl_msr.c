/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl_msr.c - energy registers themselves, through the msr device of a CPU
 * of each package; for root, on kernels where nothing else offers them. See the
 * chapter on RAPL in volume 3B of Intel's manual, and AMD's PPR of family 17h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/cpu/source_rapl.h"

/* The 32 bits of a register that count; above them is whatever the CPU likes. */
#define COUNTED UINT32_MAX

enum {
    INTEL_UNIT = 0x606,
    INTEL_CAPABILITIES = 0x10a,
    INTEL_MISC_PACKAGE = 0xbc,
};
#define HAS_FILTER (UINT64_C(1) << 10)
#define IS_FILTERED UINT64_C(1)

#define AMD_UNIT 0xc0010299

/* AMD's has one more for each core. */
static const struct {
    enum wm_rapl_domain domain;
    off_t intel, amd; /* its number; 0: there is none */
} registers[] = {
    { WM_RAPL_PACKAGE, 0x611, 0xc001029b },
    { WM_RAPL_CORES, 0x639, 0 },
    { WM_RAPL_UNCORE, 0x641, 0 },
    { WM_RAPL_DRAM, 0x619, 0 },
    { WM_RAPL_PSYS, 0x64d, 0 },
};
#define AMD_CORE 0xc001029a

/* Intel's models (of family 6) that count a domain in a unit of its own, as the
 * kernel knows them. What is in no list counts in the unit of INTEL_UNIT. */
static const struct {
    uint64_t model;
    enum wm_rapl_domain domain;
    double unit_j; /* 0: the kernel's drivers disagree, so nobody knows */
} odd_units[] = {
    { 0x3f, WM_RAPL_DRAM, 0x1p-16 }, /* Haswell-EP */
    { 0x4f, WM_RAPL_DRAM, 0x1p-16 }, /* Broadwell-EP */
    { 0x56, WM_RAPL_DRAM, 0 },       /* Broadwell-DE */
    { 0x55, WM_RAPL_DRAM, 0x1p-16 }, /* Skylake-SP, Cascade Lake, Cooper Lake */
    { 0x57, WM_RAPL_DRAM, 0x1p-16 }, /* Knights Landing */
    { 0x85, WM_RAPL_DRAM, 0x1p-16 }, /* Knights Mill */
    { 0x6a, WM_RAPL_DRAM, 0x1p-16 }, /* Ice Lake-SP */
    { 0x6c, WM_RAPL_DRAM, 0x1p-16 }, /* Ice Lake-D */
    { 0x8f, WM_RAPL_PSYS, 1 },       /* Sapphire Rapids */
    { 0xcf, WM_RAPL_PSYS, 1 },       /* Emerald Rapids */
};

/* Silvermont and Airmont have the exponent of another unit in INTEL_UNIT. */
static const uint64_t unknown_models[] = { 0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d };

static int open_msr(const struct wm_rapl_places *places, uint32_t cpu, char *path,
                    size_t size)
{
    snprintf(path, size, "%.100s/cpu/%" PRIu32 "/msr", places->dev, cpu);
    return wm_file_open_at(AT_FDCWD, path);
}

/* WM_OK, or a negative errno value. A register that the CPU has not got is EIO. */
static int read_register(int fd, off_t offset, uint64_t *ret_value)
{
    ssize_t length;

    do
        length = pread(fd, ret_value, sizeof(*ret_value), offset);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    return length == sizeof(*ret_value) ? WM_OK : -EIO;
}

#if defined(__x86_64__) || defined(__i386__)
static const bool is_x86 = true;
#else
static const bool is_x86 = false;
#endif

static bool is_known(const struct wm_cpuinfo *cpu)
{
    if (wm_rapl_is_amd(cpu))
        return cpu->family >= 0x17;
    if (strcmp(cpu->vendor, "GenuineIntel") != 0 || cpu->family != 6)
        return false;
    for (size_t i = 0; i < sizeof(unknown_models) / sizeof(unknown_models[0]); i++) {
        if (unknown_models[i] == cpu->model)
            return false;
    }
    return true;
}

/* 0 where it is not known. */
static double unit_of(const struct wm_cpuinfo *cpu, enum wm_rapl_domain domain,
                      uint64_t unit)
{
    if (!wm_rapl_is_amd(cpu)) {
        for (size_t i = 0; i < sizeof(odd_units) / sizeof(odd_units[0]); i++) {
            if (odd_units[i].model == cpu->model && odd_units[i].domain == domain)
                return odd_units[i].unit_j;
        }
    }
    return ldexp(1, -(int)(unit >> 8 & 0x1f));
}

static int fail_open(int number, const char *path, struct wm_error *err)
{
    if (number == -EACCES || number == -EPERM)
        return wm_fail(err, WM_EACCES, "%s: needs root and CAP_SYS_RAWIO", path);
    if (number == -ENOENT || number == -ENXIO || number == -ENODEV)
        return wm_fail(err, WM_ENODEV, "there is no %s (modprobe msr)", path);
    errno = -number;
    return wm_fail_errno(err, path);
}

/* Whether the CPU of that package adds noise to its registers. */
static bool is_filtered(int fd)
{
    uint64_t value;

    return read_register(fd, INTEL_CAPABILITIES, &value) == WM_OK && (value & HAS_FILTER) &&
           read_register(fd, INTEL_MISC_PACKAGE, &value) == WM_OK && (value & IS_FILTERED);
}

static off_t unit_register(const struct wm_cpuinfo *cpu)
{
    return wm_rapl_is_amd(cpu) ? AMD_UNIT : INTEL_UNIT;
}

/* Reads the unit, and the register once. */
static int read_counter(const struct wm_cpuinfo *cpu, struct wm_rapl_counter *counter)
{
    uint64_t unit;

    int status = read_register(counter->fd, unit_register(cpu), &unit);
    if (status < 0)
        return status;
    counter->unit_j = unit_of(cpu, counter->domain, unit);
    return read_register(counter->fd, counter->offset, &counter->value);
}

/* Adds the register of that CPU, where it has one. Each package has one of its own: if
 * that cannot be read it fails, rather than go missing from the sum of all. */
static int add_register(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                        enum wm_rapl_domain domain, off_t offset,
                        const struct wm_rapl_cpu *cpu, struct wm_error *err)
{
    struct wm_rapl_counter counter = { .domain = domain,
                                       .package = cpu->package,
                                       .die = cpu->die,
                                       .range = COUNTED,
                                       .offset = offset };
    char path[128];

    if (!wm_rapl_set_wants(set, domain, cpu->package, cpu->die))
        return WM_OK;
    counter.fd = open_msr(places, cpu->cpu, path, sizeof(path));
    if (counter.fd < 0)
        return fail_open(counter.fd, path, err);
    if (domain == WM_RAPL_PACKAGE && !wm_rapl_is_amd(&places->cpu))
        set->is_filtered |= is_filtered(counter.fd);
    int status = read_counter(&places->cpu, &counter);
    bool is_missing =
        status == -EIO ? domain != WM_RAPL_PACKAGE : status == WM_OK && counter.unit_j <= 0;
    if (status < 0 || is_missing) {
        close(counter.fd);
        counter.fd = status;
    }
    if (is_missing)
        return WM_OK;
    snprintf(counter.name, sizeof(counter.name), "register 0x%" PRIx64 " of %s",
             (uint64_t)offset, path);
    return wm_rapl_set_add(set, &counter, err);
}

/* Most machines end here, before each CPU is asked where it sits. */
static int check_unit(const struct wm_rapl_places *places, uint32_t cpu,
                      struct wm_error *err)
{
    off_t offset = unit_register(&places->cpu);
    uint64_t unit;
    char path[128];

    /* Of a machine without any place for registers the CPU has not been read. */
    bool is_read = places->cpu.vendor[0] != '\0' || !is_x86;
    bool known = is_known(&places->cpu);
    int fd = is_read && !known ? -ENODEV : open_msr(places, cpu, path, sizeof(path));
    int status = known && fd >= 0 ? read_register(fd, offset, &unit) : fd;
    if (fd >= 0)
        close(fd);
    if (!known && (is_read || fd >= 0))
        return wm_fail(err, WM_ENODEV, "the registers of this CPU are not known");
    if (fd < 0)
        return fail_open(fd, path, err);
    if (status < 0)
        return wm_fail(err, WM_ENODEV,
                       "%s: no energy unit in register 0x%" PRIx64 " (virtual machine?)",
                       path, (uint64_t)offset);
    return WM_OK;
}

/* Whether the CPU is the first of its core's threads. */
static bool is_first_thread(const char *sysfs, uint32_t cpu)
{
    char path[512], text[256];
    uint32_t first;
    size_t count;

    snprintf(path, sizeof(path),
             "%s/devices/system/cpu/cpu%" PRIu32 "/topology/thread_siblings_list", sysfs,
             cpu);
    return wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
           wm_parse_cpu_list(text, &first, 1, &count) == WM_OK && count > 0 && first == cpu;
}

static int add_cores(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                     const struct wm_rapl_cpu *cpus, size_t count, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (is_first_thread(places->sysfs, cpus[i].cpu))
            status = add_register(set, places, WM_RAPL_CORE, AMD_CORE, &cpus[i], err);
    }
    return status;
}

static int add_packages(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                        const char *online, struct wm_error *err)
{
    bool is_amd = wm_rapl_is_amd(&places->cpu);
    struct wm_rapl_cpu *cpus = NULL;
    size_t count = 0;

    int status = wm_rapl_cpus(places, online, false, &cpus, &count, err);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof(registers) / sizeof(registers[0]); k++) {
            off_t offset = is_amd ? registers[k].amd : registers[k].intel;
            if (status == WM_OK && offset)
                status =
                    add_register(set, places, registers[k].domain, offset, &cpus[i], err);
        }
    }
    free(cpus);
    return status;
}

static int msr_find(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                    struct wm_error *err)
{
    struct wm_rapl_cpu *cpus = NULL;
    char online[512];
    size_t count = 0;

    if (!places->dev)
        return wm_fail(err, WM_ENODEV, "no msr device: %s is not this machine's /sys",
                       places->sysfs);
    snprintf(online, sizeof(online), "%s/devices/system/cpu/online", places->sysfs);
    int status = wm_rapl_cpus(places, online, true, &cpus, &count, err);
    if (status == WM_OK)
        status = check_unit(places, cpus[0].cpu, err);
    if (status == WM_OK)
        status = add_packages(set, places, online, err);
    if (status == WM_OK && wm_rapl_is_amd(&places->cpu))
        status = add_cores(set, places, cpus, count, err);
    free(cpus);
    if (status == WM_OK && !wm_rapl_set_can_be_read(set))
        return wm_fail(err, WM_ENODEV, "this CPU has no energy register");
    return status;
}

static void msr_read(const struct wm_rapl_places *places, struct wm_rapl_counter *counter)
{
    uint64_t value = 0;
    (void)places;

    int status = read_register(counter->fd, counter->offset, &value);
    counter->value = value & COUNTED;
    if (status == WM_OK)
        return;
    errno = -status;
    wm_fail_errno(&counter->err, counter->name);
}

const struct wm_rapl_way wm_rapl_msr = {
    .name = "the msr device",
    .find = msr_find,
    .read = msr_read,
};
