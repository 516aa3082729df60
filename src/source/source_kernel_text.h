/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kernel_text.h - what the kernel's /proc files say, as structs.
 *
 *     char text[1024];
 *     struct wm_pid_stat stat;
 *     if (wm_file_reread(fd, text, sizeof(text)) > 0 &&
 *         wm_parse_pid_stat(text, &stat) == WM_OK)
 *         use(stat.utime + stat.stime);
 *
 * For every function here:
 *   - the text ends with a NUL and is not changed; nothing is allocated;
 *   - the return value is WM_OK, or WM_EFORMAT for text that the kernel would
 *     not have written, a text cut off within a number included;
 *   - out-parameters (`ret_...`) are written on success and only then;
 *   - times are in clock ticks, sysconf(_SC_CLK_TCK) of them a second; sizes
 *     are in bytes unless it says pages.
 * See proc(5) and Documentation/filesystems/proc.rst of the kernel.
 */
#ifndef WM_SOURCE_KERNEL_TEXT_H
#define WM_SOURCE_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wattmeter/error.h"

/* /proc/PID/stat and /proc/PID/task/TID/stat. */
struct wm_pid_stat {
    pid_t pid;
    pid_t ppid;       /* 0 where the parent is in an outer pid namespace */
    char comm[64];    /* valid UTF-8; kernel threads have names longer than 15 */
    char state;       /* 'R', 'S', 'D', 'Z' (a zombie), 'T', 't', 'X', 'I', ... */
    uint64_t minflt;  /* page faults that needed no disk */
    uint64_t cminflt; /* of the children it has waited for, theirs included */
    uint64_t utime;   /* of the process with its threads */
    uint64_t stime;
    uint64_t cutime; /* of the children it has waited for, as above */
    uint64_t cstime;
    uint64_t threads;
    uint64_t start_time;  /* since boot; with the pid, it names one process */
    uint64_t start_stack; /* address; 0: it may not be known, or the text ends before it */
    uint64_t ignored;     /* bit N - 1: it ignores signal N; 0 where the text ends before */
};

int wm_parse_pid_stat(const char *text, struct wm_pid_stat *ret_stat);

/* /proc/PID/statm, in pages. */
struct wm_statm {
    uint64_t size;
    uint64_t resident;
    uint64_t shared; /* of the resident ones: backed by a file or by shmem */
};

int wm_parse_statm(const char *text, struct wm_statm *ret_statm);

/* /proc/PID/smaps_rollup. Huge pages of hugetlbfs are in neither. */
struct wm_smaps_rollup {
    uint64_t rss, pss;
    uint64_t private_clean, private_dirty;
};

/* In whatever order the fields come. */
int wm_parse_smaps_rollup(const char *text, struct wm_smaps_rollup *ret_rollup);

/* One "cpuN" line of /proc/stat. Busy is the time in which the core ran
 * something, interrupts and time stolen by the hypervisor included. Time of
 * guests is in there once: the kernel counts it in user time too. */
struct wm_cpu_ticks {
    uint32_t cpu;
    uint64_t busy;
};

/* /proc/stat. */
struct wm_proc_stat {
    uint64_t busy;       /* all cores since boot, those now offline included */
    uint64_t stolen;     /* of that, what the hypervisor gave to others, */
    uint64_t interrupts; /* and what interrupts took */
    uint64_t forks;      /* processes and threads made since boot */
    size_t cpu_count;    /* "cpuN" lines, of cores that are online */
};

/* Fills cpus[] with the first `room` of the "cpuN" lines, in ascending order of
 * N; lines in another order are WM_EFORMAT. More of them than `room` is no error: see
 * cpu_count. `cpus` may be NULL when `room` is 0. */
int wm_parse_proc_stat(const char *text, struct wm_cpu_ticks *cpus, size_t room,
                       struct wm_proc_stat *ret_stat);

/* /proc/meminfo. */
struct wm_meminfo {
    uint64_t total;
    uint64_t available; /* what a new program could have; never above total */
};

int wm_parse_meminfo(const char *text, struct wm_meminfo *ret_meminfo);

/* /proc/loadavg. */
struct wm_loadavg {
    double load1;
    pid_t last_pid; /* newest in our pid namespace */
};

int wm_parse_loadavg(const char *text, struct wm_loadavg *ret_loadavg);

/* A line such as "VmHWM:      1708 kB" of /proc/PID/status: `name` is what
 * stands before the colon. WM_ENOENT where there is no such line, as in the
 * status of a kernel thread or of a zombie. */
int wm_parse_status_kb(const char *text, const char *name, uint64_t *ret_bytes);

/* The numbers of a line such as "NSpid:\t4711\t12\t1" of /proc/PID/status, whose name is
 * "NSpid:", into numbers[0..room); `ret_count` counts all. WM_ENOENT where there is no such
 * line, as in the status of a kernel from before it was invented. */
int wm_parse_status_numbers(const char *text, const char *name, uint64_t *numbers,
                            size_t room, size_t *ret_count);

/* The moment of boot of /proc/stat, in seconds since 1970. */
int wm_parse_boot_time(const char *text, uint64_t *ret_seconds);

/* A list of pids with white space after each of them: /proc/PID/task/TID/children,
 * cgroup.procs. Fills pids[] with the first `room`; `ret_count` counts all. */
int wm_parse_pid_list(const char *text, pid_t *pids, size_t room, size_t *ret_count);

/* A list of CPUs such as "0-3,8,10-11" of cpumask or topology files, into
 * cpus[0..room), in ascending order; `ret_count` counts all. The line may be empty. */
int wm_parse_cpu_list(const char *text, uint32_t *cpus, size_t room, size_t *ret_count);

/* What /proc/cpuinfo says of its first CPU. What is not there is empty or 0: ARM
 * has none of the first five. */
struct wm_cpuinfo {
    char vendor[16]; /* "GenuineIntel" */
    char name[80];   /* "Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz"; valid UTF-8 */
    uint64_t family; /* 6 */
    uint64_t model;  /* 85 */
    uint64_t stepping;
    bool has_sgx;  /* among its flags */
    bool is_guest; /* a virtual machine's; among the flags of x86 only */
    bool is_arm;
};

/* The text may end within the second CPU or later. */
int wm_parse_cpuinfo(const char *text, struct wm_cpuinfo *ret_cpuinfo);

#endif
