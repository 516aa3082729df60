/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_text.c - parsers of numbers, uevents and DRM clients. */
#include "source/gpu/drm/source_drm_text.h"

#include <string.h>

#include "base/text/base_text.h"

int wm_parse_sysfs_number(const char *text, int64_t *ret_value)
{
    const char *end;
    int64_t value;

    if (!wm_text_i64(text, &end, &value))
        return WM_EFORMAT;
    if (*end == '\n')
        end++;
    if (*end != '\0')
        return WM_EFORMAT;
    *ret_value = value;
    return WM_OK;
}

long wm_parse_drm_node(const char *name, const char *start)
{
    const char *end;
    uint64_t number;

    if (strncmp(name, start, strlen(start)) != 0 ||
        !wm_text_u64(name + strlen(start), &end, &number) || *end != '\0' || number > 65535)
        return -1;
    return (long)number;
}

/* What is left of a text, line by line. A last line without its newline was cut
 * off and is none. */
struct lines {
    const char *rest;
    const char *line;
    size_t length;
};

static bool next_line(struct lines *lines)
{
    const char *end = strchr(lines->rest, '\n');
    if (!end)
        return false;

    lines->line = lines->rest;
    lines->length = (size_t)(end - lines->rest);
    lines->rest = end + 1;
    return true;
}

/* Copies a name of visible ASCII characters; it stays empty if it is another
 * thing, or longer than any name that a driver has. */
static void copy_name(char *name, size_t size, const char *from, size_t length)
{
    name[0] = '\0';
    if (length >= size)
        return;
    for (size_t i = 0; i < length; i++) {
        if (from[i] <= ' ' || from[i] > '~')
            return;
    }
    memcpy(name, from, length);
    name[length] = '\0';
}

static bool take_hex16(const char **at, uint16_t *ret_value)
{
    static const char digits[] = "0123456789abcdef";
    unsigned value = 0;
    size_t count = 0;

    for (; **at; (*at)++, count++) {
        char c = **at;
        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        const char *digit = strchr(digits, c);
        if (!digit || count == 4)
            break;
        value = value * 16 + (unsigned)(digit - digits);
    }
    *ret_value = (uint16_t)value;
    return count > 0;
}

/* "1002:744C" */
static bool parse_ids(const char *text, struct wm_drm_uevent *uevent)
{
    uint16_t vendor, device;

    if (!take_hex16(&text, &vendor) || *text++ != ':' || !take_hex16(&text, &device) ||
        *text != '\n')
        return false;
    uevent->vendor = vendor;
    uevent->device = device;
    return true;
}

int wm_parse_drm_uevent(const char *text, struct wm_drm_uevent *ret_uevent)
{
    struct wm_drm_uevent uevent = { 0 };
    struct lines lines = { .rest = text };
    bool any = false;

    while (next_line(&lines)) {
        const char *equals = memchr(lines.line, '=', lines.length);
        if (!equals)
            continue;
        size_t key = (size_t)(equals - lines.line);
        size_t length = lines.length - key - 1;

        any = true;
        if (key == strlen("DRIVER") && strncmp(lines.line, "DRIVER", key) == 0)
            copy_name(uevent.driver, sizeof(uevent.driver), equals + 1, length);
        else if (key == strlen("PCI_SLOT_NAME") &&
                 strncmp(lines.line, "PCI_SLOT_NAME", key) == 0)
            copy_name(uevent.slot, sizeof(uevent.slot), equals + 1, length);
        else if (key == strlen("PCI_ID") && strncmp(lines.line, "PCI_ID", key) == 0)
            uevent.has_ids |= parse_ids(equals + 1, &uevent);
    }
    if (!any)
        return WM_EFORMAT;
    *ret_uevent = uevent;
    return WM_OK;
}

/* A kind of memory while a text is read. The keys are not in a fixed order, so
 * which of them counts is decided at the end. */
struct region {
    char name[WM_DRM_NAME];
    unsigned present; /* of enum key, as bits */
    uint64_t resident, legacy, total;
};

enum { REGIONS = 16 };

struct reading {
    struct wm_drm_fdinfo fdinfo;
    struct region regions[REGIONS];
    size_t region_count;
};

