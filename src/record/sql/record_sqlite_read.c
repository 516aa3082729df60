/* SPDX-License-Identifier: Apache-2.0 */
/* record_sqlite_read.c - reading back recordings in an SQLite database. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/text/base_utf8.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/sql/record_sql.h"

/* What a hostile file could make us take up. */
enum { GAPS_MAX = 65536 }; /* later ones are left out */

/* Calls in a batch. */
enum { CALLS_AT_ONCE = 4096 };

/* Of the table region_call: run, path, thread, start_ns, stop_ns, is_open. */
enum { CALL_COLUMNS = 6 };

struct sqlite_reader {
    struct wm_reader_head head;
    const char *path; /* for messages */
    sqlite3 *db;
    sqlite3_stmt *samples;
    sqlite3_int64 id; /* of the run */
    struct wm_channel_set set;
    size_t gaps_seen; /* rows of the table that were looked at */
    struct wm_reading *readings;
    int64_t last_ns;
    bool ended;
    sqlite3_stmt *calls;
    sqlite3_int64 last_call;        /* the row of the one that was read last */
    int64_t call_count, most_calls; /* by start: how many were read, and can be */
    struct wm_regions_part regions;
    bool regions_ended;
};

static int out_of_memory(const struct sqlite_reader *reader, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", reader->path);
}

static int fail(const struct sqlite_reader *reader, int result, struct wm_error *err)
{
    return wm_sql_fail(reader->db, result, reader->path, err);
}

/* Puts the file and the table in front of what went wrong. */
static int wrong_row(const struct sqlite_reader *reader, const char *table, int status,
                     const struct wm_error *why, struct wm_error *err)
{
    return wm_fail(err, status, "%s: table %s: %.150s", reader->path, table, why->text);
}

static int prepare(const struct sqlite_reader *reader, const char *sql,
                   sqlite3_stmt **ret_statement, struct wm_error *err)
{
    return wm_sql_prepare(reader->db, sql, reader->path, ret_statement, err);
}

/* A view could take for ever to answer. 1 when all of them are tables. */
static int has_tables(const struct sqlite_reader *reader, const char *const *tables,
                      size_t table_count, struct wm_error *err)
{
    for (size_t i = 0; i < table_count; i++) {
        sqlite3_int64 count = 0;
        char sql[96];
        snprintf(sql, sizeof(sql),
                 "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '%s'",
                 tables[i]);
        int status = wm_sql_number(reader->db, sql, reader->path, &count, err);
        if (status < 0)
            return status;
        if (count != 1) {
            wm_fail(err, WM_EFORMAT, "%s: there is no table %s", reader->path, tables[i]);
            return 0;
        }
    }
    return 1;
}

static int check_tables(const struct sqlite_reader *reader, struct wm_error *err)
{
    static const char *const tables[] = { "run", "channel", "sample", "gap" };

    int status = has_tables(reader, tables, sizeof(tables) / sizeof(tables[0]), err);
    return status == 0 ? WM_EFORMAT : status < 0 ? status : WM_OK;
}

static const char *text_at(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

/* Reads the run that the statement stands at: info, result. */
static int read_run(struct sqlite_reader *reader, sqlite3_stmt *statement,
                    struct wm_error *err)
{
    const char *info = text_at(statement, 1), *result = text_at(statement, 2);
    struct wm_error why;

    reader->id = sqlite3_column_int64(statement, 0);
    int status = wm_run_from_json(info ? info : "", &reader->head.run, &why);
    if (status == WM_OK && result) {
        status = wm_result_from_json(result, &reader->head.result, &why);
        reader->head.has_result = status == WM_OK;
    }
    return status < 0 ? wrong_row(reader, "run", status, &why, err) : WM_OK;
}

static int load_run(struct sqlite_reader *reader, size_t run, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_int64 count = 0;
    size_t index = 0;

    int status =
        wm_sql_number(reader->db, "SELECT count(*) FROM run", reader->path, &count, err);
    if (status == WM_OK)
        status = wm_reader_choose_run(reader->path, run, (size_t)count, &index, err);
    if (status == WM_OK)
        status =
            prepare(reader, "SELECT id, info, result FROM run ORDER BY id LIMIT 1 OFFSET ?",
                    &statement, err);
    if (status < 0)
        return status;

    reader->head.run_count = (size_t)count;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)index);
    int result = sqlite3_step(statement);
    status =
        result == SQLITE_ROW ? read_run(reader, statement, err) : fail(reader, result, err);
    sqlite3_finalize(statement);
    return status;
}

