/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_pci.h - PCI addresses, which every driver writes in its own way:
 * "00000000:3B:00.0", "0000:3b:00.0"; and whether a device on that bus is asleep. */
#ifndef WM_SOURCE_GPU_PCI_H
#define WM_SOURCE_GPU_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether text[0..length), which something other than a hexadecimal digit ends, is
 * an address, and its number: the greater comes later on the bus. Without a domain
 * ("3b:00.0") that is the number within any domain, the lowest WM_PCI_LOCAL_BITS. */
bool wm_pci_parse(const char *text, size_t length, uint64_t *ret_number,
                  bool *ret_has_domain);

enum { WM_PCI_LOCAL_BITS = 16 };

/* The number of an address with a domain; UINT64_MAX, which is behind all others,
 * where `text` is NULL or something else. */
uint64_t wm_pci_rank(const char *text);

/* Whether the kernel has suspended the device whose power/runtime_status is open as `fd`; a
 * device without that file (`fd` below 0) is awake. Reading the file wakes nothing, but
 * asking the driver about a GPU that is asleep wakes it: ask only if this is false. */
bool wm_pci_is_asleep(int fd);

#endif
