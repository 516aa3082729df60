/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_combine.c - sub-tracking files joined into a new one.
 *
 * It is written beside its place under another name and gets its own when it is whole, so
 * that neither a failure nor a kill leaves half of one there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "record/record_calls.h"
#include "record/record_out.h"
#include "record/record_sql.h"
#include "record/record_sub_tracking.h"
#include "record/record_text.h"

struct paths {
    char **paths;
    size_t count, room;
};

struct target {
    const char *shown; /* in messages */
    char *draft;       /* the other name */
    struct wm_out out; /* CSV */
    sqlite3 *db;       /* SQLite */
    sqlite3_stmt *insert;
};

/* A format by its suffix. finish() makes what was written last; close() copes with
 * whatever open() has left. */
struct format {
    const char *suffix;
    int (*open)(struct target *target, struct wm_error *err);
    int (*add)(struct target *target, const struct wm_sub_row *row, struct wm_error *err);
    int (*finish)(struct target *target, struct wm_error *err);
    void (*close)(struct target *target);
};

static int out_of_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "out of memory");
}

static void put_cell(struct wm_out *out, const char *text, size_t length)
{
    enum { PIECE = 256 };
    char piece[2 * PIECE];

    if (!wm_text_is_quoted(text, length)) {
        wm_out_bytes(out, text, length);
        return;
    }
    wm_out_text(out, "\"");
    for (size_t i = 0; i < length; i += PIECE) {
        size_t rest = length - i < PIECE ? length - i : PIECE;
        wm_out_bytes(out, piece, wm_text_double_quotes(piece, text + i, rest));
    }
    wm_out_text(out, "\"");
}

static int open_csv(struct target *target, struct wm_error *err)
{
    int status = wm_out_open(&target->out, target->draft, err);
    if (status < 0)
        return status;
    for (int i = 0; i < WM_SUB_COLUMNS; i++) {
        wm_out_text(&target->out, i > 0 ? "," : "");
        wm_out_text(&target->out, wm_sub_names[i]);
    }
    wm_out_text(&target->out, "\n");
    return WM_OK;
}

static int add_csv(struct target *target, const struct wm_sub_row *row,
                   struct wm_error *err)
{
    (void)err;

    for (int i = 0; i < WM_SUB_COLUMNS; i++) {
        wm_out_text(&target->out, i > 0 ? "," : "");
        put_cell(&target->out, row->cells[i].text, row->cells[i].length);
    }
    wm_out_text(&target->out, "\n");
    return WM_OK;
}

static int finish_csv(struct target *target, struct wm_error *err)
{
    int status = wm_out_flush(&target->out, err);

    return status < 0 ? status : wm_out_sync(&target->out, err);
}

static void close_csv(struct target *target)
{
    wm_out_close(&target->out);
}

/* Nobody else sees the draft, so it needs no journal. */
static int open_sqlite(struct target *target, struct wm_error *err)
{
    static const char sql[] =
        "PRAGMA journal_mode = OFF;"
        "BEGIN;"
        "CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR,"
        " position INTEGER, timestamp FLOAT)";
    char name[4096];

    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(target->draft, name), &target->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(target->db, result, target->shown, err);
    status = wm_sql_exec(target->db, sql, target->shown, err);
    return status < 0 ? status
                      : wm_sql_prepare(target->db, "INSERT INTO data VALUES (?, ?, ?, ?)",
                                       target->shown, &target->insert, err);
}

static int add_sqlite(struct target *target, const struct wm_sub_row *row,
                      struct wm_error *err)
{
    sqlite3_bind_int(target->insert, 1 + WM_SUB_PROCESS, row->pid);
    sqlite3_bind_text(target->insert, 1 + WM_SUB_NAME, row->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(target->insert, 1 + WM_SUB_POSITION, row->is_stop);
    sqlite3_bind_double(target->insert, 1 + WM_SUB_TIMESTAMP, row->seconds);
    return wm_sql_run(target->insert, target->shown, err);
}

static int finish_sqlite(struct target *target, struct wm_error *err)
{
    return wm_sql_exec(target->db, "COMMIT", target->shown, err);
}

static void close_sqlite(struct target *target)
{
    if (!target->db)
        return;
    sqlite3_finalize(target->insert);
    sqlite3_close(target->db);
}

static const struct format formats[] = {
    { ".csv", open_csv, add_csv, finish_csv, close_csv },
    { ".sqlite", open_sqlite, add_sqlite, finish_sqlite, close_sqlite },
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

static bool has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path), end = strlen(suffix);

    return length >= end && strcmp(path + length - end, suffix) == 0;
}

static int find_format(const char *target, const struct format **ret_format,
                       struct wm_error *err)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (has_suffix(target, formats[i].suffix)) {
            *ret_format = &formats[i];
            return WM_OK;
        }
    }
    return wm_fail(err, WM_EINVAL, "%s: a sub-tracking file ends in .csv or .sqlite",
                   wm_text_path(target));
}

