/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_open.c - see doctor_open.h. */
#include "doctor/doctor_open.h"

#include <stdlib.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/source_config.h"

/* The thread's until its call is back, and for good where that does not come. */
struct opening {
    const char *name;
    struct wm_source_config config; /* with texts of its own */
    struct wm_doctor_opened result;
};

static void open_source(void *context, size_t unit)
{
    struct opening *opening = context;

    (void)unit;
    wm_source_open(opening->name, &opening->config, &opening->result.source,
                   &opening->result.err);
}

static void end_opening(void *context)
{
    struct opening *opening = context;

    wm_source_close(opening->result.source);
    wm_source_config_release(&opening->config);
    free(opening);
}

/* An opening that is under way, as the caller sees it. */
struct visit {
    struct opening *opening;
    struct wm_guard *guard; /* NULL: there is none, and no opening either */
};

static int begin(struct visit *visit, const char *name,
                 const struct wm_source_config *config, struct wm_error *err)
{
    struct opening *opening = calloc(1, sizeof(*opening));

    if (!opening)
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    opening->name = name;
    int status = wm_source_config_copy(config, &opening->config, err);
    if (status == WM_OK)
        status = wm_guard_new(1, open_source, end_opening, opening, &visit->guard, err);
    if (status < 0) {
        end_opening(opening);
        return status;
    }
    visit->opening = opening;
    status = wm_guard_start(visit->guard, err);
    return status < 0 ? status : WM_OK;
}

static void end(struct visit *visit, int64_t deadline_ns, struct wm_doctor_opened *opened)
{
    wm_guard_wait(visit->guard, deadline_ns);
    bool is_back = wm_guard_take(visit->guard, 0);
    if (is_back) {
        *opened = visit->opening->result;
        visit->opening->result.source = NULL;
    } else {
        wm_fail(&opened->err, WM_EIO, "the driver has not answered for %d s",
                WM_DOCTOR_OPEN_S);
    }
    /* A thread that has done its work ends in a moment. */
    wm_guard_close(visit->guard, is_back ? INT64_MAX : 0);
}

int wm_doctor_open(const struct wm_source_config *config, struct wm_doctor_opened *opened,
                   size_t count, struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + WM_DOCTOR_OPEN_S * WM_NS_PER_S;
    struct visit *visits = calloc(count, sizeof(*visits));
    int status = WM_OK;

    if (!visits)
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = begin(&visits[i], wm_source_name(i), config, err);
    for (size_t i = 0; i < count && visits[i].guard; i++)
        end(&visits[i], deadline_ns, &opened[i]);
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (!opened[i].source && opened[i].err.status == WM_ENOMEM)
            status = wm_fail(err, WM_ENOMEM, "%s", opened[i].err.text);
    }
    free(visits);
    return status;
}
