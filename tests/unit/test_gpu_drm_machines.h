/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_drm_machines.h - machines with GPUs of AMD and Intel, as small trees that
 * stand for /sys and /proc, and how one of their GPUs is asked. */
#ifndef WM_TEST_GPU_DRM_MACHINES_H
#define WM_TEST_GPU_DRM_MACHINES_H

#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/gpu/source_gpu_ops.h"
#include "source/gpu/source_gpu_sheet.h"

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
            { WM_GPU_THROTTLE, WM_GPU_THROTTLE_POWER | WM_GPU_THROTTLE_HEAT,
              "ppt0, temp_hotspot" },
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
              { WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_FREE, WM_GPU_MEMORY_SHARED_TOTAL },
              "536870912" },
            { "device/mem_info_gtt_used",
              "2147483648\n",
              0,
              { WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE, WM_GPU_MEMORY_SHARED_USED },
              "402653184" },
            { "device/gpu_busy_percent", "23\n", 0, { WM_GPU_UTILIZATION_GPU }, "0" },
            { "device/gpu_metrics",
              metrics_apu,
              sizeof(metrics_apu),
              { WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE,
                WM_GPU_THROTTLE, WM_GPU_POWER_SCOPE, WM_GPU_ENERGY },
              "536870912" },
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
            { WM_GPU_MEMORY_TOTAL, 536870912.0 + 16106127360.0, NULL },
            { WM_GPU_MEMORY_USED, 402653184.0 + 2147483648.0, NULL },
            { WM_GPU_MEMORY_FREE, 14092861440, NULL },
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
              { WM_GPU_NAME, WM_GPU_VENDOR, WM_GPU_PCI_DEVICE_ID, WM_GPU_PCI_LINK_GEN },
              "i915 GPU" },
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
            { WM_GPU_THROTTLE, WM_GPU_THROTTLE_POWER | WM_GPU_THROTTLE_HEAT,
              "pl1, thermal" },
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
            { HW "power1_max",
              "0\n",
              0,
              { WM_GPU_POWER_LIMIT, WM_GPU_POWER_MANAGEMENT },
              "250" },
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
static inline void place(const struct machine *machine, const struct file *file, char *path,
                         size_t size)
{
    if (strncmp(file->path, "/proc/", 6) == 0)
        snprintf(path, size, "%s", file->path + 1);
    else if (file->path[0] == '/')
        snprintf(path, size, "sys%s", file->path);
    else
        snprintf(path, size, "sys/class/drm/%s/%s", machine->card, file->path);
}

static inline void write_bytes(const char *dir, const char *path, const char *bytes,
                               size_t size)
{
    char full[1024];

    test_write_file(dir, path, "");
    snprintf(full, sizeof(full), "%s/%s", dir, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_file(const char *dir, const struct machine *machine,
                              const struct file *file)
{
    char path[256];

    place(machine, file, path, sizeof(path));
    write_bytes(dir, path, file->text, file->size ? file->size : strlen(file->text));
}

/* Builds the machine in the scratch folder: as on a real one the card's "device"
 * is a link, and the cards behind it have two bridges of their maker above them. */
static inline void make_machine(const char *dir, const struct machine *machine)
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

static inline int try_open(const char *dir, struct gpu *gpu, struct wm_error *err)
{
    char sysfs[320], procfs[320];
    const struct wm_source_config config = { .sysfs = sysfs, .procfs = procfs };

    snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
    snprintf(procfs, sizeof(procfs), "%s/proc", dir);
    *gpu = (struct gpu) { .state = calloc(1, wm_gpu_drm.state_size) };
    assert_non_null(gpu->state);
    return wm_gpu_drm.open(gpu->state, &config, err);
}

static inline void open_gpu(const char *dir, struct gpu *gpu)
{
    struct wm_error err = { 0 };

    if (try_open(dir, gpu, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(wm_gpu_sheet_new("drm", &gpu->sheet, &err), WM_OK);
}

static inline void close_gpu(struct gpu *gpu)
{
    wm_gpu_sheet_free(gpu->sheet);
    wm_gpu_drm.close(gpu->state);
    free(gpu->state);
}

static inline void refresh(struct gpu *gpu, unsigned groups)
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

static inline void copy_answers(const struct gpu *gpu, struct answers *ret_answers)
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

static inline const char *key(enum wm_gpu_field field)
{
    return wm_gpu_field_info(field)->key;
}

static inline bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

#endif
