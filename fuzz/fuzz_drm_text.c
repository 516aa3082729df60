/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_drm_text.c - hostile text and bytes for every parser of what graphics
 * drivers write. Each input goes through all of them, so that the files of
 * tests/data/proc-drm, sys-drm and share are seeds as they are. Beyond not
 * crashing, a parser must not write on failure, and what it accepts must keep
 * what its header promises.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/gpu/drm/source_drm_gpu_metrics.h"
#include "source/gpu/drm/source_drm_names.h"
#include "source/gpu/source_drm_text.h"

/* A name is of visible ASCII characters and ends within its room. */
static void require_name(const char *name, size_t size)
{
    size_t length = strnlen(name, size);

    require(length < size);
    for (size_t i = 0; i < length; i++)
        require(name[i] > ' ' && name[i] <= '~');
}

static void fuzz_number(const char *text)
{
    int64_t number;

    memset(&number, UNTOUCHED, sizeof(number));
    if (wm_parse_sysfs_number(text, &number) != WM_OK)
        require_untouched(&number, sizeof(number));
    else
        require(text[0] == '-' ? number <= 0 : number >= 0);
}

static void fuzz_uevent(const char *text)
{
    struct wm_drm_uevent uevent;

    memset(&uevent, UNTOUCHED, sizeof(uevent));
    if (wm_parse_drm_uevent(text, &uevent) != WM_OK) {
        require_untouched(&uevent, sizeof(uevent));
        return;
    }
    require_name(uevent.driver, sizeof(uevent.driver));
    require_name(uevent.slot, sizeof(uevent.slot));
    require(uevent.has_ids || (uevent.vendor == 0 && uevent.device == 0));
}

static void fuzz_fdinfo(const char *text)
{
    struct wm_drm_fdinfo fdinfo;

    memset(&fdinfo, UNTOUCHED, sizeof(fdinfo));
    if (wm_parse_drm_fdinfo(text, &fdinfo) != WM_OK) {
        require_untouched(&fdinfo, sizeof(fdinfo));
        return;
    }
    require_name(fdinfo.driver, sizeof(fdinfo.driver));
    require_name(fdinfo.slot, sizeof(fdinfo.slot));
    require(fdinfo.driver[0] != '\0');
    require(fdinfo.has_client || fdinfo.client == 0);
    require(fdinfo.engine_count <= WM_DRM_ENGINES);
    for (size_t i = 0; i < fdinfo.engine_count; i++) {
        const struct wm_drm_engine *engine = &fdinfo.engines[i];
        require_name(engine->name, sizeof(engine->name));
        require(engine->name[0] != '\0' && engine->capacity >= 1);
        require((engine->present & WM_DRM_BUSY_NS) || engine->busy_ns == 0);
        require((engine->present & WM_DRM_CYCLES) || engine->cycles == 0);
        require((engine->present & WM_DRM_TOTAL_CYCLES) || engine->total_cycles == 0);
        for (size_t k = 0; k < i; k++)
            require(strcmp(engine->name, fdinfo.engines[k].name) != 0);
    }
    for (size_t i = 0; i < WM_DRM_MEMORY_COUNT; i++)
        require(fdinfo.has_memory[i] || fdinfo.memory_bytes[i] == 0);
}

static void fuzz_gpu_metrics(const uint8_t *data, size_t size)
{
    struct wm_gpu_metrics metrics;

    memset(&metrics, UNTOUCHED, sizeof(metrics));
    if (wm_parse_gpu_metrics(data, size, &metrics) != WM_OK) {
        require_untouched(&metrics, sizeof(metrics));
        return;
    }
    for (size_t i = 0; i < WM_DRM_METRICS; i++) {
        require(isfinite(metrics.values[i]) && metrics.values[i] >= 0);
        require(metrics.has[i] || metrics.values[i] == 0);
    }
    require(metrics.has_throttle || metrics.throttle == 0);
}

static void fuzz_names(const char *text)
{
    static const struct wm_drm_ids ids[] = { { 0x1002, 0x744c, 0xc8 },
                                             { 0x8086, 0x56a0, 0 } };
    char name[WM_DRM_PRODUCT];

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        memset(name, UNTOUCHED, sizeof(name));
        if (!wm_drm_find_in_amdgpu_ids(text, &ids[i], name) &&
            !wm_drm_find_in_pci_ids(text, &ids[i], name))
            require_untouched(name, sizeof(name));
        else
            require(strnlen(name, sizeof(name)) < sizeof(name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Copies of the exact size, so that a byte too far is noticed. */
    char *text = malloc(size + 1);
    uint8_t *bytes = malloc(size > 0 ? size : 1);

    if (text && bytes) {
        if (size > 0) {
            memcpy(text, data, size);
            memcpy(bytes, data, size);
        }
        text[size] = '\0';
        fuzz_number(text);
        fuzz_uevent(text);
        fuzz_fdinfo(text);
        fuzz_names(text);
        fuzz_gpu_metrics(bytes, size);

        /* Once more with a size that is true: to guess it takes long. */
        if (size >= 4 && size <= UINT16_MAX) {
            uint16_t stated = (uint16_t)size;
            memcpy(bytes, &stated, sizeof(stated));
            fuzz_gpu_metrics(bytes, size);
        }
    }
    free(bytes);
    free(text);
    return 0;
}
