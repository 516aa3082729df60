/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_tree.c - a command that forks, executes, allocates, computes and ends at random,
 * the same way for the same number: `random_tree SEED [DEPTH]`. Each process writes a line
 * to descriptor 3 when it ends by itself, where that is open: its pid and VmHWM in kB.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

enum { DEPTH_MAX = 3, ACTS_MAX = 6, LOG_FD = 3 };

static unsigned long state;

/* The last memory that was made, by this process or before it was forked: shared with
 * those it forks, or copied by them. */
static char *used;
static size_t used_bytes;
static int used_kind;

static unsigned below(unsigned limit)
{
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(state >> 33) % limit;
}

static void rest(unsigned ms)
{
    const struct timespec time = { .tv_nsec = (long)ms * 1000000 };

    nanosleep(&time, NULL);
}

static void burn(unsigned ms)
{
    while (clock() < (clock_t)ms * (CLOCKS_PER_SEC / 1000))
        ;
}

/* Memory that is written to, so that it is there. */
static void *take(size_t bytes, int kind)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        exit(1);
    return memset(memory, 1, bytes);
}

static void keep(size_t bytes, int kind)
{
    used = take(bytes, kind);
    used_bytes = bytes;
    used_kind = kind;
}

/* Reads what is shared, and writes to what is not, a part after the other. */
static void use(void)
{
    for (size_t at = 0; at < used_bytes; at += 4096) {
        volatile char *byte = used + at;
        if (used_kind == MAP_PRIVATE)
            *byte = 2;
        else
            (void)*byte;
        if (at % (2 * MB) == 0)
            rest(1);
    }
}

static void tell_peak(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");

    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            dprintf(LOG_FD, "%d %ld\n", (int)getpid(), strtol(line + 6, NULL, 10));
    }
    if (status)
        fclose(status);
}

static void act(const char *program, unsigned depth);

static void make_child(const char *program, unsigned depth)
{
    unsigned seed = below(1000000), fate = below(3);

    pid_t pid = fork();
    if (pid == 0) {
        state = seed;
        if (fate == 0) {
            char number[32], level[32];
            snprintf(number, sizeof(number), "%u", seed);
            snprintf(level, sizeof(level), "%u", depth + 1);
            execl(program, program, number, level, (char *)NULL);
            _exit(127);
        }
        act(program, depth + 1);
        tell_peak();
        _exit(0);
    }
    if (fate == 1)
        waitpid(pid, NULL, 0);
}

static void act(const char *program, unsigned depth)
{
    for (unsigned count = 1 + below(ACTS_MAX); count > 0; count--) {
        size_t bytes = (1 + below(16)) * MB;

        switch (below(9)) {
        case 0:
            burn(1 + below(10));
            break;
        case 1:
            rest(below(15));
            break;
        case 2: { /* a spike */
            void *memory = take(bytes, MAP_PRIVATE);
            rest(below(3));
            munmap(memory, bytes);
            break;
        }
        case 3:
            keep(bytes, below(2) == 0 ? MAP_PRIVATE : MAP_SHARED);
            break;
        case 5:
        case 6:
            use();
            break;
        case 4:
            if (below(4) == 0)
                return;
            break;
        default:
            if (depth < DEPTH_MAX)
                make_child(program, depth);
        }
    }
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    below(2); /* so that neighbours differ */
    act(argv[0], argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0);
    tell_peak();
    return 0;
}
