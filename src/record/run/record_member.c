/* SPDX-License-Identifier: Apache-2.0 */
/* record_member.c - one member after the other. */
#include "record/run/record_member.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_text.h"
#include "record/run/record_run.h"

_Static_assert(sizeof(pid_t) == sizeof(int), "pid_t is stored as an int");

static int wrong(const char *key, const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "'%s' is not %s", key, what);
}

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

static size_t *count_of(const struct wm_member *member, void *base)
{
    return (size_t *)(void *)((char *)base + member->count);
}

static size_t number_of(const struct wm_member *member, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + member->count);
}

/* What a pointer to structs of some kind points to. */
static void *pointer_at(const void *slot)
{
    void *pointer;

    memcpy(&pointer, slot, sizeof(pointer));
    return pointer;
}

/* Like all functions called ..._json, it gives a new value, or NULL when out of
 * memory. A key that is there twice keeps its last value. */
static json_t *pairs_json(const struct wm_pair *pairs, size_t count)
{
    json_t *object = json_object();
    bool whole = object != NULL;

    for (size_t i = 0; i < count && whole; i++) {
        json_t *key = wm_text_json(pairs[i].key ? pairs[i].key : "");
        whole = key && json_object_set_new(object, json_string_value(key),
                                           wm_text_json(pairs[i].value)) == 0;
        json_decref(key);
    }
    if (!whole) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *strings_json(char *const *strings, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count && array; i++) {
        if (json_array_append_new(array, wm_text_json(strings[i])) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *structs_json(const struct wm_members *members, const char *items,
                            size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count && array; i++) {
        json_t *item = wm_members_json(members, items + i * members->size);
        if (json_array_append_new(array, item) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *integer_json(int64_t value, bool unknown_is_negative)
{
    return unknown_is_negative && value < 0 ? json_null() : json_integer(value);
}

static json_t *member_json(const struct wm_member *member, const char *base)
{
    const void *slot = base + member->slot;

    switch (member->type) {
    case WM_MEMBER_STRING:
        return wm_text_json(*(char *const *)slot);
    case WM_MEMBER_TEXT:
        return wm_text_json(slot);
    case WM_MEMBER_INT:
        return integer_json(*(const int *)slot, member->unknown_is_negative);
    case WM_MEMBER_TIME:
        return integer_json(*(const int64_t *)slot, false);
    case WM_MEMBER_UINT64: {
        uint64_t value = *(const uint64_t *)slot;
        return json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value);
    }
    case WM_MEMBER_DOUBLE: {
        double value = *(const double *)slot;
        bool known = isfinite(value) && !(member->unknown_is_negative && value < 0);
        return known ? json_real(value) : json_null();
    }
    case WM_MEMBER_BOOL:
        return json_boolean(*(const bool *)slot);
    case WM_MEMBER_STRINGS:
        return strings_json(*(char **const *)slot, number_of(member, base));
    case WM_MEMBER_PAIRS:
        return pairs_json(*(struct wm_pair *const *)slot, number_of(member, base));
    case WM_MEMBER_STRUCTS:
        return structs_json(member->of, pointer_at(slot), number_of(member, base));
    }
    return NULL;
}

json_t *wm_members_json(const struct wm_members *members, const void *base)
{
    json_t *object = json_object();

    for (size_t i = 0; i < members->count && object; i++) {
        const struct wm_member *member = &members->all[i];
        if (json_object_set_new(object, member->key, member_json(member, base)) < 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static bool absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* `ret_string` stays NULL where there is no value. */
static int read_string(const json_t *value, const char *key, char **ret_string,
                       struct wm_error *err)
{
    if (absent(value))
        return WM_OK;
    if (!json_is_string(value))
        return wrong(key, "a string", err);
    *ret_string = strdup(json_string_value(value));
    return *ret_string ? WM_OK : out_of_memory(err);
}

static int read_integer(const json_t *value, const struct wm_member *member, int64_t min,
                        int64_t max, int64_t *ret_value, struct wm_error *err)
{
    *ret_value = member->unknown_is_negative ? -1 : 0;
    if (absent(value))
        return WM_OK;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return wrong(member->key, "a whole number in range", err);
    *ret_value = json_integer_value(value);
    return WM_OK;
}

/* Here as below, what has been read is counted as it comes, so that a release is always
 * right. */
static int read_pairs(json_t *object, const char *key, struct wm_pair *pairs,
                      size_t *ret_count, struct wm_error *err)
{
    int status = WM_OK;
    const char *name;
    json_t *text;

    json_object_foreach(object, name, text)
    {
        if (status < 0)
            break;
        struct wm_pair *pair = &pairs[(*ret_count)++];
        pair->key = strdup(name);
        status = pair->key ? read_string(text, key, &pair->value, err) : out_of_memory(err);
    }
    return status;
}

static int read_strings(const json_t *array, const char *key, char **strings,
                        size_t *ret_count, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        status = read_string(json_array_get(array, i), key, &strings[i], err);
        if (status == WM_OK && !strings[i])
            status = wrong(key, "an array of strings", err);
        *ret_count += strings[i] != NULL;
    }
    return status;
}

static int read_structs(const struct wm_members *members, const json_t *array,
                        const char *key, char *items, size_t *ret_count,
                        struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; status == WM_OK && i < json_array_size(array); i++) {
        *ret_count = i + 1;
        status = wm_members_read(members, json_array_get(array, i), key,
                                 items + i * members->size, err);
    }
    return status;
}

/* A zeroed array of elements of that size, for those of a JSON value of that type: the
 * member stays NULL for none. */
static int make_array(const struct wm_member *member, const json_t *value, json_type type,
                      size_t size, void *slot, struct wm_error *err)
{
    size_t count = type == JSON_OBJECT ? json_object_size(value) : json_array_size(value);

    if (absent(value))
        return WM_OK;
    if (json_typeof(value) != type)
        return wrong(member->key, type == JSON_OBJECT ? "an object" : "an array", err);
    if (count == 0)
        return WM_OK;
    void *items = calloc(count, size);
    if (!items)
        return out_of_memory(err);
    memcpy(slot, &items, sizeof(items));
    return WM_OK;
}

static int read_member(const struct wm_member *member, const json_t *object, char *base,
                       struct wm_error *err)
{
    json_t *value = json_object_get(object, member->key);
    void *slot = base + member->slot;
    int64_t integer = 0;
    int status = WM_OK;

    switch (member->type) {
    case WM_MEMBER_STRING:
        return read_string(value, member->key, slot, err);
    case WM_MEMBER_TEXT:
        if (absent(value))
            return WM_OK;
        if (!json_is_string(value))
            return wrong(member->key, "a string", err);
        wm_text_utf8(slot, member->size, json_string_value(value),
                     json_string_length(value));
        return WM_OK;
    case WM_MEMBER_INT:
        status = read_integer(value, member, INT_MIN, INT_MAX, &integer, err);
        *(int *)slot = (int)integer;
        return status;
    case WM_MEMBER_TIME:
        status = read_integer(value, member, 0, WM_TIME_MAX_NS, &integer, err);
        *(int64_t *)slot = integer;
        return status;
    case WM_MEMBER_UINT64:
        status = read_integer(value, member, 0, INT64_MAX, &integer, err);
        *(uint64_t *)slot = (uint64_t)integer;
        return status;
    case WM_MEMBER_DOUBLE:
        *(double *)slot = member->unknown_is_negative ? -1 : 0;
        if (absent(value))
            return WM_OK;
        if (!json_is_number(value))
            return wrong(member->key, "a number", err);
        *(double *)slot = json_number_value(value);
        return WM_OK;
    case WM_MEMBER_BOOL:
        if (absent(value))
            return WM_OK;
        if (!json_is_boolean(value))
            return wrong(member->key, "true or false", err);
        *(bool *)slot = json_is_true(value);
        return WM_OK;
    case WM_MEMBER_STRINGS:
        status = make_array(member, value, JSON_ARRAY, sizeof(char *), slot, err);
        return status < 0 ? status
                          : read_strings(value, member->key, *(char ***)slot,
                                         count_of(member, base), err);
    case WM_MEMBER_PAIRS:
        status = make_array(member, value, JSON_OBJECT, sizeof(struct wm_pair), slot, err);
        return status < 0 ? status
                          : read_pairs(value, member->key, *(struct wm_pair **)slot,
                                       count_of(member, base), err);
    case WM_MEMBER_STRUCTS:
        status = make_array(member, value, JSON_ARRAY, member->of->size, slot, err);
        return status < 0 ? status
                          : read_structs(member->of, value, member->key, pointer_at(slot),
                                         count_of(member, base), err);
    }
    return WM_OK;
}

int wm_members_read(const struct wm_members *members, const json_t *object, const char *key,
                    void *base, struct wm_error *err)
{
    int status = WM_OK;

    if (!json_is_object(object))
        return wrong(key, "an object", err);
    for (size_t i = 0; i < members->count && status == WM_OK; i++)
        status = read_member(&members->all[i], object, base, err);
    return status;
}

static void release_pairs(struct wm_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(pairs[i].key);
        free(pairs[i].value);
    }
    free(pairs);
}

static void release_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

static void release_structs(const struct wm_members *members, char *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wm_members_release(members, items + i * members->size);
    free(items);
}

void wm_members_release(const struct wm_members *members, void *base)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct wm_member *member = &members->all[i];
        void *slot = (char *)base + member->slot;
        if (member->type == WM_MEMBER_STRING)
            free(*(char **)slot);
        else if (member->type == WM_MEMBER_STRINGS)
            release_strings(*(char ***)slot, number_of(member, base));
        else if (member->type == WM_MEMBER_PAIRS)
            release_pairs(*(struct wm_pair **)slot, number_of(member, base));
        else if (member->type == WM_MEMBER_STRUCTS)
            release_structs(member->of, pointer_at(slot), number_of(member, base));
    }
}
