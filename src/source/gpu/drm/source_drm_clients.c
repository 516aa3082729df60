/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_clients.c - who has a GPU open, and what each of them uses of it. */
#include "source/gpu/drm/source_drm_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"

enum { FDINFO_SIZE = 8192, PATH_SIZE = 64 };

static int fds_to_keep(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 8 > 128)
        return 128;
    return (int)(limit.rlim_cur / 8);
}

int wm_drm_clients_init(struct wm_drm_clients *clients, const char *procfs,
                        struct wm_drm_gpu *gpus, size_t count, struct wm_error *err)
{
    *clients = (struct wm_drm_clients) {
        .gpus = gpus,
        .gpu_count = count,
        .fds_left = fds_to_keep(),
        .window_ns = wm_clock_monotonic_ns(),
    };
    int status = wm_drm_search_init(&clients->search, procfs, err);
    if (status < 0)
        return status;
    clients->clients = calloc(WM_DRM_CLIENTS, sizeof(*clients->clients));
    clients->handles = calloc(WM_DRM_HANDLES, sizeof(*clients->handles));
    clients->processes = calloc(WM_DRM_CLIENTS + count, sizeof(*clients->processes));
    clients->uses = calloc(WM_DRM_CLIENTS, sizeof(*clients->uses));
    if (!clients->clients || !clients->handles || !clients->processes || !clients->uses)
        return wm_fail_memory(err, "drm");
    return WM_OK;
}

static void remove_handle(struct wm_drm_clients *clients, struct wm_drm_handle *handle)
{
    *handle = clients->handles[--clients->handle_count];
}

static void drop_fd(struct wm_drm_clients *clients, struct wm_drm_client *client)
{
    if (client->fd < 0)
        return;
    close(client->fd);
    client->fd = -1;
    clients->fds_left++;
}

static void forget(struct wm_drm_clients *clients, struct wm_drm_client *client)
{
    size_t index = (size_t)(client - clients->clients);

    drop_fd(clients, client);
    client->gpu = NULL;
    for (size_t i = clients->handle_count; i-- > 0;) {
        if (clients->handles[i].client == index)
            remove_handle(clients, &clients->handles[i]);
    }
}

void wm_drm_clients_release(struct wm_drm_clients *clients)
{
    for (size_t i = 0; i < clients->client_end; i++) {
        if (clients->clients[i].gpu)
            drop_fd(clients, &clients->clients[i]);
    }
    free(clients->uses);
    free(clients->processes);
    free(clients->handles);
    free(clients->clients);
    wm_drm_search_release(&clients->search);
}

static struct wm_drm_gpu *find_by_node(struct wm_drm_clients *clients, const char *node)
{
    for (size_t i = 0; i < clients->gpu_count; i++) {
        struct wm_drm_gpu *gpu = &clients->gpus[i];
        if (strcmp(gpu->card->label, node) == 0 ||
            (node[0] && strcmp(gpu->card->render, node) == 0))
            return gpu;
    }
    return NULL;
}

/* By its place on PCI, or by its device file. Where that has an unusual name the
 * driver has to do; then two GPUs of a kind cannot be distinguished. */
static struct wm_drm_gpu *find_gpu(struct wm_drm_clients *clients,
                                   const struct wm_drm_fdinfo *fdinfo, const char *node)
{
    struct wm_drm_gpu *by_node = fdinfo->slot[0] ? NULL : find_by_node(clients, node);

    if (by_node)
        return by_node;
    for (size_t i = 0; i < clients->gpu_count; i++) {
        struct wm_drm_gpu *gpu = &clients->gpus[i];
        if (fdinfo->slot[0] ? strcmp(gpu->card->slot, fdinfo->slot) == 0
                            : strcmp(gpu->card->driver, fdinfo->driver) == 0)
            return gpu;
    }
    return NULL;
}

static struct wm_drm_client *find_client(struct wm_drm_clients *clients,
                                         const struct wm_drm_gpu *gpu,
                                         const struct wm_drm_fdinfo *fdinfo)
{
    for (size_t i = 0; i < clients->client_end; i++) {
        struct wm_drm_client *client = &clients->clients[i];
        if (client->gpu == gpu && client->has_id && fdinfo->has_client &&
            client->id == fdinfo->client)
            return client;
    }
    return NULL;
}

