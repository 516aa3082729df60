/* SPDX-License-Identifier: Apache-2.0 */
/* cap_journal.c - entries as small JSON files, and locks. */
#include "cap/cap_journal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_json.h"

/* Files that a folder has at most: settings of a machine, twice. */
enum { VERSION = 1, ENTRY_MAX = 8192, FILES_MAX = 256 };

static const char ending[] = ".json";

static const char root_folder[] = "/var/lib/wattmeter/caps";

/* Where everybody can make a folder, and find those of the others. */
static const char users_folder[] = "/var/tmp", user_prefix[] = "wattmeter-caps-";

/* Where this user keeps the journal, the caller's to free. */
static char *journal_folder(void)
{
    const char *given = wm_env_trusted("WATTMETER_STATE", NULL);
    char *folder;

    if (given || geteuid() == 0)
        return strdup(given ? given : root_folder);
    if (asprintf(&folder, "%s/%s%lu", users_folder, user_prefix, (unsigned long)geteuid()) <
        0)
        return NULL;
    return folder;
}

/* Where everybody can make folders, one of that name may be somebody else's. */
static int check_folder(const char *folder, struct wm_error *err)
{
    struct stat info;

    if (geteuid() == 0 || wm_env_trusted("WATTMETER_STATE", NULL) ||
        lstat(folder, &info) != 0 || (S_ISDIR(info.st_mode) && info.st_uid == geteuid()))
        return WM_OK;
    return wm_fail(err, WM_EACCES,
                   "%s: the journal of caps cannot be there, as it is somebody else's; "
                   "WATTMETER_STATE names another folder",
                   folder);
}

/* An identity as a file's name: only letters, digits, '-', '.' and '_' stay. */
static void make_name(const char *identity, char name[WM_CAP_IDENTITY])
{
    size_t i = 0;

    for (; identity[i] && i + 1 < WM_CAP_IDENTITY; i++) {
        char c = identity[i];
        bool is_plain = isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
        name[i] = c;
        if (!is_plain || (i == 0 && c == '.'))
            name[i] = '_';
    }
    name[i] = '\0';
}

/* `makes`: the folder, where there is none. */
static int entry_path(const char *identity, enum wm_cap_kind kind, bool is_session,
                      bool makes, char **ret_path, struct wm_error *err)
{
    char name[WM_CAP_IDENTITY];
    char *folder = journal_folder();

    if (!folder)
        return wm_fail_memory(err, "caps");
    if (makes)
        wm_file_make_folders(folder, 0755);
    make_name(identity, name);
    int status = check_folder(folder, err);
    if (status == WM_OK &&
        asprintf(ret_path, "%s/%s.%s%s%s", folder, name, wm_cap_kind_name(kind),
                 is_session ? ".session" : "", ending) < 0)
        status = wm_fail_memory(err, "caps");
    free(folder);
    return status;
}

char *wm_cap_entry_text(const struct wm_cap_entry *entry)
{
    char when[32];
    json_t *json = json_object();

    wm_clock_rfc3339(wm_clock_unix_ns(), when, sizeof(when));
    wm_json_set(&json, "version", json_integer(VERSION));
    wm_json_set(&json, "identity", wm_text_json(entry->identity));
    wm_json_set(&json, "device", wm_text_json(entry->device));
    wm_json_set(&json, "kind", json_string(wm_cap_kind_name(entry->kind)));
    wm_json_set(&json, "session", json_boolean(entry->is_session));
    wm_json_set(&json, "owner", json_integer(entry->owner));
    wm_json_set(&json, "command", wm_text_json(entry->command));
    wm_json_set(&json, "boot", wm_text_json(entry->boot));
    wm_json_set(&json, "earlier", wm_json_known(true, entry->earlier));
    wm_json_set(&json, "before", wm_json_known(true, entry->before));
    wm_json_set(&json, "set", wm_json_known(true, entry->set));
    wm_json_set(&json, "read_back", wm_json_known(true, entry->read_back));
    wm_json_set(&json, "written", json_string(when));
    return wm_json_dump(json, JSON_INDENT(2));
}

