/* SPDX-License-Identifier: Apache-2.0 */
/* track_account.c - the CPU time of a tree: what its processes' own clocks say, and what a
 * counter of the whole has seen beyond that. */
#include "track/account/track_account.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_thread.h"
#include "source/source_kernel_text.h"

/* Reading a counter of a task that runs on another core interrupts it there.
 * More often than this the clocks of the processes in sight tell what has been
 * used since the last exact reading; they interrupt nobody. */
#define EXACT_PERIOD_NS (9 * WM_NS_PER_MS)

/* How long a start waits for its counter at most: where it takes longer it takes a
 * hundred times as long, and the counter comes later. */
#define PATIENCE_NS (200 * 1000)

/* Most threads a running tree may have to get a counter each. */
enum { COUNTER_MAX = 1024 };

/* How far the task clock may be ahead of a process's own clock if the lead is not measured,
 * in seconds and as a part of it. */
#define CLOCK_ERROR 0.01
#define CLOCK_DRIFT 0.05

/* The task clock runs while the kernel goes from one process to the next, some 4 us; a
 * process's own clock does not. Seconds. */
#define SWITCH_ERROR 8e-6

/* A hypervisor takes a core away for a time slice of its own. Seconds. */
#define STOLEN_AT_ONCE 0.02

/* The counter of the root is read if others may have used more than this beyond what was
 * seen, in seconds and as a part of the root's time. */
#define TRIFLE 0.001
#define TRIFLE_SHARE 0.005

/* The report mentions an uncertainty of CPU time from here on, in seconds and as a part. */
#define NARROW 0.002
#define NARROW_SHARE 0.02

/* perf's clock lacks the start and the end of a process: 0.05 to 0.08 ms if nothing else
 * runs, up to 0.9 ms on a busy virtual machine, measured against the processes' own clocks
 * and a cgroup. */
#define UNCLOCKED 0.001

/* The machine's times are read again when the last ones are older than a tenth of the run.
 */
enum { HOST_TIME_AGES = 10 };

static const char by_perf[] = "perf task clock, inherited";
static const char by_cgroup[] = "cgroup cpu.stat";
static const char by_sampling[] = "sampling";
static const char by_waiting[] = "wait4 and sampling";

/* What a probe answers while nothing is known; else 0, or the negative errno value with
 * which perf refused. */
#define UNKNOWN 1

/*
 * On a machine where no program counts anything just then, the kernel switches its
 * counting on with the first counter of all, and waits for every CPU before it returns:
 * some 10 to 25 ms, for which neither a command nor a program that measures itself should
 * have to wait. So the first one is opened aside, by a probe, and closed again; for a
 * second from the last one on others come at once.
 */
#define STAYS_ON_NS (WM_NS_PER_S / 2)

struct probe {
    atomic_int users; /* the owner and the thread; the last one frees it */
    atomic_int answer;
    int wake_fd; /* a descriptor of its own, or -1 */
};

enum reach { WITH_CHILDREN, WITH_THREADS };

/* The task clock of process or thread `id` (0: the calling one), with all that it will
 * ever fork, or its threads alone (Linux 5.13, also its headers). A descriptor, or a
 * negative errno value.
 *
 * User space alone is asked for, because that needs no privilege; the clock is
 * a software event and counts kernel time all the same. */
static int open_counter(pid_t id, enum reach reach)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
#ifdef PERF_ATTR_SIZE_VER7
    attr.inherit_thread = reach == WITH_THREADS;
#else
    if (reach == WITH_THREADS)
        return -EINVAL;
