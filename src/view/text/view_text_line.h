/* SPDX-License-Identifier: Apache-2.0 */
/* view_text_line.h - lines of a report for people; for src/view alone. */
#ifndef WM_VIEW_TEXT_LINE_H
#define WM_VIEW_TEXT_LINE_H

#include <stdio.h>

#include "analyze/analyze_figures.h"
#include "view/view.h"

/* Text in columns, in view_width.c: a wide character takes two, a combining one none. */

/* How many columns a text takes, which is UTF-8. */
int wm_view_width(const char *text);

/* How many bytes of the text fit into so many columns, and how many they take. */
size_t wm_view_fit(const char *text, int width, int *ret_width);

/* The same up to the last blank at which a line may end, if it has one. */
size_t wm_view_fit_words(const char *text, int width);

/* The text with blanks after it, or before it, up to `width`. */
void wm_view_left(FILE *out, const char *text, int width);
void wm_view_right(FILE *out, const char *text, int width);

/* The text, cut where it is longer than `width`, and then with an ellipsis at its
 * end. Returns how many columns that takes. */
int wm_view_cut(FILE *out, const char *text, int width);

/* How wide the terminal is, if it is one and wider than 80 columns; else 80. */
int wm_view_columns(FILE *out);

struct wm_text_view {
    const struct wm_report *report;
    const struct wm_units *units;
    FILE *out;
};

/* A detail that is put together piece by piece; what does not fit is cut off. */
struct wm_detail {
    char text[512];
};

/* One line of the report. Without a detail there are no blanks at its end. */
void wm_line_print(const struct wm_text_view *view, const char *label, const char *figure,
                   const char *detail);

/* More on the line before. */
void wm_line_more(const struct wm_text_view *view, const char *detail);

void wm_line_add(struct wm_detail *detail, const char *separator, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Before a value that may have been higher: "at least ", else nothing. */
const char *wm_line_at_least(const struct wm_value *value);

/* "peak", or why the known `max` may have been more. */
void wm_line_add_most(struct wm_detail *detail, const struct wm_value *max);

/* The interval in which the memory lies, where it is worth a word. */
void wm_line_add_between(struct wm_detail *detail, const struct wm_rss *rss,
                         const struct wm_unit *unit);

void wm_line_add_origin(struct wm_detail *detail, enum wm_origin origin);

void wm_line_missing(const struct wm_text_view *view, const char *label, const char *why);

/* What follows is in this colour or weight, on a terminal; "0" ends it. */
void wm_line_paint(const struct wm_text_view *view, const char *sgr);
#define WM_PAINT_RED "31"
#define WM_PAINT_YELLOW "33"
#define WM_PAINT_FAINT "2"
#define WM_PAINT_END "0"

/* Words, each after a blank, on as many lines of 80 columns as it takes; the cursor is at
 * column `indent`, where the further lines begin, too. */
void wm_line_wrap(FILE *out, const char *text, int indent);

/* "note: ...", on as many lines of 80 columns as it takes, the label in that colour. */
void wm_line_note(const struct wm_text_view *view, const char *label, const char *sgr,
                  const char *text);

/* Each of these gives the text of a value, "n/a" where it is missing. */

/* By what it is measured in. `units` are those that the user chose; NULL: what reads
 * best. */
struct wm_quantity wm_line_figure(const struct wm_value *value, enum wm_figure_unit unit,
                                  const struct wm_units *units);

/* Energy, which is "at least" so much where more than a little of the time is missing. */
struct wm_quantity wm_line_joules(const struct wm_value *joules);

struct wm_quantity wm_line_bytes(const struct wm_value *value, const struct wm_unit *unit);

struct wm_quantity wm_line_seconds(const struct wm_value *value);

struct wm_quantity wm_line_number(const struct wm_value *value, double scale,
                                  const char *suffix);

/* Whether a figure is much farther from one end of its range than from the other. */
bool wm_line_is_asymmetric(const struct wm_value *value, const struct wm_value *low,
                           const struct wm_value *high);

struct wm_quantity wm_line_percent(const struct wm_value *value);

struct wm_quantity wm_line_count(const struct wm_value *value);

/* A key as a label of that width: "  cpu main sum utilization" of
 * cpu_main_sum_utilization_percent. */
void wm_line_key(FILE *out, const char *key, int width);

/* Names are anybody's: control characters could move the cursor or worse. */
void wm_line_clean(char *out, size_t size, const char *text);

/* The words of a command line as one would type them in a shell, on one line; what does not
 * fit is cut off. Of the usual size it is for a report. */
#define WM_COMMAND_SIZE 256
void wm_line_command(char *command, size_t size, const struct wm_run *run);

/* The same in no more than so many columns. */
void wm_line_print_command(const struct wm_run *run, int width, FILE *out);

/* "SIGINT (2)", "signal 64". */
void wm_line_signal(char *text, size_t size, int number);

/* What stands in the lines of GPUs and of energies, and below them; in
 * view_text_energy.c. */
bool wm_line_has_no_gpu(const struct wm_report *report);
bool wm_line_has_no_dram(const struct wm_report *report);
bool wm_line_has_no_energy(const struct wm_report *report);
void wm_line_add_gpu_memory(const struct wm_text_view *view, struct wm_detail *detail);
void wm_line_add_gpu_use(const struct wm_text_view *view, struct wm_detail *detail);
void wm_line_gpus(const struct wm_text_view *view);
void wm_line_packages(const struct wm_text_view *view);
void wm_line_dram(const struct wm_text_view *view);
void wm_line_whole(const struct wm_text_view *view);

/* What an energy is of: "CPU, memory, GPUs", or "the platform by psys". */
struct wm_detail wm_line_cover(const struct wm_cover *cover, size_t gpu_count);

/* The mean power, of the same time as the joules where these are known, and not of the
 * readings of power: those are as old as the sensor is slow. */
struct wm_value wm_line_gpu_watts(const struct wm_gpu_usage *gpu);

/* Whether it stands by itself: it sees the same joules as others do, or some that nothing
 * adds up. */
bool wm_line_is_beside(const struct wm_device_energy *device);

/* The figures as most people want them; in view_text_brief.c. */
void wm_line_brief(const struct wm_text_view *view);

/* "Not available: GPU, temperature", where something is not. */
void wm_line_not_available(const struct wm_text_view *view);

/* What regions cost, where there are any; in view_text_regions.c. */
void wm_line_regions(const struct wm_text_view *view);

#endif
