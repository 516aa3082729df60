/* SPDX-License-Identifier: Apache-2.0 */
/* track_launch.c - the launcher process and its protocol. What runs between
 * fork and exec calls async-signal-safe functions only: the program that uses
 * the library may have threads. */
#include "track/launch/track_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "source/source_kernel_text.h"

struct wm_launch {
    char *name; /* what the user called the command */
    pid_t launcher;
    pid_t command;
    int channel_fd;
    bool running;   /* between a successful exec and the reaping */
    bool waits_all; /* what outlives the command is waited for, and is not over yet */
    bool may_reap;  /* the command, */
    bool is_reaped; /* and has done so */
};

/* All talk goes over one socket, a packet each. It is the only descriptor that
 * exists in the caller's process: a pipe whose end means something would be kept
 * open by whatever another thread happens to fork meanwhile. */
enum message_kind {
    MESSAGE_FORKED,    /* the command's pid; negative: the errno of why there is none */
    MESSAGE_EXECUTED,  /* the errno of exec; 0: it worked */
    MESSAGE_ENDED,     /* the command is dead, and waits to be reaped */
    MESSAGE_REAPED,    /* how it ended */
    MESSAGE_ALL_ENDED, /* nothing of the command's is left; the same, with what they used */
};

struct message {
    enum message_kind kind;
    bool was_killed; /* before it could be executed */
    int number;
    struct rusage before; /* what the command had used before it was executed */
    int wait_status;
    int64_t ended_ns;
    struct rusage command, children, self;
    struct rusage all;      /* children, and those that waited to be reaped, too */
    int io_errno;           /* why `io` is empty */
    uint64_t launcher_read; /* bytes that are the launcher's own in `io` */
    char io[256];           /* /proc/self/io, where the kernel adds what the reaped had */
};

/* What opens the gate, and has the launcher reap: whoever waits takes it. */
static const char go_on[1];

/* How long a dead command waits to be reaped at most: the tracker may be gone
 * and yet its end of the socket be open, in some child that it forked. */
enum { REAP_WAIT_MS = 10000 };

/* What the command says of itself on its way. */
struct progress {
    int number;           /* 0 just before the exec, its errno should it fail */
    struct rusage before; /* what it had used by then */
};

/* Everything the two new processes need, made ready before the fork. */
struct plan {
    struct wm_launch_plan wanted;
    char *const *environment;
    int channel_fd; /* the launcher's end */
    sigset_t old_mask;
    struct sigaction old_child_action; /* of SIGCHLD */
};

static bool is_executable(int folder_fd, const char *path, int *ret_errno)
{
    struct stat info;

    if (fstatat(folder_fd, path, &info, 0) != 0) {
        *ret_errno = errno;
        return false;
    }
    if (S_ISDIR(info.st_mode)) {
        *ret_errno = EISDIR;
        return false;
    }
    if (faccessat(folder_fd, path, X_OK, AT_EACCESS) != 0) {
        *ret_errno = errno;
        return false;
    }
    return true;
}

static int fail_to_find(const char *name, int number, struct wm_error *err)
{
    if (number == ENOENT || number == ENOTDIR)
        return wm_fail(err, WM_ENOENT, "%s: %s", name,
                       strchr(name, '/') ? wm_errno_text(number) : "command not found");
    return wm_fail(err, WM_EACCES, "%s: cannot be executed: %s", name,
                   wm_errno_text(number));
}

static const char *variable_path(char *const *environment)
{
    static const char usual[] = "/usr/local/bin:/bin:/usr/bin";

    if (!environment)
        return wm_env("PATH", usual);
    for (; *environment; environment++) {
        if (strncmp(*environment, "PATH=", 5) == 0 && (*environment)[5])
            return *environment + 5;
    }
    return usual;
}

/* An unusable file is passed over for a usable one further on in PATH, but remembered for
 * the message. */
static bool search_path(const char *name, const struct wm_launch_place *place,
                        char *candidate, size_t size, int *ret_errno)
{
    const char *dir = variable_path(place->environment);

    for (const char *end; name[0] && dir; dir = *end ? end + 1 : NULL) {
        int this_errno = ENOENT;
        end = dir + strcspn(dir, ":");
        int length = snprintf(candidate, size, "%.*s/%s", end == dir ? 1 : (int)(end - dir),
                              end == dir ? "." : dir, name);
        if (length >= (int)size)
            continue;
        if (is_executable(place->folder_fd, candidate, &this_errno))
            return true;
        /* A folder that may not be searched has it not, as for a shell. */
        if (this_errno != ENOENT && this_errno != ENOTDIR &&
            faccessat(place->folder_fd, candidate, F_OK, 0) == 0)
            *ret_errno = this_errno;
    }
    return false;
}

