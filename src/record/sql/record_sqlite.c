/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_sqlite.c - recordings in an SQLite database, one or more to a file.
 *
 * While it is written the database keeps a write-ahead log, so that readers and
 * a kill see whole batches; at the end everything is in the one file. An export adds its
 * run in one transaction, unless somebody is recording into the file.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_utf8.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/sql/record_sql.h"

/* How long another writer of the same file is waited for. */
enum { BUSY_MS = 2000 };

struct database {
    struct wm_schema schema; /* with the connection */
    bool is_ours;            /* the file may be changed */
    bool as_whole;           /* the run is added in one transaction */
    bool is_adding;          /* the open transaction adds a run */
    bool has_reserve;
    int reserve;                        /* room for the result on a disk that fills up */
    sqlite3_stmt *sample, *gap;         /* their insert statements */
    sqlite3_stmt *path, *thread, *call; /* those of regions */
};

static const char *const suffixes[] = { ".sqlite", ".sqlite3", ".db", NULL };
static const char *const companions[] = { "-wal", "-shm", "-journal", NULL };

/* The pages that a result changes, in the log. */
#define RESERVE_BYTES 65536

static int exec(const struct database *database, const char *sql, struct wm_error *err)
{
    return wm_sql_exec(database->schema.db.handle, sql, database->schema.db.shown, err);
}

static int prepare(const struct database *database, const char *sql,
                   sqlite3_stmt **ret_statement, struct wm_error *err)
{
    return wm_sql_prepare(database->schema.db.handle, sql, database->schema.db.shown,
                          ret_statement, err);
}

static int prepare_sample(struct database *database, struct wm_error *err)
{
    const struct wm_columns *columns = &database->schema.columns;

    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "INSERT INTO sample (run, time_ns");
    wm_sql_append_columns(sql, ", ", columns);
    sqlite3_str_appendall(sql, ") VALUES (?, ?");
    for (size_t i = 0; i < columns->clock_count + columns->count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    int status = text ? prepare(database, text, &database->sample, err)
                      : wm_fail_memory(err, database->schema.db.shown);
    sqlite3_free(text);
    return status;
}

static int prepare_inserts(struct database *database, struct wm_error *err)
{
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } inserts[] = {
        { "INSERT INTO gap VALUES (?, ?, ?, ?, ?, ?)", &database->gap },
        { "INSERT INTO region_path VALUES (?, ?, ?, ?, ?, ?)", &database->path },
        { "INSERT INTO region_thread VALUES (?, ?, ?, ?, ?)", &database->thread },
        { "INSERT INTO region_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
          &database->call },
    };
    int status = prepare_sample(database, err);

    for (size_t i = 0; i < sizeof(inserts) / sizeof(inserts[0]) && status == WM_OK; i++)
        status = prepare(database, inserts[i].sql, inserts[i].statement, err);
    return status;
}

static int open_database(struct database *database, const char *target, bool *ret_is_new,
                         struct wm_error *err)
{
    struct wm_schema *schema = &database->schema;
    const char *shown = wm_text_path(target);
    sqlite3 *handle = NULL;
    sqlite3_int64 tables = 0;
    char name[4096];

    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(target, name), &handle,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (handle)
        schema->db = wm_db_sqlite(handle, shown);
    if (result != SQLITE_OK)
        return wm_sql_fail(handle, result, shown, err);
    sqlite3_busy_timeout(handle, BUSY_MS);
    exec(database, "PRAGMA cache_size = -512", NULL); /* KiB; it only ever appends */

    status =
        wm_sql_number(handle, "SELECT count(*) FROM sqlite_master", shown, &tables, err);
    if (status == WM_OK && tables > 0)
        status = wm_sql_check_format(handle, shown, err);
    database->is_ours = status == WM_OK;
    *ret_is_new = tables == 0;
    return status;
}

static void give_room(struct database *database)
{
    if (database->has_reserve)
        close(database->reserve);
    database->has_reserve = false;
}

/* A file without a name beside the database, whose room is given back for the result. Where
 * there is no such thing, a full disk may leave the recording without one. */
static void reserve_room(struct database *database, const char *target)
{
    const char *slash = strrchr(target, '/');
    size_t length = slash ? (size_t)(slash - target) : 0;
    char *folder = slash ? strndup(target, length > 0 ? length : 1) : strdup(".");

    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(folder);
    database->reserve = fd;
    database->has_reserve = fd >= 0;
    if (fd >= 0 && posix_fallocate(fd, 0, RESERVE_BYTES) != 0)
        give_room(database);
}

static void sqlite_as_whole(void *state)
{
    struct database *database = state;

    database->as_whole = true;
}

/* Where the file system, or somebody who is reading the file, does not let us have the
 * log, the journal that SQLite uses otherwise does as well. A new file has nothing to lose
 * by a power cut, and is not waited for. */
