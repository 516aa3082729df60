/* SPDX-License-Identifier: Apache-2.0 */
/* base_file.h - small files that are read again and again, and the environment. */
#ifndef WM_BASE_FILE_H
#define WM_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_error.h"

/* Opens for reading, close-on-exec, relative to `dir` (a descriptor or
 * AT_FDCWD). A negative errno value on failure: most callers treat a missing
 * file as an answer and want no text for it. */
int wm_file_open_at(int dir, const char *path);

/* Reads from offset 0 what fits into text[0..size-1) and ends it with a NUL:
 * there the kernel renders /proc and /sys files anew, so one open file lasts a
 * whole run. One system call: for files that the kernel renders in one piece,
 * which all of fixed form are; a list may come in several. The length without
 * the NUL, or a negative errno value. */
ssize_t wm_file_reread(int fd, char *text, size_t size);

/* Opens, reads up to the end or to `size`, and closes; returns as above. */
ssize_t wm_file_read_at(int dir, const char *path, char *text, size_t size);

/* The first line of a small file, as sysfs has them, without the blanks around it and
 * as valid UTF-8. False, with `line` empty, where there is no such file or nothing in
 * its first line. */
bool wm_file_read_line(int dir, const char *path, char *line, size_t size);

/* The last name in the target of a link, "" where there is none. */
void wm_file_link_name(int dir, const char *path, char *name, size_t size);

/* Opens a folder for readdir(), close-on-exec, and by a descriptor of its own, so that
 * "." reads `dir` from its start. NULL, with errno set, where there is none; to be
 * closed with closedir(). */
DIR *wm_file_open_folder(int dir, const char *path);

/* Reads a whole file of at most `limit` bytes into new memory, NUL-terminated.
 * The caller frees it. WM_EFORMAT when it is larger. */
int wm_file_slurp(const char *path, size_t limit, char **ret_text, size_t *ret_length,
                  struct wm_error *err);

/* Reads what fits into head[0..size) from the start of a regular file, by which its format
 * is told; WM_EFORMAT when it is of another kind. */
int wm_file_head(const char *path, char *head, size_t size, size_t *ret_length,
                 struct wm_error *err);

/* How long a file this process may make: beyond that it gets a signal (SIGXFSZ), which a
 * program that is measured is not to have from us. */
uint64_t wm_file_size_limit(void);

/* Whether two paths lead to the same file or folder. */
bool wm_file_is_same(const char *path, const char *other);

/* How much of `path` is its folder, with the last slash; 0: the working directory. */
size_t wm_file_folder_length(const char *path);

/* A new file is written under another name, and gets its own when it is whole:
 *
 *     wm_file_make_draft(path, &draft, err);
 *     status = write_all(draft, err);
 *     if (status == WM_OK)
 *         status = wm_file_give_name(draft, path, err);
 *     if (status < 0)
 *         unlink(draft);
 *     free(draft);
 *
 * Such a name: in the folder of `path`, and short enough for any. The caller's to free;
 * NULL when out of memory. */
char *wm_file_draft_name(const char *path);

/* Makes an empty one, which nobody else has, and its name, the caller's to free. */
int wm_file_make_draft(const char *path, char **ret_draft, struct wm_error *err);

/* Gives it the name, unless somebody else has taken that meanwhile. */
int wm_file_give_name(const char *draft, const char *path, struct wm_error *err);

/* Writes that file in place of whatever has the name, in one step, and waits until the disk
 * has it, so that it is the old one or the new one even after a power cut. */
int wm_file_replace(const char *path, const char *text, size_t length,
                    struct wm_error *err);

/* Writes a setting into a file of sysfs; `shown` is the path for messages. */
int wm_file_set(int dir, const char *path, const char *shown, const char *text,
                struct wm_error *err);

/* The user's own folder for what is kept between runs, the caller's to free; NULL where
 * there is none to speak of, or no memory. */
char *wm_file_state_folder(void);

/* Makes a folder with those above it. What is wrong with one of them shows when the folder
 * is used. */
void wm_file_make_folders(char *folder, unsigned mode);

/* The value of an environment variable, or `otherwise` where it is unset or
 * empty. Borrowed; the one place that reads the environment. */
const char *wm_env(const char *name, const char *otherwise);

/* The same for a variable that names a library, a folder or a file. A process with more
 * rights than its user (set-ID, file capabilities) gets `otherwise`, as the user could make
 * it load code or read files with these rights. */
const char *wm_env_trusted(const char *name, const char *otherwise);

/* All of it, as "NAME=value" texts, ended by NULL. Borrowed. */
char *const *wm_env_all(void);

#endif
