/* SPDX-License-Identifier: Apache-2.0 */
/* view_units.h - units by name, quantities as people read them, and what energy comes to in
 * money and in CO2e, by factors that the user gave: as good as they are. The locale of
 * the host program has no say in any of it. */
#ifndef WM_VIEW_UNITS_H
#define WM_VIEW_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "analyze/analyze_figures.h"
#include "base/base_error.h"
#include "wattmeter/report.h"

#define WM_JOULES_PER_KWH 3.6e6

/* Of a kilowatt-hour; all zero: none was given. */
struct wm_tariff {
    double price;         /* in `currency` */
    const char *currency; /* may be NULL; borrowed from the style */
    double carbon;        /* g CO2e */
    double pue;           /* 0: as 1 */
};

/* WM_EINVAL for what is out of range, no number, or a currency that would garble a
 * line. */
int wm_tariff_of_style(const struct wm_report_style *style, struct wm_tariff *ret_tariff,
                       struct wm_error *err);

/* The factor by which the data centre takes more than its machines. */
double wm_tariff_pue(const struct wm_tariff *tariff);

/* What so many joules come to at so much per kilowatt-hour, with what the data centre
 * adds. Energy that is not known has no price either. */
struct wm_value wm_tariff_amount(const struct wm_tariff *tariff,
                                 const struct wm_value *joules, double per_kwh);

/* Money or CO2e. */
struct wm_tariff_kind {
    const char *label;
    const char *unit;
    double per_kwh;  /* 0: nobody asked for it */
    bool has_prefix; /* mg, kg: grams have prefixes, money has none */
};

enum { WM_TARIFF_KINDS = 2 };
void wm_tariff_kinds(const struct wm_tariff *tariff,
                     struct wm_tariff_kind ret_kinds[WM_TARIFF_KINDS]);

/* What something measured of more of the machine than its parts. Batteries that share the
 * load are that together. */
struct wm_platform {
    char name[64]; /* "psys"; "BAT0 and BAT1" */
    struct wm_value energy;
    enum wm_contains contains;
    enum wm_origin origin;
};

/* The next of a report from device number `*at` on, which starts at 0; false: there is no
 * more. */
bool wm_platform_next(const struct wm_report *report, size_t *at,
                      struct wm_platform *ret_platform);

struct wm_unit {
    const char *name;   /* "gigabytes" */
    const char *symbol; /* "GB" */
    double size;        /* in bytes or seconds */
};

/* The units of a style, NULL for those it leaves open, what a kilowatt-hour is in money and
 * CO2e, and how much is said. */
struct wm_units {
    const struct wm_unit *ram, *gpu_ram, *time;
    struct wm_tariff tariff;
    int verbosity;
    bool for_terminal, blocks_only;
};

/* WM_EINVAL for a word that is no unit and a number out of range. `style` may be NULL. */
int wm_units_of_style(const struct wm_report_style *style, struct wm_units *ret_units,
                      struct wm_error *err);

/* What a figure is measured in where nothing scales it. */
const struct wm_unit *wm_unit_plain(enum wm_figure_unit unit);

/* Enough for every quantity below. */
#define WM_QUANTITY_SIZE 48

struct wm_quantity {
    char text[WM_QUANTITY_SIZE];
};

/* `value` with so many significant digits, but with all that stand before the
 * point: 12345, 12.3, 0.00123. */
struct wm_quantity wm_view_number(double value, int digits);

/* `value` with so many decimals: 3.00. */
struct wm_quantity wm_view_fixed(double value, int decimals);

/* "512 MB": in `unit`, or where that is NULL in the one that fits best. */
struct wm_quantity wm_view_bytes(double bytes, const struct wm_unit *unit);

/* "12.34 s", "1 h 02 min 03 s"; `unit` as above. */
struct wm_quantity wm_view_duration(double seconds, const struct wm_unit *unit);

/* "3.21 kJ": `symbol` with the prefix that fits best. */
struct wm_quantity wm_view_prefixed(double value, const char *symbol);

/* The same in as many digits as an error of `ratio` leaves: "4 J" of 3.913 J that may be
 * off by half, "5.97 kJ" where the ratio is 0. */
struct wm_quantity wm_view_approximate(double value, double ratio, const char *symbol);

struct wm_quantity wm_view_rounded(double value, double ratio); /* without a prefix */

/* "about " before what is so rough; else "". */
const char *wm_view_about(double ratio);

/* "8.8 %" */
struct wm_quantity wm_view_percent(double ratio);

/* What known joules, which may be off by `ratio`, come to: "about 0.02 EUR". */
struct wm_quantity wm_tariff_text(const struct wm_tariff *tariff,
                                  const struct wm_tariff_kind *kind,
                                  const struct wm_value *joules, double ratio);

#endif
