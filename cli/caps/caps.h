/* SPDX-License-Identifier: Apache-2.0 */
/* caps.h - caps for the time of a command: what `run --cap` and others with such an option
 * share. */
#ifndef WM_CAPS_H
#define WM_CAPS_H

#include "cmd.h"
#include "wattmeter/cap.h"

/* All zero: nothing is capped. */
struct caps_held {
    struct wm_caps *caps;
    struct wm_cap_session *session;
    char note[512]; /* "gpu0 250 W (was 350 W), gpu1 ..." */
};

/* "250 W", "1200 MHz", or "n/a". */
enum { CAPS_TEXT = 32 };
void caps_text(enum wm_cap_kind kind, const struct wm_gpu_value *value,
               char text[CAPS_TEXT]);

/* Sets what `words` say until caps_end(), or until this process is gone. CMD_DONE, or the
 * status of the process after saying why; nothing is set then. `name` is the command,
 * `program` what is run, for others who ask who holds the cap. */
int caps_begin(const char *name, const char *words, const char *program,
               const struct cmd_streams *io, struct caps_held *held);

/* Puts everything back and says what could not be; CMD_FAILED then, or where the caps have
 * not held all the time. Copes with all zero. */
int caps_end(const char *name, const struct cmd_streams *io, struct caps_held *held);

/* Reports caps that a killed session with a killed guardian has left set. */
void caps_offer_repair(FILE *chat);

#endif
