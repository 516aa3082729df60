/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_session.c - the session's side: starts the guardian, asks it, and starts it again
 * where it was killed. The guardian is another program (wattmeter), since it opens drivers
 * and has a heap, which the child of a program with threads must not. It is spawned, which
 * runs no handlers of pthread_atfork() and copies no page tables, as a fork would.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_thread.h"
#include "cap/cap_change.h"
#include "cap/cap_message.h"
#include "wattmeter/version.h"

/* A change takes two refreshes and a call, each of which may take a driver's patience. */
#define ANSWER_NS (4 * WM_GPU_PATIENCE_S * WM_NS_PER_S)

/* In a row: whoever kills the guardian may do so while it starts. */
enum { STARTS_AGAIN = 5 };

struct wm_cap_session {
    struct wm_caps *caps; /* the caller's */
    char *program, *command;
    pid_t owner; /* the process that began it */

    int socket; /* one number from the first guardian to the end, so that the watching
                 * thread never waits for a descriptor that has become another's */

    pthread_mutex_t lock; /* guards these */
    bool is_ending;
    struct wm_error broken; /* status WM_OK: it is not */

    int stop; /* a pipe's end whose closing ends the watching thread */
    int stopped;
    pthread_t thread;
    bool has_thread;
};

/* Above the numbers that the guardian begins with, so that none is in another's way. */
static int lift(int fd)
{
    int lifted = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, WM_CAP_PARENT + 1);

    if (fd >= 0)
        close(fd);
    return lifted;
}

/* The descriptors of the new process, as the guardian finds them. */
static int add_descriptors(posix_spawn_file_actions_t *actions, int socket_fd, int parent)
{
    int number = 0;

    for (int fd = 0; fd < 3 && number == 0; fd++)
        number = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    if (number == 0)
        number = posix_spawn_file_actions_adddup2(actions, socket_fd, WM_CAP_SOCKET);
    if (number == 0 && parent >= 0)
        number = posix_spawn_file_actions_adddup2(actions, parent, WM_CAP_PARENT);
    else if (number == 0)
        number = posix_spawn_file_actions_addclose(actions, WM_CAP_PARENT);
    return number;
}

/* All signals are blocked, and stay so over the exec. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all;

    sigfillset(&all);
    int number = posix_spawnattr_setsigmask(attributes, &all);
    if (number == 0)
        number = posix_spawnattr_setflags(attributes,
                                          POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    return number;
}

static int spawn_with(const posix_spawn_file_actions_t *actions, char *const argv[],
                      pid_t *ret_pid)
{
    posix_spawnattr_t attributes;

    int number = posix_spawnattr_init(&attributes);
    if (number != 0)
        return number;
    number = set_attributes(&attributes);
    if (number == 0)
        number = posix_spawn(ret_pid, argv[0], actions, &attributes, argv, wm_env_all());
    posix_spawnattr_destroy(&attributes);
    return number;
}

/* What is spawned forks the guardian and ends, so that the guardian is nobody's child here:
 * a library leaves its host none to wait for. */
static int spawn(char *const argv[], int socket_fd, pid_t owner, pid_t *ret_child,
                 struct wm_error *err)
{
    int parent = lift((int)syscall(__NR_pidfd_open, owner, 0));
    posix_spawn_file_actions_t actions;

