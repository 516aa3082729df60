/* SPDX-License-Identifier: Apache-2.0 */
/* source_tree.c - the tracked process tree: who is in it, and its memory. */
#include "source/tree/source_tree.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/source_ops.h"

/* Memory of a process that has not run is looked at again after this long,
 * since a relative may have unshared pages with it. */
#define CALM_DETAIL_NS WM_NS_PER_S

/* Reading smaps_rollup holds up its process while that maps memory. So it may
 * take 1 % of the time in all, half of it kept for what should not wait: after a
 * fork it is a guess what is shared before both sides were read. That may be on credit,
 * up to so much. */
#define CREDIT_MAX_NS (50 * WM_NS_PER_MS)
#define CREDIT_CLOSER_NS (25 * WM_NS_PER_MS)
#define BUDGET_SHARE 200

/* Of all processes of the machine, which are somebody else's, less. */
#define BUDGET_SHARE_OF_ALL 1000
#define BUDGET_MAX_NS (250 * WM_NS_PER_MS)
#define ROUTINE_START_NS (2 * WM_NS_PER_MS)
#define FORK_START_NS (20 * WM_NS_PER_MS)

/* What has been swapped out comes back as anonymous memory too, and may be shared with a
 * parent that is not in sight. More than this is worth a look. */
#define GROWTH_MAX_BYTES (1 << 20)

/* A refresh reads smaps_rollup of up to so many processes once more, while the interval of
 * all memory is wider than this part of it. */
enum { CLOSER_LOOKS = 16, VAGUE_SHARE = 20 };
#define CLOSER_PAUSE_NS (100 * WM_NS_PER_MS)
#define CLOSER_PAUSE_MAX_NS (10 * WM_NS_PER_S)

#define CHANNEL(name, of_metric, of_unit)                                                  \
    {                                                                                      \
        .source = "tree", .device = name, .label = name, .metric = of_metric,              \
        .unit = of_unit, .device_kind = WM_DEVICE_TREE,                                    \
    }
#define MEMBER(name)                                                                       \
    CHANNEL(name, "memory_total", "B"), CHANNEL(name, "memory_private", "B"),              \
        CHANNEL(name, "memory_shared", "B"), CHANNEL(name, "threads", "count")
#define BOUNDS(name)                                                                       \
    CHANNEL(name, "memory_total_low", "B"), CHANNEL(name, "memory_total_high", "B")
static const struct wm_channel channels[] = {
    MEMBER("main"),        MEMBER("descendants"),
    MEMBER("tree"),        CHANNEL("tree", "processes", "count"),
    BOUNDS("descendants"), BOUNDS("tree"),
};
#undef BOUNDS
#undef MEMBER
#undef CHANNEL

enum {
    CHANNEL_COUNT = sizeof(channels) / sizeof(channels[0]),
    CHANNELS_PER_MEMBER = 4,
    PROCESSES_CHANNEL = WM_TREE_MEMBERS * CHANNELS_PER_MEMBER,
};

/* The kernel's own peak of a process is asked for this often while it runs. That holds up
 * nobody, but takes some ten times as long as its size. */
#define PEAK_NS (50 * WM_NS_PER_MS)
#define PEAK_SHARE 500
#define PEAK_START_NS (2 * WM_NS_PER_MS)

/* Time that may be spent, saved up at a fixed share of the time that passes: the part of it
 * that one in `share` is. */
