/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_screen.h - the terminal: its size, its keys, and what stands where; for
 * src/view/watch alone, of one thread, and one at a time. */
#ifndef WM_VIEW_WATCH_SCREEN_H
#define WM_VIEW_WATCH_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base_error.h"

struct wm_watch_screen;

/* Whether the terminal can show it, and the locale. */
int wm_watch_screen_check(int terminal, struct wm_error *err);

int wm_watch_screen_open(int terminal, bool without_colour,
                         struct wm_watch_screen **ret_screen, struct wm_error *err);

/* Gives the terminal back as it was. Accepts NULL. */
void wm_watch_screen_close(struct wm_watch_screen *screen);

void wm_watch_screen_size(int *ret_rows, int *ret_columns);

/* A picture begins empty, and is seen when it is shown. */
void wm_watch_screen_clear(struct wm_watch_screen *screen);
void wm_watch_screen_show(struct wm_watch_screen *screen);

/* Inks: 0 is the terminal's own, those of a chart's colours follow. */
enum { WM_WATCH_INKS = 16, WM_WATCH_FAINT };
enum wm_watch_style { WM_WATCH_PLAIN, WM_WATCH_BOLD, WM_WATCH_REVERSE, WM_WATCH_CHOSEN };

bool wm_watch_screen_has_colour(const struct wm_watch_screen *screen);

/* How the text looks that is put from here on. */
void wm_watch_screen_style(const struct wm_watch_screen *screen, enum wm_watch_style style,
                           int ink);

/* As much of the text as `width` columns hold, and the screen. */
void wm_watch_screen_put(int row, int column, int width, const char *text);

/* The same, but no word is cut. */
void wm_watch_screen_put_words(int row, int column, int width, const char *text);

void wm_watch_screen_put_braille(const struct wm_watch_screen *screen, int row, int column,
                                 uint8_t dots, int ink);

/* In this picture what stood in [column..end) of these rows in the last one stands so many
 * cells further left. */
void wm_watch_screen_shift(struct wm_watch_screen *screen, int row, int rows, int column,
                           int end, int cells);

/* What somebody has done. */
enum wm_watch_key {
    WM_WATCH_NOTHING,
    WM_WATCH_OTHER, /* the size has changed, or no key of ours */
    WM_WATCH_TEXT,  /* a character, which includes blank and tabulator */
    WM_WATCH_ENTER,
    WM_WATCH_ESCAPE,
    WM_WATCH_ERASE,
    WM_WATCH_UP,
    WM_WATCH_DOWN,
    WM_WATCH_LEFT,
    WM_WATCH_RIGHT,
    WM_WATCH_PAGE_UP,
    WM_WATCH_PAGE_DOWN,
    WM_WATCH_HOME,
    WM_WATCH_END,
    WM_WATCH_FUNCTION, /* F1 and so on, in `number` */
    WM_WATCH_CLICK,    /* at row and column */
};

struct wm_watch_input {
    enum wm_watch_key key;
    char text[8]; /* of a character, in UTF-8 */
    int number, row, column;
};

/* The next one, without waiting. */
struct wm_watch_input wm_watch_screen_key(void);

#endif
