/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_gpus.c - the tracker that the settings describe, and what the library has to
 * say of its GPUs, as gpu_tracker says it. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "wattmeter/tracker.h"

struct wm_tracker *gpu_tracker_new_tracker(const struct gpu_tracker_settings *settings,
                                           const struct cmd_streams *io)
{
    const struct wm_tracker_options options = {
        .interval_ns = (int64_t)(settings->sleep_seconds * 1e9 + 0.5),
        .expected_cores = settings->cores,
        .gpus = settings->gpu_uuids,
        .own_process = true,
    };
    const struct wm_gpu_tracker_options own = {
        .brand = settings->brand,
        .ram_unit = settings->ram_unit,
        .gpu_ram_unit = settings->gpu_ram_unit,
        .time_unit = settings->time_unit,
        .tracking_file = settings->tracking_file,
        .overwrite = settings->overwrite,
    };
    struct wm_tracker *tracker = NULL;
    char *text = NULL;
    size_t size;

    FILE *said = open_memstream(&text, &size);
    int status =
        said ? wm_tracker_new_as_gpu_tracker(&options, &own, said, &tracker) : WM_ENOMEM;
    if (!said || fclose(said) != 0)
        gpu_tracker_error(io, "out of memory");
    else if (status < 0)
        gpu_tracker_error(io, "%.*s", (int)strcspn(text, "\n"), text);
    else if (!settings->disable_logs)
        gpu_tracker_warn_lines(io, text);
    free(text);
    return tracker;
}
