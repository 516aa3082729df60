/* SPDX-License-Identifier: Apache-2.0 */
/* test_record.c - recorders and the file system: what is in the way, what is
 * lost, and what a kill leaves behind. */
#include "test_record_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/record_queue.h"

static const char *const formats[] = { "run.sqlite", "run.csv" };

/* More than wait in memory, and than fit on the disk. */
enum { FULL_DISK_TICKS = 1500 };

static void sleep_ms(long ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

static struct wm_recorder *open_recorder(const char *path, enum wm_record_mode mode)
{
    struct wm_recorder *recorder = NULL;
    struct wm_error err = { 0 };

    assert_ok(wm_recorder_open(path, mode, fixture_run(), fixture_channels(),
                               FIXTURE_CHANNELS, &recorder, &err));
    return recorder;
}

static void record_tick(struct wm_recorder *recorder, size_t n)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_tick tick = fixture_tick(n, readings);

    wm_recorder_tick(recorder, &tick);
}

/* Ticks in the newest run. Each has to be a whole tick of the fixture, and they
 * have to be in order; `has_result`, if not NULL, says whether there is one. */
static size_t count_ticks(const char *path, bool *has_result)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;
    size_t count = 0;
    int status;

    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    while ((status = wm_recording_next(recording, &tick, &err)) > 0) {
        size_t n = (size_t)(tick.when_ns / 100000000 - 10);
        struct wm_tick expected = fixture_tick(n, readings);
        assert_int_equal(tick.when_ns, expected.when_ns);
        for (size_t i = 0; i < FIXTURE_CHANNELS; i++)
            assert_stored(&tick.readings[i], &expected.readings[i]);
        count++;
    }
    assert_ok(status);
    if (has_result)
        *has_result = wm_recording_result(recording) != NULL;
    wm_recording_close(recording);
    return count;
}

static void assert_content(const char *path, const char *text)
{
    char content[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t length = fread(content, 1, sizeof(content) - 1, file);
    fclose(file);
    content[length] = '\0';
    assert_string_equal(content, text);
}

static size_t count_files(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

/* Runs `body` in a child of its own. A check that fails there must not go on
 * with the rest of the tests, as it would in a bare child. */
static int run_child(void (*body)(void **state), void *state)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(body, state) };
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO); /* where our own results are listed */
        _exit(cmocka_run_group_tests_name("child", tests, NULL, NULL));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_refused(void **state)
{
    static const struct {
        const char *what, *target;
        enum wm_record_mode mode;
        int status;
        const char *complains_of;
    } cases[] = {
        { "no suffix", "run", WM_RECORD_NEW, WM_EINVAL,
          "end in .sqlite, .sqlite3, .db, .csv" },
        { "a folder without a name", ".", WM_RECORD_NEW, WM_EINVAL, "end in" },
        { "an unknown suffix", "run.txt", WM_RECORD_NEW, WM_EINVAL, "run.txt" },
        { "a suffix in the middle", "run.csv.gz", WM_RECORD_NEW, WM_EINVAL, "run.csv.gz" },
        { "JSON", "run.json", WM_RECORD_NEW, WM_EINVAL, "record to .sqlite and export" },
        { "a CSV file is there", "mine.csv", WM_RECORD_NEW, WM_EEXIST,
          "mine.csv: exists already; mode \"overwrite\" replaces it" },
        { "a database is there", "mine.sqlite", WM_RECORD_NEW, WM_EEXIST,
          "mode \"overwrite\" replaces it, mode \"append\" adds to it" },
        { "adding to CSV", "mine.csv", WM_RECORD_APPEND, WM_EEXIST,
          "mine.csv: exists already, and only .sqlite and .aipm can be added to" },
        { "adding to what is no database", "mine.sqlite", WM_RECORD_APPEND, WM_EFORMAT,
          "not a database" },
        { "no such folder", "no/run.csv", WM_RECORD_NEW, WM_ENOENT, "no such folder" },
        { "a file for a folder", "mine.csv/run.csv", WM_RECORD_NEW, WM_ENOENT,
          "Not a directory" },
        { "a folder for a file", "folder.csv", WM_RECORD_NEW, WM_EINVAL, "regular" },
        { "a folder to replace", "folder.csv", WM_RECORD_OVERWRITE, WM_EINVAL, "regular" },
        { "a pipe to replace", "pipe.csv", WM_RECORD_OVERWRITE, WM_EINVAL, "regular" },
        { "a pipe to add to", "pipe.sqlite", WM_RECORD_APPEND, WM_EINVAL, "regular" },
        { "a link to replace", "link.csv", WM_RECORD_OVERWRITE, WM_EINVAL,
          "symbolic link" },
        { "a link to nowhere", "nowhere.csv", WM_RECORD_NEW, WM_EEXIST, "exists" },
        { "a link to nowhere to add to", "nowhere.sqlite", WM_RECORD_APPEND, WM_ENOENT,
          "No such file" },
    };
    struct wm_recorder *recorder = NULL;

    test_write_file(*state, "mine.csv", "mine");
    test_write_file(*state, "mine.sqlite", "mine");
    assert_int_equal(mkdir(fixture_path(state, "folder.csv"), 0755), 0);
    assert_int_equal(mkfifo(fixture_path(state, "pipe.csv"), 0644), 0);
    assert_int_equal(mkfifo(fixture_path(state, "pipe.sqlite"), 0644), 0);
    assert_int_equal(symlink("mine.csv", fixture_path(state, "link.csv")), 0);
    assert_int_equal(symlink("no", fixture_path(state, "nowhere.csv")), 0);
    assert_int_equal(symlink("no", fixture_path(state, "nowhere.sqlite")), 0);
    size_t files = count_files(*state);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = fixture_path(state, cases[i].target);
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_recorder_open(path, cases[i].mode, fixture_run(),
                                          fixture_channels(), FIXTURE_CHANNELS, &recorder,
                                          &err),
                         cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
        assert_null(recorder);

        /* What is in a file is no business of the check. */
        if (cases[i].status != WM_EFORMAT)
            assert_int_equal(wm_recorder_check(path, cases[i].mode, &err), cases[i].status);
        assert_content(fixture_path(state, "mine.csv"), "mine");
        assert_content(fixture_path(state, "mine.sqlite"), "mine");
        assert_int_equal(count_files(*state), files);
    }
}