static struct wm_drm_handle *find_handle(struct wm_drm_clients *clients, pid_t pid,
                                         int number)
{
    for (size_t i = 0; i < clients->handle_count; i++) {
        if (clients->handles[i].pid == pid && clients->handles[i].number == number)
            return &clients->handles[i];
    }
    return NULL;
}

static ssize_t read_path(const struct wm_drm_clients *clients, pid_t pid, int number,
                         char *text, size_t size)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)pid, number);
    return wm_file_read_at(clients->search.proc, path, text, size);
}

/* By the names that drivers give them in fdinfo. From the fourth generation of its video
 * engine on, amdgpu's "enc" decodes too; the engines of Intel do both at all times, and are
 * left out for that. */
static unsigned purpose_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned purpose;
    } purposes[] = {
        { "gfx", WM_DRM_DRAWS },        { "render", WM_DRM_DRAWS },
        { "rcs", WM_DRM_DRAWS },        { "ccs", WM_DRM_COMPUTES },
        { "compute", WM_DRM_COMPUTES }, { "csd", WM_DRM_COMPUTES },
        { "enc", WM_DRM_ENCODES },      { "enc_1", WM_DRM_ENCODES },
        { "dec", WM_DRM_DECODES },
    };

    for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++) {
        if (strcmp(purposes[i].name, name) == 0)
            return purposes[i].purpose | WM_DRM_ANYTHING;
    }
    return WM_DRM_ANYTHING;
}

/* The place of a kind of engines in the GPU's list; WM_DRM_ENGINES where it
 * cannot be counted. One that has nanoseconds is counted by them. */
static size_t engine_place(struct wm_drm_gpu *gpu, const struct wm_drm_engine *engine)
{
    const unsigned cycles = WM_DRM_CYCLES | WM_DRM_TOTAL_CYCLES;
    size_t i;

    if (!(engine->present & WM_DRM_BUSY_NS) && (engine->present & cycles) != cycles)
        return WM_DRM_ENGINES;
    for (i = 0; i < gpu->engine_count; i++) {
        if (strcmp(gpu->engines[i].name, engine->name) == 0)
            return i;
    }
    if (i == WM_DRM_ENGINES)
        return i;
    gpu->engines[i] = (struct wm_drm_gpu_engine) {
        .purpose = purpose_of(engine->name),
        .in_cycles = !(engine->present & WM_DRM_BUSY_NS),
        .capacity = engine->capacity,
    };
    memcpy(gpu->engines[i].name, engine->name, WM_DRM_NAME);
    gpu->engine_count++;
    return i;
}

/* A counter may step back and then has to catch up: the larger value stands
 * until it does. One that is above what fits into 63 bits is a driver's mistake
 * and would stand for ever. */
static void advance(uint64_t *count, uint64_t value)
{
    if (value > *count && value <= INT64_MAX)
        *count = value;
}

/* The clock itself never steps back, but starts anew with the GPU. */
static void take_cycles(struct wm_drm_count *count, const struct wm_drm_engine *engine)
{
    if (!(engine->present & WM_DRM_TOTAL_CYCLES))
        return;
    if (engine->total_cycles < count->clock_now)
        *count = (struct wm_drm_count) { .base = engine->cycles,
                                         .now = engine->cycles,
                                         .clock_base = engine->total_cycles };
    count->clock_now = engine->total_cycles;
    advance(&count->now, engine->cycles);
}

static void take_engines(struct wm_drm_client *client, const struct wm_drm_fdinfo *fdinfo)
{
    client->gpu->counts_otherwise |= fdinfo->counts_otherwise;
    for (size_t i = 0; i < fdinfo->engine_count; i++) {
        const struct wm_drm_engine *engine = &fdinfo->engines[i];
        size_t place = engine_place(client->gpu, engine);
        if (place == WM_DRM_ENGINES)
            continue;

        client->gpu->counts_engines = true;
        client->gpu->engines[place].capacity = engine->capacity;
        if (client->gpu->engines[place].in_cycles)
            take_cycles(&client->counts[place], engine);
        else
            advance(&client->counts[place].now, engine->busy_ns);
    }
}

