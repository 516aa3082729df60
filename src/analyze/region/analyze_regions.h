/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_regions.h - what the regions of a run cost: per name, and per path of the tree of
 * calls.
 *
 *     wm_regions_tick(regions, &totals, &timepoint);      each tick,
 *     wm_regions_edge(regions, &edge, paths);             then the edges around it,
 *     wm_regions_complete(regions, when_ns);              and up to when they are known
 *
 * Between two ticks a device is taken to run evenly, so what it used is given to a region
 * by the time that the region was open (any call of it, each moment once): that is all
 * that happened meanwhile, whoever did it. What a path has exclusively adds up over the
 * paths: each moment is shared evenly by the innermost open regions of all threads and the
 * calls that were started by themselves, and a moment without any belongs to none, which
 * is the rest.
 *
 * Whoever hands the same ticks and edges in gets the same figures to the last bit, however
 * the two are mixed and whatever the order of edges at one moment.
 */
#ifndef WM_ANALYZE_REGIONS_H
#define WM_ANALYZE_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/region/analyze_region_items.h"
#include "base/text/base_number.h"
#include "record/calls/record_calls.h"
#include "wattmeter/recording.h"

/*
 * How many joules of the CPU packages a second of CPU time takes.
 *
 * A model of the CPU says it. A measured idle power says it within its uncertainty. Else it
 * lies between what a machine takes that draws little when idle and one that draws much;
 * where the load varies enough, a line through all stretches narrows that.
 */

/* What the packages drew in a run, and what is known about them. */
struct wm_region_package {
    double joules, seconds, cores;
    double busy_s, tree_s;  /* CPU time of the machine, and of the tree */
    double tree_j;          /* the part of `joules` that the report gives to the tree */
    struct wm_known most_w; /* of a model, whose power depends on CPU time alone */
    struct wm_known idle_w; /* measured before the run */
    double idle_off_w;      /* the uncertainty of that */
    bool is_alone;          /* all energy of the tree is from the packages */
};

/* Sums for a line through the packages' energy and the machine's CPU time, stretch by
 * stretch. Starts all zero. */
struct wm_region_line {
    bool started;
    double joules, busy_s; /* where the last one ended */
    uint64_t count;
    double seconds, sum_j, sum_s, square_s, square_j, product;
};

/* `busy_s`: the machine's CPU time so far. */
void wm_region_line_take(struct wm_region_line *line, double seconds, double joules,
                         struct wm_known busy_s);

/* Joules per second of CPU time: an estimate, and the range that it lies in. */
struct wm_region_rates {
    double of[WM_REGION_RATES]; /* all 0: unknown */
    double mix;        /* one program may differ from another by this part of the rate */
    double residual_w; /* how far power may vary without a change of CPU time */
};

struct wm_region_rates wm_region_rates_of(const struct wm_region_package *package,
                                          const struct wm_region_line *line);

/* Edges come to be known within this time (a thread is waited for a second, and a recording
 * for five). So many ticks as there are in it wait for theirs, within these
 * bounds; one that waits longer is taken in without, and edges that are earlier count from
 * it on. */
#define WM_REGIONS_WAIT_NS INT64_C(8000000000)
#define WM_REGIONS_WAITING_LEAST 256
#define WM_REGIONS_WAITING_MOST 16384

struct wm_regions;

/* `interval_ns` is that between two ticks. Paths from number `most_paths` on are taken
 * together: WM_REGIONS_MOST in a report. With more of them, WM_BLOCKS_MOST, timepoints are
 * summed up for names only, as nobody asks for those of paths then. */
int wm_regions_new(int64_t interval_ns, uint32_t most_paths,
                   struct wm_regions **ret_regions, struct wm_error *err);

/* Accepts NULL. */
void wm_regions_free(struct wm_regions *regions);

/* The next edge in the order of time; later than the last wm_regions_complete(). `process`
 * is the number that no other process has. WM_ENOMEM is the only failure, and the same edge
 * may come again after it. */
int wm_regions_edge(struct wm_regions *regions, const struct wm_region_edge *edge,
                    uint32_t process, const struct wm_region_paths *paths);

/* What has been used up to a tick, as running totals. */
struct wm_region_totals {
    int64_t when_ns;
    unsigned known;    /* WM_REGION_BIT() of each resource that is known at this tick */
    unsigned measured; /* WM_REGION_BIT() of each resource that anybody measures */
    double used[WM_REGION_RESOURCES];
    double period_s[WM_REGION_RESOURCES]; /* of its slowest sensor */
    struct wm_known busy_s;               /* CPU time of the machine */
};

