/* SPDX-License-Identifier: Apache-2.0 */
/* compat_sub_tracking_write.c - writing gpu_tracker's sub-tracking file. */
#include "compat/gpu_tracker/compat_sub_tracking_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/base_out.h"
#include "base/text/base_utf8.h"
#include "record/sql/record_sql.h"

/* The state of its formats. */
struct sub_file {
    const char *path;  /* for messages */
    struct wm_out out; /* CSV */
    char *line;
    size_t line_room;
    sqlite3 *db; /* SQLite; NULL: CSV */
    sqlite3_stmt *insert;
};

static int out_of_memory(const struct sub_file *file, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", file->path);
}

static void csv_close(void *state)
{
    struct sub_file *file = state;

    wm_out_close(&file->out);
    free(file->line);
}

static int csv_open(void *state, const char *path, const struct wm_run *run,
                    const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct sub_file *file = state;

    (void)run, (void)channels, (void)count;
    file->path = wm_text_path(path);
    return wm_out_open(&file->out, path, err);
}

static void sqlite_close(void *state)
{
    struct sub_file *file = state;

    if (file->db) {
        sqlite3_finalize(file->insert);
        sqlite3_close(file->db);
    }
}

/* Nobody else sees the draft, so it needs no journal. */
static int sqlite_open(void *state, const char *path, const struct wm_run *run,
                       const struct wm_channel *channels, size_t count,
                       struct wm_error *err)
{
    struct sub_file *file = state;
    char name[4096];

    (void)run, (void)channels, (void)count;
    file->path = wm_text_path(path);
    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(path, name), &file->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(file->db, result, file->path, err);
    status =
        wm_sql_exec(file->db, "PRAGMA journal_mode = OFF; BEGIN;" WM_REGION_FILE_CREATE,
                    file->path, err);
    return status < 0 ? status
                      : wm_sql_prepare(file->db, WM_REGION_FILE_INSERT, file->path,
                                       &file->insert, err);
}

/* Its rows are no ticks, so what else a recorder has is missing. */
static const struct wm_recorder_ops csv_ops = {
    .name = "sub-tracking",
    .state_size = sizeof(struct sub_file),
    .open = csv_open,
    .close = csv_close,
};

static const struct wm_recorder_ops sqlite_ops = {
    .name = "sub-tracking",
    .state_size = sizeof(struct sub_file),
    .open = sqlite_open,
    .close = sqlite_close,
};

static const struct format {
    const char *suffix;
    const struct wm_recorder_ops *ops;
} formats[] = {
    { ".csv", &csv_ops },
    { ".sqlite", &sqlite_ops },
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

static const struct format *find_format(const char *path, struct wm_error *err)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        size_t end = strlen(formats[i].suffix);
        if (length >= end && strcmp(path + length - end, formats[i].suffix) == 0)
            return &formats[i];
    }
    wm_fail(err, WM_EINVAL, "%s: a sub-tracking file ends in .csv or .sqlite",
            wm_text_path(path));
    return NULL;
}

const char *wm_sub_target_suffix(const char *path, struct wm_error *err)
{
    const struct format *format = find_format(path, err);

    return format ? format->suffix : NULL;
}

int wm_sub_target_open(struct wm_target *ret_target, const char *path,
                       enum wm_record_mode mode, const char *line_end, struct wm_error *err)
{
    const struct format *format = find_format(path, err);

    if (!format)
        return WM_EINVAL;
    int status =
        wm_target_open_draft(ret_target, format->ops, path, mode, NULL, NULL, 0, err);
    if (status < 0 || format->ops != &csv_ops)
        return status;
    struct sub_file *file = ret_target->state;
    wm_out_text(&file->out, WM_REGION_FILE_HEADER);
    wm_out_text(&file->out, line_end);
    return WM_OK;
}

static int csv_row(struct sub_file *file, const struct wm_region_row *row,
                   struct wm_error *err)
{
    size_t room = WM_REGION_ROW_SIZE(row->name_length);

    if (room > file->line_room) {
        char *line = realloc(file->line, room);
        if (!line)
            return out_of_memory(file, err);
        file->line = line;
        file->line_room = room;
    }
    wm_out_bytes(&file->out, file->line, wm_region_row_line(row, file->line));
    return WM_OK;
}

int wm_sub_target_row(struct wm_target *target, const struct wm_region_row *row,
                      struct wm_error *err)
{
    struct sub_file *file = target->state;

    if (!file->db)
        return csv_row(file, row, err);
    wm_region_row_bind(row, file->insert);
    return wm_sql_run(file->insert, file->path, err);
}

int wm_sub_target_copy(struct wm_target *target, const struct wm_sub_row *row,
                       struct wm_error *err)
{
    struct sub_file *file = target->state;

    if (file->db)
        return wm_sub_target_row(target,
                                 &(const struct wm_region_row) {
                                     .process = row->process,
                                     .name = row->name,
                                     .name_length = strlen(row->name),
                                     .is_stop = row->is_stop,
                                     .when_s = row->seconds,
                                 },
                                 err);
    for (int i = 0; i < WM_SUB_COLUMNS; i++) {
        wm_out_text(&file->out, i > 0 ? "," : "");
        wm_out_cell(&file->out, row->cells[i].text, row->cells[i].length);
    }
    wm_out_text(&file->out, "\n");
    return WM_OK;
}

/* Makes what was written last. */
static int complete(struct sub_file *file, struct wm_error *err)
{
    if (file->db)
        return wm_sql_exec(file->db, "COMMIT", file->path, err);
    int status = wm_out_flush(&file->out, err);
    return status < 0 ? status : wm_out_sync(&file->out, err);
}

int wm_sub_target_finish(struct wm_target *target, int status, struct wm_error *err)
{
    return wm_target_finish(target, status < 0 ? status : complete(target->state, err),
                            err);
}
