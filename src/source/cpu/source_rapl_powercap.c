/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_rapl_powercap.c - energy registers in the files of the powercap class:
 * a folder per package (intel-rapl:0, whoever made the CPU) and in it one for each
 * part (intel-rapl:0:0). See Documentation/power/powercap/powercap.rst of the
 * kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "source/cpu/source_rapl.h"

/* More than there are packages with their parts; intel-rapl-mmio has them again. */
#define MAX_ZONES 1024

/* A range shorter than this would wrap within a tick. */
#define LEAST_RANGE_UJ UINT64_C(1000000)

/* Client CPUs show a package twice, by its registers (msr) and by its memory (mmio):
 * the same energy, so what an earlier prefix has is left out of the later ones. */
static const char *const prefixes[] = { "intel-rapl:", "intel-rapl-mmio:" };

/* The folder of a package ("intel-rapl:0"), or of a part of it ("intel-rapl:0:1"). */
struct zone {
    char name[48];
};

struct class
{
    const struct wm_rapl_places *places;
    struct wm_rapl_set *set;
    int dir;
    char path[256];
    struct zone package_zone;       /* to which parts belong; no name: none is taken */
    struct wm_rapl_counter package; /* of that zone */
    size_t hidden;                  /* zones whose folder is not there */
    struct wm_error denied; /* the first one; its status is WM_OK where there is none */
};

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* A package stands before its parts, and 9 before 10. */
static int compare_zones(const void *left, const void *right)
{
    const struct zone *a = left, *b = right;

    return strverscmp(a->name, b->name);
}

static int list_zones(int dir, struct zone *zones, size_t *ret_count, struct wm_error *err)
{
    struct dirent *entry;
    size_t count = 0;
    DIR *folder = wm_file_open_folder(dir, ".");

    if (!folder)
        return wm_fail_errno(err, "powercap");
    while (count < MAX_ZONES && (entry = readdir(folder)) != NULL) {
        struct zone *zone = &zones[count];
        if ((begins_with(entry->d_name, prefixes[0]) ||
             begins_with(entry->d_name, prefixes[1])) &&
            strlen(entry->d_name) < sizeof(zone->name)) {
            snprintf(zone->name, sizeof(zone->name), "%.47s", entry->d_name);
            count++;
        }
    }
    closedir(folder);
    qsort(zones, count, sizeof(*zones), compare_zones);
    *ret_count = count;
    return WM_OK;
}

/* "package-1" or, where a package has several, "package-1-die-0". "psys-1" is that
 * of a second package. */
static bool parse_package(const char *name, struct wm_rapl_counter *counter)
{
    static const char package[] = "package-", die[] = "-die-";
    const char *at = name + strlen(package), *end;
    uint64_t number;

    if (strcmp(name, "psys") == 0) {
        counter->domain = WM_RAPL_PSYS;
        return true;
    }
    if (strncmp(name, package, strlen(package)) != 0 || !wm_text_u64(at, &end, &number) ||
        number > UINT16_MAX)
        return false;
    counter->domain = WM_RAPL_PACKAGE;
    counter->package = (uint32_t)number;
    if (*end == '\0')
        return true;
    if (strncmp(end, die, strlen(die)) != 0 ||
        !wm_text_u64(end + strlen(die), &end, &number) || *end != '\0' ||
        number > UINT16_MAX)
        return false;
    counter->die = (int)number;
    return true;
}

static bool parse_part(const struct wm_cpuinfo *cpu, const char *name,
                       enum wm_rapl_domain *ret_domain)
{
    static const struct {
        const char *name;
        enum wm_rapl_domain domain;
    } parts[] = {
        { "core", WM_RAPL_CORES },
        { "uncore", WM_RAPL_UNCORE },
        { "dram", WM_RAPL_DRAM },
    };

    /* AMD's register is one per core, and here it is read on one core alone. */
    if (wm_rapl_is_amd(cpu) && strcmp(name, "core") == 0)
        return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(parts[i].name, name) == 0) {
            *ret_domain = parts[i].domain;
            return true;
        }
    }
    return false;
}

