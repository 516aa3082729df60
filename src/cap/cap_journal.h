/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap_journal.h - what was there before our changes, on the disk: a file for each setting
 * that is changed, written before the change; and the locks, a file for each device, which
 * its one writer holds.
 *
 * The journal is in /var/lib/wattmeter/caps for root, for others in
 * /var/tmp/wattmeter-caps-UID: not at home, which several machines may share, nor in /run,
 * since some limits, those that a platform's firmware keeps, outlive a power cut. Locks are
 * in /dev/shm, which all users share. WATTMETER_STATE names one folder for both.
 */
#ifndef WM_CAP_JOURNAL_H
#define WM_CAP_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base_error.h"
#include "wattmeter/cap.h"

enum { WM_CAP_IDENTITY = 96, WM_CAP_COMMAND = 160, WM_CAP_BOOT = 64 };

/* A change. NAN stands for no limit, or for what is not known. */
struct wm_cap_entry {
    char identity[WM_CAP_IDENTITY];
    char device[32]; /* for people */
    enum wm_cap_kind kind;
    uid_t user;      /* whose journal it is in; not part of the file */
    bool is_session; /* it is to end with a session */
    pid_t owner;     /* whose session; 0: of none */
    char command[WM_CAP_COMMAND];
    char boot[WM_CAP_BOOT]; /* the kernel's id of this start of the machine; "" where it is
                             * not known */
    double earlier;         /* what was there */
    double before;          /* the value that was set when we asked, perhaps by us */
    double set;             /* what we asked for */
    double read_back;       /* what was there then */
};

/* An entry as text, and back: WM_EFORMAT where it is none of ours. */
char *wm_cap_entry_text(const struct wm_cap_entry *entry);
int wm_cap_entry_parse(const char *text, size_t length, struct wm_cap_entry *ret_entry,
                       struct wm_error *err);

/* The id of this start of the machine, "" where the kernel does not say. */
void wm_cap_boot(char boot[WM_CAP_BOOT]);

/* Waits until the disk has it. */
int wm_cap_journal_write(const struct wm_cap_entry *entry, struct wm_error *err);

/* The entry of a setting, of a session or not: 1, or 0 where there is none. */
int wm_cap_journal_read(const char *identity, enum wm_cap_kind kind, bool is_session,
                        struct wm_cap_entry *ret_entry, struct wm_error *err);

int wm_cap_journal_remove(const struct wm_cap_entry *entry, struct wm_error *err);

typedef void wm_cap_entry_found(void *context, const struct wm_cap_entry *entry);

/* Calls `found` with each of this user's entries; what cannot be read is passed over. */
void wm_cap_journal_each(wm_cap_entry_found *found, void *context);

/* With each of root's, where this user is another. */
void wm_cap_journal_each_of_root(wm_cap_entry_found *found, void *context);

/* With each of the users other than this one and root; such entries may say anything. */
void wm_cap_journal_each_of_users(wm_cap_entry_found *found, void *context);

/* Takes the lock of a device, which the process holds until it closes `ret_fd`; others are
 * told that `owner` has it. WM_EEXIST says who has it. */
int wm_cap_lock(const char *identity, const char *device, pid_t owner, const char *command,
                int *ret_fd, struct wm_error *err);

/* Whether anybody has it. */
bool wm_cap_is_locked(const char *identity);

#endif
