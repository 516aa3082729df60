/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_schema.c - the tables of a recording in PostgreSQL, and how a run
 * begins in them. */
#include "record/sql/record_pg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_number.h"
#include "base/text/base_utf8.h"
#include "record/calls/record_timepoint.h"
#include "record/record_channel.h"
#include "record/sql/record_sql.h"

enum {
    NAME_MAX_BYTES = 63, /* PostgreSQL cuts longer names off without a word */
    WIDTH_MAX = 1600,    /* columns of a table */
    ROW_MAX = 8160 - 24, /* bytes of a row in its page, without the header */
};

/* Held while a run begins, because of two that make the tables at the same time
 * one would fail. */
#define LOCK "SELECT pg_advisory_xact_lock(1465742450)" /* "WMtr" */

#define OF_RUN "run bigint NOT NULL REFERENCES " WM_PG_SCHEMA ".run ON DELETE CASCADE"

static const char tables[] =
    "CREATE TABLE " WM_PG_SCHEMA ".recording_format (version integer PRIMARY KEY);"
    "CREATE TABLE " WM_PG_SCHEMA ".run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " uuid text UNIQUE, started timestamptz, host text, boot_id text, command text,"
    " version text, format integer, anchor_monotonic_ns bigint, anchor_unix_ns bigint,"
    " info json NOT NULL, result json);"
    "CREATE TABLE " WM_PG_SCHEMA ".channel (" OF_RUN ", ordinal integer,"
    " column_name text NOT NULL, source text, device text, label text, model text,"
    " metric text, unit text, device_kind text, kind text, origin text, period_ns bigint,"
    " clock_column text, sensor json, PRIMARY KEY (run, ordinal));"
    "CREATE TABLE " WM_PG_SCHEMA ".sample (" OF_RUN ", time_ns bigint,"
    " PRIMARY KEY (run, time_ns));"
    "CREATE TABLE " WM_PG_SCHEMA ".gap (" OF_RUN ", channel text, from_ns bigint,"
    " to_ns bigint, state text, why text,"
    " ordinal bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (run, channel, from_ns));"
    "CREATE TABLE " WM_PG_SCHEMA ".static_data (" OF_RUN " PRIMARY KEY, ram_unit text,"
    " gpu_ram_unit text, time_unit text, ram_system_capacity double precision,"
    " gpu_ram_system_capacity double precision, system_core_count integer,"
    " n_expected_cores double precision, system_gpu_count integer,"
    " n_expected_gpus integer);"

    /* What the measured program told of itself, which is part of the result. */
    "CREATE VIEW " WM_PG_SCHEMA ".metric AS SELECT run.id AS run, series.key AS name,"
    " (point.value ->> 0)::bigint AS time_ns,"
    " (point.value ->> 1)::double precision AS value"
    " FROM " WM_PG_SCHEMA ".run,"
    " json_each(run.result -> 'metrics' -> 'series') AS series,"
    " json_array_elements(series.value) AS point (value);";

/* A call is a row of numbers, for there may be millions. `region_mark` says up to which of
 * them the server has a run's, in the order of their stops: that stop, and how many stop
 * then. */
static const char region_tables[] =
    "CREATE TABLE " WM_PG_SCHEMA ".region_path (" OF_RUN ", id bigint, parent bigint,"
    " name text, depth bigint, is_free boolean, PRIMARY KEY (run, id));"
    "CREATE TABLE " WM_PG_SCHEMA ".region_thread (" OF_RUN ", id bigint, pid integer,"
    " tid integer, process bigint, PRIMARY KEY (run, id));"
    "CREATE TABLE " WM_PG_SCHEMA ".region_call (" OF_RUN ", path bigint, thread bigint,"
    " start_ns bigint, stop_ns bigint, is_open boolean);"
    "CREATE INDEX ON " WM_PG_SCHEMA ".region_call (run);"
    "CREATE TABLE " WM_PG_SCHEMA ".region_mark (" OF_RUN " PRIMARY KEY, stop_ns bigint,"
    " calls bigint);";

