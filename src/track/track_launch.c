/* SPDX-License-Identifier: Apache-2.0 */
/* track_launch.c - the launcher process and its protocol. What runs between
 * fork and exec calls async-signal-safe functions only: the program that uses
 * the library may have threads. */
#include "track/track_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"

struct wm_launch {
    char *name; /* what the user called the command */
    pid_t launcher;
    pid_t command;
    int channel_fd; /* to the launcher, see below */
    int gate_fd;    /* a byte lets the command go; closing it ends the command */
    int exec_fd;    /* an errno if exec fails, nothing but the end if it works */
    bool running;   /* between a successful exec and the reaping */
};

/* The launcher's three messages, one packet each: the command's pid (0 or less:
 * none could be made); a byte when the command has ended; and, when it is asked
 * for with a byte, how. */
struct end_message {
    int wait_status;
    struct rusage command;
    struct rusage children;
    struct rusage self;
};

/* Everything the two new processes need, made ready before the fork. */
struct plan {
    const char *path;
    char *const *argv;
    int cgroup_fd;
    int channel_fd; /* the launcher's end */
    int gate_fd;    /* the command's end */
    int exec_fd;    /* the command's end */
    sigset_t old_mask;
};

static bool is_executable(const char *path, int *ret_errno)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        *ret_errno = errno;
        return false;
    }
    if (S_ISDIR(info.st_mode)) {
        *ret_errno = EISDIR;
        return false;
    }
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0) {
        *ret_errno = errno;
        return false;
    }
    return true;
}

static int fail_to_find(const char *name, int number, struct wm_error *err)
{
    if (number == ENOENT || number == ENOTDIR)
        return wm_fail(err, WM_ENOENT, "%s: command not found", name);
    return wm_fail(err, WM_EACCES, "%s: cannot be executed: %s", name, strerror(number));
}

int wm_launch_find(const char *name, char **ret_path, struct wm_error *err)
{
    int number = ENOENT;
    char candidate[4096];

    if (strchr(name, '/')) {
        if (!is_executable(name, &number))
            return fail_to_find(name, number, err);
        *ret_path = strdup(name);
        return *ret_path ? WM_OK : wm_fail(err, WM_ENOMEM, "%s: out of memory", name);
    }

    /* An unusable file is passed over for a usable one further on, but
     * remembered for the message. */
    const char *dir = wm_env("PATH", "/usr/local/bin:/bin:/usr/bin");
    for (const char *end; name[0] && dir; dir = *end ? end + 1 : NULL) {
        int this_errno = ENOENT;
        end = dir + strcspn(dir, ":");
        int length =
            snprintf(candidate, sizeof(candidate), "%.*s/%s",
                     end == dir ? 1 : (int)(end - dir), end == dir ? "." : dir, name);
        if (length >= (int)sizeof(candidate))
            continue;
        if (is_executable(candidate, &this_errno)) {
            *ret_path = strdup(candidate);
            return *ret_path ? WM_OK : wm_fail(err, WM_ENOMEM, "%s: out of memory", name);
        }
        if (this_errno != ENOENT && this_errno != ENOTDIR)
            number = this_errno;
    }
    return fail_to_find(name, number, err);
}

/* The command must find signals as the caller's command would have: ignored
 * ones ignored, the rest at their default, none blocked by us. */
static void restore_signals(const sigset_t *mask)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN &&
            action.sa_handler != SIG_DFL) {
            action.sa_handler = SIG_DFL;
            action.sa_flags = 0;
            sigaction(number, &action, NULL);
        }
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
}

_Noreturn static void be_command(const struct plan *plan)
{
    char byte;

    if (plan->cgroup_fd >= 0 && write(plan->cgroup_fd, "0", 1) != 1)
        _exit(126);

    /* No byte but the end: the tracker died or thought better of it. */
    if (read(plan->gate_fd, &byte, 1) != 1)
        _exit(126);
    restore_signals(&plan->old_mask);
    execvp(plan->path, plan->argv);

    int number = errno;
    if (write(plan->exec_fd, &number, sizeof(number)) != sizeof(number))
        _exit(126);
    _exit(number == ENOENT ? 127 : 126);
}

/* Older kernels than 5.9 have no such call. */
static void close_from(unsigned first, unsigned last)
{
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && fd < 4096; fd++)
        close((int)fd);
}

static void reap_until(pid_t command, int channel_fd)
{
    for (;;) {
        siginfo_t info = { 0 };
        struct end_message message = { 0 };
        char byte;

        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (info.si_pid != command) {
            waitpid(info.si_pid, NULL, 0);
            continue;
        }

        /* The tracker reads the last counters of the dead command first; it
         * asks when it is done, or is gone, which reads as the end. */
        send(channel_fd, "", 1, MSG_NOSIGNAL);
        while (read(channel_fd, &byte, 1) < 0 && errno == EINTR)
            ;
        wait4(command, &message.wait_status, 0, &message.command);
        getrusage(RUSAGE_CHILDREN, &message.children);
        getrusage(RUSAGE_SELF, &message.self);
        send(channel_fd, &message, sizeof(message), MSG_NOSIGNAL);
        return;
    }
}

_Noreturn static void be_launcher(const struct plan *plan)
{
    /* Whatever hits our process group is for the command, and for the tracker
     * to hear about; all signals are blocked since before the fork. */
    prctl(PR_SET_NAME, "wattmeter-run");
    prctl(PR_SET_CHILD_SUBREAPER, 1);

    pid_t command = fork();
    if (command == 0)
        be_command(plan);
    if (send(plan->channel_fd, &command, sizeof(command), MSG_NOSIGNAL) < 0 || command < 0)
        _exit(1);

    /* A pipe that the command closes must see its end, so none may stay open
     * here. The socket is moved out of the way of the standard ones first. */
    int channel_fd = fcntl(plan->channel_fd, F_DUPFD_CLOEXEC, 3);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) {
        if (null_fd >= 0)
            dup2(null_fd, fd);
    }
    if (channel_fd > 3)
        close_from(3, (unsigned)channel_fd - 1);
    close_from((unsigned)channel_fd + 1, ~0u);

    reap_until(command, channel_fd);
    _exit(0);
}

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

