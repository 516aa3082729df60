/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_hwmon_power.c - sensors of power and energy, in small trees that stand
 * for the /sys of machines whose drivers are known, and in broken ones. */
#include "test.h"
#include "test_sensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/hwmon/source_hwmon.h"

enum { MAX_FILES = 32, MAX_CHANNELS = 12 };

struct file {
    const char *path, *text; /* below class/hwmon; a text of "-> x" is a link to x */
};

struct expected {
    const char *device, *label, *metric;
    enum wm_device_kind kind;
    double value;
    int64_t period_ns;
};

static void make_link(const char *dir, const char *path, const char *target)
{
    char full[256];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    assert_int_equal(symlink(target, full), 0);
}

static void make_tree(const char *dir, const struct file *files)
{
    for (size_t i = 0; i < MAX_FILES && files[i].path; i++) {
        char path[128];
        snprintf(path, sizeof(path), "class/hwmon/%s", files[i].path);
        if (strncmp(files[i].text, "-> ", 3) == 0)
            make_link(dir, path, files[i].text + 3);
        else
            test_write_file(dir, path, files[i].text);
    }
}

static struct wm_source *open_hwmon(const char *sysfs)
{
    const struct wm_source_config config = { .sysfs = sysfs };
    struct wm_source *source = NULL;
    struct wm_error err;

