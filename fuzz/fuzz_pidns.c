/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pidns.c - hostile text for the lines of numbers in /proc/PID/status, by
 * which pids are followed from one namespace to another, and for the moment of
 * boot. A line is read the same with any room, and nothing is written past it or
 * on failure.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "source/source_kernel_text.h"

#define NOTHING UINT64_C(0xa5a5a5a5a5a5a5a5)

static void fuzz_line(const char *text, const char *name)
{
    enum { ROOM = 4 };
    uint64_t numbers[ROOM] = { NOTHING, NOTHING, NOTHING, NOTHING };
    uint64_t first = NOTHING;
    size_t count = SIZE_MAX, again = SIZE_MAX;

    int status = wm_parse_status_numbers(text, name, numbers, ROOM - 1, &count);
    require(numbers[ROOM - 1] == NOTHING);
    require(wm_parse_status_numbers(text, name, &first, 1, &again) == status);
    require(again == count);
    if (status < 0) {
        require(count == SIZE_MAX);
        return;
    }
    require(count > 0 && count <= strlen(text));
    require(first == numbers[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seconds = NOTHING;
    char *text = fuzz_copy(data, size);

    fuzz_line(text, "NSpid:");
    fuzz_line(text, "Uid:");
    if (wm_parse_boot_time(text, &seconds) < 0)
        require(seconds == NOTHING);
    free(text);
    return 0;
}
