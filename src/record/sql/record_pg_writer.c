/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_writer.c - one run on its way into PostgreSQL, in batches by COPY in
 * its binary format, which keeps every double as it is. */
#include "record/sql/record_pg.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_json.h"
#include "record/calls/record_timepoint.h"
#include "record/record_channel.h"
#include "record/sql/record_sql.h"

/* What a COPY in binary begins and ends with. */
static const char copy_head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
static const char copy_tail[] = { '\377', '\377' };

enum { FIELD_SIZE = 4 + 8 }; /* its length and a number */

static int out_of_memory(const struct wm_pg_writer *writer, struct wm_error *err)
{
    return wm_pg_fail(&writer->pg, WM_ENOMEM, "out of memory", err);
}

static int prepare(struct wm_pg_writer *writer, struct wm_error *err)
{
    const struct wm_columns *columns = &writer->run.columns;
    size_t widest = columns->clock_count + columns->count;

    sqlite3_str *sample = sqlite3_str_new(NULL), *data = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sample, "BEGIN; COPY " WM_PG_SCHEMA ".sample (run, time_ns");
    wm_sql_append_columns(sample, ", ", columns);
    sqlite3_str_appendall(sample, ") FROM STDIN (FORMAT binary)");
    sqlite3_str_appendall(data, "COPY " WM_PG_SCHEMA ".data (run");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        sqlite3_str_appendf(data, ", %s", wm_measurement_name((enum wm_measurement)i));
    sqlite3_str_appendall(data, ", \"timestamp\") FROM STDIN (FORMAT binary)");
    writer->copy_sample = sqlite3_str_finish(sample);
    writer->copy_data = sqlite3_str_finish(data);

    /* A row of regions is shorter than one of gpu_tracker's. */
    if (widest < WM_MEASUREMENT_COUNT + 1)
        widest = WM_MEASUREMENT_COUNT + 1;
    writer->row = malloc(2 + (2 + widest) * FIELD_SIZE);
    if (!writer->copy_sample || !writer->copy_data || !writer->row)
        return out_of_memory(writer, err);
    return WM_OK;
}

static int find_mark(struct wm_pg_writer *writer, struct wm_error *err)
{
    const char *const texts[] = { writer->run.id };
    struct wm_pg_rows rows = { 0 };

    int status = wm_pg_query(&writer->pg,
                             "SELECT stop_ns, calls FROM " WM_PG_SCHEMA
                             ".region_mark WHERE run = $1",
                             texts, 1, &rows, err);
    if (status < 0)
        return status;
    if (wm_pg_rows_count(&rows) > 0) {
        writer->mark_ns = wm_pg_rows_number(&rows, 0, 0, -1);
        writer->mark_calls = wm_pg_rows_number(&rows, 0, 1, 0);
    }
    wm_pg_rows_free(&rows);
    wm_pg_writer_resume(writer);
    return WM_OK;
}

int wm_pg_writer_open(struct wm_pg_writer *writer, const char *url,
                      const struct wm_run *run, const struct wm_channel *channels,
                      size_t count, const atomic_bool *give_up, struct wm_error *err)
{
    *writer = (struct wm_pg_writer) {
        .run = { .run = run, .channels = channels, .count = count },
        .built_ns = -1,
        .mark_ns = -1,
    };
    int status = wm_pg_open(&writer->pg, url, give_up, err);
    if (status == WM_OK)
        status = wm_pg_begin_run(&writer->pg, &writer->run, err);
    if (status == WM_OK)
        status = find_mark(writer, err);
    if (status == WM_OK)
        status = wm_timepoint_builder_new(run, channels, count, &writer->builder, err);
    return status < 0 ? status : prepare(writer, err);
}

