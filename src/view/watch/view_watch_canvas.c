/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_canvas.c - lines as dots of braille. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/watch/view_watch_data.h"

/* The bit of each dot of a cell, by row and column: Unicode numbers the upper six first. */
static const uint8_t bits[4][2] = {
    { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
};

int wm_watch_canvas_init(struct wm_watch_canvas *canvas, size_t columns, size_t rows,
                         struct wm_error *err)
{
    *canvas = (struct wm_watch_canvas) { .columns = columns, .rows = rows };
    canvas->dots = calloc(columns * rows + 1, 2);
    if (!canvas->dots)
        return wm_fail_memory(err, "view");
    canvas->inks = canvas->dots + columns * rows;
    return WM_OK;
}

void wm_watch_canvas_release(struct wm_watch_canvas *canvas)
{
    free(canvas->dots);
    *canvas = (struct wm_watch_canvas) { 0 };
}

void wm_watch_canvas_clear(struct wm_watch_canvas *canvas)
{
    memset(canvas->dots, 0, canvas->columns * canvas->rows * 2);
}

/* The row of dots of a value, from the top. */
static size_t row_of(const struct wm_watch_canvas *canvas, const struct wm_axis *values,
                     double value)
{
    double rows = (double)canvas->rows * 4;
    double row = (values->high - value) / (values->high - values->low) * rows;

    return (size_t)fmin(fmax(row, 0), rows - 1);
}

/* Dots of a column between two rows, both included. */
static void fill(struct wm_watch_canvas *canvas, size_t x, size_t from, size_t to,
                 uint8_t ink)
{
    size_t top = from < to ? from : to, bottom = from < to ? to : from;

    for (size_t y = top; y <= bottom; y++) {
        size_t cell = y / 4 * canvas->columns + x / 2;
        canvas->dots[cell] |= bits[y % 4][x % 2];
        canvas->inks[cell] = ink;
    }
}

/* A straight line between the values of two columns, without the first. */
static void join(struct wm_watch_canvas *canvas, const struct wm_axis *values, size_t from,
                 double from_value, size_t to, double to_value, uint8_t ink)
{
    size_t before = row_of(canvas, values, from_value);

    for (size_t x = from + 1; x <= to; x++) {
        double part = (double)(x - from) / (double)(to - from);
        size_t y = row_of(canvas, values, from_value + (to_value - from_value) * part);
        fill(canvas, x, before < y ? before + 1 : before > y ? before - 1 : y, y, ink);
        before = y;
    }
}

void wm_watch_canvas_draw(struct wm_watch_canvas *canvas,
                          const struct wm_chart_column *line, const struct wm_axis *values,
                          uint8_t ink)
{
    size_t last = 0;
    bool has_last = false;

    for (size_t x = 0; x < canvas->columns * 2; x++) {
        const struct wm_chart_column *column = &line[x];
        if (!column->is_sampled || column->state != WM_READING_OK)
            continue;
        if (has_last && column->is_joined)
            join(canvas, values, last, line[last].last, x, column->first, ink);
        fill(canvas, x, row_of(canvas, values, column->low),
             row_of(canvas, values, column->high), ink);
        last = x;
        has_last = true;
    }
}
