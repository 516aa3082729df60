/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl.c - the energy of CPUs and their memory, from the counters that are
 * built into them (RAPL), by the best way that is open to this user.
 *
 * docs/cpu-energy.md says what the counters mean and how often they must be read.
 */
#include "source/cpu/source_rapl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/cpu/source_rapl_total.h"
#include "source/source_advice.h"
#include "source/source_ops.h"
#include "source/source_proc_file.h"

/* Best first. Perf events tell all domains of a package in one call, and the kernel
 * watches over what wraps; the msr device needs the most rights. */
static const struct wm_rapl_way *const ways[] = {
    &wm_rapl_perf,
    &wm_rapl_powercap,
    &wm_rapl_msr,
};

enum { WAY_COUNT = sizeof(ways) / sizeof(ways[0]) };

/* What the registers are renewed in: 1024 Hz. */
#define PERIOD_NS 976563

/* Each core costs an interrupt of it, and there may be hundreds. */
#define CORE_PERIOD_NS (100 * WM_NS_PER_MS)

/* The largest packages are made for 500 W, the largest with a GPU inside for 760;
 * twice that for milliseconds. Memory draws less, so this holds for all but psys.
 * A register of 2^32 units of 2^-16 J, AMD's, takes it for 65 s. */
#define PACKAGE_WATTS 1e3

/* A package draws more than its largest limit for moments, but never so many times that.
 * Less than a watt is no limit that a package can have. */
#define LIMIT_TIMES 10.0
#define LEAST_LIMIT_WATTS 1.0

#define LEAST_RANGE_J 65536.0

/* Bounds for registers of impossible sizes. */
#define MOST_UNREAD_S 3600.0
#define LEAST_UNREAD_S 0.1

/* psys counts all of the machine, on servers with GPUs too. Those have a unit of
 * 1 J; where the range is that of a package's register, the machine is a small one. */
#define PLATFORM_WATTS 20e3
#define SMALL_PLATFORM_WATTS 4e3
#define SMALL_RANGE_J 1e6

struct entry {
    struct wm_rapl_total total;
    struct wm_reading reading; /* the last one */
    char device[48], label[48];
};

struct rapl {
    struct wm_rapl_places places; /* without the paths, which were open()'s */
    const struct wm_rapl_way *way;
    struct wm_rapl_set set;
    struct entry *entries; /* one per counter, as are the channels */
    struct wm_channel *channels;
    char detail[512];
};

static int perf_event_open(const struct perf_event_attr *attr, int cpu, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static const struct wm_rapl_perf_calls perf_calls = { perf_event_open, read };

/* How many of them can be read, and whether any cannot. */
static size_t count_packages(const struct wm_rapl_set *set, bool *ret_lacks_one)
{
    size_t count = 0;

    *ret_lacks_one = false;
    for (size_t i = 0; i < set->count; i++) {
        if (set->counters[i].domain != WM_RAPL_PACKAGE)
            continue;
        count += set->counters[i].fd >= 0;
        *ret_lacks_one |= set->counters[i].fd < 0;
    }
    return count;
}

static bool has_package(const struct wm_rapl_set *set)
{
    bool lacks_one;

    return count_packages(set, &lacks_one) > 0;
}

static bool has_all_packages(const struct wm_rapl_set *set)
{
    bool lacks_one;

    return count_packages(set, &lacks_one) > 0 && !lacks_one;
}

/* The reason for people, of what each way said. A missing right comes first, and of
 * the msr device, which is for root, only where nothing else is there. */
static int fail_all(const struct wm_error *whys, struct wm_error *err)
{
    char list[220] = ""; /* shorter than a text, for what is said beside it */

    for (size_t i = 0; i < WAY_COUNT; i++) {
        if (whys[i].status == WM_EACCES && (ways[i] != &wm_rapl_msr || !list[0]))
            wm_text_list(list, sizeof(list), "; ", "%s", whys[i].text);
    }
    if (list[0])
        return wm_fail(err, WM_EACCES, "%s; rapl-permissions.sh can grant it", list);
    for (size_t i = 0; i < WAY_COUNT; i++) {
        if (whys[i].status != WM_ENODEV && whys[i].status != WM_ENOENT)
            return wm_fail(err, whys[i].status, "%s", whys[i].text);
    }
    for (size_t i = 0; i < WAY_COUNT; i++)
        wm_text_list(list, sizeof(list), "; ", "%s: %s", ways[i]->name, whys[i].text);
    return wm_fail(err, WM_ENODEV, "no RAPL: %s", list);
}

void wm_rapl_read(const struct wm_rapl_way *way, const struct wm_rapl_places *places,
                  struct wm_rapl_counter *counter)
{
    for (size_t i = 0; i <= counter->followers; i++)
        counter[i].err.status = WM_OK;
    if (counter->fd >= 0) {
        way->read(places, counter);
        return;
    }
    if (counter->fd == WM_RAPL_ABSENT) {
        wm_fail(&counter->err, WM_ENOENT, "%s", counter->name);
        return;
    }
    errno = -counter->fd;
    wm_fail_errno(&counter->err, counter->name);
}

/* Whether the packages' registers say 0, as those of a virtual machine do that are there
 * in name alone: a live one says so once in years. Not for perf events, which begin at 0;
 * the kernel leaves dead ones out there. */
static bool is_dead(const struct wm_rapl_way *way, const struct wm_rapl_places *places,
                    struct wm_rapl_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct wm_rapl_counter *counter = &set->counters[i];
        if (counter->domain != WM_RAPL_PACKAGE || counter->fd < 0)
            continue;
        wm_rapl_read(way, places, counter);
        if (counter->err.status < 0 || counter->value != 0)
            return false;
    }
    return has_package(set);
}

