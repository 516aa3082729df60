/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_target.h - the file, or what a URL names, that a recording is written to.
 *
 * A file of somebody else is never touched. One that is to be replaced is set
 * aside and comes back unless wm_target_keep() says that the new recording has
 * become one; the new one is removed in that case. Where a URL leads is the
 * format's own business.
 */
#ifndef WM_RECORD_TARGET_H
#define WM_RECORD_TARGET_H

#include <sys/types.h>

#include "record/record_ops.h"

struct wm_target {
    const struct wm_recorder_ops *ops;
    void *state; /* of `ops` */
    char *path;  /* of the file, also where the target is a folder; what a URL is called */
    char *aside; /* where the file that was here is meanwhile; or NULL */
    char *whole; /* what the file is called once it is whole; NULL: as it is */
    bool replaces;    /* the file of that name */
    bool made;        /* the file is ours, to be removed unless it is kept */
    bool made_folder; /* the folder is ours, to be removed unless it is kept */
    bool has_lock;
    int lock; /* the file, locked, open longer than `state` */
    dev_t device;
    ino_t inode;
    off_t begun_size; /* once `state` was open */
};

/* Whether wm_target_open() may succeed, as far as can be said without touching
 * anything. */
int wm_target_check(const struct wm_recorder_ops *ops, const char *path,
                    enum wm_record_mode mode, struct wm_error *err);

/* Opens a recorder on the file at `path`. On failure there is nothing to
 * close, and everything is as it was before. */
int wm_target_open(struct wm_target *ret_target, const struct wm_recorder_ops *ops,
                   const char *path, enum wm_record_mode mode, const struct wm_run *run,
                   const struct wm_channel *channels, size_t count, struct wm_error *err);

/* The same for what is of use as a whole alone: a new file is written beside its place,
 * under another name, so that neither a failure nor a kill leaves half of one there, and
 * one that is replaced stays until then. One that a run is added to is as it was after a
 * failure, where the format can do that. wm_target_finish() is due. */
int wm_target_open_draft(struct wm_target *ret_target, const struct wm_recorder_ops *ops,
                         const char *path, enum wm_record_mode mode,
                         const struct wm_run *run, const struct wm_channel *channels,
                         size_t count, struct wm_error *err);

/* Closes it. Where `status`, that of the writing, is WM_OK the file gets its name and
 * stays, otherwise it goes. The status of both. */
int wm_target_finish(struct wm_target *target, int status, struct wm_error *err);

/* The new recording stays, whatever comes. */
void wm_target_keep(struct wm_target *target);

/* The new recording goes after all, on wm_target_close(). */
void wm_target_discard(struct wm_target *target);

/* Whether the path still leads to the file that is being written. WM_ECANCELED: another
 * program has moved the file, and writing goes on at its new place. */
int wm_target_verify(const struct wm_target *target, struct wm_error *err);

void wm_target_close(struct wm_target *target);

#endif