#endif
    long fd = syscall(SYS_perf_event_open, &attr, id, -1, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

/* Waits for nothing. Accepts NULL. */
static void probe_free(struct probe *probe)
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
    struct probe *probe = context;

    int fd = open_counter(0, WITH_CHILDREN);
    if (fd >= 0)
        close(fd);
    atomic_store(&probe->answer, fd < 0 ? fd : 0);
    while (write(probe->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    probe_free(probe);
    return NULL;
}

/* Begins, in a thread that ends by itself. */
static int probe_new(int wake_fd, struct probe **ret_probe, struct wm_error *err)
{
    pthread_t thread;

    struct probe *probe = calloc(1, sizeof(*probe));
    if (!probe)
        return wm_fail_memory(err, "CPU accounting");
    atomic_init(&probe->users, 2);
    atomic_init(&probe->answer, UNKNOWN);
    probe->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
    if (wm_thread_start(&thread, look, probe, "", NULL) == WM_OK)
        pthread_detach(thread);
    else
        look(probe);
    *ret_probe = probe;
    return WM_OK;
}

/* The answer as of now, or after waiting for it for so long. Without a probe counters come
 * at once. */
static int probe_answer(const struct probe *probe, int64_t patience_ns)
{
    if (!probe)
        return 0;
    struct pollfd wake = { .fd = probe->wake_fd, .events = POLLIN };
    const struct timespec patience = { .tv_nsec = patience_ns };

    if (atomic_load(&probe->answer) == UNKNOWN && patience_ns > 0)
        ppoll(&wake, 1, &patience, NULL);
    return atomic_load(&probe->answer);
}

/* Of all cores: the time in which they ran something, and what of it no process has used,
 * though a task clock runs on: stolen by the hypervisor, and taken by interrupts. */
struct host_time {
    double busy, lost;
    uint64_t forks;
    bool has_stolen; /* at all since boot */
};

/* perf descriptors, and their sum when it all began. */
struct counters {
    int fds[COUNTER_MAX];
    size_t count;
    int64_t base_ns;
};

struct wm_account {
    struct probe *probe; /* NULL: counters come at once, or are waited for */
    bool is_late;        /* it has not answered; until then we sample */
    int64_t begun_ns;
    struct counters whole; /* the tree's time */
    struct counters roots; /* the root's; none on old kernels */
    struct wm_cgroup *cgroup;
    int64_t main_base_ns;   /* CPU clock of the root at the start, */
    int64_t others_base_ns; /* and what all others in sight, and before them, had used */
    pid_t root;
    bool is_command; /* it began with us, and those it leaves behind come to the launcher */
    struct host_time host_base, host;
    int64_t host_at_ns;
    int64_t exact_at_ns; /* when the counter was last asked, */
    double exact;        /* what it said of others than the root, */
    int64_t live_ns;     /* what those in sight had used then, */
    uint64_t seen;       /* and how many there had been */
    struct wm_others known;
    double main, others; /* what was reported last */
    bool finished;
    char method[160], note[128];
};

int wm_account_check(const char **ret_method)
{
    int probe = open_counter(0, WITH_CHILDREN);
    if (probe >= 0) {
        close(probe);
        *ret_method = by_perf;
        return 0;
    }

    struct wm_cgroup *cgroup = wm_cgroup_new();
    *ret_method =
        cgroup ? by_cgroup : "wait4 and sampling; children without a wait may be missing";
    wm_cgroup_free(cgroup);
    return -probe;
}

int wm_account_new(struct wm_account **ret_account, struct wm_error *err)
{
    struct wm_account *account = calloc(1, sizeof(*account));

    if (!account)
        return wm_fail_memory(err, "CPU accounting");
    *ret_account = account;
    return WM_OK;
}

/* Zero if unknown. */
static struct host_time read_host_time(void)
{
    struct wm_proc_stat stat = { 0 };
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char *text = NULL;
    size_t length;

    if (wm_file_slurp("/proc/stat", 16 << 20, &text, &length, NULL) == WM_OK)
        wm_parse_proc_stat(text, NULL, 0, &stat);
    free(text);
    return (struct host_time) { (double)stat.busy / ticks,
                                (double)(stat.stolen + stat.interrupts) / ticks, stat.forks,
                                stat.stolen > 0 };
}

bool wm_account_counts(const struct wm_account *account)
{
    return account->whole.count > 0;
}

int wm_account_expect(struct wm_account *account, int wake_fd, int64_t counted_ns,
                      struct wm_error *err)
{
    bool is_on = counted_ns > 0 && wm_clock_monotonic_ns() - counted_ns < STAYS_ON_NS;

    return is_on ? WM_OK : probe_new(wake_fd, &account->probe, err);
}

void wm_account_released(struct wm_account *account)
{
    account->host_base = read_host_time();
}

static void take_base(struct wm_account *account, const struct wm_tree *tree)
{
    account->others_base_ns = wm_tree_others_cpu_ns(tree);
    account->main_base_ns = wm_tree_main_cpu_ns(tree);
}

/* The command waits at its gate and can be moved. */
static bool enter_cgroup(struct wm_account *account, pid_t pid)
{
    account->cgroup = wm_cgroup_new();
    if (account->cgroup && wm_cgroup_enter(account->cgroup, pid))
        return true;
    wm_cgroup_free(account->cgroup);
    account->cgroup = NULL;
    return false;
}

/* 0, or a negative errno value. */
static int add_counter(struct counters *counters, pid_t id, enum reach reach)
{
    int counter = open_counter(id, reach);

    if (counter < 0)
        return counter;
    counters->fds[counters->count++] = counter;
    return 0;
}

static void set_method(struct wm_account *account, const char *method)
{
    snprintf(account->method, sizeof(account->method), "%s", method);
}

void wm_account_start_command(struct wm_account *account, pid_t pid,
                              const struct wm_tree *tree)
{
    account->root = pid;
    account->is_command = true;
    take_base(account, tree);
    account->begun_ns = wm_clock_monotonic_ns();

    int answer = probe_answer(account->probe, PATIENCE_NS);
    if (answer == 0 && add_counter(&account->whole, pid, WITH_CHILDREN) == 0) {
        add_counter(&account->roots, pid, WITH_THREADS);
        set_method(account, by_perf);
    } else if (answer < 0 && enter_cgroup(account, pid) &&
               wm_cgroup_cpu_ns(account->cgroup, &account->whole.base_ns)) {
        set_method(account, by_cgroup);
    } else {
        account->is_late = answer == UNKNOWN;
        set_method(account, by_waiting);
    }
}

static void close_counters(struct counters *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        close(counters->fds[i]);
    counters->count = 0;
}

/* How many descriptors we may take from the host program. */
static size_t counter_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > COUNTER_MAX)
        return COUNTER_MAX;
    return (size_t)limit.rlim_cur / 2;
}

