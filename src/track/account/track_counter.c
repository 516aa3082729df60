/* SPDX-License-Identifier: Apache-2.0 */
/* track_counter.c - perf counters of CPU time, and whether they are to be had. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_thread.h"
#include "track/account/track_account.h"

struct wm_counter_probe {
    atomic_int users;  /* the owner and the thread; the last one frees it */
    atomic_int answer; /* or WM_COUNTER_UNKNOWN */
    int wake_fd;       /* a descriptor of its own, or -1 */
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
    free(probe);
}

static void *look(void *context)
{
    const uint64_t one = 1;
    struct wm_counter_probe *probe = context;

    int fd = wm_counter_open(0);
    if (fd >= 0)
        close(fd);
    atomic_store(&probe->answer, fd < 0 ? fd : 0);
    while (write(probe->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    wm_counter_probe_free(probe);
    return NULL;
}

int wm_counter_probe_new(int wake_fd, struct wm_counter_probe **ret_probe,
                         struct wm_error *err)
{
    pthread_t thread;

    struct wm_counter_probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return wm_fail(err, WM_ENOMEM, "CPU accounting: out of memory");
    atomic_init(&probe->users, 2);
    atomic_init(&probe->answer, WM_COUNTER_UNKNOWN);
    probe->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
    if (wm_thread_start(&thread, look, probe, "", NULL) == WM_OK)
        pthread_detach(thread);
    else
        look(probe);
    *ret_probe = probe;
    return WM_OK;
}

int wm_counter_probe_answer(const struct wm_counter_probe *probe, int64_t patience_ns)
{
    struct pollfd wake = { .fd = probe->wake_fd, .events = POLLIN };
    const struct timespec patience = { .tv_nsec = patience_ns };

    if (atomic_load(&probe->answer) == WM_COUNTER_UNKNOWN && patience_ns > 0)
        ppoll(&wake, 1, &patience, NULL);
    return atomic_load(&probe->answer);
}
