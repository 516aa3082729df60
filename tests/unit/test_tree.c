/* SPDX-License-Identifier: Apache-2.0 */
/* test_tree.c - the process tree, in made-up /proc trees and among real
 * processes. A case is a row: some processes, and what their sums must be. */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/tree/source_process.h"
#include "source/tree/source_tree.h"
#include "track/account/track_account.h"

enum { MB = 1000000 };

/* A process of a made-up /proc; sizes in MB. */
struct made {
    int pid, parent;
    char state;
    int threads;
    int rss, file; /* statm */
    int uss, pss;  /* smaps_rollup; uss < 0: the file is not there */
    const char *children;
    int image; /* where its stack begins; 0: not to be known */
};

/* The pages of statm, from MB, rounded down to what pages can say. */
static long pages(int megabytes)
{
    return (long)megabytes * MB / sysconf(_SC_PAGESIZE);
}

static long kilobytes(int megabytes)
{
    return (long)megabytes * MB / 1024;
}

static void write_stat(const char *dir, const struct made *p, const char *name)
{
    char path[64], text[512];

    snprintf(path, sizeof(path), "%d/stat", p->pid);
    snprintf(text, sizeof(text),
             "%d (%s) %c %d 1 1 0 -1 4194304 100 0 0 0 7 3 20 10 20 0 %d 0 1000 1000 10 "
             "18446744073709551615 0 0 %d 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
             p->pid, name, p->state, p->parent, p->threads, p->image);
    test_write_file(dir, path, text);
}

static void write_process(const char *dir, const struct made *p)
{
    char path[64], text[512];

    write_stat(dir, p, "a (b) c");
    snprintf(path, sizeof(path), "%d/statm", p->pid);
    snprintf(text, sizeof(text), "99999 %ld %ld 1 0 100 0\n", pages(p->rss),
             pages(p->file));
    test_write_file(dir, path, text);
    if (p->uss >= 0) {
        snprintf(path, sizeof(path), "%d/smaps_rollup", p->pid);
        snprintf(text, sizeof(text),
                 "00400000-7fff00000000 ---p 00000000 00:00 0   [rollup]\n"
                 "Rss: %ld kB\nPss: %ld kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: %ld kB\n",
                 kilobytes(p->rss), kilobytes(p->pss), kilobytes(p->uss));
        test_write_file(dir, path, text);
    }
    if (p->children) {
        snprintf(path, sizeof(path), "%d/task/%d/children", p->pid, p->pid);
        test_write_file(dir, path, p->children);
    }
}

enum { CHANNELS = 17 };

static double value_of(const struct wm_reading *readings, const char *label,
                       const char *metric)
{
    const struct wm_channel *channels;
    size_t count = wm_tree_channels(NULL, &channels);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(channels[i].label, label) == 0 &&
            strcmp(channels[i].metric, metric) == 0)
            return readings[i].state == WM_READING_OK ? readings[i].value : -1;
    }
    fail_msg("there is no channel %s %s", label, metric);
    return 0;
}

/* To the precision of pages. */
static void assert_megabytes(double bytes, int megabytes)
{
    if (megabytes < 0)
        assert_true(bytes < 0);
    else
        assert_true(bytes > megabytes * 1e6 - 20e3 && bytes < megabytes * 1e6 + 20e3);
}

static void test_sums(void **state)
{
    static const struct {
        const char *what;
        struct made processes[5];
        int processes_in_tree, threads;
        int total, private_, shared, descendants;
    } cases[] = {
        { "one process",
          { { 10, 1, 'S', 3, 100, 20, 70, 80, "", 0 } },
          1,
          3,
          100,
          70,
          30,
          0 },
        { "a fork shares all: counted once",
          { { 10, 1, 'S', 1, 800, 0, 0, 400, "11 ", 0 },
            { 11, 10, 'S', 1, 800, 0, 0, 400, "", 0 } },
          2,
          2,
          800,
          0,
          800,
          800 },
        { "nothing shared",
          { { 10, 1, 'S', 1, 100, 0, 100, 100, "11 ", 0 },
            { 11, 10, 'R', 2, 50, 0, 50, 50, "", 0 } },
          2,
          3,
          150,
          150,
          0,
          50 },
        { "two libraries, shared by two pairs: more than the largest one share",
          { { 10, 1, 'S', 1, 40, 40, 0, 20, "11 12 13 ", 0 },
            { 11, 10, 'S', 1, 40, 40, 0, 20, "", 0 },
            { 12, 10, 'S', 1, 40, 40, 0, 20, "", 0 },
            { 13, 10, 'S', 1, 40, 40, 0, 20, "", 0 } },
          4,
          4,
          80,
          0,
          80,
          60 },
        { "a grandchild",
          { { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 0, 10, 10, "12 ", 0 },
            { 12, 11, 'S', 1, 10, 0, 10, 10, "", 0 } },
          3,
          3,
          30,
          30,
          0,
          20 },
        { "a zombie has no memory",
          { { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 },
            { 11, 10, 'Z', 1, 0, 0, -1, 0, "", 0 } },
          1,
          1,
          10,
          10,
          0,
          0 },
        { "one that may not be examined: anonymous memory stands for private",
          { { 10, 1, 'S', 1, 100, 20, 70, 80, "11 ", 0 },
            { 11, 10, 'S', 1, 50, 10, -1, 0, "", 0 } },
          2,
          2,
          140,
          110,
          30,
          50 },
        { "no lists of children: found by their parents, in whatever order",
          { { 10, 1, 'S', 1, 10, 0, 10, 10, NULL, 0 },
            { 9, 12, 'S', 1, 10, 0, 10, 10, NULL, 0 },
            { 12, 10, 'S', 1, 10, 0, 10, 10, NULL, 0 },
            { 77, 1, 'S', 1, 10, 0, 10, 10, NULL, 0 } },
          3,
          3,
          30,
          30,
          0,
          20 },
        { "a child that is listed but not there",
          { { 10, 1, 'S', 1, 10, 0, 10, 10, "11 12 ", 0 },
            { 12, 10, 'S', 1, 10, 0, 10, 10, "", 0 } },
          2,
          2,
          20,
          20,
          0,
          10 },
        { "a list of children that is no list",
          { { 10, 1, 'S', 1, 10, 0, 10, 10, "11 banana ", 0 },
            { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 } },
          1,
          1,
          10,
          10,
          0,
          0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_reading readings[CHANNELS];
        struct wm_tree *tree = NULL;
        void *dir = NULL;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(&dir), 0);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].processes); k++) {
            if (cases[i].processes[k].pid)
                write_process(dir, &cases[i].processes[k]);
        }

        assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        assert_float_equal(value_of(readings, "tree", "processes"),
                           cases[i].processes_in_tree, 0);
        assert_float_equal(value_of(readings, "tree", "threads"), cases[i].threads, 0);
        assert_megabytes(value_of(readings, "tree", "memory_total"), cases[i].total);
        assert_megabytes(value_of(readings, "tree", "memory_private"), cases[i].private_);
        assert_megabytes(value_of(readings, "tree", "memory_shared"), cases[i].shared);
        assert_megabytes(value_of(readings, "descendants", "memory_total"),
                         cases[i].descendants);
        wm_tree_close(tree);
        assert_int_equal(test_remove_dir(&dir), 0);
    }
}