    int number = posix_spawn_file_actions_init(&actions);
    if (number == 0) {
        number = add_descriptors(&actions, socket_fd, parent);
        if (number == 0)
            number = spawn_with(&actions, argv, ret_child);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (parent >= 0)
        close(parent);
    return number == 0 ? WM_OK
                       : wm_fail(err, wm_status_of_errno(number),
                                 "starting the guardian of the caps: %.120s: %s", argv[0],
                                 wm_errno_text(number));
}

/* A folder can be "executed", too. */
static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* The folder of this library, or of the program where it is a part of that. */
static void find_own_folder(char *folder, size_t size)
{
    Dl_info info;

    folder[0] = '\0';
    if (dladdr((const void *)find_own_folder, &info) && info.dli_fname)
        snprintf(folder, size, "%.*s", (int)wm_file_folder_length(info.dli_fname),
                 info.dli_fname);
}

static char *search_path(void)
{
    const char *dir = wm_env_trusted("PATH", "/usr/local/bin:/usr/bin:/bin");
    char path[4096];

    for (const char *end; dir; dir = *end ? end + 1 : NULL) {
        end = dir + strcspn(dir, ":");
        snprintf(path, sizeof(path), "%.*s/wattmeter", (int)(end - dir), dir);
        if (end > dir && is_program(path))
            return strdup(path);
    }
    return NULL;
}

/* This program, where it is wattmeter itself, then one beside the library: in the build
 * folder, or installed in lib/, lib/x86_64-linux-gnu/ or a package of Python. */
static char *find_program(void)
{
    static const char *const places[] = { "wattmeter", "../bin/wattmeter",
                                          "../../bin/wattmeter",
                                          "../../../../bin/wattmeter" };
    char own[4096], path[4200];

    ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (length > 0) {
        own[length] = '\0';
        if (strcmp(own + wm_file_folder_length(own), "wattmeter") == 0)
            return strdup(own);
    }
    find_own_folder(own, sizeof(own));
    for (size_t i = 0; own[0] && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", own, places[i]);
        if (is_program(path))
            return strdup(path);
    }
    return search_path();
}

/* 1, or 0 where the guardian is gone; WM_EIO where it has not answered in time. */
static int hear(int socket_fd, struct wm_cap_message *ret_message, struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + ANSWER_NS;
    struct pollfd asked = { .fd = socket_fd, .events = POLLIN };

    for (;;) {
        int64_t left_ns = deadline_ns - wm_clock_monotonic_ns();
        if (left_ns <= 0)
            return wm_fail(err, WM_EIO, "the guardian of the caps does not answer");
        if (poll(&asked, 1, (int)(left_ns / WM_NS_PER_MS) + 1) < 1)
            continue;
        return recv(socket_fd, ret_message, sizeof(*ret_message), 0) ==
               (ssize_t)sizeof(*ret_message);
    }
}

static int hear_ready(struct wm_cap_session *session, struct wm_error *err)
{
    struct wm_cap_message message;
    int status = hear(session->socket, &message, err);

    if (status == 0)
        status =
            wm_fail(err, WM_EIO,
                    "the guardian of the caps did not start: %.120s %s is not wattmeter "
                    "%s",
                    session->program, WM_CAP_GUARDIAN, WM_VERSION);
    if (status < 0)
        return status;
    return message.status < 0 ? wm_fail(err, message.status, "%s", message.err.text)
                              : WM_OK;
}

/* It ends before the guardian says that it is ready; another program may never. Where the
 * host ignores SIGCHLD it is reaped already, and its number may be another's. */
static void reap(pid_t child, bool is_ready)
{
    if (!is_ready && waitpid(child, NULL, WNOHANG) == 0)
        kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The descriptor stays, as the watching thread may wait for it. */
static void hang_up(struct wm_cap_session *session)
{
    shutdown(session->socket, SHUT_RDWR);
}

/* The number of the session's descriptor stays the same over all its guardians. */
static int take_socket(struct wm_cap_session *session, int socket_fd, struct wm_error *err)
{
    int status = WM_OK;

    if (session->socket < 0) {
        session->socket = socket_fd;
        return WM_OK;
    }
    if (dup3(socket_fd, session->socket, O_CLOEXEC) < 0)
        status = wm_fail_errno(err, "starting the guardian of the caps: dup3");
    close(socket_fd);
    return status;
}

static int start_guardian(struct wm_cap_session *session, struct wm_error *err)
{
    const struct wm_source_config *config = wm_caps_config(session->caps);
    const char *nvml = config->nvml ? config->nvml : "";
    char owner[16];
    char *const argv[] = { session->program,
                           (char *)WM_CAP_GUARDIAN,
                           (char *)WM_VERSION,
                           (char *)config->sysfs,
                           (char *)nvml,
                           session->command,
                           owner,
                           NULL };
    pid_t child;
    int ends[2];

    snprintf(owner, sizeof(owner), "%ld", (long)session->owner);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return wm_fail_errno(err, "starting the guardian of the caps: socketpair");
    int status = take_socket(session, ends[0], err);
    int theirs = lift(ends[1]);
    if (status == WM_OK && theirs < 0)
        status = wm_fail_errno(err, "starting the guardian of the caps");
    if (status == WM_OK)
        status = spawn(argv, theirs, session->owner, &child, err);
    if (theirs >= 0)
        close(theirs);
    if (status == WM_OK) {
        status = hear_ready(session, err);
        reap(child, status == WM_OK);
    }
    if (status < 0)
        hang_up(session);
    return status;
}

static bool is_gone(const struct wm_cap_session *session)
{
    struct pollfd end = { .fd = session->socket };

    return poll(&end, 1, 0) == 1 && (end.revents & POLLHUP);
}

/* 1 and the answer, or 0 where the guardian is gone. */
static int ask(struct wm_cap_session *session, struct wm_cap_message *message,
               struct wm_error *err)
{
    if (send(session->socket, message, sizeof(*message), MSG_NOSIGNAL) < 0)
        return 0;
    int status = hear(session->socket, message, err);
    /* A late answer would be taken for that of the next question. */
    if (status < 0)
        hang_up(session);
    return status;
}

struct entries {
    pid_t owner;
    struct wm_caps *caps;
    int status; /* of the last entry that could not be put back */
    struct wm_error err;
};

static void put_back_entry(void *context, const struct wm_cap_entry *entry)
{
    struct entries *entries = context;
    enum wm_cap_restored restored;
    int lock;

    if (!entry->is_session || entry->owner != entries->owner)
        return;
    int status = wm_cap_lock(entry->identity, entry->device, entries->owner, entry->command,
                             &lock, &entries->err);
    if (status == WM_OK) {
        status = wm_cap_put_back(entries->caps, entry, wm_caps_patience(), &restored,
                                 &entries->err);
        close(lock);
    }
    if (status < 0)
        entries->status = status;
}

/* What the guardian would do, in this process: with an inventory of its own, since the
 * caller's belongs to another thread. */
static int put_back_here(struct wm_cap_session *session, struct wm_error *err)
{
    struct entries entries = { .owner = session->owner };

    int status = wm_caps_open(wm_caps_config(session->caps), &entries.caps, err);
    if (status < 0)
        return status;
    wm_cap_journal_each(put_back_entry, &entries);
    wm_caps_close(entries.caps);
    return entries.status < 0 ? wm_fail(err, entries.status, "%s", entries.err.text)
                              : WM_OK;
}

/* Called with the lock held. A new guardian takes over what the one before has changed; if
 * there can be none, everything is put back and the session is over. */
static void start_again(struct wm_cap_session *session)
{
    struct wm_cap_message take_over = { .question = WM_CAP_TAKE_OVER };
    struct wm_error err;

    for (int tries = 0; tries < STARTS_AGAIN; tries++) {
        hang_up(session);
        int status = start_guardian(session, &err);
        if (status == WM_OK)
            status = ask(session, &take_over, &err);
        if (status > 0 && take_over.status == WM_OK)
            return;
    }
    hang_up(session);
    if (put_back_here(session, &err) == WM_OK)
        wm_fail(&session->broken, WM_EIO,
                "the guardian of the caps was killed and could not be started again; what "
                "was set before was put back");
    else
        wm_fail(&session->broken, WM_EIO,
                "the guardian of the caps was killed and could not be started again, nor "
                "was all put back ('wattmeter cap restore' does that): %.200s",
                err.text);
}

/* Returns whether there is something left to watch. */
static bool watch(struct wm_cap_session *session)
{
    struct pollfd fds[] = { { .fd = session->socket }, { .fd = session->stopped } };

    poll(fds, 2, -1);
    if (fds[1].revents)
        return false;
    pthread_mutex_lock(&session->lock);
    if (!session->is_ending && is_gone(session))
        start_again(session);
    bool goes_on = session->broken.status == WM_OK;
    pthread_mutex_unlock(&session->lock);
    return goes_on;
}

static void *run_watch(void *context)
{
    struct wm_cap_session *session = context;

    pthread_setname_np(pthread_self(), "wattmeter");
    while (watch(session))
        ;
    return NULL;
}

static int start_watching(struct wm_cap_session *session, struct wm_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return wm_fail_errno(err, "caps: pipe");
    session->stopped = ends[0];
    session->stop = ends[1];
    int status = wm_thread_start(&session->thread, run_watch, session,
                                 "no thread for the caps", err);
    session->has_thread = status == WM_OK;
    return status;
}

static void free_session(struct wm_cap_session *session)
{
    if (session->socket >= 0)
        close(session->socket);
    if (session->stop >= 0)
        close(session->stop);
    if (session->stopped >= 0)
        close(session->stopped);
    pthread_mutex_destroy(&session->lock);
    free(session->program);
    free(session->command);
    free(session);
}

int wm_cap_session_begin(struct wm_caps *caps, const char *command, const char *program,
                         struct wm_cap_session **ret_session, struct wm_error *err)
{
    struct wm_cap_session *session = calloc(1, sizeof(*session));
    int status = WM_OK;

    if (!session)
        return wm_fail_memory(err, "caps");
    session->caps = caps;
    session->owner = getpid();
    session->socket = session->stop = session->stopped = -1;
    pthread_mutex_init(&session->lock, NULL);
    session->command = strndup(command, WM_CAP_COMMAND - 1);
    session->program = program ? strdup(program) : find_program();
    if (!session->program)
        status = wm_fail(err, WM_ENOENT,
                         "a cap needs the program wattmeter, which restores the previous "
                         "value; it is not in PATH");
    else if (!session->command)
        status = wm_fail_memory(err, "caps");
    if (status == WM_OK)
        status = start_guardian(session, err);
    if (status == WM_OK)
        status = start_watching(session, err);
    if (status < 0) {
        free_session(session);
        return status;
    }
    *ret_session = session;
    return WM_OK;
}

/* Called with the lock held. */
static int ask_to_set(struct wm_cap_session *session, struct wm_cap_message *message,
                      struct wm_error *err)
{
    const struct wm_cap_message question = *message;

    for (int tries = 0; tries < 2; tries++) {
        int status = session->broken.status;
        if (status < 0)
            return wm_fail(err, status, "%s", session->broken.text);
        *message = question;
        status = ask(session, message, err);
        if (status != 0)
            return status;
        start_again(session);
    }
    return wm_fail(err, WM_EIO, "the guardian of the caps is killed again and again");
}

int wm_cap_session_set(struct wm_cap_session *session, size_t index, double value,
                       struct wm_error *err)
{
    struct wm_cap_message message = { .question = WM_CAP_SET, .value = value };
    struct wm_cap_setting setting;

    if (session->owner != getpid())
        return wm_fail(err, WM_EINVAL, "the session of caps belongs to process %ld",
                       (long)session->owner);
    int status = wm_caps_check(session->caps, index, value, err);
    if (status < 0)
        return status;
    wm_caps_get(session->caps, index, &setting);
    message.kind = setting.kind;
    snprintf(message.identity, sizeof(message.identity), "%s", setting.identity);
    pthread_mutex_lock(&session->lock);
    status = ask_to_set(session, &message, err);
    pthread_mutex_unlock(&session->lock);
    if (status < 0)
        return status;
    if (message.status < 0)
        return wm_fail(err, message.status, "%s", message.err.text);
    return wm_caps_refresh(session->caps, err);
}

int wm_cap_session_check(struct wm_cap_session *session, struct wm_error *err)
{
    pthread_mutex_lock(&session->lock);
    struct wm_error broken = session->broken;
    pthread_mutex_unlock(&session->lock);
    return broken.status < 0 ? wm_fail(err, broken.status, "%s", broken.text) : WM_OK;
}

/* Called with the lock held. A guardian that is gone is replaced by one that puts back. */
static int ask_to_end(struct wm_cap_session *session, struct wm_error *err)
{
    struct wm_cap_message message = { .question = WM_CAP_END };
    int status = ask(session, &message, err);

    if (status == 0 && session->broken.status == WM_OK) {
        start_again(session);
        message = (struct wm_cap_message) { .question = WM_CAP_END };
        status = ask(session, &message, err);
    }
    if (status < 0)
        return status;
    if (status == 0)
        return wm_fail(err, WM_EIO, "%s",
                       session->broken.status < 0 ? session->broken.text
                                                  : "the guardian of the caps was killed");
    return message.status < 0 ? wm_fail(err, message.status, "%s", message.err.text)
                              : WM_OK;
}

int wm_cap_session_end(struct wm_cap_session *session, struct wm_error *err)
{
    /* A child that was forked has neither the thread nor a say. */
    if (!session || session->owner != getpid())
        return WM_OK;
    pthread_mutex_lock(&session->lock);
    int status = ask_to_end(session, err);
    session->is_ending = true;
    pthread_mutex_unlock(&session->lock);
    if (session->has_thread) {
        close(session->stop);
        session->stop = -1;
        pthread_join(session->thread, NULL);
    }
    free_session(session);
    return status;
}
