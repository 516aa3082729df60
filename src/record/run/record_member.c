/* SPDX-License-Identifier: Apache-2.0 */
/* record_member.c - one member after the other. */
#include "record/run/record_member.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/text/base_json.h"
#include "base/text/base_number.h"

_Static_assert(sizeof(pid_t) == sizeof(int), "pid_t is stored as an int");

static int wrong(const char *key, const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "'%s' is not %s", key, what);
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

    for (size_t i = 0; i < count; i++) {
        json_t *key = wm_text_json(pairs[i].key ? pairs[i].key : "");
        const char *name = json_string_value(key);
        wm_json_set(&object, name, name ? wm_text_json(pairs[i].value) : NULL);
        json_decref(key);
    }
    return object;
}

static json_t *strings_json(char *const *strings, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        wm_json_add(&array, wm_text_json(strings[i]));
    return array;
}

static json_t *structs_json(const struct wm_members *members, const char *items,
                            size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        wm_json_add(&array, wm_members_json(members, items + i * members->size));
    return array;
}

static json_t *known_json(const struct wm_known *value, bool is_whole)
{
    return value->known && is_whole ? json_integer((json_int_t)value->number)
                                    : wm_json_known(value->known, value->number);
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
        return json_integer(*(const int *)slot);
    case WM_MEMBER_TIME:
        return json_integer(*(const int64_t *)slot);
    case WM_MEMBER_UINT64: {
        uint64_t value = *(const uint64_t *)slot;
        return json_integer(value > INT64_MAX ? INT64_MAX : (int64_t)value);
    }
    case WM_MEMBER_DOUBLE:
        return wm_json_known(true, *(const double *)slot);
    case WM_MEMBER_KNOWN:
        return known_json(slot, member->is_whole);
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

    for (size_t i = 0; i < members->count; i++) {
        const struct wm_member *member = &members->all[i];
        const void *slot = (const char *)base + member->slot;
        if (!member->is_optional || *(char *const *)slot)
            wm_json_set(&object, member->key, member_json(member, base));
    }
    return object;
}

/* `ret_string` stays NULL where there is no value. */
static int read_string(const json_t *object, const char *key, char **ret_string,
                       struct wm_error *err)
{
    json_t *value = NULL;

    int status = wm_json_get(object, key, WM_JSON_TEXT, &value, err);
    if (status <= 0)
        return status;
    *ret_string = strdup(json_string_value(value));
    return *ret_string ? WM_OK : wm_fail_memory(err, NULL);
}

static int read_integer(const json_t *object, const struct wm_member *member, int64_t min,
                        int64_t max, int64_t *ret_value, struct wm_error *err)
{
    json_t *value = NULL;

    *ret_value = 0;
    int status = wm_json_get(object, member->key, WM_JSON_INTEGER, &value, err);
    if (status <= 0)
        return status;
    if (json_integer_value(value) < min || json_integer_value(value) > max)
        return wm_json_wrong(member->key, WM_JSON_INTEGER, err);
    *ret_value = json_integer_value(value);
    return status;
}

/* What has been read is counted as it comes, here as below, so that a release is always
 * right. */
static int read_pairs(json_t *object, const char *key, struct wm_pair *pairs,
                      size_t *ret_count, struct wm_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        struct wm_pair *pair = &pairs[(*ret_count)++];
        if (!json_is_null(value) && !json_is_string(value))
            return wrong(key, "an object of strings", err);
        pair->key = strdup(name);
        pair->value = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
        if (!pair->key || (json_is_string(value) && !pair->value))
            return wm_fail_memory(err, NULL);
    }
    return WM_OK;
}

static int read_strings(const json_t *array, const char *key, char **strings,
                        size_t *ret_count, struct wm_error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text)
            return wrong(key, "an array of strings", err);
        strings[i] = strdup(text);
        if (!strings[i])
            return wm_fail_memory(err, NULL);
        *ret_count = i + 1;
    }
    return WM_OK;
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

static int read_items(const struct wm_member *member, json_t *list, void *items,
                      size_t *ret_count, struct wm_error *err)
{
    switch (member->type) {
    case WM_MEMBER_STRINGS:
        return read_strings(list, member->key, items, ret_count, err);
    case WM_MEMBER_PAIRS:
        return read_pairs(list, member->key, items, ret_count, err);
    default:
        return read_structs(member->of, list, member->key, items, ret_count, err);
    }
}

/* The member stays NULL where there are none. */
static int read_list(const struct wm_member *member, const json_t *object, char *base,
                     size_t item_size, struct wm_error *err)
{
    json_t *list = NULL;

    int status = wm_json_get(
        object, member->key,
        member->type == WM_MEMBER_PAIRS ? WM_JSON_OBJECT : WM_JSON_ARRAY, &list, err);
    size_t count = json_is_object(list) ? json_object_size(list) : json_array_size(list);
    if (status < 0 || count == 0)
        return status;
    void *items = calloc(count, item_size);
    if (!items)
        return wm_fail_memory(err, NULL);
    memcpy(base + member->slot, &items, sizeof(items));
    return read_items(member, list, items, count_of(member, base), err);
}

static int read_member(const struct wm_member *member, const json_t *object, char *base,
                       struct wm_error *err)
{
    void *slot = base + member->slot;
    json_t *value = NULL;
    int64_t integer = 0;
    int status = 0;

