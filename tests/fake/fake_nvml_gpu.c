/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_gpu.c - reads one GPU of a scenario. Most of what it says is a line
 * of the table; the rest has a function below. */
#include "fake_nvml_gpu.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_nvml_process.h"

/* Stands for a value that follows from another one, until that is known. */
#define DERIVED (-1e300)

#define GIB (double)(1 << 30)
#define MIB (double)(1 << 20)

static const struct key {
    const char *name;
    enum { NUMBER, CURVE } type;
    size_t slot;
    double otherwise;
    double lowest;
} keys[] = {
#define KEY(name, type, otherwise, lowest)                                                 \
    {                                                                                      \
#name, type, offsetof(struct nvmlDevice_st, name), otherwise, lowest               \
    }
    KEY(architecture, NUMBER, 9, 0),
    KEY(compute_capability, NUMBER, 9.0, 0),
    KEY(cores, NUMBER, 16896, 0),
    KEY(multiprocessors, NUMBER, 132, 0),
    KEY(compute_mode, NUMBER, 0, 0),
    KEY(persistence, NUMBER, 1, 0),
    KEY(display_active, NUMBER, 0, 0),
    KEY(mig_mode, NUMBER, DERIVED, 0),
    KEY(mig_mode_pending, NUMBER, DERIVED, 0),
    KEY(memory_total, NUMBER, 80 * GIB, 0),
    KEY(memory_reserved, NUMBER, 512 * MIB, 0),
    KEY(memory_used, CURVE, 2 * GIB, 0),
    KEY(bar1_total, NUMBER, 128 * GIB, 0),
    KEY(bar1_used, NUMBER, 16 * MIB, 0),
    KEY(utilization, CURVE, 0.5, 0),
    KEY(memory_utilization, CURVE, NAN, 0),
    KEY(encoder, CURVE, 0, 0),
    KEY(decoder, CURVE, 0, 0),
    KEY(temperature, CURVE, 45, -273),
    KEY(temperature_memory, CURVE, 52, -273),
    KEY(temperature_slowdown, NUMBER, 89, -273),
    KEY(temperature_shutdown, NUMBER, 94, -273),
    KEY(temperature_memory_max, NUMBER, 105, -273),
    KEY(fans, NUMBER, 1, 0),
    KEY(fan, CURVE, 0.3, 0),
    KEY(fan_rpm, CURVE, 1500, 0),
    KEY(performance, NUMBER, 0, 0),
    KEY(pci_link_gen, NUMBER, 5, 0),
    KEY(pci_link_gen_max, NUMBER, 5, 0),
    KEY(pci_link_width, NUMBER, 16, 0),
    KEY(pci_link_width_max, NUMBER, 16, 0),
    KEY(pci_replays, NUMBER, 0, 0),
    KEY(pci_sent_kb, CURVE, 2000, 0),
    KEY(pci_received_kb, CURVE, 3000, 0),
    KEY(clock_graphics, CURVE, 1.755e9, 0),
    KEY(clock_sm, CURVE, 1.755e9, 0),
    KEY(clock_memory, CURVE, 2.619e9, 0),
    KEY(clock_video, CURVE, 1.395e9, 0),
    KEY(clock_graphics_max, NUMBER, 1.98e9, 0),
    KEY(clock_sm_max, NUMBER, 1.98e9, 0),
    KEY(clock_memory_max, NUMBER, 2.619e9, 0),
    KEY(clock_video_max, NUMBER, 1.545e9, 0),
    KEY(throttle, CURVE, 0, 0),
    KEY(power_management, NUMBER, 1, 0),
    KEY(power, CURVE, 250, 0),
    KEY(power_module, CURVE, NAN, 0),
    KEY(power_average, CURVE, NAN, 0),
    KEY(power_limit, NUMBER, 700, 0),
    KEY(power_limit_default, NUMBER, 700, 0),
    KEY(power_limit_enforced, NUMBER, DERIVED, 0),
    KEY(power_limit_step, NUMBER, 0, 0),
    KEY(power_limit_min, NUMBER, 200, 0),
    KEY(power_limit_max, NUMBER, 700, 0),
    KEY(physics_idle, NUMBER, 0, 0),
    KEY(physics_linear, NUMBER, 0, 0),
    KEY(physics_cubic, NUMBER, 0, 0),
    KEY(physics_leak, NUMBER, 0, 0),
    KEY(physics_noise, NUMBER, 0, 0),
    KEY(ecc_mode, NUMBER, 1, 0),
    KEY(ecc_mode_pending, NUMBER, DERIVED, 0),
    KEY(ecc_corrected, NUMBER, 0, 0),
    KEY(ecc_uncorrected, NUMBER, 0, 0),
    KEY(ecc_corrected_lifetime, NUMBER, 0, 0),
    KEY(ecc_uncorrected_lifetime, NUMBER, 0, 0),
    KEY(nvlink_links, NUMBER, 18, 0),
    KEY(nvlink_sent, CURVE, 0, 0),
    KEY(nvlink_received, CURVE, 0, 0),
    KEY(appears_at, NUMBER, 0, 0),
    KEY(lost_at, NUMBER, -1, 0),
#undef KEY
};

enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static bool parse_number(const struct place *place, json_t *json, double lowest,
                         double *number)
{
    if (json_is_null(json))
        *number = NAN;
    else if (json_is_boolean(json))
        *number = json_is_true(json);
    else if (json_is_number(json))
        *number = json_number_value(json);
    else
        return refuse(place, "is a number, true, false or null");
    return !(*number < lowest) || refuse(place, "%g is below %g", *number, lowest);
}

/* Takes what it reads out of `json`. */
static bool parse_table(const struct place *gpu, json_t *json, struct nvmlDevice_st *device)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct key *key = &keys[i];
        struct place place = inside(gpu, ".%s", key->name);
        json_t *value = json_object_get(json, key->name);
        void *slot = (char *)device + key->slot;

        if (key->type == CURVE) {
            if (!parse_curve(&place, value, key->otherwise, key->lowest, slot))
                return false;
        } else if (!value) {
            *(double *)slot = key->otherwise;
        } else if (!parse_number(&place, value, key->lowest, slot)) {
            return false;
        }
        json_object_del(json, key->name);
    }
    return true;
}

static bool is_derived(double value)
{
    return value < DERIVED / 2;
}

static void derive(struct nvmlDevice_st *gpu)
{
    bool partitioned = false;

    for (size_t i = 0; i < FAKE_MIGS_MAX; i++)
        partitioned |= gpu->migs[i].there;
    if (is_derived(gpu->mig_mode))
        gpu->mig_mode = partitioned;
    if (is_derived(gpu->mig_mode_pending))
        gpu->mig_mode_pending = gpu->mig_mode;
    if (is_derived(gpu->ecc_mode_pending))
        gpu->ecc_mode_pending = gpu->ecc_mode;
    if (is_derived(gpu->power_limit_enforced))
        gpu->power_limit_enforced = gpu->power_limit;
}

/* A missing text is `otherwise`, null is none at all. */
static bool parse_text(const struct place *gpu, json_t *json, const char *key,
                       const char *otherwise, char *out, size_t size)
{
    struct place place = inside(gpu, ".%s", key);
    json_t *value = json_object_get(json, key);
    bool done = true;

    if (!value)
        done = copy_text(&place, out, size, otherwise);
    else if (json_is_string(value))
        done = copy_text(&place, out, size, json_string_value(value));
    else if (!json_is_null(value))
        done = refuse(&place, "is a text or null");
    json_object_del(json, key);
    return done;
}

static bool parse_hex(const struct place *gpu, json_t *json, const char *key,
                      const char *otherwise, unsigned *number)
{
    struct place place = inside(gpu, ".%s", key);
    char text[16] = "", *end = text;

    if (!parse_text(gpu, json, key, otherwise, text, sizeof(text)))
        return false;
    unsigned long value = strtoul(text, &end, 16);
    if (!isxdigit((unsigned char)text[0]) || *end || value > UINT32_MAX)
        return refuse(&place, "'%s' is not up to eight hexadecimal digits", text);
    *number = (unsigned)value;
    return true;
}

