/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_nvml.h - what the files of the NVML backend share: a GPU, and the asking of
 * it. */
#ifndef WM_SOURCE_GPU_NVML_H
#define WM_SOURCE_GPU_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_processes.h"
#include "source/gpu/nvml/source_nvml_values.h"
#include "source/gpu/source_gpu_ops.h"

struct gpu_nvml_gpu {
    const struct nvml_library *library;
    const char *procfs; /* where processes need no name from the driver */

    unsigned index;
    bool is_reached; /* its device was good when it was last used */
    struct nvml_values values;
    char id[NVML_UUID_SIZE]; /* nvml_identity(); "" until it is known */
    unsigned known;          /* groups whose fixed fields have been reported */

    /* Of the refresh that goes on. */
    struct wm_gpu_sheet *sheet;
    unsigned groups;
    unsigned fixed; /* those of them whose fixed fields are asked, too */

    int mig_status; /* of asking for the next two */
    unsigned mig_mode, mig_mode_pending;
    struct nvml_parts parts;

    struct nvml_processes processes;
};

/* Whether that field is to be told now. */
bool gpu_nvml_wants(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field);

/* Writes down what a call gave: the value where its status is NVML_SUCCESS, else
 * why there is none. Notes when the GPU is lost. */
void gpu_nvml_tell(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field,
                   const struct nvml_answer *value);

/* The same for a text. */
void gpu_nvml_tell_text(struct gpu_nvml_gpu *gpu, enum wm_gpu_field field, int status,
                        const char *text);

/* To be called with every status that neither of these gets. */
void gpu_nvml_note(struct gpu_nvml_gpu *gpu, int status);

/* The same for a value of a row. */
struct wm_gpu_value gpu_nvml_number(struct gpu_nvml_gpu *gpu,
                                    const struct nvml_answer *value);
struct wm_gpu_value gpu_nvml_instance(int instance);

/* A text of a GPU or of a part of one, empty where the status is not NVML_SUCCESS. */
int gpu_nvml_ask_text(int (*call)(nvml_device device, char *text, unsigned size),
                      nvml_device device, char *text, size_t size);

/* Who it is, the same after a reboot: its UUID, or its PCI address if the driver has no
 * UUID of it. One that only fails to say it now has none, as it may have a UUID. */
int nvml_identity(const struct nvml_api *api, nvml_device device, char *text, size_t size);

/* The GPU of that identity: its number may be another by now. */
int nvml_find(const struct nvml_api *api, const char *id, nvml_device *ret_device);

/* Each asks for what `asking` wants of its subject. The identity goes first: who a GPU
 * is that hangs in a later call is known then. */
void gpu_nvml_tell_identity(struct gpu_nvml_gpu *gpu);
void gpu_nvml_tell_numbers(struct gpu_nvml_gpu *gpu); /* begins a round of them */
void gpu_nvml_tell_texts(struct gpu_nvml_gpu *gpu);

/* What can be told of a GPU that cannot be reached; the first without NVML. */
void gpu_nvml_tell_vendor(struct gpu_nvml_gpu *gpu);
void gpu_nvml_tell_machine(struct gpu_nvml_gpu *gpu);

/* Finds out whether the GPU is partitioned, and its parts. */
void gpu_nvml_find_migs(struct gpu_nvml_gpu *gpu);
bool gpu_nvml_is_partitioned(const struct gpu_nvml_gpu *gpu);
void gpu_nvml_tell_migs(struct gpu_nvml_gpu *gpu);

void gpu_nvml_tell_processes(struct gpu_nvml_gpu *gpu);

#endif
