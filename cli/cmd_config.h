/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_config.h - options that are set outside of the command line.
 *
 *     # for all commands
 *     interval = 1s
 *
 *     [run]
 *     expected-cores = 8    # a comment may follow
 *
 * The file is $XDG_CONFIG_HOME/wattmeter/config, or ~/.config/wattmeter/config.
 * Before it counts the environment: WATTMETER_INTERVAL, WATTMETER_EXPECTED_CORES.
 */
#ifndef WM_CMD_CONFIG_H
#define WM_CMD_CONFIG_H

#include "cmd.h"

#define CMD_CONFIG_LIMIT 65536   /* bytes of a file, */
#define CMD_CONFIG_SETTINGS 1000 /* and settings in it */

/* One line of the file; all point into its text. */
struct cmd_setting {
    const char *section; /* the command it is for; NULL: all that have it */
    const char *name;
    char *value;
};

struct cmd_config {
    char *path; /* NULL: there is no file */
    char *text, *rest;
    const char *section; /* of what comes next */
    unsigned line;       /* of the latest setting */
    unsigned count;      /* of settings so far */
};

/* Finds and reads the file. No file is no settings. False with `problem`, which names the
 * file. The config needs its release in either case. */
bool cmd_config_load(struct cmd_config *config, char *problem, size_t size);

/* 1 and the next setting, 0 past the last one; -1 when `line` cannot be understood, and
 * then `ret_problem` is a constant that says why: "there is no '='". */
int cmd_config_next(struct cmd_config *config, struct cmd_setting *ret_setting,
                    const char **ret_problem);

void cmd_config_release(struct cmd_config *config);

/* The value of an option in the environment; NULL where it is unset or empty. */
char *cmd_environment(const struct cmd_option *option, char *ret_name, size_t size);

/* A variable that is another tool's; NULL where it is unset. */
const char *cmd_variable(const char *name);

#endif
