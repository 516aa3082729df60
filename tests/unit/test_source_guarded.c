/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_guarded.c - a made-up backend of two GPUs whose driver hangs as the
 * test says. */
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/source_guarded.h"

enum { GPUS = 2, METRICS = 2, CHANNELS = GPUS * METRICS, LIST = 40 };

#define LONG_NS (20 * WM_NS_PER_S)

/* The driver, which outlives what asks it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs[GPUS];
    int calls[GPUS];
    bool must[GPUS]; /* of the last call */
    bool opens_slowly;
    int open_status;
    int opened, closed;
    size_t processes; /* of GPU 1 */
    bool is_same;     /* they are those of the last reading */
    bool denied;      /* metric 1 of GPU 0 */
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

struct fake {
    char id[16]; /* copied from the configuration */
    struct wm_channel channels[CHANNELS];
    struct wm_gpu_process list[LIST];
    const char *why; /* of channel 1 */
};

static int fake_open(void *state, const struct wm_source_config *config,
                     struct wm_source_found *ret_found, struct wm_error *err)
{
    static const char *const ids[] = { "GPU-0", "GPU-1" };
    struct fake *fake = state;

    pthread_mutex_lock(&driver.lock);
    while (driver.opens_slowly)
        pthread_cond_wait(&driver.changed, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
    driver.opened++;
    assert_true(strlen(config->gpus) < sizeof(fake->id));
    memcpy(fake->id, config->gpus, strlen(config->gpus) + 1);
    if (driver.open_status < 0)
        return wm_fail(err, driver.open_status, "no such luck");
    for (size_t i = 0; i < CHANNELS; i++)
        fake->channels[i] = (struct wm_channel) {
            .device = ids[i / METRICS],
            .device_kind = WM_DEVICE_GPU,
        };
    *ret_found = (struct wm_source_found) { .channels = fake->channels,
                                            .channel_count = CHANNELS,
                                            .part_count = GPUS };
    return WM_OK;
}

/* A value tells its call: 100 * GPU + number of the call. */
static void fake_read_part(void *state, size_t part, bool must, struct wm_reading *readings)
{
    struct fake *fake = state;
    int64_t when_ns = wm_clock_monotonic_ns();

    pthread_mutex_lock(&driver.lock);
    driver.must[part] = must;
    int number = ++driver.calls[part];
    pthread_cond_broadcast(&driver.changed);
    while (driver.hangs[part])
        pthread_cond_wait(&driver.changed, &driver.lock);
    bool denied = driver.denied && part == 0;
    pthread_mutex_unlock(&driver.lock);

    double value = 100.0 * (double)part + number;
    readings[0] = (struct wm_reading) { when_ns, value, WM_READING_OK };
    readings[1] = readings[0];
    if (part == 0) {
        readings[1].state = denied ? WM_READING_DENIED : WM_READING_OK;
        fake->why = denied ? "not for you" : NULL;
        return;
    }
    for (size_t i = 0; i < LIST; i++)
        fake->list[i] = (struct wm_gpu_process) {
            .device = fake->channels[METRICS].device,
            .pid = 1000 + (pid_t)i,
            .memory_bytes = value,
            .state = WM_READING_OK,
        };
}

static const char *fake_why(const void *state, size_t channel)
{
    const struct fake *fake = state;

    return channel == 1 ? fake->why : NULL;
}

static size_t fake_gpu_processes(const void *state, size_t part, unsigned *version,
                                 struct wm_gpu_process *processes, size_t room)
{
    const struct fake *fake = state;
    size_t count = part == 1 ? driver.processes : 0;

    if (driver.is_same && *version != 0)
        return count;
    (*version)++;
    for (size_t i = 0; i < count && i < room; i++)
        processes[i] = fake->list[i];
    return count;
}

static void fake_close(void *state)
{
    (void)state;
    pthread_mutex_lock(&driver.lock);
    driver.closed++;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.lock);
}

