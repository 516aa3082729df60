/* SPDX-License-Identifier: Apache-2.0 */
/* test_region_inbox.c - regions from the call to the inbox: of threads and processes that
 * end in every way, of rings that are full, and of rings that are none. */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "region/drain/region_inbox.h"
#include "region/mark/region_local.h"
#include "region/mark/region_writer.h"
#include "region/region_ring.h"
#include "wattmeter/region.h"

/* What came, as text: "0(name 0) 0[name #1 1# 0!" for begin, end, start, stop, gone, with
 * the thread before it and where `names` is false nothing else. */
struct log {
    struct wm_region_inbox *inbox;
    char text[4096];
    size_t length;
    int64_t last_ns;
    uint32_t first_thread; /* 0 in the text */
    bool has_first;
    struct wm_region_thread threads[4]; /* from the first on */
    int64_t after_ns;                   /* whatever comes is later */
    uint64_t clocked;                   /* of the last end or stop */
    long ends, clocked_ends;
    long refuse_from; /* events from here on; -1: none */
    long count;
};

static void add(struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct log *log, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(log->text + log->length, sizeof(log->text) - log->length, format,
                           arguments);
    va_end(arguments);
    assert_in_range(length, 0, sizeof(log->text) - log->length - 1);
    log->length += (size_t)length;
}

static int take(void *context, const struct wm_region_event *event)
{
    struct log *log = context;
    static const char marks[] = { '(', ')', '[', ']', '!' };

    if (log->refuse_from >= 0 && log->count >= log->refuse_from)
        return WM_EIO;
    /* Short calls that come fast are one begin and one end, whatever their number. */
    long calls = event->fold ? (long)event->fold->calls : 1;
    log->count += 2 * calls - 1;
    assert_true(event->when_ns >= log->last_ns && event->when_ns > log->after_ns);
    log->last_ns = event->when_ns;
    if (!log->has_first) {
        log->first_thread = event->thread;
        log->has_first = true;
    }
    assert_in_range(event->kind, 0, ARRAY_LEN(marks) - 1);
    assert_int_equal(event->name != NULL,
                     event->kind == WM_REGION_BEGINS || event->kind == WM_REGION_STARTS);
    if (event->kind == WM_REGION_ENDS || event->kind == WM_REGION_STOPS) {
        log->clocked = event->clocked;
        log->ends += calls;
        log->clocked_ends += event->clocked > 0;
    } else {
        assert_int_equal(event->clocked, 0);
    }
    if (event->thread - log->first_thread < ARRAY_LEN(log->threads))
        log->threads[event->thread - log->first_thread] = *event->who;
    if (log->length < sizeof(log->text) / 2)
        add(log, "%s%u%c%s", log->length > 0 ? " " : "", event->thread - log->first_thread,
            marks[event->kind], event->name ? event->name : "");
    if (log->length < sizeof(log->text) / 2 && event->above > 0)
        add(log, "%u", (unsigned)event->above);
    if (log->length < sizeof(log->text) / 2 && event->parent != 0)
        add(log, "<%s", event->parent == WM_REGION_INNERMOST ? "top" : "started");
    return 0;
}

static int make_inbox(void **state)
{
    struct log *log = calloc(1, sizeof(*log));
    struct wm_error err;

    if (!log || wm_region_inbox_new(&log->inbox, &err) < 0 ||
        wm_region_inbox_open(log->inbox, &err) < 0)
        return -1;
    log->refuse_from = -1;
    *state = log;
    return wm_region_listen(wm_region_inbox_path(log->inbox), &err);
}

static int free_inbox(void **state)
{
    struct log *log = *state;
    char path[WM_FOLDER_SIZE];

    snprintf(path, sizeof(path), "%s", wm_region_inbox_path(log->inbox));
    wm_region_inbox_free(log->inbox);
    free(log);
    return access(path, F_OK) == 0 ? -1 : wm_region_listen(NULL, NULL);
}

/* All up to now. */
static void drain(struct log *log, bool is_last)
{
    struct wm_error err;
    int64_t complete_ns = 0, now_ns = wm_clock_monotonic_ns();

    do {
        usleep(1000);
        if (wm_region_inbox_drain(log->inbox, is_last, INT64_MAX, take, log, &complete_ns,
                                  &err) < 0)
            fail_msg("%s", err.text);
        assert_true(log->last_ns <= complete_ns);
        assert_true(wm_clock_monotonic_ns() - now_ns < 300 * WM_NS_PER_S);
    } while (complete_ns < now_ns);
}

/* Calls of more names than are folded. */
static void mark_unfolded(int calls)
{
    enum { NAMES = WM_RING_PLACES + 8 };
    static char names[NAMES][8];

    for (int i = 0; i < calls; i++) {
        char *name = names[i % NAMES];
        if (i < NAMES)
            snprintf(name, sizeof(names[0]), "%d", i);
        wm_region_begin(name);
        wm_region_end();
    }
}

/* All there is from the beginning to the end. */
static void expect(struct log *log, const char *text)
{
    drain(log, true);
    assert_string_equal(log->text, text);
}

static pid_t run_child(void (*body)(void *context), void *context)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        body(context);
        _exit(0);
    }
    return pid;
}

static void join(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

static void run_thread(void *(*body)(void *context), void *context)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_names(void **state)
{
    char text[64];
    char longest[WM_REGION_NAME_MAX + 100];

    wm_region_begin("a, \"b\"\n; DROP TABLE data");
    wm_region_begin(NULL);
    wm_region_end();
    wm_region_end();
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "same place %d", i % 2);
        wm_region_begin(text);
        wm_region_end();
    }
    wm_region_begin("\xff");
    wm_region_end();
    expect(*state,
           "0(a, \"b\"\n; DROP TABLE data 0( 0) 0) 0(same place 0 0) 0(same place 1 "
           "0) 0(same place 0 0) 0(\xef\xbf\xbd 0) 0!");

    /* "é" lies across the limit. */
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + WM_REGION_NAME_MAX - 1, "\xc3\xa9", 2);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(wm_region_name_length(longest), WM_REGION_NAME_MAX - 1);
    longest[WM_REGION_NAME_MAX] = '\0';
    assert_int_equal(wm_region_name_length(longest), WM_REGION_NAME_MAX);
}

static int take_length(void *context, const struct wm_region_event *event)
{
    struct log *log = context;

    if (event->kind == WM_REGION_BEGINS)
        log->count += (long)strlen(event->name);
    return 0;
}

/* More names, and longer ones, than a ring knows at one time. */
static void test_many_names(void **state)
{
    struct log *log = *state;
    char name[WM_REGION_NAME_MAX + 2];
    int64_t complete_ns;
    long sum = 0;

    for (int i = 0; i < 2000; i++) {
        int length = i % 50 == 0 ? WM_REGION_NAME_MAX + 1 : i % 400;
        memset(name, 'a' + i % 26, (size_t)length);
        name[length] = '\0';
        sum += length > WM_REGION_NAME_MAX ? WM_REGION_NAME_MAX : length;
        wm_region_begin(name);
        wm_region_end();
    }
    assert_int_equal(wm_region_inbox_drain(log->inbox, true, INT64_MAX, take_length, log,
                                           &complete_ns, NULL),
                     WM_OK);
    assert_int_equal(log->count, sum);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

/* It comes back, with the events in their order and none of them missing; what it says is
 * complete is. */
static void test_deadline(void **state)
{
    enum { CALLS = 5000 };
    struct log *log = *state;
    int64_t complete_ns;
    int parts = 0;

    mark_unfolded(CALLS);
    while (log->count < 2 * CALLS) {
        long count = log->count;
        int status =
            wm_region_inbox_drain(log->inbox, false, 0, take, log, &complete_ns, NULL);
        assert_in_range(status, 0, 1);
        assert_in_range(log->count - count, 0, 1000);
        assert_true(complete_ns >= log->after_ns && complete_ns >= log->last_ns - status);
        log->after_ns = complete_ns;
        parts += log->count > count;
    }
    assert_int_equal(log->count, 2 * CALLS);
    assert_true(parts > 1);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

static void test_strays(void **state)
{
    wm_region_end();
    wm_region_stop(12345);
    wm_region_begin("a");
    wm_region_begin("a");
    wm_region_end();
    expect(*state, "0) 0] 0(a 0(a 0) 0!");
}

/* Regions end themselves, in whatever order; among fast calls, too, and where the stack is
 * so deep that only the outermost are known. */
static void test_ends_of_others(void **state)
{
    static const char one[] = "same", other[] = "same";

    wm_region_begin(one);
    wm_region_begin("b");
    wm_region_begin(other);
    wm_region_end_of(one);
    wm_region_end_of("nothing");
    wm_region_end_of(other);
    wm_region_end_of("b");
    wm_region_end_of(one);
    wm_region_begin(NULL);
    wm_region_end_of(NULL);
    expect(*state, "0(same 0(b 0(same 0)2 0)2 0) 0) 0) 0( 0) 0!");
}

/* In loops, where calls are folded; and how many there are of each is right. */
static void test_ends_in_loops(void **state)
{
    enum { ROUNDS = 1000, DEEP = 100 };
    struct log *log = *state;
    long calls = 0;

    for (int i = 0; i < ROUNDS; i++) {
        wm_region_begin("around");
        for (int k = 0; k < 10; k++) {
            wm_region_begin("inside");
            wm_region_end_of("inside");
        }
        wm_region_begin("longer");
        wm_region_end_of("around");
        wm_region_end_of("longer");
        calls += 12;
    }
    for (int i = 0; i < DEEP; i++)
        wm_region_begin("deep");
    for (int i = 0; i < DEEP; i++)
        wm_region_end_of("deep");
    drain(log, true);
    assert_int_equal(log->ends, calls + DEEP);
}

static void test_nested_starts(void **state)
{
    wm_region_begin("a");
    uint64_t inner = wm_region_start_in("r", WM_REGION_INNERMOST);
    uint64_t innermost = wm_region_start_in("q", inner);
    wm_region_end();
    wm_region_stop(inner);
    wm_region_stop(innermost);
    expect(*state, "0(a 0[r<top 0[q<started 0) 0] 0] 0!");
}

static void test_errno(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        errno = 4711;
        wm_region_begin(i % 2 == 0 ? "even" : "odd");
        wm_region_end();
        assert_int_equal(errno, 4711);
    }
}

static void *stop_it(void *context)
{
    wm_region_begin("in the thread");
    wm_region_stop(*(uint64_t *)context);
    return NULL;
}

static void test_threads(void **state)
{
    struct log *log = *state;
    uint64_t region = wm_region_start("request");

    assert_int_not_equal(region, 0);
    assert_int_not_equal(wm_region_start("another"), region);
    run_thread(stop_it, &region);
    drain(log, false);
    /* The thread is gone, and what is told of it comes. */
    for (int i = 0; i < 100 && !strchr(log->text, '!'); i++)
        drain(log, false);
    expect(log, "0[request 0[another 1(in the thread 1] 1! 0!");
}

static void die_inside(void *context)
{
    (void)context;
    wm_region_begin("outer");
    wm_region_begin("inner");
    wm_region_end();
    kill(getpid(), SIGKILL);
}

static void exec_inside(void *context)
{
    (void)context;
    wm_region_begin("before exec");
    execlp("true", "true", (char *)NULL);
}

static void exit_inside(void *context)
{
    (void)context;
    wm_region_begin("exit");
}

static void test_ends_of_processes(void **state)
{
    static const struct {
        const char *name;
        void (*body)(void *context);
        const char *expected;
    } cases[] = {
        { "killed", die_inside, "0(outer 0(inner 0) 0!" },
        { "exec", exec_inside, "0(before exec 0!" },
        { "exit", exit_inside, "0(exit 0!" },
    };
    struct log *log = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        log->length = 0;
        log->text[0] = '\0';
        log->has_first = false;
        join(run_child(cases[i].body, NULL));
        for (int tries = 0; tries < 200 && !strchr(log->text, '!'); tries++)
            drain(log, false);
        if (strcmp(log->text, cases[i].expected) != 0)
            fail_msg("%s: %s", cases[i].name, log->text);
    }

    /* Nothing is left of them. */
    struct stat info;
    char path[WM_RING_PATH_SIZE];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%d", wm_region_inbox_path(log->inbox), i);
        assert_int_equal(stat(path, &info), -1);
    }
}

