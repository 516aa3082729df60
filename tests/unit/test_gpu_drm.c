/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_drm.c - the inventory of AMD and Intel GPUs, from small trees that stand
 * for /sys and /proc: whole machines, and each file of them broken in turn. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/gpu_ops.h"
#include "gpu/gpu_sheet.h"

/* A file of a machine, below the card's folder or, after '/', below /sys or /proc
 * ("/proc/..."); the fields that are told by it, up to WM_GPU_INDEX. */
struct file {
    const char *path, *text;
    size_t size; /* of bytes that are not text */
    enum wm_gpu_field feeds[8];
    const char *instead; /* what the first of them says when the file is broken */
};

/* What a field shall say; a `text` for those that are one. */
struct expected {
    enum wm_gpu_field field;
    double number;
    const char *text;
};

enum { MOST_FILES = 64, MOST_FIELDS = 64 };

struct machine {
    const char *name;
    const char *device; /* its folder below /sys/devices */
    const char *card;
    struct file files[MOST_FILES];
    struct expected expected[MOST_FIELDS];
};

/* gpu_metrics 1.3, of a card with a counter of energy: 2^20 units of 2^-16 J, which
 * is held back by PPT0 and by its hottest spot. */
static const char metrics_card[120] = {
    [0] = 120,   [2] = 1,  [3] = 3,   [4] = 54,       [22] = 112,
    [26] = 0x10, [96] = 1, [112] = 1, [116] = 1 << 4,
};

/* gpu_metrics 2.2, of an APU that nothing holds back. */
static const char metrics_apu[128] = { [0] = (char)128, [2] = 2, [3] = 2 };

#define HW "device/hwmon/hwmon3/"
#define GT "device/tile0/gt0/freq0/"
#define PROPERTIES "/class/kfd/kfd/topology/nodes/1/properties"

