/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cap_journal.c - hostile entries of the journal of caps; tests/data/cap has seeds.
 * What is accepted comes back unchanged when it is written again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cap/cap_journal.h"
#include "fuzz.h"

static bool is_same(double one, double other)
{
    return (isnan(one) && isnan(other)) || !(fabs(one - other) > 1e-9 * fabs(one));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wm_cap_entry entry, again;
    struct wm_error err = { 0 };
    char *text = fuzz_copy(data, size);

    if (wm_cap_entry_parse(text, size, &entry, &err) < 0) {
        require(err.text[0] != '\0');
        free(text);
        return 0;
    }
    char *written = wm_cap_entry_text(&entry);
    require(written != NULL);
    require(wm_cap_entry_parse(written, strlen(written), &again, &err) == WM_OK);
    require(strcmp(entry.identity, again.identity) == 0 && entry.kind == again.kind);
    require(is_same(entry.earlier, again.earlier) && is_same(entry.set, again.set));
    free(written);
    free(text);
    return 0;
}
