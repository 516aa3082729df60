/* SPDX-License-Identifier: Apache-2.0 */
/* test_region_calls.c - events become calls: stacks, paths, and what goes wrong with them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region/drain/region_calls.h"
#include "test.h"

enum { TEXT_SIZE = 8192 };

struct step {
    int64_t when_ns;
    enum wm_region_event_kind kind;
    uint32_t thread; /* its hundreds are the process */
    const char *name;
    uint64_t id;
};

/* What was handed out: "+epoch/batch 10" opens, "-epoch 10..30" closes, "!epoch 10..30"
 * breaks off; "~" stands before a free one, "@1" is the thread. */
struct log {
    const struct wm_region_calls *calls;
    char text[TEXT_SIZE];
    size_t used;
    int64_t last_ns;
    long refusals; /* of the edges to come */
};

static void append_path(struct log *log, uint32_t path)
{
    const struct wm_region_path *it = wm_region_calls_path(log->calls, path);

    if (it->parent != WM_REGION_NO_PATH) {
        const struct wm_region_path *parent = wm_region_calls_path(log->calls, it->parent);
        assert_true(it->parent < path);
        assert_int_equal(it->depth, parent->depth + 1);
        append_path(log, it->parent);
        log->used += (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, "/");
    } else {
        assert_int_equal(it->depth, 0);
    }
    log->used += (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, "%s%s",
                                  it->is_free ? "~" : "", it->name);
}

static int take(void *context, const struct wm_region_edge *edge)
{
    static const char signs[] = { '+', '-', '!' };
    struct log *log = context;

    if (log->refusals > 0) {
        log->refusals--;
        return WM_EIO;
    }
    assert_true(edge->when_ns >= log->last_ns);
    assert_true(edge->start_ns <= edge->when_ns);
    log->last_ns = edge->when_ns;
    log->used += (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, "%s%c",
                                  log->used > 0 ? " " : "", signs[edge->kind]);
    append_path(log, edge->path);
    const struct wm_region_thread *thread =
        wm_region_calls_thread(log->calls, edge->thread);
    log->used += (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, "@%d",
                                  (int)thread->tid);
    if (edge->kind == WM_REGION_OPENS)
        log->used += (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, " %lld",
                                      (long long)edge->when_ns);
    else
        log->used +=
            (size_t)snprintf(log->text + log->used, TEXT_SIZE - log->used, " %lld..%lld",
                             (long long)edge->start_ns, (long long)edge->when_ns);
    return WM_OK;
}

/* A number of a start, with that of what it lies in. */
#define IN(parent, id) ((parent) << 8 | (id))
enum { INNERMOST = 0xff };

static int feed(struct wm_region_calls *calls, const struct step *step, struct log *log)
{
    const struct wm_region_thread who = {
        .pid = (pid_t)(step->thread / 100),
        .tid = (pid_t)step->thread,
        .process = step->thread / 100,
    };
    const struct wm_region_event event = {
        .when_ns = step->when_ns,
        .kind = step->kind,
        .thread = step->thread,
        .who = &who,
        .name = step->name,
        .id = step->id & 0xff,
        .above = step->kind == WM_REGION_ENDS ? step->id : 0,
        .parent = step->id >> 8 == INNERMOST ? WM_REGION_INNERMOST : step->id >> 8,
    };

    return wm_region_calls_event(calls, &event, take, log);
}

enum { STEPS_MAX = 12 };

#define B WM_REGION_BEGINS
#define E WM_REGION_ENDS
#define S WM_REGION_STARTS
#define T WM_REGION_STOPS
#define G WM_REGION_GONE

