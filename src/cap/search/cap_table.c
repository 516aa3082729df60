/* SPDX-License-Identifier: Apache-2.0 */
/* cap_table.c - sweeps of caps that were measured before, and searches in them. */
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_options.h"
#include "base/base_utf8.h"
#include "base/text/base_cells.h"
#include "base/text/base_number.h"
#include "wattmeter/cap_search.h"

enum { CAP, SECONDS, JOULES, COLUMNS };

/* Of power caps, and of clocks. */
static const char *const names[2][COLUMNS] = { { "cap_w", "seconds", "joules" },
                                               { "cap_hz", "seconds", "joules" } };

/* 1; or 0 for a cap of a model's curve that was not measured, as `cap profile` writes
 * them: both are empty. */
static int read_row(struct wm_cells *cells, const char *const *columns,
                    const size_t places[COLUMNS], struct wm_cap_row *ret_row,
                    struct wm_error *err)
{
    double numbers[COLUMNS] = { 0 };
    size_t found = 0, empty = 0, at = 0;

    for (struct wm_cell cell; wm_cells_take(cells, &cell); at++)
        for (size_t i = 0; i < COLUMNS; i++) {
            if (places[i] != at)
                continue;
            if (cell.length == 0 && i != CAP)
                empty++;
            else if (!wm_number_parse(cell.text, cell.length, &numbers[i]) ||
                     !(numbers[i] > 0))
                return wm_cells_wrong(cells, err, "%s is no number above 0", columns[i]);
            found++;
        }
    if (found < COLUMNS)
        return wm_cells_wrong(cells, err, "a column is missing");
    if (at > cells->commas + 1)
        return wm_cells_wrong(cells, err, "has more cells than the header");
    if (empty == 1)
        return wm_cells_wrong(cells, err, "has one of seconds and joules alone");
    if (empty == 0)
        *ret_row = (struct wm_cap_row) { numbers[CAP], numbers[SECONDS], numbers[JOULES] };
    return empty == 0;
}

static int read_rows(struct wm_cells *cells, struct wm_cap_table *table,
                     struct wm_error *err)
{
    size_t places[COLUMNS], room = 0;
    int more = wm_cells_next(cells, err);

    if (more < 0)
        return more;
    table->is_clock = more > 0 && strstr(cells->cursor, names[true][CAP]) &&
                      !strstr(cells->cursor, names[false][CAP]);
    const char *const *columns = names[table->is_clock];
    int status = wm_cells_header(cells, columns, COLUMNS, "a sweep of caps", places, err);
    if (status < 0)
        return status;
    while ((more = wm_cells_next(cells, err)) > 0) {
        if (table->count == WM_CAP_ROWS_MAX)
            return wm_cells_wrong(cells, err, "more than %d rows", WM_CAP_ROWS_MAX);
        if (wm_array_reserve(&table->rows, table->count, &room, sizeof(*table->rows)) < 0)
            return wm_fail_memory(err, cells->path);
        status = read_row(cells, columns, places, &table->rows[table->count], err);
        if (status < 0)
            return status;
        table->count += (size_t)status;
    }
    return more;
}

static bool has_two_caps(const struct wm_cap_table *table)
{
    for (size_t i = 1; i < table->count; i++)
        if (table->rows[i].cap != table->rows[0].cap)
            return true;
    return false;
}

int wm_cap_table_load(const char *path, struct wm_cap_table *ret_table,
                      struct wm_error *err)
{
    struct wm_cap_table table = { 0 };
    struct wm_cells cells = { 0 };
    int status = wm_cells_open(&cells, path, err);

    if (status == WM_OK)
        status = read_rows(&cells, &table, err);
    if (status == WM_OK && !has_two_caps(&table))
        status = wm_fail(err, WM_EFORMAT, "%s: needs rows of two caps or more",
                         wm_text_path(path));
    wm_cells_close(&cells);
    if (status < 0)
        wm_cap_table_release(&table);
    else
        *ret_table = table;
    return status;
}

void wm_cap_table_release(struct wm_cap_table *table)
{
    free(table->rows);
    *table = (struct wm_cap_table) { 0 };
}

/* The rows of one cap, or with 0 all. */
static int add_rows(struct wm_cap_search *search, const struct wm_cap_table *table,
                    double cap, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 0; i < table->count && status == WM_OK; i++) {
        const struct wm_cap_row *row = &table->rows[i];
        if (cap == 0 || row->cap == cap)
            status = wm_cap_search_add(search, row->cap, row->seconds, row->joules, err);
    }
    return status;
}

/* The plan with the limits of the table. */
static int plan_of(const struct wm_cap_plan *plan, const struct wm_cap_table *table,
                   struct wm_cap_plan *ret_plan, struct wm_error *err)
{
    struct wm_cap_plan own;

    int status = wm_options_read(plan, &own, sizeof(own), err);
    if (status < 0)
        return status;
    own.minimum = own.maximum = table->count > 0 ? table->rows[0].cap : 0;
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].cap < own.minimum)
            own.minimum = table->rows[i].cap;
        if (table->rows[i].cap > own.maximum)
            own.maximum = table->rows[i].cap;
    }
    own.is_clock = table->is_clock;
    for (size_t i = 0; i < table->count && own.is_clock && own.time_watts == 0; i++)
        if (table->rows[i].cap == own.maximum)
            own.time_watts = table->rows[i].joules / table->rows[i].seconds;
    own.caps = NULL;
    own.cap_count = 0;
    own.windows = 1;
    *ret_plan = own;
    return WM_OK;
}

/* Each cap of the table once. */
static double *list_caps(const struct wm_cap_table *table, size_t *ret_count)
{
    double *caps = calloc(table->count, sizeof(*caps));
    size_t count = 0;

    for (size_t i = 0; caps && i < table->count; i++) {
        size_t at = 0;
        while (at < count && caps[at] != table->rows[i].cap)
            at++;
        if (at == count)
            caps[count++] = table->rows[i].cap;
    }
    *ret_count = count;
    return caps;
}

int wm_cap_search_replay(const struct wm_cap_plan *plan, const struct wm_cap_table *table,
                         struct wm_cap_search **ret_search, struct wm_error *err)
{
    struct wm_cap_plan own;
    struct wm_cap_search *search = NULL;
    double cap, *caps = NULL;

    int status = plan_of(plan, table, &own, err);
    if (status < 0)
        return status;
    if (table->count > 0) {
        caps = list_caps(table, &own.cap_count);
        if (!caps)
            return wm_fail_memory(err, NULL);
        own.caps = caps;
    }
    own.probes = own.probes > 0 ? own.probes : WM_CAP_PROBES;
    status = wm_cap_search_new(&own, &search, err);
    free(caps);
    while (status == WM_OK && wm_cap_search_next(search, &cap) > 0)
        status = add_rows(search, table, cap, err);
    if (status < 0)
        wm_cap_search_free(search);
    else
        *ret_search = search;
    return status;
}

int wm_cap_search_fit(const struct wm_cap_plan *plan, const struct wm_cap_table *table,
                      struct wm_cap_search **ret_search, struct wm_error *err)
{
    struct wm_cap_plan own;
    struct wm_cap_search *search = NULL;
    int status = plan_of(plan, table, &own, err);

    if (status == WM_OK)
        status = wm_cap_search_new(&own, &search, err);
    if (status == WM_OK)
        status = add_rows(search, table, 0, err);
    if (status < 0)
        wm_cap_search_free(search);
    else
        *ret_search = search;
    return status;
}