void wm_cap_boot(char boot[WM_CAP_BOOT])
{
    wm_file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, WM_CAP_BOOT);
}

static int get_text(const json_t *json, const char *key, char *text, size_t size,
                    struct wm_error *err)
{
    json_t *value;
    int found = wm_json_get(json, key, WM_JSON_TEXT, &value, err);

    if (found < 0)
        return found;
    if (found == 0 || json_string_length(value) >= size)
        return wm_json_wrong(key, WM_JSON_TEXT, err);
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    wm_text_clean(text);
    return WM_OK;
}

static int get_number(const json_t *json, const char *key, double *ret_number,
                      struct wm_error *err)
{
    json_t *value;
    int found = wm_json_get(json, key, WM_JSON_NUMBER, &value, err);

    *ret_number = found > 0 ? json_number_value(value) : NAN;
    return found < 0 ? found : WM_OK;
}

static int get_kind(const json_t *json, enum wm_cap_kind *ret_kind, struct wm_error *err)
{
    char text[32];
    const char *name;
    int status = get_text(json, "kind", text, sizeof(text), err);

    for (size_t i = 0; status == WM_OK && (name = wm_cap_kind_name(i)) != NULL; i++) {
        if (strcmp(text, name) == 0) {
            *ret_kind = (enum wm_cap_kind)i;
            return WM_OK;
        }
    }
    return status < 0 ? status : wm_fail(err, WM_EFORMAT, "kind: there is no '%s'", text);
}

static int get_version_and_owner(const json_t *json, struct wm_cap_entry *entry,
                                 struct wm_error *err)
{
    json_t *version, *owner, *session;

    if (wm_json_get(json, "version", WM_JSON_INTEGER, &version, err) != 1 ||
        json_integer_value(version) != VERSION)
        return wm_fail(err, WM_EFORMAT, "not of version %d", VERSION);
    if (wm_json_get(json, "owner", WM_JSON_INTEGER, &owner, err) != 1 ||
        json_integer_value(owner) < 0 || json_integer_value(owner) > INT32_MAX)
        return wm_json_wrong("owner", WM_JSON_INTEGER, err);
    if (wm_json_get(json, "session", WM_JSON_BOOL, &session, err) != 1)
        return wm_json_wrong("session", WM_JSON_BOOL, err);
    entry->owner = (pid_t)json_integer_value(owner);
    entry->is_session = json_is_true(session);
    return WM_OK;
}

static int fill_entry(const json_t *json, struct wm_cap_entry *entry, struct wm_error *err)
{
    int status = get_version_and_owner(json, entry, err);

    if (status == WM_OK)
        status = get_kind(json, &entry->kind, err);
    if (status == WM_OK)
        status = get_text(json, "identity", entry->identity, sizeof(entry->identity), err);
    if (status == WM_OK)
        status = get_text(json, "device", entry->device, sizeof(entry->device), err);
    if (status == WM_OK)
        status = get_text(json, "command", entry->command, sizeof(entry->command), err);
    if (status == WM_OK && json_object_get(json, "boot")) /* older entries have none */
        status = get_text(json, "boot", entry->boot, sizeof(entry->boot), err);
    if (status == WM_OK)
        status = get_number(json, "earlier", &entry->earlier, err);
    if (status == WM_OK)
        status = get_number(json, "before", &entry->before, err);
    if (status == WM_OK)
        status = get_number(json, "set", &entry->set, err);
    if (status == WM_OK)
        status = get_number(json, "read_back", &entry->read_back, err);
    if (status == WM_OK && isnan(entry->earlier) && entry->kind != WM_CAP_GPU_CLOCK)
        status = wm_json_wrong("earlier", WM_JSON_NUMBER, err);
    return status;
}

int wm_cap_entry_parse(const char *text, size_t length, struct wm_cap_entry *ret_entry,
                       struct wm_error *err)
{
    struct wm_cap_entry entry = { 0 };
    json_t *json;

    int status = wm_json_load(text, length, &json, err);
    if (status < 0)
        return status;
    status = fill_entry(json, &entry, err);
    json_decref(json);
    if (status == WM_OK)
        *ret_entry = entry;
    return status;
}

