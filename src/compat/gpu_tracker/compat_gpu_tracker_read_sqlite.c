/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_read_sqlite.c - reading gpu_tracker's tracking file in SQLite: the
 * tables `static_data` and `data`.
 *
 * Rows are read in blocks. Of a long table two threads read the next few blocks, for
 * SQLite takes longer to hand out a row than the analysis to use it.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_thread.h"
#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_read.h"
#include "record/sql/record_sql.h"

enum {
    BLOCK_ROWS = 2048,
    SLOTS = 8, /* blocks that are in memory, 3 MB in all, of which one is enough without
                * threads: the others are never touched then */
    THREADS = 2,
    THREADS_FROM = 32 * BLOCK_ROWS, /* rows; fewer are read before a thread has begun */
};

/* The SQL function that takes the columns of a row. */
#define TAKE_ROW "wattmeter_take"

/* Not `rowid`, which some column may be called. */
#define IN_RANGE " WHERE data._rowid_ BETWEEN ? AND ?"

struct slot {
    struct wm_timepoint rows[BLOCK_ROWS];
    size_t count;
    bool is_full; /* the block that belongs here has been read */
    int status;   /* the outcome of that: 0, or 1 where more may follow */
    struct wm_error err;
};

/* A query of them. */
struct query {
    sqlite3_stmt *rows;
    struct wm_timepoint *next; /* where the next one is put */
};

struct ahead {
    sqlite3 *db;
    const char *path, *shown; /* of the database, and in messages */
    char *sql;                /* SELECT TAKE_ROW(timestamp, measurements...) */
    bool has_range;           /* rows are found by their numbers, from first to last */
    sqlite3_int64 first, last;
    int64_t row_count, most_rows; /* were handed out, and can be */
    struct query query;           /* of whoever reads without threads */
    struct slot slots[SLOTS];
    uint64_t block;       /* the block that is being handed out */
    uint64_t block_count; /* of a range */
    struct slot *slot;    /* of that block; NULL: not fetched yet */
    size_t next;          /* row of it */

    pthread_mutex_t lock; /* for what follows, and the slots */
    pthread_cond_t changed;
    uint64_t next_block; /* the next block that no thread has taken */
    bool is_over;
    pthread_t threads[THREADS];
    size_t thread_count;
};

static void wrong_value(sqlite3_context *context, const char *column, const char *what)
{
    char text[96];

    snprintf(text, sizeof(text), "%s is not %s", column, what);
    sqlite3_result_error(context, text, -1);
}

/* Whether a column holds a number, whatever its type was declared to be. */
static bool read_number(sqlite3_value *value, int type, double *ret_number)
{
    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
        return false;
    *ret_number = sqlite3_value_double(value);
    return isfinite(*ret_number);
}

/* The SQL function TAKE_ROW: puts a timestamp and the measurements where the query wants
 * them. Asked for one by one, the columns of a row take a third longer. */
static void take_row(sqlite3_context *context, int count, sqlite3_value **values)
{
    const struct query *query = sqlite3_user_data(context);
    struct wm_timepoint *row = query->next;
    double seconds;

    *row = (struct wm_timepoint) { 0 };
    if (!read_number(values[0], sqlite3_value_type(values[0]), &seconds) ||
        !wm_clock_from_seconds(seconds, &row->when_ns)) {
        wrong_value(context, "a timestamp", "a time in seconds since 1970");
        return;
    }
    for (int i = 1; i < count; i++) {
        int type = sqlite3_value_type(values[i]);
        if (type == SQLITE_NULL)
            continue;
        if (!read_number(values[i], type, &row->values[i - 1])) {
            wrong_value(context, wm_measurement_name((enum wm_measurement)(i - 1)),
                        "a number");
            return;
        }
        row->known |= UINT32_C(1) << (i - 1);
    }
}

/* `query` outlives the rows. */
static int prepare(const struct ahead *ahead, sqlite3 *db, struct query *query,
                   struct wm_error *err)
{
    int result = sqlite3_create_function_v2(db, TAKE_ROW, WM_TIMEPOINT_COLUMNS,
                                            SQLITE_UTF8 | SQLITE_DIRECTONLY, query,
                                            take_row, NULL, NULL, NULL);

    if (result != SQLITE_OK)
        return wm_sql_fail(db, result, ahead->shown, err);
    return wm_sql_prepare(db, ahead->sql, ahead->shown, &query->rows, err);
}

