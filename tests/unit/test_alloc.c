/* SPDX-License-Identifier: Apache-2.0 */
/* test_alloc.c - allocations and threads that fail on demand, and time that passes at once.
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,
 * --wrap=pthread_create,--wrap=wm_clock_monotonic_ns, so that the code under test needs no
 * hook and sanitizers still see every allocation and thread. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

int64_t __real_wm_clock_monotonic_ns(void);
int64_t __wrap_wm_clock_monotonic_ns(void);

static int64_t passed_ns;

void test_pass_time(int64_t ns)
{
    __atomic_fetch_add(&passed_ns, ns, __ATOMIC_RELAXED);
}

int64_t __wrap_wm_clock_monotonic_ns(void)
{
    return __real_wm_clock_monotonic_ns() + __atomic_load_n(&passed_ns, __ATOMIC_RELAXED);
}

static long made;
static long fail_from = -1;
static bool fail_threads;

static bool fails(void)
{
    long number = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    long from = __atomic_load_n(&fail_from, __ATOMIC_RELAXED);

    return from >= 0 && number >= from;
}

long test_fail_allocation(long nth)
{
    long count = __atomic_exchange_n(&made, 0, __ATOMIC_RELAXED);

    __atomic_store_n(&fail_from, nth, __ATOMIC_RELAXED);
    return count;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

void test_fail_threads(bool fail)
{
    fail_threads = fail;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    return fail_threads ? EAGAIN
                        : __real_pthread_create(thread, attributes, start, argument);
}
