/* SPDX-License-Identifier: Apache-2.0 */
/* region_file.c - sub-tracking files of gpu_tracker, row by row: the rows, what is common
 * to both kinds of file, and CSV. */
#include "region/mark/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/text/base_number.h"
#include "region/region_ring.h"

/* Lines end as those of Python's csv module do. */
#define LINE_END "\r\n"

/* Room for a line with a name of that length: in quotes, and nothing but quotes. */
#define ROW_ROOM(name_length) (2 * (name_length) + 2 * WM_NUMBER_SIZE + 16)

enum {
    /* What is not UTF-8 becomes three bytes. */
    NAME_SIZE = 3 * WM_REGION_NAME_MAX + 1,
    ROW_SIZE = ROW_ROOM(NAME_SIZE),
    /* A row is written within this, unless its writer died or had no room. */
    SETTLE_NS = 50000000,
};

struct wm_region_file {
    struct wm_region_database *database; /* NULL: the file is CSV */
    int fd;                              /* the CSV file, or -1 */
    char path[];
};

static size_t put_name(const struct wm_region_row *row, char *text)
{
    size_t length = 0;

    if (!wm_text_is_quoted(row->name, row->name_length)) {
        memcpy(text, row->name, row->name_length);
        return row->name_length;
    }
    text[length++] = '"';
    length += wm_text_double_quotes(text + length, row->name, row->name_length);
    text[length++] = '"';
    return length;
}

/* With its end; returns the length, without a NUL. */
static size_t put_row(const struct wm_region_row *row, char *text)
{
    size_t length =
        (size_t)snprintf(text, WM_NUMBER_SIZE, "%lld,", (long long)row->process);

    length += put_name(row, text + length);
    memcpy(text + length, row->is_stop ? ",1," : ",0,", 3);
    length += 3;
    length += wm_number_format_float(row->when_s, text + length);
    memcpy(text + length, LINE_END, strlen(LINE_END));
    return length + strlen(LINE_END);
}

bool wm_region_file_is_path(const char *path)
{
    return wm_text_ends(path, ".csv") || wm_text_ends(path, ".sqlite");
}

/* Makes way for a file that is to be replaced, or says why there cannot be one. */
static int check_path(const char *path, enum wm_record_mode mode, struct wm_error *err)
{
    struct stat info;

    if (lstat(path, &info) < 0)
        return errno == ENOENT ? WM_OK : wm_fail_errno(err, path);
    if (mode == WM_RECORD_NEW)
        return wm_fail(err, WM_EEXIST, "%s: exists already", path);
    if (mode == WM_RECORD_APPEND)
        return WM_OK;
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: not a regular file", path);
    if (wm_text_ends(path, ".sqlite"))
        return wm_region_database_remove(path, err);
    return unlink(path) < 0 ? wm_fail_errno(err, path) : WM_OK;
}

/* A file that would be longer than the program may make any (RLIMIT_FSIZE) fails, and does
 * not end the program: the signal for it comes to the thread that writes. */
struct held {
    sigset_t signal, before;
    bool was_pending;
};