static const struct machine machines[] = {
    {
        "amdgpu, a card",
        "pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0",
        "card1",
        {
            { "device/uevent",
              "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n",
              0,
              { WM_GPU_NAME, WM_GPU_INDEX },
              "amdgpu GPU" },
            { "device/vendor",
              "0x1002\n",
              0,
              { WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID, WM_GPU_PCI_LINK_GEN,
                WM_GPU_PCI_LINK_GEN_MAX, WM_GPU_PCI_LINK_WIDTH, WM_GPU_PCI_LINK_WIDTH_MAX },
              NULL },
            { "device/device", "0x744c\n", 0, { WM_GPU_PCI_DEVICE_ID }, NULL },
            { "device/subsystem_vendor",
              "0x1da2\n",
              0,
              { WM_GPU_PCI_SUB_SYSTEM_ID },
              NULL },
            { "device/subsystem_device",
              "0x471e\n",
              0,
              { WM_GPU_PCI_SUB_SYSTEM_ID },
              NULL },
            { "device/unique_id",
              "9246e46a12f1d0a4\n",
              0,
              { WM_GPU_UUID },
              "0000:03:00.0" },
            { "device/serial_number",
              "692251001124\n",
              0,
              { WM_GPU_SERIAL },
              "9246e46a12f1d0a4" },
            { "device/vbios_version", "113-D7020100-102\n", 0, { WM_GPU_BIOS }, NULL },
            { "/module/amdgpu/version", "6.7.0\n", 0, { WM_GPU_DRIVER_VERSION }, NULL },
            { PROPERTIES,
              "cpu_cores_count 0\nsimd_count 192\nsimd_per_cu 2\n"
              "gfx_target_version 110000\ndrm_render_minor 129\n",
              0,
              { WM_GPU_MULTIPROCESSORS, WM_GPU_ARCHITECTURE },
              NULL },
            { "card1-DP-1/enabled", "enabled\n", 0, { WM_GPU_DISPLAY_ACTIVE }, NULL },
            { "card1-HDMI-A-1/enabled", "disabled\n", 0, { WM_GPU_INDEX }, NULL },
            { "device/mem_info_vram_total",
              "25753026560\n",
              0,
              { WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_FREE },
              NULL },
            { "device/mem_info_vram_used",
              "3221225472\n",
              0,
              { WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE },
              NULL },
            { "device/mem_info_vis_vram_total",
              "268435456\n",
              0,
              { WM_GPU_MEMORY_BAR1_TOTAL },
              NULL },
            { "device/mem_info_vis_vram_used",
              "1048576\n",
              0,
              { WM_GPU_MEMORY_BAR1_USED },
              NULL },
            { "device/mem_info_gtt_total",
              "16106127360\n",
              0,
              { WM_GPU_MEMORY_SHARED_TOTAL },
              NULL },
            { "device/mem_info_gtt_used",
              "67108864\n",
              0,
              { WM_GPU_MEMORY_SHARED_USED },
              NULL },
            { "device/gpu_busy_percent", "37\n", 0, { WM_GPU_UTILIZATION_GPU }, "0" },
            { "device/mem_busy_percent", "12\n", 0, { WM_GPU_UTILIZATION_MEMORY }, NULL },
            { HW "pwm1", "51\n", 0, { WM_GPU_FAN }, NULL },
            { HW "pwm1_max", "255\n", 0, { WM_GPU_FAN }, NULL },
            { HW "pwm1_enable", "2\n", 0, { WM_GPU_FAN }, "0.2" },
            { HW "fan1_input", "1210\n", 0, { WM_GPU_FAN_SPEED }, NULL },
            { HW "temp1_label",
              "edge\n",
              0,
              { WM_GPU_TEMPERATURE, WM_GPU_TEMPERATURE_SHUTDOWN },
              "61" },
            { HW "temp1_input",
              "54000\n",
              0,
              { WM_GPU_TEMPERATURE, WM_GPU_TEMPERATURE_SHUTDOWN },
              "61" },
            { HW "temp1_emergency", "105000\n", 0, { WM_GPU_TEMPERATURE_SHUTDOWN }, "100" },
            { HW "temp1_crit", "100000\n", 0, { WM_GPU_INDEX }, NULL },
            { HW "temp2_label", "junction\n", 0, { WM_GPU_TEMPERATURE_HOTSPOT }, NULL },
            { HW "temp2_input", "61000\n", 0, { WM_GPU_TEMPERATURE_HOTSPOT }, NULL },
            { HW "temp3_label", "mem\n", 0, { WM_GPU_TEMPERATURE_MEMORY }, "0" },
            { HW "temp3_input", "70000\n", 0, { WM_GPU_TEMPERATURE_MEMORY }, "0" },
            { "device/power_dpm_force_performance_level",
              "auto\n",
              0,
              { WM_GPU_PERFORMANCE },
              NULL },
            { "device/../../current_link_speed",
              "16.0 GT/s PCIe\n",
              0,
              { WM_GPU_PCI_LINK_GEN },
              NULL },
            { "device/../../max_link_speed",
              "16.0 GT/s PCIe\n",
              0,
              { WM_GPU_PCI_LINK_GEN_MAX },
              NULL },
            { "device/../../current_link_width",
              "8\n",
              0,
              { WM_GPU_PCI_LINK_WIDTH },
              NULL },
            { "device/../../max_link_width",
              "16\n",
              0,
              { WM_GPU_PCI_LINK_WIDTH_MAX },
              NULL },
            { "device/pcie_replay_count", "3\n", 0, { WM_GPU_PCI_REPLAYS }, NULL },
            { HW "freq1_label", "sclk\n", 0, { WM_GPU_CLOCK_GRAPHICS }, "2371e6" },
            { HW "freq1_input", "1856000000\n", 0, { WM_GPU_CLOCK_GRAPHICS }, "2371e6" },
            { HW "freq2_label", "mclk\n", 0, { WM_GPU_CLOCK_MEMORY }, "1249e6" },
            { HW "freq2_input", "1124000000\n", 0, { WM_GPU_CLOCK_MEMORY }, "1249e6" },
            { "device/pp_dpm_sclk",
              "0: 500Mhz \n1: 2371Mhz *\n2: 2482Mhz \n",
              0,
              { WM_GPU_CLOCK_GRAPHICS_MAX },
              NULL },
            { "device/pp_dpm_mclk",
              "0: 96Mhz \n1: 1249Mhz *\n",
              0,
              { WM_GPU_CLOCK_MEMORY_MAX },
              NULL },
            { "device/pp_dpm_vclk",
              "0: 513Mhz *\n1: 2200Mhz \n",
              0,
              { WM_GPU_CLOCK_VIDEO, WM_GPU_CLOCK_VIDEO_MAX },
              NULL },
            { "device/gpu_metrics",
              metrics_card,
              sizeof(metrics_card),
              { WM_GPU_ENERGY, WM_GPU_THROTTLE, WM_GPU_POWER_SCOPE },
              NULL },
            { HW "power1_average",
              "112500000\n",
              0,
              { WM_GPU_POWER_DRAW, WM_GPU_POWER_AVERAGE },
              "118.25" },
            { HW "power1_input", "118250000\n", 0, { WM_GPU_POWER_INSTANT }, NULL },
            { HW "power1_cap",
              "339000000\n",
              0,
              { WM_GPU_POWER_LIMIT, WM_GPU_POWER_LIMIT_ENFORCED, WM_GPU_POWER_MANAGEMENT },
              NULL },
            { HW "power1_cap_default",
              "339000000\n",
              0,
              { WM_GPU_POWER_LIMIT_DEFAULT },
              NULL },
            { HW "power1_cap_min", "0\n", 0, { WM_GPU_POWER_LIMIT_MIN }, NULL },
            { HW "power1_cap_max", "390000000\n", 0, { WM_GPU_POWER_LIMIT_MAX }, NULL },
            { "device/ras/features", "feature mask: 0x5\n", 0, { WM_GPU_ECC_MODE }, NULL },
            { "device/ras/umc_err_count",
              "ue: 1\nce: 40\n",
              0,
              { WM_GPU_ECC_CORRECTED, WM_GPU_ECC_UNCORRECTED },
              "2" },
            { "device/ras/gfx_err_count",
              "ue: 0\nce: 2\nde: 7\n",
              0,
              { WM_GPU_ECC_CORRECTED, WM_GPU_ECC_UNCORRECTED },
              "40" },
        },
        {
            { WM_GPU_NAME, 0, "AMD GPU 1002:744c" },
            { WM_GPU_UUID, 0, "9246e46a12f1d0a4" },
            { WM_GPU_SERIAL, 0, "692251001124" },
            { WM_GPU_BIOS, 0, "113-D7020100-102" },
            { WM_GPU_LABEL, 0, "card1" },
            { WM_GPU_VENDOR, 0, "AMD" },
            { WM_GPU_SOURCE, 0, "drm" },
            { WM_GPU_ARCHITECTURE, 0, "gfx1100" },
            { WM_GPU_MULTIPROCESSORS, 96, NULL },
            { WM_GPU_KERNEL_DRIVER, 0, "amdgpu" },
            { WM_GPU_DRIVER_VERSION, 0, "6.7.0" },
            { WM_GPU_DISPLAY_ACTIVE, 1, NULL },
            { WM_GPU_SIMULATED, 0, NULL },
            { WM_GPU_MEMORY_TOTAL, 25753026560, NULL },
            { WM_GPU_MEMORY_USED, 3221225472, NULL },
            { WM_GPU_MEMORY_FREE, 25753026560.0 - 3221225472.0, NULL },
            { WM_GPU_MEMORY_BAR1_TOTAL, 268435456, NULL },
            { WM_GPU_MEMORY_BAR1_USED, 1048576, NULL },
            { WM_GPU_MEMORY_SHARED_TOTAL, 16106127360, NULL },
            { WM_GPU_MEMORY_SHARED_USED, 67108864, NULL },
            { WM_GPU_UTILIZATION_GPU, 0.37, NULL },
            { WM_GPU_UTILIZATION_MEMORY, 0.12, NULL },
            { WM_GPU_UTILIZATION_ENCODER, 0, NULL },
            { WM_GPU_UTILIZATION_DECODER, 0, NULL },
            { WM_GPU_FAN, 0.2, NULL },
            { WM_GPU_FAN_SPEED, 1210, NULL },
            { WM_GPU_TEMPERATURE, 54, NULL },
            { WM_GPU_TEMPERATURE_MEMORY, 70, NULL },
            { WM_GPU_TEMPERATURE_HOTSPOT, 61, NULL },
            { WM_GPU_TEMPERATURE_SHUTDOWN, 105, NULL },
            { WM_GPU_PERFORMANCE, 0, "auto" },
            { WM_GPU_PCI_BUS, 0, "03" },
            { WM_GPU_PCI_BUS_ID, 0, "0000:03:00.0" },
            { WM_GPU_PCI_DEVICE, 0, "00" },
            { WM_GPU_PCI_DEVICE_ID, 0, "744C1002" },
            { WM_GPU_PCI_SUB_SYSTEM_ID, 0, "471E1DA2" },
            { WM_GPU_PCI_LINK_GEN, 4, NULL },
            { WM_GPU_PCI_LINK_GEN_MAX, 4, NULL },
            { WM_GPU_PCI_LINK_WIDTH, 8, NULL },
            { WM_GPU_PCI_LINK_WIDTH_MAX, 16, NULL },
            { WM_GPU_PCI_REPLAYS, 3, NULL },
            { WM_GPU_CLOCK_GRAPHICS, 1856e6, NULL },
            { WM_GPU_CLOCK_MEMORY, 1124e6, NULL },
            { WM_GPU_CLOCK_VIDEO, 513e6, NULL },
            { WM_GPU_CLOCK_GRAPHICS_MAX, 2482e6, NULL },
            { WM_GPU_CLOCK_MEMORY_MAX, 1249e6, NULL },
            { WM_GPU_CLOCK_VIDEO_MAX, 2200e6, NULL },
            { WM_GPU_THROTTLE, 0, "ppt0, temp_hotspot" },
            { WM_GPU_POWER_MANAGEMENT, 0, "Supported" },
            { WM_GPU_POWER_DRAW, 112.5, NULL },
            { WM_GPU_POWER_INSTANT, 118.25, NULL },
            { WM_GPU_POWER_AVERAGE, 112.5, NULL },
            { WM_GPU_POWER_SCOPE, 0, "gpu" },
            { WM_GPU_POWER_LIMIT, 339, NULL },
            { WM_GPU_POWER_LIMIT_DEFAULT, 339, NULL },
            { WM_GPU_POWER_LIMIT_ENFORCED, 339, NULL },
            { WM_GPU_POWER_LIMIT_MIN, 0, NULL },
            { WM_GPU_POWER_LIMIT_MAX, 390, NULL },
            { WM_GPU_ENERGY, 16, NULL },
            { WM_GPU_ECC_MODE, 0, "Enabled" },
            { WM_GPU_ECC_CORRECTED, 42, NULL },
            { WM_GPU_ECC_UNCORRECTED, 1, NULL },
        },
    },
    {
        "amdgpu, an APU",
        "pci0000:00/0000:00:08.1/0000:c4:00.0",
        "card1",
        {
            { "device/uevent",
              "DRIVER=amdgpu\nPCI_ID=1002:15BF\nPCI_SLOT_NAME=0000:c4:00.0\n",
              0,
              { WM_GPU_NAME, WM_GPU_INDEX },
              "amdgpu GPU" },
            { "device/vendor",
              "0x1002\n",
              0,
              { WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID },
              NULL },
            { "device/device", "0x15bf\n", 0, { WM_GPU_PCI_DEVICE_ID }, NULL },
            { "/proc/sys/kernel/osrelease",
              "6.8.0-45-generic\n",
              0,
              { WM_GPU_DRIVER_VERSION },
              NULL },
            { "device/mem_info_vram_total",
              "536870912\n",
              0,
              { WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_FREE },
              NULL },
            { "device/mem_info_vram_used",
              "402653184\n",
              0,
              { WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE },
              NULL },
            { "device/mem_info_gtt_total",
              "16106127360\n",
              0,
              { WM_GPU_MEMORY_SHARED_TOTAL },
              NULL },
            { "device/mem_info_gtt_used",
              "2147483648\n",
              0,
              { WM_GPU_MEMORY_SHARED_USED },
              NULL },
            { "device/gpu_busy_percent", "23\n", 0, { WM_GPU_UTILIZATION_GPU }, "0" },
            { "device/gpu_metrics",
              metrics_apu,
              sizeof(metrics_apu),
              { WM_GPU_THROTTLE, WM_GPU_POWER_SCOPE, WM_GPU_ENERGY },
              NULL },
            { HW "temp1_label", "edge\n", 0, { WM_GPU_TEMPERATURE }, NULL },
            { HW "temp1_input", "48000\n", 0, { WM_GPU_TEMPERATURE }, NULL },
            { HW "power1_input",
              "14250000\n",
              0,
              { WM_GPU_POWER_INSTANT, WM_GPU_POWER_DRAW },
              NULL },
            { HW "freq1_label", "sclk\n", 0, { WM_GPU_CLOCK_GRAPHICS }, NULL },
            { HW "freq1_input", "800000000\n", 0, { WM_GPU_CLOCK_GRAPHICS }, NULL },
            { "device/current_link_speed", "16 GT/s\n", 0, { WM_GPU_PCI_LINK_GEN }, NULL },
            { "device/current_link_width", "16\n", 0, { WM_GPU_PCI_LINK_WIDTH }, NULL },
        },
        {
            { WM_GPU_NAME, 0, "AMD GPU 1002:15bf" },
            { WM_GPU_UUID, 0, "0000:c4:00.0" },
            { WM_GPU_LABEL, 0, "card1" },
            { WM_GPU_VENDOR, 0, "AMD" },
            { WM_GPU_SOURCE, 0, "drm" },
            { WM_GPU_KERNEL_DRIVER, 0, "amdgpu" },
            { WM_GPU_DRIVER_VERSION, 0, "of Linux 6.8.0-45-generic" },
            { WM_GPU_DISPLAY_ACTIVE, 0, NULL },
            { WM_GPU_SIMULATED, 0, NULL },
            { WM_GPU_MEMORY_TOTAL, 536870912, NULL },
            { WM_GPU_MEMORY_USED, 402653184, NULL },
            { WM_GPU_MEMORY_FREE, 134217728, NULL },
            { WM_GPU_MEMORY_SHARED_TOTAL, 16106127360, NULL },
            { WM_GPU_MEMORY_SHARED_USED, 2147483648, NULL },
            { WM_GPU_UTILIZATION_GPU, 0.23, NULL },
            { WM_GPU_UTILIZATION_ENCODER, 0, NULL },
            { WM_GPU_UTILIZATION_DECODER, 0, NULL },
            { WM_GPU_TEMPERATURE, 48, NULL },
            { WM_GPU_PCI_BUS, 0, "C4" },
            { WM_GPU_PCI_BUS_ID, 0, "0000:c4:00.0" },
            { WM_GPU_PCI_DEVICE, 0, "00" },
            { WM_GPU_PCI_DEVICE_ID, 0, "15BF1002" },
            { WM_GPU_PCI_LINK_GEN, 4, NULL },
            { WM_GPU_PCI_LINK_WIDTH, 16, NULL },
            { WM_GPU_CLOCK_GRAPHICS, 800e6, NULL },
            { WM_GPU_THROTTLE, 0, "none" },
            { WM_GPU_POWER_DRAW, 14.25, NULL },
            { WM_GPU_POWER_INSTANT, 14.25, NULL },
            { WM_GPU_POWER_SCOPE, 0, "module" },
        },
    },
    {
        "i915, a card",
        "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0",
        "card0",
        {
            { "device/uevent",
              "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:03:00.0\n",
              0,
              { WM_GPU_NAME, WM_GPU_INDEX },
              "i915 GPU" },
            { "device/vendor",
              "0x8086\n",
              0,
              { WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID, WM_GPU_PCI_LINK_GEN },
              NULL },
            { "device/device", "0x56a0\n", 0, { WM_GPU_PCI_DEVICE_ID }, NULL },
            { "device/../../current_link_speed",
              "2.5 GT/s PCIe\n",
              0,
              { WM_GPU_PCI_LINK_GEN },
              NULL },
            { "gt/gt0/rps_act_freq_mhz", "2050\n", 0, { WM_GPU_CLOCK_GRAPHICS }, NULL },
            { "gt/gt0/rps_RP0_freq_mhz", "2400\n", 0, { WM_GPU_CLOCK_GRAPHICS_MAX }, NULL },
            { "gt/gt0/throttle_reason_status", "1\n", 0, { WM_GPU_INDEX }, NULL },
            { "gt/gt0/throttle_reason_pl1", "1\n", 0, { WM_GPU_THROTTLE }, "thermal" },
            { "gt/gt0/throttle_reason_thermal", "1\n", 0, { WM_GPU_THROTTLE }, "pl1" },
            { "gt/gt0/throttle_reason_pl2", "0\n", 0, { WM_GPU_THROTTLE }, "pl1, thermal" },
            { HW "temp1_input", "47000\n", 0, { WM_GPU_TEMPERATURE }, NULL },
            { HW "fan1_input", "900\n", 0, { WM_GPU_FAN_SPEED }, NULL },
            { HW "power1_max",
              "190000000\n",
              0,
              { WM_GPU_POWER_LIMIT, WM_GPU_POWER_MANAGEMENT },
              NULL },
            { HW "power1_rated_max",
              "190000000\n",
              0,
              { WM_GPU_POWER_LIMIT_DEFAULT },
              NULL },
            { HW "energy1_input",
              "73184320715\n",
              0,
              { WM_GPU_ENERGY, WM_GPU_INDEX },
              NULL },
        },
        {
            { WM_GPU_NAME, 0, "Intel GPU 8086:56a0" },
            { WM_GPU_UUID, 0, "0000:03:00.0" },
            { WM_GPU_LABEL, 0, "card0" },
            { WM_GPU_VENDOR, 0, "Intel" },
            { WM_GPU_SOURCE, 0, "drm" },
            { WM_GPU_KERNEL_DRIVER, 0, "i915" },
            { WM_GPU_DISPLAY_ACTIVE, 0, NULL },
            { WM_GPU_SIMULATED, 0, NULL },
            { WM_GPU_UTILIZATION_GPU, 0, NULL },
            { WM_GPU_FAN_SPEED, 900, NULL },
            { WM_GPU_TEMPERATURE, 47, NULL },
            { WM_GPU_PCI_BUS, 0, "03" },
            { WM_GPU_PCI_BUS_ID, 0, "0000:03:00.0" },
            { WM_GPU_PCI_DEVICE, 0, "00" },
            { WM_GPU_PCI_DEVICE_ID, 0, "56A08086" },
            { WM_GPU_PCI_LINK_GEN, 1, NULL },
            { WM_GPU_CLOCK_GRAPHICS, 2050e6, NULL },
            { WM_GPU_CLOCK_GRAPHICS_MAX, 2400e6, NULL },
            { WM_GPU_THROTTLE, 0, "pl1, thermal" },
            { WM_GPU_POWER_MANAGEMENT, 0, "Supported" },
            { WM_GPU_POWER_LIMIT, 190, NULL },
            { WM_GPU_POWER_LIMIT_DEFAULT, 190, NULL },
            { WM_GPU_ENERGY, 73184.320715, NULL },
        },
    },
    {
        "i915, a part of the processor",
        "pci0000:00/0000:00:02.0",
        "card0",
        {
            { "device/uevent",
              "DRIVER=i915\nPCI_ID=8086:9A49\nPCI_SLOT_NAME=0000:00:02.0\n",
              0,
              { WM_GPU_NAME, WM_GPU_INDEX },
              "i915 GPU" },
            { "device/vendor",
              "0x8086\n",
              0,
              { WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID },
              NULL },
            { "device/device", "0x9a49\n", 0, { WM_GPU_PCI_DEVICE_ID }, NULL },
            { "device/current_link_speed", "Unknown\n", 0, { WM_GPU_PCI_LINK_GEN }, NULL },
            { "device/current_link_width", "0\n", 0, { WM_GPU_PCI_LINK_WIDTH }, NULL },
            { "device/max_link_width", "255\n", 0, { WM_GPU_PCI_LINK_WIDTH_MAX }, NULL },
            { "gt_act_freq_mhz", "0\n", 0, { WM_GPU_CLOCK_GRAPHICS }, NULL },
            { "gt_RP0_freq_mhz", "1300\n", 0, { WM_GPU_CLOCK_GRAPHICS_MAX }, NULL },
            { "card0-eDP-1/enabled", "enabled\n", 0, { WM_GPU_DISPLAY_ACTIVE }, NULL },
        },
        {
            { WM_GPU_NAME, 0, "Intel GPU 8086:9a49" },
            { WM_GPU_UUID, 0, "0000:00:02.0" },
            { WM_GPU_LABEL, 0, "card0" },
            { WM_GPU_VENDOR, 0, "Intel" },
            { WM_GPU_SOURCE, 0, "drm" },
            { WM_GPU_KERNEL_DRIVER, 0, "i915" },
            { WM_GPU_DISPLAY_ACTIVE, 1, NULL },
            { WM_GPU_SIMULATED, 0, NULL },
            { WM_GPU_UTILIZATION_GPU, 0, NULL },
            { WM_GPU_PCI_BUS, 0, "00" },
            { WM_GPU_PCI_BUS_ID, 0, "0000:00:02.0" },
            { WM_GPU_PCI_DEVICE, 0, "02" },
            { WM_GPU_PCI_DEVICE_ID, 0, "9A498086" },
            { WM_GPU_CLOCK_GRAPHICS, 0, NULL },
            { WM_GPU_CLOCK_GRAPHICS_MAX, 1300e6, NULL },
        },
    },
    {
        "xe",
        "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0",
        "card0",
        {
            { "device/uevent",
              "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n",
              0,
              { WM_GPU_NAME, WM_GPU_INDEX },
              "xe GPU" },
            { "device/vendor",
              "0x8086\n",
              0,
              { WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID },
              NULL },
            { "device/device", "0xe20b\n", 0, { WM_GPU_PCI_DEVICE_ID }, NULL },
            { "device/tile0/physical_vram_size_bytes",
              "12884901888\n",
              0,
              { WM_GPU_MEMORY_TOTAL },
              NULL },
            { GT "act_freq", "2400\n", 0, { WM_GPU_CLOCK_GRAPHICS }, NULL },
            { GT "rp0_freq", "2850\n", 0, { WM_GPU_CLOCK_GRAPHICS_MAX }, NULL },
            { GT "max_freq", "2000\n", 0, { WM_GPU_INDEX }, NULL },
            { GT "throttle/status", "0\n", 0, { WM_GPU_INDEX }, NULL },
            { GT "throttle/reason_pl1", "0\n", 0, { WM_GPU_THROTTLE }, "none" },
            { GT "throttle/reason_prochot", "0\n", 0, { WM_GPU_THROTTLE }, "none" },
            { HW "temp2_label",
              "pkg\n",
              0,
              { WM_GPU_TEMPERATURE, WM_GPU_TEMPERATURE_SHUTDOWN },
              NULL },
            { HW "temp2_input",
              "51000\n",
              0,
              { WM_GPU_TEMPERATURE, WM_GPU_TEMPERATURE_SHUTDOWN },
              NULL },
            { HW "temp2_emergency", "110000\n", 0, { WM_GPU_TEMPERATURE_SHUTDOWN }, NULL },
            { HW "temp2_crit", "100000\n", 0, { WM_GPU_INDEX }, NULL },
            { HW "temp3_label", "vram\n", 0, { WM_GPU_TEMPERATURE_MEMORY }, NULL },
            { HW "temp3_input", "58000\n", 0, { WM_GPU_TEMPERATURE_MEMORY }, NULL },
            { HW "fan1_input", "0\n", 0, { WM_GPU_FAN_SPEED }, NULL },
            { HW "power1_max", "0\n", 0, { WM_GPU_POWER_LIMIT }, NULL },
            { HW "power1_cap", "250000000\n", 0, { WM_GPU_INDEX }, NULL },
            { HW "power2_rated_max",
              "190000000\n",
              0,
              { WM_GPU_POWER_LIMIT_DEFAULT },
              NULL },
            { HW "energy1_label", "card\n", 0, { WM_GPU_ENERGY }, "912.345678" },
            { HW "energy1_input", "912345678\n", 0, { WM_GPU_ENERGY, WM_GPU_INDEX }, NULL },
        },
        {
            { WM_GPU_NAME, 0, "Intel GPU 8086:e20b" },
            { WM_GPU_UUID, 0, "0000:03:00.0" },
            { WM_GPU_LABEL, 0, "card0" },
            { WM_GPU_VENDOR, 0, "Intel" },
            { WM_GPU_SOURCE, 0, "drm" },
            { WM_GPU_KERNEL_DRIVER, 0, "xe" },
            { WM_GPU_DISPLAY_ACTIVE, 0, NULL },
            { WM_GPU_SIMULATED, 0, NULL },
            { WM_GPU_MEMORY_TOTAL, 12884901888, NULL },
            { WM_GPU_UTILIZATION_GPU, 0, NULL },
            { WM_GPU_FAN_SPEED, 0, NULL },
            { WM_GPU_TEMPERATURE, 51, NULL },
            { WM_GPU_TEMPERATURE_MEMORY, 58, NULL },
            { WM_GPU_TEMPERATURE_SHUTDOWN, 110, NULL },
            { WM_GPU_PCI_BUS, 0, "03" },
            { WM_GPU_PCI_BUS_ID, 0, "0000:03:00.0" },
            { WM_GPU_PCI_DEVICE, 0, "00" },
            { WM_GPU_PCI_DEVICE_ID, 0, "E20B8086" },
            { WM_GPU_CLOCK_GRAPHICS, 2400e6, NULL },
            { WM_GPU_CLOCK_GRAPHICS_MAX, 2850e6, NULL },
            { WM_GPU_THROTTLE, 0, "none" },
            { WM_GPU_POWER_LIMIT_DEFAULT, 190, NULL },
            { WM_GPU_ENERGY, 912.345678, NULL },
        },
    },
};