/* A counter for each thread of a process. One that is made meanwhile inherits
 * that of its maker, but for a moment between the list and the counter. */
static int open_counters(struct counters *counters, pid_t pid, enum reach reach,
                         size_t room)
{
    pid_t threads[COUNTER_MAX];
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    size_t found = wm_procfs_numbers(AT_FDCWD, path, threads, room);
    if (counters->count + found > room)
        return -EMFILE;
    for (size_t i = 0; i < found; i++) {
        int status = add_counter(counters, threads[i], reach);
        if (status < 0 && status != -ESRCH)
            return status;
    }
    return 0;
}

/* Without the root's own counters the others' share is less certain. */
static int open_all_counters(struct wm_account *account, const struct wm_tree *tree)
{
    size_t count, room = counter_limit();
    const struct wm_process *processes = wm_tree_processes(tree, &count);
    int status = 0;

    for (size_t i = 0; i < count && status == 0; i++)
        status = open_counters(&account->whole, processes[i].pid, WITH_CHILDREN, room);
    if (status == 0 && account->whole.count == 0)
        status = -ESRCH;
    if (status < 0)
        close_counters(&account->whole);
    else if (count > 0 && open_counters(&account->roots, processes[0].pid, WITH_THREADS,
                                        room - account->whole.count) < 0)
        close_counters(&account->roots);
    return status;
}

void wm_account_start_tree(struct wm_account *account, const struct wm_tree *tree, bool own)
{
    take_base(account, tree);
    account->begun_ns = wm_clock_monotonic_ns();
    account->host_base = read_host_time();
    account->is_late = probe_answer(account->probe, PATIENCE_NS) == UNKNOWN;
    if (account->is_late) {
        set_method(account, by_sampling);
        return;
    }
    int status = own ? open_all_counters(account, tree) : -ENOTSUP;
    set_method(account, by_perf);
    if (status < 0)
        snprintf(account->method, sizeof(account->method), "%s (no perf counter: %s)",
                 by_sampling, wm_errno_text(-status));
}

