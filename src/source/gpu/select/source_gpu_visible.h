/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible.h - which GPUs a program sees: what CUDA, ROCm and Level
 * Zero make of CUDA_VISIBLE_DEVICES and its relatives.
 *
 *     struct wm_visible visible = { .gpus = gpus, .gpu_count = count,
 *                                   .environment = environment };
 *     visible.devices = calloc(wm_visible_room(gpus, count), sizeof(*visible.devices));
 *
 *     wm_visible_cuda(&visible);
 *     for (size_t i = 0; i < visible.count; i++)
 *         printf("CUDA device %zu is on GPU %zu\n", i, visible.devices[i].gpu);
 *
 * Text and a list of GPUs in, a list of devices out: nothing here allocates or can fail. A
 * mask that a driver does not understand has an answer too, which is what the driver shows
 * then, mostly less than was meant; `refused` says which word it was. Masks may hold any
 * bytes.
 *
 * A machine with GPUs of several vendors is asked once per vendor, each time
 * with that vendor's GPUs alone.
 */
#ifndef WM_SOURCE_GPU_VISIBLE_H
#define WM_SOURCE_GPU_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a GPU that CUDA shows as a device: a compute instance. */
struct wm_visible_mig {
    const char *uuid; /* "MIG-..."; NULL where unknown */
    unsigned gpu_instance;
    unsigned compute_instance;
};

/* A GPU, as far as the drivers' rules depend on it. All zero but the UUID is a
 * GPU of which nothing else is known. */
struct wm_visible_gpu {
    const char *uuid; /* "GPU-..."; NULL or "" where unknown */

    /* NVIDIA. They decide the order in which CUDA counts. */
    const char *pci;   /* "0000:3b:00.0" */
    const char *model; /* NULL where unknown */
    unsigned capability_major, capability_minor;
    unsigned multiprocessors, clock_mhz;

    /* NVIDIA. With `mig_mode` the GPU is seen through its MIG devices or not
     * at all; they are in NVML's order. */
    bool mig_mode;
    const struct wm_visible_mig *migs;
    size_t mig_count;

    unsigned tiles; /* Intel: how many; 0 is 1 */
};

enum {
    WM_VISIBLE_WHOLE = -1, /* not a part of a GPU: all of it */
};
#define WM_VISIBLE_NO_NUMBER ((size_t)-1)

struct wm_visible_device {
    size_t gpu; /* index in the list that was given */
    int part;   /* index of its MIG device or tile, or WM_VISIBLE_WHOLE */

    /* How the driver would count it if no mask were set: what a number in the
     * mask means. WM_VISIBLE_NO_NUMBER for what can be named by UUID only. */
    size_t number;
};

struct wm_visible {
    /* Given. The GPUs of NVIDIA in NVML's order, which decides where a PCI address is
     * unknown; of AMD in the order of the kernel's KFD nodes, which is how ROCr counts,
     * with "GPU-" and the 16 hexadecimal digits of sysfs' unique_id as UUID; of Intel as
     * Level Zero counts: discrete ones first, then by PCI address. */
    const struct wm_visible_gpu *gpus;
    size_t gpu_count;
    const char *const *environment;    /* "NAME=value", ended by NULL */
    unsigned driver;                   /* of NVIDIA: 535 for 535.129.03; 0: a new one */
    struct wm_visible_device *devices; /* room for wm_visible_room() */

    /* Found: all there are, the `count` that are visible in front, in the order of the
     * mask. Of several parts of a GPU all are there that a mask names, also where the
     * driver shows one of them: we measure the GPU. */
    size_t listed, count;

    /* Why a number may mean another GPU than we think, or NULL. Where no mask is set, or
     * all GPUs are visible, only their order is in doubt. Never set for a list of UUIDs,
     * nor where nothing is visible. */
    const char *order_reason;

    /* The first word of a mask that the driver did not take; `text` is NULL if
     * it took all. CUDA and ROCm go no further than this word, Level Zero
     * passes over it. A device that CUDA is told twice hides all the others.
     * `text` points into the mask and has no NUL behind it. */
    struct wm_visible_refusal {
        const char *variable; /* "CUDA_VISIBLE_DEVICES" */
        const char *text;
        size_t length;
        const char *why; /* ends the sentence "'9' ..." */
    } refused;
};

/* How many devices there must be room for. */
size_t wm_visible_room(const struct wm_visible_gpu *gpus, size_t count);

/* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. */
void wm_visible_cuda(struct wm_visible *visible);

/* ROCR_VISIBLE_DEVICES, and HIP's two variables. */
void wm_visible_amd(struct wm_visible *visible);

/* ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY. */
void wm_visible_intel(struct wm_visible *visible);

#endif
