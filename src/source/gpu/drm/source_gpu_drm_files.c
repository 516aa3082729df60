/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drm_files.c - the fields of a DRM GPU that stand in a file each.
 *
 * See in the kernel Documentation/gpu/amdgpu/thermal.rst and driver-misc.rst,
 * Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and -xe-hwmon,
 * drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c and xe/xe_gt_freq.c.
 */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <stdio.h>
#include <string.h>

#include "source/gpu/drm/source_gpu_drm_text.h"

/* What stands in a file. */
enum kind {
    LINE,  /* a text, which the driver keeps */
    WORD,  /* a text, for which it asks the GPU */
    LEVEL, /* a clock of amdgpu: the level it has */
    HIGHEST_LEVEL,
    LINK_SPEED,
    LINK_WIDTH,
    /* Whole numbers: */
    SOME_BYTES,
    BYTES,
    PERCENT,
    RPM,
    MILLICELSIUS,
    LIMIT_CELSIUS,
    COUNT,
    HERTZ,
    MEGAHERTZ,
    HIGHEST_MEGAHERTZ,
    MICROWATT,
    MEASURED_MICROWATT,
    LIMIT_MICROWATT,
};

#define BYTES_MAX (INT64_C(1) << 50)
#define MICROWATT_MAX INT64_C(100000000000)

static const struct {
    double unit;
    int64_t min, max;
    const char *zero; /* what 0 means; NULL where it is a number like others */
} numbers[] = {
    [SOME_BYTES] = { 1, 1, BYTES_MAX, NULL },
    [BYTES] = { 1, 0, BYTES_MAX, NULL },
    [PERCENT] = { 1e-2, 0, 100, NULL },
    [RPM] = { 1, 0, 100000, NULL },
    [MILLICELSIUS] = { 1e-3, -50000, 200000, NULL },
    [LIMIT_CELSIUS] = { 1e-3, 1, 200000, NULL },
    [COUNT] = { 1, 0, INT64_MAX, NULL },
    [HERTZ] = { 1, 0, INT64_C(100000000000), NULL },
    [MEGAHERTZ] = { 1e6, 0, 100000, NULL },
    [HIGHEST_MEGAHERTZ] = { 1e6, 1, 100000, NULL },
    [MICROWATT] = { 1e-6, 0, MICROWATT_MAX, NULL },
    /* The first die of a package may be measured together with the second. */
    [MEASURED_MICROWATT] = { 1e-6, 0, MICROWATT_MAX,
                             "it draws 0 W by its own account: it is not measured" },
    [LIMIT_MICROWATT] = { 1e-6, 0, MICROWATT_MAX, "no power limit is set" },
};

/* Whether the driver answers without waking a GPU that sleeps. */
static bool is_kept(enum kind kind)
{
    return kind == LINE || kind == SOME_BYTES || kind == BYTES;
}

/* The first file of a field that is there counts. A path that begins with "hwmon/"
 * is below the card's folder of hwmon, one with "link/" below the PCI device with
 * the link. The number of a sensor replaces '*': of the one with the best of the
 * labels, where "" is a sensor without a label. */
