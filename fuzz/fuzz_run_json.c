/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_run_json.c - hostile JSON for a run and its result; tests/data/run_json
 * has seeds. What is accepted comes back unchanged when it is written again. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "record/run/record_run.h"

static void require_same(char *first, char *second)
{
    require(strcmp(first, second) == 0);
    free(first);
    free(second);
}

static void fuzz_run(const char *text)
{
    struct wm_run run = { 0 }, again = { 0 };
    struct wm_error err = { 0 };
    char *first = NULL, *second = NULL;

    if (wm_run_from_json(text, &run, &err) < 0) {
        require(err.text[0] != '\0');
        return;
    }
    require(wm_run_to_json(&run, &first, NULL) == WM_OK);
    require(wm_run_from_json(first, &again, NULL) == WM_OK);
    require(wm_run_to_json(&again, &second, NULL) == WM_OK);
    require_same(first, second);
    wm_run_release(&run);
    wm_run_release(&again);
}

static void fuzz_result(const char *text)
{
    struct wm_result result = { 0 }, again = { 0 };
    struct wm_error err = { 0 };
    char *first = NULL, *second = NULL;

    if (wm_result_from_json(text, &result, &err) < 0) {
        require(err.text[0] != '\0');
        return;
    }
    require(wm_result_to_json(&result, &first, NULL) == WM_OK);
    require(wm_result_from_json(first, &again, NULL) == WM_OK);
    require(wm_result_to_json(&again, &second, NULL) == WM_OK);
    require_same(first, second);
    wm_result_release(&result);
    wm_result_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);

    fuzz_run(text);
    fuzz_result(text);
    free(text);
    return 0;
}