/* Where a file of the machine is, below the scratch folder. */
static void place(const struct machine *machine, const struct file *file, char *path,
                  size_t size)
{
    if (strncmp(file->path, "/proc/", 6) == 0)
        snprintf(path, size, "%s", file->path + 1);
    else if (file->path[0] == '/')
        snprintf(path, size, "sys%s", file->path);
    else
        snprintf(path, size, "sys/class/drm/%s/%s", machine->card, file->path);
}

static void write_bytes(const char *dir, const char *path, const char *bytes, size_t size)
{
    char full[1024];

    test_write_file(dir, path, "");
    snprintf(full, sizeof(full), "%s/%s", dir, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *dir, const struct machine *machine,
                       const struct file *file)
{
    char path[256];

    place(machine, file, path, sizeof(path));
    write_bytes(dir, path, file->text, file->size ? file->size : strlen(file->text));
}

/* Builds the machine in the scratch folder: as on a real one the card's "device"
 * is a link, and the cards behind it have two bridges of their maker above them. */
static void make_machine(const char *dir, const struct machine *machine)
{
    char path[512], target[600], link[1024];
    const char *vendor = strncmp(machine->name, "amd", 3) == 0 ? "0x1002\n" : "0x8086\n";

    snprintf(path, sizeof(path), "sys/devices/%s/drm/%s/dev", machine->device,
             machine->card);
    test_write_file(dir, path, "226:0\n");
    snprintf(path, sizeof(path), "sys/devices/%s/drm/renderD129/dev", machine->device);
    test_write_file(dir, path, "226:129\n");
    for (int up = 1; up <= 2; up++) {
        snprintf(path, sizeof(path), "sys/devices/%s/%s", machine->device,
                 up == 1 ? "../" : "../../");
        if (strlen(machine->device) < 40)
            continue;
        snprintf(target, sizeof(target), "%svendor", path);
        test_write_file(dir, target, vendor);
        snprintf(target, sizeof(target), "%sclass", path);
        test_write_file(dir, target, "0x060400\n");
    }

    snprintf(path, sizeof(path), "sys/class/drm/%s/dev", machine->card);
    test_write_file(dir, path, "226:0\n");
    snprintf(target, sizeof(target), "../../../devices/%s", machine->device);
    snprintf(link, sizeof(link), "%s/sys/class/drm/%s/device", dir, machine->card);
    assert_int_equal(symlink(target, link), 0);
    snprintf(path, sizeof(path), "sys/devices/%s/driver", machine->device);
    snprintf(link, sizeof(link), "%s/%s", dir, path);
    snprintf(target, sizeof(target), "/drivers/%.*s", (int)strcspn(machine->name, ","),
             machine->name);
    assert_int_equal(symlink(target, link), 0);
    snprintf(target, sizeof(target), "%.*s\n", (int)strcspn(machine->name, ","),
             machine->name);
    snprintf(path, sizeof(path), "sys/class/drm/%s/device/hwmon/hwmon3/name",
             machine->card);
    test_write_file(dir, path, target);
    test_write_file(dir, "sys/class/kfd/kfd/topology/nodes/0/properties",
                    "cpu_cores_count 16\nsimd_count 0\ndrm_render_minor 0\n");

    for (size_t i = 0; i < MOST_FILES && machine->files[i].path; i++)
        write_file(dir, machine, &machine->files[i]);
    test_write_file(dir, "proc/2/comm", "kthreadd\n");
}

/* A GPU that is open. */
struct gpu {
    void *state;
    struct wm_gpu_sheet *sheet;
    size_t index;
};

static int try_open(const char *dir, struct gpu *gpu, struct wm_error *err)
{
    char sysfs[300], procfs[300];
    const struct wm_source_config config = { .sysfs = sysfs, .procfs = procfs };

    snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    *gpu = (struct gpu) { .state = calloc(1, wm_gpu_drm.state_size) };
    assert_non_null(gpu->state);
    return wm_gpu_drm.open(gpu->state, &config, err);
}

static void open_gpu(const char *dir, struct gpu *gpu)
{
    struct wm_error err = { 0 };

    if (try_open(dir, gpu, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(wm_gpu_sheet_new("drm", &gpu->sheet, &err), WM_OK);
}

static void close_gpu(struct gpu *gpu)
{
    wm_gpu_sheet_free(gpu->sheet);
    wm_gpu_drm.close(gpu->state);
    free(gpu->state);
}

static void refresh(struct gpu *gpu, unsigned groups)
{
    bool all;

    wm_gpu_sheet_ask(gpu->sheet, groups);
    groups = wm_gpu_sheet_begin(gpu->sheet, &all);
    wm_gpu_drm.refresh(gpu->state, gpu->index, groups, all, gpu->sheet);
    wm_gpu_sheet_end(gpu->sheet);
    wm_gpu_sheet_collect(gpu->sheet, "too late");
}

/* All fields as copies. */
struct answers {
    struct answer {
        enum wm_reading_state state;
        double number;
        char text[256], why[256];
    } fields[WM_GPU_FIELDS];
};

static void copy_answers(const struct gpu *gpu, struct answers *ret_answers)
{
    memset(ret_answers, 0, sizeof(*ret_answers));
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        struct answer *answer = &ret_answers->fields[field];
        struct wm_gpu_value value;

        wm_gpu_sheet_get(gpu->sheet, field, &value);
        answer->state = value.state;
        assert_int_equal(value.why == NULL, value.state == WM_READING_OK);
        if (value.state == WM_READING_OK)
            answer->number = value.number;
        snprintf(answer->text, sizeof(answer->text), "%s", value.text ? value.text : "");
        snprintf(answer->why, sizeof(answer->why), "%s", value.why ? value.why : "");
    }
}

static const char *key(enum wm_gpu_field field)
{
    return wm_gpu_field_info(field)->key;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_machines(void **state)
{
    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        static struct answers answers;
        bool seen[WM_GPU_FIELDS] = { [WM_GPU_INDEX] = true };
        char dir[300];
        struct gpu gpu;

        print_message("  %s\n", machines[m].name);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, m);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[m]);
        open_gpu(dir, &gpu);
        assert_int_equal(wm_gpu_drm.count(gpu.state), 1);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);

        for (size_t i = 0; i < MOST_FIELDS && machines[m].expected[i].field; i++) {
            const struct expected *expected = &machines[m].expected[i];
            const struct answer *answer = &answers.fields[expected->field];

            seen[expected->field] = true;
            if (answer->state != WM_READING_OK)
                fail_msg("%s: %s", key(expected->field), answer->why);
            if (expected->text ? strcmp(answer->text, expected->text) != 0
                               : !is_near(answer->number, expected->number))
                fail_msg("%s: %.17g '%s'", key(expected->field), answer->number,
                         answer->text);
        }
        for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
            const struct answer *answer = &answers.fields[field];
            if (!seen[field] && (answer->state != WM_READING_UNSUPPORTED ||
                                 strstr(answer->why, "not told by")))
                fail_msg("%s: state %d, '%s'", key(field), answer->state, answer->why);
        }
        close_gpu(&gpu);
    }
}

