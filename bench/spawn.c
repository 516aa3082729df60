/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - how long a command takes to begin and to end.
 *
 *     spawn STAMP COMMAND...
 *
 * COMMAND is to end in `target stamp STAMP`, which writes the moment it began.
 * Prints the seconds from here to that moment, and to the end of COMMAND. A
 * program of its own, because an interpreter's spawn would hide a millisecond.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
    int64_t began;
    pid_t pid;
    int status;

    if (argc < 3) {
        fprintf(stderr, "usage: spawn STAMP COMMAND...\n");
        return 2;
    }

    unlink(argv[1]);
    int64_t from = now_ns();
    int error = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
    if (error) {
        fprintf(stderr, "spawn: %s: %s\n", argv[2], strerror(error));
        return 1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    int64_t ended = now_ns();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "spawn: %s failed\n", argv[2]);
        return 1;
    }

    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &began, sizeof(began)) != (ssize_t)sizeof(began)) {
        fprintf(stderr, "spawn: %s: no stamp\n", argv[1]);
        return 1;
    }
    printf("%.9f %.9f\n", (double)(began - from) / 1e9, (double)(ended - from) / 1e9);
    return 0;
}
