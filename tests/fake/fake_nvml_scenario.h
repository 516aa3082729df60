/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_scenario.h - what the fake driver is to pretend; the JSON form is
 * described in README.md. */
#ifndef FAKE_NVML_SCENARIO_H
#define FAKE_NVML_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_nvml_gpu.h"

/* Something that goes wrong, or slowly. */
struct fake_fault {
    char call[80]; /* a function's name, with the shell's wildcards */
    int gpu;       /* index; below 0: every one */
    double from;   /* seconds */
    double to;
    int error; /* 0: none */
    double delay_ms;
    double cpu_ms; /* that the call uses in the thread of the caller */
};

struct fake_scenario {
    char driver_version[80];
    char nvml_version[80];
    int cuda_version;
    int64_t start_ns; /* CLOCK_MONOTONIC at second 0 */
    bool start_given;
    double unloaded_from, unloaded_to; /* seconds; without a driver in between */
    char settings[256];                /* file of what was set; "": of this process */
    struct nvmlDevice_st *gpus;        /* in the order in which they appear */
    size_t gpu_count;
    struct fake_fault *faults;
    size_t fault_count;
};

/* Reads a scenario from a file; NULL means one simulated GPU. On failure says
 * on stderr what is wrong and where, and returns NULL. */
struct fake_scenario *fake_scenario_load(const char *path);
void fake_scenario_free(struct fake_scenario *scenario);

/* NVML's text for one of its codes. */
const char *fake_error_text(int code);

#endif