static bool read_counters(const struct counters *counters, int64_t *ret_ns)
{
    int64_t total_ns = 0;

    for (size_t i = 0; i < counters->count; i++) {
        uint64_t count_ns;
        if (read(counters->fds[i], &count_ns, sizeof(count_ns)) != sizeof(count_ns))
            return false;
        total_ns += (int64_t)count_ns;
    }
    *ret_ns = total_ns - counters->base_ns;
    return counters->count > 0;
}

static bool read_whole(const struct wm_account *account, int64_t *ret_ns)
{
    if (read_counters(&account->whole, ret_ns))
        return true;
    if (!account->cgroup || !wm_cgroup_cpu_ns(account->cgroup, ret_ns))
        return false;
    *ret_ns -= account->whole.base_ns;
    return true;
}

/* Makes the counters count from now on, with what was used before. The root's is read
 * first: what it uses between the two is not others'. */
static void base_counters(struct wm_account *account, double main, double others)
{
    int64_t now_ns;

    if (read_counters(&account->roots, &now_ns))
        account->roots.base_ns += now_ns - (int64_t)(main * 1e9);
    if (read_whole(account, &now_ns))
        account->whole.base_ns += now_ns - (int64_t)((main + others) * 1e9);
    account->exact_at_ns = 0;
}

static double main_seconds(const struct wm_account *account, const struct wm_tree *tree)
{
    return (double)(wm_tree_main_cpu_ns(tree) - account->main_base_ns) / 1e9;
}

static double seen_seconds(const struct wm_account *account, const struct wm_tree *tree)
{
    return (double)(wm_tree_others_cpu_ns(tree) - account->others_base_ns) / 1e9;
}

void wm_account_catch_up(struct wm_account *account, struct wm_tree *tree)
{
    if (!account->is_late)
        return;
    int answer = probe_answer(account->probe, 0);
    if (answer == UNKNOWN)
        return;
    account->is_late = false;
    if (answer < 0)
        return;
    wm_tree_refresh(tree);
    bool is_counted = open_all_counters(account, tree) == 0;
    wm_tree_refresh(tree);
    if (!is_counted)
        return;
    base_counters(account, main_seconds(account, tree),
                  fmax(seen_seconds(account, tree), account->others));
    snprintf(account->method, sizeof(account->method),
             "%s; sampled for the first %.0f ms, which the kernel took to begin counting",
             by_perf, (double)(wm_clock_monotonic_ns() - account->begun_ns) / 1e6);
}

void wm_account_want_exact(struct wm_account *account)
{
    account->exact_at_ns = 0;
}

static double clock_error(double seconds)
{
    return CLOCK_ERROR + CLOCK_DRIFT * seconds;
}

/* How much of the counter's time no process may have used: the same part as of all busy
 * time, and more if a few slices of the hypervisor happened to fall upon this tree. */
static double most_lost(const struct wm_others *known)
{
    double lost = known->lost * known->exposed;
    double likely = lost + known->error;

    if (known->is_stolen)
        likely += 2 * sqrt(lost * STOLEN_AT_ONCE);
    return fmin(likely, known->error + known->lost_by_all);
}

double wm_others_by_now(const struct wm_others *known)
{
    return isnan(known->counted) ? known->seen
                                 : fmax(known->seen, known->counted - most_lost(known));
}

double wm_others_in_all(const struct wm_others *known, double main, double *ret_more)
{
    double doubt = most_lost(known), lost = fmin(known->lost * known->exposed, doubt);
    double open = known->counted - known->seen;
    double narrow = NARROW + NARROW_SHARE * (main + fmax(known->seen, known->counted));
    double best = known->seen, more = 0;

    if (isnan(known->counted) || open <= doubt) {
        if (known->has_unwaited)
            more = isnan(known->counted) ? HUGE_VAL : fmax(open, 0) + known->unclocked;
    } else if (doubt - lost <= narrow) {
        best = fmax(known->seen, known->counted - lost);
        more = open - lost > narrow ? known->unclocked : 0;
    } else {
        more = fmin(doubt, open);
        best = known->counted - more;
        more += known->unclocked;
    }
    *ret_more = more > narrow ? more : 0;
    return best;
}

/* Adds what the machine's times say about the counter's. They are read rarely: on a machine
 * with many cores that costs more than the rest of a tick. */