/* The end of everything is at 1000. A step without a time is past the last. */
static const struct {
    const char *name;
    struct step steps[STEPS_MAX];
    const char *edges;
    uint64_t stray;
    size_t paths;
} cases[] = {
    { "nothing at all", { { 0 } }, "", 0, 0 },
    { "one", { { 10, B, 1, "a", 0 }, { 30, E, 1, NULL, 0 } }, "+a@1 10 -a@1 10..30", 0, 1 },
    { "no name",
      { { 10, B, 1, NULL, 0 }, { 30, E, 1, NULL, 0 }, { 40, B, 1, "", 0 } },
      "+@1 10 -@1 10..30 +@1 40 !@1 40..1000",
      0,
      1 },
    { "nested, and the same name by itself",
      { { 10, B, 1, "a", 0 },
        { 20, B, 1, "b", 0 },
        { 30, E, 1, NULL, 0 },
        { 40, B, 1, "b", 0 },
        { 50, E, 1, NULL, 0 },
        { 60, E, 1, NULL, 0 },
        { 70, B, 1, "b", 0 },
        { 80, E, 1, NULL, 0 } },
      "+a@1 10 +a/b@1 20 -a/b@1 20..30 +a/b@1 40 -a/b@1 40..50 -a@1 10..60 +b@1 70"
      " -b@1 70..80",
      0,
      3 },
    { "the same at a depth again, in another region, and after the thread was gone",
      { { 10, B, 1, "a", 0 },
        { 20, B, 1, "b", 0 },
        { 30, E, 1, NULL, 0 },
        { 40, E, 1, NULL, 0 },
        { 50, B, 1, "a", 0 },
        { 60, B, 1, "b", 0 },
        { 70, E, 1, NULL, 0 },
        { 80, E, 1, NULL, 0 },
        { 90, B, 1, "c", 0 },
        { 100, B, 1, "b", 0 },
        { 110, G, 1, NULL, 0 },
        { 120, B, 1, "c", 0 } },
      "+a@1 10 +a/b@1 20 -a/b@1 20..30 -a@1 10..40 +a@1 50 +a/b@1 60 -a/b@1 60..70"
      " -a@1 50..80 +c@1 90 +c/b@1 100 !c/b@1 100..110 !c@1 90..110 +c@1 120"
      " !c@1 120..1000",
      0,
      4 },
    { "recursion",
      { { 10, B, 1, "f", 0 },
        { 20, B, 1, "f", 0 },
        { 30, B, 1, "f", 0 },
        { 40, E, 1, NULL, 0 },
        { 50, E, 1, NULL, 0 },
        { 60, E, 1, NULL, 0 } },
      "+f@1 10 +f/f@1 20 +f/f/f@1 30 -f/f/f@1 30..40 -f/f@1 20..50 -f@1 10..60",
      0,
      3 },
    { "two threads and two processes mind their own",
      { { 10, B, 1, "a", 0 },
        { 20, B, 2, "b", 0 },
        { 30, B, 101, "c", 0 },
        { 40, E, 1, NULL, 0 },
        { 50, E, 101, NULL, 0 },
        { 60, E, 2, NULL, 0 } },
      "+a@1 10 +b@2 20 +c@101 30 -a@1 10..40 -c@101 30..50 -b@2 20..60",
      0,
      3 },
    { "names that look like paths",
      { { 10, B, 1, "a/b", 0 },
        { 20, E, 1, NULL, 0 },
        { 30, B, 1, "a", 0 },
        { 40, B, 1, "b", 0 } },
      "+a/b@1 10 -a/b@1 10..20 +a@1 30 +a/b@1 40 !a/b@1 40..1000 !a@1 30..1000",
      0,
      3 },
    { "an end too many",
      { { 10, E, 1, NULL, 0 },
        { 20, B, 1, "a", 0 },
        { 30, E, 1, NULL, 0 },
        { 40, E, 1, NULL, 0 } },
      "+a@1 20 -a@1 20..30",
      2,
      1 },
    { "free ones overlap, and another thread stops them",
      { { 10, S, 1, "r", 7 },
        { 15, B, 1, "a", 0 },
        { 20, S, 1, "r", 8 },
        { 30, T, 2, NULL, 7 },
        { 40, E, 1, NULL, 0 },
        { 50, T, 1, NULL, 8 } },
      "+~r@1 10 +a@1 15 +~r@1 20 -~r@1 10..30 -a@1 15..40 -~r@1 20..50",
      0,
      2 },
    { "a number is the process's own",
      { { 10, S, 1, "r", 7 },
        { 20, S, 101, "q", 7 },
        { 30, T, 101, NULL, 7 },
        { 40, T, 1, NULL, 7 } },
      "+~r@1 10 +~q@101 20 -~q@101 20..30 -~r@1 10..40",
      0,
      2 },
    { "a stop without a start, and one too many",
      { { 10, T, 1, NULL, 7 },
        { 20, S, 1, "r", 7 },
        { 30, T, 1, NULL, 7 },
        { 40, T, 1, NULL, 7 },
        { 50, T, 101, NULL, 7 } },
      "+~r@1 20 -~r@1 20..30",
      3,
      1 },
    { "two starts of one number: the first broke off",
      { { 10, S, 1, "r", 7 }, { 20, S, 1, "q", 7 }, { 30, T, 1, NULL, 7 } },
      "+~r@1 10 !~r@1 10..20 +~q@1 20 -~q@1 20..30",
      0,
      2 },
    { "free ones lie in others, as long as these go on",
      { { 10, S, 1, "r", 7 },
        { 20, S, 2, "q", IN(7, 8) },
        { 30, S, 2, "p", IN(8, 9) },
        { 40, T, 1, NULL, 7 },
        { 50, S, 1, "q", IN(7, 10) },
        { 60, T, 2, NULL, 9 },
        { 70, T, 2, NULL, 8 },
        { 80, S, 101, "q", IN(10, 11) } },
      "+~r@1 10 +~r/~q@2 20 +~r/~q/~p@2 30 -~r@1 10..40 +~q@1 50 -~r/~q/~p@2 30..60"
      " -~r/~q@2 20..70 +~q@101 80 !~q@1 50..1000 !~q@101 80..1000",
      0,
      4 },
    { "free ones lie in what is on top of the stack",
      { { 10, B, 1, "a", 0 },
        { 20, S, 1, "r", IN(INNERMOST, 7) },
        { 30, S, 2, "r", IN(INNERMOST, 8) },
        { 40, E, 1, NULL, 0 },
        { 50, T, 1, NULL, 7 },
        { 60, T, 1, NULL, 8 } },
      "+a@1 10 +a/~r@1 20 +~r@2 30 -a@1 10..40 -a/~r@1 20..50 -~r@2 30..60",
      0,
      3 },
    { "a call ends below others",
      { { 10, B, 1, "a", 0 },
        { 20, B, 1, "b", 0 },
        { 30, B, 1, "c", 0 },
        { 40, E, 1, NULL, 1 },
        { 50, E, 1, NULL, 2 },
        { 60, E, 1, NULL, 1 },
        { 70, B, 1, "b", 0 },
        { 80, E, 1, NULL, 1 },
        { 90, E, 1, NULL, 0 } },
      "+a@1 10 +a/b@1 20 +a/b/c@1 30 -a/b@1 20..40 -a@1 10..60 +a/b/c/b@1 70"
      " -a/b/c@1 30..80 -a/b/c/b@1 70..90",
      1,
      4 },
    { "a thread is gone in the middle",
      { { 10, B, 1, "a", 0 },
        { 20, B, 1, "b", 0 },
        { 25, B, 2, "c", 0 },
        { 30, G, 1, NULL, 0 },
        { 31, G, 1, NULL, 0 },
        { 40, E, 2, NULL, 0 } },
      "+a@1 10 +a/b@1 20 +c@2 25 !a/b@1 20..30 !a@1 10..30 -c@2 25..40",
      0,
      3 },
    { "what a thread started goes with the last of its process",
      { { 10, S, 1, "r", 7 },
        { 15, S, 101, "other", 7 },
        { 20, B, 2, "a", 0 },
        { 30, G, 1, NULL, 0 },
        { 40, G, 2, NULL, 0 },
        { 50, T, 101, NULL, 7 } },
      "+~r@1 10 +~other@101 15 +a@2 20 !a@2 20..40 !~r@1 10..40 -~other@101 15..50",
      0,
      3 },
    { "gone before it did anything",
      { { 10, G, 1, NULL, 0 }, { 20, B, 2, "a", 0 } },
      "+a@2 20 !a@2 20..1000",
      0,
      1 },
    { "back after it was gone",
      { { 10, B, 1, "a", 0 },
        { 20, G, 1, NULL, 0 },
        { 30, E, 1, NULL, 0 },
        { 40, S, 1, "r", 1 },
        { 50, G, 1, NULL, 0 } },
      "+a@1 10 !a@1 10..20 +~r@1 40 !~r@1 40..50",
      1,
      2 },
    { "a clock that was set back stands still",
      { { 50, B, 1, "a", 0 },
        { 20, B, 1, "b", 0 },
        { 10, E, 1, NULL, 0 },
        { 40, B, 2, "c", 0 },
        { 60, E, 1, NULL, 0 },
        { 45, E, 2, NULL, 0 } },
      "+a@1 50 +a/b@1 50 -a/b@1 50..50 +c@2 50 -a@1 50..60 -c@2 50..60",
      0,
      3 },
    { "all that is open at the end",
      { { 10, B, 1, "a", 0 }, { 20, B, 2, "b", 0 }, { 30, S, 2, "r", 1 } },
      "+a@1 10 +b@2 20 +~r@2 30 !a@1 10..1000 !b@2 20..1000 !~r@2 30..1000",
      0,
      3 },
};