static bool knows_package(const struct wm_rapl_set *set, uint32_t package)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->counters[i].domain == WM_RAPL_PACKAGE &&
            set->counters[i].package == package)
            return true;
    }
    return false;
}

/* Adds the packages of the machine that this way does not know as counters that cannot be
 * read: else the sum over the others would pass for all. */
static int add_absent(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                      struct wm_error *err)
{
    struct wm_rapl_cpu *cpus = NULL;
    char online[512];
    size_t count = 0;
    int status = WM_OK;

    snprintf(online, sizeof(online), "%s/devices/system/cpu/online", places->sysfs);
    if (!has_package(set) || wm_rapl_cpus(places, online, false, &cpus, &count, NULL) < 0)
        return WM_OK;
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        struct wm_rapl_counter absent = { .package = cpus[i].package,
                                          .die = WM_RAPL_NO_DIE,
                                          .fd = WM_RAPL_ABSENT,
                                          .unit_j = 1 };
        snprintf(absent.name, sizeof(absent.name), "it has no counter here");
        if (!knows_package(set, absent.package))
            status = wm_rapl_set_add(set, &absent, err);
    }
    free(cpus);
    return status;
}

static int find_by(const struct wm_rapl_way *way, const struct wm_rapl_places *places,
                   struct wm_rapl_set *set, struct wm_error *err)
{
    int status = way->find(set, places, err);

    if (status == WM_OK && way != &wm_rapl_perf && is_dead(way, places, set))
        return wm_fail(err, WM_ENODEV, "its counters stay at 0: dead");
    return status < 0 ? status : add_absent(set, places, err);
}

static bool is_better(const struct wm_rapl_set *set, const struct wm_rapl_set *than)
{
    bool lacks_one;

    return count_packages(set, &lacks_one) > count_packages(than, &lacks_one);
}

/* Chooses the way that reads most packages. A way without packages, which may have psys, is
 * chosen only if no other way has any. */
