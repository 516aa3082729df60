/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_power.c - power as its two fields tell it, else as the older call.
 *
 * The older call, nvmlDeviceGetPowerUsage, means what the board and the driver
 * make of it: the power now up to Volta, on Turing and on GA100; an average over
 * the last second on the other Ampere boards, Ada and Hopper, but with drivers
 * of the 530 series the power now on some of these too. "Now" is itself the mean
 * over the sensor's window, of 10 to 100 ms, and on A100 and H100 that window is
 * a quarter of the time only (Yang, Adamek, Armour: "Accurate and Convenient
 * Energy Measurements for GPUs", SC24). Work shorter than a second shows late and
 * flattened in an average; the fields say which of the two they are.
 */
#include "source/gpu/nvml/source_nvml_power.h"

#include <fnmatch.h>
#include <limits.h>

#include "base/base_clock.h"
#include "source/gpu/nvml/source_nvml_library.h"

static const unsigned fields[NVML_POWER_COUNT] = {
    [NVML_POWER_INSTANT] = NVML_FIELD_POWER_INSTANT,
    [NVML_POWER_AVERAGE] = NVML_FIELD_POWER_AVERAGE,
};

static const unsigned scopes[] = {
    [NVML_POWER_BY_GPU_FIELD] = NVML_POWER_GPU,
    [NVML_POWER_BY_MODULE_FIELD] = NVML_POWER_MODULE,
};

static bool is_unsupported(int status)
{
    return nvml_state(status) == WM_READING_UNSUPPORTED;
}

static int take_milliwatts(double milliwatts, double *ret_watts)
{
    /* Written the way round that leaves out NaN. All ones is "no value". */
    if (!(milliwatts >= 0 && milliwatts < UINT_MAX))
        return NVML_IMPOSSIBLE_VALUE;
    *ret_watts = milliwatts / 1e3;
    return NVML_SUCCESS;
}

static int take_field(const struct nvml_field_value *field, double *ret_watts)
{
    double milliwatts;

    if (field->status != NVML_SUCCESS)
        return field->status;
    if (field->type == NVML_VALUE_UNSIGNED_SHORT)
        return NVML_IMPOSSIBLE_VALUE; /* 16 bits end at 65 W */
    int status = nvml_field_number(field, &milliwatts);
    return status == NVML_SUCCESS ? take_milliwatts(milliwatts, ret_watts) : status;
}

/* One call for all fields. Whether one of them is to be asked in another way. */
static bool ask_fields(struct nvml_power *power, const struct nvml_api *api,
                       nvml_device device)
{
    struct nvml_field_value asked[NVML_POWER_COUNT];
    struct nvml_power_value *values[NVML_POWER_COUNT];
    bool again = false;
    int count = 0;

    for (size_t i = 0; i < NVML_POWER_COUNT; i++) {
        enum nvml_power_way way = power->values[i].way;
        if (way > NVML_POWER_BY_MODULE_FIELD)
            continue;

        /* A driver that leaves it as it is must not pass for one that says 0 W. */
        asked[count] = (struct nvml_field_value) {
            .field = fields[i],
            .scope = scopes[way],
            .status = NVML_ERROR_NO_DATA,
        };
        values[count++] = &power->values[i];
    }
    if (count == 0)
        return false;

    int status = NVML_ASK(api, field_values, device, count, asked);
    for (int i = 0; i < count; i++) {
        struct nvml_power_value *value = values[i];

        value->status =
            status == NVML_SUCCESS ? take_field(&asked[i], &value->watts) : status;
        /* Drivers older than a field call its number an invalid argument. */
        if (status == NVML_SUCCESS && value->status == NVML_ERROR_INVALID_ARGUMENT)
            value->status = NVML_ERROR_NOT_SUPPORTED;
        value->field_status = value->status;
        if (is_unsupported(value->status)) {
            value->way++;
            again = again || value->way == NVML_POWER_BY_MODULE_FIELD;
        }
    }
    return again;
}

static int ask_usage(const struct nvml_api *api, nvml_device device, double *ret_watts)
{
    unsigned milliwatts = 0;

    int status = NVML_ASK(api, power_mw, device, &milliwatts);
    return status == NVML_SUCCESS ? take_milliwatts(milliwatts, ret_watts) : status;
}

void nvml_power_read(struct nvml_power *power, const struct nvml_api *api,
                     nvml_device device)
{
    struct nvml_power_value *instant = &power->values[NVML_POWER_INSTANT];
    struct nvml_power_value *average = &power->values[NVML_POWER_AVERAGE];

    while (ask_fields(power, api, device))
        ;
    /* What it is of cannot be known, and so it cannot stand for an average. */
    if (average->way == NVML_POWER_BY_USAGE) {
        average->way = NVML_POWER_BY_NOTHING;
        average->status = NVML_ERROR_NOT_SUPPORTED;
    }
    if (instant->way == NVML_POWER_BY_USAGE) {
        instant->status = ask_usage(api, device, &instant->watts);
        if (is_unsupported(instant->status))
            instant->way = NVML_POWER_BY_NOTHING;
    }
}

/* Only boards with a CPU have a module scope. */
static bool has_module_scope(const struct nvml_api *api, nvml_device device)
{
    struct nvml_field_value asked[NVML_POWER_COUNT];
    bool has_one = false;

    for (size_t i = 0; i < NVML_POWER_COUNT; i++)
        asked[i] = (struct nvml_field_value) {
            .field = fields[i],
            .scope = NVML_POWER_MODULE,
            .status = NVML_ERROR_NO_DATA,
        };
    int status = NVML_ASK(api, field_values, device, NVML_POWER_COUNT, asked);
    for (size_t i = 0; i < NVML_POWER_COUNT; i++)
        has_one |= status == NVML_SUCCESS && asked[i].status == NVML_SUCCESS;
    return has_one;
}

/* Old drivers know no scopes. */
bool nvml_is_module(const struct nvml_api *api, nvml_device device, const char *model)
{
    return fnmatch("*GH200*", model, 0) == 0 || fnmatch("*GB[23]00*", model, 0) == 0 ||
           has_module_scope(api, device);
}

enum wm_contains nvml_power_contains(const struct nvml_power *power,
                                     enum nvml_power_meaning meaning, bool is_module)
{
    enum nvml_power_way way = power->values[meaning].way;
    bool is_of_module =
        way == NVML_POWER_BY_MODULE_FIELD || (way == NVML_POWER_BY_USAGE && is_module);

    return is_of_module ? WM_CONTAINS_MODULE : WM_CONTAINS_DEVICE;
}

const char *nvml_power_text(const struct nvml_power *power)
{
    static const char *const texts[][2] = {
        [NVML_POWER_BY_GPU_FIELD] = { "POWER_INSTANT",
                                      "POWER_INSTANT, averages of the whole module" },
        [NVML_POWER_BY_MODULE_FIELD] = { "POWER_INSTANT of the whole module",
                                         "POWER_INSTANT and averages of the whole module" },
        [NVML_POWER_BY_USAGE] = { "nvmlDeviceGetPowerUsage",
                                  "nvmlDeviceGetPowerUsage, averages of the whole module" },
        [NVML_POWER_BY_NOTHING] = { "nothing", "averages of the whole module" },
    };
    enum nvml_power_way average = power->values[NVML_POWER_AVERAGE].way;

    return texts[power->values[NVML_POWER_INSTANT].way]
                [average == NVML_POWER_BY_MODULE_FIELD];
}

/* Gain and offset at k = 2, of the same measurements: against a meter on the power lines
 * of 19 boards, the gains differed with a standard deviation of 3.6 % and the offsets
 * with one of 5.7 W. */
#define GAIN 0.07
#define OFFSET_W 11.0

/* NVML counts in milliwatts and millijoules. */
#define STEP 1e-3

#define USAGE_WINDOW_S 1.0

/* How a design of NVIDIA's measures its power; the first that matches counts. Whether
 * the energy counter sees more of the time than power is not known: it is assumed to see
 * as much. */
static const struct {
    const char *models[12]; /* patterns of names */
    int64_t period_ns;
    double window_s;
    bool averages; /* nvmlDeviceGetPowerUsage reports the mean over a second */
    const char *text;
} boards[] = {
    /* Before A100, whose name some of these contain. */
    { { "*RTX 30[0-9]*", "*RTX A[0-9]*", "*A2", "*A10", "*A10-*", "*A10G*", "*A10M*",
        "*A16*", "*A40*" },
      100 * WM_NS_PER_MS,
      0.100,
      true,
      "Ampere GA10x: all of each 100 ms" },
    { { "*A100*", "*A800*", "*A30", "*A30-*", "*A30X*" },
      100 * WM_NS_PER_MS,
      0.025,
      false,
      "A100: 25 of each 100 ms" },
    { { "*H100*", "*H800*", "*H20", "*H20-*", "*H20 *" },
      100 * WM_NS_PER_MS,
      0.025,
      true,
      "H100: 25 of each 100 ms" },
    { { "*H200*", "*GH200*", "*B[123]00*", "*GB[123]0*" },
      100 * WM_NS_PER_MS,
      0.025,
      true,
      "taken to be like an H100: 25 of each 100 ms" },
    { { "*V100*", "*TITAN V*", "*GV100*", "*P100*", "*P40", "*P4", "*GTX 10[0-9]*",
        "*TITAN X*", "*Quadro P*", "*GP100*" },
      20 * WM_NS_PER_MS,
      0.010,
      false,
      "Volta, Pascal: 10 of each 20 ms" },
    /* Before Turing, of which some have the same numbers. */
    { { "*GeForce RTX 40*", "*Ada*", "*L4", "*L40*", "*L20*", "*L2" },
      100 * WM_NS_PER_MS,
      0.100,
      true,
      "Ada: all of each 100 ms" },
    { { "*Quadro RTX 8000*" },
      100 * WM_NS_PER_MS,
      0.020,
      false,
      "Quadro RTX 8000: 20 of each 100 ms" },
    { { "*T4", "*T4-*", "*T4G*", "*RTX 20[0-9]*", "*GTX 16[0-9]*", "*Quadro RTX*",
        "*TITAN RTX*", "*T[1-9]00*", "*T1000*" },
      100 * WM_NS_PER_MS,
      0.100,
      false,
      "Turing: all of each 100 ms" },
    /* Anything else: as little as any is known to see. */
    { { "*" },
      100 * WM_NS_PER_MS,
      0.025,
      true,
      "not in the table: taken to see 25 of each 100 ms" },
};

static bool matches(const char *const *patterns, size_t count, const char *model)
{
    for (size_t i = 0; i < count && patterns[i]; i++) {
        if (fnmatch(patterns[i], model, 0) == 0)
            return true;
    }
    return false;
}

struct wm_sensor nvml_sensor(const char *model, bool is_usage)
{
    enum { LAST = sizeof(boards) / sizeof(boards[0]) - 1 };
    size_t i = 0;

    while (i < LAST &&
           !matches(boards[i].models,
                    sizeof(boards[i].models) / sizeof(boards[i].models[0]), model))
        i++;
    bool is_average = is_usage && boards[i].averages;
    return (struct wm_sensor) {
        .kind = WM_SENSOR_BUILT_IN,
        .period_ns = boards[i].period_ns,
        .window_s = is_average ? USAGE_WINDOW_S : boards[i].window_s,
        .gain = GAIN,
        .offset = OFFSET_W,
        .step = STEP,
        .text = is_average ? "the mean over a second" : boards[i].text,
    };
}
