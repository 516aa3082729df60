/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_values.c - the numbers that NVML reports of a GPU: how each is asked, what it
 * cannot be, and its unit. */
#include "source/gpu/nvml/source_nvml_values.h"

#include <limits.h>
#include <string.h>

#include "base/base_clock.h"

/* The greatest values that are not NVML's way to say "none". */
#define ANY_UNSIGNED ((double)(UINT_MAX - 1))
#define ANY_LONG 0x1.fffffffffffffp+63

/* How a number is asked for. */
struct query {
    /* Puts the number of `field`, and of others that the same call reports. */
    void (*ask)(struct nvml_values *values, enum wm_gpu_field field);
    size_t slot;        /* of the call in struct nvml_api, where `ask` serves several */
    int which;          /* the call's argument, where it has one */
    double most;        /* more than this cannot be */
    double times, over; /* from NVML's unit to ours; whole, so that 71500 mW are 71.5 W */
};

static const struct query queries[WM_GPU_FIELDS];

#define CELSIUS_LEAST (-273.0)

static double least_of(enum wm_gpu_field field)
{
    return strcmp(wm_gpu_field_info(field)->unit, "celsius") == 0 ? CELSIUS_LEAST : 0;
}

/* Notes what a call has reported, in NVML's unit. */
static void put(struct nvml_values *values, enum wm_gpu_field field, int status, double raw)
{
    const struct query *query = &queries[field];

    /* Also where it is not a number at all. */
    if (status == NVML_SUCCESS && !(raw >= least_of(field) && raw <= query->most))
        status = NVML_IMPOSSIBLE_VALUE;
    values->is_asked[field] = true;
    values->answers[field] = (struct nvml_answer) { .status = status };
    if (status == NVML_SUCCESS)
        values->answers[field].number = raw * query->times / query->over;
}

/* The call of a field. ISO C has no cast between pointers of the two kinds that lie in a
 * slot. */
#define CALL(call, values, field)                                                          \
    memcpy(&(call), (const char *)(values)->api + queries[field].slot, sizeof(call))

static void ask_plain(struct nvml_values *values, enum wm_gpu_field field)
{
    int (*call)(nvml_device device, unsigned *value);
    unsigned value = 0;

    CALL(call, values, field);
    int status = call ? call(values->device, &value) : NVML_ERROR_FUNCTION_NOT_FOUND;
    put(values, field, status, value);
}

static void ask_which(struct nvml_values *values, enum wm_gpu_field field)
{
    int (*call)(nvml_device device, int which, unsigned *value);
    unsigned value = 0;

    CALL(call, values, field);
    int status = call ? call(values->device, queries[field].which, &value)
                      : NVML_ERROR_FUNCTION_NOT_FOUND;
    put(values, field, status, value);
}

static void ask_sampled(struct nvml_values *values, enum wm_gpu_field field)
{
    int (*call)(nvml_device device, unsigned *value, unsigned *period_us);
    unsigned value = 0, period_us = 0;

    CALL(call, values, field);
    int status =
        call ? call(values->device, &value, &period_us) : NVML_ERROR_FUNCTION_NOT_FOUND;
    put(values, field, status, value);
}

static void ask_energy(struct nvml_values *values, enum wm_gpu_field field)
{
    unsigned long long millijoules = 0;

    int status = NVML_ASK(values->api, energy_mj, values->device, &millijoules);
    put(values, field, status, (double)millijoules);
}

static void ask_ecc(struct nvml_values *values, enum wm_gpu_field field)
{
    bool is_ever =
        field == WM_GPU_ECC_CORRECTED_LIFETIME || field == WM_GPU_ECC_UNCORRECTED_LIFETIME;
    unsigned long long count = 0;

    int status = NVML_ASK(values->api, ecc_errors, values->device, queries[field].which,
                          is_ever ? NVML_ECC_AGGREGATE : NVML_ECC_VOLATILE, &count);
    put(values, field, status, (double)count);
}

/* A board without fans does not know the first. */
static int without_fan(int status)
{
    return status == NVML_ERROR_INVALID_ARGUMENT ? NVML_ERROR_NOT_SUPPORTED : status;
}

static void ask_utilization(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_utilization percent = { 0 };
    (void)field;

    int status = NVML_ASK(values->api, utilization, values->device, &percent);
    put(values, WM_GPU_UTILIZATION_GPU, status, percent.gpu);
    put(values, WM_GPU_UTILIZATION_MEMORY, status, percent.memory);
}

