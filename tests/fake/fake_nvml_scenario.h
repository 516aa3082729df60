/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_scenario.h - what the fake driver is to pretend; the JSON form is
 * described in README.md. */
#ifndef FAKE_NVML_SCENARIO_H
#define FAKE_NVML_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fake_nvml_curve.h"

enum fake_energy_mode {
    FAKE_ENERGY_COUNTER, /* the exact integral of the power curve */
    FAKE_ENERGY_ABSENT,  /* not supported */
    FAKE_ENERGY_STUCK,   /* always what it starts with */
};

struct fake_energy {
    enum fake_energy_mode mode;
    double start;    /* joules at second 0 */
    double wrap;     /* joules at which it begins at 0 again; 0: never */
    double reset_at; /* second in which it begins at 0; below 0: never */
    double period;   /* seconds between new values; 0: always new */
};

enum fake_memory {
    FAKE_MEMORY_SHARE, /* an equal share of what the GPU has in use */
    FAKE_MEMORY_GIVEN,
    FAKE_MEMORY_UNKNOWN, /* NVML's "not available" */
};

/* A process on a GPU, or all processes of a tree. */
struct fake_process {
    pid_t pid;
    bool tree;      /* and its descendants... */
    int from_depth; /* ...this deep and deeper; `pid` itself is at depth 0 */
    enum fake_memory memory;
    double memory_bytes;
};

/* NVML's handle of a GPU points to one of these. */
struct nvmlDevice_st {
    unsigned index;
    char name[96];
    char uuid[96];
    double memory_total;
    double memory_reserved;
    struct curve memory_used;
    struct curve utilization;
    struct curve temperature;
    struct curve power;
    double power_period; /* seconds between new values; 0: always new */
    double power_limit;
    struct fake_energy energy;
    struct fake_process *processes;
    size_t process_count;
    unsigned process_entry; /* bytes per entry of the newest list of processes */
    double lost_at;         /* second from which it is gone; below 0: never */
};

/* Something that goes wrong, or slowly. */
struct fake_fault {
    char call[80]; /* a function's name, with the shell's wildcards */
    int gpu;       /* index; below 0: every one */
    double from;   /* seconds */
    double to;
    int error; /* 0: none */
    double delay_ms;
};

struct fake_scenario {
    char driver_version[80];
    char nvml_version[80];
    int cuda_version;
    int64_t start_ns; /* CLOCK_MONOTONIC at second 0 */
    struct nvmlDevice_st *gpus;
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