int wm_launch_find(const char *name, const struct wm_launch_place *place, char **ret_path,
                   struct wm_error *err)
{
    bool is_path = strchr(name, '/');
    int number = ENOENT;
    char candidate[4096];

    if (!(is_path ? is_executable(place->folder_fd, name, &number)
                  : search_path(name, place, candidate, sizeof(candidate), &number)))
        return fail_to_find(name, number, err);
    *ret_path = strdup(is_path ? name : candidate);
    return *ret_path ? WM_OK : wm_fail_memory(err, name);
}

static void tell(int channel_fd, const struct message *message)
{
    send(channel_fd, message, sizeof(*message), MSG_NOSIGNAL);
}

/* The command must find signals as the caller's command would have: ignored
 * ones ignored, the rest at their default. They stay blocked for now. */
static void reset_signals(const struct plan *plan)
{
    sigaction(SIGCHLD, &plan->old_child_action, NULL);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN &&
            action.sa_handler != SIG_DFL) {
            action.sa_handler = SIG_DFL;
            action.sa_flags = 0;
            sigaction(number, &action, NULL);
        }
    }
}

static void be_silent(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
        dup2(null, fd);
}

/* Returns the errno of what cannot be executed. */
static int execute(const struct plan *plan, int exec_fd)
{
    const struct wm_launch_plan *wanted = &plan->wanted;

    if (wanted->is_silent)
        be_silent();
    if (wanted->place && wanted->place->folder_fd != AT_FDCWD &&
        fchdir(wanted->place->folder_fd) != 0)
        return errno;
    if (wanted->batch)
        return wm_batch_be(wanted->batch, wanted->path, wanted->argv, plan->environment,
                           exec_fd);
    execvpe(wanted->path, wanted->argv, plan->environment);
    return errno;
}

_Noreturn static void be_command(const struct plan *plan, int exec_fd)
{
    const struct message forked = { .kind = MESSAGE_FORKED, .number = getpid() };
    struct progress progress = { 0 };
    char byte;

    tell(plan->channel_fd, &forked);
    reset_signals(plan); /* nobody waits for that here */

    /* Or the tracker died, or thought better of it. */
    if (recv(plan->channel_fd, &byte, sizeof(byte), 0) != sizeof(byte))
        _exit(126);
    sigprocmask(SIG_SETMASK, &plan->old_mask, NULL);
    getrusage(RUSAGE_SELF, &progress.before);
    if (write(exec_fd, &progress, sizeof(progress)) != sizeof(progress))
        _exit(126);
    progress.number = execute(plan, exec_fd);
    if (write(exec_fd, &progress, sizeof(progress)) != sizeof(progress))
        _exit(126);
    _exit(progress.number == ENOENT ? 127 : 126);
}

static ssize_t read_io(char *text, size_t size)
{
    int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    ssize_t got = read(fd, text, size);
    close(fd);
    return got;
}

