/* SPDX-License-Identifier: Apache-2.0 */
/* record_writer.h - the process that records a run, and whether it still does. */
#ifndef WM_RECORD_WRITER_H
#define WM_RECORD_WRITER_H

#include "record/run/record_run.h"

/* This process is about to record the run. */
void wm_writer_note(struct wm_run *run);

/* Whether it still does: false also where that cannot be known. */
bool wm_writer_is_there(const struct wm_run *run);

/* Why the recording of the run has no result, for people, after "it has none:". That it is
 * still being written is only known on the machine that writes it, and where its processes
 * can be seen; elsewhere either may be. */
const char *wm_writer_why_unfinished(const struct wm_run *run);

#endif
