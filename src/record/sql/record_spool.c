/* SPDX-License-Identifier: Apache-2.0 */
/* record_spool.c - where a run is kept that has yet to be delivered. */
#include "record/sql/record_pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_utf8.h"

static char *temporary_folder(void)
{
    char *folder = NULL;

    if (asprintf(&folder, "%s/wattmeter-%ld", wm_env_trusted("TMPDIR", "/tmp"),
                 (long)geteuid()) < 0)
        return NULL;
    return folder;
}

/* Where everybody can make folders, one of that name may be somebody else's. */
static bool is_private(const char *folder)
{
    struct stat info;

    return lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 077) == 0;
}

static bool is_usable(const char *folder)
{
    return faccessat(AT_FDCWD, folder, R_OK | W_OK | X_OK, AT_EACCESS) == 0;
}

int wm_spool_path(const char *name, char **ret_path, struct wm_error *err)
{
    char *path = NULL;
    bool usable = false;

    char *folder = wm_file_state_folder();
    if (folder) {
        wm_file_make_folders(folder, 0700);
        usable = is_usable(folder);
    }
    if (!usable) {
        free(folder);
        folder = temporary_folder();
        if (!folder)
            return wm_fail_memory(err, NULL);
        mkdir(folder, 0700);
        usable = is_usable(folder);
        if (usable && !is_private(folder)) {
            errno = EPERM;
            usable = false;
        }
    }

    int status = WM_OK;
    if (!usable)
        status = wm_fail(err, WM_EACCES,
                         "%s: no folder for the spool (%s); set XDG_STATE_HOME or TMPDIR",
                         wm_text_path(folder), wm_errno_text(errno));
    else if (asprintf(&path, "%s/%s.sqlite", folder, name) < 0)
        status = wm_fail_memory(err, NULL);
    else
        *ret_path = path;
    free(folder);
    return status;
}
