/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.h - what the tables say, for people; 80 columns wide. */
#ifndef WM_CMD_HELP_H
#define WM_CMD_HELP_H

#include "cmd.h"

/* `wattmeter --help`. */
void cmd_print_overview(const struct cmd *const table[], FILE *out);

/* `wattmeter run --help`. */
void cmd_print_help(const struct cmd *cmd, FILE *out);

/* "[OPTIONS] [--] COMMAND [ARG...]" */
void cmd_print_synopsis(const struct cmd *cmd, FILE *out);

/* Of the names that `next` gives, the one most like `word`; NULL when none is
 * near. `next` gives NULL past the last. */
const char *cmd_nearest(const char *word,
                        const char *(*next)(const void *from, size_t index),
                        const void *from);

#endif
