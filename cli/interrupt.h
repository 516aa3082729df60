/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - Ctrl-C, a closed terminal and SIGTERM while a file is written that is of
 * use as a whole alone, and there is time to take back what has been written by then, or
 * while something is watched.
 *
 *     const volatile sig_atomic_t *stop = interrupt_catch();
 *     ... hand it to the library ...
 *     return interrupt_end(code);
 */
#ifndef WM_INTERRUPT_H
#define WM_INTERRUPT_H

#include <signal.h>

/* From here on the first signal only sets what is returned; a second one ends the
 * process, should it be kept by a disk, a driver or a reader. One that is ignored stays so.
 */
const volatile sig_atomic_t *interrupt_catch(void);

/* Signals are what they were before. Returns `code`; but if there was one meanwhile, and
 * `code` is not 0, the process dies of it, so that a shell sees 130 or 143, and ends its
 * own loop. */
int interrupt_end(int code);

#endif
