/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_change.h - a change with its entry in the journal, and its undoing. Who calls holds
 * the lock of the device.
 */
#ifndef WM_CAP_CHANGE_H
#define WM_CAP_CHANGE_H

#include "cap/cap_device.h"
#include "cap/cap_journal.h"

/* Sets the value, NAN for no limit, after a refresh, and reads it back. `entry` has owner,
 * command and is_session filled in, and the rest where the same has changed the setting
 * before; what is there by another's hand is then left alone (WM_ECANCELED). What was there
 * is what the journal says where that change is still in force. */
int wm_cap_change(struct wm_caps *caps, size_t index, double value,
                  struct wm_cap_entry *entry, struct wm_error *err);

/* Puts back what was there before, after a refresh, unless somebody else has changed it,
 * and removes the entry; waits for the driver up to `deadline_ns`. On failure the entry
 * stays. */
int wm_cap_put_back(struct wm_caps *caps, const struct wm_cap_entry *entry,
                    int64_t deadline_ns, enum wm_cap_restored *ret_restored,
                    struct wm_error *err);

#endif
