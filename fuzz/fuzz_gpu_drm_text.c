/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_gpu_drm_text.c - hostile text for the parsers of the inventory of DRM GPUs.
 * Each input goes through all of them, so that the files of tests/data/sys-drm are
 * seeds as they are. Beyond not crashing, a parser must not write on failure, and
 * what it accepts must keep what its header promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/gpu/source_drm_text.h"

static void fuzz_line(const char *text)
{
    char line[WM_DRM_LINE];

    memset(line, UNTOUCHED, sizeof(line));
    if (wm_parse_drm_line(text, line) != WM_OK) {
        require_untouched(line, sizeof(line));
        return;
    }
    size_t length = strnlen(line, sizeof(line));
    require(length > 0 && length < sizeof(line));
    for (size_t i = 0; i < length; i++)
        require(line[i] >= ' ' && line[i] <= '~');
}

static void fuzz_link(int (*parse)(const char *text, double *ret_value), const char *text,
                      double most)
{
    double value;

    memset(&value, UNTOUCHED, sizeof(value));
    if (parse(text, &value) != WM_OK)
        require_untouched(&value, sizeof(value));
    else
        require(value >= 1 && value <= most);
}

static void fuzz_levels(const char *text)
{
    struct wm_dpm_levels levels;

    memset(&levels, UNTOUCHED, sizeof(levels));
    if (wm_parse_dpm_levels(text, &levels) != WM_OK) {
        require_untouched(&levels, sizeof(levels));
        return;
    }
    require(levels.max >= 0 && levels.max <= 1e12);
    require(!levels.has_now || (levels.now >= 0 && levels.now <= 1e12));
}

static void fuzz_numbers(const char *text)
{
    static const char *const names[] = { "ue", "simd_count", "drm_render_minor" };
    uint64_t value;

    memset(&value, UNTOUCHED, sizeof(value));
    if (wm_parse_drm_hex(text, &value) != WM_OK)
        require_untouched(&value, sizeof(value));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memset(&value, UNTOUCHED, sizeof(value));
        if (wm_parse_named_number(text, names[i], &value) != WM_OK)
            require_untouched(&value, sizeof(value));
        else
            require(strstr(text, names[i]) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);

    fuzz_line(text);
    fuzz_link(wm_parse_link_speed, text, 7);
    fuzz_link(wm_parse_link_width, text, 32);
    fuzz_levels(text);
    fuzz_numbers(text);
    free(text);
    return 0;
}
