/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_guard.c - calls that hang until the test lets them go. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_guard.h"

enum { UNITS = 3 };

/* Longer than any machine is held up, and given to what must not be waited for. */
#define LONG_NS (20 * WM_NS_PER_S)
#define HANG_NS (WM_GUARD_HANG_NS + 20 * WM_NS_PER_MS)

/* A driver of three devices, which hangs as the test says. */
struct driver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs[UNITS];
    int calls[UNITS];
    int order[64], order_count; /* units in the order of their calls */
    bool is_shut, shutdown_hangs;
    int releases;
    double busy_seconds;  /* of each call */
    bool signals_blocked; /* in all calls */
    char thread_name[16];
    long results[UNITS]; /* not locked: TSan is to find fault with it */
};

static struct driver *new_driver(void)
{
    struct driver *driver = calloc(1, sizeof(*driver));

    assert_non_null(driver);
    pthread_mutex_init(&driver->lock, NULL);
    pthread_cond_init(&driver->changed, NULL);
    driver->signals_blocked = true;
    return driver;
}

static void free_driver(struct driver *driver)
{
    pthread_cond_destroy(&driver->changed);
    pthread_mutex_destroy(&driver->lock);
    free(driver);
}

static void burn(double seconds)
{
    int64_t end_ns = wm_clock_thread_cpu_ns() + (int64_t)(seconds * 1e9);

    while (wm_clock_thread_cpu_ns() < end_ns)
        ;
}

static void call(void *context, size_t unit)
{
    struct driver *driver = context;
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    burn(driver->busy_seconds);
    pthread_mutex_lock(&driver->lock);
    driver->signals_blocked &=
        sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGALRM) == 1;
    pthread_getname_np(pthread_self(), driver->thread_name, sizeof(driver->thread_name));
    driver->calls[unit]++;
    if (driver->order_count < (int)ARRAY_LEN(driver->order))
        driver->order[driver->order_count++] = (int)unit;
    pthread_cond_broadcast(&driver->changed);
    while (driver->hangs[unit])
        pthread_cond_wait(&driver->changed, &driver->lock);
    pthread_mutex_unlock(&driver->lock);
    driver->results[unit]++;
}