static void test_long_path(void **state)
{
    struct wm_error err = { 0 };
    char name[2000];

    (void)state;
    memset(name, '/', sizeof(name));
    snprintf(name + sizeof(name) - 32, 32, "no-such-folder/run.csv");
    assert_int_equal(wm_recorder_check(name, WM_RECORD_NEW, &err), WM_ENOENT);
    assert_non_null(strstr(err.text, "no such folder"));
}

static void test_too_many_channels(void **state)
{
    static const struct {
        const char *name;
        size_t count;
        int status;
        const char *complains_of;
    } cases[] = {
        { "run.csv", 2000, WM_OK, NULL },
        { "run.csv", 2001, WM_EINVAL, "2001 channels" },
        { "run.sqlite", 997, WM_OK, NULL },
        { "run.sqlite", 1999, WM_EINVAL, "columns" },
        { "run.sqlite", 2001, WM_EINVAL, "2001 channels" },
    };
    struct wm_channel *channels = calloc(2001, sizeof(*channels));
    char(*labels)[16] = calloc(2001, sizeof(*labels));

    for (size_t i = 0; i < 2001; i++) {
        snprintf(labels[i], sizeof(labels[i]), "cpu%zu", i);
        channels[i] = fixture_channels()[13];
        channels[i].device = channels[i].label = labels[i];
    }
    test_write_file(*state, "run.csv", "old");
    test_write_file(*state, "run.sqlite", "old");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recorder *recorder = NULL;
        struct wm_error err = { 0 };
        const char *path = fixture_path(state, cases[i].name);

        print_message("  %s %zu\n", cases[i].name, cases[i].count);
        int status = wm_recorder_open(path, WM_RECORD_OVERWRITE, fixture_run(), channels,
                                      cases[i].count, &recorder, &err);
        assert_int_equal(status, cases[i].status);
        if (status < 0)
            assert_non_null(strstr(err.text, cases[i].complains_of));
        wm_recorder_close(recorder);
        assert_content(path, "old");
    }
    assert_int_equal(count_files(*state), 2);
    free(channels);
    free(labels);
}

