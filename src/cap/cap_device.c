/* SPDX-License-Identifier: Apache-2.0 */
/* cap_device.c - GPUs and CPU packages as settings that can be read and written. GPUs come
 * from the inventory, which asks hanging drivers where they can be left behind. */
#include "cap/cap_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "cap/cap_journal.h"
#include "source/gpu/source_gpu_ops.h"
#include "source/source_config.h"

/* The settings stand in this order: the power of each GPU, its clocks, the packages. */
struct wm_caps {
    struct wm_source_config config;
    struct wm_gpus *gpus;
    double *clocks; /* of each GPU: what wattmeter has limited them to; NAN: not known */
    struct wm_cap_packages packages;
};

const char *wm_cap_kind_name(size_t kind)
{
    static const char *const names[] = {
        [WM_CAP_GPU_POWER] = "gpu_power",
        [WM_CAP_GPU_CLOCK] = "gpu_clock",
        [WM_CAP_CPU_POWER] = "cpu_power",
    };
    const size_t count = sizeof(names) / sizeof(names[0]);

    return kind < count ? names[kind] : NULL;
}

void wm_cap_text(enum wm_cap_kind kind, double value, char text[WM_CAP_TEXT_SIZE])
{
    if (isnan(value))
        snprintf(text, WM_CAP_TEXT_SIZE, "no limit");
    else if (kind == WM_CAP_GPU_CLOCK)
        snprintf(text, WM_CAP_TEXT_SIZE, "%.6g MHz", value / 1e6);
    else
        snprintf(text, WM_CAP_TEXT_SIZE, "%.6g W", value);
}

static void read_packages(struct wm_caps *caps)
{
    for (size_t i = 0; i < caps->packages.count; i++)
        wm_cap_package_read(&caps->packages.list[i]);
}

static const char *text_of(const struct wm_caps *caps, size_t gpu, enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    wm_gpu_get(caps->gpus, gpu, field, &value);
    return value.state == WM_READING_OK && value.text[0] ? value.text : NULL;
}

/* What nvidia-smi shows, or what a driver has that knows the one or the other only. */
static void get_drawn(const struct wm_caps *caps, size_t gpu,
                      struct wm_gpu_value *ret_drawn)
{
    static const enum wm_gpu_field fields[] = { WM_GPU_POWER_INSTANT,
                                                WM_GPU_POWER_AVERAGE };
    struct wm_gpu_value other;

    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_DRAW, ret_drawn);
    for (size_t i = 0; i < 2 && ret_drawn->state != WM_READING_OK; i++) {
        wm_gpu_get(caps->gpus, gpu, fields[i], &other);
        if (other.state == WM_READING_OK)
            *ret_drawn = other;
    }
}

static void get_gpu(const struct wm_caps *caps, size_t gpu,
                    struct wm_cap_setting *ret_setting)
{
    const char *uuid = text_of(caps, gpu, WM_GPU_UUID);
    const char *slot = text_of(caps, gpu, WM_GPU_PCI_BUS_ID);
    const char *label = text_of(caps, gpu, WM_GPU_LABEL);
    const char *name = text_of(caps, gpu, WM_GPU_NAME);
    struct wm_gpu_value persistence;

    wm_gpu_get(caps->gpus, gpu, WM_GPU_PERSISTENCE, &persistence);
    ret_setting->device = label ? label : "gpu";
    ret_setting->name = name ? name : "";
    ret_setting->identity = uuid ? uuid : slot ? slot : ret_setting->device;
    ret_setting->is_forgotten =
        persistence.state == WM_READING_OK && strcmp(persistence.text, "Disabled") == 0;
    get_drawn(caps, gpu, &ret_setting->drawn);
}

/* A limit of clocks holds until the machine is restarted or the driver has forgotten it.
 * One that a session has set is in force in place of one that was set for good. */
static void take_clock(void *context, const struct wm_cap_entry *entry)
{
    struct wm_caps *caps = context;
    struct wm_cap_setting setting;
    char boot[WM_CAP_BOOT];

    wm_cap_boot(boot);
    if (entry->kind != WM_CAP_GPU_CLOCK || !boot[0] || strcmp(boot, entry->boot) != 0)
        return;
    for (size_t i = 0; i < wm_caps_gpu_count(caps); i++) {
        get_gpu(caps, i, &setting);
        if (strcmp(setting.identity, entry->identity) == 0 &&
            (!setting.is_forgotten || wm_cap_is_locked(entry->identity)) &&
            (entry->is_session || isnan(caps->clocks[i])))
            caps->clocks[i] = entry->set;
    }
}

/* No driver says what clocks are limited to; the journal knows what we have set. Of other
 * users root alone is believed. */
static void read_clocks(struct wm_caps *caps)
{
    for (size_t i = 0; i < wm_caps_gpu_count(caps); i++)
        caps->clocks[i] = NAN;
    wm_cap_journal_each(take_clock, caps);
    wm_cap_journal_each_of_root(take_clock, caps);
}

