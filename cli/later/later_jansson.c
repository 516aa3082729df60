/* SPDX-License-Identifier: Apache-2.0 */
/* later_jansson.c - the functions of jansson that the command calls. */
#include <jansson.h>

#include "later/later.h"

#define JANSSON "libjansson.so.4"

/* `...` passes the parameters on. */
#define JSON(type, name, parameters, ...)                                                  \
    LATER(JANSSON, type, json_##name, parameters, __VA_ARGS__)

JSON(json_t *, array, (void))
JSON(json_t *, array_get, (const json_t *array, size_t index), array, index)
JSON(int, array_append_new, (json_t * array, json_t *value), array, value)
JSON(size_t, array_size, (const json_t *array), array)
JSON(void, delete, (json_t * json), json)
JSON(int, dumpf, (const json_t *json, FILE *output, size_t flags), json, output, flags)
JSON(char *, dumps, (const json_t *json, size_t flags), json, flags)
JSON(json_t *, false, (void))
JSON(json_t *, integer, (json_int_t value), value)
JSON(json_int_t, integer_value, (const json_t *integer), integer)
JSON(json_t *, loadb,
     (const char *buffer, size_t length, size_t flags, json_error_t *error), buffer, length,
     flags, error)
JSON(json_t *, loads, (const char *input, size_t flags, json_error_t *error), input, flags,
     error)
JSON(json_t *, null, (void))
JSON(double, number_value, (const json_t *json), json)
JSON(json_t *, object, (void))
JSON(int, object_del, (json_t * object, const char *key), object, key)
JSON(json_t *, object_get, (const json_t *object, const char *key), object, key)
JSON(void *, object_iter, (json_t * object), object)
JSON(const char *, object_iter_key, (void *iter), iter)
JSON(void *, object_iter_next, (json_t * object, void *iter), object, iter)
JSON(json_t *, object_iter_value, (void *iter), iter)
JSON(void *, object_key_to_iter, (const char *key), key)
JSON(int, object_set_new, (json_t * object, const char *key, json_t *value), object, key,
     value)
JSON(int, object_set_new_nocheck, (json_t * object, const char *key, json_t *value), object,
     key, value)
JSON(size_t, object_size, (const json_t *object), object)
JSON(int, object_update, (json_t * object, json_t *other), object, other)
JSON(json_t *, real, (double value), value)
JSON(double, real_value, (const json_t *real), real)
JSON(json_t *, string, (const char *value), value)
JSON(size_t, string_length, (const json_t *string), string)
JSON(const char *, string_value, (const json_t *string), string)
JSON(json_t *, stringn_nocheck, (const char *value, size_t length), value, length)
JSON(json_t *, true, (void))

/* Its other form is json_pack()'s with the arguments as one. */
JSON(json_t *, vpack_ex,
     (json_error_t * error, size_t flags, const char *format, va_list arguments), error,
     flags, format, arguments)

json_t *json_pack(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    json_t *made = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    return made;
}
