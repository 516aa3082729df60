/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_card_sensors.c - which files of a graphics card tell what it
 * measures, and what they say.
 *
 * See Documentation/gpu/amdgpu/thermal.rst and driver-misc.rst of the kernel,
 * and sysfs-driver-intel-i915-hwmon and sysfs-driver-intel-xe-hwmon in
 * Documentation/ABI/testing.
 */
#include "source/gpu/drm/source_drm_card.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/gpu/drm/source_drm_text.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* What a number of each metric is multiplied by, and the range of the number
 * beyond which it is no measurement. */
static const struct range {
    double unit;
    int64_t min, max;
} ranges[WM_DRM_METRICS] = {
    [WM_DRM_ENERGY] = { 1e-6, 0, INT64_MAX },
    [WM_DRM_POWER] = { 1e-6, 0, INT64_C(100000000000) },
    [WM_DRM_UTILIZATION] = { 1e-2, 0, 100 },
    [WM_DRM_MEMORY_USED] = { 1, 0, INT64_C(1) << 50 },
    [WM_DRM_MEMORY_TOTAL] = { 1, 1, INT64_C(1) << 50 },
    [WM_DRM_TEMPERATURE] = { 1e-3, -50 * 1000, 200 * 1000 },
    [WM_DRM_MEMORY_TEMPERATURE] = { 1e-3, -50 * 1000, 200 * 1000 },
};

/* Files with a fixed name, in the card's folder; the first of a metric that is
 * there counts, together with its other parts. One that starts with '-' is
 * subtracted. i915 has lmem files only in kernels that Intel gives to data
 * centres; xe has its size once per tile. */
static const struct offer {
    enum wm_drm_metric metric;
    const char *parts[WM_DRM_PARTS];
} offers[] = {
    { WM_DRM_UTILIZATION, { "device/gpu_busy_percent" } },
    { WM_DRM_MEMORY_USED, { "device/mem_info_vram_used" } },
    { WM_DRM_MEMORY_USED, { "lmem_total_bytes", "-lmem_avail_bytes" } },
    { WM_DRM_MEMORY_TOTAL, { "device/mem_info_vram_total" } },
    { WM_DRM_MEMORY_TOTAL, { "lmem_total_bytes" } },
    { WM_DRM_MEMORY_TOTAL,
      { "device/tile0/physical_vram_size_bytes",
        "device/tile1/physical_vram_size_bytes" } },
    { WM_DRM_MEMORY_TOTAL,
      { "device/tile0/memory/physical_vram_size_bytes",
        "device/tile1/memory/physical_vram_size_bytes" } },
};

/* An APU has a part of the machine's memory set aside as "VRAM", often a small
 * one, and takes the rest by its translation table (GTT) from the same chips.
 * Programs get theirs from either, so what is in use is the sum. On other cards
 * GTT is memory of the machine on the far side of the bus, and not counted. */
static const struct offer integrated_offers[] = {
    { WM_DRM_MEMORY_USED, { "device/mem_info_gtt_used" } },
    { WM_DRM_MEMORY_TOTAL, { "device/mem_info_gtt_total" } },
};

/* Values of hwmon, by the label of the sensor, best first; "" is one without a
 * label. For xe "card" is the whole board and "pkg" the GPU on it. */
static const struct labelled {
    enum wm_drm_metric metric;
    const char *kind;
    const char *labels[4];
} labelled[] = {
    { WM_DRM_ENERGY, "energy", { "card", "", "pkg" } },
    { WM_DRM_TEMPERATURE, "temp", { "edge", "pkg", "", "junction" } },
    { WM_DRM_MEMORY_TEMPERATURE, "temp", { "mem", "vram" } },
};

/* The average first: energy integrated from it has what happened between two
 * readings too. Which of them a GPU has is up to its firmware. */
static const char *const powers[] = { "power1_average", "power1_input" };

