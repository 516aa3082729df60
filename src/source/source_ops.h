/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_ops.h - what a backend provides; nothing outside src/source sees it.
 *
 * To add a backend: copy source_battery.c, fill in one `const struct wm_source_ops`, and
 * name it in the list below. No other file changes, the command line included.
 */
#ifndef WM_SOURCE_OPS_H
#define WM_SOURCE_OPS_H

#include <stdbool.h>

#include "base/base_error.h"
#include "source/source_advice.h"
#include "source/source_traits.h"
#include "wattmeter/source.h"

/* A list that a reader can see, in the order in which the sources are opened and listed.
 * Backends that register themselves from constructors would save these lines and lose
 * both, and a static library would silently drop the ones nobody refers to. */
/* clang-format off */
#define WM_SOURCES(of) \
    of(host) \
    of(tree) \
    of(hwmon) \
    of(rapl) \
    of(nvml) \
    of(drm) \
    of(battery) \
    of(estimate)
/* clang-format on */

/* GPUs that were chosen: the place of each in its driver's order, and who it was then. */
struct wm_gpu_picks {
    struct wm_gpu_pick {
        size_t place;
        char identity[96];
    } * list;
    size_t count;
};

/* What open() has found; borrowed from the state, fixed until close(). All zero before. */
struct wm_source_found {
    const struct wm_channel *channels; /* those of one device stand together */
    size_t channel_count;
    size_t part_count;    /* for read_part(): each has as many channels, in order */
    const char *detail;   /* what is being read, for people; NULL: the name says it all */
    const char *left_out; /* which GPUs it was to read and cannot, and why; NULL: none */
    const char *denied;   /* why this user may not read all energy of CPUs and memory, or */
                          /* NULL */

    /* A counter of the source may overflow twice if nobody reads it for longer than this;
     * 0: none can. Where ticks are further apart the core reads the source in between. */
    int64_t unread_ns;
};

struct wm_source_ops {
    const char *name;
    const char *summary; /* one line, for people */
    struct wm_source_traits traits;

    /* What it cannot do without, ended by one without a pattern; and what else may be in
     * its way, for the doctor, who asks for it after the files. Both may be missing. */
    const struct wm_source_file *files;
    void (*advise)(const struct wm_source_case *asked);

    /* The core allocates this many zeroed bytes and passes them to each
     * function below as `state`. */
    size_t state_size;

    /* Finds the devices. `config` is complete: no path in it is NULL but
     * `nvml`, which is NULL where the loader shall search, `gpus` and `channels`. It is
     * valid during the call only. When open fails, close() is called on
     * whatever it has built so far, so there is nothing to undo in here. */
    int (*open)(void *state, const struct wm_source_config *config,
                struct wm_source_found *ret_found, struct wm_error *err);

    /* Tells a source of GPUs which of them to read; else all. Called before open(); the
     * list lives until close(). */
    void (*choose)(void *state, const struct wm_gpu_picks *picks);

    /* Fails where there is nothing that open() could open, and finds that out
     * without a call of the driver: most machines then do without the thread that
     * open() of a backend in parts takes. May be missing. */
    int (*look)(const struct wm_source_config *config, struct wm_error *err);

    /* Fills one reading per channel, in the order of the channels. The readings
     * of one device carry one and the same time: the moment just before the
     * device was asked, with what counters it has asked first. */
    int (*read)(void *state, struct wm_reading *readings, struct wm_error *err);

    /* Drivers hang. A backend that calls one provides read_part() instead of read():
     * open(), read_part() and close() are then called in threads that can be left
     * behind, and the tick goes on without them. A part is what can be read while
     * another part hangs, such as one GPU; what read_part() changes belongs to that
     * part alone, with what why() and gpu_processes() report of it. It fills in the
     * readings of that part's channels, readings[0] for the first of them. An expensive
     * call need not be made each time: its last reading stands, with its own time, until
     * the next one; a recording keeps a clock for each counter of joules. `is_end`: the
     * measurement begins or ends here, so every call is made. */
    void (*read_part)(void *state, size_t part, bool is_end, struct wm_reading *readings);

    /* Why the last reading of that channel was not ok, or NULL; a borrowed
     * text. Before the first reading: why none will be. May be missing. */
    const char *(*why)(const void *state, size_t channel);

    /* Copies the GPU processes found by the last read_part() of that part, as many as
     * there is room for, and returns how many there are; for backends in parts. Where
     * `*version` is that of the list nothing is copied: the caller has it. Else it is
     * set; it begins as 0, which is none. May be missing. */
    size_t (*gpu_processes)(const void *state, size_t part, unsigned *version,
                            struct wm_gpu_process *processes, size_t room);

    /* All devices of the machine, chosen or not, by the last reading. Asked beside
     * a read_part(). May be missing. */
    size_t (*device_count)(const void *state);

    /* Copes with any state that open() can leave, all zero included. */
    void (*close)(void *state);
};

#define WM_SOURCE_DECLARED(name) extern const struct wm_source_ops wm_source_##name;
WM_SOURCES(WM_SOURCE_DECLARED)

/* Which GPUs it was to read and cannot, and why; NULL: none. */
const char *wm_source_left_out(const struct wm_source *source);

/* wm_source_open() in two steps, with the GPUs that were chosen; NULL: all. The first does
 * not wait for a driver that may hang. The second returns 1 where the driver has not
 * answered by `deadline_ns`, and can be called again; after a failure of it
 * wm_source_close() is due. */
int wm_source_open_begin(const char *name, const struct wm_source_config *config,
                         const struct wm_gpu_picks *picks, struct wm_source **ret_source,
                         struct wm_error *err);
int wm_source_open_end(struct wm_source *source, int64_t deadline_ns, struct wm_error *err);

/* A reading in two steps, for source_set.c, which reads many sources at once. Whether a
 * source is asked in a thread of its own; of others wm_source_begin() asks nothing, and
 * wm_source_collect() all. See wm_source_set_collect() for the rest. */
bool wm_source_is_guarded(const struct wm_source *source);
void wm_source_begin(struct wm_source *source, bool is_end);
int wm_source_collect(struct wm_source *source, int64_t deadline_ns, int64_t oldest_ns,
                      struct wm_reading *readings, size_t count, struct wm_error *err);

/* How long a source may go unread before a counter of it overflows twice, and when it must
 * be read for that; INT64_MAX: its counters never do. wm_source_keep() reads it and drops
 * the readings. */
int64_t wm_source_unread_ns(const struct wm_source *source);
int64_t wm_source_keep_ns(const struct wm_source *source);
void wm_source_keep(struct wm_source *source);

/* CPU time used for the source's readings in other threads than the caller's. */
int64_t wm_source_cpu_ns(const struct wm_source *source);

#endif
