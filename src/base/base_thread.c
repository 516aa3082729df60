/* SPDX-License-Identifier: Apache-2.0 */
/* base_thread.c - threads of ours in somebody else's program. */
#include "base/base_thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/base_clock.h"

/* Vendors' libraries put some hundred KiB on a stack; what is not used is not there
 * either. */
#define STACK_BYTES (1024 * 1024)

static int create(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    sigset_t all, before;

    int number = pthread_attr_init(&attributes);
    if (number != 0)
        return number;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);

    /* A thread inherits the mask of the one that makes it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(ret_thread, &attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return number;
}

int wm_thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context,
                    const char *what, struct wm_error *err)
{
    int number = create(ret_thread, run, context);

    errno = number;
    return number == 0 ? WM_OK : wm_fail_errno(err, what);
}

int wm_thread_condition(pthread_cond_t *ret_condition)
{
    pthread_condattr_t attributes;

    int number = pthread_condattr_init(&attributes);
    if (number != 0)
        return number;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    number = pthread_cond_init(ret_condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return number;
}

bool wm_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns)
{
    const struct timespec deadline = {
        .tv_sec = deadline_ns > 0 ? deadline_ns / WM_NS_PER_S : 0,
        .tv_nsec = deadline_ns > 0 ? deadline_ns % WM_NS_PER_S : 0,
    };

    return pthread_cond_timedwait(condition, lock, &deadline) == 0;
}
