/* SPDX-License-Identifier: Apache-2.0 */
/* track_account.c - exact CPU time of a tree, by the best way there is. */
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

/* How far the task clock, which runs on while the hypervisor has taken the core away, may
 * be ahead of a process's own clock, in seconds and as a part of it. */
#define CLOCK_ERROR 0.01
#define CLOCK_DRIFT 0.05

static const char by_perf[] = "perf task clock, inherited";
static const char by_cgroup[] = "cgroup cpu.stat";
static const char by_sampling[] =
    "sampling; short children, and those nobody waited for, are missing";
static const char by_waiting[] =
    "wait4 and sampling; children nobody waited for are missing";

/* What a probe answers while nothing is known; else 0, or the negative errno value with
 * which perf refused. */
#define UNKNOWN 1

/*
 * On a machine where no program counts anything just then, the kernel switches its
 * counting on with the first counter of all, and waits for every CPU before it returns:
 * some 10 to 25 ms, for which neither a command nor a program that measures itself should
 * have to wait. So the first one is opened aside, by a probe, and closed again; for a
 * second from then on others come at once.
 */
struct probe {
    atomic_int users; /* the owner and the thread; the last one frees it */
    atomic_int answer;
    int wake_fd; /* a descriptor of its own, or -1 */
};

/* The task clock of process or thread `id` (0: the calling one), with all that it will
 * ever fork. A descriptor, or a negative errno value.
 *
 * User space alone is asked for, because that needs no privilege; the clock is
 * a software event and counts kernel time all the same. */
static int open_counter(pid_t id)
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

    int fd = open_counter(0);
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

/* The answer as of now, or after waiting for it for so long. */
static int probe_answer(const struct probe *probe, int64_t patience_ns)
{
    struct pollfd wake = { .fd = probe->wake_fd, .events = POLLIN };
    const struct timespec patience = { .tv_nsec = patience_ns };

    if (atomic_load(&probe->answer) == UNKNOWN && patience_ns > 0)
        ppoll(&wake, 1, &patience, NULL);
    return atomic_load(&probe->answer);
}

struct host_time {
    double busy, stolen;
};

struct wm_account {
    struct probe *probe; /* NULL: whoever starts waits for the counters */
    bool is_late;        /* it has not answered; until then we sample */
    int64_t begun_ns;
    int counters[COUNTER_MAX]; /* perf descriptors; their sum is the tree's time */
    size_t counter_count;
    struct wm_cgroup *cgroup;
    int64_t base_ns;        /* of the way that is used, at the start */
    int64_t main_base_ns;   /* CPU clock of the root at the start, */
    uint64_t reaped_faults; /* page faults of the children it had waited for, */
    int64_t others_base_ns; /* and what they and all others in sight had used */
    pid_t root;
    struct host_time host_base;
    int64_t exact_at_ns; /* when the way that is used was last asked, */
    int64_t exact_ns;    /* what it said, */
    int64_t live_ns;     /* what the processes in sight had used then, */
    uint64_t seen;       /* and how many there had been */
    double whole;        /* seconds, by the way that is used */
    bool is_cut;         /* it misses some of what is in sight */
    double total, main;  /* what was reported last */
    bool finished;
    char method[160];
};

