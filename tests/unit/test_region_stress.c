/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_region_stress.c - many threads of many processes at once: of each, all events come,
 * in their order, and those of all are in the order of time. And calls of all kinds at
 * random: at each place in the tree there are as many as were made.
 *
 *     WM_STRESS='PROCESSES THREADS CALLS' test_region_stress
 *
 * makes it larger: 8 64 1000000 is what the rings are made for. Prints how fast it was, and
 * how much memory the rings and this process had at most.
 */
#include "test.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "region/drain/region_inbox.h"
#include "region/mark/region_local.h"
#include "wattmeter/region.h"

enum { PROCESSES_MAX = 64, THREADS_MAX = 1024, RINGS_MAX = 1 << 14 };

static const char *const names[] = { "load", "forward", "backward", "step", "a, \"b\"\n" };

static struct size {
    long processes, threads, calls;
} size = { 4, 8, 2000 };

/* A new name for each call: calls of new names are not folded. */
static void name_call(char name[32], long call)
{
    snprintf(name, 32, "%s %ld", names[(size_t)call % ARRAY_LEN(names)], call);
}

/* Every third call has one in it. */
static void *mark_calls(void *context)
{
    char name[32];

    (void)context;
    for (long i = 0; i < size.calls; i++) {
        /* The same place holds another name each time. */
        name_call(name, i);
        wm_region_begin(name);
        if (i % 3 == 0) {
            wm_region_begin("inner");
            wm_region_end();
        }
        wm_region_end();
    }
    return NULL;
}

