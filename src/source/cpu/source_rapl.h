/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl.h - the ways to the energy registers of a CPU (RAPL), and what they
 * find. The same registers can be read as perf events, in powercap's files and in
 * the msr device; which of the three a user may read differs from machine to
 * machine.
 *
 * To add a way: one file with one `const struct wm_rapl_way` at its end, named at
 * the end of this file and in the table of source_rapl.c.
 */
#ifndef WM_SOURCE_RAPL_H
#define WM_SOURCE_RAPL_H

#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "source/cpu/source_rapl_total.h"
#include "source/source_kernel_text.h"

/* What a register counts the energy of. Only packages, memory and the platform
 * stand side by side; the platform includes all, a package its cores and uncore. */
enum wm_rapl_domain {
    WM_RAPL_PACKAGE,
    WM_RAPL_CORES,  /* of a package, all together */
    WM_RAPL_UNCORE, /* on most CPUs that have it, the graphics unit */
    WM_RAPL_DRAM,
    WM_RAPL_CORE, /* one core, by the lowest number of its CPUs */
    WM_RAPL_PSYS,
    WM_RAPL_DOMAIN_COUNT,
};

#define WM_RAPL_NO_DIE (-1)

/* In place of a descriptor: of a package without a counter, whose name says so. */
#define WM_RAPL_ABSENT INT_MIN

/* One register. Those that a single call reads together stand side by side. */
struct wm_rapl_counter {
    enum wm_rapl_domain domain;
    uint32_t package; /* of a WM_RAPL_CORE: its CPU */
    int die;          /* WM_RAPL_NO_DIE where a package has but one */

    double unit_j;  /* what it counts in */
    uint64_t range; /* its highest value, as in struct wm_rapl_total */
    bool folded;    /* the kernel has put it together from a register of 32 bits */

    int fd;           /* descriptor, or the negative errno value of opening it */
    off_t offset;     /* in the msr device: the number of the register */
    size_t followers; /* how many after this one are read by its descriptor too */
    char name[160];   /* file or event; for people */

    /* The last reading. */
    uint64_t value;
    struct wm_error err; /* status WM_OK: the value is good */
};

struct wm_rapl_set {
    struct wm_rapl_counter *counters;
    size_t count, room;
    bool is_filtered;  /* the CPU is known to add noise to its registers */
    char refused[300]; /* " (why)" of each better way that is not open to this user */
};

struct wm_rapl_perf_calls {
    int (*open)(const struct perf_event_attr *attr, int cpu, int group); /* sets errno */
    ssize_t (*read)(int fd, void *buffer, size_t size);
};

/* Where to look. A captured /sys says nothing about the registers of this machine:
 * then `perf` and `dev` are NULL. */
struct wm_rapl_places {
    const char *sysfs, *procfs;
    const struct wm_rapl_perf_calls *perf;
    const char *dev; /* "/dev" */
    struct wm_cpuinfo cpu;
};

struct wm_rapl_way {
    const char *name; /* for people */

    /* Adds all registers that it finds; WM_OK means at least one that can be read.
     * WM_ENODEV where the machine does not have this way, WM_EACCES where its user
     * may not go it. What a failure leaves in the set is released by the caller. */
    int (*find)(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                struct wm_error *err);

    /* Reads this register, which is open, and its followers: `value` of each, and `err`,
     * which is clear, where that fails. */
    void (*read)(const struct wm_rapl_places *places, struct wm_rapl_counter *counter);
};

/* Takes the best way and finds all registers. WM_ENODEV where there are none, and
 * WM_EACCES, with what is missing, where the user may read none. */
int wm_rapl_find(const struct wm_rapl_places *places, struct wm_rapl_set *ret_set,
                 const struct wm_rapl_way **ret_way, struct wm_error *err);

/* Reads a register and its followers, that way: `value` and `err` of each. */
void wm_rapl_read(const struct wm_rapl_way *way, const struct wm_rapl_places *places,
                  struct wm_rapl_counter *counter);

/* What such a register can have counted at most: fills in all but the state. */
struct wm_rapl_total wm_rapl_total_of(const struct wm_rapl_counter *counter);

/* The largest power limit of a package, in watts, as powercap shows it to everybody; 0:
 * none is known. */
double wm_rapl_limit(const char *sysfs, const struct wm_rapl_counter *package);

void wm_rapl_set_release(struct wm_rapl_set *set);

/* For the ways. Copies the counter into the set, with its descriptor, which is
 * closed where there is no room for it. */
int wm_rapl_set_add(struct wm_rapl_set *set, const struct wm_rapl_counter *counter,
                    struct wm_error *err);

/* Whether a register is to be counted: it is not in the set yet, and not psys of a second
 * package, as only the first is known to have all of the platform. */
bool wm_rapl_set_wants(const struct wm_rapl_set *set, enum wm_rapl_domain domain,
                       uint32_t package, int die);

/* Whether one at least was opened. */
bool wm_rapl_set_can_be_read(const struct wm_rapl_set *set);

/* AMD, and Hygon, whose CPUs are theirs. */
bool wm_rapl_is_amd(const struct wm_cpuinfo *cpu);

/* A CPU that stands for its package or die. */
struct wm_rapl_cpu {
    uint32_t cpu, package;
    int die;
};

/* The CPUs in the file `list`, such as "online" or a cpumask; there is at least one. Each
 * of them, as a "package" of its own, or the first of each package or die. Dies are told
 * apart only where two of the CPUs are in different ones of one package; AMD's have one
 * register together, though some kernels list it for each. The caller frees them. */
int wm_rapl_cpus(const struct wm_rapl_places *places, const char *list, bool each,
                 struct wm_rapl_cpu **ret_cpus, size_t *ret_count, struct wm_error *err);

extern const struct wm_rapl_way wm_rapl_perf;
extern const struct wm_rapl_way wm_rapl_powercap;
extern const struct wm_rapl_way wm_rapl_msr;

#endif