int wm_cap_journal_write(const struct wm_cap_entry *entry, struct wm_error *err)
{
    char *path = NULL, *text = wm_cap_entry_text(entry);
    struct wm_error why;
    int status =
        text ? entry_path(entry->identity, entry->kind, entry->is_session, true, &path, err)
             : wm_fail_memory(err, "caps");

    if (status == WM_OK && wm_file_replace(path, text, strlen(text), &why) < 0)
        status = wm_fail(
            err, why.status,
            "the journal of caps: %.180s; WATTMETER_STATE names another folder", why.text);
    free(text);
    free(path);
    return status;
}

static int read_path(const char *path, struct wm_cap_entry *ret_entry, struct wm_error *err)
{
    char *text;
    size_t length;
    struct wm_error why;

    int status = wm_file_slurp(path, ENTRY_MAX, &text, &length, err);
    if (status < 0)
        return status;
    status = wm_cap_entry_parse(text, length, ret_entry, &why);
    free(text);
    return status < 0 ? wm_fail(err, status, "%.120s: %s", path, why.text) : WM_OK;
}

int wm_cap_journal_read(const char *identity, enum wm_cap_kind kind, bool is_session,
                        struct wm_cap_entry *ret_entry, struct wm_error *err)
{
    char *path = NULL;
    struct wm_error why;

    int status = entry_path(identity, kind, is_session, false, &path, &why);
    if (status == WM_OK)
        status = read_path(path, ret_entry, &why);
    free(path);
    if (status == WM_ENOENT)
        return 0;
    return status < 0 ? wm_fail(err, status, "%s", why.text) : 1;
}

int wm_cap_journal_remove(const struct wm_cap_entry *entry, struct wm_error *err)
{
    char *path = NULL;
    int status =
        entry_path(entry->identity, entry->kind, entry->is_session, false, &path, err);

    if (status == WM_OK && unlink(path) != 0 && errno != ENOENT)
        status = wm_fail_errno(err, path);
    free(path);
    return status;
}

/* The folder may be another user's: no link is followed, and nothing waited for. */
static bool read_entry(int folder, const char *name, struct wm_cap_entry *ret_entry)
{
    char text[ENTRY_MAX + 1];
    struct stat info;
    ssize_t length = -1;

    int fd =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        length = wm_file_reread(fd, text, sizeof(text));
    close(fd);
    return length > 0 && wm_cap_entry_parse(text, (size_t)length, ret_entry, NULL) == WM_OK;
}

