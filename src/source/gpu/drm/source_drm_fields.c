/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_fields.c - which file of a graphics card reports what: to the source again and
 * again, to the inventory when it looks.
 *
 * See in the kernel Documentation/gpu/amdgpu/thermal.rst and driver-misc.rst,
 * Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and -xe-hwmon,
 * drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c and xe/xe_gt_freq.c.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/gpu/drm/source_gpu_drm_look.h"
#include "source/gpu/source_drm_text.h"
#include "source/gpu/source_gpu_pci.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

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
    MICROJOULE,
    MICROWATT,
    DRAWN_MICROWATT,
    LIMIT_MICROWATT,
};

#define BYTES_MAX (INT64_C(1) << 50)
#define MICROWATT_MAX INT64_C(100000000000)

static const struct wm_drm_range ranges[] = {
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
    [MICROJOULE] = { 1e-6, 0, INT64_MAX, NULL },
    [MICROWATT] = { 1e-6, 0, MICROWATT_MAX, NULL },
    [DRAWN_MICROWATT] = { 1e-6, 0, MICROWATT_MAX, wm_drm_not_measured },
    [LIMIT_MICROWATT] = { 1e-6, 0, MICROWATT_MAX, "no power limit is set" },
};

/* The fields that the source measures. */
static const enum wm_gpu_field measured[WM_DRM_METRICS] = {
    [WM_DRM_ENERGY] = WM_GPU_ENERGY,
    [WM_DRM_POWER] = WM_GPU_POWER_DRAW,
    [WM_DRM_UTILIZATION] = WM_GPU_UTILIZATION_GPU,
    [WM_DRM_MEMORY_USED] = WM_GPU_MEMORY_USED,
    [WM_DRM_MEMORY_TOTAL] = WM_GPU_MEMORY_TOTAL,
    [WM_DRM_TEMPERATURE] = WM_GPU_TEMPERATURE,
    [WM_DRM_MEMORY_TEMPERATURE] = WM_GPU_TEMPERATURE_MEMORY,
};

/* To be asked wakes a GPU that has been put to sleep, at some watts that nobody would have
 * used otherwise. What its driver keeps itself does not. */
static bool is_kept(enum kind kind)
{
    return kind == LINE || kind == SOME_BYTES || kind == BYTES;
}

/* The first file of a field that is there counts. A path that begins with "hwmon/"
 * is below the card's folder of hwmon, one with "link/" below the PCI device with
 * the link. The number of a sensor replaces '*': of the one with the best of the
 * labels, where "" is a sensor without a label. For xe "card" is the whole board and
 * "pkg" the GPU on it. A second file is added, or subtracted behind a '-', and behind
 * a '&' added for an integrated GPU alone. */