static int read_channel(struct wm_channel_set *set, sqlite3_stmt *statement,
                        struct wm_error *err)
{
    int device_kind = wm_word_value(WM_WORDS_DEVICE_KIND, text_at(statement, 8));
    int kind = wm_word_value(WM_WORDS_KIND, text_at(statement, 9));
    int origin = wm_word_value(WM_WORDS_ORIGIN, text_at(statement, 10));
    const struct wm_channel channel = {
        .source = text_at(statement, 2),
        .device = text_at(statement, 3),
        .label = text_at(statement, 4),
        .model = text_at(statement, 5),
        .metric = text_at(statement, 6),
        .unit = text_at(statement, 7),
        .device_kind = (enum wm_device_kind)device_kind,
        .kind = (enum wm_kind)kind,
        .origin = (enum wm_origin)origin,
        .period_ns = sqlite3_column_int64(statement, 11),
    };

    if (device_kind < 0 || kind < 0 || origin < 0)
        return wm_fail(err, WM_EFORMAT, "channel %zu is of no known kind", set->count);
    return wm_channel_set_add(set, &channel, text_at(statement, 0), text_at(statement, 1),
                              text_at(statement, 12), err);
}

static int load_channels(struct sqlite_reader *reader, struct wm_error *err)
{
#define CHANNELS_SQL(sensor)                                                               \
    "SELECT column_name, clock_column, source, device, label, model, metric, unit,"        \
    " device_kind, kind, origin, period_ns, " sensor                                       \
    " FROM channel WHERE run = ? ORDER BY ordinal"
    sqlite3_stmt *statement = NULL;
    sqlite3_int64 has_sensor = 0;
    struct wm_error why;
    int result = SQLITE_ROW;

    int status =
        wm_sql_number(reader->db, WM_SQL_HAS_SENSOR, reader->path, &has_sensor, err);
    if (status == WM_OK)
        status = prepare(reader, has_sensor ? CHANNELS_SQL("sensor") : CHANNELS_SQL("NULL"),
                         &statement, err);
#undef CHANNELS_SQL
    if (status < 0)
        return status;
    sqlite3_bind_int64(statement, 1, reader->id);

    status = wm_channel_set_init(&reader->set, WM_CHANNELS_MAX, &why);
    while (status == WM_OK && (result = sqlite3_step(statement)) == SQLITE_ROW)
        status = read_channel(&reader->set, statement, &why);
    if (status == WM_OK && result == SQLITE_DONE)
        status = wm_channel_set_seal(&reader->set, &reader->head.run, &why);
    if (status < 0)
        status = wrong_row(reader, "channel", status, &why, err);
    else if (result != SQLITE_DONE)
        status = fail(reader, result, err);
    sqlite3_finalize(statement);
    return status;
}

static int add_gap(struct sqlite_reader *reader, sqlite3_stmt *statement, size_t *room,
                   struct wm_error *err)
{
    const char *column = text_at(statement, 0);
    const struct wm_column_use *use =
        column ? wm_channel_set_find(&reader->set, column) : NULL;

    reader->gaps_seen++;
    if (!use || use->is_clock)
        return WM_OK;
    if (wm_array_reserve(&reader->head.gaps, reader->head.gap_count, room,
                         sizeof(*reader->head.gaps)) < 0)
        return out_of_memory(reader, err);
    if (wm_gap_init(&reader->head.gaps[reader->head.gap_count], use->index,
                    sqlite3_column_int64(statement, 1), sqlite3_column_int64(statement, 2),
                    text_at(statement, 3), text_at(statement, 4)))
        reader->head.gap_count++;
    return WM_OK;
}

static int load_gaps(struct sqlite_reader *reader, const char *sql, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = SQLITE_ROW;
    size_t room = 0;

    int status = prepare(reader, sql, &statement, err);
    if (status < 0)
        return status;
    sqlite3_bind_int64(statement, 1, reader->id);
    sqlite3_bind_int64(statement, 2, GAPS_MAX);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)reader->gaps_seen);
    while (status == WM_OK && (result = sqlite3_step(statement)) == SQLITE_ROW)
        status = add_gap(reader, statement, &room, err);
    if (status == WM_OK && result != SQLITE_DONE)
        status = fail(reader, result, err);
    sqlite3_finalize(statement);
    return status;
}

/* The columns are named with their table: a bare name in quotes that is no
 * column is a string for SQLite. */
static int prepare_samples(struct sqlite_reader *reader, const char *condition,
                           struct wm_error *err)
{
    const struct wm_columns *columns = &reader->set.columns;

