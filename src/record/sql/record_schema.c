/* SPDX-License-Identifier: Apache-2.0 */
/* record_schema.c - the tables of an SQLite recording, and how a run begins in
 * them. */
#include "record/sql/record_sql.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "record/calls/record_timepoint.h"
#include "record/record_channel.h"

/* gpu_tracker's tables have its columns and no others, for its reader takes
 * whatever there is; so its rows cannot say of which run they are. */
static const char tables[] =
    "CREATE TABLE run (id INTEGER PRIMARY KEY, started TEXT, host TEXT, boot_id TEXT,"
    " command TEXT, version TEXT, format INTEGER, anchor_monotonic_ns INTEGER,"
    " anchor_unix_ns INTEGER, info TEXT NOT NULL, result TEXT);"
    "CREATE TABLE channel (run INTEGER NOT NULL, ordinal INTEGER NOT NULL,"
    " column_name TEXT NOT NULL, source TEXT, device TEXT, label TEXT, model TEXT,"
    " metric TEXT, unit TEXT, device_kind TEXT, kind TEXT, origin TEXT,"
    " period_ns INTEGER, clock_column TEXT, sensor TEXT, PRIMARY KEY (run, ordinal));"
    "CREATE TABLE gap (run INTEGER NOT NULL, channel TEXT NOT NULL, from_ns INTEGER,"
    " to_ns INTEGER, state TEXT, why TEXT);"
    "CREATE TABLE static_data (ram_unit VARCHAR, gpu_ram_unit VARCHAR, time_unit VARCHAR,"
    " ram_system_capacity FLOAT, gpu_ram_system_capacity FLOAT, system_core_count INTEGER,"
    " n_expected_cores INTEGER, system_gpu_count INTEGER, n_expected_gpus INTEGER);";

/* What the measured program told of itself, which is part of the result. */
static const char metric_view[] =
    "CREATE VIEW IF NOT EXISTS metric AS SELECT run.id AS run, series.key AS name,"
    " json_extract(point.value, '$[0]') AS time_ns,"
    " json_extract(point.value, '$[1]') AS value"
    " FROM run, json_each(run.result, '$.metrics.series') AS series,"
    " json_each(series.value) AS point";

/* A call is a row of numbers, for there may be millions. An older file has none of these,
 * and an empty table where the view is now. */
static const char region_tables[] =
    "CREATE TABLE IF NOT EXISTS region_path (run INTEGER NOT NULL, id INTEGER NOT NULL,"
    " parent INTEGER, name TEXT, depth INTEGER, is_free INTEGER, PRIMARY KEY (run, id))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS region_thread (run INTEGER NOT NULL, id INTEGER NOT NULL,"
    " pid INTEGER, tid INTEGER, process INTEGER, PRIMARY KEY (run, id)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS region_call (run INTEGER NOT NULL, path INTEGER,"
    " thread INTEGER, start_ns INTEGER, stop_ns INTEGER, is_open INTEGER);"
    "CREATE VIEW IF NOT EXISTS region AS SELECT region_call.run AS run, pid, tid, name,"
    " start_ns, stop_ns, depth, is_open AS open FROM region_call"
    " LEFT JOIN region_path ON region_path.run = region_call.run"
    " AND region_path.id = region_call.path"
    " LEFT JOIN region_thread ON region_thread.run = region_call.run"
    " AND region_thread.id = region_call.thread;";

/* The columns of `sample` that there are already, some of them twice. */
struct taken {
    struct wm_taken_column *columns;
    size_t count, room;
    size_t table_width; /* 0 where there is no table yet */
};

static int out_of_memory(const struct wm_schema *schema, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", schema->path);
}

static int exec(const struct wm_schema *schema, const char *sql, struct wm_error *err)
{
    return wm_sql_exec(schema->db, sql, schema->path, err);
}

static int prepare(const struct wm_schema *schema, const char *sql,
                   sqlite3_stmt **ret_statement, struct wm_error *err)
{
    return wm_sql_prepare(schema->db, sql, schema->path, ret_statement, err);
}

static int add_taken(struct taken *taken, const char *name, char *owner)
{
    char *copy = strdup(name);

    if (!copy || !owner ||
        wm_array_reserve(&taken->columns, taken->count, &taken->room,
                         sizeof(*taken->columns)) < 0) {
        free(copy);
        free(owner);
        return WM_ENOMEM;
    }
    taken->columns[taken->count++] = (struct wm_taken_column) { copy, owner };
    return WM_OK;
}