int wm_caps_open(const struct wm_source_config *config, struct wm_caps **ret_caps,
                 struct wm_error *err)
{
    struct wm_source_config full;
    int status = wm_source_config_complete(config, &full, err);

    if (status < 0)
        return status;
    struct wm_caps *caps = calloc(1, sizeof(*caps));
    if (!caps)
        return wm_fail_memory(err, "caps");
    full.gpus = NULL;
    status = wm_source_config_copy(&full, &caps->config, err);
    if (status == WM_OK)
        status = wm_gpus_open_groups(
            &full, WM_GPU_GENERAL | WM_GPU_PCI | WM_GPU_CLOCKS | WM_GPU_POWER, &caps->gpus,
            err);
    if (status == WM_OK) {
        caps->clocks = calloc(wm_caps_gpu_count(caps) + 1, sizeof(*caps->clocks));
        if (!caps->clocks)
            status = wm_fail_memory(err, "caps");
    }
    if (status < 0) {
        wm_caps_close(caps);
        return status;
    }
    wm_cap_packages_find(&caps->packages, full.sysfs);
    read_packages(caps);
    read_clocks(caps);
    *ret_caps = caps;
    return WM_OK;
}

void wm_caps_close(struct wm_caps *caps)
{
    if (!caps)
        return;
    wm_gpus_close(caps->gpus);
    wm_source_config_release(&caps->config);
    free(caps->clocks);
    free(caps);
}

const struct wm_gpus *wm_caps_gpus(const struct wm_caps *caps)
{
    return caps->gpus;
}

size_t wm_caps_gpu_count(const struct wm_caps *caps)
{
    return wm_gpus_count(caps->gpus);
}

size_t wm_caps_count(const struct wm_caps *caps)
{
    return 2 * wm_caps_gpu_count(caps) + caps->packages.count;
}

size_t wm_caps_index(const struct wm_caps *caps, enum wm_cap_kind kind, size_t number)
{
    return number + (size_t)kind * wm_caps_gpu_count(caps);
}

/* The kind of a setting, whose number is then that of its GPU or package. */
static enum wm_cap_kind kind_of(const struct wm_caps *caps, size_t *index)
{
    size_t gpus = wm_caps_gpu_count(caps);

    if (*index < gpus)
        return WM_CAP_GPU_POWER;
    *index -= gpus;
    if (*index < gpus)
        return WM_CAP_GPU_CLOCK;
    *index -= gpus;
    return WM_CAP_CPU_POWER;
}

const struct wm_source_config *wm_caps_config(const struct wm_caps *caps)
{
    return &caps->config;
}

static void get_power(const struct wm_caps *caps, size_t gpu,
                      struct wm_cap_setting *ret_setting)
{
    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_LIMIT, &ret_setting->value);
    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_LIMIT_ENFORCED, &ret_setting->enforced);
    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_LIMIT_DEFAULT, &ret_setting->default_value);
    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_LIMIT_MIN, &ret_setting->minimum);
    wm_gpu_get(caps->gpus, gpu, WM_GPU_POWER_LIMIT_MAX, &ret_setting->maximum);
}

static void get_clock(const struct wm_caps *caps, size_t gpu,
                      struct wm_cap_setting *ret_setting)
{
    const char *source = text_of(caps, gpu, WM_GPU_SOURCE);
    struct wm_gpu_value unknown = wm_gpu_missing(
        WM_READING_UNSUPPORTED, "the driver does not say what its clocks are limited to");

    wm_gpu_get(caps->gpus, gpu, WM_GPU_CLOCK_GRAPHICS_MAX, &ret_setting->maximum);
    if (!source || strcmp(source, "nvml") != 0)
        ret_setting->maximum = unknown = wm_gpu_missing(
            WM_READING_UNSUPPORTED, "only the clocks of NVIDIA GPUs can be limited");
    ret_setting->value = ret_setting->enforced = ret_setting->minimum = unknown;
    if (!isnan(caps->clocks[gpu]))
        ret_setting->value = wm_gpu_number(caps->clocks[gpu]);
    ret_setting->default_value = ret_setting->maximum;
}

static void get_package(const struct wm_cap_package *package,
                        struct wm_cap_setting *ret_setting)
{
    static const char not_told[] = "not reported by powercap";

    ret_setting->device = ret_setting->identity = package->device;
    ret_setting->name = "";
    ret_setting->value = package->value;
    ret_setting->enforced = package->enforced;
    ret_setting->maximum = package->maximum;
    ret_setting->drawn = package->drawn;
    ret_setting->minimum = wm_gpu_missing(WM_READING_UNSUPPORTED, not_told);
    ret_setting->default_value = wm_gpu_missing(WM_READING_UNSUPPORTED, not_told);
}