static void be_process(const char *path)
{
    pthread_t threads[THREADS_MAX];

    if (wm_region_listen(path, NULL) < 0)
        _exit(1);
    for (long i = 0; i < size.threads; i++)
        if (pthread_create(&threads[i], NULL, mark_calls, NULL) != 0)
            _exit(2);
    for (long i = 0; i < size.threads; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

/* What is known of the thread of a ring, and has come of it. */
static struct seen {
    long call;
    int step; /* events of the call so far */
    bool is_gone;
    uint32_t process;
} seen[RINGS_MAX];

static struct {
    const struct wm_region_inbox *inbox;
    int64_t last_ns;
    uint64_t events, gone;
} all;

static void check_name(const struct wm_region_event *event, const char *expected)
{
    if (strcmp(event->name, expected) != 0)
        fail_msg("thread %u: %s is not %s (%llu lost)", event->thread, event->name,
                 expected, (unsigned long long)wm_region_inbox_trouble(all.inbox)->lost);
}

static int take(void *context, const struct wm_region_event *event)
{
    (void)context;
    assert_true(event->thread < RINGS_MAX);
    struct seen *thread = &seen[event->thread];
    bool has_inner = thread->call % 3 == 0;
    int steps = has_inner ? 4 : 2;
    char name[32];

    assert_true(event->when_ns >= all.last_ns);
    all.last_ns = event->when_ns;
    assert_false(thread->is_gone);
    if (event->kind == WM_REGION_GONE) {
        thread->is_gone = true;
        thread->process = event->who->process;
        all.gone++;
        return 0;
    }
    all.events++;
    if (thread->step == 0 || (has_inner && thread->step == 1)) {
        assert_int_equal(event->kind, WM_REGION_BEGINS);
        name_call(name, thread->call);
        check_name(event, thread->step == 1 ? "inner" : name);
    } else {
        assert_int_equal(event->kind, WM_REGION_ENDS);
    }
    if (++thread->step == steps) {
        thread->step = 0;
        thread->call++;
    }
    return 0;
}

static double mebibytes_of(const char *path)
{
    char name[512];
    const struct dirent *entry;
    struct stat info;
    double bytes = 0;

    DIR *dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (stat(name, &info) == 0 && S_ISREG(info.st_mode))
            bytes += (double)info.st_blocks * 512;
    }
    closedir(dir);
    return bytes / (1 << 20);
}

static double resident_mebibytes(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_maxrss / 1024;
}

static void check_all(void)
{
    uint64_t events = 0;
    long rings = 0;
    long per_process[PROCESSES_MAX] = { 0 };

    for (size_t i = 0; i < RINGS_MAX; i++) {
        if (seen[i].call == 0)
            continue;
        assert_int_equal(seen[i].call, size.calls);
        assert_int_equal(seen[i].step, 0);
        assert_true(seen[i].is_gone);
        assert_true(seen[i].process < (uint32_t)size.processes);
        per_process[seen[i].process]++;
        rings++;
        events += (uint64_t)(2 * size.calls + 2 * ((size.calls + 2) / 3));
    }
    assert_int_equal(rings, size.processes * size.threads);
    assert_int_equal(all.gone, rings);
    assert_int_equal(all.events, events);
    for (long i = 0; i < size.processes; i++)
        assert_int_equal(per_process[i], size.threads);
}

static void test_stress(void **state)
{
    struct wm_region_inbox *inbox;
    struct wm_error err;
    int64_t complete_ns = 0, before_ns = 0;
    double before = resident_mebibytes(), rings = 0;
    long running = size.processes;

    (void)state;
    assert_int_equal(wm_region_inbox_new(&inbox, &err), WM_OK);
    assert_int_equal(wm_region_inbox_open(inbox, &err), WM_OK);
    all.inbox = inbox;
    int64_t start_ns = wm_clock_monotonic_ns();
    for (long i = 0; i < size.processes; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            be_process(wm_region_inbox_path(inbox));
    }
    for (int64_t measured_ns = 0; running > 0;) {
        struct pollfd wake = { .fd = wm_region_inbox_fd(inbox), .events = POLLIN };
        int status = 0;
        poll(&wake, 1, 20);
        assert_int_equal(
            wm_region_inbox_drain(inbox, false, INT64_MAX, take, NULL, &complete_ns, &err),
            WM_OK);
        assert_true(complete_ns >= before_ns && complete_ns < wm_clock_monotonic_ns());
        before_ns = complete_ns;
        while (waitpid(-1, &status, WNOHANG) > 0) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
            running--;
        }
        if (complete_ns - measured_ns > 100 * WM_NS_PER_MS) {
            measured_ns = complete_ns;
            double now = mebibytes_of(wm_region_inbox_path(inbox));
            rings = now > rings ? now : rings;
        }
    }
    assert_int_equal(
        wm_region_inbox_drain(inbox, true, INT64_MAX, take, NULL, &complete_ns, &err),
        WM_OK);
    double seconds = (double)(wm_clock_monotonic_ns() - start_ns) / 1e9;
    print_message("# %llu events in %.2f s, %.2f million a second; %llu lost; rings %.1f "
                  "MiB, this process %.1f MiB more\n",
                  (unsigned long long)all.events, seconds,
                  (double)all.events / seconds / 1e6,
                  (unsigned long long)wm_region_inbox_trouble(inbox)->lost, rings,
                  resident_mebibytes() - before);
    assert_int_equal(wm_region_inbox_trouble(inbox)->lost, 0);
    check_all();
    wm_region_inbox_free(inbox);
}

enum { MARKERS = 3, STEPS = 300, PLACES = 4096, DEEPEST = 40, NAMES = 300 };

/* A place in the tree of calls, as the program that marks them knows it. */
struct place {
    size_t parent; /* PLACES: none */
    size_t name;
    bool is_free;
    uint64_t calls;
};

struct marker {
    unsigned seed;
    struct place places[PLACES];
    size_t place_count;
    size_t stack[DEEPEST], depth;
    uint64_t started; /* 0: none is */
    size_t started_place;
};

static char random_names[NAMES][8];

static unsigned draw(struct marker *marker, unsigned below)
{
    marker->seed = marker->seed * 1103515245 + 12345;
    return (marker->seed >> 16) % below;
}

static size_t find_place(struct marker *marker, size_t name, bool is_free)
{
    size_t parent =
        marker->depth > 0 && !is_free ? marker->stack[marker->depth - 1] : (size_t)PLACES;
    size_t i = 0;

    while (i < marker->place_count &&
           (marker->places[i].parent != parent || marker->places[i].name != name ||
            marker->places[i].is_free != is_free))
        i++;
    assert_true(i < PLACES);
    if (i == marker->place_count)
        marker->places[marker->place_count++] = (struct place) { parent, name, is_free, 0 };
    return i;
}

