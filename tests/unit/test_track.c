/* SPDX-License-Identifier: Apache-2.0 */
/* test_track.c - the tracker through its public functions, on real processes. */
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wattmeter/wattmeter.h"

#define MILLISECOND INT64_C(1000000)

static char *const sleep_200ms[] = { (char *)"sleep", (char *)"0.2", NULL };

#define TARGET(...) (&(struct wm_tracker_target) { __VA_ARGS__ })
#define COMMAND(words) TARGET(.argv = (words))
#define PROCESS(pid_) TARGET(.pids = &(pid_t) { pid_ }, .pid_count = 1)

static struct wm_tracker *new_tracker(int64_t interval_ns)
{
    const struct wm_tracker_options options = { .interval_ns = interval_ns };
    struct wm_tracker *tracker = NULL;
    struct wm_error err = { 0 };

    if (wm_tracker_new(&options, &tracker, &err) < 0)
        fail_msg("%s", err.text);
    return tracker;
}

static void run_to_end(struct wm_tracker *tracker)
{
    struct wm_error err = { 0 };
    int state;

    while ((state = wm_tracker_poll(tracker, -1, &err)) == WM_TRACKER_RUNNING)
        ;
    assert_int_equal(state, WM_TRACKER_ENDED);
    if (wm_tracker_stop(tracker, &err) < 0)
        fail_msg("%s", err.text);
}

static double number(const struct wm_tracker *tracker, const char *key)
{
    struct wm_report *report = NULL;
    struct wm_report_figure figure;
    struct wm_error err = { 0 };

    if (wm_tracker_report(tracker, &report, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(wm_report_figure(report, NULL, key, &figure), WM_OK);
    wm_report_free(report);
    return figure.state == WM_REPORT_MISSING ? NAN : figure.value;
}

static void test_options(void **state)
{
    static const struct {
        const char *what;
        struct wm_tracker_options options;
        int status;
    } cases[] = {
        { "defaults", { 0 }, WM_OK },
        { "shortest", { .interval_ns = WM_INTERVAL_MIN_NS }, WM_OK },
        { "longest", { .interval_ns = WM_INTERVAL_MAX_NS }, WM_OK },
        { "too short", { .interval_ns = WM_INTERVAL_MIN_NS - 1 }, WM_EINVAL },
        { "too long", { .interval_ns = WM_INTERVAL_MAX_NS + 1 }, WM_EINVAL },
        { "backwards", { .interval_ns = -1 }, WM_EINVAL },
        { "half a core", { .expected_cores = 0.5 }, WM_OK },
        { "negative cores", { .expected_cores = -1 }, WM_EINVAL },
        { "cores that are no number", { .expected_cores = NAN }, WM_EINVAL },
        { "endless cores", { .expected_cores = INFINITY }, WM_EINVAL },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_tracker *tracker = NULL;
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_tracker_new(&cases[i].options, &tracker, NULL),
                         cases[i].status);
        assert_int_equal(tracker != NULL, cases[i].status == WM_OK);
        wm_tracker_free(tracker);
    }
    wm_tracker_free(NULL);
}

static void test_order_of_calls(void **state)
{
    struct wm_report *report = NULL;
    struct wm_error err = { 0 };
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_poll(tracker, 0, &err), WM_TRACKER_NEW);
    assert_int_equal(wm_tracker_stop(tracker, &err), WM_EINVAL);
    assert_int_equal(wm_tracker_report(tracker, &report, &err), WM_EINVAL);
    assert_int_equal(wm_tracker_run_thread(tracker, &err), WM_EINVAL);
    assert_int_equal(wm_tracker_signal(tracker, SIGTERM), WM_ENOENT);
    assert_int_equal(wm_tracker_pid(tracker), 0);
    assert_int_equal(wm_tracker_exit_code(tracker), -1);

    assert_int_equal(wm_tracker_start(tracker, COMMAND(sleep_200ms), &err), WM_OK);
    assert_true(wm_tracker_pid(tracker) > 0);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(sleep_200ms), &err), WM_EINVAL);
    assert_int_equal(wm_tracker_start(tracker, PROCESS(1), &err), WM_EINVAL);
    assert_int_equal(wm_tracker_start(tracker, NULL, &err), WM_EINVAL);
    assert_int_equal(wm_tracker_add(tracker, "host", &err), WM_EINVAL);
    assert_int_equal(wm_tracker_note(tracker, "a", "b", &err), WM_EINVAL);
    assert_int_equal(wm_tracker_record(tracker, "/tmp/x.csv", WM_RECORD_NEW, &err),
                     WM_EINVAL);
    run_to_end(tracker);
    assert_int_equal(wm_tracker_stop(tracker, &err), WM_OK);
    assert_int_equal(wm_tracker_poll(tracker, 0, &err), WM_TRACKER_STOPPED);
    assert_int_equal(wm_tracker_signal(tracker, SIGTERM), WM_ENOENT);
    wm_tracker_free(tracker);
}