static const struct row {
    enum wm_gpu_field field;
    enum kind kind;
    const char *driver; /* "": all that have the file */
    const char *path;
    const char *labels[4];
} rows[] = {
    /* clang-format off */
    { WM_GPU_ENERGY, MICROJOULE, "", "hwmon/energy*_input", { "card", "", "pkg" } },
    /* The average first: energy integrated from it has what happened between two
     * readings too. Which of them a GPU has is up to its firmware. */
    { WM_GPU_POWER_DRAW, DRAWN_MICROWATT, "", "hwmon/power1_average", { NULL } },
    { WM_GPU_POWER_DRAW, DRAWN_MICROWATT, "", "hwmon/power1_input", { NULL } },
    { WM_GPU_UTILIZATION_GPU, PERCENT, "", "device/gpu_busy_percent", { NULL } },
    /* An APU has a part of the machine's memory set aside as "VRAM", often a small
     * one, and takes the rest by its translation table (GTT) from the same chips.
     * Programs get theirs from either, so what is in use is the sum. On other cards
     * GTT is memory of the machine on the far side of the bus, and not counted. */
    { WM_GPU_MEMORY_USED, BYTES, "", "device/mem_info_vram_used &device/mem_info_gtt_used", { NULL } },
    { WM_GPU_MEMORY_TOTAL, SOME_BYTES, "", "device/mem_info_vram_total &device/mem_info_gtt_total", { NULL } },
    /* Only in kernels that Intel gives to data centres. */
    { WM_GPU_MEMORY_USED, BYTES, "", "lmem_total_bytes -lmem_avail_bytes", { NULL } },
    { WM_GPU_MEMORY_TOTAL, SOME_BYTES, "", "lmem_total_bytes", { NULL } },
    /* xe has its size once per tile. */
    { WM_GPU_MEMORY_TOTAL, SOME_BYTES, "", "device/tile0/physical_vram_size_bytes +device/tile1/physical_vram_size_bytes", { NULL } },
    { WM_GPU_MEMORY_TOTAL, SOME_BYTES, "", "device/tile0/memory/physical_vram_size_bytes +device/tile1/memory/physical_vram_size_bytes", { NULL } },
    { WM_GPU_TEMPERATURE, MILLICELSIUS, "", "hwmon/temp*_input", { "edge", "pkg", "", "junction" } },
    { WM_GPU_TEMPERATURE_MEMORY, MILLICELSIUS, "", "hwmon/temp*_input", { "mem", "vram" } },

    { WM_GPU_SERIAL, LINE, "amdgpu", "device/serial_number", { NULL } },
    { WM_GPU_SERIAL, LINE, "amdgpu", "device/unique_id", { NULL } },
    { WM_GPU_BIOS, LINE, "amdgpu", "device/vbios_version", { NULL } },

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

    { WM_GPU_POWER_INSTANT, DRAWN_MICROWATT, "", "hwmon/power1_input", { NULL } },
    { WM_GPU_POWER_AVERAGE, DRAWN_MICROWATT, "", "hwmon/power1_average", { NULL } },
    /* What xe calls power1_cap is a limit for milliseconds (PL2), which counts where there
     * is no other. The sustained one is power1_max, or power2_max where only that of the
     * package can be set. */
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap", { NULL } },
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "", "hwmon/power1_max", { NULL } },
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "xe", "hwmon/power2_max", { NULL } },
    { WM_GPU_POWER_LIMIT, LIMIT_MICROWATT, "xe", "hwmon/power1_cap", { NULL } },
    { WM_GPU_POWER_LIMIT_ENFORCED, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap", { NULL } }, /* by the firmware */
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap_default", { NULL } },
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "", "hwmon/power1_rated_max", { NULL } },
    { WM_GPU_POWER_LIMIT_DEFAULT, LIMIT_MICROWATT, "xe", "hwmon/power2_rated_max", { NULL } },
    { WM_GPU_POWER_LIMIT_MIN, MICROWATT, "amdgpu", "hwmon/power1_cap_min", { NULL } },
    { WM_GPU_POWER_LIMIT_MAX, LIMIT_MICROWATT, "amdgpu", "hwmon/power1_cap_max", { NULL } },
    /* clang-format on */
};

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The hwmon folder of the card itself: i915 has more of them, one per engine
 * block ("i915_gt0"). Of several with the name the first, by its number. */
static void find_hwmon(struct wm_drm_card *card)
{
    struct dirent *entry;

    DIR *folder = wm_file_open_folder(card->dir, "device/hwmon");
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL) {
        char name[80], line[64], path[64];

        if (!begins(entry->d_name, "hwmon") || strlen(entry->d_name) > 20)
            continue;
        snprintf(name, sizeof(name), "%.20s/name", entry->d_name);
        wm_file_read_line(dirfd(folder), name, line, sizeof(line));
        snprintf(path, sizeof(path), "device/hwmon/%.20s/", entry->d_name);
        if (wm_drm_card_has_driver(card, line) &&
            (!card->hwmon[0] || strverscmp(path, card->hwmon) < 0))
            memcpy(card->hwmon, path, sizeof(path));
    }
    closedir(folder);
}

/* Some boards have a counter of the card that stays at 0, beside one of the GPU that moves.
 * A GPU that is asleep is not woken to tell. */
