/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - what every unit test needs: cmocka with its prerequisites, a scratch
 * folder, small files in it, and allocations and threads that fail on demand. */
#ifndef WM_TEST_H
#define WM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Begins the function with which test_NAME.c ends; test_main.c calls it. */
#define UNIT(name)                                                                         \
    int unit_##name(void);                                                                 \
    int unit_##name(void)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* A fresh scratch folder as cmocka's state, a heap-allocated path; the teardown
 * removes it with all that is in it. What tests have left that were killed goes with the
 * first that is made an hour later. */
int test_make_dir(void **state);
int test_remove_dir(void **state);

/* The same, and local times are in UTC. */
int test_make_dir_utc(void **state);

/* Writes `text` to `path` under `dir`, making the folders on the way. */
void test_write_file(const char *dir, const char *path, const char *text);

void test_write_bytes(const char *path, const char *bytes, size_t length);

/* Absolute path of a file of the source tree or of the build tree; static
 * memory, good until the fourth call from here. */
const char *test_source_path(const char *relative);
const char *test_build_path(const char *relative);

/* The text of such a file of the source tree, the caller's to free. */
char *test_read_source(const char *relative);

size_t test_count_open_files(void);

/* Lets the allocation number `nth` from now (0: the next) fail, and all after
 * it; -1 switches it off. Returns how many were made since the last call. Works
 * in programs linked with test_alloc.c, which replaces malloc's family. */
long test_fail_allocation(long nth);

/* Lets so much time pass at once, by wm_clock_monotonic_ns(); replaced likewise. */
void test_pass_time(int64_t ns);

/* Whether pthread_create() fails, as where a limit is reached; replaced likewise. */
void test_fail_threads(bool fail);

#endif
