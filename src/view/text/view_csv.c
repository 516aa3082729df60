/* SPDX-License-Identifier: Apache-2.0 */
/* view_csv.c - a table of runs: the names of the columns once, and a line for each run with
 * all figures of the one table of them. */
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "record/record_read.h"
#include "view/text/view_text_line.h"
#include "view/view.h"

enum { TEXT_SIZE = 8192 };

/* A line that is written, of the run number `run` of the recording at `path`. */
struct line {
    const struct wm_report *report;
    const char *path;
    size_t run;
    FILE *out;
};

static void put_text(const struct line *line, const char *text)
{
    char clean[TEXT_SIZE], quoted[2 * TEXT_SIZE];

    wm_line_clean(clean, sizeof(clean), text ? text : "");
    size_t length = strlen(clean);
    const char *quote = wm_text_is_quoted(clean, length) ? "\"" : "";
    length = wm_text_double_quotes(quoted, clean, length);
    fprintf(line->out, "%s%.*s%s", quote, (int)length, quoted, quote);
}

/* Nothing where it is not known. */
static void put_number(const struct line *line, bool is_known, double number)
{
    char text[WM_NUMBER_SIZE];

    if (is_known && wm_number_format(number, text) > 0)
        fputs(text, line->out);
}

static void put_recording(const struct line *line)
{
    put_text(line, wm_text_path(line->path));
}

static void put_run(const struct line *line)
{
    fprintf(line->out, "%zu", line->run);
}

static void put_id(const struct line *line)
{
    put_text(line, line->report->run.id);
}

static void put_start(const struct line *line)
{
    char start[40];

    wm_clock_rfc3339(line->report->start_unix_ns, start, sizeof(start));
    fputs(start, line->out);
}

static void put_host(const struct line *line)
{
    put_text(line, line->report->run.host);
}

static void put_command(const struct line *line)
{
    char command[TEXT_SIZE];

    wm_line_command(command, sizeof(command), &line->report->run);
    put_text(line, command);
}

static void put_status(const struct line *line)
{
    const struct wm_known *status = &line->report->result.exit_status;

    put_number(line, status->known, status->number);
}

static void put_signal(const struct line *line)
{
    int number = line->report->result.exit_signal;

    put_number(line, number > 0, number);
}

static void put_complete(const struct line *line)
{
    fputc(line->report->complete ? '1' : '0', line->out);
}

/* The keys of the known figures that are what `is` says. */
static void put_keys(const struct line *line, bool (*is)(const struct wm_found *found))
{
    const struct wm_figure_row *row;
    const char *separator = "";

    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        if (!wm_figure_place(row, WM_REPORT_RUN))
            continue;
        const struct wm_found found =
            wm_figure_of(row, WM_REPORT_RUN, line->report, line->report);
        if (!found.value.known || !is(&found))
            continue;
        fprintf(line->out, "%s%s", separator, wm_figure_key(row));
        separator = " ";
    }
}

static bool is_estimated(const struct wm_found *found)
{
    return found->origin == WM_ESTIMATED;
}

static bool is_simulated(const struct wm_found *found)
{
    return found->origin == WM_SIMULATED;
}

static bool is_at_least(const struct wm_found *found)
{
    return found->value.why != NULL;
}

static void put_estimated(const struct line *line)
{
    put_keys(line, is_estimated);
}

static void put_simulated(const struct line *line)
{
    put_keys(line, is_simulated);
}

static void put_at_least(const struct line *line)
{
    put_keys(line, is_at_least);
}

/* What stands before the figures. */
static const struct column {
    const char *name;
    void (*put)(const struct line *line);
} columns[] = {
    { "recording", put_recording },
    { "run", put_run },
    { "id", put_id },
    { "start", put_start },
    { "host", put_host },
    { "command", put_command },
    { "status", put_status },
    { "signal", put_signal },
    { "complete", put_complete },
    { "estimated", put_estimated },
    { "simulated", put_simulated },
    { "at_least", put_at_least },
};

enum { COLUMN_COUNT = sizeof(columns) / sizeof(columns[0]) };

static void print_header(FILE *out)
{
    const struct wm_figure_row *row;

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", columns[i].name);
    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        const struct wm_figure_place *place = wm_figure_place(row, WM_REPORT_RUN);
        if (place)
            fprintf(out, ",%s", wm_figure_key(row));
        if (place && place->uncertainty)
            fprintf(out, ",%s_uncertainty_percent", wm_figure_key(row));
    }
    fputc('\n', out);
}

static void print_line(const struct line *line)
{
    const struct wm_figure_row *row;

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (i > 0)
            fputc(',', line->out);
        columns[i].put(line);
    }
    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        const struct wm_figure_place *place = wm_figure_place(row, WM_REPORT_RUN);
        if (!place)
            continue;
        const struct wm_found found =
            wm_figure_of(row, WM_REPORT_RUN, line->report, line->report);
        fputc(',', line->out);
        put_number(line, found.value.known, found.value.number);
        if (!place->uncertainty)
            continue;
        fputc(',', line->out);
        put_number(line, found.value.known && found.uncertainty.known,
                   100 * found.uncertainty.number);
    }
    fputc('\n', line->out);
}

/* The names of the columns come with the first run, so that there are none where there is
 * no run. */
static int print_run(const char *path, size_t run, FILE *out, bool *has_header,
                     struct wm_error *err)
{
    struct wm_recording *recording = NULL;
    struct wm_report *report = NULL;

    int status = wm_recording_open(path, run, &recording, err);
    if (status == WM_OK)
        status = wm_report_from_recording(recording, &report, err);
    if (status == WM_OK && run == WM_LAST_RUN)
        run = wm_recording_run_count(recording) - 1;
    if (status == WM_OK && !*has_header)
        print_header(out);
    *has_header |= status == WM_OK;
    if (status == WM_OK)
        print_line(&(struct line) { report, path, run, out });
    wm_report_free(report);
    wm_recording_close(recording);
    return status;
}

static int print_recording(const char *path, size_t run, FILE *out, bool *has_header,
                           struct wm_error *err)
{
    size_t count = 0;

    if (run != WM_ALL_RUNS)
        return print_run(path, run, out, has_header, err);
    int status = wm_recording_count_runs(path, &count, err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = print_run(path, i, out, has_header, err);
    return status;
}

int wm_report_print_csv(const char *const *paths, size_t count, size_t run, FILE *out,
                        struct wm_error *err)
{
    bool has_header = false;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = print_recording(paths[i], run, out, &has_header, err);
    return status == WM_OK ? wm_view_flush(out, "the table", err) : status;
}
