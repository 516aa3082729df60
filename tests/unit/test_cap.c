/* SPDX-License-Identifier: Apache-2.0 */
/* test_cap.c - caps: what words mean, what the journal holds, and sessions; on the fake
 * driver and small trees that stand for /sys. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cap/cap_change.h"
#include "cap/cap_device.h"
#include "cap/cap_journal.h"
#include "wattmeter/cap.h"

#define EARLIER 320

static const char scenario[] =
    "{\"gpus\": [{\"power_limit\": 320, \"power_limit_default\": 350, "
    "\"power_limit_min\": 100, \"power_limit_max\": 400}, "
    "{\"power_limit\": 320, \"power_limit_default\": 350, \"power_limit_min\": 100, "
    "\"power_limit_max\": 400, \"power_limit_step\": 5}], \"settings\": \"%s/settings\"}";

/* Two GPUs and a CPU package; journal and settings in the scratch folder. */
static int make_machine(void **state)
{
    char text[1024], path[512];

    if (test_make_dir(state) != 0)
        return -1;
    const char *dir = *state;
    snprintf(text, sizeof(text), scenario, dir);
    test_write_file(dir, "scenario.json", text);
    test_write_file(dir, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
    test_write_file(dir, "sys/class/powercap/intel-rapl:0/constraint_0_name",
                    "long_term\n");
    test_write_file(dir, "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
                    "120000000\n");
    test_write_file(dir, "sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw",
                    "165000000\n");
    snprintf(path, sizeof(path), "%s/scenario.json", dir);
    setenv("FAKE_NVML_SCENARIO", path, 1);
    setenv("WATTMETER_NVML", test_build_path("tests/fake/libnvidia-ml.so.1"), 1);
    snprintf(path, sizeof(path), "%s/sys", dir);
    setenv("WATTMETER_SYSFS", path, 1);
    snprintf(path, sizeof(path), "%s/state", dir);
    setenv("WATTMETER_STATE", path, 1);
    return 0;
}

static struct wm_caps *open_caps(void)
{
    struct wm_caps *caps;
    struct wm_error err;

    if (wm_caps_open(NULL, &caps, &err) < 0)
        fail_msg("%s", err.text);
    return caps;
}

/* What any process would read now. */
static double value_of(struct wm_caps *caps, size_t index)
{
    struct wm_cap_setting setting;

    assert_int_equal(wm_caps_refresh(caps, NULL), WM_OK);
    wm_caps_get(caps, index, &setting);
    assert_int_equal(setting.value.state, WM_READING_OK);
    return setting.value.number;
}

static void test_words(void **state)
{
    static const struct {
        const char *words;
        int status;
        const char *text;             /* of a failure */
        struct wm_cap_wish wishes[3]; /* index 0 and 1: GPUs; 2 and 3: clocks; 4: package */
        size_t count;
    } rows[] = {
        { "250W", 0, NULL, { { 0, 250 }, { 1, 250 } }, 2 },
        { "250", 0, NULL, { { 0, 250 }, { 1, 250 } }, 2 },
        { " 250 W ", 0, NULL, { { 0, 250 }, { 1, 250 } }, 2 },
        { "150.5w", 0, NULL, { { 0, 150.5 }, { 1, 150.5 } }, 2 },
        { "80%", 0, NULL, { { 0, 280 }, { 1, 280 } }, 2 },
        { "0.8", 0, NULL, { { 0, 280 }, { 1, 280 } }, 2 },
        { "1", 0, NULL, { { 0, 350 }, { 1, 350 } }, 2 },
        { "default", 0, NULL, { { 0, 350 }, { 1, 350 } }, 2 },
        { "1=200", 0, NULL, { { 1, 200 } }, 1 },
        { "gpu1 = 200W , 0=50%", 0, NULL, { { 1, 200 }, { 0, 175 } }, 2 },
        { "all=200W", 0, NULL, { { 0, 200 }, { 1, 200 } }, 2 },
        { "cpu=90W", 0, NULL, { { 4, 90 } }, 1 },
        { "cpu_package0=90W,0=110W", 0, NULL, { { 4, 90 }, { 0, 110 } }, 2 },
        { "1200MHz", 0, NULL, { { 2, 1.2e9 }, { 3, 1.2e9 } }, 2 },
        { "0=1.2GHz", 0, NULL, { { 2, 1.2e9 } }, 1 },
        { "none=200W", WM_EINVAL, "no cap is given", { { 0 } }, 0 },
        { "", WM_EINVAL, "no cap is given", { { 0 } }, 0 },
        { " ", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { ",", WM_EINVAL, "nothing behind the last comma", { { 0 } }, 0 },
        { "0=200W,", WM_EINVAL, "nothing behind the last comma", { { 0 } }, 0 },
        { "0=200W,,1=200W", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "200W,300W", WM_EINVAL, "each names its GPU", { { 0 } }, 0 },
        { "0=200W,0=300W", WM_EINVAL, "gpu0 is named twice", { { 0 } }, 0 },
        { "0=200W,all=300W", WM_EINVAL, "gpu0 is named twice", { { 0 } }, 0 },
        { "0=", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "W", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "-200W", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "2e2W", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "0x80", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "nan", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "inf", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "200kW", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "200W!", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "1.2.3", WM_EINVAL, "is no cap", { { 0 } }, 0 },
        { "0", WM_EINVAL, "a cap is above 0", { { 0 } }, 0 },
        { "0W", WM_EINVAL, "a cap is above 0", { { 0 } }, 0 },
        { "99.9W", WM_EINVAL, "gpu0: 99.9 W is below 100 W", { { 0 } }, 0 },
        { "400.1W", WM_EINVAL, "gpu0: 400.1 W is above 400 W", { { 0 } }, 0 },
        { "200%", WM_EINVAL, "700 W is above 400 W", { { 0 } }, 0 },
        { "2=200W", WM_EINVAL, "2", { { 0 } }, 0 },
        { "gpu7=200W", WM_EINVAL, "gpu7", { { 0 } }, 0 },
        { "cpu=80%", WM_EINVAL, "default is not known", { { 0 } }, 0 },
        { "cpu1=80W", WM_EINVAL, "no such CPU package", { { 0 } }, 0 },
        { "cpu=166W", WM_EINVAL, "above 165 W", { { 0 } }, 0 },
        { "cpu=1GHz", WM_EINVAL, "only GPUs have clocks to set", { { 0 } }, 0 },
        { "0=99GHz", WM_EINVAL, "above", { { 0 } }, 0 },
    };
    struct wm_caps *caps = open_caps();
    struct wm_cap_wish *wishes = calloc(wm_caps_count(caps), sizeof(*wishes));
    (void)state;

    assert_int_equal(wm_caps_count(caps), 5);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_error err = { 0 };
        size_t count = 77;

        print_message("  \"%s\"\n", rows[i].words);
        int status = wm_caps_parse(caps, rows[i].words, wishes, &count, &err);
        if (status != rows[i].status || (rows[i].text && !strstr(err.text, rows[i].text)))
            fail_msg("%d: %s", status, err.text);
        assert_int_equal(count, status < 0 ? 77 : rows[i].count);
        for (size_t k = 0; k < rows[i].count; k++) {
            assert_int_equal(wishes[k].index, rows[i].wishes[k].index);
            assert_true(fabs(wishes[k].value - rows[i].wishes[k].value) < 1e-6);
        }
    }
    free(wishes);
    wm_caps_close(caps);
}

static const struct wm_cap_entry an_entry = {
    .identity = "GPU-1/../2 \xc3\xa4",
    .device = "gpu0",
    .kind = WM_CAP_GPU_POWER,
    .is_session = true,
    .owner = 1234,
    .command = "python3 \"x\"",
    .earlier = EARLIER,
    .set = 250,
    .read_back = NAN,
};

static void test_entries(void **state)
{
    static const struct {
        const char *what, *old, *new; /* one text of the entry replaced by another */
        const char *text;             /* of the failure; NULL: there is none */
    } rows[] = {
        { "as it is", "", "", NULL },
        { "read back", "\"read_back\": null", "\"read_back\": 245.5", NULL },
        { "more than we know", "{", "{\"more\": 1,", NULL },
        { "another version", "\"version\": 1", "\"version\": 2", "version" },
        { "no version", "\"version\"", "\"versoin\"", "version" },
        { "a text as version", "\"version\": 1", "\"version\": \"1\"", "version" },
        { "no owner", "\"owner\"", "\"ovner\"", "owner" },
        { "a huge owner", "1234", "4294967296", "owner" },
        { "a negative owner", "1234", "-2", "owner" },
        { "no session", "\"session\": true", "\"session\": null", "session" },
        { "a number as session", "\"session\": true", "\"session\": 1", "session" },
        { "another kind", "gpu_power", "gpu_fan", "gpu_fan" },
        { "no kind", "\"kind\"", "\"kid\"", "kind" },
        { "no identity", "\"identity\"", "\"i\"", "identity" },
        { "no device", "\"device\"", "\"d\"", "device" },
        { "a list as command", "\"command\"", "\"command\": [], \"c\"", "command" },
        { "no boot", "\"boot\"", "\"b\"", NULL },
        { "a number as boot", "\"boot\"", "\"boot\": 1, \"b\"", "boot" },
        { "no earlier value", "320.0", "null", "earlier" },
        { "a text as earlier value", "320.0", "\"320\"", "earlier" },
        { "a text as value", "250.0", "\"250\"", "set" },
        { "no value in between", "\"before\"", "\"b\"", NULL },
        { "cut off", "250.0", "250.0}", "JSON" },
    };
    char *good = wm_cap_entry_text(&an_entry);
    (void)state;

    assert_non_null(good);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wm_cap_entry entry = { 0 };
        struct wm_error err = { 0 };
        char text[2048];
        char *at = strstr(good, rows[i].old);

        print_message("  %s\n", rows[i].what);
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, rows[i].new,
                 at + strlen(rows[i].old));
        int status = wm_cap_entry_parse(text, strlen(text), &entry, &err);
        assert_int_equal(status, rows[i].text ? WM_EFORMAT : WM_OK);
        if (rows[i].text) {
            assert_non_null(strstr(err.text, rows[i].text));
            assert_string_equal(entry.identity, "");
            continue;
        }
        assert_string_equal(entry.identity, an_entry.identity);
        assert_string_equal(entry.command, an_entry.command);
        assert_true(entry.is_session && entry.owner == 1234 && entry.earlier == EARLIER);
    }
    free(good);
}

