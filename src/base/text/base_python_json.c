/* SPDX-License-Identifier: Apache-2.0 */
/* base_python_json.c - JSON as Python's json module writes it. */
#include "base/text/base_python_json.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool replace(char *at, size_t left, const char *word, const char *by)
{
    size_t length = strlen(word);

    if (left < length || memcmp(at, word, length) != 0)
        return false;
    memcpy(at, by, length);
    return true;
}

/* Each by something of the same length. */
static void replace_words(char *text, size_t length)
{
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        size_t left = length - i;
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && replace(text + i, left, "NaN", "\"\" "))
            i += 2;
        else if (!quoted && !replace(text + i, left, "-Infinity", "     null"))
            replace(text + i, left, "Infinity", "    null");
    }
}

/* Numbers that no double holds, each by something of the same length. */
static void replace_overflows(char *text, size_t length)
{
    static const char number[] = "+-.0123456789Ee";
    bool quoted = false;

    for (size_t i = 0, end; i < length; i = end) {
        end = i + 1;
        if (quoted && text[i] == '\\')
            end++;
        else if (text[i] == '"')
            quoted = !quoted;
        if (quoted || !memchr(number, text[i], sizeof(number) - 1))
            continue;
        while (end < length && memchr(number, text[end], sizeof(number) - 1))
            end++;
        if (isinf(strtod(text + i, NULL))) {
            memset(text + i, ' ', end - i);
            text[i] = text[i + 1] = '"';
        }
    }
}

int wm_python_json(char *text, size_t length, json_t **ret_value)
{
    json_error_t error;

    replace_words(text, length);
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY, &error);
    if (!value && json_error_code(&error) == json_error_numeric_overflow) {
        /* Python's integers have no end. */
        replace_overflows(text, length);
        value = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    }
    if (!value)
        return json_error_code(&error) == json_error_out_of_memory ? -1 : 0;
    *ret_value = value;
    return 1;
}
