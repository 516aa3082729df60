/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_watch_screen.c - the terminal by ncurses, which sends the cells that have changed
 * alone.
 *
 * A chart that moves would change nearly all of its cells. Where it moves by whole cells,
 * the terminal is told to delete so many at the left of each row, and what ncurses believes
 * of the screen is moved with it; so what comes in at the right is sent alone.
 */
#include "view/watch/view_watch_screen.h"

/* The wide functions of ncurses are hidden otherwise. */
#define NCURSES_WIDECHAR 1

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "view/text/view_text_line.h"
#include "view/watch/view_watch_colour.h"

enum { TEXT_MAX = 512, SHIFTS_MAX = 4 };

struct wm_watch_screen {
    FILE *in, *out;
    SCREEN *screen;
    bool has_colour;
    bool can_shift;
    struct shift {
        int row, rows, column, end, cells;
    } shifts[SHIFTS_MAX]; /* that are due */
    size_t shift_count;
};

static int use_utf8(struct wm_error *err)
{
    if (setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
        return WM_OK;
    if (setlocale(LC_CTYPE, "C.UTF-8"))
        return WM_OK;
    return wm_fail(err, WM_EINVAL, "the locale is not UTF-8, as the chart needs");
}

int wm_watch_screen_check(int terminal, struct wm_error *err)
{
    const char *type = wm_env("TERM", NULL);
    int found = 0;

    if (!type || setupterm(type, terminal, &found) != OK)
        return wm_fail(err, WM_ENODEV, "the terminal '%.40s' is not known (TERM)",
                       type ? type : "");
    bool can_place = cursor_address && clear_screen;
    del_curterm(cur_term);
    if (!can_place)
        return wm_fail(err, WM_ENODEV, "the terminal '%.40s' cannot place the cursor",
                       type);
    return use_utf8(err);
}

/* The name under which terminfo has the same terminal with 24-bit colour, where it says
 * that it has that: "xterm-direct" of "xterm-256color". */
static const char *find_type(int terminal, char *name, size_t size)
{
    const char *type = wm_env("TERM", NULL), *depth = wm_env("COLORTERM", NULL);
    int found = 0;

    if (!depth || (strcmp(depth, "truecolor") != 0 && strcmp(depth, "24bit") != 0))
        return type;
    snprintf(name, size, "%.*s-direct", (int)strcspn(type, "-"), type);
    if (setupterm(name, terminal, &found) != OK)
        return type;
    del_curterm(cur_term);
    return name;
}

/* The nearest of what the terminal has. */
static int colour_of(uint32_t rgb)
{
    /* Blue is unreadable on black in most palettes. */
    static const uint8_t few[] = { COLOR_CYAN, COLOR_YELLOW, COLOR_GREEN, COLOR_MAGENTA,
                                   COLOR_RED };
    uint32_t nearest;

    if (COLORS > 256)
        return (int)rgb;
    if (COLORS < 256)
        return few[rgb % sizeof(few)];
    return wm_watch_colour_256(rgb, &nearest);
}

static bool start_colours(void)
{
    if (!has_colors() || start_color() != OK || use_default_colors() != OK)
        return false;
    for (int i = 0; i < WM_WATCH_INKS; i++)
        init_extended_pair(i + 1, colour_of(wm_watch_colour((size_t)i)), -1);
    init_extended_pair(WM_WATCH_FAINT, COLORS > 8 ? colour_of(WM_WATCH_GREY) : COLOR_WHITE,
                       -1);
    return true;
}

/* Whether the terminal can do that, and at once. */
static bool is_there(const char *capability)
{
    return capability && !strstr(capability, "$<");
}

/* Ctrl-Z would stop the measuring and leave the terminal as it is now. */
static void forbid_stop_key(int terminal)
{
    struct termios settings;

    if (tcgetattr(terminal, &settings) != 0)
        return;
    settings.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(terminal, TCSANOW, &settings);
}

static FILE *open_copy(int terminal, const char *mode)
{
    int copy = dup(terminal);
    FILE *stream = copy >= 0 ? fdopen(copy, mode) : NULL;

    if (!stream && copy >= 0)
        close(copy);
    return stream;
}

void wm_watch_screen_close(struct wm_watch_screen *screen)
{
    if (!screen)
        return;
    if (screen->screen) {
        endwin();
        delscreen(screen->screen);
    }
    if (screen->in)
        fclose(screen->in);
    if (screen->out)
        fclose(screen->out);
    free(screen);
}

int wm_watch_screen_open(int terminal, bool without_colour,
                         struct wm_watch_screen **ret_screen, struct wm_error *err)
{
    struct wm_watch_screen *screen = calloc(1, sizeof(*screen));
    char name[64];

    if (!screen)
        return wm_fail_memory(err, "view");
    screen->in = open_copy(terminal, "r");
    screen->out = open_copy(terminal, "w");
    if (screen->in && screen->out)
        screen->screen =
            newterm(find_type(terminal, name, sizeof(name)), screen->out, screen->in);
    if (!screen->screen) {
        wm_watch_screen_close(screen);
        return wm_fail(err, WM_ENODEV, "the terminal cannot be used");
    }
    cbreak();
    noecho();
    nonl();
    forbid_stop_key(terminal);
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    mouseinterval(0);
    curs_set(0);
    screen->can_shift = is_there(save_cursor) && is_there(restore_cursor) &&
                        is_there(cursor_address) && is_there(parm_down_cursor) &&
                        is_there(parm_dch) && is_there(parm_ich);
    screen->has_colour = !without_colour && start_colours();
    *ret_screen = screen;
    return WM_OK;
}

/* The wheel is a few keys. */
static struct wm_watch_input mouse(void)
{
    struct wm_watch_input input = { .key = WM_WATCH_OTHER };
    MEVENT event;

    if (getmouse(&event) != OK)
        return input;
    input.row = event.y;
    input.column = event.x;
    if (event.bstate & BUTTON4_PRESSED)
        input.key = WM_WATCH_UP;
    else if (event.bstate & BUTTON5_PRESSED)
        input.key = WM_WATCH_DOWN;
    else if (event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
        input.key = WM_WATCH_CLICK;
    return input;
}

static struct wm_watch_input special(wint_t code)
{
    static const struct {
        wint_t code;
        enum wm_watch_key key;
    } keys[] = {
        { KEY_UP, WM_WATCH_UP },         { KEY_DOWN, WM_WATCH_DOWN },
        { KEY_LEFT, WM_WATCH_LEFT },     { KEY_RIGHT, WM_WATCH_RIGHT },
        { KEY_PPAGE, WM_WATCH_PAGE_UP }, { KEY_NPAGE, WM_WATCH_PAGE_DOWN },
        { KEY_HOME, WM_WATCH_HOME },     { KEY_END, WM_WATCH_END },
        { KEY_ENTER, WM_WATCH_ENTER },   { KEY_BACKSPACE, WM_WATCH_ERASE },
    };

    if (code == KEY_MOUSE)
        return mouse();
    if (code > KEY_F0 && code <= KEY_F(12))
        return (struct wm_watch_input) { .key = WM_WATCH_FUNCTION,
                                         .number = (int)(code - KEY_F0) };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].code == code)
            return (struct wm_watch_input) { .key = keys[i].key };
    }
    return (struct wm_watch_input) { .key = WM_WATCH_OTHER };
}

