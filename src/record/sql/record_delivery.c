/* SPDX-License-Identifier: Apache-2.0 */
/* record_delivery.c - a run on its way from its spool into PostgreSQL: rows as they are,
 * some at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"
#include "base/text/base_number.h"
#include "record/sql/record_pg.h"

/* Held while a run begins, because of two that make the tables at the same time
 * one would fail. */
#define LOCK "SELECT pg_advisory_xact_lock(1465742450)" /* "WMtr" */

/* Bytes that are sent at a time, and at most one row more. */
enum { PART_MAX = 256 * 1024 };

/*
 * The tables that go on growing. Of those of numbers alone, which may have millions of
 * rows, what is there already is found out first, and the rest goes by COPY; the few rows
 * of the others have keys, and are sent once more.
 */
static const struct table {
    const char *name;
    const char *columns; /* NULL: those that the run has */
    const char *key;     /* in whose order the spool has the rows */
    const char *there;   /* a query of the server: what it has of the run %lld; or NULL */
    const char *here; /* one of the spool, with that: the key of the row that came last */
} tables[WM_DELIVERED_TABLES] = {
    {
        .name = "sample",
        .key = "rowid",
        .there = "SELECT max(time_ns), NULL FROM sample WHERE run = %lld",
        .here = "SELECT max(rowid) FROM sample WHERE time_ns <= ?1 AND rowid > ?3",
    },
    {
        .name = "region_path",
        .columns = "id, parent, name, depth, is_free",
        .key = "id",
    },
    {
        .name = "region_thread",
        .columns = "id, pid, tid, process",
        .key = "id",
    },
    {
        /* They come in the order of their stops: so many of the last are there. */
        .name = "region_call",
        .columns = "path, thread, start_ns, stop_ns, is_open, cpu_ns, calls, sum_ns,"
                   " squares, min_ns, max_ns, histogram",
        .key = "rowid",
        .there = "SELECT stop_ns, count(*) FROM region_call WHERE run = %lld"
                 " GROUP BY stop_ns ORDER BY stop_ns DESC LIMIT 1",
        .here = "SELECT max(r) FROM (SELECT rowid AS r FROM region_call"
                " WHERE stop_ns < ?1 AND rowid > ?3 UNION ALL SELECT r FROM"
                " (SELECT rowid AS r FROM region_call WHERE stop_ns = ?1"
                " ORDER BY rowid LIMIT ?2))",
    },
    {
        .name = "gap",
        .columns = "channel, from_ns, to_ns, state, why",
        .key = "rowid",
    },
};

static const struct wm_db *db_of(const struct wm_delivery *delivery)
{
    return wm_pg_db(delivery->pg);
}

static int exec(const struct wm_delivery *delivery, const char *sql, struct wm_error *err)
{
    const struct wm_db *db = db_of(delivery);

    return db->ops->exec(db, sql, err);
}

static int prepare(const struct wm_delivery *delivery, const char *sql,
                   sqlite3_stmt **ret_statement, struct wm_error *err)
{
    return wm_sql_prepare(delivery->spool, sql, delivery->spool_shown, ret_statement, err);
}

static int step(const struct wm_delivery *delivery, sqlite3_stmt *statement,
                struct wm_error *err)
{
    int result = sqlite3_step(statement);

    return result == SQLITE_ROW ? 1
           : result == SQLITE_DONE
               ? 0
               : wm_sql_fail(delivery->spool, result, delivery->spool_shown, err);
}

int wm_delivery_connect(struct wm_delivery *delivery, struct wm_error *err)
{
    bool is_there = false;

    int status = wm_pg_open(delivery->url, delivery->give_up, &delivery->pg, err);
    if (status == WM_OK)
        status = exec(delivery, "BEGIN; " LOCK, err);
    if (status == WM_OK)
        status = wm_pg_check_format(delivery->pg, &is_there, err);
    return status < 0 ? status : exec(delivery, "COMMIT", err);
}

/* Without a transaction, which would keep the spool's log from being emptied while the
 * server is waited for. */
