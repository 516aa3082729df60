/* SPDX-License-Identifier: Apache-2.0 */
/* track_shares.c - sums over the processes on each GPU that are in the tree. */
#include "track/account/track_shares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "source/source_traits.h"
#include "source/tree/source_pidns.h"

enum { GPU_MAX = 256, USE_MAX = 4096 };

/* What the tree has of a GPU, over its processes: the channels of each GPU. */
enum { MEMORY, UTILIZATION, QUANTITY_COUNT };

#define WHYS(what)                                                                         \
    {                                                                                      \
        [WM_READING_NONE] = "the GPU's driver has not reported " what " yet",              \
        [WM_READING_UNSUPPORTED] = "the GPU's driver does not report " what,               \
        [WM_READING_DENIED] = "the GPU's driver does not show this user " what,            \
        [WM_READING_FAILED] = "the GPU's driver could not report " what,                   \
        [WM_READING_STALE] = "the GPU's driver did not answer",                            \
    }

static const struct {
    const char *metric, *unit;
    double most;         /* of the sum: shares of time are rounded, and may overlap */
    const char *whys[6]; /* by the state */
} quantities[QUANTITY_COUNT] = {
    [MEMORY] = { "tree_memory_used", "B", HUGE_VAL, WHYS("the memory of its processes") },
    [UTILIZATION] = { "tree_utilization", "ratio", 1,
                      WHYS("what each process uses of it") },
};

/* Over processes, as far as they are known; `why` where the state is not ok. */
struct sum {
    double value;
    enum wm_reading_state state;
    const char *why;
};

struct gpu {
    const struct wm_channel *channel; /* the first of its source's channels */
    const struct wm_source *source;
    struct sum sums[QUANTITY_COUNT];
    double main_bytes; /* of the memory, what the root of the tree has */
    double use_s;      /* of the processes of the tree, since uses are kept */
};

struct wm_shares {
    struct gpu gpus[GPU_MAX]; /* those of a source stand together */
    size_t gpu_count;
    struct sum memory; /* of the tree, on all of them */

    struct wm_share_use *uses; /* NULL: nobody wants them */
    size_t use_count;
    size_t use_next; /* where the next one that is reported probably stands */
    int64_t read_ns; /* the reading now at work, and the one before it */
    int64_t before_ns;

    struct wm_tree *tree;
    pid_t root;
    bool foreign_pids;      /* drivers may speak of pids of another namespace */
    struct wm_pidns *pidns; /* and it tells which; else NULL */
};

int wm_shares_new(struct wm_shares **ret_shares, struct wm_error *err)
{
    struct wm_shares *shares = calloc(1, sizeof(*shares));

    if (!shares)
        return wm_fail_memory(err, "tracker");
    *ret_shares = shares;
    return WM_OK;
}

void wm_shares_free(struct wm_shares *shares)
{
    if (!shares)
        return;
    wm_pidns_close(shares->pidns);
    free(shares->uses);
    free(shares);
}

static bool is_first_of_gpu(const struct wm_source *source, size_t index)
{
    const struct wm_channel *channel = wm_source_channel(source, index);

    return channel->device_kind == WM_DEVICE_GPU &&
           (index == 0 ||
            strcmp(wm_source_channel(source, index - 1)->device, channel->device) != 0);
}

void wm_shares_add_source(struct wm_shares *shares, const struct wm_source *source)
{
    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        if (is_first_of_gpu(source, i) && shares->gpu_count < GPU_MAX)
            shares->gpus[shares->gpu_count++] = (struct gpu) {
                .channel = wm_source_channel(source, i),
                .source = source,
            };
    }
}

struct wm_channel wm_part_channel(enum wm_part member, const char *metric, const char *unit,
                                  enum wm_kind kind)
{
    static const char *const names[] = { "main", "descendants", "tree" };

    return (struct wm_channel) {
        .source = "tracker",
        .device = names[member],
        .label = names[member],
        .metric = metric,
        .unit = unit,
        .device_kind = WM_DEVICE_TREE,
        .kind = kind,
    };
}

static struct wm_channel gpu_channel(const struct gpu *gpu, size_t quantity)
{
    struct wm_channel channel = *gpu->channel;

    channel.source = "tracker";
    channel.metric = quantities[quantity].metric;
    channel.unit = quantities[quantity].unit;
    channel.kind = WM_GAUGE;
    channel.period_ns = 0;
    channel.sensor = (struct wm_sensor) { 0 };
    return channel;
}

size_t wm_shares_channels(const struct wm_shares *shares, struct wm_channel *ret_channels)
{
    size_t in_gpus = shares->gpu_count * QUANTITY_COUNT;

    if (in_gpus == 0)
        return 0;
    for (enum wm_part m = 0; ret_channels && m < WM_PART_COUNT; m++) {
        ret_channels[m] = wm_part_channel(m, "gpu_memory", "B", WM_GAUGE);
        ret_channels[m].origin = shares->gpus[0].channel->origin;
    }
    for (size_t i = 0; ret_channels && i < in_gpus; i++)
        ret_channels[WM_PART_COUNT + i] =
            gpu_channel(&shares->gpus[i / QUANTITY_COUNT], i % QUANTITY_COUNT);
    return WM_PART_COUNT + in_gpus;
}

