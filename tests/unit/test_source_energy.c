/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_energy.c - of several sources that know the same CPUs and memory, which
 * one counts. */
#include <string.h>

#include "source/source_energy.h"
#include "test.h"

#define CPU WM_DEVICE_CPU
#define DRAM WM_DEVICE_DRAM
#define OWN WM_CONTAINS_DEVICE

static struct wm_energy_offer offer_at(const void *list, size_t index)
{
    const struct wm_energy_offer *offers = list;

    return offers[index];
}

struct expected {
    const char *source; /* NULL: none */
    bool is_known, is_estimated, has_memory, is_refused;
};

static void check(const char *row, const char *what, const struct wm_energy_choice *choice,
                  const struct expected *expected)
{
    const char *source = choice->source ? choice->source : "none";

    if (strcmp(source, expected->source ? expected->source : "none") != 0)
        fail_msg("%s: %s by %s", row, what, source);
    if (choice->is_known != expected->is_known ||
        choice->is_estimated != expected->is_estimated ||
        choice->has_memory != expected->has_memory ||
        choice->is_refused != expected->is_refused)
        fail_msg("%s: %s: known %d, estimated %d, with memory %d, refused %d", row, what,
                 choice->is_known, choice->is_estimated, choice->has_memory,
                 choice->is_refused);
}

static void test_choice(void **state)
{
    static const struct {
        const char *name;
        struct wm_energy_offer offers[5];
        size_t count;
        struct expected cpu, dram;
    } rows[] = {
        { "nothing", { { 0 } }, 0, { 0 }, { 0 } },
        { "devices of other kinds",
          { { "rapl", WM_SENSOR_BUILT_IN, WM_DEVICE_PLATFORM, WM_MEASURED, true, OWN },
            { "nvml", WM_SENSOR_BUILT_IN, WM_DEVICE_GPU, WM_MEASURED, true, OWN } },
          2,
          { 0 },
          { 0 } },
        { "a source that is not in the list",
          { { "battery", WM_SENSOR_BATTERY, CPU, WM_MEASURED, true, OWN } },
          1,
          { 0 },
          { 0 } },
        { "the best of two",
          { { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, true, OWN },
            { "hwmon", WM_SENSOR_BOARD, DRAM, WM_MEASURED, true, OWN } },
          4,
          { "rapl", true, false, false, false },
          { "rapl", true, false, false, false } },
        { "another tool of which nothing more is known, before a model",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "joulemeter", WM_SENSOR_UNKNOWN, CPU, WM_MEASURED, true, OWN } },
          2,
          { "joulemeter", true, false, false, false },
          { 0 } },
        { "one that knows all goes before one that does not",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, false, OWN },
            { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN } },
          4,
          { "hwmon", true, false, false, false },
          { 0 } },
        { "what was measured of some goes before an estimate of all",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, false, OWN },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN } },
          3,
          { "rapl", false, false, false, false },
          { 0 } },
        { "of those that do not know the best is to blame",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, false, OWN },
            { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, false, OWN } },
          2,
          { "hwmon", false, false, false, false },
          { 0 } },
        { "an estimate of the CPUs is of the memory too",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, true, OWN } },
          2,
          { "estimate", true, true, true, false },
          { "rapl", true, false, false, false } },
        { "unless it has one for memory",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true, OWN } },
          2,
          { "estimate", true, true, false, false },
          { "estimate", true, true, false, false } },
        { "the same, out of another tool's folder",
          { { "aipowermeter", WM_SENSOR_TOOL, CPU, WM_ESTIMATED, true, OWN },
            { "aipowermeter", WM_SENSOR_TOOL, DRAM, WM_ESTIMATED, true, OWN } },
          2,
          { "aipowermeter", true, true, false, false },
          { "aipowermeter", true, true, false, false } },
        { "an estimate of the memory beside measured CPUs",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true, OWN } },
          3,
          { "rapl", true, false, false, false },
          { NULL, false, false, false, true } },
        { "beside CPUs whose counter is dead",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, false, OWN },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true, OWN } },
          3,
          { "estimate", true, true, false, false },
          { "estimate", true, true, false, false } },
        { "beside measured memory",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, OWN },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, false, OWN },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true, OWN },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true, OWN } },
          4,
          { "rapl", true, false, false, false },
          { "rapl", false, false, false, false } },
        { "without any CPUs",
          { { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true, OWN } },
          1,
          { 0 },
          { "estimate", true, true, false, false } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_energy_offers offers = { rows[i].offers, rows[i].count, offer_at };
        struct wm_energy_choice choice;

        print_message("  %s\n", rows[i].name);
        wm_energy_choose(&offers, CPU, &choice);
        check(rows[i].name, "CPUs", &choice, &rows[i].cpu);
        wm_energy_choose(&offers, DRAM, &choice);
        check(rows[i].name, "memory", &choice, &rows[i].dram);
    }
}

