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

#include "base/base_array.h"
#include "base/text/base_out.h"
#include "base/text/base_utf8.h"
#include "record/calls/record_calls.h"
#include "record/calls/record_sub_tracking.h"
#include "record/record_target.h"
#include "record/sql/record_sql.h"
#include "region/mark/region_file.h"

struct source {
    char *path;
    dev_t device;
    ino_t inode;
};

/* What is to be joined, and who is told of what is not. */
struct sources {
    struct source *list;
    size_t count, room;
    const struct format *format;
    void (*tell)(void *opaque, const char *remark);
    void *opaque;
    const volatile sig_atomic_t *stop;
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

static int open_csv(struct target *target, struct wm_error *err)
{
    int status = wm_out_open(&target->out, target->draft, err);
    target->out.path = target->shown;
    if (status < 0)
        return status;
    wm_out_text(&target->out, WM_REGION_FILE_HEADER "\n");
    return WM_OK;
}

static int add_csv(struct target *target, const struct wm_sub_row *row,
                   struct wm_error *err)
{
    (void)err;

    for (int i = 0; i < WM_SUB_COLUMNS; i++) {
        wm_out_text(&target->out, i > 0 ? "," : "");
        wm_out_cell(&target->out, row->cells[i].text, row->cells[i].length);
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
    char name[4096];

    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(target->draft, name), &target->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(target->db, result, target->shown, err);
    status =
        wm_sql_exec(target->db, "PRAGMA journal_mode = OFF; BEGIN;" WM_REGION_FILE_CREATE,
                    target->shown, err);
    return status < 0 ? status
                      : wm_sql_prepare(target->db, WM_REGION_FILE_INSERT, target->shown,
                                       &target->insert, err);
}

static int add_sqlite(struct target *target, const struct wm_sub_row *row,
                      struct wm_error *err)
{
    const struct wm_region_row copy = {
        .process = row->process,
        .name = row->name,
        .name_length = strlen(row->name),
        .is_stop = row->is_stop,
        .when_s = row->seconds,
    };

    wm_region_row_bind(&copy, target->insert);
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

static void tell(const struct sources *sources, const char *remark)
{
    if (sources->tell)
        sources->tell(sources->opaque, remark);
}

static int open_source(struct wm_sub_tracking *file, const char *path,
                       const struct format *format, struct wm_error *err)
{
    int status = wm_sub_tracking_open(file, path, err);

    if (status == WM_OK && (file->db != NULL) != (format->open == open_sqlite))
        status = wm_fail(err, WM_EFORMAT, "%s: not what its suffix says", file->path);
    return status;
}

static int add_source(struct sources *sources, const char *path, const struct stat *info,
                      struct wm_error *err)
{
    for (size_t i = 0; i < sources->count; i++) {
        const struct source *other = &sources->list[i];
        if (other->device == info->st_dev && other->inode == info->st_ino)
            return wm_fail(err, WM_EINVAL, "%s: is given twice", wm_text_path(path));
    }
    if (wm_array_reserve(&sources->list, sources->count, &sources->room,
                         sizeof(*sources->list)) < 0)
        return out_of_memory(err);
    char *copy = strdup(path);
    if (!copy)
        return out_of_memory(err);
    sources->list[sources->count++] = (struct source) { copy, info->st_dev, info->st_ino };
    return WM_OK;
}

static void release_sources(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        free(sources->list[i].path);
    free(sources->list);
}

static int add_file(struct sources *sources, const char *path, struct wm_error *err)
{
    const char *suffix = sources->format->suffix;
    struct stat info;

    if (!has_suffix(path, suffix))
        return wm_fail(err, WM_EINVAL, "%s: does not end in %s, as the new file does",
                       wm_text_path(path), suffix);
    if (stat(path, &info) < 0)
        return wm_fail_errno(err, wm_text_path(path));
    return add_source(sources, path, &info, err);
}

/* A file in a folder that nobody has named: 1 where it is a sub-tracking file, or 0 and
 * the reason. */
static int is_source(const char *path, const char *name, const struct format *format,
                     struct stat *ret_info, struct wm_error *err)
{
    struct wm_sub_tracking file;
    struct wm_error trouble;
    const char *why = NULL;

