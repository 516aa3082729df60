/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_work.c - units of work at the speed of a fake GPU, for test_cap_profile.py:
 *
 *     cap_work SETTINGS DEFAULT IDLE LINEAR CUBIC FIXED WORK UNITS
 *
 * SETTINGS is the file of the fake driver, whose first number is the cap; the rest is as in
 * made_card.h, in watts and seconds. Each unit is a call of the region "unit".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "made_card.h"
#include "wattmeter/region.h"

enum { WORDS = 9, HIGHEST_HZ = 1980000000 };

/* NAN: nobody has set it. */
static void read_settings(const char *path, double *ret_cap, double *ret_clock)
{
    double numbers[2] = { NAN, NAN };
    FILE *file = fopen(path, "rb");

    if (file) {
        if (fread(numbers, sizeof(numbers), 1, file) != 1)
            numbers[0] = numbers[1] = NAN;
        fclose(file);
    }
    *ret_cap = numbers[0];
    *ret_clock = numbers[1];
}

/* Until so long after the last one should have ended: what was late does not add up. */
static void work_for(struct timespec *end, double seconds)
{
    const long nanoseconds = end->tv_nsec + lround(seconds * 1e9);

    end->tv_sec += nanoseconds / 1000000000;
    end->tv_nsec = nanoseconds % 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, end, NULL);
}

int main(int argc, char **argv)
{
    if (argc != WORDS)
        return 2;
    struct made_card card = { .idle = atof(argv[3]),
                              .linear = atof(argv[4]),
                              .cubic = atof(argv[5]),
                              .fixed = atof(argv[6]),
                              .work = atof(argv[7]) };
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (long units = atol(argv[8]); units > 0; units--) {
        double cap, hertz;
        read_settings(argv[1], &cap, &hertz);
        double clock = made_clock(&card, isnan(cap) ? atof(argv[2]) : cap);
        wm_region_begin("unit");
        work_for(&end, card.fixed +
                           card.work / fmin(clock, isnan(hertz) ? 1 : hertz / HIGHEST_HZ));
        wm_region_end();
    }
    return 0;
}
