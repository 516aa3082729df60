/* SPDX-License-Identifier: Apache-2.0 */
/* track_experiment.c - a tracker whose session is one run of an experiment. */
#include "wattmeter/experiment.h"

#include <stdlib.h>

#include "record/run/record_experiment.h"
#include "track/track_state.h"

int wm_tracker_experiment(struct wm_tracker *tracker,
                          const struct wm_experiment_setup *setup, struct wm_error *err)
{
    char *card = NULL, *path = NULL;

    int status = wm_track_check_new(tracker, err);
    if (status == WM_OK && setup->model_card)
        status = wm_model_card_load(setup->model_card, &card, err);
    if (status == WM_OK)
        status = wm_experiment_make_place(setup->target, setup->name, &path, err);
    if (status == WM_OK)
        status = wm_tracker_record(tracker, path, WM_RECORD_APPEND, err);
    if (status == WM_OK)
        status = wm_tracker_note(tracker, WM_NOTE_EXPERIMENT, setup->name, err);
    if (status == WM_OK && setup->description)
        status = wm_tracker_note(tracker, WM_NOTE_DESCRIPTION, setup->description, err);
    if (status == WM_OK && card)
        status = wm_tracker_note(tracker, WM_NOTE_MODEL, card, err);
    free(path);
    free(card);
    return status;
}