int wm_rapl_find(const struct wm_rapl_places *places, struct wm_rapl_set *ret_set,
                 const struct wm_rapl_way **ret_way, struct wm_error *err)
{
    struct wm_rapl_set best = { 0 };
    size_t best_way = WAY_COUNT;
    struct wm_error whys[WAY_COUNT];

    for (size_t i = 0; i < WAY_COUNT && !has_all_packages(&best); i++) {
        struct wm_rapl_set set = { 0 };

        whys[i] = (struct wm_error) { 0 };
        int status = find_by(ways[i], places, &set, &whys[i]);
        if (status == WM_OK && (best_way == WAY_COUNT || is_better(&set, &best))) {
            wm_rapl_set_release(&best);
            best = set;
            best_way = i;
            continue;
        }
        wm_rapl_set_release(&set);
        if (status == WM_ENOMEM) {
            wm_rapl_set_release(&best);
            return wm_fail(err, WM_ENOMEM, "%s", whys[i].text);
        }
    }
    if (best_way == WAY_COUNT)
        return fail_all(whys, err);
    for (size_t i = 0; i < best_way; i++) {
        if (whys[i].status == WM_EACCES)
            wm_text_list(best.refused, sizeof(best.refused), "", " (%s)", whys[i].text);
    }
    *ret_set = best;
    *ret_way = ways[best_way];
    return WM_OK;
}

struct wm_rapl_total wm_rapl_total_of(const struct wm_rapl_counter *counter)
{
    bool is_known = counter->range > 0 && !counter->folded;
    double range_j = is_known ? (double)counter->range * counter->unit_j : 0;
    struct wm_rapl_total total = {
        .unit_j = counter->unit_j,
        .range = counter->range,
        .most_watts = PACKAGE_WATTS,
        .may_rest = counter->domain != WM_RAPL_PACKAGE && counter->domain != WM_RAPL_PSYS,
    };

    if (counter->domain == WM_RAPL_PSYS)
        total.most_watts =
            is_known && range_j < SMALL_RANGE_J ? SMALL_PLATFORM_WATTS : PLATFORM_WATTS;
    /* The kernel loses count where the register below wraps twice between two readings,
     * and it may be the smallest one. */
    total.most_s = is_known ? range_j / total.most_watts : LEAST_RANGE_J / PACKAGE_WATTS;
    return total;
}

/* What is made of each domain. Packages of Intel are measured since Haswell (Hackenberg
 * et al. 2015, Khan et al. 2018), those of AMD are a model on Zen 2 (Schöne et al., arXiv
 * 2108.00808); the errors are our assumptions. */
static const struct {
    const char *name;       /* in the detail */
    const char *stem, *end; /* of its device and its label */
    enum wm_device_kind kind;
    enum wm_contains contains;
    double gain;
    const char *sensor;
} domains[WM_RAPL_DOMAIN_COUNT] = {
    [WM_RAPL_PACKAGE] = { "package", "package", "", WM_DEVICE_CPU, WM_CONTAINS_PACKAGE,
                          0.10, "RAPL, of a model of the CPU" },
    [WM_RAPL_CORES] = { "cores", "package", "core", WM_DEVICE_CPU_PART, WM_CONTAINS_DEVICE,
                        0.10, "RAPL, a part of a CPU" },
    [WM_RAPL_UNCORE] = { "uncore", "package", "uncore", WM_DEVICE_CPU_PART,
                         WM_CONTAINS_DEVICE, 0.10, "RAPL, a part of a CPU" },
    [WM_RAPL_DRAM] = { "dram", "dram", "", WM_DEVICE_DRAM, WM_CONTAINS_DEVICE, 0.20,
                       "RAPL, memory" },
    [WM_RAPL_CORE] = { "core", "core", "", WM_DEVICE_CPU_PART, WM_CONTAINS_DEVICE, 0.10,
                       "RAPL, a part of a CPU" },
    [WM_RAPL_PSYS] = { "psys", "psys", "", WM_DEVICE_PLATFORM, WM_CONTAINS_PLATFORM, 0.10,
                       "RAPL, platform" },
};

/* "package-1-die-0/core" and "package1_die0_core". */
static void name_entry(const struct wm_rapl_counter *counter, struct entry *entry)
{
    const char *stem = domains[counter->domain].stem, *end = domains[counter->domain].end;
    size_t device_size = sizeof(entry->device), label_size = sizeof(entry->label);

    snprintf(entry->device, device_size, "%s", stem);
    snprintf(entry->label, label_size, "%s", stem);
    if (counter->domain == WM_RAPL_PSYS)
        return;
    wm_text_list(entry->device, device_size, "", "-%" PRIu32, counter->package);
    wm_text_list(entry->label, label_size, "", "%" PRIu32, counter->package);
    if (counter->die != WM_RAPL_NO_DIE) {
        wm_text_list(entry->device, device_size, "", "-die-%d", counter->die);
        wm_text_list(entry->label, label_size, "", "_die%d", counter->die);
    }
    if (end[0]) {
        wm_text_list(entry->device, device_size, "", "/%s", end);
        wm_text_list(entry->label, label_size, "", "_%s", end);
    }
}

