/* SPDX-License-Identifier: Apache-2.0 */
/* track_tick.c - reads every source once, and what only all of them together
 * can tell: which GPU memory belongs to the tree. */
#include "track/track_tick.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_guard.h"
#include "source/source_pidns.h"
#include "source/source_round.h"

/* How long one GPU holds up the others before it is given up; some more for the
 * round after it. */
#define HELD_UP_NS (WM_GUARD_HANG_NS + 100 * WM_NS_PER_MS)

enum { SOURCE_MAX = 16, GPU_MAX = 256 };

enum { MAIN, DESCENDANTS, TREE, MEMBER_COUNT };

static const char *const member_names[MEMBER_COUNT] = { "main", "descendants", "tree" };

/* One GPU: where its channels are, and what the tree has on it. */
struct gpu {
    const struct wm_channel *channel; /* the first of its source's channels */
    size_t own_channel;               /* tree_memory_used */
    double tree_bytes;
    enum wm_reading_state state;
};

struct wm_ticker {
    struct wm_source *sources[SOURCE_MAX];
    size_t first_channel[SOURCE_MAX];
    size_t source_count;
    int64_t round_ns;  /* when the drivers were asked for this tick, */
    int64_t before_ns; /* and for the one before */

    struct wm_tree *tree;
    struct wm_account *account;
    pid_t root;
    double own_cpu;             /* seconds of ours in the tracked process */
    double main_cpu, total_cpu; /* less those; what was told last */
    bool foreign_pids;          /* drivers may speak of pids of another namespace */
    struct wm_pidns *pidns;     /* and it tells which; else NULL */

    struct wm_channel *channels;
    struct wm_reading *readings;
    size_t count, room;
    size_t cpu_channel[MEMBER_COUNT];
    size_t gpu_memory_channel[MEMBER_COUNT];
    size_t first_tree_channel;

    struct gpu gpus[GPU_MAX];
    size_t gpu_count;
    const char *last_device; /* asked for last, and what it is */
    struct gpu *last_gpu;
    size_t own_count; /* channels of the tracker itself */
};

int wm_ticker_new(struct wm_ticker **ret_ticker, struct wm_error *err)
{
    struct wm_ticker *ticker = calloc(1, sizeof(*ticker));

    if (!ticker)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    ticker->foreign_pids = wm_pidns_is_inner();
    *ret_ticker = ticker;
    return WM_OK;
}

void wm_ticker_free(struct wm_ticker *ticker)
{
    if (!ticker)
        return;
    for (size_t i = 0; i < ticker->source_count; i++)
        wm_source_close(ticker->sources[i]);
    wm_pidns_close(ticker->pidns);
    free(ticker->channels);
    free(ticker->readings);
    free(ticker);
}

bool wm_ticker_has(const struct wm_ticker *ticker, const char *name)
{
    for (size_t i = 0; i < ticker->source_count; i++) {
        if (strcmp(wm_source_channel(ticker->sources[i], 0)->source, name) == 0)
            return true;
    }
    return false;
}

static bool is_first_of_gpu(const struct wm_source *source, size_t index)
{
    const struct wm_channel *channel = wm_source_channel(source, index);

    return channel->device_kind == WM_DEVICE_GPU &&
           (index == 0 ||
            strcmp(wm_source_channel(source, index - 1)->device, channel->device) != 0);
}

int wm_ticker_add(struct wm_ticker *ticker, struct wm_source *source, struct wm_error *err)
{
    if (ticker->source_count == SOURCE_MAX) {
        wm_source_close(source);
        return wm_fail(err, WM_EINVAL, "tracker: more than %d sources", SOURCE_MAX);
    }
    ticker->sources[ticker->source_count++] = source;

    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        if (is_first_of_gpu(source, i) && ticker->gpu_count < GPU_MAX)
            ticker->gpus[ticker->gpu_count++].channel = wm_source_channel(source, i);
    }
    return WM_OK;
}

void wm_ticker_count_gpus(const struct wm_ticker *ticker, int *ret_chosen, int *ret_all)
{
    size_t all = 0;

    for (size_t i = 0; i < ticker->source_count; i++)
        all += wm_source_device_count(ticker->sources[i]);
    *ret_chosen = (int)ticker->gpu_count;
    *ret_all = (int)all;
}

