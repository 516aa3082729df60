/* SPDX-License-Identifier: Apache-2.0 */
/* test_track_events.c - hardware events on machines with and without counters for them. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "analyze/analyze_figures.h"
#include "track/account/track_events.h"

/* What the machine does: refuses, or counts. */
static struct machine {
    int all, kernel; /* errno values, of any counter, or of one that counts the kernel */
    uint64_t count, enabled, running;
} machine;

static int fake_open(const struct perf_event_attr *attr, pid_t pid)
{
    assert_int_equal(pid, 4711);
    assert_true(attr->inherit && attr->enable_on_exec && attr->disabled);
    errno = machine.all ? machine.all : attr->exclude_kernel ? 0 : machine.kernel;
    return errno ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static ssize_t fake_read(int fd, void *buffer, size_t size)
{
    const uint64_t read[] = { machine.count, machine.enabled, machine.running };

    assert_true(fd >= 0 && size == sizeof(read));
    memcpy(buffer, read, size);
    return (ssize_t)size;
}

static const struct wm_events_calls calls = { fake_open, fake_read };

#define VIRTUAL "not counted by this machine, as by most virtual ones"

static void test_machines(void **state)
{
    static const struct {
        const char *what, *list;
        struct machine machine;
        bool is_known;
        double count;
        const char *note;
    } cases[] = {
        { "all counted", "cycles,cpu-migrations", { 0, 0, 1234, 10, 10 }, true, 1234, "" },
        { "never ran", "cycles", { 0, 0, 0, 0, 0 }, true, 0, "" },
        { "no PMU", "cycles", { ENOENT, 0, 0, 0, 0 }, false, 0, "cycles: " VIRTUAL },
        { "no PMU, several",
          "instructions,cycles",
          { EOPNOTSUPP, 0, 0, 0, 0 },
          false,
          0,
          "cycles, instructions: " VIRTUAL },
        { "user space alone",
          "cycles",
          { 0, EACCES, 7, 10, 10 },
          true,
          7,
          "cycles: of user space alone" },
        { "not permitted at all",
          "cycles",
          { EPERM, 0, 7, 10, 10 },
          false,
          0,
          "cycles: perf is not permitted; sysctl kernel.perf_event_paranoid=1 permits it" },
        { "an event of the kernel has nothing in user space",
          "cycles,cpu-migrations",
          { 0, EACCES, 7, 10, 10 },
          true,
          7,
          "cpu-migrations: perf is not permitted; sysctl kernel.perf_event_paranoid=1 "
          "permits it; cycles: of user space alone" },
        { "taking turns",
          "cycles,branches",
          { 0, 0, 100, 30, 10 },
          true,
          300,
          "cycles, branches: scaled up from 33 % of the time or more" },
        { "never its turn",
          "cycles",
          { 0, 0, 0, 30, 0 },
          false,
          0,
          "cycles: no counter of the CPU was free" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_result result = { 0 };
        struct wm_events events;
        uint32_t wanted;

        print_message("  %s\n", cases[i].what);
        machine = cases[i].machine;
        assert_int_equal(wm_events_parse(cases[i].list, &wanted, NULL), WM_OK);
        wm_events_open(&events, wanted, 4711, &calls);
        wm_events_take(&events, &calls, &result);
        assert_int_equal(result.events[WM_EVENT_CYCLES].known, cases[i].is_known);
        assert_true(result.events[WM_EVENT_CYCLES].number == cases[i].count);
        assert_false(result.events[WM_EVENT_LLC_LOADS].known);
        assert_string_equal(result.events_note, cases[i].note);
        assert_int_equal(events.wanted, 0);
    }
}

static void test_names(void **state)
{
    static const char *const bad[] = {
        "", "cycle", "cycles,", ",cycles", "cycles instructions", "CYCLES"
    };
    uint32_t wanted = 7;
    struct wm_error err;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(wm_events_parse(bad[i], &wanted, &err), WM_EINVAL);
        assert_non_null(strstr(err.text, "is no event: cycles, "));
        assert_non_null(strstr(err.text, "cpu-migrations"));
        assert_int_equal(wanted, 7);
    }
    assert_int_equal(wm_events_parse(NULL, &wanted, &err), WM_OK);
    assert_int_equal(wanted, 0);
    for (size_t i = 0; i < WM_EVENTS; i++) {
        assert_int_equal(wm_events_parse(wm_event_name(i), &wanted, &err), WM_OK);
        assert_int_equal(wanted, UINT32_C(1) << i);
        assert_non_null(wm_figure_find(wm_event_name(i)));
    }
}

UNIT(track_events)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
