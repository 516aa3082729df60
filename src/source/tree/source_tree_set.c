/* SPDX-License-Identifier: Apache-2.0 */
/* source_tree_set.c - who belongs to the tracked tree. */
#include "source/tree/source_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_file.h"
#include "source/source_kernel_text.h"

/* Most processes followed at a time, and most that one search brings up. */
enum { PROCESS_MAX = 65536, CHILDREN_MAX = PROCESS_MAX };

/* A search that was not called for is done this often, in case the newest pid
 * has come round to the same number. */
#define SEARCH_NS WM_NS_PER_S

/* Listing the children of a process takes at most this share of the time. */
#define SEARCH_SHARE 100

struct wm_process *wm_tree_set_find(const struct wm_tree_set *set, pid_t pid)
{
    uint32_t index = wm_map_find(&set->places, (uint64_t)pid, 0);

    return index == WM_MAP_NONE ? NULL : &set->processes[index];
}

static bool make_room(struct wm_tree_set *set)
{
    return set->count < PROCESS_MAX && wm_map_reserve(&set->places) == WM_OK &&
           wm_array_reserve(&set->processes, set->count, &set->room,
                            sizeof(*set->processes)) == WM_OK;
}

static struct wm_process *add(struct wm_tree_set *set, pid_t pid)
{
    if (!make_room(set)) {
        set->census.unlisted++;
        return NULL;
    }

    struct wm_process *process = &set->processes[set->count];
    if (!wm_process_open(&set->procfs, pid, process))
        return NULL;
    wm_process_count_files(&set->procfs, process);
    if (!set->started)
        wm_process_set_base(&set->procfs, process, set->reaper > 0);
    wm_map_put(&set->places, (uint64_t)pid, 0, (uint32_t)set->count++);
    set->census.seen++;
    return process;
}

static int64_t shared_of(const struct wm_tree_set *set, const struct wm_process *process)
{
    return process->rss_bytes - wm_process_memory(&set->procfs, process).uss;
}

/* After a fork, or the end of a copy: how what the copies of a process share is divided
 * among them is not known until smaps_rollup of each was read again. Until then the one
 * that shares most stands for all of it, and of the last one it is its own. Returns how
 * many there are. */
static size_t regroup(struct wm_tree_set *set, uint64_t image)
{
    struct wm_process *most = NULL;
    size_t count = 0;

    for (size_t i = 0; image != 0 && i < set->count; i++) {
        struct wm_process *process = &set->processes[i];
        if (process->image != image || process->gone || process->state == 'Z')
            continue;
        const struct wm_process_memory memory = wm_process_memory(&set->procfs, process);
        if (!most || shared_of(set, process) > shared_of(set, most))
            most = process;
        wm_process_guess(&set->procfs, process, memory.uss, 0);
        process->sure_bytes = memory.least_uss;
        count++;
    }
    if (!most)
        return 0;
    int64_t shared = shared_of(set, most);
    if (count > 1)
        wm_process_guess(&set->procfs, most, most->uss_bytes, shared);
    else
        wm_process_guess(&set->procfs, most, most->rss_bytes - most->file_bytes, 0);
    return count;
}

/* Remembers a dead process in place of the cheapest one, where it is dearer. */
static void remember(struct wm_tree_set *set, const struct wm_process *process)
{
    if (set->gone_count < WM_TREE_GONE_MAX) {
        set->gone[set->gone_count++] = *process;
        return;
    }

    struct wm_process *cheapest = &set->gone[0];
    for (size_t i = 1; i < WM_TREE_GONE_MAX; i++) {
        if (set->gone[i].cpu_ns < cheapest->cpu_ns)
            cheapest = &set->gone[i];
    }
    if (process->cpu_ns > cheapest->cpu_ns)
        *cheapest = *process;
}

/* Its parent has its time now, unless that is a stranger who adopted it. */
static void bury(struct wm_tree_set *set, struct wm_process *process)
{
    struct wm_process *parent = wm_tree_set_find(set, process->parent);

    if (process->pid == set->root)
        set->gone_ns += wm_process_reaped_ns(process);
    else if (parent)
        wm_process_inherit(parent, process);
    else
        set->gone_ns += process->cpu_ns + wm_process_reaped_ns(process);
    wm_process_release(&set->procfs, process);
    remember(set, process);
}

/* Notes what a process shows about children that are gone. */
static void take_ends(struct wm_tree_set *set, const struct wm_process *process)
{
    set->census.has_unwaited |=
        process->ignores_children || wm_process_lost_children(process);
    set->census.has_reaped |= process->reaped_faults > process->reaped_base_faults;
}

