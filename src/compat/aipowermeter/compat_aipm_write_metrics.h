/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_write_metrics.h - ticks in AIPowerMeter's metrics, in the form of its latest
 * generation: which channels make up each of them, and a record for each window.
 *
 *     wm_aipm_metrics_init(&metrics, run, channels, count);
 *     wm_aipm_metrics_pass(&metrics, &tick);      a tick where a window begins
 *     text = wm_aipm_metrics_record(&metrics, &tick);
 *     wm_aipm_metrics_release(&metrics);
 *
 * Its powers are averages over the window: the increase of the energy counter by
 * the time, or what a device says of its power that has none, or one that tells nothing
 * of the window: it may be dead, and is not 0 W. The tracked processes are one process
 * there, the one that was started.
 */
#ifndef WM_COMPAT_AIPM_WRITE_METRICS_H
#define WM_COMPAT_AIPM_WRITE_METRICS_H

#include <stdbool.h>

#include "record/record.h"

struct wm_aipm_device;
struct wm_aipm_before;

struct wm_aipm_metrics {
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    struct wm_aipm_device *devices;
    size_t device_count;
    size_t tree_cpu, tree_memory, tree_private, tree_share, host_cpu, host_memory;
    struct wm_aipm_before *before, *before_saved; /* of each channel */
};

/* The arguments outlive it. wm_aipm_metrics_release() is due whatever this returned; the
 * only failure is WM_ENOMEM. */
int wm_aipm_metrics_init(struct wm_aipm_metrics *metrics, const struct wm_run *run,
                         const struct wm_channel *channels, size_t count);

/* The record of the window that ends with this tick, as a line that the caller frees; NULL
 * when out of memory. */
char *wm_aipm_metrics_record(const struct wm_aipm_metrics *metrics,
                             const struct wm_tick *tick);

/* From this tick on counters are counted. */
void wm_aipm_metrics_pass(struct wm_aipm_metrics *metrics, const struct wm_tick *tick);

/* There is no tick before the next. */
void wm_aipm_metrics_restart(struct wm_aipm_metrics *metrics);

/* What has been passed since it was saved can be taken back. */
void wm_aipm_metrics_save(struct wm_aipm_metrics *metrics);
void wm_aipm_metrics_restore(struct wm_aipm_metrics *metrics);

void wm_aipm_metrics_release(struct wm_aipm_metrics *metrics);

#endif
