/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_process.h - one process of a tracked tree: its identity, CPU time and
 * memory, read as rarely as truth allows.
 *
 * On the machine's own /proc a process is first asked for its CPU clock (about
 * 0.2 us). One that has not run since has neither forked nor allocated, so
 * that for a sleeping process nothing else is read. The kernel updates that clock
 * when the process stops running, and else at each tick of its timer: what a
 * process does on a core of its own may be seen a tick (1 to 10 ms) late. On another
 * tree (a captured one, the host's /proc seen from a container) its pids are not ours
 * to ask, and everything comes from files.
 */
#ifndef WM_SOURCE_PROCESS_H
#define WM_SOURCE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/base_number.h"

/* A /proc that is being read. */
struct wm_procfs {
    int dir;             /* descriptor of its root */
    bool own;            /* its pids are those of our own system calls */
    bool is_other;       /* /proc, but of another pid namespace: nothing in it is ours */
    pid_t self;          /* the calling process in it; 0: its pids are others' */
    int64_t ns_per_tick; /* of the times in PID/stat */
    int64_t page_bytes;
    int fds_left; /* how many more descriptors processes may keep open */

    /* Sums over all processes that are followed: pages of files and of shared memory; those
     * that were ever mapped; and the shares in them of processes that have unmapped them.
     */
    int64_t file_bytes, mapped_bytes, given_up_bytes;
};

enum wm_detail_state {
    WM_DETAIL_GUESSED, /* never read, or out of date since a fork */
    WM_DETAIL_KNOWN,
    WM_DETAIL_DENIED, /* smaps_rollup may not be read: another user's process */
};

struct wm_process {
    pid_t pid;
    pid_t parent;
    uint64_t start_time; /* in ticks; with the pid it names one process */
    char name[64];
    char state; /* as in PID/stat; 'Z' for a zombie */

    /* Where its stack begins. The kernel draws lots for it at each exec, so a process that
     * has its parent's is a copy of it that has executed nothing since, and shares its
     * memory until one of the two writes to it. 0: not known. */
    uint64_t image;
    int stat_fd, statm_fd; /* -1: not kept open */

    int64_t cpu_ns;         /* its own, dead threads included */
    int64_t cpu_base_ns;    /* of that, from before it was tracked */
    int64_t reaped_ns;      /* of children it has waited for, with their own, */
    int64_t reaped_base_ns; /* of that, from before it was tracked */
    int64_t vanished_ns;    /* of children that were seen and are gone, with their own */
    int threads;
    int64_t rss_bytes;
    int64_t file_bytes;          /* of the rss: pages of files and of shared memory */
    int64_t counted_bytes;       /* of these, what is in the sums of all processes */
    uint64_t faults;             /* minor page faults so far, */
    uint64_t reaped_faults;      /* those of children it has waited for, of which */
    uint64_t reaped_base_faults, /* these are from before it was tracked; */
        vanished_faults;         /* and those of children that were seen and are gone */
    bool ignores_children;       /* it ignores SIGCHLD, so the kernel reaps its children */

    bool gone;               /* found so by the last refresh */
    int64_t ran_ns;          /* the last refresh that found it had run */
    int64_t refreshed_ns;    /* when the files were last read */
    int64_t searched_ns;     /* when its children were last listed */
    int64_t searched_cpu_ns; /* its CPU time at that moment */
    int64_t search_cost_ns;  /* the CPU time that the listing took */
    uint64_t searched_faults,
        unforked_faults; /* its page faults then, and the time before */

    /* What smaps_rollup last said, or was guessed since, and the state it belongs to. */
    enum wm_detail_state detail;
    int64_t uss_bytes, pss_bytes;
    int64_t sure_bytes; /* of the uss, what is no guess */
    int64_t detail_rss_bytes, detail_file_bytes;
    int64_t detail_mapped_bytes, detail_given_up_bytes; /* by all processes so far */
    uint64_t detail_faults;
    int64_t detail_ns, detail_cost_ns;

    /* When smaps_rollup may be read again to narrow the memory's interval, and how long it
     * was left alone before. */
    int64_t closer_ns, closer_pause_ns;

    int64_t max_rss_bytes;
    int64_t peak_ns;         /* when the kernel's own peak was last read */
    int64_t peak_base_bytes; /* what that was before it was tracked */
    struct wm_known max_private_bytes;
    int max_threads;
};

/* The entries of folder `path` under `dir` whose names are numbers, into
 * ids[0..room). How many there are; 0 also where the folder cannot be read. */
size_t wm_procfs_numbers(int dir, const char *path, pid_t *ids, size_t room);

/* Starts on process `pid`: reads its stat and statm. False when there is none
 * or it may not even be named; nothing is held then. */
bool wm_process_open(struct wm_procfs *procfs, pid_t pid, struct wm_process *ret_process);

/* Gives back what it holds. */
void wm_process_release(struct wm_procfs *procfs, struct wm_process *process);

/* The CPU time of its children that are gone, with their own: of those it has waited for,
 * which PID/stat reports in steps of 10 ms, or of those that were seen, whichever is more.
 */
int64_t wm_process_reaped_ns(const struct wm_process *process);

/* Adds the CPU time and the page faults of a child that is gone to its parent's. */
void wm_process_inherit(struct wm_process *process, const struct wm_process *child);

/* Whether children were gone at its last reading that it had not waited for. Every process
 * has page faults, and the kernel adds them to the parent's when that waits. */
bool wm_process_lost_children(const struct wm_process *process);

/* Makes the CPU time of its children that are gone count from now on. PID/stat reports user
 * and system time in steps, so up to two steps more may be from before. */
void wm_process_forget_reaped(const struct wm_procfs *procfs, struct wm_process *process);

/* Lets its CPU time and the kernel's peak of it count from now. `executes`: it has not
 * executed its program yet, with which the kernel's peak begins anew. */
void wm_process_set_base(const struct wm_procfs *procfs, struct wm_process *process,
                         bool executes);

/* The CPU time of its own that it has used by now: by its clock where its pid is one of our
 * own system calls, else as of the last refresh. */
int64_t wm_process_cpu_ns(const struct wm_procfs *procfs, const struct wm_process *process);

/* Its effective user and its command line, the words of which are parted by blanks; ""
 * where it has none or that may not be read. False when it is gone. */
bool wm_process_identify(const struct wm_procfs *procfs, pid_t pid, uid_t *ret_user,
                         char *ret_command, size_t size);

/* Brings CPU time, threads, state and resident memory up to date. False when
 * the process is gone, also when its pid now is another one's. */
bool wm_process_refresh(const struct wm_procfs *procfs, struct wm_process *process,
                        int64_t now_ns);

/* Reads smaps_rollup, which walks the page tables and holds up the process
 * while it maps memory; the caller minds the cost. False when the process is
 * gone. */
bool wm_process_read_detail(struct wm_procfs *procfs, struct wm_process *process);

/* Raises its highest resident memory to what the kernel has seen since it executed its
 * program, which does not miss what was between two refreshes. */
void wm_process_read_peak(const struct wm_procfs *procfs, struct wm_process *process,
                          int64_t now_ns);

/* What wm_process_read_detail() will probably cost: as much per byte as it did
 * last time. */
int64_t wm_process_detail_cost_ns(const struct wm_process *process);

/* What a process has to itself and what it shares, in bytes. */
struct wm_process_memory {
    int64_t uss, pss;
    int64_t least_uss;    /* the least that is private */
    int64_t least_shares; /* the least share of what it has in common with others */
    int64_t copied;       /* the most that may be private besides */
    int64_t given_up;     /* shares that others gave up, which may all be its own by now */
};

/* Its memory now. Between two reads of smaps_rollup what anonymous memory was added since
 * counts as private, and of pages of files and of shared memory what no other process can
 * have. What it had of these may be another one's as well by now, where others have mapped
 * some. That a shared page was written to, and so copied, does not show in the size, but it
 * took a page fault. */
struct wm_process_memory wm_process_memory(const struct wm_procfs *procfs,
                                           const struct wm_process *process);

/* Takes it that the process now has `uss_bytes` to itself and `shared_bytes` more as its
 * share of what it has in common with others, until smaps_rollup is read again. */
void wm_process_guess(const struct wm_procfs *procfs, struct wm_process *process,
                      int64_t uss_bytes, int64_t shared_bytes);

/* Reads how large it is by now. */
void wm_process_read_size(struct wm_procfs *procfs, struct wm_process *process);

/* Takes what it has mapped by now into the sums of all processes. */
void wm_process_count_files(struct wm_procfs *procfs, struct wm_process *process);

/* Lists the children of `process` into pids[0..room); the count, which may be
 * larger than `room`, and is 0 where this kernel offers no such list. */
size_t wm_process_children(const struct wm_procfs *procfs, struct wm_process *process,
                           pid_t *pids, size_t room);

#endif