/* Takes `path` over, which is NULL when out of memory. */
static int add_path(struct paths *paths, char *path, struct wm_error *err)
{
    if (path && paths->count == paths->room) {
        size_t room = paths->room > 0 ? 2 * paths->room : 16;
        char **grown = realloc(paths->paths, room * sizeof(*grown));
        if (grown) {
            paths->paths = grown;
            paths->room = room;
        }
    }
    if (!path || paths->count == paths->room) {
        free(path);
        return out_of_memory(err);
    }
    paths->paths[paths->count++] = path;
    return WM_OK;
}

static void release_paths(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->paths[i]);
    free(paths->paths);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct paths *paths, const char *folder, struct wm_error *err)
{
    size_t before = paths->count;
    int status = WM_OK;

    DIR *dir = opendir(folder);
    if (!dir)
        return wm_fail_errno(err, wm_text_path(folder));
    for (struct dirent *entry; status == WM_OK && (entry = readdir(dir)) != NULL;) {
        char *path = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            path = NULL;
        status = add_path(paths, path, err);
    }
    closedir(dir);
    if (status == WM_OK && paths->count > before)
        qsort(paths->paths + before, paths->count - before, sizeof(*paths->paths),
              compare_paths);
    return status;
}

/* The files that the caller's paths stand for. */
static int list_files(struct paths *files, const char *const *paths, size_t count,
                      const struct format *format, struct wm_error *err)
{
    struct stat info;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode))
            status = add_folder(files, paths[i], err);
        else
            status = add_path(files, strdup(paths[i]), err);
    }
    if (status == WM_OK && files->count == 0)
        return wm_fail(err, WM_EINVAL, "there are no files to combine");
    for (size_t i = 0; i < files->count && status == WM_OK; i++) {
        if (stat(files->paths[i], &info) == 0 && S_ISDIR(info.st_mode))
            return wm_fail(err, WM_EINVAL, "%s: is a folder, not a sub-tracking file",
                           wm_text_path(files->paths[i]));
        if (!has_suffix(files->paths[i], format->suffix))
            status = wm_fail(err, WM_EINVAL, "%s: does not end in %s, as the new file does",
                             wm_text_path(files->paths[i]), format->suffix);
    }
    return status;
}

static int copy_rows(struct target *target, const struct format *format, const char *path,
                     struct wm_error *err)
{
    struct wm_sub_tracking file;
    struct wm_sub_row row;

    int status = wm_sub_tracking_open(&file, path, err);
    if (status == WM_OK && (file.db != NULL) != (format->open == open_sqlite))
        status = wm_fail(err, WM_EFORMAT, "%s: not what its suffix says", file.path);
    while (status >= 0 && (status = wm_sub_tracking_next(&file, &row, err)) > 0)
        status = format->add(target, &row, err);
    wm_sub_tracking_close(&file);
    return status;
}

static int write_draft(struct target *target, const struct format *format,
                       const struct paths *files, struct wm_error *err)
{
    int status = format->open(target, err);

    for (size_t i = 0; i < files->count && status == WM_OK; i++)
        status = copy_rows(target, format, files->paths[i], err);
    if (status == WM_OK)
        status = format->finish(target, err);
    format->close(target);
    return status;
}

static int exists(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_EEXIST, "%s: there is a file already", wm_text_path(path));
}

/* Gives the draft its name, unless somebody else has taken that meanwhile. Not every file
 * system can do both in one step. */
static int put_in_place(const char *draft, const char *path, struct wm_error *err)
{
    struct stat info;

    int result = renameat2(AT_FDCWD, draft, AT_FDCWD, path, RENAME_NOREPLACE);
    if (result < 0 && (errno == EINVAL || errno == ENOSYS)) {
        if (lstat(path, &info) == 0)
            return exists(path, err);
        result = rename(draft, path);
    }
    if (result == 0)
        return WM_OK;
    return errno == EEXIST ? exists(path, err) : wm_fail_errno(err, wm_text_path(path));
}

static int combine(const char *path, const struct format *format, const struct paths *files,
                   struct wm_error *err)
{
    struct target target = { .shown = wm_text_path(path) };

    if (asprintf(&target.draft, "%s.%d-%lld.part", path, (int)getpid(),
                 (long long)wm_clock_monotonic_ns()) < 0)
        return out_of_memory(err);
    int fd = open(target.draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        int status = wm_fail_errno(err, target.shown);
        free(target.draft);
        return status;
    }
    close(fd);
    int status = write_draft(&target, format, files, err);
    if (status == WM_OK)
        status = put_in_place(target.draft, path, err);
    if (status < 0)
        unlink(target.draft);
    free(target.draft);
    return status;
}

int wm_calls_combine(const char *const *paths, size_t count, const char *target,
                     struct wm_error *err)
{
    const struct format *format = NULL;
    struct paths files = { 0 };
    struct stat info;

    int status = find_format(target, &format, err);
    if (status < 0)
        return status;
    if (lstat(target, &info) == 0)
        return exists(target, err);
    status = list_files(&files, paths, count, format, err);
    if (status == WM_OK)
        status = combine(target, format, &files, err);
    release_paths(&files);
    return status;
}
