/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_hwmon_drivers.c - what drivers mean by their sensors of power and energy.
 *
 * Whatever is not in the table is still read, as a sensor of which nothing more is
 * known. A new driver is one line here.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "source/hwmon/source_hwmon.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* A '#' at the end of a label stands for a number, and at the end of a name for the
 * same one; "*" is any label. '@' at the end of a name is replaced by the sensor's
 * place among those of that name. Without a name, driver and label make one. */
static const struct meaning {
    const char *driver, *label;
    enum wm_device_kind kind;
    const char *name;
} meanings[] = {
    /* Documentation/hwmon/amd_energy.rst of Linux 5.8 to 5.12, and AMD's own module
     * since. */
    { "amd_energy", "Esocket#", WM_DEVICE_CPU, "socket#" },
    { "amd_energy", "Ecore#", WM_DEVICE_CPU_PART, "core#" },

    /* Grace's firmware, by NVIDIA's "Grace Performance Tuning Guide": the rail of the
     * CPU's cores; that of the rest of the chip, which is beside it and not in it; the
     * socket with both of them, its memory and the loss of its regulators; and the
     * module with its GPU, which is all there is. */
    { "power_meter", "CPU Power Socket #", WM_DEVICE_CPU, "socket#" },
    { "power_meter", "SysIO Power Socket #", WM_DEVICE_OTHER, "sysio#" },
    { "power_meter", "Grace Power Socket #", WM_DEVICE_OTHER, "grace#" },
    { "power_meter", "Module Power Socket #", WM_DEVICE_PLATFORM, "module#" },

    /* Elsewhere an ACPI meter is the server's. */
    { "power_meter", "*", WM_DEVICE_PLATFORM, "power_meter" },

    { "apm_xgene", "CPU power", WM_DEVICE_CPU, "socket@" },
    { "apm_xgene", "IO power", WM_DEVICE_OTHER, "io@" },

    { "fam15h_power", "*", WM_DEVICE_CPU, "socket@" },

    /* What a power supply gives in all, beside its rails. */
    { "corsairpsu", "power total", WM_DEVICE_PLATFORM, NULL },

    /* NVIDIA's Jetson boards, whose device trees name the rails: what comes in, and
     * what goes to the CPU or the memory alone. VDD_CPU_CV and VDD_CPU_GPU_CV feed
     * other things as well. */
    { "ina3221", "VDD_IN", WM_DEVICE_PLATFORM, NULL },
    { "ina3221", "POM_5V_IN", WM_DEVICE_PLATFORM, NULL },
    { "ina3221", "CPU", WM_DEVICE_CPU, NULL },
    { "ina3221", "POM_5V_CPU", WM_DEVICE_CPU, NULL },
    { "ina3221", "VDD_SYS_CPU", WM_DEVICE_CPU, NULL },
    { "ina3221", "VDD_SYS_DDR", WM_DEVICE_DRAM, NULL },
};

/* GPUs, which the source "drm" reads. */
static const char *const elsewhere[] = { "amdgpu", "i915", "nouveau", "radeon", "xe" };

/* Drivers that leave it to others to multiply. An INA3221 has three rails; its
 * further numbers are sums, and voltages of another unit. */
static const struct {
    const char *driver;
    unsigned rails;
} multiplied[] = {
    { "ina3221", 3 },
};

bool wm_hwmon_is_elsewhere(const char *driver)
{
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        if (strcmp(driver, elsewhere[i]) == 0)
            return true;
    }
    return false;
}

unsigned wm_hwmon_rails(const char *driver)
{
    for (size_t i = 0; i < ARRAY_LEN(multiplied); i++) {
        if (strcmp(driver, multiplied[i].driver) == 0)
            return multiplied[i].rails;
    }
    return 0;
}

/* `ret_number` gets what the '#' stands for, "" where there is none. */
static bool fits(const char *pattern, const char *label, const char **ret_number)
{
    size_t length = strlen(pattern);
    const char *end;
    uint64_t number;

    *ret_number = "";
    if (strcmp(pattern, "*") == 0)
        return true;
    if (pattern[length - 1] != '#')
        return strcmp(pattern, label) == 0;
    if (strncmp(pattern, label, length - 1) != 0)
        return false;
    *ret_number = label + length - 1;
    return strlen(*ret_number) <= 4 && wm_text_u64(*ret_number, &end, &number) &&
           *end == '\0';
}

/* Names columns: letters, digits and '_' only, nothing of it twice. */
static void make_name(const char *driver, const char *label, char *name, size_t size)
{
    char text[128];
    size_t used = 0;

    snprintf(text, sizeof(text), "%s_%s", driver, label);
    for (const char *at = text; *at && used + 1 < size; at++) {
        unsigned char letter = (unsigned char)*at;
        if (letter < 0x80 && isalnum(letter))
            name[used++] = (char)tolower(letter);
        else if (used > 0 && name[used - 1] != '_')
            name[used++] = '_';
    }
    while (used > 0 && name[used - 1] == '_')
        used--;
    name[used] = '\0';
    if (used == 0)
        snprintf(name, size, "sensor");
}

void wm_hwmon_know(const char *driver, const char *label, struct wm_hwmon_sensor *sensor)
{
    const char *number;

    sensor->device_kind = WM_DEVICE_OTHER;
    make_name(driver, label, sensor->label, sizeof(sensor->label));
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
        const struct meaning *meaning = &meanings[i];
        if (strcmp(meaning->driver, driver) != 0 || !fits(meaning->label, label, &number))
            continue;
        sensor->device_kind = meaning->kind;
        if (meaning->name)
            snprintf(sensor->label, sizeof(sensor->label), "%.*s%s",
                     (int)strcspn(meaning->name, "#"), meaning->name, number);
        return;
    }
}

static bool is_taken(const struct wm_hwmon_sensors *sensors, size_t count,
                     const char *label)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sensors->list[i].label, label) == 0)
            return true;
    }
    return false;
}

void wm_hwmon_number_labels(struct wm_hwmon_sensors *sensors)
{
    for (size_t i = 0; i < sensors->count; i++) {
        char *label = sensors->list[i].label, base[32];
        size_t size = sizeof(sensors->list[i].label);
        size_t place = strcspn(label, "@");
        bool always = label[place] == '@';

        /* Room for what is put behind: "_511". */
        snprintf(base, sizeof(base), "%.*s", (int)(place < 26 ? place : 26), label);
        if (!always && !is_taken(sensors, i, label))
            continue;
        for (size_t number = always ? 0 : 2; number <= sensors->count + 2; number++) {
            snprintf(label, size, always ? "%s%zu" : "%s_%zu", base, number);
            if (!is_taken(sensors, i, label))
                break;
        }
    }
}
