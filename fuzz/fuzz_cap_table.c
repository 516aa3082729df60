/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cap_table.c - hostile sweeps of caps, searched in both ways; tests/data/sweeps has
 * seeds. An answer is one of the caps of the table, or between them. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "wattmeter/cap_search.h"

static void require_answer(struct wm_cap_search *search)
{
    struct wm_cap_answer answer;
    struct wm_error err = { 0 };

    if (wm_cap_search_answer(search, &answer, &err) == WM_OK) {
        require(answer.choice.cap >= answer.plan.minimum &&
                answer.choice.cap <= answer.plan.maximum);
        for (size_t i = 1; i < answer.count; i++)
            require(answer.curve[i].cap > answer.curve[i - 1].cap &&
                    answer.curve[i].seconds.value <= answer.curve[i - 1].seconds.value);
    } else {
        require(err.text[0] != '\0');
    }
    wm_cap_search_free(search);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wm_cap_plan plan = { .objective = size % WM_CAP_OBJECTIVES };
    struct wm_cap_search *search;
    struct wm_cap_table table;
    struct wm_error err = { 0 };
    char path[64];

    int fd = memfd_create("sweep.csv", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (wm_cap_table_load(path, &table, &err) == WM_OK) {
        if (wm_cap_search_replay(&plan, &table, &search, &err) == WM_OK)
            require_answer(search);
        if (wm_cap_search_fit(&plan, &table, &search, &err) == WM_OK)
            require_answer(search);
        wm_cap_table_release(&table);
    } else {
        require(err.text[0] != '\0');
    }
    close(fd);
    return 0;
}
