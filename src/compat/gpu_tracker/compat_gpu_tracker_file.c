/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_file.c - writing gpu_tracker's files. */
#include "compat/gpu_tracker/compat_gpu_tracker_file.h"

#include <string.h>

#include "base/base_utf8.h"
#include "record/sql/record_sql.h"

/* How long a reader is waited for. */
enum { BUSY_MS = 2000 };

int wm_gpu_tracker_file_open(struct wm_gpu_tracker_file *file, const char *path,
                             bool is_sqlite, struct wm_error *err)
{
    char name[4096];

    file->path = wm_text_path(path);
    file->line_end = "\r\n";
    if (!is_sqlite)
        return wm_out_open(&file->out, path, err);
    int status = wm_sqlite_load(err);
    if (status < 0)
        return status;
    int result = sqlite3_open_v2(wm_sql_file_name(path, name), &file->db,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK)
        return wm_sql_fail(file->db, result, file->path, err);
    sqlite3_busy_timeout(file->db, BUSY_MS);
    return WM_OK;
}

void wm_gpu_tracker_file_close(struct wm_gpu_tracker_file *file)
{
    if (file->db) {
        sqlite3_finalize(file->insert);
        sqlite3_close(file->db);
    }
    wm_out_close(&file->out);
}

int wm_gpu_tracker_file_begin(struct wm_gpu_tracker_file *file, struct wm_error *err)
{
    return file->db ? wm_sql_exec(file->db, "BEGIN IMMEDIATE", file->path, err) : WM_OK;
}

int wm_gpu_tracker_file_commit(struct wm_gpu_tracker_file *file, struct wm_error *err)
{
    return file->db ? wm_sql_exec(file->db, "COMMIT", file->path, err)
                    : wm_out_flush(&file->out, err);
}

void wm_gpu_tracker_file_take_back(struct wm_gpu_tracker_file *file)
{
    if (!file->db)
        wm_out_discard(&file->out);
    else if (!sqlite3_get_autocommit(file->db))
        wm_sql_exec(file->db, "ROLLBACK", file->path, NULL);
}

/* SQLAlchemy's words for the types, which are those of the original's first row. */
static const char *type_of(const struct wm_gpu_tracker_cell *cell)
{
    if (cell->text)
        return "VARCHAR";
    return cell->is_count ? "INTEGER" : "FLOAT";
}

static int create(struct wm_gpu_tracker_file *file, const char *table,
                  const char *const *names, const struct wm_gpu_tracker_cell *cells,
                  int count, struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(file->db);

    sqlite3_str_appendf(sql, "CREATE TABLE %s", table);
    for (int i = 0; i < count; i++)
        sqlite3_str_appendf(sql, "%s%s %s", i > 0 ? ", " : " (", names[i],
                            type_of(&cells[i]));
    sqlite3_str_appendall(sql, ")");
    return wm_sql_exec_made(file->db, sqlite3_str_finish(sql), file->path, err);
}

static int prepare(struct wm_gpu_tracker_file *file, const char *table, int count,
                   struct wm_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(file->db);

    sqlite3_str_appendf(sql, "INSERT INTO %s VALUES (?", table);
    for (int i = 1; i < count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    sqlite3_finalize(file->insert);
    file->insert = NULL;
    int status = text ? wm_sql_prepare(file->db, text, file->path, &file->insert, err)
                      : wm_fail_memory(err, file->path);
    sqlite3_free(text);
    return status;
}

int wm_gpu_tracker_file_table(struct wm_gpu_tracker_file *file, const char *table,
                              const char *const *names,
                              const struct wm_gpu_tracker_cell *cells, int count,
                              struct wm_error *err)
{
    if (file->db) {
        int status = create(file, table, names, cells, count, err);
        return status < 0 ? status : prepare(file, table, count, err);
    }
    for (int i = 0; i < count; i++) {
        wm_out_text(&file->out, i > 0 ? "," : "");
        wm_out_text(&file->out, names[i]);
    }
    wm_out_text(&file->out, file->line_end);
    return WM_OK;
}

static void put_cell(struct wm_out *out, const struct wm_gpu_tracker_cell *cell)
{
    char text[WM_NUMBER_SIZE];

    if (cell->text) {
        wm_out_cell(out, cell->text, strlen(cell->text));
        return;
    }
    if (!cell->number.known)
        return;
    if (cell->is_count)
        wm_number_format(cell->number.number, text);
    else
        wm_number_format_float(cell->number.number, text);
    wm_out_text(out, text);
}

static int insert(struct wm_gpu_tracker_file *file, const struct wm_gpu_tracker_cell *cells,
                  int count, struct wm_error *err)
{
    int status = WM_OK;

    for (int i = 0; i < count && status == WM_OK; i++) {
        if (cells[i].text)
            status = wm_sql_bind_text(file->insert, i + 1, cells[i].text, file->path, err);
        else
            wm_sql_bind_number(file->insert, i + 1, cells[i].number);
    }
    return status < 0 ? status : wm_sql_run(file->insert, file->path, err);
}

int wm_gpu_tracker_file_row(struct wm_gpu_tracker_file *file,
                            const struct wm_gpu_tracker_cell *cells, int count,
                            struct wm_error *err)
{
    if (file->db)
        return insert(file, cells, count, err);
    for (int i = 0; i < count; i++) {
        wm_out_text(&file->out, i > 0 ? "," : "");
        put_cell(&file->out, &cells[i]);
    }
    wm_out_text(&file->out, file->line_end);
    return WM_OK;
}

int wm_gpu_tracker_file_sync(struct wm_gpu_tracker_file *file, struct wm_error *err)
{
    return file->db ? WM_OK : wm_out_sync(&file->out, err);
}
