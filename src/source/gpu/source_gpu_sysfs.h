/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_sysfs.h - what the drivers count by and no source reports: the order of AMD's
 * compute nodes, the tiles of Intel's GPUs. */
#ifndef WM_SOURCE_GPU_SYSFS_H
#define WM_SOURCE_GPU_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/gpu/source_drm_text.h"

/* What the kernel's compute driver (KFD) says of a node, a processor or a GPU; they are
 * numbered without gaps. WM_EACCES where it may not be read, WM_ENOENT behind the last. */
int wm_kfd_read_node(const char *sysfs, unsigned node, char text[WM_DRM_TEXT]);

/* More than any machine has. */
enum { WM_KFD_NODES = 1024 };

/* The PCI addresses (wm_pci_rank()) of the GPUs among the nodes, in their order. */
size_t wm_kfd_nodes(const char *sysfs, uint64_t ret_ranks[WM_KFD_NODES]);

/* How many tiles the card called `label` ("card0") shows; 0 where it shows none. */
unsigned wm_sysfs_tiles(const char *sysfs, const char *label);

#endif