/* Reasons a person reads. */
static void test_reasons(void **state)
{
    static const struct {
        size_t machine;
        enum wm_gpu_field field;
        const char *why;
    } cases[] = {
        { 1, WM_GPU_SERIAL,
          "amdgpu does not tell it of this GPU: there is no card1/device/serial_number" },
        { 1, WM_GPU_FAN_SPEED,
          "amdgpu does not tell it of this GPU: there is no "
          "card1/device/hwmon/hwmon3/fan1_input" },
        { 0, WM_GPU_TEMPERATURE_SLOWDOWN, "amdgpu does not tell it of this GPU" },
        { 2, WM_GPU_PCI_LINK_WIDTH,
          "i915 does not tell it of this GPU: there is no "
          "card0/device/../../current_link_width" },
        { 1, WM_GPU_CUDA_VERSION, "CUDA needs a GPU of NVIDIA" },
        { 2, WM_GPU_POWER_DRAW, "i915 counts energy alone; power is how fast that grows" },
        { 2, WM_GPU_MEMORY_USED, "i915 tells the memory of each process alone" },
        { 2, WM_GPU_UTILIZATION_ENCODER,
          "the driver does not tell encoding from decoding: one engine does both" },
        { 3, WM_GPU_PCI_LINK_GEN, "this GPU has no PCIe link of its own" },
        { 3, WM_GPU_PCI_LINK_WIDTH_MAX, "this GPU has no PCIe link of its own" },
        { 3, WM_GPU_THROTTLE,
          "i915 does not tell it of this GPU: there is no card0/gt/gt0" },
        { 3, WM_GPU_FAN,
          "i915 does not tell it of this GPU: there is no "
          "card0/device/hwmon/hwmon3/pwm1" },
        { 4, WM_GPU_POWER_LIMIT, "no power limit is set" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct answers answers;
        char dir[300];
        struct gpu gpu;

        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[cases[i].machine]);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);
        assert_string_equal(answers.fields[cases[i].field].why, cases[i].why);
        close_gpu(&gpu);
    }
}