static char *put(char *at, const void *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

static char *put_count(char *at, size_t fields)
{
    uint16_t count = htobe16((uint16_t)fields);

    return put(at, &count, sizeof(count));
}

static char *put_int(char *at, int64_t value)
{
    uint32_t length = htobe32(sizeof(value));
    uint64_t bits = htobe64((uint64_t)value);

    return put(put(at, &length, sizeof(length)), &bits, sizeof(bits));
}

static char *put_null(char *at)
{
    uint32_t length = htobe32((uint32_t)-1);

    return put(at, &length, sizeof(length));
}

/* NULL for NaN and infinity; minus zero as zero. */
static char *put_number(char *at, double value)
{
    int64_t bits;

    if (!isfinite(value))
        return put_null(at);
    value = value == 0 ? 0 : value;
    memcpy(&bits, &value, sizeof(bits));
    return put_int(at, bits);
}

static int64_t run_number(const struct wm_pg_writer *writer)
{
    return strtoll(writer->run.id, NULL, 10);
}

static size_t sample_row(const struct wm_pg_writer *writer, const struct wm_tick *tick)
{
    const struct wm_columns *columns = &writer->run.columns;
    char *at = put_count(writer->row, 2 + columns->clock_count + columns->count);

    at = put_int(at, run_number(writer));
    at = put_int(at, tick->when_ns);
    for (size_t clock = 0; clock < columns->clock_count; clock++) {
        int64_t when_ns = wm_columns_clock_ns(columns, clock, tick->readings);
        at = when_ns >= 0 ? put_int(at, when_ns) : put_null(at);
    }
    for (size_t i = 0; i < columns->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        at = put_number(at, reading->state == WM_READING_OK ? reading->value : NAN);
    }
    return (size_t)(at - writer->row);
}

static size_t data_row(const struct wm_pg_writer *writer,
                       const struct wm_timepoint *timepoint)
{
    char *at = put_count(writer->row, 2 + WM_MEASUREMENT_COUNT);

    at = put_int(at, run_number(writer));
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        at = put_number(at, timepoint->values[i]);
    at = put_number(at, wm_timepoint_unix_seconds(writer->run.run, timepoint->when_ns));
    return (size_t)(at - writer->row);
}

static int begin_rows(struct wm_pg_writer *writer, const char *sql, struct wm_error *err)
{
    int status = wm_pg_copy_begin(&writer->pg, sql, err);

    return status < 0 ? status
                      : wm_pg_copy(&writer->pg, copy_head, sizeof(copy_head) - 1, err);
}

static int end_rows(struct wm_pg_writer *writer, struct wm_error *err)
{
    int status = wm_pg_copy(&writer->pg, copy_tail, sizeof(copy_tail), err);

    return status < 0 ? status : wm_pg_copy_end(&writer->pg, err);
}

static int copy_samples(struct wm_pg_writer *writer, const struct wm_tick *ticks,
                        size_t count, struct wm_error *err)
{
    int status = begin_rows(writer, writer->copy_sample, err);

    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = wm_pg_copy(&writer->pg, writer->row, sample_row(writer, &ticks[i]), err);
    return status < 0 ? status : end_rows(writer, err);
}

/* A tick may come once more, where a new spool begins with the last of the old. Two
 * within a microsecond, as at a hole, have one time in the seconds of `data`, which has
 * the first of them. */
static bool build(struct wm_pg_writer *writer, const struct wm_tick *tick,
                  struct wm_timepoint *ret_timepoint)
{
    const struct wm_run *run = writer->run.run;
    int64_t before_ns = writer->built_ns;

    if (tick->when_ns <= before_ns)
        return false;
    writer->built_ns = tick->when_ns;
    return wm_timepoint_next(writer->builder, tick, ret_timepoint) &&
           wm_timepoint_unix_seconds(run, tick->when_ns) >
               wm_timepoint_unix_seconds(run, before_ns);
}

static int copy_data(struct wm_pg_writer *writer, const struct wm_tick *ticks, size_t count,
                     struct wm_error *err)
{
    struct wm_timepoint timepoint;
    int status = begin_rows(writer, writer->copy_data, err);

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (build(writer, &ticks[i], &timepoint))
            status =
                wm_pg_copy(&writer->pg, writer->row, data_row(writer, &timepoint), err);
    }
    return status < 0 ? status : end_rows(writer, err);
}

/* The capacities are readings too, and so not known before a tick is. */
static int write_static(struct wm_pg_writer *writer, const struct wm_tick *tick,
                        struct wm_error *err)
{
    double ram, gpu_ram;

    wm_timepoint_capacities(writer->builder, tick, &ram, &gpu_ram);
    writer->has_static = !isnan(ram) && !isnan(gpu_ram);
    return wm_pg_static_data(&writer->pg, &writer->run, ram, gpu_ram, err);
}

int wm_pg_writer_ticks(struct wm_pg_writer *writer, const struct wm_tick *ticks,
                       size_t count, struct wm_error *err)
{
    struct wm_timepoint unused;

    /* Those that are there already still say where the next rates begin. */
    for (; count > 0 && ticks[0].when_ns <= writer->run.last_ns; ticks++, count--)
        build(writer, &ticks[0], &unused);
    if (count == 0)
        return WM_OK;

    int status = copy_samples(writer, ticks, count, err);
    if (status == WM_OK)
        status = copy_data(writer, ticks, count, err);
    if (status == WM_OK && !writer->has_static)
        status = write_static(writer, &ticks[0], err);
    if (status == WM_OK)
        status = wm_pg_exec(&writer->pg, "COMMIT", err);
    if (status == WM_OK)
        writer->run.last_ns = ticks[count - 1].when_ns;
    return status;
}

