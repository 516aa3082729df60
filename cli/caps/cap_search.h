/* SPDX-License-Identifier: Apache-2.0 */
/* cap_search.h - `cap profile` and `cap fit`: what they share, options and output. */
#ifndef WM_CLI_CAP_SEARCH_H
#define WM_CLI_CAP_SEARCH_H

#include "cmd.h"
#include "output.h"
#include "wattmeter/cap_search.h"

/* The first member of the command's arguments. */
struct cap_search_args {
    struct output_args output;
    const char *format, *objective, *replay;
    const char *max_slowdown;
    double price, hourly;
    struct cmd_count probes;
    const char *caps, *devices, *knob, *unit; /* these of `profile` alone */
    int64_t window_ns;
    bool repeat;
};

extern const struct cmd_option cap_search_options[];

/* The plan but for its limits. CMD_DONE, or CMD_MISUSED after saying why. */
int cap_search_plan(const struct cap_search_args *args, const struct cmd_streams *io,
                    struct wm_cap_plan *ret_plan);

/* Prints the answer to where it belongs: `screen` for text without a place. */
int cap_search_print(const struct cap_search_args *args, struct wm_cap_search *search,
                     FILE *screen, const struct cmd_streams *io);

/* `cap fit TABLE`, and `cap profile --replay TABLE`. The status of the process. */
int cap_fit(const struct cap_search_args *args, const char *path,
            const struct cmd_streams *io);
int cap_replay(const struct cap_search_args *args, const struct cmd_streams *io);

/* `cap profile -- COMMAND`; `words` ends with NULL. In cap_profile.c. */
int cap_profile(const struct cap_search_args *args, char **words,
                const struct cmd_streams *io);

#endif