static void open_file(struct wm_drm_file *file, int dir, const char *folder,
                      const char *name)
{
    file->sign = name[0] == '-' ? -1 : 1;
    snprintf(file->name, sizeof(file->name), "%s%s", folder, name + (name[0] == '-'));
    file->fd = wm_file_open_at(dir, file->name);
}

static void close_file(struct wm_drm_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -ENOENT;
}

/* Adds a file where there is one, for this user or not. */
static bool add_file(struct wm_drm_sensor *sensor, int dir, const char *folder,
                     const char *name)
{
    struct wm_drm_file *file = &sensor->files[sensor->file_count];

    if (sensor->file_count == WM_DRM_PARTS)
        return false;
    open_file(file, dir, folder, name);
    if (file->fd == -ENOENT || file->fd == -ENOTDIR)
        return false;
    sensor->file_count++;
    sensor->way = WM_DRM_BY_FILES;
    return true;
}

static void open_offers(struct wm_drm_card *card, int dir)
{
    for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
        struct wm_drm_sensor *sensor = &card->sensors[offers[i].metric];
        if (sensor->way != WM_DRM_NOT_AT_ALL)
            continue;
        for (size_t k = 0; k < WM_DRM_PARTS && offers[i].parts[k]; k++) {
            if (!add_file(sensor, dir, "", offers[i].parts[k]) && k == 0)
                break;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(integrated_offers) && card->integrated; i++) {
        struct wm_drm_sensor *sensor = &card->sensors[integrated_offers[i].metric];
        if (sensor->way == WM_DRM_BY_FILES)
            add_file(sensor, dir, "", integrated_offers[i].parts[0]);
    }
}

/* The hwmon folder of the card itself: i915 has more of them, one per engine
 * block ("i915_gt0"). Of several with the name the first, by its number. */
static bool find_hwmon(const struct wm_drm_card *card, int dir, char *ret_folder,
                       size_t size)
{
    struct dirent *entry;
    bool found = false;

    DIR *folder = wm_file_open_folder(dir, "device/hwmon");
    if (!folder)
        return false;
    while ((entry = readdir(folder)) != NULL) {
        char name[80], line[64], path[64];

        if (strncmp(entry->d_name, "hwmon", 5) != 0 || strlen(entry->d_name) > 20)
            continue;
        snprintf(name, sizeof(name), "%.20s/name", entry->d_name);
        wm_file_read_line(dirfd(folder), name, line, sizeof(line));
        if (strcmp(line, card->driver) != 0)
            continue;
        snprintf(path, sizeof(path), "device/hwmon/%.20s/", entry->d_name);
        if (found && strverscmp(path, ret_folder) > 0)
            continue;
        snprintf(ret_folder, size, "%s", path);
        found = true;
    }
    closedir(folder);
    return found;
}

unsigned wm_drm_find_sensor(int dir, const char *folder, const char *kind,
                            const char *const *labels, size_t count)
{
    size_t best = count;
    unsigned found = 0;

    for (unsigned number = 1; number <= 16; number++) {
        char path[128], label[32];

        snprintf(path, sizeof(path), "%s%s%u_input", folder, kind, number);
        if (faccessat(dir, path, F_OK, 0) != 0)
            continue;
        snprintf(path, sizeof(path), "%s%s%u_label", folder, kind, number);
        wm_file_read_line(dir, path, label, sizeof(label));
        for (size_t i = 0; i < best && labels[i]; i++) {
            if (strcmp(label, labels[i]) == 0) {
                best = i;
                found = number;
            }
        }
    }
    return found;
}