static void take_memory(struct wm_drm_client *client, const struct wm_drm_fdinfo *fdinfo)
{
    static const enum wm_drm_memory kinds[] = { WM_DRM_LOCAL, WM_DRM_GTT, WM_DRM_SYSTEM };
    bool local_only = fdinfo->has_memory[WM_DRM_LOCAL] && !client->gpu->card->integrated;

    /* A GPU with memory of its own is asked for that alone: what else it uses
     * is the process's and the machine's. All memory of an integrated GPU is
     * the machine's, by whatever name. */
    client->has_memory = false;
    client->memory_bytes = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!fdinfo->has_memory[kinds[i]] || (local_only && kinds[i] != WM_DRM_LOCAL))
            continue;
        client->has_memory = true;
        if (__builtin_add_overflow(client->memory_bytes, fdinfo->memory_bytes[kinds[i]],
                                   &client->memory_bytes))
            client->memory_bytes = UINT64_MAX;
    }
    client->gpu->counts_memory |= client->has_memory;
}

static void rebase(struct wm_drm_client *client)
{
    for (size_t i = 0; i < WM_DRM_ENGINES; i++) {
        client->counts[i].base = client->counts[i].now;
        client->counts[i].clock_base = client->counts[i].clock_now;
    }
    client->base_ns = client->read_ns;
}

static struct wm_drm_client *add_client(struct wm_drm_clients *clients,
                                        struct wm_drm_gpu *gpu,
                                        const struct wm_drm_fdinfo *fdinfo)
{
    size_t place = 0;

    while (place < clients->client_end && clients->clients[place].gpu)
        place++;
    if (place == WM_DRM_CLIENTS)
        return NULL;
    if (place == clients->client_end)
        clients->client_end++;

    struct wm_drm_client *client = &clients->clients[place];
    *client = (struct wm_drm_client) {
        .gpu = gpu,
        .has_id = fdinfo->has_client,
        .id = fdinfo->client,
        .fd = -1,
        .read_ns = wm_clock_monotonic_ns(),
        .fresh = true,
    };
    take_engines(client, fdinfo);
    take_memory(client, fdinfo);
    rebase(client);
    return client;
}

/* From now on the client is read through this handle. */
static void hold_by(struct wm_drm_clients *clients, struct wm_drm_client *client, pid_t pid,
                    int number)
{
    char path[PATH_SIZE];

    drop_fd(clients, client);
    client->pid = pid;
    client->number = number;
    if (clients->fds_left == 0)
        return;
    snprintf(path, sizeof(path), "%d/fdinfo/%d", (int)pid, number);
    int fd = wm_file_open_at(clients->search.proc, path);
    if (fd < 0)
        return;
    client->fd = fd;
    clients->fds_left--;
}

static void take_found(struct wm_drm_clients *clients, pid_t pid, int number,
                       struct wm_drm_gpu *gpu, const struct wm_drm_fdinfo *fdinfo)
{
    struct wm_drm_client *client = find_client(clients, gpu, fdinfo);
    bool is_new = !client;

    if (clients->handle_count == WM_DRM_HANDLES ||
        (is_new && !(client = add_client(clients, gpu, fdinfo)))) {
        clients->full = true;
        return;
    }
    if (is_new || pid < client->pid)
        hold_by(clients, client, pid, number);
    clients->handles[clients->handle_count++] = (struct wm_drm_handle) {
        .pid = pid,
        .number = number,
        .client = (size_t)(client - clients->clients),
        .round = clients->search.round,
    };
}

