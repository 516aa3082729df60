/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_energy.c - of several sources that know the same CPUs and memory, which
 * one counts. */
#include <string.h>

#include "source/cpu/source_energy.h"
#include "test.h"

#define CPU WM_DEVICE_CPU
#define DRAM WM_DEVICE_DRAM

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
          { { "rapl", WM_SENSOR_BUILT_IN, WM_DEVICE_PLATFORM, WM_MEASURED, true },
            { "nvml", WM_SENSOR_BUILT_IN, WM_DEVICE_GPU, WM_MEASURED, true } },
          2,
          { 0 },
          { 0 } },
        { "a source that is not in the list",
          { { "battery", WM_SENSOR_BATTERY, CPU, WM_MEASURED, true } },
          1,
          { 0 },
          { 0 } },
        { "the best of two",
          { { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, true },
            { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, true },
            { "hwmon", WM_SENSOR_BOARD, DRAM, WM_MEASURED, true } },
          4,
          { "rapl", true, false, false, false },
          { "rapl", true, false, false, false } },
        { "another tool of which nothing more is known, before a model",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "joulemeter", WM_SENSOR_UNKNOWN, CPU, WM_MEASURED, true } },
          2,
          { "joulemeter", true, false, false, false },
          { 0 } },
        { "one that knows all goes before one that does not",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true },
            { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, false },
            { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, true },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true } },
          4,
          { "hwmon", true, false, false, false },
          { 0 } },
        { "of those that do not know the best is to blame",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, false },
            { "hwmon", WM_SENSOR_BOARD, CPU, WM_MEASURED, false } },
          2,
          { "hwmon", false, false, false, false },
          { 0 } },
        { "an estimate of the CPUs is of the memory too",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, true } },
          2,
          { "estimate", true, true, true, false },
          { "rapl", true, false, false, false } },
        { "unless it has one for memory",
          { { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true } },
          2,
          { "estimate", true, true, false, false },
          { "estimate", true, true, false, false } },
        { "the same, out of another tool's folder",
          { { "aipowermeter", WM_SENSOR_TOOL, CPU, WM_ESTIMATED, true },
            { "aipowermeter", WM_SENSOR_TOOL, DRAM, WM_ESTIMATED, true } },
          2,
          { "aipowermeter", true, true, false, false },
          { "aipowermeter", true, true, false, false } },
        { "an estimate of the memory beside measured CPUs",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true } },
          3,
          { "rapl", true, false, false, false },
          { NULL, false, false, false, true } },
        { "beside CPUs whose counter is dead",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, false },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true } },
          3,
          { "estimate", true, true, false, false },
          { "estimate", true, true, false, false } },
        { "beside measured memory",
          { { "rapl", WM_SENSOR_BUILT_IN, CPU, WM_MEASURED, true },
            { "rapl", WM_SENSOR_BUILT_IN, DRAM, WM_MEASURED, false },
            { "estimate", WM_SENSOR_MODEL, CPU, WM_ESTIMATED, true },
            { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true } },
          4,
          { "rapl", true, false, false, false },
          { "rapl", false, false, false, false } },
        { "without any CPUs",
          { { "estimate", WM_SENSOR_MODEL, DRAM, WM_ESTIMATED, true } },
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