static void release(void *context)
{
    struct driver *driver = context;

    pthread_mutex_lock(&driver->lock);
    while (driver->shutdown_hangs)
        pthread_cond_wait(&driver->changed, &driver->lock);
    driver->releases++;
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

static void hang(struct driver *driver, size_t unit, bool hangs)
{
    pthread_mutex_lock(&driver->lock);
    driver->hangs[unit] = hangs;
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

static void let_shut_down(struct driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    driver->shutdown_hangs = false;
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

static int calls_of(struct driver *driver, size_t unit)
{
    pthread_mutex_lock(&driver->lock);
    int calls = driver->calls[unit];
    pthread_mutex_unlock(&driver->lock);
    return calls;
}

static void wait_for_call(struct driver *driver, size_t unit, int calls)
{
    pthread_mutex_lock(&driver->lock);
    while (driver->calls[unit] < calls)
        pthread_cond_wait(&driver->changed, &driver->lock);
    pthread_mutex_unlock(&driver->lock);
}

static void wait_for_release(struct driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    while (driver->releases == 0)
        pthread_cond_wait(&driver->changed, &driver->lock);
    pthread_mutex_unlock(&driver->lock);
}

static void sleep_ns(int64_t ns)
{
    const struct timespec time = { ns / WM_NS_PER_S, ns % WM_NS_PER_S };

    nanosleep(&time, NULL);
}

static int64_t in_ns(int64_t ns)
{
    return wm_clock_monotonic_ns() + ns;
}

static struct wm_guard *new_guard(struct driver *driver)
{
    struct wm_guard *guard = NULL;
    struct wm_error err;

    if (wm_guard_new(UNITS, call, release, driver, &guard, &err) < 0)
        fail_msg("%s", err.text);
    return guard;
}

static void start(struct wm_guard *guard, int expected)
{
    struct wm_error err = { 0 };
    int status = wm_guard_start(guard, &err);

    if (status != expected)
        fail_msg("%d, not %d: %s", status, expected, err.text);
}

/* Checks which units have a result, as "0-2": of the first and the last. */
static void take(struct wm_guard *guard, const char *expected)
{
    char taken[UNITS + 1] = "";

    for (size_t u = 0; u < UNITS; u++)
        taken[u] = wm_guard_take(guard, u) ? (char)('0' + u) : '-';
    assert_string_equal(taken, expected);
}

/* Until the call has hung long enough to be given up. It may begin late. */
static void wait_for_hang(const struct wm_guard *guard, size_t unit)
{
    while (wm_guard_busy_since(guard, unit) == 0)
        sleep_ns(WM_NS_PER_MS);
    int64_t hangs_ns = wm_guard_busy_since(guard, unit) + HANG_NS;
    while (wm_clock_monotonic_ns() < hangs_ns)
        sleep_ns(WM_NS_PER_MS);
}

/* A round in which unit `stuck` begins to hang, and is given up. */
static void get_stuck(struct driver *driver, struct wm_guard *guard, size_t stuck)
{
    hang(driver, stuck, true);
    start(guard, 1);
    assert_false(wm_guard_wait(guard, in_ns(HANG_NS)));
    wait_for_hang(guard, stuck);
}

static void test_rounds(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    take(guard, "---");
    assert_true(wm_guard_wait(guard, 0)); /* there is nothing to wait for */
    for (int i = 1; i <= 100; i++) {
        start(guard, 1);
        assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
        take(guard, "012");
        take(guard, "---");
        for (size_t u = 0; u < UNITS; u++) {
            assert_int_equal(driver->results[u], i);
            assert_int_equal(wm_guard_busy_since(guard, u), 0);
        }
    }
    /* A result that nobody took gives way to the next one. */
    start(guard, 1);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    start(guard, 1);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "012");
    assert_true(driver->signals_blocked);
    assert_string_equal(driver->thread_name, "wattmeter");
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    assert_int_equal(driver->releases, 1);
    free_driver(driver);
}

static void test_slow_is_not_hanging(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    hang(driver, 1, true);
    start(guard, 1);
    wait_for_call(driver, 1, 1);
    int64_t begun_ns = wm_clock_monotonic_ns();
    assert_false(wm_guard_wait(guard, begun_ns + 30 * WM_NS_PER_MS));
    assert_true(wm_clock_monotonic_ns() >= begun_ns + 30 * WM_NS_PER_MS);
    int64_t since_ns = wm_guard_busy_since(guard, 1);
    assert_true(since_ns > 0 && since_ns <= begun_ns);
    take(guard, "0--");
    start(guard, 0); /* the round goes on */
    assert_int_equal(calls_of(driver, 0), 1);

    hang(driver, 1, false);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "-12");
    assert_int_equal(calls_of(driver, 0), 1);
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    free_driver(driver);
}

/* A call is waited for until it begins, unless the machine holds that up for too long. */
static void test_a_call_that_has_not_begun_is_not_late(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    for (int i = 0; i < 20; i++) {
        hang(driver, 0, true);
        start(guard, 1);
        int64_t begun_ns = wm_clock_monotonic_ns();
        assert_false(wm_guard_wait(guard, begun_ns));
        assert_true(wm_guard_busy_since(guard, 0) > 0 ||
                    wm_clock_monotonic_ns() - begun_ns > WM_GUARD_HANG_NS / 2);
        hang(driver, 0, false);
        assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    }
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    free_driver(driver);
}

static void test_hang(void **state)
{
    static const struct {
        const char *what;
        size_t stuck;
        const char *first; /* what has been answered before the hang */
    } cases[] = {
        { "the first", 0, "---" },
        { "the second", 1, "0--" },
        { "the last", 2, "01-" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t stuck = cases[i].stuck;
        char others[] = "012", only[] = "---";
        struct driver *driver = new_driver();
        struct wm_guard *guard = new_guard(driver);

        print_message("  %s\n", cases[i].what);
        others[stuck] = '-';
        only[stuck] = (char)('0' + stuck);
        get_stuck(driver, guard, stuck);
        take(guard, cases[i].first);

        /* The others go on, as often as they are asked, without waiting for it. */
        for (int round = 0; round < 5; round++) {
            start(guard, 1);
            int64_t begun_ns = wm_clock_monotonic_ns();
            assert_false(wm_guard_wait(guard, in_ns(LONG_NS)));
            assert_true(wm_clock_monotonic_ns() - begun_ns < LONG_NS / 2);
            take(guard, others);
        }
        assert_true(wm_guard_busy_since(guard, stuck) != 0);
        assert_int_equal(calls_of(driver, stuck), 1);

        /* It comes back, is taken, and is one of all again. */
        hang(driver, stuck, false);
        while (wm_guard_busy_since(guard, stuck) != 0)
            sleep_ns(WM_NS_PER_MS);
        take(guard, only);
        driver->order_count = 0;
        start(guard, 1);
        assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
        take(guard, "012");
        assert_int_equal(driver->order[2], stuck); /* last, with a bad name */
        driver->order_count = 0;
        start(guard, 1);
        assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
        assert_int_equal(driver->order[2], 2); /* forgiven */
        assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
        assert_int_equal(driver->releases, 1);
        free_driver(driver);
    }
}

/* Who is always slow is given up at once, so that the others are asked each time. */
static void test_second_hang_is_given_up_at_once(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    get_stuck(driver, guard, 1);
    start(guard, 1);
    hang(driver, 1, false);
    while (!wm_guard_wait(guard, in_ns(LONG_NS)))
        sleep_ns(WM_NS_PER_MS);

    hang(driver, 1, true);
    start(guard, 1);
    wait_for_call(driver, 1, 2);
    take(guard, "0-2");
    start(guard, 1);
    assert_false(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "0-2");
    hang(driver, 1, false);
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    free_driver(driver);
}

static void test_all_hang(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    for (size_t u = 0; u < UNITS; u++)
        hang(driver, u, true);
    for (size_t u = 0; u < UNITS; u++) {
        start(guard, 1);
        assert_false(wm_guard_wait(guard, in_ns(HANG_NS)));
        wait_for_hang(guard, u);
    }
    start(guard, 0);
    assert_false(wm_guard_wait(guard, in_ns(HANG_NS)));
    for (size_t u = 0; u < UNITS; u++)
        hang(driver, u, false);
    while (!wm_guard_wait(guard, in_ns(LONG_NS)))
        sleep_ns(WM_NS_PER_MS);
    take(guard, "012");
    start(guard, 1);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "012");
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    free_driver(driver);
}

static void test_close(void **state)
{
    enum { UNUSED, IDLE, AT_WORK, STUCK, STUCK_AND_REPLACED, STUCK_IN_RELEASE };
    static const struct {
        const char *what;
        int when;
        bool in_time;
    } cases[] = {
        { "unused", UNUSED, true },
        { "idle", IDLE, true },
        { "at work", AT_WORK, true },
        { "hanging", STUCK, false },
        { "hanging, with another thread", STUCK_AND_REPLACED, false },
        { "hanging in its release", STUCK_IN_RELEASE, false },
    };
    (void)state;

    assert_true(wm_guard_close(NULL, 0));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct driver *driver = new_driver();
        struct wm_guard *guard = new_guard(driver);
        int when = cases[i].when;

        print_message("  %s\n", cases[i].what);
        driver->shutdown_hangs = when == STUCK_IN_RELEASE;
        if (when == STUCK || when == STUCK_AND_REPLACED)
            get_stuck(driver, guard, 1);
        else if (when != UNUSED)
            start(guard, 1);
        if (when == IDLE || when == STUCK_IN_RELEASE)
            wm_guard_wait(guard, in_ns(LONG_NS));
        if (when == STUCK_AND_REPLACED) {
            start(guard, 1);
            wm_guard_wait(guard, in_ns(LONG_NS));
        }

        int64_t patience_ns = cases[i].in_time ? LONG_NS : 30 * WM_NS_PER_MS;
        assert_int_equal(wm_guard_close(guard, in_ns(patience_ns)), cases[i].in_time);
        if (!cases[i].in_time) {
            assert_int_equal(driver->releases, 0);
            hang(driver, 1, false);
            let_shut_down(driver);
            wait_for_release(driver);
        }
        /* Not twice, and nothing is called after it. */
        int calls = calls_of(driver, 2);
        sleep_ns(20 * WM_NS_PER_MS);
        assert_int_equal(driver->releases, 1);
        assert_int_equal(calls_of(driver, 2), calls);
        free_driver(driver);
    }
}