    sqlite3_str *sql = sqlite3_str_new(reader->db);
    sqlite3_str_appendall(sql, "SELECT sample.time_ns");
    wm_sql_append_columns(sql, ", sample.", columns);
    sqlite3_str_appendf(sql, " FROM sample WHERE sample.run = ?%s ORDER BY sample.time_ns",
                        condition);
    char *text = sqlite3_str_finish(sql);
    int status =
        text ? prepare(reader, text, &reader->samples, err) : out_of_memory(reader, err);
    sqlite3_free(text);
    if (status == WM_OK)
        sqlite3_bind_int64(reader->samples, 1, reader->id);
    return status;
}

/* WM_ENODEV: it is a database of somebody else's. */
static int check_format(const struct sqlite_reader *reader, struct wm_error *err)
{
    sqlite3_int64 id = 0;

    int status = wm_sql_number(reader->db, "PRAGMA application_id", reader->path, &id, err);
    if (status < 0)
        return status;
    status = wm_sql_check_format(reader->db, reader->path, err);
    return id == WM_SQL_APPLICATION_ID ? status : WM_ENODEV;
}

static int sqlite_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct sqlite_reader *reader = state;

    reader->path = wm_text_path(path);
    reader->last_ns = -1;
    reader->most_calls = wm_sql_most_rows(path, CALL_COLUMNS);
    int status = wm_sql_open_to_read(path, reader->path, &reader->db, err);
    if (status == WM_OK)
        status = check_format(reader, err);
    if (status == WM_OK)
        status = check_tables(reader, err);
    if (status == WM_OK)
        status = load_run(reader, run, err);
    if (status == WM_OK)
        status = load_channels(reader, err);
    if (status == WM_OK)
        status = load_gaps(reader,
                           "SELECT channel, from_ns, to_ns, state, why FROM gap"
                           " WHERE run = ? ORDER BY from_ns LIMIT ? OFFSET ?",
                           err);
    if (status == WM_OK)
        status = prepare_samples(reader, "", err);
    if (status < 0)
        return status;

    reader->head.channels = reader->set.channels;
    reader->head.channel_count = reader->set.count;
    reader->readings = calloc(reader->set.count + 1, sizeof(*reader->readings));
    return reader->readings ? WM_OK : out_of_memory(reader, err);
}

static int wrong_value(const struct sqlite_reader *reader, const char *column,
                       const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "%s: table sample, column %.64s: not %s", reader->path,
                   column, what);
}

static bool read_time(sqlite3_stmt *statement, int column, int64_t *ret_ns)
{
    int64_t value = sqlite3_column_int64(statement, column);

    if (sqlite3_column_type(statement, column) != SQLITE_INTEGER || value < 0 ||
        value > WM_TIME_MAX_NS)
        return false;
    *ret_ns = value;
    return true;
}

/* The value of a channel, and when it was read. */
static int read_value(struct sqlite_reader *reader, size_t channel, int64_t tick_ns,
                      struct wm_error *err)
{
    const struct wm_columns *columns = &reader->set.columns;
    struct wm_reading *reading = &reader->readings[channel];
    size_t clock = columns->clock_of[channel];
    int column = (int)(1 + columns->clock_count + channel);
    int type = sqlite3_column_type(reader->samples, column);

    *reading = (struct wm_reading) { 0 };
    if (type == SQLITE_NULL)
        return WM_OK;
    double value = sqlite3_column_double(reader->samples, column);
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !isfinite(value))
        return wrong_value(reader, columns->values[channel], "a number", err);

    *reading = (struct wm_reading) { tick_ns, value, WM_READING_OK };
    if (clock == WM_TICK_CLOCK ||
        sqlite3_column_type(reader->samples, (int)(1 + clock)) == SQLITE_NULL)
        return WM_OK;
    if (!read_time(reader->samples, (int)(1 + clock), &reading->when_ns))
        return wrong_value(reader, columns->clocks[clock], "a time", err);
    return WM_OK;
}

