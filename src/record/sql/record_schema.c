/* SPDX-License-Identifier: Apache-2.0 */
/* record_schema.c - the tables of a recording in SQLite and in PostgreSQL, and how a run
 * begins in an SQLite file. */
#include "record/sql/record_sql.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "record/record_channel.h"

#define TEXT_OF(number) #number
#define NUMBER_TEXT(number) TEXT_OF(number)
#define FORMAT_TEXT NUMBER_TEXT(WM_RECORDING_FORMAT)
#define APPLICATION_TEXT NUMBER_TEXT(WM_SQL_APPLICATION_ID)

/* A call is a row of numbers, for there may be millions. */
#define TABLES(KEY, RUN, INTEGER, TIME, JSON, BOOLEAN, GAP_KEY, AT_KEY)                    \
    "CREATE TABLE run (id " KEY ", started " TIME ", host TEXT, boot_id TEXT,"             \
    " command TEXT, version TEXT, format INTEGER, anchor_monotonic_ns " INTEGER            \
    ", anchor_unix_ns " INTEGER ", info " JSON " NOT NULL, result " JSON ");"              \
    "CREATE TABLE channel (" RUN ", ordinal INTEGER NOT NULL, column_name TEXT NOT NULL,"  \
    " source TEXT, device TEXT, label TEXT, model TEXT, metric TEXT, unit TEXT,"           \
    " device_kind TEXT, kind TEXT, origin TEXT, period_ns " INTEGER ", clock_column TEXT," \
    " sensor " JSON ", PRIMARY KEY (run, ordinal));"                                       \
    "CREATE TABLE gap (" RUN ", channel TEXT NOT NULL, from_ns " INTEGER                   \
    ", to_ns " INTEGER ", state TEXT, why TEXT" GAP_KEY ");"                               \
    "CREATE TABLE region_path (" RUN ", id " INTEGER " NOT NULL, parent " INTEGER          \
    ", name TEXT, depth " INTEGER ", is_free " BOOLEAN ", PRIMARY KEY (run, id))" AT_KEY   \
    ";"                                                                                    \
    "CREATE TABLE region_thread (" RUN ", id " INTEGER " NOT NULL, pid INTEGER,"           \
    " tid INTEGER, process " INTEGER ", PRIMARY KEY (run, id))" AT_KEY ";"                 \
    "CREATE TABLE region_call (" RUN ", path " INTEGER ", thread " INTEGER                 \
    ", start_ns " INTEGER ", stop_ns " INTEGER ", is_open " BOOLEAN ", cpu_ns " INTEGER    \
    ", calls " INTEGER ", sum_ns " INTEGER ", squares " INTEGER ", min_ns " INTEGER        \
    ", max_ns " INTEGER ", histogram TEXT);"                                               \
    "CREATE VIEW region AS SELECT region_call.run AS run, pid, tid, name,"                 \
    " start_ns, stop_ns, depth, is_open AS open, cpu_ns, calls FROM region_call"           \
    " LEFT JOIN region_path ON region_path.run = region_call.run"                          \
    " AND region_path.id = region_call.path"                                               \
    " LEFT JOIN region_thread ON region_thread.run = region_call.run"                      \
    " AND region_thread.id = region_call.thread;"

/* The rows of a run are wide: without an index, finding one of many runs reads most of the
 * file. */
#define INDEXES_IN_SQLITE                                                                  \
    "CREATE INDEX run_order ON run (id); CREATE INDEX gap_run ON gap (run);"

#define SQLITE_RUN "run INTEGER NOT NULL"

#define MARKS_IN_SQLITE                                                                    \
    "PRAGMA application_id = " APPLICATION_TEXT ";PRAGMA user_version = " FORMAT_TEXT

#define METRIC_IN_SQLITE                                                                   \
    "CREATE VIEW metric AS SELECT run.id AS run, series.key AS name,"                      \
    " json_extract(point.value, '$[0]') AS time_ns,"                                       \
    " json_extract(point.value, '$[1]') AS value"                                          \
    " FROM run, json_each(run.result, '$.metrics.series') AS series,"                      \
    " json_each(series.value) AS point;"

/* The view `metric` is what the measured program reported of itself, which is part of the
 * result. */
const struct wm_dialect wm_dialect_sqlite = {
    .tables =
        TABLES("INTEGER PRIMARY KEY", SQLITE_RUN, "INTEGER", "TEXT", "TEXT", "INTEGER", "",
               " WITHOUT ROWID") METRIC_IN_SQLITE INDEXES_IN_SQLITE MARKS_IN_SQLITE,
    .of_run = SQLITE_RUN,
    .integer = "INTEGER",
    .real = "REAL",
    .has_devices = true,
    .sample_names = "SELECT name, '', '', '', '' FROM pragma_table_info('sample')",
    .gap_order = "rowid",
    .call_order = "rowid",
};

