/* SPDX-License-Identifier: Apache-2.0 */
/* record_calls.c - calls of blocks of code, of whatever kind of file. */
#include "record/calls/record_calls.h"

#include <stddef.h>

#include "record/calls/record_calls_ops.h"

int wm_calls_next(struct wm_calls *calls, struct wm_call *ret_call, struct wm_error *err)
{
    return calls->ops->next(calls, ret_call, err);
}

const struct wm_region_path *wm_calls_path(const struct wm_calls *calls, uint32_t path)
{
    return calls->ops->path ? calls->ops->path(calls, path) : NULL;
}

uint64_t wm_calls_stray(const struct wm_calls *calls)
{
    return calls->ops->stray(calls);
}

const char *wm_calls_remark(const struct wm_calls *calls, size_t index)
{
    return wm_remarks_get(&calls->remarks, index);
}

void wm_calls_close(struct wm_calls *calls)
{
    if (calls)
        calls->ops->close(calls);
}
