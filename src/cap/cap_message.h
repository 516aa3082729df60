/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_message.h - what a session and its guardian say to each other: one packet for each
 * question and one for its answer, over a socket whose end tells each that the other is
 * gone.
 */
#ifndef WM_CAP_MESSAGE_H
#define WM_CAP_MESSAGE_H

#include "cap/cap_journal.h"

/* The descriptors that the guardian begins with. */
enum {
    WM_CAP_SOCKET = 3,
    WM_CAP_PARENT = 4, /* pidfd of the session's process; none on kernels before 5.3 */
};

enum wm_cap_question {
    WM_CAP_READY,     /* the guardian's first word: whether it is */
    WM_CAP_SET,       /* `value` for the setting of that kind and identity */
    WM_CAP_TAKE_OVER, /* what the guardian before, of this owner, has changed */
    WM_CAP_END,       /* put everything back, and end */
};

struct wm_cap_message {
    enum wm_cap_question question;
    enum wm_cap_kind kind;
    char identity[WM_CAP_IDENTITY];
    double value;
    int status; /* of the answer; its text is in `err` */
    struct wm_error err;
};

#endif
