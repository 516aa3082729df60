/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_proc_file.h - a file of /proc that is opened once and reread whole,
 * however long it is.
 *
 *     struct wm_proc_file stat = { 0 };
 *     if (wm_proc_file_open(&stat, "/proc", dir, "stat") == WM_OK &&
 *         wm_proc_file_read(&stat) == WM_OK)
 *         use(stat.text);
 *     wm_proc_file_close(&stat);
 */
#ifndef WM_SOURCE_PROC_FILE_H
#define WM_SOURCE_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"
#include "source/source_kernel_text.h"

struct wm_proc_file {
    char path[128]; /* for messages */
    bool is_open;
    int fd;
    char *text;
    size_t size;
    struct wm_error err; /* why the last read, or else the open, failed */
};

/* Opens `name` in the folder `dir`; `procfs` is what people call that folder.
 * WM_ENOMEM, or WM_OK: another failure waits in file->err for the first read. */
int wm_proc_file_open(struct wm_proc_file *file, const char *procfs, int dir,
                      const char *name);

/* Copes with all zero. */
void wm_proc_file_close(struct wm_proc_file *file);

/* The text of now is in file->text, ended by a NUL. Allocates only when it has
 * grown. */
int wm_proc_file_read(struct wm_proc_file *file);

/* For a text that its parser refused: fills in file->err and returns WM_EFORMAT. */
int wm_proc_file_fail_format(struct wm_proc_file *file);

/* Reads /proc/stat. cpus[0..*room), which grows to hold all that are online, has
 * what the cores did; where `cpus` is NULL only the sums are read. */
int wm_proc_file_read_stat(struct wm_proc_file *file, struct wm_cpu_ticks **cpus,
                           size_t *room, struct wm_proc_stat *ret_stat);

/* Reads the lines of the first CPU from a /proc/cpuinfo, and of few more: for each the
 * kernel may ask that CPU for its clock. False where they are missing or odd. */
bool wm_proc_cpuinfo(int dir, const char *path, struct wm_cpuinfo *ret_cpuinfo);

#endif
