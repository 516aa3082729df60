/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_shared.h - mapped files that other processes may cut short. Touching what is not
 * there any more is SIGBUS; the kernel, asked to copy it, only says so. So does it where
 * a page has to be made for which there is no memory.
 *
 * Words of eight bytes that are aligned are assumed to be copied whole, as kernels do.
 */
#ifndef WM_REGION_SHARED_H
#define WM_REGION_SHARED_H

#include <stdbool.h>
#include <stddef.h>

/* False where not all of it is there. Some sandboxes forbid the kernel to copy between
 * processes: /proc/self/mem serves there, and where that is missing, too, a bare copy. */
bool wm_shared_read(void *to, const volatile void *shared, size_t size);
bool wm_shared_write(volatile void *shared, const void *from, size_t size);

#endif
