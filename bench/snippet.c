/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snippet.c - what wm_meter_start() and wm_meter_stop() take.
 *
 *     snippet TIMES
 *
 * Prints the seconds of one pair after the other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wattmeter/energy.h"

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct wm_meter *meter;
    struct wm_error err;
    struct wm_meter_reading cost;
    uint64_t id;

    if (argc != 2) {
        fprintf(stderr, "usage: snippet TIMES\n");
        return 2;
    }
    if (wm_meter_open(NULL, &meter, &err) < 0) {
        fprintf(stderr, "snippet: %s\n", err.text);
        return 1;
    }
    for (long i = strtol(argv[1], NULL, 10); i > 0; i--) {
        double before_s = now_s();
        if (wm_meter_start(meter, "snippet", &id, &err) < 0 ||
            wm_meter_stop(meter, id, &cost, NULL, &err) < 0) {
            fprintf(stderr, "snippet: %s\n", err.text);
            return 1;
        }
        printf("%.9f\n", now_s() - before_s);
    }
    return wm_meter_close(meter, &err) == 0 ? 0 : 1;
}