static const struct row {
    enum wm_gpu_field field;
    enum kind kind;
    const char *driver; /* "": all that have the file */
    const char *path;
    const char *labels[4];
} rows[] = {
    /* clang-format off */
    { WM_GPU_SERIAL, LINE, "amdgpu", "device/serial_number", { NULL } },
    { WM_GPU_SERIAL, LINE, "amdgpu", "device/unique_id", { NULL } },
    { WM_GPU_BIOS, LINE, "amdgpu", "device/vbios_version", { NULL } },

    { WM_GPU_MEMORY_TOTAL, SOME_BYTES, "amdgpu", "device/mem_info_vram_total", { NULL } },
    { WM_GPU_MEMORY_USED, BYTES, "amdgpu", "device/mem_info_vram_used", { NULL } },
    { WM_GPU_MEMORY_BAR1_TOTAL, SOME_BYTES, "amdgpu", "device/mem_info_vis_vram_total", { NULL } },
    { WM_GPU_MEMORY_BAR1_USED, BYTES, "amdgpu", "device/mem_info_vis_vram_used", { NULL } },
    { WM_GPU_MEMORY_SHARED_TOTAL, SOME_BYTES, "amdgpu", "device/mem_info_gtt_total", { NULL } },
    { WM_GPU_MEMORY_SHARED_USED, BYTES, "amdgpu", "device/mem_info_gtt_used", { NULL } },

    { WM_GPU_UTILIZATION_MEMORY, PERCENT, "amdgpu", "device/mem_busy_percent", { NULL } },
    { WM_GPU_FAN_SPEED, RPM, "", "hwmon/fan1_input", { NULL } },
    { WM_GPU_TEMPERATURE_HOTSPOT, MILLICELSIUS, "", "hwmon/temp*_input", { "junction" } },
    /* Documented as the temperature at which the chip is switched off. At its
     * critical one amdgpu shuts the machine down, where it gets so far. */
    { WM_GPU_TEMPERATURE_SHUTDOWN, LIMIT_CELSIUS, "", "hwmon/temp*_emergency", { "edge", "pkg", "", "junction" } },
    { WM_GPU_TEMPERATURE_SHUTDOWN, LIMIT_CELSIUS, "amdgpu", "hwmon/temp*_crit", { "edge", "pkg", "", "junction" } },
    { WM_GPU_PERFORMANCE, WORD, "amdgpu", "device/power_dpm_force_performance_level", { NULL } },

    { WM_GPU_PCI_LINK_GEN, LINK_SPEED, "", "link/current_link_speed", { NULL } },
    { WM_GPU_PCI_LINK_GEN_MAX, LINK_SPEED, "", "link/max_link_speed", { NULL } },
    { WM_GPU_PCI_LINK_WIDTH, LINK_WIDTH, "", "link/current_link_width", { NULL } },
    { WM_GPU_PCI_LINK_WIDTH_MAX, LINK_WIDTH, "", "link/max_link_width", { NULL } },
    { WM_GPU_PCI_REPLAYS, COUNT, "amdgpu", "device/pcie_replay_count", { NULL } },

    { WM_GPU_CLOCK_GRAPHICS, HERTZ, "", "hwmon/freq*_input", { "sclk" } },
    { WM_GPU_CLOCK_GRAPHICS, LEVEL, "amdgpu", "device/pp_dpm_sclk", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS, MEGAHERTZ, "i915", "gt/gt0/rps_act_freq_mhz", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS, MEGAHERTZ, "i915", "gt_act_freq_mhz", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS, MEGAHERTZ, "xe", "device/tile0/gt0/freq0/act_freq", { NULL } },
    { WM_GPU_CLOCK_MEMORY, HERTZ, "", "hwmon/freq*_input", { "mclk" } },
    { WM_GPU_CLOCK_MEMORY, LEVEL, "amdgpu", "device/pp_dpm_mclk", { NULL } },
    { WM_GPU_CLOCK_VIDEO, LEVEL, "amdgpu", "device/pp_dpm_vclk", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS_MAX, HIGHEST_LEVEL, "amdgpu", "device/pp_dpm_sclk", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS_MAX, HIGHEST_MEGAHERTZ, "i915", "gt/gt0/rps_RP0_freq_mhz", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS_MAX, HIGHEST_MEGAHERTZ, "i915", "gt_RP0_freq_mhz", { NULL } },
    { WM_GPU_CLOCK_GRAPHICS_MAX, HIGHEST_MEGAHERTZ, "xe", "device/tile0/gt0/freq0/rp0_freq", { NULL } },
    { WM_GPU_CLOCK_MEMORY_MAX, HIGHEST_LEVEL, "amdgpu", "device/pp_dpm_mclk", { NULL } },
    { WM_GPU_CLOCK_VIDEO_MAX, HIGHEST_LEVEL, "amdgpu", "device/pp_dpm_vclk", { NULL } },

    { WM_GPU_POWER_INSTANT, MEASURED_MICROWATT, "", "hwmon/power1_input", { NULL } },
    { WM_GPU_POWER_AVERAGE, MEASURED_MICROWATT, "", "hwmon/power1_average", { NULL } },
    /* What xe calls power1_cap is a limit for milliseconds (PL2). The sustained one
     * is power1_max, or power2_max where only that of the package can be set. */
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap", { NULL } },
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "", "hwmon/power1_max", { NULL } },
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "xe", "hwmon/power2_max", { NULL } },
    { WM_GPU_POWER_LIMIT_ENFORCED, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap", { NULL } }, /* by the firmware */
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap_default", { NULL } },
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "", "hwmon/power1_rated_max", { NULL } },
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "xe", "hwmon/power2_rated_max", { NULL } },
    { WM_GPU_POWER_LIMIT_MIN, MICROWATT, "amdgpu", "hwmon/power1_cap_min", { NULL } },
    { WM_GPU_POWER_LIMIT_MAX, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap_max", { NULL } },
    /* clang-format on */
};