static void check_case(size_t index, long allocation, bool refuse)
{
    struct wm_region_calls *calls = NULL;
    struct wm_error err;
    struct log log = { .last_ns = INT64_MIN };

    if (allocation >= 0)
        test_fail_allocation(allocation);
    int status = wm_region_calls_new(&calls, &err);
    if (status < 0) {
        test_fail_allocation(-1);
        assert_int_equal(status, WM_ENOMEM);
        assert_int_equal(wm_region_calls_new(&calls, &err), WM_OK);
    }
    log.calls = calls;
    for (size_t i = 0; i < STEPS_MAX && cases[index].steps[i].when_ns > 0; i++) {
        log.refusals = refuse;
        status = feed(calls, &cases[index].steps[i], &log);
        while (status < 0) {
            assert_int_equal(status, refuse ? WM_EIO : WM_ENOMEM);
            test_fail_allocation(-1);
            status = feed(calls, &cases[index].steps[i], &log);
        }
    }
    log.refusals = refuse;
    while ((status = wm_region_calls_end(calls, 1000, take, &log)) < 0)
        assert_true(refuse);
    test_fail_allocation(-1);
    assert_string_equal(log.text, cases[index].edges);
    assert_int_equal(wm_region_calls_stray(calls), cases[index].stray);
    assert_int_equal(wm_region_calls_path_count(calls), cases[index].paths);
    wm_region_calls_free(calls);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].name);
        check_case(i, -1, false);
    }
}