/* gpu_metrics 1.3 with a reason that has no name yet. */
static const char metrics_news[120] = {
    [0] = 120, [2] = 1, [3] = 3, [112] = 1 << 4, [119] = (char)0x80,
};

/* One file says something else. */
static void test_values(void **state)
{
    static char padded[9000] = "ue: 1\nce: 40\n";
    static const struct {
        const char *what;
        size_t machine;
        struct file file;
        enum wm_gpu_field field;
        enum wm_reading_state state;
        double number;
        const char *text; /* or a part of the reason */
    } cases[] = {
        { "a fan that nobody controls",
          0,
          { .path = HW "pwm1_enable", .text = "0\n" },
          WM_GPU_FAN,
          WM_READING_OK,
          1,
          NULL },
        { "a fan that stands still",
          0,
          { .path = HW "pwm1", .text = "0\n" },
          WM_GPU_FAN,
          WM_READING_OK,
          0,
          NULL },
        { "a fan beyond its highest speed",
          0,
          { .path = HW "pwm1", .text = "256\n" },
          WM_GPU_FAN,
          WM_READING_FAILED,
          0,
          "faster than it can: 256 of 255" },
        { "more memory in use than there is",
          0,
          { .path = "device/mem_info_vram_used", .text = "25753026561\n" },
          WM_GPU_MEMORY_FREE,
          WM_READING_FAILED,
          0,
          "more memory is in use than there is" },
        { "a hexadecimal step",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\ngfx_target_version 90010\n" },
          WM_GPU_ARCHITECTURE,
          WM_READING_OK,
          0,
          "gfx90a" },
        { "no such version",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\ngfx_target_version 91600\n" },
          WM_GPU_ARCHITECTURE,
          WM_READING_UNSUPPORTED,
          0,
          "does not tell it" },
        { "more units than compute units",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\nsimd_count 1\nsimd_per_cu 4\n" },
          WM_GPU_MULTIPROCESSORS,
          WM_READING_UNSUPPORTED,
          0,
          "does not tell it" },
        { "a root port is no switch",
          0,
          { .path = "device/../../class", .text = "0x060000\n" },
          WM_GPU_PCI_LINK_GEN,
          WM_READING_UNSUPPORTED,
          0,
          "there is no card1/device/current_link_speed" },
        { "nor is the switch of another maker the card's",
          0,
          { .path = "device/../../vendor", .text = "0x10b5\n" },
          WM_GPU_PCI_LINK_WIDTH,
          WM_READING_UNSUPPORTED,
          0,
          "there is no card1/device/current_link_width" },
        { "a limit that is switched off",
          0,
          { .path = HW "power1_cap", .text = "0\n" },
          WM_GPU_POWER_LIMIT,
          WM_READING_UNSUPPORTED,
          0,
          "no power limit is set" },
        { "right, but endless",
          0,
          { .path = "device/ras/umc_err_count", .text = padded, .size = sizeof(padded) },
          WM_GPU_ECC_CORRECTED,
          WM_READING_FAILED,
          0,
          "too long to be true" },
        { "errors that cannot be counted now",
          0,
          { .path = "device/ras/umc_err_count", .text = "Query currently inaccessible\n" },
          WM_GPU_ECC_UNCORRECTED,
          WM_READING_FAILED,
          0,
          "makes no sense" },
        { "no error correction",
          0,
          { .path = "device/ras/features", .text = "feature mask: 0xfffe\n" },
          WM_GPU_ECC_MODE,
          WM_READING_OK,
          0,
          "Disabled" },
        { "levels without a star",
          0,
          { .path = "device/pp_dpm_vclk", .text = "0: 513Mhz \n" },
          WM_GPU_CLOCK_VIDEO,
          WM_READING_FAILED,
          0,
          "names no such level" },
        { "a reason without a name",
          0,
          { .path = "device/gpu_metrics",
            .text = metrics_news,
            .size = sizeof(metrics_news) },
          WM_GPU_THROTTLE,
          WM_READING_OK,
          0,
          "spl, bit 63" },
        { "gpu_metrics of tomorrow",
          0,
          { .path = "device/gpu_metrics", .text = "\4\1\x63\1", .size = 4 },
          WM_GPU_THROTTLE,
          WM_READING_FAILED,
          0,
          "is not known" },
        { "a maker nobody knows",
          0,
          { .path = "device/vendor", .text = "0x1d17\n" },
          WM_GPU_VENDOR,
          WM_READING_OK,
          0,
          "0x1d17" },
    };

    memset(padded + strlen(padded), '\n', sizeof(padded) - strlen(padded));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct answers answers;
        const struct answer *answer = &answers.fields[cases[i].field];
        char dir[300];
        struct gpu gpu;

        print_message("  %s\n", cases[i].what);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[cases[i].machine]);
        write_file(dir, &machines[cases[i].machine], &cases[i].file);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);
        close_gpu(&gpu);

        const char *text = answer->state == WM_READING_OK ? answer->text : answer->why;
        if (answer->state != cases[i].state || !is_near(answer->number, cases[i].number) ||
            (cases[i].text && !strstr(text, cases[i].text)))
            fail_msg("state %d, %.17g '%s'", answer->state, answer->number, text);
    }
}

