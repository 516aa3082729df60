/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_python.c - JSON as Python's json.dumps(..., indent=1) writes it. */
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_number.h"

/* Python writes an exponent below 1e-4 and from 1e16 on. */
#define LEAST_FIXED (-4)
#define MOST_FIXED 16

/* Digits without a point, and where it stands: 0 is before the first one. */
struct decimal {
    char digits[WM_NUMBER_SIZE];
    int count, point;
};

static struct decimal decimal_of(const char *text)
{
    struct decimal decimal = { .count = 0 };
    bool past_point = false;

    for (; *text && *text != 'e'; text++) {
        if (*text == '.') {
            past_point = true;
            continue;
        }
        if (*text != '0' || decimal.count > 0)
            decimal.digits[decimal.count++] = *text;
        else if (past_point)
            decimal.point--; /* zeros before the first digit */
        if (!past_point && decimal.count > 0)
            decimal.point++;
    }
    if (*text == 'e')
        decimal.point += (int)strtol(text + 1, NULL, 10);
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;
    return decimal;
}

static char digit_at(const struct decimal *decimal, int index)
{
    return index >= 0 && index < decimal->count ? decimal->digits[index] : '0';
}

static void print_fixed(char *text, const struct decimal *decimal)
{
    for (int i = decimal->point < 1 ? decimal->point - 1 : 0; i < decimal->point; i++)
        *text++ = digit_at(decimal, i);
    *text++ = '.';
    for (int i = decimal->point; i == decimal->point || i < decimal->count; i++)
        *text++ = digit_at(decimal, i);
    *text = '\0';
}

static void print_exponent(char *text, const struct decimal *decimal)
{
    int exponent = decimal->point - 1;

    *text++ = decimal->digits[0];
    if (decimal->count > 1)
        *text++ = '.';
    for (int i = 1; i < decimal->count; i++)
        *text++ = decimal->digits[i];
    snprintf(text, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

void wm_python_number(char text[WM_PYTHON_NUMBER_SIZE], double value)
{
    char number[WM_NUMBER_SIZE];
    const char *start = number;

    wm_number_format(value, number);
    if (*start == '-')
        *text++ = *start++;
    struct decimal decimal = decimal_of(start);
    if (decimal.count == 0)
        snprintf(text, 4, "0.0");
    else if (decimal.point <= LEAST_FIXED || decimal.point > MOST_FIXED)
        print_exponent(text, &decimal);
    else
        print_fixed(text, &decimal);
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

static void begin_item(size_t index, int depth, FILE *out)
{
    fprintf(out, "%s\n%*s", index > 0 ? "," : "", depth, "");
}

static void print_object(json_t *object, int depth, FILE *out)
{
    const char *key;
    json_t *value;
    size_t index = 0;

    fputc('{', out);
    json_object_foreach(object, key, value)
    {
        begin_item(index++, depth + 1, out);
        print_string(key, out);
        fputs(": ", out);
        print_node(value, depth + 1, out);
    }
    if (index > 0)
        fprintf(out, "\n%*s", depth, "");
    fputc('}', out);
}

static void print_array(const json_t *array, int depth, FILE *out)
{
    size_t index;
    json_t *value;

    fputc('[', out);
    json_array_foreach(array, index, value)
    {
        begin_item(index, depth + 1, out);
        print_node(value, depth + 1, out);
    }
    if (index > 0)
        fprintf(out, "\n%*s", depth, "");
    fputc(']', out);
}

static void print_node(const json_t *node, int depth, FILE *out)
{
    char number[WM_PYTHON_NUMBER_SIZE];

    switch (json_typeof(node)) {
    case JSON_OBJECT:
        print_object((json_t *)node, depth, out);
        break;
    case JSON_ARRAY:
        print_array(node, depth, out);
        break;
    case JSON_STRING:
        print_string(json_string_value(node), out);
        break;
    case JSON_INTEGER:
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(node));
        break;
    case JSON_REAL:
        wm_python_number(number, json_real_value(node));
        fputs(number, out);
        break;
    case JSON_TRUE:
        fputs("true", out);
        break;
    case JSON_FALSE:
        fputs("false", out);
        break;
    case JSON_NULL:
        fputs("null", out);
        break;
    }
}

void wm_gpu_tracker_json(const json_t *root, FILE *out)
{
    print_node(root, 0, out);
}
