/* SPDX-License-Identifier: Apache-2.0 */
/* view_units.h - units by name, and quantities as people read them. The locale of
 * the host program has no say in any of it. */
#ifndef WM_VIEW_UNITS_H
#define WM_VIEW_UNITS_H

#include <stddef.h>

#include "base/base_error.h"
#include "view/text/view_tariff.h"
#include "wattmeter/report.h"

struct wm_unit {
    const char *name;   /* "gigabytes" */
    const char *symbol; /* "GB" */
    double size;        /* in bytes or seconds */
};

/* The units of a style, NULL for those it leaves open, and what a kilowatt-hour is in
 * money and CO2e. */
struct wm_units {
    const struct wm_unit *ram, *gpu_ram, *time;
    struct wm_tariff tariff;
};

/* WM_EINVAL for a word that is no unit and a number out of range. `style` may be NULL. */
int wm_units_of_style(const struct wm_report_style *style, struct wm_units *ret_units,
                      struct wm_error *err);

/* Those of gpu_tracker where the user leaves them open. */
const struct wm_unit *wm_unit_gigabytes(void);
const struct wm_unit *wm_unit_hours(void);

/* The units of numbers in SI. */
const struct wm_unit *wm_unit_bytes(void);
const struct wm_unit *wm_unit_seconds(void);

/* Enough for every quantity below. */
#define WM_QUANTITY_SIZE 48

/* `value` with so many significant digits, but with all that stand before the
 * point: 12345, 12.3, 0.00123. */
void wm_view_number(char text[WM_QUANTITY_SIZE], double value, int digits);

/* `value` with so many decimals: 3.00. */
void wm_view_fixed(char text[WM_QUANTITY_SIZE], double value, int decimals);

/* "512 MB": in `unit`, or where that is NULL in the one that fits best. */
void wm_view_bytes(char text[WM_QUANTITY_SIZE], double bytes, const struct wm_unit *unit);

/* "12.34 s", "1 h 02 min 03 s"; `unit` as above. */
void wm_view_duration(char text[WM_QUANTITY_SIZE], double seconds,
                      const struct wm_unit *unit);

/* "3.21 kJ": `symbol` with the prefix that fits best. */
void wm_view_prefixed(char text[WM_QUANTITY_SIZE], double value, const char *symbol);

#endif