static void count_entry(void *context, const struct wm_cap_entry *entry)
{
    assert_string_equal(entry->identity, an_entry.identity);
    ++*(size_t *)context;
}

static void test_journal(void **state)
{
    struct wm_cap_entry entry = an_entry, read;
    size_t count = 0;
    (void)state;

    assert_int_equal(wm_cap_journal_read(entry.identity, entry.kind, true, &read, NULL), 0);
    assert_int_equal(wm_cap_journal_write(&entry, NULL), WM_OK);
    entry.read_back = 250;
    assert_int_equal(wm_cap_journal_write(&entry, NULL), WM_OK);
    assert_int_equal(wm_cap_journal_read(entry.identity, entry.kind, true, &read, NULL), 1);
    assert_true(read.read_back == 250);
    assert_int_equal(wm_cap_journal_read(entry.identity, entry.kind, false, &read, NULL),
                     0);
    assert_int_equal(
        wm_cap_journal_read(entry.identity, WM_CAP_GPU_CLOCK, true, &read, NULL), 0);
    wm_cap_journal_each(count_entry, &count);
    assert_int_equal(count, 1);
    assert_int_equal(wm_cap_journal_remove(&entry, NULL), WM_OK);
    assert_int_equal(wm_cap_journal_remove(&entry, NULL), WM_OK);
    wm_cap_journal_each(count_entry, &count);
    assert_int_equal(count, 1);
}

