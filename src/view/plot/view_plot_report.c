/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_report.c - the report of an input, and what figures of regions show of it. */
#include "view/plot/view_plot_report.h"

const struct wm_plot_measure wm_plot_measures[WM_PLOT_MEASURES] = {
    { "energy", "J", "Energy", "Energy without regions inside", "Energy by region" },
    { "time", "s", "Time", "Time without regions inside", "Time by region" },
};

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
