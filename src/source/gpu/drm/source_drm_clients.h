/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_clients.h - who uses the GPUs: the DRM clients of all processes,
 * found in /proc/PID/fdinfo.
 *
 * What the search has found is read again at each reading.
 */
#ifndef WM_SOURCE_DRM_CLIENTS_H
#define WM_SOURCE_DRM_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "source/gpu/drm/source_drm_card.h"
#include "source/gpu/source_drm_text.h"
#include "source/source_traits.h"
#include "wattmeter/source.h"

/* Goes over the descriptors of all processes in search of DRM devices, piece by piece. No
 * list of a GPU's users is open to everybody, so each descriptor of each process has to be
 * looked at. That is expensive, and is therefore done between the readings, in at most a
 * hundredth of the time. */
struct wm_drm_search {
    bool started;             /* from here on `proc` means something */
    int proc;                 /* descriptor of /proc, or -1 */
    struct wm_error proc_err; /* why there is none */
    bool sees_all;            /* this /proc shows all processes of the machine */

    /* One round goes over all processes and their descriptors. */
    bool running;       /* a round is under way */
    unsigned round;     /* number of the one under way, or of the last */
    unsigned completed; /* rounds */
    int64_t round_ns, turn_ns;
    int64_t earned_ns; /* time that went by and is not paid for by searching */
    pid_t *pids;
    size_t pid_count, pid_next;
    int *numbers; /* of the descriptors of pids[pid_next - 1] */
    size_t number_count, number_next;

    /* In this round and in the last one: */
    size_t denied, denied_before;   /* processes that may not be read */
    bool left_out, left_out_before; /* there was more than there is room for */
};

/* Called for descriptor `number` of process `pid`, which is, or may be, a DRM
 * device; `node` is the last part of its path, "renderD128", or empty. */
typedef void wm_drm_found(void *context, pid_t pid, int number, const char *node);

/* A /proc that cannot be read is no failure: see proc_err. Release it in either
 * case; all zero is fine too. */
int wm_drm_search_init(struct wm_drm_search *search, const char *procfs,
                       struct wm_error *err);
void wm_drm_search_release(struct wm_drm_search *search);

/* Searches until a round is complete, which is when it returns true, or
 * `limit_ns` have passed. */
bool wm_drm_search_run(struct wm_drm_search *search, int64_t limit_ns, wm_drm_found *found,
                       void *context);

/* The same, for as long as the share of the time allows and only where a new
 * round is due. */
bool wm_drm_search_turn(struct wm_drm_search *search, wm_drm_found *found, void *context);

/* Most that are followed at a time. Beyond, the search says that it does not
 * know all. */
enum { WM_DRM_CLIENTS = 1024, WM_DRM_HANDLES = 4096 };

/* Drivers count an engine's time when work changes on it, some every few
 * milliseconds; over less than this a ratio would be noise. */
#define WM_DRM_WINDOW_NS (10 * WM_NS_PER_MS)

/* What engines are for. */
enum wm_drm_purpose {
    WM_DRM_DRAWS = 1 << 0,
    WM_DRM_COMPUTES = 1 << 1,
    WM_DRM_ENCODES = 1 << 2,
    WM_DRM_DECODES = 1 << 3,
    WM_DRM_ANYTHING = 1 << 4, /* of all */
};

/* One kind of engines of a GPU. */
struct wm_drm_gpu_engine {
    char name[WM_DRM_NAME];
    unsigned purpose; /* of enum wm_drm_purpose */
    bool in_cycles;   /* counted by the engine's clock, not in nanoseconds */
    uint64_t capacity;
};

/* A GPU, to be matched with its clients. */
struct wm_drm_gpu {
    const struct wm_drm_card *card; /* who it is: the caller's */
    bool wanted;                    /* else its clients are of no interest, now and later */

    /* What its clients do: after each wm_drm_clients_read(). */
    size_t client_count;
    bool counts_engines;   /* some client's engines were counted, now or before */
    bool counts_otherwise; /* some client's engines were reported, but not as times */
    bool counts_memory;    /* some client's memory was reported, now or before */
    bool is_silent;        /* it has users, but its driver reports nothing of them */
    bool has_utilization;
    double utilization;  /* of the busiest kind of engines, 0 to 1 */
    double memory_bytes; /* what all clients have resident; shared buffers twice */

