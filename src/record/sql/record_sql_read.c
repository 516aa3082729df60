/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql_read.c - opening an SQLite database that is not to be changed. */
#include "record/sql/record_sql.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BUSY_MS = 2000,               /* for a writer that is just changing the structure */
    VALUE_MAX = 16 * 1024 * 1024, /* bytes in one value that a hostile file may have */
};

/* Ways to open a database that is not to be changed, and what each is for. */
static const struct way {
    int flags;
    const char *vfs;
    const char *pragma;
} ways[] = {
    { SQLITE_OPEN_READONLY, NULL, "" },

    /* In a folder where nothing can be written there is no place for the index
     * of a log that a killed writer has left; without locks it is kept in
     * memory. Whoever writes to the file has made that place already. */
    { SQLITE_OPEN_READONLY, "unix-none", "PRAGMA locking_mode = EXCLUSIVE" },

    /* A journal left by a killed writer has to be rolled back first. */
    { SQLITE_OPEN_READWRITE, NULL, "" },
};

enum { WAY_COUNT = sizeof(ways) / sizeof(ways[0]) };

bool wm_sql_is_database(const char *head, size_t length)
{
    static const char magic[] = "SQLite format 3";

    return length >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0;
}

static int open_way(const char *path, const struct way *way, sqlite3 **ret_db)
{
    char name[4096];
    int result = sqlite3_open_v2(wm_sql_file_name(path, name), ret_db,
                                 way->flags | SQLITE_OPEN_NOMUTEX, way->vfs);
    sqlite3 *db = *ret_db;
    if (result != SQLITE_OK)
        return result;

    /* The file may be anybody's: its schema runs no code, and what it holds is
     * not believed to be consistent. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    sqlite3_busy_timeout(db, BUSY_MS);
    result = sqlite3_exec(db, way->pragma, NULL, NULL, NULL);
    if (result != SQLITE_OK)
        return result;
    return sqlite3_exec(db,
                        "PRAGMA cell_size_check = ON;"
                        "PRAGMA mmap_size = 0;"
                        "BEGIN;"
                        "SELECT count(*) FROM sqlite_master",
                        NULL, NULL, NULL);
}

int wm_sql_open_to_read(const char *path, const char *shown, sqlite3 **ret_db,
                        struct wm_error *err)
{
    int result = SQLITE_OK;

    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < WAY_COUNT; i++) {
        result = open_way(path, &ways[i], ret_db);
        int kind = result & 0xff;
        bool another = kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY;
        if (!another || i + 1 == WAY_COUNT)
            break;
        sqlite3_close(*ret_db);
        *ret_db = NULL;
    }
    return result == SQLITE_OK ? WM_OK : wm_sql_fail(*ret_db, result, shown, err);
}

int wm_sql_check_table(sqlite3 *db, const char *name, const char *path,
                       struct wm_error *err)
{
    sqlite3_int64 count = 0;
    char sql[96];

    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '%s'",
             name);
    int status = wm_sql_number(db, sql, path, &count, err);
    if (status == WM_OK && count != 1)
        status = wm_fail(err, WM_EFORMAT, "%s: there is no table %s", path, name);
    return status;
}

int64_t wm_sql_most_rows(const char *path, int columns)
{
    static const char *const suffixes[] = { "", "-wal" };
    int64_t bytes = 0;

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[4096];
        struct stat info;
        int length = snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        if (length < (int)sizeof(name) && stat(name, &info) == 0)
            bytes += info.st_size;
    }
    /* A row has its length, its number, and the length and types of its columns. */
    return bytes / (columns + 3);
}
