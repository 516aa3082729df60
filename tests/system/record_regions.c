/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_regions.c - records regions as fast as they are taken, for tests of what becomes
 * of them: record_regions TARGET COUNT. Call number n starts at n ns, and many stop at
 * once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/record.h"

enum { BATCH = 500 };

static int fail(const struct wm_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

/* One tick, and the calls from `*number` on. */
static void record_batch(struct wm_recorder *recorder, long *number, long count)
{
    static const struct wm_region_path paths[] = {
        { "outer", WM_REGION_NO_PATH, 0, false },
        { "in \"it\"", 0, 1, false },
        { "by itself", WM_REGION_NO_PATH, 0, true },
    };
    static const struct wm_region_thread threads[] = { { 1, 1, 0 }, { 1, 2, 0 } };
    static struct wm_region_record calls[BATCH];
    bool is_first = *number == 0;
    struct wm_region_batch batch = {
        .paths = paths,
        .threads = threads,
        .calls = calls,
        .first_path = is_first ? 0 : 3,
        .path_count = is_first ? 3 : 0,
        .first_thread = is_first ? 0 : 2,
        .thread_count = is_first ? 2 : 0,
    };
    const struct wm_tick tick = { .when_ns = 1 + *number };

    for (; batch.call_count < BATCH && *number < count; (*number)++)
        calls[batch.call_count++] = (struct wm_region_record) {
            .start_ns = *number,
            .stop_ns = 1000000000 + *number / 700 * 700,
            .path = (uint32_t)(*number % 3),
            .thread = (uint32_t)(*number % 2),
        };
    wm_recorder_tick(recorder, &tick);
    while (!wm_recorder_has_room(recorder, batch.call_count))
        usleep(1000);
    wm_recorder_regions(recorder, &batch);
}

int main(int argc, char **argv)
{
    static char id[64];
    struct wm_run run = { .id = id, .anchor_ns = 1, .anchor_unix_ns = 1 };
    struct wm_result result = { .end_ns = 1 };
    struct wm_recorder *recorder = NULL;
    struct wm_error err;
    long number = 0;

    if (argc != 3)
        return 2;
    long count = strtol(argv[2], NULL, 10);
    snprintf(id, sizeof(id), "test-%ld", (long)getpid());
    if (wm_recorder_open(argv[1], WM_RECORD_NEW, &run, NULL, 0, &recorder, &err) < 0)
        return fail(&err);
    while (number < count) {
        record_batch(recorder, &number, count);
        usleep(2000);
    }
    wm_recorder_flush(recorder, &result);
    int status = wm_recorder_finish(recorder, &result, &err);
    wm_recorder_close(recorder);
    if (status < 0)
        return fail(&err);
    return result.lost_regions > 0 ? 1 : 0;
}