static struct wm_sensor sensor_of(const struct wm_rapl_counter *counter,
                                  const struct wm_cpuinfo *cpu)
{
    bool is_measured =
        counter->domain == WM_RAPL_PACKAGE && strcmp(cpu->vendor, "GenuineIntel") == 0;

    return (struct wm_sensor) {
        .kind = WM_SENSOR_BUILT_IN,
        .contains = domains[counter->domain].contains,
        .gain = is_measured ? 0.05 : domains[counter->domain].gain,
        .step = counter->unit_j,
        .text = is_measured ? "RAPL, Intel: measured since Haswell"
                            : domains[counter->domain].sensor,
    };
}

/* How soon a register can wrap is not made of that. */
static void bound_package(const char *sysfs, const struct wm_rapl_counter *counter,
                          struct wm_rapl_total *total)
{
    double limit = wm_rapl_limit(sysfs, counter);

    if (counter->domain == WM_RAPL_PACKAGE && limit >= LEAST_LIMIT_WATTS)
        total->most_watts = fmin(total->most_watts, LIMIT_TIMES * limit);
}

static void make_channel(struct rapl *rapl, const char *sysfs, size_t index)
{
    const struct wm_rapl_counter *counter = &rapl->set.counters[index];
    struct entry *entry = &rapl->entries[index];

    entry->total = wm_rapl_total_of(counter);
    bound_package(sysfs, counter, &entry->total);
    name_entry(counter, entry);
    rapl->channels[index] = (struct wm_channel) {
        .source = wm_source_rapl.name,
        .device = entry->device,
        .label = entry->label,
        .model = rapl->places.cpu.name[0] ? rapl->places.cpu.name : NULL,
        .metric = "energy",
        .unit = "J",
        .device_kind = domains[counter->domain].kind,
        .kind = WM_COUNTER,
        .period_ns = counter->domain == WM_RAPL_CORE ? CORE_PERIOD_NS : PERIOD_NS,
        .sensor = sensor_of(counter, &rapl->places.cpu),
    };
}

/* "powercap: 2 package, 2 dram (perf events need CAP_PERFMON, ...)" */
static void describe(struct rapl *rapl)
{
    const char *separator = ": ";
    size_t size = sizeof(rapl->detail);

    snprintf(rapl->detail, size, "%s", rapl->way->name);
    for (size_t domain = 0; domain < WM_RAPL_DOMAIN_COUNT; domain++) {
        size_t count = 0;
        for (size_t i = 0; i < rapl->set.count; i++)
            count += rapl->set.counters[i].domain == domain;
        if (count == 0)
            continue;
        wm_text_list(rapl->detail, size, separator, "%zu %s", count, domains[domain].name);
        separator = ", ";
    }
    wm_text_list(rapl->detail, size, "", "%s", rapl->set.refused);
    if (rapl->set.is_filtered)
        wm_text_list(rapl->detail, size, "; ",
                     "this CPU adds noise to its counters (energy filtering is on)");
    else if (rapl->places.cpu.has_sgx)
        wm_text_list(rapl->detail, size, "; ",
                     "this CPU has SGX in use and may add noise to its counters");
}

static bool exists(const char *folder, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0 || errno == EACCES;
}

/* Whether any way may find something: most virtual machines have none of the three, and
 * the kernel takes its time to describe a CPU. Each CPU that is online has a folder under
 * /dev/cpu, with the device in it. */
static bool has_place(const struct wm_rapl_places *places)
{
    if (exists(places->sysfs, "bus/event_source/devices/power") ||
        exists(places->sysfs, "class/powercap"))
        return true;
    return places->dev &&
           exists(places->dev, exists(places->dev, "cpu/0") ? "cpu/0/msr" : "cpu");
}

