/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap.h - reads and sets power caps of GPUs and CPU packages, and clocks of GPUs, and
 * restores the previous ones.
 *
 *     struct wm_caps *caps;
 *     struct wm_cap_session *session;
 *     struct wm_error err;
 *     if (wm_caps_open(NULL, &caps, &err) < 0)
 *         return report(&err);
 *     if (wm_cap_session_begin(caps, "example", NULL, &session, &err) == WM_OK) {
 *         if (wm_cap_session_set(session, 0, 200, &err) == WM_OK)
 *             train();
 *         wm_cap_session_end(session, &err);
 *     }
 *     wm_caps_close(caps);
 *
 * A session has a guardian: a separate process that changes the caps and remembers the
 * previous ones. The guardian restores them at wm_cap_session_end(), or within a second
 * after the process that began the session has ended, for whatever reason. A journal on the
 * disk outlives even the guardian: see wm_caps_restore().
 *
 * For every function here:
 *   - zero or more is success, a negative `enum wm_status` is failure;
 *   - out-parameters (`ret_...`) are written on success and only then;
 *   - `err` may be NULL;
 *   - values are in watts or hertz;
 *   - a driver that hangs costs at most WM_GPU_PATIENCE_S seconds a call.
 */
#ifndef WATTMETER_CAP_H
#define WATTMETER_CAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "wattmeter/api.h"
#include "wattmeter/error.h"
#include "wattmeter/format.h"
#include "wattmeter/gpu.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_caps;
struct wm_cap_session;

enum wm_cap_kind {
    WM_CAP_GPU_POWER = 0, /* W; each GPU has one, settable or not, in the order of gpu.h */
    /* Hz: the highest graphics clock. Drivers do not report it: wattmeter restores the
     * limit it set last, or removes it. */
    WM_CAP_GPU_CLOCK = 1,
    WM_CAP_CPU_POWER = 2, /* W, of a package, over seconds (RAPL's long term) */
};

/* "gpu_power", "gpu_clock", "cpu_power"; NULL past the last. */
WM_API const char *wm_cap_kind_name(size_t kind);

/* A cap or clock that can be set, and its values. The strings are borrowed until the next
 * refresh or close. */
struct wm_cap_setting {
    enum wm_cap_kind kind;
    const char *device;        /* "gpu0", "card1", "cpu_package0" */
    const char *name;          /* of the product, "" if unknown */
    const char *identity;      /* the same after a restart of the machine */
    bool is_forgotten;         /* the driver drops the cap when no program uses the GPU any
                                * more: its persistence mode is off */
    struct wm_gpu_value value; /* requested last */
    struct wm_gpu_value enforced;      /* in force; other limits may be lower */
    struct wm_gpu_value default_value; /* after a reset */
    struct wm_gpu_value minimum, maximum;
    struct wm_gpu_value drawn; /* W; may be above the cap on some boards */
};

/* Finds the caps and clocks; `config` may be NULL, and its `gpus` is ignored. If the
 * machine has none, the function succeeds with a count of 0. */
WM_API int wm_caps_open(const struct wm_source_config *config, struct wm_caps **ret_caps,
                        struct wm_error *err);

/* Accepts NULL. Caps that were set stay set. */
WM_API void wm_caps_close(struct wm_caps *caps);

WM_API size_t wm_caps_count(const struct wm_caps *caps);

/* `index` is below wm_caps_count(). */
WM_API void wm_caps_get(const struct wm_caps *caps, size_t index,
                        struct wm_cap_setting *ret_setting);

/* Reads all values again. The power of a CPU package is the mean since the last reading. */
WM_API int wm_caps_refresh(struct wm_caps *caps, struct wm_error *err);

/* Prints all settings as last read, as text or JSON. Returns WM_EIO if `out` did not take
 * all of it. */
WM_API int wm_caps_print(const struct wm_caps *caps, enum wm_format format, FILE *out,
                         struct wm_error *err);

/* One requested cap. */
struct wm_cap_wish {
    size_t index; /* of the setting */
    double value;
};

