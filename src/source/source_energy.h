/* SPDX-License-Identifier: Apache-2.0 */
/* source_energy.h - which sources know the energy of CPUs and memory. */
#ifndef WM_SOURCE_ENERGY_H
#define WM_SOURCE_ENERGY_H

#include <stddef.h>

/* Several sources may know the energy of the same CPUs and memory. The first of
 * these that does counts; NULL past the last. Not each of them can be opened: the
 * channels of some are in recordings only. */
const char *wm_energy_source(size_t index);

#endif