int wm_account_check(const char **ret_method)
{
    int probe = open_counter(0);
    if (probe >= 0) {
        close(probe);
        *ret_method = by_perf;
        return 0;
    }

    struct wm_cgroup *cgroup = wm_cgroup_new();
    *ret_method = cgroup ? by_cgroup : by_waiting;
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

/* Busy time of all cores, and what of it the hypervisor has given to others; in
 * seconds, 0 if unknown. */
static struct host_time read_host_time(void)
{
    struct wm_proc_stat stat = { 0 };
    double ticks = (double)sysconf(_SC_CLK_TCK);
    char *text = NULL;
    size_t length;

    if (wm_file_slurp("/proc/stat", 16 << 20, &text, &length, NULL) == WM_OK)
        wm_parse_proc_stat(text, NULL, 0, &stat);
    free(text);
    return (struct host_time) { (double)stat.busy / ticks, (double)stat.stolen / ticks };
}

int wm_account_expect(struct wm_account *account, int wake_fd, struct wm_error *err)
{
    int status = probe_new(wake_fd, &account->probe, err);

    account->host_base = read_host_time();
    return status;
}

static void take_base(struct wm_account *account, const struct wm_tree *tree)
{
    account->others_base_ns = wm_tree_others_cpu_ns(tree);
    account->main_base_ns = wm_tree_main_cpu_ns(tree);
    account->reaped_faults = wm_tree_main_reaped_faults(tree);
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

static void set_method(struct wm_account *account, const char *method)
{
    snprintf(account->method, sizeof(account->method), "%s", method);
}

void wm_account_start_command(struct wm_account *account, pid_t pid,
                              const struct wm_tree *tree)
{
    account->root = pid;
    take_base(account, tree);
    account->begun_ns = wm_clock_monotonic_ns();

    int answer = probe_answer(account->probe, PATIENCE_NS);
    int counter = answer == 0 ? open_counter(pid) : -1;
    if (counter >= 0) {
        account->counters[account->counter_count++] = counter;
        set_method(account, by_perf);
    } else if (answer < 0 && enter_cgroup(account, pid) &&
               wm_cgroup_cpu_ns(account->cgroup, &account->base_ns)) {
        set_method(account, by_cgroup);
    } else {
        account->is_late = answer == UNKNOWN;
        account->base_ns = account->main_base_ns;
        set_method(account, by_waiting);
    }
}

static void close_counters(struct wm_account *account)
{
    for (size_t i = 0; i < account->counter_count; i++)
        close(account->counters[i]);
    account->counter_count = 0;
}

/* How many descriptors we may take from the host program. */
static size_t counter_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > COUNTER_MAX)
        return COUNTER_MAX;
    return (size_t)limit.rlim_cur / 2;
}

/* A counter for each thread that is there. One that is made meanwhile inherits
 * that of its maker, but for a moment between the list and the counter. */
static int open_counters(struct wm_account *account, const struct wm_tree *tree)
{
    size_t count, room = counter_limit();
    const struct wm_process *processes = wm_tree_processes(tree, &count);

    for (size_t i = 0; i < count; i++) {
        pid_t threads[COUNTER_MAX];
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/task", (int)processes[i].pid);
        size_t found = wm_procfs_numbers(AT_FDCWD, path, threads, room);
        if (account->counter_count + found > room)
            return -EMFILE;
        for (size_t k = 0; k < found; k++) {
            int counter = open_counter(threads[k]);
            if (counter == -ESRCH)
                continue;
            if (counter < 0)
                return counter;
            account->counters[account->counter_count++] = counter;
        }
    }
    return account->counter_count > 0 ? 0 : -ESRCH;
}

void wm_account_start_tree(struct wm_account *account, const struct wm_tree *tree, bool own)
{
    take_base(account, tree);
    account->begun_ns = wm_clock_monotonic_ns();
    account->is_late =
        account->probe && probe_answer(account->probe, PATIENCE_NS) == UNKNOWN;
    if (account->is_late) {
        account->base_ns = wm_tree_cpu_ns(tree);
        set_method(account, by_sampling);
        return;
    }
    int status = own ? open_counters(account, tree) : -ENOTSUP;
    set_method(account, by_perf);
    if (status == 0)
        return;
    close_counters(account);
    account->base_ns = wm_tree_cpu_ns(tree);
    snprintf(account->method, sizeof(account->method),
             "sampling (no perf counter: %s); short children, and those nobody waited for, "
             "are missing",
             strerror(-status));
}

static bool read_counters(const struct wm_account *account, int64_t *ret_ns)
{
    int64_t total_ns = 0;

    for (size_t i = 0; i < account->counter_count; i++) {
        uint64_t count_ns;
        if (read(account->counters[i], &count_ns, sizeof(count_ns)) != sizeof(count_ns))
            return false;
        total_ns += (int64_t)count_ns;
    }
    *ret_ns = total_ns;
    return account->counter_count > 0;
}

