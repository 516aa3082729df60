/* SPDX-License-Identifier: Apache-2.0 */
/* source_proc_file.c - files of /proc that are kept open. */
#include "source/source_proc_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"

#define FIRST_TEXT_SIZE ((size_t)8192)

/* /proc/stat has some 50 bytes per core and 2 to 12 per interrupt; the largest
 * machines stay well below a megabyte. */
#define MAX_TEXT_SIZE ((size_t)16 << 20)

static int grow_text(struct wm_proc_file *file)
{
    size_t size = file->size ? file->size * 2 : FIRST_TEXT_SIZE;
    if (size > MAX_TEXT_SIZE)
        return wm_fail(&file->err, WM_EFORMAT, "%s: larger than %zu bytes", file->path,
                       MAX_TEXT_SIZE);

    char *text = realloc(file->text, size);
    if (!text)
        return wm_fail_memory(&file->err, file->path);
    file->text = text;
    file->size = size;
    return WM_OK;
}

int wm_proc_file_open(struct wm_proc_file *file, const char *procfs, int dir,
                      const char *name)
{
    snprintf(file->path, sizeof(file->path), "%s/%s", procfs, name);

    int fd = wm_file_open_at(dir, name);
    if (fd < 0) {
        errno = -fd;
        wm_fail_errno(&file->err, file->path);
        return WM_OK;
    }
    file->fd = fd;
    file->is_open = true;
    return grow_text(file);
}

void wm_proc_file_close(struct wm_proc_file *file)
{
    if (file->is_open)
        close(file->fd);
    free(file->text);
}

int wm_proc_file_read(struct wm_proc_file *file)
{
    if (!file->is_open)
        return file->err.status;

    for (;;) {
        ssize_t length = wm_file_reread(file->fd, file->text, file->size);
        if (length < 0) {
            errno = (int)-length;
            return wm_fail_errno(&file->err, file->path);
        }
        if ((size_t)length + 1 < file->size)
            return WM_OK;

        int status = grow_text(file);
        if (status < 0)
            return status;
    }
}

int wm_proc_file_fail_format(struct wm_proc_file *file)
{
    return wm_fail(&file->err, WM_EFORMAT, "%s: not what the kernel writes", file->path);
}

int wm_proc_file_read_stat(struct wm_proc_file *file, struct wm_cpu_ticks **cpus,
                           size_t *room, struct wm_proc_stat *ret_stat)
{
    int status = wm_proc_file_read(file);
    if (status < 0)
        return status;

    if (wm_parse_proc_stat(file->text, cpus ? *cpus : NULL, cpus ? *room : 0, ret_stat) < 0)
        return wm_proc_file_fail_format(file);
    if (!cpus || ret_stat->cpu_count <= *room)
        return WM_OK;

    /* The first time, and when cores came online since. */
    struct wm_cpu_ticks *more = realloc(*cpus, ret_stat->cpu_count * sizeof(*more));
    if (!more)
        return wm_fail_memory(&file->err, file->path);
    *cpus = more;
    *room = ret_stat->cpu_count;
    return wm_parse_proc_stat(file->text, *cpus, *room, ret_stat);
}

static bool has_empty_line(const char *text)
{
    while ((text = strchr(text, '\n')) != NULL && text[1] != '\n')
        text++;
    return text != NULL;
}

bool wm_proc_cpuinfo(int dir, const char *path, struct wm_cpuinfo *ret_cpuinfo)
{
    enum { STEP = 1024 }; /* a read gives at least one CPU's lines */
    char text[8 * STEP];
    size_t length = 0;
    ssize_t got = 1;

    int fd = wm_file_open_at(dir, path);
    if (fd < 0)
        return false;
    text[0] = '\0';
    while (got > 0 && length + STEP < sizeof(text) && !has_empty_line(text)) {
        got = read(fd, text + length, STEP);
        length += got > 0 ? (size_t)got : 0;
        text[length] = '\0';
    }
    close(fd);
    return wm_parse_cpuinfo(text, ret_cpuinfo) == WM_OK;
}