/* 0 where it is not known. */
static uint64_t read_range(int dir)
{
    char line[32];
    const char *end;
    uint64_t range;

    wm_file_read_line(dir, "max_energy_range_uj", line, sizeof(line));
    if (!wm_text_u64(line, &end, &range) || *end != '\0' || range < LEAST_RANGE_UJ ||
        range > INT64_MAX)
        return 0;
    return range;
}

static void note_denied(struct class *class, int dir, const char *name)
{
    struct stat info;

    if (class->denied.status != WM_OK)
        return;
    if (fstatat(dir, "energy_uj", &info, 0) == 0)
        wm_fail(&class->denied, WM_EACCES, "%s: no permission to read (mode %04o, uid %u)",
                name, info.st_mode & 07777U, (unsigned)info.st_uid);
    else
        wm_fail(&class->denied, WM_EACCES, "%s: no permission to read", name);
}

static bool identify_part(const struct class *class, const struct zone *zone,
                          const char *name, struct wm_rapl_counter *counter)
{
    size_t length = strlen(class->package_zone.name);

    counter->package = class->package.package;
    counter->die = class->package.die;
    return length > 0 && begins_with(zone->name, class->package_zone.name) &&
           zone->name[length] == ':' &&
           parse_part(&class->places->cpu, name, &counter->domain);
}

/* What the zone counts; false where that is not known, or counted already. */
static bool identify(struct class *class, const struct zone *zone, int dir,
                     struct wm_rapl_counter *counter)
{
    bool is_part = strchr(strchr(zone->name, ':') + 1, ':') != NULL;
    char name[48];

    wm_file_read_line(dir, "name", name, sizeof(name));
    if (!is_part)
        class->package_zone.name[0] = '\0';
    if (is_part ? !identify_part(class, zone, name, counter)
                : !parse_package(name, counter))
        return false;
    /* AMD's register is one per package; some kernels list it for each die. */
    if (wm_rapl_is_amd(&class->places->cpu))
        counter->die = WM_RAPL_NO_DIE;
    if (!wm_rapl_set_wants(class->set, counter->domain, counter->package, counter->die))
        return false;
    if (counter->domain == WM_RAPL_PACKAGE) {
        class->package = *counter;
        class->package_zone = *zone;
    }
    return true;
}

static int add_counter(struct class *class, int dir, const char *folder,
                       struct wm_rapl_counter *counter, struct wm_error *err)
{
    counter->fd = wm_file_open_at(dir, "energy_uj");
    if (counter->fd == -ENOENT)
        return WM_OK;
    snprintf(counter->name, sizeof(counter->name), "%.80s/%.64s/energy_uj", class->path,
             folder);
    if (counter->fd == -EACCES || counter->fd == -EPERM)
        note_denied(class, dir, counter->name);
    counter->unit_j = 1e-6;
    counter->range = read_range(dir);
    return wm_rapl_set_add(class->set, counter, err);
}

static int add_zone(struct class *class, const struct zone *zone, struct wm_error *err)
{
    struct wm_rapl_counter counter = { .die = WM_RAPL_NO_DIE };
    int status = WM_OK;

    int dir = openat(class->dir, zone->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        class->hidden += errno == ENOENT;
        if (errno == EACCES && class->denied.status == WM_OK)
            wm_fail(&class->denied, WM_EACCES, "%.160s/%s: no permission to look into it",
                    class->path, zone->name);
        return WM_OK;
    }
    if (identify(class, zone, dir, &counter))
        status = add_counter(class, dir, zone->name, &counter, err);
    close(dir);
    return status;
}