    struct wm_drm_gpu_engine engines[WM_DRM_ENGINES];
    double busy[WM_DRM_ENGINES]; /* of each kind, in the last window */
    size_t engine_count;
    size_t silent; /* files of such users, in the round of search under way */
};

/* One open() of a device. dup() and fork() and passing it on make more handles
 * of it; it is given to the process with the lowest pid, which mostly is the
 * one that opened it. */
struct wm_drm_client {
    struct wm_drm_gpu *gpu; /* NULL: this place is free */
    bool has_id;
    uint64_t id;
    pid_t pid;
    int number; /* of the file descriptor in that process */
    int fd;     /* of its fdinfo, kept open; -1 where it is opened each time */
    int64_t read_ns;
    bool has_memory;
    uint64_t memory_bytes;

    bool has_busy;               /* it was known for long enough of the last window */
    double busy[WM_DRM_ENGINES]; /* engines it kept busy in that, by place as below */

    /* By place in the GPU's list of engines: how far they are, and were at the
     * start of the window. */
    bool fresh; /* found in this window */
    int64_t base_ns;
    struct wm_drm_count {
        uint64_t now, base;             /* busy */
        uint64_t clock_now, clock_base; /* of engines that are counted in cycles */
    } counts[WM_DRM_ENGINES];
};

/* What all clients of one process have of the engines of one GPU. */
struct wm_drm_process_use {
    const struct wm_drm_gpu *gpu;
    bool has_busy;                /* some of them were known for long enough */
    double busy[WM_DRM_ENGINES];  /* in the last window */
    double total[WM_DRM_ENGINES]; /* since they were opened: ns or cycles */
};

/* A file descriptor through which a client was seen. */
struct wm_drm_handle {
    pid_t pid;
    int number;
    size_t client;
    unsigned round; /* of search in which it was last there */
};

struct wm_drm_clients {
    struct wm_drm_search search;
    bool full, was_full; /* something had to be left out in this round of search, or
                            in the last one */
    int fds_left;        /* how many more clients may keep a file open */

    struct wm_drm_gpu *gpus;
    size_t gpu_count;

    struct wm_drm_client *clients;
    size_t client_end; /* places in use, with free ones between */
    struct wm_drm_handle *handles;
    size_t handle_count;

    int64_t window_ns; /* start of the window of the utilization */
    struct wm_gpu_process *processes;
    struct wm_drm_process_use *uses; /* by the place of their process */
    size_t process_count;
};

/* Starts on the clients of gpus[0..count), which stay the caller's and in their
 * place, in the /proc at `procfs`. A /proc that cannot be read is no failure,
 * see wm_drm_clients_limit(). Only WM_ENOMEM fails; release it in either case. */
int wm_drm_clients_init(struct wm_drm_clients *clients, const char *procfs,
                        struct wm_drm_gpu *gpus, size_t count, struct wm_error *err);
void wm_drm_clients_release(struct wm_drm_clients *clients);

/* Searches until a round is complete or `limit_ns` have passed. At the start, so
 * that there is something to read; later the reading does it. */
void wm_drm_clients_search(struct wm_drm_clients *clients, int64_t limit_ns);

/* Searches on for as long as it may, and reads what is known. */
void wm_drm_clients_read(struct wm_drm_clients *clients);

/* The share of the time in which the busiest kind of engines for that purpose was busy. */
double wm_drm_busiest(const struct wm_drm_gpu *gpu, const double *busy,
                      enum wm_drm_purpose purpose);

/* Whether the driver counts the time of the engines of this GPU, as far as its
 * clients tell: what was not counted then is 0. */
bool wm_drm_counts_engines(const struct wm_drm_gpu *gpu);

/* Whether the clients of the GPU that are known are all there are: WM_READING_OK, or the
 * state that a sum over them has, and then why in `ret_err`. */
enum wm_reading_state wm_drm_clients_limit(const struct wm_drm_clients *clients,
                                           const struct wm_drm_gpu *gpu,
                                           struct wm_error *ret_err);

/* UNSUPPORTED: the driver does not report this of a GPU's clients. */
enum wm_reading_state wm_drm_fail_clients(const struct wm_drm_gpu *gpu, const char *what,
                                          struct wm_error *ret_err);

#endif
