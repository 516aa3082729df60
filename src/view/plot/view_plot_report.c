/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_report.c - the report of an input. */
#include "view/plot/view_plot_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_text.h"
#include "view/plot/view_plot.h"

bool wm_plot_is_known(const struct wm_report_figure *figure)
{
    bool is_energy = strcmp(figure->unit, "J") == 0;
    double half = (figure->high - figure->low) / 2;

    return wm_flame_has(figure) && (!is_energy || half <= fabs(figure->value));
}

void wm_plot_add_missing(const struct wm_plot_request *request, size_t input,
                         const struct wm_report *report, char note[WM_PLOT_NOTE_SIZE])
{
    const char *why = request->by_time ? NULL : wm_flame_why_no_energy(report);
    char name[WM_PLOT_NAME_SIZE];

    wm_plot_input_name(&request->inputs[input], name);
    if (why)
        wm_text_list(note, WM_PLOT_NOTE_SIZE, " ", "%s: no energy by region (%s).", name,
                     why);
}

static void write_command(const struct wm_report *report, char *text, size_t size)
{
    const char *word;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0;
         used < size && (word = wm_report_text(report, WM_REPORT_WORDS, i, NULL)); i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", word);
}

static bool is_earlier(const struct wm_report *const *reports, size_t index,
                       const char *command)
{
    char other[WM_PLOT_TITLE_SIZE];

    for (size_t i = 0; i < index; i++) {
        write_command(reports[i], other, sizeof(other));
        if (strcmp(other, command) == 0)
            return true;
    }
    return false;
}

void wm_plot_title_of(const char *what, const struct wm_report *const *reports,
                      size_t count, size_t runs, char ret_title[WM_PLOT_TITLE_SIZE])
{
    char command[WM_PLOT_TITLE_SIZE];
    const char *between = ": ";
    int used = snprintf(ret_title, WM_PLOT_TITLE_SIZE, "%s, %zu run%s", what, runs,
                        runs == 1 ? "" : "s");

    for (size_t i = 0; i < count && used < WM_PLOT_TITLE_SIZE; i++) {
        write_command(reports[i], command, sizeof(command));
        if (!command[0] || is_earlier(reports, i, command))
            continue;
        used += snprintf(ret_title + used, WM_PLOT_TITLE_SIZE - (size_t)used, "%s%s",
                         between, command);
        between = ", ";
    }
}

int wm_plot_report(const struct wm_plot_request *request, const struct wm_plot_input *input,
                   struct wm_report **ret_report, struct wm_error *err)
{
    struct wm_recording *recording;

    int status = wm_recording_open(input->path, input->run, &recording, err);
    if (status < 0)
        return status;
    if (request->stop)
        wm_recording_stop_on(recording, request->stop);
    status = wm_report_from_recording(recording, ret_report, err);
    wm_recording_close(recording);
    return status;
}
