/* SPDX-License-Identifier: Apache-2.0 */
/* source_process.c - one process, through /proc and its CPU clock. */
#include "source/tree/source_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "source/source_kernel_text.h"

/* A process that sleeps may still lose pages to reclaim, so its files are read
 * again after this long. */
#define REFRESH_NS WM_NS_PER_S

/* First guess of what smaps_rollup costs: a fixed part and 2.5 ms per GiB of
 * 4 KiB pages, as measured on several kernels. */
#define DETAIL_FIXED_NS 10000
#define DETAIL_BYTES_PER_NS 430
#define LEARNING_BYTES (16 << 20)

/* Less than this may be but what the kernel counts by CPU, and adds up now and then. */
#define UNSEEN_MIN_BYTES (1 << 20)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

enum { STAT_SIZE = 1024, ROLLUP_SIZE = 2048, STATUS_SIZE = 8192, PATH_SIZE = 64 };

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The kernel's encoding of "the CPU clock of process PID", which
 * clock_getcpuclockid() would compute with one more system call. */
static clockid_t cpu_clock(pid_t pid)
{
    return (clockid_t)((~(unsigned)pid << 3) | 2);
}

static bool read_cpu_clock(pid_t pid, int64_t *ret_ns)
{
    struct timespec used;

    if (clock_gettime(cpu_clock(pid), &used) != 0)
        return false;
    *ret_ns = (int64_t)used.tv_sec * WM_NS_PER_S + used.tv_nsec;
    return true;
}

static ssize_t read_file(const struct wm_procfs *procfs, const struct wm_process *process,
                         int kept_fd, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE];

    if (kept_fd >= 0)
        return wm_file_reread(kept_fd, text, size);
    snprintf(path, sizeof(path), "%d/%s", (int)process->pid, name);
    return wm_file_read_at(procfs->dir, path, text, size);
}

/* A process that is just being reaped has no thread, no parent and no times left: it is
 * gone, and what it showed before is what it was. */
static bool read_stat(const struct wm_procfs *procfs, const struct wm_process *process,
                      struct wm_pid_stat *ret_stat)
{
    char text[STAT_SIZE];

    return read_file(procfs, process, process->stat_fd, "stat", text, sizeof(text)) > 0 &&
           wm_parse_pid_stat(text, ret_stat) == WM_OK && ret_stat->threads > 0;
}

/* What the calling process's own children have used, which PID/stat says in steps of 10 ms.
 */