/* Rows until the slot is full, or the statement has no more. */
static void read_rows(const struct ahead *ahead, struct query *query, struct slot *slot)
{
    sqlite3 *db = sqlite3_db_handle(query->rows);
    int result = SQLITE_ROW;

    slot->count = 0;
    slot->status = 1;
    query->next = slot->rows;
    while (slot->count < BLOCK_ROWS && (result = sqlite3_step(query->rows)) == SQLITE_ROW)
        query->next = &slot->rows[++slot->count];
    if (result == SQLITE_DONE)
        slot->status = 0;
    else if (result == SQLITE_ERROR) /* what take_row() said */
        slot->status = wm_fail(&slot->err, WM_EFORMAT, "%s: table data: %s", ahead->shown,
                               sqlite3_errmsg(db));
    else if (result != SQLITE_ROW)
        slot->status = wm_sql_fail(db, result, ahead->shown, &slot->err);
}

static void read_block(const struct ahead *ahead, struct query *query, uint64_t block,
                       struct slot *slot)
{
    if (!ahead->has_range) {
        read_rows(ahead, query, slot);
        return;
    }
    sqlite3_int64 first = ahead->first + (sqlite3_int64)(block * BLOCK_ROWS);
    bool is_last = block + 1 == ahead->block_count;
    sqlite3_bind_int64(query->rows, 1, first);
    sqlite3_bind_int64(query->rows, 2, is_last ? ahead->last : first + BLOCK_ROWS - 1);
    read_rows(ahead, query, slot);
    sqlite3_reset(query->rows);
    if (slot->status >= 0)
        slot->status = !is_last;
}

/* With the lock held on the way in and out: the slot of the next block that has a place to
 * go to, NULL when there is nothing more to read. */
static struct slot *take_block(struct ahead *ahead, uint64_t *ret_block)
{
    while (!ahead->is_over && ahead->next_block < ahead->block_count &&
           ahead->next_block >= ahead->block + SLOTS)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    if (ahead->is_over || ahead->next_block == ahead->block_count)
        return NULL;
    *ret_block = ahead->next_block++;
    return &ahead->slots[*ret_block % SLOTS];
}

static void *run_thread(void *argument)
{
    struct ahead *ahead = argument;
    struct wm_error err = { 0 };
    struct query query = { 0 };
    sqlite3 *db = NULL;
    struct slot *slot;
    uint64_t block = 0;

    int status = wm_sql_open_to_read(ahead->path, ahead->shown, &db, &err);
    if (status == WM_OK)
        status = prepare(ahead, db, &query, &err);

    pthread_mutex_lock(&ahead->lock);
    while ((slot = take_block(ahead, &block)) != NULL) {
        pthread_mutex_unlock(&ahead->lock);
        if (status == WM_OK) {
            read_block(ahead, &query, block, slot);
        } else {
            slot->count = 0;
            slot->status = status;
            slot->err = err;
        }
        pthread_mutex_lock(&ahead->lock);
        slot->is_full = true;
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);

    sqlite3_finalize(query.rows);
    sqlite3_close(db);
    return NULL;
}

/* Where no thread can be had the caller's own does it. */
static void start_threads(struct ahead *ahead)
{
    while (ahead->thread_count < THREADS &&
           wm_thread_start(&ahead->threads[ahead->thread_count], run_thread, ahead, "",
                           NULL) == WM_OK)
        ahead->thread_count++;
}

static int number(const struct ahead *ahead, const char *sql, sqlite3_int64 *ret_number,
                  struct wm_error *err)
{
    return wm_sql_number(ahead->db, sql, ahead->shown, ret_number, err);
}

/* Whether the numbers of the rows run from `first` to `last` without great holes. A table
 * without such numbers has another order; one with holes could be made so that looking
 * for its rows never ends, and how many pages there are is what a hostile file says. */
static int find_range(struct ahead *ahead, struct wm_error *err)
{
    sqlite3_int64 hidden = 0;

    int status = number(ahead,
                        "SELECT count(*) FROM pragma_table_info('data')"
                        " WHERE name = '_rowid_' COLLATE NOCASE",
                        &hidden, err);
    if (status < 0 || hidden > 0)
        return status;
    if (number(ahead, "SELECT min(_rowid_) FROM data", &ahead->first, NULL) == WM_OK &&
        number(ahead, "SELECT max(_rowid_) FROM data", &ahead->last, NULL) == WM_OK)
        ahead->has_range = ahead->first >= 0 && ahead->last >= ahead->first &&
                           ahead->last - ahead->first < ahead->most_rows;
    return WM_OK;
}