static void take_host_time(struct wm_account *account, double main, double roots_lost,
                           bool is_last)
{
    int64_t now_ns = wm_clock_monotonic_ns();
    struct wm_others *known = &account->known;
    const double step = 1.0 / (double)sysconf(_SC_CLK_TCK);

    if (is_last ||
        now_ns - account->host_at_ns > (now_ns - account->begun_ns) / HOST_TIME_AGES) {
        account->host = read_host_time();
        account->host_at_ns = now_ns;
    }
    double busy = account->host.busy - account->host_base.busy;
    double lost = account->host.lost - account->host_base.lost;

    known->is_stolen = account->host.has_stolen;
    if (known->is_stolen)
        lost += step;
    known->lost = busy > lost ? lost / busy : lost > 0;
    known->lost_by_all = is_last ? fmax(lost - roots_lost, step) : HUGE_VAL;

    /* The kernel looks at what runs at each step of its timer, so that this is no more
     * exact than that. */
    double used = (busy - lost) * (1 + CLOCK_DRIFT) + 5 * step - main;
    if (is_last && busy > 0 && used < known->counted)
        known->counted = fmax(used, known->seen);
}

/* Asks the counter what others than the root have used. The root's clock is read right
 * after it, so that what the root uses in between is not counted as others'. A counter of
 * the root alone is subtracted if the kernel has one; else only the root's clock is known,
 * which is behind the counter if time was stolen. */
static void count(struct wm_account *account, const struct wm_tree *tree)
{
    bool must = account->exact_at_ns == 0;
    struct wm_others *known = &account->known;
    int64_t whole_ns, roots_ns;

    account->exact_at_ns = wm_clock_monotonic_ns();
    if (!read_whole(account, &whole_ns)) {
        known->counted = NAN;
        return;
    }
    double main = main_seconds(account, tree), roots_lost = 0;
    known->counted = (double)whole_ns / 1e9 - main;
    known->exposed = known->error = known->lost = 0;
    if (account->whole.count == 0)
        return;
    known->exposed = (double)whole_ns / 1e9;
    known->error = clock_error(main);
    double open = known->counted - known->seen;
    if (open <= 0 || (!must && open <= TRIFLE + TRIFLE_SHARE * main))
        return;
    if (read_counters(&account->roots, &roots_ns)) {
        roots_lost = fmax((double)roots_ns / 1e9 - main, 0);
        known->counted = fmin(known->counted, (double)(whole_ns - roots_ns) / 1e9);
        known->exposed = known->counted;
        known->error = 0;
    }
    if (known->counted > known->seen)
        take_host_time(account, main, roots_lost, must);
}

/* Between two readings of the counter, adds what processes in sight have used since. If
 * they have less than then, one has ended; if there are more, the counter may have had part
 * of the new one: in both cases the counter is asked. */
static void count_or_add(struct wm_account *account, const struct wm_tree *tree)
{
    int64_t live_ns = wm_tree_live_others_cpu_ns(tree);
    struct wm_others *known = &account->known;
    struct wm_tree_census census;

    wm_tree_count(tree, &census);
    known->has_unwaited = census.has_unwaited;
    known->seen = seen_seconds(account, tree);
    if (account->exact_at_ns > 0 &&
        wm_clock_monotonic_ns() - account->exact_at_ns < EXACT_PERIOD_NS &&
        live_ns >= account->live_ns && census.seen == account->seen) {
        known->counted = account->exact + (double)(live_ns - account->live_ns) / 1e9;
        return;
    }
    count(account, tree);
    account->exact = known->counted;
    account->live_ns = live_ns;
    account->seen = census.seen;
}

void wm_account_read(struct wm_account *account, const struct wm_tree *tree,
                     double *ret_total, double *ret_main)
{
    if (!account->finished) {
        count_or_add(account, tree);
        account->main = fmax(account->main, main_seconds(account, tree));
        account->others = fmax(account->others, wm_others_by_now(&account->known));
    }
    *ret_total = account->main + account->others;
    *ret_main = account->main;
}

void wm_account_rebase(struct wm_account *account, const struct wm_tree *tree)
{
    take_base(account, tree);
    base_counters(account, 0, 0);
    account->main = account->others = 0;
}