/* The older form counts what the driver keeps for itself as used and does not tell it
 * apart. */
static void ask_memory(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_memory_v2 memory = { .version = NVML_MEMORY_V2 };
    struct nvml_memory_v1 older = { 0 };
    (void)field;

    int status = NVML_ASK(values->api, memory_v2, values->device, &memory);
    int reserved = status;
    if (nvml_lacks_call(status)) {
        status = NVML_ASK(values->api, memory_v1, values->device, &older);
        memory = (struct nvml_memory_v2) { .total = older.total,
                                           .free = older.free,
                                           .used = older.used };
    }
    if (status == NVML_SUCCESS &&
        (memory.total == NVML_NOT_AVAILABLE || memory.used > memory.total ||
         memory.free > memory.total || memory.reserved > memory.total))
        status = NVML_IMPOSSIBLE_VALUE;
    if (status == NVML_IMPOSSIBLE_VALUE)
        reserved = status;
    put(values, WM_GPU_MEMORY_TOTAL, status, (double)memory.total);
    put(values, WM_GPU_MEMORY_USED, status, (double)memory.used);
    put(values, WM_GPU_MEMORY_FREE, status, (double)memory.free);
    put(values, WM_GPU_MEMORY_RESERVED, reserved, (double)memory.reserved);
}

static void ask_bar1(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_bar1_memory memory = { 0 };
    (void)field;

    int status = NVML_ASK(values->api, bar1_memory, values->device, &memory);
    if (status == NVML_SUCCESS &&
        (memory.used > memory.total || memory.total == NVML_NOT_AVAILABLE))
        status = NVML_IMPOSSIBLE_VALUE;
    put(values, WM_GPU_MEMORY_BAR1_TOTAL, status, (double)memory.total);
    put(values, WM_GPU_MEMORY_BAR1_USED, status, (double)memory.used);
}

/* What this call distinguishes is the parts of a partitioned GPU, so far; a driver
 * may come to answer for a whole one. */
static void ask_multiprocessors(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_attributes attributes = { 0 };

    int status = NVML_ASK(values->api, attributes, values->device, &attributes);
    put(values, field, status, attributes.multiprocessors);
}

static void ask_power_limits(struct nvml_values *values, enum wm_gpu_field field)
{
    unsigned lowest = 0, highest = 0;
    (void)field;

    int status =
        NVML_ASK(values->api, power_limit_range_mw, values->device, &lowest, &highest);
    put(values, WM_GPU_POWER_LIMIT_MIN, status, lowest);
    put(values, WM_GPU_POWER_LIMIT_MAX, status, highest);
}

/* Both in one scope, or they could not be compared. Boards with a CPU on them may
 * tell power of all that is on the module and refuse that of the GPU alone. */
static void ask_power(struct nvml_values *values, enum wm_gpu_field field)
{
    const struct nvml_power_value *instant = &values->power.values[NVML_POWER_INSTANT];
    const struct nvml_power_value *average = &values->power.values[NVML_POWER_AVERAGE];
    (void)field;

    nvml_power_read(&values->power, values->api, values->device);
    enum nvml_power_way scope = instant->way < average->way ? instant->way : average->way;
    put(values, WM_GPU_POWER_INSTANT,
        instant->way == scope ? instant->field_status : NVML_ERROR_NOT_SUPPORTED,
        instant->watts);
    put(values, WM_GPU_POWER_AVERAGE,
        average->way == scope ? average->field_status : NVML_ERROR_NOT_SUPPORTED,
        average->watts);
}

/* The older call does not say which fan it means. */
static void ask_fan(struct nvml_values *values, enum wm_gpu_field field)
{
    unsigned percent = 0;

    int status = NVML_ASK(values->api, fan_speed_v2, values->device, 0, &percent);
    if (nvml_lacks_call(status))
        status = NVML_ASK(values->api, fan_speed_v1, values->device, &percent);
    put(values, field, without_fan(status), percent);
}

static void ask_fan_rpm(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_fan_speed_v1 speed = { .version = NVML_FAN_SPEED_V1 };

    int status = NVML_ASK(values->api, fan_rpm, values->device, &speed);
    put(values, field, without_fan(status), speed.rpm);
}

static void ask_temperature(struct nvml_values *values, enum wm_gpu_field field)
{
    double celsius = 0;

    int status = nvml_temperature(values->api, values->device, &celsius);
    put(values, field, status, celsius);
}

