/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyze_edges.c - calls in the order of their starts as edges in the order of
 * time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/region/analyze_regions.h"
#include "record/record_ops.h"
#include "record/record_read.h"
#include "test.h"

#define OPEN WM_CALL_NEVER_STOPS /* as a stop: it never ended */

struct made_call {
    int64_t start_ns, stop_ns;
};

enum { MOST = 300 };

/* Calls out of a table, which may break: each has a path of its own. */
static struct table {
    const struct made_call *made;
    size_t count, next;
    size_t broken_at;
} table;

static int calls_of_table(void *state, struct wm_region_batch *ret_batch,
                          struct wm_error *err)
{
    static const struct wm_region_thread thread;
    static struct wm_region_path paths[MOST];
    static char names[MOST][8];
    static struct wm_region_record record;
    static double seconds;

    (void)state;
    if (table.next == table.broken_at)
        return wm_fail(err, WM_EIO, "the table is broken");
    if (table.next == table.count)
        return 0;
    for (size_t i = 0; i < table.count; i++) {
        snprintf(names[i], sizeof(names[i]), "%hu", (unsigned short)i);
        paths[i] = (struct wm_region_path) { names[i], WM_REGION_NO_PATH, 0, false };
    }
    bool is_first = table.next == 0;
    const struct made_call *made = &table.made[table.next];
    seconds = (double)table.next;
    record = (struct wm_region_record) {
        .start_ns = made->start_ns,
        .stop_ns = made->stop_ns,
        .is_open = made->stop_ns == OPEN,
        .path = (uint32_t)table.next++,
    };
    *ret_batch = (struct wm_region_batch) {
        .paths = paths,
        .path_count = is_first ? (uint32_t)table.count : 0,
        .threads = &thread,
        .thread_count = is_first,
        .calls = &record,
        .seconds = &seconds,
        .call_count = 1,
    };
    return 1;
}

static int open_table(void *state, const char *path, size_t run, struct wm_error *err)
{
    (void)state, (void)path, (void)run, (void)err;
    return WM_OK;
}

static void close_table(void *state)
{
    (void)state;
}

static const struct wm_reader_ops table_ops = {
    .name = "a table",
    .state_size = sizeof(struct wm_reader_head),
    .open = open_table,
    .calls = calls_of_table,
    .close = close_table,
};

static struct wm_recording *recording;

/* Calls of the table, which breaks there; NULL and the status where it does so at once. */
static struct wm_calls *calls_of(const struct made_call *made, size_t count,
                                 size_t broken_at, int *ret_status)
{
    const char *const path = "table";
    struct wm_calls *calls = NULL;
    struct wm_error err;

    table = (struct table) { made, count, 0, broken_at };
    assert_int_equal(wm_recording_open_files(&table_ops, &path, 1, &recording, &err),
                     WM_OK);
    *ret_status = wm_calls_of_recording(recording, &calls, &err);
    return calls;
}

static void close_calls(struct wm_calls *calls)
{
    wm_calls_close(calls);
    wm_recording_close(recording);
    recording = NULL;
}

/* Edges as text: "+0@10" opens call 0, "-0@20" closes it, "?0@20" is unfinished. */
static int edges_text(const struct made_call *made, size_t count, size_t broken_at,
                      char *text, size_t size, struct wm_error *err)
{
    struct wm_region_edge edge;
    struct wm_edges *edges = NULL;
    uint32_t process = 0;
    size_t used = 0;

    text[0] = '\0';
    int status = WM_OK;
    struct wm_calls *calls = calls_of(made, count, broken_at, &status);
    if (status == WM_ENODEV && count == 0) {
        close_calls(calls);
        return WM_OK;
    }
    if (status == WM_OK)
        status = wm_edges_new(calls, true, &edges, err);
    while (status == WM_OK && (status = wm_edges_next(edges, &edge, &process, err)) > 0) {
        static const char signs[] = {
            [WM_REGION_OPENS] = '+', [WM_REGION_CLOSES] = '-', [WM_REGION_UNFINISHED] = '?'
        };
        char *end = text + used;
        status = WM_OK;
        snprintf(end, size - used, "%c%u@%lld ", signs[edge.kind], edge.path,
                 (long long)edge.when_ns);
        assert_int_equal(edge.start_ns, made[edge.path].start_ns);
        assert_true(edge.recorded_s == (edge.kind == WM_REGION_CLOSES ? edge.path : 0));
        used += strlen(end);
    }
    if (used > 0)
        text[used - 1] = '\0';
    wm_edges_free(edges);
    close_calls(calls);
    return status;
}