static char *gaps_to_json(const struct wm_pg_writer *writer, const struct wm_gap *gaps,
                          size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        wm_json_add(&array, wm_gap_json(&gaps[i], &writer->run.columns));
    return wm_json_dump(array, JSON_COMPACT);
}

int wm_pg_writer_gaps(struct wm_pg_writer *writer, const struct wm_gap *gaps, size_t count,
                      struct wm_error *err)
{
    char *json = gaps_to_json(writer, gaps, count);

    if (!json)
        return out_of_memory(writer, err);
    const char *const texts[] = { writer->run.id, json };
    int status = wm_pg_run(&writer->pg,
                           "INSERT INTO " WM_PG_SCHEMA
                           ".gap (run, channel, from_ns, to_ns, state, why)"
                           " SELECT $1::bigint, g->>'column', (g->>'from_ns')::bigint,"
                           " (g->>'to_ns')::bigint, g->>'state', g->>'why'"
                           " FROM json_array_elements($2::json) AS list (g)"
                           " ON CONFLICT DO NOTHING",
                           texts, 2, err);
    free(json);
    return status;
}

void wm_pg_writer_resume(struct wm_pg_writer *writer)
{
    writer->is_resuming = writer->mark_ns >= 0;
    writer->skipped_calls = 0;
}

static char *paths_to_json(const struct wm_region_batch *batch)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < batch->path_count; i++) {
        const struct wm_region_path *path = &batch->paths[i];
        json_t *parent = path->parent == WM_REGION_NO_PATH
                             ? json_null()
                             : json_integer((json_int_t)path->parent);
        wm_json_add(&array, json_pack("{s:I, s:o, s:o, s:I, s:b}", "id",
                                      (json_int_t)batch->first_path + i, "parent", parent,
                                      "name", wm_text_json(path->name), "depth",
                                      (json_int_t)path->depth, "is_free", path->is_free));
    }
    return wm_json_dump(array, JSON_COMPACT);
}

static char *threads_to_json(const struct wm_region_batch *batch)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < batch->thread_count; i++) {
        const struct wm_region_thread *thread = &batch->threads[i];
        wm_json_add(&array, json_pack("{s:I, s:i, s:i, s:I}", "id",
                                      (json_int_t)batch->first_thread + i, "pid",
                                      (int)thread->pid, "tid", (int)thread->tid, "process",
                                      (json_int_t)thread->process));
    }
    return wm_json_dump(array, JSON_COMPACT);
}

/* Takes `json` over. */
static int insert_json(struct wm_pg_writer *writer, const char *sql, char *json,
                       struct wm_error *err)
{
    if (!json)
        return out_of_memory(writer, err);
    const char *const texts[] = { writer->run.id, json };
    int status = wm_pg_run(&writer->pg, sql, texts, 2, err);
    free(json);
    return status;
}

static int insert_paths(struct wm_pg_writer *writer, const struct wm_region_batch *batch,
                        struct wm_error *err)
{
    static const char paths[] =
        "INSERT INTO " WM_PG_SCHEMA ".region_path (run, id, parent, name, depth, is_free)"
        " SELECT $1::bigint, (p->>'id')::bigint, (p->>'parent')::bigint, p->>'name',"
        " (p->>'depth')::bigint, (p->>'is_free')::boolean"
        " FROM json_array_elements($2::json) AS list (p) ON CONFLICT DO NOTHING";
    static const char threads[] =
        "INSERT INTO " WM_PG_SCHEMA ".region_thread (run, id, pid, tid, process)"
        " SELECT $1::bigint, (t->>'id')::bigint, (t->>'pid')::integer,"
        " (t->>'tid')::integer, (t->>'process')::bigint"
        " FROM json_array_elements($2::json) AS list (t) ON CONFLICT DO NOTHING";
    int status = WM_OK;

    if (batch->path_count > 0)
        status = insert_json(writer, paths, paths_to_json(batch), err);
    if (status == WM_OK && batch->thread_count > 0)
        status = insert_json(writer, threads, threads_to_json(batch), err);
    return status;
}

static char *put_bool(char *at, bool value)
{
    uint32_t length = htobe32(1);
    char byte = value;

    return put(put(at, &length, sizeof(length)), &byte, sizeof(byte));
}