/* The old file goes when the new one has something in it, and not before. */
static void test_overwrite(void **state)
{
    static const char *const companions[] = { "", "-wal", "-shm", "-journal" };

    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const char *path = fixture_path(state, formats[f]);
        size_t kept = f == 0 ? ARRAY_LEN(companions) : 1;

        for (size_t i = 0; i < kept; i++) {
            char name[64];
            snprintf(name, sizeof(name), "%s%s", formats[f], companions[i]);
            test_write_file(*state, name, "old");
        }
        size_t files = count_files(*state);
        struct wm_recorder *recorder = open_recorder(path, WM_RECORD_OVERWRITE);
        wm_recorder_close(recorder);
        assert_int_equal(count_files(*state), files);
        assert_content(path, "old");

        recorder = open_recorder(path, WM_RECORD_OVERWRITE);
        record_tick(recorder, 0);
        wm_recorder_close(recorder);
        assert_int_equal(count_files(*state), files - kept + 1);
        assert_int_equal(count_ticks(path, NULL), 1);

        record_fixture(path, WM_RECORD_OVERWRITE, 3);
        assert_int_equal(count_ticks(path, NULL), 3);
        unlink(path);
    }
}

static void test_nothing_recorded(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        wm_recorder_close(open_recorder(fixture_path(state, formats[f]), WM_RECORD_NEW));
        assert_int_equal(count_files(*state), 0);
    }
    wm_recorder_close(NULL);
}

static void test_append(void **state)
{
    const char *path = fixture_path(state, "run.db"), *csv = fixture_path(state, "run.csv");
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };

    record_fixture(csv, WM_RECORD_APPEND, 3); /* there is nothing to add to */
    assert_int_equal(count_ticks(csv, NULL), 3);
    for (size_t run = 0; run < 4; run++) {
        record_fixture(path, WM_RECORD_APPEND, run + 1);
        assert_int_equal(count_ticks(path, NULL), run + 1);
    }
    assert_ok(wm_recording_open(path, 2, &recording, &err));
    assert_int_equal(wm_recording_run_count(recording), 4);
    wm_recording_close(recording);
}

/* Two that add to one file at the same time. */
static void test_append_together(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");
    struct wm_recorder *recorders[3];
    struct wm_recording *recording = NULL;
    struct wm_result result = fixture_result();
    struct wm_error err = { 0 };
    struct wm_tick tick;

    for (size_t i = 0; i < ARRAY_LEN(recorders); i++)
        recorders[i] = open_recorder(path, WM_RECORD_APPEND);
    for (size_t n = 0; n < 1000; n++)
        record_tick(recorders[n % 3], n);
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        wm_recorder_flush(recorders[i], &result);
        assert_string_equal(result.recording_trouble, "");
        assert_ok(wm_recorder_finish(recorders[i], &result, &err));
    }
    for (size_t i = 0; i < ARRAY_LEN(recorders); i++)
        wm_recorder_close(recorders[i]);

    for (size_t i = 0; i < ARRAY_LEN(recorders); i++) {
        size_t count = 0;
        assert_ok(wm_recording_open(path, i, &recording, &err));
        assert_int_equal(wm_recording_run_count(recording), 3);
        assert_non_null(wm_recording_result(recording));
        while (wm_recording_next(recording, &tick, &err) > 0)
            count++;
        assert_int_equal(count, i == 0 ? 334 : 333);
        wm_recording_close(recording);
    }
    assert_int_equal(count_files(*state), 1);
}

enum { WRITERS = 6 };

/* Lets as many processes record to `path` in the same moment, one tick each.
 * Returns how many of them did; the others found the file there. */
static int record_at_once(const char *path, enum wm_record_mode mode)
{
    pid_t pids[WRITERS];
    int gate[2], winners = 0;

    assert_int_equal(pipe(gate), 0);
    for (size_t i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct wm_recorder *recorder = NULL;
            struct wm_result result = fixture_result();
            struct wm_error err = { 0 };
            char byte;

            close(gate[1]);
            if (read(gate[0], &byte, 1) != 0)
                _exit(2);
            int status = wm_recorder_open(path, mode, fixture_run(), fixture_channels(),
                                          FIXTURE_CHANNELS, &recorder, &err);
            if (status == WM_EEXIST)
                _exit(1);
            if (status == WM_OK) {
                record_tick(recorder, 0);
                wm_recorder_flush(recorder, &result);
                status = wm_recorder_finish(recorder, &result, &err);
                wm_recorder_close(recorder);
            }
            fprintf(stderr, "%s%s", err.text, result.recording_trouble);
            _exit(status == WM_OK && result.lost_ticks == 0 ? 0 : 2);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (size_t i = 0; i < WRITERS; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        winners += WEXITSTATUS(status) == 0;
    }
    return winners;
}

static void test_two_writers(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const char *path = fixture_path(state, formats[f]);
        assert_int_equal(record_at_once(path, WM_RECORD_NEW), 1);
        assert_int_equal(count_ticks(path, NULL), 1);
    }
}

