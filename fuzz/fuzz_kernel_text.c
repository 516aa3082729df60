/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_kernel_text.c - hostile text for every parser of /proc. Each input goes
 * through all of them, so that the captured files of tests/data/proc are seeds
 * as they are. Beyond not crashing, a parser must not write on failure, and
 * what it accepts must keep what its header promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "fuzz.h"
#include "source/source_kernel_text.h"

#define PARSE(function, text, result)                                                      \
    (memset(&(result), UNTOUCHED, sizeof(result)),                                         \
     function((text), &(result)) == WM_OK                                                  \
         ? true                                                                            \
         : (require_untouched(&(result), sizeof(result)), false))

static void fuzz_process(const char *text)
{
    struct wm_pid_stat stat;
    struct wm_statm statm;
    struct wm_smaps_rollup rollup;
    uint64_t bytes;

    if (PARSE(wm_parse_pid_stat, text, stat)) {
        char again[2 * sizeof(stat.comm)];
        size_t length = strlen(stat.comm);

        require(stat.pid > 0 && stat.ppid >= 0);
        require(length < sizeof(stat.comm));
        wm_text_utf8(again, sizeof(again), stat.comm, length);
        require(strcmp(again, stat.comm) == 0);
    }
    PARSE(wm_parse_statm, text, statm);
    if (PARSE(wm_parse_smaps_rollup, text, rollup))
        require(rollup.pss % 1024 == 0);
    if (wm_parse_status_kb(text, "VmHWM", &bytes) == WM_OK)
        require(bytes % 1024 == 0);
}

static void fuzz_machine(const char *text)
{
    struct wm_cpu_ticks cpus[4];
    struct wm_proc_stat stat, counted;
    struct wm_meminfo meminfo;
    struct wm_loadavg loadavg;
    struct wm_cpuinfo cpuinfo;

    int status = wm_parse_proc_stat(text, cpus, 4, &stat);
    require(wm_parse_proc_stat(text, NULL, 0, &counted) == status);
    if (status == WM_OK) {
        require(stat.cpu_count == counted.cpu_count && stat.busy == counted.busy);
        for (size_t i = 1; i < stat.cpu_count && i < 4; i++)
            require(cpus[i].cpu > cpus[i - 1].cpu);
    }
    if (PARSE(wm_parse_meminfo, text, meminfo))
        require(meminfo.available <= meminfo.total);
    if (PARSE(wm_parse_cpuinfo, text, cpuinfo))
        require(strlen(cpuinfo.vendor) < sizeof(cpuinfo.vendor) &&
                strlen(cpuinfo.name) < sizeof(cpuinfo.name));
    if (PARSE(wm_parse_loadavg, text, loadavg))
        require(loadavg.load1 >= 0 && loadavg.last_pid >= 0);
}

static void fuzz_list(const char *text)
{
    pid_t pids[4];
    uint32_t cpus[4];
    size_t count;

    if (wm_parse_pid_list(text, pids, 4, &count) == WM_OK) {
        require(count <= strlen(text));
        for (size_t i = 0; i < count && i < 4; i++)
            require(pids[i] > 0);
    }
    if (wm_parse_cpu_list(text, cpus, 4, &count) == WM_OK) {
        require(count <= 65536);
        for (size_t i = 1; i < count && i < 4; i++)
            require(cpus[i] > cpus[i - 1]);
    }
}

/* Bytes of any kind, into any room, become whole characters. */
static void fuzz_text(const uint8_t *data, size_t size)
{
    char once[64], twice[64];
    size_t room = size > 0 ? data[0] % sizeof(once) : 0;

    size_t length = wm_text_utf8(once, room, (const char *)data, size);
    require(length < room || room == 0);
    if (room > 0) {
        require(strlen(once) == length);
        require(wm_text_utf8(twice, sizeof(twice), once, length) == length);
        require(memcmp(once, twice, length + 1) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);

    fuzz_process(text);
    fuzz_machine(text);
    fuzz_list(text);
    fuzz_text(data, size);
    free(text);
    return 0;
}