struct budget {
    int64_t share;
    int64_t credit_ns;
    int64_t updated_ns;
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct sums {
    size_t members; /* members that are not zombies */
    int64_t rss, uss, pss, largest_shared;

    /* Lower bounds: private memory, and beyond it the largest of one process, and the sum
     * of all shares. */
    int64_t least_uss, least_shared, least_shares;
    int64_t copied;   /* as of a process */
    int64_t given_up; /* since the first of them was read */
    int64_t threads;
};

struct wm_tree {
    struct wm_tree_set set;
    struct budget routine, fork, peak;
    size_t next_detail; /* where the routine goes on */
    int64_t refreshed_ns;
    struct sums sums[WM_TREE_MEMBERS]; /* as of the last refresh */
    struct wm_tree_peak peaks[WM_TREE_MEMBERS];
    const char *why[CHANNEL_COUNT];
};

static void save_up(struct budget *budget, int64_t now_ns)
{
    budget->credit_ns += (now_ns - budget->updated_ns) / budget->share;
    if (budget->credit_ns > BUDGET_MAX_NS)
        budget->credit_ns = BUDGET_MAX_NS;
    budget->updated_ns = now_ns;
}

/* The share of what copies of a process have in common that one of them turns out to have
 * is no longer with the one that stands for all of it. */
static void take_from_stand_in(struct wm_tree *tree, const struct wm_process *process)
{
    int64_t share = process->pss_bytes - process->uss_bytes;

    for (size_t i = 0; process->image != 0 && i < tree->set.count; i++) {
        struct wm_process *other = &tree->set.processes[i];
        int64_t left = other->pss_bytes - other->uss_bytes;
        if (other != process && other->image == process->image && left > 0 &&
            other->detail == WM_DETAIL_GUESSED)
            other->pss_bytes -= share < left ? share : left;
    }
}

/* False if the budget does not allow it now, even on that credit. */
static bool spend_on_detail(struct wm_tree *tree, struct budget *budget,
                            struct wm_process *process, int64_t credit_ns)
{
    /* With all saved up that can be, even the largest process gets its turn, on
     * credit. */
    int64_t cost_ns = wm_process_detail_cost_ns(process);
    if (cost_ns > budget->credit_ns + credit_ns && budget->credit_ns < BUDGET_MAX_NS)
        return false;