/* NOT INDEXED: in the order in which they were written, whatever index there is. */
static int make_query(struct ahead *ahead, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(ahead->db);

    sqlite3_str_appendall(sql, "SELECT " TAKE_ROW "(data.timestamp");
    for (int i = 0; i < WM_MEASUREMENT_COUNT; i++)
        sqlite3_str_appendf(sql, ", data.%s", wm_measurement_name((enum wm_measurement)i));
    sqlite3_str_appendall(sql, ") FROM data NOT INDEXED");
    sqlite3_str_appendall(sql, ahead->has_range ? IN_RANGE : "");
    ahead->sql = sqlite3_str_finish(sql);
    return ahead->sql ? WM_OK : wm_fail_memory(err, ahead->shown);
}

static void ahead_close(struct ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->is_over = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    for (size_t i = 0; i < ahead->thread_count; i++)
        pthread_join(ahead->threads[i], NULL);
    sqlite3_finalize(ahead->query.rows);
    sqlite3_free(ahead->sql);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

/* `db` is open on the database at `path`, which has the table `data`, and which messages
 * call `shown`; they outlive the result. */
static int ahead_open(sqlite3 *db, const char *path, const char *shown,
                      struct ahead **ret_ahead, struct wm_error *err)
{
    struct ahead *ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return wm_fail_memory(err, shown);
    ahead->db = db;
    ahead->path = path;
    ahead->shown = shown;
    ahead->most_rows = wm_sql_most_rows(path, WM_TIMEPOINT_COLUMNS);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);

    int status = find_range(ahead, err);
    if (status == WM_OK)
        status = make_query(ahead, err);
    if (status == WM_OK)
        status = prepare(ahead, db, &ahead->query, err);
    if (status < 0) {
        ahead_close(ahead);
        return status;
    }

    /* A range is no longer than the file can be. */
    uint64_t count = ahead->has_range ? (uint64_t)(ahead->last - ahead->first) + 1 : 0;
    ahead->block_count = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    if (count >= THREADS_FROM)
        start_threads(ahead);
    *ret_ahead = ahead;
    return WM_OK;
}

/* The slot of the block whose turn it is, which is the caller's until it is given back. */
static struct slot *fetch(struct ahead *ahead)
{
    struct slot *slot = &ahead->slots[ahead->block % SLOTS];

    if (ahead->thread_count == 0) {
        slot = &ahead->slots[0];
        read_block(ahead, &ahead->query, ahead->block, slot);
        return slot;
    }
    pthread_mutex_lock(&ahead->lock);
    while (!slot->is_full)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
    return slot;
}

static void give_back(struct ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->slot->is_full = false;
    ahead->block++;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    ahead->slot = NULL;
    ahead->next = 0;
}

/* 1 and the next row, whose time may be earlier than that of the one before; 0 past the
 * last one. */
static int ahead_next(struct ahead *ahead, const struct wm_timepoint **ret_timepoint,
                      struct wm_error *err)
{
    for (;;) {
        if (!ahead->slot && ahead->has_range && ahead->block == ahead->block_count)
            return 0;
        if (!ahead->slot)
            ahead->slot = fetch(ahead);
        struct slot *slot = ahead->slot;
        if (ahead->next < slot->count) {
            *ret_timepoint = &slot->rows[ahead->next++];
            if (ahead->row_count++ < ahead->most_rows)
                return 1;
            return wm_fail(err, WM_EFORMAT,
                           "%s: table data: more rows than it has room for", ahead->shown);
        }
        if (slot->status < 0)
            return wm_fail(err, slot->status, "%s", slot->err.text);
        if (slot->status == 0)
            return 0;
        give_back(ahead);
    }
}

struct sqlite {
    struct wm_tracking_reader base;
    const char *path;
    sqlite3 *db;
    struct ahead *rows; /* NULL: there are none */
};