static void release_taken(struct taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        free(taken->columns[i].name);
        free(taken->columns[i].owner);
    }
    free(taken->columns);
}

static const char *text_at(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);

    return text ? (const char *)text : "";
}

/* The columns of earlier runs with what they stand for, and then all columns
 * of the table once more, so that one of unknown use is known to be taken. */
static int load_taken(const struct wm_schema *schema, struct taken *taken,
                      struct wm_error *err)
{
    static const char sql[] =
        "SELECT DISTINCT column_name, source, device, metric, unit, 0 FROM channel"
        " UNION ALL SELECT DISTINCT clock_column, source, device, '', '', 0 FROM channel"
        " WHERE clock_column IS NOT NULL"
        " UNION ALL SELECT name, '', '', '', '', 1 FROM pragma_table_info('sample')";
    sqlite3_stmt *statement = NULL;
    int result = SQLITE_ROW;

    int status = prepare(schema, sql, &statement, err);
    while (status == WM_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        char *owner = wm_column_owner(text_at(statement, 1), text_at(statement, 2),
                                      text_at(statement, 3), text_at(statement, 4));
        if (add_taken(taken, text_at(statement, 0), owner) < 0)
            status = out_of_memory(schema, err);
        taken->table_width += sqlite3_column_int(statement, 5) != 0;
    }
    if (status == WM_OK && result != SQLITE_DONE)
        status = wm_sql_fail(schema->db, result, schema->path, err);
    sqlite3_finalize(statement);
    return status;
}