static const struct wm_source_ops ops = {
    .name = "fake",
    .state_size = sizeof(struct fake),
    .open = fake_open,
    .read_part = fake_read_part,
    .why = fake_why,
    .gpu_processes = fake_gpu_processes,
    .close = fake_close,
};

static int reset(void **state)
{
    (void)state;
    memset(driver.hangs, 0, sizeof(driver.hangs));
    memset(driver.calls, 0, sizeof(driver.calls));
    driver.open_status = WM_OK;
    driver.opened = driver.closed = 0;
    driver.processes = 3;
    driver.denied = false;
    return 0;
}

static int begin_open(struct wm_guarded **ret_guarded, struct wm_error *err)
{
    char gpus[] = "all";
    const struct wm_source_config config = { .procfs = "/proc", .gpus = gpus };

    int status = wm_guarded_open(&ops, &config, NULL, ret_guarded, err);
    memset(gpus, 'x', sizeof(gpus) - 1);
    return status;
}

static int try_open(struct wm_guarded **ret_guarded, struct wm_error *err)
{
    struct wm_guarded *guarded;

    int status = begin_open(&guarded, err);
    if (status < 0)
        return status;
    status = wm_guarded_opened(guarded, wm_clock_monotonic_ns() + LONG_NS, err);
    if (status < 0)
        wm_guarded_close(guarded);
    else
        *ret_guarded = guarded;
    return status;
}

static struct wm_guarded *open_fake(void)
{
    struct wm_guarded *guarded = NULL;
    struct wm_error err;

    if (try_open(&guarded, &err) < 0)
        fail_msg("%s", err.text);
    return guarded;
}

static void hang(size_t gpu, bool hangs)
{
    pthread_mutex_lock(&driver.lock);
    driver.hangs[gpu] = hangs;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.lock);
}