static void test_command(void **state)
{
    char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"sleep 0.3; exit 7", NULL };
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_add(tracker, "host", NULL), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(argv), NULL), WM_OK);
    run_to_end(tracker);
    assert_int_equal(wm_tracker_exit_code(tracker), 7);
    assert_int_equal(wm_tracker_exit_signal(tracker), 0);
    double seconds = number(tracker, "compute_time.time");
    assert_true(seconds > 0.3 && seconds < 0.5);
    double ticks = number(tracker, "tool.ticks") + number(tracker, "tool.missed_ticks");
    assert_true(ticks >= 30 && ticks < 52);
    assert_true(number(tracker, "max_ram.combined.total_rss") > 100e3);
    assert_true(number(tracker, "cpu_utilization.system.mean_sum_percent") >= 0);
    wm_tracker_free(tracker);
}

static void test_failed_starts(void **state)
{
    static char *const missing[] = { (char *)"no-such-command", NULL };
    static char *const folder[] = { (char *)"/tmp", NULL };
    static char *const nothing[] = { NULL };
    const struct {
        const char *what;
        char *const *argv;
        int status;
    } cases[] = {
        { "missing", missing, WM_ENOENT },
        { "a folder", folder, WM_EACCES },
        { "nothing", nothing, WM_EINVAL },
    };
    struct wm_error err = { 0 };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_tracker *tracker = new_tracker(0);
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_tracker_start(tracker, COMMAND(cases[i].argv), &err),
                         cases[i].status);
        wm_tracker_free(tracker);
    }

    struct wm_tracker *tracker = new_tracker(0);
    assert_int_equal(wm_tracker_start(tracker, PROCESS(-1), &err), WM_EINVAL);
    assert_int_equal(wm_tracker_start(tracker, PROCESS(0x3fffffff), &err), WM_ENOENT);
    wm_tracker_free(tracker);
}