static size_t call_row(const struct wm_pg_writer *writer,
                       const struct wm_region_record *call)
{
    char *at = put_count(writer->row, 6);

    at = put_int(at, run_number(writer));
    at = put_int(at, call->path);
    at = put_int(at, call->thread);
    at = put_int(at, call->start_ns);
    at = put_int(at, call->stop_ns);
    at = put_bool(at, call->is_open);
    return (size_t)(at - writer->row);
}

static int copy_calls(struct wm_pg_writer *writer, const struct wm_region_record *calls,
                      size_t count, struct wm_error *err)
{
    int status = begin_rows(writer,
                            "COPY " WM_PG_SCHEMA ".region_call (run, path, thread,"
                            " start_ns, stop_ns, is_open) FROM STDIN (FORMAT binary)",
                            err);

    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = wm_pg_copy(&writer->pg, writer->row, call_row(writer, &calls[i]), err);
    return status < 0 ? status : end_rows(writer, err);
}

/* In the transaction of the calls themselves, so that the two cannot differ. */
static int write_mark(struct wm_pg_writer *writer, const struct wm_region_record *calls,
                      size_t count, struct wm_error *err)
{
    int64_t stop_ns = calls[count - 1].stop_ns;
    int64_t same = writer->mark_ns == stop_ns ? writer->mark_calls : 0;
    char stop[24], number[24];

    for (size_t i = count; i > 0 && calls[i - 1].stop_ns == stop_ns; i--)
        same++;
    snprintf(stop, sizeof(stop), "%lld", (long long)stop_ns);
    snprintf(number, sizeof(number), "%lld", (long long)same);
    const char *const texts[] = { writer->run.id, stop, number };
    int status = wm_pg_run(&writer->pg,
                           "INSERT INTO " WM_PG_SCHEMA ".region_mark VALUES ($1, $2, $3)"
                           " ON CONFLICT (run) DO UPDATE SET stop_ns = $2, calls = $3",
                           texts, 3, err);
    if (status == WM_OK) {
        writer->mark_ns = stop_ns;
        writer->mark_calls = same;
    }
    return status;
}

/* How many of the calls are there already. */
static size_t skip_calls(struct wm_pg_writer *writer, const struct wm_region_batch *batch)
{
    size_t count = 0;

    for (; writer->is_resuming && count < batch->call_count; count++) {
        int64_t stop_ns = batch->calls[count].stop_ns;
        if (stop_ns > writer->mark_ns ||
            (stop_ns == writer->mark_ns && writer->skipped_calls == writer->mark_calls)) {
            writer->is_resuming = false;
            break;
        }
        writer->skipped_calls += stop_ns == writer->mark_ns;
    }
    return count;
}

int wm_pg_writer_regions(struct wm_pg_writer *writer, const struct wm_region_batch *batch,
                         struct wm_error *err)
{
    size_t skipped = skip_calls(writer, batch);
    const struct wm_region_record *calls = batch->calls + skipped;
    size_t count = batch->call_count - skipped;

    int status = wm_pg_exec(&writer->pg, "BEGIN", err);
    if (status == WM_OK)
        status = insert_paths(writer, batch, err);
    if (status == WM_OK && count > 0)
        status = copy_calls(writer, calls, count, err);
    if (status == WM_OK && count > 0)
        status = write_mark(writer, calls, count, err);
    return status < 0 ? status : wm_pg_exec(&writer->pg, "COMMIT", err);
}

int wm_pg_writer_result(struct wm_pg_writer *writer, const struct wm_result *result,
                        struct wm_error *err)
{
    char *json = NULL;

    int status = wm_result_to_json(result, &json, err);
    if (status < 0)
        return status;
    const char *const texts[] = { json, writer->run.id };
    struct wm_pg_rows updated = { 0 };
    status = wm_pg_query(&writer->pg,
                         "UPDATE " WM_PG_SCHEMA ".run SET result = $1 WHERE id = $2"
                         " RETURNING id",
                         texts, 2, &updated, err);
    free(json);
    if (status == WM_OK && wm_pg_rows_count(&updated) != 1)
        status = wm_pg_fail(&writer->pg, WM_EIO, "the run has been deleted", err);
    wm_pg_rows_free(&updated);
    return status;
}

void wm_pg_writer_close(struct wm_pg_writer *writer)
{
    wm_pg_close(&writer->pg);
    wm_timepoint_builder_free(writer->builder);
    wm_columns_release(&writer->run.columns);
    if (writer->copy_sample)
        sqlite3_free(writer->copy_sample);
    if (writer->copy_data)
        sqlite3_free(writer->copy_data);
    free(writer->row);
    *writer = (struct wm_pg_writer) { 0 };
}