enum key {
    KEY_DRIVER,
    KEY_SLOT,
    KEY_CLIENT,
    KEY_CAPACITY,
    KEY_BUSY,
    KEY_CYCLES,
    KEY_TOTAL_CYCLES,
    KEY_RESIDENT,
    KEY_LEGACY,
    KEY_TOTAL,
};

/* Where one key begins like another, the longer one stands first. Keys that end
 * with '-' are followed by the name of an engine or of a kind of memory. */
static const struct {
    const char *text;
    enum key key;
} keys[] = {
    { "drm-driver", KEY_DRIVER },
    { "drm-pdev", KEY_SLOT },
    { "drm-client-id", KEY_CLIENT },
    { "drm-engine-capacity-", KEY_CAPACITY },
    { "drm-engine-", KEY_BUSY },
    { "drm-cycles-", KEY_CYCLES },
    { "drm-total-cycles-", KEY_TOTAL_CYCLES },
    { "drm-resident-", KEY_RESIDENT },
    { "drm-memory-", KEY_LEGACY },
    { "drm-total-", KEY_TOTAL },
};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

/* The key that `line` starts with, and what follows it up to the colon. */
static size_t find_key(const char *line, const char *colon, char *ret_name)
{
    size_t length = (size_t)(colon - line);
    size_t i;

    for (i = 0; i < KEY_COUNT; i++) {
        size_t own = strlen(keys[i].text);
        bool named = keys[i].text[own - 1] == '-';

        if (length < own || strncmp(line, keys[i].text, own) != 0 ||
            (!named && length != own))
            continue;
        copy_name(ret_name, WM_DRM_NAME, line + own, length - own);
        if (named && !ret_name[0])
            return KEY_COUNT;
        break;
    }
    return i;
}

static struct wm_drm_engine *find_engine(struct wm_drm_fdinfo *fdinfo, const char *name)
{
    for (size_t i = 0; i < fdinfo->engine_count; i++) {
        if (strcmp(fdinfo->engines[i].name, name) == 0)
            return &fdinfo->engines[i];
    }
    if (fdinfo->engine_count == WM_DRM_ENGINES)
        return NULL;

    struct wm_drm_engine *engine = &fdinfo->engines[fdinfo->engine_count++];
    *engine = (struct wm_drm_engine) { .capacity = 1 };
    memcpy(engine->name, name, WM_DRM_NAME);
    return engine;
}

static struct region *find_region(struct reading *reading, const char *name)
{
    for (size_t i = 0; i < reading->region_count; i++) {
        if (strcmp(reading->regions[i].name, name) == 0)
            return &reading->regions[i];
    }
    if (reading->region_count == REGIONS)
        return NULL;

    struct region *region = &reading->regions[reading->region_count++];
    *region = (struct region) { 0 };
    memcpy(region->name, name, WM_DRM_NAME);
    return region;
}

/* "123\n", "123 ns\n": a number and what stands behind it. */
static bool take_number(const char *text, const char *unit, uint64_t *ret_value)
{
    const char *end;

    if (!wm_text_u64(text, &end, ret_value))
        return false;
    end = wm_text_skip_blanks(end);
    size_t length = strlen(unit);
    return strncmp(end, unit, length) == 0 && end[length] == '\n';
}