static const char region_view[] =
    "CREATE VIEW " WM_PG_SCHEMA ".region AS SELECT c.run, t.pid, t.tid, p.name, c.start_ns,"
    " c.stop_ns, p.depth, c.is_open AS open FROM " WM_PG_SCHEMA ".region_call c"
    " LEFT JOIN " WM_PG_SCHEMA ".region_path p ON p.run = c.run AND p.id = c.path"
    " LEFT JOIN " WM_PG_SCHEMA ".region_thread t ON t.run = c.run AND t.id = c.thread";

static int out_of_memory(const struct wm_pg *pg, struct wm_error *err)
{
    return wm_pg_fail(pg, WM_ENOMEM, "out of memory", err);
}

static bool is_true(const struct wm_pg_rows *rows, int column)
{
    const char *text = wm_pg_rows_text(rows, 0, column);

    return text && strcmp(text, "t") == 0;
}

static int check_version(struct wm_pg *pg, struct wm_error *err)
{
    struct wm_pg_rows rows = { 0 };
    char text[128];

    int status =
        wm_pg_query(pg, "SELECT max(version) FROM " WM_PG_SCHEMA ".recording_format", NULL,
                    0, &rows, err);
    if (status < 0)
        return status;
    int64_t version = wm_pg_rows_number(&rows, 0, 0, 0);
    wm_pg_rows_free(&rows);
    if (version >= 1 && version <= WM_RECORDING_FORMAT)
        return WM_OK;
    snprintf(text, sizeof(text),
             version < 1
                 ? "its schema " WM_PG_SCHEMA " says nothing of its format"
                 : "made by a newer wattmeter (format %lld, this one knows up to %d)",
             (long long)version, WM_RECORDING_FORMAT);
    return wm_pg_fail(pg, WM_EFORMAT, text, err);
}

int wm_pg_check_format(struct wm_pg *pg, bool *ret_is_there, struct wm_error *err)
{
    static const char sql[] =
        "SELECT count(*) FILTER (WHERE relname = 'recording_format') > 0, count(*) > 0"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = '" WM_PG_SCHEMA "'";
    struct wm_pg_rows rows = { 0 };

    int status = wm_pg_query(pg, sql, NULL, 0, &rows, err);
    if (status < 0)
        return status;
    bool is_ours = is_true(&rows, 0), is_used = is_true(&rows, 1);
    wm_pg_rows_free(&rows);
    if (is_used && !is_ours)
        return wm_pg_fail(pg, WM_EFORMAT,
                          "its schema " WM_PG_SCHEMA " holds something else", err);
    *ret_is_there = is_ours;
    return is_ours ? check_version(pg, err) : WM_OK;
}

int wm_pg_check(const char *url, struct wm_error *err)
{
    struct wm_pg pg = { 0 };
    bool is_there = false;

    int status = wm_pg_open(&pg, url, NULL, err);
    if (status == WM_OK)
        status = wm_pg_check_format(&pg, &is_there, err);
    wm_pg_close(&pg);
    return status;
}

/* SQL is put together with SQLite's texts, which know how to quote a name. */
static int make_tables(struct wm_pg *pg, struct wm_error *err)
{
    struct wm_pg_rows rows = { 0 };
    sqlite3_str *sql;

    /* An administrator may have made the schema for one who may make none. */
    int status = wm_pg_query(
        pg,
        "SELECT count(*) > 0 FROM pg_catalog.pg_namespace WHERE nspname = '" WM_PG_SCHEMA
        "'",
        NULL, 0, &rows, err);
    if (status < 0)
        return status;
    bool has_schema = is_true(&rows, 0);
    wm_pg_rows_free(&rows);
    if (!has_schema)
        status = wm_pg_exec(pg, "CREATE SCHEMA " WM_PG_SCHEMA, err);
    if (status == WM_OK)
        status = wm_pg_exec(pg, tables, err);
    if (status < 0)
        return status;

    sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "CREATE TABLE " WM_PG_SCHEMA ".data (" OF_RUN ", ");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        sqlite3_str_appendf(sql, "%s double precision, ",
                            wm_measurement_name((enum wm_measurement)i));
    sqlite3_str_appendf(sql,
                        "\"timestamp\" double precision,"
                        " PRIMARY KEY (run, \"timestamp\"));"
                        "INSERT INTO " WM_PG_SCHEMA ".recording_format VALUES (%d)",
                        WM_RECORDING_FORMAT);
    char *text = sqlite3_str_finish(sql);
    status = text ? wm_pg_exec(pg, text, err) : out_of_memory(pg, err);
    sqlite3_free(text);
    return status;
}