void wm_caps_get(const struct wm_caps *caps, size_t index,
                 struct wm_cap_setting *ret_setting)
{
    struct wm_cap_setting setting = { .kind = kind_of(caps, &index) };

    if (setting.kind == WM_CAP_CPU_POWER)
        get_package(&caps->packages.list[index], &setting);
    else
        get_gpu(caps, index, &setting);
    if (setting.kind == WM_CAP_GPU_POWER)
        get_power(caps, index, &setting);
    else if (setting.kind == WM_CAP_GPU_CLOCK)
        get_clock(caps, index, &setting);
    *ret_setting = setting;
}

size_t wm_caps_find(const struct wm_caps *caps, enum wm_cap_kind kind, const char *identity)
{
    struct wm_cap_setting setting;
    size_t count = wm_caps_count(caps), index = 0;

    for (; index < count; index++) {
        wm_caps_get(caps, index, &setting);
        if (setting.kind == kind && strcmp(setting.identity, identity) == 0)
            break;
    }
    return index;
}

int wm_caps_refresh_until(struct wm_caps *caps, int64_t deadline_ns, struct wm_error *err)
{
    int status = wm_gpus_refresh_until(caps->gpus, WM_GPU_POWER, deadline_ns, err);

    read_packages(caps);
    read_clocks(caps);
    return status < 0 ? status : WM_OK;
}

int64_t wm_caps_patience(void)
{
    return wm_clock_monotonic_ns() + WM_GPU_PATIENCE_S * WM_NS_PER_S;
}

int wm_caps_refresh(struct wm_caps *caps, struct wm_error *err)
{
    return wm_caps_refresh_until(caps, wm_caps_patience(), err);
}

int wm_caps_write(struct wm_caps *caps, size_t index, double value, int64_t deadline_ns,
                  struct wm_error *err)
{
    struct wm_cap_setting setting;
    struct wm_error why;
    int status;

    wm_caps_get(caps, index, &setting);
    enum wm_cap_kind kind = kind_of(caps, &index);
    if (kind == WM_CAP_CPU_POWER)
        status = wm_cap_package_write(&caps->packages.list[index], value, &why);
    else
        status = wm_gpus_set(caps->gpus, index,
                             kind == WM_CAP_GPU_POWER ? WM_GPU_POWER_LIMIT
                                                      : WM_GPU_CLOCK_GRAPHICS_MAX,
                             value, deadline_ns, &why);
    return status < 0 ? wm_fail(err, status, "%s: %s", setting.device, why.text) : status;
}

static bool is_known(const struct wm_gpu_value *value)
{
    return value->state == WM_READING_OK;
}

static int fail_unknown(const struct wm_cap_setting *setting,
                        const struct wm_gpu_value *value, struct wm_error *err)
{
    static const int statuses[] = {
        [WM_READING_UNSUPPORTED] = WM_ENODEV,
        [WM_READING_DENIED] = WM_EACCES,
        [WM_READING_FAILED] = WM_EIO,
    };
    const size_t count = sizeof(statuses) / sizeof(statuses[0]);
    int status = (size_t)value->state < count ? statuses[value->state] : 0;

    return wm_fail(err, status < 0 ? status : WM_EIO, "%s: %s", setting->device,
                   value->why);
}

/* More than any device draws, for drivers that do not report a range. */
#define IMPOSSIBLE_WATTS 100e3

int wm_caps_check(const struct wm_caps *caps, size_t index, double value,
                  struct wm_error *err)
{
    struct wm_cap_setting setting;
    char wanted[WM_CAP_TEXT_SIZE], limit[WM_CAP_TEXT_SIZE];

    wm_caps_get(caps, index, &setting);
    const struct wm_gpu_value *needed =
        setting.kind == WM_CAP_GPU_CLOCK ? &setting.maximum : &setting.value;
    if (!is_known(needed))
        return fail_unknown(&setting, needed, err);
    wm_cap_text(setting.kind, value, wanted);
    if (!(value > 0))
        return wm_fail(err, WM_EINVAL, "%s: a cap is above 0, not %s", setting.device,
                       wanted);
    if (is_known(&setting.minimum) && value < setting.minimum.number) {
        wm_cap_text(setting.kind, setting.minimum.number, limit);
        return wm_fail(err, WM_EINVAL, "%s: %s is below %s, the lowest cap that can be set",
                       setting.device, wanted, limit);
    }
    if (is_known(&setting.maximum) && value > setting.maximum.number) {
        wm_cap_text(setting.kind, setting.maximum.number, limit);
        return wm_fail(err, WM_EINVAL,
                       "%s: %s is above %s, the highest cap that can be set",
                       setting.device, wanted, limit);
    }
    if (setting.kind != WM_CAP_GPU_CLOCK && value > IMPOSSIBLE_WATTS)
        return wm_fail(err, WM_EINVAL, "%s: %s is more than any device takes",
                       setting.device, wanted);
    return WM_OK;
}
