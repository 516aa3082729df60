/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_search.c - walks through /proc in small steps. */
#include "source/gpu/drm/source_drm_clients.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "source/tree/source_process.h"

/* The search takes at most this share of the time, and starts a new round at
 * most this often. What it has saved up is limited, so that after a pause no
 * reading is late for it. */
#define SEARCH_SHARE 100
#define ROUND_NS (WM_NS_PER_S / 2)
#define CREDIT_MAX_NS (5 * WM_NS_PER_MS)

/* Most processes, and most descriptors of one of them, that are looked at. */
enum { PIDS_MAX = 65536, NUMBERS_MAX = 4096 };

enum { PATH_SIZE = 64 };

/* In the first pid namespace, and where hidepid does not hide it, pid 2 is the
 * kernel's thread that makes the others. */
static bool is_whole_machine(int proc)
{
    char text[32];

    return wm_file_read_at(proc, "2/comm", text, sizeof(text)) > 0 &&
           strcmp(text, "kthreadd\n") == 0;
}

int wm_drm_search_init(struct wm_drm_search *search, const char *procfs,
                       struct wm_error *err)
{
    *search = (struct wm_drm_search) {
        .started = true,
        .proc = open(procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .round_ns = -ROUND_NS,
        .turn_ns = wm_clock_monotonic_ns(),
    };
    if (search->proc < 0)
        wm_fail_errno(&search->proc_err, procfs);
    else
        search->sees_all = is_whole_machine(search->proc);

    search->pids = calloc(PIDS_MAX, sizeof(*search->pids));
    search->numbers = calloc(NUMBERS_MAX, sizeof(*search->numbers));
    if (!search->pids || !search->numbers)
        return wm_fail_memory(err, "drm");
    return WM_OK;
}

void wm_drm_search_release(struct wm_drm_search *search)
{
    if (search->started && search->proc >= 0)
        close(search->proc);
    free(search->numbers);
    free(search->pids);
}

/* Whether a descriptor may be a DRM device. Looking at the link costs a third of
 * reading the fdinfo, and nearly all descriptors of a machine end here. A link
 * that cannot be read leaves the question open. */
static bool is_candidate(const struct wm_drm_search *search, pid_t pid, int number,
                         char *ret_node, size_t node_size)
{
    char path[PATH_SIZE], target[256];

    ret_node[0] = '\0';
    snprintf(path, sizeof(path), "%d/fd/%d", (int)pid, number);
    ssize_t length = readlinkat(search->proc, path, target, sizeof(target) - 1);
    if (length < 0)
        return true;
    target[length] = '\0';
    if (!strstr(target, "/dri/"))
        return false;
    snprintf(ret_node, node_size, "%.31s", strrchr(target, '/') + 1);
    return true;
}

static void list_numbers(struct wm_drm_search *search, pid_t pid)
{
    char path[PATH_SIZE];

    search->number_count = search->number_next = 0;
    snprintf(path, sizeof(path), "%d/fdinfo", (int)pid);
    int dir = openat(search->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        search->denied += errno == EACCES || errno == EPERM;
        return;
    }
    size_t count = wm_procfs_numbers(dir, ".", search->numbers, NUMBERS_MAX - 1);
    if (count > NUMBERS_MAX - 1) {
        search->left_out = true;
        count = NUMBERS_MAX - 1;
    }
    /* That list is meant for pids and leaves out 0, which a daemon without
     * standard input may well have for a GPU. */
    if (faccessat(dir, "0", F_OK, 0) == 0)
        search->numbers[count++] = 0;
    search->number_count = count;
    close(dir);
}

static void begin_round(struct wm_drm_search *search, int64_t now_ns)
{
    search->round++;
    search->round_ns = now_ns;
    search->running = true;
    search->left_out = false;
    search->denied = 0;
    search->number_count = search->number_next = 0;
    search->pid_next = 0;
    search->pid_count = wm_procfs_numbers(search->proc, ".", search->pids, PIDS_MAX);
    if (search->pid_count > PIDS_MAX) {
        search->left_out = true;
        search->pid_count = PIDS_MAX;
    }
}

static void end_round(struct wm_drm_search *search)
{
    search->denied_before = search->denied;
    search->left_out_before = search->left_out;
    search->running = false;
    search->completed++;
}

/* The smallest piece of the search. */
static void step(struct wm_drm_search *search, wm_drm_found *found, void *context)
{
    char node[32];

    if (search->number_next < search->number_count) {
        pid_t pid = search->pids[search->pid_next - 1];
        int number = search->numbers[search->number_next++];
        if (is_candidate(search, pid, number, node, sizeof(node)))
            found(context, pid, number, node);
    } else if (search->pid_next < search->pid_count) {
        list_numbers(search, search->pids[search->pid_next++]);
    } else {
        end_round(search);
    }
}

bool wm_drm_search_run(struct wm_drm_search *search, int64_t limit_ns, wm_drm_found *found,
                       void *context)
{
    int64_t begin_ns = wm_clock_monotonic_ns();

    if (search->proc < 0)
        return false;
    if (!search->running)
        begin_round(search, begin_ns);
    do
        step(search, found, context);
    while (search->running && wm_clock_monotonic_ns() - begin_ns < limit_ns);
    return !search->running;
}

bool wm_drm_search_turn(struct wm_drm_search *search, wm_drm_found *found, void *context)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    search->earned_ns += now_ns - search->turn_ns;
    if (search->earned_ns > SEARCH_SHARE * CREDIT_MAX_NS)
        search->earned_ns = SEARCH_SHARE * CREDIT_MAX_NS;
    search->turn_ns = now_ns;
    if (search->earned_ns <= 0 ||
        (!search->running && now_ns - search->round_ns < ROUND_NS))
        return false;

    bool complete =
        wm_drm_search_run(search, search->earned_ns / SEARCH_SHARE, found, context);
    search->earned_ns -= SEARCH_SHARE * (wm_clock_monotonic_ns() - now_ns);
    return complete;
}
