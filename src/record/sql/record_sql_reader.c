/* SPDX-License-Identifier: Apache-2.0 */
/* record_sql_reader.c - reading back recordings in an SQLite or PostgreSQL database. */
#include <math.h>
#include <stdlib.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_utf8.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/sql/record_sql.h"

/* What a hostile database could make us take up: bytes of a text, and gaps, of which later
 * ones are left out. */
#define SMALL(column)                                                                      \
    "CASE WHEN length(CAST(" column " AS text)) <= 16777216 THEN " column " END"
#define SMALL_RUN SMALL("info") ", " SMALL("result")
#define SMALL_NAME SMALL("name")
#define GAPS_MAX "65536"

enum {
    CALLS_AT_ONCE = 4096, /* in a batch */
    CALL_COLUMNS = 6, /* of region_call: run, path, thread, start_ns, stop_ns, is_open */
};

/* Puts the database and the table in front of what went wrong. */
static int wrong_row(const struct wm_sql_reader *reader, const char *table, int status,
                     const struct wm_error *why, struct wm_error *err)
{
    return wm_fail(err, status, "%s: table %s: %.150s", reader->db.shown, table, why->text);
}

static const char *text_at(const struct wm_db_rows *rows, int column)
{
    return rows->db->ops->text(rows, column);
}

/* -1 where there is no integer. */
static int64_t integer_at(const struct wm_db_rows *rows, int column)
{
    int64_t value = -1;

    return rows->db->ops->integer(rows, column, &value) == WM_DB_OK ? value : -1;
}

/* Hands each row of the run over, and ends the query. */
static int
read_rows(struct wm_sql_reader *reader, const char *table, struct wm_db_rows *rows,
          int (*read)(struct wm_sql_reader *, const struct wm_db_rows *, struct wm_error *),
          struct wm_error *err)
{
    struct wm_error why;
    int status;

    while ((status = rows->db->ops->next(rows, err)) > 0) {
        status = read(reader, rows, &why);
        if (status < 0) {
            wrong_row(reader, table, status, &why, err);
            break;
        }
    }
    rows->db->ops->end(rows);
    return status;
}

static int read_run(struct wm_sql_reader *reader, const struct wm_db_rows *rows,
                    struct wm_error *err)
{
    const char *info = text_at(rows, 1), *result = text_at(rows, 2);

    reader->id = integer_at(rows, 0);
    int status = wm_run_from_json(info ? info : "", &reader->head.run, err);
    if (status == WM_OK && result) {
        status = wm_result_from_json(result, &reader->head.result, err);
        reader->head.has_result = status == WM_OK;
    }
    return status;
}

static int load_run(struct wm_sql_reader *reader, size_t run, struct wm_error *err)
{
    struct wm_db_rows rows = { 0 };
    int64_t count = 0;
    size_t index = 0;

    int status = wm_db_number(&reader->db, &count, err, "SELECT count(*) FROM run");
    if (status == WM_OK)
        status = wm_reader_choose_run(reader->db.shown, run, (size_t)count, &index, err);
    if (status == WM_OK)
        status = wm_db_query(&reader->db, &rows, err,
                             "SELECT id, " SMALL_RUN " FROM run WHERE id ="
                             " (SELECT id FROM run ORDER BY id LIMIT 1 OFFSET %lld)",
                             (long long)index);
    reader->head.run_count = (size_t)count;
    return status < 0 ? status : read_rows(reader, "run", &rows, read_run, err);
}

static int read_channel(struct wm_sql_reader *reader, const struct wm_db_rows *rows,
                        struct wm_error *err)
{
    const char *texts[WM_CHANNEL_TEXTS];

    for (int i = 0; i < WM_CHANNEL_TEXTS; i++)
        texts[i] = text_at(rows, i);
    return wm_channel_set_add(&reader->set, texts, integer_at(rows, WM_CHANNEL_TEXTS),
                              text_at(rows, WM_CHANNEL_TEXTS + 1), err);
}

