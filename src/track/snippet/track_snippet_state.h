/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet_state.h - the meter itself, for the files that its functions are in:
 * track_snippet.c (open, close, snippets, what has to be read in between) and
 * track_snippet_series.c (rows in the course of time).
 */
#ifndef WM_TRACK_SNIPPET_STATE_H
#define WM_TRACK_SNIPPET_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "track/snippet/track_snippet_file.h"
#include "track/snippet/track_snippet_window.h"

struct wm_snippet {
    uint32_t slot, generation; /* its id: a number that is used again has another one */
    bool is_open;
    bool is_ours; /* of a wm_meter_run() */
    struct wm_snippet *next, *previous;
    char *name;
    size_t name_room;
    struct wm_meter_window *window;
    struct wm_meter_energy devices[]; /* what came of it */
};

struct wm_meter_series;

struct wm_meter {
    pid_t owner; /* a child that the program forks is not to touch it */
    int64_t interval_ns;
    enum wm_record_mode mode;
    bool seed_format;

    /* Guards all from here to the next blank line. */
    pthread_mutex_t lock;
    struct wm_meter_inputs *inputs;
    struct wm_snippet **slots; /* all snippets ever made, open or not */
    size_t slot_count, slot_room;
    struct wm_snippet *open;  /* a list */
    struct wm_snippet *spare; /* the same of those that can be used again, by `next` */
    struct wm_meter_series *series;
    bool is_parked;  /* the sampler waits until it is woken, */
    int64_t step_ns; /* or for as long as this */
    bool is_ending;

    /* Of `file`, which is NULL where there is none. Taken after `lock`, or alone. */
    pthread_mutex_t file_lock;
    struct wm_meter_file *file;

    pthread_cond_t wake; /* the sampler */
    pthread_t sampler;
    bool has_sampler; /* under the lock too, but when the meter is closed */
};

/* In track_snippet.c, under the lock. Reads the devices, and begins to measure. */
int wm_meter_begin(struct wm_meter *meter, const char *name, bool is_ours,
                   struct wm_snippet **ret_snippet, struct wm_error *err);

/* Takes the snippet out of the open ones, so that it is not read any more, and gives
 * it back for another one. */
void wm_meter_detach(struct wm_meter *meter, struct wm_snippet *snippet);
void wm_meter_recycle(struct wm_meter *meter, struct wm_snippet *snippet);

/* WM_EINVAL where the meter belongs to our parent. */
int wm_meter_check_owner(const struct wm_meter *meter, struct wm_error *err);

#endif