/* False: there are no children any more. */
static bool reap_dead(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* With what the reaped have used by now, and the launcher itself. Orphans that ended just
 * before the command are in the tracker's tree, and so are not among the children. */
static void tell_use(int channel_fd, struct message *message, uint64_t *launcher_read)
{
    getrusage(RUSAGE_CHILDREN, &message->children);
    reap_dead();
    getrusage(RUSAGE_CHILDREN, &message->all);
    getrusage(RUSAGE_SELF, &message->self);
    message->launcher_read = *launcher_read;
    ssize_t length = read_io(message->io, sizeof(message->io) - 1);
    message->io_errno = length < 0 ? errno : 0;
    message->io[length > 0 ? length : 0] = '\0';
    *launcher_read += length > 0 ? (uint64_t)length : 0;
    tell(channel_fd, message);
}

/* Older kernels than 5.9 have no such call; older glibc than 2.33 has no name for it. */
static void close_from(unsigned first, unsigned last)
{
    if (first > last || syscall(__NR_close_range, first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && fd < 4096; fd++)
        close((int)fd);
}

/* A pipe that the command closes must see its end, so none of the caller's may
 * stay open here. The two that are needed become 3 and 4. */
static void keep_only(int *channel_fd, int *exec_fd)
{
    int channel = fcntl(*channel_fd, F_DUPFD_CLOEXEC, 5);
    int exec = fcntl(*exec_fd, F_DUPFD_CLOEXEC, 5);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    dup2(channel, 3);
    dup2(exec, 4);
    close_from(5, ~0u);
    *channel_fd = 3;
    *exec_fd = 4;
}

/* False when the command is gone without having executed anything. */
static bool watch_exec(int channel_fd, int exec_fd, struct rusage *ret_before)
{
    struct message message = { .kind = MESSAGE_EXECUTED, .was_killed = true };
    struct progress progress;
    ssize_t got;

    while ((got = read(exec_fd, &progress, sizeof(progress))) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        if (got == sizeof(progress)) {
            message.was_killed = false;
            message.number = progress.number;
            *ret_before = progress.before;
        }
    }
    close(exec_fd);
    tell(channel_fd, &message);
    return !message.was_killed && message.number == 0;
}

/* Reaps what the command has left behind, which is ours now. False: the tracker does not
 * wait any more. */
static bool reap_rest(int channel_fd, uint64_t *launcher_read)
{
    struct pollfd fds[] = { { .fd = channel_fd, .events = POLLIN },
                            { .fd = -1, .events = POLLIN } };
    struct signalfd_siginfo info;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        if (!reap_dead())
            return true;
        if ((poll(fds, 2, -1) < 0 && errno != EINTR) || fds[0].revents)
            return false;
        while (read(fds[1].fd, &info, sizeof(info)) > 0)
            *launcher_read += sizeof(info);
    }
}

static void reap_until(pid_t command, int channel_fd, bool waits_all,
                       const struct rusage *before)
{
    struct message message = { .kind = MESSAGE_ENDED, .before = *before };
    uint64_t launcher_read = sizeof(struct progress);
    siginfo_t info = { 0 };
    char byte;

    while (info.si_pid != command) {
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (info.si_pid != command)
            waitpid(info.si_pid, NULL, 0);
    }

    /* The tracker reads the last counters of the dead command first; it asks
     * when it is done, or is gone, which reads as the end. */
    message.ended_ns = wm_clock_monotonic_ns();
    struct pollfd asked = { .fd = channel_fd, .events = POLLIN };
    tell(channel_fd, &message);
    poll(&asked, 1, REAP_WAIT_MS);

    /* Left unread, it would make the socket's end look like a fault. */
    recv(channel_fd, &byte, 1, MSG_DONTWAIT);
    message.kind = MESSAGE_REAPED;
    wait4(command, &message.wait_status, 0, &message.command);
    tell_use(channel_fd, &message, &launcher_read);

    /* Also where nobody waits for them: while the tracker looks for what outlives the
     * command, that is found among our children. */
    if (!reap_rest(channel_fd, &launcher_read) || !waits_all)
        return;
    message.kind = MESSAGE_ALL_ENDED;
    message.ended_ns = wm_clock_monotonic_ns();
    tell_use(channel_fd, &message, &launcher_read);
}

/* The launcher has nothing to do until the command has executed its program, so that the
 * command may have its memory until then: to copy it, and to put it away again at the exec,
 * takes as long as all the rest of the way through the gate. A batch needs memory of its
 * own, in which it stays. */
static pid_t fork_command(const struct plan *plan, int exec_fd)
{
    pid_t command = plan->wanted.batch ? fork() : vfork();

    if (command == 0)
        be_command(plan, exec_fd);
    return command;
}

_Noreturn static void be_launcher(struct plan *plan)
{
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    int exec_pipe[2];

    /* Whatever hits our process group is for the command, and for the tracker
     * to hear about; all signals are blocked since before the fork. Where the
     * caller ignores the end of its children the kernel would reap ours. */
    prctl(PR_SET_NAME, "wattmeter-run");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigaction(SIGCHLD, &by_default, &plan->old_child_action);

    pid_t command =
        pipe2(exec_pipe, O_CLOEXEC) == 0 ? fork_command(plan, exec_pipe[1]) : -1;
    if (command < 0) {
        const struct message failed = { .kind = MESSAGE_FORKED, .number = -errno };
        tell(plan->channel_fd, &failed);
        _exit(1);
    }

    int channel_fd = plan->channel_fd, exec_fd = exec_pipe[0];
    keep_only(&channel_fd, &exec_fd);
    struct rusage before = { 0 };
    if (watch_exec(channel_fd, exec_fd, &before))
        reap_until(command, channel_fd, plan->wanted.waits_all, &before);
    else
        waitpid(command, NULL, 0);
    _exit(0);
}

/* The next message of that kind; false when there will be none. */
static bool hear(const struct wm_launch *launch, enum message_kind kind,
                 struct message *ret_message)
{
    for (;;) {
        ssize_t got = recv(launch->channel_fd, ret_message, sizeof(*ret_message), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof(*ret_message))
            return false;
        if (ret_message->kind == kind)
            return true;
    }
}

static int fork_launcher(struct wm_launch *launch, struct plan *plan, struct wm_error *err)
{
    int fds[2];
    sigset_t all;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return wm_fail_errno(err, "starting the command: socketpair");
    launch->channel_fd = fds[0];
    plan->channel_fd = fds[1];

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &plan->old_mask);
    launch->launcher = fork();
    if (launch->launcher == 0) {
        /* Or the far end would never read as closed. */
        close(fds[0]);
        be_launcher(plan);
    }
    int number = errno;
    pthread_sigmask(SIG_SETMASK, &plan->old_mask, NULL);
    close(fds[1]);
    if (launch->launcher < 0) {
        errno = number;
        return wm_fail_errno(err, "starting the command: fork");
    }
    return WM_OK;
}