static void test_no_units(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = NULL;
    (void)state;

    assert_int_equal(wm_guard_new(0, call, release, driver, &guard, NULL), WM_OK);
    start(guard, 0);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    assert_int_equal(driver->releases, 1);
    free_driver(driver);
}

static void test_no_threads(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    struct wm_error err = { 0 };
    (void)state;

    test_fail_threads(true);
    assert_int_equal(wm_guard_start(guard, &err), WM_ENOMEM);
    assert_non_null(strstr(err.text, "thread"));
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "---");
    test_fail_threads(false);
    get_stuck(driver, guard, 0);

    /* None in place of the one that hangs: it goes on when it is back. */
    test_fail_threads(true);
    assert_int_equal(wm_guard_start(guard, NULL), WM_ENOMEM);
    assert_false(wm_guard_wait(guard, in_ns(LONG_NS)));
    hang(driver, 0, false);
    while (wm_guard_busy_since(guard, 0) != 0)
        sleep_ns(WM_NS_PER_MS);
    take(guard, "0--");
    start(guard, 1);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    take(guard, "012");
    test_fail_threads(false);
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));

    /* Released by the caller, where there never was one. */
    driver->releases = 0;
    guard = new_guard(driver);
    test_fail_threads(true);
    assert_int_equal(wm_guard_start(guard, NULL), WM_ENOMEM);
    test_fail_threads(false);
    assert_true(wm_guard_close(guard, 0));
    assert_int_equal(driver->releases, 1);
    free_driver(driver);
}

