/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_truth.c - a command that knows what it used: `cpu_truth HOW COUNT MS OWN_MS`. It
 * computes for OWN_MS, makes COUNT children meanwhile, one at a time, that compute for MS,
 * and prints the CPU time of itself and of its children, in seconds, by their own clocks.
 * HOW it treats them: "waits", "ignores" (SIGCHLD), "nocldwait", "orphans" (of a child
 * that ends at once). An option in front, "within", does all that in a child.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 1024 };

static double *used; /* by each child, once it has ended; shared by all */

static double cpu_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void burn(double seconds)
{
    for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
        ;
}

static void be_child(int number, double seconds, int is_orphan)
{
    if (is_orphan && fork() != 0)
        _exit(0);
    burn(seconds);
    used[number] = cpu_seconds();
    _exit(0);
}

/* The number is there before the child is gone, but for what its end takes. */
static void await(int number)
{
    const struct timespec moment = { .tv_nsec = 200000 };

    while (((volatile double *)used)[number] <= 0)
        nanosleep(&moment, NULL);
}

static void set_how(const char *how)
{
    struct sigaction action = { .sa_handler = SIG_DFL };

    if (strcmp(how, "ignores") == 0)
        action.sa_handler = SIG_IGN;
    else if (strcmp(how, "nocldwait") == 0)
        action.sa_flags = SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, NULL);
}

static int work(char **argv)
{
    const int count = atoi(argv[1]);
    const double seconds = atof(argv[2]) / 1e3, own = atof(argv[3]) / 1e3;
    double children = 0;

    if (count > COUNT_MAX)
        return 2;
    set_how(argv[0]);
    if (count == 0)
        burn(own);
    for (int i = 0; i < count; i++) {
        burn(own / count);
        if (fork() == 0)
            be_child(i, seconds, strcmp(argv[0], "orphans") == 0);
        if (strcmp(argv[0], "waits") == 0 || strcmp(argv[0], "orphans") == 0)
            wait(NULL);
        await(i);
        children += used[i];
    }
    printf("%.6f %.6f\n", cpu_seconds(), children);
    return 0;
}

int main(int argc, char **argv)
{
    int within = argc > 1 && strcmp(argv[1], "within") == 0, status = 0;

    if (argc - within != 5)
        return 2;
    used = mmap(NULL, COUNT_MAX * sizeof(*used), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (used == MAP_FAILED)
        return 1;
    if (!within)
        return work(argv + 1);
    if (fork() == 0)
        exit(work(argv + 2));
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