/* What a forked process and its parent share is estimated while smaps_rollup is not read:
 * here it may not be. Each row is the same tree some time later. */
static void test_forks_are_estimated(void **state)
{
    static const struct {
        const char *what;
        struct made processes[4];
        int total, private_, descendants, low;
    } steps[] = {
        { "alone", { { 10, 1, 'S', 1, 500, 0, 500, 500, "", 7 } }, 500, 500, 0, 500 },
        { "a child that has grown by 50 already",
          { { 10, 1, 'S', 1, 500, 0, -1, 0, "11 ", 7 },
            { 11, 10, 'S', 1, 550, 0, -1, 0, "", 7 } },
          550,
          50,
          550,
          550 },
        { "it grows on, and so does its parent",
          { { 10, 1, 'S', 1, 520, 0, -1, 0, "11 ", 7 },
            { 11, 10, 'S', 1, 600, 0, -1, 0, "", 7 } },
          620,
          120,
          600,
          620 },
        { "another one, a copy of the larger parent, and one that executes a program",
          { { 10, 1, 'S', 1, 520, 0, -1, 0, "11 12 13 ", 7 },
            { 11, 10, 'S', 1, 600, 0, -1, 0, "", 7 },
            { 12, 10, 'S', 1, 520, 0, -1, 0, "", 7 },
            { 13, 10, 'S', 1, 30, 0, -1, 0, "", 8 } },
          650,
          130,
          650,
          600 },
        { "the first one ends",
          { { 10, 1, 'S', 1, 520, 0, -1, 0, "12 13 ", 7 },
            { 11, 10, 'Z', 1, 0, 0, -1, 0, "", 7 },
            { 12, 10, 'S', 1, 520, 0, -1, 0, "", 7 },
            { 13, 10, 'S', 1, 30, 0, -1, 0, "", 8 } },
          550,
          30,
          550,
          520 },
        { "the other one executes a program",
          { { 10, 1, 'S', 1, 520, 0, -1, 0, "12 13 ", 7 },
            { 11, 10, 'Z', 1, 0, 0, -1, 0, "", 7 },
            { 12, 10, 'S', 1, 5, 0, -1, 0, "", 9 },
            { 13, 10, 'S', 1, 30, 0, -1, 0, "", 8 } },
          555,
          555,
          35,
          520 },
    };
    const char *dir = *state;
    struct wm_tree *tree = NULL;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct wm_reading readings[CHANNELS];
        double rss = 0;

        print_message("  %s\n", steps[i].what);
        for (size_t k = 0; k < ARRAY_LEN(steps[i].processes); k++) {
            const struct made *process = &steps[i].processes[k];
            char path[512];
            if (process->pid == 0)
                continue;
            snprintf(path, sizeof(path), "%s/%d/smaps_rollup", dir, process->pid);
            unlink(path);
            write_process(dir, process);
            rss += process->rss * 1e6;
        }
        if (i == 0)
            assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        test_pass_time(WM_NS_PER_S); /* a search that would come too soon is put off */
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        assert_megabytes(value_of(readings, "tree", "memory_total"), steps[i].total);
        assert_megabytes(value_of(readings, "tree", "memory_private"), steps[i].private_);
        assert_megabytes(value_of(readings, "descendants", "memory_total"),
                         steps[i].descendants);
        double low = value_of(readings, "tree", "memory_total_low");
        double high = value_of(readings, "tree", "memory_total_high");
        print_message("    %.1f to %.1f MB\n", low / 1e6, high / 1e6);
        assert_true(low >= steps[i].low * 1e6 - 20e3);
        assert_true(low <= value_of(readings, "tree", "memory_total"));
        assert_true(high >= value_of(readings, "tree", "memory_total"));
        assert_true(high <= rss + 20e3);
    }
    wm_tree_close(tree);
}

/* Pages of files and of shared memory that were mapped since smaps_rollup was read: those
 * of one process may be another's by now. */