static void test_two_appenders(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;

    for (size_t round = 1; round <= 3; round++) {
        assert_int_equal(record_at_once(path, WM_RECORD_APPEND), WRITERS);
        for (size_t run = 0; run < round * WRITERS; run++) {
            assert_ok(wm_recording_open(path, run, &recording, &err));
            assert_int_equal(wm_recording_run_count(recording), round * WRITERS);
            assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
            assert_int_equal(wm_recording_next(recording, &tick, &err), 0);
            assert_non_null(wm_recording_result(recording));
            wm_recording_close(recording);
        }
    }
}

/* A writer at full speed, which tells its parent how far it is. */
static pid_t start_writer(const char *path, int *ret_progress)
{
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct wm_recorder *recorder = NULL;
        struct wm_gap gap = fixture_gap();
        if (wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                             FIXTURE_CHANNELS, &recorder, NULL) < 0)
            _exit(1);
        for (size_t n = 0;; n++) {
            record_tick(recorder, n);
            if (n % 50 == 7)
                wm_recorder_gap(recorder, &gap);
            if (write(pipes[1], &n, sizeof(n)) != sizeof(n))
                _exit(1);
            sleep_ms(1);
        }
    }
    close(pipes[1]);
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    *ret_progress = pipes[0];
    return pid;
}

static size_t read_progress(int progress)
{
    size_t ticks[512], last = 0;
    ssize_t length;

    while ((length = read(progress, ticks, sizeof(ticks))) > 0)
        last = ticks[(size_t)length / sizeof(ticks[0]) - 1];
    return last;
}

/* What was recorded a second before a kill survives it, and the file opens. */
static void test_kill(void **state)
{
    struct {
        const char *path;
        pid_t pid;
        int progress;
        size_t second_ago;
    } writers[2 * WRITERS];

    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        char name[32];
        snprintf(name, sizeof(name), "%zu%s", i, strchr(formats[i % 2], '.'));
        writers[i].path = fixture_path(state, name);
        writers[i].pid = start_writer(writers[i].path, &writers[i].progress);
    }
    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        struct pollfd begins = { .fd = writers[i].progress, .events = POLLIN };
        assert_int_equal(poll(&begins, 1, 30000), 1);
    }
    sleep_ms(600);
    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        sleep_ms(37);
        writers[i].second_ago = read_progress(writers[i].progress);
    }
    sleep_ms(1000 - 37 * (long)ARRAY_LEN(writers));
    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        sleep_ms(37);
        assert_int_equal(kill(writers[i].pid, SIGKILL), 0);
        assert_int_equal(waitpid(writers[i].pid, NULL, 0), writers[i].pid);
        close(writers[i].progress);
    }
    for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
        bool has_result = true;
        size_t count = count_ticks(writers[i].path, &has_result);
        print_message("  %s: %zu ticks, %zu a second before\n",
                      strrchr(writers[i].path, '/'), count, writers[i].second_ago);
        assert_true(writers[i].second_ago > 0);
        assert_true(count > writers[i].second_ago);
        assert_false(has_result);
    }
}

/* A kill while the file is made leaves one that opens, or one that is refused
 * with a clear text. */
