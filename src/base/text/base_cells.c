/* SPDX-License-Identifier: Apache-2.0 */
/* base_cells.c - a CSV file, row by row. */
#include "base/text/base_cells.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base_text.h"

enum place { AT_START, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

int wm_cells_wrong(const struct wm_cells *cells, struct wm_error *err, const char *format,
                   ...)
{
    char what[192];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    wm_text_clean(what);
    return wm_fail(err, WM_EFORMAT, "%s:%zu: %s", cells->path, cells->line, what);
}

int wm_cells_open(struct wm_cells *cells, const char *path, struct wm_error *err)
{
    *cells = (struct wm_cells) { 0 };
    int status = wm_lines_open(&cells->file, path, WM_CELLS_ROW_MAX, err);
    cells->path = cells->file.path;
    return status;
}

void wm_cells_close(struct wm_cells *cells)
{
    wm_lines_close(&cells->file);
    *cells = (struct wm_cells) { 0 };
}

/* A quote means something only at the start of a cell, and in one that began so. */
static enum place step(enum place place, char c)
{
    if (place == IN_QUOTES)
        return c == '"' ? AFTER_QUOTE : IN_QUOTES;
    if (c == ',' || c == '\n')
        return AT_START;
    return c == '"' && place != IN_PLAIN ? IN_QUOTES : IN_PLAIN;
}

static size_t count(const char *text, size_t length, char c)
{
    size_t found = 0;

    for (size_t i = 0; i < length; i++)
        found += text[i] == c;
    return found;
}

/* Whether quotes that are closed nowhere have rows inside: lines with as many commas as
 * the header has. Otherwise the file was cut off within a name. */
static bool swallows_rows(const struct wm_cells *cells, const char *text, size_t length)
{
    const char *end = text + length;
    const char *line = memchr(text, '\n', length);

    while (line && cells->commas > 0) {
        const char *next = memchr(line + 1, '\n', (size_t)(end - line - 1));
        if (next && count(line + 1, (size_t)(next - line - 1), ',') == cells->commas)
            return true;
        line = next;
    }
    return false;
}

/* The length of the row that begins at `start` without its '\n': 1, or 0 where the file
 * ends first. An end of line in quotes is none of the row's. */
static int find_row(struct wm_cells *cells, size_t *ret_length, struct wm_error *err)
{
    struct wm_lines *file = &cells->file;
    enum place place = AT_START;
    size_t searched = 0, lines = 0;

    for (;;) {
        int status = wm_lines_find(file, searched, ret_length, err);
        const char *start = file->buffer + file->start;
        if (status < 0 || (searched == 0 && !memchr(start, '"', *ret_length)))
            return status;
        for (; searched < *ret_length; searched++)
            place = step(place, start[searched]);
        if (status > 0 && place != IN_QUOTES) {
            file->number += lines;
            return 1;
        }
        if (status == 0)
            return place == IN_QUOTES && swallows_rows(cells, start, *ret_length)
                       ? wm_cells_wrong(cells, err, "a quote that is not closed")
                       : 0;
        searched++;
        lines++;
    }
}

static enum wm_cells_end end_of(const struct wm_cells *cells, bool has_lf, bool has_cr)
{
    if (has_lf)
        return WM_CELLS_ENDED;
    return cells->has_cr_lf && !has_cr ? WM_CELLS_CUT : WM_CELLS_UNENDED;
}

int wm_cells_next(struct wm_cells *cells, struct wm_error *err)
{
    struct wm_lines *file = &cells->file;
    size_t length = 0;
    bool has_lf, has_cr;
    char *row;

    do {
        cells->cursor = NULL;
        cells->ending = WM_CELLS_ENDED;
        cells->line = ++file->number;
        int status = find_row(cells, &length, err);
        if (status < 0 || (status == 0 && length == 0))
            return status;
        has_lf = status > 0;
        row = file->buffer + file->start;
        file->start += length + has_lf;
        size_t mark = cells->line == 1 ? wm_text_mark(row, length) : 0;
        row += mark;
        length -= mark;
        has_cr = length > 0 && row[length - 1] == '\r';
        length -= has_cr;
    } while (length == 0);

    cells->ending = end_of(cells, has_lf, has_cr);
    cells->has_cr_lf = has_cr;
    if (memchr(row, '\0', length))
        return wm_cells_wrong(cells, err, "a NUL byte");
    cells->cursor = row;
    cells->row_end = row + length;
    *cells->row_end = '\0';
    return 1;
}

int wm_cells_remark(const struct wm_cells *cells, bool taken, struct wm_remarks *remarks)
{
    return wm_remarks_add(remarks, "%s:%zu: the last line %s", cells->path, cells->line,
                          taken ? "has no end: it is taken as it stands, and if it was cut "
                                  "off, its last cell is not what was written"
                                : "was cut off, and is left out");
}

bool wm_cells_take(struct wm_cells *cells, struct wm_cell *ret_cell)
{
    char *from = cells->cursor, *to = from, *end = cells->row_end;

    if (!from)
        return false;
    ret_cell->text = from;
    if (from < end && *from == '"') {
        enum place place = AT_START;
        for (; from < end && (place == IN_QUOTES || *from != ','); from++) {
            enum place before = place;
            place = step(place, *from);
            if (*from != '"' || before == AFTER_QUOTE || before == IN_PLAIN)
                *to++ = *from;
        }
    } else {
        char *comma = memchr(from, ',', (size_t)(end - from));
        from = to = comma ? comma : end;
    }
    cells->cursor = from < end ? from + 1 : NULL;
    *to = '\0';
    ret_cell->length = (size_t)(to - ret_cell->text);
    return true;
}

int wm_cells_header(struct wm_cells *cells, const char *const *names, size_t count,
                    const char *what, size_t *ret_places, struct wm_error *err)
{
    struct wm_cell cell;
    size_t columns = 0;

    for (size_t i = 0; i < count; i++)
        ret_places[i] = SIZE_MAX;
    for (; wm_cells_take(cells, &cell); columns++) {
        for (size_t i = 0; i < count; i++) {
            if (strcmp(cell.text, names[i]) != 0)
                continue;
            if (ret_places[i] != SIZE_MAX)
                return wm_cells_wrong(cells, err, "not the header of %s: '%s' twice", what,
                                      names[i]);
            ret_places[i] = columns;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (ret_places[i] == SIZE_MAX)
            return wm_cells_wrong(cells, err, "not the header of %s: without '%s'", what,
                                  names[i]);
    }
    cells->commas = columns - 1;
    return (int)columns;
}
