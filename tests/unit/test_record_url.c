/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_url.c - URLs of databases that are refused: before anything is
 * done, and without a word of their passwords. No server is needed. */
#include "test_record_fixture.h"

#include "base/base_utf8.h"

/* Each has S3cr in a place where a password, or a part of it, may stand. */
static const char *const bad_urls[] = {
    "postgresql://u:S3cr%zz@h/db",
    "postgresql://u:S3cr%00@h/db",
    "postgresql://u:S3cr/et@h/db",
    "postgresql://u:12/S3cr@h/db?host=/nonexistent",
    "postgresql://u:x@S3cr@h/db",
    "postgresql://u:S3cr@[::1/db",
    "postgresql://u:S3cr@h/db?nosuch=S3cr",
    "postgresql://u:S3cr@h/db?S3cr",
    "postgresql://u:S3cr@h/db?password=S3cr=S3cr",
    "postgresql://h/db?password=S3cr&port=S3cr",
    "postgres://u:S3cr@h:S3cr/db",
    "postgresql://u:S3cr@/db?host=/nonexistent",
    "postgresql://?service=nosuch&password=S3cr",
};

static void assert_refused(int status, const struct wm_error *err, const char *what)
{
    if (status >= 0)
        fail_msg("%s: not refused", what);
    assert_int_equal(err->status, status);
    if (!strstr(err->text, "postgresql://") || strstr(err->text, "S3cr") ||
        strchr(err->text, '\n'))
        fail_msg("%s: %s", what, err->text);
}

static void test_no_password(void **state)
{
    struct wm_recorder *recorder = NULL;
    struct wm_recording *recording = NULL, *stored = NULL;
    struct wm_error err = { 0 };

    record_fixture(fixture_path(state, "run.csv"), WM_RECORD_NEW, 1);
    for (size_t i = 0; i < ARRAY_LEN(bad_urls); i++) {
        const char *url = bad_urls[i];
        for (int mode = WM_RECORD_NEW; mode <= WM_RECORD_APPEND; mode++) {
            int status = wm_recorder_check(url, (enum wm_record_mode)mode, &err);
            assert_refused(status, &err, url);
            status =
                wm_recorder_open(url, (enum wm_record_mode)mode, fixture_run(),
                                 fixture_channels(), FIXTURE_CHANNELS, &recorder, &err);
            assert_refused(status, &err, url);
        }
        int status = wm_recording_open(url, WM_LAST_RUN, &recording, &err);
        assert_refused(status, &err, url);
        assert_ok(wm_recording_open(fixture_path(state, "run.csv"), 0, &stored, &err));
        status = wm_recording_export(stored, url, WM_RECORD_NEW, &err);
        assert_refused(status, &err, url);
        wm_recording_close(stored);

        char *shown = wm_recorder_shown(url);
        assert_non_null(shown);
        if (strstr(shown, "S3cr") || strstr(wm_text_path(url), "S3cr"))
            fail_msg("%s: shown as %s and %s", url, shown, wm_text_path(url));
        free(shown);
    }
}

static void test_overwrite(void **state)
{
    struct wm_error err = { 0 };

    (void)state;
    assert_int_equal(
        wm_recorder_check("postgresql:///db?host=/nonexistent", WM_RECORD_OVERWRITE, &err),
        WM_EINVAL);
    assert_non_null(strstr(err.text, "overwrite is for files"));
}

static void test_is_url(void **state)
{
    static const struct {
        const char *target;
        bool is_url;
    } rows[] = {
        { "postgresql://h/db", true },
        { "postgres://h/db", true },
        { "postgresql://h/db.csv", true },
        { "postgresql://", true },
        { "postgresql:/h/db", false },
        { "postgres.sqlite", false },
        { "./postgresql://x.csv", false },
        { "Postgresql://h/db", false },
        { "", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (wm_url_is_postgres(rows[i].target) != rows[i].is_url)
            fail_msg("%s", rows[i].target);
    }
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

UNIT(record_url)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_no_password),
        cmocka_unit_test(test_overwrite),
        cmocka_unit_test(test_is_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
