/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - named blocks of code, for whoever measures the program.
 *
 *     wm_region_begin("epoch");
 *     for (int i = 0; i < 100; i++) {
 *         WM_REGION("batch"); // ends with the block it stands in
 *         train();
 *     }
 *     wm_region_end();
 *
 * Under `wattmeter run` the report then has what each of them cost. Without a
 * measurement the calls do nothing, and with WATTMETER_REGIONS=FILE.csv (or .sqlite) in the
 * environment they write a sub-tracking file as gpu_tracker does. No call fails, prints,
 * takes a lock that others hold for long, or, in the common case, makes a system call;
 * but a row for an .sqlite file waits for the other threads and processes that write
 * theirs, ten seconds at most, after which it is lost. All of them may be called from any
 * thread; each thread has a stack of regions of its own. In a signal handler they must not
 * be called. After fork() the child begins with no region open.
 *
 * A name is copied at once; names longer than WM_REGION_NAME_MAX bytes are cut off there.
 * From Fortran the functions are called through bind(C); docs/regions.md has the lines.
 */
#ifndef WATTMETER_REGION_H
#define WATTMETER_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WM_REGION_NAME_MAX 8191

/* Opens a region inside those that this thread has open. NULL is the empty name. */
WM_API void wm_region_begin(const char *name);

/* Closes the one that this thread opened last. One too many is counted and reported. */
WM_API void wm_region_end(void);

/* Closes the one that this thread opened last with this pointer, wherever on its stack it
 * is; those inside it stay open. If none is open, that is counted and reported. For
 * languages whose blocks may end in another order, as those of generators do. */
WM_API void wm_region_end_of(const char *name);

/* Opens a region that lies in no other and may be closed by any thread of this process, in
 * any order: a request that is under way, say. The number is never 0. */
WM_API uint64_t wm_region_start(const char *name);
WM_API void wm_region_stop(uint64_t region);

/* As `parent`: the innermost region that this thread has open by wm_region_begin(). */
#define WM_REGION_INNERMOST UINT64_MAX

/* As wm_region_start(), inside the region of that number, which this process has started.
 * If that is over, or `parent` is 0, it lies in no other. */
WM_API uint64_t wm_region_start_in(const char *name, uint64_t parent);

/* Whether anybody listens. For programs that would have to compute a name. */
WM_API bool wm_region_is_on(void);

/* Whether these calls may wait for others, as rows for a file do. For languages that hold a
 * lock around all of their threads. */
WM_API bool wm_region_may_wait(void);

/* A sub-tracking file of gpu_tracker: rows of process_id, code_block_name, position (0
 * start, 1 stop) and timestamp (seconds since 1970). Several processes and threads may
 * write to one file; a row is there when the call returns. */
struct wm_region_file;

/* The suffix is .csv or .sqlite. */
WM_API int wm_region_file_open(const char *path, enum wm_record_mode mode,
                               struct wm_region_file **ret_file, struct wm_error *err);

/* `unix_seconds` NULL: now. */
WM_API int wm_region_file_write(struct wm_region_file *file, const char *name, bool is_stop,
                                const double *unix_seconds, struct wm_error *err);

/* Accepts NULL. */
WM_API void wm_region_file_close(struct wm_region_file *file);

#ifdef __cplusplus
}

struct wm_region_scope {
    explicit wm_region_scope(const char *name)
    {
        wm_region_begin(name);
    }
    ~wm_region_scope()
    {
        wm_region_end();
    }
    wm_region_scope(const wm_region_scope &) = delete;
    wm_region_scope &operator=(const wm_region_scope &) = delete;
};
#define WM_REGION(name)                                                                    \
    ::wm_region_scope WM_REGION_UNIQUE(wm_region_scope_, __COUNTER__)(name)
#elif defined(__GNUC__)
static inline void wm_region_leave(const char *const *name)
{
    (void)name;
    wm_region_end();
}
#define WM_REGION(name)                                                                    \
    __attribute__((cleanup(wm_region_leave), unused)) const char *const WM_REGION_UNIQUE(  \
        wm_region_scope_, __COUNTER__) = (wm_region_begin(name), "")
#endif
#define WM_REGION_UNIQUE(prefix, number) WM_REGION_UNIQUE_(prefix, number)
#define WM_REGION_UNIQUE_(prefix, number) prefix##number

#endif
