/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_block_results.c - hostile JSON of an analysis of blocks; tests/data/blocks and
 * tests/data/gpu_tracker have seeds. What is accepted can be printed in every form, and
 * comes back unchanged when it is written again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze_report.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"
#include "fuzz.h"
#include "view/view.h"

static char *print(const struct wm_report *results)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    require(out != NULL);
    require(wm_gpu_tracker_blocks_json(results, out, NULL) == WM_OK);
    require(fclose(out) == 0);
    return text;
}

static void again(const struct wm_report *results)
{
    char *first = print(results), *second;
    struct wm_report *read;
    struct wm_error err;

    require(wm_report_parse(first, strlen(first), "fuzz", &read, &err) == WM_OK);
    second = print(read);
    require(strcmp(first, second) == 0);
    wm_report_free(read);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wm_report *results;
    struct wm_error err = { 0 };

    if (wm_report_parse((const char *)data, size, "fuzz", &results, &err) < 0) {
        require(err.text[0] != '\0');
        return 0;
    }
    FILE *out = fopen("/dev/null", "w");
    require(out != NULL);
    wm_view_blocks_text(results, out);
    require(wm_gpu_tracker_blocks_text(results, out, NULL) == WM_OK);
    fclose(out);
    again(results);
    json_t *ours = wm_view_blocks_json(results);
    require(ours != NULL);
    json_decref(ours);
    wm_report_free(results);
    return 0;
}
