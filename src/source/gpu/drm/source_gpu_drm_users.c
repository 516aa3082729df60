/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_users.c - the processes on a DRM GPU, and what all of them together make
 * of its engines. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <time.h>

#include "base/base_clock.h"

/* How long the first search may take; it goes over all processes of the machine.
 * What is left then follows with the next refreshes. */
#define SEARCH_NS (200 * WM_NS_PER_MS)

static bool is_amdgpu(const struct wm_drm_look *look)
{
    return wm_drm_card_has_driver(look->board->card, "amdgpu");
}

/* The kinds of engines that a process has used are told by what it has had of them. */
static unsigned purposes_of(const struct wm_drm_process_use *use)
{
    unsigned purposes = 0;

    for (size_t i = 0; i < use->gpu->engine_count; i++)
        purposes |= use->total[i] > 0 ? use->gpu->engines[i].purpose : 0;
    return purposes;
}

static const char *type_of(const struct wm_drm_process_use *use)
{
    unsigned purposes = purposes_of(use);

    if (purposes & WM_DRM_COMPUTES)
        return purposes & WM_DRM_DRAWS ? "C+G" : "C";
    return purposes & WM_DRM_DRAWS ? "G" : NULL;
}

static const char not_counted[] = "the driver does not count the time of processes";

static struct wm_gpu_value time_of(const struct wm_drm_process_use *use)
{
    double time_s = 0;

    if (!wm_drm_counts_engines(use->gpu))
        return wm_gpu_missing(WM_READING_UNSUPPORTED, not_counted);
    for (size_t i = 0; i < use->gpu->engine_count; i++) {
        if (use->total[i] > 0 && use->gpu->engines[i].in_cycles)
            return wm_gpu_missing(WM_READING_UNSUPPORTED,
                                  "the driver counts cycles of the engines, not time");
        time_s += use->total[i] * 1e-9;
    }
    return wm_gpu_number(time_s);
}

static const char two_readings[] = "a share of the time needs two readings, 10 ms apart";
static const char both_in_one[] =
    "the driver does not distinguish encoding from decoding: one engine does both";

static struct wm_gpu_value share_of(const struct wm_drm_process_use *use,
                                    enum wm_drm_purpose purpose)
{
    if (!wm_drm_counts_engines(use->gpu))
        return wm_gpu_missing(WM_READING_UNSUPPORTED, not_counted);
    return use->has_busy ? wm_gpu_number(wm_drm_busiest(use->gpu, use->busy, purpose))
                         : wm_gpu_missing(WM_READING_FAILED, two_readings);
}

