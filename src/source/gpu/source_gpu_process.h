/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_process.h - who a process on a GPU is, in words: the driver tells a number
 * only.
 *
 * All of it is read anew each time, since a process may become another program
 * and get another parent; the names of users alone are remembered, for they may
 * come from a server.
 */
#ifndef WM_SOURCE_GPU_PROCESS_H
#define WM_SOURCE_GPU_PROCESS_H

#include <sys/types.h>

#include "base/base_error.h"
#include "wattmeter/gpu.h"

/* Of a name with its NUL; longer ones are cut. */
#define WM_GPU_NAME_SIZE 128

/* What is not ok has a reason, which is a constant. */
struct wm_gpu_who_number {
    enum wm_reading_state state;
    double value;
    const char *why;
};

struct wm_gpu_who_text {
    enum wm_reading_state state;
    char text[WM_GPU_NAME_SIZE];
    const char *why;
};

struct wm_gpu_who {
    struct wm_gpu_who_number pid, parent_pid, create_time;
    struct wm_gpu_who_text name, user, parent_name;
};

struct wm_gpu_people;

/* `procfs` and `own` as for wm_pidns_open(). Fails in WM_ENOMEM only. */
int wm_gpu_people_open(const char *procfs, const char *own,
                       struct wm_gpu_people **ret_people, struct wm_error *err);

/* Accepts NULL. */
void wm_gpu_people_close(struct wm_gpu_people *people);

/* Who the process is that a driver calls `told`. */
void wm_gpu_people_find(struct wm_gpu_people *people, pid_t told,
                        struct wm_gpu_who *ret_who);

#endif
