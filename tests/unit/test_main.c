/* SPDX-License-Identifier: Apache-2.0 */
/* test_main.c - all unit tests in one program, `unit [NAME...]`: linked once, and each
 * test in a process of its own, so that none meets what another one has left. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DECLARE(name) int unit_##name(void);
UNITS(DECLARE)

#define ROW(name) { #name, unit_##name },
static const struct {
    const char *name;
    int (*run)(void);
} units[] = { UNITS(ROW) };

enum { COUNT = sizeof(units) / sizeof(units[0]) };

/* Whether it has passed. */
static bool run_apart(int (*run)(void))
{
    int status = -1;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run() != 0 ? 1 : 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int find(const char *name)
{
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(units[i].name, name) == 0)
            return i;
    }
    fprintf(stderr, "unit: there is no test '%s'\n", name);
    return -1;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc == 2) {
        int index = find(argv[1]);
        return index < 0 ? 2 : units[index].run();
    }
    for (int i = 1; i < argc; i++) {
        int index = find(argv[i]);
        failed += index < 0 || !run_apart(units[index].run);
    }
    for (int i = 0; i < COUNT && argc == 1; i++)
        failed += !run_apart(units[i].run);
    return failed > 0;
}