int wm_shares_set_target(struct wm_shares *shares, struct wm_tree *tree, pid_t root,
                         bool own_numbers, struct wm_error *err)
{
    shares->tree = tree;
    shares->root = root;
    shares->foreign_pids = shares->gpu_count > 0 && wm_pidns_is_inner();
    if (!shares->foreign_pids || !own_numbers)
        return WM_OK;
    return wm_pidns_open(wm_env_trusted("WATTMETER_PROCFS", "/proc"), "/proc",
                         &shares->pidns, err);
}

static struct gpu *find_gpu(struct wm_shares *shares, const char *device)
{
    for (size_t i = 0; i < shares->gpu_count; i++) {
        if (strcmp(shares->gpus[i].channel->device, device) == 0)
            return &shares->gpus[i];
    }
    return NULL;
}

/* Which of our processes it is, by our number; 0 where it is none, or nobody knows.
 * `ret_sure`: the number is no coincidence. */
static pid_t number_of(const struct wm_shares *shares, const struct wm_gpu_process *process,
                       bool *ret_sure)
{
    struct wm_pidns_process found;

    *ret_sure = false;
    if (!shares->pidns)
        return process->pid;
    wm_pidns_find(shares->pidns, process->pid, &found);
    *ret_sure = found.answer == WM_PIDNS_OURS || found.answer == WM_PIDNS_OUTSIDE;
    return found.ours;
}

static void add_to(struct sum *sum, double value, enum wm_reading_state state,
                   const char *why)
{
    if (state == WM_READING_OK) {
        sum->value += value;
    } else if (sum->state == WM_READING_OK) {
        sum->state = state;
        sum->why = why;
    }
}

static void set_sums(struct gpu *gpu, enum wm_reading_state state, const char *why)
{
    for (int q = 0; q < QUANTITY_COUNT; q++)
        gpu->sums[q] = (struct sum) { .state = state, .why = why };
}

static const char *why_of(const struct wm_gpu_process *process, int quantity,
                          enum wm_reading_state state)
{
    return process->why ? process->why : quantities[quantity].whys[state];
}

/* Of the processes that one source has reported. */
struct census {
    size_t members;   /* of the tree */
    size_t strangers; /* that may not be in the tree */
};

/* Drivers report processes in the same order nearly always. */
static struct wm_share_use *find_use(struct wm_shares *shares, size_t gpu, pid_t pid)
{
    for (size_t i = 0; i < shares->use_count; i++) {
        size_t place = (shares->use_next + i) % shares->use_count;
        struct wm_share_use *use = &shares->uses[place];
        if (use->gpu == gpu && use->pid == pid) {
            shares->use_next = place + 1;
            return use;
        }
    }
    if (shares->use_count == USE_MAX)
        return NULL;
    struct wm_share_use *use = &shares->uses[shares->use_count++];
    *use = (struct wm_share_use) { .gpu = gpu, .pid = pid };
    return use;
}

static void add_use(struct wm_shares *shares, struct gpu *gpu, pid_t pid,
                    const struct wm_gpu_process *process)
{
    bool is_known = process->sm_state == WM_READING_OK;
    double seconds =
        shares->before_ns > 0 ? (double)(shares->read_ns - shares->before_ns) / 1e9 : 0;

    struct wm_share_use *use = find_use(shares, (size_t)(gpu - shares->gpus), pid);
    if (!use)
        return;
    if (use->when_ns != shares->read_ns) /* a driver may have two entries of it */
        use->use = use->memory_bytes = 0;
    use->when_ns = shares->read_ns;
    use->use += is_known ? process->sm_ratio : NAN;
    use->memory_bytes += process->state == WM_READING_OK ? process->memory_bytes : NAN;
    use->use_s += is_known ? process->sm_ratio * seconds : 0;
    gpu->use_s += is_known ? process->sm_ratio * seconds : 0;
}

static void add_process(struct wm_shares *shares, struct gpu *gpu,
                        const struct wm_gpu_process *process, struct census *census)
{
    /* Pid 0 stands for "this GPU will not tell its processes". */
    pid_t pid = 0;
    if (process->pid != 0) {
        bool sure;
        pid = number_of(shares, process, &sure);
        if (pid == 0 || !wm_tree_contains(shares->tree, pid)) {
            census->strangers += !sure;
            return;
        }
    }
    census->members += pid != 0;
    add_to(&gpu->sums[MEMORY], process->memory_bytes, process->state,
           why_of(process, MEMORY, process->state));
    add_to(&gpu->sums[UTILIZATION], process->sm_ratio, process->sm_state,
           why_of(process, UTILIZATION, process->sm_state));
    if (pid != 0 && shares->uses)
        add_use(shares, gpu, pid, process);
    if (pid != 0 && pid == shares->root && process->state == WM_READING_OK)
        gpu->main_bytes += process->memory_bytes;
}

