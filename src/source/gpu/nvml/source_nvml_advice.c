/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_advice.c - what keeps NVIDIA's GPUs from being read. */
#include <stdio.h>
#include <unistd.h>

#include "source/gpu/nvml/source_nvml_bus.h"
#include "source/gpu/nvml/source_nvml_library.h"
#include "source/source_advice.h"

enum { PATH_SIZE = 512 };

/* Whether a display device of NVIDIA is on the PCI bus. */
static bool has_nvidia_board(const char *sysfs)
{
    struct nvml_bus bus = { 0 };

    nvml_bus_open(sysfs, &bus);
    bool found = bus.count > 0;
    nvml_bus_close(&bus);
    return found;
}

/* The kernel's part of the driver is there, so it is the library that is
 * missing: this happens in containers that were started without the GPUs. */
static bool has_nvidia_module(const char *procfs)
{
    char path[PATH_SIZE];

    return snprintf(path, sizeof(path), "%s/driver/nvidia/version", procfs) < PATH_SIZE &&
           access(path, F_OK) == 0;
}

static void advise_without_driver(const struct wm_source_case *asked)
{
    if (has_nvidia_module(asked->config->procfs))
        wm_advice_add(
            asked->advice,
            "the kernel has NVIDIA's driver, but its library libnvidia-ml.so.1 is not "
            "here, as in a container that was started without the GPUs",
            "docker run --gpus all ...");
    else if (has_nvidia_board(asked->config->sysfs))
        wm_advice_add(
            asked->advice, "an NVIDIA GPU is on the PCI bus, but its driver is not loaded",
            "sudo modprobe nvidia   # after installing it: sudo apt install nvidia-driver");
}

void wm_nvml_advise(const struct wm_source_case *asked)
{
    if (asked->is_absent)
        advise_without_driver(asked);
    else if (asked->is_denied && asked->advice->count == 0)
        wm_advice_add(
            asked->advice,
            "NVIDIA's driver refuses this user, though no file in /dev does, as in "
            "a container that was started without the GPUs",
            "docker run --gpus all ...");
}