static size_t append(struct wm_ticker *ticker, const struct wm_channel *channel)
{
    ticker->channels[ticker->count] = *channel;
    return ticker->count++;
}

static void append_own(struct wm_ticker *ticker)
{
    for (int m = 0; m < MEMBER_COUNT; m++) {
        struct wm_channel channel = {
            .source = "tracker",
            .device = member_names[m],
            .label = member_names[m],
            .metric = "cpu_time",
            .unit = "s",
            .device_kind = WM_DEVICE_TREE,
            .kind = WM_COUNTER,
        };
        ticker->cpu_channel[m] = append(ticker, &channel);
        if (ticker->gpu_count == 0)
            continue;
        channel.metric = "gpu_memory";
        channel.unit = "B";
        channel.kind = WM_GAUGE;
        channel.origin = ticker->gpus[0].channel->origin;
        ticker->gpu_memory_channel[m] = append(ticker, &channel);
    }
    for (size_t i = 0; i < ticker->gpu_count; i++) {
        struct wm_channel channel = *ticker->gpus[i].channel;
        channel.source = "tracker";
        channel.metric = "tree_memory_used";
        channel.unit = "B";
        channel.kind = WM_GAUGE;
        channel.period_ns = 0;
        ticker->gpus[i].own_channel = append(ticker, &channel);
    }
    ticker->own_count = ticker->count;
}

int wm_ticker_set_target(struct wm_ticker *ticker, struct wm_tree *tree, pid_t root,
                         bool own_numbers, struct wm_account *account, struct wm_error *err)
{
    const struct wm_channel *tree_channels;
    size_t tree_count = wm_tree_channels(tree, &tree_channels);
    size_t room = 2 * MEMBER_COUNT + ticker->gpu_count + tree_count;

    for (size_t i = 0; i < ticker->source_count; i++)
        room += wm_source_channel_count(ticker->sources[i]);
    ticker->channels = calloc(room, sizeof(*ticker->channels));
    ticker->readings = calloc(room, sizeof(*ticker->readings));
    if (!ticker->channels || !ticker->readings)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");

    if (ticker->foreign_pids && own_numbers && ticker->gpu_count > 0) {
        int status = wm_pidns_open(wm_env("WATTMETER_PROCFS", "/proc"), "/proc",
                                   &ticker->pidns, err);
        if (status < 0)
            return status;
    }
    ticker->tree = tree;
    ticker->root = root;
    ticker->account = account;
    append_own(ticker);
    ticker->first_tree_channel = ticker->count;
    for (size_t i = 0; i < tree_count; i++)
        append(ticker, &tree_channels[i]);
    for (size_t i = 0; i < ticker->source_count; i++) {
        ticker->first_channel[i] = ticker->count;
        for (size_t k = 0; k < wm_source_channel_count(ticker->sources[i]); k++)
            append(ticker, wm_source_channel(ticker->sources[i], k));
    }
    return WM_OK;
}

const struct wm_channel *wm_ticker_channels(const struct wm_ticker *ticker,
                                            size_t *ret_count)
{
    *ret_count = ticker->count;
    return ticker->channels;
}

static void set(struct wm_ticker *ticker, size_t channel, int64_t when_ns, double value)
{
    ticker->readings[channel] = (struct wm_reading) { when_ns, value, WM_READING_OK };
}

void wm_ticker_read_tree(struct wm_ticker *ticker)
{
    double total, main;

    wm_tree_refresh(ticker->tree);
    int64_t when_ns = wm_clock_monotonic_ns();
    wm_account_read(ticker->account, ticker->tree, &total, &main);
    wm_tree_read(ticker->tree, ticker->readings + ticker->first_tree_channel);

    /* The two clocks are read a moment apart; that must not look like a counter
     * that goes back. */
    double own = ticker->own_cpu < main ? ticker->own_cpu : main;
    if (main - own > ticker->main_cpu)
        ticker->main_cpu = main - own;
    if (ticker->main_cpu + total - main > ticker->total_cpu)
        ticker->total_cpu = ticker->main_cpu + total - main;
    set(ticker, ticker->cpu_channel[MAIN], when_ns, ticker->main_cpu);
    set(ticker, ticker->cpu_channel[DESCENDANTS], when_ns,
        ticker->total_cpu - ticker->main_cpu);
    set(ticker, ticker->cpu_channel[TREE], when_ns, ticker->total_cpu);
}