static const struct edges_case {
    const char *name;
    struct made_call made[6];
    size_t count;
    const char *expected;
} cases[] = {
    { "nothing", { { 0, 0 } }, 0, "" },
    { "one", { { 10, 20 } }, 1, "+0@10 -0@20" },
    { "one of no length", { { 10, 10 } }, 1, "+0@10 -0@10" },
    { "one after the other", { { 10, 20 }, { 30, 40 } }, 2, "+0@10 -0@20 +1@30 -1@40" },
    { "one begins where the other ends: it opens first",
      { { 10, 20 }, { 20, 30 } },
      2,
      "+0@10 +1@20 -0@20 -1@30" },
    { "nested", { { 10, 40 }, { 20, 30 } }, 2, "+0@10 +1@20 -1@30 -0@40" },
    { "nested, and both end at once: the inner one first",
      { { 10, 40 }, { 20, 40 }, { 30, 40 } },
      3,
      "+0@10 +1@20 +2@30 -2@40 -1@40 -0@40" },
    { "crossing", { { 10, 30 }, { 20, 40 } }, 2, "+0@10 +1@20 -0@30 -1@40" },
    { "many starts at once",
      { { 10, 13 }, { 10, 11 }, { 10, 12 } },
      3,
      "+0@10 +1@10 +2@10 -1@11 -2@12 -0@13" },
    { "one that never ended, of which nobody knows how long it went on",
      { { 10, OPEN }, { 20, 30 }, { 40, 50 } },
      3,
      "?0@10 +1@20 -1@30 +2@40 -2@50" },
    { "a clock that was set back: closed where it opened",
      { { 10, 40 }, { 20, 5 } },
      2,
      "+0@10 +1@20 -1@20 -0@40" },
    { "before 1970", { { -20, -10 }, { -15, 5 } }, 2, "+0@-20 +1@-15 -0@-10 -1@5" },
};

static void test_cases(void **state)
{
    char text[512];
    struct wm_error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].name);
        assert_int_equal(
            edges_text(cases[i].made, cases[i].count, SIZE_MAX, text, sizeof(text), &err),
            WM_OK);
        assert_string_equal(text, cases[i].expected);
    }
}

static void test_bad(void **state)
{
    static const struct made_call backwards[] = { { 10, 20 }, { 9, 30 } };
    static const struct made_call much_later[] = { { 10, 20 }, { 15, 16 }, { 14, 30 } };
    struct wm_error err;
    char text[512];

    (void)state;
    assert_int_equal(
        edges_text(backwards, ARRAY_LEN(backwards), SIZE_MAX, text, sizeof(text), &err),
        WM_EFORMAT);
    assert_int_equal(
        edges_text(much_later, ARRAY_LEN(much_later), SIZE_MAX, text, sizeof(text), &err),
        WM_EFORMAT);
    for (size_t broken = 0; broken <= 2; broken++)
        assert_int_equal(
            edges_text(backwards, ARRAY_LEN(backwards), broken, text, sizeof(text), &err),
            broken < 2 ? WM_EIO : WM_EFORMAT);
    wm_edges_free(NULL);
}

static int by_start(const void *one, const void *other)
{
    const struct made_call *a = one, *b = other;

    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Many at once: in order, none lost, each closed once and where it ends. */
static void test_random(void **state)
{
    struct made_call made[MOST];

    (void)state;
    srandom(7);
    for (int round = 0; round < 500; round++) {
        size_t count = (size_t)random() % MOST;
        size_t opened = 0, closed = 0, broken_off = 0, open = 0;
        int64_t last_ns = INT64_MIN;
        bool is_closed[MOST] = { false };
        struct wm_region_edge edge;
        struct wm_edges *edges;
        uint32_t process;
        int status;

        for (size_t i = 0; i < count; i++) {
            made[i].start_ns = random() % 200;
            made[i].stop_ns = made[i].start_ns + random() % 50;
            if (random() % 20 == 0) {
                made[i].stop_ns = OPEN;
                open++;
            }
        }
        qsort(made, count, sizeof(made[0]), by_start);
        struct wm_calls *calls = calls_of(made, count, SIZE_MAX, &status);
        if (!calls) {
            assert_int_equal(count, 0);
            close_calls(calls);
            continue;
        }
        assert_int_equal(wm_edges_new(calls, false, &edges, NULL), WM_OK);
        while ((status = wm_edges_next(edges, &edge, &process, NULL)) > 0) {
            assert_true(edge.when_ns >= last_ns);
            last_ns = edge.when_ns;
            if (edge.kind == WM_REGION_OPENS) {
                opened++;
                continue;
            }
            assert_true(edge.path < opened && edge.recorded_s == 0);
            assert_false(is_closed[edge.path]);
            is_closed[edge.path] = true;
            closed += edge.kind == WM_REGION_CLOSES;
            broken_off += edge.kind == WM_REGION_BREAKS_OFF;
            assert_int_equal(edge.when_ns, made[edge.path].stop_ns);
        }
        assert_int_equal(status, WM_OK);
        assert_int_equal(opened, count);
        assert_int_equal(broken_off, open);
        assert_int_equal(closed, count - open);
        wm_edges_free(edges);
        close_calls(calls);
    }
}

static void test_out_of_memory(void **state)
{
    static const struct made_call made[] = { { 10, 20 }, { 12, 14 } };
    struct wm_error err;
    char text[256];

    (void)state;
    for (long nth = 0; nth < 2; nth++) {
        int status;
        struct wm_calls *calls = calls_of(made, ARRAY_LEN(made), SIZE_MAX, &status);
        struct wm_edges *edges = NULL;
        struct wm_region_edge edge;
        uint32_t process;
        test_fail_allocation(nth);
        status = wm_edges_new(calls, true, &edges, &err);
        while (status == WM_OK && wm_edges_next(edges, &edge, &process, &err) > 0)
            ;
        if (status == WM_OK)
            status = wm_edges_next(edges, &edge, &process, &err);
        test_fail_allocation(-1);
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        wm_edges_free(edges);
        close_calls(calls);
    }
    assert_int_equal(edges_text(made, ARRAY_LEN(made), SIZE_MAX, text, sizeof(text), &err),
                     WM_OK);
}

UNIT(analyze_edges)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