/* What those have used that outlive the root. */
static int64_t survivors_ns(const struct wm_account *account, const struct wm_tree *tree)
{
    size_t count;
    const struct wm_process *processes = wm_tree_processes(tree, &count);
    int64_t total_ns = 0;

    for (size_t i = 0; i < count; i++) {
        if (processes[i].pid != account->root)
            total_ns += processes[i].cpu_ns + wm_process_reaped_ns(&processes[i]);
    }
    return total_ns;
}

/* The kernel takes the counter away from whoever executes a setuid program, sudo say, and
 * may not look into it; and a process can leave the cgroup. Those and their descendants
 * then are in no counter, but in sight, or were waited for. */
static bool is_cut(const struct wm_account *account)
{
    const struct wm_others *known = &account->known;

    return account->is_command &&
           known->seen - known->counted > clock_error(account->main + known->seen);
}

static void set_final_method(struct wm_account *account)
{
    bool perf = account->whole.count > 0;

    if (is_cut(account))
        set_method(account,
                   perf ? "wait4 and sampling; the perf task clock leaves some out, "
                          "as setuid and very short programs"
                        : "wait4 and sampling; the command has left its cgroup");
    else if (perf && account->others <= account->known.seen)
        set_method(account,
                   "the processes' clocks and wait4, checked by the inherited perf "
                   "task clock");
}

static void set_note(struct wm_account *account, double more)
{
    if (isinf(more))
        snprintf(account->note, sizeof(account->note),
                 "child processes that no parent waited for may be missing, or part of "
                 "their time");
    else if (more > 0)
        snprintf(
            account->note, sizeof(account->note),
            "up to %.3g s more may be of child processes that no parent waited for, or "
            "stolen time",
            more);
}

/* Takes in what the launcher has reaped, less what the fork itself took before the command
 * began. What the root used after its last reading is not others'. */
static void take_reaped(struct wm_account *account, const struct wm_tree *tree,
                        double seconds)
{
    struct wm_others *known = &account->known;
    int64_t kept_ns = survivors_ns(account, tree) - account->main_base_ns;
    double others = seconds + (double)kept_ns / 1e9 - account->main;

    if (others > known->seen && others - known->seen < WM_ACCOUNT_NOTICEABLE)
        account->main += others - known->seen;
    else
        known->seen = fmax(known->seen, others);
}

/* Whether processes may be missing: none can be seen or counted, or children have ended
 * whose orphans no launcher adopts. */
static bool may_lack_some(const struct wm_account *account, const struct wm_tree *tree)
{
    struct wm_tree_census census;

    wm_tree_count(tree, &census);
    return (wm_tree_is_blind(tree) && isnan(account->known.counted)) ||
           (!account->is_command && census.has_reaped);
}

/* What perf's clock may lack of processes that nobody waited for. How many of the machine's
 * new processes these were is unknown. */
static double unclocked_seconds(const struct wm_account *account)
{
    double forks = (double)read_host_time().forks - (double)account->host_base.forks;

    return UNCLOCKED * fmax(forks, 0);
}

void wm_account_finish(struct wm_account *account, const struct wm_tree *tree,
                       double reaped_seconds, double switches)
{
    struct wm_others known;
    double more;

    if (account->finished)
        return;
    if (!isnan(reaped_seconds))
        take_reaped(account, tree, reaped_seconds);
    known = account->known;
    if (is_cut(account))
        known.counted = NAN;
    known.has_unwaited |= may_lack_some(account, tree);
    if (!known.has_unwaited)
        known.error += SWITCH_ERROR * switches;
    /* A command of a single process does not wait for it. */
    if (account->whole.count > 0 && (known.has_unwaited || known.counted > known.seen))
        known.unclocked = unclocked_seconds(account);
    account->others = wm_others_in_all(&known, account->main, &more);
    set_final_method(account);
    set_note(account, more);
    account->finished = true;
}

const char *wm_account_note(const struct wm_account *account)
{
    return account->note;
}

const char *wm_account_method(const struct wm_account *account)
{
    return account->method;
}

void wm_account_free(struct wm_account *account)
{
    if (!account)
        return;
    close_counters(&account->whole);
    close_counters(&account->roots);
    probe_free(account->probe);
    wm_cgroup_free(account->cgroup);
    free(account);
}