static void refresh_all(struct wm_tree_set *set, int64_t now_ns)
{
    size_t gone = 0, kept = 0;

    for (size_t i = 0; i < set->count; i++) {
        struct wm_process *process = &set->processes[i];
        uint64_t image = process->image;
        bool was_alive = process->state != 'Z';

        process->gone = !wm_process_refresh(&set->procfs, process, now_ns);
        if (process->gone)
            process->file_bytes = 0;
        wm_process_count_files(&set->procfs, process);
        gone += process->gone;
        if (process->gone || process->ran_ns == now_ns)
            set->ran_ns = now_ns;
        if (!process->gone)
            take_ends(set, process);
        bool is_alive = !process->gone && process->state != 'Z';
        if ((was_alive && !is_alive) || process->image != image)
            regroup(set, image);
        /* Its children have another parent now, and may be as old as the last search. */
        set->search_pending |= was_alive && !is_alive;
    }
    if (gone == 0)
        return;

    /* Before any is moved, as burying looks for parents. Children stand behind their
     * parents, so that what a child adds to its parent goes on to that one's parent. */
    for (size_t i = set->count; i-- > 0;) {
        if (set->processes[i].gone)
            bury(set, &set->processes[i]);
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct wm_process *process = &set->processes[i];
        if (process->gone) {
            wm_map_remove(&set->places, (uint64_t)process->pid, 0);
            continue;
        }
        wm_map_put(&set->places, (uint64_t)process->pid, 0, (uint32_t)kept);
        set->processes[kept++] = *process;
    }
    set->count = kept;
}

/* Whether there may be new processes in the tree: where none of it has run there
 * are none, nor where none was made on this machine since the last call. */
static bool is_search_due(struct wm_tree_set *set, int64_t now_ns)
{
    char text[128];
    struct wm_loadavg loadavg;

    if (!set->procfs.own || set->loadavg_fd < 0 || set->search_pending ||
        now_ns - set->searched_ns >= SEARCH_NS)
        return true;
    if (set->ran_ns < now_ns)
        return false;
    if (wm_file_reread(set->loadavg_fd, text, sizeof(text)) <= 0 ||
        wm_parse_loadavg(text, &loadavg) != WM_OK)
        return true;
    bool due = loadavg.last_pid != set->newest_pid;
    set->newest_pid = loadavg.last_pid;
    return due;
}

/* Whom a new process is a copy of: its parent, or where that is gone some other one. */
static struct wm_process *find_copy(struct wm_tree_set *set, const struct wm_process *child,
                                    struct wm_process *parent)
{
    if (child->image == 0 || (parent && parent->image == child->image))
        return child->image == 0 ? NULL : parent;
    for (size_t i = 0; i < set->count; i++) {
        if (set->processes[i].image == child->image && &set->processes[i] != child)
            return &set->processes[i];
    }
    return NULL;
}

/* A copy of its parent, which at the fork had all of its memory in common with it: as much
 * as both still have. */
static void share(struct wm_tree_set *set, struct wm_process *parent,
                  struct wm_process *child)
{
    /* What it has grown by before the fork is common, too. */
    wm_process_read_size(&set->procfs, parent);
    int64_t parents = parent->rss_bytes - parent->file_bytes;
    int64_t childs = child->rss_bytes - child->file_bytes;
    int64_t common = parents < childs ? parents : childs;
    int64_t own = wm_process_memory(&set->procfs, parent).uss;

    wm_process_guess(&set->procfs, parent, own < parents - common ? own : parents - common,
                     0);
    wm_process_guess(&set->procfs, child, childs - common, 0);
    if (regroup(set, child->image) == 2)
        parent->detail_faults = parent->unforked_faults;
}

/* A process that was found as a child of `parent`. */
static void take_child(struct wm_tree_set *set, pid_t pid, pid_t parent)
{
    if (pid <= 0 || pid == set->reaper || wm_tree_set_find(set, pid) || !add(set, pid))
        return;

    struct wm_process *child = wm_tree_set_find(set, pid);
    struct wm_process *other = find_copy(set, child, wm_tree_set_find(set, parent));
    if (other)
        share(set, other, child);
}

/* No process is left out for longer than a full search takes to come. */
static bool is_affordable(const struct wm_process *process, int64_t now_ns)
{
    int64_t pause_ns = SEARCH_SHARE * process->search_cost_ns;

    if (pause_ns > SEARCH_NS)
        pause_ns = SEARCH_NS;
    return process->searched_ns == 0 || now_ns - process->searched_ns >= pause_ns;
}

static void search_children(struct wm_tree_set *set, int64_t now_ns)
{
    struct wm_process reaper = { .pid = set->reaper, .threads = 1 };
    if (set->reaper > 0) {
        size_t count = wm_process_children(&set->procfs, &reaper, set->found, CHILDREN_MAX);
        for (size_t i = 0; i < count && i < CHILDREN_MAX; i++)
            take_child(set, set->found[i], set->reaper);
    }

    /* The list grows while it is walked, so grandchildren come up as well. */
    for (size_t i = 0; i < set->count; i++) {
        struct wm_process *process = &set->processes[i];

        if (process->state == 'Z' || (set->procfs.own && process->searched_ns > 0 &&
                                      process->cpu_ns == process->searched_cpu_ns))
            continue;
        if (!is_affordable(process, now_ns)) {
            set->search_pending = true;
            continue;
        }

        pid_t parent = process->pid;
        size_t count = wm_process_children(&set->procfs, process, set->found, CHILDREN_MAX);
        for (size_t k = 0; k < count && k < CHILDREN_MAX; k++)
            take_child(set, set->found[k], parent);
    }
}

