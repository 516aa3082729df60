/* SPDX-License-Identifier: Apache-2.0 */
/* test_tangle.h - a hostile SQLite file: its pages point at each other. */
#ifndef TEST_TANGLE_H
#define TEST_TANGLE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/base_file.h"
#include "test.h"

/* Lets each page that points at others point at the next such page alone, so that a scan
 * would read the last of them more often than anybody can wait for. */
static inline void tangle(const char *path)
{
    enum { PAGE = 512, INNER = 5 };
    char *bytes = NULL;
    unsigned char *last = NULL;
    size_t length = 0;
    int pages = 0;

    assert_int_equal(wm_file_slurp(path, 1 << 24, &bytes, &length, NULL), WM_OK);
    for (size_t page = 2; page * PAGE <= length && pages < 15; page++) {
        unsigned char *inner = (unsigned char *)bytes + (page - 1) * PAGE;
        if (inner[0] != INNER)
            continue;
        int cells = last ? last[3] << 8 | last[4] : -1;
        for (int i = -1; i < cells; i++) {
            /* The one on the right stands in the page's head, the others in its cells. */
            int at = i < 0 ? 8 : last[12 + 2 * i] << 8 | last[13 + 2 * i];
            last[at + 2] = (unsigned char)(page >> 8);
            last[at + 3] = (unsigned char)page;
        }
        last = inner;
        pages++;
    }
    assert_true(pages > 4);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

#endif