/* Ways in which a file can be broken. */
enum damage { MISSING, EMPTY, BINARY, HUGE_FILE, NEGATIVE, GARBAGE, UNREADABLE, DAMAGES };

static const char *const damage_names[DAMAGES] = {
    "missing", "empty", "binary", "huge", "negative", "garbage", "unreadable",
};

static void damage_file(const char *dir, const char *path, enum damage damage)
{
    static const char binary[] = { 0x12, 0, (char)0xff, '\n', 0x1b, '[', '2', 'J' };
    static char huge[70 * 1024];
    char full[1024];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    switch (damage) {
    case MISSING:
        assert_int_equal(unlink(full), 0);
        break;
    case EMPTY:
        write_bytes(dir, path, "", 0);
        break;
    case BINARY:
        write_bytes(dir, path, binary, sizeof(binary));
        break;
    case HUGE_FILE:
        memset(huge, '9', sizeof(huge));
        write_bytes(dir, path, huge, sizeof(huge));
        break;
    case NEGATIVE:
        write_bytes(dir, path, "-70000000\n", 10);
        break;
    case GARBAGE:
        write_bytes(dir, path, "12 \xc3\xa9t\xc3\xa9\n7\n", 11);
        break;
    default:
        assert_int_equal(chmod(full, 0), 0);
        break;
    }
}

static bool is_fed(const struct file *file, enum wm_gpu_field field, bool *ret_first)
{
    *ret_first = file->feeds[0] == field;
    for (size_t i = 0; i < ARRAY_LEN(file->feeds) && file->feeds[i]; i++) {
        if (file->feeds[i] == field)
            return true;
    }
    return false;
}

static bool is_same(const struct answer *a, const struct answer *b)
{
    return a->state == b->state && a->number == b->number && strcmp(a->text, b->text) == 0;
}

/* A broken file costs its own fields, which then have no value or the one that
 * another file tells, and no other field. */
static void check_damage(const struct file *file, const struct answers *good,
                         const struct answers *now, enum damage damage)
{
    const char *what = damage_names[damage];

    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        const struct answer *answer = &now->fields[field];
        bool first;

        if (is_same(&good->fields[field], answer))
            continue;
        if (!is_fed(file, field, &first))
            fail_msg("%s %s changes %s: state %d, %.17g '%s' '%s'", what, file->path,
                     key(field), answer->state, answer->number, answer->text, answer->why);
        if (answer->state != WM_READING_OK)
            continue;
        /* A name may be anything that can be shown. */
        if (damage == NEGATIVE && strstr(answer->text, "-70000000"))
            continue;
        if (!file->instead)
            fail_msg("%s %s makes up %s: %.17g '%s'", what, file->path, key(field),
                     answer->number, answer->text);
        if (first &&
            (answer->text[0] ? strcmp(answer->text, file->instead) != 0
                             : !is_near(answer->number, strtod(file->instead, NULL))))
            fail_msg("%s %s: %s is %.17g '%s'", what, file->path, key(field),
                     answer->number, answer->text);
    }
}

static void test_broken_files(void **state)
{
    enum { NOBODY = 65534 };
    bool is_root = geteuid() == 0;

    assert_int_equal(chmod(*state, 0755), 0);
    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        const struct machine *machine = &machines[m];
        static struct answers good, now;
        char dir[300], path[256];
        struct gpu gpu;

        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, m);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, machine);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &good);
        close_gpu(&gpu);

        for (size_t i = 0; i < MOST_FILES && machine->files[i].path; i++) {
            for (enum damage damage = 0; damage < DAMAGES; damage++) {
                place(machine, &machine->files[i], path, sizeof(path));
                damage_file(dir, path, damage);
                if (is_root && damage == UNREADABLE)
                    assert_int_equal(seteuid(NOBODY), 0);
                open_gpu(dir, &gpu);
                refresh(&gpu, WM_GPU_EVERYTHING);
                if (is_root)
                    assert_int_equal(seteuid(0), 0);
                copy_answers(&gpu, &now);
                check_damage(&machine->files[i], &good, &now, damage);
                close_gpu(&gpu);

                char full[1024];
                snprintf(full, sizeof(full), "%s/%s", dir, path);
                assert_true(unlink(full) == 0 || errno == ENOENT);
                write_file(dir, machine, &machine->files[i]);
            }
        }
    }
}

/* A made-up client in /proc. */
static void write_client(const char *dir, int pid, int number, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, number);
    test_write_file(dir, path, text);
}

#define AMD_CLIENT(id, kib, engines)                                                       \
    "drm-driver:\tamdgpu\ndrm-client-id:\t" #id "\ndrm-pdev:\t0000:03:00.0\n"              \
    "drm-memory-vram:\t" #kib " KiB\n" engines
#define XE_CLIENT(id, cycles, clock)                                                       \
    "drm-driver:\txe\ndrm-client-id:\t" #id "\ndrm-pdev:\t0000:03:00.0\n"                  \
    "drm-resident-vram0:\t2048 KiB\ndrm-cycles-ccs:\t" #cycles                             \
    "\ndrm-total-cycles-ccs:\t" #clock "\ndrm-engine-capacity-ccs:\t2\n"

static size_t count_processes(const struct gpu *gpu, struct wm_gpu_value *ret_list)
{
    return wm_gpu_sheet_process_count(gpu->sheet, ret_list);
}

/* Its place in the list, or SIZE_MAX where it is not listed. */
static size_t find_process(const struct gpu *gpu, pid_t pid)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_sheet_process_count(gpu->sheet, &list);

    for (size_t i = 0; i < count; i++) {
        if (wm_gpu_sheet_process_pid(gpu->sheet, i) == pid)
            return i;
    }
    return SIZE_MAX;
}

/* What is said of a process that is listed. */
static struct wm_gpu_value told(const struct gpu *gpu, pid_t pid,
                                enum wm_gpu_process_field field)
{
    struct wm_gpu_value value;
    size_t place = find_process(gpu, pid);

    assert_int_not_equal(place, SIZE_MAX);
    wm_gpu_sheet_process_get(gpu->sheet, place, field, &value);
    return value;
}