static void test_kill_early(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        for (unsigned round = 0; round < 20; round++) {
            const char *path = fixture_path(state, formats[f]);
            struct wm_recording *recording = NULL;
            struct wm_error err = { 0 };

            pid_t pid = fork();
            if (pid == 0) {
                struct wm_recorder *recorder = open_recorder(path, WM_RECORD_NEW);
                record_tick(recorder, 0);
                sleep_ms(10000);
                _exit(0);
            }
            struct timespec moment = { .tv_nsec = round * 500000 };
            nanosleep(&moment, NULL);
            assert_int_equal(kill(pid, SIGKILL), 0);
            assert_int_equal(waitpid(pid, NULL, 0), pid);

            int status = wm_recording_open(path, WM_LAST_RUN, &recording, &err);
            if (status < 0)
                assert_true(status == WM_ENOENT || status == WM_EFORMAT);
            wm_recording_close(recording);
            unlink(path);
        }
    }
}

struct full_disk {
    const char *path;
    bool recovers;
};

/* In a child, because the limit and the signal are the process's. */
static void record_to_full_disk(void **state)
{
    const struct full_disk *disk = *state;
    struct rlimit old, full;
    struct wm_result result = fixture_result();
    struct wm_error err = { 0 };

    signal(SIGXFSZ, SIG_IGN);
    struct wm_recorder *recorder = open_recorder(disk->path, WM_RECORD_NEW);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    full = old;
    full.rlim_cur = 200000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (size_t n = 0; n < FULL_DISK_TICKS; n++)
        record_tick(recorder, n);
    sleep_ms(700);
    if (disk->recovers)
        setrlimit(RLIMIT_FSIZE, &old);
    wm_recorder_flush(recorder, &result);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_ok(wm_recorder_finish(recorder, &result, &err));
    wm_recorder_close(recorder);

    print_message("%llu lost: %s\n", (unsigned long long)result.lost_ticks,
                  result.recording_trouble);
    if (disk->recovers) {
        assert_string_equal(result.recording_trouble, "");
        assert_int_equal(result.lost_ticks, 0);
    } else {
        assert_non_null(strstr(result.recording_trouble, "File too large"));
        assert_non_null(strstr(result.recording_trouble, "run."));
        assert_true(result.lost_ticks > 0);
    }
}

static void test_disk_full(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        for (int recovers = 0; recovers < 2; recovers++) {
            struct full_disk disk = { fixture_path(state, formats[f]), recovers };
            assert_int_equal(run_child(record_to_full_disk, &disk), 0);
            size_t count = count_ticks(disk.path, NULL);
            print_message("  %s: %zu ticks\n", formats[f], count);
            if (recovers)
                assert_int_equal(count, FULL_DISK_TICKS);
            else
                assert_true(count < FULL_DISK_TICKS);
            unlink(disk.path);
        }
    }
}

static void test_file_gone(void **state)
{
    static const struct {
        const char *what;
        bool replaced;
        const char *complains_of;
        int status;
    } cases[] = {
        { "removed", false, "removed while", WM_ENOENT },
        { "replaced", true, "replaced by another file", WM_EIO },
    };

    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            const char *path = fixture_path(state, formats[f]);
            struct wm_result result = fixture_result();
            struct wm_error err = { 0 };

            print_message("  %s %s\n", formats[f], cases[i].what);
            struct wm_recorder *recorder = open_recorder(path, WM_RECORD_NEW);
            record_tick(recorder, 0);
            assert_int_equal(unlink(path), 0);
            if (cases[i].replaced)
                test_write_file(*state, formats[f], "not yours");
            wm_recorder_flush(recorder, &result);
            assert_non_null(strstr(result.recording_trouble, cases[i].complains_of));
            assert_int_equal(wm_recorder_finish(recorder, &result, &err), cases[i].status);
            assert_non_null(strstr(err.text, cases[i].complains_of));
            wm_recorder_close(recorder);
            if (cases[i].replaced)
                assert_content(path, "not yours");
            unlink(path);
        }
    }
}

/* Root may write everywhere. */
static void become_nobody(void)
{
    if (geteuid() == 0) {
        assert_int_equal(setgid(65534), 0);
        assert_int_equal(setuid(65534), 0);
    }
}