static void tell_process(struct wm_drm_look *look, const struct wm_gpu_process *process,
                         const struct wm_drm_process_use *use)
{
    const struct wm_gpu_value both = wm_gpu_missing(WM_READING_UNSUPPORTED, both_in_one);
    const struct wm_gpu_value row[WM_GPU_PROCESS_FIELDS] = {
        [WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(process->pid),
        [WM_GPU_PROCESS_TYPE] = wm_gpu_words(type_of(use)),
        [WM_GPU_PROCESS_MEMORY] =
            process->state == WM_READING_OK
                ? wm_gpu_number(process->memory_bytes)
                : wm_gpu_missing(WM_READING_UNSUPPORTED,
                                 "the driver does not report the memory of processes"),
        [WM_GPU_PROCESS_SM] = share_of(use, WM_DRM_ANYTHING),
        [WM_GPU_PROCESS_ENCODER] = is_amdgpu(look) ? share_of(use, WM_DRM_ENCODES) : both,
        [WM_GPU_PROCESS_DECODER] = is_amdgpu(look) ? share_of(use, WM_DRM_DECODES) : both,
        [WM_GPU_PROCESS_GPU_TIME] = time_of(use),
        [WM_GPU_PROCESS_GPU_INSTANCE] = wm_gpu_not_partitioned(),
        [WM_GPU_PROCESS_COMPUTE_INSTANCE] = wm_gpu_not_partitioned(),
    };

    if (wm_gpu_add_row(look->sheet, WM_GPU_PROCESS_LIST, row) < 0)
        return; /* the core marks the list */
}

/* Why a sum over all clients is not known, or WM_READING_OK. */
static enum wm_reading_state limit_of(const struct wm_drm_look *look, struct wm_error *err)
{
    enum wm_reading_state state =
        wm_drm_clients_limit(&look->board->clients, look->board->gpu, err);

    return state == WM_READING_NONE ? WM_READING_FAILED : state; /* the next may have it */
}

/* Of the processes behind `pid` the first; or how many there are. Behind them stands why
 * the list is not whole, which has no pid. */
static size_t find_next(const struct wm_drm_clients *clients, pid_t pid)
{
    const struct wm_gpu_process *processes = clients->processes;
    size_t next = clients->process_count;

    for (size_t i = 0; i < clients->process_count; i++) {
        if (processes[i].pid > pid &&
            (next == clients->process_count || processes[i].pid < processes[next].pid))
            next = i;
    }
    return next;
}

static void tell_processes(struct wm_drm_look *look)
{
    const struct wm_drm_clients *clients = &look->board->clients;
    struct wm_error err;
    size_t i;

    wm_gpu_begin_list(look->sheet, WM_GPU_PROCESS_LIST);
    for (pid_t pid = 0; (i = find_next(clients, pid)) < clients->process_count;
         pid = clients->processes[i].pid)
        tell_process(look, &clients->processes[i], &clients->uses[i]);
    enum wm_reading_state state = limit_of(look, &err);
    wm_gpu_end_list(look->sheet, WM_GPU_PROCESS_LIST, state,
                    state == WM_READING_OK ? NULL : err.text);
}

static void tell_engines(struct wm_drm_look *look)
{
    static const struct {
        enum wm_gpu_field field;
        enum wm_drm_purpose purpose;
    } rows[] = {
        { WM_GPU_UTILIZATION_GPU, WM_DRM_ANYTHING },
        { WM_GPU_UTILIZATION_ENCODER, WM_DRM_ENCODES },
        { WM_GPU_UTILIZATION_DECODER, WM_DRM_DECODES },
    };
    const struct wm_drm_gpu *gpu = look->board->gpu;
    bool nobody = gpu->client_count == 0 && wm_drm_card_counts_clients(look->board->card);
    struct wm_error err = { 0 };

    enum wm_reading_state state = limit_of(look, &err);
    if (state == WM_READING_OK && !nobody && !wm_drm_counts_engines(gpu)) {
        state = wm_drm_fail_clients(gpu, "engines", &err);
    } else if (state == WM_READING_OK && !nobody && !gpu->has_utilization) {
        state = WM_READING_FAILED;
        wm_fail(&err, WM_EIO, "%s", two_readings);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!is_amdgpu(look) && rows[i].purpose != WM_DRM_ANYTHING)
            wm_drm_look_missing(look, rows[i].field, WM_READING_UNSUPPORTED, "%s",
                                both_in_one);
        else if (state == WM_READING_DENIED && gpu->has_utilization)
            wm_drm_look_missing(look, rows[i].field, state,
                                "%s; the others make it %.0f %%", err.text,
                                100 * wm_drm_busiest(gpu, gpu->busy, rows[i].purpose));
        else if (state != WM_READING_OK)
            wm_drm_look_missing(look, rows[i].field, state, "%s", err.text);
        else
            wm_drm_look_number(look, rows[i].field,
                               nobody ? 0
                                      : wm_drm_busiest(gpu, gpu->busy, rows[i].purpose));
    }
}

/* Finds the users at the first look, and lets two windows pass over them: one to
 * find out where their counters are, one to see them move. */
static void search(struct wm_drm_board *board)
{
    static const struct timespec window = { .tv_nsec = WM_DRM_WINDOW_NS };

    board->searched = true;
    wm_drm_clients_search(&board->clients, SEARCH_NS);
    for (int i = 0; i < 2; i++) {
        wm_drm_clients_read(&board->clients);
        if (board->gpu->client_count == 0)
            return;
        nanosleep(&window, NULL);
    }
}

void wm_drm_look_at_users(struct wm_drm_look *look)
{
    if (!(look->groups & (WM_GPU_UTILIZATION | WM_GPU_PROCESSES)))
        return;
    if (!look->board->searched)
        search(look->board);
    wm_drm_clients_read(&look->board->clients);
    if (look->groups & WM_GPU_UTILIZATION)
        tell_engines(look);
    if (look->groups & WM_GPU_PROCESSES)
        tell_processes(look);
}
