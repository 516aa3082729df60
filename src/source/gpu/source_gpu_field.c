/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_field.c - what a GPU, a process on it and a part of it may say: the tables
 * that JSON, Python and the documentation are made from. */
#include "wattmeter/gpu.h"

/* A line for each, whatever its length. */
/* clang-format off */
#define ROW(metric, kind, more, group, key, label, unit, type, asked, fixed, summary)            \
    { group, key, label, unit, summary, WM_GPU_##type, WM_GPU_##asked, fixed, metric, kind, more }

/* What is only shown; what every run samples as well (a list of each driver names the same
 * fields: usual[] of NVML, fields[] of DRM); and what is sampled on demand, as a gauge or a
 * counter of that name. */
#define FIELD(...) ROW(NULL, WM_GAUGE, false, __VA_ARGS__)
#define SAMPLED(metric, kind, ...) ROW(metric, kind, false, __VA_ARGS__)
#define GAUGE(metric, ...) ROW(metric, WM_GAUGE, true, __VA_ARGS__)
#define COUNTER(metric, ...) ROW(metric, WM_COUNTER, true, __VA_ARGS__)

static const struct wm_gpu_field_info fields[WM_GPU_FIELDS] = {
    [WM_GPU_INDEX] = FIELD("", "index", "INDEX", "count", WHOLE, GENERAL, true, "place among the GPUs of the machine"),
    [WM_GPU_NAME] = FIELD("", "name", "BOARD NAME", "", TEXT, GENERAL, true, "product name"),
    [WM_GPU_SERIAL] = FIELD("", "serial", "SERIAL", "", TEXT, GENERAL, true, "serial number of the board"),
    [WM_GPU_UUID] = FIELD("", "uuid", "UUID", "", TEXT, GENERAL, true, "identity, the same after a reboot"),
    [WM_GPU_BIOS] = FIELD("", "bios", "BIOS VERSION", "", TEXT, GENERAL, true, "version of the board's BIOS"),
    [WM_GPU_LABEL] = FIELD("", "label", "Label", "", TEXT, GENERAL, true, "name in recordings and reports"),
    [WM_GPU_VENDOR] = FIELD("", "vendor", "Vendor", "", TEXT, GENERAL, true, "who made the chip"),
    [WM_GPU_SOURCE] = FIELD("", "source", "Source", "", TEXT, GENERAL, true, "source of these values"),
    [WM_GPU_ARCHITECTURE] = FIELD("", "architecture", "Architecture", "", TEXT, GENERAL, true, "family of the chip"),
    [WM_GPU_COMPUTE_CAPABILITY] = FIELD("", "compute_capability", "Compute", "", TEXT, GENERAL, true, "CUDA compute capability"),
    [WM_GPU_CORES] = FIELD("", "cores", "Cores", "count", WHOLE, GENERAL, true, "number of cores"),
    [WM_GPU_MULTIPROCESSORS] = FIELD("", "multiprocessors", "SMs", "count", WHOLE, GENERAL, true, "number of SMs, compute units or Xe cores"),
    [WM_GPU_KERNEL_DRIVER] = FIELD("", "kernel_driver", "Kernel Driver", "", TEXT, GENERAL, true, "driver in the kernel"),
    [WM_GPU_DRIVER_VERSION] = FIELD("", "driver_version", "Driver", "", TEXT, GENERAL, true, "version of the driver"),
    [WM_GPU_NVML_VERSION] = FIELD("", "nvml_version", "NVML", "", TEXT, GENERAL, true, "version of NVML"),
    [WM_GPU_CUDA_VERSION] = FIELD("", "cuda_version", "CUDA", "", TEXT, GENERAL, true, "newest CUDA that the driver serves"),
    [WM_GPU_COMPUTE_MODE] = FIELD("", "compute_mode", "Compute Mode", "", TEXT, GENERAL, false, "who may compute on it"),
    [WM_GPU_PERSISTENCE] = FIELD("", "persistence", "Persistence", "", TEXT, GENERAL, false, "whether the driver stays loaded without users"),
    [WM_GPU_MIG_MODE] = FIELD("", "mig_mode", "MIG", "", TEXT, GENERAL, false, "whether it is partitioned"),
    [WM_GPU_MIG_MODE_PENDING] = FIELD("", "mig_mode_pending", "MIG Pending", "", TEXT, GENERAL, false, "the same after the next reset"),
    [WM_GPU_DISPLAY_ACTIVE] = FIELD("", "display_active", "Display", "", YES_NO, GENERAL, false, "whether a display uses it"),
    [WM_GPU_SIMULATED] = FIELD("", "simulated", "Simulated", "", YES_NO, GENERAL, true, "whether the driver says that it is not real"),
    [WM_GPU_MEMORY_TOTAL] = SAMPLED("memory_total", WM_GAUGE, "memory", "total", "Total", "B", WHOLE, MEMORY, false, "memory of the GPU"),
    [WM_GPU_MEMORY_USED] = SAMPLED("memory_used", WM_GAUGE, "memory", "used", "Used", "B", WHOLE, MEMORY, false, "memory in use"),
    [WM_GPU_MEMORY_FREE] = FIELD("memory", "free", "Free", "B", WHOLE, MEMORY, false, "memory that is free"),
    [WM_GPU_MEMORY_RESERVED] = FIELD("memory", "reserved", "Reserved", "B", WHOLE, MEMORY, false, "memory that the driver keeps for itself"),
    [WM_GPU_MEMORY_BAR1_TOTAL] = FIELD("memory", "bar1_total", "BAR1 Total", "B", WHOLE, MEMORY, false, "size of the window to its memory"),
    [WM_GPU_MEMORY_BAR1_USED] = FIELD("memory", "bar1_used", "BAR1 Used", "B", WHOLE, MEMORY, false, "part of that window in use"),
    [WM_GPU_MEMORY_SHARED_TOTAL] = FIELD("memory", "shared_total", "Shared Total", "B", WHOLE, MEMORY, false, "memory of the machine that it may use"),
    [WM_GPU_MEMORY_SHARED_USED] = FIELD("memory", "shared_used", "Shared Used", "B", WHOLE, MEMORY, false, "memory of the machine that it uses"),
    [WM_GPU_UTILIZATION_GPU] = SAMPLED("utilization", WM_GAUGE, "utilization", "gpu", "Graphics", "ratio", REAL, UTILIZATION, false, "share of time in which anything ran on it"),
    [WM_GPU_UTILIZATION_MEMORY] = GAUGE("memory_utilization", "utilization", "memory", "Memory", "ratio", REAL, UTILIZATION, false, "share of time in which its memory was read or written"),
    [WM_GPU_UTILIZATION_ENCODER] = GAUGE("encoder", "utilization", "encoder", "Encoder", "ratio", REAL, UTILIZATION, false, "use of the video encoder"),
    [WM_GPU_UTILIZATION_DECODER] = GAUGE("decoder", "utilization", "decoder", "Decoder", "ratio", REAL, UTILIZATION, false, "use of the video decoder"),
    [WM_GPU_FAN] = GAUGE("fan", "utilization", "fan", "Fan", "ratio", REAL, UTILIZATION, false, "speed of the fan, of its highest"),
    [WM_GPU_FAN_SPEED] = GAUGE("fan_speed", "utilization", "fan_speed", "Fan Speed", "rpm", WHOLE, UTILIZATION, false, "speed of the fan"),
    [WM_GPU_TEMPERATURE] = SAMPLED("temperature", WM_GAUGE, "utilization", "temperature", "Temperature", "celsius", REAL, UTILIZATION, false, "temperature of the chip"),
    [WM_GPU_TEMPERATURE_MEMORY] = GAUGE("memory_temperature", "utilization", "temperature_memory", "Memory Temp.", "celsius", REAL, UTILIZATION, false, "temperature of the memory"),
    [WM_GPU_TEMPERATURE_HOTSPOT] = GAUGE("hotspot_temperature", "utilization", "temperature_hotspot", "Hotspot", "celsius", REAL, UTILIZATION, false, "temperature where the chip is hottest"),
    [WM_GPU_TEMPERATURE_SLOWDOWN] = FIELD("utilization", "temperature_slowdown", "Slowdown at", "celsius", REAL, UTILIZATION, true, "temperature at which it slows down"),
    [WM_GPU_TEMPERATURE_SHUTDOWN] = FIELD("utilization", "temperature_shutdown", "Shutdown at", "celsius", REAL, UTILIZATION, true, "temperature at which it switches off"),
    [WM_GPU_PERFORMANCE] = FIELD("utilization", "performance", "Performance", "", TEXT, UTILIZATION, false, "performance state: P0 is most"),
    [WM_GPU_PCI_BUS] = FIELD("pci", "bus", "Bus", "", TEXT, PCI, true, "PCI bus, hexadecimal"),
    [WM_GPU_PCI_BUS_ID] = FIELD("pci", "bus_id", "Bus ID", "", TEXT, PCI, true, "PCI address: domain:bus:device.function"),
    [WM_GPU_PCI_DEVICE] = FIELD("pci", "device", "Device", "", TEXT, PCI, true, "PCI device, hexadecimal"),
    [WM_GPU_PCI_DEVICE_ID] = FIELD("pci", "device_id", "Device ID", "", TEXT, PCI, true, "PCI device and vendor, hexadecimal"),
    [WM_GPU_PCI_SUB_SYSTEM_ID] = FIELD("pci", "sub_system_id", "Sub-System ID", "", TEXT, PCI, true, "PCI subsystem: device and vendor of the board"),
    [WM_GPU_PCI_LINK_GEN] = GAUGE("pci_link_gen", "pci", "current_link_gen", "Generation", "count", WHOLE, PCI, false, "PCIe generation of the link now"),
    [WM_GPU_PCI_LINK_GEN_MAX] = FIELD("pci", "max_link_gen", "Max Generation", "count", WHOLE, PCI, false, "highest PCIe generation of the link"),
    [WM_GPU_PCI_LINK_WIDTH] = GAUGE("pci_link_width", "pci", "current_link_width", "Link Width", "count", WHOLE, PCI, false, "lanes of the link now"),
    [WM_GPU_PCI_LINK_WIDTH_MAX] = FIELD("pci", "max_link_width", "Max Link Width", "count", WHOLE, PCI, false, "most lanes of the link"),
    [WM_GPU_PCI_REPLAYS] = COUNTER("pci_replays", "pci", "replays", "Replays", "count", WHOLE, PCI, false, "PCIe packets sent again"),
    [WM_GPU_CLOCK_GRAPHICS] = GAUGE("clock_graphics", "clocks", "graphics", "Graphics", "Hz", REAL, CLOCKS, false, "clock of the shaders"),
    [WM_GPU_CLOCK_SM] = GAUGE("clock_sm", "clocks", "sm", "SM", "Hz", REAL, CLOCKS, false, "clock of the multiprocessors"),
    [WM_GPU_CLOCK_MEMORY] = GAUGE("clock_memory", "clocks", "memory", "Memory", "Hz", REAL, CLOCKS, false, "clock of the memory"),
    [WM_GPU_CLOCK_VIDEO] = GAUGE("clock_video", "clocks", "video", "Video", "Hz", REAL, CLOCKS, false, "clock of the video engines"),
    [WM_GPU_CLOCK_GRAPHICS_MAX] = FIELD("clocks", "max_graphics", "Max Graphics", "Hz", REAL, CLOCKS, false, "highest clock of the shaders"),
    [WM_GPU_CLOCK_SM_MAX] = FIELD("clocks", "max_sm", "Max SM", "Hz", REAL, CLOCKS, false, "highest clock of the multiprocessors"),
    [WM_GPU_CLOCK_MEMORY_MAX] = FIELD("clocks", "max_memory", "Max Memory", "Hz", REAL, CLOCKS, false, "highest clock of the memory"),
    [WM_GPU_CLOCK_VIDEO_MAX] = FIELD("clocks", "max_video", "Max Video", "Hz", REAL, CLOCKS, false, "highest clock of the video engines"),
    [WM_GPU_THROTTLE] = GAUGE("throttle", "clocks", "throttle", "Throttle", "", TEXT, CLOCKS, false, "why the clocks are not higher"),
    [WM_GPU_POWER_MANAGEMENT] = FIELD("power", "management", "Management", "", TEXT, POWER, false, "whether power is managed"),
    [WM_GPU_POWER_DRAW] = FIELD("power", "draw", "Draw", "W", REAL, POWER, false, "power as the driver shows it by default"),
    [WM_GPU_POWER_INSTANT] = SAMPLED("power", WM_GAUGE, "power", "instant", "Instant", "W", REAL, POWER, false, "power now"),
    [WM_GPU_POWER_AVERAGE] = SAMPLED("power_average", WM_GAUGE, "power", "average", "Average", "W", REAL, POWER, false, "power over the last second"),
    [WM_GPU_POWER_SCOPE] = FIELD("power", "scope", "Scope", "", TEXT, POWER, false, "what instant and average power include"),
    [WM_GPU_POWER_LIMIT] = GAUGE("power_limit", "power", "limit", "Limit", "W", REAL, POWER, false, "power limit that was set"),
    [WM_GPU_POWER_LIMIT_DEFAULT] = FIELD("power", "default_limit", "Default Limit", "W", REAL, POWER, false, "power limit after a reset"),
    [WM_GPU_POWER_LIMIT_ENFORCED] = GAUGE("power_limit_enforced", "power", "enforced_limit", "Enforced Limit", "W", REAL, POWER, false, "power limit that holds"),
    [WM_GPU_POWER_LIMIT_MIN] = FIELD("power", "min_limit", "Min Limit", "W", REAL, POWER, false, "lowest power limit that can be set"),
    [WM_GPU_POWER_LIMIT_MAX] = FIELD("power", "max_limit", "Max Limit", "W", REAL, POWER, false, "highest power limit that can be set"),
    [WM_GPU_ENERGY] = SAMPLED("energy", WM_COUNTER, "power", "energy", "Energy", "J", REAL, POWER, false, "energy since the driver was loaded"),
    [WM_GPU_ECC_MODE] = FIELD("ecc", "mode", "Mode", "", TEXT, ECC, false, "whether memory errors are corrected"),
    [WM_GPU_ECC_MODE_PENDING] = FIELD("ecc", "mode_pending", "Pending", "", TEXT, ECC, false, "the same after the next reset"),
    [WM_GPU_ECC_CORRECTED] = COUNTER("ecc_corrected", "ecc", "corrected", "Corrected", "count", WHOLE, ECC, false, "errors corrected since the driver was loaded"),
    [WM_GPU_ECC_UNCORRECTED] = COUNTER("ecc_uncorrected", "ecc", "uncorrected", "Uncorrected", "count", WHOLE, ECC, false, "errors not corrected since the driver was loaded"),
    [WM_GPU_ECC_CORRECTED_LIFETIME] = FIELD("ecc", "corrected_lifetime", "Corrected, ever", "count", WHOLE, ECC, false, "errors corrected in its life"),
    [WM_GPU_ECC_UNCORRECTED_LIFETIME] = FIELD("ecc", "uncorrected_lifetime", "Uncorrected, ever", "count", WHOLE, ECC, false, "errors not corrected in its life"),
    [WM_GPU_NVLINK_LINKS] = FIELD("nvlink", "links", "Links", "count", WHOLE, NVLINK, false, "NVLinks that are up"),
    [WM_GPU_NVLINK_SENT] = COUNTER("nvlink_sent", "nvlink", "sent", "Sent", "B", WHOLE, NVLINK, false, "data sent over all NVLinks"),
    [WM_GPU_NVLINK_RECEIVED] = COUNTER("nvlink_received", "nvlink", "received", "Received", "B", WHOLE, NVLINK, false, "data received over all NVLinks"),
    [WM_GPU_PCI_SENT] = GAUGE("pci_sent", "pci", "sent", "Sent", "B/s", REAL, THROUGHPUT, false, "data the GPU sends over PCIe"),
    [WM_GPU_PCI_RECEIVED] = GAUGE("pci_received", "pci", "received", "Received", "B/s", REAL, THROUGHPUT, false, "data the GPU receives over PCIe"),
};

static const struct wm_gpu_field_info process_fields[WM_GPU_PROCESS_FIELDS] = {
    [WM_GPU_PROCESS_PID] = FIELD("processes", "pid", "PID", "count", WHOLE, PROCESSES, false, "number in our pid namespace"),
    [WM_GPU_PROCESS_NAME] = FIELD("processes", "name", "NAME", "", TEXT, PROCESSES, false, "name of the program"),
    [WM_GPU_PROCESS_USER] = FIELD("processes", "user", "USER", "", TEXT, PROCESSES, false, "who runs it"),
    [WM_GPU_PROCESS_PARENT_PID] = FIELD("processes", "parent_pid", "PARENT", "count", WHOLE, PROCESSES, false, "number of its parent"),
    [WM_GPU_PROCESS_PARENT_NAME] = FIELD("processes", "parent_name", "PARENT NAME", "", TEXT, PROCESSES, false, "name of its parent's program"),
    [WM_GPU_PROCESS_CREATE_TIME] = FIELD("processes", "create_time", "CREATION TIME", "s", REAL, PROCESSES, false, "when it began, seconds since 1970"),
    [WM_GPU_PROCESS_MEMORY] = FIELD("processes", "gpu_memory", "GPU MEM", "B", WHOLE, PROCESSES, false, "memory it has on the GPU"),
    [WM_GPU_PROCESS_TYPE] = FIELD("processes", "type", "TYPE", "", TEXT, PROCESSES, false, "C computes, G draws, M through MPS"),
    [WM_GPU_PROCESS_DRIVER_PID] = FIELD("processes", "driver_pid", "DRIVER PID", "count", WHOLE, PROCESSES, false, "pid as the driver reports it"),
    [WM_GPU_PROCESS_SM] = FIELD("processes", "sm", "SM", "ratio", REAL, PROCESSES, false, "share of the GPU's time, in the last second"),
    [WM_GPU_PROCESS_MEMORY_UTILIZATION] = FIELD("processes", "memory_utilization", "MEM", "ratio", REAL, PROCESSES, false, "share of the memory's time, in the last second"),
    [WM_GPU_PROCESS_ENCODER] = FIELD("processes", "encoder", "ENC", "ratio", REAL, PROCESSES, false, "use of the video encoder, in the last second"),
    [WM_GPU_PROCESS_DECODER] = FIELD("processes", "decoder", "DEC", "ratio", REAL, PROCESSES, false, "use of the video decoder, in the last second"),
    [WM_GPU_PROCESS_GPU_TIME] = FIELD("processes", "gpu_time", "GPU TIME", "s", REAL, PROCESSES, false, "engine time since it opened the GPU"),
    [WM_GPU_PROCESS_GPU_INSTANCE] = FIELD("processes", "gpu_instance", "GI", "count", WHOLE, PROCESSES, false, "GPU instance (MIG)"),
    [WM_GPU_PROCESS_COMPUTE_INSTANCE] = FIELD("processes", "compute_instance", "CI", "count", WHOLE, PROCESSES, false, "compute instance (MIG)"),
};

static const struct wm_gpu_field_info mig_fields[WM_GPU_MIG_FIELDS] = {
    [WM_GPU_MIG_INDEX] = FIELD("migs", "index", "Index", "count", WHOLE, GENERAL, true, "place among the parts of its GPU"),
    [WM_GPU_MIG_UUID] = FIELD("migs", "uuid", "UUID", "", TEXT, GENERAL, true, "identity"),
    [WM_GPU_MIG_NAME] = FIELD("migs", "name", "Name", "", TEXT, GENERAL, true, "name of the profile"),
    [WM_GPU_MIG_GPU_INSTANCE] = FIELD("migs", "gpu_instance", "GI", "count", WHOLE, GENERAL, true, "GPU instance"),
    [WM_GPU_MIG_COMPUTE_INSTANCE] = FIELD("migs", "compute_instance", "CI", "count", WHOLE, GENERAL, true, "compute instance"),
    [WM_GPU_MIG_MULTIPROCESSORS] = FIELD("migs", "multiprocessors", "SMs", "count", WHOLE, GENERAL, true, "number of SMs"),
    [WM_GPU_MIG_MEMORY_TOTAL] = FIELD("migs", "memory_total", "Memory Total", "B", WHOLE, GENERAL, true, "memory of the part"),
    [WM_GPU_MIG_MEMORY_USED] = FIELD("migs", "memory_used", "Memory Used", "B", WHOLE, MEMORY, false, "memory in use"),
};
#undef FIELD
#undef SAMPLED
#undef GAUGE
#undef COUNTER
#undef ROW
/* clang-format on */

const struct wm_gpu_field_info *wm_gpu_field_info(enum wm_gpu_field field)
{
    return (size_t)field < WM_GPU_FIELDS ? &fields[field] : NULL;
}

const struct wm_gpu_field_info *wm_gpu_process_field_info(enum wm_gpu_process_field field)
{
    return (size_t)field < WM_GPU_PROCESS_FIELDS ? &process_fields[field] : NULL;
}

const struct wm_gpu_field_info *wm_gpu_mig_field_info(enum wm_gpu_mig_field field)
{
    return (size_t)field < WM_GPU_MIG_FIELDS ? &mig_fields[field] : NULL;
}
