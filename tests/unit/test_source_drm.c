/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_drm.c - AMD and Intel GPUs from small trees that stand for /sys and
 * /proc: those of whole machines under tests/data, and broken ones made here. */
#include "test.h"
#include "test_sensor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/source_ops.h"
#include "wattmeter/source.h"

enum { METRICS = 7, MOST_CHANNELS = 64 * METRICS };

static struct wm_reading readings[MOST_CHANNELS];

static struct wm_source *open_trees(const char *sysfs, const char *procfs, const char *gpus)
{
    const struct wm_source_config config = { .sysfs = sysfs,
                                             .procfs = procfs,
                                             .gpus = gpus };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };

    if (wm_source_open("drm", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    assert_in_range(wm_source_channel_count(source), 1, MOST_CHANNELS);
    return source;
}

static void read_all(struct wm_source *source)
{
    size_t count = wm_source_channel_count(source);

    memset(readings, 0xff, sizeof(readings));
    assert_int_equal(wm_source_read(source, readings, count, NULL), WM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(readings[i].when_ns > 0);
        assert_int_equal(wm_source_why(source, i) == NULL,
                         readings[i].state == WM_READING_OK);
    }
}

/* Two readings, for the metrics that need them. */
static void read_twice(struct wm_source *source)
{
    read_all(source);
    usleep(12 * 1000);
    read_all(source);
}

static size_t find(const struct wm_source *source, const char *device, const char *metric)
{
    size_t count = wm_source_channel_count(source);
    size_t i;

    for (i = 0; i < count; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        if (strcmp(channel->device, device) == 0 && strcmp(channel->metric, metric) == 0)
            break;
    }
    return i;
}

/* What a tree should offer of one metric; NULL metric past the last. Without a
 * `why` the reading is good. */
struct expected {
    const char *device, *metric;
    double value;
    const char *why;
    enum wm_reading_state state;
};

static void check(const struct wm_source *source, const struct expected *expected)
{
    for (const struct expected *e = expected; e->metric; e++) {
        size_t i = find(source, e->device, e->metric);
        if (i == wm_source_channel_count(source))
            fail_msg("%s has no %s", e->device, e->metric);
        const char *why = wm_source_why(source, i);

        if (!e->why && readings[i].state != WM_READING_OK)
            fail_msg("%s of %s: %s", e->metric, e->device, why);
        if (!e->why && fabs(readings[i].value - e->value) > 1e-9 * fabs(e->value))
            fail_msg("%s of %s: %.17g", e->metric, e->device, readings[i].value);
        if (e->why && (readings[i].state != e->state || !strstr(why, e->why)))
            fail_msg("%s of %s: state %d, '%s'", e->metric, e->device, readings[i].state,
                     why ? why : "");
    }
}

#define AMD "9246e46a12f1d0a4"
#define APU "0000:c4:00.0"
#define DIE "6c1a0e0d3f2b5a17"
#define DIE_2 "0000:ce:00.0"
#define IGPU "0000:00:02.0"
#define ARC "0000:03:00.0"

/* Rows of struct expected: a good value, one that this GPU will never have, and
 * one that did not come this time. */
#define GIVES(device, metric, value)                                                       \
    {                                                                                      \
        device, metric, value, NULL, WM_READING_OK                                         \
    }
#define LACKS(device, metric, why)                                                         \
    {                                                                                      \
        device, metric, 0, why, WM_READING_UNSUPPORTED                                     \
    }
#define FAILS(device, metric, why, state)                                                  \
    {                                                                                      \
        device, metric, 0, why, WM_READING_##state                                         \
    }
#define CHECK(source, ...)                                                                 \
    check(source, (const struct expected[]) { __VA_ARGS__, { .metric = NULL } })

static void test_machines(void **state)
{
    static const struct {
        const char *machine, *proc;
        size_t gpus, channels;
        const char *label, *model; /* of the first */
        const char *detail;
        struct expected values[16];
        struct {
            const char *device;
            int pid;
            double kib;
        } processes[5];
    } cases[] = {
        { "amd-discrete",
          "amd-discrete",
          1,
          7,
          "card1",
          "AMD GPU 1002:744c",
          "card1: amdgpu at 0000:03:00.0",
          { LACKS(AMD, "energy", "amdgpu reports no energy"), GIVES(AMD, "power", 112.5),
            GIVES(AMD, "utilization", 0.37), GIVES(AMD, "memory_used", 3221225472),
            GIVES(AMD, "memory_total", 25753026560), GIVES(AMD, "temperature", 54),
            GIVES(AMD, "memory_temperature", 70) },
          { { AMD, 1200, 81920 }, { AMD, 3100, 2098176 }, { AMD, 3105, 524288 } } },
        { "amd-apu",
          "amd-apu",
          1,
          6,
          "card1",
          "AMD GPU 1002:15bf",
          "card1: amdgpu at 0000:c4:00.0, integrated, so that its power is that of the CPU "
          "too",
          { LACKS(APU, "energy", "its power is that of the CPU package"),
            GIVES(APU, "power", 14.25), GIVES(APU, "utilization", 0.23),
            GIVES(APU, "memory_used", 402653184.0 + 2147483648.0),
            GIVES(APU, "memory_total", 536870912.0 + 16106127360.0),
            GIVES(APU, "temperature", 48) },
          { { APU, 2217, 25263348 } } },
        { "amd-instinct",
          "amd-apu",
          2,
          14,
          "card1",
          "AMD INSTINCT MI250 (MCM) OAM AC MBA",
          "card1: amdgpu at 0000:c9:00.0, its power is that of both dies of the package; "
          "card2: amdgpu at 0000:ce:00.0",
          { GIVES(DIE, "energy", 52428800), GIVES(DIE, "power", 237),
            GIVES(DIE, "memory_temperature", 49),
            LACKS(DIE_2, "energy", "its power is in that of card1, on the same package"),
            LACKS(DIE_2, "power", "its power is in that of card1, on the same package"),
            GIVES(DIE_2, "utilization", 0.88), GIVES(DIE_2, "temperature", 45) },
          { { 0 } } },
        { "intel-integrated",
          "intel-integrated",
          1,
          6,
          "card0",
          "Intel GPU 8086:9a49",
          "card0: i915 at 0000:00:02.0, integrated, so that its power is that of the CPU "
          "too",
          { LACKS(IGPU, "energy", "its power is that of the CPU package"),
            LACKS(IGPU, "power", "i915 reports no power"), GIVES(IGPU, "utilization", 0),
            GIVES(IGPU, "memory_used", 270336 * 1024.0),
            LACKS(IGPU, "memory_total", "i915 reports no memory_total"),
            LACKS(IGPU, "temperature", "i915 reports no temperature") },
          { { IGPU, 900, 266240 }, { IGPU, 1500, 4096 } } },
        { "intel-discrete",
          "intel-discrete",
          1,
          6,
          "card0",
          "Intel GPU 8086:56a0",
          "card0: i915 at 0000:03:00.0",
          { GIVES(ARC, "energy", 73184.320715),
            LACKS(ARC, "power", "i915 reports no power"), GIVES(ARC, "utilization", 0),
            GIVES(ARC, "memory_used", 536870912), GIVES(ARC, "temperature", 47) },
          { { ARC, 4100, 524288 } } },
        { "intel-xe",
          "intel-xe",
          2,
          13,
          "card0",
          "Intel GPU 8086:7d55",
          "card0: xe at 0000:00:02.0, integrated, so that its power is that of the CPU "
          "too; "
          "card1: xe at 0000:03:00.0",
          { GIVES(IGPU, "memory_used", 65536 * 1024.0), GIVES(ARC, "energy", 912.345678),
            GIVES(ARC, "utilization", 0), GIVES(ARC, "memory_used", 1072568 * 1024.0),
            GIVES(ARC, "memory_total", 12884901888), GIVES(ARC, "temperature", 51),
            GIVES(ARC, "memory_temperature", 58) },
          { { IGPU, 700, 65536 }, { ARC, 700, 23992 }, { ARC, 5000, 1048576 } } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char sysfs[64], procfs[64];
        const struct wm_gpu_process *processes;

        print_message("  %s\n", cases[i].machine);
        snprintf(sysfs, sizeof(sysfs), "tests/data/sys-drm/%s", cases[i].machine);
        snprintf(procfs, sizeof(procfs), "tests/data/proc-drm/%s", cases[i].proc);
        struct wm_source *source =
            open_trees(test_source_path(sysfs), test_source_path(procfs), NULL);
        assert_int_equal(wm_source_device_count(source), cases[i].gpus);
        assert_int_equal(wm_source_channel_count(source), cases[i].channels);
        assert_string_equal(wm_source_channel(source, 0)->label, cases[i].label);
        assert_string_equal(wm_source_channel(source, 0)->model, cases[i].model);
        assert_string_equal(wm_source_detail(source), cases[i].detail);
        read_twice(source);
        check(source, cases[i].values);

        size_t count = wm_source_gpu_processes(source, &processes), found = 0;
        for (size_t k = 0; cases[i].processes[k].device; k++) {
            for (size_t n = 0; n < count; n++)
                found += strcmp(processes[n].device, cases[i].processes[k].device) == 0 &&
                         processes[n].pid == cases[i].processes[k].pid &&
                         processes[n].state == WM_READING_OK &&
                         processes[n].memory_bytes == cases[i].processes[k].kib * 1024;
        }
        assert_int_equal(found, count);

        /* Nobody in a stored tree does anything. */
        for (size_t n = 0; n < count; n++) {
            assert_int_equal(processes[n].sm_state, WM_READING_OK);
            assert_true(processes[n].sm_ratio == 0);
        }
        wm_source_close(source);
    }
}

/* What every channel says of itself, and that one device's stand together. */
static void test_channels(void **state)
{
    static const struct {
        const char *metric, *unit;
        enum wm_kind kind;
    } expected[METRICS] = {
        { "energy", "J", WM_COUNTER },
        { "power", "W", WM_GAUGE },
        { "utilization", "ratio", WM_GAUGE },
        { "memory_used", "B", WM_GAUGE },
        { "memory_total", "B", WM_GAUGE },
        { "temperature", "celsius", WM_GAUGE },
        { "memory_temperature", "celsius", WM_GAUGE },
    };
    struct wm_source *source =
        open_trees(test_source_path("tests/data/sys-drm/amd-discrete"),
                   test_source_path("tests/data/proc-drm/amd-discrete"), "all");
    (void)state;

    read_all(source);
    for (size_t i = 0; i < METRICS; i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        bool is_memory = strncmp(channel->metric, "memory_u", 8) == 0 ||
                         strncmp(channel->metric, "memory_to", 9) == 0;
        assert_string_equal(channel->source, "drm");
        assert_string_equal(channel->metric, expected[i].metric);
        assert_string_equal(channel->unit, expected[i].unit);
        assert_int_equal(channel->kind, expected[i].kind);
        assert_int_equal(channel->device_kind, WM_DEVICE_GPU);
        assert_int_equal(channel->origin, WM_MEASURED);
        assert_int_equal(channel->period_ns, is_memory ? 0 : WM_NS_PER_MS);
        assert_true(i == 0 || readings[i].when_ns >= readings[i - 1].when_ns);
        assert_described(channel);
    }
    wm_source_close(source);

    /* The power of an integrated GPU is the processor's, under the same name. */
    static const struct {
        const char *machine, *device, *label;
    } integrated[] = {
        { "amd-apu", APU, "card1" },
        { "intel-integrated", IGPU, "card0" },
    };
    for (size_t k = 0; k < ARRAY_LEN(integrated); k++) {
        char sysfs[64], procfs[64];
        snprintf(sysfs, sizeof(sysfs), "tests/data/sys-drm/%s", integrated[k].machine);
        snprintf(procfs, sizeof(procfs), "tests/data/proc-drm/%s", integrated[k].machine);
        source = open_trees(test_source_path(sysfs), test_source_path(procfs), NULL);
        for (size_t i = 0; i < wm_source_channel_count(source); i++) {
            const struct wm_channel *channel = wm_source_channel(source, i);
            bool is_power = strcmp(channel->metric, "power") == 0;
            assert_int_equal(channel->device_kind,
                             is_power ? WM_DEVICE_CPU : WM_DEVICE_GPU);
            bool is_energy = is_power || strcmp(channel->metric, "energy") == 0;
            assert_int_equal(channel->sensor.contains,
                             is_energy ? WM_CONTAINS_PACKAGE : WM_CONTAINS_DEVICE);
            assert_string_equal(channel->device, integrated[k].device);
            assert_string_equal(channel->label, integrated[k].label);
            if (!is_power)
                assert_described(channel);
        }
        wm_source_close(source);
    }

    /* MI300A, which is known by its number alone. */
    char passed[300];
    const char *dir = *state;
    test_write_file(dir, "apu/class/drm/card0/device/uevent",
                    "DRIVER=amdgpu\nPCI_ID=1002:74A0\nPCI_SLOT_NAME=0000:01:00.0\n");
    test_write_file(dir, "apu/class/drm/card0/device/hwmon/hwmon1/name", "amdgpu\n");
    test_write_file(dir, "apu/class/drm/card0/device/hwmon/hwmon1/power1_average",
                    "550000000\n");
    snprintf(passed, sizeof(passed), "%s/apu", dir);
    source = open_trees(passed, dir, NULL);
    read_all(source);
    size_t power = find(source, "0000:01:00.0", "power");
    assert_int_equal(wm_source_channel(source, power)->device_kind, WM_DEVICE_CPU);
    assert_true(readings[power].value == 550);
    size_t energy = find(source, "0000:01:00.0", "energy");
    assert_int_equal(readings[energy].state, WM_READING_UNSUPPORTED);
    assert_string_equal(wm_source_why(source, energy),
                        "its power is that of the CPU package");
    wm_source_close(source);

    /* Another card at the same place, as a virtual machine may have it. */
    test_write_file(dir, "sys/class/drm/card0/device/uevent",
                    "DRIVER=xe\nPCI_SLOT_NAME=0000:00:02.0\n");
    test_write_file(dir, "sys/class/drm/card0/device/hwmon/hwmon1/name", "xe\n");
    test_write_file(dir, "sys/class/drm/card0/device/hwmon/hwmon1/energy1_input", "5000\n");
    snprintf(passed, sizeof(passed), "%s/sys", dir);
    source = open_trees(passed, dir, NULL);
    assert_int_equal(wm_source_channel(source, find(source, IGPU, "power"))->device_kind,
                     WM_DEVICE_GPU);
    wm_source_close(source);

    /* Sums over clients count shared buffers twice, and say so. */
    source = open_trees(test_source_path("tests/data/sys-drm/intel-xe"),
                        test_source_path("tests/data/proc-drm/intel-xe"), NULL);
    const struct wm_channel *sum =
        wm_source_channel(source, find(source, ARC, "memory_used"));
    assert_int_equal(sum->origin, WM_ESTIMATED);
    const struct wm_channel *ratio =
        wm_source_channel(source, find(source, ARC, "utilization"));
    assert_int_equal(ratio->origin, WM_MEASURED);
    assert_int_equal(ratio->period_ns, 10 * WM_NS_PER_MS);
    wm_source_close(source);
}

/* Files of one made-up card, below class/drm/card0. */
struct file {
    const char *path, *text;
};

#define MOST_FILES 14

static void make_card(const char *dir, const struct file *files)
{
    for (size_t i = 0; i < MOST_FILES && files[i].path; i++) {
        char path[160];
        snprintf(path, sizeof(path), "class/drm/card0/%s", files[i].path);
        test_write_file(dir, path, files[i].text);
    }
}

/* An empty /proc in which everything can be seen. */
static const char *make_proc(const char *dir)
{
    static char path[256];

    test_write_file(dir, "proc/2/comm", "kthreadd\n");
    snprintf(path, sizeof(path), "%s/proc", dir);
    return path;
}

#define UEVENT(driver)                                                                     \
    {                                                                                      \
        "device/uevent", "DRIVER=" driver "\nPCI_ID=1002:1\nPCI_SLOT_NAME=0000:03:00.0\n"  \
    }
#define HWMON(file) "device/hwmon/hwmon7/" file

/* One thing is wrong, and the rest is read all the same. */
static void test_broken(void **state)
{
    static const struct {
        const char *what;
        struct file files[MOST_FILES];
        struct expected values[6];
    } cases[] = {
        { "nothing but the bare card",
          { UEVENT("amdgpu") },
          { LACKS(ARC, "power", "amdgpu reports no power"), GIVES(ARC, "utilization", 0),
            GIVES(ARC, "memory_used", 0), LACKS(ARC, "memory_total", "no memory_total") } },
        { "an empty file",
          { UEVENT("amdgpu"),
            { "device/gpu_busy_percent", "" },
            { "device/mem_info_vram_used", "5\n" } },
          { FAILS(ARC, "utilization", "gpu_busy_percent: '' is not a number", FAILED),
            GIVES(ARC, "memory_used", 5) } },
        { "text in the place of numbers",
          { UEVENT("amdgpu"),
            { "device/gpu_busy_percent", "[N/A]\n" },
            { "device/mem_info_vram_used", "many\n" },
            { "device/mem_info_vram_total", "0x10\n" } },
          { FAILS(ARC, "utilization", "'[N/A]' is not a number", FAILED),
            FAILS(ARC, "memory_used", "'many' is not a number", FAILED),
            FAILS(ARC, "memory_total", "'0x10' is not a number", FAILED) } },
        { "bytes of any kind",
          { UEVENT("amdgpu"), { "device/gpu_busy_percent", "\xff\x01\x80\n" } },
          { FAILS(ARC, "utilization", "'?\?\?' is not", FAILED) } },
        { "a line that does not end",
          { UEVENT("amdgpu"),
            { "device/gpu_busy_percent",
              "1111111111111111111111111111111111111111111111" } },
          { FAILS(ARC, "utilization", "is not a number", FAILED) } },
        { "percent above and below",
          { UEVENT("amdgpu"),
            { "device/gpu_busy_percent", "101\n" },
            { "device/mem_info_vram_used", "-1\n" } },
          { FAILS(ARC, "utilization", "101 is out of range", FAILED),
            FAILS(ARC, "memory_used", "-1 is below zero", FAILED) } },
        { "more memory than can be",
          { UEVENT("amdgpu"),
            { "device/mem_info_vram_used", "9223372036854775807\n" },
            { "device/mem_info_vram_total", "18446744073709551616\n" } },
          { FAILS(ARC, "memory_used", "is out of range", FAILED),
            FAILS(ARC, "memory_total", "is not a number", FAILED) } },
        { "a GPU without memory",
          { UEVENT("amdgpu"), { "device/mem_info_vram_total", "0\n" } },
          { FAILS(ARC, "memory_total", "0 is out of range", FAILED) } },
        { "negative energy and power",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("energy1_input"), "-5\n" },
            { HWMON("power1_input"), "-5\n" },
            { HWMON("temp1_input"), "-5000\n" } },
          { FAILS(ARC, "energy", "-5 is below zero", FAILED),
            FAILS(ARC, "power", "-5 is below zero", FAILED),
            GIVES(ARC, "temperature", -5) } },
        { "a power no supply has, and the largest energy",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("energy1_input"), "9223372036854775807\n" },
            { HWMON("power1_input"), "100000000001\n" } },
          { GIVES(ARC, "energy", 9223372036854.775807),
            FAILS(ARC, "power", "is out of range", FAILED) } },
        { "temperatures of a sensor that is off",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("temp2_label"), "pkg\n" },
            { HWMON("temp2_input"), "-273150\n" },
            { HWMON("temp3_label"), "vram\n" },
            { HWMON("temp3_input"), "255000\n" } },
          { FAILS(ARC, "temperature", "-273150 is out of range", FAILED),
            FAILS(ARC, "memory_temperature", "255000 is out of range", FAILED) } },
        { "hwmon of another name",
          { UEVENT("i915"),
            { HWMON("name"), "i915_gt0\n" },
            { HWMON("energy1_input"), "5\n" } },
          { LACKS(ARC, "energy", "i915 reports no energy") } },
        { "a folder in the place of a file",
          { UEVENT("amdgpu"), { "device/gpu_busy_percent/in/the/way", "" } },
          { FAILS(ARC, "utilization", "gpu_busy_percent: Is a directory", FAILED) } },
        { "files in the place of folders",
          { UEVENT("amdgpu"),
            { "device/hwmon", "" },
            { "device/drm", "" },
            { "device/gpu_busy_percent", "7\n" } },
          { GIVES(ARC, "utilization", 0.07) } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_card(*state, cases[i].files);
        struct wm_source *source = open_trees(*state, make_proc(*state), NULL);
        read_twice(source);
        check(source, cases[i].values);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* Which of several files a value is taken from. */
static void test_choice_of_files(void **state)
{
    static const struct {
        const char *what;
        struct file files[MOST_FILES];
        struct expected values[4];
    } cases[] = {
        { "the average power, and the instant one where there is no other",
          { UEVENT("amdgpu"),
            { HWMON("name"), "amdgpu\n" },
            { HWMON("power1_input"), "30000000\n" },
            { HWMON("power1_average"), "20000000\n" } },
          { GIVES(ARC, "power", 20) } },
        { "the instant power",
          { UEVENT("amdgpu"),
            { HWMON("name"), "amdgpu\n" },
            { HWMON("power1_input"), "30000000\n" } },
          { GIVES(ARC, "power", 30) } },
        { "the junction where there is no edge",
          { UEVENT("amdgpu"),
            { HWMON("name"), "amdgpu\n" },
            { HWMON("temp2_label"), "junction\n" },
            { HWMON("temp2_input"), "61000\n" },
            { HWMON("temp3_label"), "mem\n" },
            { HWMON("temp3_input"), "55000\n" } },
          { GIVES(ARC, "temperature", 61), GIVES(ARC, "memory_temperature", 55) } },
        { "a sensor without a label",
          { UEVENT("nouveau"),
            { HWMON("name"), "nouveau\n" },
            { HWMON("temp1_input"), "44000\n" } },
          { GIVES(ARC, "temperature", 44) } },
        { "the energy of the package where there is none of the card",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("energy2_label"), "pkg\n" },
            { HWMON("energy2_input"), "7000000\n" } },
          { GIVES(ARC, "energy", 7) } },
        { "the energy of the package where that of the card stands at 0",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("energy1_label"), "card\n" },
            { HWMON("energy1_input"), "0\n" },
            { HWMON("energy2_label"), "pkg\n" },
            { HWMON("energy2_input"), "7000000\n" } },
          { GIVES(ARC, "energy", 7) } },
        { "that of the card where both do",
          { UEVENT("xe"),
            { HWMON("name"), "xe\n" },
            { HWMON("energy1_label"), "card\n" },
            { HWMON("energy1_input"), "0\n" },
            { HWMON("energy2_label"), "pkg\n" },
            { HWMON("energy2_input"), "0\n" } },
          { GIVES(ARC, "energy", 0) } },
        { "the first hwmon of the name",
          { UEVENT("xe"),
            { "device/hwmon/hwmon10/name", "xe\n" },
            { "device/hwmon/hwmon10/energy1_input", "1000000\n" },
            { "device/hwmon/hwmon9/name", "xe\n" },
            { "device/hwmon/hwmon9/energy1_input", "2000000\n" },
            { "device/hwmon/hwmon11/name", "xe\n" },
            { "device/hwmon/hwmon12/name", "xe\n" },
            { "device/hwmon/hwmon13/name", "xe\n" },
            { "device/hwmon/hwmon14/name", "xe\n" },
            { "device/hwmon/hwmon8/name", "nvme\n" },
            { "device/hwmon/hwmon8/energy1_input", "3000000\n" } },
          { GIVES(ARC, "energy", 2) } },
        { "two tiles",
          { UEVENT("xe"),
            { "device/tile0/physical_vram_size_bytes", "64\n" },
            { "device/tile1/physical_vram_size_bytes", "32\n" } },
          { GIVES(ARC, "memory_total", 96) } },
        { "lmem of i915",
          { UEVENT("i915"),
            { "lmem_total_bytes", "1000\n" },
            { "lmem_avail_bytes", "400\n" } },
          { GIVES(ARC, "memory_total", 1000), GIVES(ARC, "memory_used", 600) } },
        { "lmem that does not add up",
          { UEVENT("i915"),
            { "lmem_total_bytes", "1000\n" },
            { "lmem_avail_bytes", "1001\n" } },
          { FAILS(ARC, "memory_used", "-1 is out of range", FAILED) } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_card(*state, cases[i].files);
        struct wm_source *source = open_trees(*state, make_proc(*state), NULL);
        read_all(source);
        check(source, cases[i].values);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void write_bytes(const char *dir, const char *path, const void *bytes, size_t size)
{
    char full[512];

    test_write_file(dir, path, "");
    snprintf(full, sizeof(full), "%s/%s", dir, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A gpu_metrics file of `size` bytes: revision 1.4 where it says 288. */
static void write_metrics_of(const char *dir, const char *path, uint16_t stated,
                             size_t size, uint64_t energy)
{
    static const uint16_t fields[] = { 61, 49, 40, 750, 100 }; /* from byte 4 on */
    unsigned char bytes[8192];

    memset(bytes, 0xff, sizeof(bytes));
    memcpy(bytes, &stated, sizeof(stated));
    bytes[2] = 1;
    bytes[3] = 4;
    memcpy(bytes + 4, fields, sizeof(fields));
    memcpy(bytes + 24, &energy, sizeof(energy));
    write_bytes(dir, path, bytes, size);
}

#define METRICS_FILE "class/drm/card0/device/gpu_metrics"

static void write_metrics(const char *dir, uint16_t stated, size_t size, uint64_t energy)
{
    write_metrics_of(dir, METRICS_FILE, stated, size, energy);
}

static void test_gpu_metrics(void **state)
{
    static const struct {
        const char *what;
        uint16_t stated;
        size_t size;
        struct expected values[5];
    } cases[] = {
        { "all that no other file tells",
          288,
          288,
          { GIVES(ARC, "energy", 3), GIVES(ARC, "power", 750),
            GIVES(ARC, "temperature", 61), GIVES(ARC, "memory_temperature", 49) } },
        { "too short",
          288,
          287,
          { LACKS(ARC, "energy", "gpu_metrics: revision 1.4 of 287 bytes is not"),
            LACKS(ARC, "power", "amdgpu reports no power") } },
        { "too long", 288, 289, { LACKS(ARC, "energy", "of 289 bytes is not") } },
        { "another size than it says",
          287,
          288,
          { LACKS(ARC, "energy", "1.4 of 288 bytes is not known") } },
        { "larger than any", 288, 8192, { LACKS(ARC, "energy", "is not known") } },
        { "not even a header", 288, 3, { LACKS(ARC, "energy", "only 3 bytes") } },
        { "empty", 288, 0, { LACKS(ARC, "energy", "only 0 bytes") } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct file card[MOST_FILES] = { UEVENT("amdgpu"),
                                               { "device/gpu_busy_percent", "7\n" } };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_card(*state, card);
        write_metrics(*state, cases[i].stated, cases[i].size, 3 * 65536);
        struct wm_source *source = open_trees(*state, make_proc(*state), NULL);
        read_all(source);
        check(source, cases[i].values);
        CHECK(source, GIVES(ARC, "utilization", 0.07));
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* A die of 300 W, or one that is measured with another. */
static void make_die(const char *dir, size_t number, const char *serial, bool is_second)
{
    char path[128], text[128];

    snprintf(text, sizeof(text),
             "DRIVER=amdgpu\nPCI_ID=1002:740C\nPCI_SLOT_NAME=0000:0%zu:00.0\n", number + 1);
    snprintf(path, sizeof(path), "class/drm/card%zu/device/uevent", number);
    test_write_file(dir, path, text);
    if (serial) {
        snprintf(path, sizeof(path), "class/drm/card%zu/device/unique_id", number);
        test_write_file(dir, path, serial);
    }
    snprintf(path, sizeof(path), "class/drm/card%zu/device/hwmon/hwmon%zu/name", number,
             number);
    test_write_file(dir, path, "amdgpu\n");
    snprintf(path, sizeof(path), "class/drm/card%zu/device/hwmon/hwmon%zu/power1_average",
             number, number);
    test_write_file(dir, path, is_second ? "0\n" : "300000000\n");
    snprintf(path, sizeof(path), "class/drm/card%zu/device/gpu_metrics", number);
    write_metrics_of(dir, path, 288, 288, is_second ? 0 : 3 * 65536);
}

/* The dies of a package have one power, which the first of them reports. */
static void test_dies(void **state)
{
    static const struct {
        const char *what;
        size_t count;
        struct {
            const char *serial;
            bool is_second;
            const char *first; /* at which it is measured; NULL: it has a power */
        } dies[4];
    } cases[] = {
        { "two packages, with serial numbers",
          4,
          { { "11111111aaaaaaaa\n", false, NULL },
            { "22222222bbbbbbbb\n", false, NULL },
            { "11111111aaaaaaaa\n", true, "card0" },
            { "22222222bbbbbbbb\n", true, "card1" } } },
        { "two packages, without",
          4,
          { { NULL, false, NULL },
            { NULL, true, "card0" },
            { NULL, false, NULL },
            { NULL, true, "card2" } } },
        { "serial numbers of dies",
          2,
          { { "11111111aaaaaaaa\n", false, NULL },
            { "22222222bbbbbbbb\n", true, "card0" } } },
        { "the first one of a package is not shown, and others stand beside the second",
          4,
          { { "11111111aaaaaaaa\n", true, "draws 0 W by its own account" },
            { "22222222bbbbbbbb\n", false, NULL },
            { "22222222bbbbbbbb\n", true, "card1" },
            { "33333333cccccccc\n", false, NULL } } },
        { "the second first",
          4,
          { { NULL, true, "card1" },
            { NULL, false, NULL },
            { NULL, true, "card3" },
            { NULL, false, NULL } } },
        { "the first one is not shown",
          1,
          { { NULL, true, "draws 0 W by its own account" } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        for (size_t k = 0; k < cases[i].count; k++)
            make_die(*state, k, cases[i].dies[k].serial, cases[i].dies[k].is_second);
        struct wm_source *source = open_trees(*state, make_proc(*state), NULL);
        read_all(source);
        for (size_t n = 0; n < wm_source_channel_count(source); n++) {
            const struct wm_channel *channel = wm_source_channel(source, n);
            size_t die = (size_t)(channel->label[4] - '0');
            const char *first = cases[i].dies[die].first;
            if (strcmp(channel->metric, "power") != 0)
                continue;
            assert_int_equal(readings[n].state,
                             first ? WM_READING_UNSUPPORTED : WM_READING_OK);
            if (first)
                assert_non_null(strstr(wm_source_why(source, n), first));
            assert_int_equal(channel->device_kind, WM_DEVICE_GPU);
            assert_int_equal(channel->sensor.contains, first && first[0] == 'c'
                                                           ? WM_CONTAINS_PACKAGE
                                                           : WM_CONTAINS_DEVICE);
        }
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* A second die without the first lacks a power. */
static void test_second_die_alone(void **state)
{
    make_die(*state, 0, NULL, false);
    make_die(*state, 1, NULL, true);
    struct wm_source *source = open_trees(*state, make_proc(*state), "1");
    size_t power = find(source, "0000:02:00.0", "power");

    read_all(source);
    assert_int_equal(readings[power].state, WM_READING_UNSUPPORTED);
    assert_int_equal(wm_source_channel(source, power)->device_kind, WM_DEVICE_GPU);
    wm_source_close(source);
}

/* The file changes while it is being read again and again. */
static void test_gpu_metrics_steps(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = { UEVENT("amdgpu"),
                                           { HWMON("name"), "amdgpu\n" },
                                           { HWMON("power1_average"), "9000000\n" } };

    make_card(dir, card);
    write_metrics(dir, 288, 288, 65536);
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    read_all(source);
    CHECK(source, GIVES(ARC, "energy", 1), GIVES(ARC, "power", 9));

    write_metrics(dir, 288, 100, 65536);
    read_all(source);
    CHECK(source, FAILS(ARC, "energy", "1.4 of 100 bytes is not known", FAILED),
          FAILS(ARC, "temperature", "is not known", FAILED), GIVES(ARC, "power", 9));

    write_metrics(dir, 288, 288, UINT64_MAX);
    read_all(source);
    CHECK(source, LACKS(ARC, "energy", "gpu_metrics does not have it"),
          GIVES(ARC, "temperature", 61));

    write_metrics(dir, 288, 288, 131072);
    read_all(source);
    CHECK(source, GIVES(ARC, "energy", 2));
    wm_source_close(source);
}

/* A GPU that sleeps is left alone; what does not wake it is read. */
static void test_asleep(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = {
        UEVENT("amdgpu"),
        { HWMON("name"), "amdgpu\n" },
        { HWMON("power1_average"), "9000000\n" },
        { "device/mem_info_vram_used", "5\n" },
        { "device/power/runtime_status", "suspended\n" },
    };

    make_card(dir, card);
    write_metrics(dir, 288, 288, 65536);
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    read_all(source);
    CHECK(source, FAILS(ARC, "energy", "card0 is asleep", STALE),
          FAILS(ARC, "power", "card0 is asleep", STALE), GIVES(ARC, "memory_used", 5));
    test_write_file(dir, "class/drm/card0/device/power/runtime_status", "active\n");
    read_all(source);
    CHECK(source, GIVES(ARC, "energy", 1), GIVES(ARC, "power", 9));
    wm_source_close(source);
}

static void test_no_permission(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = { UEVENT("xe"),
                                           { HWMON("name"), "xe\n" },
                                           { HWMON("energy1_input"), "9000000\n" } };
    char path[256];

    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    make_card(dir, card);
    snprintf(path, sizeof(path), "%s/class/drm/card0/" HWMON("energy1_input"), dir);
    assert_int_equal(chmod(path, 0), 0);
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    read_all(source);
    CHECK(source, FAILS(ARC, "energy", "Permission denied", DENIED));
    wm_source_close(source);

    const struct wm_source_config config = { .sysfs = dir };
    struct wm_error err;
    snprintf(path, sizeof(path), "%s/class/drm", dir);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(wm_source_open("drm", &config, &source, &err), WM_EACCES);
    assert_non_null(strstr(err.text, "class/drm: Permission denied"));
    assert_int_equal(chmod(path, 0700), 0);
}

/* Sums over clients are no figure of the GPU where some cannot be seen. */
static void test_unseen_clients(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = { UEVENT("i915") };
    const struct wm_gpu_process *processes;
    char procfs[256];

    make_card(dir, card);
    test_write_file(dir, "container/10/fdinfo/4",
                    "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n"
                    "drm-resident-system0:\t4 KiB\n");
    snprintf(procfs, sizeof(procfs), "%s/container", dir);
    struct wm_source *source = open_trees(dir, procfs, NULL);
    read_twice(source);
    CHECK(source, FAILS(ARC, "utilization", "does not show all processes", DENIED),
          FAILS(ARC, "memory_used", "does not show all processes", DENIED));
    assert_int_equal(wm_source_gpu_processes(source, &processes), 1);
    assert_true(processes[0].memory_bytes == 4096);
    wm_source_close(source);

    /* An old kernel tells of the client, and not what it does. */
    test_write_file(dir, "container/2/comm", "kthreadd\n");
    test_write_file(dir, "container/10/fdinfo/4",
                    "drm-driver:\ti915\ndrm-pdev:\t0000:03:00.0\n");
    source = open_trees(dir, procfs, NULL);
    read_twice(source);
    CHECK(source, LACKS(ARC, "utilization", "does not report the engines"),
          LACKS(ARC, "memory_used", "does not report the memory"));
    wm_source_close(source);

    /* An older one tells nothing at all. */
    test_write_file(dir, "container/10/fdinfo/4", "pos:\t0\n");
    test_write_file(dir, "container/10/fd/x", "");
    snprintf(procfs, sizeof(procfs), "%s/container/10/fd/4", dir);
    assert_int_equal(symlink("/dev/dri/card0", procfs), 0);
    snprintf(procfs, sizeof(procfs), "%s/container", dir);
    source = open_trees(dir, procfs, NULL);
    read_twice(source);
    CHECK(source, LACKS(ARC, "utilization", "does not report the use"),
          LACKS(ARC, "memory_used", "does not report the use"));
    assert_int_equal(wm_source_gpu_processes(source, &processes), 1);
    assert_int_equal(processes[0].pid, 0);
    assert_int_equal(processes[0].state, WM_READING_UNSUPPORTED);
    wm_source_close(source);

    snprintf(procfs, sizeof(procfs), "%s/nowhere", dir);
    source = open_trees(dir, procfs, NULL);
    read_all(source);
    CHECK(source, FAILS(ARC, "utilization", "nowhere: No such file", FAILED));
    wm_source_close(source);
}

/* Whether a card is one of ours, and if not why. */
static void test_no_gpu(void **state)
{
    static const struct {
        const char *what;
        struct file files[MOST_FILES];
        const char *why;
    } cases[] = {
        { "no class", { { 0 } }, "there is no " },
        { "no card",
          { { "../version", "drm 1.1.0\n" }, { "../renderD128/x", "" } },
          "no cards" },
        { "a connector",
          { { "../card1-DP-1/status", "connected\n" } },
          "which has no cards" },
        { "no driver",
          { { "device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n" } },
          "(card0: no driver)" },
        { "no device at all", { { "dev", "226:0\n" } }, "(card0: no driver)" },
        { "an NVIDIA GPU", { UEVENT("nvidia") }, "(card0: nvidia, left to NVML)" },
        { "a display of a server", { UEVENT("ast") }, "(card0: ast, without counters)" },
        { "a virtual machine's",
          { UEVENT("virtio_gpu") },
          "(card0: virtio_gpu, without counters)" },
        { "an unknown driver", { UEVENT("flux") }, "(card0: flux, without counters)" },
        { "both",
          { UEVENT("simpledrm"),
            { "../card1/device/uevent", "DRIVER=nvidia\n" },
            { "../card10/device/uevent", "DRIVER=vkms\n" } },
          "(card0: simpledrm, without counters; card1: nvidia, left to NVML; card10: "
          "vkms, " },
        { "a file", { { "../card1", "" } }, "(card1: no folder)" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        if (cases[i].files[0].path && strncmp(cases[i].files[0].path, "../", 3) == 0) {
            for (size_t k = 0; cases[i].files[k].path; k++) {
                char path[128];
                snprintf(path, sizeof(path), "class/drm/%s", cases[i].files[k].path + 3);
                test_write_file(*state, path, cases[i].files[k].text);
            }
        } else {
            make_card(*state, cases[i].files);
        }
        const struct wm_source_config config = { .sysfs = *state,
                                                 .procfs = make_proc(*state) };
        assert_int_equal(wm_source_open("drm", &config, &source, &err), WM_ENODEV);
        assert_null(source);
        assert_non_null(strstr(err.text, "no DRM GPU with readable counters"));
        assert_non_null(strstr(err.text, *state));
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s", err.text);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* A driver that counts the time of its clients, and not their memory; one that we do not
 * know stands beside it. */
static void test_time_alone(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = { UEVENT("v3d") };

    make_card(dir, card);
    const char *procfs = make_proc(dir);
    test_write_file(dir, "proc/10/fdinfo/4",
                    "drm-driver:\tv3d\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n"
                    "drm-engine-render:\t5 ns\n");
    test_write_file(dir, "class/drm/card1/device/uevent", "DRIVER=flux\n");
    struct wm_source *source = open_trees(dir, procfs, NULL);
    assert_int_equal(wm_source_device_count(source), 1);
    read_twice(source);
    CHECK(source, GIVES(ARC, "utilization", 0),
          LACKS(ARC, "memory_used", "does not report the memory"));
    wm_source_close(source);
}

static void test_identity(void **state)
{
    static const struct {
        const char *what;
        struct file files[MOST_FILES];
        const char *device, *model;
    } cases[] = {
        { "a serial number",
          { UEVENT("amdgpu"), { "device/unique_id", "00ab12cd34ef5678\n" } },
          "00ab12cd34ef5678",
          "AMD GPU 1002:0001" },
        { "one of zeros",
          { UEVENT("amdgpu"), { "device/unique_id", "0000000000000000\n" } },
          ARC,
          "AMD GPU 1002:0001" },
        { "one of other letters",
          { UEVENT("amdgpu"), { "device/unique_id", "unknown!\n" } },
          ARC,
          "AMD GPU 1002:0001" },
        { "one too long",
          { UEVENT("amdgpu"),
            { "device/unique_id", "123456789012345678901234567890123\n" } },
          ARC,
          "AMD GPU 1002:0001" },
        { "a product's name",
          { UEVENT("xe"), { "device/product_name", "  Flux 9000 \n" } },
          ARC,
          "Flux 9000" },
        { "a name of other bytes",
          { UEVENT("xe"), { "device/product_name", "a\xff\n" } },
          ARC,
          "a\xef\xbf\xbd" },
        { "a place that is none",
          { { "device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=somewhere\n" } },
          "card0",
          "xe GPU" },
        { "nothing known",
          { { "device/uevent", "DRIVER=panfrost\n" } },
          "card0",
          "panfrost GPU" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        make_card(*state, cases[i].files);
        struct wm_source *source = open_trees(*state, make_proc(*state), NULL);
        assert_string_equal(wm_source_channel(source, 0)->device, cases[i].device);
        assert_string_equal(wm_source_channel(source, 0)->model, cases[i].model);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* Driver and place from the links of a real sysfs, and cards that share a serial
 * number or lack everything that would tell them apart. */
static void test_links(void **state)
{
    const char *dir = *state;
    char path[256];

    test_write_file(dir, "devices/0000:07:00.0/x", "");
    test_write_file(dir, "class/drm/card0/dev", "");
    snprintf(path, sizeof(path), "%s/class/drm/card0/device", dir);
    assert_int_equal(symlink("../../../devices/0000:07:00.0", path), 0);
    snprintf(path, sizeof(path), "%s/devices/0000:07:00.0/driver", dir);
    assert_int_equal(symlink("../../bus/pci/drivers/amdgpu", path), 0);
    for (int i = 1; i <= 3; i++) {
        snprintf(path, sizeof(path), "class/drm/card%d/device/uevent", i);
        test_write_file(dir, path, i < 3 ? "DRIVER=amdgpu\n" : "DRIVER=xe\n");
        snprintf(path, sizeof(path), "class/drm/card%d/device/unique_id", i);
        test_write_file(dir, path, "00ab12cd34ef5678\n");
    }
    test_write_file(dir, "class/drm/card20/device/uevent", "DRIVER=xe\n");
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    static const char *const devices[] = { "0000:07:00.0", "00ab12cd34ef5678", "card2",
                                           "card3", "card20" };
    assert_int_equal(wm_source_device_count(source), ARRAY_LEN(devices));
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        assert_string_equal(wm_source_channel(source, i * 6)->device, devices[i]);
    wm_source_close(source);
}

static void test_choice(void **state)
{
    static const struct {
        const char *gpus;
        int status;
        const char *text; /* the chosen labels, or a part of the error's */
    } cases[] = {
        { NULL, WM_OK, "card0 card1" },
        { "all", WM_OK, "card0 card1" },
        { "0", WM_OK, "card0" },
        { "1,0", WM_OK, "card0 card1" },
        { " 1 , 1", WM_OK, "card1" },
        { "0000:03:00.0", WM_OK, "card1" },
        { "0000:03", WM_OK, "card1" },
        { "0000:03,0", WM_OK, "card0 card1" },
        { "none", WM_ENODEV, "switched off" },
        { "GPU-7c1f", WM_EINVAL, "'GPU-7c1f' is no GPU of this machine" },
        { "2", WM_EINVAL, "'2' is not the number of a GPU" },
        { "card2", WM_EINVAL, "'card2' is no GPU of this machine" },
        { "card", WM_EINVAL, "'card' is no GPU" },
        { "0000:0", WM_EINVAL, "fits several" },
        { "", WM_EINVAL, "names no GPU" },
        { "0,", WM_EINVAL, "names no GPU" },
        { ",0", WM_EINVAL, "names no GPU" },
        { "0,card1", WM_OK, "card0 card1" },
        { "99999999999999999999", WM_EINVAL, "is not the number" },
        { "0000000000111111111122222222223333333333444444444455555555556666666666"
          "7777777777888888888899999999990000000000111111111122222222223333333333",
          WM_EINVAL, "is not the number" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_source_config config = {
            .sysfs = test_source_path("tests/data/sys-drm/intel-xe"),
            .procfs = test_source_path("tests/data/proc-drm/intel-xe"),
            .gpus = cases[i].gpus,
        };
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };
        char labels[64] = "";
        const char *before = "";

        print_message("  '%s'\n", cases[i].gpus ? cases[i].gpus : "(null)");
        assert_int_equal(wm_source_open("drm", &config, &source, &err), cases[i].status);
        if (cases[i].status != WM_OK) {
            assert_null(source);
            if (!strstr(err.text, cases[i].text))
                fail_msg("%s", err.text);
            continue;
        }
        assert_int_equal(wm_source_device_count(source), 2);
        for (size_t k = 0; k < wm_source_channel_count(source); k++) {
            const char *label = wm_source_channel(source, k)->label;
            if (strcmp(label, before) != 0)
                snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels), "%s%s",
                         before[0] ? " " : "", label);
            before = label;
        }
        assert_string_equal(labels, cases[i].text);

        /* Clients of the others are nobody's business. */
        const struct wm_gpu_process *processes;
        read_all(source);
        size_t count = wm_source_gpu_processes(source, &processes);
        for (size_t k = 0; k < count; k++)
            assert_true(find(source, processes[k].device, "energy") <
                        wm_source_channel_count(source));
        wm_source_close(source);
    }
}

static void test_long_path(void **state)
{
    char path[1024];
    const struct wm_source_config config = { .sysfs = path };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    (void)state;

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(wm_source_open("drm", &config, &source, &err), WM_EINVAL);
    assert_null(source);
    assert_non_null(strstr(err.text, "too long a path"));
}

/* A number with bytes behind it that a text would not show. */
static void test_hidden_bytes(void **state)
{
    const char *dir = *state;
    const struct file card[MOST_FILES] = { UEVENT("amdgpu") };

    make_card(dir, card);
    write_bytes(dir, "class/drm/card0/device/gpu_busy_percent", "5\0\n7", 4);
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    read_all(source);
    CHECK(source, FAILS(ARC, "utilization", "is not a number", FAILED));
    wm_source_close(source);
}

/* One reading alone makes no ratio. */
static void test_first_reading(void **state)
{
    (void)state;
    int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_source *source =
        open_trees(test_source_path("tests/data/sys-drm/intel-integrated"),
                   test_source_path("tests/data/proc-drm/intel-integrated"), NULL);

    read_all(source);
    if (wm_clock_monotonic_ns() - begin_ns < 10 * WM_NS_PER_MS)
        CHECK(source, FAILS(IGPU, "utilization", "needs two readings", NONE));
    usleep(12 * 1000);
    read_all(source);
    CHECK(source, GIVES(IGPU, "utilization", 0));
    wm_source_close(source);
}

/* Writes what a process of a stored tree says, with the number on one line replaced. */
static void write_changed(const char *dir, const char *fdinfo, const char *line,
                          uint64_t number)
{
    char path[128], before[4096], after[4200];

    snprintf(path, sizeof(path), "tests/data/proc-drm/%s", fdinfo);
    FILE *file = fopen(test_source_path(path), "r");
    assert_non_null(file);
    size_t length = fread(before, 1, sizeof(before) - 1, file);
    fclose(file);
    before[length] = '\0';
    char *at = strstr(before, line);
    assert_non_null(at);
    at += strlen(line);
    const char *rest = at + strspn(at, "0123456789");
    snprintf(after, sizeof(after), "%.*s%llu%s", (int)(at - before), before,
             (unsigned long long)number, rest);
    snprintf(path, sizeof(path), "proc%s", strchr(fdinfo, '/'));
    test_write_file(dir, path, after);
}

/* The lone process of a machine is given a millisecond of work, as its driver would
 * count it. */
static void test_share_of_a_process(void **state)
{
    static const struct {
        const char *machine, *fdinfo, *line;
        uint64_t before;
        double engines; /* of the kind */
    } cases[] = {
        { "amd-discrete", "amd-discrete/3100/fdinfo/4", "drm-engine-compute:\t",
          88000000000, 1 },
        { "intel-discrete", "intel-discrete/4100/fdinfo/5", "drm-engine-render:\t",
          9288864723, 1 },
        { "intel-discrete", "intel-discrete/4100/fdinfo/5", "drm-engine-video:\t",
          52567609040, 2 },
    };
    const struct wm_gpu_process *processes;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char sysfs[64];

        print_message("  %s of %s\n", cases[i].line, cases[i].machine);
        assert_int_equal(test_make_dir(state), 0);
        snprintf(sysfs, sizeof(sysfs), "tests/data/sys-drm/%s", cases[i].machine);
        write_changed(*state, cases[i].fdinfo, cases[i].line, cases[i].before);
        int64_t found_ns = wm_clock_monotonic_ns();
        struct wm_source *source =
            open_trees(test_source_path(sysfs), make_proc(*state), NULL);
        read_all(source);
        assert_int_equal(wm_source_gpu_processes(source, &processes), 1);
        if (wm_clock_monotonic_ns() - found_ns < 10 * WM_NS_PER_MS)
            assert_int_equal(processes[0].sm_state, WM_READING_NONE);

        usleep(12 * 1000);
        read_all(source);
        int64_t after_ns = wm_clock_monotonic_ns();
        usleep(12 * 1000);
        write_changed(*state, cases[i].fdinfo, cases[i].line,
                      cases[i].before + WM_NS_PER_MS);
        int64_t before_ns = wm_clock_monotonic_ns();
        read_all(source);
        int64_t end_ns = wm_clock_monotonic_ns();
        wm_source_gpu_processes(source, &processes);
        assert_int_equal(processes[0].sm_state, WM_READING_OK);
        double most = (double)WM_NS_PER_MS / (double)(before_ns - after_ns);
        double least = (double)WM_NS_PER_MS / (double)(end_ns - found_ns);
        assert_true(processes[0].sm_ratio <= most / cases[i].engines);
        assert_true(processes[0].sm_ratio >= least / cases[i].engines);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* More cards than there is room for: the first come. */
static void test_too_many(void **state)
{
    const char *dir = *state;

    for (int i = 0; i < 70; i++) {
        char path[64];
        snprintf(path, sizeof(path), "class/drm/card%d/device/uevent", i);
        test_write_file(dir, path, "DRIVER=xe\n");
    }
    struct wm_source *source = open_trees(dir, make_proc(dir), NULL);
    assert_int_equal(wm_source_device_count(source), 64);
    read_all(source);
    wm_source_close(source);
}

static void check_allocation(const char *channels)
{
    const struct wm_source_config config = {
        .channels = channels,
        .sysfs = test_source_path("tests/data/sys-drm/amd-discrete"),
        .procfs = test_source_path("tests/data/proc-drm/amd-discrete"),
    };
    struct wm_source *source = NULL;
    size_t files = test_count_open_files();
    long step;

    for (step = 0; step < 50; step++) {
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_source_open("drm", &config, &source, &err);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_null(source);
        assert_int_equal(test_count_open_files(), files);
    }
    assert_in_range(step, 5, 49);

    read_all(source);
    test_fail_allocation(-1);
    for (int i = 0; i < 5; i++)
        read_twice(source);
    assert_int_equal(test_fail_allocation(-1), 0);
    assert_true(test_count_open_files() > files);
    wm_source_close(source);
    assert_int_equal(test_count_open_files(), files);
}

static void test_allocation(void **state)
{
    (void)state;
    check_allocation(NULL);
    check_allocation("all");
}

UNIT(source_drm)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        IN_SCRATCH(test_channels),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_choice_of_files),
        cmocka_unit_test(test_gpu_metrics),
        cmocka_unit_test(test_dies),
        IN_SCRATCH(test_second_die_alone),
        IN_SCRATCH(test_gpu_metrics_steps),
        IN_SCRATCH(test_asleep),
        IN_SCRATCH(test_no_permission),
        IN_SCRATCH(test_unseen_clients),
        cmocka_unit_test(test_no_gpu),
        IN_SCRATCH(test_time_alone),
        cmocka_unit_test(test_identity),
        IN_SCRATCH(test_links),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_long_path),
        IN_SCRATCH(test_hidden_bytes),
        cmocka_unit_test(test_first_reading),
        cmocka_unit_test(test_share_of_a_process),
        IN_SCRATCH(test_too_many),
        cmocka_unit_test(test_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