static int open_spool(struct wm_delivery *delivery, const char *path, struct wm_error *err)
{
    delivery->spool_shown = wm_text_path(path);
    int status = wm_sql_open_to_read(path, delivery->spool_shown, &delivery->spool, err);

    return status < 0 ? status
                      : wm_sql_exec(delivery->spool, "COMMIT", delivery->spool_shown, err);
}

/* Every double as it is. COPY knows no quotes, and its tables no texts. False: there was
 * no memory for a text. */
static bool append_value(sqlite3_str *sql, sqlite3_stmt *row, int column, bool is_copy)
{
    char number[WM_NUMBER_SIZE];
    const char *text = number;

    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        sqlite3_str_appendall(sql, is_copy ? "\\N" : "NULL");
        break;
    case SQLITE_FLOAT:
        wm_number_format(sqlite3_column_double(row, column), number);
        sqlite3_str_appendall(sql, number);
        break;
    default:
        text = (const char *)sqlite3_column_text(row, column);
        sqlite3_str_appendf(sql, is_copy ? "%s" : "%Q", text ? text : "");
    }
    return text != NULL;
}

/* The columns of the row from number `first` on. */
static bool append_row(sqlite3_str *sql, sqlite3_stmt *row, int first, bool is_copy)
{
    int count = sqlite3_column_count(row);
    bool is_whole = true;

    for (int i = first; i < count; i++) {
        if (i > first)
            sqlite3_str_appendall(sql, is_copy ? "\t" : ", ");
        is_whole = append_value(sql, row, i, is_copy) && is_whole;
    }
    return is_whole;
}

static void append_columns(sqlite3_str *sql, const struct wm_delivery *delivery,
                           const struct table *table)
{
    if (table->columns) {
        sqlite3_str_appendall(sql, table->columns);
    } else {
        sqlite3_str_appendall(sql, "time_ns");
        wm_sql_append_columns(sql, ", ", &delivery->schema.columns);
    }
}

/* Selects what the server does not have yet. */
static int select_rows(const struct wm_delivery *delivery, const struct table *table,
                       int64_t mark, sqlite3_stmt **ret_rows, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "SELECT %s, ", table->key);
    append_columns(sql, delivery, table);
    sqlite3_str_appendf(sql, " FROM %s WHERE %s > %lld ORDER BY %s", table->name,
                        table->key, (long long)mark, table->key);
    char *text = sqlite3_str_finish(sql);
    int status = text ? prepare(delivery, text, ret_rows, err)
                      : wm_fail_memory(err, db_of(delivery)->shown);
    sqlite3_free(text);
    return status;
}

/* Some rows as the server takes them, in `values`; 1 where there are any. */
static int read_rows(const struct wm_delivery *delivery, const struct table *table,
                     int64_t *mark, sqlite3_str *values, struct wm_error *err)
{
    bool is_copy = table->there != NULL;
    sqlite3_stmt *rows = NULL;
    bool any = false;
    int status = select_rows(delivery, table, *mark, &rows, err);

    while (status == WM_OK && sqlite3_str_length(values) < PART_MAX &&
           (status = step(delivery, rows, err)) > 0) {
        sqlite3_str_appendf(values,
                            is_copy ? "%lld\t"
                            : any   ? ", (%lld, "
                                    : "(%lld, ",
                            (long long)delivery->schema.id);
        status = append_row(values, rows, 1, is_copy)
                     ? WM_OK
                     : wm_fail_memory(err, db_of(delivery)->shown);
        sqlite3_str_appendall(values, is_copy ? "\n" : ")");
        *mark = sqlite3_column_int64(rows, 0);
        any = true;
    }
    sqlite3_finalize(rows);
    return status < 0 ? status : any;
}

