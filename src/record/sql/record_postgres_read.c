/* SPDX-License-Identifier: Apache-2.0 */
/* record_postgres_read.c - reading back recordings in a PostgreSQL database. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/text/base_url.h"
#include "record/record_channel.h"
#include "record/record_ops.h"
#include "record/record_regions.h"
#include "record/sql/record_pg.h"
#include "record/sql/record_sql.h"

/* As in SQLite: what a hostile database could make us take up. */
#define VALUE_MAX "16777216"
#define GAPS_MAX "65536"

/* Calls in a batch. */
enum { CALLS_AT_ONCE = 4096 };

/* A server may have to sort before it gives the first row. */
#define SORT_PATIENCE_NS (INT64_C(120) * 1000 * 1000 * 1000)

struct postgres_reader {
    struct wm_reader_head head;
    struct wm_pg pg;
    char id[24]; /* of the run */
    struct wm_channel_set set;
    struct wm_reading *readings;
    int64_t last_ns;
    bool ended;
    const char *url;
    struct wm_pg region_pg; /* a connection of their own, beside that of the ticks */
    struct wm_regions_part regions;
    bool has_calls, regions_ended;
};

static int out_of_memory(const struct postgres_reader *reader, struct wm_error *err)
{
    return wm_pg_fail(&reader->pg, WM_ENOMEM, "out of memory", err);
}

/* Puts the database and the table in front of what went wrong. */
static int wrong_row(const struct postgres_reader *reader, const char *table, int status,
                     const struct wm_error *why, struct wm_error *err)
{
    char text[200];

    snprintf(text, sizeof(text), "table %s: %.150s", table, why->text);
    return wm_pg_fail(&reader->pg, status, text, err);
}

static int read_run(struct postgres_reader *reader, const struct wm_pg_rows *row,
                    struct wm_error *err)
{
    const char *id = wm_pg_rows_text(row, 0, 0);
    const char *info = wm_pg_rows_text(row, 0, 1), *result = wm_pg_rows_text(row, 0, 2);
    struct wm_error why;

    snprintf(reader->id, sizeof(reader->id), "%s", id ? id : "");
    int status = wm_run_from_json(info ? info : "", &reader->head.run, &why);
    if (status == WM_OK && result) {
        status = wm_result_from_json(result, &reader->head.result, &why);
        reader->head.has_result = status == WM_OK;
    }
    return status < 0 ? wrong_row(reader, "run", status, &why, err) : WM_OK;
}

static int count_runs(struct postgres_reader *reader, struct wm_error *err)
{
    struct wm_pg_rows result = { 0 };

    int status = wm_pg_query(&reader->pg, "SELECT count(*) FROM " WM_PG_SCHEMA ".run", NULL,
                             0, &result, err);
    if (status == WM_OK)
        reader->head.run_count = (size_t)wm_pg_rows_number(&result, 0, 0, -1);
    wm_pg_rows_free(&result);
    return status;
}

static int load_run(struct postgres_reader *reader, size_t run, struct wm_error *err)
{
    static const char sql[] =
        "SELECT id, CASE WHEN octet_length(info::text) <= " VALUE_MAX " THEN info END,"
        " CASE WHEN octet_length(result::text) <= " VALUE_MAX " THEN result END"
        " FROM " WM_PG_SCHEMA ".run ORDER BY id LIMIT 1 OFFSET $1";
    struct wm_pg_rows result = { 0 };
    char offset[24];
    size_t index = 0;

    int status = count_runs(reader, err);
    if (status == WM_OK)
        status = wm_reader_choose_run(reader->pg.shown, run, reader->head.run_count, &index,
                                      err);
    if (status < 0)
        return status;
    snprintf(offset, sizeof(offset), "%zu", index);
    const char *const texts[] = { offset };
    status = wm_pg_query(&reader->pg, sql, texts, 1, &result, err);
    if (status == WM_OK && wm_pg_rows_count(&result) != 1)
        status = wm_pg_fail(&reader->pg, WM_EFORMAT, "the run is gone", err);
    if (status == WM_OK)
        status = read_run(reader, &result, err);
    wm_pg_rows_free(&result);
    return status;
}