static void be_child(void *context)
{
    (void)context;
    wm_region_end(); /* of the parent's: here it is one too many */
    wm_region_begin("child");
    wm_region_end();
}

static void test_fork(void **state)
{
    struct log *log = *state;

    wm_region_begin("parent");
    join(run_child(be_child, NULL));
    wm_region_end();
    expect(log, "0(parent 1) 1(child 1) 0) 0! 1!");
    struct wm_region_thread parent = log->threads[0], child = log->threads[1];
    assert_int_equal(parent.pid, getpid());
    assert_int_equal(parent.tid, gettid());
    assert_int_not_equal(child.pid, parent.pid);
    assert_int_not_equal(child.process, parent.process);
}

/* A child that no handler of pthread_atfork() is run in. */
static void test_bare_clone(void **state)
{
    struct log *log = *state;

    wm_region_begin("parent");
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        be_child(NULL);
        uint64_t region = wm_region_start("child's");
        wm_region_listen(NULL, NULL);
        wm_region_stop(region);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        wm_region_listen(wm_region_inbox_path(log->inbox), NULL);
        wm_region_begin("again");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    wm_region_end();
    expect(log, "0(parent 1) 1(child 1) 1[child's 2(again 0) 0! 1! 2!");
}

static void remove_names(const char *folder)
{
    char path[WM_RING_PATH_SIZE + 256];
    const struct dirent *entry;

    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(folder), 0);
}