static int send_rows(const struct wm_delivery *delivery, const struct table *table,
                     const char *values, struct wm_error *err)
{
    bool is_copy = table->there != NULL;

    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "%s %s (run, ", is_copy ? "COPY" : "INSERT INTO", table->name);
    append_columns(sql, delivery, table);
    if (is_copy)
        sqlite3_str_appendall(sql, ") FROM STDIN");
    else
        sqlite3_str_appendf(sql, ") VALUES %s ON CONFLICT DO NOTHING", values);
    char *text = sqlite3_str_finish(sql);
    int status = text == NULL ? wm_fail_memory(err, db_of(delivery)->shown)
                 : is_copy    ? wm_pg_copy(delivery->pg, text, values, strlen(values), err)
                              : exec(delivery, text, err);
    sqlite3_free(text);
    return status;
}

/* 1 where something of the table was sent. */
static int deliver(const struct wm_delivery *delivery, const struct table *table,
                   int64_t *key, struct wm_error *err)
{
    int64_t next = *key;

    sqlite3_str *values = sqlite3_str_new(NULL);
    int status = read_rows(delivery, table, &next, values, err);
    char *text = sqlite3_str_finish(values);
    if (status > 0) {
        status = text ? send_rows(delivery, table, text, err)
                      : wm_fail_memory(err, db_of(delivery)->shown);
        status = status < 0 ? status : 1;
        *key = next;
    }
    sqlite3_free(text);
    return status;
}

/* Asks the server what it has of the table already. */
static int find_mark(const struct wm_delivery *delivery, const struct table *table,
                     struct wm_delivery_mark *mark, struct wm_error *err)
{
    const struct wm_db *db = db_of(delivery);
    struct wm_db_rows rows = { 0 };

    *mark = (struct wm_delivery_mark) { .key = -1 };
    if (!table->there)
        return WM_OK;
    int status = wm_db_query(db, &rows, err, table->there, (long long)delivery->schema.id);
    if (status < 0)
        return status;
    status = db->ops->next(&rows, err);
    if (status > 0) {
        mark->is_resuming = db->ops->integer(&rows, 0, &mark->whole) == WM_DB_OK;
        db->ops->integer(&rows, 1, &mark->count);
    }
    db->ops->end(&rows);
    return status < 0 ? status : WM_OK;
}

static int find_marks(struct wm_delivery *delivery, struct wm_error *err)
{
    int status = exec(delivery, "BEGIN", err);

    for (size_t i = 0; i < WM_DELIVERED_TABLES && status == WM_OK; i++)
        status = find_mark(delivery, &tables[i], &delivery->marks[i], err);
    return status < 0 ? status : exec(delivery, "COMMIT", err);
}

/* Goes past the rows of the spool that are there already. */
static int skip_rows(const struct wm_delivery *delivery, const struct table *table,
                     struct wm_delivery_mark *mark, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int status = prepare(delivery, table->here, &statement, err);

    if (status < 0)
        return status;
    sqlite3_bind_int64(statement, 1, mark->whole);
    sqlite3_bind_int64(statement, 2, mark->count);
    sqlite3_bind_int64(statement, 3, mark->key);
    status = step(delivery, statement, err);
    if (status > 0 && sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
        mark->key = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status < 0 ? status : WM_OK;
}

static int deliver_table(struct wm_delivery *delivery, size_t index, struct wm_error *err)
{
    struct wm_delivery_mark *mark = &delivery->marks[index];
    int status = mark->is_resuming ? skip_rows(delivery, &tables[index], mark, err) : WM_OK;

    if (status == WM_OK)
        status = deliver(delivery, &tables[index], &mark->key, err);
    if (status > 0)
        mark->is_resuming = false;
    return status;
}

/* Some of each table that may have millions of rows, and all of the others, which those
 * refer to: all of it or nothing. 1 where something was sent. */
static int deliver_batch(struct wm_delivery *delivery, struct wm_error *err)
{
    bool has_sent = false, has_ticks = false;
    int status = exec(delivery, "BEGIN", err);

    for (size_t i = 0; i < WM_DELIVERED_TABLES && status >= 0; i++) {
        do {
            status = deliver_table(delivery, i, err);
            has_sent |= status > 0;
            has_ticks |= status > 0 && i == 0;
        } while (status > 0 && !tables[i].there);
    }
    if (status >= 0)
        status = exec(delivery, "COMMIT", err);
    delivery->has_ticks |= status == WM_OK && has_ticks;
    return status < 0 ? status : has_sent;
}

/* Makes a statement for the server: `before`, the row that `select` gives, `after`. */
static int row_to_sql(const struct wm_delivery *delivery, const char *select,
                      const char *before, const char *after, char **ret_sql,
                      struct wm_error *err)
{
    sqlite3_stmt *row = NULL;
    int status = prepare(delivery, select, &row, err);

    if (status < 0)
        return status;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, before);
    status = step(delivery, row, err);
    if (status > 0 && !append_row(sql, row, 0, false))
        status = wm_fail_memory(err, db_of(delivery)->shown);
    sqlite3_finalize(row);
    sqlite3_str_appendall(sql, after);
    *ret_sql = sqlite3_str_finish(sql);
    if (status >= 0 && *ret_sql)
        return WM_OK;
    sqlite3_free(*ret_sql);
    return status < 0 ? status : wm_fail_memory(err, db_of(delivery)->shown);
}