static void begin_one(struct marker *marker, size_t name)
{
    size_t place = find_place(marker, name, false);

    marker->stack[marker->depth++] = place;
    wm_region_begin(random_names[name]);
}

static void end_one(struct marker *marker)
{
    marker->places[marker->stack[--marker->depth]].calls++;
    wm_region_end();
}

static void loop(struct marker *marker, size_t name, unsigned rounds, unsigned inner)
{
    for (unsigned i = 0; i < rounds; i++) {
        begin_one(marker, name);
        for (unsigned k = 0; k < inner; k++) {
            begin_one(marker, name + k % 3);
            end_one(marker);
        }
        end_one(marker);
    }
}

static void start_or_stop(struct marker *marker, size_t name)
{
    if (marker->started != 0) {
        wm_region_stop(marker->started);
        marker->places[marker->started_place].calls++;
        marker->started = 0;
        return;
    }
    marker->started_place = find_place(marker, name, true);
    marker->started = wm_region_start(random_names[name]);
}

static void last_long(struct marker *marker, size_t name, int64_t length_ns)
{
    int64_t until_ns = wm_clock_monotonic_ns() + length_ns;

    begin_one(marker, name);
    while (wm_clock_monotonic_ns() < until_ns)
        ;
    end_one(marker);
}

static void step(struct marker *marker)
{
    size_t name = draw(marker, 6);

    switch (draw(marker, 10)) {
    case 0:
    case 1:
        if (marker->depth < DEEPEST - 4)
            begin_one(marker, name);
        break;
    case 2:
    case 3:
        if (marker->depth > 0)
            end_one(marker);
        break;
    case 4:
        loop(marker, name, draw(marker, 3000), 0);
        break;
    case 5:
        loop(marker, name, draw(marker, 200), draw(marker, 20));
        break;
    case 6:
        loop(marker, name, draw(marker, 4), draw(marker, 1500));
        break;
    case 7:
        start_or_stop(marker, name);
        break;
    case 8:
        last_long(marker, name, draw(marker, 700000));
        break;
    default: /* one of many names, which are forgotten in between */
        begin_one(marker, draw(marker, NAMES));
        end_one(marker);
    }
}

static void *mark_at_random(void *context)
{
    struct marker *marker = context;

    for (int i = 0; i < STEPS; i++)
        step(marker);
    while (marker->depth > 0)
        end_one(marker);
    if (marker->started != 0)
        start_or_stop(marker, 0);
    return NULL;
}

/* What came of it. */
struct random_run {
    struct wm_region_calls *calls;
    uint64_t counts[MARKERS * PLACES]; /* of each path */
    int64_t inside_ns[MARKERS * PLACES], own_ns[MARKERS * PLACES];
    uint64_t folded;
};

static int count_edge(void *context, const struct wm_region_edge *edge)
{
    struct random_run *run = context;

    if (edge->kind == WM_REGION_OPENS)
        return 0;
    assert_int_equal(edge->kind, WM_REGION_CLOSES);
    assert_true(edge->path < ARRAY_LEN(run->counts));
    const struct wm_region_path *path = wm_region_calls_path(run->calls, edge->path);
    run->counts[edge->path] += edge->fold ? edge->fold->calls : 1;
    run->folded += edge->fold ? edge->fold->calls : 0;
    run->own_ns[edge->path] += edge->when_ns - edge->start_ns;
    if (path->parent != WM_REGION_NO_PATH)
        run->inside_ns[path->parent] += edge->when_ns - edge->start_ns;
    return 0;
}

static int take_at_random(void *context, const struct wm_region_event *event)
{
    struct random_run *run = context;

    return wm_region_calls_event(run->calls, event, count_edge, run);
}

