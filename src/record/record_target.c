/* SPDX-License-Identifier: Apache-2.0 */
/* record_target.c - the file, or what a URL names, that a recording is written
 * to. */
#include "record/record_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_utf8.h"
#include "record/record_column.h"

static int exists_already(const struct wm_recorder_ops *ops, const char *path,
                          enum wm_record_mode mode, struct wm_error *err)
{
    if (mode == WM_RECORD_APPEND)
        return wm_fail(err, WM_EEXIST,
                       "%s: exists already, and only .sqlite and .aipm can be added to",
                       wm_text_path(path));
    return wm_fail(err, WM_EEXIST, "%s: exists already; mode \"overwrite\" replaces it%s",
                   wm_text_path(path),
                   ops->can_append ? ", mode \"append\" adds to it" : "");
}

/* The path of a target's file, or the name of a URL for messages; the caller's to free,
 * NULL when out of memory. */
static char *target_file(const struct wm_recorder_ops *ops, const char *target)
{
    const char *name = target + wm_file_folder_length(target);
    char *path = NULL;

    if (ops->is_target)
        return ops->shown(target);
    if (ops->path_in)
        return strdup(ops->path_in(target));
    if (!ops->file || strcmp(name, ops->file) == 0)
        return strdup(target);
    if (asprintf(&path, "%s%s%s", target, *name ? "/" : "", ops->file) < 0)
        return NULL;
    return path;
}

static int check_folder(const char *path, struct wm_error *err)
{
    size_t length = wm_file_folder_length(path);
    struct stat info;
    int status = WM_OK;

    char *folder = length > 0 ? strndup(path, length) : strdup(".");
    if (!folder)
        return wm_fail_memory(err, wm_text_path(path));

    const char *shown = wm_text_path(folder);
    if (stat(folder, &info) < 0)
        status = errno == ENOENT
                     ? wm_fail(err, WM_ENOENT, "%s: there is no such folder", shown)
                     : wm_fail_errno(err, shown);
    else if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
        status = wm_fail_errno(err, shown);
    free(folder);
    return status;
}

/* The byte of a file that its writers lock, far behind those that SQLite locks. As a lock
 * of the open file it is not lost when another descriptor of the same file is closed. */
static struct flock writers_lock(short type)
{
    return (struct flock) {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = INT64_MAX - 1,
        .l_len = 1,
    };
}

static int open_to_lock(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
}

static int fail_recording(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_EEXIST, "%s: another wattmeter is recording to it",
                   wm_text_path(path));
}

/* If the file cannot be opened, or its file system has no locks, it counts as unused. */
static int check_unused(const char *path, struct wm_error *err)
{
    struct flock lock = writers_lock(F_WRLCK);
    int fd = open_to_lock(path);
    bool is_used = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return is_used ? fail_recording(path, err) : WM_OK;
}

static int lock_file(struct wm_target *target, struct wm_error *err)
{
    struct flock lock = writers_lock(target->ops->one_writer ? F_WRLCK : F_RDLCK);

    target->lock = open_to_lock(target->path);
    target->has_lock = target->lock >= 0;
    if (target->has_lock && fcntl(target->lock, F_OFD_SETLK, &lock) < 0 &&
        (errno == EAGAIN || errno == EACCES))
        return fail_recording(target->path, err);
    return WM_OK;
}

static int check_replaced(const struct wm_recorder_ops *ops, const char *path,
                          struct wm_error *err)
{
    int status = check_unused(path, err);

    return status == WM_OK && ops->may_replace ? ops->may_replace(path, err) : status;
}

/* A file that is there. */
static int check_file(const struct wm_recorder_ops *ops, const char *path,
                      enum wm_record_mode mode, struct stat info, struct wm_error *err)
{
    const char *shown = wm_text_path(path);

    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: not a regular file", shown);
    if (mode == WM_RECORD_NEW || (mode == WM_RECORD_APPEND && !ops->can_append))
        return exists_already(ops, path, mode, err);
    if (mode == WM_RECORD_OVERWRITE && S_ISLNK(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: a symbolic link; name the file it points to",
                       shown);
    if (mode == WM_RECORD_OVERWRITE)
        return check_replaced(ops, path, err);

    if (stat(path, &info) < 0)
        return wm_fail_errno(err, shown);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%s: not a regular file", shown);
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) < 0)
        return wm_fail_errno(err, shown);
    return WM_OK;
}

