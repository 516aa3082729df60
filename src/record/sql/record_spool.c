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

#include "base/base_file.h"
#include "base/text/base_utf8.h"

/* NULL where there is no such folder to speak of, or no memory. */
static char *state_folder(void)
{
    const char *base = wm_env("XDG_STATE_HOME", NULL), *home = wm_env("HOME", NULL);
    char *folder = NULL;

    if (base && base[0] == '/')
        return asprintf(&folder, "%s/wattmeter", base) < 0 ? NULL : folder;
    if (home && home[0] == '/')
        return asprintf(&folder, "%s/.local/state/wattmeter", home) < 0 ? NULL : folder;
    return NULL;
}

static char *temporary_folder(void)
{
    char *folder = NULL;

    if (asprintf(&folder, "%s/wattmeter-%ld", wm_env("TMPDIR", "/tmp"), (long)geteuid()) <
        0)
        return NULL;
    return folder;
}

/* With the folders above it. What is wrong with one of them shows at the last. */
static void make_folders(char *folder)
{
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
    mkdir(folder, 0700);
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

    char *folder = state_folder();
    if (folder) {
        make_folders(folder);
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
    char reason[96];
    if (!usable)
        status = wm_fail(err, WM_EACCES,
                         "%s: no folder for the spool (%s); set XDG_STATE_HOME or TMPDIR",
                         wm_text_path(folder), strerror_r(errno, reason, sizeof(reason)));
    else if (asprintf(&path, "%s/%s.sqlite", folder, name) < 0)
        status = wm_fail_memory(err, NULL);
    else
        *ret_path = path;
    free(folder);
    return status;
}