/* The number of a marker's place among the paths. */
static uint32_t find_path(const struct random_run *run, const struct marker *marker,
                          size_t place)
{
    const struct place *made = &marker->places[place];
    uint32_t parent =
        made->parent == PLACES ? WM_REGION_NO_PATH : find_path(run, marker, made->parent);
    size_t count = wm_region_calls_path_count(run->calls);

    for (uint32_t i = 0; i < count; i++) {
        const struct wm_region_path *path = wm_region_calls_path(run->calls, i);
        if (path->parent == parent && path->is_free == made->is_free &&
            strcmp(path->name, random_names[made->name]) == 0)
            return i;
    }
    fail_msg("%s is missing", random_names[made->name]);
    return 0;
}

static void check_counts(struct random_run *run, const struct marker *markers)
{
    size_t count = wm_region_calls_path_count(run->calls);

    for (size_t i = 0; i < MARKERS; i++)
        for (size_t k = 0; k < markers[i].place_count; k++)
            run->counts[find_path(run, &markers[i], k)] -= markers[i].places[k].calls;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(run->counts[i], 0);
        assert_true(run->inside_ns[i] <= run->own_ns[i]);
    }
    assert_int_equal(wm_region_calls_stray(run->calls), 0);
    assert_int_equal(wm_region_calls_dropped(run->calls), 0);
}

static void run_at_random(unsigned seed, bool folds_all)
{
    struct marker *markers = calloc(MARKERS, sizeof(*markers));
    struct random_run *run = calloc(1, sizeof(*run));
    pthread_t threads[MARKERS];
    struct wm_region_inbox *inbox;
    int64_t complete_ns;

    assert_true(markers && run);
    assert_int_equal(wm_region_calls_new(&run->calls, NULL), WM_OK);
    assert_int_equal(wm_region_inbox_new(&inbox, NULL), WM_OK);
    assert_int_equal(wm_region_inbox_open(inbox, NULL), WM_OK);
    wm_region_inbox_fold_all(inbox, folds_all);
    assert_int_equal(wm_region_listen(wm_region_inbox_path(inbox), NULL), WM_OK);
    for (unsigned i = 0; i < MARKERS; i++) {
        markers[i].seed = seed * MARKERS + i;
        assert_int_equal(pthread_create(&threads[i], NULL, mark_at_random, &markers[i]), 0);
    }
    for (unsigned i = 0; i < MARKERS; i++) {
        while (pthread_tryjoin_np(threads[i], NULL) != 0) {
            usleep(500);
            assert_int_equal(wm_region_inbox_drain(inbox, false, INT64_MAX, take_at_random,
                                                   run, &complete_ns, NULL),
                             WM_OK);
        }
    }
    assert_int_equal(wm_region_inbox_drain(inbox, true, INT64_MAX, take_at_random, run,
                                           &complete_ns, NULL),
                     WM_OK);
    check_counts(run, markers);
    assert_true(!folds_all || run->folded > 0);
    assert_int_equal(wm_region_inbox_trouble(inbox)->lost, 0);
    assert_int_equal(wm_region_inbox_trouble(inbox)->damaged, 0);
    assert_int_equal(wm_region_listen(NULL, NULL), WM_OK);
    wm_region_inbox_free(inbox);
    wm_region_calls_free(run->calls);
    free(run);
    free(markers);
}

static void test_at_random(void **state)
{
    enum { RUNS = 10 };

    (void)state;
    for (size_t i = 0; i < NAMES; i++)
        snprintf(random_names[i], sizeof(random_names[i]), "%zu", i);
    for (unsigned i = 0; i < RUNS; i++)
        run_at_random(i, i % 2 == 0);
}

UNIT(region_stress)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stress),
        cmocka_unit_test(test_at_random),
    };
    const char *text = getenv("WM_STRESS");

    if (text &&
        (sscanf(text, "%ld %ld %ld", &size.processes, &size.threads, &size.calls) != 3 ||
         size.processes < 1 || size.processes > PROCESSES_MAX || size.threads < 1 ||
         size.threads > THREADS_MAX || size.calls < 1)) {
        fprintf(stderr, "WM_STRESS: PROCESSES THREADS CALLS\n");
        return 2;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