static int sqlite_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct sqlite_reader *reader = state;
    int64_t when_ns = 0;

    /* Another step after the last would begin anew. */
    if (reader->ended)
        return 0;
    int result = sqlite3_step(reader->samples);
    if (result == SQLITE_DONE) {
        /* An open transaction would keep a writer from emptying its log. */
        reader->ended = true;
        sqlite3_reset(reader->samples);
        sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
        return 0;
    }
    if (result != SQLITE_ROW)
        return fail(reader, result, err);
    if (!read_time(reader->samples, 0, &when_ns))
        return wrong_value(reader, "time_ns", "a time", err);
    if (when_ns <= reader->last_ns)
        return wrong_value(reader, "time_ns", "later than in the row before", err);
    reader->last_ns = when_ns;

    for (size_t i = 0; i < reader->set.count; i++) {
        int status = read_value(reader, i, when_ns, err);
        if (status < 0)
            return status;
    }
    *ret_tick = (struct wm_tick) {
        .when_ns = when_ns,
        .readings = reader->readings,
        .count = reader->set.count,
    };
    return 1;
}

static int sqlite_more(void *state, struct wm_error *err)
{
    struct sqlite_reader *reader = state;

    free(reader->head.gaps);
    reader->head.gaps = NULL;
    reader->head.gap_count = 0;
    sqlite3_finalize(reader->samples);
    reader->samples = NULL;
    int status = wm_sql_exec(reader->db, "BEGIN", reader->path, err);
    if (status == WM_OK)
        status = load_gaps(reader,
                           "SELECT channel, from_ns, to_ns, state, why FROM gap"
                           " WHERE run = ? ORDER BY rowid LIMIT ? OFFSET ?",
                           err);
    if (status == WM_OK)
        status = prepare_samples(reader, " AND sample.time_ns > ?", err);
    if (status < 0)
        return status;
    sqlite3_bind_int64(reader->samples, 2, reader->last_ns);
    reader->ended = false;
    reader->regions_ended = false;
    return WM_OK;
}

static int64_t integer_at(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER
               ? sqlite3_column_int64(statement, column)
               : -1;
}

static int read_path(struct sqlite_reader *reader, sqlite3_stmt *statement,
                     struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = integer_at(statement, 0),
        .parent = integer_at(statement, 1),
        .name = text_at(statement, 2),
        .is_free = integer_at(statement, 3),
    };

    return wm_regions_read_path(&reader->regions, &row, err);
}

static int read_thread(struct sqlite_reader *reader, sqlite3_stmt *statement,
                       struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = integer_at(statement, 0),
        .pid = integer_at(statement, 1),
        .tid = integer_at(statement, 2),
        .process = integer_at(statement, 3),
    };

    return wm_regions_read_thread(&reader->regions, &row, err);
}

static int read_call(struct sqlite_reader *reader, sqlite3_stmt *statement,
                     struct wm_error *err)
{
    const struct wm_regions_row row = {
        .path = integer_at(statement, 1),
        .thread = integer_at(statement, 2),
        .start_ns = integer_at(statement, 3),
        .stop_ns = integer_at(statement, 4),
        .is_open = integer_at(statement, 5),
    };

    reader->last_call = integer_at(statement, 0);
    return wm_regions_read_call(&reader->regions, &row, err);
}

/* Reads the rows of the run from number `first` on. */
static int load_rows(struct sqlite_reader *reader, const char *table, const char *sql,
                     uint32_t first,
                     int (*read)(struct sqlite_reader *, sqlite3_stmt *, struct wm_error *),
                     struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = SQLITE_ROW;
    struct wm_error why;

    int status = prepare(reader, sql, &statement, err);
    if (status < 0)
        return status;
    sqlite3_bind_int64(statement, 1, reader->id);
    sqlite3_bind_int64(statement, 2, first);
    while (status == WM_OK && (result = sqlite3_step(statement)) == SQLITE_ROW)
        status = read(reader, statement, &why);
    if (status < 0)
        status = wrong_row(reader, table, status, &why, err);
    else if (result != SQLITE_DONE)
        status = fail(reader, result, err);
    sqlite3_finalize(statement);
    return status;
}

/* Reads the paths and threads that the calls may need. 0 in a file of before there were
 * regions. */
static int begin_regions(struct sqlite_reader *reader, struct wm_error *err)
{
    static const char *const tables[] = { "region_path", "region_thread", "region_call" };

    int status = has_tables(reader, tables, sizeof(tables) / sizeof(tables[0]), err);
    if (status <= 0)
        return status;
    if (sqlite3_get_autocommit(reader->db))
        status = wm_sql_exec(reader->db, "BEGIN", reader->path, err);
    if (status >= 0)
        status = load_rows(reader, tables[0],
                           "SELECT id, parent, name, is_free FROM region_path"
                           " WHERE run = ? AND id >= ? ORDER BY id",
                           wm_regions_part_next_path(&reader->regions), read_path, err);
    if (status >= 0)
        status = load_rows(reader, tables[1],
                           "SELECT id, pid, tid, process FROM region_thread"
                           " WHERE run = ? AND id >= ? ORDER BY id",
                           wm_regions_part_next_thread(&reader->regions), read_thread, err);
    return status < 0 ? status : 1;
}