static bool is_dead(int dir, const char *input, const struct row *row)
{
    char line[32];

    if (row->kind != MICROJOULE)
        return false;
    int fd = wm_file_open_at(dir, "device/power/runtime_status");
    bool is_asleep = wm_pci_is_asleep(fd);
    if (fd >= 0)
        close(fd);
    if (is_asleep)
        return false;
    wm_file_read_line(dir, input, line, sizeof(line));
    return strcmp(line, "0") == 0;
}

/* Of the sensors of a `kind` ("temp") in a folder the number of the one with the best
 * label that is not dead; 0 where none will do. */
static unsigned find_sensor(int dir, const char *folder, const char *kind,
                            const struct row *row)
{
    const size_t labels = ARRAY_LEN(row->labels);
    size_t best = 2 * labels;
    unsigned found = 0;

    for (unsigned number = 1; number <= 16; number++) {
        char path[128], label[32];

        snprintf(path, sizeof(path), "%s%s%u_input", folder, kind, number);
        if (faccessat(dir, path, F_OK, 0) != 0)
            continue;
        size_t rank = is_dead(dir, path, row) ? labels : 0;
        snprintf(path, sizeof(path), "%s%s%u_label", folder, kind, number);
        wm_file_read_line(dir, path, label, sizeof(label));
        for (size_t i = 0; i < labels && row->labels[i] && rank + i < best; i++) {
            if (strcmp(label, row->labels[i]) == 0) {
                best = rank + i;
                found = number;
            }
        }
    }
    return found;
}

/* Where the row's first file is; false where there can be none. */
static bool find_path(const struct wm_drm_card *card, const struct row *row, char *path,
                      size_t size)
{
    const char *folder = "", *rest = row->path;
    char sensor[16] = "", kind[16];

    if (begins(rest, "hwmon/") || begins(rest, "link/")) {
        folder = begins(rest, "hwmon/") ? card->hwmon : card->link;
        if (!folder[0])
            return false;
        rest = strchr(rest, '/') + 1;
    }
    size_t star = strcspn(rest, "* "), tail = star + (rest[star] == '*');
    if (rest[star] == '*') {
        snprintf(kind, sizeof(kind), "%.*s", (int)star, rest);
        unsigned number = find_sensor(card->dir, folder, kind, row);
        if (number == 0)
            return false;
        snprintf(sensor, sizeof(sensor), "%u", number);
    }
    snprintf(path, size, "%s%.*s%s%.*s", folder, (int)star, rest, sensor,
             (int)strcspn(rest + tail, " "), rest + tail);
    return true;
}

static bool is_for(const struct row *row, const struct wm_drm_card *card)
{
    return !row->driver[0] || wm_drm_card_has_driver(card, row->driver);
}

/* Whether there is one, for this user or not. */
static bool open_file(const struct wm_drm_card *card, struct wm_drm_file *file)
{
    file->fd = wm_file_open_at(card->dir, file->name);
    return file->fd != -ENOENT && file->fd != -ENOTDIR;
}

static void close_file(struct wm_drm_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -ENOENT;
}

static void open_way(struct wm_drm_card *card, const struct row *row,
                     struct wm_drm_way *way)
{
    const char *more = strchr(row->path, ' ');

    if (!find_path(card, row, way->files[0].name, sizeof(way->files[0].name)) ||
        !open_file(card, &way->files[0]))
        return;
    way->by = WM_DRM_BY_FILES;
    way->range = &ranges[row->kind];
    way->wakes = !is_kept(row->kind);
    way->file_count = 1;
    if (!more || (more[1] == '&' && !card->integrated))
        return;
    way->is_difference = more[1] == '-';
    snprintf(way->files[1].name, sizeof(way->files[1].name), "%s", more + 2);
    way->file_count += open_file(card, &way->files[1]);
}

static void open_files(struct wm_drm_card *card)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t metric = 0; metric < WM_DRM_METRICS; metric++) {
            if (measured[metric] == rows[i].field && is_for(&rows[i], card) &&
                card->ways[metric].by == WM_DRM_NOT_AT_ALL)
                open_way(card, &rows[i], &card->ways[metric]);
        }
    }
}