/* Nothing is known of the CPU where its file is missing or odd, as on ARM. */
static void read_cpu(const char *procfs, struct wm_cpuinfo *cpu)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/cpuinfo", procfs);
    wm_proc_cpuinfo(AT_FDCWD, path, cpu);
}

/* Half of the time in which no register can wrap twice, as a reading may be late. */
static int64_t unread_ns(const struct rapl *rapl)
{
    double least_s = HUGE_VAL;

    for (size_t i = 0; i < rapl->set.count; i++)
        least_s = fmin(least_s, rapl->entries[i].total.most_s);
    return (int64_t)(fmin(fmax(least_s / 2, LEAST_UNREAD_S), MOST_UNREAD_S) * 1e9);
}

/* Lets the counters that cannot be read say why from the start. Returns why a package's or
 * the memory's is denied, or NULL. */
static const char *note_unreadable(struct rapl *rapl)
{
    const char *denied = NULL;

    for (size_t i = 0; i < rapl->set.count; i++) {
        struct wm_rapl_counter *counter = &rapl->set.counters[i];
        if (counter->fd >= 0)
            continue;
        wm_rapl_read(rapl->way, &rapl->places, counter);
        if (counter->err.status == WM_EACCES && !denied &&
            (counter->domain == WM_RAPL_PACKAGE || counter->domain == WM_RAPL_DRAM))
            denied = counter->err.text;
    }
    return denied;
}

static int rapl_open(void *state, const struct wm_source_config *config,
                     struct wm_source_found *ret_found, struct wm_error *err)
{
    bool is_here = wm_file_is_same(config->sysfs, "/sys");
    struct rapl *rapl = state;

    rapl->places = (struct wm_rapl_places) {
        .sysfs = config->sysfs,
        .procfs = config->procfs,
        .perf = is_here ? &perf_calls : NULL,
        .dev = is_here ? "/dev" : NULL,
    };
    if (has_place(&rapl->places))
        read_cpu(config->procfs, &rapl->places.cpu);
    int status = wm_rapl_find(&rapl->places, &rapl->set, &rapl->way, err);
    if (status < 0)
        return status;

    rapl->places.sysfs = rapl->places.procfs = rapl->places.dev = NULL;
    rapl->entries = calloc(rapl->set.count, sizeof(*rapl->entries));
    rapl->channels = calloc(rapl->set.count, sizeof(*rapl->channels));
    if (!rapl->entries || !rapl->channels)
        return wm_fail_memory(err, "rapl");
    for (size_t i = 0; i < rapl->set.count; i++)
        make_channel(rapl, config->sysfs, i);
    describe(rapl);
    *ret_found = (struct wm_source_found) { .channels = rapl->channels,
                                            .channel_count = rapl->set.count,
                                            .detail = rapl->detail,
                                            .unread_ns = unread_ns(rapl),
                                            .denied = note_unreadable(rapl) };
    return WM_OK;
}

static void take_reading(struct entry *entry, struct wm_rapl_counter *counter,
                         int64_t when_ns)
{
    struct wm_reading *reading = &entry->reading;

    if (counter->err.status == WM_OK)
        wm_rapl_total_add(&entry->total, counter->value, when_ns, &counter->err);
    *reading = (struct wm_reading) { .when_ns = when_ns };
    reading->state = wm_reading_state_of(counter->err.status);
    if (reading->state == WM_READING_FAILED && entry->total.has_jumped)
        reading->state = WM_READING_JUMPED;
    if (reading->state == WM_READING_OK)
        reading->value = wm_rapl_total_joules(&entry->total);
}

static int rapl_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    struct rapl *rapl = state;
    size_t next;
    (void)err; /* whatever fails here fails for one channel */

    for (size_t i = 0; i < rapl->set.count; i = next) {
        struct wm_rapl_counter *counter = &rapl->set.counters[i];
        const struct wm_reading *last = &rapl->entries[i].reading;
        int64_t when_ns = wm_clock_monotonic_ns();

        next = i + 1 + counter->followers;
        bool is_new = counter->domain != WM_RAPL_CORE || last->state == WM_READING_NONE ||
                      when_ns - last->when_ns >= CORE_PERIOD_NS;
        if (is_new)
            wm_rapl_read(rapl->way, &rapl->places, counter);
        for (size_t k = i; k < next; k++) {
            if (is_new)
                take_reading(&rapl->entries[k], &rapl->set.counters[k], when_ns);
            readings[k] = rapl->entries[k].reading;
        }
    }
    return WM_OK;
}

