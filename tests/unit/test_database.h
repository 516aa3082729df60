/* SPDX-License-Identifier: Apache-2.0 */
/* test_database.h - SQLite files that others have written: made of SQL, and a hostile one,
 * whose pages point at each other. */
#ifndef TEST_DATABASE_H
#define TEST_DATABASE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base_file.h"
#include "record/sql/record_sql.h"
#include "test.h"

static inline const char *in_dir(void **state, const char *name)
{
    static char paths[4][256];
    static size_t next;
    char *path = paths[next++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
    return path;
}

static inline void write_database(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    struct wm_error err;

    assert_int_equal(wm_sqlite_load(&err), WM_OK);
    unlink(path);
    assert_int_equal(
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
        SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* Lets each page that points at others point at the next such page alone, so that a scan
 * would read the last of them more often than anybody can wait for. */
static inline void tangle(const char *path)
{
    enum { PAGE = 512, INNER = 5 };
    char *bytes = NULL;
    unsigned char *last = NULL;
    size_t length = 0;
    int pages = 0;

    assert_int_equal(wm_file_slurp(path, 1 << 24, &bytes, &length, NULL), WM_OK);
    for (size_t page = 2; page * PAGE <= length && pages < 15; page++) {
        unsigned char *inner = (unsigned char *)bytes + (page - 1) * PAGE;
        if (inner[0] != INNER)
            continue;
        int cells = last ? last[3] << 8 | last[4] : -1;
        for (int i = -1; i < cells; i++) {
            /* The one on the right stands in the page's head, the others in its cells. */
            int at = i < 0 ? 8 : last[12 + 2 * i] << 8 | last[13 + 2 * i];
            last[at + 2] = (unsigned char)(page >> 8);
            last[at + 3] = (unsigned char)page;
        }
        last = inner;
        pages++;
    }
    assert_true(pages > 4);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

#endif
