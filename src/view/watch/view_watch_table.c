/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_table.c - the processes on the screen. */
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "view/text/view_text_line.h"
#include "view/watch/view_watch_draw.h"

enum {
    TEXT_MAX = 512,
    PASSWD_SIZE = 4096,
    UNSORTED = -1,
    COMMAND_LEAST = 24, /* columns for the command, for which others give way */
    NAME_LEAST = 14     /* of these for its name in the tree, however deep */
};

typedef void column_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                         struct wm_quantity *ret_text);

static void pid_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                     struct wm_quantity *ret_text)
{
    (void)view;
    snprintf(ret_text->text, sizeof(ret_text->text), "%d", (int)own->process.pid);
}

/* Names may come from a server, so that they are remembered. */
static void user_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                      struct wm_quantity *ret_text)
{
    struct passwd entry, *found = NULL;
    char text[PASSWD_SIZE];
    size_t i = 0;

    *ret_text = (struct wm_quantity) { "-" };
    if (own->process.user == (uid_t)-1) /* it ended before it was asked */
        return;
    while (i < view->user_count && view->users[i].id != own->process.user)
        i++;
    struct wm_watch_user *user = &view->users[i < WM_WATCH_USERS ? i : 0];
    if (i >= view->user_count) {
        user->id = own->process.user;
        snprintf(user->name, sizeof(user->name), "%u", (unsigned)user->id);
        if (getpwuid_r(user->id, &entry, text, sizeof(text), &found) == 0 && found)
            snprintf(user->name, sizeof(user->name), "%s", entry.pw_name);
        view->user_count += view->user_count < WM_WATCH_USERS;
    }
    snprintf(ret_text->text, sizeof(ret_text->text), "%s", user->name);
}

static void state_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                       struct wm_quantity *ret_text)
{
    (void)view;
    snprintf(ret_text->text, sizeof(ret_text->text), "%c", own->process.state);
}

/* A dash is not known yet, or not at all. */
static void put_value(double value, const char *unit, struct wm_quantity *ret_text)
{
    *ret_text = isnan(value) ? (struct wm_quantity) { "-" } : wm_watch_text(value, unit);
}

/* In tenths below 10 %: a process that did nearly nothing has 0.0 %, not 0.0027 %, which
 * would not fit. */
static void put_percent(double ratio, struct wm_quantity *ret_text)
{
    put_value(NAN, "", ret_text);
    if (!isnan(ratio))
        snprintf(ret_text->text, sizeof(ret_text->text), "%.40s %%",
                 wm_view_fixed(100 * ratio, ratio < 0.0995 ? 1 : 0).text);
}

static void power_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                       struct wm_quantity *ret_text)
{
    (void)view;
    put_value(own->process.power_w, "W", ret_text);
}

static void energy_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                        struct wm_quantity *ret_text)
{
    (void)view;
    put_value(own->process.energy_j, "J", ret_text);
}

static void cpu_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                     struct wm_quantity *ret_text)
{
    (void)view;
    put_percent(own->cores, ret_text);
}

static void gpu_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                     struct wm_quantity *ret_text)
{
    (void)view;
    if (own->process.gpus > 0)
        put_percent(own->process.gpu_use, ret_text);
}

static void gpu_memory_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                            struct wm_quantity *ret_text)
{
    (void)view;
    if (own->process.gpus > 0)
        put_value(own->process.gpu_memory_bytes, "B", ret_text);
}

static void memory_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                        struct wm_quantity *ret_text)
{
    (void)view;
    put_value(own->process.memory_bytes > 0 ? own->process.memory_bytes : NAN, "B",
              ret_text);
}

static void time_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                      struct wm_quantity *ret_text)
{
    (void)view;
    *ret_text = wm_view_duration(own->process.cpu_s, NULL);
}

static void threads_text(struct wm_watch_view *view, const struct wm_watch_process *own,
                         struct wm_quantity *ret_text)
{
    (void)view;
    snprintf(ret_text->text, sizeof(ret_text->text), "%d", own->process.threads);
}

enum { STAYS = 10 };

