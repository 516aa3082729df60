/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_job.h - jobs of a physics other than that of made_card.h, on four cards, so that the
 * search is not judged by what its constants were chosen with alone.
 *
 * A job is of phases, each of which waits for the clock and for memory, overlaps both more
 * or less, and is held back by the cap by itself; and of time on the host. The voltage
 * falls with the clock down to a floor. The clock goes in steps, and a card alternates
 * between the two beside the cap. Below some cap the memory may be half as fast. The
 * constants are such that the least energy is mostly between the ends, as is reported of
 * real sweeps.
 */
#ifndef WM_BENCH_MADE_JOB_H
#define WM_BENCH_MADE_JOB_H

#include <math.h>
#include <stddef.h>

enum { MADE_PHASES = 3 };

struct made_chip {
    const char *name;
    double minimum, maximum;     /* caps */
    double idle, memory;         /* power, as shares of the highest cap */
    double lowest;               /* clock that a cap brings about; 1: the highest */
    double floor, floor_voltage; /* from this clock on down the voltage is that */
    double slow_memory;          /* the cap below which memory may be slow; 0: never */
};

static const struct made_chip made_chips[] = {
    { "V100", 100, 300, 0.24, 0.12, 0.10, 0.72, 0.72, 0 },
    { "A40", 100, 300, 0.26, 0.20, 0.33, 0.70, 0.70, 120 },
    { "P100", 125, 250, 0.34, 0.15, 0.40, 0.72, 0.76, 0 },
    { "RTX 6000", 100, 260, 0.28, 0.17, 0.25, 0.72, 0.71, 0 },
};
#define MADE_CHIPS (sizeof(made_chips) / sizeof(made_chips[0]))

struct made_phase {
    double share;           /* of the job's time at the highest clock, in seconds */
    double compute, memory; /* seconds of a second of it, if there were the one alone */
    double power;           /* at the highest clock, as a share of the highest cap */
    double memory_power;    /* share of the chip's */
};

struct made_job {
    const struct made_chip *chip;
    struct made_phase phases[MADE_PHASES];
    double host, host_power; /* seconds, and power as a share of the highest cap */
    double overlap;          /* 1: none; the higher, the more */
    double slow_memory;      /* as that of the chip */
};

static inline double made_phase_seconds(const struct made_job *job,
                                        const struct made_phase *phase, double clock,
                                        double memory_clock)
{
    return pow(pow(phase->compute / clock, job->overlap) +
                   pow(phase->memory / memory_clock, job->overlap),
               1 / job->overlap);
}

static inline double made_phase_power(const struct made_job *job,
                                      const struct made_phase *phase, double clock,
                                      double memory_clock)
{
    const struct made_chip *chip = job->chip;
    double seconds = made_phase_seconds(job, phase, clock, memory_clock);
    double slope = (1 - chip->floor_voltage) / (1 - chip->floor);
    double volt = chip->floor_voltage + slope * fmax(clock - chip->floor, 0);
    double busy = 0.35 + 0.65 * phase->compute / clock / seconds;
    double memory = phase->memory_power * phase->memory / seconds;

    return chip->maximum *
           (chip->idle * (0.6 + 0.4 * volt * volt) +
            phase->power * busy * volt * volt * clock + chip->memory * memory);
}

/* Adds what a phase takes under the cap. */
static inline void made_phase_add(const struct made_job *job,
                                  const struct made_phase *phase, double cap,
                                  double *seconds, double *joules)
{
    static const double step = 0.01;
    double memory_clock = cap < job->slow_memory ? 0.5 : 1, clock = job->chip->lowest;

    while (clock + step <= 1 &&
           made_phase_power(job, phase, clock + step, memory_clock) <= cap)
        clock += step;
    double next = fmin(clock + step, 1);
    double low = made_phase_power(job, phase, clock, memory_clock);
    double high = made_phase_power(job, phase, next, memory_clock);
    double share = high > low ? fmin(fmax((cap - low) / (high - low), 0), 1) : 0;
    double rate = (1 - share) / made_phase_seconds(job, phase, clock, memory_clock) +
                  share / made_phase_seconds(job, phase, next, memory_clock);
    *seconds += phase->share / rate;
    *joules += phase->share / rate * ((1 - share) * low + share * high);
}

static inline void made_job_truth(const struct made_job *job, double cap,
                                  double *ret_seconds, double *ret_joules)
{
    *ret_seconds = job->host;
    *ret_joules = job->host * job->host_power * job->chip->maximum;
    for (size_t i = 0; i < MADE_PHASES; i++)
        made_phase_add(job, &job->phases[i], cap, ret_seconds, ret_joules);
}

#endif