    if (wm_source_open("hwmon", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

/* Only what is of the platform contains other devices; a module's meter has no more. */
static void check_contains(const struct wm_channel *channel)
{
    bool is_module = strncmp(channel->label, "module", 6) == 0;

    if (channel->device_kind == WM_DEVICE_PLATFORM)
        assert_int_equal(channel->sensor.contains,
                         is_module ? WM_CONTAINS_MODULE : WM_CONTAINS_PLATFORM);
    else
        assert_true(channel->sensor.contains < WM_CONTAINS_MODULE);
}

/* Whether the source says of the sensor that it reports the power of a moment: "samples
 * (soc cpu)". */
static bool has_label(const char *detail, const char *label)
{
    const char *list = strstr(detail, "samples (");
    size_t length = strlen(label);

    for (list = list ? list + strlen("samples (") : ""; *list;) {
        size_t word = strcspn(list, " )");
        if (word == length && strncmp(list, label, length) == 0)
            return true;
        list += word + (list[word] == ' ');
        if (*list == ')')
            break;
    }
    return false;
}

static void check(const char *sysfs, const struct expected *expected)
{
    struct wm_reading readings[MAX_CHANNELS];
    struct wm_source *source = open_hwmon(sysfs);
    size_t count = wm_source_channel_count(source);

    assert_in_range(count, 1, MAX_CHANNELS);
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    for (size_t i = 0; i < count; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        bool energy = strcmp(channel->metric, "energy") == 0;

        print_message("    %s\n", channel->device);
        assert_non_null(expected[i].device);
        assert_string_equal(channel->device, expected[i].device);
        assert_string_equal(channel->label, expected[i].label);
        assert_string_equal(channel->metric, expected[i].metric);
        if (strcmp(channel->metric, "temperature") != 0)
            assert_string_equal(channel->unit, energy ? "J" : "W");
        assert_int_equal(channel->kind, energy ? WM_COUNTER : WM_GAUGE);
        assert_int_equal(channel->device_kind, expected[i].kind);
        check_contains(channel);
        assert_int_equal(channel->origin, WM_MEASURED);
        assert_int_equal(channel->period_ns, expected[i].period_ns);
        assert_described(channel);
        assert_int_equal(channel->sensor.is_sample,
                         !energy && has_label(wm_source_detail(source), channel->label));
        assert_int_equal(readings[i].state, WM_READING_OK);
        assert_true(fabs(readings[i].value - expected[i].value) < 1e-9);
        assert_null(wm_source_why(source, i));
    }
    assert_null(expected[count].device);
    wm_source_close(source);
}

#define MS INT64_C(1000000)

static void test_machines(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
        struct expected channels[MAX_CHANNELS];
    } cases[] = {
        { "two EPYCs with amd_energy",
          { { "hwmon3/name", "amd_energy\n" },
            { "hwmon3/device", "-> ../../../platform/amd_energy.0" },
            { "hwmon3/energy1_label", "Ecore000\n" },
            { "hwmon3/energy1_input", "1500000\n" },
            { "hwmon3/energy2_label", "Ecore001\n" },
            { "hwmon3/energy2_input", "2500000\n" },
            { "hwmon3/energy3_label", "Esocket0\n" },
            { "hwmon3/energy3_input", "70000000001\n" },
            { "hwmon3/energy4_label", "Esocket1\n" },
            { "hwmon3/energy4_input", "0\n" } },
          { { "amd_energy.0/Ecore000", "core000", "energy", WM_DEVICE_CPU_PART, 1.5, MS },
            { "amd_energy.0/Ecore001", "core001", "energy", WM_DEVICE_CPU_PART, 2.5, MS },
            { "amd_energy.0/Esocket0", "socket0", "energy", WM_DEVICE_CPU, 70000.000001,
              MS },
            { "amd_energy.0/Esocket1", "socket1", "energy", WM_DEVICE_CPU, 0, MS } } },
        { "a server with an ACPI meter, and its CPU's temperature",
          { { "hwmon0/name", "coretemp\n" },
            { "hwmon0/temp1_label", "Package id 0\n" },
            { "hwmon0/temp1_input", "47000\n" },
            { "hwmon1/name", "power_meter\n" },
            { "hwmon1/device", "-> ../../../LNXSYSTM:00/ACPI000D:00" },
            { "hwmon1/power1_average", "312000000\n" },
            { "hwmon1/power1_average_interval", "1000\n" },
            { "hwmon1/power1_cap", "500000000\n" },
            { "hwmon1/power1_accuracy", "90.0%\n" } },
          { { "coretemp/Package id 0", "cpu_package0", "temperature", WM_DEVICE_CPU, 47,
              1000 * MS },
            { "ACPI000D:00/power1", "power_meter", "power", WM_DEVICE_PLATFORM, 312,
              1000 * MS } } },
        { "the same with an old kernel: the files are the device's",
          { { "hwmon1/device/name", "power_meter\n" },
            { "hwmon1/device/power1_average", "312000000\n" },
            { "hwmon1/device/power1_oem_info", "Intel(R) Node Manager\n" } },
          { { "power_meter/Intel(R) Node Manager", "power_meter", "power",
              WM_DEVICE_PLATFORM, 312, 0 } } },
        { "Grace Hopper",
          { { "hwmon1/name", "power_meter\n" },
            { "hwmon1/device/power1_average", "402000000\n" },
            { "hwmon1/device/power1_average_interval", "50\n" },
            { "hwmon1/device/power1_oem_info", "Module Power Socket 0\n" },
            { "hwmon2/name", "power_meter\n" },
            { "hwmon2/device/power1_average", "150000000\n" },
            { "hwmon2/device/power1_average_interval", "50\n" },
            { "hwmon2/device/power1_oem_info", "Grace Power Socket 0\n" },
            { "hwmon3/name", "power_meter\n" },
            { "hwmon3/device/power1_average", "85500000\n" },
            { "hwmon3/device/power1_average_interval", "50\n" },
            { "hwmon3/device/power1_oem_info", "CPU Power Socket 0\n" },
            { "hwmon4/name", "power_meter\n" },
            { "hwmon4/device/power1_average", "9500000\n" },
            { "hwmon4/device/power1_average_interval", "1000\n" },
            { "hwmon4/device/power1_oem_info", "SysIO Power Socket 0\n" } },
          { { "power_meter/CPU Power Socket 0", "socket0_core", "power", WM_DEVICE_CPU_PART,
              85.5, 50 * MS },
            { "power_meter/Grace Power Socket 0", "socket0", "power", WM_DEVICE_CPU, 150,
              50 * MS },
            { "power_meter/Module Power Socket 0", "module0", "power", WM_DEVICE_PLATFORM,
              402, 50 * MS },
            { "power_meter/SysIO Power Socket 0", "socket0_sysio", "power",
              WM_DEVICE_CPU_PART, 9.5, 1000 * MS } } },
        { "Apple: the system, what comes in, and a rail of it",
          { { "hwmon0/name", "macsmc_hwmon\n" },
            { "hwmon0/power1_label", "Total System Power\n" },
            { "hwmon0/power1_input", "14500000\n" },
            { "hwmon0/power2_label", "AC Input Power\n" },
            { "hwmon0/power2_input", "15200000\n" } },
          { { "macsmc_hwmon/AC Input Power", "macsmc_hwmon_ac_input_power", "power",
              WM_DEVICE_OTHER, 15.2, 0 },
            { "macsmc_hwmon/Total System Power", "system", "power", WM_DEVICE_PLATFORM,
              14.5, 0 } } },
        { "AMD's HSMP: two sockets",
          { { "hwmon0/name", "amd_hsmp_hwmon\n" },
            { "hwmon0/device", "-> ../../../platform/AMDI0097:00" },
            { "hwmon0/power1_input", "180000000\n" },
            { "hwmon1/name", "amd_hsmp_hwmon\n" },
            { "hwmon1/device", "-> ../../../platform/AMDI0097:01" },
            { "hwmon1/power1_input", "170000000\n" } },
          { { "AMDI0097:00/power1", "socket0", "power", WM_DEVICE_CPU, 180, 0 },
            { "AMDI0097:01/power1", "socket1", "power", WM_DEVICE_CPU, 170, 0 } } },
        { "Jetson Orin NX: current times voltage",
          { { "hwmon2/name", "ina3221\n" },
            { "hwmon2/device", "-> ../../../i2c-1/1-0040" },
            { "hwmon2/update_interval", "12\n" },
            { "hwmon2/in1_label", "VDD_IN\n" },
            { "hwmon2/in1_input", "5000\n" },
            { "hwmon2/curr1_input", "1200\n" },
            { "hwmon2/in2_label", "VDD_CPU_GPU_CV\n" },
            { "hwmon2/in2_input", "4992\n" },
            { "hwmon2/curr2_input", "250\n" },
            { "hwmon2/in3_label", "VDD_SOC\n" },
            { "hwmon2/in3_input", "4992\n" },
            { "hwmon2/curr3_input", "0\n" },
            { "hwmon2/in4_input", "40\n" },
            { "hwmon2/curr4_input", "1450\n" },
            { "hwmon2/in7_label", "sum of shunt voltages\n" },
            { "hwmon2/in7_input", "80\n" } },
          { { "1-0040/VDD_CPU_GPU_CV", "ina3221_vdd_cpu_gpu_cv", "power", WM_DEVICE_OTHER,
              1.248, 12 * MS },
            { "1-0040/VDD_IN", "ina3221_vdd_in", "power", WM_DEVICE_PLATFORM, 6, 12 * MS },
            { "1-0040/VDD_SOC", "ina3221_vdd_soc", "power", WM_DEVICE_OTHER, 0,
              12 * MS } } },
        { "Jetson TX2: two chips, rails of the CPU and of the memory alone",
          { { "hwmon2/name", "ina3221\n" },
            { "hwmon2/in1_label", "VDD_SYS_CPU\n" },
            { "hwmon2/in1_input", "19000\n" },
            { "hwmon2/curr1_input", "100\n" },
            { "hwmon3/name", "ina3221\n" },
            { "hwmon3/in1_label", "VDD_SYS_DDR\n" },
            { "hwmon3/in1_input", "19000\n" },
            { "hwmon3/curr1_input", "50\n" } },
          { { "ina3221/VDD_SYS_CPU", "ina3221_vdd_sys_cpu", "power", WM_DEVICE_CPU, 1.9,
              0 },
            { "ina3221/VDD_SYS_DDR", "ina3221_vdd_sys_ddr", "power", WM_DEVICE_DRAM, 0.95,
              0 } } },
        { "two sockets of X-Gene, which have the same labels",
          { { "hwmon10/name", "apm_xgene\n" },
            { "hwmon10/power1_label", "CPU power\n" },
            { "hwmon10/power1_input", "28080000\n" },
            { "hwmon9/name", "apm_xgene\n" },
            { "hwmon9/power1_label", "CPU power\n" },
            { "hwmon9/power1_input", "14760000\n" },
            { "hwmon9/power2_label", "IO power\n" },
            { "hwmon9/power2_input", "31070000\n" } },
          { { "apm_xgene/CPU power", "socket0", "power", WM_DEVICE_CPU, 14.76, 0 },
            { "apm_xgene/CPU power.1", "socket1", "power", WM_DEVICE_CPU, 28.08, 0 },
            { "apm_xgene/IO power", "io0", "power", WM_DEVICE_OTHER, 31.07, 0 } } },
        { "an old AMD CPU: the average rather than the moment",
          { { "hwmon0/name", "fam15h_power\n" },
            { "hwmon0/device", "-> ../../../pci0000:00/0000:00:18.4" },
            { "hwmon0/power1_input", "40000000\n" },
            { "hwmon0/power1_average", "35000000\n" },
            { "hwmon0/power1_average_interval", "10\n" },
            { "hwmon0/power1_crit", "95000000\n" } },
          { { "0000:00:18.4/power1", "socket0", "power", WM_DEVICE_CPU, 35, 10 * MS } } },
        { "a desktop's power supply",
          { { "hwmon4/name", "corsairpsu\n" },
            { "hwmon4/power1_label", "power total\n" },
            { "hwmon4/power1_input", "98000000\n" },
            { "hwmon4/power2_label", "power +12v\n" },
            { "hwmon4/power2_input", "72000000\n" },
            { "hwmon4/curr2_input", "6000\n" },
            { "hwmon4/in2_input", "12000\n" } },
          { { "corsairpsu/power +12v", "corsairpsu_power_12v", "power", WM_DEVICE_OTHER, 72,
              0 },
            { "corsairpsu/power total", "corsairpsu_power_total", "power",
              WM_DEVICE_PLATFORM, 98, 0 } } },
        { "SCMI firmware, of which nothing is known",
          { { "hwmon0/name", "scmi_sensors\n" },
            { "hwmon0/power1_label", "big\n" },
            { "hwmon0/power1_input", "800000\n" },
            { "hwmon0/energy1_label", "big\n" },
            { "hwmon0/energy1_input", "12000000\n" } },
          { { "scmi_sensors/big", "scmi_sensors_big", "power", WM_DEVICE_OTHER, 0.8, 0 },
            { "scmi_sensors/big.1", "scmi_sensors_big_2", "energy", WM_DEVICE_OTHER, 12,
              0 } } },
        { "a chip with a label of its own",
          { { "hwmon0/name", "ina226\n" },
            { "hwmon0/label", "vdd_core\n" },
            { "hwmon0/power1_input", "800000\n" } },
          { { "ina226/vdd_core power1", "ina226_vdd_core_power1", "power", WM_DEVICE_OTHER,
              0.8, 0 } } },
        { "labels that are hostile",
          { { "hwmon0/name", "x\n" },
            { "hwmon0/power1_label", "\xff\"',;\t@#%s\n" },
            { "hwmon0/power1_input", "1000000\n" },
            { "hwmon1/name", "\xc3\xa9\n" },
            { "hwmon1/power1_label", "\xc3\xa9\n" },
            { "hwmon1/power1_input", "2000000\n" },
            { "hwmon2/name",
              "a_name_that_is_longer_than_what_there_is_room_for_in_a_label\n" },
            { "hwmon2/power1_input", "3000000\n" },
            { "hwmon2/power2_input", "4000000\n" },
            { "hwmon3/name", "power_meter\n" },
            { "hwmon3/power1_oem_info", "CPU Power Socket 00000\n" },
            { "hwmon3/power1_input", "5000000\n" } },
          { { "a_name_that_is_longer_than_what/power1", "a_name_that_is_longer_than_what",
              "power", WM_DEVICE_OTHER, 3, 0 },
            { "a_name_that_is_longer_than_what/power2", "a_name_that_is_longer_than_2",
              "power", WM_DEVICE_OTHER, 4, 0 },
            { "power_meter/CPU Power Socket 00000", "power_meter", "power",
              WM_DEVICE_PLATFORM, 5, 0 },
            { "x/\xef\xbf\xbd\"',;\t@#%s", "x_s", "power", WM_DEVICE_OTHER, 1, 0 },
            { "\xc3\xa9/\xc3\xa9", "sensor", "power", WM_DEVICE_OTHER, 2, 0 } } },
        { "periods that are none",
          { { "hwmon0/name", "power_meter\n" },
            { "hwmon0/power1_average", "1000000\n" },
            { "hwmon0/power1_average_interval", "-5\n" },
            { "hwmon0/power2_average", "1000000\n" },
            { "hwmon0/power2_average_interval", "99999999999999999999\n" },
            { "hwmon0/power3_average", "1000000\n" },
            { "hwmon0/power3_average_interval", "3600001\n" },
            { "hwmon0/power4_average", "1000000\n" },
            { "hwmon0/power4_average_interval", "50 ms\n" } },
          { { "power_meter/power1", "power_meter", "power", WM_DEVICE_PLATFORM, 1, 0 },
            { "power_meter/power2", "power_meter_2", "power", WM_DEVICE_PLATFORM, 1, 0 },
            { "power_meter/power3", "power_meter_3", "power", WM_DEVICE_PLATFORM, 1, 0 },
            { "power_meter/power4", "power_meter_4", "power", WM_DEVICE_PLATFORM, 1,
              0 } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        check(*state, cases[i].channels);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* Which sensors tell the power of a moment, and not a mean, is for those to know who make
 * joules of it. */
static void test_samples(void **state)
{
    static const struct {
        struct file files[MAX_FILES];
        const char *said; /* NULL: nothing */
    } cases[] = {
        { { { "hwmon0/name", "ina226\n" }, { "hwmon0/power1_input", "800000\n" } },
          "; samples (ina226_power1)" },
        { { { "hwmon0/name", "ina3221\n" },
            { "hwmon0/in1_label", "VDD_IN\n" },
            { "hwmon0/in1_input", "5000\n" },
            { "hwmon0/curr1_input", "1000\n" },
            { "hwmon0/in2_label", "CPU\n" },
            { "hwmon0/in2_input", "5000\n" },
            { "hwmon0/curr2_input", "1000\n" } },
          "; samples (ina3221_cpu ina3221_vdd_in)" },
        { { { "hwmon1/name", "power_meter\n" },
            { "hwmon1/power1_average", "312000000\n" } },
          NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(test_make_dir(state), 0);
        make_tree(*state, cases[i].files);
        struct wm_source *source = open_hwmon(*state);
        const char *said = strstr(wm_source_detail(source), "; samples");
        if (!cases[i].said)
            assert_null(said);
        else if (!said || strcmp(said, cases[i].said) != 0)
            fail_msg("'%s'", wm_source_detail(source));
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* What is not ours, or no sensor. */
static void test_none(void **state)
{
    static const struct {
        const char *what;
        struct file files[MAX_FILES];
    } cases[] = {
        { "GPUs",
          { { "hwmon0/name", "amdgpu\n" },
            { "hwmon0/power1_average", "30000000\n" },
            { "hwmon1/name", "i915\n" },
            { "hwmon1/energy1_input", "30000000\n" },
            { "hwmon2/name", "xe\n" },
            { "hwmon2/energy1_input", "30000000\n" },
            { "hwmon3/name", "nouveau\n" },
            { "hwmon3/power1_input", "30000000\n" },
            { "hwmon4/name", "radeon\n" },
            { "hwmon4/power1_input", "30000000\n" } } },
        { "a laptop's battery",
          { { "hwmon0/name", "BAT0\n" },
            { "hwmon0/device/subsystem", "" },
            { "hwmon0/power1_input", "9000000\n" } } },
        { "files that only look like sensors",
          { { "hwmon0/name", "x\n" },
            { "hwmon0/power_input", "1000\n" },
            { "hwmon0/power1_inputs", "1000\n" },
            { "hwmon0/power1_average_max", "1000\n" },
            { "hwmon0/power-1_input", "1000\n" },
            { "hwmon0/powerx_input", "1000\n" },
            { "hwmon0/energy1_average", "1000\n" },
            { "hwmon0/power99999999999999999999_input", "1000\n" } } },
        { "current and voltage of who knows what",
          { { "hwmon0/name", "nct6775\n" },
            { "hwmon0/curr1_input", "1000\n" },
            { "hwmon0/in1_input", "1000\n" } } },
        { "currents without voltages",
          { { "hwmon0/name", "ina3221\n" },
            { "hwmon0/curr0_input", "1000\n" },
            { "hwmon0/in0_input", "1000\n" },
            { "hwmon0/curr1_input", "1000\n" },
            { "hwmon0/in2_input", "1000\n" } } },
        { "no name", { { "hwmon0/power1_input", "1000\n" } } },
        { "an empty name", { { "hwmon0/name", "\n" }, { "hwmon0/power1_input", "1\n" } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err;
        char path[256];

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        const struct wm_source_config config = { .sysfs = *state };
        make_tree(*state, cases[i].files);
        snprintf(path, sizeof(path), "%s/class/hwmon/hwmon0/device/subsystem",
                 (char *)*state);
        if (unlink(path) == 0)
            assert_int_equal(symlink("../../../../class/power_supply", path), 0);
        assert_int_equal(wm_source_open("hwmon", &config, &source, &err), WM_ENODEV);
        assert_non_null(strstr(err.text, "none of power"));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* A sensor of each sort; what the first file says goes wrong in all ways, and what
 * that does to one must not touch the others. */
static void test_values(void **state)
{
    static const struct {
        const char *file, *text;
        size_t channel;
        enum wm_reading_state state;
        double value;
        const char *why;
    } steps[] = {
        { "energy1_input", "9223372036854775807\n", 0, WM_READING_OK, 9223372036854.775807,
          NULL },
        { "energy1_input", "0\n", 0, WM_READING_OK, 0, NULL },
        { "energy1_input", "-1\n", 0, WM_READING_FAILED, 0, "-1 microjoules is no total" },
        { "energy1_input", "", 0, WM_READING_FAILED, 0, "'' is not an energy" },
        { "energy1_input", "18446744073709551616\n", 0, WM_READING_FAILED, 0,
          "'18446744073709551616' is not an energy" },
        { "energy1_input", "1.5e6\n", 0, WM_READING_FAILED, 0, "'1.5e6' is not an energy" },
        { "energy1_input", "7000000\n", 0, WM_READING_OK, 7, NULL },
        { "power1_input", "100000000000\n", 1, WM_READING_OK, 100e3, NULL },
        { "power1_input", "100000000001\n", 1, WM_READING_FAILED, 0, "W is not what" },
        { "power1_input", "4294967295000\n", 1, WM_READING_FAILED, 0, "W is not what" },
        { "power1_input", "-1000000\n", 1, WM_READING_FAILED, 0, "-1 W is not what" },
        { "power1_input", "inf\n", 1, WM_READING_FAILED, 0, "'inf' is not a power" },
        { "power1_input", "12 W\n", 1, WM_READING_FAILED, 0, "'12 W' is not a power" },
        { "power1_input", "\xff\x01", 1, WM_READING_FAILED, 0, "is not a power" },
        { "power1_input", "2500000\n", 1, WM_READING_OK, 2.5, NULL },
        { "curr2_input", "-200\n", 2, WM_READING_FAILED, 0, "-1 W is not what" },
        { "curr2_input", "N/A\n", 2, WM_READING_FAILED, 0, "'N/A' is not a current" },
        { "curr2_input", "9223372036854775807\n", 2, WM_READING_FAILED, 0,
          "W is not what" },
        { "curr2_input", "200\n", 2, WM_READING_OK, 1, NULL },
        { "in2_input", "\n", 2, WM_READING_FAILED, 0, "'' is not a current or voltage" },
        { "in2_input", "12000\n", 2, WM_READING_OK, 2.4, NULL },
    };
    const char *dir = *state;
    struct wm_reading readings[3];

    make_tree(dir, (const struct file[MAX_FILES]) {
                       { "hwmon0/name", "ina3221\n" },
                       { "hwmon0/energy1_input", "7000000\n" },
                       { "hwmon0/power1_input", "2500000\n" },
                       { "hwmon0/curr2_input", "200\n" },
                       { "hwmon0/in2_label", "rail\n" },
                       { "hwmon0/in2_input", "5000\n" },
                   });
    struct wm_source *source = open_hwmon(dir);
    assert_int_equal(wm_source_channel_count(source), 3);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        char path[64];

        print_message("  %s: %s\n", steps[i].file, steps[i].why ? steps[i].why : "ok");
        snprintf(path, sizeof(path), "class/hwmon/hwmon0/%s", steps[i].file);
        test_write_file(dir, path, steps[i].text);
        test_fail_allocation(-1);
        assert_int_equal(wm_source_read(source, readings, 3, NULL), WM_OK);
        assert_int_equal(test_fail_allocation(-1), 0);
        for (size_t c = 0; c < 3; c++) {
            bool is_good = c != steps[i].channel || steps[i].state == WM_READING_OK;
            assert_int_equal(readings[c].state,
                             is_good ? WM_READING_OK : WM_READING_FAILED);
            assert_int_equal(wm_source_why(source, c) == NULL, is_good);
        }
        if (steps[i].why)
            assert_non_null(strstr(wm_source_why(source, steps[i].channel), steps[i].why));
        else
            assert_true(fabs(readings[steps[i].channel].value - steps[i].value) < 1e-3);
    }
    wm_source_close(source);
}

/* amd_energy lets only root read; the other half of a rail may go too. */
static void test_denied(void **state)
{
    const char *dir = *state;
    struct wm_reading reading;
    char path[256];

    make_tree(dir, (const struct file[MAX_FILES]) {
                       { "hwmon0/name", "amd_energy\n" },
                       { "hwmon0/energy1_label", "Esocket0\n" },
                       { "hwmon0/energy1_input", "7000000\n" },
                   });
    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    snprintf(path, sizeof(path), "%s/class/hwmon/hwmon0/energy1_input", dir);
    assert_int_equal(chmod(path, 0), 0);
    struct wm_source *source = open_hwmon(dir);
    assert_int_equal(wm_source_read(source, &reading, 1, NULL), WM_OK);
    assert_int_equal(reading.state, WM_READING_DENIED);
    assert_non_null(strstr(wm_source_why(source, 0), "energy1_input: Permission denied"));
    wm_source_close(source);
}

/* More sensors than anybody has: what there is room for, each with a label of its
 * own. */
static void test_many(void **state)
{
    enum { COUNT = 600, ROOM = 512 };
    static struct wm_reading readings[ROOM];
    const char *dir = *state;

    test_write_file(dir, "class/hwmon/hwmon0/name", "x\n");
    for (unsigned i = 0; i < COUNT; i++) {
        char path[64];
        snprintf(path, sizeof(path), "class/hwmon/hwmon0/power%u_label", i);
        test_write_file(dir, path, "the same label\n");
        snprintf(path, sizeof(path), "class/hwmon/hwmon0/power%u_input", i);
        test_write_file(dir, path, "1000000\n");
    }
    struct wm_source *source = open_hwmon(dir);
    assert_int_equal(wm_source_channel_count(source), ROOM);
    assert_int_equal(wm_source_read(source, readings, ROOM, NULL), WM_OK);
    for (size_t i = 0; i < ROOM; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        assert_int_equal(readings[i].state, WM_READING_OK);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(channel->label, wm_source_channel(source, j)->label);
            assert_string_not_equal(channel->device, wm_source_channel(source, j)->device);
        }
    }
    wm_source_close(source);
}

/* How long a sensor is left alone, by how long each of its readings took. */
static void test_rest(void **state)
{
    static const struct {
        int64_t took_us, rest_us; /* the rest counts from the end; 0: none */
    } steps[] = {
        { 5, 0 },    { 3000, 0 }, { 3000, 0 },     { 190, 0 },
        { 3000, 0 }, { 3000, 0 }, { 3000, 60000 }, { 1000, 20000 },
        { 100, 0 },  { 201, 0 },  { 201, 0 },      { 201, 4020 },
    };
    struct wm_hwmon_sensor sensor = { .slow = 0 };
    int64_t now_ns = 1000 * MS;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int64_t end_ns = now_ns + steps[i].took_us * 1000;

        wm_hwmon_rest(&sensor, now_ns, end_ns);
        print_message("  %d us\n", (int)steps[i].took_us);
        if (steps[i].rest_us == 0)
            assert_true(sensor.rest_ns <= now_ns);
        else
            assert_int_equal(sensor.rest_ns, end_ns + steps[i].rest_us * 1000);
        now_ns = end_ns > sensor.rest_ns ? end_ns : sensor.rest_ns;
    }
}

/* While it is left alone, what it said last stands, with its time. */
static void test_resting(void **state)
{
    struct wm_hwmon_sensor sensor = {
        .quantity = WM_HWMON_POWER,
        .fd = -1,
        .last = { .when_ns = 7, .value = 3, .state = WM_READING_OK },
        .rest_ns = INT64_MAX,
    };
    struct wm_reading reading;
    (void)state;

    wm_hwmon_read(&sensor, &reading);
    assert_int_equal(reading.state, WM_READING_OK);
    assert_int_equal(reading.when_ns, 7);
    assert_true(reading.value == 3);
    assert_false(sensor.failed);

    sensor.rest_ns = wm_clock_monotonic_ns() - 1;
    wm_hwmon_read(&sensor, &reading);
    assert_int_not_equal(reading.state, WM_READING_OK);
    assert_true(sensor.failed);
}

static void test_allocation_failures(void **state)
{
    const struct wm_source_config config = { .sysfs = *state };
    struct wm_source *source = NULL;
    long step;

    make_tree(*state, (const struct file[MAX_FILES]) {
                          { "hwmon0/name", "k10temp\n" },
                          { "hwmon0/temp1_input", "31000\n" },
                          { "hwmon1/name", "x\n" },
                          { "hwmon1/power1_input", "1\n" },
                          { "hwmon1/power2_input", "1\n" },
                      });
    for (step = 0; step < 50; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_source_open("hwmon", &config, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_null(source);
    }
    assert_in_range(step, 3, 49);
    assert_int_equal(wm_source_channel_count(source), 3);
    wm_source_close(source);
}

UNIT(source_hwmon_power)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_none),
        IN_SCRATCH(test_values),
        IN_SCRATCH(test_denied),
        IN_SCRATCH(test_many),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_resting),
        IN_SCRATCH(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