/* NVML's bits become those of enum wm_gpu_throttle. */
static const struct {
    unsigned long long bits;
    enum wm_gpu_throttle reason;
} reasons[] = {
    { NVML_CLOCK_GPU_IDLE, WM_GPU_THROTTLE_IDLE },
    { NVML_CLOCK_APPLICATIONS_SETTING | NVML_CLOCK_DISPLAY_SETTING,
      WM_GPU_THROTTLE_SETTING },
    { NVML_CLOCK_SW_POWER_CAP | NVML_CLOCK_HW_POWER_BRAKE, WM_GPU_THROTTLE_POWER },
    { NVML_CLOCK_SW_THERMAL_SLOWDOWN | NVML_CLOCK_HW_THERMAL_SLOWDOWN,
      WM_GPU_THROTTLE_HEAT },
    { NVML_CLOCK_HW_SLOWDOWN | NVML_CLOCK_HW_POWER_BRAKE, WM_GPU_THROTTLE_HARDWARE },
};

static unsigned reasons_of(unsigned long long bits)
{
    unsigned long long known = 0;
    unsigned found = 0;

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        found |= bits & reasons[i].bits ? reasons[i].reason : 0;
        known |= reasons[i].bits;
    }
    return found | (bits & ~known ? WM_GPU_THROTTLE_OTHER : 0);
}

static void ask_throttle(struct nvml_values *values, enum wm_gpu_field field)
{
    values->reasons = 0;
    int status =
        NVML_ASK(values->api, clock_event_reasons, values->device, &values->reasons);
    if (nvml_lacks_call(status))
        status =
            NVML_ASK(values->api, clock_throttle_reasons, values->device, &values->reasons);
    if (status == NVML_SUCCESS && values->reasons == NVML_NOT_AVAILABLE)
        status = NVML_IMPOSSIBLE_VALUE;
    put(values, field, status, reasons_of(values->reasons));
}

static void ask_field(struct nvml_values *values, enum wm_gpu_field field)
{
    /* What the driver leaves as it is must not pass for 0. */
    struct nvml_field_value asked = {
        .field = (unsigned)queries[field].which,
        .scope = field == WM_GPU_TEMPERATURE_MEMORY ? 0 : NVML_NVLINK_ALL,
        .status = NVML_ERROR_NO_DATA,
    };
    double value = 0;

    int status = NVML_ASK(values->api, field_values, values->device, 1, &asked);
    if (status == NVML_SUCCESS)
        status = asked.status;
    /* A driver from before a field says that the argument is wrong. */
    if (status == NVML_ERROR_INVALID_ARGUMENT)
        status = NVML_ERROR_NOT_SUPPORTED;
    if (status == NVML_SUCCESS)
        status = nvml_field_number(&asked, &value);
    put(values, field, status, value);
}

/* How many links are up. The first that cannot be is past the last. */
static int count_nvlinks(const struct nvml_values *values, double *ret_up)
{
    double up = 0;

    for (unsigned link = 0; link < NVML_NVLINKS_MAX; link++) {
        unsigned is_up = NVML_DISABLED;
        int status = NVML_ASK(values->api, nvlink_state, values->device, link, &is_up);

        if (status == NVML_ERROR_INVALID_ARGUMENT)
            break;
        if (status != NVML_SUCCESS && (link == 0 || status != NVML_ERROR_NOT_SUPPORTED))
            return status;
        if (status == NVML_SUCCESS && is_up > NVML_ENABLED)
            return NVML_IMPOSSIBLE_VALUE;
        up += status == NVML_SUCCESS ? is_up : 0;
    }
    *ret_up = up;
    return NVML_SUCCESS;
}

static void ask_nvlinks(struct nvml_values *values, enum wm_gpu_field field)
{
    double up = 0;
    int status = count_nvlinks(values, &up);

    put(values, field, status, up);
}

/* A fan may turn faster than what its 100 % stand for. PCIe throughput is reported in
 * "KB/s", which is taken by its word. */
enum { FAN_MOST = 200, CELSIUS_MOST = 1000, MHZ_MOST = 100000 };

/* A new number is one line here and, where no call is like its own, one function
 * above. */
