/* SPDX-License-Identifier: Apache-2.0 */
/* test_base_sqlite.c - SQLite as it is found at run time: missing, too old,
 * and by several threads at once. That a command runs without it is for
 * tests/system/test_recording.py, where it can be hidden. */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_sqlite.h"
#include "record/record_ops.h"

enum { THREADS = 8 };

/* What never came to be opened is closed all the same. Runs first, for nothing may be
 * loaded yet. */
static void test_close_before(void **state)
{
    const struct wm_recorder_ops *const recorders[] = {
        &wm_recorder_sqlite,
        &wm_recorder_postgres,
    };

    (void)state;
    assert_null(wm_sqlite.close);
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        void *recorder = calloc(1, recorders[i]->state_size);
        assert_non_null(recorder);
        recorders[i]->close(recorder);
        free(recorder);
    }
    void *reader = calloc(1, wm_reader_sqlite.state_size);
    assert_non_null(reader);
    wm_reader_sqlite.close(reader);
    free(reader);
    assert_null(wm_sqlite.close);
}

static void test_missing(void **state)
{
    static const struct {
        const char *name, *library, *text;
    } cases[] = {
        { "not installed", "libnosuch.so.0",
          "no SQLite (Debian: libsqlite3-0): libnosuch" },
        { "no library", "/dev/null", "no SQLite (Debian: libsqlite3-0): /dev/null" },
        { "without its functions", "libm.so.6", "libm.so.6 has no sqlite3_bind_blob" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        sqlite3_api_routines functions = { 0 };
        struct wm_error err = { 0 };
        assert_int_equal(wm_sqlite_find(cases[i].library, 0, &functions, NULL), WM_ENODEV);
        assert_int_equal(wm_sqlite_find(cases[i].library, 0, &functions, &err), WM_ENODEV);
        if (err.status != WM_ENODEV || !strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].name, err.text);
        assert_null(functions.bind_double);
    }
}

static void *load(void *result)
{
    struct wm_error err = { 0 };
    sqlite3 *db = NULL;

    int status = wm_sqlite_load(&err);
    if (status == WM_OK &&
        sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        status = WM_EIO;
    if (db)
        sqlite3_close(db);
    *(int *)result = status;
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    int results[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load, &results[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(results[i], WM_OK);
    }
}

/* Every function has got its own. */
static void test_loaded(void **state)
{
    sqlite3_api_routines functions;

    (void)state;
    assert_int_equal(wm_sqlite_load(NULL), WM_OK);
    assert_int_equal(wm_sqlite_find("libsqlite3.so.0", RTLD_NOLOAD, &functions, NULL),
                     WM_OK);
    assert_memory_equal(&functions, &wm_sqlite, sizeof(functions));
    assert_non_null(wm_sqlite.bind_double);
    assert_non_null(wm_sqlite.value_type);
    char *text = sqlite3_mprintf("%Q %w", "it's", "a\"b");
    assert_string_equal(text, "'it''s' a\"\"b");
    sqlite3_free(text);
}

UNIT(base_sqlite)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_before),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
