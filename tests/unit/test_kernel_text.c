/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_text.c - the parsers of /proc, on captured, cut and made-up text. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "source/source_kernel_text.h"

#define BAD "\xef\xbf\xbd"

/* What stands behind the name of every process here, up to the start time. */
#define STAT_TAIL                                                                          \
    " S 10 1 1 0 -1 4194304 5 6 0 0 11 12 13 14 20 0 3 0 209597 1097 7620 18\n"

static void test_pid_stat(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        const char *comm;
    } cases[] = {
        { "plain", "42 (sh)" STAT_TAIL, WM_OK, "sh" },
        { "blanks", "42 (Web Content 1)" STAT_TAIL, WM_OK, "Web Content 1" },
        { "nothing", "42 ()" STAT_TAIL, WM_OK, "" },
        { "parentheses", "42 (((a)) (b))" STAT_TAIL, WM_OK, "((a)) (b)" },
        { "one that plays stat", "42 (x) R 1 1 (y)" STAT_TAIL, WM_OK, "x) R 1 1 (y" },
        { "newlines", "42 (a\n(b)\nc)" STAT_TAIL, WM_OK, "a\n(b)\nc" },
        { "not UTF-8", "42 (\xff\xe9)" STAT_TAIL, WM_OK, BAD BAD },
        { "longer than there is room",
          "42 "
          "(0123456789012345678901234567890123456789012345678901234567890123456)" STAT_TAIL,
          WM_OK, "012345678901234567890123456789012345678901234567890123456789012" },
        { "a kernel thread",
          "42 (kworker/u256:12-events_unbound_and_then_some_more_of_it_xxx)" STAT_TAIL,
          WM_OK, "kworker/u256:12-events_unbound_and_then_some_more_of_it_xxx" },
        { "empty", "", WM_EFORMAT, NULL },
        { "only a newline", "\n", WM_EFORMAT, NULL },
        { "only a pid", "42", WM_EFORMAT, NULL },
        { "only a pid and a blank", "42 ", WM_EFORMAT, NULL },
        { "the name not closed", "42 (sh", WM_EFORMAT, NULL },
        { "nothing behind the name", "42 (sh)", WM_EFORMAT, NULL },
        { "only a blank behind it", "42 (sh) ", WM_EFORMAT, NULL },
        { "only a state behind it", "42 (sh) S", WM_EFORMAT, NULL },
        { "no state", "42 (sh)  10 1 1 0 -1 0 5 6 0 0 1 2 3 4 20 0 1 0 9 1\n", WM_EFORMAT,
          NULL },
        { "no parentheses", "42 sh" STAT_TAIL, WM_EFORMAT, NULL },
        { "no blank", "42(sh)" STAT_TAIL, WM_EFORMAT, NULL },
        { "pid 0", "0 (sh)" STAT_TAIL, WM_EFORMAT, NULL },
        { "negative pid", "-42 (sh)" STAT_TAIL, WM_EFORMAT, NULL },
        { "pid that fits no pid_t", "4294967338 (sh)" STAT_TAIL, WM_EFORMAT, NULL },
        { "no pid", "(sh)" STAT_TAIL, WM_EFORMAT, NULL },
        { "negative time", "42 (sh) S 10 1 1 0 -1 0 5 6 0 0 -11 12 13 14 20 0 3 0 9 1\n",
          WM_EFORMAT, NULL },
        { "huge time",
          "42 (sh) S 10 1 1 0 -1 0 5 6 0 0 11 18446744073709551616 13 14 20 0 3 0 9 1\n",
          WM_EFORMAT, NULL },
        { "letters for a time", "42 (sh) S 10 1 1 0 -1 0 5 6 0 0 11 12 x 14 20 0 3 0 9 1\n",
          WM_EFORMAT, NULL },
        { "a field too few", "42 (sh) S 10 1 1 0 -1 0 5 6 0 0 11 12 13 14 20 0 3 0\n",
          WM_EFORMAT, NULL },
        { "lines too many", "42 (sh) S 10\n1 1 0 -1 0 5 6 0 0 11 12 13 14 20 0 3 0 9 1\n",
          WM_EFORMAT, NULL },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_pid_stat stat = { .threads = 777 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_pid_stat(cases[i].text, &stat), cases[i].status);
        if (cases[i].status < 0) {
            assert_int_equal(stat.threads, 777);
            continue;
        }
        assert_string_equal(stat.comm, cases[i].comm);
        assert_int_equal(stat.pid, 42);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.ppid, 10);
        assert_int_equal(stat.utime, 11);
        assert_int_equal(stat.stime, 12);
        assert_int_equal(stat.minflt, 5);
        assert_int_equal(stat.cminflt, 6);
        assert_int_equal(stat.cutime, 13);
        assert_int_equal(stat.cstime, 14);
        assert_int_equal(stat.threads, 3);
        assert_int_equal(stat.start_time, 209597);
    }
}

