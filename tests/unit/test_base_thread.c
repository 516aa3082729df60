/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_thread.c - threads take no signal of the program, and wait by the clock. */
#include <signal.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_thread.h"
#include "test.h"

static void *note_mask(void *context)
{
    pthread_sigmask(SIG_SETMASK, NULL, context);
    return NULL;
}

static void test_signals(void **state)
{
    sigset_t before, after, inside;
    pthread_t thread;

    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(wm_thread_start(&thread, note_mask, &inside, "none", NULL), WM_OK);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&inside, SIGINT), 1);
    assert_int_equal(sigismember(&inside, SIGTERM), 1);
    assert_int_equal(sigismember(&inside, SIGCHLD), 1);
    for (int number = 1; number < 32; number++)
        assert_int_equal(sigismember(&after, number), sigismember(&before, number));
}

static void test_no_thread(void **state)
{
    struct wm_error err;
    pthread_t thread;
    sigset_t after;

    (void)state;
    test_fail_threads(true);
    int status = wm_thread_start(&thread, note_mask, NULL, "no thread for a test", &err);
    test_fail_threads(false);
    assert_int_equal(status, WM_EIO);
    assert_int_equal(strncmp(err.text, "no thread for a test: ", 22), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), 0);
}

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t condition;
};

static void *signal_once(void *context)
{
    struct meeting *meeting = context;

    pthread_mutex_lock(&meeting->lock);
    pthread_cond_signal(&meeting->condition);
    pthread_mutex_unlock(&meeting->lock);
    return NULL;
}

static void test_wait(void **state)
{
    struct meeting meeting = { .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t thread;

    (void)state;
    assert_int_equal(wm_thread_condition(&meeting.condition), 0);
    pthread_mutex_lock(&meeting.lock);
    assert_false(wm_thread_wait(&meeting.condition, &meeting.lock, -1));
    int64_t until_ns = wm_clock_monotonic_ns() + 10 * WM_NS_PER_MS;
    while (wm_thread_wait(&meeting.condition, &meeting.lock, until_ns))
        ;
    assert_true(wm_clock_monotonic_ns() >= until_ns);

    assert_int_equal(wm_thread_start(&thread, signal_once, &meeting, "none", NULL), WM_OK);
    until_ns = wm_clock_monotonic_ns() + 60 * WM_NS_PER_S;
    assert_true(wm_thread_wait(&meeting.condition, &meeting.lock, until_ns));
    pthread_mutex_unlock(&meeting.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&meeting.condition);
}

UNIT(base_thread)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
