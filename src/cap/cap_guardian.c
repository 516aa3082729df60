/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_guardian.c - the process that makes a session's changes and puts back what was there:
 * when it is asked to, or when the session's process is gone. It has a session (setsid) of
 * its own, so that neither a signal to a process group nor a closed terminal reaches it,
 * and blocks all signals but SIGKILL: whoever wants to end it ends the session's process.
 */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "cap/cap_change.h"
#include "cap/cap_message.h"
#include "wattmeter/version.h"

/* How long the first attempt waits for drivers: until a call that hangs has been left to
 * its thread and the other devices, asked in another, have answered. What was set has to be
 * back within a second on these. Later attempts do not wait for a call that hangs already.
 */
#define FIRST_PATIENCE_NS (WM_GUARD_HANG_NS + 50 * WM_NS_PER_MS)

/* What a device that answers takes at most, where others have used the time up. */
#define LEAST_PATIENCE_NS (60 * WM_NS_PER_MS)

/* How long a device that hangs is waited for when nobody waits for the guardian. */
enum { LAST_PATIENCE_S = 60 };

/* One setting that the session has changed, or tried to. */
struct held {
    struct wm_cap_entry entry; /* identity "": not changed */
    int lock;                  /* -1: not held by this setting */
};

struct guardian {
    struct wm_caps *caps;
    struct held *held; /* of each setting */
    size_t count;
    pid_t owner;
    int parent; /* pidfd of the owner, or -1 */
    const char *command;
};

/* Power and clocks of a GPU have one lock. */
static bool is_lock_held(const struct guardian *guardian, const char *identity)
{
    struct wm_cap_setting setting;

    for (size_t i = 0; i < guardian->count; i++) {
        wm_caps_get(guardian->caps, i, &setting);
        if (guardian->held[i].lock >= 0 && strcmp(setting.identity, identity) == 0)
            return true;
    }
    return false;
}

static int hold(struct guardian *guardian, size_t index, struct wm_error *err)
{
    struct wm_cap_setting setting;

    wm_caps_get(guardian->caps, index, &setting);
    if (is_lock_held(guardian, setting.identity))
        return WM_OK;
    return wm_cap_lock(setting.identity, setting.device, guardian->owner, guardian->command,
                       &guardian->held[index].lock, err);
}

static void let_go(struct held *held)
{
    if (held->lock >= 0)
        close(held->lock);
    held->lock = -1;
    held->entry = (struct wm_cap_entry) { 0 };
}

static int set(struct guardian *guardian, const struct wm_cap_message *asked,
               struct wm_error *err)
{
    size_t index = wm_caps_find(guardian->caps, asked->kind, asked->identity);

    if (index == guardian->count)
        return wm_fail(err, WM_ENODEV, "%s is not here any more", asked->identity);
    struct held *held = &guardian->held[index];
    bool is_first = !held->entry.identity[0];
    if (is_first) {
        held->entry.is_session = true;
        held->entry.owner = guardian->owner;
        snprintf(held->entry.command, sizeof(held->entry.command), "%s", guardian->command);
    }
    int status = hold(guardian, index, err);
    if (status == WM_OK)
        status = wm_cap_change(guardian->caps, index, asked->value, &held->entry, err);
    if (is_first && !held->entry.identity[0])
        let_go(held);
    return status;
}

struct take_over {
    struct guardian *guardian;
    int status; /* of the last entry whose lock could not be taken */
    struct wm_error *err;
};

static void take_over_entry(void *context, const struct wm_cap_entry *entry)
{
    struct take_over *take_over = context;
    struct guardian *guardian = take_over->guardian;
    size_t index = wm_caps_find(guardian->caps, entry->kind, entry->identity);

    if (!entry->is_session || entry->owner != guardian->owner || index == guardian->count)
        return;
    int status = hold(guardian, index, take_over->err);
    if (status == WM_OK)
        guardian->held[index].entry = *entry;
    else
        take_over->status = status;
}

static int take_over(struct guardian *guardian, struct wm_error *err)
{
    struct take_over take_over = { .guardian = guardian, .err = err };

    wm_cap_journal_each(take_over_entry, &take_over);
    return take_over.status;
}

static int64_t later(int64_t one_ns, int64_t other_ns)
{
    return one_ns > other_ns ? one_ns : other_ns;
}

/* Puts back what can be read by then. A failure that may pass is the one that is returned,
 * else the first. `changed` says what somebody else has changed, which is left alone. */
static int put_back_until(struct guardian *guardian, int64_t deadline_ns,
                          struct wm_error *changed, struct wm_error *err)
{
    int result = wm_caps_refresh_until(guardian->caps, deadline_ns, err);

    for (size_t i = 0; i < guardian->count; i++) {
        struct held *held = &guardian->held[i];
        enum wm_cap_restored restored = WM_CAP_NOTHING;
        struct wm_error why;

        if (!held->entry.identity[0])
            continue;
        int64_t until_ns = later(deadline_ns, wm_clock_monotonic_ns() + LEAST_PATIENCE_NS);
        int status =
            wm_cap_put_back(guardian->caps, &held->entry, until_ns, &restored, &why);
        if (status == WM_OK)
            held->entry.identity[0] = '\0';
        else if (result == WM_OK || status == WM_EIO)
            result = wm_fail(err, status, "%s", why.text);
        if (restored == WM_CAP_BY_ANOTHER)
            wm_fail(changed, WM_ECANCELED,
                    "%s: somebody else has changed it meanwhile; it is left alone",
                    held->entry.device);
    }
    return result;
}

