/* SPDX-License-Identifier: Apache-2.0 */
/* slow_perf.c - runs a command whose first perf_event_open waits for a file: it takes long
 * where nobody else counts. `slow_perf FILE CMD...`. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int listen_to_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static bool has_ended(pid_t command)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)command, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

/* Who ends meanwhile is not waited for. False: the call was interrupted, and comes again.
 */
static bool let_go(int listener, pid_t command, const char *file)
{
    struct seccomp_notif call = { 0 };
    struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return false;
    while (access(file, F_OK) != 0 && !has_ended(command))
        usleep(1000);
    answer.id = call.id;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* it may be gone by now */
    return true;
}

int main(int argc, char **argv)
{
    int status = 0, listener = argc > 2 ? listen_to_calls() : -1;

    if (listener < 0) {
        perror("slow_perf");
        return 77;
    }
    pid_t command = fork();
    if (command == 0) {
        close(listener);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    bool was_slow = false;
    struct pollfd calls = { .fd = listener, .events = POLLIN };
    while (waitpid(command, &status, WNOHANG) == 0) {
        if (poll(&calls, 1, 2) <= 0)
            continue;
        was_slow |= let_go(listener, command, was_slow ? "/" : argv[1]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
