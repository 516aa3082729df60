/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stolen.c - to be preloaded: a machine whose hypervisor takes a share of the cores away,
 * WM_STOLEN of what runs. perf's clocks count that, and /proc/stat says so; the clocks of
 * processes do not. Only what is read is changed, no time is really lost.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { FIELDS = 7 }; /* of a line of /proc/stat: user nice system idle iowait irq softirq */

static double share(void)
{
    const char *text = getenv("WM_STOLEN");

    return text ? strtod(text, NULL) : 0;
}

/* In place: the idle time, which nobody reads here, makes room for what is stolen. */
static void steal_in_stat(char *text, size_t length)
{
    unsigned long long f[FIELDS];
    char line[256];
    char *end = memchr(text, '\n', length);

    if (!end || sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2],
                       &f[3], &f[4], &f[5], &f[6]) != FIELDS)
        return;
    double stolen = share() * (double)(f[0] + f[1] + f[2]);
    int size = snprintf(line, sizeof(line), "cpu  %llu %llu %llu 0 0 %llu %llu %.0f", f[0],
                        f[1], f[2], f[5], f[6], stolen);
    if (size > 0 && size <= end - text) {
        memset(text, ' ', (size_t)(end - text));
        memcpy(text, line, (size_t)size);
    }
}

ssize_t read(int fd, void *buffer, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    char path[32], target[64] = "";
    uint64_t time_ns;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    ssize_t got = real(fd, buffer, size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (got <= 0 || readlink(path, target, sizeof(target) - 1) <= 0)
        return got;
    if (got == sizeof(time_ns) && strcmp(target, "anon_inode:[perf_event]") == 0) {
        memcpy(&time_ns, buffer, sizeof(time_ns));
        time_ns += (uint64_t)(share() * (double)time_ns);
        memcpy(buffer, &time_ns, sizeof(time_ns));
    } else if (strcmp(target, "/proc/stat") == 0) {
        steal_in_stat(buffer, (size_t)got);
    }
    return got;
}
