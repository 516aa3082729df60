/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_bus.c - the display devices of NVIDIA on the PCI bus. */
#include "source/gpu/nvml/source_nvml_bus.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_array.h"
#include "base/base_error.h"
#include "base/base_file.h"
#include "source/gpu/source_gpu_pci.h"

enum { PATH_SIZE = 512 };

static bool is_nvidia_board(int folder, const char *name)
{
    char path[PATH_SIZE], vendor[16], class[16];

    snprintf(path, sizeof(path), "%s/vendor", name);
    wm_file_read_line(folder, path, vendor, sizeof(vendor));
    if (strcmp(vendor, "0x10de") != 0)
        return false;
    snprintf(path, sizeof(path), "%s/class", name);
    wm_file_read_line(folder, path, class, sizeof(class));
    return strncmp(class, "0x03", 4) == 0;
}

static int add_slot(struct nvml_bus *bus, int folder, const char *name)
{
    char path[PATH_SIZE];

    if (wm_array_reserve(&bus->slots, bus->count, &bus->room, sizeof(*bus->slots)) < 0)
        return WM_ENOMEM;
    struct nvml_slot *slot = &bus->slots[bus->count++];
    snprintf(slot->address, sizeof(slot->address), "%.15s", name);
    snprintf(path, sizeof(path), "%s/power/runtime_status", name);
    slot->sleep_fd = wm_file_open_at(folder, path);
    return WM_OK;
}

static int compare(const void *a, const void *b)
{
    const struct nvml_slot *left = a, *right = b;
    uint64_t first = wm_pci_rank(left->address), second = wm_pci_rank(right->address);

    return (first > second) - (first < second);
}

int nvml_bus_open(const char *sysfs, struct nvml_bus *bus)
{
    char path[PATH_SIZE];
    struct dirent *entry;
    int status = WM_OK;

    snprintf(path, sizeof(path), "%s/bus/pci/devices", sysfs);
    DIR *folder = wm_file_open_folder(AT_FDCWD, path);
    if (!folder)
        return WM_OK;
    while (status == WM_OK && (entry = readdir(folder)) != NULL) {
        if (wm_pci_rank(entry->d_name) != UINT64_MAX &&
            is_nvidia_board(dirfd(folder), entry->d_name))
            status = add_slot(bus, dirfd(folder), entry->d_name);
    }
    closedir(folder);
    if (bus->count > 0)
        qsort(bus->slots, bus->count, sizeof(*bus->slots), compare);
    return status;
}

void nvml_bus_close(struct nvml_bus *bus)
{
    for (size_t i = 0; i < bus->count; i++) {
        if (bus->slots[i].sleep_fd >= 0)
            close(bus->slots[i].sleep_fd);
    }
    free(bus->slots);
    *bus = (struct nvml_bus) { 0 };
}

bool nvml_bus_is_asleep(const struct nvml_bus *bus, size_t place, size_t count)
{
    return bus->count == count && place < count &&
           wm_pci_is_asleep(bus->slots[place].sleep_fd);
}

bool nvml_bus_are_all_asleep(const struct nvml_bus *bus)
{
    for (size_t i = 0; i < bus->count; i++) {
        if (!wm_pci_is_asleep(bus->slots[i].sleep_fd))
            return false;
    }
    return bus->count > 0;
}
