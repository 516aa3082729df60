/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_region_rates.c - see analyze_region_rates.h. */
#include "analyze/region/analyze_regions.h"

#include <math.h>

void wm_region_line_take(struct wm_region_line *line, double seconds, double joules,
                         struct wm_known busy_s)
{
    double step_j = joules - line->joules, step_s = busy_s.number - line->busy_s;
    bool has_step = line->started && busy_s.known && seconds > 0;

    line->started = busy_s.known;
    line->joules = joules;
    line->busy_s = busy_s.number;
    if (!has_step)
        return;
    line->count++;
    line->seconds += seconds;
    line->sum_j += step_j;
    line->sum_s += step_s;
    line->square_j += step_j * step_j / seconds;
    line->square_s += step_s * step_s / seconds;
    line->product += step_j * step_s / seconds;
}

/* The idle power of the packages divided by what all cores add at full load: our assumption
 * for packages of which nothing else is known. */
#define IDLE_LEAST 0.03
#define IDLE_MOST 1.2

/* A second of CPU time of one program may take this part more or less than of another: our
 * assumption. */
#define MIX 0.3

/* A line needs this many stretches, whose CPU times differ by much more than the kernel's
 * steps of 10 ms. */
#define LEAST_STRETCHES 6
#define STEP_S 0.01
#define LEAST_SIGNAL 5.0

/* Of a model whose highest power is known, idle cores show the slope: of so many of the
 * kernel's steps, at least. */
#define LEAST_IDLE_STEPS 50

/* The rate if idle power is that part of what all cores add. */
static double rate_at(double watts, double cores, double busy, double idle)
{
    return watts / (idle * cores + busy);
}

/* The slope of the line through all stretches narrows what is known of the rate. */
static void narrow(struct wm_region_rates *rates, const struct wm_region_line *line)
{
    double *low = &rates->of[WM_REGION_RATE_LOW], *high = &rates->of[WM_REGION_RATE_HIGH];
    double n = (double)line->count;

    if (line->count < LEAST_STRETCHES)
        return;
    double s2 = line->square_s - line->sum_s * line->sum_s / line->seconds;
    double j2 = line->square_j - line->sum_j * line->sum_j / line->seconds;
    double js = line->product - line->sum_j * line->sum_s / line->seconds;
    double noise2 = STEP_S * STEP_S * n * n / line->seconds;
    if (s2 < LEAST_SIGNAL * noise2)
        return;
    double slope = js / (s2 - noise2 / 2);
    double left2 = fmax(j2 - js * js / s2, 0) / (n - 2);
    double off = hypot(2 * sqrt(left2 / s2), slope * noise2 / s2);
    double from = fmin(fmax(slope - off, *low), *high);
    *high = fmax(fmin(slope + off, *high), from);
    *low = from;
}

static void set_range(struct wm_region_rates *rates, double low, double high, double most)
{
    rates->of[WM_REGION_RATE_LOW] = fmin(fmax(low, 0), most);
    rates->of[WM_REGION_RATE_HIGH] = fmin(fmax(high, 0), most);
}

struct wm_region_rates wm_region_rates_of(const struct wm_region_package *package,
                                          const struct wm_region_line *line)
{
    struct wm_region_rates rates = { 0 };
    double busy_s = fmax(package->busy_s, package->tree_s);

    if (!(package->joules > 0 && package->seconds > 0 && package->tree_s > 0))
        return rates;
    double watts = package->joules / package->seconds, busy = busy_s / package->seconds;
    double most = watts / busy, cores = fmax(package->cores, busy);
    double idle_s = (cores - busy) * package->seconds;
    if (package->most_w.known && idle_s >= LEAST_IDLE_STEPS * STEP_S) {
        double modelled = (package->most_w.number - watts) / (cores - busy);
        set_range(&rates, modelled, modelled, most);
    } else if (package->idle_w.known) {
        double beyond = watts - package->idle_w.number, off = package->idle_off_w;
        set_range(&rates, (beyond - off) / busy, (beyond + off) / busy, most);
    } else {
        set_range(&rates, rate_at(watts, cores, busy, IDLE_MOST),
                  rate_at(watts, cores, busy, IDLE_LEAST), most);
        narrow(&rates, line);
    }
    double middle = (rates.of[WM_REGION_RATE_LOW] + rates.of[WM_REGION_RATE_HIGH]) / 2;
    rates.of[WM_REGION_RATE_MIDDLE] = middle;
    rates.of[WM_REGION_RATE_TREE] = fmax(package->tree_j, 0) / package->tree_s;
    rates.mix = package->most_w.known ? 0 : MIX;
    rates.residual_w = middle * (rates.mix * package->tree_s + busy_s - package->tree_s) /
                       package->seconds;
    return rates;
}