static void test_mapped_pages_are_estimated(void **state)
{
    static const struct {
        const char *what;
        struct made before[2], after[2];
        int private_, shared, low, high; /* `low` and `high`: what it may be in truth */
    } cases[] = {
        { "nothing",
          { { 10, 1, 'S', 1, 110, 105, 105, 106, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, 1, 3, "", 0 } },
          { { 10, 1, 'S', 1, 110, 105, -1, 0, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, -1, 0, "", 0 } },
          106,
          9,
          115,
          115 },
        { "both the same, of which one had a part before",
          { { 10, 1, 'S', 1, 110, 105, 105, 106, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, 1, 3, "", 0 } },
          { { 10, 1, 'S', 1, 810, 805, -1, 0, "11 ", 0 },
            { 11, 10, 'S', 1, 806, 801, -1, 0, "", 0 } },
          6,
          805,
          811,
          1606 },
        { "one of them what the other one had",
          { { 10, 1, 'S', 1, 810, 805, 805, 806, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, 1, 3, "", 0 } },
          { { 10, 1, 'S', 1, 810, 805, -1, 0, "11 ", 0 },
            { 11, 10, 'S', 1, 806, 801, -1, 0, "", 0 } },
          10,
          805,
          815,
          1606 },
        { "one of them more than the other one has",
          { { 10, 1, 'S', 1, 110, 105, 105, 106, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, 1, 3, "", 0 } },
          { { 10, 1, 'S', 1, 810, 805, -1, 0, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, -1, 0, "", 0 } },
          801,
          10,
          811,
          815 },
        { "one of them less than it had",
          { { 10, 1, 'S', 1, 810, 805, 805, 806, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, 1, 3, "", 0 } },
          { { 10, 1, 'S', 1, 110, 105, -1, 0, "11 ", 0 },
            { 11, 10, 'S', 1, 10, 5, -1, 0, "", 0 } },
          106,
          9,
          115,
          115 },
    };
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_reading readings[CHANNELS];
        struct wm_tree *tree = NULL;

        print_message("  %s\n", cases[i].what);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].before); k++)
            write_process(dir, &cases[i].before[k]);
        assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].after); k++) {
            char path[512];
            snprintf(path, sizeof(path), "%s/%d/smaps_rollup", dir, cases[i].after[k].pid);
            unlink(path);
            write_process(dir, &cases[i].after[k]);
        }
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        double low = value_of(readings, "tree", "memory_total_low");
        double high = value_of(readings, "tree", "memory_total_high");
        print_message("    %.1f to %.1f MB\n", low / 1e6, high / 1e6);
        assert_megabytes(value_of(readings, "tree", "memory_private"), cases[i].private_);
        assert_megabytes(value_of(readings, "tree", "memory_shared"), cases[i].shared);
        assert_true(low <= cases[i].low * 1e6 + 20e3);
        assert_true(high >= cases[i].high * 1e6 - 20e3);
        assert_true(low <= value_of(readings, "tree", "memory_total"));
        assert_true(high >= value_of(readings, "tree", "memory_total"));
        wm_tree_close(tree);
    }
}

/* What each of several has of shared memory was read when fewer had it. */
static void test_shares_of_earlier_are_no_more_memory(void **state)
{
    static const struct made steps[][3] = {
        { { 10, 1, 'S', 1, 810, 805, 5, 405, "11 12 ", 1 },
          { 11, 10, 'S', 1, 805, 802, 1, 402, "", 2 },
          { 12, 10, 'S', 1, 6, 4, 1, 2, "", 3 } },
        { { 10, 1, 'S', 1, 810, 805, -1, 0, "11 12 ", 1 },
          { 11, 10, 'S', 1, 805, 802, -1, 0, "", 2 },
          { 12, 10, 'S', 1, 804, 802, 1, 268, "", 3 } },
    };
    const char *dir = *state;
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        for (size_t k = 0; k < ARRAY_LEN(steps[i]); k++) {
            char path[512];
            snprintf(path, sizeof(path), "%s/%d/smaps_rollup", dir, steps[i][k].pid);
            if (steps[i][k].uss < 0)
                unlink(path);
            write_process(dir, &steps[i][k]);
        }
        if (i == 0)
            assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        print_message("    %.1f to %.1f MB\n",
                      value_of(readings, "tree", "memory_total_low") / 1e6,
                      value_of(readings, "tree", "memory_total_high") / 1e6);
        assert_true(value_of(readings, "tree", "memory_total") <= 812e6 + 20e3);
        assert_true(value_of(readings, "tree", "memory_total_high") >= 812e6 - 20e3);
    }
    wm_tree_close(tree);
}

/* What two groups of processes have in common remains when one of each group has ended. */
static void test_what_ended_processes_shared_remains(void **state)
{
    static const struct made steps[][4] = {
        { { 10, 1, 'S', 1, 105, 103, 1, 53, "11 12 13 ", 1 },
          { 11, 10, 'S', 1, 105, 103, 1, 53, "", 2 },
          { 12, 10, 'S', 1, 105, 103, 1, 53, "", 3 },
          { 13, 10, 'S', 1, 105, 103, 1, 53, "", 4 } },
        { { 10, 1, 'S', 1, 105, 103, -1, 0, "11 12 13 ", 1 },
          { 11, 10, 'Z', 1, 0, 0, -1, 0, "", 2 },
          { 12, 10, 'S', 1, 105, 103, -1, 0, "", 3 },
          { 13, 10, 'Z', 1, 0, 0, -1, 0, "", 4 } },
    };
    const char *dir = *state;
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        for (size_t k = 0; k < ARRAY_LEN(steps[i]); k++) {
            char path[512];
            snprintf(path, sizeof(path), "%s/%d/smaps_rollup", dir, steps[i][k].pid);
            if (steps[i][k].uss < 0)
                unlink(path);
            write_process(dir, &steps[i][k]);
        }
        if (i == 0)
            assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        double high = value_of(readings, "tree", "memory_total_high");
        print_message("    %.1f to %.1f MB\n",
                      value_of(readings, "tree", "memory_total_low") / 1e6, high / 1e6);
        assert_true(high >= 206e6 - 40e3);
    }
    wm_tree_close(tree);
}

/* A mapping that is being removed, or was made meanwhile, is in statm and not in
 * smaps_rollup: that is no shared memory. */
static void test_mappings_that_were_not_seen(void **state)
{
    static const char rollup[] = "Rss: 3000 kB\nPss: 3000 kB\nPrivate_Clean: 0 kB\n"
                                 "Private_Dirty: 3000 kB\n";
    const char *dir = *state;

    for (int file = 0; file <= 467; file += 467) {
        struct wm_reading readings[CHANNELS];
        struct wm_tree *tree = NULL;

        write_process(dir, &(struct made) { 10, 1, 'S', 1, 470, file, 0, 0, "", 0 });
        test_write_file(dir, "10/smaps_rollup", rollup);
        assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        assert_megabytes(value_of(readings, "main", "memory_total"), 470);
        assert_megabytes(value_of(readings, "main", "memory_shared"), 0);
        wm_tree_close(tree);
    }
}