int wm_pg_has_regions(struct wm_pg *pg, bool *ret_has, struct wm_error *err)
{
    struct wm_pg_rows rows = { 0 };

    int status =
        wm_pg_query(pg, "SELECT to_regclass('" WM_PG_SCHEMA ".region_call') IS NOT NULL",
                    NULL, 0, &rows, err);
    if (status < 0)
        return status;
    *ret_has = is_true(&rows, 0);
    wm_pg_rows_free(&rows);
    return WM_OK;
}

/* A database of earlier versions has an empty table where the view is now. One that has
 * something in it is not ours, and stays. */
static int make_region_tables(struct wm_pg *pg, struct wm_error *err)
{
    struct wm_pg_rows rows = { 0 };
    bool has_regions = false;

    int status = wm_pg_has_regions(pg, &has_regions, err);
    if (status < 0 || has_regions)
        return status;
    status = wm_pg_exec(pg, region_tables, err);
    if (status == WM_OK)
        status =
            wm_pg_query(pg, "SELECT to_regclass('" WM_PG_SCHEMA ".region') IS NOT NULL",
                        NULL, 0, &rows, err);
    if (status < 0)
        return status;
    bool is_there = is_true(&rows, 0);
    wm_pg_rows_free(&rows);
    if (is_there) {
        status = wm_pg_query(pg, "SELECT count(*) > 0 FROM " WM_PG_SCHEMA ".region", NULL,
                             0, &rows, err);
        if (status < 0)
            return status;
        bool is_used = is_true(&rows, 0);
        wm_pg_rows_free(&rows);
        if (is_used)
            return WM_OK;
        status = wm_pg_exec(pg, "DROP TABLE " WM_PG_SCHEMA ".region", err);
    }
    return status < 0 ? status : wm_pg_exec(pg, region_view, err);
}

/* The table of earlier versions says nothing of sensors. Asked first, as only who owns the
 * table may add to it. */
static int extend_channel(struct wm_pg *pg, struct wm_error *err)
{
    struct wm_pg_rows rows = { 0 };

    int status = wm_pg_query(pg,
                             "SELECT count(*) > 0 FROM pg_catalog.pg_attribute"
                             " WHERE attrelid = '" WM_PG_SCHEMA ".channel'::regclass"
                             " AND attname = 'sensor' AND NOT attisdropped",
                             NULL, 0, &rows, err);
    if (status < 0)
        return status;
    bool has_sensor = is_true(&rows, 0);
    wm_pg_rows_free(&rows);
    return has_sensor
               ? WM_OK
               : wm_pg_exec(pg,
                            "ALTER TABLE " WM_PG_SCHEMA ".channel ADD COLUMN sensor json",
                            err);
}

/* A name that is too long keeps its beginning, and gets a number made from all
 * of it, so that a channel has the same column in every run. */
static void shorten(char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    if (strlen(name) <= NAME_MAX_BYTES)
        return;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    snprintf(name + NAME_MAX_BYTES - 9, 10, "_%08x", (unsigned int)hash);
}

/* The columns of a run depend on that run alone: what many machines call gpu0
 * stands in one column, and `channel` says whose it is. */
