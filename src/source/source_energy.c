/* SPDX-License-Identifier: Apache-2.0 */
/* source_energy.c - the best first: counters of the CPU itself, sensors beside it, what
 * another tool told, and a model. */
#include "source/source_energy.h"

const char *wm_energy_source(size_t index)
{
    static const char *const sources[] = { "rapl", "hwmon", "aipowermeter", "estimate" };

    return index < sizeof(sources) / sizeof(sources[0]) ? sources[index] : NULL;
}