static void wait_for_call(size_t gpu, int calls)
{
    pthread_mutex_lock(&driver.lock);
    while (driver.calls[gpu] < calls)
        pthread_cond_wait(&driver.changed, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
}

static void wait_for_close(void)
{
    pthread_mutex_lock(&driver.lock);
    while (driver.closed == 0)
        pthread_cond_wait(&driver.changed, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
}

static void sleep_ns(int64_t ns)
{
    const struct timespec time = { ns / WM_NS_PER_S, ns % WM_NS_PER_S };

    nanosleep(&time, NULL);
}

/* Collects, and checks what each GPU shows: the number of a call, or 0 for stale. */
static void collect(struct wm_guarded *guarded, int64_t patience_ns, int64_t oldest_ns,
                    int first, int second, struct wm_reading *readings)
{
    const int calls[GPUS] = { first, second };
    int64_t now_ns = wm_clock_monotonic_ns();

    wm_guarded_collect(guarded, now_ns + patience_ns, oldest_ns, readings);
    for (size_t i = 0; i < CHANNELS; i++) {
        size_t gpu = i / METRICS;
        bool is_stale = readings[i].state == WM_READING_STALE;

        assert_int_equal(is_stale, calls[gpu] == 0);
        assert_true(readings[i].when_ns > 0);
        assert_true(readings[i].when_ns <= wm_clock_monotonic_ns());
        if (is_stale)
            assert_string_equal(wm_guarded_why(guarded, i), "the driver did not answer");
        else if (readings[i].state == WM_READING_OK)
            assert_null(wm_guarded_why(guarded, i));
        if (!is_stale)
            assert_int_equal((int)readings[i].value, 100 * (int)gpu + calls[gpu]);
    }
}

static void test_answers(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    const struct wm_gpu_process *processes;
    (void)state;

    assert_int_equal(wm_guarded_gpu_processes(guarded, &processes), 0);
    for (int i = 1; i <= 20; i++) {
        int64_t now_ns = wm_clock_monotonic_ns();
        driver.denied = i % 2;
        driver.processes = 2 * (size_t)i;
        wm_guarded_begin(guarded, i % 3 == 0);
        collect(guarded, LONG_NS, now_ns, i, i, readings);
        assert_true(driver.must[0] == (i % 3 == 0) && driver.must[1] == (i % 3 == 0));
        assert_true(readings[0].when_ns >= now_ns);
        assert_int_equal(readings[1].state, i % 2 ? WM_READING_DENIED : WM_READING_OK);
        if (i % 2)
            assert_string_equal(wm_guarded_why(guarded, 1), "not for you");
        assert_int_equal(wm_guarded_gpu_processes(guarded, &processes), 2 * i);
        assert_int_equal(processes[1].pid, 1001);
        assert_int_equal((int)processes[1].memory_bytes, 100 + i);
    }
    assert_true(wm_guarded_cpu_ns(guarded) > 0);
    wm_guarded_close(guarded);
    assert_int_equal(driver.closed, 1);
}

/* They are copied once, and told again after an entry in front of them has come and gone.
 */
static void test_same_processes(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    const struct wm_gpu_process *processes;
    (void)state;

    driver.processes = 3;
    driver.is_same = true;
    for (int i = 1; i <= 6; i++) {
        hang(0, i == 3);
        int64_t now_ns = wm_clock_monotonic_ns();
        wm_guarded_begin(guarded, true);
        wm_guarded_collect(guarded, now_ns + LONG_NS, now_ns, readings);
        size_t count = wm_guarded_gpu_processes(guarded, &processes);
        assert_true(i == 3 ? count == 4 : i > 3 || count == 3);
        assert_int_equal(processes[count - 1].pid, 1002);
        assert_int_equal((int)processes[count - 1].memory_bytes, 101);
    }
    driver.is_same = false;
    wm_guarded_close(guarded);
}

/* One entry without a pid for each GPU that is not known. */
static void check_processes(const struct wm_guarded *guarded, size_t unknown,
                            enum wm_reading_state unknown_state, size_t known)
{
    const struct wm_gpu_process *processes;
    size_t count = wm_guarded_gpu_processes(guarded, &processes);

    assert_int_equal(count, unknown + known);
    for (size_t i = 0; i < count; i++) {
        bool is_unknown = processes[i].pid == 0;
        unknown -= is_unknown;
        assert_int_equal(processes[i].state, is_unknown ? unknown_state : WM_READING_OK);
        if (is_unknown && unknown_state == WM_READING_STALE)
            assert_string_equal(processes[i].why, "the driver did not answer");
        else if (is_unknown)
            assert_non_null(strstr(processes[i].why, "no memory"));
    }
    assert_int_equal(unknown, 0);
}

static void test_hang(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    (void)state;

    /* Nothing yet. */
    hang(1, true);
    int64_t start_ns = wm_clock_monotonic_ns();
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, start_ns, 1, 0, readings);
    check_processes(guarded, 1, WM_READING_STALE, 0);
    int64_t stale_ns = readings[2].when_ns;

    /* What came late counts for who does not mind, with its own time. */
    hang(1, false);
    sleep_ns(20 * WM_NS_PER_MS);
    int64_t next_ns = wm_clock_monotonic_ns();
    hang(0, true);
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, start_ns, 1, 1, readings);
    assert_true(readings[2].when_ns >= stale_ns && readings[2].when_ns < next_ns);
    check_processes(guarded, 0, WM_READING_OK, 3);
    collect(guarded, 0, next_ns, 0, 0, readings);
    assert_true(readings[0].when_ns >= next_ns);
    check_processes(guarded, 2, WM_READING_STALE, 0);

    /* Given up: the other one goes on, and the gap began when it was asked. */
    int64_t asked_ns = readings[0].when_ns;
    sleep_ns(WM_GUARD_HANG_NS);
    for (int i = 2; i < 5; i++) {
        int64_t now_ns = wm_clock_monotonic_ns();
        wm_guarded_begin(guarded, true);
        collect(guarded, LONG_NS, now_ns, 0, i, readings);
        assert_int_equal(readings[0].when_ns, asked_ns);
        check_processes(guarded, 1, WM_READING_STALE, 3);
    }

    /* It is back. What it read while it hung is not told. */
    hang(0, false);
    sleep_ns(50 * WM_NS_PER_MS);
    hang(0, true);
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, start_ns, 1, 5, readings);
    assert_true(readings[0].when_ns < next_ns);
    hang(0, false);
    sleep_ns(50 * WM_NS_PER_MS);
    wm_guarded_begin(guarded, true);
    collect(guarded, LONG_NS, start_ns, 4, 6, readings);
    wm_guarded_close(guarded);
    assert_int_equal(driver.closed, 1);
}