static void test_no_memory(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = NULL;
    long nth = 0;
    int status;
    (void)state;

    do {
        test_fail_allocation(nth++);
        status = wm_guard_new(UNITS, call, release, driver, &guard, NULL);
        test_fail_allocation(-1);
    } while (status == WM_ENOMEM);
    assert_int_equal(status, WM_OK);
    assert_true(nth > 2);

    /* A round needs none, a hang included. */
    get_stuck(driver, guard, 1);
    assert_int_equal(test_fail_allocation(0), 0);
    start(guard, 1);
    wm_guard_wait(guard, in_ns(LONG_NS));
    test_fail_allocation(-1);
    take(guard, "0-2");
    hang(driver, 1, false);
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    assert_int_equal(driver->releases, 1);
    free_driver(driver);
}

static void test_cpu_time(void **state)
{
    struct driver *driver = new_driver();
    struct wm_guard *guard = new_guard(driver);
    (void)state;

    assert_int_equal(wm_guard_cpu_ns(guard), 0);
    driver->busy_seconds = 0.02;
    start(guard, 1);
    assert_true(wm_guard_wait(guard, in_ns(LONG_NS)));
    int64_t one_ns = wm_guard_cpu_ns(guard);
    assert_true(one_ns >= 60 * WM_NS_PER_MS && one_ns < 100 * WM_NS_PER_MS);

    /* A thread that was given up keeps what it has used, when it is gone too. */
    driver->busy_seconds = 0;
    get_stuck(driver, guard, 0);
    start(guard, 1);
    wm_guard_wait(guard, in_ns(LONG_NS));
    hang(driver, 0, false);
    while (wm_guard_busy_since(guard, 0) != 0)
        sleep_ns(WM_NS_PER_MS);
    get_stuck(driver, guard, 1);
    start(guard, 1);
    wm_guard_wait(guard, in_ns(LONG_NS));
    int64_t all_ns = wm_guard_cpu_ns(guard);
    assert_true(all_ns >= one_ns && all_ns < one_ns + 50 * WM_NS_PER_MS);
    hang(driver, 1, false);
    assert_true(wm_guard_close(guard, in_ns(LONG_NS)));
    free_driver(driver);
}

UNIT(base_guard)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_slow_is_not_hanging),
        cmocka_unit_test(test_a_call_that_has_not_begun_is_not_late),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_second_hang_is_given_up_at_once),
        cmocka_unit_test(test_all_hang),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_no_units),
        cmocka_unit_test(test_no_threads),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_cpu_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
