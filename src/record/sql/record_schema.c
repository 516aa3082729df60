/* SPDX-License-Identifier: Apache-2.0 */
/* record_schema.c - the tables of a recording in SQLite and in PostgreSQL, and how a run
 * begins in an SQLite file. */
#include "record/sql/record_sql.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "record/calls/record_timepoint.h"
#include "record/record_channel.h"

#define TEXT_OF(number) #number
#define NUMBER_TEXT(number) TEXT_OF(number)
#define FORMAT_TEXT NUMBER_TEXT(WM_RECORDING_FORMAT)
#define APPLICATION_TEXT NUMBER_TEXT(WM_SQL_APPLICATION_ID)

#define TABLES(KEY, RUN, INTEGER, TIME, JSON, GAP_KEY, STATIC_KEY, CORES)                  \
    "CREATE TABLE run (id " KEY ", started " TIME ", host TEXT, boot_id TEXT,"             \
    " command TEXT, version TEXT, format INTEGER, anchor_monotonic_ns " INTEGER            \
    ", anchor_unix_ns " INTEGER ", info " JSON " NOT NULL, result " JSON ");"              \
    "CREATE TABLE channel (" RUN ", ordinal INTEGER NOT NULL, column_name TEXT NOT NULL,"  \
    " source TEXT, device TEXT, label TEXT, model TEXT, metric TEXT, unit TEXT,"           \
    " device_kind TEXT, kind TEXT, origin TEXT, period_ns " INTEGER ", clock_column TEXT," \
    " sensor " JSON ", PRIMARY KEY (run, ordinal));"                                       \
    "CREATE TABLE gap (" RUN ", channel TEXT NOT NULL, from_ns " INTEGER                   \
    ", to_ns " INTEGER ", state TEXT, why TEXT" GAP_KEY ");"                               \
    "CREATE TABLE static_data (" STATIC_KEY "ram_unit VARCHAR, gpu_ram_unit VARCHAR,"      \
    " time_unit VARCHAR, ram_system_capacity FLOAT, gpu_ram_system_capacity FLOAT,"        \
    " system_core_count INTEGER, n_expected_cores " CORES ", system_gpu_count INTEGER,"    \
    " n_expected_gpus INTEGER);"

/* What recordings of before the CPU clock of threads lack: `cpu_ns`, and the rest where a
 * row stands for several short calls that their thread took together. */
#define NEW_CALL_COLUMNS(INTEGER)                                                          \
    "cpu_ns " INTEGER ", calls " INTEGER ", sum_ns " INTEGER ", squares " INTEGER          \
    ", min_ns " INTEGER ", max_ns " INTEGER ", histogram TEXT"

/* A call is a row of numbers, for there may be millions. */
#define REGION_TABLES(RUN, INTEGER, BOOLEAN, AT_KEY)                                       \
    "CREATE TABLE region_path (" RUN ", id " INTEGER " NOT NULL, parent " INTEGER          \
    ", name TEXT, depth " INTEGER ", is_free " BOOLEAN ", PRIMARY KEY (run, id))" AT_KEY   \
    ";"                                                                                    \
    "CREATE TABLE region_thread (" RUN ", id " INTEGER " NOT NULL, pid INTEGER,"           \
    " tid INTEGER, process " INTEGER ", PRIMARY KEY (run, id))" AT_KEY ";"                 \
    "CREATE TABLE region_call (" RUN ", path " INTEGER ", thread " INTEGER                 \
    ", start_ns " INTEGER ", stop_ns " INTEGER ", is_open " BOOLEAN                        \
    ", " NEW_CALL_COLUMNS(INTEGER) ");"

static const char region_view[] =
    "CREATE VIEW region AS SELECT region_call.run AS run, pid, tid, name,"
    " start_ns, stop_ns, depth, is_open AS open, cpu_ns, calls FROM region_call"
    " LEFT JOIN region_path ON region_path.run = region_call.run"
    " AND region_path.id = region_call.path"
    " LEFT JOIN region_thread ON region_thread.run = region_call.run"
    " AND region_thread.id = region_call.thread";

/* The rows of a run are wide: without an index, finding one of many runs reads most of the
 * file. */