static pid_t start_sleep(const char *seconds)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        execlp("sleep", "sleep", seconds, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Several that run already, none of them a descendant of another. */
static void test_pids(void **state)
{
    const pid_t nobody[] = { getpid(), 0x3fffffff }, wrong[] = { getpid(), 0 };
    const pid_t pids[] = { start_sleep("0.1"), start_sleep("0.3") };
    struct wm_error err = { 0 };
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(
        wm_tracker_start(
            tracker, &(struct wm_tracker_target) { .pids = pids, .pid_count = 0 }, &err),
        WM_EINVAL);
    assert_int_equal(
        wm_tracker_start(
            tracker, &(struct wm_tracker_target) { .pids = wrong, .pid_count = 2 }, &err),
        WM_EINVAL);
    assert_int_equal(
        wm_tracker_start(
            tracker, &(struct wm_tracker_target) { .pids = nobody, .pid_count = 2 }, &err),
        WM_ENOENT);
    assert_non_null(strstr(err.text, "no process 1073741823"));
    wm_tracker_free(tracker);

    tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(
        wm_tracker_start(
            tracker, &(struct wm_tracker_target) { .pids = pids, .pid_count = 2 }, &err),
        WM_OK);
    assert_int_equal(wm_tracker_pid(tracker), pids[0]);
    assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    usleep(30000);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    double seconds = number(tracker, "compute_time.time");
    assert_true(seconds > 0.25 && seconds < 0.5);
    assert_true(number(tracker, "max_ram.combined.total_rss") > 100e3);
    wm_tracker_free(tracker);
}

static void test_unknown_source(void **state)
{
    struct wm_error err = { 0 };
    (void)state;

    struct wm_tracker *tracker = new_tracker(0);
    assert_int_equal(wm_tracker_add(tracker, "hots", &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "hots"));
    wm_tracker_free(tracker);
}

static void burn(double seconds)
{
    struct timespec used;

    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while ((double)used.tv_sec + (double)used.tv_nsec / 1e9 < seconds);
}

static double seconds_of(clockid_t clock)
{
    struct timespec used;

    clock_gettime(clock, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static double thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static double process_seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void test_self_in_thread(void **state)
{
    (void)state;

    struct wm_tracker *tracker = new_tracker(MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
    double before = thread_seconds();
    burn(before + 0.3);
    double used = thread_seconds() - before;
    double so_far = number(tracker, "compute_time.time");
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_true(so_far > 0.25 && so_far <= number(tracker, "compute_time.time"));

    /* Without what the thread with its ticks used beside it. */
    double told = number(tracker, "cpu_time.main");
    print_message("  used %.4f s, told %.4f s\n", used, told);
    assert_true(told > 0.95 * used && told < 1.1 * used + 0.01);
    assert_int_equal(wm_tracker_exit_code(tracker), -1);
    wm_tracker_free(tracker);
}

/* Takes what there is; the samples follow one another and end with `*last_ns`. */
static size_t take_live(struct wm_recording *live, int64_t *last_ns)
{
    struct wm_tick tick;
    size_t count = 0;

    while (wm_recording_next(live, &tick, NULL) > 0) {
        assert_int_equal(tick.count, wm_recording_channel_count(live));
        assert_true(tick.when_ns > *last_ns);
        *last_ns = tick.when_ns;
        count++;
    }
    return count;
}

/* A view sees each sample once, while they are taken and afterwards; one that does not
 * look has the newest. */
static void test_live(void **state)
{
    struct wm_recording *live, *same;
    struct wm_error err = { 0 };
    int64_t last_ns = 0;
    size_t count = 0;
    (void)state;

    struct wm_tracker *tracker = new_tracker(MILLISECOND);
    assert_int_equal(wm_tracker_live(tracker, &live, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "before the tracker's start"));
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_live(tracker, &live, NULL), WM_OK);
    assert_int_equal(wm_tracker_live(tracker, &same, NULL), WM_OK);
    assert_ptr_equal(live, same);
    assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
    while (count < 20)
        count += take_live(live, &last_ns);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    count += take_live(live, &last_ns);
    assert_true((double)count + 1 == number(tracker, "tool.ticks"));
    assert_int_equal(take_live(live, &last_ns), 0);
    wm_tracker_free(tracker);
}

/* It had its memory before the first sample, so two are enough. */
static void test_short_self(void **state)
{
    (void)state;

    struct wm_tracker *tracker = new_tracker(1000 * MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_true(number(tracker, "max_ram.main.private_rss") > 0);
    wm_tracker_free(tracker);
}

/* A register of 65 kJ at 400 W runs over after 164 s: with samples further apart it is read
 * in between. */
static void test_counters_are_kept(void **state)
{
    enum { WATTS = 400, SECONDS = 700 };
    const char *dir = *state;
    char text[32];

    test_write_file(dir, "class/powercap/intel-rapl:0/name", "package-0\n");
    test_write_file(dir, "class/powercap/intel-rapl:0/max_energy_range_uj",
                    "65532610987\n");
    test_write_file(dir, "class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    setenv("WATTMETER_SYSFS", dir, 1);
    struct wm_tracker *tracker = new_tracker(600 * 1000 * MILLISECOND);
    assert_int_equal(wm_tracker_add(tracker, "rapl", NULL), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    for (int second = 1; second <= SECONDS; second++) {
        int64_t joules = 1 + (int64_t)second * WATTS;
        snprintf(text, sizeof(text), "%lld\n",
                 (long long)(joules * 1000000 % (65532610987 + 1)));
        test_write_file(dir, "class/powercap/intel-rapl:0/energy_uj", text);
        test_pass_time(1000 * MILLISECOND);
        assert_int_equal(wm_tracker_poll(tracker, 0, NULL), WM_TRACKER_RUNNING);
    }
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_true(fabs(number(tracker, "energy.cpu.total") - WATTS * SECONDS) <= WATTS);
    wm_tracker_free(tracker);
    unsetenv("WATTMETER_SYSFS");
}

/* They come to the tracker as long as it runs; with the next one it is the same. */
static void test_self_regions(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct wm_tracker *tracker = new_tracker(2 * MILLISECOND);
        assert_false(wm_region_is_on());
        assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
        assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
        assert_true(wm_region_is_on());
        wm_region_begin("outer");
        for (int i = 0; i < 20000; i++) {
            WM_REGION("inner");
        }
        wm_region_end();
        wm_region_end();
        assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
        assert_true(number(tracker, "region_threads") == 1);
        assert_true(number(tracker, "stray_ends") == 1);
        assert_true(number(tracker, "dropped_events") == 0);
        wm_tracker_free(tracker);
    }
    assert_false(wm_region_is_on());
}

/* The threads that ask drivers are the tracker's cost as well, and only once. */
static void test_self_with_gpus(void **state)
{
    const char *dir = *state;
    char scenario[256];

    snprintf(scenario, sizeof(scenario), "%s/many.json", dir);
    test_write_file(dir, "many.json", "{\"gpus\": [{\"count\": 60}]}");
    setenv("FAKE_NVML_SCENARIO", scenario, 1);
    setenv("WATTMETER_NVML", test_build_path("tests/fake/libnvidia-ml.so.1"), 1);
    struct wm_tracker *tracker = new_tracker(2 * MILLISECOND);
    int status = wm_tracker_add(tracker, "nvml", NULL);
    unsetenv("WATTMETER_NVML");
    unsetenv("FAKE_NVML_SCENARIO");
    assert_int_equal(status, WM_OK);

    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
    double all = process_seconds();
    double before = thread_seconds();
    burn(before + 0.3);
    double used = thread_seconds() - before;
    all = process_seconds() - all;
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);

    double told = number(tracker, "cpu_time.main");
    double tool = number(tracker, "tool.cpu_seconds");
    print_message("  used %.4f s, told %.4f s; tool %.4f s of %.4f s\n", used, told, tool,
                  all - used);
    assert_true(told > 0.95 * used && told < used + (all - used) / 2);
    assert_true(tool > 0.9 * (all - used) && tool < 1.1 * (all - used) + 0.02);
    wm_tracker_free(tracker);
}

static void test_stop_early(void **state)
{
    char *const argv[] = { (char *)"sleep", (char *)"30", NULL };
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(argv), NULL), WM_OK);
    pid_t pid = wm_tracker_pid(tracker);
    assert_int_equal(wm_tracker_poll(tracker, 50, NULL), WM_TRACKER_RUNNING);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_int_equal(wm_tracker_exit_code(tracker), -1);
    wm_tracker_free(tracker);

    /* The command goes on by itself. */
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
}

/* Stopped without another poll: how it ended is known all the same. */
static void test_stop_after_the_end(void **state)
{
    char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
    (void)state;

    struct wm_tracker *tracker = new_tracker(WM_INTERVAL_MAX_NS);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(argv), NULL), WM_OK);
    usleep(300000);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_int_equal(wm_tracker_exit_code(tracker), 3);
    wm_tracker_free(tracker);
}