/* Rings that are there go on; the ring has grown when the tracker next looks at it. */
static void test_removed_names(void **state)
{
    struct log *log = *state;
    struct wm_error err;
    int64_t complete_ns;

    wm_region_begin("outer");
    drain(log, false);
    assert_false(wm_region_inbox_trouble(log->inbox)->is_cut_off);
    for (int i = 0; i < 2 * WM_RING_CAPACITY_MIN; i++) {
        wm_region_begin("call");
        wm_region_end();
    }
    remove_names(wm_region_inbox_path(log->inbox));
    for (int i = 0; i < 4; i++) {
        usleep(60000); /* longer than the inbox takes to notice that a thread is gone */
        assert_int_equal(wm_region_inbox_drain(log->inbox, false, INT64_MAX, take, log,
                                               &complete_ns, &err),
                         WM_OK);
        wm_region_begin("call");
        wm_region_end();
    }
    assert_true(wm_region_inbox_trouble(log->inbox)->is_cut_off);
    wm_region_end();
    drain(log, true);
    assert_int_equal(log->count, 2 + 2 * (2 * WM_RING_CAPACITY_MIN + 4) + 1);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

static void open_and_wait(void *context)
{
    (void)context;
    wm_region_begin("open");
    for (;;)
        pause();
}

/* Without names it is the process that tells. */
static void test_removed_names_of_dead(void **state)
{
    struct log *log = *state;
    pid_t child = run_child(open_and_wait, NULL);

    for (int i = 0; i < 1000 && log->count == 0; i++)
        drain(log, false);
    remove_names(wm_region_inbox_path(log->inbox));
    for (int i = 0; i < 100; i++)
        drain(log, false);
    assert_string_equal(log->text, "0(open");
    kill(child, SIGKILL);
    join(child);
    for (int i = 0; i < 1000 && log->count == 1; i++)
        drain(log, false);
    assert_string_equal(log->text, "0(open 0!");
}

static void close_everything(void *context)
{
    (void)context;
    wm_region_begin("first");
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    wm_region_end();
    for (int i = 0; i < 5000; i++) { /* the ring has to grow */
        wm_region_begin("second");
        wm_region_end();
    }
    usleep(150000); /* longer than the inbox takes to notice that a thread is gone */
    wm_region_begin("third");
}

static void test_closed_descriptors(void **state)
{
    struct log *log = *state;

    pid_t pid = run_child(close_everything, NULL);
    for (int i = 0; i < 40; i++)
        drain(log, false);
    assert_null(strchr(log->text, '!'));
    join(pid);
    drain(log, true);
    assert_int_equal(log->count, 2 + 10000 + 1 + 1);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

/* From the first ring on there may be something to drain, and others may come. */
static void test_idle(void **state)
{
    struct log *log = *state;

    assert_true(wm_region_inbox_is_idle(log->inbox));
    drain(log, false);
    assert_true(wm_region_inbox_is_idle(log->inbox));
    wm_region_begin("first");
    assert_false(wm_region_inbox_is_idle(log->inbox));
    wm_region_end();
    expect(log, "0(first 0) 0!");
    assert_false(wm_region_inbox_is_idle(log->inbox));
}

/* The tracker does not drain: what there is no room for is counted, and pairs stay. */
static void test_full(void **state)
{
    struct log *log = *state;
    struct pollfd wake = { .fd = wm_region_inbox_fd(log->inbox), .events = POLLIN };

    wm_region_begin("outermost");
    wm_region_end();
    assert_int_equal(poll(&wake, 1, 0), 0);
    wm_region_begin("outer");
    mark_unfolded(WM_RING_SIZE_MAX);
    assert_int_equal(poll(&wake, 1, 0), 1);
    uint64_t lost = 2 * WM_RING_SIZE_MAX;
    wm_region_begin("lost");
    drain(log, false);
    wm_region_begin("there again");
    wm_region_end();
    wm_region_end();
    wm_region_end();
    wm_region_begin("after");
    wm_region_end();
    drain(log, true);
    lost = wm_region_inbox_trouble(log->inbox)->lost;
    assert_true(lost > 0 && lost % 2 == 0);
    assert_int_equal((uint64_t)log->count + lost,
                     2 + 2 + 2 * WM_RING_SIZE_MAX + 2 + 2 + 2 + 1);
}

static void ignore_signal(int number)
{
    (void)number;
}

static void *drain_late(void *context)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    usleep(500000);
    for (int i = 0; i < 50; i++)
        drain(context, false);
    return NULL;
}

/* A tracker that is late is waited for, however many signals come meanwhile. */
static void test_full_with_signals(void **state)
{
    struct log *log = *state;
    struct sigaction action = { .sa_handler = ignore_signal }, before;
    const struct itimerval often = { { 0, 250 }, { 0, 250 } }, never = { 0 };
    pthread_t tracker;

    sigaction(SIGALRM, &action, &before);
    assert_int_equal(pthread_create(&tracker, NULL, drain_late, log), 0);
    setitimer(ITIMER_REAL, &often, NULL);
    mark_unfolded(WM_RING_SIZE_MAX);
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(tracker, NULL);
    sigaction(SIGALRM, &before, NULL);
    drain(log, true);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
    assert_int_equal(log->count, 2 * WM_RING_SIZE_MAX + 1);
}

static void mark_too_many(void *context)
{
    (void)context;
    mark_unfolded(WM_RING_SIZE_MAX);
}

/* Another process's tracker that starts later than one's own is waited for. */
static void test_late_start(void **state)
{
    struct log *log = *state;
    pid_t pid = run_child(mark_too_many, NULL);

    usleep(3000000);
    while (waitpid(pid, NULL, WNOHANG) == 0)
        drain(log, false);
    drain(log, true);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
    assert_int_equal(log->count, 2 * WM_RING_SIZE_MAX + 1);
}

/* What a program puts into the folder goes with it; free_inbox() looks. */
static void test_subfolders(void **state)
{
    struct log *log = *state;
    char path[WM_RING_PATH_SIZE] = "";

    snprintf(path, sizeof(path), "%s/a", wm_region_inbox_path(log->inbox));
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/b");
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/c");
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    drain(log, false);
}

/* What one waits in is a nap of 10 ms at most; time tells little of it on a machine with
 * other things to do. */
static long count_naps(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* A tracker that is dead is not waited for. */
static void test_dead_tracker(void **state)
{
    struct log *log = *state;
    char path[WM_RING_PATH_SIZE], moved[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/control", wm_region_inbox_path(log->inbox));
    snprintf(moved, sizeof(moved), "%s/.control", wm_region_inbox_path(log->inbox));
    wm_region_begin("outer");
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(close(open(path, O_RDWR | O_CREAT | O_EXCL, 0600)), 0);
    long before = count_naps();
    mark_unfolded(2 * WM_RING_SIZE_MAX);
    assert_true(count_naps() - before < 100);
    assert_true(wm_region_is_on());
}

/* What a thread that waits for room looks at. */
static uint64_t find_progress(const struct log *log)
{
    char path[WM_RING_PATH_SIZE];
    uint64_t progress = 0;

    snprintf(path, sizeof(path), "%s/control", wm_region_inbox_path(log->inbox));
    int fd = open(path, O_RDONLY);
    assert_int_equal(
        pread(fd, &progress, sizeof(progress), offsetof(struct wm_ring_control, progress)),
        sizeof(progress));
    close(fd);
    return progress;
}

/* A ring that is opened is progress, before anything is taken out of it. */
static void test_progress(void **state)
{
    struct log *log = *state;

    drain(log, false);
    assert_int_equal(find_progress(log), 0);
    log->refuse_from = 0;
    int64_t complete_ns;
    wm_region_begin("call");
    usleep(2000);
    wm_region_inbox_drain(log->inbox, false, INT64_MAX, take, log, &complete_ns, NULL);
    uint64_t opened = find_progress(log);
    assert_true(opened > 0);
    wm_region_inbox_drain(log->inbox, false, INT64_MAX, take, log, &complete_ns, NULL);
    assert_true(find_progress(log) > opened); /* the taker waits, but lives */
    log->refuse_from = -1;
    wm_region_end();
}

static void test_take_again(void **state)
{
    struct log *log = *state;
    struct wm_error err;
    int64_t complete_ns = 4711;

    for (int i = 0; i < 3; i++) {
        wm_region_begin("call");
        wm_region_end();
    }
    usleep(2000);
    for (log->refuse_from = 0; log->refuse_from < 7; log->refuse_from++)
        assert_int_equal(wm_region_inbox_drain(log->inbox, true, INT64_MAX, take, log,
                                               &complete_ns, &err),
                         WM_EIO);
    assert_int_equal(complete_ns, 4711);
    log->refuse_from = -1;
    expect(log, "0(call 0) 0(call 0) 0(call 0) 0!");
}

/* A tracker inside the measured program shares its descriptors: without any a thread is not
 * gone, nor is its ring broken. */
static void test_no_descriptors(void **state)
{
    struct log *log = *state;
    struct rlimit limit, none;

    wm_region_begin("a");
    drain(log, false);
    for (int i = 0; i < 600; i++) {
        wm_region_begin("b");
        wm_region_end();
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++) {
        usleep(60000); /* threads are asked for so often */
        drain(log, false);
    }
    wm_region_begin("c");
    drain(log, false);
    long seen = log->count;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_null(strchr(log->text, '!'));
    assert_int_equal(seen, 1 + 2 * 600 + 1);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
    wm_region_end();
    wm_region_end();
}

/* At the end there is no next time to look for rings. */
static void test_no_descriptors_at_end(void **state)
{
    struct log *log = *state;
    struct rlimit limit, none;
    int64_t complete_ns;

    wm_region_begin("a");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int status =
        wm_region_inbox_drain(log->inbox, true, INT64_MAX, take, log, &complete_ns, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(status, WM_EIO);
    expect(log, "0(a 0!");
}

static void *overwrite_size(void *context)
{
    struct log *log = context;
    char path[WM_RING_PATH_SIZE];
    const uint64_t size = 0;

    wm_region_begin("b");
    drain(log, false);
    snprintf(path, sizeof(path), "%s/1", wm_region_inbox_path(log->inbox));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &size, sizeof(size), offsetof(struct wm_ring, size)),
                     sizeof(size));
    close(fd);
    return NULL;
}

/* All of a ring is let go of, whatever stands in it by then. */
static void test_size(void **state)
{
    struct log *log = *state;

    wm_region_begin("a");
    run_thread(overwrite_size, log);
    usleep(60000);
    drain(log, false);
    drain(log, false);
    assert_string_equal(log->text, "0(a 1(b 1!");
    wm_region_end();
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * WM_NS_PER_S + now.tv_nsec;
}

static void work(int64_t ns)
{
    int64_t until_ns = cpu_ns() + ns;

    while (cpu_ns() < until_ns)
        ;
}

/* What a call is said to have had lies between what its thread had inside and around. */
static void assert_clocked(struct log *log, int64_t inside_ns, int64_t around_ns)
{
    drain(log, false);
    assert_in_range(log->clocked, 1 + inside_ns, 1 + around_ns);
}

static void *stop_elsewhere(void *context)
{
    wm_region_stop(*(uint64_t *)context);
    return NULL;
}

/* The CPU time of a call is by its thread's own clock. */
static void test_clocks(void **state)
{
    struct log *log = *state;
    int64_t around_ns, inside_ns;
    uint64_t id;

    for (int i = 0; i < 10; i++) {
        around_ns = cpu_ns();
        wm_region_begin("works");
        wm_region_begin("inside");
        inside_ns = cpu_ns();
        work(WM_NS_PER_MS);
        inside_ns = cpu_ns() - inside_ns;
        wm_region_end();
        usleep(2000);
        wm_region_end();
        assert_clocked(log, inside_ns, cpu_ns() - around_ns);
        assert_int_equal(log->ends, log->clocked_ends);

        around_ns = cpu_ns();
        id = wm_region_start("started");
        inside_ns = cpu_ns();
        work(WM_NS_PER_MS);
        inside_ns = cpu_ns() - inside_ns;
        wm_region_stop(id);
        assert_clocked(log, inside_ns, cpu_ns() - around_ns);
    }
    id = wm_region_start("started");
    run_thread(stop_elsewhere, &id);
    drain(log, false);
    assert_int_equal(log->clocked, 0);
}

/* A name's calls are known by its text: a program may have many names in one place, as
 * where it copies each for its call, and more of them than a ring knows at one time. */
static void test_clocks_of_copied_names(void **state)
{
    static const int counts[] = { 3, WM_RING_NAMES, 3 * WM_RING_NAMES };
    struct log *log = *state;
    char name[16];

    for (size_t row = 0; row < ARRAY_LEN(counts); row++) {
        for (int i = 0; i < 3 * WM_RING_NAMES; i++) {
            snprintf(name, sizeof(name), "%zu: %d", row, i % counts[row]);
            wm_region_begin(name);
            work(2 * (int64_t)WM_REGION_LONG_NS);
            wm_region_end();
        }
        drain(log, false);
        assert_int_equal(log->ends, log->clocked_ends);
    }
}

/* Reading the clock costs more than a short call may: the first ones tell, and a call that
 * is long after all pays for clocking as many as there may be in its time. */
static void test_short_calls(void **state)
{
    enum { SHORT = 4000, BETWEEN = 60 };
    struct log *log = *state;
    int64_t from_ns = wm_clock_monotonic_ns();

    for (int i = 0; i < SHORT; i++) {
        wm_region_begin("short");
        wm_region_end();
    }
    int64_t most = 4 + (wm_clock_monotonic_ns() - from_ns) / WM_REGION_LONG_NS;
    drain(log, false);
    assert_int_equal(log->ends, SHORT);
    assert_in_range(log->clocked_ends, 4, most);
    for (int i = 0; i < 4 * (BETWEEN + 1); i++) {
        bool is_long = i % (BETWEEN + 1) == 0;
        wm_region_begin("short");
        if (is_long)
            usleep(2 * BETWEEN * WM_REGION_LONG_NS / 1000);
        wm_region_end();
        if (!is_long)
            continue;
        drain(log, false);
        assert_true(i == 0 || log->clocked > 0);
    }
}

/* What came of each name. */
struct sums {
    struct {
        char name[16];
        struct wm_region_fold all;
        int64_t rows, laid_ns;
    } of[5];
    size_t stack[8], depth;
    int64_t starts[8], last_ns;
};

static size_t find_sum(struct sums *sums, const char *name)
{
    size_t i = 0;

    while (sums->of[i].name[0] && strcmp(sums->of[i].name, name) != 0)
        i++;
    assert_in_range(i, 0, ARRAY_LEN(sums->of) - 2);
    snprintf(sums->of[i].name, sizeof(sums->of[i].name), "%s", name);
    return i;
}

static int sum_up(void *context, const struct wm_region_event *event)
{
    struct sums *sums = context;

    assert_true(event->when_ns >= sums->last_ns);
    sums->last_ns = event->when_ns;
    if (event->kind == WM_REGION_BEGINS) {
        sums->starts[sums->depth] = event->when_ns;
        sums->stack[sums->depth++] = find_sum(sums, event->name);
        assert_null(event->fold);
    } else if (event->kind == WM_REGION_ENDS) {
        size_t i = sums->stack[--sums->depth];
        int64_t ns = event->when_ns - sums->starts[sums->depth];
        sums->of[i].rows++;
        sums->of[i].laid_ns += ns;
        sums->of[i].all.calls += event->fold ? event->fold->calls : 1;
        sums->of[i].all.sum_ns += event->fold ? event->fold->sum_ns : (uint64_t)ns;
        if (!event->fold)
            return 0;
        uint64_t calls = 0;
        for (int k = 0; k < WM_REGION_FOLD_BUCKETS; k++)
            calls += event->fold->buckets[k];
        assert_int_equal(calls, event->fold->calls);
        assert_true(event->fold->min_ns <= event->fold->max_ns);
        assert_in_range(event->fold->sum_ns, calls * event->fold->min_ns,
                        calls * event->fold->max_ns);
        assert_true((double)event->fold->squares >= (double)event->fold->sum_ns *
                                                        (double)event->fold->sum_ns /
                                                        (double)calls * (1 - 1e-9));
    }
    return 0;
}

/* Calls that come fast are taken together, inner ones too; all are counted, and last as
 * long as they did. */
static void test_folded(void **state)
{
    enum { ROUNDS = 10, CALLS = 10000 };
    struct log *log = *state;
    struct sums sums = { 0 };
    int64_t complete_ns, inside_ns = 0;

    wm_region_inbox_fold_all(log->inbox, true);
    wm_region_begin("around");
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from_ns = wm_clock_monotonic_ns();
        for (int i = 0; i < CALLS; i++) {
            wm_region_begin("outer");
            wm_region_begin("inner");
            wm_region_end();
            wm_region_end();
        }
        inside_ns += wm_clock_monotonic_ns() - from_ns;
        wm_region_begin("other");
        wm_region_end();
        usleep(round % 5 == 0 ? 1000 : 1);
        assert_int_equal(wm_region_inbox_drain(log->inbox, false, INT64_MAX, sum_up, &sums,
                                               &complete_ns, NULL),
                         WM_OK);
        assert_true(complete_ns >= sums.last_ns);
    }
    wm_region_end();
    usleep(2000);
    assert_int_equal(wm_region_inbox_drain(log->inbox, true, INT64_MAX, sum_up, &sums,
                                           &complete_ns, NULL),
                     WM_OK);
    const size_t outer = find_sum(&sums, "outer"), inner = find_sum(&sums, "inner");
    assert_int_equal(sums.of[find_sum(&sums, "around")].all.calls, 1);
    assert_int_equal(sums.of[find_sum(&sums, "other")].all.calls, ROUNDS);
    assert_int_equal(sums.of[outer].all.calls, ROUNDS * CALLS);
    assert_int_equal(sums.of[inner].all.calls, ROUNDS * CALLS);
    assert_true(sums.of[outer].rows < ROUNDS * CALLS / 2 + inside_ns / WM_REGION_LONG_NS);
    assert_true(sums.of[inner].all.sum_ns <= sums.of[outer].all.sum_ns);
    assert_true(sums.of[outer].all.sum_ns <= (uint64_t)inside_ns);
    assert_int_equal(sums.of[outer].laid_ns, sums.of[outer].all.sum_ns);
    assert_int_equal(sums.of[inner].laid_ns, sums.of[inner].all.sum_ns);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

/* A slow loop loses its processor so often that what it leaves unfolded fills the ring. */
#ifdef __SANITIZE_THREAD__
enum { LOOP_CALLS = WM_RING_SIZE_MAX / 8 };
#else
enum { LOOP_CALLS = 2 * WM_RING_SIZE_MAX };
#endif

/* A loop of short calls waits for no tracker, though they are many times what the ring
 * holds, nor is any of them lost, */
static void test_loop_without_tracker(void **state)
{
    enum { ROUNDS = 20 };
    struct log *log = *state;
    struct sums sums = { 0 };
    int64_t complete_ns;

    wm_region_inbox_fold_all(log->inbox, true);
    wm_region_begin("first"); /* makes the ring */
    wm_region_end();
    for (int round = 0; round < ROUNDS; round++) {
        long before = count_naps();
        for (int i = 0; i < LOOP_CALLS; i++) {
            wm_region_begin("call");
            wm_region_end();
        }
        assert_int_equal(count_naps(), before);
        assert_int_equal(wm_region_inbox_drain(log->inbox, round == ROUNDS - 1, INT64_MAX,
                                               sum_up, &sums, &complete_ns, NULL),
                         WM_OK);
    }
    assert_int_equal(sums.of[find_sum(&sums, "call")].all.calls, ROUNDS * LOOP_CALLS);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
}

/* Calls of a loop by its own account, at the same place in all processes. */
struct account {
    _Atomic uint64_t outer, inner;
    atomic_bool is_over;
};

static void loop_on(void *context)
{
    struct account *account = context;

    while (!atomic_load(&account->is_over)) {
        wm_region_begin("outer");
        for (int i = 0; i < 3; i++) {
            wm_region_begin("inner");
            wm_region_end();
            atomic_fetch_add(&account->inner, 1);
        }
        wm_region_end();
        atomic_fetch_add(&account->outer, 1);
    }
}

static uint64_t calls_of(struct sums *sums, const char *name)
{
    return sums->of[find_sum(sums, name)].all.calls;
}

/* by kill -9 in the middle of it, */
static void test_killed_in_loop(void **state)
{
    enum { ROUNDS = 40 };

    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct account *account = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct wm_region_inbox *inbox;
        struct sums sums = { 0 };
        int64_t complete_ns;
        assert_true(account != MAP_FAILED);
        assert_int_equal(wm_region_inbox_new(&inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(inbox, NULL), WM_OK);
        wm_region_inbox_fold_all(inbox, true);
        assert_int_equal(wm_region_listen(wm_region_inbox_path(inbox), NULL), WM_OK);
        pid_t pid = run_child(loop_on, account);
        while (atomic_load(&account->outer) < 1000 + 777 * round) {
            usleep(round % 2 * 5000);
            assert_true(wm_region_inbox_drain(inbox, false, INT64_MAX, sum_up, &sums,
                                              &complete_ns, NULL) >= 0);
        }
        kill(pid, SIGKILL);
        join(pid);
        assert_int_equal(wm_region_inbox_drain(inbox, true, INT64_MAX, sum_up, &sums,
                                               &complete_ns, NULL),
                         WM_OK);
        uint64_t outer = calls_of(&sums, "outer"), inner = calls_of(&sums, "inner");
        assert_in_range(outer, atomic_load(&account->outer),
                        atomic_load(&account->outer) + 1);
        assert_in_range(inner, atomic_load(&account->inner),
                        atomic_load(&account->inner) + 1);
        assert_in_range(inner, 3 * outer, 3 * outer + 3);
        assert_true(sums.depth <= 2);
        assert_int_equal(wm_region_inbox_trouble(inbox)->lost, 0);
        assert_int_equal(wm_region_inbox_trouble(inbox)->damaged, 0);
        assert_int_equal(wm_region_listen(NULL, NULL), WM_OK);
        wm_region_inbox_free(inbox);
        munmap(account, sizeof(*account));
    }
}

static void *loop_in_thread(void *context)
{
    loop_on(context);
    return NULL;
}

/* or by the end of the tracker, after which the loop has no regions. */
static void test_end_in_loop(void **state)
{
    struct log *log = *state;
    struct sums sums = { 0 };
    struct account account = { .outer = 0 };
    pthread_t thread;
    int64_t complete_ns;

    wm_region_inbox_fold_all(log->inbox, true);
    assert_int_equal(pthread_create(&thread, NULL, loop_in_thread, &account), 0);
    while (atomic_load(&account.outer) < 10000) {
        usleep(100);
        assert_true(wm_region_inbox_drain(log->inbox, false, INT64_MAX, sum_up, &sums,
                                          &complete_ns, NULL) >= 0);
    }
    uint64_t before = atomic_load(&account.outer);
    assert_int_equal(wm_region_inbox_drain(log->inbox, true, INT64_MAX, sum_up, &sums,
                                           &complete_ns, NULL),
                     WM_OK);
    assert_in_range(calls_of(&sums, "outer"), before, atomic_load(&account.outer) + 1);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
    wm_region_inbox_free(log->inbox);
    while (wm_region_is_on())
        usleep(100);
    atomic_store(&account.is_over, true);
    pthread_join(thread, NULL);
    assert_int_equal(wm_region_inbox_new(&log->inbox, NULL), WM_OK);
    assert_int_equal(wm_region_inbox_open(log->inbox, NULL), WM_OK);
}

struct counted {
    uint64_t calls;
    bool refuses_starts;
};

static int count_calls(void *context, const struct wm_region_event *event)
{
    struct counted *counted = context;

    if (counted->refuses_starts && event->kind == WM_REGION_STARTS)
        return WM_EIO;
    if (event->kind == WM_REGION_ENDS)
        counted->calls += event->fold ? event->fold->calls : 1;
    return 0;
}

static void call_shortly(int calls)
{
    for (int i = 0; i < calls; i++) {
        wm_region_begin("short");
        wm_region_end();
    }
}

/* A tail that the inbox took for its age is settled before it is read. No call of it counts
 * twice, whichever copy is valid. */
static void test_settled_after_look(void **state)
{
    enum { ROUNDS = 16, FIRST = 1024, MORE = 128 };
    struct log *log = *state;
    int64_t complete_ns;

    wm_region_inbox_fold_all(log->inbox, true);
    for (int round = 1; round <= ROUNDS; round++) {
        struct counted counted = { .refuses_starts = true };
        call_shortly(FIRST); /* so that the next tail begins right behind the start */
        uint64_t started = wm_region_start("around");
        call_shortly(round * MORE);
        usleep(WM_RING_SLICE_NS / 1000 + 1000);
        assert_int_equal(wm_region_inbox_drain(log->inbox, false, INT64_MAX, count_calls,
                                               &counted, &complete_ns, NULL),
                         WM_EIO);
        wm_region_stop(started);
        usleep(1000);
        counted.refuses_starts = false;
        assert_int_equal(wm_region_inbox_drain(log->inbox, false, INT64_MAX, count_calls,
                                               &counted, &complete_ns, NULL),
                         WM_OK);
        assert_int_equal(counted.calls, FIRST + round * MORE);
    }
}

/* As many calls in a moment as are less than half a million a second are one each, */
static void test_bursts(void **state)
{
    enum { ROUNDS = 30, CALLS = 500, PAUSE_US = 1000 };
    struct log *log = *state;
    struct sums sums = { 0 };
    int64_t complete_ns;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            wm_region_begin("burst");
            wm_region_end();
        }
        usleep(PAUSE_US);
        assert_int_equal(wm_region_inbox_drain(log->inbox, round == ROUNDS - 1, INT64_MAX,
                                               sum_up, &sums, &complete_ns, NULL),
                         WM_OK);
    }
    assert_int_equal(sums.of[0].all.calls, ROUNDS * CALLS);
    assert_int_equal(sums.of[0].rows, ROUNDS * CALLS);
}