#define POSTGRES_RUN "run bigint NOT NULL REFERENCES run ON DELETE CASCADE"

#define POSTGRES_KEY "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, uuid text UNIQUE"

#define POSTGRES_GAP_KEY                                                                   \
    ", ordinal bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (run, channel, from_ns)"

#define MARKS_IN_POSTGRES                                                                  \
    "CREATE TABLE recording_format (version integer PRIMARY KEY);"                         \
    "INSERT INTO recording_format VALUES (" FORMAT_TEXT ");"

#define METRIC_IN_POSTGRES                                                                 \
    "CREATE VIEW metric AS SELECT run.id AS run, series.key AS name,"                      \
    " (point.value ->> 0)::bigint AS time_ns,"                                             \
    " (point.value ->> 1)::double precision AS value"                                      \
    " FROM run, json_each(run.result -> 'metrics' -> 'series') AS series,"                 \
    " json_array_elements(series.value) AS point (value);"

#define POSTGRES_INDEX "CREATE INDEX ON region_call (run);"

const struct wm_dialect wm_dialect_postgres = {
    .tables =
        TABLES(POSTGRES_KEY, POSTGRES_RUN, "bigint", "timestamptz", "json", "boolean",
               POSTGRES_GAP_KEY, "") METRIC_IN_POSTGRES POSTGRES_INDEX MARKS_IN_POSTGRES,
    .of_run = POSTGRES_RUN,
    .integer = "bigint",
    .real = "double precision",
    .sample_names = "SELECT attname::text, '', '', '', '' FROM pg_catalog.pg_attribute"
                    " WHERE attrelid = to_regclass('sample') AND attnum > 0"
                    " AND NOT attisdropped",
    .gap_order = "ordinal",
    .call_order = "stop_ns",
};

/* The columns of `sample` that there are already. */
struct taken {
    struct wm_taken_column *columns;
    size_t count, room;
    size_t first; /* the first column of the table; before it those of earlier runs */
};

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

static const char *text_at(const struct wm_db_rows *rows, int column)
{
    const char *text = rows->db->ops->text(rows, column);

    return text ? text : "";
}

static int load_taken(const struct wm_db *db, const char *sql, struct taken *taken,
                      struct wm_error *err)
{
    struct wm_db_rows rows = { 0 };

    int status = wm_db_query(db, &rows, err, "%s", sql);
    if (status < 0)
        return status;
    while ((status = db->ops->next(&rows, err)) > 0) {
        char *owner = wm_column_owner(text_at(&rows, 1), text_at(&rows, 2),
                                      text_at(&rows, 3), text_at(&rows, 4));
        if (add_taken(taken, text_at(&rows, 0), owner) < 0) {
            status = wm_fail_memory(err, db->shown);
            break;
        }
    }
    db->ops->end(&rows);
    return status;
}

