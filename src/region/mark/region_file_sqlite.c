/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_file_sqlite.c - sub-tracking files in an SQLite database, with the table that
 * gpu_tracker makes.
 *
 * Nothing of SQLite's must go along into the child of a fork(): not only its connections,
 * but also what it remembers of a file that has one, by which a connection of the child
 * would believe that it holds locks. So all connections are closed before, and opened again
 * with the next row. Whoever forks does not know of them: there is a list of all that the
 * process has.
 */
#include "region/mark/region_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_sqlite.h"

#define CREATE                                                                             \
    "CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR, position INTEGER,"    \
    " timestamp FLOAT)"
#define INSERT                                                                             \
    "INSERT INTO data (process_id, code_block_name, position, timestamp)"                  \
    " VALUES (?, ?, ?, ?)"

/* How long other writers are waited for. */
enum { BUSY_MS = 10000 };

struct wm_region_database {
    struct wm_region_database *next;
    char *path; /* absolute, without links: the program may change its folder */
    sqlite3 *connection;
    sqlite3_stmt *insert;
    pid_t pid; /* whose they are */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of all that is in it */
static struct wm_region_database *list;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static bool is_watching;

static int fail(sqlite3 *connection, int result, const char *path, struct wm_error *err)
{
    const char *reason = connection ? sqlite3_errmsg(connection) : sqlite3_errstr(result);
    int status = WM_EIO;

    if (result == SQLITE_NOTADB || result == SQLITE_CORRUPT)
        status = WM_EFORMAT;
    else if (result == SQLITE_NOMEM)
        status = WM_ENOMEM;
    return wm_fail(err, status, "%s: %s", path, reason);
}

static int exec(const struct wm_region_database *database, const char *sql,
                const char *path, struct wm_error *err)
{
    int result = sqlite3_exec(database->connection, sql, NULL, NULL, NULL);

    return result == SQLITE_OK ? WM_OK : fail(database->connection, result, path, err);
}

/* Another database than a sub-tracking file has no such table, or another one. */
static int prepare(struct wm_region_database *database, const char *path,
                   struct wm_error *err)
{
    int result =
        sqlite3_prepare_v2(database->connection, INSERT, -1, &database->insert, NULL);

