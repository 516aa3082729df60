/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_drm_users.c - the processes on a DRM GPU, and what all of them together make
 * of its engines. */
#include "source/gpu/drm/source_gpu_drm_look.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"

/* How long the first search may take; it goes over all processes of the machine.
 * What is left then follows with the next refreshes. */
#define SEARCH_NS (200 * WM_NS_PER_MS)

/* What engines are for, by the names that drivers give them in fdinfo. From the
 * fourth generation of its video engine on, amdgpu's "enc" decodes too; the engines
 * of Intel do both at all times, and are left out for that. */
static const struct {
    const char *name;
    enum purpose { DRAWS, COMPUTES, ENCODES, DECODES } purpose;
} purposes[] = {
    { "gfx", DRAWS },    { "render", DRAWS },     { "rcs", DRAWS },
    { "ccs", COMPUTES }, { "compute", COMPUTES }, { "csd", COMPUTES },
    { "enc", ENCODES },  { "enc_1", ENCODES },    { "dec", DECODES },
};

static bool is_for(const struct wm_drm_gpu_engine *engine, enum purpose purpose)
{
    for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++) {
        if (purposes[i].purpose == purpose && strcmp(purposes[i].name, engine->name) == 0)
            return true;
    }
    return false;
}

static bool is_amdgpu(const struct wm_drm_look *look)
{
    return strcmp(look->board->card.driver, "amdgpu") == 0;
}

/* The share of the time in which the busiest kind of these engines was busy;
 * `purpose` below 0 means all. */
static double busiest(const struct wm_drm_gpu *gpu, const double *busy, int purpose)
{
    double most = 0;

    for (size_t i = 0; i < gpu->engine_count; i++) {
        const struct wm_drm_gpu_engine *engine = &gpu->engines[i];
        double ratio = busy[i] / (double)engine->capacity;
        if ((purpose < 0 || is_for(engine, (enum purpose)purpose)) && ratio > most)
            most = ratio < 1 ? ratio : 1;
    }
    return most;
}

static struct wm_drm_use *find_use(struct wm_drm_use *uses, size_t *count, pid_t pid)
{
    for (size_t i = 0; i < *count; i++) {
        if (uses[i].pid == pid)
            return &uses[i];
    }
    uses[*count] = (struct wm_drm_use) { .pid = pid };
    return &uses[(*count)++];
}

static void add_client(struct wm_drm_use *use, const struct wm_drm_client *client)
{
    use->has_memory |= client->has_memory;
    use->memory += (double)client->memory_bytes;
    use->has_window |= client->has_busy;
    for (size_t i = 0; i < client->gpu->engine_count; i++) {
        const struct wm_drm_gpu_engine *engine = &client->gpu->engines[i];
        if (client->has_busy)
            use->busy[i] += client->busy[i];
        if (client->counts[i].now == 0)
            continue;
        use->draws |= is_for(engine, DRAWS);
        use->computes |= is_for(engine, COMPUTES);
        if (engine->in_cycles)
            use->in_cycles = true;
        else
            use->time_s += (double)client->counts[i].now * 1e-9;
    }
}