/* A program that ignores the end of its children has them reaped unseen. */
static void test_host_ignores_its_children(void **state)
{
    char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 4", NULL };
    struct sigaction old;
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)state;

    assert_int_equal(sigaction(SIGCHLD, &ignore, &old), 0);
    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(argv), NULL), WM_OK);
    run_to_end(tracker);
    assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
    assert_int_equal(wm_tracker_exit_code(tracker), 4);
    wm_tracker_free(tracker);
}

/* A child of the program's own that frees the tracker leaves it to its parent. */
static void test_host_forks(void **state)
{
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_run_thread(tracker, NULL), WM_OK);
    pid_t child = fork();
    if (child == 0) {
        wm_tracker_free(tracker);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    usleep(100000);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_true(number(tracker, "tool.ticks") >= 5);
    wm_tracker_free(tracker);
}

static void test_source_twice(void **state)
{
    struct wm_error err = { 0 };
    (void)state;

    struct wm_tracker *tracker = new_tracker(0);
    assert_int_equal(wm_tracker_add(tracker, "host", &err), WM_OK);
    assert_int_equal(wm_tracker_add(tracker, "host", &err), WM_EEXIST);
    assert_int_equal(wm_tracker_add(tracker, "tree", &err), WM_OK);
    wm_tracker_free(tracker);
}

