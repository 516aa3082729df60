/* SPDX-License-Identifier: Apache-2.0 */
/* view_axis.c - what the axes of every chart show. */
#include "wattmeter/axis.h"

#include <float.h>
#include <math.h>

#include "view/chart/view_mark.h"

#define TIME_AHEAD 1.0      /* seconds, so that the newest sample stands off the edge */
#define MARGIN_OF_RANGE 0.1 /* of a value axis, on both sides */
#define MARGIN_LEAST 0.1    /* of the unit: a line that is level is seen as one */
#define ROUNDING 1e-9       /* of a step, by which a mark may miss the end of the axis */
/* Steps that can be told apart, relative to the value. */
#define FINEST (16 * DBL_EPSILON)

/* An axis of what cannot be drawn is one of 0. A margin vanishes in values that are large
 * enough; the axis does not. */
static struct wm_axis make(double low, double high)
{
    double wide = fmax(1, FINEST * fmax(fabs(low), fabs(high)));

    if (!isfinite(low) || !isfinite(high))
        return (struct wm_axis) { 0, 1 };
    if (low < high)
        return (struct wm_axis) { low, high };
    return (struct wm_axis) { fmax(high - wide, -DBL_MAX), fmin(low + wide, DBL_MAX) };
}

struct wm_axis wm_axis_of_time(double oldest, double newest)
{
    return make(oldest, newest + TIME_AHEAD);
}

struct wm_axis wm_axis_of_values(double least, double greatest)
{
    double margin = MARGIN_OF_RANGE * fabs(greatest - least) + MARGIN_LEAST;

    return make(least - margin, greatest + margin);
}

/* The first step of the row 1, 2, 5, 10, ... that is not below `least`. */
static double round_step(double least)
{
    static const double steps[] = { 1, 2, 5 };
    double power = pow(10, floor(log10(least)));

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i] * power >= least * (1 - FINEST))
            return steps[i] * power;
    }
    return 10 * power;
}

size_t wm_axis_marks(const struct wm_axis *axis, size_t most, double *ret_marks)
{
    double range = axis->high - axis->low;
    double farthest = fmax(fabs(axis->low), fabs(axis->high));

    if (most == 0 || !isfinite(range) || range <= FINEST * farthest * (double)most)
        return 0;
    double step = round_step(range / (double)most);
    double first = ceil(axis->low / step - ROUNDING);
    double last = floor(axis->high / step + ROUNDING);
    if (last - first + 1 > (double)most) /* both ends of the axis happen to be marks */
        return wm_axis_marks(axis, most - 1, ret_marks);
    size_t count = 0;
    for (double n = first; n <= last; n++) /* none is -0 */
        ret_marks[count++] = fmin(fmax(n * step + 0.0, axis->low), axis->high);
    return count;
}