    /* Not by the clock on the wall, by which a busy machine makes it look dear. */
    int64_t begin_ns = wm_clock_thread_cpu_ns();
    enum wm_detail_state before = process->detail;
    wm_process_read_detail(&tree->set.procfs, process);
    if (process->detail == WM_DETAIL_DENIED && before != WM_DETAIL_DENIED)
        tree->set.census.denied++;
    if (process->detail == WM_DETAIL_KNOWN && before == WM_DETAIL_GUESSED)
        take_from_stand_in(tree, process);
    budget->credit_ns -= wm_clock_thread_cpu_ns() - begin_ns;
    return true;
}

/* Whether what is known of a process's private memory may have changed. */
static bool is_detail_old(const struct wm_tree *tree, const struct wm_process *process,
                          int64_t now_ns)
{
    if (process->detail != WM_DETAIL_KNOWN || process->state == 'Z')
        return false;

    /* New anonymous memory is private: by how much that of a process without relatives in
     * sight has grown, statm says for a hundredth of the cost. */
    bool has_grown = process->rss_bytes > process->detail_rss_bytes &&
                     process->file_bytes == process->detail_file_bytes;
    if (tree->set.count < 2 && has_grown)
        return process->rss_bytes - process->detail_rss_bytes > GROWTH_MAX_BYTES;
    if (process->rss_bytes != process->detail_rss_bytes ||
        process->file_bytes != process->detail_file_bytes)
        return true;
    if (tree->set.count < 2)
        return false;
    return process->ran_ns >= process->detail_ns ||
           (tree->set.ran_ns >= process->detail_ns &&
            now_ns - process->detail_ns >= CALM_DETAIL_NS);
}

static void refresh_details(struct wm_tree *tree, int64_t now_ns)
{
    save_up(&tree->routine, now_ns);
    save_up(&tree->fork, now_ns);

    /* Copies before those that were copied, of which one stands for what all share until
     * the others were read. */
    for (size_t i = tree->set.count; i-- > 0;) {
        struct wm_process *process = &tree->set.processes[i];
        if (process->detail == WM_DETAIL_GUESSED && process->state != 'Z' &&
            !spend_on_detail(tree, &tree->fork, process, CREDIT_MAX_NS))
            break;
    }

    /* Goes on where the last tick's money ran out, so that all get their turn. */
    size_t start = tree->next_detail;
    for (size_t i = 0; i < tree->set.count; i++) {
        size_t at = (start + i) % tree->set.count;
        if (!is_detail_old(tree, &tree->set.processes[at], now_ns))
            continue;
        if (!spend_on_detail(tree, &tree->routine, &tree->set.processes[at], 0)) {
            tree->next_detail = at;
            break;
        }
    }
}

/* Where memory was given back since, the peak may have been between two refreshes. */
static bool is_peak_due(const struct wm_process *process, int64_t now_ns)
{
    return process->state != 'Z' && process->ran_ns > process->peak_ns &&
           (now_ns - process->peak_ns >= PEAK_NS ||
            process->rss_bytes < process->max_rss_bytes);
}

static void refresh_peaks(struct wm_tree *tree, int64_t now_ns)
{
    save_up(&tree->peak, now_ns);
    for (size_t i = 0; i < tree->set.count && tree->peak.credit_ns > 0; i++) {
        struct wm_process *process = &tree->set.processes[i];
        if (!is_peak_due(process, now_ns))
            continue;
        int64_t begin_ns = wm_clock_thread_cpu_ns();
        wm_process_read_peak(&tree->set.procfs, process, now_ns);
        tree->peak.credit_ns -= wm_clock_thread_cpu_ns() - begin_ns;
    }
}

static void add_to(struct sums *sums, const struct wm_process *process,
                   const struct wm_process_memory *memory)
{
    sums->members++;
    sums->rss += process->rss_bytes;
    sums->uss += memory->uss;
    sums->pss += memory->pss;
    sums->largest_shared = most(sums->largest_shared, process->rss_bytes - memory->uss);
    sums->least_uss += memory->least_uss;
    sums->least_shared = most(sums->least_shared, process->rss_bytes - memory->least_uss);
    sums->least_shares += memory->least_shares;
    sums->copied += memory->copied;
    sums->given_up = most(sums->given_up, memory->given_up);
    sums->threads += process->threads;
}

/* A zombie, or one on its way there that has given back its memory already. */
static bool has_ended(const struct wm_process *process)
{
    return process->state == 'Z' || process->rss_bytes == 0;
}

/* Shared memory counts once. What the members share with each other and with
 * strangers is at least the sum of their shares in it, and at least as much as
 * the one with most of it has. */
static int64_t shared_once(const struct sums *sums)
{
    return most(sums->pss - sums->uss, sums->largest_shared);
}

static int64_t total_of(const struct sums *sums)
{
    return sums->uss + shared_once(sums);
}

static int64_t low_of(const struct sums *sums)
{
    return sums->least_uss + most(sums->least_shared, sums->least_shares);
}

static int64_t high_of(const struct sums *sums)
{
    int64_t high = total_of(sums) + sums->copied + sums->given_up;

    return high < sums->rss ? high : most(sums->rss, total_of(sums));
}

static void raise(int64_t *peak, int64_t value)
{
    if (value > *peak)
        *peak = value;
}

static void raise_peak(struct wm_tree_peak *peak, const struct sums *sums)
{
    raise(&peak->total, total_of(sums));
    raise(&peak->low, low_of(sums));
    raise(&peak->high, high_of(sums));
    raise(&peak->private_, sums->uss);
    raise(&peak->shared, shared_once(sums));
}

/* The kernel has seen so much of one process: no interval ends below it. */
static void raise_sure(struct wm_tree_peak *peak, int64_t bytes)
{
    raise(&peak->total, bytes);
    raise(&peak->low, bytes);
    raise(&peak->high, bytes);
}

static int member_of(const struct wm_tree *tree, const struct wm_process *process)
{
    return process->pid == tree->set.root ? WM_TREE_MAIN : WM_TREE_DESCENDANTS;
}

static void sum_up(struct wm_tree *tree)
{
    struct sums *sums = tree->sums;

    memset(tree->sums, 0, sizeof(tree->sums));
    for (size_t i = 0; i < tree->set.count; i++) {
        const struct wm_process *process = &tree->set.processes[i];
        if (has_ended(process))
            continue;
        const struct wm_process_memory memory =
            wm_process_memory(&tree->set.procfs, process);
        add_to(&sums[member_of(tree, process)], process, &memory);
        add_to(&sums[WM_TREE_ALL], process, &memory);
    }
}

static void note_peaks(struct wm_tree *tree)
{
    for (size_t i = 0; i < tree->set.count; i++) {
        struct wm_process *process = &tree->set.processes[i];
        double uss = (double)wm_process_memory(&tree->set.procfs, process).uss;

        /* Of one, too, that has ended since it was refreshed. */
        raise_sure(&tree->peaks[member_of(tree, process)], process->max_rss_bytes);
        raise_sure(&tree->peaks[WM_TREE_ALL], process->max_rss_bytes);
        if (!has_ended(process) && uss >= process->max_private_bytes.number)
            process->max_private_bytes = (struct wm_known) { true, uss };
    }
    for (int m = 0; m < WM_TREE_MEMBERS; m++)
        raise_peak(&tree->peaks[m], &tree->sums[m]);
}

/* The process with the widest interval. */
static struct wm_process *find_vaguest(struct wm_tree *tree, int64_t now_ns)
{
    struct wm_process *vaguest = NULL;
    int64_t largest = 0;