/* `user`: whose folder it has to be; NULL: anybody's. */
static void each_in(int place, const char *folder, const uid_t *user,
                    wm_cap_entry_found *found, void *context)
{
    int fd = openat(place, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *files = fd < 0 ? NULL : wm_file_open_folder(fd, ".");
    struct dirent *file;
    struct stat info;

    if (files && fstat(fd, &info) == 0 && (!user || info.st_uid == *user)) {
        for (int i = 0; i < FILES_MAX && (file = readdir(files)) != NULL; i++) {
            struct wm_cap_entry entry;
            size_t length = strlen(file->d_name), end = strlen(ending);
            if (length > end && strcmp(file->d_name + length - end, ending) == 0 &&
                read_entry(fd, file->d_name, &entry)) {
                entry.user = info.st_uid;
                found(context, &entry);
            }
        }
    }
    if (files)
        closedir(files);
    if (fd >= 0)
        close(fd);
}

void wm_cap_journal_each(wm_cap_entry_found *found, void *context)
{
    char *folder = journal_folder();

    if (folder && check_folder(folder, NULL) == WM_OK)
        each_in(AT_FDCWD, folder, NULL, found, context);
    free(folder);
}

/* Each user has one, as its name says. */
static bool is_of_user(int place, const char *name, uid_t *ret_user)
{
    char expected[64];
    struct stat info;

    if (strncmp(name, user_prefix, strlen(user_prefix)) != 0 ||
        fstatat(place, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    snprintf(expected, sizeof(expected), "%s%lu", user_prefix, (unsigned long)info.st_uid);
    *ret_user = info.st_uid;
    return strcmp(name, expected) == 0;
}

void wm_cap_journal_each_of_root(wm_cap_entry_found *found, void *context)
{
    if (geteuid() != 0 && !wm_env_trusted("WATTMETER_STATE", NULL))
        each_in(AT_FDCWD, root_folder, NULL, found, context);
}

void wm_cap_journal_each_of_users(wm_cap_entry_found *found, void *context)
{
    DIR *users;
    struct dirent *file;
    uid_t user;

    if (wm_env_trusted("WATTMETER_STATE", NULL))
        return;
    users = wm_file_open_folder(AT_FDCWD, users_folder);
    while (users && (file = readdir(users)) != NULL) {
        if (is_of_user(dirfd(users), file->d_name, &user) && user != geteuid())
            each_in(dirfd(users), file->d_name, &user, found, context);
    }
    if (users)
        closedir(users);
}

static void lock_path(const char *identity, char *path, size_t size)
{
    char name[WM_CAP_IDENTITY];

    make_name(identity, name);
    snprintf(path, size, "%s/wattmeter-cap-%s.lock",
             wm_env_trusted("WATTMETER_STATE", "/dev/shm"), name);
}

/* Anybody may have made something else than a lock in a folder for all: no link is
 * followed, and no other end of a pipe is waited for. */
enum { LOCK_FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/* The holder's name is written into a lock, which must not be another file of ours that
 * somebody has linked to. */
static int refuse_links(int fd)
{
    struct stat info;

    if (fd < 0 || (fstat(fd, &info) == 0 && info.st_nlink == 1))
        return fd;
    close(fd);
    errno = EMLINK;
    return -1;
}

/* In a folder for all, the kernel may refuse to open somebody else's file with O_CREAT. A
 * lock of another user can be taken by anybody, and says who has it. */
static int open_lock(const char *path)
{
    const int flags = O_RDWR | LOCK_FLAGS;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, 0666);
        if (fd >= 0)
            fchmod(fd, 0666); /* whatever the umask */
        else if (errno == EEXIST)
            fd = open(path, flags);
    }
    return refuse_links(fd);
}

static int fail_locked(int fd, const char *device, struct wm_error *err)
{
    char holder[WM_CAP_COMMAND + 32];

    if (wm_file_reread(fd, holder, sizeof(holder)) <= 0)
        snprintf(holder, sizeof(holder), "another program");
    wm_text_clean(holder);
    return wm_fail(err, WM_EEXIST, "%s: its cap is held by %s", device, holder);
}

static void say_holder(int fd, pid_t owner, const char *command)
{
    char holder[WM_CAP_COMMAND + 32];
    int length = snprintf(holder, sizeof(holder), "process %ld (%s)", (long)owner, command);

    if (ftruncate(fd, 0) == 0 && pwrite(fd, holder, (size_t)length, 0) < 0)
        return; /* then nobody is told who it is */
}

/* Who looks whether a lock is held has it for a moment. */
static bool take(int fd)
{
    const struct timespec pause = { 0, 5 * WM_NS_PER_MS };

    for (int tries = 0; tries < 40; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

int wm_cap_lock(const char *identity, const char *device, pid_t owner, const char *command,
                int *ret_fd, struct wm_error *err)
{
    char path[4096], *state = journal_folder();

    lock_path(identity, path, sizeof(path));
    if (state && wm_env_trusted("WATTMETER_STATE", NULL))
        wm_file_make_folders(state, 0755);
    free(state);
    int fd = open_lock(path);
    if (fd < 0)
        return wm_fail(err, wm_status_of_errno(errno),
                       "%s: its lock %s cannot be made: %s; WATTMETER_STATE names the "
                       "folder",
                       device, wm_text_path(path), wm_errno_text(errno));
    if (!take(fd)) {
        int status = fail_locked(fd, device, err);
        close(fd);
        return status;
    }
    say_holder(fd, owner, command);
    *ret_fd = fd;
    return WM_OK;
}

bool wm_cap_is_locked(const char *identity)
{
    char path[4096];

    lock_path(identity, path, sizeof(path));
    int fd = open(path, O_RDONLY | LOCK_FLAGS);
    if (fd < 0)
        return false;
    bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return is_locked;
}