static int load_channels(struct wm_sql_reader *reader, struct wm_error *err)
{
    struct wm_db_rows rows = { 0 };
    struct wm_error why;

    int status = wm_channel_set_init(&reader->set, WM_CHANNELS_MAX, err);
    if (status == WM_OK)
        status = wm_db_query(&reader->db, &rows, err,
                             "SELECT column_name, clock_column, source, device, label,"
                             " model, metric, unit, device_kind, kind, origin, period_ns,"
                             " sensor FROM channel WHERE run = %lld ORDER BY ordinal",
                             (long long)reader->id);
    if (status == WM_OK)
        status = read_rows(reader, "channel", &rows, read_channel, err);
    if (status < 0)
        return status;
    status = wm_channel_set_seal(&reader->set, &why);
    return status < 0 ? wrong_row(reader, "channel", status, &why, err) : WM_OK;
}

static int read_gap(struct wm_sql_reader *reader, const struct wm_db_rows *rows,
                    struct wm_error *err)
{
    const char *column = text_at(rows, 0);
    const struct wm_column_use *use =
        column ? wm_channel_set_find(&reader->set, column) : NULL;
    struct wm_reader_head *head = &reader->head;

    if (!use || use->is_clock)
        return WM_OK;
    if (wm_array_reserve(&head->gaps, head->gap_count, &reader->gap_room,
                         sizeof(*head->gaps)) < 0)
        return wm_fail_memory(err, NULL);
    if (wm_gap_init(&head->gaps[head->gap_count], use->index, integer_at(rows, 1),
                    integer_at(rows, 2), text_at(rows, 3), text_at(rows, 4)))
        head->gap_count++;
    return WM_OK;
}

static int load_gaps(struct wm_sql_reader *reader, struct wm_error *err)
{
    struct wm_db_rows rows = { 0 };

    int status = wm_db_query(&reader->db, &rows, err,
                             "SELECT channel, from_ns, to_ns, state, substr(why, 1, 1000)"
                             " FROM gap WHERE run = %lld ORDER BY from_ns, %s"
                             " LIMIT " GAPS_MAX,
                             (long long)reader->id, reader->db.dialect->gap_order);
    return status < 0 ? status : read_rows(reader, "gap", &rows, read_gap, err);
}

/* The columns are named with their table: a bare name in quotes that is no
 * column is a string for SQLite. */
static int ask_for_samples(struct wm_sql_reader *reader, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT sample.time_ns");
    wm_sql_append_columns(sql, ", sample.", &reader->set.columns);
    sqlite3_str_appendf(sql, " FROM sample WHERE sample.run = %lld ORDER BY sample.time_ns",
                        (long long)reader->id);
    char *text = sqlite3_str_finish(sql);
    int status = text ? reader->db.ops->query(&reader->db, text, &reader->samples, err)
                      : wm_fail_memory(err, reader->db.shown);
    sqlite3_free(text);
    return status;
}

int wm_sql_reader_open(struct wm_sql_reader *reader, size_t run, struct wm_error *err)
{
    int status = load_run(reader, run, err);

    if (status == WM_OK)
        status = load_channels(reader, err);
    if (status == WM_OK)
        status = load_gaps(reader, err);
    if (status == WM_OK)
        status = ask_for_samples(reader, err);
    if (status < 0)
        return status;
    reader->head.channels = reader->set.channels;
    reader->head.channel_count = reader->set.count;
    reader->readings = calloc(reader->set.count + 1, sizeof(*reader->readings));
    return reader->readings ? WM_OK : wm_fail_memory(err, reader->db.shown);
}

static int wrong_value(const struct wm_sql_reader *reader, const char *column,
                       const char *what, struct wm_error *err)
{
    return wm_fail(err, WM_EFORMAT, "%s: table sample, column %.64s: not %s",
                   reader->db.shown, column, what);
}

/* WM_DB_WRONG for what is no time. */
static enum wm_db_cell read_time(const struct wm_db_rows *rows, int column, int64_t *ret_ns)
{
    int64_t value = 0;
    enum wm_db_cell cell = rows->db->ops->integer(rows, column, &value);

    if (cell == WM_DB_OK && (value < 0 || value > WM_TIME_MAX_NS))
        return WM_DB_WRONG;
    *ret_ns = value;
    return cell;
}

/* The value of a channel, and when it was read. */
static int read_value(struct wm_sql_reader *reader, size_t channel, int64_t tick_ns,
                      struct wm_error *err)
{
    const struct wm_columns *columns = &reader->set.columns;
    struct wm_reading *reading = &reader->readings[channel];
    size_t clock = columns->clock_of[channel];
    int64_t when_ns = tick_ns;
    double value = 0;

