/* SPDX-License-Identifier: Apache-2.0 */
/* track_batch.c - runs of a command back to back. */
#include "track/launch/track_batch.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"

static size_t batch_size(size_t count)
{
    return sizeof(struct wm_batch) + count * sizeof(struct wm_batch_run);
}

int wm_batch_new(size_t count, bool goes_on, struct wm_batch **ret_batch,
                 struct wm_error *err)
{
    void *memory = mmap(NULL, batch_size(count), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return wm_fail_memory(err, "a batch of runs");
    struct wm_batch *batch = memory;
    batch->count = count;
    batch->goes_on = goes_on;
    *ret_batch = batch;
    return WM_OK;
}

void wm_batch_free(struct wm_batch *batch)
{
    if (batch)
        munmap(batch, batch_size(batch->count));
}

/* vfork() copies no page tables, which would take longer than a short command. The child
 * uses our memory until it has executed the program. `ret_errno`: it could not. */
static pid_t start_run(struct wm_batch *batch, const char *path, char *const argv[],
                       char *const environment[], volatile int *ret_errno)
{
    batch->runs[batch->done].begin_ns = wm_clock_monotonic_ns();
    pid_t pid = vfork();

    if (pid == 0) {
        execvpe(path, argv, environment);
        *ret_errno = errno;
        _exit(127);
    }
    if (pid < 0)
        *ret_errno = errno;
    return pid;
}

static bool end_run(struct wm_batch *batch, pid_t pid)
{
    struct wm_batch_run *run = &batch->runs[batch->done];
    pid_t ended;

    do
        ended = wait4(pid, &run->wait_status, 0, &run->usage);
    while (ended < 0 && errno == EINTR);
    run->end_ns = wm_clock_monotonic_ns();
    if (ended != pid)
        return false;
    batch->done++;
    return batch->done < batch->count && (run->wait_status == 0 || batch->goes_on);
}

int wm_batch_be(struct wm_batch *batch, const char *path, char *const argv[],
                char *const environment[], int exec_fd)
{
    struct rusage usage = { 0 };
    volatile int number = 0;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL); /* or there would be nothing to wait for */
    getrusage(RUSAGE_SELF, &usage);
    batch->inherited_kb = usage.ru_maxrss;
    do {
        pid = start_run(batch, path, argv, environment, &number);
        if (batch->done == 0 && number == 0)
            close(exec_fd);
    } while (number == 0 && end_run(batch, pid));
    if (batch->done == 0 && number != 0)
        return number;
    int status = batch->done > 0 ? batch->runs[batch->done - 1].wait_status : 0;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
