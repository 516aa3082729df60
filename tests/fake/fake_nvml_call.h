/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml_call.h - how a call of the fake begins and ends.
 *
 * A call is: enter(), which looks after faults, lost GPUs and the clock, and if
 * that succeeds the value. To add one, copy a short one.
 */
#ifndef FAKE_NVML_CALL_H
#define FAKE_NVML_CALL_H

#include "fake_nvml_scenario.h"
#include "source/gpu/nvml/source_nvml_abi.h"

/* Declares what it then defines: this library has no header of ours. */
#define NVML_CALL(type, name, ...)                                                         \
    __attribute__((visibility("default"))) type name(__VA_ARGS__);                         \
    type name(__VA_ARGS__)

/* A call that answers with one unsigned number, made from `gpu` and `time`. */
#define NUMBER_CALL(name, value)                                                           \
    NVML_CALL(int, name, nvml_device gpu, unsigned *number)                                \
    {                                                                                      \
        double time = 0;                                                                   \
        int status = enter(__func__, gpu, &time);                                          \
        return status == NVML_SUCCESS ? put_number(value, number) : status;                \
    }

/* Starting NVML reads the scenario, if nobody has started it yet. Like NVML itself
 * it counts who started it. */
int fake_start(const char *call);
int fake_stop(void);

/* NULL while NVML is not started. */
const struct fake_scenario *fake_scenario(void);

/* Begins a call that speaks of no GPU. */
int enter_system(const char *call);

/* Begins a call that speaks of one; `ret_time` is the scenario's second. */
int enter(const char *call, nvml_device gpu, double *ret_time);

/* The same for calls that take the handle of a MIG device as well: `ret_mig` is
 * NULL for a whole GPU. */
int enter_any(const char *call, nvml_device device, nvml_device *ret_gpu,
              const struct fake_mig **ret_mig, double *ret_time);

/* Begins what is a part of a call, so that it may fail alone: faults match
 * "<call>:<part>". */
int enter_part(const char *call, unsigned part, nvml_device gpu);

/* How many GPUs are there by now. */
unsigned fake_gpus_there(void);

void fake_sleep_ms(double ms);

/* What somebody has set; NAN: nobody. What follows from it is told by the calls, and may be
 * used by whoever makes the power or the speed of a GPU depend on it. */
enum fake_setting { FAKE_POWER_LIMIT, FAKE_CLOCK_HIGHEST };
double fake_setting(const struct nvmlDevice_st *gpu, enum fake_setting which);
double fake_power_limit(const struct nvmlDevice_st *gpu);
double fake_enforced_limit(const struct nvmlDevice_st *gpu);
double fake_limited_clock(const struct nvmlDevice_st *gpu, double clock);

/* Whether its power follows from its clock; in fake_nvml_physics.c. */
bool fake_has_physics(const struct nvmlDevice_st *gpu);
double fake_physical_power(const struct nvmlDevice_st *gpu, double time);
double fake_physical_energy(struct nvmlDevice_st *gpu, double time);

/* The last moment at which a sensor with this period had a new value. */
double fake_refreshed(double time, double period);

/* Ends a call. A number that is NAN, and an empty text, are not supported. */
int put_text(const char *text, char *out, unsigned size);
int put_number(double value, unsigned *out);
int put_whole(double value, unsigned long long *out);

#endif