static int64_t in_seconds(int seconds)
{
    return wm_clock_monotonic_ns() + seconds * WM_NS_PER_S;
}

/* What fails at first, as a device hangs, is tried again until `deadline_ns`. */
static int put_back(struct guardian *guardian, int64_t deadline_ns, struct wm_error *err)
{
    const struct timespec pause = { 0, 100 * WM_NS_PER_MS };
    int64_t first_ns = wm_clock_monotonic_ns() + FIRST_PATIENCE_NS;
    struct wm_error changed = { 0 };
    int status = put_back_until(guardian, first_ns, &changed, err);

    while (status == WM_EIO && wm_clock_monotonic_ns() < deadline_ns) {
        nanosleep(&pause, NULL);
        status = put_back_until(guardian, in_seconds(WM_GPU_PATIENCE_S), &changed, err);
    }
    for (size_t i = 0; i < guardian->count; i++)
        let_go(&guardian->held[i]);
    return status == WM_OK && changed.status < 0
               ? wm_fail(err, changed.status, "%s", changed.text)
               : status;
}

static void tell(struct wm_cap_message *message)
{
    send(WM_CAP_SOCKET, message, sizeof(*message), MSG_NOSIGNAL);
}

static int answer(struct guardian *guardian, struct wm_cap_message *message)
{
    struct wm_error *err = &message->err;

    switch (message->question) {
    case WM_CAP_SET:
        return set(guardian, message, err);
    case WM_CAP_TAKE_OVER:
        return take_over(guardian, err);
    case WM_CAP_END:
        return put_back(guardian, in_seconds(WM_GPU_PATIENCE_S), err);
    default:
        return wm_fail(err, WM_EINVAL, "no question for a guardian");
    }
}

/* Whether the session's process is there and has not ended the session. */
static bool serve(struct guardian *guardian)
{
    struct pollfd fds[] = { { .fd = WM_CAP_SOCKET, .events = POLLIN },
                            { .fd = guardian->parent, .events = POLLIN } };
    struct wm_cap_message message;

    if (poll(fds, 2, -1) < 0)
        return true;
    /* Some process that was forked from it may still have the other end of the socket. */
    if (fds[1].revents & POLLIN)
        return false;
    if (recv(WM_CAP_SOCKET, &message, sizeof(message), MSG_DONTWAIT) != sizeof(message))
        return !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL | POLLIN));
    memset(&message.err, 0, sizeof(message.err));
    message.identity[sizeof(message.identity) - 1] = '\0';
    message.status = answer(guardian, &message);
    tell(&message);
    return message.question != WM_CAP_END;
}

static int open_guardian(struct guardian *guardian, char *const argv[],
                         struct wm_error *err)
{
    const struct wm_source_config config = { .sysfs = argv[3],
                                             .nvml = argv[4][0] ? argv[4] : NULL };

    guardian->command = argv[5];
    int status = wm_caps_open(&config, &guardian->caps, err);
    if (status < 0)
        return status;
    guardian->count = wm_caps_count(guardian->caps);
    guardian->held = calloc(guardian->count + 1, sizeof(*guardian->held));
    if (!guardian->held)
        return wm_fail_memory(err, "caps");
    for (size_t i = 0; i < guardian->count; i++)
        guardian->held[i].lock = -1;
    return WM_OK;
}

static bool is_called_right(int argc, char *const argv[])
{
    return argc == 7 && strcmp(argv[1], WM_CAP_GUARDIAN) == 0 &&
           strcmp(argv[2], WM_VERSION) == 0;
}

/* What the session's program leaves open for all that it starts. Older kernels than 5.9
 * have no such call. */
static void close_rest(void)
{
    if (syscall(__NR_close_range, WM_CAP_PARENT + 1, ~0U, 0) == 0)
        return;
    for (int fd = WM_CAP_PARENT + 1; fd < 4096; fd++)
        close(fd);
}

/* The first process is waited for by the session's: only its child is the guardian. */
static bool is_first_process(struct wm_cap_message *ready)
{
    pid_t pid = fork();

    if (pid < 0) {
        ready->status = wm_fail_errno(&ready->err, "starting the guardian of the caps");
        tell(ready);
    }
    return pid != 0;
}

int wm_cap_guardian(int argc, char *const argv[])
{
    struct guardian guardian = { 0 };
    struct wm_cap_message ready = { .question = WM_CAP_READY };
    sigset_t all;

    if (!is_called_right(argc, argv))
        return 2;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    close_rest();
    if (is_first_process(&ready))
        return 0;
    prctl(PR_SET_NAME, "wattmeter-guard");
    guardian.owner = (pid_t)strtol(argv[6], NULL, 10);
    guardian.parent = fcntl(WM_CAP_PARENT, F_GETFD) >= 0 ? WM_CAP_PARENT : -1;
    ready.status = open_guardian(&guardian, argv, &ready.err);
    tell(&ready);
    if (ready.status == WM_OK) {
        while (serve(&guardian))
            ;
        put_back(&guardian, in_seconds(LAST_PATIENCE_S), NULL);
    }
    free(guardian.held);
    wm_caps_close(guardian.caps);
    return 0;
}