static bool parse_names(const struct place *place, json_t *json, struct nvmlDevice_st *gpu)
{
    char uuid[64], bus_id[32] = "", otherwise[32];
    int length = 0;

    /* One GPU per bus, from bus 1 on. */
    snprintf(uuid, sizeof(uuid), "GPU-%08x-51a1-4ed0-8000-000000000000", gpu->index);
    snprintf(otherwise, sizeof(otherwise), "%04x:%02x:00.0", gpu->index / 255,
             gpu->index % 255 + 1);
    if (!parse_text(place, json, "name", "SIMULATED H100", gpu->name, sizeof(gpu->name)) ||
        !parse_text(place, json, "uuid", uuid, gpu->uuid, sizeof(gpu->uuid)) ||
        !parse_text(place, json, "serial", "1650000000000", gpu->serial,
                    sizeof(gpu->serial)) ||
        !parse_text(place, json, "bios", "96.00.89.00.01", gpu->bios, sizeof(gpu->bios)) ||
        !parse_text(place, json, "pci_bus_id", otherwise, bus_id, sizeof(bus_id)) ||
        !parse_hex(place, json, "pci_device_id", "233010DE", &gpu->pci_device_id) ||
        !parse_hex(place, json, "pci_sub_system_id", "16C110DE", &gpu->pci_sub_system_id))
        return false;
    if (sscanf(bus_id, "%x:%x:%x.0%n", &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device,
               &length) != 3 ||
        length == 0 || bus_id[length])
        return refuse(place, "pci_bus_id '%s' is not like 0000:3b:00.0", bus_id);
    return true;
}

/* A list of NVML's power scopes, as one bit for each. */
static bool parse_scopes(const struct place *power, json_t *json, const char *key,
                         unsigned *scopes)
{
    struct place place = inside(power, ".%s", key);
    json_t *list = json_object_get(json, key), *scope = NULL;
    size_t i = 0;

    *scopes = 1;
    if (!list)
        return true;
    *scopes = 0;
    if (!json_is_array(list))
        return refuse(&place, "is a list of scopes");
    json_array_foreach(list, i, scope)
    {
        json_int_t number = json_is_integer(scope) ? json_integer_value(scope) : -1;
        if (number < 0 || number > 31)
            return refuse(&place, "scopes are 0 to 31");
        *scopes |= 1U << number;
    }
    json_object_del(json, key);
    return true;
}

static bool parse_power(const struct place *place, json_t *json, struct nvmlDevice_st *gpu)
{
    json_t *period = json_object_get(json, "power_period_ms");
    struct place here = inside(place, ".power_period_ms");
    char usage[16];

    if (period && !parse_number(&here, period, 0, &gpu->power_period))
        return false;
    gpu->power_period /= 1e3;
    json_object_del(json, "power_period_ms");

    if (!parse_text(place, json, "power_usage", "instant", usage, sizeof(usage)))
        return false;
    gpu->power_usage_is_average = strcmp(usage, "average") == 0;
    if (!gpu->power_usage_is_average && strcmp(usage, "instant") != 0)
        return refuse(place, "power_usage '%s' is none of instant, average", usage);
    return parse_scopes(place, json, "power_instant_scopes", &gpu->power_instant_scopes) &&
           parse_scopes(place, json, "power_average_scopes", &gpu->power_average_scopes);
}

static bool parse_energy(const struct place *gpu, json_t *json, struct fake_energy *energy)
{
    static const char *const modes[] = {
        [FAKE_ENERGY_COUNTER] = "counter",
        [FAKE_ENERGY_ABSENT] = "absent",
        [FAKE_ENERGY_STUCK] = "stuck",
    };
    struct place place = inside(gpu, ".energy");
    const char *mode = "counter";
    double period_ms = 0;

    *energy = (struct fake_energy) { .reset_at = -1 };
    if (!json)
        return true;
    if (!unpack(&place, json, "{s?s, s?F, s?F, s?F, s?F !}", "mode", &mode, "start",
                &energy->start, "wrap", &energy->wrap, "reset_at", &energy->reset_at,
                "period_ms", &period_ms))
        return false;
    if (energy->start < 0 || energy->wrap < 0 || period_ms < 0)
        return refuse(&place, "start, wrap and period_ms are not below 0");
    energy->period = period_ms / 1e3;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(mode, modes[i]) == 0) {
            energy->mode = (enum fake_energy_mode)i;
            return true;
        }
    }
    return refuse(&place, "mode '%s' is none of counter, absent, stuck", mode);
}