static void look_at(void *context, pid_t pid, int number, const char *node)
{
    struct wm_drm_clients *clients = context;
    char text[FDINFO_SIZE];
    struct wm_drm_fdinfo fdinfo;

    struct wm_drm_handle *handle = find_handle(clients, pid, number);
    if (handle) {
        const struct wm_drm_client *client = &clients->clients[handle->client];
        handle->round = clients->search.round;
        if (client->pid == pid && client->number == number)
            return; /* read at every turn */
    }

    struct wm_drm_gpu *gpu = NULL, *silent = NULL;
    bool is_there = read_path(clients, pid, number, text, sizeof(text)) > 0;
    if (is_there && wm_parse_drm_fdinfo(text, &fdinfo) == WM_OK)
        gpu = find_gpu(clients, &fdinfo, node);
    else if (is_there)
        silent = find_by_node(clients, node);
    if (silent) /* somebody uses the GPU, and the driver does not say how much */
        silent->silent++;

    bool known = handle && gpu &&
                 find_client(clients, gpu, &fdinfo) == &clients->clients[handle->client];
    if (handle && !known)
        remove_handle(clients, handle);
    if (gpu && gpu->wanted && !known)
        take_found(clients, pid, number, gpu, &fdinfo);
}

/* What was there in the last round and not in this one is gone. */
static void end_round(struct wm_drm_clients *clients)
{
    for (size_t i = clients->handle_count; i-- > 0;) {
        if (clients->handles[i].round != clients->search.round)
            remove_handle(clients, &clients->handles[i]);
    }
    for (size_t i = 0; i < clients->gpu_count; i++) {
        clients->gpus[i].is_silent = clients->gpus[i].silent > 0;
        clients->gpus[i].silent = 0;
    }
    clients->was_full = clients->full;
    clients->full = false;
}

void wm_drm_clients_search(struct wm_drm_clients *clients, int64_t limit_ns)
{
    if (wm_drm_search_run(&clients->search, limit_ns, look_at, clients))
        end_round(clients);
}

static bool read_client(const struct wm_drm_clients *clients, struct wm_drm_client *client,
                        struct wm_drm_fdinfo *ret_fdinfo)
{
    char text[FDINFO_SIZE];

    client->read_ns = wm_clock_monotonic_ns();
    ssize_t length = client->fd >= 0 ? wm_file_reread(client->fd, text, sizeof(text))
                                     : read_path(clients, client->pid, client->number, text,
                                                 sizeof(text));
    return length > 0 && wm_parse_drm_fdinfo(text, ret_fdinfo) == WM_OK &&
           (!ret_fdinfo->slot[0] ||
            strcmp(ret_fdinfo->slot, client->gpu->card->slot) == 0) &&
           ret_fdinfo->has_client == client->has_id && ret_fdinfo->client == client->id;
}

/* The descriptor was closed or its process is gone: the next holder is the one
 * with the lowest pid of those that are left. */
static bool hand_over(struct wm_drm_clients *clients, struct wm_drm_client *client)
{
    size_t index = (size_t)(client - clients->clients);
    struct wm_drm_handle *next = NULL;
    struct wm_drm_handle *lost = find_handle(clients, client->pid, client->number);

    if (lost && lost->client == index)
        remove_handle(clients, lost);
    for (size_t i = 0; i < clients->handle_count; i++) {
        struct wm_drm_handle *handle = &clients->handles[i];
        if (handle->client == index && (!next || handle->pid < next->pid))
            next = handle;
    }
    if (!next)
        return false;
    hold_by(clients, client, next->pid, next->number);
    return true;
}

static void read_clients(struct wm_drm_clients *clients)
{
    struct wm_drm_fdinfo fdinfo;

    for (size_t i = 0; i < clients->client_end; i++) {
        struct wm_drm_client *client = &clients->clients[i];
        if (!client->gpu)
            continue;

        bool there = read_client(clients, client, &fdinfo);
        while (!there && hand_over(clients, client))
            there = read_client(clients, client, &fdinfo);
        if (!there) {
            forget(clients, client);
            continue;
        }
        take_engines(client, &fdinfo);
        take_memory(client, &fdinfo);
    }
    while (clients->client_end > 0 && !clients->clients[clients->client_end - 1].gpu)
        clients->client_end--;
}

/* Engines that this client kept busy since the start of the window. */
static double busy_engines(const struct wm_drm_client *client, size_t place)
{
    const struct wm_drm_count *count = &client->counts[place];
    bool in_cycles = client->gpu->engines[place].in_cycles;
    double whole = in_cycles ? (double)(count->clock_now - count->clock_base)
                             : (double)(client->read_ns - client->base_ns);

    return whole > 0 ? (double)(count->now - count->base) / whole : 0;
}

