/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_report.c - the report of an input. */
#include "view/plot/view_plot_report.h"

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
