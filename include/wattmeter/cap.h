/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap.h - power caps of GPUs and CPU packages, and the clocks of GPUs: what they are, and
 * setting them so that what was there before comes back.
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
 * A session is kept by its guardian, a process of its own that makes the changes and knows
 * what was there before. It puts that back at wm_cap_session_end(), and within a second
 * when the process that began the session is gone, however it ended. A journal on the disk
 * outlives even the guardian: see wm_caps_restore().
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
#include "wattmeter/gpu.h"
#include "wattmeter/source.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wm_caps;
struct wm_cap_session;

enum wm_cap_kind {
    WM_CAP_GPU_POWER, /* W; all GPUs have one, settable or not, in the order of gpu.h */
    WM_CAP_GPU_CLOCK, /* Hz: the highest graphics clock. Drivers do not say what it is set
                         to: the value is what wattmeter has set, and it is put back
                         to that, else to no limit */
    WM_CAP_CPU_POWER, /* W, of a package, over seconds (RAPL's long term) */
};

/* "gpu_power", "gpu_clock", "cpu_power"; NULL past the last. */
WM_API const char *wm_cap_kind_name(size_t kind);

/* What can be set, and what it is. Texts are borrowed until the next refresh or close. */
struct wm_cap_setting {
    enum wm_cap_kind kind;
    const char *device;        /* "gpu0", "card1", "cpu_package0" */
    const char *name;          /* of the product, "" where it is not known */
    const char *identity;      /* the same after a restart of the machine */
    bool is_forgotten;         /* by the driver, once no program uses the GPU any more: its
                                * persistence mode is off */
    struct wm_gpu_value value; /* what was asked for last */
    struct wm_gpu_value enforced;      /* what holds; others than we may limit, too */
    struct wm_gpu_value default_value; /* after a reset */
    struct wm_gpu_value minimum, maximum;
    struct wm_gpu_value drawn; /* W; may be above the cap, as some boards' is */
};

/* Finds what can be set; `config` may be NULL, and its `gpus` has no say. A machine
 * without any is no failure. */
WM_API int wm_caps_open(const struct wm_source_config *config, struct wm_caps **ret_caps,
                        struct wm_error *err);

/* Accepts NULL. What was set stays set. */
WM_API void wm_caps_close(struct wm_caps *caps);

WM_API size_t wm_caps_count(const struct wm_caps *caps);

/* `index` is below wm_caps_count(). */
WM_API void wm_caps_get(const struct wm_caps *caps, size_t index,
                        struct wm_cap_setting *ret_setting);

/* Reads everything again. What CPU packages draw is the mean since the last reading. */
WM_API int wm_caps_refresh(struct wm_caps *caps, struct wm_error *err);

enum wm_caps_format { WM_CAPS_TEXT, WM_CAPS_JSON };

/* All settings as they were read last. WM_EIO when `out` did not take all of it. */
WM_API int wm_caps_print(const struct wm_caps *caps, enum wm_caps_format format, FILE *out,
                         struct wm_error *err);

/* One cap that somebody wants. */
struct wm_cap_wish {
    size_t index; /* of the setting */
    double value;
};

/* What words such as these mean; `ret_wishes` has room for wm_caps_count().
 *
 *   "250W", "250"      watts, for all GPUs
 *   "80%", "0.8"       of the default; a bare number up to 1 is a fraction
 *   "default"          the default
 *   "0=200W,1=80%"     each GPU its own, by its number, identity, label or PCI address
 *   "cpu=120W"         all CPU packages; "cpu_package0=120W" one of them
 *   "0=1200MHz"        the highest clock in place of a power cap; also GHz
 *
 * WM_EINVAL says which word is wrong and what there is, or that the value is outside what
 * can be set; WM_ENODEV: there is nothing to cap. Nothing is changed. */
WM_API int wm_caps_parse(const struct wm_caps *caps, const char *words,
                         struct wm_cap_wish *ret_wishes, size_t *ret_count,
                         struct wm_error *err);

/* The same for devices alone: "all" or NULL (all GPUs' power), "0,cpu"; sets `value` to
 * nothing in particular. */
WM_API int wm_caps_select(const struct wm_caps *caps, const char *words,
                          struct wm_cap_wish *ret_wishes, size_t *ret_count,
                          struct wm_error *err);

/* Sets it until somebody sets something else. The journal keeps what was there before us.
 * WM_EINVAL: outside what can be set. WM_EACCES says what is missing and what gives it.
 * WM_EEXIST: somebody else holds the device, and who. WM_EIO: the driver refused, and
 * nothing has changed. */
WM_API int wm_caps_set(struct wm_caps *caps, const struct wm_cap_wish *wish,
                       struct wm_error *err);

/* Sets it to its default, likewise. */
WM_API int wm_caps_reset(struct wm_caps *caps, size_t index, struct wm_error *err);

/* What became of a setting that the journal knows. */
enum wm_cap_restored {
    WM_CAP_NOTHING,    /* the journal knows of no change of ours */
    WM_CAP_PUT_BACK,   /* what was there before us is there again */
    WM_CAP_BACK,       /* it was there already */
    WM_CAP_BY_ANOTHER, /* somebody else has changed it since: it is left alone */
};

/* Puts back what was there before our changes, those of sessions whose guardian was killed
 * and those of wm_caps_set(). `ret_value` (may be NULL) is what is there now. */
WM_API int wm_caps_restore(struct wm_caps *caps, size_t index,
                           enum wm_cap_restored *ret_restored, double *ret_value,
                           struct wm_error *err);

/* Whether a session of this user has ended without putting back what was there: 1, and
 * `text` says of which devices; 0. No driver is asked. */
WM_API int wm_caps_left_behind(char *text, size_t size);

/* The same of root and of all other users: `text` also says who can put it back, since a
 * journal is believed by its own user alone. */
WM_API int wm_caps_left_by_others(char *text, size_t size);

/* Begins a session, in which nothing is changed yet, and starts its guardian; `caps` has
 * to live as long. `command` is who others are told holds the devices. `program` is the
 * command `wattmeter`, which the guardian runs; NULL: found beside the library or in PATH.
 * A thread of the session starts the guardian again should that be killed. */
WM_API int wm_cap_session_begin(struct wm_caps *caps, const char *command,
                                const char *program, struct wm_cap_session **ret_session,
                                struct wm_error *err);

/* Sets a cap for the time of the session; as wm_caps_set() otherwise. What holds then is
 * in wm_caps_get(). */
WM_API int wm_cap_session_set(struct wm_cap_session *session, size_t index, double value,
                              struct wm_error *err);

/* Whether the caps of the session still hold: WM_OK; WM_EIO: the guardian was killed, and
 * could not be started again, and what was there before was put back. */
WM_API int wm_cap_session_check(struct wm_cap_session *session, struct wm_error *err);

/* Puts everything back and ends the guardian. The session is gone in any case; a failure
 * names what could not be put back and stays in the journal, or was changed by somebody
 * else and left alone (WM_ECANCELED). Accepts NULL. Does nothing in a process that was
 * forked from the session's. */
WM_API int wm_cap_session_end(struct wm_cap_session *session, struct wm_error *err);

/* The guardian itself; the program `wattmeter` calls it when its first word is
 * WM_CAP_GUARDIAN. Returns the status of the process. */
#define WM_CAP_GUARDIAN "--cap-guardian"
WM_API int wm_cap_guardian(int argc, char *const argv[]);

#ifdef __cplusplus
}
#endif
#endif
