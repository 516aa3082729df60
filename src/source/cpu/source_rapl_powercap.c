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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/cpu/source_rapl.h"

/* More than there are packages; intel-rapl-mmio has them a second time. */
#define MAX_ZONES 256

/* A range shorter than this would wrap within a tick. */
#define LEAST_RANGE_UJ UINT64_C(1000000)

/* Client CPUs show a package twice, by its registers (msr) and by its memory (mmio):
 * the same energy, so what an earlier prefix has is left out of the later ones. */
static const char *const prefixes[] = { "intel-rapl:", "intel-rapl-mmio:" };

struct zone {
    size_t prefix;
    uint64_t number;
    char name[48]; /* of its folder */
};

struct class
{
    const struct wm_rapl_places *places;
    struct wm_rapl_set *set;
    int dir;
    char path[256];
    size_t hidden;          /* zones whose folder is not there */
    struct wm_error denied; /* the first one; its status is WM_OK where there is none */
};

/* Whether `name` is "<prefix><number>", and which. */
static bool parse_zone(const char *name, const char *prefix, uint64_t *ret_number)
{
    const char *end;

    return strncmp(name, prefix, strlen(prefix)) == 0 && strlen(name) < 48 &&
           wm_text_u64(name + strlen(prefix), &end, ret_number) && *end == '\0';
}

static int compare_zones(const void *left, const void *right)
{
    const struct zone *a = left, *b = right;

    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Those of a folder whose name is one of the starts and a number, in order. */
static int list_zones(int dir, const char *const *starts, size_t start_count,
                      struct zone *zones, size_t room, size_t *ret_count,
                      struct wm_error *err)
{
    struct dirent *entry;
    size_t count = 0;
    DIR *folder = wm_file_open_folder(dir, ".");

    if (!folder)
        return wm_fail_errno(err, "powercap");
    while ((entry = readdir(folder)) != NULL) {
        for (size_t i = 0; i < start_count && count < room; i++) {
            struct zone *zone = &zones[count];
            if (!parse_zone(entry->d_name, starts[i], &zone->number))
                continue;
            zone->prefix = i;
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
 * of a second package: only the first is known to have all of the platform. */
static bool parse_name(const char *name, struct wm_rapl_counter *counter)
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

/* `counter` says what it is; a register that another zone has is not taken again. */
static int add_counter(struct class *class, int dir, const char *folder,
                       struct wm_rapl_counter *counter, struct wm_error *err)
{
    if (wm_rapl_set_has(class->set, counter->domain, counter->package, counter->die))
        return WM_OK;
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

/* One part of the package; `dir` and `path` lead to the folder that it is in. */
static int add_part(struct class *class, int dir, const char *path,
                    const struct wm_rapl_counter *package, const struct zone *part,
                    struct wm_error *err)
{
    struct wm_rapl_counter counter = { .package = package->package, .die = package->die };
    char name[32], folder[128];
    int status = WM_OK;

    int own = openat(dir, part->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0)
        return WM_OK;
    wm_file_read_line(own, "name", name, sizeof(name));
    snprintf(folder, sizeof(folder), "%s%s", path, part->name);
    if (parse_part(&class->places->cpu, name, &counter.domain))
        status = add_counter(class, own, folder, &counter, err);
    close(own);
    return status;
}

/* In the zone's folder and, by links, beside it: a copy of /sys may have either. */
static int add_parts(struct class *class, int dir, const struct zone *zone,
                     const struct wm_rapl_counter *package, struct wm_error *err)
{
    char start[64], path[64] = "";
    const char *const starts[] = { start };
    struct zone parts[16];
    size_t count = 0;

    snprintf(start, sizeof(start), "%s:", zone->name);
    int status = list_zones(dir, starts, 1, parts, 16, &count, err);
    if (status == WM_OK && count == 0) {
        dir = class->dir;
        status = list_zones(dir, starts, 1, parts, 16, &count, err);
    } else {
        snprintf(path, sizeof(path), "%s/", zone->name);
    }
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = add_part(class, dir, path, package, &parts[i], err);
    return status;
}

static int add_zone(struct class *class, const struct zone *zone, struct wm_error *err)
{
    struct wm_rapl_counter counter = { .die = WM_RAPL_NO_DIE };
    char name[48];
    int status = WM_OK;

    int dir = openat(class->dir, zone->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        class->hidden += errno == ENOENT;
        if (errno == EACCES && class->denied.status == WM_OK)
            wm_fail(&class->denied, WM_EACCES, "%.160s/%s: no permission to look into it",
                    class->path, zone->name);
        return WM_OK;
    }
    wm_file_read_line(dir, "name", name, sizeof(name));
    bool is_known = parse_name(name, &counter);
    /* AMD's register is one per package; some kernels list it for each die. */
    if (wm_rapl_is_amd(&class->places->cpu))
        counter.die = WM_RAPL_NO_DIE;
    if (is_known &&
        !wm_rapl_set_has(class->set, counter.domain, counter.package, counter.die)) {
        status = add_counter(class, dir, zone->name, &counter, err);
        if (status == WM_OK && counter.domain == WM_RAPL_PACKAGE)
            status = add_parts(class, dir, zone, &counter, err);
    }
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
        status = list_zones(class.dir, prefixes, 2, zones, MAX_ZONES, &count, err);
    else
        status = wm_fail(err, WM_ENOMEM, "rapl: out of memory");
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = add_zone(&class, &zones[i], err);
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

    counter->err.status = WM_OK;
    ssize_t length =
        counter->fd < 0 ? counter->fd : wm_file_reread(counter->fd, text, sizeof(text));
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