/* `all`, with that entry, "NAME=value", instead of what it has by that name. */
static char **make_environment(char *const *all, char *entry)
{
    size_t length = strcspn(entry, "=") + 1, count = 0, kept = 0;

    while (all && all[count]) /* there is none after clearenv() */
        count++;
    char **made = calloc(count + 2, sizeof(*made));
    for (size_t i = 0; made && i < count; i++) {
        if (strncmp(all[i], entry, length) != 0)
            made[kept++] = all[i];
    }
    if (made)
        made[kept] = entry;
    return made;
}

int wm_launch_new(const struct wm_launch_plan *wanted, struct wm_launch **ret_launch,
                  struct wm_error *err)
{
    bool is_given = wanted->place && wanted->place->environment;
    struct plan plan = {
        .wanted = *wanted,
        .environment = is_given ? wanted->place->environment : wm_env_all(),
    };
    char *entry = NULL, **made = NULL;

    struct wm_launch *launch = calloc(1, sizeof(*launch));
    if (!launch)
        return wm_fail_memory(err, wanted->path);
    launch->channel_fd = -1;
    launch->launcher = -1;
    launch->waits_all = wanted->waits_all;
    launch->name = strdup(wanted->argv[0]);
    if (wanted->value && asprintf(&entry, "%s=%s", wanted->variable, wanted->value) < 0)
        entry = NULL;
    if (entry)
        plan.environment = made = make_environment(plan.environment, entry);

    bool is_made = launch->name && (!wanted->value || made);
    int status =
        is_made ? fork_launcher(launch, &plan, err) : wm_fail_memory(err, wanted->path);
    free(made);
    free(entry);
    if (status < 0) {
        wm_launch_free(launch);
        return status;
    }
    *ret_launch = launch;
    return WM_OK;
}

int wm_launch_wait_fork(struct wm_launch *launch, struct wm_error *err)
{
    struct message forked;

    if (!hear(launch, MESSAGE_FORKED, &forked))
        return wm_fail(err, WM_EIO, "starting the command: the launcher was killed");
    if (forked.number < 0) {
        errno = -forked.number;
        return wm_fail_errno(err, "starting the command");
    }
    launch->command = forked.number;
    return WM_OK;
}

pid_t wm_launch_command_pid(const struct wm_launch *launch)
{
    return launch->command;
}

pid_t wm_launch_launcher_pid(const struct wm_launch *launch)
{
    return launch->launcher;
}

int wm_launch_end_fd(const struct wm_launch *launch)
{
    return launch->channel_fd;
}

int wm_launch_go(struct wm_launch *launch, struct wm_error *err)
{
    if (send(launch->channel_fd, go_on, sizeof(go_on), MSG_NOSIGNAL) < 0)
        return wm_fail_errno(err, "starting the command");
    return WM_OK;
}

int wm_launch_wait_exec(struct wm_launch *launch, struct wm_error *err)
{
    struct message executed;

    if (!hear(launch, MESSAGE_EXECUTED, &executed) || executed.was_killed)
        return wm_fail(err, WM_EIO, "%s: was killed before it could be executed",
                       launch->name);
    if (executed.number == ENOENT)
        return wm_fail(err, WM_ENOENT, "%s: its interpreter is missing", launch->name);
    if (executed.number != 0)
        return wm_fail(err, WM_EACCES, "%s: cannot be executed: %s", launch->name,
                       wm_errno_text(executed.number));
    launch->running = true;
    return WM_OK;
}

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static double seconds_since(struct timeval end, struct timeval begin)
{
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_usec - begin.tv_usec) / 1e6;

    return seconds > 0 ? seconds : 0;
}

static struct wm_known known(double number)
{
    return (struct wm_known) { true, number > 0 ? number : 0 };
}

