/* SPDX-License-Identifier: Apache-2.0 */
/* base_python_json.h - JSON as Python's json module writes it. */
#ifndef WM_BASE_PYTHON_JSON_H
#define WM_BASE_PYTHON_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Reads one JSON value out of text[0..length), which is changed, and has a NUL behind it:
 * NaN, Infinity and -Infinity, which are Python's and not JSON's, and numbers that are
 * too large, become something that is no number. 1 and `ret_value`, the caller's; 0 where
 * it is no JSON; -1 when out of memory. */
int wm_python_json(char *text, size_t length, json_t **ret_value);

#endif
