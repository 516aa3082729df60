/* SPDX-License-Identifier: Apache-2.0 */
/* track_regions.c - drains the rings; see track_regions.h. */
#include "track/track_regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_array.h"
#include "base/base_clock.h"
#include "base/base_error.h"
#include "region/drain/region_inbox.h"
#include "region/mark/region_local.h"

/* Calls that are given to the recorder at a time. */
enum { BATCH_MAX = 512 };

/* Edges that are kept for takers that are not there yet: 32 MiB of them. When an eighth of
 * it is taken, short calls are folded however slowly they come. */
enum { KEPT_MAX = 1 << 18, KEPT_MANY = KEPT_MAX / 8 };

/* So many ticks without any ring are worked off at once: each by itself would cost many
 * times as much, as by the next tick all that it needs has left the caches. */
enum { IDLE_TICKS = 128 };

_Static_assert(IDLE_TICKS < WM_REGIONS_WAITING_LEAST, "the analysis keeps them until then");

/* How long the rings are left alone for a recording that has no room and makes none, while
 * programs wait for room in full rings: the ticks have to wait as well. At the end nobody
 * waits any more, and a disk that is slow is waited for where one that fails is not. */
#define HOLD_NS (5 * WM_NS_PER_S)
#define HOLD_AT_END_NS (30 * WM_NS_PER_S)
#define HOLD_FAILING_NS (2 * WM_NS_PER_S)
#define HOLD_STEP_NS WM_NS_PER_MS

_Static_assert(HOLD_NS < WM_REGIONS_WAIT_NS, "ticks wait for edges that are held");

/* The recorder is given the calls that are over at least so often, however long the time
 * between two ticks is. It writes at least twice a second, so that a call which ended a
 * second before the tracker is killed is in the recording, with a quarter of a second to
 * spare for the writing. */
#define GIVE_NS (250 * WM_NS_PER_MS)

/* How often rings are drained that can no longer ask for it. */
#define CUT_OFF_STEP_NS (10 * WM_NS_PER_MS)

struct wm_track_regions {
    struct wm_region_inbox *inbox;
    struct wm_region_target *before; /* the inbox that this process's regions went to
                                      * before; NULL: none */
    struct wm_region_calls *calls;
    struct wm_regions *costs;     /* of the analysis; NULL: it is not there yet */
    struct wm_recorder *recorder; /* NULL: none */

    struct kept {
        struct wm_region_edge edge;
        struct wm_region_fold fold; /* that it points to */
    } * kept;
    size_t kept_count, kept_room, kept_done; /* `kept_done` of them have been handed out */

    struct wm_region_record batch[BATCH_MAX];
    struct wm_region_fold folds[BATCH_MAX];
    size_t count, fold_count;
    bool has_room;           /* for that batch */
    uint32_t paths, threads; /* how many the recorder has been given */

    int64_t held_ns;     /* since when the recording has had no room, or 0 */
    int64_t hold_max_ns; /* how long that is borne */
    bool is_holding;     /* the last draining stopped for want of that room */
    bool has_more;       /* the last draining stopped at its deadline */

    int64_t looked_ns; /* when the rings were last drained */
    int idle_ticks;    /* since the last draining */
};

int wm_track_regions_new(struct wm_track_regions **ret_regions, struct wm_error *err)
{
    struct wm_track_regions *regions = calloc(1, sizeof(*regions));
    if (!regions)
        return wm_fail_memory(err, "tracker");
    regions->hold_max_ns = HOLD_NS;

    int status = wm_region_calls_new(&regions->calls, err);
    if (status == WM_OK)
        status = wm_region_inbox_new(&regions->inbox, err);
    if (status < 0) {
        wm_track_regions_free(regions);
        return status;
    }
    *ret_regions = regions;
    return WM_OK;
}

void wm_track_regions_free(struct wm_track_regions *regions)
{
    if (!regions)
        return;
    if (regions->inbox)
        wm_region_restore(wm_region_inbox_path(regions->inbox), regions->before);
    wm_region_calls_free(regions->calls);
    wm_region_inbox_free(regions->inbox);
    free(regions->kept);
    free(regions);
}

