/* SPDX-License-Identifier: Apache-2.0 */
/* base_cells.c - a CSV file, row by row. */
#include "base/text/base_cells.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"

enum {
    BUFFER_MIN = 128 * 1024, /* grows up to a row of the greatest length */
    SHORT_READ = 4096,       /* after a jump, when little else may be wanted from there */
};

enum place { AT_START, IN_PLAIN, IN_QUOTES, AFTER_QUOTE };

/* How far the end of a row has been looked for, from its start. */
struct search {
    size_t length;
    size_t lines; /* that ended in quotes */
    enum place place;
};

static int out_of_memory(const struct wm_cells *cells, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", cells->path);
}

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

/* For one more byte at least, and a NUL after it. */
static int make_room(struct wm_cells *cells, struct wm_error *err)
{
    if (cells->start > 0) {
        memmove(cells->buffer, cells->buffer + cells->start, cells->end - cells->start);
        cells->end -= cells->start;
        cells->start = 0;
    }
    if (cells->end + 1 < cells->room)
        return WM_OK;

    size_t room = cells->room > 0 ? 2 * cells->room : BUFFER_MIN;
    char *grown = realloc(cells->buffer, room);
    if (!grown)
        return out_of_memory(cells, err);
    cells->buffer = grown;
    cells->room = room;
    return WM_OK;
}

/* 1, or 0 at the end of the file. */
static int read_more(struct wm_cells *cells, struct wm_error *err)
{
    ssize_t got;

    if (cells->is_at_end)
        return 0;
    int status = make_room(cells, err);
    if (status < 0)
        return status;
    size_t room = cells->room - cells->end - 1;
    if (cells->is_short_read && room > SHORT_READ)
        room = SHORT_READ;
    cells->is_short_read = false;
    do
        got = pread(cells->fd, cells->buffer + cells->end, room, (off_t)cells->offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return wm_fail_errno(err, cells->path);
    cells->end += (size_t)got;
    cells->offset += (uint64_t)got;
    cells->is_at_end = got == 0;
    return got > 0;
}

/* A byte order mark is no part of the first name. */
static int skip_mark(struct wm_cells *cells, struct wm_error *err)
{
    enum { MARK_SIZE = 3 };
    int status = 1;

    while (status > 0 && cells->end < MARK_SIZE)
        status = read_more(cells, err);
    if (status < 0)
        return status;
    cells->start = wm_text_mark(cells->buffer, cells->end);
    return WM_OK;
}

int wm_cells_open(struct wm_cells *cells, const char *path, struct wm_error *err)
{
    *cells = (struct wm_cells) { .path = wm_text_path(path) };
    cells->fd = wm_file_open_at(AT_FDCWD, path);
    if (cells->fd < 0) {
        errno = -cells->fd;
        return wm_fail_errno(err, cells->path);
    }
    cells->is_open = true;
    return skip_mark(cells, err);
}

void wm_cells_close(struct wm_cells *cells)
{
    if (cells->is_open)
        close(cells->fd);
    free(cells->buffer);
    *cells = (struct wm_cells) { 0 };
}

uint64_t wm_cells_offset(const struct wm_cells *cells)
{
    return cells->offset - (cells->end - cells->start);
}

int wm_cells_seek(struct wm_cells *cells, uint64_t offset, size_t line,
                  struct wm_error *err)
{
    uint64_t from = wm_cells_offset(cells);

    cells->lines = line - 1;
    cells->cursor = NULL;
    if (offset >= from && offset < cells->offset) {
        cells->start += (size_t)(offset - from);
        return WM_OK;
    }
    cells->start = 0;
    cells->end = 0;
    cells->offset = offset;
    cells->is_at_end = false;
    cells->is_short_read = true;
    int status = read_more(cells, err);
    return status < 0 ? status : WM_OK;
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

/* Looks for the end of a row with quotes in it in text[0..length). */
static bool find_end(struct search *search, const char *text, size_t length)
{
    for (; search->length < length; search->length++) {
        char c = text[search->length];
        if (c == '\n' && search->place != IN_QUOTES)
            return true;
        search->lines += c == '\n';
        search->place = step(search->place, c);
    }
    return false;
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

/* The length of the row at `start` without its '\n': 1, or 0 where the file ends first. */
static int find_row(struct wm_cells *cells, size_t *ret_length, struct wm_error *err)
{
    struct search search = { 0 };
    size_t searched = 0;
    bool has_quotes = false;

    for (;;) {
        char *start = cells->buffer + cells->start;
        size_t there = cells->end - cells->start;
        char *end = NULL;
        if (!has_quotes) {
            end = memchr(start + searched, '\n', there - searched);
            size_t length = end ? (size_t)(end - start) : there;
            has_quotes = memchr(start + searched, '"', length - searched) != NULL;
            searched = length;
        }
        if (has_quotes)
            end = find_end(&search, start, there) ? start + search.length : NULL;
        *ret_length = end ? (size_t)(end - start) : there;
        if (*ret_length > WM_CELLS_ROW_MAX)
            return wm_cells_wrong(cells, err, "a row longer than 1 MiB");
        if (end) {
            cells->lines += 1 + search.lines;
            return 1;
        }
        int status = read_more(cells, err);
        if (status < 0)
            return status;
        if (status == 0 && search.place == IN_QUOTES && swallows_rows(cells, start, there))
            return wm_cells_wrong(cells, err, "a quote that is not closed");
        if (status == 0)
            return 0;
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
    size_t length = 0;
    bool has_lf, has_cr;
    char *row;

    do {
        cells->cursor = NULL;
        cells->ending = WM_CELLS_ENDED;
        cells->line = cells->lines + 1;
        int status = find_row(cells, &length, err);
        if (status < 0 || (status == 0 && length == 0))
            return status;
        has_lf = status > 0;
        row = cells->buffer + cells->start;
        cells->row_offset = wm_cells_offset(cells);
        cells->start += length + has_lf;
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
        while (from < end && *from != ',')
            from++;
        to = from;
    }
    cells->cursor = from < end ? from + 1 : NULL;
    *to = '\0';
    ret_cell->length = (size_t)(to - ret_cell->text);
    return true;
}

int wm_cells_header(struct wm_cells *cells, const char *const *names, size_t count,
                    size_t needed, const char *what, size_t *ret_places,
                    struct wm_error *err)
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
    for (size_t i = 0; i < needed; i++) {
        if (ret_places[i] == SIZE_MAX)
            return wm_cells_wrong(cells, err, "not the header of %s: without '%s'", what,
                                  names[i]);
    }
    cells->commas = columns - 1;
    return (int)columns;
}