void wm_ticker_start_cpu(struct wm_ticker *ticker, int64_t when_ns)
{
    for (int m = 0; m < MEMBER_COUNT; m++)
        set(ticker, ticker->cpu_channel[m], when_ns, 0);
}

/* Processes come GPU by GPU, so that it mostly is the one of before. */
static struct gpu *find_gpu(struct wm_ticker *ticker, const char *device)
{
    if (ticker->last_device == device)
        return ticker->last_gpu;
    ticker->last_device = device;
    ticker->last_gpu = NULL;
    for (size_t i = 0; i < ticker->gpu_count && !ticker->last_gpu; i++) {
        if (strcmp(ticker->gpus[i].channel->device, device) == 0)
            ticker->last_gpu = &ticker->gpus[i];
    }
    return ticker->last_gpu;
}

struct gpu_memory {
    double main, tree;
    size_t strangers, members;   /* processes that may not be in the tree, and that are */
    enum wm_reading_state state; /* ok, or the first reason why not all is known */
};

/* Which of our processes it is, by our number; 0 where it is none, or nobody knows.
 * `ret_sure`: the number is no coincidence. */
static pid_t number_of(const struct wm_ticker *ticker, const struct wm_gpu_process *process,
                       bool *ret_sure)
{
    struct wm_pidns_process found;

    *ret_sure = false;
    if (!ticker->pidns)
        return process->pid;
    wm_pidns_find(ticker->pidns, process->pid, &found);
    *ret_sure = found.answer == WM_PIDNS_OURS || found.answer == WM_PIDNS_OUTSIDE;
    return found.ours;
}

static void add_gpu_process(struct wm_ticker *ticker, const struct wm_gpu_process *process,
                            struct gpu_memory *memory)
{
    struct gpu *gpu = find_gpu(ticker, process->device);
    if (!gpu)
        return;

    /* Pid 0 stands for "this GPU will not tell its processes". */
    pid_t pid = 0;
    if (process->pid != 0) {
        bool sure;
        pid = number_of(ticker, process, &sure);
        if (pid == 0 || !wm_tree_contains(ticker->tree, pid)) {
            memory->strangers += !sure;
            return;
        }
    }
    memory->members += pid != 0;
    if (process->state != WM_READING_OK) {
        gpu->state = process->state;
        if (memory->state == WM_READING_OK)
            memory->state = process->state;
        return;
    }
    gpu->tree_bytes += process->memory_bytes;
    memory->tree += process->memory_bytes;
    if (pid == ticker->root)
        memory->main += process->memory_bytes;
}

static void join_gpu_memory(struct wm_ticker *ticker, int64_t when_ns)
{
    struct gpu_memory memory = { .state = WM_READING_OK };

    for (size_t i = 0; i < ticker->gpu_count; i++) {
        ticker->gpus[i].tree_bytes = 0;
        ticker->gpus[i].state = WM_READING_OK;
    }
    for (size_t i = 0; i < ticker->source_count; i++) {
        const struct wm_gpu_process *processes = NULL;
        size_t count = wm_source_gpu_processes(ticker->sources[i], &processes);
        for (size_t k = 0; k < count; k++)
            add_gpu_process(ticker, &processes[k], &memory);
    }

    /* In a container a driver may tell the host's pids. As long as none of them
     * is one of ours, "none of ours" is not to be told from "not ours to match". */
    if (ticker->foreign_pids && memory.strangers > 0 && memory.members == 0) {
        memory.state = WM_READING_UNSUPPORTED;
        for (size_t i = 0; i < ticker->gpu_count; i++)
            ticker->gpus[i].state = WM_READING_UNSUPPORTED;
    }

    for (size_t i = 0; i < ticker->gpu_count; i++) {
        const struct gpu *gpu = &ticker->gpus[i];
        ticker->readings[gpu->own_channel] =
            (struct wm_reading) { when_ns, gpu->tree_bytes, gpu->state };
    }
    const double values[MEMBER_COUNT] = { memory.main, memory.tree - memory.main,
                                          memory.tree };
    for (int m = 0; m < MEMBER_COUNT; m++)
        ticker->readings[ticker->gpu_memory_channel[m]] =
            (struct wm_reading) { when_ns, values[m], memory.state };
}

