/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_keys.c - what keys and the mouse do. They are htop's where htop has them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

/* Digits beyond TYPED_MOST are ignored. The filter's text has FILTER_LEAST columns or more.
 */
enum { SIGNAL_MOST = 64, TYPED_MOST = 999, FILTER_LEAST = 8 };

struct wm_watch_series *wm_watch_entry(const struct wm_watch_view *view, size_t index)
{
    const char *panel = wm_watch_panel(&view->data, view->panel);
    struct wm_watch_series *series = NULL;
    size_t at = 0;

    while (panel && (series = wm_watch_next(&view->data, panel, &at)) && index > 0)
        index--;
    return series;
}

/* What was chosen in a held picture may have ended since. */
static void hold(struct wm_watch_view *view)
{
    view->is_paused = !view->is_paused;
    view->processes.chosen = 0;
}

/* The chosen device stays, if the panel has it. */
static void next_panel(struct wm_watch_view *view)
{
    const struct wm_watch_series *chosen = wm_watch_entry(view, view->selected), *series;

    if (!wm_watch_panel(&view->data, 1))
        snprintf(view->message, sizeof(view->message), "there is no other panel");
    view->panel = wm_watch_panel(&view->data, view->panel + 1) ? view->panel + 1 : 0;
    view->selected = 0;
    for (size_t i = 0; chosen && (series = wm_watch_entry(view, i)); i++) {
        if (strcmp(series->label, chosen->label) == 0)
            view->selected = i;
    }
}

static void zoom(struct wm_watch_view *view, int64_t window_ns)
{
    if (window_ns <= WM_WATCH_KEPT * view->data.window_ns &&
        window_ns >= view->data.window_ns / WM_WATCH_KEPT)
        view->window_ns = window_ns;
    else
        snprintf(view->message, sizeof(view->message),
                 "the window is a quarter to four times %g s (--window)",
                 (double)view->data.window_ns / 1e9);
}

static void zoom_in(struct wm_watch_view *view)
{
    zoom(view, view->window_ns / 2);
}

static void zoom_out(struct wm_watch_view *view)
{
    zoom(view, view->window_ns * 2);
}

static void fit(struct wm_watch_view *view)
{
    const struct wm_watch_series *series = wm_watch_entry(view, 0);
    const char *unit = series ? series->feed.unit : "";

    view->fits = !view->fits;
    if (wm_chart_panel_axis(1, 2, unit, true).low ==
        wm_chart_panel_axis(1, 2, unit, false).low)
        snprintf(view->message, sizeof(view->message),
                 "the axis of this panel always fits its values");
}

static void hide(struct wm_watch_view *view)
{
    struct wm_watch_series *series = wm_watch_entry(view, view->selected);

    if (series)
        series->is_hidden = !series->is_hidden;
}

static void show_all(struct wm_watch_view *view)
{
    for (size_t i = 0; i < view->data.count; i++)
        view->data.series[i].is_hidden = false;
}

static void hide_charts(struct wm_watch_view *view)
{
    view->hides_charts = !view->hides_charts;
}

static void help(struct wm_watch_view *view)
{
    view->has_help = !view->has_help;
}

static void sort_next(struct wm_watch_view *view)
{
    wm_watch_processes_sort(&view->processes,
                            (view->processes.order + 1) % WM_WATCH_ORDERS);
}

static void invert(struct wm_watch_view *view)
{
    view->processes.is_inverted = !view->processes.is_inverted;
    wm_watch_processes_arrange(&view->processes);
}

static void tree(struct wm_watch_view *view)
{
    view->processes.is_tree = !view->processes.is_tree;
    wm_watch_processes_arrange(&view->processes);
}

static void ask_filter(struct wm_watch_view *view)
{
    view->question = WM_WATCH_FILTER;
}