/* What is behind that word, less what is not the command's. */
static struct wm_known bytes_of(const char *io, const char *word, uint64_t ours)
{
    size_t count;
    uint64_t bytes;

    if (wm_parse_status_numbers(io, word, &bytes, 1, &count) < 0 || count != 1)
        return (struct wm_known) { 0 };
    return known((double)bytes - (double)ours);
}

/* The command has written of its progress before it was executed. */
static void take_io(const struct message *end, struct wm_usage *usage)
{
    usage->read_bytes = bytes_of(end->io, "rchar:", end->launcher_read);
    usage->written_bytes = bytes_of(end->io, "wchar:", sizeof(struct progress));
    usage->storage_read_bytes = bytes_of(end->io, "read_bytes:", 0);
    usage->storage_written_bytes = bytes_of(end->io, "write_bytes:", 0);
    if (!usage->read_bytes.known)
        snprintf(usage->io_note, sizeof(usage->io_note), "/proc/self/io: %s",
                 end->io_errno ? wm_errno_text(end->io_errno) : "not understood");
}

static struct wm_usage usage_of(const struct message *end)
{
    const struct rusage *all = &end->all, *before = &end->before;
    struct wm_usage usage = {
        .user_seconds = known(seconds_since(all->ru_utime, before->ru_utime)),
        .system_seconds = known(seconds_since(all->ru_stime, before->ru_stime)),
        .voluntary_switches = known((double)(all->ru_nvcsw - before->ru_nvcsw)),
        .involuntary_switches = known((double)(all->ru_nivcsw - before->ru_nivcsw)),
        .minor_faults = known((double)(all->ru_minflt - before->ru_minflt)),
        .major_faults = known((double)(all->ru_majflt - before->ru_majflt)),
    };

    take_io(end, &usage);
    return usage;
}

int64_t wm_launch_ended_ns(const struct wm_launch *launch)
{
    struct message next;
    ssize_t got;

    /* It says so before it is asked how. */
    do
        got = recv(launch->channel_fd, &next, sizeof(next), MSG_PEEK);
    while (got < 0 && errno == EINTR);
    return got == sizeof(next) ? next.ended_ns : 0;
}

int wm_launch_let_reap(struct wm_launch *launch, struct wm_error *err)
{
    if (!launch->may_reap &&
        send(launch->channel_fd, go_on, sizeof(go_on), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        return wm_fail_errno(err, "the end of the command");
    launch->may_reap = true;
    return WM_OK;
}

int wm_launch_reap(struct wm_launch *launch, struct wm_launch_end *ret_end,
                   struct wm_error *err)
{
    struct message end;

    int status = wm_launch_let_reap(launch, err);
    if (status < 0)
        return status;
    bool told = hear(launch, launch->is_reaped ? MESSAGE_ALL_ENDED : MESSAGE_REAPED, &end);

    /* Whether it told or died, the launcher has nothing left to do that is not asked. */
    launch->running = false;
    launch->waits_all &= told && !launch->is_reaped;
    launch->is_reaped = true;
    if (!told)
        return wm_fail(err, WM_EIO,
                       "how the command ended is not known: the launcher was killed");

    ret_end->wait_status = end.wait_status;
    ret_end->children_seconds = seconds_of(&end.children);
    ret_end->launcher_seconds = seconds_of(&end.self);
    ret_end->usage = usage_of(&end);

    /* A high-water mark is inherited through exec, so one that is not above that of
     * before may be no mark of the command's. */
    long largest_kb = end.command.ru_maxrss > end.children.ru_maxrss
                          ? end.command.ru_maxrss
                          : end.children.ru_maxrss; /* adopted ones, too */
    bool own = largest_kb > end.before.ru_maxrss;
    ret_end->peak_rss_bound_bytes = (struct wm_known) { true, (double)largest_kb * 1024 };
    ret_end->peak_rss_bytes = ret_end->peak_rss_bound_bytes;
    ret_end->peak_rss_bytes.known = own;
    return WM_OK;
}

bool wm_launch_waits(const struct wm_launch *launch)
{
    return launch->waits_all;
}

void wm_launch_free(struct wm_launch *launch)
{
    if (!launch)
        return;
    if (launch->channel_fd >= 0)
        close(launch->channel_fd);

    /* It ends now, or it stays with a command that runs on. */
    while (launch->launcher > 0 &&
           waitpid(launch->launcher, NULL, launch->running ? WNOHANG : 0) < 0 &&
           errno == EINTR)
        ;
    free(launch->name);
    free(launch);
}
