/* SPDX-License-Identifier: Apache-2.0 */
/* made_search.h - searches on cards and sweeps whose best cap is known, and how far off
 * their answers are. For the unit test, and in full for the benchmark. */
#ifndef WM_BENCH_MADE_SEARCH_H
#define WM_BENCH_MADE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "made_sweep.h"
#include "wattmeter/cap_search.h"

struct made_result {
    double cap;
    double loss;   /* of the true objective, over that of the best cap: a ratio */
    double slower; /* than the limit of the slowdown; below 0 where it is kept */
    size_t windows;
    enum wm_cap_reason reason;
};

static inline double made_objective(const struct wm_cap_plan *plan, double seconds,
                                    double joules)
{
    double power_of_time = plan->objective == WM_CAP_EDP    ? 1
                           : plan->objective == WM_CAP_ED2P ? 2
                                                            : 0;

    if (plan->objective == WM_CAP_COST)
        return joules + plan->maximum * seconds;
    return joules * pow(seconds, power_of_time);
}

static inline uint64_t made_seed(size_t first, size_t second)
{
    uint64_t seed = 1000003 * (uint64_t)(first + 1) + 7919 * (uint64_t)(second + 1);

    for (int i = 0; i < 10; i++)
        made_uniform(&seed);
    return seed;
}

static inline double made_best(const struct made_card *card, const struct wm_cap_plan *plan)
{
    double seconds, joules, usual, best = INFINITY;

    made_truth(card, card->maximum, &usual, &joules);
    for (double cap = card->minimum; cap <= card->maximum; cap++) {
        made_truth(card, cap, &seconds, &joules);
        if (plan->max_slowdown == 0 || seconds <= usual * (1 + plan->max_slowdown))
            best = fmin(best, made_objective(plan, seconds, joules));
    }
    return best;
}

/* False: the search failed. */
static inline bool made_search(const struct made_card *card, struct wm_cap_plan plan,
                               uint64_t seed, struct made_result *ret_result)
{
    struct made_result result = { 0 };
    struct wm_cap_search *search;
    struct wm_cap_answer answer;
    double cap, seconds, joules, usual, unused;

    plan.minimum = card->minimum;
    plan.maximum = card->maximum;
    if (wm_cap_search_new(&plan, &search, NULL) < 0)
        return false;
    while (wm_cap_search_next(search, &cap) > 0) {
        made_window(card, cap, result.windows++, &seed, &seconds, &joules);
        if (wm_cap_search_add(search, cap, seconds, joules, NULL) < 0)
            break;
    }
    bool has_answer = wm_cap_search_answer(search, &answer, NULL) == WM_OK;
    wm_cap_search_free(search);
    if (!has_answer)
        return false;
    made_truth(card, card->maximum, &usual, &unused);
    made_truth(card, answer.choice.cap, &seconds, &joules);
    result.cap = answer.choice.cap;
    result.reason = answer.reason;
    result.loss = made_objective(&plan, seconds, joules) / made_best(card, &plan) - 1;
    result.slower = seconds / usual - 1 - plan.max_slowdown;
    *ret_result = result;
    return true;
}

/* The same on a sweep, each of whose measurements is off by a ratio of `noise`. */
static inline bool made_replay(const struct made_sweep *sweep, struct wm_cap_plan plan,
                               double noise, uint64_t seed, struct made_result *ret_result)
{
    struct wm_cap_row rows[MADE_SWEEP_MAX];
    const struct wm_cap_table table = { .rows = rows, .count = sweep->count };
    size_t last = sweep->count - 1;
    struct wm_cap_search *search;
    struct wm_cap_answer answer;
    double best = INFINITY;

    for (size_t i = 0; i < sweep->count; i++)
        rows[i] = (struct wm_cap_row) {
            .cap = sweep->caps[i],
            .seconds = sweep->seconds[i] * exp(noise * made_normal(&seed)),
            .joules = sweep->joules[i] * exp(noise * made_normal(&seed)),
        };
    if (wm_cap_search_replay(&plan, &table, &search, NULL) < 0)
        return false;
    bool has_answer = wm_cap_search_answer(search, &answer, NULL) == WM_OK;
    wm_cap_search_free(search);
    if (!has_answer)
        return false;
    plan.maximum = sweep->caps[last];
    *ret_result =
        (struct made_result) { .cap = answer.choice.cap, .reason = answer.reason };
    for (size_t i = 0; i < sweep->count; i++) {
        double value = made_objective(&plan, sweep->seconds[i], sweep->joules[i]);
        double slower = sweep->seconds[i] / sweep->seconds[last] - 1 - plan.max_slowdown;
        if (plan.max_slowdown == 0 || slower <= 0)
            best = fmin(best, value);
        if (sweep->caps[i] != answer.choice.cap)
            continue;
        ret_result->loss = value;
        ret_result->slower = slower;
    }
    ret_result->loss = ret_result->loss / best - 1;
    return true;
}

#endif
