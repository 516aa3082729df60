/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_region_stress.c - many threads of many processes at once: of each, all events come,
 * in their order, and those of all are in the order of time.
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

/* Every third call has one in it. */
static void *mark_calls(void *context)
{
    char name[32];

    (void)context;
    for (long i = 0; i < size.calls; i++) {
        /* The same place holds another name each time. */
        snprintf(name, sizeof(name), "%s", names[(size_t)i % ARRAY_LEN(names)]);
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
        check_name(event, thread->step == 1
                              ? "inner"
                              : names[(size_t)thread->call % ARRAY_LEN(names)]);
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stress) };
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
