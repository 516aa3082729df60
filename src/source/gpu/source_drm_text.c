/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_text.c - parsers of numbers, lists of clock levels, uevents and DRM
 * clients. */
#include "source/gpu/source_drm_text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"

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

int wm_parse_drm_node(const char *name, const char *start, unsigned *ret_number)
{
    const char *end;
    uint64_t number;

    if (strncmp(name, start, strlen(start)) != 0 ||
        !wm_text_u64(name + strlen(start), &end, &number) || *end != '\0' || number > 65535)
        return WM_EFORMAT;
    *ret_number = (unsigned)number;
    return WM_OK;
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

static const char hex_digits[] = "0123456789abcdefABCDEF";

/* "1002:744C" */
static bool parse_ids(const char *text, uint16_t *ret_vendor, uint16_t *ret_device)
{
    size_t vendor = strspn(text, hex_digits);

    if (vendor == 0 || vendor > 4 || text[vendor] != ':')
        return false;
    size_t device = strspn(text + vendor + 1, hex_digits);
    if (device == 0 || device > 4 || text[vendor + 1 + device] != '\n')
        return false;
    *ret_vendor = (uint16_t)strtoul(text, NULL, 16);
    *ret_device = (uint16_t)strtoul(text + vendor + 1, NULL, 16);
    return true;
}

/* "60400", of a bridge; 0 for what is none. */
static uint32_t parse_class(const char *text)
{
    size_t digits = strspn(text, hex_digits);

    return digits > 0 && digits <= 6 && text[digits] == '\n'
               ? (uint32_t)strtoul(text, NULL, 16)
               : 0;
}

/* What follows `start` in the line, or NULL. */
static const char *behind(const struct lines *lines, const char *start)
{
    return strncmp(lines->line, start, strlen(start)) == 0 ? lines->line + strlen(start)
                                                           : NULL;
}

int wm_parse_drm_uevent(const char *text, struct wm_drm_uevent *ret_uevent)
{
    struct wm_drm_uevent uevent = { 0 };
    struct lines lines = { .rest = text };
    const char *value;
    bool any = false;

    while (next_line(&lines)) {
        const char *end = lines.line + lines.length;

        any |= memchr(lines.line, '=', lines.length) != NULL;
        if ((value = behind(&lines, "DRIVER=")) != NULL)
            copy_name(uevent.driver, sizeof(uevent.driver), value, (size_t)(end - value));
        else if ((value = behind(&lines, "PCI_SLOT_NAME=")) != NULL)
            copy_name(uevent.slot, sizeof(uevent.slot), value, (size_t)(end - value));
        else if ((value = behind(&lines, "PCI_ID=")) != NULL)
            uevent.has_ids |= parse_ids(value, &uevent.vendor, &uevent.device);
        else if ((value = behind(&lines, "PCI_SUBSYS_ID=")) != NULL)
            parse_ids(value, &uevent.sub_vendor, &uevent.sub_device);
        else if ((value = behind(&lines, "PCI_CLASS=")) != NULL)
            uevent.class = parse_class(value);
    }
    if (!any)
        return WM_EFORMAT;
    *ret_uevent = uevent;
    return WM_OK;
}

/* What is resident occupies memory; "total" may not be there yet at all, and stands in only
 * where a driver reports no more. The old key is an alias of "resident", which amdgpu
 * writes beside it. The keys are in no fixed order, so which of them counts is decided at
 * the end. */
enum { RESIDENT, OLD, TOTAL, RANKS };

struct reading {
    struct wm_drm_fdinfo fdinfo;
    bool has_memory[WM_DRM_MEMORY_COUNT][RANKS];
    uint64_t bytes[WM_DRM_MEMORY_COUNT][RANKS];
};

/* Where one key begins like another, the longer one stands first. Keys that end
 * with '-' are followed by the name of an engine or of a kind of memory. */
static const struct key {
    const char *text;
    enum { DRIVER, SLOT, CLIENT, ENGINE, MEMORY } kind;
    size_t place;     /* in struct wm_drm_engine; or the rank of the memory */
    unsigned counter; /* of enum wm_drm_counter */
} keys[] = {
    { "drm-driver", DRIVER, 0, 0 },
    { "drm-pdev", SLOT, 0, 0 },
    { "drm-client-id", CLIENT, 0, 0 },
    { "drm-engine-capacity-", ENGINE, offsetof(struct wm_drm_engine, capacity), 0 },
    { "drm-engine-", ENGINE, offsetof(struct wm_drm_engine, busy_ns), WM_DRM_BUSY_NS },
    { "drm-cycles-", ENGINE, offsetof(struct wm_drm_engine, cycles), WM_DRM_CYCLES },
    { "drm-total-cycles-", ENGINE, offsetof(struct wm_drm_engine, total_cycles),
      WM_DRM_TOTAL_CYCLES },
    { "drm-resident-", MEMORY, RESIDENT, 0 },
    { "drm-memory-", MEMORY, OLD, 0 },
    { "drm-total-", MEMORY, TOTAL, 0 },
};

/* The key that `line` starts with, and what follows it up to the colon; or NULL. */
static const struct key *find_key(const char *line, const char *colon, char *ret_name)
{
    size_t length = (size_t)(colon - line);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t own = strlen(keys[i].text);
        bool named = keys[i].text[own - 1] == '-';

        if (length < own || strncmp(line, keys[i].text, own) != 0 ||
            (!named && length != own))
            continue;
        copy_name(ret_name, WM_DRM_NAME, line + own, length - own);
        return named && !ret_name[0] ? NULL : &keys[i];
    }
    return NULL;
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

static void read_engine(struct wm_drm_fdinfo *fdinfo, const struct key *key,
                        const char *name, const char *value)
{
    bool is_time = key->counter == WM_DRM_BUSY_NS;
    uint64_t number;

    /* Old amdgpu wrote a percentage under the name of the nanoseconds. No counter is the
     * capacity, of which there is some. */
    if (!take_number(value, is_time ? "ns" : "", &number) ||
        (key->counter == 0 && number == 0)) {
        fdinfo->counts_otherwise |= is_time;
        return;
    }
    struct wm_drm_engine *engine = find_engine(fdinfo, name);
    if (!engine)
        return;
    memcpy((char *)engine + key->place, &number, sizeof(number));
    engine->present |= key->counter;
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

static void read_memory(struct reading *reading, size_t rank, const char *name,
                        const char *value)
{
    enum wm_drm_memory kind = kind_of(name);
    uint64_t bytes;

    if (kind == WM_DRM_MEMORY_COUNT || !take_bytes(value, &bytes))
        return;
    uint64_t *sum = &reading->bytes[kind][rank];
    if (__builtin_add_overflow(*sum, bytes, sum))
        *sum = UINT64_MAX;
    reading->has_memory[kind][rank] = true;
}

static void read_line(struct reading *reading, const struct lines *lines)
{
    struct wm_drm_fdinfo *fdinfo = &reading->fdinfo;
    const char *colon = memchr(lines->line, ':', lines->length);
    char name[WM_DRM_NAME] = "";
    uint64_t number;

    const struct key *key = colon ? find_key(lines->line, colon, name) : NULL;
    if (!key)
        return;
    const char *value = wm_text_skip_blanks(colon + 1);
    size_t length = lines->length - (size_t)(value - lines->line);

    if (key->kind == DRIVER) {
        copy_name(fdinfo->driver, sizeof(fdinfo->driver), value, length);
    } else if (key->kind == SLOT) {
        copy_name(fdinfo->slot, sizeof(fdinfo->slot), value, length);
    } else if (key->kind == ENGINE) {
        read_engine(fdinfo, key, name, value);
    } else if (key->kind == MEMORY) {
        read_memory(reading, key->place, name, value);
    } else if (take_number(value, "", &number)) {
        fdinfo->has_client = true;
        fdinfo->client = number;
    }
}

static void take_memory(const struct reading *reading, size_t kind,
                        struct wm_drm_fdinfo *fdinfo)
{
    size_t rank = 0;

    while (rank < RANKS && !reading->has_memory[kind][rank])
        rank++;
    fdinfo->has_memory[kind] = rank < RANKS;
    fdinfo->memory_bytes[kind] = rank < RANKS ? reading->bytes[kind][rank] : 0;
}

int wm_parse_drm_fdinfo(const char *text, struct wm_drm_fdinfo *ret_fdinfo)
{
    struct lines lines = { .rest = text };
    struct reading reading = { .fdinfo.engine_count = 0 };

    /* Nearly all files of a machine end here. */
    if (!strstr(text, "drm-driver:"))
        return WM_ENOENT;

    while (next_line(&lines))
        read_line(&reading, &lines);
    if (!reading.fdinfo.driver[0])
        return WM_ENOENT;
    for (size_t kind = 0; kind < WM_DRM_MEMORY_COUNT; kind++)
        take_memory(&reading, kind, &reading.fdinfo);
    *ret_fdinfo = reading.fdinfo;
    return WM_OK;
}

static bool is_end(const char *text)
{
    return text[0] == '\0' || (text[0] == '\n' && text[1] == '\0');
}

int wm_parse_drm_line(const char *text, char ret_line[WM_DRM_LINE])
{
    size_t length = strcspn(text, "\n");

    if (length >= WM_DRM_LINE || !is_end(text + length) ||
        strspn(text, " \n") == strlen(text))
        return WM_EFORMAT;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            return WM_EFORMAT;
    }
    memcpy(ret_line, text, length);
    ret_line[length] = '\0';
    return WM_OK;
}

int wm_parse_drm_hex(const char *text, uint64_t *ret_value)
{
    if (strncmp(text, "0x", 2) != 0)
        return WM_EFORMAT;
    size_t count = strspn(text + 2, hex_digits);
    if (count == 0 || count > 16 || !is_end(text + 2 + count))
        return WM_EFORMAT;
    *ret_value = strtoull(text, NULL, 16);
    return WM_OK;
}

/* Kernels have written "8 GT/s", "8.0 GT/s" and "8.0 GT/s PCIe". */
int wm_parse_link_speed(const char *text, double *ret_generation)
{
    static const char *const speeds[] = { "2.5", "5", "8", "16", "32", "64", "128" };

    if (strncmp(text, "Unknown", strlen("Unknown")) == 0)
        return WM_ENODEV;
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        size_t length = strlen(speeds[i]);
        if (strncmp(text, speeds[i], length) != 0)
            continue;
        const char *rest = text + length;
        if (strncmp(rest, ".0", 2) == 0)
            rest += 2;
        if (strncmp(rest, " GT/s", 5) != 0)
            continue;
        rest += 5;
        if (strncmp(rest, " PCIe", 5) == 0)
            rest += 5;
        if (!is_end(rest))
            return WM_EFORMAT;
        *ret_generation = (double)(i + 1);
        return WM_OK;
    }
    return WM_EFORMAT;
}