static double told_number(const struct gpu *gpu, pid_t pid, enum wm_gpu_process_field field)
{
    struct wm_gpu_value value = told(gpu, pid, field);

    if (value.state != WM_READING_OK)
        fail_msg("%s of %d: %s", wm_gpu_process_field_info(field)->key, (int)pid,
                 value.why);
    return value.number;
}

static void test_processes(void **state)
{
    static const struct {
        pid_t pid;
        const char *type;
        double memory, gpu_time;
    } expected[] = {
        { 100, "C+G", 3 * 1024.0 * 1024, 3.5 },
        { 200, "C", 1024.0 * 1024, 0.25 },
        { 300, NULL, 512 * 1024.0, 0 },
        { 400, NULL, 4096, 1 },
    };
    const char *dir = *state;
    struct wm_gpu_value list;
    struct gpu gpu;
    char path[300];

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t2000000000 ns\n"
                            "drm-engine-dec:\t1000000000 ns\n"));
    write_client(dir, 100, 5, AMD_CLIENT(2, 2048, "drm-engine-compute:\t500000000 ns\n"));
    /* A fork has the same client, which is its parent's. */
    write_client(dir, 101, 5, AMD_CLIENT(2, 2048, "drm-engine-compute:\t500000000 ns\n"));
    write_client(dir, 200, 0, AMD_CLIENT(3, 1024, "drm-engine-compute:\t250000000 ns\n"));
    write_client(dir, 300, 9, AMD_CLIENT(4, 512, ""));
    write_client(dir, 400, 3, AMD_CLIENT(5, 4, "drm-engine-enc:\t1000000000 ns\n"));
    write_client(dir, 500, 3, "drm-driver:\tamdgpu\ndrm-pdev:\t0000:04:00.0\n");
    write_client(dir, 600, 3, "drm-driver:");
    open_gpu(dir, &gpu);

    refresh(&gpu, WM_GPU_MEMORY);
    assert_int_equal(count_processes(&gpu, &list), 0);
    assert_int_equal(list.state, WM_READING_NONE);

    refresh(&gpu, WM_GPU_PROCESSES);
    assert_int_equal(count_processes(&gpu, &list), ARRAY_LEN(expected));
    assert_int_equal(list.state, WM_READING_OK);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        pid_t pid = expected[i].pid;
        assert_int_equal(find_process(&gpu, pid), i);
        struct wm_gpu_value type = told(&gpu, pid, WM_GPU_PROCESS_TYPE);

        assert_int_equal(type.state == WM_READING_OK, expected[i].type != NULL);
        if (expected[i].type)
            assert_string_equal(type.text, expected[i].type);
        assert_true(told_number(&gpu, pid, WM_GPU_PROCESS_MEMORY) == expected[i].memory);
        assert_true(
            is_near(told_number(&gpu, pid, WM_GPU_PROCESS_GPU_TIME), expected[i].gpu_time));
        assert_true(told_number(&gpu, pid, WM_GPU_PROCESS_SM) == 0);
        assert_int_not_equal(told(&gpu, pid, WM_GPU_PROCESS_GPU_INSTANCE).state,
                             WM_READING_OK);
    }

    /* One vanishes with all it had open, one closes a client. */
    test_write_file(dir, "proc/200/fdinfo/0", "");
    snprintf(path, sizeof(path), "%s/proc/200/fdinfo/0", dir);
    assert_int_equal(unlink(path), 0);
    test_write_file(dir, "proc/100/fdinfo/4", "");
    refresh(&gpu, WM_GPU_PROCESSES);
    assert_int_equal(count_processes(&gpu, &list), 3);
    assert_int_equal(find_process(&gpu, 200), SIZE_MAX);
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "C");
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_MEMORY) == 2 * 1024.0 * 1024);
    close_gpu(&gpu);
}

/* Shares of the time come from two looks at the engines. */
static void test_shares(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-enc:\t1000 ns\n"));
    write_client(dir, 200, 4,
                 AMD_CLIENT(2, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-dec:\t1000 ns\n"));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    usleep(20 * 1000);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-enc:\t900000000000 ns\n"));
    write_client(dir, 200, 4,
                 AMD_CLIENT(2, 1024,
                            "drm-engine-gfx:\t2001000 ns\n"
                            "drm-engine-dec:\t1000 ns\n"));
    refresh(&gpu, WM_GPU_UTILIZATION | WM_GPU_PROCESSES);
    copy_answers(&gpu, &answers);
    assert_true(answers.fields[WM_GPU_UTILIZATION_ENCODER].number == 1);
    assert_true(answers.fields[WM_GPU_UTILIZATION_DECODER].number == 0);
    assert_true(answers.fields[WM_GPU_UTILIZATION_GPU].number == 0.37); /* the driver's */

    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_SM) == 1);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_ENCODER) == 1);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_DECODER) == 0);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_SM) > 0);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_SM) <= 0.1);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_ENCODER) == 0);
    close_gpu(&gpu);
}

/* Drivers of Intel: no encoder of its own, and with xe cycles instead of time. */
static void test_cycles(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[4]);
    write_client(dir, 100, 4, XE_CLIENT(1, 1000, 5000));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    usleep(12 * 1000);
    write_client(dir, 100, 4, XE_CLIENT(1, 1500, 6000));
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_true(answers.fields[WM_GPU_UTILIZATION_GPU].number == 0.25);

    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "C");
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_MEMORY) == 2 * 1024.0 * 1024);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_SM) == 0.25);
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_GPU_TIME).why,
                        "the driver counts cycles of the engines, not time");
    assert_int_equal(told(&gpu, 100, WM_GPU_PROCESS_ENCODER).state, WM_READING_UNSUPPORTED);
    close_gpu(&gpu);
}

/* In a container one sees some of the processes: the list is there, and says so. */
static void test_part_of_the_processes(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct wm_gpu_value list;
    struct gpu gpu;

    make_machine(dir, &machines[2]);
    test_write_file(dir, "proc/2/comm", "sh\n");
    write_client(dir, 100, 4,
                 "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n"
                 "drm-engine-render:\t5 ns\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(answers.fields[WM_GPU_UTILIZATION_GPU].state, WM_READING_DENIED);
    assert_int_equal(count_processes(&gpu, &list), 1);
    assert_int_equal(list.state, WM_READING_DENIED);
    assert_non_null(strstr(list.why, "does not show all processes"));
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "G");
    assert_int_equal(told(&gpu, 100, WM_GPU_PROCESS_MEMORY).state, WM_READING_UNSUPPORTED);
    close_gpu(&gpu);
}

/* A GPU that sleeps is asked for nothing that wakes it. */
static void test_asleep(void **state)
{
    static const enum wm_gpu_field kept[] = {
        WM_GPU_NAME,       WM_GPU_UUID,         WM_GPU_SERIAL,      WM_GPU_BIOS,
        WM_GPU_VENDOR,     WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE,
        WM_GPU_PCI_BUS_ID, WM_GPU_ECC_MODE,
    };
    static const enum wm_gpu_field stale[] = {
        WM_GPU_UTILIZATION_GPU,
        WM_GPU_UTILIZATION_MEMORY,
        WM_GPU_FAN,
        WM_GPU_FAN_SPEED,
        WM_GPU_TEMPERATURE,
        WM_GPU_TEMPERATURE_HOTSPOT,
        WM_GPU_PERFORMANCE,
        WM_GPU_PCI_LINK_GEN,
        WM_GPU_PCI_LINK_WIDTH,
        WM_GPU_PCI_REPLAYS,
        WM_GPU_CLOCK_GRAPHICS,
        WM_GPU_CLOCK_GRAPHICS_MAX,
        WM_GPU_THROTTLE,
        WM_GPU_POWER_DRAW,
        WM_GPU_POWER_INSTANT,
        WM_GPU_POWER_LIMIT,
        WM_GPU_ENERGY,
        WM_GPU_ECC_CORRECTED,
    };
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    test_write_file(dir, "sys/class/drm/card1/device/power/runtime_status", "suspended\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (answers.fields[kept[i]].state != WM_READING_OK)
            fail_msg("%s: %s", key(kept[i]), answers.fields[kept[i]].why);
    }
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        const struct answer *answer = &answers.fields[stale[i]];
        if (answer->state != WM_READING_STALE || !strstr(answer->why, "is asleep"))
            fail_msg("%s: state %d, '%s'", key(stale[i]), answer->state, answer->why);
    }
    /* What it never has, it does not have asleep either. */
    assert_int_equal(answers.fields[WM_GPU_CLOCK_SM].state, WM_READING_UNSUPPORTED);

    test_write_file(dir, "sys/class/drm/card1/device/power/runtime_status", "active\n");
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        if (answers.fields[stale[i]].state != WM_READING_OK)
            fail_msg("%s: %s", key(stale[i]), answers.fields[stale[i]].why);
    }
    close_gpu(&gpu);
}