static int read_channel(struct wm_channel_set *set, const struct wm_pg_rows *rows, int row,
                        struct wm_error *err)
{
    int device_kind = wm_word_value(WM_WORDS_DEVICE_KIND, wm_pg_rows_text(rows, row, 8));
    int kind = wm_word_value(WM_WORDS_KIND, wm_pg_rows_text(rows, row, 9));
    int origin = wm_word_value(WM_WORDS_ORIGIN, wm_pg_rows_text(rows, row, 10));
    const struct wm_channel channel = {
        .source = wm_pg_rows_text(rows, row, 2),
        .device = wm_pg_rows_text(rows, row, 3),
        .label = wm_pg_rows_text(rows, row, 4),
        .model = wm_pg_rows_text(rows, row, 5),
        .metric = wm_pg_rows_text(rows, row, 6),
        .unit = wm_pg_rows_text(rows, row, 7),
        .device_kind = (enum wm_device_kind)device_kind,
        .kind = (enum wm_kind)kind,
        .origin = (enum wm_origin)origin,
        .period_ns = wm_pg_rows_number(rows, row, 11, -1),
    };

    if (device_kind < 0 || kind < 0 || origin < 0)
        return wm_fail(err, WM_EFORMAT, "channel %zu is of no known kind", set->count);
    return wm_channel_set_add(set, &channel, wm_pg_rows_text(rows, row, 0),
                              wm_pg_rows_text(rows, row, 1), wm_pg_rows_text(rows, row, 12),
                              err);
}

static int load_channels(struct postgres_reader *reader, struct wm_error *err)
{
    const char *const texts[] = { reader->id };
    struct wm_pg_rows rows = { 0 };
    struct wm_error why;

    int status =
        wm_pg_query(&reader->pg,
                    "SELECT column_name, clock_column, source, device, label, model,"
                    " metric, unit, device_kind, kind, origin, period_ns,"
                    /* A server that an earlier version made has no such column. */
                    " row_to_json(channel)->>'sensor'"
                    " FROM " WM_PG_SCHEMA ".channel WHERE run = $1"
                    " ORDER BY ordinal LIMIT 2001",
                    texts, 1, &rows, err);
    if (status < 0)
        return status;
    status = wm_channel_set_init(&reader->set, WM_CHANNELS_MAX, &why);
    for (int row = 0; row < wm_pg_rows_count(&rows) && status == WM_OK; row++)
        status = read_channel(&reader->set, &rows, row, &why);
    if (status == WM_OK)
        status = wm_channel_set_seal(&reader->set, &reader->head.run, &why);
    wm_pg_rows_free(&rows);
    return status < 0 ? wrong_row(reader, "channel", status, &why, err) : WM_OK;
}

static void add_gap(struct postgres_reader *reader, const struct wm_pg_rows *rows, int row)
{
    const char *column = wm_pg_rows_text(rows, row, 0);
    const struct wm_column_use *use =
        column ? wm_channel_set_find(&reader->set, column) : NULL;

    if (use && !use->is_clock &&
        wm_gap_init(&reader->head.gaps[reader->head.gap_count], use->index,
                    wm_pg_rows_number(rows, row, 1, -1),
                    wm_pg_rows_number(rows, row, 2, -1), wm_pg_rows_text(rows, row, 3),
                    wm_pg_rows_text(rows, row, 4)))
        reader->head.gap_count++;
}