static int describe_run(struct wm_delivery *delivery, struct wm_error *err)
{
    static const struct table channels = {
        .name = "channel",
        .columns = "ordinal, column_name, clock_column, source, device, label, model,"
                   " metric, unit, device_kind, kind, origin, period_ns, sensor",
        .key = "ordinal",
    };
    const struct wm_db *db = db_of(delivery);
    int64_t key = -1;
    char *row = NULL;

    int status = row_to_sql(delivery,
                            "SELECT started, host, boot_id, command, version, format,"
                            " anchor_monotonic_ns, anchor_unix_ns, info FROM run",
                            "", "", &row, err);
    if (status < 0)
        return status;
    status = wm_db_exec_made(
        db,
        sqlite3_mprintf("INSERT INTO run (uuid, started, host, boot_id, command, version,"
                        " format, anchor_monotonic_ns, anchor_unix_ns, info)"
                        " VALUES (%Q, %s)",
                        delivery->run->id, row),
        err);
    sqlite3_free(row);
    if (status == WM_OK)
        status = wm_db_number(db, &delivery->schema.id, err, "SELECT lastval()");
    while (status == WM_OK && (status = deliver(delivery, &channels, &key, err)) > 0)
        status = WM_OK;
    return status;
}

/* Whether the run that is there has the very columns that we would write to. */
static int check_channels(const struct wm_delivery *delivery, struct wm_error *err)
{
    const struct wm_columns *columns = &delivery->schema.columns;
    const struct wm_db *db = db_of(delivery);
    struct wm_db_rows rows = { 0 };
    size_t count = 0;
    bool same = true;

    int status = wm_db_query(db, &rows, err,
                             "SELECT column_name, clock_column FROM channel"
                             " WHERE run = %lld ORDER BY ordinal",
                             (long long)delivery->schema.id);
    if (status < 0)
        return status;
    for (; same && (status = db->ops->next(&rows, err)) > 0; count++) {
        const char *value = db->ops->text(&rows, 0), *clock = db->ops->text(&rows, 1);
        same = count < columns->count && value && clock &&
               strcmp(value, columns->values[count]) == 0 &&
               strcmp(clock, columns->clocks[columns->clock_of[count]]) == 0;
    }
    db->ops->end(&rows);
    if (status < 0 || (same && count == columns->count))
        return status < 0 ? status : WM_OK;
    return wm_fail(err, WM_EFORMAT, "%s: has this very run with other channels", db->shown);
}

/* An administrator may have made the schema for one who may make none. */
static int make_schema(const struct wm_db *db, struct wm_error *err)
{
    int64_t is_there = 0;

    int status = wm_db_number(db, &is_there, err,
                              "SELECT count(*) FROM pg_catalog.pg_namespace"
                              " WHERE nspname = '" WM_PG_SCHEMA "'");
    return status < 0 || is_there ? status
                                  : db->ops->exec(db, "CREATE SCHEMA " WM_PG_SCHEMA, err);
}

