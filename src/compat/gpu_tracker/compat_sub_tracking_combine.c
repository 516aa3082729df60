/* SPDX-License-Identifier: Apache-2.0 */
/* compat_sub_tracking_combine.c - sub-tracking files joined into a new one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_array.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "compat/gpu_tracker/compat_sub_tracking_write.h"
#include "wattmeter/analysis.h"

struct source {
    char *path;
    dev_t device;
    ino_t inode;
};

/* What is to be joined, and who is told of what is not. */
struct sources {
    struct source *list;
    size_t count, room;
    const char *suffix; /* of all of them, and of the new file */
    const char *shown;  /* the new file, in messages */
    void (*tell)(void *opaque, const char *remark);
    void *opaque;
    const volatile sig_atomic_t *stop;
};

static void tell(const struct sources *sources, const char *remark)
{
    if (sources->tell)
        sources->tell(sources->opaque, remark);
}

static int open_source(struct wm_sub_tracking *file, const char *path, const char *suffix,
                       struct wm_error *err)
{
    int status = wm_sub_tracking_open(file, path, err);

    if (status == WM_OK && (file->db != NULL) != (strcmp(suffix, ".sqlite") == 0))
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
        return wm_fail_memory(err, NULL);
    char *copy = strdup(path);
    if (!copy)
        return wm_fail_memory(err, NULL);
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
    const char *suffix = sources->suffix;
    struct stat info;

    if (!wm_text_ends(path, suffix))
        return wm_fail(err, WM_EINVAL, "%s: does not end in %s, as the new file does",
                       wm_text_path(path), suffix);
    if (stat(path, &info) < 0)
        return wm_fail_errno(err, wm_text_path(path));
    return add_source(sources, path, &info, err);
}

/* Why a file of that name in a folder is none to be joined, as far as can be seen from
 * outside; NULL: it may be. */
static const char *why_not(const char *path, const char *name, const char *suffix,
                           struct stat *ret_info)
{
    if (name[0] == '.')
        return "is hidden";
    if (stat(path, ret_info) < 0)
        return "leads nowhere";
    if (S_ISDIR(ret_info->st_mode))
        return "is a folder";
    if (!S_ISREG(ret_info->st_mode))
        return "is no file";
    return wm_text_ends(path, suffix) ? NULL : "does not end as the new file does";
}

/* A file in a folder that nobody has named: what is no sub-tracking file is left out. */
static int add_from_folder(struct sources *sources, const char *path, const char *name,
                           struct wm_error *err)
{
    struct wm_error trouble, remark;
    struct wm_sub_tracking file;
    struct stat info;
    int status;

    const char *why = why_not(path, name, sources->suffix, &info);
    if (why) {
        status = wm_fail(&trouble, WM_EFORMAT, "%s: %s", wm_text_path(path), why);
    } else {
        status = open_source(&file, path, sources->suffix, &trouble);
        wm_sub_tracking_close(&file);
    }
    if (status == WM_OK)
        return add_source(sources, path, &info, err);
    if (status != WM_EFORMAT)
        return wm_fail(err, status, "%s", trouble.text);
    wm_fail(&remark, status, "left out: %s", trouble.text);
    tell(sources, remark.text);
    return WM_OK;
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
    char *path;

    int count = scandir(folder, &entries, is_named, by_name);
    if (count < 0)
        return wm_fail_errno(err, wm_text_path(folder));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (status == WM_OK && asprintf(&path, "%s/%s", folder, name) < 0) {
            status = wm_fail_memory(err, NULL);
        } else if (status == WM_OK) {
            status = add_from_folder(sources, path, name, err);
            free(path);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
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
                       sources->suffix);
    return status;
}

static int copy_rows(struct wm_target *target, const struct sources *sources,
                     const char *path, struct wm_error *err)
{
    struct wm_sub_tracking file;
    struct wm_sub_row row = { 0 };

    int status = open_source(&file, path, sources->suffix, err);
    while (status >= 0 && (status = wm_sub_tracking_next(&file, &row, err)) > 0) {
        if (sources->stop && *sources->stop)
            status = wm_fail(err, WM_ECANCELED, "%s: interrupted", sources->shown);
        else
            status = wm_sub_target_row(target, &row, err);
    }
    for (size_t i = 0; i < file.remarks.count; i++)
        tell(sources, file.remarks.all[i]);
    wm_sub_tracking_close(&file);
    return status;
}

static int write_target(const char *path, const struct sources *sources,
                        struct wm_error *err)
{
    struct wm_target target;

    int status = wm_sub_target_open(&target, path, WM_RECORD_NEW, "\n", err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < sources->count && status == WM_OK; i++)
        status = copy_rows(&target, sources, sources->list[i].path, err);
    return wm_sub_target_finish(&target, status, err);
}

int wm_sub_tracking_combine(const char *const *paths, size_t count, const char *target,
                            void (*tell_person)(void *opaque, const char *remark),
                            void *opaque, const volatile sig_atomic_t *stop,
                            struct wm_error *err)
{
    struct sources sources = {
        .suffix = wm_sub_target_suffix(target, err),
        .shown = wm_text_path(target),
        .tell = tell_person,
        .opaque = opaque,
        .stop = stop,
    };
    struct stat info;

    if (!sources.suffix)
        return WM_EINVAL;
    if (lstat(target, &info) == 0)
        return wm_fail(err, WM_EEXIST, "%s: there is a file already", sources.shown);
    int status = list_sources(&sources, paths, count, err);
    if (status == WM_OK)
        status = write_target(target, &sources, err);
    release_sources(&sources);
    return status;
}