static int plan_columns(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err)
{
    struct wm_columns *columns = &run->columns;

    int status = wm_columns_plan(run->channels, run->count, NULL, 0, columns, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < columns->count; i++)
        shorten(columns->values[i]);
    for (size_t i = 0; i < columns->clock_count; i++)
        shorten(columns->clocks[i]);

    char text[128];
    size_t width = 2 + columns->count + columns->clock_count;
    if (8 * width + width / 8 < ROW_MAX)
        return WM_OK;
    snprintf(
        text, sizeof(text),
        "needs %zu columns, and a row of PostgreSQL holds about 1000; record to .sqlite",
        width);
    return wm_pg_fail(pg, WM_EINVAL, text, err);
}

/* The names and types of the columns of `sample`, sorted by strcmp(). */
struct present {
    struct wm_pg_rows rows;
    size_t width;
};

/* The type of that column of `sample`, or NULL. */
static const char *type_of(const struct present *present, const char *name)
{
    size_t low = 0, high = present->width;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, wm_pg_rows_text(&present->rows, (int)middle, 0));
        if (order == 0)
            return wm_pg_rows_text(&present->rows, (int)middle, 1);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Appends what adds the columns that are missing. */
static int add_columns(struct wm_pg *pg, const struct present *present, char *const *names,
                       size_t count, const char *type, sqlite3_str *sql, size_t *ret_added,
                       struct wm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *found = type_of(present, names[i]);
        char text[160];
        if (!found) {
            sqlite3_str_appendf(sql, "%s ADD COLUMN \"%w\" %s", *ret_added > 0 ? "," : "",
                                names[i], type);
            (*ret_added)++;
        } else if (strcmp(found, type) != 0) {
            snprintf(text, sizeof(text), "column %.63s of table sample is not %s", names[i],
                     type);
            return wm_pg_fail(pg, WM_EFORMAT, text, err);
        }
    }
    return WM_OK;
}

/* Changing the table waits for those who read it, and is done only where there
 * is something to add. */
static int extend_sample(struct wm_pg *pg, const struct wm_pg_run *run,
                         const struct present *present, struct wm_error *err)
{
    const struct wm_columns *columns = &run->columns;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    size_t added = 0;
    char text[128];

    sqlite3_str_appendall(sql, "ALTER TABLE " WM_PG_SCHEMA ".sample");
    int status = add_columns(pg, present, columns->clocks, columns->clock_count, "bigint",
                             sql, &added, err);
    if (status == WM_OK)
        status = add_columns(pg, present, columns->values, columns->count,
                             "double precision", sql, &added, err);
    char *command = sqlite3_str_finish(sql);
    if (status == WM_OK && present->width + added > WIDTH_MAX) {
        snprintf(text, sizeof(text),
                 "with %zu columns more its table sample is full; use"
                 " another database or .sqlite",
                 added);
        status = wm_pg_fail(pg, WM_EINVAL, text, err);
    }
    if (status == WM_OK && added > 0)
        status = command ? wm_pg_exec(pg, command, err) : out_of_memory(pg, err);
    sqlite3_free(command);
    return status;
}

static int make_columns(struct wm_pg *pg, const struct wm_pg_run *run, struct wm_error *err)
{
    static const char sql[] =
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
        " WHERE attrelid = '" WM_PG_SCHEMA ".sample'::regclass AND attnum > 0"
        " AND NOT attisdropped ORDER BY attname::text COLLATE \"C\"";
    struct present present = { 0 };

    int status = wm_pg_query(pg, sql, NULL, 0, &present.rows, err);
    if (status < 0)
        return status;
    present.width = (size_t)wm_pg_rows_count(&present.rows);
    status = extend_sample(pg, run, &present, err);
    wm_pg_rows_free(&present.rows);
    return status;
}

