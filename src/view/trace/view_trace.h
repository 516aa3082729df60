/* SPDX-License-Identifier: Apache-2.0 */
/* view_trace.h - what the formats of traces share; for src/view/trace alone. */
#ifndef WM_VIEW_TRACE_H
#define WM_VIEW_TRACE_H

#include <stdint.h>
#include <sys/types.h>

#include "record/record_read.h"
#include "view/chart/view_flame.h"
#include "wattmeter/trace.h"

/* A format has one function: of a recording at its start, or of its tree of regions.
 * Whether `out` took all of it is checked afterwards. */
struct wm_trace_ops {
    int (*write)(struct wm_recording *recording, const struct wm_trace_request *request,
                 FILE *out, struct wm_error *err);
    int (*write_tree)(const struct wm_flame *flame, const char *path, FILE *out,
                      struct wm_error *err);
};

extern const struct wm_trace_ops wm_trace_chrome;
extern const struct wm_trace_ops wm_trace_firefox;
extern const struct wm_trace_ops wm_trace_speedscope;
extern const struct wm_trace_ops wm_trace_folded;

/* A string of JSON; WM_ENOMEM is the only failure. */
int wm_trace_put_text(FILE *out, const char *text, struct wm_error *err);

/* A number of JSON, whatever the locale; null unless it is finite. */
void wm_trace_put_number(FILE *out, double value);

/* Nanoseconds in another unit, exactly: 12.345. */
enum wm_trace_unit { WM_TRACE_US = 1000, WM_TRACE_MS = 1000000 };
void wm_trace_put_time(FILE *out, int64_t ns, enum wm_trace_unit unit);

/* A trace of PyTorch's profiler, whose events are added; in view_trace_torch.c. */
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
