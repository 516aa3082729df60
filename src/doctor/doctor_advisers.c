/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advisers.c - hands a finding to the source that knows what is in the way; the
 * tracker, which is no source, has its own advice here. */
#include "doctor/doctor_advisers.h"

#include <string.h>

static bool lacks_some(const struct wm_doctor_source *source)
{
    for (size_t i = 0; i < source->channel_count; i++) {
        if (source->channels[i].state == WM_READING_DENIED)
            return true;
    }
    return source->health == WM_HEALTH_DENIED;
}

/* A task's own counters are allowed up to level 2. */
static void advise_tracker(const struct wm_source_config *config, int perf_errno,
                           struct wm_advice *advice)
{
    if (perf_errno == 0)
        return;
    if (wm_permission_is_paranoid(config->procfs, 2))
        wm_advice_add(
            advice,
            "this kernel forbids perf counters to all but root, so that CPU time of "
            "short-lived children may be missed",
            "sudo sysctl kernel.perf_event_paranoid=2");
    else
        wm_advice_add(
            advice,
            "perf counters are forbidden here, as containers do, so that CPU time of "
            "short-lived children may be missed",
            "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
}

void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice)
{
    const struct wm_source_case asked = {
        .config = config,
        .is_absent = source->health == WM_HEALTH_ABSENT,
        .is_denied = source->health == WM_HEALTH_DENIED,
        .lacks_some = lacks_some(source),
        .advice = ret_advice,
    };

    ret_advice->count = 0;
    wm_source_advise(source->name, &asked);
    if (strcmp(source->name, WM_DOCTOR_TRACKER) == 0)
        advise_tracker(config, perf_errno, ret_advice);
}