static bool is_taken(const struct taken *taken, const char *name)
{
    for (size_t i = 0; i < taken->count; i++) {
        if (sqlite3_stricmp(taken->columns[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Few tables are so wide that SQLite's limit, usually 2,000 columns, counts. */
static int check_width(const struct wm_schema *schema, const struct taken *taken,
                       struct wm_error *err)
{
    const struct wm_columns *columns = &schema->columns;
    int limit = sqlite3_limit(schema->db, SQLITE_LIMIT_COLUMN, -1);
    size_t width = taken->table_width > 0 ? taken->table_width : 2; /* run, time_ns */

    for (size_t i = 0; i < columns->clock_count; i++)
        width += !is_taken(taken, columns->clocks[i]);
    for (size_t i = 0; i < columns->count; i++)
        width += !is_taken(taken, columns->values[i]);
    if (width > (size_t)limit)
        return wm_fail(err, WM_EINVAL,
                       "%s: needs %zu columns, and a table has up to %d; record to .csv",
                       schema->path, width, limit);
    return WM_OK;
}

/* At once, because adding a column takes SQLite as long as reading all those
 * that there are. */
static int create_sample(const struct wm_schema *schema, struct wm_error *err)
{
    const struct wm_columns *columns = &schema->columns;

    sqlite3_str *sql = sqlite3_str_new(schema->db);
    sqlite3_str_appendall(
        sql, "CREATE TABLE sample (run INTEGER NOT NULL, time_ns INTEGER NOT NULL");
    for (size_t i = 0; i < columns->clock_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER", columns->clocks[i]);
    for (size_t i = 0; i < columns->count; i++)
        sqlite3_str_appendf(sql, ", \"%w\" REAL", columns->values[i]);
    sqlite3_str_appendall(sql, ", PRIMARY KEY (run, time_ns))");
    return wm_sql_exec_made(schema->db, sqlite3_str_finish(sql), schema->path, err);
}

/* Adds those that are not there. */
static int add_columns(const struct wm_schema *schema, char *const *names, size_t count,
                       const char *type, const struct taken *taken, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (!is_taken(taken, names[i]))
            status = wm_sql_exec_made(
                schema->db,
                sqlite3_mprintf("ALTER TABLE sample ADD COLUMN \"%w\" %s", names[i], type),
                schema->path, err);
    }
    return status;
}

static int extend_sample(const struct wm_schema *schema, const struct taken *taken,
                         struct wm_error *err)
{
    const struct wm_columns *columns = &schema->columns;

    int status =
        add_columns(schema, columns->clocks, columns->clock_count, "INTEGER", taken, err);
    return status < 0
               ? status
               : add_columns(schema, columns->values, columns->count, "REAL", taken, err);
}

static int plan_columns(struct wm_schema *schema, struct wm_error *err)
{
    struct taken taken = { 0 };

    int status = load_taken(schema, &taken, err);
    if (status == WM_OK)
        status = wm_columns_plan(schema->channels, schema->count, taken.columns,
                                 taken.count, &schema->columns, err);
    if (status == WM_OK)
        status = check_width(schema, &taken, err);
    if (status == WM_OK)
        status = taken.table_width == 0 ? create_sample(schema, err)
                                        : extend_sample(schema, &taken, err);
    release_taken(&taken);
    return status;
}

static int create_tables(const struct wm_schema *schema, struct wm_error *err)
{
    int status = exec(schema, tables, err);
    if (status < 0)
        return status;

    sqlite3_str *sql = sqlite3_str_new(schema->db);
    sqlite3_str_appendall(sql, "CREATE TABLE data (");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool whole = i >= WM_MAIN_THREADS && i <= WM_COMBINED_THREADS;
        sqlite3_str_appendf(sql, "%s %s, ", wm_measurement_name((enum wm_measurement)i),
                            whole ? "INTEGER" : "FLOAT");
    }
    sqlite3_str_appendf(sql,
                        "timestamp FLOAT); PRAGMA application_id = %d;"
                        "PRAGMA user_version = %d",
                        WM_SQL_APPLICATION_ID, WM_RECORDING_FORMAT);
    return wm_sql_exec_made(schema->db, sqlite3_str_finish(sql), schema->path, err);
}

static int insert_run(struct wm_schema *schema, struct wm_error *err)
{
    const struct wm_run *run = schema->run;
    sqlite3_stmt *statement = NULL;
    char started[32], *info = NULL;
    int status;

    char *command = wm_run_command_line(run);
    if (!command)
        return out_of_memory(schema, err);
    wm_clock_rfc3339(run->anchor_unix_ns, started, sizeof(started));
    const char *const texts[] = { started, run->host, run->boot_id, command, run->version };
    enum { TEXT_COUNT = sizeof(texts) / sizeof(texts[0]) };

    status = wm_run_to_json(run, &info, err);
    if (status == WM_OK)
        status =
            prepare(schema,
                    "INSERT INTO run (started, host, boot_id, command, version, format,"
                    " anchor_monotonic_ns, anchor_unix_ns, info)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    &statement, err);
    for (int i = 0; i < TEXT_COUNT && status == WM_OK; i++)
        status = wm_sql_bind_text(statement, i + 1, texts[i], schema->path, err);
    if (status == WM_OK) {
        sqlite3_bind_int(statement, TEXT_COUNT + 1, WM_RECORDING_FORMAT);
        sqlite3_bind_int64(statement, TEXT_COUNT + 2, run->anchor_ns);
        sqlite3_bind_int64(statement, TEXT_COUNT + 3, run->anchor_unix_ns);
        status = wm_sql_bind_text(statement, TEXT_COUNT + 4, info, schema->path, err);
    }
    if (status == WM_OK)
        status = wm_sql_run(statement, schema->path, err);
    schema->id = sqlite3_last_insert_rowid(schema->db);
    sqlite3_finalize(statement);
    free(command);
    free(info);
    return status;
}

static int insert_channels(const struct wm_schema *schema, struct wm_error *err)
{
    const struct wm_columns *columns = &schema->columns;
    sqlite3_stmt *statement = NULL;

    int status = prepare(schema,
                         "INSERT INTO channel (run, ordinal, period_ns, column_name,"
                         " clock_column, source, device, label, model, metric, unit,"
                         " device_kind, kind, origin, sensor)"
                         " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         &statement, err);
    for (size_t i = 0; i < schema->count && status == WM_OK; i++) {
        const struct wm_channel *channel = &schema->channels[i];
        char *sensor = wm_sensor_to_json(&channel->sensor);
        const char *const texts[] = {
            columns->values[i],
            columns->clocks[columns->clock_of[i]],
            channel->source,
            channel->device,
            channel->label,
            channel->model,
            channel->metric,
            channel->unit,
            wm_word(WM_WORDS_DEVICE_KIND, (int)channel->device_kind),
            wm_word(WM_WORDS_KIND, (int)channel->kind),
            wm_word(WM_WORDS_ORIGIN, (int)channel->origin),
            sensor,
        };
        if (!sensor)
            status = out_of_memory(schema, err);
        sqlite3_clear_bindings(statement);
        sqlite3_bind_int64(statement, 1, schema->id);
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)i);
        sqlite3_bind_int64(statement, 3, channel->period_ns);
        for (int t = 0; t < (int)(sizeof(texts) / sizeof(texts[0])) && status == WM_OK; t++)
            status = wm_sql_bind_text(statement, 4 + t, texts[t], schema->path, err);
        if (status == WM_OK)
            status = wm_sql_run(statement, schema->path, err);
        free(sensor);
    }
    sqlite3_finalize(statement);
    return status;
}

/* One row, as gpu_tracker has it: that of the newest run. NAN: not known. */
int wm_schema_static_data(const struct wm_schema *schema, double ram, double gpu_ram,
                          struct wm_error *err)
{
    const struct wm_run *run = schema->run;
    sqlite3_stmt *statement = NULL;

    int status = exec(schema, "DELETE FROM static_data", err);
    if (status == WM_OK)
        status = prepare(schema,
                         "INSERT INTO static_data"
                         " VALUES ('bytes', 'bytes', 'seconds', ?, ?, ?, ?, ?, ?)",
                         &statement, err);
    if (status < 0)
        return status;
    wm_sql_bind_number(statement, 1, ram);
    wm_sql_bind_number(statement, 2, gpu_ram);
    sqlite3_bind_int(statement, 3, run->core_count);
    wm_sql_bind_number(statement, 4, run->expected_cores > 0 ? run->expected_cores : NAN);
    sqlite3_bind_int(statement, 5, run->gpu_count);
    sqlite3_bind_int(statement, 6, run->expected_gpu_count);
    status = wm_sql_run(statement, schema->path, err);
    sqlite3_finalize(statement);
    return status;
}

/* The table of earlier versions was never written to. One that has something in it is not
 * ours, and stays. */
static int create_region_tables(const struct wm_schema *schema, struct wm_error *err)
{
    sqlite3_int64 is_old = 0, is_used = 0;

    int status = wm_sql_number(
        schema->db,
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'region'",
        schema->path, &is_old, err);
    if (status == WM_OK && is_old)
        status = wm_sql_number(schema->db, "SELECT count(*) FROM region", schema->path,
                               &is_used, err);
    if (status == WM_OK && is_old && !is_used)
        status = exec(schema, "DROP TABLE region", err);
    return status < 0 ? status : exec(schema, region_tables, err);
}

/* The table of earlier versions says nothing of sensors. */
static int extend_channel(const struct wm_schema *schema, struct wm_error *err)
{
    sqlite3_int64 has_sensor = 0;

    int status =
        wm_sql_number(schema->db, WM_SQL_HAS_SENSOR, schema->path, &has_sensor, err);
    return status < 0 || has_sensor
               ? status
               : exec(schema, "ALTER TABLE channel ADD COLUMN sensor TEXT", err);
}

static int begin_run(struct wm_schema *schema, struct wm_error *err)
{
    sqlite3_int64 count = 0;

    /* With the lock, for two may want to make the tables at the same time. */
    int status = wm_sql_number(schema->db, "SELECT count(*) FROM sqlite_master",
                               schema->path, &count, err);
    if (status == WM_OK && count == 0)
        status = create_tables(schema, err);
    if (status == WM_OK)
        status = extend_channel(schema, err);
    if (status == WM_OK)
        status = exec(schema, metric_view, err);
    if (status == WM_OK)
        status = create_region_tables(schema, err);
    if (status == WM_OK)
        status = plan_columns(schema, err);
    if (status == WM_OK)
        status = insert_run(schema, err);
    if (status == WM_OK)
        status = insert_channels(schema, err);
    if (status == WM_OK)
        status = wm_schema_static_data(schema, NAN, NAN, err);
    return status;
}

int wm_schema_begin_run(struct wm_schema *schema, struct wm_error *err)
{
    if (!sqlite3_get_autocommit(schema->db))
        return begin_run(schema, err);

    int status = exec(schema, "BEGIN IMMEDIATE", err);
    if (status < 0)
        return status;
    status = begin_run(schema, err);
    if (status == WM_OK)
        status = exec(schema, "COMMIT", err);
    if (status < 0)
        exec(schema, "ROLLBACK", NULL);
    return status;
}