/* Wherever it is cut, a text is either refused or gives what the whole gives. */
static void test_pid_stat_cut(void **state)
{
    static const char whole[] = "42 (a) b)" STAT_TAIL;
    struct wm_pid_stat full, part;
    char text[sizeof(whole)];
    size_t accepted = 0;
    (void)state;

    assert_int_equal(wm_parse_pid_stat(whole, &full), WM_OK);
    for (size_t length = 0; length < sizeof(whole); length++) {
        memcpy(text, whole, length);
        text[length] = '\0';
        if (wm_parse_pid_stat(text, &part) < 0)
            continue;
        accepted++;
        assert_int_equal(part.start_time, full.start_time);
        assert_int_equal(part.cstime, full.cstime);
    }
    assert_int_equal(accepted, strlen(" 1097 7620 18\n"));
}

static void test_statm(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        uint64_t size, resident, shared;
    } cases[] = {
        { "captured", "26737 7641 1706 1 0 8243 0\n", WM_OK, 26737, 7641, 1706 },
        { "a kernel thread", "0 0 0 0 0 0 0\n", WM_OK, 0, 0, 0 },
        { "no more than needed", "1 2 3 ", WM_OK, 1, 2, 3 },
        { "nothing", "", WM_EFORMAT, 0, 0, 0 },
        { "one number", "26737", WM_EFORMAT, 0, 0, 0 },
        { "two numbers", "26737 7641", WM_EFORMAT, 0, 0, 0 },
        { "cut behind the third", "26737 7641 1706", WM_EFORMAT, 0, 0, 0 },
        { "a line too early", "26737 7641\n1706 1 0 8243 0\n", WM_EFORMAT, 0, 0, 0 },
        { "negative", "-1 7641 1706 1 0 8243 0\n", WM_EFORMAT, 0, 0, 0 },
        { "huge", "26737 99999999999999999999 1706 1\n", WM_EFORMAT, 0, 0, 0 },
        { "a suffix", "26737 7641k 1706 1 0 8243 0\n", WM_EFORMAT, 0, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_statm statm = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_statm(cases[i].text, &statm), cases[i].status);
        assert_int_equal(statm.size, cases[i].size);
        assert_int_equal(statm.resident, cases[i].resident);
        assert_int_equal(statm.shared, cases[i].shared);
    }
}

static void test_smaps_rollup(void **state)
{
#define PRIVATE "Rss: 8 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 4 kB\n"
    static const struct {
        const char *what;
        const char *text;
        uint64_t pss; /* 0: not what the kernel writes */
    } cases[] = {
        { "in another order",
          "1000-2000 ---p 00000000 00:00 0   [rollup]\n" PRIVATE "Pss: 2 kB\n", 2048 },
        { "names that only start alike", "Pss_Dirty: 7 kB\nPss: 1 kB\n" PRIVATE, 1024 },
        { "no last newline", PRIVATE "Pss:\t2048 kB", 2097152 },
        { "cut between two lines", "Rss: 8 kB\nPss: 2 kB\nPriv", 0 },
        { "one is missing", "Rss: 8 kB\nPss: 2 kB\nPrivate_Dirty: 4 kB\n", 0 },
        { "its size is missing", "Pss: 2 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 4 kB\n",
          0 },
        { "nothing", "", 0 },
        { "only the head", "1000-2000 ---p 00000000 00:00 0   [rollup]\n", 0 },
        { "nothing known", "Swap: 8 kB\nLocked: 2 kB\n", 0 },
        { "cut within a number", PRIVATE "Pss: 2", 0 },
        { "cut within the unit", PRIVATE "Pss: 8 k", 0 },
        { "another unit", PRIVATE "Pss: 8 MB\n", 0 },
        { "no unit", PRIVATE "Pss: 8\nPss: 2 kB\n", 0 },
        { "more than a unit", PRIVATE "Pss: 8 kB of it\n", 0 },
        { "negative", PRIVATE "Pss: -8 kB\n", 0 },
        { "more bytes than there are", PRIVATE "Pss: 18014398509481984 kB\n", 0 },
        { "no number", PRIVATE "Pss: kB\n", 0 },
    };
#undef PRIVATE
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_smaps_rollup rollup = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_smaps_rollup(cases[i].text, &rollup),
                         cases[i].pss ? WM_OK : WM_EFORMAT);
        assert_int_equal(rollup.pss, cases[i].pss);
        assert_int_equal(rollup.rss, cases[i].pss ? 8192 : 0);
        assert_int_equal(rollup.private_clean, cases[i].pss ? 1024 : 0);
        assert_int_equal(rollup.private_dirty, cases[i].pss ? 4096 : 0);
    }
}