/* An edge that was not taken comes once more, and nothing is counted twice. */
static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].name);
        check_case(i, -1, true);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (long nth = 0; nth < 30; nth++)
            check_case(i, nth, false);
    }
}

static int count_edges(void *context, const struct wm_region_edge *edge)
{
    uint64_t *counts = context;

    counts[edge->kind]++;
    return WM_OK;
}

/* Many names and depths, each one found again; names of 4 KB that differ at the end. */
static void test_many(void **state)
{
    enum { NAMES = 500, LENGTH = 4096, ROUNDS = 3 };
    struct wm_region_calls *calls = NULL;
    struct wm_error err;
    uint64_t counts[3] = { 0 };
    char name[LENGTH + 1];

    (void)state;
    assert_int_equal(wm_region_calls_new(&calls, &err), WM_OK);
    memset(name, 'x', LENGTH);
    name[LENGTH] = '\0';
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t thread = 0; thread < 2; thread++) {
            struct wm_region_thread who = { 1, (pid_t)thread, 0 };
            struct wm_region_event event = {
                .when_ns = round,
                .thread = thread,
                .who = &who,
            };
            for (int i = 0; i < NAMES; i++) {
                snprintf(name + LENGTH - 12, 13, "%012d", i);
                event.kind = WM_REGION_BEGINS;
                event.name = name;
                assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts),
                                 WM_OK);
            }
            for (int i = 0; i < NAMES; i++) {
                event.kind = WM_REGION_ENDS;
                event.name = NULL;
                assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts),
                                 WM_OK);
            }
        }
    }
    assert_int_equal(wm_region_calls_path_count(calls), NAMES);
    assert_int_equal(wm_region_calls_thread_count(calls), 2);
    assert_int_equal(counts[WM_REGION_OPENS], ROUNDS * 2 * NAMES);
    assert_int_equal(counts[WM_REGION_CLOSES], ROUNDS * 2 * NAMES);
    const struct wm_region_path *deepest = wm_region_calls_path(calls, NAMES - 1);
    assert_int_equal(deepest->depth, NAMES - 1);
    assert_string_equal(deepest->name, name);
    wm_region_calls_free(calls);
}

