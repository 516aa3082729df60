/* SPDX-License-Identifier: Apache-2.0 */
/* track_events.c - a counter for each event, which every process and thread made later
 * inherits. */
#include "track/account/track_events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base_text.h"

#define CACHE(cache, result)                                                               \
    PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##cache | (PERF_COUNT_HW_CACHE_OP_READ << 8) | \
                            (PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct {
    uint32_t type;
    uint64_t config;
} kinds[] = {
    [WM_EVENT_CYCLES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
    [WM_EVENT_REF_CYCLES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
    [WM_EVENT_INSTRUCTIONS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
    [WM_EVENT_BRANCHES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
    [WM_EVENT_BRANCH_MISSES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
    [WM_EVENT_CACHE_REFERENCES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
    [WM_EVENT_CACHE_MISSES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
    [WM_EVENT_L1_LOADS] = { CACHE(L1D, ACCESS) },
    [WM_EVENT_L1_LOAD_MISSES] = { CACHE(L1D, MISS) },
    [WM_EVENT_LLC_LOADS] = { CACHE(LL, ACCESS) },
    [WM_EVENT_LLC_LOAD_MISSES] = { CACHE(LL, MISS) },
    [WM_EVENT_DTLB_LOAD_MISSES] = { CACHE(DTLB, MISS) },
    [WM_EVENT_CPU_MIGRATIONS] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
};

static int kernel_open(const struct perf_event_attr *attr, pid_t pid)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

const struct wm_events_calls wm_events_kernel = { kernel_open, read };

static int fail_name(const char *name, size_t length, struct wm_error *err)
{
    char list[300] = "";

    for (size_t i = 0; i < WM_EVENTS; i++)
        wm_text_list(list, sizeof(list), ", ", "%s", wm_event_name(i));
    return wm_fail(err, WM_EINVAL, "events: '%.*s' is no event: %s", (int)length, name,
                   list);
}

int wm_events_parse(const char *list, uint32_t *ret_wanted, struct wm_error *err)
{
    uint32_t wanted = 0;

    for (const char *name = list; name;) {
        size_t length = strcspn(name, ","), i = 0;
        while (i < WM_EVENTS && (strncmp(wm_event_name(i), name, length) != 0 ||
                                 wm_event_name(i)[length] != '\0'))
            i++;
        if (i == WM_EVENTS)
            return fail_name(name, length, err);
        wanted |= UINT32_C(1) << i;
        name = name[length] ? name + length + 1 : NULL;
    }
    *ret_wanted = wanted;
    return WM_OK;
}

static bool is_among(uint32_t events, size_t event)
{
    return events & (UINT32_C(1) << event);
}

static bool is_refused(int fd)
{
    return fd == -EACCES || fd == -EPERM;
}

static int open_one(size_t event, pid_t pid, bool users_only,
                    const struct wm_events_calls *calls)
{
    const struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = kinds[event].type,
        .config = kinds[event].config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .exclude_kernel = users_only,
        .exclude_hv = users_only,
    };
    int fd = calls->open(&attr, pid);

    return fd < 0 ? -errno : fd;
}

/* Where perf may not count the kernel, user space is worth something; but of events of the
 * kernel itself nothing would be left. */
void wm_events_open(struct wm_events *events, uint32_t wanted, pid_t pid,
                    const struct wm_events_calls *calls)
{
    *events = (struct wm_events) { .wanted = wanted };
    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (!is_among(wanted, i))
            continue;
        events->fds[i] = open_one(i, pid, false, calls);
        if (!is_refused(events->fds[i]) || kinds[i].type == PERF_TYPE_SOFTWARE)
            continue;
        int fd = open_one(i, pid, true, calls);
        if (fd < 0)
            continue;
        events->fds[i] = fd;
        events->users_only |= UINT32_C(1) << i;
    }
}

/* Of events that share the counters of a core, each is counted for a part of the time. */
static int read_one(int fd, const struct wm_events_calls *calls, struct wm_known *ret_count,
                    double *ret_part)
{
    struct {
        uint64_t count, enabled, running;
    } read = { 0 };

    if (fd < 0)
        return -fd;
    if (calls->read(fd, &read, sizeof(read)) != sizeof(read))
        return EIO;
    if (read.running == 0 && read.enabled > 0)
        return EBUSY;
    *ret_part =
        read.running < read.enabled ? (double)read.running / (double)read.enabled : 1;
    *ret_count =
        (struct wm_known) { true, (double)(uint64_t)((double)read.count / *ret_part) };
    return 0;
}

static const char *why_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return "not counted by this machine, as by most virtual ones";
    case EBUSY:
        return "no counter of the CPU was free";
    case EACCES:
    case EPERM:
        return "perf is not permitted; sysctl kernel.perf_event_paranoid=1 permits it";
    default:
        return wm_errno_text(number);
    }
}

/* Adds the names of those events to a text, then `why`. */
static void add_note(char *note, size_t size, uint32_t events, const char *why)
{
    char names[200] = "";

    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (is_among(events, i))
            wm_text_list(names, sizeof(names), ", ", "%s", wm_event_name(i));
    }
    if (events)
        wm_text_list(note, size, "; ", "%s: %s", names, why);
}

/* Those that failed in the same way as `first`. */
static uint32_t alike(const int *numbers, size_t first)
{
    uint32_t events = 0;

    for (size_t i = 0; i < WM_EVENTS; i++) {
        bool is_alike = numbers[i] && why_of(numbers[i]) == why_of(numbers[first]);
        if (is_alike && i < first)
            return 0;
        events |= is_alike ? UINT32_C(1) << i : 0;
    }
    return events;
}

void wm_events_take(struct wm_events *events, const struct wm_events_calls *calls,
                    struct wm_result *result)
{
    char *note = result->events_note;
    size_t size = sizeof(result->events_note);
    int numbers[WM_EVENTS] = { 0 };
    uint32_t scaled = 0;
    double part = 1, least = 1;

    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (!is_among(events->wanted, i))
            continue;
        numbers[i] = read_one(events->fds[i], calls, &result->events[i], &part);
        if (numbers[i] || part >= 1)
            continue;
        scaled |= UINT32_C(1) << i;
        least = part < least ? part : least;
    }
    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (numbers[i])
            add_note(note, size, alike(numbers, i), why_of(numbers[i]));
    }
    char why[64];
    snprintf(why, sizeof(why), "scaled up from %.0f %% of the time or more", 100 * least);
    add_note(note, size, scaled, why);
    add_note(note, size, events->users_only, "of user space alone");
    wm_events_close(events);
}

void wm_events_close(struct wm_events *events)
{
    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (is_among(events->wanted, i) && events->fds[i] >= 0)
            close(events->fds[i]);
    }
    *events = (struct wm_events) { 0 };
}