/* Where the source that measures has a way, it is used. */
static const struct {
    enum wm_gpu_field field;
    enum wm_drm_metric metric;
} measured[] = {
    { WM_GPU_MEMORY_TOTAL, WM_DRM_MEMORY_TOTAL },
    { WM_GPU_MEMORY_USED, WM_DRM_MEMORY_USED },
    { WM_GPU_UTILIZATION_GPU, WM_DRM_UTILIZATION },
    { WM_GPU_TEMPERATURE, WM_DRM_TEMPERATURE },
    { WM_GPU_TEMPERATURE_MEMORY, WM_DRM_MEMORY_TEMPERATURE },
    { WM_GPU_POWER_DRAW, WM_DRM_POWER },
    { WM_GPU_ENERGY, WM_DRM_ENERGY },
};

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Where the row's file is; false where there can be none. */
static bool find_path(const struct wm_drm_board *board, const struct row *row, char *path,
                      size_t size)
{
    const char *folder = "", *rest = row->path;
    char sensor[16] = "";

    if (begins(rest, "hwmon/") || begins(rest, "link/")) {
        folder = begins(rest, "hwmon/") ? board->card.hwmon : board->link;
        if (!folder[0])
            return false;
        rest = strchr(rest, '/') + 1;
    }

    size_t star = strcspn(rest, "*");
    if (rest[star] == '*') {
        char kind[16];
        snprintf(kind, sizeof(kind), "%.*s", (int)star, rest);
        unsigned number = wm_drm_find_sensor(board->dir, folder, kind, row->labels,
                                             sizeof(row->labels) / sizeof(row->labels[0]));
        if (number == 0)
            return false;
        snprintf(sensor, sizeof(sensor), "%u", number);
    }
    const char *tail = rest[star] == '*' ? rest + star + 1 : "";
    return (size_t)snprintf(path, size, "%s%.*s%s%s", folder, (int)star, rest, sensor,
                            tail) < size;
}

static void tell_number(struct wm_drm_look *look, const struct row *row, const char *path,
                        struct wm_drm_text *file)
{
    double number;

    wm_drm_look_read_number(look, path, !is_kept(row->kind), numbers[row->kind].min,
                            numbers[row->kind].max, file, &number);
    if (file->state != WM_READING_OK)
        return;
    if (number == 0 && numbers[row->kind].zero)
        wm_drm_look_missing(look, row->field, WM_READING_UNSUPPORTED, "%s",
                            numbers[row->kind].zero);
    else
        wm_drm_look_number(look, row->field, number * numbers[row->kind].unit);
}

