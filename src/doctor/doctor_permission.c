/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_permission.c - see doctor_permission.h. */
#include "doctor/doctor_permission.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"

/* Longer ones than these are no names that people can have. */
enum { NAME_SIZE = WM_PERMISSION_NAME_SIZE, PATTERN_SIZE = 512 };

void wm_permission_user(char *name, size_t size)
{
    struct passwd entry, *found = NULL;
    char room[4096];

    if (getpwuid_r(geteuid(), &entry, room, sizeof(room), &found) == 0 && found &&
        strlen(found->pw_name) < size)
        memcpy(name, found->pw_name, strlen(found->pw_name) + 1);
    else
        snprintf(name, size, "%u", (unsigned)geteuid());
}

static bool group_name(gid_t group, char *name, size_t size)
{
    struct group entry, *found = NULL;
    char room[4096];

    if (getgrgid_r(group, &entry, room, sizeof(room), &found) != 0 || !found ||
        strlen(found->gr_name) >= size)
        return false;
    memcpy(name, found->gr_name, strlen(found->gr_name) + 1);
    return true;
}

/* Asks, rather than opens: to open a GPU's file may wake the GPU. What is not refused
 * by the file's mode, such as a device by a container, no command here would change. */
static bool is_refused(const char *path, int access, struct stat *ret_info)
{
    return faccessat(AT_FDCWD, path, access, AT_EACCESS) != 0 && errno == EACCES &&
           stat(path, ret_info) == 0 && !S_ISDIR(ret_info->st_mode);
}

/* How a file is opened: to everybody, or to us alone. */
enum way { TO_ALL, TO_US };

static void advise_file(struct wm_advice *advice, const char *path, int access,
                        enum way way)
{
    bool write = access & W_OK;
    mode_t bits = write ? S_IRGRP | S_IWGRP : S_IRGRP;
    char problem[PATTERN_SIZE], group[NAME_SIZE], user[NAME_SIZE];
    struct stat info;

    if (!is_refused(path, access, &info))
        return;
    snprintf(problem, sizeof(problem), "%s may not be %s by this user", path,
             write ? "opened" : "read");
    wm_permission_user(user, sizeof(user));
    if ((info.st_mode & bits) == bits && info.st_gid != 0 &&
        group_name(info.st_gid, group, sizeof(group)))
        wm_advice_add(advice, problem, "sudo usermod -aG %s %s   # then log in again",
                      group, user);
    else if (way == TO_US)
        wm_advice_add(advice, problem, "sudo chown %s %s   # until the next start", user,
                      path);
    else
        wm_advice_add(advice, problem, "sudo chmod %s %s   # until the next start",
                      write ? "o+rw" : "o+r", path);
}

/* The folder itself, whatever stands in its name; false where it does not fit. */
static bool put_pattern(char *text, size_t size, const char *root, const char *pattern)
{
    size_t length = 0;

    for (const char *c = root; *c; c++) {
        if (length + 2 >= size)
            return false;
        if (strchr("*?[]\\", *c))
            text[length++] = '\\';
        text[length++] = *c;
    }
    return (size_t)snprintf(text + length, size - length, "/%s", pattern) < size - length;
}

/* Without memory for the search there is nothing found, which is no failure. */
static void find_files(const char *root, const char *pattern, glob_t *ret_found)
{
    char full[PATTERN_SIZE];

    *ret_found = (glob_t) { 0 };
    if (put_pattern(full, sizeof(full), root, pattern) &&
        glob(full, 0, NULL, ret_found) != 0) {
        globfree(ret_found);
        *ret_found = (glob_t) { 0 };
    }
}

static void advise_files(struct wm_advice *advice, const char *root, const char *pattern,
                         int access, enum way way)
{
    glob_t found;

    find_files(root, pattern, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        advise_file(advice, found.gl_pathv[i], access, way);
    globfree(&found);
}

void wm_permission_files(struct wm_advice *advice, const char *root, const char *pattern,
                         int access)
{
    advise_files(advice, root, pattern, access, TO_ALL);
}

void wm_permission_private_files(struct wm_advice *advice, const char *root,
                                 const char *pattern)
{
    advise_files(advice, root, pattern, R_OK, TO_US);
}

bool wm_permission_is_refused(const char *root, const char *pattern, int access)
{
    bool refused = false;
    struct stat info;
    glob_t found;

    find_files(root, pattern, &found);
    for (size_t i = 0; i < found.gl_pathc && !refused; i++)
        refused = is_refused(found.gl_pathv[i], access, &info);
    globfree(&found);
    return refused;
}

bool wm_permission_is_ours(const char *program)
{
    const char *file = strrchr(program, '/');

    return file && strcmp(file, "/wattmeter") == 0;
}

void wm_permission_capability(struct wm_advice *advice, const char *problem,
                              const char *name, const char *program)
{
    wm_advice_add(advice, problem,
                  wm_permission_is_ours(program) ? "sudo setcap %s %s" : NULL, name,
                  program);
}

bool wm_permission_is_paranoid(const char *procfs, int level)
{
    char path[PATTERN_SIZE], text[32] = "";
    int64_t now = 0;

    int length = snprintf(path, sizeof(path), "%s/sys/kernel/perf_event_paranoid", procfs);
    return length < (int)sizeof(path) &&
           wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
           wm_text_i64(text, NULL, &now) && now > level;
}
