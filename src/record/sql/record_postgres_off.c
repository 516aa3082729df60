/* SPDX-License-Identifier: Apache-2.0 */
/* record_postgres_off.c - stands in for PostgreSQL in a build without libpq, and
 * says so. */
#include <stdlib.h>
#include <string.h>

#include "base/base_utf8.h"
#include "record/record_ops.h"

static int refuse(struct wm_error *err)
{
    return wm_fail(err, WM_ENODEV,
                   WM_URL_HIDDEN ": this wattmeter was built without PostgreSQL (libpq)");
}

static int off_check(const char *target, struct wm_error *err)
{
    (void)target;
    return refuse(err);
}

static char *off_shown(const char *target)
{
    (void)target;
    return strdup(WM_URL_HIDDEN);
}

static int off_record(void *state, const char *target, const struct wm_run *run,
                      const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    (void)state, (void)target, (void)run, (void)channels, (void)count;
    return refuse(err);
}

static int off_read(void *state, const char *path, size_t run, struct wm_error *err)
{
    (void)state, (void)path, (void)run;
    return refuse(err);
}

static void off_close(void *state)
{
    (void)state;
}

const struct wm_recorder_ops wm_recorder_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .check = off_check,
    .shown = off_shown,
    .survives_kill = true,
    .state_size = 1,
    .open = off_record,
    .close = off_close,
};

const struct wm_reader_ops wm_reader_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .state_size = 1,
    .open = off_read,
    .close = off_close,
};
