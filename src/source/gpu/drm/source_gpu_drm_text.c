/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_text.c - parsers of link speeds, clock levels and named numbers. */
#include "source/gpu/drm/source_drm_text.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"

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
    static const char digits[] = "0123456789abcdefABCDEF";
    uint64_t value = 0;

    if (strncmp(text, "0x", 2) != 0)
        return WM_EFORMAT;
    text += 2;
    size_t count = strspn(text, digits);
    if (count == 0 || count > 16 || !is_end(text + count))
        return WM_EFORMAT;
    for (size_t i = 0; i < count; i++) {
        size_t digit = (size_t)(strchr(digits, text[i]) - digits);
        value = value * 16 + (digit < 16 ? digit : digit - 6);
    }
    *ret_value = value;
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

void wm_drm_list(char *list, size_t size, const char *separator, const char *format, ...)
{
    size_t length = strlen(list);
    char text[160];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(list + length, size - length, "%s%s", length > 0 ? separator : "", text);
}
