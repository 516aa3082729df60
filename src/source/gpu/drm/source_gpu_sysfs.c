/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_sysfs.c - compute nodes of amdkfd, tiles of xe. */
#include "source/gpu/drm/source_gpu_sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "source/gpu/source_gpu_pci.h"

enum { NODES_MAX = 1024, TILES_MAX = 64 };

/* The number behind `key` in lines of "key number"; 0 where it is not there. */
static uint64_t property(const char *text, const char *key)
{
    size_t length = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        uint64_t number;

        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ' &&
            wm_text_u64(line + length + 1, NULL, &number))
            return number;
    }
    return 0;
}

bool wm_kfd_find_nodes(const char *sysfs, const uint64_t *ranks, size_t count,
                       uint64_t *ret_nodes)
{
    size_t found = 0;
    bool fits = true;

    for (size_t i = 0; i < count; i++)
        ret_nodes[i] = WM_KFD_NO_NODE;
    for (size_t node = 0; node < NODES_MAX; node++) {
        char path[512], text[4096];
        size_t place = 0;

        snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology/nodes/%zu/properties",
                 sysfs, node);
        if (access(path, F_OK) != 0)
            break;

        /* Nodes of GPUs that a container may not use cannot be read, and are
         * passed over by ROCm too. Those of processors have no SIMD units. */
        if (wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
            property(text, "simd_count") == 0)
            continue;
        uint64_t rank =
            property(text, "domain") << WM_PCI_LOCAL_BITS | property(text, "location_id");
        while (place < count && ranks[place] != rank)
            place++;
        if (place < count && ret_nodes[place] == WM_KFD_NO_NODE) {
            ret_nodes[place] = node;
            found++;
        } else {
            fits = false; /* part of a GPU, or a GPU without a card */
        }
    }
    return fits && found == count;
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