/* Keeps a tick until the edges up to it are known; those that are later come after it.
 * One of the two may be NULL. Allocates nothing. */
void wm_regions_tick(struct wm_regions *regions, const struct wm_region_totals *totals,
                     const struct wm_timepoint *timepoint);

/* Whether more than half of those that can be kept are: no more are to come before edges.
 */
bool wm_regions_is_behind(const struct wm_regions *regions);

/* All edges up to that time have been handed in. */
void wm_regions_complete(struct wm_regions *regions, int64_t when_ns);

/* The first tick was at `when_ns`: calls that began before it, as one may a little, count
 * from then on. Without it all count as they are. */
void wm_regions_begin(struct wm_regions *regions, int64_t when_ns);

/* The run ended at `when_ns`. Edges and a last tick that are later may come still: they
 * count as calls, and with the time that these took, and tell what was used up to the end;
 * but no region has time after it. */
void wm_regions_end(struct wm_regions *regions, int64_t when_ns);

struct wm_region_cost {
    double seconds;
    struct wm_region_use uses[WM_REGION_RESOURCES];
};

/* A name or a path; belongs to the regions. */
struct wm_region_figures {
    const char *name;
    const struct wm_block *block;
    size_t of_name;  /* number of the name that a path has */
    uint32_t parent; /* number of the path around a path */
    uint32_t depth;
    bool is_free;
    uint64_t openings; /* times from no call open to one at least */
    uint64_t clocked;  /* calls of which the thread's own clock tells the CPU time */
    struct wm_region_cost inclusive, exclusive;
};

/* What there is of timepoints and calls up to now, of which the figures below tell. */
const struct wm_blocks *wm_regions_blocks(struct wm_regions *regions);

/* What there is by now. */
struct wm_regions_facts {
    size_t paths, names;
    size_t threads, processes; /* those that had a region open */
    uint64_t folded;           /* calls that their thread's others were taken with */
    uint64_t early;            /* calls that began well before the first tick */
    int64_t now_ns;            /* up to when regions have time */
};

struct wm_regions_facts wm_regions_facts(const struct wm_regions *regions);

/* Finds the CPU time of all paths and names by what the threads' own clocks told of their
 * calls; until then, and where no call is clocked, it is divided by time as all else is.
 * The energies of packages and of the tree follow it, by what is known of the packages;
 * NULL: they do not. WM_ENOMEM is the only failure. */
int wm_regions_clock(struct wm_regions *regions, const struct wm_region_whole *wholes,
                     const struct wm_region_package *package);

/* Everything up to now of path number `path`, which is that from which on they are taken
 * together for those; false where no call had it. `wholes` is what was used in all, which
 * the exclusive parts of all paths and the rest add up to; one for each resource. */
bool wm_regions_path(const struct wm_regions *regions, uint32_t path,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures);

/* The same of a name, which is below the number of names. */
void wm_regions_name(const struct wm_regions *regions, size_t name,
                     const struct wm_region_whole *wholes,
                     struct wm_region_figures *ret_figures);
void wm_regions_rest(const struct wm_regions *regions, const struct wm_region_whole *wholes,
                     struct wm_region_cost *ret_rest);

/*
 * Stored calls as edges in the order of time: from a stream that is
 * ordered by starts, with a heap of the stops that are still to come. So the memory is that
 * of the calls that are open at once.
 *
 *     while ((status = wm_edges_next(edges, &edge, &process, err)) > 0)
 *         take(&edge, process);
 */

struct wm_edges;

/* `calls` stays the caller's and lives as long as the result. `are_told`: the calls have
 * times of their own, which their edges tell, and one that never ended is
 * WM_REGION_UNFINISHED. */
int wm_edges_new(struct wm_calls *calls, bool are_told, struct wm_edges **ret_edges,
                 struct wm_error *err);

/* Accepts NULL. */
void wm_edges_free(struct wm_edges *edges);

/* 1 and `ret_edge`, with the process of a call that opens; 0 past the last one. At equal
 * times calls open before others close; a call that stops before it starts is closed where
 * it starts. WM_EFORMAT when the calls are not in order. */
int wm_edges_next(struct wm_edges *edges, struct wm_region_edge *ret_edge,
                  uint32_t *ret_process, struct wm_error *err);

#endif