/* Parses words such as these; `ret_wishes` has room for wm_caps_count().
 *
 *   "250W", "250"      watts, for all GPUs
 *   "80%", "0.8"       of the default; a bare number up to 1 is a fraction
 *   "default"          the default
 *   "0=200W,1=80%"     one for each GPU, by its number, identity, label or PCI address
 *   "cpu=120W"         all CPU packages; "cpu_package0=120W" one of them
 *   "0=1200MHz"        the highest clock in place of a power cap; also GHz
 *
 * Returns WM_EINVAL for an unknown word, with a list of the known ones, and for a value
 * outside of the settable range. Returns WM_ENODEV if the machine has nothing to cap.
 * Changes nothing. */
WM_API int wm_caps_parse(const struct wm_caps *caps, const char *words,
                         struct wm_cap_wish *ret_wishes, size_t *ret_count,
                         struct wm_error *err);

/* The same for devices without values: "all" or NULL (the power of all GPUs), "0,cpu".
 * `value` of each is undefined. */
WM_API int wm_caps_select(const struct wm_caps *caps, const char *words,
                          struct wm_cap_wish *ret_wishes, size_t *ret_count,
                          struct wm_error *err);

/* Sets a cap until it is set again. The journal keeps the value from before wattmeter's
 * first change. Returns WM_EINVAL if the value is out of range; WM_EACCES, and which
 * permission is missing and how to get it; WM_EEXIST, and which command holds the device;
 * WM_EIO if the driver refused, and nothing has changed. */
WM_API int wm_caps_set(struct wm_caps *caps, const struct wm_cap_wish *wish,
                       struct wm_error *err);

/* Sets a cap to its default; statuses as in wm_caps_set(). */
WM_API int wm_caps_reset(struct wm_caps *caps, size_t index, struct wm_error *err);

/* The result of restoring a setting. */
enum wm_cap_restored {
    WM_CAP_NOTHING = 0,    /* wattmeter has not changed it */
    WM_CAP_PUT_BACK = 1,   /* the previous value is restored */
    WM_CAP_BACK = 2,       /* it had the previous value already */
    WM_CAP_BY_ANOTHER = 3, /* another program has changed it since: left alone */
};

/* Restores the value from before wattmeter's changes, by wm_caps_set() or by a session
 * whose guardian was killed. `ret_value` (may be NULL) is the present value. */
WM_API int wm_caps_restore(struct wm_caps *caps, size_t index,
                           enum wm_cap_restored *ret_restored, double *ret_value,
                           struct wm_error *err);

/* Returns 1 if a session of this user has ended without restoring the previous values, and
 * writes the devices to `text`; else 0. Asks no driver. */
WM_API int wm_caps_left_behind(char *text, size_t size);

/* The same for root and all other users. `text` also names who can restore the values,
 * since wattmeter trusts a journal only for the user who wrote it. */
WM_API int wm_caps_left_by_others(char *text, size_t size);

/* Begins a session, which changes nothing yet, and starts its guardian; `caps` has to live
 * as long. Other users get `command` as the holder of the devices. The guardian runs
 * `program`, the command `wattmeter`; NULL: the one beside the library or in PATH. A thread
 * of the session restarts the guardian if it is killed. */
WM_API int wm_cap_session_begin(struct wm_caps *caps, const char *command,
                                const char *program, struct wm_cap_session **ret_session,
                                struct wm_error *err);

/* Sets a cap for the time of the session; statuses as in wm_caps_set(). wm_caps_get() has
 * the value that is in force. */
WM_API int wm_cap_session_set(struct wm_cap_session *session, size_t index, double value,
                              struct wm_error *err);

/* Returns WM_OK if the caps of the session still hold. Returns WM_EIO if the guardian was
 * killed and could not be restarted; the previous values are restored then. */
WM_API int wm_cap_session_check(struct wm_cap_session *session, struct wm_error *err);

/* Restores all values and ends the guardian. The session is freed in any case. A failure
 * names the values that could not be restored; they stay in the journal. WM_ECANCELED:
 * another program has changed a value, which is left alone. Accepts NULL. Does nothing in a
 * process that was forked from the session's. */
WM_API int wm_cap_session_end(struct wm_cap_session *session, struct wm_error *err);

/* The guardian. The program `wattmeter` calls it if its first argument is WM_CAP_GUARDIAN.
 * Returns the exit status of the process. */
#define WM_CAP_GUARDIAN "--cap-guardian"
WM_API int wm_cap_guardian(int argc, char *const argv[]);

#ifdef __cplusplus
}
#endif
#endif