#define MODULE WM_CONTAINS_MODULE
#define PLATFORM WM_CONTAINS_PLATFORM
#define BOARD_METER(source_, contains_)                                                    \
    {                                                                                      \
        source_, WM_SENSOR_BOARD, WM_DEVICE_PLATFORM, WM_MEASURED, true, contains_         \
    }
#define GPU_METER                                                                          \
    {                                                                                      \
        "nvml", WM_SENSOR_BUILT_IN, WM_DEVICE_GPU, WM_MEASURED, true, MODULE               \
    }
#define BATTERY(is_known_)                                                                 \
    {                                                                                      \
        "battery", WM_SENSOR_BATTERY, WM_DEVICE_PLATFORM, WM_MEASURED, is_known_, PLATFORM \
    }
#define PSYS                                                                               \
    {                                                                                      \
        "rapl", WM_SENSOR_BUILT_IN, WM_DEVICE_PLATFORM, WM_MEASURED, true, PLATFORM        \
    }

/* Which of the meters that contain all devices is the one, and what stands beside it. */
static void test_meter(void **state)
{
    static const struct {
        const char *name;
        struct wm_energy_offer offers[4];
        size_t count;
        enum wm_contains most;
        unsigned chosen; /* a bit for each offer */
    } rows[] = {
        { "none", { PSYS }, 1, MODULE, 0 },
        { "a package contains no other",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true, WM_CONTAINS_PACKAGE } },
          1,
          PLATFORM,
          0 },
        { "two meters of the platform contain each other",
          { BOARD_METER("hwmon", PLATFORM), PSYS, BOARD_METER("hwmon", PLATFORM) },
          3,
          PLATFORM,
          2 },
        { "of two of one source nobody knows whether they do",
          { BOARD_METER("hwmon", PLATFORM), BOARD_METER("hwmon", PLATFORM) },
          2,
          PLATFORM,
          0 },
        { "modules stand side by side, and before the platform",
          { PSYS, BOARD_METER("hwmon", MODULE), BOARD_METER("hwmon", MODULE) },
          3,
          PLATFORM,
          6 },
        { "the board's meter of a module before the GPU's",
          { GPU_METER, BOARD_METER("hwmon", MODULE) },
          2,
          MODULE,
          2 },
        { "the GPU's", { GPU_METER, PSYS }, 2, PLATFORM, 1 },
        { "GPUs that may share a module", { GPU_METER, GPU_METER, PSYS }, 3, PLATFORM, 4 },
        { "batteries in use",
          { BATTERY(true), BATTERY(false), BATTERY(true) },
          3,
          PLATFORM,
          5 },
        { "an estimate is no meter",
          { { "model", WM_SENSOR_MODEL, WM_DEVICE_PLATFORM, WM_ESTIMATED, true,
              PLATFORM } },
          1,
          PLATFORM,
          0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_energy_offers offers = { rows[i].offers, rows[i].count, offer_at };
        struct wm_energy_meter meter;
        unsigned chosen = 0;

        wm_energy_find_meter(&offers, rows[i].most, &meter);
        for (size_t k = 0; k < rows[i].count; k++)
            chosen |= (unsigned)wm_energy_is_of_meter(&offers, &meter, k) << k;
        if (chosen != rows[i].chosen)
            fail_msg("%s: %x, not %x", rows[i].name, chosen, rows[i].chosen);
    }
}

UNIT(source_energy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_meter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