static int insert_run(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err)
{
    char started[32], format[16], anchor[24], anchor_unix[24];
    char *host = NULL, *boot_id = NULL, *info = NULL, *command = NULL, *version = NULL;
    const struct wm_run *it = run->run;
    struct wm_pg_rows rows = { 0 };

    wm_clock_rfc3339(it->anchor_unix_ns, started, sizeof(started));
    snprintf(format, sizeof(format), "%d", WM_RECORDING_FORMAT);
    snprintf(anchor, sizeof(anchor), "%lld", (long long)it->anchor_ns);
    snprintf(anchor_unix, sizeof(anchor_unix), "%lld", (long long)it->anchor_unix_ns);
    host = it->host ? wm_text_copy(it->host) : NULL;
    boot_id = it->boot_id ? wm_text_copy(it->boot_id) : NULL;
    version = it->version ? wm_text_copy(it->version) : NULL;
    command = wm_run_command_line(it);

    int status = wm_run_to_json(it, &info, err);
    if (status == WM_OK && (!command || (it->host && !host) || (it->boot_id && !boot_id) ||
                            (it->version && !version)))
        status = out_of_memory(pg, err);
    if (status == WM_OK) {
        const char *const texts[] = { it->id,  started, host,   boot_id,     command,
                                      version, format,  anchor, anchor_unix, info };
        status =
            wm_pg_query(pg,
                        "INSERT INTO " WM_PG_SCHEMA ".run (uuid, started, host, boot_id,"
                        " command, version, format, anchor_monotonic_ns,"
                        " anchor_unix_ns, info) VALUES ($1, $2, $3, $4, $5, $6, $7, $8,"
                        " $9, $10) RETURNING id",
                        texts, 10, &rows, err);
    }
    if (status == WM_OK)
        snprintf(run->id, sizeof(run->id), "%s", wm_pg_rows_text(&rows, 0, 0));
    wm_pg_rows_free(&rows);
    free(host);
    free(boot_id);
    free(version);
    free(command);
    free(info);
    return status;
}

/* All at once: a server far away is asked as few times as possible. */
static int insert_channels(struct wm_pg *pg, const struct wm_pg_run *run,
                           struct wm_error *err)
{
    char *json = NULL;

    int status = wm_channels_to_json(run->channels, &run->columns, &json, err);
    if (status < 0)
        return status;
    const char *const texts[] = { run->id, json };
    status = wm_pg_run(
        pg,
        "INSERT INTO " WM_PG_SCHEMA ".channel (run, ordinal, column_name, clock_column,"
        " source, device, label, model, metric, unit, device_kind, kind, origin, period_ns,"
        " sensor)"
        " SELECT $1::bigint, n - 1, c->>'column', c->>'clock_column', c->>'source',"
        " c->>'device', c->>'label', c->>'model', c->>'metric', c->>'unit',"
        " c->>'device_kind', c->>'kind', c->>'origin', (c->>'period_ns')::bigint,"
        " c->'sensor'"
        " FROM json_array_elements($2::json) WITH ORDINALITY AS list (c, n)",
        texts, 2, err);
    free(json);
    return status;
}

int wm_pg_static_data(struct wm_pg *pg, const struct wm_pg_run *run, double ram,
                      double gpu_ram, struct wm_error *err)
{
    const struct wm_run *it = run->run;
    double cores = it->expected_cores > 0 ? it->expected_cores : NAN;
    char numbers[3][WM_NUMBER_SIZE], counts[3][16];

    wm_number_format(ram, numbers[0]);
    wm_number_format(gpu_ram, numbers[1]);
    wm_number_format(cores, numbers[2]);
    snprintf(counts[0], sizeof(counts[0]), "%d", it->core_count);
    snprintf(counts[1], sizeof(counts[1]), "%d", it->gpu_count);
    snprintf(counts[2], sizeof(counts[2]), "%d", it->expected_gpu_count);
#define OR_NULL(text) ((text)[0] ? (text) : NULL)
    const char *const texts[] = {
        run->id,   OR_NULL(numbers[0]), OR_NULL(numbers[1]), counts[0], OR_NULL(numbers[2]),
        counts[1], counts[2],
    };
#undef OR_NULL
    return wm_pg_run(pg,
                     "INSERT INTO " WM_PG_SCHEMA ".static_data VALUES"
                     " ($1, 'bytes', 'bytes', 'seconds', $2, $3, $4, $5, $6, $7)"
                     " ON CONFLICT (run) DO UPDATE SET"
                     " ram_system_capacity = excluded.ram_system_capacity,"
                     " gpu_ram_system_capacity = excluded.gpu_ram_system_capacity",
                     texts, 7, err);
}