const char *wm_track_regions_path(const struct wm_track_regions *regions)
{
    return wm_region_inbox_path(regions->inbox);
}

int wm_track_regions_listen(struct wm_track_regions *regions, struct wm_error *err)
{
    regions->before = wm_region_keep();
    return wm_region_listen(wm_region_inbox_path(regions->inbox), err);
}

int wm_track_regions_open(struct wm_track_regions *regions, struct wm_error *err)
{
    return wm_region_inbox_open(regions->inbox, err);
}

int wm_track_regions_set_takers(struct wm_track_regions *regions,
                                struct wm_analysis *analysis, struct wm_recorder *recorder,
                                struct wm_error *err)
{
    regions->recorder = recorder;
    return wm_analysis_regions_start(analysis, &regions->costs, err);
}

/* Whether the recording has to be waited for, with which draining stops. */
static bool hold(struct wm_track_regions *regions)
{
    int64_t now_ns = wm_clock_monotonic_ns(), most_ns = regions->hold_max_ns;

    if (regions->held_ns == 0)
        regions->held_ns = now_ns;
    if (most_ns > HOLD_FAILING_NS && wm_recorder_is_failing(regions->recorder))
        most_ns = HOLD_FAILING_NS;
    regions->is_holding = now_ns - regions->held_ns < most_ns;
    return regions->is_holding;
}

static void give_batch(struct wm_track_regions *regions)
{
    const struct wm_region_calls *calls = regions->calls;
    const struct wm_region_batch batch = {
        .paths = wm_region_calls_path(calls, regions->paths),
        .threads = wm_region_calls_thread(calls, regions->threads),
        .first_path = regions->paths,
        .first_thread = regions->threads,
        .path_count = (uint32_t)wm_region_calls_path_count(calls) - regions->paths,
        .thread_count = (uint32_t)wm_region_calls_thread_count(calls) - regions->threads,
        .calls = regions->batch,
        .folds = regions->folds,
        .call_count = regions->count,
    };

    if (!regions->recorder || batch.path_count + batch.thread_count + batch.call_count == 0)
        return;
    regions->paths += batch.path_count;
    regions->threads += batch.thread_count;
    regions->count = regions->fold_count = 0;
    regions->has_room = false;
    wm_recorder_regions(regions->recorder, &batch);
}

/* Room for a whole batch is made sure of before its first call is in it: for as long as it
 * is not given away the room does not get less. */
static bool find_room(struct wm_track_regions *regions)
{
    if (regions->has_room)
        return true;
    if (wm_recorder_has_room(regions->recorder, BATCH_MAX))
        regions->held_ns = 0;
    else if (hold(regions))
        return false;
    regions->has_room = true;
    return true;
}

static const struct wm_region_path *find_path(const void *calls, uint32_t path)
{
    return wm_region_calls_path(calls, path);
}

/* WM_EIO: the recording has to be waited for, and the same edge comes again. */
static int hand_out(struct wm_track_regions *regions, const struct wm_region_edge *edge)
{
    const struct wm_region_paths paths = { .find = find_path, .context = regions->calls };
    bool is_over = edge->kind != WM_REGION_OPENS;

    if (is_over && regions->recorder && !find_room(regions))
        return WM_EIO;
    uint32_t process = wm_region_calls_thread(regions->calls, edge->thread)->process;
    int status = wm_regions_edge(regions->costs, edge, process, &paths);
    if (status < 0 || !is_over || !regions->recorder)
        return status;
    regions->batch[regions->count++] = (struct wm_region_record) {
        .start_ns = edge->start_ns,
        .stop_ns = edge->when_ns,
        .path = edge->path,
        .thread = edge->thread,
        .is_open = edge->kind == WM_REGION_BREAKS_OFF,
        .clocked = edge->clocked,
        .fold = edge->fold ? (uint32_t)regions->fold_count + 1 : 0,
    };
    if (edge->fold)
        regions->folds[regions->fold_count++] = *edge->fold;
    if (regions->count == BATCH_MAX)
        give_batch(regions);
    return WM_OK;
}

