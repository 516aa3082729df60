/* SPDX-License-Identifier: Apache-2.0 */
/* compat_codecarbon.h - a report as CodeCarbon's emissions.csv has it; for src/view
 * alone. */
#ifndef WM_COMPAT_CODECARBON_H
#define WM_COMPAT_CODECARBON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "analyze/analyze_report.h"
#include "view/view_units.h"

/* The names of all columns that the version of today writes, with its newline. */
void wm_codecarbon_header(FILE *out);

/* Whether header[0..length), a line without its end, names CodeCarbon's columns, in
 * whatever order: those that each of its versions has had since 2.1, no unknown one,
 * and none twice. */
bool wm_codecarbon_is_header(const char *header, size_t length);

/* One row, with its newline, in the order of such a header; NULL is our own. */
void wm_codecarbon_row(const struct wm_report *report, const struct wm_tariff *tariff,
                       const char *header, size_t length, FILE *out);

#endif
