/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_value.h - the values of options: from a word to what the slot holds. */
#ifndef WM_CMD_VALUE_H
#define WM_CMD_VALUE_H

#include "cmd.h"

/* What messages call a word that stands in the wrong place: a URL, which may hold a
 * password, is not repeated. */
const char *cmd_shown(const char *word);

/* Nanoseconds in "100ms", "1.5s", "2min", "1h" or "0.5" (seconds); false for
 * anything else, and for what is longer than some decades. */
bool cmd_parse_duration(const char *word, int64_t *ret_ns);

/* A decimal number without sign, exponent and blanks. */
bool cmd_parse_number(const char *word, double *ret_number);

bool cmd_parse_count(const char *word, uint64_t *ret_count);

/* Puts `word` into the slot of `option` in `args`; its list has room. False when
 * it is not what the option takes, and then `problem` says why: "'5x' is not a
 * duration, such as 100ms or 2min". `word` is NULL for a flag on the command
 * line; elsewhere flags are words too. */
bool cmd_set_value(const struct cmd_option *option, char *word, char *args, char *problem,
                   size_t size);

#endif