/* Core numbers and busy times are those of the first two "cpuN" lines. */
static void test_proc_stat(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        uint64_t busy, stolen, interrupts, forks;
        size_t cpu_count;
        uint64_t cpu[2], cpu_busy[2];
    } cases[] = {
        { "all of today's fields",
          "cpu  1 2 3 1000 2000 4 5 6 7 8\ncpu0 1 0 0 1000 2000 0 0 0 0 0\n"
          "cpu1 0 2 3 0 0 4 5 6 7 8\nintr 9 8 7\nctxt 5\nbtime 6\nprocesses 77\n",
          21,
          6,
          9,
          77,
          2,
          { 0, 1 },
          { 1, 20 } },
        { "fields of Linux 2.4",
          "cpu  1 2 3 1000\ncpu0 1 2 3 1000\nprocesses 7\n",
          6,
          0,
          0,
          7,
          1,
          { 0, 0 },
          { 6, 0 } },
        { "fields of tomorrow",
          "cpu  1 1 1 9 9 1 1 1 9 9 9 9\nprocesses 7\n",
          6,
          1,
          2,
          7,
          0,
          { 0, 0 },
          { 0, 0 } },
        { "a core offline",
          "cpu  5 0 0 9\ncpu0 2 0 0 9\ncpu255 1 0 0 9\nprocesses 7\n",
          5,
          0,
          0,
          7,
          2,
          { 0, 255 },
          { 2, 1 } },
        { "more cores than room",
          "cpu  5 0 0 9\ncpu0 2 0 0 9\ncpu1 1 0 0 9\ncpu2 2 0 0 9\nprocesses 7\n",
          5,
          0,
          0,
          7,
          3,
          { 0, 1 },
          { 2, 1 } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_proc_stat stat = { 0 };
        struct wm_cpu_ticks cpus[2] = { { 0, 0 }, { 0, 0 } };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_proc_stat(cases[i].text, cpus, 2, &stat), WM_OK);
        assert_int_equal(stat.busy, cases[i].busy);
        assert_int_equal(stat.stolen, cases[i].stolen);
        assert_int_equal(stat.interrupts, cases[i].interrupts);
        assert_int_equal(stat.forks, cases[i].forks);
        assert_int_equal(stat.cpu_count, cases[i].cpu_count);
        for (size_t c = 0; c < ARRAY_LEN(cpus); c++) {
            assert_int_equal(cpus[c].cpu, cases[i].cpu[c]);
            assert_int_equal(cpus[c].busy, cases[i].cpu_busy[c]);
        }
        assert_int_equal(wm_parse_proc_stat(cases[i].text, NULL, 0, &stat), WM_OK);
        assert_int_equal(stat.cpu_count, cases[i].cpu_count);
    }
}