/* and so are those that come slowly after many that came fast. */
static void test_slow_after_fast(void **state)
{
    enum { FAST = 20000, SLOW = 200, PAUSE_NS = 20000 };
    struct log *log = *state;
    struct sums sums = { 0 };
    int64_t complete_ns, took_ns = -wm_clock_monotonic_ns();

    for (int i = 0; i < FAST; i++) {
        wm_region_begin("fast");
        wm_region_end();
    }
    took_ns += wm_clock_monotonic_ns();
    usleep(3000);
    for (int i = 0; i < SLOW; i++) {
        int64_t until_ns = wm_clock_monotonic_ns() + PAUSE_NS;
        wm_region_begin("slow");
        wm_region_end();
        while (wm_clock_monotonic_ns() < until_ns)
            ;
    }
    assert_int_equal(wm_region_inbox_drain(log->inbox, true, INT64_MAX, sum_up, &sums,
                                           &complete_ns, NULL),
                     WM_OK);
    const size_t fast = find_sum(&sums, "fast"), slow = find_sum(&sums, "slow");
    assert_int_equal(sums.of[fast].all.calls, FAST);
    assert_true(sums.of[fast].rows < FAST / 2 || took_ns > FAST * WM_NS_PER_MS / 1000);
    assert_int_equal(sums.of[slow].all.calls, SLOW);
    assert_int_equal(sums.of[slow].rows, SLOW);
}