static int conclude(const struct class *class, size_t zone_count, struct wm_error *err)
{
    if (wm_rapl_set_can_be_read(class->set))
        return WM_OK;
    if (class->denied.status != WM_OK)
        return wm_fail(err, WM_EACCES, "%s", class->denied.text);
    if (class->hidden > 0)
        return wm_fail(err, WM_ENODEV, "%s is hidden, as containers do", class->path);
    if (zone_count > 0)
        return wm_fail(err, WM_ENODEV, "%s has no package with a counter", class->path);
    return wm_fail(err, WM_ENODEV, "%s has no RAPL zone", class->path);
}

/* Zones that may be packages, and the limits that one has: in the long run, for a moment,
 * and at the peak. */
enum { LIMIT_ZONES = 64, LIMITS = 3 };

static double read_limit(int zone, const char *format, unsigned number)
{
    char name[64], line[32];
    const char *end;
    uint64_t microwatts;

    snprintf(name, sizeof(name), format, number);
    wm_file_read_line(zone, name, line, sizeof(line));
    return wm_text_u64(line, &end, &microwatts) && *end == '\0' ? (double)microwatts / 1e6
                                                                : 0;
}

double wm_rapl_limit(const char *sysfs, const struct wm_rapl_counter *package)
{
    double most = 0;
    char path[512], wanted[48], title[48];

    snprintf(wanted, sizeof(wanted), "package-%u", package->package);
    if (package->die != WM_RAPL_NO_DIE)
        wm_text_list(wanted, sizeof(wanted), "", "-die-%d", package->die);
    for (unsigned number = 0; number < LIMIT_ZONES; number++) {
        snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:%u", sysfs, number);
        int zone = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (zone < 0)
            continue;
        wm_file_read_line(zone, "name", title, sizeof(title));
        for (unsigned i = 0; i < LIMITS && strcmp(title, wanted) == 0; i++) {
            most = fmax(most, read_limit(zone, "constraint_%u_max_power_uw", i));
            most = fmax(most, read_limit(zone, "constraint_%u_power_limit_uw", i));
        }
        close(zone);
    }
    return most;
}

static int powercap_find(struct wm_rapl_set *set, const struct wm_rapl_places *places,
                         struct wm_error *err)
{
    struct class class = { .places = places, .set = set };
    size_t count = 0;
    int status;

    if ((size_t)snprintf(class.path, sizeof(class.path), "%s/class/powercap",
                         places->sysfs) >= sizeof(class.path))
        return wm_fail(err, WM_EINVAL, "%s: too long a path", places->sysfs);
    class.dir = open(class.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (class.dir < 0 && (errno == EACCES || errno == EPERM))
        return wm_fail_errno(err, class.path);
    if (class.dir < 0)
        return wm_fail(err, WM_ENODEV, "there is no %s", class.path);

    struct zone *zones = calloc(MAX_ZONES, sizeof(*zones));
    if (zones)
        status = list_zones(class.dir, zones, &count, err);
    else
        status = wm_fail_memory(err, "rapl");
    for (size_t i = 0; i < 2 * count && status == WM_OK; i++) {
        if (begins_with(zones[i % count].name, prefixes[i / count]))
            status = add_zone(&class, &zones[i % count], err);
    }
    if (status == WM_OK)
        status = conclude(&class, count, err);
    free(zones);
    close(class.dir);
    return status;
}

static void powercap_read(const struct wm_rapl_places *places,
                          struct wm_rapl_counter *counter)
{
    char text[32], line[48];
    const char *end;
    (void)places;

    ssize_t length = wm_file_reread(counter->fd, text, sizeof(text));
    if (length < 0) {
        errno = (int)-length;
        wm_fail_errno(&counter->err, counter->name);
        return;
    }
    if (wm_text_u64(text, &end, &counter->value) && (*end == '\n' || *end == '\0') &&
        end + (*end == '\n') == text + length)
        return;
    wm_text_line(line, sizeof(line), text);
    wm_fail(&counter->err, WM_EFORMAT, "%s: '%s' is no count of energy", counter->name,
            line);
}

const struct wm_rapl_way wm_rapl_powercap = {
    .name = "powercap",
    .find = powercap_find,
    .read = powercap_read,
};