static void test_lock(void **state)
{
    struct wm_error err;
    int fd, other;
    (void)state;

    assert_false(wm_cap_is_locked("GPU-1"));
    assert_int_equal(wm_cap_lock("GPU-1", "gpu0", 42, "train\x1b[31m", &fd, &err), WM_OK);
    assert_true(wm_cap_is_locked("GPU-1"));
    assert_int_equal(wm_cap_lock("GPU-1", "gpu0", 43, "other", &other, &err), WM_EEXIST);
    assert_string_equal(err.text, "gpu0: its cap is held by process 42 (train?[31m)");
    assert_int_equal(wm_cap_lock("GPU-2", "gpu1", 43, "other", &other, &err), WM_OK);
    close(other);
    close(fd);
    assert_int_equal(wm_cap_lock("GPU-1", "gpu0", 43, "other", &fd, &err), WM_OK);
    close(fd);
}

/* What is there is what we make it, until somebody else comes. */
static void test_set_and_restore(void **state)
{
    const struct wm_cap_wish to_250 = { 0, 250 }, to_203 = { 1, 203 };
    struct wm_caps *caps = open_caps();
    enum wm_cap_restored restored;
    double value;
    (void)state;

    assert_int_equal(wm_caps_restore(caps, 0, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_NOTHING && value == EARLIER);
    assert_int_equal(wm_caps_set(caps, &to_250, NULL), WM_OK);
    assert_int_equal(wm_caps_set(caps, &to_203, NULL), WM_OK);
    assert_true(value_of(caps, 0) == 250 && value_of(caps, 1) == 200);
    assert_int_equal(wm_caps_reset(caps, 0, NULL), WM_OK);
    assert_true(value_of(caps, 0) == 350);
    assert_int_equal(wm_caps_restore(caps, 0, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_PUT_BACK && value == EARLIER);

    assert_int_equal(wm_caps_write(caps, 1, 300, wm_caps_patience(), NULL), WM_OK);
    assert_int_equal(wm_caps_restore(caps, 1, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_BY_ANOTHER && value == 300);
    assert_int_equal(wm_caps_restore(caps, 1, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_NOTHING);
    wm_caps_close(caps);
}

/* Killed between the change and the reading back: what the driver has rounded is ours. */
static void test_rounded_and_not_read_back(void **state)
{
    struct wm_cap_entry entry = { .identity = "GPU-00000001-51a1-4ed0-8000-000000000000",
                                  .device = "gpu1",
                                  .earlier = EARLIER,
                                  .set = 203,
                                  .read_back = NAN };
    struct wm_caps *caps = open_caps();
    enum wm_cap_restored restored;
    double value;
    (void)state;

    assert_int_equal(wm_cap_journal_write(&entry, NULL), WM_OK);
    assert_int_equal(wm_caps_write(caps, 1, 203, wm_caps_patience(), NULL), WM_OK);
    assert_int_equal(wm_caps_restore(caps, 1, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_PUT_BACK && value == EARLIER);
    wm_caps_close(caps);
}

/* Killed between the journal and the driver, in the second of two changes. */
static void test_second_change_not_made(void **state)
{
    struct wm_cap_entry entry = { .identity = "GPU-00000001-51a1-4ed0-8000-000000000000",
                                  .device = "gpu1",
                                  .earlier = EARLIER,
                                  .before = 250,
                                  .set = 200,
                                  .read_back = NAN };
    static const struct {
        double now, again,
            restored; /* in force; set once more, or 0; what restore leaves */
        enum wm_cap_restored how;
    } rows[] = {
        { 250, 0, EARLIER, WM_CAP_PUT_BACK },   { 200, 0, EARLIER, WM_CAP_PUT_BACK },
        { 250, 220, EARLIER, WM_CAP_PUT_BACK }, { 280, 0, 280, WM_CAP_BY_ANOTHER },
        { EARLIER, 0, EARLIER, WM_CAP_BACK },
    };
    struct wm_caps *caps = open_caps();
    enum wm_cap_restored restored;
    double value;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_cap_wish again = { 1, rows[i].again };
        assert_int_equal(wm_cap_journal_write(&entry, NULL), WM_OK);
        assert_int_equal(wm_caps_write(caps, 1, rows[i].now, wm_caps_patience(), NULL),
                         WM_OK);
        if (rows[i].again > 0)
            assert_int_equal(wm_caps_set(caps, &again, NULL), WM_OK);
        assert_int_equal(wm_caps_restore(caps, 1, &restored, &value, NULL), WM_OK);
        assert_true(restored == rows[i].how && value == rows[i].restored);
    }
    wm_caps_close(caps);
}

/* A dead session's entry is not taken for what was there before the next one. */
static void test_after_a_dead_session(void **state)
{
    struct wm_cap_entry dead = { .is_session = true, .owner = 999, .command = "dead" };
    const struct wm_cap_wish to_150 = { 0, 150 };
    const char *program = test_build_path("wattmeter");
    struct wm_caps *caps = open_caps();
    struct wm_cap_session *session;
    enum wm_cap_restored restored;
    char text[256];
    double value;
    (void)state;

    assert_int_equal(wm_cap_change(caps, 0, 200, &dead, NULL), WM_OK);
    assert_int_equal(wm_caps_left_behind(text, sizeof(text)), 1);
    assert_string_equal(text, "gpu0 at 200 W (before: 320 W)");
    assert_int_equal(wm_cap_session_begin(caps, "test", program, &session, NULL), WM_OK);
    assert_int_equal(wm_cap_session_set(session, 0, 250, NULL), WM_OK);
    assert_int_equal(wm_caps_left_behind(text, sizeof(text)), 0);
    assert_int_equal(wm_cap_session_end(session, NULL), WM_OK);
    assert_true(value_of(caps, 0) == EARLIER);

    dead = (struct wm_cap_entry) { .is_session = true, .owner = 999, .command = "dead" };
    assert_int_equal(wm_cap_change(caps, 0, 200, &dead, NULL), WM_OK);
    assert_int_equal(wm_caps_set(caps, &to_150, NULL), WM_OK);
    assert_int_equal(wm_caps_restore(caps, 0, &restored, &value, NULL), WM_OK);
    assert_true(restored == WM_CAP_PUT_BACK && value == EARLIER);
    wm_caps_close(caps);
}

static int forks;

static void count_fork(void)
{
    forks++;
}

static void test_session(void **state)
{
    const char *program = test_build_path("wattmeter");
    struct wm_caps *caps = open_caps();
    struct wm_cap_session *session;
    struct wm_error err;
    (void)state;

    assert_int_equal(wm_cap_session_begin(caps, "test", "/nonexistent", &session, &err),
                     WM_ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent"));
    assert_int_equal(wm_cap_session_begin(caps, "test", "/bin/true", &session, &err),
                     WM_EIO);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0);
    size_t files = test_count_open_files();
    assert_int_equal(pthread_atfork(count_fork, NULL, NULL), 0);
    assert_int_equal(wm_cap_session_begin(caps, "test", program, &session, &err), WM_OK);
    assert_int_equal(forks, 0); /* another thread may hold what such a handler waits for */
    assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* a library leaves no child behind */
    assert_int_equal(wm_cap_session_set(session, 0, 99, &err), WM_EINVAL);
    assert_int_equal(wm_cap_session_set(session, 0, 250, &err), WM_OK);
    assert_int_equal(wm_cap_session_set(session, 0, 260, &err), WM_OK);
    assert_int_equal(wm_cap_session_set(session, 2, 1e9, &err), WM_OK);
    assert_int_equal(wm_cap_session_set(session, 4, 90, &err), WM_OK);
    assert_true(value_of(caps, 0) == 260 && value_of(caps, 4) == 90);
    assert_int_equal(wm_cap_session_check(session, &err), WM_OK);
    assert_int_equal(wm_cap_session_end(session, &err), WM_OK);
    assert_int_equal(test_count_open_files(), files);
    assert_true(value_of(caps, 0) == EARLIER && value_of(caps, 4) == 120);
    assert_int_equal(wm_cap_session_end(NULL, &err), WM_OK);
    wm_caps_close(caps);
}

/* Each step that needs memory may not get it; nothing is changed then, or it is put back.
 */
static void test_allocations(void **state)
{
    const char *program = test_build_path("wattmeter");
    const struct wm_cap_wish to_250 = { 0, 250 };
    struct wm_cap_wish wishes[5];
    struct wm_cap_session *session;
    struct wm_caps *caps = NULL;
    enum wm_cap_restored restored;
    size_t count;
    (void)state;

    for (long nth = 0, made = nth + 1; made > nth; nth++) {
        test_fail_allocation(nth);
        int status = wm_caps_open(NULL, &caps, NULL);
        made = test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        if (status == WM_OK)
            wm_caps_close(caps);
    }
    caps = open_caps();
    for (long nth = 0, made = nth + 1; made > nth; nth++) {
        test_fail_allocation(nth);
        int status = wm_caps_parse(caps, "0=200W,cpu=90W", wishes, &count, NULL);
        made = test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
    }
    for (long nth = 0, made = nth + 1; made > nth; nth++) {
        test_fail_allocation(nth);
        int status = wm_caps_set(caps, &to_250, NULL);
        made = test_fail_allocation(-1);
        assert_int_equal(wm_caps_restore(caps, 0, &restored, NULL, NULL), WM_OK);
        assert_true(value_of(caps, 0) == EARLIER);
        assert_true(made > nth || status == WM_OK);
    }
    for (long nth = 0, made = nth + 1; made > nth; nth++) {
        test_fail_allocation(nth);
        int status = wm_cap_session_begin(caps, "test", program, &session, NULL);
        made = test_fail_allocation(-1);
        assert_true(status < 0 || wm_cap_session_end(session, NULL) == WM_OK);
    }
    test_fail_threads(true);
    assert_true(wm_cap_session_begin(caps, "test", program, &session, NULL) < 0);
    test_fail_threads(false);
    wm_caps_close(caps);
}

UNIT(cap)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, make_machine, test_remove_dir),
        cmocka_unit_test(test_entries),
        cmocka_unit_test_setup_teardown(test_journal, make_machine, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_lock, make_machine, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_set_and_restore, make_machine,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_second_change_not_made, make_machine,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_rounded_and_not_read_back, make_machine,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_after_a_dead_session, make_machine,
                                        test_remove_dir),
        cmocka_unit_test_setup_teardown(test_session, make_machine, test_remove_dir),
        cmocka_unit_test_setup_teardown(test_allocations, make_machine, test_remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