    switch (member->type) {
    case WM_MEMBER_STRING:
        return read_string(object, member->key, slot, err);
    case WM_MEMBER_TEXT:
        status = wm_json_get(object, member->key, WM_JSON_TEXT, &value, err);
        wm_text_utf8(slot, member->size, json_string_value(value),
                     json_string_length(value));
        return status;
    case WM_MEMBER_INT:
        status = read_integer(object, member, INT_MIN, INT_MAX, &integer, err);
        *(int *)slot = (int)integer;
        return status;
    case WM_MEMBER_TIME:
        status = read_integer(object, member, 0, WM_TIME_MAX_NS, &integer, err);
        *(int64_t *)slot = integer;
        return status;
    case WM_MEMBER_UINT64:
        status = read_integer(object, member, 0, INT64_MAX, &integer, err);
        *(uint64_t *)slot = (uint64_t)integer;
        return status;
    case WM_MEMBER_DOUBLE:
        status = wm_json_get(object, member->key, WM_JSON_NUMBER, &value, err);
        *(double *)slot = value ? json_number_value(value) : 0;
        return status;
    case WM_MEMBER_KNOWN:
        status =
            wm_json_get(object, member->key,
                        member->is_whole ? WM_JSON_INTEGER : WM_JSON_NUMBER, &value, err);
        if (status > 0 && json_number_value(value) >= 0)
            *(struct wm_known *)slot = (struct wm_known) { true, json_number_value(value) };
        return status;
    case WM_MEMBER_BOOL:
        status = wm_json_get(object, member->key, WM_JSON_BOOL, &value, err);
        *(bool *)slot = json_is_true(value);
        return status;
    case WM_MEMBER_STRINGS:
        return read_list(member, object, base, sizeof(char *), err);
    case WM_MEMBER_PAIRS:
        return read_list(member, object, base, sizeof(struct wm_pair), err);
    case WM_MEMBER_STRUCTS:
        return read_list(member, object, base, member->of->size, err);
    }
    return WM_OK;
}

int wm_members_read(const struct wm_members *members, const json_t *object, const char *key,
                    void *base, struct wm_error *err)
{
    int status = WM_OK;

    if (!json_is_object(object))
        return wrong(key, "an object", err);
    for (size_t i = 0; i < members->count && status >= 0; i++)
        status = read_member(&members->all[i], object, base, err);
    return status < 0 ? status : WM_OK;
}

/* NULL becomes NULL. */
static int copy_string(const char *string, char **ret_copy, struct wm_error *err)
{
    *ret_copy = string ? strdup(string) : NULL;
    return string && !*ret_copy ? wm_fail_memory(err, NULL) : WM_OK;
}

static int copy_item(const struct wm_member *member, const void *item, void *to,
                     struct wm_error *err)
{
    if (member->type == WM_MEMBER_STRUCTS)
        return wm_members_copy(member->of, item, to, err);
    if (member->type == WM_MEMBER_STRINGS)
        return copy_string(*(char *const *)item, to, err);
    const struct wm_pair *pair = item;
    struct wm_pair *copy = to;
    int status = copy_string(pair->key, &copy->key, err);
    return status < 0 ? status : copy_string(pair->value, &copy->value, err);
}

static int copy_list(const struct wm_member *member, const char *base, char *to,
                     size_t item_size, struct wm_error *err)
{
    const char *items = pointer_at(base + member->slot);
    size_t count = number_of(member, base);
    int status = WM_OK;

    if (count == 0)
        return WM_OK;
    char *copies = calloc(count, item_size);
    if (!copies)
        return wm_fail_memory(err, NULL);
    memcpy(to + member->slot, &copies, sizeof(copies));
    *count_of(member, to) = count;
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = copy_item(member, items + i * item_size, copies + i * item_size, err);
    return status;
}

static int copy_member(const struct wm_member *member, const char *base, char *to,
                       struct wm_error *err)
{
    static const size_t sizes[] = {
        [WM_MEMBER_INT] = sizeof(int),       [WM_MEMBER_TIME] = sizeof(int64_t),
        [WM_MEMBER_DOUBLE] = sizeof(double), [WM_MEMBER_UINT64] = sizeof(uint64_t),
        [WM_MEMBER_BOOL] = sizeof(bool),     [WM_MEMBER_KNOWN] = sizeof(struct wm_known),
    };
    const char *slot = base + member->slot;

    switch (member->type) {
    case WM_MEMBER_STRING:
        return copy_string(pointer_at(slot), (char **)(void *)(to + member->slot), err);
    case WM_MEMBER_STRINGS:
        return copy_list(member, base, to, sizeof(char *), err);
    case WM_MEMBER_PAIRS:
        return copy_list(member, base, to, sizeof(struct wm_pair), err);
    case WM_MEMBER_STRUCTS:
        return copy_list(member, base, to, member->of->size, err);
    case WM_MEMBER_TEXT:
        memcpy(to + member->slot, slot, member->size);
        return WM_OK;
    default:
        memcpy(to + member->slot, slot, sizes[member->type]);
        return WM_OK;
    }
}

int wm_members_copy(const struct wm_members *members, const void *base, void *ret_copy,
                    struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < members->count && status == WM_OK; i++)
        status = copy_member(&members->all[i], base, ret_copy, err);
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