/* In a container a driver may report the host's pids. As long as none of them is one of
 * ours, "none of ours" cannot be distinguished from "not ours to match". Another
 * source's driver proves nothing: each has numbers of its own kind. */
static void join_source(struct wm_shares *shares, const struct wm_source *source)
{
    const struct wm_gpu_process *processes = NULL;
    struct census census = { 0 };
    struct gpu *gpu = NULL;

    size_t count = wm_source_gpu_processes(source, &processes);
    for (size_t i = 0; i < count; i++) {
        /* A driver reports all of a GPU one after the other. */
        if (i == 0 || processes[i].device != processes[i - 1].device)
            gpu = find_gpu(shares, processes[i].device);
        if (gpu)
            add_process(shares, gpu, &processes[i], &census);
    }
    if (!shares->foreign_pids || census.strangers == 0 || census.members > 0)
        return;
    for (size_t i = 0; i < shares->gpu_count; i++) {
        if (shares->gpus[i].source == source)
            set_sums(&shares->gpus[i], WM_READING_UNSUPPORTED,
                     "the GPU's driver reports processes by numbers of another pid "
                     "namespace");
    }
}

static void tell_members(struct wm_shares *shares, int64_t when_ns,
                         struct wm_reading *readings)
{
    struct sum *all = &shares->memory;
    double main = 0;

    *all = (struct sum) { .state = WM_READING_OK };
    for (size_t i = 0; i < shares->gpu_count; i++) {
        const struct sum *memory = &shares->gpus[i].sums[MEMORY];
        add_to(all, memory->value, memory->state, memory->why);
        main += shares->gpus[i].main_bytes;
    }
    const double values[WM_PART_COUNT] = { main, all->value - main, all->value };
    for (size_t m = 0; m < WM_PART_COUNT; m++)
        readings[m] = (struct wm_reading) { when_ns, values[m], all->state };
}

static void tell_gpu(const struct gpu *gpu, int64_t when_ns, struct wm_reading *readings)
{
    for (size_t q = 0; q < QUANTITY_COUNT; q++)
        readings[q] =
            (struct wm_reading) { when_ns, fmin(gpu->sums[q].value, quantities[q].most),
                                  gpu->sums[q].state };
}

void wm_shares_read(struct wm_shares *shares, int64_t when_ns,
                    struct wm_reading *ret_readings)
{
    if (shares->gpu_count == 0)
        return;
    shares->before_ns = shares->read_ns;
    shares->read_ns = when_ns;
    for (size_t i = 0; i < shares->gpu_count; i++) {
        set_sums(&shares->gpus[i], WM_READING_OK, NULL);
        shares->gpus[i].main_bytes = 0;
    }
    for (size_t i = 0; i < shares->gpu_count; i++) {
        if (i == 0 || shares->gpus[i].source != shares->gpus[i - 1].source)
            join_source(shares, shares->gpus[i].source);
    }
    tell_members(shares, when_ns, ret_readings);
    for (size_t i = 0; i < shares->gpu_count; i++)
        tell_gpu(&shares->gpus[i], when_ns,
                 ret_readings + WM_PART_COUNT + i * QUANTITY_COUNT);
}

int wm_shares_keep_uses(struct wm_shares *shares, struct wm_error *err)
{
    if (!shares->uses && shares->gpu_count > 0)
        shares->uses = calloc(USE_MAX, sizeof(*shares->uses));
    return shares->uses || shares->gpu_count == 0 ? WM_OK : wm_fail_memory(err, "tracker");
}

struct wm_share_use *wm_shares_uses(struct wm_shares *shares, size_t *ret_count)
{
    size_t kept = 0;

    for (size_t i = 0; i < shares->use_count; i++) {
        struct wm_share_use use = shares->uses[i];
        use.is_there = use.when_ns == shares->read_ns;
        if (wm_tree_contains(shares->tree, use.pid))
            shares->uses[kept++] = use;
    }
    *ret_count = shares->use_count = kept;
    return shares->uses;
}

const char *wm_shares_gpu(const struct wm_shares *shares, size_t gpu)
{
    return gpu < shares->gpu_count ? shares->gpus[gpu].channel->device : NULL;
}

double wm_shares_use_s(const struct wm_shares *shares, size_t gpu)
{
    return shares->gpus[gpu].use_s;
}

const char *wm_shares_why(const struct wm_shares *shares, size_t channel)
{
    if (channel < WM_PART_COUNT)
        return shares->memory.why;
    size_t place = channel - WM_PART_COUNT;
    return shares->gpus[place / QUANTITY_COUNT].sums[place % QUANTITY_COUNT].why;
}
