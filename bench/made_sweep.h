/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_sweep.h - sweeps as people measure them on real cards: some caps in steps of the
 * card's own range, and a job by chance, which is uneven as real ones are.
 *
 * What a job takes whatever the clock is such that the least energy mostly lies between
 * the ends, as is reported of real sweeps. The ranges are published by the makers. That an
 * A40 draws more than its lowest cap, and that the clocks of all of them fall to a floor,
 * is from published measurements.
 */
#ifndef WM_BENCH_MADE_SWEEP_H
#define WM_BENCH_MADE_SWEEP_H

#include "made_card.h"

enum { MADE_SWEEP_MAX = 9 };

struct made_sweep_card {
    const char *name;
    double caps[MADE_SWEEP_MAX]; /* up to the default limit; ends with 0 */
    double idle;                 /* share of the job's power, at least */
    double floor;                /* the lowest clock that a cap brings about */
};

static const struct made_sweep_card made_sweep_cards[] = {
    { "V100", { 100, 125, 150, 175, 200, 225, 250 }, 0.14, 0.30 },
    { "A40", { 100, 125, 150, 175, 200, 225, 250, 275, 300 }, 0.20, 0.45 },
    { "P100", { 125, 150, 175, 200, 225, 250 }, 0.14, 0.45 },
    { "RTX 6000", { 100, 120, 140, 160, 180, 200, 230, 260 }, 0.18, 0.35 },
};
#define MADE_SWEEP_CARDS (sizeof(made_sweep_cards) / sizeof(made_sweep_cards[0]))

struct made_sweep {
    size_t count;
    double caps[MADE_SWEEP_MAX], seconds[MADE_SWEEP_MAX], joules[MADE_SWEEP_MAX];
};

/* A sweep of a job of the other physics, at seven or nine caps. */
static inline struct made_sweep made_job_sweep(const struct made_chip *chip, uint64_t *seed)
{
    struct made_job job = made_job(chip, seed);
    struct made_sweep sweep = { .count = chip->maximum < 300 ? 7 : 9 };
    double uneven = 0.002 + 0.008 * made_uniform(seed);

    for (size_t i = 0; i < sweep.count; i++) {
        double share = (double)i / (double)(sweep.count - 1);
        double off = exp(uneven * made_normal(seed));
        sweep.caps[i] = chip->minimum + share * (chip->maximum - chip->minimum);
        made_job_truth(&job, sweep.caps[i], &sweep.seconds[i], &sweep.joules[i]);
        sweep.seconds[i] *= off;
        sweep.joules[i] *= off * exp(uneven * made_normal(seed));
    }
    return sweep;
}

/* A job: how much of it waits for memory, how much power it takes at most, and how uneven
 * its times and its energies are from one cap to the next. */
static inline struct made_sweep made_sweep(const struct made_sweep_card *card,
                                           uint64_t *seed)
{
    struct made_sweep sweep = { 0 };
    struct made_card job = { 0 };
    double top, uneven = 0.003 + 0.007 * made_uniform(seed);

    while (sweep.count < MADE_SWEEP_MAX && card->caps[sweep.count] > 0)
        sweep.count++;
    top = card->caps[sweep.count - 1] * (0.45 + 0.7 * made_uniform(seed));
    job.idle = (card->idle + 0.3 * made_uniform(seed)) * top;
    job.linear = (top - job.idle) * 0.6 * made_uniform(seed);
    job.cubic = top - job.idle - job.linear;
    job.fixed = 0.7 * made_uniform(seed);
    job.work = 1 - job.fixed;
    for (size_t i = 0; i < sweep.count; i++) {
        double clock = fmax(made_clock(&job, card->caps[i]), card->floor);
        sweep.caps[i] = card->caps[i];
        sweep.seconds[i] =
            1000 * (job.fixed + job.work / clock) * exp(uneven * made_normal(seed));
        sweep.joules[i] =
            sweep.seconds[i] * made_power(&job, clock) * exp(uneven * made_normal(seed));
    }
    return sweep;
}

#endif
