/* SPDX-License-Identifier: Apache-2.0 */
/* deny.c - runs a command for which some system calls are refused, as perf is in
 * most containers and as older kernels lack others:
 * `deny perf_event_open,pidfd_open CMD...`. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
    unsigned error;
} calls[] = {
    { "perf_event_open", SYS_perf_event_open, EPERM },
    { "pidfd_open", SYS_pidfd_open, ENOSYS },
    { "close_range", SYS_close_range, ENOSYS },
    { "process_vm", SYS_process_vm_readv, EPERM },
    { "process_vm", SYS_process_vm_writev, EPERM },
    { "mkdir", SYS_mkdirat, EACCES },
#ifdef SYS_mkdir
    { "mkdir", SYS_mkdir, EACCES },
#endif
};

enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

int main(int argc, char **argv)
{
    struct sock_filter filter[2 + 2 * CALL_COUNT] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    unsigned short length = 1;

    for (size_t i = 0; argc > 2 && i < CALL_COUNT; i++) {
        if (!strstr(argv[1], calls[i].name))
            continue;
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                        SECCOMP_RET_ERRNO | calls[i].error);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = { length, filter };

    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("deny");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
