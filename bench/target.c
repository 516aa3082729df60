/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - the programs that are measured.
 *
 *     target stamp FILE           writes the moment it began to FILE
 *     target family N SECONDS     N sleeping children, for so long
 *     target burn ROUNDS          keeps a core busy; prints the seconds it took
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int stamp(const char *path, int64_t began)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, &began, sizeof(began)) != (ssize_t)sizeof(began)) {
        perror(path);
        return 1;
    }
    return 0;
}

static int family(long count, double seconds)
{
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            return 1;
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
    }

    struct timespec left = { .tv_sec = (time_t)seconds };
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
    return 0;
}

static int burn(long rounds)
{
    int64_t from = now_ns();
    volatile uint64_t result;
    uint64_t x = 1;

    /* A chain of dependent operations: it runs in registers at the same pace
     * whatever the caches and the other core do. */
    for (long i = 0; i < rounds; i++)
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    result = x;
    (void)result;
    return printf("%.9f\n", (double)(now_ns() - from) / 1e9) < 0;
}

int main(int argc, char **argv)
{
    int64_t began = now_ns();

    if (argc == 3 && strcmp(argv[1], "stamp") == 0)
        return stamp(argv[2], began);
    if (argc == 4 && strcmp(argv[1], "family") == 0)
        return family(strtol(argv[2], NULL, 10), strtod(argv[3], NULL));
    if (argc == 3 && strcmp(argv[1], "burn") == 0)
        return burn(strtol(argv[2], NULL, 10));

    fprintf(stderr, "usage: target stamp FILE | family N SECONDS | burn ROUNDS\n");
    return 2;
}