/* Another tracker in the same process. */
static void test_listen(void **state)
{
    struct log *log = *state, other = { .refuse_from = -1 };
    struct wm_error err;

    wm_region_begin("before");
    assert_int_equal(wm_region_inbox_new(&other.inbox, &err), WM_OK);
    assert_int_equal(wm_region_inbox_open(other.inbox, &err), WM_OK);
    assert_string_not_equal(wm_region_inbox_path(other.inbox),
                            wm_region_inbox_path(log->inbox));
    assert_int_equal(wm_region_listen(wm_region_inbox_path(other.inbox), &err), WM_OK);
    wm_region_begin("after");
    wm_region_end();
    expect(log, "0(before 0!");
    expect(&other, "0(after 0) 0!");
    assert_int_equal(wm_region_listen(NULL, &err), WM_OK);
    assert_false(wm_region_is_on());
    wm_region_begin("nowhere");
    wm_region_end();
    assert_int_not_equal(wm_region_start("nowhere"), 0);
    wm_region_inbox_free(other.inbox);

    static const char *const bad[] = { "", "relative", "/nonexistent", "/tmp",
                                       "/dev/null" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_true(wm_region_listen(bad[i], &err) < 0);
        assert_true(strlen(err.text) > 0);
    }
}

static void use_environment(void *context)
{
    setenv(WM_REGIONS_VARIABLE, context, 1);
    if (wm_region_listen(NULL, NULL) < 0 || !wm_region_is_on())
        _exit(1);
    wm_region_begin("by the environment");
    wm_region_end();
}

static void test_environment(void **state)
{
    struct log *log = *state;
    char path[WM_FOLDER_SIZE];

    snprintf(path, sizeof(path), "%s", wm_region_inbox_path(log->inbox));
    join(run_child(use_environment, path));
    expect(log, "0(by the environment 0) 0!");
}

/* A tracker that closes ends the program's regions too. */
static void test_closed(void **state)
{
    struct log *log = *state, other = { .refuse_from = -1 };

    assert_int_equal(wm_region_inbox_new(&other.inbox, NULL), WM_OK);
    assert_int_equal(wm_region_inbox_open(other.inbox, NULL), WM_OK);
    assert_int_equal(wm_region_listen(wm_region_inbox_path(other.inbox), NULL), WM_OK);
    wm_region_inbox_free(other.inbox);
    assert_true(wm_region_is_on()); /* nobody has looked yet */
    wm_region_begin("too late");
    wm_region_end();
    assert_false(wm_region_is_on());
    drain(log, true);
    assert_string_equal(log->text, "");
}

/* A made ring with something wrong in it. */
struct bad_ring {
    const char *name;
    struct wm_ring head;
    struct wm_ring_event events[16];
    size_t size;          /* of the file; 0: as it should be */
    const char *expected; /* what comes of it all the same */
    bool is_sound;
};

#define HEAD(version_, size_, capacity_, sequence_)                                        \
    {                                                                                      \
        .magic = WM_RING_MAGIC, .version = version_, .size = size_, .capacity = capacity_, \
        .sequence = sequence_                                                              \
    }
#define MADE(sequence)                                                                     \
    HEAD(WM_RING_VERSION, WM_RING_CAPACITY_MIN, WM_RING_CAPACITY_MIN, sequence)
#define SOUND(end) MADE((end)*WM_RING_UNIT)
#define NAMED                                                                              \
    { 1, 1 << 8 | WM_RING_NAME },                                                          \
    {                                                                                      \
        'n', 0                                                                             \
    }
#define BEGUN(when)                                                                        \
    {                                                                                      \
        when, 1 << 8 | WM_RING_BEGIN                                                       \
    }

#define SLICE(places, slots)                                                               \
    {                                                                                      \
        4, ((places) | (uint64_t)(slots) << 8) << 8 | WM_RING_SLICE                        \
    }
/* Calls of 100 ns. */
#define PLACE(number, parent, calls, counted, sum_ns)                                      \
    { (number) | (int64_t)(parent) << 32, calls }, { sum_ns, 10000 },                      \
        { 100 | INT64_C(100) << 32, counted }, { 0, 0 },                                   \
    {                                                                                      \
        0, 0                                                                               \
    }
#define TOP WM_RING_PLACES
#define TAIL_SLOTS (2 * WM_RING_SLICE_SLOTS)

static void write_ring(const char *folder, const char *name, const struct bad_ring *ring)
{
    char path[WM_RING_PATH_SIZE];
    size_t size = ring->size > 0 ? ring->size : wm_ring_bytes(WM_RING_CAPACITY_MIN);

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, (off_t)size), 0);
    assert_int_equal(pwrite(fd, &ring->head, sizeof(ring->head), 0), sizeof(ring->head));
    if (size > WM_RING_EVENTS_AT)
        assert_int_equal(pwrite(fd, ring->events, sizeof(ring->events), WM_RING_EVENTS_AT),
                         sizeof(ring->events));
    assert_int_equal(close(fd), 0);
}

/* A ring that a program fills by itself with as many names as it can tell. */
struct told_ring {
    int fd;
    uint64_t position;
};

static void begin_by_long_name(struct told_ring *ring, uint64_t local)
{
    enum { NAME_SLOTS = (WM_REGION_NAME_MAX + 15) / 16, COUNT = NAME_SLOTS + 2 };
    struct wm_ring_event slots[COUNT];
    size_t at = ring->position % WM_RING_CAPACITY_MIN;
    size_t first = COUNT < WM_RING_CAPACITY_MIN - at ? COUNT : WM_RING_CAPACITY_MIN - at;
    uint64_t sequence = WM_RING_UNIT * (ring->position += COUNT);

    memset(slots, 'n', sizeof(slots));
    slots[0] = (struct wm_ring_event) { WM_REGION_NAME_MAX, local << 8 | WM_RING_NAME };
    slots[COUNT - 1] = (struct wm_ring_event) { 0, local << 8 | WM_RING_BEGIN };
    assert_true(pwrite(ring->fd, slots, first * sizeof(slots[0]),
                       (off_t)(WM_RING_EVENTS_AT + at * sizeof(slots[0]))) > 0);
    assert_true(pwrite(ring->fd, slots + first, (COUNT - first) * sizeof(slots[0]),
                       WM_RING_EVENTS_AT) >= 0);
    assert_true(pwrite(ring->fd, &sequence, sizeof(sequence),
                       offsetof(struct wm_ring, sequence)) > 0);
}

static int count_long_names(void *context, const struct wm_region_event *event)
{
    long *counts = context;

    if (event->kind == WM_REGION_BEGINS)
        counts[strlen(event->name) == WM_REGION_NAME_MAX]++;
    return 0;
}

