/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_process.h - who a process on a GPU is, in words: the driver reports a number
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

/* The fields that are found out here: PID, name, user, parent, age. */
enum { WM_GPU_WHO_FIELDS = WM_GPU_PROCESS_CREATE_TIME + 1 };

/* By enum wm_gpu_process_field. A reason is a constant, a text is in the same struct. */
struct wm_gpu_who {
    struct wm_gpu_value values[WM_GPU_WHO_FIELDS];
    char texts[WM_GPU_WHO_FIELDS][WM_GPU_NAME_SIZE];
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
