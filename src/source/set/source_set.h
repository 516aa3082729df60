/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_set.h - the sources that are open together: by one choice of GPUs, with all
 * their channels in one list, read in one round.
 *
 *     const struct wm_source_config config = { .gpus = "0,2" };
 *     wm_source_set_new(&config, 0, &set, &err);
 *     wm_source_set_open(set, "rapl", &err);
 *     wm_source_set_open(set, "nvml", &err);
 *     struct wm_reading *readings = calloc(wm_source_set_channel_count(set), ...);
 *     int64_t begun_ns = wm_source_set_begin(set, false);           each round
 *     do_something_else();
 *     wm_source_set_collect(set, begun_ns + patience_ns, begun_ns, readings);
 *     wm_source_set_close(set);
 *
 * One thread at a time.
 */
#ifndef WM_SOURCE_SET_H
#define WM_SOURCE_SET_H

#include <stdbool.h>

#include "base/base_error.h"
#include "wattmeter/source.h"

/* How long wm_source_open() waits for a driver: one that nothing keeps loaded may take
 * seconds to start. */
#define WM_SOURCE_OPEN_S 10

/* wm_source_open(), with another patience for a driver that does not answer. */
int wm_source_open_within(const char *name, const struct wm_source_config *config,
                          int patience_s, struct wm_source **ret_source,
                          struct wm_error *err);

struct wm_source_set;

/* `config` is copied, and goes to each source, with its GPUs in words of wm_gpu_select():
 * one choice over the GPUs of all vendors, of which each source is given its own. For
 * "visible" the environment of process `viewer` decides, or our own where that is 0. */
int wm_source_set_new(const struct wm_source_config *config, pid_t viewer,
                      struct wm_source_set **ret_set, struct wm_error *err);

/* Closes all sources. Accepts NULL. */
void wm_source_set_close(struct wm_source_set *set);

/* Chooses the GPUs, where all of them have to be listed for that. The first opening does
 * it, if nobody has. WM_EINVAL: a word is wrong. */
int wm_source_set_choose(struct wm_source_set *set, struct wm_error *err);

/* Opens the source called so and adds it. WM_EEXIST: it is in the set already; else as
 * wm_source_open() fails, or for the reason why none of its GPUs is chosen. */
int wm_source_set_open(struct wm_source_set *set, const char *name, struct wm_error *err);

/* The same, but its driver is waited for until CLOCK_MONOTONIC reaches `deadline_ns`. 1:
 * the driver has not answered, and the source is pending. */
int wm_source_set_open_until(struct wm_source_set *set, const char *name,
                             int64_t deadline_ns, struct wm_error *err);

/* When the driver of the first pending source was asked to start; 0: none is pending. */
int64_t wm_source_set_pending_since(const struct wm_source_set *set);

/* Waits until `deadline_ns` for the drivers of the pending sources, and returns whether all
 * have answered. */
bool wm_source_set_await(struct wm_source_set *set, int64_t deadline_ns);

/* Adds the first of the pending sources to the set, behind the others; `ret_name` is set in
 * any case. Fails as wm_source_open() does, with which the source is gone. 1: its driver
 * had not answered when it was last waited for, and the source is closed. */
int wm_source_set_take_pending(struct wm_source_set *set, const char **ret_name,
                               struct wm_error *err);

/* Closes the source that was added last. */
void wm_source_set_drop_last(struct wm_source_set *set);

/* A source of the set. */
struct wm_source_member {
    const char *name;
    struct wm_source *source;
    size_t first_channel; /* where its channels begin in the list of all */
};

size_t wm_source_set_count(const struct wm_source_set *set);

/* `index` is below that count. */
const struct wm_source_member *wm_source_set_member(const struct wm_source_set *set,
                                                    size_t index);

/* The channels of all sources, in the order in which these were added. `index` is below
 * the count. */
size_t wm_source_set_channel_count(const struct wm_source_set *set);
const struct wm_channel *wm_source_set_channel(const struct wm_source_set *set,
                                               size_t index);

/* Whether a source of the set can read the energy or the power of all CPUs that it knows.
 */
bool wm_source_set_has_cpu_energy(const struct wm_source_set *set);

/* GPUs. */
struct wm_source_gpu_count {
    size_t read;  /* by the sources */
    size_t there; /* in the machine, as far as these sources know */
};

/* By one source; and by all of them, where after a choice GPUs of a source count that has
 * none of the chosen ones. */
struct wm_source_gpu_count wm_source_gpu_count(const struct wm_source *source);
struct wm_source_gpu_count wm_source_set_gpu_count(const struct wm_source_set *set);

/* Why this user may not read all the energy of CPUs or memory that the source has; NULL:
 * all of it may be read. */
const char *wm_source_denied(const struct wm_source *source);

/* Which GPUs the source leaves out that was to read all of its, and why; NULL: none. */
const char *wm_source_set_left_out(const struct wm_source_set *set,
                                   const struct wm_source_member *member);

/* What is to be said about the choice of GPUs, or NULL. */
const char *wm_source_set_remark(const struct wm_source_set *set);

/* Whether that is, among others, that one of the chosen does not answer. */
bool wm_source_set_lacks_gpus(const struct wm_source_set *set);

/* A round of readings: the drivers that may hang are asked, and answer while the caller
 * does something else. `is_end`: a measurement begins or ends (source_ops.h). Returns when
 * they were asked. */
int64_t wm_source_set_begin(struct wm_source_set *set, bool is_end);

/* Reads all other sources, then waits until CLOCK_MONOTONIC reaches `deadline_ns` for the
 * drivers. One that has not answered by then goes by what it answered last, if it was
 * asked for that at `oldest_ns` or later and does not hang since (base_guard.h); such
 * readings keep their time. Else its readings are WM_READING_STALE, at the time when it
 * was asked in vain. One reading for each channel. */
void wm_source_set_collect(struct wm_source_set *set, int64_t deadline_ns,
                           int64_t oldest_ns, struct wm_reading *readings);

/* The two parts of it: all other sources, and the drivers. */
void wm_source_set_read(struct wm_source_set *set, struct wm_reading *readings);
void wm_source_set_wait(struct wm_source_set *set, int64_t deadline_ns, int64_t oldest_ns,
                        struct wm_reading *readings);

/* How far apart rounds may be so that no counter overflows twice; INT64_MAX: any time. */
int64_t wm_source_set_unread_ns(const struct wm_source_set *set);

/* When the next source must be read for that, even if no round is due; INT64_MAX: never.
 * wm_source_set_keep() reads the sources that are due by `now_ns`. */
int64_t wm_source_set_keep_ns(const struct wm_source_set *set);
void wm_source_set_keep(struct wm_source_set *set, int64_t now_ns);

/* Why the last reading of a channel was not WM_READING_OK, or NULL. */
const char *wm_source_set_why(const struct wm_source_set *set, size_t index);

/* CPU time that the sources' own threads have used for readings. */
int64_t wm_source_set_cpu_ns(const struct wm_source_set *set);

#endif