/* What is not asked for stays as it was. */
static void test_groups(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_MEMORY);
    copy_answers(&gpu, &answers);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        bool asked = wm_gpu_field_info(field)->asked_with == WM_GPU_MEMORY;
        if (asked == (answers.fields[field].state == WM_READING_NONE))
            fail_msg("%s: state %d", key(field), answers.fields[field].state);
    }
    close_gpu(&gpu);
}

/* Cards come, go, and come back under their old number; one that is gone says so. */
static void test_changes(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    char from[300], to[300];
    struct wm_gpu_value list;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    open_gpu(dir, &gpu);
    assert_string_equal(wm_gpu_drm.detail(gpu.state), "card1: amdgpu at 0000:03:00.0");
    assert_false(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card1-DP-2/status", "connected\n");
    assert_false(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card2/dev", "226:2\n");
    assert_true(wm_gpu_drm.changed(gpu.state));

    snprintf(from, sizeof(from), "%s/sys/class/drm/card2", dir);
    snprintf(to, sizeof(to), "%s/sys/elsewhere", dir);
    assert_int_equal(rename(from, to), 0);
    assert_false(wm_gpu_drm.changed(gpu.state));

    refresh(&gpu, WM_GPU_EVERYTHING);
    snprintf(from, sizeof(from), "%s/sys/class/drm/card1", dir);
    snprintf(to, sizeof(to), "%s/sys/class/drm/gone", dir);
    assert_int_equal(rename(from, to), 0);
    assert_true(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card1/dev", "226:1\n");
    assert_true(wm_gpu_drm.changed(gpu.state));

    snprintf(to, sizeof(to), "%s/sys/class/drm/gone/device", dir);
    assert_int_equal(unlink(to), 0);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(answers.fields[WM_GPU_TEMPERATURE].state, WM_READING_FAILED);
    assert_string_equal(answers.fields[WM_GPU_TEMPERATURE].why, "card1 is gone");
    assert_string_equal(answers.fields[WM_GPU_NAME].text, "AMD GPU 1002:744c");
    assert_int_equal(count_processes(&gpu, &list), 0);
    assert_int_equal(list.state, WM_READING_FAILED);
    close_gpu(&gpu);
}

/* Machines without a GPU of ours, and trees of which nothing is right. */
static void test_nothing_there(void **state)
{
    static const struct {
        const char *name;
        struct file files[4];
        const char *why;
    } cases[] = {
        { "no folder", { { "proc/2/comm", "x", 0, { 0 }, NULL } }, "there is no" },
        { "no cards",
          { { "sys/class/drm/version", "drm 1.1.0\n", 0, { 0 }, NULL } },
          "which has no cards" },
        { "only connectors",
          { { "sys/class/drm/card0-DP-1/status", "x", 0, { 0 }, NULL },
            { "sys/class/drm/renderD128/dev", "x", 0, { 0 }, NULL },
            { "sys/class/drm/cardigan/dev", "x", 0, { 0 }, NULL } },
          "which has no cards" },
        { "a display",
          { { "sys/class/drm/card0/device/uevent", "DRIVER=ast\n", 0, { 0 }, NULL } },
          "card0: ast, only a display" },
        { "NVIDIA's",
          { { "sys/class/drm/card0/device/uevent", "DRIVER=nvidia\n", 0, { 0 }, NULL } },
          "left to NVML" },
        { "nobody knows it",
          { { "sys/class/drm/card0/device/uevent",
              "DRIVER=virtio_gpu\n",
              0,
              { 0 },
              NULL } },
          "card0: virtio_gpu, without counters" },
        { "no driver",
          { { "sys/class/drm/card0/device/uevent", "\1\2\3", 0, { 0 }, NULL } },
          "card0: no driver" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        struct gpu gpu;
        char dir[300];

        print_message("  %s\n", cases[i].name);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].files) && cases[i].files[k].path; k++)
            test_write_file(dir, cases[i].files[k].path, cases[i].files[k].text);
        assert_int_equal(try_open(dir, &gpu, &err), WM_ENODEV);
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s", err.text);
        close_gpu(&gpu);
    }
}

/* A driver nobody has heard of, but with counters that somebody uses. */
static void test_unknown_driver(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    test_write_file(dir, "sys/class/drm/card3/device/uevent", "DRIVER=novel\n");
    test_write_file(dir, "sys/class/drm/card3/device/drm/renderD130/dev", "226:130\n");
    test_write_file(dir, "proc/2/comm", "kthreadd\n");
    write_client(dir, 100, 4,
                 "drm-driver:\tnovel\ndrm-client-id:\t1\ndrm-engine-render:\t7 ns\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_string_equal(answers.fields[WM_GPU_NAME].text, "novel GPU");
    assert_string_equal(answers.fields[WM_GPU_KERNEL_DRIVER].text, "novel");
    assert_string_equal(answers.fields[WM_GPU_PCI_BUS].why, "this GPU is not on PCI");
    assert_string_equal(answers.fields[WM_GPU_PCI_LINK_GEN].why, "this GPU is not on PCI");
    assert_int_equal(answers.fields[WM_GPU_UTILIZATION_GPU].state, WM_READING_OK);
    assert_int_equal(find_process(&gpu, 100), 0);
    close_gpu(&gpu);
}

static void test_two_cards(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct machine second = machines[0];
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    second.card = "card2";
    second.device = "pci0000:00/0000:00:01.2/0000:09:00.0";
    second.files[0] = (struct file) {
        .path = "device/uevent",
        .text = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:09:00.0\n",
    };
    for (size_t i = 0; i < MOST_FILES && second.files[i].path; i++) {
        if (strstr(second.files[i].path, "../"))
            second.files[i].path = "device/extra";
    }
    make_machine(dir, &second);
    write_client(dir, 100, 4, AMD_CLIENT(1, 1024, "drm-engine-gfx:\t1000 ns\n"));
    write_client(dir, 200, 4,
                 "drm-driver:\tamdgpu\ndrm-client-id:\t1\n"
                 "drm-pdev:\t0000:09:00.0\ndrm-memory-vram:\t7 KiB\n");
    open_gpu(dir, &gpu);
    assert_int_equal(wm_gpu_drm.count(gpu.state), 2);
    refresh(&gpu, WM_GPU_EVERYTHING);
    assert_int_equal(find_process(&gpu, 100), 0);
    assert_int_equal(find_process(&gpu, 200), SIZE_MAX);
    gpu.index = 1;
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(find_process(&gpu, 100), SIZE_MAX);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_MEMORY) == 7 * 1024);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_GPU_TIME) == 0);
    /* They share a serial number, as dies of one package do. */
    assert_string_equal(answers.fields[WM_GPU_UUID].text, "0000:09:00.0");
    close_gpu(&gpu);
}

static void test_out_of_memory(void **state)
{
    const char *dir = *state;
    struct wm_error err;
    struct gpu gpu;
    int status;

    make_machine(dir, &machines[0]);
    for (long nth = 0;; nth++) {
        char sysfs[300], procfs[300];
        const struct wm_source_config config = { .sysfs = sysfs, .procfs = procfs };

        snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
        snprintf(procfs, sizeof(procfs), "%s/proc", dir);
        gpu = (struct gpu) { .state = calloc(1, wm_gpu_drm.state_size) };
        test_fail_allocation(nth);
        status = wm_gpu_drm.open(gpu.state, &config, &err);
        test_fail_allocation(-1);
        wm_gpu_drm.close(gpu.state);
        free(gpu.state);
        if (status == WM_OK)
            break;
        assert_true(status == WM_ENOMEM || status == WM_ENODEV);
        assert_true(nth < 100);
    }
}

int main(void)
{
#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(test_##name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(machines),       TEST(reasons),
        TEST(values),         TEST(broken_files),
        TEST(processes),      TEST(shares),
        TEST(cycles),         TEST(part_of_the_processes),
        TEST(asleep),         TEST(groups),
        TEST(changes),        TEST(nothing_there),
        TEST(unknown_driver), TEST(two_cards),
        TEST(out_of_memory),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
