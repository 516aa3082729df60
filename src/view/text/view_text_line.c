/* SPDX-License-Identifier: Apache-2.0 */
/* view_text_line.c - lines of a report, and the quantities in them. */
#include "view/text/view_text_line.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base_text.h"

/* An interval that is no wider than this, as a part of the figure, is not shown. */
#define NARROW 0.05

#define LABEL_WIDTH 12
#define FIGURE_WIDTH 12
#define DETAIL_COLUMN (LABEL_WIDTH + FIGURE_WIDTH + 4)
#define LINE_WIDTH 80

int wm_view_columns(FILE *out)
{
    struct winsize window;

    return ioctl(fileno(out), TIOCGWINSZ, &window) == 0 && window.ws_col > LINE_WIDTH
               ? window.ws_col
               : LINE_WIDTH;
}

/* A word as one would type it in a shell. */
static void add_word(char *line, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789%+,-./:=@_";
    size_t used = strlen(line);
    bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';

    if (used > 0 && used + 1 < size)
        line[used++] = ' ';
    if (quoted && used + 1 < size)
        line[used++] = '\'';
    for (; *word && used + 5 < size; word++) {
        if (*word == '\n') {
            line[used++] = '\\';
            line[used++] = 'n';
        } else if (*word == '\'') {
            memcpy(line + used, "'\\''", 4);
            used += 4;
        } else {
            line[used++] = *word;
        }
    }
    if (quoted && used + 1 < size)
        line[used++] = '\'';
    line[used] = '\0';
}

void wm_line_command(char *command, size_t size, const struct wm_run *run)
{
    bool is_of_all = wm_run_is_of_all(run);

    snprintf(command, size, "%s", is_of_all ? WM_RUN_OF_ALL : "");
    for (size_t i = 0; i < run->command_count && !is_of_all; i++)
        add_word(command, size, run->command[i]);
    wm_text_clean(command);
}

void wm_line_print_command(const struct wm_run *run, int width, FILE *out)
{
    char command[WM_COMMAND_SIZE];

    wm_line_command(command, sizeof(command), run);
    wm_view_cut(out, command, width);
}

