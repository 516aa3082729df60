/* SPDX-License-Identifier: Apache-2.0 */
/* What a tracker leaves behind that is killed: its journal and the rings. The tracker is
 * this process, which forgets its inbox instead of dying. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "region/drain/region_journal.h"
#include "region/drain/region_left.h"
#include "region/mark/region_local.h"
#include "region/region_ring.h"
#include "wattmeter/region.h"

struct tracker {
    struct wm_region_inbox *inbox;
    struct wm_region_calls *calls;
    struct wm_region_journal *journal;
    size_t stop_after; /* events; then they are left in the rings */
    size_t events, ended;
    char folder[256];
};

static int count_edge(void *context, const struct wm_region_edge *edge)
{
    ((struct tracker *)context)->ended += edge->kind != WM_REGION_OPENS;
    return WM_OK;
}

static int take(void *context, const struct wm_region_event *event)
{
    struct tracker *tracker = context;
    struct wm_region_thread thread = wm_region_inbox_thread(tracker->inbox, event->thread);
    bool is_named = event->kind == WM_REGION_BEGINS || event->kind == WM_REGION_STARTS;
    const char *name = is_named ? wm_region_inbox_name(tracker->inbox, event->name) : NULL;

    if (tracker->events == tracker->stop_after)
        return WM_EIO;
    tracker->events++;
    assert_true(wm_region_journal_add(tracker->journal, event, thread, name));
    return wm_region_calls_event(tracker->calls, event, thread, name, count_edge, tracker);
}

static int note_name(void *context, uint32_t thread, uint32_t local, uint32_t number,
                     const char *name)
{
    wm_region_journal_add_name(context, thread, local, number, name);
    return WM_OK;
}

static void keep(void *context)
{
    wm_region_journal_keep(context);
}

static void begin(struct tracker *tracker)
{
    struct wm_error err = { 0 };

    *tracker = (struct tracker) { .stop_after = SIZE_MAX };
    assert_int_equal(wm_region_inbox_new(&tracker->inbox, &err), WM_OK);
    assert_int_equal(wm_region_inbox_open(tracker->inbox, &err), WM_OK);
    assert_int_equal(wm_region_calls_new(&tracker->calls, &err), WM_OK);
    snprintf(tracker->folder, sizeof(tracker->folder), "%s",
             wm_region_inbox_path(tracker->inbox));
    assert_int_equal(wm_region_journal_new(tracker->folder, &tracker->journal, &err),
                     WM_OK);
    wm_region_inbox_watch(tracker->inbox, note_name, keep, tracker->journal);
    assert_int_equal(wm_region_listen(tracker->folder, &err), WM_OK);
}

static void drain(struct tracker *tracker)
{
    int64_t complete_ns;

    usleep(2000); /* what is younger than a millisecond is not handed out */
    wm_region_inbox_drain(tracker->inbox, false, INT64_MAX, take, tracker, &complete_ns,
                          NULL);
}

static void die(struct tracker *tracker)
{
    wm_region_journal_free(tracker->journal);
    wm_region_calls_free(tracker->calls);
    wm_region_inbox_forget(tracker->inbox);
}

static void clean(const struct tracker *tracker)
{
    void *folder = strdup(tracker->folder);

    wm_region_listen(NULL, NULL);
    assert_non_null(folder);
    test_remove_dir(&folder);
}

/* What is found, as "outer>inner" for each that ended, and then in brackets what is open.
 */
struct found {
    const struct wm_region_calls *calls;
    char text[4096];
    size_t ended;
    struct wm_region_left left;
};

static void append_path(struct found *found, uint32_t number)
{
    const struct wm_region_path *path = wm_region_calls_path(found->calls, number);

    if (path->parent != WM_REGION_NO_PATH) {
        append_path(found, path->parent);
        strcat(found->text, ">");
    }
    strcat(found->text, path->name);
}