static void test_signal(void **state)
{
    char *const argv[] = { (char *)"sleep", (char *)"30", NULL };
    (void)state;

    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(argv), NULL), WM_OK);
    assert_int_equal(wm_tracker_signal(tracker, SIGTERM), WM_OK);
    run_to_end(tracker);
    assert_int_equal(wm_tracker_exit_code(tracker), 128 + SIGTERM);
    assert_int_equal(wm_tracker_exit_signal(tracker), SIGTERM);
    wm_tracker_free(tracker);
}

/* The host program may have a handler of its own, and be interrupted. */
static void do_nothing(int number_)
{
    (void)number_;
}

static void test_poll_is_interrupted(void **state)
{
    const struct sigaction action = { .sa_handler = do_nothing };
    struct sigaction old;
    const struct itimerspec soon = { .it_value = { 0, 20000000 } };
    timer_t timer;
    (void)state;

    struct wm_tracker *tracker = new_tracker(WM_INTERVAL_MAX_NS);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
    assert_int_equal(wm_tracker_poll(tracker, -1, NULL), WM_TRACKER_RUNNING);
    timer_delete(timer);
    sigaction(SIGALRM, &old, NULL);
    wm_tracker_free(tracker);
}

static void test_ticks_allocate_nothing(void **state)
{
    (void)state;

    struct wm_tracker *tracker = new_tracker(MILLISECOND);
    assert_int_equal(wm_tracker_add(tracker, "host", NULL), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(wm_tracker_poll(tracker, -1, NULL), WM_TRACKER_RUNNING);
    test_fail_allocation(-1);
    for (int i = 0; i < 200; i++)
        assert_int_equal(wm_tracker_poll(tracker, -1, NULL), WM_TRACKER_RUNNING);
    assert_int_equal(test_fail_allocation(-1), 0);
    wm_tracker_free(tracker);
}

/* With two GPUs whose driver takes a second to start. */
static struct wm_tracker *start_with_slow_driver(const char *dir)
{
    static const char slow[] = "{\"gpus\": [{}, {}], \"faults\": ["
                               "{\"call\": \"nvmlInit*\", \"delay_ms\": 1000}]}";
    struct wm_tracker *tracker = new_tracker(MILLISECOND);
    char scenario[256];

    snprintf(scenario, sizeof(scenario), "%s/slow.json", dir);
    test_write_file(dir, "slow.json", slow);
    setenv("FAKE_NVML_SCENARIO", scenario, 1);
    setenv("WATTMETER_NVML", test_build_path("tests/fake/libnvidia-ml.so.1"), 1);
    setenv("WATTMETER_SYSFS", dir, 1); /* so that there are no other GPUs */
    assert_int_equal(wm_tracker_add_all(tracker, NULL), WM_OK);
    unsetenv("WATTMETER_SYSFS");
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    return tracker;
}

static void unset_driver(void)
{
    unsetenv("WATTMETER_NVML");
    unsetenv("FAKE_NVML_SCENARIO");
}

/* GPUs whose driver joins late are counted like those that were there from the start. */
static void test_late_gpus(void **state)
{
    struct wm_tracker *tracker = start_with_slow_driver(*state);
    struct wm_report *report = NULL;

    while (wm_tracker_report(tracker, &report, NULL) < 0) /* until it has joined */
        assert_int_equal(wm_tracker_poll(tracker, -1, NULL), WM_TRACKER_RUNNING);
    wm_report_free(report);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_true(number(tracker, "gpu_utilization.system_gpu_count") == 2);
    assert_true(number(tracker, "gpu_utilization.n_expected_gpus") == 2);
    wm_tracker_free(tracker);
    unset_driver();
}

/* A machine without a driver has no GPUs that could be missing from a sum. */
static void test_no_driver(void **state)
{
    struct wm_tracker *tracker = new_tracker(10 * MILLISECOND);
    struct wm_report *report = NULL;
    const char *remark;
    (void)state;

    setenv("WATTMETER_NVML", "/nonexistent", 1);
    assert_int_equal(wm_tracker_add(tracker, "nvml", NULL), WM_ENODEV);
    unsetenv("WATTMETER_NVML");
    assert_int_equal(wm_tracker_start(tracker, NULL, NULL), WM_OK);
    assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
    assert_int_equal(wm_tracker_report(tracker, &report, NULL), WM_OK);
    for (size_t i = 0; (remark = wm_report_text(report, WM_REPORT_NOTES, i, NULL)) != NULL;
         i++)
        assert_null(strstr(remark, "nvml"));
    wm_report_free(report);
    wm_tracker_free(tracker);
}

/* Where memory runs out when a late driver joins, the tracker is stopped. */
static void test_late_allocation_failure(void **state)
{
    for (long nth = 12; nth <= 18; nth += 6) { /* in the channels and in the analysis */
        struct wm_tracker *tracker = start_with_slow_driver(*state);
        usleep(1000000); /* so that the driver's thread is done */
        test_fail_allocation(nth);
        assert_int_equal(wm_tracker_poll(tracker, -1, NULL), WM_ENOMEM);
        test_fail_allocation(-1);
        assert_int_equal(wm_tracker_stop(tracker, NULL), WM_OK);
        wm_tracker_free(tracker);
        unset_driver();
    }
}

/* Whatever allocation fails, the command has not run or its report comes. */
static void test_allocation_failure(void **state)
{
    const char *dir = *state;
    char mark[256], recording[256];

    snprintf(mark, sizeof(mark), "%s/mark", dir);
    snprintf(recording, sizeof(recording), "%s/r.csv", dir);
    char *argv[] = { (char *)"touch", mark, NULL };
    for (long nth = 0; nth < 10000; nth++) {
        struct wm_tracker *tracker = NULL;

        test_fail_allocation(nth);
        int status = wm_tracker_new(NULL, &tracker, NULL);
        if (status == WM_OK)
            wm_tracker_add(tracker, "host", NULL);
        if (status == WM_OK)
            status = wm_tracker_note(tracker, "key", "value", NULL);
        if (status == WM_OK)
            status = wm_tracker_record(tracker, recording, WM_RECORD_NEW, NULL);
        if (status == WM_OK)
            status = wm_tracker_start(tracker, COMMAND(argv), NULL);
        test_fail_allocation(-1);
        if (status == WM_OK) {
            run_to_end(tracker);
            assert_int_equal(access(mark, F_OK), 0);
            wm_tracker_free(tracker);
            assert_true(nth > 20);
            return;
        }
        assert_int_equal(status, WM_ENOMEM);
        assert_int_equal(access(mark, F_OK), -1);
        wm_tracker_free(tracker);
        assert_int_equal(access(recording, F_OK), -1);
    }
    fail_msg("it never worked");
}

static void test_recording_has_the_same_report(void **state)
{
    static const char *const names[] = { "r.sqlite", "r.csv" };
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct wm_recording *recording = NULL;
        struct wm_report *live = NULL, *read = NULL;
        char path[256], live_text[65536] = "", read_text[65536] = "";

        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        struct wm_tracker *tracker = new_tracker(5 * MILLISECOND);
        assert_int_equal(wm_tracker_add(tracker, "host", NULL), WM_OK);
        assert_int_equal(wm_tracker_record(tracker, path, WM_RECORD_NEW, NULL), WM_OK);
        assert_int_equal(wm_tracker_start(tracker, COMMAND(sleep_200ms), NULL), WM_OK);
        run_to_end(tracker);
        assert_int_equal(wm_tracker_report(tracker, &live, NULL), WM_OK);
        assert_int_equal(wm_recording_open(path, WM_LAST_RUN, &recording, NULL), WM_OK);
        assert_int_equal(wm_report_from_recording(recording, &read, NULL), WM_OK);

        FILE *out = fmemopen(live_text, sizeof(live_text), "w");
        assert_int_equal(wm_report_print(live, WM_FORMAT_JSON, NULL, out, NULL), WM_OK);
        fclose(out);
        out = fmemopen(read_text, sizeof(read_text), "w");
        assert_int_equal(wm_report_print(read, WM_FORMAT_JSON, NULL, out, NULL), WM_OK);
        fclose(out);
        assert_string_equal(live_text, read_text);
        wm_report_free(live);
        wm_report_free(read);
        wm_recording_close(recording);
        wm_tracker_free(tracker);
    }
}

