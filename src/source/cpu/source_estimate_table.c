/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_estimate_table.c - watts per hardware thread, by the CPU's design.
 *
 * The numbers are Cloud Carbon Footprint's (github.com/cloud-carbon-footprint/
 * ccf-coefficients, output/coefficients-aws-use.csv of March 2026): the means of
 * what servers with such CPUs drew, idle and busy, in their SPECpower_ssj2008
 * results, divided by the number of threads: the memory of a server is in there,
 * and its fans. It has no measurement of ARM, and
 * takes Graviton to be like the second EPYC. Its row for the fifth EPYC is left
 * out: five times the fourth, which nobody has seen.
 */
#include <string.h>

#include "source/cpu/source_estimate_model.h"

#define INTEL "GenuineIntel"
#define AMD "AuthenticAMD"
#define ANY_STEPPING 0, 15

/* Models first to last of a family; the steppings distinguish what shares a model. */
static const struct row {
    const char *vendor;
    uint64_t family, first, last;
    uint64_t first_stepping, last_stepping;
    struct wm_cpu_coefficients coefficients;
} rows[] = {
    { INTEL, 6, 42, 42, ANY_STEPPING, { "Sandy Bridge", 2.212, 8.631 } },
    { INTEL, 6, 45, 45, ANY_STEPPING, { "Sandy Bridge", 2.212, 8.631 } },
    { INTEL, 6, 58, 58, ANY_STEPPING, { "Ivy Bridge", 1.707, 5.557 } },
    { INTEL, 6, 62, 62, ANY_STEPPING, { "Ivy Bridge", 1.707, 5.557 } },
    { INTEL, 6, 60, 60, ANY_STEPPING, { "Haswell", 1.857, 5.595 } },
    { INTEL, 6, 63, 63, ANY_STEPPING, { "Haswell", 1.857, 5.595 } },
    { INTEL, 6, 79, 79, ANY_STEPPING, { "Broadwell", 0.713, 3.685 } },
    { INTEL, 6, 86, 86, ANY_STEPPING, { "Broadwell", 0.713, 3.685 } },
    { INTEL, 6, 94, 94, ANY_STEPPING, { "Skylake", 0.613, 4.104 } },
    { INTEL, 6, 85, 85, 0, 4, { "Skylake", 0.613, 4.104 } },
    { INTEL, 6, 85, 85, 5, 7, { "Cascade Lake", 0.690, 4.063 } },
    { INTEL, 6, 158, 158, 10, 15, { "Coffee Lake", 1.138, 5.422 } },
    { INTEL, 6, 106, 106, ANY_STEPPING, { "Ice Lake", 0.767, 3.758 } },
    { INTEL, 6, 108, 108, ANY_STEPPING, { "Ice Lake", 0.767, 3.758 } },
    { INTEL, 6, 143, 143, ANY_STEPPING, { "Sapphire Rapids", 1.036, 4.160 } },
    { INTEL, 6, 207, 207, ANY_STEPPING, { "Emerald Rapids", 0.814, 4.482 } },
    { INTEL, 6, 173, 174, ANY_STEPPING, { "Granite Rapids", 0.582, 2.527 } },
    { AMD, 23, 0x00, 0x0f, ANY_STEPPING, { "EPYC 1st Gen", 0.847, 2.604 } },
    { AMD, 23, 0x30, 0x3f, ANY_STEPPING, { "EPYC 2nd Gen", 0.474, 1.693 } },
    { AMD, 25, 0x00, 0x0f, ANY_STEPPING, { "EPYC 3rd Gen", 0.456, 1.957 } },
    { AMD, 25, 0x10, 0x1f, ANY_STEPPING, { "EPYC 4th Gen", 0.739, 2.282 } },
    { AMD, 25, 0xa0, 0xaf, ANY_STEPPING, { "EPYC 4th Gen", 0.739, 2.282 } },
};

static const struct wm_cpu_coefficients arm = { "Graviton, for any ARM", 0.474, 1.693 };

/* MIN_WATTS_AVG and MAX_WATTS_AVG of its AWS_CLOUD_CONSTANTS. */
static const struct wm_cpu_coefficients average = { "the average CPU of a cloud", 0.74,
                                                    3.5 };

const struct wm_cpu_coefficients *wm_cpu_coefficients(const struct wm_cpuinfo *cpuinfo)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (strcmp(cpuinfo->vendor, row->vendor) == 0 && cpuinfo->family == row->family &&
            cpuinfo->model >= row->first && cpuinfo->model <= row->last &&
            cpuinfo->stepping >= row->first_stepping &&
            cpuinfo->stepping <= row->last_stepping)
            return &row->coefficients;
    }
    return cpuinfo->is_arm ? &arm : &average;
}
