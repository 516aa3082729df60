/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor.c - what no sampler on this machine can go below.
 *
 *     floor INTERVAL_MS TICKS [FILE...]
 *
 * Wakes up TICKS times at absolute deadlines and reads each FILE again, opened
 * once, without looking at what it says. Prints the CPU seconds of the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add_ns(struct timespec *when, long ns)
{
    when->tv_nsec += ns;
    while (when->tv_nsec >= 1000000000) {
        when->tv_nsec -= 1000000000;
        when->tv_sec++;
    }
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    struct timespec due;

    if (argc < 3) {
        fprintf(stderr, "usage: floor INTERVAL_MS TICKS [FILE...]\n");
        return 2;
    }
    long interval_ns = strtol(argv[1], NULL, 10) * 1000000;
    long ticks = strtol(argv[2], NULL, 10);
    int count = argc - 3;

    int *fds = calloc((size_t)count + 1, sizeof(*fds));
    if (!fds)
        return 1;
    for (int i = 0; i < count; i++) {
        fds[i] = open(argv[i + 3], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            perror(argv[i + 3]);
            return 1;
        }
    }

    double before = cpu_seconds();
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long tick = 0; tick < ticks; tick++) {
        add_ns(&due, interval_ns);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            ;
        for (int i = 0; i < count; i++) {
            if (pread(fds[i], text, sizeof(text), 0) < 0) {
                perror(argv[i + 3]);
                return 1;
            }
        }
    }
    printf("%.9f\n", cpu_seconds() - before);
    free(fds);
    return 0;
}