/* An idle process whose memory is another one than when it was examined: it has run, at
 * a moment that nobody saw. */
static void test_idle_process_is_examined_again(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;

    write_process(dir, &(struct made) { 10, 1, 'S', 1, 1, 0, 0, 0, "", 0 });
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    assert_megabytes(value_of(readings, "tree", "memory_shared"), 1);
    write_process(dir, &(struct made) { 10, 1, 'S', 1, 801, 0, 0, 400, "", 0 });
    for (int i = 0; i < 1000 && value_of(readings, "tree", "memory_shared") < 800e6; i++) {
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        test_pass_time(WM_NS_PER_MS); /* as the budget allows */
    }
    assert_megabytes(value_of(readings, "tree", "memory_shared"), 801);
    wm_tree_close(tree);
}

/* What a process without relatives has allocated is its own, which statm says: its pages
 * are not gone through once more for a little of it. */
static void test_growth_of_one_process_is_private(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;
    char text[64];

    write_process(dir, &(struct made) { 10, 1, 'R', 1, 100, 20, 70, 90, "", 0 });
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    assert_megabytes(value_of(readings, "tree", "memory_private"), 70);

    write_process(dir, &(struct made) { 10, 1, 'R', 1, 100, 20, 0, 90, "", 0 });
    snprintf(text, sizeof(text), "99999 %ld %ld 1 0 100 0\n", pages(100) + 200, pages(20));
    test_write_file(dir, "10/statm", text);
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    double grown = 200.0 * (double)sysconf(_SC_PAGESIZE);
    assert_megabytes(value_of(readings, "tree", "memory_private") - grown, 70);

    for (int i = 0; i < 1000 && value_of(readings, "tree", "memory_private") > 50e6; i++) {
        write_process(dir, &(struct made) { 10, 1, 'R', 1, 102, 20, 5, 90, "", 0 });
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        test_pass_time(WM_NS_PER_MS); /* as the budget allows */
    }
    assert_megabytes(value_of(readings, "tree", "memory_private"), 5);
    wm_tree_close(tree);
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *what, *file, *text;
        int processes;
    } cases[] = {
        { "empty stat", "11/stat", "", 1 },
        { "stat of another form", "11/stat", "hello\n", 1 },
        { "stat cut off", "11/stat", "11 (name", 1 },
        { "stat with huge numbers", "11/stat",
          "11 (x) S 10 1 1 0 -1 0 0 0 0 0 99999999999999999999999 3 0 0 20 0 1 0 5\n", 1 },
        { "binary stat", "11/stat", "\001\002\003\xff\xfe", 1 },
        { "empty statm", "11/statm", "", 1 },
        { "statm of words", "11/statm", "a b c d\n", 1 },
        { "negative statm", "11/statm", "-5 -5 -5\n", 1 },
        { "smaps of words", "11/smaps_rollup", "Rss: lots\n", 2 },
        { "smaps without what is needed", "11/smaps_rollup", "Rss: 5 kB\n", 2 },
    };
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 };
    const struct made child = { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_reading readings[CHANNELS];
        struct wm_tree *tree = NULL;
        void *dir = NULL;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(&dir), 0);
        write_process(dir, &root);
        write_process(dir, &child);
        test_write_file(dir, cases[i].file, cases[i].text);
        assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        assert_float_equal(value_of(readings, "tree", "processes"), cases[i].processes, 0);
        assert_true(value_of(readings, "main", "memory_total") > 9e6);
        wm_tree_close(tree);
        assert_int_equal(test_remove_dir(&dir), 0);
    }
}

static void test_vanish_and_reuse(void **state)
{
    const char *dir = *state;
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 };
    struct made child = { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 };
    struct wm_reading readings[CHANNELS];
    struct wm_tree_census census;
    struct wm_tree *tree = NULL;
    char path[256];

    write_process(dir, &root);
    write_process(dir, &child);
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    assert_true(wm_tree_contains(tree, 11));

    /* The same pid, but started at another time: somebody else. */
    snprintf(path, sizeof(path), "11/stat");
    test_write_file(dir, path,
                    "11 (new) S 10 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 2000 0 0 0\n");
    wm_tree_refresh(tree);
    test_pass_time(WM_NS_PER_S); /* a search that would come too soon is put off */
    wm_tree_refresh(tree);
    wm_tree_count(tree, &census);
    assert_int_equal(census.seen, 3);
    size_t gone;
    const struct wm_process *dead = wm_tree_gone(tree, &gone);
    assert_int_equal(gone, 1);
    assert_string_equal(dead[0].name, "a (b) c");

    /* The root ends: its readings say so instead of showing 0. */
    snprintf(path, sizeof(path), "%s/10/stat", dir);
    test_write_file(dir, "10/stat", "");
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    assert_true(value_of(readings, "main", "memory_total") < 0);
    assert_string_equal(wm_tree_why(tree, 0), "it has ended");
    wm_tree_close(tree);
}

static void write_cpu(const char *dir, int pid, int parent, int ticks)
{
    char path[32], text[160];

    snprintf(path, sizeof(path), "%d/stat", pid);
    snprintf(text, sizeof(text),
             "%d (a) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 1000 0 0 0\n", pid, parent,
             ticks);
    test_write_file(dir, path, text);
}

/* What a child has used that nobody waited for goes with it; while its parent works, the
 * time of all descendants must not fall for that. */