/* The command follows, in what they leave. */
static const struct column {
    const char *heading;
    int width; /* below 0: at the left of its place */
    int order; /* UNSORTED, or what it is sorted by */
    column_text *text;
    bool is_of_gpus; /* not there where the machine has none */
    int way;         /* the lowest give way first; STAYS: never */
} columns[] = {
    { "PID", 7, WM_WATCH_BY_PID, pid_text, false, STAYS },
    { "user", -8, UNSORTED, user_text, false, 4 },
    { "S", 1, UNSORTED, state_text, false, 8 },
    { "power", 8, WM_WATCH_BY_POWER, power_text, false, STAYS },
    { "energy", 8, WM_WATCH_BY_ENERGY, energy_text, false, 9 },
    { "CPU", 6, WM_WATCH_BY_CPU, cpu_text, false, STAYS },
    { "GPU", 6, WM_WATCH_BY_GPU, gpu_text, true, 7 },
    { "GPUmem", 8, WM_WATCH_BY_GPU_MEMORY, gpu_memory_text, true, 5 },
    { "memory", 8, WM_WATCH_BY_MEMORY, memory_text, false, 6 },
    { "CPU time", 10, WM_WATCH_BY_TIME, time_text, false, 3 },
    { "threads", 7, UNSORTED, threads_text, false, 2 },
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), EMPTY = 1 };

static int width_of(const struct column *column)
{
    return column->width < 0 ? -column->width : column->width;
}

/* Columns of GPUs are empty while no process is on one, and are the first to give way. What
 * the table is sorted by stays. */
static int way_of(const struct wm_watch_view *view, const struct column *column,
                  bool has_gpus)
{
    if ((int)view->processes.order == column->order)
        return STAYS;
    return column->is_of_gpus && !has_gpus ? EMPTY : column->way;
}

/* Which columns leave enough room for the command; a bit for each. */
static unsigned shown_columns(const struct wm_watch_view *view, int width)
{
    const struct wm_watch_processes *processes = &view->processes;
    int room = width - COMMAND_LEAST - 1, ways[COLUMNS];
    bool has_gpus = false;
    unsigned shown = 0;

    for (size_t i = 0; i < processes->count && !has_gpus; i++)
        has_gpus = processes->all[i].process.gpus > 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        ways[i] = way_of(view, &columns[i], has_gpus);
        if (columns[i].is_of_gpus && view->data.gpu_count == 0)
            continue;
        shown |= 1U << i;
        room -= width_of(&columns[i]) + 1;
    }
    for (int way = EMPTY; way < STAYS; way++) {
        for (size_t i = 0; i < COLUMNS && room < 0; i++) {
            if (ways[i] != way || !(shown & 1U << i))
                continue;
            shown &= ~(1U << i);
            room += width_of(&columns[i]) + 1;
        }
    }
    return shown;
}

/* A text of a column in its place, at the end of a line. */
static void add(char *line, size_t size, const struct column *column, const char *text)
{
    size_t length = strlen(line);
    int width = width_of(column), blanks = width - wm_view_width(text);

    blanks = blanks > 0 ? blanks : 0;
    snprintf(line + length, size - length, "%*s%s%*s ", column->width < 0 ? 0 : blanks, "",
             text, column->width < 0 ? blanks : 0, "");
}

static void draw_heading(const struct wm_watch_screen *screen,
                         const struct wm_watch_view *view, unsigned shown, int row,
                         int width)
{
    const struct wm_watch_processes *processes = &view->processes;
    /* PIDs begin with the lowest, all others with the highest. */
    bool is_rising = (processes->order == WM_WATCH_BY_PID) != processes->is_inverted;
    char line[TEXT_MAX] = "", text[TEXT_MAX];

    for (size_t i = 0; i < COLUMNS; i++) {
        bool is_order = (int)processes->order == columns[i].order;
        if (!(shown & 1U << i))
            continue;
        snprintf(text, sizeof(text), "%s%s", columns[i].heading,
                 !is_order   ? ""
                 : is_rising ? "▲"
                             : "▼");
        add(line, sizeof(line), &columns[i], text);
    }
    strncat(line, " command", sizeof(line) - strlen(line) - 1);
    wm_watch_screen_style(screen, WM_WATCH_BOLD, 0);
    wm_watch_screen_put(row, 0, width, line);
    if (processes->filter[0])
        snprintf(text, sizeof(text), "%zu of %zu: %s", processes->row_count,
                 processes->count, processes->filter);
    else
        snprintf(text, sizeof(text), "%zu process%s", processes->count,
                 processes->count == 1 ? "" : "es");
    int room = width - wm_view_width(line) - 2;
    if (wm_view_width(text) > room)
        text[strcspn(text, ":")] = '\0'; /* the filter's own text */
    int right = wm_view_width(text);
    if (right <= room)
        wm_watch_screen_put(row, width - right, right, text);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
}