static void ask_signal(struct wm_watch_view *view)
{
    const char *lack = view->is_paused ? "the picture is held: go on with space first"
                       : wm_watch_processes_chosen(&view->processes)
                           ? NULL
                           : "choose a process first: \u2191 \u2193 or a click";

    snprintf(view->message, sizeof(view->message), "%s", lack ? lack : "");
    if (lack)
        return;
    view->question = WM_WATCH_SIGNAL;
    view->typed_signal = 0;
}

/* By character, or by number of a function key, as htop has them. Without a function the
 * processes are sorted by that. */
static const struct binding {
    const char *characters;
    int function;
    void (*act)(struct wm_watch_view *view);
    enum wm_watch_order order;
} bindings[] = {
    { "h?", 1, help, 0 },
    { "/\\", 4, ask_filter, 0 },
    { "t", 5, tree, 0 },
    { "s>", 6, sort_next, 0 },
    { "k", 9, ask_signal, 0 },
    { "W", 0, NULL, WM_WATCH_BY_POWER },
    { "P", 0, NULL, WM_WATCH_BY_CPU },
    { "M", 0, NULL, WM_WATCH_BY_MEMORY },
    { "T", 0, NULL, WM_WATCH_BY_TIME },
    { "N", 0, NULL, WM_WATCH_BY_PID },
    { "I", 0, invert, 0 },
    { " pZ", 0, hold, 0 },
    { "\tm", 0, next_panel, 0 },
    { "+=", 0, zoom_in, 0 },
    { "-", 0, zoom_out, 0 },
    { "z", 0, fit, 0 },
    { "x", 0, hide, 0 },
    { "a", 0, show_all, 0 },
    { "c", 0, hide_charts, 0 },
};

static const struct wm_watch_help_entry help_entries[] = {
    { "q F10", "end the view; a process that was there goes on" },
    { "h F1", "help; Esc leaves help, questions, filter, tree, the chosen process" },
    { "tab", "the next panel of:" },
    { "+ -", "a shorter or a longer window" },
    { "space", "hold the picture; samples go on" },
    { "z", "fit the axis of power, use and memory to the values, or begin it at 0" },
    { "← → x a", "choose a line in the legend; x hides or shows it, a shows all" },
    { "c", "hide the charts, or show them" },
    { "↑ ↓", "choose a process, also PgUp, PgDn, Home, End, click and wheel" },
    { "/ F4", "filter by command" },
    { "t F5", "tree" },
    { "s F6", "sort by the next column; W P M T N by power, CPU, memory, time, PID" },
    { "I", "sort the other way round" },
    { "k F9", "send a signal to the chosen process" },
    { "", "more than four GPUs: their mean, between the least and the greatest" },
    { "", "CPU: % of a core; GPU: % of a GPU, over all GPUs that a process is on" },
    { "", "est: estimated; sim: simulated; n/a: wattmeter doctor says why" },
};

const struct wm_watch_help_entry *wm_watch_help(size_t entry)
{
    return entry < sizeof(help_entries) / sizeof(help_entries[0]) ? &help_entries[entry]
                                                                  : NULL;
}

/* SIGTERM unless digits name another. */
static int signal_of(const struct wm_watch_view *view)
{
    return view->typed_signal > 0 ? view->typed_signal : SIGTERM;
}

static void print_signal_question(const struct wm_watch_view *view,
                                  const struct wm_watch_process *chosen, char *text,
                                  size_t size)
{
    char name[32];

    wm_line_signal(name, sizeof(name), signal_of(view));
    if (signal_of(view) > SIGNAL_MOST)
        snprintf(text, size, "There is no signal %d.  Backspace: another one  Esc: no",
                 signal_of(view));
    else
        snprintf(text, size,
                 "Send %s to %d (%.24s)?  Enter: yes  Esc: no  0-9: another one", name,
                 (int)chosen->process.pid, chosen->process.name);
}

