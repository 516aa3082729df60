/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_gpu.h - what one simulated GPU is and does over time; the JSON form
 * is described in README.md. A number that is NAN and an empty text are what
 * this GPU does not support. */
#ifndef FAKE_NVML_GPU_H
#define FAKE_NVML_GPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fake_nvml_curve.h"
#include "fake_nvml_json.h"

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

enum fake_process_type {
    FAKE_COMPUTES = 1 << 0,
    FAKE_DRAWS = 1 << 1,
    FAKE_SERVED = 1 << 2, /* through MPS */
};

/* A process on a GPU, several with pids in a row, or all of a tree. */
struct fake_process {
    pid_t pid;
    unsigned count;
    bool tree;      /* descendants of `pid` count too */
    int from_depth; /* least depth of the processes that count; `pid` is at depth 0 */
    enum fake_memory memory;
    double memory_bytes;
    unsigned type; /* of enum fake_process_type */
    char name[64];
    double sm; /* NAN: no sample of its use; below 0: an equal share of the GPU's */
    double memory_utilization;
    double encoder, decoder;
    unsigned gpu_instance, compute_instance;
};

/* A part of a partitioned GPU. Its NVML handle points here. */
struct fake_mig {
    bool there; /* slots may be empty */
    char name[96];
    char uuid[96];
    unsigned gpu_instance, compute_instance;
    double multiprocessors;
    double memory_total, memory_used;
};

/* As many as an H100 has. */
enum { FAKE_MIGS_MAX = 7 };

/* NVML's handle of a GPU points to one of these. */
struct nvmlDevice_st {
    unsigned index;
    char name[96];
    char uuid[96];
    char serial[32];
    char bios[32];
    double architecture;
    double compute_capability; /* 9.0 */
    double cores, multiprocessors;
    double compute_mode, persistence, display_active;
    double mig_mode, mig_mode_pending;

    double memory_total, memory_reserved;
    double bar1_total, bar1_used;
    struct curve memory_used;

    struct curve utilization, memory_utilization, encoder, decoder;
    struct curve temperature, temperature_memory;
    double temperature_slowdown, temperature_shutdown, temperature_memory_max;
    double fans;
    struct curve fan; /* of its highest speed */
    struct curve fan_rpm;
    double performance;

    unsigned pci_domain, pci_bus, pci_device;
    unsigned pci_device_id, pci_sub_system_id;
    double pci_link_gen, pci_link_gen_max, pci_link_width, pci_link_width_max;
    double pci_replays;
    struct curve pci_sent_kb, pci_received_kb; /* NVML's KB per second */

    struct curve clock_graphics, clock_sm, clock_memory, clock_video;
    double clock_graphics_max, clock_sm_max, clock_memory_max, clock_video_max;
    struct curve throttle; /* NVML's bits */

    double power_management;
    struct curve power, power_module;
    struct curve power_average; /* where it does not follow from `power` */
    double power_period;        /* seconds between new values; 0: always new */
    bool power_usage_is_average;
    unsigned power_instant_scopes, power_average_scopes; /* one bit for each */
    double power_limit, power_limit_default, power_limit_enforced;
    double power_limit_step;                   /* what is set is rounded down to it */
    double set_power_limit, set_clock_highest; /* in this process; NAN: by nobody */
    double power_limit_min, power_limit_max;
    double physics_idle, physics_linear, physics_cubic; /* W at the full clock; 0: none */
    double physics_leak, physics_noise;                 /* ratios */
    double physics_joules, physics_asked_at;            /* drawn, up to that second */
    struct fake_energy energy;

    double ecc_mode, ecc_mode_pending;
    double ecc_corrected, ecc_uncorrected;
    double ecc_corrected_lifetime, ecc_uncorrected_lifetime;
    double nvlink_links;
    struct curve nvlink_sent, nvlink_received; /* bytes, over all links */

    struct fake_process *processes;
    size_t process_count;
    unsigned process_entry; /* bytes per entry of the newest list of processes */
    double sample_period;   /* seconds between samples of their use */
    struct fake_mig migs[FAKE_MIGS_MAX];

    double appears_at; /* second from which it is there */
    double lost_at;    /* second from which it is gone; below 0: never */
};

/* Fills in a zeroed `gpu`. On failure says what is wrong; fake_gpu_clear() copes
 * with whatever is there then. */
bool fake_gpu_parse(const struct place *place, json_t *json, unsigned index,
                    struct nvmlDevice_st *gpu);
void fake_gpu_clear(struct nvmlDevice_st *gpu);

#endif