static void test_bad_proc_stat(void **state)
{
    static const struct {
        const char *what;
        const char *text;
    } cases[] = {
        { "nothing", "" },
        { "no total", "cpu0 1 2 3 4\nprocesses 7\n" },
        { "too few fields", "cpu  1 2 3\nprocesses 7\n" },
        { "no forks", "cpu  1 2 3 4\ncpu0 1 2 3 4\n" },
        { "cut before the forks' end", "cpu  1 2 3 4\nprocesses 7" },
        { "cut within a core", "cpu  1 2 3 4\ncpu0 1 2 3" },
        { "negative time", "cpu  1 -2 3 4\nprocesses 7\n" },
        { "huge time", "cpu  1 99999999999999999999 3 4\nprocesses 7\n" },
        { "a sum that does not fit", "cpu  18446744073709551615 1 0 0\nprocesses 7\n" },
        { "a core without a number", "cpu  1 2 3 4\ncpux 1 2 3 4\nprocesses 7\n" },
        { "a core number that does not fit",
          "cpu  1 2 3 4\ncpu4294967296 1 2 3 4\nprocesses 7\n" },
        { "a core twice", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu0 1 2 3 4\nprocesses 7\n" },
        { "cores in disorder", "cpu  1 2 3 4\ncpu1 1 2 3 4\ncpu0 1 2 3 4\nprocesses 7\n" },
        { "letters for forks", "cpu  1 2 3 4\nprocesses many\n" },
        { "binary", "\x7f\x45LF\x02\x01\xff\xfe" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_proc_stat stat = { .busy = 777 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_proc_stat(cases[i].text, NULL, 0, &stat), WM_EFORMAT);
        assert_int_equal(stat.busy, 777);
    }
}

static void test_meminfo(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        uint64_t total, available;
    } cases[] = {
        { "of today",
          "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\nBuffers: 1 kB\n", WM_OK,
          102400, 61440 },
        { "before Linux 3.14",
          "MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 1 kB\nCached: 30 kB\nSwapCached: 5 "
          "kB\n",
          WM_OK, 102400, 41984 },
        { "all available", "MemTotal: 100 kB\nMemAvailable: 100 kB\n", WM_OK, 102400,
          102400 },
        { "in another order", "MemAvailable: 60 kB\nMemTotal: 100 kB\n", WM_OK, 102400,
          61440 },
        { "nothing", "", WM_EFORMAT, 0, 0 },
        { "no total", "MemAvailable: 60 kB\n", WM_EFORMAT, 0, 0 },
        { "only a total", "MemTotal: 100 kB\n", WM_EFORMAT, 0, 0 },
        { "nothing cached", "MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 1 kB\n", WM_EFORMAT,
          0, 0 },
        { "more available than there is", "MemTotal: 100 kB\nMemAvailable: 101 kB\n",
          WM_EFORMAT, 0, 0 },
        { "a sum that does not fit",
          "MemTotal: 9 kB\nMemFree: 18014398509481983 kB\nBuffers: 1 kB\nCached: 1 kB\n",
          WM_EFORMAT, 0, 0 },
        { "another unit", "MemTotal: 100 MB\nMemAvailable: 60 kB\n", WM_EFORMAT, 0, 0 },
        { "cut", "MemTotal: 100 kB\nMemAvailable: 6", WM_EFORMAT, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_meminfo meminfo = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_meminfo(cases[i].text, &meminfo), cases[i].status);
        assert_int_equal(meminfo.total, cases[i].total);
        assert_int_equal(meminfo.available, cases[i].available);
    }
}

static void test_loadavg(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        double load1;
        pid_t last_pid;
    } cases[] = {
        { "idle", "0.05 0.01 0.00 1/92 7549\n", WM_OK, 0.05, 7549 },
        { "crowded", "1234.99 0.01 0.00 1/92 1\n", WM_OK, 1234.99, 1 },
        { "gVisor", "0.00 0.00 0.00 0/0 0\n", WM_OK, 0, 0 },
        { "nothing", "", WM_EFORMAT, 0, 0 },
        { "cut within the pid", "0.05 0.01 0.00 1/92 75", WM_EFORMAT, 0, 0 },
        { "cut before the pid", "0.05 0.01 0.00 1/92 \n", WM_EFORMAT, 0, 0 },
        { "cut before that", "0.05 0.01\n", WM_EFORMAT, 0, 0 },
        { "a line too early", "0.05\n0.01 0.00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "commas", "0,05 0,01 0,00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "one digit", "0.5 0.01 0.00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "three digits", "0.005 0.01 0.00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "no digit", ".05 0.01 0.00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "negative", "-1.05 0.01 0.00 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "not a number", "nan nan nan 1/92 7549\n", WM_EFORMAT, 0, 0 },
        { "a pid that does not fit", "0.05 0.01 0.00 1/92 4294967296\n", WM_EFORMAT, 0, 0 },
        { "a negative pid", "0.05 0.01 0.00 1/92 -1\n", WM_EFORMAT, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_loadavg loadavg = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_loadavg(cases[i].text, &loadavg), cases[i].status);
        assert_true(fabs(loadavg.load1 - cases[i].load1) < 1e-9);
        assert_int_equal(loadavg.last_pid, cases[i].last_pid);
    }
}