static bool take_bytes(const char *text, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = { { "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 } };
    uint64_t number;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (take_number(text, units[i].unit, &number))
            return !__builtin_mul_overflow(number, units[i].bytes, ret_bytes);
    }
    return false;
}

static void read_engine(struct wm_drm_fdinfo *fdinfo, enum key key, const char *name,
                        const char *value)
{
    uint64_t number;

    /* Old amdgpu wrote a percentage under the name of the nanoseconds. */
    if (!take_number(value, key == KEY_BUSY ? "ns" : "", &number) ||
        (key == KEY_CAPACITY && number == 0)) {
        fdinfo->counts_otherwise |= key == KEY_BUSY;
        return;
    }
    struct wm_drm_engine *engine = find_engine(fdinfo, name);
    if (!engine)
        return;

    switch (key) {
    case KEY_CAPACITY:
        engine->capacity = number;
        break;
    case KEY_BUSY:
        engine->busy_ns = number;
        engine->present |= WM_DRM_BUSY_NS;
        break;
    case KEY_CYCLES:
        engine->cycles = number;
        engine->present |= WM_DRM_CYCLES;
        break;
    default:
        engine->total_cycles = number;
        engine->present |= WM_DRM_TOTAL_CYCLES;
        break;
    }
}

static void read_region(struct reading *reading, enum key key, const char *name,
                        const char *value)
{
    uint64_t bytes;

    if (!take_bytes(value, &bytes))
        return;
    struct region *region = find_region(reading, name);
    if (!region)
        return;

    region->present |= 1U << key;
    if (key == KEY_RESIDENT)
        region->resident = bytes;
    else if (key == KEY_LEGACY)
        region->legacy = bytes;
    else
        region->total = bytes;
}

static void read_line(struct reading *reading, const struct lines *lines)
{
    struct wm_drm_fdinfo *fdinfo = &reading->fdinfo;
    const char *colon = memchr(lines->line, ':', lines->length);
    char name[WM_DRM_NAME] = "";
    uint64_t number;

    size_t i = colon ? find_key(lines->line, colon, name) : KEY_COUNT;
    if (i == KEY_COUNT)
        return;
    const char *value = wm_text_skip_blanks(colon + 1);
    size_t length = lines->length - (size_t)(value - lines->line);

    switch (keys[i].key) {
    case KEY_DRIVER:
        copy_name(fdinfo->driver, sizeof(fdinfo->driver), value, length);
        break;
    case KEY_SLOT:
        copy_name(fdinfo->slot, sizeof(fdinfo->slot), value, length);
        break;
    case KEY_CLIENT:
        if (take_number(value, "", &number)) {
            fdinfo->has_client = true;
            fdinfo->client = number;
        }
        break;
    case KEY_CAPACITY:
    case KEY_BUSY:
    case KEY_CYCLES:
    case KEY_TOTAL_CYCLES:
        read_engine(fdinfo, keys[i].key, name, value);
        break;
    default:
        read_region(reading, keys[i].key, name, value);
        break;
    }
}

/* WM_DRM_MEMORY_COUNT for memory that the GPU does not use: amdgpu calls "cpu"
 * what it has thrown out. Stolen memory is kept back from the system for an
 * integrated GPU, also where i915 names it "stolen-local". */
static enum wm_drm_memory kind_of(const char *name)
{
    static const struct {
        const char *start;
        enum wm_drm_memory kind;
    } kinds[] = {
        { "vram", WM_DRM_LOCAL },    { "local", WM_DRM_LOCAL },
        { "gtt", WM_DRM_GTT },       { "system", WM_DRM_SYSTEM },
        { "memory", WM_DRM_SYSTEM }, { "stolen", WM_DRM_SYSTEM },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strncmp(name, kinds[i].start, strlen(kinds[i].start)) == 0)
            return kinds[i].kind;
    }
    return WM_DRM_MEMORY_COUNT;
}

/* What is resident occupies memory; "total" may not be there yet at all, and
 * stands in only where a driver tells no more. The old key is an alias of
 * "resident", which amdgpu writes beside it. */
static void add_region(struct wm_drm_fdinfo *fdinfo, const struct region *region)
{
    enum wm_drm_memory kind = kind_of(region->name);
    uint64_t bytes = region->total;

    if (kind == WM_DRM_MEMORY_COUNT)
        return;
    if (region->present & 1U << KEY_RESIDENT)
        bytes = region->resident;
    else if (region->present & 1U << KEY_LEGACY)
        bytes = region->legacy;
    if (__builtin_add_overflow(fdinfo->memory_bytes[kind], bytes,
                               &fdinfo->memory_bytes[kind]))
        fdinfo->memory_bytes[kind] = UINT64_MAX;
    fdinfo->has_memory[kind] = true;
}

int wm_parse_drm_fdinfo(const char *text, struct wm_drm_fdinfo *ret_fdinfo)
{
    struct lines lines = { .rest = text };
    struct reading reading = { .region_count = 0 };

    /* Nearly all files of a machine end here. */
    if (!strstr(text, "drm-driver:"))
        return WM_ENOENT;

    while (next_line(&lines))
        read_line(&reading, &lines);
    if (!reading.fdinfo.driver[0])
        return WM_ENOENT;
    for (size_t i = 0; i < reading.region_count; i++)
        add_region(&reading.fdinfo, &reading.regions[i]);
    *ret_fdinfo = reading.fdinfo;
    return WM_OK;
}