/* For what no file reports. Of a GPU that is asleep the binary file cannot be read now;
 * then it is taken to have an energy, which each reading finds out anew. */
static void use_gpu_metrics(struct wm_drm_card *card)
{
    for (size_t i = 0; i < WM_DRM_METRICS && card->metrics_read; i++) {
        bool has =
            card->metrics_status == WM_OK ? card->metrics.has[i] : i == WM_DRM_ENERGY;
        if (has && card->metrics_status != WM_EFORMAT &&
            card->ways[i].by == WM_DRM_NOT_AT_ALL)
            card->ways[i].by = WM_DRM_BY_GPU_METRICS;
    }
}

static void open_gpu_metrics(struct wm_drm_card *card)
{
    struct wm_error err;

    card->metrics_file = wm_drm_by_path("device/gpu_metrics");
    if (!wm_drm_card_has_driver(card, "amdgpu") || !open_file(card, &card->metrics_file))
        return;
    wm_drm_card_turn(card);
    if (wm_drm_card_metrics(card, &err) == WM_READING_OK)
        card->integrated |= card->metrics.integrated;
}

/* Intel's are always at the same place. In a virtual machine another card may be, which
 * has sensors of its own. */
static bool is_in_intel_cpu(const struct wm_drm_card *card)
{
    return (wm_drm_card_has_driver(card, "i915") || wm_drm_card_has_driver(card, "xe")) &&
           strcmp(card->slot, "0000:00:02.0") == 0 &&
           card->ways[WM_DRM_ENERGY].by == WM_DRM_NOT_AT_ALL &&
           card->ways[WM_DRM_POWER].by == WM_DRM_NOT_AT_ALL;
}

void wm_drm_card_open_ways(struct wm_drm_card *card)
{
    static const enum wm_drm_metric sums[] = { WM_DRM_UTILIZATION, WM_DRM_MEMORY_USED };

    card->sleep_file = wm_drm_by_path("device/power/runtime_status");
    open_file(card, &card->sleep_file);
    open_gpu_metrics(card);
    find_hwmon(card);
    open_files(card);
    card->integrated |= is_in_intel_cpu(card);
    use_gpu_metrics(card);
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        if (card->ways[sums[i]].by == WM_DRM_NOT_AT_ALL)
            card->ways[sums[i]].by = WM_DRM_BY_CLIENTS;
    }
}

void wm_drm_close_way(struct wm_drm_way *way)
{
    for (size_t i = 0; i < way->file_count; i++)
        close_file(&way->files[i]);
}

void wm_drm_card_close_ways(struct wm_drm_card *card)
{
    for (size_t i = 0; i < WM_DRM_METRICS; i++)
        wm_drm_close_way(&card->ways[i]);
    close_file(&card->metrics_file);
    close_file(&card->sleep_file);
}

int wm_drm_card_set_limit(const struct wm_drm_card *card, double watts,
                          struct wm_error *err)
{
    char name[96], path[640], text[32];

    snprintf(text, sizeof(text), "%.0f", watts * 1e6);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].field == WM_GPU_POWER_LIMIT && is_for(&rows[i], card) &&
            find_path(card, &rows[i], name, sizeof(name)) &&
            faccessat(card->dir, name, F_OK, 0) == 0) {
            snprintf(path, sizeof(path), "%s/%s", card->path, name);
            return wm_file_set(card->dir, name, path, text, err);
        }
    }
    return wm_fail(err, WM_ENODEV, "%s has no power limit", card->label);
}

/* What stands in a file that is no number. */
static enum wm_reading_state read_text(const struct wm_drm_card *card,
                                       const struct row *row, const char *name,
                                       char line[WM_DRM_LINE], double *ret_value,
                                       struct wm_error *err)
{
    char text[WM_DRM_TEXT];
    struct wm_dpm_levels levels;
    int status = WM_OK;