struct wm_watch_input wm_watch_screen_key(void)
{
    struct wm_watch_input input = { .key = WM_WATCH_TEXT };
    mbstate_t state = { 0 };
    wint_t code;

    int status = get_wch(&code);
    if (status == ERR)
        return (struct wm_watch_input) { .key = WM_WATCH_NOTHING };
    if (status == KEY_CODE_YES)
        return special(code);
    if (code == '\r' || code == '\n')
        input.key = WM_WATCH_ENTER;
    else if (code == '\033')
        input.key = WM_WATCH_ESCAPE;
    else if (code == '\b' || code == 0x7f)
        input.key = WM_WATCH_ERASE;
    else if (code == '\0' || wcrtomb(input.text, (wchar_t)code, &state) == (size_t)-1)
        input.key = WM_WATCH_OTHER;
    return input;
}

void wm_watch_screen_size(int *ret_rows, int *ret_columns)
{
    *ret_rows = LINES;
    *ret_columns = COLS;
}

void wm_watch_screen_clear(struct wm_watch_screen *screen)
{
    screen->shift_count = 0;
    erase();
}

bool wm_watch_screen_has_colour(const struct wm_watch_screen *screen)
{
    return screen->has_colour;
}

static const attr_t attributes[] = {
    [WM_WATCH_PLAIN] = A_NORMAL,
    [WM_WATCH_BOLD] = A_BOLD,
    [WM_WATCH_REVERSE] = A_REVERSE,
    [WM_WATCH_CHOSEN] = A_BOLD | A_UNDERLINE,
};

