/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_why.h - why values of a GPU are missing, each reason once. */
#ifndef WM_VIEW_GPU_WHY_H
#define WM_VIEW_GPU_WHY_H

#include "view/gpu/view_gpu_words.h"

/* A block of its own; none where nothing is missing. */
void wm_gpu_view_print_why(const struct wm_gpu_view *view);

/* That there is no GPU to show, and where they were looked for. */
void wm_gpu_view_print_none(const struct wm_gpus *gpus, FILE *out);

/* That there may be more GPUs than are shown, since a driver is broken. */
void wm_gpu_view_print_broken(const struct wm_gpus *gpus, FILE *out);

#endif