static void write_where_forbidden(void **state)
{
    static const struct {
        const char *target;
        enum wm_record_mode mode;
        const char *complains_of;
    } cases[] = {
        { "new.csv", WM_RECORD_NEW, "Permission denied" },
        { "new.sqlite", WM_RECORD_NEW, "Permission denied" },
        { "run.csv", WM_RECORD_OVERWRITE, "Permission denied" },
        { "run.sqlite", WM_RECORD_OVERWRITE, "Permission denied" },
        { "run.sqlite", WM_RECORD_APPEND, "Permission denied" },
    };
    struct wm_recorder *recorder = NULL;
    struct wm_error err = { 0 };

    become_nobody();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = fixture_path(state, cases[i].target);
        print_message("  %s\n", cases[i].target);
        assert_int_equal(wm_recorder_check(path, cases[i].mode, &err), WM_EACCES);
        assert_int_equal(wm_recorder_open(path, cases[i].mode, fixture_run(),
                                          fixture_channels(), FIXTURE_CHANNELS, &recorder,
                                          &err),
                         WM_EACCES);
        assert_non_null(strstr(err.text, cases[i].complains_of));
    }
}

static void read_where_forbidden(void **state)
{
    bool has_result = false;

    become_nobody();
    assert_int_equal(count_ticks(fixture_path(state, "run.csv"), NULL), 5);
    assert_int_equal(count_ticks(fixture_path(state, "run.sqlite"), NULL), 5);
    assert_int_equal(count_ticks(fixture_path(state, "killed.sqlite"), &has_result), 30);
    assert_false(has_result);
    assert_int_equal(count_ticks(fixture_path(state, "noshm.sqlite"), &has_result), 30);
    assert_false(has_result);
}

/* How many ticks a recorder that is still at work has written. */
static size_t count_written(const char *path)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;
    size_t count = 0;

    if (wm_recording_open(path, WM_LAST_RUN, &recording, &err) != 0)
        return 0;
    while (wm_recording_next(recording, &tick, &err) > 0)
        count++;
    wm_recording_close(recording);
    return count;
}

/* Leaves a database with a log: the recorder is killed when its 30 ticks are written. */
static void record_and_die(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct wm_recorder *recorder = open_recorder(path, WM_RECORD_NEW);
        for (size_t n = 0; n < 30; n++)
            record_tick(recorder, n);
        for (;;)
            pause();
    }
    for (int i = 0; i < 3000 && count_written(path) < 30; i++)
        sleep_ms(10);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_read_only_folder(void **state)
{
    record_fixture(fixture_path(state, "run.csv"), WM_RECORD_NEW, 5);
    record_fixture(fixture_path(state, "run.sqlite"), WM_RECORD_NEW, 5);
    record_and_die(fixture_path(state, "killed.sqlite"));
    record_and_die(fixture_path(state, "noshm.sqlite"));
    assert_int_equal(access(fixture_path(state, "noshm.sqlite-wal"), F_OK), 0);
    assert_int_equal(unlink(fixture_path(state, "noshm.sqlite-shm")), 0);
    size_t files = count_files(*state);

    assert_int_equal(chmod(*state, 0555), 0);
    assert_int_equal(run_child(write_where_forbidden, *state), 0);
    assert_int_equal(run_child(read_where_forbidden, *state), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(count_files(*state), files);
}

static volatile sig_atomic_t caught;

static void catch_signal(int number)
{
    (void)number;
    caught++;
}

/* A signal to the process that its own threads block is left to them. */
static void test_signals_left_alone(void **state)
{
    struct wm_recorder *recorder = NULL;
    sigset_t set, old, pending;

    signal(SIGUSR1, catch_signal);
    recorder = open_recorder(fixture_path(state, "run.csv"), WM_RECORD_NEW);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    sleep_ms(50);
    assert_int_equal(caught, 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGUSR1), 1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    assert_int_equal(caught, 1);
    signal(SIGUSR1, SIG_DFL);
    wm_recorder_close(recorder);
}

static void test_time_goes_back(void **state)
{
    const char *path = fixture_path(state, "run.sqlite");
    struct wm_result result = fixture_result();
    struct wm_recorder *recorder = open_recorder(path, WM_RECORD_NEW);

    record_tick(recorder, 5);
    record_tick(recorder, 5);
    record_tick(recorder, 3);
    record_tick(recorder, 6);
    wm_recorder_flush(recorder, &result);
    assert_int_equal(result.lost_ticks, 2);
    assert_non_null(strstr(result.recording_trouble, "went back"));
    wm_recorder_close(recorder);
    assert_int_equal(count_ticks(path, NULL), 2);
}

static void test_queue(void **state)
{
    struct wm_reading readings[3];
    struct wm_queue queue;
    struct wm_error err = { 0 };
    size_t pushed = 0, lost = 0;

    (void)state;
    assert_ok(wm_queue_init(&queue, ARRAY_LEN(readings), &err));
    assert_true(queue.capacity * (sizeof(struct wm_tick) + sizeof(readings)) <= 2 << 20);

    /* A batch is out; the rest overflows, and the oldest of it go. */
    for (; pushed < queue.batch_max; pushed++) {
        struct wm_tick tick = { (int64_t)pushed, readings, ARRAY_LEN(readings) };
        readings[0].value = (double)pushed;
        assert_true(wm_queue_push(&queue, &tick));
    }
    assert_int_equal(wm_queue_take(&queue), queue.batch_max);
    for (; pushed < 3 * queue.capacity; pushed++) {
        struct wm_tick tick = { (int64_t)pushed, readings, ARRAY_LEN(readings) };
        readings[0].value = (double)pushed;
        lost += !wm_queue_push(&queue, &tick);
    }
    assert_int_equal(queue.length, queue.capacity - queue.batch_max);
    assert_int_equal(lost, 2 * queue.capacity);

    /* The batch comes back first, and again. */
    for (int again = 0; again < 2; again++) {
        wm_queue_return(&queue, queue.batch_max);
        assert_int_equal(queue.length, queue.capacity);
        assert_int_equal(wm_queue_take(&queue), queue.batch_max);
        for (size_t i = 0; i < queue.batch_max; i++) {
            assert_int_equal(queue.batch[i].when_ns, i);
            assert_true(queue.batch[i].readings[0].value == (double)i);
        }
    }
    wm_queue_done(&queue, queue.batch_max);
    for (size_t n = 3 * queue.capacity - queue.length; n < 3 * queue.capacity;) {
        size_t count = wm_queue_take(&queue);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++, n++) {
            assert_int_equal(queue.batch[i].when_ns, n);
            assert_true(queue.batch[i].readings[0].value == (double)n);
        }
        wm_queue_done(&queue, count);
    }
    assert_int_equal(wm_queue_take(&queue), 0);
    wm_queue_release(&queue);

    /* However wide a tick is, some of them wait. */
    assert_ok(wm_queue_init(&queue, 2000, &err));
    assert_int_equal(queue.capacity, 64);
    wm_queue_release(&queue);
    assert_ok(wm_queue_init(&queue, 0, &err));
    wm_queue_release(&queue);
}

