/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what all fuzz targets need. */
#ifndef WM_FUZZ_H
#define WM_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* What results are filled with before the call: one that fails leaves its result as it
 * was. */
#define UNTOUCHED 0xa5

static inline void require_untouched(const void *result, size_t size)
{
    const unsigned char *bytes = result;

    for (size_t i = 0; i < size; i++)
        require(bytes[i] == UNTOUCHED);
}

/* The input with a NUL, the caller's to free; no longer than that, so that a byte too far
 * is noticed. */
static inline char *fuzz_copy(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