/* Begins with the calls that have not been read yet. */
static int select_written(struct sqlite_reader *reader, struct wm_error *err)
{
    int status = prepare(reader,
                         "SELECT rowid, path, thread, start_ns, stop_ns, is_open"
                         " FROM region_call WHERE rowid > ? AND run = ? ORDER BY rowid",
                         &reader->calls, err);

    if (status < 0)
        return status;
    sqlite3_bind_int64(reader->calls, 1, reader->last_call);
    sqlite3_bind_int64(reader->calls, 2, reader->id);
    return 1;
}

/* More rows than the file has room for, which pages that point back at each other give, are
 * not sorted. OFFSET 0: else SQLite would sort all of them first and count them afterwards.
 */
static int select_by_start(struct sqlite_reader *reader, struct wm_error *err)
{
    int status =
        prepare(reader,
                "SELECT * FROM (SELECT rowid, path, thread, start_ns, stop_ns, is_open"
                " FROM region_call WHERE run = ? LIMIT ? OFFSET 0)"
                " ORDER BY start_ns, path, stop_ns",
                &reader->calls, err);

    if (status < 0)
        return status;
    sqlite3_bind_int64(reader->calls, 1, reader->id);
    sqlite3_bind_int64(reader->calls, 2, reader->most_calls + 1);
    return 1;
}

static void end_regions(struct sqlite_reader *reader)
{
    sqlite3_finalize(reader->calls);
    reader->calls = NULL;
    reader->regions_ended = true;
    if (reader->ended && !sqlite3_get_autocommit(reader->db))
        sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

/* 1, or 0 past the last one. */
static int next_call(struct sqlite_reader *reader, struct wm_error *err)
{
    struct wm_error why;

    int result = sqlite3_step(reader->calls);
    if (result == SQLITE_DONE) {
        end_regions(reader);
        return 0;
    }
    if (result != SQLITE_ROW)
        return fail(reader, result, err);
    int status = read_call(reader, reader->calls, &why);
    return status < 0 ? wrong_row(reader, "region_call", status, &why, err) : 1;
}

static int next_batch(struct sqlite_reader *reader,
                      int (*select)(struct sqlite_reader *, struct wm_error *),
                      struct wm_region_batch *ret_batch, struct wm_error *err)
{
    int status = 1;

    if (reader->regions_ended)
        return 0;
    wm_regions_part_next(&reader->regions);
    if (!reader->calls) {
        status = begin_regions(reader, err);
        reader->regions_ended = status == 0;
        if (status > 0)
            status = select(reader, err);
    }
    while (status > 0 && reader->regions.call_count < CALLS_AT_ONCE)
        status = next_call(reader, err);
    if (status < 0)
        return status;
    *ret_batch = wm_regions_part_batch(&reader->regions);
    return !wm_regions_part_is_empty(&reader->regions);
}

static int sqlite_regions(void *state, struct wm_region_batch *ret_batch,
                          struct wm_error *err)
{
    return next_batch(state, select_written, ret_batch, err);
}

static int sqlite_calls(void *state, struct wm_region_batch *ret_batch,
                        struct wm_error *err)
{
    struct sqlite_reader *reader = state;

    int status = next_batch(reader, select_by_start, ret_batch, err);
    if (status > 0)
        reader->call_count += (int64_t)ret_batch->call_count;
    if (reader->call_count > reader->most_calls)
        return wm_fail(err, WM_EFORMAT,
                       "%s: table region_call: more rows than it has room for",
                       reader->path);
    return status;
}

static void sqlite_close(void *state)
{
    struct sqlite_reader *reader = state;

    if (reader->db) {
        sqlite3_finalize(reader->samples);
        sqlite3_finalize(reader->calls);
        sqlite3_close(reader->db);
    }
    free(reader->readings);
    wm_regions_part_release(&reader->regions);
    wm_channel_set_release(&reader->set);
    wm_reader_head_release(&reader->head);
}

const struct wm_reader_ops wm_reader_sqlite = {
    .name = "SQLite",
    .recognises = wm_sql_is_database,
    .state_size = sizeof(struct sqlite_reader),
    .open = sqlite_open,
    .next = sqlite_next,
    .regions = sqlite_regions,
    .calls = sqlite_calls,
    .more = sqlite_more,
    .close = sqlite_close,
};