/* Both runs are in one recording, and each has the figures of its own alone. */
static void test_renewed(void **state)
{
    static char *const short_run[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
    const char *dir = *state;
    char path[256];
    struct wm_recording *recording = NULL;

    snprintf(path, sizeof(path), "%s/r.sqlite", dir);
    struct wm_tracker *tracker = new_tracker(5 * MILLISECOND);
    assert_int_equal(wm_tracker_add(tracker, "host", NULL), WM_OK);
    assert_int_equal(wm_tracker_note(tracker, "forgotten", "by then", NULL), WM_OK);
    assert_int_equal(wm_tracker_record(tracker, path, WM_RECORD_NEW, NULL), WM_OK);
    assert_int_equal(wm_tracker_renew(tracker, NULL), WM_OK);
    assert_int_equal(wm_tracker_record(tracker, path, WM_RECORD_NEW, NULL), WM_OK);
    assert_int_equal(wm_tracker_note(tracker, "which", "first", NULL), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(sleep_200ms), NULL), WM_OK);
    assert_int_equal(wm_tracker_renew(tracker, NULL), WM_EINVAL);
    run_to_end(tracker);
    assert_int_equal(wm_tracker_renew(tracker, NULL), WM_OK);
    assert_int_equal(wm_tracker_exit_code(tracker), -1);
    assert_int_equal(wm_tracker_pid(tracker), 0);
    assert_int_equal(wm_tracker_record(tracker, path, WM_RECORD_APPEND, NULL), WM_OK);
    assert_int_equal(wm_tracker_start(tracker, COMMAND(short_run), NULL), WM_OK);
    run_to_end(tracker);
    assert_int_equal(wm_tracker_exit_code(tracker), 3);

    for (size_t run = 0; run < 2; run++) {
        struct wm_report *report = NULL;
        const char *value = NULL;
        assert_int_equal(wm_recording_open(path, run, &recording, NULL), WM_OK);
        assert_int_equal(wm_report_from_recording(recording, &report, NULL), WM_OK);
        assert_string_equal(wm_report_text(report, WM_REPORT_WORDS, 0, NULL),
                            run == 0 ? "sleep" : "sh");
        assert_int_equal(wm_report_text(report, WM_REPORT_TAGS, 0, &value) != NULL,
                         run == 0);
        assert_null(wm_report_text(report, WM_REPORT_TAGS, 1, &value));
        wm_report_free(report);
        wm_recording_close(recording);
    }
    wm_tracker_free(tracker);
}