    for (size_t i = 0; i < tree->set.count; i++) {
        struct wm_process *process = &tree->set.processes[i];
        if (has_ended(process) || process->detail == WM_DETAIL_DENIED ||
            now_ns < process->closer_ns)
            continue;
        const struct wm_process_memory memory =
            wm_process_memory(&tree->set.procfs, process);
        int64_t vague = memory.uss - memory.least_uss + memory.copied;
        if (vague > largest) {
            largest = vague;
            vaguest = process;
        }
    }
    return vaguest;
}

/* False if no process can be read now. One that takes and gives back memory of its own has
 * faults that are no copies: it is read less and less often. */
static bool look_at_vaguest(struct wm_tree *tree, int64_t now_ns)
{
    struct wm_process *process = find_vaguest(tree, now_ns);

    if (!process)
        return false;
    int64_t faulted =
        (int64_t)(process->faults - process->detail_faults) * tree->set.procfs.page_bytes;
    const struct wm_process_memory before = wm_process_memory(&tree->set.procfs, process);
    if (!spend_on_detail(tree, &tree->fork, process, CREDIT_CLOSER_NS))
        return false;
    bool was_worth_it =
        faulted < GROWTH_MAX_BYTES || process->uss_bytes - before.uss > before.copied / 4;
    int64_t pause_ns = was_worth_it ? 0 : 2 * process->closer_pause_ns + CLOSER_PAUSE_NS;
    process->closer_pause_ns =
        pause_ns < CLOSER_PAUSE_MAX_NS ? pause_ns : CLOSER_PAUSE_MAX_NS;
    process->closer_ns = now_ns + process->closer_pause_ns;
    return true;
}

/* Narrows the interval of all memory where it may be higher than ever before, as while
 * copies of a process write to what they share. */
static void look_closer(struct wm_tree *tree, int64_t now_ns)
{
    const struct sums *sums = &tree->sums[WM_TREE_ALL];

    sum_up(tree);
    for (int i = 0; i < CLOSER_LOOKS && tree->fork.credit_ns > -CREDIT_CLOSER_NS; i++) {
        int64_t known = most(tree->peaks[WM_TREE_ALL].low, low_of(sums));
        if (high_of(sums) - known <= known / VAGUE_SHARE || !look_at_vaguest(tree, now_ns))
            return;
        sum_up(tree);
    }
}

void wm_tree_find_all(struct wm_tree *tree)
{
    tree->refreshed_ns = wm_clock_monotonic_ns();
    wm_tree_set_refresh(&tree->set, tree->refreshed_ns);
}

void wm_tree_measure(struct wm_tree *tree)
{
    if (tree->set.procfs.is_other)
        return;
    refresh_details(tree, tree->refreshed_ns);
    refresh_peaks(tree, tree->refreshed_ns);
    look_closer(tree, tree->refreshed_ns);
    note_peaks(tree);
}

void wm_tree_refresh(struct wm_tree *tree)
{
    wm_tree_find_all(tree);
    wm_tree_measure(tree);
}

static void set(struct wm_tree *tree, struct wm_reading *readings, size_t channel,
                double value)
{
    readings[channel].state = WM_READING_OK;
    readings[channel].value = value;
    tree->why[channel] = NULL;
}

static void set_missing(struct wm_tree *tree, struct wm_reading *readings, size_t first,
                        size_t end, enum wm_reading_state state, const char *why)
{
    for (size_t i = first; i < end; i++) {
        readings[i].state = state;
        readings[i].value = 0;
        tree->why[i] = why;
    }
}

/* The first of the channels of the interval in which a member's memory is; that of the main
 * process, which is one, is known. */
static size_t bounds_channel(size_t member)
{
    return PROCESSES_CHANNEL + 1 + 2 * (member - WM_TREE_DESCENDANTS);
}

static void set_memory(struct wm_tree *tree, struct wm_reading *readings, size_t member,
                       const struct sums *sums)
{
    size_t first = member * CHANNELS_PER_MEMBER;

    set(tree, readings, first, (double)total_of(sums));
    set(tree, readings, first + 1, (double)sums->uss);
    set(tree, readings, first + 2, (double)shared_once(sums));
    if (member == WM_TREE_MAIN)
        return;
    size_t bounds = bounds_channel(member);
    set(tree, readings, bounds, (double)low_of(sums));
    set(tree, readings, bounds + 1, (double)high_of(sums));
}

void wm_tree_read(struct wm_tree *tree, struct wm_reading *readings)
{
    const struct sums *sums = tree->sums;

    for (size_t i = 0; i < CHANNEL_COUNT; i++)
        readings[i].when_ns = tree->refreshed_ns;
    if (tree->set.procfs.is_other) {
        set_missing(tree, readings, 0, CHANNEL_COUNT, WM_READING_UNSUPPORTED,
                    "/proc is of another pid namespace (unshare --mount-proc mounts its "
                    "own)");
        return;
    }

    for (size_t m = 0; m < WM_TREE_MEMBERS; m++) {
        size_t first = m * CHANNELS_PER_MEMBER;

        /* No descendants are a true 0, but a tree without its root has ended,
         * and its last reading must not pull down a mean. */
        if (sums[m].members == 0 && m != WM_TREE_DESCENDANTS) {
            set_missing(tree, readings, first, first + CHANNELS_PER_MEMBER, WM_READING_NONE,
                        "it has ended");
            if (m == WM_TREE_ALL)
                set_missing(tree, readings, bounds_channel(m), bounds_channel(m) + 2,
                            WM_READING_NONE, "it has ended");
            continue;
        }
        set_memory(tree, readings, m, &sums[m]);
        set(tree, readings, first + 3, (double)sums[m].threads);
    }
    set(tree, readings, PROCESSES_CHANNEL, (double)sums[WM_TREE_ALL].members);
}

static int open_tree(const char *procfs, pid_t root, pid_t reaper,
                     struct wm_tree **ret_tree, struct wm_error *err)
{
    struct wm_tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return wm_fail_memory(err, "process tree");

