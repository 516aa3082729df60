/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml_numbers.c - the numbers that NVML reports of a GPU: how each is asked,
 * what it cannot be, and its unit. */
#include "source/gpu/nvml/source_gpu_nvml.h"

#include <limits.h>
#include <string.h>

/* The greatest values that are not NVML's way to say "none". */
#define ANY_UNSIGNED ((double)(UINT_MAX - 1))
#define ANY_LONG 0x1.fffffffffffffp+63

/* A number that has a call, or a field, of its own. */
struct number {
    enum wm_gpu_field field;
    int (*ask)(const struct nvml_api *api, nvml_device device, const struct number *number,
               double *ret_value);
    size_t slot;        /* of the call in struct nvml_api, where `ask` serves several */
    int which;          /* the call's argument, where it has one */
    double most;        /* more than this cannot be */
    double times, over; /* from NVML's unit to ours; whole, so that 71500 mW are 71.5 W */
};

/* ISO C has no cast between pointers of the two kinds that lie in a slot. */
#define CALL(call, api, number)                                                            \
    do {                                                                                   \
        memcpy(&(call), (const char *)(api) + (number)->slot, sizeof(call));               \
        if (!(call))                                                                       \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                          \
    } while (0)

static int ask_plain(const struct nvml_api *api, nvml_device device,
                     const struct number *number, double *ret_value)
{
    int (*call)(nvml_device device, unsigned *value);
    unsigned value = 0;
    CALL(call, api, number);

    int status = call(device, &value);
    *ret_value = value;
    return status;
}

static int ask_which(const struct nvml_api *api, nvml_device device,
                     const struct number *number, double *ret_value)
{
    int (*call)(nvml_device device, int which, unsigned *value);
    unsigned value = 0;
    CALL(call, api, number);

    int status = call(device, number->which, &value);
    *ret_value = value;
    return status;
}

static int ask_sampled(const struct nvml_api *api, nvml_device device,
                       const struct number *number, double *ret_value)
{
    int (*call)(nvml_device device, unsigned *value, unsigned *period_us);
    unsigned value = 0, period_us = 0;
    CALL(call, api, number);

    int status = call(device, &value, &period_us);
    *ret_value = value;
    return status;
}

static int ask_long(const struct nvml_api *api, nvml_device device,
                    const struct number *number, double *ret_value)
{
    int (*call)(nvml_device device, unsigned long long *value);
    unsigned long long value = 0;
    CALL(call, api, number);

    int status = call(device, &value);
    *ret_value = (double)value;
    return status;
}

static int ask_ecc(const struct nvml_api *api, nvml_device device,
                   const struct number *number, double *ret_value)
{
    bool is_ever = number->field == WM_GPU_ECC_CORRECTED_LIFETIME ||
                   number->field == WM_GPU_ECC_UNCORRECTED_LIFETIME;
    unsigned long long count = 0;

    int status = NVML_ASK(api, ecc_errors, device, number->which,
                          is_ever ? NVML_ECC_AGGREGATE : NVML_ECC_VOLATILE, &count);
    *ret_value = (double)count;
    return status;
}

/* A board without fans does not know the first. */
static int without_fan(int status)
{
    return status == NVML_ERROR_INVALID_ARGUMENT ? NVML_ERROR_NOT_SUPPORTED : status;
}

static int ask_utilization(const struct nvml_api *api, nvml_device device,
                           const struct number *number, double *ret_value)
{
    struct nvml_utilization percent = { 0 };

    int status = NVML_ASK(api, utilization, device, &percent);
    *ret_value = number->field == WM_GPU_UTILIZATION_GPU ? percent.gpu : percent.memory;
    return status;
}

static int ask_bar1(const struct nvml_api *api, nvml_device device,
                    const struct number *number, double *ret_value)
{
    struct nvml_bar1_memory memory = { 0 };

    int status = NVML_ASK(api, bar1_memory, device, &memory);
    if (status == NVML_SUCCESS && memory.used > memory.total)
        status = NVML_IMPOSSIBLE_VALUE;
    *ret_value =
        (double)(number->field == WM_GPU_MEMORY_BAR1_USED ? memory.used : memory.total);
    return memory.total == NVML_NOT_AVAILABLE ? NVML_IMPOSSIBLE_VALUE : status;
}

/* What this call distinguishes is the parts of a partitioned GPU, so far; a driver
 * may come to answer for a whole one. */
static int ask_multiprocessors(const struct nvml_api *api, nvml_device device,
                               const struct number *number, double *ret_value)
{
    struct nvml_attributes attributes = { 0 };
    (void)number;

    int status = NVML_ASK(api, attributes, device, &attributes);
    *ret_value = attributes.multiprocessors;
    return status;
}

