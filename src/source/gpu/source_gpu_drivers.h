/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drivers.h - all backends of the inventory together, each asked where it may
 * hang: what does not come back in time is left behind, and the rest is there.
 *
 *     wm_gpu_drivers_open(table, count, &config, deadline_ns, &drivers, err);
 *     for (size_t g = 0; g < wm_gpu_drivers_count(drivers); g++)
 *         wm_gpu_sheet_ask(wm_gpu_drivers_sheet(drivers, g), groups);
 *     wm_gpu_drivers_refresh(drivers, deadline_ns, err);
 */
#ifndef WM_SOURCE_GPU_DRIVERS_H
#define WM_SOURCE_GPU_DRIVERS_H

#include <stdint.h>

#include "source/gpu/source_gpu_ops.h"
#include "source/gpu/source_gpu_sheet.h"

struct wm_gpu_drivers;

/* Opens every backend of the table and counts its GPUs. A backend that fails, or
 * has not answered by then, has none, and wm_gpu_drivers_looked() says why.
 * `config` is complete, and needed during the call only. */
int wm_gpu_drivers_open(const struct wm_gpu_ops *const *table, size_t count,
                        const struct wm_source_config *config, int64_t deadline_ns,
                        struct wm_gpu_drivers **ret_drivers, struct wm_error *err);

/* Accepts NULL. Waits for whoever can still be expected to come back. */
void wm_gpu_drivers_close(struct wm_gpu_drivers *drivers, int64_t deadline_ns);

/* The GPUs of all backends, in the order of the table. Their sheets say index,
 * source and label before the driver says anything. */
size_t wm_gpu_drivers_count(const struct wm_gpu_drivers *drivers);
struct wm_gpu_sheet *wm_gpu_drivers_sheet(const struct wm_gpu_drivers *drivers, size_t gpu);

/* As wm_gpus_looked(). */
const struct wm_gpu_looked *wm_gpu_drivers_looked(const struct wm_gpu_drivers *drivers,
                                                  size_t index);

/* Makes the calls that the sheets ask for, waits for them until the deadline, and
 * collects. A driver that has hung since before is not waited for. Returns 1 when
 * GPUs have come or gone, else 0. */
int wm_gpu_drivers_refresh(struct wm_gpu_drivers *drivers, int64_t deadline_ns,
                           struct wm_error *err);

/* As wm_gpus_set(); `gpu` is among those of all backends. */
int wm_gpu_drivers_set(struct wm_gpu_drivers *drivers, size_t gpu, enum wm_gpu_field field,
                       double value, int64_t deadline_ns, struct wm_error *err);

#endif