/* Engines of different kinds work side by side, so that the GPU is as busy as
 * its busiest kind; adding up would make more than one GPU of it. A kind may seem to be
 * busier than it can be, as drivers count late. */
double wm_drm_busiest(const struct wm_drm_gpu *gpu, const double *busy,
                      enum wm_drm_purpose purpose)
{
    double most = 0;

    for (size_t i = 0; i < gpu->engine_count; i++) {
        double share = busy[i] / (double)gpu->engines[i].capacity;
        if ((gpu->engines[i].purpose & purpose) && share > most)
            most = share < 1 ? share : 1;
    }
    return most;
}

static void sum_window(struct wm_drm_clients *clients)
{
    for (size_t i = 0; i < clients->gpu_count; i++)
        memset(clients->gpus[i].busy, 0, sizeof(clients->gpus[i].busy));
    for (size_t i = 0; i < clients->client_end; i++) {
        struct wm_drm_client *client = &clients->clients[i];
        if (!client->gpu)
            continue;

        /* For a part of a window that is too short for a ratio a newcomer does not
         * count. */
        client->has_busy =
            !client->fresh || client->read_ns - client->base_ns >= WM_DRM_WINDOW_NS;
        for (size_t k = 0; k < client->gpu->engine_count && client->has_busy; k++) {
            client->busy[k] = busy_engines(client, k);
            client->gpu->busy[k] += client->busy[k];
        }
        client->fresh = false;
        rebase(client);
    }
    for (size_t i = 0; i < clients->gpu_count; i++) {
        struct wm_drm_gpu *gpu = &clients->gpus[i];
        gpu->utilization = wm_drm_busiest(gpu, gpu->busy, WM_DRM_ANYTHING);
        gpu->has_utilization = true;
    }
}

/* The place of the client's process, which may be a new one. */
static size_t find_process(struct wm_drm_clients *clients,
                           const struct wm_drm_client *client)
{
    size_t i;

    for (i = 0; i < clients->process_count; i++) {
        if (clients->processes[i].pid == client->pid && clients->uses[i].gpu == client->gpu)
            return i;
    }
    clients->process_count++;
    clients->uses[i] = (struct wm_drm_process_use) { .gpu = client->gpu };
    clients->processes[i] = (struct wm_gpu_process) { .device = client->gpu->card->identity,
                                                      .pid = client->pid,
                                                      .state = WM_READING_UNSUPPORTED };
    return i;
}

static void add_to_process(struct wm_gpu_process *process, struct wm_drm_process_use *use,
                           const struct wm_drm_client *client)
{
    if (client->has_memory) {
        process->state = WM_READING_OK;
        process->memory_bytes += (double)client->memory_bytes;
    }
    use->has_busy |= client->has_busy;
    for (size_t k = 0; k < client->gpu->engine_count; k++) {
        use->busy[k] += client->has_busy ? client->busy[k] : 0;
        use->total[k] += (double)client->counts[k].now;
    }
}

/* amdgpu does not write the counters of engines that were never used, nor those of
 * any as long as it wrote percentages. */
bool wm_drm_counts_engines(const struct wm_drm_gpu *gpu)
{
    return gpu->counts_engines ||
           (wm_drm_card_has_driver(gpu->card, "amdgpu") && !gpu->counts_otherwise);
}

/* Its share of the GPU is, as that of all processes together, the one that it has
 * of the kind of engines it keeps busiest. */
static void put_share(struct wm_gpu_process *process, const struct wm_drm_process_use *use)
{
    if (!wm_drm_counts_engines(use->gpu)) {
        process->sm_state = WM_READING_UNSUPPORTED;
        return;
    }
    if (!use->has_busy)
        return; /* nothing yet: a share needs two readings */

    process->sm_state = WM_READING_OK;
    process->sm_ratio = wm_drm_busiest(use->gpu, use->busy, WM_DRM_ANYTHING);
}