void wm_account_catch_up(struct wm_account *account, struct wm_tree *tree)
{
    int64_t counted_ns;

    if (!account->is_late)
        return;
    int answer = probe_answer(account->probe, 0);
    if (answer == UNKNOWN)
        return;
    account->is_late = false;
    if (answer < 0)
        return;
    wm_tree_refresh(tree);
    bool is_counted = open_counters(account, tree) == 0;
    wm_tree_refresh(tree);
    if (!is_counted || !read_counters(account, &counted_ns)) {
        close_counters(account);
        return;
    }

    /* What was reported of processes that have vanished since stays used. */
    int64_t sampled_ns = wm_tree_cpu_ns(tree) - account->base_ns;
    int64_t told_ns = (int64_t)(account->total * 1e9);
    account->base_ns = counted_ns - (sampled_ns > told_ns ? sampled_ns : told_ns);
    account->exact_at_ns = 0;
    snprintf(account->method, sizeof(account->method),
             "%s; sampled for the first %.0f ms, which the kernel took to begin counting",
             by_perf, (double)(wm_clock_monotonic_ns() - account->begun_ns) / 1e6);
}

static int64_t read_total_ns(struct wm_account *account, const struct wm_tree *tree)
{
    int64_t now_ns = wm_clock_monotonic_ns();
    int64_t live_ns = wm_tree_live_cpu_ns(tree);
    struct wm_tree_census census;

    /* Less than then means that one has ended, whose end nobody has seen; and of
     * a new one nobody knows how much of it was counted then. */
    wm_tree_count(tree, &census);
    if (account->exact_at_ns > 0 && now_ns - account->exact_at_ns < EXACT_PERIOD_NS &&
        live_ns > account->live_ns && census.seen == account->seen)
        return account->exact_ns + live_ns - account->live_ns;

    if (!read_counters(account, &account->exact_ns) &&
        !(account->cgroup && wm_cgroup_cpu_ns(account->cgroup, &account->exact_ns)))
        account->exact_ns = wm_tree_cpu_ns(tree);
    account->exact_at_ns = now_ns;
    account->live_ns = live_ns;
    account->seen = census.seen;
    return account->exact_ns;
}

void wm_account_want_exact(struct wm_account *account)
{
    account->exact_at_ns = 0;
}

static bool counts(const struct wm_account *account)
{
    return !account->is_cut && (account->counter_count > 0 || account->cgroup);
}

/* How much more than the processes' own clocks the task clock may say. */
static double clock_error(double seconds)
{
    return CLOCK_ERROR + CLOCK_DRIFT * seconds;
}

static double read_counted(struct wm_account *account, const struct wm_tree *tree)
{
    return (double)(read_total_ns(account, tree) - account->base_ns) / 1e9;
}

/* The kernel takes the counter away from whoever executes a setuid program, sudo say, and
 * may not look into it: that one and its descendants then are in no counter, but in sight.
 * (Of a tree that was there before us its sampled start is not known so exactly.) */
static double read_whole(struct wm_account *account, const struct wm_tree *tree)
{
    double counted = read_counted(account, tree);
    double sampled = (double)(wm_tree_cpu_ns(tree) - account->main_base_ns) / 1e9;
    double tolerance = clock_error(sampled);

    if (account->root <= 0 || account->counter_count == 0)
        return counted;
    if (!account->is_cut && sampled - counted > tolerance) {
        wm_account_want_exact(account);
        counted = read_counted(account, tree);
        account->is_cut = sampled - counted > tolerance;
        if (account->is_cut)
            set_method(account, "perf task clock, inherited; what it leaves out, as setuid "
                                "programs, is sampled");
    }
    return account->is_cut && sampled > counted ? sampled : counted;
}

/* Whether nobody but the root was seen, or waited for since the start. */
static bool is_alone(const struct wm_account *account, const struct wm_tree *tree)
{
    struct wm_tree_census census;

    wm_tree_count(tree, &census);
    return !wm_tree_is_blind(tree) && census.seen <= 1 &&
           wm_tree_main_reaped_faults(tree) == account->reaped_faults;
}

/* Whether the root has used all of it: nobody else was seen or waited for, and the rest is
 * no more than what the clocks disagree by. Of a tree in which nobody can be seen the
 * clocks alone tell. */
static bool is_roots(const struct wm_account *account, const struct wm_tree *tree,
                     double total, double main)
{
    return (is_alone(account, tree) || wm_tree_is_blind(tree)) &&
           total - main <= clock_error(main);
}

/* What others than the root have used at least, in seconds. A process that was forked while
 * the counters of a running tree were opened may be in none of them, but is in sight or was
 * waited for. What a process of another's tree had waited for at the start is known to two
 * steps of PID/stat. */