static void test_status_kb(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        uint64_t bytes;
    } cases[] = {
        { "in the middle",
          "Name:\tsh\nVmPeak:\t  9 kB\nVmHWM:\t    1708 kB\nVmRSS:\t 3 kB\n", WM_OK,
          1748992 },
        { "zero", "VmHWM: 0 kB\n", WM_OK, 0 },
        { "a name that plays the field", "Name:\tVmHWM: 5 kB\nVmHWM:\t6 kB\n", WM_OK,
          6144 },
        { "a kernel thread", "Name:\tkthreadd\nThreads:\t1\n", WM_ENOENT, 0 },
        { "names that are nearly it",
          "XVmHWM: 5 kB\nVmHWMX: 5 kB\n VmHWM: 5 kB\nVmHWM 5 kB\n", WM_ENOENT, 0 },
        { "nothing", "", WM_ENOENT, 0 },
        { "no value", "VmHWM:\n", WM_EFORMAT, 0 },
        { "no value, and a next line", "VmHWM:\nVmRSS: 5 kB\n", WM_EFORMAT, 0 },
        { "letters", "VmHWM: many kB\n", WM_EFORMAT, 0 },
        { "cut", "VmHWM: 17", WM_EFORMAT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t bytes = 0;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_status_kb(cases[i].text, "VmHWM", &bytes),
                         cases[i].status);
        assert_true(bytes == cases[i].bytes);
    }
}

static void test_status_numbers(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        size_t count;
        uint64_t first, second;
    } cases[] = {
        { "one", "NSpid:\t4711\n", WM_OK, 1, 4711, 777 },
        { "two", "Name:\tsh\nNSpid:\t4711\t12\nNSpgid:\t1\n", WM_OK, 2, 4711, 12 },
        { "more than there is room", "NSpid:\t4711\t12\t1\n", WM_OK, 3, 4711, 12 },
        { "blanks", "NSpid: 1  \t 2 \t\n", WM_OK, 2, 1, 2 },
        { "the largest", "NSpid:\t18446744073709551615\n", WM_OK, 1, UINT64_MAX, 777 },
        { "the first of two lines", "NSpid:\t1\nNSpid:\t2\n", WM_OK, 1, 1, 777 },
        { "no text", "", WM_ENOENT, 777, 777, 777 },
        { "no such line", "Name:\tsh\nPid:\t1\n", WM_ENOENT, 777, 777, 777 },
        { "only in a name", "Name:\tNSpid:\t1\n", WM_ENOENT, 777, 777, 777 },
        { "a longer name", "NSpids:\t1\n", WM_ENOENT, 777, 777, 777 },
        { "nothing behind it", "NSpid:", WM_EFORMAT, 777, 777, 777 },
        { "no number", "NSpid:\t\n", WM_EFORMAT, 777, 777, 777 },
        { "cut off within a number", "NSpid:\t4711\t1", WM_EFORMAT, 777, 777, 777 },
        { "cut off behind a blank", "NSpid:\t4711\t", WM_EFORMAT, 777, 777, 777 },
        { "negative", "NSpid:\t-1\n", WM_EFORMAT, 777, 777, 777 },
        { "letters", "NSpid:\t1\tx\n", WM_EFORMAT, 777, 777, 777 },
        { "too large", "NSpid:\t18446744073709551616\n", WM_EFORMAT, 777, 777, 777 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t numbers[2] = { 777, 777 };
        size_t count = 777;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(
            wm_parse_status_numbers(cases[i].text, "NSpid:", numbers, 2, &count),
            cases[i].status);
        assert_int_equal(count, cases[i].count);
        if (cases[i].status == WM_OK) {
            assert_int_equal(numbers[0], cases[i].first);
            assert_int_equal(numbers[1], cases[i].second);
        }
    }
}

