/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_json.c - what is wrong in a scenario, and where; values and curves. */
#include "fake_nvml_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place inside(const struct place *place, const char *format, ...)
{
    struct place inner = *place;
    size_t length = strlen(inner.path);
    va_list args;

    va_start(args, format);
    vsnprintf(inner.path + length, sizeof(inner.path) - length, format, args);
    va_end(args);
    return inner;
}

bool refuse(const struct place *place, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "fake NVML: %s: %s: ", place->file,
            place->path[0] ? place->path : "top level");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

bool unpack(const struct place *place, json_t *json, const char *format, ...)
{
    json_error_t error = { 0 };
    va_list args;

    va_start(args, format);
    int status = json_vunpack_ex(json, &error, 0, format, args);
    va_end(args);
    return status == 0 || refuse(place, "%s", error.text);
}

bool copy_text(const struct place *place, char *out, size_t size, const char *text)
{
    int length = snprintf(out, size, "%s", text);
    return (size_t)length < size || refuse(place, "'%s' is too long", text);
}

/* A curve is a number, a list of points, or an object that says more. */

static bool set_constant(struct curve *curve, double value)
{
    curve->points = calloc(1, sizeof(*curve->points));
    if (!curve->points)
        return false;
    curve->points[0].value = value;
    curve->count = 1;
    return true;
}

static bool set_points(struct curve *curve, const struct place *place, json_t *json)
{
    double before = 0;

    if (!json_is_array(json) || json_array_size(json) == 0)
        return refuse(place, "points are a list of [seconds, value]");
    curve->points = calloc(json_array_size(json), sizeof(*curve->points));
    if (!curve->points)
        return false;

    for (size_t i = 0; i < json_array_size(json); i++) {
        struct place here = inside(place, "[%zu]", i);
        struct curve_point *point = &curve->points[i];

        if (!unpack(&here, json_array_get(json, i), "[FF!]", &point->time, &point->value))
            return false;
        if (point->time < before)
            return refuse(&here, "time goes back to %g s", point->time);
        before = point->time;
        curve->count++;
    }
    return true;
}

static bool set_square(struct curve *curve, const struct place *place, json_t *json)
{
    const char *shape = NULL;
    double low = 0, high = 0, period = 0, duty = 0.5;

    if (!unpack(place, json, "{ss, sF, sF, sF, s?F !}", "shape", &shape, "low", &low,
                "high", &high, "period", &period, "duty", &duty))
        return false;
    if (period <= 0 || duty <= 0 || duty >= 1)
        return refuse(place, "a square needs a period above 0 and a duty within 0 and 1");
    curve->points = calloc(2, sizeof(*curve->points));
    if (!curve->points)
        return false;

    curve->points[0] = (struct curve_point) { 0, high };
    curve->points[1] = (struct curve_point) { duty * period, low };
    curve->count = 2;
    curve->steps = true;
    curve->repeat = period;
    return true;
}

static bool set_shape(struct curve *curve, const struct place *place, json_t *json)
{
    const char *shape = "linear";
    json_t *points = NULL;

    if (!unpack(place, json, "{s?s}", "shape", &shape))
        return false;
    if (strcmp(shape, "square") == 0)
        return set_square(curve, place, json);
    if (strcmp(shape, "step") != 0 && strcmp(shape, "linear") != 0)
        return refuse(place, "shape '%s' is none of linear, step, square", shape);

    struct place here = inside(place, ".points");
    if (!unpack(place, json, "{s?s, so, s?F !}", "shape", &shape, "points", &points,
                "repeat", &curve->repeat) ||
        !set_points(curve, &here, points))
        return false;
    curve->steps = strcmp(shape, "step") == 0;
    if (curve->repeat < 0 ||
        (curve->repeat > 0 && curve->repeat < curve->points[curve->count - 1].time))
        return refuse(place, "repeats after %g s, before the last point", curve->repeat);
    return true;
}

bool parse_curve(const struct place *place, json_t *json, double otherwise, double lowest,
                 struct curve *curve)
{
    bool done = false;

    if (!json)
        return isnan(otherwise) || set_constant(curve, otherwise);
    if (json_is_null(json))
        return true;
    if (json_is_number(json))
        done = set_constant(curve, json_number_value(json));
    else if (json_is_array(json))
        done = set_points(curve, place, json);
    else if (json_is_object(json))
        done = set_shape(curve, place, json);
    else
        refuse(place, "is a number, a list of points, an object or null");

    for (size_t i = 0; done && i < curve->count; i++) {
        if (curve->points[i].value < lowest)
            return refuse(place, "%g is below %g", curve->points[i].value, lowest);
    }
    return done;
}