    if (name[0] == '.')
        why = "is hidden";
    else if (stat(path, ret_info) < 0)
        why = "leads nowhere";
    else if (!S_ISREG(ret_info->st_mode))
        why = S_ISDIR(ret_info->st_mode) ? "is a folder" : "is no file";
    else if (!has_suffix(path, format->suffix))
        why = "does not end as the new file does";
    if (why) {
        wm_fail(err, WM_EFORMAT, "left out: %s: %s", wm_text_path(path), why);
        return 0;
    }
    int status = open_source(&file, path, format, &trouble);
    wm_sub_tracking_close(&file);
    if (status == WM_EFORMAT)
        wm_fail(err, WM_EFORMAT, "left out: %s", trouble.text);
    else if (status < 0)
        *err = trouble;
    return status == WM_OK ? 1 : status == WM_EFORMAT ? 0 : status;
}

static int add_from_folder(struct sources *sources, const char *folder, const char *name,
                           struct wm_error *err)
{
    struct wm_error why = { .text = "" };
    struct stat info;
    char *path;

    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return out_of_memory(err);
    int status = is_source(path, name, sources->format, &info, &why);
    if (status > 0)
        status = add_source(sources, path, &info, err);
    else if (status == 0)
        tell(sources, why.text);
    else if (err)
        *err = why;
    free(path);
    return status;
}

static int is_named(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct sources *sources, const char *folder, struct wm_error *err)
{
    struct dirent **entries;
    int status = WM_OK;

    int count = scandir(folder, &entries, is_named, by_name);
    if (count < 0)
        return wm_fail_errno(err, wm_text_path(folder));
    for (int i = 0; i < count; i++) {
        if (status >= 0)
            status = add_from_folder(sources, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return status < 0 ? status : WM_OK;
}

/* The files that the caller's paths stand for. */
static int list_sources(struct sources *sources, const char *const *paths, size_t count,
                        struct wm_error *err)
{
    struct stat info;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode))
            status = add_folder(sources, paths[i], err);
        else
            status = add_file(sources, paths[i], err);
    }
    if (status == WM_OK && sources->count == 0)
        return wm_fail(err, WM_EINVAL,
                       "there are no files to combine: no sub-tracking file that ends in "
                       "%s, as the new one does",
                       sources->format->suffix);
    return status;
}

static int copy_rows(struct target *target, const struct sources *sources, const char *path,
                     struct wm_error *err)
{
    struct wm_sub_tracking file;
    struct wm_sub_row row;

    int status = open_source(&file, path, sources->format, err);
    while (status >= 0 && (status = wm_sub_tracking_next(&file, &row, err)) > 0) {
        if (sources->stop && *sources->stop)
            status = wm_fail(err, WM_ECANCELED, "%s: interrupted", target->shown);
        else
            status = sources->format->add(target, &row, err);
    }
    for (size_t i = 0; i < file.remarks.count; i++)
        tell(sources, file.remarks.all[i]);
    wm_sub_tracking_close(&file);
    return status;
}

static int write_draft(struct target *target, const struct sources *sources,
                       struct wm_error *err)
{
    const struct format *format = sources->format;
    int status = format->open(target, err);

    for (size_t i = 0; i < sources->count && status == WM_OK; i++)
        status = copy_rows(target, sources, sources->list[i].path, err);
    if (status == WM_OK)
        status = format->finish(target, err);
    format->close(target);
    return status;
}

static int combine(const char *path, const struct sources *sources, struct wm_error *err)
{
    struct target target = { .shown = wm_text_path(path) };

    target.draft = wm_target_draft_name(path);
    if (!target.draft)
        return out_of_memory(err);
    int fd = open(target.draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        int status = wm_fail_errno(err, target.shown);
        free(target.draft);
        return status;
    }
    close(fd);
    int status = write_draft(&target, sources, err);
    if (status == WM_OK)
        status = wm_target_give_name(target.draft, path, err);
    if (status < 0)
        unlink(target.draft);
    free(target.draft);
    return status;
}

int wm_calls_combine(const char *const *paths, size_t count, const char *target,
                     void (*tell_person)(void *opaque, const char *remark), void *opaque,
                     const volatile sig_atomic_t *stop, struct wm_error *err)
{
    struct sources sources = { .tell = tell_person, .opaque = opaque, .stop = stop };
    struct stat info;

    int status = find_format(target, &sources.format, err);
    if (status < 0)
        return status;
    if (lstat(target, &info) == 0)
        return wm_fail(err, WM_EEXIST, "%s: there is a file already", wm_text_path(target));
    status = list_sources(&sources, paths, count, err);
    if (status == WM_OK)
        status = combine(target, &sources, err);
    release_sources(&sources);
    return status;
}
