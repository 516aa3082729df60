/* SPDX-License-Identifier: Apache-2.0 */
/* track_tick.c - reads every source once, and what only all of them together can
 * tell. */
#include "track/track_tick.h"

#include <stdlib.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "track/account/track_shares.h"

/* How long one GPU holds up the others before it is given up; some more for the
 * round after it. */
#define HELD_UP_NS (WM_GUARD_HANG_NS + 100 * WM_NS_PER_MS)

/* Whose CPU time it is: the first channels of all. */
enum { MAIN, DESCENDANTS, TREE, MEMBER_COUNT };

static const char *const member_names[MEMBER_COUNT] = { "main", "descendants", "tree" };

struct wm_ticker {
    struct wm_source_set *sources;
    int64_t round_ns;  /* when the drivers were asked for this tick, */
    int64_t before_ns; /* and for the one before */

    struct wm_tree *tree;
    struct wm_account *account;
    double own_cpu;                   /* seconds of ours in the tracked process */
    double main_cpu, descendants_cpu; /* less those; what was told last */

    struct wm_channel *channels;
    struct wm_reading *readings;
    size_t count;
    /* The CPU times are before them. */
    size_t first_share_channel, first_tree_channel, first_source_channel;
    struct wm_shares *shares;
};

void wm_ticker_free(struct wm_ticker *ticker)
{
    if (!ticker)
        return;
    wm_shares_free(ticker->shares);
    free(ticker->channels);
    free(ticker->readings);
    free(ticker);
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

static void append_all(struct wm_ticker *ticker, const struct wm_channel *tree_channels,
                       size_t tree_count)
{
    append_own(ticker);
    ticker->first_tree_channel = ticker->count;
    for (size_t i = 0; i < tree_count; i++)
        append(ticker, &tree_channels[i]);
    ticker->first_source_channel = ticker->count;
    for (size_t i = 0; i < wm_source_set_channel_count(ticker->sources); i++)
        append(ticker, wm_source_set_channel(ticker->sources, i));
}

static int fill(struct wm_ticker *ticker, const struct wm_ticker_target *target,
                struct wm_error *err)
{
    const struct wm_channel *tree_channels;
    size_t tree_count = wm_tree_channels(target->tree, &tree_channels);

    int status = wm_shares_new(&ticker->shares, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < wm_source_set_count(ticker->sources); i++)
        wm_shares_add_source(ticker->shares,
                             wm_source_set_member(ticker->sources, i)->source);
    size_t room = MEMBER_COUNT + wm_shares_channels(ticker->shares, NULL) + tree_count +
                  wm_source_set_channel_count(ticker->sources);
    ticker->channels = calloc(room, sizeof(*ticker->channels));
    ticker->readings = calloc(room, sizeof(*ticker->readings));
    if (!ticker->channels || !ticker->readings)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    append_all(ticker, tree_channels, tree_count);
    return wm_shares_set_target(ticker->shares, target->tree, target->root,
                                target->own_numbers, err);
}

int wm_ticker_new(struct wm_source_set *sources, const struct wm_ticker_target *target,
                  struct wm_ticker **ret_ticker, struct wm_error *err)
{
    struct wm_ticker *ticker = calloc(1, sizeof(*ticker));

    if (!ticker)
        return wm_fail(err, WM_ENOMEM, "tracker: out of memory");
    ticker->sources = sources;
    ticker->tree = target->tree;
    ticker->account = target->account;
    int status = fill(ticker, target, err);
    if (status < 0) {
        wm_ticker_free(ticker);
        return status;
    }
    *ret_ticker = ticker;
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
    ticker->round_ns = wm_source_set_begin(ticker->sources);
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

    wm_source_set_collect(ticker->sources, ticker->round_ns + patience_ns, oldest_ns,
                          ticker->readings + ticker->first_source_channel);
    wm_shares_read(ticker->shares, ticker->round_ns,
                   ticker->readings + ticker->first_share_channel);
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
    if (channel < ticker->first_source_channel)
        return wm_tree_why(ticker->tree, channel - ticker->first_tree_channel);
    return wm_source_set_why(ticker->sources, channel - ticker->first_source_channel);
}

void wm_ticker_set_own_cpu(struct wm_ticker *ticker, int64_t own_ns)
{
    ticker->own_cpu = (double)own_ns / 1e9;
}
