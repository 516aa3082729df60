/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_snippet.h - what a meter is made of, for the files that its functions are in:
 * track_snippet.c (open, close, snippets, what has to be read in between),
 * track_snippet_inputs.c (the devices), track_snippet_window.c (their joules over one
 * stretch of time), track_snippet_series.c (rows in the course of time) and
 * track_snippet_file.c (CSV).
 */
#ifndef WM_TRACK_SNIPPET_H
#define WM_TRACK_SNIPPET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyze/energy/analyze_energy.h"
#include "analyze/energy/analyze_uncertainty.h"
#include "base/base_error.h"
#include "source/set/source_set.h"
#include "wattmeter/energy.h"

/* A CPU package, its memory or a GPU. */
struct wm_meter_input {
    struct wm_meter_device told;

    /* Of the last round; NULL: it has no such channel. */
    const struct wm_reading *counter, *power, *utilization, *temperature;
    struct wm_sensor counter_sensor, power_sensor;
    bool is_elsewhere; /* a GPU whose power another device measures */
    bool is_left_out;  /* and which is not in the sum over GPUs for that reason */

    /* Its counter. */
    bool is_alive;   /* it has been seen to move, and not to stand still since */
    bool has_worked; /* the same, but that a single reading failed is forgiven */
    bool is_counted; /* `count` is what it said last, and `moved_ns` since when */
    double count;
    int64_t moved_ns;
    struct wm_sensor_pace pace; /* and how often it has something new */
};

/* The devices that a meter reads, from whichever sources know them, all in one round. All
 * of it is read by others, and changed by the functions below alone. One thread at a time.
 */
struct wm_meter_inputs {
    struct wm_source_set *sources;
    struct wm_reading *readings; /* of the last round, one per channel, */
    int64_t when_ns;             /* and when that was */

    struct wm_meter_input *list; /* the devices, in the order of their sources */
    size_t count;

    /* Why there is no device of the CPU or memory, or no GPU: of the sources that would
     * not open. */
    struct wm_error no_cpu, no_gpu;
    char remark[1024]; /* see wm_meter_remark() */
};

/* Opens the sources and reads them once. The close is due after a failure too. */
int wm_meter_inputs_open(const struct wm_meter_options *options,
                         struct wm_meter_inputs *inputs, struct wm_error *err);
void wm_meter_inputs_close(struct wm_meter_inputs *inputs);

/* Reads all inputs. `is_end`: a snippet begins or ends (source_ops.h). Waits 0.1 s for a
 * driver that hangs. */
void wm_meter_inputs_read(struct wm_meter_inputs *inputs, bool is_end);

/* Whether power has to be integrated for the device, as its counter is missing, or
 * is not known to work. */
bool wm_meter_input_needs_power(const struct wm_meter_input *input);

/* Whether a device has to be read all the time, and not at both ends only: for its
 * power, or as its sensor sees a part of the time. Then how far values differ, and how
 * busy the device is all along, says how far off the joules may be. */
bool wm_meter_inputs_need_steps(const struct wm_meter_inputs *inputs);

/* Copies a reason, or as many of its words as fit and "...". */
void wm_meter_why(char *out, size_t size, const char *text);

/* How things stand at a moment. What is not known has another state than WM_READING_OK. */
struct wm_meter_gauges {
    struct wm_reading utilization; /* ratio */
    struct wm_reading temperature; /* celsius */
    struct wm_reading power;       /* W */
};

/* What one device took over a snippet. */
struct wm_meter_span {
    struct wm_energy energy;
    struct wm_reading first_counter, first_power; /* until there is a second reading */
    struct wm_uncertainty uncertainty;            /* of the joules last told of it */
    struct wm_meter_energy told;
    struct wm_meter_gauges gauges; /* of a GPU, at a row of a wm_meter_run() */
};

struct wm_snippet {
    const struct wm_meter_inputs *inputs;
    uint32_t slot, generation; /* its id: a number that is used again has another one */
    bool is_open;
    bool is_ours;            /* of a wm_meter_run() */
    bool is_checked;         /* power is read beside counters that need it not */
    bool is_finished;        /* for the file */
    struct wm_snippet *next; /* of those that can be used again */
    char *name;
    size_t name_room;

    int64_t first_ns, last_ns;
    struct wm_meter_reading told;
    struct wm_meter_gauges cpu, gpu; /* of all CPUs and all GPUs, at a row */
    struct wm_meter_span spans[];    /* one per device */
};

/* A snippet takes the last round of readings as its first one, and later rounds, any number
 * of them:
 *
 *     wm_snippet_begin(snippet);
 *     wm_snippet_add(snippet, false);
 *     wm_snippet_add(snippet, true);
 *     wm_snippet_tell(snippet);
 *
 * The counter of a device that is known to work needs no power beside it, and must
 * not have it from two moments only: seen before and after a short burst, power makes
 * the burst look impossible. In the end it tells what each device took from the first
 * reading to the last, and all of them. */
void wm_snippet_begin(struct wm_snippet *snippet);
void wm_snippet_add(struct wm_snippet *snippet, bool is_last);
void wm_snippet_tell(struct wm_snippet *snippet);

struct wm_meter {
    pid_t owner; /* a child that the program forks is not to touch it */
    int64_t interval_ns;
    enum wm_record_mode mode;
    bool seed_format;

    /* Guards all from here to the next blank line. */
    pthread_mutex_t lock;
    struct wm_meter_inputs inputs;
    struct wm_snippet **slots; /* all snippets ever made, open or not */
    size_t slot_count, slot_room;
    size_t open_count;
    struct wm_snippet *spare; /* a list */
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

/* Under the lock. Reads the devices, and begins to measure. */
int wm_meter_begin(struct wm_meter *meter, const char *name, bool is_ours,
                   struct wm_snippet **ret_snippet, struct wm_error *err);

/* Takes the snippet out of the open ones, so that it is not read any more, and gives
 * it back for another one. */
void wm_meter_detach(struct wm_meter *meter, struct wm_snippet *snippet);
void wm_meter_recycle(struct wm_meter *meter, struct wm_snippet *snippet);

/* What a snippet takes in memory. */
size_t wm_meter_snippet_size(const struct wm_meter *meter);

/* WM_EINVAL where the meter belongs to our parent. */
int wm_meter_check_owner(const struct wm_meter *meter, struct wm_error *err);

/* A CSV file of a meter, which docs/measure-a-snippet.md explains. It grows by a row at a
 * time, each of which is in it when it has been written: who is killed loses the one at
 * work at most. One thread at a time. */
struct wm_meter_file;

/* Of snippets, or of a wm_meter_run(). The inputs are borrowed. WM_EEXIST: the file is
 * there and may not be, somebody else writes it, or it has another header. */
int wm_meter_file_open(const struct wm_meter *meter, const char *path, bool is_series,
                       struct wm_meter_file **ret_file, struct wm_error *err);

/* WM_EIO where rows are missing. Accepts NULL. */
int wm_meter_file_close(struct wm_meter_file *file, struct wm_error *err);

/* The same before the first row: a file that was not there before goes away. */
void wm_meter_file_abandon(struct wm_meter_file *file);

/* A row of what is reported of the snippet. One that cannot be written is as if it had
 * never been begun. */
int wm_meter_file_write(struct wm_meter_file *file, const struct wm_snippet *snippet,
                        struct wm_error *err);

#endif
