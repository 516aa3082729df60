/* SPDX-License-Identifier: Apache-2.0 */
/* read_aipm_json.h - JSON as Python's json module writes it. */
#ifndef WM_READ_AIPM_JSON_H
#define WM_READ_AIPM_JSON_H

#include <jansson.h>
#include <stddef.h>

/* Reads one JSON value out of text[0..length), which is changed: NaN, Infinity
 * and -Infinity, which are Python's and not JSON's, become something that is no
 * number. 1 and `ret_value`, the caller's; 0 where it is no JSON; -1 when out of
 * memory. */
int wm_aipm_json(char *text, size_t length, json_t **ret_value);

#endif