static int begin_run(struct wm_delivery *delivery, struct wm_error *err)
{
    struct wm_schema *schema = &delivery->schema;
    int64_t id = 0;
    bool is_there = false;

    int status = wm_pg_check_format(delivery->pg, &is_there, err);
    if (status == WM_OK && !is_there)
        status = make_schema(&schema->db, err);
    if (status == WM_OK && !is_there)
        status = exec(delivery, schema->db.dialect->tables, err);
    if (status == WM_OK && delivery->run->id)
        status = wm_db_number(&schema->db, &id, err, "SELECT id FROM run WHERE uuid = %Q",
                              delivery->run->id);
    if (status < 0)
        return status;
    if (id > 0) {
        schema->id = id;
        status = wm_columns_plan(delivery->channels, delivery->count, NULL, 0,
                                 &schema->columns, err);
        return status < 0 ? status : check_channels(delivery, err);
    }
    status = wm_schema_make_columns(schema, err);
    if (status == WM_OK)
        status = describe_run(delivery, err);
    delivery->is_new |= status == WM_OK;
    return status;
}

static int begin(struct wm_delivery *delivery, struct wm_error *err)
{
    delivery->schema = (struct wm_schema) {
        .db = *db_of(delivery),
        .run = delivery->run,
        .channels = delivery->channels,
        .count = delivery->count,
        .id = delivery->schema.id,
    };
    int status = exec(delivery, "BEGIN; " LOCK, err);
    if (status == WM_OK)
        status = begin_run(delivery, err);
    if (status == WM_OK)
        status = exec(delivery, "COMMIT", err);
    delivery->has_begun = status == WM_OK;
    return status;
}

int wm_delivery_step(struct wm_delivery *delivery, const char *spool, struct wm_error *err)
{
    bool is_other = spool && !delivery->spool;
    int status = delivery->pg ? WM_OK : wm_delivery_connect(delivery, err);

    if (status == WM_OK && is_other)
        status = open_spool(delivery, spool, err);
    if (status == WM_OK && !delivery->has_begun) {
        is_other = delivery->spool != NULL;
        status = begin(delivery, err);
    }
    if (status == WM_OK && is_other)
        status = find_marks(delivery, err);
    return status < 0 || !delivery->spool ? status : deliver_batch(delivery, err);
}

int wm_delivery_finish(struct wm_delivery *delivery, const struct wm_result *result,
                       struct wm_error *err)
{
    const struct wm_db *db = db_of(delivery);
    int64_t count = 0;
    char *json = NULL;

    int status = wm_result_to_json(result, &json, err);
    if (status < 0)
        return status;
    status =
        wm_db_exec_made(db,
                        sqlite3_mprintf("BEGIN; UPDATE run SET result = %Q WHERE id = %lld",
                                        json, (long long)delivery->schema.id),
                        err);
    free(json);
    if (status == WM_OK)
        status = wm_db_number(db, &count, err, "SELECT count(*) FROM run WHERE id = %lld",
                              (long long)delivery->schema.id);
    if (status == WM_OK && count != 1)
        status = wm_fail(err, WM_EIO, "%s: the run has been deleted", db->shown);
    return status < 0 ? status : exec(delivery, "COMMIT", err);
}

/* A connection is good for nothing after a failure, so this may be another one; should that
 * fail too, the run stays. */
void wm_delivery_take_back(struct wm_delivery *delivery)
{
    if (!delivery->is_new)
        return;
    if (!delivery->pg && wm_pg_open(delivery->url, NULL, &delivery->pg, NULL) < 0)
        return;
    wm_db_exec_made(db_of(delivery),
                    sqlite3_mprintf("DELETE FROM " WM_PG_SCHEMA ".run WHERE id = %lld",
                                    (long long)delivery->schema.id),
                    NULL);
}

void wm_delivery_close_spool(struct wm_delivery *delivery)
{
    if (delivery->spool)
        sqlite3_close(delivery->spool);
    delivery->spool = NULL;
}

void wm_delivery_disconnect(struct wm_delivery *delivery)
{
    wm_delivery_close_spool(delivery);
    wm_pg_close(delivery->pg);
    delivery->pg = NULL;
    wm_columns_release(&delivery->schema.columns);
    delivery->has_begun = false;
}
