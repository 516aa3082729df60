/* SPDX-License-Identifier: Apache-2.0 */
/* compat_aipm_beside.c - the other files in the folder of a recording. */
#include "compat/aipowermeter/compat_aipm_beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_out.h"
#include "base/text/base_utf8.h"

enum { FILE_MAX = 16 * 1024 * 1024 };

static int out_of_memory(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", wm_text_path(path));
}

char *wm_beside_path(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    char *result = NULL;

    if (asprintf(&result, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name) < 0)
        return NULL;
    return result;
}

int wm_beside_read(const char *path, const char *name, char **ret_text, size_t *ret_length,
                   struct wm_error *err)
{
    char *beside = wm_beside_path(path, name);

    *ret_text = NULL;
    *ret_length = 0;
    if (!beside)
        return out_of_memory(path, err);
    int status = wm_file_slurp(beside, FILE_MAX, ret_text, ret_length, NULL);
    free(beside);
    return status == WM_ENOMEM ? out_of_memory(path, err) : WM_OK;
}

/* As open() would have made it: mkostemp() keeps everybody else out. The mask of a
 * process cannot be asked for without changing it; that of a file that was there before
 * says what is wanted, else a file of the recording does. */
static void open_up(int fd, const char *path, const char *name)
{
    struct stat info;

    if (stat(name, &info) == 0 || stat(path, &info) == 0) {
        int ignored = fchmod(fd, info.st_mode & 0666);
        (void)ignored;
    }
}

static int write_text(const char *name, const char *text, struct wm_error *err)
{
    struct wm_out out;

    int status = wm_out_open(&out, name, err);
    if (status == WM_OK) {
        wm_out_text(&out, text);
        status = wm_out_flush(&out, err);
    }
    wm_out_close(&out);
    return status;
}

int wm_beside_write(const char *path, const char *name, const char *text,
                    struct wm_error *err)
{
    char *old = wm_beside_path(path, name), *new = NULL;
    int status = WM_OK;

    /* One that a kill has left behind is in nobody's way. */
    if (!old || asprintf(&new, "%s.XXXXXX", old) < 0) {
        free(old);
        return out_of_memory(path, err);
    }
    int fd = mkostemp(new, O_CLOEXEC);
    if (fd < 0) {
        status = wm_fail_errno(err, wm_text_path(old));
        goto out;
    }
    open_up(fd, path, old);
    close(fd);
    status = write_text(new, text, err);
    if (status == WM_OK && rename(new, old) < 0)
        status = wm_fail_errno(err, wm_text_path(old));
    if (status < 0)
        unlink(new);

out:
    free(new);
    free(old);
    return status;
}
