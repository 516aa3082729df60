/* SPDX-License-Identifier: Apache-2.0 */
/* test_pidns.c - which process a driver means, by two small folders that stand for
 * the /proc of an outer pid namespace and for our own. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/tree/source_pidns.h"

/* Stands for our own number in what the folders say. */
#define SELF "SELF"
#define INITIAL "pid:[4026531836]"
#define INNER "pid:[4026532178]"
#define SIBLING "pid:[4026532999]"

enum { TOLD = 4711 };

/* A process of one /proc; a NULL text is a file that is not there. */
struct entry {
    const char *pid;
    const char *nspid; /* all that stands behind "NSpid:"; "" for no such line */
    unsigned start_time;
    const char *namespace; /* what its link says */
};

enum { ENTRY_MAX = 3 };

static void write_nspid(char *text, size_t size, const char *numbers)
{
    char own[16];
    const char *self = strstr(numbers, SELF);

    snprintf(own, sizeof(own), "%d", (int)getpid());
    if (numbers[0] == '\0')
        text[0] = '\0';
    else if (self)
        snprintf(text, size, "NSpid:\t%.*s%s%s\n", (int)(self - numbers), numbers, own,
                 self + strlen(SELF));
    else
        snprintf(text, size, "NSpid:\t%s\n", numbers);
}

static void write_entry(const char *dir, const char *proc, const struct entry *entry)
{
    char path[256], text[512], nspid[256], number[16];
    bool is_self = strcmp(entry->pid, "self") == 0;

    snprintf(number, sizeof(number), "%d", (int)getpid());
    const char *pid = is_self ? number : entry->pid;
    write_nspid(nspid, sizeof(nspid), entry->nspid);
    snprintf(path, sizeof(path), "%s/%s/status", proc, entry->pid);
    snprintf(text, sizeof(text), "Name:\tx\nTgid:\t%s\nPid:\t%s\n%sThreads:\t1\n", pid, pid,
             nspid);
    test_write_file(dir, path, text);
    snprintf(path, sizeof(path), "%s/%s/stat", proc, entry->pid);
    snprintf(text, sizeof(text),
             "%s (x) S 1 1 1 0 -1 0 5 6 0 0 11 12 13 14 20 0 3 0 %u 1097 7620 18\n", pid,
             entry->start_time);
    test_write_file(dir, path, text);
    if (!entry->namespace)
        return;
    snprintf(path, sizeof(path), "%s/%s/%s/ns", dir, proc, entry->pid);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/%s/ns/pid", dir, proc, entry->pid);
    assert_int_equal(symlink(entry->namespace, path), 0);
}

enum where { NOWHERE, OWN, OUTER };

struct row {
    const char *what;
    struct entry outer[ENTRY_MAX], own[ENTRY_MAX];
    pid_t told, ours;
    const char *why;
    enum where where;
    enum wm_pidns_answer answer;
};

#define SELF_IN(numbers, link)                                                             \
    {                                                                                      \
        "self", numbers, 1, link                                                           \
    }

