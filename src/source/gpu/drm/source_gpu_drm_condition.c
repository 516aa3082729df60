/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_condition.c - what a DRM GPU says in several files, or in bits: free
 * memory, fan, why it is slowed down, its errors, what its power includes. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "source/gpu/source_drm_text.h"

enum { NAME_SIZE = 40, NAMES_MAX = 64, PWM_MAX = 100000 };

/* Files of a folder, in alphabetical order. */
struct names {
    char text[NAMES_MAX][NAME_SIZE];
    size_t count;
};

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* The names in `path`, below the card's folder, that begin and end so. */
static void list_names(const struct wm_drm_look *look, const char *path, const char *start,
                       const char *end, struct names *ret_names)
{
    struct dirent *entry;

    ret_names->count = 0;
    DIR *folder = wm_file_open_folder(look->board->card->dir, path);
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL && ret_names->count < NAMES_MAX) {
        size_t length = strlen(entry->d_name);
        if (length < NAME_SIZE && length > strlen(start) + strlen(end) &&
            strncmp(entry->d_name, start, strlen(start)) == 0 &&
            strcmp(entry->d_name + length - strlen(end), end) == 0)
            memcpy(ret_names->text[ret_names->count++], entry->d_name, length + 1);
    }
    closedir(folder);
    qsort(ret_names->text, ret_names->count, NAME_SIZE, compare_names);
}

static void tell_free_memory(struct wm_drm_look *look)
{
    const struct wm_drm_card *card = look->board->card;
    double total = look->numbers[WM_GPU_MEMORY_TOTAL];
    double used = look->numbers[WM_GPU_MEMORY_USED];

    /* Their sum would count what they share twice, and the driver's own not. */
    if (card->ways[WM_DRM_MEMORY_USED].by == WM_DRM_BY_CLIENTS)
        wm_drm_look_missing(look, WM_GPU_MEMORY_USED, WM_READING_UNSUPPORTED,
                            "%s reports the memory of each process alone", card->driver);
    if (!look->is_number[WM_GPU_MEMORY_TOTAL] || !look->is_number[WM_GPU_MEMORY_USED])
        return;
    if (used > total)
        wm_drm_look_missing(look, WM_GPU_MEMORY_FREE, WM_READING_FAILED,
                            "more memory is in use than there is");
    else
        wm_drm_look_number(look, WM_GPU_MEMORY_FREE, total - used);
}

static enum wm_reading_state read_fan(struct wm_drm_look *look, const char *name,
                                      int64_t min, double *ret_number, struct wm_error *err)
{
    const struct wm_drm_card *card = look->board->card;
    char path[96];

    snprintf(path, sizeof(path), "%s%s", card->hwmon, strchr(name, '/') + 1);
    return wm_drm_card_number(card, path, min, PWM_MAX, ret_number, err);
}

static void tell_fan(struct wm_drm_look *look)
{
    double speed = 0, most = 1, control = 1;
    const char *name = "hwmon/pwm1_enable";
    struct wm_error err;

    look->absent[WM_GPU_FAN] = "hwmon/pwm1";
    if (!look->board->card->hwmon[0])
        return;

    /* 0: nobody controls it, which is full speed by the rules of hwmon. amdgpu also says so
     * of older chips whose firmware controls it, and its pwm1 is what the fan really gets.
     */
    enum wm_reading_state state = read_fan(look, name, 0, &control, &err);
    if (state == WM_READING_OK || state == WM_READING_NONE)
        state = read_fan(look, name = "hwmon/pwm1", 0, &speed, &err);
    if (state == WM_READING_OK)
        state = read_fan(look, name = "hwmon/pwm1_max", 1, &most, &err);
    look->absent[WM_GPU_FAN] = name;
    if (state != WM_READING_OK)
        wm_drm_look_failed(look, WM_GPU_FAN, state, name, &err);
    else if (speed > most)
        wm_drm_look_missing(look, WM_GPU_FAN, WM_READING_FAILED,
                            "it turns faster than it can: %.0f of %.0f", speed, most);
    else
        wm_drm_look_number(look, WM_GPU_FAN,
                           control == 0 &&
                                   !wm_drm_card_has_driver(look->board->card, "amdgpu")
                               ? 1
                               : speed / most);
}

/* The bits of amdgpu_smu.h in the kernel. */
static const char *const throttlers[64] = {
    [0] = "ppt0",          [1] = "ppt1",          [2] = "ppt2",
    [3] = "ppt3",          [4] = "spl",           [5] = "fppt",
    [6] = "sppt",          [7] = "sppt_apu",      [16] = "tdc_gfx",
    [17] = "tdc_soc",      [18] = "tdc_mem",      [19] = "tdc_vdd",
    [20] = "tdc_cvip",     [21] = "edc_cpu",      [22] = "edc_gfx",
    [23] = "apcc",         [32] = "temp_gpu",     [33] = "temp_core",
    [34] = "temp_mem",     [35] = "temp_edge",    [36] = "temp_hotspot",
    [37] = "temp_soc",     [38] = "temp_vr_gfx",  [39] = "temp_vr_soc",
    [40] = "temp_vr_mem0", [41] = "temp_vr_mem1", [42] = "temp_liquid0",
    [43] = "temp_liquid1", [44] = "vrhot0",       [45] = "vrhot1",
    [46] = "prochot_cpu",  [47] = "prochot_gfx",  [56] = "ppm",
    [57] = "fit",
};