/* Names of all rings together are bounded, and there is room again when rings are gone. */
static void test_names_of_many_rings(void **state)
{
    enum {
        RINGS = 36,
        TOLD = RINGS * WM_RING_NAMES,
        FIT = (64 << 20) / WM_REGION_NAME_MAX
    };
    static const struct bad_ring empty = { .head = SOUND(0) };
    struct told_ring rings[RINGS] = { 0 };
    struct wm_region_inbox *inbox = NULL;
    long counts[2] = { 0 };
    int64_t complete_ns;

    (void)state;
    assert_int_equal(wm_region_inbox_new(&inbox, NULL), WM_OK);
    assert_int_equal(wm_region_inbox_open(inbox, NULL), WM_OK);
    for (size_t i = 0; i < RINGS; i++) {
        char name[16], path[WM_RING_PATH_SIZE];
        snprintf(name, sizeof(name), "%zu", i);
        write_ring(wm_region_inbox_path(inbox), name, &empty);
        snprintf(path, sizeof(path), "%s/%s", wm_region_inbox_path(inbox), name);
        rings[i].fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(rings[i].fd >= 0 && flock(rings[i].fd, LOCK_EX) == 0);
    }
    for (uint64_t local = 0; local <= WM_RING_NAMES; local++) {
        for (size_t i = 0; i < RINGS && local < WM_RING_NAMES; i++)
            begin_by_long_name(&rings[i], local);
        usleep(2000);
        assert_true(wm_region_inbox_drain(inbox, false, INT64_MAX, count_long_names, counts,
                                          &complete_ns, NULL) >= 0);
    }
    assert_int_equal(counts[0] + counts[1], TOLD);
    assert_in_range(counts[1], FIT - 50, FIT);

    for (size_t i = 0; i < RINGS - 1; i++)
        close(rings[i].fd);
    for (int i = 0; i < 20; i++) {
        usleep(60000); /* threads are asked for this often */
        wm_region_inbox_drain(inbox, false, INT64_MAX, count_long_names, counts,
                              &complete_ns, NULL);
    }
    counts[1] = 0;
    begin_by_long_name(&rings[RINGS - 1], 0);
    assert_true(wm_region_inbox_drain(inbox, true, INT64_MAX, count_long_names, counts,
                                      &complete_ns, NULL) >= 0);
    assert_int_equal(counts[1], 1);
    close(rings[RINGS - 1].fd);
    wm_region_inbox_free(inbox);
}

static void test_bad_rings(void **state)
{
    static const struct bad_ring cases[] = {
        { "good", SOUND(3), { NAMED, BEGUN(5) }, 0, "0(n 0!", true },
        { "magic", { .magic = 1 }, { { 0, 0 } }, 0, "", false },
        { "version",
          HEAD(99, WM_RING_CAPACITY_MIN, WM_RING_CAPACITY_MIN, 3 * WM_RING_UNIT),
          { NAMED, BEGUN(5) },
          0,
          "",
          false },
        { "size no power",
          HEAD(WM_RING_VERSION, 1025, WM_RING_CAPACITY_MIN, 3 * WM_RING_UNIT),
          { NAMED, BEGUN(5) },
          0,
          "",
          false },
        { "size huge",
          HEAD(WM_RING_VERSION, UINT64_C(1) << 60, WM_RING_CAPACITY_MIN, 0),
          { { 0, 0 } },
          0,
          "",
          false },
        { "size 0",
          HEAD(WM_RING_VERSION, 0, WM_RING_CAPACITY_MIN, 0),
          { { 0, 0 } },
          0,
          "",
          false },
        { "file too short", SOUND(3), { { 0, 0 } }, 4096, "", false },
        { "file of a byte", SOUND(3), { { 0, 0 } }, 1, "", false },
        { "more than it holds", MADE(UINT64_MAX), { NAMED }, 0, "", false },
        { "capacity 0",
          HEAD(WM_RING_VERSION, WM_RING_CAPACITY_MIN, 0, 3000 * WM_RING_UNIT),
          { NAMED },
          0,
          "",
          false },
        { "capacity huge",
          HEAD(WM_RING_VERSION, WM_RING_CAPACITY_MIN, 1 << 20, 3000 * WM_RING_UNIT),
          { NAMED },
          0,
          "",
          false },
        { "lost absurdly many",
          { .magic = WM_RING_MAGIC,
            .version = WM_RING_VERSION,
            .size = WM_RING_CAPACITY_MIN,
            .capacity = WM_RING_CAPACITY_MIN,
            .sequence = 3 * WM_RING_UNIT,
            .lost = UINT64_C(1) << 62 },
          { NAMED, BEGUN(5) },
          0,
          "",
          false },
        { "unknown kind", SOUND(4), { NAMED, BEGUN(5), { 6, 77 } }, 0, "0(n 0!", false },
        { "kind 0", SOUND(1), { { 6, 0 } }, 0, "", false },
        { "no such name", SOUND(1), { BEGUN(5) }, 0, "", false },
        { "name's number", SOUND(2), { { 1, 256 << 8 | WM_RING_NAME } }, 0, "", false },
        { "begin's number",
          SOUND(1),
          { { 1, UINT64_MAX << 8 | WM_RING_BEGIN } },
          0,
          "",
          false },
        { "name too long", SOUND(4), { { 8192, 1 << 8 | WM_RING_NAME } }, 0, "", false },
        { "name below 0", SOUND(4), { { -1, 1 << 8 | WM_RING_NAME } }, 0, "", false },
        { "half a name", SOUND(2), { { 17, 1 << 8 | WM_RING_NAME } }, 0, "", false },
        { "half a start",
          SOUND(3),
          { NAMED, { 5, 1 << 8 | WM_RING_START } },
          0,
          "",
          false },
        { "time goes back",
          SOUND(4),
          { NAMED, BEGUN(9), BEGUN(5) },
          0,
          "0(n 0(n 0!",
          true },
        { "time below 0", SOUND(3), { NAMED, BEGUN(INT64_MIN) }, 0, "0(n 0!", true },
        { "time to come", SOUND(3), { NAMED, BEGUN(INT64_MAX) }, 0, "0(n 0!", true },
        { "a slice",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(1, TOP, 3, 3, 300) },
          0,
          "0(n 0) 0!",
          true },
        { "a slice, one in the other",
          SOUND(13),
          { NAMED, SLICE(2, 11), PLACE(1, TOP, 3, 3, 300), PLACE(1, 0, 2, 2, 200) },
          0,
          "0(n 0(n 0) 0) 0!",
          true },
        { "a slice, empty, and slots that mean nothing",
          SOUND(7),
          { NAMED, SLICE(0, 2), { 0, 0 }, { 0, 3 << 8 | WM_RING_VOID } },
          0,
          "",
          true },
        { "a slice in a tail",
          MADE((2 + TAIL_SLOTS) * WM_RING_UNIT + TAIL_SLOTS * WM_RING_TAIL),
          { NAMED, SLICE(1, 161), PLACE(1, TOP, 3, 3, 300) },
          0,
          "0(n 0) 0!",
          true },
        { "a tail, another copy of which holds",
          MADE((2 + TAIL_SLOTS) * WM_RING_UNIT + TAIL_SLOTS * WM_RING_TAIL + WM_RING_COPY),
          { NAMED, SLICE(1, 161), PLACE(1, TOP, 3, 3, 300) },
          0,
          "",
          false },
        { "a tail without a slice",
          MADE(3 * WM_RING_UNIT + WM_RING_TAIL),
          { NAMED },
          0,
          "",
          false },
        { "a tail of more than there is",
          MADE(3 * WM_RING_UNIT + TAIL_SLOTS * WM_RING_TAIL),
          { NAMED },
          0,
          "",
          false },
        { "a slice of no slots",
          SOUND(8),
          { NAMED, SLICE(1, 0), PLACE(1, TOP, 3, 3, 300) },
          0,
          "",
          false },
        { "a slice of too few",
          SOUND(8),
          { NAMED, SLICE(1, 5), PLACE(1, TOP, 3, 3, 300) },
          0,
          "",
          false },
        { "half a slice",
          SOUND(7),
          { NAMED, SLICE(1, 6), PLACE(1, TOP, 3, 3, 300) },
          0,
          "",
          false },
        { "a slice of too many places", SOUND(16), { NAMED, SLICE(33, 14) }, 0, "", false },
        { "a place without a name",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(2, TOP, 3, 3, 300) },
          0,
          "",
          false },
        { "a place in itself",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(1, 0, 3, 3, 300) },
          0,
          "",
          false },
        { "a place of no calls",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(1, TOP, 0, 0, 0) },
          0,
          "",
          false },
        { "calls that are not in its histogram",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(1, TOP, 3, 2, 300) },
          0,
          "",
          false },
        { "calls that are longer than a slice",
          SOUND(8),
          { NAMED, SLICE(1, 6), PLACE(1, TOP, 3, 3, WM_RING_SLICE_NS + 1) },
          0,
          "",
          false },
        { "no slots that mean nothing",
          SOUND(3),
          { NAMED, { 0, WM_RING_VOID } },
          0,
          "",
          false },
        { "too many slots that mean nothing",
          SOUND(3),
          { NAMED, { 0, 2 << 8 | WM_RING_VOID } },
          0,
          "",
          false },
        { "in the middle of one",
          MADE(3 * WM_RING_UNIT + WM_RING_WRITING),
          { NAMED, BEGUN(5) },
          0,
          "0(n 0!",
          true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log log = { .refuse_from = -1 };
        char path[WM_RING_PATH_SIZE];
        assert_int_equal(wm_region_inbox_new(&log.inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(log.inbox, NULL), WM_OK);
        write_ring(wm_region_inbox_path(log.inbox), "7", &cases[i]);
        snprintf(path, sizeof(path), "%s/7", wm_region_inbox_path(log.inbox));
        drain(&log, false);
        drain(&log, true);
        if (strcmp(log.text, cases[i].expected) != 0)
            fail_msg("%s: %s", cases[i].name, log.text);
        if (access(path, F_OK) == 0)
            fail_msg("%s: it is still there", cases[i].name);
        if (wm_region_inbox_trouble(log.inbox)->lost != 0 ||
            (wm_region_inbox_trouble(log.inbox)->damaged == 0) != cases[i].is_sound)
            fail_msg("%s: %llu are lost, %llu damaged", cases[i].name,
                     (unsigned long long)wm_region_inbox_trouble(log.inbox)->lost,
                     (unsigned long long)wm_region_inbox_trouble(log.inbox)->damaged);
        wm_region_inbox_free(log.inbox);
    }
}