/* More gaps than there is room for in a CSV file are counted, not lost in
 * silence, and the result still fits. */
static void test_many_gaps(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const char *path = fixture_path(state, formats[f]);
        struct wm_recorder *recorder = open_recorder(path, WM_RECORD_NEW);
        struct wm_result result = fixture_result();
        struct wm_recording *recording = NULL;
        const struct wm_gap *gaps = NULL;
        struct wm_error err = { 0 };

        record_tick(recorder, 0);
        for (int64_t i = 0; i < 200; i++) {
            struct wm_gap gap = fixture_gap();
            gap.from_ns = i;
            gap.channel = (size_t)i % FIXTURE_CHANNELS;
            wm_recorder_gap(recorder, &gap);
        }
        struct wm_process_peak *many = calloc(5000, sizeof(*many));
        for (size_t i = 0; i < 5000; i++)
            many[i] = result.processes[0];
        result.processes = many;
        result.process_count = 5000;
        wm_recorder_flush(recorder, &result);
        assert_ok(wm_recorder_finish(recorder, &result, &err));
        wm_recorder_close(recorder);
        free(many);

        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        size_t count = wm_recording_gaps(recording, &gaps);
        const struct wm_result *stored = wm_recording_result(recording);
        assert_non_null(stored);
        print_message("  %s: %zu gaps, %zu processes\n", formats[f], count,
                      stored->process_count);
        assert_in_range(count, f == 0 ? 200 : 40, 200);
        assert_in_range(stored->process_count, f == 0 ? 5000 : 10, 5000);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(gaps[i].from_ns, i);
            assert_int_equal(gaps[i].channel, i % FIXTURE_CHANNELS);
        }
        wm_recording_close(recording);
    }
}

/* Every allocation on the way to a recording and back fails once, and all that
 * come after it. */