/* sigabbrev_np() is younger than the C libraries that this runs with. */
void wm_line_signal(char *text, size_t size, int number)
{
    static const char *const names[] = {
        [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT",
        [SIGILL] = "SIGILL",   [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",
        [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",   [SIGKILL] = "SIGKILL",
        [SIGUSR1] = "SIGUSR1", [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
        [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM",
        [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
    };
    bool has_name = (size_t)number < sizeof(names) / sizeof(names[0]) && names[number];

    snprintf(text, size, has_name ? "%s (%d)" : "%ssignal %d",
             has_name ? names[number] : "", number);
}

/* The detail of a line. A terminal has several if it is too long for one, each to a ';'. */
static void print_detail(const struct wm_text_view *view, const char *detail)
{
    int room = wm_view_columns(view->out) - DETAIL_COLUMN, taken;
    bool is_terminal = isatty(fileno(view->out));
    size_t end;

    while (is_terminal && detail[end = wm_view_fit(detail, room, &taken)]) {
        while (end > 0 && (detail[end - 1] != ';' || detail[end] != ' '))
            end--;
        if (end == 0)
            break;
        fprintf(view->out, "%.*s\n%*s", (int)end, detail, DETAIL_COLUMN, "");
        detail += end + 1;
    }
    fprintf(view->out, "%s\n", detail);
}

void wm_line_print(const struct wm_text_view *view, const char *label, const char *figure,
                   const char *detail)
{
    wm_view_left(view->out, label, LABEL_WIDTH);
    fputs("  ", view->out);
    if (detail[0]) {
        wm_view_left(view->out, figure, FIGURE_WIDTH);
        fputs("  ", view->out);
        print_detail(view, detail);
    } else {
        fprintf(view->out, "%s\n", figure);
    }
}

void wm_line_more(const struct wm_text_view *view, const char *detail)
{
    if (!detail[0])
        return;
    fprintf(view->out, "%*s", DETAIL_COLUMN, "");
    print_detail(view, detail);
}

void wm_line_add(struct wm_detail *detail, const char *separator, const char *format, ...)
{
    size_t used = strlen(detail->text);
    va_list args;

    if (used > 0)
        used += (size_t)snprintf(detail->text + used, sizeof(detail->text) - used, "%s",
                                 separator);
    if (used >= sizeof(detail->text))
        return;
    va_start(args, format);
    vsnprintf(detail->text + used, sizeof(detail->text) - used, format, args);
    va_end(args);
}

const char *wm_line_at_least(const struct wm_value *value)
{
    return value->known && value->why ? "at least " : "";
}

void wm_line_add_most(struct wm_detail *detail, const struct wm_value *max)
{
    if (max->why)
        wm_line_add(detail, "; ", "at least (%s)", max->why);
    else
        wm_line_add(detail, "; ", "peak");
}

void wm_line_add_between(struct wm_detail *detail, const struct wm_rss *rss,
                         const struct wm_unit *unit)
{
    if (rss->low.known && rss->high.known &&
        rss->high.number - rss->low.number > NARROW * rss->total.number)
        wm_line_add(detail, "; ", "between %s and %s", wm_line_bytes(&rss->low, unit).text,
                    wm_line_bytes(&rss->high, unit).text);
}

const char *wm_line_origin(enum wm_origin origin)
{
    static const char *const marks[] = {
        [WM_MEASURED] = "", [WM_ESTIMATED] = "ESTIMATED", [WM_SIMULATED] = "SIMULATED"
    };

    return marks[origin];
}

void wm_line_add_origin(struct wm_detail *detail, enum wm_origin origin)
{
    if (origin != WM_MEASURED)
        wm_line_add(detail, "; ", "%s", wm_line_origin(origin));
}

void wm_line_missing(const struct wm_text_view *view, const char *label, const char *why)
{
    struct wm_detail detail = { "" };

    wm_line_add(&detail, "", "(%s)", why);
    wm_line_print(view, label, "n/a", detail.text);
}

void wm_line_paint(const struct wm_text_view *view, const char *sgr)
{
    if (view->units->for_terminal)
        fprintf(view->out, "\033[%sm", sgr);
}

void wm_line_wrap(FILE *out, const char *text, int indent)
{
    int column = indent;
    char clean[2048];

    wm_line_clean(clean, sizeof(clean), text);
    for (char *rest = NULL, *word = strtok_r(clean, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        int width = wm_view_width(word) + 1;
        if (column + width > LINE_WIDTH && column > indent) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        fprintf(out, " %s", word);
        column += width;
    }
    fputc('\n', out);
}

void wm_line_note(const struct wm_text_view *view, const char *label, const char *sgr,
                  const char *text)
{
    wm_line_paint(view, sgr);
    fprintf(view->out, "%s:", label);
    wm_line_paint(view, WM_PAINT_END);
    wm_line_wrap(view->out, text, wm_view_width(label) + 1);
}

static const struct wm_quantity missing = { "n/a" };

struct wm_quantity wm_line_bytes(const struct wm_value *value, const struct wm_unit *unit)
{
    return value->known ? wm_view_bytes(value->number, unit) : missing;
}

static struct wm_quantity duration(const struct wm_value *value, const struct wm_unit *unit)
{
    return value->known ? wm_view_duration(value->number, unit) : missing;
}

struct wm_quantity wm_line_seconds(const struct wm_value *value)
{
    return duration(value, NULL);
}

struct wm_quantity wm_line_number(const struct wm_value *value, double scale,
                                  const char *suffix)
{
    struct wm_quantity quantity = missing;

    if (value->known)
        snprintf(quantity.text, sizeof(quantity.text), "%.30s%s",
                 wm_view_number(value->number * scale, 3).text, suffix);
    return quantity;
}

/* Beyond that a range says more than half of its width. */
#define LOPSIDED 1.25

bool wm_line_is_asymmetric(const struct wm_value *value, const struct wm_value *low,
                           const struct wm_value *high)
{
    double below = value->number - low->number, above = high->number - value->number;

    return value->known && low->known && high->known &&
           (below > LOPSIDED * above || above > LOPSIDED * below);
}

struct wm_quantity wm_line_percent(const struct wm_value *value)
{
    return wm_line_number(value, 1, " %");
}

struct wm_quantity wm_line_count(const struct wm_value *value)
{
    struct wm_quantity quantity = missing;

    if (value->known)
        snprintf(quantity.text, sizeof(quantity.text), "%.0f", value->number);
    return quantity;
}

static struct wm_quantity prefixed(const struct wm_value *value, const char *symbol)
{
    return value->known ? wm_view_prefixed(value->number, symbol) : missing;
}

struct wm_quantity wm_line_figure(const struct wm_value *value, enum wm_figure_unit unit,
                                  const struct wm_units *units)
{
    switch (unit) {
    case WM_UNIT_SECONDS:
        return duration(value, NULL);
    case WM_UNIT_TIME:
        return duration(value, units ? units->time : NULL);
    case WM_UNIT_JOULES:
        return prefixed(value, "J");
    case WM_UNIT_WATTS:
        return wm_line_number(value, 1, " W");
    case WM_UNIT_BYTES:
        return wm_line_bytes(value, NULL);
    case WM_UNIT_RAM:
        return wm_line_bytes(value, units ? units->ram : NULL);
    case WM_UNIT_GPU_RAM:
        return wm_line_bytes(value, units ? units->gpu_ram : NULL);
    case WM_UNIT_PERCENT:
        return wm_line_percent(value);
    case WM_UNIT_RATIO:
        return wm_line_number(value, 100, " %");
    case WM_UNIT_CELSIUS:
        return wm_line_number(value, 1, " °C");
    case WM_UNIT_COUNT:
        break;
    }
    return wm_line_count(value);
}

struct wm_quantity wm_line_joules(const struct wm_value *joules)
{
    struct wm_quantity text, number = prefixed(joules, "J");

    snprintf(text.text, sizeof(text.text), "%s%.38s",
             joules->known && joules->why ? "at least " : "", number.text);
    return text;
}

void wm_line_key(FILE *out, const char *key, int width)
{
    char label[64];

    snprintf(label, sizeof(label), "  %.60s", key);
    char *tail = strstr(label, "_percent");
    if (tail)
        *tail = '\0';
    for (char *c = label; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    wm_view_left(out, label, width);
}

void wm_line_clean(char *out, size_t size, const char *text)
{
    wm_text_utf8(out, size, text, strlen(text));
    wm_text_clean(out);
}