static double least_of_others(const struct wm_account *account, const struct wm_tree *tree)
{
    double seconds = (double)(wm_tree_others_cpu_ns(tree) - account->others_base_ns) / 1e9;

    return account->probe ? seconds : seconds - 2.0 / (double)sysconf(_SC_CLK_TCK);
}

void wm_account_read(struct wm_account *account, const struct wm_tree *tree,
                     double *ret_total, double *ret_main)
{
    if (account->finished) {
        *ret_total = account->total;
        *ret_main = account->main;
        return;
    }

    /* The root's clock after the whole: what it uses between the two is no other's. */
    account->whole = read_whole(account, tree);
    double main = (double)(wm_tree_main_cpu_ns(tree) - account->main_base_ns) / 1e9;
    double total = account->whole;
    double others = account->total - account->main;

    if (is_roots(account, tree, total, main))
        total = main;
    else if (account->root <= 0)
        total = fmax(total, main + least_of_others(account, tree));

    /* A process that vanishes takes what was sampled of it along, and the clocks do not
     * agree to the last microsecond; neither makes used time unused, be it of the root or
     * of all others. Where a counter knows the whole, the parts give way to it. */
    if (main < account->main)
        main = account->main;
    if (total < main)
        total = main;
    if (total < main + others && !counts(account))
        total = main + others;
    if (total < account->total)
        total = account->total;
    account->main = main < total - others ? main : total - others;
    account->total = total;
    *ret_total = account->total;
    *ret_main = account->main;
}

void wm_account_rebase(struct wm_account *account, const struct wm_tree *tree)
{
    wm_account_want_exact(account);
    account->base_ns = read_total_ns(account, tree);
    take_base(account, tree);
    account->total = account->main = 0;
}

/* What those have used that outlive the root. */
static int64_t survivors_ns(const struct wm_account *account, const struct wm_tree *tree)
{
    size_t count;
    const struct wm_process *processes = wm_tree_processes(tree, &count);
    int64_t total_ns = 0;

    for (size_t i = 0; i < count; i++) {
        if (processes[i].pid != account->root)
            total_ns += processes[i].cpu_ns + processes[i].reaped_ns;
    }
    return total_ns;
}

/* The perf counter runs on while the hypervisor has taken the core away; no program has
 * used that time. The tree's part in it is about its part in all that ran; up to the
 * clocks' error it may have been all of it, and of one process alone any time. */
static double not_used(const struct wm_account *account, const struct wm_tree *tree,
                       double known)
{
    struct host_time host = read_host_time();
    double busy = host.busy - account->host_base.busy;
    double stolen = 1.5 * (host.stolen - account->host_base.stolen);
    double part = busy > account->whole ? account->whole / busy : 1;
    double error = clock_error(known);

    return fmax(stolen * part, is_alone(account, tree) ? error : fmin(stolen, error));
}

void wm_account_finish(struct wm_account *account, const struct wm_tree *tree,
                       double reaped_seconds)
{
    /* Less what the fork itself took, before the command began. */
    double known = reaped_seconds +
                   (double)(survivors_ns(account, tree) - account->main_base_ns) / 1e9;
    bool perf = counts(account) && account->counter_count > 0;

    if (counts(account) || account->total < account->whole)
        account->total = account->whole;

    /* Where perf says more than that, it has seen processes that nobody waited for. */
    bool is_all_known = perf && account->whole - known <= not_used(account, tree, known);
    if (known > account->total || is_all_known) {
        account->total = known;
        /* At a tick stolen time may have looked like others'. */
        if (is_alone(account, tree) || is_roots(account, tree, known, account->main))
            account->main = known;
        if (account->is_cut)
            set_method(account, "wait4 and sampling; the perf task clock leaves some out, "
                                "as setuid programs");
        else if (perf)
            set_method(account, "wait4; the inherited perf task clock differs by stolen "
                                "time alone");
    }
    if (account->total < account->main)
        account->total = account->main;
    account->finished = true;
}

const char *wm_account_method(const struct wm_account *account)
{
    return account->method;
}

void wm_account_free(struct wm_account *account)
{
    if (!account)
        return;
    close_counters(account);
    probe_free(account->probe);
    wm_cgroup_free(account->cgroup);
    free(account);
}