/* Free ones that come and go in any order: as many as are open are kept, and none is
 * mistaken for another. */
/* A recursion of two names, each of which calls both. */
static void recurse(struct wm_region_calls *calls, int depth, uint64_t *counts)
{
    static const struct wm_region_thread thread = { .pid = 1, .tid = 1 };
    struct wm_region_event begins = { .when_ns = 1,
                                      .kind = WM_REGION_BEGINS,
                                      .who = &thread };
    struct wm_region_event ends = { .when_ns = 1, .kind = WM_REGION_ENDS, .who = &thread };

    for (int i = 0; i < 2 && depth > 0; i++) {
        begins.name = i ? "a" : "b";
        assert_int_equal(wm_region_calls_event(calls, &begins, count_edges, counts), WM_OK);
        recurse(calls, depth - 1, counts);
        assert_int_equal(wm_region_calls_event(calls, &ends, count_edges, counts), WM_OK);
    }
}

static void test_paths_are_bounded(void **state)
{
    enum { DEPTH = 18 };
    struct wm_region_calls *calls = NULL;
    uint64_t counts[3] = { 0 }, further = 0;

    (void)state;
    assert_int_equal(wm_region_calls_new(&calls, NULL), WM_OK);
    recurse(calls, DEPTH, counts);
    assert_int_equal(counts[WM_REGION_OPENS], (2 << DEPTH) - 2);
    assert_int_equal(counts[WM_REGION_CLOSES], (2 << DEPTH) - 2);
    assert_int_equal(wm_region_calls_stray(calls), 0);
    size_t count = wm_region_calls_path_count(calls);
    assert_true(count > WM_REGION_PATHS_MOST && count <= 2 * WM_REGION_PATHS_MOST);
    for (uint32_t i = 0; i < count; i++) {
        const struct wm_region_path *path = wm_region_calls_path(calls, i);
        if (i < WM_REGION_PATHS_MOST)
            continue;
        assert_string_equal(path->name, WM_REGION_FURTHER);
        assert_true(path->parent < WM_REGION_PATHS_MOST ||
                    path->parent == WM_REGION_NO_PATH);
        further++;
    }
    assert_true(further > 0);

    /* Not even by that name, one in another. */
    static const struct wm_region_thread thread = { .pid = 1, .tid = 1 };
    const struct wm_region_event begins = {
        .when_ns = 1,
        .kind = WM_REGION_BEGINS,
        .who = &thread,
        .name = WM_REGION_FURTHER,
    };
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wm_region_calls_event(calls, &begins, count_edges, counts), WM_OK);
    assert_true(wm_region_calls_path_count(calls) <= count + 1);
    wm_region_calls_free(calls);
}

/* Long ones are put together before there are too many of them. */
static void test_long_names(void **state)
{
    enum { LENGTH = 8000, ROUNDS = 10000, MEBIBYTE = 1 << 20 };
    static const struct wm_region_thread who = { 1, 1, 0 };
    struct wm_region_calls *calls = NULL;
    uint64_t counts[3] = { 0 };
    char name[LENGTH + 1];

    (void)state;
    memset(name, 'n', sizeof(name));
    assert_int_equal(wm_region_calls_new(&calls, NULL), WM_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct wm_region_event event = { i, WM_REGION_BEGINS, 0, &who, name, 0, 0, NULL, 0,
                                         0 };
        snprintf(name + LENGTH - 8, 9, "%08d", i);
        assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts), WM_OK);
        event.kind = WM_REGION_ENDS;
        assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts), WM_OK);
    }
    size_t count = wm_region_calls_path_count(calls);
    assert_true(count * LENGTH > 60 * (size_t)MEBIBYTE);
    assert_true(count * LENGTH < 65 * (size_t)MEBIBYTE);
    assert_string_equal(wm_region_calls_path(calls, (uint32_t)count - 1)->name,
                        WM_REGION_FURTHER);
    assert_int_equal(counts[WM_REGION_OPENS], ROUNDS);
    assert_int_equal(counts[WM_REGION_CLOSES], ROUNDS);
    wm_region_calls_free(calls);
}

