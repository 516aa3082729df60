/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - traces that run out of memory or of disk, whatever the format. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/record_read.h"
#include "test.h"
#include "wattmeter/trace.h"

#define RECORDING "tests/data/recordings/v1-tree.sqlite"

static const enum wm_format formats[] = { WM_FORMAT_CHROME, WM_FORMAT_FIREFOX,
                                          WM_FORMAT_SPEEDSCOPE, WM_FORMAT_FOLDED };

static struct wm_recording *open_recording(void)
{
    struct wm_recording *recording = NULL;

    assert_int_equal(
        wm_recording_open(test_source_path(RECORDING), WM_LAST_RUN, &recording, NULL),
        WM_OK);
    return recording;
}

static int trace_failing(const struct wm_trace_request *request, long nth)
{
    struct wm_recording *recording = open_recording();
    FILE *out = fopen("/dev/null", "w");
    struct wm_error err;

    assert_non_null(out);
    test_fail_allocation(nth);
    int status = wm_recording_trace(recording, request, out, &err);
    test_fail_allocation(-1);
    fclose(out);
    wm_recording_close(recording);
    return status;
}

/* A trace of some moment in the run. */
static void write_torch(const char *dir)
{
    struct wm_recording *recording = open_recording();
    char text[200];

    snprintf(text, sizeof(text),
             "{\"baseTimeNanoseconds\":%lld,\"traceEvents\":[{\"ph\":\"X\",\"ts\":1e6}]}",
             (long long)wm_recording_run(recording)->anchor_unix_ns);
    test_write_file(dir, "torch.json", text);
    wm_recording_close(recording);
}

/* jansson is a library of its own, whose calls the linker does not redirect. */
static void *jansson_malloc(size_t size)
{
    return malloc(size);
}

static void test_out_of_memory(void **state)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/torch.json", (const char *)*state);
    write_torch(*state);
    json_set_alloc_funcs(jansson_malloc, free);
    for (size_t i = 0; i <= ARRAY_LEN(formats); i++) {
        bool is_merged = i == ARRAY_LEN(formats);
        const struct wm_trace_request request = {
            .format = is_merged ? WM_FORMAT_CHROME : formats[i],
            .with = is_merged ? path : NULL,
        };
        long nth = 0;
        int status;
        while ((status = trace_failing(&request, nth)) != WM_OK) {
            assert_true(status < 0); /* SQLite does not always say that it is memory */
            nth += 1 + nth / 16;
        }
        assert_true(nth > 0);
    }
}

static void test_full_disk(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        const struct wm_trace_request request = { .format = formats[i] };
        struct wm_recording *recording = open_recording();
        FILE *out = fopen("/dev/full", "w");
        struct wm_error err;
        assert_non_null(out);
        assert_int_equal(wm_recording_trace(recording, &request, out, &err), WM_EIO);
        fclose(out);
        wm_recording_close(recording);
    }
}

static void test_read_already(void **state)
{
    const struct wm_trace_request request = { .format = WM_FORMAT_FOLDED };
    struct wm_recording *recording = open_recording();
    struct wm_tick tick;
    struct wm_error err;

    (void)state;
    assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
    assert_int_equal(wm_recording_trace(recording, &request, stdout, &err), WM_EINVAL);
    wm_recording_close(recording);
}

UNIT(trace)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_out_of_memory, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_read_already),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
