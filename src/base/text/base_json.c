/* SPDX-License-Identifier: Apache-2.0 */
/* base_json.c - building JSON, and reading it, that of Python too. */
#include "base/text/base_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"

static void drop(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

void wm_json_set(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) < 0)
        drop(object);
}

void wm_json_add(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) < 0)
        drop(array);
}

json_t *wm_text_json(const char *text)
{
    if (!text)
        return json_null();

    char *copy = wm_text_copy(text);
    json_t *value = copy ? json_string(copy) : NULL;
    free(copy);
    return value;
}

json_t *wm_json_known(bool is_known, double number)
{
    return is_known && isfinite(number) ? json_real(number) : json_null();
}

char *wm_json_dump(json_t *value, size_t style)
{
    char *text = value ? json_dumps(value, style) : NULL;

    json_decref(value);
    return text;
}

/* Jansson does not say so of its first steps: it leaves no text. */
static bool is_out_of_memory(const json_error_t *error)
{
    return json_error_code(error) == json_error_out_of_memory || error->text[0] == '\0';
}

int wm_json_load(const char *text, size_t length, json_t **ret_value, struct wm_error *err)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, 0, &error);

    if (!value && is_out_of_memory(&error))
        return wm_fail_memory(err, NULL);
    if (!value)
        return wm_fail(err, WM_EFORMAT, "not JSON: %s", error.text);
    *ret_value = value;
    return WM_OK;
}

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

int wm_python_json(char *text, size_t length, json_t **ret_value)
{
    json_error_t error;

    replace_words(text, length);
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY, &error);
    /* Python's integers have no end. */
    if (!value && json_error_code(&error) == json_error_numeric_overflow)
        value = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
    if (!value)
        return is_out_of_memory(&error) ? WM_ENOMEM : 0;
    *ret_value = value;
    return 1;
}

static bool is_of(const json_t *value, enum wm_json_type type)
{
    switch (type) {
    case WM_JSON_TEXT:
        return json_is_string(value);
    case WM_JSON_INTEGER:
        return json_is_integer(value);
    case WM_JSON_NUMBER:
        return json_is_number(value);
    case WM_JSON_BOOL:
        return json_is_boolean(value);
    case WM_JSON_ARRAY:
        return json_is_array(value);
    case WM_JSON_OBJECT:
        return json_is_object(value);
    }
    return false;
}

int wm_json_wrong(const char *key, enum wm_json_type type, struct wm_error *err)
{
    static const char *const names[] = {
        [WM_JSON_TEXT] = "a string",   [WM_JSON_INTEGER] = "a whole number in range",
        [WM_JSON_NUMBER] = "a number", [WM_JSON_BOOL] = "true or false",
        [WM_JSON_ARRAY] = "an array",  [WM_JSON_OBJECT] = "an object",
    };

    return wm_fail(err, WM_EFORMAT, "'%s' is not %s", key, names[type]);
}

int wm_json_get(const json_t *object, const char *key, enum wm_json_type type,
                json_t **ret_value, struct wm_error *err)
{
    json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value))
        return 0;
    if (!is_of(value, type))
        return wm_json_wrong(key, type, err);
    *ret_value = value;
    return 1;
}
