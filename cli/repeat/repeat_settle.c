/* SPDX-License-Identifier: Apache-2.0 */
/* repeat_settle.c - waits between runs until the machine's power is back at idle. */
#include <math.h>
#include <time.h>

#include "output.h"
#include "repeat/repeat.h"
#include "wattmeter/energy.h"

/* Power is the mean of a window, in which a sensor of 100 ms shows five values. */
static const struct timespec window = { .tv_nsec = 500000000 };

enum { IDLE_WINDOWS = 4, LIMIT_WINDOWS = 60 };

/* As far above idle as it may be, a ratio. */
#define CLOSE_TO_IDLE 0.05

/* 0: nothing measures it. */
static double read_watts(struct wm_meter *meter)
{
    struct wm_meter_reading reading;
    uint64_t id;
    double joules = 0;

    if (wm_meter_start(meter, "settle", &id, NULL) < 0)
        return 0;
    nanosleep(&window, NULL);
    if (wm_meter_stop(meter, id, &reading, NULL, NULL) < 0)
        return 0;
    const struct wm_meter_energy *parts[] = { &reading.cpu, &reading.dram, &reading.gpu };
    for (size_t i = 0; i < 3; i++) {
        if (parts[i]->state == WM_READING_OK)
            joules += parts[i]->joules;
    }
    return reading.elapsed_s > 0 ? joules / reading.elapsed_s : 0;
}

int repeat_settle_begin(struct repeat_work *work)
{
    const struct wm_meter_options options = { .gpus = work->args->measure.gpus };
    struct wm_error err;

    if (!work->args->settle)
        return CMD_DONE;
    if (wm_meter_open(&options, &work->meter, &err) < 0)
        return output_failure("run", &err, work->io);
    for (int i = 0; i < IDLE_WINDOWS && !measure_is_interrupted(); i++)
        work->idle_watts += read_watts(work->meter) / IDLE_WINDOWS;
    if (work->idle_watts <= 0 &&
        wm_repeat_note(work->repeat, "--settle did not wait: no sensor here measures power",
                       &err) < 0)
        return output_failure("run", &err, work->io);
    return CMD_DONE;
}

int repeat_settle(struct repeat_work *work)
{
    double most = work->idle_watts * (1 + CLOSE_TO_IDLE), watts = 0;
    struct wm_error err;
    char text[128];

    if (work->idle_watts <= 0)
        return CMD_DONE;
    for (int i = 0; i < LIMIT_WINDOWS && !measure_is_interrupted(); i++) {
        watts = read_watts(work->meter);
        if (watts <= most)
            return CMD_DONE;
    }
    if (work->is_unsettled || measure_is_interrupted())
        return CMD_DONE;
    work->is_unsettled = true;
    snprintf(text, sizeof(text),
             "--settle gave up after 30 s: power was %.3g W, and %.3g W when idle", watts,
             work->idle_watts);
    return wm_repeat_note(work->repeat, text, &err) < 0
               ? output_failure("run", &err, work->io)
               : CMD_DONE;
}

void repeat_settle_end(struct repeat_work *work)
{
    if (work->meter)
        wm_meter_close(work->meter, NULL);
}