static int ask_power_limits(const struct nvml_api *api, nvml_device device,
                            const struct number *number, double *ret_value)
{
    unsigned lowest = 0, highest = 0;

    int status = NVML_ASK(api, power_limit_range_mw, device, &lowest, &highest);
    *ret_value = number->field == WM_GPU_POWER_LIMIT_MIN ? lowest : highest;
    return status;
}

/* The older call does not say which fan it means. */
static int ask_fan(const struct nvml_api *api, nvml_device device,
                   const struct number *number, double *ret_value)
{
    unsigned percent = 0;
    (void)number;

    int status = NVML_ASK(api, fan_speed_v2, device, 0, &percent);
    if (nvml_lacks_call(status))
        status = NVML_ASK(api, fan_speed_v1, device, &percent);
    *ret_value = percent;
    return without_fan(status);
}

static int ask_fan_rpm(const struct nvml_api *api, nvml_device device,
                       const struct number *number, double *ret_value)
{
    struct nvml_fan_speed_v1 speed = { .version = NVML_FAN_SPEED_V1 };
    (void)number;

    int status = NVML_ASK(api, fan_rpm, device, &speed);
    *ret_value = speed.rpm;
    return without_fan(status);
}

static int ask_temperature(const struct nvml_api *api, nvml_device device,
                           const struct number *number, double *ret_value)
{
    (void)number;
    return nvml_temperature(api, device, ret_value);
}

static int ask_field(const struct nvml_api *api, nvml_device device,
                     const struct number *number, double *ret_value)
{
    /* What the driver leaves as it is must not pass for 0. */
    struct nvml_field_value field = {
        .field = (unsigned)number->which,
        .scope = number->field == WM_GPU_TEMPERATURE_MEMORY ? 0 : NVML_NVLINK_ALL,
        .status = NVML_ERROR_NO_DATA,
    };

    int status = NVML_ASK(api, field_values, device, 1, &field);
    if (status == NVML_SUCCESS)
        status = field.status;
    /* A driver from before a field says that the argument is wrong. */
    if (status == NVML_ERROR_INVALID_ARGUMENT)
        status = NVML_ERROR_NOT_SUPPORTED;
    return status == NVML_SUCCESS ? nvml_field_number(&field, ret_value) : status;
}

/* How many links are up. The first that cannot be is past the last. */
static int ask_nvlinks(const struct nvml_api *api, nvml_device device,
                       const struct number *number, double *ret_value)
{
    double up = 0;
    (void)number;

    for (unsigned link = 0; link < NVML_NVLINKS_MAX; link++) {
        unsigned is_up = NVML_DISABLED;
        int status = NVML_ASK(api, nvlink_state, device, link, &is_up);

        if (status == NVML_ERROR_INVALID_ARGUMENT)
            break;
        if (status != NVML_SUCCESS && (link == 0 || status != NVML_ERROR_NOT_SUPPORTED))
            return status;
        if (status == NVML_SUCCESS && is_up > NVML_ENABLED)
            return NVML_IMPOSSIBLE_VALUE;
        up += status == NVML_SUCCESS ? is_up : 0;
    }
    *ret_value = up;
    return NVML_SUCCESS;
}

/* A fan may turn faster than what its 100 % stand for. PCIe throughput is reported in
 * "KB/s", which is taken by its word. */
enum { FAN_MOST = 200, CELSIUS_MOST = 1000, MHZ_MOST = 100000 };
#define CELSIUS_LEAST (-273.0)

/* A new number is one line here and, where no call is like its own, one function
 * above. */