static void test_boot_time(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        uint64_t seconds;
    } cases[] = {
        { "plain", "cpu  1 2 3 4\nbtime 1700000000\nprocesses 9\n", WM_OK, 1700000000 },
        { "the first line", "btime 0\n", WM_OK, 0 },
        { "empty", "", WM_EFORMAT, 777 },
        { "no such line", "cpu  1 2 3 4\n", WM_EFORMAT, 777 },
        { "within a line", "cpu btime 1\n", WM_EFORMAT, 777 },
        { "no number", "btime \n", WM_EFORMAT, 777 },
        { "negative", "btime -1\n", WM_EFORMAT, 777 },
        { "cut off", "btime 17", WM_EFORMAT, 777 },
        { "too large", "btime 18446744073709551616\n", WM_EFORMAT, 777 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t seconds = 777;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_boot_time(cases[i].text, &seconds), cases[i].status);
        assert_int_equal(seconds, cases[i].seconds);
    }
}

static void test_pid_list(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        size_t count;
        pid_t pids[3];
    } cases[] = {
        { "no children", "", WM_OK, 0, { 0 } },
        { "an empty line", "\n", WM_OK, 0, { 0 } },
        { "one", "7546 ", WM_OK, 1, { 7546 } },
        { "two", "7546 7547 ", WM_OK, 2, { 7546, 7547 } },
        { "cgroup.procs", "1\n2\n3\n", WM_OK, 3, { 1, 2, 3 } },
        { "more than room", "1 2 3 4 5 ", WM_OK, 5, { 1, 2, 3 } },
        { "the largest", "2147483647 ", WM_OK, 1, { 2147483647 } },
        { "cut", "7546 75", WM_EFORMAT, 0, { 0 } },
        { "zero", "0 ", WM_EFORMAT, 0, { 0 } },
        { "negative", "-1 ", WM_EFORMAT, 0, { 0 } },
        { "one that does not fit", "2147483648 ", WM_EFORMAT, 0, { 0 } },
        { "commas", "1,2 ", WM_EFORMAT, 0, { 0 } },
        { "letters", "one ", WM_EFORMAT, 0, { 0 } },
        { "binary", "\xff\xfe ", WM_EFORMAT, 0, { 0 } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        pid_t pids[3] = { 0 };
        size_t count = 0;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_pid_list(cases[i].text, pids, 3, &count),
                         cases[i].status);
        assert_int_equal(count, cases[i].count);
        if (cases[i].status == WM_OK)
            assert_memory_equal(pids, cases[i].pids, sizeof(pids));
    }
}

static void test_cpu_list(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        size_t count;
        uint32_t cpus[3];
    } cases[] = {
        { "one", "0\n", WM_OK, 1, { 0 } },
        { "two sockets", "0,36\n", WM_OK, 2, { 0, 36 } },
        { "a range", "4-6\n", WM_OK, 3, { 4, 5, 6 } },
        { "both", "1-2,9\n", WM_OK, 3, { 1, 2, 9 } },
        { "more than room", "0-127\n", WM_OK, 128, { 0, 1, 2 } },
        { "the last that there can be", "65535\n", WM_OK, 1, { 65535 } },
        { "none", "\n", WM_OK, 0, { 0 } },
        { "empty", "", WM_EFORMAT, 0, { 0 } },
        { "cut", "0-3", WM_EFORMAT, 0, { 0 } },
        { "cut before a number", "0,\n", WM_EFORMAT, 0, { 0 } },
        { "cut within a range", "0-\n", WM_EFORMAT, 0, { 0 } },
        { "backwards", "3-1\n", WM_EFORMAT, 0, { 0 } },
        { "twice", "0-3,3\n", WM_EFORMAT, 0, { 0 } },
        { "descending", "4,2\n", WM_EFORMAT, 0, { 0 } },
        { "negative", "-1\n", WM_EFORMAT, 0, { 0 } },
        { "more than there can be", "0-65536\n", WM_EFORMAT, 0, { 0 } },
        { "one that does not fit", "0-18446744073709551616\n", WM_EFORMAT, 0, { 0 } },
        { "a mask", "00000003\n0\n", WM_EFORMAT, 0, { 0 } },
        { "a stride", "0-7:2/4\n", WM_EFORMAT, 0, { 0 } },
        { "blanks", "0, 2\n", WM_EFORMAT, 0, { 0 } },
        { "letters", "all\n", WM_EFORMAT, 0, { 0 } },
        { "binary", "\xff\xfe\n", WM_EFORMAT, 0, { 0 } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint32_t cpus[3] = { 0 };
        size_t count = 0;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_cpu_list(cases[i].text, cpus, 3, &count),
                         cases[i].status);
        assert_int_equal(count, cases[i].count);
        if (cases[i].status == WM_OK)
            assert_memory_equal(cpus, cases[i].cpus, sizeof(cpus));
    }
}

