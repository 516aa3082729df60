/* SPDX-License-Identifier: Apache-2.0 */
/* base_array.c - arrays that double. */
#include "base/base_array.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"

#define FIRST_ROOM 16

int wm_array_reserve(void *array, size_t count, size_t *room, size_t size)
{
    size_t more = *room > 0 ? 2 * *room : FIRST_ROOM;
    void *grown;

    if (count < *room)
        return WM_OK;
    /* A pointer of any type is copied, not read as one of another. */
    memcpy(&grown, array, sizeof(grown));
    grown = realloc(grown, more * size);
    if (!grown)
        return WM_ENOMEM;
    memcpy(array, &grown, sizeof(grown));
    *room = more;
    return WM_OK;
}
