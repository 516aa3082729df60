/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - finding and loading what comes with the command. */
#include "module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "wattmeter/version.h"

/* Relative ones are seen from the command's own folder. The version of Python is in the
 * name of its package folder. */
static const char *const folders[] = {
    ".", CMD_LIBRARY_FOLDER, "../lib*/python3*/*-packages/.wattmeter.mesonpy.libs",
    "../.wattmeter.mesonpy.libs", /* pip install --target */
};

static int open_own_folder(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path));

    if (length <= 0 || (size_t)length >= sizeof(path))
        return -1;
    while (length > 0 && path[length - 1] != '/')
        length--;
    path[length] = '\0';
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* With more rights than its user the command loads only what was installed with it: whoever
 * can put the command elsewhere, as by a hard link, must not choose its libraries. */
static bool is_trusted(const char *folder)
{
    return folder[0] == '/' || !getauxval(AT_SECURE);
}

/* The own folder goes by its descriptor: its path may look like a pattern. */
char *module_find(const char *library)
{
    int own = open_own_folder();
    char own_path[32], pattern[512];
    char *path = NULL;

    snprintf(own_path, sizeof(own_path), "/proc/self/fd/%d/", own);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !path; i++) {
        glob_t found = { 0 };
        if (!is_trusted(folders[i]))
            continue;
        snprintf(pattern, sizeof(pattern), "%s%s/%s", folders[i][0] == '/' ? "" : own_path,
                 folders[i], library);
        path = realpath(pattern, NULL);
        if (!path && glob(pattern, 0, NULL, &found) == 0)
            path = realpath(found.gl_pathv[0], NULL);
        globfree(&found);
    }
    if (own >= 0)
        close(own);
    return path;
}

/* One of another version would take our structs for its own. */
static const void *check_version(const void *symbol, const struct module_need *need,
                                 const char *path, const struct cmd_streams *io)
{
    const char *version = symbol ? *(const char *const *)symbol : "none";

    if (strcmp(version, WM_VERSION) == 0)
        return symbol;
    fprintf(io->chat, "wattmeter %s: %s is of another version (%s) than wattmeter (%s)\n",
            need->command, path, version, WM_VERSION);
    return NULL;
}

/* What cannot be loaded stands before the reason, which is in the user's language. */
static void report_lack(const struct module_need *need, const struct cmd_streams *io)
{
    const char *reason = dlerror();

    fprintf(io->chat, "wattmeter %s: needs %s: apt install %s (cannot load %.*s)\n",
            need->command, need->what, need->packages, (int)strcspn(reason, ":"), reason);
}

const void *module_load(const struct module_need *need, const struct cmd_streams *io)
{
    char *path = module_find(need->library);

    if (!path) {
        fprintf(io->chat,
                "wattmeter %s: there is no %s, neither beside wattmeter nor in %s; it is "
                "built where the headers of %s are\n",
                need->command, need->library, CMD_LIBRARY_FOLDER, need->what);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *found = NULL;
    if (library)
        found = check_version(dlsym(library, need->symbol), need, path, io);
    else
        report_lack(need, io);
    free(path);
    return found;
}