    if (result == SQLITE_ERROR)
        return wm_fail(err, WM_EFORMAT, "%s: not a sub-tracking file; nothing is added",
                       path);
    return result == SQLITE_OK ? WM_OK : fail(database->connection, result, path, err);
}

static int connect(struct wm_region_database *database, const char *path,
                   struct wm_error *err)
{
    int result = sqlite3_open_v2(database->path, &database->connection,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    database->pid = getpid();
    if (result != SQLITE_OK)
        return fail(database->connection, result, path, err);
    sqlite3_busy_timeout(database->connection, BUSY_MS);

    /* With the log a row costs no waiting for the disk. Where it cannot be had the journal
     * does as well. */
    sqlite3_exec(database->connection, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    return exec(database, "PRAGMA synchronous = NORMAL", path, err);
}

static void disconnect(struct wm_region_database *database)
{
    if (database->connection && database->pid == getpid()) {
        sqlite3_finalize(database->insert);
        sqlite3_close(database->connection);
    }
    database->insert = NULL;
    database->connection = NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct wm_region_database *database = list; database; database = database->next)
        disconnect(database);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* The last connection of a file to be closed leaves all of it in one piece, and no log
 * beside it. A child that ended without closing its own (_exit(), as multiprocessing's do)
 * has left a log, so who had the file before opens it once more. A signal handler that
 * calls exit() may have interrupted a row: the lock is not waited for. */
static void at_exit(void)
{
    if (pthread_mutex_trylock(&list_lock) != 0)
        return;
    for (struct wm_region_database *database = list; database; database = database->next) {
        if (database->pid == getpid() && !database->connection)
            connect(database, database->path, NULL);
        disconnect(database);
    }
    pthread_mutex_unlock(&list_lock);
}

static void watch(void)
{
    is_watching =
        pthread_atfork(before_fork, after_fork, after_fork) == 0 && atexit(at_exit) == 0;
}

bool wm_region_file_watch_forks(void)
{
    pthread_once(&watch_once, watch);
    return is_watching;
}

/* Tables are made in an empty database only. */
static int begin(struct wm_region_database *database, const char *path,
                 struct wm_error *err)
{
    sqlite3_stmt *count = NULL;
    bool is_empty = false;

    int status = exec(database, "BEGIN IMMEDIATE", path, err);
    if (status < 0)
        return status;
    if (sqlite3_prepare_v2(database->connection, "SELECT 1 FROM sqlite_master LIMIT 1", -1,
                           &count, NULL) == SQLITE_OK)
        is_empty = sqlite3_step(count) == SQLITE_DONE;
    sqlite3_finalize(count);
    if (is_empty)
        status = exec(database, CREATE, path, err);
    if (status == WM_OK)
        status = exec(database, "COMMIT", path, err);
    return status < 0 ? status : prepare(database, path, err);
}

static int make_file(const char *path, bool may_exist, struct wm_error *err)
{
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

    int fd = open(path, flags | (may_exist ? 0 : O_EXCL), 0666);
    if (fd < 0)
        return wm_fail_errno(err, path);
    close(fd);
    return WM_OK;
}

/* A fork() in between disconnects it. */
static int open_first(struct wm_region_database *database, const char *path,
                      struct wm_error *err)
{
    pthread_mutex_lock(&list_lock);
    database->next = list;
    list = database;
    int status = connect(database, path, err);
    if (status == WM_OK)
        status = begin(database, path, err);
    pthread_mutex_unlock(&list_lock);
    return status;
}

int wm_region_database_open(const char *path, bool may_exist,
                            struct wm_region_database **ret_database, struct wm_error *err)
{
    int status = wm_sqlite_load(err);

    if (status == WM_OK)
        status = make_file(path, may_exist, err);
    if (status < 0)
        return status;
    struct wm_region_database *database = calloc(1, sizeof(*database));
    if (!database || !wm_region_file_watch_forks()) {
        free(database);
        return wm_fail_memory(err, NULL);
    }
    database->path = realpath(path, NULL);
    status = database->path ? open_first(database, path, err) : wm_fail_errno(err, path);
    if (status < 0) {
        wm_region_database_close(database);
        return status;
    }
    *ret_database = database;
    return WM_OK;
}

/* Under the lock. */
static int insert(struct wm_region_database *database, const char *path,
                  const struct wm_region_row *row, struct wm_error *err)
{
    int status = WM_OK;

    if (database->pid != getpid())
        disconnect(database);
    if (!database->connection)
        status = connect(database, path, err);
    if (status == WM_OK && !database->insert)
        status = prepare(database, path, err);
    if (status < 0)
        return status;

    sqlite3_bind_int64(database->insert, 1, row->process);
    sqlite3_bind_text(database->insert, 2, row->name, (int)row->name_length, SQLITE_STATIC);
    sqlite3_bind_int(database->insert, 3, row->is_stop);
    sqlite3_bind_double(database->insert, 4, row->when_s);
    int result = sqlite3_step(database->insert);
    if (result != SQLITE_DONE)
        status = fail(database->connection, result, path, err);
    sqlite3_reset(database->insert);
    sqlite3_clear_bindings(database->insert);
    return status;
}

int wm_region_database_write(struct wm_region_database *database, const char *path,
                             const struct wm_region_row *row, struct wm_error *err)
{
    pthread_mutex_lock(&list_lock);
    int status = insert(database, path, row, err);
    pthread_mutex_unlock(&list_lock);
    return status;
}

void wm_region_database_close(struct wm_region_database *database)
{
    struct wm_region_database **link = &list;

    pthread_mutex_lock(&list_lock);
    while (*link && *link != database)
        link = &(*link)->next;
    if (*link)
        *link = database->next;
    disconnect(database);
    pthread_mutex_unlock(&list_lock);
    free(database->path);
    free(database);
}

int wm_region_database_remove(const char *path, struct wm_error *err)
{
    static const char *const companions[] = { "-wal", "-shm", "-journal" };

    if (unlink(path) < 0)
        return wm_fail_errno(err, path);
    for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, companions[i]) < 0)
            return wm_fail_memory(err, NULL);
        unlink(name);
        free(name);
    }
    return WM_OK;
}