static int check_mode_of_url(const char *shown, enum wm_record_mode mode,
                             struct wm_error *err)
{
    if (mode != WM_RECORD_OVERWRITE)
        return WM_OK;
    return wm_fail(err, WM_EINVAL,
                   "%s: overwrite is for files; a run is added to a database, and "
                   "replaces nothing",
                   shown);
}

/* The folder of `path` without its last slash, the caller's to free; NULL when out
 * of memory. */
static char *folder_of(const char *path)
{
    size_t length = wm_file_folder_length(path);

    return length > 1 ? strndup(path, length - 1) : strdup(length > 0 ? "/" : ".");
}

/* A folder that will be made needs one to be made in. */
static int check_new_folder(const char *path, struct wm_error *err)
{
    struct stat info;
    char *folder = folder_of(path);

    if (!folder)
        return wm_fail_memory(err, wm_text_path(path));
    bool missing = stat(folder, &info) < 0 && errno == ENOENT;
    int status = check_folder(missing ? folder : path, err);
    free(folder);
    return status;
}

static int check_path(const struct wm_recorder_ops *ops, const char *path,
                      enum wm_record_mode mode, struct wm_error *err)
{
    struct stat info;
    int status = WM_OK;

    if (lstat(path, &info) == 0)
        status = check_file(ops, path, mode, info, err);
    else if (errno != ENOENT)
        status = wm_fail_errno(err, wm_text_path(path));
    if (status < 0)
        return status;
    return ops->file ? check_new_folder(path, err) : check_folder(path, err);
}

int wm_target_check(const struct wm_recorder_ops *ops, const char *target,
                    enum wm_record_mode mode, struct wm_error *err)
{
    char *path = target_file(ops, target);
    int status;

    if (!path)
        status = wm_fail_memory(err, NULL);
    else if (ops->is_target)
        status = check_mode_of_url(path, mode, err);
    else
        status = check_path(ops, path, mode, err);
    free(path);
    return status == WM_OK && ops->is_target ? ops->check(target, err) : status;
}

/* `from` to `to`, each followed by `suffix`; `to` NULL: `from` is removed. */
static int move_one(const char *from, const char *to, const char *suffix)
{
    char *old = NULL, *new = NULL;
    int result = -1;

    if (asprintf(&old, "%s%s", from, suffix) < 0)
        old = NULL;
    if (to && asprintf(&new, "%s%s", to, suffix) < 0)
        new = NULL;
    if (!old || (to && !new))
        errno = ENOMEM;
    else
        result = to ? rename(old, new) : unlink(old);
    int number = errno;
    free(old);
    free(new);
    errno = number;
    return result;
}

/* The file and those that belong to it. */
static int move_all(const struct wm_recorder_ops *ops, const char *from, const char *to)
{
    if (move_one(from, to, "") < 0)
        return -1;
    for (size_t i = 0; ops->companions && ops->companions[i]; i++)
        move_one(from, to, ops->companions[i]);
    return 0;
}

/* In the same folder, and not made from the file's own name, which may be as
 * long as a name can be. The caller's to free; NULL when out of memory. */
static char *aside_name(const char *path, uint64_t inode)
{
    char *name;

    if (asprintf(&name, "%.*s.wattmeter-old-%ld-%" PRIu64, (int)wm_file_folder_length(path),
                 path, (long)getpid(), inode) < 0)
        return NULL;
    return name;
}

static int set_aside(struct wm_target *target, const struct stat *info,
                     struct wm_error *err)
{
    int unused = check_unused(target->path, err);
    if (unused < 0)
        return unused;
    target->aside = aside_name(target->path, (uint64_t)info->st_ino);
    if (!target->aside)
        return wm_fail_memory(err, wm_text_path(target->path));
    if (move_all(target->ops, target->path, target->aside) < 0) {
        int status = wm_fail_errno(err, wm_text_path(target->path));
        free(target->aside);
        target->aside = NULL;
        return status;
    }
    return WM_OK;
}

static int make_file(struct wm_target *target, struct wm_error *err)
{
    struct stat info;
    int status = WM_OK;

    /* Of two writers that get here together one must find the file there. */
    int fd = open(target->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0 && errno == EEXIST)
        return exists_already(target->ops, target->path, WM_RECORD_NEW, err);
    if (fd < 0)
        return wm_fail_errno(err, wm_text_path(target->path));

    target->made = true;
    if (fstat(fd, &info) < 0) {
        status = wm_fail_errno(err, wm_text_path(target->path));
    } else {
        target->device = info.st_dev;
        target->inode = info.st_ino;
    }
    close(fd);
    return status;
}