static bool is_there(const struct taken *taken, const char *name)
{
    for (size_t i = taken->first; i < taken->count; i++) {
        if (strcmp(taken->columns[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Appends what makes those that are missing; returns how many. */
static size_t append_missing(sqlite3_str *sql, const struct taken *taken,
                             char *const *names, size_t count, const char *type)
{
    bool is_new = taken->first == taken->count;
    size_t missing = 0;

    for (size_t i = 0; i < count; i++) {
        if (is_there(taken, names[i]))
            continue;
        sqlite3_str_appendf(
            sql, is_new ? ", \"%w\" %s" : "ALTER TABLE sample ADD COLUMN \"%w\" %s;",
            names[i], type);
        missing++;
    }
    return missing;
}

/* Few tables are so wide that it counts. */
static int check_width(const struct wm_schema *schema, size_t width, struct wm_error *err)
{
    size_t own = 2 + schema->columns.count + schema->columns.clock_count;
    bool row_fits = own <= schema->db.row_max;

    if (row_fits && width <= schema->db.width_max)
        return WM_OK;
    return wm_fail(err, WM_EINVAL,
                   "%s: needs %zu columns, and a %s has up to %zu; record to .csv",
                   schema->db.shown, row_fits ? width : own, row_fits ? "table" : "row",
                   row_fits ? schema->db.width_max : schema->db.row_max);
}

/* A new table gets them all at once, because adding a column takes SQLite as long as
 * reading all those that there are. */
static int make_missing(const struct wm_schema *schema, const struct taken *taken,
                        struct wm_error *err)
{
    const struct wm_columns *columns = &schema->columns;
    const struct wm_dialect *dialect = schema->db.dialect;
    bool is_new = taken->first == taken->count;
    size_t width = is_new ? 2 : taken->count - taken->first, before = width;

    sqlite3_str *sql = sqlite3_str_new(NULL);
    if (is_new)
        sqlite3_str_appendf(sql, "CREATE TABLE sample (%s, time_ns %s NOT NULL",
                            dialect->of_run, dialect->integer);
    width +=
        append_missing(sql, taken, columns->clocks, columns->clock_count, dialect->integer);
    width += append_missing(sql, taken, columns->values, columns->count, dialect->real);
    if (is_new)
        sqlite3_str_appendall(sql, ", PRIMARY KEY (run, time_ns))");
    char *text = sqlite3_str_finish(sql);
    int status = check_width(schema, width, err);
    if (status == WM_OK && (is_new || width > before))
        return wm_db_exec_made(&schema->db, text, err);
    sqlite3_free(text);
    return status;
}

/* In an SQLite file, mostly of one machine, each device has columns of its own: those of
 * earlier runs stand for what they did. In a server what many machines call gpu0 stands in
 * one column, and `channel` says whose it is. */
int wm_schema_make_columns(struct wm_schema *schema, struct wm_error *err)
{
    static const char earlier[] =
        "SELECT DISTINCT column_name, source, device, metric, unit FROM channel"
        " UNION ALL SELECT DISTINCT clock_column, source, device, '', '' FROM channel"
        " WHERE clock_column IS NOT NULL";
    const struct wm_dialect *dialect = schema->db.dialect;
    struct taken taken = { 0 };

    int status =
        dialect->has_devices ? load_taken(&schema->db, earlier, &taken, err) : WM_OK;
    taken.first = taken.count;
    if (status == WM_OK)
        status = load_taken(&schema->db, dialect->sample_names, &taken, err);
    if (status == WM_OK)
        status =
            wm_columns_plan(schema->channels, schema->count, taken.columns,
                            dialect->has_devices ? taken.count : 0, &schema->columns, err);
    if (status == WM_OK)
        status = make_missing(schema, &taken, err);
    release_taken(&taken);
    return status;
}

static int exec(const struct wm_schema *schema, const char *sql, struct wm_error *err)
{
    return schema->db.ops->exec(&schema->db, sql, err);
}

static int insert_run(struct wm_schema *schema, struct wm_error *err)
{
    const struct wm_run *run = schema->run;
    char started[32], *info = NULL;

    char *command = wm_run_command_line(run);
    if (!command)
        return wm_fail_memory(err, schema->db.shown);
    wm_clock_rfc3339(run->anchor_unix_ns, started, sizeof(started));
    int status = wm_run_to_json(run, &info, err);
    if (status == WM_OK)
        status = wm_db_put(&schema->db,
                           "INSERT INTO run (started, host, boot_id, command, version,"
                           " format, anchor_monotonic_ns, anchor_unix_ns, info)"
                           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                           err, "tttttiiit", started, run->host, run->boot_id, command,
                           run->version, (int64_t)WM_RECORDING_FORMAT, run->anchor_ns,
                           run->anchor_unix_ns, info);
    schema->id = sqlite3_last_insert_rowid(schema->db.handle);
    free(command);
    free(info);
    return status;
}

static int insert_channels(const struct wm_schema *schema, struct wm_error *err)
{
    static const char sql[] =
        "INSERT INTO channel (run, ordinal, column_name, clock_column, source, device,"
        " label, model, metric, unit, device_kind, kind, origin, period_ns, sensor)"
        " SELECT ?, key, json_extract(value, '$.column'),"
        " json_extract(value, '$.clock_column'), json_extract(value, '$.source'),"
        " json_extract(value, '$.device'), json_extract(value, '$.label'),"
        " json_extract(value, '$.model'), json_extract(value, '$.metric'),"
        " json_extract(value, '$.unit'), json_extract(value, '$.device_kind'),"
        " json_extract(value, '$.kind'), json_extract(value, '$.origin'),"
        " json_extract(value, '$.period_ns'), json_extract(value, '$.sensor')"
        " FROM json_each(?)";
    char *json = NULL;

    int status = wm_channels_to_json(schema->channels, &schema->columns, &json, err);
    if (status == WM_OK)
        status = wm_db_put(&schema->db, sql, err, "it", schema->id, json);
    free(json);
    return status;
}

static int begin_run(struct wm_schema *schema, struct wm_error *err)
{
    int64_t count = 0;

    /* With the lock, for two may want to make the tables at the same time. */
    int status =
        wm_db_number(&schema->db, &count, err, "SELECT count(*) FROM sqlite_master");
    if (status == WM_OK && count == 0)
        status = exec(schema, schema->db.dialect->tables, err);
    if (status == WM_OK)
        status = wm_schema_make_columns(schema, err);
    if (status == WM_OK)
        status = insert_run(schema, err);
    return status < 0 ? status : insert_channels(schema, err);
}

int wm_schema_begin_run(struct wm_schema *schema, struct wm_error *err)
{
    if (!sqlite3_get_autocommit(schema->db.handle))
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