int wm_launch_new(const char *path, char *const argv[], int cgroup_fd,
                  struct wm_launch **ret_launch, struct wm_error *err)
{
    enum { CHANNEL, CHANNEL_FAR, GATE_FAR, GATE, EXEC, EXEC_FAR, FD_COUNT };
    int fds[FD_COUNT] = { -1, -1, -1, -1, -1, -1 };
    int status;

    struct wm_launch *launch = calloc(1, sizeof(*launch));
    if (!launch)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", path);
    launch->name = strdup(argv[0]);
    if (!launch->name) {
        status = wm_fail(err, WM_ENOMEM, "%s: out of memory", path);
        goto out;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, &fds[CHANNEL]) != 0 ||
        pipe2(&fds[GATE_FAR], O_CLOEXEC) != 0 || pipe2(&fds[EXEC], O_CLOEXEC) != 0) {
        status = wm_fail_errno(err, "starting the command");
        goto out;
    }

    struct plan plan = {
        .path = path,
        .argv = argv,
        .cgroup_fd = cgroup_fd,
        .channel_fd = fds[CHANNEL_FAR],
        .gate_fd = fds[GATE_FAR],
        .exec_fd = fds[EXEC_FAR],
    };
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &plan.old_mask);
    pid_t launcher = fork();
    if (launcher == 0) {
        /* Our own ends, or the gate would never read as closed. */
        close(fds[CHANNEL]);
        close(fds[GATE]);
        close(fds[EXEC]);
        be_launcher(&plan);
    }
    int number = errno;
    pthread_sigmask(SIG_SETMASK, &plan.old_mask, NULL);
    if (launcher < 0) {
        errno = number;
        status = wm_fail_errno(err, "starting the command: fork");
        goto out;
    }

    launch->launcher = launcher;
    launch->channel_fd = fds[CHANNEL];
    launch->gate_fd = fds[GATE];
    launch->exec_fd = fds[EXEC];
    fds[CHANNEL] = fds[GATE] = fds[EXEC] = -1;

    /* Or we should wait for ever for the word of a launcher that is dead. */
    close(fds[CHANNEL_FAR]);
    fds[CHANNEL_FAR] = -1;
    ssize_t got;
    do
        got = recv(launch->channel_fd, &launch->command, sizeof(launch->command), 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof(launch->command) || launch->command <= 0) {
        wm_launch_free(launch);
        launch = NULL;
        status = wm_fail(err, WM_EIO, "starting the command: no process could be made");
        goto out;
    }
    *ret_launch = launch;
    launch = NULL;
    status = WM_OK;

out:
    close_all(fds, FD_COUNT);
    if (launch)
        free(launch->name);
    free(launch);
    return status;
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
    ssize_t put;

    do
        put = write(launch->gate_fd, "", 1);
    while (put < 0 && errno == EINTR);
    if (put != 1)
        return wm_fail_errno(err, "starting the command");
    close(launch->gate_fd);
    launch->gate_fd = -1;
    return WM_OK;
}

int wm_launch_wait_exec(struct wm_launch *launch, struct wm_error *err)
{
    int number = 0;
    ssize_t got;

    do
        got = read(launch->exec_fd, &number, sizeof(number));
    while (got < 0 && errno == EINTR);
    close(launch->exec_fd);
    launch->exec_fd = -1;
    if (got == 0) {
        launch->running = true;
        return WM_OK;
    }
    if (number == ENOENT)
        return wm_fail(err, WM_ENOENT, "%s: its interpreter is missing", launch->name);
    return wm_fail(err, WM_EACCES, "%s: cannot be executed: %s", launch->name,
                   strerror(number));
}

static double seconds_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

int wm_launch_reap(struct wm_launch *launch, struct wm_launch_end *ret_end,
                   struct wm_error *err)
{
    struct end_message message;
    ssize_t got;

    if (send(launch->channel_fd, "", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        return wm_fail_errno(err, "the end of the command");
    do
        got = recv(launch->channel_fd, &message, sizeof(message), 0);
    while (got == 1 || (got < 0 && errno == EINTR));

    /* Whether it told or died, the launcher has nothing left to do. */
    launch->running = false;
    if (got != sizeof(message))
        return wm_fail(err, WM_EIO,
                       "how the command ended is not known: the launcher was killed");

    ret_end->wait_status = message.wait_status;
    ret_end->children_seconds = seconds_of(&message.children);
    ret_end->launcher_seconds = seconds_of(&message.self);

    /* A high-water mark is inherited through fork and exec, so one that is not
     * above the launcher's own may be the launcher's. */
    bool own = message.command.ru_maxrss > message.self.ru_maxrss;
    ret_end->peak_rss_bytes = own ? (double)message.command.ru_maxrss * 1024 : -1;
    return WM_OK;
}

void wm_launch_free(struct wm_launch *launch)
{
    if (!launch)
        return;
    close_all((int[]) { launch->gate_fd, launch->exec_fd, launch->channel_fd }, 3);

    /* It ends now, or it stays with a command that runs on. */
    while (waitpid(launch->launcher, NULL, launch->running ? WNOHANG : 0) < 0 &&
           errno == EINTR)
        ;
    free(launch->name);
    free(launch);
}
