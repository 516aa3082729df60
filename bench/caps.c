/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caps.c - how good the search of the best cap is: six cards and sweeps of four, of which
 * the best is known, in virtual time, and jobs of another physics on four. A line for each;
 * `caps [SEEDS [JOBS]]`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "made_search.h"

enum { SEEDS = 20, JOBS = 100, RESULTS_MAX = 100000 };

static struct made_result results[RESULTS_MAX];

static int compare_losses(const void *one, const void *other)
{
    double a = ((const struct made_result *)one)->loss;
    double b = ((const struct made_result *)other)->loss;

    return (a > b) - (a < b);
}

/* `allowed`: of the slowdown, what may be noise. */
static void print_results(const char *what, const struct wm_cap_plan *plan, size_t count,
                          double allowed)
{
    double sum = 0, windows = 0;
    size_t good = 0, slow = 0;

    for (size_t i = 0; i < count; i++) {
        sum += results[i].loss;
        windows += (double)results[i].windows;
        good += results[i].loss <= 0.01;
        slow += plan->max_slowdown > 0 && results[i].slower > allowed;
    }
    qsort(results, count, sizeof(results[0]), compare_losses);
    printf("%-14s %-6s %5.0f %%  within 1 %%: %3.0f %%  mean %5.2f %%  p95 %5.2f %%  max "
           "%5.2f %%  windows %4.1f  too slow %zu of %zu\n",
           what, wm_cap_objective_name(plan->objective), 100 * plan->max_slowdown,
           100.0 * (double)good / (double)count, 100 * sum / (double)count,
           100 * results[(count - 1) * 95 / 100].loss, 100 * results[count - 1].loss,
           windows / (double)count, slow, count);
}

static void try_cards(const struct wm_cap_plan *plan, size_t seeds)
{
    for (size_t i = 0; i < MADE_CARDS; i++) {
        size_t count = 0;
        for (size_t seed = 0; seed < seeds; seed++)
            count +=
                made_search(&made_cards[i], *plan, made_seed(i, seed), &results[count]);
        print_results(made_cards[i].name, plan, count, made_cards[i].noise);
    }
}

/* Another job with each seed. */
static void try_jobs(const struct wm_cap_plan *plan, size_t seeds)
{
    static const double noise = 0.005;

    for (size_t i = 0; i < MADE_CHIPS; i++) {
        const struct made_chip *chip = &made_chips[i];
        size_t count = 0;
        for (size_t number = 0; number < seeds; number++) {
            uint64_t seed = made_seed(MADE_CARDS + i, number);
            struct made_job job = made_job(chip, &seed);
            const struct made_card card = {
                .minimum = chip->minimum,
                .maximum = chip->maximum,
                .noise = noise,
                .job = &job,
            };
            count += made_search(&card, *plan, seed, &results[count]);
        }
        print_results(chip->name, plan, count, noise);
    }
}

/* Sweeps of the first physics, or of the other. */
static void try_sweeps(const struct wm_cap_plan *plan, size_t jobs, bool is_other)
{
    static const double noise = 0.01;
    size_t count = 0;

    for (size_t i = 0; i < (is_other ? MADE_CHIPS : MADE_SWEEP_CARDS); i++)
        for (size_t job = 0; job < jobs && count < RESULTS_MAX; job++) {
            uint64_t seed = made_seed(i, job);
            struct made_sweep sweep = is_other ? made_job_sweep(&made_chips[i], &seed)
                                               : made_sweep(&made_sweep_cards[i], &seed);
            count += made_replay(&sweep, *plan, noise, seed, &results[count]);
        }
    print_results(is_other ? "sweeps of jobs" : "sweeps", plan, count, 2 * noise);
}

int main(int argc, char **argv)
{
    static const double slowdowns[] = { 0, 0.1 };
    size_t seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : SEEDS;
    size_t jobs = argc > 2 ? strtoul(argv[2], NULL, 10) : JOBS;

    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++)
        for (size_t k = 0; k < 2; k++) {
            struct wm_cap_plan plan = { .objective = (enum wm_cap_objective)i,
                                        .max_slowdown = slowdowns[k] };
            try_cards(&plan, seeds < RESULTS_MAX ? seeds : RESULTS_MAX);
            try_jobs(&plan, seeds < RESULTS_MAX ? seeds : RESULTS_MAX);
            plan.probes = 7;
            try_sweeps(&plan, jobs, false);
            try_sweeps(&plan, jobs, true);
        }
    return 0;
}
