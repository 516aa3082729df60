/* SPDX-License-Identifier: Apache-2.0 */
/* view_blocks.h - the forms that an analysis of blocks can take; for src/view alone. */
#ifndef WM_VIEW_BLOCKS_H
#define WM_VIEW_BLOCKS_H

#include <stdio.h>

#include "analyze/region/analyze_block_results.h"

/* For people. Whether `out` took it all, it knows itself. */
void wm_view_blocks_text(const struct wm_block_results *results, FILE *out);

/* As gpu_tracker's str() of it, line end and all. WM_ENOMEM is the only failure. */
int wm_view_blocks_gpu_tracker(const struct wm_block_results *results, FILE *out);

#endif
