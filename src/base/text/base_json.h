/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_json.h - JSON, built and read with checks.
 *
 *     json_t *object = json_object();
 *     wm_json_set(&object, "name", wm_text_json(name));
 *     wm_json_set(&object, "pids", pids_json(list));
 *     char *text = wm_json_dump(object, JSON_COMPACT);
 *
 * Memory that runs out makes the whole NULL: an object or array into which something did
 * not go is freed and NULL from then on, and a NULL that is put into another one makes that
 * NULL too. So nothing has to be checked before the end.
 */
#ifndef WM_BASE_JSON_H
#define WM_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"

/* Takes `value` over; what the key had before is replaced. */
void wm_json_set(json_t **object, const char *key, json_t *value);

/* Takes `value` over. */
void wm_json_add(json_t **array, json_t *value);

/* Text that need not be UTF-8 as a string that is; null for NULL. */
json_t *wm_text_json(const char *text);

/* null where the number is not known; nothing is ever NaN in JSON. */
json_t *wm_json_known(bool is_known, double number);

/* Takes `value` over, and gives its text, the caller's to free. */
char *wm_json_dump(json_t *value, size_t style);

/* Reads what text[0..length) holds. WM_EFORMAT says where and why it is no JSON. */
int wm_json_load(const char *text, size_t length, json_t **ret_value, struct wm_error *err);

/* Reads one JSON value as Python's json module writes it, out of text[0..length), which is
 * changed, and has a NUL behind it: NaN, Infinity and -Infinity, which are Python's and not
 * JSON's, become something that is no number. 1 and
 * `ret_value`, the caller's; 0 where it is no JSON; WM_ENOMEM. */
int wm_python_json(char *text, size_t length, json_t **ret_value);

enum wm_json_type {
    WM_JSON_TEXT,
    WM_JSON_INTEGER,
    WM_JSON_NUMBER, /* whole or not */
    WM_JSON_BOOL,
    WM_JSON_ARRAY,
    WM_JSON_OBJECT,
};

/* The member `key` of an object: 1 and its value, borrowed; 0, and nothing written, where
 * it is missing or null; WM_EFORMAT, which names the key, where it is of another type. */
int wm_json_get(const json_t *object, const char *key, enum wm_json_type type,
                json_t **ret_value, struct wm_error *err);

/* That failure: the member is not what it should be. */
int wm_json_wrong(const char *key, enum wm_json_type type, struct wm_error *err);

#endif
