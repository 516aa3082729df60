/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker.h - how a recording that is gpu_tracker's tracking file is named:
 * "gpu-tracker:RAM,GPU_RAM,TIME:FILE", since the units are a part of it. It has what
 * gpu_tracker's has and nothing else.
 */
#ifndef WM_COMPAT_GPU_TRACKER_H
#define WM_COMPAT_GPU_TRACKER_H

/* Of a target whose FILE ends in `suffix`: where FILE begins; NULL where `target` is no
 * such one, or a unit is none. */
const char *wm_gpu_tracker_path(const char *target, const char *suffix);

#endif