/* Whether the run that is there has the very columns that we would write to. */
static int check_channels(struct wm_pg *pg, const struct wm_pg_run *run,
                          struct wm_error *err)
{
    const struct wm_columns *columns = &run->columns;
    const char *const texts[] = { run->id };
    struct wm_pg_rows rows = { 0 };

    int status =
        wm_pg_query(pg,
                    "SELECT coalesce(column_name, ''), coalesce(clock_column, '')"
                    " FROM " WM_PG_SCHEMA ".channel WHERE run = $1 ORDER BY ordinal",
                    texts, 1, &rows, err);
    if (status < 0)
        return status;
    bool same = (size_t)wm_pg_rows_count(&rows) == columns->count;
    for (size_t i = 0; i < columns->count && same; i++) {
        const char *clock = columns->clocks[columns->clock_of[i]];
        same = strcmp(wm_pg_rows_text(&rows, (int)i, 0), columns->values[i]) == 0 &&
               strcmp(wm_pg_rows_text(&rows, (int)i, 1), clock) == 0;
    }
    wm_pg_rows_free(&rows);
    return same ? WM_OK
                : wm_pg_fail(pg, WM_EFORMAT, "has this very run with other channels", err);
}

/* Looks for the run. Leaves `run->id` empty where there is none. */
static int find_run(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err)
{
    const char *const texts[] = { run->run->id };
    struct wm_pg_rows rows = { 0 };

    run->id[0] = '\0';
    run->last_ns = -1;
    if (!run->run->id)
        return WM_OK;
    int status =
        wm_pg_query(pg,
                    "SELECT id, (SELECT max(time_ns) FROM " WM_PG_SCHEMA
                    ".sample WHERE run = r.id) FROM " WM_PG_SCHEMA ".run r WHERE uuid = $1",
                    texts, 1, &rows, err);
    if (status < 0)
        return status;
    if (wm_pg_rows_count(&rows) > 0) {
        snprintf(run->id, sizeof(run->id), "%s", wm_pg_rows_text(&rows, 0, 0));
        run->last_ns = wm_pg_rows_number(&rows, 0, 1, -1);
    }
    wm_pg_rows_free(&rows);
    return WM_OK;
}

static int begin_run(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err)
{
    bool is_there = false;

    int status = wm_pg_check_format(pg, &is_there, err);
    if (status == WM_OK && !is_there)
        status = make_tables(pg, err);
    if (status == WM_OK)
        status = make_region_tables(pg, err);
    if (status == WM_OK)
        status = extend_channel(pg, err);
    if (status == WM_OK)
        status = find_run(pg, run, err);
    if (status < 0)
        return status;

    run->is_new = run->id[0] == '\0';
    if (!run->is_new)
        return check_channels(pg, run, err);
    status = make_columns(pg, run, err);
    if (status == WM_OK)
        status = insert_run(pg, run, err);
    if (status == WM_OK)
        status = insert_channels(pg, run, err);
    if (status == WM_OK)
        status = wm_pg_static_data(pg, run, NAN, NAN, err);
    return status;
}

int wm_pg_begin_run(struct wm_pg *pg, struct wm_pg_run *run, struct wm_error *err)
{
    int status = plan_columns(pg, run, err);

    if (status == WM_OK)
        status = wm_pg_exec(pg, "BEGIN; " LOCK, err);
    if (status == WM_OK)
        status = begin_run(pg, run, err);
    if (status == WM_OK)
        status = wm_pg_exec(pg, "COMMIT", err);
    run->is_new &= status == WM_OK;
    return status;
}

int wm_pg_delete_run(struct wm_pg *pg, const struct wm_pg_run *run, struct wm_error *err)
{
    const char *const texts[] = { run->id };

    return wm_pg_run(pg, "DELETE FROM " WM_PG_SCHEMA ".run WHERE id = $1", texts, 1, err);
}