#define INDEXES_IN_SQLITE                                                                  \
    "CREATE INDEX run_order ON run (id); CREATE INDEX gap_run ON gap (run);"

#define SQLITE_RUN "run INTEGER NOT NULL"

#define MARKS_IN_SQLITE                                                                    \
    "PRAGMA application_id = " APPLICATION_TEXT ";PRAGMA user_version = " FORMAT_TEXT

#define METRIC_IN_SQLITE                                                                   \
    "CREATE VIEW IF NOT EXISTS metric AS SELECT run.id AS run, series.key AS name,"        \
    " json_extract(point.value, '$[0]') AS time_ns,"                                       \
    " json_extract(point.value, '$[1]') AS value"                                          \
    " FROM run, json_each(run.result, '$.metrics.series') AS series,"                      \
    " json_each(series.value) AS point"

/* gpu_tracker's tables have its columns and no others, for its reader takes
 * whatever there is; so its rows cannot say of which run they are. The view `metric` is
 * what the measured program reported of itself, which is part of the result. */
const struct wm_dialect wm_dialect_sqlite = {
    .tables = TABLES("INTEGER PRIMARY KEY", SQLITE_RUN, "INTEGER", "TEXT", "TEXT", "", "",
                     "INTEGER") INDEXES_IN_SQLITE MARKS_IN_SQLITE,
    .region_tables =
        REGION_TABLES(SQLITE_RUN, "INTEGER", "INTEGER", " WITHOUT ROWID") METRIC_IN_SQLITE,
    .of_run = SQLITE_RUN,
    .integer = "INTEGER",
    .real = "REAL",
    .count = "INTEGER",
    .data_run = "",
    .data_key = "",
    .has_devices = true,
    .is_table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '%s'",
    .has_sensor = "SELECT count(*) FROM pragma_table_info('channel') WHERE name = 'sensor'",
    .has_cpu =
        "SELECT count(*) FROM pragma_table_info('region_call') WHERE name = 'cpu_ns'",
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
    " json_array_elements(series.value) AS point (value)"

#define POSTGRES_INDEX "CREATE INDEX ON region_call (run)"

#define POSTGRES_COLUMNS(TABLE)                                                            \
    " FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass('" TABLE "')"              \
    " AND attnum > 0 AND NOT attisdropped"

const struct wm_dialect wm_dialect_postgres = {
    .tables = TABLES(POSTGRES_KEY, POSTGRES_RUN, "bigint", "timestamptz", "json",
                     POSTGRES_GAP_KEY, POSTGRES_RUN " PRIMARY KEY, ", "FLOAT")
        MARKS_IN_POSTGRES METRIC_IN_POSTGRES,
    .region_tables = REGION_TABLES(POSTGRES_RUN, "bigint", "boolean", "") POSTGRES_INDEX,
    .of_run = POSTGRES_RUN,
    .integer = "bigint",
    .real = "double precision",
    .count = "FLOAT",
    .data_run = POSTGRES_RUN ", ",
    .data_key = ", PRIMARY KEY (run, \"timestamp\")",
    .is_table = "SELECT count(*) FROM pg_catalog.pg_class WHERE relkind = 'r'"
                " AND oid = to_regclass('%s')",
    .has_sensor = "SELECT count(*)" POSTGRES_COLUMNS("channel") " AND attname = 'sensor'",
    .has_cpu = "SELECT count(*)" POSTGRES_COLUMNS("region_call") " AND attname = 'cpu_ns'",
    .sample_names = "SELECT attname::text, '', '', '', ''" POSTGRES_COLUMNS("sample"),
    .gap_order = "ordinal",
    .call_order = "stop_ns",
};

static int make_data_table(const struct wm_db *db, struct wm_error *err)
{
    const struct wm_dialect *dialect = db->dialect;

    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "CREATE TABLE data (%s", dialect->data_run);
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++) {
        bool whole = i >= WM_MAIN_THREADS && i <= WM_COMBINED_THREADS;
        sqlite3_str_appendf(sql, "%s %s, ", wm_measurement_name((enum wm_measurement)i),
                            whole ? dialect->count : "FLOAT");
    }
    sqlite3_str_appendf(sql, "timestamp FLOAT%s)", dialect->data_key);
    return wm_db_exec_made(db, sqlite3_str_finish(sql), err);
}