int wm_parse_link_width(const char *text, double *ret_lanes)
{
    const char *end;
    uint64_t lanes;

    if (!wm_text_u64(text, &end, &lanes) || !is_end(end))
        return WM_EFORMAT;
    if (lanes == 0 || lanes == 255)
        return WM_ENODEV;
    if (lanes > 32)
        return WM_EFORMAT;
    *ret_lanes = (double)lanes;
    return WM_OK;
}

/* One line, "1: 2371Mhz *\n"; the next one, or NULL. */
static const char *take_level(const char *line, struct wm_dpm_levels *levels)
{
    bool asleep = line[0] == 'S';
    uint64_t level, mhz;
    const char *at = line + 1;

    if (!asleep && !wm_text_u64(line, &at, &level))
        return NULL;
    if (*at++ != ':' || !wm_text_u64(wm_text_skip_blanks(at), &at, &mhz) || mhz > 1000000)
        return NULL;
    if (strncmp(at, "Mhz", 3) != 0 && strncmp(at, "MHz", 3) != 0)
        return NULL;
    at = wm_text_skip_blanks(at + 3);
    double clock = (double)mhz * 1e6;
    if (*at == '*') {
        levels->has_now = true;
        levels->now = clock;
        at = wm_text_skip_blanks(at + 1);
    }
    if (!asleep && clock > levels->max)
        levels->max = clock;
    return *at == '\n' ? at + 1 : NULL;
}

int wm_parse_dpm_levels(const char *text, struct wm_dpm_levels *ret_levels)
{
    struct wm_dpm_levels levels = { .has_now = false };

    if (*text == '\0')
        return WM_EFORMAT;
    while (*text) {
        text = take_level(text, &levels);
        if (!text)
            return WM_EFORMAT;
    }
    *ret_levels = levels;
    return WM_OK;
}

int wm_parse_named_number(const char *text, const char *name, uint64_t *ret_value)
{
    size_t length = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        const char *end;
        uint64_t value;

        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        const char *at = line + length + (line[length] == ':');
        if (*at != ' ' && *at != '\t')
            continue;
        if (!wm_text_u64(wm_text_skip_blanks(at), &end, &value) || *end != '\n')
            return WM_EFORMAT;
        *ret_value = value;
        return WM_OK;
    }
    return WM_ENOENT;
}

const char *wm_drm_vendor(uint64_t id)
{
    switch (id) {
    case 0x1002:
    case 0x1022:
        return "AMD";
    case 0x8086:
        return "Intel";
    case 0x10de:
        return "NVIDIA";
    default:
        return NULL;
    }
}