static const char *rapl_why(const void *state, size_t channel)
{
    const struct rapl *rapl = state;
    const struct wm_error *err = &rapl->set.counters[channel].err;

    return err->status < 0 ? err->text : NULL;
}

static void rapl_close(void *state)
{
    struct rapl *rapl = state;

    wm_rapl_set_release(&rapl->set);
    free(rapl->entries);
    free(rapl->channels);
}

enum { PATH_SIZE = 512 };

/* As it is installed beside the program; false where it is not. */
static bool find_script(const char *program, char *path, size_t size)
{
    const char *name = strrchr(program, '/');
    const char *folder = name ? memrchr(program, '/', (size_t)(name - program)) : NULL;

    if (!folder)
        return false;
    int length = snprintf(path, size, "%.*s/share/wattmeter/rapl-permissions.sh",
                          (int)(folder - program), program);
    return length < (int)size && access(path, R_OK) == 0;
}

/* To this user or a group, never to all: who reads the counters closely can learn
 * what others compute. */
static void advise_powercap(const struct wm_source_case *asked, const char *program)
{
    static const char problem[] =
        "the energy counters of the CPU in powercap are for root alone, as they reveal "
        "much of what is computed; rapl-permissions.sh opens them to a group for good";
    char script[PATH_SIZE], user[WM_PERMISSION_NAME_SIZE];

    if (!wm_permission_is_refused(asked->config->sysfs, "class/powercap/*:*/energy_uj"))
        return;
    wm_permission_user(user, sizeof(user));
    if (wm_file_is_same(asked->config->sysfs, "/sys") &&
        find_script(program, script, sizeof(script)))
        wm_advice_add(asked->advice, problem, "sudo sh %s --user %s   # then log in again",
                      script, user);
    wm_advice_add(asked->advice, problem,
                  "sudo chown %s %s/class/powercap/*:*/energy_uj   # until the next start",
                  user, asked->config->sysfs);
}

/* The capability is for one program; the level of the whole kernel, which opens the
 * counters to everybody, is advised only where there is no such program. */
static void advise_perf(const struct wm_source_case *asked, const char *program)
{
    char pmu[PATH_SIZE];

    if (snprintf(pmu, sizeof(pmu), "%s/bus/event_source/devices/power/type",
                 asked->config->sysfs) >= PATH_SIZE ||
        access(pmu, F_OK) != 0 || !wm_permission_is_paranoid(asked->config->procfs, 0))
        return;
    if (wm_permission_is_ours(program))
        wm_permission_capability(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among them, "
            "for root and programs with CAP_PERFMON",
            "cap_perfmon+ep", program);
    else
        wm_advice_add(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among "
            "them, for root; this opens them to every user",
            "sudo sysctl kernel.perf_event_paranoid=0");
}

/* What keeps the counters from being read. */
static void rapl_advise(const struct wm_source_case *asked)
{
    char program[WM_ADVICE_SIZE];

    if (!asked->lacks_some)
        return;
    wm_permission_program(program, sizeof(program));
    advise_powercap(asked, program);
    advise_perf(asked, program);
    if (asked->advice->count == 0 && wm_permission_is_refused("/dev", "cpu/*/msr"))
        wm_advice_add(asked->advice,
                      "the energy counters of the CPU can be read by /dev/cpu/*/msr only, "
                      "which is for root and programs with CAP_SYS_RAWIO",
                      NULL);
}

const struct wm_source_ops wm_source_rapl = {
    .name = "rapl",
    .summary = "energy of CPUs and memory, by their own counters (RAPL)",
    .traits = { .cpu_sensor = WM_SENSOR_BUILT_IN },
    .advise = rapl_advise,
    .state_size = sizeof(struct rapl),
    .open = rapl_open,
    .read = rapl_read,
    .why = rapl_why,
    .close = rapl_close,
};
