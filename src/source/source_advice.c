/* SPDX-License-Identifier: Apache-2.0 */
/* source_advice.c - commands that can be typed as they stand, and permissions that this
 * process lacks. */
#include "source/source_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"

/* A command that is being put together. */
struct line {
    char *text;
    size_t length, size;
    bool is_whole;
};

static void put(struct line *line, const char *bytes, size_t count)
{
    if (count >= line->size - line->length)
        line->is_whole = false;
    if (!line->is_whole)
        return;
    memcpy(line->text + line->length, bytes, count);
    line->length += count;
    line->text[line->length] = '\0';
}

/* Nobody can type control characters or what is no UTF-8, and a word that begins
 * with '-' would be an option. */
static bool can_be_typed(const char *word)
{
    size_t size = strlen(word) + 1;
    char copy[WM_ADVICE_SIZE];

    if (size > sizeof(copy))
        return false;
    memcpy(copy, word, size);
    wm_text_clean(copy);
    return word[0] && word[0] != '-' && strcmp(copy, word) == 0;
}

static void put_word(struct line *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./:@%+,-";
    size_t length = strlen(word);

    line->is_whole &= can_be_typed(word);
    if (strspn(word, plain) == length) {
        put(line, word, length);
        return;
    }
    put(line, "'", 1);
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            put(line, "'\\''", 4);
        else
            put(line, c, 1);
    }
    put(line, "'", 1);
}

static void put_command(struct line *line, const char *format, va_list words)
{
    const char *word;

    while ((word = strstr(format, "%s")) != NULL) {
        put(line, format, (size_t)(word - format));
        put_word(line, va_arg(words, const char *));
        format = word + 2;
    }
    put(line, format, strlen(format));
}

static bool is_given(const struct wm_advice *advice, const char *command)
{
    for (size_t i = 0; i < advice->count; i++) {
        if (advice->list[i].command && strcmp(advice->list[i].command, command) == 0)
            return true;
    }
    return false;
}

void wm_advice_add(struct wm_advice *advice, const char *problem, const char *command, ...)
{
    va_list words;

    if (advice->count == WM_ADVICE_MAX)
        return;
    char *text = advice->texts[advice->count].problem;
    struct line line = { .text = advice->texts[advice->count].command,
                         .size = WM_ADVICE_SIZE,
                         .is_whole = command != NULL };

    snprintf(text, WM_ADVICE_SIZE, "%s", problem);
    wm_text_clean(text);
    va_start(words, command);
    if (command)
        put_command(&line, command, words);
    va_end(words);
    if (line.is_whole && is_given(advice, line.text))
        return;
    advice->list[advice->count++] =
        (struct wm_doctor_advice) { text, line.is_whole ? line.text : NULL };
}

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

void wm_permission_group(char *name, size_t size)
{
    if (!group_name(getegid(), name, size))
        snprintf(name, size, "%u", (unsigned)getegid());
}

/* Asks, rather than opens: to open a GPU's file may wake the GPU. What is not refused
 * by the file's mode, such as a device by a container, no command here would change. */
static bool is_refused(const char *path, int access, struct stat *ret_info)
{
    return faccessat(AT_FDCWD, path, access, AT_EACCESS) != 0 && errno == EACCES &&
           stat(path, ret_info) == 0 && !S_ISDIR(ret_info->st_mode);
}

static void advise_file(struct wm_advice *advice, const char *path,
                        enum wm_source_file_kind kind)
{
    bool write = kind == WM_SOURCE_DEVICE;
    mode_t bits = write ? S_IRGRP | S_IWGRP : S_IRGRP;
    char problem[PATTERN_SIZE], group[NAME_SIZE], user[NAME_SIZE];
    struct stat info;

    if (!is_refused(path, write ? R_OK | W_OK : R_OK, &info))
        return;
    snprintf(problem, sizeof(problem), "%s may not be %s by this user", path,
             write ? "opened" : "read");
    wm_permission_user(user, sizeof(user));
    if ((info.st_mode & bits) == bits && info.st_gid != 0 &&
        group_name(info.st_gid, group, sizeof(group)))
        wm_advice_add(advice, problem, "sudo usermod -aG %s %s   # then log in again",
                      group, user);
    else if (kind == WM_SOURCE_COUNTER)
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

void wm_permission_files(struct wm_advice *advice, const char *sysfs,
                         const struct wm_source_file *file)
{
    glob_t found;

    find_files(file->kind == WM_SOURCE_DEVICE ? "/dev" : sysfs, file->pattern, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        advise_file(advice, found.gl_pathv[i], file->kind);
    globfree(&found);
}

bool wm_permission_is_refused(const char *root, const char *pattern)
{
    bool refused = false;
    struct stat info;
    glob_t found;

    find_files(root, pattern, &found);
    for (size_t i = 0; i < found.gl_pathc && !refused; i++)
        refused = is_refused(found.gl_pathv[i], R_OK, &info);
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
    char group[NAME_SIZE];

    wm_permission_group(group, sizeof(group));
    wm_advice_add(advice, problem,
                  wm_permission_is_ours(program)
                      ? "sudo chgrp %s %s && sudo chmod o= %s && sudo setcap %s %s"
                      : NULL,
                  group, program, program, name, program);
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

void wm_permission_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);

    path[length > 0 && (size_t)length < size ? length : 0] = '\0';
}