static void open_hwmon(struct wm_drm_card *card, int dir)
{
    const char *folder = card->hwmon;
    char name[32];

    if (!find_hwmon(card, dir, card->hwmon, sizeof(card->hwmon)))
        return;
    for (size_t i = 0; i < ARRAY_LEN(powers); i++) {
        if (card->sensors[WM_DRM_POWER].file_count == 0)
            add_file(&card->sensors[WM_DRM_POWER], dir, folder, powers[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(labelled); i++) {
        unsigned number =
            wm_drm_find_sensor(dir, folder, labelled[i].kind, labelled[i].labels,
                               ARRAY_LEN(labelled[i].labels));
        if (number == 0)
            continue;
        snprintf(name, sizeof(name), "%s%u_input", labelled[i].kind, number);
        add_file(&card->sensors[labelled[i].metric], dir, folder, name);
    }
}

enum wm_reading_state wm_drm_state_of(int number)
{
    switch (number) {
    case EACCES:
        return WM_READING_DENIED;
    /* Who may open a file may read it: this is amdgpu's word for a GPU that is
     * asleep or being reset, from Linux 6.15 on. */
    case EPERM:
        return WM_READING_STALE;
    case EOPNOTSUPP:
    case ENODATA:
    case EINVAL:
    case ENOSYS:
        return WM_READING_UNSUPPORTED;
    default:
        return WM_READING_FAILED;
    }
}

static enum wm_reading_state fail_file(const struct wm_drm_card *card,
                                       const struct wm_drm_file *file, int number,
                                       struct wm_error *err)
{
    char path[sizeof(card->path) + sizeof(file->name)];

    snprintf(path, sizeof(path), "%s/%s", card->path, file->name);
    errno = number;
    wm_fail_errno(err, path);
    return wm_drm_state_of(number);
}

static void read_gpu_metrics(struct wm_drm_card *card)
{
    _Alignas(8) char bytes[WM_GPU_METRICS_SIZE + 2];

    card->metrics_read = true;
    card->metrics_status = WM_EIO;
    ssize_t length = card->metrics_file.fd < 0
                         ? card->metrics_file.fd
                         : wm_file_reread(card->metrics_file.fd, bytes, sizeof(bytes));
    if (length < 0) {
        card->metrics_state =
            fail_file(card, &card->metrics_file, (int)-length, &card->metrics_err);
        return;
    }
    card->metrics_state = WM_READING_FAILED;
    card->metrics_status = wm_parse_gpu_metrics(bytes, (size_t)length, &card->metrics);
    if (card->metrics_status == WM_OK)
        return;
    if (length < 4)
        wm_fail(&card->metrics_err, WM_EFORMAT, "%s/%s: only %zd bytes", card->path,
                card->metrics_file.name, length);
    else
        wm_fail(&card->metrics_err, WM_EFORMAT,
                "%s/%s: revision %u.%u of %zd bytes is not known", card->path,
                card->metrics_file.name, (unsigned char)bytes[2], (unsigned char)bytes[3],
                length);
}

/* The fields of gpu_metrics, for what no file tells. */
static const struct {
    enum wm_drm_metric metric;
    unsigned flag;
    size_t slot;
} fields[] = {
    { WM_DRM_ENERGY, WM_GPU_METRICS_ENERGY, offsetof(struct wm_gpu_metrics, energy) },
    { WM_DRM_POWER, WM_GPU_METRICS_POWER, offsetof(struct wm_gpu_metrics, power) },
    { WM_DRM_UTILIZATION, WM_GPU_METRICS_UTILIZATION,
      offsetof(struct wm_gpu_metrics, utilization) },
    { WM_DRM_TEMPERATURE, WM_GPU_METRICS_TEMPERATURE,
      offsetof(struct wm_gpu_metrics, temperature) },
    { WM_DRM_MEMORY_TEMPERATURE, WM_GPU_METRICS_MEMORY_TEMPERATURE,
      offsetof(struct wm_gpu_metrics, memory_temperature) },
};

/* Of a GPU that is asleep the file cannot be read now; then it is taken to have
 * an energy, which each reading finds out anew. */
static void use_gpu_metrics(struct wm_drm_card *card)
{
    bool readable = card->metrics_status == WM_OK;
    bool unknown = card->metrics_status == WM_EFORMAT;

    for (size_t i = 0; i < ARRAY_LEN(fields) && card->metrics_read && !unknown; i++) {
        struct wm_drm_sensor *sensor = &card->sensors[fields[i].metric];
        bool has = readable ? (card->metrics.present & fields[i].flag) != 0
                            : fields[i].metric == WM_DRM_ENERGY;
        if (sensor->way == WM_DRM_NOT_AT_ALL && has)
            sensor->way = WM_DRM_BY_GPU_METRICS;
    }
}

static void open_gpu_metrics(struct wm_drm_card *card, int dir)
{
    if (strcmp(card->driver, "amdgpu") != 0)
        return;
    open_file(&card->metrics_file, dir, "", "device/gpu_metrics");
    if (card->metrics_file.fd == -ENOENT)
        return;
    wm_drm_card_turn(card);
    card->metrics_read = true;
    card->metrics_status = WM_EIO;
    if (!card->asleep)
        read_gpu_metrics(card);
    card->integrated |= card->metrics_status == WM_OK && card->metrics.integrated;
}

static void fill_gaps(struct wm_drm_card *card)
{
    use_gpu_metrics(card);
    if (card->sensors[WM_DRM_UTILIZATION].way == WM_DRM_NOT_AT_ALL)
        card->sensors[WM_DRM_UTILIZATION].way = WM_DRM_BY_CLIENTS;
    if (card->sensors[WM_DRM_MEMORY_USED].way == WM_DRM_NOT_AT_ALL)
        card->sensors[WM_DRM_MEMORY_USED].way = WM_DRM_BY_CLIENTS;
}

/* Intel's are always at the same place. In a virtual machine another card may be, which
 * has sensors of its own. */
static bool is_in_intel_cpu(const struct wm_drm_card *card)
{
    return (strcmp(card->driver, "i915") == 0 || strcmp(card->driver, "xe") == 0) &&
           strcmp(card->slot, "0000:00:02.0") == 0 &&
           card->sensors[WM_DRM_ENERGY].way == WM_DRM_NOT_AT_ALL &&
           card->sensors[WM_DRM_POWER].way == WM_DRM_NOT_AT_ALL;
}

void wm_drm_card_open_sensors(struct wm_drm_card *card, int dir)
{
    open_file(&card->sleep_file, dir, "", "device/power/runtime_status");
    open_gpu_metrics(card, dir);
    open_offers(card, dir);
    open_hwmon(card, dir);
    card->integrated |= is_in_intel_cpu(card);
    fill_gaps(card);
}

void wm_drm_card_close(struct wm_drm_card *card)
{
    for (size_t i = 0; i < WM_DRM_METRICS; i++) {
        for (size_t k = 0; k < card->sensors[i].file_count; k++)
            close_file(&card->sensors[i].files[k]);
        card->sensors[i].file_count = 0;
    }
    close_file(&card->metrics_file);
    close_file(&card->sleep_file);
}

void wm_drm_card_turn(struct wm_drm_card *card)
{
    char text[32];

    card->metrics_read = false;
    card->asleep = card->sleep_file.fd >= 0 &&
                   wm_file_reread(card->sleep_file.fd, text, sizeof(text)) > 0 &&
                   strcmp(text, "suspended\n") == 0;
}

/* To be asked wakes a GPU that has been put to sleep, at some watts that nobody
 * would have used otherwise. Its memory is counted by the driver. */
static bool wakes(enum wm_drm_metric metric)
{
    return metric != WM_DRM_MEMORY_USED && metric != WM_DRM_MEMORY_TOTAL;
}

static enum wm_reading_state read_file(const struct wm_drm_card *card,
                                       const struct wm_drm_file *file, int64_t *ret_number,
                                       struct wm_error *err)
{
    char text[32], line[48];

    ssize_t length = file->fd < 0 ? file->fd : wm_file_reread(file->fd, text, sizeof(text));
    if (length < 0)
        return fail_file(card, file, (int)-length, err);
    if (strlen(text) == (size_t)length && wm_parse_sysfs_number(text, ret_number) == WM_OK)
        return WM_READING_OK;
    wm_text_line(line, sizeof(line), text);
    wm_fail(err, WM_EFORMAT, "%s/%s: '%s' is not a number", card->path, file->name, line);
    return WM_READING_FAILED;
}

static enum wm_reading_state read_files(const struct wm_drm_card *card,
                                        enum wm_drm_metric metric, double *ret_value,
                                        struct wm_error *err)
{
    const struct wm_drm_sensor *sensor = &card->sensors[metric];
    const struct range *range = &ranges[metric];
    int64_t sum = 0, number;

    for (size_t i = 0; i < sensor->file_count; i++) {
        const struct wm_drm_file *file = &sensor->files[i];
        enum wm_reading_state state = read_file(card, file, &number, err);
        if (state != WM_READING_OK)
            return state;
        if (number < 0 && range->min >= 0) {
            wm_fail(err, WM_EFORMAT, "%s/%s: %" PRId64 " is below zero", card->path,
                    file->name, number);
            return WM_READING_FAILED;
        }
        if (__builtin_add_overflow(sum, file->sign * number, &sum))
            sum = INT64_MAX;
    }
    if (sum < range->min || sum > range->max) {
        wm_fail(err, WM_EFORMAT, "%s/%s: %" PRId64 " is out of range", card->path,
                sensor->files[0].name, sum);
        return WM_READING_FAILED;
    }
    *ret_value = (double)sum * range->unit;
    return WM_READING_OK;
}

static enum wm_reading_state fail_asleep(const struct wm_drm_card *card,
                                         struct wm_error *err)
{
    wm_fail(err, WM_EIO, "%s is asleep, and is not woken to be asked", card->label);
    return WM_READING_STALE;
}

enum wm_reading_state wm_drm_card_metrics(struct wm_drm_card *card,
                                          const struct wm_gpu_metrics **ret_metrics,
                                          struct wm_error *ret_err)
{
    if (card->asleep)
        return fail_asleep(card, ret_err);
    if (!card->metrics_read)
        read_gpu_metrics(card);
    if (card->metrics_status != WM_OK) {
        *ret_err = card->metrics_err;
        return card->metrics_state;
    }
    *ret_metrics = &card->metrics;
    return WM_READING_OK;
}

static enum wm_reading_state read_field(struct wm_drm_card *card, enum wm_drm_metric metric,
                                        double *ret_value, struct wm_error *err)
{
    const struct wm_gpu_metrics *metrics;

    enum wm_reading_state state = wm_drm_card_metrics(card, &metrics, err);
    if (state != WM_READING_OK)
        return state;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (fields[i].metric != metric || !(metrics->present & fields[i].flag))
            continue;
        memcpy(ret_value, (const char *)metrics + fields[i].slot, sizeof(*ret_value));
        return WM_READING_OK;
    }
    wm_fail(err, WM_ENODEV, "%s/%s does not have it", card->path, card->metrics_file.name);
    return WM_READING_UNSUPPORTED;
}

enum wm_reading_state wm_drm_card_read(struct wm_drm_card *card, enum wm_drm_metric metric,
                                       double *ret_value, struct wm_error *ret_err)
{
    enum wm_reading_state state;
    double value = 0;

    if (card->asleep && wakes(metric))
        return fail_asleep(card, ret_err);
    if (card->sensors[metric].way == WM_DRM_BY_FILES)
        state = read_files(card, metric, &value, ret_err);
    else
        state = read_field(card, metric, &value, ret_err);

    /* The first die of a package (MI250) is measured together with the second,
     * for which amdgpu then says 0. No GPU that is awake draws nothing. */
    if (state == WM_READING_OK && metric == WM_DRM_POWER && value <= 0) {
        wm_fail(ret_err, WM_ENODEV, "%s draws 0 W by its own account: it is not measured",
                card->label);
        return WM_READING_UNSUPPORTED;
    }
    if (state == WM_READING_OK)
        *ret_value = value;
    return state;
}