/* clang-format off */
#define SLOT(member) offsetof(struct nvml_api, member)
static const struct number numbers[] = {
    { WM_GPU_ARCHITECTURE, ask_plain, SLOT(architecture), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_CORES, ask_plain, SLOT(cores), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_MULTIPROCESSORS, ask_multiprocessors, 0, 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_COMPUTE_MODE, ask_plain, SLOT(compute_mode), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PERSISTENCE, ask_plain, SLOT(persistence), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_DISPLAY_ACTIVE, ask_plain, SLOT(display_active), 0, NVML_ENABLED, 1, 1 },

    { WM_GPU_MEMORY_BAR1_TOTAL, ask_bar1, 0, 0, ANY_LONG, 1, 1 },
    { WM_GPU_MEMORY_BAR1_USED, ask_bar1, 0, 0, ANY_LONG, 1, 1 },

    { WM_GPU_UTILIZATION_GPU, ask_utilization, 0, 0, 100, 1, 100 },
    { WM_GPU_UTILIZATION_MEMORY, ask_utilization, 0, 0, 100, 1, 100 },
    { WM_GPU_UTILIZATION_ENCODER, ask_sampled, SLOT(encoder_utilization), 0, 100, 1, 100 },
    { WM_GPU_UTILIZATION_DECODER, ask_sampled, SLOT(decoder_utilization), 0, 100, 1, 100 },
    { WM_GPU_FAN, ask_fan, 0, 0, FAN_MOST, 1, 100 },
    { WM_GPU_FAN_SPEED, ask_fan_rpm, 0, 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_TEMPERATURE, ask_temperature, 0, 0, CELSIUS_MOST, 1, 1 },
    { WM_GPU_TEMPERATURE_MEMORY, ask_field, 0, NVML_FIELD_MEMORY_TEMPERATURE, CELSIUS_MOST, 1, 1 },
    { WM_GPU_TEMPERATURE_SLOWDOWN, ask_which, SLOT(temperature_threshold), NVML_TEMPERATURE_SLOWDOWN, CELSIUS_MOST, 1, 1 },
    { WM_GPU_TEMPERATURE_SHUTDOWN, ask_which, SLOT(temperature_threshold), NVML_TEMPERATURE_SHUTDOWN, CELSIUS_MOST, 1, 1 },

    { WM_GPU_PERFORMANCE, ask_plain, SLOT(performance), 0, ANY_UNSIGNED, 1, 1 },

    { WM_GPU_PCI_LINK_GEN, ask_plain, SLOT(link_generation), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PCI_LINK_GEN_MAX, ask_plain, SLOT(link_generation_max), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PCI_LINK_WIDTH, ask_plain, SLOT(link_width), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PCI_LINK_WIDTH_MAX, ask_plain, SLOT(link_width_max), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PCI_REPLAYS, ask_plain, SLOT(replays), 0, ANY_UNSIGNED, 1, 1 },
    { WM_GPU_PCI_SENT, ask_which, SLOT(throughput), NVML_PCIE_SENT, ANY_UNSIGNED, 1000, 1 },
    { WM_GPU_PCI_RECEIVED, ask_which, SLOT(throughput), NVML_PCIE_RECEIVED, ANY_UNSIGNED, 1000, 1 },

    { WM_GPU_CLOCK_GRAPHICS, ask_which, SLOT(clock), NVML_CLOCK_GRAPHICS, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_SM, ask_which, SLOT(clock), NVML_CLOCK_SM, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_MEMORY, ask_which, SLOT(clock), NVML_CLOCK_MEMORY, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_VIDEO, ask_which, SLOT(clock), NVML_CLOCK_VIDEO, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_GRAPHICS_MAX, ask_which, SLOT(clock_max), NVML_CLOCK_GRAPHICS, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_SM_MAX, ask_which, SLOT(clock_max), NVML_CLOCK_SM, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_MEMORY_MAX, ask_which, SLOT(clock_max), NVML_CLOCK_MEMORY, MHZ_MOST, 1e6, 1 },
    { WM_GPU_CLOCK_VIDEO_MAX, ask_which, SLOT(clock_max), NVML_CLOCK_VIDEO, MHZ_MOST, 1e6, 1 },

    { WM_GPU_POWER_DRAW, ask_plain, SLOT(power_mw), 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_POWER_LIMIT, ask_plain, SLOT(power_limit_mw), 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_POWER_LIMIT_DEFAULT, ask_plain, SLOT(power_limit_default_mw), 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_POWER_LIMIT_ENFORCED, ask_plain, SLOT(power_limit_enforced_mw), 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_POWER_LIMIT_MIN, ask_power_limits, 0, 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_POWER_LIMIT_MAX, ask_power_limits, 0, 0, ANY_UNSIGNED, 1, 1000 },
    { WM_GPU_ENERGY, ask_long, SLOT(energy_mj), 0, ANY_LONG, 1, 1000 },

    { WM_GPU_ECC_CORRECTED, ask_ecc, 0, NVML_ERRORS_CORRECTED, ANY_LONG, 1, 1 },
    { WM_GPU_ECC_UNCORRECTED, ask_ecc, 0, NVML_ERRORS_UNCORRECTED, ANY_LONG, 1, 1 },
    { WM_GPU_ECC_CORRECTED_LIFETIME, ask_ecc, 0, NVML_ERRORS_CORRECTED, ANY_LONG, 1, 1 },
    { WM_GPU_ECC_UNCORRECTED_LIFETIME, ask_ecc, 0, NVML_ERRORS_UNCORRECTED, ANY_LONG, 1, 1 },

    { WM_GPU_NVLINK_LINKS, ask_nvlinks, 0, 0, NVML_NVLINKS_MAX, 1, 1 },
    { WM_GPU_NVLINK_SENT, ask_field, 0, NVML_FIELD_NVLINK_SENT, ANY_LONG, 1024, 1 },
    { WM_GPU_NVLINK_RECEIVED, ask_field, 0, NVML_FIELD_NVLINK_RECEIVED, ANY_LONG, 1024, 1 },
};
#undef SLOT
/* clang-format on */