/* The end of the filter's text, in as many columns as the counts and keys leave. */
static void print_filter_question(const struct wm_watch_view *view, int columns, char *text,
                                  size_t size)
{
    const struct wm_watch_processes *processes = &view->processes;
    const char *end = processes->filter;
    char keys[96];

    snprintf(keys, sizeof(keys), "_  %zu of %zu  Esc: remove  Enter: keep",
             processes->row_count, processes->count);
    int room = columns - wm_view_width("Filter: ") - wm_view_width(keys);
    room = room > FILTER_LEAST ? room : FILTER_LEAST;
    while (*end && wm_view_width(end) > room)
        do
            end++;
        while ((*end & 0xc0) == 0x80); /* within a character */
    snprintf(text, size, "Filter: %s%s", end, keys);
}

static void print_keys(int columns, char *text, size_t size)
{
    static const char *const keys[] = { "h help",  "q quit",    "tab panel",
                                        "+- zoom", "↑↓ choose", "/ filter",
                                        "t tree",  "k kill",    "s sort" };
    int left = columns;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *gap = i > 0 ? "  " : "";
        left -= wm_view_width(gap) + wm_view_width(keys[i]);
        if (left < 0)
            return;
        snprintf(text + strlen(text), size - strlen(text), "%s%s", gap, keys[i]);
    }
}

void wm_watch_last_row(const struct wm_watch_view *view, int columns, char *text,
                       size_t size)
{
    const struct wm_watch_process *chosen = wm_watch_processes_chosen(&view->processes);

    if (view->question == WM_WATCH_SIGNAL && chosen) {
        print_signal_question(view, chosen, text, size);
    } else if (view->question == WM_WATCH_FILTER) {
        print_filter_question(view, columns, text, size);
    } else if (view->message[0]) {
        snprintf(text, size, "%s", view->message);
    } else {
        print_keys(columns, text, size);
    }
}

/* Only to the process that was chosen: once it has ended there is no question any more. */
static void send_signal(struct wm_watch_view *view)
{
    const struct wm_watch_process *chosen = wm_watch_processes_chosen(&view->processes);
    char name[32];

    view->question = WM_WATCH_NO_QUESTION;
    if (!chosen)
        return;
    wm_line_signal(name, sizeof(name), signal_of(view));
    bool is_sent = kill(chosen->process.pid, signal_of(view)) == 0;
    snprintf(view->message, sizeof(view->message),
             is_sent ? "%s sent to %d" : "cannot send %s to %d: %s", name,
             (int)chosen->process.pid, is_sent ? "" : strerror(errno));
}

/* A number that is no signal is not sent, and does not become another one. */
static void answer_signal(struct wm_watch_view *view, const struct wm_watch_input *input)
{
    int digit = input->key == WM_WATCH_TEXT ? input->text[0] - '0' : -1;

    if (input->key == WM_WATCH_ENTER ||
        (input->key == WM_WATCH_TEXT && strchr("yY", input->text[0]))) {
        if (signal_of(view) <= SIGNAL_MOST)
            send_signal(view);
    } else if (input->key == WM_WATCH_ERASE) {
        view->typed_signal /= 10;
    } else if (input->key == WM_WATCH_TEXT && strchr("nN", input->text[0])) {
        view->question = WM_WATCH_NO_QUESTION;
    } else if (digit >= 0 && digit <= 9) {
        int number = 10 * view->typed_signal + digit;
        view->typed_signal = number <= TYPED_MOST ? number : view->typed_signal;
    }
}

static void answer_filter(struct wm_watch_view *view, const struct wm_watch_input *input)
{
    char *filter = view->processes.filter;
    size_t length = strlen(filter);

    if (input->key == WM_WATCH_ENTER) {
        view->question = WM_WATCH_NO_QUESTION;
    } else if (input->key == WM_WATCH_ERASE && length > 0) {
        while (length > 0 && (filter[--length] & 0xc0) == 0x80) /* within a character */
            ;
        filter[length] = '\0';
    } else if (input->key == WM_WATCH_TEXT && (unsigned char)input->text[0] >= ' ' &&
               length + strlen(input->text) < WM_WATCH_FILTER_SIZE) {
        strncat(filter, input->text, WM_WATCH_FILTER_SIZE - length - 1);
    }
    wm_watch_processes_arrange(&view->processes);
}

