/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.h - a command line in one text, split into words as a shell's quotes and
 * backslashes have it. Nothing else of a shell is here: $, *, | and && are text like any
 * other. */
#ifndef WM_SHELL_WORDS_H
#define WM_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The words, ending with NULL, in one block of memory that is the caller's to free; there
 * may be none. False with the reason, a constant, where a quote is not closed, a backslash
 * stands at the end, or memory runs out. */
bool shell_words_split(const char *text, char ***ret_words, size_t *ret_count,
                       const char **ret_problem);

#endif