static int record_once(const char *path, struct wm_error *err)
{
    struct wm_reading readings[FIXTURE_CHANNELS];
    struct wm_recorder *recorder = NULL;
    struct wm_result result = fixture_result();
    struct wm_gap gap = fixture_gap();

    int status = wm_recorder_open(path, WM_RECORD_NEW, fixture_run(), fixture_channels(),
                                  FIXTURE_CHANNELS, &recorder, err);
    if (status < 0)
        return status;
    struct wm_tick tick = fixture_tick(0, readings);
    wm_recorder_tick(recorder, &tick);
    wm_recorder_gap(recorder, &gap);
    wm_recorder_flush(recorder, &result);
    if (result.recording_trouble[0] != '\0') {
        assert_non_null(strstr(result.recording_trouble, "memory"));
        err->status = WM_ENOMEM;
    }
    status = wm_recorder_finish(recorder, &result, err);
    wm_recorder_close(recorder);
    return status < 0 ? status : result.recording_trouble[0] ? WM_ENOMEM : WM_OK;
}

static int read_once(const char *path, struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_tick tick;

    int status = wm_recording_open(path, WM_LAST_RUN, &recording, err);
    if (status < 0)
        return status;
    while ((status = wm_recording_next(recording, &tick, err)) > 0)
        ;
    wm_recording_close(recording);
    return status;
}

static void test_no_memory(void **state)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        const char *path = fixture_path(state, formats[f]);
        struct wm_error err = { 0 };
        int status = WM_ENOMEM;
        long nth = 0;

        for (; status != WM_OK && nth < 1000; nth++) {
            err = (struct wm_error) { 0 };
            test_fail_allocation(nth);
            status = record_once(path, &err);
            test_fail_allocation(-1);
            if (status != WM_OK) {
                assert_int_equal(status, WM_ENOMEM);
                assert_int_equal(err.status, WM_ENOMEM);
                unlink(path);
            }
        }
        print_message("  %s: written after %ld failures\n", formats[f], nth - 1);
        assert_true(nth > 10 && nth < 1000);

        for (status = WM_ENOMEM, nth = 0; status != WM_OK && nth < 1000; nth++) {
            test_fail_allocation(nth);
            status = read_once(path, &err);
            test_fail_allocation(-1);
            if (status != WM_OK)
                assert_int_equal(status, WM_ENOMEM);
        }
        print_message("  %s: read after %ld failures\n", formats[f], nth - 1);
        assert_true(nth > 10 && nth < 1000);
    }
}

static void test_export_no_memory(void **state)
{
    static const char *const targets[] = { "to.csv", "to.sqlite", "to.json" };
    const char *path = fixture_path(state, "run.csv");

    record_fixture(path, WM_RECORD_NEW, 3);
    for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
        const char *target = fixture_path(state, targets[t]);
        int status = WM_ENOMEM;
        long nth = 0;

        for (; status != WM_OK && nth < 1000; nth++) {
            struct wm_recording *recording = NULL;
            struct wm_error err = { 0 };
            assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
            test_fail_allocation(nth);
            status = wm_recording_export(recording, target, WM_RECORD_NEW, &err);
            test_fail_allocation(-1);
            wm_recording_close(recording);
            if (status != WM_OK) {
                assert_int_equal(status, WM_ENOMEM);
                assert_int_equal(access(target, F_OK), -1);
            }
        }
        print_message("  %s: written after %ld failures\n", targets[t], nth - 1);
        assert_true(nth > 10 && nth < 1000);
    }
}

UNIT(record)
{
#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_refused),
        cmocka_unit_test(test_long_path),
        WITH_DIR(test_too_many_channels),
        WITH_DIR(test_overwrite),
        WITH_DIR(test_nothing_recorded),
        WITH_DIR(test_append),
        WITH_DIR(test_append_together),
        WITH_DIR(test_two_writers),
        WITH_DIR(test_two_appenders),
        WITH_DIR(test_kill),
        WITH_DIR(test_kill_early),
        WITH_DIR(test_disk_full),
        WITH_DIR(test_file_gone),
        WITH_DIR(test_read_only_folder),
        WITH_DIR(test_signals_left_alone),
        WITH_DIR(test_time_goes_back),
        cmocka_unit_test(test_queue),
        WITH_DIR(test_many_gaps),
        WITH_DIR(test_no_memory),
        WITH_DIR(test_export_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