static int find_edge(void *context, const struct wm_region_edge *edge)
{
    struct found *found = context;

    if (edge->kind == WM_REGION_OPENS)
        return WM_OK;
    found->ended++;
    if (strlen(found->text) > sizeof(found->text) - 64)
        return WM_OK;
    if (edge->kind == WM_REGION_BREAKS_OFF)
        strcat(found->text, "[");
    append_path(found, edge->path);
    strcat(found->text, edge->kind == WM_REGION_BREAKS_OFF ? "] " : " ");
    return WM_OK;
}

static int look(const struct tracker *tracker, struct found *found)
{
    struct wm_region_calls *calls = NULL;

    *found = (struct found) { 0 };
    int status = wm_region_calls_new(&calls, NULL);
    if (status < 0)
        return status;
    found->calls = calls;
    status =
        wm_region_left_read(tracker->folder, calls, find_edge, found, &found->left, NULL);
    if (status == WM_OK)
        status = wm_region_calls_end(calls, found->left.last_ns, find_edge, found);
    wm_region_calls_free(calls);
    return status;
}

static void expect(const struct tracker *tracker, const char *text)
{
    struct found found;

    assert_int_equal(look(tracker, &found), WM_OK);
    assert_string_equal(found.text, text);
    assert_string_equal(found.left.trouble, "");

    /* Looking changes nothing. */
    assert_int_equal(look(tracker, &found), WM_OK);
    assert_string_equal(found.text, text);
}

static void write_some(void)
{
    wm_region_begin("outer");
    wm_region_begin("inner");
    wm_region_end();
    wm_region_start("free");
    wm_region_begin("inner");
}

static const char all[] = "outer>inner [outer>inner] [outer] [free] ";

static void test_rings_alone(void **state)
{
    struct tracker tracker;

    (void)state;
    begin(&tracker);
    write_some();
    die(&tracker);
    expect(&tracker, all);
    clean(&tracker);
}

/* Wherever it was killed: part is in the journal, and the rest still in the ring. */
static void test_every_place(void **state)
{
    (void)state;
    for (size_t events = 0; events <= 5; events++) {
        struct tracker tracker;
        begin(&tracker);
        write_some();
        tracker.stop_after = events;
        drain(&tracker);
        assert_int_equal(tracker.events, events);
        die(&tracker);
        expect(&tracker, all);
        clean(&tracker);
    }
}

/* What was taken is not in the ring any more, nor are its names. */
static void test_goes_on(void **state)
{
    struct tracker tracker;

    (void)state;
    begin(&tracker);
    write_some();
    drain(&tracker);
    wm_region_end();
    wm_region_begin("inner");
    wm_region_end();
    wm_region_begin("new, \"name\"\n");
    die(&tracker);
    expect(&tracker, "outer>inner outer>inner outer>inner [outer>new, \"name\"\n] [outer] "
                     "[free] ");
    clean(&tracker);
}

/* The journal's files take turns as the calls are recorded; what is open stays known. */
static void test_turns(void **state)
{
    enum { ROUNDS = 40, CALLS = 1000 };
    struct tracker tracker;
    struct found found;
    char path[512];
    struct stat info;

    (void)state;
    begin(&tracker);
    wm_region_start("free");
    wm_region_begin("outer");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            wm_region_begin("inner");
            wm_region_end();
        }
        drain(&tracker);
        wm_region_journal_settle(tracker.journal, tracker.inbox, tracker.calls,
                                 tracker.ended, tracker.ended);
    }
    assert_int_equal(tracker.ended, ROUNDS * CALLS);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", tracker.folder, wm_journal_file(i));
        assert_int_equal(stat(path, &info), 0);
        assert_true((uint64_t)info.st_blocks * 512 < 1 << 20);
    }
    wm_region_begin("inner");
    die(&tracker);
    assert_int_equal(look(&tracker, &found), WM_OK);
    assert_true(found.ended > 3 && found.ended < ROUNDS * CALLS);
    clean(&tracker);
}

