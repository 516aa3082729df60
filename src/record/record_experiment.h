/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_experiment.h - runs that belong together: where the recording of a run is that
 * has a name, and what its notes say of it.
 *
 * The name, the description and the model card are notes of the run, so that every
 * format keeps them and every report shows them.
 */
#ifndef WM_RECORD_EXPERIMENT_H
#define WM_RECORD_EXPERIMENT_H

#include <stdbool.h>

#include "record/run/record_run.h"

#define WM_NOTE_EXPERIMENT "experiment"
#define WM_NOTE_DESCRIPTION "description"
#define WM_NOTE_MODEL "model"

#define WM_EXPERIMENT_NAME_MAX 100
#define WM_MODEL_CARD_MAX 65536 /* bytes of the file */

/* The value of a note; NULL where there is none. Borrowed. */
const char *wm_run_note(const struct wm_run *run, const char *key);

/* How often `run --repeat` started the command in this run, back to back; else 1. */
double wm_run_batch(const struct wm_run *run);

/* Whether it can be the name of an experiment, and so of a folder. */
int wm_experiment_check_name(const char *name, struct wm_error *err);

/* Whether `target` is, or is to be, a folder with a recording for each name. */
bool wm_experiment_is_folder(const char *target);

/* The recording of the experiment `name` at `target` for a run that is about to be
 * recorded there, the caller's to free: the target itself, or a folder in it, which is
 * made. WM_EINVAL for a format that holds one run only. */
int wm_experiment_make_place(const char *target, const char *name, char **ret_path,
                             struct wm_error *err);

/* What is known of a model; 0: unknown. */
struct wm_model_card {
    double parameters;
    double flops;  /* of one forward pass; a multiply-add is two */
    double passes; /* how many of them a run makes */
};

/* The file at `path` as compact JSON, the caller's to free. WM_EFORMAT, and which
 * member is wrong, for what is no model card. */
int wm_model_card_load(const char *path, char **ret_text, struct wm_error *err);

/* From there; what is damaged is unknown. */
struct wm_model_card wm_model_card_read(const char *text);

#endif