void wm_ticker_begin(struct wm_ticker *ticker)
{
    ticker->before_ns = ticker->round_ns;
    ticker->round_ns = wm_clock_monotonic_ns();
    for (size_t i = 0; i < ticker->source_count; i++)
        wm_source_begin(ticker->sources[i]);
}

static void read_source(struct wm_ticker *ticker, size_t index, int64_t deadline_ns,
                        int64_t oldest_ns)
{
    struct wm_reading *readings = ticker->readings + ticker->first_channel[index];
    size_t count = wm_source_channel_count(ticker->sources[index]);
    int64_t when_ns = wm_clock_monotonic_ns();

    if (wm_source_collect(ticker->sources[index], deadline_ns, oldest_ns, readings, count,
                          NULL) >= 0)
        return;
    for (size_t k = 0; k < count; k++)
        readings[k] = (struct wm_reading) { when_ns, 0, WM_READING_FAILED };
}

/* A driver that takes longer than our patience is told of late, each reading at
 * its own time: its last ones stand until the next are there. They may have been
 * made for the tick before; then a GPU that hangs may have kept the others waiting,
 * until the first tick in which that was seen. */
static int64_t oldest_that_counts(const struct wm_ticker *ticker)
{
    int64_t interval_ns = ticker->round_ns - ticker->before_ns;

    return ticker->round_ns - 2 * interval_ns - HELD_UP_NS;
}

void wm_ticker_read_sources(struct wm_ticker *ticker, enum wm_ticker_demand demand,
                            int64_t patience_ns)
{
    int64_t oldest_ns =
        demand == WM_TICKER_NEW ? ticker->round_ns : oldest_that_counts(ticker);
    int64_t deadline_ns = ticker->round_ns + patience_ns;

    /* While the drivers are at work. */
    for (size_t i = 0; i < ticker->source_count; i++) {
        if (!wm_source_is_guarded(ticker->sources[i]))
            read_source(ticker, i, 0, 0);
    }
    for (size_t i = 0; i < ticker->source_count; i++) {
        if (wm_source_is_guarded(ticker->sources[i]))
            read_source(ticker, i, deadline_ns, oldest_ns);
    }
    if (ticker->gpu_count > 0)
        join_gpu_memory(ticker, ticker->round_ns);
}

int64_t wm_ticker_cpu_ns(const struct wm_ticker *ticker)
{
    int64_t total_ns = 0;

    for (size_t i = 0; i < ticker->source_count; i++)
        total_ns += wm_source_cpu_ns(ticker->sources[i]);
    return total_ns;
}

struct wm_tick wm_ticker_tick(const struct wm_ticker *ticker, int64_t when_ns)
{
    return (struct wm_tick) { when_ns, ticker->readings, ticker->count };
}

/* Of the GPU memory of the tree, which is the drivers' to tell. */
static const char *why_own(const struct wm_ticker *ticker, size_t channel)
{
    if (ticker->readings[channel].state == WM_READING_STALE)
        return "a GPU's driver did not answer";
    return ticker->foreign_pids
               ? "the GPU's driver tells processes by numbers of another pid namespace"
               : "the GPU's driver does not tell the memory of its processes";
}

const char *wm_ticker_why(const struct wm_ticker *ticker, size_t channel)
{
    if (channel < ticker->own_count)
        return why_own(ticker, channel);
    for (size_t i = ticker->source_count; i-- > 0;) {
        if (channel >= ticker->first_channel[i])
            return wm_source_why(ticker->sources[i], channel - ticker->first_channel[i]);
    }
    return wm_tree_why(ticker->tree, channel - ticker->first_tree_channel);
}

void wm_ticker_set_own_cpu(struct wm_ticker *ticker, int64_t own_ns)
{
    ticker->own_cpu = (double)own_ns / 1e9;
}
