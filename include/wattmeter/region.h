/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.h - marks named blocks of code, whose cost is measured.
 *
 *     wm_region_begin("epoch");
 *     for (int i = 0; i < 100; i++) {
 *         WM_REGION("batch"); // ends with the block it stands in
 *         train();
 *     }
 *     wm_region_end();
 *
 * Under `wattmeter run` the report shows the cost of each. Without a measurement the calls
 * do nothing. With WATTMETER_REGIONS=FILE.csv (or .sqlite) in the environment they write a
 * sub-tracking file as gpu_tracker does. No call fails, prints, or takes a lock that others
 * hold for long; in the common case it makes no system call. Only a row for an .sqlite file
 * waits for other writers, at most ten seconds, after which it is lost. Any thread may call
 * all of them; each thread has a separate stack of regions. Do not call them in a signal
 * handler. After fork() the child begins with no region open.
 *
 * Names are copied, and cut after WM_REGION_NAME_MAX bytes. Fortran calls the functions
 * through bind(C); docs/regions.md has the lines.
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

/* Opens a region inside the thread's innermost open one. NULL is the empty name. */
WM_API void wm_region_begin(const char *name);

/* Closes the region that this thread opened last. A call without an open region is counted
 * and reported. */
WM_API void wm_region_end(void);

/* Closes the region that this thread opened last with this pointer, anywhere on its stack;
 * regions inside it stay open. If none is open, the call is counted and reported. For
 * languages whose blocks may end in another order, such as generators. */
WM_API void wm_region_end_of(const char *name);

/* Opens a region outside of all others, such as a request. Any thread of this process may
 * close it, in any order. The number is never 0. */
WM_API uint64_t wm_region_start(const char *name);
WM_API void wm_region_stop(uint64_t region);

/* As `parent`: the innermost region that this thread has open by wm_region_begin(). */
#define WM_REGION_INNERMOST UINT64_MAX

/* As wm_region_start(), but inside the region `parent`, which this process has started. If
 * that has ended, or `parent` is 0, the region is outside of all others. */
WM_API uint64_t wm_region_start_in(const char *name, uint64_t parent);

/* Whether regions are measured. For programs that would have to compute a name. */
WM_API bool wm_region_is_on(void);

/* Whether these calls may wait for other processes, as rows for a file do. For languages
 * that hold a lock around all of their threads. */
WM_API bool wm_region_may_wait(void);

/* A sub-tracking file of gpu_tracker: rows of process_id, code_block_name, position (0
 * start, 1 stop) and timestamp (seconds since 1970). Several processes and threads may
 * write to one file; a row is in the file when the call returns. */
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