static void test_descendants_time_never_falls(void **state)
{
    const char *dir = *state;
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 };
    const struct made child = { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 };
    struct wm_account *account = NULL;
    struct wm_tree *tree = NULL;
    double total, main;

    write_process(dir, &root);
    write_process(dir, &child);
    write_cpu(dir, 10, 1, 0);
    write_cpu(dir, 11, 10, 0);
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    assert_true(wm_tree_contains(tree, 11));
    assert_int_equal(wm_account_new(&account, NULL), WM_OK);
    wm_account_start_tree(account, tree, false);

    write_cpu(dir, 10, 1, 100);
    write_cpu(dir, 11, 10, 300);
    wm_tree_refresh(tree);
    wm_account_want_exact(account);
    wm_account_read(account, tree, &total, &main);
    assert_true(total == 4 && main == 1);

    test_write_file(dir, "11/stat", "");
    write_cpu(dir, 10, 1, 250);
    wm_tree_refresh(tree);
    wm_account_want_exact(account);
    wm_account_read(account, tree, &total, &main);
    assert_true(main == 2.5);
    assert_true(total == 5.5);

    wm_account_free(account);
    wm_tree_close(tree);
}

/* A child that is looked at while its parent reaps it shows a stat of zeros. What it had
 * used is its parent's from then on, and counts once. */
static void test_a_child_that_is_just_being_reaped(void **state)
{
    const char *dir = *state;
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 };
    const struct made child = { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 };
    struct wm_tree *tree = NULL;

    write_process(dir, &root);
    write_process(dir, &child);
    write_cpu(dir, 10, 1, 0);
    write_cpu(dir, 11, 10, 0);
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    write_cpu(dir, 11, 10, 300);
    wm_tree_refresh(tree);
    assert_true(wm_tree_others_cpu_ns(tree) == 3 * WM_NS_PER_S);

    test_write_file(dir, "11/stat",
                    "11 (a) X 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 1000 0 0 0\n");
    wm_tree_refresh(tree);
    assert_false(wm_tree_contains(tree, 11));
    test_write_file(dir, "11/stat", "");
    test_write_file(dir, "10/stat",
                    "10 (a) S 1 1 1 0 -1 0 0 9 0 0 9 0 300 0 20 0 1 0 1000 0 0 0\n");
    wm_tree_refresh(tree);
    assert_true(wm_tree_others_cpu_ns(tree) == 3 * WM_NS_PER_S);
    wm_tree_close(tree);
}

/* The lines of PID/stat that tell whether children were waited for. */
static void write_end(const char *dir, int pid, int parent, int faults, int reaped_faults,
                      int reaped_ticks, const char *ignored)
{
    char path[32], text[256];

    snprintf(path, sizeof(path), "%d/stat", pid);
    snprintf(text, sizeof(text),
             "%d (a) S %d 1 1 0 -1 0 %d %d 0 0 50 0 %d 0 20 0 1 0 1000 0 0 0 0 0 7 0 0 0 0 "
             "%s 0\n",
             pid, parent, faults, reaped_faults, reaped_ticks, ignored);
    test_write_file(dir, path, text);
}

/* A child with 500 ms that goes: what of it counts, and whether all of such is known. */
static void test_children_nobody_waited_for(void **state)
{
    static const struct {
        const char *what;
        int reaped_faults, reaped_ticks;
        const char *ignored;
        int64_t others_ms;
        bool has_unwaited;
    } cases[] = {
        { "waited for: its parent has more", 40, 70, "0", 700, false },
        { "waited for: its parent has it to a step", 40, 49, "0", 500, false },
        { "the kernel gave it to nobody", 0, 0, "0", 500, true },
        { "another one was waited for", 12, 20, "0", 500, true },
        { "SIGCHLD is ignored", 40, 50, "65536", 500, true },
        { "SIGHUP is ignored", 40, 50, "1", 500, false },
    };
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "11 ", 0 };
    const struct made child = { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 };
    const char *dir = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_tree *tree = NULL;
        struct wm_tree_census census;

        print_message("  %s\n", cases[i].what);
        write_process(dir, &root);
        write_process(dir, &child);
        write_end(dir, 10, 1, 30, 0, 0, "0");
        write_end(dir, 11, 10, 30, 0, 0, "0");
        assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        test_write_file(dir, "11/stat", "");
        test_write_file(dir, "10/task/10/children", "");
        write_end(dir, 10, 1, 30, cases[i].reaped_faults, cases[i].reaped_ticks,
                  cases[i].ignored);
        wm_tree_refresh(tree);
        wm_tree_refresh(tree);
        assert_int_equal(wm_tree_others_cpu_ns(tree) / 1000000, cases[i].others_ms);
        wm_tree_count(tree, &census);
        assert_int_equal(census.has_unwaited, cases[i].has_unwaited);
        wm_tree_close(tree);
    }
}