static int compare_uses(const void *left, const void *right)
{
    const struct wm_drm_use *a = left, *b = right;

    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static const char *type_of(const struct wm_drm_use *use)
{
    if (use->computes)
        return use->draws ? "C+G" : "C";
    return use->draws ? "G" : NULL;
}

static const char two_readings[] = "a share of the time needs two readings, 10 ms apart";
static const char both_in_one[] =
    "the driver does not tell encoding from decoding: one engine does both";

static void tell_process(struct wm_drm_look *look, const struct wm_drm_use *use,
                         bool counts)
{
    const struct wm_drm_gpu *gpu = &look->board->gpus[look->board->place];
    struct wm_gpu_value sm, encoder, decoder, time;

    if (!counts)
        sm = wm_gpu_missing(WM_READING_UNSUPPORTED,
                            "the driver does not count the time of processes");
    else if (!use->has_window)
        sm = wm_gpu_missing(WM_READING_FAILED, two_readings);
    else
        sm = wm_gpu_number(busiest(gpu, use->busy, -1));
    encoder = decoder = time = sm;
    if (use->has_window && counts) {
        encoder = wm_gpu_number(busiest(gpu, use->busy, ENCODES));
        decoder = wm_gpu_number(busiest(gpu, use->busy, DECODES));
    }
    if (!is_amdgpu(look))
        encoder = decoder = wm_gpu_missing(WM_READING_UNSUPPORTED, both_in_one);
    if (counts)
        time = use->in_cycles
                   ? wm_gpu_missing(WM_READING_UNSUPPORTED,
                                    "the driver counts cycles of the engines, not time")
                   : wm_gpu_number(use->time_s);

    const struct wm_gpu_value row[WM_GPU_PROCESS_FIELDS] = {
        [WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(use->pid),
        [WM_GPU_PROCESS_TYPE] = wm_gpu_words(type_of(use)),
        [WM_GPU_PROCESS_MEMORY] =
            use->has_memory
                ? wm_gpu_number(use->memory)
                : wm_gpu_missing(WM_READING_UNSUPPORTED,
                                 "the driver does not tell the memory of processes"),
        [WM_GPU_PROCESS_SM] = sm,
        [WM_GPU_PROCESS_ENCODER] = encoder,
        [WM_GPU_PROCESS_DECODER] = decoder,
        [WM_GPU_PROCESS_GPU_TIME] = time,
        [WM_GPU_PROCESS_GPU_INSTANCE] = wm_gpu_not_partitioned(),
        [WM_GPU_PROCESS_COMPUTE_INSTANCE] = wm_gpu_not_partitioned(),
    };
    if (wm_gpu_add_row(look->sheet, WM_GPU_PROCESS_LIST, row) < 0)
        return; /* the core marks the list */
}

static bool counts_engines(const struct wm_drm_look *look)
{
    return wm_drm_counts_engines(&look->board->gpus[look->board->place]);
}

/* Why a sum over all clients is not known, or WM_READING_OK. */
static enum wm_reading_state limit_of(const struct wm_drm_look *look, struct wm_error *err)
{
    const struct wm_drm_board *board = look->board;
    const struct wm_drm_gpu *gpu = &board->gpus[board->place];

    enum wm_reading_state state =
        wm_drm_clients_limit(&board->clients, err->text, sizeof(err->text));
    if (state == WM_READING_NONE)
        state = WM_READING_FAILED; /* the next look may have it */
    if (state == WM_READING_OK && gpu->is_silent && gpu->client_count == 0) {
        wm_fail(err, WM_ENODEV, "%s does not tell the use of its clients here",
                board->card.driver);
        state = WM_READING_UNSUPPORTED;
    }
    return state;
}

static void tell_processes(struct wm_drm_look *look)
{
    const struct wm_drm_clients *clients = &look->board->clients;
    struct wm_drm_use *uses = look->board->uses;
    struct wm_error err;
    size_t count = 0;

    for (size_t i = 0; i < clients->client_end; i++) {
        const struct wm_drm_client *client = &clients->clients[i];
        if (client->gpu) /* no other is wanted */
            add_client(find_use(uses, &count, client->pid), client);
    }
    qsort(uses, count, sizeof(*uses), compare_uses);

    wm_gpu_begin_list(look->sheet, WM_GPU_PROCESS_LIST);
    for (size_t i = 0; i < count; i++)
        tell_process(look, &uses[i], counts_engines(look));
    enum wm_reading_state state = limit_of(look, &err);
    wm_gpu_end_list(look->sheet, WM_GPU_PROCESS_LIST, state,
                    state == WM_READING_OK ? NULL : err.text);
}

static void tell_engines(struct wm_drm_look *look)
{
    const struct wm_drm_board *board = look->board;
    const struct wm_drm_gpu *gpu = &board->gpus[board->place];
    bool nobody = gpu->client_count == 0 && wm_drm_card_counts_clients(&board->card);
    double busy[WM_DRM_ENGINES] = { 0 };
    struct wm_error err = { 0 };

    enum wm_reading_state state = limit_of(look, &err);
    if (state == WM_READING_OK && !nobody && !counts_engines(look)) {
        state = WM_READING_UNSUPPORTED;
        wm_fail(&err, WM_ENODEV, "%s does not tell the engines of its clients here",
                board->card.driver);
    } else if (state == WM_READING_OK && !nobody && !gpu->has_utilization) {
        state = WM_READING_FAILED;
        wm_fail(&err, WM_EIO, "%s", two_readings);
    }
    if (!is_amdgpu(look)) {
        wm_drm_look_missing(look, WM_GPU_UTILIZATION_ENCODER, WM_READING_UNSUPPORTED, "%s",
                            both_in_one);
        wm_drm_look_missing(look, WM_GPU_UTILIZATION_DECODER, WM_READING_UNSUPPORTED, "%s",
                            both_in_one);
    }
    if (state != WM_READING_OK) {
        wm_drm_look_missing(look, WM_GPU_UTILIZATION_GPU, state, "%s", err.text);
        wm_drm_look_missing(look, WM_GPU_UTILIZATION_ENCODER, state, "%s", err.text);
        wm_drm_look_missing(look, WM_GPU_UTILIZATION_DECODER, state, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < gpu->engine_count && !nobody; i++)
        busy[i] = gpu->engines[i].busy;
    wm_drm_look_number(look, WM_GPU_UTILIZATION_GPU, busiest(gpu, busy, -1));
    wm_drm_look_number(look, WM_GPU_UTILIZATION_ENCODER, busiest(gpu, busy, ENCODES));
    wm_drm_look_number(look, WM_GPU_UTILIZATION_DECODER, busiest(gpu, busy, DECODES));
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
        if (board->gpus[board->place].client_count == 0)
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
