/* SPDX-License-Identifier: Apache-2.0 */
/* view_trace_torch.h - a trace of PyTorch's profiler, to whose events others are added. */
#ifndef WM_VIEW_TRACE_TORCH_H
#define WM_VIEW_TRACE_TORCH_H

#include <sys/types.h>

#include "record/record_read.h"
#include "view/trace/view_trace.h"

struct wm_torch {
    FILE *file;
    const char *path; /* for messages; borrowed */
    int64_t base_ns;  /* since 1970: its time stamp 0 */
    off_t events_at;  /* where the first event would begin */
    bool has_events;
    double first_us, last_us; /* of its events; time stamps */
};

/* Scans the file at `path`, in bounded memory. WM_EFORMAT: it is no trace, or has no
 * events. The close is due in any case. */
int wm_torch_open(struct wm_torch *torch, const char *path, struct wm_error *err);

/* WM_EFORMAT: no event of it is in the time of the run. */
int wm_torch_check(const struct wm_torch *torch, const struct wm_recording *recording,
                   struct wm_error *err);

/* Copy what is before its first event, then the rest. */
int wm_torch_copy_head(struct wm_torch *torch, FILE *out, struct wm_error *err);
int wm_torch_copy_rest(struct wm_torch *torch, FILE *out, struct wm_error *err);

/* Accepts what is all zero. */
void wm_torch_close(struct wm_torch *torch);

#endif