/* One that is there is as good. */
static int make_folder(struct wm_target *target, struct wm_error *err)
{
    char *folder = folder_of(target->path);
    int status = WM_OK;

    if (!folder)
        return wm_fail_memory(err, wm_text_path(target->path));
    if (mkdir(folder, 0777) == 0)
        target->made_folder = true;
    else if (errno != EEXIST)
        status = wm_fail_errno(err, wm_text_path(folder));
    free(folder);
    return status;
}

/* Unless there is something in it. */
static void remove_folder(const struct wm_target *target)
{
    char *folder = folder_of(target->path);

    if (folder)
        rmdir(folder);
    free(folder);
}

static int prepare_file(struct wm_target *target, enum wm_record_mode mode,
                        struct wm_error *err)
{
    struct wm_error why;
    struct stat info;

    if (mode == WM_RECORD_OVERWRITE && stat(target->path, &info) == 0) {
        int status = set_aside(target, &info, err);
        if (status < 0)
            return status;
    }
    int status = make_file(target, &why);
    if (status == WM_OK)
        return WM_OK;
    if (status != WM_EEXIST || mode != WM_RECORD_APPEND)
        return wm_fail(err, status, "%s", why.text);

    if (stat(target->path, &info) < 0)
        return wm_fail_errno(err, wm_text_path(target->path));
    target->device = info.st_dev;
    target->inode = info.st_ino;
    return WM_OK;
}

/* `file` is the file of `path`, or its draft; the target frees it. */
static int open_target(struct wm_target *ret_target, const struct wm_recorder_ops *ops,
                       const char *path, char *file, enum wm_record_mode mode,
                       bool as_whole, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct wm_target target = { .ops = ops, .path = file };
    bool is_url = ops->is_target != NULL;
    struct stat info;
    int status;

    target.state = calloc(1, ops->state_size);
    if (!target.path || !target.state)
        status = wm_fail_memory(err, NULL);
    else if (count > WM_CHANNELS_MAX)
        status = wm_fail(err, WM_EINVAL, "%s: %zu channels; a recording holds up to %d",
                         wm_text_path(target.path), count, WM_CHANNELS_MAX);
    else if (is_url)
        status = check_mode_of_url(target.path, mode, err);
    else
        status = check_path(ops, target.path, mode, err);

    if (status == WM_OK && ops->file)
        status = make_folder(&target, err);
    if (status == WM_OK && !is_url)
        status = prepare_file(&target, mode, err);
    if (status == WM_OK && !is_url)
        status = lock_file(&target, err);
    if (status == WM_OK && as_whole && ops->as_whole)
        ops->as_whole(target.state);
    if (status == WM_OK)
        status = ops->open(target.state, is_url || ops->path_in ? path : target.path, run,
                           channels, count, err);
    if (status == WM_EEXIST) /* another writer has found what we had just made */
        target.made = false;
    if (status == WM_OK && !is_url && stat(target.path, &info) == 0)
        target.begun_size = info.st_size;
    if (status < 0)
        wm_target_close(&target);
    else
        *ret_target = target;
    return status;
}

int wm_target_open(struct wm_target *ret_target, const struct wm_recorder_ops *ops,
                   const char *path, enum wm_record_mode mode, const struct wm_run *run,
                   const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    return open_target(ret_target, ops, path, target_file(ops, path), mode, false, run,
                       channels, count, err);
}

/* A failure of the draft, in words about the file that it was to become. */
static void tell_of_whole(const struct wm_target *target, struct wm_error *err)
{
    const char *draft = wm_text_path(target->path);
    size_t length = strlen(draft);

    if (!err || strncmp(err->text, draft, length) != 0)
        return;
    struct wm_error told = *err;
    wm_fail(err, told.status, "%s%s", wm_text_path(target->whole), told.text + length);
}

