/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_sysfs.h - what the drivers count by and no source tells: the order of AMD's
 * compute nodes, the tiles of Intel's GPUs. */
#ifndef WM_SOURCE_GPU_SYSFS_H
#define WM_SOURCE_GPU_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/drm/source_drm_text.h"

/* What the kernel's compute driver (KFD) says of a node, a processor or a GPU; they are
 * numbered without gaps. 1, or 0 where it may not be read, or -1 behind the last. */
int wm_kfd_read_node(const char *sysfs, unsigned node, char text[WM_DRM_TEXT]);

#define WM_KFD_NO_NODE UINT64_MAX

/* Finds the node of amdkfd for each of the `count` GPUs at the PCI addresses
 * `ranks` (wm_pci_rank()). False where GPUs and nodes do not fit one to one, so
 * that their order says less than it seems to. */
bool wm_kfd_find_nodes(const char *sysfs, const uint64_t *ranks, size_t count,
                       uint64_t *ret_nodes);

/* How many tiles the card called `label` ("card0") shows; 0 where it shows none. */
unsigned wm_sysfs_tiles(const char *sysfs, const char *label);

#endif
