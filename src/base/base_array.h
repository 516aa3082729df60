/* SPDX-License-Identifier: Apache-2.0 */
/* base_array.h - arrays that grow by one element at a time.
 *
 *     if (wm_array_reserve(&list, count, &room, sizeof(*list)) < 0)
 *         return WM_ENOMEM;
 *     list[count++] = element;
 */
#ifndef WM_BASE_ARRAY_H
#define WM_BASE_ARRAY_H

#include <stddef.h>

/* Makes room for one element more, of `size` bytes, in the array of `count` to which
 * `array` is a pointer; `room` is how many it has room for. All zero is an empty array.
 * WM_ENOMEM leaves it as it is. */
int wm_array_reserve(void *array, size_t count, size_t *room, size_t size);

#endif