static void test_cpuinfo(void **state)
{
    static const struct {
        const char *what;
        const char *text;
        int status;
        struct wm_cpuinfo info;
    } cases[] = {
        { "Intel",
          "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
          "model name\t: Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz\n"
          "stepping\t: 6\nflags\t\t: fpu sgx_lc sgx aes\n\nprocessor\t: 1\nmodel\t\t: 7\n",
          WM_OK,
          { .vendor = "GenuineIntel",
            .name = "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz",
            .family = 6,
            .model = 106,
            .stepping = 6,
            .has_sgx = true } },
        { "AMD, cut within the flags",
          "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
          "model name\t: AMD EPYC\nflags\t\t: fpu vme sg",
          WM_OK,
          { .vendor = "AuthenticAMD", .name = "AMD EPYC", .family = 25, .model = 17 } },
        { "a virtual machine",
          "processor\t: 0\nstepping\t: x\nflags\t\t: fpu hypervisor lahf_lm\n",
          WM_OK,
          { .is_guest = true } },
        { "no virtual machine",
          "processor\t: 0\nflags\t\t: fpu hypervisor2\nbugs\t\t: hypervisor\n",
          WM_OK,
          { .family = 0 } },
        { "sgx is a word",
          "processor\t: 0\nflags\t\t: sgx_lc nosgx sgx2\n",
          WM_OK,
          { .family = 0 } },
        { "sgx of another line",
          "processor\t: 0\nflags\t\t: fpu\nbugs\t\t: sgx\n",
          WM_OK,
          { .family = 0 } },
        { "ARM",
          "processor\t: 0\nBogoMIPS\t: 108.00\nCPU implementer\t: 0x41\n",
          WM_OK,
          { .is_arm = true } },
        { "RISC-V", "processor\t: 0\nhart\t: 1\n", WM_OK, { .family = 0 } },
        { "no name after all", "processor\t: 0\nmodel name\t:\n", WM_OK, { .family = 0 } },
        { "numbers that are none",
          "processor\t: 0\ncpu family\t: six\nmodel\t\t: -1\n",
          WM_OK,
          { .family = 0 } },
        { "a name of binary",
          "processor\t: 0\nmodel name\t: \xff\n",
          WM_OK,
          { .name = "\xef\xbf\xbd" } },
        { "empty", "", WM_EFORMAT, { .family = 0 } },
        { "an empty line first", "\nprocessor\t: 0\n", WM_EFORMAT, { .family = 0 } },
        { "not of CPUs", "MemTotal:       24684084 kB\n", WM_EFORMAT, { .family = 0 } },
        { "no colon", "processor 0\n", WM_EFORMAT, { .family = 0 } },
        { "binary", "\xff\xfe", WM_EFORMAT, { .family = 0 } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_cpuinfo info = { .family = 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_cpuinfo(cases[i].text, &info), cases[i].status);
        assert_string_equal(info.vendor, cases[i].info.vendor);
        assert_string_equal(info.name, cases[i].info.name);
        assert_int_equal(info.family, cases[i].info.family);
        assert_int_equal(info.model, cases[i].info.model);
        assert_int_equal(info.stepping, cases[i].info.stepping);
        assert_int_equal(info.has_sgx, cases[i].info.has_sgx);
        assert_int_equal(info.is_guest, cases[i].info.is_guest);
        assert_int_equal(info.is_arm, cases[i].info.is_arm);
    }
}

static char *load(const char *name)
{
    char path[64];
    char *text = NULL;
    size_t length;
    struct wm_error err;

    snprintf(path, sizeof(path), "tests/data/proc/vm-2-cores/%s", name);
    if (wm_file_slurp(test_source_path(path), 1 << 20, &text, &length, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static void test_captured(void **state)
{
    struct wm_pid_stat pid_stat;
    struct wm_statm statm;
    struct wm_smaps_rollup rollup;
    struct wm_proc_stat proc_stat;
    struct wm_cpu_ticks cpus[8];
    struct wm_meminfo meminfo;
    struct wm_loadavg loadavg;
    uint64_t bytes;
    pid_t pids[8];
    size_t count;
    char *text;
    (void)state;

    text = load("7545/stat");
    assert_int_equal(wm_parse_pid_stat(text, &pid_stat), WM_OK);
    assert_string_equal(pid_stat.comm, "python3");
    assert_int_equal(pid_stat.ppid, 7504);
    assert_int_equal(pid_stat.utime, 28);
    assert_int_equal(pid_stat.stime, 2);
    assert_int_equal(pid_stat.cutime, 17);
    assert_int_equal(pid_stat.cstime, 0);
    assert_int_equal(pid_stat.threads, 2);
    assert_int_equal(pid_stat.start_time, 209597);
    free(text);

    text = load("7545/statm");
    assert_int_equal(wm_parse_statm(text, &statm), WM_OK);
    assert_int_equal(statm.resident, 7641);
    assert_int_equal(statm.shared, 1706);
    free(text);

    text = load("7545/smaps_rollup");
    assert_int_equal(wm_parse_smaps_rollup(text, &rollup), WM_OK);
    assert_int_equal(rollup.pss, 26550 * 1024);
    assert_int_equal(rollup.private_clean, 128 * 1024);
    assert_int_equal(rollup.private_dirty, 23740 * 1024);
    free(text);

    text = load("7545/status");
    assert_int_equal(wm_parse_status_kb(text, "VmHWM", &bytes), WM_OK);
    assert_int_equal(bytes, statm.resident * 4096);
    assert_int_equal(wm_parse_status_kb(text, "VmNone", &bytes), WM_ENOENT);
    free(text);

    text = load("7545/task/7545/children");
    assert_int_equal(wm_parse_pid_list(text, pids, ARRAY_LEN(pids), &count), WM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(pids[1], 7547);
    free(text);

    text = load("stat");
    assert_int_equal(wm_parse_proc_stat(text, cpus, ARRAY_LEN(cpus), &proc_stat), WM_OK);
    assert_int_equal(proc_stat.busy, 5777);
    assert_int_equal(proc_stat.forks, 7550);
    assert_int_equal(proc_stat.cpu_count, 2);
    assert_int_equal(cpus[1].busy, 4113);
    free(text);

    text = load("meminfo");
    assert_int_equal(wm_parse_meminfo(text, &meminfo), WM_OK);
    assert_true(meminfo.total == UINT64_C(24684084) * 1024);
    assert_true(meminfo.available == UINT64_C(24323752) * 1024);
    free(text);

    text = load("loadavg");
    assert_int_equal(wm_parse_loadavg(text, &loadavg), WM_OK);
    assert_int_equal(loadavg.last_pid, 7549);
    free(text);
}

UNIT(kernel_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pid_stat),  cmocka_unit_test(test_pid_stat_cut),
        cmocka_unit_test(test_statm),     cmocka_unit_test(test_smaps_rollup),
        cmocka_unit_test(test_proc_stat), cmocka_unit_test(test_bad_proc_stat),
        cmocka_unit_test(test_meminfo),   cmocka_unit_test(test_loadavg),
        cmocka_unit_test(test_status_kb), cmocka_unit_test(test_status_numbers),
        cmocka_unit_test(test_boot_time), cmocka_unit_test(test_pid_list),
        cmocka_unit_test(test_cpu_list),  cmocka_unit_test(test_cpuinfo),
        cmocka_unit_test(test_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