static void hold_signal(struct held *held)
{
    sigset_t pending;

    sigemptyset(&held->signal);
    sigaddset(&held->signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &held->signal, &held->before);
    held->was_pending = sigismember(&held->before, SIGXFSZ) == 1 &&
                        sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

static void let_go(const struct held *held)
{
    const struct timespec at_once = { 0 };

    if (!held->was_pending)
        sigtimedwait(&held->signal, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

/* In one piece: of several writers none may come between. */
static int append(int fd, const char *path, const char *text, size_t length,
                  struct wm_error *err)
{
    ssize_t written;

    do
        written = write(fd, text, length);
    while (written < 0 && errno == EINTR);
    if (written < 0)
        return wm_fail_errno(err, path);
    if ((size_t)written < length)
        return wm_fail(err, WM_EIO, "%s: no room for a whole row", path);
    return WM_OK;
}

/* Where the last whole row ends: a line end in quotes belongs to a name. */
static int find_end(int fd, const char *path, off_t *ret_end, struct wm_error *err)
{
    char part[1 << 14];
    off_t at = 0, end = 0;
    bool is_quoted = false;
    ssize_t got;

    while ((got = pread(fd, part, sizeof(part), at)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (part[i] == '"')
                is_quoted = !is_quoted;
            else if (part[i] == '\n' && !is_quoted)
                end = at + i + 1;
        }
        at += got;
    }
    *ret_end = end;
    return got < 0 ? wm_fail_errno(err, path) : WM_OK;
}

/* The row that a writer was killed in, or had no room for, goes: completed by what comes
 * next it would be a row that nobody has written. */
static int cut_torn_row(int fd, const char *path, off_t size, struct wm_error *err)
{
    off_t end;

    int status = find_end(fd, path, &end, err);
    if (status < 0)
        return status;
    if (size - end > ROW_SIZE)
        return wm_fail(err, WM_EFORMAT, "%s: its last row has no end; nothing is added",
                       path);
    return ftruncate(fd, end) < 0 ? wm_fail_errno(err, path) : WM_OK;
}

/* Whether a line is one of numbers behind a name, as the last one of a file that was left
 * in peace is: then the file need not be read. */
static bool ends_with_row(const char *tail, size_t length)
{
    static const char number[] = "0123456789.e+-";

    if (length == 0 || tail[length - 1] != '\n')
        return false;
    length -= length > 1 && tail[length - 2] == '\r' ? 2 : 1;
    size_t start = length;
    while (start > 0 && memchr(number, tail[start - 1], sizeof(number) - 1))
        start--;
    return start < length && start >= 3 && tail[start - 1] == ',' &&
           (tail[start - 2] == '0' || tail[start - 2] == '1') && tail[start - 3] == ',';
}

/* Whether the last row has its end. A row that is just being written may be seen in part:
 * what is to be called torn has to stay so for a while. */
static int check_end(int fd, const char *path, off_t size, struct wm_error *err)
{
    const struct timespec nap = { .tv_nsec = SETTLE_NS };
    struct stat info = { .st_size = -1 };
    char tail[64];

    for (;;) {
        off_t at = size > (off_t)sizeof(tail) ? size - (off_t)sizeof(tail) : 0;
        ssize_t got = pread(fd, tail, (size_t)(size - at), at);
        if (got < 0)
            return wm_fail_errno(err, path);
        if (ends_with_row(tail, (size_t)got))
            return WM_OK;
        if (info.st_size == size)
            return cut_torn_row(fd, path, size, err);
        nanosleep(&nap, NULL);
        if (fstat(fd, &info) < 0)
            return wm_fail_errno(err, path);
        if (info.st_size != size) {
            size = info.st_size;
            info.st_size = -1;
        }
    }
}

/* What a file begins with decides whether rows are added to it. */
static int check_header(int fd, const char *path, off_t size, struct wm_error *err)
{
    char text[sizeof(WM_REGION_FILE_HEADER LINE_END)] = "";

    ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
    if (got < 0)
        return wm_fail_errno(err, path);
    size_t length = strcspn(text, LINE_END);
    if (length != strlen(WM_REGION_FILE_HEADER) ||
        strncmp(text, WM_REGION_FILE_HEADER, length) != 0)
        return wm_fail(err, WM_EFORMAT, "%s: not a sub-tracking file; nothing is added",
                       path);
    bool is_alone = got == size && got > 0 && text[got - 1] == '\n';
    return is_alone ? WM_OK : check_end(fd, path, size, err);
}

static int csv_begin(int fd, const char *path, struct wm_error *err)
{
    static const char header[] = WM_REGION_FILE_HEADER LINE_END;
    struct stat info;

    if (fstat(fd, &info) < 0)
        return wm_fail_errno(err, path);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: not a regular file", path);
    int status = info.st_size > 0 ? check_header(fd, path, info.st_size, err) : WM_OK;
    if (status < 0)
        return status;
    if (fstat(fd, &info) < 0)
        return wm_fail_errno(err, path);
    return info.st_size > 0 ? WM_OK : append(fd, path, header, strlen(header), err);
}

static int csv_open(const char *path, bool may_exist, int *ret_fd, struct wm_error *err)
{
    int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags | (may_exist ? 0 : O_EXCL), 0666);

    *ret_fd = fd;
    if (fd < 0)
        return wm_fail_errno(err, path);

    /* Of two that find it empty one writes the header. */
    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    int status = csv_begin(fd, path, err);
    flock(fd, LOCK_UN);
    return status;
}

int wm_region_file_open(const char *path, enum wm_record_mode mode,
                        struct wm_region_file **ret_file, struct wm_error *err)
{
    size_t size = strlen(path) + 1;
    bool may_exist = mode == WM_RECORD_APPEND;
    struct held held;

    if (!wm_region_file_is_path(path))
        return wm_fail(err, WM_EINVAL, "%s: the suffix is neither .csv nor .sqlite", path);
    int status = check_path(path, mode, err);
    if (status < 0)
        return status;
    struct wm_region_file *file = calloc(1, sizeof(*file) + size);
    if (!file)
        return wm_fail_memory(err, NULL);
    file->fd = -1;
    memcpy(file->path, path, size);
    hold_signal(&held);
    if (wm_text_ends(path, ".sqlite"))
        status = wm_region_database_open(file->path, may_exist, &file->database, err);
    else
        status = csv_open(file->path, may_exist, &file->fd, err);
    let_go(&held);
    if (status < 0) {
        wm_region_file_close(file);
        return status;
    }
    *ret_file = file;
    return WM_OK;
}

void wm_region_file_close(struct wm_region_file *file)
{
    struct held held;

    if (!file)
        return;
    hold_signal(&held);
    if (file->database)
        wm_region_database_close(file->database);
    if (file->fd >= 0)
        close(file->fd);
    let_go(&held);
    free(file);
}

int wm_region_file_write(struct wm_region_file *file, const char *name, bool is_stop,
                         const double *unix_seconds, struct wm_error *err)
{
    const char *path = file->path;
    double when_s = unix_seconds ? *unix_seconds : (double)wm_clock_unix_ns() / 1e9;
    struct held held;
    int status;

    if (!isfinite(when_s))
        return wm_fail(err, WM_EINVAL, "%s: what is not finite is no time", path);
    if (!name)
        name = "";
    size_t length = wm_region_name_length(name), room = 3 * length + 1;
    char *clean = malloc(room + ROW_ROOM(room)); /* room for the name and the line */
    if (!clean)
        return wm_fail_memory(err, NULL);
    char *line = clean + room;
    const struct wm_region_row row = {
        .process = getpid(),
        .name = clean,
        .name_length = wm_text_utf8(clean, room, name, length),
        .is_stop = is_stop,
        .when_s = when_s,
    };
    hold_signal(&held);
    if (file->database)
        status = wm_region_database_write(file->database, path, &row, err);
    else
        status = append(file->fd, path, line, put_row(&row, line), err);
    let_go(&held);
    free(clean);
    return status;
}