/* clang-format off */
#define SLOT(member) offsetof(struct nvml_api, member)
static const struct query queries[WM_GPU_FIELDS] = {
    [WM_GPU_ARCHITECTURE] = { ask_plain, SLOT(architecture), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_CORES] = { ask_plain, SLOT(cores), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_MULTIPROCESSORS] = { ask_multiprocessors, 0, 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_COMPUTE_MODE] = { ask_plain, SLOT(compute_mode), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PERSISTENCE] = { ask_plain, SLOT(persistence), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_DISPLAY_ACTIVE] = { ask_plain, SLOT(display_active), 0, NVML_ENABLED, 1, 1 },

    [WM_GPU_MEMORY_TOTAL] = { ask_memory, 0, 0, ANY_LONG, 1, 1 },
    [WM_GPU_MEMORY_USED] = { ask_memory, 0, 0, ANY_LONG, 1, 1 },
    [WM_GPU_MEMORY_FREE] = { ask_memory, 0, 0, ANY_LONG, 1, 1 },
    [WM_GPU_MEMORY_RESERVED] = { ask_memory, 0, 0, ANY_LONG, 1, 1 },
    [WM_GPU_MEMORY_BAR1_TOTAL] = { ask_bar1, 0, 0, ANY_LONG, 1, 1 },
    [WM_GPU_MEMORY_BAR1_USED] = { ask_bar1, 0, 0, ANY_LONG, 1, 1 },

    [WM_GPU_UTILIZATION_GPU] = { ask_utilization, 0, 0, 100, 1, 100 },
    [WM_GPU_UTILIZATION_MEMORY] = { ask_utilization, 0, 0, 100, 1, 100 },
    [WM_GPU_UTILIZATION_ENCODER] = { ask_sampled, SLOT(encoder_utilization), 0, 100, 1, 100 },
    [WM_GPU_UTILIZATION_DECODER] = { ask_sampled, SLOT(decoder_utilization), 0, 100, 1, 100 },
    [WM_GPU_FAN] = { ask_fan, 0, 0, FAN_MOST, 1, 100 },
    [WM_GPU_FAN_SPEED] = { ask_fan_rpm, 0, 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_TEMPERATURE] = { ask_temperature, 0, 0, CELSIUS_MOST, 1, 1 },
    [WM_GPU_TEMPERATURE_MEMORY] = { ask_field, 0, NVML_FIELD_MEMORY_TEMPERATURE, CELSIUS_MOST, 1, 1 },
    [WM_GPU_TEMPERATURE_SLOWDOWN] = { ask_which, SLOT(temperature_threshold), NVML_TEMPERATURE_SLOWDOWN, CELSIUS_MOST, 1, 1 },
    [WM_GPU_TEMPERATURE_SHUTDOWN] = { ask_which, SLOT(temperature_threshold), NVML_TEMPERATURE_SHUTDOWN, CELSIUS_MOST, 1, 1 },
    [WM_GPU_PERFORMANCE] = { ask_plain, SLOT(performance), 0, ANY_UNSIGNED, 1, 1 },

    [WM_GPU_PCI_LINK_GEN] = { ask_plain, SLOT(link_generation), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PCI_LINK_GEN_MAX] = { ask_plain, SLOT(link_generation_max), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PCI_LINK_WIDTH] = { ask_plain, SLOT(link_width), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PCI_LINK_WIDTH_MAX] = { ask_plain, SLOT(link_width_max), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PCI_REPLAYS] = { ask_plain, SLOT(replays), 0, ANY_UNSIGNED, 1, 1 },
    [WM_GPU_PCI_SENT] = { ask_which, SLOT(throughput), NVML_PCIE_SENT, ANY_UNSIGNED, 1000, 1 },
    [WM_GPU_PCI_RECEIVED] = { ask_which, SLOT(throughput), NVML_PCIE_RECEIVED, ANY_UNSIGNED, 1000, 1 },

    [WM_GPU_CLOCK_GRAPHICS] = { ask_which, SLOT(clock), NVML_CLOCK_GRAPHICS, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_SM] = { ask_which, SLOT(clock), NVML_CLOCK_SM, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_MEMORY] = { ask_which, SLOT(clock), NVML_CLOCK_MEMORY, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_VIDEO] = { ask_which, SLOT(clock), NVML_CLOCK_VIDEO, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_GRAPHICS_MAX] = { ask_which, SLOT(clock_max), NVML_CLOCK_GRAPHICS, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_SM_MAX] = { ask_which, SLOT(clock_max), NVML_CLOCK_SM, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_MEMORY_MAX] = { ask_which, SLOT(clock_max), NVML_CLOCK_MEMORY, MHZ_MOST, 1e6, 1 },
    [WM_GPU_CLOCK_VIDEO_MAX] = { ask_which, SLOT(clock_max), NVML_CLOCK_VIDEO, MHZ_MOST, 1e6, 1 },
    [WM_GPU_THROTTLE] = { ask_throttle, 0, 0, ANY_UNSIGNED, 1, 1 },

    [WM_GPU_POWER_DRAW] = { ask_plain, SLOT(power_mw), 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_POWER_INSTANT] = { ask_power, 0, 0, 1e9, 1, 1 },
    [WM_GPU_POWER_AVERAGE] = { ask_power, 0, 0, 1e9, 1, 1 },
    [WM_GPU_POWER_LIMIT] = { ask_plain, SLOT(power_limit_mw), 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_POWER_LIMIT_DEFAULT] = { ask_plain, SLOT(power_limit_default_mw), 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_POWER_LIMIT_ENFORCED] = { ask_plain, SLOT(power_limit_enforced_mw), 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_POWER_LIMIT_MIN] = { ask_power_limits, 0, 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_POWER_LIMIT_MAX] = { ask_power_limits, 0, 0, ANY_UNSIGNED, 1, 1000 },
    [WM_GPU_ENERGY] = { ask_energy, 0, 0, ANY_LONG, 1, 1000 },

    [WM_GPU_ECC_CORRECTED] = { ask_ecc, 0, NVML_ERRORS_CORRECTED, ANY_LONG, 1, 1 },
    [WM_GPU_ECC_UNCORRECTED] = { ask_ecc, 0, NVML_ERRORS_UNCORRECTED, ANY_LONG, 1, 1 },
    [WM_GPU_ECC_CORRECTED_LIFETIME] = { ask_ecc, 0, NVML_ERRORS_CORRECTED, ANY_LONG, 1, 1 },
    [WM_GPU_ECC_UNCORRECTED_LIFETIME] = { ask_ecc, 0, NVML_ERRORS_UNCORRECTED, ANY_LONG, 1, 1 },

    [WM_GPU_NVLINK_LINKS] = { ask_nvlinks, 0, 0, NVML_NVLINKS_MAX, 1, 1 },
    [WM_GPU_NVLINK_SENT] = { ask_field, 0, NVML_FIELD_NVLINK_SENT, ANY_LONG, 1024, 1 },
    [WM_GPU_NVLINK_RECEIVED] = { ask_field, 0, NVML_FIELD_NVLINK_RECEIVED, ANY_LONG, 1024, 1 },
};
#undef SLOT
/* clang-format on */

