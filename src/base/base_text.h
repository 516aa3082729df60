/* SPDX-License-Identifier: Apache-2.0 */
/* base_text.h - numbers and names out of text that others wrote. Nothing here
 * depends on the locale, and nothing allocates. */
#ifndef WM_BASE_TEXT_H
#define WM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the decimal number that `text` starts with: digits only, no blanks and
 * no sign before them. `ret_end`, which may be NULL, gets the first character
 * past them. False, with nothing written, where there is no digit or the number
 * does not fit. */
bool wm_text_u64(const char *text, const char **ret_end, uint64_t *ret_value);

/* The same, but one '-' may stand before the digits. */
bool wm_text_i64(const char *text, const char **ret_end, int64_t *ret_value);

/* The first character that is neither a space nor a tab. A newline is none. */
const char *wm_text_skip_blanks(const char *text);

/* The length of the byte order mark that text[0..length) begins with, which some editors
 * put in front of UTF-8; 0 without one. */
size_t wm_text_mark(const char *text, size_t length);

/* Copies `length` bytes and makes them valid UTF-8: what is not, and a NUL, is
 * replaced by U+FFFD. As many whole characters as fit into out[0..size-1),
 * followed by a NUL. Returns the length without it. */
size_t wm_text_utf8(char *out, size_t size, const char *bytes, size_t length);

/* Makes `text` one line of valid UTF-8, to be shown anywhere: a '?' stands for each
 * control character, those of line ends and of the direction of text among them, for each
 * U+FFFD and for each piece that is none. It never grows. */
void wm_text_clean(char *text);

/* Puts '*' for each password in a URL ("://user:password@host", "password=...") that stands
 * somewhere in a message. It never grows. */
void wm_text_hide_passwords(char *text);

/* A cell of CSV as Python's csv module writes it: in quotes where it has a comma, a quote
 * or an end of line, with each quote in it doubled. `out` has room for 2 * length bytes;
 * returns how many of them it took. */
bool wm_text_is_quoted(const char *text, size_t length);
size_t wm_text_double_quotes(char *out, const char *text, size_t length);

/* Copies the first line of `text` without the blanks around it, as
 * wm_text_utf8() does. Returns the length; 0 for an empty line. */
size_t wm_text_line(char *out, size_t size, const char *text);

bool wm_text_ends(const char *text, const char *end);

/* Adds to the texts in list[0..size), which ends with a NUL, what fits of one more. */
void wm_text_list(char *list, size_t size, const char *separator, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