/* What was entered last. */
static void leave(struct wm_watch_view *view)
{
    struct wm_watch_processes *processes = &view->processes;

    if (view->has_help) {
        view->has_help = false;
    } else if (view->question == WM_WATCH_SIGNAL) {
        view->question = WM_WATCH_NO_QUESTION;
    } else if (view->question == WM_WATCH_FILTER || processes->filter[0]) {
        view->question = WM_WATCH_NO_QUESTION;
        processes->filter[0] = '\0';
    } else if (processes->is_tree) {
        processes->is_tree = false;
    } else {
        processes->chosen = 0;
    }
    wm_watch_processes_arrange(processes);
}

static void act(struct wm_watch_view *view, const struct wm_watch_input *input)
{
    for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++) {
        const struct binding *binding = &bindings[i];
        bool is_it =
            input->key == WM_WATCH_FUNCTION
                ? binding->function == input->number
                : input->text[1] == '\0' && strchr(binding->characters, input->text[0]);
        if (is_it && binding->act)
            binding->act(view);
        else if (is_it)
            wm_watch_processes_sort(&view->processes, binding->order);
    }
}

static void choose(struct wm_watch_view *view, enum wm_watch_key key)
{
    struct wm_watch_processes *processes = &view->processes;
    long page = view->table.rows > 2 ? view->table.rows - 2 : 1;
    long all = (long)processes->row_count;

    switch (key) {
    case WM_WATCH_UP:
        wm_watch_processes_move(processes, -1);
        break;
    case WM_WATCH_DOWN:
        wm_watch_processes_move(processes, 1);
        break;
    case WM_WATCH_PAGE_UP:
        wm_watch_processes_move(processes, -page);
        break;
    case WM_WATCH_PAGE_DOWN:
        wm_watch_processes_move(processes, page);
        break;
    case WM_WATCH_HOME:
        wm_watch_processes_move(processes, -all);
        break;
    case WM_WATCH_END:
        wm_watch_processes_move(processes, all);
        break;
    case WM_WATCH_LEFT:
        view->selected -= view->selected > 0;
        break;
    case WM_WATCH_RIGHT:
        view->selected += wm_watch_entry(view, view->selected + 1) != NULL;
        break;
    default:
        break;
    }
}

bool wm_watch_obey(struct wm_watch_view *view, const struct wm_watch_input *input)
{
    bool is_quit = input->key == WM_WATCH_TEXT && strchr("qQ", input->text[0]) != NULL;

    view->message[0] = '\0';
    bool has_ended =
        view->question == WM_WATCH_SIGNAL && !wm_watch_processes_chosen(&view->processes);
    if (has_ended)
        view->question = WM_WATCH_NO_QUESTION;
    if (has_ended && input->key == WM_WATCH_ENTER)
        snprintf(view->message, sizeof(view->message), "the process has ended");
    else if (input->key == WM_WATCH_ESCAPE)
        leave(view);
    else if (view->question == WM_WATCH_FILTER)
        answer_filter(view, input);
    else if (view->question == WM_WATCH_SIGNAL)
        answer_signal(view, input);
    else if (is_quit || (input->key == WM_WATCH_FUNCTION && input->number == 10))
        return false;
    else if (input->key == WM_WATCH_TEXT || input->key == WM_WATCH_FUNCTION)
        act(view, input);
    else if (input->key == WM_WATCH_CLICK)
        wm_watch_click(view, input->row, input->column);
    else if (input->key == WM_WATCH_ENTER)
        hide(view);
    else
        choose(view, input->key);
    return true;
}