bool wm_track_regions_has_room(const struct wm_track_regions *regions)
{
    return regions->kept_count < KEPT_MAX;
}

static int keep(struct wm_track_regions *regions, const struct wm_region_edge *edge)
{
    if (!wm_track_regions_has_room(regions) ||
        wm_array_reserve(&regions->kept, regions->kept_count, &regions->kept_room,
                         sizeof(*regions->kept)) < 0)
        return WM_ENOMEM;
    struct kept *kept = &regions->kept[regions->kept_count++];
    *kept = (struct kept) { .edge = *edge };
    if (edge->fold)
        kept->fold = *edge->fold;
    return WM_OK;
}

static int take_edge(void *context, const struct wm_region_edge *edge)
{
    struct wm_track_regions *regions = context;

    return regions->costs ? hand_out(regions, edge) : keep(regions, edge);
}

static int hand_out_kept(struct wm_track_regions *regions, int64_t until_ns)
{
    int status = WM_OK;

    while (status == WM_OK && regions->kept_done < regions->kept_count &&
           regions->kept[regions->kept_done].edge.when_ns <= until_ns) {
        struct kept *kept = &regions->kept[regions->kept_done];
        kept->edge.fold = kept->fold.calls > 0 ? &kept->fold : NULL;
        status = hand_out(regions, &kept->edge);
        regions->kept_done += status == WM_OK;
    }
    return status;
}

static int take_event(void *context, const struct wm_region_event *event)
{
    struct wm_track_regions *regions = context;

    return wm_region_calls_event(regions->calls, event, take_edge, regions);
}

/* Up to `ret_complete_ns`, unless it had to stop. */
static int drain(struct wm_track_regions *regions, bool is_last, int64_t deadline_ns,
                 int64_t *ret_complete_ns, struct wm_error *err)
{
    regions->is_holding = false;
    regions->has_more = false;
    wm_region_inbox_fold_all(regions->inbox,
                             regions->held_ns != 0 ||
                                 (!regions->costs && regions->kept_count > KEPT_MANY));
    int status = regions->costs ? hand_out_kept(regions, INT64_MAX) : WM_OK;
    if (status < 0)
        return wm_fail(err, status, "out of memory");
    status = wm_region_inbox_drain(regions->inbox, is_last, deadline_ns, take_event,
                                   regions, ret_complete_ns, err);
    regions->has_more = status > 0;
    if (regions->before && !wm_region_inbox_is_idle(regions->inbox))
        wm_region_report_other(regions->before);
    if (regions->count > 0)
        give_batch(regions);
    if (status >= 0 && regions->costs)
        wm_regions_complete(regions->costs, *ret_complete_ns);
    return status;
}

void wm_track_regions_drain(struct wm_track_regions *regions, int64_t deadline_ns)
{
    int64_t complete_ns;

    regions->looked_ns = wm_clock_monotonic_ns();
    regions->idle_ticks = 0;

    /* Ticks that are ahead of the edges by more than can be kept would do harm. */
    if (regions->costs && wm_regions_is_behind(regions->costs))
        deadline_ns = INT64_MAX;
    drain(regions, false, deadline_ns, &complete_ns, NULL);
}

void wm_track_regions_tick(struct wm_track_regions *regions, int64_t deadline_ns)
{
    if (wm_region_inbox_is_idle(regions->inbox) && ++regions->idle_ticks < IDLE_TICKS) {
        regions->looked_ns = wm_clock_monotonic_ns();
        return;
    }
    wm_track_regions_drain(regions, deadline_ns);
}

/* Until the recorder is to be given what there is. */
static int64_t until_giving(const struct wm_track_regions *regions)
{
    int64_t passed_ns = wm_clock_monotonic_ns() - regions->looked_ns;

    if (!regions->recorder)
        return INT64_MAX;
    return passed_ns < GIVE_NS ? GIVE_NS - passed_ns : 0;
}

