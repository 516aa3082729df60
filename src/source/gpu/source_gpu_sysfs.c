/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_sysfs.c - compute nodes of amdkfd, tiles of xe. */
#include "source/gpu/source_gpu_sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "source/gpu/source_gpu_pci.h"

enum { TILES_MAX = 64 };

int wm_kfd_read_node(const char *sysfs, unsigned node, char text[WM_DRM_TEXT])
{
    char path[512];

    snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology/nodes/%u/properties", sysfs,
             node);
    if (node >= WM_KFD_NODES || access(path, F_OK) != 0)
        return WM_ENOENT;
    ssize_t length = wm_file_read_at(AT_FDCWD, path, text, WM_DRM_TEXT);
    return length > 0 && strlen(text) == (size_t)length ? WM_OK : WM_EACCES;
}

/* 0 where it is not there. */
static uint64_t property(const char *text, const char *key)
{
    uint64_t number = 0;

    wm_parse_named_number(text, key, &number);
    return number;
}

size_t wm_kfd_nodes(const char *sysfs, uint64_t ret_ranks[WM_KFD_NODES])
{
    char text[WM_DRM_TEXT];
    size_t count = 0;
    int status;

    /* Nodes of GPUs that a container may not use cannot be read, and are
     * passed over by ROCm too. Those of processors have no SIMD units. */
    for (unsigned node = 0; (status = wm_kfd_read_node(sysfs, node, text)) != WM_ENOENT;
         node++) {
        if (status == WM_OK && property(text, "simd_count") > 0)
            ret_ranks[count++] = property(text, "domain") << WM_PCI_LOCAL_BITS |
                                 property(text, "location_id");
    }
    return count;
}

unsigned wm_sysfs_tiles(const char *sysfs, const char *label)
{
    unsigned tiles = 0;

    for (; tiles < TILES_MAX; tiles++) {
        char path[512];

        snprintf(path, sizeof(path), "%s/class/drm/%s/device/tile%u", sysfs, label, tiles);
        if (access(path, F_OK) != 0)
            break;
    }
    return tiles;
}
