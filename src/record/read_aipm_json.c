/* SPDX-License-Identifier: Apache-2.0 */
/* read_aipm_json.c - JSON as Python's json module writes it. */
#include "record/read_aipm_json.h"

#include <stdbool.h>
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

int wm_aipm_json(char *text, size_t length, json_t **ret_value)
{
    json_error_t error;

    replace_words(text, length);
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY, &error);
    if (!value)
        return json_error_code(&error) == json_error_out_of_memory ? -1 : 0;
    *ret_value = value;
    return 1;
}