static void overwrite(const struct log *log, const char *file, size_t at, uint64_t value)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/%s", wm_region_inbox_path(log->inbox), file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &value, sizeof(value), (off_t)at), sizeof(value));
    close(fd);
}

/* A file is cut short while the tracker has it mapped: that was SIGBUS. */
static void test_cut_short(void **state)
{
    static const struct {
        const char *name, *file;
        off_t size;
        const char *expected;
        bool is_damaged, is_cut_off;
    } cases[] = {
        { "none", "control", 4096, "0(n 0) 0!", false, false },
        { "the ring", "0", 0, "0(n 0!", true, false },
        { "its events", "0", WM_RING_EVENTS_AT, "0(n 0!", true, false },
        { "the control", "control", 0, "0(n 0) 0!", false, true },
    };
    static const struct bad_ring sound = { "", SOUND(3), { NAMED, BEGUN(5) }, 0, "", true };
    const struct wm_ring_event end = { 6, WM_RING_END };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log log = { .refuse_from = -1 };
        char path[WM_RING_PATH_SIZE];
        assert_int_equal(wm_region_inbox_new(&log.inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(log.inbox, NULL), WM_OK);
        const char *folder = wm_region_inbox_path(log.inbox);
        write_ring(folder, "0", &sound);
        snprintf(path, sizeof(path), "%s/0", folder);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
        drain(&log, false);

        assert_int_equal(pwrite(fd, &end, sizeof(end), WM_RING_EVENTS_AT + 3 * sizeof(end)),
                         sizeof(end));
        overwrite(&log, "0", offsetof(struct wm_ring, sequence), 4 * WM_RING_UNIT);
        snprintf(path, sizeof(path), "%s/%s", folder, cases[i].file);
        assert_int_equal(truncate(path, cases[i].size), 0);
        drain(&log, false);
        drain(&log, true);
        if (strcmp(log.text, cases[i].expected) != 0 ||
            (wm_region_inbox_trouble(log.inbox)->damaged > 0) != cases[i].is_damaged ||
            wm_region_inbox_trouble(log.inbox)->is_cut_off != cases[i].is_cut_off)
            fail_msg("%s: %s", cases[i].name, log.text);
        close(fd);
        wm_region_inbox_free(log.inbox);
    }
}

/* What is written over the control: nothing of it is believed that cannot be. */
static void test_damaged_control(void **state)
{
    static const struct {
        size_t at;
        uint64_t damaged;
    } cases[] = {
        { offsetof(struct wm_ring_control, lost), 1 },
        { offsetof(struct wm_ring_control, rings_made), 0 },
        { offsetof(struct wm_ring_control, rings_ready), 0 },
        { offsetof(struct wm_ring_control, rings_gone), 0 },
        { offsetof(struct wm_ring_control, progress), 0 },
        { offsetof(struct wm_ring_control, processes), 0 },
    };
    struct log *log = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log other = { .refuse_from = -1 };
        assert_int_equal(wm_region_inbox_new(&other.inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(other.inbox, NULL), WM_OK);
        overwrite(&other, "control", cases[i].at, UINT64_MAX / 2);
        assert_int_equal(wm_region_listen(wm_region_inbox_path(other.inbox), NULL), WM_OK);
        wm_region_begin("a");
        wm_region_end();
        drain(&other, true);
        assert_true(wm_region_inbox_trouble(other.inbox)->lost <= 2);
        if (other.length > 0)
            assert_string_equal(other.text, "0(a 0) 0!");
        else
            assert_int_equal(wm_region_inbox_trouble(other.inbox)->no_ring_errno, EFBIG);
        assert_int_equal(wm_region_inbox_trouble(other.inbox)->damaged, cases[i].damaged);
        assert_int_equal(wm_region_listen(wm_region_inbox_path(log->inbox), NULL), WM_OK);
        wm_region_inbox_free(other.inbox);
    }
}

static void *mark_on(void *context)
{
    atomic_bool *is_over = context;

    while (!atomic_load(is_over)) {
        wm_region_begin("other");
        wm_region_end();
        usleep(1000);
    }
    return NULL;
}

struct drainer {
    struct log *log;
    atomic_bool is_over;
};

static void *be_tracker(void *context)
{
    struct drainer *drainer = context;
    int64_t complete_ns;

    while (!atomic_load(&drainer->is_over)) {
        wm_region_inbox_drain(drainer->log->inbox, false, INT64_MAX, take, drainer->log,
                              &complete_ns, NULL);
        usleep(1000);
    }
    return NULL;
}

/* A thread whose ring is damaged does not wait for the tracker, which is busy with the
 * rings of others. */
static void test_damaged_ring_is_left(void **state)
{
    struct drainer drainer = { .log = *state };
    atomic_bool is_over = false;
    pthread_t tracker, other;

    wm_region_begin("a");
    drain(drainer.log, false);
    overwrite(drainer.log, "0", offsetof(struct wm_ring, lost), UINT64_MAX);
    assert_int_equal(pthread_create(&tracker, NULL, be_tracker, &drainer), 0);
    assert_int_equal(pthread_create(&other, NULL, mark_on, &is_over), 0);
    usleep(20000);
    long before = count_naps();
    mark_unfolded(2 * WM_RING_SIZE_MAX);
    assert_true(count_naps() - before < 100);
    atomic_store(&is_over, true);
    pthread_join(other, NULL);
    atomic_store(&drainer.is_over, true);
    pthread_join(tracker, NULL);
    wm_region_end();
    assert_int_equal(wm_region_inbox_trouble(drainer.log->inbox)->damaged, 1);
    assert_int_equal(wm_region_inbox_trouble(drainer.log->inbox)->damaged_pid, getpid());
}

struct limited {
    int resource;
    rlim_t most;
    long calls; /* that are made, and then come */
    int no_ring_errno;
};

static void mark_within(void *context)
{
    const struct limited *limited = context;
    const struct rlimit limit = { limited->most, limited->most };

    if (setrlimit((__rlimit_resource_t)limited->resource, &limit) < 0)
        _exit(1);
    for (long i = 0; i < limited->calls; i++) {
        wm_region_begin("a");
        wm_region_end();
    }
}

/* A program that may not open or make files, or none so large, comes to no harm. What has
 * no ring is counted, and why it has none is known. */