/* Whoever reads but once is told of the others too. */
static void test_hang_in_one_reading(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    (void)state;

    hang(0, true);
    int64_t now_ns = wm_clock_monotonic_ns();
    wm_guarded_begin(guarded, true);
    collect(guarded, LONG_NS, now_ns, 0, 1, readings);
    assert_true(wm_clock_monotonic_ns() - now_ns < LONG_NS / 2);
    check_processes(guarded, 1, WM_READING_STALE, 3);
    hang(0, false);
    wm_guarded_close(guarded);
}

/* Who wants nothing old gets a round of its own after the one that goes on. */
static void test_round_after_a_slow_one(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    (void)state;

    hang(0, true);
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, 1, 0, 0, readings);
    hang(0, false);
    wait_for_call(1, 1);
    sleep_ns(20 * WM_NS_PER_MS);

    hang(1, true);
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, 1, 2, 1, readings);
    int64_t now_ns = wm_clock_monotonic_ns();
    wm_guarded_begin(guarded, true);
    hang(1, false);
    collect(guarded, LONG_NS, now_ns, 3, 3, readings);
    wm_guarded_close(guarded);
}

static void test_close_while_it_hangs(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    (void)state;

    hang(1, true);
    wm_guarded_begin(guarded, true);
    collect(guarded, 20 * WM_NS_PER_MS, 0, 1, 0, readings);
    int64_t now_ns = wm_clock_monotonic_ns();
    wm_guarded_close(guarded);
    assert_true(wm_clock_monotonic_ns() - now_ns < WM_NS_PER_S / 2);
    assert_int_equal(driver.closed, 0);
    hang(1, false);
    wait_for_close();
    sleep_ns(20 * WM_NS_PER_MS);
    assert_int_equal(driver.closed, 1);
}

static void test_open_fails(void **state)
{
    struct wm_guarded *guarded = NULL;
    struct wm_error err = { 0 };
    (void)state;

    driver.open_status = WM_EACCES;
    assert_int_equal(try_open(&guarded, &err), WM_EACCES);
    assert_int_equal(err.status, WM_EACCES);
    assert_string_equal(err.text, "no such luck");
    assert_int_equal(try_open(&guarded, NULL), WM_EACCES);
    assert_int_equal(driver.closed, 2);

    driver.open_status = WM_OK;
    test_fail_threads(true);
    assert_int_equal(try_open(&guarded, &err), WM_ENOMEM);
    test_fail_threads(false);
    assert_int_equal(driver.closed, 3);
    assert_int_equal(driver.opened, 2);
    assert_null(guarded);
    wm_guarded_close(NULL);
}

static void open_slowly(bool is_slow)
{
    pthread_mutex_lock(&driver.lock);
    driver.opens_slowly = is_slow;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.lock);
}