int wm_target_open_draft(struct wm_target *ret_target, const struct wm_recorder_ops *ops,
                         const char *path, enum wm_record_mode mode,
                         const struct wm_run *run, const struct wm_channel *channels,
                         size_t count, struct wm_error *err)
{
    bool has_draft = !ops->is_target && !ops->path_in && mode != WM_RECORD_APPEND;

    if (!has_draft)
        return open_target(ret_target, ops, path, target_file(ops, path), mode, true, run,
                           channels, count, err);

    int status = wm_target_check(ops, path, mode, err);
    if (status < 0)
        return status;
    struct wm_target draft = { .whole = target_file(ops, path) };
    if (draft.whole)
        draft.path = wm_file_draft_name(draft.whole);
    if (!draft.path)
        status = wm_fail_memory(err, wm_text_path(path));
    else
        status = open_target(ret_target, ops, draft.path, strdup(draft.path), WM_RECORD_NEW,
                             true, run, channels, count, err);
    if (status == WM_OK) {
        ret_target->whole = draft.whole;
        ret_target->replaces = mode == WM_RECORD_OVERWRITE;
    } else {
        if (draft.path && draft.whole)
            tell_of_whole(&draft, err);
        free(draft.whole);
    }
    free(draft.path);
    return status;
}

static int put_in_place(struct wm_target *target, struct wm_error *err)
{
    struct wm_target old = { .ops = target->ops, .path = target->whole };
    struct stat info;
    int status = WM_OK;

    target->ops->close(target->state);
    free(target->state);
    target->state = NULL;

    if (target->replaces && stat(old.path, &info) == 0)
        status = set_aside(&old, &info, err);
    if (status == WM_OK)
        status = wm_file_give_name(target->path, target->whole, err);
    if (old.aside)
        move_all(old.ops, old.aside, status == WM_OK ? NULL : old.path);
    free(old.aside);
    return status;
}

int wm_target_finish(struct wm_target *target, int status, struct wm_error *err)
{
    if (status == WM_OK && target->whole)
        status = put_in_place(target, err);
    if (status == WM_OK)
        wm_target_keep(target);
    else if (target->whole)
        tell_of_whole(target, err);
    wm_target_close(target);
    return status;
}

void wm_target_keep(struct wm_target *target)
{
    if (target->aside)
        move_all(target->ops, target->aside, NULL);
    free(target->aside);
    target->aside = NULL;
    target->made = false;
    target->made_folder = false;
}

void wm_target_discard(struct wm_target *target)
{
    target->made = true;
}

/* Finds where the file is now after somebody moved it. Not for formats with companions,
 * which stayed behind. */
static bool find_moved(const struct wm_target *target, char *path, size_t size)
{
    char link[64];
    struct stat info;

    if (!target->has_lock || target->ops->companions || fstat(target->lock, &info) < 0 ||
        info.st_nlink == 0)
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", target->lock);
    ssize_t length = readlink(link, path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

int wm_target_verify(const struct wm_target *target, struct wm_error *err)
{
    const char *shown = wm_text_path(target->path);
    char now[PATH_MAX];
    struct stat info;

    if (target->ops->is_target)
        return WM_OK;

    bool is_there = stat(target->path, &info) == 0;
    if (is_there && info.st_dev == target->device && info.st_ino == target->inode) {
        /* SQLite does not notice it, and writes on after a hole. */
        if (target->ops->companions && info.st_size < target->begun_size)
            return wm_fail(err, WM_EIO,
                           "%s: cut off by another program while it was written", shown);
        return WM_OK;
    }
    if (find_moved(target, now, sizeof(now)))
        return wm_fail(
            err, WM_ECANCELED,
            "%s: moved by another program while it was recorded to; it is now %s", shown,
            wm_text_path(now));
    if (!is_there)
        return errno == ENOENT
                   ? wm_fail(err, WM_ENOENT, "%s: removed while it was recorded to", shown)
                   : wm_fail_errno(err, shown);
    return wm_fail(err, WM_EIO, "%s: replaced by another file while it was recorded to",
                   shown);
}

void wm_target_close(struct wm_target *target)
{
    if (target->state)
        target->ops->close(target->state);
    free(target->state);
    if (target->has_lock)
        close(target->lock);

    /* What others have put in its place is not ours to remove. */
    if (target->made && wm_target_verify(target, NULL) == WM_OK)
        move_all(target->ops, target->path, NULL);
    if (target->made_folder)
        remove_folder(target);
    if (target->aside && access(target->path, F_OK) < 0)
        move_all(target->ops, target->aside, target->path);
    free(target->aside);
    free(target->whole);
    free(target->path);
    *target = (struct wm_target) { 0 };
}