/* Somebody cuts it short: it is given up, and the tracker goes on. */
static void test_cut_short(void **state)
{
    struct tracker tracker;
    struct found found;

    (void)state;
    for (int which = 0; which < 2; which++) {
        begin(&tracker);
        write_some();
        drain(&tracker);
        char path[512];
        for (int i = which; i < 2; i++) {
            snprintf(path, sizeof(path), "%s/%s", tracker.folder, wm_journal_file(i));
            assert_int_equal(truncate(path, 0), 0);
        }
        for (int i = 0; i < 20000; i++) {
            wm_region_begin("inner");
            wm_region_end();
            if (i % 1000 == 0)
                drain(&tracker);
            if (i % 5000 == 0)
                wm_region_journal_settle(tracker.journal, tracker.inbox, tracker.calls,
                                         tracker.ended, tracker.ended);
        }
        die(&tracker);
        assert_int_equal(look(&tracker, &found), WM_OK);
        assert_string_equal(found.left.trouble,
                            "there was no room for the journal of regions");
        clean(&tracker);
    }
}

/* While nothing is recorded nothing is forgotten, and at some time it is full. */
static void test_full(void **state)
{
    struct tracker tracker;
    struct found found;
    struct wm_region_event event = { .kind = WM_REGION_BEGINS };
    const struct wm_region_thread thread = { .pid = 1, .tid = 1 };
    size_t added = 0;

    (void)state;
    begin(&tracker);
    while (wm_region_journal_add(tracker.journal, &event, thread, "name")) {
        assert_int_equal(wm_region_calls_event(tracker.calls, &event, thread, "name",
                                               count_edge, &tracker),
                         WM_OK);
        wm_region_journal_settle(tracker.journal, tracker.inbox, tracker.calls, added, 0);
        event.kind = event.kind == WM_REGION_BEGINS ? WM_REGION_ENDS : WM_REGION_BEGINS;
        event.when_ns++;
        added++;
        assert_true(added < 1 << 20);
    }
    wm_region_journal_settle(tracker.journal, tracker.inbox, tracker.calls, added,
                             UINT64_MAX);
    assert_true(wm_region_journal_add(tracker.journal, &event, thread, "name"));
    die(&tracker);
    assert_int_equal(look(&tracker, &found), WM_OK);
    assert_true(found.ended > 0);
    clean(&tracker);
}

static void test_not_dead(void **state)
{
    struct tracker tracker;
    struct found found;

    (void)state;
    begin(&tracker);
    write_some();
    assert_int_equal(look(&tracker, &found), WM_ENODEV);
    die(&tracker);
    clean(&tracker);
    assert_int_equal(look(&tracker, &found), WM_ENODEV);
}

/* One byte is another than it was, anywhere in the journal or the ring. */
static void test_broken(void **state)
{
    const char *const files[] = { "journal-0", "0", "control" };
    struct tracker tracker;
    struct found found;
    char path[512];

    (void)state;
    begin(&tracker);
    write_some();
    tracker.stop_after = 3;
    drain(&tracker);
    die(&tracker);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", tracker.folder, files[i]);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        for (off_t at = 0; at < 4096 + 512; at++) {
            unsigned char byte, other;
            if (pread(fd, &byte, 1, at) != 1 || (i == 1 && at > 256 && at < 4096))
                continue;
            for (int bit = 0; bit < 8; bit += 3) {
                other = (unsigned char)(byte ^ (1 << bit));
                assert_int_equal(pwrite(fd, &other, 1, at), 1);
                int status = look(&tracker, &found);
                assert_true(status == WM_OK || status == WM_EFORMAT || status == WM_ENODEV);
            }
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
    }
    expect(&tracker, all);
    for (off_t size = 0; size < 1024; size += 8) {
        snprintf(path, sizeof(path), "%s/journal-0", tracker.folder);
        assert_int_equal(truncate(path, 1023 - size), 0);
        look(&tracker, &found);
    }
    clean(&tracker);
}