static int load_gaps(struct postgres_reader *reader, struct wm_error *err)
{
    const char *const texts[] = { reader->id };
    struct wm_pg_rows rows = { 0 };

    int status = wm_pg_query(&reader->pg,
                             "SELECT channel, from_ns, to_ns, state, left(why, 1000)"
                             " FROM " WM_PG_SCHEMA ".gap WHERE run = $1"
                             " ORDER BY from_ns, ordinal LIMIT " GAPS_MAX,
                             texts, 1, &rows, err);
    if (status < 0)
        return status;
    reader->head.gaps =
        calloc((size_t)wm_pg_rows_count(&rows) + 1, sizeof(*reader->head.gaps));
    if (!reader->head.gaps)
        status = out_of_memory(reader, err);
    for (int row = 0; row < wm_pg_rows_count(&rows) && status == WM_OK; row++)
        add_gap(reader, &rows, row);
    wm_pg_rows_free(&rows);
    return status;
}

static int ask_for_samples(struct postgres_reader *reader, struct wm_error *err)
{
    const struct wm_columns *columns = &reader->set.columns;
    const char *const texts[] = { reader->id };

    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT time_ns");
    wm_sql_append_columns(sql, ", ", columns);
    sqlite3_str_appendall(sql, " FROM " WM_PG_SCHEMA ".sample WHERE run = $1"
                               " ORDER BY time_ns");
    char *text = sqlite3_str_finish(sql);
    int status =
        text ? wm_pg_send(&reader->pg, text, texts, 1, err) : out_of_memory(reader, err);
    sqlite3_free(text);
    return status;
}

static int postgres_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct postgres_reader *reader = state;
    bool is_there = false;

    reader->last_ns = -1;
    reader->url = path;
    int status = wm_pg_open(&reader->pg, path, NULL, err);
    reader->pg.patience_ns = SORT_PATIENCE_NS;

    /* One look at all tables, so that a writer that goes on does not show in one
     * and not in the other. */
    if (status == WM_OK)
        status =
            wm_pg_exec(&reader->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    if (status == WM_OK)
        status = wm_pg_check_format(&reader->pg, &is_there, err);
    if (status == WM_OK && !is_there)
        status =
            wm_pg_fail(&reader->pg, WM_EFORMAT, "holds no recording of wattmeter", err);
    if (status == WM_OK)
        status = load_run(reader, run, err);
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
    return reader->readings ? WM_OK : out_of_memory(reader, err);
}

static int wrong_value(const struct postgres_reader *reader, const char *column,
                       const char *what, struct wm_error *err)
{
    char text[128];

    snprintf(text, sizeof(text), "table sample, column %.64s: not %s", column, what);
    return wm_pg_fail(&reader->pg, WM_EFORMAT, text, err);
}

static bool read_time(const struct wm_pg_rows *row, int column, int64_t *ret_ns)
{
    uint64_t bits;

    if (!wm_pg_rows_bits(row, column, WM_PG_INT8, &bits) || bits > (uint64_t)WM_TIME_MAX_NS)
        return false;
    *ret_ns = (int64_t)bits;
    return true;
}

/* The value of a channel, and when it was read. */
static int read_value(struct postgres_reader *reader, const struct wm_pg_rows *row,
                      size_t channel, int64_t tick_ns, struct wm_error *err)
{
    const struct wm_columns *columns = &reader->set.columns;
    struct wm_reading *reading = &reader->readings[channel];
    size_t clock = columns->clock_of[channel];
    int column = (int)(1 + columns->clock_count + channel);
    uint64_t bits = 0;
    double value;

    *reading = (struct wm_reading) { 0 };
    if (!wm_pg_rows_text(row, 0, column))
        return WM_OK;
    bool is_number = wm_pg_rows_bits(row, column, WM_PG_FLOAT8, &bits);
    memcpy(&value, &bits, sizeof(value));
    if (!is_number || !isfinite(value))
        return wrong_value(reader, columns->values[channel], "a number", err);

    *reading = (struct wm_reading) { tick_ns, value, WM_READING_OK };
    if (clock == WM_TICK_CLOCK || !wm_pg_rows_text(row, 0, (int)(1 + clock)))
        return WM_OK;
    if (!read_time(row, (int)(1 + clock), &reading->when_ns))
        return wrong_value(reader, columns->clocks[clock], "a time", err);
    return WM_OK;
}

