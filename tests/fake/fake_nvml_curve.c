/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_curve.c - steps and straight lines, once or for ever. */
#include "fake_nvml_curve.h"

#include <math.h>

/* One pass, without the repetition. */
static double value_once(const struct curve *curve, double time)
{
    const struct curve_point *point = curve->points;
    const struct curve_point *last = curve->points + curve->count - 1;

    if (time < point->time)
        return point->value;
    while (point < last && point[1].time <= time)
        point++;
    if (point == last || curve->steps)
        return point->value;

    double share = (time - point->time) / (point[1].time - point->time);
    return point->value + share * (point[1].value - point->value);
}

static double area_once(const struct curve *curve, double time)
{
    double area = 0, from = 0, from_value = curve->points[0].value;

    for (size_t i = 0; i < curve->count && curve->points[i].time <= time; i++) {
        const struct curve_point *point = &curve->points[i];
        double to_value = curve->steps ? from_value : point->value;

        area += (point->time - from) * (from_value + to_value) / 2;
        from = point->time;
        from_value = point->value;
    }
    double to_value = curve->steps ? from_value : value_once(curve, time);
    return area + (time - from) * (from_value + to_value) / 2;
}

double curve_value(const struct curve *curve, double time)
{
    if (curve->count == 0)
        return NAN;
    return value_once(curve, curve->repeat > 0 ? fmod(time, curve->repeat) : time);
}

double curve_area(const struct curve *curve, double time)
{
    if (curve->count == 0)
        return NAN;
    if (curve->repeat <= 0)
        return area_once(curve, time);

    double passes = floor(time / curve->repeat);
    return passes * area_once(curve, curve->repeat) +
           area_once(curve, time - passes * curve->repeat);
}