    *reading = (struct wm_reading) { 0 };
    enum wm_db_cell cell = reader->db.ops->number(
        &reader->samples, (int)(1 + columns->clock_count + channel), &value);
    if (cell == WM_DB_NULL)
        return WM_OK;
    if (cell == WM_DB_WRONG || !isfinite(value))
        return wrong_value(reader, columns->values[channel], "a number", err);

    cell = clock == WM_TICK_CLOCK ? WM_DB_NULL
                                  : read_time(&reader->samples, (int)(1 + clock), &when_ns);
    if (cell == WM_DB_WRONG)
        return wrong_value(reader, columns->clocks[clock], "a time", err);
    *reading =
        (struct wm_reading) { cell == WM_DB_OK ? when_ns : tick_ns, value, WM_READING_OK };
    return WM_OK;
}

/* An open transaction would keep a writer from emptying its log. */
static void end_reading(struct wm_sql_reader *reader)
{
    if (!reader->ended || !reader->regions_ended)
        return;
    reader->db.ops->end(&reader->samples);
    reader->db.ops->end(&reader->calls);
    reader->db.ops->exec(&reader->db, "COMMIT", NULL);
}

int wm_sql_reader_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct wm_sql_reader *reader = state;
    int64_t when_ns = 0;

    /* Another step after the last would begin anew. */
    if (reader->ended)
        return 0;
    int status = reader->db.ops->next(&reader->samples, err);
    if (status == 0) {
        reader->ended = true;
        end_reading(reader);
    }
    if (status <= 0)
        return status;
    if (read_time(&reader->samples, 0, &when_ns) != WM_DB_OK)
        return wrong_value(reader, "time_ns", "a time", err);
    if (reader->has_ticks && when_ns <= reader->last_ns)
        return wrong_value(reader, "time_ns", "later than in the row before", err);
    reader->has_ticks = true;
    reader->last_ns = when_ns;

    for (size_t i = 0; i < reader->set.count; i++) {
        status = read_value(reader, i, when_ns, err);
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

static int read_path(struct wm_sql_reader *reader, const struct wm_db_rows *rows,
                     struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = integer_at(rows, 0),
        .parent = integer_at(rows, 1),
        .name = text_at(rows, 2),
        .is_free = integer_at(rows, 3),
    };

    return wm_regions_read_path(&reader->regions, &row, err);
}

static int read_thread(struct wm_sql_reader *reader, const struct wm_db_rows *rows,
                       struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = integer_at(rows, 0),
        .pid = integer_at(rows, 1),
        .tid = integer_at(rows, 2),
        .process = integer_at(rows, 3),
    };

    return wm_regions_read_thread(&reader->regions, &row, err);
}

static int load_paths_and_threads(struct wm_sql_reader *reader, struct wm_error *err)
{
    struct wm_db_rows rows = { 0 };

    int status = wm_db_query(&reader->db, &rows, err,
                             "SELECT id, parent, " SMALL_NAME ", is_free "
                             "FROM region_path WHERE run = %lld ORDER BY id",
                             (long long)reader->id);
    if (status == WM_OK)
        status = read_rows(reader, "region_path", &rows, read_path, err);
    if (status == WM_OK)
        status = wm_db_query(&reader->db, &rows, err,
                             "SELECT id, pid, tid, process FROM region_thread"
                             " WHERE run = %lld ORDER BY id",
                             (long long)reader->id);
    return status < 0 ? status
                      : read_rows(reader, "region_thread", &rows, read_thread, err);
}

#define SELECT_CALLS                                                                       \
    "SELECT path, thread, start_ns, stop_ns, is_open, cpu_ns, calls, sum_ns, squares,"     \
    " min_ns, max_ns, histogram FROM "

/* More rows than the database has room for, which pages of SQLite that point back at each
 * other give, are not sorted. OFFSET 0: else SQLite would sort all of them first and count
 * them afterwards. */
static int ask_for_calls(struct wm_sql_reader *reader, bool by_start, struct wm_error *err)
{
    if (!by_start)
        return wm_db_query(&reader->db, &reader->calls, err,
                           SELECT_CALLS "region_call WHERE run = %lld ORDER BY %s",
                           (long long)reader->id, reader->db.dialect->call_order);
    return wm_db_query(&reader->db, &reader->calls, err,
                       SELECT_CALLS "(SELECT * FROM region_call WHERE run = %lld"
                                    " LIMIT %lld OFFSET 0) AS c"
                                    " ORDER BY start_ns, path, stop_ns",
                       (long long)reader->id, (long long)reader->most_calls + 1);
}

