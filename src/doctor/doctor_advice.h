/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advice.h - a short list of what is in the way of a source, each with the
 * command that clears it. */
#ifndef WM_DOCTOR_ADVICE_H
#define WM_DOCTOR_ADVICE_H

#include <stddef.h>

#include "wattmeter/doctor.h"

enum {
    WM_ADVICE_MAX = 8, /* for one source; more would not be read */
    WM_ADVICE_SIZE = 512,
};

/* All zero is ready to begin. */
struct wm_advice {
    struct wm_doctor_advice list[WM_ADVICE_MAX];
    struct {
        char problem[WM_ADVICE_SIZE], command[WM_ADVICE_SIZE];
    } texts[WM_ADVICE_MAX];
    size_t count;
};

/* `command` may be NULL: there is none. In it every %s, and nothing else is
 * converted, stands for one word of the shell, which is quoted where that is
 * needed. A command that does not come out whole is left out, and one that has been
 * given before is not given again, whatever else it solves. */
void wm_advice_add(struct wm_advice *advice, const char *problem, const char *command, ...)
    __attribute__((format(printf, 3, 4)));

#endif
