/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.c - what wm_region_begin() and wm_region_end() take.
 *
 *     region ring|off|file|clock|many|clocks|waits ROUNDS
 *
 * Prints the seconds of one pair, a line for each round. `ring` is with a tracker that
 * drains between the rounds: a ring that is full costs what the tracker costs. `file`
 * writes to where WATTMETER_REGIONS says. `clock` is the floor: two readings of it.
 * `many` is for `wattmeter run`: ten million pairs in a round, so that the tracker has to
 * keep up; `clocks` is the floor of that, and `waits` prints the share of that time in
 * which the program waits for the tracker.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "region/drain/region_inbox.h"
#include "region/mark/region_local.h"
#include "wattmeter/region.h"

/* Less than half of a ring. */
enum { PAIRS = 10000, PAIRS_OF_FILE = 1000, PAIRS_OF_MANY = 10000000 };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The linker has the library call this one (--wrap). */
int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

static int64_t slept_ns;

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    int64_t start_ns = now_ns();
    int status = __real_nanosleep(time, rest);

    slept_ns += now_ns() - start_ns;
    return status;
}

static int64_t mark(int pairs)
{
    int64_t start_ns = now_ns();

    for (int i = 0; i < pairs; i++) {
        wm_region_begin("a batch");
        wm_region_end();
    }
    return now_ns() - start_ns;
}

static int64_t read_clock(int pairs)
{
    int64_t start_ns = now_ns(), sum = 0;

    for (int i = 0; i < pairs; i++) {
        sum += now_ns();
        sum += now_ns();
    }
    return now_ns() - start_ns + (sum == 0);
}

static int ignore(void *context, const struct wm_region_event *event)
{
    (void)context, (void)event;
    return 0;
}

static int pairs_of(const char *mode)
{
    if (strcmp(mode, "file") == 0)
        return PAIRS_OF_FILE;
    if (strcmp(mode, "many") == 0 || strcmp(mode, "waits") == 0 ||
        strcmp(mode, "clocks") == 0)
        return PAIRS_OF_MANY;
    return PAIRS;
}

static bool is_clock(const char *mode)
{
    return strncmp(mode, "clock", strlen("clock")) == 0;
}

int main(int argc, char **argv)
{
    struct wm_region_inbox *inbox = NULL;
    struct wm_error err;
    int64_t complete_ns;

    if (argc != 3) {
        fprintf(stderr, "usage: region ring|off|file|clock|many|clocks|waits ROUNDS\n");
        return 2;
    }
    int pairs = pairs_of(argv[1]);
    if (strcmp(argv[1], "ring") == 0 &&
        (wm_region_inbox_new(&inbox, &err) < 0 || wm_region_inbox_open(inbox, &err) < 0 ||
         wm_region_listen(wm_region_inbox_path(inbox), &err) < 0)) {
        fprintf(stderr, "region: %s\n", err.text);
        return 1;
    }
    if (pairs == PAIRS)
        mark(3 * PAIRS); /* the pages of the ring are there */
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
        if (inbox) {
            nanosleep(&(struct timespec) { .tv_nsec = 2000000 }, NULL);
            if (wm_region_inbox_drain(inbox, false, INT64_MAX, ignore, NULL, &complete_ns,
                                      &err) < 0)
                return 1;
        }
        slept_ns = 0;
        int64_t took_ns = is_clock(argv[1]) ? read_clock(pairs) : mark(pairs);
        printf("%.12f\n", strcmp(argv[1], "waits") == 0 ? (double)slept_ns / (double)took_ns
                                                        : (double)took_ns / pairs / 1e9);
    }
    if (inbox && wm_region_inbox_trouble(inbox)->lost > 0)
        return 1;
    wm_region_inbox_free(inbox);
    return 0;
}