static int read_row(struct postgres_reader *reader, const struct wm_pg_rows *row,
                    int64_t *ret_ns, struct wm_error *err)
{
    int64_t when_ns = 0;

    if (!read_time(row, 0, &when_ns))
        return wrong_value(reader, "time_ns", "a time", err);
    if (when_ns <= reader->last_ns)
        return wrong_value(reader, "time_ns", "later than in the row before", err);
    reader->last_ns = when_ns;
    for (size_t i = 0; i < reader->set.count; i++) {
        int status = read_value(reader, row, i, when_ns, err);
        if (status < 0)
            return status;
    }
    *ret_ns = when_ns;
    return WM_OK;
}

static int postgres_next(void *state, struct wm_tick *ret_tick, struct wm_error *err)
{
    struct postgres_reader *reader = state;
    struct wm_pg_rows row = { 0 };
    int64_t when_ns = 0;

    if (reader->ended)
        return 0;
    int status = wm_pg_next(&reader->pg, &row, err);
    if (status <= 0) {
        reader->ended = true;
        return status;
    }
    status = read_row(reader, &row, &when_ns, err);
    wm_pg_rows_free(&row);
    if (status < 0)
        return status;
    *ret_tick = (struct wm_tick) {
        .when_ns = when_ns,
        .readings = reader->readings,
        .count = reader->set.count,
    };
    return 1;
}

static bool is_true(const struct wm_pg_rows *rows, int row, int column)
{
    const char *text = wm_pg_rows_text(rows, row, column);

    return text && text[0] == 't';
}

static int read_path(struct postgres_reader *reader, const struct wm_pg_rows *rows,
                     int number, struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = wm_pg_rows_number(rows, number, 0, -1),
        .parent = wm_pg_rows_number(rows, number, 1, -1),
        .name = wm_pg_rows_text(rows, number, 2),
        .is_free = is_true(rows, number, 3),
    };

    return wm_regions_read_path(&reader->regions, &row, err);
}

static int read_thread(struct postgres_reader *reader, const struct wm_pg_rows *rows,
                       int number, struct wm_error *err)
{
    const struct wm_regions_row row = {
        .number = wm_pg_rows_number(rows, number, 0, -1),
        .pid = wm_pg_rows_number(rows, number, 1, -1),
        .tid = wm_pg_rows_number(rows, number, 2, -1),
        .process = wm_pg_rows_number(rows, number, 3, -1),
    };

    return wm_regions_read_thread(&reader->regions, &row, err);
}

static int load_rows(struct postgres_reader *reader, const char *table, const char *sql,
                     int (*read)(struct postgres_reader *, const struct wm_pg_rows *, int,
                                 struct wm_error *),
                     struct wm_error *err)
{
    const char *const texts[] = { reader->id };
    struct wm_pg_rows rows = { 0 };
    struct wm_error why;

    int status = wm_pg_query(&reader->region_pg, sql, texts, 1, &rows, err);
    if (status < 0)
        return status;
    for (int row = 0; row < wm_pg_rows_count(&rows) && status == WM_OK; row++)
        status = read(reader, &rows, row, &why);
    wm_pg_rows_free(&rows);
    return status < 0 ? wrong_row(reader, table, status, &why, err) : WM_OK;
}

#define SELECT_CALLS                                                                       \
    "SELECT path, thread, start_ns, stop_ns, is_open::integer::bigint FROM " WM_PG_SCHEMA  \
    ".region_call WHERE run = $1 ORDER BY "

/* 1, or 0 in a database of before there were regions. */
static int begin_regions(struct postgres_reader *reader, const char *select_calls,
                         struct wm_error *err)
{
    const char *const texts[] = { reader->id };
    struct wm_pg *pg = &reader->region_pg;
    bool has_regions = false;

