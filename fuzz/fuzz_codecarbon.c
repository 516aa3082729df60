/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_codecarbon.c - hostile headers of an emissions.csv: one that is accepted gets a
 * row of as many cells as it has names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compat/codecarbon/compat_codecarbon.h"
#include "fuzz.h"

static size_t count_commas(const char *text, size_t length)
{
    size_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += text[i] == ',';
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wm_report report;
    static const struct wm_tariff tariff;
    char *header = malloc(size ? size : 1), *row = NULL; /* no byte more than there are */
    size_t length = 0;

    if (!header)
        return 0;
    if (size > 0)
        memcpy(header, data, size);
    if (wm_codecarbon_is_header(header, size)) {
        FILE *out = open_memstream(&row, &length);
        if (!out)
            abort();
        wm_codecarbon_row(&report, &tariff, header, size, out);
        if (fclose(out) != 0 || length == 0 || row[length - 1] != '\n' ||
            count_commas(row, length) != count_commas(header, size))
            abort();
        free(row);
    }
    free(header);
    return 0;
}