static int begin(struct database *database, bool is_new, struct wm_error *err)
{
    exec(database, "PRAGMA journal_mode = WAL", NULL);
    int status = exec(
        database, is_new ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = NORMAL", err);
    if (status == WM_OK)
        status = wm_schema_begin_run(&database->schema, err);
    if (status == WM_OK && is_new)
        status = exec(database, "PRAGMA wal_checkpoint; PRAGMA synchronous = NORMAL", err);
    return status;
}

/* Whether the log is in use, which it is as long as somebody records into the file. */
static bool has_log(const struct database *database)
{
    sqlite3_stmt *statement = NULL;
    bool is_log = false;

    if (prepare(database, "PRAGMA journal_mode", &statement, NULL) == WM_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        is_log = strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    sqlite3_finalize(statement);
    return is_log;
}

/* With the journal: in a log all of the run would be written twice, and a disk may fill up
 * after it was committed. Whoever records into the file meanwhile must not be kept out of
 * it for so long, and loses what it cannot write: then the run is added as that one is, a
 * part at a time. */
static int begin_adding(struct database *database, struct wm_error *err)
{
    exec(database, "PRAGMA journal_mode = DELETE", NULL);
    int status = exec(database, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);
    if (status < 0)
        return status;
    if (has_log(database)) {
        exec(database, "ROLLBACK", NULL);
        return begin(database, false, err);
    }
    database->is_adding = true;
    return wm_schema_begin_run(&database->schema, err);
}

static int sqlite_open(void *state, const char *target, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct database *database = state;
    bool is_new = false;

    database->schema = (struct wm_schema) {
        .run = run,
        .channels = channels,
        .count = count,
    };
    int status = open_database(database, target, &is_new, err);
    if (status < 0)
        return status;

    if (database->as_whole && !is_new)
        status = begin_adding(database, err);
    else
        status = begin(database, is_new, err);
    if (status == WM_OK)
        status = prepare_inserts(database, err);
    if (status == WM_OK && !database->is_adding)
        reserve_room(database, target);
    return status;
}

static int insert_sample(const struct database *database, const struct wm_tick *tick,
                         struct wm_error *err)
{
    const struct wm_schema *schema = &database->schema;
    const struct wm_columns *columns = &schema->columns;
    sqlite3_stmt *statement = database->sample;
    int index = 3;

    sqlite3_bind_int64(statement, 1, schema->id);
    sqlite3_bind_int64(statement, 2, tick->when_ns);
    for (size_t clock = 0; clock < columns->clock_count; clock++, index++) {
        int64_t when_ns;
        if (wm_columns_clock(columns, clock, tick->readings, &when_ns))
            sqlite3_bind_int64(statement, index, when_ns);
        else
            sqlite3_bind_null(statement, index);
    }
    for (size_t i = 0; i < schema->count; i++, index++) {
        const struct wm_reading *reading = &tick->readings[i];
        wm_sql_bind_number(
            statement, index,
            (struct wm_known) { reading->state == WM_READING_OK, reading->value });
    }
    return wm_sql_run(statement, schema->db.shown, err);
}

static int begin_transaction(const struct database *database, struct wm_error *err)
{
    return database->is_adding ? WM_OK : exec(database, "BEGIN IMMEDIATE", err);
}

/* Takes back what a transaction has done up to a failure. */
static int end_transaction(const struct database *database, int status,
                           struct wm_error *err)
{
    if (database->is_adding)
        return status;
    if (status == WM_OK)
        status = exec(database, "COMMIT", err);
    if (status < 0 && !sqlite3_get_autocommit(database->schema.db.handle))
        exec(database, "ROLLBACK", NULL);
    return status;
}

static int sqlite_write(void *state, const struct wm_tick *ticks, size_t count,
                        struct wm_error *err)
{
    struct database *database = state;

    int status = begin_transaction(database, err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = insert_sample(database, &ticks[i], err);
    return end_transaction(database, status, err);
}

static int sqlite_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    struct database *database = state;
    const struct wm_schema *schema = &database->schema;

    return wm_sql_put(database->gap, schema->db.shown, err, "itiitt", schema->id,
                      schema->columns.values[gap->channel], gap->from_ns, gap->to_ns,
                      wm_word(WM_WORDS_STATE, (int)gap->state), gap->why);
}

static int insert_path(const struct database *database, uint32_t number,
                       const struct wm_region_path *path, struct wm_error *err)
{
    const struct wm_known parent = { path->parent != WM_REGION_NO_PATH, path->parent };

    return wm_sql_put(database->path, database->schema.db.shown, err, "iintii",
                      database->schema.id, (int64_t)number, parent, path->name,
                      (int64_t)path->depth, (int64_t)path->is_free);
}

static int insert_thread(const struct database *database, uint32_t number,
                         struct wm_region_thread thread, struct wm_error *err)
{
    return wm_sql_put(database->thread, database->schema.db.shown, err, "iiiii",
                      database->schema.id, (int64_t)number, (int64_t)thread.pid,
                      (int64_t)thread.tid, (int64_t)thread.process);
}

/* What a thread told of a call, or of several. */
static void bind_told(sqlite3_stmt *statement, const struct wm_region_record *call,
                      const struct wm_region_fold *fold)
{
    int64_t cells[WM_REGION_FOLD_CELLS];
    char buckets[WM_REGION_BUCKETS_SIZE];

    sqlite3_bind_null(statement, 7);
    if (call->clocked > 0)
        sqlite3_bind_int64(statement, 7, (int64_t)call->clocked - 1);
    for (int i = 0; i < 6; i++)
        sqlite3_bind_null(statement, 8 + i);
    if (!fold)
        return;
    wm_region_fold_cells(fold, cells);
    for (int i = 0; i < 5; i++)
        sqlite3_bind_int64(statement, 8 + i, cells[i]);
    wm_region_buckets_format(fold, buckets);
    sqlite3_bind_text(statement, 13, buckets, -1, SQLITE_TRANSIENT);
}

static int insert_call(const struct database *database, const struct wm_region_record *call,
                       const struct wm_region_fold *fold, struct wm_error *err)
{
    sqlite3_stmt *statement = database->call;

    sqlite3_bind_int64(statement, 2, call->path);
    sqlite3_bind_int64(statement, 3, call->thread);
    sqlite3_bind_int64(statement, 4, call->start_ns);
    sqlite3_bind_int64(statement, 5, call->stop_ns);
    sqlite3_bind_int(statement, 6, call->is_open);
    bind_told(statement, call, fold);
    return wm_sql_run(statement, database->schema.db.shown, err);
}

static int sqlite_regions(void *state, const struct wm_region_batch *batch,
                          struct wm_error *err)
{
    struct database *database = state;

    int status = begin_transaction(database, err);
    for (uint32_t i = 0; i < batch->path_count && status == WM_OK; i++)
        status = insert_path(database, batch->first_path + i, &batch->paths[i], err);
    for (uint32_t i = 0; i < batch->thread_count && status == WM_OK; i++)
        status = insert_thread(database, batch->first_thread + i, batch->threads[i], err);
    sqlite3_bind_int64(database->call, 1, database->schema.id);
    for (size_t i = 0; i < batch->call_count && status == WM_OK; i++)
        status = insert_call(database, &batch->calls[i],
                             wm_region_batch_fold(batch, &batch->calls[i]), err);
    return end_transaction(database, status, err);
}

static int update_result(const struct database *database, const struct wm_result *result,
                         struct wm_error *err)
{
    char *text = NULL;

    int status = wm_result_to_json(result, &text, err);
    if (status == WM_OK)
        status = wm_db_put(&database->schema.db, "UPDATE run SET result = ? WHERE id = ?",
                           err, "ti", text, database->schema.id);
    free(text);
    return status;
}

static int sqlite_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct database *database = state;
    const struct wm_schema *schema = &database->schema;

    give_room(database);
    int status = result ? update_result(database, result, err) : WM_OK;
    if (status == WM_OK && database->is_adding) {
        status = exec(database, "COMMIT", err);
        database->is_adding = status < 0;
        return status;
    }
    if (status < 0)
        return status;

    /* While others are at the file the log is theirs to empty. */
    int outcome = sqlite3_exec(schema->db.handle, "PRAGMA wal_checkpoint(TRUNCATE)", NULL,
                               NULL, NULL);
    bool busy = (outcome & 0xff) == SQLITE_BUSY || (outcome & 0xff) == SQLITE_LOCKED;
    if (outcome != SQLITE_OK && !busy)
        return wm_sql_fail(schema->db.handle, outcome, schema->db.shown, err);
    return WM_OK;
}

/* After an error on the disk SQLite leaves it to the next reader to undo what is in the
 * file. */
static void take_back(const struct database *database)
{
    if (!sqlite3_get_autocommit(database->schema.db.handle))
        exec(database, "ROLLBACK", NULL);
    exec(database, "SELECT count(*) FROM sqlite_master", NULL);
}

static void close_database(struct database *database)
{
    sqlite3_finalize(database->sample);
    sqlite3_finalize(database->gap);
    sqlite3_finalize(database->path);
    sqlite3_finalize(database->thread);
    sqlite3_finalize(database->call);

    if (database->is_adding)
        take_back(database);

    /* Without a log a database can be read where nothing can be written. Only
     * the last writer can do that; for the others it fails. */
    if (database->is_ours)
        exec(database, "PRAGMA journal_mode = DELETE", NULL);
    sqlite3_close(database->schema.db.handle);
}

static void sqlite_close(void *state)
{
    struct database *database = state;

    give_room(database);
    if (database->schema.db.handle)
        close_database(database);
    wm_columns_release(&database->schema.columns);
}

const struct wm_recorder_ops wm_recorder_sqlite = {
    .name = "SQLite",
    .suffixes = suffixes,
    .companions = companions,
    .can_append = true,
    .survives_kill = true,
    .state_size = sizeof(struct database),
    .as_whole = sqlite_as_whole,
    .open = sqlite_open,
    .write = sqlite_write,
    .gap = sqlite_gap,
    .regions = sqlite_regions,
    .finish = sqlite_finish,
    .close = sqlite_close,
};
