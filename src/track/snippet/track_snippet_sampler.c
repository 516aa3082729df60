/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_sampler.c - a thread that reads the devices while a snippet is open. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/base_clock.h"
#include "track/snippet/track_snippet_state.h"

/* How often a device is read whose power has to be integrated, or whose sensor looks at
 * a part of the time. */
#define STEP_NS (100 * WM_NS_PER_MS)

int wm_meter_make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    int number = pthread_condattr_init(&attributes);
    if (number != 0)
        return number;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    number = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return number;
}

void wm_meter_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ns)
{
    const struct timespec deadline = { deadline_ns / WM_NS_PER_S,
                                       deadline_ns % WM_NS_PER_S };

    pthread_cond_timedwait(condition, lock, &deadline);
}

int wm_meter_make_thread(pthread_t *ret_thread, void *(*run)(void *context), void *context,
                         struct wm_error *err)
{
    sigset_t all, old;

    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int number = pthread_create(ret_thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (number == 0)
        return WM_OK;
    errno = number;
    wm_fail_errno(err, "starting a thread of the meter");
    return WM_EIO;
}

static int64_t step_of(const struct wm_meter *meter)
{
    if (meter->interval_ns > 0)
        return meter->interval_ns;
    return wm_meter_inputs_need_steps(meter->inputs) ? STEP_NS : WM_METER_KEEP_NS;
}

static void sample(struct wm_meter *meter)
{
    wm_meter_inputs_read(meter->inputs);
    for (struct wm_snippet *snippet = meter->open; snippet; snippet = snippet->next)
        wm_meter_window_add(snippet->window, meter->inputs, WM_METER_BETWEEN);
}

/* It goes on waiting for its moment when the last snippet ends, as the next one may
 * begin at once; then waking it each time would cost more than reading. */
static void *run_sampler(void *context)
{
    struct wm_meter *meter = context;
    int64_t last_ns = wm_clock_monotonic_ns();

    pthread_mutex_lock(&meter->lock);
    while (!meter->is_ending) {
        meter->step_ns = step_of(meter);
        int64_t due_ns = last_ns + meter->step_ns;
        if (wm_clock_monotonic_ns() < due_ns) {
            wm_meter_wait(&meter->wake, &meter->lock, due_ns);
            continue;
        }
        if (meter->open) {
            sample(meter);
        } else {
            meter->is_parked = true;
            while (meter->is_parked && !meter->is_ending)
                pthread_cond_wait(&meter->wake, &meter->lock);
        }

        /* A reading that was late moves the next one: what is read here is not
         * shown by itself, and two readings in a row would tell nothing. */
        last_ns = wm_clock_monotonic_ns();
    }
    pthread_mutex_unlock(&meter->lock);
    return NULL;
}

int wm_meter_sampler_need(struct wm_meter *meter, struct wm_error *err)
{
    if (wm_meter_inputs_count(meter->inputs) == 0)
        return WM_OK;
    if (!meter->has_sampler) {
        meter->step_ns = step_of(meter);
        int status = wm_meter_make_thread(&meter->sampler, run_sampler, meter, err);
        if (status < 0)
            return status;
        meter->has_sampler = true;
    } else if (meter->is_parked || step_of(meter) < meter->step_ns) {
        meter->is_parked = false;
        pthread_cond_signal(&meter->wake);
    }
    return WM_OK;
}

void wm_meter_sampler_end(struct wm_meter *meter)
{
    pthread_mutex_lock(&meter->lock);
    meter->is_ending = true;
    pthread_cond_signal(&meter->wake);
    pthread_mutex_unlock(&meter->lock);
    if (meter->has_sampler)
        pthread_join(meter->sampler, NULL);
}