static bool is_amdgpu(const struct wm_drm_look *look)
{
    return wm_drm_card_has_driver(look->board->card, "amdgpu");
}

/* Bits 0 to 31 are of power and current, 32 to 55 of temperatures. */
static unsigned reasons_of(uint64_t bits)
{
    return (bits & 0xFFFFFFFF ? WM_GPU_THROTTLE_POWER : 0U) |
           (bits >> 32 & 0xFFFFFF ? WM_GPU_THROTTLE_HEAT : 0U) |
           (bits >> 56 ? WM_GPU_THROTTLE_OTHER : 0U);
}

static void tell_throttle_by_bits(struct wm_drm_look *look)
{
    const struct wm_gpu_metrics *metrics = &look->board->card->metrics;
    struct wm_error err;
    char list[512] = "", spare[16];

    look->absent[WM_GPU_THROTTLE] = "device/gpu_metrics";
    if (look->board->card->metrics_file.fd == -ENOENT)
        return;
    enum wm_reading_state state = wm_drm_card_metrics(look->board->card, &err);
    if (state != WM_READING_OK) {
        wm_drm_look_missing(look, WM_GPU_THROTTLE, state, "%s", err.text);
        return;
    }
    if (!metrics->has_throttle) {
        wm_drm_look_missing(look, WM_GPU_THROTTLE, WM_READING_UNSUPPORTED,
                            "gpu_metrics of this GPU does not have it");
        return;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(metrics->throttle >> bit & 1))
            continue;
        snprintf(spare, sizeof(spare), "bit %u", bit);
        wm_text_list(list, sizeof(list), ", ", "%s",
                     throttlers[bit] ? throttlers[bit] : spare);
    }
    wm_drm_look_throttle(look, list[0] ? list : "none", reasons_of(metrics->throttle));
}

/* Intel's drivers have one file for each reason. */
static const struct {
    const char *driver, *folder, *start;
} reasons[] = {
    { "i915", "gt/gt0", "throttle_reason_" },
    { "xe", "device/tile0/gt0/freq0/throttle", "reason_" },
};

/* What is in their names: power limits, currents, temperatures. */
static unsigned reason_of(const char *name)
{
    static const struct {
        const char *part;
        enum wm_gpu_throttle reason;
    } parts[] = {
        { "therm", WM_GPU_THROTTLE_HEAT }, { "hot", WM_GPU_THROTTLE_HEAT },
        { "ratl", WM_GPU_THROTTLE_HEAT },  { "pl", WM_GPU_THROTTLE_POWER },
        { "tdc", WM_GPU_THROTTLE_POWER },  { "iccmax", WM_GPU_THROTTLE_POWER },
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strstr(name, parts[i].part))
            return parts[i].reason;
    }
    return WM_GPU_THROTTLE_OTHER;
}

static void tell_throttle_by_files(struct wm_drm_look *look, const char *folder,
                                   const char *start)
{
    struct names names;
    struct wm_error err;
    char path[128], list[512] = "";
    unsigned found = 0;
    double set;

    list_names(look, folder, start, "", &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *reason = names.text[i] + strlen(start);
        if (strcmp(reason, "status") == 0) /* whether there is any */
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, names.text[i]);
        enum wm_reading_state state =
            wm_drm_card_number(look->board->card, path, 0, 1, &set, &err);
        if (state != WM_READING_OK) {
            wm_drm_look_failed(look, WM_GPU_THROTTLE, state, folder, &err);
            return;
        }
        if (set <= 0)
            continue;
        wm_text_list(list, sizeof(list), ", ", "%s", reason);
        found |= reason_of(reason);
    }
    look->absent[WM_GPU_THROTTLE] = folder;
    if (names.count > 0)
        wm_drm_look_throttle(look, list[0] ? list : "none", found);
}

static void tell_throttle(struct wm_drm_look *look)
{
    if (is_amdgpu(look))
        tell_throttle_by_bits(look);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (wm_drm_card_has_driver(look->board->card, reasons[i].driver))
            tell_throttle_by_files(look, reasons[i].folder, reasons[i].start);
    }
}