static void tell_line(struct wm_drm_look *look, const struct row *row, const char *path,
                      struct wm_drm_text *file)
{
    char line[WM_DRM_LINE];

    if (wm_parse_drm_line(file->text, line) < 0)
        wm_drm_look_refuse(look, path, file);
    else
        wm_drm_look_text(look, row->field, line);
}

static void tell_level(struct wm_drm_look *look, const struct row *row, const char *path,
                       struct wm_drm_text *file)
{
    struct wm_dpm_levels levels;

    if (wm_parse_dpm_levels(file->text, &levels) < 0)
        wm_drm_look_refuse(look, path, file);
    else if (row->kind == HIGHEST_LEVEL && levels.max > 0)
        wm_drm_look_number(look, row->field, levels.max);
    else if (row->kind == LEVEL && levels.has_now)
        wm_drm_look_number(look, row->field, levels.now);
    else
        wm_drm_look_missing(look, row->field, WM_READING_FAILED,
                            "%s/%s names no such level", look->board->card.path, path);
}

static void tell_link(struct wm_drm_look *look, const struct row *row, const char *path,
                      struct wm_drm_text *file)
{
    double number;

    int status = row->kind == LINK_SPEED ? wm_parse_link_speed(file->text, &number)
                                         : wm_parse_link_width(file->text, &number);
    if (status == WM_OK)
        wm_drm_look_number(look, row->field, number);
    else if (status == WM_ENODEV)
        wm_drm_look_missing(look, row->field, WM_READING_UNSUPPORTED,
                            "this GPU has no PCIe link of its own");
    else
        wm_drm_look_refuse(look, path, file);
}

static void tell_text(struct wm_drm_look *look, const struct row *row, const char *path,
                      struct wm_drm_text *file)
{
    wm_drm_look_read(look, path, !is_kept(row->kind), file);
    if (file->state != WM_READING_OK)
        return;
    switch (row->kind) {
    case LEVEL:
    case HIGHEST_LEVEL:
        tell_level(look, row, path, file);
        break;
    case LINK_SPEED:
    case LINK_WIDTH:
        tell_link(look, row, path, file);
        break;
    default:
        tell_line(look, row, path, file);
        break;
    }
}

static void tell(struct wm_drm_look *look, const struct row *row)
{
    struct wm_drm_text file;
    char path[128];

    file.there = find_path(look->board, row, path, sizeof(path));
    if (file.there && row->kind >= SOME_BYTES)
        tell_number(look, row, path, &file);
    else if (file.there)
        tell_text(look, row, path, &file);

    if (!file.there && !look->absent[row->field])
        look->absent[row->field] = row->path;
    else if (file.there && file.state != WM_READING_OK)
        wm_drm_look_failed(look, row->field, &file);
}

static void tell_measured(struct wm_drm_look *look, enum wm_gpu_field field,
                          enum wm_drm_metric metric)
{
    struct wm_drm_card *card = &look->board->card;
    enum wm_drm_way way = card->sensors[metric].way;
    struct wm_error err;
    double value;

    if (way != WM_DRM_BY_FILES && way != WM_DRM_BY_GPU_METRICS)
        return;
    enum wm_reading_state state = wm_drm_card_read(card, metric, &value, &err);
    if (state == WM_READING_OK)
        wm_drm_look_number(look, field, value);
    else
        wm_drm_look_missing(look, field, state, "%s", err.text);
}

void wm_drm_look_at_files(struct wm_drm_look *look)
{
    const char *driver = look->board->card.driver;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (wm_drm_look_wants(look, rows[i].field) &&
            (!rows[i].driver[0] || strcmp(rows[i].driver, driver) == 0))
            tell(look, &rows[i]);
    }
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        if (wm_drm_look_wants(look, measured[i].field))
            tell_measured(look, measured[i].field, measured[i].metric);
    }
}
