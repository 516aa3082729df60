/* SPDX-License-Identifier: Apache-2.0 */
/* track_tick.c - reads every source once, and what only all of them together can
 * tell. */
#include "track/track_tick.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/source_round.h"
#include "track/account/track_shares.h"

/* How long one GPU holds up the others before it is given up; some more for the
 * round after it. */
#define HELD_UP_NS (WM_GUARD_HANG_NS + 100 * WM_NS_PER_MS)

enum { SOURCE_MAX = 16 };

/* Whose CPU time it is: the first channels of all. */
enum { MAIN, DESCENDANTS, TREE, MEMBER_COUNT };

static const char *const member_names[MEMBER_COUNT] = { "main", "descendants", "tree" };

struct wm_ticker {
    struct wm_source *sources[SOURCE_MAX];
    size_t first_channel[SOURCE_MAX];
    size_t source_count;
    int64_t round_ns;  /* when the drivers were asked for this tick, */
    int64_t before_ns; /* and for the one before */

    struct wm_tree *tree;
    struct wm_account *account;
    double own_cpu;                   /* seconds of ours in the tracked process */
    double main_cpu, descendants_cpu; /* less those; what was told last */

    struct wm_channel *channels;
    struct wm_reading *readings;
    size_t count;
    size_t first_share_channel, first_tree_channel; /* the CPU times are before them */
    struct wm_shares *shares;
};

int wm_ticker_new(struct wm_ticker **ret_ticker, struct wm_error *err)
{
    struct wm_ticker *ticker = calloc(1, sizeof(*ticker));

    if (!ticker)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    int status = wm_shares_new(&ticker->shares, err);
    if (status < 0) {
        free(ticker);
        return status;
    }
    *ret_ticker = ticker;
    return WM_OK;
}

void wm_ticker_free(struct wm_ticker *ticker)
{
    if (!ticker)
        return;
    for (size_t i = 0; i < ticker->source_count; i++)
        wm_source_close(ticker->sources[i]);
    wm_shares_free(ticker->shares);
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

static bool is_cpu_energy(const struct wm_channel *channel)
{
    return channel->device_kind == WM_DEVICE_CPU &&
           (strcmp(channel->metric, "energy") == 0 ||
            strcmp(channel->metric, "power") == 0);
}

bool wm_ticker_has_cpu_energy(const struct wm_ticker *ticker)
{
    for (size_t i = 0; i < ticker->source_count; i++) {
        const struct wm_source *source = ticker->sources[i];
        for (size_t k = 0; k < wm_source_channel_count(source); k++) {
            if (is_cpu_energy(wm_source_channel(source, k)))
                return true;
        }
    }
    return false;
}

int wm_ticker_add(struct wm_ticker *ticker, struct wm_source *source, struct wm_error *err)
{
    if (ticker->source_count == SOURCE_MAX) {
        wm_source_close(source);
        return wm_fail(err, WM_EINVAL, "tracker: more than %d sources", SOURCE_MAX);
    }
    ticker->sources[ticker->source_count++] = source;
    wm_shares_add_source(ticker->shares, source);
    return WM_OK;
}

void wm_ticker_count_gpus(const struct wm_ticker *ticker, int *ret_chosen, int *ret_all)
{
    size_t all = 0;

    for (size_t i = 0; i < ticker->source_count; i++)
        all += wm_source_device_count(ticker->sources[i]);
    *ret_chosen = (int)wm_shares_gpu_count(ticker->shares);
    *ret_all = (int)all;
}

static void append(struct wm_ticker *ticker, const struct wm_channel *channel)
{
    ticker->channels[ticker->count++] = *channel;
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
        append(ticker, &channel);
    }
    ticker->first_share_channel = ticker->count;
    ticker->count += wm_shares_channels(ticker->shares, ticker->channels + ticker->count);
}

int wm_ticker_set_target(struct wm_ticker *ticker, struct wm_tree *tree, pid_t root,
                         bool own_numbers, struct wm_account *account, struct wm_error *err)
{
    const struct wm_channel *tree_channels;
    size_t tree_count = wm_tree_channels(tree, &tree_channels);
    size_t room = MEMBER_COUNT + wm_shares_channels(ticker->shares, NULL) + tree_count;

    for (size_t i = 0; i < ticker->source_count; i++)
        room += wm_source_channel_count(ticker->sources[i]);
    ticker->channels = calloc(room, sizeof(*ticker->channels));
    ticker->readings = calloc(room, sizeof(*ticker->readings));
    if (!ticker->channels || !ticker->readings)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");

    int status = wm_shares_set_target(ticker->shares, tree, root, own_numbers, err);
    if (status < 0)
        return status;
    ticker->tree = tree;
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

    /* Right behind the root's clock, which is read last: a counter may take a while. */
    wm_tree_refresh(ticker->tree);
    wm_account_read(ticker->account, ticker->tree, &total, &main);
    int64_t when_ns = wm_clock_monotonic_ns();
    wm_tree_read(ticker->tree, ticker->readings + ticker->first_tree_channel);

    /* The two clocks are read a moment apart; that must not look like a counter
     * that goes back. */
    double own = ticker->own_cpu < main ? ticker->own_cpu : main;
    if (main - own > ticker->main_cpu)
        ticker->main_cpu = main - own;
    if (total - main > ticker->descendants_cpu)
        ticker->descendants_cpu = total - main;
    set(ticker, MAIN, when_ns, ticker->main_cpu);
    set(ticker, DESCENDANTS, when_ns, ticker->descendants_cpu);
    set(ticker, TREE, when_ns, ticker->main_cpu + ticker->descendants_cpu);
}

void wm_ticker_start_cpu(struct wm_ticker *ticker, int64_t when_ns)
{
    for (int m = 0; m < MEMBER_COUNT; m++)
        set(ticker, (size_t)m, when_ns, 0);
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
    wm_shares_read(ticker->shares, ticker->round_ns,
                   ticker->readings + ticker->first_share_channel);
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

const char *wm_ticker_why(const struct wm_ticker *ticker, size_t channel)
{
    if (channel < ticker->first_share_channel)
        return NULL; /* CPU times are always there */
    if (channel < ticker->first_tree_channel)
        return wm_shares_why(ticker->shares, channel - ticker->first_share_channel);
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