    int status = wm_tree_set_init(&tree->set, procfs, root, reaper, err);
    if (status < 0) {
        wm_tree_close(tree);
        return status;
    }
    int64_t now_ns = wm_clock_monotonic_ns();
    int64_t share = root == 1 ? BUDGET_SHARE_OF_ALL : BUDGET_SHARE;
    tree->routine = (struct budget) { share, ROUTINE_START_NS, now_ns };
    tree->fork = (struct budget) { share, FORK_START_NS, now_ns };
    tree->peak = (struct budget) { PEAK_SHARE, PEAK_START_NS, now_ns };
    *ret_tree = tree;
    return WM_OK;
}

int wm_tree_open(const char *procfs, pid_t root, struct wm_tree **ret_tree,
                 struct wm_error *err)
{
    return open_tree(procfs, root, 0, ret_tree, err);
}

int wm_tree_open_command(pid_t command, pid_t reaper, struct wm_tree **ret_tree,
                         struct wm_error *err)
{
    return open_tree("/proc", command, reaper, ret_tree, err);
}

int wm_tree_add(struct wm_tree *tree, pid_t pid, struct wm_error *err)
{
    return wm_tree_set_add(&tree->set, pid, err);
}

void wm_tree_close(struct wm_tree *tree)
{
    if (!tree)
        return;
    wm_tree_set_release(&tree->set);
    free(tree);
}

void wm_tree_executed(struct wm_tree *tree)
{
    struct wm_process *root = wm_tree_set_find(&tree->set, tree->set.root);

    tree->set.started = true;
    if (!root)
        return;
    root->refreshed_ns = 0;
    root->image = 0; /* so that it becomes another one in any case */
    memset(tree->peaks, 0, sizeof(tree->peaks));
    root->detail_cost_ns = 0;
    root->max_rss_bytes = 0;
    root->max_private_bytes = (struct wm_known) { 0 };
}

size_t wm_tree_channels(const struct wm_tree *tree, const struct wm_channel **ret_channels)
{
    (void)tree;
    *ret_channels = channels;
    return CHANNEL_COUNT;
}

const struct wm_tree_peak *wm_tree_peaks(const struct wm_tree *tree)
{
    return tree->peaks;
}

const char *wm_tree_why(const struct wm_tree *tree, size_t channel)
{
    return tree->why[channel];
}

/* NULL: it is not gone, or forgotten. */
static const struct wm_process *find_gone_root(const struct wm_tree_set *set)
{
    for (size_t i = 0; i < set->gone_count; i++) {
        if (set->gone[i].pid == set->root)
            return &set->gone[i];
    }
    return NULL;
}

int64_t wm_tree_main_cpu_ns(const struct wm_tree *tree)
{
    const struct wm_process *root = wm_tree_set_find(&tree->set, tree->set.root);

    if (root)
        return wm_process_cpu_ns(&tree->set.procfs, root);
    root = find_gone_root(&tree->set);
    return root ? root->cpu_ns : 0;
}

int64_t wm_tree_live_others_cpu_ns(const struct wm_tree *tree)
{
    int64_t total_ns = 0;

    for (size_t i = 0; i < tree->set.count; i++) {
        if (tree->set.processes[i].pid != tree->set.root)
            total_ns += tree->set.processes[i].cpu_ns;
    }
    return total_ns;
}

int64_t wm_tree_others_cpu_ns(const struct wm_tree *tree)
{
    int64_t total_ns = tree->set.gone_ns + wm_tree_live_others_cpu_ns(tree);

    for (size_t i = 0; i < tree->set.count; i++)
        total_ns += wm_process_reaped_ns(&tree->set.processes[i]);
    return total_ns;
}

void wm_tree_rebase(struct wm_tree *tree)
{
    for (size_t i = 0; i < tree->set.count; i++) {
        struct wm_process *process = &tree->set.processes[i];
        process->cpu_base_ns = process->cpu_ns;
        wm_process_forget_reaped(&tree->set.procfs, process);
    }
    memset(tree->peaks, 0, sizeof(tree->peaks));
}

bool wm_tree_is_blind(const struct wm_tree *tree)
{
    return tree->set.procfs.is_other;
}

bool wm_tree_identify(const struct wm_tree *tree, pid_t pid, uid_t *ret_user,
                      char *ret_command, size_t size)
{
    return wm_process_identify(&tree->set.procfs, pid, ret_user, ret_command, size);
}

bool wm_tree_contains(const struct wm_tree *tree, pid_t pid)
{
    return wm_tree_set_find(&tree->set, pid) != NULL;
}

const struct wm_process *wm_tree_processes(const struct wm_tree *tree, size_t *ret_count)
{
    *ret_count = tree->set.count;
    return tree->set.processes;
}

const struct wm_process *wm_tree_gone(const struct wm_tree *tree, size_t *ret_count)
{
    *ret_count = tree->set.gone_count;
    return tree->set.gone;
}

void wm_tree_count(const struct wm_tree *tree, struct wm_tree_census *ret_census)
{
    *ret_census = tree->set.census;
}

/* The tree as a source like any other, for whoever wants its readings alone. */
struct tree_source {
    struct wm_tree *tree;
};

static int source_open(void *state, const struct wm_source_config *config,
                       struct wm_source_found *ret_found, struct wm_error *err)
{
    struct tree_source *source = state;

    *ret_found =
        (struct wm_source_found) { .channels = channels, .channel_count = CHANNEL_COUNT };
    return wm_tree_open(config->procfs, config->pid, &source->tree, err);
}

static int source_read(void *state, struct wm_reading *readings, struct wm_error *err)
{
    const struct tree_source *source = state;
    (void)err; /* a tree that has ended is reported by its readings */

    wm_tree_refresh(source->tree);
    wm_tree_read(source->tree, readings);
    return WM_OK;
}

static const char *source_why(const void *state, size_t channel)
{
    const struct tree_source *source = state;
    return wm_tree_why(source->tree, channel);
}

static void source_close(void *state)
{
    const struct tree_source *source = state;
    wm_tree_close(source->tree);
}

const struct wm_source_ops wm_source_tree = {
    .name = "tree",
    .summary = "a process and its descendants: memory, threads",
    .traits = { .is_of_every_target = true },
    .state_size = sizeof(struct tree_source),
    .open = source_open,
    .read = source_read,
    .why = source_why,
    .close = source_close,
};