static const struct row rows[] = {
    { "the first namespace: all numbers are ours",
      { { 0 } },
      { SELF_IN(SELF, INITIAL) },
      TOLD,
      TOLD,
      NULL,
      OWN,
      WM_PIDNS_OURS },
    { "a number that exists here",
      { { 0 } },
      { SELF_IN(SELF, INNER), { "4711", "4711", 9, NULL } },
      TOLD,
      TOLD,
      NULL,
      OWN,
      WM_PIDNS_PERHAPS },
    { "one that does not",
      { { 0 } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "another pid namespace",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "no number",
      { { 0 } },
      { SELF_IN(SELF, INITIAL) },
      0,
      0,
      "no number",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "a negative one",
      { { 0 } },
      { SELF_IN(SELF, INITIAL) },
      -5,
      0,
      "no number",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "found outside, same start",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t12", 9, NULL } },
      { SELF_IN(SELF, INNER), { "12", "12", 9, NULL } },
      TOLD,
      12,
      NULL,
      OWN,
      WM_PIDNS_OURS },
    { "two namespaces further in",
      { SELF_IN("900\t80\t" SELF, NULL), { "4711", "4711\t300\t12\t1", 9, NULL } },
      { SELF_IN(SELF, INNER), { "12", "12\t1", 9, NULL } },
      TOLD,
      12,
      NULL,
      OWN,
      WM_PIDNS_OURS },
    { "the links say it",
      { SELF_IN("900\t" SELF, INNER), { "4711", "4711\t12", 9, INNER } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      12,
      NULL,
      OWN,
      WM_PIDNS_OURS },
    { "another start",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t12", 9, NULL } },
      { SELF_IN(SELF, INNER), { "12", "12", 10, NULL } },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "a container beside ours, same number, same start, other link",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t1", 9, SIBLING } },
      { SELF_IN(SELF, INNER), { "1", "1", 9, INNER } },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "the same, without links, with a namespace further in",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t1\t1", 9, NULL } },
      { SELF_IN(SELF, INNER), { "1", "1", 9, NULL } },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "not there in ours",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t12", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "of the outer namespace",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "the same, and its number exists here too",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711", 9, NULL } },
      { SELF_IN(SELF, INNER), { "4711", "4711", 7, NULL } },
      TOLD,
      0,
      "one process here",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "not there outside, but here",
      { SELF_IN("900\t" SELF, NULL) },
      { SELF_IN(SELF, INNER), { "4711", "4711", 7, NULL } },
      TOLD,
      TOLD,
      NULL,
      OWN,
      WM_PIDNS_PERHAPS },
    { "nowhere",
      { SELF_IN("900\t" SELF, NULL) },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "another pid namespace",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "our own /proc is an outer one, the links say it",
      { SELF_IN("900\t" SELF, INNER), { "4711", "4711\t12", 9, INNER } },
      { SELF_IN("900\t" SELF, INNER), { "12", "12", 9, NULL } },
      TOLD,
      12,
      NULL,
      OUTER,
      WM_PIDNS_OURS },
    { "the same without links",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t12", 9, NULL } },
      { SELF_IN("900\t" SELF, INNER), { "12", "12", 9, NULL } },
      TOLD,
      0,
      "reports the number of another",
      OUTER,
      WM_PIDNS_UNKNOWN },
    { "a captured tree",
      { { "1", "1", 1, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      TOLD,
      NULL,
      OUTER,
      WM_PIDNS_OURS },
    { "a tree captured with its self",
      { SELF_IN("900\t1", NULL) },
      { SELF_IN(SELF, INNER) },
      TOLD,
      TOLD,
      NULL,
      OUTER,
      WM_PIDNS_OURS },

    /* What the kernel would not write. */
    { "another number than its own",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4712\t12", 9, NULL } },
      { SELF_IN(SELF, INNER), { "12", "12", 9, NULL } },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "number 0",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t0", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "a negative number there",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t-12", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "a huge one",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t4294967308", 9, NULL } },
      { SELF_IN(SELF, INNER), { "12", "12", 9, NULL } },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "one that fits nowhere",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\t99999999999999999999", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "letters",
      { SELF_IN("900\t" SELF, NULL), { "4711", "4711\tx", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "more levels than there can be",
      { SELF_IN("900\t" SELF, NULL),
        { "4711",
          "4711 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", 9,
          NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "may not be read",
      NOWHERE,
      WM_PIDNS_UNKNOWN },
    { "no line of it, as before Linux 4.1",
      { SELF_IN("900\t" SELF, NULL), { "4711", "", 9, NULL } },
      { SELF_IN(SELF, INNER) },
      TOLD,
      0,
      "is in another",
      OUTER,
      WM_PIDNS_OUTSIDE },
    { "an old kernel, our own /proc",
      { { 0 } },
      { SELF_IN("", INNER), { "4711", "", 9, NULL } },
      TOLD,
      TOLD,
      NULL,
      OWN,
      WM_PIDNS_PERHAPS },
};

static void test_find(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        char procs[2][64], path[2][256];
        struct wm_pidns_process process;
        struct wm_pidns *pidns = NULL;

        print_message("  %s\n", row->what);
        snprintf(procs[0], sizeof(procs[0]), "%zu/own", i);
        snprintf(procs[1], sizeof(procs[1]), "%zu/outer", i);
        for (size_t e = 0; e < ENTRY_MAX; e++) {
            if (row->own[e].pid)
                write_entry(*state, procs[0], &row->own[e]);
            if (row->outer[e].pid)
                write_entry(*state, procs[1], &row->outer[e]);
        }

        /* Without an outer one the configuration names ours. */
        for (size_t p = 0; p < 2; p++)
            snprintf(path[p], sizeof(path[p]), "%s/%s", (const char *)*state,
                     procs[row->outer[0].pid ? p : 0]);
        assert_int_equal(wm_pidns_open(path[1], path[0], &pidns, NULL), WM_OK);
        for (int again = 0; again < 2; again++) {
            wm_pidns_find(pidns, row->told, &process);
            assert_int_equal(process.ours, row->ours);
            assert_int_equal(process.answer, row->answer);
            assert_int_equal(process.why == NULL, row->why == NULL);
            if (row->why && !strstr(process.why, row->why))
                fail_msg("'%s'", process.why);
            assert_int_equal(process.dir < 0, row->where == NOWHERE);
            if (row->where == OWN)
                assert_int_equal(process.there, row->ours);
            if (row->where == OUTER)
                assert_int_equal(process.there, row->told);
        }
        wm_pidns_close(pidns);
    }
}

/* A number may get another meaning while we remember the old one. */
static void test_pid_again(void **state)
{
    const struct entry self[2] = { SELF_IN("900\t" SELF, NULL), SELF_IN(SELF, INNER) };
    struct entry outer = { "4711", "4711\t12", 9, NULL };
    struct entry own = { "12", "12", 9, NULL };
    struct wm_pidns_process process;
    struct wm_pidns *pidns = NULL;
    char path[2][256];

    write_entry(*state, "outer", &self[0]);
    write_entry(*state, "own", &self[1]);
    write_entry(*state, "outer", &outer);
    write_entry(*state, "own", &own);
    snprintf(path[0], sizeof(path[0]), "%s/outer", (const char *)*state);
    snprintf(path[1], sizeof(path[1]), "%s/own", (const char *)*state);
    assert_int_equal(wm_pidns_open(path[0], path[1], &pidns, NULL), WM_OK);
    wm_pidns_find(pidns, TOLD, &process);
    assert_int_equal(process.ours, 12);

    outer = (struct entry) { "4711", "4711", 10, NULL };
    write_entry(*state, "outer", &outer);
    wm_pidns_find(pidns, TOLD, &process);
    assert_int_equal(process.ours, 0);

    outer = (struct entry) { "4711", "4711\t13", 11, NULL };
    own = (struct entry) { "13", "13", 11, NULL };
    write_entry(*state, "outer", &outer);
    write_entry(*state, "own", &own);
    wm_pidns_find(pidns, TOLD, &process);
    assert_int_equal(process.ours, 13);
    wm_pidns_close(pidns);
}

/* Whatever this is run in, we are ours. */
static void test_here(void **state)
{
    (void)state;
    struct wm_pidns_process process;
    struct wm_pidns *pidns = NULL;

    assert_int_equal(wm_pidns_open("/proc", "/proc", &pidns, NULL), WM_OK);
    wm_pidns_find(pidns, getpid(), &process);
    assert_int_equal(process.ours, getpid());
    assert_true(process.dir >= 0);
    wm_pidns_close(pidns);

    assert_int_equal(wm_pidns_open("/nonexistent", "/nonexistent", &pidns, NULL), WM_OK);
    wm_pidns_find(pidns, getpid(), &process);
    assert_int_equal(process.ours, 0);
    assert_int_equal(process.dir, -1);
    wm_pidns_close(pidns);
    wm_pidns_close(NULL);

    struct wm_error err = { 0 };
    test_fail_allocation(0);
    assert_int_equal(wm_pidns_open("/proc", "/proc", &pidns, &err), WM_ENOMEM);
    test_fail_allocation(-1);
    assert_non_null(strstr(err.text, "out of memory"));
}

UNIT(pidns)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_find, test_make_dir, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_pid_again, test_make_dir, test_remove_dir),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