static void test_batch(void **state)
{
    static char *const fails[] = { (char *)"sh", (char *)"-c", (char *)"kill -9 $$", NULL };
    static char *const works[] = { (char *)"sh", (char *)"-c", (char *)"sleep 0.01", NULL };
    static char *const missing[] = { (char *)"no-such-command", NULL };
    static const struct {
        const char *what;
        char *const *argv;
        bool goes_on;
        size_t done;
        int run_code, code;
    } cases[] = {
        { "all", works, false, 5, 0, 0 },
        { "the first fails", fails, false, 1, 137, 137 },
        { "all fail", fails, true, 5, 137, 137 },
    };
    struct wm_tracker_run run;
    (void)state;

    struct wm_tracker *tracker = new_tracker(5 * MILLISECOND);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_tracker_start(tracker,
                                          TARGET(.argv = cases[i].argv, .runs = 5,
                                                 .goes_on = cases[i].goes_on),
                                          NULL),
                         WM_OK);
        run_to_end(tracker);
        assert_int_equal(wm_tracker_exit_code(tracker), cases[i].code);
        double sum_s = 0;
        for (size_t r = 0; r < cases[i].done; r++) {
            assert_int_equal(wm_tracker_batch_run(tracker, r, &run), WM_OK);
            assert_int_equal(run.exit_code, cases[i].run_code);
            assert_true(run.time_s >= (i == 0 ? 0.01 : 0));
            assert_true(run.user_s + run.system_s >= 0);
            sum_s += run.time_s;
        }
        assert_int_equal(wm_tracker_batch_run(tracker, cases[i].done, &run), WM_ENOENT);
        assert_true(number(tracker, "compute_time.time") >= sum_s);
        assert_int_equal(wm_tracker_renew(tracker, NULL), WM_OK);
    }
    assert_int_equal(
        wm_tracker_start(tracker, TARGET(.argv = works, .runs = WM_TRACKER_BATCH_MAX + 1),
                         NULL),
        WM_EINVAL);
    assert_int_equal(wm_tracker_start(tracker,
                                      TARGET(.argv = works, .pids = &(pid_t) { getpid() },
                                             .pid_count = 1),
                                      NULL),
                     WM_EINVAL);
    assert_int_equal(wm_tracker_start(tracker, TARGET(.argv = missing, .runs = 5), NULL),
                     WM_ENOENT);
    assert_int_equal(wm_tracker_batch_run(tracker, 0, &run), WM_ENOENT);
    wm_tracker_free(tracker);
}

