/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_card.h - cards whose best cap is known, in virtual time, for the search of caps.
 *
 * The clock f (1: all of it) is the highest whose power keeps to the cap, and
 *     power = idle + linear f + cubic f^3,  time of a unit = fixed + work / f,
 * which is what is taken for granted of processors (docs/cap-profile.md). The noise is of
 * each window; the card warms up meanwhile and then leaks a little more.
 */
#ifndef WM_BENCH_MADE_CARD_H
#define WM_BENCH_MADE_CARD_H

#include <math.h>
#include <stdint.h>

#include "made_job.h"

struct made_card {
    const char *name;
    double minimum, maximum; /* caps */
    double idle, linear, cubic;
    double fixed, work;         /* seconds */
    double noise;               /* ratio, of one window */
    double cliff, fall;         /* below that cap everything takes `fall` times as long */
    const struct made_job *job; /* of the other physics; NULL: the above */
};

/* A warm card takes so much more power, and gets warm over so many windows. */
static const double made_leak = 0.02, made_warm_up_windows = 6;

static const struct made_card made_cards[] = {
    { "compute-bound", 100, 300, 40, 30, 230, 0, 1, 0.005, 0, 0, NULL },
    { "memory-bound", 100, 300, 60, 40, 110, 0.8, 0.2, 0.005, 0, 0, NULL },
    { "never binding", 100, 300, 50, 15, 20, 0.5, 0.5, 0.005, 0, 0, NULL },
    { "noisy", 100, 300, 40, 30, 230, 0.2, 0.8, 0.02, 0, 0, NULL },
    { "with a cliff", 100, 300, 30, 20, 240, 0.3, 0.7, 0.005, 150, 1.5, NULL },
    { "narrow range", 280, 320, 50, 30, 240, 0.1, 0.9, 0.005, 0, 0, NULL },
};
#define MADE_CARDS (sizeof(made_cards) / sizeof(made_cards[0]))

static inline double made_power(const struct made_card *card, double clock)
{
    return card->idle + card->linear * clock + card->cubic * clock * clock * clock;
}

static inline double made_clock(const struct made_card *card, double cap)
{
    double low = 0.1, high = 1;

    if (made_power(card, high) <= cap)
        return high;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(made_power(card, middle) <= cap ? &low : &high) = middle;
    }
    return low;
}

/* What a unit of work really takes. */
static inline void made_truth(const struct made_card *card, double cap, double *ret_seconds,
                              double *ret_joules)
{
    double clock = made_clock(card, cap);

    if (card->job) {
        made_job_truth(card->job, cap, ret_seconds, ret_joules);
        return;
    }
    *ret_seconds = card->fixed + card->work / clock;
    if (cap < card->cliff)
        *ret_seconds *= card->fall;
    *ret_joules = *ret_seconds * made_power(card, clock);
}

/* Numbers of the normal distribution, the same ones from the same seed: xorshift, and the
 * polar method. */
static inline double made_uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static inline double made_normal(uint64_t *seed)
{
    double x, y, square;

    do {
        x = 2 * made_uniform(seed) - 1;
        y = 2 * made_uniform(seed) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square <= 0);
    return x * sqrt(-2 * log(square) / square);
}

/* A job of the other physics, by chance. */
static inline struct made_job made_job(const struct made_chip *chip, uint64_t *seed)
{
    struct made_job job = { .chip = chip, .overlap = 1.5 + 6 * made_uniform(seed) };
    double sum = 0, power = 0.3 + 0.6 * made_uniform(seed);

    for (size_t i = 0; i < MADE_PHASES; i++) {
        struct made_phase *phase = &job.phases[i];
        phase->share = 0.1 + made_uniform(seed);
        sum += phase->share;
        phase->compute = 0.25 + 0.6 * made_uniform(seed);
        phase->memory = 1.25 - phase->compute;
        phase->power = power * (0.6 + 0.8 * made_uniform(seed));
        phase->memory_power = 0.3 + 0.7 * made_uniform(seed);
        double seconds = made_phase_seconds(&job, phase, 1, 1);
        phase->compute /= seconds;
        phase->memory /= seconds;
    }
    for (size_t i = 0; i < MADE_PHASES; i++)
        job.phases[i].share /= sum;
    job.host = 0.25 * made_uniform(seed) * made_uniform(seed);
    job.host_power = chip->idle + 0.1 * made_uniform(seed);
    job.slow_memory = made_uniform(seed) < 0.3 ? chip->slow_memory : 0;
    return job;
}

/* What the window of that number, from 0, shows of it. */
static inline void made_window(const struct made_card *card, double cap, size_t window,
                               uint64_t *seed, double *ret_seconds, double *ret_joules)
{
    double warm = 1 - exp(-(double)window / made_warm_up_windows);

    made_truth(card, cap, ret_seconds, ret_joules);
    *ret_joules *= 1 + made_leak * warm;
    *ret_seconds *= exp(card->noise * made_normal(seed));
    *ret_joules *= exp(card->noise * made_normal(seed));
}

#endif