/* amdgpu counts for each block of the chip, "umc" being its memory. */
static void tell_errors(struct wm_drm_look *look, enum wm_gpu_field field, const char *kind)
{
    const struct wm_drm_card *card = look->board->card;
    struct names names;
    struct wm_error err;
    char path[96], text[WM_DRM_TEXT];
    uint64_t count = 0;
    double sum = 0;

    list_names(look, "device/ras", "", "_err_count", &names);
    for (size_t i = 0; i < names.count; i++) {
        snprintf(path, sizeof(path), "device/ras/%s", names.text[i]);
        enum wm_reading_state state =
            wm_drm_card_text(card, path, true, text, sizeof(text), &err);
        if (state == WM_READING_OK && wm_parse_named_number(text, kind, &count) != WM_OK)
            state = wm_drm_card_refuse(card, path, text, &err);
        if (state != WM_READING_OK) {
            wm_drm_look_failed(look, field, state, "device/ras", &err);
            return;
        }
        sum += (double)count;
    }
    look->absent[field] = "device/ras/umc_err_count";
    if (names.count > 0)
        wm_drm_look_number(look, field, sum);
}

/* "feature mask: 0x3", where the lowest bit is the memory's. */
static void tell_error_correction(struct wm_drm_look *look)
{
    static const char path[] = "device/ras/features", start[] = "feature mask: ";
    const struct wm_drm_card *card = look->board->card;
    char text[WM_DRM_TEXT];
    struct wm_error err;
    uint64_t mask = 0;

    enum wm_reading_state state =
        wm_drm_card_text(card, path, false, text, sizeof(text), &err);
    if (state == WM_READING_OK && (strncmp(text, start, strlen(start)) != 0 ||
                                   wm_parse_drm_hex(text + strlen(start), &mask) != WM_OK))
        state = wm_drm_card_refuse(card, path, text, &err);
    if (state != WM_READING_OK)
        wm_drm_look_failed(look, WM_GPU_ECC_MODE, state, path, &err);
    else
        wm_drm_look_text(look, WM_GPU_ECC_MODE, mask & 1 ? "Enabled" : "Disabled");
}

/* The power of an APU is that of its CPU too, and the first die's that of both; gpu_metrics
 * tells what most are. */
static void tell_scope(struct wm_drm_look *look)
{
    struct wm_drm_card *card = look->board->card;
    struct wm_error err;

    look->absent[WM_GPU_POWER_SCOPE] = "device/gpu_metrics";
    if (card->metrics_file.fd == -ENOENT)
        return;
    enum wm_reading_state state = wm_drm_card_metrics(card, &err);
    if (card->has_second || (card->elsewhere[0] && !card->integrated))
        wm_drm_look_text(look, WM_GPU_POWER_SCOPE, "package");
    else if (card->integrated)
        wm_drm_look_text(look, WM_GPU_POWER_SCOPE, "module");
    else if (state != WM_READING_OK)
        wm_drm_look_missing(look, WM_GPU_POWER_SCOPE, state, "%s", err.text);
    else
        wm_drm_look_text(look, WM_GPU_POWER_SCOPE,
                         card->metrics.integrated ? "module" : "gpu");
}

static void tell_power(struct wm_drm_look *look)
{
    const struct wm_drm_card *card = look->board->card;

    if (look->is_number[WM_GPU_POWER_LIMIT])
        wm_drm_look_text(look, WM_GPU_POWER_MANAGEMENT, "Supported");
    if (is_amdgpu(look))
        tell_scope(look);
    else if (look->is_number[WM_GPU_ENERGY])
        wm_drm_look_missing(look, WM_GPU_POWER_DRAW, WM_READING_UNSUPPORTED,
                            "%s counts energy alone; power is how fast that grows",
                            card->driver);
}

void wm_drm_look_at_condition(struct wm_drm_look *look)
{
    if (look->groups & WM_GPU_MEMORY)
        tell_free_memory(look);
    if (wm_drm_look_wants(look, WM_GPU_FAN))
        tell_fan(look);
    if (wm_drm_look_wants(look, WM_GPU_THROTTLE))
        tell_throttle(look);
    if (look->groups & WM_GPU_POWER)
        tell_power(look);
    if (is_amdgpu(look) && wm_drm_look_wants(look, WM_GPU_ECC_MODE))
        tell_error_correction(look);
    if (is_amdgpu(look) && wm_drm_look_wants(look, WM_GPU_ECC_CORRECTED))
        tell_errors(look, WM_GPU_ECC_CORRECTED, "ce");
    if (is_amdgpu(look) && wm_drm_look_wants(look, WM_GPU_ECC_UNCORRECTED))
        tell_errors(look, WM_GPU_ECC_UNCORRECTED, "ue");
    if ((look->groups & WM_GPU_THROUGHPUT) && is_amdgpu(look)) {
        static const char why[] = "amdgpu counts packets for a whole second when asked, "
                                  "which is too slow";
        wm_drm_look_missing(look, WM_GPU_PCI_SENT, WM_READING_UNSUPPORTED, "%s", why);
        wm_drm_look_missing(look, WM_GPU_PCI_RECEIVED, WM_READING_UNSUPPORTED, "%s", why);
    }
}