    int status = wm_pg_open(pg, reader->url, NULL, err);
    pg->patience_ns = SORT_PATIENCE_NS;
    if (status == WM_OK)
        status = wm_pg_exec(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    if (status == WM_OK)
        status = wm_pg_has_regions(pg, &has_regions, err);
    if (status < 0 || !has_regions)
        return status;
    status = load_rows(reader, "region_path",
                       "SELECT id, parent, CASE WHEN octet_length(name) <= " VALUE_MAX
                       " THEN name END, is_free FROM " WM_PG_SCHEMA
                       ".region_path WHERE run = $1 ORDER BY id",
                       read_path, err);
    if (status == WM_OK)
        status = load_rows(reader, "region_thread",
                           "SELECT id, pid, tid, process FROM " WM_PG_SCHEMA
                           ".region_thread WHERE run = $1 ORDER BY id",
                           read_thread, err);
    if (status == WM_OK)
        status = wm_pg_send(pg, select_calls, texts, 1, err);
    return status < 0 ? status : 1;
}

static int64_t integer_at(const struct wm_pg_rows *row, int column)
{
    uint64_t bits;

    return wm_pg_rows_bits(row, column, WM_PG_INT8, &bits) ? (int64_t)bits : -1;
}

/* 1, or 0 past the last one. */
static int next_call(struct postgres_reader *reader, struct wm_error *err)
{
    struct wm_pg_rows row = { 0 };
    struct wm_error why;

    int status = wm_pg_next(&reader->region_pg, &row, err);
    if (status <= 0)
        return status;
    const struct wm_regions_row call = {
        .path = integer_at(&row, 0),
        .thread = integer_at(&row, 1),
        .start_ns = integer_at(&row, 2),
        .stop_ns = integer_at(&row, 3),
        .is_open = integer_at(&row, 4),
    };
    status = wm_regions_read_call(&reader->regions, &call, &why);
    wm_pg_rows_free(&row);
    return status < 0 ? wrong_row(reader, "region_call", status, &why, err) : 1;
}

static int next_batch(struct postgres_reader *reader, const char *select_calls,
                      struct wm_region_batch *ret_batch, struct wm_error *err)
{
    int status = 1;

    if (reader->regions_ended)
        return 0;
    wm_regions_part_next(&reader->regions);
    if (!reader->has_calls) {
        status = begin_regions(reader, select_calls, err);
        reader->has_calls = status > 0;
    }
    while (status > 0 && reader->regions.call_count < CALLS_AT_ONCE)
        status = next_call(reader, err);
    reader->regions_ended = status <= 0;
    if (status < 0)
        return status;
    *ret_batch = wm_regions_part_batch(&reader->regions);
    return !wm_regions_part_is_empty(&reader->regions);
}

static int postgres_regions(void *state, struct wm_region_batch *ret_batch,
                            struct wm_error *err)
{
    return next_batch(state, SELECT_CALLS "stop_ns", ret_batch, err);
}

static int postgres_calls(void *state, struct wm_region_batch *ret_batch,
                          struct wm_error *err)
{
    return next_batch(state, SELECT_CALLS "start_ns, path, stop_ns", ret_batch, err);
}

static void postgres_close(void *state)
{
    struct postgres_reader *reader = state;

    wm_pg_close(&reader->pg);
    wm_pg_close(&reader->region_pg);
    wm_regions_part_release(&reader->regions);
    free(reader->readings);
    wm_channel_set_release(&reader->set);
    wm_reader_head_release(&reader->head);
}

const struct wm_reader_ops wm_reader_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .state_size = sizeof(struct postgres_reader),
    .open = postgres_open,
    .next = postgres_next,
    .regions = postgres_regions,
    .calls = postgres_calls,
    .close = postgres_close,
};