/* Without the folder of the program, which hides the rest of the line. */
static const char *command_of(const struct wm_tracker_process *process)
{
    const char *text = process->command, *name = text;

    for (const char *at = text; *at && *at != ' '; at++)
        name = *at == '/' ? at + 1 : name;
    return text[0] == '/' && *name && *name != ' ' ? name : text[0] ? text : process->name;
}

static void draw_process(const struct wm_watch_screen *screen, struct wm_watch_view *view,
                         const struct wm_watch_process *own, unsigned shown, int row,
                         int width)
{
    const struct wm_tracker_process *process = &own->process;
    bool is_chosen = process->pid == view->processes.chosen;
    char line[TEXT_MAX] = "";
    int taken;

    for (size_t i = 0; i < COLUMNS; i++) {
        struct wm_quantity text = { "" };
        if (!(shown & 1U << i))
            continue;
        columns[i].text(view, own, &text);
        if (columns[i].width < 0)
            text.text[wm_view_fit(text.text, -columns[i].width, &taken)] = '\0';
        add(line, sizeof(line), &columns[i], text.text);
    }
    size_t length = strlen(line);
    int deepest = width - wm_view_width(line) - NAME_LEAST;
    int depth = 2 * own->depth < deepest ? 2 * own->depth : deepest;
    snprintf(line + length, sizeof(line) - length, "%*s%s%s", depth > 0 ? depth + 1 : 1, "",
             own->depth > 0 ? "└ " : "", command_of(process));
    wm_watch_screen_style(screen, is_chosen ? WM_WATCH_REVERSE : WM_WATCH_PLAIN, 0);
    wm_watch_screen_put(row, 0, width, line);
    wm_watch_screen_style(screen, WM_WATCH_PLAIN, 0);
}

void wm_watch_draw_processes(const struct wm_watch_screen *screen,
                             struct wm_watch_view *view, int top, int rows)
{
    struct wm_watch_processes *processes = &view->processes;
    int lines, width;

    wm_watch_screen_size(&lines, &width);
    view->table = (struct wm_watch_place) { top, 0, rows, width };
    if (rows < 2)
        return;
    wm_watch_processes_scroll(processes, (size_t)rows - 1);
    unsigned shown = shown_columns(view, width);
    draw_heading(screen, view, shown, top, width);
    for (size_t i = 0; i + 1 < (size_t)rows && processes->top + i < processes->row_count;
         i++)
        draw_process(screen, view, &processes->all[processes->rows[processes->top + i]],
                     shown, top + 1 + (int)i, width);
}

bool wm_watch_click(struct wm_watch_view *view, int row, int column)
{
    struct wm_watch_processes *processes = &view->processes;
    unsigned shown = shown_columns(view, view->table.columns);
    int below = row - view->table.row - 1, at = 0;

    if (view->table.rows < 2 || below < -1 || below + 1 >= view->table.rows)
        return false;
    if (below >= 0) {
        size_t place = processes->top + (size_t)below;
        if (place < processes->row_count)
            processes->chosen = processes->all[processes->rows[place]].process.pid;
        return true;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!(shown & 1U << i))
            continue;
        at += width_of(&columns[i]) + 1;
        if (column >= at)
            continue;
        if (columns[i].order != UNSORTED)
            wm_watch_processes_sort(processes, (enum wm_watch_order)columns[i].order);
        break;
    }
    return true;
}