int wm_track_regions_fd(const struct wm_track_regions *regions, int64_t *ret_wait_ns)
{
    if (regions->has_more) {
        *ret_wait_ns = 0;
    } else if (regions->is_holding) {
        *ret_wait_ns = HOLD_STEP_NS;
    } else if (wm_region_inbox_trouble(regions->inbox)->is_cut_off) {
        *ret_wait_ns = CUT_OFF_STEP_NS;
    } else {
        *ret_wait_ns = until_giving(regions);
        return wm_region_inbox_fd(regions->inbox);
    }
    return -1;
}

static void wait_a_moment(void)
{
    const struct timespec moment = { .tv_nsec = HOLD_STEP_NS };

    nanosleep(&moment, NULL);
}

/* What could not be taken at the end is not counted: nobody has read it. */
static void remark(struct wm_result *result, int status, const struct wm_error *err)
{
    if (status < 0)
        snprintf(result->regions_note, sizeof(result->regions_note), "%s missing: %.150s",
                 status == WM_ENOMEM ? "the last ones are" : "some may be", err->text);
}

/* What has been in the way during the run. */
static void remark_rings(const struct wm_track_regions *regions, struct wm_result *result)
{
    const struct wm_region_trouble *trouble = wm_region_inbox_trouble(regions->inbox);
    char *text = result->regions_note, of[32] = "";
    size_t size = sizeof(result->regions_note);

    if (trouble->damaged_pid > 0)
        snprintf(of, sizeof(of), " (process %ld)", (long)trouble->damaged_pid);
    if (trouble->is_cut_off)
        snprintf(text, size,
                 "some may be missing: somebody removed %.100s during the run, or cut its "
                 "files short",
                 wm_region_inbox_path(regions->inbox));
    else if (trouble->damaged > 0)
        snprintf(text, size,
                 "some are missing: %llu of the files that they come by %s damaged%s",
                 (unsigned long long)trouble->damaged, trouble->damaged == 1 ? "is" : "are",
                 of);
    else if (trouble->no_ring_errno != 0)
        snprintf(text, size, "some are missing: a thread cannot make its ring: %s",
                 wm_errno_text(trouble->no_ring_errno));
    else if (trouble->other_pid > 0)
        snprintf(
            text, size,
            "another tracker recorded regions of process %ld; they are not in this report",
            (long)trouble->other_pid);
}

void wm_track_regions_catch_up(struct wm_track_regions *regions, int64_t when_ns)
{
    while (hand_out_kept(regions, when_ns) == WM_EIO)
        wait_a_moment();
}

void wm_track_regions_finish(struct wm_track_regions *regions, int64_t end_ns,
                             struct wm_result *result)
{
    int64_t complete_ns = end_ns;
    struct wm_error err = { 0 };
    int status;

    regions->hold_max_ns = HOLD_AT_END_NS;
    wm_region_inbox_close(regions->inbox);
    wm_regions_end(regions->costs, end_ns);
    while ((status = drain(regions, true, INT64_MAX, &complete_ns, &err)) < 0 &&
           regions->is_holding)
        wait_a_moment();
    remark(result, status, &err);
    if (complete_ns < end_ns)
        complete_ns = end_ns;
    while ((status = wm_region_calls_end(regions->calls, complete_ns + 1, take_edge,
                                         regions)) < 0 &&
           regions->is_holding)
        wait_a_moment();
    if (status < 0)
        wm_fail(&err, status, "out of memory");
    remark(result, status, &err);
    if (!result->regions_note[0])
        remark_rings(regions, result);
    give_batch(regions);
    wm_regions_complete(regions->costs, INT64_MAX);
    result->stray_regions = wm_region_calls_stray(regions->calls);
    result->dropped_regions = wm_region_inbox_trouble(regions->inbox)->lost +
                              wm_region_calls_dropped(regions->calls);
}