static void test_slow_open(void **state)
{
    struct wm_guarded *guarded = NULL;
    struct wm_reading readings[CHANNELS];
    (void)state;

    for (int closes_early = 0; closes_early < 2; closes_early++) {
        open_slowly(true);
        assert_int_equal(begin_open(&guarded, NULL), WM_OK);
        assert_int_equal(wm_guarded_opened(guarded, 0, NULL), 1);
        int64_t deadline_ns = wm_clock_monotonic_ns() + 20 * WM_NS_PER_MS;
        assert_int_equal(wm_guarded_opened(guarded, deadline_ns, NULL), 1);
        assert_true(wm_clock_monotonic_ns() >= deadline_ns);
        if (closes_early)
            wm_guarded_close(guarded);
        open_slowly(false);
        if (closes_early)
            continue;
        deadline_ns = wm_clock_monotonic_ns() + LONG_NS;
        assert_int_equal(wm_guarded_opened(guarded, deadline_ns, NULL), WM_OK);
        wm_guarded_begin(guarded, true);
        collect(guarded, LONG_NS, wm_clock_monotonic_ns() - LONG_NS, 1, 1, readings);
        wm_guarded_close(guarded);
        wait_for_close();
        driver.closed = 0;
    }
    wait_for_close();
}

static void test_no_thread(void **state)
{
    struct wm_guarded *guarded = open_fake();
    struct wm_reading readings[CHANNELS];
    (void)state;

    test_fail_threads(true);
    wm_guarded_begin(guarded, true);
    wm_guarded_collect(guarded, wm_clock_monotonic_ns() + LONG_NS, 0, readings);
    test_fail_threads(false);
    assert_int_equal(readings[0].state, WM_READING_STALE);
    assert_non_null(strstr(wm_guarded_why(guarded, 0), "thread"));
    int64_t now_ns = wm_clock_monotonic_ns();
    wm_guarded_begin(guarded, true);
    collect(guarded, LONG_NS, now_ns, 1, 1, readings);
    wm_guarded_close(guarded);
}

static void test_no_memory(void **state)
{
    struct wm_guarded *guarded = NULL;
    struct wm_reading readings[CHANNELS];
    struct wm_error err;
    int status;
    long nth = 0;
    (void)state;

    do {
        test_fail_allocation(nth++);
        status = try_open(&guarded, &err);
        test_fail_allocation(-1);
    } while (status == WM_ENOMEM);
    assert_int_equal(status, WM_OK);
    assert_true(nth > 10);

    /* Processes that there is no room for are not known, and are when there is. */
    for (int i = 1; i < 5; i++) {
        int64_t now_ns = wm_clock_monotonic_ns();
        test_fail_allocation(i < 3 ? 0 : -1);
        wm_guarded_begin(guarded, true);
        collect(guarded, LONG_NS, now_ns, i, i, readings);
        test_fail_allocation(-1);
        if (i < 3)
            check_processes(guarded, i < 3, WM_READING_FAILED, 0);
        else
            check_processes(guarded, 0, WM_READING_OK, 3);
    }

    /* From then on a reading needs none. */
    test_fail_allocation(0);
    wm_guarded_begin(guarded, true);
    collect(guarded, LONG_NS, wm_clock_monotonic_ns() - WM_NS_PER_S, 5, 5, readings);
    check_processes(guarded, 0, WM_READING_OK, 3);
    assert_int_equal(test_fail_allocation(-1), 0);

    /* One more than a list may have. */
    driver.processes = 65537;
    wm_guarded_begin(guarded, true);
    collect(guarded, LONG_NS, wm_clock_monotonic_ns() - WM_NS_PER_S, 6, 6, readings);
    check_processes(guarded, 1, WM_READING_FAILED, 0);
    wm_guarded_close(guarded);
}

UNIT(source_guarded)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_answers, reset),
        cmocka_unit_test_setup(test_same_processes, reset),
        cmocka_unit_test_setup(test_hang, reset),
        cmocka_unit_test_setup(test_hang_in_one_reading, reset),
        cmocka_unit_test_setup(test_round_after_a_slow_one, reset),
        cmocka_unit_test_setup(test_close_while_it_hangs, reset),
        cmocka_unit_test_setup(test_open_fails, reset),
        cmocka_unit_test_setup(test_slow_open, reset),
        cmocka_unit_test_setup(test_no_thread, reset),
        cmocka_unit_test_setup(test_no_memory, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