static int64_t own_reaped_ns(void)
{
    struct rusage used = { 0 };

    getrusage(RUSAGE_CHILDREN, &used);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * WM_NS_PER_S +
           (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

static void take_stat(const struct wm_procfs *procfs, struct wm_process *process,
                      const struct wm_pid_stat *stat)
{
    process->parent = stat->ppid;
    process->state = stat->state;
    process->threads = (int)stat->threads;
    process->faults = stat->minflt;
    process->reaped_faults = stat->cminflt;
    process->ignores_children = stat->ignored >> (SIGCHLD - 1) & 1;
    if (stat->start_stack != 0)
        process->image = stat->start_stack;
    process->reaped_ns = process->pid == procfs->self
                             ? own_reaped_ns()
                             : (int64_t)(stat->cutime + stat->cstime) * procfs->ns_per_tick;
    if (!procfs->own)
        process->cpu_ns = (int64_t)(stat->utime + stat->stime) * procfs->ns_per_tick;
    memcpy(process->name, stat->comm, sizeof(process->name));
    process->name[sizeof(process->name) - 1] = '\0';
    if (process->threads > process->max_threads)
        process->max_threads = process->threads;
}

static void read_statm(const struct wm_procfs *procfs, struct wm_process *process)
{
    char text[STAT_SIZE];
    struct wm_statm statm;

    if (read_file(procfs, process, process->statm_fd, "statm", text, sizeof(text)) <= 0 ||
        wm_parse_statm(text, &statm) != WM_OK)
        return;
    process->rss_bytes = (int64_t)statm.resident * procfs->page_bytes;
    process->file_bytes = (int64_t)statm.shared * procfs->page_bytes;
    if (process->rss_bytes > process->max_rss_bytes)
        process->max_rss_bytes = process->rss_bytes;
}

static int64_t anonymous_bytes(const struct wm_process *process)
{
    return process->rss_bytes > process->file_bytes
               ? process->rss_bytes - process->file_bytes
               : 0;
}

void wm_process_guess(const struct wm_procfs *procfs, struct wm_process *process,
                      int64_t uss_bytes, int64_t shared_bytes)
{
    if (process->detail == WM_DETAIL_KNOWN)
        process->detail = WM_DETAIL_GUESSED;
    process->uss_bytes = uss_bytes;
    process->pss_bytes = uss_bytes + shared_bytes;
    process->sure_bytes = 0;
    process->detail_rss_bytes = process->rss_bytes;
    process->detail_file_bytes = process->file_bytes;
    process->detail_mapped_bytes = procfs->mapped_bytes;
    process->detail_given_up_bytes = procfs->given_up_bytes;
}

/* A program that was just executed has all but its files to itself. */
static void guess_alone(const struct wm_procfs *procfs, struct wm_process *process)
{
    process->detail = WM_DETAIL_GUESSED;
    process->detail_faults = 0;
    wm_process_guess(procfs, process, anonymous_bytes(process), 0);
}

/* A kept descriptor saves two thirds of the cost of reading, and never speaks
 * of a later process with the same pid. */
static int keep_open(struct wm_procfs *procfs, pid_t pid, const char *name)
{
    char path[PATH_SIZE];

    if (procfs->fds_left <= 0)
        return -1;
    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    int fd = wm_file_open_at(procfs->dir, path);
    if (fd < 0)
        return -1;
    procfs->fds_left--;
    return fd;
}

bool wm_process_open(struct wm_procfs *procfs, pid_t pid, struct wm_process *ret_process)
{
    struct wm_process process = { .pid = pid, .stat_fd = -1, .statm_fd = -1 };
    struct wm_pid_stat stat;

    if (procfs->is_other) { /* its number means another process there */
        process.refreshed_ns = process.ran_ns = wm_clock_monotonic_ns();
        bool is_there = read_cpu_clock(pid, &process.cpu_ns);
        *ret_process = process;
        return is_there;
    }
    process.stat_fd = keep_open(procfs, pid, "stat");
    process.statm_fd = keep_open(procfs, pid, "statm");
    if (!read_stat(procfs, &process, &stat)) {
        wm_process_release(procfs, &process);
        return false;
    }
    process.start_time = stat.start_time;
    if (procfs->own && !read_cpu_clock(pid, &process.cpu_ns))
        process.cpu_ns = (int64_t)(stat.utime + stat.stime) * procfs->ns_per_tick;
    take_stat(procfs, &process, &stat);
    read_statm(procfs, &process);
    guess_alone(procfs, &process);
    process.refreshed_ns = process.ran_ns = wm_clock_monotonic_ns();
    *ret_process = process;
    return true;
}

static void give_back(struct wm_procfs *procfs, int *fd)
{
    if (*fd < 0)
        return;
    close(*fd);
    *fd = -1;
    procfs->fds_left++;
}

void wm_process_release(struct wm_procfs *procfs, struct wm_process *process)
{
    give_back(procfs, &process->stat_fd);
    give_back(procfs, &process->statm_fd);
}

bool wm_process_refresh(const struct wm_procfs *procfs, struct wm_process *process,
                        int64_t now_ns)
{
    int64_t cpu_ns = 0;
    bool clocked = procfs->own && read_cpu_clock(process->pid, &cpu_ns);

    if (clocked && cpu_ns == process->cpu_ns && now_ns - process->refreshed_ns < REFRESH_NS)
        return true;

    if (procfs->is_other) {
        if (clocked)
            process->cpu_ns = cpu_ns;
        return clocked;
    }

    struct wm_pid_stat stat;
    errno = 0;
    if (!read_stat(procfs, process, &stat))
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM; /* our own trouble */
    if (stat.start_time != process->start_time)
        return false;
    int64_t before_ns = process->cpu_ns;
    uint64_t image = process->image;
    take_stat(procfs, process, &stat);
    if (clocked)
        process->cpu_ns = cpu_ns;
    if (process->cpu_ns != before_ns)
        process->ran_ns = now_ns;
    read_statm(procfs, process);
    if (process->image != image) {
        guess_alone(procfs, process);
        process->peak_base_bytes = 0;
    }
    process->refreshed_ns = now_ns;
    return true;
}

static int64_t kernels_peak(const struct wm_procfs *procfs,
                            const struct wm_process *process)
{
    char text[STATUS_SIZE];
    uint64_t bytes;

    if (read_file(procfs, process, -1, "status", text, sizeof(text)) <= 0 ||
        wm_parse_status_kb(text, "VmHWM", &bytes) != WM_OK || bytes > INT64_MAX)
        return 0;
    return (int64_t)bytes;
}

static uint64_t reaped_faults(const struct wm_process *process)
{
    return process->reaped_faults - process->reaped_base_faults;
}

int64_t wm_process_reaped_ns(const struct wm_process *process)
{
    int64_t reaped_ns = process->reaped_ns - process->reaped_base_ns;

    return process->reaped_base_ns +
           (reaped_ns > process->vanished_ns ? reaped_ns : process->vanished_ns);
}

void wm_process_inherit(struct wm_process *process, const struct wm_process *child)
{
    uint64_t faults = reaped_faults(child);

    process->vanished_ns += child->cpu_ns + wm_process_reaped_ns(child);
    process->vanished_faults +=
        child->faults + (faults > child->vanished_faults ? faults : child->vanished_faults);
}

bool wm_process_lost_children(const struct wm_process *process)
{
    return process->vanished_faults > reaped_faults(process);
}

void wm_process_forget_reaped(const struct wm_procfs *procfs, struct wm_process *process)
{
    bool is_exact = process->reaped_faults == 0 || process->pid == procfs->self;

    process->reaped_base_ns = process->reaped_ns + (is_exact ? 0 : 2 * procfs->ns_per_tick);
    process->reaped_base_faults = process->reaped_faults;
    process->vanished_ns = 0;
    process->vanished_faults = 0;
}

void wm_process_set_base(const struct wm_procfs *procfs, struct wm_process *process,
                         bool executes)
{
    wm_process_forget_reaped(procfs, process);
    process->cpu_base_ns = process->cpu_ns;
    process->peak_base_bytes = executes ? 0 : kernels_peak(procfs, process);
    process->peak_ns = process->ran_ns;
}

void wm_process_read_peak(const struct wm_procfs *procfs, struct wm_process *process,
                          int64_t now_ns)
{
    int64_t peak_bytes = kernels_peak(procfs, process);

    process->peak_ns = now_ns;
    if (peak_bytes > process->peak_base_bytes && peak_bytes > process->max_rss_bytes)
        process->max_rss_bytes = peak_bytes;
}

int64_t wm_process_cpu_ns(const struct wm_procfs *procfs, const struct wm_process *process)
{
    int64_t cpu_ns = 0;

    /* The clock of another process that has the pid by now says less. */
    if (procfs->own && read_cpu_clock(process->pid, &cpu_ns) && cpu_ns > process->cpu_ns)
        return cpu_ns;
    return process->cpu_ns;
}

int64_t wm_process_detail_cost_ns(const struct wm_process *process)
{
    /* What a small process cost says nothing of a large one. */
    if (process->detail_rss_bytes < LEARNING_BYTES || process->detail_cost_ns <= 0)
        return DETAIL_FIXED_NS + process->rss_bytes / DETAIL_BYTES_PER_NS;
    return (int64_t)((double)process->detail_cost_ns * (double)process->rss_bytes /
                     (double)process->detail_rss_bytes);
}

/* A file that is missing says little: kernels before 4.14 have no smaps_rollup. */
static bool is_gone(const struct wm_procfs *procfs, const struct wm_process *process)
{
    struct wm_pid_stat stat;

    return !read_stat(procfs, process, &stat) || stat.start_time != process->start_time ||
           stat.state == 'Z' || stat.state == 'X';
}

/* Adds memory that smaps_rollup has counted and that is gone by now: unmapped files first,
 * then its own. */
static void add_seen(struct wm_process *process, int64_t gone, int64_t file_before)
{
    process->detail_rss_bytes += gone;
    process->detail_file_bytes += clamp(file_before - process->file_bytes, 0, gone);
}

/* What smaps_rollup has not seen of the memory of now, since it takes its time, or since a
 * mapping that is being removed has left the list: what was added, and else files. */
static void leave_out_unseen(struct wm_process *process, int64_t seen_bytes,
                             int64_t anonymous_before, int64_t file_before)
{
    int64_t unseen = process->rss_bytes - seen_bytes;
    int64_t added = anonymous_bytes(process) - anonymous_before;

    if (unseen <= -UNSEEN_MIN_BYTES)
        add_seen(process, -unseen, file_before);
    if (unseen < UNSEEN_MIN_BYTES)
        return;
    added = clamp(added, 0, unseen);
    process->detail_rss_bytes -= unseen;
    process->detail_file_bytes -= clamp(unseen - added, 0, process->file_bytes);
}

bool wm_process_read_detail(struct wm_procfs *procfs, struct wm_process *process)
{
    char path[PATH_SIZE], text[ROLLUP_SIZE];
    struct wm_smaps_rollup rollup;
    int64_t anonymous_before = anonymous_bytes(process), file_before = process->file_bytes;

    /* Opened each time: the kernel checks the right to read it at open, and an
     * exec in between changes whose memory it is. */
    int64_t begin_ns = wm_clock_thread_cpu_ns();
    snprintf(path, sizeof(path), "%d/smaps_rollup", (int)process->pid);
    ssize_t length = wm_file_read_at(procfs->dir, path, text, sizeof(text));
    if (length == -ESRCH || (length < 0 && is_gone(procfs, process)))
        return false;

    /* No text at all is what a process without memory gives: a zombie. */
    if (length == 0)
        return true;
    if (length < 0 || wm_parse_smaps_rollup(text, &rollup) != WM_OK) {
        process->detail = WM_DETAIL_DENIED;
        return true;
    }

    read_statm(procfs, process);
    wm_process_count_files(procfs, process);
    process->detail = WM_DETAIL_KNOWN;
    process->uss_bytes = (int64_t)(rollup.private_clean + rollup.private_dirty);
    process->pss_bytes = (int64_t)rollup.pss;
    process->sure_bytes = process->uss_bytes;
    process->detail_faults = process->faults;
    process->detail_rss_bytes = process->rss_bytes;
    process->detail_file_bytes = process->file_bytes;
    process->detail_mapped_bytes = procfs->mapped_bytes;
    process->detail_given_up_bytes = procfs->given_up_bytes;
    leave_out_unseen(process, (int64_t)rollup.rss, anonymous_before, file_before);
    process->detail_ns = wm_clock_monotonic_ns();
    process->detail_cost_ns = wm_clock_thread_cpu_ns() - begin_ns;
    return true;
}

static int64_t at_least_0(int64_t value)
{
    return value > 0 ? value : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Its part of what it has in common with others, as smaps_rollup last said. */
static int64_t known_share(const struct wm_process *process)
{
    return at_least_0(process->pss_bytes - process->uss_bytes);
}

void wm_process_count_files(struct wm_procfs *procfs, struct wm_process *process)
{
    int64_t mapped = process->file_bytes - process->counted_bytes;

    procfs->file_bytes += mapped;
    procfs->mapped_bytes += at_least_0(mapped);
    if (process->detail == WM_DETAIL_KNOWN) /* else its share is counted with another one */
        procfs->given_up_bytes += least(at_least_0(-mapped), known_share(process));
    process->counted_bytes = process->file_bytes;
}

void wm_process_read_size(struct wm_procfs *procfs, struct wm_process *process)
{
    read_statm(procfs, process);
    wm_process_count_files(procfs, process);
}

/* What has become of a process since smaps_rollup was read. */
struct change {
    int64_t grown;  /* its anonymous memory */
    int64_t mapped; /* its pages of files and of shared memory */
    int64_t others_mapped;
    int64_t faulted;
};

static struct change change_of(const struct wm_procfs *procfs,
                               const struct wm_process *process)
{
    int64_t then = at_least_0(process->detail_rss_bytes - process->detail_file_bytes);
    int64_t mapped = process->file_bytes - process->detail_file_bytes;
    int64_t all_mapped = procfs->mapped_bytes - process->detail_mapped_bytes;

    return (struct change) {
        .grown = anonymous_bytes(process) - then,
        .mapped = mapped,
        .others_mapped = at_least_0(all_mapped - at_least_0(mapped)),
        .faulted = (int64_t)(process->faults - process->detail_faults) * procfs->page_bytes,
    };
}

/* One more process that maps a shared page lowers the share of each from 1/2 to 1/3, or
 * from less by less: by a sixth of the page at most. */
static int64_t share_of(const struct wm_process *process, const struct change *change)
{
    return at_least_0(known_share(process) - change->others_mapped / 6);
}

struct wm_process_memory wm_process_memory(const struct wm_procfs *procfs,
                                           const struct wm_process *process)
{
    const struct change change = change_of(procfs, process);
    int64_t then = at_least_0(process->detail_rss_bytes - process->detail_file_bytes);
    int64_t others = procfs->file_bytes - process->counted_bytes;

    /* Of its own pages of files, those that are unmapped, and those that others may have
     * mapped, too. Between how many it had at least and at most the anonymous ones decide,
     * which may be shared since a fork. */
    int64_t gone = at_least_0(-change.mapped) + change.others_mapped;
    int64_t lost = least(gone, at_least_0(process->uss_bytes - then));
    int64_t lost_at_most = least(gone, process->detail_file_bytes);
    int64_t gained = at_least_0(change.mapped - others);
    int64_t uss =
        clamp(process->uss_bytes + change.grown - lost + gained, 0, process->rss_bytes);
    int64_t share = least(share_of(process, &change), process->rss_bytes - uss);
    bool is_sure =
        process->detail == WM_DETAIL_KNOWN && change.mapped >= 0 && change.grown >= 0;

    /* What went may have been shared memory, and private memory have taken its place. Of
     * files it is known only after a read who else has them. */
    int64_t copied = change.faulted + at_least_0(-change.grown) + lost +
                     at_least_0(at_least_0(change.mapped) - gained) + known_share(process) -
                     share_of(process, &change);
    if (process->detail != WM_DETAIL_KNOWN)
        copied += process->file_bytes;
    return (struct wm_process_memory) {
        .uss = uss,
        .pss = uss + share,
        .least_uss = clamp(process->sure_bytes + change.grown - lost_at_most, 0, uss),
        .least_shares = is_sure ? share : 0,
        .copied = clamp(copied, 0, process->rss_bytes - uss),
        .given_up = procfs->given_up_bytes - process->detail_given_up_bytes,
    };
}

/* Adds one thread's children to pids[], of which *count are known. */
static bool add_children(const struct wm_procfs *procfs, const char *path, pid_t *pids,
                         size_t room, size_t *count)
{
    char text[16384];
    size_t kept = 0; /* bytes of a number that the end of the buffer cut in two */
    ssize_t got;

    int fd = wm_file_open_at(procfs->dir, path);
    if (fd < 0)
        return false;

    while ((got = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0 || kept > 0) {
        size_t length = kept + (size_t)got;
        size_t whole = length;
        while (got > 0 && whole > 0 && text[whole - 1] != ' ')
            whole--;
        kept = length - whole;

        char rest[32];
        if (got < 0 || kept >= sizeof(rest))
            break;
        memcpy(rest, text + whole, kept);
        text[whole] = '\0';

        size_t found = 0;
        size_t left = *count < room ? room - *count : 0;
        if (wm_parse_pid_list(text, pids + (room - left), left, &found) != WM_OK)
            break;
        *count += found;
        memcpy(text, rest, kept);
    }
    close(fd);
    return true;
}

/* The linux_dirent64 of getdents64(2). */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

size_t wm_procfs_numbers(int dir, const char *path, pid_t *ids, size_t room)
{
    _Alignas(struct directory_entry) char buffer[8192];
    size_t count = 0;
    long got;

    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;

    /* Not opendir(): it allocates 32 KiB, each time. */
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0) {
        for (long at = 0; at < got;) {
            const struct directory_entry *entry = (const void *)(buffer + at);
            const char *end;
            uint64_t id;
            if (wm_text_u64(entry->name, &end, &id) && *end == '\0' && id > 0 &&
                id <= INT32_MAX) {
                if (count < room)
                    ids[count] = (pid_t)id;
                count++;
            }
            at += entry->length;
        }
    }
    close(fd);
    return count;
}

/* Each thread has a list of its own: that of the children it forked. */
static void add_thread_children(const struct wm_procfs *procfs, pid_t pid, pid_t *pids,
                                size_t room, size_t *count)
{
    pid_t threads[8192];
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%d/task", (int)pid);
    size_t found = wm_procfs_numbers(procfs->dir, path, threads, ARRAY_LEN(threads));
    for (size_t i = 0; i < found && i < ARRAY_LEN(threads); i++) {
        if (threads[i] == pid)
            continue;
        snprintf(path, sizeof(path), "%d/task/%d/children", (int)pid, (int)threads[i]);
        add_children(procfs, path, pids, room, count);
    }
}

size_t wm_process_children(const struct wm_procfs *procfs, struct wm_process *process,
                           pid_t *pids, size_t room)
{
    char path[PATH_SIZE];
    size_t count = 0;
    int64_t begin_ns = wm_clock_thread_cpu_ns();

    snprintf(path, sizeof(path), "%d/task/%d/children", (int)process->pid,
             (int)process->pid);
    if (add_children(procfs, path, pids, room, &count) && process->threads > 1)
        add_thread_children(procfs, process->pid, pids, room, &count);

    process->searched_ns = wm_clock_monotonic_ns();
    process->searched_cpu_ns = process->cpu_ns;
    process->unforked_faults = process->searched_faults;
    process->searched_faults = process->faults;
    process->search_cost_ns = wm_clock_thread_cpu_ns() - begin_ns;
    return count;
}

bool wm_process_identify(const struct wm_procfs *procfs, pid_t pid, uid_t *ret_user,
                         char *ret_command, size_t size)
{
    char path[PATH_SIZE];
    struct stat folder;

    snprintf(path, sizeof(path), "%d", (int)pid);
    if (fstatat(procfs->dir, path, &folder, 0) < 0)
        return false;
    snprintf(path, sizeof(path), "%d/cmdline", (int)pid);
    ssize_t length = wm_file_read_at(procfs->dir, path, ret_command, size);
    if (length <= 0)
        ret_command[0] = '\0';
    for (ssize_t i = 0; i + 1 < length; i++) {
        if (ret_command[i] >= '\0' && ret_command[i] < ' ') /* a line's end, too */
            ret_command[i] = ' ';
    }
    *ret_user = folder.st_uid;
    return true;
}
