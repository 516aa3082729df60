/* SPDX-License-Identifier: Apache-2.0 */
/* later_math.c - the functions of <math.h> that the command calls. The three that a first
 * tick needs are written out, so that it opens no library. */
#include <gnu/lib-names.h>
#include <math.h>
#include <stdint.h>

#include "later/later.h"

#define ONE(name) LATER(LIBM_SO, double, name, (double x), x)
#define TWO(name) LATER(LIBM_SO, double, name, (double x, double y), x, y)

ONE(erfc)
ONE(exp)
ONE(log)
ONE(log10)
ONE(log1p)
TWO(fmod)
TWO(hypot)
TWO(pow)
LATER(LIBM_SO, double, lgamma_r, (double x, int *sign), x, sign)
LATER(LIBM_SO, long, lround, (double x), x)
LATER(LIBM_SO, long long, llround, (double x), x)

/* With a NAN the other number counts. */
double fmax(double x, double y)
{
    return x > y || isnan(y) ? x : y;
}

double fmin(double x, double y)
{
    return x < y || isnan(y) ? x : y;
}

double round(double x)
{
    double size = fabs(x);

    if (!(size < 0x1p52)) /* it is whole, or no number */
        return x;
    double whole = (double)(int64_t)size;
    return copysign(size - whole < 0.5 ? whole : whole + 1, x);
}
