/* SPDX-License-Identifier: Apache-2.0 */
/* view_tariff.c - from joules to money and grams of CO2e. */
#include "view/view_units.h"

#include <stdio.h>
#include <string.h>

#include "base/base_text.h"

#define MOST_PRICE 1e6
#define MOST_CARBON 1e5
#define MOST_PUE 100.0

#define MOST_CURRENCY 15

/* Less money than this has more zeros than anybody counts. */
#define LEAST_MONEY 1e-6

/* NaN lies in no range. */
static bool is_given_within(double value, double least, double most)
{
    return value == 0 || (value >= least && value <= most);
}

static int check_currency(const char *currency, struct wm_error *err)
{
    char valid[4 * MOST_CURRENCY];
    size_t length = strlen(currency);

    if (length == 0 || length > MOST_CURRENCY)
        return wm_fail(err, WM_EINVAL, "currency: not a word of 1 to %d bytes, as EUR",
                       MOST_CURRENCY);
    wm_text_utf8(valid, sizeof(valid), currency, length);
    if (strcmp(valid, currency) != 0)
        return wm_fail(err, WM_EINVAL, "currency: not valid UTF-8");
    for (const unsigned char *at = (const unsigned char *)currency; *at; at++) {
        if (*at <= 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
            return wm_fail(err, WM_EINVAL,
                           "currency: has a blank or a control character in it");
    }
    return WM_OK;
}

int wm_tariff_of_style(const struct wm_report_style *style, struct wm_tariff *ret_tariff,
                       struct wm_error *err)
{
    const struct {
        const char *name;
        double value, least, most;
    } numbers[] = {
        { "price", style->price_per_kwh, 0, MOST_PRICE },
        { "carbon", style->carbon_g_per_kwh, 0, MOST_CARBON },
        { "pue", style->pue, 1, MOST_PUE },
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (!is_given_within(numbers[i].value, numbers[i].least, numbers[i].most))
            return wm_fail(err, WM_EINVAL, "%s: out of range, which is %.0f to %.0f",
                           numbers[i].name, numbers[i].least, numbers[i].most);
    }
    int status = style->currency ? check_currency(style->currency, err) : WM_OK;
    if (status == WM_OK)
        *ret_tariff = (struct wm_tariff) {
            .price = style->price_per_kwh,
            .currency = style->currency,
            .carbon = style->carbon_g_per_kwh,
            .pue = style->pue,
        };
    return status;
}

double wm_tariff_pue(const struct wm_tariff *tariff)
{
    return tariff->pue > 0 ? tariff->pue : 1;
}

struct wm_value wm_tariff_amount(const struct wm_tariff *tariff,
                                 const struct wm_value *joules, double per_kwh)
{
    struct wm_value amount = *joules;

    amount.number = amount.number / WM_JOULES_PER_KWH * wm_tariff_pue(tariff) * per_kwh;
    return amount;
}

void wm_tariff_kinds(const struct wm_tariff *tariff,
                     struct wm_tariff_kind ret_kinds[WM_TARIFF_KINDS])
{
    ret_kinds[0] =
        (struct wm_tariff_kind) { "Cost", tariff->currency ? tariff->currency : "",
                                  tariff->price, false };
    ret_kinds[1] = (struct wm_tariff_kind) { "CO2e", "g", tariff->carbon, true };
}

struct wm_quantity wm_tariff_text(const struct wm_tariff *tariff,
                                  const struct wm_tariff_kind *kind,
                                  const struct wm_value *joules, double ratio)
{
    double amount = wm_tariff_amount(tariff, joules, kind->per_kwh).number;
    const char *about = joules->why ? "at least " : wm_view_about(ratio);
    const char *blank = kind->unit[0] ? " " : "";
    struct wm_quantity text;

    if (kind->has_prefix)
        snprintf(text.text, sizeof(text.text), "%s%.38s", about,
                 wm_view_approximate(amount, ratio, kind->unit).text);
    else if (amount > 0 && amount < LEAST_MONEY && !joules->why)
        snprintf(text.text, sizeof(text.text), "under 0.000001%s%s", blank, kind->unit);
    else
        snprintf(text.text, sizeof(text.text), "%s%.20s%s%s", about,
                 wm_view_rounded(amount, ratio).text, blank, kind->unit);
    return text;
}

static bool is_battery(const struct wm_device_energy *device)
{
    return device->sensor == WM_SENSOR_BATTERY;
}

static void add_battery(const struct wm_device_energy *device, struct wm_platform *platform)
{
    size_t used = strlen(platform->name);

    snprintf(platform->name + used, sizeof(platform->name) - used, " and %s", device->name);
    if (platform->energy.known && device->figure.energy.known)
        platform->energy.number += device->figure.energy.number;
    else if (platform->energy.known)
        platform->energy = device->figure.energy;
    if (device->origin > platform->origin)
        platform->origin = device->origin;
}

bool wm_platform_next(const struct wm_report *report, size_t *at,
                      struct wm_platform *ret_platform)
{
    const struct wm_device_energy *devices = report->devices;
    size_t i = *at, count = report->device_count, first = 0;

    while (first < count && !is_battery(&devices[first]))
        first++;
    while (i < count && (devices[i].contains < WM_CONTAINS_MODULE || devices[i].heads ||
                         (is_battery(&devices[i]) && i != first)))
        i++;
    if (i >= count)
        return false;
    snprintf(ret_platform->name, sizeof(ret_platform->name), "%s", devices[i].name);
    ret_platform->energy = devices[i].figure.energy;
    ret_platform->contains = devices[i].contains;
    ret_platform->origin = devices[i].origin;
    for (size_t k = i + 1; is_battery(&devices[i]) && k < count; k++) {
        if (is_battery(&devices[k]))
            add_battery(&devices[k], ret_platform);
    }
    *at = i + 1;
    return true;
}