    enum wm_reading_state state =
        wm_drm_card_text(card, name, !is_kept(row->kind), text, sizeof(text), err);
    if (state != WM_READING_OK)
        return state;
    switch (row->kind) {
    case LEVEL:
    case HIGHEST_LEVEL:
        status = wm_parse_dpm_levels(text, &levels);
        if (status < 0)
            break;
        *ret_value = row->kind == LEVEL ? levels.now : levels.max;
        if (row->kind == LEVEL ? levels.has_now : levels.max > 0)
            break;
        wm_fail(err, WM_ENODEV, "%s/%s names no such level", card->path, name);
        return WM_READING_FAILED;
    case LINK_SPEED:
        status = wm_parse_link_speed(text, ret_value);
        break;
    case LINK_WIDTH:
        status = wm_parse_link_width(text, ret_value);
        break;
    default:
        status = wm_parse_drm_line(text, line);
        break;
    }
    if (status == WM_ENODEV) {
        wm_fail(err, WM_ENODEV, "this GPU has no PCIe link of its own");
        return WM_READING_UNSUPPORTED;
    }
    return status < 0 ? wm_drm_card_refuse(card, name, text, err) : WM_READING_OK;
}

/* By a file that is opened at the first look. */
static enum wm_reading_state read_kept(struct wm_drm_look *look, const struct row *row,
                                       double *ret_value, struct wm_error *err)
{
    struct wm_drm_way *way = &look->ways[row->field];

    if (way->by == WM_DRM_NOT_AT_ALL)
        open_way(look->board->card, row, way);
    return way->by == WM_DRM_BY_FILES
               ? wm_drm_read_way(look->board->card, way, ret_value, err)
               : WM_READING_NONE;
}

static void tell(struct wm_drm_look *look, const struct row *row)
{
    struct wm_drm_way way = { .range = &ranges[row->kind],
                              .files[0].fd = WM_DRM_BY_PATH,
                              .file_count = 1,
                              .wakes = !is_kept(row->kind) };
    const struct wm_drm_card *card = look->board->card;
    enum wm_reading_state state = WM_READING_NONE;
    char *name = way.files[0].name, line[WM_DRM_LINE];
    struct wm_error err;
    double value = 0;

    if (look->ways && row->kind >= SOME_BYTES)
        state = read_kept(look, row, &value, &err);
    else if (find_path(card, row, name, sizeof(way.files[0].name)))
        state = row->kind >= SOME_BYTES ? wm_drm_read_way(card, &way, &value, &err)
                                        : read_text(card, row, name, line, &value, &err);

    if (state != WM_READING_OK)
        wm_drm_look_failed(look, row->field, state, row->path, &err);
    else if (wm_gpu_field_info(row->field)->type == WM_GPU_TEXT)
        wm_drm_look_text(look, row->field, line);
    else
        wm_drm_look_number(look, row->field, value);
}

static void tell_measured(struct wm_drm_look *look, enum wm_drm_metric metric)
{
    struct wm_drm_card *card = look->board->card;
    struct wm_error err;
    double value;

    if (metric == WM_DRM_ENERGY && card->elsewhere[0]) {
        wm_drm_look_missing(look, measured[metric], WM_READING_UNSUPPORTED, "%s",
                            card->elsewhere);
        return;
    }
    if (card->ways[metric].by != WM_DRM_BY_FILES &&
        card->ways[metric].by != WM_DRM_BY_GPU_METRICS)
        return;
    enum wm_reading_state state = wm_drm_card_read(card, metric, &value, &err);
    if (state == WM_READING_OK)
        wm_drm_look_number(look, measured[metric], value);
    else
        wm_drm_look_failed(look, measured[metric], state, NULL, &err);
}

void wm_drm_look_at_files(struct wm_drm_look *look)
{
    bool is_measured[WM_GPU_FIELDS] = { false };

    for (size_t i = 0; i < WM_DRM_METRICS; i++) {
        is_measured[measured[i]] = true;
        if (wm_drm_look_wants(look, measured[i]))
            tell_measured(look, (enum wm_drm_metric)i);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!is_measured[rows[i].field] && wm_drm_look_wants(look, rows[i].field) &&
            is_for(&rows[i], look->board->card))
            tell(look, &rows[i]);
    }
}
