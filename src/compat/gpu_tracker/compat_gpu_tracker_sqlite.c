/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_sqlite.c - gpu_tracker's tracking file as an SQLite database. It keeps
 * SQLite's own journal, so that all that was written is in the one file at any time. */
#include "compat/gpu_tracker/compat_gpu_tracker.h"
#include "record/record_ops.h"
#include "record/sql/record_sql.h"

/* How long a reader is waited for. */
enum { BUSY_MS = 2000 };

struct database {
    struct wm_gpu_tracker tracker;
    sqlite3 *db;
    sqlite3_stmt *insert; /* a row of data */
};

static const char *const companions[] = { "-journal", NULL };

static const char *sqlite_path(const char *target)
{
    return wm_gpu_tracker_path(target, ".sqlite");
}

static int exec(const struct database *database, const char *sql, struct wm_error *err)
{
    return wm_sql_exec(database->db, sql, database->tracker.path, err);
}

static int sqlite_open(void *state, const char *target, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct database *database = state;
    char name[4096];

    int status = wm_gpu_tracker_init(&database->tracker, target, run, channels, count, err);
    if (status == WM_OK)
        status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(sqlite_path(target), name), &database->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(database->db, result, database->tracker.path, err);
    sqlite3_busy_timeout(database->db, BUSY_MS);
    return WM_OK;
}

/* SQLAlchemy's words for the types, which are those of the original's first row. */
static const char *type_of(const struct wm_gpu_tracker_cell *cell)
{
    if (cell->text)
        return "VARCHAR";
    return cell->is_count ? "INTEGER" : "FLOAT";
}

static int create(struct database *database, const char *table, const char *const *names,
                  const struct wm_gpu_tracker_cell *cells, int count, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(database->db);

    sqlite3_str_appendf(sql, "CREATE TABLE %s (", table);
    for (int i = 0; i < count; i++)
        sqlite3_str_appendf(sql, "%s%s %s", i > 0 ? ", " : "", names[i],
                            type_of(&cells[i]));
    sqlite3_str_appendall(sql, ")");
    return wm_sql_exec_made(database->db, sqlite3_str_finish(sql), database->tracker.path,
                            err);
}

static int prepare(struct database *database, const char *table, int count,
                   sqlite3_stmt **ret_insert, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(database->db);

    sqlite3_str_appendf(sql, "INSERT INTO %s VALUES (?", table);
    for (int i = 1; i < count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    int status =
        text ? wm_sql_prepare(database->db, text, database->tracker.path, ret_insert, err)
             : wm_fail(err, WM_ENOMEM, "%s: out of memory", database->tracker.path);
    sqlite3_free(text);
    return status;
}

static int insert(const struct database *database, sqlite3_stmt *statement,
                  const struct wm_gpu_tracker_cell *cells, int count, struct wm_error *err)
{
    int status = WM_OK;

    for (int i = 0; i < count && status == WM_OK; i++) {
        if (cells[i].text)
            status = wm_sql_bind_text(statement, i + 1, cells[i].text,
                                      database->tracker.path, err);
        else
            wm_sql_bind_number(statement, i + 1, cells[i].number);
    }
    return status < 0 ? status : wm_sql_run(statement, database->tracker.path, err);
}

static int write_static(struct database *database, struct wm_error *err)
{
    struct wm_gpu_tracker_cell cells[WM_STATIC_COUNT];
    sqlite3_stmt *statement = NULL;

    for (int i = 0; i < WM_STATIC_COUNT; i++)
        cells[i] = wm_gpu_tracker_static(&database->tracker, i);
    int status =
        create(database, "static_data", wm_static_names, cells, WM_STATIC_COUNT, err);
    if (status == WM_OK)
        status = prepare(database, "static_data", WM_STATIC_COUNT, &statement, err);
    if (status == WM_OK)
        status = insert(database, statement, cells, WM_STATIC_COUNT, err);
    sqlite3_finalize(statement);
    return status;
}

/* `data` is there from its first row on. */
static int write_tick(struct database *database, const struct wm_tick *tick,
                      struct wm_error *err)
{
    struct wm_gpu_tracker_cell row[WM_TIMEPOINT_COLUMNS];
    const char *names[WM_TIMEPOINT_COLUMNS];
    int status = WM_OK;

    if (!wm_gpu_tracker_row(&database->tracker, tick, row))
        return WM_OK;
    if (!database->insert) {
        wm_timepoint_columns(names);
        status = create(database, "data", names, row, WM_TIMEPOINT_COLUMNS, err);
        if (status == WM_OK)
            status =
                prepare(database, "data", WM_TIMEPOINT_COLUMNS, &database->insert, err);
    }
    return status < 0 ? status
                      : insert(database, database->insert, row, WM_TIMEPOINT_COLUMNS, err);
}

static int sqlite_write(void *state, const struct wm_tick *ticks, size_t count,
                        struct wm_error *err)
{
    struct database *database = state;
    bool had_data = database->insert != NULL;

    if (count == 0)
        return WM_OK;
    wm_gpu_tracker_begin(&database->tracker, &ticks[0]);
    int status = exec(database, "BEGIN IMMEDIATE", err);
    if (status == WM_OK && !database->tracker.has_static)
        status = write_static(database, err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = write_tick(database, &ticks[i], err);
    if (status == WM_OK)
        status = exec(database, "COMMIT", err);
    if (status == WM_OK) {
        database->tracker.has_static = true;
        return WM_OK;
    }
    if (!had_data) { /* its table goes with the rest */
        sqlite3_finalize(database->insert);
        database->insert = NULL;
    }
    if (!sqlite3_get_autocommit(database->db))
        exec(database, "ROLLBACK", NULL);
    wm_gpu_tracker_take_back(&database->tracker);
    return status;
}

/* A value that is missing is NULL; why has no place here. */
static int sqlite_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    (void)state, (void)gap, (void)err;
    return WM_OK;
}

/* All has been committed. */
static int sqlite_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    (void)state, (void)result, (void)err;
    return WM_OK;
}

static void sqlite_close(void *state)
{
    struct database *database = state;

    if (database->db) {
        sqlite3_finalize(database->insert);
        sqlite3_close(database->db);
    }
    wm_gpu_tracker_release(&database->tracker);
}

const struct wm_recorder_ops wm_recorder_gpu_tracker_sqlite = {
    .name = "gpu_tracker's SQLite",
    .path_in = sqlite_path,
    .companions = companions,
    .survives_kill = true,
    .state_size = sizeof(struct database),
    .open = sqlite_open,
    .write = sqlite_write,
    .gap = sqlite_gap,
    .finish = sqlite_finish,
    .close = sqlite_close,
};