static int begin_regions(struct wm_sql_reader *reader, bool by_start, struct wm_error *err)
{
    int status = load_paths_and_threads(reader, err);

    return status < 0 ? status : ask_for_calls(reader, by_start, err);
}

static void read_told(const struct wm_db_rows *rows, struct wm_regions_row *row)
{
    int64_t cpu_ns = integer_at(rows, 5);

    row->clocked = cpu_ns >= 0 && cpu_ns < INT64_MAX ? cpu_ns + 1 : 0;
    for (int i = 0; i < 5; i++)
        row->fold[i] = integer_at(rows, 6 + i);
    if (row->fold[0] > 0)
        wm_region_buckets_parse(text_at(rows, 11), row->fold + 5);
}

/* 1, or 0 past the last one. */
static int next_call(struct wm_sql_reader *reader, struct wm_error *err)
{
    const struct wm_db_rows *rows = &reader->calls;
    struct wm_error why;

    int status = reader->db.ops->next(&reader->calls, err);
    if (status <= 0)
        return status;
    if (++reader->call_count > reader->most_calls)
        return wm_fail(err, WM_EFORMAT,
                       "%s: table region_call: more rows than it has room for",
                       reader->db.shown);
    struct wm_regions_row row = {
        .path = integer_at(rows, 0),
        .thread = integer_at(rows, 1),
        .start_ns = integer_at(rows, 2),
        .stop_ns = integer_at(rows, 3),
        .is_open = integer_at(rows, 4),
    };
    read_told(rows, &row);
    status = wm_regions_read_call(&reader->regions, &row, &why);
    return status < 0 ? wrong_row(reader, "region_call", status, &why, err) : 1;
}

static int next_batch(struct wm_sql_reader *reader, bool by_start,
                      struct wm_region_batch *ret_batch, struct wm_error *err)
{
    int status = WM_OK;

    if (reader->regions_ended)
        return 0;
    wm_regions_part_next(&reader->regions);
    if (!reader->calls.db)
        status = begin_regions(reader, by_start, err);
    status = status < 0 ? status : 1;
    while (status > 0 && reader->regions.call_count < CALLS_AT_ONCE)
        status = next_call(reader, err);
    if (status < 0)
        return status;
    if (status == 0) {
        reader->regions_ended = true;
        end_reading(reader);
    }
    *ret_batch = wm_regions_part_batch(&reader->regions);
    return !wm_regions_part_is_empty(&reader->regions);
}

int wm_sql_reader_regions(void *state, struct wm_region_batch *ret_batch,
                          struct wm_error *err)
{
    return next_batch(state, false, ret_batch, err);
}

int wm_sql_reader_calls(void *state, struct wm_region_batch *ret_batch,
                        struct wm_error *err)
{
    return next_batch(state, true, ret_batch, err);
}

void wm_sql_reader_release(struct wm_sql_reader *reader)
{
    if (reader->db.ops) {
        reader->db.ops->end(&reader->samples);
        reader->db.ops->end(&reader->calls);
    }
    free(reader->readings);
    wm_regions_part_release(&reader->regions);
    wm_channel_set_release(&reader->set);
    wm_reader_head_release(&reader->head);
}

static int sqlite_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct wm_sql_reader *reader = state;
    const char *shown = wm_text_path(path);
    sqlite3 *handle = NULL;

    int status = wm_sql_open_to_read(path, shown, &handle, err);
    if (handle)
        reader->db = wm_db_sqlite(handle, shown);
    if (status < 0)
        return status;
    reader->most_calls = wm_sql_most_rows(path, CALL_COLUMNS);
    status = wm_sql_check_format(handle, shown, err);
    return status < 0 ? status : wm_sql_reader_open(reader, run, err);
}

static void sqlite_close(void *state)
{
    struct wm_sql_reader *reader = state;
    sqlite3 *handle = reader->db.handle;

    wm_sql_reader_release(reader);
    if (handle)
        sqlite3_close(handle);
}

const struct wm_reader_ops wm_reader_sqlite = {
    .name = "SQLite",
    .recognises = wm_sql_is_database,
    .state_size = sizeof(struct wm_sql_reader),
    .open = sqlite_open,
    .next = wm_sql_reader_next,
    .regions = wm_sql_reader_regions,
    .calls = wm_sql_reader_calls,
    .close = sqlite_close,
};