/* A script without its interpreter is found, but cannot be executed. */
static void test_batch_that_cannot_be_executed(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* it makes vfork() a fork(), whose child cannot tell us */
#endif
    const char *dir = *state;
    char path[256];
    char *const argv[] = { path, NULL };
    struct wm_tracker_run run;

    snprintf(path, sizeof(path), "%s/script", dir);
    FILE *script = fopen(path, "w");
    fputs("#!/no/such/interpreter\n", script);
    fclose(script);
    chmod(path, 0755);
    struct wm_tracker *tracker = new_tracker(0);
    assert_int_equal(wm_tracker_start(tracker, TARGET(.argv = argv, .runs = 5), NULL),
                     WM_ENOENT);
    assert_int_equal(wm_tracker_batch_run(tracker, 0, &run), WM_ENOENT);
    wm_tracker_free(tracker);
}

UNIT(track)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_order_of_calls),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_failed_starts),
        cmocka_unit_test(test_pids),
        cmocka_unit_test(test_unknown_source),
        cmocka_unit_test(test_self_in_thread),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_short_self),
        cmocka_unit_test(test_self_regions),
        cmocka_unit_test_setup_teardown(test_self_with_gpus, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(test_stop_early),
        cmocka_unit_test(test_stop_after_the_end),
        cmocka_unit_test(test_host_ignores_its_children),
        cmocka_unit_test(test_host_forks),
        cmocka_unit_test(test_source_twice),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_poll_is_interrupted),
        cmocka_unit_test(test_ticks_allocate_nothing),
        cmocka_unit_test_setup_teardown(test_renewed, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_batch),
        cmocka_unit_test_setup_teardown(test_batch_that_cannot_be_executed, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_allocation_failure, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test_setup_teardown(test_late_gpus, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_late_allocation_failure, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_counters_are_kept, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_recording_has_the_same_report, test_make_dir,
                                        test_remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
