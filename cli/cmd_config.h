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
    unsigned line;
};

struct cmd_config {
    char *path;
    char *text;
    struct cmd_setting *settings;
    size_t count;
};

/* Cuts text[0..length], which ends with a NUL and is the caller's, into settings.
 * False when a line cannot be understood, with its number and the reason in
 * `problem`: "3: there is no '='". */
bool cmd_config_parse(struct cmd_config *config, char *text, size_t length, char *problem,
                      size_t size);

/* Finds, reads and parses the file. No file is no settings. False with `problem`,
 * which names the file. The config needs its release in either case. */
bool cmd_config_load(struct cmd_config *config, char *problem, size_t size);

/* Whether each setting is one that a command in `table` has; else `problem`. */
bool cmd_config_check(const struct cmd_config *config, const struct cmd *const table[],
                      char *problem, size_t size);

void cmd_config_release(struct cmd_config *config);

/* The value of an option in the environment; NULL where it is unset or empty. */
char *cmd_environment(const struct cmd_option *option, char *ret_name, size_t size);

/* A variable that is another tool's; NULL where it is unset. */
const char *cmd_variable(const char *name);

#endif