/* Copies the value as text, exactly; "" for NULL, false for what is no text or number. */
static bool value_text(sqlite3_stmt *statement, int column, char *text, size_t size)
{
    int type = sqlite3_column_type(statement, column);

    text[0] = '\0';
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        return wm_number_format(sqlite3_column_double(statement, column), text) > 0;
    const char *value =
        type == SQLITE_TEXT ? (const char *)sqlite3_column_text(statement, column) : NULL;
    return value && (size_t)snprintf(text, size, "%s", value) < size;
}

static int read_static(struct sqlite *sqlite, sqlite3_stmt *statement, struct wm_error *err)
{
    char text[WM_NUMBER_SIZE];

    int result = sqlite3_step(statement);
    if (result == SQLITE_DONE)
        return wm_fail(err, WM_EFORMAT, "%s: table static_data is empty",
                       sqlite->base.shown);
    if (result != SQLITE_ROW)
        return wm_sql_fail(sqlite->db, result, sqlite->base.shown, err);
    for (int i = 0; i < WM_STATIC_COLUMNS; i++) {
        if (!value_text(statement, i, text, sizeof(text)) ||
            !wm_tracking_reader_set(&sqlite->base, (size_t)i, text))
            return wm_fail(err, WM_EFORMAT, "%s: table static_data: '%s' is not %s",
                           sqlite->base.shown, text, wm_static_columns[i].name);
    }
    return WM_OK;
}

static int load_static(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_stmt *statement = NULL;

    int status = wm_sql_check_table(sqlite->db, "static_data", sqlite->base.shown, err);
    if (status < 0)
        return status;
    sqlite3_str *sql = sqlite3_str_new(sqlite->db);
    for (size_t i = 0; i < WM_STATIC_COLUMNS; i++)
        sqlite3_str_appendf(sql, "%s static_data.%s", i == 0 ? "SELECT" : ",",
                            wm_static_columns[i].name);
    sqlite3_str_appendall(sql, " FROM static_data LIMIT 1");
    char *text = sqlite3_str_finish(sql);
    status = text ? wm_sql_prepare(sqlite->db, text, sqlite->base.shown, &statement, err)
                  : wm_fail_memory(err, sqlite->base.shown);
    if (status == WM_OK)
        status = read_static(sqlite, statement, err);
    sqlite3_finalize(statement);
    sqlite3_free(text);
    return status;
}

static int sqlite_again(void *state, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    ahead_close(sqlite->rows);
    sqlite->rows = NULL;
    return ahead_open(sqlite->db, sqlite->path, sqlite->base.shown, &sqlite->rows, err);
}

static int sqlite_row(void *state, const struct wm_timepoint **ret_row,
                      struct wm_error *err)
{
    struct sqlite *sqlite = state;

    return sqlite->rows ? ahead_next(sqlite->rows, ret_row, err) : 0;
}

static void sqlite_close(void *state)
{
    struct sqlite *sqlite = state;

    ahead_close(sqlite->rows);
    if (sqlite->db)
        sqlite3_close(sqlite->db);
    wm_tracking_reader_release(&sqlite->base);
}

/* gpu_tracker makes the table with its first row. */
static int load_data(struct sqlite *sqlite, struct wm_error *err)
{
    sqlite3_int64 count = 0;

    int status =
        wm_sql_number(sqlite->db, "SELECT count(*) FROM sqlite_master WHERE name = 'data'",
                      sqlite->base.shown, &count, err);
    if (status < 0 || count == 0)
        return status;
    status = wm_sql_check_table(sqlite->db, "data", sqlite->base.shown, err);
    return status < 0 ? status : sqlite_again(sqlite, err);
}

static int sqlite_open(void *state, const char *path, size_t run, struct wm_error *err)
{
    struct sqlite *sqlite = state;

    sqlite->path = path;
    sqlite->base.row = sqlite_row;
    sqlite->base.again = sqlite_again;
    int status = wm_tracking_reader_init(&sqlite->base, path, run, err);
    if (status == WM_OK)
        status = wm_sql_open_to_read(path, sqlite->base.shown, &sqlite->db, err);
    if (status == WM_OK)
        status = load_static(sqlite, err);
    return status < 0 ? status : load_data(sqlite, err);
}

const struct wm_reader_ops wm_reader_gpu_tracker_sqlite = {
    .name = "gpu_tracker's SQLite",
    .is_foreign = true,
    .recognises = wm_sql_is_database,
    .state_size = sizeof(struct sqlite),
    .open = sqlite_open,
    .next = wm_tracking_reader_next,
    .close = sqlite_close,
};