/* For a kernel without lists of children: the parents of all processes. */
static void search_parents(struct wm_tree_set *set)
{
    size_t count = wm_procfs_numbers(set->procfs.dir, ".", set->found, CHILDREN_MAX);
    pid_t *parents = set->found + CHILDREN_MAX;
    bool grown = true;

    if (count > CHILDREN_MAX)
        count = CHILDREN_MAX;
    for (size_t i = 0; i < count; i++) {
        char path[32], text[1024];
        struct wm_pid_stat stat;

        parents[i] = 0;
        if (wm_tree_set_find(set, set->found[i]))
            continue;
        snprintf(path, sizeof(path), "%d/stat", (int)set->found[i]);
        if (wm_file_read_at(set->procfs.dir, path, text, sizeof(text)) > 0 &&
            wm_parse_pid_stat(text, &stat) == WM_OK)
            parents[i] = stat.ppid;
    }
    while (grown) {
        size_t before = set->count;
        for (size_t i = 0; i < count; i++) {
            pid_t parent = parents[i];
            if (parent > 0 && (wm_tree_set_find(set, parent) ||
                               (set->reaper > 0 && parent == set->reaper)))
                take_child(set, set->found[i], parent);
        }
        grown = set->count > before;
    }
}

static void search(struct wm_tree_set *set, int64_t now_ns)
{
    char path[64];

    if (set->searched_ns == 0) {
        snprintf(path, sizeof(path), "%d/task/%d/children", (int)set->root, (int)set->root);
        set->lists_children = faccessat(set->procfs.dir, path, R_OK, 0) == 0;
    }
    set->searched_ns = now_ns;
    if (set->lists_children)
        search_children(set, now_ns);
    else
        search_parents(set);
}

void wm_tree_set_refresh(struct wm_tree_set *set, int64_t now_ns)
{
    refresh_all(set, now_ns);
    if (!set->procfs.is_other && is_search_due(set, now_ns))
        search(set, now_ns);
    set->started = true;
}

bool wm_procfs_is_other(const char *procfs)
{
    char self[32];

    ssize_t length = wm_file_is_same(procfs, "/proc")
                         ? readlink("/proc/self", self, sizeof(self) - 1)
                         : -1;
    if (length <= 0)
        return false;
    self[length] = '\0';
    return strtol(self, NULL, 10) != getpid();
}

static int fds_to_keep(void)
{
    struct rlimit limit;

    /* The host program needs most of them; ours only save time. */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 256;
    return limit.rlim_cur > 4096 ? 1024 : (int)(limit.rlim_cur / 4);
}

int wm_tree_set_add(struct wm_tree_set *set, pid_t pid, struct wm_error *err)
{
    if (!wm_tree_set_find(set, pid) && !add(set, pid))
        return wm_fail(err, WM_ENOENT, "there is no process %d", (int)pid);
    return WM_OK;
}

int wm_tree_set_init(struct wm_tree_set *set, const char *procfs, pid_t root, pid_t reaper,
                     struct wm_error *err)
{
    set->root = root;
    set->reaper = reaper;
    set->loadavg_fd = -1;
    set->procfs = (struct wm_procfs) {
        .dir = open(procfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .own = wm_file_is_same(procfs, "/proc"),
        .is_other = wm_procfs_is_other(procfs),
        .ns_per_tick = WM_NS_PER_S / sysconf(_SC_CLK_TCK),
        .page_bytes = sysconf(_SC_PAGESIZE),
        .fds_left = fds_to_keep(),
    };
    if (set->procfs.own && !set->procfs.is_other)
        set->procfs.self = getpid();
    if (set->procfs.dir < 0)
        return wm_fail_errno(err, procfs);

    set->found = malloc(2 * CHILDREN_MAX * sizeof(*set->found));
    if (!set->found || !make_room(set))
        return wm_fail_memory(err, "process tree");
    errno = 0;
    if (!add(set, root) && (errno == EMFILE || errno == ENFILE))
        return wm_fail_errno(err, procfs);
    if (!wm_tree_set_find(set, root))
        return wm_fail(err, WM_ENOENT, "there is no process %d in %s", (int)root, procfs);

    int loadavg = wm_file_open_at(set->procfs.dir, "loadavg");
    if (loadavg >= 0)
        set->loadavg_fd = loadavg;
    return WM_OK;
}

void wm_tree_set_release(struct wm_tree_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        wm_process_release(&set->procfs, &set->processes[i]);
    if (set->loadavg_fd >= 0)
        close(set->loadavg_fd);
    if (set->procfs.dir >= 0)
        close(set->procfs.dir);
    free(set->found);
    wm_map_release(&set->places);
    free(set->processes);
}
