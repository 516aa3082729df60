/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_json.h - reading a scenario, whatever part of it. A misspelt key
 * would make a test pass that tests nothing, so what is not understood is
 * refused, with its place. */
#ifndef FAKE_NVML_JSON_H
#define FAKE_NVML_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fake_nvml_curve.h"

/* Where in the scenario we are, for the message when it is wrong. */
struct place {
    const char *file;
    char path[128];
};

struct place inside(const struct place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always false, which is what the caller then returns. */
bool refuse(const struct place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "!" at the end of `format` refuses keys that it does not name. */
bool unpack(const struct place *place, json_t *json, const char *format, ...);

bool copy_text(const struct place *place, char *out, size_t size, const char *text);

/* A curve is a number, a list of points, or an object that says more. Where there
 * is none it is `otherwise`, and null leaves it without any value. */
bool parse_curve(const struct place *place, json_t *json, double otherwise, double lowest,
                 struct curve *curve);

#endif