static int open_file(const struct tracker *tracker, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", tracker->folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void overwrite(const struct tracker *tracker, const char *name, size_t at,
                      uint64_t value)
{
    int fd = open_file(tracker, name);

    assert_int_equal(pwrite(fd, &value, sizeof(value), (off_t)at), sizeof(value));
    close(fd);
}

/* Slots of the ring: that of the name "outer", its text, and its begin. */
enum { SLOT_NAME, SLOT_TEXT, SLOT_BEGIN };

static size_t slot(size_t number, size_t member)
{
    return WM_RING_EVENTS_AT + number * sizeof(struct wm_ring_event) + member;
}

/* What is written over in the ring, and what is still found. */
static void test_hostile_ring(void **state)
{
    static const struct {
        const char *name, *text, *trouble;
        size_t at, slot;
        uint64_t value;
    } cases[] = {
        { .name = "as it was",
          .text = all,
          .trouble = "",
          .slot = SLOT_NAME,
          .at = offsetof(struct wm_ring_event, when_ns),
          .value = 5 },
        { .name = "a time to come",
          .text = all,
          .trouble = "",
          .slot = SLOT_BEGIN,
          .at = offsetof(struct wm_ring_event, when_ns),
          .value = INT64_MAX },
        { .name = "a time below 0",
          .text = all,
          .trouble = "",
          .slot = SLOT_BEGIN,
          .at = offsetof(struct wm_ring_event, when_ns),
          .value = (uint64_t)INT64_MIN },
        { .name = "an unknown name",
          .text = "",
          .trouble = "1 of the rings is broken",
          .slot = SLOT_BEGIN,
          .at = offsetof(struct wm_ring_event, what),
          .value = 1 << 8 | WM_RING_BEGIN },
        { .name = "a name that is too long",
          .text = "",
          .trouble = "1 of the rings is broken",
          .slot = SLOT_NAME,
          .at = offsetof(struct wm_ring_event, when_ns),
          .value = 1 << 20 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tracker tracker;
        struct found found;
        begin(&tracker);
        write_some();
        die(&tracker);
        overwrite(&tracker, "0", slot(cases[i].slot, cases[i].at), cases[i].value);
        assert_int_equal(look(&tracker, &found), WM_OK);
        if (strcmp(found.text, cases[i].text) != 0 ||
            strcmp(found.left.trouble, cases[i].trouble) != 0)
            fail_msg("%s: %s (%s)", cases[i].name, found.text, found.left.trouble);
        assert_in_range(found.left.last_ns, 0, wm_clock_monotonic_ns());
        clean(&tracker);
    }
}

/* Reading what was not reserved would be a signal where there is no memory. */
static void test_hole(void **state)
{
    struct tracker tracker;
    struct found found;
    struct wm_ring head;

    (void)state;
    begin(&tracker);
    write_some();
    die(&tracker);
    int fd = open_file(&tracker, "0");
    assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
    assert_int_equal(ftruncate(fd, (off_t)wm_ring_bytes(head.size)), 0);
    close(fd);
    assert_int_equal(look(&tracker, &found), WM_OK);
    assert_string_equal(found.text, "");
    assert_string_equal(found.left.trouble, "1 of the rings is broken");
    clean(&tracker);
}

static long most_memory(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* The number of a ring says nothing about how many there are. */
static void test_high_number(void **state)
{
    struct tracker tracker;
    char from[512], to[512];

    (void)state;
    begin(&tracker);
    write_some();
    die(&tracker);
    snprintf(from, sizeof(from), "%s/0", tracker.folder);
    snprintf(to, sizeof(to), "%s/16777215", tracker.folder);
    assert_int_equal(rename(from, to), 0);
    long before = most_memory();
    expect(&tracker, all);
    assert_true(most_memory() - before < 64 * 1024);
    clean(&tracker);
}

static void test_dropped(void **state)
{
    struct tracker tracker;
    struct found found;

    (void)state;
    begin(&tracker);
    write_some();
    die(&tracker);
    overwrite(&tracker, "0", offsetof(struct wm_ring, lost), 3);
    overwrite(&tracker, "control", offsetof(struct wm_ring_control, lost), 4);
    assert_int_equal(look(&tracker, &found), WM_OK);
    assert_string_equal(found.text, all);
    assert_int_equal(found.left.dropped, 7);
    clean(&tracker);
}

/* What is in the journal up to the trouble stands; without it rings are of no use. */
static void test_trouble(void **state)
{
    static const struct {
        const char *name, *trouble;
        size_t at;
        uint64_t value;
    } cases[] = {
        { "magic", "the journal of regions is broken",
          offsetof(struct wm_journal_head, magic), 1 },
        { "length", "the journal of regions is broken",
          offsetof(struct wm_journal_head, used), WM_JOURNAL_MAX },
        { "given up", "there was no room for the journal of regions",
          offsetof(struct wm_journal_head, turn), 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tracker tracker;
        struct found found;
        begin(&tracker);
        write_some();
        drain(&tracker);
        die(&tracker);
        overwrite(&tracker, "journal-0", cases[i].at, cases[i].value);
        assert_int_equal(look(&tracker, &found), WM_OK);
        if (strcmp(found.left.trouble, cases[i].trouble) != 0)
            fail_msg("%s: %s", cases[i].name, found.left.trouble);
        clean(&tracker);
    }
}

static void test_no_descriptors(void **state)
{
    struct tracker tracker;
    struct found found;
    struct rlimit limit, none;

    (void)state;
    begin(&tracker);
    write_some();
    die(&tracker);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int status = look(&tracker, &found);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(status, WM_OK);
    assert_non_null(strstr(found.left.trouble, strerror(EMFILE)));
    expect(&tracker, all);
    clean(&tracker);
}

static void test_other_user(void **state)
{
    struct tracker tracker;
    struct found found;

    (void)state;
    if (geteuid() != 0)
        skip();
    begin(&tracker);
    write_some();
    die(&tracker);
    assert_int_equal(chown(tracker.folder, 1, 1), 0);
    assert_int_equal(look(&tracker, &found), WM_OK);
    assert_string_equal(found.left.trouble, "the folder of regions is another user's");
    assert_string_equal(found.text, "");
    clean(&tracker);
}

/* A child that goes on is no tracker. */
static void test_child(void **state)
{
    struct tracker tracker;

    (void)state;
    begin(&tracker);
    write_some();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pause();
        _exit(0);
    }
    die(&tracker);
    struct found found;
    int status = look(&tracker, &found);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(status, WM_OK);
    assert_string_equal(found.text, all);
    clean(&tracker);
}

static void test_allocation(void **state)
{
    struct tracker tracker;
    struct found found;
    int status = WM_ENOMEM;

    (void)state;
    begin(&tracker);
    write_some();
    tracker.stop_after = 3;
    drain(&tracker);
    die(&tracker);
    for (long nth = 0; status != WM_OK; nth++) {
        assert_true(nth < 200);
        test_fail_allocation(nth);
        status = look(&tracker, &found);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
    }
    assert_string_equal(found.text, all);
    clean(&tracker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings_alone),    cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_goes_on),        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_cut_short),      cmocka_unit_test(test_full),
        cmocka_unit_test(test_not_dead),       cmocka_unit_test(test_broken),
        cmocka_unit_test(test_allocation),     cmocka_unit_test(test_hostile_ring),
        cmocka_unit_test(test_hole),           cmocka_unit_test(test_high_number),
        cmocka_unit_test(test_dropped),        cmocka_unit_test(test_trouble),
        cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