/* Why the list of a GPU's processes may lack some that matter; WM_READING_OK
 * where it is good, and NULL in `ret_why` where its driver reports nothing. Processes that
 * may not be looked at are other people's, and do not spoil it: those that are measured are
 * ours. */
static enum wm_reading_state list_state(const struct wm_drm_clients *clients,
                                        const struct wm_drm_gpu *gpu, const char **ret_why)
{
    *ret_why = NULL;
    if (clients->search.proc < 0) {
        *ret_why = clients->search.proc_err.text;
        return WM_READING_FAILED;
    }
    if (clients->search.completed == 0) {
        *ret_why = "not all processes have been read yet";
        return WM_READING_NONE;
    }
    if (clients->full || clients->was_full || clients->search.left_out ||
        clients->search.left_out_before) {
        *ret_why = "more processes use GPUs than can be followed";
        return WM_READING_FAILED;
    }
    return gpu->is_silent && gpu->client_count == 0 ? WM_READING_UNSUPPORTED
                                                    : WM_READING_OK;
}

static void list_processes(struct wm_drm_clients *clients)
{
    clients->process_count = 0;
    for (size_t i = 0; i < clients->gpu_count; i++) {
        clients->gpus[i].client_count = 0;
        clients->gpus[i].memory_bytes = 0;
    }
    for (size_t i = 0; i < clients->client_end; i++) {
        const struct wm_drm_client *client = &clients->clients[i];
        if (!client->gpu)
            continue;

        size_t place = find_process(clients, client);
        add_to_process(&clients->processes[place], &clients->uses[place], client);
        client->gpu->client_count++;
        if (client->has_memory)
            client->gpu->memory_bytes += (double)client->memory_bytes;
    }
    for (size_t i = 0; i < clients->process_count; i++)
        put_share(&clients->processes[i], &clients->uses[i]);
    for (size_t i = 0; i < clients->gpu_count; i++) {
        const struct wm_drm_gpu *gpu = &clients->gpus[i];
        const char *why;
        enum wm_reading_state state = list_state(clients, gpu, &why);
        if (gpu->wanted && state != WM_READING_OK)
            clients->processes[clients->process_count++] = (struct wm_gpu_process) {
                .device = gpu->card->identity, .state = state, .sm_state = state, .why = why
            };
    }
}

void wm_drm_clients_read(struct wm_drm_clients *clients)
{
    int64_t now_ns = wm_clock_monotonic_ns();

    if (wm_drm_search_turn(&clients->search, look_at, clients))
        end_round(clients);
    read_clients(clients);
    if (now_ns - clients->window_ns >= WM_DRM_WINDOW_NS) {
        sum_window(clients);
        clients->window_ns = now_ns;
    }
    list_processes(clients);
}

enum wm_reading_state wm_drm_fail_clients(const struct wm_drm_gpu *gpu, const char *what,
                                          struct wm_error *ret_err)
{
    wm_fail(ret_err, WM_ENODEV, "%s does not report the %s of its clients here",
            gpu->card->driver, what);
    return WM_READING_UNSUPPORTED;
}

enum wm_reading_state wm_drm_clients_limit(const struct wm_drm_clients *clients,
                                           const struct wm_drm_gpu *gpu,
                                           struct wm_error *ret_err)
{
    const struct wm_drm_search *search = &clients->search;
    const char *why;

    enum wm_reading_state state = list_state(clients, gpu, &why);
    if (state != WM_READING_OK && why) {
        wm_fail(ret_err, WM_EIO, "%s", why);
        return state;
    }
    if (search->denied_before > 0) {
        wm_fail(ret_err, WM_EACCES, "the GPU use of %zu process%s may not be read%s",
                search->denied_before, search->denied_before == 1 ? "" : "es",
                geteuid() == 0 ? ", not even by root here" : "; root may");
        return WM_READING_DENIED;
    }
    if (!search->sees_all) {
        wm_fail(ret_err, WM_EACCES,
                "this /proc does not show all processes (a container, or hidepid)");
        return WM_READING_DENIED;
    }
    return state == WM_READING_OK ? state : wm_drm_fail_clients(gpu, "use", ret_err);
}
