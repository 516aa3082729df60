/* SPDX-License-Identifier: Apache-2.0 */
/* view_tariff.h - what energy comes to in money and in CO2e, by factors that the user
 * gave: as good as they are. */
#ifndef WM_VIEW_TARIFF_H
#define WM_VIEW_TARIFF_H

#include "analyze/analyze_report.h"
#include "base/base_error.h"
#include "wattmeter/report.h"

#define WM_JOULES_PER_KWH 3.6e6

/* Of a kilowatt-hour; all zero: none was given. */
struct wm_tariff {
    double price;         /* in `currency`, */
    const char *currency; /* which may be NULL; borrowed from the style */
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

/* What something measured of more of the machine than its parts. Batteries that share the
 * load are that together. */
struct wm_platform {
    char name[64]; /* "psys"; "BAT0 and BAT1" */
    struct wm_value energy;
    enum wm_origin origin;
};

/* The next of a report from device number `*at` on, which starts at 0; false: there is no
 * more. */
bool wm_platform_next(const struct wm_report *report, size_t *at,
                      struct wm_platform *ret_platform);

#endif