static bool parse_mig(const struct place *place, json_t *json,
                      const struct nvmlDevice_st *gpu, unsigned index, struct fake_mig *mig)
{
    const char *name = "SIMULATED MIG 1g.10gb", *uuid = NULL;
    char default_uuid[64];
    int gpu_instance = (int)index + 1, compute_instance = 0;

    if (json_is_null(json))
        return true;
    *mig = (struct fake_mig) {
        .there = true,
        .multiprocessors = 16,
        .memory_total = 10 * GIB,
        .memory_used = 64 * MIB,
    };
    snprintf(default_uuid, sizeof(default_uuid), "MIG-%08x-51a1-4ed0-8000-%012x",
             gpu->index, index);
    if (!unpack(place, json, "{s?s, s?s, s?i, s?i, s?F, s?F, s?F !}", "name", &name, "uuid",
                &uuid, "gpu_instance", &gpu_instance, "compute_instance", &compute_instance,
                "multiprocessors", &mig->multiprocessors, "memory_total",
                &mig->memory_total, "memory_used", &mig->memory_used))
        return false;
    if (gpu_instance < 0 || compute_instance < 0 || mig->multiprocessors < 0 ||
        mig->memory_used < 0 || mig->memory_total < mig->memory_used)
        return refuse(place, "numbers are not below 0, nor memory_used above memory_total");
    mig->gpu_instance = (unsigned)gpu_instance;
    mig->compute_instance = (unsigned)compute_instance;
    return copy_text(place, mig->name, sizeof(mig->name), name) &&
           copy_text(place, mig->uuid, sizeof(mig->uuid), uuid ? uuid : default_uuid);
}

static bool parse_migs(const struct place *gpu, json_t *json, struct nvmlDevice_st *device)
{
    struct place list = inside(gpu, ".migs");

    if (!json)
        return true;
    if (!json_is_array(json) || json_array_size(json) > FAKE_MIGS_MAX)
        return refuse(&list, "is a list of up to %d objects", FAKE_MIGS_MAX);
    for (size_t i = 0; i < json_array_size(json); i++) {
        struct place place = inside(&list, "[%zu]", i);
        if (!parse_mig(&place, json_array_get(json, i), device, (unsigned)i,
                       &device->migs[i]))
            return false;
    }
    return true;
}

/* What is neither a number, a curve nor a text. */
static bool parse_parts(const struct place *place, json_t *json, struct nvmlDevice_st *gpu)
{
    json_t *energy = NULL, *processes = NULL, *migs = NULL;
    int count = 1, process_entry = 24;
    double sample_period_ms = 200;

    if (!unpack(place, json, "{s?i, s?o, s?o, s?o, s?i, s?F !}", "count", &count, "energy",
                &energy, "processes", &processes, "migs", &migs, "process_entry",
                &process_entry, "sample_period_ms", &sample_period_ms))
        return false;
    if (process_entry != 16 && process_entry != 24 && process_entry != 32)
        return refuse(place, "process_entry is none of 16, 24, 32");
    if (sample_period_ms < 1)
        return refuse(place, "sample_period_ms is below 1");
    gpu->process_entry = (unsigned)process_entry;
    gpu->sample_period = sample_period_ms / 1e3;
    return parse_energy(place, energy, &gpu->energy) && parse_migs(place, migs, gpu) &&
           fake_processes_parse(place, processes, &gpu->processes, &gpu->process_count);
}

bool fake_gpu_parse(const struct place *place, json_t *json, unsigned index,
                    struct nvmlDevice_st *gpu)
{
    /* Each step takes its keys out of a copy; what is left is not known. */
    json_t *rest = json_copy(json);
    bool done = false;

    gpu->index = index;
    gpu->set_power_limit = gpu->set_clock_highest = NAN;
    if (!json_is_object(json))
        refuse(place, "is an object");
    else
        done = rest && parse_table(place, rest, gpu) && parse_names(place, rest, gpu) &&
               parse_power(place, rest, gpu) && parse_parts(place, rest, gpu);
    json_decref(rest);
    if (done)
        derive(gpu);
    return done;
}

void fake_gpu_clear(struct nvmlDevice_st *gpu)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (keys[i].type == CURVE)
            free(((struct curve *)(void *)((char *)gpu + keys[i].slot))->points);
    }
    free(gpu->processes);
}