/* What all but the root have used; the root has used 1 s. */
static void test_account_of_others(void **state)
{
    static const struct {
        const char *what;
        struct wm_others known;
        double by_now, in_all, more;
    } cases[] = {
        { "no counter", { .seen = 0.3, .counted = NAN }, 0.3, 0.3, 0 },
        { "no counter, and some go without a word",
          { .seen = 0.3, .counted = NAN, .has_unwaited = true },
          0.3,
          0.3,
          HUGE_VAL },
        { "the counter sees more", { .seen = 0.3, .counted = 0.5 }, 0.5, 0.5, 0 },
        { "the counter leaves some out", { .seen = 0.3, .counted = 0.1 }, 0.3, 0.3, 0 },
        { "nobody but the root, from whom a tenth was stolen",
          { .counted = 0.1,
            .exposed = 1.1,
            .lost = 0.1,
            .lost_by_all = 9,
            .is_stolen = true },
          0,
          0,
          0 },
        { "a child that was waited for, and lost a tenth",
          { .seen = 1,
            .counted = 1.11,
            .exposed = 1.11,
            .lost = 0.1,
            .lost_by_all = 9,
            .is_stolen = true },
          1,
          1,
          0 },
        { "the same, but others may have gone without a word",
          { .seen = 1,
            .counted = 1.11,
            .exposed = 1.11,
            .lost = 0.1,
            .lost_by_all = 9,
            .is_stolen = true,
            .has_unwaited = true },
          1,
          1,
          0.11 },
        { "short ones that nobody waited for, and that lost a tenth",
          { .seen = 0,
            .counted = 0.04,
            .exposed = 0.04,
            .lost = 0.1,
            .lost_by_all = 9,
            .is_stolen = true,
            .has_unwaited = true },
          0.018111,
          0.036,
          0 },
        { "the same at twice the root's time, of which half was stolen",
          { .seen = 0,
            .counted = 2,
            .exposed = 2,
            .lost = 0.5,
            .lost_by_all = 9,
            .is_stolen = true,
            .has_unwaited = true },
          0.717157,
          0.717157,
          1.282843 },
        { "no more was stolen on the whole machine",
          { .seen = 0,
            .counted = 2,
            .exposed = 2,
            .lost = 0.5,
            .lost_by_all = 0.01,
            .is_stolen = true,
            .has_unwaited = true },
          1.99,
          1.99,
          0 },
        { "interrupts are no slices",
          { .seen = 1, .counted = 1.05, .exposed = 1.05, .lost = 0.01, .lost_by_all = 9 },
          1.0395,
          1.0395,
          0 },
        { "thousands of short ones that nobody waited for, whose ends perf's clock lacks",
          { .seen = 0, .counted = 0.1, .unclocked = 0.3, .has_unwaited = true },
          0.1,
          0.1,
          0.3 },
        { "the same, and nobody has seen that it is so",
          { .seen = 0, .counted = 0.1, .unclocked = 0.3 },
          0.1,
          0.1,
          0.3 },
        { "the same beside as much that was waited for, of which the clock lacks some",
          { .seen = 0.2, .counted = 0.15, .unclocked = 0.3, .has_unwaited = true },
          0.2,
          0.2,
          0.3 },
        { "a dozen that nobody waited for, and whose ends are little",
          { .seen = 0, .counted = 0.1, .unclocked = 0.002, .has_unwaited = true },
          0.1,
          0.1,
          0 },
        { "all were waited for",
          { .seen = 0.2, .counted = 0.15, .unclocked = 0.3 },
          0.2,
          0.2,
          0 },
        { "what an idle hypervisor's steal and interrupts took, and forks of other "
          "programs",
          { .seen = 0.3,
            .counted = 0.31,
            .exposed = 0.31,
            .lost = 0.03,
            .lost_by_all = 0.01,
            .unclocked = 0.07 },
          0.3007,
          0.3007,
          0 },
        { "the root's time is not counted apart",
          { .seen = 0, .counted = 0.05, .exposed = 1.05, .error = 0.06, .lost_by_all = 9 },
          0,
          0,
          0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double more = -1;

        print_message("  %s\n", cases[i].what);
        assert_float_equal(wm_others_by_now(&cases[i].known), cases[i].by_now, 1e-5);
        assert_float_equal(wm_others_in_all(&cases[i].known, 1, &more), cases[i].in_all,
                           1e-5);
        assert_true(more == cases[i].more || fabs(more - cases[i].more) < 1e-5);
    }
}

/* A child that was forked when the counters were opened, as a race has it, is in none. */
static void test_what_no_counter_has_is_waited_for(void **state)
{
    struct wm_account *account = NULL;
    struct wm_tree *tree = NULL;
    double total, main;
    int gate[2], wake_fd = eventfd(0, EFD_CLOEXEC);
    struct pollfd answer = { .fd = wake_fd, .events = POLLIN };
    (void)state;

    assert_int_equal(pipe(gate), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(gate[1]);
        while (read(gate[0], &byte, 1) > 0)
            ;
        const clock_t begin = clock();
        while (clock() - begin < CLOCKS_PER_SEC / 50)
            ;
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    assert_int_equal(wm_account_new(&account, NULL), WM_OK);
    assert_int_equal(wm_account_expect(account, wake_fd, 0, NULL), WM_OK);
    assert_int_equal(poll(&answer, 1, -1), 1);
    wm_account_start_tree(account, tree, true);
    wm_tree_refresh(tree);
    wm_account_rebase(account, tree);

    close(gate[0]);
    close(gate[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    wm_tree_refresh(tree);
    wm_account_want_exact(account);
    wm_account_read(account, tree, &total, &main);
    print_message("  %.6f s of a child\n", total - main);
    assert_true(total - main >= 0.0199);

    wm_account_free(account);
    wm_tree_close(tree);
    close(wake_fd);
}

static void test_no_such_process(void **state)
{
    struct wm_tree *tree = NULL;
    struct wm_error err = { 0 };

    assert_int_equal(wm_tree_open(*state, 10, &tree, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "there is no process 10"));
    assert_int_equal(wm_tree_open("/nonexistent", 10, &tree, &err), WM_ENOENT);
    assert_null(tree);
}

static void test_allocation_failure(void **state)
{
    const char *dir = *state;
    const struct made root = { 10, 1, 'S', 1, 10, 0, 10, 10, "", 0 };

    write_process(dir, &root);
    for (long nth = 0;; nth++) {
        struct wm_tree *tree = NULL;
        test_fail_allocation(nth);
        int status = wm_tree_open(dir, 10, &tree, NULL);
        long made = test_fail_allocation(-1);
        if (status == WM_OK) {
            wm_tree_close(tree);
            assert_true(nth > 3 && made <= nth);
            break;
        }
        assert_int_equal(status, WM_ENOMEM);
        assert_null(tree);
    }
}

/* Lists a child after a second, in which its reader waits. */
static void *write_list_late(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    test_pass_time(WM_NS_PER_S);
    if (write(fd, "11 ", 3) != 3)
        fail_msg("cannot write to %s", (char *)path);
    close(fd);
    return NULL;
}

/* A search that had to wait for a CPU delays the next one no more than any other. */
static void test_search_that_waited(void **state)
{
    const char *dir = *state;
    struct wm_tree *tree = NULL;
    pthread_t thread;
    char path[256];

    write_process(dir, &(struct made) { 10, 1, 'S', 1, 10, 0, 10, 10, "", 0 });
    write_process(dir, &(struct made) { 11, 10, 'S', 1, 10, 0, 10, 10, "", 0 });
    write_process(dir, &(struct made) { 12, 10, 'S', 1, 10, 0, 10, 10, "", 0 });
    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);

    snprintf(path, sizeof(path), "%s/10/task/10/children", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_list_late, path), 0);
    wm_tree_refresh(tree);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(wm_tree_contains(tree, 11));

    assert_int_equal(unlink(path), 0);
    test_write_file(dir, "10/task/10/children", "11 12 ");
    test_pass_time(WM_NS_PER_S / 2);
    wm_tree_refresh(tree);
    assert_true(wm_tree_contains(tree, 12));
    wm_tree_close(tree);
}

/* More than the first room, so that it has to grow, and cannot. */
static void test_no_room_for_more(void **state)
{
    const char *dir = *state;
    char children[1024] = "";
    struct wm_tree_census census;
    struct wm_tree *tree = NULL;

    for (int i = 0; i < 100; i++) {
        size_t length = strlen(children);
        snprintf(children + length, sizeof(children) - length, "%d ", 100 + i);
    }
    write_process(dir, &(struct made) { 10, 1, 'S', 1, 10, 0, 10, 10, children, 0 });
    for (int i = 0; i < 100; i++)
        write_process(dir, &(struct made) { 100 + i, 10, 'S', 1, 1, 0, 1, 1, "", 0 });

    assert_int_equal(wm_tree_open(dir, 10, &tree, NULL), WM_OK);
    test_fail_allocation(0);
    wm_tree_refresh(tree);
    test_fail_allocation(-1);
    wm_tree_count(tree, &census);
    assert_int_equal(census.seen, 8);
    assert_int_equal(census.unlisted, 93);

    test_pass_time(WM_NS_PER_S); /* a search takes no more than its share of the time */
    wm_tree_refresh(tree);
    wm_tree_count(tree, &census);
    assert_int_equal(census.seen, 101);
    wm_tree_close(tree);
}

static pid_t fork_sleeper(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Reads until the memory is known: how much time may go into that is limited, and on a
 * machine with other things to do one look may take all of it. */
static void read_memory(struct wm_tree *tree, struct wm_reading *readings)
{
    wm_tree_read(tree, readings);
    for (int i = 0; i < 1000 && value_of(readings, "tree", "memory_total") < 0; i++) {
        usleep(10000);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
    }
}

/* Refreshes until all are found: to look for them is put off on a busy machine. */
static void find_processes(struct wm_tree *tree, double count, struct wm_reading *readings)
{
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    for (int i = 0; i < 60000 && value_of(readings, "tree", "processes") != count; i++) {
        usleep(1000);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
    }
    assert_float_equal(value_of(readings, "tree", "processes"), count, 0);
}

static void test_real_processes(void **state)
{
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;
    pid_t children[20];
    (void)state;

    pid_t self = getpid();
    assert_int_equal(wm_tree_open("/proc", self, &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    assert_true(wm_tree_contains(tree, self));
    for (size_t i = 0; i < ARRAY_LEN(children); i++)
        children[i] = fork_sleeper();
    find_processes(tree, ARRAY_LEN(children) + 1, readings);
    read_memory(tree, readings);
    assert_true(value_of(readings, "main", "memory_total") > 1e6);

    for (size_t i = 0; i < ARRAY_LEN(children); i++)
        end(children[i]);
    wm_tree_refresh(tree);
    wm_tree_read(tree, readings);
    assert_float_equal(value_of(readings, "tree", "processes"), 1, 0);
    read_memory(tree, readings);
    assert_float_equal(value_of(readings, "descendants", "memory_total"), 0, 0);
    wm_tree_close(tree);
}

/* Nothing may be allocated once the tree is stable, nor much time be spent. */
static void test_stable_tree_allocates_nothing(void **state)
{
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;
    pid_t child = fork_sleeper();
    (void)state;

    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    test_fail_allocation(-1);
    for (int i = 0; i < 100; i++) {
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
    }
    assert_int_equal(test_fail_allocation(-1), 0);
    read_memory(tree, readings);
    assert_true(value_of(readings, "tree", "memory_total") > 0);
    wm_tree_close(tree);
    end(child);
}

/* With no descriptors to spare files are opened for each reading. */
static void test_few_descriptors(void **state)
{
    struct rlimit old, few;
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;
    pid_t children[10];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(children); i++)
        children[i] = fork_sleeper();
    int lowest = dup(0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit) { (rlim_t)lowest + 10, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    find_processes(tree, ARRAY_LEN(children) + 1, readings);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    wm_tree_close(tree);
    for (size_t i = 0; i < ARRAY_LEN(children); i++)
        end(children[i]);
}

/* The example of a parent with large anonymous regions that forks: both show
 * all of it, together they have it once. */
static void test_fork_of_large_process(void **state)
{
    enum { REGIONS = 8, REGION_BYTES = 20 * MB };
    enum { OWN_BYTES = 100 * MB }; /* this program itself, with sanitizers at most */
    struct wm_reading readings[CHANNELS];
    struct wm_tree *tree = NULL;
    void *regions[REGIONS];
    (void)state;

    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < REGIONS; i++) {
            regions[i] = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(regions[i], i + 1, REGION_BYTES);
        }
        fork_sleeper();
        for (;;)
            pause();
    }

    double processes = 0;
    for (int i = 0; i < 500 && processes < 2; i++) {
        usleep(10000);
        wm_tree_close(tree);
        tree = NULL;
        assert_int_equal(wm_tree_open("/proc", parent, &tree, NULL), WM_OK);
        wm_tree_refresh(tree);
        wm_tree_read(tree, readings);
        processes = value_of(readings, "tree", "processes");
    }
    assert_float_equal(processes, 2, 0);
    read_memory(tree, readings);
    const double all = REGIONS * (double)REGION_BYTES;
    const char *const labels[] = { "main", "descendants", "tree" };
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        double total = value_of(readings, labels[i], "memory_total");
        print_message("  %s %.1f MB\n", labels[i], total / 1e6);
        assert_true(total > all * 0.99 && total < all + OWN_BYTES);
    }
    wm_tree_close(tree);
    end(parent);
}

/* What a child does with the memory of its parent. */
enum use { READS, WRITES };

/* A parent with memory that is told to descriptor `told`, and children that use it at their
 * own pace; each says so when it has. */
static void run_family(int flags, enum use use, int children, size_t bytes, int told)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(memory, 1, bytes);
    for (int i = 0; i < children; i++) {
        if (fork() > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile char *at = memory; at < memory + bytes; at += 4096) {
            if (use == WRITES)
                *at = 2;
            else
                (void)*at;
            if ((at - memory) % (4 << 20) == 0)
                usleep(1000);
        }
        usleep(1000); /* its CPU clock, by which a refresh sees that it ran, is now exact */
        if (write(told, "c", 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    for (;;)
        pause();
}

/* What a program of this test has itself, at most. */
#ifdef __SANITIZE_ADDRESS__
#define PROGRAM_BYTES (200 << 20)
#else
#define PROGRAM_BYTES (12 << 20)
#endif

/* Whatever the children are at: the memory of all lies in its interval, which holds what
 * exists, and when they have done it comes to that. */
static void test_memory_that_children_use(void **state)
{
    enum { BYTES = 48 << 20 };
    static const struct {
        const char *what;
        int flags;
        enum use use;
        int children, copies;
    } cases[] = {
        { "one child reads shared memory", MAP_SHARED, READS, 1, 0 },
        { "three children read shared memory", MAP_SHARED, READS, 3, 0 },
        { "three children write to shared memory", MAP_SHARED, WRITES, 3, 0 },
        { "two children read what they were forked with", MAP_PRIVATE, READS, 2, 0 },
        { "one child writes to what it was forked with", MAP_PRIVATE, WRITES, 1, 1 },
        { "four children write to what they were forked with", MAP_PRIVATE, WRITES, 4, 4 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_reading readings[CHANNELS];
        struct wm_tree *tree = NULL;
        int told[2], done = 0;
        double low = 0, high = 0, total = 0;
        const double most = (1.0 + cases[i].copies) * BYTES;
        const double own = (1.0 + cases[i].children) * PROGRAM_BYTES;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(pipe2(told, O_NONBLOCK | O_CLOEXEC), 0);
        pid_t parent = fork();
        assert_true(parent >= 0);
        if (parent == 0)
            run_family(cases[i].flags, cases[i].use, cases[i].children, BYTES, told[1]);
        assert_int_equal(wm_tree_open("/proc", parent, &tree, NULL), WM_OK);

        /* A look may cost more than may be spent on it now. */
        for (int k = 0; k < 60000 && (done < cases[i].children || total < most ||
                                      high > (most + own) * 1.05);
             k++) {
            char byte;
            usleep(1000);
            done += read(told[0], &byte, 1) == 1;
            wm_tree_refresh(tree);
            wm_tree_read(tree, readings);
            total = value_of(readings, "tree", "memory_total");
            low = value_of(readings, "tree", "memory_total_low");
            high = value_of(readings, "tree", "memory_total_high");
            assert_true(low <= total && total <= high);
            assert_true(value_of(readings, "main", "memory_total") <= total);
            assert_true(value_of(readings, "tree", "memory_private") <= total);
            assert_true(low <= most + own);
            bool found = value_of(readings, "tree", "processes") > cases[i].children;
            if (found && done == cases[i].children && high < most)
                fail_msg("%.0f to %.0f of %.0f bytes", low, high, most);
        }
        print_message("    %.1f MB, %.1f to %.1f MB\n", total / 1e6, low / 1e6, high / 1e6);
        assert_true(total >= most && total <= most + own);
        wm_tree_close(tree);
        end(parent);
        close(told[0]);
        close(told[1]);
    }
}

/* The CPU time of the main process is that of the moment, not of the last refresh. */
static void test_time_of_the_moment(void **state)
{
    struct wm_tree *tree = NULL;
    (void)state;

    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    int64_t told_ns = wm_tree_main_cpu_ns(tree), from_ns = wm_clock_process_cpu_ns(), to_ns;
    while ((to_ns = wm_clock_process_cpu_ns()) - from_ns < 20 * WM_NS_PER_MS)
        ;
    assert_true(wm_tree_main_cpu_ns(tree) - told_ns >= to_ns - from_ns);
    wm_tree_close(tree);
}

/* It never falls, though a process with less has the pid by now. */
static void test_time_of_a_pid_used_again(void **state)
{
    const struct wm_procfs procfs = { .own = true };
    const struct wm_process earlier = { .pid = getpid(), .cpu_ns = WM_TIME_MAX_NS };
    (void)state;

    assert_int_equal(wm_process_cpu_ns(&procfs, &earlier), WM_TIME_MAX_NS);
}

UNIT(tree)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test_setup_teardown(test_forks_are_estimated, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_mapped_pages_are_estimated, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_shares_of_earlier_are_no_more_memory,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_what_ended_processes_shared_remains,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_mappings_that_were_not_seen, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_idle_process_is_examined_again, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_growth_of_one_process_is_private,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test_setup_teardown(test_vanish_and_reuse, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(test_account_of_others),
        cmocka_unit_test_setup_teardown(test_children_nobody_waited_for, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_descendants_time_never_falls, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_a_child_that_is_just_being_reaped,
                                        test_make_dir, test_remove_dir),
        cmocka_unit_test(test_what_no_counter_has_is_waited_for),
        cmocka_unit_test_setup_teardown(test_no_such_process, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_allocation_failure, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_search_that_waited, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_no_room_for_more, test_make_dir,
                                        test_remove_dir),
        cmocka_unit_test(test_time_of_the_moment),
        cmocka_unit_test(test_time_of_a_pid_used_again),
        cmocka_unit_test(test_real_processes),
        cmocka_unit_test(test_stable_tree_allocates_nothing),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_fork_of_large_process),
        cmocka_unit_test(test_memory_that_children_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
