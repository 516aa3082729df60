/* SPDX-License-Identifier: Apache-2.0 */
/* track_counter.c - perf counters of CPU time, and whether they are to be had. */
#include "track/account/track_counter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_thread.h"

/* Its owner waits for it no longer, and wants to be woken. */
#define GIVEN_UP (WM_COUNTER_UNKNOWN + 1)

struct wm_counter_probe {
    atomic_int users;  /* the owner and the thread; the last one frees it */
    atomic_int answer; /* or WM_COUNTER_UNKNOWN, or GIVEN_UP */
    sem_t answered;
    int wake_fd; /* a descriptor of its own, or -1 */
};

/* User space alone is asked for, because that needs no privilege; the clock is
 * a software event and counts kernel time all the same. */
int wm_counter_open(pid_t id)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    long fd = syscall(SYS_perf_event_open, &attr, id, -1, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

void wm_counter_probe_free(struct wm_counter_probe *probe)
{
    if (!probe || atomic_fetch_sub(&probe->users, 1) > 1)
        return;
    if (probe->wake_fd >= 0)
        close(probe->wake_fd);
    sem_destroy(&probe->answered);
    free(probe);
}

static void wake(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void *look(void *context)
{
    struct wm_counter_probe *probe = context;

    int fd = wm_counter_open(0);
    if (fd >= 0)
        close(fd);
    if (atomic_exchange(&probe->answer, fd < 0 ? fd : 0) == GIVEN_UP)
        wake(probe->wake_fd);
    else
        sem_post(&probe->answered);
    wm_counter_probe_free(probe);
    return NULL;
}

static int make_thread(struct wm_counter_probe *probe)
{
    pthread_t thread;

    int status = wm_thread_start(&thread, look, probe, "", NULL);
    if (status == WM_OK)
        pthread_detach(thread);
    return status;
}

int wm_counter_probe_new(struct wm_counter_probe **ret_probe, struct wm_error *err)
{
    struct wm_counter_probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return wm_fail(err, WM_ENOMEM, "CPU accounting: out of memory");
    atomic_init(&probe->users, 2);
    atomic_init(&probe->answer, WM_COUNTER_UNKNOWN);
    sem_init(&probe->answered, 0, 0);
    probe->wake_fd = -1;
    if (make_thread(probe) != 0)
        look(probe);
    *ret_probe = probe;
    return WM_OK;
}

int wm_counter_probe_answer(const struct wm_counter_probe *probe)
{
    int answer = atomic_load(&probe->answer);

    return answer == GIVEN_UP ? WM_COUNTER_UNKNOWN : answer;
}

int wm_counter_probe_wait(struct wm_counter_probe *probe, int64_t deadline_ns, int wake_fd)
{
    const struct timespec deadline = { deadline_ns / WM_NS_PER_S,
                                       deadline_ns % WM_NS_PER_S };
    int unknown = WM_COUNTER_UNKNOWN;

    while (sem_clockwait(&probe->answered, CLOCK_MONOTONIC, &deadline) < 0 &&
           errno == EINTR)
        ;
    if (atomic_load(&probe->answer) == WM_COUNTER_UNKNOWN) {
        probe->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
        atomic_compare_exchange_strong(&probe->answer, &unknown, GIVEN_UP);
    }
    return wm_counter_probe_answer(probe);
}