static bool is_celsius(const struct number *number)
{
    return strcmp(wm_gpu_field_info(number->field)->unit, "celsius") == 0;
}

static int ask_number(const struct number *number, const struct nvml_api *api,
                      nvml_device device, double *ret_value)
{
    double value = 0;
    int status = number->ask(api, device, number, &value);
    double least = is_celsius(number) ? CELSIUS_LEAST : 0;

    /* Also where it is not a number at all. */
    if (status == NVML_SUCCESS && !(value >= least && value <= number->most))
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_SUCCESS)
        *ret_value = value * number->times / number->over;
    return status;
}

int nvml_number(const struct nvml_api *api, nvml_device device, enum wm_gpu_field field,
                double *ret_value)
{
    const struct number *number = numbers;

    while (number->field != field)
        number++;
    return ask_number(number, api, device, ret_value);
}

int nvml_memory(const struct nvml_api *api, nvml_device device,
                struct nvml_memory_v2 *ret_memory, int *ret_reserved)
{
    struct nvml_memory_v2 memory = { .version = NVML_MEMORY_V2 };
    struct nvml_memory_v1 older = { 0 };

    int status = NVML_ASK(api, memory_v2, device, &memory);
    *ret_reserved = status;
    if (nvml_lacks_call(status)) {
        status = NVML_ASK(api, memory_v1, device, &older);
        memory.total = older.total;
        memory.free = older.free;
        memory.used = older.used;
        memory.reserved = 0;
    }
    if (status == NVML_SUCCESS &&
        (memory.total == NVML_NOT_AVAILABLE || memory.used > memory.total))
        status = NVML_IMPOSSIBLE_VALUE;
    *ret_memory = memory;
    return status;
}

static void tell_memory(struct gpu_nvml_gpu *gpu)
{
    struct nvml_memory_v2 memory;
    int reserved;
    int status = nvml_memory(gpu->api, gpu->device, &memory, &reserved);

    if (status == NVML_SUCCESS &&
        (memory.free > memory.total || memory.reserved > memory.total))
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_IMPOSSIBLE_VALUE)
        reserved = status;
    gpu_nvml_tell(gpu, WM_GPU_MEMORY_TOTAL, status, (double)memory.total);
    gpu_nvml_tell(gpu, WM_GPU_MEMORY_USED, status, (double)memory.used);
    gpu_nvml_tell(gpu, WM_GPU_MEMORY_FREE, status, (double)memory.free);
    gpu_nvml_tell(gpu, WM_GPU_MEMORY_RESERVED, reserved, (double)memory.reserved);
}

/* Both in one scope, or they could not be compared. Boards with a CPU on them may
 * tell power of all that is on the module and refuse that of the GPU alone. */
static void tell_power_fields(struct gpu_nvml_gpu *gpu)
{
    struct nvml_power *power = &gpu->power;
    const struct nvml_power_value *instant = &power->values[NVML_POWER_INSTANT];
    const struct nvml_power_value *average = &power->values[NVML_POWER_AVERAGE];

    nvml_power_read(power, gpu->api, gpu->device);
    enum nvml_power_way scope = instant->way < average->way ? instant->way : average->way;
    gpu_nvml_tell(gpu, WM_GPU_POWER_INSTANT,
                  instant->way == scope ? instant->field_status : NVML_ERROR_NOT_SUPPORTED,
                  instant->watts);
    gpu_nvml_tell(gpu, WM_GPU_POWER_AVERAGE,
                  average->way == scope ? average->field_status : NVML_ERROR_NOT_SUPPORTED,
                  average->watts);
    bool is_told = average->way == scope && average->field_status == NVML_SUCCESS;
    gpu_nvml_tell_text(gpu, WM_GPU_POWER_SCOPE,
                       is_told ? NVML_SUCCESS : instant->field_status,
                       scope == NVML_POWER_BY_GPU_FIELD ? "gpu" : "module");
}

void gpu_nvml_tell_numbers(struct gpu_nvml_gpu *gpu)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const struct number *number = &numbers[i];
        double value = 0;

        if (!gpu_nvml_wants(gpu, number->field) ||
            wm_gpu_field_info(number->field)->type == WM_GPU_TEXT)
            continue;
        int status = ask_number(number, gpu->api, gpu->device, &value);
        gpu_nvml_tell(gpu, number->field, status, value);
    }
    if (gpu_nvml_wants(gpu, WM_GPU_MEMORY_TOTAL))
        tell_memory(gpu);
    if (gpu_nvml_wants(gpu, WM_GPU_POWER_INSTANT))
        tell_power_fields(gpu);
}