static void test_limits(void **state)
{
    static const struct limited cases[] = {
        { RLIMIT_NOFILE, 3, 1, EMFILE },    { RLIMIT_FSIZE, 0, 1, EFBIG },
        { RLIMIT_FSIZE, 10000, 1, EFBIG },  { RLIMIT_FSIZE, 100000, 2000, 0 },
        { RLIMIT_FSIZE, 2000000, 2000, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log log = { .refuse_from = -1 };
        int64_t complete_ns;
        int status = 0;
        assert_int_equal(wm_region_inbox_new(&log.inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(log.inbox, NULL), WM_OK);
        assert_int_equal(wm_region_listen(wm_region_inbox_path(log.inbox), NULL), WM_OK);
        struct limited limited = cases[i];
        pid_t pid = run_child(mark_within, &limited);
        while (waitpid(pid, &status, WNOHANG) == 0)
            wm_region_inbox_drain(log.inbox, false, INT64_MAX, take, &log, &complete_ns,
                                  NULL);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        drain(&log, true);
        bool has_ring = cases[i].no_ring_errno == 0;
        assert_int_equal(log.count, has_ring ? 2 * cases[i].calls + 1 : 0);
        assert_int_equal(wm_region_inbox_trouble(log.inbox)->lost, has_ring ? 0 : 2);
        assert_int_equal(wm_region_inbox_trouble(log.inbox)->no_ring_errno,
                         cases[i].no_ring_errno);
        assert_int_equal(wm_region_listen(NULL, NULL), WM_OK);
        wm_region_inbox_free(log.inbox);
    }
}

static void change_root(void *context)
{
    wm_region_begin("outer");
    if (chdir(context) < 0 || chroot(".") < 0)
        _exit(1);
    mark_unfolded(WM_RING_SIZE_MAX);
}

/* A program that does not see the folder any more has its ring, which grows, and waits for
 * the tracker when that is full. */
static void test_other_root(void **state)
{
    static char folder[] = "/tmp/wattmeter-root-XXXXXX";
    struct log *log = *state;
    int status = 0;

    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    pid_t pid = run_child(change_root, folder);
    usleep(300000); /* longer than one waits for a tracker that is dead */
    while (waitpid(pid, &status, WNOHANG) == 0)
        drain(log, false);
    assert_int_equal(rmdir(folder), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    drain(log, true);
    assert_int_equal(wm_region_inbox_trouble(log->inbox)->lost, 0);
    assert_int_equal(log->count, 1 + 2 * WM_RING_SIZE_MAX + 1);
}

/* A thread that stopped in the middle of an event, as in a debugger: what others did later
 * waits for it, but not for long. */
static void test_stuck(void **state)
{
    static const struct bad_ring stuck = {
        "stuck", MADE(3 * WM_RING_UNIT + WM_RING_WRITING), { NAMED, BEGUN(5) }, 0, "", true
    };
    struct log *log = *state;
    const char *folder = wm_region_inbox_path(log->inbox);
    char path[WM_RING_PATH_SIZE];

    wm_region_begin("a");
    snprintf(path, sizeof(path), "%s/900", folder);
    write_ring(folder, "900", &stuck);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    log->first_thread = 0;
    log->has_first = true;
    int64_t before_ns = wm_clock_monotonic_ns();
    while (!strstr(log->text, "0(a"))
        drain(log, false);
    int64_t waited_ns = wm_clock_monotonic_ns() - before_ns;
    assert_true(waited_ns > 900 * WM_NS_PER_MS && waited_ns < 10 * WM_NS_PER_S);
    assert_string_equal(log->text, "900(n 0(a");

    /* It goes on after all: what it does is late, and in order. */
    const uint64_t sequence = 4 * WM_RING_UNIT;
    const struct wm_ring_event late = { 6, WM_RING_END };
    assert_int_equal(pwrite(fd, &late, sizeof(late), WM_RING_EVENTS_AT + 3 * sizeof(late)),
                     sizeof(late));
    assert_int_equal(
        pwrite(fd, &sequence, sizeof(sequence), offsetof(struct wm_ring, sequence)),
        sizeof(sequence));
    drain(log, false);
    assert_string_equal(log->text, "900(n 0(a 900)");
    close(fd);
}

static void test_strange_files(void **state)
{
    struct log *log = *state;
    struct stat info;
    char path[WM_RING_PATH_SIZE];
    const char *folder = wm_region_inbox_path(log->inbox);

    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    snprintf(path, sizeof(path), "%s/5", folder);
    assert_int_equal(symlink("/dev/zero", path), 0);
    snprintf(path, sizeof(path), "%s/6", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof(path), "%s/99999999999999999999", folder);
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    snprintf(path, sizeof(path), "%s/16777216", folder);
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    wm_region_begin("a");
    wm_region_end();
    expect(log, "0(a 0) 0!");
}

static void test_out_of_memory(void **state)
{
    struct log *log = *state;
    int64_t complete_ns;
    struct wm_error err = { 0 };
    struct wm_region_inbox *inbox = NULL;
    int status = WM_ENOMEM;

    test_fail_allocation(0);
    assert_int_equal(wm_region_inbox_new(&inbox, &err), WM_ENOMEM);
    assert_null(inbox);
    test_fail_allocation(-1);
    wm_region_begin("a");
    wm_region_begin("b");
    usleep(2000);
    long nth = 0;
    for (; status == WM_ENOMEM && nth < 50; nth++) {
        test_fail_allocation(nth);
        status = wm_region_inbox_drain(log->inbox, true, INT64_MAX, take, log, &complete_ns,
                                       &err);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || err.status == WM_ENOMEM);
    }
    assert_true(nth > 3);
    assert_int_equal(status, WM_OK);
    expect(log, "0(a 0(b 0!");
}

static void *begin_without_memory(void *context)
{
    test_fail_allocation(0);
    wm_region_begin("a");
    wm_region_end();
    test_fail_allocation(-1);
    wm_region_begin(context);
    wm_region_end();
    return NULL;
}

static void test_thread_without_memory(void **state)
{
    run_thread(begin_without_memory, "b");
    expect(*state, "0(b 0) 0!");
}

static void set_age(const char *folder, int64_t age_s)
{
    const time_t then = (time_t)(wm_clock_unix_ns() / WM_NS_PER_S - age_s);
    const struct timespec times[2] = { { .tv_sec = then }, { .tv_sec = then } };

    assert_int_equal(utimensat(AT_FDCWD, folder, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* When the next tracker is ready. */
enum remains { LEFT, REMOVED, REMOVED_EARLY };

static enum remains what_remains(const char *folder)
{
    struct wm_region_inbox *inbox;

    assert_int_equal(wm_region_inbox_new(&inbox, NULL), WM_OK);
    bool was_there = access(folder, F_OK) == 0;
    assert_int_equal(wm_region_inbox_open(inbox, NULL), WM_OK);
    bool is_there = access(folder, F_OK) == 0;
    wm_region_inbox_free(inbox);
    return is_there ? LEFT : was_there ? REMOVED : REMOVED_EARLY;
}

static void test_stale_folders(void **state)
{
    static const struct {
        const char *name;
        int64_t age_s;
        bool has_control, has_tracker, is_left;
    } cases[] = {
        { "dead", 2 * 60, true, false, false },
        { "dead before it had a control", 2 * 60, false, false, false },
        { "dead, just now", 0, true, false, true },
        { "just made", 0, false, false, true },
        { "of a time to come", -1000, true, false, true },
        { "old", 1000000000, true, true, true },
    };

    (void)state;
    for (size_t i = 0, tries = 0; i < ARRAY_LEN(cases); i++) {
        char folder[64], control[80];
        int fd = -1;
        snprintf(folder, sizeof(folder), "/dev/shm/wattmeter-%u-XXXXXX", geteuid());
        assert_non_null(mkdtemp(folder));
        snprintf(control, sizeof(control), "%s/control", folder);
        if (cases[i].has_control) {
            fd = open(control, O_RDWR | O_CREAT, 0600);
            assert_true(fd >= 0);
        }
        if (cases[i].has_tracker)
            assert_int_equal(flock(fd, LOCK_EX), 0);
        set_age(folder, cases[i].age_s);
        enum remains remains = what_remains(folder);
        unlink(control);
        rmdir(folder);
        if (fd >= 0)
            close(fd);
        /* A tracker of another test may have been faster. */
        if (remains == REMOVED_EARLY && !cases[i].is_left && tries++ < 20)
            i--;
        else if (remains != (cases[i].is_left ? LEFT : REMOVED))
            fail_msg("%s", cases[i].name);
    }
}

/* The links of processes that were killed while they measured themselves. */
static void test_stale_links(void **state)
{
    static const struct {
        const char *name, *target;
        int64_t age_s;
        bool is_left;
    } cases[] = {
        { "dead", "/nonexistent", 2 * 60, false },
        { "dead, just now", "/nonexistent", 0, true },
        { "of a tracker that lives", "/", 2 * 60, true },
    };
    struct wm_region_inbox *inbox;
    struct stat info;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char link[64];
        snprintf(link, sizeof(link), "/dev/shm/wattmeter-%u-of-0", geteuid());
        unlink(link);
        assert_int_equal(symlink(cases[i].target, link), 0);
        set_age(link, cases[i].age_s);
        assert_int_equal(wm_region_inbox_new(&inbox, NULL), WM_OK);
        assert_int_equal(wm_region_inbox_open(inbox, NULL), WM_OK);
        wm_region_inbox_free(inbox);
        if ((lstat(link, &info) == 0) != cases[i].is_left)
            fail_msg("%s", cases[i].name);
        unlink(link);
    }
}

/* What a tracker that is to be killed says of itself. */
struct doomed {
    char folder[WM_FOLDER_SIZE];
    pid_t child;
};

/* Is killed while a child of its own goes on. */
static void be_killed(void *context)
{
    int to = *(const int *)context;
    struct doomed doomed = { .child = 0 };
    struct wm_region_inbox *inbox;

    if (wm_region_inbox_new(&inbox, NULL) < 0 || wm_region_inbox_open(inbox, NULL) < 0)
        _exit(1);
    snprintf(doomed.folder, sizeof(doomed.folder), "%s", wm_region_inbox_path(inbox));
    doomed.child = fork();
    if (doomed.child == 0) {
        pause();
        _exit(0);
    }
    if (write(to, &doomed, sizeof(doomed)) != (ssize_t)sizeof(doomed))
        _exit(1);
    kill(getpid(), SIGKILL);
}

/* The next tracker removes it all, whoever else lives; and a program that writes there
 * still does not wait for room that nobody makes. */
static void test_killed_tracker(void **state)
{
    struct log *log = *state;
    struct doomed doomed;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    join(run_child(be_killed, &ends[1]));
    assert_int_equal(read(ends[0], &doomed, sizeof(doomed)), sizeof(doomed));
    assert_int_equal(wm_region_listen(doomed.folder, NULL), WM_OK);
    wm_region_begin("outer");
    set_age(doomed.folder, 2 * 60);
    assert_true(what_remains(doomed.folder) != LEFT);
    long before = count_naps();
    mark_unfolded(2 * WM_RING_SIZE_MAX);
    assert_true(count_naps() - before < 10);
    assert_int_equal(wm_region_listen(wm_region_inbox_path(log->inbox), NULL), WM_OK);
    assert_int_equal(kill(doomed.child, SIGKILL), 0);
    close(ends[0]);
    close(ends[1]);
}

UNIT(region_inbox)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_inbox, free_inbox)
    const struct CMUnitTest tests[] = {
        TEST(test_names),
        TEST(test_many_names),
        TEST(test_deadline),
        TEST(test_strays),
        TEST(test_ends_of_others),
        TEST(test_ends_in_loops),
        TEST(test_nested_starts),
        TEST(test_errno),
        TEST(test_threads),
        TEST(test_ends_of_processes),
        TEST(test_fork),
        TEST(test_bare_clone),
        TEST(test_removed_names),
        TEST(test_removed_names_of_dead),
        TEST(test_closed_descriptors),
        TEST(test_idle),
        TEST(test_full),
        TEST(test_full_with_signals),
        TEST(test_late_start),
        TEST(test_subfolders),
        TEST(test_dead_tracker),
        TEST(test_progress),
        TEST(test_take_again),
        TEST(test_no_descriptors),
        TEST(test_no_descriptors_at_end),
        TEST(test_size),
        TEST(test_clocks),
        TEST(test_folded),
        TEST(test_loop_without_tracker),
        TEST(test_killed_in_loop),
        TEST(test_end_in_loop),
        TEST(test_settled_after_look),
        TEST(test_bursts),
        TEST(test_slow_after_fast),
        TEST(test_clocks_of_copied_names),
        TEST(test_short_calls),
        TEST(test_listen),
        TEST(test_environment),
        TEST(test_closed),
        cmocka_unit_test(test_bad_rings),
        cmocka_unit_test(test_names_of_many_rings),
        cmocka_unit_test(test_cut_short),
        TEST(test_damaged_control),
        TEST(test_damaged_ring_is_left),
        cmocka_unit_test(test_limits),
        TEST(test_other_root),
        TEST(test_stuck),
        TEST(test_strange_files),
        TEST(test_out_of_memory),
        TEST(test_thread_without_memory),
        cmocka_unit_test(test_stale_folders),
        cmocka_unit_test(test_stale_links),
        TEST(test_killed_tracker),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