/* A database of earlier versions has an empty table where the view is now. One that has
 * something in it is not ours, and stays. */
static int make_region_view(const struct wm_db *db, struct wm_error *err)
{
    int64_t is_used = 0;
    bool is_there = false;

    int status = wm_db_has_table(db, "region", &is_there, err);
    if (status == WM_OK && is_there)
        status = wm_db_number(db, &is_used, err, "SELECT count(*) FROM region");
    if (status < 0 || is_used)
        return status;
    if (is_there)
        status = db->ops->exec(db, "DROP TABLE region", err);
    return status < 0 ? status : db->ops->exec(db, region_view, err);
}

/* SQLite adds one column at a time. */
static int add_call_columns(const struct wm_db *db, struct wm_error *err)
{
    static const char *const columns[] = { "cpu_ns", "calls",  "sum_ns",   "squares",
                                           "min_ns", "max_ns", "histogram" };
    size_t count = sizeof(columns) / sizeof(columns[0]);
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(NULL);
        sqlite3_str_appendf(sql, "ALTER TABLE region_call ADD COLUMN %s %s", columns[i],
                            i + 1 < count ? db->dialect->integer : "TEXT");
        status = wm_db_exec_made(db, sqlite3_str_finish(sql), err);
    }
    return status;
}

/* Those of earlier versions have none of regions, and say nothing of sensors. Asked first,
 * as only who owns a table of PostgreSQL may add to it. */
static int extend_tables(const struct wm_db *db, struct wm_error *err)
{
    bool has_regions = false, has_sensor = false, has_cpu = false;

    int status = wm_db_has_table(db, "region_call", &has_regions, err);
    if (status == WM_OK && !has_regions)
        status = db->ops->exec(db, db->dialect->region_tables, err);
    if (status == WM_OK && !has_regions)
        status = make_region_view(db, err);
    if (status == WM_OK)
        status = wm_db_has_cpu(db, &has_cpu, err);
    if (status == WM_OK && !has_cpu)
        status = add_call_columns(db, err);
    if (status == WM_OK)
        status = wm_db_has_sensor(db, &has_sensor, err);
    if (status == WM_OK && !has_sensor)
        status = db->ops->exec(db, "ALTER TABLE channel ADD COLUMN sensor json", err);
    return status;
}

int wm_schema_make_tables(const struct wm_db *db, bool is_new, struct wm_error *err)
{
    int status = is_new ? db->ops->exec(db, db->dialect->tables, err) : WM_OK;

    if (status == WM_OK && is_new)
        status = make_data_table(db, err);
    return status < 0 ? status : extend_tables(db, err);
}

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

/* One row, as gpu_tracker has it: that of the newest run. */
int wm_schema_static_data(const struct wm_schema *schema, struct wm_known ram,
                          struct wm_known gpu_ram, struct wm_error *err)
{
    const struct wm_run *run = schema->run;
    const struct wm_known cores = { run->expected_cores > 0, run->expected_cores };

    int status = exec(schema, "DELETE FROM static_data", err);
    return status < 0
               ? status
               : wm_db_put(&schema->db,
                           "INSERT INTO static_data"
                           " VALUES ('bytes', 'bytes', 'seconds', ?, ?, ?, ?, ?, ?)",
                           err, "nninii", ram, gpu_ram, (int64_t)run->core_count, cores,
                           (int64_t)run->gpu_count, (int64_t)run->expected_gpu_count);
}

static int begin_run(struct wm_schema *schema, struct wm_error *err)
{
    int64_t count = 0;

    /* With the lock, for two may want to make the tables at the same time. */
    int status =
        wm_db_number(&schema->db, &count, err, "SELECT count(*) FROM sqlite_master");
    if (status == WM_OK)
        status = wm_schema_make_tables(&schema->db, count == 0, err);
    if (status == WM_OK)
        status = wm_schema_make_columns(schema, err);
    if (status == WM_OK)
        status = insert_run(schema, err);
    if (status == WM_OK)
        status = insert_channels(schema, err);
    if (status == WM_OK)
        status = wm_schema_static_data(schema, (struct wm_known) { 0 },
                                       (struct wm_known) { 0 }, err);
    return status;
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
