/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c - a program with regions, for test_regions.py: regions WHAT [NUMBER...]. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wattmeter/region.h"

static const char *program;

static void pause_ms(long ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    nanosleep(&time, NULL);
}

static void recurse(long depth)
{
    WM_REGION("recursion");
    if (depth > 1)
        recurse(depth - 1);
}

static int nested(const long *numbers)
{
    (void)numbers;
    wm_region_begin("outer");
    for (int i = 0; i < 3; i++) {
        WM_REGION("inner");
        pause_ms(10);
    }
    wm_region_end();
    wm_region_begin("inner");
    wm_region_end();
    return 0;
}

static int recursive(const long *numbers)
{
    recurse(numbers[0]);
    return 0;
}

static void *call(void *context)
{
    long count = *(const long *)context;

    for (long i = 0; i < count; i++) {
        wm_region_begin("outer");
        wm_region_begin("inner");
        wm_region_end();
        wm_region_end();
    }
    return NULL;
}

/* THREADS that make so many CALLS each. */
static int threads(const long *numbers)
{
    pthread_t all[256];
    long count = numbers[1];

    for (long i = 0; i < numbers[0]; i++)
        if (pthread_create(&all[i], NULL, call, &count) != 0)
            return 1;
    for (long i = 0; i < numbers[0]; i++)
        pthread_join(all[i], NULL);
    return 0;
}

/* PROCESSES with THREADS that make so many CALLS each. */
static int processes(const long *numbers)
{
    int failed = 0, status;

    for (long i = 0; i < numbers[0]; i++)
        if (fork() == 0)
            _exit(threads(numbers + 1));
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}

/* The child has nothing open, and what it executes begins anew. */
static int forks(const long *numbers)
{
    (void)numbers;
    wm_region_begin("parent");
    pid_t child = fork();
    if (child == 0) {
        wm_region_begin("child");
        wm_region_end();
        wm_region_begin("before exec");
        execl(program, program, "nested", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    wm_region_end();
    return 0;
}

static void *stop(void *region)
{
    wm_region_stop(*(const uint64_t *)region);
    return NULL;
}

/* They overlap, and another thread stops one. */
static int free_calls(const long *numbers)
{
    pthread_t thread;

    (void)numbers;
    wm_region_begin("around");
    uint64_t first = wm_region_start("request");
    uint64_t second = wm_region_start("request");
    uint64_t third = wm_region_start("answer");
    wm_region_stop(first);
    if (pthread_create(&thread, NULL, stop, &second) != 0)
        return 1;
    pthread_join(thread, NULL);
    wm_region_end();
    wm_region_stop(third);
    return 0;
}

/* From standard input, each ended by a NUL. */
static int names(const long *numbers)
{
    static char text[65536];
    size_t length = fread(text, 1, sizeof(text) - 1, stdin);

    (void)numbers;
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        WM_REGION(text + at);
    }
    return 0;
}

static int strays(const long *numbers)
{
    (void)numbers;
    wm_region_end();
    wm_region_stop(12345);
    wm_region_begin("sound");
    wm_region_end();
    wm_region_end();
    return 0;
}

static int open_at_end(const long *numbers)
{
    (void)numbers;
    wm_region_begin("open");
    wm_region_begin("done");
    wm_region_end();
    wm_region_start("started");
    return 0;
}

static int killed(const long *numbers)
{
    (void)numbers;
    wm_region_begin("around");
    for (int i = 0; i < 1000; i++) {
        WM_REGION("done");
    }
    wm_region_begin("never");
    return raise(SIGKILL);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* For MILLISECONDS, with a PAUSE in each call; says how often it has done it. */
static int repeats(const long *numbers)
{
    int64_t until_ns = now_ns() + numbers[0] * 1000000;
    long count = 0;

    wm_region_begin("around");
    do {
        wm_region_begin("step");
        wm_region_begin(count % 2 ? "odd" : "even");
        pause_ms(numbers[1]);
        wm_region_end();
        wm_region_end();
        count++;
    } while (now_ns() < until_ns);
    printf("%ld\n", count);
    return fflush(stdout);
}

/* Until the file that STOP names is there, with a PAUSE in each call; says where its
 * regions go, then when each call had ended, as numbers in memory, and that it is over. */
static int stamps(const long *numbers)
{
    static int64_t ends[1 << 20];
    const char *inbox = getenv("WATTMETER_REGIONS");
    size_t count = 0;

    printf("%s\n", inbox ? inbox : "");
    fflush(stdout);
    const char *stop = getenv("STOP");
    int64_t look_ns = 0;
    bool is_over = false;
    wm_region_begin("around");
    do {
        wm_region_begin("step");
        pause_ms(numbers[0]);
        wm_region_end();
        ends[count++] = now_ns();
        if (ends[count - 1] < look_ns)
            continue;
        look_ns = ends[count - 1] + 10000000;
        is_over = stop && access(stop, F_OK) == 0;
    } while (!is_over && count < sizeof(ends) / sizeof(ends[0]));
    fwrite(ends, sizeof(ends[0]), count, stdout);
    fputs("over", stdout);
    return fflush(stdout);
}

/* Calls of so many names in turn that none are taken together: a row each. */
static int unlike(const long *numbers)
{
    enum { NAMES = 64 };
    static char names[NAMES][8];

    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof(names[i]), "n%d", i);
    for (long i = 0; i < numbers[0]; i++) {
        wm_region_begin(names[i % NAMES]);
        wm_region_end();
    }
    return 0;
}

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Works in one region, sleeps in another, and prints what the one had of the processor. */
static int clocks(const long *numbers)
{
    double sum_s = 0;

    for (long i = 0; i < numbers[0]; i++) {
        wm_region_begin("work");
        double from_s = cpu_s();
        while (cpu_s() < from_s + 0.02)
            ;
        sum_s += cpu_s() - from_s;
        wm_region_end();
        wm_region_begin("sleep");
        pause_ms(23);
        wm_region_end();
    }
    printf("%.9f\n", sum_s);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const long *numbers);
} all[] = {
    { "nested", nested }, { "recursive", recursive }, { "threads", threads },
    { "forks", forks },   { "processes", processes }, { "free", free_calls },
    { "names", names },   { "strays", strays },       { "open", open_at_end },
    { "killed", killed }, { "repeats", repeats },     { "stamps", stamps },
    { "clocks", clocks }, { "unlike", unlike },
};

int main(int argc, char **argv)
{
    long numbers[8] = { 0 };

    program = argv[0];
    for (int i = 2; i < argc && i < 10; i++)
        numbers[i - 2] = atol(argv[i]);
    for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(argv[1], all[i].name) == 0)
            return all[i].run(numbers);
    return 2;
}
