/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_python.c - numbers as pandas and Python write them, and JSON as
 * Python's json.dumps(..., indent=1) does. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

#define MOST_DECIMALS 6

/* Python writes an exponent below 1e-4 and from 1e16 on. */
#define LEAST_FIXED (-4)
#define LEAST_EXPONENT 16

/* Digits after the first one that distinguish any two doubles. */
#define MOST_DIGITS 16

void wm_gpu_tracker_number(char text[WM_GPU_TRACKER_NUMBER_SIZE], struct wm_known known,
                           int decimals)
{
    double value = known.number;

    if (!known.known) {
        snprintf(text, WM_GPU_TRACKER_NUMBER_SIZE, "NaN");
    } else if (isinf(value)) {
        snprintf(text, WM_GPU_TRACKER_NUMBER_SIZE, value < 0 ? "-inf" : " inf");
    } else {
        /* Six first: rounded once, and then cut where zeros are. */
        snprintf(text, WM_GPU_TRACKER_NUMBER_SIZE, "% .*f", MOST_DECIMALS, value);
        wm_number_put_point(text);
        text[strlen(text) - (size_t)(MOST_DECIMALS - decimals)] = '\0';
    }
}

int wm_gpu_tracker_decimals(struct wm_known value)
{
    char text[WM_GPU_TRACKER_NUMBER_SIZE];
    int decimals = MOST_DECIMALS;

    if (!value.known || !isfinite(value.number))
        return 1;
    wm_gpu_tracker_number(text, value, MOST_DECIMALS);
    for (size_t last = strlen(text) - 1; text[last] == '0' && decimals > 1; last--)
        decimals--;
    return decimals;
}

/* The fewest digits after the first one that give the same double again. A decimal number
 * of DBL_DIG digits is the same again after it was a double, so where that many do, only
 * zeros follow the fewest; smaller doubles than DBL_MIN have fewer. */
static int fewest_digits(double value)
{
    int digits = fabs(value) < DBL_MIN ? 0 : DBL_DIG - 1;
    char text[WM_PYTHON_NUMBER_SIZE];
    double again = NAN;

    for (;; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits, value);
        wm_number_put_point(text);
        if (digits == MOST_DIGITS ||
            (wm_number_parse(text, strlen(text), &again) && again == value))
            break;
    }
    for (const char *end = strchr(text, 'e'); digits > 0 && end[-1] == '0'; end--)
        digits--;
    return digits;
}

void wm_python_number(char text[WM_PYTHON_NUMBER_SIZE], double value)
{
    int digits = fewest_digits(value);

    snprintf(text, WM_PYTHON_NUMBER_SIZE, "%.*e", digits, value);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= LEAST_FIXED && exponent < LEAST_EXPONENT) {
        int decimals = digits - exponent;
        snprintf(text, WM_PYTHON_NUMBER_SIZE, "%.*f", decimals > 1 ? decimals : 1, value);
    }
    wm_number_put_point(text);
}

/* The next character of valid UTF-8. */
static uint32_t next_character(const unsigned char **at)
{
    const unsigned char *c = *at;
    int more = c[0] >= 0xf0 ? 3 : c[0] >= 0xe0 ? 2 : c[0] >= 0xc0 ? 1 : 0;
    uint32_t character = more ? c[0] & (0x3fu >> more) : c[0];

    for (int i = 1; i <= more; i++)
        character = character << 6 | (c[i] & 0x3f);
    *at = c + more + 1;
    return character;
}

static void print_string(const char *text, FILE *out)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs */
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', out);
    while (*at) {
        uint32_t character = next_character(&at);
        const char *pair = NULL;
        for (size_t i = 0; i + 1 < sizeof(shorts); i += 2) {
            if ((unsigned char)shorts[i] == character)
                pair = &shorts[i];
        }
        if (pair)
            fprintf(out, "\\%c", pair[1]);
        else if (character >= 0x10000)
            fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((character - 0x10000) >> 10),
                    0xdc00 + ((character - 0x10000) & 0x3ff));
        else if (character < 0x20 || character >= 0x7f)
            fprintf(out, "\\u%04x", character);
        else
            fputc((int)character, out);
    }
    fputc('"', out);
}

static void print_node(const json_t *node, int depth, FILE *out);

/* Of an object or an array. */
static void print_items(const json_t *node, int depth, FILE *out)
{
    bool is_object = json_is_object(node);
    size_t count = is_object ? json_object_size(node) : json_array_size(node);
    void *member = json_object_iter((json_t *)node);

    fputc(is_object ? '{' : '[', out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\n%*s", i > 0 ? "," : "", depth + 1, "");
        if (is_object) {
            print_string(json_object_iter_key(member), out);
            fputs(": ", out);
            print_node(json_object_iter_value(member), depth + 1, out);
            member = json_object_iter_next((json_t *)node, member);
        } else {
            print_node(json_array_get(node, i), depth + 1, out);
        }
    }
    if (count > 0)
        fprintf(out, "\n%*s", depth, "");
    fputc(is_object ? '}' : ']', out);
}

static void print_node(const json_t *node, int depth, FILE *out)
{
    char number[WM_PYTHON_NUMBER_SIZE];

    if (json_is_object(node) || json_is_array(node)) {
        print_items(node, depth, out);
    } else if (json_is_string(node)) {
        print_string(json_string_value(node), out);
    } else if (json_is_integer(node)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(node));
    } else if (json_is_real(node)) {
        wm_python_number(number, json_real_value(node));
        fputs(number, out);
    } else {
        fputs(json_is_null(node) ? "null" : json_is_true(node) ? "true" : "false", out);
    }
}

int wm_gpu_tracker_json(json_t *root, FILE *out, struct wm_error *err)
{
    if (!root)
        return wm_fail_memory(err, NULL);
    print_node(root, 0, out);
    json_decref(root);
    return WM_OK;
}