void wm_watch_screen_style(const struct wm_watch_screen *screen, enum wm_watch_style style,
                           int ink)
{
    attr_set(attributes[style], 0, screen->has_colour ? &ink : NULL);
}

/* Names are anybody's: control characters could move the cursor or worse. */
static void put(int row, int column, int width, const char *text, bool is_of_words)
{
    char clean[TEXT_MAX];
    wchar_t wide[TEXT_MAX];
    int taken;

    if (width > COLS - column)
        width = COLS - column;
    if (width <= 0 || row >= LINES)
        return;
    snprintf(clean, sizeof(clean), "%s", text);
    wm_text_clean(clean);
    clean[is_of_words ? wm_view_fit_words(clean, width)
                      : wm_view_fit(clean, width, &taken)] = '\0';
    if (mbstowcs(wide, clean, TEXT_MAX) != (size_t)-1)
        mvaddwstr(row, column, wide);
}

void wm_watch_screen_put(int row, int column, int width, const char *text)
{
    put(row, column, width, text, false);
}

void wm_watch_screen_put_words(int row, int column, int width, const char *text)
{
    put(row, column, width, text, true);
}

void wm_watch_screen_put_braille(const struct wm_watch_screen *screen, int row, int column,
                                 uint8_t dots, int ink)
{
    wchar_t text[] = { (wchar_t)(0x2800 + dots), L'\0' };
    int pair = screen->has_colour ? ink : 0;
    cchar_t cell;

    setcchar(&cell, text, A_NORMAL, 0, &pair);
    mvadd_wch(row, column, &cell);
}

void wm_watch_screen_shift(struct wm_watch_screen *screen, int row, int rows, int column,
                           int end, int cells)
{
    if (cells > 0 && screen->can_shift && screen->shift_count < SHIFTS_MAX)
        screen->shifts[screen->shift_count++] =
            (struct shift) { row, rows, column, end, cells };
}

/* Writes one capability for each row of a column, from the top. */
static void write_down(const struct wm_watch_screen *screen, const struct shift *shift,
                       int column, const char *capability)
{
    fputs(tiparm(cursor_address, shift->row, column), screen->out);
    for (int i = 0; i < shift->rows; i++) {
        if (i > 0)
            fputs(tiparm(parm_down_cursor, 1), screen->out);
        fputs(tiparm(capability, shift->cells), screen->out);
    }
}

/* Deletes cells at the left and, where something stands at the right, inserts as many
 * before it; and the same in what ncurses believes of the screen. */
static void shift_one(const struct wm_watch_screen *screen, const struct shift *shift)
{
    bool is_inserted = shift->end < COLS;
    int gap = shift->end - shift->cells;

    write_down(screen, shift, shift->column, parm_dch);
    if (is_inserted)
        write_down(screen, shift, gap, parm_ich);
    for (int row = shift->row; row < shift->row + shift->rows; row++) {
        for (int i = 0; i < shift->cells; i++)
            mvwdelch(curscr, row, shift->column);
        for (int i = 0; i < shift->cells && is_inserted; i++)
            mvwinsch(curscr, row, gap, ' ');
    }
    /* A row that is to look as it did has been moved all the same. */
    touchline(newscr, shift->row, shift->rows);
}

/* What is on the screen, and what ncurses believes of it, before the new picture is
 * compared with it. All that ncurses has to write has been written when it comes back. */
static void shift_all(const struct wm_watch_screen *screen)
{
    if (screen->shift_count == 0)
        return;
    fputs(save_cursor, screen->out);
    for (size_t i = 0; i < screen->shift_count; i++)
        shift_one(screen, &screen->shifts[i]);
    fputs(restore_cursor, screen->out);
    fflush(screen->out);
}

void wm_watch_screen_show(struct wm_watch_screen *screen)
{
    wnoutrefresh(stdscr);
    shift_all(screen);
    doupdate();
}