static void test_free_calls(void **state)
{
    enum { OPEN = 300, ROUNDS = 50000 };
    struct wm_region_calls *calls = NULL;
    struct wm_error err;
    uint64_t counts[3] = { 0 }, open[OPEN] = { 0 }, next_id = 1, random = 1;
    const struct wm_region_thread who = { 1, 1, 0 };

    (void)state;
    assert_int_equal(wm_region_calls_new(&calls, &err), WM_OK);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t *place = &open[(random >> 33) % OPEN];
        const struct wm_region_event event = {
            .when_ns = i,
            .kind = *place ? WM_REGION_STOPS : WM_REGION_STARTS,
            .who = &who,
            .name = "r",
            .id = *place ? *place : next_id,
        };
        assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts), WM_OK);
        *place = *place ? 0 : next_id++;
    }
    uint64_t left = 0;
    for (int i = 0; i < OPEN; i++)
        left += open[i] != 0;
    assert_int_equal(wm_region_calls_stray(calls), 0);
    assert_int_equal(counts[WM_REGION_OPENS] - counts[WM_REGION_CLOSES], left);
    assert_int_equal(wm_region_calls_end(calls, ROUNDS, count_edges, counts), WM_OK);
    assert_int_equal(counts[WM_REGION_BREAKS_OFF], left);
    assert_int_equal(wm_region_calls_path_count(calls), 1);
    wm_region_calls_free(calls);
}

/* What nobody ends takes memory up to a bound. What was begun beyond that is dropped, and
 * its end with it. */
static void test_never_ended(void **state)
{
    static const struct {
        enum wm_region_event_kind begins, ends;
        uint64_t most;
    } kinds[] = {
        { WM_REGION_BEGINS, WM_REGION_ENDS, WM_REGION_DEPTH_MOST },
        { WM_REGION_STARTS, WM_REGION_STOPS, WM_REGION_STARTED_MOST },
    };
    static const struct wm_region_thread who = { 1, 1, 0 };
    (void)state;

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct wm_region_calls *calls = NULL;
        uint64_t counts[3] = { 0 }, all = kinds[k].most + 10;
        struct wm_region_event event = {
            0, kinds[k].begins, 0, &who, "r", 1, 0, NULL, 0, 0
        };
        assert_int_equal(wm_region_calls_new(&calls, NULL), WM_OK);
        for (event.id = 1; event.id <= all; event.id++)
            assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts),
                             WM_OK);
        assert_int_equal(counts[WM_REGION_OPENS], kinds[k].most);
        assert_int_equal(wm_region_calls_dropped(calls), 10);

        event.kind = kinds[k].ends;
        for (event.id = all; event.id > 0; event.id--)
            assert_int_equal(wm_region_calls_event(calls, &event, count_edges, counts),
                             WM_OK);
        assert_int_equal(counts[WM_REGION_CLOSES], kinds[k].most);
        assert_int_equal(wm_region_calls_dropped(calls), 20);
        assert_int_equal(wm_region_calls_stray(calls), 0);
        wm_region_calls_event(calls, &event, count_edges, counts);
        assert_int_equal(wm_region_calls_stray(calls), 1);
        wm_region_calls_free(calls);
    }
}

UNIT(region_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_many),
        cmocka_unit_test(test_long_names),    cmocka_unit_test(test_free_calls),
        cmocka_unit_test(test_never_ended),   cmocka_unit_test(test_paths_are_bounded),
    };

    wm_region_calls_free(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