bool nvml_has_query(enum wm_gpu_field field)
{
    return queries[field].ask != NULL;
}

/* Where the board's own is not known, as that of a simulated one: the longest that any
 * is known to have. */
#define SENSOR_PERIOD_NS (100 * WM_NS_PER_MS)

/* NVML's documentation says "between 1 second and 1/6 second". */
#define UTILIZATION_PERIOD_NS (WM_NS_PER_S / 6)

int64_t nvml_period_ns(enum wm_gpu_field field)
{
    switch (field) {
    case WM_GPU_ENERGY:
    case WM_GPU_POWER_INSTANT:
    case WM_GPU_POWER_AVERAGE:
        return SENSOR_PERIOD_NS;
    case WM_GPU_UTILIZATION_GPU:
        return UTILIZATION_PERIOD_NS;
    default:
        return 0;
    }
}

void nvml_values_begin(struct nvml_values *values)
{
    memset(values->is_asked, 0, sizeof(values->is_asked));
}

const struct nvml_answer *nvml_ask(struct nvml_values *values, enum wm_gpu_field field)
{
    if (!values->is_asked[field])
        queries[field].ask(values, field);
    return &values->answers[field];
}

struct nvml_answer nvml_ask_sampled(struct nvml_values *values, enum wm_gpu_field field)
{
    struct nvml_answer value = *nvml_ask(values, field);

    if (field == WM_GPU_POWER_INSTANT || field == WM_GPU_POWER_AVERAGE) {
        const struct nvml_power_value *power =
            &values->power.values[field == WM_GPU_POWER_AVERAGE ? NVML_POWER_AVERAGE
                                                                : NVML_POWER_INSTANT];
        value = (struct nvml_answer) { power->status, 0 };
        if (power->status == NVML_SUCCESS)
            value.number = power->watts;
    }
    return value;
}
